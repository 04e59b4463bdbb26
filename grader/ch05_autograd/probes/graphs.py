"""Graphs made by recipes: lists of steps, each an operation and the numbers of its inputs."""

import inspect

import torch


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
    """Return (output, leaves by number) of a recipe.

    `numbers` (leaves, 4, 4) are the leaves' values; the leaves are numbered from 0, the results go on.
    """
    made = build_all(recipe, numbers)
    leaves = {at: leaf for at, leaf in enumerate(made[: len(numbers)]) if leaf.requires_grad}
    return made[-1], leaves


def build_all(recipe, numbers):
    """Return the leaves and the result of each step, in order."""
    leaves = len(numbers)
    names = {"torch": torch, "Cubed": Cubed}
    for at, values in enumerate(numbers):
        names[name_of(at, leaves)] = values.clone().requires_grad_(requires_grad(at))
    for line in steps_as_text(recipe, leaves):
        exec(line, names)
    return [names[name_of(at, leaves)] for at in range(leaves + len(recipe))]


def requires_grad(leaf):
    """Say whether the leaf of this number requires grad: the third does not."""
    return leaf % 3 != 2


def name_of(at, leaves):
    """Return what the program calls the leaf or result of this number: a, b, …, h1, h2, …"""
    return "abcdefg"[at] if at < leaves else f"h{at - leaves + 1}"


def steps_as_text(recipe, leaves):
    """Return the Python of each step."""
    texts = []
    for number, (kind, *inputs) in enumerate(recipe, leaves):
        known = dict(zip("ab", [name_of(at, leaves) for at in inputs], strict=False))
        texts.append(OPERATIONS[kind].format(h=name_of(number, leaves), **known))
    return texts


def as_text(recipe, numbers):
    """Return a recipe as a program to paste: the leaves that it uses, and its steps."""
    leaves = len(numbers)
    used = {at for _, *inputs in recipe for at in inputs if at < leaves} or {0}
    lines = [inspect.getsource(Cubed)] if any(kind == "cubed" for kind, *_ in recipe) else []
    like = "" if numbers.dtype is torch.float32 else f", dtype={numbers.dtype}"
    for at in sorted(used):
        made = f"torch.rand(4, 4{like}, requires_grad={requires_grad(at)})"
        lines.append(f"{name_of(at, leaves)} = {made}")
    return "\n".join(lines + steps_as_text(recipe, leaves))


OPERATIONS = {
    "mul": "{h} = {a} * {b}",
    "add": "{h} = {a} + {b}",
    "matmul": "{h} = {a} @ {b}",
    "sigmoid": "{h} = torch.sigmoid({a})",
    "exp": "{h} = (-{a}).exp()",
    "view": "{h} = {a}.t().reshape(2, 8).view(4, 4)",
    "expand": "{h} = {a}[:1].expand(4, 4)",
    "rows": "{h} = ({a}[1] * {a}[2]).expand(4, 4) + {a}",
    "slice": "{h} = torch.cat([{a}[2:], {a}[:2]])",
    "index": "{h} = {a}[torch.tensor([3, 1, 0, 0])]",
    "chunk": "{h} = torch.cat({a}.chunk(2, 1)[::-1], 1)",
    "one_of": "{h} = {a}.unbind(0)[2] + {a}",
    "sum": "{h} = {a}.sum(1, keepdim=True) + {a}",
    "max": "{h} = {a}.max(1, keepdim=True).values * {a}",
    "norm": "{h} = torch.nn.functional.layer_norm({a}, (4,))",
    "cubed": "{h} = Cubed.apply({a})",
    "detach": "{h} = {a}.detach() + {a}",
    "double": "{h} = {a} + {a}",
    "row": "{h} = {a}.unbind(0)[1]",
    "spread": "{h} = torch.var_mean({a}, 1, keepdim=True)[0] * {a}",
    "both": "{h} = sum(torch.var_mean({a}, 0)) + {a}",
    "halves": "{h} = {a}.split([1, 3], 1)[1] @ {a}.split([1, 3], 0)[1]",
    "float": "{h} = {a}.float()[:, :1]",
    "promote": "{h} = {a} * torch.arange(4.0, dtype=torch.float64)",
    "single": "{h} = {a}.float().exp().double()",
    "write": "{h} = ({a} * 1).index_fill_(0, torch.tensor([1]), 2.0).add_({b})",
    "into": "{h} = {a} * 2; {h}[1] = {b}[0]",
    "column": "{h} = {a}[:, :1] * {b}",
    "sort": "{h} = {a}.sort(1).values",
    "where": "{h} = torch.where({a}.detach() > {b}.detach(), {a}, {b})",
    "unbind": "{h} = ({a} * 2).unbind(0)",
    "zeroth": "{h} = {a}[0]",
    "third": "{h} = {a}[2]",
    # a view of what is then written to: its node is made anew when the view is next used
    "late": "base = {a} * 1; {h} = base[:2]; base.mul_(2)",
    # a node with two results, which has no gradient for the edge of the one that nobody used
    "first_of": "{h} = torch._foreach_exp([{a}, {b}])[0]",
}
"""The Python of each operation on (4, 4), for a message to show it as it was run."""
