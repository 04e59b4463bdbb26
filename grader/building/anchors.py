"""The anchors of a chapter's headings: the same on whichever of its pages a section stands."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from markdown.extensions.toc import slugify, unique

_HEADING = re.compile(r"^(##+) (.+)$", re.MULTILINE)
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Section:
    """A heading of a page: where a link leads, and what it says."""

    anchor: str
    title: str


@dataclass
class Anchors:
    """Hands out anchors as if the whole chapter were one page: a heading that moves keeps its own.

    `taken` are those that are not to be had: of exercises and sittings, and of the title.
    """

    taken: set[str] = field(default_factory=set)

    @classmethod
    def besides(cls, title: str, names: Iterable[str]) -> Anchors:
        """Return those of a chapter with this title, in which these names are anchors already."""
        return cls({slugify(title, "-"), *names})

    def mark(self, source: str) -> tuple[str, list[Section]]:
        """Return Markdown whose headings have anchors of their own where Markdown's would differ."""
        found: list[Section] = []

        def anchored(match: re.Match[str]) -> str:
            plain = slugify(match[2], "-")
            anchor = unique(plain, self.taken)  # adds it to those that are taken
            found.append(Section(anchor, match[2]))
            return match[0] if anchor == plain else f"{match[0]} {{ #{anchor} }}"

        parts = _FENCE.split(source)
        for place in range(0, len(parts), 2):
            parts[place] = _HEADING.sub(anchored, parts[place])
        return "".join(parts), found
