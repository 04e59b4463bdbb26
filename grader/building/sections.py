"""Is each exercise's section in a source whole: card, solution cell with its marks, grade cell?

What is forgotten there nobody misses later. A notebook without a grade cell is released as it is,
and of a cell without marks nbgrader cuts out everything.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

from nbformat import NotebookNode

from grader.course.course import AuthorError
from grader.submission.grade_call import read_call

MARKS = ("chapter", "sitting", "exercise", "solution", "grade")
"""What a cell's `# %%` line may say of it."""

_JUPYTEXT = "lines_to_next_cell"


@dataclass(frozen=True)
class Source:
    """A chapter's source: its file and its text."""

    path: Path
    text: str

    def at(self, mark: str, name: str, nth: int = 0) -> str:
        """Return "file:line" of the cell that is marked so, the nth from 0; else the file."""
        header = re.compile(rf'\b{mark}="{re.escape(name)}"')
        lines = [n for n, line in self._headers if header.search(line)]
        return f"{self.path}:{lines[nth]}" if nth < len(lines) else str(self.path)

    @cached_property
    def _headers(self) -> list[tuple[int, str]]:
        """The lines that begin cells, with their numbers."""
        lines = enumerate(self.text.splitlines(), 1)
        return [(n, line) for n, line in lines if line.startswith("# %%")]


def check_sections(source: Source, cells: Sequence[NotebookNode]) -> None:
    """Raise `AuthorError` for the first section that is not whole."""
    for cell in cells:
        _check_marked(source, cell)
    sections = list(_sections(cells))
    names = [name for name, _ in sections]
    for name, section in sections:
        if name and names.count(name) > 1:
            where = source.at("exercise", name, 1)
            raise AuthorError(f"{where}: a second card of {name}. Give one of them another name.")
        for mark in ("solution", "grade"):
            _check_place(source, mark, name, names, section)
        if name:
            _check_parts(source, name, section)


def _check_marked(source: Source, cell: NotebookNode) -> None:
    for mark, name in cell.metadata.items():
        if mark not in (*MARKS, _JUPYTEXT):
            close = get_close_matches(mark, MARKS, n=1)
            slip = f" Is `{close[0]}` meant?" if close else ""
            where = source.at(mark, str(name))
            raise AuthorError(f"{where}: a cell is marked `{mark}`, which means nothing.{slip}")
    if "solution" not in cell.metadata and re.search(r"### (BEGIN|END) SOLUTION", cell.source):
        first = cell.source.strip().split("\n")[0]
        raise AuthorError(
            f"{source.path}: the cell that begins {first!r} has a ### BEGIN or END SOLUTION and is "
            'no solution cell. Mark it `# %% solution="…"`, or take the line out.'
        )


def _sections(cells: Sequence[NotebookNode]) -> Iterator[tuple[str, list[NotebookNode]]]:
    """Yield the cells from each card to the next, under the card's name; before the first, ""."""
    name, section = "", list[NotebookNode]()
    for cell in cells:
        if "exercise" in cell.metadata:
            yield name, section
            name, section = cell.metadata["exercise"], []
        section.append(cell)
    yield name, section


def _check_place(
    source: Source, mark: str, name: str, cards: Sequence[str], section: Sequence[NotebookNode]
) -> None:
    """Refuse a solution or grade cell of another exercise than the card above it is of."""
    for cell in section:
        other = cell.metadata.get(mark, name)
        if other == name:
            continue
        where = source.at(mark, other)
        if other not in cards:
            close = get_close_matches(other, [card for card in cards if card], n=1)
            slip = f"Is `{close[0]}` meant?" if close else "Write one above it."
            raise AuthorError(f"{where}: {other} has no card before its {mark} cell. {slip}")
        raise AuthorError(
            f"{where}: the {mark} cell of {other} stands below the card of {name or 'nothing'}. "
            f"Move it to between the card of {other} and the next one."
        )


def _check_parts(source: Source, name: str, section: Sequence[NotebookNode]) -> None:
    order = [mark for cell in section for mark in ("solution", "grade") if mark in cell.metadata]
    wanted = {
        "solution": "write the answer between ### BEGIN SOLUTION and ### END SOLUTION",
        "grade": f'write grade("{name}")',
    }
    for mark, what in wanted.items():
        if mark not in order:
            raise AuthorError(
                f"{source.at('exercise', name)}: {name} has no {mark} cell. Before the next card, "
                f'add `# %% {mark}="{name}"` and {what}.'
            )
        if order.count(mark) > 1:
            where = source.at(mark, name, 1)
            raise AuthorError(
                f"{where}: a second {mark} cell of {name}. Leave one; make the other a plain `# %%`."
            )
    if order != ["solution", "grade"]:
        where = source.at("grade", name)
        raise AuthorError(f"{where}: the grade cell of {name} comes before its solution cell.")
    for cell in section:
        if "solution" in cell.metadata:
            _check_pairs(source.at("solution", name), name, cell.source)
        if "grade" in cell.metadata:
            _check_call(source.at("grade", name), name, cell.source)


def _check_pairs(where: str, name: str, text: str) -> None:
    """Demand that BEGIN and END SOLUTION take turns, one pair or more."""
    marks = re.findall(r"^\s*### (BEGIN|END) SOLUTION\s*$", text, re.MULTILINE)
    if "BEGIN" not in marks:
        raise AuthorError(
            f"{where}: the solution cell of {name} has no ### BEGIN SOLUTION: students would lose "
            "`def` and docstring too. Write it above the first line that they are to find."
        )
    due = "BEGIN"
    for mark in [*marks, None]:
        if mark != due and (mark or due == "END"):
            found = f"### {mark} SOLUTION comes" if mark else "the cell ends"
            raise AuthorError(
                f"{where}: in the solution cell of {name}, {found} where ### {due} SOLUTION is due. "
                "They go in pairs: BEGIN above what students are to find, END below it."
            )
        due = "END" if mark == "BEGIN" else "BEGIN"


def _check_call(where: str, name: str, text: str) -> None:
    call = read_call(text)
    if call is None:
        raise AuthorError(f'{where}: the grade cell of {name} is to hold grade("{name}") alone.')
    if call[0] != name:
        raise AuthorError(
            f'{where}: the grade cell of {name} grades {call[0]}. Write grade("{name}").'
        )


def check_stub(where: str, name: str, text: str) -> None:
    """Raise `AuthorError` if what nbgrader leaves of a solution cell does not define its name."""
    stub = re.sub(
        r"^([ \t]*)### BEGIN SOLUTION.*?### END SOLUTION[ \t]*$",
        r"\1raise NotImplementedError",
        text,
        flags=re.MULTILINE | re.DOTALL,
    )
    try:
        left, whole = _names(stub), _names(text)
    except SyntaxError as error:
        raise AuthorError(
            f"{where}: without what stands between its marks, the solution cell of {name} is no "
            f"Python: {error.msg} in {(error.text or '').strip()!r}."
        ) from None
    # some ask for a function of another name than the exercise's
    wanted = {name} if name in whole or not whole else whole
    if wanted - left:
        missing = sorted(wanted - left)[0]
        raise AuthorError(
            f"{where}: what students get of the solution cell of {name} defines no {missing}. Leave "
            f"`def {missing}` or `class {missing}`, and its docstring, outside the marks."
        )

    if any(_raises(node) for node in ast.parse(stub).body):
        raise AuthorError(
            f"{where}: what students get of the solution cell of {name} raises when the cell is run, "
            "and then so does a run of all cells. In a class, put ### BEGIN SOLUTION into the body "
            "of its first method; what follows that method is cut out with it."
        )


def _raises(node: ast.stmt) -> bool:
    """Say whether a statement raises while its cell runs: not in a function that it defines."""
    if isinstance(node, ast.Raise):
        return True
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return any(_raises(one) for one in ast.iter_child_nodes(node) if isinstance(one, ast.stmt))


def _names(text: str) -> set[str]:
    """Return the names that a cell defines."""
    return {name for node in ast.parse(text).body for name in _defined(node)}


def _defined(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id
