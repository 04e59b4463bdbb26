"""Random FX graphs of ATen operators, as steps; and what torch makes of a graph.

A step is (name, op, target, args, kwargs); "%x" in the arguments is the value of node x.
`probes.fx_steps.graph_from_steps` makes a graph of them.
"""

from collections.abc import Sequence
from typing import Any

import torch

from grader import Mismatch, assert_equal, assert_holds, assert_same_bits, compared, draw_one
from grader.ch07_compile.probes.fx_steps import module_from_steps, run_twice

Step = tuple[str, str, str, tuple[Any, ...], dict[str, Any]]
Steps = list[Step]

SIDE = 4
"""Every value of a random graph is a float32 matrix (4, 4)."""

UNARY = ("sin", "cos", "neg", "abs", "relu", "tanh")
BINARY = ("add.Tensor", "mul.Tensor", "sub.Tensor", "maximum.default")
CONSTANTS = (1, 1.0, True, 2, 2.0, 0.0, -0.0)


def call(name: str, target: str, *args: Any, **kwargs: Any) -> Step:
    """Return the step of an ATen call, "aten." and ".default" added where they are left out."""
    target = target if target.startswith(("operator", "aten", "print")) else f"aten.{target}"
    if target.startswith("aten") and target.count(".") == 1:
        target += ".default"
    return (name, "call_function", target, args, kwargs)


def reads(*names: str) -> Steps:
    """Return a placeholder for each name."""
    return [(name, "placeholder", name, (), {}) for name in names]


def gives(*values: Any) -> Step:
    """Return the output step of a tuple of values."""
    return ("output", "output", "output", (values,), {})


def random_steps(
    rng: torch.Generator,
    kinds: Sequence[str],
    length: int,
    *,
    inputs: int = 2,
    outputs: int = 2,
    tensors: Sequence[str] = (),
) -> Steps:
    """Draw a graph of `length` calls.

    kinds: of unary, binary, scalar, random, write, view, sort, make, mm
    tensors: attributes that it reads first
    """
    steps = reads(*[f"x{number}" for number in range(inputs)])
    steps += [(f"get_{name}", "get_attr", name, (), {}) for name in tensors]
    pool = [f"%{step[0]}" for step in steps]
    for number in range(length):
        one, two, name = draw_one(rng, pool), draw_one(rng, pool), f"v{number}"
        match draw_one(rng, kinds):
            case "unary":
                steps.append(call(name, draw_one(rng, UNARY), one))
            case "binary":
                steps.append(call(name, draw_one(rng, BINARY), one, two))
            case "scalar":
                kind = draw_one(rng, ["add.Tensor", "mul.Tensor"])
                steps.append(call(name, kind, one, draw_one(rng, CONSTANTS)))
            case "random":
                steps.append(call(name, draw_one(rng, ["rand_like", "randn_like"]), one))
            case "write":
                # by a number: torch refuses to write what it reads through another view
                kind = draw_one(rng, ["add_.Tensor", "mul_.Tensor"])
                steps.append(call(name, kind, one, draw_one(rng, [1, 2.0, -1])))
            case "view":
                steps.append(call(name, draw_one(rng, ["t", "alias"]), one))
            case "sort":
                steps.append(call(f"{name}s", "sort", one, draw_one(rng, [0, 1])))
                steps.append(call(name, "operator.getitem", f"%{name}s", 0))
            case "make":
                value = draw_one(rng, [1.0, 2.0])
                steps.append(call(name, "full", [SIDE, SIDE], value))
            case "mm":
                steps.append(call(name, "mm", one, two))
        pool.append(f"%{name}")
    # results that nothing may write to any more come out as they are
    chosen = [pool[-1], *(draw_one(rng, pool[inputs:]) for _ in range(outputs - 1))]
    return [*steps, gives(*chosen)]


def random_inputs(rng: torch.Generator, count: int = 2) -> list[torch.Tensor]:
    """Return `count` matrices of quarters, zeros of both signs among them."""
    whole = torch.randint(-8, 9, (count, SIDE, SIDE), generator=rng)
    zero = torch.where(torch.rand(count, SIDE, SIDE, generator=rng) < 0.2, -0.0, 0.0)
    return [one.clone() for one in torch.where(whole == 0, zero, whole / 4).unbind()]


def calls_of(steps: Sequence[Any]) -> list[str]:
    """Return the targets of the calls, in order."""
    return [step[2] for step in steps if step[1].startswith("call")]


def as_text(steps: Sequence[Any]) -> str:
    """Return a graph as short text, e.g. "a = sin(x); b = rand_like(x); return (a, b)"."""
    lines = []
    for name, op, target, args, kwargs in steps:
        short = target.removeprefix("aten.").removesuffix(".default")
        given = [_text(arg) for arg in args] + [f"{k}={_text(v)}" for k, v in kwargs.items()]
        if op == "output":
            lines.append(f"return {_text(args[0])}")
        elif op == "get_attr":
            lines.append(f"{name} = self.{target}")
        elif op != "placeholder":
            lines.append(f"{name} = {short}({', '.join(given)})")
    return "; ".join(lines)


def _text(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_text, value))})"
    return value[1:] if isinstance(value, str) and value.startswith("%") else repr(value)


def drawn(steps: Sequence[Any]) -> list[dict[str, Any]]:
    """Return a graph as a verdict draws it (see `grader.evidence.wire.graph.Node`)."""
    nodes = []
    for name, op, target, args, kwargs in steps:
        given = [_text(arg) for arg in args] + [f"{k}={_text(v)}" for k, v in kwargs.items()]
        names = [one[1:] for one in _values((args, kwargs)) if str(one).startswith("%")]
        short = target.removeprefix("aten.").removesuffix(".default")
        nodes.append({"name": name, "op": op, "target": short, "inputs": names,
                      "arguments": ", ".join(given)})  # fmt: skip
    return nodes


def _values(value: Any) -> list[Any]:
    """Return what stands in arguments, however deep."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        return [one for part in value for one in _values(part)]
    return [value]


def run_steps(steps: Any, inputs: Any, attributes: Any = None) -> list[dict[str, Any]]:
    """Return what two runs of a graph give and leave in its inputs. Raises what torch raises."""
    with torch.random.fork_rng(devices=[]):
        return run_twice(module_from_steps(steps, attributes or {}), inputs)


LONG = 12
"""Nodes of a graph that a sentence does not hold any more; it is only drawn."""


def assert_same_runs(got: Any, expected: Any, steps: Any, now: Any = None) -> None:
    """Fail unless two runs gave the same bits and left the same bits in their inputs.

    now: the steps that a pass made of `steps`
    """
    where = f" The graph was: {as_text(steps)}" if len(steps) <= LONG else ""
    graphs = [("the graph", drawn(steps))] + ([("after your pass", drawn(now))] if now else [])
    for number, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        for part in ("outputs", "inputs"):
            count = f"The number of {part}.{where}"
            assert_equal(len(mine[part]), len(theirs[part]), count, graphs=graphs)
            for at, (one, other) in enumerate(zip(mine[part], theirs[part], strict=True)):
                try:
                    assert_same_bits(one, other)
                except Mismatch as mismatch:
                    which = f"{part[:-1]} {at} of run {number + 1}"
                    raise Mismatch(
                        f"{which[0].upper()}{which[1:]} differs: {mismatch.what}{where}",
                        mismatch.rows,
                        graphs=graphs,
                    ) from None


def assert_equivalent(got: Any, steps: Any, inputs: Any, attributes: Any = None) -> None:
    """Fail unless a pass kept what `steps` compute, and a second pass changes nothing.

    got: what `probes.fx_steps.apply_twice` gave
    """
    expected = run_steps(steps, inputs, attributes)
    assert_same_runs(got["runs"], expected, steps, got["once"])
    # the graph that came back is run here too
    read = {step[2] for step in got["once"] if step[1] == "get_attr"}
    for name in sorted(read - got["attributes"].keys()):
        raise Mismatch(f"The new graph reads `{name}`, which is no tensor of the module.")
    here = run_steps(got["once"], inputs, got["attributes"])
    assert_same_runs(here, expected, steps, got["once"])
    assert_holds(
        got["recompiled"], "The module's code is not that of its new graph: `recompile()`."
    )
    graphs = [("after the first", drawn(got["once"])), ("after the second", drawn(got["twice"]))]
    # the names of new nodes and attributes are free, and no evidence
    first, second = as_text(got["once"]), as_text(got["twice"])
    compared(first == second)
    if first != second:
        raise Mismatch(
            f"A second run of the pass changed the graph again. It was: {as_text(steps)}",
            (("expected", first), ("got", second)),
            graphs=graphs,
        )


def assert_calls_at_most(few: int, got: Any, steps: Any, on: str = "") -> None:
    """Fail if a pass left more than `few` calls of the graph that `steps` describe.

    got: what `probes.fx_steps.apply_twice` gave; on: what the graph ran on, for the message
    """
    left = len(calls_of(got["once"]))
    if left > few:
        raise Mismatch(
            f"More calls are left than must be{on}.",
            (
                ("expected", f"{few} calls, or fewer"),
                ("got", f"{left} calls: {as_text(got['once'])}"),
                ("of the graph", as_text(steps)),
            ),
        )
