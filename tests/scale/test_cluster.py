"""Graded by Dask's workers: the same result, whoever of them dies, and clear words for who differs."""

import signal

import pytest
from distributed import Client
from distributed.comm import CommClosedError

from grader.evidence.store import Store
from grader.nbgrader import cluster as cluster_module
from grader.nbgrader.dask_worker import differences, identity
from tests.forked import Forked
from tests.scale.course import CHAPTER, HALF, TinyCourse, until
from tests.scale.dask import cluster

STUDENTS = [f"s{number:02}" for number in range(12)]


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("dask"), workers=2) as running:
        yield running


@pytest.fixture(scope="module")
def graded(dask, tmp_path_factory):
    """Two courses with the same class, one graded here, one by Dask's workers."""
    here, there = (TinyCourse(tmp_path_factory.mktemp(name)) for name in ("here", "there"))
    for course in (here, there):
        course.hand_in_a_class()
        course.hand_in("ines", {}, extra=["double.py"])
    here.run("undertorch", "grade", CHAPTER, "--jobs", "1")
    there.said = there.run("undertorch", "grade", CHAPTER, "--scheduler", dask.address)
    return here, there


@pytest.mark.parametrize("folder", ["autograded", "evidence"])
def test_same_files(graded, folder):
    here, there = (course.files(folder) for course in graded)
    assert list(here) == list(there)
    assert here == there


def test_same_rows(graded):
    here, there = graded
    assert here.rows() == there.rows()
    assert "9 graded, 2 of them need review" in there.said


def test_evidence_that_travelled_can_be_judged_again(graded):
    assert "No verdict changes." in graded[1].run("undertorch", "regrade", CHAPTER)


def test_a_course_folder_interrupted_and_a_worker_killed(dask, tmp_path):
    """Graders lie elsewhere there. Ctrl-C, then a worker that dies: each is graded once."""
    root, chapter = tmp_path / "spring", "ch01_formats"
    made = Forked(tmp_path, ("undertorch", "course", "new", "spring", "--exercises", "decode"))
    said = made.said_until_end()
    assert made.status == 0, said
    released = (root / "release" / chapter / "formats.ipynb").read_text()
    wrong = "return 0.0"
    for student in STUDENTS:
        folder = root / "submitted" / student / chapter
        folder.mkdir(parents=True)
        (folder / "formats.ipynb").write_text(
            released.replace("raise NotImplementedError()", wrong, 1)
        )

    def graded():
        return {path: path.read_bytes() for path in root.glob(f"autograded/*/{chapter}/*.ipynb")}

    command = ("undertorch", "grade", chapter, "--scheduler", dask.address)
    process = Forked(root, command)
    until(process, lambda: len(graded()) >= 2)
    process.send_signal(signal.SIGINT)
    said = process.said_until_end()
    assert process.status == 130, said
    assert f"To go on: undertorch grade {chapter}" in said
    before = graded()
    assert 2 <= len(before) < len(STUDENTS)
    process = Forked(root, command)
    until(process, lambda: len(graded()) >= len(before) + 2)
    victim = dask.workers.pop(0)
    victim.kill()
    victim.wait()
    said = process.said_until_end()
    assert process.status == 0, said
    after = graded()
    assert len(after) == len(STUDENTS) and before.items() <= after.items()
    outcomes = {
        Store(root, student, chapter).read()["verdicts"][0]["outcome"] for student in STUDENTS
    }
    assert outcomes == {"failed"}


def test_another_torch_is_refused(dask, tmp_path, monkeypatch):
    ours = identity(CHAPTER) | {"torch": "2.12.0"}
    monkeypatch.setattr(cluster_module, "identity", lambda chapter: ours)
    course = TinyCourse(tmp_path)
    course.hand_in("ada")
    said = course.run("undertorch", "grade", CHAPTER, "--scheduler", dask.address, status=1)
    assert "(here 2.12.0). Install the same commit and the same torch there" in said
    assert course.all_graded() == []


def test_an_answer_cut_off_is_no_fault_of_a_worker(dask, tmp_path, monkeypatch):
    """The scheduler may die after it has told of an answer and before it has handed it out."""
    gather = Client._gather

    async def cut_off(client, futures, **options):
        if futures[0].key.startswith("grade-"):
            raise CommClosedError("Connection reset by peer")
        return await gather(client, futures, **options)

    monkeypatch.setattr(Client, "_gather", cut_off)
    course = TinyCourse(tmp_path)
    course.hand_in("ada")
    said = course.run("undertorch", "grade", CHAPTER, "--scheduler", dask.address, status=1)
    assert f"Stopped: The Dask scheduler at {dask.address} is gone" in said
    assert course.all_graded() == []


def test_a_worker_with_several_threads_is_refused(dask, tmp_path):
    course = TinyCourse(tmp_path)
    course.hand_in("ada")
    with dask.guest(threads=2):
        said = course.run("undertorch", "grade", CHAPTER, "--scheduler", dask.address, status=1)
    assert "has 2 threads, and judging wants one" in said


def test_nobody_there(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_module, "CONNECT_SECONDS", 0.2)
    course = TinyCourse(tmp_path)
    course.hand_in("ada")
    said = course.run("undertorch", "grade", CHAPTER, "--scheduler", "tcp://127.0.0.1:1", status=2)
    assert "No Dask scheduler answers at tcp://127.0.0.1:1" in said


def test_what_differs_is_named():
    here = identity("ch01_formats")
    assert differences(here, dict(here)) == ""
    other = {**here, "torch": "2.0", "Undertorch's code": "0"}
    assert differences(here, other).startswith(f"torch 2.0 (here {here['torch']}), Undertorch's")
    assert identity("ch02_strides")["Undertorch's code"] != here["Undertorch's code"]


def test_a_scheduler_that_dies_loses_nothing(dask, tmp_path):
    """The last of those that need it."""
    course = TinyCourse(tmp_path)
    for student in STUDENTS:
        course.hand_in(student, HALF)
    process = course.command("undertorch", "grade", CHAPTER, "--scheduler", dask.address)
    until(process, lambda: len(course.all_graded()) >= 2)
    dask.scheduler.kill()
    said = process.said_until_end()
    assert process.status == 1, said
    assert f"Stopped: The Dask scheduler at {dask.address} " in said
    course.assert_whole(STUDENTS)
