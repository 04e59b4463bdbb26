"""The modules explorer walks as torch walks, over thousands of random models; in a real browser."""

from __future__ import annotations

import json
import keyword
from collections import Counter

import pytest
import torch
from playwright.sync_api import Page
from torch import nn

from tests.explorers import golden_modules as golden
from tests.explorers.harness import Outcome, assert_right, compare

READ = """const cases = given.cases.map((text) => JSON.parse(text));
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const made = (statements) => m.build(statements.map((text) => text.split("-")));
  // Tells objects apart, as identities() does: the first registered path that leads to one.
  const identities = (root) => {
    const first = new Map();
    for (const call of ["named_modules", "named_parameters", "named_buffers"])
      for (const { path, object } of m.given(m.walk(root, { call, once: false, recurse: true })))
        if (!first.has(object)) first.set(object, path);
    return (object) => first.get(object);
  };
  // All that the tree shows, and who is who.
  const drawn = (root) => {
    const places = m.rows(root);
    const first = (object) => object && places.findIndex((row) => row.object === object);
    return places.map(({ path, species, object, owner, listed }) => [path, species, listed, first(object),
      object?.kind ?? object?.shape, object?.sizes ?? object?.trainable, owner?.unsaved.has(path.split(".").at(-1))]);
  };
  const called = (root, calls) => {
    const who = identities(root);
    return calls.map(([call, once, recurse]) => m.given(m.walk(root, { call, once, recurse }))
      .map(({ path, object }) => [call.startsWith("named_") || call === "state_dict" ? path : null, who(object)]));
  };
"""


@pytest.fixture
def laboratory(laboratory: Page) -> Page:
    """The page, with all modules under one name."""
    both = "".join(f'export * from "./{name}.js";' for name in ("graph", "walks", "python"))
    laboratory.route(
        "**/both.js", lambda route: route.fulfill(body=both, content_type="text/javascript")
    )
    return laboratory


def ask(page: Page, body: str, cases: list[golden.Case]) -> Outcome:
    """Compare in the page; a case travels as JSON."""
    return compare(
        page, "/modules/both.js", READ + body, cases=[json.dumps(case) for case in cases]
    )


def test_every_walk_gives_what_torch_gives(laboratory: Page) -> None:
    """Names, objects and order of every call, what the memo passed over, and the counts."""
    cases = [
        {
            "statements": statements,
            "calls": golden.CALLS,
            **golden.walks(model),
            "passed": golden.passed_over(model),
        }
        for statements, model in golden.programs(2_000)
    ]
    verbs = Counter(text.split("-")[1] for case in cases for text in case["statements"])
    assert (
        min(verbs[verb] for verb in ("is", "del", "None", "unsaved", "saved", "frozen", "list"))
        > 200
    ), verbs
    assert sum(bool(case["passed"]["named_modules"]) for case in cases) > 500
    assert sum(len(case["passed"]["named_parameters"]) for case in cases) > 1_000
    assert sum(case["counts"]["keys"] > case["counts"]["tensors"] for case in cases) > 250
    assert sum(case["counts"]["hidden"] > 0 for case in cases) > 60
    body = """return (i) => {
      const { statements, calls, called: wanted, counts, passed } = cases[i];
      const where = `${statements.join("*")}: `;
      const root = made(statements);
      const got = called(root, calls);
      const off = got.findIndex((list, n) => !same(list, wanted[n]));
      if (off >= 0) return `${where}${calls[off]} ${JSON.stringify(got[off])}, not ${JSON.stringify(wanted[off])}`;
      if (!same({ ...m.counts(root) }, counts)) return `${where}${JSON.stringify(m.counts(root))}, not ${JSON.stringify(counts)}`;
      for (const [call, expected] of Object.entries(passed)) {
        const seen = m.walk(root, { call, once: true, recurse: true }).filter(({ what }) => what === "seen")
          .map(({ path, first }) => [path, first]).sort(([a], [b]) => a < b ? -1 : 1);
        if (!same(seen, expected)) return `${where}${call} passes over ${JSON.stringify(seen)}, not ${JSON.stringify(expected)}`;
      }
      return null;
    };"""
    assert_right(ask(laboratory, body, cases), 2_000)


def test_the_steps_of_a_walk_agree(laboratory: Page) -> None:
    """In the order of the tree; None and what is not saved is passed over; the memo grows by what is found."""
    cases = [{"statements": statements} for statements, _ in golden.programs(600, seed=1)]
    body = """return (i) => {
      const root = made(cases[i].statements);
      const places = m.rows(root);
      const order = new Map(places.map(({ path }, n) => [path, n]));
      for (const call of ["named_children", "named_modules", "named_parameters", "named_buffers", "state_dict"]) {
        const where = `${cases[i].statements.join("*")}: ${call}: `;
        let before = -1, had = [];
        for (const { what, path, object, memo } of m.walk(root, { call, once: true, recurse: true })) {
          const row = places[order.get(path)];
          if (row.object !== object || row.listed) return `${where}${path} is something else`;
          if ((what === "none") !== (object === null)) return `${where}${path} is ${what}`;
          if (order.get(path) <= before) return `${where}${path} is out of order`;
          before = order.get(path);
          if (call === "state_dict") { if (memo) return `${where}a memo`; continue; }
          const now = [...memo.modules, ...memo.tensors];
          if (what === "given" && !now.includes(path)) return `${where}${path} is not in the memo`;
          if (what !== "given" && now.includes(path)) return `${where}${path} is in the memo`;
          if (had.some((known) => !now.includes(known))) return `${where}the memo forgets`;
          had = now;
        }
      }
      return null;
    };"""
    assert_right(ask(laboratory, body, cases), 600)


def test_the_address_keeps_the_model(laboratory: Page) -> None:
    """The fewest statements make the same model, and make themselves again; nothing needs escaping."""
    cases = [
        {"statements": statements, "calls": golden.CALLS, "called": golden.walks(model)["called"]}
        for statements, model in golden.programs(1_000, seed=2)
    ]
    body = """return (i) => {
      const { statements, calls, called: wanted } = cases[i];
      const root = made(statements);
      const text = m.pack(m.statements(root));
      const where = `${statements.join("*")} is ${text}: `;
      if (new URLSearchParams({ model: text }).toString() !== `model=${text}`) return `${where}does not travel`;
      const again = m.build(m.unpack(text));
      if (m.pack(m.statements(again)) !== text) return `${where}again ${m.pack(m.statements(again))}`;
      if (!same(drawn(root), drawn(again))) return `${where}drawn otherwise`;
      return same(called(again, calls), wanted) ? null : `${where}walks otherwise`;
    };"""
    assert_right(ask(laboratory, body, cases), 1_000)


def test_no_statement_of_an_address_is_idle(laboratory: Page) -> None:
    """Without it, the model is another one or cannot be built."""
    cases = [{"statements": statements} for statements, _ in golden.programs(300, seed=5)]
    body = """return (i) => {
      const root = made(cases[i].statements);
      const list = m.statements(root);
      const idle = list.find((_, n) => {
        try { return same(drawn(m.build(list.toSpliced(n, 1))), drawn(root)); } catch { return false; }
      });
      return idle ? `${m.pack(list)}: ${idle.join("-")}` : null;
    };"""
    assert_right(ask(laboratory, body, cases), 300)


def test_the_python_that_is_shown_makes_the_model(laboratory: Page) -> None:
    """The class, run by Python, has the walks of the model that the statements made."""
    known = list(golden.programs(500, seed=3))
    texts = laboratory.evaluate(
        """async (all) => {
          const m = await import("/modules/both.js");
          return all.map((statements) => m.python(m.build(statements.map((text) => text.split("-")))));
        }""",
        [statements for statements, _ in known],
    )
    for (statements, model), text in zip(known, texts, strict=True):
        again = golden.from_source(text)
        assert golden.walks(again) == golden.walks(model), f"{statements}\n{text}"
        assert golden.flags(again) == golden.flags(model), f"{statements}\n{text}"


def test_each_edit_is_said_in_python(laboratory: Page) -> None:
    """Carried out line by line in Python, the statements make what torch made of them."""
    known = list(golden.programs(300, seed=4))
    texts = laboratory.evaluate(
        """async (all) => {
          const m = await import("/modules/both.js");
          return all.map((statements) => {
            const root = m.module("Model");
            return statements.map((text) => {
              const said = m.line(root, text.split("-"));
              m.act(root, text.split("-"));
              return said;
            });
          });
        }""",
        [statements for statements, _ in known],
    )
    for (_, model), lines in zip(known, texts, strict=True):
        again = nn.Module()
        for line in lines:
            exec(line, {"torch": torch, "nn": nn, "self": again})
        assert golden.walks(again) == golden.walks(model), "\n".join(lines)
        assert golden.flags(again) == golden.flags(model), "\n".join(lines)


def test_names_that_python_or_torch_needs_are_refused(laboratory: Page) -> None:
    names = [name for name in dir(nn.Module()) if not name.startswith("_")]
    names += keyword.kwlist
    fine = ["stem", "layer1", "last_act", "Forward", "act_", "weights"]
    body = """return (i) => {
      const [name, taken] = JSON.parse(given.cases[i]);
      try { m.build([[name, "ReLU"]]); } catch (error) {
        return taken && (error.message.startsWith(`${name} is taken`) || name.length > 20) ? null : String(error);
      }
      return taken ? name : null;
    };"""
    cases = [json.dumps([name, True]) for name in names] + [json.dumps([n, False]) for n in fine]
    assert_right(compare(laboratory, "/modules/both.js", body, cases=cases), 90)


def test_what_is_no_model_is_refused(laboratory: Page) -> None:
    """With a sentence, not with an error of ours."""
    texts = [
        "a", "a-", "-ReLU", "a-Explode", "a-constructor", "a-Linear-4", "a-Linear-4-0", "a-Linear-4-x",
        "a-ReLU*b.c-ReLU", "a-ReLU*a.b-ReLU", "a-is-b", "a-is", "a-is-", "a.b-is-a", "a-del", "-del", "a-None",
        "a-None-lists", "a-None-toString", "a-Sequential*a.1-ReLU", "a-Sequential*a.x-ReLU", "a-list*a.0-None-modules",
        "a-list*a.0-Parameter-2", "a-list*a.0-list", "a-Sequential*a.0-Buffer-2", "a-Sequential*a.0-is-a",
        "a-Module*a.b-Module*a.b.c-is-a", "a-ReLU*a-Parameter-2", "a-Parameter-2*a-ReLU", "a-Parameter-2-2-2-2-2",
        "a-ReLU-3", "0-ReLU", "a b-ReLU", "__dict__-ReLU", "a-frozen", "a-Parameter-2*a-unsaved", "é-ReLU",
        "a-Module*a.a-Module*a.a.a-Module*a.a.a.a-Module*a.a.a.a.a-Module*a.a.a.a.a.a-Module",
        "*".join(f"a{i}-ReLU" for i in range(61)),
    ]  # fmt: skip
    body = """return (i) => {
      const text = given.cases[i];
      try { return `${text} is ${m.pack(m.statements(m.build(m.unpack(text))))}`; }
      catch (error) { return error.constructor === Error && error.message.length > 10 ? null : `${text}: ${error}`; }
    };"""
    assert_right(compare(laboratory, "/modules/both.js", body, cases=texts), len(texts))
