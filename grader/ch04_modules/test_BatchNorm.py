"""Checks of `BatchNorm`: both variances, momentum, modes, gradients, and what it keeps."""

import pytest
import torch
from torch import nn

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_equal,
    assert_holds,
    compared,
    gate,
    points,
)
from grader.ch04_modules.probes.norms import norm_run

SHAPES = ((2, 3), (3, 3, 4), (2, 3, 3, 2), (2, 3, 2, 1, 2))
NORMS = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}
FLOAT64 = {"rtol": 1e-9, "atol": 1e-9, "because": "order of float64 sums"}


@pytest.fixture
def batches(rng):
    """Lists of float64 batches, one list for each shape; each batch has a scale of its own."""
    return [draw_batches(rng, shape) for shape in SHAPES]


def draw_batches(rng, shape):
    """Return four float64 batches of that shape."""
    return [
        torch.randn(shape, generator=rng, dtype=torch.float64) * (n + 1) + 3 * n - 2
        for n in range(4)
    ]


def compare(normed, groups, plan, options=None, state=None, what=("outputs", "states")):
    """Compare with PyTorch's own norm, for each group the first batches, as many as `plan` has."""
    cases = [[options or {}, batches[: len(plan)], plan, state] for batches in groups]
    for case, got in zip(cases, normed.ask(cases, list(what)).value, strict=True):
        expected = norm_run(NORMS[case[1][0].dim()], *case)
        batches = f"of shape {tuple(case[1][0].shape)}, the modes: {', '.join(plan)}"
        with about(("made by", _call(3, **case[0])), ("batches", batches)):
            for kind in what:
                assert_equal(len(got[kind]), len(expected[kind]), f"The number of {kind} differs.")
                for one, other in zip(got[kind], expected[kind], strict=True):
                    _compare_one(one, other)


def _call(*by_position, **by_name):
    named = [f"{name}={value!r}" for name, value in by_name.items()]
    return f"BatchNorm({', '.join([*map(repr, by_position), *named])})"


def _compare_one(got, expected):
    if isinstance(expected, dict):
        assert_equal(sorted(got), sorted(expected), "The state has other names.")
        for name in expected:
            _close(got[name], expected[name])
    else:
        _close(got, expected)


def _close(got, expected):
    if expected.dtype is torch.int64:
        if not torch.equal(got, expected):
            rows = (("expected", str(expected.item())), ("got", str(got)))
            raise Mismatch("`num_batches_tracked` differs.", rows)
    else:
        assert_close(got, expected, **FLOAT64)


@gate
def test_is_a_module(norm_made):
    """An `nn.Module` that holds no other norm."""
    got = norm_made.ask([], {}).value
    assert_holds(got["is a module"], "It is no `nn.Module`.")
    assert_equal(got["modules"], [], "It holds these modules; none was expected.")


def test_state(norm_made):
    """The same names, shapes, dtypes and first values as PyTorch's own, None where there is none."""
    for by_position, by_name in (
        ([], {}),
        ([], {"affine": False}),
        ([], {"track_running_stats": False}),
        ([], {"affine": False, "track_running_stats": False}),
        ([], {"momentum": None, "eps": 0.1}),
        ([0.1, 0.2, False], {}),
        ([0.1, 0.2, True, False], {}),
    ):
        got = norm_made.ask(by_position, by_name).value
        norm = nn.BatchNorm2d(3, *by_position, **by_name)
        with about(("made by", _call(3, *by_position, **by_name))):
            for kind in ("parameters", "buffers"):
                expected = dict(sorted(getattr(norm, f"_{kind}").items()))
                said = f"The registered {kind}, those that are None too, have other names."
                assert_equal(list(got[kind]), list(expected), said)
                assert_equal(list(got[kind].values()), list(expected.values()), f"{kind} differ.")
            state = sorted(norm.state_dict())
            assert_equal(sorted(got["state"]), state, "The state's names differ.")


def test_training(normed, batches):
    """In training: the batch's mean and biased variance, for any number of dimensions."""
    compare(normed, batches, ["train"], what=("outputs",))
    compare(normed, batches, ["train"] * 2, {"affine": False, "eps": 0.5}, what=("outputs",))


@points(4.5)
def test_running(normed, norm_graphs, batches):
    """Running mean and unbiased variance move, without a graph; batches are counted."""
    compare(normed, batches, ["train"] * 3, what=("states",))
    compare(normed, batches, ["train"] * 3, {"momentum": 0.6}, what=("states",))
    for momentum in (1.0, 0.0):
        compare(normed, batches, ["train"] * 2, {"momentum": momentum}, what=("states",))
    graphs = norm_graphs.ask(batches[0][0].float()).value
    assert_equal(graphs, [], "These buffers hang on the graph of the batches so far.")


def test_average(normed, batches):
    """With `momentum=None` they are the average of all batches so far."""
    compare(normed, batches, ["train"] * 3, {"momentum": None}, what=("states",))
    compare(normed, batches, ["train", "eval", "train", "eval"], {"momentum": None})


def test_evaluation(normed, batches):
    """In evaluation the running statistics are used, and nothing changes."""
    compare(normed, batches, ["train", "train", "eval", "eval"])
    compare(normed, batches, ["eval", "train"])


def test_without_tracking(normed, batches):
    """With `track_running_stats=False` evaluation uses the batch, too."""
    options = {"track_running_stats": False}
    compare(normed, batches, ["train", "eval", "eval", "train"], options)


def test_checkpoint(normed, batches, rng):
    """A checkpoint of PyTorch's norm is loaded and used: gains, shifts, statistics, count."""
    vectors = [torch.randn(3, generator=rng, dtype=torch.float64) for _ in range(3)]
    names = ("weight", "bias", "running_mean")
    state = dict(zip(names, vectors, strict=True))
    state["running_var"] = torch.rand(3, generator=rng, dtype=torch.float64) + 0.1
    state["num_batches_tracked"] = torch.tensor(5)
    compare(normed, batches, ["eval", "train", "train", "eval"], {"momentum": None}, state)
    compare(normed, batches, ["train", "eval", "eval", "train"], {"eps": 0.1}, state)


def test_batch_of_one(normed, rng):
    """A batch of one with many numbers per channel is a batch like any other."""
    for shape in ((1, 3, 4), (1, 3, 2, 3)):
        compare(normed, [draw_batches(rng, shape)], ["train", "train", "eval"])


def test_gradients(normed, batches):
    """Gradients flow through mean and variance."""
    compare(normed, batches, ["train"], what=("grads",))
    compare(normed, batches, ["eval"] * 2, {"affine": False}, what=("grads",))


SINGLE = (
    ("BatchNorm(2)", "training"),
    ("BatchNorm(2)", "evaluation"),
    ("BatchNorm(2, track_running_stats=False)", "training"),
    ("BatchNorm(2, track_running_stats=False)", "evaluation"),
)
"""What `norm_refuses` asks, in its order."""


def test_single_numbers(norm_refuses):
    """A single number per channel: in training a ValueError that changes nothing, in evaluation none."""
    x = torch.tensor([[3.0, -1.0]])
    found, wrong = [], []
    for shape in ((1, 2), (1, 2, 1), (1, 2, 1, 1)):
        got = norm_refuses.ask(x.reshape(shape)).value
        expected = ("ValueError", x / (1 + 1e-5) ** 0.5, "ValueError", x * 0)
        for (norm, mode), one, other in zip(SINGLE, got["found"], expected, strict=True):
            found.append(one if isinstance(one, str) else one.numel())
            if not _alike(one, other, shape):
                rows = ("call", f"{norm}(x) in {mode}"), ("x", f"shape {shape}: {x.tolist()[0]}")
                shown = tuple(v if isinstance(v, str) else str(v.tolist()) for v in (other, one))
                wrong.append((*rows, ("expected", shown[0]), ("got", shown[1])))
        kept = ((name, got["state"].get(name)) for name in ("num_batches_tracked", "running_mean"))
        state = {name: None if value is None else value.tolist() for name, value in kept}
        found.append(state)
        if state != {"num_batches_tracked": 0, "running_mean": [0.0, 0.0]}:
            rows = ("call", "BatchNorm(2)(x) in training"), ("x", f"shape {shape}")
            wrong.append((*rows, ("expected", "a state as it was"), ("got", str(state))))
    compared(found)
    if wrong:
        raise Mismatch("A single number per channel: this is not what was asked.", wrong[0])


def _alike(got, expected, shape):
    if isinstance(got, str) or isinstance(expected, str):
        return isinstance(got, str) and isinstance(expected, str) and got == expected
    if got.shape != shape or got.dtype != expected.dtype:
        return False
    return torch.allclose(got, expected.reshape(shape), rtol=1e-5, atol=1e-6)
