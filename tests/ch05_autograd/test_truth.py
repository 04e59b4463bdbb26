"""Autograd control: the reference solutions agree with torch on many more cases than grading asks."""

import contextlib
import functools

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint as torch_checkpoint

from grader.ch05_autograd import programs, test_gradients, test_graph_report, test_route
from grader.ch05_autograd import test_train_step as steps
from grader.ch05_autograd.probes.checkpoints import run_part
from grader.ch05_autograd.probes.edits import EDITS, edit
from grader.ch05_autograd.probes.graphs import build_all, build_graph
from grader.ch05_autograd.probes.training import OPTIMIZERS, Watched
from grader.course.course import Course, read_reference
from grader.submission.program import slice_program
from tests import ROOT

CHAPTER = Course(ROOT).chapter("ch05_autograd")


@functools.cache
def reference(exercise):
    """Return an exercise's reference solution."""
    names = [known.id for known in CHAPTER.exercises]
    namespace = {}
    for label, source in slice_program(exercise, names, read_reference(CHAPTER)).parts:
        # a chapter's example that comes along because a name is the same may need another one
        with contextlib.suppress(Exception if label != exercise else ()):
            exec(compile(source, label, "exec", dont_inherit=True), namespace)
    return namespace[exercise]


@pytest.fixture
def rng():
    return torch.Generator().manual_seed(5)


def number(rng, low, high):
    return int(torch.randint(low, high, (), generator=rng))


def test_flags_are_torchs(rng):
    kinds = ["add", "greater", "view", "clone", "detach", "requires_grad_", "add_"]
    modes = ["no_grad", "enable_grad", "inference_mode"]
    for case in range(400):
        program = programs.random_program(rng, 4 + case % 20, kinds, modes)
        found = reference("predict_flags")(program)
        assert found == programs.run(program), programs.as_text(program)


def test_nested_modes_are_torchs(rng):
    mine = {flag: reference("grad_mode")(flag) for flag in (True, False)}
    theirs = {True: torch.enable_grad, False: torch.no_grad}

    def walk(depth, choose, make):
        seen = [torch.is_grad_enabled()]
        for _ in range(2):
            with make[choose()] if make is mine else make[choose()]():
                seen.append(torch.is_grad_enabled())
                if depth:
                    seen += walk(depth - 1, choose, make)
            seen.append(torch.is_grad_enabled())
        return seen

    for seed in range(30):
        found = []
        for make in (mine, theirs):
            own = torch.Generator().manual_seed(seed)
            found.append(walk(3, lambda own=own: bool(number(own, 0, 2)), make))
        assert found[0] == found[1]


def test_decorated_generators_are_torchs(rng):
    """torch's own decorator does the same for whatever is sent, thrown in, or closed."""

    def body():
        log = []
        for step in range(9):
            try:
                log.append((step, torch.is_grad_enabled(), (yield log[-1:])))
            except KeyError:
                log.append((step, torch.is_grad_enabled(), "caught"))
        return log

    for seed in range(40):
        found = []
        for decorate in (reference("grad_mode")(False), torch.no_grad()):
            own = torch.Generator().manual_seed(seed)
            made, seen = decorate(body)(), []
            try:
                seen.append(next(made))
                while True:
                    torch.set_grad_enabled(bool(number(own, 0, 2)))
                    action = number(own, 0, 12)
                    if action < 9:
                        seen.append(made.send(action))
                    elif action < 11:
                        seen.append(made.throw(KeyError))
                    else:
                        seen.append(made.close())
                        break
                    seen.append(torch.is_grad_enabled())
            except StopIteration as stop:
                seen.append(stop.value)
            finally:
                torch.set_grad_enabled(True)
            found.append(seen)
        assert found[0] == found[1]


def test_routes_by_detached_copies(rng):
    kinds = ["linear", "tanh", "tied", 0, "norm", "fixed", "linear"]
    numbers = torch.randn(len(kinds), 5, 4, generator=rng, dtype=torch.float64)
    x, cotangent = torch.randn(2, 3, 4, generator=rng, dtype=torch.float64)
    for _ in range(25):
        frozen = {at for at in range(len(kinds)) if number(rng, 0, 3) == 0}
        cut = {at for at in range(len(kinds)) if number(rng, 0, 5) == 0}
        y, grads, x_grad = test_route.expected(kinds, numbers, x, cotangent, frozen, cut)
        layers = test_route.build_layers(kinds, numbers)
        parameters = list(torch.nn.ModuleList(layers).parameters())
        before = [p.requires_grad for p in parameters]
        own = x.clone().requires_grad_()
        got = reference("route")(layers, own, frozen, cut)
        if got.requires_grad:
            got.backward(cotangent)
        assert torch.allclose(got, y)
        assert [p.requires_grad for p in parameters] == before
        for mine, theirs in zip(
            [*(p.grad for p in parameters), own.grad], [*grads, x_grad], strict=True
        ):
            assert (mine is None) == (theirs is None)
            assert theirs is None or torch.allclose(mine, theirs)


KINDS = ["mul", "add", "matmul", "sigmoid", "exp", "view", "expand", "rows", "slice", "index"]
KINDS += ["chunk", "one_of", "sum", "max", "norm", "detach", "double"]
MORE = ["row", "spread", "both", "halves", "write", "into", "column", "sort", "where"]


def test_reports_are_what_hooks_saw(rng):
    numbers = torch.rand(test_graph_report.LEAVES, 4, 4, generator=rng) + 0.5
    for case in range(120):
        recipe = test_graph_report.random_recipe(rng, [*KINDS, "cubed"], 1 + case % 14)
        counts, leaves, saved = test_graph_report.expected(recipe, numbers)
        output, named = build_graph(recipe, numbers)
        report = reference("graph_report")(output)
        found = sorted(at for at, leaf in named.items() for one in report["leaves"] if one is leaf)
        assert (report["nodes"], found, report["saved_bytes"]) == (counts, leaves, saved), recipe


def test_gradients_are_the_engines(rng):
    numbers = torch.rand(4, 4, 4, generator=rng, dtype=torch.float64) + 0.1
    compared = 0
    for case in range(200):
        kinds = [kind for kind in [*KINDS, *MORE] if kind not in ("row", "rows")]
        recipe = test_gradients.random_recipe(rng, kinds, 1 + case % 12)
        made = build_all(recipe, numbers)
        inputs = [one for one in made if one.requires_grad]
        cotangent = torch.randn(made[-1].shape, generator=rng, dtype=made[-1].dtype)
        expected = torch.autograd.grad(
            made[-1], inputs, cotangent, allow_unused=True, retain_graph=True
        )
        found = reference("gradients")(made[-1], cotangent, inputs)
        for mine, theirs in zip(found, expected, strict=True):
            assert (mine is None) == (theirs is None), recipe
            if theirs is not None:
                assert mine.shape == theirs.shape and mine.dtype == theirs.dtype
                scale = float(theirs.abs().max()) + 1
                assert torch.allclose(mine, theirs, 1e-8, 1e-10 * scale, equal_nan=True), recipe
                compared += 1
    assert compared > 500


def test_cross_entropy_is_torchs(rng):
    for rows, classes, scale in ((1, 1, 1.0), (3, 2, 5.0), (8, 11, 1.0), (5, 3, 100.0)):
        z = scale * torch.randn(rows, classes, generator=rng, dtype=torch.float64)
        target = torch.randint(classes, (rows,), generator=rng)
        z.requires_grad_()
        mine, theirs = reference("cross_entropy")(z, target), F.cross_entropy(z, target)
        assert torch.allclose(mine, theirs)
        first = [torch.autograd.grad(one, z)[0] for one in (mine, theirs)]
        assert torch.allclose(*first)
        if scale < 10:
            loss = functools.partial(reference("cross_entropy"), target=target)
            assert torch.autograd.gradcheck(loss, z)
            assert torch.autograd.gradgradcheck(loss, z)


def test_checkpoint_is_torchs(rng):
    def torchs(part, *args, **kwargs):
        return torch_checkpoint(part, *args, use_reentrant=False, **kwargs)

    for case in range(24):
        weights = list(torch.randn(2, 4, 4, generator=rng, dtype=torch.float64))
        x = torch.randn(5, 4, generator=rng, dtype=torch.float64)
        form = (None, "tuple", "dict")[case % 3]
        settings = (case % 2 * 0.25, 1 + case % 4, form, case % 5 != 0, 1 + case % 2)
        mine = run_part(reference("checkpoint"), weights, x, *settings)
        theirs = run_part(torchs, weights, x, *settings)
        assert mine["form"] == theirs["form"]
        assert mine["calls"] == theirs["calls"]
        for name in ("values", "grads", "random"):
            for one, other in zip(mine[name], theirs[name], strict=True):
                assert (one is None) == (other is None)
                assert other is None or torch.allclose(one, other)


def test_steps_are_those_of_the_whole_batch(rng):
    for case in range(12):
        weights = list(torch.randn(1, 4, 6, generator=rng, dtype=torch.float64))
        weights += list(torch.randn(1, 6, 3, generator=rng, dtype=torch.float64))
        optimizer = list(OPTIMIZERS)[case % 3]
        batches = []
        for _ in range(3):
            sizes = [number(rng, 1, 7) for _ in range(number(rng, 1, 5))]
            padding = [number(rng, 0, size + 1) for size in sizes]
            padding[0] = 0
            batches.append(steps.pieces(rng, sizes, padding))
        losses, parameters = steps.whole(weights, optimizer, batches)
        model = Watched(*weights)
        made = OPTIMIZERS[optimizer](model.parameters())
        for batch, loss, after in zip(batches, losses, parameters, strict=True):
            found = reference("train_step")(model, made, batch)
            assert found == pytest.approx(loss, rel=1e-9)
            for mine, theirs in zip(model.parameters(), after, strict=True):
                assert torch.allclose(mine, theirs, 1e-7, 1e-8)


def test_words_by_counter_and_bytes(rng):
    for _ in range(40):
        edits = [list(EDITS)[number(rng, 0, len(EDITS))] for _ in range(5)]
        tensors = [torch.randn(3, 4, generator=rng) for _ in edits]
        before = [(t._version, t.shape, t.dtype, t.numpy().tobytes()) for t in tensors]

        def run(tensors=tensors, edits=edits):
            for tensor, name in zip(tensors, edits, strict=True):
                edit(name, tensor)

        words = reference("watch_edits")(tensors, run)
        for word, tensor, (version, *content) in zip(words, tensors, before, strict=True):
            same = content == [tensor.shape, tensor.dtype, tensor.numpy().tobytes()]
            counted = tensor._version != version
            assert word == ("counted" if counted else "unchanged" if same else "silent")


def test_evaluating_restores_any_model(rng):
    for _ in range(20):
        model = torch.nn.Sequential(
            torch.nn.BatchNorm1d(3), torch.nn.Sequential(torch.nn.BatchNorm1d(3)), torch.nn.ReLU()
        )
        for module in model.modules():
            module.training = bool(number(rng, 0, 2))
        x = torch.randn(4, 3, generator=rng)
        model(x)
        modes = [module.training for module in model.modules()]
        state = {name: value.clone() for name, value in model.state_dict().items()}
        with contextlib.suppress(LookupError), reference("evaluating")(model):
            assert not any(module.training for module in model.modules())
            model.train()(x)
            raise LookupError
        assert [module.training for module in model.modules()] == modes
        assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
        assert torch.is_grad_enabled()
