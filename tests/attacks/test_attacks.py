"""Every attack gets the verdict of its folder, and harms nobody. See `harness` for what a file means."""

import pytest

from tests import begun_since
from tests.attacks.harness import ATTACKS, EXERCISES, PLAIN, SOURCES, VICTIMS

ALL = (*ATTACKS, *PLAIN)


@pytest.fixture(scope="module")
def rows(graded):
    """The gradebook, read once."""
    return graded.rows()


@pytest.mark.parametrize("attack", ALL, ids=lambda attack: attack.student)
def test_an_attack_gets_what_is_due(graded, rows, attack):
    record = graded.record(attack.student)
    check_outcome_and_points(graded, attack, record)
    check_gradebook(graded, attack, rows[attack.student])
    check_who_is_looked_at(attack, record, rows[attack.student])
    check_feedback(graded, attack)
    check_nothing_leaks(graded, attack)


def check_outcome_and_points(graded, attack, record):
    shown = {
        name: (v["outcome"], v["points"], v["summary"], v["review"]) for name, v in record.items()
    }
    assert {name: v["outcome"] for name, v in record.items()} == attack.expected(), shown
    assert {name: v["points"] for name, v in record.items()} == attack.points(graded.most), shown


def check_gradebook(graded, attack, rows):
    outcomes = attack.expected()
    wanted = {  # what nobody could grade has no score
        name: None if outcomes[name] == "needs review" else points
        for name, points in attack.points(graded.most).items()
    }
    assert {name.removesuffix("-grade"): score for name, (score, _) in rows.items()} == wanted


def check_who_is_looked_at(attack, record, rows):
    told = {name: v["review"] for name, v in record.items()}
    looked_at = {name.removesuffix("-grade") for name, (_, look) in rows.items() if look}
    assert looked_at == {name for name in record if attack.reason(name) is not None}, told
    assert all((attack.reason(name) or "") in told[name] for name in record), told


def check_feedback(graded, attack):
    page = graded.page(attack.student)
    assert attack.head.get("says", "") in page
    assert "Traceback" not in page
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def check_nothing_leaks(graded, attack):
    for name, content in graded.files(
        f"autograded/{attack.student}", f"feedback/{attack.student}"
    ).items():
        for secret in graded.secrets():
            assert secret.encode() not in content, name


@pytest.mark.parametrize("victim", VICTIMS)
def test_the_victim_gets_what_is_due(graded, rows, victim):
    record = graded.record(victim)
    assert [v["outcome"] for v in record.values()] == ["passed"] * len(EXERCISES)
    assert rows[victim] == {f"{name}-grade": (graded.most[name], False) for name in EXERCISES}


def test_nothing_else_was_changed(graded):
    after = graded.files(*(f"submitted/{victim}" for victim in VICTIMS), *SOURCES)
    before = {name: content for name, content in graded.before.items() if name in after}
    assert after == before


def test_no_process_is_left(graded):
    assert not begun_since(graded.children)


def test_nobody_called(graded):
    assert not graded.called


def test_every_student_has_every_row(rows):
    wanted = {f"{name}-grade" for name in EXERCISES}
    assert {student: set(found) for student, found in rows.items()} == dict.fromkeys(
        [*VICTIMS, *(attack.student for attack in ALL)], wanted
    )


def test_a_log_line_for_what_could_not_be_read(graded):
    for attack in PLAIN:
        assert (f"{attack.student}: " in graded.log) is (attack.verdict == "needs review")


def test_export_works_afterwards(graded):
    graded.run("nbgrader", "export", "--to", "grades.csv")
    lines = (graded.root / "grades.csv").read_text().splitlines()
    assert len(lines) == 1 + len(VICTIMS) + len(ALL)
