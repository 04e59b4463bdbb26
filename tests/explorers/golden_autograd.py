"""What torch does for the autograd explorer: random programs, and all that can be read after each line.

A program is run line by line, in real grad modes; after each line every named tensor and every node
that can be reached is asked for what it is. Where nothing raised, the program is run once more with
copies for saved tensors: the gradients that in-place changes behind the counter would have spoilt.
"""

from __future__ import annotations

import itertools
import random
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import torch

SEED = 20_260_731
NAMES = "abcdwxyz"
# Beyond this float32's rounding, which no rule of autograd decides, could hide or feign a difference.
MOST = 300.0
MODES = (
    "torch.no_grad()",
    "torch.enable_grad()",
    "torch.inference_mode()",
    "torch.set_grad_enabled(False)",
    "torch.set_grad_enabled(True)",
)
Case = dict[str, Any]
# What random programs meet too rarely, found among many more of them.
RARE = (
    "with torch.inference_mode():\n    x = torch.ones(2)\ny = x.sum()\nz = x.clone()\nw = x + x",
    "d = torch.tensor(.25, requires_grad=True)\na = d + d\nd.requires_grad_(False)\nd -= a\nd.sum().backward()",
    "with torch.inference_mode():\n    z = torch.ones(2)\nz.detach().mul_(z)\nz.data.add_(1)\nz[0:1].add_(1)",
    "w = torch.ones(2, requires_grad=True)\na = torch.ones(2)\nb = a[0:1]\na.mul_(w)\nb.mul_(2)",
    "x = torch.ones(2, requires_grad=True)\ny = x.sum()\nx.requires_grad_(False)\ny.backward()",
    "with torch.inference_mode():\n    x = torch.ones(2)\n    z = torch.ones(2, 2)\na = x.mean()\nb = z.mean(0)\nc = x @ x\nd = z @ x\nw = x @ z\ny = z @ z\nx = x.relu()",
    "x = torch.ones(2, 3, requires_grad=True)\ny = torch.ones(2)\nz = y @ x\na = x @ y",
    "x = torch.ones(2)\ny = torch.ones(3)\nz = x @ y",
    "x = torch.ones(2)\ny = torch.ones(3, 2)\nz = x @ y",
    "x = torch.ones(2)\ny = x @ x.sum()",
    "x = torch.ones(2)\ny = x @ 2",
    "x = torch.ones(2, 2)\nx.view(4).add_(x)",
    "x = torch.ones(2, 3)\ny = torch.ones(2, 2)\nz = x + y",
    "x = torch.ones(2)\ny = x.sum(1)",
    "a = 1\nb = 0\nc = a / b",
)


class Run:
    """A program as it runs: its names, the modes it is in, and the text of its lines."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.modes: list[ExitStack] = []

    def __enter__(self) -> Run:
        self.before = torch.is_grad_enabled()
        return self

    def __exit__(self, *_: object) -> None:
        while self.modes:
            self.leave()
        torch.set_grad_enabled(self.before)  # a program may have set it and let it be

    def enter(self, mode: str) -> None:
        stack = ExitStack()
        stack.enter_context(eval(mode, {"torch": torch}))
        self.modes.append(stack)

    def leave(self) -> None:
        self.modes.pop().close()

    def line(self, text: str) -> str | None:
        """Run one line; its error as "Type: message"."""
        if text.startswith("with "):
            self.enter(text.removeprefix("with ").removesuffix(":"))
            return None
        space = {"torch": torch, **self.names}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # .grad of a result is worth a warning
                exec(text, space)
        except (
            RuntimeError,
            TypeError,
            AttributeError,
            NameError,
            IndexError,
            ZeroDivisionError,
        ) as error:
            return f"{type(error).__name__}: {error}"
        finally:
            kept = space.keys() - {"torch", "__builtins__"}
            self.names = {name: value for name, value in space.items() if name in kept}
        return None


# ── What can be read ──


def numbers(tensor: torch.Tensor) -> list[float]:
    with torch.no_grad():
        return [float(value) for value in tensor.detach().flatten().tolist()]


def attempt(ask: Any) -> Case:
    try:
        return {"is": ask()}
    except RuntimeError as error:
        return {"raises": str(error)}


class Photograph:
    """All that torch says of named tensors and of the nodes behind them."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.storages: list[int] = []
        self.names = names
        self.functions: dict[str, Any] = {}
        self.tensors = [self._tensor(name, value) for name, value in names.items()]
        self.nodes: list[Any] = []
        waiting = [found for found in reversed(self.functions.values()) if found is not None]
        while waiting:
            node = waiting.pop()
            if node is not None and node not in self.nodes:
                self.nodes.append(node)
                waiting += [after for after, _ in reversed(node.next_functions)]
        for tensor in self.tensors:
            if self.functions.get(tensor["name"]) is not None:
                tensor["fn"] = {"is": self.nodes.index(self.functions[tensor["name"]])}
        self.kept: dict[int, int] = {}
        self.shown = [self._node(node) for node in self.nodes]

    def _memory(self, tensor: torch.Tensor) -> int:
        pointer = tensor.untyped_storage().data_ptr()
        if pointer not in self.storages:
            self.storages.append(pointer)
        return self.storages.index(pointer)

    def _twin(self, tensor: torch.Tensor) -> str | None:
        return next((name for name, other in self.names.items() if other is tensor), None)

    def _tensor(self, name: str, value: Any) -> Case:
        if not isinstance(value, torch.Tensor):
            return {"name": name, "number": value, "float": isinstance(value, float)}
        grad_fn = attempt(lambda: value.grad_fn)
        leaf = attempt(lambda: value.is_leaf)
        assert leaf == (grad_fn if "raises" in grad_fn else {"is": grad_fn["is"] is None})
        self.functions[name] = grad_fn.get("is")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            grad = value.grad
        return {
            "name": name,
            "values": numbers(value),
            "shape": list(value.shape),
            "requires": value.requires_grad,
            "fn": grad_fn if "raises" in grad_fn else {"is": None},
            "version": None if value.is_inference() else value._version,
            "inference": value.is_inference(),
            "memory": self._memory(value),
            "grad": grad
            if grad is None
            else {"values": numbers(grad), "inference": grad.is_inference()},
            "twin": self._twin(value),
        }

    def _node(self, node: Any) -> Case:
        saved: Case = {}
        for attribute in dir(node):
            if not attribute.startswith("_saved_"):
                continue
            part = attribute.removeprefix("_saved_")
            try:
                value = getattr(node, attribute)
            except RuntimeError as error:
                saved[part] = {"raises": str(error)}
                continue
            if isinstance(value, torch.Tensor):
                storage = value.untyped_storage()
                self.kept[storage.data_ptr()] = storage.nbytes()
                saved[part] = {"values": numbers(value), "memory": self._memory(value)}
        variable = getattr(node, "variable", None)
        return {
            "name": node.name().removeprefix("torch::autograd::"),
            "next": [
                None if after is None else self.nodes.index(after)
                for after, _ in node.next_functions
            ],
            "saved": saved,
            "variable": None if variable is None else self._twin(variable),
        }

    def case(self) -> Case:
        return {
            "grad": torch.is_grad_enabled(),
            "inference": torch.is_inference_mode_enabled(),
            "tensors": self.tensors,
            "nodes": self.shown,
            "bytes": sum(self.kept.values()),
        }


# ── Programs ──


def tame(names: dict[str, Any]) -> bool:
    """Say whether all numbers are small enough to be compared."""
    for value in names.values():
        held = [value] if not isinstance(value, torch.Tensor) else numbers(value)
        if isinstance(value, torch.Tensor) and attempt(lambda: value.is_leaf) == {"is": True}:  # noqa: B023
            held += [] if value.grad is None else numbers(value.grad)
        if not all(abs(float(number)) <= MOST for number in held):
            return False
    return True


def number(source: random.Random) -> str:
    return source.choice(["2", "2", "3", "0.5", "0.1", "-1", "1.5"])


def statement(source: random.Random, run: Run) -> str:
    """One line, with names that exist; now and then one that torch refuses."""
    tensors = [name for name, value in run.names.items() if isinstance(value, torch.Tensor)]
    fewest = 2 if source.random() < 0.8 else 1
    target = source.choice(NAMES)
    if len(tensors) < fewest or source.random() < 0.05:
        return _made(source, target)
    live = [name for name in tensors if run.names[name].requires_grad]
    some = lambda: source.choice(live if live and source.random() < 0.6 else tensors)  # noqa: E731
    pick = lambda *texts: source.choice(texts)  # noqa: E731
    a, b = some(), some()
    changed = next((name for name in (some() for _ in range(6)) if changeable(run.names[name])), a)
    inside = torch.is_inference_mode_enabled()
    unread = torch.is_grad_enabled() and not inside
    leaves = [name for name in tensors if attempt(lambda: run.names[name].is_leaf).get("is")]  # noqa: B023
    kind = source.choices(
        ["binary", "unary", "matmul", "alias", "nested", "augmented", "method", "through", "flag", "backward",
         "del", "twin", "number", "update", "clear", "with", "mode", "odd"],
        [16, 16, 16, 14, 6, 10, 6, 12, 4, 12, 2, 2, 3, 6, 1, 9, 1.2, 0.5],
    )[0]  # fmt: skip
    # Mostly no refusal where one is certain: they would end nearly all programs.
    if not changeable(run.names[changed]) and source.random() < 0.9:
        kind = "binary" if kind in {"augmented", "method"} else kind
    if not live and source.random() < 0.9:
        kind = "binary" if kind == "backward" else kind
    match kind:
        case "binary":
            left, right = source.choice([(a, b), (a, b), (a, number(source)), (number(source), a)])
            return f"{target} = {left} {pick('*', '*', '+', '-', '/')} {right}"
        case "unary":
            dims = run.names[a].dim()
            dim = source.randrange(-max(dims, 1), max(dims, 1))
            return pick(
                *(f"{target} = {a}.{name}()" for name in ("exp", "sin", "sum", "clone", "relu", "mean")),
                f"{target} = {a}.{pick('sum', 'mean')}({dim})",
                f"{target} = torch.{pick('exp', 'relu', 'mean')}({a} * {number(source)})",
                f"{target} = {pick(f'-{a}', f'{a} ** 2', f'{a} ** 3', f'-{a} ** 2', f'2 / {a}')}",
            )  # fmt: skip
        case "matmul":
            fits = [(x, y) for x in tensors for y in tensors if meet(run.names[x], run.names[y])]
            some_live = [pair for pair in fits if set(pair) & set(live)]
            if not fits or source.random() < 0.02:
                return f"{target} = {a} @ {b}"
            left, right = source.choice(some_live or fits)
            return f"{target} = {pick('', '', '-')}{left} @ {right}"
        case "alias":
            return f"{target} = {a}{_alias(source, run.names[a])}"
        case "nested":
            c = some()
            return pick(
                f"{target} = ({a} * {b}).sum()",
                f"{target} = ({a} + {number(source)}).exp()",
                f"{target} = {a} * {b} + {c}",
                f"{target} = {a} - {b} * {c}",
                f"{target} = ({a} - {b}) * ({a} - {b})",
                f"{target} = {a}.detach().clone(){'' if inside else '.requires_grad_()'}",
                f"{target} = {a}.sin().exp().sum()",
                f"{target} = ({a} / {number(source)} - {b}).relu().mean()",
                f"{target} = (({a} - {b}) ** 2).mean()",
            )
        case "augmented":
            return f"{changed} {pick('+=', '*=', '*=', '-=', '/=')} {pick(b, number(source))}"
        case "method":
            return f"{pick('', '', f'{target} = ')}{changed}.{pick('add_', 'mul_')}({pick(b, number(source))})"
        case "through":
            behind = changed == a or source.random() < 0.4
            alias = (
                pick(".data", ".data", ".detach()")
                if behind
                else _alias(source, run.names[changed])
            )
            return f"{changed}{alias}.{pick('add_', 'mul_')}({pick(b, number(source))})"
        case "flag" if not (inside and run.names[a].is_inference()):
            on = pick("True", "True", "False")
            return pick(
                f"{a}.requires_grad_()",
                f"{a}.requires_grad_({on})",
                f"{a}.requires_grad = {on}",
                f"{target} = {a}.requires_grad_({on})",
            )
        case "backward":
            a = source.choice(live if live and source.random() < 0.97 else tensors)
            retain = pick("", "", "retain_graph=True", "retain_graph=False")
            total = "" if run.names[a].numel() == 1 and source.random() < 0.7 else ".sum()"
            return f"{a}{'' if source.random() < 0.02 else total}.backward({retain})"
        case "del":
            return f"del {a}"
        case "twin":
            return f"{target} = {a}"
        case "number":
            c = source.choice([name for name in run.names if name not in tensors] or [a])
            return pick(
                f"{target} = 0",
                f"{target} = {a}.sum().item()",
                f"{c} += {b}",
                f"{target} = {c} * {b}",
                f"{target} = {c} - {b}",
                f"{target} = {c} / {b}",
                f"{c} -= {number(source)}",
            )
        case "update" if not unread and leaves:
            with_grad = [name for name in leaves if run.names[name].grad is not None]
            a = source.choice(with_grad or leaves)
            return pick(
                f"{a} -= 0.1 * {a}.grad",
                f"{a} -= {a}.grad",
                f"{a}.add_({a}.grad * -0.1)",
                f"{target} = {a}.grad + {b}",
                f"{target} = {a}.grad.clone()",
            )
        case "clear":
            return f"{source.choice(leaves or [a])}.grad = None"
        case "with" if len(run.modes) < 3:
            return f"with {source.choice(MODES)}:"
        case "mode":
            return f"torch.set_grad_enabled({pick('True', 'False')})"
        case "odd":
            return pick(
                f"{target} = {a}.item()", f"{a}.add_(gone)", f"{target} = {a} + None_",
                f"{target} = {a}.view({source.randint(1, 4)})", f"{target} = {a}[{source.randint(-4, 4)}]",
                f"del {target}", _made(source, target),
            )  # fmt: skip
        case _:
            return f"{target} = {a} * {b}"


def last(source: random.Random, run: Run) -> str | None:
    """A backward from something that requires grad."""
    live = [
        name
        for name, value in run.names.items()
        if isinstance(value, torch.Tensor) and value.requires_grad
    ]
    return f"{source.choice(live[-3:])}.sum().backward()" if live else None


def spoilt(source: random.Random, run: Run) -> list[str]:
    """Three lines: something is saved, changed by some road, and needed."""
    live = [
        name
        for name, value in run.names.items()
        if isinstance(value, torch.Tensor) and value.requires_grad
    ]
    if not live:
        return ["pass"]
    a, target = source.choice(live), source.choice(NAMES)
    made = source.choice([f"{a}.exp()", f"{a}.sin()", f"{a} * {a}", f"{a} * {source.choice(live)}"])
    road = source.choice(["", ".data", ".data", ".data", ".detach()", ".view(-1)"])
    retain = source.choice(["", "retain_graph=True"])
    return [
        f"{target} = {made}",
        f"{source.choice([a, target])}{road}.{source.choice(['mul_', 'add_'])}({number(source)})",
        f"{target}.sum().backward({retain})",
        *([f"{target}.sum().backward()"] * source.choice([0, 0, 1])),
    ]


def changeable(tensor: torch.Tensor) -> bool:
    """Say whether changing it in place has a chance."""
    if not torch.is_grad_enabled() or not tensor.requires_grad:
        return True
    whole = tensor._base if tensor._is_view() else tensor
    return attempt(lambda: whole.is_leaf and whole.requires_grad) == {"is": False}


def meet(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Say whether a @ b fits, and stays as small as the page's tensors."""
    if not a.dim() or not b.dim() or a.shape[-1] != b.shape[0]:
        return False
    return a.numel() // len(b) * (b.numel() // len(b)) <= 9


def _made(source: random.Random, target: str) -> str:
    # An inference tensor that requires grad has rules of its own; the explorer leaves it out.
    inside = torch.is_inference_mode_enabled()
    grad = ", requires_grad=True" if source.random() < 0.6 and not inside else ""
    size = source.choice([2, 2, 2, 2, 1, 3])
    values = ", ".join(source.choice(["1.", "2.", "-1.", "0.5", ".25"]) for _ in range(size))
    made = [f"tensor([{values}]{grad})"] * 3
    rows, columns = source.choice([(2, 2), (2, 2), (2, 2), (1, 2), (2, 1), (2, 3), (3, 2)])
    row = lambda: ", ".join(source.choice(["1.", "2.", "-1.", "0.5"]) for _ in range(columns))  # noqa: E731
    made += [f"tensor([{', '.join(f'[{row()}]' for _ in range(rows))}]{grad})"] * 3
    made += [f"ones({rows}, {columns}{grad})"]
    made += [f"ones({size}{grad})", f"zeros({size}{grad})", f"tensor({values.split(',')[0]}{grad})"]
    return f"{target} = torch.{source.choice(made)}"


def _alias(source: random.Random, tensor: torch.Tensor) -> str:
    count = tensor.numel()
    views = [f".view({count})", ".view(-1)"]
    if tensor.dim():
        rows = len(tensor)
        start = source.randrange(rows)
        stop = source.randint(start + 1, rows)
        views += [f"[{start}:{stop}]", f"[{start}]", f"[:{stop}]", f"[{start - rows}:]"]
    return source.choice([".detach()", ".detach()", ".data", ".data", *views, *views])


def programs(count: int, lines: int = 14) -> Iterator[Case]:
    """Random programs, each up to the first line that raises.

    Asking a view for its grad_fn can give it a new one. So the program is run anew for each line, and
    torch is asked only at the end.
    """
    source = random.Random(SEED)
    rare = [text.split("\n") for text in RARE]
    for written in itertools.chain(rare, (drawn(source, lines) for _ in range(count))):
        whole = looped(source, written) if source.random() < 0.25 else written
        code = unrolled(whole)
        steps = []
        for upto in range(1, len(code) + 1):
            steps.append(replayed(code[:upto], lambda run, error: {"error": error, **told(run)}))
            if steps[-1]["error"]:
                break
        if steps:
            right = None if steps[-1]["error"] else honest(code)
            shown = whole if code != whole else code[: len(steps)]
            yield {"code": "\n".join(shown), "steps": steps, "right": right}


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def looped(source: random.Random, code: list[str]) -> list[str]:
    """The program with some of its lines in a loop, if its numbers then stay small; else as it was."""
    if not code:
        return code
    start = source.randrange(len(code))
    end = start + 1
    while end < len(code) and indent(code[end]) >= indent(code[start]) and source.random() < 0.7:
        end += 1
    while end < len(code) and indent(code[end]) > indent(code[start]):
        end += 1
    turns = source.randint(1, 4)
    lead = " " * indent(code[start])
    body = ["    " + line for line in code[start:end]]
    whole = [*code[:start], f"{lead}for i in range({turns}):", *body, *code[end:]]
    flat = unrolled(whole)
    calm = len(flat) <= 40 and all(
        replayed(flat[:upto], lambda run, _: tame(run.names)) for upto in range(1, len(flat) + 1)
    )
    return whole if calm else code


def unrolled(code: list[str], by: int = 0) -> list[str]:
    """The lines in the order in which they run; where a turn of a loop begins, an assignment."""
    flat: list[str] = []
    at = 0
    while at < len(code):
        line = code[at]
        at += 1
        found = re.fullmatch(r" *for (\w+) in range\((\d)\):", line)
        if found is None:
            flat.append(line[by:])
            continue
        end = at
        while end < len(code) and indent(code[end]) > indent(line):
            end += 1
        for turn in range(int(found[2])):
            flat.append(" " * (indent(line) - by) + f"{found[1]} = {turn}")
            flat += unrolled(code[at:end], by + 4)
        at = end
    return flat


def drawn(source: random.Random, lines: int) -> list[str]:
    """The lines of a program; running it while it grows tells which names there are."""
    run = Run()
    code: list[str] = []
    pending: list[str] = []
    must_indent = False
    with run:
        most = source.randint(3, lines)
        for left in reversed(range(most)):
            while run.modes and not must_indent and source.random() < 0.25:
                run.leave()
            if not pending and source.random() < 0.08:
                pending = spoilt(source, run)
            text = pending.pop(0) if pending else statement(source, run)
            if left == 0 and source.random() < 0.7:
                text = last(source, run) or text
            written = "    " * len(run.modes) + text
            error = run.line(text)
            if not tame(run.names):
                break
            must_indent = text.startswith("with ")
            code.append(written)
            if error:
                break
    while code and code[-1].lstrip().startswith("with "):
        code.pop()
    return code


def replayed(code: Sequence[str], ask: Callable[[Run, str | None], Any]) -> Any:
    """Run a program, ask when it is at its end or has raised, and give back the answer."""
    with Run() as run:
        for written in code:
            while len(run.modes) > (len(written) - len(written.lstrip())) // 4:
                run.leave()
            error = run.line(written.strip())
            if error:
                break
        return ask(run, error)


def told(run: Run) -> Case:
    return Photograph(run.names).case()


def honest(code: Sequence[str]) -> Case | None:
    """The gradients of a program whose nodes save copies; None where they were not to be had."""

    def gradients(run: Run, error: str | None) -> Case | None:
        return (
            None
            if error
            else {
                name: None if value.grad is None else numbers(value.grad)
                for name, value in run.names.items()
                if isinstance(value, torch.Tensor) and attempt(lambda: value.is_leaf).get("is")  # noqa: B023
            }
        )

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        return replayed(code, gradients)
