"""The formats explorer in use: by keyboard, by address, on a phone, from disk, without a network."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
import torch
from playwright.sync_api import Page, expect

from tests.explorers import golden
from tests.explorers.harness import (
    Watch,
    address,
    assert_every_state_fits,
    fragment,
    tab_to,
    turn,
)

PAGE = "explorers/formats.html"
VERDICT = "format=bf16&fp32=3f808000"
# One state per kind of value and per way of rounding, with the longest texts among them.
STATES = [
    "",
    VERDICT,
    "format=bf16&fp32=7f7fffff",
    "format=fp32&bits=00000001",
    "format=fp32&bits=807fffff",
    "format=tf32&fp32=3dcccccd",
    "format=fp16&fp32=33000000",
    "format=fp16&fp32=00000001",
    "format=e5m2&bits=fc",
    "format=e4m3fn&bits=ff",
    "format=e4m3fn&fp32=43f00000&saturate=0",
    "format=int8&bits=80",
    "format=int8&fp32=7fc00000",
    "format=int8&fp32=ff7fffff",
]


def show(page: Page, site: str, state: str = "") -> None:
    page.goto(f"{site}{PAGE}#{state}", wait_until="load")
    expect(page.locator(".ut-value")).not_to_be_empty()


def test_the_keyboard_alone_flips_a_bit(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "format=bf16&bits=3f80")
    tab_to(page, "button.ut-bit")
    page.keyboard.press("Space")
    assert address(page) == {"format": "bf16", "bits": "bf80"}
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert address(page)["bits"] == "bf82"
    expect(page.locator("button.ut-bit:focus")).to_have_attribute("aria-label", "bit 1, mantissa")
    expect(page.locator("button.ut-bit:focus")).to_have_attribute("aria-checked", "true")
    expect(page.locator(".ut-value")).to_contain_text("−1.015625")
    expect(page.get_by_role("status")).to_have_text("BF16 0xbf82, normal, −1.015625.")
    # One stop for the whole row.
    page.keyboard.press("Tab")
    expect(page.locator("button.ut-bit:focus")).to_have_count(0)


def test_the_keyboard_alone_changes_the_format(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "format=bf16&bits=3f80")
    tab_to(page, "input[name=format]")
    page.keyboard.press("ArrowDown")
    assert address(page) == {"format": "fp16", "bits": "3c00"}, "the value stays 1"
    expect(page.get_by_role("radio", name="FP16")).to_be_checked()
    tab_to(page, "input[name=mode]")
    page.keyboard.press("ArrowRight")
    assert address(page) == {"format": "fp16", "fp32": "3f800000"}


def test_a_verdict_links_to_what_happened(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, VERDICT)
    expect(page.locator(".ut-value")).to_contain_text("0x3f80")
    steps = page.locator(".ut-steps")
    expect(steps).to_contain_text("1.0000000")
    expect(steps.locator("del")).to_have_text("1000000000000000")
    expect(steps).to_contain_text("exactly half")
    expect(steps).to_contain_text("0, even: stay")
    assert page.locator(".ut-bit.lost").count() == 16


def test_the_address_holds_the_state(watch: Watch, site: str) -> None:
    """Opened, changed there and back: the same address. Opened again: the same page."""
    page = watch.page
    for state in STATES[1:]:
        page.goto("about:blank")
        show(page, site, state)
        before = page.locator("formats-explorer").inner_text()
        assert fragment(page) == state, "looking changes nothing"
        switch = page.get_by_role(
            "radio", name="Round from FP32" if "bits=" in state else "Flip bits"
        )
        if "7fc00000" not in state:  # INT8 has no bits for a NaN to come back from
            other = page.locator("label", has=switch)
            back = page.locator(".ut-tabs label").filter(has_not=switch)
            other.click()
            assert fragment(page) != state
            if "bits=" in state:
                back.click()
                assert fragment(page) == state
        turn(page, state)
        expect(page.locator("formats-explorer")).to_have_text(
            re.compile(re.escape(before.split("\n")[0]))
        )
    page.reload()
    assert page.locator("formats-explorer").inner_text() == before


@pytest.mark.parametrize(
    "state", ["format=fp64&bits=0", "bits=3f80", "format=bf16&bits=3f8000", "format=bf16&bits=xyz"]
)
def test_an_address_that_makes_no_sense_is_harmless(watch: Watch, site: str, state: str) -> None:
    show(watch.page, site, state)
    expect(watch.page.locator(".ut-value")).to_contain_text("0x3")


def test_typing_a_number_rounds_it(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "format=fp16&fp32=3f800000")
    field = page.get_by_role("textbox", name="FP32", exact=True)
    field.fill("65519.99")
    expect(page.locator(".ut-value")).to_contain_text("65504")
    field.fill("65520")
    expect(page.locator(".ut-value")).to_contain_text("∞")
    expect(page.locator(".ut-steps")).to_contain_text("into the exponent")
    field.fill("0x33000000")
    assert address(page) == {"format": "fp16", "fp32": "33000000"}
    field.fill("0x")
    expect(field).to_have_attribute("aria-invalid", "true")
    assert address(page)["fp32"] == "33000000", "half a number changes nothing"


def test_saturation_can_be_switched_off_for_e4m3fn_only(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "format=e4m3fn&fp32=447a0000")
    expect(page.locator(".ut-value")).to_contain_text("448")
    page.get_by_role("switch", name="saturate").uncheck()
    expect(page.locator(".ut-value")).to_contain_text("NaN")
    assert address(page)["saturate"] == "0"
    page.locator("label", has_text="FP8 e5m2").click()
    expect(page.get_by_role("switch", name="saturate")).to_have_count(0)
    assert "saturate" not in address(page)


def test_steps_lead_to_the_neighbours(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "format=e4m3fn&bits=7d")
    page.get_by_role("button", name="one step up").click()
    assert address(page)["bits"] == "7e"
    expect(page.get_by_role("button", name="Nothing further up")).to_be_disabled()
    drawing = page.get_by_role("img", name="Number line")
    expect(drawing).to_have_attribute("aria-label", "Number line. 384, 416, 448; here 448.")


@pytest.mark.parametrize(
    ("name", "bits"),
    [("fp32", 0xC0490FDB), ("bf16", 0x3DCD), ("fp16", 0x8001), ("e4m3fn", 0x7E), ("e5m2", 0x01), ("int8", 0x80)],
)  # fmt: skip
def test_the_line_for_pytorch_gives_the_same_number(
    watch: Watch, site: str, name: str, bits: int
) -> None:
    digits = f"{bits:0{golden.WIDTHS[name] // 4}x}"
    show(watch.page, site, f"format={name}&bits={digits}")
    line = watch.page.locator(".ut-facts div", has_text="In PyTorch").locator("code").inner_text()
    number = eval(line, {"torch": torch})
    assert number.dtype == golden.DTYPES[name]
    assert float(number.float()) == float(golden.values(name, torch.tensor([bits])))


def test_fields_are_told_without_colour(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "format=bf16&bits=3f80")
    for name, size in {"sign": 1, "exponent": 8, "mantissa": 7}.items():
        group = page.get_by_role("group", name=name)
        expect(group).to_contain_text(name)
        expect(group.get_by_role("switch")).to_have_count(size)
    styles = page.locator(".ut-field > p:visible").evaluate_all(
        "(all) => all.map((p) => getComputedStyle(p).borderBottomStyle)"
    )
    assert len(set(styles)) == len(styles) == 3


def test_every_state_fits_and_complains_of_nothing(watch: Watch, site: str) -> None:
    show(watch.page, site)
    assert_every_state_fits(watch, STATES)


def test_it_works_from_disk(watch: Watch, built: Path) -> None:
    page = watch.page
    page.goto((built / PAGE).as_uri() + "#" + VERDICT)
    expect(page.locator(".ut-value")).to_contain_text("0x3f80")
    page.get_by_role("button", name="FP32 step up").click()
    expect(page.locator(".ut-value")).to_contain_text("0x3f81")
    assert address(page)["fp32"] == "3f808001"


def test_the_gallery_leads_here(watch: Watch, site: str) -> None:
    page = watch.page
    page.goto(site + "explorers/index.html")
    for link in page.locator("article a[href*='formats.html#']").all():
        href = link.get_attribute("href") or ""
        assert dict(parse_qsl(urlsplit(href).fragment)).keys() & {"bits", "fp32"}
    page.get_by_role("link", name="a tie").click()
    expect(page.locator(".ut-steps")).to_contain_text("A tie")
