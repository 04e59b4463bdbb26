"""Runs of `Run`: what is done in them, as a program that one can paste, and what should be written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from grader.ch11_watching.probes.backends import ENDINGS, written_act
from grader.verdict.compare import about, assert_equal

Act = tuple[Any, ...]
"""What a program does with a run: ("log", step, values), ("config", values), ("state",), ("finish",)."""

Told = tuple[int, dict[str, str]]
"""A step and its values, as the text of floats."""

ALL = ("add", "log", "log_metrics")
"""Backends by their word for a step: `EventWriter`'s, W&B's, MLflow's."""

OPENED = {"add": "Lines(path, start)", "log": "wandb_run", "log_metrics": "mlflow"}

ENDS = {"add": "close", "log": "finish", "log_metrics": "end_run"}

FINISH, SAVE = ("finish",), ("state",)


def logs(steps: Iterable[int], life: int = 0) -> list[Act]:
    """Log a loss at each step; it is another one in each life."""
    return [("log", step, {"loss": 100.0 * life + step}) for step in steps]


def rows_of(acts: Sequence[Act]) -> list[Told]:
    """Return what should be written of acts."""
    return [
        (act[1], {name: repr(float(one)) for name, one in act[2].items()})
        for act in acts
        if act[0] == "log"
    ]


def outcome(lives: Sequence[Sequence[Act]]) -> list[Act]:
    """Return the acts that count: each run's up to its last checkpoint, and all of the last run's."""
    done: list[Act] = []
    saved: list[Act] = []
    for acts in lives:
        done = list(saved)
        for act in acts:
            done += [act] if act[0] == "log" else []
            saved = list(done) if act[0] == "state" else saved
    return done


def program(words: Sequence[str], every: int | None, lives: Sequence[Sequence[Act]]) -> str:
    """Return runs of one backend or more as one would write them."""
    opened = ", ".join(f"lambda start: {OPENED[one]}" for one in words)
    lines = [f"openers = [{opened}]"]
    for number, acts in enumerate(lives):
        options = "" if every is None else f", every={every}"
        options += ", state=state" if any(SAVE in before for before in lives[:number]) else ""
        lines += ["# the process is killed here, and another one begins"] if number else []
        lines.append(f"run = Run(openers{options})")
        lines += [written_act(*act) for act in acts]
    return "\n".join(lines)


def lived(
    runs_lived: Any, words: Sequence[str], every: int | None, lives: Sequence[Sequence[Act]]
) -> tuple[list[Any], list[tuple[str, str]]]:
    """Return what each backend has after some runs, and rows that say which runs these were."""
    backends = [(word, None) for word in words]
    got = runs_lived.ask(backends, every, [list(acts) for acts in lives]).value
    rows = [("program", program(words, every, lives))]
    if got["warned"]:
        rows.append(("warned", "; ".join(got["warned"])))
    return got["backends"], rows


@contextmanager
def of_backend(place: int, word: str, rows: Sequence[tuple[str, str]]) -> Iterator[None]:
    """Say which backend comparisons within are about, after the rows of the run."""
    with about(*rows, ("of", f"backend {place + 1}, with `{word}`")):
        yield


def same_rows(got: Sequence[Any], expected: Sequence[Told]) -> None:
    """Compare what is written, steps before values."""
    steps = [step for step, _ in got]
    assert_equal(steps, [step for step, _ in expected], "The steps that are written.")
    assert_equal([values for _, values in got], [values for _, values in expected], "Their values.")


def compare(
    runs_lived: Any,
    words: Sequence[str],
    every: int | None,
    lives: Sequence[Sequence[Act]],
    expected: Sequence[Act],
) -> None:
    """Run, and compare what each backend has in the end with the acts that should be written."""
    backends, rows = lived(runs_lived, words, every, lives)
    for place, (word, backend) in enumerate(zip(words, backends, strict=True)):
        with of_backend(place, word, rows):
            same_rows(backend["rows"], rows_of(expected))


def with_failing(
    runs_lived: Any, word: str, fails: tuple[str, int, str], acts: Sequence[Act]
) -> tuple[Any, list[str], list[tuple[str, str]]]:
    """Let the second of four backends raise.

    word: by which it is told a step; fails: which of its words raises, at which call, and what
    Returns all that was seen, the words of the backends, and rows that say what was done.
    """
    first, last = (one for one in ALL if one != word)
    words = [first, word, last, first]
    backends = [(one, fails if place == 1 else None) for place, one in enumerate(words)]
    got = runs_lived.ask(backends, 2, [list(acts)]).value
    what = f"`{fails[0]}` of the second backend, at call {fails[1]}: {ENDINGS[fails[2]]()!r}"
    return got, words, [("program", program(words, 2, [acts])), ("raises", what)]
