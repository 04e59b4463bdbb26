"""Probes of `int8_matmul`, `matmul_bf16x3` and `int_conv2d`: sums on a unit for small formats."""

import torch

from grader import probe
from grader.inside.dispatch import DispatchMode


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


class Floats(DispatchMode):
    """Notes each operator that makes a tensor of floats, or of complex numbers."""

    def __init__(self):
        super().__init__()
        self.names = []

    def after(self, operator, args, kwargs, result):
        made = result if isinstance(result, tuple | list) else (result,)
        for one in made:
            if isinstance(one, torch.Tensor) and (one.is_floating_point() or one.is_complex()):
                self.names.append(operator.name())


@probe
def int_convolved(student, x, x_zero, w, bias, padding, multiplier, shift, out_zero, idle=False):
    """Return the codes, how often the unit was called, and what made floats.

    An idle unit gives zeros.
    """
    calls = []

    def convolve(x, w):
        if x.dtype is not torch.uint8 or w.dtype is not torch.int8:
            raise TypeError("The unit takes uint8 activations and int8 weights.")
        calls.append(None)
        result = torch.nn.functional.conv2d(x.int(), w.int())
        return torch.zeros_like(result) if idle else result

    with Floats() as floats:
        codes = student.int_conv2d(
            x, x_zero, w, bias, padding, multiplier, shift, out_zero, convolve
        )
    return {"codes": codes, "calls": len(calls), "floats": floats.names}
