"""Stock nbgrader against ours, on one class and five exercises: submissions per second and core.

Stock nbgrader, ours through nbgrader's own command, and `undertorch grade` grade the same right
answers, one after another, round after round. Start-up is left out everywhere. A core's second is a
processor second of the command and all that it starts; that holds on a busy machine, too.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from course import CHAPTER, Moment, each, make, moments, row, start

STUDENTS = {"stock": 8, "ours": 32}
ROUNDS = 3

COMMANDS = {
    "stock nbgrader autograde": ("stock", ("nbgrader", "autograde", CHAPTER)),
    "nbgrader autograde with our settings": ("ours", ("nbgrader", "autograde", CHAPTER)),
    "undertorch grade --jobs 1": ("ours", ("undertorch", "grade", CHAPTER, "--jobs=1")),
    "undertorch grade --jobs 2": ("ours", ("undertorch", "grade", CHAPTER, "--jobs=2")),
}


def main() -> None:
    """Time each command ROUNDS times and print the table."""
    found: dict[str, list[Moment]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        roots = {name: Path(folder, name) for name in STUDENTS}
        for name, count in STUDENTS.items():
            make(roots[name], name == "ours", count)
        start(roots["stock"], "nbgrader", "generate_assignment", CHAPTER, "--force").wait()
        for _ in range(ROUNDS):
            for name, (form, command) in COMMANDS.items():
                forget(roots[form])
                process = start(roots[form], *command)
                found[name].append(each(moments(roots[form], process, STUDENTS[form])))
    stock = medians(found["stock nbgrader autograde"])
    row("", "seconds", "core s", "per core s", "× stock", "× on clock")
    for name in COMMANDS:
        ours = medians(found[name])
        row(
            name,
            ours.clock,
            ours.processor,
            1 / ours.processor,
            stock.processor / ours.processor,
            stock.clock / ours.clock,
        )


def medians(found: list[Moment]) -> Moment:
    """Return the medians of both clocks."""
    return Moment(
        statistics.median(moment.clock for moment in found),
        statistics.median(moment.processor for moment in found),
    )


def forget(root: Path) -> None:
    """Remove the autograded notebooks, so that all are graded again."""
    for path in sorted((root / "autograded").rglob("*"), reverse=True):
        path.chmod(0o755)
        path.rmdir() if path.is_dir() else path.unlink()


if __name__ == "__main__":
    main()
