"""What every explorer must do, whichever it is: stay small, and run as plain modules."""

from __future__ import annotations

import gzip
import re

import pytest

from tests.explorers.harness import EXPLORERS, Watch, inline

FAMILY = sorted(path.parent.name for path in EXPLORERS.glob("*/*.css"))
BUDGET = 23_000
"""Bytes: all that a page loads for its explorer, the shared part included, as it travels (gzip)."""
MORE = {
    # a reader and an interpreter of a small Python, autograd's rules for views and versions, and
    # torch's own words for every refusal
    "autograd": 31_000,
    # three ways to write a product, einsum's grammar, and torch's own words for every refusal
    "matmul": 28_000,
    # four recordings of torch.profiler, to the nanosecond, and a reader of what others recorded
    "watching": 26_500,
    # whatever views a tensor or copies it, chained and written as Python is, with torch's own rules
    "strides": 24_000,
}

DRAWN = """() => new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(done));
})"""
"""Ends when what the page was last told has been drawn: what fits where is known only then."""


@pytest.mark.parametrize("name", FAMILY)
def test_it_stays_small(name: str) -> None:
    styles = [EXPLORERS / "explorer.css", EXPLORERS / name / f"{name}.css"]
    scripts = inline().bundle(EXPLORERS / name / f"{name}.js").encode()
    everything = scripts + b"".join(path.read_bytes() for path in styles)
    assert len(gzip.compress(everything, mtime=0)) < MORE.get(name, BUDGET)


@pytest.mark.parametrize("name", FAMILY)
def test_the_sources_run_unbundled(watch: Watch, site: str, sources: str, name: str) -> None:
    """As plain modules, without mkdocs: that is how an author works on them. They say the same."""
    page = watch.page
    element = re.search(rf"<{name}-explorer.*</{name}-explorer>", _source(name))
    assert element is not None
    links = [
        f'<link rel="stylesheet" href="{sheet}">'
        for sheet in ("explorer.css", f"{name}/{name}.css")
    ]
    bare = f"""<!doctype html>{"".join(links)}<body style="width: 1000px">{element[0]}
      <script type="module" src="{name}/{name}.js"></script>"""
    page.route("**/bare.html", lambda route: route.fulfill(body=bare, content_type="text/html"))
    page.goto(sources + "bare.html")
    explorer = page.locator(".ut-explorer")
    explorer.evaluate(DRAWN)
    unbundled = explorer.text_content()
    page.goto(f"{site}explorers/{name}.html")
    explorer.evaluate("(e) => { e.style.width = '1000px'; }")
    explorer.evaluate(DRAWN)
    assert explorer.text_content() == unbundled


def _source(name: str) -> str:
    return (EXPLORERS / f"{name}.md").read_text(encoding="utf-8")
