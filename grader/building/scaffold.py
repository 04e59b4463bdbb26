"""Writes the beginnings of an exercise where each of its parts belongs."""

from __future__ import annotations

import re
from pathlib import Path

from grader.course.course import Course, CourseError, probes_in

_SECTION = '''

# %% [markdown] exercise="{name}"
# title: {title}
# minutes: 20
# difficulty: 2
# points: 4
# prerequisites: []
# teaches: what a student understands after it.
# leaves out: what it does not go into.
# off limits: []

# %% [markdown]
# What it is about, in short sentences. Then an example that runs:

# %%
print(torch.zeros(2))

# %% [markdown]
# **Predict.** What will happen?

# %%
predict(..., lambda: torch.zeros(2).sum().item())

# %% [markdown]
# **Write `{name}(x)`.** Say exactly what goes in and what comes out; nothing else is checked.
#
# <details><summary>Hint 1: where to look</summary>
#
# …
#
# </details>
# <details><summary>Hint 2: how to go about it</summary>
#
# …
#
# </details>
# <details><summary>Hint 3: the trap</summary>
#
# …
#
# </details>


# %% solution="{name}"
def {name}(x: torch.Tensor) -> torch.Tensor:
    """Say what comes out.

    x: shape and dtype
    """
    ### BEGIN SOLUTION
    return x.clone()
    ### END SOLUTION


# %% grade="{name}"
grade("{name}")
'''

_PROBES = '"""Probes of `{name}`."""\n\nfrom grader import probe\n'

_PROBE = '''

@probe
def {name}_result(student, x):
    """Return what `{name}` makes of `x`."""
    return student.{name}(x)
'''

_CHECKS = '''"""Checks of `{name}`."""

import pytest
import torch

from grader import assert_same_bits, assert_tensor, gate


@pytest.fixture
def x(rng):
    return torch.randn(3, 4, generator=rng)


@gate
def test_shape_and_dtype({name}_result, x):
    """Returns a tensor of the right kind."""
    assert_tensor({name}_result.value, dtype=x.dtype, shape=x.shape)


def test_values({name}_result, x):
    """Says in a student's words what is right about it."""
    assert_same_bits({name}_result.value, x, of=x)
'''

_ANSWERS = """## blocked: the_built_in
What it uses, and why that is off limits. Remove this section if nothing is.

```python
def {name}(x):
    return x
```

## mistake: named_after_the_thought
What the author of this code believed, and what is true instead.

```diff
- return x.clone()
+ return x * 0
```

## alternate: another_road
How this one goes about it.

```python
def {name}(x):
    return x + 0
```
"""


def scaffold(course: Course, chapter: str, exercise: str) -> list[Path]:
    """Write an exercise's section, probe, checks and answers; return the files.

    Raises `CourseError`, before anything is written, if one of them is there already.
    """
    if not re.fullmatch(r"[A-Za-z_]\w*", exercise):
        raise CourseError(f"{exercise!r} is no name for a function.")
    sources = sorted((course.root / "solutions" / chapter).glob("*.pct.py"))
    if not sources:
        raise CourseError(f"solutions/{chapter} has no source (*.pct.py).")
    graders = course.root / "grader" / chapter
    checks, answers = graders / f"test_{exercise}.py", graders / "answers" / f"{exercise}.md"
    source, probes = sources[0], probes_in(graders)
    if probes.is_dir():
        probes /= f"{exercise}.py"
    there = [path for path in (checks, answers) if path.exists()]
    if f'exercise="{exercise}"' in source.read_text(encoding="utf-8"):
        there.append(source)
    if there:
        raise CourseError(f"{exercise} is there already: {', '.join(map(str, there))}.")
    title = exercise.replace("_", " ").capitalize()
    answers.parent.mkdir(parents=True, exist_ok=True)
    _append(source, _SECTION.format(name=exercise, title=title))
    if not probes.exists():
        probes.write_text(_PROBES.format(name=exercise), encoding="utf-8")
    _append(probes, _PROBE.format(name=exercise))
    checks.write_text(_CHECKS.format(name=exercise), encoding="utf-8")
    answers.write_text(_ANSWERS.format(name=exercise), encoding="utf-8")
    return [source, probes, checks, answers]


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
