"""Checks of `throughput`: logs of simulated runs, whose truth is computed from intervals."""

import pytest
import torch

from grader import Mismatch, about, assert_close, assert_equal, compared, draw_int, gate, points
from grader.ch11_watching.logs import Run, simulated

ROUNDING = "times are exact in binary; one division rounds"
NAMES = ("Samples per second: ", "The share of the time in which the device starved: ")


def as_text(events, warmup):
    """Return a log as a student reads it."""
    shown = ", ".join(
        f"{kind} {at:g}{f' ({rest[0]})' if rest else ''}" for kind, at, *rest in events
    )
    return f"warmup={warmup}: {shown}"


def compare(rates, cases, parts=(0, 1)):
    """Compare parts of the answers for (run, warmup, until)."""
    logs = [(run.log(until), warmup) for run, warmup, until in cases]
    for (run, warmup, until), (events, _), got in zip(
        cases, logs, rates.ask(logs).value, strict=True
    ):
        expected = run.truth(warmup, until)
        with about(("log", as_text(events, warmup))):
            if got == "ValueError":
                compared(got, expected)
                raise Mismatch("A log with a finished step raised ValueError.")
            for part in parts:
                one, other = (torch.tensor(x[part], dtype=torch.float64) for x in (got, expected))
                with about(of=NAMES[part]):
                    assert_close(one, other, rtol=1e-12, atol=1e-12, because=ROUNDING)


@pytest.fixture
def events(rng):
    return simulated(rng, 3).log()


@gate
def test_a_pair_of_floats(rates, events):
    """Returns a tuple of two floats; the first is larger than 0."""
    (got,) = rates.ask([(events, 1)]).value
    if not isinstance(got, tuple) or [type(x) for x in got] != [float, float] or not got[0] > 0:
        raise Mismatch("Expected a tuple of two floats.", (("got", repr(got)),))


def test_unequal_batches(rates, rng):
    """Samples by seconds, of batches and steps of different sizes."""
    runs = [
        simulated(rng, steps, equal=equal) for steps, equal in ((2, True), (2, False), (7, False))
    ]
    compare(rates, [(run, 1, None) for run in runs], parts=[0])


def test_warmup(rates, default_warmup, rng):
    """The clock starts when the last step of the warm-up is finished; by default there is one."""
    runs = [(simulated(rng, 6), warmup, None) for warmup in (0, 1, 3, 5)]
    compare(rates, runs)
    run = simulated(rng, 4)
    got = torch.tensor(default_warmup.ask(run.log()).value, dtype=torch.float64)
    expected = torch.tensor(run.truth(1), dtype=torch.float64)
    with about(("log", f"without the argument; {as_text(run.log(), 1)}")):
        assert_close(got, expected, rtol=1e-12, atol=1e-12, because=ROUNDING)


@points(2)
def test_pauses(rates, rng):
    """Evaluations do not count, be they in the warm-up, after it, or at the end."""
    cases = [(simulated(rng, 6, pauses=2), warmup, None) for warmup in (0, 1, 2, 3)]
    cases += [(simulated(rng, 4, pauses=1, synchronous=False), 2, None)]
    compare(rates, cases)


@points(2)
def test_the_device_runs_behind(rates, rng):
    """A step ends when the device has finished it, long after its work was handed over."""
    cases = [(simulated(rng, 8, synchronous=False), warmup, None) for warmup in (0, 1, 2)]
    compare(rates, cases, parts=[0])


@points(2)
def test_starving(rates, rng):
    """Waiting for a batch costs only while the device has nothing to do."""
    slow = {"wait": (60, 160), "work": (20, 90)}
    cases = [(simulated(rng, 6), 1, None), (simulated(rng, 8, synchronous=False, **slow), 2, None)]
    cases += [(simulated(rng, 7, synchronous=False, wait=(1, 9), work=(90, 150)), 0, None)]
    cases += [(simulated(rng, 7, synchronous=False, wait=(5, 150), work=(5, 150)), 1, None)]
    compare(rates, cases, parts=[1])


@points(2)
def test_ends_anywhere(rates, rng):
    """What happens after the last step that finishes does not count."""
    cases = []
    for synchronous in (True, False):
        run = simulated(rng, 8, synchronous=synchronous, pauses=3, wait=(5, 120))
        ends = sorted(run.finishes)
        for k in (2, 3, 5):
            cases.append((run, 1, draw_int(rng, ends[k], ends[k + 1] - 1)))
            cases.append((run, 1, ends[k + 1] - 1))  # the next step is under way
    run = simulated(rng, 3)
    run.pause(200)
    cases.append((run, 1, run.now))
    cases.append((run, 0, run.now - 100))
    compare(rates, cases)


def test_too_short(rates, rng):
    """A log in which no step is finished after the warm-up raises ValueError."""
    run = simulated(rng, 3)
    begun = Run()
    begun.step(4, 5, 2, 30, synchronous=True)
    logs = [(run.log(), 3), (run.log(), 9), (begun.log(20), 0), ([], 0), ([], 1)]
    for log, got in zip(logs, rates.ask(logs).value, strict=True):
        with about(("log", as_text(*log))):
            if got != "ValueError":
                assert_equal(got, "ValueError", "What is raised.")
