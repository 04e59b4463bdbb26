"""Stands in for grader.inside.serve: a request is Python source, the reply its `result` as JSON."""

import importlib
import json

from grader.evidence.wire.channel import ChannelError, receive_frame, send_frame


def prepare(probes, preload):
    for name in preload:
        importlib.import_module(name)


def serve(sock):
    while True:
        try:
            source = receive_frame(sock)
        except ChannelError:
            return
        names = {"__name__": "__student__", "sock": sock}
        try:
            exec(compile(source, "<student>", "exec"), names)
            reply = {"value": names.get("result")}
        except Exception as error:
            reply = {"raised": f"{type(error).__name__}: {error}"}
        send_frame(sock, json.dumps(reply).encode())
