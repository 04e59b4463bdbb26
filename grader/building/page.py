"""A chapter's page for the site: prose, exercises, hints folded, solutions behind a click."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from nbformat import NotebookNode

from grader.building.sittings import OVERVIEW, PROGRESS, opening_id, overview
from grader.course.cells import is_grade_cell, is_solution_cell
from grader.course.course import Exercise, exercises_in, sittings_in
from grader.course.exercise import Sitting, in_hours, minutes_of

_GENERATED = "<!-- Built by `undertorch build` from solutions/{chapter}; edits here are lost. -->"


def chapter_page(
    reference: NotebookNode,
    released: NotebookNode,
    chapter: str,
    explorer: str | None,
) -> str:
    """Return the Markdown page of an executed reference notebook.

    `released` gives the stubs that are shown in place of solutions. `explorer` is the name of the
    explorer's page that belongs to the chapter, if there is one.
    """
    stubs = {cell.id: cell.source for cell in released.cells}
    cards = {
        cell.id: cell.metadata["undertorch"] for cell in reference.cells if is_solution_cell(cell)
    }
    card = reference.metadata["undertorch"]
    reading = card.get("reading", {})
    head = ["---", f"title: {card['title']}", f"description: {_first_sentence(card['summary'])}"]
    blocks = ["\n".join([*head, "---", "", _GENERATED.format(chapter=chapter)])]
    exercises = exercises_in(reference, chapter)
    sittings = sittings_in(reference, exercises)
    openings = {opening_id(one.id) for one in sittings}
    begun = False
    for number, cell in enumerate(reference.cells):
        if cell.id in (OVERVIEW, PROGRESS):  # the page has its own; its reader has no progress
            continue
        shown = _blocks(cell, stubs, cards, reading)
        begun = begun or cell.id in openings
        if cell.cell_type == "markdown" and begun:
            shown = [_lowered(source, cell.id in openings and cell.id) for source in shown]
        blocks += shown
        if number == 0:  # after title and summary
            blocks += [_contents(sittings, exercises)] if exercises else []
            if explorer is not None:
                blocks.append(f"[Try it in the explorer](../explorers/{explorer}.md).")
    return _styled_once("\n\n".join(block for block in blocks if block)) + "\n"


def _first_sentence(text: str) -> str:
    sentence = re.split(r"(?<=\.)\s", text.strip(), maxsplit=1)[0]
    return '"' + re.sub(r'[`"\\]', "", sentence) + '"'


def _contents(sittings: Sequence[Sitting], exercises: Sequence[Exercise]) -> str:
    """What awaits: the sittings with links, if there are any; and the exercises, folded."""
    minutes = minutes_of(exercises)
    points = sum(exercise.points for exercise in exercises)
    title = f"{len(exercises)} exercises · about {in_hours(minutes)} · {points:g} points"
    cards = {one.id: one for one in exercises}
    rows = ["| exercise | minutes | difficulty | points | after |", "|---|--:|---|--:|---|"]
    for one in exercises:
        level = "●" * one.difficulty + "○" * (5 - one.difficulty)
        after = _after(one.prerequisites, cards)
        rows.append(f"| {_link(one)} | {one.minutes} | {level} | {one.points:g} | {after} |")
    folded = _folded("note", title, "\n".join(rows))
    if not sittings:
        return folded
    table = overview(
        sittings, exercises, lambda one: f"[{one.question}](#{opening_id(one.id)})", _link
    )
    return f"{table}\n\n{folded}"


def _link(exercise: Exercise) -> str:
    return f"[{exercise.title}](#{exercise.id})"


def _lowered(source: str, opening: str | bool) -> str:
    """Return Markdown with its headings a level lower: sittings stand above them on the page.

    An opening's own is the notebook's highest, as a title is: it becomes the second.
    """
    outside = re.split(r"(^```.*?^```$)", source, flags=re.MULTILINE | re.DOTALL)
    for place in range(0, len(outside), 2):
        outside[place] = re.sub(r"^#(#*) ", r"##\1 ", outside[place], flags=re.MULTILINE)
    lowered = "".join(outside)
    if not opening:
        return lowered
    return re.sub(r"^(## .*)$", rf"\1 {{ #{opening} }}", lowered, count=1, flags=re.MULTILINE)


def _after(names: Sequence[str], cards: Mapping[str, object]) -> str:
    """Name exercises, with links to those of this chapter."""
    return ", ".join(f"[`{name}`](#{name})" if name in cards else f"`{name}`" for name in names)


def _blocks(
    cell: NotebookNode,
    stubs: Mapping[str, str],
    cards: Mapping[str, Mapping[str, Any]],
    reading: Mapping[str, Sequence[Sequence[str]]],
) -> list[str]:
    if cell.cell_type == "markdown":
        name = cell.id.removesuffix("-card") if cell.id.endswith("-card") else ""
        source = _with_anchor(cell.source, name)
        if name in cards and cards[name]["prerequisites"]:
            plain = ", ".join(f"`{other}`" for other in cards[name]["prerequisites"])
            after = _after(cards[name]["prerequisites"], cards)
            source = source.replace(f"after {plain}", f"after {after}", 1)
        return [source]
    if is_solution_cell(cell):
        solution = _code(_bare(cell.source))
        return [_code(stubs[cell.id]), _folded("success", "Reference solution", solution)]
    if not is_grade_cell(cell):
        return [_code(cell.source), *(_output(output) for output in cell.outputs)]
    # the verdict alone: below it stands the bare number for nbgrader
    verdicts = [output for output in cell.outputs if output.output_type == "display_data"]
    blocks = [_code(cell.source), *map(_output, verdicts)]
    found = reading.get(cell.id.removesuffix("-grade"), ())
    links = [f"[{words}]({address})" for words, address, _ in found]
    if links:
        blocks.append(f"*In PyTorch:* {', '.join(links)}")
    return blocks


def _with_anchor(source: str, anchor: str) -> str:
    source = source.replace("<details>", '<details markdown="1">')
    if not anchor:
        return source
    return re.sub(r"^(## .*)$", rf"\1 {{ #{anchor} }}", source, count=1, flags=re.MULTILINE)


def _styled_once(page: str) -> str:
    """Drop the styles that outputs bring along, except where each is seen first."""
    seen: set[str] = set()

    def keep(match: re.Match[str]) -> str:
        again = match[0] in seen
        seen.add(match[0])
        return "" if again else match[0]

    return re.sub(r"<style>.*?</style>", keep, page, flags=re.DOTALL)


def _bare(source: str) -> str:
    lines = source.splitlines()
    return "\n".join(line for line in lines if not re.match(r"\s*### (BEGIN|END) SOLUTION", line))


def _code(source: str, language: str = "python") -> str:
    return f"```{language}\n{source.strip(chr(10))}\n```"


def _folded(kind: str, title: str, body: str) -> str:
    return f'??? {kind} "{title}"\n\n{textwrap.indent(body, "    ")}'


def _output(output: NotebookNode) -> str:
    if output.output_type == "stream":
        return _code(output.text, "text")
    data = output.get("data", {})
    if "text/html" in data:
        return f'<div class="output" markdown="0">{data["text/html"]}</div>'
    if "image/svg+xml" in data:
        return f'<div class="output" markdown="0">{data["image/svg+xml"]}</div>'
    return _code(data.get("text/plain", ""), "text")
