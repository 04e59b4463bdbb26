"""The probe of `MiniModule`: scripts that run on it as they do on `nn.Module`."""

import copy

import torch
from torch import nn

from grader import probe

from .module_graphs import TorchModule


@probe
def mini_script(student, script):
    """Run one of the scripts below on the student's MiniModule; and say whether it is torch's."""
    found = SCRIPTS[script](student.MiniModule)
    return {"found": found, "is torch's": issubclass(student.MiniModule, TorchModule)}


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
