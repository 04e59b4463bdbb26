"""What a notebook's cells become on a page for reading: prose, code, output, predictions, exercises.

A page is no notebook: nothing runs there. So an exercise is one folded panel, a prediction a card that
can be answered, and output does not look like code that one could copy.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from nbformat import NotebookNode

from grader.building.anchors import Anchors, Section
from grader.building.predictions import Asked, Measured, asked_in, drawn_in
from grader.building.sittings import STAR
from grader.building.views import with_figures
from grader.course.cells import is_grade_cell, is_solution_cell
from grader.course.exercise import Exercise

SOLUTIONS = "solutions"
"""The name of a chapter's page of solutions."""

_STATEMENT = re.compile(r"^(?=\*\*Write)", re.MULTILINE)
_PREDICTION = re.compile(r"(?=\*\*Predict\.\*\*)")
_WRITTEN = re.compile(r"^if written\(.*\):\n((?:(?: {4}.*)?\n?)+)", re.MULTILINE)
_APART = re.compile(r"\n{3,}(?=\S)")
_FORBIDDEN = re.compile(r"^\*Off limits:\*.*$", re.MULTILINE)


@dataclass(frozen=True)
class Surroundings:
    """What the cells of a chapter need to know of it."""

    exercises: Mapping[str, Exercise]
    reading: Mapping[str, Sequence[Sequence[str]]]
    values: Measured
    solutions: str
    """Where the page of solutions is, seen from the pages that these cells are on."""
    explorers: str
    """Where the explorers' pages are, seen from there."""


def body(
    cells: Sequence[NotebookNode], anchors: Anchors, around: Surroundings
) -> tuple[str, list[Section]]:
    """Return the Markdown of a run of cells, and the sections in it."""
    blocks: list[str] = []
    sections: list[Section] = []
    card = ""  # of the exercise that is open
    held = ""  # the end of a text that goes into the panel, or the card, of the cell below it
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        if cell.cell_type == "markdown":
            name = cell.id.removesuffix("-card")
            if cell.id.endswith("-card") and name in around.exercises:
                title = around.exercises[name].title
                blocks.append(f"## {title} {{ #{name} }}")
                sections.append(Section(name, title))
                card = cell.source
                continue
            source, found = anchors.mark(cell.source)
            sections += found
            source = with_figures(source, around.explorers, drawn_in(cell, around.values))
            source = bars_in_tables(source.replace("<details>", '<details markdown="1">'))
            if following is not None and is_solution_cell(following):
                source, held = _parted(_STATEMENT, source)
            elif following is not None and asked_in(following):
                source, held = _parted(_PREDICTION, source)
            blocks.append(source)
        elif is_solution_cell(cell):
            blocks.append(_panel(around.exercises[cell.id], card, held, around.solutions))
            blocks.append(_reading(around.reading.get(cell.id, ())))
            held = ""
        elif asked := asked_in(cell):
            blocks.append(_prediction(held, asked, around.values.get(cell.id)))
            held = ""
        elif not is_grade_cell(cell):
            blocks += [code(_shown(cell.source)), *map(_output, cell.outputs)]
    return "\n\n".join(block for block in blocks if block), sections


def bars_in_tables(source: str) -> str:
    """Return prose with the bars in code in tables as the site's Markdown wants them: bare.

    A notebook's wants a backslash before them, which the site would show.
    """

    def bare(row: re.Match[str]) -> str:
        return re.sub(r"`[^`\n]*`", lambda code: code[0].replace(r"\|", "|"), row[0])

    return re.sub(r"^ *\|.*$", bare, source, flags=re.MULTILINE)


def _parted(mark: re.Pattern[str], source: str) -> tuple[str, str]:
    """Return what stands above a mark, and what begins with it; without one, all begins with it."""
    found = mark.search(source)
    place = found.start() if found else 0
    return source[:place].rstrip(), source[place:]


def _panel(exercise: Exercise, card: str, statement: str, solutions: str) -> str:
    """One folded panel: what to write, limits in a phrase, hints, and where the solution is."""
    facts = [f"{exercise.minutes} minutes", f"difficulty {exercise.difficulty} of 5"]
    facts += [f"{exercise.points:g} points", *([f"{STAR} short path"] if exercise.short else [])]
    summary = f"Write <code>{exercise.id}</code> <small>{' · '.join(facts)}</small>"
    limits = _FORBIDDEN.search(card)
    more = [f"*You learn* {exercise.teaches}"]
    if limits:
        more.append(limits[0].rstrip())
    link = f"[A solution]({solutions}.md#{exercise.id}){{ .ut-solution }}"
    return "\n\n".join(
        [
            f'<details class="ut-exercise" markdown="1"><summary>{summary}</summary>',
            statement,
            *more,
            link,
            "</details>",
        ]
    )


def _reading(found: Sequence[Sequence[str]]) -> str:
    links = [f"[{words}]({address})" for words, address, _ in found]
    return f"*In PyTorch:* {', '.join(links)}" if links else ""


def _prediction(question: str, asked: Asked, value: str | None) -> str:
    """A card: the question, and what came out when the page was built, folded.

    `site/assets/book.js` puts a place for a guess above the fold.
    """
    said = "" if value is None else f' data-is="{escape(value)}"'
    truth = (
        "This was not measured yet." if value is None else f"It is {_inline(value)}. Measured by"
    )
    return "\n\n".join(
        block
        for block in [
            '<div class="ut-predict" markdown="1">',
            question,
            code(asked.before) if asked.before else "",
            f'<details class="ut-reveal"{said} markdown="1"><summary>What comes out</summary>',
            truth,
            code(asked.runs),
            "</details>",
            "</div>",
        ]
        if block
    )


def _inline(value: str) -> str:
    """Return a value as code in a line of prose: as HTML, in which no mark of Markdown's counts."""
    return f"<code>{escape(' '.join(value.split()))}</code>"


def _shown(source: str) -> str:
    """Return a cell's text without the question whether an exercise was written: here it was."""
    return _WRITTEN.sub(lambda match: textwrap.dedent(match[1]), source)


def code(source: str) -> str:
    """Return a block of Python. One blank line parts definitions where one reads."""
    closer = _APART.sub("\n\n", source.strip("\n"))
    return f"```python\n{closer}\n```"


def _output(output: NotebookNode) -> str:
    if output.output_type == "stream":
        return _printed(output.text)
    data = output.get("data", {})
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            return f'<div class="output" data-search-exclude markdown="0">{data[kind]}</div>'
    return _printed(data.get("text/plain", ""))


def _printed(text: str) -> str:
    """Return output as it was printed. It is no code: it has no frame, no colours, no button."""
    shown = escape(text.strip("\n"), quote=False)
    return f'<pre class="ut-out" data-search-exclude markdown="0">{shown}</pre>' if shown else ""
