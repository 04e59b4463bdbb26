"""Values of evidence as text that fits a screen: a tensor's first numbers, its dtype, shape, strides."""

from __future__ import annotations

import reprlib

import torch

NUMBERS = 8
"""How many of a tensor's numbers are shown."""


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = 8
        self.maxstring = self.maxother = self.maxlong = 200

    def repr_Tensor(self, tensor: torch.Tensor, level: int) -> str:
        # a slice reads what is shown alone, whatever the layout claims to reach
        numbers = tensor.detach().flatten()[:NUMBERS].tolist() if tensor.numel() else []
        more = ", …" if tensor.numel() > NUMBERS else ""
        dense = "" if tensor.is_contiguous() else f", stride={tuple(tensor.stride())}"
        text = ", ".join(f"{n:.6g}" if isinstance(n, float) else str(n) for n in numbers)
        dtype = str(tensor.dtype).removeprefix("torch.")
        return f"tensor([{text}{more}], {dtype}, shape={tuple(tensor.shape)}{dense})"


_short = _Short()


def value_text(value: object) -> str:
    """Return a value of evidence in one line; control characters are escaped."""
    return _short.repr(value)
