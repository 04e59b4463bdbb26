"""Writes the beginnings of an exercise where each of its parts belongs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from keyword import iskeyword
from pathlib import Path

from grader.building.sources import cards_in, source_of, source_with, sources
from grader.course.course import Course, CourseError

_SECTION = '''\
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

_PACKAGE = '"""The chapter\'s probes: all of it that runs beside a student\'s code."""\n'

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
What it uses, and why that is off limits. Remove this section if the card forbids nothing.

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


@dataclass(frozen=True)
class Scaffold:
    """What was written: the files, and the exercise that the new section follows, if any."""

    files: tuple[Path, ...]
    after: str


def scaffold(course: Course, chapter: str, exercise: str, after: str = "") -> Scaffold:
    """Write an exercise's section, probe, checks and answers.

    The section follows that of the exercise `after`, else all there are. Raises `CourseError`, before
    anything is written, if one of them is there already, or there is no `after`.
    """
    if not exercise.isidentifier() or iskeyword(exercise):
        raise CourseError(f"{exercise!r} is no name for a function.")
    source = source_of(course, chapter)
    if source is None:
        known = ", ".join(path.parent.name for path in sources(course)) or "none"
        raise CourseError(
            f"{chapter} has no source solutions/{chapter}/*.pct.py. Chapters that have one: {known}. "
            "A new chapter begins with its source: site/for-authors.md shows one."
        )
    graders = course.root / "grader" / chapter
    checks, answers = graders / f"test_{exercise}.py", graders / "answers" / f"{exercise}.md"
    probes = graders / "probes" / f"{exercise}.py"
    there = [path for path in (checks, answers) if path.exists()]
    other = source_with(course, exercise)  # an exercise's name is one in the whole course
    there += [other] if other else []
    if there:
        raise CourseError(f"{exercise} is there already: {', '.join(map(str, there))}.")
    cards = cards_in(source)
    if after and after not in cards:
        raise CourseError(f"{source.name} has no exercise {after!r}. It has: {', '.join(cards)}.")
    section = _SECTION.format(name=exercise, title=exercise.replace("_", " ").capitalize())
    answers.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(_with(source.read_text(encoding="utf-8"), section, after), encoding="utf-8")
    _append_probe(probes, exercise)
    checks.write_text(_CHECKS.format(name=exercise), encoding="utf-8")
    answers.write_text(_ANSWERS.format(name=exercise), encoding="utf-8")
    return Scaffold((source, probes, checks, answers), after or (cards[-1] if cards else ""))


def _with(text: str, section: str, after: str) -> str:
    """Return a source with one more section, after that of an exercise or at the end.

    A section ends where the next card stands, or the next heading below its grade cell.
    """
    lines = text.splitlines(keepends=True)
    begun = graded = False
    for number, line in enumerate(lines if after else ()):
        begun = begun or bool(re.match(rf'# %%.*\bexercise="{after}"', line))
        graded = graded or (begun and bool(re.match(rf'# %%.*\bgrade="{after}"', line)))
        heading = "".join(lines[number + 1 : number + 2]).startswith(("# ## ", "# ### "))
        if graded and re.match(r"# %% \[markdown\]", line) and (" exercise=" in line or heading):
            before = "".join(lines[:number]).rstrip()
            return "".join([f"{before}\n\n", section, "\n", *lines[number:]])
    return f"{text.rstrip()}\n\n\n{section}"


def _append_probe(module: Path, exercise: str) -> None:
    """Append a probe to a module that may be there, as the home of a subject of that name."""
    module.parent.mkdir(exist_ok=True)
    if not (package := module.parent / "__init__.py").exists():
        package.write_text(_PACKAGE, encoding="utf-8")
    if not module.exists():
        module.write_text(_PROBES.format(name=exercise), encoding="utf-8")
    _append(module, _PROBE.format(name=exercise))


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
