"""The strides explorer computes what torch computes, for thousands of random layouts; in a real browser."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from playwright.sync_api import Page

from tests.explorers import golden_strides as golden
from tests.explorers.harness import Outcome, compare
from tests.explorers.test_formats import assert_right

JSON = "const cases = given.cases.map((text) => JSON.parse(text)); const same = (a, b) => a.join() === b.join();\n"


@pytest.fixture
def laboratory(laboratory: Page) -> Page:
    """The page, with both modules under one name."""
    both = 'export * from "./layout.js"; export * from "./ops.js";'
    laboratory.route(
        "**/both.js", lambda route: route.fulfill(body=both, content_type="text/javascript")
    )
    return laboratory


def ask(page: Page, body: str, cases: list[golden.Case]) -> Outcome:
    """Compare in the page; a case travels as JSON."""
    texts = [json.dumps(case) for case in cases]
    return compare(page, "/strides/both.js", JSON + body, cases=texts)


def test_methods_do_what_they_do_in_torch(laboratory: Page) -> None:
    """Layout, what was copied, and every value, after up to four methods; and what is refused."""
    cases = list(golden.histories(4_000))
    steps = [step for case in cases for step in case["steps"]]
    names = Counter(
        step["text"].split("(")[0].split("[")[0] for step in steps if not step["refused"]
    )
    assert len(names) == 18 and min(names.values()) > 60, names
    assert 200 < sum(step["refused"] for step in steps) < len(steps) / 4
    assert sum(step.get("copied", False) for step in steps) > 700
    body = """return (i) => {
      const { base, cells, steps } = cases[i];
      let now = m.begin(base, cells);
      const so = [];
      for (const step of steps) {
        so.push(step.text);
        const where = `${JSON.stringify(base)} ${so.join(" ")}: `;
        let after;
        try { after = m.next(now, m.parse(step.text)); } catch (error) {
          if (!(error instanceof Error) || error.constructor !== Error) return where + error;
          return step.refused ? null : where + error.message;
        }
        if (step.refused) return where + "torch refuses";
        const { size, stride, offset } = after.layout;
        if (!same(size, step.size) || !same(stride, step.stride) || offset !== step.offset)
          return where + `${size} / ${stride} / ${offset}, not ${step.size} / ${step.stride} / ${step.offset}`;
        if (!step.empty && after.copied !== step.copied) return where + `copied ${after.copied}`;
        if (!step.empty && after.values.length !== step.cells) return where + `${after.values.length} cells`;
        const values = m.indices(size).map((index) => after.values[m.address(after.layout, index)]);
        if (!same(values, step.values)) return where + `${values}, not ${step.values}`;
        now = after;
      }
      return null;
    };"""
    assert_right(ask(laboratory, body, cases), 4_000)


def test_a_view_is_legal_where_torch_says_so(laboratory: Page) -> None:
    """Its strides, too; and what is said of the break is true of the numbers."""
    cases = list(golden.targets(6_000))
    legal = sum(case["wanted"] is not None for case in cases)
    assert 1_500 < legal < 5_500
    body = """return (i) => {
      const { target, wanted, ...layout } = cases[i];
      const { size, stride } = layout;
      const { stride: got, broken, dim, parts } = m.viewed(layout, target);
      const where = `${size} / ${stride} as ${target}: `;
      if (wanted ? !got || !same(got, wanted) : got) return `${where}${got}, not ${wanted}`;
      const list = m.chunks(layout);
      if (list.length) {
        // Chunks cover the dimensions; within one, every step lands where the next dimension ends.
        if (list[0].from !== 0 || list.at(-1).to !== size.length - 1) return `${where}chunks do not cover it`;
        for (const [n, { from, to, numel, step, wanted: joint }] of list.entries()) {
          if (n && list[n - 1].to !== from - 1) return `${where}chunks have gaps`;
          if (numel !== m.product(size.slice(from, to + 1))) return `${where}a chunk of ${numel}`;
          if (m.product(size) && from && (size[from - 1] === 1 || stride[from - 1] === joint)) return `${where}that is no break`;
          if (m.product(size) === 0) continue;
          const cells = m.indices(size.slice(from, to + 1)).map((index) =>
            m.address({ stride: stride.slice(from, to + 1), offset: 0 }, index));
          if (cells.some((cell, place) => cell !== place * step)) return `${where}chunk ${from} to ${to} is no even run`;
        }
      }
      if (got) return m.product(size) === 0 || !size.length || same(parts.flat(), target.keys()) || target.length === 0 ? null : `${where}parts ${JSON.stringify(parts)}`;
      // The dimension named really reaches out of its chunk: the whole does not divide it.
      const inside = m.product(target.slice(dim + 1)) / m.product(list.slice(list.indexOf(list.find((c) => c.from === broken.from)) + 1).map((c) => c.numel));
      return Number.isInteger(inside) && dim >= 0 && inside * target[dim] > broken.numel || dim < 0 || inside * target[dim] < broken.numel ? null : `${where}blames dimension ${dim}`;
    };"""
    assert_right(ask(laboratory, body, cases), 6_000)


def test_flags_are_torchs(laboratory: Page) -> None:
    cases = list(golden.flags(6_000))
    for flag in ("contiguous", "channels", "dense", "shared"):
        assert 150 < sum(bool(case[flag]) for case in cases) < 5_850, flag
    body = """return (i) => {
      const { contiguous, channels, dense, shared, cells, ...layout } = cases[i];
      const where = `${layout.size} / ${layout.stride}: `;
      if (m.isContiguous(layout) !== contiguous) return `${where}contiguous is ${contiguous}`;
      if (m.isChannelsLast(layout) !== channels) return `${where}channels_last is ${channels}`;
      if (m.isDense(layout) !== dense) return `${where}dense is ${dense}`;
      if (!same([...m.shared(layout)].sort((a, b) => a - b), shared)) return `${where}shared are ${shared}`;
      const read = m.indices(layout.size).map((index) => m.address(layout, index));
      if (!same(read, cells)) return `${where}reads ${cells}`;
      return m.reach(layout) === (cells.length ? Math.max(...cells) + 1 : 0) ? null : `${where}reach`;
    };"""
    assert_right(ask(laboratory, body, cases), 6_000)


def test_what_is_written_can_be_read(laboratory: Page) -> None:
    """As Python and as an address: both ways give the same method back."""
    texts = [step["text"] for case in golden.histories(1_500) for step in case["steps"]]
    texts += ["x.T", "T", ".mT", "x[:, ::2]", "x[..., None, 0]", "view((2, 3))", "x.permute([1, 0])", "narrow(dim=0, start=1, length=2)"]  # fmt: skip
    body = """return (i) => {
      const op = m.parse(given.cases[i]);
      const as = JSON.stringify(op);
      const written = m.write(op), packed = m.pack(op);
      if (new URLSearchParams({ ops: packed }).toString() !== `ops=${packed}`) return `${packed} does not travel`;
      return JSON.stringify(m.parse(written)) === as && JSON.stringify(m.unpack(packed)) === as ? null : `${given.cases[i]}: ${written}, ${packed}`;
    };"""
    outcome = compare(laboratory, "/strides/both.js", body, cases=texts)
    assert_right(outcome, 2_500)


def test_a_chain_is_its_methods_one_after_the_other(laboratory: Page) -> None:
    """Typed in one go it has the same methods, and ends where torch ends."""
    cases = [case for case in golden.histories(2_000) if len(case["steps"]) > 1]
    cases = [case for case in cases if not any(step["refused"] for step in case["steps"])]
    assert max(len(case["steps"]) for case in cases) == 4
    body = """return (i) => {
      const { base, cells, steps } = cases[i];
      const texts = steps.map(({ text }) => text.replace(/^x?\\.?/, ""));
      const typed = texts.reduce((so, text) => so + (text.startsWith("[") ? text : `.${text}`), i % 2 ? "x" : "");
      const ops = m.chain(typed).map(m.parse);
      if (JSON.stringify(ops) !== JSON.stringify(texts.map(m.parse))) return `${typed}: ${JSON.stringify(ops)}`;
      const { layout } = m.history({ ...base, cells, ops }).at(-1);
      const last = steps.at(-1);
      return same(layout.size, last.size) && same(layout.stride, last.stride) && layout.offset === last.offset ? null : `${typed}: ${JSON.stringify(layout)}`;
    };"""
    assert_right(ask(laboratory, body, cases), 700)


def test_what_is_no_method_is_refused(laboratory: Page) -> None:
    texts = [
        "",
        "x",
        "transpose",
        "transpose(a)",
        "view(2.5)",
        "[mask]",
        "[1.5]",
        "[::]]",
        "eval(1)",
    ]
    texts += [
        "constructor()",
        "toString()",
        "__proto__()",
        "index(0)",
        "transpose(0, 1",
        "()",
        "[1:2:3:4]",
    ]
    body = """return (i) => {
      try { return `${given.cases[i]} is ${JSON.stringify(m.parse(given.cases[i]))}`; }
      catch (error) { return error.constructor === Error && error.message.length > 10 ? null : String(error); }
    };"""
    assert_right(compare(laboratory, "/strides/both.js", body, cases=texts), len(texts))
