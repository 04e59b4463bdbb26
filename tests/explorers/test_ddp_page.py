"""The ddp explorer in use: by keyboard, by address, on a phone, from disk, without a network."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.explorers.harness import (
    Watch,
    address,
    assert_every_state_fits,
    fragment,
    press_on,
    tab_to,
    turn,
)

PAGE = "explorers/ddp.html"
OVERLAP = "panel=overlap&model=equal&cap=4&bandwidth=2&latency=0.5"
RING = "panel=ring&n=4&size=8&step=3"
ZERO = "panel=zero&params=7B&ranks=8&optimizer=adam&precision=mixed&stage=1"
LONG = "_".join(["512x512-512-512x512-512-512x512-512-512x512-512"] * 16)
# One state per kind of drawing, with the largest that the page takes.
STATES = [
    OVERLAP,
    "panel=overlap&model=equal&cap=default&bandwidth=1&latency=0.5",
    "panel=overlap&model=conv&cap=1&bandwidth=2&latency=0.5",
    "panel=overlap&model=embedding&cap=one&bandwidth=0.25&latency=8&overlap=no",
    "panel=overlap&model=small&cap=each&bandwidth=64&latency=0",
    "panel=overlap&model=embedding&cap=default&bandwidth=190&latency=0.02",
    "panel=overlap&layers=9x9&time=0&cap=0.001&bandwidth=3.3&latency=0.7",
    f"panel=overlap&layers={LONG}&time=1_2_3.5&cap=each&bandwidth=0.3&latency=3",
    RING,
    "panel=ring&n=2&size=1&step=2",
    "panel=ring&n=3&size=24&step=0",
    "panel=ring&n=6&size=24&step=10",
    "panel=ring&n=6&size=13&step=7",
    ZERO,
    "panel=zero&params=1&ranks=1&optimizer=sgd&precision=fp32&stage=3",
    "panel=zero&params=10T&ranks=1024&optimizer=momentum&precision=mixed&stage=2",
    "panel=zero&params=123456789&ranks=3&optimizer=adam&precision=fp32&stage=0",
]
SHOWN = "ddp-explorer > div:not([hidden])"
NONSENSE = [
    "model=small",
    "panel=overlap&model=what",
    "panel=overlap&layers=3x3&time=1_2",
    "panel=overlap&cap=-1",
    "panel=overlap&cap=1.1.1",
    "panel=overlap&bandwidth=0",
    "panel=overlap&latency=x",
    "panel=ring&n=7",
    "panel=ring&n=4&step=7",
    "panel=ring&size=0",
    "panel=zero&params=x",
    "panel=zero&optimizer=lion",
    "panel=zero&optimizer=toString",
    "panel=zero&stage=4",
    "panel=zero&ranks=0",
]


def show(page: Page, site: str, state: str = OVERLAP) -> None:
    page.goto("about:blank")
    page.goto(f"{site}{PAGE}#{state}", wait_until="load")
    expect(page.locator(".dd-verdict:visible")).not_to_be_empty()


def pick(page: Page, name: str) -> None:
    """Choose a radio button by what its row shows, as a mouse would."""
    page.locator("label:visible", has_text=name).first.click()


def verdict(page: Page) -> Locator:
    return page.locator(".dd-verdict:visible")


def test_buckets_change_what_hides(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    buckets = page.locator(".dd-buckets li")
    expect(buckets).to_have_count(6)
    expect(buckets.first).to_contain_text("6.bias 6.weight")
    expect(buckets.first).to_contain_text("4.004 MiB")
    expect(buckets.first).to_contain_text("full: its cap is 4 MiB")
    expect(verdict(page)).to_contain_text("12.51 hide behind backward and 2.5 stick out")
    pick(page, "DDP's default")
    assert address(page)["cap"] == "default"
    expect(buckets).to_have_count(2)
    expect(buckets.last).to_contain_text("the rest, below the cap of 25 MiB")
    expect(verdict(page)).to_contain_text("2.5 hide behind backward and 10.51 stick out")
    pick(page, "one bucket per gradient")
    expect(buckets).to_have_count(12)
    expect(buckets.nth(1)).to_contain_text("waits until 4.5")
    pick(page, "one bucket for all")
    expect(buckets).to_have_count(1)
    expect(verdict(page)).to_contain_text("0 hide behind backward and 12.51 stick out")


def test_without_overlap_all_sticks_out(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    page.get_by_role("checkbox", name="no overlap").check()
    assert address(page)["overlap"] == "no"
    expect(verdict(page)).to_contain_text("0 hide behind backward and 15.01 stick out")
    expect(page.locator(".dd-buckets li").first).to_contain_text("waits until 24")
    page.get_by_role("checkbox", name="no overlap").uncheck()
    assert fragment(page) == OVERLAP


def test_the_rows_compare_all_plans(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    rows = page.locator(".dd-rows:visible label")
    ends = rows.locator(".dd-said").all_inner_texts()
    assert [text.split(" · ")[0] for text in ends] == [
        "ends at 26.5",
        "ends at 34.51",
        "ends at 27",
        "ends at 36.51",
    ]
    widths = rows.locator(".dd-bar").evaluate_all(
        "(bars) => bars.map((bar) => [...bar.children].reduce((sum, part) => sum + part.offsetWidth, 0))"
    )
    assert widths[0] < widths[2] < widths[1] < widths[3]


def test_a_model_of_ones_own(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    page.get_by_text("The model's layers").click()
    layers = page.locator("#dd-layers")
    layers.fill("512x256+512, 10x512+10")
    assert address(page)["layers"] == "512x256-512_10x512-10"
    expect(page.locator(".dd-buckets li").first).to_contain_text("2.bias 2.weight 1.bias 1.weight")
    times = page.locator("#dd-times")
    layers.fill("512 × 256 + 512 10*512+10")
    assert address(page)["layers"] == "512x256-512_10x512-10", "spaces part layers, too"
    times.fill("3 5, ")
    assert address(page)["time"] == "3_5"
    times.fill("3, 5")
    assert address(page)["time"] == "3_5"
    expect(verdict(page)).to_contain_text("Backward takes 8")
    times.fill("3, 5, 7")
    expect(times).to_have_attribute("aria-invalid", "true")
    assert address(page)["time"] == "3_5", "what makes no sense changes nothing"
    times.blur()
    expect(times).to_have_value("3, 5")
    layers.fill("512x")
    expect(page.locator("#dd-layers-help")).to_contain_text("Shapes such as")
    for text in ("", "-1", "0x10", "1e-7", "1001"):
        page.locator("#dd-cap").fill(text)
        expect(page.locator("#dd-cap")).to_have_attribute("aria-invalid", "true")
        assert address(page)["cap"] == "4"
    page.locator("#dd-cap").fill("0.01")
    assert address(page)["cap"] == "0.01"
    expect(page.locator(".dd-buckets li")).to_have_count(2)


def test_the_keyboard_alone_turns_the_knobs(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    tab_to(page, "[name=panel]")
    press_on(page, "[name=model]", "ArrowRight", model="conv")
    press_on(page, "[aria-label=bandwidth]", "ArrowRight", bandwidth="3")
    expect(page.locator("[aria-label=bandwidth]")).to_be_focused()
    press_on(page, "[aria-label=latency]", "Home", latency="0")
    press_on(page, "[name=plan]", "ArrowDown", cap="default")
    expect(page.get_by_role("status")).to_contain_text("2 buckets. Backward takes 30")
    tab_to(page, ".dd-buckets")


def test_a_network_brings_its_numbers_and_says_whose_they_are(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    source = page.locator(".dd-source")
    expect(source).to_contain_text("yours")
    networks = page.get_by_role("group", name="Network, as measured").get_by_role("radio")
    expect(networks).to_have_count(6)
    pairs, ends = set(), []
    for network in networks.all():
        network.check()
        bandwidth, latency = address(page)["bandwidth"], address(page)["latency"]
        expect(source).to_contain_text(f"{bandwidth} MiB per ms, {latency} ms per all-reduce: ")
        for link in source.get_by_role("link").all():
            assert (link.get_attribute("href") or "").startswith("https://")
        expect(source.get_by_role("link").first).to_be_visible()
        pairs.add((bandwidth, latency))
        ends.append(page.locator(".dd-verdict:visible b").nth(1).inner_text())
    assert len(pairs) == 6 and ("190", "0.02") in pairs
    assert float(ends[0]) < 1 < 100 < float(ends[-1]), "24 MiB in a machine, and from home to home"


def test_the_keyboard_alone_steps_around_the_ring(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "panel=ring&n=3&size=7&step=0")
    press_on(page, "[aria-label='Next step']", "Enter", step="1")
    expect(page.locator("[aria-label='Next step']")).to_be_focused()
    expect(page.get_by_role("status")).to_contain_text("rank 2 sends piece 2 to rank 0, added")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(verdict(page)).to_contain_text("Step 3 of 4, all-gather.")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".dd-piece.done")).to_have_count(9)
    expect(page.locator(".dd-piece.done b").first).to_have_text("abc ✓")
    expect(page.get_by_role("button", name="Next step")).to_have_text("again ↺")
    page.get_by_role("button", name="Next step").click()
    assert address(page)["step"] == "0"
    page.get_by_role("button", name="One step back").click()
    assert address(page)["step"] == "0", "the edge is the end"


def test_the_ring_says_who_sends_what(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "panel=ring&n=4&size=10&step=1")
    expect(page.locator(".dd-moves li")).to_have_text(
        [
            "0 → 1 piece 0, 12 B, added",
            "1 → 2 piece 1, 12 B, added",
            "2 → 3 piece 2, 8 B, added",
            "3 → 0 piece 3, 8 B, added",
        ]
    )
    assert page.locator(".dd-piece.gets").all_inner_texts() == [
        "+ ad\n9009 1001",
        "+ ab\n11 22 33",
        "+ bc\n440 550 660",
        "+ cd\n7700 8800",
    ]
    expect(page.locator(".dd-piece.sends")).to_have_count(4)
    sums = page.locator(".dd-sums tbody tr")
    expect(sums.first).to_contain_text("12 B of 60 B")
    expect(sums.first).to_contain_text("120 B")
    expect(sums.nth(1)).to_contain_text("40 B")
    pick(page, "2")
    assert address(page) == {"panel": "ring", "n": "2", "size": "10", "step": "0"}


def test_stages_shard_one_thing_after_another(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "panel=zero&params=1000&ranks=10&optimizer=adam&precision=mixed&stage=0")
    said = page.locator(".dd-rows:visible .dd-said").all_inner_texts()
    assert said == ["16,000 B 100 %".replace("16,000 B", "15.6 KiB"), "5,200 B 33 %", "3,400 B 21 %", "1,600 B 10 %"]  # fmt: skip
    for stage, shards in enumerate([0, 2, 3, 4]):
        page.locator(".dd-rows:visible input").nth(stage).check()
        assert address(page)["stage"] == str(stage)
        expect(page.locator(".ut-facts div", has_text="a shard")).to_have_count(shards)
    expect(page.locator(".ut-facts")).to_contain_text("fully_shard(model)")
    expect(verdict(page)).to_contain_text("each sends 5,400 B per step")
    pick(page, "SGD")
    pick(page, "fp32")
    expect(page.locator(".ut-facts")).to_contain_text("plain SGD keeps nothing")
    page.locator("#dd-params").fill("many")
    expect(page.locator("#dd-params-help")).to_have_text("Such as 7B, 124M or 1000.")
    assert address(page)["params"] == "1K"
    page.get_by_role("button", name="124M").click()
    assert address(page)["params"] == "124M"
    expect(page.locator("#dd-params")).to_have_value("124M")


def test_the_keyboard_alone_chooses_a_stage(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, ZERO)
    press_on(page, "[aria-label=ranks]", "ArrowRight", ranks="16")
    press_on(page, "[name=stage]", "ArrowDown", stage="2")
    expect(page.get_by_role("status")).to_contain_text("Stage 2: ")


def test_each_panel_keeps_its_state(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, RING)
    pick(page, "Memory per rank")
    page.locator(".dd-rows:visible input").nth(3).check()
    assert {"panel": "zero", "stage": "3", "n": "4", "step": "3"}.items() <= address(page).items()
    pick(page, "Backward and all-reduce at once")
    assert address(page)["panel"] == "overlap"
    before = fragment(page)
    page.reload()
    expect(page.locator(".dd-buckets li")).to_have_count(6)
    assert fragment(page) == before
    pick(page, "An all-reduce, step by step")
    expect(verdict(page)).to_contain_text("Step 3 of 6")


def test_the_address_holds_the_state(watch: Watch, site: str) -> None:
    """Opened, another panel and back: the same address, written anew, and the same page."""
    page = watch.page
    show(page, site)
    for state in STATES:
        turn(page, state)
        before = page.locator(SHOWN).inner_text()
        assert fragment(page) == state, "looking changes nothing"
        panel = page.locator("[name=panel]:checked")
        panel.press("ArrowRight")
        assert fragment(page) != state
        page.locator("[name=panel]:checked").press("ArrowLeft")
        assert fragment(page) == state
        assert page.locator(SHOWN).inner_text() == before


@pytest.mark.parametrize("state", ["", "panel=what", "panel=overlap&layers=0x3"])
def test_an_address_that_makes_no_sense_is_harmless(watch: Watch, site: str, state: str) -> None:
    show(watch.page, site, state)
    expect(watch.page.locator(".dd-buckets li")).to_have_count(6)


def test_what_makes_no_sense_changes_nothing(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, RING)
    before = page.locator(SHOWN).inner_text()
    for state in NONSENSE:
        turn(page, state)
        assert page.locator(SHOWN).inner_text() == before, state


def test_nothing_is_told_by_colour_alone(watch: Watch, site: str) -> None:
    page = watch.page

    def style(selector: str, what: str) -> str:
        return str(
            page.locator(selector).first.evaluate("(e, what) => getComputedStyle(e)[what]", what)
        )

    show(page, site, RING)
    assert style(".dd-piece.done", "borderTopStyle") == "double"
    assert style(".dd-piece.sends:not(.gets)", "outlineStyle") == "dashed"
    assert style(".dd-piece.gets", "outlineStyle") == "solid"
    show(page, site, ZERO)
    for part in ("gradients", "master", "state"):
        assert "gradient(" in style(f".dd-bar .{part}", "backgroundImage"), "a pattern of its own"
    show(page, site)
    assert "gradient(" in style(".dd-bar .late", "backgroundImage")
    assert "dd-late" in style(".dd-time rect.late", "fill")


def test_every_state_fits_and_complains_of_nothing(watch: Watch, site: str) -> None:
    show(watch.page, site)
    assert_every_state_fits(watch, STATES)


def test_it_works_from_disk(watch: Watch, built: Path) -> None:
    page = watch.page
    page.goto((built / PAGE).as_uri() + "#" + RING)
    page.get_by_role("button", name="Next step").click()
    expect(verdict(page)).to_contain_text("Step 4 of 6, all-gather.")
    assert address(page)["step"] == "4"


def test_the_gallery_leads_here(watch: Watch, site: str) -> None:
    page = watch.page
    page.goto(site + "explorers/index.html")
    links = page.locator("article a[href*='ddp.html#']").all()
    assert len(links) >= 4
    for link in links:
        assert "panel" in dict(parse_qsl(urlsplit(link.get_attribute("href") or "").fragment))
    page.get_by_role("link", name="a ring half way").click()
    expect(verdict(page)).to_contain_text("Step 3 of 6")
