"""The dataloader explorer's model: torch's own loader in model time, real workers, and the page agree."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
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


def _between(events: list[Event]) -> list[list[Any] | None]:
    """What goes on half-way to the next event: the moment, the waiting, what is loaded since when, what is worked on."""
    rows: list[list[Any] | None] = []
    begun: dict[int, int] = {}
    asked, work, since = None, None, 0
    for (event, after), counted in zip(
        itertools.pairwise(events), _counters(events)[:-1], strict=True
    ):
        if event.kind == "start":
            begun[event.batch] = event.time
        elif event.kind == "finish":
            del begun[event.batch]
        elif event.kind == "ask":
            asked, work = event.time, None
        elif event.kind == "deliver":
            asked, work, since = None, event.batch, event.time
        half = (event.time + after.time) / 2
        waited = counted[3] + (0 if asked is None else half - event.time)
        loading = [[batch, half - start] for batch, start in sorted(begun.items())]
        busy = None if work is None else [work, half - since]
        rows.append([half, waited, loading, busy] if after.time > event.time else None)
    return [*rows, None]


def _case(knobs: Knobs) -> str:
    events = golden_dataloader.run(knobs)
    case: dict[str, Any] = {
        "knobs": dataclasses.asdict(knobs),
        "batches": list(knobs.loader(range(knobs.samples)).batch_sampler),
        "events": [list(dataclasses.astuple(event)) for event in events],
        "counters": _counters(events),
        "between": _between(events),
    }
    return json.dumps(case)


def test_the_page_computes_what_torchs_loader_does(laboratory: Page) -> None:
    """Every event with its time, and all counters after it, for thousands of settings."""
    cases = [_case(knobs) for knobs in golden_dataloader.settings(3_000)]
    body = """return (i) => {
      const { knobs, batches, events, counters, between } = JSON.parse(given.cases[i]);
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
        if (between[n]) {
          const [half, waited, loading, busy] = between[n];
          const found = m.between(run, n + 1, half);
          const told = [m.happened(run, half), m.counters(run, n + 1, half).waited, found.loading.map(({ batch, done }) => [batch, done]), found.works && [found.works.batch, found.works.done]];
          if (JSON.stringify(told) !== JSON.stringify([n + 1, waited, loading, busy])) return `${where}at ${half}: ${JSON.stringify(told)}, not ${JSON.stringify(between[n])}`;
        }
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


SAY = """async (all) => {
  const [run, words] = await Promise.all([import("/dataloader/run.js"), import("/dataloader/words.js")]);
  return all.map((knobs) => {
    const made = run.simulate(knobs);
    return { verdict: words.verdict(made).join(" "), told: made.events.map((_, i) => words.tell(made, i)) };
  });
}"""


def test_what_the_page_says_of_a_run_is_true(laboratory: Page) -> None:
    """Each number in the sentences, read back and compared with torch's loader in model time."""
    settings = list(golden_dataloader.settings(400, seed=8))
    said = laboratory.evaluate(SAY, [dataclasses.asdict(knobs) for knobs in settings])
    kinds: Counter[str] = Counter()
    for knobs, page in zip(settings, said, strict=True):
        events = golden_dataloader.run(knobs)
        for event, sentence in zip(events, page["told"], strict=True):
            _assert_told(knobs, events, event, sentence)
        kinds[_assert_verdict(knobs, events, page["verdict"])] += 1
    assert min(kinds.values()) > 5 and len(kinds) == 6, kinds


def _assert_told(knobs: Knobs, events: list[Event], event: Event, sentence: str) -> None:
    before = events[: events.index(event)]
    gone = {e.batch for e in before if e.kind == "deliver"}
    numbers = [int(n) for n in re.findall(r"\d+", sentence)]
    if event.kind == "give":
        assert numbers[:2] == [event.batch, event.worker]
        if knobs.in_order:
            assert numbers[2:] == [event.batch, knobs.num_workers, event.worker]
        else:
            own = [e.batch for e in before if e.kind == "give" and e.worker == event.worker]
            taken = {e.batch for e in before if e.kind == "take"}  # this one's delivery gave room
            assert numbers[2:] == [knobs.prefetch_factor]
            assert len(set(own) - gone - taken) < knobs.prefetch_factor
    elif event.kind == "take":
        aside = events[events.index(event)].aside > (before[-1].aside if before else 0)
        assert aside == ("put aside" in sentence)
        if aside:
            assert numbers == [event.batch, len(gone), event.batch]
    elif event.kind == "deliver":
        late = any(e.kind == "take" and e.batch == event.batch and e.aside for e in before)
        came = [e for e in before if e.kind in {"take", "ask"}][-1]
        assert ("had been put aside" in sentence) == (late and came.kind == "ask")
        assert numbers == [event.batch, knobs.work]
    elif event.kind == "stop":
        assert numbers == ([len(gone)] if gone else [])


def _assert_verdict(knobs: Knobs, events: list[Event], said: str) -> str:
    numbers = [int(n) for n in re.findall(r"\d+", said)]
    total = events[-1].time
    waited = _counters(events)[-1][3]
    delivered = [event for event in events if event.kind == "deliver"]
    kind = said.split(".")[0]
    if said.startswith("No batch"):
        assert not delivered and numbers == [knobs.samples, knobs.batch_size]
        return kind
    times = {(event.kind, event.batch): event.time for event in events}
    if said.startswith("Nothing is loaded ahead"):
        assert knobs.num_workers == 0 and numbers == [waited, total]
    elif "holds the others back" in said:
        worst = max(delivered, key=lambda event: event.aside)
        seen = events[: events.index(worst)]
        kept = {e.batch for e in seen if e.kind == "take"} - {
            e.batch for e in seen if e.kind == "deliver"
        }
        sooner = worst.time - min(times["finish", batch] for batch in kept - {worst.batch})
        assert numbers == [worst.batch, worst.aside, sooner, waited, total]
        return "held back"
    elif said.startswith("Whatever"):
        order = [event.batch for event in delivered]
        late = max(range(len(order)), key=lambda batch: order.index(batch) - batch)
        assert numbers == [late, order.index(late) + 1, late + 1, waited, total]
    else:
        if "consumer sets the pace" in said:
            assert numbers.pop(0) == waited == delivered[0].time
            assert numbers.pop(0) == max(row[4] for row in _counters(events))
        else:
            assert numbers[:2] == [waited, total] and waited > delivered[0].time
            del numbers[:2]
        if knobs.num_workers < 4:
            more = dataclasses.replace(knobs, num_workers=knobs.num_workers + 1)
            then = golden_dataloader.run(more)[-1].time
            assert ("the same" in said) == (then == total)
            assert numbers == [more.num_workers, *dict.fromkeys([then, total])]
    return kind
