"""What an off-limits scan looks at: all that the answer reaches, and nothing beside it."""

import pytest

from grader.course.cells import Cell, Kind
from grader.course.rules import parse_rule
from grader.submission.program import judged_text, slice_program
from grader.submission.scan import scan

DEMONSTRATION = """
for dtype in (torch.float32, torch.bfloat16):
    print(torch.ones(3, dtype=dtype).sum().item())
"""

REACHED = [
    "def helper(x):\n    return x.item()",
    "helper = lambda x: x.item()",
    "class Helper:\n    def run(self, x):\n        return x.item()\nhelper = Helper().run",
    "def deeper(x):\n    return x.item()\ndef helper(x):\n    return deeper(x)",
]


def broken(own: str, answer: str) -> list[str]:
    cells = [
        Cell(Kind.GIVEN, "given cell 1", "import torch"),
        Cell(Kind.OWN, "your cell 2", own),
        Cell(Kind.SOLUTION, "answer", answer),
    ]
    program = slice_program("answer", ["answer"], cells)
    return [rule.name for rule, _ in scan(judged_text(program), [parse_rule("torch.Tensor.item")])]


def test_an_attribute_does_not_reach_a_loop_variable():
    answer = "def answer(x):\n    return x.to(torch.float32) if x.dtype != torch.float32 else x"
    assert broken(DEMONSTRATION, answer) == []


@pytest.mark.parametrize("own", REACHED)
def test_helpers_are_reached(own):
    assert broken(own, "def answer(x):\n    return helper(x)") == ["torch.Tensor.item"]
    assert broken(own, "def answer(x, f=helper):\n    return f(x)") == ["torch.Tensor.item"]
    assert broken(own, "def answer(x):\n    return (lambda y: helper(y))(x)") == [
        "torch.Tensor.item"
    ]


def test_a_changed_module_is_reached():
    own = "torch.total = lambda x: x.item()"
    assert broken(own, "def answer(x):\n    return torch.total(x)") == ["torch.Tensor.item"]
