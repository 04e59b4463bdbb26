"""Schemas: what the exercises say of them, and their solutions, against PyTorch itself."""

import os
from functools import partial
from itertools import count
from random import Random

import torch

from grader.ch09_dispatch.overloads import choice, random_call
from grader.ch09_dispatch.probes.keeping_promises import kernel_of, promises
from grader.ch09_dispatch.probes.reading_schemas import as_data
from grader.ch09_dispatch.promises import random_case
from grader.ch09_dispatch.schemas import as_text, of_build, random_schema, told_by_torch
from tests import references

reference = partial(references.reference, "ch09_dispatch")
NUMBERS = count()


def test_random_schemas_are_torchs():
    random = Random(1)
    for _ in range(500):
        said = random_schema(random)
        parsed = torch._C.parse_schema(as_text(said))
        for one, other in zip(parsed.arguments, said["arguments"], strict=True):
            assert (one.name, one.kwarg_only) == (other["name"], other["keyword_only"])
            assert repr(one.default_value) == repr(other["default"])
            assert one.is_write == other["written"]


def test_read_schema():
    read, random = reference("read_schema"), Random(2)
    for _ in range(1000):
        said = random_schema(random)
        assert as_data(read(as_text(said, random.choice("'\"")))) == said


def test_read_schema_of_the_build():
    read = reference("read_schema")
    for text in of_build(Random(3), 1200):
        assert as_data(read(text)) == told_by_torch(text)


def choice_of_torch(call):
    """Return what the dispatcher chooses. What is defined stays: taking it away may abort."""
    space = f"truth_{next(NUMBERS)}"
    library = torch._C._dispatch_library("DEF", space, "")
    KEPT.append(library)
    for schema in call.schemas:
        library.define(schema, "")
    arguments, keywords = call.values
    try:
        return torch._C._jit_resolve_packet(f"{space}::pick", *arguments, **keywords)
    except RuntimeError:
        return None


KEPT = []


def wrong_choices(count):
    """Return calls for which our rule, or the reference, chooses otherwise than the dispatcher."""
    resolve, random, wrong = reference("resolve"), Random(4), []
    for _ in range(count):
        call = random_call(random)
        try:
            name = resolve(call.schemas, *call.values)
        except TypeError:
            name = None
        found = {name, choice(call), choice_of_torch(call)}
        wrong += [(call, found)] if len(found) > 1 else []
    return wrong


def test_resolve():
    """In a child that ends at once: the operators that it defines must not be taken away."""
    reference("resolve")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            wrong = wrong_choices(800)
            print(wrong[:3])
            status = bool(wrong)
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class Student:
    def broken_promises(self, *arguments, **keywords):
        return reference("broken_promises")(*arguments, **keywords)


def test_broken_promises():
    random = Random(5)
    for _ in range(100):
        case = random_case(random)
        got = promises.run(
            Student(),
            f"op{case.schema}",
            case.names,
            case.kernel.split("; "),
            case.arguments,
            case.keywords,
        )
        assert got == {"broken": case.broken, "calls": 1}, case


def test_opcheck_agrees_on_what_it_sees():
    """`opcheck` finds every operator that shares or writes; ours says at least as much."""
    random, silent = Random(6), 0
    for number in range(6):
        case = random_case(random)
        library = torch.library.Library(f"checked_{number}", "DEF")
        library.define(f"op{case.schema}")
        kernel = kernel_of(case.names, case.kernel.split("; "), [])
        library.impl("op", kernel, "CompositeExplicitAutograd")
        operator = getattr(torch.ops, f"checked_{number}").op.default
        told = torch.library.opcheck(
            operator, tuple(case.arguments), test_utils="test_schema", raise_exception=False
        )
        library._destroy()
        silent += told["test_schema"] == "SUCCESS"
        assert case.broken or told["test_schema"] == "SUCCESS" or "Outputs" in str(told), case
    assert 0 < silent < 6
