"""Plans of a pipeline's stages: `schedule`."""

from grader import probe


@probe
def scheduled(student, kind, sizes):
    """Return the plans for each pair of a number of stages and a number of micro-batches."""
    return [student.schedule(kind, stages, micro_batches) for stages, micro_batches in sizes]
