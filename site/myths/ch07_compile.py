# Compiling: claims, what is true, and programs that show it.

# %% a-print-costs-nothing one_graph
# A `print` in a compiled function costs nothing but the printing.
#
# The compiler gives up there: one graph before it, one after it. `fullgraph=True` refuses.
def noisy(x):
    y = x + 1
    print(end="")
    return y * 2


found = torch._dynamo.explain(noisy)(torch.ones(1))
print(found.graph_count, "graphs,", found.graph_break_count, "break")


# %% dynamo-optimises a-graph-to-work-on
# TorchDynamo's graph is optimised code.
#
# It is what your function called, twice if you called it twice. Optimising comes later.
def backend(graph, inputs):
    print([node.target.__name__ for node in graph.graph.nodes if node.op == "call_function"])
    return graph.forward


torch.compile(lambda x: torch.sin(x) + torch.sin(x), backend=backend)(torch.ones(1))

# %% all-branches eager-and-static-graphs
# The graph of a function holds both branches of an `if`.
#
# Only the one that was taken; guards watch over the condition. The other branch is another graph.
graphs = []


def backend(graph, inputs):
    graphs.append([n.target.__name__ for n in graph.graph.nodes if n.op == "call_function"])
    return graph.forward


@torch.compile(backend=backend)
def either(x, flag):
    return torch.sin(x) if flag else torch.cos(x)


for flag in (True, True, False):
    either(torch.ones(1), flag)
print(graphs)

# %% traces-branch eager-and-static-graphs
# A traced function does for every input what the function does.
#
# `jit.trace` keeps the branch of its example.
import warnings

warnings.simplefilter("ignore")


def absolute(x):
    return x if x.sum() > 0 else -x


traced = torch.jit.trace(absolute, torch.ones(1))
print(absolute(torch.tensor([-2.0])).item(), traced(torch.tensor([-2.0])).item())


# %% loops-stay-loops eager-and-static-graphs
# A loop in the source is a loop in the graph.
#
# Dynamo unrolls it: as many operations as there were rounds.
def backend(graph, inputs):
    print(sum(node.op == "call_function" for node in graph.graph.nodes), "operations")
    return graph.forward


@torch.compile(backend=backend)
def count(x):
    for step in range(5):
        x = x + step
    return x


count(torch.ones(1))

# %% each-shape-recompiles recompiles
# Every new shape is compiled anew.
#
# The second one is. It is then compiled for any size but 0 and 1, and the third needs nothing.
compiled = []


def backend(graph, inputs):
    compiled.append(1)
    return graph.forward


double = torch.compile(lambda x: x * 2, backend=backend)
for length in (3, 4, 5, 6, 1):
    double(torch.ones(length))
    print(len(compiled), end=" ")
print()

# %% numbers-never-recompile recompiles
# Changing a global number costs no compilation.
#
# Dynamo reads a global as a constant and guards it. Each new whole number is a new graph. A float gets a second graph, which is for all others.
compiled = []


def backend(graph, inputs):
    compiled.append(1)
    return graph.forward


for values in ((1, 2, 3, 4), (1.5, 2.5, 3.5, 4.5)):
    torch.compiler.reset()
    compiled.clear()
    scaled = torch.compile(lambda x: x * scale, backend=backend)
    for scale in values:
        scaled(torch.ones(1))
    print(values, len(compiled), "graphs")

# %% hooks-after-compiling what-a-guard-does-not-see
# A hook that is added to a compiled model runs.
#
# Not if the model was already called: guards do not look at hooks, by default.
from torch import nn

layer, ran = nn.Linear(1, 1), []
compiled = torch.compile(layer, backend="eager")
compiled(torch.ones(1))
layer.register_forward_hook(lambda module, args, output: ran.append(True))
compiled(torch.ones(1))
print(ran)

# %% twice-differentiable what-the-cut-costs
# What autograd can do twice, a compiled function can.
#
# Backward was compiled without a backward of its own.
cube = torch.compile(lambda x: (x**3).sum(), backend="aot_eager")
x = torch.ones(2, requires_grad=True)
(first,) = torch.autograd.grad(cube(x), x, create_graph=True)
try:
    torch.autograd.grad(first.sum(), x)
except RuntimeError as error:
    print(str(error)[:66])

# %% random-is-constant fold_constants
# What depends on no input may be folded into a constant.
#
# Not what is random. `symbolic_trace` runs it once while tracing, and so folds it.
import torch.fx

traced = torch.fx.symbolic_trace(lambda x: x + torch.rand(3))
print(torch.equal(traced(torch.zeros(3)), traced(torch.zeros(3))))

# %% same-op-same-inputs share
# Two nodes of the same operation on the same inputs are the same node.
#
# Their other arguments count, too; and what is random is never the same.
x = torch.arange(6.0).reshape(2, 3)
print(x.sum(0).shape == x.sum(1).shape)
print(torch.equal(torch.rand_like(x), torch.rand_like(x)))

# %% decompositions-come-last smaller-operators-first
# Decompositions are applied to the finished graphs, before they are compiled.
#
# They are applied while the joint graph is traced. What splits it into forward and backward already sees their result.
from functorch.compile import aot_function, default_partition, make_boxed_func
from torch._decomp import get_decompositions


def partition(graph, inputs, **options):
    names = [str(n.target) for n in graph.graph.nodes if n.op == "call_function"]
    print([name for name in names if "silu" in name or "sigmoid" in name])
    return default_partition(graph, inputs, **options)


def keep(graph, inputs):
    return make_boxed_func(graph.forward)


ops = [torch.ops.aten.silu, torch.ops.aten.silu_backward]
for table in ({}, get_decompositions(ops)):
    f = aot_function(
        torch.nn.functional.silu, keep, keep, partition_fn=partition, decompositions=table
    )
    f(torch.ones(1, requires_grad=True)).sum().backward()

# %% the-partitioner-saves-memory what-the-cut-costs
# AOTAutograd saves as little for backward as it can.
#
# That depends on the partitioner. `aot_function` by itself takes one that saves every step of a chain; one that looks for a minimum cut saves less.
from functorch.compile import aot_function, default_partition, make_boxed_func
from functorch.compile import min_cut_rematerialization_partition


def keep(graph, inputs):
    return make_boxed_func(graph.forward)


def chain(x):
    return x.sin().sin().sin().sin()


for partition in (default_partition, min_cut_rematerialization_partition):
    saved = []

    def forward(graph, inputs):
        (output,) = (node for node in graph.graph.nodes if node.op == "output")
        saved.append(len(output.args[0]) - 1)
        return make_boxed_func(graph.forward)

    f = aot_function(chain, forward, keep, partition_fn=partition)
    f(torch.ones(1, requires_grad=True)).backward()
    print(saved[0], "saved")

# %% import-torch-compile
# `import torch.compile`.
#
# It is a function in `torch`, not a module.
try:
    import torch.compile
except ModuleNotFoundError as error:
    print(error)
