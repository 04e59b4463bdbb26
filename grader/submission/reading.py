"""What the text of an attempt says, told before any of it runs: all that grading needs of it, as data.

A text may be made to be slow to read. So whoever grades for others has this made by a process that
has limits (see `grader.nbgrader.reading`); here it is only said what is asked of the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.course.rules import Rule
from grader.submission.evasion import Found, evasions
from grader.submission.program import (
    Lines,
    Program,
    is_stub,
    judged_statements,
)
from grader.submission.reasons import Reason
from grader.submission.scan import scan


@dataclass(frozen=True)
class Reading:
    """What an attempt's text says.

    `untouched`: it is the stub. `judged`: where the statements stand that rules apply to. `broken`:
    the rules that its text breaks, each with the line. `evasive`: reasons for a person to look.
    `trouble`: why nothing of this is known, if so. Then none of the text is to run.
    """

    untouched: bool = False
    judged: tuple[Lines, ...] = ()
    broken: tuple[tuple[Rule, str], ...] = ()
    evasive: tuple[Found, ...] = ()
    trouble: str = ""

    def to_data(self, rules: Sequence[Rule]) -> dict[str, Any]:
        """Return it as JSON data. `rules` are those that it was read for."""
        return {
            "untouched": self.untouched,
            "judged": [list(lines) for lines in self.judged],
            "broken": [[rules.index(rule), line] for rule, line in self.broken],
            "evasive": [[one.reason.name, one.line] for one in self.evasive],
            "trouble": self.trouble,
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any], rules: Sequence[Rule]) -> Reading:
        """Return the reading that `to_data` gave."""
        return cls(
            data["untouched"],
            tuple((label, first, last) for label, first, last in data["judged"]),
            tuple((rules[number], line) for number, line in data["broken"]),
            tuple(Found(Reason[name], line) for name, line in data["evasive"]),
            data["trouble"],
        )


def read_text(program: Program, source: str | None, stub: str, rules: Sequence[Rule]) -> Reading:
    """Return what the text of `program` says. `source` is that of the solution cell, if there is one."""
    if source is not None and is_stub(source, stub):
        return Reading(untouched=True)
    judged = judged_statements(program)
    return Reading(
        judged=tuple(lines for lines, _ in judged),
        broken=tuple(scan([text for _, text in judged], rules)),
        evasive=evasions(program, rules),
    )
