"""The compile explorer in use: every state it can show, by keyboard, by address, on a phone, from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.explorers.harness import Watch, address, assert_every_state_fits, tab_to
from tests.explorers.test_compile import CAPTURES

PAGE = "explorers/compile.html"
STAGES = ("python", "bytecode", "dynamo", "joint", "partition")


def state(program: str, stage: str, graph: int = 1, cut: str = "1.0") -> str:
    pairs = [("program", program), ("stage", stage)]
    pairs += [("graph", str(graph))] if graph > 1 else []
    return urlencode([*pairs, ("cut", cut)] if cut != "1.0" else pairs)


def show(page: Page, site: str, program: str, stage: str, graph: int = 1, cut: str = "1.0") -> None:
    """Open a state; where the page is open already, only the address changes."""
    page.goto(f"{site}{PAGE}#{state(program, stage, graph, cut)}", wait_until="load")
    expect(page.locator(f"input[name=cp-stage][value={stage}]")).to_be_checked()
    expect(page.locator(f"input[name=cp-program][value={program}]")).to_be_checked()


SHOWN = """() => [...document.querySelectorAll(".cp-scroll .node")].map((node) => ({
  name: node.dataset.name,
  saved: Boolean(node.querySelector(".double")) && node.textContent.includes("▾ saved"),
  twice: node.textContent.includes("↻") && node.classList.contains("twice"),
  late: node.classList.contains("late"),
}))"""


def test_every_graph_is_drawn_as_captured(watch: Watch, site: str) -> None:
    page = watch.page
    for program in CAPTURES:
        for number, frame in enumerate(program["frames"], 1):
            for stage in ("dynamo", "joint"):
                show(page, site, program["id"], stage, number)
                rows: list[Any] = frame[stage]
                shown = page.evaluate(SHOWN)
                assert [node["name"] for node in shown] == [row[0] for row in rows]
                edges = page.locator(".cp-scroll .edge").count()
                assert edges == sum(len(row[3]) for row in rows)
            for setting, which in [("default", 0), ("1.0", 11), ("0.5", 6), ("0.0", 1)]:
                show(page, site, program["id"], "partition", number, setting)
                cut = frame["cuts"][frame["which"][which]]
                shown = page.evaluate(SHOWN)
                assert [i for i, node in enumerate(shown) if node["saved"]] == sorted(cut["saved"])
                marks = "".join("r" if node["twice"] else "." for node in shown)
                assert marks == "".join("r" if mark == "r" else "." for mark in cut["where"])


def test_guards_breaks_and_calls_are_told(watch: Watch, site: str) -> None:
    page = watch.page
    for program in CAPTURES:
        show(page, site, program["id"], "python")
        told = page.locator("compile-explorer").inner_text()
        for frame in program["frames"]:
            for guard in frame["guards"]:
                assert guard in told
        for found in program["breaks"]:
            assert f"Line {found['line']} breaks the graph." in told
            assert found["title"] in told
        for call in program["calls"]:
            assert call["call"] in told
    expect(page.locator(".cp-calls li").nth(2)).to_contain_text("guards hold, nothing compiled")
    expect(page.locator(".cp-calls li").nth(1)).to_contain_text("expected 4, actual 5")
    show(page, site, "branch", "bytecode")
    assert page.locator(".cp-bytes").first.locator("li").count() == 18
    expect(page.locator(".cp-bytes").nth(1).locator(".loud")).to_have_count(3)


def test_the_budget_moves_the_cut(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "loop", "partition")
    said = page.locator(".cp-what")
    expect(said).to_contain_text("1,280 bytes")
    tab_to(page, "#cp-budget")
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
    assert address(page) == {"program": "loop", "stage": "partition", "cut": "0.4"}
    expect(said).to_contain_text("768 bytes")
    expect(page.locator(".cp-table .here")).to_contain_text("budget 0.6 to 0.4")
    expect(page.get_by_role("status")).to_contain_text("768 bytes")
    page.get_by_role("button", name="default_partition", exact=True).click()
    assert address(page)["cut"] == "default"
    expect(page.locator(".cp-table .here")).to_contain_text("1,792 bytes")
    show(page, site, "dropout", "partition", cut="0.0")
    expect(said).to_contain_text("these gradients are not eager's")
    expect(page.locator(".cp-table .here")).to_contain_text("✗ wrong gradients")


def test_the_keyboard_alone_goes_through_the_stages(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "pointwise", "python")
    tab_to(page, "input[name=cp-stage]")
    for stage in STAGES[1:]:
        page.keyboard.press("ArrowRight")
        assert address(page)["stage"] == stage
    tab_to(page, "#cp-budget")
    page.keyboard.press("Home")
    assert address(page)["cut"] == "0.0"
    page.reload()
    tab_to(page, "input[name=cp-program]")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    assert address(page)["program"] == "branch"
    tab_to(page, "input[name=cp-graph]")
    page.keyboard.press("ArrowRight")
    assert address(page)["graph"] == "2"


@pytest.mark.parametrize("at", ["", "program=nonsense", "program=loop&stage=x&graph=99&cut=7", "stage=joint"])  # fmt: skip
def test_an_address_may_hold_anything(watch: Watch, site: str, at: str) -> None:
    watch.page.goto(f"{site}{PAGE}#{at}", wait_until="load")
    expect(watch.page.locator(".cp-what")).to_contain_text("graph")


def test_every_state_fits(watch: Watch, site: str) -> None:
    states = [state(one["id"], stage, len(one["frames"])) for one in CAPTURES for stage in STAGES]
    watch.page.goto(f"{site}{PAGE}#{states[0]}", wait_until="load")
    assert_every_state_fits(watch, states)


def test_it_works_from_disk(watch: Watch, built: Path) -> None:
    watch.page.goto((built / PAGE).as_uri() + "#program=mlp&stage=joint", wait_until="load")
    expect(watch.page.locator(".cp-scroll svg")).to_be_visible()
