"""Processes that are asked each question once."""

from collections import Counter

import pytest

from grader.box.fork import Fork
from grader.course.course import Course
from grader.evidence.outcome import Ended, Outcome
from grader.proving import validate
from grader.proving.once import Once
from tests import ROOT


class Counting:
    """A process that answers with the number of requests it had, and ends at `end`."""

    def __init__(self, opened):
        opened.append(self)
        self.asked, self.closed = [], False

    def ask(self, request):
        self.asked.append(request)
        if b"end" in self.asked:
            raise Ended(Outcome.CRASHED, "gone")
        return b"%d" % len(self.asked)

    def close(self):
        self.closed = True


def ask(once, requests):
    transport = once.open()
    replies = [transport.ask(request) for request in requests]
    transport.close()
    return replies


def test_what_was_asked_is_not_asked_again():
    opened = []
    with Once(lambda: Counting(opened)) as once:
        assert ask(once, [b"a", b"b"]) == [b"1", b"2"]
        assert ask(once, [b"a"]) == [b"1"]
        assert ask(once, [b"a", b"b", b"c"]) == [b"1", b"2", b"3"]  # goes on where the first stood
        assert [process.asked for process in opened] == [[b"a", b"b", b"c"]]
        assert ask(once, [b"b"]) == [b"1"]
        assert ask(once, [b"a", b"c"]) == [b"1", b"2"]  # another road: told all from the beginning
    assert [process.asked for process in opened] == [[b"a", b"b", b"c"], [b"b"], [b"a", b"c"]]
    assert all(process.closed for process in opened)


def test_one_process_waits():
    opened = []
    with Once(lambda: Counting(opened)) as once:
        ask(once, [b"a"])
        ask(once, [b"b"])
        assert [process.closed for process in opened] == [True, False]
        assert ask(once, [b"a", b"more"]) == [b"1", b"2"]
        assert opened[-1].asked == [b"a", b"more"]  # what the closed one had been asked, and more
    assert all(process.closed for process in opened)


def test_an_end_is_remembered():
    opened = []
    with Once(lambda: Counting(opened)) as once:
        for _ in range(2):
            transport = once.open()
            transport.ask(b"a")
            with pytest.raises(Ended, match="gone"):
                transport.ask(b"end")
            with pytest.raises(Ended, match="gone"):
                transport.ask(b"more")
    assert [process.asked for process in opened] == [[b"a", b"end", b"more"]]


def test_a_whole_proof_asks_no_program_twice(monkeypatch):
    """A mistake is judged as an answer, and compared with others: the same request, byte for byte."""
    asked, wanted, begun = [], [], Counter()

    class Recording(Fork):
        told = b""

        def ask(self, request, watch=False):
            self.told += b"|" + request
            asked.append(self.told)
            return super().ask(request, watch)

    def reply(once, requests, keys, watch, original=Once.reply):
        wanted.append(keys[-1])
        begun[keys[1]] += len(keys) == 2
        return original(once, requests, keys, watch)

    monkeypatch.setattr(validate, "Fork", Recording)
    monkeypatch.setattr(Once, "reply", reply)
    chapter = Course(ROOT).chapter("ch11_watching")
    proof = validate.prove(chapter, chapter.exercise("record"), seed=7)
    assert not proof.problems
    assert len(asked) == len(set(asked)) == len(set(wanted))
    assert sum(times > 1 for times in begun.values()) >= proof.mistakes
