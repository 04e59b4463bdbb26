"""The compile explorer against torch: its captures are what torch does now, and it lays them out as show_graph does."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Page

from grader.feedback.graph_placement import place
from tests.explorers.harness import EXPLORERS, assert_right, compare, python_in

FOLDER = EXPLORERS / "compile"
TEXT = (FOLDER / "captures.js").read_text(encoding="utf-8")
CAPTURES: list[dict[str, Any]] = json.loads(
    TEXT[TEXT.index("[") : TEXT.rindex("]")].rstrip(",\n") + "]"
)
FRAMES = [(program, frame) for program in CAPTURES for frame in program["frames"]]
GRAPHS = [rows for _, frame in FRAMES for rows in (frame["dynamo"], frame["joint"])]


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="bytecode is that of Python 3.11")
def test_torch_makes_of_the_programs_what_the_page_shows(tmp_path: Path) -> None:
    """Captured again, in a process of its own and with other hashes."""
    fresh = tmp_path / "captures.js"
    python_in(tmp_path, str(FOLDER / "capture.py"), str(fresh), PYTHONHASHSEED="11")
    assert fresh.read_text(encoding="utf-8") == TEXT, "run site/explorers/compile/capture.py"


def test_the_captures_show_what_they_are_for() -> None:
    frames = {program["id"]: program["frames"] for program in CAPTURES}
    broken = {program["id"]: [one["line"] for one in program["breaks"]] for program in CAPTURES}
    assert {name: lines for name, lines in broken.items() if lines} == {"branch": [3], "print": [3]}
    assert len(frames["branch"]) == len(frames["print"]) == 2
    assert [call["frames"] for call in CAPTURES[-1]["calls"]] == [[0], [1], [], [2]]
    lines = {row[0]: row[6] for row in frames["branch"][0]["dynamo"]}
    assert lines == {"l_x_": 0, "y": 2, "sum_1": 3, "gt": 3, "output": 0}
    late = {row[0]: row[6] for row in frames["branch"][1]["joint"]}
    assert (late["sin"], late["cos"], late["mul"]) == (4, 4, 4), "the gradient of line 4"
    for program, frame in FRAMES:
        size = len(program["source"].splitlines())
        assert all(0 <= row[6] <= size for row in frame["dynamo"] + frame["joint"])
        assert all(row[6] for row in frame["dynamo"] if row[1] == "c")
    assert sum(row[2].startswith("tanh") for row in frames["loop"][0]["dynamo"]) == 3
    assert any("copy_" in row[2] or "add_" in row[2] for row in frames["inplace"][0]["dynamo"])
    assert not any("_(" in row[2] for row in frames["inplace"][0]["joint"])
    wrong = [cut.get("wrong", False) for cut in frames["dropout"][0]["cuts"]]
    redone = [
        any(
            mark == "r" and "dropout" in row[2]
            for mark, row in zip(cut["where"], frames["dropout"][0]["joint"], strict=True)
        )
        for cut in frames["dropout"][0]["cuts"]
    ]
    assert wrong == redone and any(wrong) and not all(wrong)


@pytest.mark.parametrize("at", range(len(FRAMES)))
def test_a_cut_can_run(at: int) -> None:
    """Whatever a half computes, it has: its inputs, what is saved, or its own results."""
    frame = FRAMES[at][1]
    nodes = frame["joint"]
    inputs = {i for i, row in enumerate(nodes) if row[1] == "i"}
    for cut in frame["cuts"]:
        where = cut["where"]
        late = {i for i in inputs if where[i] == "b"}
        known = {"f": inputs - late, "b": late | set(cut["saved"])}
        for half in ("f", "b"):
            for i, (name, kind, _, reads, *_) in enumerate(nodes):
                if kind == "c" and where[i] in (half, "r"):
                    # A twin of what is in neither was read in its place.
                    assert {j for j in reads if where[j] != "-"} <= known[half], name
                    known[half].add(i)
        assert set(cut["saved"]) <= known["f"]


LAYERS = """return (i) => {
  const { reads, widths, last, rows, middle, routes, width } = JSON.parse(given.cases[i]);
  const found = m.layout(reads, widths, last);
  const far = (a, b) => a.length !== b.length || a.some((x, k) => Math.abs(x - b[k]) > 0.5);
  if (JSON.stringify(found.rows) !== JSON.stringify(rows)) return `rows ${JSON.stringify(found.rows)}, not ${JSON.stringify(rows)}`;
  if (far(found.middle, middle)) return `middles ${found.middle}, not ${middle}`;
  if (far([found.width], [width])) return `width ${found.width}, not ${width}`;
  for (const { from, to, xs } of found.routes) if (far(xs, routes[`${from},${to}`] ?? [])) return `route ${from} to ${to}: ${xs}`;
  return found.routes.length === Object.keys(routes).length ? null : "more routes";
};"""


def laid_out(reads: list[list[int]], widths: list[int], last: list[int]) -> str:
    """Return a graph with what `grader.feedback.graph_placement` makes of it."""
    named = {str(i): [str(j) for j in read] for i, read in enumerate(reads)}
    sized = {str(i): width for i, width in enumerate(widths)}
    found = place(named, sized, [str(i) for i in last])
    return json.dumps({
        "reads": reads, "widths": widths, "last": last,
        "rows": [[int(name) for name in row] for row in found.rows],
        "middle": [found.middle[str(i)] for i in range(len(reads))],
        "routes": {f"{a},{b}": route for (a, b), route in found.routes.items()},
        "width": found.width,
    })  # fmt: skip


def test_graphs_are_laid_out_as_show_graph_does(laboratory: Page) -> None:
    cases = [
        laid_out([row[3] for row in rows], [30 + 8 * len(row[0]) for row in rows], [len(rows) - 1])
        for rows in GRAPHS
    ]
    rng = random.Random(3)
    for _ in range(80):
        size = rng.randint(1, 25)
        reads = [
            sorted(rng.sample(range(i), min(i, rng.choice([0, 1, 2, 3])))) for i in range(size)
        ]
        reads.append([size - 1])
        cases.append(laid_out(reads, [rng.randint(20, 160) for _ in reads], [size]))
    assert_right(compare(laboratory, "/compile/layers.js", LAYERS, cases=cases), 100)


READING = """return (i) => {
  const { id, graph, cut, bytes, redone, wheres, late, groups, lines } = JSON.parse(given.cases[i]);
  const frame = m.programOf(id).frames[graph];
  const made = m.cutOf(frame, cut);
  if (m.savedBytes(frame, made) !== bytes) return `${id} ${cut}: ${m.savedBytes(frame, made)} bytes, not ${bytes}`;
  if (`${m.redone(frame, made)}` !== `${redone}`) return `${id} ${cut}: ${m.redone(frame, made)}`;
  const rows = m.settings(frame);
  if (rows.map(([, , one]) => one.where).join() !== wheres.join()) return `${id}: rows of settings`;
  const shown = rows.find(([, words, one]) => one === made && (words === "default_partition") === (cut === "default"));
  if (!shown) return `${id} ${cut}: no row`;
  if (JSON.stringify(m.groups(frame.old).map(({ line, rows }) => [line, rows.length])) !== groups) return `${id}: groups`;
  if (`${m.linesOf(frame.dynamo)}` !== `${lines}`) return `${id}: lines ${m.linesOf(frame.dynamo)}`;
  if ([...m.late(m.nodesOf(frame.joint))].join() !== late.join()) return `${id}: late`;
  return null;
};"""


def test_what_is_told_of_a_cut_is_in_the_capture(laboratory: Page) -> None:
    cases = []
    for program, frame in FRAMES:
        nodes, late = frame["joint"], set[int]()
        for i, (name, kind, _, reads, *_) in enumerate(nodes):
            if name.startswith("tangents") if kind == "i" else kind == "c" and late & set(reads):
                late.add(i)
        budgets = [frame["which"][i] for i in range(11, 0, -1)]
        rows = [one for i, one in enumerate(budgets) if i == 0 or one != budgets[i - 1]]
        groups: list[list[int]] = []
        for row in frame["old"]:
            line = row.partition("|")[0]
            groups = [*groups, [int(line), 0]] if line else groups
            groups[-1][1] += 1
        for at, cut in enumerate(["default", *(f"{step / 10:.1f}" for step in range(11))]):
            made = frame["cuts"][frame["which"][at]]
            sizes = [nodes[i][5] for i in made["saved"]]
            cases.append(json.dumps({
                "id": program["id"], "graph": program["frames"].index(frame), "cut": cut,
                "bytes": None if None in sizes else sum(sizes), "late": sorted(late),
                "groups": json.dumps(groups, separators=(",", ":")),
                "lines": sorted({row[6] for row in frame["dynamo"]} - {0}),
                "redone": [nodes[i][0] for i, mark in enumerate(made["where"]) if mark == "r"],
                "wheres": [frame["cuts"][i]["where"] for i in (frame["which"][0], *rows)],
            }))  # fmt: skip
    assert_right(compare(laboratory, "/compile/reading.js", READING, cases=cases), 150)


def test_bytes_are_those_of_the_sizes() -> None:
    seen = 0
    for rows in GRAPHS:
        for name, _, _, _, size, nbytes, _ in rows:
            if nbytes is not None:
                shape, _, dtype = size.partition(" ")
                numbers = [] if shape == "scalar" else [int(n) for n in shape.split("×")]
                itemsize = getattr(torch, dtype or "float32").itemsize
                assert nbytes == itemsize * torch.Size(numbers).numel(), name
                seen += 1
    assert seen > 200
