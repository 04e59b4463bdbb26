"""Reads a chapter's source (`*.pct.py`) into a notebook with nbgrader's metadata.

The source is Jupytext's percent format. Five kinds of cell carry a mark:

    # %% [markdown] chapter="ch01_formats"      YAML: title, summary, preload
    # %% [markdown] sitting="rounding"          YAML: question, reached
    # %% [markdown] exercise="round_to_bf16"    YAML: the exercise's card
    # %% solution="round_to_bf16"               with ### BEGIN SOLUTION and ### END SOLUTION
    # %% grade="round_to_bf16"                  grade("round_to_bf16")

All else follows from these: nbgrader's metadata, ids, points.

From a card to its grade cell, `{{name}}` stands for the value of one of the card's parameters.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jupytext
import nbformat
import yaml
from nbformat import NotebookNode

from grader.building import views
from grader.building.forbidden import (
    Family,
    WrongRules,
    card_lines,
    check_rules,
    phrase_of,
    read_families,
    rules_of,
)
from grader.building.sections import Source, check_sections, check_stub
from grader.building.sittings import SITTING, STAR, TITLE, check_places, opening_id, with_sittings
from grader.course.course import AuthorError
from grader.course.parameters import (
    Parameter,
    Values,
    public_values,
    read_parameters,
    render,
)
from grader.inside.process.budget import Budget, changed
from grader.submission.grade_call import grade_call

Variant = Mapping[str, Values]
"""A private variant of a chapter: the values of its exercises' parameters, by exercise id."""


CARD = {
    "title": str,
    "minutes": int,
    "difficulty": int,
    "points": int,
    "prerequisites": list,
    "teaches": str,
    "leaves out": str,
    "off limits": list,
}
"""What every exercise's card declares. Difficulty runs from 1 to 5.

Five keys may be left out. `forbids` says in a phrase what is off limits, `allowed` which families of
operators alone are not: see `grader.building.forbidden`. `short: true` puts it on the short path. `budget` is what the exercise may spend where that differs from the
course's limits, by the names of `grader.inside.process.budget.Budget`: `budget: {cpu_seconds: 60}`.
`parameters` are what private variants change: see `grader.course.parameters`.
"""

_METADATA = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    },
    # no version: it would differ between machines
    "language_info": {
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "pygments_lexer": "ipython3",
    },
}


def read_source(path: Path, variant: Variant | None = None) -> NotebookNode:
    """Return the notebook of a source, not executed: of a private variant, or the public one.

    Raises `AuthorError`.
    """
    return without_views(path, read_whole(path, variant))


def without_views(path: Path, whole: NotebookNode) -> NotebookNode:
    """Return the notebook of `whole`, which `read_whole` returned. Raises `AuthorError`."""
    notebook = copy.deepcopy(whole)
    try:
        views.cut(notebook.cells)
    except ValueError as error:
        raise AuthorError(f"{path}: {error}") from None
    return notebook


def read_whole(path: Path, variant: Variant | None = None) -> NotebookNode:
    """Return what pages are made of: the notebook of a source with the paragraphs that ask for a view.

    Notebooks cannot show one. Raises `AuthorError`.
    """
    source = Source(path, path.read_text(encoding="utf-8"))
    read = jupytext.reads(source.text, fmt="py:percent")
    check_sections(source, read.cells)
    check_places(source, read.cells)
    notebook: NotebookNode = nbformat.v4.new_notebook(metadata=_METADATA)
    notebook.nbformat_minor = 5
    cards: dict[str, dict[str, Any]] = {}
    ids = _Ids()
    families = _families(source, read.cells)
    for cell in _filled_in(source, read.cells, variant or {}):
        notebook.cells.append(_convert(source, cell, cards, ids, notebook.metadata, families))
    if "undertorch" not in notebook.metadata:
        raise AuthorError(f'{path}: the first cell must be marked [markdown] chapter="…"')
    chapter = notebook.metadata["undertorch"]["chapter"]
    notebook.cells = with_sittings(
        notebook, chapter, _markdown, lambda id, text: _code(id, text, {})
    )
    return notebook


def _filled_in(
    source: Source, cells: list[NotebookNode], variant: Variant
) -> Iterator[NotebookNode]:
    """Yield the cells, with the values of its parameters in each exercise's texts.

    A card keeps its templates as metadata: rules of what is off limits are filled in where they
    are read, because a live notebook may be of another variant than the course around it.
    """
    values: Values = {}
    for cell in cells:
        marks = cell.metadata
        if "exercise" in marks:
            name = marks["exercise"]
            declared = _yaml(source.at("exercise", name), cell.source, f"card of {name}")
            parameters = _parameters(source, name, declared)
            values = variant.get(name) or public_values(parameters)
            marks["declared"] = declared
            if name in variant:
                marks["variant"] = variant[name]
        try:
            cell.source = render(cell.source, values)
        except ValueError as error:
            first = cell.source.strip().split("\n")[0]
            raise AuthorError(
                f"{source.path}: in the cell that begins {first!r}: {error}"
            ) from None
        if "grade" in marks:
            cell.source = grade_call(marks["grade"], variant.get(marks["grade"]))
            values = {}
        yield cell


def _families(source: Source, cells: list[NotebookNode]) -> dict[str, Family]:
    """Return the families of rules that the chapter's card declares."""
    for cell in cells:
        if name := cell.metadata.get("chapter"):
            where = source.at("chapter", name)
            try:
                return read_families(
                    _yaml(where, cell.source, "chapter card").get("off limits", {})
                )
            except WrongRules as error:
                raise AuthorError(f"{where}: the chapter card, {error}") from None
    return {}


def _parameters(source: Source, name: str, declared: Mapping[str, Any]) -> tuple[Parameter, ...]:
    try:
        return read_parameters(declared.get("parameters", {}))
    except ValueError as error:
        where = source.at("exercise", name)
        raise AuthorError(f"{where}: the card of {name} has wrong parameters: {error}") from None


def _convert(
    source: Source,
    cell: NotebookNode,
    cards: dict[str, dict[str, Any]],
    ids: _Ids,
    metadata: dict[str, Any],
    families: Mapping[str, Family],
) -> NotebookNode:
    marks = cell.metadata
    if "chapter" in marks:
        where = source.at("chapter", marks["chapter"])
        declared = _yaml(where, cell.source, "chapter card")
        declared.pop("off limits", None)  # it stands in the cards
        metadata["undertorch"] = {"chapter": marks["chapter"], "preload": [], **declared}
        return _markdown(ids.take(TITLE), f"# {declared['title']}\n\n{declared['summary']}")
    if "sitting" in marks:
        ids.section = opening_id(marks["sitting"])
        metadata["undertorch"].setdefault("sittings", []).append(
            _sitting(source.at("sitting", marks["sitting"]), marks["sitting"], cell.source)
        )
        return _markdown(ids.section, "")
    if "exercise" in marks:
        name = marks["exercise"]
        where = source.at("exercise", name)
        card = _card(where, name, _yaml(where, cell.source, f"card of {name}"), families)
        cards[name] = {**card, "off_limits": rules_of(marks["declared"], families)}
        cards[name].pop("allowed", None)
        if phrase := phrase_of({**card, "off limits": card["off_limits"]}, families):
            cards[name]["forbids"] = phrase
        if sittings := metadata["undertorch"].get("sittings"):
            cards[name]["sitting"] = sittings[-1]["id"]
        if "parameters" in card:
            cards[name]["parameters"] = marks["declared"]["parameters"]
        if "variant" in marks:
            cards[name]["variant"] = dict(marks["variant"])
        ids.section = name
        return _markdown(ids.take(f"{name}-card"), _card_markdown(card, families))
    if "solution" in marks:
        check_stub(source.at("solution", marks["solution"]), marks["solution"], cell.source)
    for role in ("solution", "grade"):
        if role in marks:
            return _graded(role, marks[role], cell.source, cards, ids)
    if cell.cell_type == "markdown":
        ids.enter(cell.source)
        return _markdown(ids.take(), cell.source)
    return _code(ids.take(), cell.source, {})


def _graded(
    role: str, name: str, source: str, cards: Mapping[str, dict[str, Any]], ids: _Ids
) -> NotebookNode:
    solution = role == "solution"
    nbgrader: dict[str, Any] = {
        "grade": not solution,
        "grade_id": name if solution else f"{name}-grade",
        "locked": not solution,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }
    metadata: dict[str, Any] = {"nbgrader": nbgrader}
    if solution:
        metadata["undertorch"] = cards[name]
    else:
        nbgrader["points"] = cards[name]["points"]
    return _code(ids.take(nbgrader["grade_id"]), source, metadata)


def _yaml(where: str, text: str, what: str, least: str = "title") -> dict[str, Any]:
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise AuthorError(f"{where}: the {what} is no YAML: {error}") from None
    if not isinstance(data, dict) or least not in data:
        raise AuthorError(f"{where}: the {what} needs at least a {least}")
    return data


def _sitting(where: str, name: str, text: str) -> dict[str, str]:
    if not re.fullmatch(r"[a-z0-9-]+", name):
        raise AuthorError(
            f"{where}: the sitting {name!r} becomes a part of addresses: write small letters, "
            "digits and hyphens alone."
        )
    declared = _yaml(where, text, f"sitting {name}", "question")
    if set(declared) != SITTING or not all(isinstance(each, str) for each in declared.values()):
        raise AuthorError(
            f"{where}: the sitting {name} needs `question` and `reached`, two texts, alone"
        )
    return {"id": name, **{key: declared[key].strip() for key in sorted(SITTING)}}


def _card(
    where: str, name: str, declared: dict[str, Any], families: Mapping[str, Family]
) -> dict[str, Any]:
    for key, kind in CARD.items():
        if not isinstance(declared.get(key), kind):
            raise AuthorError(f"{where}: the card of {name} needs `{key}`, a {kind.__name__}")
    if not isinstance(declared.get("short", False), bool):
        raise AuthorError(f"{where}: in the card of {name}, `short` is `true`, or is left out")
    unknown = sorted(
        set(declared) - set(CARD) - {"allowed", "budget", "forbids", "parameters", "short"}
    )
    if unknown:
        raise AuthorError(f"{where}: the card of {name} has unknown keys: {', '.join(unknown)}")
    try:
        changed(Budget(), declared.get("budget", {}))
    except ValueError as error:
        raise AuthorError(f"{where}: the card of {name} has a wrong budget: {error}") from None
    try:
        check_rules(rules_of(declared, families))
        card_lines(declared, families)
    except WrongRules as error:
        raise AuthorError(f"{where}: the card of {name}, {error}") from None
    return {key.replace(" ", "_"): value for key, value in declared.items()}


def _card_markdown(card: Mapping[str, Any], families: Mapping[str, Family]) -> str:
    level = "●" * card["difficulty"] + "○" * (5 - card["difficulty"])
    facts = [f"**{card['minutes']} minutes**", f"{card['points']} points", f"difficulty {level}"]
    if card.get("short"):
        facts.append(f"{STAR} short path")
    if card["prerequisites"]:
        facts.append("after " + ", ".join(f"`{other}`" for other in card["prerequisites"]))
    lines = [f"## {card['title']}", "", " · ".join(facts), ""]
    lines += [f"*You learn* {card['teaches']}  ", f"*Left out:* {card['leaves_out']}"]
    forbidden = card_lines({**card, "off limits": card["off_limits"]}, families)
    if forbidden:
        lines[-1] += "  "
    lines += forbidden
    return "\n".join(lines)


def _markdown(id: str, source: str) -> NotebookNode:
    cell: NotebookNode = nbformat.v4.new_markdown_cell(source, id=id)
    return cell


def _code(id: str, source: str, metadata: dict[str, Any]) -> NotebookNode:
    # a formatter leaves blank lines above a definition; a cell begins with its text
    cell: NotebookNode = nbformat.v4.new_code_cell(source.strip("\n"), id=id, metadata=metadata)
    return cell


class _Ids:
    """Hands out cell ids that depend on the source alone: the section and a number in it."""

    def __init__(self) -> None:
        self.section = "start"
        self._count: dict[str, int] = {}

    def enter(self, markdown: str) -> None:
        """Start a new section where the cell begins with a second-level heading."""
        heading = re.match(r"##\s+(.+)", markdown)
        if heading:
            self.section = re.sub(r"[^a-z0-9]+", "-", heading.group(1).lower()).strip("-")[:48]

    def take(self, id: str = "") -> str:
        """Return `id`, or the next one of the section."""
        if id:
            return id
        self._count[self.section] = self._count.get(self.section, 0) + 1
        return f"{self.section}-{self._count[self.section]}"
