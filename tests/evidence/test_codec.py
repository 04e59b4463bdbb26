"""The codec: what goes in comes out, what is no plain data is refused by name, and bytes from
someone hostile decode to something or are called malformed, quickly and in little memory.
"""

import enum
import functools
import json
import math
import os
import resource
import struct
import time
from collections import OrderedDict

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.evidence.wire.codec import (
    DEPTH_LIMIT,
    HEADER_LIMIT,
    KEY_LIMIT,
    Named,
    decode,
    decode_with_storages,
    encode,
)
from grader.evidence.wire.tensors import NUMEL_LIMIT, Malformed, Refused, facts, storage_bytes
from grader.verdict.compare import bits
from tests.strategies import DENSE_DTYPES, layouts, relatives, tensors, values

# drawn tensors are slow to generate, not slow to test; derandomized: the same examples every time
ours = functools.partial(
    settings,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def assert_same(got, sent):
    """Fail unless two values are alike in type, bits, layout and flags, all the way down."""
    if isinstance(sent, torch.Tensor):
        assert_same_tensor(got, sent)
    elif isinstance(sent, dict):
        assert type(got) is dict
        # by position: NaN and tensors among the values, and order is part of a dict
        assert len(got) == len(sent)
        for left, right in zip(got.items(), sent.items(), strict=True):
            assert_same(left[0], right[0])
            assert_same(left[1], right[1])
    elif isinstance(sent, list | tuple):
        assert type(got) is type(sent)
        assert len(got) == len(sent)
        for left, right in zip(got, sent, strict=True):
            assert_same(left, right)
    elif isinstance(sent, float):
        assert type(got) is float
        # the codec keeps every bit of a NaN, Python's == none
        assert struct.pack(">d", got) == struct.pack(">d", sent)
    elif isinstance(sent, complex):
        assert_same((got.real, got.imag), (sent.real, sent.imag))
    else:
        assert type(got) is type(sent)
        assert got == sent


def assert_same_tensor(got, sent):
    assert type(got) is type(sent)
    assert (got.dtype, got.shape, got.stride()) == (sent.dtype, sent.shape, sent.stride())
    assert got.storage_offset() == sent.storage_offset()
    assert (got.is_conj(), got.is_neg()) == (sent.is_conj(), sent.is_neg())
    assert storage_bytes(got.untyped_storage()) == storage_bytes(sent.untyped_storage())
    said = facts(got)
    assert said.requires_grad == sent.requires_grad
    assert said.is_leaf == sent.is_leaf
    assert said.is_parameter == isinstance(sent, torch.nn.Parameter)
    assert said.version == sent._version
    assert said.has_grad == (sent.is_leaf and sent.grad is not None)
    if sent.is_leaf:
        assert got.requires_grad == sent.requires_grad
    if said.has_grad:
        assert_same_tensor(got.grad, sent.grad)


# ── What goes in comes out ───────────────────────────────────────────────────


@ours(max_examples=100)
@given(tensors())
def test_tensors(tensor):
    assert_same(decode(encode(tensor)), tensor)


@pytest.mark.parametrize("dtype", DENSE_DTYPES, ids=str)
def test_every_dtype(dtype):
    storage = torch.arange(64, dtype=torch.uint8).untyped_storage()
    tensor = torch.empty(0, dtype=dtype).set_(storage, 1, [2, 0 + 1], [1, 1])
    assert_same(decode(encode(tensor)), tensor)


@ours(max_examples=30)
@given(relatives())
def test_shared_storages_stay_shared(family):
    got = decode(encode(family))
    assert_same(got, family)
    assert len({tensor.untyped_storage().data_ptr() for tensor in got}) == 1
    assert len({facts(tensor).storage for tensor in got}) == 1


@ours(max_examples=30)
@given(relatives(dtypes=(torch.float32,)), layouts())
def test_aliases_of_what_the_reader_has(family, layout):
    """A result that lives in an input's storage comes back in the reader's own storage."""
    there, sent = decode_with_storages(encode(family))
    here, ours_ = decode_with_storages(encode(family))
    fresh = torch.ones(3)
    got = decode(encode([there[0], fresh], known=sent), known=lambda: ours_)
    assert facts(got[0]).aliases == facts(here[0]).storage
    assert got[0].untyped_storage().data_ptr() == here[0].untyped_storage().data_ptr()
    assert facts(got[1]).aliases is None


def test_who_names_no_storage_of_the_readers_costs_it_nothing():
    there, sent = decode_with_storages(encode([torch.ones(2)]))
    asked = []
    decode(encode(torch.ones(2), known=sent), known=lambda: asked.append("fresh") or sent)
    assert not asked
    decode(
        encode([there[0], there[0].view(2, 1)], known=sent), known=lambda: asked.append(1) or sent
    )
    assert asked == [1]


def test_a_storage_without_bytes_is_nobodys_alias():
    there, sent = decode_with_storages(encode([torch.empty(0), torch.empty(0, 3)]))
    got = decode(encode(there[0], known=sent), known=lambda: sent)
    assert facts(got).aliases is None


@ours(max_examples=60)
@given(values())
def test_plain_data(value):
    assert_same(decode(encode(value)), value)


@ours(max_examples=30)
@given(values(max_leaves=6))
def test_the_same_value_gives_the_same_bytes(value):
    """Evidence is cached and compared by its bytes."""
    message = encode(value)
    assert encode(value) == message
    assert encode(decode(message)) == message


def test_sets_are_written_in_one_order():
    names = [f"layer{n}" for n in range(50)]
    backwards = names[::-1]
    assert encode(set(names)) == encode(set(backwards))


class Colour(enum.Enum):
    RED = 1


class Number(enum.IntEnum):
    ONE = 1


@pytest.mark.parametrize("member", [Colour.RED, Number.ONE])
def test_enums_come_back_by_name(member):
    got = decode(encode(member))
    assert got == Named("enum", f"{__name__}.{type(member).__qualname__}.{member.name}")


class Whole(int):
    pass


class Text(str):
    pass


class Pair(tuple):
    pass


@pytest.mark.parametrize(("value", "plain"), [(Pair((1, 2)), (1, 2)), (OrderedDict(a=1), {"a": 1})])
def test_containers_of_other_classes_come_back_plain(value, plain):
    assert_same(decode(encode(value)), plain)


@pytest.mark.parametrize("value", [Whole(3), Text("a")])
def test_numbers_and_text_of_other_classes_are_refused(value):
    """A number's class may change what it equals; a container's may not change what is in it."""
    with pytest.raises(Refused, match=type(value).__name__):
        encode(value)


# ── What is refused, by its name ─────────────────────────────────────────────


def _fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.ones(2)


def _nested_list():
    inner = []
    for _ in range(DEPTH_LIMIT + 1):
        inner = [inner]
    return inner


def _cycle():
    cycle = {}
    cycle["self"] = [cycle]
    return cycle


def _in_vmap():
    caught = []

    def keep(x):
        try:
            encode(x)
        except Refused as refused:
            caught.append(refused)
        return x

    torch.vmap(keep)(torch.ones(2))
    raise caught[0]


def _freed():
    tensor = torch.ones(2)
    tensor.untyped_storage().resize_(0)
    return tensor


REFUSED = {
    "a zero tangent": (lambda: torch._efficientzerotensor(2), "without memory"),
    "a functional tensor": (lambda: torch._to_functional_tensor(torch.ones(2)), "without memory"),
    "a freed tensor": (_freed, "beyond its storage"),
    "too many keys": (lambda: dict.fromkeys(range(KEY_LIMIT + 1)), "keys"),
    "sparse": (lambda: torch.eye(2).to_sparse(), "layout torch.sparse_coo"),
    "csr": (lambda: torch.eye(2).to_sparse_csr(), "layout torch.sparse_csr"),
    "meta": (lambda: torch.empty(2, device="meta"), "device meta"),
    "fake": (_fake, "FakeTensor"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]), "nested"),
    "jagged": (
        lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], layout=torch.jagged),
        "NestedTensor",
    ),
    "subclass": (lambda: torch.ones(2).as_subclass(type("Mine", (torch.Tensor,), {})), "Mine"),
    "buffer": (lambda: torch.nn.UninitializedParameter(), "UninitializedParameter"),
    "under vmap": (_in_vmap, "torch.func"),
    "a function": (lambda: len, "builtin_function_or_method"),
    "a lambda": (lambda: [lambda: 0], "function"),
    "a class": (lambda: {"kind": int}, "type"),
    "a module": (lambda: torch.nn.Linear(1, 1), "Linear"),
    "a Python module": (lambda: math, "module"),
    "a generator": (lambda: (x for x in ()), "generator"),
    "a device's stream of numbers": (torch.Generator, "Generator"),
    "a storage": (lambda: torch.ones(1).untyped_storage(), "UntypedStorage"),
    "a cycle": (_cycle, "within itself"),
    "too deep": (_nested_list, f"more than {DEPTH_LIMIT} deep"),
    "too large a number": (lambda: 1 << 5000, "4096 bits"),
    "too large a tensor": (lambda: torch.zeros(60, 2**20, dtype=torch.uint8), "bytes"),
    "too much text": (lambda: "x" * (HEADER_LIMIT + 1), "bytes of numbers and text"),
    "more elements than bytes": (lambda: torch.zeros(1).expand(NUMEL_LIMIT + 1), "elements"),
    "more bytes than one message": (
        lambda: [torch.zeros(1).expand(2**25) for _ in range(3)],
        "by their sizes",
    ),
    "a long range": (lambda: range(150_000_000), "a range of more than"),
    "a range without end": (lambda: range(2**70), "a range of more than"),
    "a layout that torch cannot name": (lambda: torch.jagged, "layout"),
}


@pytest.mark.filterwarnings("ignore")  # some of these call themselves prototypes
@pytest.mark.parametrize("what", REFUSED)
def test_refused(what):
    make, words = REFUSED[what]
    with pytest.raises(Refused, match=words):
        encode(make())


@pytest.mark.filterwarnings("ignore")
def test_quantized_tensors_are_refused():
    with pytest.raises(Refused, match="quantized"):
        encode(torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.quint8))


class LyingList(list):
    def __iter__(self):
        raise RuntimeError("no")


class LyingDict(dict):
    def items(self):
        return [(1,)]


class EndlessTuple(tuple):
    __slots__ = ()

    def __iter__(self):
        return iter(int, 1)


@pytest.mark.parametrize(
    ("value", "made_of"),
    [(LyingList([1]), [1]), (LyingDict(a=1), {"a": 1}), (EndlessTuple((1,)), (1,))],
)
def test_containers_that_lie_cross_as_what_they_are_made_of(value, made_of):
    assert_same(decode(encode(value)), made_of)


# ── Bytes from someone hostile ───────────────────────────────────────────────


def message(tree, storages=(), buffers=(), lengths=None, header=None):
    """Return a message made by hand."""
    body = (
        header
        if header is not None
        else {
            "tree": tree,
            "buffers": [len(b) for b in buffers] if lengths is None else lengths,
            "storages": list(storages),
        }
    )
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"UT01" + struct.pack(">I", len(text)) + text + b"".join(buffers)


def tensor_node(**record):
    return {"tensor": {"s": 0, "t": "float32", "n": [2], "r": [1], "o": 0, **record}}


def with_storage(tree, nbytes=8):
    return message(tree, [{"buffer": 0}], [bytes(nbytes)])


def survives(data):
    """Decode; return the value, or Malformed where the bytes are no message. Raise all else."""
    try:
        return decode(data, known=lambda: [torch.zeros(4).untyped_storage()])
    except Malformed:
        return Malformed


SAMPLE = {
    "layout": torch.arange(12.0).reshape(3, 4).t()[1:, ::2],
    "parameter": torch.nn.Parameter(torch.ones(2)),
    "conj": torch.tensor([1 + 2j]).conj(),
    "data": [1, -0.0, math.nan, None, "a\ud800", b"xy", {1, 2}, (3j, ...), torch.float8_e5m2],
    "more": [slice(1, None), range(3), torch.Size([2]), torch.device("cpu"), Colour.RED],
}


def test_every_truncation_is_malformed():
    data = encode(SAMPLE)
    for length in range(len(data)):
        assert survives(data[:length]) is Malformed, length
    assert survives(data + b"\0") is Malformed


@ours(max_examples=250)
@given(st.data())
def test_flipped_bytes(data):
    sample = bytearray(encode(SAMPLE))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(sample) - 1))
        sample[place] = data.draw(st.integers(0, 255))
    survives(bytes(sample))


@ours(max_examples=100)
@given(tensors(flags=True), st.data())
def test_flipped_bytes_of_tensors(tensor, data):
    sample = bytearray(encode(tensor))
    place = data.draw(st.integers(8, min(len(sample) - 1, 120)))
    sample[place] = data.draw(st.sampled_from(b'0123456789[]{}",-.ef'))
    survives(bytes(sample))


@ours(max_examples=100)
@given(st.binary(max_size=200))
def test_any_bytes(data):
    assert survives(data) is Malformed
    survives(b"UT01" + struct.pack(">I", len(data)) + data)


TAGS = st.sampled_from(
    [
        "tensor",
        "f",
        "complex",
        "tuple",
        "dict",
        "set",
        "frozenset",
        "bytes",
        "size",
        "dtype",
        "device",
        "torch",
        "enum",
        "slice",
        "range",
        "...",
    ]
)

JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=5)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.tuples(TAGS, inner).map(lambda pair: {pair[0]: pair[1]}),
    ),
    max_leaves=10,
)


@ours(max_examples=120)
@given(JSON)
def test_any_tree(tree):
    survives(with_storage(tree))


@ours(max_examples=120)
@given(
    st.dictionaries(
        st.sampled_from(
            ["s", "t", "n", "r", "o", "conj", "neg", "grad?", "fn", "param", "v", "grad"]
        ),
        JSON,
    )
)
def test_any_tensor_record(record):
    survives(with_storage(tensor_node(**record)))


@ours(max_examples=40)
@given(JSON, JSON, JSON)
def test_any_header(tree, storages, lengths):
    survives(message(None, header={"tree": tree, "storages": storages, "buffers": lengths}))
    survives(message(None, header=json.dumps(tree).encode()))


HUGE = [2**26 + 1, 2**31, 2**62, 2**63, 2**64, 10**400, -1, 1.0, True, None, "1", [1]]


@pytest.mark.parametrize("number", HUGE, ids=str)
def test_huge_and_wrong_numbers(number):
    for name in ("s", "o", "v"):
        if name != "v" or not (type(number) is int and 0 <= number < 2**62):
            if name == "v" and number is None:
                continue  # inference tensors have no version
            assert survives(with_storage(tensor_node(**{name: number}))) is Malformed
    for name in ("n", "r"):
        assert survives(with_storage(tensor_node(**{name: [number]}))) is Malformed
        if number != [1]:
            assert survives(with_storage(tensor_node(**{name: number}))) is Malformed
    assert survives(with_storage({"bytes": number})) is Malformed
    assert survives(message(None, lengths=[number])) is Malformed
    assert survives(message(None, [{"buffer": number}], [b"x"])) is Malformed
    assert survives(message(None, [{"known": number}])) is Malformed


@pytest.mark.parametrize(
    ("sizes", "strides", "offset", "fits"),
    [
        ([2], [1], 0, True),
        ([2], [0], 1, True),
        ([2], [1], 1, False),
        ([3], [1], 0, False),
        ([2], [2], 0, False),
        ([0], [2**40], 2**40, True),
        ([0, 2**60], [1, 1], 0, False),
        ([2**30, 2**30], [0, 0], 0, False),
        ([2**26, 2], [0, 0], 0, False),
        ([1] * 64, [1] * 64, 0, True),
        ([1] * 65, [1] * 65, 0, False),
        ([1], [1, 1], 0, False),
        ([], [], 1, True),
        ([], [], 2, False),
    ],
)
def test_extents(sizes, strides, offset, fits):
    got = survives(with_storage(tensor_node(n=sizes, r=strides, o=offset)))
    assert (got is not Malformed) == fits
    if fits:
        bits(got).sum()  # reading every element must be safe


BOMBS = {
    "deep lists": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"tuple":[' * 50_000 + b"]}" * 50_000,
    "many digits": b"1" * 5000,
    "more digits": b"9" * 1_000_000,
    "a float of many digits": b"1e" + b"9" * 100_000,
    "infinity": b'{"tree":Infinity,"buffers":[],"storages":[]}',
    "not UTF-8": b'{"tree":"\xff","buffers":[],"storages":[]}',
    "no object": b"[]",
    "a string": b'"tree"',
    "nothing": b"",
    "nul": b"\0" * 50,
    "no tree": b'{"buffers":[],"storages":[]}',
    "a range of everything": b'{"tree":{"range":[0,1e300,1]},"buffers":[],"storages":[]}',
    "complex of five": b'{"tree":{"complex":[1,2,3,4,5]},"buffers":[],"storages":[]}',
    "unhashable keys": b'{"tree":{"dict":[[[],1]]},"buffers":[],"storages":[]}',
    "unhashable members": b'{"tree":{"set":[[],{"dict":[]}]},"buffers":[],"storages":[]}',
    "pairs that are none": b'{"tree":{"dict":["ab",[1,2,3]]},"buffers":[],"storages":[]}',
    "a device of nowhere": b'{"tree":{"device":"toaster:7"},"buffers":[],"storages":[]}',
    "a device of any kind": b'{"tree":{"device":[[1]]},"buffers":[],"storages":[]}',
    "a dtype of any kind": b'{"tree":{"dtype":[1]},"buffers":[],"storages":[]}',
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs(bomb):
    start = time.process_time()
    assert survives(message(None, header=BOMBS[bomb])) is Malformed
    assert time.process_time() - start < 2


def test_a_dict_by_two_letter_strings_is_none():
    """dict("ab", …) would read text as a pair."""
    assert survives(message({"dict": ["ab"]})) is Malformed


FLOODS = {
    "tensors": lambda room: with_storage([tensor_node(n=[1], r=[1])] * (room // 70)),
    "lists": lambda room: message([[]] * (room // 4)),
    "storages": lambda room: message(None, [{"buffer": 0}] * (room // 15), [bytes(2**20)]),
    "numbers that collide": lambda room: message(
        {"set": [n * (2**61 - 1) for n in range(room // 28)]}
    ),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_full_header_takes_bounded_time_and_memory(flood):
    """A sixteenth of the longest header must not become a sixteenth of a gigabyte, nor an hour."""
    data = FLOODS[flood](HEADER_LIMIT // 16)
    seconds, mebibytes = in_a_fork(lambda: survives(data))
    assert mebibytes < 64
    assert seconds < 2


def in_a_fork(action):
    """Return processor seconds and mebibytes that `action` takes, in a process of its own."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            before = resource.getrusage(resource.RUSAGE_SELF)
            action()
            after = resource.getrusage(resource.RUSAGE_SELF)
            used = after.ru_utime - before.ru_utime, (after.ru_maxrss - before.ru_maxrss) / 1024
            os.write(writing, json.dumps(used).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(said)
