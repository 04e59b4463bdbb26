"""The sharding explorer computes what real ranks do; in a real browser."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Page

from grader.evidence.wire.raised import Relayed
from tests.explorers import golden_sharding as golden
from tests.explorers.harness import assert_right, compare

State = dict[str, Any]

# What the page computes of a state: the program, and per rank its parts and what it holds at each moment.
SAID = """(m, state) => {
  const layers = m.layersOf(state);
  return {
    code: m.codeOf(state), tensor: m.meshOf(state).tensor, mesh: ["replica", "shard", "tensor"].map((dim) => m.groupsOf(state, dim)),
    ranks: [...Array(state.ranks).keys()].map((rank) => ({
      pieces: layers.map((layer) => m.pieceOf(state, layer, rank)),
      moments: m.timeline(state).map((moment) => ({
        ...moment, brought: m.broughtBy(state, moment, rank), bytes: m.bytesOf(state, moment, rank), new: m.madeOf(state, moment, rank),
        changed: layers.map((_, i) => m.isFresh(state, moment, i, rank)),
      })),
    })),
  };
}"""
MODEL = f"""async (states) => {{
  const m = {{ ...await import("/sharding/moments.js"), ...await import("/sharding/code.js") }};
  return states.map((state) => ({SAID})(m, state));
}}"""
NAMES = {"all_gather_into_tensor": "all_gather", "reduce_scatter_tensor": "reduce_scatter"}
BUCKETS = ("ddp", "zero1")
GATHER = ("zero2", "fsdp", "hsdp", "fsdp_tp")
SILENT = ("free", "loss", "zero")
"""Moments of the page at which nothing happens that could be listened to; what follows shows them."""


def states(ranks: int, *sizes: tuple[int, int, int]) -> list[State]:
    """All strategies that these ranks can have, for each of the sizes."""
    two = ranks >= 4 and ranks % 2 == 0
    strategies = ("ddp", "zero1", "zero2", "fsdp", *(("hsdp", "fsdp_tp") if two else ()), "tp")
    return [
        {"strategy": strategy, "ranks": ranks, "width": width, "hidden": hidden, "blocks": blocks, "wrap": wrap}
        for width, hidden, blocks in sizes
        for strategy in strategies
        if strategy != "tp" or hidden >= ranks
        for wrap in (("layer", "model") if strategy in GATHER else ("layer",))
    ]  # fmt: skip


def assert_same(state: State, said: dict[str, Any], told: list[golden.Told]) -> None:
    """What the page says of a state is what its ranks told."""
    for rank, (model, real) in enumerate(zip(said["ranks"], told, strict=True)):
        where = (state, rank)
        own = [piece["own"] for piece in model["pieces"]]
        assert [_place(one) for one in own] == [_placed(*one) for one in real["places"]], where
        moments = [one for one in model["moments"] if one["kind"] not in SILENT]
        rows = [row for row in real["rows"] if row["kind"] not in ("forwarded", "end")]
        assert [_event(one) for one in moments] == [
            (NAMES.get(row["kind"], row["kind"]), row["bytes"], row["layer"]) for row in rows
        ], where
        for moment, row in zip(moments, rows, strict=True):
            _assert_held(state, moment, row, model["pieces"], real["rows"][0]["values"])
        _assert_freed(state, model, real)
        _assert_last(state, model, real)


def _place(piece: dict[str, Any]) -> tuple[int, ...]:
    (a, b), (c, d) = piece["rows"], piece["cols"]
    return _placed(a, c, b - a, d - c)


def _placed(row: int, column: int, rows: int, columns: int) -> tuple[int, ...]:
    """A part without numbers is nowhere."""
    return (row, column, rows, columns) if rows * columns else (rows, columns)


def _event(moment: dict[str, Any]) -> tuple[str, int, int]:
    alone = moment["kind"] in ("forward", "backward")
    return moment["kind"], moment["brought"], moment["layers"][0] if alone else -1


def _assert_held(
    state: State, moment: dict[str, Any], row: golden.Row, pieces: list[Any], before: list[float]
) -> None:
    """A row is of what there is just before: without what this moment makes."""
    where = (state, moment["kind"], moment["layers"])
    every = range(len(pieces))
    wanted = {part: size - moment["new"].get(part, 0) for part, size in moment["bytes"].items()}
    if state["strategy"] in BUCKETS and not row["graded"]:
        row = {**row, "gradients": wanted["gradients"]}  # of an empty bucket nobody has a gradient
    assert wanted == {
        "weights": row["weights"],
        "gathered": sum(row["gathered"]),
        "gradients": sum(row["own"]) + row["gradients"],
        "adam": row["adam"],
        "buffers": row["buffers"],
    }, where
    whole = [pieces[i]["full"] if i in moment["gathered"] else 0 for i in every]
    assert row["gathered"] == whole, where
    made = moment["made"]
    own = [i for i in moment["own"] if i not in made.get("own", ())]
    ready = [
        i for i in (*moment["partial"], *moment["reduced"]) if i not in made.get("reduced", ())
    ]
    if state["strategy"] in BUCKETS:
        assert row["graded"] == sorted({*own, *ready}), where
    else:
        assert [i for i in every if row["own"][i]] == own, where
        assert row["graded"] == ready, where
    if moment["kind"] not in ("step", "broadcast"):  # of those, the row is of before
        changed = [a != b for a, b in zip(row["values"], before, strict=True)]
        assert not any(changed) and not any(moment["changed"]), where
    _assert_all_there(state, moment, row, wanted, pieces)


def _assert_all_there(
    state: State, moment: dict[str, Any], row: golden.Row, wanted: dict[str, int], pieces: list[Any]
) -> None:
    """All that is counted is alive, DDP's bucket too. What else is are activations, and what a collective carries:
    a gradient that is being copied, or a buffer that gloo's thread has not let go of yet.
    """
    made = sum(moment["new"].values()) if "what" in moment else 0
    rest = row["live"] - sum(wanted.values()) - made
    activations = 4 * golden.BATCH * (state["width"] + state["hidden"]) * (2 * state["blocks"] + 1)
    sizes = [one["full"] for one in pieces]
    carried = sum(sizes) if state["wrap"] == "model" else max(sizes)
    assert 0 <= rest <= activations + carried + 64, (state, moment["kind"], rest)


def _assert_freed(state: State, model: dict[str, Any], real: golden.Told) -> None:
    """After each layer's forward its weight is gone or stays, as the page says."""
    told = {row["layer"]: row["gathered"] for row in real["rows"] if row["kind"] == "forwarded"}
    moments = model["moments"]
    for at, moment in enumerate(moments):
        if moment["kind"] == "forward":
            (layer,) = moment["layers"]
            after = next((one for one in moments[at + 1 : at + 3] if one["kind"] == "free"), moment)
            after = after if state["wrap"] == "layer" else moment
            assert [i for i, size in enumerate(told[layer]) if size] == after["gathered"], state


def _assert_last(state: State, model: dict[str, Any], real: golden.Told) -> None:
    """After the step all weights are others, and gradients are gone: the last row is of then."""
    first, last = real["rows"][0], real["rows"][-1]
    there = [_place(piece["own"])[-2:] for piece in model["pieces"]]
    for a, b, (rows, columns) in zip(first["values"], last["values"], there, strict=True):
        assert (a != b) == (rows * columns > 0), state
    assert all(model["moments"][-1]["changed"]) and last["graded"] == []
    assert model["moments"][-1]["reduced"] == []


def run(asked: list[State], said: list[dict[str, Any]]) -> list[list[golden.Told]]:
    """Run the programs of states on real ranks."""
    return golden.steps(
        [
            golden.Case(state["ranks"], state["width"], one["tensor"], one["code"])
            for state, one in zip(asked, said, strict=True)
        ]
    )


LARGE = [one for ranks, size in ((6, (16, 9, 1)), (8, (2, 10, 1))) for one in states(ranks, size) if one["strategy"] in ("hsdp", "fsdp_tp") and one["wrap"] == "layer"]  # fmt: skip
"""The larger meshes; what is the same on any number of ranks was seen on fewer."""


@pytest.mark.parametrize(
    "asked",
    [states(2, (5, 7, 1)), states(3, (5, 7, 2)), states(4, (8, 16, 2)), LARGE],
    ids=["2", "3", "4", "6 and 8"],
)
def test_real_ranks_hold_and_say_what_the_page_shows(laboratory: Page, asked: list[State]) -> None:
    """At each moment: which rows, how many bytes of what, which collective with how many bytes."""
    said = laboratory.evaluate(MODEL, asked)
    found = list(zip(asked, said, run(asked, said), strict=True))
    for state, said, told in found:
        assert_same(state, said, told)
        _assert_mesh(said, told)
    _assert_same_gradients(found)
    _assert_owners_first(found)


def _assert_mesh(said: dict[str, Any], told: list[golden.Told]) -> None:
    """Who talks to whom is who shares a line of the mesh."""
    mesh = told[0]["mesh"]
    if mesh is None:
        return
    rows = mesh if isinstance(mesh[0], list) else [mesh]
    lines = (
        [rows] if len(rows) == 1 else [rows, [list(column) for column in zip(*rows, strict=True)]]
    )
    used = [groups for groups in said["mesh"] if len(groups[0]) > 1]
    assert sorted(used) == sorted(lines)


def _assert_same_gradients(found: list[Any]) -> None:
    """Own gradients differ, those that are ready are the mean of all ranks, whoever keeps which rows."""
    for state, _, told in found:
        if state["strategy"] == "ddp":
            before, after = (
                [next(row["sums"] for row in one["rows"] if row["kind"] == kind) for one in told]
                for kind in ("all_reduce", "step")
            )
            assert len({tuple(sums) for sums in before}) == len(told)
            assert len({tuple(sums) for sums in after}) == 1
            size = (state["width"], state["hidden"], state["blocks"])
            for other, _, others in found:
                if size != (other["width"], other["hidden"], other["blocks"]):
                    continue
                copies = {"zero1": len(told), "zero2": 1, "fsdp": 1, "hsdp": 2}.get(
                    other["strategy"]
                )
                if copies:
                    steps = [
                        next(r["sums"] for r in one["rows"] if r["kind"] == "step")
                        for one in others
                    ]
                    together = [sum(column) / copies for column in zip(*steps, strict=True)]
                    assert together == pytest.approx(after[0], rel=1e-3), other


def _assert_owners_first(found: list[Any]) -> None:
    """Under ZeRO-1 each rank has changed its own weights, and no others, before the first broadcast."""
    for state, said, told in found:
        for model, real in zip(said["ranks"], told, strict=True):
            if state["strategy"] == "zero1":
                row = next(row for row in real["rows"] if row["kind"] == "broadcast")
                step = next(one for one in model["moments"] if one["kind"] == "step")
                first = real["rows"][0]["values"]
                new = [a != b for a, b in zip(row["values"], first, strict=True)]
                assert new == step["changed"], state


def test_more_hidden_units_than_ranks_are_needed() -> None:
    """What the page does not offer, torch refuses."""
    program = "\n".join(
        [
            "import torch", "from torch import nn", "from torch.distributed.device_mesh import init_device_mesh",
            "from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module",
            "model = nn.Sequential(nn.Linear(8, 2, bias=False), nn.Linear(2, 8, bias=False))",
            'plan = {"0": ColwiseParallel(use_local_output=False), "1": RowwiseParallel()}',
            'parallelize_module(model, init_device_mesh("cpu", (3,)), plan)',
            "optimizer = torch.optim.Adam(model.parameters())", "",
            "for x in batches:", "    model(x).sum().backward()", "    optimizer.step()",
        ]
    )  # fmt: skip
    with pytest.raises(Relayed, match=r"Sharding propagation failed for aten\.lerp_"):
        golden.steps([golden.Case(3, 8, 3, program)])


# ── Without ranks ────────────────────────────────────────────────────────────


def test_rows_are_cut_as_torch_cuts_them(laboratory: Page) -> None:
    import torch

    cases = []
    for length in range(1, 66):
        for ranks in range(1, 9):
            parts = [len(part) for part in torch.arange(length).chunk(ranks)]
            cases.append(json.dumps([length, ranks, parts + [0] * (ranks - len(parts))]))
    body = """return (i) => {
      const [length, ranks, wanted] = JSON.parse(given.cases[i]);
      const found = m.cut(length, ranks);
      const sizes = found.map(([a, b]) => b - a);
      const joined = found.every(([a], k) => a === (k ? found[k - 1][1] : 0)) && found.at(-1)[1] === length;
      return joined && `${sizes}` === `${wanted}` ? null : `${length} among ${ranks}: ${JSON.stringify(found)}`;
    };"""
    assert_right(compare(laboratory, "/sharding/moments.js", body, cases=cases), 500)
