"""Scenarios for `Dispatcher`: made short, drawn at random, and as code to paste; see probes/walks.py."""

from collections.abc import Sequence
from random import Random
from typing import Any

from grader.ch09_dispatch.dispatcher_model import ORDER

Scenario = dict[str, Any]
Action = Any

CODE = {
    "cpu": "torch.ones(2)",
    "meta": 'torch.ones(2, device="meta")',
    "sparse": "torch.ones(2).to_sparse()",
    "conj": "torch.ones(2, dtype=torch.complex64).conj()",
    "inference": "of_inference",
}
"""The tensors of a scenario; `of_inference` is a name of the notebook's."""

CALL = ["call", "f", ["cpu"], {}]


def call(*args: Any, op: str = "f", **kwargs: Any) -> list[Any]:
    """Return the step that calls `op`."""
    return ["call", op, list(args), kwargs]


def scenario(
    kernels: dict[str, Action] | Sequence[tuple[str | None, str, Action]],
    *steps: list[Any],
    order: Sequence[str] = ORDER,
) -> Scenario:
    """Return a scenario; `kernels` may be a dict from keys to actions of the operator `f`."""
    if isinstance(kernels, dict):
        kernels = [("f", key, action) for key, action in kernels.items()]
    found = [list(one) for one in kernels]
    return {"order": list(order), "kernels": found, "steps": list(steps) or [CALL]}


def chain(*keys: str) -> dict[str, Action]:
    """Return kernels that hand the call on, the last of which computes."""
    return {**dict.fromkeys(keys, "hands on"), keys[-1]: "computes"}


def random_walk(random: Random) -> Scenario:
    """Return a scenario in which everything that has a rule may occur."""
    order = list(ORDER)
    random.shuffle(order)
    kernels: list[tuple[str | None, str, Action]] = []
    for key in order:
        last = key == order[-1]
        drawn = random.choice(["hands on", "hands on", "fallthrough", "computes"])
        if random.random() < 0.7:
            kernels.append(("f", key, "computes" if last else drawn))
        if random.random() < 0.4:
            kernels.append((None, key, "fallthrough" if random.random() < 0.5 else "computes"))
    tensor = random.choice(["cpu", "meta", "sparse", "conj"])
    steps = [call(tensor)]
    for guard in random.sample(["including", "excluding"], 2):
        steps = [[guard, random.sample(order, random.randint(1, 4)), steps]]
    return scenario(kernels, *steps, call(tensor), order=order)


def as_code(played: Scenario) -> str:
    """Return a scenario as code to paste."""
    lines = [f"d = Dispatcher({played['order']!r})"]
    for op, key, action in played["kernels"]:
        lines += registration(op, key, action)
    return "\n".join([*lines, *steps_as_code(played["steps"])])


def registration(op: str | None, key: str, action: Action) -> list[str]:
    """Return the lines that register a kernel."""
    where = f"register({op!r}, {key!r}, " if op else f"register_fallback({key!r}, "
    if action == "fallthrough":
        return [f"d.{where}'fallthrough')"]
    inputs = "keys, *args, **kw" if op else "keys, op, *args, **kw"
    lines = [f"def kernel({inputs}):", f"    print({key!r}, *sorted(keys))"]
    indent = "    "
    while isinstance(action, list) and action[0] in ("including", "excluding"):
        lines.append(f"{indent}with d.{action[0]}({action[1]!r}):")
        indent, action = indent + "    ", action[2]
    name = repr(op) if op else "op"
    match action:
        case "computes":
            done = f"return {key!r}"
        case "hands on":
            done = f"return d.redispatch({name}, set(keys) & set(d.after({key!r})), *args, **kw)"
        case ["redispatches", others]:
            done = f"return d.redispatch({name}, {set_as_code(others)}, *args, **kw)"
        case ["calls", other]:
            done = f"return d.call({other!r}, *args, **kw)"
        case _:
            done = "raise OSError"
    return [*lines, indent + done, f"d.{where}kernel)"]


def set_as_code(keys: Sequence[str]) -> str:
    return f"{{{', '.join(map(repr, keys))}}}" if keys else "set()"


def steps_as_code(steps: Sequence[Any], indent: str = "") -> list[str]:
    """Return the lines that do the steps."""
    lines = []
    for step in steps:
        match step:
            case ["call", op, args, kwargs]:
                named = [f"{key}={value_as_code(one)}" for key, one in kwargs.items()]
                given = ", ".join([repr(op), *map(value_as_code, args), *named])
                lines.append(f"{indent}d.call({given})")
            case ["redispatch", op, keys, args]:
                given = ", ".join([repr(op), set_as_code(keys), *map(value_as_code, args)])
                lines.append(f"{indent}d.redispatch({given})")
            case ["thread", inner]:
                lines.append(f"{indent}def body():")
                lines += steps_as_code(inner, indent + "    ")
                lines.append(f"{indent}threading.Thread(target=body).start()")
            case ["fails"]:
                lines.append(f"{indent}raise OSError")
            case [guard, keys, inner]:
                caught = ["fails"] in inner
                inside = indent + "    " if caught else indent
                lines += [f"{indent}with suppress(OSError):"] if caught else []
                lines.append(f"{inside}with d.{guard}({list(keys)!r}):")
                lines += steps_as_code(inner, inside + "    ")
    return lines


def value_as_code(value: Any) -> str:
    if isinstance(value, list | tuple):
        inside = ", ".join(map(value_as_code, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside},)"
    return CODE.get(value, repr(value)) if isinstance(value, str) else repr(value)
