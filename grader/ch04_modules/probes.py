"""Chapter 4's probes: all of the chapter that runs beside a student's code."""

import copy
import gc
import weakref
from collections import OrderedDict
from contextlib import suppress
from itertools import islice

import torch
from torch import nn

from grader import probe

MOST = 5000
"""Most pairs taken from a walk: one that repeats itself for ever must end, too."""


def build(graph, kind=nn.Module):
    """Return the modules and the tensors that `graph` describes.

    Three lists of descriptions, which refer to each other by number or have None instead:
    "modules" of {"children", "parameters", "buffers"}, each a list of [name, number] (buffers have a
    third: persistent); "parameters" and "buffers" of shapes. Each tensor is filled with its number.
    """
    modules = [kind() for _ in graph["modules"]]
    parameters = [
        nn.Parameter(torch.full(shape, float(n))) for n, shape in enumerate(graph["parameters"])
    ]
    buffers = [torch.full(shape, 100.0 + n) for n, shape in enumerate(graph["buffers"])]
    for module, entry in zip(modules, graph["modules"], strict=True):
        for name, number in entry["children"]:
            module.add_module(name, None if number is None else modules[number])
        for name, number in entry["parameters"]:
            module.register_parameter(name, None if number is None else parameters[number])
        for name, number, persistent in entry["buffers"]:
            buffer = None if number is None else buffers[number]
            module.register_buffer(name, buffer, persistent=persistent)
    return modules, parameters, buffers


def numbered(walk, objects):
    """Return a walk's pairs, each object as its number in `objects`, or its type's name."""
    numbers = {id(item): number for number, item in enumerate(objects)}
    return [(name, numbers.get(id(item), type(item).__name__)) for name, item in walk]


class _Bare(nn.Module):
    """A module without walks: what an exercise asks to build is not there to be called."""

    def _off_limits(self, *args, **kwargs):
        raise RuntimeError("PyTorch's own walks are off limits here.")

    named_modules = modules = named_children = children = _off_limits


@probe
def walked(student, graphs, options, memo):
    """Return for each graph the pairs of its root's walk, and the memo afterwards.

    `options` are passed on; `memo` lists the modules that are in it beforehand, or is None.
    """
    found = []
    for graph in graphs:
        modules, _, _ = build(graph, _Bare)
        passed = dict(options)
        if memo is not None:
            passed["memo"] = {modules[number] for number in memo if number < len(modules)}
        pairs = list(islice(student.named_modules(modules[0], **passed), MOST))
        after = passed.get("memo", ())
        found.append((numbered(pairs, modules), [n for n, m in enumerate(modules) if m in after]))
    return found


@probe
def walked_twice(student, graph):
    """Return the pairs of two walks over one model, one after the other."""
    modules, _, _ = build(graph, _Bare)
    walks = [islice(student.named_modules(modules[0]), MOST) for _ in range(2)]
    return [numbered(walk, modules) for walk in walks]


@probe
def walked_containers(student):
    """Return the names of a walk over containers, some of which hold nothing: Python calls them false."""
    block = nn.ModuleDict({"waiting": nn.ModuleList()})
    model = nn.Sequential(OrderedDict(empty=nn.Sequential(), block=block, last=nn.ReLU()))
    return [name for name, _ in islice(student.named_modules(model), MOST)]


@probe
def walked_at_first(student, graph, options, count):
    """Return the first `count` pairs of a walk, and how many modules were looked into for them."""
    looked = []

    class Watched(_Bare):
        def __getattribute__(self, name):
            if name == "_modules":
                looked.append(id(self))
            return super().__getattribute__(name)

    modules, _, _ = build(graph, Watched)
    looked.clear()
    pairs = list(islice(iter(student.named_modules(modules[0], **options)), count))
    return {"pairs": numbered(pairs, modules), "looked into": len(set(looked))}


@probe
def listed(student, graphs, kind, options):
    """Return for each graph the pairs of `named_tensors`."""
    found = []
    for graph in graphs:
        modules, parameters, buffers = build(graph)
        if options.get("frozen"):
            for parameter in parameters:
                parameter.requires_grad_(False)
        passed = {key: value for key, value in options.items() if key != "frozen"}
        pairs = list(islice(student.named_tensors(modules[0], kind, **passed), MOST))
        found.append(numbered(pairs, parameters if kind == "parameters" else buffers))
    return found


@probe
def listed_views(student):
    """Return the names of parameters that share memory, are equal, or are empty."""
    memory = torch.ones(4)
    module = nn.Module()
    for name in ("whole", "again"):
        module.register_parameter(name, nn.Parameter(memory))
    for name in ("empty", "also_empty"):
        module.register_parameter(name, nn.Parameter(torch.empty(0)))
    for name in ("one", "equal"):
        module.register_parameter(name, nn.Parameter(torch.ones(1)))
    module.register_parameter("one_again", module.one)
    return [name for name, _ in student.named_tensors(module, "parameters")]


_TorchModule = (
    nn.Module
)  # a fixed name: the tripwire replaces the other while a student's code runs


@probe
def mini_script(student, script):
    """Run one of the scripts below on the student's MiniModule; and say whether it is torch's."""
    found = SCRIPTS[script](student.MiniModule)
    return {"found": found, "is torch's": issubclass(student.MiniModule, _TorchModule)}


def attempt(action, *args):
    """Return what an action gives, or the name of what it raises."""
    try:
        return action(*args)
    except (AttributeError, TypeError, KeyError, RecursionError) as error:
        return type(error).__name__


def _names(module):
    """Return all names that a module's walks give."""
    return {
        "children": [name for name, _ in module.named_children()],
        "parameters": [name for name, _ in module.named_parameters()],
        "buffers": [name for name, _ in module.named_buffers()],
        "parameters()": sum(1 for _ in module.parameters()),
        "modules": [type(found).__name__ for found in module.modules()],
    }


def _layer(base):
    """Return a class of modules with two parameters and a buffer."""

    class Layer(base):
        def __init__(self, size=2):
            super().__init__()
            self.weight = nn.Parameter(torch.full((size,), 3.0))
            self.bias = nn.Parameter(torch.zeros(size), requires_grad=False)
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, x, *, plus=0):
            return x * self.weight + self.bias + plus

    return Layer


def _net(base):
    """Return a module with children, two of them the same and one within another."""
    layer = _layer(base)

    class Net(base):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))
            self.first = layer()
            self.inner = base()
            self.inner.deep = layer()
            self.inner.again = self.first
            self.last = self.first
            self.tied = layer()
            self.tied.weight = self.first.weight

        def forward(self, x):
            return self.tied(self.last(self.first(x))) * self.scale

    return Net()


def _registers(base):
    net = _net(base)
    # assigned once more a name keeps its place; names of Python's own make do as well
    net.scale = nn.Parameter(torch.ones(2))
    net.update = nn.Parameter(torch.ones(1))
    return _names(net), net.scale.shape, net.first is net.last, net.inner.deep.weight.tolist()


def _slips_through(base):
    module = base()
    module.a_list = [_layer(base)(), nn.Parameter(torch.ones(1))]
    module.a_dict = {"layer": _layer(base)()}
    module.a_tensor = torch.ones(2)
    module.wants_grad = torch.ones(2, requires_grad=True)
    module.number, module.text = 3, "three"
    return _names(module), len(module.a_list), module.a_tensor, module.number, module.text


def _reassigns(base):
    found = []
    net = _net(base)
    for name, value in (("scale", torch.ones(1)), ("scale", 3), ("first", "text"), ("last", len)):
        found.append(attempt(setattr, net, name, value))
    net.scale = net.inner = None
    found += [_names(net), net.scale, net.inner]
    net.scale = nn.Parameter(torch.ones(3))
    net.first, net.last = nn.Parameter(torch.zeros(1)), _layer(base)(1)
    found += [_names(net), net.scale.shape, net.first.shape, net.last.weight.shape]
    net.number = 3
    net.number = nn.Parameter(torch.ones(4))
    net.seen = torch.ones(1)
    net.seen = _layer(base)(5)
    found += [_names(net), net.number.shape, net.seen.weight.shape]
    found.append(attempt(setattr, net, "scale", _layer(base)(6)))
    del net.scale
    net.scale = _layer(base)(6)
    net.last.seen = _layer(base)(1)
    net.tied.seen = nn.Parameter(torch.ones(1))
    net.seen = nn.Parameter(torch.ones(7))
    return [*found, _names(net), net.scale.weight.shape, net.seen.shape]


def _reads(base):
    class Odd(base):
        shared_by_class = "class"

        @property
        def doubled(self):
            return self.weight * 2

    odd = Odd()
    odd.weight = nn.Parameter(torch.ones(2))
    found = [hasattr(odd, name) for name in ("weight", "bias", "doubled", "shared_by_class")]
    found += [attempt(getattr, odd, "missing"), getattr(odd, "missing", "default")]
    try:
        odd.wieght  # noqa: B018
    except AttributeError as error:
        found.append("wieght" in str(error))
    return [*found, odd.doubled.tolist(), odd.shared_by_class]


def _deletes(base):
    net = _net(base)
    net.number = 3
    net.empty = nn.Parameter(torch.ones(1))
    net.empty = None
    for name in ("scale", "inner", "number", "empty"):
        delattr(net, name)
    del net.first.seen
    found = [hasattr(net, name) for name in ("scale", "inner", "number", "empty", "first")]
    found += [attempt(delattr, net, "scale"), attempt(delattr, net, "never"), _names(net)]
    net.scale = 3  # an ordinary name now
    return [*found, net.scale, _names(net)]


def _too_early(base):
    layer = _layer(base)

    class Early(base):
        def __init__(self, value):
            self.plain = "plain"
            self.early = value
            super().__init__()

    class Reads(base):
        def __init__(self):
            self.missing  # noqa: B018

    class Deletes(base):
        def __init__(self):
            del self.missing

    found = [attempt(Early, value) for value in (nn.Parameter(torch.ones(1)), layer())]
    found += [attempt(Reads), attempt(Deletes)]
    early = Early([1, 2])
    return [*found, early.plain, early.early, _names(early)]


def _buffers(base):
    module = _layer(base)()
    found = [module.seen.item(), "seen" in dict(module.named_buffers())]
    module.seen = torch.ones(2)
    found += [module.seen.tolist(), _names(module), attempt(setattr, module, "seen", 3)]
    module.seen = None
    found += [module.seen, _names(module)]
    module.seen = torch.zeros(1)
    module.register_buffer("mask", None)
    found += [module.seen.tolist(), module.mask, _names(module)]
    module.mask = torch.ones(3)
    module.tied = torch.ones(1)
    parent = base()
    parent.register_buffer("mask", module.mask)
    parent.child = module
    found += [_names(module), _names(parent)]
    # a name that was an ordinary attribute: refused, or a buffer from then on; not both
    module.number = 3
    attempt(module.register_buffer, "number", torch.ones(2))
    is_buffer = "number" in dict(module.named_buffers())
    found.append(is_buffer == isinstance(module.number, torch.Tensor))
    module.register_buffer("mask", torch.ones(4))  # a buffer may be registered anew
    return [*found, module.mask.tolist()]


def _modes(base):
    net = _net(base)
    found = [[module.training for module in net.modules()]]
    found.append(net.eval() is net)
    found.append([module.training for module in net.modules()])
    found.append(net.inner.train() is net.inner)
    found.append([module.training for module in net.modules()])
    found.append(net.train(True) is net)
    found.append([module.training for module in net.modules()])
    net.train(mode=False)
    return [*found, [module.training for module in net.modules()]]


def _applies(base):
    net = base()
    net.a, net.b = base(), _layer(base)()
    net.a.c, net.none = _layer(base)(), base()
    net.none = None
    for name, module in (("net", net), ("a", net.a), ("b", net.b), ("c", net.a.c)):
        module.name = name
    order = []
    found = [net.apply(lambda module: order.append(module.name)) is net, order]
    x = torch.tensor([1.0, 2.0])
    (net.b(x).sum() + net.a.c(x, plus=5).sum()).backward()
    found += [net.b(x, plus=1).tolist(), net.b.weight.grad.tolist()]
    net.zero_grad()
    return [*found, [parameter.grad for parameter in net.parameters()]]


def _copies(base):
    net = _net(base)
    net.number = [1, 2]
    twin = copy.deepcopy(net)
    with torch.no_grad():
        twin.first.weight.fill_(7.0)
    twin.number.append(3)
    twin.extra = nn.Parameter(torch.ones(1))
    found = [_names(net), _names(twin), net.first.weight.tolist(), twin.last.weight.tolist()]
    return [*found, twin.tied.weight is twin.first.weight, net.number, twin.training]


SCRIPTS = {
    "registers": _registers,
    "slips through": _slips_through,
    "reassigns": _reassigns,
    "reads": _reads,
    "deletes": _deletes,
    "too early": _too_early,
    "buffers": _buffers,
    "modes": _modes,
    "applies": _applies,
    "copies": _copies,
}


@probe
def collected(student, graphs):
    """Return for each graph the names, and each tensor as a number, of `collect_state`."""
    found = []
    for graph in graphs:
        modules, parameters, buffers = build(graph)
        tensors, _ = student.collect_state(modules[0])
        where = {tensor.data_ptr(): n for n, tensor in enumerate([*parameters, *buffers])}
        found.append([(name, where.get(tensor.data_ptr())) for name, tensor in tensors.items()])
    return found


@probe
def collected_once(student):
    """Return the tensors of a small model, collected before its values change; and whose they are."""
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model[1].bias.requires_grad_(False)
    model.register_buffer("computed", model[0].weight.sum() * 2)
    tensors, _ = student.collect_state(model)
    graph_stays = model.computed.requires_grad
    with torch.no_grad():
        for number, tensor in enumerate(model.state_dict().values()):
            tensor.fill_(number)
    types = {type(tensor).__name__ for tensor in tensors.values()}
    return {
        "tensors": dict(tensors),
        "types": sorted(types),
        "now": model.state_dict(),
        "graph stays": graph_stays,
    }


@probe
def versions(student, graph, others):
    """Return the versions that `collect_state` gives; `others` are pairs of module and version."""
    modules, _, _ = build(graph)
    for number, version in others:
        modules[number].__class__ = type("Versioned", (nn.Module,), {"_version": version})
    _, found = student.collect_state(modules[0])
    return list(dict(found).items())


@probe
def loaded(student, graph, tensors, options):
    """Load `tensors`; return what came of it, and the model's tensors afterwards."""
    modules, parameters, buffers = build(graph)
    for parameter in parameters[1::2]:
        parameter.requires_grad_(False)
    objects = [dict(module._parameters) for module in modules]
    given = dict(tensors)
    report, error = None, None
    try:
        report = student.load_state(modules[0], given, **options)
    except RuntimeError as raised:
        error = str(raised)
    same = all(
        module._parameters.get(name) is parameter
        for module, before in zip(modules, objects, strict=True)
        for name, parameter in before.items()
    )
    addresses = {tensor.data_ptr() for tensor in tensors.values() if tensor.numel()}
    now = [t for m in modules for t in [*m._parameters.values(), *m._buffers.values()]]
    return {
        "report": report,
        "error": error,
        "parameters": [parameter.detach() for parameter in parameters],
        "buffers": list(buffers),
        "wants grad": [parameter.requires_grad for parameter in parameters],
        "same objects": same,
        "shares memory": any(t is not None and t.data_ptr() in addresses for t in now),
        "names given": list(given),
    }


@probe
def upgraded(student, tensors, saved, as_root):
    """Load into a model whose modules upgrade old entries; return the calls and the tensors.

    The model stands in another under the name `net`, or by itself if `as_root`.
    """
    calls = []

    class Scale(nn.Module):
        _version = 3

        def __init__(self):
            super().__init__()
            self.gain = nn.Parameter(torch.zeros(2))

        def upgrade(self, entries, version):
            calls.append(("scale", sorted(entries), version))
            if version is None and "weight" in entries:  # as it was before there were versions
                entries["gain"] = entries.pop("weight")
            return {name: tensor * 2 for name, tensor in entries.items()}

    class Model(nn.Module):
        _version = 2

        def __init__(self):
            super().__init__()
            self.layer1 = Scale()
            self.layer10 = Scale()
            self.shared = self.layer1
            self.plain = nn.Linear(2, 1, bias=False)

        def upgrade(self, entries, version):
            calls.append(("model", sorted(entries), version))
            return {name.replace("old_layer", "layer"): tensor for name, tensor in entries.items()}

    net = Model()
    model = net if as_root else nn.ModuleDict({"net": net})
    given, given_versions = dict(tensors), None if saved is None else dict(saved)
    report, error = None, None
    try:
        report = student.load_state(model, given, given_versions)
    except RuntimeError as raised:
        error = str(raised)
    return {
        "calls": calls,
        "report": report,
        "error": error,
        "layer1": net.layer1.gain.detach(),
        "layer10": net.layer10.gain.detach(),
        "plain": net.plain.weight.detach(),
        "names given": list(given),
        "versions given": given_versions,
    }


class _Scale(nn.Module):
    """A learned scale: a vector that is neither a bias nor a norm's."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))


class _NormedScale(_Scale):
    """A scale whose class is merely called like a norm."""


class _Standardise(nn.LayerNorm):
    """A norm whose class is called otherwise."""


KINDS = {
    "linear": lambda: nn.Linear(2, 2),
    "no bias": lambda: nn.Linear(2, 2, bias=False),
    "conv": lambda: nn.Conv1d(2, 2, 1),
    "embedding": lambda: nn.Embedding(2, 2),
    "lstm": lambda: nn.LSTM(2, 2),
    "attention": lambda: nn.MultiheadAttention(2, 1),
    "scale": _Scale,
    "batch norm": lambda: nn.BatchNorm1d(2),
    "instance norm": lambda: nn.InstanceNorm2d(2, affine=True),
    "layer norm": lambda: nn.LayerNorm(2),
    "group norm": lambda: nn.GroupNorm(1, 2),
    "rms norm": lambda: nn.RMSNorm(2),
    "own norm": lambda: _Standardise(2),
    "called norm": _NormedScale,
    "relu": nn.ReLU,
}


def assemble(layers, ties=()):
    """Return a model of `layers`, pairs of dotted path and kind, with some parameters tied.

    A kind that begins with "=" is another layer's path: the same module. A tie is a pair of dotted
    parameter names; the first becomes the second.
    """
    model = nn.Module()
    for path, kind in layers:
        owner = model
        *above, last = path.split(".")
        for name in above:
            if name not in owner._modules:
                owner.add_module(name, nn.Module())
            owner = owner._modules[name]
        module = model.get_submodule(kind[1:]) if kind[0] == "=" else KINDS[kind]()
        owner.add_module(last, module)
    for name, other in ties:
        path, _, last = name.rpartition(".")
        setattr(model.get_submodule(path), last, model.get_parameter(other))
    return model


@probe
def grouped(student, layers, ties, beforehand, frozen, decay):
    """Return the groups by the parameters' first names, and what is frozen afterwards."""
    model = assemble(layers, ties)
    for name in beforehand:
        model.get_parameter(name).requires_grad_(False)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    arguments = (model, decay) if frozen is None else (model, decay, frozen)
    groups, error = None, None
    try:
        groups = student.parameter_groups(*arguments)
        torch.optim.SGD([dict(group) for group in groups if group["params"]] or [{"params": []}])
    except ValueError as raised:
        error = "ValueError" if groups is None else str(raised)
    found = groups and [
        ([names.get(id(p), "?") for p in group["params"]], group["weight_decay"])
        for group in groups
    ]
    now_frozen = [name for name, p in model.named_parameters() if not p.requires_grad]
    return {"groups": found, "frozen": now_frozen, "error": error}


class _Own(nn.Linear):
    """A subclass of nn.Linear."""


class _LinearLike(nn.Module):
    """A layer that is called like nn.Linear, has its attributes, and is none."""

    def __init__(self):
        super().__init__()
        self.in_features = self.out_features = 2
        self.weight = nn.Parameter(torch.ones(2, 2))


class _Wrapper(nn.Module):
    """What `wrap` makes: twice what the layer gives."""

    def __init__(self, path, inner, number):
        super().__init__()
        self.path, self.number, self.inner = path, number, inner

    def forward(self, x):
        return 2 * self.inner(x)


LAYERS = {
    "linear": lambda: nn.Linear(2, 2),
    "own": lambda: _Own(2, 2),
    "bilinear": lambda: nn.Bilinear(2, 2, 2),
    "called linear": _LinearLike,
    "module": nn.Module,
}


@probe
def replaced(student, graph, kinds, fails_at):
    """Replace; return what came back, the calls, and every name with what is there afterwards.

    `kinds` has a kind of `LAYERS` for each module; `wrap` raises at call number `fails_at`.
    """
    # modules that are registered in order, as in `build`, but of different kinds
    pending = iter(kinds)
    modules, _, _ = build(graph, lambda: LAYERS[next(pending)]())
    calls, wrappers = [], []

    def wrap(path, linear):
        if len(calls) == fails_at:
            raise LookupError("wrap")
        calls.append((path, *[n for n, m in enumerate(modules) if m is linear]))
        wrappers.append(_Wrapper(path, linear, len(wrappers)))
        return wrappers[-1]

    result, error = None, None
    try:
        result = student.replace_linears(modules[0], wrap)
    except LookupError:
        error = "LookupError"
    names = {id(module): f"module {n}" for n, module in enumerate(modules)}
    names |= {id(wrapper): f"wrapper {n}" for n, wrapper in enumerate(wrappers)}
    root = modules[0] if result is None else result
    walk = islice(root.named_modules(remove_duplicate=False), MOST)
    return {
        "result": names.get(id(result)),
        "calls": calls,
        "error": error,
        "names": [(name, names.get(id(module), type(module).__name__)) for name, module in walk],
    }


@probe
def replaced_forward(student, x):
    """Return what models give before and after their linear layers were doubled."""

    class Skips(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(2, 2)
            self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(2, 2)), _Own(2, 2)])
            self.last = self.first

        def forward(self, x, double=1):
            x = x + double * self.first(x)
            for block in self.blocks:
                x = x + double * block(x)
            return x + double * self.last(x)

    model = Skips()
    expected = model(x, double=2)
    after = student.replace_linears(model, lambda path, linear: _Wrapper(path, linear, 0))
    return {
        "expected": expected.detach(),
        "got": after(x).detach(),
        "same": model.first is model.last,
        "parameters": sum(1 for _ in model.parameters()),
    }


class _Watched(nn.Module):
    """A model with an in-place layer, a shared one, and outputs of several kinds."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(3, 3)
        self.act = nn.ReLU(inplace=True)
        self.block = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
        self.again = self.stem
        self.unused = nn.Linear(3, 3)
        with torch.no_grad():
            for number, parameter in enumerate(self.parameters()):
                values = torch.arange(parameter.numel()) + 3.0 * number
                parameter.copy_(values.sin().reshape(parameter.shape))

    def forward(self, x):
        return self.block(self.act(self.again(self.act(self.stem(x)))))


def recorded_by_hand(x, calls):
    """Return the outputs of each layer of `_Watched`, computed step by step."""
    model, seen = _Watched(), {"stem": [], "act": [], "block.0": [], "block": [], "unused": []}
    with torch.no_grad():
        for _ in range(calls):
            for given in (lambda: x, lambda: seen["act"][-1]):
                seen["stem"].append(model.stem(given()))
                seen["act"].append(seen["stem"][-1].clamp(min=0))
            seen["block.0"].append(model.block[0](seen["act"][-1]))
            seen["block"].append(seen["block.0"][-1].tanh())
    return seen


@probe
def recorded(student, x, paths, calls):
    """Record `calls` calls; return what was seen, in pairs to keep the order."""
    model = _Watched()
    with student.recording(model, paths) as seen:
        for _ in range(calls):
            model(x)
    return [(path, list(outputs)) for path, outputs in dict(seen).items()]


@probe
def recorded_gradients(student, x):
    """Return output and gradients of a call, watched and not; and what changed what is recorded."""
    found = {}
    for watched in (True, False):
        model = _Watched()
        leaf = x.clone().requires_grad_()
        if watched:
            with student.recording(model, ["stem", "block.1", "act"]) as seen:
                found["grad enabled"] = torch.is_grad_enabled()
                y = model(leaf)
        else:
            y = model(leaf)
        if y.requires_grad:
            y.sum().backward()
        grads = [leaf.grad, *(p.grad for p in model.parameters() if p.grad is not None)]
        found["watched" if watched else "alone"] = [y.detach(), *grads]
    return {**found, "seen": dict(seen)}


class _Handing(nn.Module):
    """A model that changes in place what an identity handed on, and gives something odd beside it."""

    def __init__(self):
        super().__init__()
        self.norm, self.same, self.odd = nn.BatchNorm1d(3), nn.Identity(), _Odd()

    def forward(self, x):
        x = self.norm(x)
        self.same(x).mul_(2)
        self.odd(x)
        return x


class _Odd(nn.Module):
    """A layer whose output holds an object of its own; or that fails."""

    fails, thing = False, object()

    def forward(self, x):
        if self.fails:
            raise LookupError("forward")
        return self.thing, x


@probe
def recorded_by_the_way(student, x):
    """Return a model's output alone and watched, what was kept of an object, and of a failed call."""
    found = {"alone": _Handing()(x).detach()}
    model = _Handing()
    with student.recording(model, ["same", "odd"]) as seen:
        found["watched"] = model(x).detach()
        model.odd.fails = True
        with suppress(LookupError):
            model(x)
    found["kept"] = seen["odd"][0][0] is _Odd.thing
    return {**found, "outputs": [len(seen["same"]), len(seen["odd"])]}


class _Structured(nn.Module):
    def forward(self, x):
        half = x * 0.5
        parts = {"half": half, "pair": [x + 1, None], 7: "text", "deep": ({"x": half.double()},)}
        return half, parts, 3


@probe
def recorded_structure(student, x):
    """Return what was recorded of an output that is a tuple of many things, changed afterwards."""
    model = nn.Sequential(_Structured())
    with student.recording(model, ["0"]) as seen:
        result = model(x)
        tensors = [result[0], *result[1]["pair"][:1], result[1]["deep"][0]["x"]]
        for tensor in tensors:
            tensor.zero_()
    return seen["0"]


def _hook_count(model):
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return sum(len(getattr(m, kind)) for m in model.modules() for kind in kinds)


@probe
def recorded_ends(student, x):
    """Return what is left on the model after a `with` that ended well, and others that did not."""
    model, others = _Watched(), []
    model.stem.register_forward_hook(lambda *_: others.append("before"))
    found = {"before": _hook_count(model)}
    with student.recording(model, ["stem", "block"]) as seen:
        model.stem.register_forward_hook(lambda *_: others.append("during"))
        model(x)
    others.clear()
    model(x)
    found |= {"well": _hook_count(model) - 1, "others": list(others)}
    found["counts"] = [len(outputs) for outputs in seen.values()]
    try:
        with student.recording(model, ["act", "block"]) as seen:
            model(x)
            raise LookupError
    except LookupError:
        found["reaches the caller"] = True
    model(x)
    found |= {"error": _hook_count(model) - 1, "after an error": [len(o) for o in seen.values()]}
    for number, paths in enumerate(
        (["nowhere"], ["stem", "block.7"], ["act", "block.x.y", "stem"])
    ):
        try:
            with student.recording(model, paths):
                found[f"wrong {number}"] = "entered"
        except AttributeError:
            found[f"wrong {number}"] = _hook_count(model) - 1
    return found


@probe
def recorded_nested(student, x):
    """Return the counts of two recorders, one in the other, on the same layers."""
    model = _Watched()
    with student.recording(model, ["stem", "act"]) as outer:
        model(x)
        with student.recording(model, ["act", "block"]) as inner:
            model(x)
        model(x)
    return [{path: len(outputs) for path, outputs in seen.items()} for seen in (outer, inner)]


@probe
def recorded_alive(student, x):
    """Say whether the model lives on when only the record is kept."""
    model = _Watched()
    with student.recording(model, ["", "stem", "block"]) as seen:
        model(x)
    alive = weakref.ref(model)
    del model
    gc.collect()
    return {"alive": alive() is not None, "root": len(seen[""])}


class _Tied(nn.Module):
    """A model with a tied weight, a shared module, a buffer that counts, and hooks."""

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.first = nn.Linear(3, 3)
        self.shared = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Tanh())
        self.again = self.shared
        self.tied = nn.Linear(3, 3)
        self.tied.weight = self.first.weight
        self.pair = nn.ParameterDict({"a": torch.zeros(3), "b": torch.ones(3)})
        self.pairs = nn.ModuleList([self.pair])
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("total", torch.zeros(()), persistent=False)
        with torch.no_grad():
            for number, parameter in enumerate(self.parameters()):
                values = torch.arange(parameter.numel()) + 5.0 * number
                parameter.copy_(values.sin().reshape(parameter.shape))

    def forward(self, x, *, scale=1.0, fail=False):
        self.calls += 1
        self.count += 1
        self.total += x.detach().sum()
        x = self.again(self.tied(self.shared(self.first(x))))
        if fail:
            raise LookupError("forward")
        return x * self.pair["a"] * scale + self.pairs[0]["b"]


def _registries(module):
    """Return what each registry holds, in order, by identity; and each module's mode."""
    return [
        (path, owner.training, [(key, id(tensor)) for key, tensor in registry.items()])
        for path, owner in module.named_modules(remove_duplicate=False)
        for registry in (owner._parameters, owner._buffers, owner._modules)
    ]


@probe(in_place=("tensors",))
def called(student, tensors, x, options, call, same):
    """Call a model with `tensors`; return what came of it, and in what state the model is.

    `options` go to functional_call, `call` are the keyword arguments of forward; `same` are pairs of
    names of which the second gets the very tensor of the first.
    """
    model, hooked = _Tied(), []
    given = {**tensors, **{other: tensors[name] for name, other in same}}
    model.register_forward_hook(lambda *_: hooked.append("model"))
    model.first.register_forward_hook(lambda *_: hooked.append("first"))
    before = _registries(model)
    values = {name: tensor.detach().clone() for name, tensor in model.named_parameters()}
    result, error = None, None
    try:
        result = student.functional_call(model, given, (x,), call, **options)
    except (RuntimeError, ValueError, LookupError) as raised:
        error = type(raised).__name__
    kept = all(torch.equal(p.detach(), values[name]) for name, p in model.named_parameters())
    return {
        "result": result if result is None else result.detach(),
        "error": error,
        "names given": list(given),
        "untouched": _registries(model) == before and kept,
        "calls": model.calls,
        "hooked": hooked,
        "count": model.count.detach(),
        "total": model.total.detach(),
    }


@probe
def called_swapped(student, x, names):
    """Let two of the model's own parameters change places for one call."""
    model = _Tied()
    before = _registries(model)
    one, other = (model.get_parameter(name) for name in names)
    result = student.functional_call(model, {names[0]: other, names[1]: one}, (x,))
    return {"result": result.detach(), "untouched": _registries(model) == before}


@probe
def called_gradients(student, tensors, x):
    """Return the gradients of the given tensors, and whether the model's own have any."""
    model = _Tied()
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in tensors.items()}
    student.functional_call(model, dict(leaves), (x,)).square().sum().backward()
    return {
        "grads": {name: leaf.grad for name, leaf in leaves.items()},
        "own": [n for n, p in model.named_parameters() if p.grad is not None],
    }


@probe
def called_views(student, given):
    """Replace one of two parameters that lie in the same memory, then one of two empty ones."""
    memory, model = torch.ones(2), nn.Module()
    model.one, model.two = nn.Parameter(memory), nn.Parameter(memory)
    model.none, model.empty = nn.Parameter(torch.ones(0)), nn.Parameter(torch.ones(0))
    model.forward = lambda: (model.one + 10 * model.two, model.empty)
    found, _ = student.functional_call(model, {"one": given})
    _, empty = student.functional_call(model, {"none": given})
    return {"found": found.detach(), "empty": empty.detach()}


@probe
def called_transforms(student, tensors, x):
    """Return an ensemble's outputs, and a gradient's gradient, through torch's transforms."""
    model = nn.Sequential(nn.Linear(3, 2), nn.Tanh())

    def run(given, x):
        return student.functional_call(model, given, (x,))

    def loss(given):
        return run(given, x).square().sum()

    ensemble = torch.vmap(run, in_dims=(0, None))(tensors, x)
    one = {name: tensor[0] for name, tensor in tensors.items()}
    direction = {name: torch.ones_like(tensor) for name, tensor in one.items()}
    _, curvature = torch.func.jvp(torch.func.grad(loss), (one,), (direction,))
    return {"ensemble": ensemble, "curvature": curvature}


@probe
def called_on(student, weight, x):
    """Return what a single layer gives with another weight, and without any argument to change."""
    layer = nn.Linear(3, 2, bias=False)
    layer.extra = None
    bare = _Scale()
    bare.forward = lambda: bare.scale * 3
    return {
        "layer": student.functional_call(layer, {"weight": weight}, (x,)).detach(),
        "bare": student.functional_call(bare, {"scale": weight[0]}).detach(),
        "nothing": student.functional_call(bare, {}).detach(),
    }


def norm_run(make, options, batches, plan, state):
    """Run a norm over `batches`; `plan` has "train" or "eval" for each.

    Returns outputs, the state after each batch, and the gradients of a sum of squares.
    """
    norm = make(batches[0].shape[1], **options)
    dtype = batches[0].dtype
    norm.to(dtype)
    if state:
        norm.load_state_dict(state)
    outputs, states = [], []
    for x, mode in zip(batches, plan, strict=True):
        norm.train(mode == "train")
        outputs.append(norm(x).detach())
        states.append({name: tensor.clone() for name, tensor in norm.state_dict().items()})
    norm.train()
    x = batches[-1].clone().requires_grad_()
    grads = []
    if x.numel() > x.shape[1]:
        weights = torch.arange(x.numel(), dtype=dtype).sin().reshape(x.shape)
        (norm(x).square() * weights).sum().backward()
        grads = [x.grad, *(p.grad for p in norm.parameters())]
    return {"outputs": outputs, "states": states, "grads": grads}


@probe
def normed(student, cases, what):
    """Return what the student's norm gives for `norm_run`, case by case; of it the parts in `what`."""
    found = [norm_run(student.BatchNorm, *case) for case in cases]
    return [{kind: one[kind] for kind in what} for one in found]


@probe
def norm_made(student, by_position, by_name):
    """Return the registries of a fresh norm: names with values, in any order, and its type."""
    norm = student.BatchNorm(3, *by_position, **by_name)
    return {
        "parameters": dict(sorted(norm._parameters.items())),
        "buffers": dict(sorted(norm._buffers.items())),
        "state": dict(norm.state_dict()),
        "is a module": isinstance(norm, nn.Module),
        "modules": [type(module).__name__ for module in norm.modules()][1:],
    }


@probe
def norm_graphs(student, x):
    """Return which buffers hang on a graph after two batches that want a gradient."""
    norm = student.BatchNorm(x.shape[1])
    for _ in range(2):
        norm(x.clone().requires_grad_())
    return [name for name, buffer in norm._buffers.items() if buffer.requires_grad]


@probe
def norm_refuses(student, x):
    """Return the errors of single numbers per channel, and the state afterwards."""
    norm, found = student.BatchNorm(x.shape[1]), []
    untracked = student.BatchNorm(x.shape[1], track_running_stats=False)
    for one, mode in ((norm, True), (norm, False), (untracked, True), (untracked, False)):
        one.train(mode)
        try:
            found.append(one(x).detach())
        except ValueError:
            found.append("ValueError")
        except RuntimeError:
            found.append("RuntimeError")
    return {"found": found, "state": dict(norm.state_dict())}


CONVS = {
    1: (nn.Conv1d, nn.BatchNorm1d),
    2: (nn.Conv2d, nn.BatchNorm2d),
    3: (nn.Conv3d, nn.BatchNorm3d),
}


def conv_and_norm(dims, options, norm_options, tensors):
    """Return a convolution and a norm with these options, their tensors filled from `tensors`."""
    make_conv, make_norm = CONVS[dims]
    conv = make_conv(**options)
    norm = make_norm(options["out_channels"], **norm_options)
    dtype = tensors["weight"].dtype
    conv.to(dtype), norm.to(norm_options.get("dtype", dtype))
    with torch.no_grad():
        conv.weight.copy_(tensors["weight"])
        for owner, name, source in (
            (conv, "bias", "conv bias"),
            (norm, "weight", "gain"),
            (norm, "bias", "shift"),
            (norm, "running_mean", "mean"),
            (norm, "running_var", "variance"),
        ):
            if getattr(owner, name) is not None:
                getattr(owner, name).copy_(tensors[source])
    return conv, norm.eval()


@probe
def folded(student, dims, options, norm_options, tensors, x, frozen=False):
    """Fold; return what the new convolution gives, what it is, and whether the old ones changed."""
    conv, norm = conv_and_norm(dims, options, norm_options, tensors)
    conv.requires_grad_(not frozen)
    owners = (conv, norm)
    before = [{n: t.clone() for n, t in owner.state_dict().items()} for owner in owners]
    result = student.fold_batch_norm(conv, norm)
    after = [owner.state_dict() for owner in owners]
    kept = [
        list(b) == list(a) and all(torch.equal(b[name], a[name]) for name in b)
        for b, a in zip(before, after, strict=True)
    ]
    output = result(x).detach()
    settings = (
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "in_channels",
        "out_channels",
    )
    leaves = dict(result.named_parameters())
    for parameter in leaves.values():
        parameter.data.zero_()
    return {
        "output": output,
        "type": type(result).__name__,
        "settings": all(getattr(result, name, None) == getattr(conv, name) for name in settings),
        "parameters": {n: (p.is_leaf, p.requires_grad, p.dtype) for n, p in leaves.items()},
        "conv kept": kept[0] and result is not conv,
        "norm kept": kept[1],
        "modes kept": conv.training and not norm.training,
        "apart": all(bool(t.any()) for t in (conv.weight, norm.running_var)),
    }


@probe
def folded_without(student):
    """Fold a norm without running statistics."""
    norm = nn.BatchNorm2d(2, track_running_stats=False)
    return type(student.fold_batch_norm(nn.Conv2d(1, 2, 1), norm)).__name__


def fill_by_shape(model):
    """Give every tensor values that depend on its shape and its layer's type alone."""
    with torch.no_grad():
        for module in model.modules():
            own = {**module._parameters, **module._buffers}
            for name, tensor in own.items():
                if tensor is None or not tensor.is_floating_point():
                    continue
                phase = len(name) + sum(tensor.shape)
                values = (torch.arange(tensor.numel()) * 0.7 + phase).sin().reshape(tensor.shape)
                values = values.to(tensor.dtype)
                if tensor.dim() > 1:
                    values = values * (2 / tensor[0].numel()) ** 0.5
                elif name in ("weight", "running_var"):
                    values = 1 + 0.3 * values
                tensor.copy_(values)
    return model


def describe_network(make, spec):
    """Return counts of a network that is built without memory."""
    with torch.device("meta"):
        model = make(*spec)
    convs = [m for m in model.modules() if isinstance(m, nn.Conv2d)]
    linears = [m for m in model.modules() if isinstance(m, nn.Linear)]
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "buffers": sum(b.numel() for b in model.buffers()),
        "convolutions": sorted(
            [c.in_channels, c.out_channels, *c.kernel_size, *c.stride, *c.padding] for c in convs
        ),
        "biases": sum(c.bias is not None for c in convs),
        "linear": [[m.in_features, m.out_features, m.bias is not None] for m in linears],
    }


def run_network(make, spec, x, mode, zeroed):
    """Return a network's output, gradients by shape, and how often its norms were used.

    With `zeroed` its 3×3 convolutions are all zero.
    """
    torch.manual_seed(0)
    model = fill_by_shape(make(*spec).to(x.dtype))
    if zeroed:
        for module in model.modules():
            if isinstance(module, nn.Conv2d) and module.kernel_size == (3, 3):
                nn.init.zeros_(module.weight)
    model.train(mode == "train")
    output = model(x.clone())
    (output * torch.arange(output.numel()).reshape(output.shape).cos()).sum().backward()
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    grads = {}
    for parameter in model.parameters():
        total = torch.zeros(()) if parameter.grad is None else parameter.grad.double().abs().sum()
        shape = str(tuple(parameter.shape))
        grads[shape] = grads.get(shape, 0) + total
    return {
        "output": output.detach(),
        "batches": [int(norm.num_batches_tracked) for norm in norms],
        "grads": {shape: grads[shape].double() for shape in sorted(grads)},
    }


@probe
def network_described(student, spec):
    """Return the counts of the student's network."""
    return describe_network(student.resnet, spec)


@probe
def network_run(student, spec, x, mode, zeroed):
    """Return what the student's network gives for `run_network`."""
    return run_network(student.resnet, spec, x, mode, zeroed)


class _Uncallable(nn.Module):
    """A module that cannot be called: the call is what an exercise asks to build."""

    def _call_impl(self, *args, **kwargs):
        raise RuntimeError("Calling the module itself is off limits here.")

    __call__ = _wrapped_call_impl = _call_impl


class _Quit(BaseException):
    """Like KeyboardInterrupt: no `Exception`."""


def hooked_run(call, base, hooks, fails):
    """Call a module with `hooks`; return what happened, in order, what came, and which error.

    A hook is [when, what it does, with kwargs, prepended, always called].
    """
    events = []

    class Model(base):
        def forward(self, x, *more, scale=1):
            events.append(["forward", x, list(more), scale])
            if fails:
                raise LookupError("forward")
            return (len(x) if isinstance(x, list) else x) * scale + sum(more)

    model, handles = Model(), {}

    def hook_for(number, when, does, with_kwargs):
        def hook(module, args, *rest):
            rest = [dict(item) if isinstance(item, dict) else item for item in rest]
            events.append([number, module is model, list(args), rest])
            if does == "raise":
                raise ArithmeticError(str(number))
            if does == "quit":
                raise _Quit
            if does == "leave":
                handles[number].remove()
            if does == "list":
                return [number] * 3
            if does == "drop":
                return args, {}
            if does == "zero":
                return 0
            if does == "change" and when == "after":
                return rest[-1] + number if rest[-1] is not None else number
            if does == "change" and with_kwargs:
                return (args[0] + number, *args[1:]), {"scale": 3}
            return (args[0] * 2, number) if does == "change" else None

        return hook

    for number, (when, does, with_kwargs, prepend, always) in enumerate(hooks):
        hook = hook_for(number, when, does, with_kwargs)
        options = {"with_kwargs": with_kwargs, "prepend": prepend}
        if when == "before":
            handles[number] = model.register_forward_pre_hook(hook, **options)
        else:
            handles[number] = model.register_forward_hook(hook, always_call=always, **options)
    result, error = None, None
    try:
        result = call(model, 1, 2, scale=5)
    except (ArithmeticError, LookupError, RuntimeError, _Quit) as raised:
        error = type(raised).__name__
    left = len(model._forward_hooks), len(model._forward_pre_hooks)
    return {"events": events, "result": result, "error": error, "left": left}


@probe
def hooked_calls(student, cases):
    """Return what `hooked_run` finds for each case, a pair of hooks and whether forward fails."""
    own = _TorchModule._call_impl
    _TorchModule._call_impl = _Uncallable._call_impl  # by whatever road one comes to it
    try:
        return [hooked_run(student.call_hooked, _Uncallable, *case) for case in cases]
    finally:
        _TorchModule._call_impl = own
