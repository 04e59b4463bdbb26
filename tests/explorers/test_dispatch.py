"""The dispatch explorer against torch: tables, key sets, every road it can show, and the loops of a kernel."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Page

from tests.explorers import golden_dispatch
from tests.explorers.harness import ROOT, assert_right, compare, python_in

FOLDER = golden_dispatch.FOLDER
TOLD = golden_dispatch.capture()

STATES = """async () => {
  const m = await import("/dispatch/road.js");
  const around = (all) => all.reduce((sets, mode) => [...sets, ...sets.map((set) => [...set, mode])], [[]]);
  return Object.entries(m.CALLS).flatMap(([call, [code]]) => m.TENSORS.flatMap((tensor) =>
    around(m.allowed(tensor)).map((modes) => ({ call, code, tensor, modes }))));
}"""


GROUPED = """async () => Object.values((await import("/dispatch/road.js")).GROUPS).flatMap((ids) => ids.split(" "))"""


def recorded(states: list[dict[str, Any]]) -> dict[str, Any]:
    """What torch does in these states, recorded in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.explorers.golden_dispatch"],
        cwd=ROOT,
        input=json.dumps(states),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # The profiler prints as it begins.
    return json.loads(done.stdout[done.stdout.index('{"operators"') :])  # type: ignore[no-any-return]


def test_tables_keys_and_threads_are_torchs(tmp_path: Path) -> None:
    """Asked again, in a process of its own."""
    fresh = tmp_path / "tables.js"
    python_in(tmp_path, str(FOLDER / "capture.py"), str(fresh))
    same = fresh.read_text(encoding="utf-8") == (FOLDER / "tables.js").read_text(encoding="utf-8")
    assert same, "run site/explorers/dispatch/capture.py"


@pytest.mark.parametrize("backend", ["CPU", "Meta", "SparseCPU"])
def test_the_lanes_stand_in_torchs_order(backend: str) -> None:
    """The highest key is taken away, again and again."""
    own = {"CPU": "AutogradCPU", "Meta": "AutogradMeta", "SparseCPU": "AutogradCPU"}[backend]
    others = {"CPU", "Meta", "SparseCPU", "AutogradCPU", "AutogradMeta"} - {backend, own}
    lanes = [lane for lane in TOLD.LANES if lane not in others]
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, backend))
    for lane in random.Random(1).sample(lanes, len(lanes)):
        keys = keys.add(getattr(torch._C.DispatchKey, lane))
    found = []
    while (highest := keys.highestPriorityTypeId()) != torch._C.DispatchKey.Undefined:
        found.append(str(highest).removeprefix("DispatchKey."))
        keys = keys.remove(highest)
    assert found == lanes


def test_a_tensor_on_meta_comes_before_one_on_the_cpu() -> None:
    """Of two backends the higher has the say, in its own key as in autograd's."""
    both = torch._C._dispatch_keys(torch.ones(1)) | torch._C._dispatch_keys(torch.ones(1, device="meta"))  # fmt: skip
    both = both.remove(torch._C.DispatchKey.AutocastCPU)
    assert str(both.highestPriorityTypeId()) == "DispatchKey.AutogradMeta"
    assert TOLD.LANES.index("AutogradMeta") < TOLD.LANES.index("AutogradCPU")
    assert TOLD.LANES.index("Meta") < TOLD.LANES.index("CPU")


ROADS = """return (i) => {
  const { call, tensor, modes, rows, error } = JSON.parse(given.cases[i]);
  const found = m.route({ call, tensor, modes });
  const own = found.stops.map(({ depth, op, key, kind, keys }) => [depth, op, key, kind, m.names(keys)]);
  const at = rows.findIndex((row, k) => JSON.stringify(row) !== JSON.stringify(own[k]));
  const where = `${call} of ${tensor} under ${modes}`;
  if (at >= 0 || own.length > rows.length) return `${where}: stop ${at < 0 ? rows.length : at} is ${own[at < 0 ? rows.length : at]}, not ${rows[at]}`;
  if ((error === null) !== (found.error === null)) return `${where}: ${found.error}, not ${error}`;
  if (error !== null && !error.startsWith(found.error.replace(/\\.$/, ""))) return `${where}: ${found.error}, not ${error}`;
  if (Boolean(found.missing) !== Boolean(error?.startsWith("Could not run"))) return `${where}: missing ${found.missing}`;
  return null;
};"""


def test_every_road_is_the_one_that_torch_goes(laboratory: Page) -> None:
    """Every state of the page: which kernels run, in which order, with which keys left, and what is raised."""
    states: list[dict[str, Any]] = laboratory.evaluate(STATES)
    assert {one["call"] for one in states} == set(laboratory.evaluate(GROUPED))
    assert len(states) == 36 * (3 * 32 + 3 * 16 + 2 * 8)
    found = recorded(states)
    cases = [json.dumps(one) for one in found["roads"]]
    assert_right(compare(laboratory, "/dispatch/road.js", ROADS, cases=cases), 5_700)
    seen = {row[1] for one in found["roads"] for row in one["rows"]}
    assert seen <= set(TOLD.OPS), "operators that the page has no table of"
    assert {one["error"][:13] for one in found["roads"] if one["error"]} > {"Could not run"}


KEYS = """return (i) => {
  const { tensor, modes, brings, include, exclude } = JSON.parse(given.cases[i]);
  const found = m.keySet({ tensor, modes });
  for (const [name, wanted] of Object.entries({ brings, include, exclude }))
    if (m.names(found[name]).join() !== wanted.join()) return `${tensor} ${modes}: ${name} ${m.names(found[name])}, not ${wanted}`;
  return null;
};"""


def test_key_sets_are_torchs(laboratory: Page) -> None:
    """What a tensor brings does not depend on what is around, and modes add up."""
    cases = []
    for tensor, make in TOLD.TENSORS.items():
        made = make()
        for count in range(16):
            modes = [mode for place, mode in enumerate(TOLD.MODES) if count >> place & 1]
            with ExitStack() as stack:
                for mode in modes:
                    stack.enter_context(TOLD.MODES[mode]())
                include, exclude = (sorted(side, key=TOLD.LANES.index) for side in TOLD.thread())
            brings = TOLD.lanes_of(torch._C._dispatch_keys(made))
            cases.append(json.dumps({"tensor": tensor, "modes": modes, "brings": brings, "include": include, "exclude": exclude}))  # fmt: skip
    assert_right(compare(laboratory, "/dispatch/road.js", KEYS, cases=cases), 100)


TABLES = """return (i) => {
  const { op, rows } = JSON.parse(given.cases[i]);
  for (const [key, wanted] of rows) if (m.table(op, key) !== wanted) return `${op} at ${key}: ${m.table(op, key)}, not ${wanted}`;
  return m.names(m.falls(op)).join() === rows.filter(([, word]) => word === "fallthrough").map(([key]) => key).join() ? null : `${op}: fallthroughs`;
};"""


def test_the_page_reads_its_tables_as_torch_prints_them(laboratory: Page) -> None:
    cases = []
    for op in TOLD.OPS:
        text = torch._C._dispatch_dump_table(f"aten::{op}")
        lines = dict(line.partition(": ")[::2] for line in text.splitlines())
        rows = []
        for lane in TOLD.LANES:
            line = lines.get(lane, "")
            word = line.rpartition(" [")[2].rstrip("]") if line else ""
            rows.append([lane, "fallthrough" if "fallthrough" in line else word])
        cases.append(json.dumps({"op": op, "rows": rows}))
    assert_right(compare(laboratory, "/dispatch/road.js", TABLES, cases=cases), 40)


# ── Loops ────────────────────────────────────────────────────────────────────

LOOPS = """return (i) => {
  const { sizes, strides, wanted, size } = JSON.parse(given.cases[i]);
  const found = m.plan(sizes.map((one, k) => ({ size: one, stride: strides[k] })));
  const where = `${JSON.stringify(sizes)} ${JSON.stringify(strides)}`;
  if (`${found.size}` !== `${size}`) return `${where}: sizes ${found.size}`;
  if (size.some((n, d) => n > 1 && found.strides[0][d] !== wanted[d])) return `${where}: ${found.strides[0]}, not ${wanted}`;
  // The merged loops go to the same elements in the same order as the dims did.
  const walk = (loops) => {
    let at = [found.strides.map(() => 0)];
    for (const { size: n, strides: step } of [...loops].reverse()) at = at.flatMap((from) => Array.from({ length: n }, (_, k) => from.map((one, j) => one + k * step[j])));
    return at.join(";");
  };
  const dims = found.perm.map((d) => ({ size: found.size[d], strides: found.strides.map((row) => row[d]) }));
  if (walk(found.loops) !== walk(dims)) return `${where}: other elements, or another order`;
  // No two that follow each other could be one.
  for (const [k, loop] of found.loops.entries()) {
    const next = found.loops[k + 1];
    if (next && (loop.size === 1 || next.size === 1 || loop.strides.every((step, j) => step * loop.size === next.strides[j]))) return `${where}: loops ${k} and ${k + 1} could be one`;
  }
  return null;
};"""


def operand(rng: random.Random, size: list[int]) -> torch.Tensor:
    """A tensor of a size, in one of many layouts: permuted, cut out of a larger one, broadcast, or any strides."""
    kind = rng.randrange(5)
    if kind == 4:
        return torch.empty(200_000).as_strided(size, [rng.choice([0, 1, 2, 3, 4, 6, 12, 24]) for _ in size])  # fmt: skip
    own = [1 if kind == 3 and rng.random() < 0.5 else n for n in size]
    places = rng.sample(range(len(own)), len(own))
    room = [own[place] * (2 if kind == 2 and rng.random() < 0.4 else 1) for place in places]
    made = torch.empty(room).permute([places.index(d) for d in range(len(own))])
    made = made[tuple(slice(None, None, 2) if made.shape[d] > own[d] else slice(None) for d in range(len(own)))]  # fmt: skip
    return made[0] if kind == 3 and own[:1] == [1] and rng.random() < 0.5 else made


def test_the_result_is_laid_out_as_torch_does_and_loops_are_as_few_as_can_be(
    laboratory: Page,
) -> None:
    rng = random.Random(9)
    cases = []
    for _ in range(4_000):
        size = [rng.choice([1, 2, 3, 4]) for _ in range(rng.randrange(5))]
        operands = [operand(rng, size) for _ in range(2)]
        made = operands[0] + operands[1]
        cases.append(json.dumps({
            "sizes": [list(one.shape) for one in operands], "strides": [list(one.stride()) for one in operands],
            "wanted": list(made.stride()), "size": list(made.shape),
        }))  # fmt: skip
    assert_right(compare(laboratory, "/dispatch/loops.js", LOOPS, cases=cases), 4_000)


def test_sizes_that_do_not_fit_have_no_plan(laboratory: Page) -> None:
    body = """return (i) => {
      const [a, b] = given.cases[i];
      const found = m.plan([a, b].map((size) => ({ size, stride: m.dense(size, size.map((_, d) => d)) })));
      return (found === null) === (given.fits[i] === false) ? null : `${a} and ${b}`;
    };"""
    rng = random.Random(4)
    cases, fits = [], []
    for _ in range(300):
        pair = [[rng.choice([1, 2, 3]) for _ in range(rng.randrange(4))] for _ in range(2)]
        cases.append(pair)
        try:
            torch.broadcast_shapes(*pair)
            fits.append(True)
        except RuntimeError:
            fits.append(False)
    assert len(set(fits)) == 2
    assert_right(compare(laboratory, "/dispatch/loops.js", body, cases=cases, fits=fits), 300)
