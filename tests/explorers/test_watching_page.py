"""The watching explorer in use: by keyboard, mouse and finger, by address, with a trace of one's own, on a phone, from disk."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.explorers import golden_watching
from tests.explorers.harness import Watch, address, assert_every_state_fits, fragment, tab_to, turn
from tests.explorers.test_watching import TABLES, TRACES, as_file, bar

PAGE = "explorers/watching.html"
IDS = [trace["id"] for trace in TRACES]
ASKS = ["ran", "time", "waits", "peak", "back"]


def show(page: Page, site: str, state: str = "trace=step") -> None:
    page.goto(f"{site}{PAGE}#{state}", wait_until="load")
    expect(page.locator(".ut-tools")).to_be_visible()


def number(trace: str, name: str, nth: int = 0) -> int:
    """The number of a call of a recorded trace, by its name."""
    (found,) = [one for one in TRACES if one["id"] == trace]
    same = [i for i, own in enumerate(found["calls"][0]) if found["names"][own] == name]
    return same[nth]


def middle(page: Page, text: str, nth: int = 0) -> tuple[float, float]:
    """Where the bar with this text is."""
    box = page.locator(".wt-drawing text", has_text=text).nth(nth).bounding_box()
    assert box is not None
    return box["x"] + 8, box["y"] + box["height"] / 2


def test_questions_tell_a_story(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    said = page.locator(".wt-said")
    expect(said).to_contain_text("Ask one of them")
    for label, ask, words in (
        ("What ran?", "ran", "72 calls of 43 names on 1 thread"),
        ("Where did the time go?", "time", "All own times together are"),
        ("What waits?", "waits", "no operator runs on main thread"),
        ("Who made the peak of memory?", "peak", "are held after"),
        ("Which forward is this the backward of?", "back", "is the backward of"),
    ):
        page.get_by_text(label, exact=True).click()
        assert address(page)["ask"] == ask
        expect(said).to_contain_text(words)
        expect(page.get_by_role("status")).to_contain_text(words)
    expect(said).to_contain_text("Both have the sequence number")
    expect(page.locator(".wt-drawing .link")).to_have_count(1)
    turn(page, "trace=threads&ask=peak")
    expect(page.get_by_text("Who made the peak of memory?")).to_be_hidden()
    expect(page.locator(".wt-drawing .held")).to_have_count(0)


def test_a_bar_is_pointed_at_and_selected(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    page.locator(".wt-time").scroll_into_view_if_needed()
    page.mouse.move(*middle(page, "matmul"))
    expect(page.locator(".wt-pointed")).to_contain_text("aten::matmul: ")
    expect(page.locator(".wt-drawing .over")).to_have_count(1)
    assert "at" not in address(page)
    page.mouse.click(*middle(page, "matmul"))
    assert address(page)["at"] == str(number("step", "aten::matmul"))
    call = page.locator(".wt-call")
    expect(call.locator("h2")).to_have_text("aten::matmul")
    expect(call).to_contain_text("64×256, 256×512")
    expect(page.locator(".wt-names [aria-current] button")).to_have_text("aten::matmul")
    expect(page.locator(".wt-code .here")).to_contain_text("h = torch.relu(x @ w1)")
    x, y = middle(page, "memory that is held")
    page.mouse.move(x + 800, y + 20)
    expect(page.locator(".wt-pointed")).to_have_text(
        re.compile(r"^After \d+ µs, 788 KiB are held\.$")
    )
    page.mouse.click(x, y)
    assert "at" not in address(page), "where there is no bar"


def test_the_keyboard_alone_walks_and_zooms(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    tab_to(page, ".wt-time")
    slider = page.locator(".wt-time")
    way = [
        ("ArrowDown", "h = torch.relu(x @ w1)"), ("ArrowDown", "aten::matmul"), ("ArrowDown", "aten::mm"),
        ("ArrowUp", "aten::matmul"), ("ArrowRight", "aten::relu"), ("ArrowLeft", "aten::matmul"), ("Home", "aten::matmul"),
        ("ArrowUp", "h = torch.relu(x @ w1)"), ("End", "optimizer.zero_grad()"), ("ArrowRight", "optimizer.zero_grad()"),
    ]  # fmt: skip
    for key, name in way:
        page.keyboard.press(key)
        expect(slider).to_have_attribute("aria-valuetext", re.compile("^" + re.escape(name) + ": "))
    expect(page.get_by_role("status")).to_contain_text("optimizer.zero_grad()")
    page.keyboard.press("Enter")
    at = address(page)
    assert int(at["to"]) - int(at["from"]) < 60_000
    page.keyboard.press("-")
    wider = address(page)
    assert int(wider["to"]) - int(wider["from"]) > int(at["to"]) - int(at["from"])
    page.keyboard.press("Shift+ArrowLeft")
    assert int(address(page)["from"]) < int(wider["from"])
    page.keyboard.press("0")
    assert "from" not in address(page)
    page.keyboard.press("+")
    page.keyboard.press("Home")
    at = address(page)
    assert at["at"] == "0" and int(at["from"]) == 0, "what is selected comes into sight"
    page.keyboard.press("Escape")
    assert "at" not in address(page)
    expect(slider).to_be_focused()
    turn(page, "trace=threads")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("PageDown")
    assert address(page)["at"] == str(number("threads", "batch = torch.randn(2048, 64)"))


def test_it_zooms_and_pans_by_wheel_drag_and_fingers(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    page.locator(".wt-time").scroll_into_view_if_needed()
    x, y = middle(page, "loss.backward()")
    page.mouse.move(x, y)
    page.mouse.wheel(0, 5)
    assert "from" not in address(page), "the wheel alone scrolls the page"
    page.locator(".wt-time").scroll_into_view_if_needed()
    page.mouse.move(*middle(page, "loss.backward()"))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -120)
    page.keyboard.up("Control")
    page.wait_for_function("location.hash.includes('from=')")
    before = address(page)
    x, y = middle(page, "loss.backward()")
    page.mouse.move(x + 200, y)
    page.mouse.down()
    page.mouse.move(x + 100, y, steps=4)
    page.mouse.up()
    after = address(page)
    assert int(after["from"]) > int(before["from"]) and "at" not in after
    assert abs(int(after["to"]) - int(after["from"]) - int(before["to"]) + int(before["from"])) <= 1
    show(page, site)
    box = page.locator(".wt-time").bounding_box()
    assert box is not None
    fingers = """([id, type, x, y]) => document.querySelector(".wt-time").dispatchEvent(new PointerEvent(type, { pointerId: id, pointerType: "touch", clientX: x, clientY: y, bubbles: true, button: type === "pointermove" ? -1 : 0 }))"""
    page.evaluate("Element.prototype.setPointerCapture = () => {}")
    y = box["y"] + 60
    for id_, kind, x in ((1, "pointerdown", 400), (2, "pointerdown", 500), (1, "pointermove", 350), (2, "pointermove", 550), (1, "pointerup", 350), (2, "pointerup", 550)):  # fmt: skip
        page.evaluate(fingers, [id_, kind, x, y])
    at = address(page)
    assert "at" not in at, "two fingers select nothing"
    total = sum(TRACES[0]["calls"][2]) + TRACES[0]["calls"][3][-1]
    assert int(at["to"]) - int(at["from"]) < 0.6 * total, "twice as far apart: half as much time"


def test_buttons_do_what_keys_do(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)

    def press(name: str) -> None:
        page.get_by_role("button", name=name, exact=True).click()

    press("Next call")
    press("Next call")
    press("The first call inside it")
    assert address(page)["at"] == str(number("step", "aten::matmul", 1))
    press("The call around it")
    press("Zoom in")
    press("Later")
    narrow = address(page)
    press("Earlier")
    assert int(address(page)["from"]) < int(narrow["from"])
    press("Zoom out")
    press("Show all of it")
    assert "from" not in address(page)
    press("Call before")
    assert address(page)["at"] == "0"


def test_from_a_backward_to_its_forward_and_back(watch: Watch, site: str) -> None:
    page = watch.page
    back = number("step", "ReluBackward0")
    show(page, site, f"trace=step&at={back}")
    call = page.locator(".wt-call")
    call.locator("dd", has_text="aten::relu").get_by_role("button").last.click()
    assert address(page)["at"] == str(number("step", "aten::relu"))
    expect(page.locator(".wt-drawing .link")).to_have_count(1)
    call.get_by_role("button", name="ReluBackward0").click()
    assert address(page)["at"] == str(back)
    call.get_by_role("button", name="autograd::engine::evaluate_function: ReluBackward0").click()
    expect(call.get_by_role("button", name="aten::relu")).to_be_visible()


def test_the_table_is_sorted_and_the_lines_are_pressed(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    first = page.locator(".wt-table tbody tr").first
    expect(first).to_contain_text("aten::mm")
    page.get_by_text("total time", exact=True).click()
    assert address(page)["sort"] == "total"
    expect(first).to_contain_text(re.compile("aten::mm|loss.backward"))
    page.get_by_text("memory", exact=True).click()
    expect(page.locator(".wt-table thead")).to_contain_text("itself")
    took = [name for name, (_, _, _, size) in TABLES["step"].items() if size and name != "[memory]"]
    assert sorted(page.locator(".wt-table tbody button").all_text_contents()) == sorted(took)
    turn(page, "trace=threads&sort=bytes")
    expect(first.locator("td").last).to_have_text("3.36 ms")  # no memory to sort by
    turn(page, "trace=step")
    first.get_by_role("button").press("Enter")
    expect(first).to_have_attribute("aria-current", "true")
    expect(first.get_by_role("button")).to_be_focused()
    page.locator(".wt-code").get_by_role("button", name="loss.backward()").click()
    assert address(page)["at"] == str(number("step", "loss.backward()"))
    page.get_by_text("a loader with a worker").click()
    assert address(page) == {"trace": "loader"}
    page.locator(".wt-code").get_by_role("button", name="for x in loader:").click()
    expect(page.locator(".wt-call")).to_contain_text("it waits")
    expect(page.locator(".wt-code .here")).to_have_text(re.compile("for x in loader"))


def pick(page: Page, name: str, data: bytes) -> None:
    page.set_input_files("#wt-file", {"name": name, "mimeType": "application/json", "buffer": data})


def test_the_page_opens_what_the_profiler_wrote(watch: Watch, site: str) -> None:
    """There and back: each name with its calls and its own time, plain and packed, beside each other."""
    page = watch.page
    text, result = golden_watching.recorded(golden_watching.PROGRAMS["convolution"])
    rows = golden_watching.told(result)["table"]
    show(page, site)
    pick(page, "mine.json", text.encode())
    expect(page.get_by_role("radio", name="mine.json")).to_be_checked()
    assert address(page) == {"trace": "own"}
    shown = page.locator(".wt-table tbody tr button").all_text_contents()
    assert set(shown) == set(rows) - {"[memory]"}
    by_own = sorted((own for name, (_, own, _, _) in rows.items() if name != "[memory]"), reverse=True)  # fmt: skip
    assert [rows[name][1] for name in shown] == by_own
    expect(page.locator(".wt-lines")).to_be_hidden()
    page.get_by_text("Who made the peak of memory?").click()
    expect(page.locator(".wt-drawing .peak")).to_have_count(1)
    packed, _ = golden_watching.recorded(golden_watching.PROGRAMS["attention"], with_stack=True)
    pick(page, "other.json.gz", gzip.compress(packed.encode()))
    expect(page.get_by_role("radio", name="other.json.gz")).to_be_checked()
    row = page.locator(".wt-table").get_by_role("button", name="aten::bmm", exact=True)
    row.click()
    expect(page.locator(".wt-call")).to_contain_text(re.compile(r"golden_watching\.py\(\d+\): "))
    for _ in range(2):
        page.locator(".ut-tools").get_by_role("button", name="Undo", exact=True).click()
    expect(page.get_by_role("radio", name="mine.json")).to_be_checked()
    assert_every_state_fits(watch, ["trace=own", "trace=own&ask=back&at=40", "trace=own2&sort=total"])  # fmt: skip


def test_a_long_trace_is_drawn_at_once(watch: Watch, site: str) -> None:
    """60 000 calls: what lies within one pixel is drawn once, and what is zoomed into is drawn in full."""
    page = watch.page
    bars: list[dict[str, Any]] = []
    for n in range(20_000):
        bars += [bar(f"aten::op{n % 50}", f"{10 * n}", "9"), bar("aten::inner", f"{10 * n + 1}", "3"), bar("aten::inner", f"{10 * n + 5}", "3.5")]  # fmt: skip
    show(page, site)
    pick(page, "long.json", as_file(*bars).encode())
    expect(page.get_by_role("radio", name="long.json")).to_be_checked()
    assert page.locator(".wt-drawing .bar").count() < 3_000
    turn(page, "trace=own&from=1000000&to=1050000")
    expect(page.locator(".wt-drawing text", has_text="inner")).to_have_count(10)


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"import torch", "it is not JSON"), (b"\x1f\x8b broken", "it is not JSON"), (b"{}", "no traceEvents"), (b"\xff\xfe\x00", "it is not JSON")],
)  # fmt: skip
def test_a_bad_file_gives_a_sentence(watch: Watch, site: str, data: bytes, said: str) -> None:
    page = watch.page
    show(page, site, "trace=loader&at=3")
    pick(page, "x.json", data)
    expect(page.get_by_role("alert")).to_contain_text(said)
    assert fragment(page) == "trace=loader&at=3"
    expect(page.locator("input[name=wt-trace]")).to_have_count(len(IDS))


@pytest.mark.parametrize("at", ["", "trace=nonsense", "trace=__proto__", "trace=step&at=9999&from=9&to=3&ask=x&sort=y", "at=3"])  # fmt: skip
def test_an_address_may_hold_anything(watch: Watch, site: str, at: str) -> None:
    show(watch.page, site, at)
    expect(watch.page.get_by_role("radio", name="a training step")).to_be_checked()
    expect(watch.page.locator(".wt-call h2")).to_have_text("Nothing is selected")


def test_every_state_fits(watch: Watch, site: str) -> None:
    states = [f"trace={trace}&ask={ask}" for trace in IDS for ask in ASKS if (trace, ask) != ("threads", "peak")]  # fmt: skip
    for trace in TRACES:
        last = len(trace["calls"][0]) - 1
        states += [f"trace={trace['id']}&at={at}" for at in (0, last // 3, last)]
        states.append(f"trace={trace['id']}&sort=total&at=5&from=0&to=90000")
    show(watch.page, site, states[0])
    assert_every_state_fits(watch, states)


def test_it_works_from_disk(watch: Watch, built: Path) -> None:
    watch.page.goto((built / PAGE).as_uri() + "#trace=threads&at=10", wait_until="load")
    expect(watch.page.locator(".wt-call h2")).to_have_text("batch = ready.get()")
