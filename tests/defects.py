"""Does `make test` find a defect? Twenty of them, put in one at a time.

Each is an edit that somebody may make by mistake, in a place of its own. For each is named the part of
`make test` that must fail; tests are chosen there as `make test` chooses them, so what it would leave out
is left out here. The tree must be clean, and is put back. Run: python -m tests.defects
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Defect:
    """An edit of one file, `was` to `now`, and what finds it: a command, or a file of tests.

    `only` is for the sake of time: pytest's -k, beside the choice that `make test` makes.
    """

    what: str
    file: str
    was: str
    now: str
    finder: str
    only: str = ""

    @contextmanager
    def put_in(self) -> Iterator[None]:
        """Make the edit, and take it back."""
        path = ROOT / self.file
        text = path.read_text(encoding="utf-8")
        if self.was not in text:
            raise SystemExit(f"{self.file} no longer has {self.was!r}")
        path.write_text(text.replace(self.was, self.now, 1), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(text, encoding="utf-8")

    def command(self) -> list[str]:
        """Return what of `make test` is to find it."""
        if not self.finder.startswith("tests/"):
            return self.finder.split()
        # a path on the command line would ask for all of its tests; as where tests are kept, for those due
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:nbval"]
        command += ["-p", "no:cacheprovider", "-o", f"testpaths={self.finder}"]
        return [*command, *(["-k", self.only] if self.only else [])]


BUILT = "undertorch build --check --no-run"

DEFECTS = (
    Defect(
        "a check is loosened: strides of dimensions of two are no longer compared",
        "grader/ch02_strides/test_view_stride.py",
        "tuple(0 if n == 1 else s",
        "tuple(0 if n <= 2 else s",
        "tests/proving/test_course.py",
        "view_stride",
    ),
    Defect(
        "a known mistake is none: it gives the right answer",
        "grader/ch02_strides/answers/view_stride.md",
        "+     if n != 1 and s != expected:\n+         return None\n",
        "",
        "tests/proving/test_course.py",
        "view_stride",
    ),
    Defect(
        "a probe answers in the student's place",
        "grader/ch01_formats/probes/rounding.py",
        "student.round_to_bf16(",
        "(lambda x: x.bfloat16().float())(",
        "tests/proving/test_course.py",
        "round_to_bf16",
    ),
    Defect(
        "a rule is misspelt, which then forbids nothing",
        "solutions/ch02_strides/strides.pct.py",
        "off limits: [torch.as_strided,",
        "off limits: [torch.as_stridded,",
        BUILT,
    ),
    Defect(
        "mutants are excused of an exercise that is not there",
        "grader/ch03_matmul/equivalent.toml",
        "[",
        "[gone]\n'a => b' = 'c'\n\n[",
        "tests/proving/test_course.py",
        "belongs_to_nothing and ch03",
    ),
    Defect(
        "a row of the ledger is written by hand",
        "grader/ch04_modules/proofs.json",
        '"checks": 7',
        '"checks": 9',
        "tests/proving/test_known.py",
        "ledger and ch04",
    ),
    Defect(
        "what a notebook keeps of a mistake is edited",
        "grader/ch02_strides/known.json",
        '"0b86525157e1ba68"',
        '"0b86525157e1ba69"',
        "tests/proving/test_course.py",
        "marks and ch02",
    ),
    Defect(
        "the codec takes a range of any length",
        "grader/evidence/wire/codec.py",
        "if not _is_short(value):",
        "if False:",
        "tests/evidence",
    ),
    Defect(
        "a room imports from one above it",
        "grader/evidence/outcome.py",
        "from enum import",
        "import grader.verdict.verdict  # noqa: F401\nfrom enum import",
        "tests/test_house.py",
    ),
    Defect(
        "a function returns another type than it says",
        "grader/nbgrader/spreadsheet.py",
        "def defused(value: Value) -> str:",
        "def defused(value: Value) -> int:",
        "mypy",
    ),
    Defect(
        "a student's text is not escaped",
        "grader/feedback/render.py",
        "<dd><code>{escape(text)}</code></dd>",
        "<dd><code>{text}</code></dd>",
        "tests/feedback",
    ),
    Defect(
        "a spreadsheet computes what begins with =",
        "grader/nbgrader/spreadsheet.py",
        '_STARTS = ("=", ',
        '_STARTS = ("≠", ',
        "tests/instructor/test_exports.py",
    ),
    Defect(
        "an interrupt's handler is not put back",
        "grader/inside/interrupts.py",
        "        signal.signal(signal.SIGINT, before)\n",
        "",
        "tests/live/test_safe_kernel.py",
        "interrupted",
    ),
    Defect(
        "a box lets a file grow without end",
        "grader/inside/process/confine.py",
        "    _limit(resource.RLIMIT_FSIZE, budget.file_bytes)\n",
        "",
        "tests/box/test_life.py",
    ),
    Defect(
        "after a failed gate the counting goes on",
        "grader/verdict/verdict.py",
        "over = check.weight == 0 or isinstance(run.error, Ended)",
        "over = isinstance(run.error, Ended)",
        "tests/verdict",
    ),
    Defect(
        "old scores stay where a submission could not be graded",
        "grader/nbgrader/gradebook.py",
        "        grade.auto_score = None\n",
        "",
        "tests/scale/test_interrupt.py",
        "full_disk",
    ),
    Defect(
        "all-reduces cost no latency in the explorer",
        "site/explorers/ddp/buckets.js",
        "free = from + latency + bytes",
        "free = from + bytes",
        "tests/explorers/test_ddp.py",
    ),
    Defect(
        "a page is wider than a phone",
        "site/for-students.md",
        "\n## ",
        '\n<div style="width: 900px">wide</div>\n\n## ',
        "tests/site/test_pages.py",
    ),
    Defect(
        "a link leads nowhere",
        "site/for-authors.md",
        "\n## ",
        "\n[gone](gone.md)\n\n## ",
        "tests/site/test_site.py",
        "old_address",
    ),
    Defect(
        "a page says what its program did not print",
        "site/questions/clone-or-detach.md",
        "True",
        "False",
        "tests/building/test_programs.py",
    ),
)


def main() -> None:
    """Put in each defect, or those whose number is named; exit 1 where one is not found."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("numbers", nargs="*", type=int, help="from 1")
    chosen = arguments.parse_args().numbers or range(1, len(DEFECTS) + 1)
    changed = ["git", "status", "--porcelain", "--untracked-files=no"]
    if subprocess.run(changed, cwd=ROOT, capture_output=True, check=True).stdout:
        raise SystemExit("There are edits here that are not committed. Commit them first.")
    missed = 0
    for number in chosen:
        defect = DEFECTS[number - 1]
        start = time.monotonic()
        with defect.put_in():
            done = subprocess.run(
                defect.command(), cwd=ROOT, capture_output=True, text=True, check=False
            )
        # a command may end with any other status; of pytest, 1 alone says that a test failed
        found = done.returncode == 1 or (done.returncode != 0 and "pytest" not in defect.command())
        missed += not found
        said = "found" if found else f"NOT FOUND ({done.returncode})"
        print(f"{number:2} {said}, {time.monotonic() - start:.0f} s: {defect.what}", flush=True)
        if not found:
            print((done.stdout + done.stderr)[-2000:], flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} found")
    raise SystemExit(missed > 0)


if __name__ == "__main__":
    main()
