"""nbgrader's configuration. Plain nbgrader commands work in this folder because of it.

What is set here makes `nbgrader autograde` rebuild each submission from the released notebook,
run its code in a sandbox, and judge the evidence outside. See the site, "For instructors".
"""

from grader.nbgrader import commands_on_path
from grader.nbgrader.settings import apply

commands_on_path()
apply(get_config())  # noqa: F821  (nbgrader provides it)
