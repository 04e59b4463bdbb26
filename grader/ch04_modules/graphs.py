"""Random module graphs for this chapter's checks, and what PyTorch finds in them."""

from collections.abc import Sequence
from itertools import islice, zip_longest
from random import Random
from typing import Any

from grader.ch04_modules.probes.module_graphs import MOST, build, numbered

Graph = dict[str, Any]
"""See `build`."""

NAMES = ("0", "1", "block", "left", "right", "stem", "head", "a", "norm", "layers")


def tree(*children: Sequence[Any]) -> Graph:
    """Return a graph without tensors whose module number n has `children[n]`."""
    return graph([{"children": list(entry)} for entry in children])


def graph(
    modules: Sequence[Graph], parameters: Sequence[Any] = (), buffers: Sequence[Any] = ()
) -> Graph:
    """Return a graph; what a module's description lacks is empty."""
    empty = {"children": [], "parameters": [], "buffers": []}
    return {
        "modules": [{**empty, **entry} for entry in modules],
        "parameters": [list(shape) for shape in parameters],
        "buffers": [list(shape) for shape in buffers],
    }


def written(graph: Graph, made: Sequence[str] = ()) -> str:
    """Return the code that builds a graph, to be pasted: `m[0]` is the root.

    `made` has the code of each module, `nn.Module()` where it is left out.
    """
    modules = graph["modules"]
    kinds = ", ".join(made)
    first = f"m = [{kinds}]" if made else f"m = [nn.Module() for _ in range({len(modules)})]"
    lines = [first]
    if graph["parameters"]:
        shapes = f"enumerate({graph['parameters']})"
        lines.append(f"p = [nn.Parameter(torch.full(s, float(n))) for n, s in {shapes}]")
    if graph["buffers"]:
        lines.append(f"b = [torch.full(s, 100.0 + n) for n, s in enumerate({graph['buffers']})]")

    def item(letter: str, number: int | None) -> str:
        return "None" if number is None else f"{letter}[{number}]"

    for n, module in enumerate(modules):
        for name, child in module["children"]:
            lines.append(f"m[{n}].add_module({name!r}, {item('m', child)})")
        for name, number in module["parameters"]:
            lines.append(f"m[{n}].register_parameter({name!r}, {item('p', number)})")
        for name, number, persistent in module["buffers"]:
            more = "" if persistent else ", persistent=False"
            lines.append(f"m[{n}].register_buffer({name!r}, {item('b', number)}{more})")
    return "\n".join(lines)


def first_difference(expected: Sequence[Any], got: Sequence[Any]) -> tuple[tuple[str, str], ...]:
    """Return rows with the first entries of two lists that differ, and how long the lists are."""
    pairs = zip_longest(expected, got, fillvalue="nothing more")
    where, one, other = next((n, e, g) for n, (e, g) in enumerate(pairs) if e != g)
    return (
        ("entry", f"number {where}, of {len(expected)} expected and {len(got)} given"),
        ("expected", str(one)),
        ("got", str(other)),
    )


def random_graph(
    random: Random, *, shared: bool = True, none: bool = True, tensors: bool = False
) -> Graph:
    """Return a random acyclic graph of up to nine modules; a tree unless `shared`."""
    count = random.randint(1, 9)
    modules = [{"children": [], "parameters": [], "buffers": []} for _ in range(count)]
    for child in range(1, count):
        parents = random.sample(range(child), min(child, random.choice([1, 1, 2]) if shared else 1))
        for parent in parents:
            for _ in range(random.choice([1, 1, 1, 2]) if shared else 1):
                _put(random, modules[parent]["children"], child)
    parameters = [_shape(random) for _ in range(random.randint(1, 6))] if tensors else []
    buffers = [_shape(random) for _ in range(random.randint(1, 4))] if tensors else []
    for module in modules:
        for _ in range(random.choice([0, 0, 1]) if none else 0):
            _put(random, module["children"], None)
        random.shuffle(module["children"])
        for _ in range(random.choice([0, 1, 1, 2, 3]) if tensors else 0):
            _put(random, module["parameters"], _number(random, parameters, none))
        for _ in range(random.choice([0, 0, 1, 2]) if tensors else 0):
            number = _number(random, buffers, none)
            _put(random, module["buffers"], number, random.random() < 0.6)
    for module in modules:
        _no_name_twice(module)
    return {"modules": modules, "parameters": parameters, "buffers": buffers}


def _put(random: Random, entries: list[Any], *values: Any) -> None:
    free = [name for name in NAMES if name not in {entry[0] for entry in entries}]
    if free:
        entries.append([random.choice(free), *values])


def _no_name_twice(module: Graph) -> None:
    """Give tensors names that no child has."""
    taken = {name for name, _ in module["children"]}
    for kind, ending in (("parameters", "weight"), ("buffers", "stat")):
        for number, entry in enumerate(module[kind]):
            entry[0] = f"{ending}{number}" if entry[0] in taken or number else entry[0]
            while entry[0] in taken:
                entry[0] += "_"
            taken.add(entry[0])


def _number(random: Random, tensors: list[Any], none: bool) -> int | None:
    return None if none and random.random() < 0.15 else random.randrange(len(tensors))


def _shape(random: Random) -> list[int]:
    return [random.randint(1, 3) for _ in range(random.randint(0, 2))]


def modules_of(
    graph: Graph, memo: list[int] | None = None, **options: Any
) -> tuple[Any, list[int]]:
    """Return what PyTorch's walk finds, as the probe `walked` reports it."""
    modules, _, _ = build(graph)
    after = () if memo is None else {modules[number] for number in memo if number < len(modules)}
    passed = {} if memo is None else {"memo": after}
    pairs = list(islice(modules[0].named_modules(**passed, **options), MOST))
    return numbered(pairs, modules), [n for n, m in enumerate(modules) if m in after]


def tensors_of(graph: Graph, kind: str, **options: Any) -> Any:
    """Return what PyTorch's `named_parameters` or `named_buffers` finds."""
    modules, parameters, buffers = build(graph)
    walk = getattr(modules[0], f"named_{kind}")(**options)
    return numbered(walk, parameters if kind == "parameters" else buffers)
