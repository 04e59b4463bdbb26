"""A course of one chapter with five exercises, in two forms: hand-written asserts, and ours."""

from __future__ import annotations

import atexit
import copy
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy
from nbformat.v4 import new_code_cell, new_notebook, writes

ROOT = Path(__file__).parents[1]
CHAPTER = "five"

SOLUTIONS = {
    "softmax": "e = (x - x.amax(-1, keepdim=True)).exp()\n    return e / e.sum(-1, keepdim=True)",
    "relu": "return x.clamp(min=0)",
    "layer_norm": (
        "c = x - x.mean(-1, keepdim=True)\n"
        "    return c / (c.square().mean(-1, keepdim=True) + 1e-5).sqrt()"
    ),
    "logsumexp": "m = x.amax(-1, keepdim=True)\n    return (x - m).exp().sum(-1).log() + m[..., 0]",
    "gelu": "return x * 0.5 * (1 + torch.erf(x / 2**0.5))",
}
EXPECTED = {
    "softmax": "torch.softmax(x, -1)",
    "relu": "torch.relu(x)",
    "layer_norm": "torch.nn.functional.layer_norm(x, x.shape[-1:])",
    "logsumexp": "torch.logsumexp(x, -1)",
    "gelu": "torch.nn.functional.gelu(x)",
}
INPUTS = {
    "matrix": "torch.randn(8, 16{rng})",
    "vector": "torch.randn(16{rng})",
    "large": "100 * torch.randn(4, 8{rng})",
    "transposed": "torch.randn(16, 8{rng}).t()",
}


def write(root: Path, path: str, text: str) -> None:
    """Write a file of the course."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def make(root: Path, ours: bool, students: int) -> None:
    """Write the course, in our form or as plain nbgrader has it, and a class of right answers."""
    cells = [new_code_cell("import torch" + "\nfrom grader import grade" * ours, id="start")]
    for name in SOLUTIONS:
        cells.append(_cell(name, f"def {name}(x):\n    raise NotImplementedError()", points=0))
        asserts = "\n".join(
            f"x = {made.format(rng='')}\ntorch.testing.assert_close({name}(x), {EXPECTED[name]})"
            for made in INPUTS.values()
        )
        cells.append(_cell(f"{name}-grade", f'grade("{name}")' if ours else asserts, points=4))
        if ours:
            _write_grader(root, name)
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    if ours:
        metadata["undertorch"] = {"chapter": CHAPTER, "title": "Five", "preload": []}
        probes = "from grader import probe\n" + "".join(
            f"\n\n@probe\ndef {name}_of(student, x):\n    return student.{name}(x)\n"
            for name in SOLUTIONS
        )
        write(root, f"grader/{CHAPTER}/probes/__init__.py", "")
        write(root, f"grader/{CHAPTER}/probes/five.py", probes)
        write(root, "nbgrader_config.py", (ROOT / "nbgrader_config.py").read_text())
    notebook = new_notebook(cells=cells, metadata=metadata)
    for folder in ("solutions", "chapters", "source", "release"):
        write(root, f"{folder}/{CHAPTER}/{CHAPTER}.ipynb", writes(notebook))
    for cell in notebook.cells:
        name = cell.id
        if name in SOLUTIONS:
            cell.source = f"def {name}(x):\n    {SOLUTIONS[name]}"
    for number in range(students):
        hand_in(root, f"s{number:04}", notebook)


def hand_in(root: Path, student: str, notebook: object) -> None:
    """Hand in a notebook."""
    text = writes(copy.deepcopy(notebook))
    write(root, f"submitted/{student}/{CHAPTER}/{CHAPTER}.ipynb", text)


def _cell(name: str, source: str, points: int) -> object:
    role = {
        "grade": bool(points), "grade_id": name, "locked": bool(points), "schema_version": 3,
        "solution": not points, "task": False,
    }  # fmt: skip
    metadata: dict[str, object] = {"nbgrader": role}
    if points:
        role["points"] = points
    else:
        metadata["undertorch"] = {
            "title": name, "minutes": 1, "difficulty": 1, "points": 4, "prerequisites": [],
            "teaches": "", "leaves_out": "", "off_limits": [],
        }  # fmt: skip
    return new_code_cell(source, id=name, metadata=metadata)


def _write_grader(root: Path, name: str) -> None:
    checks = "import torch\n\nfrom grader import assert_close\n" + "".join(
        f'\n\ndef test_{kind}({name}_of, rng):\n    """Right for: {kind}."""\n'
        f"    x = {made.format(rng=', generator=rng')}\n"
        f'    assert_close({name}_of.ask(x).value, {EXPECTED[name]}, rtol=1e-5, atol=1e-5, because="float32")\n'
        for kind, made in INPUTS.items()
    )
    write(root, f"grader/{CHAPTER}/test_{name}.py", checks)


def environment() -> dict[str, str]:
    """Return an environment in which the commands of this interpreter find this repository."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return os.environ | {"PYTHONPATH": str(ROOT), "PATH": path, "PYTHONWARNINGS": "ignore"}


class Processor:
    """Counts the processor seconds of a command and all that it starts, boxes included.

    It takes a control group; where none can be made (not root), `seconds` is not a number.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None
        for parent, usage, unit in (
            (Path("/sys/fs/cgroup/cpuacct"), "cpuacct.usage", 1e9),
            (Path("/sys/fs/cgroup"), "cpu.stat", 1e6),
        ):
            folder = parent / f"undertorch-{os.getpid()}"
            try:
                folder.mkdir()
            except OSError:
                continue
            if (folder / usage).exists():
                self._folder, self._usage, self._unit = folder, folder / usage, unit
                return
            folder.rmdir()

    def seconds(self) -> float:
        """Return processor seconds so far."""
        if self._folder is None:
            return float("nan")
        text = self._usage.read_text()
        return float(text.split()[1] if text.startswith("usage_usec") else text) / self._unit

    def enter(self) -> None:
        """Count this process and what it starts from now on."""
        if self._folder is not None:
            (self._folder / "cgroup.procs").write_text(str(os.getpid()))

    def leave(self) -> None:
        """Count this process no longer."""
        if self._folder is not None:
            (self._folder.parent / "cgroup.procs").write_text(str(os.getpid()))

    def close(self) -> None:
        """Leave the group and remove it."""
        if self._folder is not None:
            self.leave()
            with suppress(OSError):  # a straggler is in it; an empty group costs nothing
                self._folder.rmdir()


PROCESSOR = Processor()
atexit.register(PROCESSOR.close)


def start(root: Path, *command: str) -> subprocess.Popen[bytes]:
    """Start a command in the course, counted by PROCESSOR."""
    return subprocess.Popen(
        [str(Path(sys.executable).parent / command[0]), *command[1:]],
        cwd=root,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=PROCESSOR.enter,
    )


@dataclass(frozen=True)
class Moment:
    """When a notebook was done: on the clock, and in processor seconds of all until then."""

    clock: float
    processor: float


def moments(root: Path, process: subprocess.Popen[bytes], count: int) -> list[Moment]:
    """Wait for the end; return when each of `count` autograded notebooks was complete.

    The files tell when: to look for them meanwhile would take a part of the machine that grows
    with the class. The processor's clock is read twenty times a second.
    """
    clock, processor = [], []
    while process.poll() is None:
        clock.append(time.time())
        processor.append(PROCESSOR.seconds())
        time.sleep(0.05)
    paths = list((root / "autograded").glob(f"*/{CHAPTER}/*.ipynb"))
    if process.returncode or len(paths) < count:
        raise SystemExit(f"{process.args} ended with {process.returncode}, {len(paths)} are graded")
    times = sorted(path.stat().st_ctime for path in paths)
    seconds = numpy.interp(times, clock, processor).tolist()
    return [Moment(*both) for both in zip(times, seconds, strict=True)]


def each(found: list[Moment]) -> Moment:
    """Return clock and processor seconds per submission; what start-up costs is left out."""
    first, last, steps = found[0], found[-1], len(found) - 1
    return Moment((last.clock - first.clock) / steps, (last.processor - first.processor) / steps)


def row(*columns: object) -> None:
    """Print one row of a table."""
    first, *rest = columns
    texts = [f"{c:>12.3f}" if isinstance(c, float) else f"{c!s:>12}" for c in rest]
    sys.stdout.write(f"  {first!s:44}{''.join(texts)}\n")
    sys.stdout.flush()
