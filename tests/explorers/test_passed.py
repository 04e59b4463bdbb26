"""Which explorers' tests are left out: none that anything changed for."""

import pytest

from grader.proving.ledger import State
from tests.explorers import passed


@pytest.fixture
def all_passed(tmp_path, monkeypatch):
    """A record by which the tests of every explorer passed with the files of today."""
    monkeypatch.setattr(passed, "FILE", tmp_path / "passed.json")
    passed.write(passed.EXPLORERS)
    passed.state.cache_clear()
    yield
    passed.state.cache_clear()


def test_one_explorer_has_its_turn_where_nothing_changed(all_passed):
    assert len(passed.chosen()) == 1


@pytest.mark.parametrize(
    "changed",
    [
        "site/explorers/strides/view.js",
        "site/explorers/strides.md",
        "tests/explorers/golden_strides.py",
        "tests/explorers/test_strides_page.py",
    ],
)
def test_what_changed_runs(all_passed, tmp_path, monkeypatch, changed):
    before = {name: passed.digest(name) for name in passed.EXPLORERS}
    here = passed.ROOT / changed
    monkeypatch.setattr(type(here), "read_bytes", _edited(type(here).read_bytes, here.name))
    after = {name: passed.digest(name) for name in passed.EXPLORERS}
    assert {name for name in before if before[name] != after[name]} == {"strides"}
    assert passed.state("strides") is State.CHANGED
    assert "strides" in passed.chosen()


def _edited(read, name):
    return lambda path: read(path) + (b" " if path.name == name else b"")


def test_an_edit_of_what_all_share_runs_all(all_passed, monkeypatch):
    read = passed.Path.read_bytes
    monkeypatch.setattr(type(passed.ROOT), "read_bytes", _edited(read, "explorer.css"))
    assert passed.chosen() == set(passed.EXPLORERS)


def test_who_has_no_record_runs_all(all_passed):
    passed.FILE.unlink()
    assert passed.chosen() == set(passed.EXPLORERS)
