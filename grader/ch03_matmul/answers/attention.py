# %% blocked: builtin_sdpa
# `scaled_dot_product_attention` is the answer. Build it from two matrix products.
def attention(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


# %% mistake: no_scale
# You did not divide the scores by the root of $E$. The longer the vectors, the more your softmax
# favours a single key.
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask
    empty = (scores == -math.inf).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(empty, 0.0), dim=-1)
    return weights.masked_fill(empty, 0.0) @ v


# %% mistake: scales_by_the_keys
# You divided by the root of the number of keys. The scale belongs to the length of a vector, `E`:
# it makes up for the number of terms in each dot product.
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-2])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask
    empty = (scores == -math.inf).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(empty, 0.0), dim=-1)
    return weights.masked_fill(empty, 0.0) @ v


# %% mistake: true_forbids
# You read `True` as forbidden, as `MultiheadAttention` does. Here, as in
# `scaled_dot_product_attention`, `True` means may look.
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(mask, -math.inf) if mask.dtype is torch.bool else scores + mask
    empty = (scores == -math.inf).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(empty, 0.0), dim=-1)
    return weights.masked_fill(empty, 0.0) @ v


# %% mistake: adds_the_boolean
# You added the boolean mask as if it held numbers: `True` makes a score larger by one, and nothing
# is forbidden.
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores + mask
    empty = (scores == -math.inf).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(empty, 0.0), dim=-1)
    return weights.masked_fill(empty, 0.0) @ v


# %% mistake: mask_before_scale
# You added the mask before dividing by the root of $E$, so its preferences are weakened too. Add it
# to the divided scores.
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask
    scores = scores * q.shape[-1] ** -0.5
    empty = (scores == -math.inf).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(empty, 0.0), dim=-1)
    return weights.masked_fill(empty, 0.0) @ v


# %% mistake: softmax_over_queries
# Your softmax runs over the queries. Each query spreads its weight over the keys: the last
# dimension.
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask
    empty = (scores == -math.inf).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(empty, 0.0), dim=-2)
    return weights.masked_fill(empty, 0.0) @ v


# %% mistake: masks_the_weights
# You masked after the softmax. The weights that are left no longer sum to one, because the
# forbidden keys had their share in the denominator. Mask the scores.
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if mask is None:
        return torch.softmax(scores, -1) @ v
    if mask.dtype is torch.bool:
        return torch.softmax(scores, -1) * mask @ v
    allowed = mask > -math.inf
    return torch.softmax(scores + mask.masked_fill(~allowed, 0.0), -1) * allowed @ v


# %% mistake: nan_rows
# A row that may look at nothing gives NaN: the softmax divided zero by zero. It must give zeros.
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask
    return torch.softmax(scores, dim=-1) @ v


# %% mistake: minus_a_billion
# A row in which everything is forbidden takes the mean of all that it must not see. A large negative
# number in place of $-\infty$ does that. So do harmless scores for an empty row, if nobody takes its
# weights away after the softmax.
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if mask is not None and mask.dtype is torch.bool:
        scores = scores.masked_fill(~mask, -1e9)
    elif mask is not None:
        scores = scores + mask.clamp(min=-1e9)
    return torch.softmax(scores, dim=-1) @ v


# %% mistake: nan_to_num
# You replaced the NaN after the softmax. The result is right; the gradient is not. Backward, the
# softmax multiplies by its own result, which is still NaN. Do not let the NaN arise.
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask
    weights = torch.softmax(scores, dim=-1)
    return torch.where(weights.isnan(), 0.0, weights) @ v


# %% mistake: leaves_the_graph
# Your values are right, and no gradient arrives where it should. `detach`, `.data`, `numpy` and
# `torch.no_grad` cut the graph: only a row's maximum may leave it.
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask
    empty = (scores == -math.inf).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)
    return weights.detach() @ v


# %% mistake: float32_inside
# You compute in `float32` and convert the result. A `float64` question so loses half of its digits.
# Compute in the dtype of `q`.
def attention(q, k, v, mask=None):
    scores = q.float() @ k.float().transpose(-2, -1) * q.shape[-1] ** -0.5
    if mask is not None:
        forbidden = ~mask if mask.dtype is torch.bool else mask == -math.inf
        scores = scores if mask.dtype is torch.bool else scores + mask.float()
        scores = scores.masked_fill(forbidden, -math.inf)
    empty = (scores == -math.inf).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)
    return (weights @ v.float()).to(q.dtype)


# %% mistake: plain_exponentials
# You took exponentials of the scores as they are. Beyond 88 they overflow in `float32`, and far
# below zero they all vanish. Subtract the row's maximum first.
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask
    weights = torch.exp(scores)
    total = weights.sum(-1, keepdim=True)
    return weights / torch.where(total == 0, 1.0, total) @ v


# %% mistake: one_maximum_for_all
# You subtracted the maximum of all scores. A row whose own scores lie far below it underflows to
# zero. Each row has a maximum of its own.
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask
    top = scores.detach().max() if scores.numel() else 0.0
    weights = torch.exp(scores - (top if top > -math.inf else 0.0))
    total = weights.sum(-1, keepdim=True)
    return weights / torch.where(total == 0, 1.0, total) @ v


# %% mistake: negative_large_rows
# You clamped the scores before the exponential. Two scores beyond your limit look the same then,
# and share the weight that one of them should have.
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask
    weights = torch.exp(scores.clamp(max=80))
    total = weights.sum(-1, keepdim=True)
    return weights / torch.where(total == 0, 1.0, total) @ v


# %% alternate: einsum_and_exponentials
# The softmax by hand: the maximum leaves the graph, an empty row is divided by one.
def attention(q, k, v, mask=None):
    scores = torch.einsum("...le,...se->...ls", q, k) / math.sqrt(q.shape[-1])
    if mask is not None:
        bias = torch.where(mask, 0.0, -math.inf) if mask.dtype is torch.bool else mask
        scores = scores + bias.to(q.dtype)
    top = scores.detach().amax(-1, keepdim=True)
    weights = torch.exp(scores - torch.where(top == -math.inf, 0.0, top))
    total = weights.sum(-1, keepdim=True)
    return torch.einsum("...ls,...sv->...lv", weights, v) / torch.where(total == 0, 1.0, total)


# %% alternate: logsumexp
# Log-weights first, in float64.
def attention(q, k, v, mask=None):
    scores = q.double() / q.shape[-1] ** 0.5 @ k.double().mT
    allowed = torch.ones_like(scores, dtype=torch.bool)
    if mask is not None and mask.dtype is torch.bool:
        allowed = allowed & mask
    elif mask is not None:
        allowed = allowed & (mask != -math.inf)
        scores = scores + torch.where(mask == -math.inf, 0.0, mask)
    some = allowed.any(-1, keepdim=True)
    scores = scores.masked_fill(~allowed & some, -math.inf)
    weights = (scores - scores.logsumexp(-1, keepdim=True)).exp() * some
    return (weights @ v.double()).to(q.dtype)
