"""Known answers to an exercise: mistakes with the explanation they deserve, and alternates.

They are kept in `answers/<exercise>.md`, one section each: a header, what the student reads, and
the solution cell's text, as an edit of the reference or as a whole program.

    ## mistake: sums
    Your gradients are sums. All-reduce adds; divide by the number of ranks.

    ```diff
    - pieces += (flat / dist.get_world_size()).split(sizes)
    + pieces += flat.split(sizes)
    ```

    ## blocked: builtin_ddp
    ## alternate: by_coalescing
    ## mistake: in_order, from by_coalescing     an edit of a whole program of this file
    ## mistake: truncates if bits > 4            one for some values of the parameters only

How an edit reads is told in `grader.course.edits`. Of an exercise with parameters, explanations and
programs may name their values, `{{bits}}`; of an edit, the base is filled in first.
"""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

from grader.course.course import AuthorError, Chapter, Exercise
from grader.course.edits import EditError, Line, code_lines, edited
from grader.course.parameters import Values, holds, render
from grader.course.reference import reference_answer


class AnswersError(AuthorError):
    """Known answers that cannot be read; the message says where and what to do."""


class Role(Enum):
    """What a known answer is known for."""

    MISTAKE = "mistake"
    BLOCKED = "blocked"
    ALTERNATE = "alternate"


@dataclass(frozen=True)
class Answer:
    """One known answer: `name` and the solution cell's text, explained."""

    role: Role
    name: str
    explanation: str
    source: str


@dataclass
class _Section:
    """A section as it is written. `kind` is `diff` or `python`, once its block has begun."""

    role: Role
    name: str
    base: str | None
    condition: str | None
    prose: list[str] = field(default_factory=list)
    kind: str = ""
    block: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        return f"{self.role.value} {self.name}"


_HEADER = re.compile(r"## (mistake|blocked|alternate): (\w+)(?:, from (\w+))?(?: if (.+))?")
_BLOCKS = {"```diff": "diff", "```python": "python"}
_END = "```"


def read_answers(chapter: Chapter, exercise: Exercise) -> tuple[Answer, ...]:
    """Return the known answers to an exercise, in order, for its values; none if there is no file.

    Raises `AnswersError` for a section that is not as it should be, or an edit that does not fit.
    """
    path = chapter.answers(exercise.id)
    if not path.is_file():
        return ()
    where = f"grader/{chapter.id}/answers/{path.name}"
    sections = _sections(where, path.read_text(encoding="utf-8"))
    bases, wanted = _Bases(chapter, exercise, sections), _wanted(exercise)
    found = []
    for section in sections:
        try:
            if section.condition is None or holds(section.condition, exercise.values):
                found.append(_answer(section, exercise.values, bases, wanted))
        except ValueError as error:
            raise AnswersError(f"{where}, {section.title}: {error}.") from None
    return tuple(found)


def _sections(where: str, text: str) -> list[_Section]:
    """Return the sections of a document, checked for what each must have."""
    sections: list[_Section] = []
    open_since = 0
    for number, line in enumerate(text.splitlines(), 1):
        if open_since:
            if line == _END:
                open_since = 0
            else:
                sections[-1].block.append(line)
        elif line.startswith("#"):
            sections.append(_begun(f"{where}, line {number}", line))
        elif line.strip():
            if not sections:
                raise AnswersError(f"{where}, line {number}: write a header above this: {_FORM}.")
            open_since = number if _takes(f"{where}, line {number}", sections[-1], line) else 0
    if open_since:
        raise AnswersError(f"{where}, line {open_since}: close this block with a line {_END}.")
    for section in sections:
        if not section.prose:
            raise AnswersError(
                f"{where}, {section.title}: write its explanation between header and block."
            )
        if not section.kind:
            raise AnswersError(f"{where}, {section.title}: write its ```diff or ```python block.")
    return sections


_FORM = "`## mistake: name`, `## blocked: name` or `## alternate: name`"


def _begun(where: str, line: str) -> _Section:
    header = _HEADER.fullmatch(line.rstrip())
    if header is None:
        raise AnswersError(
            f"{where}: {line!r} is no header. Write {_FORM}; behind the name `, from other` or "
            "` if condition` may follow."
        )
    role, name, base, condition = header.groups()
    return _Section(Role(role), name, base, condition)


def _takes(where: str, section: _Section, line: str) -> bool:
    """Take a line outside of blocks into a section; say whether it opens a block."""
    if section.kind:
        raise AnswersError(
            f"{where}: {section.title} has its block already. Write the explanation above it, or a "
            "header for another answer."
        )
    if not line.startswith(_END):
        section.prose.append(line.strip())
        return False
    if line not in _BLOCKS:
        raise AnswersError(
            f"{where}: {line!r} is neither ```diff nor ```python: write one of them."
        )
    section.kind = _BLOCKS[line]
    if section.base and section.kind == "python":
        raise AnswersError(
            f"{where}: a whole program is no edit: remove `, from {section.base}` from its header, "
            "or write a ```diff block."
        )
    return True


class _Bases:
    """What the edits of one document are edits of, each read when it is first needed."""

    def __init__(self, chapter: Chapter, exercise: Exercise, sections: Sequence[_Section]) -> None:
        self._chapter = chapter
        self._exercise = exercise
        self._sections = sections
        self._known: dict[str | None, tuple[Line, ...]] = {}

    def lines(self, name: str | None) -> tuple[Line, ...]:
        """Return the code of a whole program of the document; of the reference, if None."""
        if name not in self._known:
            program = self._program(name) if name else self._reference()
            try:
                self._known[name] = code_lines(program)
            except SyntaxError as error:
                raise EditError(f"{called(name)} is no Python: {error}") from None
        return self._known[name]

    def _reference(self) -> str:
        return reference_answer(self._chapter, self._exercise)

    def _program(self, name: str) -> str:
        whole = {one.name: one for one in self._sections if one.kind == "python"}
        if name in whole:
            return _filled_in(whole[name].block, self._exercise.values)
        if any(one.name == name for one in self._sections):
            raise EditError(
                f"{name} is an edit itself: name a whole program, or leave out `, from`"
            )
        known = ", ".join(whole) or "none"
        raise EditError(f"no whole program of this file is called {name} (there are: {known})")


def called(base: str | None) -> str:
    """Return what a base is called in messages."""
    return base or "the reference"


def _answer(section: _Section, values: Values, bases: _Bases, wanted: frozenset[str]) -> Answer:
    source = _filled_in(section.block, values)
    if section.kind == "diff":
        base = bases.lines(section.base)
        source = edited(base, source, called(section.base))
        if _tree(source) == _tree("\n".join(line.code for line in base)):
            raise EditError("it changes nothing: write what is different")
    missing = wanted - _defined(source)
    if missing:
        names = ", ".join(sorted(missing))
        raise EditError(f"its program does not define {names}: define it, or correct its name")
    explanation = render(" ".join(section.prose), values)
    return Answer(section.role, section.name, explanation, source)


def _filled_in(block: Sequence[str], values: Values) -> str:
    return render("\n".join(block).strip("\n") + "\n", values)


@lru_cache(maxsize=8)  # a base is asked for again and again
def _tree(source: str) -> str:
    try:
        return ast.dump(ast.parse(source))
    except SyntaxError as error:
        raise EditError(_no_python(error)) from None


def _wanted(exercise: Exercise) -> frozenset[str]:
    """Return what each answer must define: the exercise's name, if the stub does, else the stub's."""
    given = _defined(exercise.stub)
    return given & {exercise.id} or given


def _defined(source: str) -> frozenset[str]:
    """Return the names that a program binds at its top level."""
    try:
        table = symtable.symtable(source, "answer", "exec")
    except SyntaxError as error:
        raise EditError(_no_python(error)) from None
    bound = (one for one in table.get_symbols() if one.is_assigned() or one.is_imported())
    return frozenset(symbol.get_name() for symbol in bound)


def _no_python(error: SyntaxError) -> str:
    return f"its program is no Python: {error.msg}, in {(error.text or '').strip()!r}; correct it"
