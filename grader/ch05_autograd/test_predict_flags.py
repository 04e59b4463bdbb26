"""Checks of `predict_flags`: random programs, each run by torch itself on the grader's side."""

from grader import Mismatch, assert_equal, compared, gate
from grader.ch05_autograd.programs import as_text, random_program, run

RESULTS = ["add", "greater"]
COPIES = ["view", "clone", "detach"]
CHANGES = ["requires_grad_", "add_"]


LEAVES = [("leaf", "a", True), ("leaf", "b", False)]


def compare(flags, rng, kinds, modes=(), *, first=(), count=40, longest=14):
    """Compare programs of growing length; the first that differs is the simplest.

    `first` is a program that has all the check is about, whatever the random ones have.
    """
    programs = [random_program(rng, 3 + i * longest // count, kinds, modes) for i in range(count)]
    programs.append([*LEAVES, *first])
    found = flags.ask(programs).value
    for program, got in zip(programs, found, strict=True):
        expected = run(program)
        compared(got)
        wrong = [name for name in expected if got.get(name) != expected[name]] or [""]
        what = f"`{wrong[0]}` is not as PyTorch has it after this program:\n{as_text(program)}"
        assert_equal(got.get(wrong[0]), expected.get(wrong[0]), what)


@gate
def test_a_dict_of_triples(flags, rng):
    """Returns a dict with a tuple of three for each tensor of the program."""
    program = [("leaf", "a", True), ("leaf", "b", False), ("add", "c", "a", "b")]
    (got,) = flags.ask([program]).value
    if not isinstance(got, dict) or set(got) != {"a", "b", "c"}:
        raise Mismatch("Expected a dict with the keys a, b and c.", (("got", repr(got)),))
    for value in got.values():
        assert_equal((type(value).__name__, len(value)), ("tuple", 3))


def test_results(flags, rng):
    """Leaves, sums and comparisons, with grad mode on."""
    first = [("add", "c", "a", "b"), ("greater", "d", "a", "b"), ("add", "e", "b", "b")]
    compare(flags, rng, RESULTS, first=first)


def test_copies_and_views(flags, rng):
    """`detach`, `clone` and `view`: what is cut, and whose memory it is."""
    first = [("detach", "c", "a"), ("clone", "d", "a"), ("view", "e", "a"), ("view", "f", "e")]
    first += [("view", "g", "c"), ("clone", "h", "b"), ("detach", "i", "g"), ("add", "j", "g", "d")]
    compare(flags, rng, [*RESULTS, *COPIES], first=first)


def test_no_grad(flags, rng):
    """`no_grad` and `enable_grad`, one inside the other."""
    first = [("enter", "no_grad"), ("leaf", "c", True), ("add", "d", "a", "c")]
    first += [("enter", "enable_grad"), ("clone", "e", "a"), ("exit",), ("add", "f", "a", "e")]
    first += [("exit",), ("add", "g", "a", "d")]
    compare(flags, rng, [*RESULTS, "clone"], ["no_grad", "enable_grad"], first=first)


def test_views_without_grad(flags, rng):
    """Views made where nothing is recorded, and what is computed from them later."""
    first = [("enter", "no_grad"), ("view", "c", "a"), ("view", "d", "b"), ("detach", "e", "c")]
    first += [("exit",), ("add", "f", "c", "b"), ("view", "g", "c"), ("view", "h", "d")]
    compare(flags, rng, ["add", "view", "view", "detach"], ["no_grad"], first=first)


def test_changes(flags, rng):
    """`requires_grad_` and `add_`, with grad mode on and off."""
    first = [("clone", "c", "b"), ("leaf", "d", False), ("leaf", "e", True), ("add_", "c", "a")]
    first += [("enter", "no_grad"), ("add_", "d", "a"), ("add_", "e", "a"), ("exit",)]
    first += [("requires_grad_", "d", True), ("requires_grad_", "e", False), ("add", "f", "d", "e")]
    compare(flags, rng, ["add", "clone", "detach", *CHANGES, "add_"], ["no_grad"], first=first)


def test_inference_mode(flags, rng):
    """`inference_mode`, and the other two modes inside it."""
    first = [("enter", "inference_mode"), ("add", "c", "a", "a"), ("enter", "enable_grad")]
    first += [("add", "d", "a", "b"), ("view", "e", "a"), ("exit",), ("clone", "f", "a"), ("exit",)]
    first += [("add", "g", "a", "c")]
    modes = ["inference_mode", "enable_grad", "no_grad"]
    compare(flags, rng, [*RESULTS, *COPIES], modes, first=first)


def test_everything(flags, rng):
    """Long programs of all steps in all modes."""
    modes = ["inference_mode", "enable_grad", "no_grad"]
    compare(flags, rng, [*RESULTS, *COPIES, *CHANGES], modes, longest=22)
