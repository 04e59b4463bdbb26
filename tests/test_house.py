"""The house: imports run one way through the rooms, and a box holds what runs in it and no more."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import grader
from grader.box.mounts import OURS

PACKAGE = Path(grader.__file__).parent

ROOMS = (
    "files",
    "course",
    "submission",
    "evidence",
    "inside",
    "box",
    "verdict",
    "feedback",
    "student",
    "nbgrader",
    "building",
    "instructor",
    "proving",
    "commands",
)
"""In the order of the story: a room imports from those before it alone."""

FRONT = "grader/__init__.py"
"""What notebooks, probes and checks import. It fetches names by text, when they are used."""


def modules():
    """Return every module of the rooms, by its dotted name below `grader`."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if not re.match(r"ch\d\d_", parts[0]) and parts != ("__init__",):
            found[".".join(part for part in parts if part != "__init__")] = path
    return found


MODULES = modules()


def imports(path):
    """Return the modules below `grader` that a file names in an import, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            named = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in named:
            ours = name.removeprefix("grader.")
            if ours != name:
                found.add(ours if ours in MODULES else ours.rpartition(".")[0])
    return found


@cache
def graph():
    """Return which modules each module imports."""
    return {name: imports(path) & MODULES.keys() for name, path in MODULES.items()}


def reached(first):
    """Return the modules that these import, themselves included."""
    found, pending = set(), list(first)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += graph()[name]
    return found


def room(name):
    return name.split(".")[0]


def test_each_module_lies_in_a_room():
    assert {room(name) for name in MODULES} == set(ROOMS)


@pytest.mark.parametrize("name", ROOMS)
def test_imports_run_one_way(name):
    before = set(ROOMS[: ROOMS.index(name) + 1])
    back = [
        f"{module} imports {other}"
        for module, others in graph().items()
        for other in others
        if room(module) == name and room(other) not in before
    ]
    assert not back


def test_no_module_imports_itself_by_a_detour():
    assert not [name for name, others in graph().items() if name in reached(others)]


def shown_in_a_box():
    """Return the modules of ours that a box shows, besides the package's front."""
    files = [path for part in OURS for path in (PACKAGE / part, *(PACKAGE / part).rglob("*.py"))]
    shown = {name for name, path in MODULES.items() if path in files}
    assert PACKAGE / "__init__.py" in files
    return shown


def test_what_a_box_shows_needs_nothing_that_it_does_not_show():
    shown = shown_in_a_box()
    assert reached(shown) == shown


def test_a_box_shows_nothing_that_nothing_in_it_needs():
    # what runs first, and what probes import by name
    begins = {"inside.process.warm", "inside.serve"}
    probes = {home.removeprefix("grader.") for home in grader._PROBES.values()}
    packages = {name for name in shown_in_a_box() if MODULES[name].name == "__init__.py"}
    assert shown_in_a_box() == reached(begins | probes) | packages


def test_every_room_says_what_it_is():
    for name, path in MODULES.items():
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), name
