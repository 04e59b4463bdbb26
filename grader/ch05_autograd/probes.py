"""Chapter 5's probes: all of the chapter that runs beside a student's code."""

from grader import probe


@probe
def flags(student, programs):
    """Return what `predict_flags` gives for each program."""
    return [student.predict_flags(program) for program in programs]
