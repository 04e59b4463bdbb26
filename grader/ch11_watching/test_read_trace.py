"""Checks of `read_trace`: random traces whose calls are known, and one that PyTorch has recorded."""

import json

import pytest

from grader import (
    Mismatch,
    about,
    assert_equal,
    assert_holds,
    draw_int,
    gate,
    points,
    python_random,
)
from grader.ch11_watching.traces import RECORDED, Drawn, as_event, as_text, draw_trace, draw_unlucky


@pytest.fixture
def drawn(rng):
    """Random traces with what they say, short ones first."""
    random = python_random(rng)
    sizes = [(2, 1), (6, 1), (8, 2), (14, 1), (24, 1), (30, 3)]
    return [draw_trace(random, *size) for size in sizes]


def read(traces_read, texts):
    for text, got in zip(texts, traces_read.ask(texts).value, strict=True):
        if got is None:
            raise Mismatch("Expected a `Profile`.", (("on", shown(text)),))
        yield got


def shown(text):
    """Return a trace's calls, one a line, or how many there are."""
    events = json.loads(text)["traceEvents"]
    calls = [one for one in events if one.get("cat") in ("cpu_op", "user_annotation")]
    if len(calls) > 4:
        return f"a trace of {len(calls)} calls"
    lines = (f"{one['name']}, tid {one['tid']}: {one['ts']} + {one['dur']}" for one in calls)
    return "\n".join(lines)


def compare(traces_read, cases, fields):
    """Compare `fields` of the calls."""
    for got, (text, said) in zip(read(traces_read, [t for t, _ in cases]), cases, strict=True):
        with about(("on", shown(text))):
            names = [[call["name"] for call in which["calls"]] for which in (got, said)]
            assert_equal(*names, "The names of the calls, by start.")
            for number, (one, other) in enumerate(zip(got["calls"], said["calls"], strict=True)):
                for name in fields:
                    what = f"`calls[{number}].{name}`, of {other['name']}."
                    assert_equal(one[name], other[name], what)


def three(*calls):
    """Return a trace of (name, thread, start, end), and what it says of nesting alone."""
    return as_text([as_event(Drawn(*call)) for call in calls])


@gate
def test_calls(traces_read, drawn):
    """Finds the calls, in the order of their begin, each on its thread."""
    compare(traces_read, drawn[:3], ["thread"])


def test_times(traces_read, drawn, rng):
    """Begin and end are exact, in whole nanoseconds."""
    unlucky = draw_unlucky(python_random(rng), 30)
    compare(traces_read, [*drawn, unlucky], ["start", "end"])


@points(2)
def test_nesting(traces_read, drawn):
    """A call's parent is the innermost call that it lies within, on its own thread."""
    compare(traces_read, drawn, ["parent"])


def test_together(traces_read, rng):
    """Calls that touch are apart; of two that begin and end together the later in the file is inside."""
    at = 10**15 + draw_int(rng, 0, 10**6)
    cases = [
        ([("a", 1, at, at + 50), ("b", 1, at + 50, at + 90)], [None, None]),
        ([("a", 1, at, at + 50), ("b", 1, at, at + 50)], [None, 0]),
        ([("a", 1, at, at + 50), ("b", 1, at, at + 20), ("c", 1, at + 20, at + 50)], [None, 0, 0]),
        ([("a", 1, at, at + 50), ("b", 1, at, at + 50), ("c", 1, at, at + 50)], [None, 0, 1]),
        ([("a", 1, at, at + 50), ("b", 2, at + 10, at + 20)], [None, None]),
        ([("b", 1, at, at + 20), ("a", 1, at, at + 50)], [None, 0]),
    ]
    texts = [three(*calls) for calls, _ in cases]
    for got, text, (_, parents) in zip(read(traces_read, texts), texts, cases, strict=True):
        with about(("on", shown(text))):
            found = [call["parent"] for call in got["calls"]]
            assert_equal(found, parents, "The parents, in the order of `calls`.")


@points(2)
def test_own_times(traces_read, drawn):
    """A call's own time is its duration without those of the calls directly inside it."""
    compare(traces_read, drawn, ["own_time"])


def test_rows(traces_read, drawn):
    """A row for each name: calls, own time, and the time of its outermost calls."""
    # a name within itself, and another between the two: a random trace need not have that
    at = 10**15
    calls = [("a", 1, at, at + 90), ("b", 1, at + 10, at + 80), ("a", 1, at + 20, at + 50)]
    rows = {"a": {"calls": 2, "own": 50, "total": 90}, "b": {"calls": 1, "own": 40, "total": 70}}
    cases = [(three(*calls), {"rows": rows}), *drawn]
    for got, (text, said) in zip(read(traces_read, [t for t, _ in cases]), cases, strict=True):
        with about(("on", shown(text))):
            assert_equal(sorted(got["rows"]), sorted(said["rows"]), "The names in `rows`.")
            for part in ("calls", "own", "total"):
                for name, row in said["rows"].items():
                    assert_equal(got["rows"][name][part], row[part], f"`rows[{name!r}].{part}`.")


@points(2)
def test_memory(traces_read, drawn):
    """Memory is the running sum of the CPU's bytes; each change belongs to the innermost call."""
    for got, (text, said) in zip(read(traces_read, [t for t, _ in drawn]), drawn, strict=True):
        with about(("on", shown(text))):
            assert_equal(got["memory"], said["memory"], "`memory`.")
    compare(traces_read, drawn, ["own_bytes"])


def test_links(traces_read, drawn):
    """A backward call is linked to the forward call whose arrow ends in it."""
    for got, (text, said) in zip(read(traces_read, [t for t, _ in drawn]), drawn, strict=True):
        with about(("on", shown(text))):
            assert_equal(got["links"], said["links"], "`links`.")


def test_recorded(traces_read):
    """A trace of this PyTorch: own times and bytes are those of its `key_averages()`."""
    kept = json.loads(RECORDED.read_text())
    [got] = read(traces_read, [kept["trace"]])
    table = kept["table"]
    assert_equal(sorted(got["rows"]), sorted(table), "The names in `rows`.")
    for name, (own, size) in table.items():
        assert_equal(got["rows"][name]["own"], own, f"`rows[{name!r}].own`, in nanoseconds.")
        found = sum(call["own_bytes"] for call in got["calls"] if call["name"] == name)
        assert_equal(found, size, f"The sum of `own_bytes` of {name}.")
    what = "The last value of `memory` and the sum of all `own_bytes` are not the same."
    total = sum(call["own_bytes"] for call in got["calls"])
    assert_holds(got["memory"][-1][1] == total, what)
    assert_equal(len(got["links"]), kept["links"], "How many links there are.")
