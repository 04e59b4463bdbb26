"""The probe of `predict_disturbance`."""

from grader import probe


@probe
def predicted(student, looks):
    """Return what `predict_disturbance` says of each look."""
    return [student.predict_disturbance(look) for look in looks]
