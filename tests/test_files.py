"""Files are written whole or not at all, with the mode that they should have."""

import os
import tempfile
from pathlib import Path

import pytest

from grader.files import files_below, inert, remove_tree, write_atomically


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_and_its_folder(tmp_path):
    write_atomically(tmp_path / "new" / "file.csv", "a\r\n", private=True)
    path = tmp_path / "new" / "file.csv"
    assert path.read_bytes() == b"a\r\n" and path.stat().st_mode & 0o777 == 0o600
    assert names(path.parent) == ["file.csv"]


def test_a_file_that_is_there_keeps_its_mode(tmp_path):
    path = tmp_path / "notebook.ipynb"
    path.write_text("old")
    path.chmod(0o640)
    write_atomically(path, "new", durable=False)
    assert path.read_text() == "new" and path.stat().st_mode & 0o777 == 0o640


def test_behind_a_link_the_file_itself(tmp_path):
    (tmp_path / "there").write_text("old")
    (tmp_path / "link").symlink_to("there")
    write_atomically(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "there").read_text() == "new"


def test_what_cannot_be_written_leaves_the_old(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "\ud800")
    assert path.read_text() == "old" and names(tmp_path) == ["file"]


def test_a_terminal_is_given_no_orders():
    assert inert("a\x1b[2J\x07\r\u202eb\tc\nü\ud800") == "a�[2J���b\tc\nü�"


def test_nothing_is_written_through_a_partial_file_that_is_a_link(tmp_path):
    (tmp_path / "other").write_text("other")
    (tmp_path / ".file.partial").symlink_to("other")
    with pytest.raises(OSError, match="symbolic links"):
        write_atomically(tmp_path / "file", "new")
    assert (tmp_path / "other").read_text() == "other"


def test_a_tree_deeper_than_python_recurses():
    # not in pytest's folder, which pytest itself could not remove if this test were cut off
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "beside").mkdir()
        (place / "beside" / "kept").write_text("kept")
        top = place / "top"
        top.mkdir()
        here = os.getcwd()
        os.chdir(top)
        try:
            for _ in range(1100):
                os.mkdir("d")
                os.chdir("d")
        finally:
            os.chdir(here)
        (top / "d" / "file").write_text("12345")
        (top / "link").symlink_to(place / "beside")
        assert [entry.name for entry in files_below(top)] == ["file"]
        remove_tree(top)
        assert names(place) == ["beside"] and names(place / "beside") == ["kept"]
