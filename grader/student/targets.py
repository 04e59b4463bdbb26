"""What a student means by a word on the command line: a notebook, a file, a chapter, an exercise."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course.cells import grade_id_of
from grader.course.course import Chapter, Course, CourseError
from grader.student.folder import NAME, Folder, display_path, find_folder
from grader.student.lab import Place
from grader.student.naming import did_you_mean
from grader.submission.rebuild import Unreadable, read_notebook


@dataclass(frozen=True)
class Target:
    """Exercises of one notebook. `named` says that the student asked for these by name."""

    chapter: Chapter
    notebook: Path
    exercises: tuple[str, ...]
    named: bool = False


def find_targets(course: Course, words: Sequence[str]) -> list[Target]:
    """Return what each word means, in order; without words, all notebooks of the folder.

    Raises `CourseError` for a word that means nothing.
    """
    if words:
        return [_target(course, word) for word in words]
    folder, here = find_folder(), Path.cwd().resolve()
    there = [
        Target(chapter, folder.notebook(chapter), _ids(chapter))
        for chapter in course.chapters()
        if folder.notebook(chapter).exists()
    ]
    inside = [target for target in there if target.notebook.parent.resolve() == here]
    if not there:
        raise CourseError(
            f"{display_path(folder.root)} holds no notebook. `undertorch learn` puts them there."
        )
    return inside or there


def find_chapter(course: Course, word: str) -> Chapter:
    """Return a chapter by its id, its notebook's name or its number's word: "ch01"."""
    for chapter in course.chapters():
        if word.rstrip("/") in (chapter.id, chapter.name, chapter.id.partition("_")[0]):
            return chapter
    raise _unknown(course, word)


def find_exercise(course: Course, name: str) -> tuple[Chapter, str]:
    """Return an exercise and its chapter, by its id or by the name of its file."""
    name = Path(name).name.removesuffix(".py")
    for chapter in course.chapters():
        if name in _ids(chapter):
            return chapter, name
    raise _unknown(course, name)


def find_place(course: Course, word: str, exercise: str) -> tuple[Path, Place | None]:
    """Return the folder that `undertorch learn` fills, and where it opens; None: as it was left.

    `word` is a chapter, a folder or "". Raises `CourseError` for what is not in the course.
    """
    chapter = None
    if word and not Path(word).is_dir():
        try:
            chapter = find_chapter(course, word)
        except CourseError:
            if re.fullmatch(r"ch\d+\w*", word):  # nobody calls a folder so
                raise
    elsewhere = not chapter and (word or not exercise)
    folder = Path(word or NAME) if elsewhere else _own_folder()
    if not exercise:
        return folder, Place(chapter) if chapter else None
    owner, exercise = find_exercise(course, exercise)
    if chapter not in (None, owner):
        raise CourseError(f"{exercise} is an exercise of {owner.id}, not of {word}.")
    return folder, Place(owner, exercise)


def _own_folder() -> Path:
    """Return the folder that the student is in or above, else the one to make here."""
    try:
        return Path(display_path(find_folder().root))
    except CourseError:
        return Path(NAME)


def _target(course: Course, word: str) -> Target:
    path = Path(word)
    if path.suffix == ".ipynb":
        chapter = _chapter_of(course, path)
        return Target(chapter, path, _ids(chapter))
    if path.suffix == ".py":
        if not path.is_file():
            raise CourseError(f"There is no file {word}.")
        chapter, exercise = find_exercise(course, word)
        return Target(chapter, path.with_name(chapter.released.name), (exercise,), named=True)
    if path.is_dir():
        word = path.resolve().name
    try:
        chapter = find_chapter(course, word)
    except CourseError:
        pass
    else:
        there = path / chapter.released.name if path.is_dir() else find_folder().notebook(chapter)
        return Target(chapter, there, _ids(chapter))
    chapter, exercise = find_exercise(course, word)
    return Target(chapter, _place(find_folder(), chapter), (exercise,), named=True)


def _place(folder: Folder, chapter: Chapter) -> Path:
    """Return the chapter's notebook: the one in the working directory, if that holds one."""
    here = Path.cwd() / chapter.released.name
    return here if here.is_file() else folder.notebook(chapter)


def _chapter_of(course: Course, path: Path) -> Chapter:
    """Return the chapter that most of a notebook's exercises belong to; else go by names."""
    try:
        cells = read_notebook(path.resolve())["cells"]
    except Unreadable:
        cells = []  # said properly when it is read to be checked
    found: Counter[str] = Counter()
    by_id = {chapter.id: chapter for chapter in course.chapters()}
    for cell in cells:
        name = grade_id_of(cell)
        found.update(chapter.id for chapter in by_id.values() if name in _ids(chapter))
    if found:
        return by_id[found.most_common(1)[0][0]]
    for chapter in by_id.values():
        if path.resolve().parent.name == chapter.id or path.stem == chapter.name:
            return chapter
    if not path.exists():
        raise CourseError(f"There is no notebook {path}.")
    raise CourseError(f"{path} holds no exercise of this course.")


def _ids(chapter: Chapter) -> tuple[str, ...]:
    return tuple(exercise.id for exercise in chapter.exercises)


def _unknown(course: Course, word: str) -> CourseError:
    known = [name for chapter in course.chapters() for name in (chapter.id, *_ids(chapter))]
    return CourseError(
        f"No notebook, chapter or exercise is called {word!r}.{did_you_mean(word, known)} "
        "`undertorch progress` lists all of them."
    )
