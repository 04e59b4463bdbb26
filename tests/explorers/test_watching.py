"""The watching explorer against torch.profiler: own times, totals, nesting, memory, links, and files that it opens."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.explorers import golden_watching
from tests.explorers.harness import python_in

FOLDER = golden_watching.FOLDER
CAPTURE = golden_watching.capture()
TEXT = (FOLDER / "traces.js").read_text(encoding="utf-8")
TRACES: list[dict[str, Any]] = json.loads(TEXT[TEXT.index("[") : TEXT.rindex("]")].rstrip(",\n") + "]")  # fmt: skip
TABLES: dict[str, dict[str, list[int]]] = json.loads(
    (FOLDER / "tables.json").read_text(encoding="utf-8")
)

# A profile as the page computes it, with names for numbers.
TOLD = """(p, m) => ({
  calls: p.calls.map(({ name, thread, start, end, parent, depth, own, bytes, shapes, seq }) => ({ name, thread, start, end, parent, depth, own, bytes, shapes, seq })),
  rows: Object.fromEntries(p.rows.map(({ name, calls, own, total, bytes }) => [name, [calls.length, own, total, bytes]])),
  memory: p.memory.map(({ time, held, call }) => [time, held, call]), peak: p.peak && [p.peak.time, p.peak.held], links: [...p.links].sort((a, b) => a[0] - b[0]), end: p.end, whole: p.whole,
  lanes: p.lanes.map((lane) => [lane.name, m.idle(p, lane)]), python: p.python ?? [], left: p.left ?? 0,
})"""
OPEN = f"""async (texts) => {{
  const m = {{ ...await import("/watching/profile.js"), ...await import("/watching/opening.js") }};
  const told = {TOLD};
  return texts.map((text) => {{
    const {{ trace, fault }} = m.opened(text);
    return fault ? {{ fault }} : told(m.profileOf(trace), m);
  }});
}}"""
KNOWN = f"""async () => {{
  const m = await import("/watching/profile.js");
  const told = {TOLD};
  return Object.fromEntries(m.traces().map(({{ id }}) => [id, told(m.profileBy(id), m)]));
}}"""


def opened(page: Page, *texts: str) -> list[dict[str, Any]]:
    """What the page makes of files."""
    found: list[dict[str, Any]] = page.evaluate(OPEN, list(texts))
    return found


def path(calls: list[dict[str, Any]], number: int) -> tuple[str, ...]:
    """The names around a call, from the outermost."""
    names: list[str] = []
    while number >= 0:
        names.append(calls[number]["name"])
        number = calls[number]["parent"]
    return tuple(reversed(names))


def merged(calls: list[dict[str, Any]]) -> list[list[Any]]:
    """The calls as `prof.events()` has them: where the only call inside one has its name, both are one."""
    kept = [dict(call, number=number) for number, call in enumerate(calls)]
    gone: set[int] = set()
    while True:
        inside: dict[int, list[dict[str, Any]]] = {}
        for call in kept:
            inside.setdefault(call["parent"], []).append(call)
        twins = [
            call for call in kept
            if call["parent"] >= 0 and len(inside[call["parent"]]) == 1 and calls[call["parent"]]["name"] == call["name"]
        ]  # fmt: skip
        if not twins:
            break
        twin = twins[0]
        outer = next(call for call in kept if call["number"] == twin["parent"])
        outer["own"], outer["bytes"] = outer["own"] + twin["own"], outer["bytes"] + twin["bytes"]
        for call in inside.get(twin["number"], []):
            call["parent"] = twin["parent"]
        gone.add(twin["number"])
        kept = [call for call in kept if call["number"] not in gone]
    return sorted(
        [one["name"], calls[one["parent"]]["name"] if one["parent"] >= 0 else "", one["end"] - one["start"], one["own"], one["bytes"]]
        for one in kept
    )  # fmt: skip


@pytest.fixture(scope="module")
def recorded() -> dict[str, tuple[str, dict[str, Any]]]:
    """Each program's trace, and what the profiler's own objects say of it."""
    made = {}
    for name, run in golden_watching.PROGRAMS.items():
        text, result = golden_watching.recorded(run)
        made[name] = (text, golden_watching.told(result))
    return made


def test_files_say_what_torch_says(
    laboratory: Page, recorded: dict[str, tuple[str, dict[str, Any]]]
) -> None:
    """Each call with the call around it, its time, its own time and its bytes; each name; each link."""
    found = opened(laboratory, *(text for text, _ in recorded.values()))
    for (name, (text, told)), mine in zip(recorded.items(), found, strict=True):
        assert merged(mine["calls"]) == told["calls"], name
        assert len(told["calls"]) > 40
        table = told["table"]
        assert set(mine["rows"]) == set(table) - {"[memory]"}
        for row, (calls, own, total, size) in mine["rows"].items():
            assert (own, size) == (table[row][1], table[row][3]), (name, row)
            assert calls >= table[row][0]
            around = {number for number, one in enumerate(mine["calls"]) if one["name"] == row}
            if not any(row in path(mine["calls"], mine["calls"][n]["parent"]) for n in around if mine["calls"][n]["parent"] >= 0):  # fmt: skip
                assert (calls, total) == (table[row][0], table[row][2]), (name, row)
        top = sum(one["end"] - one["start"] for one in mine["calls"] if one["parent"] < 0)
        assert mine["whole"] == sum(own for _, own, _, _ in mine["rows"].values()) == top
        links = mine["links"]
        assert len(links) == text.count('"ph": "f"'), name
        for back, front in links:
            calls = mine["calls"]
            assert calls[back]["seq"] == calls[front]["seq"] >= 0
            assert any("evaluate_function" in around for around in path(calls, back))
    assert sum(len(one["links"]) for one in found) > 30


def test_memory_runs_as_torch_counts_it(
    laboratory: Page, recorded: dict[str, tuple[str, dict[str, Any]]]
) -> None:
    found = opened(laboratory, *(text for text, _ in recorded.values()))
    for (name, (text, _)), mine in zip(recorded.items(), found, strict=True):
        events = CAPTURE.events_of(text)
        first = min(
            CAPTURE.nanoseconds(e["ts"]) for e in events if e["ph"] == "X" and e["cat"] != "Trace"
        )
        wanted = sorted(
            (CAPTURE.nanoseconds(e["ts"]) - first, e["args"]["Total Allocated"]) for e in events if e["name"] == "[memory]"
        )  # fmt: skip
        held = [(time, held) for time, held, _ in mine["memory"]]
        assert sorted(held) == wanted and held, name
        assert mine["peak"][1] == max(held for _, held in wanted)


def test_the_order_of_a_file_does_not_matter(
    laboratory: Page, recorded: dict[str, tuple[str, dict[str, Any]]]
) -> None:
    texts = [text for text, _ in recorded.values()]
    moved = [golden_watching.shuffled(text, seed) for seed, text in enumerate(texts)]
    assert all(json.loads(one)["traceEvents"] != json.loads(two)["traceEvents"] for one, two in zip(texts, moved, strict=True))  # fmt: skip
    assert opened(laboratory, *moved) == opened(laboratory, *texts)


def test_what_is_shown_is_what_was_recorded(laboratory: Page) -> None:
    """The page's four traces, beside PyTorch's own table of the same recordings."""
    found: dict[str, Any] = laboratory.evaluate(KNOWN)
    assert [*found] == [*TABLES] == [name for name, *_ in CAPTURE.PROGRAMS]
    for name, mine in found.items():
        table = TABLES[name]
        assert set(mine["rows"]) == set(table) - {"[memory]"}
        for row, (calls, own, _, size) in mine["rows"].items():
            assert (own, size) == (table[row][1], table[row][3]), (name, row)
            assert calls >= table[row][0]
        assert mine["whole"] == sum(own for _, own, _, _ in table.values())
        for back, front in mine["links"]:
            assert mine["calls"][back]["seq"] == mine["calls"][front]["seq"] >= 0
            assert "Backward" in mine["calls"][back]["name"]
        assert mine["links"]
    waits = [one["own"] for one in found["loader"]["calls"] if one["name"].endswith("__next__")]
    assert sum(waits) > found["loader"]["end"] / 2
    assert len(found["threads"]["lanes"]) == 2 and not found["threads"]["memory"]
    names = [call["name"] for call in found["checkpoint"]["calls"]]
    assert names.count("aten::tanh") == 3, "two forwards, and one again"


def test_idle_is_the_time_without_an_operator(laboratory: Page) -> None:
    """Counted nanosecond by nanosecond, as a union of spans."""
    found: dict[str, Any] = laboratory.evaluate(KNOWN)
    for trace in TRACES:
        mine = found[trace["id"]]
        notes = {trace["names"][number] for number in trace["notes"]}
        for thread, (_, idle) in enumerate(mine["lanes"]):
            busy: set[int] = set()
            for call in mine["calls"]:
                if call["thread"] == thread and call["name"] not in notes:
                    busy.update(range(call["start"] // 10, call["end"] // 10))
            assert idle == pytest.approx(1 - len(busy) * 10 / mine["end"], abs=0.005)


def test_torch_records_what_the_page_shows(tmp_path: Path) -> None:
    """Recorded again: the same calls in the same nests, shapes and links. Times differ."""
    fresh, tables = tmp_path / "traces.js", tmp_path / "tables.json"
    python_in(tmp_path, str(FOLDER / "capture.py"), str(fresh), str(tables), "1")
    text = fresh.read_text(encoding="utf-8")
    again = json.loads(text[text.index("[") : text.rindex("]")].rstrip(",\n") + "]")
    for old, new in zip(TRACES, again, strict=True):
        assert [old[name] for name in ("id", "title", "source", "threads")] == [new[name] for name in ("id", "title", "source", "threads")]  # fmt: skip
        assert [_nests(old, thread) for thread in range(old["threads"])] == [_nests(new, thread) for thread in range(new["threads"])], "run site/explorers/watching/capture.py"  # fmt: skip
        assert len(old["arrows"]) == len(new["arrows"])


def _nests(trace: dict[str, Any], thread: int) -> list[tuple[int, str, str]]:
    """Depth, name and shapes of each call of a thread, in their order."""
    name, on, steps, durations, shapes, _ = trace["calls"]
    rows, ends = [], list[int]()
    for number, start in enumerate(itertools.accumulate(steps)):
        if on[number] != thread:
            continue
        while ends and ends[-1] <= start:
            ends.pop()
        rows.append((len(ends), trace["names"][name[number]], trace["shapes"][shapes[number]]))
        ends.append(start + durations[number])
    return rows


# ── Files of any kind ────────────────────────────────────────────────────────


def bar(name: str, start: str, took: str, tid: int | str = 1, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": 1, "tid": tid, "ts": f"@{start}@", "dur": f"@{took}@", **more}  # fmt: skip


def as_file(*events: dict[str, Any]) -> str:
    """A file of these events, whose times keep the digits that they have here."""
    return json.dumps({"traceEvents": events}).replace('"@', "").replace('@"', "")


@pytest.mark.parametrize("base", [0, 4_723_025_484_567, 9_007_199_254_740_000, 1_764_000_000_000_000])  # fmt: skip
def test_no_digit_is_lost(laboratory: Page, base: int) -> None:
    """Of two that touch neither is inside, however long the machine has been up."""
    (found,) = opened(
        laboratory,
        as_file(
            bar("a", f"{base}.854", "7.141"), bar("b", f"{base + 7}.995", "0.005"), bar("c", f"{base + 8}", "1"),
            bar("d", f"{base + 8}.001", "0.999"),
        ),
    )  # fmt: skip
    spans = [[one["name"], one["start"], one["end"], one["parent"]] for one in found["calls"]]
    assert spans == [["a", 0, 7141, -1], ["b", 7141, 7146, -1], ["c", 7146, 8146, -1], ["d", 7147, 8146, 2]]  # fmt: skip


def test_trees_drawn_at_random_are_nested_as_they_were_drawn(laboratory: Page) -> None:
    rng = random.Random(11)
    texts, wanted = [], []
    for _ in range(60):
        rows: list[tuple[str, int, int, int, int]] = []  # name, thread, start, end, own

        def draw(thread: int, start: int, depth: int, rows: list[Any] = rows) -> int:
            place, at, own = len(rows), start + rng.choice([0, rng.randrange(1, 50)]), 0
            rows.append(None)
            own = at - start
            for _ in range(rng.randrange(4) if depth < 5 else 0):
                end = draw(thread, at, depth + 1)
                gap = rng.choice([0, rng.randrange(1, 30)])
                at, own = end + gap, own + gap
            last = rng.randrange(1, 900)
            rows[place] = (rng.choice("abc"), thread, start, at + last, own + last)
            return at + last

        for thread in range(rng.randrange(1, 4)):
            at = rng.randrange(500)
            for _ in range(rng.randrange(1, 5)):
                at = draw(thread, at, 0) + rng.choice([0, 40])
        first = min(row[2] for row in rows)
        wanted.append(sorted((name, s - first, e - first, own) for name, _, s, e, own in rows))
        bars = [bar(name, f"{7 + s // 1000}.{s % 1000:03d}", f"{(e - s) // 1000}.{(e - s) % 1000:03d}", tid) for name, tid, s, e, _ in rows]  # fmt: skip
        texts.append(as_file(*rng.sample(bars, len(bars))))
    for found, want in zip(opened(laboratory, *texts), wanted, strict=True):
        assert sorted((one["name"], one["start"], one["end"], one["own"]) for one in found["calls"]) == want  # fmt: skip


def test_who_begins_is_running_and_who_ends_is_not(laboratory: Page) -> None:
    moved = [
        {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": at, "args": {"Bytes": size, "Device Type": 0}}
        for at, size in ((10, -1), (0, 2), (5, 4), (2, 8), (7, -6), (8, 6))
    ]  # fmt: skip
    (found,) = opened(laboratory, as_file(bar("a", "0", "10"), bar("b", "2", "3"), *moved))
    assert found["memory"] == [[0, 2, 0], [2000, 10, 1], [5000, 14, 0], [7000, 8, 0], [8000, 14, 0], [10000, 13, -1]]  # fmt: skip
    assert found["peak"] == [5000, 14], "the first of two"
    assert found["rows"] == {"a": [1, 7000, 10000, 6], "b": [1, 3000, 3000, 8]}


def test_traces_that_others_write_are_read(laboratory: Page) -> None:
    """A tracer of one's own: no categories, named threads, arrows, counters, instants; a bare list; a GPU's lanes."""
    (own,) = opened(
        laboratory,
        as_file(
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "MainThread"}},
            bar("epoch", "0", "50"), bar("load", "1", "5.5", args={"loss": "nan"}), bar("work", "2", "9", tid=2),
            {"ph": "i", "s": "t", "name": "saved", "pid": 1, "tid": 1, "ts": 3}, {"ph": "C", "name": "loss", "pid": 1, "tid": 1, "ts": 3, "args": {"loss": 1}},
            {"ph": "s", "cat": "flow", "id": 1, "name": "after", "pid": 1, "tid": 1, "ts": 1}, {"ph": "f", "bp": "e", "cat": "flow", "id": 1, "name": "after", "pid": 1, "tid": 2, "ts": 2},
        ),
    )  # fmt: skip
    assert [(one["name"], one["own"]) for one in own["calls"]] == [("epoch", 44_500), ("load", 5_500), ("work", 9_000)]  # fmt: skip
    assert own["links"] == [[2, 1]]
    assert own["lanes"] == [["MainThread", pytest.approx(0)], ["thread 2", pytest.approx(0.82)]]
    gpu = [
        bar("aten::mm", "10", "5", cat="cpu_op"), bar("cudaLaunchKernel", "11", "1", cat="cuda_runtime"),
        {**bar("gemm", "13", "30", tid=7, cat="kernel"), "pid": 0},
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7"}},
        *({"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 12 + n, "args": {"Bytes": size, "Device Type": n % 2, "Device Id": 0}} for n, size in enumerate([8, 512, -8])),
        bar("train.py(3): step", "9", "20", cat="python_function"), bar("wait", "9", "1", tid="x", cat="overhead"),
    ]  # fmt: skip
    bare = as_file(*gpu).removeprefix('{"traceEvents": ').removesuffix("}")
    (found,) = opened(laboratory, bare)
    assert [one["parent"] for one in found["calls"]] == [-1, 0, -1]
    assert [name for name, _ in found["lanes"]] == ["main thread", "stream 7"]
    assert found["memory"] == [[3000, 512, 0]]
    assert found["python"] == [{"thread": 0, "name": "train.py(3): step", "start": -1000, "end": 19000}]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import torch", "it is not JSON, or was cut off. prof.export_chrome_trace"),
        ('{"traceEvents": [{"ph": "X"', "it is not JSON, or was cut off."),
        ("{}", "This is no trace: it has no traceEvents."),
        ("null", "This is no trace: it has no traceEvents."),
        ('{"undertorch": "capture", "version": 1}', "it has no traceEvents."),
        ("[]", "There is no call in this trace"),
        ('[null, 3, {"ph": "X"}, {"ph": "X", "ts": "later", "dur": 1}, {"ph": "X", "ts": 1}]', "There is no call in this trace"),
        ("[" + '{"ph":"X","ts":1,"dur":1},' * 200_001 + "0]", "This trace has 200001 calls, and the page reads up to 200000. Record fewer steps"),
    ],
)  # fmt: skip
def test_a_bad_file_gives_a_sentence(laboratory: Page, text: str, said: str) -> None:
    (found,) = opened(laboratory, text)
    assert said in found["fault"]


def test_packed_files_are_unpacked_and_huge_ones_refused(laboratory: Page) -> None:
    body = """async ([bytes, zeros]) => {
      const m = await import("/watching/opening.js");
      const blob = (text) => new Blob([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))]);
      return [await m.textOf(blob(bytes)), await m.textOf(blob(zeros)), await m.textOf(new Blob(["plain"])), m.opened(null).fault];
    }"""
    sent = [_base64(gzip.compress(one)) for one in ("[1, 2, “3”]".encode(), b"0" * 64_000_001)]
    text, huge, plain, said = laboratory.evaluate(body, sent)
    assert (text, huge, plain) == ("[1, 2, “3”]", None, "plain")
    assert "more than 64 MB" in said and "schedule" in said


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


DAMAGED = f"""async (texts) => {{
  const m = {{ ...await import("/watching/profile.js"), ...await import("/watching/opening.js"), ...await import("/watching/words.js") }};
  const found = {{ refused: 0, read: 0, broken: [] }};
  texts.forEach((text, i) => {{
    try {{
      const {{ trace, fault }} = m.opened(text);
      if (fault) {{ found.refused += 1; return; }}
      const p = m.profileOf(trace);
      for (const [id] of m.QUESTIONS) m.answer(p, id);
      p.calls.forEach((_, at) => [m.callText(p, at), m.linksOf(p, at)]);
      const told = ({TOLD})(p, m);
      if (!Number.isFinite(told.whole + told.end + told.lanes[0][1])) throw new Error("no number");
      found.read += 1;
    }} catch (error) {{ found.broken.push(`${{i}}: ${{error}}`); }}
  }});
  return found;
}}"""


def test_a_damaged_file_breaks_nothing(
    laboratory: Page, recorded: dict[str, tuple[str, dict[str, Any]]]
) -> None:
    """Whatever values of it are others: a sentence, or all of it can be computed."""
    rng = random.Random(5)
    whole = json.loads(recorded["checkpointed"][0])
    whole = {"traceEvents": [e for e in whole["traceEvents"] if e.get("cat") != "Trace"]}
    texts = []
    for _ in range(120):
        damaged = json.loads(json.dumps(whole))
        for _ in range(rng.choice([1, 5, 60])):
            event = rng.choice(damaged["traceEvents"])
            args = event.get("args")
            at = args if rng.random() < 0.3 and args and isinstance(args, dict) else event
            at[rng.choice([*at])] = rng.choice([None, -1, 0, 7, 1e9, 0.5, "", "x", [], {}, [[]], True, 1e300])  # fmt: skip
        texts.append(json.dumps(damaged))
    texts.append(json.dumps({"traceEvents": []}))
    found = laboratory.evaluate(DAMAGED, texts)
    assert not found["broken"], found
    assert found["read"] > 100 and found["refused"] > 0, found
