"""The evidence behind one verdict: what each check asked, what came back, what it was held against.

The kept evidence answers in the code's place, so no student code runs. What is shown is what today's
checks see in it; where they judge otherwise than the verdict that was given, that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import nbformat
import torch

from grader.box.aside import Exceeded, Failed
from grader.course.cells import code_cells
from grader.course.course import Chapter, CourseError
from grader.course.rules import Rule
from grader.evidence.outcome import Ended
from grader.evidence.replay import Replay
from grader.evidence.store import Store
from grader.inside.probe import Probe, load_probes
from grader.instructor.value_text import value_text
from grader.nbgrader.naming import names
from grader.nbgrader.reading import Reader
from grader.nbgrader.run import notebook_digest
from grader.student.work import Work
from grader.verdict.checks import CheckRun, Suite
from grader.verdict.compare import Mismatch
from grader.verdict.interview import Evidence, Interview
from grader.verdict.limits import JudgeLimits, within_memory
from grader.verdict.probe_versions import probe_versions
from grader.verdict.verdict import CheckResult, Verdict, message_for


class NoEvidence(CourseError):
    """Nothing is kept of this student, who may not exist."""


OnError = Callable[[BaseException, Sequence[Evidence]], None]
"""Is shown the error of a check, and the evidence that the check had asked for until then."""


@dataclass(frozen=True)
class Asked:
    """One question to the student's code and its answer, as text short enough to read."""

    probe: str
    inputs: Mapping[str, str]
    answer: str
    printed: str = ""
    warnings: tuple[str, ...] = ()
    inputs_after: Mapping[str, str] | None = None
    """Where the code changed an input."""


@dataclass(frozen=True)
class Step:
    """One check of a verdict. `saw` are the values that it compared, `expected` says with what;
    `given` is the state in the verdict that was given, `now` what today's checks say.
    """

    check: str
    rubric: str
    points: str
    given: str
    now: str
    asked: tuple[Asked, ...]
    saw: tuple[str, ...]
    message: str
    expected: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Explanation:
    """All that is known of one verdict. `trouble` says why its evidence cannot be shown, if so;
    `seconds` is how long the code was waited for, None if that was not kept.
    """

    student: str
    chapter: str
    verdict: Verdict
    seed: int
    tier: str
    versions: Mapping[str, str]
    submission: str
    seconds: float | None
    steps: tuple[Step, ...]
    trouble: str = ""

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {**asdict(self), "verdict": self.verdict.to_data()}


class Witness(Interview):
    """An interview that notes every question, those too that were answered before."""

    def __init__(self, transport: Replay, off_limits: tuple[Rule, ...], seed: int) -> None:
        super().__init__(transport, off_limits, seed)
        self._replay = transport
        self.noted: list[tuple[Probe, Mapping[str, Any], Evidence | Ended]] = []

    def ask(self, probe: Probe, inputs: Mapping[str, Any]) -> Evidence:
        """Return the evidence of `probe` on `inputs`. Raises `Ended`."""
        missing = len(self._replay.missing)
        try:
            evidence = super().ask(probe, inputs)
        except Ended as ended:
            if len(self._replay.missing) > missing:
                self.ended = None  # nothing ended then: the other questions still have answers
            self.noted.append((probe, inputs, ended))
            raise
        self.noted.append((probe, inputs, evidence))
        return evidence


def explain(
    chapter: Chapter, student: str, exercise: str, on_error: OnError | None = None
) -> Explanation:
    """Return what is behind the verdict on a student's exercise.

    `on_error` is shown each check that fails now. Raises `CourseError` if nothing is kept of it.
    """
    torch.set_num_threads(1)  # as when it was graded
    store = Store(chapter.root, student, chapter.id)
    record = kept_record(chapter, store, student)
    known = {data["exercise"]: Verdict.from_data(data) for data in record["verdicts"]}
    verdict = known[chapter.exercise(exercise).id]
    steps, trouble = _replay(chapter, store, record, verdict, on_error)
    return Explanation(
        student,
        chapter.id,
        verdict,
        record["seed"],
        record["tier"],
        record["versions"],
        record["submission"],
        store.seconds().get(chapter.exercise(exercise).grade_id),
        steps,
        trouble,
    )


def kept_record(chapter: Chapter, store: Store, student: str) -> dict[str, Any]:
    """Return what was noted when a submission was graded. Raises `CourseError` if nothing is kept."""
    record = store.read()
    if record is None:
        kept = [path.parent.name for path in (chapter.root / "evidence").glob(f"*/{chapter.id}")]
        if not kept:
            raise NoEvidence(f"No evidence is kept in {chapter.id}: nothing of it is graded.")
        raise NoEvidence(
            f"No evidence of {student} is kept in {chapter.id}. There is evidence of: {names(kept, 8)}."
        )
    return record


def kept_work(chapter: Chapter, record: Mapping[str, Any]) -> Work:
    """Return what was graded when a record was made. Raises `CourseError` if it cannot be read any more."""
    path = chapter.root / "autograded" / record["student"] / chapter.id / f"{chapter.name}.ipynb"
    if not path.is_file():
        raise CourseError(f"The autograded notebook is gone: {path.relative_to(chapter.root)}.")
    notebook = nbformat.read(path, as_version=4)
    if notebook_digest(notebook) != record["submission"]:
        raise CourseError("The autograded notebook is not the one that was graded.")
    try:  # a text that is slow to read is not read here
        with Reader(chapter, chapter.notebook) as reader:
            attempts = reader.attempts(notebook)
    except (Exceeded, Failed) as error:
        raise CourseError(f"Its text cannot be read: reading it {error}.") from None
    return Work(chapter, path, attempts, frozenset(), {}, {}, tuple(code_cells(notebook)))


def _replay(
    chapter: Chapter,
    store: Store,
    record: Mapping[str, Any],
    verdict: Verdict,
    on_error: OnError | None,
) -> tuple[tuple[Step, ...], str]:
    """Return the checks, run on the kept replies, or why they cannot be."""
    exercise = chapter.exercise(verdict.exercise)
    replies = store.replies(exercise.grade_id)
    if not replies:
        return (), f"No code was run ({verdict.outcome}), so there is no evidence."
    try:
        attempt = kept_work(chapter, record).attempts[exercise.id]
    except CourseError as error:
        return (), str(error)
    probes = load_probes(chapter.probes)
    versions = probe_versions(chapter.probes, probes)
    changed = [name for name, known in record["probes"].items() if versions.get(name) != known]
    replay = Replay(replies, changed)
    witness = Witness(replay, exercise.off_limits, record["seed"])
    suite = Suite(chapter.checks(exercise.id), probes, exercise.values)
    try:
        witness.load(attempt.program, attempt.read_for(exercise).judged)
        steps = _run(suite, witness, record["seed"], verdict, on_error)
    except Ended as ended:
        return (), replay.missing[0] if replay.missing else ended.detail
    why = f"Not all of it can be shown: {replay.missing[0]}." if replay.missing else ""
    return steps, why


def _run(
    suite: Suite, witness: Witness, seed: int, verdict: Verdict, on_error: OnError | None
) -> tuple[Step, ...]:
    given = {check.name: check for check in verdict.checks}
    steps: list[Step] = []

    def note(runs: list[CheckRun]) -> bool:
        asked = tuple(_asked(*one) for one in witness.noted)
        witness.noted.clear()
        steps.append(_step(runs[-1], given.get(runs[-1].check.name), asked))
        return False

    def show(error: BaseException) -> None:
        if on_error is not None:
            on_error(error, [one for _, _, one in witness.noted if isinstance(one, Evidence)])

    # as when it was graded: evidence may be slow to judge; who sits in a debugger has time
    limits = JudgeLimits() if on_error is None else None
    with within_memory(limits) if limits else nullcontext():
        suite.run(witness, seed, stop=note, on_error=show, limits=limits)
    return tuple(steps)


def _step(run: CheckRun, given: CheckResult | None, asked: tuple[Asked, ...]) -> Step:
    message = message_for(run.error) if run.error else None
    return Step(
        check=run.check.name,
        rubric=run.check.rubric,
        points=f"{given.earned:g} of {given.points:g}" if given else "",
        given=given.state.value if given else "not in the verdict",
        now="failed" if run.error else "passed",
        asked=asked,
        saw=tuple(
            _compared(one.kind, one.got, one.tolerance)
            for one in run.comparisons
            if (one.kind, one.got) != ("raised", None)
        ),
        message=message.what if message else "",
        expected=message.rows if message and isinstance(run.error, Mismatch) else (),
    )


def _compared(kind: str, got: object, tolerance: tuple[float, float]) -> str:
    rtol, atol = tolerance
    within = f" within rtol {rtol:g}, atol {atol:g}" if kind == "close" else ""
    return f"{kind}{within}: {value_text(got)}"


def _asked(probe: Probe, inputs: Mapping[str, Any], evidence: Evidence | Ended) -> Asked:
    before = {name: value_text(value) for name, value in inputs.items()}
    if isinstance(evidence, Ended):
        return Asked(probe.name, before, f"the process ended: {evidence.detail}")
    after = None
    try:
        after = {name: value_text(value) for name, value in evidence.inputs_after.items()}
        answer = value_text(evidence.value)
    except AssertionError as error:  # what it raised, or why it is no answer
        answer = str(error)
    return Asked(
        probe.name,
        before,
        answer,
        evidence.stdout,
        tuple(f"{kind}: {text}" for kind, text in evidence.warnings),
        after if after != before else None,
    )
