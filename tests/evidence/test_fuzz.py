"""Replies with tensors of any numbers: either they are refused, or what they say can be read.

`python -m tests.evidence.test_fuzz 100000` tries as many.
"""

import json
import sys
import time
from contextlib import suppress

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.evidence.wire.codec import EXTENT_LIMIT, RANGE_LIMIT, decode
from grader.evidence.wire.tensors import DTYPES, NUMEL_LIMIT, Malformed

KNOWN = 16
"""Bytes of the storage that the reader has already."""

_EDGES = [-1, 2**31 - 1, 2**31, 2**32, 2**48, 2**61, 2**62 - 1, 2**62, 2**63 - 1, 2**63, 2**64]
numbers = st.integers(0, 4) | st.integers(0, 64) | st.sampled_from(_EDGES)
odd = st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.just([]) | st.just({})
lists = st.lists(numbers, max_size=4) | st.lists(st.just(1), max_size=70) | odd


@st.composite
def records(draw):
    """Draw a tensor's record: most often one whose numbers fit together, or nearly so."""
    sizes = draw(st.lists(st.integers(0, 4), max_size=3))
    strides = draw(st.lists(st.integers(0, 4), min_size=len(sizes), max_size=len(sizes)))
    record = {
        "s": draw(st.integers(0, 2)),
        "t": draw(st.sampled_from([*DTYPES, "float32", "uint8", "", "complex"])),
        "n": sizes,
        "r": strides,
        "o": draw(st.integers(0, 3)),
    }
    for flag in ("conj", "neg", "grad?", "param"):
        if draw(st.integers(0, 5)) == 0:
            record[flag] = draw(st.just(True) | odd)
    if draw(st.integers(0, 5)) == 0:
        record["fn"] = draw(st.text(max_size=3) | odd)
    if draw(st.integers(0, 5)) == 0:
        record["v"] = draw(numbers | odd)
    if draw(st.integers(0, 5)) == 0:
        record["grad"] = {"tensor": dict(record)} if draw(st.booleans()) else draw(odd)
    if draw(st.integers(0, 1)):
        record[draw(st.sampled_from("stnro"))] = draw(numbers | lists)
    return record


leaves = (
    st.builds(lambda record: {"tensor": record}, records())
    | st.builds(lambda *ends: {"range": list(ends)}, numbers, numbers, numbers)
    | st.builds(lambda ends: {"size": ends}, lists)
    | odd
    | numbers
)
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.builds(lambda x: {"tuple": x}, inner),
    max_leaves=4,
)


@st.composite
def messages(draw):
    """Draw a reply: a header, and buffers of small sizes, not always those that it tells."""
    buffers = draw(st.lists(st.integers(0, 24), max_size=2))
    told = buffers if draw(st.integers(0, 9)) else draw(st.lists(numbers | odd, max_size=3))
    storages = [{"buffer": number} for number in range(len(buffers))] + [{"known": 0}]
    if draw(st.integers(0, 9)) == 0:
        storages = draw(st.lists(st.builds(lambda n: {"buffer": n}, numbers | odd), max_size=3))
    header = {"tree": draw(trees), "buffers": told, "storages": storages}
    text = json.dumps(header).encode()
    return b"UT01" + len(text).to_bytes(4, "big") + text + bytes(sum(buffers))


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
        if value.is_leaf and value.grad is not None:
            yield value.grad
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)


def check(message):
    """Decode a reply; say whether it was read."""
    known = torch.zeros(KNOWN, dtype=torch.uint8).untyped_storage()
    try:
        value = decode(message, [known])
    except Malformed:
        return False
    extent = 0
    for tensor in tensors_in(value):
        extent += tensor.numel() * tensor.element_size()
        assert tensor.numel() <= NUMEL_LIMIT
        assert extent <= 2 * EXTENT_LIMIT  # a gradient counts with its tensor
        if tensor.numel():
            pairs = zip(tensor.shape, tensor.stride(), strict=True)
            last = tensor.storage_offset() + sum((size - 1) * step for size, step in pairs)
            assert (last + 1) * tensor.element_size() <= tensor.untyped_storage().nbytes()
        if tensor.numel() <= 2**16:
            with suppress(NotImplementedError):  # torch.int1 can do nothing at all
                tensor.detach().clone()  # reads each element
    for item in value if isinstance(value, list | tuple) else [value]:
        assert not isinstance(item, range) or len(item) <= RANGE_LIMIT
    return True


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(messages())
def test_a_reply_of_any_numbers_is_refused_or_can_be_read(message):
    check(message)


def main(count):
    """Try `count` replies; tell how many were read, and the slowest."""
    found = {True: 0, False: 0}
    slowest = 0.0

    @settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(messages())
    def every(message):
        nonlocal slowest
        start = time.process_time()
        found[check(message)] += 1
        slowest = max(slowest, time.process_time() - start)

    every()
    sys.stdout.write(
        f"{sum(found.values())} replies, {found[True]} read, slowest {slowest:.3f} s\n"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
