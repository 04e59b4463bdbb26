"""Answers on feedback pages get colours, within bounds."""

import resource
import time

import pytest

from grader.nbgrader.highlight import LONGEST, answer_html
from tests import bombs


def test_an_ordinary_answer_gets_colours_and_is_escaped():
    page = answer_html("def f(x):\n    return '<script>' if x else x")
    assert 'class="k"' in page
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


SLOW = {
    "attributes": "x" + ".a" * 7000,
    "powers": "**".join(["9"] * 5000),
    "blank lines": (" " * 20 + "\n") * 700,
    "decorators": "@" * 15_000,
    "questions": "x?" * 7500,
}


@pytest.mark.parametrize("text", [*SLOW.values(), *bombs.ANSWERS.values()])
def test_no_text_takes_long(text):
    text = text.replace("\ud800", "?")
    before = time.process_time()
    page = answer_html(text)
    assert time.process_time() - before < 0.5
    assert page.startswith("<div")


def test_a_long_text_is_shown_whole():
    text = "x = '<'\n" * LONGEST
    assert answer_html(text).count("&lt;") == LONGEST


def test_the_limit_is_kept():
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer_html("x" + ".a" * 8000)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert spent.ru_utime - start.ru_utime < 2
