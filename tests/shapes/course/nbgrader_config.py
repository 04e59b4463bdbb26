"""The example course is graded like the real one: by plain nbgrader commands in its folder."""

from grader.nbgrader import commands_on_path
from grader.nbgrader.settings import apply

commands_on_path()
apply(get_config())  # noqa: F821  (nbgrader provides it)
