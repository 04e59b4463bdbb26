"""Probes of `encoder_layer`: what it gives, its gradients, and the products that run."""

import torch

from grader import probe, watch_ops

PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "vdot")


@probe(in_place=("x", "params", "mask"))
def encoded(student, x, params, heads, mask, eps):
    """Return the layer's output; without a mask and eps where they are None."""
    options = {} if eps is None else {"eps": eps}
    if mask is not None:
        options["mask"] = mask
    return student.encoder_layer(x, params, heads, **options)


@probe
def encoder_grads(student, x, params, heads, mask, cotangent):
    """Return the gradients of x and of params by name; None where there is none."""
    leaves = {"x": x, **params}
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in leaves.items()}
    # not the leaves themselves, which refuse to be changed in place: another check asks for that
    given = {name: leaf.clone() for name, leaf in leaves.items()}
    output = student.encoder_layer(given.pop("x"), given, heads, mask)
    if not output.requires_grad:
        return dict.fromkeys(leaves)
    found = torch.autograd.grad(output, list(leaves.values()), cotangent, allow_unused=True)
    return dict(zip(leaves, found, strict=True))


@probe
def encoder_products(student, x, params, heads, mask):
    """Return the output, and how many products of matrices ran."""
    with torch.no_grad(), watch_ops() as ops:
        output = student.encoder_layer(x, params, heads, mask)
    return {"output": output, "products": ops.count(*PRODUCTS)}
