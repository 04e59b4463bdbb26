"""Checks of `transposed`: values, layout, and that no byte was copied."""

import torch

from grader import Mismatch, assert_equal, assert_same_bits, assert_tensor, facts, gate


def layouts(rng):
    whole = torch.randn(7, 9, generator=rng)
    return {
        "contiguous": whole,
        "with an offset": whole[2:, 3:],
        "strided": whole[::2, 1::3],
        "expanded": whole[:1].expand(4, 9),
        "empty": whole[:, :0],
    }


@gate
def test_shape(transposed, rng):
    """Returns a tensor with rows and columns exchanged, and leaves `x` alone."""
    for x in layouts(rng).values():
        assert_tensor(transposed.ask(x).value, dtype=x.dtype, shape=x.T.shape)


def test_values(transposed, rng):
    """Element `[i, j]` is `x[j, i]`."""
    for name, x in layouts(rng).items():
        got = transposed.ask(x).value
        assert_equal(
            bool(torch.equal(got, x.T)), True, f"Elements are not where they belong ({name})."
        )


def test_no_copy(transposed, rng):
    """The result lives in the storage of `x`."""
    for name, x in layouts(rng).items():
        shared = facts(transposed.ask(x).value).aliases is not None
        assert_equal(
            shared or not x.numel(), True, f"The result has a storage of its own ({name})."
        )


def test_strides(transposed, rng):
    """Strides are exchanged, and the offset stays."""
    for x in layouts(rng).values():
        got = transposed.ask(x).value
        assert_equal((got.stride(), got.storage_offset()), (x.T.stride(), x.storage_offset()))


def test_integers(transposed):
    """Any dtype will do."""
    x = torch.arange(6, dtype=torch.int16).reshape(2, 3)
    assert_same_bits(transposed.ask(x).value, x.T)
    if transposed.ask(x).stdout:
        raise Mismatch("Your code prints.")
