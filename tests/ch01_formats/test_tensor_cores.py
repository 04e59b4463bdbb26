"""`benchmarks/tensor_cores.py`: what of it runs without a GPU."""

import pytest
import torch

from tests import ROOT, module_at


@pytest.fixture(scope="module")
def cores():
    return module_at(ROOT / "benchmarks" / "tensor_cores.py")


def test_bf16_rounds_as_chapter_1_does(cores):
    counts = cores.equal_bits("bf16", "cpu")
    assert counts.pop("nearest, ties to even") == cores.SIZE**2
    assert max(counts.values()) < 0.8 * cores.SIZE**2


def test_a_product_of_float32_that_rounds_nothing_is_told(cores):
    before = torch.backends.cuda.matmul.fp32_precision
    assert cores.equal_bits("tf32", "cpu")["not rounded"] == cores.SIZE**2
    assert torch.backends.cuda.matmul.fp32_precision == before


def test_without_a_gpu_one_line_says_so(cores, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    cores.main([])
    assert capsys.readouterr().out.splitlines() == [
        "No GPU: torch.cuda.is_available() is false. Nothing was run."
    ]
