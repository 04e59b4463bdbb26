"""Checks of `predict_disturbance`: looks at random, each run by torch itself on the grader's side."""

from grader import Mismatch, about, assert_equal, compared, gate, points
from grader.ch11_watching.looks import MAKES, as_text, random_look, truth

AT_HAND = ("loss", "hidden", "weight", "grad", "batch")
PARTS = ("changes", "reads", "bytes", "graph")
WORDS = {
    "changes": "Whether the run is another.",
    "reads": "How many steps read values.",
    "bytes": "How many bytes more each iteration keeps alive.",
    "graph": "Whether a kept tensor has a `grad_fn`.",
}
MODEL = ["eval", "train", "forward", "randperm", "sample"]


def compare(predicted, rng, parts, kinds, withs=(), *, fixed, count=14, longest=10):
    """Compare some parts of the answer, for fixed looks and for random ones of growing length."""
    cases = [(look, truth(look)) for look in fixed]
    cases += [random_look(rng, 2 + i * longest // count, kinds, withs) for i in range(count)]
    found = predicted.ask([look for look, _ in cases]).value
    for (look, expected), got in zip(cases, found, strict=True):
        mine = {part: got[PARTS.index(part)] for part in parts}
        true = {part: expected[PARTS.index(part)] for part in parts}
        compared(mine, true)
        for part in parts:
            with about(("look", as_text(look))):
                assert_equal(mine[part], true[part], WORDS[part])


@gate
def test_a_tuple_of_four(predicted):
    """Returns a tuple: a bool, two whole numbers, a bool."""
    (got,) = predicted.ask([[("item", "v", "loss"), ("append", "v")]]).value
    kinds = [type(part) for part in got] if isinstance(got, tuple) else None
    if kinds != [bool, int, int, bool]:
        raise Mismatch("Expected a tuple (bool, int, int, bool).", (("got", repr(got)),))


def test_reads(predicted, rng):
    """What reads values: `item`, `tolist`, `print` and `if`, and not `shape`."""
    fixed = [[("print", "grad"), ("shape", "grad"), ("if", "loss"), ("tolist", "v", "batch")]]
    kinds = ["item", "tolist", "print", "if", "shape", "mean", "append", "row"]
    compare(predicted, rng, ["reads"], kinds, fixed=fixed)


def test_graph(predicted, rng):
    """Which kept tensors have a graph, with `no_grad` too."""
    view = [("enter", "no_grad"), ("row", "a", "weight"), ("mean", "b", "a"), ("append", "b")]
    view += [("exit",)]
    fixed = [
        [("append", "weight")],
        [("clone", "a", "hidden"), ("append", "a")],
        [("clone", "a", "loss"), ("append", "a")],
        [("row", "a", "weight"), ("append", "a")],
        [("row", "a", "batch"), ("append", "a")],
        view,
        [*view, ("mean", "c", "a"), ("append", "c")],
        [("enter", "no_grad"), ("clone", "a", "loss"), ("append", "a"), ("exit",)],
        [("mean", "a", "batch"), ("append", "a"), ("append", "grad")],
        [("mean", "a", "batch"), ("clone", "b", "a"), ("append", "b")],
        [
            ("enter", "no_grad"),
            ("mean", "a", "loss"),
            ("exit",),
            ("clone", "b", "a"),
            ("append", "b"),
        ],
    ]
    compare(predicted, rng, ["graph"], [*MAKES, "append", "append"], ["no_grad"], fixed=fixed)


def test_bytes(predicted, rng):
    """Which storages stay alive, each counted once."""
    fixed = [
        [("row", "a", "hidden"), ("append", "a")],
        [("detach", "a", "grad"), ("append", "grad"), ("append", "a")],
        [("row", "a", "hidden"), ("append", "a"), ("detach", "b", "hidden"), ("append", "b")],
        [("row", "a", "batch"), ("clone", "b", "a"), ("append", "b"), ("append", "batch")],
        [("data", "a", "weight"), ("append", "a"), ("append", "grad"), ("append", "loss")],
        *([("clone", "a", name), ("append", "a")] for name in AT_HAND),
        *([("row", "a", x), ("clone", "b", "a"), ("append", "b")] for x in AT_HAND[1:]),
        [("tolist", "v", "hidden"), ("append", "v"), ("mean", "a", "hidden"), ("append", "a")],
    ]
    compare(predicted, rng, ["bytes"], [*MAKES, "tolist", *["append"] * 3], fixed=fixed)


def test_writes(predicted, rng):
    """Whose memory a write reaches, and whether the run uses it again."""
    fixed = [
        [("mul_", "grad")],
        [("detach", "a", "weight"), ("row", "b", "a"), ("mul_", "b")],
        [("row", "a", "batch"), ("mul_", "a")],
        [("mul_", "loss"), ("data", "a", "hidden"), ("mul_", "a")],
        [("data", "a", "weight"), ("clone", "b", "a"), ("mul_", "b")],
    ]
    compare(predicted, rng, ["changes"], [*MAKES, "mul_"], ["no_grad"], fixed=fixed)


def test_the_model_and_chance(predicted, rng):
    """Random numbers, `eval()` and forward passes on the side, within `no_grad` and `fork_rng`."""
    fork, no_grad = ("enter", "fork_rng"), ("enter", "no_grad")
    fixed = [  # the plain ones first: they tell known mistakes apart
        [("sample",)],
        [("forward",)],
        [fork, ("randperm",), ("exit",)],
        [fork, ("sample",), ("exit",)],
        [no_grad, ("forward",), ("exit",)],
        [fork, ("forward",), ("exit",)],
        [fork, no_grad, ("forward",), ("exit",), ("exit",)],
        [("eval",), ("forward",), ("train",)],
        [no_grad, ("eval",), ("forward",), ("exit",)],
        [no_grad, fork, ("exit",), ("randperm",), ("exit",)],
        [fork, no_grad, ("randperm",), ("exit",), ("exit",)],
    ]
    compare(predicted, rng, ["changes"], MODEL, ["no_grad", "fork_rng"], fixed=fixed, longest=6)


@points(2)
def test_everything(predicted, rng):
    """Longer looks of all steps, all four answers."""
    kinds = [*MAKES, *MAKES, "item", "tolist", "print", "if", "shape", *["append"] * 4]
    kinds += ["mul_", "eval", "train", "forward", "randperm"]
    fixed = [[("clone", "a", "hidden"), ("mul_", "a"), ("append", "a"), ("print", "a")]]
    withs = ["no_grad", "fork_rng"]
    compare(predicted, rng, PARTS, kinds, withs, fixed=fixed, count=24, longest=14)
