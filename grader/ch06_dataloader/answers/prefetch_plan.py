# %% mistake: first_free_worker
# You give a batch to the worker that is free first. Batches are dealt out in turn: batch k goes to worker
# k % num_workers, and waits for it even if another one is idle.
def prefetch_plan(fetch, step, num_workers, prefetch_factor):
    plan, asks, free = [], 0, [0] * num_workers
    for number, cost in enumerate(fetch):
        begins = asks
        if num_workers:
            lead = num_workers * prefetch_factor
            handed_out = plan[number - lead][2] if number >= lead else 0
            worker = min(range(num_workers), key=free.__getitem__)
            begins = max(free[worker], handed_out)
            free[worker] = begins + cost
        ends = begins + cost
        delivered = max(ends, asks)
        plan.append((begins, ends, delivered))
        asks = delivered + step
    return plan


# %% mistake: lead_without_workers
# Your lead is `prefetch_factor` batches in all. It counts for each worker.
def prefetch_plan(
    fetch: list[int], step: int, num_workers: int, prefetch_factor: int | None
) -> list[tuple[int, int, int]]:
    plan = []
    asks = 0
    for number, cost in enumerate(fetch):
        if num_workers == 0:
            begins = asks
        else:
            lead = prefetch_factor
            free = plan[number - num_workers][1] if number >= num_workers else 0
            handed_out = plan[number - lead][2] if number >= lead else 0
            begins = max(free, handed_out)
        ends = begins + cost
        delivered = max(ends, asks)
        plan.append((begins, ends, delivered))
        asks = delivered + step
    return plan


# %% mistake: no_lead
# Your workers fetch on and on. Nothing stops them when the trainer is slow or a batch is stuck, and all the
# data pile up in memory. A batch goes out only when another one was delivered; that it was fetched is not
# enough.
def prefetch_plan(
    fetch: list[int], step: int, num_workers: int, prefetch_factor: int | None
) -> list[tuple[int, int, int]]:
    plan = []
    asks = 0
    for number, cost in enumerate(fetch):
        if num_workers == 0:
            begins = asks
        else:
            free = plan[number - num_workers][1] if number >= num_workers else 0
            begins = free
        ends = begins + cost
        delivered = max(ends, asks)
        plan.append((begins, ends, delivered))
        asks = delivered + step
    return plan


# %% mistake: completion_order
# You deliver a batch as soon as it has been fetched, whatever became of those before it. Batches are delivered
# in order, and each after the trainer asked for it.
def prefetch_plan(
    fetch: list[int], step: int, num_workers: int, prefetch_factor: int | None
) -> list[tuple[int, int, int]]:
    plan = []
    asks = 0
    for number, cost in enumerate(fetch):
        if num_workers == 0:
            begins = asks
        else:
            lead = num_workers * prefetch_factor
            free = plan[number - num_workers][1] if number >= num_workers else 0
            handed_out = plan[number - lead][2] if number >= lead else 0
            begins = max(free, handed_out)
        ends = begins + cost
        delivered = ends
        plan.append((begins, ends, delivered))
        asks = delivered + step
    return plan


# %% mistake: forgets_the_step
# Your trainer asks for the next batch at once. It is busy for `step` units first.
def prefetch_plan(
    fetch: list[int], step: int, num_workers: int, prefetch_factor: int | None
) -> list[tuple[int, int, int]]:
    plan = []
    asks = 0
    for number, cost in enumerate(fetch):
        if num_workers == 0:
            begins = asks
        else:
            lead = num_workers * prefetch_factor
            free = plan[number - num_workers][1] if number >= num_workers else 0
            handed_out = plan[number - lead][2] if number >= lead else 0
            begins = max(free, handed_out)
        ends = begins + cost
        delivered = max(ends, asks)
        plan.append((begins, ends, delivered))
        asks = delivered
    return plan


# %% mistake: steps_before_it_asks
# Your trainer takes a step before it asks for batch 0. It asks at time 0: there is nothing to step with yet.
def prefetch_plan(fetch, step, num_workers, prefetch_factor):
    plan = []
    for number, time in enumerate(fetch):
        asked = plan[-1][2] + step if plan else step
        begins = asked
        if num_workers:
            lead = num_workers * prefetch_factor
            before = plan[number - num_workers][1] if number >= num_workers else 0
            begins = max(before, plan[number - lead][2] if number >= lead else 0)
        plan.append((begins, begins + time, max(asked, begins + time)))
    return plan


# %% mistake: hands_out_after_the_step
# You hand the next batch out when the trainer has done its step with the one that was delivered. The delivery
# itself hands it out, at that moment.
def prefetch_plan(fetch, step, num_workers, prefetch_factor):
    plan = []
    for number, time in enumerate(fetch):
        asked = plan[-1][2] + step if plan else 0
        begins = asked
        if num_workers:
            lead = num_workers * prefetch_factor
            before = plan[number - num_workers][1] if number >= num_workers else 0
            begins = max(before, plan[number - lead][2] + step if number >= lead else 0)
        plan.append((begins, begins + time, max(asked, begins + time)))
    return plan


# %% mistake: one_batch_more_ahead
# Your lead is one batch too long. The first `num_workers * prefetch_factor` go out at once, and each delivery
# hands out one: batch 0's delivery the first after these.
def prefetch_plan(fetch, step, num_workers, prefetch_factor):
    plan = []
    for number, time in enumerate(fetch):
        asked = plan[-1][2] + step if plan else 0
        begins = asked
        if num_workers:
            lead = num_workers * prefetch_factor + 1
            before = plan[number - num_workers][1] if number >= num_workers else 0
            begins = max(before, plan[number - lead][2] if number >= lead else 0)
        plan.append((begins, begins + time, max(asked, begins + time)))
    return plan


# %% mistake: worker_waits_for_delivery
# Your worker begins a batch only when its last one was delivered. It need not wait for that: this is what
# prefetching is for.
def prefetch_plan(
    fetch: list[int], step: int, num_workers: int, prefetch_factor: int | None
) -> list[tuple[int, int, int]]:
    plan = []
    asks = 0
    for number, cost in enumerate(fetch):
        if num_workers == 0:
            begins = asks
        else:
            lead = num_workers * prefetch_factor
            free = plan[number - num_workers][2] if number >= num_workers else 0
            handed_out = plan[number - lead][2] if number >= lead else 0
            begins = max(free, handed_out)
        ends = begins + cost
        delivered = max(ends, asks)
        plan.append((begins, ends, delivered))
        asks = delivered + step
    return plan


# %% mistake: no_workers_no_plan
# Without workers you take 1 worker. That one would fetch while the trainer is at its step; the trainer alone
# cannot do both.
def prefetch_plan(
    fetch: list[int], step: int, num_workers: int, prefetch_factor: int | None
) -> list[tuple[int, int, int]]:
    plan = []
    asks = 0
    for number, cost in enumerate(fetch):
        num_workers, prefetch_factor = num_workers or 1, prefetch_factor or 1
        if True:
            lead = num_workers * prefetch_factor
            free = plan[number - num_workers][1] if number >= num_workers else 0
            handed_out = plan[number - lead][2] if number >= lead else 0
            begins = max(free, handed_out)
        ends = begins + cost
        delivered = max(ends, asks)
        plan.append((begins, ends, delivered))
        asks = delivered + step
    return plan


# %% alternate: asked_for
# Hands a batch out when an earlier one is asked for. Where that is sooner than its delivery, the worker of
# both is still busy with the earlier one: it makes no difference.
def prefetch_plan(
    fetch: list[int], step: int, num_workers: int, prefetch_factor: int | None
) -> list[tuple[int, int, int]]:
    plan = []
    asks = 0
    for number, cost in enumerate(fetch):
        if num_workers == 0:
            begins = asks
        else:
            lead = num_workers * prefetch_factor
            free = plan[number - num_workers][1] if number >= num_workers else 0
            handed_out = plan[number - lead - 1][2] + step if number > lead else 0
            begins = max(free, handed_out)
        ends = begins + cost
        delivered = max(ends, asks)
        plan.append((begins, ends, delivered))
        asks = delivered + step
    return plan


# %% alternate: from_hand_to_hand
# Keeps queues and clocks for each worker and lets the trainer take one batch after the other.
def prefetch_plan(fetch, step, num_workers, prefetch_factor):
    if not num_workers:
        plan, now = [], 0
        for cost in fetch:
            plan.append((now, now + cost, now + cost))
            now += cost + step
        return plan
    times = {}
    clocks = [0] * num_workers
    waiting = list(range(len(fetch)))

    def hand_out(now):
        if waiting:
            number = waiting.pop(0)
            worker = number % num_workers
            begins = max(now, clocks[worker])
            clocks[worker] = begins + fetch[number]
            times[number] = begins, clocks[worker]

    for _ in range(num_workers * prefetch_factor):
        hand_out(0)
    plan, now = [], 0
    for number in range(len(fetch)):
        now = max(now, times[number][1])
        plan.append((*times[number], now))
        hand_out(now)
        now += step
    return plan
