"""Families of operators: what an exercise allows runs, all else is told by name."""

import pytest
import torch

from grader.inside.families import FAMILIES, is_of
from grader.inside.probe import each
from grader.inside.tripwire import Tripwire

X = torch.arange(6.0).reshape(2, 3)


def stray(families, call):
    """Return the first operator of a call that is of none of the families."""
    wire = Tripwire([("allowed", families)])
    with wire.watching():
        call()
    assert bool(wire.tripped) == bool(wire.stray)
    return wire.stray


@pytest.mark.parametrize(
    ("families", "call"),
    [
        ("elementwise", lambda: (X * 2 + X).exp()),
        ("elementwise, views", lambda: X[:, None] * X),
        ("views", lambda: X.t().reshape(3, 2).unsqueeze(0).expand(4, 3, 2)[1:]),
        ("creation", lambda: (torch.zeros(2), torch.arange(3), torch.empty_like(X), X.new_ones(1))),
        ("copies, views", lambda: torch.cat([X, X.t().contiguous().view(2, 3)]).clone()),
        ("sum", lambda: X.sum(0)),
        ("reductions", lambda: (X.mean(), X.amax(1))),
        ("indexing, views", lambda: X[torch.tensor([0, 1])]),
        ("reading", lambda: float(X[0, 0]) if False else X.sum),
        ("matrix products, views", lambda: torch.einsum("ij,kj->ik", X, X)),
        ("", lambda: X.shape),
    ],
)
def test_of_a_family(families, call):
    assert (
        stray(f"{families}, creation, copies" if "indexing" in families else families, call) == ""
    )


@pytest.mark.parametrize(
    ("families", "call", "name"),
    [
        ("", lambda: torch.empty(2, 1) + torch.empty(3), "aten::empty"),
        ("elementwise, sum", lambda: X @ X.t(), "aten::t"),
        ("elementwise, views, sum", lambda: X @ X.t(), "aten::mm"),
        ("elementwise, views, sum", lambda: torch.nn.functional.bilinear(X, X, X.new_ones(1, 3, 3)), "aten::new_ones"),
        ("elementwise, views, sum, creation", lambda: torch.nn.functional.bilinear(X, X, X.new_ones(1, 3, 3)), "aten::_trilinear"),
        ("elementwise", lambda: torch.ops.quantized, ""),
    ],
)  # fmt: skip
def test_of_no_family(families, call, name):
    assert stray(families, call) == name


def test_a_probes_own_operators_do_not_count():
    assert stray("", lambda: each(torch.add, [(X, X)])) == ""


def test_every_family_has_operators():
    operators = [
        getattr(packet, name)
        for packet in (torch.ops.aten.add, torch.ops.aten.index, torch.ops.aten.view, torch.ops.aten.zeros,
                       torch.ops.aten.clone, torch.ops.aten.sum, torch.ops.aten.sort,
                       torch.ops.aten.equal, torch.ops.aten.mm)
        for name in packet.overloads()
    ]  # fmt: skip
    for family in FAMILIES:
        assert any(is_of(operator, frozenset({family})) for operator in operators), family
