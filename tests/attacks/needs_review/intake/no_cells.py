# A notebook whose cells are no list.
# review: unreadable
# says: could not be read
# %% folder
notebook.write_text('{"nbformat": 4, "cells": 5}')
