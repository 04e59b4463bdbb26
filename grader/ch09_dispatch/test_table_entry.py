"""Checks of `table_entry`: which registration an entry comes from."""

import pytest

from grader import Mismatch, assert_equal, compared, gate, points, python_random
from grader.ch09_dispatch.table_rules import (
    ALIASES,
    AUTOGRAD,
    AUTOGRAD_KEYS,
    AUTOGRAD_OF,
    BACKENDS,
    EXPLICIT,
    IMPLICIT,
    KEYS,
    NON_FUNCTIONAL,
    OTHERS,
    entry,
    named,
)

BELOW = [*BACKENDS, "Undefined"]
OWN_BACKENDS = [backend for backend in BACKENDS if backend not in OTHERS]


@pytest.fixture
def random(rng):
    return python_random(rng)


def compare(table_entries, cases):
    """Compare all entries of each (registered, keys); say at which call the first difference is."""
    found = table_entries.ask([dict(one) for one, _ in cases], [list(k) for _, k in cases]).value
    for (registered, keys), got in zip(cases, found, strict=True):
        compared(got)
        for key, mine in zip(keys, got, strict=True):
            expected = entry(registered, key)
            if mine != expected:
                on = f"table_entry({registered!r}, {key!r})"
                rows = ("on", on), ("expected", repr(expected)), ("got", repr(mine))
                raise Mismatch(f"Another entry stands at `{key}`.", rows)


@gate
def test_returns_text(table_entries):
    """Returns the name of a kernel that was registered for the key."""
    got = table_entries.ask([{"CPU": "mine"}], [["CPU"]]).value
    assert_equal(got[0][0], "mine", "The entry of `CPU`, where `mine` was registered.")


def test_own_kernel(table_entries, random):
    """A kernel that was registered for the key itself comes before those of alias keys."""
    cases = [(named(*ALIASES, key), [key]) for key in KEYS if key != "Undefined"]
    cases += [(named(*random.sample(KEYS, 6)), []) for _ in range(10)]
    cases = [(registered, keys or list(registered)) for registered, keys in cases]
    compare(table_entries, cases)


def test_explicit(table_entries):
    """The explicit kernels: "NonFunctional" first, each for the keys that it stands for."""
    cases = [(named(EXPLICIT), BELOW), (named(NON_FUNCTIONAL), BELOW)]
    cases += [
        (named(EXPLICIT, NON_FUNCTIONAL), BELOW),
        (named(NON_FUNCTIONAL, EXPLICIT), BELOW),
    ]
    cases += [(named(IMPLICIT, one), ["CPU", "SparseCsrCPU"]) for one in (EXPLICIT, NON_FUNCTIONAL)]
    compare(table_entries, cases)


@points(4)
def test_implicit(table_entries, random):
    """The implicit kernel: where it stands, and where it gives way."""
    keys = [*BELOW, *(key for key in AUTOGRAD_KEYS if key != "AutogradOther")]
    cases = [(named(IMPLICIT), keys), (named(EXPLICIT, IMPLICIT), keys)]
    cases += [(named(NON_FUNCTIONAL, IMPLICIT), keys)]
    cases += [(named(backend, IMPLICIT), keys) for backend in BACKENDS]
    cases += [(named(IMPLICIT, key), keys) for key in ("ADInplaceOrView", "AutogradCPU")]
    pool = [IMPLICIT, *BACKENDS]
    for _ in range(20):
        cases.append((named(*random.sample(pool, 5)), keys))
    compare(table_entries, cases)


def test_ambiguous(table_entries):
    """`AutogradOther` with an implicit kernel, and with or without a backend's own."""
    other = ["AutogradOther"]
    cases = [(named(IMPLICIT, backend), other) for backend in BACKENDS]
    cases += [(named(backend), other) for backend in OTHERS]
    cases += [(named(EXPLICIT, backend, IMPLICIT), other) for backend in ("SparseCPU", "CPU")]
    cases += [(named("SparseCPU", IMPLICIT, AUTOGRAD), other)]
    cases += [(named("SparseCPU", IMPLICIT, "AutogradOther"), other)]
    compare(table_entries, cases)


def test_autograd(table_entries):
    """The kernel for `Autograd` gets those Autograd keys that an implicit one does not get."""
    keys = [key for key in AUTOGRAD_KEYS if key != "AutogradOther"]
    cases = [(named(AUTOGRAD), [*keys, "AutogradOther", "CPU"])]
    cases += [(named(AUTOGRAD, IMPLICIT), keys), (named(IMPLICIT, AUTOGRAD), keys)]
    cases += [(named(IMPLICIT, AUTOGRAD, backend), keys) for backend in OWN_BACKENDS]
    cases += [(named(AUTOGRAD, EXPLICIT), keys), (named(AUTOGRAD, EXPLICIT, IMPLICIT), keys)]
    cases += [(named(AUTOGRAD, AUTOGRAD_OF[backend]), keys) for backend in OWN_BACKENDS]
    compare(table_entries, cases)


def test_nobody(table_entries):
    """Where no kernel is found, it is the key's fallback, or nothing."""
    compare(table_entries, [(named("CPU"), [key for key in KEYS if key != "CPU"])])
    compare(table_entries, [({}, KEYS)])


def test_all_together(table_entries, random):
    """Any registrations, every key."""
    pool = [key for key in KEYS if key != "Undefined"] + list(ALIASES) * 2
    drawn = []
    for _ in range(25):
        drawn.append(named(*dict.fromkeys(random.sample(pool, 6))))
    compare(table_entries, [(registered, KEYS) for registered in drawn])
