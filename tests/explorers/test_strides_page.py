"""The strides explorer in use: by keyboard, by address, on a phone, from disk, without a network."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
import torch
from playwright.sync_api import Page, expect

from grader import Mismatch, assert_same_layout
from tests.explorers.harness import (
    Watch,
    address,
    assert_every_state_fits,
    fragment,
    tab_to,
    turn,
)

PAGE = "explorers/strides.html"
TRANSPOSED = "shape=3x4&ops=transpose.0.1&at=2x1&target=12"
# One state per kind of layout, with the largest that the page takes.
STATES = [
    "",
    TRANSPOSED,
    "shape=",
    "shape=3x0",
    "shape=&offset=2&cells=5",
    "shape=10&ops=unfold.0.4.2&at=1x2",
    "shape=4&ops=unsqueeze.0_expand.3.4&at=2x1",
    "shape=3x4&ops=flip.1_transpose.0.1&at=0x1",
    "shape=3x4&ops=flip.1_transpose.0.1_reshape.-1&step=1&at=0x1",
    "shape=4x6&ops=index.1toto2.toto2&at=1x2",
    "shape=1x3x2x4&ops=channels-last&at=0x1x1x2",
    "shape=1x2x3x4&ops=transpose.1.2&at=0x2x1x1&target=1x3x8",
    "shape=2x2x2x2x2x2&ops=permute.5.4.3.2.1.0&at=1x0x1x0x1x1",
    "shape=8x16&target=2x64",
    "shape=16x16&stride=0x8&cells=128&at=15x15",
    "shape=3x3&stride=3x2&offset=1&cells=14&at=1x2&target=7",
]


def show(page: Page, site: str, state: str = "") -> None:
    page.goto("about:blank")
    page.goto(f"{site}{PAGE}#{state}", wait_until="load")
    expect(page.locator(".ut-name")).not_to_be_empty()


def test_the_keyboard_alone_finds_the_cell_of_an_element(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "shape=3x4&ops=transpose.0.1")
    tab_to(page, ".ut-grids button")
    expect(page.locator(".ut-name")).to_have_text("x[0, 0]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert address(page)["at"] == "2x1"
    expect(page.locator(".ut-name")).to_have_text("x[2, 1]")
    sum_of_it = page.locator(".ut-sum li")
    expect(sum_of_it.nth(0)).to_have_text("offset + index[0]·stride[0] + index[1]·stride[1]")
    expect(sum_of_it.nth(1)).to_have_text("0 + 2·1 + 1·4")
    expect(sum_of_it.nth(3)).to_have_text("cell 6, bytes 24 to 27")
    expect(page.locator(".ut-strip .here")).to_have_attribute(
        "aria-label", "cell 6, holds 6, read as x[2, 1]"
    )
    expect(page.locator(".ut-grids button:focus")).to_have_attribute(
        "aria-label", "x[2, 1], cell 6, holds 6"
    )
    expect(page.locator(".ut-hops")).to_have_attribute(
        "aria-label", "From cell 0, 2 steps of 1, 1 steps of 4, to cell 6."
    )
    # One stop for the whole grid, and one for the strip.
    page.keyboard.press("Tab")
    expect(page.locator(".ut-grids button:focus")).to_have_count(0)
    page.keyboard.press("Shift+Tab")
    expect(page.locator(".ut-grids button:focus")).to_have_count(1)


def test_the_keyboard_alone_asks_who_reads_a_cell(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "shape=6&ops=unfold.0.3.1")
    tab_to(page, ".ut-strip button")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".ut-name")).to_have_text("x[0, 1]")
    expect(page.locator(".ut-grids .also")).to_have_attribute(
        "aria-label", "x[1, 0], cell 1, holds 1"
    )
    expect(page.locator(".ut-grids + p, .ut-sum + .ut-soft").last).to_have_text(
        "The same cell: x[1, 0]."
    )


def test_methods_are_typed_and_the_history_is_stepped_through(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "shape=3x4&at=2x1")
    field = page.get_by_role("textbox", name="x.", exact=True)
    tab_to(page, "#ut-method")
    page.keyboard.type("transpose(0, 1)")
    page.keyboard.press("Enter")
    assert address(page) == {"shape": "3x4", "ops": "transpose.0.1", "at": "1x2"}, "same value"
    expect(field).to_have_value("")
    expect(page.get_by_role("status")).to_have_text(
        ".transpose(0, 1), a view: size (4, 3), stride (1, 4), offset 0. x[1, 2] is cell 9."
    )
    page.keyboard.type("x[:, ::2]")
    page.keyboard.press("Enter")
    page.keyboard.type("reshape(-1)")
    page.keyboard.press("Enter")
    steps = page.locator(".ut-history button")
    expect(steps).to_have_count(4)
    expect(steps.nth(1)).to_contain_text("nothing copied")
    expect(steps.nth(3)).to_contain_text("copied 32 bytes")
    expect(page.locator(".ut-head").first).to_contain_text("Storage B")
    expect(page.locator(".ut-before .ut-cell")).to_have_count(12)
    steps.nth(1).click()
    expect(steps.nth(1)).to_have_attribute("aria-current", "step")
    assert address(page)["step"] == "1"
    expect(page.locator(".ut-grids button")).to_have_count(12)
    steps.nth(3).click()
    expect(page.locator(".ut-grids button")).to_have_count(8)
    steps.nth(0).click()
    field.fill("flip(0)")
    field.press("Enter")
    expect(steps).to_have_count(2)
    assert address(page)["ops"] == "flip.0", "what came later gives way"


def test_what_torch_refuses_is_refused_in_words(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, TRANSPOSED)
    field = page.get_by_role("textbox", name="x.", exact=True)
    for text, said in {
        "view(12)": "without a copy",
        "transpose(0, 2)": "no dimension 2",
        "expand(4, 4)": "only size 1 expands",
        "view(5)": "12",
        "sum()": "not one of the methods",
        "repeat(9, 9)": "do not fit on this page",
    }.items():
        field.fill(text)
        field.press("Enter")
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(page.locator("#ut-method-help")).to_contain_text(said)
        assert fragment(page) == TRANSPOSED, "nothing changed"


def test_a_chain_is_typed_in_one_go(watch: Watch, site: str) -> None:
    """It is one change; where a method refuses, what came before it stands, and the rest can be mended."""
    page = watch.page
    show(page, site, "shape=3x4")
    field = page.get_by_role("textbox", name="x.", exact=True)
    field.fill("x.transpose(0, 1)[1:].reshape(-1)")
    field.press("Enter")
    assert address(page)["ops"] == "transpose.0.1_index.1to_reshape.-1"
    steps = page.locator(".ut-history button")
    expect(steps).to_have_count(4)
    expect(field).to_have_value("")
    copied = page.locator(".ut-facts div").filter(has=page.get_by_text("copied", exact=True))
    expect(copied).to_contain_text("36 bytes, by .reshape(-1): 2 storages.")
    page.locator(".ut-tools").get_by_role("button", name="Undo").click()
    assert "ops" not in address(page)
    field.fill("t().view(12).flip(0)[1:]")
    field.press("Enter")
    assert address(page)["ops"] == "t"
    expect(page.locator("#ut-method-help")).to_contain_text("view(12): view cannot do this without")
    expect(field).to_have_value(".view(12).flip(0)[1:]")
    expect(copied).to_contain_text("Nothing: one storage for all.")
    field.fill(field.input_value().replace("view", "reshape"))
    field.press("Enter")
    assert address(page)["ops"] == "t_reshape.12_flip.0_index.1to"
    expect(copied).to_contain_text("96 bytes, by .reshape(12) and .flip(0): 3 storages.")


def test_it_says_why_a_view_breaks(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, TRANSPOSED)
    said = page.locator("#ut-target-help")
    expect(said).to_contain_text("No view.")
    expect(said).to_contain_text(
        "Target dimension 0, of size 12, runs beyond dimension 1, which has 3."
    )
    expect(said).to_contain_text(
        "going on into dimension 0 moves 1 cell, but dimension 1 ends after 3 × 4 = 12"
    )
    expect(said).to_contain_text("reshape copies 48 bytes")
    expect(page.locator(".ut-joint.bad")).to_contain_text("1 ≠ 12")
    expect(page.get_by_role("button", name="view(12)")).to_be_disabled()
    target = page.get_by_role("textbox", name="view or copy? as shape")
    target.fill("2, 2, 3")
    expect(said).to_contain_text("A view. (2, 2, 3) gets stride (2, 1, 4).")
    expect(page.locator(".ut-run").first).to_contain_text("as 2 × 2, stride 2, 1")
    target.fill("5, 2")
    expect(said).to_contain_text("has 10 elements, the tensor has 12")
    target.fill("2, a")
    expect(target).to_have_attribute("aria-invalid", "true")
    expect(said).to_contain_text("A shape, such as")
    target.fill("-1")
    expect(target).to_be_focused()
    page.get_by_role("region", name="View or copy").get_by_role("button", name="reshape").click()
    assert address(page)["ops"] == "transpose.0.1_reshape.-1"
    expect(said).to_contain_text("A view.")


def test_the_first_tensor_can_be_any_layout(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    field = {
        name: page.get_by_role("textbox", name=name, exact=True)
        for name in ("size", "stride", "storage offset", "cells of the storage")
    }
    field["size"].fill("2, 5")
    assert address(page) == {"shape": "2x5"}, "row-major, and a storage that fits"
    field["stride"].fill("3, 1")
    assert address(page) == {"shape": "2x5", "stride": "3x1", "cells": "10"}
    expect(page.locator(".ut-facts")).to_contain_text("2 cells are read by several indices")
    field["storage offset"].fill("4")
    expect(page.locator("#ut-base-help")).to_contain_text("Give it 12 cells.")
    assert "offset" not in address(page)
    field["cells of the storage"].fill("12")
    field["storage offset"].fill("4")
    assert address(page)["offset"] == "4"
    expect(field["storage offset"]).to_be_focused()
    field["size"].fill("")
    expect(page.locator(".ut-name")).to_have_text("x[()]")


@pytest.mark.parametrize(
    "got",
    [
        torch.arange(20)[2:14].view(3, 4),
        torch.tensor(5),
        torch.arange(9)[5:5],
        torch.arange(6).view(1, 6).expand(3, 6),
    ],
)
def test_a_verdict_links_to_the_layout_that_came(
    watch: Watch, site: str, got: torch.Tensor
) -> None:
    page = watch.page
    with pytest.raises(Mismatch) as caught:
        assert_same_layout(got, torch.zeros(2, 2))
    page.goto(f"{site}explorers/{caught.value.link}")
    offset = f" offset {got.storage_offset()}" if got.storage_offset() else ""
    expect(page.locator(".ut-history [aria-current] span")).to_have_text(
        f"size {tuple(got.shape)} stride {got.stride()}{offset}"
    )


def test_a_walk_goes_through_the_elements_in_order(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "shape=2x2&ops=t")
    page.locator(".ut-name").evaluate(
        """(name) => { window.seen = [];
          new MutationObserver(() => seen.push(name.textContent)).observe(name, { childList: true }); }"""
    )
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    walked = page.evaluate("seen.filter((name, i) => name !== seen[i - 1])")
    assert walked == ["x[0, 1]", "x[1, 0]", "x[1, 1]"]


def test_hovering_points_and_changes_nothing(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "shape=3x4&at=2x1")
    page.locator(".ut-grids button").nth(3).hover()
    expect(page.locator(".ut-name")).to_have_text("x[0, 3]")
    page.locator(".ut-strip button").nth(7).hover()
    expect(page.locator(".ut-name")).to_have_text("x[1, 3]")
    page.locator("h1").hover()
    expect(page.locator(".ut-name")).to_have_text("x[2, 1]")
    assert fragment(page) == "shape=3x4&at=2x1"


def test_the_address_holds_the_state(watch: Watch, site: str) -> None:
    """Opened, changed there and back: the same address. Opened again: the same page."""
    page = watch.page
    for state in STATES[1:]:
        show(page, site, state)
        before = page.locator("strides-explorer").inner_text()
        assert fragment(page) == state, "looking changes nothing"
        target = page.get_by_role("textbox", name="view or copy? as shape")
        was = target.input_value()
        target.fill("1, 1, 7")
        assert address(page)["target"] == "1x1x7", state
        target.fill(was)
        assert fragment(page) == state
    show(page, site, fragment(page))
    assert page.locator("strides-explorer").inner_text() == before


@pytest.mark.parametrize(
    "state",
    [
        "shape=a&stride=1",
        "shape=-3",
        "shape=3x4&stride=1",
        "shape=3x4&cells=5",
        "shape=999x999",
        "shape=3x4&ops=explode",
        "shape=3x4&ops=index.what",
        "stride=1",
        "shape=3&offset=-1",
    ],
)
def test_an_address_that_makes_no_sense_is_harmless(watch: Watch, site: str, state: str) -> None:
    show(watch.page, site, state)
    expect(watch.page.locator(".ut-grids button")).to_have_count(12)


@pytest.mark.parametrize(
    "state",
    ["shape=3x4&ops=transpose.0.9_t&step=7&at=9x9", "shape=3,4&ops=view.5", "shape=3x4&at=a"],
)
def test_what_does_not_fit_is_left_out_of_an_address(watch: Watch, site: str, state: str) -> None:
    show(watch.page, site, state)
    expect(watch.page.locator(".ut-history button")).to_have_count(1)
    expect(watch.page.locator(".ut-name")).to_have_text("x[0, 0]")


def test_the_line_for_pytorch_gives_the_same_tensor(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    for state in STATES[1:]:
        turn(page, state)
        expect(page.locator(".ut-history button")).to_have_count(
            1 + state.count("ops=") + state.count("_")
        )
        line = page.locator(".ut-facts div", has_text="In PyTorch").locator("code").inner_text()
        x = eval(line, {"torch": torch})
        now = page.locator(".ut-history [aria-current] span").inner_text()
        offset = f" offset {x.storage_offset()}" if x.storage_offset() else ""
        assert now == f"size {tuple(x.shape)} stride {x.stride()}{offset}"
        values = page.locator(".ut-grids button b").all_inner_texts()
        assert list(map(int, values)) == x.flatten().int().tolist()
        cells = page.locator(".ut-strip button b").all_inner_texts()
        whole = torch.empty(0).set_(x.untyped_storage())
        assert list(map(int, cells)) == whole.int().tolist()


def test_the_things_to_try_work(watch: Watch, site: str) -> None:
    """Every tensor, and of each every method that is suggested: torch does not refuse one."""
    page = watch.page
    show(page, site)
    tries = page.get_by_role("group", name="Tensors to try").get_by_role("button")
    for number in range(tries.count()):
        tries.nth(number).click()
        steps = page.locator(".ut-history button").count()
        chips = page.get_by_role("group", name="Methods to try").locator("button:not([hidden])")
        for place, text in enumerate(chips.all_inner_texts()):
            chips.nth(place).click()
            if text == "view(-1)" and page.locator("#ut-method-help").inner_text():
                continue  # it is there to be refused
            expect(page.locator(".ut-history button")).to_have_count(steps + 1)
            line = page.locator(".ut-facts div", has_text="In PyTorch").locator("code").inner_text()
            assert eval(line, {"torch": torch}) is not None
            page.locator(".ut-history button").nth(steps - 1).click()


def test_nothing_is_told_by_colour_alone(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "shape=4&stride=2&offset=1&cells=9")

    def style(selector: str) -> str:
        return str(page.locator(selector).first.evaluate("(e) => getComputedStyle(e).borderStyle"))

    assert style(".ut-strip .unread") == "dashed"
    assert style(".ut-strip .r0") == "solid"
    show(page, site, "shape=6&ops=unfold.0.3.1")
    assert style(".ut-strip .twice") == "double"


def test_every_state_fits_and_complains_of_nothing(watch: Watch, site: str) -> None:
    show(watch.page, site)
    assert_every_state_fits(watch, STATES)


def test_it_works_from_disk(watch: Watch, built: Path) -> None:
    page = watch.page
    page.goto((built / PAGE).as_uri() + "#" + TRANSPOSED)
    expect(page.locator(".ut-name")).to_have_text("x[2, 1]")
    page.get_by_role("button", name="reshape(12)").click()
    assert address(page)["ops"] == "transpose.0.1_reshape.12"


def test_the_gallery_leads_here(watch: Watch, site: str) -> None:
    page = watch.page
    page.goto(site + "explorers/index.html")
    links = page.locator("article a[href*='strides.html#']").all()
    assert len(links) >= 3
    for link in links:
        assert "shape" in dict(parse_qsl(urlsplit(link.get_attribute("href") or "").fragment))
    page.get_by_role("link", name="cannot be viewed flat").click()
    expect(page.locator("#ut-target-help")).to_contain_text("No view.")
