"""The box with the real grader.inside.serve: load, probe, death, and the next child unharmed."""

import pytest
import torch

from grader.box.box import Box
from grader.evidence.outcome import Ended, Outcome
from grader.evidence.wire.codec import decode, encode
from tests.box.conftest import PROBES

SOURCE = """
import torch

def double(x):
    return x * 2

class Squares(torch.utils.data.Dataset):
    def __init__(self, count): self.count = count
    def __len__(self): return self.count
    def __getitem__(self, i): return i * i
"""


@pytest.fixture(scope="module")
def real_box():
    with Box(PROBES) as box:
        yield box


def load(child, source):
    request = {"do": "load", "parts": [["cell", source]], "judged": [], "off_limits": []}
    return decode(child.ask(encode(request)))


def probe(child, name, **inputs):
    request = {"do": "probe", "probe": name, "inputs": encode(inputs), "off_limits": [], "seed": 1}
    return decode(child.ask(encode(request)))


def test_load_and_probe(real_box):
    with real_box.open() as child:
        assert load(child, SOURCE)["stopped"] == {}
        reply = probe(child, "doubled", x=torch.arange(3))
        assert reply["raised"] is None
        assert decode(reply["value"]).tolist() == [0, 2, 4]
        assert decode(probe(child, "loaded", count=5)["value"]) == [[0, 1], [4, 9], [16]]


def test_a_death_while_loading_and_the_next_child(real_box):
    with real_box.open() as child, pytest.raises(Ended) as ended:
        load(child, "import os; os._exit(0)")
    assert ended.value.outcome is Outcome.CRASHED
    with real_box.open() as child:
        assert load(child, SOURCE)["stopped"] == {}


def test_a_fork_that_returns_into_the_server_is_harmless(real_box):
    with real_box.open() as child:
        load(
            child,
            "import os\ndef double(x):\n    if os.fork():\n        os.wait()\n    return x * 2",
        )
        assert decode(probe(child, "doubled", x=torch.ones(2))["value"]).tolist() == [2.0, 2.0]
        assert decode(probe(child, "doubled", x=torch.zeros(2))["value"]).tolist() == [0.0, 0.0]


def test_checks_and_mistakes_are_not_importable(real_box):
    with real_box.open() as child:
        source = "import grader.inside\ntry:\n    import grader.ch01_formats\nexcept ImportError:\n    pass\nelse:\n    1 / 0"
        assert load(child, source)["stopped"] == {}


def test_what_shows_something_in_a_notebook_does_nothing_in_a_box(real_box):
    source = "from grader import grade, hint, predict, show_graph, show_storage, solution\n"
    source += "def double(x):\n    show_storage(x=x)\n    grade('double')\n    return x * 2"
    with real_box.open() as child:
        assert load(child, source)["stopped"] == {}
        assert decode(probe(child, "doubled", x=torch.ones(2))["value"]).tolist() == [2.0, 2.0]
        checks = load(child, "from grader import assert_equal")["stopped"]
        assert checks["cell"]["type"] == "ModuleNotFoundError"
