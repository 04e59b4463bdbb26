"""Probes of `matmul` and its kin: what comes out, and which operators it took."""

from grader import Hung, apart, each, probe, watch_flops, watch_memory, watch_ops

PRODUCTS = (
    *("mm", "bmm", "mv", "dot", "vdot", "addmm", "addmv", "baddbmm", "addbmm", "linear"),
    *("convolution", "_int_mm", "_scaled_mm", "_trilinear"),
)
"""The operators that multiply and sum."""


@probe
def by_hand(student, a, b):
    """Return `mm_by_hand` of `a` and `b`."""
    return student.mm_by_hand(a, b)


@probe
def shaped(student, pairs):
    """Return the shape that each pair of shapes gives, or "ValueError"."""

    def matmul_shape(a, b):
        try:
            return student.matmul_shape(a, b)
        except ValueError:
            return "ValueError"

    return each(matmul_shape, [(tuple(a), tuple(b)) for a, b in pairs])


def _measured(multiply, *operands):
    """Return a product, the operators that made it, and the bytes that were allocated."""
    with watch_ops() as ops, watch_memory() as memory:
        result = multiply(*operands)
    return {
        "result": result,
        "products": [name for name in ops.names if name in PRODUCTS],
        "new_bytes": memory.new_bytes,
        "largest_bytes": memory.largest_bytes,
    }


@probe
def multiplied(student, a, b):
    """Return `matmul` of `a` and `b`, and what it took."""
    return _measured(student.matmul, a, b)


@probe
def broadcast_product(student, a, b):
    """Return `broadcast_matmul` of `a` and `b`, and what it took."""
    return _measured(student.broadcast_matmul, a, b)


@probe
def contracted(student, equation, operands):
    """Return `einsum` of `operands`, and what it took."""
    return _measured(student.einsum, equation, *operands)


@probe
def ordered(student, chains):
    """Return what `best_order` gives for each list of sizes."""
    return [student.best_order(list(sizes)) for sizes in chains]


@probe
def ordered_in_time(student, sizes, seconds):
    """Return what `best_order` gives for these sizes, None if it takes longer than `seconds`."""
    try:
        return apart(lambda: student.best_order(list(sizes)), seconds=seconds)
    except Hung:
        return None


@probe
def steady_product(student, a, b):
    """Return `steady_matmul` of `a` and `b`."""
    return student.steady_matmul(a, b)


@probe
def seven_products(student, a, b, leaf):
    """Return `strassen` of `a` and `b`, which products ran, and their FLOPs."""
    with watch_ops() as ops, watch_flops() as flops:
        result = student.strassen(a, b, leaf)
    return {
        "result": result,
        "products": sorted({name for name in ops.names if name in PRODUCTS}),
        "flops": flops.total,
    }
