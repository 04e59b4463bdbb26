"""A verdict's links: what a check gives away about a mistake, the explorer then shows."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from playwright.sync_api import expect

from grader import Mismatch
from grader.ch01_formats import (
    test_decode,
    test_encode_fp8,
    test_round_mantissa,
    test_round_to_bf16,
    test_spacing,
)
from grader.ch03_matmul import test_matmul_shape
from grader.ch03_matmul.operands import assert_exact
from grader.evidence.outcome import Outcome
from grader.feedback.render import SITE, to_html
from grader.verdict.compare import bits
from grader.verdict.verdict import CheckResult, State, Verdict, message_for
from tests.browser import Watch
from tests.explorers.harness import fragment

X = torch.tensor([1.0, 1.00390625, 448.0, 500.0])


class Answers:
    """A probe whose program gives what `function` gives."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def ask(self, *inputs: Any) -> SimpleNamespace:
        return SimpleNamespace(value=self.function(*inputs))


def truncate(x: torch.Tensor) -> torch.Tensor:
    return (bits(x) >> 16).to(torch.int16).view(torch.bfloat16)


def always(value: float, dtype: torch.dtype = torch.float32) -> Answers:
    return Answers(lambda x, *rest: torch.full(x.shape, value, dtype=dtype))


FAILURES: list[tuple[Callable[[], None], str, str]] = [
    (
        lambda: test_round_to_bf16.compare(Answers(truncate), torch.tensor([1.01171875])),
        "formats.html#format=bf16&fp32=3f818000",
        "0x3f82",
    ),
    (
        lambda: test_decode.compare(Answers(lambda x, *rest: {"values": torch.zeros(len(x), dtype=torch.float64)}), torch.arange(8)),
        "formats.html#format=fp16&bits=0001",
        "0x0001",
    ),
    (
        lambda: test_encode_fp8.compare(always(0, torch.uint8), X[3:], torch.float8_e4m3fn, False),
        "formats.html#format=e4m3fn&fp32=43fa0000&saturate=0",
        "0x7f",
    ),
    (
        lambda: test_encode_fp8.compare(always(0, torch.uint8), X[3:], torch.float8_e4m3fn, True),
        "formats.html#format=e4m3fn&fp32=43fa0000",
        "0x7e",
    ),
    (
        lambda: test_round_mantissa.compare(always(0.0), X[1:2], 10),
        "formats.html#format=tf32&fp32=3f808000",
        "1.00390625",
    ),
    (
        lambda: test_spacing.compare(always(0.0), X[2:3]),
        "formats.html#format=fp32&bits=43e00000",
        "0x43e00000",
    ),
    (
        lambda: assert_exact(torch.zeros(4, 2, 3, 6), torch.ones(4, 2, 3, 6), a=torch.ones(4, 1, 3, 5), b=torch.ones(2, 5, 6)),
        "matmul.html#a=4x1x3x5&b=2x5x6",
        "(4, 2, 3, 6)",
    ),
    (
        lambda: test_matmul_shape.compare(Answers(lambda pairs: [(1,)] * len(pairs)), [((2, 3), (4, 5))]),
        "matmul.html#a=2x3&b=4x5",
        "✗ no",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("failing", "link", "shown"), FAILURES, ids=[link for _, link, _ in FAILURES]
)
def test_the_explorer_shows_what_failed(
    watch: Watch, site: str, monkeypatch: pytest.MonkeyPatch, failing: Callable[[], None], link: str, shown: str
) -> None:  # fmt: skip
    with pytest.raises(Mismatch) as caught:
        failing()
    assert caught.value.link == link
    monkeypatch.setenv(SITE, site)
    check = CheckResult("x", "X", 1.0, 0.0, State.FAILED, message_for(caught.value))
    verdict = Verdict(
        "round_to_bf16", "X", 0, 1, Outcome.FAILED, checks=(check,), chapter="ch01_formats"
    )
    page = watch.page
    page.set_content(to_html(verdict))
    explorer, section = (
        page.get_by_role("link", name=name).get_attribute("href")
        for name in ("See it in the explorer", "Read this section again")
    )
    page.goto(str(explorer))
    expect(page.locator(".ut-value, .mm-verdict").first).to_contain_text(shown)
    assert fragment(page) == link.partition("#")[2]
    page.goto(str(section))
    expect(page.locator(":is(h2, h3):target")).to_contain_text("BF16")


def test_where_no_site_is_named_no_link_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SITE, raising=False)
    verdict = Verdict("x", "X", 0, 1, Outcome.FAILED, chapter="ch01_formats")
    assert "<a " not in to_html(verdict)


def test_operands_that_the_explorer_does_not_take_have_no_link() -> None:
    with pytest.raises(Mismatch) as caught:
        assert_exact(
            torch.zeros(1), torch.ones(1), a=torch.ones(1, 1, 1, 1, 1, 1, 1), b=torch.ones(1, 1)
        )
    assert not caught.value.link
