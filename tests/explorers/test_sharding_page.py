"""The sharding explorer in use: by keyboard, by address, on a phone, from disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.explorers.harness import Watch, address, assert_every_state_fits, press_on, tab_to, turn

PAGE = "explorers/sharding.html"
FSDP = "strategy=fsdp&ranks=4&width=8&hidden=16&blocks=2"


def show(page: Page, site: str, state: str = FSDP) -> None:
    page.goto(f"{site}{PAGE}#{state}", wait_until="load")
    expect(page.locator(".sh-time .sh-head")).not_to_be_empty()


def pick(page: Page, name: str) -> None:
    """Choose by what a button shows, as a mouse would."""
    page.locator(".sh-chips label").get_by_text(name, exact=True).click()


def head(page: Page) -> Locator:
    return page.locator(".sh-time .sh-head")


def card(page: Page, rank: int) -> str:
    """What a card says to who cannot see it: its text, without the names of layers above the strips."""
    rows = page.get_by_role("group", name=f"Rank {rank}", exact=True).locator(
        ".sh-row:not(.sh-names)"
    )
    return "\n".join(row.text_content() or "" for row in rows.all())


def test_a_weight_comes_and_goes(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    expect(head(page)).to_have_text("Between two steps")
    assert "weights512 B: up 1 rows 4 to 7; down 1 rows 2 to 3" in card(page, 1)
    assert "gathered0: nothing" in card(page, 1)
    forward = page.get_by_role("button", name="Next moment")
    forward.press("Enter")
    expect(head(page)).to_have_text("all_gather: the weight of up 1")
    expect(page.locator(".sh-said")).to_contain_text("brings its rows, 128 B, and gets")
    expect(page.locator(".sh-talk").first).to_have_text("⇄ 1 2 3")
    assert "buffers512 B: up 1 all" in card(page, 0)
    forward.press("Enter")
    expect(head(page)).to_have_text("Forward: up 1")
    assert "gathered512 B: up 1 all" in card(page, 0)
    forward.press("Enter")
    expect(head(page)).to_have_text("Let go: up 1")
    assert "gathered0: nothing" in card(page, 0)
    assert address(page)["at"] == "3"
    expect(page.get_by_role("status")).to_contain_text("Moment 4 of 28. Let go: up 1.")
    expect(page.get_by_role("status")).to_contain_text("Rank 0 holds 2,048 B.")
    page.get_by_role("button", name="Moment before").click()
    expect(head(page)).to_have_text("Forward: up 1")


def test_backward_gathers_early_and_leaves_shards(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, f"{FSDP}&at=15")
    expect(head(page)).to_have_text("all_gather: the weight of up 2")
    expect(page.locator(".sh-said")).to_contain_text("Early: the layer behind it")
    turn(page, f"{FSDP}&at=16")
    assert "gradients512 B: down 2 all" in card(page, 3)
    expect(page.locator(".sh-card").first.locator("i.own")).to_have_count(1)
    turn(page, f"{FSDP}&at=17")
    expect(head(page)).to_have_text("reduce_scatter: the gradient of down 2")
    assert "gradients128 B: down 2 rows 6 to 7" in card(page, 3)
    expect(page.locator(".sh-card").first.locator("i.own")).to_have_count(0)
    expect(page.locator(".sh-card").first.locator(".made")).to_have_count(2)
    turn(page, f"{FSDP}&at=26")
    expect(head(page)).to_have_text("optimizer.step()")
    expect(page.locator(".sh-card").last.locator("i.fresh")).to_have_count(4)


def test_the_peak_is_told_and_compared(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    peak = page.locator(".sh-peak")
    expect(peak).to_contain_text("At most 3,840 B on rank 0: 47 % of the 8,192 B")
    expect(page.locator(".sh-time")).to_contain_text("8 × all_gather, 1,024 B; 4 × reduce_scatter, 2,048 B")  # fmt: skip
    pick(page, "only the model")
    expect(peak).to_contain_text("At most 5,632 B on rank 0: 69 %")
    assert address(page)["wrap"] == "model"
    pick(page, "DDP")
    expect(peak).to_contain_text("100 %")
    assert "wrap" not in address(page)
    expect(page.get_by_text("only the model", exact=True)).to_be_hidden()
    pick(page, "tensor parallel")
    expect(peak).to_contain_text("25 %")
    bars = page.locator(".sh-bars > span")
    expect(bars).to_have_count(15)
    expect(page.locator(".sh-bars > .talks")).to_have_count(3)


def test_a_rank_without_rows_still_keeps_room(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "strategy=fsdp&ranks=4&width=5&hidden=6&blocks=1")
    assert "weights88 B: up 1 nothing; down 1 nothing" in card(page, 3)
    assert "Adam, 2 ×0" in card(page, 3)
    expect(page.locator(".sh-key")).to_contain_text("24 B on rank 2, 88 B on rank 3")
    turn(page, FSDP)
    expect(page.locator(".sh-key")).not_to_contain_text("padded")


def test_meshes_of_two_dims(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "strategy=fsdp&ranks=3&width=8&hidden=16&blocks=1")
    pick(page, "FSDP × tensor parallel")
    assert address(page)["ranks"] == "4", "three make no mesh of two dims"
    for count, off in (("2", True), ("3", True), ("4", False), ("6", False), ("8", False)):
        box = page.locator(f"input[name=sh-ranks][value='{count}']")
        (expect(box).to_be_disabled if off else expect(box).to_be_enabled)()
    page.get_by_role("button", name="Next moment").click()
    expect(page.locator(".sh-said")).to_contain_text("in 2 groups: ranks 0 2, 1 3.")
    expect(page.locator(".sh-talk").nth(1)).to_have_text("⇄ 3")
    expect(page.locator(".sh-who").nth(3)).to_contain_text("shard 1, part 1")
    assert "down 1 rows 4 to 7, columns 8 to 15" in card(page, 3)
    pick(page, "HSDP")
    expect(page.locator(".sh-who").nth(3)).to_contain_text("half 1, shard 1")
    pick(page, "tensor parallel")
    page.locator("input[name=sh-ranks][value='8']").check()
    page.get_by_role("slider", name="hidden").fill("2")
    assert address(page)["hidden"] == "8", "a unit for each rank"


def test_zero_1_sends_weights_round(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "strategy=zero1&ranks=3&width=8&hidden=16&blocks=2&at=11")
    expect(head(page)).to_have_text("optimizer.step()")
    fresh = [page.locator(".sh-card").nth(rank).locator("i.fresh") for rank in range(3)]
    for one, count in zip(fresh, (2, 1, 1), strict=True):
        expect(one).to_have_count(count)
    page.get_by_role("button", name="Next moment").click()
    expect(head(page)).to_have_text("broadcast: the new weight of up 1")
    expect(page.locator(".sh-talk")).to_have_text(["→ 1 2", "← 0", "← 0"])
    for one, count in zip(fresh, (2, 2, 2), strict=True):
        expect(one).to_have_count(count)


def test_the_program_is_that_of_the_choice(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    program = page.locator(".sh-program")
    expect(program).to_contain_text("fully_shard(layer, mesh=mesh, reshard_after_forward=True)")
    pick(page, "ZeRO-2")
    expect(program).to_contain_text("fully_shard(layer, mesh=mesh, reshard_after_forward=False)")
    pick(page, "ZeRO-1")
    expect(program).to_contain_text("ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam)")
    pick(page, "HSDP")
    expect(program).to_contain_text('init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))')  # fmt: skip
    pick(page, "FSDP × tensor parallel")
    expect(program).to_contain_text('parallelize_module(model, mesh["tensor"], plan)')


def test_the_keyboard_alone_chooses_and_steps(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    press_on(page, "input[name=sh-strategy]", "ArrowRight", strategy="hsdp")
    press_on(page, "input[name=sh-wrap]", "ArrowRight", wrap="model")
    press_on(page, "input[name=sh-blocks]", "ArrowLeft", blocks="1")
    press_on(page, "input[aria-label=width]", "ArrowRight", width="9")
    tab_to(page, "button[aria-label='Next moment']")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert address(page)["at"] == "2"
    expect(page.locator("button[aria-label='Next moment']")).to_be_focused()
    tab_to(page, "input[aria-label=Moment]")
    page.keyboard.press("End")
    expect(head(page)).to_have_text("optimizer.zero_grad()")
    expect(page.locator("input[aria-label=Moment]")).to_have_attribute("aria-valuetext", "13 of 13: optimizer.zero_grad()")  # fmt: skip
    expect(page.get_by_role("button", name="Next moment")).to_have_attribute("aria-disabled", "true")  # fmt: skip
    tab_to(page, ".sh-program")


def test_another_choice_begins_the_step_anew(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, f"{FSDP}&at=20")
    page.locator("input[name=sh-ranks][value='2']").check()
    assert "at" not in address(page)


@pytest.mark.parametrize("at", ["", "strategy=nobody", "strategy=fsdp&ranks=5", "strategy=tp&ranks=8&hidden=4", "strategy=hsdp&ranks=3", "strategy=ddp&wrap=model", "strategy=fsdp&width=0", "strategy=__proto__", "strategy=fsdp&at=-1"])  # fmt: skip
def test_an_address_may_hold_anything(watch: Watch, site: str, at: str) -> None:
    show(watch.page, site, at)
    expect(head(watch.page)).to_have_text("Backward: down 2")


def test_a_moment_beyond_the_end_is_the_last(watch: Watch, site: str) -> None:
    show(watch.page, site, f"{FSDP}&at=99")
    expect(watch.page.locator(".sh-count")).to_have_text("moment 28 of 28")


def test_nothing_is_told_by_colour_alone(watch: Watch, site: str) -> None:
    """Of the kinds that share a row or a colour, each has a pattern or a line of its own."""
    page = watch.page
    looks = []
    for state in (FSDP, "strategy=hsdp&ranks=4", "strategy=ddp"):
        show(page, site, state)
        looks += page.locator(".sh-key i").evaluate_all(
            "(all) => all.map((e) => [e.className, getComputedStyle(e).backgroundImage, getComputedStyle(e).borderTopStyle])"
        )
    seen = {kind: (image, line) for kind, image, line in looks}
    rows = [
        ["weights", "fresh", "gathered"],
        ["own", "partial", "ready", "room"],
        ["adam", "buffers"],
    ]
    for row in rows:
        assert len({seen[kind] for kind in row}) == len(row), row


PARTS = """([part, state]) => {
  const e = document.createElement("sharding-explorer");
  e.setAttribute("small", part);
  e.setAttribute("state", state);
  document.querySelector(".ut-explorer").replaceWith(e);
  const seen = (selector) => Boolean(e.querySelector(selector)?.checkVisibility());
  return [".sh-bars", ".sh-cards", ".of-weights", ".of-gathered", ".sh-program", ".for-ranks", ".for-blocks", ".sh-note"].filter(seen);
}"""


def test_small_views_show_one_thing_each(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    shown = {
        "ranks": [".sh-cards", ".of-weights", ".of-gathered"],
        "peak": [".sh-bars", ".sh-note"],
        "cuts": [".sh-cards", ".of-weights", ".for-ranks"],
        "code": [".sh-program", ".sh-note"],
    }
    for part, wanted in shown.items():
        assert page.evaluate(PARTS, [part, FSDP]) == wanted, part
    assert page.evaluate("Object.keys(customElements.get('sharding-explorer').parts)") == [*shown]


STATES = """async () => {
  const m = await import("/sharding/moments.js");
  const found = [];
  for (const strategy of m.STRATEGIES) for (const ranks of m.RANKS) for (const blocks of m.BLOCKS) for (const [width, hidden] of [[8, 16], [5, 9], [64, 64]]) {
    const state = { strategy, ranks, width, hidden, blocks, wrap: "layer" };
    if (!m.fits(state)) continue;
    const count = m.timeline(state).length;
    const at = (found.length * 7 + 1) % count;
    const wrap = m.gathers(strategy) && found.length % 3 === 0;
    found.push(String(new URLSearchParams([...Object.entries(state).filter(([name]) => name !== "wrap"), ...(wrap ? [["wrap", "model"]] : []), ["at", wrap ? 1 + at % 8 : at || 1]])));
  }
  return found;
}"""


def test_every_state_fits(watch: Watch, site: str, sources: str) -> None:
    watch.page.goto(sources + "explorer.css")
    states: list[str] = watch.page.evaluate(STATES)
    assert len(states) > 200
    show(watch.page, site, states[0])
    assert_every_state_fits(watch, states)


def test_it_works_from_disk(watch: Watch, built: Path) -> None:
    watch.page.goto((built / PAGE).as_uri() + f"#{FSDP}&at=1", wait_until="load")
    expect(head(watch.page)).to_have_text("all_gather: the weight of up 1")
