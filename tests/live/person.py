"""A person before a kernel: cells run one by one, as JupyterLab runs them, and what they show."""

import tempfile
from contextlib import contextmanager
from pathlib import Path

from jupyter_client import KernelManager

PATIENCE = 120
"""Seconds that a cell may take."""


class Person:
    """Runs cells in a kernel. A front end says with each that its reader could be asked something."""

    def __init__(self, client, reads):
        self._client, self._reads = client, reads

    def run(self, text, cell="", **metadata):
        """Run a cell, known to the front end by the id `cell`; return its outputs, as in a notebook."""
        outputs = []
        content = {
            "code": text, "silent": False, "store_history": True, "user_expressions": {},
            "allow_stdin": self._reads, "stop_on_error": False,
        }  # fmt: skip
        message = self._client.session.msg(
            "execute_request", content, metadata={"cellId": cell} if cell else {}
        )
        self._client.shell_channel.send(message)
        while True:
            heard = self._client.get_iopub_msg(timeout=PATIENCE)
            if heard["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            kind, said = heard["msg_type"], heard["content"]
            if kind == "status" and said["execution_state"] == "idle":
                return outputs
            if kind in ("display_data", "execute_result", "stream", "error"):
                outputs.append({"output_type": kind, **said})

    def read(self, text, cell=""):
        """Run a cell that shows one thing; return it as text."""
        (output,) = self.run(text, cell)
        assert output["output_type"] == "display_data", output
        return output["data"]["text/plain"]


@contextmanager
def person(folder, reads=True):
    """Start a kernel in `folder` with someone before it; without `reads` it is a program."""
    with tempfile.TemporaryDirectory(prefix="undertorch-kernel-") as sockets:
        manager = KernelManager(transport="ipc", ip=str(Path(sockets) / "socket"))
        manager.start_kernel(cwd=str(folder))
        client = manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=PATIENCE)
        try:
            yield Person(client, reads)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
