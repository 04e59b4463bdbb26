"""The autograd explorer says of random programs what torch says of them, line by line; in a real browser."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

from playwright.sync_api import Page

from tests.explorers import golden_autograd as golden
from tests.explorers.harness import assert_right, compare

# What `run.js` knows after a line, in the words of `golden_autograd.py`.
BODY = r"""
const near = (a, b) => a.length === b.length && a.every((value, i) => Object.is(value, b[i]) || Math.abs(value - b[i]) <= 2e-4 * Math.max(1, Math.abs(b[i])));
const as = JSON.stringify;
function first(wanted, got, path = "") {
  for (const key of Object.keys(wanted)) {
    const [a, b] = [wanted[key], got?.[key]];
    const here = `${path}.${key}`;
    if (Array.isArray(a) && a.length && typeof a[0] === "number" && ["values", "grad"].includes(key)) {
      if (!Array.isArray(b) || !near(b, a)) return `${here} ${as(b)}, not ${as(a)}`;
    } else if (a !== null && typeof a === "object") {
      if (b === null || typeof b !== "object") return `${here} ${as(b)}, not ${as(a)}`;
      const more = Object.keys(b).filter((name) => !(name in a));
      if (more.length) return `${here} has ${more}`;
      const found = first(a, b, here);
      if (found) return found;
    } else if (typeof a === "number" && typeof b === "number" ? !near([b], [a]) : a !== b) return `${here} ${as(b)}, not ${as(a)}`;
  }
  return null;
}
function told(shot) {
  const all = shot.nodes.map(({ one }) => one);
  const storages = [];
  const memory = (storage) => storages.includes(storage) ? storages.indexOf(storage) : storages.push(storage) - 1;
  const tensors = shot.tensors.map((t) => t.values === undefined ? { name: t.name, number: t.number, float: t.float ?? false } : {
    name: t.name, values: t.values, shape: t.shape, requires: t.requires, version: t.version, inference: t.inference, twin: t.twin,
    fn: t.fn.raises ? t.fn : { is: t.fn.is ? all.indexOf(t.fn.is) : null }, memory: memory(t.t.storage),
    grad: t.grad && { values: t.grad.values, inference: t.grad.inference },
  });
  const name = (tensor) => shot.tensors.find(({ t }) => t === tensor)?.name ?? null;
  const kept = new Map();
  const nodes = shot.nodes.map((node) => ({
    name: node.name, next: node.next.map((to) => to && all.indexOf(to)), variable: node.variable ? name(node.variable) : null,
    saved: Object.fromEntries(node.saved.filter(({ hidden }) => !hidden).map((kept) => [kept.part, kept.raises ? { raises: kept.raises } : kept]).sort()),
  }));
  for (const node of nodes) for (const [part, now] of Object.entries(node.saved)) if (!now.raises) {
    kept.set(now.memory, now.memory.data.length * now.memory.size);
    node.saved[part] = { values: now.values, memory: memory(now.memory) };
  }
  const bytes = [...kept.values()].reduce((a, b) => a + b, 0);
  const error = shot.error && `${shot.error.type}: ${shot.error.message}`;
  return { error, grad: shot.grad, inference: shot.inference, tensors, nodes, bytes };
}
return (i) => {
  const { code, steps, right } = JSON.parse(given.cases[i], (_, value) => ["Infinity", "-Infinity", "NaN"].includes(value) ? Number(value) : value);
  let shots;
  try { shots = m.run(code); } catch (error) { return `${code}\n${error.stack}`; }
  for (const [at, step] of steps.entries()) {
    if (!shots[at]) return `${code}\nstops before line ${at + 1}`;
    const wrong = first(step, told(shots[at]));
    if (wrong) return `${code.split("\n").slice(0, at + 1).join("\n")}\n→ ${wrong}`;
  }
  if (shots.length > steps.length) return `${code}\ngoes on`;
  if (right) for (const { name, t } of shots.at(-1).tensors) if (name in right) {
    if (t.grad ? !right[name] || !near(t.grad.right, right[name]) : right[name]) return `${code}\n${name} should have ${right[name]}, not ${t.grad?.right}`;
  }
  return null;
};"""


def case_text(case: Any) -> str:
    """Return a case as JSON, with text where it has a number that JSON has not."""
    return json.dumps(_in_json(case), allow_nan=False)


def _in_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _in_json(of) for name, of in value.items()}
    if isinstance(value, list | tuple):
        return [_in_json(of) for of in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def test_programs_do_what_they_do_in_torch(laboratory: Page) -> None:
    """Flags, versions, memory, gradients, nodes, edges, what is saved, and the words of every error."""
    cases = list(golden.programs(2_000))
    assert sum(len(case["code"].split("\n")) < len(case["steps"]) for case in cases) > 150, "loops"
    steps = [step for case in cases for step in case["steps"]]
    names = Counter(node["name"] for step in steps for node in step["nodes"])
    assert len(names) == 27 and min(names.values()) > 60, names
    saved = [part for step in steps for node in step["nodes"] for part in node["saved"].values()]
    assert sum("expected version" in part.get("raises", "") for part in saved) > 300
    assert sum("second time" in part.get("raises", "") for part in saved) > 800
    errors = Counter(str(step["error"]).split("[")[0][:50] for step in steps if step["error"])
    assert len(errors) > 20 and sum(errors.values()) < len(cases) / 2, errors
    assert sum(spoilt(case) for case in cases) > 25, "gradients that are wrong without an error"
    outcome = compare(laboratory, "/autograd/run.js", BODY, cases=[case_text(c) for c in cases])
    assert_right(outcome, 2_000)


def spoilt(case: golden.Case) -> bool:
    """Say whether some gradient is not what the recorded values would have given."""
    found = {t["name"]: t.get("grad") for t in case["steps"][-1]["tensors"]}
    return any(
        right and found[name] and max(abs(a - b) for a, b in zip(found[name]["values"], right, strict=True)) > 1e-3
        for name, right in (case["right"] or {}).items()
    )  # fmt: skip


def test_what_the_page_does_not_know_it_says(laboratory: Page) -> None:
    """A sentence for each line that is no Python, or more Python than the page knows."""
    texts = [
        "x = ", "x + ", "= 2", "x = torch.randn(2)", "x = torch.tensor([1, 2])", "x = torch.ones(9)",
        "x = (1. + 2", "x = x ** 4", "x = x ** 0.5", "x @= x", "x **= 2", "for i in x:", "import torch", "print(x)",
        "for i in range(9):", "for i in range(2):", "for i in range(2):\nx = 1", "while x:", "x = torch.tensor([[1.], [1., 2.]])",
        "x = torch.ones(4, 4)", "x = torch.ones(2, 2, 1)", "x = torch.softmax(x)", "x.tanh()", "x = torch.ones(2)\nx.sum(0.5)", "x = 1 / 0",
        "for i in range(5):\n    for j in range(5):\n        for k in range(5):\n            pass", "x[0] = 1", "x.data = y", "x.grad = y", "with x:", "with torch.no_grad()", "    x = 1",
        "with torch.no_grad():\nx = 1", "with torch.no_grad():", "x = 'a'", "x.backward(create_graph=True)",
        "x = torch.ones(2)\nx.exp", "x = torch.ones(2)\nx.exp(2)", "x = torch.ones(2)\nx[1:1]",
        "x = torch.ones(2, requires_grad=True)\ny = x * x.grad", "x = torch.ones(2)\ng = x.grad",
        "with torch.inference_mode():\n    x = torch.ones(2, requires_grad=True)", "None = 2", "x = torch.no_grad()",
    ]  # fmt: skip
    body = """return (i) => {
      const { error } = m.run(given.cases[i]).at(-1);
      if (!error) return `${given.cases[i]} passes`;
      return error.message.length > 9 && /^(Page|SyntaxError|IndentationError|TypeError|NameError|ZeroDivisionError)$/.test(error.type) ? null : `${given.cases[i]}: ${error.type}: ${error.message}`;
    };"""
    assert_right(compare(laboratory, "/autograd/run.js", body, cases=texts), len(texts))
