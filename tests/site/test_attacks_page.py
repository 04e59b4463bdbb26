"""The page of attacks lists each of them, with what it gets."""

from tests import module_at
from tests.attacks.harness import ATTACKS
from tests.browser import ROOT


def hook():
    return module_at(ROOT / "site" / "attacks.py")


def test_each_attack_has_a_line():
    rows = [row for row in hook().attacks_of(ROOT / "tests/attacks").splitlines() if "| " in row]
    lines = [row for row in rows if not row.startswith(("| what", "|---"))]
    assert len(lines) == len(ATTACKS)
    for line in lines:
        said, gets = line.strip("| ").split(" | ")
        assert said.endswith((".", "?", "!")), line
        assert gets


def test_each_outcome_is_that_of_the_folder():
    table = hook().attacks_of(ROOT / "tests/attacks")
    assert (
        "| Takes all memory: alone, and in many processes that each stay small. | out of memory |"
        in table
    )
