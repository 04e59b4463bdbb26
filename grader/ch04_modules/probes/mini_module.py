"""The probe of `MiniModule`: scripts that run on it as they do on `nn.Module`, line by line."""

import ast
import copy

import torch
from torch import nn

from grader import probe

from .module_graphs import TorchModule


@probe
def mini_script(student, script):
    """Run one of the scripts below on the student's MiniModule; and say whether it is torch's."""
    found = outcomes(script, student.MiniModule)
    return {"found": found, "is torch's": issubclass(student.MiniModule, TorchModule)}


def lines(script):
    """Return a script's statements, each as text; of the names in front, those that it uses."""
    text = SCRIPTS[script]
    for name in ("Net", "Layer"):
        if name in text:
            text = f"{_GIVEN[name]}\n{text}"
    return [ast.unparse(statement) for statement in ast.parse(text).body]


def outcomes(script, base):
    """Return what each statement of a script comes to, with `base` for the class of modules.

    That is an expression's value, None for another statement, or "raises TypeError" and the like.
    """
    names = {"MiniModule": base, "nn": nn, "torch": torch, "copy": copy}
    found = []
    for line in lines(script):
        [statement] = ast.parse(line).body
        value = None
        try:
            if isinstance(statement, ast.Expr):
                value = _plain(eval(line, names))
            else:
                exec(line, names)
        except Exception as error:
            value = f"raises {type(error).__name__}"
        found.append(value)
    return found


def _plain(value):
    """Return a value as plain data; of what is none the name of its type."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return f"<{type(value).__name__}>"


_GIVEN = {
    "Layer": """
class Layer(MiniModule):
    def __init__(self, size=2):
        super().__init__()
        self.weight = nn.Parameter(torch.full((size,), 3.0))
        self.bias = nn.Parameter(torch.zeros(size), requires_grad=False)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x, *, plus=0):
        return x * self.weight + self.bias + plus
""",
    "Net": """
class Net(MiniModule):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.first = Layer()
        self.inner = MiniModule()
        self.inner.deep = Layer()
        self.inner.again = self.first
        self.last = self.first
        self.tied = Layer()
        self.tied.weight = self.first.weight
""",
}
"""Classes that scripts use: a module with two parameters and a buffer; one with children, some shared."""


def _names(module):
    """Return lines that give the names of a module's walks."""
    return f"""
[name for name, _ in {module}.named_children()]
[name for name, _ in {module}.named_parameters()]
[name for name, _ in {module}.named_buffers()]
len(list({module}.parameters()))
len(list({module}.modules()))
"""


SCRIPTS = {
    "registers": f"""
net = Net()
# assigned once more a name keeps its place; names of Python's own make do as well
net.scale = nn.Parameter(torch.ones(2))
net.update = nn.Parameter(torch.ones(1))
{_names("net")}
net.scale.shape
net.first is net.last
net.inner.deep.weight
[type(module).__name__ for module in net.first.modules()]
""",
    "slips through": f"""
module = MiniModule()
module.a_list = [Layer(), nn.Parameter(torch.ones(1))]
module.a_dict = {{"layer": Layer()}}
module.a_tensor = torch.ones(2)
module.wants_grad = torch.ones(2, requires_grad=True)
module.number, module.text = 3, "three"
{_names("module")}
len(module.a_list)
module.a_tensor
module.number, module.text
""",
    "reassigns": f"""
net = Net()
net.scale = torch.ones(1)
net.scale = 3
net.first = "text"
net.last = len
net.scale = net.inner = None
{_names("net")}
net.scale, net.inner
net.scale = nn.Parameter(torch.ones(3))
net.first, net.last = nn.Parameter(torch.zeros(1)), Layer(1)
{_names("net")}
net.scale.shape, net.first.shape, net.last.weight.shape
net.number = 3
net.number = nn.Parameter(torch.ones(4))
net.seen = torch.ones(1)
net.seen = Layer(5)
{_names("net")}
net.number.shape, net.seen.weight.shape
net.scale = Layer(6)
del net.scale
net.scale = Layer(6)
net.last.seen = Layer(1)
net.tied.seen = nn.Parameter(torch.ones(1))
net.seen = nn.Parameter(torch.ones(7))
{_names("net")}
net.scale.weight.shape, net.seen.shape
""",
    "reads": """
class Odd(MiniModule):
    shared_by_class = "class"

    @property
    def doubled(self):
        return self.weight * 2

odd = Odd()
odd.weight = nn.Parameter(torch.ones(2))
hasattr(odd, "weight"), hasattr(odd, "bias")
odd.doubled
odd.shared_by_class
odd.missing
getattr(odd, "missing", "default")
try:
    odd.wieght
except AttributeError as error:
    said = str(error)
"wieght" in said
""",
    "deletes": f"""
net = Net()
net.number = 3
net.empty = nn.Parameter(torch.ones(1))
net.empty = None
del net.scale
del net.inner
del net.number
del net.empty
del net.first.seen
[hasattr(net, name) for name in ("scale", "inner", "number", "empty", "first")]
del net.scale
del net.never
{_names("net")}
net.scale = 3
net.scale
{_names("net")}
""",
    "too early": f"""
class Early(MiniModule):
    def __init__(self, value):
        self.plain = "plain"
        self.early = value
        super().__init__()

class Reads(MiniModule):
    def __init__(self):
        self.missing

class Deletes(MiniModule):
    def __init__(self):
        del self.missing

Early(nn.Parameter(torch.ones(1)))
Early(Layer())
Reads()
Deletes()
early = Early([1, 2])
early.plain, early.early
{_names("early")}
""",
    "buffers": f"""
module = Layer()
module.seen
"seen" in dict(module.named_buffers())
module.seen = torch.ones(2)
module.seen
{_names("module")}
module.seen = 3
module.seen = None
module.seen
{_names("module")}
module.seen = torch.zeros(1)
module.register_buffer("mask", None)
module.seen, module.mask
{_names("module")}
module.mask = torch.ones(3)
module.tied = torch.ones(1)
parent = MiniModule()
parent.register_buffer("mask", module.mask)
parent.child = module
{_names("module")}
{_names("parent")}
# a name that was an ordinary attribute: refused, or a buffer from then on; not both
module.number = 3
try:
    module.register_buffer("number", torch.ones(2))
except KeyError:
    pass
("number" in dict(module.named_buffers())) == isinstance(module.number, torch.Tensor)
module.register_buffer("mask", torch.ones(4))
module.mask
""",
    "modes": """
net = Net()
[module.training for module in net.modules()]
net.eval() is net
[module.training for module in net.modules()]
net.inner.train() is net.inner
[module.training for module in net.modules()]
net.train(True) is net
[module.training for module in net.modules()]
net.train(mode=False) is net
[module.training for module in net.modules()]
""",
    "applies": """
net = MiniModule()
net.a, net.b = MiniModule(), Layer()
net.a.c, net.none = Layer(), MiniModule()
net.none = None
net.name, net.a.name, net.b.name, net.a.c.name = "net", "a", "b", "c"
order = []
net.apply(lambda module: order.append(module.name)) is net
order
x = torch.tensor([1.0, 2.0])
net.b(x)
net.b(x, plus=5)
(net.b(x).sum() + net.a.c(x).sum()).backward()
net.b.weight.grad
net.zero_grad()
[parameter.grad for parameter in net.parameters()]
""",
    "copies": f"""
net = Net()
net.number = [1, 2]
twin = copy.deepcopy(net)
with torch.no_grad():
    twin.first.weight.fill_(7.0)
twin.number.append(3)
twin.extra = nn.Parameter(torch.ones(1))
{_names("net")}
{_names("twin")}
net.first.weight, twin.last.weight
twin.tied.weight is twin.first.weight
net.number, twin.training
""",
}
"""Scripts to run: expressions are compared, and every statement's error."""
