"""The dataloader explorer in use: by keyboard, by address, on a phone, from disk, without a network."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect
from torch.utils.data import DataLoader

from tests.explorers import golden_dataloader
from tests.explorers.golden_dataloader import Event, Knobs
from tests.explorers.harness import (
    Watch,
    address,
    assert_every_state_fits,
    fragment,
    press_on,
    tab_to,
    turn,
)

PAGE = "explorers/dataloader.html"


def state(at: int | None = None, **settings: object) -> str:
    """The address of these settings, as the page writes it."""
    usual: dict[str, object] = {
        "samples": 16,
        "batch_size": 2,
        "num_workers": 2,
        "prefetch_factor": 2,
        "load": 2,
        "late": 24,
        "work": 4,
    }
    pairs = {**usual, **settings, **({} if at is None else {"at": at})}
    return "&".join(f"{name}={value}" for name, value in pairs.items())


SLOW = state(24, slow=4)
# One state per kind of drawing, with the most that the page takes among them.
STATES = [
    "",
    SLOW,
    state(30, in_order=False, slow=4),
    state(),
    state(0),
    state(num_workers=0, work=5),
    state(9, num_workers=0, work=0),
    state(30, num_workers=3, work=12),
    state(90, samples=32, batch_size=1, num_workers=4, prefetch_factor=4, slow="0.9"),
    state(
        60, samples=32, batch_size=1, num_workers=4, prefetch_factor=4, late=60, work=40, slow="1"
    ),
    state(samples=32, batch_size=1, num_workers=4, load=1, work=0),
    state(samples=3, batch_size=8, drop_last=True),
    state(15, samples=15, batch_size=4, prefetch_factor=4, num_workers=4, drop_last=True),
    state(samples=1, batch_size=1, num_workers=1, prefetch_factor=1, load=1, work=0),
]


def show(page: Page, site: str, hash_: str = "") -> None:
    page.goto("about:blank")
    page.goto(f"{site}{PAGE}#{hash_}", wait_until="load")
    expect(page.locator(".dl-verdict b")).not_to_be_empty()


def turn_to(page: Page, hash_: str) -> None:
    """Show another state in the page that is open: much faster than to open it again."""
    turn(page, hash_)
    knobs, at = _knobs(hash_)
    count = len(golden_dataloader.run(knobs))
    shown = f"event {count if at is None else at} of {count}"
    expect(page.locator(".dl-event")).to_contain_text(shown)
    line = page.locator(".dl-code code")
    expect(line).to_contain_text(f"range({knobs.samples}), batch_size={knobs.batch_size}, ")


def cursor(page: Page) -> Locator:
    return page.get_by_role("slider", name="Cursor, by events")


def row(page: Page, name: str) -> Locator:
    """What stands beside `name`, of the places or of the counters."""
    term = page.locator("dt", has_text=re.compile(f"^{re.escape(name)}$"))
    return page.locator(".dl-now dl > div", has=term).locator("dd")


def test_the_keyboard_alone_steps_through_the_epoch(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, SLOW)
    tab_to(page, ".dl-timeline")
    expect(cursor(page)).to_have_attribute("aria-valuenow", "24")
    expect(cursor(page)).to_have_attribute(
        "aria-valuetext",
        "24 of 50 events, unit 15. The main process takes batch 5 from the result queue. "
        "Batch 2 is next, so 5 is put aside.",
    )
    page.keyboard.press("ArrowRight")
    assert address(page)["at"] == "25"
    expect(page.locator(".dl-event")).to_contain_text("Worker 0 has loaded and collated batch 2")
    expect(page.get_by_role("status")).to_contain_text("batch 2, and puts it")
    page.keyboard.press("PageUp")
    expect(page.locator(".dl-event")).to_contain_text("Batch 2 is delivered. The consumer works")
    page.keyboard.press("PageUp")
    expect(page.locator(".dl-event")).to_contain_text("it had been put aside")
    page.keyboard.press("PageDown")
    page.keyboard.press("PageDown")
    expect(page.locator(".dl-event")).to_contain_text("Batch 1 is delivered")
    page.keyboard.press("End")
    assert "at" not in address(page)
    expect(page.locator(".dl-event")).to_contain_text("All 8 batches are delivered: StopIteration.")
    page.keyboard.press("ArrowRight")
    expect(cursor(page)).to_have_attribute("aria-valuenow", "50")
    page.keyboard.press("Home")
    assert address(page)["at"] == "0"
    expect(page.locator(".dl-event")).to_contain_text("Nothing has happened yet.")
    page.keyboard.press("ArrowLeft")
    expect(cursor(page)).to_be_focused()


def test_buttons_step_too_and_keep_the_focus(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, SLOW)
    for name, at in (("step ▶", "25"), ("◀ back", "24"), ("next delivery ▶▶", "29")):
        button = page.get_by_role("button", name=name)
        button.press("Enter")
        assert address(page)["at"] == at
        expect(button).to_be_focused()
    page.get_by_role("button", name="to the end").click()
    expect(cursor(page)).to_have_attribute("aria-valuenow", "50")


def test_pointing_drags_the_cursor(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, SLOW)
    box = page.locator(".dl-drawing").bounding_box()
    assert box is not None
    unit = (box["width"] - 74 - 8) / 56
    page.mouse.move(box["x"] + 74 + 12.5 * unit, box["y"] + 20)
    page.mouse.down()
    assert address(page)["t"] == "12.5"
    expect(page.locator(".dl-event")).to_contain_text("Unit 12.5 event 20 of 50")
    expect(page.locator(".dl-event")).to_contain_text(
        "Worker 0 is at 7.5 of 27 in batch 2. Worker 1 is at 2.5 of 5 in batch 5. "
    )
    page.mouse.move(box["x"] + 74 + 24.3 * unit, box["y"] + 20, steps=9)
    assert address(page)["t"] == "24.3", "between two events, the cursor goes with the hand"
    expect(row(page, "worker 0")).to_contain_text("loads 2 19.3 of 27")
    expect(row(page, "consumer waited").locator("b")).to_have_text("16.3")
    page.reload()
    expect(page.locator(".dl-event b")).to_have_text("Unit 24.3")
    page.mouse.down()
    page.mouse.move(box["x"] + 5, box["y"] + 20)
    assert address(page)["at"] == "7", "never before unit 0"
    page.mouse.up()
    page.mouse.move(box["x"] + 74 + 33 * unit, box["y"] + 20)
    assert address(page)["at"] == "7"


def test_between_events_keys_lead_to_events_and_by_units(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, state(slow=4) + "&t=24.3")
    tab_to(page, ".dl-timeline")
    for keys, wanted in (
        (["Shift+ArrowRight", "Shift+ArrowRight"], ("t", "26.3")),
        (["ArrowLeft"], ("at", "24")),
        (["Shift+ArrowRight", "ArrowRight"], ("at", "25")),
        (["Shift+ArrowLeft", "ArrowLeft"], ("at", "24")),
        (["ArrowLeft"], ("at", "23")),
    ):
        for one in keys:
            page.keyboard.press(one)
        assert address(page).get(wanted[0]) == wanted[1], (keys, address(page))
    show(page, site, state(slow=4) + "&t=24.3")
    page.get_by_label("consumer, per batch").fill("5")
    assert address(page)["t"] == "24.3", "a knob leaves the cursor at its time"


def test_the_knobs_move_by_keyboard_and_the_cursor_stays_at_its_time(
    watch: Watch, site: str
) -> None:
    page = watch.page
    show(page, site, SLOW)
    expect(page.locator(".dl-event b")).to_have_text("Unit 15")
    press_on(page, "#dl-num_workers", "ArrowRight", num_workers="3")
    expect(page.locator(".dl-knob", has_text="num_workers").locator("b")).to_have_text("3")
    expect(page.locator("#dl-num_workers")).to_be_focused()
    expect(page.locator(".dl-event b")).to_have_text(re.compile("^Unit (1[0-5])$"))
    expect(row(page, "worker 2")).to_be_visible()
    expect(page.get_by_role("status")).to_contain_text("The epoch takes 51 units.")
    page.keyboard.press("Home")
    expect(page.locator(".dl-verdict")).to_contain_text("Nothing is loaded ahead.")
    for name in ("prefetch_factor", "in_order"):
        expect(page.get_by_label(name)).to_be_disabled()
    expect(row(page, "main process")).to_be_visible()
    show(page, site, state(slow=4))
    page.get_by_label("in_order").uncheck()
    assert "at" not in address(page), "at the end it stays at the end"
    expect(page.locator(".dl-verdict")).to_contain_text("Batch 2 is delivered 7th, not 3rd.")
    page.get_by_label("drop_last").check()
    assert address(page)["drop_last"] == "True"


def test_any_sample_can_be_made_slow(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, state())
    tab_to(page, ".dl-samples button")
    for key in ("ArrowRight", "ArrowRight", "Space"):
        page.keyboard.press(key)
    assert address(page)["slow"] == "2"
    cell = page.get_by_role("button", name="sample 2, slow")
    expect(cell).to_be_focused()
    expect(cell).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    assert address(page)["slow"] == "2.15"
    # One stop of Tab for all samples.
    page.keyboard.press("Tab")
    expect(page.locator(".dl-samples :focus")).to_have_count(0)
    samples = page.get_by_label("samples", exact=True)
    samples.fill("9")
    assert address(page)["slow"] == "2", "what is gone is not slow"
    expect(page.locator(".dl-samples button:visible")).to_have_count(9)
    page.get_by_label("drop_last").check()
    expect(page.locator(".dl-note")).to_contain_text("the last 1 are dropped")


def test_the_page_shows_what_torchs_loader_does(watch: Watch, site: str) -> None:
    """Counters and places at the cursor, against the golden run of the same settings."""
    show(watch.page, site)
    for hash_ in STATES[1:]:
        turn_to(watch.page, hash_)
        _assert_shown(watch.page, hash_)


def _assert_shown(page: Page, hash_: str) -> None:
    knobs, at = _knobs(hash_)
    events = golden_dataloader.run(knobs)
    seen = events[: len(events) if at is None else at]
    expect(page.locator(".dl-event")).to_contain_text(f"event {len(seen)} of {len(events)}")
    finished, delivered = (_batches(seen, kind) for kind in ("finish", "deliver"))
    given = _batches(seen, "give" if knobs.num_workers else "start")
    begun = _batches(seen, "start")
    for name, wanted in (("given out", given), ("finished", finished), ("delivered", delivered)):
        expect(row(page, name).locator("b")).to_have_text(str(len(wanted)))
    if knobs.num_workers:
        held = seen[-1].outstanding + seen[-1].aside if seen else 0
        expect(row(page, "in flight").locator("b")).to_have_text(str(held))
        of_worker = {event.batch: event.worker for event in seen if event.kind == "give"}
        for worker in range(knobs.num_workers):
            busy = [b for b in begun if of_worker[b] == worker and b not in finished]
            queue = [b for b in given if of_worker[b] == worker and b not in begun]
            chips = row(page, f"worker {worker}").locator(".dl-chip")
            assert chips.all_inner_texts() == [str(batch) for batch in busy + queue]
        taken = _batches(seen, "take")
        ready = sorted(b for b in finished if b not in taken and b not in delivered)
        assert _chips(page, "result queue") == ready
        if knobs.in_order:
            assert _chips(page, "put aside") == sorted(set(taken) - set(delivered))
    assert _chips(page, "consumer") == delivered[-1:]
    done = row(page, "done").inner_text()
    assert done == (" ".join(map(str, sorted(delivered[:-1]))) or "–")
    totals = [golden_dataloader.run(_knobs(hash_, n)[0])[-1].time for n in range(5)]
    assert page.locator(".dl-others b").all_inner_texts() == [str(total) for total in totals]


def _knobs(hash_: str, workers: int | None = None) -> tuple[Knobs, int | None]:
    given = dict(parse_qsl(hash_))
    at = int(given.pop("at")) if "at" in given else None
    slow = tuple(int(i) for i in given.pop("slow", "").split(".") if i)
    flags = {name: given.pop(name) == "True" for name in ("in_order", "drop_last") if name in given}
    numbers = {name: int(value) for name, value in given.items()}
    if workers is not None:
        numbers["num_workers"] = workers
    return Knobs(**numbers, **flags, slow=slow), at  # type: ignore[arg-type]


def _batches(events: list[Event], kind: str) -> list[int]:
    return [event.batch for event in events if event.kind == kind]


def _chips(page: Page, name: str) -> list[int]:
    return [int(text) for text in row(page, name).locator(".dl-chip").all_inner_texts()]


@pytest.mark.parametrize("hash_", [STATES[2], STATES[5], STATES[8], STATES[12]])
def test_the_address_holds_the_state(watch: Watch, site: str, hash_: str) -> None:
    """Opened, changed there and back, and opened again: the same address and the same page."""
    page = watch.page
    show(page, site, hash_)
    before = page.locator("dataloader-explorer").inner_text()
    assert fragment(page) == hash_, "looking changes nothing"
    page.get_by_role("button", name="to the end").click()
    page.get_by_label("drop_last").click()
    page.get_by_label("drop_last").click()
    assert fragment(page) == hash_.partition("&at=")[0]
    page.reload()
    assert "at" not in address(page)
    turn_to(page, hash_)
    page.reload()
    assert page.locator("dataloader-explorer").inner_text() == before
    assert fragment(page) == hash_


@pytest.mark.parametrize(
    "hash_",
    ["nothing=1", "samples=33", "work=-1", "slow=x", "in_order=maybe", "at=x", "load=2.5"],
)
def test_an_address_that_makes_no_sense_is_harmless(watch: Watch, site: str, hash_: str) -> None:
    show(watch.page, site, hash_)
    expect(watch.page.locator(".dl-verdict")).to_contain_text("Batch 2 holds the others back.")


def test_what_does_not_fit_is_left_out_of_an_address(watch: Watch, site: str) -> None:
    show(watch.page, site, "samples=6&slow=40.1.1&at=999")
    expect(watch.page.locator(".dl-samples [aria-pressed=true]")).to_have_count(1)
    watch.page.get_by_role("button", name="◀ back").click()
    assert address(watch.page)["slow"] == "1"


def test_the_settings_to_try_show_what_they_name(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    tries = page.get_by_role("group", name="Settings to try").get_by_role("button")
    points = {}
    for button in tries.all():
        button.click()
        points[button.inner_text()] = page.locator(".dl-verdict b").inner_text()
    assert points == {
        "all even": "Loading sets the pace.",
        "no workers": "Nothing is loaded ahead.",
        "one slow sample": "Batch 2 holds the others back.",
        "… and in_order=False": "Whatever is finished goes first.",
        "a slow consumer": "The consumer sets the pace.",
        "prefetch more": "The consumer sets the pace.",
        "every other batch slow": "Batch 0 holds the others back.",
    }


def test_the_line_for_pytorch_gives_the_same_batches(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    for hash_ in STATES[1:]:
        turn_to(page, hash_)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "This DataLoader will create")  # more than cores
            loader = eval(page.locator(".dl-code code").inner_text(), {"DataLoader": DataLoader})
        knobs, _ = _knobs(hash_)
        assert list(loader.batch_sampler) == list(knobs.loader(range(knobs.samples)).batch_sampler)
        assert loader.num_workers == knobs.num_workers and loader.in_order == knobs.in_order
        assert not knobs.num_workers or loader.prefetch_factor == knobs.prefetch_factor


def test_nothing_is_told_by_colour_alone(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, SLOW)

    def style(selector: str, name: str) -> str:
        script = "(e, name) => getComputedStyle(e)[name]"
        return str(page.locator(selector).first.evaluate(script, name))

    assert style(".dl-drawing .aside", "strokeDasharray") != "none"
    assert style(".dl-drawing .wait", "strokeDasharray") != style(
        ".dl-drawing .aside", "strokeDasharray"
    )
    assert "dl-hatch" in style(".dl-drawing .slow", "fill")
    assert style(".dl-chip.aside", "borderTopStyle") == "dashed"
    assert style(".dl-chip.queued", "borderTopStyle") == "dotted"
    assert int(style(".dl-others .here b", "fontWeight")) > int(style(".dl-others b", "fontWeight"))
    named = page.locator(".dl-drawing text").all_text_contents()
    assert {"worker 0", "worker 1", "ready", "consumer", "waits", "idle"} <= set(named)


def test_every_state_fits_and_complains_of_nothing(watch: Watch, site: str) -> None:
    show(watch.page, site)
    assert_every_state_fits(watch, STATES, "button, .dl-switch, input[type=range]")


def test_it_works_from_disk(watch: Watch, built: Path) -> None:
    page = watch.page
    page.goto((built / PAGE).as_uri() + "#" + SLOW)
    expect(page.locator(".dl-verdict")).to_contain_text("Batch 2 holds the others back.")
    page.get_by_role("button", name="step ▶").click()
    assert address(page)["at"] == "25"


def test_the_gallery_leads_here(watch: Watch, site: str) -> None:
    page = watch.page
    page.goto(site + "explorers/index.html")
    links = page.locator("article a[href*='dataloader.html#']").all()
    assert len(links) >= 3
    known = set(dict(parse_qsl(state(1, slow=1, in_order=False))))
    for link in links:
        assert set(dict(parse_qsl(urlsplit(link.get_attribute("href") or "").fragment))) <= known
    page.get_by_role("link", name="holds the rest back").click()
    expect(page.locator(".dl-verdict")).to_contain_text("Batch 2 holds the others back.")
