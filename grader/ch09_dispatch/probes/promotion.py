"""Probes of dtypes: what comes of mixed operands, `result_dtype`."""

import torch

from grader import each, probe


@probe
def result_dtypes(student, cases):
    """Return what `result_dtype` gives for each tuple of operands."""
    return each(student.result_dtype, cases)


@probe
def result_dtypes_under(student, default, cases):
    """Return the same while `default` is the default dtype."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        return each(student.result_dtype, cases)
    finally:
        torch.set_default_dtype(before)
