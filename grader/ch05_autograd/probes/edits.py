"""Probes of `watch_edits`: ways to edit a tensor, and the words for them."""

import torch

from grader import probe


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
