"""Which answers of a class are alike beyond what a task makes alike. A pointer for a person's eye.

What all were given (the stub) or could look up (the reference, its alternates) does not count. The
rest counts by how rare it is in the class: a run of tokens that two of a thousand share weighs nine
bits, one that half the class shares weighs one. So nobody stands out by writing what everybody does.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from rapidfuzz.distance import Indel

from grader.course.answers import Role, read_answers
from grader.course.course import Chapter, Exercise, read_reference
from grader.instructor.fingerprint import RUN, Run, Text, text_of

RARE = 20
"""A run that more students share points at nobody: pairs are looked for among rarer ones. This bounds
the work: a run names at most 190 pairs, however large the class.
"""

MIN_BITS = 2.0
"""Pairs that share less in an exercise are not shown: a line of code in a large class, and the most
that a copied function can weigh in a class of six.
"""

MISTAKE_WEIGHT = 2.0
"""Two who failed alike count double: right answers resemble each other, wrong ones need not."""


@dataclass(frozen=True)
class StudentAnswer:
    """One student's answer to an exercise. `passed` and `mistake` are the verdict's."""

    student: str
    text: Text
    passed: bool
    mistake: str = ""


@dataclass(frozen=True)
class Likeness:
    """What two answers share. `bits` is how rare that is, `ratio` (0 to 1) the tokens in the same
    order; `lines` are those of each text that carry the shared runs.
    """

    exercise: str
    first: StudentAnswer
    second: StudentAnswer
    bits: float
    ratio: float
    lines: tuple[frozenset[int], frozenset[int]]

    @property
    def same_failure(self) -> bool:
        """Whether both failed."""
        return not (self.first.passed or self.second.passed)


@dataclass(frozen=True)
class Pair:
    """Two students, and the exercises in which their answers are alike, strongest first."""

    students: tuple[str, str]
    shared: tuple[Likeness, ...]

    @property
    def bits(self) -> float:
        """The sum over all exercises."""
        return sum(one.bits for one in self.shared)


def common_runs(chapter: Chapter, exercise: Exercise) -> frozenset[Run]:
    """Return the runs of what everybody has: the stub, the reference, its published alternates."""
    known = [exercise.stub]
    known += [cell.source for cell in read_reference(chapter) if cell.label == exercise.id]
    answers = read_answers(chapter, exercise)
    known += [answer.source for answer in answers if answer.role is Role.ALTERNATE]
    return frozenset(run for source in known for run in text_of(source).runs)


def alike(
    exercise: str, attempts: Sequence[StudentAnswer], common: frozenset[Run] = frozenset()
) -> list[Likeness]:
    """Return the pairs of attempts that share something rare, in no order."""
    own = [attempt.text.runs - common for attempt in attempts]
    holders: dict[Run, list[int]] = defaultdict(list)
    for index, runs in enumerate(own):
        for run in runs:
            holders[run].append(index)
    # runs overlap: a shared stretch of n tokens has about n of them, and each token counts once
    weights = {run: math.log2(len(attempts) / len(who)) / RUN for run, who in holders.items()}
    bits: dict[tuple[int, int], float] = defaultdict(float)
    for run, who in holders.items():
        if 2 <= len(who) <= RARE:
            for pair in combinations(who, 2):
                bits[pair] += weights[run]
    found = []
    for (a, b), weight in bits.items():
        first, second = attempts[a], attempts[b]
        if not (first.passed or second.passed):
            weight *= MISTAKE_WEIGHT
        if weight >= MIN_BITS:
            ratio = Indel.normalized_similarity(first.text.tokens, second.text.tokens)
            shared = own[a] & own[b]
            lines = _lines(first.text, shared), _lines(second.text, shared)
            found.append(Likeness(exercise, first, second, weight, ratio, lines))
    return found


def _lines(text: Text, shared: frozenset[Run]) -> frozenset[int]:
    return frozenset(line for run, lines in text.placed() if run in shared for line in lines)


def crowds(
    attempts: Iterable[StudentAnswer], common: frozenset[Run] = frozenset()
) -> list[list[str]]:
    """Return the groups of more than `RARE` students whose answers are the same, largest first.

    They are too many to be pairs. Answers that consist of what everybody has are left out.
    """
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for attempt in attempts:
        if attempt.text.runs - common:
            groups[attempt.text.tokens].append(attempt.student)
    return sorted((group for group in groups.values() if len(group) > RARE), key=len, reverse=True)


def ranked(found: Iterable[Likeness]) -> list[Pair]:
    """Return the pairs of students, those first whose answers share what is rarest, all together."""
    shared: Mapping[tuple[str, str], list[Likeness]] = defaultdict(list)
    for one in found:
        shared[one.first.student, one.second.student].append(one)
    pairs = [
        Pair(students, tuple(sorted(ones, key=lambda one: -one.bits)))
        for students, ones in shared.items()
    ]
    return sorted(pairs, key=lambda pair: (-pair.bits, pair.students))
