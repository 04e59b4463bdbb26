"""Every small view of a chapter, a question or the home page: its state is one, and its numbers are torch's.

What an explorer computes is compared with torch for thousands of random cases beside this file. Here it
is asked once more for just the states that a reader meets, by the element that the page shows.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
import torch

from grader.building.questions import read_questions
from grader.building.views import View, views_in
from tests.explorers import (
    golden,
    golden_autograd,
    golden_dataloader,
    golden_ddp,
    golden_modules,
    golden_strides,
    shapes,
)
from tests.explorers.harness import EXPLORERS, ROOT, Watch, assert_right, compare
from tests.explorers.test_autograd import BODY, case_text
from tests.explorers.test_compile import CAPTURES
from tests.explorers.test_dispatch import recorded
from tests.explorers.test_sharding import SAID, assert_same, run
from tests.explorers.test_watching import TABLES, TRACES

Given = dict[str, str]


def _all() -> Iterator[tuple[str, View]]:
    for path in sorted((ROOT / "solutions").glob("*/*.pct.py")):
        # each worker of the tests does this: only to read the notebooks would take it 3 s
        prose = re.sub("^# ?", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        yield from ((path.parent.name, view) for view in views_in(prose))
    for path in sorted((ROOT / "site" / "questions").glob("*.py")):
        for one in read_questions(path)[1]:
            if one.view:
                yield one.name, one.view
    home = (ROOT / "site" / "index.md").read_text(encoding="utf-8")
    for explorer, part, state in re.findall(
        r'data-explorer="(\w+)" data-part="([\w-]+)" data-state="([^"]*)"', home
    ):
        yield "home", View(explorer, part, unquote(unescape(state)), "")


VIEWS = list(_all())

# What an element shows, as data. `m` has the exports of all modules that are named.
SHOWN = {
    "strides": """({
      base: m.begin ? e.steps[0].layout : null, cells: e.steps[0].values.length,
      steps: e.steps.slice(1).map(({ op, layout, copied, values }) => ({
        text: m.write(op), ...layout, copied: Boolean(copied),
        values: m.indices(layout.size).map((index) => values[m.address(layout, index)]) })),
      now: e.now.layout, target: e.state.target,
      wanted: m.product(e.now.layout.size) ? m.viewed(e.now.layout, m.inferred(e.state.target, m.product(e.now.layout.size))).stride ?? null : null,
    })""",
    "formats": """((format, { below, above }) => {
      const { value } = m.decode(format, e.bits);
      return [e.bits, Number.isFinite(value) ? value : String(value), [below ?? -1, above ?? -1]];
    })(m.FORMATS[e.state.format], m.neighbours(m.FORMATS[e.state.format], e.bits))""",
    "matmul": """(({ plan }) => {
      const { steps = [] } = plan;
      const work = steps.filter((step) => step.kernel);
      return {
        shape: plan.shape ?? null, kernels: work.map((step) => step.kernel),
        clones: steps.filter((step) => step.copy).map((step) => step.shape),
        flops: work.filter((step) => ["mm", "bmm"].includes(step.kernel)).reduce((sum, step) => sum + step.flops, 0),
      };
    })(m.planOf(e.state))""",
    "modules": "m.given(e.events).map(({ path, object }) => [path, object.shape ?? null])",
    "dataloader": """({
      events: e.run.events.map((one) => [one.time, one.kind, one.batch, one.worker, one.outstanding, one.aside]),
      at: e.state.at, total: e.run.total,
    })""",
    "compile": """(({ program, frame, state: { cut } }) => ({
      program: program.id, frame: program.frames.indexOf(frame), bytes: m.savedBytes(frame, m.cutOf(frame, cut)),
    }))(e)""",
    "ddp": """({
      overlap: (({ layers, times, plan, cap, ...rest }) => {
        const shapes = m.parseLayers(layers);
        const spent = m.parseTimes(times, shapes.length);
        const run = m.timeline(m.build(shapes, spent), { ...rest, plan: plan === "cap" ? cap : plan });
        return { shapes, times: spent, plan: plan === "cap" ? cap : plan, ...rest, rows: run.buckets.map(({ members, bytes, ready, from, to }) => [members, bytes, ready, from, to]),
          sums: [run.backward, run.busy, run.end, run.exposed, run.hidden] };
      })(e.state.overlap),
      ring: (({ n, size }) => {
        const states = m.ring(n, size);
        return { ranks: n, size, held: states.map(({ held }) => held), sent: states.map(({ sent }) => sent) };
      })(e.state.ring),
      zero: (({ stage, ...asked }) => ({ asked, rows: m.ledger(asked).map((row) => m.PARTS.map((part) => row[part])) }))(e.state.zero),
    })""",
    "dispatch": """(({ panel, call, tensor, modes, size, a, b }) => (panel === "road"
      ? { code: m.CALLS[call][0], tensor, modes, error: m.route({ call, tensor, modes }).error,
        stops: m.route({ call, tensor, modes }).stops.map(({ depth, op, key, kind, keys }) => [depth, op, key, kind, m.names(keys)]) }
      : { size, a, b, result: m.plan([{ size, stride: a }, { size, stride: b }]).strides[0] }))(e.state)""",
    "sharding": f"[e.state, ({SAID})(m, e.state)]",
    "watching": """(({ trace, at }) => {
      const profile = m.profileBy(trace);
      const row = profile.rows.find(({ name }) => name === profile.calls[at]?.name);
      return { selected: row ? [row.name, row.own, row.bytes] : null, slowest: m.slowest(profile).name, whole: profile.whole, peak: profile.peak?.held ?? null };
    })(e.state)""",
}
MODULES = {
    "strides": ("layout", "ops"),
    "formats": ("numbers",),
    "matmul": ("plan",),
    "modules": ("walks",),
    "compile": ("reading",),
    "ddp": ("buckets", "ring", "ledger"),
    "dispatch": ("road", "loops"),
    "sharding": ("moments", "code"),
    "watching": ("profile",),
}
ASK = """async ([kind, modules, views, shown]) => {
  const every = await Promise.all([`${kind}`, ...modules].map((name) => import(`/${kind}/${name}.js`)));
  const m = Object.assign({}, ...every);
  const show = new Function("e", "m", `return ${shown};`);
  return views.map(([part, state]) => {
    const e = document.createElement(`${kind}-explorer`);
    e.setAttribute("small", part);
    e.setAttribute("state", state);
    document.body.replaceChildren(e);
    return { written: e.write(e.state).map(([name, value]) => [name, String(value)]), shown: show(e, m), height: e.offsetHeight };
  });
}"""


def strides(_: Given, shown: Any) -> Any:
    base = shown["base"]
    x = torch.arange(shown["cells"]).as_strided(base["size"], base["stride"], base["offset"])
    steps = []
    for step in shown["steps"]:
        after = golden_strides.called(x, step["text"].removeprefix("."))
        assert after is not None, step["text"]
        moved = after.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
        steps.append(
            {
                "text": step["text"],
                **golden_strides.layout(after),
                "copied": moved,
                "values": after.flatten().tolist(),
            }
        )
        x = after
    now = torch.empty(10_000).as_strided(shown["now"]["size"], shown["now"]["stride"])
    try:
        wanted = list(now.view(shown["target"]).stride())
    except RuntimeError:
        wanted = None
    return {**shown, "steps": steps, "wanted": wanted}


def formats(given: Given, shown: Any) -> Any:
    name = given["format"]
    if "fp32" in given:
        bits = golden.rounded(name, torch.tensor([int(given["fp32"], 16)]))
    else:
        bits = torch.tensor([int(given["bits"], 16)])
    near = [int(golden.neighbour(name, bits, way)) for way in (-torch.inf, torch.inf)]
    value = golden.values(name, bits).item()
    return [int(bits), {torch.inf: "Infinity"}.get(value, value), near]


def matmul(given: Given, _: Any) -> Any:
    sizes = [tuple(map(int, given[name].split("x"))) for name in "abc" if name in given]
    grads = [name in given.get("grad", "") for name in "ab"]
    tensors = shapes.tensors(sizes, grads=grads)
    function: Callable[..., torch.Tensor] = shapes.FUNCTIONS[given.get("fn", "matmul")]
    if "eq" in given:
        function = partial(torch.einsum, given["eq"])
    shape, _said = shapes.outcome(function, *tensors)
    if shape is None:
        return {"shape": None, "kernels": [], "clones": [], "flops": 0}
    run = partial(function, *tensors)
    (trace,) = shapes.traces([run])
    return {
        "shape": shape,
        "kernels": trace["kernels"],
        "clones": trace["clones"],
        "flops": shapes.flops(run),
    }


def modules(given: Given, _: Any) -> Any:
    model = torch.nn.Module()
    for statement in filter(None, given["model"].split("*")):
        golden_modules.carry_out(model, statement)
    options = [given.get(name) != "False" for name in ("remove_duplicate", "recurse")]
    call = given.get("call", "named_modules")
    named = call if call == "state_dict" else f"named_{call.removeprefix('named_')}"
    return [
        [name, list(value.shape) if isinstance(value, torch.Tensor) else None]
        for name, value in golden_modules._called(model, named, *options)
    ]


def dataloader(given: Given, shown: Any) -> Any:
    numbers = {
        name: int(value)
        for name, value in given.items()
        if name not in ("slow", "at", "in_order", "drop_last")
    }
    slow = tuple(map(int, filter(None, given.get("slow", "").split("."))))
    defaults = {"samples": 16, "late": 24}
    knobs = golden_dataloader.Knobs(
        **{**defaults, **numbers},
        slow=slow,
        in_order=given.get("in_order") != "False",
        drop_last=given.get("drop_last") == "True",
    )
    events = golden_dataloader.run(knobs)
    return {
        "events": [[e.time, e.kind, e.batch, e.worker, e.outstanding, e.aside] for e in events],
        "at": int(given.get("at", len(events))),
        "total": events[-1].time,
    }


def compiled(given: Given, shown: Any) -> Any:
    (program,) = [one for one in CAPTURES if one["id"] == given["program"]]
    at = int(given.get("graph", 1)) - 1
    frame = program["frames"][at]
    cut = given.get("cut", "1.0")
    number = 0 if cut == "default" else 1 + round(float(cut) * 10)
    saved = frame["cuts"][frame["which"][number]]["saved"]
    sizes = [frame["joint"][i][5] for i in saved]
    bytes_ = None if None in sizes else sum(sizes)
    return {"program": given["program"], "frame": at, "bytes": bytes_}


def ddp(_: Given, shown: Any) -> Any:
    overlap, ring, zero = (shown[name] for name in ("overlap", "ring", "zero"))
    layers = golden_ddp.build(overlap["shapes"], overlap["times"])
    knobs = {name: overlap[name] for name in ("plan", "bandwidth", "latency", "after")}
    clock = golden_ddp.clock(layers, **knobs)
    near = partial(pytest.approx, rel=1e-9)
    rows = [[m, size, *map(near, times)] for m, size, *times in clock["rows"]]
    sums = [near(time) for time in clock["sums"]]
    # A model of billions as one of a thousandth: shards divide both.
    asked = zero["asked"]
    params, rest = divmod(asked["params"], 1000)
    assert rest == 0 and params % asked["ranks"] == 0
    kept = [golden_ddp.kept(**{**asked, "params": params}, stage=stage) for stage in range(4)]
    states = golden_ddp.ring(ring["ranks"], ring["size"])
    return {
        "overlap": {**overlap, "rows": rows, "sums": sums},
        "ring": {**ring, "held": _values(states["states"]), "sent": states["sent"]},
        "zero": {"asked": asked, "rows": [[1000 * size for size in row] for row in kept]},
    }


def _values(states: Any) -> Any:
    return [[[values for _, values in row] for row in state] for state in states]


@cache
def roads() -> dict[str, Any]:
    """What torch does in the states of all views of roads, recorded in one process."""
    source = (EXPLORERS / "dispatch" / "road.js").read_text(encoding="utf-8")
    codes = dict(re.findall(r'^  (\w+): \["([^"]+)", "', source, re.MULTILINE))
    states = [
        {"code": codes[given.get("call", "add")], "tensor": given.get("x", "plain"), "modes": list(filter(None, given.get("around", "").split(".")))}
        for _, given in of("dispatch") if given.get("panel") != "loops"
    ]  # fmt: skip
    told = recorded(states)["roads"]
    return {_state(one["code"], one["tensor"], one["modes"]): one for one in told}


def _state(code: str, tensor: str, modes: list[str]) -> str:
    return json.dumps([code, tensor, sorted(modes)])


def dispatch(_: Given, shown: Any) -> Any:
    if "result" in shown:
        a, b = (torch.empty(9_999).as_strided(shown["size"], shown[name]) for name in "ab")
        return {**shown, "result": list((a + b).stride())}
    road = roads()[_state(shown["code"], shown["tensor"], shown["modes"])]
    # The page has the beginning of what torch says, without where it says so.
    same = shown["error"] and road["error"].startswith(shown["error"].rstrip("."))
    stops = [list(row) for row in road["rows"]]
    return {**shown, "stops": stops, "error": shown["error"] if same else road["error"]}


def sharding(_: Given, shown: Any) -> Any:
    """The whole step of a view, on ranks that run its program; `assert_same` says what differs."""
    state, said = shown
    (told,) = run([state], [said])
    assert_same(state, said, told)
    return shown


def watching(given: Given, shown: Any) -> Any:
    (trace,) = [one for one in TRACES if one["id"] == given["trace"]]
    table = TABLES[trace["id"]]
    notes = {trace["names"][number] for number in trace["notes"]}
    held = list(itertools.accumulate(trace["memory"][2]))
    selected = None
    if "at" in given:
        name = trace["names"][trace["calls"][0][int(given["at"])]]
        selected = [name, table[name][1], table[name][3]]
    return {
        "selected": selected,
        "slowest": max(set(table) - notes, key=lambda name: table[name][1]),
        "whole": sum(own for _, own, _, _ in table.values()),
        "peak": max(held, default=None),
    }


def autograd(code: str) -> str:
    """What torch says of a program after each line, as `BODY` compares it."""
    lines = code.replace(";", "\n").split("\n")
    steps = []
    for upto in range(1, len(lines) + 1):
        told = golden_autograd.replayed(
            lines[:upto], lambda run, error: {"error": error, **golden_autograd.told(run)}
        )
        steps.append(told)
        if told["error"]:
            break
    right = None if steps[-1]["error"] else golden_autograd.honest(lines)
    return case_text({"code": "\n".join(lines), "steps": steps, "right": right})


TORCH: dict[str, Callable[[Given, Any], Any]] = {
    "strides": strides, "formats": formats, "matmul": matmul, "modules": modules,
    "dataloader": dataloader, "compile": compiled, "ddp": ddp, "dispatch": dispatch,
    "sharding": sharding,
    "watching": watching,
}  # fmt: skip


def of(kind: str) -> list[tuple[View, Given]]:
    found = [view for _, view in VIEWS if view.explorer == kind]
    return [(view, dict(parse_qsl(view.address))) for view in found]


def test_each_chapter_shows_enough() -> None:
    """Four ideas at least, and no view twice."""
    for path in (ROOT / "solutions").glob("*/*.pct.py"):
        own = [view for where, view in VIEWS if where == path.parent.name]
        assert len({(view.explorer, view.part, view.state) for view in own}) == len(own) >= 4, path


@pytest.mark.parametrize("kind", [*TORCH, "autograd"])
def test_what_a_view_shows_is_torchs(watch: Watch, sources: str, kind: str) -> None:
    """Each state is taken as it is written, and what is computed from it is what torch says."""
    asked = of(kind)
    watch.page.goto(sources + "explorer.css")
    told = watch.page.evaluate(
        ASK,
        [
            kind,
            MODULES.get(kind, ()),
            [[view.part, view.address] for view, _ in asked],
            SHOWN.get(kind, "null"),
        ],
    )
    for (view, given), one in zip(asked, told, strict=True):
        written = dict(one["written"])
        for name, value in given.items():
            same = sorted(written.get(name, value).split("*")) == sorted(
                value.replace(";", "\n").split("*")  # the order of a model's statements is its own
            )
            assert same, (view, one["written"])
        assert one["height"] > 100, view
        if kind in TORCH:
            assert one["shown"] == TORCH[kind](given, one["shown"]), view
    if kind == "autograd":
        cases = [autograd(given["code"]) for _, given in asked]
        assert_right(compare(watch.page, "/autograd/run.js", BODY, cases=cases), len(cases))
