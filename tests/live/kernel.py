"""A kernel as a student's front end has one: cells run in it, and what they show comes back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

from jupyter_client.manager import start_new_kernel

SECONDS = 240
"""Longest that a cell may take: an idle machine needs a tenth of it, a busy one all."""


@dataclass(frozen=True)
class Shown:
    """What a cell showed: its streams' text, its outputs' data, its error; and outputs that went again."""

    text: str
    outputs: tuple[dict[str, Any], ...]
    error: str
    cleared: tuple[dict[str, Any], ...]

    @property
    def points(self) -> float:
        """The points of the verdict that was shown."""
        (points,) = re.findall(r"([\d.]+) of [\d.]+ points", self.verdict)[:1]
        return float(points)

    @property
    def verdict(self) -> str:
        """The verdict that was shown, as a person reads it."""
        html = re.sub(r"<style>.*?</style>|<[^>]+>", " ", self.outputs[-1]["text/html"])
        return " ".join(unescape(html).split())

    @property
    def data(self) -> Any:
        """What the cell printed, as JSON."""
        return json.loads(self.text)


class Kernel:
    """A running kernel."""

    def __init__(self, manager: Any, client: Any) -> None:
        self.manager, self._client = manager, client

    def run(self, source: str) -> Shown:
        """Run a cell to its end."""
        streams, outputs, errors, cleared = [], [], [], []

        def hear(message: dict[str, Any]) -> None:
            kind, content = message["header"]["msg_type"], message["content"]
            if kind == "stream":
                streams.append(content["text"])
            elif kind == "error":
                errors.append(f"{content['ename']}: {content['evalue']}")
            elif kind == "clear_output":
                cleared.extend(outputs)
                outputs.clear()
            elif "data" in content:
                outputs.append(content["data"])

        self._client.execute_interactive(source, output_hook=hear, timeout=SECONDS)
        return Shown("".join(streams), tuple(outputs), "".join(errors), tuple(cleared))

    def begin(self, source: str) -> None:
        """Send a cell and do not wait for it."""
        self._client.execute(source)


@contextmanager
def kernel(folder: Path) -> Iterator[Kernel]:
    """Start a kernel in a folder, with someone before it; end it."""
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(folder))
    try:
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
