"""What a run of the tests says at its end: where the time went, and what was proved.

Reports of pytest-xdist's workers come together in the process that started them.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePosixPath
from typing import Any

import pytest

from grader.proving.ledger import State

PROOF = "proof"
"""The property by which a test says of what it proved: name, how the ledger stood, whether it ran."""


LONGEST = 12
"""Files named for the time that they took."""


class Account:
    """Collects the time of each room of the tests and of each file, and the proofs that were made."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._files: defaultdict[str, float] = defaultdict(float)
        self._proofs: dict[str, tuple[str, bool]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one phase of one test."""
        path = PurePosixPath(report.location[0])
        room = path.parts[1] if len(path.parts) > 2 else path.name
        self._seconds[room] += report.duration
        self._files[report.location[0]] += report.duration
        if report.when == "call":
            proofs = [value for key, value in report.user_properties if key == PROOF]
            self._proofs |= {name: (how, proved) for name, how, proved in proofs}

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print them."""
        write = terminalreporter.write_line
        if len(self._seconds) > 1:
            terminalreporter.section("where the time went (seconds, all workers)")
            for room, seconds in longest(self._seconds):
                write(f"{seconds:8.1f}  {room}")
            terminalreporter.section("of which the longest files")
            for file, seconds in longest(self._files)[:LONGEST]:
                write(f"{seconds:8.1f}  {file}")
        if self._proofs:
            terminalreporter.section("proofs")
            for line in told(self._proofs):
                write(line)


def longest(seconds: dict[str, float]) -> list[tuple[str, float]]:
    """Return what took time, the longest first."""
    return sorted(seconds.items(), key=lambda item: -item[1])


def told(proofs: dict[str, tuple[str, bool]]) -> list[str]:
    """Return the lines about proofs: `proofs` has how the ledger stood, and whether it was made now."""
    lines = []
    for state in State:
        names = [name for name, (how, _) in proofs.items() if how == state.value]
        made = sorted(name for name in names if proofs[name][1])
        if names:
            lines.append(f"{state.value}: {len(names)}, proved in this run: {len(made)}")
        if made:
            lines.append(f"  {', '.join(made)}")
    if any(how == State.JUDGED_ANEW.value for how, _ in proofs.values()):
        lines.append("The code that judges has changed: make prove is due, before a release.")
    elif any(how == State.CHANGED.value for how, _ in proofs.values()):
        lines.append("What changed was proved here. Write it down: undertorch prove --stale")
    return lines
