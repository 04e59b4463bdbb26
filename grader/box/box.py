"""A box: one warm process for one chapter, from which isolated children are forked."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Self
from weakref import WeakSet

from grader.box import launch
from grader.box.child import Child
from grader.box.tiers import BoxUnavailable, Tier
from grader.inside.process.budget import Budget

_START_SECONDS = 120.0
"""Importing torch takes 1.3 s, on a cold network disk a minute has been seen."""

_STOP_SECONDS = 10.0
"""The warm process leaves when its control socket closes; after this it is killed."""

_MESSAGE_LIMIT = 65536


class Box:
    """One warm process in a sandbox, for one chapter.

    Make it in a thread that lives as long as the box: the kernel ends the box with the thread that
    started it (`--die-with-parent`), so that nothing survives a killed grader.
    """

    def __init__(
        self,
        probes: Path,
        preload: Sequence[str] = (),
        budget: Budget = Budget(),
        *,
        tier: Tier = Tier.NAMESPACES,
        inside: Path | None = None,
    ) -> None:
        """Start it and wait until a first child was confined.

        Args:
            probes: the package of the chapter's probes: all of the chapter that the box sees.
            preload: modules to import once, e.g. ``torch._dynamo``.
            budget: for children that are opened without their own.
            tier: how strongly it confines; never another in its place.
            inside: a file with ``prepare`` and ``serve`` instead of grader.inside.serve.

        Raises BoxUnavailable, with what to do, when the box cannot be had.
        """
        self.tier = tier
        self.budget = budget
        if not probes.exists():
            raise FileNotFoundError(probes)
        self._children: WeakSet[Child] = WeakSet()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._started = launch.start(self.tier, probes, preload, inside, theirs.fileno())
        try:
            self._await_ready()
            with self.open() as first:
                first.wait_ready()
        except BaseException:
            self.close()
            raise

    def open(self, budget: Budget | None = None) -> Child:
        """Return a fresh child: a fork of the warm process that nothing has run in."""
        budget = budget or self.budget
        channel, inner_channel = socket.socketpair()
        leash, inner_leash = socket.socketpair()
        try:
            with inner_channel, inner_leash:
                message = json.dumps(asdict(budget)).encode()
                socket.send_fds(
                    self._control, [message], [inner_channel.fileno(), inner_leash.fileno()]
                )
        except OSError as error:
            channel.close()
            leash.close()
            raise BoxUnavailable(
                f"the warm process is gone ({error}). {self._started.complaint()}"
            ) from None
        child = Child(channel, leash, budget, self.tier)
        self._children.add(child)
        return child

    def close(self) -> None:
        """End the warm process and every child; returns when none is left."""
        for child in list(self._children):
            child.close()
        self._control.close()
        self._started.wait_until_empty(_STOP_SECONDS)
        self._started.clean_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _await_ready(self) -> None:
        self._control.settimeout(_START_SECONDS)
        try:
            message = self._control.recv(_MESSAGE_LIMIT)
        except TimeoutError:
            raise BoxUnavailable(
                f"the warm process was not ready within {_START_SECONDS:g} s"
            ) from None
        except ConnectionError:
            message = b""
        if not message:
            self._started.process.wait(_STOP_SECONDS)
            raise BoxUnavailable(
                f"the box did not start: {self._started.complaint() or 'no word from bwrap'}. "
                "Run `undertorch doctor` to see what this machine lacks."
            )
        failed = json.loads(message).get("failed")
        if failed:
            raise BoxUnavailable(f"the warm process could not be prepared:\n{failed}")
