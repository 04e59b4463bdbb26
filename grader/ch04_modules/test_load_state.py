"""Checks of `load_state`: what is loaded, what is reported, all or nothing, and upgrades."""

import pytest
import torch

from grader import (
    about,
    assert_equal,
    assert_holds,
    assert_raises,
    assert_same_bits,
    gate,
    points,
    python_random,
)
from grader.ch04_modules.graphs import random_graph, written
from grader.ch04_modules.probes.checkpoints import held
from grader.ch04_modules.probes.module_graphs import build

COUNT = 12


@pytest.fixture
def random(rng):
    return python_random(rng)


def model(random, **options):
    """Return a graph and a checkpoint for it with values that no fresh model has."""
    made = random_graph(random, tensors=True, **options)
    # the root saves at least one parameter and one buffer, and keeps one of each back
    made["modules"][0]["parameters"] = [["root_w", 0], ["root_v", 0], ["root_none", None]]
    made["modules"][0]["buffers"] = [["root_s", 0, True], ["root_mask", 0, False]]
    modules, _, _ = build(made)
    state = modules[0].state_dict()
    where = {}
    tensors = {}
    for name, tensor in state.items():
        # all names of one tensor get one value: which of them is loaded last must not matter
        value = where.setdefault(tensor.data_ptr(), 1000.0 + len(where))
        tensors[name] = torch.full_like(tensor, value)
    return made, tensors


def expected_after(made, tensors):
    """Return what the modules hold after PyTorch loaded what fits by name."""
    modules, _, _ = build(made)
    modules[0].load_state_dict(tensors, strict=False)
    return held(modules)


def called(made, tensors, options):
    """Return the rows that say what was loaded into what."""
    given = ", ".join(f"{name!r}: {tuple(tensor.shape)}" for name, tensor in tensors.items())
    named = "".join(f", {name}={value!r}" for name, value in options.items())
    call = ("call", f"load_state(m[0], tensors{named})")
    return ("model", written(made)), ("shapes of tensors", f"{{{given}}}"), call


def assert_report(got, missing=(), unexpected=()):
    """Fail unless loading ended well, with this report."""
    said = f"The checkpoint was refused: {got['error']}"
    assert_equal("loaded" if got["error"] is None else "refused", "loaded", said)
    expected = {"missing": list(missing), "unexpected": list(unexpected)}
    assert_equal(got["report"], expected, "What `load_state` returns is not as expected.")


def assert_state(got, expected):
    """Fail unless the modules hold these values."""
    for place, tensor in expected.items():
        with about(("tensor", place)):
            assert_holds(place in got["now"], "The module holds it no more.")
            assert_same_bits(got["now"][place], tensor.detach())


def assert_refused(loaded, made, tensors, names, **options):
    """Fail unless loading raised, named all `names`, and left the model as it was."""
    evidence = loaded.ask(made, tensors, options)
    with about(*called(made, tensors, options)):
        if evidence.raised:
            assert_raises(evidence, "RuntimeError", "It was refused with another error.")
        got = evidence.value
        assert_holds(got["error"] is not None, "A RuntimeError was expected.")
        unnamed = [name for name in names if name not in got["error"]]
        assert_equal(unnamed, [], "The error's message does not name these.")
        with about(of="After an error the model has changed. "):
            assert_state(got, held(build(made)[0]))


def load(loaded, made, tensors, expected, options=None, **report):
    """Compare report and values after a loading that must end well."""
    options = options or {}
    got = loaded.ask(made, tensors, options).value
    with about(*called(made, tensors, options)):
        assert_report(got, **report)
        assert_state(got, expected)
    return got


@gate
def test_loads(loaded, random):
    """A checkpoint of the same model is loaded, and the report is empty."""
    made, tensors = model(random, shared=False)
    load(loaded, made, tensors, expected_after(made, tensors))


def test_in_place(loaded, random):
    """Parameters stay the same objects, with their dtype and `requires_grad`; memory is apart."""
    for _ in range(COUNT):
        made, tensors = model(random)
        tensors = {
            name: tensor.double() if number % 2 else tensor
            for number, (name, tensor) in enumerate(tensors.items())
        }
        got = load(loaded, made, tensors, expected_after(made, tensors))
        with about(*called(made, tensors, {})):
            assert_holds(got["same objects"], "A parameter was replaced by another object.")
            assert_holds(not got["shares memory"], "The model shares memory with the checkpoint.")
            modules, parameters, _ = build(made)
            frozen = {id(parameter) for parameter in parameters[1::2]}
            wants = {
                place: tensor.requires_grad and id(tensor) not in frozen
                for place, tensor in held(modules).items()
            }
            assert_equal(got["wants grad"], wants, "`requires_grad` has changed.")


def test_shared(loaded, random):
    """In models with shared modules and tied tensors every name is expected."""
    for _ in range(COUNT):
        made, tensors = model(random, none=False)
        load(loaded, made, tensors, expected_after(made, tensors))
    del tensors["root_v"]  # another name of "root_w"
    expected = expected_after(made, tensors)
    load(loaded, made, tensors, expected, {"strict": False}, missing=["root_v"])


def test_report(loaded, random):
    """Not strict: what fits is loaded, the other names are reported, sorted."""
    for _ in range(COUNT):
        made, tensors = model(random, shared=False)
        missing = sorted(random.sample(sorted(tensors), min(2, len(tensors))))
        extra = {name: torch.zeros(1) for name in ("zzz", "root_w.x", "Other.weight")}
        part = {**extra, **{name: t for name, t in tensors.items() if name not in missing}}
        # PyTorch's own loading, without what it may trip over
        expected = expected_after(made, {n: t for n, t in part.items() if n in tensors})
        report = {"missing": missing, "unexpected": sorted(extra)}
        load(loaded, made, part, expected, {"strict": False}, **report)


@points(3.5)
def test_strict(loaded, random):
    """Strict: missing and unexpected names are one error that names them all; nothing changes."""
    for _ in range(COUNT):
        made, tensors = model(random)
        assert_refused(loaded, made, {**tensors, "zzz": torch.ones(1)}, ["zzz"])
        part = {
            name: tensor for name, tensor in tensors.items() if name not in ("root_w", "root_s")
        }
        assert_refused(loaded, made, part, ["root_w", "root_s"])
        assert_refused(
            loaded, made, {**part, "yyy": torch.ones(1)}, ["root_w", "root_s", "yyy"], strict=True
        )


def test_shapes(loaded, random):
    """A wrong shape is an error, strict or not, even if it would broadcast; nothing changes."""
    for strict in (True, False):
        for own, shape, buffer, other in (
            ([3], [5], [2, 3], [3, 2]),
            ([3], [1, 3], [2, 1], [1, 2]),
            ([3], [1], [2, 1], [1, 2]),
            ([3], [2, 2], [2, 1], [1, 2]),
            ([], [1], [1], []),  # one element each, and not of one shape
            ([1], [1, 1], [], [1]),
            ([0], [1], [0, 2], [2]),  # `copy_` would broadcast them to nothing
        ):
            made, tensors = model(random, none=False)
            made["parameters"][0], made["buffers"][0] = own, buffer
            modules, _, _ = build(made)
            tensors = {n: torch.full_like(t, 9.0) for n, t in modules[0].state_dict().items()}
            wrong = {**tensors, "root_w": torch.ones(shape), "root_s": torch.ones(other)}
            assert_refused(loaded, made, wrong, ["root_w", "root_s"], strict=strict)
            wrong.pop("root_v")
            assert_refused(loaded, made, wrong, ["root_w", "root_s", "root_v"], strict=strict)


def test_not_saved(loaded, random):
    """Names of `None` and of buffers that are not persistent are unexpected."""
    made, tensors = model(random, shared=False)
    more = {**tensors, "root_none": torch.ones(1), "root_mask": tensors["root_s"]}
    names = ["root_mask", "root_none"]
    load(loaded, made, more, expected_after(made, tensors), {"strict": False}, unexpected=names)
    assert_refused(loaded, made, more, ["root_mask", "root_none"])


def checkpoint(rng, *names):
    shapes = {name: (1, 2) if "plain" in name else (2,) for name in names}
    found = {name: torch.randn(shape, generator=rng) for name, shape in shapes.items()}
    # the first and the third are one module: which is loaded last must not matter
    found[names[2]] = found[names[0]].clone()
    return found


NEW = ("net.layer1.gain", "net.layer10.gain", "net.shared.gain", "net.plain.weight")
OLD = ("net.old_layer1.weight", "net.old_layer10.weight", "net.shared.weight", "net.plain.weight")
BELOW = ["layer1.gain", "layer10.gain", "plain.weight", "shared.gain"]


CALLS = "The calls of `upgrade`, as (module, names of its entries, version), are not as expected."


def test_upgrades(upgraded, rng):
    """Entries of another version go through `upgrade`: from above down, names without the path."""
    old = checkpoint(rng, *OLD)
    got = upgraded.ask(old, None, False).value
    below = sorted(name.removeprefix("net.") for name in OLD)
    calls = [("model", below, None)] + [("scale", ["weight"], None)] * 3
    assert_equal(got["calls"], calls, CALLS)
    assert_report(got)
    assert_same_bits(got["layer1"], 2 * old[OLD[0]])
    assert_same_bits(got["layer10"], 2 * old[OLD[1]])
    assert_same_bits(got["plain"], old[OLD[3]])

    new = checkpoint(rng, *NEW)
    saved = {"": 1, "net": 2, "net.layer1": 3, "net.layer10": 1, "net.shared": 3, "net.plain": 1}
    got = upgraded.ask(new, {**saved, "net.layer10": 4}, False).value
    assert_equal(got["calls"], [("scale", ["gain"], 4)], f"{CALLS} One version is newer.")
    got = upgraded.ask(new, saved, False).value
    assert_equal(got["calls"], [("scale", ["gain"], 1)], CALLS)
    assert_report(got)
    assert_same_bits(got["layer10"], 2 * new[NEW[1]])
    assert_same_bits(got["layer1"], new[NEW[2]])

    saved = {"net": 1, "net.layer1": 3, "net.layer10": 3, "net.shared": 3}
    assert_equal(upgraded.ask(new, saved, False).value["calls"], [("model", BELOW, 1)], CALLS)
    # the same model by itself: its path is the empty one
    alone = {name.removeprefix("net."): tensor for name, tensor in old.items()}
    got = upgraded.ask(alone, {}, True).value
    assert_equal(got["calls"], calls, f"{CALLS} The upgraded module is the root.")
    assert_same_bits(got["layer10"], 2 * old[OLD[1]])
    everything = {**saved, "net": 2}
    assert_equal(upgraded.ask(new, everything, False).value["calls"], [], CALLS)


def test_caller_keeps(upgraded, loaded, rng, random):
    """The dictionaries that were passed are as they were."""
    present = {"net": 2, "net.layer1": 3, "net.layer10": 1, "net.shared": 3}
    for names, saved in ((OLD, None), (NEW, present)):
        got = upgraded.ask(checkpoint(rng, *names), saved, False).value
        assert_equal(got["names given"], list(names), "The names in `tensors` have changed.")
        assert_equal(got["versions given"], saved, "`versions` has changed.")
    made, tensors = model(random)
    got = loaded.ask(made, tensors, {"versions": {}}).value
    assert_equal(got["names given"], list(tensors), "The names in `tensors` have changed.")
