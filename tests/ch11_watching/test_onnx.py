"""The ONNX file that the chapter writes by hand: ONNX's checker takes it, and its evaluator runs it."""

from functools import cache

import onnx
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from torch import nn

from grader.course.cells import Cell, Kind
from grader.course.course import Course, read_reference
from grader.submission.program import slice_program
from tests import ROOT


@cache
def as_onnx():
    """Return the chapter's own function of that name."""
    cells = read_reference(Course(ROOT).chapter("ch11_watching"))
    program = slice_program("wanted", (), [*cells, Cell(Kind.SOLUTION, "wanted", "as_onnx")])
    namespace = {}
    for label, source in program.parts:
        exec(compile(source, label, "exec", dont_inherit=True), namespace)
    return namespace["as_onnx"]


@pytest.fixture(params=[(4, 8, 2), (1, 1, 1), (300, 130, 7)])
def model(request):
    inner, hidden, outer = request.param
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(inner, hidden), nn.ReLU(), nn.Linear(hidden, outer))


def test_the_checker_in_pytorch_takes_it(model):
    data = as_onnx()(model[0], model[2])
    torch._C._check_onnx_proto(data)
    with pytest.raises(RuntimeError, match="No Op registered"):
        torch._C._check_onnx_proto(data.replace(b"Relu", b"Rely"))
    with pytest.raises(RuntimeError, match="topologically sorted"):
        torch._C._check_onnx_proto(data.replace(b"active", b"bctive", 1))


def test_onnx_runs_it(model):
    loaded = onnx.load_from_string(as_onnx()(model[0], model[2]))
    onnx.checker.check_model(loaded, full_check=True)
    x = torch.randn(5, model[0].in_features)
    [y] = ReferenceEvaluator(loaded).run(None, {"x": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(y), model(x).detach())
