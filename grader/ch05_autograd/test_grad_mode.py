"""Checks of `grad_mode`: where the flag is, at every place where it could have leaked."""

import pytest

from grader import assert_equal, assert_holds, gate

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


def test_nested(mode_nested):
    """Objects nest, and one object may be entered again while it is open."""
    for before in (True, False):
        expected = [False, True, False, False, False, True, False, before, True, before]
        what = f"off, on, off, off, and out again; then on, on. It began with {before}."
        assert_equal(mode_nested.ask(before).value, expected, what)


def test_functions(mode_on_function):
    """A decorated function: arguments, result, name, mode inside and after, also after an error."""
    for enabled, before in BOTH:
        got = mode_on_function.ask(enabled, before).value
        case = f"decorated with grad_mode({enabled}), called with grad mode {before}: "
        assert_equal(got["results"], [24, 5], case + "the results.")
        assert_equal((got["name"], got["doc"]), ("add", "Add up."), "Name and docstring.")
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
            assert_equal(note, wanted, case + "a place and the mode there.")


def story(enabled):
    """Return what a right decorator makes happen, as places and grad modes."""
    inner, notes = enabled, []
    for before in (True, False):
        notes += [
            ("made", before),
            ("begins", inner),
            ("first", before),
            ("got a value", inner),
            ("second", not before),
            ("goes on", inner),
            ("finally", inner),
            ("returned end", before),
            ("begins", inner),
            ("got another", inner),
            ("caught thrown", inner),
            ("after an error", before),
            ("finally", inner),
            ("closed", before),
            ("begins", inner),
            ("got None", inner),
            ("goes on", inner),
            ("finally", inner),
            ("its own", not before),
            ("begins", inner),
            ("begins", inner),
            ("onetwo", before),
            ("got 1", inner),
            ("got 2", inner),
            ("secondsecond", not before),
            ("finally", inner),
            ("finally", inner),
            ("both closed", before),
        ]
    return notes


def test_generators_inside(mode_on_generator):
    """Each step of a decorated generator runs in the mode asked for, its `finally` too."""
    for enabled in (True, False):
        got = mode_on_generator.ask(enabled).value
        wrong = [what for what, mode in inner(got["notes"]) if mode is not enabled]
        assert_equal(wrong, [], f"grad_mode({enabled}): places in the body with another mode.")
        assert_equal(len(inner(got["notes"])), len(inner(story(enabled))), "Steps of the body.")
        assert_equal((got["name"], got["doc"]), ("steps", "Step by step."), "Name and docstring.")


def test_generators_outside(mode_on_generator):
    """Between two steps the caller has its own mode; what is sent, thrown and returned passes."""
    for enabled in (True, False):
        got = mode_on_generator.ask(enabled).value["notes"]
        for number, (note, wanted) in enumerate(zip(got, story(enabled), strict=False)):
            assert_equal(note, wanted, f"grad_mode({enabled}): what happened, at place {number}.")
        assert_equal(len(got), len(story(enabled)), "How much happened.")


def inner(notes):
    """Return the notes that were taken in the generator's body."""
    starts = ("begins", "got", "goes", "caught", "finally")
    return [note for note in notes if note[0].startswith(starts)]


def test_threads(mode_in_threads):
    """Two threads use one object at once; each gets back its own mode."""
    for enabled in (True, False):
        got = mode_in_threads.ask(enabled).value
        assert_equal(got["errors"], [], "An error in a thread.")
        assert_equal(
            got["notes"], {"one": (enabled, True), "two": (enabled, False)}, "Inside and after."
        )
        assert_equal(got["here"], True, "Grad mode of the thread that did nothing.")
