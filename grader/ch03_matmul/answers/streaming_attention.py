# %% blocked: builtin_sdpa
# `scaled_dot_product_attention` is the answer. Take the keys block by block.
def streaming_attention(q, k, v, mask, block):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


# %% mistake: all_scores
# Your result is right, and all the scores were in memory at once. Take `block` keys at a time, and
# forget their scores before the next.
def streaming_attention(q, k, v, mask, block):
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask
    empty = (scores == -math.inf).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(empty, 0.0), dim=-1)
    return weights.masked_fill(empty, 0.0) @ v


# %% mistake: two_passes
# You went through the keys twice: once for the maximum, once for the weights. One pass is enough if
# you correct what you have whenever the maximum grows.
def streaming_attention(q, k, v, mask, block):
    keys = k.shape[-2]
    if mask is not None:
        mask = mask.expand(*mask.shape[:-1], keys)

    def scores_of(part):
        scores = (q @ k[..., part, :].transpose(-2, -1)) * q.shape[-1] ** -0.5
        if mask is None:
            return scores
        if mask.dtype is torch.bool:
            return scores.masked_fill(~mask[..., part], -math.inf)
        return scores + mask[..., part]

    parts = [slice(start, start + block) for start in range(0, keys, block)]
    top = q.new_full((*q.shape[:-1], 1), -math.inf)
    for part in parts:
        top = torch.maximum(top, scores_of(part).amax(-1, keepdim=True))
    top = top.masked_fill(top == -math.inf, 0.0)
    total, result = torch.zeros_like(top), q.new_zeros(*q.shape[:-1], v.shape[-1])
    for part in parts:
        weights = torch.exp(scores_of(part) - top)
        total = total + weights.sum(-1, keepdim=True)
        result = result + weights @ v[..., part, :]
    return result / total.masked_fill(total == 0, 1.0)


# %% mistake: no_correction
# You keep the maximum up to date, but not what was summed under the old one. Multiply the sum and
# the result by $e^{m_{old} - m_{new}}$ before you add a block.
def streaming_attention(q, k, v, mask, block):
    keys = k.shape[-2]
    if mask is not None:
        mask = mask.expand(*mask.shape[:-1], keys)
    top = q.new_full((*q.shape[:-1], 1), -math.inf)
    total, result = torch.zeros_like(top), q.new_zeros(*q.shape[:-1], v.shape[-1])
    for start in range(0, keys, block):
        part = slice(start, start + block)
        scores = (q @ k[..., part, :].transpose(-2, -1)) * q.shape[-1] ** -0.5
        if mask is not None and mask.dtype is torch.bool:
            scores = scores.masked_fill(~mask[..., part], -math.inf)
        elif mask is not None:
            scores = scores + mask[..., part]
        top = torch.maximum(top, scores.amax(-1, keepdim=True))
        weights = torch.exp(scores - top.masked_fill(top == -math.inf, 0.0))
        total = total + weights.sum(-1, keepdim=True)
        result = result + weights @ v[..., part, :]
    return result / total.masked_fill(total == 0, 1.0)


# %% mistake: corrects_only_the_sum
# You correct the sum of the weights when the maximum grows, but not the weighted sum of the values.
# Both were made with the old maximum.
def streaming_attention(q, k, v, mask, block):
    keys = k.shape[-2]
    if mask is not None:
        mask = mask.expand(*mask.shape[:-1], keys)
    top = q.new_full((*q.shape[:-1], 1), -math.inf)
    total, result = torch.zeros_like(top), q.new_zeros(*q.shape[:-1], v.shape[-1])
    for start in range(0, keys, block):
        part = slice(start, start + block)
        scores = (q @ k[..., part, :].transpose(-2, -1)) * q.shape[-1] ** -0.5
        if mask is not None and mask.dtype is torch.bool:
            scores = scores.masked_fill(~mask[..., part], -math.inf)
        elif mask is not None:
            scores = scores + mask[..., part]
        new_top = torch.maximum(top, scores.amax(-1, keepdim=True))
        finite_top = new_top.masked_fill(new_top == -math.inf, 0.0)
        weights = torch.exp(scores - finite_top)
        total = total * torch.exp(top - finite_top) + weights.sum(-1, keepdim=True)
        result = result + weights @ v[..., part, :]
        top = new_top
    return result / total.masked_fill(total == 0, 1.0)


# %% mistake: nan_at_the_start
# While nothing was allowed so far, you subtract $-\infty$ from $-\infty$. The NaN spoils the row for
# good. Subtract zero until there is a finite maximum.
def streaming_attention(q, k, v, mask, block):
    keys = k.shape[-2]
    if mask is not None:
        mask = mask.expand(*mask.shape[:-1], keys)
    top = q.new_full((*q.shape[:-1], 1), -math.inf)
    total, result = torch.zeros_like(top), q.new_zeros(*q.shape[:-1], v.shape[-1])
    for start in range(0, keys, block):
        part = slice(start, start + block)
        scores = (q @ k[..., part, :].transpose(-2, -1)) * q.shape[-1] ** -0.5
        if mask is not None and mask.dtype is torch.bool:
            scores = scores.masked_fill(~mask[..., part], -math.inf)
        elif mask is not None:
            scores = scores + mask[..., part]
        new_top = torch.maximum(top, scores.amax(-1, keepdim=True))
        weights, correction = torch.exp(scores - new_top), torch.exp(top - new_top)
        total = total * correction + weights.sum(-1, keepdim=True)
        result = result * correction + weights @ v[..., part, :]
        top = new_top
    return (result / total).nan_to_num(0.0)


# %% mistake: maximum_starts_at_zero
# You began with a maximum of zero. Where all scores lie far below, every weight underflows to zero.
# Begin with $-\infty$.
def streaming_attention(q, k, v, mask, block):
    keys = k.shape[-2]
    if mask is not None:
        mask = mask.expand(*mask.shape[:-1], keys)
    top = q.new_zeros(*q.shape[:-1], 1)
    total, result = torch.zeros_like(top), q.new_zeros(*q.shape[:-1], v.shape[-1])
    for start in range(0, keys, block):
        part = slice(start, start + block)
        scores = (q @ k[..., part, :].transpose(-2, -1)) * q.shape[-1] ** -0.5
        if mask is not None and mask.dtype is torch.bool:
            scores = scores.masked_fill(~mask[..., part], -math.inf)
        elif mask is not None:
            scores = scores + mask[..., part]
        new_top = torch.maximum(top, scores.amax(-1, keepdim=True))
        weights, correction = torch.exp(scores - new_top), torch.exp(top - new_top)
        total = total * correction + weights.sum(-1, keepdim=True)
        result = result * correction + weights @ v[..., part, :]
        top = new_top
    return result / total.masked_fill(total == 0, 1.0)


# %% mistake: no_maximum
# You add up exponentials of the scores as they are. Sums of any order agree then, until a score
# passes 88 and `float32` overflows. Subtract the maximum so far.
def streaming_attention(q, k, v, mask, block):
    keys = k.shape[-2]
    if mask is not None:
        mask = mask.expand(*mask.shape[:-1], keys)
    total, result = q.new_zeros(*q.shape[:-1], 1), q.new_zeros(*q.shape[:-1], v.shape[-1])
    for start in range(0, keys, block):
        part = slice(start, start + block)
        scores = (q @ k[..., part, :].transpose(-2, -1)) * q.shape[-1] ** -0.5
        if mask is not None and mask.dtype is torch.bool:
            scores = scores.masked_fill(~mask[..., part], -math.inf)
        elif mask is not None:
            scores = scores + mask[..., part]
        weights = torch.exp(scores)
        total = total + weights.sum(-1, keepdim=True)
        result = result + weights @ v[..., part, :]
    return result / total.masked_fill(total == 0, 1.0)


# %% mistake: cuts_the_broadcast_mask
# You cut columns out of a mask that has only one. From the second block on nothing is left of it.
# Expand its last dimension to S first; that costs no memory.
def streaming_attention(q, k, v, mask, block):
    keys = k.shape[-2]
    top = q.new_full((*q.shape[:-1], 1), -math.inf)
    total, result = torch.zeros_like(top), q.new_zeros(*q.shape[:-1], v.shape[-1])
    for start in range(0, keys, block):
        part = slice(start, start + block)
        scores = (q @ k[..., part, :].transpose(-2, -1)) * q.shape[-1] ** -0.5
        if mask is not None and mask.dtype is torch.bool:
            scores = scores.masked_fill(~mask[..., part], -math.inf)
        elif mask is not None:
            scores = scores + mask[..., part]
        new_top = torch.maximum(top, scores.amax(-1, keepdim=True))
        finite_top = new_top.masked_fill(new_top == -math.inf, 0.0)
        weights, correction = torch.exp(scores - finite_top), torch.exp(top - finite_top)
        total = total * correction + weights.sum(-1, keepdim=True)
        result = result * correction + weights @ v[..., part, :]
        top = new_top
    return result / total.masked_fill(total == 0, 1.0)


# %% mistake: converts_the_whole_mask
# You turned the whole boolean mask into floats at the start: four bytes for every score, which is
# what you set out to save. Cut first, convert the piece.
def streaming_attention(q, k, v, mask, block):
    keys = k.shape[-2]
    if mask is not None:
        if mask.dtype is torch.bool:
            mask = torch.where(mask, 0.0, -math.inf)
        mask = mask.expand(*mask.shape[:-1], keys)
    top = q.new_full((*q.shape[:-1], 1), -math.inf)
    total, result = torch.zeros_like(top), q.new_zeros(*q.shape[:-1], v.shape[-1])
    for start in range(0, keys, block):
        part = slice(start, start + block)
        scores = (q @ k[..., part, :].transpose(-2, -1)) * q.shape[-1] ** -0.5
        if mask is not None:
            scores = scores + mask[..., part]
        new_top = torch.maximum(top, scores.amax(-1, keepdim=True))
        finite_top = new_top.masked_fill(new_top == -math.inf, 0.0)
        weights, correction = torch.exp(scores - finite_top), torch.exp(top - finite_top)
        total = total * correction + weights.sum(-1, keepdim=True)
        result = result * correction + weights @ v[..., part, :]
        top = new_top
    return result / total.masked_fill(total == 0, 1.0)


# %% mistake: copies_the_keys
# You copied all keys, to have them transposed or contiguous. That alone is more than the budget. A
# transposed view of a block is enough.
def streaming_attention(q, k, v, mask, block):
    keys = k.shape[-2]
    k = (k * q.shape[-1] ** -0.5).contiguous()
    if mask is not None:
        mask = mask.expand(*mask.shape[:-1], keys)
    top = q.new_full((*q.shape[:-1], 1), -math.inf)
    total, result = torch.zeros_like(top), q.new_zeros(*q.shape[:-1], v.shape[-1])
    for start in range(0, keys, block):
        part = slice(start, start + block)
        scores = q @ k[..., part, :].transpose(-2, -1)
        if mask is not None and mask.dtype is torch.bool:
            scores = scores.masked_fill(~mask[..., part], -math.inf)
        elif mask is not None:
            scores = scores + mask[..., part]
        new_top = torch.maximum(top, scores.amax(-1, keepdim=True))
        finite_top = new_top.masked_fill(new_top == -math.inf, 0.0)
        weights, correction = torch.exp(scores - finite_top), torch.exp(top - finite_top)
        total = total * correction + weights.sum(-1, keepdim=True)
        result = result * correction + weights @ v[..., part, :]
        top = new_top
    return result / total.masked_fill(total == 0, 1.0)


# %% mistake: drops_the_rest
# You stop after the last whole block. Where `block` does not divide S, the keys behind it are never
# looked at.
def streaming_attention(q, k, v, mask, block):
    keys = k.shape[-2]
    if mask is not None:
        mask = mask.expand(*mask.shape[:-1], keys)
    top = q.new_full((*q.shape[:-1], 1), -math.inf)
    total, result = torch.zeros_like(top), q.new_zeros(*q.shape[:-1], v.shape[-1])
    for number in range(keys // block):
        part = slice(number * block, (number + 1) * block)
        scores = (q @ k[..., part, :].transpose(-2, -1)) * q.shape[-1] ** -0.5
        if mask is not None and mask.dtype is torch.bool:
            scores = scores.masked_fill(~mask[..., part], -math.inf)
        elif mask is not None:
            scores = scores + mask[..., part]
        new_top = torch.maximum(top, scores.amax(-1, keepdim=True))
        finite_top = new_top.masked_fill(new_top == -math.inf, 0.0)
        weights, correction = torch.exp(scores - finite_top), torch.exp(top - finite_top)
        total = total * correction + weights.sum(-1, keepdim=True)
        result = result * correction + weights @ v[..., part, :]
        top = new_top
    return result / total.masked_fill(total == 0, 1.0)


# %% alternate: log_space
# Carries the mean so far and the logarithm of its weight: each block is mixed in.
def streaming_attention(q, k, v, mask, block):
    q = q / math.sqrt(q.shape[-1])
    size = k.size(-2)
    mean = torch.zeros(*q.shape[:-1], v.size(-1))
    level = torch.full((*q.shape[:-1], 1), -math.inf)
    done = 0
    while done < size:
        kb, vb = k[..., done : done + block, :], v[..., done : done + block, :]
        s = torch.einsum("...le,...se->...ls", q, kb)
        if mask is not None:
            m = mask if mask.size(-1) == 1 else mask[..., done : done + block]
            s = torch.where(m, s, -math.inf) if m.dtype is torch.bool else s + m
        here = s.logsumexp(-1, keepdim=True)
        both = torch.logaddexp(level, here)
        safe = both.masked_fill(both == -math.inf, 0.0)
        mean = mean * (level - safe).exp() + (s - safe).exp() @ vb
        level = both
        done += block
    return mean


# %% alternate: in_place
# The three tensors are changed in place, and values and ones are multiplied together.
def streaming_attention(q, k, v, mask, block):
    shape = (*q.shape[:-1], k.shape[-2])
    wide = None if mask is None else mask.broadcast_to(shape)
    sums = q.new_zeros(*q.shape[:-1], v.shape[-1])
    total = q.new_zeros(*q.shape[:-1], 1)
    top = torch.full_like(total, -3e38)
    for ks, vs, at in zip(
        k.split(block, -2), v.split(block, -2), range(0, k.shape[-2], block), strict=True
    ):
        s = (q @ ks.mT).div_(q.shape[-1] ** 0.5)
        if wide is not None:
            m = wide[..., at : at + block]
            s = s.masked_fill_(~m, -math.inf) if m.dtype is torch.bool else s.add_(m)
        new = torch.maximum(top, s.amax(-1, keepdim=True))
        s.sub_(new).exp_()
        fix = top.sub_(new).exp_()
        total.mul_(fix).add_(s.sum(-1, keepdim=True))
        sums.mul_(fix).add_(s @ vs)
        top = new
    return sums.div_(total.clamp_(min=1e-30))
