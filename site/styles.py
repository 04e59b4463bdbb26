"""A mkdocs hook: leave out of the theme's style what no page of this site has, so that all are lighter.

The theme brings the looks of everything that it can show. A selector stays if each class in it stands
in a built page or in a script, which may add it; an icon stays if a rule that stays asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tinycss2
from mkdocs.config.defaults import MkDocsConfig

SHEETS = "assets/stylesheets/*.css"
CLASSES = re.compile(r'\bclass="([^"]*)"')
WORD = re.compile(r"[A-Za-z_][\w-]*")
CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
EITHER = re.compile(r":(?:not|is|where)\((?:[^()]|\([^()]*\))*\)")
"""Parts of a selector whose classes an element need not have."""
ICON = re.compile(r"""(--md-[\w-]+):\s*url\((?:"[^"]*"|'[^']*'|[^)"']*)\);?""")


def on_post_build(config: MkDocsConfig, **_: Any) -> None:
    """Write the theme's style sheets anew."""
    site = Path(config.site_dir)
    named = {
        name
        for page in site.rglob("*.html")
        for names in CLASSES.findall(page.read_text(encoding="utf-8"))
        for name in names.split()
    }
    for script in site.rglob("*.js"):
        named.update(WORD.findall(script.read_text(encoding="utf-8")))
    for sheet in sorted(site.glob(SHEETS)):
        sheet.write_text(lean(sheet.read_text(encoding="utf-8"), named), encoding="utf-8")


def lean(css: str, named: set[str]) -> str:
    """Return a style sheet without selectors of classes that are not named, and without their icons."""
    kept = "".join(_rules(tinycss2.parse_stylesheet(css, skip_comments=True), named))
    return ICON.sub(lambda icon: icon[0] if f"var({icon[1]})" in kept else "", kept)


def _rules(rules: Iterable[Any], named: set[str]) -> Iterable[str]:
    for rule in rules:
        if rule.type == "qualified-rule":
            head = [one for one in _parted(rule.prelude) if _lives(one, named)]
            if head:
                yield f"{','.join(head)}{{{tinycss2.serialize(rule.content)}}}"
        elif rule.type == "at-rule" and rule.lower_at_keyword in {"media", "supports"}:
            inside = tinycss2.parse_rule_list(rule.content, skip_comments=True)
            if body := "".join(_rules(inside, named)):
                head_ = tinycss2.serialize(rule.prelude)
                yield f"@{rule.at_keyword}{head_}{{{body}}}"
        else:
            yield rule.serialize()


def _parted(prelude: Iterable[Any]) -> Iterable[str]:
    """Return the selectors of a rule: what stands between commas."""
    part: list[Any] = []
    for token in prelude:
        if token.type == "literal" and token.value == ",":
            yield tinycss2.serialize(part)
            part = []
        else:
            part.append(token)
    yield tinycss2.serialize(part)


def _lives(selector: str, named: set[str]) -> bool:
    return named.issuperset(CLASS.findall(EITHER.sub("", selector)))
