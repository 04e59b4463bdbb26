"""Checks of `collate`: against torch's own, on samples of every kind."""

import pytest
import torch
from torch.utils.data import default_collate

from grader import (
    about,
    assert_equal,
    assert_holds,
    assert_raises,
    assert_same_bits,
    assert_tensor,
    gate,
    points,
)
from grader.ch06_dataloader.probes.collating import as_code, cook, leaves, served


@pytest.fixture
def x(rng):
    """float32 (3, 4, 5)."""
    return torch.randn(3, 4, 5, generator=rng)


@pytest.fixture
def recipes(x):
    """Two tensors."""
    return [("tensor", x[0]), ("tensor", x[1])]


def plain(*values):
    return [("plain", value) for value in values]


def tensors(*values):
    return [("tensor", value) for value in values]


def call(recipes):
    """Return the call of `collate` on the samples that recipes describe."""
    return ("call", f"collate([{', '.join(map(as_code, recipes))}])")


def compare(collated, recipes):
    """Compare with torch's batch, place by place."""
    samples = [cook(recipe) for recipe in recipes]
    got = collated.ask(recipes).value
    with about(call(recipes)):
        same(got["batch"], served(default_collate(samples)), "batch")


def same(got, expected, path):
    kind, content = expected
    if kind.startswith("mapping"):
        kind = "dict"  # torch keeps the samples' class; a dict is what is asked for
    assert_equal(got[0], kind, f"What `{path}` is.")
    if kind == "tensor":
        with about(of=f"`{path}`: "):
            assert_tensor(got[1], dtype=content.dtype, shape=content.shape)
            assert_same_bits(got[1], content)
    elif kind == "dict":
        assert_equal(
            [key for key, _ in got[1]], [key for key, _ in content], f"The keys of `{path}`."
        )
        for (key, mine), (_, theirs) in zip(got[1], content, strict=True):
            same(mine, theirs, f"{path}[{key!r}]")
    elif kind == "texts":
        assert_equal(got[1], content, f"The texts in `{path}`.")
    else:
        assert_equal(len(got[1]), len(content), f"The length of `{path}`.")
        for at, (mine, theirs) in enumerate(zip(got[1], content, strict=True)):
            same(mine, theirs, f"{path}[{at}]")


@gate
def test_stacks(collated, recipes, x):
    """Two tensors become one, with a new first dimension."""
    kind, content = collated.value["batch"]
    assert_equal(kind, "tensor", "What two tensors become.")
    assert_tensor(content, dtype=torch.float32, shape=(2, 4, 5))


def test_tensors(collated, x):
    """Tensors of any shape, layout and dtype; also a single one."""
    compare(collated, tensors(*x))
    compare(collated, tensors(x[0]))
    compare(collated, [("view", x.mT[0]), ("view", x.permute(2, 1, 0)[:, :, 1])])
    compare(
        collated, [("view", x[0, :1].expand(4, 5)), ("view", x[:, 1:5:3, 2][:1].expand(4, 5))][:1]
    )
    compare(collated, [("view", x[1, :, 2]), ("view", x[2, :, 3])])
    for dtype in (
        torch.bool,
        torch.int16,
        torch.uint8,
        torch.bfloat16,
        torch.float64,
        torch.complex64,
    ):
        compare(collated, tensors(*x[:, 0].to(dtype)))
    compare(collated, tensors(torch.tensor(3), torch.tensor(-1), torch.tensor(2**40)))
    compare(collated, tensors(torch.zeros(2, 0), torch.zeros(2, 0)))


def test_numbers(collated):
    """Python numbers: `bool`, `int64` and `float64`, to the last bit."""
    for values in ((1, 2, 2**60 + 1), (True, False), (False,), (0.1, 2.0, -0.0), (float("inf"),)):
        compare(collated, plain(*values))
    compare(collated, plain(3.0, 4.0))


def test_numpy(collated, x):
    """NumPy arrays and scalars keep their dtype; arrays without dimensions, too."""
    for dtype in (torch.float32, torch.int8, torch.bool, torch.float64):
        compare(collated, [("array", row) for row in x[:, 0].to(dtype)])
        compare(collated, [("array", number) for number in x[:, 0, 0].to(dtype)])
    for name, values in (
        ("float32", (0.1, 2.0)),
        ("float64", (0.1,)),
        ("int16", (3, -4)),
        ("uint8", (200, 7, 1)),
        ("bool_", (True, False)),
    ):
        compare(collated, [("scalar", (name, value)) for value in values])


def test_texts(collated):
    """Strings and bytes stay as they are, in a list; empty and short ones, too."""
    for values in (("a", "b"), ("", "long", "ab"), (b"x", b"yz"), ("a",), ("ab", "cd")):
        compare(collated, plain(*values))
    compare(collated, [("scalar", ("str_", "one")), ("scalar", ("str_", "two"))])


def sample(row, number, name, inner="tuple"):
    """Return the recipe of a sample with everything in it."""
    pair = ("Point", [("plain", number / 4), ("list", [("tensor", row), ("plain", name)])])
    deep = ("dict", [("b", ("plain", number)), ("a", (inner, [pair, ("array", row[:2])]))])
    return (
        "dict",
        [("x", ("tensor", row)), (3, deep), ("name", ("plain", name)), ("e", ("list", []))],
    )


@points(4)
def test_containers(collated, x):
    """Mappings, namedtuples, tuples and lists are turned inside out, to any depth."""
    for kind in ("list", "tuple"):
        rows = [(kind, plain(n, n + 0.5, f"s{n}")) for n in range(3)]
        compare(collated, rows)
        compare(collated, rows[:1])
        compare(collated, [(kind, []), (kind, [])])
        compare(collated, [(kind, plain(1, 2)), (kind, plain(3, 4))])
    for kind in ("dict", "OrderedDict", "proxy"):
        one = (kind, [("b", ("plain", 1)), ("a", ("tensor", x[0]))])
        two = (kind, [("a", ("tensor", x[1])), ("b", ("plain", 2))])
        compare(collated, [one, two])
        compare(collated, [two, one])
    compare(collated, [("Point", plain(1, 0.5)), ("Point", plain(2, 1.5))])
    compare(collated, [("Single", plain("a")), ("Single", plain("b"))])
    compare(collated, [sample(row[0], n, f"n{n}") for n, row in enumerate(x)])
    compare(collated, [sample(x[0, 1], 2, "only", "list")])
    compare(collated, [("dict", []), ("dict", [])])


def test_copies(collated, x):
    """Nothing written into the batch reaches a sample; also with a single sample."""
    for recipes in (
        tensors(*x),
        tensors(x[0]),
        [("array", x[0])],
        [("array", row) for row in x],
        [sample(x[0, 0], 1, "one")],
        [("tuple", [("tensor", x[0]), ("array", x[1])])],
    ):
        got = collated.ask(recipes).value["samples"]
        before = [leaf for recipe in recipes for leaf in leaves(cook(recipe))]
        for mine, theirs in zip(got, before, strict=True):
            with about(call(recipes)):
                what = "A sample has changed after the batch was written over, or before."
                assert_holds(torch.equal(mine, theirs), what)


def test_unequal(collated, x):
    """Different shapes and lengths raise `RuntimeError`, a missing key `KeyError`; inside, too."""
    row = x[0]
    lists = [[("list", plain(*range(n)))] for n in (2, 1, 3)]
    nested = [("dict", [("k", one[0])]) for one in lists]
    for recipes, what in (
        (tensors(row, row[:3]), "Tensors (4, 5) and (3, 5)."),
        (tensors(row, row[:, 0]), "Tensors (4, 5) and (4,)."),
        (tensors(row, row[:1]), "Tensors (4, 5) and (1, 5)."),
        ([("array", row), ("array", row[:2])], "Arrays (4, 5) and (2, 5)."),
        ([*lists[0], *lists[1]], "Lists of 2 and 1."),
        ([*lists[0], *lists[2]], "Lists of 2 and 3."),
        ([("tuple", plain(1, 2)), ("tuple", plain(1))], "Tuples of 2 and 1."),
        (nested[:2], "Lists of 2 and 1, in dicts."),
        ([("list", []), *lists[1]], "An empty list and one of 1."),
    ):
        assert_raises(collated.ask(recipes), "RuntimeError", what, call(recipes))
    one, two = (("dict", [(key, ("plain", 1)), ("c", ("plain", 2))]) for key in "ab")
    what = "Dicts with the keys a, c and b, c."
    assert_raises(collated.ask([one, two]), "KeyError", what, call([one, two]))


def test_other_kinds(collated, x):
    """Samples of any other kind raise `TypeError`, also deep inside."""
    for name in ("None", "set", "slice", "type", "Ellipsis"):
        assert_raises(collated.ask([("odd", name)] * 2), "TypeError", f"Samples: {name}.")
        inside = ("tuple", [("tensor", x[0]), ("dict", [("k", ("odd", name))])])
        assert_raises(collated.ask([inside]), "TypeError", f"{name} in a dict in a tuple.")
    assert_raises(collated.ask([("words", ["a", "b"])]), "TypeError", "An array of strings.")
