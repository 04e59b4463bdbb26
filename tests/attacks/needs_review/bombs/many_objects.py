# Twenty megabytes of empty objects: small on disk, large in memory.
# review: unreadable
# %% folder
notebook.write_text('{"nbformat": 4, "cells": [' + ",".join(["{}"] * 7_000_000) + "]}")
