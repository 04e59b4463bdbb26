# %% blocked: builtin_join
# `join` is what you are asked to build.
def uneven_inputs(model, optimizer, batches, loss):
    ddp = nn.parallel.DistributedDataParallel(model)
    rounds = 0
    with ddp.join(divide_by_initial_world_size=False):
        for batch in batches:
            optimizer.zero_grad()
            loss(ddp, batch).backward()
            optimizer.step()
            rounds += 1
    return rounds


# %% mistake: stops_alone
# A rank that has no batch left returns. The others wait for it in the next all-reduce, for ever.
def uneven_inputs(model, optimizer, batches, loss):
    rounds = 0
    for batch in batches:
        optimizer.zero_grad()
        loss(model, batch).backward()
        for p in model.parameters():
            if p.requires_grad:
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()
        optimizer.step()
        rounds += 1
    return rounds


# %% mistake: stops_with_the_first
# You stop when the first rank has run out. The batches of the others are thrown away.
def uneven_inputs(
    model: nn.Module, optimizer: torch.optim.Optimizer, batches: Iterable, loss: Callable
) -> int:
    parameters = [p for p in model.parameters() if p.requires_grad]
    iterator = iter(batches)
    rounds = 0
    while True:
        batch = next(iterator, None)
        active = torch.tensor(0 if batch is None else 1)
        dist.all_reduce(active)
        if active < dist.get_world_size():
            return rounds
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        if batch is not None:
            loss(model, batch).backward()
        for parameter in parameters:
            dist.all_reduce(parameter.grad)
            parameter.grad /= active
        optimizer.step()
        rounds += 1


# %% mistake: divides_by_all
# You divide by the number of all ranks. Where only some have a batch, their gradients come out too
# small: divide by how many there are in this round.
def uneven_inputs(
    model: nn.Module, optimizer: torch.optim.Optimizer, batches: Iterable, loss: Callable
) -> int:
    parameters = [p for p in model.parameters() if p.requires_grad]
    iterator = iter(batches)
    rounds = 0
    while True:
        batch = next(iterator, None)
        active = torch.tensor(0 if batch is None else 1)
        dist.all_reduce(active)
        if active == 0:
            return rounds
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        if batch is not None:
            loss(model, batch).backward()
        for parameter in parameters:
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
        optimizer.step()
        rounds += 1


# %% mistake: sums
# You add up the gradients and do not divide.
def uneven_inputs(
    model: nn.Module, optimizer: torch.optim.Optimizer, batches: Iterable, loss: Callable
) -> int:
    parameters = [p for p in model.parameters() if p.requires_grad]
    iterator = iter(batches)
    rounds = 0
    while True:
        batch = next(iterator, None)
        active = torch.tensor(0 if batch is None else 1)
        dist.all_reduce(active)
        if active == 0:
            return rounds
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        if batch is not None:
            loss(model, batch).backward()
        for parameter in parameters:
            dist.all_reduce(parameter.grad)
        optimizer.step()
        rounds += 1


# %% mistake: steps_only_with_data
# A rank without a batch makes no step. Its parameters stay behind those of the others.
def uneven_inputs(
    model: nn.Module, optimizer: torch.optim.Optimizer, batches: Iterable, loss: Callable
) -> int:
    parameters = [p for p in model.parameters() if p.requires_grad]
    iterator = iter(batches)
    rounds = 0
    while True:
        batch = next(iterator, None)
        active = torch.tensor(0 if batch is None else 1)
        dist.all_reduce(active)
        if active == 0:
            return rounds
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        if batch is not None:
            loss(model, batch).backward()
        for parameter in parameters:
            dist.all_reduce(parameter.grad)
            parameter.grad /= active
        if batch is not None:
            optimizer.step()
        rounds += 1


# %% mistake: takes_parameters_at_the_end
# A rank without a batch makes no steps, and takes the parameters of another at the end. The
# parameters agree then. What an optimizer remembers does not, and the next epoch drifts apart:
# every rank makes every step.
def uneven_inputs(
    model: nn.Module, optimizer: torch.optim.Optimizer, batches: Iterable, loss: Callable
) -> int:
    parameters = [p for p in model.parameters() if p.requires_grad]
    iterator = iter(batches)
    rounds = steps = 0
    while True:
        batch = next(iterator, None)
        active = torch.tensor(0 if batch is None else 1)
        dist.all_reduce(active)
        if active == 0:
            marks = torch.tensor(steps * dist.get_world_size() + dist.get_rank())
            dist.all_reduce(marks, op=dist.ReduceOp.MAX)
            for parameter in parameters:
                dist.broadcast(parameter.data, int(marks) % dist.get_world_size())
            return rounds
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        if batch is not None:
            loss(model, batch).backward()
        for parameter in parameters:
            dist.all_reduce(parameter.grad)
            parameter.grad /= active
        if batch is not None:
            optimizer.step()
            steps += 1
        rounds += 1


# %% mistake: gradients_stay
# A rank without a batch sends its last gradients again. Set them to zero first.
def uneven_inputs(
    model: nn.Module, optimizer: torch.optim.Optimizer, batches: Iterable, loss: Callable
) -> int:
    parameters = [p for p in model.parameters() if p.requires_grad]
    iterator = iter(batches)
    rounds = 0
    while True:
        batch = next(iterator, None)
        active = torch.tensor(0 if batch is None else 1)
        dist.all_reduce(active)
        if active == 0:
            return rounds
        for parameter in parameters:
            if batch is not None or parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        if batch is not None:
            loss(model, batch).backward()
        for parameter in parameters:
            dist.all_reduce(parameter.grad)
            parameter.grad /= active
        optimizer.step()
        rounds += 1


# %% mistake: old_gradients
# You never clear gradients. `backward` adds to what is there: in the first round to what was there
# before you were called.
def uneven_inputs(
    model: nn.Module, optimizer: torch.optim.Optimizer, batches: Iterable, loss: Callable
) -> int:
    parameters = [p for p in model.parameters() if p.requires_grad]
    iterator = iter(batches)
    rounds = 0
    while True:
        batch = next(iterator, None)
        active = torch.tensor(0 if batch is None else 1)
        dist.all_reduce(active)
        if active == 0:
            return rounds
        for parameter in parameters:
            parameter.grad = (
                torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            )
        if batch is not None:
            loss(model, batch).backward()
        for parameter in parameters:
            dist.all_reduce(parameter.grad)
            parameter.grad /= active
        optimizer.step()
        rounds += 1


# %% mistake: counts_first
# You read all batches into a list, to compare their numbers before you begin. They may not fit, and
# may come from a stream: exchange a flag in every round.
def uneven_inputs(
    model: nn.Module, optimizer: torch.optim.Optimizer, batches: Iterable, loss: Callable
) -> int:
    parameters = [p for p in model.parameters() if p.requires_grad]
    iterator = iter(list(batches))
    rounds = 0
    while True:
        batch = next(iterator, None)
        active = torch.tensor(0 if batch is None else 1)
        dist.all_reduce(active)
        if active == 0:
            return rounds
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        if batch is not None:
            loss(model, batch).backward()
        for parameter in parameters:
            dist.all_reduce(parameter.grad)
            parameter.grad /= active
        optimizer.step()
        rounds += 1


# %% mistake: reads_ahead
# You read the next batch before the step of this one is done, to know whether there is one. Ask
# when its round begins.
def uneven_inputs(model, optimizer, batches, loss):
    parameters = [p for p in model.parameters() if p.requires_grad]
    iterator = iter(batches)
    batch, rounds = (next(iterator, None), 0)
    while True:
        active = torch.tensor(0 if batch is None else 1)
        dist.all_reduce(active)
        if active == 0:
            return rounds
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        if batch is not None:
            loss(model, batch).backward()
        batch = next(iterator, None)
        for parameter in parameters:
            dist.all_reduce(parameter.grad)
            parameter.grad /= active
        optimizer.step()
        rounds += 1


# %% mistake: own_rounds
# You return the number of this rank's own batches. The rounds in which it shadowed the others
# count, too.
def uneven_inputs(
    model: nn.Module, optimizer: torch.optim.Optimizer, batches: Iterable, loss: Callable
) -> int:
    parameters = [p for p in model.parameters() if p.requires_grad]
    iterator = iter(batches)
    rounds = 0
    while True:
        batch = next(iterator, None)
        active = torch.tensor(0 if batch is None else 1)
        dist.all_reduce(active)
        if active == 0:
            return rounds
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        if batch is not None:
            loss(model, batch).backward()
        for parameter in parameters:
            dist.all_reduce(parameter.grad)
            parameter.grad /= active
        optimizer.step()
        rounds += batch is not None


# %% alternate: one_message_per_round
# All gradients and the flag travel in one flat tensor.
def uneven_inputs(model, optimizer, batches, loss):
    params = [p for p in model.parameters() if p.requires_grad]
    sizes = [p.numel() for p in params]
    batches = iter(batches)
    for rounds in range(10**9):
        flat = torch.zeros(sum(sizes) + 1, dtype=torch.float64)
        try:
            batch = next(batches)
        except StopIteration:
            pass
        else:
            grads = torch.autograd.grad(loss(model, batch), params)
            flat = torch.cat([g.reshape(-1) for g in grads] + [torch.ones(1, dtype=torch.float64)])
        dist.all_reduce(flat)
        there = int(flat[-1])
        if not there:
            return rounds
        optimizer.zero_grad()
        for p, piece in zip(params, (flat[:-1] / there).split(sizes)):
            p.grad = piece.view_as(p).to(p.dtype)
        optimizer.step()


# %% alternate: weights_before_summing
# Each rank divides before the sum, and those who have nothing send zeros; the world is asked with
# `all_gather`.
def uneven_inputs(model, optimizer, batches, loss):
    rounds, source, over = (0, iter(batches), object())
    while True:
        batch = next(source, over)
        flags = [torch.zeros(1) for _ in range(dist.get_world_size())]
        dist.all_gather(flags, torch.ones(1) if batch is not over else torch.zeros(1))
        share = sum((float(flag) for flag in flags))
        if share == 0:
            break
        optimizer.zero_grad(set_to_none=True)
        if batch is not over:
            (loss(model, batch) / share).backward()
        for p in filter(lambda p: p.requires_grad, model.parameters()):
            total = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(total)
            p.grad = total
        optimizer.step()
        rounds += 1
    return rounds
