"""What TensorBoard's two readers make of whole and damaged files, beside what `read_events` is to read."""

import json
import random
import subprocess
import sys

import pytest

from grader.ch11_watching.event_cases import all_folders
from grader.ch11_watching.event_folders import (
    FIRST,
    SECOND,
    contents,
    expected,
    flipped,
    huge,
    lines,
    start,
    torn,
    version,
    without,
)
from tests import ROOT
from tests.references import reference

STEPS = list(range(10))
RUN = [version(), *lines(STEPS)]

BIT = {FIRST: [*RUN[:6], flipped(RUN[6], -6, 0), *RUN[7:]]}
TWICE = {FIRST: RUN, SECOND: [version(), *lines([5, 6, 7], 100)]}
RESTART = {FIRST: RUN, SECOND: [version(), start(3), *lines([7, 8], 100)]}
HUGE = {FIRST: [*RUN, huge(2**62)]}
"""The rows of the chapter's table."""


def written(folder, where):
    """Write a folder's files; return their paths."""
    where.mkdir(parents=True)
    paths = []
    for name, content in contents(folder):
        (where / name).write_bytes(content)
        paths.append(str(where / name))
    return paths


def as_text(curves):
    return {tag: [(step, repr(value)) for step, value in curve] for tag, curve in curves.items()}


def by_accumulator(folder, where):
    """Return the curves that `EventAccumulator` reads, without those that have no point."""
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    ).EventAccumulator
    written(folder, where)
    found = accumulator(str(where), size_guidance={"scalars": 0}).Reload()
    curves = {
        tag: [(one.step, one.value) for one in found.Scalars(tag)]
        for tag in found.Tags()["scalars"]
    }
    return {tag: curve for tag, curve in curves.items() if curve}


def test_tensorboard_reads_our_folders_as_the_checks_do(tmp_path):
    """But for what stands behind damaged data, which it does not read."""
    read = reference("ch11_watching", "read_events")
    for number, folder in enumerate(all_folders(random.Random(0))):
        right = expected(folder)
        reading = read(written(folder, tmp_path / f"ours{number}"))
        assert as_text(reading.curves) == as_text(right.curves)
        assert [(one.file, one.at, one.what) for one in reading.damage] == right.damage
        if any("a length of" in part.text for parts in folder.values() for part in parts):
            continue  # it asks for so much memory
        theirs = by_accumulator(folder, tmp_path / f"theirs{number}")
        assert as_text(theirs) == as_text(expected(without(folder, "data")).curves)


def test_the_accumulators_column(tmp_path):
    def steps(folder, name):
        return [step for step, _ in by_accumulator(folder, tmp_path / name)["loss"]]

    assert steps({FIRST: [*RUN[:-1], torn(RUN[-1], 40)]}, "torn") == STEPS[:-1]
    assert steps(BIT, "bit") == STEPS[:5]
    assert steps(TWICE, "twice") == [*STEPS, 5, 6, 7]
    assert steps(RESTART, "restart") == [0, 1, 2, 7, 8]
    with pytest.raises(MemoryError):
        by_accumulator(HUGE, tmp_path / "huge")


def test_the_servers_column(tmp_path):
    pytest.importorskip("tensorboard_data_server")
    for name, folder in (("bit", BIT), ("twice", TWICE), ("restart", RESTART)):
        written(folder, tmp_path / name)
    command = [sys.executable, "-m", "tests.ch11_watching.read_by_server", str(tmp_path), "3"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    shown = {
        run: [tuple(at) for at in curve] for run, curve in json.loads(told.stdout or "{}").items()
    }
    assert shown == {
        "bit": [(step, 5.03125 if step == 5 else float(step)) for step in STEPS],
        "twice": [*((step, float(step)) for step in STEPS[:5]), (5, 105.0), (6, 106.0), (7, 107.0)],
        "restart": [*((step, float(step)) for step in STEPS[:7]), (7, 107.0), (8, 108.0)],
    }, told.stderr


def test_the_server_ends_at_a_length_that_is_not_there(tmp_path):
    binary = pytest.importorskip("tensorboard_data_server").server_binary()
    written(HUGE, tmp_path / "run")
    command = [binary, "--logdir", str(tmp_path), "--reload=once", "--port=0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode < 0, ended.stderr
    assert "memory allocation" in ended.stderr
