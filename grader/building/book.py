"""A chapter's pages for the site: an overview, a page for each sitting, and the solutions apart.

The overview keeps the address that the whole chapter once had. Each link of its contents has the
anchor of what it leads to, so that an old address ends at the right line of it; a script goes on from
there (`site/assets/book.js`), and the site's own links are led past it (`site/book.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from nbformat import NotebookNode

from grader.building.anchors import Anchors, Section
from grader.building.page import SOLUTIONS, Surroundings, body, code
from grader.building.predictions import Measured
from grader.building.sittings import OVERVIEW, PROGRESS, STAR, TITLE, counted, opening_id
from grader.course.cells import is_solution_cell
from grader.course.course import exercises_in, sittings_in
from grader.course.exercise import Exercise, Sitting, in_hours, minutes_of, short_path
from grader.course.solution_marks import without_marks

_GENERATED = "<!-- Built by `undertorch build` from solutions/{chapter}; edits here are lost. -->"


def chapter_pages(
    reference: NotebookNode, chapter: str, explorer: str | None, values: Measured
) -> dict[str, str]:
    """Return the Markdown of a chapter's pages, by their place below `site/chapters`.

    `reference` is executed, `values` are what its predictions come out as. `explorer` is the name of
    the explorer's page that belongs to the chapter, if there is one. A chapter without sittings has
    all of its text on one page.
    """
    card = reference.metadata["undertorch"]
    exercises = exercises_in(reference, chapter)
    sittings = sittings_in(reference, exercises)
    names = [*(one.id for one in exercises), *(opening_id(one.id) for one in sittings)]
    anchors = Anchors.besides(card["title"], names)
    solutions = SOLUTIONS if sittings else f"{chapter}/{SOLUTIONS}"
    around = Surroundings(
        {one.id: one for one in exercises},
        card.get("reading", {}),
        values,
        solutions,
        "../../explorers" if sittings else "../explorers",
    )
    parts = _parts(reference.cells, sittings)
    pages: dict[str, str] = {}
    opening, _ = body(parts[""], anchors, around)
    contents: dict[str, list[Section]] = {}
    for one, following in zip(sittings, [*sittings[1:], None], strict=False):
        text, contents[one.id] = body(parts[one.id], anchors, around)
        pages[f"{chapter}/{one.id}.md"] = _sitting_page(
            chapter, card["title"], one, len(sittings), following, text
        )
    listed = [*_overview(chapter, card, sittings, exercises, contents, explorer), opening]
    page = "\n\n".join(block for block in listed if block)
    pages = {f"{chapter}.md": page, **pages}
    if exercises:
        pages[f"{chapter}/{SOLUTIONS}.md"] = _solutions_page(
            reference, chapter, card["title"], exercises, sittings
        )
    return {name: _styled_once(text) + "\n" for name, text in pages.items()}


def _parts(
    cells: Sequence[NotebookNode], sittings: Sequence[Sitting]
) -> dict[str, list[NotebookNode]]:
    """Return the cells of each sitting, by its id, and under "" those above the first.

    What only a notebook needs is left out: its title, what awaits, openings and ends, progress.
    """
    openings = {opening_id(one.id): one.id for one in sittings}
    ours = {TITLE, OVERVIEW, PROGRESS, *(f"{name}-end" for name in openings)}
    parts: dict[str, list[NotebookNode]] = {"": [], **{one.id: [] for one in sittings}}
    now = ""
    for cell in cells:
        if cell.id in openings:
            now = openings[cell.id]
        elif cell.id not in ours:
            parts[now].append(cell)
    return parts


def _plain(text: str) -> str:
    """Return a line of Markdown without its marks, as a quoted text of YAML."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"[\\*]", "", part) for part in parts[::2]]  # the others are code
    return json.dumps("".join(parts), ensure_ascii=False)


def _head(title: str, description: str, chapter: str, *more: str) -> str:
    said = _first_sentence(description)
    front = [f"title: {_plain(title)}", f"description: {_plain(said)}", *more]
    return "\n".join(["---", *front, "---", "", _GENERATED.format(chapter=chapter)])


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.?])\s", " ".join(text.split()), maxsplit=1)[0]


def _numbered(chapter: str, title: str) -> str:
    """Return a chapter's title with its number, if its name has one: "Chapter 2: Strides"."""
    number = re.match(r"ch0*(\d+)_", chapter)
    return f"Chapter {number[1]}: {title}" if number else title


def _overview(
    chapter: str,
    card: Mapping[str, Any],
    sittings: Sequence[Sitting],
    exercises: Sequence[Exercise],
    contents: Mapping[str, Sequence[Section]],
    explorer: str | None,
) -> list[str]:
    """What one will be able to do, how long it takes, and where all of it is."""
    title, summary = card["title"], card["summary"]
    # its sittings' pages say more of what one searches, and have the same headings
    more = ["hide: [toc]", "search:\n  boost: 0.5"] if sittings else []
    head = _head(_numbered(chapter, title), summary, chapter, *more)
    blocks = [head, f"# {title}", summary.strip()]
    if explorer is not None:
        blocks.append(f"[Try it in the explorer](../explorers/{explorer}.md).")
    if not exercises:
        return blocks
    total = f"{counted(exercises)}, about {in_hours(minutes_of(exercises))}"
    if not sittings:
        return [*blocks, f"**{total}.**", _table(exercises, {})]
    where = {
        one.id: f"{chapter}/{sitting.id}.md" for sitting in sittings for one in sitting.exercises
    }
    short = short_path(exercises)
    partly = 0 < len(short) < len(exercises)
    blocks.append(
        f"**{total}, in {len(sittings)} sitting{'s' * (len(sittings) != 1)}.** "
        "Each sitting answers a question and ends where one can stop."
    )
    blocks.append("## What you will be able to do { #able }")
    if partly:
        blocks.append(
            f"The **short path** is what everyone should have built: {counted(short)}, about "
            f"{in_hours(minutes_of(short))}, marked {STAR} below."
        )
    able = short if partly else exercises
    blocks.append(
        "\n".join(f"- [{one.title}]({where[one.id]}#{one.id}): {one.teaches}" for one in able)
    )
    blocks.append("## Its sittings { #sittings }")
    known = {one.id: one for one in exercises}
    blocks += [_entry(chapter, one, contents[one.id], known, partly=partly) for one in sittings]
    return [*blocks, _table(exercises, where)]


def _entry(
    chapter: str,
    sitting: Sitting,
    contents: Sequence[Section],
    exercises: Mapping[str, Exercise],
    *,
    partly: bool,
) -> str:
    """One sitting in the overview. The anchors of what it holds stand on the links to it."""
    page = f"{chapter}/{sitting.id}.md"
    head = f"### {sitting.number}. [{sitting.question}]({page}){{ #{opening_id(sitting.id)} .ut-moved }}"
    lines = [f"{sitting.minutes} minutes", ""]
    for one in contents:
        link = f"[{one.title}]({page}#{one.anchor}){{ #{one.anchor} .ut-moved }}"
        exercise = exercises.get(one.anchor)
        if exercise is None:
            lines.append(f"- {link}")
        else:
            star = f" {STAR}" if partly and exercise.short else ""
            lines.append(f"- **{link}**{star}, {exercise.minutes} minutes")
    return "\n".join([head, "", *lines])


def _table(exercises: Sequence[Exercise], where: Mapping[str, str]) -> str:
    """What each exercise takes and builds on, folded."""
    cards = {one.id: one for one in exercises}

    def link(one: Exercise, words: str) -> str:
        return f"[{words}]({where.get(one.id, '')}#{one.id})"

    rows = ["| exercise | minutes | difficulty | points | after |", "|---|--:|---|--:|---|"]
    for one in exercises:
        level = "●" * one.difficulty + "○" * (5 - one.difficulty)
        after = ", ".join(
            link(cards[name], f"`{name}`") if name in cards else f"`{name}`"
            for name in one.prerequisites
        )
        rows.append(
            f"| {link(one, one.title)} | {one.minutes} | {level} | {one.points:g} | {after} |"
        )
    points = sum(one.points for one in exercises)
    title = f"{counted(exercises)}, {points:g} points: what each takes, and builds on"
    table = "\n".join(f"    {row}" for row in rows)
    return f'??? note "{title}"\n\n{table}'


def _sitting_page(
    chapter: str, title: str, sitting: Sitting, of: int, following: Sitting | None, text: str
) -> str:
    facts = [f"**{sitting.minutes} minutes**", f"sitting {sitting.number} of {of}"]
    facts.append(f"[{title}](../{chapter}.md)")
    end = f"**The answer.** {sitting.reached}"
    if following is None:
        end += f"\n\nThis is the end of the chapter [{title}](../{chapter}.md)."
    else:
        end += (
            f"\n\nA good place to stop. Next, in {following.minutes} minutes: "
            f"[{following.question}]({following.id}.md)"
        )
    return "\n\n".join(
        [
            _head(sitting.question, sitting.reached, chapter),
            f"# {sitting.question}",
            " · ".join(facts),
            text,
            f'<div class="ut-answer" markdown="1">\n\n{end}\n\n</div>',
        ]
    )


def _solutions_page(
    reference: NotebookNode,
    chapter: str,
    title: str,
    exercises: Sequence[Exercise],
    sittings: Sequence[Sitting],
) -> str:
    """All solutions of a chapter, on a page that no search shows."""
    known = {one.id: one for one in exercises}
    where = {each.id: f"{one.id}.md" for one in sittings for each in one.exercises}
    blocks = [
        _head(
            f"Solutions: {title}",
            f"The reference solutions of the chapter {title}.",
            chapter,
            "search:\n  exclude: true",
        ),
        f"# Solutions: {title}",
        "One way among others. Each gets all points of its exercise.",
    ]
    for cell in reference.cells:
        if is_solution_cell(cell):
            one = known[cell.id]
            back = f"{where.get(one.id, f'../{chapter}.md')}#{one.id}"
            blocks.append(f"## {one.title} {{ #{one.id} }}")
            blocks += [code(without_marks(cell.source)), f"[Back to the exercise]({back})"]
    return "\n\n".join(blocks)


def _styled_once(page: str) -> str:
    """Drop the styles that outputs bring along, except where each is seen first."""
    seen: set[str] = set()

    def keep(match: re.Match[str]) -> str:
        again = match[0] in seen
        seen.add(match[0])
        return "" if again else match[0]

    return re.sub(r"<style>.*?</style>", keep, page, flags=re.DOTALL)
