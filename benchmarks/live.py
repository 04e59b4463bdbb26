"""What a grade cell takes in a live notebook, beyond the student's own code: medians of 50 runs.

A real ipykernel holds the reference solutions. What the probes take is measured inside, and taken
away. The first run of an exercise, which collects its checks, is shown apart.
"""

from __future__ import annotations

import json
import sys

from course import row
from jupyter_client.manager import start_new_kernel

from grader.building.sample import reference_sources
from grader.course.course import Chapter, find_course, read_reference

ROUNDS = 50

MEASURE = """
import json, time
from grader import grade
from grader.inside.probe import Student
import grader.inside.serve as _inside
_own = []
_attempt = _inside.Inside._attempt
def _timed(self, action):
    start = time.perf_counter()
    try:
        return _attempt(self, action)
    finally:
        _own.append(time.perf_counter() - start)
_inside.Inside._attempt = _timed
def _measure(exercise, rounds):
    found = []
    for _ in range(rounds + 1):
        _own.clear()
        start = time.perf_counter()
        report = grade(exercise)
        report._repr_mimebundle_()
        found.append((time.perf_counter() - start, sum(_own)))
    return json.dumps([found, report.verdict.outcome.value])
"""


def main() -> None:
    """Print a line per exercise of every chapter, or of those named."""
    course = find_course()
    chapters = [c for c in course.chapters() if not sys.argv[1:] or c.id in sys.argv[1:]]
    row("milliseconds", "first", "whole", "own code", "beyond it", "outcome")
    for chapter in chapters:
        _measure(chapter)


def _measure(chapter: Chapter) -> None:
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        cells = [cell.source for cell in read_reference(chapter)]
        for source in [*cells, MEASURE]:
            client.execute_interactive(source, output_hook=lambda message: None)
        for exercise in reference_sources(chapter):
            found, outcome = _ask(client, f"print(_measure({exercise!r}, {ROUNDS}))")
            first, rest = found[0], sorted(found[1:], key=lambda pair: pair[0] - pair[1])
            whole, own = rest[len(rest) // 2]
            row(exercise, first[0] * 1e3, whole * 1e3, own * 1e3, (whole - own) * 1e3, outcome)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _ask(client: object, code: str) -> tuple[list[list[float]], str]:
    said: list[str] = []

    def hear(message: dict[str, dict[str, object]]) -> None:
        if message["header"]["msg_type"] == "stream":
            said.append(str(message["content"]["text"]))
        elif message["header"]["msg_type"] == "error":
            raise SystemExit("\n".join(message["content"]["traceback"]))

    client.execute_interactive(code, output_hook=hear)
    found, outcome = json.loads("".join(said).strip().splitlines()[-1])
    return found, outcome


if __name__ == "__main__":
    main()
