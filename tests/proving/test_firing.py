"""A rule is broken in each way that there is, as an answer would; what nothing notices is told."""

from pathlib import Path

import pytest
import torch

from grader.course.course import Chapter, Course
from grader.course.rules import parse_rule
from grader.inside.serve import warm_up
from grader.proving import firing
from grader.proving.firing import silent

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def chapter():
    warm_up()
    return Course(ROOT).chapter("ch01_formats")


@pytest.mark.parametrize(
    "rule",
    [
        "torch.nn.Module.named_parameters",
        "direct:torch.nn.Module.__call__",
        "torch.Tensor.view",
        "torch.optim.sgd.sgd",
        "torch.optim.SGD",
        "torch.finfo",
        "torch.channels_last",
        "torch.distributed.nn",
        "torch.ops.quantized",
        "torch.ops.aten.einsum.default",
        "torch.autograd.Variable._execution_engine.run_backward",
        "cast:torch.bfloat16",
        "import:struct",
        "import:torchvision",
        "allowed:elementwise",
        "aten:_int_mm",
    ],
)
def test_fires(chapter, rule):
    assert silent(chapter, parse_rule(rule)) == []


def test_torchs_samples_leave_the_process_as_it_was(chapter):
    assert silent(chapter, parse_rule("aten:mm")) == []
    assert not torch.backends.flags_frozen()


def test_an_operator_without_a_sample(chapter):
    (use,) = silent(chapter, parse_rule("aten:_amp_foreach_non_finite_check_and_unscale"))
    assert "no sample" in use and firing.CALLS in use


def test_a_rule_that_names_nothing(chapter):
    assert silent(chapter, parse_rule("torch.no_such_thing"))


def test_a_rule_that_is_not_watched(chapter, monkeypatch):
    """What the tripwire does not install is found: so it was with a class as an owner."""
    monkeypatch.setattr("grader.inside.tripwire.patches_of", lambda *_, **__: [])
    uses = silent(chapter, parse_rule("torch.nn.Module.named_parameters"))
    assert any("'amed_parameters'" in use for use in uses)


def test_declared_calls_are_of_operators_that_are_off_limits():
    for chapter in Course(ROOT).chapters():
        named = {rule.name for exercise in chapter.exercises for rule in exercise.off_limits}
        assert set(firing._declared(Chapter(ROOT, chapter.id))) <= named, chapter.id
