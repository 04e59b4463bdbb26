# %% blocked: averages_by_hand
# You hold DDP back everywhere and average by yourself. DDP has buckets for that; let it send the last one.
def accumulate(ddp, micro_batches, loss_of):
    total, samples = 0.0, 0
    with ddp.no_sync():
        for x in micro_batches:
            loss = loss_of(ddp(x)) * len(x)
            loss.backward()
            total += loss.item()
            samples += len(x)
    for parameter in ddp.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
            parameter.grad /= samples * dist.get_world_size()
    return total / samples


# %% mistake: sends_each_time
# Every micro-batch is sent. If you have a `no_sync`, it is around `backward` only: DDP decides in forward, so forward
# must be inside as well. Where ranks have different numbers of micro-batches, one then waits for ever.
def accumulate(ddp, micro_batches, loss_of):
    total, samples = 0.0, 0
    upcoming = iter(micro_batches)
    current = next(upcoming)
    while current is not None:
        following = next(upcoming, None)
        loss = loss_of(ddp(current)) * len(current)
        with nullcontext() if following is None else ddp.no_sync():
            loss.backward()
        total += loss.item()
        samples += len(current)
        current = following
    for parameter in ddp.parameters():
        if parameter.grad is not None:
            parameter.grad /= samples
    return total / samples


# %% mistake: never_sends
# Nothing is sent, and the ranks drift apart. All your forward passes are inside of `no_sync`; it does not help that the
# last `backward` is outside. The last micro-batch belongs outside altogether.
def accumulate(ddp, micro_batches, loss_of):
    total, samples = 0.0, 0
    upcoming = iter(micro_batches)
    current = next(upcoming)
    while current is not None:
        following = next(upcoming, None)
        with ddp.no_sync():
            loss = loss_of(ddp(current)) * len(current)
            if following is not None:
                loss.backward()
        if following is None:
            loss.backward()
        total += loss.item()
        samples += len(current)
        current = following
    for parameter in ddp.parameters():
        if parameter.grad is not None:
            parameter.grad /= samples
    return total / samples


# %% mistake: first_instead_of_last
# You synchronise the first micro-batch and hold back the others. What the others add afterwards stays on its rank.
def accumulate(ddp, micro_batches, loss_of):
    total, samples = 0.0, 0
    for x in micro_batches:
        with ddp.no_sync() if samples else nullcontext():
            loss = loss_of(ddp(x)) * len(x)
            loss.backward()
        total += loss.item()
        samples += len(x)
    for parameter in ddp.parameters():
        if parameter.grad is not None:
            parameter.grad /= samples
    return total / samples


# %% mistake: mean_of_means
# You give each micro-batch the same weight, whatever its size. A sample in a small one then counts more than one in a
# large one. Weight by the number of samples.
def accumulate(ddp, micro_batches, loss_of):
    total, count = 0.0, 0
    upcoming = iter(micro_batches)
    current = next(upcoming)
    while current is not None:
        following = next(upcoming, None)
        with nullcontext() if following is None else ddp.no_sync():
            loss = loss_of(ddp(current))
            loss.backward()
        total += loss.item()
        count += 1
        current = following
    for parameter in ddp.parameters():
        if parameter.grad is not None:
            parameter.grad /= count
    return total / count


# %% mistake: does_not_divide
# Your gradients are sums over micro-batches. The mean loss of all samples has a gradient that does not grow with the
# number of pieces: divide.
def accumulate(ddp, micro_batches, loss_of):
    total, samples = 0.0, 0
    upcoming = iter(micro_batches)
    current = next(upcoming)
    while current is not None:
        following = next(upcoming, None)
        with nullcontext() if following is None else ddp.no_sync():
            loss = loss_of(ddp(current))
            loss.backward()
        total += loss.item() * len(current)
        samples += len(current)
        current = following
    return total / samples


# %% mistake: takes_them_all
# You put all micro-batches into a list to find out which is the last. They were cut because they do not fit into memory
# together. One ahead is enough.
def accumulate(ddp, micro_batches, loss_of):
    micro_batches = list(micro_batches)
    samples = sum(len(x) for x in micro_batches)
    total = 0.0
    for number, x in enumerate(micro_batches):
        with ddp.no_sync() if number + 1 < len(micro_batches) else nullcontext():
            loss = loss_of(ddp(x)) * len(x) / samples
            loss.backward()
        total += loss.item()
    return total


# %% alternate: chained
# One function for both kinds of pass.
def accumulate(ddp, micro_batches, loss_of):
    losses, sizes = [], []

    def run(x):
        loss = loss_of(ddp(x))
        losses.append(loss.item() * len(x))
        sizes.append(len(x))
        (loss * len(x)).backward()

    held = None
    for x in micro_batches:
        if held is not None:
            with ddp.no_sync():
                run(held)
        held = x
    run(held)
    for parameter in ddp.module.parameters():
        if parameter.grad is not None:
            parameter.grad = parameter.grad / sum(sizes)
    return float(sum(losses) / sum(sizes))


# %% alternate: sets_the_flag
# What `no_sync` does: a flag that forward looks at. Running means keep gradients of the right size all the time.
def accumulate(ddp, micro_batches, loss_of):
    source = iter(micro_batches)
    x, mean, seen = next(source), 0.0, 0
    while True:
        later = next(source, None)
        share = len(x) / (seen + len(x))
        for parameter in ddp.parameters():
            if parameter.grad is not None:
                parameter.grad.mul_(1 - share)
        ddp.require_backward_grad_sync = later is None
        loss = loss_of(ddp(x))
        (loss * share).backward()
        mean += (loss.item() - mean) * share
        seen += len(x)
        if later is None:
            return mean
        x = later


# %% alternate: goes_round
# All but the last go to the model inside, of which DDP learns nothing.
def accumulate(ddp, micro_batches, loss_of):
    held, total, samples = [], 0.0, 0
    for following in micro_batches_and_end(micro_batches):
        held.append(following)
        if len(held) < 2:
            continue
        x = held.pop(0)
        loss = loss_of(ddp(x) if following is None else ddp.module(x)) * x.shape[0]
        loss.backward()
        total, samples = total + loss.item(), samples + x.shape[0]
    for parameter in ddp.parameters():
        if parameter.grad is not None:
            parameter.grad.div_(samples)
    return total / samples


def micro_batches_and_end(micro_batches):
    yield from micro_batches
    yield None
