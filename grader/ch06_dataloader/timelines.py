"""What `prefetch_plan` must give: a loader played through, one unit of time after the other."""


def play(
    fetch: list[int], step: int, num_workers: int, prefetch_factor: int | None
) -> list[tuple[int, int, int]]:
    """Return (begins, ends, delivered) for each batch, by moving tasks from hand to hand.

    It follows the rules and knows no formula: queues, workers that are at a batch until some time,
    and a trainer that asks.
    """
    count = len(fetch)
    begins, ends, delivered = [None] * count, [None] * count, [None] * count
    queues = [[] for _ in range(num_workers)]
    busy = [None] * num_workers
    sent = wanted = now = asks = 0

    def send() -> None:
        nonlocal sent
        if sent < count:
            queues[sent % num_workers].append(sent)
            sent += 1

    for _ in range(num_workers * (prefetch_factor or 0)):
        send()
    while wanted < count:
        changed = False
        for worker in range(num_workers):
            if busy[worker] is not None and begins[busy[worker]] + fetch[busy[worker]] == now:
                ends[busy[worker]], busy[worker], changed = now, None, True
            if busy[worker] is None and queues[worker]:
                busy[worker] = queues[worker].pop(0)
                begins[busy[worker]], changed = now, True
        if num_workers == 0 and asks <= now and begins[wanted] is None:
            begins[wanted] = now
        if (
            num_workers == 0
            and begins[wanted] is not None
            and begins[wanted] + fetch[wanted] == now
        ):
            ends[wanted] = now
        if asks <= now and ends[wanted] is not None:
            delivered[wanted] = now
            asks, wanted, changed = now + step, wanted + 1, True
            if num_workers:
                send()
        if not changed:  # otherwise something else may happen in the same moment
            now += 1
    return list(zip(begins, ends, delivered, strict=True))
