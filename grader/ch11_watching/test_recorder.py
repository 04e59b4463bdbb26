"""Checks of `recorder`: what it has recorded, against a plain oracle, and that nobody noticed it."""

from itertools import pairwise

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_equal,
    assert_holds,
    claimed,
    compared,
    draw_int,
    gate,
    points,
)
from grader.ch11_watching.event_files import read_file
from grader.ch11_watching.flights import SAYS, expected, recorded, spans_in

ALL = [kind for kind in SAYS if kind not in ("raises", "breaks")]


@pytest.fixture
def seed(rng):
    return draw_int(rng, 0, 10**6)


def rows(kind, steps, every):
    return ("the training", SAYS[kind]), ("steps", f"{steps}, with every={every}")


def same(got, records, only=None):
    """Compare steps, tags and values; `only` these tags, as beginnings, if given."""

    def chosen(values):
        return {t: v for t, v in values.items() if only is None or t.startswith(only)}

    assert_equal([step for step, _ in got], [step for step, _ in records], "The recorded steps.")
    for (step, mine), (_, theirs) in zip(got, records, strict=True):
        mine, theirs = chosen(mine), chosen(theirs)
        assert_equal(sorted(mine), sorted(theirs), f"The tags of step {step}.")
        for tag, value in theirs.items():
            assert_holds(mine[tag] is not None, f"`{tag}` of step {step} has no `simple_value`.")
            got, due = torch.tensor([mine[tag], value], dtype=torch.float64)
            with about(of=f"`{tag}` of step {step}: "):
                why = "float32, and sums in another order"
                assert_close(got, due, rtol=1e-4, atol=0.0, because=why)


def flight(flown, kind, seed, steps=8, every=3, only=None):
    """Fly, compare what was recorded, and return all that was seen."""
    got = flown.ask(kind, seed, steps, every).value
    oracle = expected(kind, seed, steps)
    with about(*rows(kind, steps, every)):
        same(recorded(got["files"]), oracle.records, only)
    return got, oracle


@gate
def test_losses(flown, seed):
    """Records what was noted, a step an event."""
    flight(flown, "clipped", seed, only=("loss",))


def test_means(flown, seed):
    """What was noted more than once in a step is its mean, as it was when it was noted."""
    flight(flown, "accumulated", seed, only=("loss", "scale", "half"))


def test_norms(flown, seed):
    """The norm is that of the gradients that the step uses: unscaled, clipped, each once."""
    for kind in ("clipped", "accumulated", "tied", "scaled"):
        flight(flown, kind, seed, only=("loss", "grad_norm"))


def test_rates(flown, seed):
    """Learning rates are those that the step has used, of each group."""
    for kind in ("plain", "tied"):
        flight(flown, kind, seed, only=("loss", "lr/"))


@points(2)
def test_zeros(flown, seed):
    """Zeros are counted in training alone, once where a checkpoint computes again, in ReLUs at two places."""
    for kind in ("plain", "tied", "evaluated", "checkpointed", "accumulated"):
        flight(flown, kind, seed, only=("loss", "zeros/"))


def test_skipped(flown, seed):
    """A step that a GradScaler skips is none: neither an event nor a number."""
    flight(flown, "scaled", seed, steps=9, every=2)


@claimed
@points(3)
def test_same_run(flown, seed):
    """The run is the same, to the last bit, and so is a run after it."""
    for kind in ALL:
        got, _ = flight(flown, kind, seed, only=("loss",))
        with about(*rows(kind, 8, 3)):
            what = "What is not the same in a run with the recorder as in one without."
            assert_equal(got["disturbed"], [], what)


@claimed
def test_reads(flight_reads, seed):
    """One read where a step's number is a multiple of `every`, one at the end if steps wait."""
    for kind, steps, every in [("plain", 8, 3), ("accumulated", 9, 3), ("evaluated", 5, 10)]:
        got = flight_reads.ask(kind, seed, steps, every).value
        with about(*rows(kind, steps, every)):
            same(recorded(got["files"]), expected(kind, seed, steps).records, ("loss",))
            budget = -(-steps // every)
            more = len(got["with"]) - len(got["without"])
            names = list(got["with"])
            for name in got["without"]:
                if name in names:
                    names.remove(name)
            compared(more)
            if more > budget:
                raise Mismatch(
                    "The recorder reads too often.",
                    (
                        ("expected", f"{budget} reads at most, in {steps} steps"),
                        ("got", f"{more}: {', '.join(names[:9])}"),
                    ),
                )


@claimed
def test_nothing_kept(flight_kept, seed):
    """No graph is kept, and no more tensors the longer it goes on."""
    for kind in ("plain", "accumulated"):
        got = flight_kept.ask(kind, seed, 12, 3).value
        with about(*rows(kind, 12, 3)):
            same(recorded(got["files"]), expected(kind, seed, 12).records, ("loss",))
            what = "How many graphs of earlier losses were alive at once."
            assert_equal(got["graphs"], 0, what)
            assert_equal(
                got["tensors"][-1],
                got["tensors"][1],
                "Tensors in memory after the last step, and their elements, beside those after step 6.",
            )


def test_on_disk(flight_kept, seed):
    """After every `every`th step all steps are in the file, whatever comes next."""
    for steps, every in [(9, 3), (10, 10)]:
        got = flight_kept.ask("clipped", seed, steps, every).value
        records = expected("clipped", seed, steps).records
        with about(*rows("clipped", steps, every)):
            for turn, files in enumerate(got["on disk"], start=1):
                with about(("in the folder after step", str(every * turn))):
                    same(recorded(files), records[: every * turn], ("loss",))


def test_errors(flown, seed):
    """Where loop or model raise: the exception goes on, all steps before are there, no hook stays."""
    for kind in ("raises", "breaks"):
        got, oracle = flight(flown, kind, seed, steps=9, every=4)
        with about(*rows(kind, 9, 4)):
            assert_equal(got["came"], "KeyError", "What came out of the `with`.")
            assert_equal(got["left"], [], "What was left behind.")
            assert_equal(got["disturbed"], [], "What is not the same as without the recorder.")
            spans = spans_in(got["files"], "trace.0.json")
            calls = [span for span in spans if span["name"] == "forward"]
            what = "How many spans `forward` the trace has."
            assert_equal(len(calls), len(oracle.calls), what)
            open_ones = [span["name"] for span in spans if span["args"].get("open")]
            assert_equal(open_ones, [], "Spans that are still open in the trace.")


def test_nothing_left(flown, seed):
    """Afterwards no hook and no mode is left."""
    for kind in ("plain", "tied", "checkpointed"):
        got, _ = flight(flown, kind, seed, only=("loss",))
        with about(*rows(kind, 8, 3)):
            assert_equal(got["left"], [], "What was left behind.")


def test_trace(flown, seed):
    """The trace has a span for each call of the model, and for each step, with their args."""
    for kind in ("evaluated", "scaled", "checkpointed", "accumulated"):
        got, oracle = flight(flown, kind, seed, only=("loss",))
        with about(*rows(kind, 8, 3)):
            spans = spans_in(got["files"], "trace.0.json")
            calls = [s["args"].get("training") for s in spans if s["name"] == "forward"]
            assert_equal(calls, oracle.calls, "`training` of the spans `forward`.")
            steps = [s["args"].get("number") for s in spans if s["name"] == "step"]
            numbers = [step for step, _ in oracle.records]
            assert_equal(steps, numbers, "`number` of the spans `step`.")
            ends = [
                (s["ts"] + s["dur"], s["ts"]) for s in spans if s["name"] in ("forward", "step")
            ]
            fine = all(end <= later for (end, _), (_, later) in pairwise(ends))
            assert_holds(fine, "Spans of calls and of steps overlap.")


def test_goes_on(flown_again, seed):
    """With `step`, the numbers go on, later steps of an earlier run are void, and no file is changed."""
    for crashed, saved, steps in [(7, 4, 9), (6, 6, 8), (5, 1, 3)]:
        got = flown_again.ask(seed, crashed, saved, steps, 3).value
        told = f"to step {crashed}, then again from a checkpoint of step {saved}, to step {steps}"
        with about(("the training", told)):
            first = expected("plain", seed, crashed).records[:saved]
            later = expected("clipped", seed + 1, steps, first=saved).records
            same(recorded(got["files"]), first + later, ("loss",))
            marks = [
                event.start
                for name, content in got["before"].items()
                if name.startswith("events.")
                for event in read_file(content)
            ]
            assert_holds(not any(marks), "The first run's file says START.")
            for name, content in got["before"].items():
                assert_holds(got["files"].get(name) == content, f"The file `{name}` was changed.")
            spans = spans_in(got["files"], f"trace.{saved}.json")
            numbers = [span["args"].get("number") for span in spans if span["name"] == "step"]
            assert_equal(
                numbers, list(range(saved + 1, steps + 1)), "`number` of the spans `step`."
            )
