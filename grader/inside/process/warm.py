"""The warm process: imports torch and the chapter's probes once, then forks a keeper per child.

Runs in the box as `python -m grader.inside.process.warm`. It never runs student code and never runs a
parallel torch operation: a fork after one hangs.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import json
import os
import signal
import socket
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from grader.inside.process import pages
from grader.inside.process.budget import Budget
from grader.inside.process.keeper import keep

CONTROL_LIMIT = 65536
"""Bytes of one message on the control socket; the longest is the traceback of a failed start."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Prepare, say so on the control socket, then serve it until the host lets go."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--control", type=int, required=True)
    parser.add_argument("--probes", type=Path, required=True)
    parser.add_argument("--inside", required=True)
    parser.add_argument("--bare", action="store_true")
    parser.add_argument("preload", nargs="*")
    options = parser.parse_args(arguments)
    control = socket.socket(fileno=options.control)
    try:
        inside = _load(options.inside)
        inside.prepare(options.probes, tuple(options.preload))
        _refuse_threads()
    except BaseException:
        _say(control, {"failed": traceback.format_exc()[-CONTROL_LIMIT // 2 :]})
        raise SystemExit(1) from None
    # What is alive now stays for good: keep the collector from writing to it, which would copy
    # the shared pages in every child.
    gc.collect()
    gc.freeze()
    pages.gather()
    # Keepers are not waited for: let the kernel bury them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _say(control, {"ready": os.getpid()})
    _serve(control, inside, isolate=not options.bare)


def _serve(control: socket.socket, inside: ModuleType, *, isolate: bool) -> None:
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, CONTROL_LIMIT, 2)
        if not message:
            return
        channel, leash = descriptors
        os.set_inheritable(channel, False)
        os.set_inheritable(leash, False)
        budget = Budget(**json.loads(message))
        me = os.getpid()
        if os.fork() == 0:
            try:
                control.detach()  # closed below with every other descriptor
                keep(channel, leash, budget, inside.serve, warm=me, isolate=isolate)
            except BaseException:
                traceback.print_exc()  # to the file the host reads when a child never got ready
            finally:
                os._exit(1)
        os.close(channel)
        os.close(leash)


def _load(inside: str) -> ModuleType:
    if not inside.endswith(".py"):
        return importlib.import_module(inside)
    spec = importlib.util.spec_from_file_location("inside", inside)
    if spec is None or spec.loader is None:
        raise ImportError(inside)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _refuse_threads() -> None:
    try:
        count = len(list(Path("/proc/self/task").iterdir()))
    except FileNotFoundError:
        count = threading.active_count()
    if count > 1:
        raise RuntimeError(
            f"{count} threads run after the imports, so forking is unsafe: "
            "a preloaded module or one of the chapter's probes started one"
        )


def _say(control: socket.socket, message: dict[str, object]) -> None:
    control.send(json.dumps(message).encode())


if __name__ == "__main__":
    main()
