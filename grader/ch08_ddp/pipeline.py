"""A pipeline's clock: when each action of each stage's plan ends, and how much a stage holds."""

Plan = list[tuple[str, int]]


def ends(plans: list[Plan]) -> int | None:
    """Return when the last action is done, forwards taking 1 and backwards 2; None if never."""
    clocks, at = _run(plans)
    if any(place < len(plan) for place, plan in zip(at, plans, strict=True)):
        return None
    return max(clocks, default=0)


def waiting(plans: list[Plan]) -> list[tuple[int, str, int]]:
    """Return each stage that never ends, with the action that it waits at for ever."""
    at = _run(plans)[1]
    return [
        (stage, *plan[place])
        for stage, (place, plan) in enumerate(zip(at, plans, strict=True))
        if place < len(plan)
    ]


def _run(plans: list[Plan]) -> tuple[list[int], list[int]]:
    """Return when each stage did its last action, and how many it came to do."""
    done: dict[tuple[str, int, int], int] = {}
    clocks, at = [0] * len(plans), [0] * len(plans)
    moved = True
    while moved:
        moved = False
        for stage, plan in enumerate(plans):
            if at[stage] == len(plan):
                continue
            kind, number = plan[at[stage]]
            needs = [(kind, number, stage + (1 if kind == "B" else -1))]
            if kind == "B":
                needs.append(("F", number, stage))
            needs = [need for need in needs if 0 <= need[2] < len(plans)]
            if all(need in done for need in needs):
                start = max([clocks[stage], *(done[need] for need in needs)])
                clocks[stage] = done[kind, number, stage] = start + (2 if kind == "B" else 1)
                at[stage] += 1
                moved = True
    return clocks, at


def most_held(plan: Plan) -> int:
    """Return the greatest number of micro-batches whose activations live at once."""
    held = most = 0
    for kind, _ in plan:
        held += 1 if kind == "F" else -1
        most = max(most, held)
    return most
