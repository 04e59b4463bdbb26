"""Scenarios for `Dispatcher`: made short, drawn at random, and as code to paste; see probes/walks.py."""

from collections.abc import Iterator, Sequence
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


def as_code(played: Scenario, *notes: Sequence[str]) -> str:
    """Return a scenario as code to paste, without kernels that nobody came to.

    notes: of runs of it, the expected one first: errors that belong there are suppressed
    """
    reached = {(note.split("(")[0], stop_of(note)) for run in notes for note in run}
    lines = [f"d = Dispatcher({played['order']!r})"]
    kernels = [(op, key, action) for op, key, action in played["kernels"]]
    own = {(op, key) for op, key, _ in kernels}
    of_fallbacks = {key for _, key in reached - own}
    handing_on: dict[str, list[str]] = {}
    for op, key, action in kernels:
        hides = op is not None and (None, key) in own
        wanted = (op, key) in reached if op else key in of_fallbacks
        if not (wanted or hides or action == "fallthrough"):
            continue
        if op and action == "hands on":
            handing_on.setdefault(op, []).append(key)
        else:
            lines += registration(op, key, action)
    for op, keys in handing_on.items():
        lines += registrations(op, keys)
    outcomes = iter([note for note in notes[0] if note.startswith(("returned ", "raised "))])
    return "\n".join([*lines, *steps_as_code(played["steps"], outcomes)])


def stop_of(note: str) -> str:
    """Return the key at which a kernel was called, if that is what a note says."""
    return note.rpartition(" at ")[2].partition(",")[0]


def registrations(op: str, keys: Sequence[str]) -> list[str]:
    """Return the lines that register a kernel which hands on at each of these keys."""
    below = "set(keys) & set(d.after(key))"
    return [
        f"for key in {list(keys)!r}:",
        "    def kernel(keys, *args, key=key, **kw):",
        "        print(key, *sorted(keys))",
        f"        return d.redispatch({op!r}, {below}, *args, **kw)",
        f"    d.register({op!r}, key, kernel)",
    ]


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


def steps_as_code(steps: Sequence[Any], outcomes: Iterator[str], indent: str = "") -> list[str]:
    """Return the lines that do the steps; `outcomes` are what their calls come to."""
    lines = []
    for step in steps:
        match step:
            case ["call", op, args, kwargs]:
                named = [f"{key}={value_as_code(one)}" for key, one in kwargs.items()]
                given = ", ".join([repr(op), *map(value_as_code, args), *named])
                lines += attempt(f"d.call({given})", next(outcomes, ""), indent)
            case ["redispatch", op, keys, args]:
                given = ", ".join([repr(op), set_as_code(keys), *map(value_as_code, args)])
                lines += attempt(f"d.redispatch({given})", next(outcomes, ""), indent)
            case ["thread", inner]:
                lines.append(f"{indent}def body():")
                lines += steps_as_code(inner, outcomes, indent + "    ")
                lines += [f"{indent}thread = threading.Thread(target=body)"]
                lines += [f"{indent}thread.start()", f"{indent}thread.join()"]
            case ["fails"]:
                lines.append(f"{indent}raise OSError")
            case ["makes", guard, keys]:
                lines.append(f"{indent}made = d.{guard}({list(keys)!r})")
            case [guard, keys, inner]:
                caught = ["fails"] in inner
                inside = indent + "    " if caught else indent
                lines += [f"{indent}with suppress(OSError):"] if caught else []
                lines.append(f"{inside}with d.{guard}({list(keys)!r}):")
                lines += steps_as_code(inner, outcomes, inside + "    ") or [f"{inside}    pass"]
    return lines


def attempt(line: str, outcome: str, indent: str) -> list[str]:
    """Return a line that calls, with the error suppressed that it is to raise."""
    kind = outcome.removeprefix("raised ")
    if kind == outcome:
        return [indent + line]
    error = kind if kind.endswith("Error") else "OSError"
    return [f"{indent}with suppress({error}):", f"{indent}    {line}"]


def value_as_code(value: Any) -> str:
    if isinstance(value, list | tuple):
        inside = ", ".join(map(value_as_code, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside},)"
    return CODE.get(value, repr(value)) if isinstance(value, str) else repr(value)
