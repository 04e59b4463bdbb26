"""Checks of `collect_state`: names, what is left out, every alias, memory, versions."""

import pytest

from grader import (
    Mismatch,
    assert_equal,
    assert_holds,
    assert_same_bits,
    compared,
    facts,
    gate,
    python_random,
)
from grader.ch04_modules.graphs import graph, random_graph
from grader.ch04_modules.probes.module_graphs import build

COUNT = 24


@pytest.fixture
def random(rng):
    return python_random(rng)


def state_of(graph):
    """Return the pairs that PyTorch's `state_dict` has, each tensor as its number."""
    modules, parameters, buffers = build(graph)
    where = {tensor.data_ptr(): n for n, tensor in enumerate([*parameters, *buffers])}
    return [(name, where[tensor.data_ptr()]) for name, tensor in modules[0].state_dict().items()]


def compare(collected, graphs):
    got = collected.ask(graphs).value
    due = [state_of(one) for one in graphs]
    compared(got, due)
    wrong = [
        (len(expected), expected, found)
        for expected, found in zip(due, got, strict=True)
        if expected != found
    ]
    if wrong:
        _, expected, found = min(wrong, key=lambda case: case[0])
        rows = (("expected", _show(expected)), ("got", _show(found)))
        raise Mismatch(f"{len(wrong)} of {len(graphs)} models differ. The smallest:", rows)


def _show(pairs):
    return ", ".join(f"{name!r}: tensor {number}" for name, number in pairs) or "nothing"


def whole(random, **options):
    """Return a graph without None and with persistent buffers only."""
    made = random_graph(random, none=False, tensors=True, **options)
    for module in made["modules"]:
        for entry in module["buffers"]:
            entry[2] = True
    return made


@gate
def test_a_layer(collected):
    """Returns two dictionaries; the first has a layer's own tensors."""
    one = graph([{"parameters": [["w", 0]], "buffers": [["s", 0, True]]}], [[2]], [[1]])
    assert_equal(collected.ask([one]).value, [[("w", 0), ("s", 1)]])


def test_names(collected, random):
    """Parameters, then buffers, of each module of a tree, in the order of `state_dict`."""
    graphs = [whole(random, shared=False) for _ in range(COUNT)]
    for made in graphs:
        for kind in ("parameters", "buffers"):
            entries = [entry for module in made["modules"] for entry in module[kind]]
            made[kind] = [[2]] * len(entries)
            for number, entry in enumerate(entries):
                entry[1] = number
    compare(collected, graphs)


def test_left_out(collected, random):
    """`None` and buffers that are not persistent are left out."""
    graphs = [random_graph(random, shared=False, tensors=True) for _ in range(COUNT)]
    for made in graphs:
        made["modules"][0]["buffers"] = [["kept", 0, True], ["mask", 0, False], ["no", None, True]]
        for module in made["modules"][1:]:  # a name is persistent in one module and not in another
            module["buffers"].append(["mask", 0, True])
    compare(collected, graphs)


def test_every_name(collected, random):
    """Tied tensors and shared modules are there under every name."""
    compare(collected, [whole(random) for _ in range(COUNT)])


def test_no_copies(collected_once):
    """The tensors are the model's memory, plain and without a graph."""
    got = collected_once.value
    assert_equal(got["types"], ["Tensor"], "Tensors of these types came.")
    assert_equal(list(got["tensors"]), list(got["now"]), "The names differ.")
    for name, tensor in got["now"].items():
        assert_same_bits(got["tensors"][name], tensor)
        apart = facts(got["tensors"][name])
        assert_equal((apart.requires_grad, apart.is_leaf), (False, True), f"{name} has a graph.")
    assert_holds(got["graph stays"], "A buffer of the module's own has lost its graph.")


def test_versions(versions, random):
    """Each path has its module's version, shared modules under every name."""
    for _ in range(20):
        made = random_graph(random)
        count = len(made["modules"])
        numbers = sorted(random.sample(range(count), random.randint(1, count)))
        others = {number: random.choice((0, 2, 7)) for number in numbers}
        modules, _, _ = build(made)
        walk = modules[0].named_modules(remove_duplicate=False)
        numbers = {id(module): number for number, module in enumerate(modules)}
        expected = [(path, others.get(numbers[id(module)], 1)) for path, module in walk]
        assert_equal(versions.ask(made, list(others.items())).value, expected)
