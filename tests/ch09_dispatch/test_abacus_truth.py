"""The device: the solutions of both exercises together, against the CPU, on many random programs."""

from functools import partial
from random import Random

import torch

from grader.ch09_dispatch.probes.abacus import TRAININGS, train
from grader.ch09_dispatch.probes.plugging import CountingChip, memory_kernels, plug_in, run_lines
from grader.ch09_dispatch.test_Abacus import ARITHMETIC, FALLS_BACK, LOSSES, SUMS, WRITES
from grader.inside.instruments.apart import apart
from tests import references

reference = partial(references.reference, "ch09_dispatch")

VIEWS = [
    lambda x, random: x.t() if x.dim() == 2 else x.unsqueeze(0),
    lambda x, random: x[random.randrange(x.shape[0]) :] if x.dim() and x.shape[0] else x,
    lambda x, random: x[..., ::2] if x.dim() else x,
    lambda x, random: x.select(0, random.randrange(x.shape[0])) if x.dim() > 1 else x,
    lambda x, random: x.unsqueeze(-1).expand(*x.shape, 2),
    lambda x, random: x.detach(),
    lambda x, random: x.reshape(-1),
]

CHANGES = [
    lambda x, y, random: x.add_(y, alpha=random.randint(1, 3)),
    lambda x, y, random: x.mul_(random.choice([0.5, 2])),
    lambda x, y, random: x.fill_(random.randint(0, 9)),
    lambda x, y, random: x.copy_(y),
    lambda x, y, random: x.lerp_(y, 0.25),
    lambda x, y, random: x.clamp_(-50, 50),  # falls back
    lambda x, y, random: x.sub_(y),  # falls back
    lambda x, y, random: x.cumsum_(0) if x.dim() else x,  # falls back
]


def with_device(body):
    """Return `body(chip)` with both solutions plugged in, in a fork."""

    def run():
        chip = CountingChip()
        memory = reference("DeviceMemory")(chip)
        abacus = reference("Abacus")(memory.array)
        libraries = plug_in({**abacus.kernels(), **memory_kernels(memory)}, abacus.fallback)
        try:
            return body(chip)
        finally:
            for library in libraries:
                library._destroy()

    return apart(run, seconds=60)


def random_program(seed, device):
    """Return tensors after a program of views and writes, the same on each device."""
    random = Random(seed)
    base = torch.arange(24.0).reshape(random.choice([(4, 6), (24,), (2, 3, 4)])).to(device)
    tensors = [base]
    for _ in range(12):
        x = random.choice(tensors)
        if random.random() < 0.6 and len(tensors) < 6:
            tensors.append(random.choice(VIEWS)(x, random))
        elif x.numel() and 0 not in x.stride():
            y = torch.full((), random.randint(-3, 3)).to(device).to(x.dtype)
            random.choice(CHANGES)(x, y, random)
    return [(list(x.shape), list(x.stride()), x.cpu().tolist()) for x in tensors]


def test_random_programs():
    def body(chip):
        return [random_program(seed, "abacus") for seed in range(60)], chip.live, chip.wrong

    found, live, wrong = with_device(body)
    assert (live, wrong) == ([], [])
    for seed, got in enumerate(found):
        assert got == random_program(seed, "cpu"), seed


def test_both_solutions_together():
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.rand(3, 4, generator=generator) * 8 + 0.5 for _ in "xy")
    inputs = {"x": x, "y": y, "n": torch.randint(1, 9, (3, 4), generator=generator)}
    lines = [*ARITHMETIC, *SUMS, *LOSSES, *FALLS_BACK, *WRITES]

    def body(chip):
        values = run_lines(lines, inputs, "abacus")
        losses = {run: train(run, 1, 3, "abacus", lambda: sum(chip.live)) for run in TRAININGS}
        return values, losses, chip.wrong

    values, losses, wrong = with_device(body)
    assert wrong == []
    for line, got, expected in zip(lines, values, run_lines(lines, inputs, "cpu"), strict=True):
        for one, other in zip(got, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5, msg=line)
    for run, got in losses.items():
        torch.testing.assert_close(got["losses"], train(run, 1, 3, "cpu")["losses"])
        assert len(set(got["alive"])) == 1


def test_what_needs_no_kernel():
    """What the chapter says of the table of a device that nobody has written."""
    has = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    assert sum(has(name, "PrivateUse2") for name in names) == 2244
    assert sum(has(name, "CPU") for name in names) == 2920
    assert len(names) == 3110
