"""The probe of `plan`, and the programs that it plans."""

import torch

from grader import probe


def _product(a, b):
    return a @ b


def _chain(x):
    return x.exp().sin().cos()


def _keeps_all(x):
    a = x.exp()
    b = a.sin()
    return b.cos() + a


def _head(x, w1, w2):
    hidden = torch.relu(x @ w1)
    logits = hidden @ w2
    return logits, logits.argmax(-1)


def _views(x):
    return x.t(), x[1:, ::2], x.view(-1)


def _shared(x):
    y = x * 2
    return y, y.t(), y.sum()


def _in_place(x):
    y = x.clone()
    y.add_(1).mul_(2)
    return y.relu_()


def _makes_its_own(x):
    positions = torch.arange(x.shape[-1])
    mask = positions[:, None] >= positions
    return torch.where(mask, x, torch.zeros(()))


def _convolution(x, w):
    return torch.nn.functional.conv2d(x, w, stride=2, padding=1)


def _drops(x):
    y = torch.empty(x.shape[0], 1000)
    del y
    return x.sum(1)


def _attention(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1), -1) @ v


def _part(x):
    return x.exp()[:2]


def _stretched(x):
    return x.sum(1, keepdim=True).expand(-1, 1000)


@probe
def planned(student, name, specs):
    """Return the plan of a program of ours."""
    return student.plan(globals()[f"_{name}"], specs)
