"""Which costly tests are left out: none that anything changed for."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import passed

EVERY = {*passed.EXPLORERS, passed.FAMILY}


@pytest.fixture
def all_passed(tmp_path, monkeypatch):
    """A record by which the tests of every explorer passed with the files of today."""
    monkeypatch.setattr(passed, "RECORDS", tmp_path / "passed")
    passed.write("explorers", passed.explorer_digests())


def chosen():
    return passed.chosen("explorers", passed.explorer_digests(), of=len(EVERY))


def test_one_explorer_has_its_turn_where_nothing_changed(all_passed):
    assert len(chosen()) == 1


@pytest.mark.parametrize(
    "changed",
    [
        "site/explorers/strides/view.js",
        "site/explorers/strides.md",
        "tests/explorers/golden_strides.py",
        "tests/explorers/test_strides_page.py",
    ],
)
def test_what_changed_runs(all_passed, monkeypatch, changed):
    before = passed.explorer_digests()
    edit(monkeypatch, changed)
    after = passed.explorer_digests()
    assert {name for name in before if before[name] != after[name]} == {"strides", passed.FAMILY}
    assert {"strides", passed.FAMILY} <= chosen()


@pytest.mark.parametrize(
    "changed",
    ["tests/explorers/test_tools.py", "site/index.md", "solutions/ch02_strides/strides.pct.py"],
)
def test_a_view_changed_runs_the_tests_of_all(all_passed, monkeypatch, changed):
    edit(monkeypatch, changed)
    assert passed.FAMILY in chosen() and len(chosen()) <= 2


def edit(monkeypatch, name, more=b""):
    read, edited = Path.read_bytes, passed.ROOT / name
    more = more or (b"\nedited = True\n" if edited.suffix == ".py" else b" ")
    monkeypatch.setattr(Path, "read_bytes", lambda p: read(p) + (more if p == edited else b""))


def test_a_remark_and_a_blank_line_are_no_change(all_passed, monkeypatch):
    before = passed.explorer_digests(), passed.journey_digests()
    edit(monkeypatch, "grader/feedback/storage_picture.py", b"\n\n# a remark\n")
    assert (passed.explorer_digests(), passed.journey_digests()) == before


def test_what_passed_on_another_python_has_its_turns_alone(all_passed, monkeypatch):
    monkeypatch.setattr(passed, "python_version", lambda: "3.99")
    edit(monkeypatch, "site/explorers/explorer.css")
    assert len(chosen()) == 1


@pytest.mark.parametrize("shared", ["site/explorers/explorer.css", "grader/feedback/theme.css"])
def test_an_edit_of_what_all_share_runs_all(all_passed, monkeypatch, shared):
    edit(monkeypatch, shared)
    assert chosen() == EVERY


def test_who_has_no_record_runs_all(all_passed):
    (passed.RECORDS / "explorers.json").unlink()
    assert chosen() == EVERY


@pytest.mark.parametrize(
    ("changed", "due", "not_due"),
    [
        ("grader/box/fork.py", {"attacks/test_attacks.py", "scale/test_cluster.py"}, set()),
        ("grader/inside/interrupts.py", {"live/test_safe_kernel.py"}, set()),
        ("grader/verdict/marks.py", {"attacks/test_attacks.py"}, {"scale/test_cluster.py"}),
        (
            "grader/ch01_formats/test_decode.py",
            {"attacks/test_attacks.py"},
            {"scale/test_same.py"},
        ),
        ("grader/ch05_autograd/known.json", set(), {"live/test_safe_kernel.py"}),
        ("grader/proving/ledger.py", {"shapes/test_modes.py"}, {"attacks/test_attacks.py"}),
        ("tests/scale/course.py", {"scale/test_cluster.py"}, {"live/test_live.py"}),
        ("tests/jupyter.py", {"live/test_circle.py"}, {"attacks/test_attacks.py"}),
        ("tests/attacks/harness.py", {"attacks/test_attacks.py"}, {"scale/test_same.py"}),
        ("tests/browser.py", {"attacks/test_attacks.py"}, set()),  # conftest imports it
        ("tests/passed.py", set(), {"attacks/test_attacks.py", "scale/test_same.py"}),
        (
            "tests/bombs.py",
            {"nbgrader/test_reading.py", "attacks/test_attacks.py"},
            {"live/test_live.py"},
        ),
    ],
)
def test_a_whole_command_rests_on_the_code_its_helpers_and_chapters(
    monkeypatch, changed, due, not_due
):
    assert (passed.ROOT / changed).is_file()
    before = passed.journey_digests()
    edit(monkeypatch, changed)
    after = passed.journey_digests()
    other = {name for name in before if before[name] != after[name]}
    assert due <= other and not other & not_due


@pytest.mark.parametrize(
    ("changed", "due"),
    [
        ("grader/ch05_autograd/known.json", {"ch05_autograd"}),
        ("grader/ch05_autograd/answers/train_step.md", {"ch05_autograd"}),
        ("tests/ch05_autograd/test_truth.py", {"ch05_autograd"}),
        ("tests/submission/test_evasion.py", passed.chapter_digests().keys()),
        ("grader/verdict/marks.py", passed.chapter_digests().keys()),
        ("grader/instructor/report.py", set()),
    ],
)
def test_tests_of_a_chapter_rest_on_its_files_and_on_what_judges(monkeypatch, changed, due):
    assert (passed.ROOT / changed).is_file()
    before = passed.chapter_digests()
    edit(monkeypatch, changed)
    passed.chapter_digests.cache_clear()
    after = passed.chapter_digests()
    passed.chapter_digests.cache_clear()
    assert {name for name in before if before[name] != after[name]} == due


def test_whose_tests_they_are():
    of = {
        ("explorers/test_strides_page.py", "test_it[x]"): ("explorers", "strides"),
        ("explorers/test_tools.py", "test_it[strides]"): ("explorers", passed.FAMILY),
        ("site/test_pages.py", "test_it[strides]@tests/x.py"): ("explorers", "strides"),
        ("site/test_pages.py", "test_every_page@tests/x.py"): None,
        ("site/test_home.py", "test_it[strides]"): None,
        ("scale/test_same.py", "test_it"): ("journeys", "scale/test_same.py"),
        ("live/test_run_all.py", "test_it[ch07_compile]@x"): ("notebooks", "ch07_compile"),
        ("ch07_compile/test_joint_truth.py", "test_it[x]"): ("chapters", "ch07_compile"),
        ("submission/test_evasion.py", "test_it[ch07_compile]@x"): ("chapters", "ch07_compile"),
        ("submission/test_evasion.py", "test_it[exec(1)]"): None,
        ("verdict/test_locate.py", "test_it[ch07_compile]"): None,
        ("test_cli.py", "test_it"): None,
    }
    assert {pair: passed.costly(passed.TESTS / pair[0], pair[1]) for pair in of} == of


def test_what_takes_long_has_a_turn_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(passed, "RECORDS", tmp_path / "passed")
    names = ["long", *(f"short {number}" for number in range(9))]
    passed._write(
        passed.SECONDS, {"journeys": {name: 90 if name == "long" else 10 for name in names}}
    )
    digests = dict.fromkeys(names, "own")
    passed.write("journeys", digests)
    turns = []
    for count in range(2):
        monkeypatch.setattr(passed, "commit", lambda count=count: (count, 7))
        turns.append(passed.chosen("journeys", digests, of=2))
    assert {"long"} in turns and sorted(map(len, turns)) == [1, 9]


class Report:
    """One phase of one test, as pytest tells it."""

    def __init__(self, nodeid, failed=False):
        self.nodeid, self.location, self.failed = nodeid, (nodeid.split("::")[0], 1, ""), failed
        self.duration = 4.0


def test_each_file_that_passed_is_put_down_for_itself(tmp_path, monkeypatch, pytestconfig):
    monkeypatch.setattr(passed, "RECORDS", tmp_path / "passed")
    one, two, three = sorted(passed.journey_digests())[:3]
    passed.write("journeys", {two: "old", three: "old", "gone": "old"})
    record = passed.Record()
    for name, failed in ((one, False), (two, False), (two, True)):
        record.pytest_runtest_logreport(Report(f"tests/{name}::test_it", failed))
    record.write()
    kept = passed._read("journeys")
    assert kept == {
        one: passed._stamped(passed.journey_digests()[one]),
        three: passed._stamped("old"),
    }
    assert passed._read(passed.SECONDS)["journeys"] == {one: 4, two: 8}


@pytest.mark.parametrize(
    ("status", "stopped", "writes"),
    [
        (pytest.ExitCode.OK, False, True),
        (pytest.ExitCode.TESTS_FAILED, False, True),
        (pytest.ExitCode.TESTS_FAILED, "stopping after 1 failures", False),
        (pytest.ExitCode.INTERRUPTED, False, False),
        (pytest.ExitCode.INTERNAL_ERROR, False, False),
    ],
)
def test_a_session_that_did_not_end_puts_nothing_down(monkeypatch, status, stopped, writes):
    written = []
    monkeypatch.setattr(passed.Record, "write", lambda _: written.append(True))
    option = SimpleNamespace(keyword="")
    config = SimpleNamespace(option=option, args=["tests/scale"])
    session = SimpleNamespace(config=config, shouldfail=stopped)
    passed.Record().pytest_sessionfinish(session, status)
    assert bool(written) == writes


def test_a_program_rests_on_its_source_and_on_the_pages_that_show_it(monkeypatch):
    before = passed.program_digests()
    for changed, due in (
        ("site/questions/ch02_strides.py", {"site/questions/ch02_strides.py"}),
        ("site/questions/clone-or-detach.md", {"site/questions/ch02_strides.py"}),
        ("site/myths/ch02_strides.md", {"site/myths/ch02_strides.py"}),
        ("grader/building/programs.py", set(before)),
        ("site/questions/index.md", set()),  # it shows what none prints
    ):
        with monkeypatch.context() as patch:
            edit(patch, changed)
            after = passed.program_digests()
        assert {name for name in before if before[name] != after[name]} == due, changed


def test_a_page_is_what_it_says_and_what_it_loads(tmp_path):
    (tmp_path / "a.html").write_text("a")
    (tmp_path / "b.html").write_text("b")
    (tmp_path / "style.css").write_text("body {}")
    before = passed.page_digests(tmp_path)
    (tmp_path / "a.html").write_text("another")
    (tmp_path / "search_index.js").write_text("the words of all pages")
    after = passed.page_digests(tmp_path)
    assert after["a.html"] != before["a.html"] and after["b.html"] == before["b.html"]
    (tmp_path / "style.css").write_text("body { color: red }")
    assert passed.page_digests(tmp_path)["b.html"] != after["b.html"]
