"""Where commands print: standard output and standard error, in colours where those are wanted."""

from __future__ import annotations

import os

from rich.console import Console


def _console(stderr: bool = False) -> Console:
    """Return a console. To rich, NO_COLOR leaves bold; whoever sets it wants the text alone."""
    plain = bool(os.environ.get("NO_COLOR"))
    return Console(stderr=stderr, highlight=False, color_system=None if plain else "auto")


out = _console()
err = _console(stderr=True)
