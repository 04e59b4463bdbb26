# Type hints of every kind, a class with state, generics, a walrus, a match statement.
# %% solution round_to_bf16
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T", bound=torch.Tensor)


@dataclass
class Rounding:
    half: int = 0x7FFF
    quiet: int = 0x0040

    def __call__(self, x: T) -> T:
        match (bits := x.view(torch.int32)).dim():
            case _:
                odd: torch.Tensor = (bits >> 16) & 1
        return torch.where(x.isnan(), bits >> 16 | self.quiet, (bits + self.half + odd) >> 16)


def round_to_bf16(x: torch.Tensor) -> torch.Tensor:
    result = torch.empty(x.shape, dtype=torch.bfloat16)
    result.view(torch.int16).copy_(Rounding()(x).to(torch.int16))
    return result.view(x.shape)
