# A pattern of 25,000 alternatives.
# review: reading it took more than
# says: could not be read
# %% notebook
from tests.bombs import ANSWERS

cell_of(nb, "decode")["source"] = ANSWERS["alternatives"]
