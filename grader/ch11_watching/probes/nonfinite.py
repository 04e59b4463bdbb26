"""The probes of `first_nonfinite`: steps by name, each with a model, and what was found in them."""

import math
import weakref

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from grader import probe

from .contract import disturbed, nothing_new, own_random, seed_all, state_of
from .reads import watch_reads
from .small import MODELS

STEPS = {}
"""Functions that return (step, model), by what they are about."""


def case(make):
    """Note a step under its function's name."""
    STEPS[make.__name__] = make
    return make


class Calls(nn.Module):
    """Calls a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def x():
    return torch.tensor([-1.0, 0.0, 2.0])


def simple(function, value=None):
    """Return a step that runs a function of a tensor outside of all modules."""
    given = x() if value is None else value
    return lambda: function(given), nn.Identity()


@case
def log_of_a_negative():
    return simple(lambda t: t.abs().log().sqrt())


@case
def square_root():
    return simple(lambda t: t.sqrt())


@case
def infinity_first():
    def step(t):
        big = torch.exp(t * 100)
        return big - big

    return simple(step)


@case
def first_operator():
    """The very first operator makes an infinity, and a later one a NaN."""
    return simple(lambda t: (t.exp(), t.neg().log()), torch.tensor([1000.0]))


@case
def hidden_again():
    return simple(lambda t: torch.log(t).nan_to_num(0.0).sum())


@case
def all_finite():
    return simple(lambda t: (t.exp() * 2).sum().sqrt())


@case
def sum_overflows():
    return simple(lambda t: t * 1.0, torch.full((8,), 2e38))


@case
def mask_on_purpose():
    def step(t):
        mask = torch.tensor([True, False, False])
        return t.masked_fill(mask, -math.inf).softmax(0)

    return simple(step)


@case
def mask_by_full():
    def step(t):
        mask = torch.full((3, 3), -math.inf).triu(1)
        return (t + mask).softmax(-1)

    return simple(step)


@case
def mask_in_place():
    def step(t):
        scores = torch.zeros(2, 2)
        scores[0, 1] = -math.inf
        scores[1].fill_(-math.inf)
        return scores

    return simple(step)


@case
def row_without_anything():
    return simple(lambda t: t.masked_fill(torch.ones(3, dtype=torch.bool), -math.inf).softmax(0))


@case
def number_times_zero():
    return simple(lambda t: t * math.inf)


@case
def number_beyond_float32():
    """1e300 is finite, and none of float32's: what `mul` makes of it is an infinity that it made."""
    return simple(lambda t: t.double() * 1e300 * 1e300)


@case
def given_to_the_step():
    return simple(lambda t: (t + 1) * 2, torch.tensor([1.0, math.inf, math.nan]))


@case
def infinity_given_nan_made():
    return simple(lambda t: t - t, torch.tensor([1.0, math.inf]))


@case
def nan_beside_infinity():
    return simple(lambda t: t / 0.0)


@case
def nan_given_infinity_hidden():
    """Where a NaN was given, a new infinity is not what went wrong first."""
    return simple(lambda t: torch.exp(t), torch.tensor([math.nan, 1000.0]))


@case
def in_place():
    return simple(lambda t: t.clone().log_())


@case
def in_place_repairs():
    return simple(lambda t: t.nan_to_num_(0.0).add_(1), torch.tensor([1.0, math.nan]))


@case
def out():
    return simple(lambda t: torch.log(t, out=torch.full((3,), math.nan)))


@case
def unwritten():
    def step(t):
        memory = (
            torch.empty(4),
            t.new_empty(2),
            torch.empty_like(t),
            torch.empty_strided((2,), (1,)),
        )
        return [one.fill_(1.0) for one in memory]

    return simple(step)


@case
def unwritten_is_used():
    return simple(lambda t: torch.empty(4).fill_(math.nan) + torch.ones(4).log())


@case
def whole_numbers():
    return simple(lambda t: (torch.arange(4) // 2, torch.tensor([True]) & True, t.long() / 1))


@case
def complex_numbers():
    return simple(lambda t: torch.complex(t, t) / torch.zeros(3))


@case
def half():
    return simple(lambda t: t.half(), torch.tensor([1.0, 70_000.0]))


@case
def lists():
    def step(t):
        ones = [torch.ones(2), torch.full((2,), 3e38)]
        torch._foreach_add_(ones, ones)

    return simple(step)


@case
def in_a_module():
    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.ReLU(), Calls(torch.log)))
    return lambda: model(torch.zeros(1, 3) - 5), model


@case
def after_a_module():
    model = Calls(lambda t: inner(t).log())
    inner = model.inner = nn.ReLU()
    return lambda: model(x()), model


@case
def module_that_is_shared():
    log = Calls(torch.log)
    model = nn.ModuleDict({"first": log, "second": log, "act": nn.ReLU()})
    return lambda: model["second"](model["act"](x())), model


@case
def module_that_raises():
    def fails(t):
        raise LookupError

    def tried(t):
        try:
            inner(t)
        except LookupError:
            return t.log()

    inner = nn.Sequential(Calls(fails))
    model = nn.Sequential(nn.ReLU(), Calls(tried))
    model[1].inner = inner
    return lambda: model(x()), model


@case
def outside_of_modules():
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    return lambda: torch.log(model(torch.zeros(1, 3)) * 0), model


@case
def in_backward():
    model = Calls(lambda t: torch.where(t > 0, t.sqrt(), 0.0).sum())
    leaf = torch.tensor([0.0, 4.0], requires_grad=True)
    return lambda: model(leaf).backward(), model


@case
def backward_in_a_module():
    def forward(leaf):
        torch.where(leaf > 0, leaf.sqrt(), 0.0).sum().backward()
        return leaf.detach()

    model = nn.Sequential(Calls(forward))
    leaf = torch.tensor([0.0, 4.0], requires_grad=True)
    return lambda: model(leaf), model


@case
def again_in_backward():
    """A checkpointed block runs again in backward, with other numbers."""
    scale = [1.0]

    def forward(t):
        scale[0] -= 1.0  # 0 the first time, -1 the second
        return (t + scale[0]).log().exp()

    block = Calls(forward)
    model = nn.Sequential(block)
    leaf = torch.tensor([1.0, 0.5], requires_grad=True)
    return lambda: checkpoint(model, leaf, use_reentrant=False).sum().backward(), model


@case
def in_the_optimizer():
    weight = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=1e30, foreach=False)

    def step():
        (weight * 1e20).sum().backward()
        optimizer.step()

    return step, nn.Identity()


@probe
def found_in(student, names):
    """Return what `first_nonfinite` says of each step, and how often it was called."""
    found = []
    for name in names:
        with own_random():
            seed_all(0)
            step, model = STEPS[name]()
            calls = []

            def counted(step=step, calls=calls):
                calls.append(1)
                return step()

            # memory that nobody wrote is NaN in this mode, so that it is the same each time
            torch.use_deterministic_algorithms(True, warn_only=True)
            try:
                said = student.first_nonfinite(counted, model)
            except Exception as error:
                error.add_note(f"in the step {name!r}")
                raise
            finally:
                torch.use_deterministic_algorithms(False)
        found.append((said, len(calls)))
    return found


@probe
def found_cost(student, steps):
    """Return the reads of a call whose step has many operators, and tensors that are alive after it."""
    alive = []

    def step():
        t = torch.ones(50)
        for _ in range(steps):
            t = t * 1.5 - 1
            alive.append(weakref.ref(t))

    with watch_reads() as reads:
        student.first_nonfinite(step, nn.Identity())
    return {"reads": reads.names, "alive": sum(ref() is not None for ref in alive)}


class Stop(Exception):
    """What a step raises."""


@probe
def found_in_a_run(student):
    """Return what is not the same in a run whose steps are looked at, and what is left."""
    left = []

    def run(watched):
        seed_all(0)
        model = MODELS["normed"]()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step():
            optimizer.zero_grad()
            model(torch.randn(16, 4)).square().mean().backward()
            optimizer.step()

        with nothing_new(model, optimizer) as new:
            for _ in range(3):
                student.first_nonfinite(step, model) if watched else step()
        left.extend(new)
        return state_of(model, optimizer)

    with own_random():
        differs = disturbed(run)
    model = MODELS["plain"]()

    def stops():
        model(torch.ones(2, 4))
        raise Stop

    with nothing_new(model) as after:
        try:
            student.first_nonfinite(stops, model)
            error = "none"
        except Exception as raised:
            error = type(raised).__name__
    return {"differs": differs, "left": left, "error": error, "after": after}
