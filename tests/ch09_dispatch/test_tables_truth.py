"""`table_entry`: its rules and its solution against the tables of operators that PyTorch filled."""

from functools import partial
from random import Random

import torch

from grader.ch09_dispatch.table_rules import ALIASES, IMPLICIT, KEYS, entry, named
from tests import references

reference = partial(references.reference, "ch09_dispatch")

POOL = [*(key for key in KEYS if key != "Undefined"), *ALIASES * 2]


def random_registrations(random):
    """Return registrations that PyTorch takes.

    It refuses a kernel for Meta beside an implicit one, in Python, before the dispatcher hears of it.
    """
    keys = dict.fromkeys(random.sample(POOL, random.randint(0, 8)))
    if IMPLICIT in keys:
        keys.pop("Meta", None)
    return named(*keys)


def table_of(registered, fallthrough=()):
    """Return what PyTorch's table of an operator with these registrations has at each of `KEYS`."""
    with torch.library._scoped_library("tables_truth", "FRAGMENT") as library:
        library.define("op(Tensor x) -> Tensor")
        for key in registered:
            kernel = torch.library.fallthrough_kernel if key in fallthrough else lambda x: x
            library.impl("op", kernel, key)
        lines = torch._C._dispatch_dump_table("tables_truth::op").splitlines()
    found = dict(line.split(": ", 1) for line in lines if ": " in line)
    return {key: found.get(key, "[missing]") for key in KEYS}


def kind(text):
    """Return what a line of PyTorch's table says of an entry, in the words of the exercise."""
    inside = text.split("[")[-1][:-1]
    if inside == "backend fallback":
        return "fallthrough" if text.startswith("fallthrough") else "fallback"
    return {"ambiguous autogradother": "ambiguous"}.get(inside, inside)


def described(registered, key):
    """Return what the rules say of an entry, in PyTorch's words for where a kernel comes from."""
    found = entry(registered, key)
    names = {name: place for place, name in registered.items()}
    if found not in names:
        return found
    default = "default backend kernel"
    words = dict(zip(ALIASES, [default, default, "math kernel", "autograd kernel"], strict=True))
    return words.get(names[found], "kernel")


def test_rules_are_pytorchs():
    random = Random(1)
    for _ in range(300):
        registered = random_registrations(random)
        for key, text in table_of(registered).items():
            assert described(registered, key) == kind(text), (registered, key)


def test_a_fallthrough_is_a_registration_like_any_other():
    random = Random(2)
    for _ in range(50):
        registered = random_registrations(random)
        table = table_of(registered, fallthrough=[key for key in registered if key not in ALIASES])
        for key, text in table.items():
            if key not in registered:
                assert described(registered, key) == kind(text), (registered, key)


def test_table_entry():
    table_entry, random = reference("table_entry"), Random(3)
    for _ in range(300):
        registered = random_registrations(random)
        for key in KEYS:
            assert table_entry(registered, key) == entry(registered, key), (registered, key)
