"""Probe of `record`: the bytes that it makes."""

from grader import each, probe


@probe
def framed_records(student, messages):
    """Return the record of each message."""
    return each(student.record, [(message,) for message in messages])
