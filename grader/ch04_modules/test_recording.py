"""Checks of `recording`: what is seen, what it is made of, and what is left on the model."""

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_equal,
    assert_holds,
    assert_same_bits,
    compared,
    facts,
    gate,
    points,
)
from grader.ch04_modules.probes.records import recorded_by_hand

BECAUSE = "order of float sums"


@pytest.fixture
def x(rng):
    """float32 (4, 3)."""
    return torch.randn(4, 3, generator=rng)


def compare(recorded, x, paths, calls, expected):
    """Compare the record of `calls` calls, paths with lists of tensors, with what was expected."""
    got = recorded.ask(x, paths, calls).value
    body = "; ".join(["model(x)"] * calls) or "pass"
    program = f"with recording(model, {paths}) as seen:\n    {body}"
    with about(("model", MODEL), ("program", program)):
        assert_equal([path for path, _ in got], list(expected), "The paths, `list(seen)`.")
        for path, outputs in got:
            what = f"The number of outputs, `len(seen[{path!r}])`."
            assert_equal(len(outputs), len(expected[path]), what)
            for number, (output, other) in enumerate(zip(outputs, expected[path], strict=True)):
                with about(("value", f"seen[{path!r}][{number}]")):
                    assert_close(output, other, rtol=1e-5, atol=1e-6, because=BECAUSE)


MODEL = (
    "block(act(again(act(stem(x))))): act is ReLU(inplace=True), again is stem, unused is not used"
)
"""What the model that is watched computes."""


@gate
def test_a_layer(recorded, x):
    """Gives a dict with a list for the path, in which the output of a layer is."""
    compare(recorded, x, ["block"], 1, {"block": recorded_by_hand(x, 1)["block"]})


def test_outputs(recorded, x):
    """Each call of each module, in order, under each path that was asked for."""
    for calls in (0, 1, 3):
        expected = recorded_by_hand(x, calls)
        for paths in (["block.0", "block"], ["unused", "block"], []):
            compare(recorded, x, paths, calls, {path: expected[path] for path in paths})
    # used twice in one call; each call gets the same x, so the first two calls' outputs are known
    twice = {"act": expected["act"][:4], "block.1": expected["block"][:2]}
    compare(recorded, x, ["act", "block.1"], 2, twice)


@points(0.5)
def test_given_twice(recorded, x):
    """A path that is given twice counts once."""
    expected = recorded_by_hand(x, 1)
    wanted = {path: expected[path] for path in ("block", "unused")}
    compare(recorded, x, ["block", "unused", "block", "unused"], 1, wanted)


def test_as_it_was(recorded, x):
    """The values are those that the module gave, whatever happens to the tensor later."""
    expected = recorded_by_hand(x, 2)
    paths = ["stem", "block", "again", "act"]
    wanted = {path: expected["stem" if path == "again" else path] for path in paths}
    compare(recorded, x, paths, 2, wanted)


def test_untouched(recorded_gradients, recorded_by_the_way, x):
    """The model computes the same, gradients too; what is recorded is no part of its graph."""
    got = recorded_gradients.ask(x).value
    assert_holds(got["grad enabled"], "Gradients are switched off in the `with` statement.")
    count, expected = len(got["watched"]), len(got["alone"])
    assert_equal(count, expected, "The output and the gradients: their number, watched and alone.")
    for watched, alone in zip(got["watched"], got["alone"], strict=True):
        assert_same_bits(watched, alone)
    way = recorded_by_the_way.ask(x).value
    assert_same_bits(way["watched"], way["alone"])
    for path, outputs in got["seen"].items():
        apart = [(facts(t).is_leaf, facts(t).requires_grad) for t in outputs]
        assert_equal(apart, [(True, False)] * len(outputs), f"{path!r} holds a graph.")


def test_structures(recorded_structure, recorded_by_the_way, x):
    """Tuples, lists and dicts, one in another, keep their structure; their tensors are copies."""
    got = recorded_structure.ask(x).value
    half = x * 0.5
    parts = {"half": half, "pair": [x + 1, None], 7: "text", "deep": ({"x": half.double()},)}
    assert_equal((type(got).__name__, len(got)), ("list", 1), "A list of one output was expected.")
    assert_equal(_kinds(got[0]), _kinds((half, parts, 3)), "The structure differs.")
    for output, expected in zip(_tensors(got[0]), _tensors((half, parts, 3)), strict=True):
        assert_same_bits(output, expected)
    kept = recorded_by_the_way.ask(x).value["kept"]
    assert_holds(kept, "What is no tensor was to be kept as it is, the very object.")


def _kinds(value):
    if isinstance(value, dict):
        return {key: _kinds(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(_kinds, value)]
    return "tensor" if isinstance(value, torch.Tensor) else value


def _tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    return (
        [t for item in items for t in _tensors(item)]
        if isinstance(value, dict | list | tuple)
        else []
    )


@points(3.25)
def test_ends(recorded_ends, recorded_by_the_way, x):
    """None of its hooks is left, after errors and wrong paths neither; those of others are."""
    outputs = recorded_by_the_way.ask(x).value["outputs"]
    assert_equal(outputs, [2, 1], "A layer that raised in its second call has given one output.")
    got = recorded_ends.ask(x).value
    compared(got)
    for key, expected, what in ENDS:
        found = got.get(key, "nothing")
        if found != expected:
            rows = ("expected", str(expected)), ("got", str(found))
            if what.endswith(HOOKS):  # `recorded_ends` leaves out one of the others' two
                shown = f"{found + 1} hooks" if type(found) is int else f"an error: {found}"
                rows = ("expected", "2 hooks, both of others"), ("got", shown)
            raise Mismatch(what, rows)


HOOKS = "The hooks on the model:"
ENDS = (
    ("well", 1, f"After the `with` statement. {HOOKS}"),
    (
        "others",
        ["before", "during"] * 2,
        "The hooks of others that run when it is called afterwards.",
    ),
    ("counts", [2, 1], "The outputs of `stem` and `block` until the `with` statement ended."),
    ("reaches the caller", True, "An error in the `with` statement did not reach the caller."),
    ("error", 1, f"After an error in the `with` statement. {HOOKS}"),
    ("after an error", [2, 1], "The outputs of `act` and `block` until the error."),
    *(
        (f"wrong {n}", 1, f"recording(model, {paths}), where a path leads nowhere. {HOOKS}")
        for n, paths in enumerate((["nowhere"], ["stem", "block.7"], ["act", "block.x.y", "stem"]))
    ),
)
"""What `recorded_ends` must find, and what that is. Of a wrong path, "entered" or another error's name."""


def test_nested(recorded_nested, x):
    """One recording in another: each sees its own calls."""
    expected = [{"stem": 6, "act": 6}, {"act": 2, "block": 1}]
    said = "The number of outputs in the outer record and in the inner one."
    assert_equal(recorded_nested.ask(x).value, expected, said)


def test_lets_go(recorded_alive, x):
    """Nothing keeps the model alive; the model itself has the path `""`."""
    got = recorded_alive.ask(x).value
    assert_equal(got["root"], 1, 'The number of outputs of the model itself, `len(seen[""])`.')
    assert_holds(
        not got["alive"], "The model is still there after `del model`: the record holds it."
    )
