"""A chapter's page for the site: prose, exercises, hints folded, solutions behind a click."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping

from nbformat import NotebookNode

_GENERATED = "<!-- Built by `undertorch build` from solutions/{chapter}; edits here are lost. -->"


def chapter_page(
    reference: NotebookNode, released: NotebookNode, chapter: str, explorer: str | None
) -> str:
    """Return the Markdown page of an executed reference notebook.

    `released` gives the stubs that are shown in place of solutions. `explorer` is the name of the
    explorer's page that belongs to the chapter, if there is one.
    """
    stubs = {cell.id: cell.source for cell in released.cells}
    card = reference.metadata["undertorch"]
    head = ["---", f"title: {card['title']}", "---", "", _GENERATED.format(chapter=chapter)]
    blocks = ["\n".join(head)]
    for number, cell in enumerate(reference.cells):
        blocks += _blocks(cell, stubs)
        if number == 0 and explorer is not None:  # after title and summary
            blocks.append(f"[Try it in the explorer](../explorers/{explorer}.md).")
    return "\n\n".join(block for block in blocks if block) + "\n"


def _blocks(cell: NotebookNode, stubs: Mapping[str, str]) -> list[str]:
    role = cell.metadata.get("nbgrader", {})
    if cell.cell_type == "markdown":
        anchor = cell.id.removesuffix("-card") if cell.id.endswith("-card") else ""
        return [_with_anchor(cell.source, anchor)]
    if role.get("solution"):
        return [_code(stubs[cell.id]), _folded("Reference solution", _code(_bare(cell.source)))]
    if role.get("grade"):
        return [_code(cell.source), *(_output(output) for output in cell.outputs)]
    return [_code(cell.source), *(_output(output) for output in cell.outputs)]


def _with_anchor(source: str, anchor: str) -> str:
    source = source.replace("<details>", '<details markdown="1">')
    if not anchor:
        return source
    return re.sub(r"^(## .*)$", rf"\1 {{ #{anchor} }}", source, count=1, flags=re.MULTILINE)


def _bare(source: str) -> str:
    lines = source.splitlines()
    return "\n".join(line for line in lines if not re.match(r"\s*### (BEGIN|END) SOLUTION", line))


def _code(source: str, language: str = "python") -> str:
    return f"```{language}\n{source.strip(chr(10))}\n```"


def _folded(title: str, body: str) -> str:
    return f'??? success "{title}"\n\n{textwrap.indent(body, "    ")}'


def _output(output: NotebookNode) -> str:
    if output.output_type == "stream":
        return _code(output.text, "text")
    data = output.get("data", {})
    if "text/html" in data:
        return f'<div class="output" markdown="0">{data["text/html"]}</div>'
    if "image/svg+xml" in data:
        return f'<div class="output" markdown="0">{data["image/svg+xml"]}</div>'
    return _code(data.get("text/plain", ""), "text")
