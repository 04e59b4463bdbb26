"""What is put aside of a submission's folder before nbgrader looks into it, and what stays."""

import os
import stat

import pytest

from grader.nbgrader.intake import BYTES_LIMIT, FILES_LIMIT, printable, take_in

NOTEBOOK = "formats.ipynb"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "submitted" / "ada" / "ch01_formats"
    folder.mkdir(parents=True)
    (folder / NOTEBOOK).write_text("{}")
    (tmp_path / "host").write_text("a file of the host")
    return folder


@pytest.fixture
def take(folder, tmp_path):
    return lambda: take_in(folder, tmp_path / "quarantine", NOTEBOOK)


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_ordinary_files_stay(folder, take):
    (folder / "data").mkdir()
    for name in ("helper.py", "data/words with spaces.csv", "timestamp.txt", ".hidden", "é.txt"):
        (folder / name).write_text("2030-01-31 10:00:00 UTC")
    before = names(folder)
    assert take() == []
    assert names(folder) == before


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path, host: path.symlink_to(host), "a link"),
        (lambda path, host: path.symlink_to(host.parent), "a link"),
        (lambda path, host: path.symlink_to("nowhere"), "a link"),
        (lambda path, host: os.link(host, path), "hard link"),
        (lambda path, host: os.mkfifo(path), "no regular file"),
        (
            lambda path, host: os.mknod(path, stat.S_IFSOCK | 0o600),
            "no regular file",
        ),
        (lambda path, host: (path.touch(), os.truncate(path, 30 * 2**20)), "30 MB"),
    ],
)
def test_what_may_not_be_copied_is_put_aside(folder, take, tmp_path, monkeypatch, make, words):
    monkeypatch.chdir(folder)
    (folder / "sub").mkdir()
    make(folder / "sub" / "x", tmp_path / "host")
    (said,) = take()
    assert said.startswith("sub/x was put aside: ")
    assert words in said
    assert names(folder) == [NOTEBOOK, "sub"]
    assert os.path.lexists(tmp_path / "quarantine" / "x")
    assert (tmp_path / "host").read_text() == "a file of the host"


def test_of_many_a_few_are_named(folder, take, tmp_path):
    for number in range(60):
        (folder / f"{number:02}{'x' * 200}").symlink_to("nowhere")
    said = take()
    assert len(said) == 6 and said[-1] == "55 more were put aside for such reasons."
    assert all(line.startswith("…x") and len(line) < 150 for line in said[:5])
    assert names(folder) == [NOTEBOOK] and len(names(tmp_path / "quarantine")) == 60


def test_the_notebook_stays_whatever_it_is(folder, take):
    (folder / NOTEBOOK).unlink()
    os.mkfifo(folder / NOTEBOOK)
    assert take() == []
    assert names(folder) == [NOTEBOOK]


def test_a_folder_is_no_notebook(folder, take):
    (folder / NOTEBOOK).unlink()
    (folder / NOTEBOOK).mkdir()
    assert take() == [f"{NOTEBOOK} was put aside: it is a folder."]


@pytest.mark.parametrize("level", ["submission", "student"])
def test_a_linked_folder_is_cut_off(folder, take, tmp_path, level):
    victim = tmp_path / "submitted" / "bob" / "ch01_formats"
    victim.parent.mkdir()
    folder.rename(victim)
    if level == "submission":
        folder.symlink_to(victim)
    else:
        folder.parent.rmdir()
        folder.parent.symlink_to(victim.parent)
    assert "link" in take()[0]
    assert names(victim) == [NOTEBOOK]
    assert names(folder) == []
    assert not folder.parent.is_symlink()


def test_a_file_in_the_folders_place(folder, take):
    (folder / NOTEBOOK).unlink()
    folder.rmdir()
    folder.write_text("x")
    assert "no folder" in take()[0]
    assert folder.is_dir()


@pytest.mark.parametrize(
    "text",
    [b"yesterday", b"\xff\xfe", b"", b"2030-99-99", b"1" * 5000, b"\0", b"2030-01-31" + b" " * 200],
)
def test_times_that_are_none(folder, take, text):
    (folder / "timestamp.txt").write_bytes(text)
    assert take() == ["timestamp.txt held no time: when it was handed in is unknown."]
    assert names(folder) == [NOTEBOOK]


def test_too_many(folder, take):
    for number in range(FILES_LIMIT + 50):
        (folder / f"{number}.txt").write_text("x")
    assert "50 files and folders were put aside" in take()[0]
    assert len(names(folder)) == FILES_LIMIT + 1


def test_too_much(folder, take):
    for number in range(6):
        with (folder / f"{number}.bin").open("wb") as file:
            file.truncate(20 * 2**20)
    assert "1 files and folders were put aside" in take()[0]
    assert sum(path.stat().st_size for path in folder.iterdir()) <= BYTES_LIMIT + 2


def test_too_deep(folder, take):
    folder.joinpath(*["d"] * 30).mkdir(parents=True)
    assert "folders deep" in take()[0]
    assert len(names(folder)) == 8


def test_two_of_one_name_are_both_kept(folder, take, tmp_path):
    for parent in ("a", "b"):
        (folder / parent).mkdir()
        (folder / parent / "x").symlink_to("nowhere")
    take()
    assert len(list((tmp_path / "quarantine").iterdir())) == 2


def test_the_name_of_the_feedback_page_is_taken(folder, take):
    (folder / "formats.html").write_text("<script>")
    assert take() == ["formats.html was put aside: feedback is written under that name."]


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2J", "\u202etxt.exe", "x\udcff"])
def test_names_that_cannot_be_shown(folder, take, name):
    open(os.fsencode(folder) + b"/" + os.fsencode(name), "w").close()
    (said,) = take()
    assert "cannot be printed" in said
    assert said.isprintable()


def test_printable_names_break_no_markdown():
    assert printable("`<b>`\x1b") == "'<b>'�"
