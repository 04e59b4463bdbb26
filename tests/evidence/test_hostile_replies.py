"""Replies that no honest process sends: each ends the interview or fails the check, quickly."""

import json
import time
import tracemalloc

import pytest
import torch

from grader.course.rules import parse_rule
from grader.evidence.outcome import Ended, Outcome
from grader.evidence.wire.codec import KEY_LIMIT, decode, encode
from grader.evidence.wire.tensors import Malformed
from grader.inside.probe import probe
from grader.submission.program import Program
from grader.verdict.compare import Mismatch
from grader.verdict.interview import REPLIES_LIMIT, Interview

GOOD = {
    "value": b"",
    "refused": None,
    "raised": None,
    "changed": {},
    "warnings": [],
    "stdout": "",
    "tripped": [],
    "stray": "",
    "tampered": [],
}


@probe
def asked(student, x):
    return student.f(x)


class Says:
    """A transport that answers everything with the same bytes."""

    def __init__(self, reply):
        self.reply = reply if isinstance(reply, bytes) else encode(reply)
        self.requests = []

    def ask(self, request):
        self.requests.append(decode(request))
        return self.reply

    def close(self):
        pass


def message(tree, buffers=(), storages=()):
    text = json.dumps({"tree": tree, "buffers": list(buffers), "storages": list(storages)}).encode()
    return b"UT01" + len(text).to_bytes(4, "big") + text


def interview(reply, rules=()):
    return Interview(Says(reply), tuple(rules), 7)


_SPREAD = {"tensor": {"s": 0, "t": "float32", "n": [2**24], "r": [0], "o": 0}}
"""Four bytes, read as 64 MiB."""


@pytest.mark.parametrize(
    "reply",
    [
        {},
        [],
        5,
        GOOD | {"value": 5},
        GOOD | {"raised": {}},
        GOOD | {"raised": {"type": 5, "mro": [], "message": "", "where": []}},
        GOOD | {"raised": {"type": "", "mro": [5], "message": "", "where": []}},
        GOOD | {"raised": {"type": "", "mro": [], "message": "", "where": [5]}},
        GOOD | {"raised": {"type": "", "mro": [], "message": "", "where": [("f", "x", "y")]}},
        GOOD | {"changed": {-1: b""}},
        GOOD | {"changed": {"x": b""}},
        GOOD | {"changed": {0: "text"}},
        GOOD | {"changed": {True: b""}},
        GOOD | {"warnings": [5]},
        GOOD | {"warnings": [(1, 2)]},
        b"",
        b"UT01",
        b"UT01\xff\xff\xff\xff",
        message({"dict": [[[], 1]]}),
        message({"size": [10**30]}),
        message({"size": [-(10**4000)]}),
        message({"range": [1, 2, 0]}),
        message({"range": [0, 150_000_000, 1]}),
        message({"range": [0, -(2**70), -1]}),
        message([_SPREAD] * 5, [4], [{"buffer": 0}]) + bytes(4),
        message({"device": "moon"}),
        message(
            {"tensor": {"s": 0, "t": "float32", "n": [2**40], "r": [1], "o": 0}}, (), [{"known": 0}]
        ),
        message({"set": list(range(KEY_LIMIT + 1))}),
    ],
)
def test_malformed_replies_end_the_interview(reply):
    talk = interview(reply)
    for _ in range(2):
        with pytest.raises(Ended) as ended:
            talk.ask(asked, {"x": torch.zeros(2)})
        assert ended.value.outcome is Outcome.KILLED


@pytest.mark.parametrize("stopped", [{"f": 5}, {"f": {}}, {"f": {"type": "E"}}])
def test_malformed_loads_end_the_interview(stopped):
    talk = interview({"stopped": stopped, "stdout": ""})
    with pytest.raises(Ended):
        talk.load(Program("f", (("f", ""),)))


def test_numbers_that_hash_alike_are_not_waited_for():
    collide = [n * (2**61 - 1) for n in range(300_000)]
    start = time.process_time()
    for tree in ({"set": collide}, {"dict": [[n, 0] for n in collide]}):
        with pytest.raises(Malformed):
            decode(message(tree))
    assert time.process_time() - start < 5


def test_the_runs_seed_stays_here():
    talk = interview(GOOD)
    talk.ask(asked, {"x": 1})
    (request,) = talk._transport.requests
    assert request["seed"] != 7
    assert 7 not in request.values()


def test_a_changed_input_that_is_not_there_fails_the_check():
    evidence = interview(GOOD | {"changed": {9: b""}}).ask(asked, {"x": torch.zeros(2)})
    with pytest.raises(Mismatch):
        _ = evidence.value


def test_only_rules_of_the_exercise_trip():
    rules = [parse_rule("import:numpy"), parse_rule("import:struct")]
    talk = interview(GOOD | {"tripped": [-1, 1, 7]}, rules)
    talk.ask(asked, {"x": 1})
    assert talk.tripped == rules[1:]


def test_what_was_replaced_is_told_in_few_plain_words():
    talk = interview(GOOD | {"tampered": ["\x1b[2J" + "x" * 9000] * 30})
    talk.ask(asked, {"x": 1})
    (name,) = talk.tampered
    assert name.startswith("�[2J")
    assert len(name) == 200


def test_what_a_student_says_is_short_and_plain():
    raised = {
        "type": "E" * 9000,
        "mro": ["E"] * 99,
        "message": "\x1b[2J\u202e\ud800ok\n" + "x" * 9000,
    }
    raised["where"] = [("f", 1, "y" * 9000)] * 99
    found = interview(GOOD | {"raised": raised}).ask(asked, {"x": 1}).raised
    assert found.message.startswith("�[2J��ok\n")
    assert len(found.message) == 2000
    assert len(found.where) == 8
    assert max(map(len, (found.type, found.where[0][2]))) == 200


def test_replies_are_counted_together():
    talk = interview(GOOD | {"value": bytes(40 * 2**20)})
    for number in range(REPLIES_LIMIT // (40 * 2**20)):
        talk.ask(asked, {"x": number})
    with pytest.raises(Ended, match="too large, all together"):
        talk.ask(asked, {"x": -1})


def test_the_largest_reply_does_not_fill_memory():
    reply = encode(GOOD | {"value": encode(torch.zeros(47 * 2**18))})
    talk = interview(reply)
    tracemalloc.start()
    _ = talk.ask(asked, {"x": 1}).value
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * len(reply)
