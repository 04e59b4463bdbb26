"""A site of a few pages, in a folder of its own: a full one takes ten times as long to build."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests import ROOT


def copy_without_pages(folder: Path) -> Path:
    """Copy what builds the site, and what all pages share; return where pages belong."""
    for name in ("mkdocs.yml", "CHANGELOG.md", "CITATION.cff"):  # two pages show the latter
        shutil.copy(ROOT / name, folder)
    pages = folder / "site"
    shutil.copytree(ROOT / "site", pages, ignore=shutil.ignore_patterns("*.md", "chapters"))
    return pages
