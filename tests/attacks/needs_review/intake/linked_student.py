# The student's folder is a link to a victim's.
# review: unreadable
# %% folder
import shutil

shutil.rmtree(folder.parent)
os.symlink(course / "submitted" / "mmm-victim", folder.parent)
