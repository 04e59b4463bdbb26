"""The dataloader explorer's model: torch's own loader in model time, real workers, and the page agree."""

from __future__ import annotations

import dataclasses
import json
import weakref
from collections import Counter
from typing import Any

import pytest
import torch
from playwright.sync_api import Page

from tests.explorers import gated_dataloader, golden_dataloader
from tests.explorers.golden_dataloader import Event, Knobs
from tests.explorers.harness import assert_right, compare

# What the page is about, each forced upon real processes: name → setting.
SCENES = {
    "even": Knobs(samples=12, num_workers=2),
    "one slow sample": Knobs(samples=16, num_workers=2, slow=(0,), late=30),
    "one slow sample, out of order": Knobs(samples=16, slow=(0,), late=30, in_order=False),
    "slow in the middle": Knobs(samples=20, num_workers=3, slow=(7,), late=40, work=1),
    "two slow, out of order": Knobs(
        samples=20, num_workers=3, prefetch_factor=1, slow=(2, 9), in_order=False, work=0
    ),
    "a slow consumer": Knobs(samples=16, num_workers=3, work=30),
    "deep prefetch": Knobs(samples=20, num_workers=2, prefetch_factor=4, work=13),
    "one worker": Knobs(samples=7, num_workers=1, prefetch_factor=3, slow=(3,)),
    "more room than batches": Knobs(samples=6, num_workers=4, prefetch_factor=4, batch_size=4),
    "ties": Knobs(samples=16, num_workers=4, prefetch_factor=1, batch_size=1, load=1, work=2),
    "no whole batch": Knobs(samples=3, batch_size=4, drop_last=True),
    "no workers": Knobs(samples=7, num_workers=0, drop_last=True),
}


@pytest.mark.parametrize("name", SCENES)
def test_real_workers_do_what_the_model_says(name: str) -> None:
    """Who gets which batch, when, and what is delivered; torch's own counts at each delivery."""
    _hold_against_processes(SCENES[name])


def test_real_workers_agree_on_random_settings() -> None:
    for knobs in golden_dataloader.settings(6, seed=6):
        _hold_against_processes(knobs)


def _hold_against_processes(knobs: Knobs) -> None:
    golden = golden_dataloader.run(knobs)
    real = gated_dataloader.run(knobs, golden)
    told = [
        (event.kind, event.batch, event.worker if event.kind in {"give", "finish"} else -1)
        for event in golden
        if event.kind != "start" and (knobs.num_workers or event.kind != "finish")
    ]
    assert real.log == told
    starts: dict[int, list[int]] = {}
    for event in golden:
        if event.kind == "start" and event.worker >= 0:
            starts.setdefault(event.worker, []).append(event.batch)
    assert real.starts == starts, "a worker takes its batches in the order in which they came"
    delivered = [event for event in golden if event.kind == "deliver"]
    assert real.counts == [(event.outstanding, event.aside) for event in delivered]
    assert len(real.exits) == knobs.num_workers and not any(real.exits)
    # Samples are loaded, and collated, once each, in the process of the batch's worker.
    batches = [tuple(batch) for batch in knobs.loader(range(knobs.samples)).batch_sampler]
    loading = {
        (real.main if worker < 0 else real.pids[worker], batches[batch])
        for worker, batch in ((event.worker, event.batch) for event in delivered)
    }
    assert real.collated == loading
    everything = sorted(i for samples in real.loaded.values() for i in samples)
    assert everything == [i for batch in batches for i in batch]
    for pid, samples in real.loaded.items():
        assert samples == [i for batch in batches if (pid, batch) in loading for i in batch]


def test_facts_the_page_tells_hold_in_every_run() -> None:
    """In the golden runs, whose decisions are torch's own."""
    seen: Counter[str] = Counter()
    for knobs in golden_dataloader.settings(1_000, seed=7):
        if not knobs.num_workers:
            continue
        events = golden_dataloader.run(knobs)
        bound = knobs.prefetch_factor * knobs.num_workers
        assert max(event.outstanding + event.aside for event in events) <= bound
        given = {event.batch: event.worker for event in events if event.kind == "give"}
        delivered = [event.batch for event in events if event.kind == "deliver"]
        if knobs.in_order:
            assert all(worker == batch % knobs.num_workers for batch, worker in given.items())
            assert delivered == sorted(delivered)
            seen["held back"] += any(event.aside > 1 for event in events)
        else:
            assert not any(event.aside for event in events), "nothing is put aside"
            finished = [event.batch for event in events if event.kind == "finish"]
            assert delivered == finished, "what is finished first is delivered first"
            seen["ahead"] += delivered != sorted(delivered)
            seen["not in turn"] += any(w != b % knobs.num_workers for b, w in given.items())
        # A batch is given out when one is delivered, and at no other time.
        kinds = [event.kind for event in events if event.kind in {"give", "deliver"}]
        first = min(bound, len(given))
        assert kinds[:first] == ["give"] * first
        assert kinds[first:].count("give") == len(given) - first
        assert "give give" not in " ".join(kinds[first:])
    assert min(seen.values()) > 30 and len(seen) == 3, seen


class _Batch(list[int]):
    """A batch that can be watched."""


def test_the_loops_variable_keeps_its_batch_until_the_next_comes() -> None:
    alive: list[int] = []
    born: list[weakref.ref[_Batch]] = []

    def collate(samples: list[int]) -> _Batch:
        alive.append(sum(ref() is not None for ref in born))
        batch = _Batch(samples)
        born.append(weakref.ref(batch))
        return batch

    for batch in Knobs(samples=8, num_workers=0).loader(range(8), collate_fn=collate):
        assert len(batch) == 2
    assert alive == [0, 1, 1, 1]


def test_prefetch_needs_workers_and_keeps_nothing_for_the_next_epoch() -> None:
    with pytest.raises(ValueError, match="num_workers > 0"):
        torch.utils.data.DataLoader(range(4), prefetch_factor=2)  # type: ignore[arg-type]
    knobs = Knobs(samples=8)
    assert knobs.loader(range(8)).prefetch_factor == 2
    golden = golden_dataloader.run(knobs)
    for _ in range(2):
        loaded = gated_dataloader.run(knobs, golden).loaded
        samples = [i for own in loaded.values() for i in own]
        assert sorted(samples) == list(range(8)), "loaded again, every epoch"


def _counters(events: list[Event]) -> list[list[int]]:
    """What the page counts after each event: given, finished, delivered, waited, memory."""
    rows = []
    happened: Counter[str] = Counter()
    asked, waited = None, 0
    for event in events:
        happened[event.kind] += 1
        if event.kind == "ask":
            asked = event.time
        elif event.kind == "deliver":
            assert asked is not None
            waited, asked = waited + event.time - asked, None
        given = happened["give"] or happened["start"]
        ready = happened["finish"] - happened["deliver"]
        still = 0 if asked is None else event.time - asked
        in_hand = min(happened["deliver"], 1)
        rows.append(
            [given, happened["finish"], happened["deliver"], waited + still, ready + in_hand]
        )
    return rows


def _case(knobs: Knobs) -> str:
    events = golden_dataloader.run(knobs)
    case: dict[str, Any] = {
        "knobs": dataclasses.asdict(knobs),
        "batches": list(knobs.loader(range(knobs.samples)).batch_sampler),
        "events": [list(dataclasses.astuple(event)) for event in events],
        "counters": _counters(events),
    }
    return json.dumps(case)


def test_the_page_computes_what_torchs_loader_does(laboratory: Page) -> None:
    """Every event with its time, and all counters after it, for thousands of settings."""
    cases = [_case(knobs) for knobs in golden_dataloader.settings(3_000)]
    body = """return (i) => {
      const { knobs, batches, events, counters } = JSON.parse(given.cases[i]);
      const where = `${JSON.stringify(knobs)}: `;
      const run = m.simulate(knobs);
      if (JSON.stringify(run.batches) !== JSON.stringify(batches)) return `${where}batches ${JSON.stringify(run.batches)}`;
      const got = run.events.map((e) => [e.time, e.kind, e.batch, e.worker, e.outstanding, e.aside].join());
      const wrong = events.findIndex((event, n) => event.join() !== got[n]);
      if (wrong >= 0) return `${where}event ${wrong} is ${got[wrong]}, not ${events[wrong]}`;
      if (got.length !== events.length) return `${where}${got.length} events, not ${events.length}`;
      let most = 0;
      for (const [n, row] of counters.entries()) {
        most = Math.max(most, row[4]);
        if ((n + i) % 3) continue;
        const c = m.counters(run, n + 1);
        const counted = [c.given, c.finished, c.delivered, c.waited, c.memory];
        if (counted.join() !== row.join()) return `${where}after event ${n}: ${counted}, not ${row}`;
        if (c.time !== events[n][0] || c.flight !== events[n][4] + events[n][5]) return `${where}after event ${n}`;
        // The places add up to the counters: nothing is twice or nowhere.
        const places = m.places(run, n + 1);
        const at = (...names) => places.filter((name) => names.includes(name)).length;
        if (at("later") !== batches.length - c.given || at("hand", "done") !== c.delivered || at("hand") > 1) return `${where}places after event ${n}: ${places}`;
        if (knobs.num_workers && at("queued", "loading", "ready") !== events[n][4]) return `${where}places after event ${n}: ${places}`;
        if (at("ready", "aside", "hand") !== c.memory) return `${where}memory after event ${n}: ${places}`;
      }
      if (most !== m.mostMemory(run)) return `${where}most is ${most}`;
      if (run.total !== events.at(-1)[0] || run.waited !== counters.at(-1)[3]) return `${where}totals`;
      return null;
    };"""
    assert_right(compare(laboratory, "/dataloader/run.js", body, cases=cases), 3_000)
