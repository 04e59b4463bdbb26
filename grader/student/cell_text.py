"""One cell's text out of three: the course's old one, the student's, the course's new one.

What the student wrote runs as it did. What the course has instead stands beside it as comments.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from grader.student.lines import Clash, lines, merge_lines
from grader.submission.names import parse, plain_python
from grader.submission.program import is_stub

_BOTH = ("── update: the course's new lines ──", "── update: yours, which run ──")
_GONE = "── update: the course took these lines out; yours still run ──"
_NONE = "── update: the course's new lines; you have none here ──"
_END = "── update: end ──"
_STUB = "── update: the course's new stub; your answer, below, is as it was ──"


def merge_prose(base: str, mine: str, new: str) -> str | None:
    """Return the merged text of a cell that is no code; None where both changed the same lines.

    Lines that both added in one place do not clash: the course's come first.
    """
    merged: list[str] = []
    for piece in merge_lines(base, mine, new):
        if isinstance(piece, str):
            merged.append(piece)
        elif piece.added:
            merged += [*piece.new, *piece.mine]
        else:
            return None
    return "\n".join(merged)


def merge_code(base: str, mine: str, new: str) -> tuple[str, bool] | None:
    """Return the merged text of a code cell, and whether both sides stand in it, marked.

    None where that cannot be: the result would not be Python, or the comments would be part of a
    string.
    """
    bare: list[str] = []
    marked: list[str] = []
    clashed = False
    for piece in merge_lines(base, mine, new):
        if isinstance(piece, str):
            bare.append(piece)
            marked.append(piece)
        elif piece.added and all(_whole(side) for side in (piece.new, piece.mine)):
            bare += [*piece.new, *piece.mine]
            marked += [*piece.new, *piece.mine]
        else:
            bare += piece.mine
            marked += _beside(piece)
            clashed = True
    text = "\n".join(marked)
    if clashed:
        # of a cell that another language runs, IPython leaves no code; a `#` may say something there
        foreign = text.startswith("%%") and not plain_python(text).strip()
        return (text, True) if not foreign and _same_code(text, "\n".join(bare)) else None
    broken = _tree(text) is None and None not in (_tree(mine), _tree(new))
    return None if broken else (text, False)


def merge_answer(old_stub: str, mine: str, new_stub: str) -> tuple[str, bool]:
    """Return the text of a solution cell, and whether the student should look at the new stub.

    What the course changed in docstrings and comments comes in. Another signature does not: it
    could break an answer that is right. Then the new stub stands above as comments, if it can.
    """
    noted = "\n".join([*_as_comments([_STUB, *lines(old_stub), _END]), ""])
    mine = mine.removeprefix(noted)
    merged = merge_code(old_stub, mine, new_stub)
    if merged and not merged[1]:
        text = merged[0]
        if (is_stub(mine, old_stub) and is_stub(text, new_stub)) or _same_code(text, mine, True):
            return text, False
    if is_stub(old_stub, new_stub):
        return mine, False
    text = "\n".join([*_as_comments([_STUB, *lines(new_stub), _END]), *mine.split("\n")])
    unfinished = _tree(mine) is None and _tree(text) is None and not mine.lstrip().startswith("%%")
    return (text if unfinished or _same_code(text, mine) else mine), True


def _beside(clash: Clash) -> list[str]:
    """Return the student's lines with the course's above them as comments."""
    heads = (_BOTH if clash.mine else (_NONE,)) if clash.new else (_GONE,)
    indent = min((_indent(line) for line in [*clash.mine, *clash.new] if line.strip()), default="")
    theirs = _as_comments([indent + heads[0], *clash.new], indent)
    ours = [f"{indent}# {head}" for head in heads[1:]]
    return [*theirs, *ours, *clash.mine, f"{indent}# {_END}"]


def _as_comments(text: Sequence[str], indent: str = "") -> list[str]:
    """Return lines as comments, as JupyterLab's Ctrl+/ makes them and takes them back."""
    return [f"{indent}# {line.removeprefix(indent)}".rstrip() for line in text]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _whole(side: Sequence[str]) -> bool:
    """Say whether lines are whole statements at top level, which can stand beside others."""
    return _tree("\n".join(side)) is not None


def _same_code(one: str, other: str, but_docstrings: bool = False) -> bool:
    """Say whether two texts are the same program, comments aside."""
    trees = [_tree(text) for text in (one, other)]
    if None in trees:
        return False
    try:
        first, second = (_dumped(tree, but_docstrings) for tree in trees if tree)
    except RecursionError:
        return False
    return first == second


def _tree(text: str) -> ast.Module | None:
    return parse(plain_python(text))


def _dumped(tree: ast.Module, but_docstrings: bool) -> str:
    if but_docstrings:
        tree = copy.deepcopy(tree)  # the parser hands the same tree to all who ask
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and (
                ast.get_docstring(node, clean=False) is not None
            ):
                del node.body[0]
    return ast.dump(tree)
