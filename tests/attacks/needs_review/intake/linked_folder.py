# The whole submission is a link to a victim's.
# review: unreadable
# %% folder
import shutil

shutil.rmtree(folder)
os.symlink(course / "submitted" / "mmm-victim" / "ch01_formats", folder)
