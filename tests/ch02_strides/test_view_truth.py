"""Views, overlap, sharing and moving: the reference solutions agree with torch and brute force."""

import copy
import itertools
from functools import partial

import pytest
import torch

from grader import draw_int, draw_one
from grader.ch02_strides.strided_programs import expected, plain, random_program
from grader.ch02_strides.view_inputs import layouts, reached, values
from grader.course.course import Course
from grader.inside.probe import load_probes
from tests import ROOT, references

reference = partial(references.reference, "ch02_strides")
SEEDS = range(3)


@pytest.fixture(params=SEEDS)
def rng(request):
    return torch.Generator().manual_seed(request.param)


def some_layout(rng, shape):
    """Return random numbers of that shape in a random layout."""
    found = layouts(values(rng, shape), rng)
    return draw_one(rng, found)[1]


def test_channels_last_is_torchs(rng):
    to_channels_last = reference("to_channels_last")
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    for _ in range(100):
        shape = [draw_int(rng, 1, 4) for _ in range(draw_int(rng, 4, 5))]
        x = some_layout(rng, shape)
        got = to_channels_last(x)
        assert torch.equal(got, x)
        assert got.is_contiguous(memory_format=formats[x.dim()])
        assert got.stride() == torch.empty(shape, memory_format=formats[x.dim()]).stride()


def test_windows_are_convolutions(rng):
    windows = reference("windows")
    for _ in range(25):
        pairs = [(draw_int(rng, 1, 3), draw_int(rng, 1, 3)) for _ in range(3)]
        kernel, stride, dilation = pairs
        padding = (draw_int(rng, 0, 2), draw_int(rng, 0, 2))
        x = some_layout(rng, (2, 3, 8, 7)).double()
        weight = values(rng, (4, 3, *kernel)).double()
        seen = windows(x, kernel, stride, dilation, padding)
        got = torch.einsum("ncijab,ocab->noij", seen, weight)
        # whole numbers far below 2**53: sums are exact in any order
        assert torch.equal(
            got, torch.conv2d(x, weight, stride=stride, dilation=dilation, padding=padding)
        )
        if not any(padding):
            assert seen.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def test_overlaps_is_brute_force(rng):
    overlaps = reference("overlaps")
    for _ in range(1500):
        size = tuple(
            draw_int(rng, 0 if draw_int(rng, 0, 9) == 0 else 1, 4)
            for _ in range(draw_int(rng, 0, 5))
        )
        stride = tuple(draw_int(rng, 0 if draw_int(rng, 0, 5) == 0 else 1, 30) for _ in size)
        cells = [
            sum(map(int.__mul__, index, stride)) for index in itertools.product(*map(range, size))
        ]
        assert overlaps(size, stride) == (len(set(cells)) < len(cells)), (size, stride)


def test_overlaps_agrees_where_torch_is_sure(rng):
    overlaps = reference("overlaps")
    sure = 0
    for _ in range(600):
        size = tuple(draw_int(rng, 0, 4) for _ in range(draw_int(rng, 1, 4)))
        order = torch.randperm(len(size), generator=rng).tolist()
        stride, step = [0] * len(size), 1
        for dim in order:
            stride[dim] = step if draw_int(rng, 0, 4) else 0
            step *= size[dim]
        if 0 in size:
            continue  # torch says "yes" of an empty tensor with a stride of 0
        x = torch.empty_strided(size, stride, device="meta")
        said = torch._debug_has_internal_overlap(x)
        if said != 2:
            sure += 1
            assert overlaps(size, tuple(stride)) == bool(said), (size, stride)
    assert sure > 100


def some_views(rng):
    """Return views of two storages, of several dtypes."""
    homes = [values(rng, (6, 8)), values(rng, (6, 8))]
    views = []
    for _ in range(draw_int(rng, 2, 6)):
        x = draw_one(rng, homes)
        x = draw_one(rng, (x, x.view(torch.int16), x.view(torch.float64), x.view(torch.uint8)))
        first, left = draw_int(rng, 0, 5), draw_int(rng, 0, x.shape[1] - 1)
        x = x[
            first : first + draw_int(rng, 0, 3) : draw_int(rng, 1, 2), left :: draw_int(rng, 1, 4)
        ]
        views.append(x.T if draw_int(rng, 0, 1) else x)
    return views


def raw(x):
    """Return the bytes of the elements, in row-major order."""
    return x.clone(memory_format=torch.contiguous_format).view(-1).view(torch.uint8)


def test_alias_graph_is_what_writes_show(rng):
    alias_graph = reference("alias_graph")
    for _ in range(40):
        views = some_views(rng)
        graph = alias_graph(views)
        for i, j in itertools.combinations(range(len(views)), 2):
            one, other = copy.deepcopy([views[i], views[j]])
            shares = torch._C._is_alias_of(one, other)
            assert ((i, j) in graph) == shares
            memory = torch.empty(0, dtype=torch.uint8).set_(other.untyped_storage())
            memory.zero_()
            ones = one.clone().view(-1) if one.is_contiguous() else one.clone()
            ones = torch.full((one.numel() * one.itemsize,), 255, dtype=torch.uint8)
            one.copy_(ones.view(one.dtype).view(one.shape))
            written = int((raw(other) == 255).sum())
            assert written == graph.get((i, j), 0)


def test_pack_views_keeps_all_and_no_more(rng):
    pack_views = reference("pack_views")
    for _ in range(20):
        views = some_views(rng)
        buffers, layouts = pack_views(views)
        made = [
            torch.empty(0, dtype=dtype).set_(buffers[which].untyped_storage(), offset, size, stride)
            for which, dtype, size, stride, offset in layouts
        ]
        for x, y in zip(views, made, strict=True):
            assert x.shape == y.shape and torch.equal(raw(x), raw(y))
        for i, j in itertools.combinations(range(len(views)), 2):
            meet = torch._C._is_alias_of(views[i], views[j])
            common = len(reached(views[i]) & reached(views[j])) if meet else 0
            together = layouts[i][0] == layouts[j][0]
            assert (len(reached(made[i]) & reached(made[j])) if together else 0) == common
        whole = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in views}
        assert sum(map(len, buffers)) <= sum(whole.values()) + sum(x.nbytes for x in views)


def test_transpose_in_place_is_t(rng):
    transpose_in_place = reference("transpose_in_place")
    for rows, columns in [(draw_int(rng, 0, 12), draw_int(rng, 0, 12)) for _ in range(25)]:
        x = torch.randperm(rows * columns, generator=rng).view(rows, columns)
        right, address = x.t().clone(memory_format=torch.contiguous_format), x.data_ptr()
        got = transpose_in_place(x)
        assert torch.equal(got, right)
        assert got.is_contiguous()
        assert got.data_ptr() == address


def test_strided_tensor_runs_programs_as_torch_does(rng):
    strided = reference("StridedTensor")
    probe = load_probes(Course(ROOT).chapter("ch02_strides").probes)["programs_run"]

    class Student:
        StridedTensor = strided

    for _ in range(100):
        program = random_program(rng, 8)
        (found,) = probe.run(Student, [program])
        assert [plain(x) for x in found] == expected(program)


def test_random_programs_are_worth_running(rng):
    kinds, errors = set(), 0
    for _ in range(60):
        program = random_program(rng, 8)
        kinds |= {step[0] for step in program[1:]}
        found = expected(program)
        errors += sum(isinstance(x, str) for x in found)
    assert kinds == {"index", "transpose", "expand", "view", "reshape", "write"}
    assert 0 < errors < 60 * 8 // 3
