"""Boxes, lines and words of a picture, as one SVG element. Those of one style share a path."""

from __future__ import annotations

from html import escape


class Canvas:
    """Boxes and words at whole pixels. It has no ids: two pictures may stand in one page."""

    def __init__(self) -> None:
        self._paths: dict[str, list[str]] = {}
        self._texts: list[str] = []
        self.width = 0
        self.height = 0

    def box(self, x: int, y: int, width: int, height: int, style: str) -> None:
        """Draw a rectangle. The half pixel puts its line on a pixel."""
        self.path(f"M{x}.5 {y}.5h{width}v{height}h-{width}z", style)
        self.reach(x + width, y + height)

    def path(self, steps: str, style: str) -> None:
        """Draw any line. It does not make the drawing larger."""
        self._paths.setdefault(style, []).append(steps)

    def text(self, x: int, y: int, words: str, style: str = "") -> None:
        """Write words with their middle at `x`; with style "l" they begin there, with "e" end."""
        kind = f' class="{style}"' if style else ""
        self._texts.append(f'<text x="{x}" y="{y}"{kind}>{escape(words)}</text>')
        self.reach(x + (7 * len(words) if style.startswith("l") else 0), y)

    def reach(self, x: int, y: int) -> None:
        """Make the drawing large enough for this place."""
        self.width, self.height = max(self.width, x + 4), max(self.height, y + 4)

    def to_svg(self, title: str, description: str) -> str:
        """Return the drawing, second frames over all others. A screen reader says `title` and `description` in its place."""
        paths = "".join(
            f'<path class="{style}" d="{"".join(boxes)}"/>'
            for style, boxes in sorted(self._paths.items(), key=lambda path: path[0] == "d")
        )
        return (
            f'<svg role="img" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}"><title>{escape(title)}</title>'
            f"<desc>{escape(description)}</desc>{paths}{''.join(self._texts)}</svg>"
        )
