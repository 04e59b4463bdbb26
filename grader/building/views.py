"""Something to look at in the prose: an explorer in a state, or a still drawing, and a sentence.

An author writes a paragraph `Look: strides/view#shape=3x4&ops=transpose.0.1 | What there is to see.`:
an explorer, a part of it, a state as its address has it, unquoted, and the sentence. Pages make a
figure of it, which `site/explorers/views.js` fills. Or `Draw: show_bars(sizes, "bytes") | What there
is to see.`: an expression that the chapter's own names make a drawing of, where the paragraph stands.
It is measured as predictions are. Notebooks leave both paragraphs out.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from nbformat import NotebookNode

NOT_DRAWN = "<p>This was not drawn yet.</p>"
"""What stands for a drawing that no run has made."""

_SHOWN = re.compile(r"^(Look|Draw):\s(.+(?:\n.+)*)\n*", re.MULTILINE)
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


@dataclass(frozen=True)
class Drawing:
    """An expression whose value shows itself as HTML, and the sentence above it."""

    code: str
    sentence: str

    def figure(self, drawn: str | None) -> str:
        """Return the figure of what came out."""
        return "\n".join(
            [
                '<figure class="ut-still" markdown="1">',
                f'<figcaption markdown="span">{self.sentence}</figcaption>',
                f'<div class="output" data-search-exclude markdown="0">{drawn or NOT_DRAWN}</div>',
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


def read_drawing(text: str) -> Drawing:
    """Return the drawing that the text behind `Draw:` asks for. Raises `ValueError`."""
    code, _, sentence = text.strip().replace("\n", " ").rpartition(" | ")
    try:
        compile(code.strip(), "<Draw>", "eval")
    except SyntaxError as error:
        raise ValueError(
            f"{text!r} is no drawing: write an expression | what there is to see in it"
        ) from error
    return Drawing(code.strip(), sentence)


def views_in(source: str) -> list[View]:
    """Return the views of a text, in order. Raises `ValueError`."""
    return [read_view(text) for kind, text in _SHOWN.findall(source) if kind == "Look"]


def drawings_in(source: str) -> list[Drawing]:
    """Return the still drawings of a text, in order. Raises `ValueError`."""
    return [read_drawing(text) for kind, text in _SHOWN.findall(source) if kind == "Draw"]


def with_figures(source: str, explorers: str, drawn: Mapping[str, str]) -> str:
    """Return a text with figures for its views and drawings. Raises `ValueError`.

    `drawn` has the drawings, by their expressions.
    """

    def figure(found: re.Match[str]) -> str:
        if found[1] == "Look":
            return read_view(found[2]).figure(explorers) + "\n\n"
        drawing = read_drawing(found[2])
        return drawing.figure(drawn.get(drawing.code)) + "\n\n"

    return _SHOWN.sub(figure, source).rstrip()


def without(source: str) -> str:
    """Return a text without its figures, for those who read it where they cannot be shown."""
    return _SHOWN.sub("", source).rstrip()


def cut(cells: Iterable[NotebookNode]) -> None:
    """Take the figures out of a notebook's prose.

    Raises `ValueError` for one that cannot be read, and for a cell that holds nothing else.
    """
    for cell in cells:
        if cell.cell_type == "markdown" and (views_in(cell.source) or drawings_in(cell.source)):
            cell.source = without(cell.source)
            if not cell.source:
                raise ValueError(
                    f"the cell {cell.id} holds a figure alone: let it follow the prose it belongs to"
                )
