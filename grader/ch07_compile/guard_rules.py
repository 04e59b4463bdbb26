"""Which calls compile, by the rules of `recompiles`; tests compare this with Dynamo itself."""

from collections.abc import Sequence
from random import Random
from typing import Any

Call = dict[str, Any]

FACTS: dict[str, list[Any]] = {
    "dtype": ["float32", "float64", "bfloat16"],
    "requires_grad": [False, True],
    "grad_mode": [True, False],
    "flag": [True, False],
}

PLAIN: Call = {"shape": [3, 4], "scale": 0.5} | {fact: values[0] for fact, values in FACTS.items()}

LIMIT = 8
"""torch._dynamo.config.recompile_limit of torch 2.13."""


def predicted(calls: Sequence[Call], dynamic: bool | None) -> list[bool]:
    """Return for each call whether Dynamo compiles; see the exercise for the rules."""
    guards: list[dict[str, set[Any] | None]] = []
    answers = []
    for number, call in enumerate(calls):
        mine = spread(call)
        compiles = len(guards) < LIMIT and not any(holds(guard, mine) for guard in guards)
        answers.append(compiles)
        if compiles:
            before = [spread(other) for other in calls[:number]]
            guards.append({key: guarded(key, mine, before, dynamic) for key in mine})
    return answers


def spread(call: Call) -> dict[str, Any]:
    """Return a call with its two sizes apart."""
    return {**call, "rows": call["shape"][0], "columns": call["shape"][1], "shape": None}


def holds(guard: dict[str, set[Any] | None], call: dict[str, Any]) -> bool:
    for key, accepted in guard.items():
        if accepted is None:
            if key != "scale" and call[key] in (0, 1):
                return False
        elif call[key] not in accepted:
            return False
    return True


def guarded(
    key: str, call: dict[str, Any], before: Sequence[dict[str, Any]], dynamic: bool | None
) -> set[Any] | None:
    """Return the values that a new graph accepts for `key`; None where it is dynamic."""
    value = call[key]
    if dynamic is False or key in FACTS or key == "shape":
        return {value}
    if key != "scale" and value in (0, 1):
        return {value}
    return {value} if all(other[key] == value for other in before) else None


def random_calls(
    random: Random,
    count: int,
    facts: Sequence[str] = (),
    sizes: Sequence[int] = (3,),
    scales: Sequence[float] = (0.5,),
) -> list[Call]:
    """Return calls in which only the named facts, the sizes and the scale vary."""
    return [
        {
            **PLAIN,
            **{fact: random.choice(FACTS[fact]) for fact in facts},
            "shape": [random.choice(sizes), random.choice(sizes)],
            "scale": random.choice(scales),
        }
        for _ in range(count)
    ]
