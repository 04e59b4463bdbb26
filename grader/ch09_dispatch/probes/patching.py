"""The probe of `patched`: runs a few lines in a fork, and returns what they noted."""

import threading
import warnings
from contextlib import suppress

import torch

from grader import apart, probe

OPERATORS = ("aten::sin", "aten::sin.out", "aten::cos", "aten::add.Tensor", "road::halved")
"""Whose tables must be as they were."""


def own_operator():
    """Define `road::halved` with a kernel for the CPU; return the library that holds it."""
    library = torch.library.Library("road", "FRAGMENT")
    library.define("halved(Tensor x) -> Tensor")
    library.impl("halved", lambda x: x / 2, "CPU")
    return library


def tables():
    """Return the tables and registrations of the operators that the lines use, as text."""
    return [
        torch._C._dispatch_dump(name) + torch._C._dispatch_dump_table(name) for name in OPERATORS
    ]


def notes_of(patched, lines):
    """Run the lines with `patched` and helpers; return what they noted.

    The lines may use: note(value); noting(name), a kernel that notes its name and returns what the
    original returns; unchanged(), whether all tables are as at the beginning; in_thread(function).
    """
    held = own_operator()
    notes, before = [], tables()

    def noting(name):
        def kernel(original, *args, **kwargs):
            notes.append(name)
            return original(*args, **kwargs)

        return kernel

    def in_thread(function):
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()

    given = {
        "aten": torch.ops.aten,
        "halved": torch.ops.road.halved,
        "in_thread": in_thread,
        "nn": torch.nn,
        "note": notes.append,
        "noting": noting,
        "patched": patched,
        "suppress": suppress,
        "torch": torch,
        "unchanged": lambda: tables() == before,
        "x": torch.tensor([0.0, 1.0]),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns once that a kernel of its own is replaced
        try:
            exec(lines, given)
        except Exception as error:
            error.add_note(lines)  # a student reads where it happened
            raise
    held._destroy()
    return notes


@probe
def patching(student, programs):
    """Return what each program noted. Each runs in a process of its own, whose tables end with it."""
    return [apart(lambda lines=lines: notes_of(student.patched, lines)) for lines in programs]
