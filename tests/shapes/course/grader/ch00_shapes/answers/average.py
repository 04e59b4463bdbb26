# %% blocked: gathers
# The course wants an all-reduce here.
def average(x):
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x)
    return torch.stack(parts).mean(0)


# %% mistake: forgets_to_divide
# You return the sum. Divide by the number of ranks.
def average(x):
    total = x.clone()
    dist.all_reduce(total)
    return total


# %% mistake: one_rank_only
# Rank 0 alone calls the collective and waits for ever. Every rank must call it.
def average(x):
    total = x.clone()
    if dist.get_rank() == 0:
        dist.all_reduce(total)
    return total / dist.get_world_size()


# %% mistake: in_place
# Your mean is right, but `x` was overwritten: `all_reduce` works in place. Give it a copy.
def average(x):
    dist.all_reduce(x)
    return x / dist.get_world_size()


# %% mistake: needs_three
# Your code raises where there are two ranks.
def average(x):
    if dist.get_world_size() < 3:
        raise ValueError("at least three ranks are needed")
    return x


# %% alternate: divides_first
# The same mean, rounded in another place.
def average(x):
    part = x / dist.get_world_size()
    dist.all_reduce(part)
    return part
