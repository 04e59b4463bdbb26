"""Walks, checkpoints, surgery: the reference solutions agree with torch on many random models."""

from random import Random

import pytest

from grader.ch04_modules.graphs import modules_of, random_graph, tensors_of
from grader.ch04_modules.probes import build, numbered
from grader.core.course import Course, read_reference
from grader.core.program import slice_program
from tests import ROOT

CHAPTER = Course(ROOT).chapter("ch04_modules")


def reference(exercise):
    """Return an exercise's reference solution as a function or a class."""
    names = [known.id for known in CHAPTER.exercises]
    namespace = {}
    for label, source in slice_program(exercise, names, read_reference(CHAPTER)).parts:
        exec(compile(source, label, "exec", dont_inherit=True), namespace)
    return namespace[exercise]


@pytest.mark.parametrize("remove_duplicate", [True, False])
def test_named_modules(remove_duplicate):
    named_modules, random = reference("named_modules"), Random(1)
    for number in range(500):
        graph = random_graph(random)
        modules, _, _ = build(graph)
        memo = [None, [], [1], [0], [2, 5]][number % 5]
        prefix = ["", "net", "a.b"][number % 3]
        expected = modules_of(graph, memo, prefix=prefix, remove_duplicate=remove_duplicate)
        seen = None if memo is None else {modules[n] for n in memo if n < len(modules)}
        pairs = list(named_modules(modules[0], seen, prefix, remove_duplicate))
        after = [n for n, module in enumerate(modules) if module in (seen or ())]
        assert (numbered(pairs, modules), after) == expected


@pytest.mark.parametrize("remove_duplicate", [True, False])
def test_named_tensors(remove_duplicate):
    named_tensors, random = reference("named_tensors"), Random(2)
    for number in range(400):
        graph = random_graph(random, tensors=True)
        modules, parameters, buffers = build(graph)
        options = {
            "prefix": ["", "net"][number % 2],
            "recurse": number % 5 > 0,
            "remove_duplicate": remove_duplicate,
        }
        for kind, objects in (("parameters", parameters), ("buffers", buffers)):
            got = numbered(named_tensors(modules[0], kind, **options), objects)
            assert got == tensors_of(graph, kind, **options)
