"""Print, as JSON, what TensorBoard's data server shows of the runs in a folder: (step, value) of `loss`.

A program of its own: gRPC starts threads, and other tests fork. The server ends with it.
"""

import json
import sys
import time

from tensorboard.context import RequestContext
from tensorboard.data.server_ingester import SubprocessServerDataIngester, get_server_binary
from tensorboard.util.grpc_util import ChannelCredsType

SECONDS = 60
"""It reads while it answers: it is asked again until it shows all runs, and nothing new."""


def main(folder: str, runs: int) -> None:
    server = SubprocessServerDataIngester(
        server_binary=get_server_binary(),
        logdir=folder,
        reload_interval=0,
        channel_creds_type=ChannelCredsType.LOCAL,
    )
    server.start()
    before, until = None, time.monotonic() + SECONDS
    while time.monotonic() < until:
        found = server.data_provider.read_scalars(
            RequestContext(), experiment_id="", plugin_name="scalars", downsample=1000
        )
        shown = {run: [(at.step, at.value) for at in tags["loss"]] for run, tags in found.items()}
        if len(shown) == runs and shown == before:
            break
        before = shown
        time.sleep(0.5)
    print(json.dumps(shown))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
