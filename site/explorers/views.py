"""A mkdocs hook: small views. A page that shows some gets their script, and room kept for each.

The figures stand in the pages (`grader/building/views.py` makes them); `views.js` fills them when they
come into sight. How high each is, at a desk and on a phone, is in `heights.json`, so that nothing
jumps. After a change, `python site/explorers/views.py SITE` measures anew in a built site.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

HERE = Path(__file__).parent
HEIGHTS = HERE / "heights.json"
STAGE = re.compile(
    r'<div class="ut-stage" data-explorer="(\w+)" data-part="([\w-]+)" data-state="([^"]*)"'
)
WIDTHS = (1440, 390)


def named(stage: re.Match[str]) -> str:
    """Return what a view is called in the file of heights: explorer/part#state."""
    return f"{stage[1]}/{stage[2]}#{unescape(stage[3])}"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add each explorer as one script that is no module."""
    spec = importlib.util.spec_from_file_location("inline", HERE / "inline.py")
    assert spec is not None and spec.loader is not None
    inline = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(inline)
    folder = Path(config.docs_dir) / "explorers"
    for sheet in sorted(folder.glob("*/*.css")):
        name = sheet.parent.name
        text = f'"use strict";\n(() => {{\n{inline.bundle(folder / name / f"{name}.js")}}})();\n'
        files.append(File.generated(config, f"explorers/{name}/bundle.js", content=text))
    return files


def on_page_content(html: str, page: Page, config: MkDocsConfig, **_: object) -> str:
    """Keep room for each view, and add the script that fills it."""
    if not STAGE.search(html):
        return html
    heights = json.loads(HEIGHTS.read_text(encoding="utf-8"))

    def roomy(stage: re.Match[str]) -> str:
        desk, phone = heights.get(named(stage), [300, 400])
        return f'{stage[0]} style="--desk:{desk}px;--phone:{phone}px"'

    up = "../" * page.file.url.count("/")
    return STAGE.sub(roomy, html) + f'\n<script defer src="{up}explorers/views.js"></script>\n'


def measured(site: Path) -> dict[str, list[int]]:
    """Return how high each view of a built site is, at a desk and on a phone."""
    sys.path.insert(0, str(HERE.parents[1]))
    from tests.browser import chromium, serve

    found: dict[str, list[int]] = {}
    with chromium() as browser, serve(site) as address:
        for at, width in enumerate(WIDTHS):
            tab = browser.new_page(viewport={"width": width, "height": 900})
            for path in _with_views(site):
                tab.goto(address + path.relative_to(site).as_posix())
                for name, height in tab.evaluate(MEASURE):
                    found.setdefault(name, [0] * len(WIDTHS))[at] = height
    return dict(sorted(found.items()))


def _with_views(site: Path) -> Iterator[Path]:
    for path in sorted(site.rglob("*.html")):
        if 'class="ut-stage"' in path.read_text(encoding="utf-8"):
            yield path


# Each view is scrolled to and waited for, its fonts included; what it fills is its height.
MEASURE = """async () => {
  const found = [];
  for (const stage of document.querySelectorAll(".ut-stage")) {
    for (let fold = stage.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    stage.scrollIntoView();
    while (!stage.querySelector(".ut-explorer > .ut-unseen:last-child")) await new Promise(requestAnimationFrame);
    let [height, same] = [0, 0];
    while (same < 3) {
      await new Promise((done) => setTimeout(done, 80));
      await document.fonts.ready;
      const now = Math.ceil(stage.firstElementChild.getBoundingClientRect().height);
      [height, same] = [now, now === height ? same + 1 : 0];
    }
    const { explorer, part, state } = stage.dataset;
    found.push([`${explorer}/${part}#${state}`, height]);
  }
  return found;
}"""


if __name__ == "__main__":
    HEIGHTS.write_text(json.dumps(measured(Path(sys.argv[1])), indent=1) + "\n", encoding="utf-8")
