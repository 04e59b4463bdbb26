"""The dispatch explorer in use: by keyboard, by address, on a phone, from disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.explorers.harness import Watch, address, assert_every_state_fits, press_on, tab_to, turn

PAGE = "explorers/dispatch.html"


def show(page: Page, site: str, state: str = "") -> None:
    page.goto(f"{site}{PAGE}#{state}", wait_until="load")
    expect(page.locator(".ut-tools")).to_be_visible()


def lanes(page: Page, kind: str) -> list[str]:
    """The keys of the rows of a kind."""
    rows = page.locator(f".dp-lanes tr.{kind} th")
    return [text.strip() for text in rows.all_text_contents()]


def test_steps_lead_down_to_the_kernel(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "call=view&x=plain")
    expect(page.locator(".dp-head")).to_have_text("Stop 1 of 3: view")
    road = [("AutogradCPU", "Autograd's kernel"), ("ADInplaceOrView", "Ties the view to its base"), ("CPU", "The kernel for the CPU")]  # fmt: skip
    for step, (key, said) in enumerate(road):
        assert lanes(page, "here") == [key]
        assert address(page) == {"call": "view", "x": "plain"} | ({"step": f"{step}"} if step else {})  # fmt: skip
        expect(page.locator(".dp-said").first).to_contain_text(said)
        expect(page.locator(".dp-stops [aria-current]")).to_have_count(1)
        expect(page.locator(".dp-stops [aria-current] span")).to_have_text(key)
        page.get_by_role("button", name="Next stop").press("Enter")
    expect(page.get_by_role("button", name="Next stop")).to_have_attribute("aria-disabled", "true")
    page.get_by_role("button", name="Previous stop").click()
    assert lanes(page, "here") == ["ADInplaceOrView"]
    expect(page.get_by_role("status")).to_contain_text("Stop 2 of 3, view at ADInplaceOrView")


def test_neither_dtype_nor_requires_grad_is_a_key(watch: Watch, site: str) -> None:
    page = watch.page
    seen = []
    for tensor in ("plain", "grad", "int", "inference"):
        show(page, site, f"call=relu&x={tensor}")
        seen.append((page.locator(".dp-sets").inner_text(), lanes(page, "live")))
    assert seen[0] == seen[1] == seen[2] != seen[3]
    page.get_by_text("requires_grad=True").click()
    page.get_by_label("no_grad").check()
    assert address(page) == {"call": "relu", "x": "grad", "around": "no_grad"}
    expect(page.locator(".dp-stops li").first).to_contain_text("AutogradCPU")
    page.get_by_label("inference_mode").check()
    expect(page.locator(".dp-stops li")).to_have_count(1)
    expect(page.locator(".dp-lanes tr", has_text="AutogradCPU")).to_contain_text("tensors hidden")
    assert "AutogradCPU" not in lanes(page, "live")


def test_a_fallthrough_is_shown_and_passed(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "call=add&x=plain")
    assert lanes(page, "falls") == ["ADInplaceOrView", "BackendSelect"]
    assert [b.strip() for b in page.locator(".way b").all_text_contents()] == ["1", "2"]


def test_each_call_has_its_own_lanes(watch: Watch, site: str) -> None:
    """A stop of the list is chosen: the operator, and where its keys are from, are those of that call."""
    page = watch.page
    show(page, site, "call=linear&x=plain&around=autocast")
    page.locator(".dp-stops button", has_text="mm").last.click()
    expect(page.locator(".dp-head")).to_contain_text("mm")
    expect(page.locator(".dp-lanes tr", has_text="AutocastCPU")).to_contain_text("hidden")
    page.locator(".dp-stops button").first.click()
    assert lanes(page, "here") == ["AutocastCPU"]
    assert "step" not in address(page)


def test_what_leads_nowhere_says_so(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "call=view&x=sparse")
    end = page.locator(".dp-end")
    expect(end).to_contain_text("Could not run 'aten::view' with arguments from the 'SparseCPU'")
    expect(page.locator(".dp-lanes tr", has_text="SparseCPU")).to_contain_text("nothing")
    assert [b.strip() for b in page.locator(".way b").all_text_contents()] == ["1", "2", "✗"]
    turn(page, "call=softmax&x=int")
    expect(end).to_contain_text("\"softmax_kernel_impl\" not implemented for 'Long'")
    turn(page, "call=contiguous&x=plain")
    expect(page.locator(".dp-road")).to_contain_text("without asking the dispatcher")
    expect(end).to_be_hidden()
    expect(page.locator(".dp-head")).to_have_text("No stop")
    expect(page.get_by_role("status")).to_have_text("No call reaches the dispatcher.")


def test_modes_that_are_left_out_are_closed(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "call=sum&x=plain&around=vmap.inference_mode.mode")
    page.get_by_text("sparse", exact=True).click()
    assert address(page) == {"call": "sum", "x": "sparse", "around": "mode"}
    for label, closed in (("vmap", True), ("inference_mode", True), ("autocast", False)):
        box = page.get_by_label(label)
        (expect(box).to_be_disabled if closed else expect(box).to_be_enabled)()
    show(page, site, "call=sum&x=subclass&around=inference_mode.mode")
    expect(page.locator(".dp-modes :checked")).to_have_count(1)


def test_the_keyboard_alone_chooses_and_steps(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "call=add&x=plain")
    press_on(page, "#dp-call", "ArrowDown", call="mul")
    expect(page.locator("#dp-call")).to_be_focused()
    press_on(page, "input[name=dp-x]", "ArrowRight", x="grad")
    press_on(page, "input[value=no_grad]", " ", around="no_grad")
    tab_to(page, "button[aria-label='Next stop']")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert address(page)["step"] == "1", "there is no third stop"
    expect(page.locator("button[aria-label='Next stop']")).to_be_focused()
    tab_to(page, ".dp-stops button")
    page.keyboard.press("Enter")
    assert "step" not in address(page)
    expect(page.locator(".dp-stops button").first).to_be_focused()


def test_strides_are_typed_and_planned(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "panel=loops&size=3x4&a=4,1&b=1,3")
    code = page.locator(".dp-code")
    expect(code).to_contain_text("for i in range(3):")
    expect(code).to_contain_text("result[4*i + j] = a[4*i + j] + b[i + 3*j]")
    page.get_by_label("Strides of a").fill("1, 3")
    expect(code).to_have_text("for i in range(12):\n    result[i] = a[i] + b[i]")
    assert address(page) == {"panel": "loops", "size": "3x4", "a": "1,3", "b": "1,3"}
    expect(page.locator(".dp-nest .dp-said")).to_have_text("2 dims, one loop. The result has strides (1, 3).")  # fmt: skip
    page.get_by_label("Strides of b").fill("1")
    expect(page.get_by_label("Strides of b")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#dp-help")).to_contain_text("As many strides as sizes")
    assert address(page)["b"] == "1,3"
    page.get_by_role("button", name="channels last").click()
    expect(page.get_by_label("Sizes")).to_have_value("2x3x4x5")
    expect(code).to_contain_text("for i in range(120):")
    expect(page.get_by_label("Strides of b")).to_have_attribute("aria-invalid", "false")
    page.get_by_role("button", name="plus a row").click()
    expect(code).to_contain_text("result[4*i + j] = a[4*i + j] + b[j]")


@pytest.mark.parametrize("at", ["", "call=nonsense", "call=add&x=nobody", "panel=loops&size=3x4&a=1", "panel=loops&size=0&a=1&b=1", "call=__proto__", "step=-1"])  # fmt: skip
def test_an_address_may_hold_anything(watch: Watch, site: str, at: str) -> None:
    show(watch.page, site, at)
    expect(watch.page.locator(".dp-head")).to_contain_text("Stop 1 of")


def test_a_step_beyond_the_end_is_the_last(watch: Watch, site: str) -> None:
    show(watch.page, site, "call=add&x=plain&step=99")
    expect(watch.page.locator(".dp-head")).to_have_text("Stop 2 of 2: add.Tensor")


STATES = """async () => {
  const m = await import("/dispatch/road.js");
  return Object.keys(m.CALLS).flatMap((call) => m.TENSORS.map((tensor, i) => {
    const modes = m.allowed(tensor).filter((_, k) => (k + i) % 3 === 0);
    return String(new URLSearchParams([["call", call], ["x", tensor], ...(modes.length ? [["around", modes.join(".")]] : [])]));
  }));
}"""


def test_every_state_fits(watch: Watch, site: str, sources: str) -> None:
    watch.page.goto(sources + "explorer.css")
    states: list[str] = watch.page.evaluate(STATES)
    states += ["call=linear&x=plain&around=autocast.mode.vmap&step=40", "call=histc&x=grad&around=autocast.mode.vmap&step=3"]  # fmt: skip
    show(watch.page, site, states[0])
    assert_every_state_fits(watch, states)
    loops = ["panel=loops&size=2x3x4x5&a=60%2C1%2C15%2C3&b=60%2C20%2C5%2C1", "panel=loops&size=64x64x64x64x64&a=9999%2C9999%2C9999%2C9999%2C9999&b=0%2C0%2C0%2C0%2C0", "panel=loops&size=&a=&b="]  # fmt: skip
    assert_every_state_fits(watch, loops)


def test_it_works_from_disk(watch: Watch, built: Path) -> None:
    watch.page.goto((built / PAGE).as_uri() + "#call=mm&x=plain&around=vmap", wait_until="load")
    expect(watch.page.locator(".dp-head")).to_contain_text("Stop 1 of")
