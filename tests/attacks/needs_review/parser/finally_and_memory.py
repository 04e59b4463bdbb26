# Blocks in blocks, nineteen deep: gigabytes of compiled code.
# review: reading it took more than
# says: could not be read
# %% notebook
from tests.bombs import ANSWERS

cell_of(nb, "decode")["source"] = ANSWERS["finally, 19 deep"]
