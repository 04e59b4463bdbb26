"""Formulas are MathML when the site is built, and what has none ends the build."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from mkdocs.exceptions import PluginError

from tests import module_at
from tests.browser import ROOT, Watch

formulas = module_at(ROOT / "site" / "formulas.py")


def test_every_formula_of_the_site_is_mathml(built: Path) -> None:
    found = 0
    for page in built.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        found += text.count("<math>") + text.count("<math display")
        places = re.findall(r'class="arithmatex">(.{5})', text, re.DOTALL)
        assert set(places) <= {"<math"}, page
        assert "katex" not in text.lower(), page
        for one in re.findall(r"<math.*?</math>", text, re.DOTALL):
            assert "\\" not in one, (page, one)
    assert found > 300
    assert not [path for path in built.rglob("*") if "katex" in path.name.lower()]


@pytest.mark.parametrize(
    ("latex", "why"),
    [
        (r"\foo x", r"\foo is not known"),
        (r"\text{a\b}", "not known"),
        (r"\begin{foo} a \end{foo}", "environment"),
        (r"\frac{1}", "mfrac has 1 of 2"),
        (r"\frac{1}{2", "braces"),
        ("a}", "braces"),
        ("a & b", "not well-formed"),
        (r"\left( a", "Missing"),
        ("a_", "Missing"),
    ],
)
def test_what_has_no_mathml_ends_the_build(latex: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        formulas.mathml(latex, False)
    page = SimpleNamespace(file=SimpleNamespace(src_uri="a.md"))
    with pytest.raises(PluginError, match=r"a\.md: no MathML"):
        formulas.on_page_content(rf'<span class="arithmatex">\({latex}\)</span>', page)


@pytest.mark.parametrize(
    ("latex", "made"),
    [
        ("2^{-16}", '<msup><mn>2</mn><mrow><mo form="prefix">−</mo><mn>16</mn></mrow></msup>'),
        (r"\mathrm{round}(x)", '<mi mathvariant="normal">round</mi>'),
        ("|x|", '<mo stretchy="false" lspace="0" rspace="0">|</mo><mi>x</mi>'),
        ("q'", '<mrow><mi>q</mi><mi mathvariant="normal">′</mi></mrow>'),
        ("524{,}288", '<mo lspace="0" rspace="0">,</mo>'),
        (r"p \log p", '<mspace width="0.167em" /><mi mathvariant="normal">log</mi><mspace'),
        (r"(a) - b", "<mo>−</mo>"),
        (r"(-1)", '<mo form="prefix">−</mo>'),
        ("e^{s-m}", '<mo lspace="0" rspace="0">−</mo>'),
    ],
)
def test_it_is_set_as_tex_would(latex: str, made: str) -> None:
    assert made in formulas.mathml(latex, False)


def test_a_long_formula_scrolls_in_its_own_line(watch: Watch, site: str) -> None:
    watch.turn_to(390, "light")
    watch.page.goto(site + "chapters/ch04_modules/batch-norm.html")
    assert watch.overflow() <= 0
    letter = watch.page.locator("mi").first
    drawn = letter.evaluate(
        "(e) => [getComputedStyle(e).fontFamily, getComputedStyle(e).fontStyle]"
    )
    assert drawn[0].startswith('"Source Serif 4"') and drawn[1] == "italic"
