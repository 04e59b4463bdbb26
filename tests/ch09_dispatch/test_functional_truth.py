"""`functionalize`: its solution on many random programs, beside eager and PyTorch's own."""

from contextlib import suppress
from functools import partial
from random import Random

import torch

from grader.ch09_dispatch.probes.functional import Writes, function_of
from grader.ch09_dispatch.writing_programs import random_program
from tests import references

reference = partial(references.reference, "ch09_dispatch")


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_random_programs():
    functionalize, random = reference("functionalize"), Random(1)
    agreed = 0
    for _ in range(150):
        function = function_of(random_program(random, random.randint(2, 14)))
        inputs = [torch.arange(12.0).view(3, 4), torch.ones(3, 3)]
        eager, ours, theirs = ([one.clone() for one in inputs] for _ in range(3))
        expected = function(*eager)
        with Writes(ours) as writes:
            found = functionalize(function)(*ours)
        same([*found, *ours], [*expected, *eager])
        with suppress(RuntimeError):  # its contents lose their strides: a `view` may be refused
            same([*torch.func.functionalize(function)(*theirs), *theirs], [*expected, *eager])
            agreed += 1
        written = [["copy_", n] for n, one in enumerate(eager) if one._version]
        assert writes.notes == written
    assert agreed > 145


def test_results_keep_their_aliases():
    functionalize, random = reference("functionalize"), Random(2)
    for _ in range(200):
        function = function_of(random_program(random, random.randint(2, 10)))
        eager, ours = ([torch.arange(12.0).view(3, 4), torch.ones(3, 3)] for _ in range(2))
        expected, found = function(*eager), functionalize(function)(*ours)
        eager[0].add_(100)
        ours[0].add_(100)
        same(found, expected)
