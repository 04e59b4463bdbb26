# %% blocked: builtin_clip
# The built-in knows nothing of the other ranks, and it is what you are asked to build.
def scaled_step(params, optimizer, scale, max_norm):
    for param in params:
        param.grad /= scale
    norm = torch.nn.utils.clip_grad_norm_(params, max_norm)
    optimizer.step()
    return float(norm)


# %% mistake: each_for_itself
# You look at your own shard only. Ranks with an infinity skip, the others step, and norms differ:
# ask all ranks.
def scaled_step(
    params: list[nn.Parameter], optimizer: torch.optim.Optimizer, scale: float, max_norm: float
) -> float | None:
    grads = [param.grad for param in params if param.grad is not None]
    squares = sum((grad.double().square().sum() for grad in grads))
    total = torch.as_tensor(squares, dtype=torch.float64)
    norm = total.sqrt().item() / scale
    finite = bool(total.isfinite())
    if finite:
        factor = min(1.0, max_norm / norm) if norm > 0 else 1.0
        for grad in grads:
            grad.mul_(factor / scale)
        optimizer.step()
    for param in params:
        param.grad = None
    return norm if finite else None


# %% mistake: asks_only_if_finite
# A rank that finds an infinity returns before it has told the others. They wait for it.
def scaled_step(
    params: list[nn.Parameter], optimizer: torch.optim.Optimizer, scale: float, max_norm: float
) -> float | None:
    grads = [param.grad for param in params if param.grad is not None]
    squares = sum((grad.double().square().sum() for grad in grads))
    total = torch.as_tensor(squares, dtype=torch.float64)
    if not total.isfinite():
        for param in params:
            param.grad = None
        return None
    dist.all_reduce(total)
    norm = total.sqrt().item() / scale
    finite = bool(total.isfinite())
    if finite:
        factor = min(1.0, max_norm / norm) if norm > 0 else 1.0
        for grad in grads:
            grad.mul_(factor / scale)
        optimizer.step()
    for param in params:
        param.grad = None
    return norm if finite else None


# %% mistake: adds_norms
# You add up the norms of the ranks. Norms do not add up: 3 and 4 make 5. Add their squares.
def scaled_step(
    params: list[nn.Parameter], optimizer: torch.optim.Optimizer, scale: float, max_norm: float
) -> float | None:
    grads = [param.grad for param in params if param.grad is not None]
    squares = sum((grad.double().square().sum() for grad in grads))
    total = torch.as_tensor(squares, dtype=torch.float64).sqrt()
    dist.all_reduce(total)
    norm = total.item() / scale
    finite = bool(total.isfinite())
    if finite:
        factor = min(1.0, max_norm / norm) if norm > 0 else 1.0
        for grad in grads:
            grad.mul_(factor / scale)
        optimizer.step()
    for param in params:
        param.grad = None
    return norm if finite else None


# %% mistake: adds_norms_of_parameters
# You add up the norms of single gradients. Norms do not add up: 3 and 4 make 5. Add the squares, of all
# parameters and all ranks, and take one root at the end.
def scaled_step(
    params: list[nn.Parameter], optimizer: torch.optim.Optimizer, scale: float, max_norm: float
) -> float | None:
    grads = [param.grad for param in params if param.grad is not None]
    norms = sum(grad.double().norm() for grad in grads)
    total = torch.as_tensor(norms, dtype=torch.float64)
    dist.all_reduce(total)
    norm = total.item() / scale
    finite = bool(total.isfinite())
    if finite:
        factor = min(1.0, max_norm / norm) if norm > 0 else 1.0
        for grad in grads:
            grad.mul_(factor / scale)
        optimizer.step()
    for param in params:
        param.grad = None
    return norm if finite else None


# %% mistake: mean_of_squares
# You average the squares over ranks. The norm is that of all gradients together: a sum.
def scaled_step(
    params: list[nn.Parameter], optimizer: torch.optim.Optimizer, scale: float, max_norm: float
) -> float | None:
    grads = [param.grad for param in params if param.grad is not None]
    squares = sum((grad.double().square().sum() for grad in grads))
    total = torch.as_tensor(squares, dtype=torch.float64)
    dist.all_reduce(total)
    total /= dist.get_world_size()
    norm = total.sqrt().item() / scale
    finite = bool(total.isfinite())
    if finite:
        factor = min(1.0, max_norm / norm) if norm > 0 else 1.0
        for grad in grads:
            grad.mul_(factor / scale)
        optimizer.step()
    for param in params:
        param.grad = None
    return norm if finite else None


# %% mistake: clips_before_unscaling
# You compare the norm of the scaled gradients with `max_norm`. Divide by the scale first.
def scaled_step(
    params: list[nn.Parameter], optimizer: torch.optim.Optimizer, scale: float, max_norm: float
) -> float | None:
    grads = [param.grad for param in params if param.grad is not None]
    squares = sum((grad.double().square().sum() for grad in grads))
    total = torch.as_tensor(squares, dtype=torch.float64)
    dist.all_reduce(total)
    norm = total.sqrt().item() / scale
    finite = bool(total.isfinite())
    if finite:
        factor = min(1.0, max_norm / (norm * scale)) if norm > 0 else 1.0
        for grad in grads:
            grad.mul_(factor / scale)
        optimizer.step()
    for param in params:
        param.grad = None
    return norm if finite else None


# %% mistake: forgets_the_scale
# You never divide the gradients by the scale.
def scaled_step(
    params: list[nn.Parameter], optimizer: torch.optim.Optimizer, scale: float, max_norm: float
) -> float | None:
    grads = [param.grad for param in params if param.grad is not None]
    squares = sum((grad.double().square().sum() for grad in grads))
    total = torch.as_tensor(squares, dtype=torch.float64)
    dist.all_reduce(total)
    norm = total.sqrt().item() / scale
    finite = bool(total.isfinite())
    if finite:
        factor = min(1.0, max_norm / norm) if norm > 0 else 1.0
        for grad in grads:
            grad.mul_(factor)
        optimizer.step()
    for param in params:
        param.grad = None
    return norm if finite else None


# %% mistake: lengthens
# You always multiply by `max_norm / norm`. Gradients that are shorter than that become longer.
# Clipping only shortens.
def scaled_step(
    params: list[nn.Parameter], optimizer: torch.optim.Optimizer, scale: float, max_norm: float
) -> float | None:
    grads = [param.grad for param in params if param.grad is not None]
    squares = sum((grad.double().square().sum() for grad in grads))
    total = torch.as_tensor(squares, dtype=torch.float64)
    dist.all_reduce(total)
    norm = total.sqrt().item() / scale
    finite = bool(total.isfinite())
    if finite:
        factor = max_norm / norm if norm > 0 else 1.0
        for grad in grads:
            grad.mul_(factor / scale)
        optimizer.step()
    for param in params:
        param.grad = None
    return norm if finite else None


# %% mistake: never_clips
# You return the norm and do not clip.
def scaled_step(
    params: list[nn.Parameter], optimizer: torch.optim.Optimizer, scale: float, max_norm: float
) -> float | None:
    grads = [param.grad for param in params if param.grad is not None]
    squares = sum((grad.double().square().sum() for grad in grads))
    total = torch.as_tensor(squares, dtype=torch.float64)
    dist.all_reduce(total)
    norm = total.sqrt().item() / scale
    finite = bool(total.isfinite())
    if finite:
        factor = 1.0 if norm > 0 else 1.0
        for grad in grads:
            grad.mul_(factor / scale)
        optimizer.step()
    for param in params:
        param.grad = None
    return norm if finite else None


# %% mistake: squares_in_their_dtype
# You square in the dtype of the gradients. A float16 of 300 has no finite square, and a float32 of
# 1e30 neither: you skip steps that are fine.
def scaled_step(
    params: list[nn.Parameter], optimizer: torch.optim.Optimizer, scale: float, max_norm: float
) -> float | None:
    grads = [param.grad for param in params if param.grad is not None]
    squares = sum((grad.square().sum() for grad in grads))
    total = torch.as_tensor(squares, dtype=torch.float64)
    dist.all_reduce(total)
    norm = total.sqrt().item() / scale
    finite = bool(total.isfinite())
    if finite:
        factor = min(1.0, max_norm / norm) if norm > 0 else 1.0
        for grad in grads:
            grad.mul_(factor / scale)
        optimizer.step()
    for param in params:
        param.grad = None
    return norm if finite else None


# %% mistake: keeps_bad_gradients
# When a step is skipped you leave the gradients where they are. The next backward adds to an
# infinity.
def scaled_step(
    params: list[nn.Parameter], optimizer: torch.optim.Optimizer, scale: float, max_norm: float
) -> float | None:
    grads = [param.grad for param in params if param.grad is not None]
    squares = sum((grad.double().square().sum() for grad in grads))
    total = torch.as_tensor(squares, dtype=torch.float64)
    dist.all_reduce(total)
    norm = total.sqrt().item() / scale
    finite = bool(total.isfinite())
    if finite:
        factor = min(1.0, max_norm / norm) if norm > 0 else 1.0
        for grad in grads:
            grad.mul_(factor / scale)
        optimizer.step()
    if finite:
        for param in params:
            param.grad = None
    return norm if finite else None


# %% mistake: norm_after_clipping
# You return the norm after clipping. Asked for is the one before: it is what tells you that
# something went wrong.
def scaled_step(
    params: list[nn.Parameter], optimizer: torch.optim.Optimizer, scale: float, max_norm: float
) -> float | None:
    grads = [param.grad for param in params if param.grad is not None]
    squares = sum((grad.double().square().sum() for grad in grads))
    total = torch.as_tensor(squares, dtype=torch.float64)
    dist.all_reduce(total)
    norm = total.sqrt().item() / scale
    finite = bool(total.isfinite())
    if finite:
        factor = min(1.0, max_norm / norm) if norm > 0 else 1.0
        for grad in grads:
            grad.mul_(factor / scale)
        optimizer.step()
    for param in params:
        param.grad = None
    return min(norm, max_norm) if finite else None


# %% mistake: two_messages
# You ask twice: once for overflow, once for the norm. A sum of squares that is not finite tells of
# both.
def scaled_step(
    params: list[nn.Parameter], optimizer: torch.optim.Optimizer, scale: float, max_norm: float
) -> float | None:
    grads = [param.grad for param in params if param.grad is not None]
    squares = sum((grad.double().square().sum() for grad in grads))
    total = torch.as_tensor(squares, dtype=torch.float64)
    flag = torch.tensor(float(not total.isfinite()))
    dist.all_reduce(flag)
    dist.all_reduce(total)
    norm = total.sqrt().item() / scale
    finite = bool(total.isfinite())
    if finite:
        factor = min(1.0, max_norm / norm) if norm > 0 else 1.0
        for grad in grads:
            grad.mul_(factor / scale)
        optimizer.step()
    for param in params:
        param.grad = None
    return norm if finite else None


# %% mistake: divides_by_zero
# All gradients are zero, and you divide by their norm.
def scaled_step(
    params: list[nn.Parameter], optimizer: torch.optim.Optimizer, scale: float, max_norm: float
) -> float | None:
    grads = [param.grad for param in params if param.grad is not None]
    squares = sum((grad.double().square().sum() for grad in grads))
    total = torch.as_tensor(squares, dtype=torch.float64)
    dist.all_reduce(total)
    norm = total.sqrt().item() / scale
    finite = bool(total.isfinite())
    if finite:
        factor = min(1.0, max_norm / norm)
        for grad in grads:
            grad.mul_(factor / scale)
        optimizer.step()
    for param in params:
        param.grad = None
    return norm if finite else None


# %% alternate: gathers_the_squares
# The sums of squares are gathered; gradients are replaced, not changed in place.
def scaled_step(params, optimizer, scale, max_norm):
    own = torch.zeros(1, dtype=torch.float64)
    for p in params:
        if p.grad is not None:
            own += torch.linalg.vector_norm(p.grad.to(torch.float64) / scale) ** 2
    everyone = [torch.zeros_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, own)
    total = sum(everyone).item() ** 0.5
    result = None
    if total == total and total != float("inf"):
        result = total
        shrink = max_norm / total if total > max_norm else 1.0
        for p in params:
            if p.grad is not None:
                p.grad = (p.grad.double() * shrink / scale).to(p.dtype)
        optimizer.step()
    for p in params:
        p.grad = None
    return result


# %% alternate: unscales_first
# Gradients are divided by the scale first, and shortened in a second pass.
def scaled_step(params, optimizer, scale, max_norm):
    squares = torch.zeros((), dtype=torch.float64)
    for p in params:
        if p.grad is not None:
            p.grad.div_(scale)
            squares += (p.grad.double() ** 2).sum()
    dist.all_reduce(squares)
    norm = float(squares) ** 0.5
    good = norm < float("inf")
    if good:
        if norm > max_norm:
            for p in params:
                if p.grad is not None:
                    p.grad.mul_(max_norm / norm)
        optimizer.step()
    for p in params:
        p.grad = None
    return norm if good else None
