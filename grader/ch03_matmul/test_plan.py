"""Checks of `plan`: what programs return, do and allocate, at sizes that nobody could run."""

import inspect

import torch

from grader import Mismatch, assert_equal, compared, draw_int, gate, points
from grader.ch03_matmul.probes import planning

F32, F64, I64 = torch.float32, torch.float64, torch.int64
MILLION = 10**6
KEYS = ["flops", "kept_bytes", "new_bytes", "outputs", "peak_bytes"]


def compare(planned, *cases):
    """Compare some numbers of each plan with ours; `cases` are (name, specs, {key: number})."""
    found, wrong = [], []
    for name, specs, expected in cases:
        plan = planned.ask(name, specs).value
        for key, value in expected.items():
            got = triples(plan[key]) if key == "outputs" else plan[key]
            found.append(got)
            if got != value:
                wrong.append((key, value, got, called(name, specs)))
    compared(found)
    if wrong:
        key, value, got, rows = wrong[0]
        ours, theirs = (_number(one) for one in (value, got))
        what = f"`{key}` is not as expected."
        raise Mismatch(what, (*rows, ("expected", ours), ("got", theirs)))


def _number(value):
    return f"{value:,}" if type(value) is int else repr(value)[:300]


def called(name, specs):
    """Return the rows that say which program was planned, and for which arguments."""
    source = (
        inspect.getsource(getattr(planning, f"_{name}")).strip().replace(f"_{name}(", f"{name}(")
    )
    return ("program", source), ("call", f"plan({name}, {specs})")


def triples(outputs):
    """Return `outputs` with shapes and strides as tuples; refuse what is no list of triples."""
    plain = (list, tuple)
    if isinstance(outputs, plain) and all(
        isinstance(one, plain)
        and len(one) == 3
        and all(isinstance(part, plain) for part in one[:2])
        for one in outputs
    ):
        return [(tuple(shape), tuple(strides), dtype) for shape, strides, dtype in outputs]
    raise Mismatch(
        "`outputs` is to be a list of (shape, strides, dtype), a list of one for one tensor.",
        (("got", repr(outputs)[:300]),),
    )


@gate
def test_dict(planned, rng):
    """Returns a dict with the five keys."""
    plan = planned.ask("product", [((2, 3), F32), ((3, 4), F32)]).value
    assert_equal(type(plan).__name__, "dict", "`plan` is to return a dict.")
    assert_equal(sorted(plan), KEYS, "The keys of the plan.")


@points(3)
def test_product(planned, rng):
    """The product of 10^6 × 10^3 and 10^3 × 10^6: four terabytes that nobody allocates."""
    specs = [((MILLION, 1000), F32), ((1000, MILLION), F32)]
    everything = {
        "outputs": [((MILLION, MILLION), (MILLION, 1), F32)],
        "flops": 2 * MILLION * 1000 * MILLION,
        "new_bytes": 4 * MILLION**2,
        "peak_bytes": 4 * MILLION**2,
        "kept_bytes": 4 * MILLION**2,
    }
    m, k, n = torch.randint(10**4, 10**5, (3,), generator=rng).tolist()
    stacks = [((7, m, k), F64), ((7, k, n), F64)]
    outputs = [((7, m, n), (m * n, n, 1), F64)]
    numbers = {"outputs": outputs, "flops": 14 * m * k * n, "new_bytes": 56 * m * n}
    compare(planned, ("product", specs, everything), ("product", stacks, numbers))


def test_outputs(planned):
    """Shapes, strides and dtypes, of one output and of several."""
    n = 10**5
    head = [((n, 512), F32), ((512, 4 * n), F32), ((4 * n, n), F32)]
    views = [((n, n), (1, n), F32), ((n - 1, n // 2), (n, 2), F32), ((n * n,), (1,), F32)]
    shape, size = (64, 32, 2048, 2048), 32 * 2048 * 2048
    strides = (size, 2048 * 2048, 2048, 1)
    compare(
        planned,
        ("views", [((n, n), F32)], {"outputs": views}),
        ("head", head, {"outputs": [((n, n), (n, 1), F32), ((n,), (1,), I64)]}),
        ("makes_its_own", [(shape, F32)], {"outputs": [(shape, strides, F32)]}),
    )


def test_flops(planned, rng):
    """FLOPs of several products, and of a convolution."""
    n = draw_int(rng, 10**4, 10**5 - 1)
    head = [((n, 512), F32), ((512, 4 * n), F32), ((4 * n, n), F32)]
    convolution = [((n, 3, 1024, 1024), F32), ((64, 3, 3, 3), F32)]
    compare(
        planned,
        ("chain", [((n, n), F32)], {"flops": 0}),
        ("head", head, {"flops": 2 * n * 512 * 4 * n + 2 * n * 4 * n * n}),
        ("attention", [((48, n, 64), F32)] * 3, {"flops": 2 * 2 * 48 * n * n * 64}),
        ("convolution", convolution, {"flops": 2 * n * 64 * 512 * 512 * 27}),
    )


def test_bytes(planned, rng):
    """Bytes of all storages that the program allocates; views and work in place need none."""
    n = draw_int(rng, 10**5, 10**6 - 1)
    numbers = {
        "chain": 3 * 4 * n * n,
        "views": 0,
        "in_place": 4 * n * n,
        "shared": 4 * n * n + 4,
        "drops": 4000 * n + 4 * n,
        "makes_its_own": 8 * n + n * n + 4 * n * n + 4,
    }
    each(planned, [((n, n), F32)], "new_bytes", numbers)


def test_peak(planned, rng):
    """Bytes alive at once: what nothing refers to is gone."""
    n = draw_int(rng, 10**5, 10**6 - 1)
    size = 4 * n * n
    numbers = {
        "chain": 2 * size,
        "keeps_all": 4 * size,
        "in_place": size,
        "views": 0,
        "drops": 4000 * n,
    }
    heads = ("attention", [((48, n, 64), F64)] * 3, {"peak_bytes": 2 * 8 * 48 * n * n})
    each(planned, [((n, n), F32)], "peak_bytes", numbers, heads)


def test_kept(planned, rng):
    """Bytes that the outputs keep: shared storages count once, the arguments' not at all."""
    n = draw_int(rng, 10**5, 10**6 - 1)
    size = 4 * n * n
    numbers = {
        "chain": size,
        "views": 0,
        "part": size,  # two rows, which keep all of the storage
        "stretched": 4 * n,  # many elements, in a storage of few
        "shared": size + 4,
        "keeps_all": size,
        "drops": 4 * n,
    }
    specs = [((n, 512), F32), ((512, 4 * n), F32), ((4 * n, n), F32)]
    head = ("head", specs, {"kept_bytes": size + 8 * n})
    each(planned, [((n, n), F32)], "kept_bytes", numbers, head)


def each(planned, specs, key, numbers, *more):
    """Compare one key of the plans of several programs on the same arguments, and `more` cases."""
    compare(planned, *((name, specs, {key: value}) for name, value in numbers.items()), *more)
