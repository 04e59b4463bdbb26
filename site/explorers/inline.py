"""A mkdocs hook: put an explorer's modules into its page, so that the page also works from disk.

Browsers refuse to load a module from a file: address, but run one that stands in the page. The
sources stay plain ES modules that run as they are over http; each is wrapped here in a function of
its own, in the order in which they need each other.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.pages import Page

TAG = re.compile(r'<script type="module" src="([^":]+)"></script>')
# The two forms that a source may use; anything else is refused below.
IMPORT = re.compile(r'^import \{([^}]+)\} from "(\.[^"]+)";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:function|class|const) (\w+))", re.MULTILINE)
OTHER = re.compile(r"^(?:import|export)\b|\bimport\s*\(|\bimport\.meta|</script", re.MULTILINE)
# Comments on lines of their own stay at home.
COMMENT = re.compile(r"^ *(?://.*|/\*\*(?:(?!\*/)[\s\S])*\*/) *\n", re.MULTILINE)


def _collect(source: Path, done: dict[Path, str]) -> None:
    """Add `source`, after all that it imports, as a constant that holds its exports."""
    if source in done:
        return
    text = source.read_text(encoding="utf-8")
    for match in IMPORT.finditer(text):
        _collect((source.parent / match[2]).resolve(), done)
    names = {path: f"$module{i}" for i, path in enumerate(done)}

    def bind(match: re.Match[str]) -> str:
        wanted = match[1].replace(" as ", ": ").strip()
        return f"const {{ {wanted} }} = {names[(source.parent / match[2]).resolve()]};"

    exported = ", ".join(match[1] for match in EXPORT.finditer(text))
    body = EXPORT.sub("", IMPORT.sub(bind, text))
    if other := OTHER.search(body):
        line = body[: other.start()].count("\n") + 1
        raise PluginError(f"{source}:{line}: only named imports and exports can be put into a page")
    body = COMMENT.sub("", body)
    done[source] = (
        f"const $module{len(done)} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n"
    )


def bundle(entry: Path) -> str:
    """One module that does what `entry` and its imports do."""
    done: dict[Path, str] = {}
    _collect(entry.resolve(), done)
    return "".join(done.values())


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Replace each `<script type="module" src="…">` of the page by what it loads."""
    folder = (Path(config.docs_dir) / page.file.src_path).parent

    def put(match: re.Match[str]) -> str:
        return f'<script type="module">\n{bundle(folder / match[1])}</script>'

    return TAG.sub(put, output)
