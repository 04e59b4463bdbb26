"""Checks of `named_tensors`: tied tensors, shared modules, None, names, and what is the same."""

import pytest

from grader import (
    Mismatch,
    about,
    assert_equal,
    assert_raises,
    compared,
    gate,
    points,
    python_random,
)
from grader.ch04_modules.graphs import (
    first_difference,
    graph,
    random_graph,
    tensors_of,
    written,
)

COUNT = 24
KINDS = ("parameters", "buffers")


@pytest.fixture
def random(rng):
    return python_random(rng)


def compare(listed, graphs, kind, **options):
    """Compare graph by graph; of those that differ the one with the fewest tensors is shown."""
    got = listed.ask(graphs, kind, options).value
    frozen = options.pop("frozen", False)
    due = [tensors_of(one, kind, **options) for one in graphs]
    compared(got, due)
    wrong = [
        (len(expected), one, expected, found)
        for one, expected, found in zip(graphs, due, got, strict=True)
        if expected != found
    ]
    if wrong:
        _, graph, expected, found = min(wrong, key=lambda case: case[0])
        freeze = "\nfor parameter in p:\n    parameter.requires_grad_(False)" if frozen else ""
        rows = [("model", written(graph) + freeze)]
        named = "".join(f", {name}={value!r}" for name, value in options.items())
        rows.append(("call", f"list(named_tensors(m[0], {kind!r}{named}))"))
        rows += first_difference(_names(expected, kind), _names(found, kind))
        what = f"{len(wrong)} of {len(graphs)} models differ. The smallest:"
        raise Mismatch(what, tuple(rows))


def _names(pairs, kind):
    letter = kind[0]
    return [
        f"({name!r}, {letter}[{tensor}])" if isinstance(tensor, int) else f"({name!r}, a {tensor})"
        for name, tensor in pairs
    ]


def plain(random):
    """Return a tree in which each tensor is registered once, and none is None."""
    made = random_graph(random, shared=False, none=False, tensors=True)
    for kind in KINDS:
        entries = [entry for module in made["modules"] for entry in module[kind]]
        made[kind] = [[2]] * len(entries)
        for number, entry in enumerate(entries):
            entry[1] = number
    return made


def untied(random):
    """Return a graph with shared modules in which each tensor is registered in one module."""
    made = random_graph(random, none=False, tensors=True)
    for kind in KINDS:
        entries = [entry for module in made["modules"] for entry in module[kind]]
        made[kind] = [[2]] * len(entries)
        for number, entry in enumerate(entries):
            entry[1] = number
    return made


@gate
def test_own_tensors(listed):
    """Yields pairs of a name and a tensor, for a module without children."""
    one = graph(
        [{"parameters": [["w", 0], ["b", 1]], "buffers": [["s", 0, True]]}], [[2], []], [[]]
    )
    for kind, pairs in (("parameters", [("w", 0), ("b", 1)]), ("buffers", [("s", 0)])):
        with about(("model", written(one)), ("call", f"list(named_tensors(m[0], {kind!r}))")):
            said = "Each pair as its name and the tensor's number."
            assert_equal(listed.ask([one], kind, {}).value[0], pairs, said)


def test_trees(listed, random):
    """Every tensor of a tree, in the order of the walk, by its dotted name."""
    graphs = [plain(random) for _ in range(COUNT)]
    for kind in KINDS:
        compare(listed, graphs, kind)
        compare(listed, graphs, kind, prefix="net.a")


def test_none(listed, random):
    """`None`, such as the bias of a layer without one, is passed over."""
    graphs = []
    for _ in range(COUNT):
        made = plain(random)
        for module in made["modules"]:
            module["children"].append(["nothing", None])
            module["parameters"].append(["no_bias", None])
            module["buffers"].insert(0, ["no_mask", None, True])
        graphs.append(made)
    for kind in KINDS:
        compare(listed, graphs, kind)


@points(4)
def test_tied(listed, random):
    """A tensor with several names comes once, under the first."""
    graphs = [random_graph(random, shared=False, none=False, tensors=True) for _ in range(COUNT)]
    for kind in KINDS:
        compare(listed, graphs, kind)


def test_shared_modules(listed, random):
    """So do the tensors of a module with several names."""
    graphs = [untied(random) for _ in range(COUNT)]
    for kind in KINDS:
        compare(listed, graphs, kind)


def test_every_name(listed, random):
    """With `remove_duplicate=False` each tensor comes under every name."""
    graphs = [random_graph(random, none=False, tensors=True) for _ in range(COUNT)]
    for kind in KINDS:
        compare(listed, graphs, kind, remove_duplicate=False)


def test_without_recursion(listed, random):
    """With `recurse=False` only what the module itself has registered, once or by every name."""
    graphs = [random_graph(random, none=False, tensors=True) for _ in range(COUNT)]
    for kind in KINDS:
        for once in (True, False):
            compare(listed, graphs, kind, recurse=False, prefix="a", remove_duplicate=once)


def test_what_is_the_same(listed_views):
    """The same object is the same tensor; equal values, shared memory and no memory are not."""
    expected = ["whole", "again", "empty", "also_empty", "one", "equal"]
    assert_equal(listed_views.value, expected, "These names were expected.")


def test_all_kinds(listed, random):
    """Frozen parameters and buffers that are not saved count; another kind is a ValueError."""
    graphs = [plain(random) for _ in range(20)]
    compare(listed, graphs, "parameters", frozen=True)
    for made in graphs:
        for module in made["modules"]:
            module["buffers"] = [[name, number, False] for name, number, _ in module["buffers"]]
    compare(listed, graphs, "buffers")
    for kind in ("parameter", "modules"):
        said = f"For kind={kind!r} a ValueError was expected."
        assert_raises(listed.ask(graphs[:1], kind, {}), "ValueError", said)
