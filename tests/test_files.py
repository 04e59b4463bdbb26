"""Files are written whole or not at all, with the mode that they should have."""

import pytest

from grader.files import write_atomically


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
