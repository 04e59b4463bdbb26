"""Probes that take something from another module of their package."""

from grader.inside.probe import probe

from .loading import batches


@probe
def doubled(student, x):
    """What the student's `double` gives for `x`."""
    return student.double(x)


@probe
def loaded(student, count):
    """Batches of a loader with two workers over the student's dataset."""
    return batches(student.Squares(count))
