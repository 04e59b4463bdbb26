# A file that was cut off.
# review: unreadable
# says: could not be read
# %% folder
notebook.write_text('{"cells": [')
