"""Probe of `int_conv2d`: a convolution on a unit that takes codes and knows no zero points."""

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from grader import probe
from grader.inside.instruments.ops import is_foreign, short_name


class Floats(TorchDispatchMode):
    """Notes each operator that makes a tensor of floats, or of complex numbers."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(map(is_foreign, types)):
            return NotImplemented  # what it stands for is seen within
        result = func(*args, **(kwargs or {}))
        made = result if isinstance(result, tuple | list) else (result,)
        for one in made:
            if isinstance(one, torch.Tensor) and (one.is_floating_point() or one.is_complex()):
                self.names.append(short_name(func))
        return result


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
        result = F.conv2d(x.int(), w.int())
        return torch.zeros_like(result) if idle else result

    with Floats() as floats:
        codes = student.int_conv2d(
            x, x_zero, w, bias, padding, multiplier, shift, out_zero, convolve
        )
    return {"codes": codes, "calls": len(calls), "floats": floats.names}
