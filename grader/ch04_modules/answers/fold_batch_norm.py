# %% blocked: torchs_own
# This is the function that you are asked to write.
def fold_batch_norm(conv, norm):
    return torch.nn.utils.fusion.fuse_conv_bn_eval(conv.eval(), norm)


# %% mistake: forgets_the_mean
# You scale and add the norm's bias. The running mean is taken off first, so it belongs to the new
# bias as well.
def fold_batch_norm(conv, norm):
    import copy

    if norm.running_mean is None:
        raise ValueError("a norm without running statistics depends on the batch")
    with torch.no_grad():
        scale = (norm.running_var + norm.eps).rsqrt()
        offset = torch.zeros_like(scale)
        if norm.weight is not None:
            scale = scale * norm.weight
            offset = offset * norm.weight + norm.bias
        if conv.bias is not None:
            offset = offset + conv.bias * scale
        shape = (-1, *[1] * (conv.weight.dim() - 1))
        weight = conv.weight * scale.reshape(shape)
    folded = copy.deepcopy(conv)
    folded.weight = nn.Parameter(weight.to(conv.weight.dtype))
    folded.bias = nn.Parameter(offset.to(conv.weight.dtype))
    return folded


# %% mistake: bias_not_scaled
# You add the convolution's bias as it is. It goes through the norm with the rest, and so is
# scaled.
def fold_batch_norm(conv, norm):
    import copy

    if norm.running_mean is None:
        raise ValueError("a norm without running statistics depends on the batch")
    with torch.no_grad():
        scale = (norm.running_var + norm.eps).rsqrt()
        offset = -norm.running_mean * scale
        if norm.weight is not None:
            scale = scale * norm.weight
            offset = offset * norm.weight + norm.bias
        if conv.bias is not None:
            offset = offset + conv.bias
        shape = (-1, *[1] * (conv.weight.dim() - 1))
        weight = conv.weight * scale.reshape(shape)
    folded = copy.deepcopy(conv)
    folded.weight = nn.Parameter(weight.to(conv.weight.dtype))
    folded.bias = nn.Parameter(offset.to(conv.weight.dtype))
    return folded


# %% mistake: forgets_eps
# You leave out eps. For channels with a small variance it makes all the difference.
def fold_batch_norm(conv, norm):
    import copy

    if norm.running_mean is None:
        raise ValueError("a norm without running statistics depends on the batch")
    with torch.no_grad():
        scale = norm.running_var.rsqrt()
        offset = -norm.running_mean * scale
        if norm.weight is not None:
            scale = scale * norm.weight
            offset = offset * norm.weight + norm.bias
        if conv.bias is not None:
            offset = offset + conv.bias * scale
        shape = (-1, *[1] * (conv.weight.dim() - 1))
        weight = conv.weight * scale.reshape(shape)
    folded = copy.deepcopy(conv)
    folded.weight = nn.Parameter(weight.to(conv.weight.dtype))
    folded.bias = nn.Parameter(offset.to(conv.weight.dtype))
    return folded


# %% mistake: usual_eps
# You write `1e-5` for eps. The norm has its own.
def fold_batch_norm(conv, norm):
    import copy

    if norm.running_mean is None:
        raise ValueError("a norm without running statistics depends on the batch")
    with torch.no_grad():
        scale = (norm.running_var + 1e-5).rsqrt()
        offset = -norm.running_mean * scale
        if norm.weight is not None:
            scale = scale * norm.weight
            offset = offset * norm.weight + norm.bias
        if conv.bias is not None:
            offset = offset + conv.bias * scale
        shape = (-1, *[1] * (conv.weight.dim() - 1))
        weight = conv.weight * scale.reshape(shape)
    folded = copy.deepcopy(conv)
    folded.weight = nn.Parameter(weight.to(conv.weight.dtype))
    folded.bias = nn.Parameter(offset.to(conv.weight.dtype))
    return folded


# %% mistake: divides_by_variance
# You divide by the variance instead of its root.
def fold_batch_norm(conv, norm):
    import copy

    if norm.running_mean is None:
        raise ValueError("a norm without running statistics depends on the batch")
    with torch.no_grad():
        scale = (norm.running_var + norm.eps).reciprocal()
        offset = -norm.running_mean * scale
        if norm.weight is not None:
            scale = scale * norm.weight
            offset = offset * norm.weight + norm.bias
        if conv.bias is not None:
            offset = offset + conv.bias * scale
        shape = (-1, *[1] * (conv.weight.dim() - 1))
        weight = conv.weight * scale.reshape(shape)
    folded = copy.deepcopy(conv)
    folded.weight = nn.Parameter(weight.to(conv.weight.dtype))
    folded.bias = nn.Parameter(offset.to(conv.weight.dtype))
    return folded


# %% mistake: forgets_the_gain
# You leave out the norm's `weight` and `bias`. They are learned, and seldom one and zero.
def fold_batch_norm(conv, norm):
    import copy

    if norm.running_mean is None:
        raise ValueError("a norm without running statistics depends on the batch")
    with torch.no_grad():
        scale = (norm.running_var + norm.eps).rsqrt()
        offset = -norm.running_mean * scale
        if norm.weight is not None:
            pass
        if conv.bias is not None:
            offset = offset + conv.bias * scale
        shape = (-1, *[1] * (conv.weight.dim() - 1))
        weight = conv.weight * scale.reshape(shape)
    folded = copy.deepcopy(conv)
    folded.weight = nn.Parameter(weight.to(conv.weight.dtype))
    folded.bias = nn.Parameter(offset.to(conv.weight.dtype))
    return folded


# %% mistake: default_settings
# You make a new convolution from channels and kernel size alone. Stride, padding, dilation, groups
# and padding mode are part of it.
def fold_batch_norm(conv, norm):

    if norm.running_mean is None:
        raise ValueError("a norm without running statistics depends on the batch")
    with torch.no_grad():
        scale = (norm.running_var + norm.eps).rsqrt()
        offset = -norm.running_mean * scale
        if norm.weight is not None:
            scale = scale * norm.weight
            offset = offset * norm.weight + norm.bias
        if conv.bias is not None:
            offset = offset + conv.bias * scale
        shape = (-1, *[1] * (conv.weight.dim() - 1))
        weight = conv.weight * scale.reshape(shape)
    folded = type(conv)(conv.in_channels, conv.out_channels, conv.kernel_size)
    folded.weight = nn.Parameter(weight.to(conv.weight.dtype))
    folded.bias = nn.Parameter(offset.to(conv.weight.dtype))
    return folded


# %% mistake: in_place
# You fold into the convolution that was passed. Fold it twice, or train on, and the model is
# spoilt: make a new one.
def fold_batch_norm(conv, norm):

    if norm.running_mean is None:
        raise ValueError("a norm without running statistics depends on the batch")
    with torch.no_grad():
        scale = (norm.running_var + norm.eps).rsqrt()
        offset = -norm.running_mean * scale
        if norm.weight is not None:
            scale = scale * norm.weight
            offset = offset * norm.weight + norm.bias
        if conv.bias is not None:
            offset = offset + conv.bias * scale
        shape = (-1, *[1] * (conv.weight.dim() - 1))
        weight = conv.weight * scale.reshape(shape)
    folded = conv
    folded.weight = nn.Parameter(weight.to(conv.weight.dtype))
    folded.bias = nn.Parameter(offset.to(conv.weight.dtype))
    return folded


# %% mistake: statistics_of_nothing
# You go on without running statistics. Such a norm depends on each batch, and no constant weight
# can replace it. Raise a `ValueError`.
def fold_batch_norm(conv, norm):
    import copy

    if norm.running_mean is None:
        return copy.deepcopy(conv)
    with torch.no_grad():
        scale = (norm.running_var + norm.eps).rsqrt()
        offset = -norm.running_mean * scale
        if norm.weight is not None:
            scale = scale * norm.weight
            offset = offset * norm.weight + norm.bias
        if conv.bias is not None:
            offset = offset + conv.bias * scale
        shape = (-1, *[1] * (conv.weight.dim() - 1))
        weight = conv.weight * scale.reshape(shape)
    folded = copy.deepcopy(conv)
    folded.weight = nn.Parameter(weight.to(conv.weight.dtype))
    folded.bias = nn.Parameter(offset.to(conv.weight.dtype))
    return folded


# %% mistake: plain_tensors
# You take plain tensors or computed ones for parameters. What comes back should be a convolution
# like any other, whose weight and bias are leaves that want a gradient.
def fold_batch_norm(conv, norm):
    import copy

    if norm.running_mean is None:
        raise ValueError("a norm without running statistics depends on the batch")
    with torch.no_grad():
        scale = (norm.running_var + norm.eps).rsqrt()
        offset = -norm.running_mean * scale
        if norm.weight is not None:
            scale = scale * norm.weight
            offset = offset * norm.weight + norm.bias
        if conv.bias is not None:
            offset = offset + conv.bias * scale
        shape = (-1, *[1] * (conv.weight.dim() - 1))
        weight = conv.weight * scale.reshape(shape)
    folded = copy.deepcopy(conv)
    folded.weight = nn.Parameter(weight.to(conv.weight.dtype), requires_grad=False)
    folded.bias = nn.Parameter(offset.to(conv.weight.dtype), requires_grad=False)
    return folded


# %% mistake: dtype_of_the_norm
# Your weight or bias has the norm's dtype. Norms are often kept in float32 beside a convolution in half
# precision, and a computation with both gives float32: convert the result.
def fold_batch_norm(conv, norm):
    import copy

    if norm.running_mean is None:
        raise ValueError("a norm without running statistics depends on the batch")
    with torch.no_grad():
        scale = (norm.running_var + norm.eps).rsqrt()
        offset = -norm.running_mean * scale
        if norm.weight is not None:
            scale = scale * norm.weight
            offset = offset * norm.weight + norm.bias
        if conv.bias is not None:
            offset = offset + conv.bias * scale
        shape = (-1, *[1] * (conv.weight.dim() - 1))
        weight = conv.weight * scale.reshape(shape)
    folded = copy.deepcopy(conv)
    folded.weight = nn.Parameter(weight)
    folded.bias = nn.Parameter(offset)
    return folded


# %% mistake: stays_frozen
# You keep the `requires_grad` of the convolution. The result is a new layer, and wants gradients,
# whoever froze the old one.
def fold_batch_norm(conv, norm):
    import copy

    if norm.running_mean is None:
        raise ValueError("a norm without running statistics depends on the batch")
    with torch.no_grad():
        scale = (norm.running_var + norm.eps).rsqrt()
        offset = -norm.running_mean * scale
        if norm.weight is not None:
            scale = scale * norm.weight
            offset = offset * norm.weight + norm.bias
        if conv.bias is not None:
            offset = offset + conv.bias * scale
        shape = (-1, *[1] * (conv.weight.dim() - 1))
        weight = conv.weight * scale.reshape(shape)
    folded = copy.deepcopy(conv)
    folded.weight = nn.Parameter(
        weight.to(conv.weight.dtype), requires_grad=conv.weight.requires_grad
    )
    folded.bias = nn.Parameter(offset.to(conv.weight.dtype))
    return folded


# %% mistake: changes_the_modes
# You call `eval()` on what was passed. The running statistics are there in either mode, and the caller
# may want to train on.
def fold_batch_norm(conv, norm):
    import copy

    if norm.running_mean is None:
        raise ValueError("a norm without running statistics depends on the batch")
    with torch.no_grad():
        scale = (norm.running_var + norm.eps).rsqrt()
        offset = -norm.running_mean * scale
        if norm.weight is not None:
            scale = scale * norm.weight
            offset = offset * norm.weight + norm.bias
        if conv.bias is not None:
            offset = offset + conv.bias * scale
        shape = (-1, *[1] * (conv.weight.dim() - 1))
        weight = conv.weight * scale.reshape(shape)
    conv.eval(), norm.eval()
    folded = copy.deepcopy(conv)
    folded.weight = nn.Parameter(weight.to(conv.weight.dtype))
    folded.bias = nn.Parameter(offset.to(conv.weight.dtype))
    return folded


# %% mistake: forgets_the_old_bias
# You leave out the bias that the convolution has: it is shifted by the mean and scaled like all that it
# gives.
def fold_batch_norm(conv, norm):
    import copy

    if norm.running_mean is None:
        raise ValueError("a norm without running statistics depends on the batch")
    with torch.no_grad():
        scale = (norm.running_var + norm.eps).rsqrt()
        offset = -norm.running_mean * scale
        if norm.weight is not None:
            scale = scale * norm.weight
            offset = offset * norm.weight + norm.bias
        shape = (-1, *[1] * (conv.weight.dim() - 1))
        weight = conv.weight * scale.reshape(shape)
    folded = copy.deepcopy(conv)
    folded.weight = nn.Parameter(weight.to(conv.weight.dtype))
    folded.bias = nn.Parameter(offset.to(conv.weight.dtype))
    return folded


# %% alternate: by_arguments
# Settings one by one, and the norm's vectors filled up where they are None.
def fold_batch_norm(conv, norm):
    if norm.running_var is None:
        raise ValueError(norm)
    with torch.no_grad():
        mean = norm.running_mean
        sigma = torch.sqrt(norm.running_var + norm.eps)
        gain = torch.ones_like(sigma) if norm.weight is None else norm.weight
        shift = torch.zeros_like(sigma) if norm.bias is None else norm.bias
        old = torch.zeros_like(sigma) if conv.bias is None else conv.bias
        new = type(conv)(
            conv.in_channels,
            conv.out_channels,
            conv.kernel_size,
            stride=conv.stride,
            padding=conv.padding,
            dilation=conv.dilation,
            groups=conv.groups,
            padding_mode=conv.padding_mode,
            dtype=conv.weight.dtype,
        )
        new.weight.copy_(torch.einsum("o...,o->o...", conv.weight.to(sigma.dtype), gain / sigma))
        new.bias.copy_(shift + (old - mean) * gain / sigma)
    return new
