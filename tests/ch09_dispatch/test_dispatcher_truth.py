"""`Dispatcher`: its model and its solution against PyTorch's own dispatcher, which plays the same scenarios."""

import threading
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from random import Random

import torch
from torch._C import DispatchKey, DispatchKeySet

from grader.ch09_dispatch.dispatcher_model import ORDER, Model, keys_of
from grader.ch09_dispatch.probes.walks import play, samples
from grader.ch09_dispatch.walk_scenarios import as_code, call, random_walk, scenario
from tests import references

WITHOUT_BACKEND = [
    "FuncTorchBatched",
    "AutocastCPU",
    "ADInplaceOrView",
    "Negative",
    "Conjugate",
    "Functionalize",
]

reference = partial(references.reference, "ch09_dispatch")


def key_set(keys):
    found = DispatchKeySet(DispatchKey.Undefined)
    for key in keys:
        found = found | DispatchKeySet(getattr(DispatchKey, key))
    return found


def names(keys):
    """Return the names of those keys of a set that scenarios know."""
    return set(str(keys)[len("DispatchKeySet(") : -1].split(", ")) & set(ORDER)


class PyTorchs:
    """PyTorch's dispatcher with the methods of the exercise, for one operator of one tensor.

    Where a scenario registers nothing, PyTorch may have a fallback: scenarios register at every key.
    """

    def __init__(self, library):
        self.library = library
        library.define("f(Tensor x) -> str")

    def register(self, op, key, kernel):
        if kernel == "fallthrough":
            self.library.impl(op, torch.library.fallthrough_kernel, key)
        else:
            self.library.impl(op, lambda keys, x: kernel(names(keys), x), key, with_keyset=True)

    def after(self, key):
        return names(torch._C._dispatch_keyset_full_after(getattr(DispatchKey, key)))

    @contextmanager
    def including(self, keys):
        with ExitStack() as guards:
            for key in keys:
                guards.enter_context(torch._C._IncludeDispatchKeyGuard(getattr(DispatchKey, key)))
            yield

    @contextmanager
    def excluding(self, keys):
        with torch._C._ExcludeDispatchKeyGuard(key_set(keys)):
            yield

    def call(self, op, x):
        return torch.ops.walks_truth.f.default(x)

    def redispatch(self, op, keys, x):
        return torch.ops.walks_truth.f.default.redispatch(key_set(keys), x)


def drawn(random):
    """Return a scenario as PyTorch can play it: real order, one operator, something at every key.

    A thread includes ADInplaceOrView and excludes autocast from the start. All keys with a backend are
    of one: PyTorch keeps such a key in two halves, and excluding CPU would exclude Meta as well.
    """
    tensor, own = random.choice(
        [
            ("cpu", ["AutogradCPU", "CPU"]),
            ("conj", ["AutogradCPU", "CPU"]),
            ("inference", ["AutogradCPU", "CPU"]),
            ("meta", ["AutogradMeta", "Meta"]),
            ("sparse", ["AutogradCPU", "SparseCPU"]),
        ]
    )
    mine = [*WITHOUT_BACKEND, *own]
    actions = ["hands on", "hands on", "hands on", "computes", "fallthrough"]
    actions += [[random.choice(["including", "excluding"]), random.sample(mine, 3), "hands on"]]
    actions += [["redispatches", random.sample(mine, 3)]]
    kernels = {key: random.choice(actions) for key in ORDER}
    steps = [call(tensor)]
    if random.random() < 0.3:
        steps.append(["redispatch", "f", random.sample(mine, 2), [tensor]])
    for _ in range(random.randint(0, 3)):
        guard = random.choice(["including", "excluding"])
        steps = [[guard, random.sample(mine, random.randint(1, 4)), steps]]
        steps += random.choice([[], [call(tensor)], [["fails"]]])
    steps = [["including", ["ADInplaceOrView"], [["excluding", ["AutocastCPU"], steps]]]]
    return scenario(kernels, *steps)


def test_model_is_pytorchs():
    random, played = Random(1), 0
    while played < 300:
        one = drawn(random)
        expected = play(Model, one)
        if any("without end" in note for note in expected):
            continue
        played += 1
        with torch.library._scoped_library("walks_truth", "FRAGMENT") as library:
            got = play(lambda order, library=library: PyTorchs(library), one)
        assert got == expected, one


def test_order_is_pytorchs():
    together = key_set(["AutogradCPU", "CPU"])
    backends = [key for key in ORDER if key in ("SparseCPU", "Meta", "CPU", "AutogradMeta")]
    for key in [key for key in ORDER if key not in backends]:
        rest = [other for other in ORDER[ORDER.index(key) :] if other not in backends]
        assert key_set(rest).highestPriorityTypeId() == getattr(DispatchKey, key)
    assert together.highestPriorityTypeId() == DispatchKey.AutogradCPU


def test_dispatcher():
    solution, random = reference("Dispatcher"), Random(2)
    for number in range(400):
        one = drawn(random) if number % 2 else random_walk(random)
        assert play(solution, one) == play(Model, one), one


def test_keys_of_is_the_notebooks():
    theirs = references.program("ch09_dispatch", "Dispatcher")["keys_of"]
    for tensor in (torch.ones(2), torch.ones(2).to_sparse(), torch.ones(2, device="meta")):
        assert theirs(tensor) == keys_of(tensor)


def test_shown_code_does_what_was_played():
    """What a student pastes calls the same kernels with the same keys as the scenario did."""
    random = Random(3)
    for number in range(100):
        one = drawn(random) if number % 2 else random_walk(random)
        notes = play(Model, one)
        if any("without end" in note for note in notes):
            continue
        stops = [note.split(" at ")[1].split(", keys: ") for note in notes if " at " in note]
        played = [[key, *sorted(keys.split())] for key, keys in stops]
        assert pasted(as_code(one, notes)) == played, as_code(one, notes)


def pasted(code):
    """Run code and return what it printed."""
    printed = []
    given = {
        "Dispatcher": Model,
        "of_inference": samples()["inference"],
        "print": lambda *parts: printed.append(list(parts)),
        "suppress": suppress,
        "threading": threading,
        "torch": torch,
    }
    exec(code, given)
    return printed
