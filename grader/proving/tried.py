"""What the graders say of answers that somebody tried, and the shares of right and false verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from grader.box.box import Box
from grader.box.fork import Fork
from grader.box.tiers import BoxUnavailable
from grader.building.graders import ready_probes
from grader.course.course import Chapter, Exercise
from grader.course.tried import Kind, Tried
from grader.evidence.wire.channel import Transport
from grader.feedback.render import shows_relation
from grader.inside.probe import Probe
from grader.inside.process.budget import Budget, changed
from grader.proving.processes import spawned
from grader.verdict.grading import ExerciseGrader, OpenTransport
from grader.verdict.verdict import Verdict


@dataclass(frozen=True)
class Task:
    """The answers to one exercise that are to be graded."""

    chapter: Chapter
    exercise: Exercise
    answers: tuple[Tried, ...]


@dataclass(frozen=True)
class Graded:
    """What the graders said of one answer."""

    answer: Tried
    outcome: str
    points: float
    max: float
    mistake: str
    explanation: str
    review: str
    relation: str = ""
    """How what came is related to what was expected, where no known mistake says more."""

    @property
    def explained(self) -> bool:
        """Was more said than what failed?"""
        return bool(self.explanation or self.relation)

    @property
    def full(self) -> bool:
        """Did it get all points?"""
        return self.points >= self.max

    @property
    def as_expected(self) -> bool:
        """Was a right answer accepted, any other denied full marks?"""
        return self.full == (self.answer.kind is Kind.RIGHT)

    @property
    def silent(self) -> bool:
        """Did a cheat get all points, and nobody is asked to look?"""
        return self.answer.kind is Kind.CHEAT and self.full and not self.review

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON data: the answer's keys, then the verdict's."""
        data = asdict(self)
        answer = data.pop("answer")
        return {**answer, "kind": self.answer.kind.value, **data}


def task_of(chapter: Chapter, exercise: Exercise, answers: Iterable[Tried]) -> Task:
    """Return the task of one exercise: those of the answers that are to it."""
    wanted = chapter.id, exercise.id
    return Task(
        chapter, exercise, tuple(one for one in answers if (one.chapter, one.exercise) == wanted)
    )


def box_works(chapter: Chapter) -> bool:
    """Say whether a box starts on this machine."""
    try:
        with Box(chapter.probes, chapter.preload):
            return True
    except BoxUnavailable:
        return False


def grade_tried(
    tasks: Sequence[Task], seed: int, jobs: int, *, boxed: bool
) -> Iterator[tuple[Task, list[Graded]]]:
    """Yield each task with what became of its answers, as it ends; `jobs` processes take parts.

    With one job the tasks come in order, and no other process is started but the answers' own.
    """
    parts = list(_parts(tasks, jobs))
    if jobs <= 1:
        for part in parts:
            yield from _graded(part, seed, boxed)
        return
    with spawned(jobs) as pool:
        begun = [pool.submit(_all_graded, part, seed, boxed) for part in parts]
        for ended in as_completed(begun):
            yield from ended.result()


def _parts(tasks: Sequence[Task], jobs: int) -> Iterator[list[Task]]:
    """Yield tasks of one chapter, which share a box, dealt out to `jobs` processes."""
    for chapter in dict.fromkeys(task.chapter.id for task in tasks):
        own = [task for task in tasks if task.chapter.id == chapter]
        for first in range(min(max(1, jobs), len(own))):
            yield own[first :: max(1, jobs)]


def _all_graded(part: Sequence[Task], seed: int, boxed: bool) -> list[tuple[Task, list[Graded]]]:
    return list(_graded(part, seed, boxed))


def _graded(part: Sequence[Task], seed: int, boxed: bool) -> Iterator[tuple[Task, list[Graded]]]:
    chapter = part[0].chapter
    probes = ready_probes(chapter)
    with _opening(chapter, probes, boxed) as open_with:
        for task in part:
            grader = ExerciseGrader(chapter, task.exercise, probes)
            budget = changed(Budget(), task.exercise.budget)
            open_transport = partial(open_with, budget)
            yield task, [_one(grader, one, seed, open_transport) for one in task.answers]


@contextmanager
def _opening(
    chapter: Chapter, probes: dict[str, Probe], boxed: bool
) -> Iterator[Callable[[Budget], Transport]]:
    """Give what opens a fresh process with a budget."""
    if not boxed:
        yield partial(Fork, probes)
        return
    with Box(chapter.probes, chapter.preload) as box:
        yield box.open


def _one(grader: ExerciseGrader, answer: Tried, seed: int, open_transport: OpenTransport) -> Graded:
    attempt = grader.attempt_with(answer.source)
    verdict = grader.grade(attempt, open_transport, seed, open_transport)
    return graded(answer, verdict)


def graded(answer: Tried, verdict: Verdict) -> Graded:
    """Return what a verdict means for the answer that it is on."""
    return Graded(
        answer,
        str(verdict.outcome),
        verdict.points,
        verdict.max_points,
        verdict.mistake,
        verdict.diagnosis,
        verdict.review,
        verdict.relation if shows_relation(verdict) else "",
    )


@dataclass(frozen=True)
class Tally:
    """How many answers of each kind there were, and how many were judged as they should be.

    `right` are those accepted, of all right ones; `explained` counts among the rejected wrong ones.
    """

    right: tuple[int, int]
    wrong: tuple[int, int]
    explained: tuple[int, int]
    cheat: tuple[int, int]
    silent: int

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        accepted, right = self.right
        rejected, wrong = self.wrong
        denied, cheats = self.cheat
        return {
            "right": {"n": right, "accepted": accepted},
            "wrong": {"n": wrong, "rejected": rejected, "explained": self.explained[0]},
            "cheat": {"n": cheats, "denied": denied, "silent": self.silent},
        }


def tally(answers: Iterable[Graded]) -> Tally:
    """Count the answers."""
    all_of = list(answers)

    def met(kind: Kind) -> tuple[int, int]:
        own = [one for one in all_of if one.answer.kind is kind]
        return sum(one.as_expected for one in own), len(own)

    rejected = [one for one in all_of if one.answer.kind is Kind.WRONG and one.as_expected]
    return Tally(
        met(Kind.RIGHT),
        met(Kind.WRONG),
        (sum(one.explained for one in rejected), len(rejected)),
        met(Kind.CHEAT),
        sum(one.silent for one in all_of),
    )


SHARES = ("right", "wrong", "cheat", "explained")
"""What may be required as a share at least; `silent` is a number at most."""


def required(text: str) -> dict[str, float]:
    """Return what `right=1,wrong=0.995,silent=0` requires. Raises `ValueError` that says what is wrong."""
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.partition("=")
        if name not in (*SHARES, "silent"):
            raise ValueError(
                f"{part!r} requires nothing that is known: {', '.join(SHARES)}, silent"
            )
        try:
            found[name] = float(value)
        except ValueError:
            raise ValueError(f"{part!r} has no number behind the `=`") from None
        if found[name] < 0 or (name != "silent" and found[name] > 1):
            raise ValueError(
                f"{part!r}: a share is between 0 and 1, a number of answers at least 0"
            )
    return found


def missed(counted: Tally, wanted: dict[str, float]) -> list[str]:
    """Return in words what is required and was not met. A share of nothing is met."""
    said = []
    for name, least in wanted.items():
        if name == "silent":
            if counted.silent > least:
                said.append(f"silent is {counted.silent}, at most {least:g} is required")
            continue
        met, of = getattr(counted, name)
        if of and met / of < least:
            said.append(f"{name} is {met} of {of}, {met / of:.3f}; {least:g} is required")
    return said
