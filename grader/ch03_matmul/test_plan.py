"""Checks of `plan`: what programs return, do and allocate, at sizes that nobody could run."""

import torch

from grader import Mismatch, about, assert_equal, draw_int, gate

F32, F64, I64 = torch.float32, torch.float64, torch.int64
MILLION = 10**6
KEYS = ["flops", "kept_bytes", "new_bytes", "outputs", "peak_bytes"]


def compare(planned, name, specs, **expected):
    """Compare some of a plan's numbers with ours."""
    plan = planned.ask(name, specs).value
    for key, value in expected.items():
        got = plan[key]
        if key == "outputs":
            got = triples(got)
        with about(("arguments", ", ".join(str(shape) for shape, _ in specs))):
            assert_equal(got, value, f"`{key}` of `{name}` is not as expected.")


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


def test_product(planned, rng):
    """The product of 10^6 × 10^3 and 10^3 × 10^6: four terabytes that nobody allocates."""
    specs = [((MILLION, 1000), F32), ((1000, MILLION), F32)]
    compare(
        planned,
        "product",
        specs,
        outputs=[((MILLION, MILLION), (MILLION, 1), F32)],
        flops=2 * MILLION * 1000 * MILLION,
        new_bytes=4 * MILLION**2,
        peak_bytes=4 * MILLION**2,
        kept_bytes=4 * MILLION**2,
    )
    m, k, n = torch.randint(10**4, 10**5, (3,), generator=rng).tolist()
    specs = [((7, m, k), F64), ((7, k, n), F64)]
    outputs = [((7, m, n), (m * n, n, 1), F64)]
    compare(planned, "product", specs, outputs=outputs, flops=14 * m * k * n, new_bytes=56 * m * n)


def test_outputs(planned):
    """Shapes, strides and dtypes, of one output and of several."""
    n = 10**5
    compare(
        planned,
        "head",
        [((n, 512), F32), ((512, 4 * n), F32), ((4 * n, n), F32)],
        outputs=[((n, n), (n, 1), F32), ((n,), (1,), I64)],
    )
    compare(
        planned,
        "views",
        [((n, n), F32)],
        outputs=[
            ((n, n), (1, n), F32),
            ((n - 1, n // 2), (n, 2), F32),
            ((n * n,), (1,), F32),
        ],
    )
    shape, size = (64, 32, 2048, 2048), 32 * 2048 * 2048
    strides = (size, 2048 * 2048, 2048, 1)
    compare(planned, "makes_its_own", [(shape, F32)], outputs=[(shape, strides, F32)])


def test_flops(planned, rng):
    """FLOPs of several products, and of a convolution."""
    n = draw_int(rng, 10**4, 10**5 - 1)
    specs = [((n, 512), F32), ((512, 4 * n), F32), ((4 * n, n), F32)]
    compare(planned, "head", specs, flops=2 * n * 512 * 4 * n + 2 * n * 4 * n * n)
    specs = [((48, n, 64), F32)] * 3
    compare(planned, "attention", specs, flops=2 * 2 * 48 * n * n * 64)
    specs = [((n, 3, 1024, 1024), F32), ((64, 3, 3, 3), F32)]
    compare(planned, "convolution", specs, flops=2 * n * 64 * 512 * 512 * 27)
    compare(planned, "chain", [((n, n), F32)], flops=0)


def test_bytes(planned, rng):
    """Bytes of all storages that the program allocates; views and work in place need none."""
    n = draw_int(rng, 10**5, 10**6 - 1)
    specs = [((n, n), F32)]
    compare(planned, "chain", specs, new_bytes=3 * 4 * n * n)
    compare(planned, "views", specs, new_bytes=0)
    compare(planned, "in_place", specs, new_bytes=4 * n * n)
    compare(planned, "shared", specs, new_bytes=4 * n * n + 4)
    compare(planned, "drops", specs, new_bytes=4000 * n + 4 * n)
    compare(planned, "makes_its_own", specs, new_bytes=8 * n + n * n + 4 * n * n + 4)


def test_peak(planned, rng):
    """Bytes alive at once: what nothing refers to is gone."""
    n = draw_int(rng, 10**5, 10**6 - 1)
    specs, size = [((n, n), F32)], 4 * n * n
    compare(planned, "chain", specs, peak_bytes=2 * size)
    compare(planned, "keeps_all", specs, peak_bytes=4 * size)
    compare(planned, "in_place", specs, peak_bytes=size)
    compare(planned, "views", specs, peak_bytes=0)
    compare(planned, "drops", specs, peak_bytes=4000 * n)
    compare(planned, "attention", [((48, n, 64), F64)] * 3, peak_bytes=2 * 8 * 48 * n * n)


def test_kept(planned, rng):
    """Bytes that the outputs keep: shared storages count once, the arguments' not at all."""
    n = draw_int(rng, 10**5, 10**6 - 1)
    specs, size = [((n, n), F32)], 4 * n * n
    compare(planned, "chain", specs, kept_bytes=size)
    compare(planned, "keeps_all", specs, kept_bytes=size)
    compare(planned, "views", specs, kept_bytes=0)
    compare(planned, "shared", specs, kept_bytes=size + 4)
    compare(planned, "drops", specs, kept_bytes=4 * n)
    specs = [((n, 512), F32), ((512, 4 * n), F32), ((4 * n, n), F32)]
    compare(planned, "head", specs, kept_bytes=size + 8 * n)
