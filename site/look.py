"""A mkdocs hook: the site takes its colours and type from the file that verdicts take theirs from."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add grader/core/look.css to the site's assets."""
    found = find_spec("grader")  # looked up, not imported: that would bring torch
    assert found is not None and found.origin is not None
    sheet = Path(found.origin).parent / "core" / "look.css"
    files.append(File.generated(config, "assets/look.css", abs_src_path=str(sheet)))
    return files
