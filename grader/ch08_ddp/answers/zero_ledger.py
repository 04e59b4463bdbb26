# %% mistake: floors
# You round the shard down. Its last elements have no rank then: round up, and pad.
def zero_ledger(sizes: list[int], ranks: int, stage: int) -> dict[str, int]:
    total = sum(sizes)
    shard = total // ranks
    rounds = 3 if stage == 3 else 2
    return {
        "parameters": 2 * (shard if stage >= 3 else total),
        "gradients": 2 * (shard if stage >= 2 else total),
        "state": 12 * (shard if stage >= 1 else total),
        "sent": rounds * (ranks - 1) * shard * 2,
    }


# %% mistake: pads_each
# You pad each parameter by itself. They are laid end to end first, and padded once.
def zero_ledger(sizes: list[int], ranks: int, stage: int) -> dict[str, int]:
    total = sum(sizes)
    shard = sum((-(-size // ranks) for size in sizes))
    rounds = 3 if stage == 3 else 2
    return {
        "parameters": 2 * (shard if stage >= 3 else total),
        "gradients": 2 * (shard if stage >= 2 else total),
        "state": 12 * (shard if stage >= 1 else total),
        "sent": rounds * (ranks - 1) * shard * 2,
    }


# %% mistake: stage_1_shards_gradients
# Your stage 1 shards gradients. It shards the optimizer's state, and gradients are no state of the
# optimizer: they come with stage 2.
def zero_ledger(sizes: list[int], ranks: int, stage: int) -> dict[str, int]:
    total = sum(sizes)
    shard = -(-total // ranks)
    rounds = 3 if stage == 3 else 2
    return {
        "parameters": 2 * (shard if stage >= 3 else total),
        "gradients": 2 * (shard if stage >= 1 else total),
        "state": 12 * (shard if stage >= 1 else total),
        "sent": rounds * (ranks - 1) * shard * 2,
    }


# %% mistake: stage_1_shards_all
# Your stage 1 shards parameters and gradients, too. It shards the optimizer's state alone.
def zero_ledger(sizes: list[int], ranks: int, stage: int) -> dict[str, int]:
    total = sum(sizes)
    shard = -(-total // ranks)
    rounds = 3 if stage == 3 else 2
    return {
        "parameters": 2 * (shard if stage >= 1 else total),
        "gradients": 2 * (shard if stage >= 1 else total),
        "state": 12 * (shard if stage >= 1 else total),
        "sent": rounds * (ranks - 1) * shard * 2,
    }


# %% mistake: no_master_copy
# You count two numbers of state for each parameter. With bfloat16 parameters there is a third: a
# float32 copy, which is what the optimizer steps.
def zero_ledger(sizes: list[int], ranks: int, stage: int) -> dict[str, int]:
    total = sum(sizes)
    shard = -(-total // ranks)
    rounds = 3 if stage == 3 else 2
    return {
        "parameters": 2 * (shard if stage >= 3 else total),
        "gradients": 2 * (shard if stage >= 2 else total),
        "state": 8 * (shard if stage >= 1 else total),
        "sent": rounds * (ranks - 1) * shard * 2,
    }


# %% mistake: bytes_of_all_ranks
# You count all ranks together. The ledger is one rank's.
def zero_ledger(sizes: list[int], ranks: int, stage: int) -> dict[str, int]:
    total = sum(sizes)
    shard = -(-total // ranks)
    rounds = 3 if stage == 3 else 2
    return {
        "parameters": 2 * (shard if stage >= 3 else total) * ranks,
        "gradients": 2 * (shard if stage >= 2 else total) * ranks,
        "state": 12 * (shard if stage >= 1 else total) * ranks,
        "sent": rounds * (ranks - 1) * shard * 2,
    }


# %% mistake: sharding_is_free
# Your stage 3 sends no more than the others. Its parameters are gathered twice, in forward and in
# backward, and gradients are scattered once: three passes.
def zero_ledger(sizes: list[int], ranks: int, stage: int) -> dict[str, int]:
    total = sum(sizes)
    shard = -(-total // ranks)
    rounds = 2
    return {
        "parameters": 2 * (shard if stage >= 3 else total),
        "gradients": 2 * (shard if stage >= 2 else total),
        "state": 12 * (shard if stage >= 1 else total),
        "sent": rounds * (ranks - 1) * shard * 2,
    }


# %% mistake: sharding_costs_early
# Your stages 1 and 2 send more than stage 0. An all-reduce is a reduce-scatter and an all-gather;
# they use the same two, apart.
def zero_ledger(sizes: list[int], ranks: int, stage: int) -> dict[str, int]:
    total = sum(sizes)
    shard = -(-total // ranks)
    rounds = 3 if stage >= 1 else 2
    return {
        "parameters": 2 * (shard if stage >= 3 else total),
        "gradients": 2 * (shard if stage >= 2 else total),
        "state": 12 * (shard if stage >= 1 else total),
        "sent": rounds * (ranks - 1) * shard * 2,
    }


# %% mistake: gathers_three_times
# You gather the parameters of stage 3 after the step, too. The next forward gathers them anyway.
def zero_ledger(sizes: list[int], ranks: int, stage: int) -> dict[str, int]:
    total = sum(sizes)
    shard = -(-total // ranks)
    rounds = 4 if stage == 3 else 2
    return {
        "parameters": 2 * (shard if stage >= 3 else total),
        "gradients": 2 * (shard if stage >= 2 else total),
        "state": 12 * (shard if stage >= 1 else total),
        "sent": rounds * (ranks - 1) * shard * 2,
    }


# %% mistake: sends_to_everyone
# You let a rank send everything to each of the others. On a ring it sends `ranks - 1` shards, not
# `ranks - 1` times the whole.
def zero_ledger(sizes: list[int], ranks: int, stage: int) -> dict[str, int]:
    total = sum(sizes)
    shard = -(-total // ranks)
    rounds = 3 if stage == 3 else 2
    return {
        "parameters": 2 * (shard if stage >= 3 else total),
        "gradients": 2 * (shard if stage >= 2 else total),
        "state": 12 * (shard if stage >= 1 else total),
        "sent": rounds * (ranks - 1) * total * 2,
    }


# %% mistake: sends_ranks_shards
# You count one shard too many. A rank need not send around what comes back to it: `ranks - 1`
# shards.
def zero_ledger(sizes: list[int], ranks: int, stage: int) -> dict[str, int]:
    total = sum(sizes)
    shard = -(-total // ranks)
    rounds = 3 if stage == 3 else 2
    return {
        "parameters": 2 * (shard if stage >= 3 else total),
        "gradients": 2 * (shard if stage >= 2 else total),
        "state": 12 * (shard if stage >= 1 else total),
        "sent": rounds * ranks * shard * 2,
    }


# %% mistake: pads_stage_0
# You pad what is not sharded.
def zero_ledger(sizes: list[int], ranks: int, stage: int) -> dict[str, int]:
    total = sum(sizes)
    shard = -(-total // ranks)
    rounds = 3 if stage == 3 else 2
    return {
        "parameters": 2 * (shard if stage >= 3 else shard * ranks),
        "gradients": 2 * (shard if stage >= 2 else shard * ranks),
        "state": 12 * (shard if stage >= 1 else shard * ranks),
        "sent": rounds * (ranks - 1) * shard * 2,
    }


# %% alternate: a_table
# Shards from a table of stages.
def zero_ledger(sizes, ranks, stage):
    total = 0
    for size in sizes:
        total += size
    padded = total
    while padded % ranks:
        padded += 1
    part = padded // ranks
    sharded = ((), ("state",), ("state", "gradients"), ("state", "gradients", "parameters"))[stage]
    width = {"parameters": 2, "gradients": 2, "state": 12}
    ledger = {name: each * (part if name in sharded else total) for name, each in width.items()}
    ledger["sent"] = (padded - part) * (6 if stage == 3 else 4)
    return ledger
