"""Whose call it is: what the student's text calls, what a library calls for them, what a probe calls."""

import functools
import operator
import sys
import threading

import pytest
import torch

from grader.inside.origin import (
    begin,
    entered,
    from_student,
    is_made_by_student,
    line_of_cell,
    written_by_student,
)
from grader.inside.probe import Student, each


def ask(question):
    """Return a function that says what `question` answers about its caller's frame."""
    return lambda *_: question(sys._getframe(1))


def test_a_test_is_a_student():
    assert ask(from_student)()
    assert ask(written_by_student)()


@pytest.mark.parametrize("begun", [sorted, lambda values, key: list(map(key, values))])
def test_what_has_no_frame_leaves_the_callers(begun):
    answers = []
    begun([1, 2], key=lambda _: answers.append(ask(written_by_student)()) or 0)
    assert answers == [True, True]


def test_a_library_calls_for_who_called_it():
    asked = ask(from_student), ask(written_by_student)
    answers = []
    torch.nn.Identity().apply(lambda _: None)
    hook = torch.nn.Identity()
    hook.register_forward_hook(functools.partial(lambda f, *_: answers.append(f()), asked[0]))
    hook(1)
    assert answers == [True]
    # functools is Python's own file, and it calls `ask` itself
    cached = functools.cached_property(asked[1])
    cached.__set_name__(None, "x")
    assert cached.__get__(type("Some", (), {})()) is False
    assert functools.cached_property(asked[0]).func() is True


def test_a_probe_calls_for_itself():
    assert each(ask(from_student), [()]) == [False]


@pytest.mark.parametrize("question", [from_student, written_by_student])
def test_a_thread_is_of_who_began_it(question):
    answers = []
    asked = ask(question)
    thread = threading.Thread(target=lambda: answers.append(asked()))
    thread.start()
    thread.join()
    bare = threading.Thread(target=lambda f=asked: answers.append(f()))
    bare.start()
    bare.join()
    assert answers == [True, True]


def names(text):
    """Return the names that a cell defines."""
    found = {"__name__": "__main__"}
    exec(compile(text, "<cell>", "exec"), found)
    return found


MADE = """
import functools, torch
def plain(x): return x
@torch.no_grad()
def decorated(x): return x
@functools.cache
def cached(x): return x
partial = functools.partial(plain, 1)
class Made: pass
instance = Made()
class Square(torch.autograd.Function): pass
applied = Square.apply
"""


@pytest.mark.parametrize(
    "name", ["plain", "decorated", "cached", "partial", "Made", "instance", "applied"]
)
def test_made_by_the_student(name):
    assert is_made_by_student(names(MADE)[name])


@pytest.mark.parametrize(
    "value",
    [
        torch.nn.Module.state_dict,
        torch.nn.Module,
        torch.softmax,
        functools.partial(torch.softmax, dim=0),
        operator.methodcaller("view", 1),
    ],
)
def test_not_made_by_the_student(value):
    assert not is_made_by_student(value)


def test_what_stands_in_for_an_answer_answers_for_it():
    """A probe's own calls are taken for the student's where it called what they did not write."""
    begin()
    assert each(ask(from_student), [()]) == [False]
    _ = Student(names("def f(): pass")).f
    assert each(ask(from_student), [()]) == [False]
    _ = Student(names("import operator\nf = operator.methodcaller('view')")).f
    assert each(ask(from_student), [()]) == [True]
    begin()
    assert each(ask(from_student), [()]) == [False]


class Unwilling:
    """What does not like to be looked at."""

    def __getattr__(self, name):
        raise ValueError(name)

    def __call__(self):
        """Be called."""


def test_an_object_may_refuse_to_be_looked_at():
    begin()
    entered(Unwilling())
    assert each(ask(from_student), [()]) == [False]


def test_the_line_of_a_cell_that_runs():
    found = []
    text = "def f():\n    note()\n\nx = 1\nf()\n"
    names = {"__name__": "__main__", "note": lambda: found.append(line_of_cell(sys._getframe()))}
    # in a thread nothing stands below: what runs the tests may be text of `__main__` as well
    thread = threading.Thread(target=exec, args=(compile(text, "<cell>", "exec"), names))
    thread.start()
    thread.join()
    assert found == [("cell", 5)]
