"""A mkdocs hook: formulas become MathML, which browsers draw by themselves.

Authors write LaTeX between dollar signs, as in the notebooks. What cannot be translated ends the
build: a reader must never see a backslash.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.pages import Page

_FORMULA = re.compile(r'(<(span|div) class="arithmatex">)\\([(\[])(.*?)\\[)\]](?=</\2>)', re.DOTALL)
_PARTS = dict.fromkeys(("mfrac", "msub", "msup", "munder", "mover", "mroot"), 2)
_PARTS |= {"msubsup": 3, "munderover": 3}

_SCRIPTS = {"msub", "msup", "msubsup", "munder", "mover", "munderover"}

_THIN = "0.167em"
_CLOSE = {"lspace": "0", "rspace": "0"}
_FENCES = {"stretchy": "false", **_CLOSE}

# The library's choices that browsers draw with gaps, or aslant.
_TIDY: dict[str, tuple[str, dict[str, str]]] = {
    **dict.fromkeys("∞…∂′", ("mi", {"mathvariant": "normal"})),
    **dict.fromkeys("⌈⌉⌊⌋|", ("mo", _FENCES)),
    "±": ("mo", {}),
    "/": ("mo", _CLOSE),
}


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Translate the formulas of a page."""

    def translated(found: re.Match[str]) -> str:
        begin, _, kind, latex = found.groups()
        try:
            return begin + mathml(unescape(latex), kind == "[")
        except ValueError as error:
            raise PluginError(f"{page.file.src_uri}: {error}") from error

    return _FORMULA.sub(translated, html)


def mathml(latex: str, display: bool) -> str:
    """Return a formula as MathML. Raises `ValueError` for what has no translation."""
    try:
        tree = ElementTree.fromstring(convert(latex, display="block" if display else "inline"))
        trouble = _trouble(latex, tree)
    except Exception as error:  # the library's own errors, and any other: none may pass
        trouble = repr(error)
    if trouble:
        raise ValueError(f"no MathML for the formula {latex}: {trouble}")
    for part in tree.iter():
        part.tag = _name(part)
    _tidy(tree)
    tree.attrib = {"display": "block"} if display else {}
    return ElementTree.tostring(tree, encoding="unicode")


def _name(part: Element) -> str:
    return part.tag.rpartition("}")[2]


def _trouble(latex: str, tree: Element) -> str:
    """Say what the library took for something else without a word; "" if nothing."""
    unknown = [text for text in tree.itertext() if "\\" in text]
    if unknown:
        return f"{unknown[0]} is not known"
    bare = re.sub(r"\\.", "", latex)
    if bare.count("{") != bare.count("}"):
        return "its braces do not match"
    names = [_name(part) for part in tree.iter()]
    if names.count("mtable") != latex.count("\\begin"):
        return "an environment is not known"
    for name, part in zip(names, tree.iter(), strict=True):
        if len(part) != _PARTS.get(name, len(part)):
            return f"{name} has {len(part)} of {_PARTS[name]} parts"
    return ""


def _tidy(row: Element, small: bool = False) -> None:
    """Set the parts of a formula as TeX would; `small` in what is raised or lowered."""
    for place, part in enumerate(row):
        _tidy(part, small or (row.tag in _SCRIPTS and place > 0))
        _tidy_one(part)
    if row.tag in {"msup", "msubsup"} and row[-1].text == "′":  # raised already, and small if twice
        prime = Element("mrow")
        prime[:] = [row[0], row[-1]]
        row.tag, row[:] = ("mrow", prime) if row.tag == "msup" else ("msub", [prime, row[1]])
    if len(row) == 1 and row.tag == "mrow" and row[0].text == ",":  # {,} in 524{,}288
        row[0].attrib = dict(_CLOSE)
    letters = [part.text or "" for part in row if part.get("mathvariant") == "normal"]
    if len(letters) == len(row) > 1:  # \mathrm{round} is a word, not five letters
        row[:] = [Element("mi", mathvariant="normal")]
        row[0].text = "".join(letters)
    if row.tag != "mrow" and row.tag != "math":
        return
    parts = [*row]
    for before, part, after in zip([None, *parts], parts, [*parts[1:], None], strict=False):
        if part.tag == "mo" and part.text in {*"−+"} and _opens(_said_before(part, parts)):
            part.set("form", "prefix")
        elif part.tag == "mo" and small and not part.attrib:
            part.attrib = dict(_CLOSE)
        # functions stand apart from what is beside them, unless that is a bracket or an operator
        if part.tag == "mi" and len(part.text or "") > 1:
            place = [*row].index(part)
            if after is not None and after.tag not in {"mo", "mspace"}:
                row.insert(place + 1, Element("mspace", width=_THIN))
            if before is not None and before.tag not in {"mo", "mspace"}:
                row.insert(place, Element("mspace", width=_THIN))


def _tidy_one(part: Element) -> None:
    text = part.text or ""
    if part.tag in {"mi", "mo"} and text in _TIDY and part.get("stretchy") != "true":
        part.tag, part.attrib = _TIDY[text][0], dict(_TIDY[text][1])
    elif part.tag in {"mi", "mo"} and len(text) > 1 and text.isalpha() and text != "mod":
        part.tag, part.attrib = "mi", {"mathvariant": "normal"}
    elif part.get("width") == "negativethinmathspace":
        part.set("width", f"-{_THIN}")
    elif part.tag == "mo" and text == "*":
        part.text = "∗"


def _said_before(part: Element, parts: list[Element]) -> Element | None:
    spaceless = [one for one in parts[: parts.index(part)] if one.tag != "mspace"]
    return spaceless[-1] if spaceless else None


def _opens(part: Element | None) -> bool:
    """Say whether what comes after a part begins anew: a minus there is a sign."""
    if part is None:
        return True
    return part.tag == "mo" and (part.text or "") not in {*")]}⌋⌉|"}
