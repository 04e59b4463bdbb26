"""A person before a kernel: cells run one by one, as JupyterLab runs them, and what they show."""

import tempfile
from contextlib import contextmanager
from pathlib import Path

from jupyter_client import KernelManager

PATIENCE = 120
"""Seconds that a cell may take."""


class Person:
    """Runs cells in a kernel. A front end says with each whether its reader could be asked something."""

    def __init__(self, client):
        self._client = client
        self.reads = True

    def run(self, text, cell=""):
        """Run a cell, known to the front end by the id `cell`; return its outputs, as in a notebook."""
        session, outputs, cleared = self._client.session, [], False
        content = {"code": text, "store_history": True, "allow_stdin": self.reads}
        request = session.msg("execute_request", content, metadata={"cellId": cell} if cell else {})
        self._client.shell_channel.send(request)
        while True:
            heard = self._client.get_iopub_msg(timeout=PATIENCE)
            if heard["parent_header"].get("msg_id") != request["header"]["msg_id"]:
                continue
            kind, said = heard["msg_type"], heard["content"]
            if kind == "status" and said["execution_state"] == "idle":
                return outputs
            if kind == "clear_output":
                cleared = True  # with the next output, or at once: in the end it is the same
            if kind in ("display_data", "execute_result", "stream", "error"):
                outputs, cleared = [] if cleared else outputs, False
                outputs.append({"output_type": kind, **said})

    def read(self, text, cell=""):
        """Run a cell that displays one thing and has no result; return it as text."""
        (output,) = self.run(text, cell)
        assert output["output_type"] == "display_data", output
        return output["data"]["text/plain"]


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
            yield Person(client)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
