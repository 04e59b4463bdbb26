"""From a page to where one works: a command in every exercise's panel, links where a service is set."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from grader.course.course import find_course
from tests import module_at
from tests.browser import ROOT

work = module_at(ROOT / "site" / "work.py")

COLAB = "https://colab.research.google.com/github/o/r/blob/main/chapters/ch02_strides/strides.ipynb"
BINDER = "https://hub.edu/v2/gh/o/r/main?labpath=chapters%2Fch02_strides%2Fstrides.ipynb"


def test_every_exercise_has_the_command_that_opens_it(built: Path) -> None:
    for chapter in find_course(ROOT).chapters():
        pages = (built / "chapters" / chapter.id).glob("*.html")
        said = [re.sub("<[^>]*>", "", page.read_text(encoding="utf-8")) for page in pages]
        short = chapter.id.partition("_")[0]
        for exercise in chapter.exercises:
            command = rf"undertorch learn {short} --at {exercise.id}\n"
            assert sum(bool(re.search(command, text)) for text in said) == 1, exercise.id


@pytest.mark.parametrize("name", ["chapters/ch02_strides.md", "chapters/ch02_strides/views.md"])
@pytest.mark.parametrize(
    ("extra", "links"),
    [
        ({"colab_repo": "", "binder_url": ""}, ""),
        ({"colab_repo": "o/r"}, f"[Colab]({COLAB})"),
        ({"binder_url": "https://hub.edu/v2/gh/o/r/main/"}, f"[Binder]({BINDER})"),
        (
            {"colab_repo": "o/r", "binder_url": "https://hub.edu/v2/gh/o/r/main"},
            f"[Colab]({COLAB}) or [Binder]({BINDER})",
        ),
    ],
)
def test_hosted_notebooks_are_linked_where_they_are_set(
    name: str, extra: dict[str, str], links: str
) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri=name))
    config = SimpleNamespace(config_file_path=str(ROOT / "mkdocs.yml"), extra=extra)
    text = (ROOT / "site" / name).read_text(encoding="utf-8")
    made = work.on_page_markdown(text, page, config)
    up = "../" * name.count("/")
    line = f"Open its notebook in {links}; [what to run first]({up}for-students.md#begin).\n"
    assert (line in made) is bool(links)
    assert bool(links) or "Open its notebook" not in made
    assert (ROOT / "site" / "for-students.md").read_text().count("## Begin\n") == 1


def test_pages_that_are_no_chapters_stay_as_they_are() -> None:
    config = SimpleNamespace(config_file_path=str(ROOT / "mkdocs.yml"), extra={"colab_repo": "o/r"})
    for name in ("index.md", "chapters/ch02_strides/solutions.md", "questions/index.md"):
        page = SimpleNamespace(file=SimpleNamespace(src_uri=name))
        assert work.on_page_markdown("## A\n", page, config) == "## A\n"
