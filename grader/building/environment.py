"""The environment of what a build runs: without variables that change what PyTorch does."""

from __future__ import annotations

import os

_READ_BY_TORCH = ("TORCH", "PYTORCH_", "ATEN_", "AOT_")
"""Beginnings of names. `CI` is read as well: `opcheck` is stricter where it is set."""


def without_settings() -> dict[str, str]:
    """Return this process's environment without settings of PyTorch's, and without those of a pytest around it."""
    return {
        name: value
        for name, value in os.environ.items()
        if name != "CI" and not name.startswith((*_READ_BY_TORCH, "PYTEST_"))
    }
