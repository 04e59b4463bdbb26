"""Probes of attention: `split_heads`, `attention`, `streaming_attention` and `relative_shift`."""

import torch

from grader import probe, watch_flops, watch_memory


@probe
def heads_split(student, x, heads):
    """Return `x` by head."""
    return student.split_heads(x, heads)


@probe
def heads_merged(student, y):
    """Return `y` merged, and the bytes that this allocated."""
    with watch_memory() as memory:
        result = student.merge_heads(y)
    return {"result": result, "new": memory.new_bytes}


@probe
def heads_there_and_back(student, x, heads):
    """Return `x` split and merged again."""
    return student.merge_heads(student.split_heads(x, heads))


@probe(in_place=("q", "k", "v", "mask"))
def attended(student, q, k, v, mask):
    """Return the attention of `q` to `k` and `v`."""
    return student.attention(q, k, v, mask)


@probe(in_place=("mask",))
def attention_grads(student, q, k, v, mask, cotangent):
    """Return the gradients of q, k and v for the result's `cotangent`; None where there is none."""
    leaves = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
    # not the leaves themselves, which refuse to be changed in place: another check asks for that
    result = student.attention(*(leaf.clone() for leaf in leaves), mask)
    if not result.requires_grad:
        return [None, None, None]
    return list(torch.autograd.grad(result, leaves, cotangent, allow_unused=True))


@probe(in_place=("q", "k", "v", "mask"))
def streamed(student, q, k, v, mask, block):
    """Return the attention of `q` to `k` and `v`, taken by blocks of keys."""
    with torch.no_grad():
        return student.streaming_attention(q, k, v, mask, block)


@probe(in_place=("q", "k", "v", "mask"))
def streaming_cost(student, q, k, v, mask, block):
    """Return the result, the FLOPs and the most new bytes alive at once."""
    with torch.no_grad(), watch_flops() as flops, watch_memory() as memory:
        result = student.streaming_attention(q, k, v, mask, block)
    return {"result": result, "flops": flops.total, "peak": memory.peak_bytes}


@probe
def shifted(student, scores, keys):
    """Return the scores of distances by key."""
    return student.relative_shift(scores, keys)
