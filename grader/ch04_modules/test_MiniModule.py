"""Checks of `MiniModule`: each runs one script on it and on `nn.Module`, and compares."""

import inspect

import torch
from torch import nn

from grader import Mismatch, assert_holds, compared, gate
from grader.ch04_modules.probes.mini_module import SCRIPTS


def compare(mini_script, script):
    """Compare what the script finds, step by step; tensors as lists."""
    got = mini_script.ask(script).value["found"]
    expected = SCRIPTS[script](nn.Module)
    compared(got, expected)
    if not isinstance(got, list | tuple) or len(got) != len(expected):
        raise Mismatch("The script gave something else.", (("got", repr(got)[:200]),))
    for number, (one, other) in enumerate(zip(got, expected, strict=True)):
        if _plain(one) != _plain(other):
            what = f"With your class as `base`, number {number + 1} of what this returns differs."
            rows = (
                ("nn.Module", _difference(other, one)),
                ("MiniModule", _difference(one, other)),
                ("what ran", inspect.getsource(SCRIPTS[script]).rstrip()),
            )
            raise Mismatch(what, rows)


def _plain(value):
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    # the base class alone has another name
    return {"MiniModule": "Module"}.get(value, value) if isinstance(value, str) else value


def _difference(value, other):
    """Show a value; of a dict only what differs."""
    value, other = _plain(value), _plain(other)
    if isinstance(value, dict) and isinstance(other, dict):
        value = {key: item for key, item in value.items() if other.get(key) != item}
    return repr(value)[:200]


@gate
def test_own_class(mini_script):
    """A subclass registers a parameter; and the class is not made from PyTorch's."""
    got = mini_script.ask("registers").value
    assert_holds(not got["is torch's"], "MiniModule descends from nn.Module.")
    assert_holds("scale" in got["found"][0]["parameters"], "A parameter was not registered.")


def test_registers(mini_script):
    """Parameters and children are registered, each object once, in order, by dotted names."""
    compare(mini_script, "registers")


def test_slips_through(mini_script):
    """Lists, dicts and plain tensors are ordinary attributes, whatever they hold."""
    compare(mini_script, "slips through")


def test_reassigns(mini_script):
    """A new parameter or child replaces what had the name; None empties it; else a TypeError."""
    compare(mini_script, "reassigns")


def test_reads(mini_script):
    """What is missing is an AttributeError that names it; class attributes and properties work."""
    compare(mini_script, "reads")


def test_deletes(mini_script):
    """`del` takes a name out of wherever it is; a missing one is an AttributeError."""
    compare(mini_script, "deletes")


def test_too_early(mini_script):
    """Before `__init__`: no parameter, no child, no endless recursion."""
    compare(mini_script, "too early")


def test_buffers(mini_script):
    """A buffer stays a buffer when it is assigned; it may be None and nothing but a tensor."""
    compare(mini_script, "buffers")


def test_modes(mini_script):
    """`train` and `eval` reach every module and return the first."""
    compare(mini_script, "modes")


def test_applies(mini_script):
    """`apply` comes to the children first; `zero_grad` leaves None; a call calls `forward`."""
    compare(mini_script, "applies")


def test_copies(mini_script):
    """A deep copy is a module of its own, with the same sharing."""
    compare(mini_script, "copies")
