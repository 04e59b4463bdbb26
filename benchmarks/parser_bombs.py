"""Ten submissions that are made to be slow to read, among a hundred ordinary ones of chapter 1.

    python benchmarks/parser_bombs.py [ORDINARY [BOMBS]]

The class is graded with `--jobs 2`, without the bombs and with them, in turn. The time is that of the
whole command, on the clock and in processor seconds; the number is the ratio. Each bomb must need
review, with a row and a folder, and no ordinary one may. None of a bomb's code may run: its other
answers are right, and must have no points.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from course import PROCESSOR, ROOT, Moment, row, start
from floor import CHAPTER, make_course
from nbgrader.api import Gradebook
from stock import forget, medians

sys.path.insert(0, str(ROOT))

from tests.bombs import ANSWERS, with_answer

ROUNDS = 1

CHOSEN = (
    "finally, 16 deep",
    "finally, 19 deep",
    "a name from itself",
)


def main() -> None:
    """Grade the class both ways and print the ratio."""
    sizes = [int(argument) for argument in sys.argv[1:]]
    ordinary, bombs = (*sizes, *(100, 10)[len(sizes) :])
    found: dict[str, list[Moment]] = {"without": [], "with": []}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        notebook = make_course(root, ordinary)
        for _ in range(ROUNDS):
            for how, times in found.items():
                forget(root)
                for number in range(bombs):
                    # among the others, as a class hands in
                    path = root / f"submitted/s{number * 9:04}b/{CHAPTER}/formats.ipynb"
                    path.unlink(missing_ok=True)
                    if how == "with":
                        text = ANSWERS[CHOSEN[number % len(CHOSEN)]]
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.write_text(json.dumps(with_answer(notebook, text)))
                    elif path.parent.is_dir():
                        path.parent.rmdir()
                        path.parent.parent.rmdir()
                begin, used = time.perf_counter(), PROCESSOR.seconds()
                start(root, "undertorch", "grade", CHAPTER, "--jobs=2").wait()
                times.append(Moment(time.perf_counter() - begin, PROCESSOR.seconds() - used))
        _look(root, ordinary, bombs)
    without, among = map(medians, found.values())
    row("", "seconds", "ratio", "core s", "ratio")
    row(f"{ordinary} ordinary submissions", without.clock, 1.0, without.processor, 1.0)
    row(
        f"{bombs} bombs among them",
        among.clock,
        among.clock / without.clock,
        among.processor,
        among.processor / without.processor,
    )


def _look(root: Path, ordinary: int, bombs: int) -> None:
    """Raise `SystemExit` unless exactly the bombs need review and have no points; all have row and folder."""
    with Gradebook(f"sqlite:///{root}/gradebook.db") as gradebook:
        rows = {
            submission.student.id: (submission.needs_manual_grade, submission.score > 0)
            for submission in gradebook.assignment_submissions(CHAPTER)
        }
    folders = len(list((root / "autograded").glob(f"*/{CHAPTER}/*.ipynb")))
    wrong = {name: of for name, of in rows.items() if of != (name.endswith("b"), name[-1] != "b")}
    if wrong or len(rows) != ordinary + bombs or folders != ordinary + bombs:
        raise SystemExit(f"{len(rows)} rows, {folders} folders; wrong (review, points): {wrong}")


if __name__ == "__main__":
    main()
