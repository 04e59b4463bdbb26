"""Checks of `call_hooked`: every hook's arguments and effect, as PyTorch's own call has them."""

import warnings

import pytest
from torch import nn

from grader import Mismatch, assert_equal, compared, gate, python_random
from grader.ch04_modules.probes.hooked import hooked_run

COUNT = 40


@pytest.fixture
def random(rng):
    return python_random(rng)


def compare(hooked_calls, cases):
    """Compare case by case; of those that differ the one with the fewest hooks is shown."""
    got = hooked_calls.ask(cases).value
    wrong, due = [], []
    for case, one in zip(cases, got, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of errors that are dropped
            expected = hooked_run(lambda model, *a, **k: model(*a, **k), nn.Module, *case)
        due.append(expected)
        differs = [key for key in expected if _plain(expected[key]) != _plain(one[key])]
        if differs:
            wrong.append((len(case[0]), case, differs[0], expected[differs[0]], one[differs[0]]))
    compared(got, due)
    if wrong:
        _, case, what, expected, found = min(wrong, key=lambda one: one[0])
        rows = (("hooks", repr(case)), ("expected", repr(expected)), ("got", repr(found)))
        raise Mismatch(f"{len(wrong)} of {len(cases)} calls differ in their {what}.", rows)


def _plain(value):
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def cases_of(random, when, does, *, kwargs=(False,), always=(False,), fails=(False,)):
    """Return cases with up to four random hooks each."""
    return [
        [
            [
                [
                    random.choice(when),
                    random.choice(does),
                    random.choice(kwargs),
                    random.random() < 0.3,
                    random.choice(always),
                ]
                for _ in range(random.randint(1, 4))
            ],
            random.choice(fails),
        ]
        for _ in range(COUNT)
    ]


@gate
def test_without_hooks(hooked_calls):
    """Calls `forward` with the arguments, keywords too, and returns its output."""
    got = hooked_calls.ask([[[], False]]).value[0]
    assert_equal((got["events"], got["result"]), ([["forward", 1, [2], 5]], 7))


def test_before(hooked_calls, random):
    """Pre hooks run in order, and each may replace the positional arguments."""
    compare(hooked_calls, cases_of(random, ["before"], ["none", "change"]))
    compare(hooked_calls, cases_of(random, ["before"], ["none", "change", "zero"]))
    compare(hooked_calls, cases_of(random, ["before"], ["none", "list"]))


def test_after(hooked_calls, random):
    """Forward hooks run in order, and each may replace the output that the next one sees."""
    compare(hooked_calls, cases_of(random, ["after"], ["none", "change", "zero"]))


def test_keywords(hooked_calls, random):
    """Hooks that asked for keyword arguments get them; pre hooks may replace them, by a pair."""
    both = ["before", "after"]
    compare(hooked_calls, cases_of(random, both, ["none", "change"], kwargs=[True, False]))
    compare(hooked_calls, [[[["before", "zero", True, False, False]], False]])
    compare(hooked_calls, cases_of(random, ["before"], ["none", "drop", "change"], kwargs=[True]))


def test_errors(hooked_calls, random):
    """After an error the hooks that are always called run, each once, and the error goes on."""
    options = {"always": [True, True, False], "kwargs": [True, False], "fails": [True, True, False]}
    compare(hooked_calls, cases_of(random, ["after"], ["none", "change"], **options))
    both = ["before", "after", "after"]
    compare(hooked_calls, cases_of(random, both, ["none", "change", "zero"], **options))


def test_errors_of_hooks(hooked_calls, random):
    """So they do when a hook raises; what hooks raise after an error is dropped."""
    options = {"always": [True, True, False], "kwargs": [True, False], "fails": [True, False]}
    both, does = ["before", "after", "after"], ["none", "change", "raise"]
    row = [["after", what, False, False, False] for what in ("none", "change", "none", "raise")]
    compare(hooked_calls, [*cases_of(random, both, does, **options), [row, False]])
    compare(hooked_calls, cases_of(random, ["after"], ["raise", "none"], **options))
    options["fails"] = [False]  # what is no `Exception`, such as an interrupt, calls nobody
    compare(hooked_calls, cases_of(random, both, ["none", "quit"], **options))


def test_leaving(hooked_calls, random):
    """A hook that takes itself off while it runs disturbs no other."""
    leaves = [["after", does, False, False, True] for does in ("leave", "none")]
    got = hooked_calls.ask([[leaves, True]]).value[0]
    events = [["forward", 1, [2], 5], [0, True, [1, 2], [None]], [1, True, [1, 2], [None]]]
    expected = (events, "LookupError")
    assert_equal((got["events"], got["error"]), expected, "After an error, a hook took itself off:")
    # more only where nothing fails: after an error PyTorch's own loop stumbles over such a hook
    for when in (["before"], ["after"]):
        compare(hooked_calls, cases_of(random, when, ["leave", "none", "change"]))
    compare(hooked_calls, cases_of(random, ["before", "after"], ["leave", "change"], always=[True]))
