"""Does a rule of what is off limits fire? Each is really broken, in a fork, in every way that there is.

Functions are called through each module that has them and by a name put together at run time,
operators with a valid call, modules by one of their functions. The way is that of an answer: a
program is loaded, a probe calls it, the verdict's interview hears what tripped.
"""

from __future__ import annotations

import sys
import tomllib
import unittest
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import BuiltinFunctionType, FunctionType, ModuleType
from unittest.mock import patch

import torch

from grader.box.fork import Fork
from grader.course.course import Chapter
from grader.course.rules import Rule, RuleKind
from grader.evidence.outcome import Ended
from grader.inside.homes import Found, homes, look_around, resolve
from grader.inside.probe import Probe, Student
from grader.inside.process.budget import Budget
from grader.submission.program import Program
from grader.verdict.interview import Interview

CALLS = "sample_calls.toml"
"""Valid calls of operators that torch has no samples of, in a chapter's folder: `mm = "torch.mm(…)"`."""

_USE = "use_what_is_off_limits"


def silent(chapter: Chapter, rule: Rule) -> list[str]:
    """Return the uses of what a rule forbids that do not trip it, as Python text."""
    found = list(_uses(chapter, rule))
    return [use for use in found if not _trips(use, rule)] or ([] if found else [_NO_USE])


_NO_USE = "there is no way known to use it"


def _trips(use: str, rule: Rule) -> bool:
    """Run a use of what a rule forbids as an answer is run, watched by this rule alone."""
    interview = Interview(Fork({_PROBE.name: _PROBE}, Budget()), (rule,), seed=1)
    source = "\n".join(f"    {line}" for line in use.splitlines())
    text = f"import importlib, threading, torch\n\ndef {_USE}():\n{source}\n"
    try:
        interview.load(Program(_USE, ((_USE, text),)))
        _ = interview.ask(_PROBE, {}).raised
    except Ended:
        return False
    finally:
        interview.close()
    return bool(interview.tripped)


def _use(student: Student) -> None:
    getattr(student, _USE)()


_PROBE = Probe("use", _use, (), frozenset())


def _uses(chapter: Chapter, rule: Rule) -> Iterator[str]:
    """Yield ways to break a rule, each the body of a function."""
    look_around()
    match rule.kind:
        case RuleKind.ALLOWED:
            yield "torch.linalg.qr(torch.eye(2))"
        case RuleKind.CAST:
            yield f"torch.full((2,), 1.3).to(getattr(torch, '{rule.last}'))"
            yield f"torch.tensor([1.3], dtype={rule.name})"
        case RuleKind.IMPORT:
            yield from _uses_of_import(rule.name)
        case RuleKind.ATEN:
            yield from _uses_of_operator(chapter, rule.name)
        case RuleKind.FUNCTION | RuleKind.DIRECT:
            found = resolve(rule.name)
            if found is not None:
                yield from _uses_of_found(rule, found)


def _uses_of_import(name: str) -> Iterator[str]:
    fetched = f"module = importlib.import_module('{name[:2]}' + '{name[2:]}')"
    found = resolve(f"{name}.__name__")
    if found is None:
        yield fetched
        return
    function = next(n for n in dir(found.owner) if not n.startswith("_"))
    yield f"{fetched}\ngetattr(module, '{function}')"
    yield f"import sys\nvars(sys.modules['{name}'])"


def _uses_of_operator(chapter: Chapter, name: str) -> Iterator[str]:
    name, _, only = name.partition(".")
    for overload in getattr(torch.ops.aten, name).overloads():
        if not only or overload == only:
            yield f"getattr(torch.ops.aten, '{name}').{overload}()"
    name = f"{name}.{only}".strip(".")
    if call := _declared(chapter).get(name) or _sampled(name):
        yield call
    else:
        yield f"raise LookupError('no sample of aten:{name}: write one into {CALLS}')"


def _uses_of_found(rule: Rule, found: Found) -> Iterator[str]:
    owner, _, last = rule.name.rpartition(".")
    fetched = f"owner = {_expression(owner)}\nfound = getattr(owner, '{last[:1]}' + '{last[1:]}')"
    value = found.value
    if isinstance(value, torch.memory_format):
        shape = (1,) * (5 if "3d" in last else 4)
        yield f"{fetched}\ntorch.ones({shape}).contiguous(memory_format=found)"
    elif isinstance(value, ModuleType):
        yield f"{fetched}\n{_use_of_module(value)}"
    elif isinstance(value, type) and issubclass(value, torch.autograd.Function):
        yield f"{fetched}\nfound.apply(*(None,) * 9)"
        yield f"{fetched}\nfound.forward()"
    else:
        yield f"{fetched}\n{_CALL}"
        yield f"{fetched}\nthread = threading.Thread(target=lambda: found())\nthread.start()\nthread.join()"
        for module, name in homes(value):
            yield f"found = vars(importlib.import_module('{module.__name__}'))['{name}']\n{_CALL}"
    if isinstance(value, type) and value.__flags__ & _CAN_HAVE_HEIRS:
        yield f"{fetched}\nclass Heir(found): pass"


_CALL = "found()"

_CAN_HAVE_HEIRS = 1 << 10
"""A flag of a type in C: Py_TPFLAGS_BASETYPE."""


def _expression(dotted: str) -> str:
    """Return how to get at an owner, whatever of it is a module."""
    parts = dotted.split(".")
    # the longest name that Python imports, then attributes: torch.ops.aten is no module for it
    longest = max(n for n in range(1, len(parts) + 1) if ".".join(parts[:n]) in sys.modules)
    return ".".join([f"importlib.import_module('{'.'.join(parts[:longest])}')", *parts[longest:]])


def _use_of_module(module: ModuleType) -> str:
    if isinstance(module, torch._ops._OpNamespace):
        return "found.anything"
    for name, value in vars(module).items():
        own = getattr(value, "__module__", "") or ""
        is_code = isinstance(value, type | FunctionType | BuiltinFunctionType)
        if is_code and own.startswith(module.__name__):
            return f"getattr(found, '{name}')()"
    return "raise LookupError('the module defines nothing')"


@cache
def _declared(chapter: Chapter) -> dict[str, str]:
    path = chapter.graders / CALLS
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


@cache
def _sampled(name: str) -> str:
    """Return a valid call of an operator, made of torch's own samples; "" if it has none."""
    number = _infos().get(name)
    return "" if number is None else _SAMPLED.format(number=number)


_SAMPLED = """\
from torch.testing._internal.common_methods_invocations import op_db
op = op_db[{number}]
for _, sample in zip(range(20), op.sample_inputs("cpu", torch.float32)):
    op(sample.input, *sample.args, **sample.kwargs)"""


_EXPECTTEST = ModuleType("expecttest")
_EXPECTTEST.TestCase = unittest.TestCase  # type: ignore[attr-defined]


@cache
def _infos() -> dict[str, int]:
    """Return where torch's samples of an operator stand, by the operator's name."""
    # torch's tests want expecttest for a class that samples have no use for, and they forbid all
    # who come after to set flags of backends
    sys.modules.setdefault("expecttest", _EXPECTTEST)
    with patch("torch.backends.disable_global_flags"):
        op_db = import_module("torch.testing._internal.common_methods_invocations").op_db
    found: dict[str, int] = {}
    for number, info in enumerate(op_db):
        if torch.float32 in info.dtypes:
            found.setdefault(info.name, number)
            found.setdefault(info.aten_name or info.name, number)
    return found
