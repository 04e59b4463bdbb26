"""Checks of `einsum`: what torch.einsum gives, one product per pair, and no outer product."""

import torch

from grader import (
    Mismatch,
    assert_equal,
    assert_tensor,
    awkward_tensor,
    claimed,
    compared,
    gate,
    points,
    whole_numbers,
)
from grader.ch03_matmul.equations import any_equation
from grader.ch03_matmul.operands import assert_exact


def compare(contracted, equation, *operands):
    """Compare with torch's einsum; show equation and shapes."""
    got = contracted.ask(equation, list(operands)).value["result"]
    inputs = {f"operand {i}": operand for i, operand in enumerate(operands)}
    assert_exact(got, torch.einsum(equation, *operands), equation=repr(equation), **inputs)


def equations(contracted, rng, *asked):
    for equation, *shapes in asked:
        compare(contracted, equation, *[whole_numbers(rng, shape) for shape in shapes])


@gate
def test_matrix_product(contracted, rng):
    """`ij,jk->ik` gives a tensor of the operands' dtype and the right shape."""
    operands = [whole_numbers(rng, (3, 5)), whole_numbers(rng, (5, 2))]
    got = contracted.ask("ij,jk->ik", operands).value["result"]
    assert_tensor(got, dtype=torch.float32, shape=(3, 2))


def test_one_operand(contracted, rng):
    """One operand: permuted, summed, its diagonal, its trace."""
    equations(
        contracted,
        rng,
        *[("ij->ji", (3, 4)), ("ijk->kij", (2, 3, 4)), ("ij->", (3, 4)), ("ij->j", (3, 4))],
        *[("ijk->ki", (2, 3, 4)), ("ii->i", (3, 3)), ("ii->", (3, 3)), ("iij->ji", (3, 3, 2))],
        *[("iii->i", (3, 3, 3)), ("ijij->ji", (2, 3, 2, 3)), ("ijij->i", (2, 3, 2, 3))],
        *[("->", ()), ("iiii->", (2, 2, 2, 2))],
    )
    compare(contracted, "ij->j", whole_numbers(rng, (3, 4), dtype=torch.float64))


def test_two_operands(contracted, rng):
    """Two operands: products of matrices and batches, outer products, elementwise ones, dots."""
    equations(
        contracted,
        rng,
        *[("ij,jk->ik", (3, 5), (5, 2)), ("ij,kj->ki", (3, 5), (4, 5)), ("i,i->", (5,), (5,))],
        *[("bij,bjk->bik", (4, 3, 5), (4, 5, 2)), ("bhqd,bhkd->hbqk", (2, 3, 4, 5), (2, 3, 6, 5))],
        *[("i,j->ji", (3,), (4,)), ("ij,ij->ij", (3, 4), (3, 4)), ("ij,ji->", (3, 4), (4, 3))],
        *[("ij,kl->", (2, 3), (4, 5)), ("ij,kl->lj", (2, 3), (4, 5)), (",i->i", (), (3,))],
        *[("ii,ij->ji", (3, 3), (3, 4)), ("ijj,jk->k", (2, 3, 3), (3, 4)), (",->", (), ())],
        *[("abc,cbd->da", (2, 3, 4), (4, 3, 5)), ("ij,j->i", (3, 4), (4,))],
    )
    doubles = [whole_numbers(rng, shape, dtype=torch.float64) for shape in ((3, 5), (5, 2))]
    compare(contracted, "ij,jk->ik", *doubles)


def test_nothing(contracted, rng):
    """Sizes of 0, in every place: a sum of nothing is 0."""
    equations(
        contracted,
        rng,
        *[("ij->i", (3, 0)), ("ij->ji", (0, 3)), ("ii->", (0, 0)), ("i,i->", (0,), (0,))],
        *[("ij,jk->ik", (2, 0), (0, 3)), ("ij,jk->ik", (0, 4), (4, 3))],
        *[("ij,jk->ik", (2, 4), (4, 0)), ("bij,bjk->bik", (0, 2, 3), (0, 3, 4))],
        *[("ij,jk,kl->il", (2, 0), (0, 3), (3, 4)), ("...i,i->...", (2, 0, 3), (3,))],
    )


def test_implicit_output(contracted, rng):
    """Without `->`, letters that occur once, in alphabetical order, capitals first."""
    equations(
        contracted,
        rng,
        *[
            ("ij,jk", (3, 5), (5, 2)),
            ("ba", (2, 3)),
            ("aB", (2, 3)),
            ("ii", (3, 3)),
            ("i,i", (4,), (4,)),
        ],
        *[("kj,ji", (3, 5), (5, 2)), ("bZ,ac", (2, 3), (4, 5)), ("iij", (3, 3, 2)), ("", ())],
        *[
            ("ij,ij", (2, 3), (2, 3)),
            (" i j , j k ", (3, 5), (5, 2)),
            ("ij , jk -> k i", (3, 5), (5, 2)),
        ],
    )


def test_ellipsis(contracted, rng):
    """`...` stands for any number of dimensions, which broadcast aligned on the right."""
    equations(
        contracted,
        rng,
        *[("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 6)), ("...ij->...ji", (2, 3, 4, 5))],
        *[("...ij,jk->...ik", (2, 7, 3, 4), (4, 6)), ("i...->...", (2, 3, 4)), ("...", (2, 3))],
        *[("i...j,j...->...i", (3, 2, 4), (4, 5, 1)), ("...a,...b->ab...", (2, 3), (4,))],
        *[("...ii->...i", (2, 3, 3)), ("a...b,b", (2, 3, 4), (4,)), ("...ij->ij...", (2, 3))],
        *[
            ("...->", (2, 3)),
            ("...i->i", (2, 3)),
            ("...b,...a", (2, 4, 3), (4, 2)),
            ("ij->i...", (2, 3)),
        ],
        *[("...,...->...", (2, 1, 3), (4, 1)), ("... i j -> j ...", (2, 3, 4))],
    )


def test_ones_broadcast(contracted, rng):
    """A size of 1 fits any other, as it does in broadcasting."""
    equations(
        contracted,
        rng,
        *[
            ("ij,jk->ik", (3, 1), (5, 2)),
            ("ij,ij->ij", (1, 4), (3, 1)),
            ("ij,ij->", (3, 4), (3, 1)),
        ],
        *[("bij,bjk->bik", (1, 3, 5), (4, 5, 2)), ("bij,bjk->ik", (1, 3, 5), (4, 5, 2))],
        *[("i,i,i->i", (1,), (3,), (1,)), ("ij,j->", (2, 1), (3,)), ("ij,ij->ij", (1, 1), (1, 1))],
        *[("i,i->i", (1,), (0,)), ("ij,ij->i", (3, 1), (1, 0)), ("ii,i->i", (1, 1), (4,))],
    )


def test_three_operands(contracted, rng):
    """Three and more operands."""
    equations(
        contracted,
        rng,
        *[("ab,bc,cd->ad", (2, 3), (3, 4), (4, 5)), ("ab,bc,cd->db", (2, 3), (3, 4), (4, 5))],
        *[("i,j,k->kij", (2,), (3,), (4,)), ("ij,ij,ij->i", (2, 3), (2, 3), (2, 3))],
        *[("ab,cd,bc->ad", (2, 3), (4, 5), (3, 4)), ("a,ab,b", (2,), (2, 3), (3,))],
        *[("a,b,c,abc", (2,), (3,), (4,), (2, 3, 4)), ("ij,ik,il->ijkl", (2, 3), (2, 4), (2, 2))],
    )


def test_refusals(contracted, rng):
    """An equation that is none, or does not fit its operands, raises `ValueError`."""
    asked = [
        *[("ij,jk->ik", (3, 4), (5, 2)), ("ij->ii", (2, 3)), ("ij->ik", (2, 3)), ("ij", (2, 3, 4))],
        *[("ij", (2,)), ("ij,jk", (2, 3)), ("ij", (2, 3), (3, 4)), ("ii", (2, 3)), ("ii", (3, 1))],
        *[("i1", (2, 3)), ("i-j", (2, 3)), ("i.j", (2, 3)), ("i..j", (2, 3)), ("i......", (2, 3))],
        *[("i->i->i", (2,)), ("i...j", (2,)), ("ij->i.j", (2, 3)), ("i->......i", (2,))],
        *[("ij->i,j", (2, 3)), ("...i,...i", (2, 3), (4, 3)), ("ij,jk,kl", (2, 3), (3, 4), (5, 6))],
        *[("i,i->i", (0,), (2,)), ("i,j,i", (2,), (4,), (3,)), ("ié", (2, 3)), ("->i", ())],
        *[("i...->iii...", (2, 3)), ("i", ()), ("i,,", (2,), ())],
    ]
    wrong, outcomes = [], []
    for equation, *shapes in asked:
        raised = contracted.ask(equation, [whole_numbers(rng, shape) for shape in shapes]).raised
        outcomes.append(raised.type if raised else None)
        if raised is None or not raised.is_a("ValueError"):
            wrong.append((equation, shapes, outcomes[-1] or "a result"))
    compared(outcomes)
    if wrong:
        equation, shapes, got = wrong[0]
        rows = (("equation", repr(equation)), ("shapes", str(shapes)), ("got", got))
        what = f"{len(wrong)} of {len(asked)} did not raise a ValueError. The first:"
        raise Mismatch(what, rows)


def test_anything(contracted, rng):
    """150 random equations, on operands of any layout."""
    for _ in range(150):
        equation, operands = any_equation(rng, torch.float32)
        compare(contracted, equation, *operands)
    compare(contracted, "iij,jk->ki", awkward_tensor(rng, (3, 3, 4)), awkward_tensor(rng, (4, 2)))
    compare(contracted, "ij,jk->ki", awkward_tensor(rng, (2, 0)), awkward_tensor(rng, (0, 3)))


PAIRS = [
    ("ij,jk->ik", (24, 20), (20, 24)),
    ("bij,bjk->bik", (6, 12, 10), (6, 10, 12)),
    ("bhqd,bhkd->bhqk", (2, 3, 16, 8), (2, 3, 16, 8)),
    ("...ij,...jk->...ik", (3, 2, 12, 10), (3, 2, 10, 12)),
    ("iij,jk->ik", (12, 12, 9), (9, 12)),
    ("ijk,jkl->il", (12, 6, 4), (6, 4, 12)),
    ("aij,jk->ik", (20, 8, 6), (6, 8)),
    ("ij,jka->ik", (8, 6), (6, 8, 20)),
]


@claimed
@points(5)
def test_one_product_per_pair(contracted, rng):
    """Contracting takes one product for two operands, and one more for each further one."""
    chain = ("ab,bc,cd,de->ae", (3, 4), (4, 5), (5, 6), (6, 7))
    for equation, *shapes in [*PAIRS, chain]:
        operands = [whole_numbers(rng, shape) for shape in shapes]
        compare(contracted, equation, *operands)
        count = len(contracted.ask(equation, operands).value["products"])
        what = f"The number of products (mm, bmm and their kin) that ran for {equation}."
        assert_equal(count, len(operands) - 1, what)


@claimed
def test_no_outer_product(contracted, rng):
    """For two operands nothing is allocated that is larger than an operand or the result."""
    for equation, *shapes in PAIRS:
        operands = [whole_numbers(rng, shape) for shape in shapes]
        compare(contracted, equation, *operands)
        got = contracted.ask(equation, operands).value["largest_bytes"]
        allowed = max(tensor.nbytes for tensor in [*operands, torch.einsum(equation, *operands)])
        if got > allowed:
            what = f"The largest tensor that was made for {equation}, in bytes, is too large."
            assert_equal(got, allowed, what)
