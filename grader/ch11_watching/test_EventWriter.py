"""Checks of `EventWriter`: its files, read strictly, by our own reader."""

import math
import re
import struct

import pytest

from grader import (
    Mismatch,
    about,
    assert_equal,
    assert_holds,
    compared,
    draw_int,
    gate,
    points,
    python_random,
)
from grader.ch11_watching.event_files import Malformed, read_file

NAME = r"events\.out\.tfevents\.(\d{10})\..+"


@pytest.fixture
def seconds(rng):
    return draw_int(rng, 1_700_000_000, 1_800_000_000)


def events_in(data, of):
    """Return a file's events, version and all."""
    with about(of=of):
        try:
            return read_file(data)
        except Malformed as error:
            raise Mismatch(str(error)) from None


def shown(adds, start=None):
    lines = [f"writer = EventWriter(folder, clock{'' if start is None else f', start={start}'})"]
    return "\n".join([*lines, *(f"writer.add({step}, {dict(values)})" for step, values in adds)])


def written(events_written, seconds, adds, start=None):
    """Return the events of the one file that these calls leave."""
    got = events_written.ask(seconds, start, [(step, dict(values)) for step, values in adds]).value
    with about(("program", shown(adds, start) + "\nwriter.close()")):
        assert_equal(len(got["files"]), 1, "How many files there are.")
        [(name, data)] = got["files"].items()
        if got["path"] != name:  # what a name ends in is everybody's own: no evidence
            rows = ("expected", name), ("got", got["path"])
            raise Mismatch("The writer's `path`, within the folder.", rows)
        return events_in(data, ""), name


def float32(value):
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def compare(events_written, seconds, adds):
    events, _ = written(events_written, seconds, adds)
    with about(("program", shown(adds))):
        scalars = events[1:]
        assert_equal(len(scalars), len(adds), "How many events there are behind the first.")
        for event, (step, values) in zip(scalars, adds, strict=True):
            expected = [(tag, str(float32(value))) for tag, value in values.items()]
            got = [(tag, str(value)) for tag, value in event.values]
            with about(("of", f"writer.add({step}, {values})")):
                assert_equal(event.step or 0, step, "The event's step.")
                assert_equal([tag for tag, _ in got], [tag for tag, _ in expected], "The tags.")
                assert_equal(got, expected, "Tags and values.")


@gate
def test_one_scalar(events_written, seconds):
    """One scalar is in one file, in a record with right checksums."""
    events, _ = written(events_written, seconds, [(3, {"loss": 1.5})])
    compare(events_written, seconds, [(3, {"loss": 1.5})])
    assert_equal(events[0].version, "brain.Event:2", "The version in the first record.")


def test_first_record(events_written, seconds):
    """The version stands in the first record alone; times are seconds of the clock."""
    adds = [(1, {"a": 1.0}), (2, {"a": 2.0})]
    events, name = written(events_written, seconds, adds)
    with about(("program", shown(adds))):
        versions = [event.version for event in events]
        assert_equal(versions, ["brain.Event:2", None, None], "The version in each record.")
        found = re.fullmatch(NAME, name)
        assert_holds(bool(found), "The file's name.", ("expected", NAME), ("got", name))
        assert_equal(int(found[1]), seconds, "The seconds in the file's name.")
        times = [event.wall_time for event in events]
        if not all(isinstance(time, float) for time in times):
            raise Mismatch("A record has no `wall_time`.")
        # the clock begins at `seconds`, and each look at it takes a quarter of a second
        near = all(seconds < time < seconds + 5 for time in times)
        later = times == sorted(set(times))
        compared((near, later))  # how often a writer looks at the clock is its own
        what = "Each event has the time of its own, in seconds, by the clock."
        rows = ("the clock starts at", str(seconds)), ("wall times", str(times))
        assert_holds(near and later, what, *rows)


@points(2)
def test_values(events_written, seconds, rng):
    """All values of an `add` are in one event: any tag, any number, as a float."""
    random = python_random(rng)
    drawn = {f"layer{at}/norm": random.uniform(-9, 9) for at in range(5)}
    compare(events_written, seconds, [(1, drawn), (2, {"a": 16777217, "b": 0.1})])
    odd = {"nan": math.nan, "inf": math.inf, "minus": -math.inf, "large": 1e40, "low": -1e300}
    compare(events_written, seconds, [(1, odd), (2, {"tiny": 1e-45, "zero": -0.0})])
    tags = {"größe": 1.0, "损失/训练": 2.0, "x" * 127: 3.0, "y" * 200: 4.0, "é" * 100: 5.0}
    compare(events_written, seconds, [(7, tags), *((7, {tag: 1.0}) for tag in tags)])


@points(2)
def test_steps(events_written, seconds, rng):
    """Steps of any size, negative ones too."""
    small = [0, 1, 127, 128, 300, draw_int(rng, 2**14, 2**20)]
    large = [2**31, 2**40 + draw_int(rng, 0, 99), 2**62, -1, -300, -(2**40)]
    for step in small + large:
        compare(events_written, seconds, [(step, {"loss": 1.0})])


def test_many(events_written, seconds, rng):
    """Many events keep their order."""
    random = python_random(rng)
    adds = [(step, {"loss": random.random(), "lr": 0.1}) for step in range(40)]
    compare(events_written, seconds, adds)


def test_flush(events_flushed, seconds):
    """After `flush` everything that was added is in the file, in whole records."""
    adds = [(step, {"loss": step / 2, "a longer tag": -step}) for step in range(4)]
    for count, data in enumerate(events_flushed.ask(seconds, adds).value, start=1):
        with about(("program", shown(adds[:count]) + "\nwriter.flush()")):
            events = events_in(data, "")
            steps = [event.step or 0 for event in events if event.values]
            assert_equal(steps, list(range(count)), "The steps in the file.")


@points(2)
def test_new_file_each_time(events_of_runs, seconds):
    """Every writer has a file of its own, whose name is the last; no other file is changed."""
    others = [
        (f"events.out.tfevents.{seconds + 3}.host.17.0", b"another's"),
        (f"events.out.tfevents.{seconds + 3}.zzz", b"a third's"),
        ("notes.txt", b"mine"),
    ]
    cases = [
        ([], [(seconds, False), (seconds + 60, False)]),
        ([], [(seconds, True), (seconds, True)]),
        ([], [(seconds, False)] * 12),
        ([], [(seconds + 100, False), (seconds, False)]),
        (others, [(seconds + 2, False), (seconds + 2, True)]),
    ]
    for there, runs in cases:
        got = events_of_runs.ask(there, runs).value
        rows = [("clocks at the start, in seconds", ", ".join(str(when) for when, _ in runs))]
        if there:
            rows.append(("files that were there", ", ".join(name for name, _ in there)))
        with about(*rows):
            names = [name for name in got["files"] if name.startswith("events.")]
            before = [name for name, _ in there if name.startswith("events.")]
            what = "How many event files there are."
            assert_equal(len(names), len(runs) + len(before), what)
            for name, content in there:
                what = f"What is in {name}, which was there."
                assert_equal(got["files"].get(name), content, what)
            places = [names.index(path) if path in names else None for path in got["paths"]]
            with about(("event files, sorted", ", ".join(names))):
                what = "At which places the writers' files are, the first writer's first."
                assert_equal(places, list(range(len(before), len(names))), what)
            for number, name in enumerate(got["paths"]):
                assert_holds(bool(re.fullmatch(NAME, name)), "A file's name.", ("got", name))
                events = events_in(got["files"][name], f"The file of writer {number}: ")
                what = f"What is in the file of writer {number}."
                values = [value for event in events for value in event.values]
                assert_equal(values, [("run", float(number))], what)


def test_start(events_written, seconds):
    """With `start`, the second record says START, and at which step."""
    for start in (5, 0, 1000):
        adds = [(start, {"loss": 1.0})]
        events, _ = written(events_written, seconds, adds, start)
        with about(("program", shown(adds, start))):
            marks = [event.start for event in events]
            assert_equal(marks, [False, True, False], "Which records say START.")
            assert_equal(events[1].step or 0, start, "The step of START.")
    events, _ = written(events_written, seconds, [(5, {"loss": 1.0})])
    with about(("program", shown([(5, {"loss": 1.0})]))):
        assert_equal([e.start for e in events], [False, False], "Which records say START.")
