# A name that is made of itself again and again, and asked for as an attribute.
# review: reading it took more than
# says: could not be read
# %% notebook
from tests.bombs import ANSWERS

cell_of(nb, "decode")["source"] = ANSWERS["a name from itself"]
