"""A whole run on a mesh, its checkpoints, and runs that go on from a part of them: `train`."""

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils._pytree import tree_map_only

from grader import on_ranks, pause, probe, watch_memory

TRAINING_SECONDS = 12.0
"""Longest life of ranks here: a right run of four steps takes 1 s, and five times that on a busy machine."""


class GivenJob:
    """A run to do: sizes by name, and what has to be looked up in tensors that are no rank's own."""

    def __init__(self, sizes, full, inputs, targets):
        vars(self).update(sizes)
        self.inputs, self.targets, self._full = inputs, targets, full

    def weight(self, block, rows, columns):
        """Return a box of a block's weight at the start."""
        return self._full[block][rows, :, columns].clone()


class Log:
    """All that was put, in order. A run that was killed has left a beginning of it."""

    def __init__(self, folder):
        self._folder = Path(folder)
        self._lines = self._folder / "log"
        self._lines.touch()

    def entries(self):
        """Return name, file, rank and bytes of each put."""
        return [line.rstrip().split("\t") for line in self.lines()]

    def add(self, name, rank, value):
        """Keep a value; it is there once its line is."""
        path = self._folder / f"{rank}-{len(list(self._folder.glob(f'{rank}-*')))}"
        torch.save(value, path)
        with self._lines.open("a") as lines:
            lines.write(f"{name}\t{path}\t{rank}\t{path.stat().st_size}\n")

    def lines(self):
        """Return the lines of all puts."""
        return self._lines.read_text().splitlines(keepends=True)

    def keep(self, lines):
        """Forget all puts but these."""
        self._lines.write_text("".join(lines))


class GivenStore:
    """What a student's run calls: a store over the log."""

    def __init__(self, log):
        self._log = log

    def put(self, name, value):
        """Keep a value; ranks other than 0 are slower at it."""
        rank = dist.get_rank()
        if rank:
            pause(0.01)
        self._log.add(name, rank, value)

    def get(self, name):
        """Return what was put last under a name."""
        paths = [entry[1] for entry in self._log.entries() if entry[0] == name]
        if not paths:
            raise FileNotFoundError(f"nothing was put as {name!r}")
        # made by operators, so that they are seen to be held
        return tree_map_only(torch.Tensor, torch.clone, torch.load(paths[-1]))

    def names(self):
        """Return the names of all that was put."""
        return sorted({entry[0] for entry in self._log.entries()})


@probe
def trained(student, sizes, full, inputs, targets, runs, most):
    """Return what came of each run: by rank the losses and the most bytes held; the puts.

    most: how many bytes a rank may hold. Within that, `most` is told: gloo's threads let go of a tensor
    when they come to it, so how much is held at once differs from run to run.

    runs: per run the mesh's shape, which of the first run's puts are left, and the steps to take: a share
    of the puts, or all but so many (a negative number); None: all, and those of the run before. A run
    that goes on and raises has the words.
    """
    found = []
    with tempfile.TemporaryDirectory() as folder:
        log, first = Log(folder), []
        for shape, left, steps in runs:
            job = GivenJob({**sizes, "steps": steps}, full, inputs, targets)
            if found and left is not None:
                log.keep(first[: int(left) if left < 0 else round(left * len(first))])
            found.append(run(student, job, tuple(shape), log, most, first=not found))
            first = first or log.lines()
    return found


def run(student, job, shape, log, most, *, first):
    """Return what came of one run. The first raises what it raises."""

    def body(rank):
        with watch_memory() as memory:
            losses = student.train(job, shape, GivenStore(log))
        return {"losses": losses, "peak": max(memory.peak_bytes, most)}

    before = len(log.entries())
    try:
        ranks = on_ranks(shape[0] * shape[1], body, seconds=TRAINING_SECONDS)
    except Exception as error:
        if first:
            raise
        return {"raised": f"{type(error).__name__}: {error}"}
    new = log.entries()[before:]
    by_rank = [
        sum(int(size) for _, _, r, size in new if int(r) == rank) for rank in range(len(ranks))
    ]
    return {"ranks": ranks, "puts": len(new), "bytes": by_rank}
