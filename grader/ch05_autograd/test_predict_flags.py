"""Checks of `predict_flags`: random programs, each run by torch itself on the grader's side."""

from grader import Mismatch, about, assert_equal, compared, gate, points
from grader.ch05_autograd.programs import as_text, random_program, run

RESULTS = ["add", "greater"]
COPIES = ["view", "clone", "detach"]
CHANGES = ["requires_grad_", "add_"]


LEAVES = [("leaf", "a", True), ("leaf", "b", False)]


def compare(flags, rng, kinds, modes=(), *, fixed, count=40, longest=14):
    """Compare programs of growing length; the first that differs is the simplest.

    `fixed` is a program that has all the check is about, whatever the random ones have.
    """
    programs = [random_program(rng, 3 + i * longest // count, kinds, modes) for i in range(count)]
    programs.append([*LEAVES, *fixed])
    found = flags.ask(programs).value
    for program, got in zip(programs, found, strict=True):
        expected = run(program)
        compared(got, expected)
        wrong = [name for name in expected if got.get(name) != expected[name]] or [""]
        what = f"`{wrong[0]}` is not as PyTorch has it: (requires_grad, is_leaf, owner)."
        with about(("program", as_text(program))):
            assert_equal(got.get(wrong[0]), expected.get(wrong[0]), what)


@gate
def test_a_dict_of_triples(flags, rng):
    """Returns a dict with a tuple of three for each tensor of the program."""
    program = [("leaf", "a", True), ("leaf", "b", False), ("add", "c", "a", "b")]
    (got,) = flags.ask([program]).value
    if not isinstance(got, dict) or set(got) != {"a", "b", "c"}:
        raise Mismatch("Expected a dict with the keys a, b and c.", (("got", repr(got)),))
    for value in got.values():
        if not isinstance(value, tuple) or len(value) != 3:
            raise Mismatch("Each value is a tuple of three.", (("got", repr(value)),))


def test_results(flags, rng):
    """Leaves, sums and comparisons, with grad mode on."""
    fixed = [("add", "c", "a", "b"), ("greater", "d", "a", "b"), ("add", "e", "b", "b")]
    compare(flags, rng, RESULTS, fixed=fixed)


def test_copies_and_views(flags, rng):
    """`detach`, `clone` and `view`: what is cut, and whose memory it is."""
    fixed = [("detach", "c", "a"), ("clone", "d", "a"), ("view", "e", "a"), ("view", "f", "e")]
    fixed += [("view", "g", "c"), ("clone", "h", "b"), ("detach", "i", "g"), ("add", "j", "g", "d")]
    compare(flags, rng, [*RESULTS, *COPIES], fixed=fixed)


def test_no_grad(flags, rng):
    """`no_grad` and `enable_grad`, one inside the other."""
    fixed = [("enter", "no_grad"), ("leaf", "c", True), ("add", "d", "a", "c")]
    fixed += [("enter", "enable_grad"), ("clone", "e", "a"), ("exit",), ("add", "f", "a", "e")]
    fixed += [("exit",), ("add", "g", "a", "d")]
    compare(flags, rng, [*RESULTS, "clone"], ["no_grad", "enable_grad"], fixed=fixed)


def test_views_without_grad(flags, rng):
    """Views made where nothing is recorded, and what is computed from them later."""
    fixed = [("enter", "no_grad"), ("view", "c", "a"), ("enter", "no_grad"), ("exit",)]
    fixed += [("view", "d", "b"), ("detach", "e", "c"), ("view", "i", "a"), ("exit",)]
    fixed += [("add", "f", "c", "b"), ("view", "g", "c"), ("view", "h", "d")]
    compare(flags, rng, ["add", "view", "view", "detach"], ["no_grad"], fixed=fixed)


def test_changes(flags, rng):
    """`requires_grad_` and `add_`, with grad mode on and off."""
    fixed = [("clone", "c", "b"), ("leaf", "d", False), ("leaf", "e", True), ("add_", "c", "a")]
    fixed += [("enter", "no_grad"), ("add_", "d", "a"), ("add_", "e", "a"), ("exit",)]
    fixed += [("requires_grad_", "d", True), ("requires_grad_", "e", False), ("add", "f", "d", "e")]
    fixed += [("requires_grad_", "c", True), ("enter", "no_grad"), ("enter", "no_grad"), ("exit",)]
    fixed += [("clone", "g", "a"), ("exit",)]
    compare(flags, rng, ["add", "clone", "detach", *CHANGES, "add_"], ["no_grad"], fixed=fixed)


def test_inference_mode(flags, rng):
    """`inference_mode`, and the other two modes inside it."""
    fixed = [("enter", "inference_mode"), ("add", "c", "a", "a"), ("enter", "enable_grad")]
    fixed += [("add", "d", "a", "b"), ("view", "e", "a"), ("exit",), ("clone", "f", "a"), ("exit",)]
    fixed += [("add", "g", "a", "c")]
    modes = ["inference_mode", "enable_grad", "no_grad"]
    compare(flags, rng, [*RESULTS, *COPIES], modes, fixed=fixed)


@points(3)
def test_everything(flags, rng):
    """Long programs of all steps in all modes."""
    fixed = [("add", "c", "a", "b"), ("requires_grad_", "c", True), ("leaf", "d", False)]
    fixed += [("enter", "no_grad"), ("add_", "d", "a"), ("enter", "enable_grad"), ("exit",)]
    fixed += [
        ("view", "e", "a"),
        ("exit",),
        ("enter", "inference_mode"),
        ("greater", "f", "a", "c"),
    ]
    fixed += [("exit",), ("detach", "g", "c"), ("clone", "h", "d")]
    modes = ["inference_mode", "enable_grad", "no_grad"]
    compare(flags, rng, [*RESULTS, *COPIES, *CHANGES], modes, fixed=fixed, longest=22)
