"""Files that the solutions write: TensorBoard's own reader, and PyTorch's own table, say the same."""

import json
import math
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from grader.ch11_watching.event_files import crc32c, framed, read_file, records
from grader.ch11_watching.probes.event_writing import SECOND, Clock
from grader.ch11_watching.traces import RECORDED
from tests import references
from tests.ch11_watching.record_trace import record as record_trace
from tests.ch11_watching.record_trace import table_of

reference: Callable = partial(references.reference, "ch11_watching")


def read_by_tensorboard(folder):
    """Return what TensorBoard shows: (step, value) by tag."""
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    ).EventAccumulator
    found = accumulator(str(folder), size_guidance={"scalars": 0})
    found.Reload()
    return {
        tag: [(one.step, one.value) for one in found.Scalars(tag)]
        for tag in found.Tags()["scalars"]
    }


def test_the_checksum_is_the_standards():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4


def test_a_record_of_summary_writers_own(tmp_path):
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 1.5, 3)
        writer.add_scalar("a/b", math.nan, -1)
    [path] = tmp_path.iterdir()
    data = path.read_bytes()
    inner = [one for _, one in records(data)]
    assert b"".join(map(framed, inner)) == data
    assert b"".join(map(reference("record"), inner)) == data


def test_tensorboard_reads_what_we_write(tmp_path):
    writer = reference("EventWriter")(str(tmp_path), Clock(1_750_000_000))
    values = [0.1, math.nan, math.inf, -3.0, 1e40]
    for step, value in enumerate(values):
        writer.add(step, {"loss": value, "größe/x": -value})
    writer.add(-5, {"negative": 1.0})
    writer.add(2**40, {"large": 1.0})
    writer.close()
    shown = read_by_tensorboard(tmp_path)
    assert shown["negative"] == [(-5, 1.0)]
    assert shown["large"] == [(2**40, 1.0)]
    with_ours = [dict(event.values) for event in read_file(Path(writer.path).read_bytes())[1:6]]
    for tag in ("loss", "größe/x"):
        theirs = [struct.pack("<f", value) for _, value in shown[tag]]
        assert theirs == [struct.pack("<f", one[tag]) for one in with_ours]


def test_tensorboard_takes_our_start_as_a_restart(tmp_path):
    for seconds, start, steps in (
        (1_750_000_000, None, range(10)),
        (1_750_000_000, 5, range(5, 8)),
    ):
        writer = reference("EventWriter")(str(tmp_path), Clock(seconds), start)
        for step in steps:
            writer.add(step, {"loss": float(step + 100 * bool(start))})
        writer.close()
    steps = [step for step, _ in read_by_tensorboard(tmp_path)["loss"]]
    assert steps == list(range(8))


def test_tensorboard_shows_each_step_of_a_run_that_went_on_once(tmp_path):
    clock, writer, run_of = Clock(1_750_000_000), reference("EventWriter"), reference("Run")
    openers = [partial(writer, str(tmp_path), clock)]
    run = run_of(openers, every=4)
    for step in range(1, 14):  # then it is killed, with one step that waits
        run.log(step, {"loss": torch.tensor(float(step))})
        if step == 7:
            state = run.state_dict()
    again = run_of(openers, every=4, state=state)
    for step in range(8, 11):
        again.log(step, {"loss": torch.tensor(100.0 + step)})
    again.finish()
    expected = [*((step, float(step)) for step in range(1, 8)), (8, 108.0), (9, 109.0), (10, 110.0)]
    assert read_by_tensorboard(tmp_path)["loss"] == expected


def test_tensorboard_shows_a_recorded_flight(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    with reference("recorder")(
        model, optimizer, str(tmp_path), Clock(1_750_000_000), every=4
    ) as note:
        for _ in range(10):
            optimizer.zero_grad()
            loss = model(torch.randn(8, 4)).square().mean()
            note(loss=loss)
            losses.append(loss.item())
            loss.backward()
            optimizer.step()
    shown = read_by_tensorboard(tmp_path)
    assert set(shown) == {"loss", "grad_norm", "lr/0", "zeros/1"}
    assert shown["loss"] == list(enumerate(losses, start=1))
    trace = json.loads((tmp_path / "trace.0.json").read_text())
    names = [event["name"] for event in trace["traceEvents"] if event["ph"] == "X"]
    assert names.count("forward") == names.count("step") == 10


def test_a_fresh_trace_has_the_numbers_of_key_averages(tmp_path):
    text, result = record_trace()
    path = tmp_path / "trace.json"
    path.write_text(text)
    profile = reference("read_trace")(str(path))
    table = table_of(result)
    assert set(profile.rows) == set(table)
    for name, (own, size) in table.items():
        assert abs(profile.rows[name].own - own) <= 1, name
        assert sum(c.own_bytes for c in profile.calls if c.name == name) == size, name
    whole = profile.rows["step"].total
    assert sum(row.own for row in profile.rows.values()) == whole
    totals = [
        (event["ts"], event["args"]["Total Allocated"])
        for event in json.loads(text)["traceEvents"]
        if event["name"] == "[memory]"
    ]
    base = totals[0][1] - profile.memory[0][1]
    assert [held + base for _, held in profile.memory] == [held for _, held in sorted(totals)]


def test_the_kept_trace_is_read_as_it_was_recorded(tmp_path):
    kept = json.loads(RECORDED.read_text())
    path = tmp_path / "trace.json"
    path.write_text(kept["trace"])
    profile = reference("read_trace")(str(path))
    assert {name: row.own for name, row in profile.rows.items()} == {
        name: own for name, (own, _) in kept["table"].items()
    }


def test_a_trace_of_ours_is_read_by_our_reader(tmp_path):
    clock = Clock(1_750_000_000)
    tracer = reference("Tracer")(clock)
    with tracer.span("outer"), tracer.span("inner"):
        pass
    path = tmp_path / "trace.json"
    tracer.write(str(path))
    trace = json.loads(path.read_text())
    for event in trace["traceEvents"]:
        event["cat"] = "user_annotation"
    path.write_text(json.dumps(trace))
    profile = reference("read_trace")(str(path))
    assert [(call.name, call.parent) for call in profile.calls] == [("outer", None), ("inner", 0)]
    assert profile.calls[1].own_time == SECOND // 4
