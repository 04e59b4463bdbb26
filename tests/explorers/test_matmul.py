"""The matmul explorer says what torch does: thousands of random shapes and equations, in a real browser."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from playwright.sync_api import Page

from tests.explorers import shapes
from tests.explorers.harness import assert_right, compare

PRODUCTS = "/matmul/products.js"
SAME = """
  const text = (value) => JSON.stringify(value);
  const differ = (what, got, wanted) => text(got) === text(wanted) ? null : `${what}: ${text(got)}, not ${text(wanted)}`;
"""
# What the explorer says of a plan, as the profiler says it of a run.
TRACE = """
  const work = plan.steps.filter((step) => step.kernel);
  const clones = plan.steps.filter((step) => step.copy).map((step) => step.shape);
  const counted = work.filter((step) => ["mm", "bmm"].includes(step.kernel)).reduce((sum, step) => sum + step.flops, 0);
  const wanted = given.trace[i];
"""


@pytest.mark.parametrize("name", shapes.FUNCTIONS)
def test_each_function_takes_what_torch_takes(laboratory: Page, name: str) -> None:
    """The same result's shape, or torch's own words against it."""
    cases = shapes.pairs(4_000, seed=1)
    grads = shapes.grads(4_000, seed=1)
    asked = [
        shapes.outcome(shapes.FUNCTIONS[name], *shapes.tensors(pair, grads=grad))
        for pair, grad in zip(cases, grads, strict=True)
    ]
    assert 40 < sum(shape is not None for shape, _ in asked) < 3_900, "both answers are looked at"
    outcome = compare(
        laboratory,
        PRODUCTS,
        f"""{SAME} return (i) => {{
          const [a, b] = given.shapes[i];
          const [shape, said] = given.wanted[i];
          const got = m.FUNCTIONS.{name}(a, b, given.grads[i]);
          return differ(text([a, b]), [got.shape ?? null, got.said ?? ""], [shape, said])
            ?? (got.shape || got.why ? null : `${{text([a, b])}}: no reason of our own`);
        }};""",
        shapes=cases,
        grads=grads,
        wanted=asked,
    )
    assert_right(outcome, 4_000)


@pytest.mark.parametrize("name", ["matmul", "linear"])
def test_what_runs_is_what_torch_runs(laboratory: Page, name: str) -> None:
    """Kernel, the kernel's shapes, what is cloned, FLOPs; also where operands need a gradient."""
    function = shapes.FUNCTIONS[name]
    fit: list[Any] = []
    runs: list[Any] = []
    for pair, grads in zip(shapes.pairs(3_000, seed=2), shapes.grads(3_000, seed=2), strict=True):
        run = partial(function, *shapes.tensors(pair, grads=grads))
        if shapes.outcome(run)[0] is not None:
            fit.append([*pair, grads])
            runs.append(run)
    traces = shapes.traces(runs)
    outcome = compare(
        laboratory,
        PRODUCTS,
        f"""{SAME} return (i) => {{
          const plan = m.FUNCTIONS.{name}(...given.cases[i]);
          {TRACE}
          return differ(text(given.cases[i]),
            [work.map((step) => step.kernel), [plan.operands.map((view) => view.shape)], clones, counted],
            [wanted.kernels, wanted.operands, wanted.clones, given.flops[i]]);
        }};""",
        cases=fit,
        trace=traces,
        flops=[shapes.flops(run) for run in runs],
    )
    assert_right(outcome, 600)
    seen = {kernel for trace in traces for kernel in trace["kernels"]}
    assert seen >= ({"dot", "mv", "mm", "bmm"} if name == "matmul" else {"dot", "mv", "mm"})
    assert name == "linear" or sum(bool(trace["clones"]) for trace in traces) > 100


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_dtype_changes_nothing_but_the_bytes(dtype: torch.dtype) -> None:
    """The explorer multiplies elements by the item's size: kernels and clones must be the same."""
    pairs = [((2, 1, 3, 4), (1, 5, 4, 2)), ((2, 3, 4), (4, 5)), ((4,), (8, 4, 3)), ((3, 4), (4,))]
    plain, other = (
        shapes.traces([partial(torch.matmul, *shapes.tensors(pair, kind)) for pair in pairs])
        for kind in (torch.float32, dtype)
    )
    assert plain == other


def test_einsum_says_what_torch_says(laboratory: Page) -> None:
    """Result, letters, every sum, mul and bmm with its shapes, every clone; or torch's own words."""
    cases = shapes.equations(5_000, seed=3)
    asked: list[tuple[list[int] | None, str]] = []
    runs: dict[int, Any] = {}
    for i, (equation, sizes) in enumerate(cases):
        run = partial(torch.einsum, equation, *shapes.tensors(sizes))
        asked.append(shapes.outcome(run))
        if asked[-1][0] is not None:
            runs[i] = run
    assert len(cases) - len(runs) > 400, "faults are looked at, too"
    traces: list[Any] = [None] * len(cases)
    for i, trace in zip(runs, shapes.traces(list(runs.values())), strict=True):
        traces[i] = trace | {"flops": shapes.flops(runs[i])}
    outcome = compare(
        laboratory,
        "/matmul/einsum.js",
        f"""{SAME} return (i) => {{
          const [equation, sizes] = given.cases[i];
          const [shape, said] = given.wanted[i];
          const plan = m.einsum(equation, sizes);
          const name = `${{equation}} of ${{text(sizes)}}`;
          if (shape === null || !plan.shape) return differ(name, [plan.shape ?? null, plan.said ?? "", Boolean(plan.why)], [shape, said, shape === null]);
          {TRACE}
          const bmm = (kernels, operands) => operands.filter((_, at) => kernels[at] === "bmm");
          return differ(name, plan.shape, shape)
            ?? differ(name, [work.map((step) => step.kernel), bmm(work.map((s) => s.kernel), work.map((s) => s.operands)), clones, counted],
              [wanted.kernels, bmm(wanted.kernels, wanted.operands), wanted.clones, wanted.flops]);
        }};""",
        cases=cases,
        wanted=asked,
        trace=traces,
    )
    assert_right(outcome, 5_000)
    seen = [trace for trace in traces if trace]
    assert {"bmm", "mul", "sum"} <= {kernel for trace in seen for kernel in trace["kernels"]}
    assert sum(bool(trace["clones"]) for trace in seen) > 100


def test_copied_bytes_are_what_torch_allocates(laboratory: Page) -> None:
    """What costs.js adds up for clone(), against the clones that the profiler saw."""
    fit = [
        pair
        for pair in shapes.pairs(1_500, seed=4)
        if shapes.outcome(torch.matmul, *shapes.tensors(pair))[0] is not None
    ]
    traces = shapes.traces([partial(torch.matmul, *shapes.tensors(pair)) for pair in fit])
    copied = [sum(torch.Size(shape).numel() for shape in trace["clones"]) for trace in traces]
    outcome = compare(
        laboratory,
        "/matmul/costs.js",
        f"""{SAME} return (i) => {{
          const {{ copied, read, write, copyRead }} = m.moved(given.plans[i]);
          return differ(text(given.plans[i].shape), copied, given.copied[i]) ?? (read + write + copyRead >= 0 ? null : "not a number");
        }};""",
        plans=laboratory.evaluate(
            """async (pairs) => {
              const { FUNCTIONS } = await import("/matmul/products.js");
              return pairs.map(([a, b]) => FUNCTIONS.matmul(a, b));
            }""",
            fit,
        ),
        copied=copied,
    )
    assert_right(outcome, 900)
    assert sum(map(bool, copied)) > 50


def test_the_equation_for_two_shapes_means_matmul(laboratory: Page) -> None:
    """Wherever matmul or linear takes the shapes, the offered equation gives the same numbers."""
    every = [p for p in shapes.pairs(1_500, seed=5) if all(p)]
    for name, weight in (("matmul", "false"), ("linear", "true")):
        function = shapes.FUNCTIONS[name]
        fit = [p for p in every if shapes.outcome(function, *shapes.tensors(p))[0] is not None]
        equations = laboratory.evaluate(
            f"""async (pairs) => {{
              const {{ letters, equationOf }} = await import("/matmul/axes.js");
              return pairs.map(([a, b]) => equationOf(letters(a, b, {weight})));
            }}""",
            fit,
        )
        generator = torch.Generator().manual_seed(5)
        for (a, b), equation in zip(fit, equations, strict=True):
            x, y = (
                torch.randint(-4, 5, size, generator=generator, dtype=torch.int64)
                for size in (a, b)
            )
            left = function(x.double(), y.double())
            assert torch.equal(left, torch.einsum(equation, x.double(), y.double())), equation


def test_a_tracing_mode_changes_the_road() -> None:
    """Why the profiler watches here, and what the page's fine print says of it."""
    pair = shapes.tensors([(2, 3, 4), (1, 4, 5)])
    (seen,) = shapes.traces([partial(torch.matmul, *pair)])
    assert seen["kernels"] == ["bmm"]
    (traced,) = shapes.traces([partial(shapes.flops, partial(torch.matmul, *pair))])
    assert traced["kernels"] == ["mm"]


def test_a_gradient_changes_the_road() -> None:
    """The fine print: for an operand that needs a gradient matmul folds, even at the price of copies."""
    pair = [(3, 4), (2, 4, 5)]
    plain, wanting = shapes.traces(
        [
            partial(torch.matmul, *shapes.tensors(pair, grads=grads))
            for grads in ((False, False), (True, False))
        ]
    )
    assert plain["kernels"] == ["bmm"] and not plain["clones"]
    assert wanting["kernels"] == ["mm"] and len(wanting["clones"]) == 2


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("2, 3", [2, 3]), ("(2,3,)", [2, 3]), ("[2 3]", [2, 3]), ("2×3", [2, 3]), ("2x3", [2, 3]), ("5,", [5]),
     (" 7 ", [7]), ("", []), ("()", []), ("0", [0]), ("1,2,3,4,5,6", [1, 2, 3, 4, 5, 6]),
     ("1,2,3,4,5,6,7", None), ("-1", None), ("2,,3", None), ("a", None), ("1.5", None), ("100000", None)],
)  # fmt: skip
def test_shapes_are_read(laboratory: Page, typed: str, meant: list[int] | None) -> None:
    read = """async (text) => (await import("/matmul/views.js")).parseShape(text)"""
    assert laboratory.evaluate(read, typed) == meant
