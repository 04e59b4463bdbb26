"""No run of checks leaves anything to the next, however it ends."""

import gc
import sys
import weakref
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from grader.verdict import runner
from grader.verdict.checks import CheckRun, Suite, generator_for
from grader.verdict.collect import collect
from grader.verdict.compare import recording
from grader.verdict.interview import Interview
from tests.verdict.check_files import written


def _nobody() -> Interview:
    return cast(Interview, None)


def test_a_suite(tmp_path: Path) -> None:
    text = '''
    import pytest
    import torch
    from grader import assert_equal, claimed, gate, points

    @gate
    def test_a(rng, parameters):
        """Shows {{bits}}.

        Not this."""
        assert torch.get_num_threads() == 1
        assert_equal(int(torch.randint(100, (), generator=rng)), parameters["drawn"])

    @claimed
    @points(2)
    def test_b():
        """Fails."""
        assert 1 == 2

    def test_c():
        """Is never run."""
    '''
    path = written(tmp_path, text, "test_thing.py")
    threads = torch.get_num_threads()
    drawn = int(torch.randint(100, (), generator=generator_for(7, "thing")))
    suite = Suite(path, {}, {"bits": 8, "drawn": drawn})
    assert [(c.name, c.rubric, c.weight, c.claimed) for c in suite.checks] == [
        ("test_a", "Shows 8.", 0, False),
        ("test_b", "Fails.", 2, True),
        ("test_c", "Is never run.", 1, False),
    ]
    for _ in range(2):
        runs = suite.run(_nobody(), 7, stop=lambda runs: runs[-1].error is not None)
        assert [type(run.error) for run in runs] == [type(None), AssertionError]
        assert [len(run.comparisons) for run in runs] == [1, 0]
    assert torch.get_num_threads() == threads


KEEPS = '''
import pytest
import torch

@pytest.fixture
def x(rng):
    yield torch.randn(3, generator=rng)
    ENDED.append("x")

@pytest.fixture
def y(x):
    yield x * 2
    ENDED.append("y")

ENDED = []

def test_right(x, y):
    """Holds."""
    assert bool((x * 2 == y).all())

def test_wrong(y):
    """Does not."""
    assert float(y.sum()) > 1e9, "small"

def test_right_again(y, x):
    """Holds."""
    assert len(x) == len(y)
'''


def _told(runs: list[CheckRun]) -> list[tuple[str, str]]:
    return [(run.check.name, repr(run.error)) for run in runs]


def test_an_interrupt_at_any_line_leaves_nothing_to_the_next_run(tmp_path: Path) -> None:
    path = written(tmp_path, KEEPS)
    suite = Suite(path, {}, {})
    right = _told(suite.run(_nobody(), 1))
    assert [error for _, error in right] == ["None", "AssertionError('small')", "None"]
    files = {runner.__file__, str(path), sys.modules[Suite.__module__].__file__}
    line = 0
    for line in count(1):
        left = line

        def trace(frame: Any, event: str, _: object) -> Any:
            nonlocal left
            if frame.f_code.co_filename not in files:
                return None
            left -= event == "line"
            if left == 0:
                left = -1
                raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            suite.run(_nobody(), 1)
            done = True
        except KeyboardInterrupt:
            done = False
        finally:
            sys.settrace(before)
        assert recording.get() is None
        assert _told(suite.run(_nobody(), 1)) == right, f"after an interrupt at line {line}"
        if done:
            break
    assert line > 100


@pytest.mark.parametrize("moment", ["making", "checking", "ending"])
def test_an_interrupt_passes_and_the_fixtures_end(moment: str, tmp_path: Path) -> None:
    text = f'''
    import pytest
    def at(moment):
        if moment == {moment!r}:
            raise KeyboardInterrupt

    @pytest.fixture
    def outer(rng):
        yield
        rng.append("outer ends")

    @pytest.fixture
    def inner(outer):
        at("making")
        yield
        at("ending")

    def test_it(inner):
        """Holds."""
        at("checking")
    '''
    file = collect(written(tmp_path, text), ["rng"], [])
    ended: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        file.run(file.cases[0], {"rng": lambda value_of: ended})
    assert ended == ["outer ends"]


def test_a_stop_or_a_debugger_that_raises_leaves_nothing(tmp_path: Path) -> None:
    suite = Suite(written(tmp_path, KEEPS), {}, {})
    right = _told(suite.run(_nobody(), 1))
    threads = torch.get_num_threads()

    def raises(_: object) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        suite.run(_nobody(), 1, stop=raises)
    with pytest.raises(KeyboardInterrupt):
        suite.run(_nobody(), 1, on_error=raises)
    assert (recording.get(), torch.get_num_threads()) == (None, threads)
    assert _told(suite.run(_nobody(), 1)) == right


def test_what_a_check_made_is_gone_when_it_is_over(tmp_path: Path) -> None:
    text = '''
    import pytest

    class Big: ...

    @pytest.fixture
    def big(seen, rng):
        big = Big()
        seen(big)
        return big

    def test_it(big):
        """Fails, with a traceback that holds it."""
        assert not big
    '''
    file = collect(written(tmp_path, text), ["seen", "rng"], [])
    known: list[weakref.ref[object]] = []
    note = lambda big: known.append(weakref.ref(big))  # noqa: E731
    gc.disable()
    try:
        outside = {"seen": lambda value_of: note, "rng": lambda value_of: value_of}  # a circle
        error = file.run(file.cases[0], outside)
    finally:
        gc.enable()
    assert isinstance(error, AssertionError)
    assert [one() for one in known] == [None]
