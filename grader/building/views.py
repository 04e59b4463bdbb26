"""Small views: an explorer in the prose, in a state that shows what one sentence says.

An author writes a paragraph `Look: strides/view#shape=3x4&ops=transpose.0.1 | What there is to see.`:
an explorer, a part of it, a state as its address has it, unquoted, and the sentence. Pages make a
figure of it, which `site/explorers/views.js` fills; notebooks leave the paragraph out.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from nbformat import NotebookNode

_LOOK = re.compile(r"^Look:\s(.+(?:\n.+)*)\n*", re.MULTILINE)
_VIEW = re.compile(r"(\w+)/([\w-]+)#(.+?) \| (.+)")


@dataclass(frozen=True)
class View:
    """An explorer, which part of it, in which state, and the sentence above it."""

    explorer: str
    part: str
    state: str
    sentence: str

    @property
    def address(self) -> str:
        """The state as it stands in an address."""
        pairs = [pair.partition("=") for pair in self.state.split("&")]
        return urlencode([(name, value) for name, _, value in pairs], quote_via=quote)

    def figure(self, explorers: str) -> str:
        """Return the figure; `explorers` is where the explorers' pages are, seen from the page.

        Without scripts it is the sentence and the link.
        """
        state = html.escape(self.address)
        return "\n".join(
            [
                '<figure class="ut-view" markdown="1">',
                f'<figcaption markdown="span">{self.sentence}</figcaption>',
                f'<div class="ut-stage" data-explorer="{self.explorer}" data-part="{self.part}" '
                f'data-state="{state}"></div>',
                f'<p><a class="ut-view-open" href="{explorers}/{self.explorer}.html#{state}">'
                f"Open it in the explorer</a></p>",
                "</figure>",
            ]
        )


def read_view(text: str) -> View:
    """Return the view that the text behind `Look:` names. Raises `ValueError`."""
    found = _VIEW.fullmatch(text.strip().replace("\n", " "))
    if not found:
        raise ValueError(
            f"{text!r} is no view: write explorer/part#state | what there is to see in it"
        )
    return View(*found.groups())


def views_in(source: str) -> list[View]:
    """Return the views of a text, in order. Raises `ValueError`."""
    return [read_view(found[1]) for found in _LOOK.finditer(source)]


def with_figures(source: str, explorers: str) -> str:
    """Return a text with its views as figures. Raises `ValueError`."""
    return _LOOK.sub(lambda found: read_view(found[1]).figure(explorers) + "\n\n", source).rstrip()


def without(source: str) -> str:
    """Return a text without its views, for those who read it where they cannot be shown."""
    return _LOOK.sub("", source).rstrip()


def cut(cells: Iterable[NotebookNode]) -> None:
    """Take the views out of a notebook's prose.

    Raises `ValueError` for a view that cannot be read, and for a cell that holds nothing else.
    """
    for cell in cells:
        if cell.cell_type == "markdown" and views_in(cell.source):
            cell.source = without(cell.source)
            if not cell.source:
                raise ValueError(
                    f"the cell {cell.id} holds a view alone: let it follow the prose it belongs to"
                )
