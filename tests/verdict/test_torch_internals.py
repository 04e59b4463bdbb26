"""Every private name of torch that the grader uses is listed, and is there."""

import ast
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest
import torch

import grader
from grader.student.capture import INTERNALS
from grader.verdict import torch_internals
from grader.verdict.torch_internals import NAMES, VERIFIED, other_torch

LISTED = NAMES | INTERNALS
PACKAGE = Path(grader.__file__).parent


def private_names():
    """Return the files of the grader in which each private name of torch is used."""
    found = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for name in names_of(node):
                first, *rest = name.split(".")
                if first == "torch" and any(part[0] == "_" != part[1] for part in rest):
                    found[name].add(str(path.relative_to(PACKAGE)))
    return found


def names_of(node):
    """Return the dotted names that a node of a syntax tree imports or reads."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Attribute):
        return [ast.unparse(node)]
    return []


def test_what_is_used_is_listed_and_the_other_way_round():
    used = private_names()
    # `import torch._dynamo` and the beginning of a longer name are no use of their own
    whole = {name for name in used if not any(other.startswith(f"{name}.") for other in LISTED)}
    assert whole == set(LISTED), {name: used.get(name) for name in whole ^ set(LISTED)}


@pytest.mark.parametrize("name", LISTED)
def test_what_is_listed_is_there(name):
    home, _, last = name.rpartition(".")
    try:
        found = import_module(home)
    except ImportError:  # a submodule made in C++ is an attribute
        found = torch
        for part in home.split(".")[1:]:
            found = getattr(found, part)
    assert hasattr(found, last)


def test_the_torch_that_was_verified_is_here():
    assert torch.__version__.split("+")[0] == VERIFIED
    assert other_torch() is None


def test_another_torch_is_told_with_what_to_do(monkeypatch):
    monkeypatch.setattr(torch_internals.torch, "__version__", "2.12.1+cpu")
    note = other_torch()
    assert "torch 2.12.1" in note
    assert f"pip install torch=={VERIFIED}" in note
