"""What a run has still to grade: folders in order, and what others died on."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from pathlib import Path

from grader.nbgrader.worker import Died, Task

REFUSED = "The grader died twice on this submission. Its code was not run again."


@dataclass
class Backlog:
    """What is to be graded: folders, and tasks whose worker died, with how often by student."""

    folders: deque[Path]
    again: deque[Task] = field(default_factory=deque)
    deaths: dict[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.folders or self.again)

    def take_back(self, died: Died) -> None:
        """Have its tasks done by others; the one that two workers died on is not run again."""
        tasks = list(died.tasks)
        if tasks:
            first = tasks[0]
            self.deaths[first.student] = self.deaths.get(first.student, 0) + died.times
            if self.deaths[first.student] > 1:
                tasks[0] = replace(first, refused=REFUSED)
        self.again.extendleft(reversed(tasks))
