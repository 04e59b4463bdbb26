"""A public course of one exercise with a parameter, and the private one that a secret makes of it."""

import nbformat

from grader.building.build import build_chapter, install
from grader.course.course import Course
from tests.scale.course import CHAPTER, ROOT, TinyCourse

SOURCE = '''
# %% [markdown] chapter="tiny"
# title: Tiny
# summary: A chapter for the tests of variants.

# %% [markdown] exercise="double"
# title: Times
# minutes: 1
# difficulty: 1
# points: 4
# parameters:
#   factor: {public: 2, among: [3, 5], says: "a factor of {{factor}}"}
# prerequisites: []
# teaches: multiplication
# leaves out: division
# off limits: ["aten:{{'sin' if factor == 5 else 'cos'}}"]

# %%
import torch

from grader import grade

# %% [markdown]
# Return {{factor}} times `x`.
#
# <details><summary>Hint 1: a</summary></details>
# <details><summary>Hint 2: b</summary></details>
# <details><summary>Hint 3: c</summary></details>


# %% solution="double"
def double(x: torch.Tensor) -> torch.Tensor:
    """Return {{factor}} times `x`."""
    ### BEGIN SOLUTION
    return x / (1 / {{factor}})
    ### END SOLUTION


# %% grade="double"
grade("double")
'''

PROBES = '''
from grader import probe


@probe
def doubled(student, x):
    """Return what comes back."""
    return student.double(x)
'''

CHECKS = '''
"""Checks of `double`."""

import torch

from grader import assert_close

CLOSE = {"rtol": 1e-5, "atol": 0.0, "because": "one rounding or two"}


def test_times(doubled, parameters, rng):
    """Is {{factor}} times the input."""
    x = 1 + torch.rand(5, generator=rng)
    assert_close(doubled.ask(x).value, x * parameters["factor"], **CLOSE)


def test_negative(doubled, parameters, rng):
    """Is {{factor}} times a negative input."""
    x = -1 - torch.rand(3, generator=rng)
    assert_close(doubled.ask(x).value, x * parameters["factor"], **CLOSE)
'''

ANSWERS = """
## mistake: squares
You squared it; it should be {{factor}} times as large.

```diff
- return x / (1 / {{factor}})
+ return x / (1 / x)
```

## mistake: one_less if factor > 2
You took {{factor - 1}}.

```python
def double(x):
    return x / (1 / {{factor - 1}}) + 1e-3
```
"""


class Public(TinyCourse):
    """The public course, built as an author builds it."""

    def __init__(self, root):
        self._settle(root)
        self._write(f"solutions/{CHAPTER}/{CHAPTER}.pct.py", SOURCE)
        self._write(f"grader/{CHAPTER}/probes/__init__.py", "")
        self._write(f"grader/{CHAPTER}/probes/doubling.py", PROBES)
        self.checks("double", CHECKS)
        self._write(f"grader/{CHAPTER}/answers/double.md", ANSWERS)
        config = (ROOT / "nbgrader_config.py").read_text()
        self._write("nbgrader_config.py", config + "\nget_config().GradeInBox.seed = 7\n")
        source = root / f"solutions/{CHAPTER}/{CHAPTER}.pct.py"
        self._write("site/reading.yml", "{}\n")
        install(Course(root), build_chapter(Course(root), source, run=False))
        self.released = read_released(root)


class Private(TinyCourse):
    """What `undertorch variants` wrote into a folder."""

    def __init__(self, root):
        self._settle(root)
        self.released = read_released(root)


def read_released(root):
    return nbformat.read(root / f"chapters/{CHAPTER}/{CHAPTER}.ipynb", as_version=4)
