"""What every explorer has above and below its drawing: undo, play, a link; challenges; targets for a finger."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.explorers.harness import EXPLORERS, PHONE, Watch, fragment, turn
from tests.explorers.test_family import FAMILY

# A state that solves each challenge. They stand here so that no page gives them away.
SOLUTIONS = {
    "formats": {"off": "format=bf16&fp32=00018000", "zero": "format=bf16&bits=3280"},
    "strides": {"broken": "shape=3x4&ops=transpose.0.1", "one": "shape=3x4&ops=index.0.0_expand.12"},
    "matmul": {
        "copies": "a=40x1x2x2&b=1x40x2x2",
        "busy": "a=512x512&b=512x512&dtype=float16",
    },
    "modules": {
        "tied": "model=embed-Embedding-10-4*out-Linear-4-10*out.weight-is-embed.weight",
        "hidden": "model=stem-Linear-8-6*layers-list*layers.0-Linear-6-6",
    },
    "autograd": {
        "silent": "code=x = torch.tensor([1., 2.], requires_grad=True)\ny = (x * 2).exp()\ny.data.mul_(10)\ny.sum().backward()",
        "free": "code=x = torch.tensor([1., 2.], requires_grad=True)\ny = x %2B 1 %2B 1 %2B 1 %2B 1 %2B 1",
    },
    "dataloader": {
        "hidden": "num_workers=4&prefetch_factor=4&slow=15",
        "useless": "num_workers=4&work=10",
    },
    "compile": {
        "wrong": "program=dropout&stage=partition&cut=0.0",
        "third": "program=loop&stage=partition&cut=0.0",
    },
    "ddp": {
        "hide": "panel=overlap&model=conv&cap=1&bandwidth=2&latency=0.1",
        "fit": "panel=zero&params=70B&ranks=16&stage=3",
    },
    "dispatch": {
        "below": "call=add&x=plain&around=inference_mode",
        "single": "panel=loops&size=3x4&a=1,3&b=1,3",
    },
}  # fmt: skip
MOVES = {
    "strides": "",
    "matmul": "",
    "modules": "call=children&model=stem-Linear-8-6*head-Linear-6-2&step=1",
    "autograd": "",
    "dataloader": "samples=2&at=2",
    "compile": "program=branch&stage=joint",
    "ddp": "panel=ring&n=2&step=0",
    "dispatch": "call=add&x=plain",
}
"""The explorers in which something moves in steps, with a state that has few of them."""

CHALLENGES = """async ([name, solutions]) => {
  await import(`/${name}/${name}.js`);
  const { CHALLENGES } = await import(`/${name}/challenges.js`);
  const explorer = document.createElement(`${name}-explorer`);
  const read = (text) => explorer.read(new URLSearchParams(text));
  const asked = CHALLENGES.map(({ id, goal, start, reached }) => ({
    id, goal, start: read(start) !== null, early: reached(read(start)), solved: read(solutions[id]) !== null && reached(read(solutions[id])),
  }));
  return { asked, same: explorer.challenges === CHALLENGES };
}"""


@pytest.mark.parametrize("name", FAMILY)
def test_challenges_are_open_and_can_be_solved(laboratory: Page, name: str) -> None:
    found: dict[str, Any] = laboratory.evaluate(CHALLENGES, [name, SOLUTIONS[name]])
    assert found["same"]
    assert [one["id"] for one in found["asked"]] == [*SOLUTIONS[name]]
    for one in found["asked"]:
        assert one["start"] and not one["early"], one
        assert one["solved"] is True, one
        assert re.fullmatch(r"[A-Z].{20,}\.", one["goal"])


def show(page: Page, site: str, name: str, state: str = "") -> None:
    page.goto("about:blank")
    page.goto(f"{site}explorers/{name}.html#{state}")
    expect(page.locator(".ut-tools")).to_be_visible()


def change(page: Page, state: str) -> None:
    """Act as a control does: a change, not an address."""
    page.locator(".ut-explorer").evaluate(
        "(e, state) => e.change(e.read(new URLSearchParams(state)))", state
    )


def tool(page: Page, name: str) -> Any:
    return page.locator(".ut-tools").get_by_role("button", name=name, exact=True)


@pytest.mark.parametrize("name", FAMILY)
def test_every_change_can_be_undone(watch: Watch, site: str, name: str) -> None:
    """Back and forth, the page shows and the address says what they did; a reset is a change, too."""
    page = watch.page
    show(page, site, name)
    explorer = page.locator(".ut-explorer")
    seen = [explorer.inner_text()]
    addresses = [""]
    for state in SOLUTIONS[name].values():
        change(page, state)
        seen.append(explorer.inner_text())
        addresses.append(fragment(page))
    assert len(set(seen)) == 3
    expect(tool(page, "Redo")).to_have_attribute("aria-disabled", "true")
    for button, at in (("Undo", 1), ("Undo", 0), ("Redo", 1), ("Redo", 2), ("Undo", 1)):
        tool(page, button).press("Enter")
        expect(tool(page, button)).to_be_focused()
        assert _drawn(explorer.inner_text()) == _drawn(seen[at]), (button, at)
        assert fragment(page) == addresses[at] or not at
    tool(page, "Reset").click()
    assert _drawn(explorer.inner_text()) == _drawn(seen[0])
    expect(tool(page, "Reset")).to_have_attribute("aria-disabled", "true")
    tool(page, "Undo").click()
    assert fragment(page) == addresses[1]
    turn(page, addresses[2])
    tool(page, "Undo").click()
    assert fragment(page) == addresses[1], "an address that is opened is a change, too"


def _drawn(text: str) -> str:
    """Return what is shown between the tools and the challenges."""
    return text.partition("Copy link")[2].partition("\nChallenges\n")[0]


def test_a_stroke_is_undone_at_once(watch: Watch, site: str) -> None:
    """A slider drawn through ten values is one change; a button pressed twice is two."""
    page = watch.page
    show(page, site, "dataloader")
    page.locator("#dl-work").evaluate(
        """(slider) => { slider.focus(); for (let n = 5; n < 15; n += 1) {
          slider.value = n; slider.dispatchEvent(new Event("input")); } }"""
    )
    assert "work=14" in fragment(page)
    page.get_by_role("button", name="sample 1, slow").click()
    page.get_by_role("button", name="sample 3, slow").click()
    for wanted in ("slow=1.4&", "slow=4&"):
        tool(page, "Undo").click()
        assert wanted in fragment(page) and "work=14" in fragment(page)
    tool(page, "Undo").click()
    assert "work=4" in fragment(page)
    expect(tool(page, "Undo")).to_have_attribute("aria-disabled", "true")


def test_what_moves_in_steps_plays(watch: Watch, site: str) -> None:
    """To its end, then anew; what somebody does stops it; all of it is one change to undo."""
    page = watch.page
    for name in FAMILY:
        show(page, site, name, MOVES.get(name, ""))
        if name not in MOVES:
            expect(tool(page, "Play")).to_have_count(0)
            continue
        page.locator(".ut-explorer").evaluate(
            "(e) => Object.defineProperty(e, 'pace', { value: 30 })"
        )
        before = page.locator(".ut-explorer").evaluate("(e) => String(e.write(e.state))")
        tool(page, "Play").click()
        expect(tool(page, "Play")).to_be_visible()
        state = "(e) => [e.advance(e.state), e.rewind(e.state) !== null, String(e.write(e.state))]"
        end, anew, after = page.locator(".ut-explorer").evaluate(state)
        assert end is None and anew and after != before, name
        tool(page, "Undo").click()
        assert page.locator(".ut-explorer").evaluate(state)[2] == before, name
    show(page, site, "modules")
    tool(page, "Play").click()
    expect(tool(page, "Pause")).to_be_visible()
    page.get_by_role("button", name="next", exact=True).click()
    expect(tool(page, "Play")).to_be_visible()


def test_the_link_leads_to_what_is_shown(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "formats", "format=fp16&bits=0001")
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.kept = text; }")
    tool(page, "Copy link").click()
    expect(page.get_by_role("status")).to_have_text("The link is copied.")
    assert page.evaluate("kept") == page.url
    page.evaluate("void (navigator.clipboard.writeText = () => Promise.reject())")
    tool(page, "Copy link").click()
    expect(page.get_by_label("Link to what is shown")).to_have_value(page.url)


def test_a_challenge_is_taken_reached_and_remembered(watch: Watch, site: str) -> None:
    page = watch.page
    for name in FAMILY:
        show(page, site, name)
        goal = page.locator(".ut-goal")
        expect(goal).to_be_hidden()
        page.get_by_role("button", name="Take it").first.click()
        expect(goal).to_contain_text("Challenge: ")
        change(page, next(iter(SOLUTIONS[name].values())))
        expect(goal).to_contain_text("✓ Reached: ")
        expect(page.get_by_role("status")).to_contain_text("Challenge reached.")
        tool(page, "Undo").click()
        expect(goal).to_contain_text("Challenge: ")
        page.reload()
        expect(page.locator(".ut-challenges li").first).to_contain_text("✓ reached")
        expect(page.locator(".ut-challenges li").last).not_to_contain_text("✓")
        page.evaluate("sessionStorage.clear()")


# A checkbox is pressed by its label. What an image shrinks, its letters share.
REACH = """() => {
  const explorer = document.querySelector(".ut-explorer");
  const wrong = new Set();
  for (const e of explorer.querySelectorAll("button, input, select, textarea, summary, [role=treeitem], [role=slider], [role=spinbutton]")) {
    if (!e.checkVisibility()) continue;
    const target = e.matches("[type=radio], [type=checkbox]") ? e.closest("label") : e;
    const { width, height } = target.getBoundingClientRect();
    if (width < 44 || height < 44) wrong.add(`${Math.round(width)} × ${Math.round(height)} px: ${target.outerHTML.slice(0, 90)}`);
  }
  const texts = document.createTreeWalker(explorer, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const e = text.parentElement;
    if (!text.data.trim() || e.closest(".ut-unseen") || !e.checkVisibility()) continue;
    const scale = e.ownerSVGElement ? Math.min(1, e.ownerSVGElement.getScreenCTM().a) : 1;
    const size = parseFloat(getComputedStyle(e).fontSize) * scale;
    if (size < 11.99) wrong.add(`${size.toFixed(1)} px: ${text.data.slice(0, 40)} in ${e.outerHTML.slice(0, 60)}`);
  }
  return [...wrong].slice(0, 12);
}"""


def test_on_a_phone_fingers_hit_and_eyes_read(watch: Watch, site: str) -> None:
    """44 px for what is pressed, 12 px for what is read: every explorer, every state of the gallery."""
    watch.turn_to(PHONE, "light")
    gallery = (EXPLORERS / "index.md").read_text(encoding="utf-8")
    found = {}
    for name in FAMILY:
        show(watch.page, site, name)
        states = re.findall(rf'"{name}\.html#([^"]+)"', gallery)
        for state in [
            "",
            *(one.replace("&amp;", "&") for one in states),
            *SOLUTIONS[name].values(),
        ]:
            if state:
                turn(watch.page, state.replace("\n", "%0A").replace(" ", "%20"))
            if said := watch.page.evaluate(REACH):
                found[f"{name} {state}"] = said
            assert watch.overflow() <= 0, (name, state)
    assert not found
