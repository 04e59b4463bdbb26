"""Checks of `StridedTensor`: programs of steps, each of whose tensors is compared with torch's."""

from itertools import permutations

import pytest

from grader import Mismatch, assert_equal, compared, draw_int, gate
from grader.ch02_strides.probes.strided_tensors import as_code, written
from grader.ch02_strides.strided_programs import expected, plain, random_program, start

WHOLE = (None, None, 1)


@pytest.fixture
def cube(rng):
    """A tensor of size (3, 4, 5), permuted and with an offset."""
    offset = draw_int(rng, 1, 6)
    return list(range(100, 160 + offset)), (3, 4, 5), (4, 1, 12), offset


def index(*parts):
    return "index", 0, list(parts)


def compare(programs_run, *programs):
    """Compare every tensor of every program; show the first that differs with the step that made it."""
    got = programs_run.ask(list(programs)).value
    # all of them: what is right tells why, too
    compared([[_seen(found) for found in each] for each in got])
    for program, found in zip(programs, got, strict=True):
        for number, (ours, right) in enumerate(zip(found, expected(program), strict=True)):
            step = "the tensor itself" if number == 0 else written(program[number])
            try:
                _same(ours if isinstance(ours, str) else known(ours, step), right, step)
            except Mismatch as error:
                # a number may have been written by any step, all else is as its own step made it
                last = len(program) if "numbers" in error.what else number + 1
                rows = (("program", as_code(program, last)), *error.rows)
                raise Mismatch(error.what, rows) from None


def _same(ours, right, step):
    if isinstance(ours, str) or isinstance(right, str):
        got, due = (
            x if isinstance(x, str) else f"a tensor of size {x['size']}" for x in (ours, right)
        )
        assert_equal(got, due, f"{step}: not the outcome that is asked for.")
        return
    for key in ("size", "stride", "offset"):
        assert_equal(ours[key], right[key], f"{step}: the {key} differs.")
    try:
        assert_equal(ours["list"], right["list"])
    except Mismatch as error:
        what = f"{step}: when all steps are done, `tolist()` gives other numbers."
        raise Mismatch(what, _first(ours["list"], right["list"]) or error.rows) from None
    kinds = {True: "the list of t0", False: "a list of its own"}
    assert_equal(
        kinds[ours["shares"]], kinds[right["shares"]], f"{step}: `storage` is another list."
    )


def _first(ours, right, where=()):
    """Return rows with the first number of nested lists that differs, none if the lists do."""
    if isinstance(ours, list) and isinstance(right, list) and len(ours) == len(right):
        pairs = enumerate(zip(ours, right, strict=True))
        return next((_first(a, b, (*where, k)) for k, (a, b) in pairs if a != b), ())
    if isinstance(ours, list) or isinstance(right, list):
        return ()
    return (("at", str(list(where))), ("expected", str(right)), ("got", str(ours)))


def _seen(found):
    """Return what a diagnosis compares: without what the exercise leaves open, where it has a form."""
    try:
        return plain(found)
    except (TypeError, KeyError):
        return found


def known(found, step):
    if not isinstance(found["size"], tuple) or not isinstance(found["stride"], tuple):
        rows = (("size", repr(found["size"])), ("stride", repr(found["stride"])))
        raise Mismatch(f"{step}: size and stride are not tuples.", rows)
    if len(found["size"]) != len(found["stride"]):
        rows = (("size", repr(found["size"])), ("stride", repr(found["stride"])))
        raise Mismatch(f"{step}: there are not as many strides as sizes.", rows)
    return plain(found)


@gate
def test_made(programs_run, cube, rng):
    """A tensor has its size, stride and offset, keeps its list, and gives nested lists."""
    compare(programs_run, [cube], [start(rng)], [([7, 8], (), (), 1)], [([5], (2, 0), (1, 1), 0)])


def test_numbers_and_slices(programs_run, cube):
    """Numbers and slices, from the end too, one after another and on views of views."""
    compare(
        programs_run,
        [cube, index(1), index(-1), index(2, 3), index(0, -2, 4), index((1, 3, 1)), index(-3)],
        [cube, index((1, None, 1), (None, None, 2)), index(WHOLE, 2), index((None, -1, 1), 1, 3)],
        [
            cube,
            index((-2, 99, 1), (3, 1, 1)),
            index((0, 0, 1)),
            index(WHOLE, (-99, -1, 3), (1, 5, 3)),
        ],
        [cube, index(1), ("index", 1, [(1, None, 2)]), ("index", 2, [1, -1]), ("index", 2, [-2])],
        [cube, index((1, 3, 1), (1, 4, 2)), ("index", 1, [-1, -1, (None, None, 3)])],
    )


def test_none_and_ellipsis(programs_run, cube):
    """`None`, `...` and both, in every place; and the index of no parts."""
    compare(
        programs_run,
        [
            cube,
            index(None),
            index("..."),
            index(),
            index("...", 3),
            index(1, "..."),
            index("...", None),
        ],
        [
            cube,
            index(2, "...", (1, 3, 1)),
            index(None, 1, None, "...", None),
            index(0, 1, 2, "..."),
        ],
        [
            cube,
            index("...", 0, 1, 2),
            index(None, "...", None),
            index(1, None, (0, 2, 1), "...", 4),
        ],
        [cube, index(0, 0, 0), ("index", 1, ["..."]), ("index", 1, [None]), ("index", 1, [])],
    )


def test_errors(programs_run, cube):
    """An `IndexError` for too many parts and for a number out of range; steps are positive."""
    compare(
        programs_run,
        [cube, index(3), index(-4), index(0, 4), index(0, 0, -6), index(0, 0, 4), index(2, -4, -5)],
        [
            cube,
            index(0, 0, 0, 0),
            index("...", 0, 0, 0, 0),
            index(0, 0, None, 0, 0),
        ],
        [cube, index((None, None, 0)), index((None, None, -1)), index(WHOLE, (3, 0, -2))],
        [cube, index(0, 0, 0), ("index", 1, [0]), ("index", 1, [WHOLE]), index((3, 3, 1), 0, 5)],
        [cube, index((2, 2, 1)), ("index", 1, [0]), ("write", 0, [9], 1), index("...", None, 5)],
    )


def test_transpose_and_expand(programs_run, cube):
    """Dimensions change places; sizes of 1 are repeated with stride 0, and nothing else is."""
    row = index((1, 2, 1), WHOLE, (2, 3, 1))
    compare(
        programs_run,
        [cube, ("transpose", 0, 0, 2), ("transpose", 1, 1, -1), ("transpose", 0, -2, -3)],
        [cube, ("transpose", 0, 1, 1), row, ("transpose", 2, 0, 1), ("index", 3, [1, 0])],
        [cube, row, ("expand", 1, 6, 4, 1), ("expand", 1, 1, 4, 3), ("expand", 1, 2, 3, 4, 2)],
        [
            cube,
            row,
            ("expand", 1, 2, 4, 3),
            ("transpose", 2, 0, 2),
            ("index", 3, [1, (1, 4, 1), 1]),
        ],
        [cube, ("expand", 0, 3, 4, 5), ("expand", 0, 2, 3, 4, 5), ("index", 0, [0, 0, 0])],
        [cube, ("expand", 0, 6, 4, 5), ("expand", 0, 4, 5), ("expand", 0, 3, 4, 1), row],
        [cube, row, ("expand", 1, 4), ("expand", 1, 2, 5, 2), ("expand", 1, 0, 4, 1)],
        [cube, row, ("expand", 1, 4, 1), ("expand", 1, 1, 4)],
        [cube, index(0, 0, 0), ("expand", 1, 3), ("expand", 1, 2, 2), ("expand", 1)],
    )


def permuted_programs():
    """Return programs that view small permuted tensors under every size that has a new cut.

    Where the first step and the last cell are those of a view, the cells between may not be.
    """
    programs = []
    for size, sizes in (
        ((2, 2, 2), [(8,), (4, 2), (2, 4)]),
        ((2, 3, 4), [(24,), (6, 4), (2, 12), (4, 6), (12, 2), (3, 8)]),
    ):
        for order in permutations(range(3)):
            stride, step = [0, 0, 0], 1
            for dim in order:
                stride[dim] = step
                step *= size[dim]
            cells = list(range(100, 100 + step))
            programs.append(
                [(cells, size, tuple(stride), 0), *(("view", 0, *new) for new in sizes)]
            )
    return programs


def test_view(programs_run, cube, rng):
    """Views of plain, permuted, expanded and cut-out tensors; a `ValueError` where none is possible."""
    plain_cube = (list(range(60)), (3, 4, 5), (20, 5, 1), 0)
    spread = (list(range(400)), (6, 4), (48, 4), 5)
    wide = (list(range(300)), (4, 6), (50, 1), 0)
    deep = (list(range(300)), (2, 3, 4), (100, 4, 1), 2)
    ones = (list(range(99)), (1, 3, 1, 4), (50, 8, 7, 2), 3)
    compare(
        programs_run,
        *permuted_programs(),
        [
            plain_cube,
            ("view", 0, 60),
            ("view", 0, 12, 5),
            ("view", 0, 2, 1, 6, 5),
            ("view", 0, 60, 1),
        ],
        [
            plain_cube,
            index((1, 3, 1)),
            ("view", 1, 8, 5),
            ("view", 1, 40),
            ("view", 0, 61),
            ("view", 0),
        ],
        [cube, ("view", 0, 12, 5), ("view", 0, 3, 2, 2, 5), ("view", 0, 60), ("view", 0, 3, 20)],
        [
            cube,
            ("view", 0, 1, 6, 2, 5, 1),
            ("view", 0, 4, 3, 5),
            ("view", 0, 4, 15),
            ("view", 0, 12, 1, 5),
        ],
        [spread, ("view", 0, 2, 3, 2, 2), ("view", 0, 24), ("view", 0, 3, 2, 4), ("view", 0, 8, 3)],
        [wide, ("view", 0, 2, 3, 4), ("view", 0, 3, 2, 4), ("view", 0, 4, 3, 2), ("view", 0, 8, 3)],
        [deep, ("view", 0, 2, 12), ("view", 0, 2, 6, 2), ("view", 0, 24), ("view", 0, 2, 1, 12)],
        [ones, ("view", 0, 12), ("view", 0, 3, 4), ("view", 0, 2, 6), ("view", 0, 3, 2, 1, 2)],
        [plain_cube, index(0, 0, 0), ("view", 1, 1, 1), ("view", 1), ("view", 2), ("view", 1, 2)],
        [plain_cube, index((2, 2, 1)), ("view", 1, 5, 0), ("view", 1, 0), ("view", 1, 1)],
        [
            plain_cube,
            index(1, 1, (0, 1, 1)),
            ("expand", 1, 6),
            ("view", 2, 2, 3),
            ("view", 2, 6, 1),
        ],
        [
            plain_cube,
            index(0, (0, 1, 1)),
            ("expand", 1, 4, 5),
            ("view", 2, 20),
            ("view", 2, 2, 2, 5),
        ],
    )


def test_reshape(programs_run, cube):
    """`reshape` is a view where there is one, and a copy with a list of its own where not."""
    compare(
        programs_run,
        [
            cube,
            ("reshape", 0, 12, 5),
            ("reshape", 0, 60),
            ("reshape", 0, 5, 4, 3),
            ("reshape", 0, 59),
        ],
        [cube, ("reshape", 0, 2, 30), ("write", 0, [0, 0, 0], -1), ("write", 1, [1], -2)],
        [
            cube,
            ("reshape", 0, 2, 6, 5),
            ("write", 1, [1, 2], -3),
            index((1, 1, 1)),
            ("reshape", 3, 3, 0),
        ],
        [cube, ("transpose", 0, 0, 1), ("reshape", 1, 12, 5), ("reshape", 1, 4, 3, 5)],
    )


def test_writes(programs_run, cube):
    """Every view sees what is written through another, numbers and tensors, expanded where needed."""
    compare(
        programs_run,
        [
            cube,
            index(1),
            ("write", 1, [(1, 3, 1), -1], 7),
            ("transpose", 0, 0, 2),
            ("write", 0, [0], 8),
        ],
        [cube, ("view", 0, 12, 5), ("write", 1, [(None, None, 5)], -4)],
        [cube, index(2, (0, 2, 1)), ("copy", 0, [1, (2, 4, 1)], 1), ("copy", 0, [0, (0, 2, 1)], 1)],
        [
            cube,
            index(0, 0),
            ("copy", 0, [(1, None, 1)], 1),
            index(0, WHOLE, (0, 1, 1)),
            ("copy", 0, [2], 3),
        ],
        [cube, ("write", 0, ["..."], 3), index(1, 2, 3), ("write", 2, [], 4), ("copy", 0, [0], 2)],
        # the source overlaps the target: it is read first
        [cube, index(0, (0, 3, 1)), ("copy", 0, [0, (1, 4, 1)], 1)],
        [cube, index(0, 0, (0, 4, 1)), ("copy", 0, [0, 0, (1, 5, 1)], 1)],
        [cube, index(1, 1, (1, 5, 1)), ("copy", 0, [1, 1, (0, 4, 1)], 1)],
        [cube, index(1, (0, 2, 1)), ("copy", 0, [2], 1), ("copy", 0, [(0, 2, 1), (0, 3, 1)], 1)],
    )


def test_random_programs(programs_run, rng):
    """Sixty random programs of eight steps each."""
    compare(programs_run, *(random_program(rng, 8) for _ in range(60)))
