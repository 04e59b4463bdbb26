"""Probes of `watch_edits`: ways to edit a tensor, and the words for them."""

import torch

from grader import probe

EDITS = {
    "nothing": "pass",
    "add_": "t.add_(1)",
    "add_ zero": "t.add_(0)",
    "view": "t.view(-1)[1:].mul_(3)",
    "detach": "t.detach().add_(1)",
    "foreach": "torch._foreach_add_([t], 1.0)",
    "read": "(t * 2).exp()",
    "data": "t.data.add_(1)",
    "data, one element": "t.data.view(-1)[-1:].mul_(1.0000002)",
    "data, swapped": "t.data.view(-1)[:2].copy_(t.data.view(-1)[:2].flip(0))",
    "data, minus zero": "t.data.masked_fill_(t.data == 0, -0.0)",
    "data, another NaN": "t.data.view(torch.int32).bitwise_xor_(t.isnan().int())",
    "data, back again": "t.data.neg_(); t.data.neg_()",
    "storage": "t.untyped_storage().fill_(7)",
    "other memory": "t.data = t.data + 1",
    "other shape": "t.data = t.data.clone().reshape(1, -1)",
    "other dtype": "t.data = t.data.contiguous().view(torch.int32)",
    "both": "t.data.add_(1); t.add_(1)",
}
"""Ways to edit a tensor `t`, as Python: a message shows what was run."""


def edit(name, t):
    """Edit `t` in the way of this name."""
    exec(EDITS[name], {"torch": torch, "t": t})


@probe(in_place=("values",))
def edited(student, values, edits):
    """Return the words for copies of `values`, each edited in its way; and what else happened."""
    tensors = [one.clone() for one in values]
    calls = []

    def run():
        calls.append(torch.is_grad_enabled())
        with torch.no_grad():
            for tensor, name in zip(tensors, edits, strict=True):
                edit(name, tensor)

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
