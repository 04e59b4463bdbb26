"""What in a program's text is a reason for a person to look, and what is none."""

import pytest

from grader.box.fork import Fork
from grader.building.graders import ready_probes
from grader.course.answers import Role, read_answers
from grader.course.cells import Cell, Kind
from grader.course.course import Course, read_reference
from grader.course.reference import reference_answer
from grader.course.rules import parse_rule
from grader.course.tried import Kind as TriedKind
from grader.course.tried import read_tried
from grader.evidence.outcome import Outcome
from grader.submission.evasion import LONGEST, Found, evasions
from grader.submission.program import Program, slice_program
from grader.submission.reasons import Reason
from grader.verdict.grading import ExerciseGrader
from tests import ROOT

COURSE = Course(ROOT)


def reasons(source, *rules, given=""):
    parts = (("given", given), ("answer", source))
    program = Program("answer", parts, frozenset({"given"}))
    return {one.reason for one in evasions(program, map(parse_rule, rules))}


LOOK = [
    ('getattr(t, "vi" + "ew")', {Reason.PIECES, Reason.NAME}),
    ('vars(torch)["fin" + "fo"]', {Reason.NAMESPACE, Reason.PIECES}),
    ('name = "re" + "shape"\nbox.append(getattr(x, name)(size))', {Reason.PIECES, Reason.NAME}),
    ('walk = getattr(module, f"named_{kind}")', {Reason.NAME}),
    ('getattr(module, "".join(["state", "_dict"]))()', {Reason.NAME}),
    ('getattr(torch, "ofnif"[::-1])', {Reason.PIECES, Reason.NAME}),
    ("return_ = getattr(torch.Tensor, op)(x)", {Reason.MODULE_NAME}),
    ('operator.methodcaller("register_" + "hook", f)(h)', {Reason.PIECES, Reason.NAME}),
    ('nn.Module.__dict__["state_dict"](module)', {Reason.NAMESPACE}),
    ("fx.Transformer.__mro__[1]", {Reason.NAMESPACE}),
    ("AR = vars(dist)['all_reduce']", {Reason.NAMESPACE}),
    ("m = torch.distributed\nvars(m)['all_reduce']", {Reason.NAMESPACE}),
    ("[v for k, v in globals().items()]", {Reason.NAMESPACE}),
    ("import _struct", {Reason.IMPORT}),
    ("from pickle import unpack", {Reason.CODE}),
    ("import sys\nsys.modules['struct']", {Reason.IMPORT}),
    ("__import__('str' + 'uct')", {Reason.IMPORT, Reason.PIECES}),
    ('import importlib\nimportlib.import_module("num" + "py")', {Reason.IMPORT, Reason.PIECES}),
    ("__import__('gc').get_objects()", {Reason.OBJECTS}),
    ("import subprocess", {Reason.PROCESSES}),
    ("from concurrent.futures import ThreadPoolExecutor", {Reason.PROCESSES}),
    ("import threading\nthreading.Thread(target=f).start()", {Reason.PROCESSES}),
    ("from threading import Thread", {Reason.PROCESSES}),
    ("import threading as t\nrun(t)", {Reason.PROCESSES}),
    ("import os\nos.fork()", {Reason.PROCESSES}),
    ("import sys\nf = sys._getframe()\nf.f_back.f_locals", {Reason.FRAMES}),
    ("import inspect\ninspect.currentframe()", {Reason.FRAMES}),
    ("try:\n    f()\nexcept E as e:\n    e.__traceback__.tb_frame", {Reason.FRAMES}),
    ("import gc\nfor o in gc.get_objects(): o._events.clear()", {Reason.OBJECTS}),
    ("import ctypes\nctypes.pythonapi", {Reason.MEMORY}),
    ("import ctypes\n(ctypes.c_char * 8).from_address(id(x))", {Reason.MEMORY}),
    ("open('/proc/self/mem', 'wb')", {Reason.MEMORY}),
    ("exec(code)", {Reason.CODE}),
    ("class A:\n    def exec(self): pass\nexec(code)", {Reason.CODE}),
    ("def f():\n    exec = 1\nexec(code)", {Reason.CODE}),
    ('vars(torch)["a" + "d" + ("d" + "cm") + "ul"]', {Reason.NAMESPACE, Reason.PIECES}),
    ("run = eval", {Reason.CODE}),
    ("import pickle\npickle.loads(b'G' + data + b'.')", {Reason.CODE}),
    ("f.__code__ = g.__code__", {Reason.CODE}),
    ("with torch._C._DisableTorchDispatch(): pass", {Reason.WATCH}),
    ("torch._C.DisableTorchFunction()", {Reason.WATCH}),
    ("torch._C._linalg.linalg_matmul(a, b)", {Reason.WATCH}),
    (
        "from torch.utils._python_dispatch import _disable_current_modes\n_disable_current_modes()",
        {Reason.WATCH},
    ),
    ("class T(torch.Tensor):\n    def __torch_dispatch__(cls): pass", {Reason.WATCH}),
    ("torch.equal = lambda a, b: True", {Reason.PATCH}),
    ("setattr(torch, 'equal', f)", {Reason.PATCH}),
    ("import grader.inside.tripwire", {Reason.GRADER}),
    ("from grader.inside import serve", {Reason.GRADER}),
]


@pytest.mark.parametrize(("source", "expected"), LOOK)
def test_a_reason_to_look(source, expected):
    assert reasons(source) == expected


HONEST = [
    "from __future__ import annotations",
    "from grader import grade, show_storage",
    "getattr(module, name)",
    "getattr(torch, case['dtype'])",
    'getattr(self, f"layer{i}")(x)',
    'setattr(module, f"{name}_{i}", value)',
    "for n in names + ['weight']:\n    getattr(node, n)",
    'print("a" + "b", "=" * 40)',
    "module.__dict__, vars(module), type(self).__mro__",
    "import threading\nlock, own = threading.Lock(), threading.local()",
    "import gc\ngc.collect()",
    "import pickle\npickle.dump(x, file)\ny = pickle.loads(data)",
    "import ctypes\nctypes.string_at(flat.data_ptr(), 8)",
    "import ctypes\nwhere = x.data_ptr()\n(ctypes.c_char * 8).from_address(where)",
    "import re, inspect, traceback\nre.compile('x')\ninspect.signature(f)\ntraceback.format_exc()",
    "f.__code__.co_varnames",
    "def run(compile, model):\n    model.eval()\n    return compile(model)",
    "torch.backends.mkldnn.enabled = False\ntorch._dynamo.config.verbose = True",
    "raise error.with_traceback(error.__traceback__)",
    "import importlib\nimportlib.import_module('math')",
]


@pytest.mark.parametrize("source", HONEST)
def test_no_reason_to_look(source):
    assert reasons(source) == set()


def test_a_name_of_ones_own_is_no_built_in():
    assert reasons("def exec(x):\n    return x\ny = exec(1)") == set()


def test_a_name_that_the_card_lists_is_a_reason_however_it_is_asked_for():
    source = 'name = "state_dict"\ngetattr(module, name)()'
    assert reasons(source, "torch.nn.Module.state_dict") == {Reason.RULE_NAME}
    assert reasons(source) == set()
    assert reasons("__import__('numpy')", "import:numpy") == {Reason.IMPORT}


def test_where_struct_is_forbidden_a_cast_of_memory_reads_bits_as_it_does():
    source = 'memoryview(bits.to_bytes(8, "little")).cast("d")[0]'
    assert reasons(source, "import:struct") == {Reason.BITS}
    assert reasons(source) == set()
    assert reasons("import typing\ntyping.cast(int, x)", "import:struct") == set()
    assert reasons("from typing import cast\ncast(int, x)", "import:struct") == set()


def test_given_code_is_no_students():
    assert reasons("x = 1", given="exec('1')") == set()
    assert reasons("vars(parts)", given="import torch.nn as parts") == {Reason.NAMESPACE}


def test_text_that_is_no_python_gives_no_reason():
    assert reasons("exec(") == set()


def test_text_that_is_too_deep_to_be_read_is_a_reason():
    assert reasons("x = y" + ".z" * 20_000) == {Reason.DEEP}


@pytest.mark.parametrize(
    "source",
    ["x = " + " + ".join(["'ab'"] * 900) + " + f(y)", "x = y" + ".z" * 900, "a = 1\r\rb = 2\x0c"],
)
def test_text_that_is_odd_or_slow_to_read_is_read(source):
    assert reasons(source) == set()
    assert Reason.CODE in reasons(f"{source}\nexec('1')")


def test_a_line_is_quoted_and_cut():
    assert str(Found(Reason.CODE, "exec(`x`)")) == "Code is made while the code runs: `exec('x')`."
    long = str(Found(Reason.CODE, "x" * 1000))
    assert len(long) < LONGEST + 60 and "…" in long


def answers_of(chapter, exercise):
    """Yield the role, the name and the text of each known and tried answer."""
    yield "reference", "reference", reference_answer(chapter, exercise)
    for answer in read_answers(chapter, exercise):
        if answer.role is not Role.BLOCKED:
            yield answer.role.value, answer.name, answer.source
    for one in read_tried(chapter, exercise):
        if one.kind is not TriedKind.CHEAT:
            yield f"tried {one.kind.value}", one.name, one.source


@pytest.mark.parametrize("chapter", COURSE.chapters(), ids=lambda chapter: chapter.id)
def test_no_honest_answer_is_a_reason_to_look(chapter):
    names = [exercise.id for exercise in chapter.exercises]
    cells = read_reference(chapter)
    for exercise in chapter.exercises:
        asked_for = ExerciseGrader(chapter, exercise, {})._asked_for
        for role, name, source in answers_of(chapter, exercise):
            own = [
                Cell(Kind.SOLUTION, cell.label, source) if cell.label == exercise.id else cell
                for cell in cells
            ]
            found = evasions(slice_program(exercise.id, names, own), exercise.off_limits)
            said = [str(one) for one in found if one.reason not in asked_for]
            assert not said, (exercise.id, role, name)


def grade(exercise, source):
    chapter = COURSE.chapter_of(exercise)
    probes = ready_probes(chapter)
    grader = ExerciseGrader(chapter, chapter.exercise(exercise), probes)
    return grader.grade(grader.attempt_with(source), lambda: Fork(probes), 0, lambda: Fork(probes))


REFERENCE = reference_answer(
    COURSE.chapter("ch01_formats"), COURSE.chapter("ch01_formats").exercise("decode")
)


def test_a_person_is_asked_to_look_and_no_point_is_lost():
    verdict = grade("decode", f"import subprocess\n{REFERENCE}")
    assert verdict.outcome is Outcome.PASSED and verdict.points == verdict.max_points
    assert verdict.review == "A thread or a process is started: `import subprocess`."


def test_a_note_stands_beside_others():
    cheat = (
        "def decode(*args):\n    view = getattr(torch.ones(1), 'vi' + 'ew')\n    return view(-1)\n"
    )
    verdict = grade("decode", cheat)
    assert verdict.outcome is Outcome.BLOCKED
    first, second = "Used what is off limits: ", "getattr(torch.ones(1), 'vi' + 'ew')"
    assert verdict.review.startswith(first) and second in verdict.review
    assert verdict.review.count(second) == 1


def test_an_untouched_stub_is_none():
    stub = COURSE.chapter("ch01_formats").exercise("decode").stub
    assert grade("decode", stub).review == ""
