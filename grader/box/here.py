"""A transport without a process of its own: this very one, where a fork of it would not do."""

from __future__ import annotations

import _thread
import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from grader.box.ended import out_of_time
from grader.evidence.record import with_seen
from grader.inside import interrupts, serve
from grader.inside.probe import Probe
from grader.inside.process.budget import Budget

_AGAIN = 1.0
"""Seconds from one interrupt to the next, for code that catches them."""


class Here:
    """Asks about names of this very process: for systems where a fork of it would not do.

    An answer that takes too long is interrupted, as by Ctrl-C. One that ends the process ends it.
    """

    def __init__(
        self, probes: dict[str, Probe], names: dict[str, Any], budget: Budget = Budget()
    ) -> None:
        self._budget = budget
        self._inside = serve.Inside(probes, names, live=True)
        gc.freeze()  # as in a fork: a collection looks at what the answer makes, not at all of torch

    def ask(self, request: bytes, watch: bool = False) -> bytes:
        """Answer the request here and now. Raises `Ended` when it takes too long."""
        with _interrupted_after(self._budget.wall_seconds) as late:
            try:
                reply = self._inside.answer(request)
                return with_seen(reply, None) if watch else reply
            except KeyboardInterrupt:
                if not late.is_set():
                    raise
        raise out_of_time(self._budget, self._budget.waiting_seconds)

    def close(self) -> None:
        """Give all objects back to the collector of garbage."""
        gc.unfreeze()


@contextmanager
def _interrupted_after(seconds: float) -> Iterator[threading.Event]:
    """Interrupt the main thread after `seconds`, again and again; yield what says that it is late."""
    late, over = threading.Event(), threading.Event()
    main = threading.main_thread().ident

    def watch() -> None:
        if over.wait(seconds):
            return
        late.set()
        while not over.is_set():
            if main is not None and hasattr(signal, "pthread_kill"):
                signal.pthread_kill(main, signal.SIGINT)  # wakes what sleeps, too
            else:
                _thread.interrupt_main()
            over.wait(_AGAIN)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield late
    finally:
        over.set()
        thread.join()
        if late.is_set():
            interrupts.drop()
