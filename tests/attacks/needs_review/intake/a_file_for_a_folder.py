# A file where the submission's folder should be.
# review: unreadable
# %% folder
import shutil

shutil.rmtree(folder)
folder.write_text("not a folder")
