"""Where commands print: standard output and standard error, in colours where those are wanted."""

from __future__ import annotations

import os
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from grader.files import inert


class SafeConsole(Console):
    """A console that shows text and obeys none of it: much of what is printed, students wrote."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield the segments of what is shown; those that move the cursor are rich's own."""
        for text, style, control in super().render(renderable, options):
            # without a sign: rich counts such characters as no columns, and has laid out the line
            yield Segment(text if control else inert(text, ""), style, control)


def _console(stderr: bool = False) -> Console:
    """Return a console. To rich, NO_COLOR leaves bold; whoever sets it wants the text alone."""
    plain = bool(os.environ.get("NO_COLOR"))
    return SafeConsole(
        stderr=stderr,
        highlight=False,
        markup=False,
        emoji=False,
        color_system=None if plain else "auto",
    )


out = _console()
err = _console(stderr=True)


def complain(message: str) -> None:
    """Say on standard error what is wrong."""
    err.print(Text("undertorch: ", "red") + Text(message), soft_wrap=True)
