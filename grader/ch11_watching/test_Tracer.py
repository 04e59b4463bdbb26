"""Checks of `Tracer`: random programs, and what a plain model of a tracer says of them."""

import threading
from contextlib import contextmanager
from decimal import Decimal

import pytest

from grader import (
    Mismatch,
    about,
    assert_equal,
    assert_holds,
    draw_int,
    free_choice,
    gate,
    points,
    python_random,
)
from grader.ch11_watching.probes.tracing import Clock, as_program, run, strict


@pytest.fixture
def base(rng):
    return 10**18 + draw_int(rng, 1, 10**17)


class Model:
    """What should be noted, as rows of plain data; times in nanoseconds from the base."""

    def __init__(self, clock):
        self.clock, self.base = clock, clock()
        self.rows, self.open, self.arrows, self.written = [], [], [], []

    def row(self, phase, name, args):
        thread = threading.current_thread().name
        thread = "main" if threading.current_thread() is threading.main_thread() else thread
        start = self.clock() - self.base
        return {"ph": phase, "name": name, "thread": thread, "ts": start, "args": plain(args)}

    @contextmanager
    def span(self, name, after=None, **args):
        row = self.row("X", name, args)
        if after is not None:
            ends = ((one["thread"], one["ts"]) for one in (after, row))
            self.arrows.append(tuple(ends))
        self.open.append(row)
        try:
            yield row
        except BaseException as error:
            row["args"]["error"] = type(error).__name__
            raise
        finally:
            self.open.remove(row)
            self.rows.append(row | {"dur": self.clock() - self.base - row["ts"]})

    def instant(self, name, **args):
        self.rows.append(self.row("i", name, args))

    def counter(self, name, **values):
        self.rows.append(self.row("C", name, values))

    def write(self):
        still = [
            row
            | {"dur": self.clock() - self.base - row["ts"], "args": row["args"] | {"open": True}}
            for row in self.open
        ]
        self.written.append((ordered(self.rows + still), sorted(self.arrows)))


def plain(args):
    kinds = (str, bool, int, type(None))
    return {
        key: one
        if isinstance(one, kinds) or (isinstance(one, float) and abs(one) < 1e300)
        else str(one)
        for key, one in args.items()
    }


def ordered(rows):
    return sorted(rows, key=lambda row: (row["ts"], -row.get("dur", 0), row["name"], row["ph"]))


def expected(program, base):
    clock = Clock(base)
    model = Model(clock)
    run(model, program, clock, model.write)
    model.write()
    return model.written


def nanoseconds(value, event, key):
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise Mismatch(f"`{key}` of an event is {value!r}.", (("event", str(event)),))
    try:
        exact = Decimal(value) * 1000
    except ArithmeticError:
        raise Mismatch(f"`{key}` of an event is {value!r}.", (("event", str(event)),)) from None
    return int(exact) if exact == int(exact) else float(exact)


def said(text, base, pid, main):
    """Return rows and arrows that a file has, with threads by name."""
    try:
        trace = strict(text)
    except ValueError as error:
        raise Mismatch(f"The file is no JSON: {error}.") from None
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        raise Mismatch("The file is to be an object with a list, `traceEvents`.")
    assert_equal(trace.get("baseTimeNanoseconds"), base, "`baseTimeNanoseconds`.")
    events = trace["traceEvents"]
    for event in events:
        wanted = {"ph", "name", "pid", "tid"} | ({"ts"} if event.get("ph") != "M" else set())
        missing = sorted(wanted - set(event))
        assert_holds(not missing, f"An event has no {missing}.", ("event", str(event)))
        assert_equal(event["pid"], pid, f"The `pid` of an event, {event['name']!r}.")
    names = {}
    for event in events:
        if event["ph"] == "M" and event["name"] == "thread_name":
            what = f"Two events `thread_name` have the tid {event['tid']}."
            assert_holds(event["tid"] not in names, what)
            names[event["tid"]] = event["args"]["name"]
    rows, ends = [], {}
    for event in events:
        if event["ph"] == "M":
            continue
        if event["tid"] not in names:
            raise Mismatch(f"No event `thread_name` names the tid {event['tid']!r}.")
        thread = names[event["tid"]]
        thread = "main" if thread == main else thread
        start = nanoseconds(event["ts"], event, "ts")
        if event["ph"] in ("s", "f"):
            key = (event.get("id"), event["name"], event.get("cat"))
            ends.setdefault(key, {}).setdefault(event["ph"], []).append((thread, start))
            if event["ph"] == "f":
                assert_equal(event.get("bp"), "e", "`bp` of an arrow's end.")
            continue
        row = {"ph": event["ph"], "name": event["name"], "thread": thread, "ts": start}
        row["args"] = {
            key: float(one) if isinstance(one, str) and is_number(one) else one
            for key, one in event.get("args", {}).items()
        }
        if event["ph"] == "X":
            row["dur"] = nanoseconds(event.get("dur"), event, "dur")
        if event["ph"] == "i":
            assert_equal(event.get("s"), "t", "`s` of an instant.")
        rows.append(row)
    return ordered(rows), arrows_of(ends)


def is_number(text):
    """Say whether a string stands for a number with a point: `strict` leaves these as text."""
    return text.lstrip("-")[:1].isdigit()


def arrows_of(ends):
    found = []
    for key, pair in ends.items():
        counts = {phase: len(pair.get(phase, [])) for phase in "sf"}
        what = f"How many events `s` and `f` have the id {key[0]!r}."
        assert_equal(counts, {"s": 1, "f": 1}, what)
        found.append((pair["s"][0], pair["f"][0]))
    return sorted(found)


def compare(traced, program, base, pid=0):
    got = traced.ask(program, base, pid).value
    for number, (text, (rows, arrows)) in enumerate(
        zip(got["texts"], expected(program, base), strict=True)
    ):
        which = f"file {number + 1} of {len(got['texts'])}"
        with about(("program", as_program(program)), ("read", which)):
            mine, my_arrows = said(text, base, pid, got["main"])
            shown = [f"{row['ph']} {row['name']}" for row in mine]
            assert_equal(shown, [f"{row['ph']} {row['name']}" for row in rows], "The events.")
            with free_choice():  # who gets a number that the system gives again is chance
                what = "Which events are of another thread than the main one, and of which."
                assert_equal(on_threads(mine), on_threads(rows), what)
            for one, other in zip(mine, rows, strict=True):
                for key in ("ts", "dur", "args"):
                    if key in other:
                        units = {"ts": ", in ns", "dur": ", in ns"}.get(key, "")
                        what = f"`{key}` of {other['ph']} {other['name']!r}{units}."
                        assert_equal(one[key], other[key], what)
            what = "The arrows: thread and begin, in ns, of the one span and of the other."
            assert_equal(my_arrows, arrows, what)


def on_threads(rows):
    return [f"{row['name']} on {row['thread']}" for row in rows if row["thread"] != "main"]


def span(name, *inside, wait=1500, last=700, **more):
    return {"do": "span", "name": name, "inside": list(inside), "wait": wait, "last": last} | more


def step(do, name="", wait=333, **more):
    return {"do": do, "name": name, "wait": wait} | more


def random_program(random, depth=0):
    """Return steps with spans in spans, names of their own, and arrows to earlier spans."""
    names = iter(range(10**6))

    def some(depth):
        found = []
        for _ in range(random.randrange(1, 4)):
            number, wait = next(names), random.randrange(1, 10**6)
            kind = random.choice(["span", "span", "span", "instant", "counter"])
            if kind != "span" or depth > 2:
                args = {"value": random.randrange(99)}
                found.append(
                    step(random.choice(["instant", "counter"]), f"e{number}", wait, args=args)
                )
                continue
            after = f"s{random.randrange(number)}" if number and random.random() < 0.5 else None
            inside = some(depth + 1)
            last = random.randrange(1, 10**6)
            found.append(span(f"s{number}", *inside, wait=wait, last=last, after=after))
        return found

    return some(depth)


@gate
def test_spans(traced, base):
    """Spans within spans, with begin and duration in microseconds."""
    compare(traced, [span("a"), span("b", span("c"), span("d"))], base)


def test_random(traced, base, rng):
    """Random programs: every event once, every nanosecond kept, ranks by `pid`."""
    random = python_random(rng)
    for pid in (0, 3):
        for _ in range(4):
            compare(traced, random_program(random), base, pid)


def test_instants_and_counters(traced, base):
    """Instants and counters, with their values."""
    values = {"loss": 0.25, "step": 3}
    program = [step("counter", "c", args=values), step("instant", "i", args={"why": "eval"})]
    compare(traced, [*program, span("s", *program, args={"batch": 7, "last": True})], base)


def test_errors(traced, base):
    """A span whose body raises ends there, and says which error; the error goes on."""
    for kind in ("KeyError", "KeyboardInterrupt"):
        inner = span("a", span("b", raises=kind), step("instant", "never"))
        compare(traced, [step("catch", inside=[inner]), span("c")], base)


@points(2)
def test_open(traced, base):
    """A file written inside of spans has these too, as open; a later one has them as ended."""
    program = [span("a", span("b", step("write", wait=900), args={"x": 1}), step("write"))]
    compare(traced, [span("before"), *program, span("after")], base)


def test_arguments(traced, base):
    """Arguments that JSON has no word for are text, as they were at the call."""
    odd = {"a": "nan", "b": "minus infinity", "c": "list", "d": "path", "e": "complex"}
    fine = {"f": None, "g": False, "h": "text", "i": 2**60}
    program = [span("s", args=odd | fine), step("instant", "i", args=odd)]
    compare(traced, [*program, step("counter", "c", args={"loss": "nan"})], base)
    compare(traced, [step("changed", "later")], base)


@points(2)
def test_threads(traced, base):
    """Each thread has its own `tid` and its name, also those that come when others have ended."""

    def worker(number, *more):
        return {
            "do": "thread",
            "name": f"w{number}",
            "wait": 50,
            "inside": [span(f"t{number}"), *more],
        }

    compare(traced, [span("a", worker(1), worker(2)), worker(3)], base)
    inner = worker(2, step("instant", "seen"))
    compare(traced, [worker(1, inner), span("main"), *(worker(n) for n in range(3, 9))], base)


def test_arrows(traced, base):
    """An arrow leads from the begin of one span to that of another, across threads, several at once."""
    load = {"do": "thread", "name": "loader", "wait": 10, "inside": [span("load"), span("more")]}
    uses = [span("one", after="load"), span("two", span("three", after="more"), after="load")]
    compare(traced, [load, *uses], base)
    compare(traced, [span("a", span("b", after="a"), span("c", after="b"))], base)
