"""Four operations as PyTorch computes them, and calls of their three forms as code to paste."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

Tensors = Sequence[torch.Tensor]
Rows = tuple[tuple[str, str], ...]

_TRUTH: dict[str, Callable[..., torch.Tensor]] = {
    "plus": torch.add,
    "less": torch.lt,
    "half": lambda a: a * 0.5,
    "mix": lambda a, b, c: a + 2 * b - c,
}

_SIZE = {
    "plus": "torch.broadcast_shapes(a.shape, b.shape), torch.promote_types(a.dtype, b.dtype)",
    "less": "torch.broadcast_shapes(a.shape, b.shape), torch.bool",
    "half": "a.shape, a.dtype if a.is_floating_point() else torch.float32",
    "mix": "torch.broadcast_shapes(a.shape, b.shape, c.shape), a.dtype",
}
_VALUE = {"plus": "a + b", "less": "a < b", "half": "a * 0.5", "mix": "a + 2 * b - c"}


def truth(operation: str, operands: Tensors) -> torch.Tensor:
    """Return what PyTorch computes."""
    return _TRUTH[operation](*operands)


def rows(form: str, operation: str, operands: Tensors, out: torch.Tensor | None) -> Rows:
    """Return rows that show a call: all that has to be pasted, and the call itself."""
    names = "abc"[: len(operands)]
    listed = ", ".join(names)
    given = [*zip(names, operands, strict=True), *([("out", out)] if out is not None else [])]
    index = ("functional", "inplace", "out").index(form)
    arguments = f"{listed}, out=out" if form == "out" else listed
    return (
        ("meta", f"meta = lambda {listed}: ({_SIZE[operation]})"),
        ("kernel", f"kernel = lambda result, {listed}: result.copy_({_VALUE[operation]})"),
        *_codes(given),
        ("call", f"structured(meta, kernel)[{index}]({arguments})"),
    )


def refusal_rows(
    form: str,
    operation: str,
    operands: Tensors,
    out: torch.Tensor | None,
    grads: Sequence[int],
    recording: bool,
) -> Rows:
    """Return the same for a call with gradients: which tensors require one, and whether it is recorded."""
    found = rows(form, operation, operands, out)
    asked = "; ".join(f"{'out' if k < 0 else 'abc'[k]}.requires_grad_()" for k in grads)
    more = [("gradients", asked)] if grads else []
    if not recording:
        more.append(("mode", "torch.set_grad_enabled(False)"))
    return (*found[:-1], *more, found[-1])


def _codes(tensors: Sequence[tuple[str, torch.Tensor]]) -> list[tuple[str, str]]:
    """Return rows of code that make tensors of these layouts, which share memory as they do."""
    homes: dict[int, str] = {}
    dtypes: dict[int, torch.dtype] = {}
    found = []
    for name, x in tensors:
        storage = x.untyped_storage()
        count = storage.nbytes() // x.element_size()
        home = f"torch.ones({count}, dtype={x.dtype})"
        shared = sum(y.untyped_storage()._cdata == storage._cdata for _, y in tensors) > 1
        if shared:
            if storage._cdata not in homes:
                homes[storage._cdata] = f"memory{len(homes)}"
                found.append((homes[storage._cdata], home))
            home = homes[storage._cdata]
            if x.dtype != dtypes.setdefault(storage._cdata, x.dtype):
                home += f".view({x.dtype})"
        offset = f", {x.storage_offset()}" if x.storage_offset() else ""
        found.append((name, f"{home}.as_strided({tuple(x.shape)}, {x.stride()}{offset})"))
    return found
