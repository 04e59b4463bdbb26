# %% blocked: torch_pipelining
# torch has schedules of its own; the exercise is to make one.
def schedule(kind, stages, micro_batches):
    import torch.distributed.pipelining

    return torch.distributed.pipelining.Schedule1F1B(stages, micro_batches)


# %% mistake: gpipe_twice
# Your 1F1B is GPipe: every stage holds the activations of all micro-batches. Begin with backwards
# as soon as one can come.
def schedule(kind: str, stages: int, micro_batches: int) -> list[list[tuple[str, int]]]:
    forwards = [("F", number) for number in range(micro_batches)]
    backwards = [("B", number) for number in range(micro_batches)]
    if True:
        return [forwards + backwards for _ in range(stages)]
    plans = []
    for stage in range(stages):
        ahead = min(stages - stage - 1, micro_batches)
        pairs = zip(forwards[ahead:], backwards, strict=False)
        middle = [action for pair in pairs for action in pair]
        plans.append(forwards[:ahead] + middle + backwards[micro_batches - ahead :])
    return plans


# %% mistake: one_by_one
# You finish each micro-batch before the next begins. A single stage works at any time.
def schedule(kind: str, stages: int, micro_batches: int) -> list[list[tuple[str, int]]]:
    forwards = [("F", number) for number in range(micro_batches)]
    backwards = [("B", number) for number in range(micro_batches)]
    if kind == "1f1b":
        return [[action for pair in zip(forwards, backwards) for action in pair]] * stages
    if True:
        return [forwards + backwards for _ in range(stages)]
    plans = []
    for stage in range(stages):
        ahead = min(stages - stage - 1, micro_batches)
        pairs = zip(forwards[ahead:], backwards, strict=False)
        middle = [action for pair in pairs for action in pair]
        plans.append(forwards[:ahead] + middle + backwards[micro_batches - ahead :])
    return plans


# %% mistake: one_ahead_too_few
# The warm-up of your stages is one forward too short. A stage then waits for a backward that is not
# yet on its way, and the forward that it could have made meanwhile comes late.
def schedule(kind: str, stages: int, micro_batches: int) -> list[list[tuple[str, int]]]:
    forwards = [("F", number) for number in range(micro_batches)]
    backwards = [("B", number) for number in range(micro_batches)]
    if kind == "gpipe":
        return [forwards + backwards for _ in range(stages)]
    plans = []
    for stage in range(stages):
        ahead = min(max(stages - stage - 2, 0), micro_batches)
        pairs = zip(forwards[ahead:], backwards, strict=False)
        middle = [action for pair in pairs for action in pair]
        plans.append(forwards[:ahead] + middle + backwards[micro_batches - ahead :])
    return plans


# %% mistake: one_ahead_too_many
# Your stages make one forward more before the first pair than they need, and hold one micro-batch
# more than they may.
def schedule(kind: str, stages: int, micro_batches: int) -> list[list[tuple[str, int]]]:
    forwards = [("F", number) for number in range(micro_batches)]
    backwards = [("B", number) for number in range(micro_batches)]
    if kind == "gpipe":
        return [forwards + backwards for _ in range(stages)]
    plans = []
    for stage in range(stages):
        ahead = min(stages - stage, micro_batches)
        pairs = zip(forwards[ahead:], backwards, strict=False)
        middle = [action for pair in pairs for action in pair]
        plans.append(forwards[:ahead] + middle + backwards[micro_batches - ahead :])
    return plans


# %% mistake: stages_turned_round
# You count the stages from the wrong end. Stage 0 is far from the last one and has to go ahead; the
# last can begin with backward at once.
def schedule(kind: str, stages: int, micro_batches: int) -> list[list[tuple[str, int]]]:
    forwards = [("F", number) for number in range(micro_batches)]
    backwards = [("B", number) for number in range(micro_batches)]
    if kind == "gpipe":
        return [forwards + backwards for _ in range(stages)]
    plans = []
    for stage in range(stages):
        ahead = min(stage, micro_batches)
        pairs = zip(forwards[ahead:], backwards, strict=False)
        middle = [action for pair in pairs for action in pair]
        plans.append(forwards[:ahead] + middle + backwards[micro_batches - ahead :])
    return plans


# %% mistake: same_for_all
# All your stages have the plan of stage 0. The later ones hold micro-batches whose backward they
# could have done.
def schedule(kind: str, stages: int, micro_batches: int) -> list[list[tuple[str, int]]]:
    forwards = [("F", number) for number in range(micro_batches)]
    backwards = [("B", number) for number in range(micro_batches)]
    if kind == "gpipe":
        return [forwards + backwards for _ in range(stages)]
    plans = []
    for stage in range(stages):
        ahead = min(stages - 1, micro_batches)
        pairs = zip(forwards[ahead:], backwards, strict=False)
        middle = [action for pair in pairs for action in pair]
        plans.append(forwards[:ahead] + middle + backwards[micro_batches - ahead :])
    return plans


# %% mistake: backward_first
# In your pairs the backward comes before the forward. The forward could have begun while the stage
# waits for that backward, and the stages behind are waiting for it.
def schedule(kind: str, stages: int, micro_batches: int) -> list[list[tuple[str, int]]]:
    forwards = [("F", number) for number in range(micro_batches)]
    backwards = [("B", number) for number in range(micro_batches)]
    if kind == "gpipe":
        return [forwards + backwards for _ in range(stages)]
    plans = []
    for stage in range(stages):
        ahead = min(stages - stage - 1, micro_batches)
        pairs = zip(forwards[ahead:], backwards, strict=False)
        middle = [action for pair in pairs for action in reversed(pair)]
        plans.append(forwards[:ahead] + middle + backwards[micro_batches - ahead :])
    return plans


# %% mistake: newest_first
# Your backwards begin with the newest micro-batch. The oldest came through first, and its backward
# is the first that is ready.
def schedule(kind: str, stages: int, micro_batches: int) -> list[list[tuple[str, int]]]:
    forwards = [("F", number) for number in range(micro_batches)]
    backwards = [("B", number) for number in reversed(range(micro_batches))]
    if kind == "gpipe":
        return [forwards + backwards for _ in range(stages)]
    plans = []
    for stage in range(stages):
        ahead = min(stages - stage - 1, micro_batches)
        pairs = zip(forwards[ahead:], backwards, strict=False)
        middle = [action for pair in pairs for action in pair]
        plans.append(forwards[:ahead] + middle + backwards[micro_batches - ahead :])
    return plans


# %% mistake: fewer_than_stages
# With fewer micro-batches than stages your warm-up asks for more forwards than there are, and the
# rest of the plan is cut at the wrong place.
def schedule(kind: str, stages: int, micro_batches: int) -> list[list[tuple[str, int]]]:
    forwards = [("F", number) for number in range(micro_batches)]
    backwards = [("B", number) for number in range(micro_batches)]
    if kind == "gpipe":
        return [forwards + backwards for _ in range(stages)]
    plans = []
    for stage in range(stages):
        ahead = stages - stage - 1
        pairs = zip(forwards[ahead:], backwards, strict=False)
        middle = [action for pair in pairs for action in pair]
        plans.append(forwards[:ahead] + middle + backwards[micro_batches - ahead :])
    return plans


# %% mistake: drops_the_rest
# Your plans end with the last forward. The backwards of the micro-batches that went ahead are still
# to be done.
def schedule(kind: str, stages: int, micro_batches: int) -> list[list[tuple[str, int]]]:
    forwards = [("F", number) for number in range(micro_batches)]
    backwards = [("B", number) for number in range(micro_batches)]
    if kind == "gpipe":
        return [forwards + backwards for _ in range(stages)]
    plans = []
    for stage in range(stages):
        ahead = min(stages - stage - 1, micro_batches)
        pairs = zip(forwards[ahead:], backwards, strict=False)
        middle = [action for pair in pairs for action in pair]
        plans.append(forwards[:ahead] + middle)
    return plans


# %% mistake: forwards_of_nothing
# With fewer micro-batches than stages your warm-up makes forwards of micro-batches that do not exist.
# No stage can make more forwards than there are.
def schedule(kind: str, stages: int, micro_batches: int) -> list[list[tuple[str, int]]]:
    if kind == "gpipe":
        return [[(k, n) for k in "FB" for n in range(micro_batches)] for _ in range(stages)]
    plans = []
    for stage in range(stages):
        ahead = stages - stage - 1
        plan = [("F", number) for number in range(ahead)]
        for number in range(micro_batches - ahead):
            plan += [("F", number + ahead), ("B", number)]
        rest = range(max(micro_batches - ahead, 0), micro_batches)
        plans.append(plan + [("B", number) for number in rest])
    return plans


# %% alternate: by_counting
# A loop that counts what is open.
def schedule(kind, stages, micro_batches):
    plans = []
    for stage in range(stages):
        most = micro_batches if kind == "gpipe" else stages - stage
        plan, forward, backward = ([], 0, 0)
        while backward < micro_batches:
            if forward < micro_batches and forward - backward < most:
                plan.append(("F", forward))
                forward += 1
            else:
                plan.append(("B", backward))
                backward += 1
        plans.append(plan)
    return plans


# %% alternate: newest_first_in_gpipe
# GPipe with backwards from the last micro-batch to the first, as in its paper; lists for tuples.
def schedule(kind, stages, micro_batches):
    order = range(micro_batches)
    if kind == "gpipe":
        plan = [["F", n] for n in order] + [["B", n] for n in order[::-1]]
        return [list(plan) for _ in range(stages)]
    result = []
    for stage in range(stages):
        warm = min(micro_batches, stages - 1 - stage)
        plan = [["F", n] for n in order[:warm]]
        for n in order[warm:]:
            plan += [["F", n], ["B", n - warm]]
        plan += [["B", n] for n in order[micro_batches - warm :]]
        result.append(plan)
    return tuple(result)
