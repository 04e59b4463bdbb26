"""A chapter's probes.py in small, for the box with the real grader.inside.serve."""

import torch

from grader.inside.probe import probe


@probe
def doubled(student, x):
    """What the student's `double` gives for `x`."""
    return student.double(x)


@probe
def loaded(student, count):
    """Batches of a loader with two workers over the student's dataset."""
    loader = torch.utils.data.DataLoader(student.Squares(count), batch_size=2, num_workers=2)
    return [batch.tolist() for batch in loader]
