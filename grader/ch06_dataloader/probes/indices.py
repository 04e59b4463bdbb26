"""Probes of `weighted_indices`, `bucket_batches` and `distributed_indices`: who is drawn, and when."""

import torch

from grader import probe

from .streams import draw_globally, seed_globally


@probe
def weighted_draws(student, weights, uniforms, replacement):
    """Return what `weighted_indices` draws."""
    return student.weighted_indices(weights, uniforms, replacement)


@probe
def bucketed(student, lengths, boundaries, max_cells, seed, epochs, elsewhere):
    """Return epochs of batches from one generator, and whether a global stream was touched.

    elsewhere: seed of the global streams
    """
    seed_globally(elsewhere)
    expected = draw_globally()
    seed_globally(elsewhere)
    generator = torch.Generator().manual_seed(seed)
    found = [
        student.bucket_batches(lengths, list(boundaries), max_cells, generator)
        for _ in range(epochs)
    ]
    return {"epochs": found, "global streams": draw_globally() == expected}


@probe
def shared_epoch(student, n, world_size, options, elsewhere):
    """Return each rank's part of an epoch, and whether a global stream was touched.

    options: keyword arguments; elsewhere: seed of the global streams
    """
    seed_globally(elsewhere)
    expected = draw_globally()
    seed_globally(elsewhere)
    parts = [
        student.distributed_indices(n, rank, world_size, **options) for rank in range(world_size)
    ]
    return {"parts": parts, "global streams": draw_globally() == expected}


@probe
def refused_rank(student, n, rank, world_size, options):
    """Return what comes back for a rank or an option that there is not."""
    return student.distributed_indices(n, rank, world_size, **options)
