"""Record the trace that `read_trace`'s checks keep, with PyTorch's own table: python tests/ch11_watching/record_trace.py"""

import json
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

KEPT = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "bp", "s")
ARGS = ("Bytes", "Device Type", "Total Allocated", "Sequence number")


def a_step(model, x):
    with record_function("step"):
        model(x).sum().backward()


def record():
    """Return the text of a trace and the profiler that wrote it."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), torch.randn(3, 4)
    a_step(model, x)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as result:
        a_step(model, x)
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        result.export_chrome_trace(file.name)
        return Path(file.name).read_text(), result


def table_of(result):
    """Return own nanoseconds and own bytes by name, as PyTorch has them."""
    return {
        row.key: [round(row.self_cpu_time_total * 1000), row.self_cpu_memory_usage]
        for row in result.key_averages()
    }


def without_the_rest(text):
    """Return the trace with what the format needs, its numbers digit by digit."""
    events = json.loads(text, parse_float=lambda digits: f"@{digits}@")["traceEvents"]
    few = []
    for event in events:
        kept = {key: event[key] for key in KEPT if key in event}
        if "args" in event:
            kept["args"] = {key: event["args"][key] for key in ARGS if key in event["args"]}
        few.append(
            {key: 1 if key == "pid" and value != "Spans" else value for key, value in kept.items()}
        )
    return json.dumps({"traceEvents": few}).replace('"@', "").replace('@"', "")


if __name__ == "__main__":
    text, result = record()
    kept = {
        "trace": without_the_rest(text),
        "table": table_of(result),
        "links": text.count('"ph": "f"'),
    }
    home = Path(__file__).parents[2] / "grader/ch11_watching/recorded_trace.json"
    home.write_text(json.dumps(kept) + "\n")
