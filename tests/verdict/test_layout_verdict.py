"""A check on a layout: what passes, what a verdict then shows, and that it is the same everywhere."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
import torch
from hypothesis import given

from grader import assert_same_layout
from grader.evidence.layout import Layout, layout_of
from grader.evidence.outcome import Outcome
from grader.evidence.wire.codec import decode, encode
from grader.feedback.render import to_html
from grader.feedback.storage_picture import verdict_html
from grader.verdict.compare import Mismatch, Record, recording
from grader.verdict.verdict import CheckResult, State, Verdict, message_for
from tests.strategies import tensors

VERDICT_BYTES = 40_000
"""What a verdict's two pictures may add at most; an ordinary one adds a quarter of it."""


def tree(markup):
    return ET.fromstring(markup)


def failure(got, expected):
    with pytest.raises(Mismatch) as caught:
        assert_same_layout(got, expected)
    return message_for(caught.value)


def verdict_of(message):
    check = CheckResult("check", "Has the layout", 1.0, 0.0, State.FAILED, message)
    return Verdict("x", "X", 0.0, 1.0, Outcome.FAILED, checks=(check,))


def test_a_verdict_shows_places_and_no_values():
    """What lies in memory that nobody wrote differs from machine to machine."""
    layout = layout_of(torch.arange(12).add(777_000).reshape(3, 4).T)
    assert "777" not in verdict_html([("got", layout)])


def test_the_same_layout_passes():
    assert_same_layout(torch.zeros(3, 4).T, torch.ones(3, 4, dtype=torch.int8).T)
    assert_same_layout(torch.zeros(3, 1).as_strided((3, 1), (1, 99)), torch.zeros(3, 1))
    assert_same_layout(torch.zeros(5)[5:], torch.zeros(0))


@pytest.mark.parametrize(
    ("got", "said", "rows"),
    [
        (torch.zeros(4, 3), "stride differs", [("expected stride", "(1, 4)"), ("got stride", "(3, 1)")]),
        (torch.zeros(3, 4), "size and stride differ", None),
        (torch.zeros(14)[2:].view(3, 4).T, "storage offset differs", [("expected storage offset", "0"), ("got storage offset", "2")]),
    ],
)  # fmt: skip
def test_another_layout_fails_with_pictures(got, said, rows):
    message = failure(got, torch.zeros(3, 4).T)
    assert message.what == f"The layout is not the one asked for: {said}."
    assert rows is None or list(message.rows) == rows
    markup = to_html(verdict_of(message))
    assert markup.count("<svg") == 2
    assert len(markup) < VERDICT_BYTES
    tree(markup)


def test_the_explorer_shows_what_came():
    link = failure(torch.arange(20)[2:14].view(3, 4), torch.zeros(3, 4).T).link
    assert link == "strides.html#shape=3x4&stride=4x1&offset=2&cells=20"
    assert failure(torch.zeros(300), torch.zeros(2)).link == ""
    assert failure(torch.tensor(0), torch.zeros(2)).link == "strides.html#shape=&stride=&cells=1"


@pytest.mark.parametrize(("got", "said"), [(None, "returned None"), ([1], "got a list")])
def test_what_is_no_tensor_fails(got, said):
    assert said in failure(got, torch.zeros(2)).what


@given(tensors(flags=False))
def test_a_verdict_is_the_same_live_boxed_and_from_the_record(tensor):
    expected = torch.zeros(7, 5).T
    live = verdict_of(failure(decode(encode(tensor)), expected))
    boxed = verdict_of(failure(decode(encode(decode(encode(tensor)))), expected))
    kept = Verdict.from_data(json.loads(json.dumps(live.to_data())))
    assert live == boxed == kept
    assert to_html(live) == to_html(boxed) == to_html(kept)
    assert len(to_html(live)) < VERDICT_BYTES
    tree(to_html(live))


def test_a_layout_made_to_hurt_stays_small():
    """What a hostile reply may claim, by the codec's limits."""
    wide = Layout("uint8", 1, (2**13, 2**13), (0, 0), 0, 1)
    deep = Layout("uint8", 1, (1,) * 62 + (2, 2), (2**48,) * 62 + (2, 1), 2**20, 2**26)
    many = Layout("uint8", 1, (2,) * 26, tuple(2**i for i in range(26)), 0, 2**26)
    for layout in (wide, deep, many):
        assert len(verdict_html([("got", layout)])) < VERDICT_BYTES / 2
        tree(verdict_html([("got", layout)]))


def test_what_a_verdict_says_is_escaped():
    layout = replace(layout_of(torch.zeros(2)), dtype="<b>&")
    assert "<b>" not in verdict_html([("<i>", layout)])
    assert "<i>" not in verdict_html([("<i>", layout)])


def test_diagnosis_tells_layouts_apart():
    def noted(got):
        token = recording.set(record := Record())
        try:
            failure(got, torch.zeros(2, 3).T)
        finally:
            recording.reset(token)
        return record.comparisons

    def same(left, right):
        return all(a.same(b) for a, b in zip(noted(left), noted(right), strict=True))

    assert same(torch.zeros(3, 2), torch.ones(3, 2))
    assert not same(torch.zeros(3, 2), torch.zeros(12)[6:].view(3, 2))
