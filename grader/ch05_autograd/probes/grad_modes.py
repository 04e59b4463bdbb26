"""Probes of `predict_flags` and `grad_mode`: where grad mode is, and what is recorded."""

import threading

import torch

from grader import probe


@probe
def flags(student, programs):
    """Return what `predict_flags` gives for each program."""
    return [student.predict_flags(program) for program in programs]


def set_mode(enabled):
    """Set grad mode by the primitive: the public function is off limits, whoever calls it."""
    torch._C._set_grad_enabled(enabled)


@probe
def mode_in_with(student, enabled, before):
    """Return grad mode inside and after a `with`, and after one whose body raised."""
    set_mode(before)
    x = torch.ones(2, requires_grad=True)
    mode = student.grad_mode(enabled)
    made = torch.is_grad_enabled()
    with mode:
        inside, y = torch.is_grad_enabled(), x * 2
    after = torch.is_grad_enabled()
    set_mode(before)
    error, seen = LookupError("the body's own"), None
    try:
        with mode:
            raise error
    except BaseException as caught:
        seen = caught
    return {
        "made": made,
        "inside": inside,
        "recorded": y.requires_grad,
        "after": after,
        "after an error": torch.is_grad_enabled(),
        "the error goes on": seen is error,
    }


@probe
def mode_nested(student, before, program):
    """Return grad mode at each `note()` of a program that enters and leaves objects."""
    set_mode(before)
    notes = []
    names = {"grad_mode": student.grad_mode, "note": lambda: notes.append(torch.is_grad_enabled())}
    exec(program, names)
    return notes


@probe
def mode_on_function(student, enabled, before):
    """Return what a decorated function saw, gave and left behind; and of a recursive one."""
    set_mode(before)
    notes = []

    def add(a, *rest, scale=1):
        """Add up."""
        notes.append(("inside", torch.is_grad_enabled()))
        if scale == 0:
            raise LookupError("scale")
        return (a + sum(rest)) * scale

    decorated = student.grad_mode(enabled)(add)
    notes.append(("decorated", torch.is_grad_enabled()))
    results = [decorated(1, 2, 3, scale=4), decorated(5)]
    notes.append(("after", torch.is_grad_enabled()))
    try:
        decorated(1, scale=0)
    except LookupError as error:
        notes.append((str(error), torch.is_grad_enabled()))
    set_mode(before)
    mode = student.grad_mode(enabled)

    @mode
    def count_down(n):
        with student.grad_mode(not enabled):
            deeper = [] if n == 0 else count_down(n - 1)
        return [torch.is_grad_enabled(), *deeper]

    notes.append(("deep", count_down(3)))
    notes.append(("after it", torch.is_grad_enabled()))
    return {
        "results": results,
        "notes": notes,
        "name": decorated.__name__,
        "doc": decorated.__doc__,
    }


@probe
def mode_on_generator(student, enabled):
    """Return what happened, in order, in a decorated generator's body and at its caller's: by story."""
    notes = []

    def note(what):
        notes.append((what, torch.is_grad_enabled()))

    @student.grad_mode(enabled)
    def steps(first, *, last="end"):
        """Step by step."""
        note("begins")
        try:
            sent = yield first
            note(f"got {sent}")
            try:
                yield "second"
                note("goes on")
            except KeyError as error:
                note(f"caught {error.args[0]}")
                yield "after an error"
        finally:
            note("finally")
        if last == "fails":
            raise LookupError("its own")
        return last

    stories = {}
    for before in (True, False):
        for name, tell in STORIES.items():
            notes.clear()
            set_mode(before)
            try:
                tell(steps, note, before)
            except Exception as error:
                note(f"{type(error).__name__} came out")
            stories[f"{name}, called with grad mode {before}"] = list(notes)
    set_mode(True)
    return {"stories": stories, "name": steps.__name__, "doc": steps.__doc__}


def send_values(steps, note, before):
    made = steps("first")
    note("made")
    note(next(made))
    set_mode(not before)
    note(made.send("a value"))
    set_mode(before)
    try:
        next(made)
    except StopIteration as stop:
        note(f"returned {stop.value}")


def throw_and_close(steps, note, before):
    made = steps("first")
    next(made)
    made.send("another")
    note(made.throw(KeyError("thrown")))
    made.close()
    note("closed")


def fail(steps, note, before):
    made = steps("first", last="fails")
    next(made), next(made)
    set_mode(not before)
    try:
        next(made)
    except LookupError as error:
        note(str(error))


def two_at_once(steps, note, before):
    one, two = steps("one"), steps("two")
    note(next(one) + next(two))
    set_mode(not before)
    note(one.send(1) + two.send(2))
    set_mode(before)
    one.close()
    two.close()
    note("both closed")


STORIES = {
    "a value is sent": send_values,
    "an error is thrown in, then `close()`": throw_and_close,
    "the body raises": fail,
    "two generators at once": two_at_once,
}


@probe
def mode_in_threads(student, enabled):
    """Return grad mode in two threads that enter one object, and leave it in the same order."""
    mode = student.grad_mode(enabled)
    turns = [threading.Event() for _ in range(4)]
    notes, errors = {}, []

    def worker(before, own, next_turns, waits):
        try:
            set_mode(before)
            waits[0].wait(5)
            with mode:
                inside = torch.is_grad_enabled()
                next_turns[0].set()
                waits[1].wait(5)
            notes[own] = (inside, torch.is_grad_enabled())
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
        finally:
            for turn in next_turns:
                turn.set()

    # one enters, two enters, one leaves, two leaves
    start, one_in, two_in, one_out = turns
    start.set()
    one = threading.Thread(
        target=worker, args=(True, "one", (one_in, one_out), (start, two_in)), daemon=True
    )
    two = threading.Thread(
        target=worker, args=(False, "two", (two_in,), (one_in, one_out)), daemon=True
    )
    for thread in (one, two):
        thread.start()
    for thread in (one, two):
        thread.join(15)
    return {"notes": notes, "errors": errors, "here": torch.is_grad_enabled()}
