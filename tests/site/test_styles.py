"""The theme's style sheet is left with what a page or a script names."""

from __future__ import annotations

import re
from pathlib import Path

import material
import pytest

from tests import module_at
from tests.browser import ROOT

styles = module_at(ROOT / "site" / "styles.py")


@pytest.mark.parametrize(
    ("css", "left"),
    [
        (".a{color:red}.b{color:red}", ".a{color:red}"),
        (".a,.b>.a,.a.b{top:0}", ".a{top:0}"),
        (".a:not(.b),:is(.a,.b) p{top:0}", ".a:not(.b),:is(.a,.b) p{top:0}"),
        ("p{top:0}@media print{.b{top:0}.a{top:0}}", "p{top:0}@media print{.a{top:0}}"),
        ("@media print{.b{top:0}}@font-face{src:url(a)}", "@font-face{src:url(a)}"),
        (
            """:root{--md-x:url('data:a,(b)');--md-y:url(c)}.a{mask:var(--md-x)}""",
            """:root{--md-x:url("data:a,(b)");}.a{mask:var(--md-x)}""",
        ),
        ('.a[data-x=".b"]{top:0}.a::after{content:".b{}"}', '.a::after{content:".b{}"}'),
    ],
)
def test_a_selector_stays_if_all_its_classes_are_named(css: str, left: str) -> None:
    assert styles.lean(css, {"a"}) == left


def test_what_pages_name_keeps_its_looks(built: Path) -> None:
    """Of the theme's rules for a class of a built page none is gone; those of code with numbers are."""
    (sheet,) = (built / "assets/stylesheets").glob("main.*.css")
    whole = (
        Path(material.__file__).parent / "templates/assets/stylesheets" / sheet.name
    ).read_text()
    kept = sheet.read_text(encoding="utf-8")
    for name in ("md-header__title", "md-nav__link", "md-search-result__more"):
        assert kept.count(f".{name}") >= whole.count(f".{name}") * 0.8 > 0, name
    assert ".highlighttable" in whole and ".highlighttable" not in kept
    assert len(kept) < 0.85 * len(whole)


def test_no_heading_is_styled_by_its_anchor(built: Path) -> None:
    """An anchor is made of a heading's words: another page's with the same words would look so, too."""
    sheets = " ".join(path.read_text("utf-8") for path in (ROOT / "site").rglob("*.css"))
    selectors = " ".join(re.findall(r"([^{};]+)\{", sheets))
    styled = set(re.findall(r"#([a-zA-Z][\w-]*)", selectors))
    assert styled  # of what explorers draw
    for path in built.rglob("*.html"):
        anchors = re.findall(r'<h[1-6][^>]* id="([^"]+)"', path.read_text("utf-8"))
        assert not styled & set(anchors), path
