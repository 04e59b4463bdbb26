"""Notebooks that are made to be slow or large to read: small files, and no code in them ever runs."""

import copy
import json


def _nested_finally(depth, lines):
    """Return a function in which CPython copies the last block 2**depth times."""
    text = "def decode(bits, fmt):\n"
    for level in range(1, depth + 1):
        indent = "    " * level
        text += f"{indent}try:\n{indent}    pass\n{indent}finally:\n"
    return text + ("    " * (depth + 1) + "x = bits\n") * lines


def _tower(head, leaf):
    """Return ninety blocks, each in the one before."""
    lines = [" " * level + head for level in range(90)]
    return "\n".join([*lines, " " * 90 + leaf, "def decode(bits, fmt):\n    return bits"])


def _returning(text):
    return f"def decode(bits, fmt):\n    return {text}\n"


ANSWERS = {
    "finally, 8 deep": _nested_finally(8, 300),
    "finally, 16 deep": _nested_finally(16, 1),
    "finally, 19 deep": _nested_finally(19, 1),
    "returns through a finally": (
        "def decode(bits, fmt):\n  try:\n"
        + "    if bits: return 1\n" * 900
        + "  finally:\n"
        + "    x = 1\n" * 900
    ),
    "comprehensions": _returning("[" * 90 + "x" + " for x in bits]" * 90),
    "lambdas": _returning("(lambda: " * 90 + "bits" + ")" * 90),
    "classes": _tower("class A:", "x = 1"),
    "functions": _tower("def f():", "return 1"),
    "brackets": _returning("(" * 30_000 + "1" + ")" * 30_000),
    "signs": _returning("-" * 60_000 + "1"),
    "nots": _returning("not " * 15_000 + "1"),
    "calls": _returning("bits" + "()" * 30_000),
    "attributes": _returning("bits" + ".a" * 30_000),
    "a long sum": _returning("+".join(["bits"] * 12_000)),
    "text in pieces": _returning("getattr(bits, " + "+".join(["'a'"] * 15_000) + ")"),
    "names from names": "\n".join(f"n{i} = n{i + 1} + 'a'" for i in range(2500))
    + "\n"
    + _returning("getattr(bits, n0)"),
    "a name from itself": "n = ''\n" + "n += n\n" * 6000 + _returning("getattr(bits, n)"),
    "alternatives": "def decode(bits, fmt):\n match bits:\n  case "
    + "|".join(["1"] * 25_000)
    + ": pass",
    "chains of helpers": "\n".join(f"def h{i}(): h{i + 1}()" for i in range(2200))
    + "\n"
    + _returning("h0()"),
    "an f-string": _returning("f'" + "{bits}" * 10_000 + "'"),
    "many f-strings": _returning("f'{bits}' " * 5000),
    "decimal digits": _returning("9" * 60_000),
    "hexadecimal digits": _returning("0x" + "f" * 60_000),
    "powers": _returning("**".join(["9"] * 20_000)),
    "a long text": _returning("'" + "x" * 60_000 + "'"),
    "no end of a text": _returning("'''" + "x" * 60_000),
    "quotes": '"' * 60_001,
    "empty lines": "\n" * 60_000 + _returning("bits"),
    "blank lines": (" " * 20 + "\n") * 3000 + _returning("bits"),
    "a blank line": " " * 60_000 + "\n" + _returning("bits"),
    "magics": "%time 1\n" * 8000,
    "questions": "x?\n" * 20_000,
    "questions and blanks": ("?" + " " * 200) * 300,
    "shell lines": "x = !\n" * 10_000,
    "letters of two alphabets": "\n".join(f"a\u0430{i} = 1" for i in range(5000)),
    "half a letter": _returning("'\ud800'"),
    "no letter": "def decode(bits, fmt):\0 return bits",
}
"""Solution cells."""


def _cells(count, source):
    return [{"cell_type": "code", "metadata": {}, "outputs": [], "source": source}] * count


FILES = {
    "deep lists": lambda notebook: "[" * 100_000 + "]" * 100_000,
    "deep objects": lambda notebook: '{"a":' * 100_000,
    "many lists": lambda notebook: "[" + "[]," * 8_000_000 + "0]",
    "many objects": lambda notebook: "[" + "{}," * 8_000_000 + "0]",
    "many numbers": lambda notebook: "[" + "1e5," * 6_000_000 + "0]",
    "a long number": lambda notebook: "9" * 20_000_000,
    "long numbers": lambda notebook: "[" + ("9" * 4000 + ",") * 6000 + "0]",
    "many cells": lambda notebook: json.dumps({**notebook, "cells": _cells(100_000, "x = 1")}),
    "large cells": lambda notebook: json.dumps(
        {**notebook, "cells": notebook["cells"] + _cells(3, "x = 1\n" * 10_000)}
    ),
    "wide letters": lambda notebook: json.dumps(
        {**notebook, "x": "\N{GRINNING FACE}" * 6_000_000}, ensure_ascii=False
    ),
}
"""Whole files, made of a released notebook."""


def with_answer(notebook, text):
    """Return a notebook with a text in the solution cell of `decode`."""
    changed = copy.deepcopy(notebook)
    for cell in changed["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "decode":
            cell["source"] = text
    return changed


def bombs(notebook):
    """Return the text of each file by a name."""
    made = {
        name: lambda t=text: json.dumps(with_answer(notebook, t)) for name, text in ANSWERS.items()
    }
    return {**made, **{name: lambda m=make: m(notebook) for name, make in FILES.items()}}
