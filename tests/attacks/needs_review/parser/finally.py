# Blocks in blocks, each of which CPython copies twice: to compile it takes hours.
# review: reading it took more than
# says: could not be read
# %% notebook
from tests.bombs import ANSWERS

cell_of(nb, "decode")["source"] = ANSWERS["finally, 16 deep"]
