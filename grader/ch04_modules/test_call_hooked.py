"""Checks of `call_hooked`: every hook's arguments and effect, as PyTorch's own call has them."""

import warnings

import pytest
from torch import nn

from grader import Mismatch, assert_equal, compared, gate, points, python_random
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
        show = _shown_events if what == "events" else repr
        rows = (("hooks", shown_hooks(case)), ("expected", show(expected)), ("got", show(found)))
        said = f"{len(wrong)} of {len(cases)} calls differ in their {what}. One with few hooks:"
        raise Mismatch(said, rows)


DOES = {
    "none": "returns None",
    "zero": "returns 0",
    "list": "returns a list of three",
    "drop": "returns (args, {})",
    "leave": "takes itself off, returns None",
    "raise": "raises ArithmeticError",
    "quit": "raises what is no Exception, like KeyboardInterrupt",
}


def shown_hooks(case):
    """Return what is registered, in order, what each hook does, and what is called."""
    lines = []
    for number, (when, does, with_kwargs, prepend, always) in enumerate(case[0]):
        options = {"with_kwargs": with_kwargs, "prepend": prepend, "always_call": always}
        if when == "before":
            del options["always_call"]
        named = "".join(f", {name}=True" for name, value in options.items() if value)
        kind = "forward_pre_hook" if when == "before" else "forward_hook"
        lines.append(
            f"register_{kind}(h{number}{named})  # {_does(number, when, does, with_kwargs)}"
        )
    forward = "# forward raises LookupError" if case[1] else "# forward gives x * scale + sum(more)"
    return "\n".join([*lines, f"call_hooked(module, 1, 2, scale=5)  {forward}"])


def _does(number, when, does, with_kwargs):
    if does != "change":
        return DOES[does]
    if when == "after":
        return f"returns output + {number}"
    if with_kwargs:
        return f'returns ((args[0] + {number}, *args[1:]), {{"scale": 3}})'
    return f"returns (2 * args[0], {number})"


def _shown_events(events):
    """Return what was called, in order, with what."""
    lines = []
    for event in events:
        if event[0] == "forward":
            _, x, more, scale = event
            lines.append(f"forward({', '.join(map(repr, [x, *more]))}, scale={scale!r})")
        else:
            number, own, args, rest = event
            module = "module" if own else "another module"
            lines.append(f"h{number}({', '.join([module, repr(tuple(args)), *map(repr, rest)])})")
    return "\n".join(lines) or "nothing was called"


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
    said = "`call_hooked(module, 1, 2, scale=5)`: the calls of `forward`, and the result."
    assert_equal((got["events"], got["result"]), ([["forward", 1, [2], 5]], 7), said)


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


@points(2.5)
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
    events = [["forward", 1, [2], 5], [0, True, [1, 2], [None]], [1, True, [1, 2], [None]]]
    groups = [cases_of(random, [when], ["leave", "none", "change"]) for when in ("before", "after")]
    groups.append(cases_of(random, ["before", "after"], ["leave", "change"], always=[True]))
    # all are asked before the first is judged: who loops over a live dictionary shows where
    after_error = hooked_calls.ask([[leaves, True]]).value[0]
    compared([after_error, *(hooked_calls.ask(cases).value for cases in groups)])
    for cases in groups:
        compare(hooked_calls, cases)
    # one case only: after an error PyTorch's own loop stumbles over such a hook
    if (after_error["events"], after_error["error"]) != (events, "LookupError"):
        rows = (
            ("hooks", shown_hooks([leaves, True])),
            ("expected", f"{_shown_events(events)}\nraises LookupError"),
            ("got", f"{_shown_events(after_error['events'])}\nraises {after_error['error']}"),
        )
        raise Mismatch("After an error a hook took itself off.", rows)
