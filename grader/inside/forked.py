"""What a fork of a process that has a life of its own does before anything else."""

from __future__ import annotations

import multiprocessing.process

import torch


def settle() -> None:
    """Let go of what stayed with the other process: its OpenMP threads, and its children."""
    torch.set_num_threads(1)  # with more, a fork of a process that ran OpenMP hangs
    # multiprocessing does so in the forks that it makes, and has no public name for it. Workers of
    # a loader in a notebook would count as ours, and never seem to end: they are not ours to wait for.
    multiprocessing.process._children.clear()  # type: ignore[attr-defined]
