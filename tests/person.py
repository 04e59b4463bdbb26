"""A person before a kernel: cells run one by one, as JupyterLab runs them, and what they show."""

import json
import re
import tempfile
from contextlib import contextmanager
from html import unescape
from pathlib import Path

from jupyter_client import KernelManager

PATIENCE = 240
"""Seconds that a kernel may say nothing: an idle machine needs a tenth of it, a busy one all."""


class Shown(list):
    """What a cell showed: outputs as a notebook holds them. `cleared` are those that were taken back."""

    def __init__(self):
        super().__init__()
        self.cleared = []

    def of(self, kind):
        """Return the outputs of a kind."""
        return [output for output in self if output["output_type"] == kind]

    @property
    def text(self):
        """What was printed."""
        return "".join(output["text"] for output in self.of("stream"))

    @property
    def data(self):
        """What was printed, as JSON."""
        return json.loads(self.text)

    @property
    def verdict(self):
        """The verdict that was displayed last, as a person reads it."""
        html = self.of("display_data")[-1]["data"]["text/html"]
        return " ".join(unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", html)).split())

    @property
    def points(self):
        """The points of that verdict."""
        return float(re.search(r"([\d.]+) of [\d.]+ points", self.verdict)[1])


class Person:
    """Runs cells in a kernel. A front end says with each whether its reader could be asked something."""

    def __init__(self, manager, client):
        self._manager, self._client = manager, client
        self.reads = True

    def begin(self, text, cell=""):
        """Run a cell, known to the front end by the id `cell`, without waiting; return the request's id."""
        session = self._client.session
        content = {"code": text, "store_history": True, "allow_stdin": self.reads}
        request = session.msg("execute_request", content, metadata={"cellId": cell} if cell else {})
        self._client.shell_channel.send(request)
        return request["header"]["msg_id"]

    def run(self, text, cell=""):
        """Run a cell to its end; return what it showed."""
        request, shown, clear = self.begin(text, cell), Shown(), False
        while True:
            heard = self._client.get_iopub_msg(timeout=PATIENCE)
            if heard["parent_header"].get("msg_id") != request:
                continue
            kind, said = heard["msg_type"], heard["content"]
            if kind == "status" and said["execution_state"] == "idle":
                return shown
            if kind == "clear_output":
                clear = True  # with the next output, or at once: in the end it is the same
            if kind in ("display_data", "execute_result", "stream", "error"):
                if clear:
                    shown.cleared += shown
                    shown.clear()
                    clear = False
                shown.append({"output_type": kind, **said})

    def read(self, text, cell=""):
        """Run a cell that displays one thing and has no result; return it as text."""
        (output,) = self.run(text, cell)
        assert output["output_type"] == "display_data", output
        return output["data"]["text/plain"]

    def interrupt(self):
        """Do what the stop button does."""
        self._manager.interrupt_kernel()


@contextmanager
def person(folder):
    """Start a kernel in `folder`, with someone before it."""
    with tempfile.TemporaryDirectory(prefix="undertorch-kernel-") as sockets:
        manager = KernelManager(transport="ipc", ip=str(Path(sockets) / "socket"))
        manager.start_kernel(cwd=str(folder))
        client = manager.client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=PATIENCE)
            yield Person(manager, client)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
