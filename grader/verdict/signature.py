"""How an exercise's function is to be called: its stub says so, where an answer cannot be called like that."""

from __future__ import annotations

import ast
import re

from grader.submission.names import parse, plain_python
from grader.verdict.interview import Raised

_REFUSED = re.compile(r"([\w.]+)\(\) (?:takes|missing|got)\b")
"""What Python says of a call that does not fit: the function's qualified name comes first."""


def signature_asked_for(stub: str, raised: Raised) -> str | None:
    """Return e.g. "decode(bits, fmt)" if a call of ours did not fit the student's signature; else None.

    A call in the student's own code has a line there.
    """
    refused = _REFUSED.match(raised.message)
    if raised.type != "TypeError" or raised.where or refused is None:
        return None
    tree = parse(plain_python(stub))
    scope: list[ast.stmt] = tree.body if tree else []
    path = refused[1].split(".")
    found: ast.stmt | None = None
    for name in path:
        found = next((node for node in scope if getattr(node, "name", None) == name), None)
        scope = getattr(found, "body", [])
    if not isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    return f"{'.'.join(path)}({ast.unparse(found.args)})"
