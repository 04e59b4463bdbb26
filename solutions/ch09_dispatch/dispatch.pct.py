# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] chapter="ch09_dispatch"
# title: Beneath an operator
# summary: >-
#   You wrote `x + 1`. Which of more than a thousand CPU kernels ran, who chose it, and what happened
#   on the way? In this chapter you read an operator's schema, choose its overload, walk the
#   dispatcher's table, and do what a kernel does before its loop begins. Then you get in between,
#   and at the end you build what sounds impossible: a device that does not exist.
# preload: [functorch.compile, torch._subclasses.schema_check_mode, torch.testing._internal.optests]

# %% [markdown]
# ## How to work
#
# Each exercise has a card, a few cells to read and run, and one cell to write: the one that
# raises `NotImplementedError`. The cell after it grades what you wrote, as often as you like.
#
# Where a cell calls `predict(...)`, write your guess in place of the dots before you run it.
# Nobody grades a guess.

# %%
import ast
import functools
import itertools
import math
import re
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import reduce
from importlib.resources import files
from textwrap import shorten
from typing import Any

import numpy as np
import torch
import torch.utils.backend_registration
from torch import nn
from torch.library import _scoped_library
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from grader import grade, hint, predict, solution, watch_memory, watch_ops, written

aten = torch.ops.aten

# %% [markdown] sitting="schemas"
# question: What does an operator promise?
# reached: >-
#   Its schema says what goes in, what is written, and what may share memory. Most operators keep
#   that promise; the others you find by running them.

# %% [markdown]
# ## What an operator is
#
# `torch.add(x, 1)`, `x + 1` and `x.add_(1)` are Python. Below them is something that has no Python in
# it: an **operator**. An operator is a name and a **schema**, one line that says what goes in, what
# comes out, and what happens to memory. Kernels are registered for operators, one for each kind of
# device. Gradient formulas belong to operators, and so do the rules of `vmap` and the nodes of a
# compiled graph. Several operators may share a name. Each of them is an **overload** of it, and the
# name with all its overloads is a **packet**.

# %%
packet = torch.ops.aten.add
operator = packet.Tensor
print(f"{type(packet).__name__:>16}: {packet}")
print(f"{type(operator).__name__:>16}: {operator}")
print(f"{type(operator._schema).__name__:>16}: {operator._schema}")

# %% [markdown]
# Read the schema from left to right:
#
# ```text
# aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
# ────  ─── ────── ─────────────────────────  ─  ──────────────     ──────
#  │     │    │        type and name          │  with a default    results
#  │     │    overload                        behind it: by keyword only
#  │     name
#  namespace
# ```
#
# A `Scalar` is a number of any kind: `int`, `float`, `bool` or `complex`. Other types that you will
# meet: `SymInt`, an `int` that may be a symbol while a graph is traced; `Tensor?`, a tensor or `None`;
# `Tensor[]`, a list of tensors; `int[2]`, a list of two numbers, for which one number may stand.
#
# Draw: show_bars({f"`{kind}`": sum(re.search(r"[( ]" + re.escape(kind) + r" \w",
# re.sub(r"(?<=Tensor)\([^)]*\)", "", str(torch._C._get_schema(*(f"{name}.".split(".")[:2]))))) is
# not None for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")) for kind
# in ("Scalar", "Tensor[]", "Tensor?", "SymInt", "int[2]")}, "operators") | How many of ATen's
# 3,110 operators have an argument of each of these types.

# %% [markdown]
# ## From a line of YAML to what you call
#
# Somebody wrote that line by hand, in `aten/src/ATen/native/native_functions.yaml`. A copy comes with
# every PyTorch, in the package `torchgen`, which makes the C++ of it. Three entries of this file, and
# the entry of `derivatives.yaml` that has the gradient:

# %%
ATEN = files("torchgen") / "packaged/ATen/native/native_functions.yaml"
entries = ATEN.read_text().split("\n- func: ")[1:]
for entry in entries:
    if entry.startswith(("add.Tensor(", "add_.Tensor(", "add.out(")):
        lines = entry.rstrip().splitlines()
        few = ("structured", "variants")
        shown = (
            lines[1:]
            if entry.startswith("add.T")
            else [x for x in lines if x.strip().startswith(few)]
        )
        print(f"- func: {lines[0]}", *shown, sep="\n")

derivatives = (files("torchgen") / "packaged/autograd/derivatives.yaml").read_text()
for entry in derivatives.split("\n- name: ")[1:]:
    if entry.startswith("add.Tensor("):
        print(f"\n- name: {entry.rstrip()}")

# %% [markdown]
# | from | `torchgen` makes | and it is |
# |---|---|---|
# | `func` | `at::_ops::add_Tensor::call` | the way into the dispatcher, in C++ |
# | `variants: function` | `at::add` in C++, `torch.add` in Python | a binding: it parses arguments, and calls the line above |
# | `variants: method` | `at::Tensor::add`, `Tensor.add` | the same as a method |
# | `dispatch` | registrations | which kernel belongs to which key: the next sitting |
# | `structured` | the functional form, the in-place form and `out=` | three operators of one kernel |
# | `derivatives.yaml` | a kernel for autograd | it notes a backward function and hands the call on |
#
# What was made of the first entry lies among PyTorch's headers. The schema is in it as text.

# %%
header = (files("torch") / "include/ATen/ops/add_ops.h").read_text()
for line in header.split("struct TORCH_API")[1].splitlines():
    if "name" in line or "schema_str" in line or " call(" in line:
        print(line.strip().removeprefix("static "))

# %% [markdown]
# A Python binding may stand for several entries. In the schemas above, `out` is either required or not
# there. In `torch.add` it is optional: `add.Tensor` and `add.out` have become one signature. Its parser
# shows it when the arguments do not fit.
#
# And where do the bindings live? The generated functions belong to one object, from which `torch` takes them
# over. The generated methods are those of `TensorBase`, a class of C++. On top of it stands `torch.Tensor`, a
# class written in Python, with methods that nobody generates, such as `backward`. (Other languages have
# bindings of their own to the same operators; TorchSharp, for instance, is for C#.)

# %%
try:
    torch.add("a")
except TypeError as error:
    print(str(error).split("expected ")[1])
print("torch.add is that object's:", torch.add is torch._C._VariableFunctions.add)
print("Tensor.add comes from      ", torch.Tensor.add.__objclass__)
print("Tensor.backward comes from ", torch.Tensor.backward.__module__)

# %% [markdown]
# ## Two lists of operators
#
# PyTorch keeps schemas in two places. The **dispatcher** has a table of kernels for each operator.
# **TorchScript**, the older compiler, had a whole language to run, and everything that a line of it may
# do is an operator there: appending to a list, adding two strings, taking a length. The dispatcher
# knows none of these. TorchScript knows all of the dispatcher's.
#
# **Predict.** The yaml file has 2584 entries. Does the dispatcher know more operators of the namespace
# `aten` than that, fewer, or as many?


# %%
def full_name(schema):
    return f"{schema.name}.{schema.overload_name}".rstrip(".")


def known_to_the_dispatcher():
    names = torch._C._dispatch_get_all_op_names()
    return sum(name.startswith("aten::") for name in names)


predict(..., known_to_the_dispatcher)

# %%
dispatched = set(torch._C._dispatch_get_all_op_names())
scripted = [one for one in torch._C._jit_get_all_schemas() if one.name.startswith("aten::")]
print("entries in native_functions.yaml:", len(entries))
print("operators of the dispatcher:     ", known_to_the_dispatcher())
print("schemas of TorchScript:          ", len(scripted))
for schema in scripted:
    if full_name(schema) in ("aten::append.t", "aten::add.str", "aten::len.t"):
        print("  TorchScript alone:", schema)

# %% [markdown]
# Draw: show_bars({name: sum(("out" in one.partition(".")[2]) == has for one in dispatched if
# one.startswith("aten::") and one.removeprefix("aten::") not in {entry.partition("(")[0] for entry
# in entries}) for name, has in (("forms with `out`", True), ("others", False))}, "operators") |
# What the dispatcher has and the yaml file has not.
#
# The dispatcher's 526 others were generated too, most of them: forms with `out=` of operators for which
# nobody wrote one. `torch.ops.aten.add` looks into TorchScript's list. So its packet has 16 overloads,
# and the one called `str` adds strings.

# %%
print(len(packet.overloads()), packet.overloads())
print(packet("under", "torch"))

# %% [markdown] exercise="read_schema"
# title: Read a schema
# minutes: 35
# difficulty: 2
# points: 9
# short: true
# prerequisites: []
# teaches: >-
#   what the parts of a schema say: overload, keyword-only arguments, defaults, and above all the letters:
#   which arguments are written, and which results may share memory with which argument.
# leaves out: >-
#   types of TorchScript alone, such as `Dict(str, t)` and lists that are changed themselves; defaults
#   that are words of the yaml file, such as `Mean`.
# off limits: [torch._C.parse_schema, torch._C._get_schema, torch._C._jit_get_all_schemas, torch._C._jit_get_schemas_for_operator, torch.library.Library, torch.library.define, torch.library.custom_op, torch._C._dispatch_library, "import:torchgen"]
# forbids: PyTorch's own parsers of schemas, and defining an operator to have one parsed

# %% [markdown]
# The letters in brackets behind `Tensor` are the important part. They stand for memory.
#
# | written | says |
# |---|---|
# | `Tensor(a!) self` | the call may write to `self`: that is the `!`. Its memory is called `a` |
# | `-> Tensor(a!)` | the result is the very argument with `a!` |
# | `Tensor(a) self` and `-> Tensor(a)` | nothing is written. The result may share `self`'s memory |
# | `Tensor(a -> *) self` | in set `a` before the call; after it, in the set of all that may be anything |
# | `-> Tensor(a)[]` | each tensor of the list may share the memory `a` |
# | `-> Tensor(a\|b)` | it may share with `a` or with `b` |
# | nothing | nothing is written; the result shares nothing |

# %%
for operator in (
    torch.ops.aten.add_.Tensor,
    torch.ops.aten.reshape.default,
    torch.ops.aten.split.Tensor,
    torch.ops.aten.sort.values,
):
    print(operator._schema)

# %% [markdown]
# Mind the word *may*. **Predict.** By its schema, the result of `reshape` shares memory with `self`. Does
# it, if a transposed matrix is flattened? Write `True` or `False`.


# %%
def shares_memory():
    x = torch.arange(6).view(2, 3).t()
    flat = x.reshape(6)
    return flat.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


predict(..., shares_memory)

# %% [markdown]
# Draw: (lambda x: show_storage(x=x, flat=x.reshape(6),
# turned_flat=x.t().reshape(6)))(torch.arange(6).view(2, 3)) | One schema, and both happens:
# `x.reshape(6)` is a view, `x.t().reshape(6)` has storage of its own.
#
# Your reader is to return these two classes. Their comments say what goes where.


# %%
@dataclass
class Argument:
    """One argument of a schema, or one of its results."""

    name: str  # "" for a result without a name
    type: str  # without the letters: "Tensor[]", "SymInt[2]?"
    before: set[str]  # its letters; the empty set where there are none
    after: set[str]  # those behind an arrow in the brackets; without an arrow, the same as before
    written: bool  # whether a "!" stands there
    keyword_only: bool = False
    required: bool = True  # whether a caller must give it: it has no default
    default: Any = None  # the default, as Python has it


@dataclass
class Schema:
    """What one line says, and what follows for whoever calls the operator."""

    name: str  # with the namespace, if one stands there: "aten::split"
    overload: str  # "Tensor"; "" where there is none
    arguments: list[Argument]
    results: list[Argument]  # all of them are as the defaults above: not keyword-only, required
    writes: set[str]  # the names of the arguments that may be written
    shares: set[tuple[int, str]]  # (number of a result, name of an argument): may share memory


# %% [markdown]
# For example, of `split.Tensor` above, `writes` is empty and `shares` is `{(0, "self")}`: there is one
# result, a list.
#
# **Write `read_schema(text)`**, which returns the `Schema` of one line, as PyTorch prints it or as the
# yaml file has it.
#
# - Everything behind a single `*` among the arguments is keyword-only.
# - A default is one of `None`, `True`, `False`, a number, a string in `'` or `"`, or a list of numbers.
#   Strings may hold any characters, commas, brackets and arrows too; a backslash in one means what it
#   means in Python. The default of a `float` is a float: `float p=1` has the default `1.0`. The default
#   of a `Scalar` is what stands there. Where the type ends in a length, as in `int[2]`, one number as
#   the default stands for a list of that length: `int[2] stride=1` has the default `[1, 1]`.
# - A result may share memory with an argument if a letter, or the `*`, stands at both. At the argument it
#   may stand before or behind the arrow; results have no arrows.
# - `-> ()` has no results, `-> Tensor` has one, `-> (Tensor values, Tensor indices)` has two.
#
# <details><summary>Hint 1: where to cut</summary>
#
# A comma may stand in a list, `[1, 1]`, and in a string. An arrow may stand in brackets, `(a -> *)`.
# Put strings aside first, with `re.sub` and a function that keeps them. Then the results begin behind
# the only arrow that follows a closing bracket.
#
# </details>
# <details><summary>Hint 2: one argument</summary>
#
# A word, then perhaps letters in brackets, then any of `[`, `]`, `?` and digits, then perhaps a name,
# then perhaps `=` and a default. One regular expression says that, and `re.finditer` walks along.
#
# </details>
# <details><summary>Hint 3: defaults and letters</summary>
#
# `ast.literal_eval` reads every default. Of what is in the brackets, `partition("->")` makes the two
# sides, and `re.findall(r"[a-z*]", side)` the set of one side.
#
# </details>


# %% solution="read_schema"
def read_schema(text: str) -> Schema:
    """Return the parts of a schema, which arguments it writes, and what may share memory.

    text: one schema, such as "aten::t(Tensor(a) self) -> Tensor(a)"
    """
    ### BEGIN SOLUTION
    # A string may hold all that has a meaning elsewhere, so it is put aside first.
    strings = []

    def aside(match: re.Match) -> str:
        strings.append(match[0])
        return f"${len(strings) - 1}"

    text = re.sub(r""""(\\.|[^"\\])*"|'(\\.|[^'\\])*'""", aside, text)
    # Arrows of letters follow a letter; the arrow of the results follows the closing bracket.
    head, results = re.split(r"\)\s*->", text, maxsplit=1)
    name, arguments = head.split("(", 1)
    name, _, overload = name.partition(".")

    def default_of(type_: str, default: str) -> Any:
        value = ast.literal_eval(strings[int(default[1:])] if default[0] == "$" else default)
        length = re.search(r"\[(\d+)\]$", type_)
        if length and not isinstance(value, list):
            return [value] * int(length[1])  # one number stands for each of the list
        return float(value) if type_ == "float" else value

    def read(part: str) -> list[Argument]:
        found, keyword_only = [], False
        for item in re.finditer(
            r"(?P<star>\*)|(?P<word>[\w.]+)(\((?P<letters>[^)]*)\))?(?P<suffix>[][?\d]*)"
            r"(\s+(?P<name>\w+))?(\s*=\s*(?P<default>\[[^]]*\]|[^\s,]+))?",
            part,
        ):
            if item["star"]:
                keyword_only = True
                continue
            # The letters stand inside the type: Tensor(a!)[] is a list of tensors that are written.
            type_ = item["word"] + item["suffix"]
            before, arrow, after = (item["letters"] or "").partition("->")
            sets = [set(re.findall(r"[a-z*]", side)) for side in (before, after)]
            found.append(
                Argument(
                    name=item["name"] or "",
                    type=type_,
                    before=sets[0],
                    after=sets[1] if arrow else sets[0],
                    written="!" in before,
                    keyword_only=keyword_only,
                    required=item["default"] is None,
                    default=item["default"] and default_of(type_, item["default"]),
                )
            )
        return found

    takes, gives = read(arguments), read(results)
    return Schema(
        name=name,
        overload=overload,
        arguments=takes,
        results=gives,
        writes={one.name for one in takes if one.written},
        shares={
            (number, one.name)
            for number, result in enumerate(gives)
            for one in takes
            if result.before & (one.before | one.after)
        },
    )
    ### END SOLUTION


# %% grade="read_schema"
grade("read_schema")

# %% [markdown]
# ## Who checks the promise?
#
# PyTorch believes schemas. Autograd keeps a tensor for backward without a copy, and looks at its version
# counter later: who writes has to say so. A compiler may swap two calls that do not write. Functionalization
# knows by the `!` which calls to rewrite. When you call an operator, nobody looks whether its kernel does
# what the schema says.
#
# **Predict.** `native_batch_norm` in training takes `running_mean`, and its schema has no `!` at all. After
# a call: is `running_mean` another than before, and what is its `_version`? Write a pair, such as
# `(True, 1)`.


# %%
def after_batch_norm():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    mean, variance = torch.zeros(2), torch.ones(2)
    torch.ops.aten.native_batch_norm(x, None, None, mean, variance, True, 0.1, 1e-5)
    return bool((mean != 0).any()), mean._version


print(torch.ops.aten.native_batch_norm.default._schema)
predict(..., after_batch_norm)

# %% [markdown]
# Draw: show_cells({f"`{name}`": [one.alias_info is not None and one.alias_info.is_write for one
# in getattr(torch.ops.aten, name).default._schema.arguments if one.name.startswith("running")]
# for name in ("native_batch_norm", "_native_batch_norm_legit")}, ["running_mean", "running_var"])
# | What the two schemas say is written. Both kernels write to both.
#
# A later version of the same operator is honest: `_native_batch_norm_legit` has
# `Tensor(a!) running_mean`.
#
# What does a lie cost? Below, an operator of our own writes to a tensor that autograd has kept, and its
# schema does not say so. The gradient of `(w * y).sum()` for `w` is `y`, two ones.


# %%
def peek(x):
    x.data.mul_(3)  # `.data` goes around the version counter


w, y = torch.tensor([1.0, 2.0], requires_grad=True), torch.ones(2)
with _scoped_library("shelf", "FRAGMENT") as library:
    library.define("peek(Tensor x) -> ()")
    library.impl("peek", peek, "CompositeExplicitAutograd")
    product = w * y
    torch.ops.shelf.peek(y)
    product.sum().backward()
print(w.grad, "version", y._version)

# %% [markdown]
# Look: autograd/graph#code=w = torch.tensor([1., 2.], requires_grad=True);y = torch.ones(2);p = w
# * y;y.data.mul_(3);p.sum().backward() | The same without an operator: `.data` goes around the
# counter, and what the product kept is no longer what it saw.
#
# No error, and a gradient that is three times what it should be. (`_scoped_library` takes the operator away
# again at the end of the `with`. The next sitting says what `"CompositeExplicitAutograd"` is.)
#
# The other lie is more common. **Predict.** A kernel returns what it was given, and the schema is
# `Tensor x -> Tensor`. Does the call raise, does it return a copy, or the same object? Write `"raises"`,
# `"copy"` or `"same"`.


# %%
def returns_its_argument():
    x = torch.ones(2)
    with _scoped_library("shelf", "FRAGMENT") as library:
        library.define("itself(Tensor x) -> Tensor")
        library.impl("itself", lambda x: x, "CompositeExplicitAutograd")
        try:
            return "same" if torch.ops.shelf.itself(x) is x else "copy"
        except RuntimeError:
            return "raises"


predict(..., returns_its_argument)

# %% [markdown] exercise="broken_promises"
# title: Find broken promises
# minutes: 35
# difficulty: 3
# points: 13
# prerequisites: [read_schema]
# teaches: >-
#   what a schema promises about memory, that nothing enforces it, and how to see what a call did: by bytes
#   and storages, not by version counters and objects.
# leaves out: >-
#   results that share memory with each other; sizes and strides that change in place; tensors without
#   storage, such as sparse ones.
# off limits: [torch.library.opcheck, torch._subclasses.schema_check_mode.SchemaCheckMode, torch._C._SchemaInfo, torch.testing._internal.optests.opcheck]
# forbids: PyTorch's own checkers of schemas

# %% [markdown]
# PyTorch has a checker for operators of your own, `torch.library.opcheck`. Ask it about three liars: the
# kernel above, one that says it writes in place and returns a sum instead, and batch norm.

# %%
with _scoped_library("shelf", "FRAGMENT") as library:
    library.define("itself(Tensor x) -> Tensor")
    library.impl("itself", lambda x: x, "CompositeExplicitAutograd")
    library.define("bump_(Tensor(a!) x) -> Tensor(a!)")
    library.impl("bump_", lambda x: x + 1, "CompositeExplicitAutograd")
    x, one = torch.ones(2, 2), torch.ones(2)
    for operator, arguments in (
        (torch.ops.shelf.itself.default, (x,)),
        (torch.ops.shelf.bump_.default, (x,)),
        (
            torch.ops.aten.native_batch_norm.default,
            (x, None, None, one.clone(), one, True, 0.1, 1e-5),
        ),
    ):
        told = torch.library.opcheck(
            operator, arguments, test_utils="test_schema", raise_exception=False
        )
        print(f"{operator}: {told['test_schema']}")

# %% [markdown]
# It finds one of three. You can do better. What there is to go by:
#
# - **Writing** shows in bytes. `_version` counts calls that *say* they write; a kernel that goes around them
#   leaves it as it was, and one that writes what was there before raises it. Values will not do either:
#   `nan != nan`, and `-0.0 == 0.0`. The bytes of a tensor's whole memory are `x.untyped_storage().tolist()`.
# - **Sharing** shows in storages. Two tensors share memory if they lie in one storage, wherever in it:
#   `x[1:].data_ptr()` is not `x.data_ptr()`, but `x.untyped_storage().data_ptr()` is the same for both.
#   A storage without bytes has the address 0, like all others of its kind; nothing is shared there.
#
# **Write `broken_promises(operator, *arguments, **keywords)`**. It calls the operator, once, with these
# arguments, and returns a set of what was not promised:
#
# | tuple | says |
# |---|---|
# | `("writes", "x")` | the bytes of argument `x` are not what they were, and its type has no `!` |
# | `("shares", 0, "x")` | result 0 shares memory with argument `x`, and by the schema it may not |
# | `("is not", 0, "x")` | result 0 has the letter and the `!` of argument `x`, and is not the very object that was given |
#
# - The schema's text is `str(operator._schema)`, and your `read_schema` reads it. (Python cannot see the
#   letters of lists otherwise: `alias_info.before_set` is empty for `Tensor(a)[]`.)
# - What may happen need not: a `!` without a write and a letter without sharing are kept promises.
# - Lists: an argument `Tensor[]`, for which a list or a tuple is given, is written if one of its tensors is,
#   and shares if one of them does. A result `Tensor[]` shares if one of its tensors does. Whether it "is"
#   something is asked of single tensors alone.
# - Several arguments may lie in one storage; in `x.add_(x)` they are even one object. What one of them
#   may, all of them may: a write to memory that belongs to an argument with `!` is promised, and so is
#   sharing with memory of an argument that the result may share with.
# - Arguments that are no tensors, and `None`, do not matter. An operator may return one result, a tuple of
#   several, or `None` for none.
#
# <details><summary>Hint 1: names</summary>
#
# `zip` the names of the schema's arguments with the values that came by position, and add the keywords.
# From here on everything is by name: a dict from a name to the list of its tensors.
#
# </details>
# <details><summary>Hint 2: before and after</summary>
#
# Keep, for each address of a storage, its bytes as a list, before the call. Keep the storages themselves as
# well, so that none is freed and its address given to a result.
#
# </details>
# <details><summary>Hint 3: promised memory</summary>
#
# Do not ask "may this *argument* be written?". Collect the addresses of all memory that may be written: the
# storages of all arguments with `!`. For each result likewise, the addresses that it may share.
#
# </details>


# %% solution="broken_promises"
def broken_promises(operator: Any, *arguments: Any, **keywords: Any) -> set[tuple]:
    """Call `operator` and return what it did and had not promised.

    operator: an OpOverload, such as torch.ops.aten.add.Tensor
    returns: ("writes", name), ("shares", number, name) and ("is not", number, name)
    """
    ### BEGIN SOLUTION
    schema = read_schema(str(operator._schema))

    def storages(value: Any) -> dict[int, torch.UntypedStorage]:
        tensors = value if isinstance(value, list | tuple) else [value]
        found = [one.untyped_storage() for one in tensors if isinstance(one, torch.Tensor)]
        # All storages without bytes have the address 0. They are not one memory.
        return {storage.data_ptr(): storage for storage in found if storage.nbytes()}

    names = [one.name for one in schema.arguments]
    given = dict(zip(names, arguments, strict=False)) | keywords
    # The dicts hold the storages, so no address is used again while we compare.
    memory = {name: storages(value) for name, value in given.items()}
    before = {name: {at: one.tolist() for at, one in memory[name].items()} for name in memory}

    returned = operator(*arguments, **keywords)
    results = [returned] if len(schema.results) == 1 else list(returned or ())

    # What is promised belongs to memory, and not to the name by which it came.
    writable = {at for name in schema.writes if name in memory for at in memory[name]}
    broken = {
        ("writes", name)
        for name, held in memory.items()
        for at, storage in held.items()
        if at not in writable and storage.tolist() != before[name][at]
    }
    for number, result in enumerate(results):
        promised = [name for place, name in schema.shares if place == number and name in memory]
        sharable = {at for name in promised for at in memory[name]}
        here = storages(result).keys() - sharable
        broken |= {("shares", number, name) for name in memory if here & memory[name].keys()}
        broken |= {
            ("is not", number, name)
            for name in promised
            if schema.results[number].written
            and name in schema.writes
            and isinstance(result, torch.Tensor)
            and isinstance(given[name], torch.Tensor)
            and result is not given[name]
        }
    return broken
    ### END SOLUTION


# %% grade="broken_promises"
grade("broken_promises")

# %% [markdown]
# Now ask PyTorch's own operators.

# %%
x, mean, variance = torch.ones(2, 3), torch.zeros(3), torch.ones(3)
CALLS = [
    (aten.add_.Tensor, (x, x)),
    (aten.contiguous.default, (x,)),
    (aten.native_batch_norm.default, (x, None, None, mean, variance, True, 0.1, 1e-5)),
    (aten._native_batch_norm_legit.default, (x, None, None, mean, variance, True, 0.1, 1e-5)),
    (aten.dropout.default, (x, 0.5, False)),
    (aten.type_as.default, (x, mean)),
    (aten.sum_to_size.default, (x, [2, 3])),
    (aten.atleast_2d.default, (mean,)),
    (aten.broadcast_tensors.default, ([x, mean],)),
    (aten.einsum.default, ("ij->ji", [x])),
    (aten.matmul.default, (x, mean)),
]
if written("broken_promises"):
    for operator, arguments in CALLS:
        print(f"{operator}: {sorted(broken_promises(operator, *arguments)) or 'keeps its word'}")

# %% [markdown]
# `dropout` outside training, `type_as` of a tensor that has that dtype, `einsum` that only permutes: they
# return their argument or a view of it, and their schemas do not say so. It goes well because all of these
# are **composite**: their kernels are made of other operators, and autograd, compilers and functionalization
# see those instead. An operator with a kernel of its own has no such excuse. `native_batch_norm` has one, and
# `_native_batch_norm_legit` was put beside it.

# %% [markdown] sitting="choosing"
# question: Which overload does a call get, and which kernel?
# reached: >-
#   The first overload that the arguments fit. And for each key the operator's table has an entry:
#   what was registered there, or what a few rules put there.

# %% [markdown]
# ## Which overload runs
#
# A packet has overloads, and a call has arguments. Somebody has to choose. There are two who do: the Python
# binding behind `x + 1` and `torch.add`, which has its choices generated into it, and the packet,
# `torch.ops.aten.add`, which tries schemas.
#
# A `TorchDispatchMode` is told of every operator that runs. **Predict.** There is an `add.Tensor` and an
# `add.Scalar`. Which of them is `x + 1`? Write its name as a string.

# %%


class Told(TorchDispatchMode):
    """Notes the names of the operators that run inside it."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.names.append(str(operator).removeprefix("aten."))
        return operator(*args, **(kwargs or {}))


def names_of(call):
    with Told() as told:
        call()
    return told.names


x = torch.ones(2)
predict(..., lambda: names_of(lambda: x + 1)[0])

# %%
for text in ("x + 1", "x == 1", "x ** 2", "1 - x", "1 / x", "x.sum()", "x.sum(0)"):
    print(f"{text:>8}: {', '.join(names_of(lambda text=text: eval(text)))}")

# %% [markdown]
# The binding of `+` makes a tensor of the number, marked so that it does not count for the dtype of the result
# (the sitting after next has more of that). `add.Scalar` is there, and was not called.
#
# Look: dispatch/road#call=add&x=plain | `x + 1` on its road. The operator is `add.Tensor`,
# although 1 is a number.
#
# The packet takes the schemas in the order in which they were
# registered, and runs **the first that the arguments fit**. Not the best: the first. Here is an operator of
# our own with two overloads, in both orders, called with a tensor of one element. **Predict.** Which overload
# runs in the first case, and which in the second? Write a pair, such as `("int", "Tensor")`.


# %%
def chosen(schemas, *arguments, **keywords):
    with _scoped_library("shelf", "FRAGMENT") as library:
        for schema in schemas:
            library.define(schema)
        try:
            return torch._C._jit_resolve_packet("shelf::pick", *arguments, **keywords)
        except RuntimeError:
            return None


PICK = ["pick.int(int n) -> ()", "pick.Tensor(Tensor x) -> ()"]


def both_orders():
    return chosen(PICK, torch.tensor(2.7)), chosen(PICK[::-1], torch.tensor(2.7))


predict(..., both_orders)

# %% [markdown] exercise="resolve"
# title: Choose the overload
# minutes: 40
# difficulty: 3
# points: 9
# prerequisites: [read_schema]
# teaches: >-
#   how arguments are bound to a schema, which values fit which type, and that the first overload that
#   fits is the one that runs.
# leaves out: >-
#   the choices of `torch.add` and `x + 1`, which are generated; the few names of `aten` where a number may
#   stand for a tensor; dtypes, devices, complex numbers and symbols.
# off limits: [torch._C._jit_resolve_packet, torch._C._jit_get_operation, torch.library.Library, torch.library.define, torch.library.custom_op, torch._C._dispatch_library]
# forbids: PyTorch's own choice, and defining operators to have it choose

# %% [markdown]
# A tensor of one element fits `int`. It arrives in the kernel as `2`. So the order matters.
#
# What fits what? Ask PyTorch: one operator for each type, one call for each value.

# %%
TYPES = ["Tensor", "int", "float", "bool", "Scalar", "str"]
TYPES += ["int[]", "int[2]", "float[]", "float[2]", "Tensor[]", "int?", "int[2]?"]
VALUES = {"None": None, "True": True, "1": 1, "1.5": 1.5, "'a'": "a"}
VALUES |= {"one": torch.ones(1), "two": torch.ones(2)}  # tensors of one and of two elements
VALUES |= {"[]": [], "[1]": [1], "(1, 2)": (1, 2), "[1.5]": [1.5], "[one]": [torch.ones(1)]}
VALUES |= {"[two]": [torch.ones(2)], "[None]": [None]}
print(" " * 10, *(f"{shown:>6}" for shown in VALUES))
for kind in TYPES:
    row = [chosen([f"pick({kind} x) -> ()"], value) for value in VALUES.values()]
    print(f"{kind:>10}", *(f"{'yes' if one else '·':>6}" for one in row))

# %% [markdown]
# Draw: show_cells({f"`{kind}`": [str(got[-1]) if chosen([f"pick({kind} x) -> ()"], value) and
# (library.define(f"got_{at}_{kind}({kind} x) -> ()"), library.impl(f"got_{at}_{kind}", got.append,
# "CompositeExplicitAutograd"), getattr(torch.ops.shelf, f"got_{at}_{kind}")(value)) else False for
# at, value in enumerate(given)] for scope in [_scoped_library("shelf", "FRAGMENT")] for library in
# [scope.__enter__()] for got in [[]] for given in [[None, True, 1.5, torch.tensor(2.5)]] for kind
# in ("int", "float", "bool")}, ["None", "True", "1.5", "tensor(2.5)"]) | What arrives in the
# kernel, where it fits at all.
#
# Some of this is surprising. A `bool` takes whatever has a truth value, `None` as well, but no string and no
# list. A `Scalar` takes no tensor, and an `int` does. A `Tensor` may be `None`. The length of `int[2]` is
# not looked at: it says only that one `int` will do for the list. That number must be of the very kind: `1`
# does not do for `float[2]`, and `1.5` does.
#
# **Write `resolve(schemas, arguments, keywords)`**, which returns the name of the overload that runs:
# that of the first schema that the call fits, `"default"` for one without a name. If none fits, raise a
# `TypeError`.
#
# - `schemas` is a list of lines such as `"pick.int(int n, *, bool b=False) -> ()"`. `arguments` is a list,
#   `keywords` a dict: the call is `pick(*arguments, **keywords)`. Read the lines with your `read_schema`, or
#   with `torch._C.parse_schema`, which is allowed here.
# - A call fits if every value has an argument to go to, no argument gets two, every argument without a
#   default gets one, and every value fits the type of its argument. An argument may be given by position or
#   by keyword; what is keyword-only, by keyword alone.
# - Types are those of the table, with or without `?` behind them. `T?` takes `None`, and what `T` takes.
# - Values are of the kinds in the table's first line: `None`, `bool`, `int`, `float`, `str`, tensors of
#   floats, lists and tuples. A list fits if each of its items fits the type in front of the bracket;
#   `None` as an item fits none. What stands in the list need not be of one kind.
#
# <details><summary>Hint 1: two questions</summary>
#
# Write a function `fits(type, value)` and a function that binds values to names. Neither needs the other.
#
# </details>
# <details><summary>Hint 2: types</summary>
#
# Take a `?` off the end first, then the brackets, and call `fits` again with what is left. In Python a
# `bool` is an `int`, here too.
#
# </details>
# <details><summary>Hint 3: one for the list</summary>
#
# Where the type has a length and the value is no list: an `int` or a `bool` does for `int[2]`, a `float`
# alone does for `float[2]`. A tensor of one element does not.
#
# </details>


# %% solution="resolve"
def resolve(schemas: list[str], arguments: list[Any], keywords: dict[str, Any]) -> str:
    """Return the name of the first overload that the call fits; raise TypeError if there is none.

    schemas: lines such as "pick.int(int n) -> ()", in the order in which they were defined
    """

    ### BEGIN SOLUTION
    def fits(type_: str, value: Any) -> bool:
        if type_.endswith("?"):
            return value is None or fits(type_[:-1], value)
        listed = re.fullmatch(r"(\w+)\[(\d*)\]", type_)
        if listed:
            item, length = listed.groups()
            if isinstance(value, list | tuple):
                # A Tensor may be None, an item of Tensor[] may not.
                return all(one is not None and fits(item, one) for one in value)
            # The length says that one number will do. How long a list is, nobody looks.
            return bool(length) and isinstance(value, float if item == "float" else int)
        one = isinstance(value, torch.Tensor) and value.numel() == 1
        if type_ == "Tensor":
            return value is None or isinstance(value, torch.Tensor)
        if type_ == "str":
            return isinstance(value, str)
        if type_ == "int":
            return isinstance(value, int) or one  # True is an int
        if type_ == "bool":
            return value is None or isinstance(value, int | float) or one
        number = isinstance(value, int | float)
        return number or (type_ == "float" and one)  # a Scalar takes no tensor

    def takes(schema: Schema) -> bool:
        by_position = [one.name for one in schema.arguments if not one.keyword_only]
        if len(arguments) > len(by_position):
            return False
        given = dict(zip(by_position, arguments, strict=False))
        if given.keys() & keywords.keys():
            return False  # two values for one argument
        given |= keywords
        types = {one.name: one.type for one in schema.arguments}
        required = {one.name for one in schema.arguments if one.required}
        if not required <= given.keys() <= types.keys():
            return False
        return all(fits(types[name], value) for name, value in given.items())

    for text in schemas:
        schema = read_schema(text)
        if takes(schema):
            return schema.overload or "default"
    raise TypeError("no overload takes these arguments")
    ### END SOLUTION


# %% grade="resolve"
grade("resolve")

# %% [markdown]
# ## Keys
#
# You wrote `x.sin()`. PyTorch has one kernel of `sin` for dense tensors on the CPU, one for CUDA, one
# for sparse tensors, one that notes what backward will need, one for `vmap`. The **dispatcher** chooses
# (`c10/core/DispatchKeySet.h`, `aten/src/ATen/core/dispatch/Dispatcher.h`). It looks at **dispatch
# keys**: each tensor carries a set of them.


# %%
def keys_of(tensor: torch.Tensor) -> frozenset[str]:
    """Return the names of the dispatch keys that a tensor carries."""
    inside = str(torch._C._dispatch_keys(tensor)).removeprefix("DispatchKeySet(").removesuffix(")")
    return frozenset(inside.split(", ")) - {""}


with torch.inference_mode():
    of_inference = torch.ones(2)

for what, tensor in {
    "torch.ones(2)": torch.ones(2),
    "its dtype int64": torch.ones(2, dtype=torch.int64),
    "on meta": torch.ones(2, device="meta"),
    "sparse": torch.ones(2).to_sparse(),
    "a conjugate": torch.ones(2, dtype=torch.complex64).conj(),
    "of inference mode": of_inference,
}.items():
    print(f"{what:18}", *sorted(keys_of(tensor)))

# %% [markdown]
# Device and layout are keys, and so is a conjugation that was not carried out yet. The dtype is none:
# a kernel looks at it by itself, in a `switch`.
#
# **Predict.** Which keys does a tensor with `requires_grad=True` have that one without has not? Write
# them as text, `"none"` if there are none.

# %%


def more_keys():
    more = keys_of(torch.ones(2, requires_grad=True)) - keys_of(torch.ones(2))
    return ", ".join(sorted(more)) or "none"


predict(..., more_keys)

# %% [markdown]
# Every ordinary tensor carries an Autograd key. Whether there is anything to record, the kernel at that
# key decides when it runs.
#
# Look: dispatch/keys#call=add&x=grad&around=no_grad | A tensor that requires grad, under `no_grad`: the
# keys stay, and the call stops at AutogradCPU all the same. Take `inference_mode` for it, and it does not.
#
# Keys have an **order**, and the most urgent one that is there gets the call. What is about the meaning
# of an operator comes first, what is about the machine last:
#
# | from the first to the last | what a kernel there does |
# |---|---|
# | `FuncTorchBatched` | `vmap`: adds a dimension |
# | `AutocastCPU` | casts the arguments |
# | `AutogradCPU`, … | notes what backward needs |
# | `ADInplaceOrView` | counts versions, marks views |
# | `Negative`, `Conjugate` | does what was put off |
# | `Functionalize` | replays writes on copies |
# | `Python` | hands over to a mode or a subclass |
# | `BackendSelect` | chooses a device where no tensor does |
# | `SparseCPU`, `CPU`, … | computes |
#
# ## The table of an operator
#
# Each operator has a table with an entry for each key. `Library.impl` registers a kernel at a key, and
# PyTorch fills the other entries by rule. The helper below makes an operator with some registrations
# and says where its entries come from.

# %%


def table_of(registered: list[str], keys: list[str]) -> dict[str, str]:
    """Register a kernel at each of these keys of a new operator; return some entries of its table."""
    with torch.library._scoped_library("road", "FRAGMENT") as library:
        library.define("op(Tensor x) -> Tensor")
        for key in registered:
            library.impl("op", lambda x: x.clone(), key)
        lines = torch._C._dispatch_dump_table("road::op").splitlines()
    entries = dict(line.split(": ", 1) for line in lines if ": " in line)
    found = {}
    for key in keys:
        entry = entries.get(key, "[missing]")
        found[key] = "fallthrough" if entry.startswith("fallthrough") else entry.split("[")[-1][:-1]
    return found


some = ["CPU", "Meta", "AutogradCPU", "AutogradMeta", "ADInplaceOrView"]
composites = ["CompositeExplicitAutograd"], ["CompositeImplicitAutograd"]
entries_of = [table_of(registered, some) for registered in ([], ["CPU"], *composites)]
print(f"{'at the key':16}{'nothing':17}{'CPU':17}{'Composite Explicit':23}Composite Implicit")
for key in some:
    nothing, cpu, explicit, implicit = (entries[key] for entries in entries_of)
    print(f"{key:16}{nothing:17}{cpu:17}{explicit:23}{implicit}")

# %% [markdown]
# Draw: show_cells({name: [entry != "missing" and (entry, "own" if entry in ("kernel", "default
# backend kernel") else entry) for entry in entries.values()] for name, entries in zip(("nothing",
# "`CPU`", "`Explicit`", "`Implicit`"), entries_of)}, some) | The same, a row for each
# registration, a colour for each kind of entry.
#
# Without any registration, some keys have an entry all the same: a **backend fallback**, one kernel for
# all operators that have none of their own there. That of `AutogradCPU` hands the call on, and backward
# warns; that of `ADInplaceOrView` is a **fallthrough**, which means: ask the next key.
#
# The two long names are **alias keys**. A kernel registered there stands for many keys. *Composite*
# means that it calls other operators, which do the work; *explicit* that its gradient is not theirs
# and has to be said at an Autograd key; *implicit* that autograd sees the operators that it calls, and
# needs no more. So an implicit kernel may run at `AutogradCPU`, above autograd, and an explicit one may
# not.
#
# What if two registrations want the same entry?
#
# **Predict.** An operator has a kernel for `CPU` and one for `CompositeImplicitAutograd`. Who gets the
# entries of `AutogradCPU` and of `AutogradMeta`? Write `"… and …"` with the words above.

# %%


def two_entries():
    return " and ".join(
        table_of(["CPU", "CompositeImplicitAutograd"], ["AutogradCPU", "AutogradMeta"]).values()
    )


predict(..., two_entries)

# %% [markdown]
# Had the implicit kernel both entries, it would take every call before the kernel for `CPU` could be
# asked. So a backend that has a kernel of its own loses the implicit one at its Autograd key, and only
# there. On the CPU, autograd then no longer sees the operators that the implicit kernel calls; elsewhere
# it does.
#
# **Predict.** Now the two kernels are for `SparseCPU` and `CompositeImplicitAutograd`, and the call has
# a sparse tensor. Which of the two runs? Look at the keys of a sparse tensor above.

# %%


def who_runs():
    ran = []
    with torch.library._scoped_library("road", "FRAGMENT") as library:
        library.define("op(Tensor x) -> Tensor")
        for key in ["SparseCPU", "CompositeImplicitAutograd"]:
            library.impl("op", lambda x, key=key: ran.append(key) or x.clone(), key)
        torch.ops.road.op(torch.ones(2).to_sparse())
    return ran[0]


predict(..., who_runs)

# %% [markdown]
# A sparse CPU tensor carries `AutogradCPU`. The backend of that key is `CPU`, which has no kernel here,
# so the implicit one stays. In the table, `SparseCPU` belongs to another Autograd key, `AutogradOther`,
# which is shared by all backends without one of their own. One of them having a kernel must not take
# the implicit one from the others, and leaving it would make that kernel unreachable. The dispatcher
# refuses to choose: the entry is *ambiguous*, and a call that arrives there raises.
#
# Look: dispatch/keys#call=view&x=sparse&step=1 | The keys of a sparse tensor, and where a call of `view`
# stops with it. Choose another x, and see which keys go with it.

# %%
three = ["AutogradCPU", "AutogradMeta", "AutogradOther"]
print(table_of(["SparseCPU", "CompositeImplicitAutograd"], three))

# %% [markdown] exercise="table_entry"
# title: Fill the dispatcher's table
# minutes: 30
# difficulty: 2
# points: 6
# short: true
# prerequisites: []
# teaches: >-
#   what alias keys stand for, why a backend's kernel takes the composite one away from its own Autograd
#   key, when PyTorch refuses to choose, and what a backend fallback is.
# leaves out: >-
#   nested tensors' own alias key, batching rules, and how a registration may be taken back.
# off limits: [torch.library.Library, torch.library._scoped_library, torch._C._dispatch_library, torch._C._dispatch_dump_table, torch._C._dispatch_dump, torch._ops.resolve_key]
# forbids: "registering kernels in PyTorch, and asking it for its table"

# %% [markdown]
# Which keys does each alias key stand for? And which keys have a fallback? PyTorch knows. Here are the
# answers for the keys of this exercise, as data:

# %%
NON_FUNCTIONAL = "CompositeExplicitAutogradNonFunctional"
EXPLICIT = "CompositeExplicitAutograd"
IMPLICIT = "CompositeImplicitAutograd"

# The backends of each Autograd key.
BACKENDS = {
    "AutogradCPU": {"CPU"},
    "AutogradCUDA": {"CUDA"},
    "AutogradMeta": {"Meta"},
    "AutogradPrivateUse1": {"PrivateUse1"},
    "AutogradOther": {"QuantizedCPU", "SparseCPU", "SparseCsrCPU"},
    "AutogradNestedTensor": {"NestedTensorCPU"},
}

# The keys that an alias key stands for. `Undefined` is the key of a call without tensors.
_MOST = {"Undefined", "CPU", "CUDA", "Meta", "PrivateUse1", "QuantizedCPU", "SparseCsrCPU"}
STANDS_FOR = {
    NON_FUNCTIONAL: _MOST,
    EXPLICIT: _MOST | {"SparseCPU"},
    IMPLICIT: _MOST | {"SparseCPU", "NestedTensorCPU"} | set(BACKENDS),
    "Autograd": set(BACKENDS),
}

# What is there for operators that have nothing at a key.
FALLBACKS = {
    **dict.fromkeys(set(BACKENDS) - {"AutogradNestedTensor"}, "fallback"),
    **dict.fromkeys(
        ["Meta", "Python", "FuncTorchBatched", "Functionalize", "Conjugate"], "fallback"
    ),
    **dict.fromkeys(["BackendSelect", "ADInplaceOrView", "AutocastCPU"], "fallthrough"),
}

KEYS = sorted({*STANDS_FOR[IMPLICIT], *FALLBACKS})

print(f"{'key':22}{'NonFunct':12}{'Explicit':10}{'Implicit':10}{'Autograd':10}fallback")
for key in KEYS:
    marks = ["yes" if key in keys else "" for keys in STANDS_FOR.values()]
    print(f"{key:22}{marks[0]:12}{marks[1]:10}{marks[2]:10}{marks[3]:10}{FALLBACKS.get(key, '')}")

# %% [markdown]
# Draw: show_bars({name: len(keys) for name, keys in zip(("NonFunctional", "Explicit", "Implicit",
# "Autograd"), STANDS_FOR.values())}, "keys") | For how many keys a kernel at each of the alias
# keys may stand.
#
# The "NonFunctional" alias key is for kernels that are made of operators that write. It does not stand
# for sparse tensors, nor for XLA and Lazy, which are not in this table.
#
# **Write `table_entry(registered, key)`.** `registered` is a `dict` from keys and alias keys to the
# names of the kernels that an operator has there. Return what stands at `key`, which is one of `KEYS`:
# a kernel's name, or `"fallback"`, `"fallthrough"`, `"ambiguous"` or `"missing"`. Any key but `Undefined`
# may be registered, and any alias key of `STANDS_FOR`. (What is registered at `Undefined`, PyTorch takes for
# the implicit kernel.) The rules:
#
# - What was registered for `key` itself, it gets.
# - Otherwise an alias key that stands for `key` may give it its kernel: first the two explicit ones,
#   "NonFunctional" before the other, then the implicit one, then `Autograd`.
# - The implicit kernel has two more conditions. It gives way everywhere if the operator has a kernel
#   for `CompositeExplicitAutograd`; that for "NonFunctional" does not count. And at an Autograd key it
#   gives way if one of the key's backends has a kernel of its own.
# - But where one of the backends of `AutogradOther` has a kernel of its own, and the operator has an
#   implicit one, nobody gives way: the entry of `AutogradOther` is `"ambiguous"`.
# - If nobody was found, it is what `FALLBACKS` has for the key, or `"missing"`.
#
# <details><summary>Hint 1: in this order</summary>
#
# The rules stand in the order in which to ask them, but for one: the fourth belongs before the third.
#
# </details>
# <details><summary>Hint 2: other keys</summary>
#
# Most keys have no backends, and `BACKENDS.get(key, set())` is empty for them. Whether a set and a
# `dict` have a key in common, `isdisjoint` tells.
#
# </details>
# <details><summary>Hint 3: ask PyTorch</summary>
#
# `table_of` above takes the keys of `registered` as a list and tells where the entries come from. Use
# it beside your function, not in it.
#
# </details>


# %% solution="table_entry"
def table_entry(registered: dict[str, str], key: str) -> str:
    """Return what an operator's table has at `key`.

    registered: from a key or an alias key to the name of the kernel that was registered there
    key: one of KEYS
    returns: a kernel's name, "fallback", "fallthrough", "ambiguous" or "missing"
    """
    ### BEGIN SOLUTION
    if key in registered:
        return registered[key]
    for alias in (NON_FUNCTIONAL, EXPLICIT):
        if alias in registered and key in STANDS_FOR[alias]:
            return registered[alias]
    if IMPLICIT in registered and key in STANDS_FOR[IMPLICIT]:
        # Above a backend's own kernel the implicit one would take all of its calls.
        unreachable = not BACKENDS.get(key, set()).isdisjoint(registered)
        if key == "AutogradOther" and unreachable:
            return "ambiguous"  # right for one of its backends is wrong for the others
        if not unreachable and EXPLICIT not in registered:
            return registered[IMPLICIT]
    if "Autograd" in registered and key in STANDS_FOR["Autograd"]:
        return registered["Autograd"]
    return FALLBACKS.get(key, "missing")
    ### END SOLUTION


# %% grade="table_entry"
grade("table_entry")

# %% [markdown]
# Your rules against PyTorch's table, for an operator with everything at once:

# %%
everything = ["CUDA", "SparseCPU", IMPLICIT, "Autograd", "ADInplaceOrView"]
if written("table_entry"):
    print(f"{'key':22}{'yours':28}PyTorch")
    for key, entry in table_of(everything, KEYS).items():
        print(f"{key:22}{table_entry({one: one for one in everything}, key):28}{entry}")

# %% [markdown] sitting="road"
# question: Who sees a call on its way to the kernel?
# reached: >-
#   Every key of its tensors and of the thread, the most urgent one first. A kernel may hand the
#   call on, and you can put one of your own in between and take it out again.

# %% [markdown]
# ## The road of a call
#
# One call of an operator is many calls of kernels. A kernel at an Autograd key does its own part and
# hands the call on to the keys behind it. To see the road, register kernels that say where they are. With
# `with_keyset=True` a kernel gets the set of keys that the call came with; `redispatch` takes the set
# that is to be asked next.
#
# Look: dispatch/lanes#call=view&x=plain | The road of `x.view(…)`: two kernels before the one that
# computes. Go step by step.

# %%
LANES = ["AutocastCPU", "AutogradCPU", "ADInplaceOrView", "CPU"]


def stops_of(x: torch.Tensor, mode=None) -> list[str]:
    """Return the keys at which a call of a new operator stops, the most urgent first."""
    stops = []

    def logging(key):
        behind = torch._C._dispatch_keyset_full_after(getattr(torch._C.DispatchKey, key))

        def kernel(keys, x):
            stops.append(key)
            if key == LANES[-1]:
                return x.clone()
            return torch.ops.road.op.default.redispatch(keys & behind, x)

        return kernel

    with torch.library._scoped_library("road", "FRAGMENT") as library:
        library.define("op(Tensor x) -> Tensor")
        for key in LANES:
            library.impl("op", logging(key), key, with_keyset=True)
        with mode or nullcontext():
            torch.ops.road.op(x)
    return stops


print(*stops_of(torch.ones(2)), sep=" > ")

# %% [markdown]
# Calling `torch.ops.road.op(x)` in a kernel would begin again at the most urgent key, which is where that
# kernel stands. `redispatch` goes on from here.
#
# `AutocastCPU` is missing, and the tensor carries that key. Each thread has two sets of keys of its
# own: those that are **included** in every call, and those that are **excluded**. Unless somebody asks
# for it, autocast is excluded.
#
# **Predict.** Under `torch.no_grad()` nothing is recorded for backward. At which keys does the call
# stop? Write them as above.

# %%
predict(..., lambda: " > ".join(stops_of(torch.ones(2), torch.no_grad())))

# %% [markdown]
# `no_grad` changes no set. The Autograd kernel runs, asks whether grad mode is on, and hands on.
#
# **Predict.** And the same tensor under `torch.inference_mode()`?

# %%
predict(..., lambda: " > ".join(stops_of(torch.ones(2), torch.inference_mode())))

# %% [markdown]
# Look: dispatch/lanes#call=add&x=grad&around=inference_mode | `x + 1` in inference mode, for a
# tensor made outside: the Autograd key is crossed out, and the one below it is not.
#
# Inference mode excludes the Autograd keys: that is what it saves. The tensor was made outside and
# still carries `ADInplaceOrView`. All of it side by side, with a tensor of inference mode too:

# %%
print(f"{'':18}", *(f"{key:16}" for key in LANES))
for what, x, mode in [
    ("as it is", torch.ones(2), None),
    ("autocast", torch.ones(2), torch.autocast("cpu")),
    ("no_grad", torch.ones(2), torch.no_grad()),
    ("inference_mode", torch.ones(2), torch.inference_mode()),
    ("  its own tensor", of_inference, torch.inference_mode()),
    ("  and outside", of_inference, None),
]:
    stops = stops_of(x, mode)
    print(f"{what:18}", *(f"{'o' if key in stops else '.':16}" for key in LANES))

# %% [markdown]
# And a fallthrough? It is said that `redispatch` passes over it. `sin` has nothing at `AutocastCPU` but
# the fallback, which is one. Here are the keys of a tensor, as they are:

# %%
x = torch.ones(2)
try:
    torch.ops.aten.sin.default.redispatch(torch._C._dispatch_keys(x), x)
except RuntimeError as error:
    print(str(error).split("to PyTorch. ")[1].split(" This")[0])

# %% [markdown]
# Fallthroughs are taken out of the set once, when the operator is called. What a kernel gets has none, and
# so has what it hands on, if it only takes keys away.
#
# Look: dispatch/lanes#call=linear&x=plain&around=autocast | `linear` under `autocast`: the key that casts
# comes first, and what it is made of goes through the keys again.

# %% [markdown] exercise="Dispatcher"
# title: Build the dispatcher
# minutes: 45
# difficulty: 4
# points: 8
# short: true
# prerequisites: [table_entry]
# teaches: >-
#   how a call's keys are computed from tensors and thread, what a fallthrough is worth, how a kernel
#   hands a call on, and why it must not simply call the operator again.
# leaves out: >-
#   alias keys, which the last exercise had; and that PyTorch keeps a key such as AutogradCPU in two halves,
#   so that tensors of several devices in one call have more keys together than each of them.
# off limits: []

# %% [markdown]
# A dispatcher in Python is about forty lines. Operators are names, kernels are functions, and the
# tensors are real ones, with real keys: `keys_of(x)`.
#
# **Write the class `Dispatcher(order)`.** `order` is a list of keys, the most urgent first, and has
# every key that occurs. In the methods below, `keys` is a collection of keys.
#
# | method | what it does |
# |---|---|
# | `register(op, key, kernel)` | sets the entry of the operator `op` at `key`. A kernel is called with `(keys, *args, **kwargs)` |
# | `register_fallback(key, kernel)` | sets the entry at `key` of all operators that have none of their own there. Such a kernel is called with `(keys, op, *args, **kwargs)` |
# | `after(key)` | returns the set of all keys behind `key` in `order` |
# | `including(keys)`, `excluding(keys)` | context managers: inside, the keys are included in calls of this thread, or excluded from them |
# | `call(op, *args, **kwargs)` | calls an operator |
# | `redispatch(op, keys, *args, **kwargs)` | hands a call on |
#
# In place of a kernel, the text `"fallthrough"` may be registered.
#
# `call` begins with the keys of all tensors among the arguments, named ones too, and in lists and tuples
# of arguments. To them come those that the thread includes; then those that it excludes go, and those
# where the operator's entry is a fallthrough. The rest goes to `redispatch`.
#
# `redispatch` takes `keys` as they are, and asks no tensor and no thread. The most urgent key of them
# gets the call: its kernel is called with `keys`, as a set and with that key still in it. What the kernel
# returns or raises, the caller gets. It raises
#
# - `NotImplementedError` if there is no key, or the most urgent one has no entry;
# - `RuntimeError` if the entry there is a fallthrough: somebody forgot to take it out.
#
# In the beginning a thread includes and excludes nothing. `with`s may be nested, with keys that the
# outer one has as well. When one ends, by an exception too, all is as it was before it.
#
# <details><summary>Hint 1: the thread</summary>
#
# Attributes of a `threading.local()` are each thread's own. In a thread that never set one it is
# missing: `getattr(self.own, "excluded", frozenset())`.
#
# </details>
# <details><summary>Hint 2: as it was before</summary>
#
# Keep the old set, and put it back in a `finally`. Taking the keys out again is something else if they
# were in it already.
#
# </details>
# <details><summary>Hint 3: one entry</summary>
#
# Write a method that returns what stands for an operator at a key: its own, or the fallback, or None.
# `call` asks it which keys fall through, `redispatch` whom to call. A fallback that has got its operator,
# by `functools.partial` or a small function, is a kernel like any other.
#
# </details>


# %% solution="Dispatcher"
class Dispatcher:
    """Chooses kernels by the keys of tensors and of the thread.

    order: all keys, the most urgent first
    """

    def __init__(self, order: list[str]) -> None:
        ### BEGIN SOLUTION
        self.order = order
        self.kernels = {}  # (operator, key) -> kernel
        self.fallbacks = {}  # key -> kernel
        self.own = threading.local()  # what this thread includes and excludes

    def register(self, op: str, key: str, kernel: Callable | str) -> None:
        self.kernels[op, key] = kernel

    def register_fallback(self, key: str, kernel: Callable | str) -> None:
        self.fallbacks[key] = kernel

    def after(self, key: str) -> frozenset[str]:
        return frozenset(self.order[self.order.index(key) + 1 :])

    def including(self, keys):
        return self._with_more("included", keys)

    def excluding(self, keys):
        return self._with_more("excluded", keys)

    @contextmanager
    def _with_more(self, name, keys):
        before = self._of_thread(name)
        setattr(self.own, name, before.union(keys))
        try:
            yield
        finally:
            setattr(self.own, name, before)  # and not: take `keys` out, which may have been in it

    def _of_thread(self, name):
        return getattr(self.own, name, frozenset())

    def _entry(self, op, key):
        if (op, key) in self.kernels:
            return self.kernels[op, key]
        fallback = self.fallbacks.get(key)
        if callable(fallback):
            return lambda keys, *args, **kwargs: fallback(keys, op, *args, **kwargs)
        return fallback

    def call(self, op: str, *args, **kwargs):
        keys = set(self._of_thread("included"))
        for value in [*args, *kwargs.values()]:
            for one in value if isinstance(value, list | tuple) else [value]:
                if isinstance(one, torch.Tensor):
                    keys |= keys_of(one)
        keys -= self._of_thread("excluded")
        # Taken out now: a kernel that hands on must not meet a fallthrough.
        keys = {key for key in keys if self._entry(op, key) != "fallthrough"}
        return self.redispatch(op, keys, *args, **kwargs)

    def redispatch(self, op: str, keys, *args, **kwargs):
        key = min(keys, key=self.order.index, default=None)
        entry = self._entry(op, key)
        if entry is None:
            raise NotImplementedError(f"{op} has nothing at {key}")
        if entry == "fallthrough":
            raise RuntimeError(f"{op} falls through at {key}, and is asked there")
        return entry(frozenset(keys), *args, **kwargs)
        ### END SOLUTION


# %% grade="Dispatcher"
grade("Dispatcher")

# %% [markdown]
# The road from above, in your dispatcher. Nobody has told it what autocast is:

# %%
if written("Dispatcher"):
    mine = Dispatcher(LANES)
    for key in LANES:

        def logging_kernel(keys, x, key=key):
            print(f"{key:16} with {len(keys)} keys")
            return x if key == "CPU" else mine.redispatch("op", keys & mine.after(key), x)

        mine.register("op", key, logging_kernel)
    with mine.excluding(["AutocastCPU"]):
        mine.call("op", torch.ones(2))

# %% [markdown]
# ## In between
#
# The tables of PyTorch's own operators can be changed while a program runs. A kernel that you register
# for `aten` replaces the one that is there, in every thread, for calls from Python and from C++.

# %%
zeros = torch.zeros(2)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyTorch warns once that a kernel of its own is replaced
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl(aten.sin.default, lambda x: x + 7, "CPU")
        print("inside:", zeros.sin())
print("after: ", zeros.sin())

# %% [markdown]
# A `Library` takes its registrations back when it is destroyed, by `library._destroy()` or at the end of
# that `with`, and the old kernel stands there again.
#
# **Predict.** The kernel of `cos` for the CPU is replaced by one that counts. Then somebody calls
# `x.sin().sum().backward()`. How often is `cos` counted?

# %%


def count_of_cos():
    counted = []
    x = torch.zeros(2, requires_grad=True)
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl(aten.cos.default, lambda x: counted.append("cos") or x + 1, "CPU")
        x.sin().sum().backward()
    return len(counted)


predict(..., count_of_cos)

# %% [markdown]
# Backward of `sin` calls `cos` like anyone else, from C++.
#
# There is another way to get in between: a `TorchDispatchMode` stands at the key `Python` and gets
# every operator that comes that far.


# %%
class Noting(TorchDispatchMode):
    """Note each operator, and let it run."""

    def __init__(self):
        super().__init__()
        self.noted = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.noted.append(str(func))
        return func(*args, **(kwargs or {}))


with Noting() as mode:
    nn.Linear(2, 3)(torch.ones(4, 2))
print(mode.noted[-2:])

# %% [markdown]
# **Predict.** A mode is on, and a kernel of `sin` for the CPU is replaced. Now another thread calls
# `torch.zeros(2).sin()`. Who notices: `"the mode"`, `"the kernel"`, `"both"` or `"nobody"`?

# %%


def who_notices():
    noticed = []
    with torch.library._scoped_library("aten", "IMPL") as library, Noting() as mode:
        library.impl(aten.sin.default, lambda x: noticed.append("the kernel") or x + 7, "CPU")
        thread = threading.Thread(target=lambda: torch.zeros(2).sin())
        thread.start()
        thread.join()
    noticed += ["the mode"] * ("aten.sin.default" in mode.noted)
    return {0: "nobody", 2: "both"}.get(len(noticed)) or noticed[0]


predict(..., who_notices)

# %% [markdown]
# A mode is a key that a thread includes. A table is the process's.
#
# | | a mode | a kernel of yours |
# |---|---|---|
# | gets | every operator that comes to `Python` | one operator, at one key |
# | stands | behind autograd | where you put it |
# | in | this thread | the whole process |

# %% [markdown] exercise="patched"
# title: Put a kernel in, and take it out again
# minutes: 35
# difficulty: 3
# points: 7
# prerequisites: [table_entry]
# teaches: >-
#   how to replace a kernel of a running program, how to reach the one that was there, and how to leave
#   nothing behind.
# leaves out: >-
#   aliases, fallthroughs, keys at which nothing stands, and patches that do not end in the reverse order
#   of their beginnings.
# off limits: []

# %% [markdown]
# To measure, to test, to break on purpose: often a kernel should do something and then what it always
# did. Once it is replaced, the old one is no longer in the table. Calling the operator again would come
# back to the new one. `get_kernel` fetches what is in the table now, as an object that can be called later,
# with the keys of the call in front:

# %%
kernel = torch.library.get_kernel(aten.sin.default, "CPU")
print(kernel.call_boxed(torch._C._dispatch_keys(zeros), zeros))

noted = []


def noting(name):
    """Return a kernel for `patched` that notes its name and does what the original does."""

    def kernel(original, *args, **kwargs):
        noted.append(name)
        return original(*args, **kwargs)

    return kernel


# %% [markdown]
# **Write `patched(op, key, kernel)`**, a context manager. `op` is an overload of an operator, of any
# namespace, such as `torch.ops.aten.sin.default`; `key` is the name of a key where it has a kernel, such as
# `"CPU"`.
#
# - While the `with` is open, a call of `op` that comes to `key` becomes `kernel(original, *args, **kwargs)`,
#   in all threads, and what that returns is the call's result.
# - `original` is a function. `original(*args, **kwargs)` runs, with the keys of the call in progress, the
#   kernel that stood at `key` when the `with` began. That may have been put there by another `patched`.
# - Before the `with` begins nothing is changed. When it has ended, by an exception too, the table of `op`
#   is what it was before. The exception goes on.
#
# Other operators, other overloads and other keys stay as they are.
#
# <details><summary>Hint 1: which keys?</summary>
#
# A kernel that was registered with `with_keyset=True` gets the keys of the call in progress as its first
# argument. `call_boxed` wants them.
#
# </details>
# <details><summary>Hint 2: when?</summary>
#
# What `get_kernel` fetches after your kernel was registered is your kernel.
#
# </details>
# <details><summary>Hint 3: the end</summary>
#
# `contextlib.contextmanager` makes a context manager of a function with one `yield`. What must happen
# whatever is raised at the `yield`, stands in a `finally`, or in the end of a `with` around it.
# `op.namespace` is the name of the library.
#
# </details>


# %% solution="patched"
@contextmanager
def patched(op: torch._ops.OpOverload, key: str, kernel: Callable) -> Iterator[None]:
    """Let `kernel(original, *args, **kwargs)` do what `op` does at `key`, until the `with` ends."""
    ### BEGIN SOLUTION
    before = torch.library.get_kernel(op, key)  # now: later it is ours

    def instead(keys, *args, **kwargs):
        # The keys of this call: the old kernel may hand on, and must know to whom.
        return kernel(functools.partial(before.call_boxed, keys), *args, **kwargs)

    library = torch.library.Library(op.namespace, "IMPL")
    try:
        library.impl(op, instead, key, with_keyset=True)
        yield
    finally:
        library._destroy()
    ### END SOLUTION


# %% grade="patched"
grade("patched")

# %% [markdown]
# Which matrix products does a training step of a linear layer need? Nobody has to change the layer, or
# autograd, to know:

# %%
if written("patched"):
    noted.clear()
    layer, rows = nn.Linear(2, 3), torch.ones(4, 2, requires_grad=True)
    with ExitStack() as patches:
        for product in (aten.addmm.default, aten.mm.default):
            patches.enter_context(patched(product, "CPU", noting(str(product))))
        layer(rows).sum().backward()
    print(*noted)

# %% [markdown] sitting="inside-a-kernel"
# question: Which dtype does a result get?
# reached: >-
#   That of its tensors with dimensions, unless a 0-dim tensor or a number is of a higher category. A
#   nested list gets its sizes from its first items, and its dtype from all of them.

# %% [markdown] exercise="result_dtype"
# title: Find the dtype of a result
# minutes: 30
# difficulty: 3
# points: 9
# short: true
# prerequisites: []
# teaches: >-
#   type promotion: four categories, three levels of operands, and why a number seldom widens a
#   tensor.
# leaves out: >-
#   operators with rules of their own, such as `/` for integers; unsigned integers wider than 8 bits,
#   floats of 8 bits, and operands that are `complex32`.
# off limits: [torch.result_type, torch.promote_types, torch.can_cast, torch._prims_common.elementwise_dtypes, torch._prims_common.get_higher_dtype]
# forbids: "functions that promote dtypes; operators, whose results would tell"
# allowed: []

# %% [markdown]
# ## Before the loop
#
# A kernel's loop runs over memory and does one thing to each element. It is the dull part. Before it
# begins, somebody has to say of which dtype the result is, what its strides are, in which order the
# loops run, and whether the result may be written where the caller wants it. In PyTorch that is
# `TensorIterator` (`aten/src/ATen/TensorIterator.cpp`), and nearly all elementwise operators use it.
# In this sitting and the next you write what it does.
#
# First the dtype. `x + y` has two operands and one result.

# %%
half = torch.ones(2, dtype=torch.float16)
for name, y in [
    ("torch.ones(2, dtype=torch.float64)", torch.ones(2, dtype=torch.float64)),
    ("torch.tensor(1.0, dtype=torch.float64)", torch.tensor(1.0, dtype=torch.float64)),
    ("1.0", 1.0),
]:
    print(f"half + {name:<38} {(half + y).dtype}")

# %% [markdown]
# The first is as one expects: the wider dtype wins. The others show that not every operand has the
# same say. One reads that "a number of higher precision widens the result". It does not.
#
# **Predict.** `float16` ends at 65504. What is the first element of
# `half + torch.tensor(1e6, dtype=torch.float64)`? Write a Python float, such as `1000001.0`.

# %%
predict(..., lambda: (half + torch.tensor(1e6, dtype=torch.float64))[0].item())

# %% [markdown]
# Nothing warned. With integers it is the same, and the result looks more harmless:

# %%
small = torch.ones(2, dtype=torch.int8)
print((small + 1000).tolist(), (small + torch.tensor(200)).tolist())

# %% [markdown]
# Two things decide. The **category** of a dtype:
#
# | category | dtypes |
# |---|---|
# | 0 boolean | `bool` |
# | 1 integer | `uint8`, `int8`, `int16`, `int32`, `int64` |
# | 2 float | `float16`, `bfloat16`, `float32`, `float64` |
# | 3 complex | `complex32`, `complex64`, `complex128` |
#
# And the **level** of an operand:
#
# | level | operand | its dtype |
# |---|---|---|
# | high | a tensor with dimensions, however few elements | its own |
# | middle | a tensor without dimensions | its own |
# | low | a Python number | `bool`, `int64`, the default dtype, or the complex dtype that goes with it |
#
# **Within a level** all operands are equals. Of two dtypes of different categories, the one of the
# higher category wins. Of two in the same category, the wider one wins. There are two ties, where
# neither holds the other's values, and the next wider dtype has to serve: `uint8` with `int8` gives
# `int16`, and `float16` with `bfloat16` gives `float32`. When a float meets a complex dtype, the
# float counts as the complex dtype that goes with it: `float64` and `complex64` give `complex128`.
# Which one goes with a float says `dtype.to_complex()`:

# %%
for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
    print(dtype, "->", dtype.to_complex())

# %% [markdown]
# **Between levels** the higher one wins, and the lower ones are heard only if their category is
# higher. An `int8` tensor and the number 1000 give `int8`; with 2.5, the number's dtype wins.
#
# Draw: show_cells({level: [str((small + make(value)).dtype).removeprefix("torch.") for value in
# (2, 2.5)] for level, make in (("a tensor with dimensions", lambda value: torch.tensor([value])),
# ("without dimensions", torch.tensor), ("a Python number", lambda value: value))}, ["2", "2.5"])
# | An `int8` tensor with dimensions, plus 2 and plus 2.5, each from all three levels.
# (`torch.tensor(2)` is `int64`, `torch.tensor(2.5)` is `float32`.)
#
# One case remains. A `float16` tensor and `torch.tensor(2j, dtype=torch.complex128)`, which has no
# dimensions: the result has to be complex, and the lower level is the complex one.
#
# **Predict.** What is its dtype? Write it as `torch.` and a name.

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # complex32 is new, and says so
    imaginary = torch.tensor(2j, dtype=torch.complex128)
    predict(..., lambda: (half + imaginary).dtype)

# %% [markdown]
# The lower level lends its category, and the higher one keeps its precision.
#
# **Write `result_dtype(*operands)`.** Each of the operands (one at least) is a tensor or a Python
# number: a `bool`, an `int`, a `float` or a `complex`. Return the dtype that PyTorch gives to an
# elementwise result of them all.
#
# - Take the levels from the highest to the lowest; leave out those that have no operand. The first
#   gives a dtype.
# - A lower level changes it only if its category is higher than what you have so far. Then its dtype
#   is the new one; but a float that becomes complex becomes the complex dtype that goes with it.
# - The default dtype is what `torch.get_default_dtype()` says at the time of the call.
#
# Work it out from dtypes and numbers of dimensions. No operator may run: its result would tell.
#
# <details><summary>Hint 1: two small functions</summary>
#
# Write `category(dtype)`, which returns 0 to 3, and a function that combines two dtypes of one
# level. A dtype knows `is_complex`, `is_floating_point` and `itemsize`.
#
# </details>
# <details><summary>Hint 2: sort the operands by level first</summary>
#
# Put the dtypes of the operands into three lists: tensors with `x.dim() > 0`, other tensors, and
# numbers. In Python `True` is an `int`, too; ask for `bool` first.
#
# </details>
# <details><summary>Hint 3: why not two at a time</summary>
#
# What two operands give together has forgotten its level. So combine each level for itself, with
# `functools.reduce` or a loop, and go down the levels after that.
#
# </details>


# %% solution="result_dtype"
def result_dtype(*operands: torch.Tensor | complex) -> torch.dtype:
    """Return the dtype of an elementwise result of tensors and Python numbers."""

    ### BEGIN SOLUTION
    def category(dtype: torch.dtype) -> int:
        if dtype.is_complex:
            return 3
        return 2 if dtype.is_floating_point else int(dtype is not torch.bool)

    def combined(one: torch.dtype, other: torch.dtype) -> torch.dtype:
        """Combine two dtypes of one level, where both have the same say."""
        low, high = sorted((one, other), key=category)
        if high.is_complex and low.is_floating_point:
            low = low.to_complex()
        if category(low) < category(high):
            return high
        if low.itemsize == high.itemsize and low is not high:
            # as wide as each other, and neither holds the other's values
            return torch.float32 if low.is_floating_point else torch.int16
        return max(low, high, key=lambda dtype: dtype.itemsize)

    def of_number(number: complex) -> torch.dtype:
        if isinstance(number, bool):  # before int: True is one
            return torch.bool
        if isinstance(number, int):
            return torch.int64
        default = torch.get_default_dtype()
        return default.to_complex() if isinstance(number, complex) else default

    tensors = [x for x in operands if isinstance(x, torch.Tensor)]
    levels = [
        [x.dtype for x in tensors if x.dim() > 0],
        [x.dtype for x in tensors if x.dim() == 0],
        [of_number(x) for x in operands if not isinstance(x, torch.Tensor)],
    ]
    first, *lower = [reduce(combined, level) for level in levels if level]
    for dtype in lower:
        if category(dtype) > category(first):
            # complex only lends its category: a float keeps its precision
            first = first.to_complex() if first.is_floating_point else dtype
    return first
    ### END SOLUTION


# %% grade="result_dtype"
grade("result_dtype")

# %% [markdown]
# In PyTorch this is `at::native::result_type` and `combine_categories`, in
# `aten/src/ATen/native/TypeProperties.cpp`. A number that took part is called *wrapped*: it travels
# as a tensor without dimensions that remembers that it was a number.

# %% [markdown] exercise="tensor_of"
# title: Make a tensor of a nested list
# minutes: 40
# difficulty: 3
# points: 12
# prerequisites: [result_dtype]
# teaches: >-
#   what `torch.tensor` does with a nested list: sizes from its first items, a dtype from all of its
#   numbers, then one allocation and a store for each number.
# leaves out: >-
#   items that are tensors, arrays or numbers of NumPy; numbers that do not fit into 64 bits; devices
#   and gradients.
# off limits: ["aten:lift_fresh", torch.tensor, torch.as_tensor, torch.asarray, torch.from_numpy, torch.frombuffer, torch.UntypedStorage, "import:numpy"]
# forbids: "whatever makes a tensor of Python's numbers, an assignment like `x[0] = 5` too; NumPy"

# %% [markdown]
# ## From Python to a tensor
#
# One exercise back, the tensors were there. `torch.tensor([[1, 2], [3, 4]])` makes one, and has to find
# size and dtype before it can ask for memory. `Asked` is a sequence that tells how it is read.


# %%
class Asked(Sequence):
    """A nested list that notes each question it is asked."""

    def __init__(self, items, log, name="x"):
        named = [(item, f"{name}[{k}]") for k, item in enumerate(items)]
        self.items = [Asked(i, log, n) if isinstance(i, list) else i for i, n in named]
        self.log, self.name = log, name

    def __len__(self):
        self.log.append(f"len({self.name})")
        return len(self.items)

    def __getitem__(self, k):
        item = self.items[k]  # an IndexError ends a loop over the items
        self.log.append(f"{self.name}[{k}]")
        return item


log = []
torch.tensor(Asked([[1, 2], [3, 4]], log))
for part in (log[:4], log[4:13], log[13:]):
    print("  ".join(part))

# %% [markdown]
# Draw: show_cells({name: [(asked, str(asked.count("["))) for asked in part] for name, part in
# (("first pass", log[:4]), ("second", log[4:13]), ("third", log[13:]))}) | The questions in
# order. One colour is for lengths of the whole, one for rows, one for numbers.
#
# Three passes. The first goes down along the **first items** and notes lengths: the size is `(2, 2)`,
# and nobody has looked at `x[1]` yet. The second reads **every number**, for the dtype. Then memory
# is allocated, and the third pass reads every number again and stores it
# (`internal_new_from_data` in `torch/csrc/utils/tensor_new.cpp`). Each number is read twice, through
# Python objects: a list of a million numbers takes far longer than an array of as many.
#
# The dtype is that of the highest category among the numbers, as in the exercise above, where all are
# Python numbers. It is not that of the first one.

# %%
for data in ([True, False], [True, 1], [1, True, 2.5], [2.5, 1j], []):
    print(f"{data!s:<16} {torch.tensor(data).dtype}")

# %% [markdown]
# `torch.Tensor` is another matter. It is the class, its dtype is the default one whatever the numbers
# are, and a single whole number is a *size*. `float32` holds whole numbers exactly up to 2 to the 24th.
#
# Draw: show_curves({"`torch.Tensor([n])`": [(n, torch.Tensor([2**24 + n]).item() - 2**24) for n in
# range(-6, 13)], "`n`": [(-6, -6), (12, 12)]}, "n − 2^24", "") | What becomes of a whole number in
# `float32`, around 2 to the 24th: beyond, only every second one is there.

# %%
print("tensor(3):          ", tuple(torch.tensor(3).shape), torch.tensor(3).dtype)
print("Tensor(3):          ", tuple(torch.Tensor(3).shape), torch.Tensor(3).dtype)
print("tensor([2**24 + 1]):", torch.tensor([2**24 + 1]).tolist())
print("Tensor([2**24 + 1]):", torch.Tensor([2**24 + 1]).tolist())

# %% [markdown]
# An empty list ends the first pass: its length is 0, and there is no first item to go on with.
#
# **Predict.** The second row below has an item, and the first has none. What is the size of
# `torch.tensor([[], [1]])`? Write a tuple, or `"error"`.

# %%
predict(..., lambda: tuple(torch.tensor([[], [1]]).shape))

# %% [markdown]
# The 1 is lost without a word: the size has no elements, and so the third pass, in which lengths are
# compared, does not take place. Everywhere else a list that is not rectangular is an error.

# %%
for data in ([[1, 2], [3]], [[1, 2], 3], [1, [2]]):
    try:
        torch.tensor(data)
    except (TypeError, ValueError) as error:
        print(f"{data!s:<13} {type(error).__name__}: {error}")

# %% [markdown]
# Storing needs some care, too. What does `x[0] = 5` cost?

# %%
x = torch.empty(4)
for name, store in [
    ("x[0] = 5", lambda: x.__setitem__(0, 5)),
    ("x[0].fill_(5)", lambda: x[0].fill_(5)),
]:
    with watch_ops() as ops, watch_memory() as memory:
        store()
    print(f"{name:<14} {memory.new_bytes} new bytes: {' '.join(ops.names)}")

# %% [markdown]
# The assignment makes a tensor of the 5 first; that is what `lift_fresh` shows. `fill_` takes the
# number as it is.
#
# **Write `tensor_of(data, dtype=None)`.** `data` is a number (a `bool`, an `int`, a `float` or a
# `complex`), or a list or tuple of numbers, or of lists and tuples, nested to any depth. Return a
# contiguous tensor of it.
#
# - The size comes from the first items; an empty list or tuple is the last dimension, of size 0.
# - The dtype is the one asked for. Without one it follows from all numbers, as your `result_dtype` says;
#   where there is none, it is the default dtype.
# - Raise `ValueError` or `TypeError` if a list is longer or shorter than the size says, if a number
#   stands where a list should, or the other way round. That includes `[[], [1]]`.
# - A list that is its own first item has no end of dimensions. Raise `ValueError`.
# - Allocate the memory of the result, once, and no other. Numbers that are given a dtype are
#   converted as `fill_` converts them; where it refuses, let its error through.
#
# <details><summary>Hint 1: three passes</summary>
#
# A loop for the sizes: while you have a list or tuple, note its length and go to its first item. Then
# a recursive function which goes through all, compares each length with the size, and
# collects the numbers in a list. Then store them.
#
# </details>
# <details><summary>Hint 2: storing</summary>
#
# The numbers come in row-major order, so `result.view(-1)` has them in the order of your list. Its
# items are views: `flat[k].fill_(number)`.
#
# </details>
# <details><summary>Hint 3: no end</summary>
#
# While you go down for the sizes, keep the lists you came through. If you meet one of them again
# (`is`, not `==`), there is no end.
#
# </details>


# %% solution="tensor_of"
def tensor_of(data: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Return a tensor of nested lists and tuples of numbers.

    dtype: if None, the one that follows from all numbers
    """
    ### BEGIN SOLUTION
    size, above, first = [], [], data
    while isinstance(first, list | tuple):
        if any(first is outer for outer in above):
            raise ValueError("too many dimensions: a list is its own first item")
        size.append(len(first))
        above.append(first)
        if not first:
            break  # no first item to go on with
        first = first[0]

    def numbers_of(item: Any, size: list[int]) -> Iterator[complex]:
        """Go through all numbers, row-major, and find what does not fit the size."""
        if isinstance(item, list | tuple) != bool(size):
            raise TypeError(f"a number and a list stand at the same depth: {item!r}")
        if not size:
            yield item
        elif len(item) != size[0]:
            raise ValueError(f"expected {size[0]} items, got {len(item)}")
        else:
            for part in item:
                yield from numbers_of(part, size[1:])

    numbers = list(numbers_of(data, size))
    if dtype is None:
        dtype = result_dtype(*numbers) if numbers else torch.get_default_dtype()

    result = torch.empty(size, dtype=dtype)
    flat = result.view(-1)
    for k, number in enumerate(numbers):
        flat[k].fill_(number)  # flat[k] = number would make a tensor of the number first
    return result
    ### END SOLUTION


# %% grade="tensor_of"
grade("tensor_of")

# %% [markdown] sitting="before-the-loop"
# question: What has a kernel decided before its loop begins?
# reached: >-
#   The strides of the result, the order and the number of its loops, and whether it may write where
#   it was told to.

# %% [markdown] exercise="loop_plan"
# title: Plan the loops
# minutes: 50
# difficulty: 4
# points: 10
# prerequisites: []
# teaches: >-
#   how an elementwise operator chooses the strides of its result, the order of its loops, and how many
#   there are.
# leaves out: >-
#   results that exist already, bytes, and operands in which two dimensions have the same step.
# off limits: [torch._prims_common, torch._refs, torch.broadcast_tensors]
# forbids: "PyTorch's own planners; operators, whose results would tell"
# allowed: []

# %% [markdown]
# ## Which strides?
#
# The dtype is known, and the size is that of the operands, broadcast. Memory for a result is one
# block without gaps. But in which order do the elements lie in it? Row-major, one would think.
#
# **Predict.** `x` has size `(3, 4)` and strides `(1, 3)`: it is a transposed matrix. What are the
# strides of `x + 1`?

# %%
x = torch.ones(4, 3).t()
predict(..., lambda: (x + 1).stride())

# %% [markdown]
# A loop that goes through `x` in the order of its memory is the fastest, and the result may as well lie
# in that order. With gaps it is the same: the result has none, but the order stays.

# %%
with_gaps = torch.ones(8, 6).t()[::2, ::2]
print("x        ", tuple(with_gaps.shape), with_gaps.stride())
print("x + 1    ", (with_gaps + 1).stride())

# %% [markdown]
# **Predict.** `y` is a plain matrix of the same size, with strides `(4, 1)`. What are the strides of
# `x + y`, and of `y + x`? Write a tuple of two tuples.

# %%
y = torch.ones(3, 4)
predict(..., lambda: ((x + y).stride(), (y + x).stride()))

# %% [markdown]
# Draw: show_cells({name: [(f"{i}, {j}", i) for i, j in sorted(((i, j) for i in range(3) for j in
# range(4)), key=lambda at: at[0] * tensor.stride(0) + at[1] * tensor.stride(1))] for name, tensor
# in (("x", x), ("y", y), ("x + y", x + y), ("y + x", y + x))}) | The indices of each in the order
# of its memory, a colour for each row.
#
# They cannot agree, and the first operand decides. Except where it has nothing to say: an operand that
# is broadcast along a dimension stays where it is there, in whatever order the loops run.

# %%
row = torch.ones(4)
print("row, read with size (3, 4):", row.expand(3, 4).stride())
print("row + x:                   ", (row + x).stride())
print("row + y:                   ", (row + y).stride())

# %% [markdown]
# ## The plan
#
# `TensorIterator` plans in three steps. Here they are, for operands that have been broadcast: each has
# a stride for every dimension of the common size, and where it repeats itself this is 0. Dimensions of
# size 1 need no loop, and their strides mean nothing. Leave them out of all three steps.
#
# **1. The order.** Begin with the last dimension innermost and the first one outermost, as in row-major
# order. Two dimensions are **compared** by asking the operands, one after the other. One that has a
# stride of 0 in either of the two dimensions has no opinion. Any other one says: the smaller stride
# belongs further in. The first opinion counts. If no operand has one, the two are *undecided*.
#
# Go through the dimensions from the second last to the first, that is, from the inside to the outside.
# Each is compared with the ones further in, from the nearest to the innermost:
#
# - If it belongs further in than the other one, the two **exchange places**, and it goes on from there.
# - If it belongs further out, stop: it has its place.
# - If the two are undecided, it stays where it is, and is compared with the next one further in.
#
# It looks like any other sort, and is none: "undecided" is no "equal". `A` may be undecided with `B`,
# and `B` with `C`, while `A` belongs further in than `C`. Python's `sorted` relies on that not
# happening. So do the steps as they stand here: with the same steps you get PyTorch's strides.
#
# **2. The result.** The innermost dimension has stride 1, and each other one has the number of elements
# within: the product of all sizes further in.
#
# **3. The loops.** Go from the innermost dimension outwards. Each dimension is a loop: so many rounds,
# and in each round a step for every operand. But a dimension **joins** the loop within it if, for the
# result and for all operands, its stride is that loop's step times its rounds: then going on is the
# same as starting the next row. Two plain matrices of a thousand rows and a thousand columns are added
# in *one* loop of a million rounds.
#
# Draw: show_cells({f"strides {strides}": [(str(cell), turn // 3) for turn, cell in
# enumerate(torch.arange(7).as_strided((2, 3), strides).flatten().tolist())] for strides in ((3,
# 1), (4, 1), (0, 1))}) | Where a size of (2, 3) is read, with three strides; the second row has
# its own colour. Only the first goes on after the row as within it.
#
# The innermost loop is the one that runs fast: vector instructions work along it. All others call it
# again and again, so the fewer the better.
#
# Take size `(2, 3, 4)`, one operand with strides `(12, 4, 1)` and one with `(0, 4, 1)`, which is
# repeated along the first dimension.
#
# **Predict.** How many loops are there?


# %%
def rounds():
    """Join by hand, from the inside: does each stride go on where the loop within ends?"""
    result, operands = (12, 4, 1), [(12, 4, 1), (0, 4, 1)]
    loops = [4]
    for dim, size in ((1, 3), (0, 2)):
        joins = all(s[dim] == s[2] * loops[-1] for s in (result, *operands))
        loops = [*loops[:-1], loops[-1] * size] if joins else [*loops, size]
    return len(loops)


predict(..., rounds)

# %% [markdown]
# **Write `loop_plan(size, strides)`.** `size` is the common size, and no size in it is 0. `strides` has
# a tuple for each operand (one at least), as long as `size`. Return a pair:
#
# - the strides of the result, a tuple as long as `size`. Where the size is 1 the stride is yours to
#   choose;
# - the loops, a list from the innermost to the outermost. Each is a pair: how many rounds, and a tuple
#   of steps: the result's first, then that of each operand.
#
# So `loop_plan((2, 3), [(3, 1)])` is `((3, 1), [(6, (1, 1))])`. Without a dimension that needs a loop,
# the list is empty. Strides count elements. No operand has the same stride in two dimensions that need a
# loop, unless it is 0.
#
# <details><summary>Hint 1: comparing</summary>
#
# Write `compare(a, b)` for two dimensions, which returns -1, 1 or 0 for undecided. In it is one loop
# over the operands, which goes on where a stride is 0.
#
# </details>
# <details><summary>Hint 2: the order</summary>
#
# Keep a list of dimensions, the innermost first. For each place from 1 on, note where the
# dimension stands now, and let a second place run from there down to 0. After an exchange the dimension
# stands at the second place.
#
# </details>
# <details><summary>Hint 3: joining</summary>
#
# For a dimension, put the steps of all into one tuple, the result's first. Compare it with the last
# loop that you have: `step * rounds` for each. If all are equal, only that loop's rounds change.
#
# </details>


# %% solution="loop_plan"
Steps = tuple[int, ...]


def loop_plan(
    size: tuple[int, ...], strides: list[tuple[int, ...]]
) -> tuple[tuple[int, ...], list[tuple[int, Steps]]]:
    """Return the strides of a new result, and the loops that fill it, the innermost first.

    strides: for each operand, as long as `size`; 0 where it is broadcast
    """

    ### BEGIN SOLUTION
    def compare(a: int, b: int) -> int:
        """Return -1 if dimension a belongs further in than b, 1 if further out, 0 if undecided."""
        for stride in strides:
            if stride[a] and stride[b]:  # a repeated dimension has no opinion
                return -1 if stride[a] < stride[b] else 1
        return 0

    order = [dim for dim in reversed(range(len(size))) if size[dim] > 1]  # the innermost first
    for place in range(1, len(order)):
        here = place
        for further_in in reversed(range(place)):
            wanted = compare(order[here], order[further_in])
            if wanted > 0:
                break
            if wanted < 0:
                # exchanged, not inserted: what was undecided in between stays where it is
                order[here], order[further_in] = order[further_in], order[here]
                here = further_in

    result, within = [1] * len(size), 1
    for dim in order:
        result[dim] = within
        within *= size[dim]

    loops = []
    for dim in order:
        steps = (result[dim], *(stride[dim] for stride in strides))
        if loops and steps == tuple(step * loops[-1][0] for step in loops[-1][1]):
            rounds, inner = loops.pop()
            loops.append((rounds * size[dim], inner))  # every one goes on where the loop ends
        else:
            loops.append((size[dim], steps))
    return tuple(result), loops
    ### END SOLUTION


# %% grade="loop_plan"
grade("loop_plan")

# %% [markdown]
# Of two operands that disagree, the first one that has an opinion decides.
#
# Look: dispatch/loops#panel=loops&size=3x4&a=4,1&b=1,3 | Two operands that disagree: the loops and the
# strides of the result. Give the second one the strides of the first, and two loops become one.

# %% [markdown]
# Here is the plan for some sums, if you have one:

# %%
if written("loop_plan"):
    for name, operands in [
        ("y + y", [y, y]),
        ("x + x", [x, x]),
        ("x + y", [x, y]),
        ("y + row", [y, row.expand(3, 4)]),
        ("y[:, :3] + 1", [y[:, :3]]),
    ]:
        strides, loops = loop_plan(tuple(operands[0].shape), [z.stride() for z in operands])
        print(f"{name:<13} result {strides!s:<7} loops {loops}")

# %% [markdown]
# The three steps are `reorder_dimensions`, `allocate_or_resize_outputs` and `coalesce_dimensions` in
# `aten/src/ATen/TensorIterator.cpp`. Before them PyTorch tries a short cut: if all operands are dense
# and have the same strides, there is one loop, and nothing to plan.

# %% [markdown] exercise="structured"
# title: Three operators from one kernel
# minutes: 40
# difficulty: 4
# points: 11
# prerequisites: [result_dtype]
# teaches: >-
#   what the forms `f(x)`, `f_(x)` and `f(x, out=y)` have in common, and what has to be refused before
#   anything is written.
# leaves out: >-
#   gradients, tensors with gaps that overlap, and kernels that do not go element by element.
# off limits: [torch._prims_common.wrappers]
# forbids: "PyTorch's own wrappers for `out=`"

# %% [markdown]
# ## Where may it write?
#
# Most operators come in three forms. Here is one of them:

# %%
for overload in (torch.ops.aten.mul.Tensor, torch.ops.aten.mul_.Tensor, torch.ops.aten.mul.out):
    print(overload._schema)

# %% [markdown]
# The first returns a new tensor, the second writes into its first argument, the third into `out`. There
# is one loop for all three. In `native_functions.yaml` such operators are called **structured**: their
# author writes a *meta function*, which says of which size and dtype the result is, and a kernel,
# which fills a tensor that it is given. The rest is generated, and the same for all of them: a new
# tensor, the old one or `out`, and a good many checks.
#
# **Predict.** `out` below has the right size, and strides `(1, 2)`. What are its strides after the
# call?

# %%
square = torch.arange(4.0).reshape(2, 2)
out = torch.empty(2, 2).t()
predict(..., lambda: torch.mul(square, 2, out=out).stride())

# %% [markdown]
# Draw: show_storage(square=square, out=out) | Both have the same shape. `out` was filled in its
# own order.
#
# An `out` that fits is used as it is. One that does not fit is resized, and that should only be done to
# one without elements:

# %%
for name, out in [("torch.empty(0)", torch.empty(0)), ("torch.zeros(3)", torch.zeros(3))]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.mul(square, 2, out=out)
    print(f"out={name}: size {tuple(out.shape)},", [str(w.message)[:46] for w in caught])

# %% [markdown]
# What is refused? Each line below asks for something that could be done in some way.

# %%
numbers, whole = torch.arange(6.0), torch.ones(6, dtype=torch.int64)
wide, narrow = numbers.double(), numbers.half()
learns = torch.ones(6, requires_grad=True)
for name, run in [
    ("torch.mul(numbers, 2.5, out=whole)", lambda: torch.mul(numbers, 2.5, out=whole)),
    ("whole.mul_(2.5)", lambda: whole.mul_(2.5)),
    ("torch.mul(wide, 2, out=narrow)", lambda: torch.mul(wide, 2, out=narrow)),
    ("torch.ones(1).mul_(numbers)", lambda: torch.ones(1).mul_(numbers)),
    ("torch.zeros(1).expand(6).mul_(numbers)", lambda: torch.zeros(1).expand(6).mul_(numbers)),
    ("numbers[1:].mul_(numbers[:-1])", lambda: numbers[1:].mul_(numbers[:-1])),
    ("square.mul_(square.t())", lambda: square.mul_(square.t())),
    ("numbers.mul_(numbers)", lambda: numbers.mul_(numbers)),
    ("torch.mul(learns, 2, out=numbers)", lambda: torch.mul(learns, 2, out=numbers)),
]:
    try:
        run()
        print(f"{name:<39} fine")
    except RuntimeError as error:
        told = str(error).removeprefix("unsupported operation: ")
        print(f"{name:<39} {shorten(told, 60, placeholder=' …')}")

# %% [markdown]
# - A float does not go into an integer. Going down within a category is allowed: `float64` into
#   `float16`. `torch.can_cast` says which.
# - An in-place operator cannot change the size of what it writes to.
# - Where two elements lie in the same place, the last one written would win.
# - If the result overlaps an operand *partly*, the loop reads what it has written already. If the two
#   are the same elements in the same order, each one is read before it is written, and all is well.
# - Autograd has no way to record a result that lands in somebody else's tensor.
#
# Draw: (lambda numbers: show_storage(written=numbers[1:], read=numbers[:-1]))(torch.arange(6)) |
# An overlap in part: what is written as element 0 is read as element 1 afterwards.
#
# And where `out` has another dtype than the result? Then the kernel needs a place for the result as
# it is, and `out` gets a copy. So `out=` does not always save memory: for `out` of 1,000
# `float32`, made of a `float32` and a `float64` tensor, PyTorch allocates 16,000 bytes on the way (as
# `torch.profiler` shows). `out` itself has 4,000.
#
# **Write `structured(meta, kernel)`.** `meta(*operands)` returns size and dtype of the result, or
# raises. `kernel(result, *operands)` fills `result`, which must have that size and dtype, and may have
# any strides; it works element by element. All operands are tensors. Return three functions:
#
# - `functional(*operands)` returns a new, contiguous tensor (PyTorch would take the plan's strides);
# - `inplace(x, *others)` takes `x` for the first operand, writes the result into it, and returns it;
# - `with_out(*operands, out)` writes the result into `out`, and returns it; `out` is given by name.
#   Where the size is another one, resize it first (`resize_`); if it had elements, give a
#   `UserWarning`.
#
# Each call calls `meta` once, and `kernel` once. Where the tensor to write to has the result's dtype, the
# kernel gets that tensor; otherwise one new tensor of the result's dtype, and what it has written is
# copied. Nothing else is allocated, beside what `resize_` needs.
#
# The last two raise `RuntimeError`, before the kernel is called and before anything is changed, if
#
# - the result's dtype cannot be cast to that of the tensor to write to;
# - `inplace` would need another size;
# - the tensor to write to repeats elements: stride 0 where the size is above 1, as after `expand`;
# - it overlaps an operand partly: they share memory, and do not have the same first byte, size and
#   strides. (Tensors of which this is asked have no gaps, so the bytes of each are one piece.)
#
# `with_out` also raises `RuntimeError` if gradients are recorded (`torch.is_grad_enabled()`), and an
# operand or `out` requires one. Gradients need no other care.
#
# <details><summary>Hint 1: what they share</summary>
#
# Two functions are enough: one that refuses, with the tensor to write to, the dtype and the operands,
# and one that calls the kernel, by way of a new tensor if need be. Both forms call the one
# after the other.
#
# </details>
# <details><summary>Hint 2: overlap</summary>
#
# Only tensors of one storage can overlap: compare `x.untyped_storage().data_ptr()`. In it a tensor
# without gaps has the bytes from `x.data_ptr()` up to `x.data_ptr() + x.numel() * x.element_size()`. Two
# pieces share something if each begins before the other ends.
#
# </details>
# <details><summary>Hint 3: the order of things</summary>
#
# `meta`, then all that is refused, then `resize_`, then the kernel. `resize_` of a tensor with elements
# does not warn by itself; `warnings.warn` does.
#
# </details>


# %% solution="structured"
Meta = Callable[..., tuple[Sequence[int], torch.dtype]]


def structured(meta: Meta, kernel: Callable) -> tuple[Callable, Callable, Callable]:
    """Return the functional, the in-place and the out= form of an operator.

    meta: from operands to size and dtype of the result; may raise
    kernel: fills its first argument, which has that size and dtype, from the operands
    """

    ### BEGIN SOLUTION
    def refuse(
        target: torch.Tensor, dtype: torch.dtype, operands: tuple[torch.Tensor, ...]
    ) -> None:
        if not torch.can_cast(dtype, target.dtype):
            raise RuntimeError(f"a result of {dtype} cannot be cast to {target.dtype}")
        if any(s == 0 and n > 1 for n, s in zip(target.shape, target.stride(), strict=True)):
            raise RuntimeError("several elements of the written-to tensor lie in one place")
        for x in operands:
            one_storage = target.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
            here, there = target.data_ptr(), x.data_ptr()
            apart = (
                here + target.numel() * target.element_size() <= there
                or there + x.numel() * x.element_size() <= here
            )
            same = here == there and target.shape == x.shape and target.stride() == x.stride()
            if one_storage and not apart and not same:
                raise RuntimeError("the written-to tensor overlaps an operand; clone one of them")

    def write(target: torch.Tensor, dtype: torch.dtype, operands: tuple[torch.Tensor, ...]) -> None:
        if target.dtype is dtype:
            kernel(target, *operands)
        else:
            computed = torch.empty(target.shape, dtype=dtype)
            kernel(computed, *operands)
            target.copy_(computed)

    def functional(*operands: torch.Tensor) -> torch.Tensor:
        size, dtype = meta(*operands)
        result = torch.empty(size, dtype=dtype)
        kernel(result, *operands)
        return result

    def inplace(x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        size, dtype = meta(x, *others)
        if tuple(size) != tuple(x.shape):
            raise RuntimeError(f"a result of size {tuple(size)} does not fit {tuple(x.shape)}")
        refuse(x, dtype, (x, *others))
        write(x, dtype, (x, *others))
        return x

    def with_out(*operands: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        size, dtype = meta(*operands)
        if torch.is_grad_enabled() and any(x.requires_grad for x in (*operands, out)):
            raise RuntimeError("out= does not support automatic differentiation")
        refuse(out, dtype, operands)
        if tuple(size) != tuple(out.shape):
            if out.numel():
                warnings.warn(f"out is resized from {tuple(out.shape)}", stacklevel=2)
            out.resize_(size)
        write(out, dtype, operands)
        return out

    return functional, inplace, with_out
    ### END SOLUTION


# %% grade="structured"
grade("structured")

# %% [markdown]
# A kernel of your own, and three operators from it:


# %%
def meta_of_mean(a, b):
    return torch.broadcast_shapes(a.shape, b.shape), result_dtype(a, b, 0.5)


def fill_with_mean(result, a, b):
    result.copy_(a).add_(b).div_(2)


if written("structured") and written("result_dtype"):
    mean, mean_, mean_out = structured(meta_of_mean, fill_with_mean)
    print(mean(torch.arange(4), torch.tensor(10)).tolist())
    print(mean_(torch.zeros(2), torch.ones(2)).tolist())
    out = torch.empty(4, dtype=torch.float16)
    print(mean_out(torch.arange(4), torch.ones(4), out=out).tolist())
    z = torch.tensor([3.0, 5.0])
    print(mean_out(torch.ones(2), z, out=z).tolist(), "and not [2.0, 3.0]")

# %% [markdown]
# The last line is wrong, and no check could see it. This kernel does not go element by element: it
# writes all of `a` into the result, and then reads `b`, which is the same memory. That a kernel reads
# each element before it writes there is a promise of its author.
#
# In PyTorch the generated code calls `set_output_raw_strided` of `TensorIterator`
# (`aten/src/ATen/TensorIterator.cpp`), and the overlap is found in
# `aten/src/ATen/MemoryOverlap.cpp`.
# %% [markdown] sitting="in-between"
# question: How do tensor subclasses and vmap change what an operator means?
# reached: >-
#   By taking the call before a kernel does: they take a tensor apart, or add a dimension, and call
#   operators again.

# %% [markdown] exercise="Affine8"
# title: A tensor that is made of others
# minutes: 40
# difficulty: 4
# points: 11
# prerequisites: [patched]
# teaches: >-
#   what a wrapper subclass of tensors is given and must give back: its looks, its views, its copies and
#   writes to it.
# leaves out: >-
#   autograd through the numbers, `torch.compile`, saving to a file, `out=`, views as another dtype, and
#   writes whose values need another scale.
# off limits: [torch.quantize_per_tensor, torch.quantize_per_tensor_dynamic, torch.fake_quantize_per_tensor_affine]
# forbids: "PyTorch's own quantisation"

# %% [markdown]
# The table of the dispatcher has a row `Python`. A tensor has that key if its class has a
# `__torch_dispatch__`, and the key comes after autograd and before every backend: each operator on such
# a tensor is handed to this method, with the arguments, and what it returns is the result.
#
# Look: dispatch/keys#call=add&x=subclass | `x + 1` for a tensor of such a class. Step through its
# stops: `Python` comes after autograd and before `CPU`.
#
# So a tensor need not have memory. `_make_wrapper_subclass` makes one that has a shape, strides and a
# dtype, and nothing else. What it stands for is your affair. Here is one that stands for a range of
# numbers:


# %%
class Range(torch.Tensor):
    """The numbers from 0 to n - 1."""

    @staticmethod
    def __new__(cls, n):
        return torch.Tensor._make_wrapper_subclass(cls, (n,), dtype=torch.float32)

    def __init__(self, n):
        self.n = n  # the tensor is made: what belongs to it are plain attributes

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        print(func)
        plain = tree_map(
            lambda one: torch.arange(one.n).float() if isinstance(one, cls) else one, args
        )
        return func(*plain, **(kwargs or {}))


numbers = Range(4)
print(numbers.shape, numbers.dtype, numbers.stride())
print(numbers * 2)
print(torch.cat([numbers, numbers]).sum())
print(numbers.t().reshape(2, 2))

# %% [markdown]
# `shape` and `stride()` were not asked for: they are kept in C++, as you gave them. The cat's tensors
# came in a list; `tree_map` reaches them there.
#
# **Predict.** Four numbers of float32 are 16 bytes. How many bytes does the storage of `numbers` say it
# has, and at which address are they?

# %%
predict(..., lambda: f"{numbers.untyped_storage().nbytes()} bytes at {numbers.data_ptr()}")

# %% [markdown]
# It claims them, and has none: the address is 0. Programs that ask a storage for its size are wrong
# about such tensors.
#
# **Predict.** Now somebody writes to it, or to a part. What does `numbers` hold afterwards?

# %%


def written_to():
    numbers[1:].mul_(100)
    numbers.add_(1)
    return (numbers + 0).tolist()


predict(..., written_to)

# %% [markdown]
# As before. The method made a plain tensor, that was written, and then it was gone. A view was a
# plain tensor as well, that knows nothing of where it came from. Whoever takes a tensor apart has to
# think of three kinds of operators:
#
# | kind | how to know | what must be so |
# |---|---|---|
# | views | `func.is_view` | the result shares memory with the argument |
# | writes | `func._schema.is_mutable` | the argument has changed afterwards, and all that share its memory |
# | all others | | the result is right |
#
# **Weights in eight bits.** A float32 weight takes four bytes. Stored as $q \cdot s$, with whole numbers
# $q$ from -127 to 127 and one scale $s$ for all, it takes one. You have seen the arithmetic in
# chapter 1, in `quantize`. Here it becomes a tensor that any module can hold.
#
# **Write the class `Affine8`**, a subclass of `torch.Tensor`.
#
# - `Affine8(q, scale)`, of an int8 tensor and a float32 tensor without dimensions, looks like a
#   float32 tensor on q's device, with q's shape and strides. It does not require grad. It keeps both as
#   attributes, as they are, `q` and `scale`, and nothing in float32 but the scale.
# - `Affine8.quantize(x)`: the scale is the largest absolute value divided by 127, or 1 if all are
#   zero; `q` is `x / scale`, rounded to the nearest.
# - `dequantize()` is the float32 tensor `q * scale`.
# - *Views* of an `Affine8` are `Affine8`, also where an operator returns several of them. Their `q` is the
#   view of its `q`, and shares its memory; their scale is its scale.
# - *Copies* by `clone`, and what is made by it (`contiguous`, `copy.deepcopy`), are `Affine8` with a `q` of
#   their own.
# - *Writes* to an `Affine8` write into its `q`. The scale stays. What is written is what the operator
#   gives for float32, divided by the scale and rounded; beyond 127 and -127 it becomes 127 and -127.
# - *Any other operator* gives what it gives for the float32 tensors, and plain tensors. That is so for
#   writes to a plain tensor, too.
#
# "Rounded" is as `torch.round` does it.
#
# <details><summary>Hint 1: an order</summary>
#
# Write a small function that turns an `Affine8` into a float32 tensor and leaves all else as it is. With
# `tree_map` and this function over `args` and `kwargs`, any other operator is one line.
#
# </details>
# <details><summary>Hint 2: views</summary>
#
# Run the view on `q`, with all arguments but the first. What comes back is a tensor, or a list of
# them: `tree_map` goes for both. `clone` can take the same road.
#
# </details>
# <details><summary>Hint 3: writes</summary>
#
# The float32 tensor that you make of the first argument is your own: let the operator write to it. Then
# bring its values into `q` by `copy_`, and return the first argument itself.
#
# </details>


# %% solution="Affine8"
class Affine8(torch.Tensor):
    """A float32 tensor by its looks: whole numbers of eight bits, times one scale."""

    @staticmethod
    def __new__(cls, q: torch.Tensor, scale: torch.Tensor) -> "Affine8":
        """Return a tensor that is made of `q`, int8 of any shape, and `scale`, float32 of none."""
        ### BEGIN SOLUTION
        # Strides are part of the looks: `is_contiguous` and `reshape` go by them, and ask nobody.
        return torch.Tensor._make_wrapper_subclass(
            cls,
            q.shape,
            strides=q.stride(),
            storage_offset=q.storage_offset(),
            dtype=torch.float32,
            device=q.device,
        )

    def __init__(self, q, scale):
        self.q = q
        self.scale = scale

    @classmethod
    def quantize(cls, x):
        scale = x.abs().max() / 127
        scale = torch.where(scale == 0, 1.0, scale)
        return cls(rounded(x, scale), scale)

    def dequantize(self):
        return self.q * self.scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        first = args[0]
        if isinstance(first, cls) and (func.is_view or func is aten.clone.default):
            results = func(first.q, *args[1:], **kwargs)
            return tree_map(lambda q: cls(q, first.scale), results)
        result = func(*tree_map(as_float, args), **tree_map(as_float, kwargs))
        if isinstance(first, cls) and func._schema.is_mutable:
            # The operator wrote to the float32 tensor, and returned it.
            first.q.copy_(rounded(result, first.scale))
            return first
        return result


def as_float(one):
    return one.dequantize() if isinstance(one, Affine8) else one


def rounded(x, scale):
    return (x / scale).round().clamp(-127, 127).to(torch.int8)
    ### END SOLUTION


# %% grade="Affine8"
grade("Affine8")

# %% [markdown]
# Now a module can hold it, and knows nothing of it. `F.linear` is `t` and `addmm`: a view, which stays in
# eight bits, and a product.

# %%
if written("Affine8"):
    layer = nn.Linear(512, 512)
    before = layer(torch.ones(1, 512))
    small = Affine8.quantize(layer.weight.detach())
    layer.weight = nn.Parameter(small, requires_grad=False)
    change = (layer(torch.ones(1, 512)) - before).abs().max()
    print(f"{small.q.nbytes} bytes, where there were {4 * small.numel()}")
    print("the output changed by less than 0.1:", bool(change < 0.1))

# %% [markdown]
# `torchao` is built of such classes, and `DTensor` is one. To go through `torch.compile` as well, a class says
# what it is made of: `__tensor_flatten__` gives the names of its tensors, `__tensor_unflatten__` makes
# it of them again.

# %% [markdown] exercise="vmap"
# title: One example's program, for a batch
# minutes: 50
# difficulty: 5
# points: 12
# prerequisites: [Affine8]
# teaches: >-
#   how a tensor subclass takes a call before any kernel does, what a batching rule is, and why
#   functions that know nothing of batches can be nested.
# leaves out: >-
#   autograd, `randomness`, empty batches, writes through views, mixed dtypes (a number for each example
#   has a dimension in the batch, and then it counts for the result's dtype), `t` and `transpose` of
#   examples without dimensions, and a vector times a matrix, in which `matmul` removes a dimension in place.
# off limits: [torch.vmap, torch.func.vmap, torch._functorch.vmap.vmap_impl, torch._functorch.apis.vmap, torch._C._functorch._add_batch_dim, torch.func.jacrev, torch.func.jacfwd]
# forbids: "PyTorch's own vmap, and what is made of it"

# %% [markdown]
# A function is written for one example. `torch.vmap(function)` makes of it one for a batch. It is
# often said to be a loop.
#
# **Predict.** How often is `transformed` called for a batch of five vectors, and what does it see?

# %%
matrix, batch = torch.ones(3, 4), torch.ones(5, 4)
seen = []


def transformed(v):
    seen.append(f"{type(v).__name__} {tuple(v.shape)}")
    return matrix @ v


def what_is_seen():
    seen.clear()
    torch.vmap(transformed)(batch)
    return seen


predict(..., what_is_seen)


# %% [markdown]
# Draw: show_bars({"a loop over five": len(names_of(lambda: [matrix @ one for one in batch])),
# "vmap": len(names_of(lambda: torch.vmap(lambda one: matrix @ one)(batch)))}, "operators") | What
# runs for the five products.
#
# Once, and it sees a vector. What runs is `permute`, `mm`, `permute`: a matrix times five vectors is
# a matrix times a matrix. A tensor that says it has four elements and carries twenty is all there is
# to it. Every operator that meets one is told by a **batching rule** what to do with the twenty.
#
# A wrapper subclass can be one: its shape need not be that of what it carries. See which operators
# arrive at its `__torch_dispatch__`:


# %%
class Shown(torch.Tensor):
    """One example by its looks. Its `value` is the batch, (batch, *shape)."""

    @staticmethod
    def __new__(cls, value):
        return torch.Tensor._make_wrapper_subclass(
            cls, value.shape[1:], strides=value.stride()[1:], dtype=value.dtype
        )

    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        print(func, [tuple(one.shape) for one in args if isinstance(one, torch.Tensor)])
        raise NotImplementedError


def show(call):
    with suppress(NotImplementedError):
        call()


v, m = Shown(torch.ones(5, 4)), Shown(torch.ones(5, 3, 4))
show(lambda: matrix @ v)
show(lambda: v @ v)
show(lambda: m.mean(-1))
show(lambda: v.relu())
show(lambda: v[0])

# %% [markdown]
# `matrix @ v` is a `matmul`, and a `matmul` is no kernel: it looks at the shapes and calls `mv`, `dot`,
# `mm` or others. By the shapes of *one example*, which is what we want. The rule for `mv` need know
# nothing else.
#
# Most rules are short once the batch dimension is always the first of the value:
#
# | operators | rule |
# |---|---|
# | those with `torch.Tag.pointwise` in `func.tags` | the same operator on the values, once they have the same number of dimensions |
# | with numbers of dimensions: `sum`, `select`, `transpose` … | the same with other numbers |
# | with sizes: `view`, `expand` | the same with one size more |
# | products: `mm`, `mv`, `dot`, `bmm` | one that takes a batch |
#
# PyTorch has such rules for 600 overloads of operators, and for what has none a loop.
#
# **Predict.** `torch.histc` has no rule. How many operators run for five vectors?


# %%
class Count(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.number = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.number += 1
        return func(*args, **(kwargs or {}))


def operators(function):
    with Count() as count, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of the loop
        torch.vmap(function)(batch)
    return count.number


predict(..., lambda: operators(lambda v: torch.histc(v, bins=3)))

# %% [markdown]
# Five times `select` and `histc`, then `stack`, and one each to bring the batch to the front and the
# result into its shape.
#
# **Two at once.** In `vmap(lambda x: vmap(lambda y: x * y)(ys))(xs)` the inner function meets `y`, of
# the inner batch, and `x`, of the outer one. Both look like one example. They must not be paired with each other, even
# if the batches have the same size. So each batched tensor has a **level**, and an inner `vmap` has a
# higher one. An operator is a matter of the highest level among its arguments: what is of a lower
# one is, for this rule, a tensor like any other. When the rule then calls operators on the values,
# these may be batched tensors of the next level, and all begins again.
#
# There is one difference the second time:


# %%
class Doubled(Shown):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        print(func, "calls matmul")
        return torch.matmul(args[0].value, args[1])


outer = Doubled(Shown(torch.ones(2, 5, 3, 4)))
show(lambda: outer @ torch.ones(4))

# %% [markdown]
# Inside a `__torch_dispatch__` composites arrive whole: `aten.matmul` and not what it is made of.
# `func.decompose(*args, **kwargs)` runs one by its parts. For what is no composite it returns
# `NotImplemented`.

# %% [markdown]
# **Write `vmap(function, in_dims=0, out_dims=0)`.** It returns a function that takes the same
# positional arguments, in batches, and gives the results for all examples at once. `function` is
# called once.
#
# - `in_dims` is a number, or a tuple with a number or `None` for each argument: which dimension is
#   the batch's. An argument with `None` is handed on as it is. If no argument has a batch, or two
#   batches have other sizes, raise a `ValueError`.
# - `function` returns a tensor or a tuple of tensors. In each, the batch becomes dimension
#   `out_dims`. A result in which there is no batch is the same for each example. All these numbers
#   may be negative.
# - For functions of the following operators, the number of operators that run does not depend on the
#   size of the batch, and nothing is warned of: all pointwise ones; `sum`, `mean` and `amax`, with one
#   or several dimensions, with `keepdim`, and `sum` and `amax` without any; `select`, `unsqueeze`, `transpose`, `t`,
#   `permute`, `view`, `_unsafe_view`, `expand`; `mm`, `mv`, `dot`, `bmm`; and composites of these.
# - Any other operator runs once for each example, and warns, with its name in the warning. It may
#   return several tensors, and take tensors in lists.
# - `vmap` may be used inside of `function`, and tensors of the outer one are used in the inner one. For
#   the operators above, their number does not depend on either size.
# - With a batch, these raise a `RuntimeError`: an operator with `torch.Tag.data_dependent_output`
#   (`item`, an `if`), one with `torch.Tag.nondeterministic_seeded`, and one that writes a batch into a
#   tensor that has none. To write into a tensor of the batch is allowed, and changes the argument.
#
# <details><summary>Hint 1: one place for all</summary>
#
# `__torch_dispatch__` finds the highest level among the arguments (`tree_leaves((args, kwargs))` from
# `torch.utils._pytree` gives them all), refuses what is to be refused, finds the rule, and wraps
# what the rule returns in that level. The rules never see a class.
#
# </details>
# <details><summary>Hint 2: numbers of dimensions</summary>
#
# With the batch in front, a dimension counted from the end keeps its number. One counted from the
# front is one further. For the pointwise: shapes are aligned at their ends, so a tensor with fewer
# dimensions gets its new ones right behind the batch.
#
# </details>
# <details><summary>Hint 3: products</summary>
#
# `torch.matmul` takes matrices with any dimensions in front of the last two, and broadcasts those. So
# `mv` is a product with a matrix of one column. `dot` is a pointwise product and a sum.
#
# </details>


# %% solution="vmap"
def vmap(function: Callable, in_dims: int | tuple = 0, out_dims: int = 0) -> Callable:
    """Return a function that gives the results of `function` for each example of a batch."""
    ### BEGIN SOLUTION

    def run(*args):
        dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
        pairs = list(zip(args, dims, strict=True))
        sizes = {arg.shape[dim] for arg, dim in pairs if dim is not None}
        if len(sizes) != 1:
            raise ValueError(f"one size of the batch is needed, not {sorted(sizes)}")
        (size,) = sizes
        level = next(LEVELS)  # an inner vmap begins later, so it has a higher one
        given = [arg if dim is None else Batched(arg.movedim(dim, 0), level) for arg, dim in pairs]

        def with_batch(result):
            if is_batched(result, level):
                value = result.value
            else:
                value = result.expand(size, *result.shape)
            return value.movedim(0, out_dims)

        return tree_map(with_batch, function(*given))

    return run


LEVELS = itertools.count()


class Batched(torch.Tensor):
    """One example by its looks. Its value is the batch, whose dimension is the first."""

    @staticmethod
    def __new__(cls, value, level):
        # Strides decide whether a reshape is a view: they are those of an example.
        return torch.Tensor._make_wrapper_subclass(
            cls, value.shape[1:], strides=value.stride()[1:], dtype=value.dtype
        )

    def __init__(self, value, level):
        self.value = value
        self.level = level

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        leaves = tree_leaves((args, kwargs))
        level = max(one.level for one in leaves if isinstance(one, Batched))
        for tag in (torch.Tag.data_dependent_output, torch.Tag.nondeterministic_seeded):
            if tag in func.tags:
                raise RuntimeError(f"{func} has no meaning for a batch ({tag})")
        if func._schema.is_mutable and not is_batched(args[0], level):
            raise RuntimeError(f"{func} would write a batch into a tensor that has none")
        if torch.Tag.pointwise in func.tags:
            result = pointwise(func, level, *args, **kwargs)
        elif func in RULES:
            result = RULES[func](func, level, *args, **kwargs)
        else:
            result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result  # its parts came by here, each with its own rule
            result = loop(func, level, *args, **kwargs)
        return tree_map(
            lambda one: Batched(one, level) if isinstance(one, torch.Tensor) else one, result
        )


def is_batched(one, level):
    # Of a lower level: an ordinary tensor for the rules of this one.
    return isinstance(one, Batched) and one.level == level


def value_of(one, level):
    return one.value if is_batched(one, level) else one


def aligned(one, level, rank):
    """Return the value with its dimensions at the end, behind the batch, `rank` of them."""
    if not is_batched(one, level):
        return one  # PyTorch aligns it so by itself
    value = one.value
    for _ in range(rank - one.dim()):
        value = value.unsqueeze(1)
    return value


def pointwise(func, level, *args, **kwargs):
    rank = max(one.dim() for one in args if isinstance(one, torch.Tensor))
    return func(*(aligned(one, level, rank) for one in args), **kwargs)


def moved(dim):
    """Return a dimension's number, or a list of them, where the batch is in front."""
    if isinstance(dim, list):
        return [moved(one) for one in dim]
    return dim + 1 if dim >= 0 else dim


def with_dim(func, level, x, dim, *args):
    return func(x.value, moved(dim), *args)


def transpose(func, level, x, first, second):
    return func(x.value, moved(first), moved(second))


def reduction(func, level, x, dims=(), *args, **kwargs):
    if not x.dim():  # -1 would be the batch: give an example a dimension to reduce
        return func(x.value.unsqueeze(1), [1], **kwargs)
    # No dimension stands for all. All but the batch, here: they have to be named.
    dims = moved(dims) if dims else list(range(1, x.value.dim()))
    return func(x.value, dims, *args, **kwargs)


def sum_all(func, level, x, **kwargs):
    return x.value.reshape(x.value.shape[0], -1).sum(1, **kwargs)


def t(func, level, x):
    return x.value.transpose(1, -1)  # of a vector: nothing


def permute(func, level, x, dims):
    return x.value.permute(0, *moved(dims))


def view(func, level, x, size):
    return func(x.value, [x.value.shape[0], *size])


def expand(func, level, x, size):
    return aligned(x, level, len(size)).expand(-1, *size)


def product(func, level, a, b):
    return value_of(a, level) @ value_of(b, level)


def mv(func, level, a, v):
    column = value_of(v, level).unsqueeze(-1)
    return (value_of(a, level) @ column).select(-1, 0)


def dot(func, level, a, b):
    return (value_of(a, level) * value_of(b, level)).sum(-1)


RULES = {
    aten.sum.default: sum_all,
    aten.sum.dim_IntList: reduction,
    aten.mean.dim: reduction,
    aten.amax.default: reduction,
    aten.select.int: with_dim,
    aten.unsqueeze.default: with_dim,
    aten.transpose.int: transpose,
    aten.t.default: t,
    aten.permute.default: permute,
    aten.view.default: view,
    aten._unsafe_view.default: view,
    aten.expand.default: expand,
    aten.mm.default: product,
    aten.bmm.default: product,
    aten.mv.default: mv,
    aten.dot.default: dot,
}


def loop(func, level, *args, **kwargs):
    """Call the operator for each example. Its results may be several."""
    warnings.warn(f"{func} has no rule: one call for each example", stacklevel=2)
    leaves = tree_leaves((args, kwargs))
    size = next(one.value.shape[0] for one in leaves if is_batched(one, level))
    rows = []
    for number in range(size):
        row = tree_map(
            lambda one, number=number: one.value[number] if is_batched(one, level) else one,
            (args, kwargs),
        )
        rows.append(func(*row[0], **row[1]))
    if isinstance(rows[0], torch.Tensor):
        return torch.stack(rows)
    return tuple(map(torch.stack, zip(*rows, strict=True)))
    ### END SOLUTION


# %% grade="vmap"
grade("vmap")

# %% [markdown]
# PyTorch's batched tensors are `BatchedTensorImpl` in C++, with a level and the place of the batch
# dimension: it need not be the first. Their rules stand in `aten/src/ATen/functorch/BatchRules*.cpp`.
# `torch.func.grad` is the same trick with another wrapper, and so the two can be nested: gradients for
# each example are `vmap(grad(loss))`.

# %% [markdown] sitting="values"
# question: Can a program run without writing into memory?
# reached: >-
#   Yes. Each write becomes a new value, views become a recipe of how to read it and how to put a part
#   back, and one copy at the end tells your caller. Every compiler of tensors does this first.

# %% [markdown] exercise="functionalize"
# title: Run a program that writes, without writing
# minutes: 65
# difficulty: 5
# points: 10
# prerequisites: [read_schema, patched]
# teaches: >-
#   how functionalization turns writes into values: twins of in-place operators, views as a recipe over
#   a base, and the way back from a part to the whole.
# leaves out: >-
#   autograd, `out=`, random numbers, operators that return several views (`split`, `unbind`), writes
#   that change a shape or strides (`t_`, `resize_`, and `squeeze_`, which a vector times a matrix
#   contains), and strides of results and of what the function makes that is not contiguous.
# off limits: [torch.func.functionalize, torch._to_functional_tensor, torch._subclasses.functional_tensor.FunctionalTensorMode, torch.fx.experimental.proxy_tensor.make_fx, torch.compile, functorch.compile.aot_function, torch.export.export, "aten:as_strided", "aten:as_strided_scatter"]
# forbids: "PyTorch's own functionalization and capture; `as_strided`"

# %% [markdown]
# A compiler wants to move operators, merge them, and drop those whose result nobody uses. As long as
# operators write into memory that others read, it may do none of that: the order is part of the
# program. So a compiler's first step is to get rid of all writes. It is called
# **functionalization**, and you have used it: `torch.compile` does it before it splits a graph.
#
# First see what there is to get rid of. A mode sees operators below autograd, and an operator knows
# its schema: whether it writes, and whether its result is a view.


# %%
class Ops(TorchDispatchMode):
    """Prints each operator."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        what = "writes" if func._schema.is_mutable else "view" if func.is_view else ""
        print(f"{func!s:24} {what}")
        return func(*args, **(kwargs or {}))


def program(x):
    row = x[0]
    x.add_(1)
    row[1:].mul_(2)
    x[x > 5] = 0.0
    return row.sum()


with Ops():
    program(torch.arange(6.0).view(2, 3))

# %% [markdown]
# Draw: (lambda x: show_storage(x=x, row=x[0], behind=x[0][1:]))(torch.arange(6).view(2, 3)) | Who
# writes to `row[1:]` writes to `row` and to `x`. Without writes, that has to be said in another
# way.
#
# `lift_fresh` is how a tensor made from Python data, here the 0.0, first shows itself. It counts as
# a view, of the tensor that it is given.
#
# Now PyTorch's own functionalization of a small program.
#
# **Predict.** Two writes through views of the argument. How many operators will still write?


# %%
def through_views(x):
    x[0].add_(1)
    x.t()[2].mul_(2)
    return x.sum()


def functional():
    names = []

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(f"{func}{' writes' if func._schema.is_mutable else ''}")
            return func(*args, **(kwargs or {}))

    x = torch.zeros(2, 3)
    with Names():
        torch.func.functionalize(through_views)(x)
    return "\n".join(names)


predict(..., functional)

# %% [markdown]
# Draw: show_graph(__import__("torch.fx.experimental.proxy_tensor",
# fromlist=["make_fx"]).make_fx(torch.func.functionalize(through_views))(torch.zeros(2, 3))) | The
# program without its writes, but for one.
#
# One: at the end, the argument gets its new content by a `copy_`, because your caller is to see it.
# All else makes new tensors. Three ideas are enough for that.
#
# **A twin.** An operator that writes nearly always has a twin that returns what would have been
# written: `add_` has `add`, `index_put_` has `index_put`. The twin has the same name without the
# last `_`, the same overload, the same arguments. How many have one?

# %%
writing, with_twin = [], []
for name in torch._C._dispatch_get_all_op_names():
    namespace, _, name = name.partition("::")
    name, _, overload = name.partition(".")
    if namespace == "aten" and name.endswith("_") and not name.endswith("__"):
        writing.append(name)
        twin = getattr(aten, name[:-1], None)
        if twin is not None and (overload or "default") in twin.overloads():
            with_twin.append(name)
print(f"{len(with_twin)} of {len(writing)} names that end in _ have a twin")

packet = aten.add_  # the operator with all its overloads
print(packet.Tensor._schema.name, packet.Tensor._overloadname, aten.add.Tensor)

# %% [markdown]
# **Predict.** Then this mode should do: it calls the twin wherever something would be written. What is
# the sum, and what is `x._version` afterwards?


# %%
class Twins(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func._schema.is_mutable:
            packet = getattr(aten, func._schema.name.removeprefix("aten::")[:-1])
            func = getattr(packet, func._overloadname)
        return func(*args, **(kwargs or {}))


def with_twins():
    x = torch.zeros(3)
    with Twins():
        x.add_(1)
        x.add_(1)
        total = x.sum()
    return f"sum {total:.0f}, version {x._version}"


predict(..., with_twins)

# %% [markdown]
# The sum is 0: nobody wrote, and `x` is still the old tensor. (Its version is counted by a kernel
# above the mode, which takes a write for a write.) The program goes on to say `x`, and means the new
# value. So somebody has to keep book.
#
# **A book.** Inside a mode, a tensor that the program holds need not contain what the program
# thinks. It can be a *name*: you keep for each name which **memory** it is in, and you keep for each
# memory its content at this moment, as a value. A write changes the book: from now on this memory's
# content is that other tensor. Before an operator runs, each name among its arguments is replaced by
# what it stands for now.
#
# **A recipe.** A view is a name as well. It is in its base's memory, and the book says how to get
# from the content to it: the view operators, in order. To read `x.t()[2]`, run `t` and `select` on
# the content. To write to it, go back: make a new content from the old one and the new part. For
# some views PyTorch has operators for this step:

# %%
whole = torch.zeros(2, 3)
print(torch.select_scatter(whole, torch.ones(3), 0, 1))
print(torch.slice_scatter(whole, torch.ones(2, 1), 1, 2, 3))
print(torch.diagonal_scatter(whole, torch.ones(2)))

# %% [markdown]
# They take the base, the part, and then what the view operator took. Others only bring elements into
# another order, and the way back is such an operator, too. With two steps, `x.t()[2]`, it goes
# like this:
#
# | content | | recipe | | back |
# |---|---|---|---|---|
# | `c`, (2, 3) | → | `t = c.t()`, (3, 2) | → | `new_c = new_t.t()` |
# | | | `part = t[2]`, (2,) | → | `new_t = select_scatter(t, new_part, 0, 2)` |
#
# So the part that was made last goes back first.
#
# Look: strides/cells#shape=3x4&ops=index.to.1&at=1 | `x[:, 1]` of a 3 × 4: the three of twelve numbers
# that a part stands for. The new content has new ones in these places, and the old ones in all others.

# %% [markdown]
# **Write `functionalize(function)`.** It returns a function that takes the same positional
# arguments and gives what `function` gives: the same results, and the same content of the arguments
# afterwards. `function` is called once in each call. While it runs, and afterwards, no operator
# writes, with one exception: each tensor argument that `function` wrote to, itself or through a
# view, gets its content by one `copy_`, at the end.
#
# - `function` writes to its arguments, to tensors that it makes, and to views of both. It writes by
#   operators of ATen that have a twin, and write their first argument.
# - Views that it writes through are made by `select`, `slice`, `diagonal`, `t`, `transpose`,
#   `permute`, `view`, `unsqueeze`, `squeeze` and `detach`. `func.is_view` may be believed. Numbers of
#   dimensions may be negative.
# - What is written into keeps its dtype. Where the twin's result has another shape, or a dtype that
#   `torch.can_cast` refuses to turn into that dtype, raise a `RuntimeError`, as PyTorch does.
# - Results are tensors, other values, and tuples, lists and dicts of such. A result that is an
#   argument is this argument, and a result that is a view of one is a view of it, also after the
#   `copy_`.
# - To read through a view copies nothing.
# - A twin may lay its result out in another way than what is written: that of `x.t().tril_()` does. What a
#   contiguous tensor contains stays contiguous, so that `x.view(-1)` still works.
# - Arguments are contiguous and do not require grad. No two share memory; one may come twice.
#
# <details><summary>Hint 1: the book</summary>
#
# A `TorchDispatchMode`, made anew in each call, with a dict from `id(tensor)` to the tensor, its
# memory and the steps of its recipe. Keep the tensor in it: an `id` is a tensor's only while it lives. A
# tensor that is not in the dict has a memory of its own, whose content is this tensor, and no steps.
#
# </details>
# <details><summary>Hint 2: three kinds of operators</summary>
#
# A view: run it, and note the result with the memory of its first argument and one step more. An
# operator that writes: run its twin on what the arguments stand for now, and put the result into
# the memory; return the first argument. Any other: run it on what its arguments stand for.
# `tree_map(f, (args, kwargs))` calls `f` on everything inside tuples, lists and dicts.
#
# </details>
# <details><summary>Hint 3: the way back</summary>
#
# A recursion: `put_back(content, steps, new)` is `new` if there are no steps. Otherwise run the first
# view on `content`, put `new` back into that by the other steps, and undo the first view: a scatter,
# an inverse order, or a `reshape` to the shape of `content`.
#
# </details>


# %% solution="functionalize"
def functionalize(function: Callable) -> Callable:
    """Return a function that gives what `function` gives, and writes only to its arguments, at the end."""
    ### BEGIN SOLUTION

    def run(*args):
        book = Book()  # what one call has noted means nothing to the next
        with book:
            result = function(*args)
        for argument in args:
            if isinstance(argument, torch.Tensor):
                memory, _ = book.place(argument)
                if memory.content is not argument:
                    argument.copy_(memory.content)
                    # Results that are views of the argument are made from the argument.
                    memory.content = argument
        return tree_map(book.read, result)

    return run


class Memory:
    """What the program takes for memory: its content at this moment, which nobody ever writes to."""

    def __init__(self, content):
        self.content = content


class Book(TorchDispatchMode):
    """Knows of each tensor that the program holds in which memory it is, and by which views."""

    def __init__(self):
        super().__init__()
        self.places = {}

    def place(self, tensor):
        """Return the memory of a tensor, and the steps that lead from its content to the tensor."""
        if id(tensor) not in self.places:
            # The tensor is kept as well: while it lives, nobody else has its id.
            self.places[id(tensor)] = tensor, Memory(tensor), ()
        return self.places[id(tensor)][1:]

    def read(self, value):
        """Return what a tensor stands for now. Each time anew: another name may have been written."""
        if not isinstance(value, torch.Tensor):
            return value
        memory, steps = self.place(value)
        found = memory.content
        for view, args in steps:
            found = view(found, *args)
        return found

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func.is_view:
            # What it contains is of no interest: it has the right shape, and is a new name.
            result = func(*args, **kwargs)
            memory, steps = self.place(args[0])
            self.places[id(result)] = result, memory, (*steps, (func, args[1:]))
            return result
        now, now_kwargs = tree_map(self.read, (args, kwargs))
        if not func._schema.is_mutable:
            return func(*now, **now_kwargs)
        packet = getattr(aten, func._schema.name.removeprefix("aten::").removesuffix("_"))
        new = getattr(packet, func._overloadname)(*now, **now_kwargs)
        written = args[0]
        # The twin widens and broadcasts. A write cannot.
        if new.shape != written.shape or not torch.can_cast(new.dtype, written.dtype):
            raise RuntimeError(f"{func}: the result does not fit what is written into")
        memory, steps = self.place(written)
        content = put_back(memory.content, steps, new.to(written.dtype))
        # A twin may lay its result out in another way, and a later `view` goes by strides.
        memory.content = content.contiguous() if memory.content.is_contiguous() else content
        return written


SCATTER = {
    aten.select.int: torch.select_scatter,
    aten.slice.Tensor: aten.slice_scatter,  # torch.slice_scatter's defaults are no others
    aten.diagonal.default: torch.diagonal_scatter,
}


def put_back(content, steps, new):
    """Return `content` with `new` in the place to which the steps lead."""
    if not steps:
        return new
    (view, args), *rest = steps
    part = put_back(view(content, *args), rest, new)
    if view in SCATTER:
        return SCATTER[view](content, part, *args)
    if view is aten.t.default:
        return part.t()
    if view is aten.transpose.int:
        return part.transpose(*args)  # its own inverse
    if view is aten.permute.default:
        order = [dim % content.dim() for dim in args[0]]
        return part.permute([order.index(dim) for dim in range(content.dim())])
    # view, unsqueeze, squeeze, detach and lift_fresh leave the elements in order
    return part.reshape(content.shape)
    ### END SOLUTION


# %% grade="functionalize"
grade("functionalize")

# %% [markdown]
# PyTorch's own is `FunctionalTensorWrapper`, a tensor in C++ that holds the value, and
# `FunctionalStorageImpl`, your memory, with a list of updates that are applied when somebody reads.
# The ways back stand in `FunctionalInverses.cpp`, one function for each view. It lets go of one thing
# that yours keeps:

# %%
x = torch.zeros(2, 3)
for name, make in (
    ("torch.func.functionalize", torch.func.functionalize),
    *([("yours", functionalize)] if written("functionalize") else []),
):
    row = make(lambda x: x.add_(1)[0])(x)
    x.zero_()
    print(f"{name}: the result's sum after x was set to zero is {row.sum():.0f}")

# %% [markdown]
# `torch.compile` needs the alias, too. There it is made again after the compiled program has run,
# from the argument: as you do it.

# %% [markdown] sitting="device-memory"
# question: Where does a tensor of a new device live?
# reached: >-
#   In a block that belongs to its storage. Tensors come and go, also inside autograd; the storage
#   stays as long as one of them does, and views find the block through it.

# %% [markdown]
# ## A name, and no kernels
#
# A device is a name, one key of the dispatcher, and kernels under that key. PyTorch keeps three keys free
# for devices that it does not know, `PrivateUse1` to `PrivateUse3`. Vendors of accelerators plug their
# C++ in there. You will plug in Python.
#
# Look: dispatch/keys#call=add&x=meta | A tensor on a device that has shapes and no memory, "meta": its
# keys, and where `x + 1` stops. Yours will have keys of this kind.
#
# The device of this sitting is called **abacus**. There is no such thing in your machine, and PyTorch
# knows as much:

# %%
try:
    torch.device("abacus")
except RuntimeError as error:
    print(str(error)[:40], "…", str(error).split(": ")[-1])

# %% [markdown]
# One call registers a name for `PrivateUse1`, with what PyTorch wants to ask a device besides kernels: how
# many there are, which one is current. It works once per process, and it is marked as experimental. (In
# C++, these are `PrivateUse1HooksInterface` and `DeviceGuardImplInterface`.)

# %%
if torch._C._get_privateuse1_backend_name() != "abacus":  # running the cell again does no harm
    # When it first runs, autograd's engine starts a thread for each device. Threads do not
    # survive in the forks that grade your answers, so let it run before, and in one thread.
    torch.zeros((), requires_grad=True).backward()
    torch.autograd.set_multithreading_enabled(False)
    torch.utils.backend_registration._setup_privateuseone_for_python_backend("abacus")


def asked_for(call):
    """Return the operator for which the device has no kernel, or "nothing"."""
    try:
        call()
    except NotImplementedError as error:
        return str(error).split("'")[1]
    return "nothing"


print(torch.device("abacus"))
print(asked_for(lambda: torch.empty(2, device="abacus")))
print(asked_for(lambda: torch.ones(2).to("abacus")))

# %% [markdown]
# The name is there, and nothing else: the dispatcher walks to `PrivateUse1`, and its table is empty. Is it
# empty for every operator?
#
# **Predict.** ATen has 3,110 operators, overloads counted. For 2,920 of them a CPU tensor finds a kernel
# in the table. For how many does a tensor on this device, for which nobody has written a line?


# %%
def operators_with(key):
    """Return how many of ATen's operators have a kernel for a key, its own or a shared one."""
    has = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    names = torch._C._dispatch_get_all_op_names()
    return sum(has(name, key) for name in names if name.startswith("aten::"))


predict(..., lambda: operators_with("PrivateUse1"))

# %% [markdown]
# Draw: show_bars({"all of ATen": sum(name.startswith("aten::") for name in
# torch._C._dispatch_get_all_op_names()), "CPU": operators_with("CPU"), "abacus":
# operators_with("PrivateUse1")}, "operators") | What a tensor finds a kernel for.
#
# More than two thirds. These are composites: they call other operators, and serve any device. So a device
# has to answer only for what they end in. Which operators are those?

# %%
some = ["t", "transpose.int", "permute", "slice.Tensor", "select.int", "expand", "unsqueeze"]
some += ["detach", "as_strided", "view", "copy_", "_to_copy", "clone", "zeros"]
some += ["empty.memory_format", "empty_strided"]
for key in ("PrivateUse1", "CPU"):
    has = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    print(f"{key:12} none for:", *[name for name in some if not has(f"aten::{name}", key)])

# %% [markdown]
# Views, copies and factories come down to a handful: `as_strided` and `view`, `empty_strided` and
# `empty.memory_format`, and one more that you will see in a moment. This handful is the device's memory.
#
# ## Memory that PyTorch never sees
#
# On a real accelerator, a tensor's storage holds an address that the processor cannot read. Ours holds
# even less. `create_empty_tensor` makes a tensor of our device whose storage has no bytes:


# %%
def bare(elements, dtype):
    """Return a new tensor of the device with that many elements in one row, and no memory."""
    return torch._C._acc.create_empty_tensor((elements,), dtype)


x = bare(6, torch.float32)
print(x.device, tuple(x.shape), x.stride(), x.untyped_storage().nbytes(), "bytes")
print(torch._C._dispatch_keys(x))

# %% [markdown]
# The keys of autograd are there without our doing. A backward formula is made of operators too, so a device
# that computes `tanh` and `tanh_backward` has a differentiable `tanh`.
#
# The memory is elsewhere, on a **chip** that only hands out blocks of bytes by address. As with real ones,
# what is in a new block is garbage, and an address that was freed is given out again.


# %%
class Chip:
    """Memory that is none of PyTorch's: blocks of bytes, each at an address."""

    def __init__(self):
        self.blocks = {}

    def malloc(self, nbytes):
        """Return the address of a new block."""
        address = next(one for one in itertools.count(100) if one not in self.blocks)
        self.blocks[address] = np.full(nbytes, 0xAB, dtype=np.uint8)
        return address

    def free(self, address):
        """Give a block back."""
        del self.blocks[address]

    def block(self, address):
        """Return a block as a writable array of uint8."""
        return self.blocks[address]


chip = Chip()
address = chip.malloc(8)
print(address, chip.block(address))

# %% [markdown]
# Draw: show_cells({f"address {address}": [address in blocks for blocks in after] for after in
# [[sorted(chip.blocks) for chip in [Chip()] for call in (lambda: chip.malloc(8), lambda:
# chip.malloc(8), lambda: chip.free(100), lambda: chip.malloc(8)) if [call()]]] for address in
# (100, 101)}, ["malloc", "malloc", "free 100", "malloc"], bare=True) | Which blocks there are
# after each of four calls. The last one gets an address that was free again.
#
# So each tensor needs an address. Where should it be written down? The first idea is an attribute of the
# tensor: `x.address = 100`. PyTorch's own test of such a device does this. Here is what becomes of an
# attribute when autograd saves a result for the backward, on a CPU:

# %%
result = torch.ones(2, requires_grad=True).tanh()
result.address = 100
saved = result.grad_fn._saved_result

# %% [markdown]
# **Predict.** `saved` has the values of `result`. Does it have its attribute, `True` or `False`?

# %%
predict(..., lambda: hasattr(saved, "address"))

# %% [markdown]
# Draw: show_storage(result=result.detach(), saved=saved.detach()) | Two tensors, one storage.
#
# `result` and `saved` are two tensors. A node that kept the very tensor which keeps the node would be a
# circle that is never freed, so autograd saves an output as a new tensor on the old storage. Views are new
# tensors on an old storage, too. What all of them share is the **storage**:

# %%
print(saved is result)
print(saved.untyped_storage() is result.untyped_storage())
print(result.view(2, 1).untyped_storage() is result.untyped_storage())

# %% [markdown]
# A storage lives as long as any tensor needs it, in Python or inside autograd. So its end is the moment to
# free a block. `weakref.finalize(storage, function, *arguments)` calls a function then, and does not itself
# keep the storage alive.

# %%
x = torch.ones(2)
weakref.finalize(x.untyped_storage(), print, "the storage is gone")
row = x[0]
del x
print("x is gone")
del row

# %% [markdown]
# ## What `.to("abacus")` calls
#
# Look: strides/cells#shape=3x4&ops=transpose.0.1&at=2x1 | What a view is, for a device too: `x.t()` of a 3 × 4 is the
# same block, read with the strides (1, 4). Point at an element, and see its place.
#
# `plug_in` registers kernels for the device, in place of those from the call before. The two kernels below
# only say that they were called.


# %%
PLUGGED = []


def plug_in(kernels, fallback=None):
    """Make these the device's kernels, by operator; `fallback` is for all other operators."""
    while PLUGGED:
        PLUGGED.pop()._destroy()
    PLUGGED.append(torch.library.Library("aten", "IMPL"))
    for name, kernel in kernels.items():
        PLUGGED[-1].impl(name, kernel, "PrivateUse1")
    if fallback is not None:
        PLUGGED.append(torch.library.Library("_", "IMPL"))
        PLUGGED[-1].fallback(boxed(fallback), "PrivateUse1")


def boxed(fallback):
    """Return a fallback that gets a tensor where the schema says so: `x % 3` has a number."""

    def call(op, *args, **kwargs):
        values = []
        for value, argument in zip(args, op._schema.arguments, strict=False):
            if isinstance(value, int | float) and str(argument.type) == "Tensor":
                value = torch.tensor(
                    value, dtype=torch.float64 if isinstance(value, float) else None
                )
            values.append(value)
        return fallback(op, *values, **kwargs)

    return call


def saying_empty_strided(size, stride, *, dtype=None, **others):
    print(f"empty_strided({size}, {stride}, dtype={dtype})")
    return strided(bare(math.prod(size), dtype), size, stride)


def saying_copy_from(source, target, non_blocking=False):
    print(f"_copy_from({source.device}, {source.dtype} -> {target.device}, {target.dtype})")
    return target


def strided(x, size, stride, offset=0):
    """Return a view of `x`: the same storage, and any size, stride and offset."""
    meta = torch._C.DispatchKeySet(torch._C.DispatchKey.Meta)
    return torch.ops.aten.as_strided.default.redispatch(meta, x, size, stride, offset)


plug_in({"empty_strided": saying_empty_strided, "_copy_from": saying_copy_from})
y = torch.ones(2, 3).to("abacus")
cpu = y.cpu()

# %% [markdown]
# Memory is asked for, then filled:
#
# | you write | the device is asked for |
# |---|---|
# | `torch.empty(2, 3, device="abacus")` | `empty.memory_format` |
# | `x.to("abacus")` | `empty_strided`, then `_copy_from` the CPU |
# | `y.cpu()`, `x.copy_(y)` | `_copy_from` to the CPU |
# | `y.clone()`, `y.double()` | `empty_strided`, then `_copy_from` within the device |
# | `y.t()`, `y[0]`, `y.expand(4, 2, 3)`, `y.detach()` | a view: `as_strided`, or nothing |
#
# `strided` is how we make views. The CPU's kernel would compare the view with the storage's 0 bytes and
# refuse. The kernel for meta tensors, which have no memory either, does not ask. `redispatch` takes us to
# it, past the device's own key.
#
# **Predict.** `torch.ones(2).to("abacus", torch.float64)` changes the dtype as well. Who does the
# conversion, `"cpu"` before the copy or `"abacus"` in it?


# %%
def who_converts():
    dtypes = []

    def copy_from(source, target, non_blocking=False):
        dtypes.append((source.dtype, target.dtype))
        return target

    plug_in({"empty_strided": saying_empty_strided, "_copy_from": copy_from})
    torch.ones(2).to("abacus", torch.float64)
    [(before, after)] = dtypes
    return "cpu" if before == after else "abacus"


predict(..., who_converts)

# %% [markdown]
# One call of `_copy_from` has to do it all: the way to the device or back, the dtype, the strides of both
# sides, and broadcasting.
#
# Draw: show_storage(source=torch.arange(3).expand(2, 3), target=torch.zeros(3, 2,
# dtype=torch.int64).t()) | One such copy: the source repeats three cells, the target lies column
# by column.
#
# Three helpers are given. In the last one is a trap that is worth knowing: `Tensor.numpy()` forbids its
# storage ever to grow, even after the array is gone. `np.from_dlpack` does not.


# %%
def set_size(x, size):
    """Give `x` itself another size, contiguous, on its storage and from its offset."""
    contiguous = torch.empty(size, device="meta").stride()
    x.data = strided(x, size, contiguous, x.storage_offset())


def numpy_dtype(dtype):
    """Return NumPy's name of a dtype."""
    return torch.empty(0, dtype=dtype).numpy().dtype


def cpu_array(x):
    """Return the memory of a CPU tensor as an array."""
    return np.from_dlpack(x.detach())


print(numpy_dtype(torch.float16))

# %% [markdown] exercise="DeviceMemory"
# title: Give a device its memory
# minutes: 60
# difficulty: 4
# points: 11
# prerequisites: []
# teaches: >-
#   what a device's memory has to do: blocks that belong to storages and not to tensors, when they are
#   freed, how a view finds its bytes, and what one copy must be able to do.
# leaves out: >-
#   a caching allocator, streams and pinned memory; dtypes that NumPy does not have; views that change the
#   dtype; memory formats in `resize_`.
# off limits: []

# %% [markdown]
# **Write `class DeviceMemory`**, the memory of a device in blocks of a `Chip`. These four methods are its
# kernels, and what its kernels need:
#
# - `empty_strided(size, stride, *, dtype, …)` returns a new tensor of the device with that size and stride.
#   It takes one block from the chip, with just the bytes that the tensor reaches: up to the end of the last
#   element, and none if there is no element. If `dtype` is `None`, it is the default one.
# - `array(x)` returns a NumPy array **on the memory** of `x`, not a copy: its dtype, size, strides and
#   offset. `x` is a tensor of the device, a view perhaps, or a tensor on the CPU.
# - `copy_from(source, target)` writes the elements of `source` into `target` and returns `target`. Either
#   may be on the device or on the CPU, with any strides. It converts to the dtype of `target` and broadcasts.
# - `resize_(x, size)` gives `x` that size, contiguous, from its offset on, and returns `x`. If its block is
#   too small, a larger one, with just the bytes that `x` now reaches, takes its place: with the same bytes in
#   front, for every tensor on that storage. Otherwise no memory is taken. If `x` has that size already,
#   nothing happens, and its strides stay.
#
# A block is freed when the last tensor on its storage is gone, and not before.
#
# `chip` has `malloc(nbytes)`, `free(address)` and `block(address)`, as above. The dtypes are those that NumPy
# has. `memory_kernels`, in the cell below, makes kernels of your methods, and adds the views.
#
# <details><summary>Hint 1: whose address</summary>
#
# A dict from `x.untyped_storage()._cdata`, a number that is the same for all tensors on a storage, to an
# address. When the storage is gone, the next one may get the same number, so take the entry out then. Let
# `weakref.finalize` call a function that looks the address up at that moment: it may not be the first one
# any more.
#
# </details>
# <details><summary>Hint 2: a new tensor</summary>
#
# The last element of a tensor that is not empty lies at `sum((n - 1) * s)` over sizes and strides. Make a
# `bare` tensor, note the address of its storage, and return it as `strided` shows it.
#
# </details>
# <details><summary>Hint 3: an array on a block</summary>
#
# `block.view(numpy_dtype(x.dtype))` are the block's elements, `[x.storage_offset():]` those from the first
# one of `x` on. `np.lib.stride_tricks.as_strided(elements, shape, strides)` wants its strides in bytes. With
# it, `copy_from` is one call of `np.copyto(..., casting="unsafe")`.
#
# </details>


# %% solution="DeviceMemory"
class DeviceMemory:
    """The memory of a device that is none of PyTorch's: a block of the chip for each storage."""

    def __init__(self, chip):
        ### BEGIN SOLUTION
        self.chip = chip
        self.addresses = {}  # by the storage: tensors come and go, also inside autograd

    def empty_strided(
        self, size, stride, *, dtype=None, layout=None, device=None, pin_memory=None
    ) -> torch.Tensor:
        """Return a new tensor with a block of its own: for `.to`, `clone`, `empty_like`."""
        dtype = dtype or torch.get_default_dtype()
        reach = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
        elements = 0 if 0 in size else reach
        flat = bare(elements, dtype)
        storage = flat.untyped_storage()
        self.addresses[storage._cdata] = self.chip.malloc(elements * dtype.itemsize)
        weakref.finalize(storage, self.release, storage._cdata)
        return strided(flat, size, stride)

    def release(self, storage):
        """Free the block of a storage that is gone. It may be another than the first one."""
        self.chip.free(self.addresses.pop(storage))

    def array(self, x: torch.Tensor) -> np.ndarray:
        """Return an array on the memory of `x`."""
        if x.device.type == "cpu":
            return cpu_array(x)
        dtype = numpy_dtype(x.dtype)
        block = self.chip.block(self.addresses[x.untyped_storage()._cdata])
        strides = [stride * dtype.itemsize for stride in x.stride()]
        elements = block.view(dtype)[x.storage_offset() :]
        return np.lib.stride_tricks.as_strided(elements, x.shape, strides)

    def copy_from(
        self, source: torch.Tensor, target: torch.Tensor, non_blocking=False
    ) -> torch.Tensor:
        """Write `source` into `target`: to the device, from it, or within it."""
        np.copyto(self.array(target), self.array(source), casting="unsafe")
        return target

    def resize_(self, x: torch.Tensor, size, *, memory_format=None) -> torch.Tensor:
        """Give `x` another size, and its storage a larger block if that takes one."""
        if x.shape == torch.Size(size):
            return x  # with the strides that it has: PyTorch does so
        set_size(x, size)
        reach = x.storage_offset() + x.numel()
        storage = x.untyped_storage()._cdata
        old = self.chip.block(self.addresses[storage])
        if reach * x.itemsize > old.size:
            address = self.chip.malloc(reach * x.itemsize)
            self.chip.block(address)[: old.size] = old
            self.chip.free(self.addresses[storage])
            self.addresses[storage] = address  # the views of x find it here, too
        return x
        ### END SOLUTION


# %% grade="DeviceMemory"
grade("DeviceMemory")

# %% [markdown]
# Of the kernels below, four are new. `empty.memory_format` asks a meta tensor for its strides. The others make
# views as you have seen; slices, transposes and `reshape` call them.


# %%
def memory_kernels(memory):
    """Return the kernels of a device's memory, by operator."""

    def empty(size, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
        memory_format = memory_format or torch.contiguous_format
        stride = torch.empty(size, device="meta", memory_format=memory_format).stride()
        return memory.empty_strided(size, stride, dtype=dtype)

    def as_strided(x, size, stride, offset=None):
        return strided(x, size, stride, x.storage_offset() if offset is None else offset)

    def view(x, size):
        meta = torch._C.DispatchKeySet(torch._C.DispatchKey.Meta)
        return torch.ops.aten.view.default.redispatch(meta, x, size)

    return {
        "empty.memory_format": empty,
        "empty_strided": memory.empty_strided,
        "as_strided": as_strided,
        "view": view,
        "_reshape_alias": lambda x, size, stride: strided(x, size, stride, x.storage_offset()),
        "_copy_from": memory.copy_from,
        "resize_": memory.resize_,
    }


if written("DeviceMemory"):
    chip = Chip()
    plug_in(memory_kernels(DeviceMemory(chip)))
    x = torch.arange(6.0).reshape(2, 3).to("abacus")
    column = x.t()[1]
    column.copy_(torch.tensor([10.0, 40.0]))
    print(x.cpu().tolist(), column.stride(), {at: one.size for at, one in chip.blocks.items()})
    del x
    print(column.cpu().tolist(), {at: one.size for at, one in chip.blocks.items()})
    del column
    print(chip.blocks)

# %% [markdown] sitting="abacus"
# question: What does PyTorch need to know about a device?
# reached: >-
#   Memory, copies, and about sixteen kernels. All the rest, autograd, modules and optimisers
#   included, is above the device.

# %% [markdown]
# ## What `x + y` calls
#
# The device holds tensors now, and cannot add them. To see what it is asked for, tensors without memory are
# enough.
#
# Look: dispatch/lanes#call=add&x=grad | The road of `x + 1` on the CPU. On your device it is the same, with
# your kernel at its end.
#
# **Predict.** Of which operator does `x + y` want a kernel? Write its name with the overload, as in
# `"aten::sum.dim_IntList"`.


# %%
class NoMemory:
    """Tensors of the device that hold nothing."""

    def empty_strided(self, size, stride, *, dtype=None, layout=None, device=None, pin_memory=None):
        return strided(bare(math.prod(size), dtype or torch.float32), size, stride)

    def copy_from(self, source, target, non_blocking=False):
        return target

    def resize_(self, x, size, *, memory_format=None):
        set_size(x, size)
        return x


def asked_without_memory(call):
    """Return the operator for which a device without kernels is asked by `call(x, y)`."""
    plug_in(memory_kernels(NoMemory()))
    x, y = (torch.empty(3, 3, device="abacus") for _ in range(2))
    return asked_for(lambda: call(x, y))


predict(..., lambda: asked_without_memory(lambda x, y: x + y))

# %%
calls = {
    "x.add_(y)": lambda x, y: x.add_(y),
    "x - 1": lambda x, y: x - 1,
    "x @ y": lambda x, y: x @ y,
    "torch.tanh(x)": lambda x, y: torch.tanh(x),
    "x.mean()": lambda x, y: x.mean(),
    "F.linear(x, y, x[0])": lambda x, y: nn.functional.linear(x, y, x[0]),
    "torch.relu(x)": lambda x, y: torch.relu(x),
    "torch.where(x, x, y)": lambda x, y: torch.where(x, x, y),
}
for text, call in calls.items():
    print(f"{text:22}", asked_without_memory(call))

# %% [markdown]
# Draw: show_cells({f"`{text}`": [(name, name.startswith("add.out") and "asked for") for name in
# (names_of(lambda: call(*(torch.ones(3, 3) for _ in range(2))))[-1],
# asked_without_memory(call).removeprefix("aten::"))] for text, call in (("x + y", lambda x, y: x +
# y), ("x.add_(y)", lambda x, y: x.add_(y)), ("torch.add, out=x", lambda x, y: torch.add(x, y,
# out=x)), ("x.relu()", lambda x, y: x.relu()))}, ["operator", "kernel asked for"]) | Three
# operators of one kernel, and one that asks for itself.
#
# `add` is a structured operator: one shape rule, and one loop that writes into an `out` that is there
# already. `x + y`, `x.add_(y)` and `torch.add(..., out=z)` all end in `add.out`, with an `out` of the right
# size and dtype. It is new, or `x` itself. So one kernel serves three operators, and it need not think about
# shapes. Operators that are not structured, such as `relu`, ask for themselves.
#
# What does a kernel get? Here is one that looks at its arguments.


# %%
def looking_add(x, y, *, alpha=1, out):
    kind = f"{y.device} {y.dtype}" if isinstance(y, torch.Tensor) else type(y).__name__
    print(f"y: {kind}, alpha: {alpha}, out: {out.dtype} {tuple(out.shape)}")
    return out


plug_in({**memory_kernels(NoMemory()), "add.out": looking_add})
x = torch.empty(3, device="abacus")
y = torch.empty(3, device="abacus", dtype=torch.int64)
_ = (x + y, torch.add(x, y, alpha=2), x + 1, y + 2.5, x + torch.ones(()))

# %% [markdown]
# Dtypes are mixed; `out` knows what the result should be. A Python number comes as a number, though the
# schema says `Tensor other`. A tensor without dimensions may come from the CPU. And `alpha` has a default
# here for a reason: PyTorch does not pass an argument that is equal to the schema's default.
#
# ## All the others
#
# A device that a network can be trained on has about sixteen kernels of its own. For all other operators one
# function is enough, a **boxed fallback**. *Boxed* means that it takes any operator, and its arguments as
# they come: `fallback(op, *args, **kwargs)`. It fetches the tensors, lets the CPU do the work, and sends back
# what came out. What must it look at? The schema says what is written, and what is a view.
#
# | the schema has | the fallback has to |
# |---|---|
# | `Tensor(a!)` | bring back what the CPU wrote |
# | `Tensor(a!)` behind `*`, such as `out` | the same, and give it the new size first |
# | `Tensor[]` | look into the list |
# | `Tensor(a)` as argument and result | refuse: a view shares memory, and needs a kernel of its own |

# %%
for op in (aten.sort.values, aten.index_put_.default, aten.unfold.default):
    schema = op._schema
    print(schema)
    for one in schema.arguments:
        if one.alias_info is not None:
            kind = "keyword" if one.kwarg_only else "positional"
            print(f"    {one.name}: {kind}, written: {one.alias_info.is_write}")
    print("    results written:", [one.alias_info.is_write for one in schema.returns])

# %% [markdown]
# Draw: show_cells({str(op): [(one.name, "written" if one.alias_info is not None and
# one.alias_info.is_write else "seen by a view" if one.alias_info is not None else False) for one
# in op._schema.arguments] for op in (aten.sort.values, aten.index_put_.default,
# aten.unfold.default)}) | The arguments of the three. One colour is for what is written, the
# other for what the result is a view of.
#
# `is_write` is the `!` of the schema. A result with `alias_info` that is not written is a view. A fallback
# cannot give one: what the CPU returns is a view of a copy. `unfold` needs a kernel of its own.
#
# In C++, `at::native::cpu_fallback` does this (`aten/src/ATen/native/CPUFallback.cpp`), and only warns of a
# view unless it is told to raise. The kernels for this exercise are those that a regression with `nn.Linear`, `nn.Tanh`, `mse_loss` and `Adam` asks for:

# %%
SIXTEEN = ["add.out", "mul.out", "div.out", "sqrt.out", "tanh.out", "tanh_backward.grad_input"]
SIXTEEN += ["lerp.Scalar_out", "addcmul.out", "addcdiv.out", "mm.out", "addmm.out"]
SIXTEEN += ["sum.IntList_out", "fill_.Scalar", "zero_", "mse_loss.out", "mse_loss_backward"]
for name in SIXTEEN:
    packet, _, overload = name.partition(".")
    print(getattr(getattr(aten, packet), overload or "default")._schema)

# %% [markdown] exercise="Abacus"
# title: Build a device that does not exist
# minutes: 60
# difficulty: 5
# points: 12
# prerequisites: [DeviceMemory]
# teaches: >-
#   what a device computes itself and what is above it: kernels of `out` operators, a boxed fallback that
#   keeps an operator's promises, and that autograd, modules and optimisers come for nothing.
# leaves out: >-
#   operators called with an `out` of the wrong size or dtype; random generators of the device; fused
#   kernels; dtypes that NumPy does not have.
# off limits: []

# %% [markdown]
# **Write `class Abacus`**, the kernels of a device. `Abacus(array)` gets a function that returns a NumPy array
# on the memory of a tensor, of the device or of the CPU, as `DeviceMemory.array` does.
#
# **`kernels()`** returns a dict with a function for each of the sixteen names in `SIXTEEN`.
#
# - They compute with NumPy. The only operators that a kernel may call are factories such as
#   `torch.empty_like`, for a result that is not there yet.
# - `out`, `grad_input` or the `self` of `fill_` and `zero_` is written in place, whatever its strides, and returned. It has
#   the right size. It may be one of the inputs.
# - Inputs broadcast, have any strides, and may differ in dtype. In place of one there may be a tensor without
#   dimensions on the CPU, and for `other` in `add`, `mul` and `div` a Python number.
# - What is computed has the dtype of what is written, whatever NumPy makes of the inputs' dtypes. The root of an
#   `int8` is a `float32`, where NumPy gives a half; `uint8` plus 300 is a `uint8`, where NumPy raises.
# - `reduction` is 0 for none, 1 for the mean and 2 for the sum. `dim` in `sum` may be `None` or empty: all
#   dimensions.
#
# **`fallback(op, *args, **kwargs)`** does any other operator on the CPU.
#
# - It calls `op` once, with copies on the CPU in place of tensors of the device, also of those in lists. A
#   `torch.device` that is ours, of type `"abacus"`, becomes the CPU. All else stays as it is.
# - An argument that the schema marks as written gets its copy's values afterwards, also where it is a list of
#   tensors. If the operator has changed the copy's size, `resize_` the tensor first.
# - A result that is a written argument is returned as that very tensor. A new tensor is returned on the
#   device, also in a tuple or list. Numbers are returned as they are.
# - If a result would be a view of an argument, it raises `NotImplementedError` with the operator's name.
#
# <details><summary>Hint 1: kernels</summary>
#
# `array(out)[...] = …` writes in place, broadcasts and converts. NumPy computes the right side before, so
# `out` may be an input. `np.asarray(x).astype(dtype)` takes arrays and numbers. `mse_loss_backward` has no
# `out`: make one with `torch.empty_like`. Arguments that the schema has defaults for need them in your
# functions, too.
#
# </details>
# <details><summary>Hint 2: there and back</summary>
#
# `torch.utils._pytree.tree_map(function, (args, kwargs))` goes through lists, tuples and dicts. Note which
# tensor each copy stands for, for instance in a dict by `id(copy)`; keep the copy as well. A tensor that the
# operator returns and that is in this dict is a written argument.
#
# </details>
# <details><summary>Hint 3: which arguments are written</summary>
#
# Go through `op._schema.arguments` with `enumerate`. The value of an argument is `args[at]` if there are so
# many positional ones and it is not `kwarg_only`, else `kwargs.get(one.name)`. Write back with
# `tensor.copy_(copy)`.
#
# </details>


# %% solution="Abacus"
class Abacus:
    """The kernels of a device: sixteen in NumPy, and the CPU for everything else."""

    def __init__(self, array: Callable[[torch.Tensor], np.ndarray]):
        ### BEGIN SOLUTION
        self.array = array

    def kernels(self) -> dict[str, Callable]:
        """Return the device's own kernels, by operator."""

        def array(x, out):
            """Return the values of a tensor or a number in the dtype of `out`."""
            values = self.array(x) if isinstance(x, torch.Tensor) else np.asarray(x)
            return values.astype(self.array(out).dtype)  # NumPy's own choice may be another

        def store(result, out):
            self.array(out)[...] = result  # in place, with the strides of `out`
            return out

        def add(x, y, *, alpha=1, out):
            return store(array(x, out) + alpha * array(y, out), out)

        def lerp(x, end, weight, *, out):
            x = array(x, out)
            return store(x + weight * (array(end, out) - x), out)

        def addcmul(x, y, z, *, value=1, out):
            return store(array(x, out) + value * array(y, out) * array(z, out), out)

        def addcdiv(x, y, z, *, value=1, out):
            return store(array(x, out) + value * array(y, out) / array(z, out), out)

        def addmm(x, a, b, *, beta=1, alpha=1, out):
            return store(beta * array(x, out) + alpha * (array(a, out) @ array(b, out)), out)

        def tanh_backward(grad, result, *, grad_input):
            slope = 1 - array(result, grad_input) ** 2
            return store(array(grad, grad_input) * slope, grad_input)

        def total(x, dim, keepdim=False, *, dtype=None, out):
            axes = tuple(dim) if dim else None  # no dimension: all of them
            return store(array(x, out).sum(axes, keepdims=keepdim), out)

        def mse_loss(x, target, reduction=1, *, out):
            squares = (array(x, out) - array(target, out)) ** 2
            return store({0: lambda: squares, 1: squares.mean, 2: squares.sum}[reduction](), out)

        def mse_loss_backward(grad, x, target, reduction):
            result = torch.empty_like(x)
            count = x.numel() if reduction == 1 else 1
            slope = 2 * (array(x, result) - array(target, result)) / count
            return store(array(grad, result) * slope, result)

        return {
            "add.out": add,
            "mul.out": lambda x, y, *, out: store(array(x, out) * array(y, out), out),
            "div.out": lambda x, y, *, out: store(array(x, out) / array(y, out), out),
            "sqrt.out": lambda x, *, out: store(np.sqrt(array(x, out)), out),
            "tanh.out": lambda x, *, out: store(np.tanh(array(x, out)), out),
            "tanh_backward.grad_input": tanh_backward,
            "lerp.Scalar_out": lerp,
            "addcmul.out": addcmul,
            "addcdiv.out": addcdiv,
            "mm.out": lambda x, y, *, out: store(array(x, out) @ array(y, out), out),
            "addmm.out": addmm,
            "sum.IntList_out": total,
            "fill_.Scalar": lambda x, value: store(value, x),
            "zero_": lambda x: store(0, x),
            "mse_loss.out": mse_loss,
            "mse_loss_backward": mse_loss_backward,
        }

    def fallback(self, op, *args, **kwargs):
        """Run any operator on copies on the CPU; write back what it has written."""
        schema = op._schema
        if any(one.alias_info and not one.alias_info.is_write for one in schema.returns):
            # a view of a copy would look right, until somebody writes
            raise NotImplementedError(f"{op.name()} makes a view, and needs a kernel of its own")

        stands_for = {}  # by a copy's id: the copy, so that the id stays its own, and the tensor

        def fetch(value):
            if isinstance(value, torch.device) and value.type == "abacus":
                return torch.device("cpu")
            if not isinstance(value, torch.Tensor) or value.device.type != "abacus":
                return value
            copy = value.detach().cpu()
            stands_for[id(copy)] = copy, value
            return copy

        def send(value):
            if not isinstance(value, torch.Tensor):
                return value
            return stands_for[id(value)][1] if id(value) in stands_for else value.to("abacus")

        args, kwargs = tree_map(fetch, (args, kwargs))
        result = op(*args, **kwargs)
        for at, one in enumerate(schema.arguments):
            if one.alias_info is not None and one.alias_info.is_write:
                value = kwargs.get(one.name) if one.kwarg_only else args[at]
                for copy in value if isinstance(value, list | tuple) else [value]:
                    _, tensor = stands_for.get(id(copy), (None, None))
                    if tensor is not None:
                        if tensor.shape != copy.shape:
                            tensor.resize_(copy.shape)
                        tensor.copy_(copy)
        return tree_map(send, result)
        ### END SOLUTION


# %% grade="Abacus"
grade("Abacus")

# %% [markdown]
# ## A network on a device that does not exist
#
# Draw: show_bars({part: len(names_of(run)) for network in [nn.Sequential(nn.Linear(4, 8),
# nn.Tanh(), nn.Linear(8, 2))] for optimizer in [torch.optim.Adam(network.parameters(),
# foreach=False)] for losses in [[]] for part, run in (("the network and its loss", lambda:
# losses.append(nn.functional.mse_loss(network(torch.ones(16, 4)), torch.ones(16, 2)))),
# ("backward", lambda: losses[0].backward()), ("a step of Adam", optimizer.step))}, "operators") |
# What one round of training calls.
#
# Nothing below was written for the abacus: modules, losses and optimisers are PyTorch's.


# %%
def train(device, network, optimizer, loss, targets):
    """Return the losses of four steps of a network that starts the same on each device."""
    torch.manual_seed(0)
    network, x = network().to(device), torch.randn(16, 4).to(device)
    targets, losses = targets.to(device), []
    optimizer = optimizer(network.parameters())
    for _ in range(4):
        optimizer.zero_grad()
        one = loss(network(x), targets)
        one.backward()
        optimizer.step()
        losses.append(one.detach())
    return [round(one.cpu().item(), 3) for one in losses]


def switch_on():
    """Plug your device in; return its chip, and a list that is told what goes to the fallback."""
    chip, fell = Chip(), []
    memory = DeviceMemory(chip)
    abacus = Abacus(memory.array)

    def fallback(op, *args, **kwargs):
        fell.append(op.name())
        return abacus.fallback(op, *args, **kwargs)

    plug_in({**memory_kernels(memory), **abacus.kernels()}, fallback)
    return chip, fell


def regression():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def classifier():
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))


numbers = torch.linspace(-1, 1, 32).reshape(16, 2)
classes = torch.arange(16) % 3
runs = [
    (regression, lambda p: torch.optim.Adam(p, lr=0.05), nn.functional.mse_loss, numbers),
    (classifier, lambda p: torch.optim.AdamW(p, lr=0.05), nn.functional.cross_entropy, classes),
]
if written("DeviceMemory", "Abacus"):
    chip, fell = switch_on()
    for run in runs:
        fell.clear()
        print("abacus", train("abacus", *run))
        print("cpu   ", train("cpu", *run))
        print("fell back:", *(sorted({one.removeprefix("aten::") for one in fell}) or ["nothing"]))
    print(torch.ones(2, 2, device="abacus") + 1)
    print(len(chip.blocks), "blocks are left")

# %% [markdown]
# Draw: show_curves({name: list(enumerate(train("abacus", *run))) for name, run in
# zip(("regression", "classifier"), runs, strict=True)}, "step", "loss") | Two networks learn on a
# device that nobody sells.
#
# The second network uses operators that you never wrote a kernel for. They are slow, and right.
#
# **Predict.** Batch norm has no kernel either. `nn.BatchNorm1d(2)` starts with a `running_mean` of zeros, and
# one batch of ones should move it by a tenth, to `[0.1, 0.1]`. What is it on the abacus?


# %%
def running_mean():
    if not written("DeviceMemory", "Abacus"):
        return "for when your device is written"
    switch_on()
    norm = nn.BatchNorm1d(2).to("abacus")
    norm(torch.ones(4, 2).to("abacus"))
    return [round(one, 1) for one in norm.running_mean.cpu().tolist()]


predict(..., running_mean)

# %% [markdown]
# No error, and no statistics. The schema of `native_batch_norm` has no `!` at `running_mean`: it is one of
# those that write without saying so, and a fallback knows nothing but the schema. PyTorch's own C++ fallback
# goes by the schema as well. So whoever builds a device writes this kernel early.
#
# What you have not built is the rest of a real backend: streams and events, a caching allocator, random
# generators, autocast, kernels that are fast. The way in is the same: PyTorch's tutorial *Facilitating New
# Backend Integration by PrivateUse1* goes it in C++.
