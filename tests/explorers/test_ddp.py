"""The ddp explorer computes what torch and real ranks do; in a real browser.

Three steps each time: real ranks against a model in Python, and the page against that model.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.explorers import golden_ddp as golden
from tests.explorers import real_ddp as real
from tests.explorers.harness import Outcome, assert_right, compare

JSON = "const cases = given.cases.map((text) => JSON.parse(text)); const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);\n"

# Models and DDP's arguments; shapes of nn.Linear where it says so.
LINEARS = [[[16, 8], [16]], [[16, 16], [16]], [[16, 16], [16]], [[4, 16], [4]]]
WIDE = [[[600, 500], [600]], [[500, 600], [500]], [[600, 500], [600]]]
CHAIN = [[[9, 9], [5], [3, 3]], [[70]], [[20, 20], [2, 2], [1]], [[40]]]
CAPS = [0, 200 / golden.MIB, 1000 / golden.MIB, 1500 / golden.MIB, 1]


def ask(page: Page, module: str, body: str, cases: list[Any]) -> Outcome:
    """Compare in the page; a case travels as JSON."""
    texts = [json.dumps(case) for case in cases]
    return compare(page, f"/ddp/{module}.js", JSON + body, cases=texts)


# ── Buckets and overlap ──────────────────────────────────────────────────────


def events(shapes: real.Shapes, plan: float | str) -> list[Any]:
    """What the model says that a later backward does, as `real.backwards` tells it."""
    layers = golden.build(shapes, [1.0] * len(shapes))
    said = golden.clock(layers, plan, 1, 0, after=False)
    where = {
        parameter["name"]: [layer, place]
        for layer, row in enumerate(layers)
        for place, parameter in enumerate(row["params"])
    }
    size = {p["name"]: p["bytes"] for row in layers for p in row["params"]}
    return [
        ["g", where[event[1]]]
        if event[0] == "g"
        else ["B", event[1], [where[n] for n in event[2]], sum(size[n] for n in event[2])]
        for event in said["events"]
    ]


def test_real_ranks_fill_and_send_buckets_as_modelled() -> None:
    """Of each backward after the first: which gradients share a bucket, and when it leaves among them."""
    cases = [(kind, shapes, {"bucket_cap_mb": cap}) for kind, shapes in (("linears", LINEARS), ("chain", CHAIN)) for cap in CAPS]  # fmt: skip
    cases += [("linears", WIDE, {}), ("linears", WIDE, {"bucket_cap_mb": 1})]
    found = real.backwards(cases)
    counts = set()
    for (_, shapes, options), (first, *later) in zip(cases, found, strict=True):
        whole = [event for event in first if event[0] == "B"]
        assert len(whole) == 1 and first[-1] == whole[0], "all in one bucket at first, sent last"
        wanted = events(shapes, options.get("bucket_cap_mb", "default"))
        assert later == [wanted, wanted], options
        counts.add(sum(event[0] == "B" for event in wanted))
    assert {1, 2, 3, 4, 8} <= counts
    default, explicit = ([e[3] for e in found[i][1] if e[0] == "B"] for i in (-2, -1))
    assert len(default) == 2, "1 MiB, and all the rest below 25"
    assert len(explicit) == 3, "1 MiB each"
    assert default[0] > golden.MIB, "a cap is soft"


def test_what_the_fine_print_says_of_ddp() -> None:
    big = [[[300_000]], [[300_000]], [[300_000]], [[300_000]]]
    unused, listed = real.backwards(
        [
            ("chain", LINEARS, {"bucket_cap_mb": 0, "find_unused_parameters": True}),
            ("chain", big, {"bucket_cap_mb_list": [1, 2]}),
        ],
        count=1,
    )
    assert sum(event[0] == "B" for event in unused[0]) > 1
    assert sum(event[0] == "B" for event in listed[0]) > 1
    (crossed,) = real.backwards([("crossed", LINEARS, {"bucket_cap_mb": 0})], count=2)
    came = [where for kind, where, *_ in crossed[1] if kind == "g"]
    assert came[0] == [0, 1], "the first layer is used last"
    assert [event[2] for event in crossed[1] if event[0] == "B"] == [[where] for where in came]
    assert real.own_gradients(view=False) == 4 * 36
    assert real.own_gradients(view=True) == 0


def test_buckets_are_torchs(laboratory: Page) -> None:
    cases = list(golden.assignments(6_000))
    single = sum(len(case["wanted"]) == 1 for case in cases)
    assert 200 < single < 4_000
    body = """return (i) => {
      const { sizes, limits, wanted } = cases[i];
      const got = m.assign(sizes, limits);
      return same(got, wanted) ? null : `${sizes} under ${limits}: ${JSON.stringify(got)}, not ${JSON.stringify(wanted)}`;
    };"""
    assert_right(ask(laboratory, "buckets", body, cases), 6_000)


def test_networks_say_how_far_they_are_from_what_was_published(laboratory: Page) -> None:
    """A percentage holds for each row of its source; two numbers from two tables, nearly."""
    networks = {
        name: (bandwidth, latency, how)
        for name, _, bandwidth, latency, _, how, *_ in laboratory.evaluate(
            "async () => (await import('/ddp/networks.js')).NETWORKS"
        )
    }
    for name, times in golden.PUBLISHED.items():
        bandwidth, latency, how = networks[name]
        worst = max(abs((latency + size / bandwidth) / ms - 1) for size, ms in times.items())
        promised = float(how.split()[1]) / 100 if how.startswith("within") else 0.12
        assert worst <= promised, (name, worst)


def test_caps_are_ddps(laboratory: Page) -> None:
    plans = ["default", "each", *(n / 97 for n in range(1, 3_000)), 25, 1000]
    cases = [{"plan": plan, "wanted": golden.limits(plan)} for plan in plans]
    body = """return (i) => {
      const { plan, wanted } = cases[i];
      const limits = m.limitsOf(plan);
      return same([limits[0], limits.at(-1)], wanted) ? null : `${plan}: ${limits}, not ${wanted}`;
    };"""
    assert_right(ask(laboratory, "buckets", body, cases), 3_000)


def test_the_clock_is_the_models(laboratory: Page) -> None:
    """Buckets, bytes, when each is ready, leaves and is done, and the sums that the page tells."""
    cases = list(golden.overlaps(1_500))
    assert sum(case["sums"][4] > 0 for case in cases) > 500, "something hides"
    assert sum(any(row[3] > row[2] for row in case["rows"]) for case in cases) > 300, "some wait"
    body = """const near = (a, b) => Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b));
    return (i) => {
      const { shapes, times, rows, sums, events, ...knobs } = cases[i];
      const run = m.timeline(m.build(shapes, times), knobs);
      if (run.buckets.length !== rows.length) return `${i}: ${run.buckets.length} buckets`;
      for (const [b, { members, bytes, ready, from, to, full, limit }] of run.buckets.entries()) {
        const [wanted, size, ...when] = rows[b];
        if (!same(members, wanted) || bytes !== size) return `${i}, B${b}: ${members} with ${bytes}`;
        if (![ready, from, to].every((t, k) => near(t, when[k]))) return `${i}, B${b}: ${ready}, ${from}, ${to}, not ${when}`;
        if (!full && b + 1 < rows.length || full !== bytes >= limit) return `${i}, B${b} is left open`;
      }
      const got = [run.backward, run.busy, run.end, run.exposed, run.hidden];
      if (!got.every((t, k) => near(t, sums[k]))) return `${i}: ${got}, not ${sums}`;
      const names = events.filter(([kind]) => kind === "g").map(([, name]) => name);
      return same(run.grads.map(({ name }) => name), names) ? null : `${i}: order ${run.grads.map(({ name }) => name)}`;
    };"""
    assert_right(ask(laboratory, "buckets", body, cases), 1_500)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("3072x768+3072, 768x3072+768", [[[3072, 768], [3072]], [[768, 3072], [768]]]),
        ("3072x768-3072_768x3072-768", [[[3072, 768], [3072]], [[768, 3072], [768]]]),
        (" 4 x 4 + 4 ,5", [[[4, 4], [4]], [[5]]]),
        ("2×3 7*1", [[[2, 3]], [[7, 1]]]),
        ("", None),
        ("0x4", None),
        ("4x", None),
        ("a", None),
        ("4++4", None),
        ("99999x99999", None),
        (",".join(["1"] * 17), None),
        ("+".join(["1"] * 9), None),
    ],
)
def test_typed_layers(laboratory: Page, text: str, wanted: real.Shapes | None) -> None:
    body = "return (i) => same(m.parseLayers(cases[i][0]), cases[i][1]) ? null : JSON.stringify(m.parseLayers(cases[i][0]));"
    assert_right(ask(laboratory, "buckets", body, [[text, wanted]]), 1)


# ── Ring ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 6])
def test_a_real_ring_moves_as_modelled(ranks: int) -> None:
    """Every rank after every step, and the bytes it has sent; uneven pieces and empty ones, too."""
    sizes = [1, ranks, ranks + 1, 3 * ranks - 1, 24]
    found = real.rings(ranks, sizes)
    for place, size in enumerate(sizes):
        model = golden.ring(ranks, size)
        for rank in range(ranks):
            states, sent = found[rank][place]
            assert states == [[values for _, values in state[rank]] for state in model["states"]]
            assert sent == [4 * at[rank] for at in model["sent"]]


def test_the_ring_is_the_models(laboratory: Page) -> None:
    cases = golden.rings()
    body = """return (i) => {
      const { ranks, size, states, sent } = cases[i];
      const got = m.ring(ranks, size);
      if (got.length !== states.length) return `${ranks}, ${size}: ${got.length} states`;
      for (const [step, state] of got.entries()) {
        const where = `${ranks} ranks, ${size}, step ${step}: `;
        if (!same(state.sent, sent[step])) return `${where}sent ${state.sent}, not ${sent[step]}`;
        const seen = state.held.map((row, rank) => row.map((values, piece) =>
          [[...Array(ranks).keys()].filter((r) => state.from[rank][piece] >> r & 1), values]));
        if (!same(seen, states[step])) return `${where}${JSON.stringify(seen)}, not ${JSON.stringify(states[step])}`;
        if (step && !same(state.moves.map(({ elements }, r) => elements + sent[step - 1][r]), sent[step])) return `${where}moves`;
        if (state.sent.some((n) => n > 2 * size)) return `${where}more than twice the vector`;
      }
      return null;
    };"""
    assert_right(ask(laboratory, "ring", body, cases), 120)


def test_all_through_one_rank(laboratory: Page) -> None:
    cases = []
    for ranks in (2, 4):
        found = real.through_rank_0(ranks, 7)
        assert all(total == golden.start(ranks, 7).sum(0).tolist() for total, _ in found)
        cases.append([ranks, 7, [sent for _, sent in found]])
    body = """return (i) => {
      const [ranks, size, wanted] = cases[i];
      const got = m.naive(ranks, size).map((n) => 4 * n);
      return same(got, wanted) ? null : `${got}, not ${wanted}`;
    };"""
    assert_right(ask(laboratory, "ring", body, cases), 2)


# ── ZeRO ─────────────────────────────────────────────────────────────────────

LEDGER = """const cost = ([name, bytes], n) => /all_gather/.test(name) ? (n - 1) * bytes
  : /reduce_scatter/.test(name) ? (n - 1) * bytes / n : name === "all_reduce" ? 2 * (n - 1) * bytes / n : 0;\n"""


def test_the_ledger_is_that_of_tensors(laboratory: Page) -> None:
    """Weights, gradients, master and state, as tensors and optimizers that were made."""
    cases = list(golden.ledgers(400))
    body = """return (i) => {
      const { wanted, ...asked } = cases[i];
      const rows = m.ledger(asked);
      for (const [stage, row] of rows.entries()) {
        const got = m.PARTS.map((part) => row[part]);
        if (!same(got, wanted[stage])) return `${JSON.stringify(asked)} stage ${stage}: ${got}, not ${wanted[stage]}`;
        if (row.total !== got.reduce((a, b) => a + b)) return "total";
        if (row.sent !== row.calls.reduce((sum, [, bytes]) => sum + bytes, 0)) return "sent";
      }
      return null;
    };"""
    assert_right(ask(laboratory, "ledger", body, cases), 400)


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_ledger_is_that_of_real_ranks(laboratory: Page, ranks: int) -> None:
    """DDP, ZeroRedundancyOptimizer and FSDP2: bytes kept by each rank, and sent by its collectives."""
    runs = {0: real.replicas(ranks), 1: real.zero_1(ranks), 3: real.zero_3(ranks)}
    cases = [[stage, ranks, found] for stage, all_ranks in runs.items() for found in all_ranks]
    for _, _, found in cases:
        assert found["steps"] == 4 * found["tensors"], "Adam's step, which the notes mention"
    assert all(found["tensors"] == real.DEPTH // ranks for found in runs[1]), "whole parameters"
    body = (
        LEDGER
        + f"""return (i) => {{
      const [stage, ranks, found] = cases[i];
      const row = m.ledger({{ params: {real.PARAMS}, ranks, optimizer: "adam", precision: "fp32" }})[stage];
      for (const part of ["weights", "gradients", "state"])
        if (found[part] !== row[part]) return `stage ${{stage}} ${{part}}: ${{found[part]}}, not ${{row[part]}}`;
      const sent = found.calls.reduce((sum, call) => sum + cost(call, ranks), 0);
      // ZeroRedundancyOptimizer all-reduces, and broadcasts besides: told in words, and tested below.
      const wanted = stage === 1 ? m.ledger({{ params: {real.PARAMS}, ranks, optimizer: "adam", precision: "fp32" }})[0].sent : row.sent;
      return sent === wanted ? null : `stage ${{stage}} sends ${{sent}}, not ${{wanted}}`;
    }};"""
    )
    assert_right(ask(laboratory, "ledger", body, cases), 3 * ranks)
    for found in runs[1]:
        whole = sum(size for name, size in found["calls"] if name == "broadcast")
        assert whole >= 4 * real.PARAMS, "each weight is broadcast by its owner"


def test_what_the_page_says_of_fully_shard() -> None:
    for found in real.zero_3(2, reshard=False):
        names = [name for name, _ in found["calls"]]
        assert names.count("all_gather_into_tensor") == real.DEPTH, "gathered once"
        assert found["whole"] == [True, False]
    for found in real.zero_3(2, mixed=True):
        parts = (found["weights"], found["gradients"], found["state"])
        assert parts == (2 * real.PARAMS, 2 * real.PARAMS, 4 * real.PARAMS), "16 bytes, over two"
        assert {size for name, size in found["calls"] if "gather" in name} == {real.WIDTH**2}
        assert found["whole"] == [False, False]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("7B", 7e9),
        ("124 M", 124e6),
        ("1.5b", 1.5e9),
        ("7e9", 7e9),
        ("1,000", 1000),
        ("0", None),
        ("-1", None),
        ("x", None),
        ("9e99", None),
    ],
)
def test_typed_counts(laboratory: Page, text: str, wanted: float | None) -> None:
    body = "return (i) => m.parseCount(cases[i][0]) === cases[i][1] ? null : `${m.parseCount(cases[i][0])}`;"
    assert_right(ask(laboratory, "ledger", body, [[text, wanted]]), 1)
