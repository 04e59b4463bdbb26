"""Checks of `predict_flags`: random programs, each run by torch itself on the grader's side."""

from grader import Mismatch, assert_equal, gate
from grader.ch05_autograd.programs import as_text, random_program, run

RESULTS = ["add", "greater"]
COPIES = ["view", "clone", "detach"]
CHANGES = ["requires_grad_", "add_"]


def compare(flags, rng, kinds, modes=(), *, count=40, longest=14):
    """Compare programs of growing length; the first that differs is the simplest."""
    programs = [random_program(rng, 3 + i * longest // count, kinds, modes) for i in range(count)]
    found = flags.ask(programs).value
    for program, got in zip(programs, found, strict=True):
        expected = run(program)
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
    compare(flags, rng, RESULTS)


def test_copies_and_views(flags, rng):
    """`detach`, `clone` and `view`: what is cut, and whose memory it is."""
    compare(flags, rng, [*RESULTS, *COPIES])


def test_no_grad(flags, rng):
    """`no_grad` and `enable_grad`, one inside the other."""
    compare(flags, rng, [*RESULTS, "clone"], ["no_grad", "enable_grad"])


def test_views_without_grad(flags, rng):
    """Views made where nothing is recorded, and what is computed from them later."""
    compare(flags, rng, ["add", "view", "view", "detach"], ["no_grad"])


def test_changes(flags, rng):
    """`requires_grad_` and `add_`, with grad mode on and off."""
    compare(flags, rng, ["add", "clone", "detach", *CHANGES, "add_"], ["no_grad"])


def test_inference_mode(flags, rng):
    """`inference_mode`, and the other two modes inside it."""
    compare(flags, rng, [*RESULTS, *COPIES], ["inference_mode", "enable_grad", "no_grad"])


def test_everything(flags, rng):
    """Long programs of all steps in all modes."""
    modes = ["inference_mode", "enable_grad", "no_grad"]
    compare(flags, rng, [*RESULTS, *COPIES, *CHANGES], modes, longest=22)
