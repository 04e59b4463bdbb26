"""Applies the present checks, points and mistakes to kept evidence. No student code runs.

The transcripts answer in the code's place, for the recorded seed, so that inputs are the same. An
exercise whose probes or inputs changed is left as it was, and it is said that it needs a real run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import Autograde
from nbgrader.preprocessors import AssignLatePenalties

from grader.course.cells import grade_id_of, is_grade_cell
from grader.evidence.replay import Replay
from grader.evidence.store import OtherSchema, Store
from grader.files import write_atomically
from grader.inside.process.budget import Budget
from grader.nbgrader.batch import Batch
from grader.nbgrader.grade import GradeInBox
from grader.nbgrader.gradebook import (
    Place,
    has_scores_by_hand,
    in_one_transaction,
    marks_of,
    save,
)
from grader.nbgrader.reading import INTAKE
from grader.nbgrader.run import Graded, Run, grade_notebook, notebook_digest, show
from grader.verdict.verdict import Verdict


@dataclass(frozen=True)
class Change:
    """One verdict that became another, and why."""

    student: str
    exercise: str
    before: Verdict
    after: Verdict
    why: tuple[str, ...]


@dataclass(frozen=True)
class ByHand:
    """A changed submission of which a person scored something: that score stands."""

    student: str


@dataclass(frozen=True)
class NeedsRun:
    """One exercise, or a whole submission (""), that evidence cannot answer for."""

    student: str
    exercise: str
    why: str


class Regrade:
    """One regrade of a chapter, with nbgrader's settings in `autograde`."""

    def __init__(self, autograde: Autograde, batch: Batch, *, dry: bool) -> None:
        self._autograde, self._batch, self._dry = autograde, batch, dry
        self._late = AssignLatePenalties(parent=autograde)
        self._terms = GradeInBox(parent=autograde).terms()
        self._runs: dict[tuple[int, str], Run] = {}

    def __call__(self) -> Iterator[Change | ByHand | NeedsRun]:
        """Regrade every submission that is graded; yield what changed, what a person's score keeps
        from counting, and what could not be done.
        """
        chapter, directory = self._batch.chapter, self._autograde.coursedir
        records = (chapter.root / "evidence").glob(f"{directory.student_id}/{chapter.id}")
        try:
            with Gradebook(directory.db_url, directory.course_id) as gradebook:
                for folder in sorted(records):
                    yield from self._one(gradebook, folder.parent.name)
        finally:
            for run in self._runs.values():
                run.close()

    def _one(self, gradebook: Gradebook, student: str) -> Iterator[Change | ByHand | NeedsRun]:
        chapter = self._batch.chapter
        store = Store(chapter.root, student, chapter.id)
        path = Path(self._autograde._format_dest(chapter.id, student), f"{chapter.name}.ipynb")
        try:
            record = store.read()
        except OtherSchema as error:
            yield NeedsRun(student, "", str(error))
            return
        if record is None or not path.is_file():
            return  # not graded
        nb = nbformat.read(path, as_version=4)
        if notebook_digest(nb) != record["submission"]:
            yield NeedsRun(student, "", "the autograded notebook is not the one that was graded")
            return
        before = [Verdict.from_data(data) for data in record["verdicts"]]
        graded, missing = self._replay(record, store, nb)
        after = [Verdict.from_data(data) for data in graded.record["verdicts"]]
        yield from (NeedsRun(student, name, why) for name, why in missing.items())
        changes = [
            Change(student, new.exercise, old, new, differences(old, new))
            for old, new in zip(before, after, strict=True)
            if old != new
        ]
        place = Place(chapter.id, chapter.name, student)
        if changes:
            by_hand = in_one_transaction(gradebook, lambda: has_scores_by_hand(gradebook, place))
            if by_hand:
                yield ByHand(student)
        if changes and not self._dry:
            try:
                self._write(gradebook, place, graded, path, store)
            except MissingEntry as error:
                yield NeedsRun(student, "", str(error))
                return
        yield from changes

    def _replay(
        self, record: Mapping[str, Any], store: Store, nb: NotebookNode
    ) -> tuple[Graded, dict[str, str]]:
        """Grade from the transcripts; what they lack keeps its verdict and is named, with why."""
        run = self._run(record["seed"], record["tier"])
        changed = [
            name
            for name, version in record["probes"].items()
            if run.probe_versions.get(name) != version
        ]
        replays: dict[str, Replay] = {}

        def open_for(grade_id: str, _: Budget) -> Replay:
            return replays.setdefault(grade_id, Replay(store.replies(grade_id), changed))

        self._follow_release(nb)
        nb.metadata[INTAKE] = {"student": record["student"], **record["intake"]}
        graded = grade_notebook(run, nb, open_for)
        missing = {}
        kept = dict(zip(graded.verdicts, record["verdicts"], strict=True))
        for cell in nb.cells:
            name = grade_id_of(cell)
            if name in replays and replays[name].missing:
                old = Verdict.from_data(kept[name])
                missing[old.exercise] = replays[name].missing[0]
                graded.verdicts[name] = old
                show(cell, old)
        verdicts = json.loads(json.dumps([v.to_data() for v in graded.verdicts.values()]))
        new = {**graded.record, "verdicts": verdicts, "probes": record["probes"]}
        if "passed over" in record:
            new["passed over"] = record["passed over"]
        return replace(graded, record=new), missing

    def _run(self, seed: int, tier: str) -> Run:
        if (seed, tier) not in self._runs:
            run = Run(self._batch.chapter, replace(self._terms, seed=seed), self._batch.released)
            run.tier = tier  # that of the evidence
            self._runs[seed, tier] = run
        return self._runs[seed, tier]

    def _follow_release(self, nb: NotebookNode) -> None:
        """Give the notebook's test cells the text, points and checksums that the gradebook has."""
        released = {
            grade_id_of(cell): cell for cell in self._batch.released["cells"] if is_grade_cell(cell)
        }
        for cell in nb.cells:
            known = released.get(grade_id_of(cell))
            if known is not None:
                cell.source = known["source"]
                cell.metadata.nbgrader.update(known["metadata"]["nbgrader"])

    def _write(
        self, gradebook: Gradebook, place: Place, graded: Graded, path: Path, store: Store
    ) -> None:
        marks = marks_of(graded.notebook, graded.verdicts)
        in_one_transaction(gradebook, lambda: save(gradebook, place, marks, self._late))
        write_atomically(path, nbformat.writes(graded.notebook, version=4) + "\n", durable=False)
        store.record(graded.record)  # last: until then the next regrade does it again


def differences(before: Verdict, after: Verdict) -> tuple[str, ...]:
    """Return in words what makes one verdict differ from another."""
    said = []
    if before.max_points != after.max_points:
        said.append(f"worth {after.max_points:g} points, was {before.max_points:g}")
    if before.outcome is not after.outcome:
        said.append(f"{after.outcome}, was {before.outcome}")
    old = {check.name: check for check in before.checks}
    new = {check.name: check for check in after.checks}
    for name, check in new.items():
        if name not in old:
            said.append(f"new check {name}: {check.state.value}")
        elif check.state is not old[name].state:
            said.append(f"{name}: {check.state.value}, was {old[name].state.value}")
        elif before.max_points == after.max_points and check.points != old[name].points:
            said.append(f"{name}: worth {check.points:g}, was {old[name].points:g}")
    said += [f"check {name} is gone" for name in old if name not in new]
    if before.mistake != after.mistake:
        said.append(f"diagnosis {after.mistake or 'none'}, was {before.mistake or 'none'}")
    return tuple(said) or ("its words changed",)
