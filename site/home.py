"""A mkdocs hook: what the home page shows and nobody types. Numbers of the course, pictures of explorers.

The numbers come from the ledgers of proofs, the myths and the questions. The pictures are drawn here,
in the page's own colours; the list of explorers shows them too.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

NUMBERS, GALLERY = "<!-- numbers -->", "<!-- explorers -->"

EXPLORERS = {
    "formats": ("Number formats", "Flip a bit of a bfloat16"),
    "strides": ("Strides", "Which bytes does it read?"),
    "matmul": ("Matrix products", "Which kernel, what copies"),
    "modules": ("Modules", "What is found, and what forgotten"),
    "autograd": ("Autograd", "The graph behind backward"),
    "dataloader": ("DataLoader", "Who waits for whom"),
    "compile": ("Compile", "Where the graph breaks"),
    "ddp": ("DDP", "What hides behind backward"),
    "dispatch": ("Dispatch", "Which kernel gets the call"),
    "watching": ("Watching", "Where did the time go?"),
}
_ENTRY = re.compile(r"^(\[\*\*[^\]]+\*\*\]\((\w+)\.md\)\n:   )", re.MULTILINE)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: object) -> str:
    """Put numbers and pictures in their places."""
    if page.file.src_uri == "index.md":
        site = Path(config.docs_dir)
        markdown = markdown.replace(NUMBERS, _numbers(site)).replace(GALLERY, _gallery())
    elif page.file.src_uri == "explorers/index.md":
        markdown = _ENTRY.sub(lambda found: found[1] + picture(found[2]) + "\n\n    ", markdown)
    return markdown


def numbers(site: Path) -> dict[str, int]:
    """Return how much of each there is in the course around the folder of the site."""
    ledgers = [
        proof
        for path in sorted((site.parent / "grader").glob("ch*/proofs.json"))
        for proof in json.loads(path.read_text(encoding="utf-8"))["exercises"].values()
    ]
    page = site / "myths.md"
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    myths = re.findall(r"\.ut-moved \}$", text, re.MULTILINE)
    questions = [path for path in (site / "questions").glob("*.md") if path.stem != "index"]
    return {
        "exercises": len(list((site.parent / "grader").glob("ch*/test_*.py"))),
        "mistakes": sum(proof["mistakes"] for proof in ledgers),
        "mutants": sum(proof["mutants"] - proof["equivalent"] for proof in ledgers),
        "myths": len(myths),
        "questions": len(questions),
    }


_SAID = {
    "exercises": ("exercises", "chapters/ch01_formats.html"),
    "mistakes": ("known mistakes, each explained", "trial.html"),
    "mutants": (
        "mutants that the checks reject",
        "how-grading-works.html#how-the-graders-are-graded",
    ),
    "myths": ("myths, each with a program", "myths.html"),
    "questions": ("questions answered", "questions/index.html"),
}


def _numbers(site: Path) -> str:
    items = [
        f'<li><a class="ut-plain" href="{_SAID[name][1]}"><b>{number:,}</b> {_SAID[name][0]}</a></li>'
        for name, number in numbers(site).items()
        if number  # a site of a few pages, as tests build it, has not all
    ]
    return f'<ul class="numbers">{"".join(items)}</ul>' if items else ""


def _gallery() -> str:
    items = [
        f'<li><a class="ut-plain" href="explorers/{name}.html">{picture(name)}<b>{title}</b> {said}</a></li>'
        for name, (title, said) in EXPLORERS.items()
    ]
    return f'<ul class="gallery">{"".join(items)}</ul>'


# ── Pictures: 240 by 110, inline, no words ───────────────────────────────────


def picture(name: str) -> str:
    """Return an explorer's picture."""
    body = "".join(_PICTURES[name]())
    return f'<svg class="art" viewBox="0 0 240 110" aria-hidden="true">{body}</svg>'


def _box(x: float, y: float, width: float, height: float, kind: str) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="2" class="{kind}"/>'
    )


def _line(kind: str, *points: tuple[float, float]) -> str:
    way = " ".join(f"{x:g} {y:g}" for x, y in points)
    return f'<path class="{kind}" d="M{way}"/>'


def _dot(x: float, y: float, kind: str, radius: float = 8) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" class="{kind}"/>'


def _formats() -> list[str]:
    bits, fields = "0011110111001101", "s" + "e" * 8 + "m" * 7
    parts = []
    for place, (bit, kind) in enumerate(zip(bits, fields, strict=True)):
        x = 9 + place * 14
        parts.append(_box(x, 26, 12, 26, kind))
        if bit == "1":
            parts.append(_box(x, 47, 12, 5, f"{kind} full"))
    parts.append(_line("thin", (9, 86), (231, 86)))
    for power in range(5):  # neighbours are twice as far apart behind each power of two
        low, step = 9 + 222 * (2**power - 1) / 31, 222 * 2**power / 31 / 4
        for tick in range(4):
            x = low + tick * step
            parts.append(_line("thin", (x, 80 if tick == 0 else 83), (x, 89)))
    return [*parts, _dot(125, 86, "e full", 4.5)]


def _strides() -> list[str]:
    kinds = "mmmmeeeessss"
    order = [row * 4 + column for column in range(4) for row in range(3)]
    parts = [_line("thin", (21 + 18 * at, 36), (21 + 18 * to, 76)) for to, at in enumerate(order)]
    parts += [_box(13 + 18 * at, 18, 16, 18, kinds[at]) for at in range(12)]
    return parts + [_box(13 + 18 * to, 76, 16, 18, kinds[at]) for to, at in enumerate(order)]


def _matmul() -> list[str]:
    parts = []
    for left, top, rows, columns, row, column in (
        (16, 44, 3, 4, 1, None),
        (112, 10, 4, 3, None, 2),
        (112, 88, 0, 0, None, None),
        (182, 44, 3, 3, 1, 2),
    ):
        for r in range(rows):
            for c in range(columns):
                both = row is not None and column is not None
                hit = (r == row and c == column) if both else (r == row or c == column)
                kind = ("e full" if both else "e") if hit else "plain"
                parts.append(_box(left + c * 16, top + r * 16, 14, 14, kind))
    return parts


def _modules() -> list[str]:
    lines = [
        ((120, 20), (50, 56)),
        ((120, 20), (120, 56)),
        ((50, 56), (24, 92)),
        ((50, 56), (76, 92)),
    ]
    parts = [_line("thin", *line) for line in lines]
    parts.append(_line("thin dashed", (120, 20), (192, 56)))
    parts.append(_line("e line", (76, 92), (120, 56)))
    dots = [(120, 20, "m full"), (50, 56, "m"), (120, 56, "e full"), (24, 92, "m"), (76, 92, "e")]
    return [*parts, *(_dot(*dot) for dot in dots), _dot(192, 56, "plain dashed")]


def _autograd() -> list[str]:
    nodes = {
        "x": (24, 24),
        "w": (24, 86),
        "mul": (92, 55),
        "b": (92, 96),
        "add": (154, 55),
        "loss": (216, 55),
    }
    ways = [("x", "mul"), ("w", "mul"), ("mul", "add"), ("b", "add"), ("add", "loss")]
    parts = [_line("thin", nodes[a], nodes[b]) for a, b in ways]
    parts.append('<path class="s line dashed" d="M212 42C180 14 110 20 92 40"/>')
    parts.append('<path class="s line dashed" d="M84 42C70 22 50 16 36 20"/>')
    kinds = {
        "x": "m",
        "w": "m full",
        "b": "m full",
        "mul": "plain",
        "add": "plain",
        "loss": "s full",
    }
    return [*parts, *(_dot(*nodes[name], kind) for name, kind in kinds.items())]


def _dataloader() -> list[str]:
    lanes = [[(0, 42), (44, 40), (88, 44)], [(0, 110), (114, 40)], [(0, 44), (46, 42), (92, 38)]]
    parts = [
        _box(14 + start, 14 + 20 * lane, width, 14, "s full" if width > 100 else "m")
        for lane, bars in enumerate(lanes)
        for start, width in bars
    ]
    taken = [
        (58, 12, "e full"),
        (126, 12, "e full"),
        (140, 12, "e full"),
        (154, 12, "e full"),
        (168, 12, "e full"),
    ]
    parts += [_box(14, 82, 212, 14, "plain dashed")]
    return parts + [_box(x, 82, width, 14, kind) for x, width, kind in taken]


def _compile() -> list[str]:
    widths = [62, 78, 50, 70, 44]
    parts = [
        _box(14, 14 + 18 * row, width, 8, "s full" if row == 2 else "plain")
        for row, width in enumerate(widths)
    ]
    parts.append(_line("s line dashed", (100, 55), (228, 55)))
    for top, nodes in ((14, 3), (68, 3)):
        parts.append(_box(124, top, 92, 30, "m"))
        parts.append(_line("thin", (142, top + 15), (198, top + 15)))
        parts += [_dot(142 + 28 * node, top + 15, "m full", 6) for node in range(nodes)]
    return parts


def _ddp() -> list[str]:
    parts = []
    for rank, slow in enumerate((0, 6)):
        top = 14 + 46 * rank
        parts += [_box(14 + bar * 34 + slow, top, 32, 14, "m") for bar in range(4)]
        parts += [
            _box(14 + 74 + slow, top + 18, 50, 12, "e full"),
            _box(14 + 142 + slow, top + 18, 50, 12, "e"),
        ]
    return parts


def _dispatch() -> list[str]:
    kinds = ["plain", "e full", "plain", "e", "plain", "m full"]
    parts = [
        _box(14, 9 + 16 * lane, 152, 11, kind if kind == "plain" else kind.split()[0])
        for lane, kind in enumerate(kinds)
    ]
    parts.append(_line("e line", (200, 14), (200, 30)))
    parts.append(_line("e line dashed", (200, 30), (200, 94)))
    return parts + [
        _dot(200, 14 + 16 * lane, f"{kinds[lane].split()[0]} full") for lane in (1, 3, 5)
    ]


def _watching() -> list[str]:
    bars = [
        (14, 0, 104, "e"),
        (120, 0, 92, "e"),
        (14, 1, 62, "m"),
        (80, 1, 34, "m"),
        (120, 1, 50, "s"),
        (172, 1, 40, "s"),
        (14, 2, 58, "m full"),
        (122, 2, 44, "s"),
    ]
    parts = [_box(left, 10 + 20 * row, wide, 16, kind) for left, row, wide, kind in bars]
    steps = [
        (14, 94),
        (30, 94),
        (30, 84),
        (84, 84),
        (84, 78),
        (136, 78),
        (136, 72),
        (176, 72),
        (176, 90),
        (212, 90),
    ]
    return [*parts, _line("e line", *steps)]


_PICTURES = {
    "formats": _formats,
    "strides": _strides,
    "matmul": _matmul,
    "modules": _modules,
    "autograd": _autograd,
    "dataloader": _dataloader,
    "compile": _compile,
    "ddp": _ddp,
    "dispatch": _dispatch,
    "watching": _watching,
}
