"""pdb in a check that fails on kept evidence. The student's code is not there, only what it said."""

from __future__ import annotations

import pdb
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from grader.evidence.outcome import Ended
from grader.files import inert
from grader.verdict.interview import Evidence

_HELP = """\
Stopped where the check failed. `asked` is the evidence that it had until then, last asked last:
`p asked[-1].value` is what the code returned, `p asked[-1].inputs_after` what it was given.
`args` lists the check's arguments, `l` shows its text, `down` goes into the comparison.
`c` goes to the next check that fails, `q` ends.
"""


class CheckDebugger:
    """Shows each failing check of a file in pdb, until the person quits."""

    def __init__(
        self, checks: Path, stdin: TextIO | None = None, out: TextIO | None = None
    ) -> None:
        self._checks, self._stdin, self._out = checks, stdin, out
        self.stops = 0
        self._quit = False

    def __call__(self, error: BaseException, asked: Sequence[Evidence]) -> None:
        """Stop in the frame of the check that raised `error`; not where the process had ended."""
        if self._quit or isinstance(error, Ended):
            return
        out = self._out or sys.stdout
        said = inert(f"{type(error).__name__}: {error}")
        out.write(("" if self.stops else _HELP) + f"\n{said}\n")
        self.stops += 1
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        files = [Path(frame.f_code.co_filename) for frame in frames]
        ours = [index for index, path in enumerate(files) if path == self._checks]
        debugger = _Pdb(stdin=self._stdin, stdout=self._out)
        up = len(frames) - 1 - ours[-1] if ours else 0
        if up:
            debugger.cmdqueue.append(f"up {up}")
        frames[ours[-1] if ours else -1].f_globals["asked"] = asked
        debugger.reset()
        debugger.interaction(None, error.__traceback__)
        self._quit = debugger.quit


class _Pdb(pdb.Pdb):
    """pdb that remembers whether it was left by `q`; `c` only ends this stop."""

    def __init__(self, **streams: Any) -> None:
        super().__init__(nosigint=True, **streams)
        self.prompt = "(check) "
        self.quit = False

    def do_quit(self, arg: str) -> bool | None:
        """End the debugging of all checks."""
        self.quit = True
        return super().do_quit(arg)

    do_q = do_exit = do_quit

    def do_EOF(self, arg: str) -> bool | None:
        """End too: nobody is there."""
        self.quit = True
        return super().do_EOF(arg)
