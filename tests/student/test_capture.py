"""`undertorch capture`: what it says of a file that cannot be captured, and what it leaves as it was."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

from tests.student.conftest import undertorch

COMPILES = "import torch\ntorch.compile(lambda x: x + 1)(torch.ones(2))\n"


def run(*words: str) -> tuple[int, str, str]:
    status, said, output = undertorch("capture", *words, COLUMNS="200")
    return status, output, said


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("print(1)", "f.py ran, and compiled nothing. It must call what torch.compile returns."),
        ("def f(x):\n  return x +", "SyntaxError: invalid syntax"),
        ("import torch\nf = torch.compile(lambda x: x.nope())\nf(torch.ones(2))", "AttributeError: 'Tensor' object has no attribute 'nope'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
    ],
)  # fmt: skip
def test_a_file_that_gives_nothing(folder: Path, source: str, said: str) -> None:
    """Its own traceback, and nothing of ours in it; torch.compile and sys are as they were."""
    before = torch.compile, sys.argv[:], sys.path[:]
    (folder / "f.py").write_text(source, encoding="utf-8")
    status, out, err = run("f.py")
    assert status == 1
    assert said in err
    assert "grader" not in err and "runpy" not in err
    assert "written to" not in out
    assert [path.name for path in folder.iterdir()] == ["f.py"]
    assert (torch.compile, sys.argv, sys.path) == before


def test_it_writes_over_captures_alone(folder: Path) -> None:
    (folder / "f.py").write_text(COMPILES, encoding="utf-8")
    for _ in range(2):
        assert run("f.py")[0] == 0
    found = json.loads((folder / "f.capture.json").read_text(encoding="utf-8"))
    assert found["undertorch"] == "capture" and found["torch"] == torch.__version__
    assert found["program"]["source"] == COMPILES.rstrip()
    assert found["left_out"] == {"frames": 0, "calls": 0}
    status, _, err = run("f.py", "--to", "f.py")
    assert status == 2 and "f.py is there and is no capture." in err
    assert (folder / "f.py").read_text(encoding="utf-8") == COMPILES
    status, _, err = run("g.py")
    assert status == 2 and "g.py is no file." in err
    status, _, err = run("f.py", "--to", "nowhere/x.json")
    assert status == 2 and "nowhere/x.json cannot be written" in err


def test_what_ran_is_told_from_what_only_passed(folder: Path) -> None:
    """Past Dynamo's limit no graph runs; calls and frames beyond the first are left out, and it says so."""
    source = "import torch\nf = torch.compile(lambda x: x * 2, dynamic=False)\nfor n in range(30):\n    f(torch.ones(n + 2))\n"
    (folder / "f.py").write_text(source, encoding="utf-8")
    status, out, _ = run("f.py")
    assert status == 0 and "Left out: 6 more calls." in out
    program = json.loads((folder / "f.capture.json").read_text(encoding="utf-8"))["program"]
    limit = torch._dynamo.config.recompile_limit
    assert [call["ran"] for call in program["calls"]] == [n < limit for n in range(24)]
    assert [call["frames"] for call in program["calls"]] == [[n] if n < limit else [] for n in range(24)]  # fmt: skip
    assert "expected 2, actual 3" in program["frames"][1]["why"]
    assert [one["line"] for one in program["breaks"]] == [0]


def test_a_call_by_another_name_has_its_frames(folder: Path) -> None:
    """A compiled module's forward, called past the module: nobody sees the call, but the frame is there."""
    source = (
        "import torch\nnet = torch.compile(torch.nn.Linear(2, 3))\nnet.forward(torch.ones(1, 2))\n"
    )
    (folder / "f.py").write_text(source, encoding="utf-8")
    assert run("f.py")[0] == 0
    program = json.loads((folder / "f.capture.json").read_text(encoding="utf-8"))["program"]
    assert program["calls"] == [] and len(program["frames"]) == 1
