"""A mkdocs hook: list the attacks of `tests/attacks` on their page, each with what it gets.

The tests hand in every one of them and compare. So the page says what was tried, and nothing else.
"""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

PLACE = "<!-- attacks -->"
KINDS = {
    "shortcut": "Use the built-in that would be the answer",
    "evading": "Hide from what watches",
    "forging": "Forge the result",
    "reading": "Read what is secret",
    "writing": "Write where nothing may be written",
    "breaking": "Break the process or the machine",
    "bombs": "Small to hand in, large to work on",
    "parser": "Slow to read",
    "intake": "Hand in something else than a notebook",
    "notebook": "Change the notebook around the answers",
    "html": "Script and control characters",
    "bidi": "Text that reads otherwise than it runs",
    "innocent": "Odd, and honest",
}
HEADING = re.compile(r"# \w+: ")
TABLE = "| what is handed in | what it gets |\n|---|---|"


def attacks_of(folder: Path) -> str:
    """Return a section with a table for each kind of attack."""
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for path in sorted(folder.glob("*/*/*.py")):
        verdict, kind, _ = path.relative_to(folder).parts
        lines = path.read_text(encoding="utf-8").splitlines()
        head = list(takewhile(lambda line: not line.startswith("# %%"), lines))
        said = " ".join(line.removeprefix("# ") for line in head if not HEADING.match(line))
        looked_at = any(line.startswith(("# review: ", "# review_all: ")) for line in head)
        gets = verdict.replace("_", " ")
        if looked_at and verdict != "needs_review":
            gets += ", and a person looks"
        text = said.replace("|", "\\|").replace("<", "&lt;")
        found[kind].append(f"| {text} | {gets} |")
    parts = [(KINDS[kind], rows) for kind, rows in found.items() if rows]
    return "\n\n".join(f"## {title}\n\n{TABLE}\n" + "\n".join(rows) for title, rows in parts)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: object) -> str:
    """Put the tables in their place."""
    if PLACE not in markdown:
        return markdown
    folder = Path(config.config_file_path).parent / "tests" / "attacks"
    return markdown.replace(PLACE, attacks_of(folder))
