"""Boxes for the tests, one per module: a box takes 0.1 s to start without torch and 1.5 s with it."""

import json
import textwrap
from pathlib import Path

import pytest

from grader.box.box import Box

PROBES = Path(__file__).parent / "sample_probes"
STANDIN = Path(__file__).parent / "standin.py"


def ask(child, source):
    """Run `source` in the child and return its `result`; what it raised is an AssertionError here."""
    reply = json.loads(child.ask(textwrap.dedent(source).encode()))
    assert "raised" not in reply, reply["raised"]
    return reply["value"]


def raised(child, source):
    """Run `source` in the child and return what it raised, as text."""
    return json.loads(child.ask(textwrap.dedent(source).encode())).get("raised", "nothing")


@pytest.fixture(scope="module")
def box():
    with Box(PROBES, inside=STANDIN) as box:
        yield box


@pytest.fixture
def child(box):
    with box.open() as child:
        yield child


@pytest.fixture(scope="module")
def torch_box():
    with Box(PROBES, ("torch", "torch._dynamo"), inside=STANDIN) as box:
        yield box
