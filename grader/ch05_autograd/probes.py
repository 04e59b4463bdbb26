"""Chapter 5's probes: all of the chapter that runs beside a student's code."""

import gc
import signal
import tempfile
import threading
import weakref
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn

from grader import probe
from grader.instruments.memory import watch_memory
from grader.instruments.saved import watch_saved


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
        elif kind == "block":  # its parameters belong to a layer inside of it
            layers.append(nn.Sequential(*build_layers(["linear"], values[None])))
        else:
            makers = {
                "same": nn.Identity,
                "tanh": nn.Tanh,
                "fails": lambda: Fails(4),
                "norm": normalize,
            }
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
        "x requires grad": x.requires_grad,
        "flags": (before, after),
        "calls": calls,
        "buffers": [buffer.clone() for buffer in nn.ModuleList(layers).buffers()],
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
    made = build_all(recipe, numbers)
    leaves = {at: leaf for at, leaf in enumerate(made[: len(numbers)]) if leaf.requires_grad}
    return made[-1], leaves


def build_all(recipe, numbers):
    """Return the leaves and the result of each step, in order. Leaf 2 of 3 requires no grad."""
    made = [values.clone().requires_grad_(at % 3 != 2) for at, values in enumerate(numbers)]
    for kind, *inputs in recipe:
        made.append(OPERATIONS[kind](*[made[at] for at in inputs]))
    return made


def write_into(a, b):
    """Return a copy of `a` whose second row is `b`'s first, written in place."""
    copy = a * 2
    copy[1] = b[0]
    return copy


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
    "row": lambda a: a.unbind(0)[1],
    "spread": lambda a: torch.var_mean(a, 1, keepdim=True)[0] * a,
    "both": lambda a: sum(torch.var_mean(a, 0)) + a,
    "halves": lambda a: a.split([1, 3], 1)[1] @ a.split([1, 3], 0)[1],
    "float": lambda a: a.float()[:, :1],
    "promote": lambda a: a * torch.arange(4.0, dtype=torch.float64),
    "single": lambda a: a.float().exp().double(),
    "write": lambda a, b: (a * 1).index_fill_(0, torch.tensor([1]), 2.0).add_(b),
    "into": write_into,
    "column": lambda a, b: a[:, :1] * b,
    "sort": lambda a: a.sort(1).values,
    "where": lambda a, b: torch.where(a.detach() > b.detach(), a, b),
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


@probe
def entropy_value(student, logits, target):
    """Return the loss as it is."""
    return student.cross_entropy(logits, target).detach()


@probe
def entropy_grads(student, logits, target, cotangent, direction):
    """Return the loss, its gradient for `cotangent`, and the gradients of that along `direction`."""
    z = logits.detach().requires_grad_()
    c = cotangent.clone().requires_grad_()
    loss = student.cross_entropy(z, target)
    (first,) = torch.autograd.grad(loss, z, c, create_graph=True)
    second = torch.autograd.grad(first, (z, c), direction, allow_unused=True)
    return {"loss": loss.detach(), "first": first.detach(), "second": list(second)}


@probe
def entropy_first(student, logits, target):
    """Return the gradient alone."""
    z = logits.detach().requires_grad_()
    student.cross_entropy(z, target).backward()
    return z.grad


@probe
def entropy_saved(student, logits, target):
    """Return how many bytes the graph keeps beside the inputs: saved, or alive by any other way."""
    z = logits.detach().requires_grad_()
    with watch_memory() as memory:
        loss = student.cross_entropy(z, target)
        gc.collect()
        alive = memory.live_bytes - loss.nbytes
    del loss
    with watch_saved() as saved:
        loss = student.cross_entropy(z, target)
    loss.backward()
    return {"bytes": max(saved.bytes_without(z, target), alive), "grad": z.grad}


class Watched(nn.Module):
    """A small classifier that notes each call's size, and how many earlier graphs are alive."""

    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = nn.Parameter(first.clone()), nn.Parameter(second.clone())
        self.sizes, self.alive, self.modes, self._tokens = [], [], [], []

    def forward(self, inputs):
        self.sizes.append(len(inputs))
        self.alive.append(self.graphs())
        self.modes.append(self.training)
        logits = torch.tanh(inputs @ self.first) @ self.second
        if logits.grad_fn is not None:
            token = logits.grad_fn.metadata["token"] = Token()
            self._tokens.append(weakref.ref(token))
        return logits

    def graphs(self):
        """Return how many graphs of earlier calls are alive."""
        return sum(token() is not None for token in self._tokens)


OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.3),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.3, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.1),
}


@probe
def stepped(student, weights, optimizer, steps, stale, training):
    """Return parameters and losses after each of `steps`, a list of lists of pieces.

    `stale` fills `.grad` before the first step. Also the calls' sizes and the graphs alive then.
    """
    model = Watched(*weights).train(training)
    made = OPTIMIZERS[optimizer](model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, stale) if stale else None
    losses, parameters, left = [], [], []
    with fresh_garbage():
        for batches in steps:
            losses.append(student.train_step(model, made, batches))
            gc.collect()
            left.append(model.graphs())
            parameters.append([p.detach().clone() for p in model.parameters()])
    return {
        "losses": losses,
        "parameters": parameters,
        "sizes": model.sizes,
        "alive": model.alive,
        "left": left,
        "modes": model.modes,
    }


def swap_data(t):
    """Give `t` another memory."""
    t.data = t.data.clone()
    t.data.view(-1)[:1] += 1


def reshape_data(t):
    """Give `t` another shape, with the same bytes."""
    t.data = t.data.clone().reshape(1, -1)


def retype_data(t):
    """Give `t` another dtype of the same bytes."""
    t.data = t.data.contiguous().view(torch.int32)


EDITS = {
    "nothing": lambda t: None,
    "add_": lambda t: t.add_(1),
    "add_ zero": lambda t: t.add_(0),
    "view": lambda t: t.view(-1)[1:].mul_(3),
    "detach": lambda t: t.detach().add_(1),
    "foreach": lambda t: torch._foreach_add_([t], 1.0),
    "read": lambda t: (t * 2).exp(),
    "data": lambda t: t.data.add_(1),
    "data, one element": lambda t: t.data.view(-1)[-1:].mul_(1.0000002),
    "data, swapped": lambda t: t.data.view(-1)[:2].copy_(t.data.view(-1)[:2].flip(0)),
    "data, minus zero": lambda t: t.data.masked_fill_(t.data == 0, -0.0),
    "data, another NaN": lambda t: t.data.view(torch.int32).bitwise_xor_(t.isnan().int()),
    "data, back again": lambda t: (t.data.neg_(), t.data.neg_()),
    "storage": lambda t: t.untyped_storage().fill_(7),
    "other memory": swap_data,
    "other shape": reshape_data,
    "other dtype": retype_data,
    "both": lambda t: (t.data.add_(1), t.add_(1)),
}


@probe(in_place=("values",))
def edited(student, values, edits):
    """Return the words for copies of `values`, each edited in its way; and what else happened."""
    tensors = [one.clone() for one in values]
    calls = []

    def run():
        calls.append(torch.is_grad_enabled())
        with torch.no_grad():
            for tensor, edit in zip(tensors, edits, strict=True):
                EDITS[edit](tensor)

    words = student.watch_edits(tensors, run)
    return {"words": words, "calls": calls, "versions": [t._version for t in tensors]}


@probe
def edited_related(student, values):
    """Return the words for tensors of one memory, a leaf, an empty tensor and a boolean one."""
    whole = values.clone()
    parts = [whole, whole[1:], whole.detach(), whole.data, whole.t(), values[:1].expand(3, 4)]
    leaf = values.clone().requires_grad_()
    empty = torch.empty(0, 3)
    booleans = values > 0
    around = values.clone()

    def run():
        around.data[1:].add_(1)  # around the slice that is watched
        whole[0, 0] += 1
        leaf.data.add_(1)
        booleans.data.logical_not_()

    tensors = [*parts, leaf, empty, booleans, around[:1]]
    return {"words": student.watch_edits(tensors, run), "flags": [t.requires_grad for t in tensors]}


@probe
def edited_in_inference(student, values):
    """Return the words for two inference tensors of which the second is changed."""
    with torch.inference_mode():
        tensors = [values.clone(), values.clone()]
    return student.watch_edits(tensors, lambda: tensors[1].untyped_storage().fill_(3))


@probe
def edits_that_raise(student, values):
    """Return what comes out when `run` raises."""

    def run():
        raise LookupError("run's own")

    try:
        student.watch_edits([values], run)
    except LookupError as error:
        return str(error)
    return "nothing"


@probe
def walked_back(student, recipe, numbers, cotangent, wanted):
    """Return the gradients of the results numbered `wanted`, and what is left behind."""
    made = build_all(recipe, numbers)
    output, inputs = made[-1], [made[at] for at in wanted]
    leaves = [one for one in made[: len(numbers)] if one.requires_grad]
    for leaf in leaves:
        leaf.grad = torch.full_like(leaf, 3.0)
    with at_most(seconds=5):
        found = student.gradients(output, cotangent, inputs)
    again = None
    if isinstance(found, list) and all(leaf is not None for leaf in found):
        with at_most(seconds=5):
            again = student.gradients(output, cotangent, inputs)
    return {
        "gradients": found,
        "again": again,
        "untouched": all(bool((leaf.grad == 3).all()) for leaf in leaves),
    }


class Part:
    """What is checkpointed: a function with parameters of its own, which keeps count."""

    def __init__(self, weights, rate):
        self.weights = [nn.Parameter(w.clone()) for w in weights]
        self.rate, self.calls, self.made, self.modes = rate, 0, [], []

    def __call__(self, x, repeat=1, *, options=None, extras=()):
        self.calls += 1
        self.modes.append(torch.is_grad_enabled())
        h = x["x"] if isinstance(x, dict) else x
        h = h[0] if isinstance(h, tuple) else h
        for _ in range(repeat):
            for weight in self.weights:
                h = torch.sigmoid(h @ weight)
                self._note(h)
                h = nn.functional.dropout(h, self.rate) if self.rate else h
                self._note(h)
        for extra in extras:
            h = h * extra.exp()
        if options == "tuple":
            return h, (h * 2).sum(), "text"
        if options == "dict":
            return {"h": h, "sum": h.sum()}
        return h

    def _note(self, tensor):
        self.made.append(weakref.ref(tensor.untyped_storage()))

    def alive(self):
        """Return how many of the tensors that were made in the last call are alive."""
        return sum(storage() is not None for storage in self.made)


def tensors_of(result):
    """Return the tensors of what a part returned, in order."""
    if isinstance(result, torch.Tensor):
        return [result]
    values = result.values() if isinstance(result, dict) else result
    return [value for value in values if isinstance(value, torch.Tensor)]


def form_of(result):
    """Return what kind of thing a part returned."""
    if isinstance(result, tuple):
        return [type(item).__name__ for item in result]
    return sorted(result) if isinstance(result, dict) else type(result).__name__


def run_part(call, weights, x, rate, repeat, form, needs_grad, backwards=1):
    """Call a part by `call` and go back; return values, gradients, calls and random numbers."""
    part = Part(weights, rate)
    x = x.clone().requires_grad_(needs_grad)
    extra = (x.detach()[:, :1] * 0.1).requires_grad_(needs_grad)
    argument = {"tuple": (x,), "dict": {"x": (x, 3)}}.get(form, x)
    torch.default_generator.manual_seed(7)
    before = torch.rand(1)
    result = call(part, argument, repeat, options=form, extras=[extra, extra + 1])
    found = tensors_of(result)
    values, after = [t.detach().clone() for t in found], torch.rand(1)
    calls = [part.calls]
    for turn in range(backwards):
        total = sum((t * t).sum() for t in found)
        total.backward(retain_graph=turn + 1 < backwards)
        calls.append(part.calls)
    return {
        "form": form_of(result),
        "values": values,
        "grads": [t.grad for t in (*part.weights, x, extra)],
        "random": [before, after, torch.rand(1)],
        "calls": calls,
        "modes": part.modes,
    }


@probe
def checkpointed(student, weights, x, rate, repeat, form, needs_grad, backwards):
    """Return what comes of a part that is checkpointed."""
    return run_part(student.checkpoint, weights, x, rate, repeat, form, needs_grad, backwards)


@probe
def checkpoint_in_parts(student, weights, x):
    """Return gradients asked for one by one, of two checkpointed parts in a row."""
    one, two = Part(weights, 0.0), Part(weights, 0.25)
    x = x.clone().requires_grad_()
    torch.default_generator.manual_seed(11)
    h = student.checkpoint(two, student.checkpoint(one, x))
    last = two.weights[-1]
    (only_last,) = torch.autograd.grad(h.sum(), last, retain_graph=True)
    grads = [t.grad for t in (x, *one.weights, *two.weights)]
    first = torch.autograd.grad(h.sum(), (x, one.weights[0]))
    return {"one by one": [only_last, *first], "touched": [g is not None for g in grads]}


@probe
def checkpoint_without_grad(student, weights, x):
    """Return value, recording and calls of a call under `no_grad`."""
    part = Part(weights, 0.0)
    with torch.no_grad():
        y = student.checkpoint(part, x)
    return {"y": y, "calls": part.calls}


@probe
def checkpoint_keeps(student, weights, x):
    """Return what is alive of a part after its forward, and what nodes saved, inputs aside."""
    part = Part(weights, 0.25)
    x = x.clone().requires_grad_()
    with fresh_garbage():
        with watch_saved() as saved:
            y = student.checkpoint(part, x, 3)
        total = y.sum()
        del y
        gc.collect()
        alive = part.alive()
        total.backward()
        part.made.clear()
        calls = part.calls
        del total
        y = student.checkpoint(part, x, 3)
        del y
        gc.collect()
        dropped = part.alive()
    inner = (x, *part.weights)
    found = {"alive": alive, "dropped": dropped, "calls": calls}
    return {**found, "saved": saved.bytes_without(*inner)}


class Counter(nn.Module):
    """A layer with buffers that move whenever it runs: in place, and by taking a new tensor."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("last", torch.zeros(3), persistent=False)
        self.register_buffer("nothing", None)

    def forward(self, x):
        self.calls += 1
        self.last = x.detach()[0].clone()
        return x


def build_model(weight):
    """Return a model with frozen, dropping, counting and shared layers. `weight` (3, 3)."""
    linear, shared = nn.Linear(3, 3, bias=False), nn.Dropout(0.5)
    with torch.no_grad():
        linear.weight.copy_(weight)
    inner = nn.Sequential(nn.BatchNorm1d(3, momentum=None), shared, Counter())
    model = nn.Sequential(linear, shared, inner, nn.BatchNorm1d(3))
    model.train()
    model[3].eval()
    inner[2].eval()
    return model


def state_of(model):
    """Return each module's mode and attributes and each buffer's values, in order."""
    return {
        "modes": [module.training for module in model.modules()],
        "attributes": [sorted(vars(module)) for module in model.modules()],
        "buffers": {name: b if b is None else b.clone() for name, b in buffers_of(model).items()},
    }


def buffers_of(model):
    """Return every buffer by its full name, None where there is no tensor."""
    return {
        f"{prefix}.{name}": buffer
        for prefix, module in model.named_modules()
        for name, buffer in module._buffers.items()
    }


@probe
def evaluated(student, weight, x, outer, meddle, fails):
    """Return a model's state before, inside of and after a `with evaluating`, and results of it.

    `outer` is grad mode outside; `meddle` says that the body switches modes and calls the layers.
    """
    model = build_model(weight)
    model(x)
    model[2][2].calls.add_(5)
    before, buffers = state_of(model), buffers_of(model)
    seen, error = {}, None
    set_mode(outer)
    manager = student.evaluating(model)
    try:
        with manager as same:
            seen["same"] = same is model
            seen["modes"] = [module.training for module in model.modules()]
            seen["grad mode"] = torch.is_grad_enabled()
            seen["y"] = model(x)
            seen["again"] = model(x)
            if meddle:
                model.train()
                model(x + 1)
                model[3].running_mean = torch.full((3,), 9.0)
                model[2][2].nothing = torch.ones(3)
                set_mode(True)
            if fails:
                raise LookupError("the body's own")
    except LookupError as caught:
        error = str(caught)
    mode = torch.is_grad_enabled()
    after = buffers_of(model)
    return {
        "before": before,
        "seen": seen,
        "after": state_of(model),
        "other tensors": [name for name, one in buffers.items() if after.get(name) is not one],
        "grad mode": mode,
        "error": error,
        "requires grad": [p.requires_grad for p in model.parameters()],
    }


def compute(kinds, x, w, made):
    """Return one number computed from `x` and `w` (32, 32); `made` gets what was made on the way."""

    def note(tensor):
        made.append(weakref.ref(tensor.untyped_storage()))
        return tensor

    h = x
    for kind in kinds:
        if kind == "product":
            h = note(torch.tanh(h @ w))
        elif kind == "square":
            h = note(h * 1.5)
            h = note(h * h)
        elif kind == "rows":  # two small views of a large tensor are saved
            large = note(h.exp() * 0.1)
            h = h + note(large + 0.5)[3:5].prod(0) * w
        elif kind == "mask":
            h = torch.where(note(h > 0), h, note(0.5 * h))
        elif kind == "half":
            h = note(note(h.bfloat16()).sigmoid()).double() + h
        elif kind == "index":
            h = h[note(torch.arange(2000) % 32)].view(-1, 32)[:32].clone()
        elif kind == "constant":
            h = h * note(torch.linspace(0, 1, 1024, dtype=torch.float64).view(32, 32).t())
        elif kind == "row":
            h = h * note(h.detach()[:1].sigmoid()).expand(32, 32)
    return h.sum()


@probe
def offloaded(student, kinds, x, w, at_least, turns, inside):
    """Return gradients, and the files that are there before, during and after."""
    x, w = x.clone().requires_grad_(), nn.Parameter(w.clone())
    with tempfile.TemporaryDirectory() as folder, fresh_garbage():
        other = Path(folder) / "notes.txt"
        other.write_text("somebody else's")
        made, files = [], []
        with student.offloading(folder, at_least):
            total = compute(kinds, x, w, made)
            alive = sum(one() is not None and one().nbytes() >= at_least for one in made)
            files.append(sizes_in(folder))
            if inside:
                backward(total, turns)
        if not inside:
            files.append(sizes_in(folder))
            backward(total, turns)
        del total
        gc.collect()
        left = sorted(sizes_in(folder))
        outside = (x * x).sum().grad_fn.next_functions[0][0]._saved_self is not None
        plain = sizes_in(folder) == left
        return {
            "grads": [x.grad, w.grad],
            "files": files,
            "alive": alive,
            "left": left,
            "others": other.read_text() if other.exists() else "is gone",
            "outside": outside and plain,
        }


def backward(total, turns):
    """Go back `turns` times; the graph is kept until the last."""
    for turn in range(turns):
        total.backward(retain_graph=turn + 1 < turns)


def sizes_in(folder):
    """Return the sizes of the files in a folder, without the one that was there before."""
    return sorted(p.stat().st_size for p in Path(folder).iterdir() if p.name != "notes.txt")


@probe
def offloaded_after_error(student, x, at_least):
    """Return what came out of a `with` whose body raised, and the files of what is saved later."""
    x = x.clone().requires_grad_()
    with tempfile.TemporaryDirectory() as folder, fresh_garbage():
        came = "nothing"
        try:
            with student.offloading(folder, at_least):
                raise KeyError("by the body")
        except KeyError:
            came = "KeyError"
        total = (x * 2).square().sum()
        files = sizes_in(folder)
        del total
        return {"came": came, "files": files}


@probe
def offloaded_twice(student, kinds, x, w, at_least):
    """Return gradients of two graphs that wait in one folder at once, and what is left of files."""
    leaves, counts = [], []
    with tempfile.TemporaryDirectory() as folder, fresh_garbage():
        totals = []
        for scale in (1.0, 2.0):
            one, two = (scale * x).requires_grad_(), nn.Parameter(w.clone())
            leaves += [one, two]
            with student.offloading(folder, at_least):
                totals.append(compute(kinds, one, two, []))
            counts.append(len(sizes_in(folder)))
        totals[0].backward()
        del totals[0]
        gc.collect()
        counts.append(len(sizes_in(folder)))
        totals[0].backward()
        totals.clear()
        gc.collect()
        counts.append(len(sizes_in(folder)))
    return {"grads": [leaf.grad for leaf in leaves], "counts": counts}
