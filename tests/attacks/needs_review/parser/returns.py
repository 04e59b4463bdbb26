# Nine hundred returns, and a block that CPython copies for each.
# review: reading it took more than
# says: could not be read
# %% notebook
from tests.bombs import ANSWERS

cell_of(nb, "decode")["source"] = ANSWERS["returns through a finally"]
