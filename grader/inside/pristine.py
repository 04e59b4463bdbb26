"""Whether student code replaced something that grading leans on inside its own process.

Judging happens elsewhere, so a patched `torch.equal` gains nothing; but someone should look at
code that tries. This is a claim: it is made beside the code that it is about.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from types import ModuleType

import torch

from grader.evidence.wire.trace import PRISTINE, fingerprint
from grader.inside import witness

_WATCHED: Mapping[str, tuple[str, ...]] = {
    "builtins": ("abs", "all", "any", "isinstance", "len", "max", "min", "open", "print", "type"),
    "json": ("dumps", "loads"),
    "torch": ("allclose", "equal", "isclose", "rand", "randn", "randint", "tensor"),
    "torch.testing": ("assert_close",),
    "grader.evidence.wire.channel": ("receive_frame", "send_frame"),
    "grader.evidence.wire.codec": ("decode", "encode"),
    "grader.inside.serve": (
        "Inside",
        "Tripwire",
        "decode",
        "decode_with_storages",
        "encode",
        "replaced",
        "send_frame",
        "tell",
        "witness",
    ),
}
_METHODS = ("__torch_function__", "detach", "storage_offset", "stride", "untyped_storage", "view")

_WHOLE = (
    "grader.inside.dispatch",
    "grader.inside.instruments",
    "grader.inside.modes",
    "grader.inside.tripwire",
    "grader.inside.witness",
    "grader.inside.pristine",
)
"""What these modules, and those within them, say is evidence that stands on them alone, so all that
they define is watched."""


def snapshot() -> dict[str, object]:
    """Return the watched objects by name, as they are now."""
    found: dict[str, object] = {}
    for module, names in _WATCHED.items():
        loaded = importlib.import_module(module)
        found |= {f"{module}.{name}": getattr(loaded, name, None) for name in names}
    found |= {f"torch.Tensor.{name}": getattr(torch.Tensor, name, None) for name in _METHODS}
    for name in _WHOLE:
        loaded = importlib.import_module(name)
        parts = [part for part in vars(loaded).values() if _is_part(part, name)]
        for module in (loaded, *parts):
            found.update(_made_in(module))
    found["an active torch function mode"] = torch._C._len_torch_function_stack()
    found["an active torch dispatch mode"] = torch._C._len_torch_dispatch_stack()
    return found


def _is_part(value: object, name: str) -> bool:
    """Say whether this is a module within the one of that name."""
    return isinstance(value, ModuleType) and value.__name__.startswith(f"{name}.")


def _made_in(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Yield a module's own functions and classes, with their methods, by full name."""
    for name, value in list(vars(module).items()):
        if getattr(value, "__module__", None) != module.__name__:
            continue
        yield f"{module.__name__}.{name}", value
        if isinstance(value, type):
            for member, method in list(vars(value).items()):
                if callable(method) or isinstance(method, property):
                    yield f"{module.__name__}.{name}.{member}", method


def replaced(before: Mapping[str, object]) -> list[str]:
    """Return the names of what is no longer what it was, and of what was put into watched classes."""
    now = snapshot()
    return [name for name in _names(before, now) if not _same(before.get(name), now.get(name))]


def _names(before: Mapping[str, object], now: Mapping[str, object]) -> Iterator[str]:
    """Yield the names that were watched before, and those that their classes have been given since."""
    yield from before
    for name in now:
        if name not in before and name.rpartition(".")[0] in before:
            yield name


def tell(before: Mapping[str, object]) -> None:
    """Put into the trace, where nothing can be taken back, what the watched objects are now.

    Whoever reads it sees whether they are what they were, even if `replaced` or `before` is not.
    """
    if not witness.is_on():
        return
    now = snapshot()
    witness.mark(
        f"{PRISTINE} {fingerprint(f'{name} {_key(now.get(name))}' for name in _names(before, now))}"
    )


def _key(value: object) -> int:
    """Return a number that stays the same as long as the object does."""
    try:
        return hash(value)
    except TypeError:
        return id(value)


def _same(before: object, now: object) -> bool:
    # methods of C types are made anew at each look, and equal
    return before is now or (type(before) is type(now) and before == now)
