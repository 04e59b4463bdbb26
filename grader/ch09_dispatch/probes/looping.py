"""Probes of what is decided before a loop begins: `loop_plan`."""

from grader import each, probe


@probe
def loop_plans(student, cases):
    """Return the result's strides and the loops for each (size, strides)."""
    return each(student.loop_plan, cases)
