"""In a box, too, a probe's own calls are not the student's."""

from pathlib import Path

import pytest

from grader.box.box import Box
from grader.evidence.wire.codec import decode, encode

RULES = [("function", "torch.nn.Module.state_dict")]


@pytest.mark.parametrize(("body", "tripped"), [("len(list(m.parameters()))", []), ("len(m.state_dict())", [0])])  # fmt: skip
def test_whose_call_it_is(tmp_path: Path, body: str, tripped: list[int]):
    probes = tmp_path / "probes"
    probes.mkdir()
    (probes / "__init__.py").write_text(
        "import torch\nfrom grader import probe\n\n\n@probe\ndef counted(student):\n"
        "    module = torch.nn.Linear(2, 2)\n"
        "    return student.count(module) == len(module.state_dict())\n"
    )
    source = f"def count(m):\n    return {body}\n"
    load = {"do": "load", "parts": [["count", source]], "judged": [], "off_limits": RULES}
    ask = {"do": "probe", "probe": "counted", "inputs": encode({}), "off_limits": RULES, "seed": 1}
    with Box(probes) as box, box.open() as child:
        child.ask(encode(load))
        reply = decode(child.ask(encode(ask)))
    assert reply["raised"] is None
    assert reply["tripped"] == tripped
