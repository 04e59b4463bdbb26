"""Probes of `Run`, which hands out to backends."""

import io
import warnings

import torch

from grader import on_ranks, probe, watch_collectives

from .alive import Graphs
from .reads import watch_reads


class Failing(Exception):
    """What backends here raise; it has a name of its own, so that none of Python's is meant."""


ENDINGS = {
    "disk": lambda: OSError(28, "No space left on device"),
    "network": lambda: ConnectionError("the service is unreachable"),
    "token": lambda: Failing("this token has run out"),
    "interrupt": lambda: KeyboardInterrupt(),
}
"""What a backend raises, by a short name."""


class Backend:
    """What one backend was told, and what it has written for good.

    words: "add", "log" or "log_metrics", by which it is told a step
    fails: (a word, at which call of it, a name of `ENDINGS`), if it is to raise
    """

    def __init__(self, words, fails=None):
        self.words, self.fails = words, fails
        self.rows, self.config, self.starts = [], {}, []
        self.told, self.raised, self.after = [], [], []

    def open(self, start=None):
        self.starts.append(start if type(start) is int or start is None else repr(start))
        self.hears("open")
        if type(start) is int:
            self.rows = [row for row in self.rows if not (type(row[0]) is int and row[0] >= start)]
        return {"add": LikeEventWriter, "log": LikeWandb, "log_metrics": LikeMlflow}[self.words](
            self
        )

    def hears(self, word):
        self.told.append(word)
        if self.raised:
            self.after.append(word)
        if self.fails and self.fails[0] == word and self.told.count(word) == self.fails[1]:
            error = ENDINGS[self.fails[2]]()
            self.raised.append(error)
            raise error

    def facts(self):
        keys = ("rows", "config", "starts", "told", "after")
        return {key: getattr(self, key) for key in keys}


def row_of(step, values):
    """Return a step and its values as text, so that a NaN equals itself and a type can be seen."""

    def said(value):
        return repr(float(value)) if isinstance(value, float) else f"a {type(value).__name__}"

    if type(step) is not int:
        step = f"a {type(step).__name__}"
    if not isinstance(values, dict):
        return step, f"a {type(values).__name__}"
    return step, {str(name): said(value) for name, value in values.items()}


class LikeEventWriter:
    """Has the methods of `EventWriter`; what was added is written when it is flushed."""

    def __init__(self, backend):
        self._backend, self._added = backend, []

    def add(self, step, values):
        self._backend.hears("add")
        self._added.append(row_of(step, values))

    def flush(self):
        self._backend.hears("flush")
        self._write()

    def close(self):
        self._backend.hears("close")
        self._write()

    def _write(self):
        self._backend.rows += self._added
        self._added = []


class LikeWandb:
    """Has the methods of a run of W&B that are asked for."""

    def __init__(self, backend):
        self._backend, self.config = backend, Config(backend)

    def log(self, data, step=None, commit=None):
        self._backend.hears("log")
        self._backend.rows.append(row_of(step, data))

    def finish(self, exit_code=None, quiet=None):
        self._backend.hears("finish")


class Config(dict):
    """Keeps a configuration for a backend."""

    def __init__(self, backend):
        super().__init__()
        self._backend = backend

    def update(self, d=(), allow_val_change=None, **more):
        self._backend.hears("config.update")
        self._backend.config.update(d, **more)

    def __setitem__(self, name, value):
        self._backend.config[name] = value


class LikeMlflow:
    """Has the functions of the module `mlflow` that are asked for."""

    def __init__(self, backend):
        self._backend = backend

    def log_params(self, params, synchronous=None):
        self._backend.hears("log_params")
        self._backend.config.update(params)

    def log_metrics(self, metrics, step=None, synchronous=None):
        self._backend.hears("log_metrics")
        self._backend.rows.append(row_of(step, metrics))

    def end_run(self, status="FINISHED"):
        self._backend.hears("end_run")


class Life:
    """One `Run` from its beginning to its end, or to where it is killed."""

    def __init__(self, student, backends, every, state):
        self.student, self.backends = student, backends
        self.options = {} if every is None else {"every": every}
        if state is not None:
            self.options["state"] = state
        self.state, self.given = state, []

    def live(self, acts):
        """Do one act after the other, up to one out of which a backend's error comes; return this one."""
        came = []
        for number, act in enumerate([("open",), *acts]):
            try:
                self.act(act)
            except BaseException as error:
                mine = [one for backend in self.backends for one in backend.raised]
                if not any(error is one for one in mine):
                    raise
                came.append((number, type(error).__name__))
                break
        return came

    def act(self, act):
        """Do one act; an error that comes out says in which."""
        try:
            self._do(*act)
        except Exception as error:
            error.add_note(written_act(*act))
            raise

    def _do(self, kind, *args):
        match kind:
            case "open":
                openers = [backend.open for backend in self.backends]
                self.run = self.student.Run(openers, **self.options)
            case "config":
                self.run.config(dict(args[0]))
            case "log":
                step, values = args
                values = {
                    name: one.detach().clone() if isinstance(one, torch.Tensor) else one
                    for name, one in values.items()
                }
                self.given.append(values)
                self.run.log(step, values)
            case "change":
                for values in self.given:
                    for one in values.values():
                        if isinstance(one, torch.Tensor):
                            one.fill_(7)
                    values.update(dict.fromkeys(values, -1.0))
            case "state":
                self.state = saved_and_loaded(self.run.state_dict())
            case "finish":
                self.run.finish()


def saved_and_loaded(state):
    """Return what a checkpoint has of a state."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def written_act(kind, *args):
    """Return an act as one would write it."""
    match kind:
        case "open":
            return "run = Run(openers, …)"
        case "config":
            return f"run.config({args[0]})"
        case "log":
            values = ", ".join(f"{name!r}: {written_value(one)}" for name, one in args[1].items())
            return f"run.log({args[0]}, {{{values}}})"
        case "change":
            return "# now the loop changes all tensors in place, and its dicts"
        case "state":
            return "state = run.state_dict()"
        case _:
            return "run.finish()"


def written_value(value):
    """Return a number or a tensor of one element as one would write it."""
    if isinstance(value, torch.Tensor):
        return f"torch.tensor({value.tolist()}, dtype={value.dtype})"
    return f"float({str(value)!r})" if repr(value) in ("nan", "inf", "-inf") else repr(value)


@probe
def runs_lived(student, backends, every, lives):
    """Return what each backend was told and has, after runs of which each goes on from the one before.

    backends: (words, fails) of each; lives: acts of each run, which is killed at the end of them
    """
    there = [Backend(*one) for one in backends]
    state, found, kept = None, [], []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for acts in lives:
            life = Life(student, there, every, state)
            found += life.live([tuple(act) for act in acts])
            state = life.state
            kept.append(life)  # a killed run is not tidied up
    return {
        "backends": [backend.facts() for backend in there],
        "came": found,
        "warned": [str(one.message) for one in warned],
    }


@probe
def run_along(student, words, every, acts):
    """Return, after each act: rows that are written, and how often the backend was called by then."""
    backend = Backend(words)
    life, found = Life(student, [backend], every, None), []
    for act in [("open",), *map(tuple, acts)]:
        life.act(act)
        found.append((len(backend.rows), len(backend.told) - backend.told.count("open")))
    return {"along": found, "told": backend.told}


@probe
def run_reads(student, words, every, steps):
    """Return, after each step, the state and the end: names of reads so far, and graphs alive."""
    backend, graphs, found = Backend(words), Graphs(), []
    weight = torch.ones((), requires_grad=True)
    with watch_reads() as reads:
        run = student.Run([backend.open], every=every)
        for step in range(1, steps + 1):
            loss = weight * step
            graphs.note(loss)
            run.log(step, {"loss": loss, "norm": loss.detach() / 2, "lr": 0.1})
            del loss
            found.append((list(reads.names), graphs.alive))
        run.state_dict()
        found.append((list(reads.names), graphs.alive))
        run.finish()
        found.append((list(reads.names), graphs.alive))
    return {"along": found, "rows": backend.rows}


@probe
def run_on_ranks(student, world_size, words, every, acts):
    """Return of each rank what its backend was told, and what the rank said to the others."""

    def body(rank):
        backend = Backend(words)
        with watch_collectives() as seen:
            Life(student, [backend], every, None).live([tuple(act) for act in acts])
        return backend.facts() | {"said": list(seen.names)}

    return on_ranks(world_size, body, seconds=8.0)
