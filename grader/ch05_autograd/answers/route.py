# %% blocked: hooks
# A hook that throws gradients away lets them be computed first. Do not record them.
def route(layers, x, frozen, cut):
    h = x
    for position, layer in enumerate(layers):
        h = layer(h.detach() if position in cut else h)
        if position in frozen:
            h.register_hook(lambda grad: grad * 0)
    return h


# %% mistake: frozen_by_no_grad
# You run frozen layers under `no_grad`, or detach what they give. Either way nothing of them is
# recorded, and no gradient reaches what lies before. Freezing closes the parameters and leaves the
# road open.
def route(layers, x, frozen, cut):
    h = x
    for position, layer in enumerate(layers):
        if position in cut:
            h = h.detach()
        with torch.set_grad_enabled(position not in frozen):
            h = layer(h)
    return h


# %% mistake: cuts_behind_the_layer
# You cut behind the layer, or run it without recording, so its own parameters get no gradient. The cut
# lies before it: detach what goes in.
def route(layers, x, frozen, cut):
    h = x
    for position, layer in enumerate(layers):
        closed = [p for p in layer.parameters() if p.requires_grad and position in frozen]
        for parameter in closed:
            parameter.requires_grad_(False)
        try:
            h = layer(h)
        finally:
            for parameter in closed:
                parameter.requires_grad_(True)
        if position in cut:
            h = h.detach()
    return h


# %% mistake: stays_frozen
# Your frozen parameters stay frozen. The flag has done its work when the layer has run: put it back.
def route(layers, x, frozen, cut):
    h = x
    for position, layer in enumerate(layers):
        if position in cut:
            h = h.detach()
        if position in frozen:
            layer.requires_grad_(False)
        h = layer(h)
    return h


# %% mistake: wakes_everything
# You set `requires_grad` to true for all parameters of a frozen layer afterwards. Those that did not
# require grad before must not do so now.
def route(layers, x, frozen, cut):
    h = x
    for position, layer in enumerate(layers):
        if position in cut:
            h = h.detach()
        closed = [p for p in layer.parameters() if position in frozen]
        for parameter in closed:
            parameter.requires_grad_(False)
        try:
            h = layer(h)
        finally:
            for parameter in closed:
                parameter.requires_grad_(True)
    return h


# %% mistake: not_after_an_error
# When a layer raises, its parameters stay frozen. Put the flags back in a `finally`.
def route(layers, x, frozen, cut):
    h = x
    for position, layer in enumerate(layers):
        if position in cut:
            h = h.detach()
        closed = [p for p in layer.parameters() if p.requires_grad and position in frozen]
        for parameter in closed:
            parameter.requires_grad_(False)
        h = layer(h)
        for parameter in closed:
            parameter.requires_grad_(True)
    return h


# %% mistake: all_frozen_beforehand
# You freeze before the loop and thaw after it. A layer that stands at two positions, or a weight that
# two layers share, is then frozen at both. Do it around each single call.
def route(layers, x, frozen, cut):
    closed = [p for i in frozen for p in layers[i].parameters() if p.requires_grad]
    for parameter in closed:
        parameter.requires_grad_(False)
    try:
        h = x
        for position, layer in enumerate(layers):
            h = layer(h.detach() if position in cut else h)
        return h
    finally:
        for parameter in closed:
            parameter.requires_grad_(True)


# %% mistake: runs_twice
# You run frozen layers twice, once without a graph. A layer that keeps count, as a BatchNorm does,
# counts both.
def route(layers, x, frozen, cut):
    h = x
    for position, layer in enumerate(layers):
        if position in cut:
            h = h.detach()
        closed = [p for p in layer.parameters() if p.requires_grad and position in frozen]
        for parameter in closed:
            parameter.requires_grad_(False)
        try:
            if position in frozen:
                with torch.no_grad():
                    layer(h)
            h = layer(h)
        finally:
            for parameter in closed:
                parameter.requires_grad_(True)
    return h


# %% mistake: runs_a_copy
# You run a copy of a frozen layer. It costs the memory of a second layer, and what the layer notes while it runs,
# such as the statistics of a BatchNorm, is noted in the copy and lost.
import copy  # noqa: E402


def route(layers, x, frozen, cut):
    h = x
    for position, layer in enumerate(layers):
        if position in cut:
            h = h.detach()
        if position in frozen:
            layer = copy.deepcopy(layer).requires_grad_(False)
        h = layer(h)
    return h


# %% mistake: cut_by_clone
# You cut with `clone()`. A clone has memory of its own and keeps the graph, so gradients pass. `detach()` cuts.
def route(layers, x, frozen, cut):
    h = x
    for position, layer in enumerate(layers):
        if position in cut:
            h = h.clone()
        closed = [p for p in layer.parameters() if p.requires_grad and position in frozen]
        for parameter in closed:
            parameter.requires_grad_(False)
        try:
            h = layer(h)
        finally:
            for parameter in closed:
                parameter.requires_grad_(True)
    return h


# %% mistake: detaches_in_place
# You cut with `detach_()`, which cuts the tensor itself out of its graph: where no layer made a new one, that is
# the caller's `x`. `detach()` makes another tensor.
def route(layers, x, frozen, cut):
    h = x
    for position, layer in enumerate(layers):
        if position in cut:
            h = h.detach_()
        closed = [p for p in layer.parameters() if p.requires_grad and position in frozen]
        for parameter in closed:
            parameter.requires_grad_(False)
        try:
            h = layer(h)
        finally:
            for parameter in closed:
                parameter.requires_grad_(True)
    return h


# %% mistake: only_its_own
# You freeze the parameters that belong to the layer directly. A layer may be built of layers, and theirs are in
# `layer.parameters()` too.
def route(layers, x, frozen, cut):
    h = x
    for position, layer in enumerate(layers):
        if position in cut:
            h = h.detach()
        closed = [
            p for p in layer.parameters(recurse=False) if p.requires_grad and position in frozen
        ]
        for parameter in closed:
            parameter.requires_grad_(False)
        try:
            h = layer(h)
        finally:
            for parameter in closed:
                parameter.requires_grad_(True)
    return h


# %% mistake: calls_forward
# You call `layer.forward(h)`, which goes past the layer's hooks: whoever listens to the layer hears nothing. Call
# the layer itself, `layer(h)`.
def route(layers, x, frozen, cut):
    h = x
    for position, layer in enumerate(layers):
        if position in cut:
            h = h.detach()
        closed = [p for p in layer.parameters() if p.requires_grad and position in frozen]
        for parameter in closed:
            parameter.requires_grad_(False)
        try:
            h = layer.forward(h)
        finally:
            for parameter in closed:
                parameter.requires_grad_(True)
    return h


# %% alternate: on_detached_copies
# The layer runs on detached parameters; its own flags are never touched.
def route(layers, x, frozen, cut):
    for position, layer in enumerate(layers):
        if position in cut:
            x = x.detach()
        if position in frozen:
            plain = {name: p.detach() for name, p in layer.named_parameters()}
            x = torch.func.functional_call(layer, plain, (x,))
        else:
            x = layer(x)
    return x


# %% alternate: with_a_helper
# A context manager that knows every parameter's flag and puts them all back.
@contextmanager
def asleep(module, really):
    flags = {p: p.requires_grad for p in module.parameters()}
    try:
        if really:
            module.requires_grad_(False)
        yield
    finally:
        for parameter, flag in flags.items():
            parameter.requires_grad = flag


def route(layers, x, frozen, cut):
    h = x
    for i in range(len(layers)):
        with asleep(layers[i], i in frozen):
            h = layers[i](h.clone().detach() if i in cut else h)
    return h
