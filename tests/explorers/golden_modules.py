"""Golden models for the modules explorer: random statements, carried out on real modules, and all their walks."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

SEED = 20_13
MOST_ROWS, MOST_DEPTH = 60, 5  # of the explorer's page

Case = dict[str, Any]
Part = nn.Module | torch.Tensor | list[nn.Module] | None

KINDS: Mapping[str, int] = {
    "Linear": 2,
    "Embedding": 2,
    "Conv2d": 3,
    "BatchNorm1d": 1,
    "BatchNorm2d": 1,
    "LayerNorm": 1,
    "ReLU": 0,
    "Tanh": 0,
    "Sequential": 0,
    "ModuleList": 0,
    "Module": 0,
}
REGISTRIES = {"parameters": "_parameters", "buffers": "_buffers", "modules": "_modules"}


def lists(owner: nn.Module) -> dict[str, list[nn.Module]]:
    """Plain lists among the attributes, as the explorer lets somebody make them."""
    return {name: value for name, value in vars(owner).items() if type(value) is list}


def parts(owner: Part) -> Iterator[tuple[str, str, Part]]:
    """All that one module or list holds: (species, name, object), in the explorer's order."""
    if isinstance(owner, list):
        yield from (("modules", str(i), child) for i, child in enumerate(owner))
    elif isinstance(owner, nn.Module):
        for species, registry in REGISTRIES.items():
            yield from ((species, name, value) for name, value in getattr(owner, registry).items())
        yield from (("lists", name, value) for name, value in lists(owner).items())


def below(owner: Part, path: str = "", depth: int = 1) -> Iterator[tuple[str, str, Part, int]]:
    """Every place below, depth first: (path, species, object, depth)."""
    for species, name, value in parts(owner):
        here = f"{path}.{name}" if path else name
        yield here, species, value, depth
        yield from below(value, here, depth + 1)


def at(model: nn.Module, path: str) -> Part:
    """What is at a dotted path, through plain lists as well."""
    found: Part = model
    for name in path.split(".") if path else []:
        found = {known: value for _, known, value in parts(found)}[name]
    return found


def make(verb: str, sizes: list[int]) -> Part:
    """A new object of that kind."""
    match verb:
        case "Parameter":
            return nn.Parameter(torch.ones(sizes))
        case "Buffer":
            return torch.zeros(sizes)
        case "list":
            return []
        case _:
            made: nn.Module = getattr(nn, verb)(*sizes)
            return made


def carry_out(model: nn.Module, statement: str) -> None:
    """One of the explorer's statements, as one would do it in Python."""
    path, verb, *words = statement.split("-")
    above, _, name = path.rpartition(".")
    owner = at(model, above)
    match verb:
        case "del":
            _delete(owner, name)
        case "frozen" | "trainable":
            target = at(model, path)
            assert isinstance(target, nn.Module | torch.Tensor)
            target.requires_grad_(verb == "trainable")
        case "unsaved" | "saved":
            assert isinstance(owner, nn.Module)
            owner.register_buffer(name, owner._buffers[name], persistent=verb == "saved")
        case "registered" | "plain":
            items = at(model, path)
            assert isinstance(items, list | nn.ModuleList)
            delattr(owner, name)
            setattr(owner, name, nn.ModuleList(items) if verb == "registered" else list(items))
        case "None":
            _assign(owner, name, None, words[0])
        case "is":
            value = at(model, words[0])
            _assign(owner, name, value, _species(value))
        case _:
            value = make(verb, list(map(int, words)))
            _assign(owner, name, value, _species(value))


def _species(value: Part) -> str:
    if isinstance(value, nn.Parameter):
        return "parameters"
    if isinstance(value, torch.Tensor):
        return "buffers"
    return "lists" if isinstance(value, list) else "modules"


def _delete(owner: Part, name: str) -> None:
    if isinstance(owner, list | nn.Sequential | nn.ModuleList):
        del owner[int(name)]
    else:
        delattr(owner, name)


def _assign(owner: Part, name: str, value: Part, species: str) -> None:
    if isinstance(owner, list | nn.Sequential | nn.ModuleList):
        items: Any = owner
        if int(name) == len(owner):
            items.append(value)
        else:
            items[int(name)] = value
        return
    assert isinstance(owner, nn.Module)
    if species == "buffers" and value is not None:
        assert isinstance(value, torch.Tensor)
        owner.register_buffer(name, value)
    elif value is None and not hasattr(owner, name):
        getattr(owner, f"register_{species[:-1]}")(name, None)
    else:
        setattr(owner, name, value)


def statement(source: random.Random, model: nn.Module) -> str | None:
    """A random statement that makes sense for this model."""
    places = list(below(model))
    containers = [("", "Model")] + [
        (path, type(value).__name__)
        for path, _, value, _ in places
        if type(value) in (nn.Module, nn.Sequential, nn.ModuleList, list)
    ]
    modules = [
        path for path, species, value, _ in places if species == "modules" and value is not None
    ]
    tensors = {
        wanted: [
            path for path, species, value, _ in places if species == wanted and value is not None
        ]
        for wanted in ("parameters", "buffers")
    }
    kind = source.choice(
        ["new"] * 8
        + ["share"] * 4
        + ["tie"] * 3
        + ["none", "del", "del", "grad", "persist", "persist", "convert"]
    )
    if kind in ("new", "share"):
        path, owner = source.choice(containers)
        indexed = owner in ("Sequential", "ModuleList", "list")
        name = str(len(list(parts(at(model, path))))) if indexed else source.choice("abcdefgh")
        here = f"{path}.{name}" if path else name
        taken = next((species for known, species, _, _ in places if known == here), None)
        if kind == "share":
            choices = (
                modules
                if indexed or source.random() < 0.7
                else tensors["parameters"] + tensors["buffers"]
            )
            if not choices or (taken is not None and taken != "modules"):
                return None
            other = source.choice(choices)
            if taken and _species(at(model, other)) != taken:
                return None
            return f"{here}-is-{other}"
        verb = source.choice(
            [*KINDS, "Sequential", "Module", *([] if indexed else ["list", "Parameter", "Buffer"])]
        )
        value = make(verb, [1] * KINDS.get(verb, 0))
        if taken is not None and taken != _species(value):
            return None
        sizes = [
            source.randint(1, 6)
            for _ in range(
                KINDS.get(verb, source.randint(0, 3) if verb in ("Parameter", "Buffer") else 0)
            )
        ]
        return "-".join([here, verb, *map(str, sizes)])
    if kind == "tie":
        wanted = source.choice(["parameters", "parameters", "parameters", "buffers"])
        if not tensors[wanted]:
            return None
        here, other = source.choice(tensors[wanted]), source.choice(tensors[wanted])
        return f"{here}-is-{other}"
    if not places:
        return None
    path, species, value, _ = source.choice(places)
    in_list = type(at(model, path.rpartition(".")[0])) is list
    if kind == "none" and species != "lists" and not in_list:
        return f"{path}-None-{species}"
    if kind == "del":
        return f"{path}-del"
    if kind == "grad" and value is not None and species in ("parameters", "modules"):
        return f"{path}-{source.choice(['frozen', 'frozen', 'trainable'])}"
    if kind == "convert":
        verbs = {list: "registered", nn.ModuleList: "plain"}
        ways = [
            f"{known}-{verbs[type(here)]}"
            for known, _, here, _ in places
            if type(here) in verbs
            and type(at(model, known.rpartition(".")[0])) is nn.Module
            and all(inside is not None for _, _, inside in parts(here))
        ]
        if ways:
            return source.choice(ways)
    if kind == "persist":
        buffers = [known for known, is_a, _, _ in places if is_a == "buffers"]
        if buffers:
            return f"{source.choice(buffers)}-{source.choice(['unsaved', 'unsaved', 'saved'])}"
    return None


def fits(model: nn.Module, text: str) -> bool:
    """Say whether the explorer shows what the statement makes: no cycle, and not too much."""
    path, verb, *words = text.split("-")
    if verb == "is":
        value = at(model, words[0])
        owner = at(model, path.rpartition(".")[0])
        if isinstance(value, nn.Module) and (
            value is owner or any(other is owner for _, _, other, _ in below(value))
        ):
            return False
        more = 1 + sum(1 for _ in below(value))
        deep = path.count(".") + 1 + max((depth for *_, depth in below(value)), default=0)
        # A shared owner shows what is added under each of its names.
        return deep <= MOST_DEPTH - 2 and more < 12
    return path.count(".") < MOST_DEPTH - 2


def programs(count: int, seed: int = 0) -> Iterator[tuple[list[str], nn.Module]]:
    """Random statements, and the module that they make when carried out one by one."""
    source = random.Random(SEED + seed)
    while count:
        model, done = nn.Module(), []
        for _ in range(source.randint(3, 22)):
            text = statement(source, model)
            if text is None or not fits(model, text):
                continue
            carry_out(model, text)
            done.append(text)
        places = list(below(model))
        if len(places) < MOST_ROWS and all(depth <= MOST_DEPTH for *_, depth in places):
            count -= 1
            yield done, model


# Every call of the explorer, with the arguments that it has.
def _calls() -> Iterator[tuple[str, bool, bool]]:
    for call in ("children", "named_children", "modules"):
        yield call, True, True
    for once in (True, False):
        yield "named_modules", once, True
    for name in ("parameters", "buffers"):
        for recurse in (True, False):
            yield name, True, recurse
            yield f"named_{name}", True, recurse
            yield f"named_{name}", False, recurse
    # An argument that a call does not have changes nothing in the explorer.
    for call in ("children", "named_children", "modules", "parameters", "buffers", "state_dict"):
        yield call, call == "state_dict", True
        yield call, False, call in ("parameters", "buffers")


CALLS = tuple(_calls())


def _called(model: nn.Module, call: str, once: bool, recurse: bool) -> list[tuple[str | None, Any]]:
    arguments = {}
    if not recurse and call.endswith(("parameters", "buffers")):
        arguments["recurse"] = False
    if not once and call in ("named_modules", "named_parameters", "named_buffers"):
        arguments["remove_duplicate"] = False
    if call == "state_dict":
        return list(model.state_dict(keep_vars=True).items())
    found = getattr(model, call)(**arguments)
    return list(found) if call.startswith("named_") else [(None, value) for value in found]


def identities(model: nn.Module) -> Callable[[Any], str]:
    """A function that tells objects apart: the first of all registered paths that leads to one."""
    first: dict[int, str] = {id(model): ""}
    for call in ("named_modules", "named_parameters", "named_buffers"):
        for name, value in getattr(model, call)(remove_duplicate=False):
            first.setdefault(id(value), name)
    return lambda value: first[id(value)]


def walks(model: nn.Module) -> Case:
    """What each call gives: names, and which object, in order; and what an optimiser and a file get."""
    who = identities(model)
    called = [[[name, who(value)] for name, value in _called(model, *call)] for call in CALLS]
    parameters = list(model.parameters())
    state = list(model.state_dict(keep_vars=True).values())
    return {
        "called": called,
        "counts": {
            "objects": len(parameters),
            "numbers": sum(p.numel() for p in parameters),
            "trainable": sum(p.numel() for p in parameters if p.requires_grad),
            "named": sum(p.numel() for _, p in model.named_parameters(remove_duplicate=False)),
            "hidden": _hidden(model),
            "keys": len(state),
            "tensors": len({id(value) for value in state}),
        },
    }


def _hidden(model: nn.Module) -> int:
    """Numbers in parameters that only a plain list leads to."""
    found = {id(p) for p in model.parameters()}
    rest = {
        id(value): value.numel()
        for _, _, value, _ in below(model)
        if isinstance(value, nn.Parameter) and id(value) not in found
    }
    return sum(rest.values())


def passed_over(model: nn.Module) -> dict[str, list[list[str]]]:
    """Which places a walk's memo makes it pass over, and under which path the object came before.

    Found by comparing what torch gives with and without remove_duplicate: of the paths that are
    missing, those whose module was given.
    """
    result = {}
    kept = {name for name, _ in model.named_modules()}
    for call in ("named_modules", "named_parameters", "named_buffers"):
        given = {id(value): name for name, value in getattr(model, call)()}
        every = [*model.named_modules(remove_duplicate=False)]
        if call != "named_modules":
            every += list(getattr(model, call)(remove_duplicate=False))
            given |= {id(value): name for name, value in model.named_modules()}
        names = set(given.values())
        result[call] = sorted(
            [name, given[id(value)]]
            for name, value in every
            if name not in names and name.rpartition(".")[0] in kept
        )
    return result


def flags(model: nn.Module) -> Case:
    """What no walk over names tells: what is frozen, what is not saved, what lies in plain lists."""
    frozen = [
        name for name, p in model.named_parameters(remove_duplicate=False) if not p.requires_grad
    ]
    unsaved = [
        f"{path}.{name}"
        for path, module in model.named_modules(remove_duplicate=False)
        for name in sorted(module._non_persistent_buffers_set)
    ]
    kinds = [(path, species, type(value).__name__) for path, species, value, _ in below(model)]
    return {"frozen": frozen, "unsaved": unsaved, "kinds": kinds}


def from_source(text: str) -> nn.Module:
    """The model that a class of the name Model makes."""
    space: dict[str, Any] = {"torch": torch, "nn": nn}
    exec(text, space)
    made: nn.Module = space["Model"]()
    return made
