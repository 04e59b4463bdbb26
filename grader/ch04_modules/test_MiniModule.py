"""Checks of `MiniModule`: each runs one script on it and on `nn.Module`, and compares line by line."""

import ast

from torch import nn

from grader import Mismatch, assert_holds, compared, gate, points
from grader.ch04_modules.probes.mini_module import lines, outcomes


def compare(mini_script, script):
    """Compare what each line comes to; show the first that differs, and the lines that lead there."""
    got = mini_script.ask(script).value["found"]
    expected, text = outcomes(script, nn.Module), lines(script)
    compared(got, expected)
    if not isinstance(got, list) or len(got) != len(expected):
        raise Mismatch("The script gave something else.", (("got", repr(got)[:200]),))
    for number, (one, other) in enumerate(zip(got, expected, strict=True)):
        if one != other:
            rows = (
                ("after", "\n".join(filter(_does_something, text[:number]))),
                ("this line", text[number]),
                ("with nn.Module", _said(text[number], other)),
                ("with MiniModule", _said(text[number], one)),
            )
            raise Mismatch("A line does something else than with `nn.Module`.", rows)


def _does_something(line):
    """Say whether a line is more than an expression that is looked at; a call is."""
    [statement] = ast.parse(line).body
    looked_at = ast.Name | ast.Attribute | ast.ListComp | ast.Tuple | ast.Compare
    if not isinstance(statement, ast.Expr):
        return True
    inner = statement.value
    if isinstance(inner, ast.Compare):
        inner = inner.left  # `net.eval() is net` does something, too
    if isinstance(inner, ast.Call):
        return not isinstance(inner.func, ast.Name)
    return not isinstance(inner, looked_at | ast.Constant)


def _said(line, outcome):
    """Return in words what a line came to."""
    if isinstance(outcome, str) and outcome.startswith("raises "):
        return outcome
    if not isinstance(ast.parse(line).body[0], ast.Expr):
        return "no error"
    return repr(outcome)


@gate
def test_own_class(mini_script):
    """A subclass registers a parameter; and the class is not made from PyTorch's."""
    got = mini_script.ask("registers").value
    assert_holds(not got["is torch's"], "MiniModule descends from nn.Module.")
    names = got["found"][lines("registers").index("[name for name, _ in net.named_parameters()]")]
    assert_holds(isinstance(names, list) and "scale" in names, "A parameter was not registered.")


@points(4.5)
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
