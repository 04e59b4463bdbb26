# %% blocked: ddp_averages
# DDP averages by itself, over ranks and not over samples. Here you do better.
def average_gradients(parameters, samples):
    torch.nn.parallel.DistributedDataParallel(nn.ParameterList(parameters))


# %% mistake: sums
# Your gradients are sums over the ranks. An average divides as well: with two ranks yours are twice too large, and so
# is the step.
def average_gradients(parameters, samples):
    for parameter in parameters:
        if parameter.requires_grad:
            part = torch.zeros(parameter.shape, dtype=parameter.dtype)
            if samples:
                part += parameter.grad
            dist.all_reduce(part)
            parameter.grad = part


# %% mistake: mean_of_means
# You give each rank the same weight. A rank with one sample then counts as much as one with three, and a rank without
# any makes all gradients smaller. Weight by the number of samples.
def average_gradients(parameters, samples):
    for parameter in parameters:
        if parameter.requires_grad:
            part = torch.zeros(parameter.shape, dtype=parameter.dtype)
            if samples:
                part += parameter.grad
            dist.all_reduce(part)
            parameter.grad = part / dist.get_world_size()


# %% mistake: own_share_of_ranks
# You scale by your samples and divide by the number of ranks. The divisor is the number of all samples.
def average_gradients(parameters, samples):
    for parameter in parameters:
        if parameter.requires_grad:
            part = torch.zeros(parameter.shape, dtype=parameter.dtype)
            if samples:
                part += parameter.grad * samples
            dist.all_reduce(part)
            parameter.grad = part / dist.get_world_size()


# %% mistake: times_zero
# You rely on a weight of 0 to silence a rank without samples. NaN times 0 is NaN, and so is infinity times 0. Let such
# a rank bring zeros that never touched its gradient.
def average_gradients(parameters, samples):
    total = torch.tensor(samples)
    dist.all_reduce(total)
    for parameter in parameters:
        if parameter.requires_grad:
            part = torch.zeros(parameter.shape, dtype=parameter.dtype)
            if parameter.grad is not None:
                part += parameter.grad * samples
            dist.all_reduce(part)
            parameter.grad = part / total


# %% mistake: hides_nans
# You turn every NaN into a zero. On a rank without samples that is right. On one with samples a NaN says that training
# has gone wrong, and nobody will see it.
def average_gradients(parameters, samples):
    total = torch.tensor(samples)
    dist.all_reduce(total)
    for parameter in parameters:
        if parameter.requires_grad:
            part = torch.zeros(parameter.shape, dtype=parameter.dtype)
            if parameter.grad is not None:
                part += torch.nan_to_num(parameter.grad) * samples
            dist.all_reduce(part)
            parameter.grad = part / total


# %% mistake: stays_away
# A rank without samples, or without a gradient, leaves out an all-reduce. The others wait for it there: every
# rank takes part in every collective, with zeros if it has nothing else.
def average_gradients(parameters, samples):
    total = torch.tensor(samples)
    dist.all_reduce(total)
    if samples == 0:
        return
    for parameter in parameters:
        if parameter.requires_grad:
            part = (parameter.grad * samples).contiguous()
            dist.all_reduce(part)
            parameter.grad = part / total


# %% mistake: reduces_strided
# What you reduce has the strides of the gradient. `all_reduce` adds up memory position by position; where another rank
# has other strides, numbers of different places are added.
def average_gradients(parameters, samples):
    total = torch.tensor(samples)
    dist.all_reduce(total)
    for parameter in parameters:
        if parameter.requires_grad:
            part = parameter.grad * samples if samples else torch.zeros_like(parameter.detach())
            dist.all_reduce(part)
            parameter.grad = part / total


# %% mistake: frozen_too
# You send zeros for frozen parameters and give them a gradient. An optimizer with weight decay or momentum moves what
# has one.
def average_gradients(parameters, samples):
    total = torch.tensor(samples)
    dist.all_reduce(total)
    for parameter in parameters:
        part = torch.zeros(parameter.shape, dtype=parameter.dtype)
        if samples and parameter.grad is not None:
            part += parameter.grad * samples
        dist.all_reduce(part)
        parameter.grad = part / total


# %% mistake: count_with_a_dimension
# Your count is a tensor of shape `(1,)`. A gradient of shape `()`, divided by it, gets its dimension and fits its
# parameter no more. Make the count a number with `.item()`, or a tensor without dimensions.
def average_gradients(parameters, samples):
    total = torch.tensor([samples])
    dist.all_reduce(total)
    for p in parameters:
        if p.requires_grad:
            part = (
                torch.zeros(p.shape, dtype=p.dtype)
                if samples == 0
                else p.grad.contiguous() * samples
            )
            dist.all_reduce(part)
            p.grad = part / total


# %% mistake: counts_in_few_digits
# You add up the numbers of samples in a narrow dtype. bfloat16 counts to 256 and then skips numbers: use whole
# numbers, or a wide float.
def average_gradients(parameters, samples):
    total = torch.tensor(samples, dtype=torch.bfloat16)
    dist.all_reduce(total)
    for parameter in parameters:
        if parameter.requires_grad:
            part = torch.zeros(parameter.shape, dtype=parameter.dtype)
            if samples:
                part += parameter.grad * samples
            dist.all_reduce(part)
            parameter.grad = part / total


# %% alternate: all_in_one
# All gradients in one flat tensor, weighted before they are added up.
def average_gradients(parameters, samples):
    parameters = [p for p in parameters if p.requires_grad]
    counts = [None] * dist.get_world_size()
    dist.all_gather_object(counts, samples)
    share = samples / sum(counts)
    flat = torch.cat(
        [p.grad.reshape(-1) * share if samples else p.detach().reshape(-1) * 0 for p in parameters]
    )
    dist.all_reduce(flat)
    for p, grad in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
        p.grad = grad.view(p.shape)


# %% alternate: in_place
# Keeps the gradient's own tensor where there is one.
def average_gradients(parameters, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in filter(lambda p: p.requires_grad, parameters):
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        if not samples:
            p.grad.zero_()
        part = p.grad.contiguous().mul(samples / total.item())
        dist.all_reduce(part)
        p.grad.copy_(part)
