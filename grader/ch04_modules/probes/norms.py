"""Probes of `BatchNorm` and `fold_batch_norm`."""

import torch
from torch import nn

from grader import probe


def norm_run(make, options, batches, plan, state):
    """Run a norm over `batches`; `plan` has "train" or "eval" for each.

    Returns outputs, the state after each batch, and the gradients of a sum of squares.
    """
    norm = make(batches[0].shape[1], **options)
    dtype = batches[0].dtype
    norm.to(dtype)
    if state:
        norm.load_state_dict(state)
    outputs, states = [], []
    for x, mode in zip(batches, plan, strict=True):
        norm.train(mode == "train")
        outputs.append(_called(norm, x, options).detach())
        states.append({name: tensor.clone() for name, tensor in norm.state_dict().items()})
    norm.train()
    x = batches[-1].clone().requires_grad_()
    grads = []
    if x.numel() > x.shape[1]:
        weights = torch.arange(x.numel(), dtype=dtype).sin().reshape(x.shape)
        (_called(norm, x, options).square() * weights).sum().backward()
        grads = [x.grad, *(p.grad for p in norm.parameters())]
    return {"outputs": outputs, "states": states, "grads": grads}


def _called(norm, x, options):
    """Return `norm(x)`; what it raises is noted with what was called."""
    try:
        return norm(x)
    except Exception as error:
        named = "".join(f", {name}={value!r}" for name, value in options.items())
        mode = "training" if norm.training else "evaluation"
        error.add_note(f"BatchNorm({x.shape[1]}{named}) in {mode}, x of shape {tuple(x.shape)}")
        raise


@probe
def normed(student, cases, what):
    """Return what the student's norm gives for `norm_run`, case by case; of it the parts in `what`."""
    found = [norm_run(student.BatchNorm, *case) for case in cases]
    return [{kind: one[kind] for kind in what} for one in found]


@probe
def norm_made(student, by_position, by_name):
    """Return the registries of a fresh norm: names with values, in any order, and its type."""
    norm = student.BatchNorm(3, *by_position, **by_name)
    return {
        "parameters": dict(sorted(norm._parameters.items())),
        "buffers": dict(sorted(norm._buffers.items())),
        "state": dict(norm.state_dict()),
        "is a module": isinstance(norm, nn.Module),
        "modules": [type(module).__name__ for module in norm.modules()][1:],
    }


@probe
def norm_graphs(student, x):
    """Return which buffers hang on a graph after two batches that want a gradient."""
    norm = student.BatchNorm(x.shape[1])
    for _ in range(2):
        norm(x.clone().requires_grad_())
    return [name for name, buffer in norm._buffers.items() if buffer.requires_grad]


@probe
def norm_refuses(student, x):
    """Return the errors of single numbers per channel, and the state afterwards."""
    norm, found = student.BatchNorm(x.shape[1]), []
    untracked = student.BatchNorm(x.shape[1], track_running_stats=False)
    for one, mode in ((norm, True), (norm, False), (untracked, True), (untracked, False)):
        one.train(mode)
        try:
            found.append(one(x).detach())
        except ValueError:
            found.append("ValueError")
        except RuntimeError:
            found.append("RuntimeError")
    return {"found": found, "state": dict(norm.state_dict())}


CONVS = {
    1: (nn.Conv1d, nn.BatchNorm1d),
    2: (nn.Conv2d, nn.BatchNorm2d),
    3: (nn.Conv3d, nn.BatchNorm3d),
}


def conv_and_norm(dims, options, norm_options, tensors):
    """Return a convolution and a norm with these options, their tensors filled from `tensors`."""
    make_conv, make_norm = CONVS[dims]
    conv = make_conv(**options)
    norm = make_norm(options["out_channels"], **norm_options)
    dtype = tensors["weight"].dtype
    conv.to(dtype), norm.to(norm_options.get("dtype", dtype))
    with torch.no_grad():
        conv.weight.copy_(tensors["weight"])
        for owner, name, source in (
            (conv, "bias", "conv bias"),
            (norm, "weight", "gain"),
            (norm, "bias", "shift"),
            (norm, "running_mean", "mean"),
            (norm, "running_var", "variance"),
        ):
            if getattr(owner, name) is not None:
                getattr(owner, name).copy_(tensors[source])
    return conv, norm.eval()


@probe
def folded(student, dims, options, norm_options, tensors, x, frozen=False, training=False):
    """Fold; return what the new convolution gives, what it is, and whether the old ones changed."""
    conv, norm = conv_and_norm(dims, options, norm_options, tensors)
    conv.requires_grad_(not frozen)
    norm.train(training)
    owners = (conv, norm)
    before = [{n: t.clone() for n, t in owner.state_dict().items()} for owner in owners]
    result = student.fold_batch_norm(conv, norm)
    after = [owner.state_dict() for owner in owners]
    kept = [
        list(b) == list(a) and all(torch.equal(b[name], a[name]) for name in b)
        for b, a in zip(before, after, strict=True)
    ]
    modes = conv.training, norm.training
    output = result(x).detach()
    settings = (
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "in_channels",
        "out_channels",
    )
    leaves = dict(result.named_parameters())
    for parameter in leaves.values():
        parameter.data.zero_()
    return {
        "output": output,
        "type": type(result).__name__,
        "settings": all(getattr(result, name, None) == getattr(conv, name) for name in settings),
        "parameters": {n: (p.is_leaf, p.requires_grad, p.dtype) for n, p in leaves.items()},
        "is the same": result is conv,
        "conv kept": kept[0],
        "norm kept": kept[1],
        "modes": modes,
        "apart": all(bool(t.any()) for t in (conv.weight, norm.running_var)),
    }


@probe
def folded_without(student):
    """Fold a norm without running statistics."""
    norm = nn.BatchNorm2d(2, track_running_stats=False)
    return type(student.fold_batch_norm(nn.Conv2d(1, 2, 1), norm)).__name__
