"""Chapter 5's probes: all of the chapter that runs beside a student's code."""

import gc
import signal
import threading
import weakref
from contextlib import contextmanager

import torch
from torch import nn

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
def mode_nested(student, before):
    """Return grad mode at each place where objects are entered and left, some of them twice."""
    set_mode(before)
    off, on = student.grad_mode(False), student.grad_mode(True)
    notes = []

    def note():
        notes.append(torch.is_grad_enabled())

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
    note()
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
    """Return what happened, in order: in a decorated generator's body and at its caller's."""
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

    def caller(what, mode):
        note(what)
        set_mode(mode)

    for before in (True, False):
        set_mode(before)
        made = steps("first")
        caller("made", before)
        caller(next(made), not before)
        caller(made.send("a value"), before)
        try:
            next(made)
        except StopIteration as stop:
            caller(f"returned {stop.value}", before)
        made = steps("first")
        next(made)
        made.send("another")
        caller(made.throw(KeyError("thrown")), before)
        made.close()
        caller("closed", before)
        made = steps("first", last="fails")
        next(made), next(made)
        set_mode(not before)
        try:
            next(made)
        except LookupError as error:
            caller(str(error), before)
        one, two = steps("one"), steps("two")
        caller(next(one) + next(two), not before)
        caller(one.send(1) + two.send(2), before)
        one.close()
        two.close()
        caller("both closed", before)
    return {"notes": notes, "name": steps.__name__, "doc": steps.__doc__}


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


class Fails(nn.Module):
    """A layer with a parameter, which raises."""

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, h):
        raise LookupError("this layer fails")


def build_layers(kinds, numbers):
    """Return layers of width 4. `kinds` has names, or positions of an earlier layer to use again.

    `numbers` (layers, 5, 4) float64 holds each linear layer's weight and bias.
    """
    layers = []
    for kind, values in zip(kinds, numbers, strict=True):
        if isinstance(kind, int):
            layers.append(layers[kind])
        elif kind in ("linear", "fixed", "tied"):
            layer = nn.Linear(4, 4, dtype=torch.float64)
            with torch.no_grad():
                layer.weight.copy_(values[:4])
                layer.bias.copy_(values[4])
            if kind == "tied":  # shares the first layer's weight, has a bias of its own
                layer.weight = layers[0].weight
            layers.append(layer.requires_grad_(kind != "fixed"))
        else:
            makers = {"tanh": nn.Tanh, "fails": lambda: Fails(4), "norm": normalize}
            layers.append(makers[kind]())
    return layers


def normalize():
    """Return a BatchNorm, which counts how often it ran."""
    return nn.BatchNorm1d(4, dtype=torch.float64)


@probe
def routed(student, kinds, numbers, x, cotangent, frozen, cut):
    """Return the result, and the gradients that come back from it for `cotangent`."""
    layers = build_layers(kinds, numbers)
    parameters = list(nn.ModuleList(layers).parameters())
    x = x.clone().requires_grad_()
    before = [p.requires_grad for p in parameters]
    calls = [0] * len(layers)
    for position, layer in enumerate(layers):
        first = layers.index(layer)
        if first == position:
            layer.register_forward_hook(lambda *_, at=first: calls.__setitem__(at, calls[at] + 1))
    raised, y = "", None
    try:
        y = student.route(layers, x, set(frozen), set(cut))
    except LookupError as error:
        raised = str(error)
    after = [p.requires_grad for p in parameters]
    if isinstance(y, torch.Tensor) and y.requires_grad:
        y.backward(cotangent)
    return {
        "y": y.detach() if isinstance(y, torch.Tensor) else y,
        "grads": [p.grad for p in parameters],
        "x": x.grad,
        "flags": (before, after),
        "calls": calls,
        "raised": raised,
    }


class Cubed(torch.autograd.Function):
    """A Function that saves a tensor of its own making beside its input."""

    @staticmethod
    def forward(ctx, x):
        square = x * x
        ctx.save_for_backward(x, square)
        return x * square

    @staticmethod
    def backward(ctx, grad):
        _, square = ctx.saved_tensors
        return 3 * square * grad


def build_graph(recipe, numbers):
    """Return (output, leaves by name) of a recipe: (operation, inputs) by number.

    `numbers` (leaves, 4, 4) are the leaves' values; the first inputs are numbered from 0.
    """
    made = [values.clone().requires_grad_(at % 3 != 2) for at, values in enumerate(numbers)]
    leaves = {at: leaf for at, leaf in enumerate(made) if leaf.requires_grad}
    for kind, *inputs in recipe:
        made.append(OPERATIONS[kind](*[made[at] for at in inputs]))
    return made[-1], leaves


OPERATIONS = {
    "mul": lambda a, b: a * b,
    "add": lambda a, b: a + b,
    "matmul": lambda a, b: a @ b,
    "sigmoid": torch.sigmoid,
    "exp": lambda a: (-a).exp(),
    "view": lambda a: a.t().reshape(2, 8).view(4, 4),
    "expand": lambda a: a[:1].expand(4, 4),
    "rows": lambda a: (a[1] * a[2]).expand(4, 4) + a,
    "slice": lambda a: torch.cat([a[2:], a[:2]]),
    "index": lambda a: a[torch.tensor([3, 1, 0, 0])],
    "chunk": lambda a: torch.cat(list(reversed(a.chunk(2, 1))), 1),
    "one_of": lambda a: a.unbind(0)[2] + a,
    "sum": lambda a: a.sum(1, keepdim=True) + a,
    "max": lambda a: a.max(1, keepdim=True).values * a,
    "norm": lambda a: nn.functional.layer_norm(a, (4,)),
    "cubed": Cubed.apply,
    "detach": lambda a: a.detach() + a,
    "double": lambda a: a + a,
}


@probe
def reported(student, recipe, numbers):
    """Return the report of a graph; the leaves by their numbers, as often as they were listed."""
    output, leaves = build_graph(recipe, numbers)
    with at_most(seconds=5):
        report = student.graph_report(output)
    found = [[at for at, leaf in leaves.items() if leaf is one] for one in report["leaves"]]
    return {
        "nodes": dict(report["nodes"]),
        "leaves": found,
        "saved_bytes": report["saved_bytes"],
    }


@probe
def report_left(student, recipe, numbers):
    """Return what a report leaves behind: in `.grad`, in the graph, and of the graph."""
    output, leaves = build_graph(recipe, numbers)
    with fresh_garbage():
        report = student.graph_report(output)
        untouched = all(leaf.grad is None for leaf in leaves.values())
        token = output.grad_fn.metadata["token"] = Token()
        alive = weakref.ref(token)
        output.sum().backward()
        del output, token
        gc.collect()
        return {
            "nodes": dict(report["nodes"]),
            "untouched": untouched,
            "graph is alive": alive() is not None,
        }


@contextmanager
def fresh_garbage():
    """Let `gc.collect()` look at what was made in the body alone: a whole torch takes 0.8 s."""
    gc.collect(0)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def at_most(seconds):
    """Interrupt the body when it takes longer, such as one that walks every road of a graph."""

    def stop(signum, frame):
        raise TimeoutError(f"No answer within {seconds} seconds.")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Token:
    """Something that goes when the node that holds it goes."""
