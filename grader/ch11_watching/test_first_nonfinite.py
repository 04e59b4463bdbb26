"""Checks of `first_nonfinite`: short steps, and the operator that PyTorch runs there."""

from inspect import getsource

from grader import Mismatch, about, assert_equal, claimed, compared, gate, points
from grader.ch11_watching.observed import assert_reads, assert_undisturbed
from grader.ch11_watching.probes.nonfinite import STEPS


def compare(found_in, expected):
    """Compare what was found in steps, by name."""
    names = list(expected)
    for name, (got, calls) in zip(names, found_in.ask(names).value, strict=True):
        with about(("step", getsource(STEPS[name]).strip())):
            compared(got, expected[name])
            if got != expected[name]:
                rows = ("expected", repr(expected[name])), ("got", repr(got))
                raise Mismatch("Something else is the first.", rows)
            assert_equal(calls, 1, "How often the step was called.")


@gate
def test_finds_one(found_in):
    """Names the operator that made a NaN, and returns None where all is finite."""
    expected = {"square_root": ("aten.sqrt.default", "nan", "", False), "all_finite": None}
    compare(found_in, expected)


@points(2)
def test_the_first(found_in):
    """The first that made one, even if it is hidden later, or what it made becomes something else."""
    compare(
        found_in,
        {
            "log_of_a_negative": ("aten.log.default", "inf", "", False),
            "infinity_first": ("aten.exp.default", "inf", "", False),
            "first_operator": ("aten.exp.default", "inf", "", False),
            "hidden_again": ("aten.log.default", "nan", "", False),
            "nan_beside_infinity": ("aten.div.Tensor", "nan", "", False),
            "half": ("aten._to_copy.default", "inf", "", False),
            "complex_numbers": ("aten.div.Tensor", "nan", "", False),
            "sum_overflows": None,
            "whole_numbers": None,
        },
    )


@points(2)
def test_handed_on(found_in):
    """What was given is only handed on; but a NaN from an infinity is made."""
    compare(
        found_in,
        {
            "given_to_the_step": None,
            "nan_given_infinity_hidden": None,
            "infinity_given_nan_made": ("aten.sub.Tensor", "nan", "", False),
            "row_without_anything": ("aten._softmax.default", "nan", "", False),
        },
    )


@points(2)
def test_on_purpose(found_in):
    """Numbers are arguments too: a mask of infinities is no mistake."""
    compare(
        found_in,
        {
            "mask_on_purpose": None,
            "mask_by_full": None,
            "mask_in_place": None,
            "number_times_zero": ("aten.mul.Tensor", "nan", "", False),
            "number_beyond_float32": ("aten.mul.Tensor", "inf", "", False),
        },
    )


@points(2)
def test_memory(found_in):
    """Memory that nobody has written does not count, nor does what was in `out`."""
    compare(
        found_in,
        {
            "unwritten": None,
            "unwritten_is_used": None,
            "out": ("aten.log.out", "nan", "", False),
        },
    )


@points(2)
def test_in_place(found_in):
    """Operators that write to their arguments, and those that return nothing."""
    compare(
        found_in,
        {
            "in_place": ("aten.log_.default", "nan", "", False),
            "in_place_repairs": None,
            "lists": ("aten._foreach_add_.List", "inf", "", False),
            "in_the_optimizer": ("aten.add_.Tensor", "inf", "", False),
        },
    )


@points(2)
def test_modules(found_in):
    """The innermost module that runs, also if one has raised."""
    compare(
        found_in,
        {
            "in_a_module": ("aten.log.default", "inf", "1.1", False),
            "after_a_module": ("aten.log.default", "inf", "", False),
            "module_that_is_shared": ("aten.log.default", "inf", "first", False),
            "module_that_raises": ("aten.log.default", "inf", "1", False),
            "outside_of_modules": ("aten.log.default", "inf", "", False),
        },
    )


@points(2)
def test_backward(found_in):
    """What is made in backward, where no module's name is told."""
    compare(
        found_in,
        {
            "in_backward": ("aten.div.Tensor", "nan", "", True),
            "backward_in_a_module": ("aten.div.Tensor", "nan", "", True),
            "again_in_backward": ("aten.log.default", "nan", "", True),
        },
    )


@claimed
@points(2)
def test_cost(found_cost):
    """One read, however many operators there are, and no tensor of the step is kept."""
    got = found_cost.ask(20).value
    assert_reads(got["reads"], 1, "for forty operators")
    assert_equal(got["alive"], 0, "Tensors of the step that are alive afterwards.")


@gate
def test_the_run_is_the_same(found_in_a_run):
    """A run whose steps are looked at is the same to the last bit."""
    assert_undisturbed(found_in_a_run.value)


def test_after_an_error(found_in_a_run):
    """An error of the step goes on; modes and hooks are gone."""
    got = found_in_a_run.value
    assert_equal(got["error"], "Stop", "The error that came out.")
    assert_equal(got["after"], [], "What is left behind.")
