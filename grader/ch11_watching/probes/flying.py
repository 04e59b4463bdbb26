"""Training loops for a flight recorder: each run with it and without, and all that it leaves."""

import gc
import math
import tempfile
import weakref
from contextlib import contextmanager, nullcontext

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from grader import probe

from .contract import disturbed, nothing_new, quiet, seed_all, state_of
from .event_writing import files_in
from .reads import watch_reads


class Clock:
    """A clock that goes on by a millisecond each time that somebody looks."""

    def __init__(self):
        self.now = 1_750_000_000 * 10**9

    def __call__(self):
        self.now += 10**6
        return self.now


class Net(nn.Module):
    """A net for a kind of loop: two ReLUs, in place, and what the kind is about."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.calls = kind, 0
        self.first = nn.Linear(6, 8)
        self.norm = nn.BatchNorm1d(8) if kind in ("plain", "evaluated") else nn.Identity()
        self.act = nn.ReLU(inplace=kind != "checkpointed")
        self.drop = nn.Dropout(0.25)
        self.block = nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True))
        self.last = nn.Linear(8, 6 if kind == "tied" else 2)
        if kind in ("tied", "checkpointed"):
            self.block[1] = self.act
        if kind == "checkpointed":
            self.block.append(nn.Linear(8, 8))  # recomputation stops where nothing more is needed
        if kind == "tied":
            self.last.weight = nn.Parameter(self.first.weight.detach().t().clone())
            self.again = nn.Linear(6, 8)
            self.again.weight = self.first.weight
            self.block[0].requires_grad_(False)

    def forward(self, x):
        self.calls += 1
        x = self.drop(self.act(self.norm(self.first(x))))
        if self.kind == "checkpointed":
            x = checkpoint(self.block, x, use_reentrant=False)
        else:
            x = self.block(x)
        if self.kind == "tied":
            x = x + self.again(self.last(x))
        if self.kind == "breaks" and self.calls == 6:
            raise KeyError("in forward")
        return self.last(x)


class Flight:
    """One training: a model, an optimizer and a loop, which calls `note` and `landed` at each step."""

    def __init__(self, kind, seed):
        seed_all(seed)
        self.kind = kind
        self.model = Net(kind)
        self.batches = [torch.randn(5 + n % 3, 6) * (1 + n) for n in range(4)]
        parameters = list(self.model.parameters())
        groups = [{"params": parameters[:2]}, {"params": parameters[2:], "lr": 0.02}]
        if kind == "plain":
            groups[1]["lr"] = torch.tensor(0.02)  # a schedule changes it in place
        kinds = {"plain": torch.optim.Adam, "tied": torch.optim.AdamW}
        self.optimizer = kinds.get(kind, torch.optim.SGD)(groups, lr=0.01)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.5)
        self.losses, self.graphs, self.versions, self.tokens = [], [], [], []
        self.kept = 0

    def loss_of(self, number, note):
        cast = torch.autocast("cpu", torch.bfloat16) if self.kind == "cast" else nullcontext()
        with cast:
            output = self.model(self.batches[number % 4])
            loss = output.float().square().mean() if self.kind != "cast" else output.square().mean()
            self.versions.append(output._version)
            note(loss=loss)
            if self.kind == "accumulated":
                note(scale=number, half=loss.detach().bfloat16())
        self.graphs.append([node.name() for node in nodes_of(loss.grad_fn)])
        self.losses.append(loss.detach().clone())
        self.watch(loss)
        return loss

    def watch(self, loss):
        """Count graphs of earlier losses that are still there."""
        self.kept = max(self.kept, sum(token() is not None for token in self.tokens))
        for node in nodes_of(loss.grad_fn):
            if node is loss.grad_fn or node.name().startswith("Relu"):
                token = Token()
                node.metadata["token"] = token
                self.tokens.append(weakref.ref(token))

    def run(self, steps, note, landed=lambda step: None, first=0):
        """Train steps `first` to `steps`."""
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0, enabled=self.kind == "scaled")
        for step in range(first, steps):
            self.optimizer.zero_grad()
            for part in range(3 if self.kind == "accumulated" else 1):
                loss = self.loss_of(step + part, note)
                if self.kind == "accumulated":
                    with torch.no_grad():
                        loss.div_(3)  # after it was noted, and in place
                if self.kind == "raises" and step == 5:
                    raise KeyError("in the loop")
                scaler.scale(
                    loss * (math.inf if self.kind == "scaled" and step in (1, 4) else 1)
                ).backward()
                del loss
            if self.kind in ("scaled", "clipped"):
                scaler.unscale_(self.optimizer)
            if self.kind == "clipped":
                nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
            scaler.step(self.optimizer)
            scaler.update()
            if self.kind in ("plain", "tied"):
                with quiet():
                    self.schedule.step()
            if self.kind == "evaluated":
                self.model.eval()
                with torch.no_grad():
                    self.model(self.batches[0])
                self.model.train()
            landed(step + 1)

    def state(self):
        """Return all that could be another in a run that is watched."""
        found = state_of(self.model, self.optimizer)
        found |= {f"the loss of call {n}": one for n, one in enumerate(self.losses)}
        found["the graphs of the losses"] = self.graphs
        found["the versions of the model's outputs"] = self.versions
        return found


class Token:
    """Something that goes when the node that holds it goes."""


def nodes_of(node):
    """Return a graph's nodes."""
    found, waiting = [], [node]
    while waiting:
        one = waiting.pop()
        if one is not None and one not in found:
            found.append(one)
            waiting += [following for following, _ in one.next_functions]
    return found


@contextmanager
def ends_with(found):
    """Note the kind of error that the loop ended with, and go on."""
    try:
        yield
        found["came"] = "nothing"
    except KeyError:
        found["came"] = "KeyError"


@probe
def flown(student, kind, seed, steps, every):
    """Return what was recorded of a run, what it disturbed, left and read, and how it ended."""
    found = {}

    def run(watched):
        flight = Flight(kind, seed)
        if not watched:
            with ends_with({}):
                flight.run(steps, lambda **values: None)
            return flight.state()
        with tempfile.TemporaryDirectory() as folder:
            with (
                nothing_new(flight.model, flight.optimizer) as left,
                ends_with(found),
                student.recorder(
                    flight.model, flight.optimizer, folder, Clock(), every=every
                ) as note,
            ):
                flight.run(steps, note)
            found["files"] = files_in(folder)
            found["left"] = list(left)
        return flight.state()

    found["disturbed"] = disturbed(run)
    return found


@probe
def flight_reads(student, kind, seed, steps, every):
    """Return the names of reads of a run that is recorded, those of one that is not, and the files."""
    counts = []
    for watched in (False, True):
        flight = Flight(kind, seed)
        with tempfile.TemporaryDirectory() as folder, watch_reads() as reads:
            if watched:
                with student.recorder(
                    flight.model, flight.optimizer, folder, Clock(), every=every
                ) as note:
                    flight.run(steps, note)
            else:
                flight.run(steps, lambda **values: None)
            counts.append(list(reads.names))
            files = files_in(folder)
    return {"without": counts[0], "with": counts[1], "files": files}


@probe
def flight_kept(student, kind, seed, steps, every):
    """Return graphs that stay, tensors in memory and files on disk along the way.

    every: ten is the default, and is not passed
    """
    flight = Flight(kind, seed)
    options = {} if every == 10 else {"every": every}
    tensors, files = [], []
    gc.collect()
    gc.freeze()  # what there is by now is not counted
    with tempfile.TemporaryDirectory() as folder:

        def landed(step):
            if step % every == 0:
                gc.collect()
                own = [one for one in gc.get_objects() if isinstance(one, torch.Tensor)]
                tensors.append([len(own), sum(one.numel() for one in own)])
                files.append(files_in(folder))
            flight.losses.clear()
            flight.graphs.clear()
            flight.versions.clear()

        with student.recorder(flight.model, flight.optimizer, folder, Clock(), **options) as note:
            flight.run(steps, note, landed)
        last = files_in(folder)
    return {"graphs": flight.kept, "tensors": tensors, "on disk": files, "files": last}


@probe
def flown_again(student, seed, crashed, saved, steps, every):
    """Return the folder after a run that went to `crashed`, and one that goes on from `saved`."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        flight = Flight("plain", seed)
        with student.recorder(flight.model, flight.optimizer, folder, clock, every=every) as note:
            flight.run(crashed, note)
        before = files_in(folder)
        again = Flight("clipped", seed + 1)
        with student.recorder(
            again.model, again.optimizer, folder, clock, every=every, step=saved
        ) as note:
            again.run(steps, note, first=saved)
        return {"before": before, "files": files_in(folder)}
