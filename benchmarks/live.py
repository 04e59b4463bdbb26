"""What a grade cell takes in a live notebook: what comes to the student's own code, and the diagnosis.

A real ipykernel holds the reference solutions; medians of some runs. The first run of an exercise,
which collects its checks, is shown apart. Then the kernel holds a known mistake, and another answer,
which always raises: `mistake` and `raises` are what their first verdict took for the diagnosis, which
a verdict without one does not take.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from course import row
from jupyter_client.manager import start_new_kernel

from grader.building.sample import answers_of, reference_sources
from grader.course.answers import Role
from grader.course.course import Chapter, find_course, read_reference

ROUNDS = 3

MEASURE = """
import json, time
from grader.student import live
from grader.verdict.grading import ExerciseGrader
_spent, _shown = [], []
live.show = _shown.append
_explained = ExerciseGrader._explained
def _timed(*arguments):
    start = time.perf_counter()
    try:
        return _explained(*arguments)
    finally:
        _spent.append(time.perf_counter() - start)
ExerciseGrader._explained = _timed
def _measure(exercise, rounds):
    found = []
    _spent.clear()
    for _ in range(rounds):
        start = time.perf_counter()
        live.grade(exercise)
        _shown[-1]._repr_mimebundle_()
        found.append(time.perf_counter() - start)
    verdict = _shown[-1].verdict
    return json.dumps([found, _spent, verdict.outcome.value, verdict.mistake])
"""

RAISES = "def {0}(*args, **kwargs):\n    raise LookupError('known to nobody')"


def main() -> None:
    """Print a line per exercise of every chapter, or of those named."""
    course = find_course()
    chapters = [c for c in course.chapters() if not sys.argv[1:] or c.id in sys.argv[1:]]
    row("milliseconds", "first", "later", "mistake", "raises", "outcome", "of mistake", "named")
    for chapter in chapters:
        _measure(chapter)


def _measure(chapter: Chapter) -> None:
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(chapter.released.parent))
    mistakes = answers_of(chapter, Role.MISTAKE)
    try:
        cells = [cell.source for cell in read_reference(chapter)]
        for source in [*cells, MEASURE]:
            client.execute_interactive(source, output_hook=lambda message: None)
        for exercise, right in reference_sources(chapter).items():
            found, _, outcome, _ = _ask(client, exercise, ROUNDS)
            later = sorted(found[1:])[len(found) // 2]
            _run(client, RAISES.format(exercise))
            _, raises, _, _ = _ask(client, exercise, 1)
            _run(client, mistakes[exercise])
            _, mistake, wrong, named = _ask(client, exercise, 1)
            _run(client, right)  # other exercises call it
            times = [found[0], later, *(sum(spent) for spent in (mistake, raises))]
            row(exercise, *(seconds * 1e3 for seconds in times), outcome, wrong, named or "-")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _run(client: Any, source: str) -> None:
    client.execute_interactive(source, output_hook=lambda message: None)


def _ask(client: Any, exercise: str, rounds: int) -> tuple[list[float], list[float], str, str]:
    said: list[str] = []

    def hear(message: dict[str, Any]) -> None:
        if message["header"]["msg_type"] == "stream":
            said.append(str(message["content"]["text"]))
        elif message["header"]["msg_type"] == "error":
            raise SystemExit("\n".join(message["content"]["traceback"]))

    client.execute_interactive(f"print(_measure({exercise!r}, {rounds}))", output_hook=hear)
    found, spent, outcome, mistake = json.loads("".join(said).strip().splitlines()[-1])
    return found, spent, outcome, mistake


if __name__ == "__main__":
    main()
