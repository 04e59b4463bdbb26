"""Checks of `collect_state`: names, what is left out, every alias, memory, versions."""

import pytest

from grader import (
    Mismatch,
    about,
    assert_equal,
    assert_holds,
    assert_same_bits,
    compared,
    facts,
    gate,
    points,
    python_random,
)
from grader.ch04_modules.graphs import first_difference, graph, random_graph, written
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
    """Compare graph by graph; of those that differ the one with the fewest entries is shown."""
    got = collected.ask(graphs).value
    due = [state_of(one) for one in graphs]
    compared(got, due)
    wrong = [
        (len(expected), one, expected, found)
        for one, expected, found in zip(graphs, due, got, strict=True)
        if expected != found
    ]
    if wrong:
        _, graph, expected, found = min(wrong, key=lambda case: case[0])
        rows = (("model", written(graph)), ("call", "collect_state(m[0])[0]"))
        most = len(graph["parameters"])
        differ = first_difference(_names(expected, most), _names(found, most))
        what = f"{len(wrong)} of {len(graphs)} models differ. The smallest:"
        raise Mismatch(what, (*rows, *differ))


def _names(pairs, parameters):
    """Return each pair in words; tensors are numbered, the parameters first."""

    def word(number):
        if not isinstance(number, int):
            return f"a tensor of {number}"
        return f"p[{number}]" if number < parameters else f"b[{number - parameters}]"

    return [f"{name!r}: {word(number)}" for name, number in pairs]


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
    with about(("model", written(one)), ("call", "collect_state(m[0])[0]")):
        got = collected.ask([one]).value[0]
        assert_equal(got, [("w", 0), ("s", 1)], "Its names, each with its tensor's number.")


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


@points(2)
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
        with about(
            ("done", "the model's values were changed after `collect_state`"), ("tensor", name)
        ):
            assert_same_bits(got["tensors"][name], tensor)
        apart = facts(got["tensors"][name])
        what = f"{name}: (requires_grad, is_leaf). It has a graph, or makes one."
        assert_equal((apart.requires_grad, apart.is_leaf), (False, True), what)
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
        got = versions.ask(made, list(others.items())).value
        compared(got)
        if [tuple(pair) for pair in got] != expected:
            given = [
                f"m[{n}] has _version {version}, the others 1" for n, version in others.items()
            ]
            rows = (("model", written(made)), ("versions", "; ".join(given)))
            words = [
                [f"{path!r}: {version}" for path, version in pairs] for pairs in (expected, got)
            ]
            what = "`collect_state(m[0])[1]`, the versions, differ."
            raise Mismatch(what, (*rows, *first_difference(*words)))
