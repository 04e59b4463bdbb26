"""The pages of questions: what people ask of PyTorch, the answer, and a program that shows it.

One file per chapter in `site/questions/`, in Jupytext's percent format. A cell is a page:

    # %% the-name-of-the-page
    # The question, as people type it?
    #
    # The answer, in Markdown: at most 150 words, in one paragraph or more.
    #
    # Look: strides/view#shape=3x4&ops=transpose.0.1 | What this view shows (views.py). Or no such line.
    #
    # Go on: ch02_strides#view_stride, myths#view-needs-contiguous
    print("a program that shows it")

The programs run when the pages are built. What `Go on` may name, `places.py` says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from grader.building.places import place
from grader.building.programs import block, printed, programs_of, recalled, sources_in
from grader.building.reading import VERSION
from grader.building.views import View, read_view
from grader.course.course import AuthorError, Course

FOLDER = Path("site/questions")
MOST_WORDS = 150
"""Longest answer. Who asks a search engine wants to be back at work in a minute."""

_DESCRIBED = 160
"""Characters of a description that search engines show."""

_OTHERS = 5
"""How many questions of the same file a page ends with."""

_UNSEARCHED = "{ data-search-exclude }"
"""Marks a section that the site's search passes over: it looks for questions and their answers."""

_NOTE = "<!-- Built by `undertorch build questions` from {source}; edits here are lost. -->"

_INDEX = """\
---
title: Questions
description: {count} questions about PyTorch, each with a short answer and a program that proves it
---

{note}

# What people ask

{count} questions, as they are typed into search engines. Each has a page: the answer in at most {words} words, a program that shows it, and what the program printed with torch {version} on a CPU.
"""


@dataclass(frozen=True)
class Question:
    """One question: its page's name, its answer and the program that proves it."""

    name: str
    asked: str
    answer: str
    view: View | None
    further: tuple[str, ...]
    code: str


def read_questions(path: Path) -> tuple[str, list[Question]]:
    """Return a file's heading and its questions. Raises `AuthorError`."""
    head, *cells = re.split(r"^# %% (.+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    title = head.removeprefix("#").partition(":")[0].strip()
    pairs = zip(cells[::2], cells[1::2], strict=True)
    return title, [_question(f"{path}: {name.strip()}", name.strip(), body) for name, body in pairs]


def _question(where: str, name: str, body: str) -> Question:
    comment = re.match(r"(?:#.*\n)+", body)
    text = re.sub(r"^# ?", "", comment[0], flags=re.MULTILINE) if comment else ""
    asked, *parts = [part.strip() for part in text.strip().split("\n\n")]
    look = [part.removeprefix("Look:").strip() for part in parts if part.startswith("Look:")]
    further = [part.removeprefix("Go on:") for part in parts if part.startswith("Go on:")]
    answer = "\n\n".join(part for part in parts if not part.startswith(("Look:", "Go on:")))
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise AuthorError(f"{where}: the name is the page's address: lower case, with hyphens")
    if not (answer and further):
        raise AuthorError(f"{where} must have a question, an answer, and where to go on")
    if (words := len(answer.split())) > MOST_WORDS:
        raise AuthorError(f"{where} answers in {words} words; {MOST_WORDS} must do")
    try:
        view = read_view(look[0]) if look else None
    except ValueError as error:
        raise AuthorError(f"{where}: {error}") from None
    named = tuple(one.strip() for one in ",".join(further).split(","))
    code = body[comment.end() :].strip() if comment else ""
    return Question(name, " ".join(asked.split()), answer, view, named, code)


def questions_pages(course: Course, *, run: bool = True) -> dict[Path, str]:
    """Return the pages, with their index, by path; {} where a course has none.

    All programs are run; without `run` the pages in place say what they print. Raises `AuthorError`.
    """
    read = sources_in(course.root / FOLDER, read_questions)
    if not read:
        return {}
    programs = list(programs_of(read).values())
    pages: dict[Path, str] = {}
    themes = []
    outputs = printed(course, programs) if run else recalled(course.root / FOLDER, programs)
    for (path, (title, questions)), texts in zip(read.items(), outputs, strict=True):
        note = _NOTE.format(source=path.relative_to(course.root).as_posix())
        for at, (one, output) in enumerate(zip(questions, texts, strict=True)):
            others = (questions[at + 1 :] + questions[:at])[:_OTHERS]
            page = FOLDER / f"{one.name}.md"
            if page in pages:
                raise AuthorError(f"{path}: {one.name} is the name of two questions")
            pages[page] = _page(course, one, output, others, note)
        themes.append(_list(title, questions))
    note = _NOTE.format(source=FOLDER.as_posix())
    head = _INDEX.format(count=len(pages), note=note, words=MOST_WORDS, version=VERSION)
    pages[FOLDER / "index.md"] = "\n\n".join([head.rstrip(), *themes]) + "\n"
    return pages


def _list(title: str, questions: list[Question]) -> str:
    rows = "\n".join(f"- [{one.asked}]({one.name}.md)" for one in questions)
    return f"## {title}\n\n{rows}"


def _page(course: Course, one: Question, output: str, others: list[Question], note: str) -> str:
    folder = FOLDER.relative_to("site").as_posix()
    shown = block(one.code, output, "It prints:")
    further = [f"- {place(course, named).link(folder)}" for named in one.further]
    parts = [
        f"---\ntitle: {_quoted(one.asked)}\ndescription: {_quoted(_described(one.answer))}"
        f"{_state_of(one)}\nhide: [navigation]\n---",
        note,
        f"# {one.asked}",
        one.answer,
        f"## A program that shows it {_UNSEARCHED}\n\n{shown}",
        *_view(course, one),
        f"## Where to go on {_UNSEARCHED}\n\n" + "\n".join(further),
    ]
    if others:
        parts.append(
            _list(f"Asked as well {_UNSEARCHED}", others) + "\n- [All questions](index.md)"
        )
    return "\n\n".join(parts) + "\n"


def _state_of(one: Question) -> str:
    return f"\nexplorer: {_quoted(f'{one.view.explorer}#{one.view.state}')}" if one.view else ""


def _view(course: Course, one: Question) -> list[str]:
    if one.view is None:
        return []
    place(course, f"explorers/{one.view.explorer}")
    return [f"## See it {_UNSEARCHED}\n\n{one.view.figure('../explorers')}"]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _described(answer: str) -> str:
    """Return the beginning as a search engine shows it: whole sentences if they are long enough."""
    text = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", " ".join(answer.split()))
    text = re.sub(r"[`*]", "", text).replace('"', "'")  # the theme puts it in an attribute as it is
    if len(text) <= _DESCRIBED:
        return text
    whole = re.match(rf".{{{_DESCRIBED // 2},{_DESCRIBED}}}[.!?](?= )", text)
    return whole[0] if whole else text[:_DESCRIBED].rpartition(" ")[0].rstrip(",;:") + " …"
