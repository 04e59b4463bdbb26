# Waits for input that nobody gives, using no processor time.
# says: no answer within
# %% solution decode
import time

time.sleep(10_000)
