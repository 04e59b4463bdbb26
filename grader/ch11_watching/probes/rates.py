"""The probe of `throughput`."""

from grader import probe


@probe
def rates(student, cases):
    """Return what `throughput` says of each log, or the name of what it raised: (events, warmup)."""
    found = []
    for events, warmup in cases:
        log = [tuple(event) for event in events]
        try:
            found.append(student.throughput(log, warmup))
        except Exception as error:
            if not isinstance(error, ValueError):
                error.add_note(f"warmup={warmup}, on the log {log}")
                raise
            found.append("ValueError")
    return found


@probe
def default_warmup(student, events):
    """Return what `throughput` says of a log without a second argument."""
    return student.throughput([tuple(event) for event in events])
