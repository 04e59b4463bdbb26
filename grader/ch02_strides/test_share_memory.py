"""Checks of `share_memory`: pairs in one storage and in two, of one dtype and of several."""

import torch

from grader import assert_equal, draw_int, gate, odd_tensors
from grader.ch02_strides.odd_layouts import assert_each, codes, whole


def compare(sharing, pairs):
    """Compare with what marking the bytes of one shows in the other."""
    got = sharing.ask(pairs).value
    cases = [dict(codes({"a": a, "b": b})) | {"call": "share_memory(a, b)"} for a, b in pairs]
    assert_each(got, [shared(a, b) for a, b in pairs], cases)


def shared(a, b):
    """Say whether a byte belongs to both: fill the common storage, mark `a`, and look at `b`."""
    if _storage(a) != _storage(b) or not a.numel() or not b.numel():
        return False
    marked = torch.zeros(a.untyped_storage().nbytes(), dtype=torch.uint8)
    _over(marked, a).view(torch.uint8).fill_(1)
    return bool(_over(marked, b).view(torch.uint8).any())


def _over(marked, x):
    """Return the layout of `x` over other bytes; the last dimension holds an element's bytes."""
    size, stride = (*x.shape, 1), (*x.stride(), 1)
    return torch.empty(0, dtype=x.dtype).set_(
        marked.untyped_storage(), x.storage_offset(), size, stride
    )


def _storage(x):
    return x.untyped_storage().data_ptr()


@gate
def test_bool(sharing, rng):
    """Returns a `bool`."""
    x = whole(rng, 4)
    got = sharing.ask([(x, x[1:]), (x[:2], x.clone())]).value
    assert_equal([type(answer).__name__ for answer in got], ["bool"] * 2, "It is a `bool`.")


def test_slices(sharing, rng):
    """Slices of one tensor, that overlap or do not, beside tensors of their own."""
    x = whole(rng, 6, 4)
    pairs = [(x, x), (x, x[2:]), (x[:3], x[2:]), (x[:3], x[3:]), (x, x.clone()), (x[1], x[:, 2])]
    compare(sharing, [*pairs, (x[:2], x[4:]), (x[5, 3], x), (x[5, 3], x[5, 2]), (x[0, 0], x[0, 0])])


def test_same_first_element(sharing, rng):
    """An equal `data_ptr` and an unequal one can both go with either answer."""
    x = whole(rng, 5, 6)
    pairs = [(x[:, :2], x[:, 1:]), (x.t(), x), (x[0], x[:, 0]), (x[1:], x[:, :1]), (x[:0], x)]
    compare(sharing, [*pairs, (x[:1], x[1:2]), (x[2:2, 1:], x[2:]), (x[1, 1:], x[2, :5])])


def test_interleaved(sharing, rng):
    """Views that go through the same range of memory, with and without meeting."""
    x = whole(rng, 60)
    pairs = [(x[::2], x[1::2]), (x[::2], x[1::3]), (x[::4], x[2::4]), (x[1::4], x[::6])]
    x = whole(rng, 6, 10)
    pairs += [(x[:, :5], x[:, 5:]), (x[:, :6], x[:, 5:]), (x[:, 0], x[:, 1]), (x[::2], x[1::2])]
    compare(
        sharing, [*pairs, (x[:, 0], x.diagonal()), (x[1:, 0], x.diagonal()), (x.t()[3:5], x[2])]
    )


def test_expanded_and_empty(sharing, rng):
    """Expanded, overlapping, 0-dim and empty tensors."""
    x = whole(rng, 24)
    pairs = [(x[3].expand(5), x[3:]), (x[3].expand(5), x[4:]), (x[4:4], x), (x[5:5], x[5:5])]
    windows = x.unfold(0, 3, 5)
    pairs += [
        (windows, x[3::5]),
        (windows, x[2::5]),
        (x[2], x[2]),
        (x[2], x[2:2]),
        (windows, x[8:9]),
    ]
    compare(sharing, pairs)


def test_other_dtypes(sharing, rng):
    """Tensors that read the same bytes as other dtypes."""
    x = whole(rng, 12)
    halves, quarters = x.view(torch.int16), x.view(torch.uint8)
    wide = x.view(torch.int64)
    compare(
        sharing,
        [
            (x[1:2], halves[3:4]), (x[1:2], halves[4:5]), (halves[1::2], x), (halves[::2], halves[1::2]),
            (quarters[7:8], x[1:2]), (quarters[8:9], x[1:2]), (wide[1:2], x[3:4]), (wide[1:2], x[4:5]),
            (wide[::2], quarters[8:16]), (wide[::2], quarters[7:8]), (wide[::3], x[2:6]),
        ],
    )  # fmt: skip


def test_any_layout(sharing, rng):
    """200 random pairs in one storage."""
    memory = whole(rng, 400)
    found = []
    while len(found) < 200:
        pair = [_random_view(memory, rng) for _ in range(2)]
        found.append(tuple(pair))
    compare(
        sharing, [*found, *zip(odd_tensors(rng).values(), odd_tensors(rng).values(), strict=True)]
    )


def _random_view(memory, rng):
    dims = draw_int(rng, 1, 3)
    size = [draw_int(rng, 1, 3) for _ in range(dims)]
    stride = [draw_int(rng, 2, 40) for _ in range(dims)]
    return memory.as_strided(size, stride, draw_int(rng, 0, 100))
