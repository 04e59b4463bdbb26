# %% mistake: copies_the_weights
# Your convolution gives the right numbers from weights of its own. Train one of the layers, and the
# other stays as it was. Give `nn.Parameter` a view of the linear layer's weight.
def linear_as_conv(linear, size):
    if linear.in_features % math.prod(size):
        raise ValueError("uneven")
    channels = linear.in_features // math.prod(size)
    conv = torch.nn.Conv2d(
        channels,
        linear.out_features,
        size,
        bias=linear.bias is not None,
        dtype=linear.weight.dtype,
    )
    with torch.no_grad():
        conv.weight.copy_(
            linear.weight.unflatten(1, [(0, channels, *size)[d] for d in {{order}}]).permute(
                0, *(1 + {{order}}.index(d) for d in (1, 2, 3))
            )
        )
        if linear.bias is not None:
            conv.bias.copy_(linear.bias)
    return conv


# %% mistake: one_by_one
# You made a 1 × 1 convolution with a channel for every feature. It is the same product, but it wants
# its input flattened already. The window has to be as large as the map.
def linear_as_conv(linear, size):
    if linear.in_features % math.prod(size):
        raise ValueError("uneven")
    conv = torch.nn.Conv2d(linear.in_features, linear.out_features, 1, device="meta")
    conv.weight = torch.nn.Parameter(linear.weight.detach()[:, :, None, None])
    conv.bias = None if linear.bias is None else torch.nn.Parameter(linear.bias.detach())
    return conv


# %% mistake: channels_last if order == [1, 2, 3]
# You took the channels for the innermost part of the flattened map. `flatten(1)` puts them outside:
# all of channel 0 comes first.
def linear_as_conv(linear, size):
    if linear.in_features % math.prod(size):
        raise ValueError("uneven")
    channels = linear.in_features // math.prod(size)
    conv = torch.nn.Conv2d(channels, linear.out_features, size, bias=False, device="meta")
    weight = linear.weight.detach().unflatten(1, (*size, channels)).permute(0, 3, 1, 2)
    conv.weight = torch.nn.Parameter(weight)
    if linear.bias is not None:
        conv.bias = torch.nn.Parameter(linear.bias.detach())
    return conv


# %% mistake: height_and_width_exchanged if order == [1, 2, 3]
# You exchanged height and width. For square maps nobody notices, except that every window is
# turned over.
def linear_as_conv(linear, size):
    if linear.in_features % math.prod(size):
        raise ValueError("uneven")
    channels = linear.in_features // math.prod(size)
    conv = torch.nn.Conv2d(channels, linear.out_features, size, bias=False, device="meta")
    weight = linear.weight.detach().unflatten(1, (channels, size[1], size[0])).transpose(2, 3)
    conv.weight = torch.nn.Parameter(weight)
    if linear.bias is not None:
        conv.bias = torch.nn.Parameter(linear.bias.detach())
    return conv


# %% mistake: forgets_the_bias
# You left out the bias. Each output channel of the convolution adds the bias of one output feature.
def linear_as_conv(linear, size):
    if linear.in_features % math.prod(size):
        raise ValueError("uneven")
    channels = linear.in_features // math.prod(size)
    conv = torch.nn.Conv2d(channels, linear.out_features, size, bias=False, device="meta")
    conv.weight = torch.nn.Parameter(
        linear.weight.detach()
        .unflatten(1, [(0, channels, *size)[d] for d in {{order}}])
        .permute(0, *(1 + {{order}}.index(d) for d in (1, 2, 3)))
    )
    return conv


# %% mistake: strides_by_its_window
# Your convolution moves by a whole window at a time, so on a larger map it skips places. It should
# stand at every place: stride 1.
def linear_as_conv(linear, size):
    if linear.in_features % math.prod(size):
        raise ValueError("uneven")
    channels = linear.in_features // math.prod(size)
    conv = torch.nn.Conv2d(
        channels, linear.out_features, size, stride=size, bias=False, device="meta"
    )
    conv.weight = torch.nn.Parameter(
        linear.weight.detach()
        .unflatten(1, [(0, channels, *size)[d] for d in {{order}}])
        .permute(0, *(1 + {{order}}.index(d) for d in (1, 2, 3)))
    )
    if linear.bias is not None:
        conv.bias = torch.nn.Parameter(linear.bias.detach())
    return conv


# %% mistake: cannot_be_trained
# Your weights share the memory but ask for no gradient. A `Parameter` does by default; one made with
# `requires_grad=False` stays as it is in training.
def linear_as_conv(linear, size):
    if linear.in_features % math.prod(size):
        raise ValueError("uneven")
    channels = linear.in_features // math.prod(size)
    conv = torch.nn.Conv2d(channels, linear.out_features, size, bias=False, device="meta")
    weight = (
        linear.weight.detach()
        .unflatten(1, [(0, channels, *size)[d] for d in {{order}}])
        .permute(0, *(1 + {{order}}.index(d) for d in (1, 2, 3)))
    )
    conv.weight = torch.nn.Parameter(weight, requires_grad=False)
    if linear.bias is not None:
        conv.bias = torch.nn.Parameter(linear.bias.detach(), requires_grad=False)
    return conv


# %% mistake: drops_the_rest
# Where the features are no whole number of maps you leave some out, or fail with an error of another
# kind. The exercise asks for a `ValueError`.
def linear_as_conv(linear, size):
    channels = linear.in_features // math.prod(size)
    conv = torch.nn.Conv2d(channels, linear.out_features, size, bias=False, device="meta")
    weight = linear.weight.detach()[:, : channels * math.prod(size)]
    conv.weight = torch.nn.Parameter(
        weight.unflatten(1, [(0, channels, *size)[d] for d in {{order}}]).permute(
            0, *(1 + {{order}}.index(d) for d in (1, 2, 3))
        )
    )
    if linear.bias is not None:
        conv.bias = torch.nn.Parameter(linear.bias.detach())
    return conv


# %% alternate: data_of_a_real_layer if order == [1, 2, 3]
# An ordinary layer whose parameters' memory is exchanged.
def linear_as_conv(linear, size):
    height, width = size
    if linear.in_features % (height * width) != 0:
        raise ValueError(f"{linear.in_features} / {height * width}")
    has_bias = linear.bias is not None
    conv = torch.nn.Conv2d(
        linear.in_features // (height * width), linear.out_features, (height, width), bias=has_bias
    )
    conv.weight.data = linear.weight.data.view(linear.out_features, -1, height, width)
    if has_bias:
        conv.bias.data = linear.bias.data
    return conv


# %% alternate: the_very_bias
# The bias is the same parameter in both layers; the weight's strides are written down.
def linear_as_conv(linear, size):
    pixels = size[0] * size[1]
    channels = linear.in_features // pixels
    if channels * pixels != linear.in_features:
        raise ValueError("the features are no whole number of maps")
    w = linear.weight.detach()
    out, step = w.stride()
    sizes, strides = (0, channels, *size), {}
    for dim in reversed({{order}}):
        strides[dim] = step
        step *= sizes[dim]
    conv = torch.nn.Conv2d(channels, linear.out_features, size)
    conv.bias = linear.bias
    conv.weight = torch.nn.Parameter(
        w.as_strided(
            (w.shape[0], channels, *size),
            (out, strides[1], strides[2], strides[3]),
            w.storage_offset(),
        )
    )
    return conv
