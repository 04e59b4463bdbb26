"""Probes of `int8_matmul` and `matmul_bf16x3`: products on a unit for small formats."""

import torch

from grader import probe


@probe
def int8_product(student, a, a_zero, b, b_zero, idle=False):
    """Return the product, and how often the matrix unit was called. An idle unit gives zeros."""
    calls = []

    def multiply(a, b):
        if a.dtype is not torch.int8 or b.dtype is not torch.int8:
            raise TypeError("The matrix unit takes int8 operands.")
        calls.append(None)
        # no aten::mm here: it is off limits for whoever calls this
        product = (a.int()[:, :, None] * b.int()[None]).sum(1).int()
        return torch.zeros_like(product) if idle else product

    return {"product": student.int8_matmul(a, a_zero, b, b_zero, multiply), "calls": len(calls)}


@probe
def bf16x3_product(student, a, b, idle=False):
    """Return the product, and the unit's work: the sum of m * k * n over its calls.

    An idle unit gives zeros.
    """
    work = []

    def multiply(a, b):
        if a.dtype is not torch.bfloat16 or b.dtype is not torch.bfloat16:
            raise TypeError("The matrix unit takes bfloat16 operands.")
        work.append(a.shape[0] * a.shape[1] * b.shape[1])
        # no aten::mm here: it is off limits for whoever calls this
        product = (a.double()[:, :, None] * b.double()[None]).sum(1).float()
        return torch.zeros_like(product) if idle else product

    return {"product": student.matmul_bf16x3(a, b, multiply), "work": sum(work)}
