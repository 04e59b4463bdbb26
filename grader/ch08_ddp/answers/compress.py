# %% mistake: no_feedback
# You throw away what rounding took. A gradient that is always smaller than half a step never
# arrives. Keep what is left, and add it to the next.
def compress(state: dict, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    value = bucket.buffer()
    own = list(zip(bucket.parameters(), bucket.gradients(), strict=True))
    for parameter, gradient in own:
        if parameter in state:
            pass
    scale = value.abs().max() / 127
    sent = torch.zeros_like(value, dtype=torch.int8)
    if scale > 0:
        sent = torch.round(value / scale).to(torch.int8)
    value -= sent * scale
    for parameter, gradient in own:
        state[parameter] = gradient.clone()
    message = torch.cat([scale.reshape(1).view(torch.uint8), sent.view(torch.uint8)])
    inbox = [torch.empty_like(message) for _ in range(dist.get_world_size())]
    work = dist.all_gather(inbox, message, async_op=True)

    def mean(done):
        parts = [one[4:].view(torch.int8) * one[:4].view(torch.float32) for one in inbox]
        return torch.stack(parts).mean(0)

    return work.get_future().then(mean)


# %% mistake: kept_by_number
# You keep what is left by the number of the bucket. DDP builds its buckets again after the first
# backward: bucket 0 then holds other parameters. Keep it by parameter.
def compress(state: dict, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    value = bucket.buffer()
    left = state.get(bucket.index())
    if left is not None and left.shape == value.shape:
        value += left
    scale = value.abs().max() / 127
    sent = torch.zeros_like(value, dtype=torch.int8)
    if scale > 0:
        sent = torch.round(value / scale).to(torch.int8)
    value -= sent * scale
    state[bucket.index()] = value.clone()
    message = torch.cat([scale.reshape(1).view(torch.uint8), sent.view(torch.uint8)])
    inbox = [torch.empty_like(message) for _ in range(dist.get_world_size())]
    work = dist.all_gather(inbox, message, async_op=True)

    def mean(done):
        parts = [one[4:].view(torch.int8) * one[:4].view(torch.float32) for one in inbox]
        return torch.stack(parts).mean(0)

    return work.get_future().then(mean)


# %% mistake: keeps_a_view
# What you keep is a view of the bucket, and DDP writes the mean into the bucket. What you add next
# time is the last mean. Keep a copy.
def compress(state: dict, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    value = bucket.buffer()
    own = list(zip(bucket.parameters(), bucket.gradients(), strict=True))
    for parameter, gradient in own:
        if parameter in state:
            gradient += state[parameter]
    scale = value.abs().max() / 127
    sent = torch.zeros_like(value, dtype=torch.int8)
    if scale > 0:
        sent = torch.round(value / scale).to(torch.int8)
    value -= sent * scale
    for parameter, gradient in own:
        state[parameter] = gradient
    message = torch.cat([scale.reshape(1).view(torch.uint8), sent.view(torch.uint8)])
    inbox = [torch.empty_like(message) for _ in range(dist.get_world_size())]
    work = dist.all_gather(inbox, message, async_op=True)

    def mean(done):
        parts = [one[4:].view(torch.int8) * one[:4].view(torch.float32) for one in inbox]
        return torch.stack(parts).mean(0)

    return work.get_future().then(mean)


# %% mistake: keeps_the_gradient
# You keep the rounded value instead of what rounding took. It is added again in the next step, and
# everything arrives several times.
def compress(state: dict, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    value = bucket.buffer()
    own = list(zip(bucket.parameters(), bucket.gradients(), strict=True))
    for parameter, gradient in own:
        if parameter in state:
            gradient += state[parameter]
    scale = value.abs().max() / 127
    sent = torch.zeros_like(value, dtype=torch.int8)
    if scale > 0:
        sent = torch.round(value / scale).to(torch.int8)
    value.copy_(sent * scale)
    for parameter, gradient in own:
        state[parameter] = gradient.clone()
    message = torch.cat([scale.reshape(1).view(torch.uint8), sent.view(torch.uint8)])
    inbox = [torch.empty_like(message) for _ in range(dist.get_world_size())]
    work = dist.all_gather(inbox, message, async_op=True)

    def mean(done):
        parts = [one[4:].view(torch.int8) * one[:4].view(torch.float32) for one in inbox]
        return torch.stack(parts).mean(0)

    return work.get_future().then(mean)


# %% mistake: forgets_old_debts
# What you keep is the gradient minus what was sent. What was left over before counts too: value
# minus sent.
def compress(state: dict, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    value = bucket.buffer()
    original = bucket.buffer().clone()
    own = list(zip(bucket.parameters(), bucket.gradients(), strict=True))
    for parameter, gradient in own:
        if parameter in state:
            gradient += state[parameter]
    scale = value.abs().max() / 127
    sent = torch.zeros_like(value, dtype=torch.int8)
    if scale > 0:
        sent = torch.round(value / scale).to(torch.int8)
    value.copy_(original - sent * scale)
    for parameter, gradient in own:
        state[parameter] = gradient.clone()
    message = torch.cat([scale.reshape(1).view(torch.uint8), sent.view(torch.uint8)])
    inbox = [torch.empty_like(message) for _ in range(dist.get_world_size())]
    work = dist.all_gather(inbox, message, async_op=True)

    def mean(done):
        parts = [one[4:].view(torch.int8) * one[:4].view(torch.float32) for one in inbox]
        return torch.stack(parts).mean(0)

    return work.get_future().then(mean)


# %% mistake: sums
# You add up what arrived. DDP puts it into `.grad` as it is: divide by the number of ranks.
def compress(state: dict, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    value = bucket.buffer()
    own = list(zip(bucket.parameters(), bucket.gradients(), strict=True))
    for parameter, gradient in own:
        if parameter in state:
            gradient += state[parameter]
    scale = value.abs().max() / 127
    sent = torch.zeros_like(value, dtype=torch.int8)
    if scale > 0:
        sent = torch.round(value / scale).to(torch.int8)
    value -= sent * scale
    for parameter, gradient in own:
        state[parameter] = gradient.clone()
    message = torch.cat([scale.reshape(1).view(torch.uint8), sent.view(torch.uint8)])
    inbox = [torch.empty_like(message) for _ in range(dist.get_world_size())]
    work = dist.all_gather(inbox, message, async_op=True)

    def mean(done):
        parts = [one[4:].view(torch.int8) * one[:4].view(torch.float32) for one in inbox]
        return torch.stack(parts).sum(0)

    return work.get_future().then(mean)


# %% mistake: cuts
# You cut off what stands behind the point. Round to the nearest whole number.
def compress(state: dict, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    value = bucket.buffer()
    own = list(zip(bucket.parameters(), bucket.gradients(), strict=True))
    for parameter, gradient in own:
        if parameter in state:
            gradient += state[parameter]
    scale = value.abs().max() / 127
    sent = torch.zeros_like(value, dtype=torch.int8)
    if scale > 0:
        sent = (value / scale).to(torch.int8)
    value -= sent * scale
    for parameter, gradient in own:
        state[parameter] = gradient.clone()
    message = torch.cat([scale.reshape(1).view(torch.uint8), sent.view(torch.uint8)])
    inbox = [torch.empty_like(message) for _ in range(dist.get_world_size())]
    work = dist.all_gather(inbox, message, async_op=True)

    def mean(done):
        parts = [one[4:].view(torch.int8) * one[:4].view(torch.float32) for one in inbox]
        return torch.stack(parts).mean(0)

    return work.get_future().then(mean)


# %% mistake: scale_128
# Your scale makes the largest value 128, and there is no 128 in int8: it becomes -128, and the
# largest gradient changes its sign.
def compress(state: dict, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    value = bucket.buffer()
    own = list(zip(bucket.parameters(), bucket.gradients(), strict=True))
    for parameter, gradient in own:
        if parameter in state:
            gradient += state[parameter]
    scale = value.abs().max() / 128
    sent = torch.zeros_like(value, dtype=torch.int8)
    if scale > 0:
        sent = torch.round(value / scale).to(torch.int8)
    value -= sent * scale
    for parameter, gradient in own:
        state[parameter] = gradient.clone()
    message = torch.cat([scale.reshape(1).view(torch.uint8), sent.view(torch.uint8)])
    inbox = [torch.empty_like(message) for _ in range(dist.get_world_size())]
    work = dist.all_gather(inbox, message, async_op=True)

    def mean(done):
        parts = [one[4:].view(torch.int8) * one[:4].view(torch.float32) for one in inbox]
        return torch.stack(parts).mean(0)

    return work.get_future().then(mean)


# %% mistake: sums_whole_numbers
# You all-reduce the whole numbers as int8. They overflow at 127, and each rank has a scale of its
# own: gather them, and multiply first.
def compress(state, bucket):
    value = bucket.buffer()
    own = list(zip(bucket.parameters(), bucket.gradients(), strict=True))
    for parameter, gradient in own:
        if parameter in state:
            gradient += state[parameter]
    scale = value.abs().max() / 127
    sent = torch.zeros_like(value, dtype=torch.int8)
    if scale > 0:
        sent = torch.round(value / scale).to(torch.int8)
    value -= sent * scale
    for parameter, gradient in own:
        state[parameter] = gradient.clone()
    dist.all_reduce(scale)
    scale = scale / dist.get_world_size()
    future = dist.all_reduce(sent, async_op=True).get_future()
    return future.then(lambda done: sent * scale / dist.get_world_size())


# %% mistake: own_scale_for_all
# You multiply everything that arrives by your own scale. Each rank has one, and it goes along for
# that reason.
def compress(state: dict, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    value = bucket.buffer()
    own = list(zip(bucket.parameters(), bucket.gradients(), strict=True))
    for parameter, gradient in own:
        if parameter in state:
            gradient += state[parameter]
    scale = value.abs().max() / 127
    sent = torch.zeros_like(value, dtype=torch.int8)
    if scale > 0:
        sent = torch.round(value / scale).to(torch.int8)
    value -= sent * scale
    for parameter, gradient in own:
        state[parameter] = gradient.clone()
    message = torch.cat([scale.reshape(1).view(torch.uint8), sent.view(torch.uint8)])
    inbox = [torch.empty_like(message) for _ in range(dist.get_world_size())]
    work = dist.all_gather(inbox, message, async_op=True)

    def mean(done):
        parts = [one[4:].view(torch.int8) * message[:4].view(torch.float32) for one in inbox]
        return torch.stack(parts).mean(0)

    return work.get_future().then(mean)


# %% mistake: waits
# Your hook waits for the gather. Backward stands still in it, and no gradient is computed while
# bytes are on the way. Return the `Future`, and do the rest in `then`.
def compress(state: dict, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    value = bucket.buffer()
    own = list(zip(bucket.parameters(), bucket.gradients(), strict=True))
    for parameter, gradient in own:
        if parameter in state:
            gradient += state[parameter]
    scale = value.abs().max() / 127
    sent = torch.zeros_like(value, dtype=torch.int8)
    if scale > 0:
        sent = torch.round(value / scale).to(torch.int8)
    value -= sent * scale
    for parameter, gradient in own:
        state[parameter] = gradient.clone()
    message = torch.cat([scale.reshape(1).view(torch.uint8), sent.view(torch.uint8)])
    inbox = [torch.empty_like(message) for _ in range(dist.get_world_size())]
    work = dist.all_gather(inbox, message, async_op=True)
    work.wait()

    def mean(done):
        parts = [one[4:].view(torch.int8) * one[:4].view(torch.float32) for one in inbox]
        return torch.stack(parts).mean(0)

    return work.get_future().then(mean)


# %% mistake: sends_floats
# You round, and send the result as float32: four bytes per element, as before.
def compress(state: dict, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    value = bucket.buffer()
    own = list(zip(bucket.parameters(), bucket.gradients(), strict=True))
    for parameter, gradient in own:
        if parameter in state:
            gradient += state[parameter]
    scale = value.abs().max() / 127
    sent = torch.zeros_like(value, dtype=torch.int8)
    if scale > 0:
        sent = torch.round(value / scale).to(torch.int8)
    value -= sent * scale
    for parameter, gradient in own:
        state[parameter] = gradient.clone()
    message = sent * scale
    inbox = [torch.empty_like(message) for _ in range(dist.get_world_size())]
    work = dist.all_gather(inbox, message, async_op=True)

    def mean(done):
        parts = [one for one in inbox]
        return torch.stack(parts).mean(0)

    return work.get_future().then(mean)


# %% mistake: a_scale_per_parameter
# You take a scale for each parameter. The exercise wants one for the bucket; one for every small
# bias costs more than it gives.
def compress(state, bucket):
    value = bucket.buffer()
    messages = []
    for parameter, gradient in zip(bucket.parameters(), bucket.gradients(), strict=True):
        if parameter in state:
            gradient += state[parameter]
        scale = gradient.abs().max() / 127
        sent = torch.zeros_like(gradient, dtype=torch.int8)
        if scale > 0:
            sent = torch.round(gradient / scale).to(torch.int8)
        gradient -= sent * scale
        state[parameter] = gradient.clone()
        messages += [scale.reshape(1).view(torch.uint8), sent.reshape(-1).view(torch.uint8)]
    sizes = [gradient.numel() for gradient in bucket.gradients()]
    message = torch.cat(messages)
    inbox = [torch.empty_like(message) for _ in range(dist.get_world_size())]
    work = dist.all_gather(inbox, message, async_op=True)

    def mean(done):
        total = torch.zeros_like(value)
        for one in inbox:
            start = 0
            for size, piece in zip(sizes, total.split(sizes)):
                scale = one[start : start + 4].clone().view(torch.float32)
                numbers = one[start + 4 : start + 4 + size].view(torch.int8)
                piece += scale * numbers / len(inbox)
                start += 4 + size
        return total

    return work.get_future().then(mean)


# %% alternate: two_gathers
# The scale and the numbers go in two messages; values are kept in float64.
def compress(state, bucket):
    world = dist.get_world_size()
    params = bucket.parameters()
    flat = bucket.buffer().clone()
    at = 0
    for p in params:
        flat[at : at + p.numel()] += state.get(id(p), 0.0)
        at += p.numel()
    top = flat.abs().max()
    step = top / 127 if top > 0 else torch.ones(())
    whole = (flat / step).round_().clamp_(-127, 127)
    rest = flat - whole * step
    for p, left in zip(params, rest.split([p.numel() for p in params])):
        state[id(p)] = left.clone()
    numbers, steps = (whole.char(), step.reshape(1))
    all_steps = [torch.zeros(1) for _ in range(world)]
    all_numbers = torch.zeros(world * len(flat), dtype=torch.int8)
    first = dist.all_gather(all_steps, steps, async_op=True).get_future()
    second = dist.all_gather_into_tensor(all_numbers, numbers, async_op=True).get_future()

    def unpack(done):
        done.value()
        rows = all_numbers.view(world, -1).float()
        return (torch.cat(all_steps)[:, None] * rows).sum(0) / world

    return torch.futures.collect_all([first, second]).then(unpack)


# %% alternate: wider_inside
# Values and what is left in float64; the scale goes behind the numbers.
def compress(state, bucket):
    buffer, world = (bucket.buffer(), dist.get_world_size())
    value, at = (buffer.double(), 0)
    for p in bucket.parameters():
        if p in state:
            value[at : at + p.numel()] += state[p]
        at += p.numel()
    scale = (value.abs().max() / 127).float()
    sent = torch.round(value / (scale if scale else 1)).clamp(-127, 127).to(torch.int8)
    left = value - sent.double() * scale.double()
    for p, piece in zip(bucket.parameters(), left.split([p.numel() for p in bucket.parameters()])):
        state[p] = piece
    message = torch.cat([sent, scale.reshape(1).view(torch.int8)])
    inbox = [torch.empty_like(message) for _ in range(world)]

    def unpack(_):
        total = torch.zeros_like(value)
        for one in inbox:
            total += one[:-4].double() * one[-4:].clone().view(torch.float32).double()
        return (total / world).float()

    return dist.all_gather(inbox, message, async_op=True).get_future().then(unpack)
