"""The least that can run in a box: prepares nothing, answers nothing. The doctor's patient."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path


def prepare(probes: Path, preload: Sequence[str] = ()) -> None:
    """Import nothing."""


def serve(sock: socket.socket) -> None:
    """Wait for the end."""
    while sock.recv(4096):
        pass
