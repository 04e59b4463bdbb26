"""Checks of `grad_mode`: where the flag is, at every place where it could have leaked."""

import pytest

from grader import Mismatch, about, assert_equal, assert_holds, compared, gate, points

BOTH = [(enabled, before) for enabled in (True, False) for before in (True, False)]


@pytest.fixture
def enabled():
    return False


@pytest.fixture
def before():
    return True


@gate
def test_can_be_entered(mode_in_with):
    """`with grad_mode(False):` runs its body."""
    assert_equal(type(mode_in_with.value["inside"]).__name__, "bool")


def test_inside_and_after(mode_in_with):
    """Grad mode is set inside a `with`, and afterwards is what it was: on or off."""
    for enabled, before in BOTH:
        got = mode_in_with.ask(enabled, before).value
        case = f"grad_mode({enabled}), entered with grad mode {before}: "
        assert_equal(got["made"], before, case + "making the object changed it.")
        assert_equal(got["inside"], enabled, case + "the mode inside.")
        assert_equal(got["recorded"], enabled, case + "is a result inside recorded?")
        assert_equal(got["after"], before, case + "the mode afterwards.")


def test_errors(mode_in_with):
    """A body that raises leaves grad mode as it was, and its error goes on."""
    for enabled, before in BOTH:
        got = mode_in_with.ask(enabled, before).value
        case = f"grad_mode({enabled}), entered with grad mode {before}: "
        assert_holds(got["the error goes on"], case + "the body's error did not come out.")
        assert_equal(got["after an error"], before, case + "the mode after the error.")


NESTED = """\
off, on = grad_mode(False), grad_mode(True)
with off:
    note()
    with on:
        note()
        with off:
            note()
            with off:
                note()
            note()
        note()
    note()
note()
with on, on:
    note()
note()"""


def test_nested(mode_nested):
    """Objects nest, and one object may be entered again while it is open."""
    for before in (True, False):
        expected = [False, True, False, False, False, True, False, before, True, before]
        with about(("program", NESTED)):
            what = f"Grad mode at each `note()`, where it was {before} before."
            assert_equal(mode_nested.ask(before, NESTED).value, expected, what)


def test_functions(mode_on_function):
    """A decorated function: arguments, result, name, mode inside and after, also after an error."""
    for enabled, before in BOTH:
        got = mode_on_function.ask(enabled, before).value
        case = f"decorated with grad_mode({enabled}), called with grad mode {before}: "
        assert_equal(got["results"], [24, 5], case + "the results.")
        names = (got["name"], got["doc"])
        assert_equal(names, ("add", "Add up."), "Name and docstring of what you return.")
        expected = [
            ("decorated", before),
            ("inside", enabled),
            ("inside", enabled),
            ("after", before),
            ("inside", enabled),
            ("scale", before),
            ("deep", [enabled] * 4),
            ("after it", before),
        ]
        for note, wanted in zip(got["notes"], expected, strict=True):
            assert_equal(note, wanted, case + "where the mode was looked at, and the mode.")


def stories(inner):
    """Return what a right decorator makes happen, as (what, grad mode), by story."""
    told = {}
    for before in (True, False):
        begins = ("begins", inner)
        one = {
            "a value is sent": [
                ("made", before),
                begins,
                ("first", before),
                ("got a value", inner),
                ("second", not before),
                ("goes on", inner),
                ("finally", inner),
                ("returned end", before),
            ],
            "an error is thrown in, then `close()`": [
                begins,
                ("got another", inner),
                ("caught thrown", inner),
                ("after an error", before),
                ("finally", inner),
                ("closed", before),
            ],
            "the body raises": [
                begins,
                ("got None", inner),
                ("goes on", inner),
                ("finally", inner),
                ("its own", not before),
            ],
            "two generators at once": [
                begins,
                begins,
                ("onetwo", before),
                ("got 1", inner),
                ("got 2", inner),
                ("secondsecond", not before),
                ("finally", inner),
                ("finally", inner),
                ("both closed", before),
            ],
        }
        told |= {f"{name}, called with grad mode {before}": notes for name, notes in one.items()}
    return told


def tell(got, expected, enabled):
    """Compare what happened in each story; of the first that differs, show where it begins to."""
    compared(got)
    for name, wanted in expected.items():
        for number, note in enumerate(wanted):
            mine = got[name][number] if number < len(got[name]) else ("nothing more", None)
            if tuple(mine) != note:
                before = ", ".join(f"{what!r}" for what, _ in wanted[:number]) or "nothing"
                raise Mismatch(
                    f"A generator function decorated with grad_mode({enabled}): {name}.",
                    (
                        ("so far", before),
                        ("expected", f"{note[0]!r}, with grad mode {note[1]}"),
                        ("got", f"{mine[0]!r}, with grad mode {mine[1]}"),
                    ),
                )
        assert_equal(got[name][len(wanted) :], [], f"What happened after the end: {name}.")


def test_generators_inside(mode_on_generator):
    """Each step of a decorated generator runs in the mode asked for, its `finally` too."""
    for enabled in (True, False):
        got = mode_on_generator.ask(enabled).value
        names = (got["name"], got["doc"])
        assert_equal(names, ("steps", "Step by step."), "Name and docstring of what you return.")
        ours = {name: of_body(notes) for name, notes in got["stories"].items()}
        tell(ours, {name: of_body(notes) for name, notes in stories(enabled).items()}, enabled)


@points(4)
def test_generators_outside(mode_on_generator):
    """Between two steps the caller has its own mode; what is sent, thrown and returned passes."""
    for enabled in (True, False):
        tell(mode_on_generator.ask(enabled).value["stories"], stories(enabled), enabled)


def of_body(notes):
    """Return the notes that were taken in the generator's body."""
    starts = ("begins", "got", "goes", "caught", "finally")
    return [tuple(note) for note in notes if note[0].startswith(starts)]


def test_threads(mode_in_threads):
    """Two threads use one object at once; each gets back its own mode."""
    for enabled in (True, False):
        got = mode_in_threads.ask(enabled).value
        assert_equal(got["errors"], [], "The errors in the threads.")
        steps = "`one` (grad mode on) enters, `two` (off) enters, `one` leaves, `two` leaves"
        with about(("threads", steps)):
            modes = {"one": (enabled, True), "two": (enabled, False)}
            assert_equal(
                got["notes"], modes, f"Grad mode inside grad_mode({enabled}), and after it."
            )
        assert_equal(got["here"], True, "Grad mode of a third thread, which did nothing.")
