"""What runs beside the student's code, in a live kernel, a fork or a box: load, probe, reply.

It answers requests with plain data (see `grader.evidence.wire.codec`) and decides nothing: every
judgement is made by the reader of its replies.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import io
import linecache
import random
import socket
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from grader.evidence.wire.channel import ChannelError, receive_frame_and_file, send_frame
from grader.evidence.wire.codec import decode, decode_with_storages, encode
from grader.evidence.wire.raised import report, text
from grader.evidence.wire.tensors import Refused, storage_bytes
from grader.evidence.wire.trace import BEGIN, END
from grader.inside import interrupts, witness
from grader.inside.forked import settle
from grader.inside.pristine import replaced, snapshot, tell
from grader.inside.probe import Probe, Student, load_probes
from grader.inside.tripwire import Tripwire

TEXT_LIMIT = 20_000
"""Characters of printed output kept per probe: more than anyone reads."""

_probes: dict[str, Probe] = {}


def prepare(probes: Path, preload: Sequence[str] = ()) -> dict[str, Probe]:
    """Import what every child will need, once, before the first fork. Return the probes."""
    for module in preload:
        importlib.import_module(module)
    loaded = load_probes(probes)
    adopt(loaded)
    warm_up()
    return loaded


@cache
def warm_up() -> None:
    """Look at all modules, and use what watches once, before any fork does."""
    wire = Tripwire([("function", "torch.Tensor.mul_"), ("aten", "mul_")])  # looks at all modules
    with interrupts.held(), wire.watching():
        torch.zeros(1) + 1


def adopt(probes: dict[str, Probe]) -> None:
    """Serve these probes."""
    _probes.clear()
    _probes.update(probes)


def serve(sock: socket.socket) -> None:
    """Answer requests on `sock` about programs that are loaded into an empty `__main__`."""
    serve_names(sock, fresh_main())


def serve_names(sock: socket.socket, names: dict[str, Any]) -> None:
    """Answer requests on `sock` about `names` until it is closed. The last thing a child does."""
    settle()
    inside = Inside(_probes, names)
    while True:
        try:
            request, record = receive_frame_and_file(sock)
        except ChannelError:
            return
        if record is not None:
            inside.record = record
        reply = inside.answer(request)
        witness.flush()
        send_frame(sock, reply)


def fresh_main() -> dict[str, Any]:
    """Install an empty `__main__` module, as a notebook has one, and return its names."""
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    names = vars(module)
    names["display"] = lambda *args, **kwargs: None
    names["get_ipython"] = _NoKernel
    return names


class _NoKernel:
    """Stands in for IPython's shell: magics and shell lines do nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: None


class Inside:
    """Answers requests about the student's `names`. `live` leaves interrupts to the kernel."""

    def __init__(self, probes: dict[str, Probe], names: dict[str, Any], live: bool = False) -> None:
        self._probes = probes
        self._names = names
        self._live = live
        self._stopped: dict[str, dict[str, Any]] = {}
        self._wire = Tripwire(())
        self._pristine = snapshot()

        self.record: int | None = None
        """The file for the second witness, which begins where a program is loaded."""

    def answer(self, request: bytes) -> bytes:
        """Return the reply to one request."""
        body = decode(request)
        match body["do"]:
            case "load":
                if body.get("watch") and self.record is not None:
                    witness.begin(self.record)
                    self._pristine = snapshot()
                    tell(self._pristine)
                return encode(self._load(body))
            case "probe":
                return _encoded(self._probe(body))
            case "plain":
                return encode(self._plain(body["source"]))
        raise ValueError(f"unknown request {body['do']!r}")

    def _tripwire(self, rules: Sequence[tuple[str, str]]) -> Tripwire:
        """Return what watches for these rules: one and the same from the first cell on."""
        if self._wire.rules != tuple(map(tuple, rules)):
            self._wire = Tripwire(rules)
        return self._wire

    def _load(self, body: dict[str, Any]) -> dict[str, Any]:
        """Run the parts in order. One that raises stops there, as a cell does in a kernel."""
        output, tripwire = _Capped(), self._tripwire(body["off_limits"])
        for label, source in body["parts"]:
            with _quiet(output), tripwire.watching(body["judged"]):
                error = self._attempt(partial(run_cell, label, source, self._names))
            if error is not None:
                self._stopped[label] = error
        return {"stopped": self._stopped, "stdout": output.text}

    def _plain(self, source: str) -> dict[str, Any]:
        """Run a test cell of plain asserts among the student's names."""
        output = _Capped()
        with _quiet(output), warnings.catch_warnings():
            error = self._attempt(lambda: run_cell("test cell", source, self._names))
        return {"raised": error, "stdout": output.text}

    def _attempt(self, action: Callable[[], object]) -> dict[str, Any] | None:
        try:
            with interrupts.let_through():
                action()
        except KeyboardInterrupt:
            if self._live:
                raise
            return {"type": "KeyboardInterrupt", "mro": [], "message": "", "where": [], "notes": ""}
        except BaseException as error:  # SystemExit and GeneratorExit are the student's too
            return report(error)
        return None

    def _probe(self, body: dict[str, Any]) -> dict[str, Any]:
        probe = self._probes[body["probe"]]
        inputs, storages = decode_with_storages(body["inputs"])
        before = [storage_bytes(storage) for storage in storages]
        output, tripwire = _Capped(), self._tripwire(body["off_limits"])
        reply: dict[str, Any] = {"value": None, "refused": None, "raised": None}
        result: list[object] = []

        def run() -> None:
            result.append(probe.run(Student(self._names), **inputs))

        with _settings_restored(body["seed"]), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            with _quiet(output), tripwire.watching():
                witness.mark(BEGIN)
                reply["raised"] = self._attempt(run)
                witness.mark(END)
        if result:
            try:
                reply["value"] = encode(result[0], known=storages)
            except Refused as refused:
                reply["refused"] = str(refused)
            except Exception as error:  # reading it ran the student's code, such as a property
                reply["refused"] = f"something that raises {type(error).__name__} when it is read"
        after = [storage_bytes(storage) for storage in storages]
        reply["changed"] = {
            index: new
            for index, (old, new) in enumerate(zip(before, after, strict=True))
            if old != new
        }
        reply["warnings"] = [(w.category.__name__, text(w.message)) for w in warned[:20]]
        reply["stdout"] = output.text
        reply["tripped"] = tripwire.tripped
        reply["stray"] = tripwire.stray
        reply["tampered"] = replaced(self._pristine)
        tell(self._pristine)
        return reply


def _encoded(reply: dict[str, Any]) -> bytes:
    try:
        return encode(reply)
    except Refused as refused:  # each part crossed, together they are too large
        return encode({**reply, "value": None, "changed": {}, "refused": str(refused)})


def run_cell(label: str, source: str, names: dict[str, Any]) -> None:
    """Run a cell's text among these names, as a kernel does; tracebacks find its lines."""
    filename = f"<{label}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    code = compile(source, filename, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(types.FunctionType(code, names)())
    else:
        exec(code, names)


class _Capped(io.TextIOBase):
    """A text stream that keeps its first characters and forgets the rest."""

    def __init__(self) -> None:
        self.text = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if len(self.text) < TEXT_LIMIT:
            self.text += text[: TEXT_LIMIT - len(self.text)]
        return len(text)


@contextmanager
def _quiet(output: _Capped) -> Iterator[None]:
    with redirect_stdout(output), redirect_stderr(output):
        yield


def _saved_tensor_hooks() -> object:
    """Return the innermost hooks through which saved tensors go, None if there are none."""
    return torch._C._autograd._top_saved_tensors_default_hooks(False)


@contextmanager
def _settings_restored(seed: int) -> Iterator[None]:
    """Seed every generator, and put back what student code often leaves changed."""
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    grad, deterministic = torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled()
    hooks = _saved_tensor_hooks()
    state, torch_state = random.getstate(), torch.get_rng_state()
    random.seed(seed)
    # not torch.manual_seed: it formats the stack for each accelerator that is not there, 2.5 ms
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(state)
        torch.set_rng_state(torch_state)
        torch.set_grad_enabled(grad)
        while (left := _saved_tensor_hooks()) is not None and left != hooks:
            torch._C._autograd._pop_saved_tensors_default_hooks()
        torch.set_default_dtype(dtype)
        if torch.are_deterministic_algorithms_enabled() != deterministic:  # imports the compiler
            torch.use_deterministic_algorithms(deterministic)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
