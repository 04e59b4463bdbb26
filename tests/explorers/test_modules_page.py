"""The modules explorer in use: by keyboard, by address, on a phone, from disk, without a network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect
from torch import nn

from tests.explorers import golden_modules as golden
from tests.explorers.harness import (
    Watch,
    address,
    assert_every_state_fits,
    fragment,
    tab_to,
    turn,
)

PAGE = "explorers/modules.html"
RELU = "model=stem-Linear-8-6*act-ReLU*head-Linear-6-2*last_act-is-act&call=named_modules"
TIED = "model=embed-Embedding-10-4*out-Linear-4-10*out.weight-is-embed.weight*out.bias-None-parameters&call=named_parameters"
LISTED = "model=stem-Linear-4-4*layers-list*layers.0-Linear-6-6*layers.1-ReLU&call=named_parameters"
BLOCKS = "model=block-Sequential*block.0-Linear-6-6*block.1-ReLU*again-is-block&call=modules"
NORM = "model=mask-Buffer*conv-Conv2d-3-8-3*norm-BatchNorm2d-8*norm.running_var-unsaved&call=state_dict"
# One state per kind of walk and of drawing, with the deepest and the longest that the page takes.
STATES = [
    RELU,
    f"{RELU}&remove_duplicate=False&step=5&at=last_act",
    TIED,
    f"{TIED}&recurse=False&at=out.weight",
    f"{TIED}&remove_duplicate=False",
    f"{LISTED}&step=0&at=layers",
    f"{LISTED}&step=2&at=layers.1",
    f"{BLOCKS}&step=4&at=again.0.weight",
    BLOCKS.replace("=modules", "=children"),
    BLOCKS.replace("=modules", "=state_dict"),
    f"{NORM}&at=norm.running_var",
    NORM.replace("=state_dict", "=named_buffers"),
    NORM.replace("=state_dict", "=buffers"),
    "model=a-Linear-4-4*a.weight-frozen*b-None-modules*c-ModuleList*c.0-is-a&call=parameters&at=a.weight",
    "model=&call=named_modules",
    "model=&call=named_parameters&step=0",
    "model=" + "*".join(f"{'x' * 17}{n}-Linear-4096-1" for n in range(19)) + "&call=named_parameters",
    "model=a-Module*a.a-Module*a.a.an_even_longer_name-Sequential*a.a.an_even_longer_name.0-Conv2d-12-128-11&call=named_parameters&at=a.a.an_even_longer_name.0.weight",
]  # fmt: skip


def show(page: Page, site: str, state: str = RELU) -> None:
    page.goto("about:blank")
    page.goto(f"{site}{PAGE}#{state}", wait_until="load")
    expect(page.locator(".mo-call")).not_to_be_empty()


def row(page: Page, label: str) -> Locator:
    """The row of the tree that shows this name."""
    return page.locator(f".mo-row:has(.mo-name > b:text-is('{label}'))")


def given(page: Page) -> list[str]:
    """The names that the walk gives, or the objects where it gives no names."""
    rows = page.locator(".mo-list button:not(.passed)")
    return [text.strip("'") for text in rows.locator(":nth-child(2)").all_inner_texts()]


def modelled(page: Page) -> nn.Module:
    """What torch makes of the class that the page shows."""
    return golden.from_source(page.locator(".mo-python").inner_text())


@pytest.fixture
def edit(watch: Watch) -> Callable[[str], Locator]:
    """Give the form of the edit panel with a button of that name."""
    panel = watch.page.get_by_role("region", name="Edit")
    return lambda name: panel.locator("form").filter(
        has=watch.page.get_by_role("button", name=name, exact=True)
    )


def test_the_keyboard_alone_steps_through_a_walk(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, f"{RELU}&step=0")
    sentence = page.locator(".mo-sentence")
    expect(sentence).to_contain_text("The walk is lazy")
    expect(page.locator(".mo-memo")).to_have_text("memo of modules: { }")
    tab_to(page, ".mo-steps button:nth-child(3)")
    page.keyboard.press("Enter")
    expect(sentence).to_contain_text("Its name is the empty string")
    expect(page.locator(".mo-row.here")).to_have_attribute(
        "aria-label", "1, model, Model(), module"
    )
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(sentence).to_have_text("act, ReLU(): not seen before. Into the memo, and given.")
    expect(page.get_by_role("status")).to_have_text(sentence.inner_text())
    expect(page.locator(".mo-memo")).to_have_text("memo of modules: { model, stem, act }")
    assert address(page)["step"] == "3"
    tab_to(page, ".mo-list button")
    expect(page.locator(".mo-list button:focus")).to_contain_text("act")
    page.keyboard.press("End")
    expect(sentence).to_have_text(
        "last_act is the very object that came as act. The memo has it: passed over, with all below it."
    )
    expect(page.locator(".mo-row.here")).to_have_attribute(
        "aria-label", "last_act, ReLU(), is act, module, passed over"
    )
    page.keyboard.press("ArrowUp")
    expect(sentence).to_contain_text("head, Linear(6, 2)")
    # One stop for the whole list, one for the tree.
    page.keyboard.press("Shift+Tab")
    expect(page.locator(".mo-row:focus")).to_have_count(1)
    page.keyboard.press("Shift+Tab")
    expect(page.locator(".mo-row:focus")).to_have_count(0)


def test_the_keyboard_alone_builds_and_shares(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "model=")
    tab_to(page, "[aria-label='name of the new part']")
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("act")
    page.keyboard.press("Tab")
    page.keyboard.type("nn.ReLU")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert address(page)["model"] == "act-ReLU"
    expect(page.locator("#mo-help")).to_have_text("self.act = nn.ReLU()")
    expect(page.get_by_role("status")).to_have_text("model.named_modules(): 2 given.")
    page.keyboard.press("Shift+Tab")
    page.keyboard.type("self.act")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert address(page)["model"] == "act-ReLU*again-is-act"
    expect(page.locator("#mo-help")).to_have_text("self.again = self.act")
    expect(page.locator(".mo-list .passed")).to_have_text("–againpassed over: is act")
    tab_to(page, ".mo-row")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".mo-row:focus b")).to_have_text("again")
    assert address(page)["at"] == "again"
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".mo-row:focus b")).to_have_text("model")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".mo-row:focus b")).to_have_text("act")


def test_a_tie_is_made_and_undone(watch: Watch, site: str, edit: Callable[[str], Locator]) -> None:
    page = watch.page
    facts = page.locator(".ut-facts")
    show(page, site, "model=embed-Embedding-10-4*out-Linear-4-10&call=named_parameters")
    expect(facts).to_contain_text("90 numbers in 3 tensors. All trainable.")
    page.locator(".mo-row b", has_text="weight").nth(1).click()
    assert address(page)["at"] == "out.weight"
    options = edit("Assign").locator("option").all_inner_texts()
    assert options == ["nn.Parameter (10, 4)", "self.embed.weight, (10, 4)", "None"]
    edit("Assign").locator("select").select_option("is-embed.weight")
    edit("Assign").get_by_role("button", name="Assign").click()
    assert given(page) == ["embed.weight", "out.bias"]
    expect(facts).to_contain_text("50 numbers in 2 tensors.")
    expect(facts).to_contain_text("90 numbers, if a shared tensor is counted under each of its")
    expect(facts).to_contain_text("3 keys for 2 tensors")
    page.get_by_role("radio", name="state_dict").check()
    assert given(page) == ["embed.weight", "out.weight", "out.bias"]
    edit("Assign").locator("select").select_option("Parameter-10-4")
    edit("Assign").get_by_role("button", name="Assign").click()
    assert address(page)["model"] == "embed-Embedding-10-4*out-Linear-4-10"


def test_frozen_is_given_all_the_same(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "model=stem-Linear-4-4*head-Linear-4-2&call=named_parameters&at=stem")
    grad = page.get_by_role("checkbox", name="requires_grad")
    expect(grad).to_be_checked()
    grad.uncheck()
    assert given(page) == ["stem.weight", "stem.bias", "head.weight", "head.bias"]
    expect(page.locator(".mo-row em", has_text="frozen")).to_have_count(2)
    expect(page.locator("#mo-help")).to_have_text("self.stem.requires_grad_(False)")
    expect(page.locator(".ut-facts")).to_contain_text(
        "30 numbers in 4 tensors. 10 of them trainable."
    )
    page.get_by_role("button", name="start").click()
    page.get_by_role("button", name="next").click()
    expect(page.locator(".mo-sentence")).to_contain_text("requires_grad is False, and it is given")


def test_a_plain_list_hides_and_a_module_list_does_not(
    watch: Watch, site: str, edit: Callable[[str], Locator]
) -> None:
    page = watch.page
    show(page, site, "model=stem-Linear-4-4&call=named_parameters")
    edit("Add").locator("select").select_option("list")
    expect(edit("Add").locator("input")).to_have_value("layers")
    edit("Add").get_by_role("button").click()
    row(page, "layers").click()
    edit("Add").get_by_role("button").click()
    expect(page.locator("#mo-help")).to_have_text("self.layers.append(nn.Linear(4, 4))")
    assert given(page) == ["stem.weight", "stem.bias"]
    expect(page.locator(".mo-sentence")).to_contain_text("No walk comes to layers")
    expect(page.locator(".ut-facts")).to_contain_text("20 numbers that no walk finds")
    assert [name for name, _ in modelled(page).named_parameters()] == given(page)
    page.get_by_role("checkbox", name="registered").check()
    assert given(page) == ["stem.weight", "stem.bias", "layers.0.weight", "layers.0.bias"]
    expect(page.locator("#mo-help")).to_have_text("self.layers = nn.ModuleList(self.layers)")
    page.get_by_role("checkbox", name="registered").uncheck()
    assert address(page)["model"] == "stem-Linear-4-4*layers-list*layers.0-Linear-4-4"


def test_a_buffer_is_saved_or_not(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "model=norm-BatchNorm1d-4*mask-Buffer-4&call=state_dict&at=mask")
    assert given(page)[0] == "mask", "its own come before those of its parts"
    page.get_by_role("checkbox", name="persistent").uncheck()
    assert "mask" not in given(page)
    expect(page.locator(".mo-list .passed")).to_have_text("–maskpassed over: not saved")
    page.get_by_role("radio", name="buffers").check()
    assert given(page)[0] == "mask"
    expect(page.locator(".mo-python")).to_contain_text(
        'self.register_buffer("mask", torch.zeros(4), persistent=False)'
    )


def test_order_is_the_order_of_registration(
    watch: Watch, site: str, edit: Callable[[str], Locator]
) -> None:
    page = watch.page
    show(page, site, "model=a-ReLU*b-Sequential*b.0-Tanh*b.1-ReLU*c-ReLU&call=named_modules&at=a")
    edit("Rename").locator("input").fill("z")
    edit("Rename").get_by_role("button").click()
    assert given(page) == ["", "b", "b.0", "b.1", "c", "z"]
    assert address(page)["at"] == "z"
    row(page, "b").click()
    expect(edit("Rename")).to_be_visible()
    row(page, "0").click()
    expect(edit("Rename")).to_be_hidden()
    edit("Assign").locator("select").select_option("is-z")
    edit("Assign").get_by_role("button", name="Assign").click()
    assert given(page) == ["", "b", "b.0", "b.1", "c"], "it keeps its place"
    page.get_by_role("button", name="Delete").click()
    assert address(page)["model"] == "b-Sequential*b.0-ReLU*c-ReLU*z-ReLU", "numbers move up"
    assert address(page)["at"] == "b"
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".mo-row:focus b")).to_have_text("model")


def test_what_cannot_be_is_refused_in_words(
    watch: Watch, site: str, edit: Callable[[str], Locator]
) -> None:
    page = watch.page
    show(page, site, RELU)
    for name, said in {
        "act": "There is act already",
        "train": "train is taken",
        "lambda": "lambda is taken",
        "2nd": "begins with a letter",
        "": "begins with a letter",
        "a.b": "begins with a letter",
    }.items():
        edit("Add").locator("input").fill(name)
        edit("Add").get_by_role("button").click()
        expect(page.locator("#mo-help")).to_contain_text(said)
        assert fragment(page) == RELU, "nothing changed"
    full = "model=" + "*".join(f"a{n}-ReLU" for n in range(59))
    show(page, site, full)
    edit("Add").get_by_role("button").click()
    expect(page.locator("#mo-help")).to_contain_text("more than the 60 places")
    show(page, site, f"{BLOCKS}&at=block")
    options = edit("Add").locator("option").all_inner_texts()
    assert not any("self.block," in text for text in options), "nothing offers to contain itself"


def test_the_call_that_is_shown_gives_the_names_that_are_shown(watch: Watch, site: str) -> None:
    """In torch, on the class that is shown."""
    page = watch.page
    show(page, site)
    for state in STATES:
        turn(page, state)
        call = page.locator(".mo-call").inner_text()
        found = list(eval(call, {"model": modelled(page)}))
        if "named_" in call:
            found = [name for name, _ in found]
        if "named_" in call or "state_dict" in call:
            assert given(page) == found, state
        else:
            assert len(given(page)) == len(found), state


def test_the_things_to_try_work(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    tries = page.get_by_role("group", name="Models to try").get_by_role("button")
    seen = set()
    for number in range(tries.count()):
        tries.nth(number).click()
        seen.add(address(page).get("model"))
        assert isinstance(modelled(page), nn.Module)
    assert len(seen) == tries.count() >= 6


def test_the_address_holds_the_state(watch: Watch, site: str) -> None:
    """Opened, changed there and back: the same address. Opened again: the same page."""
    page = watch.page
    for state in STATES[1::3]:
        show(page, site, state)
        before = page.locator("modules-explorer").inner_text()
        assert fragment(page) == state, "looking changes nothing"
        at = address(page).get("at")
        rows = page.locator(".mo-row")
        chosen = page.locator(".mo-row[aria-selected=true]")
        expect(chosen).to_have_count(1)
        index = rows.evaluate_all("(all) => all.findIndex((r) => r.ariaSelected === 'true')")
        rows.last.click()
        rows.nth(index).click()
        assert (fragment(page), address(page).get("at")) == (state, at)
    show(page, site, fragment(page))
    assert page.locator("modules-explorer").inner_text() == before


@pytest.mark.parametrize(
    "state",
    ["model=a", "model=a-Explode", "model=a-Linear", "model=a-is-b", "call=modules", f"{RELU}s", "model=%ff*-",
     "model=a-Module*a.b-is-a", "model=" + "*".join(f"a{n}-ReLU" for n in range(60))],
)  # fmt: skip
def test_an_address_that_makes_no_sense_is_harmless(watch: Watch, site: str, state: str) -> None:
    show(watch.page, site, state)
    expect(watch.page.locator(".mo-call")).to_have_text("model.named_modules()")
    expect(watch.page.locator(".mo-row")).to_have_count(14)


def test_what_does_not_fit_is_left_out_of_an_address(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, f"{RELU}&at=nowhere&step=999")
    expect(page.locator(".mo-row[aria-selected=true] b")).to_have_text("model")
    expect(page.locator(".mo-steps")).to_contain_text("at the end")
    page.get_by_role("button", name="next").click()
    assert fragment(page) == RELU


def test_nothing_is_told_by_colour_alone(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, f"{RELU}&step=5")
    expect(page.locator(".mo-row.here .mo-order")).to_have_text("▸–")
    for kind, mark in {"modules": "■", "parameters": "●"}.items():
        expect(page.locator(f".mo-row.{kind} .mo-name > i").first).to_have_text(mark)
    double = page.locator(".mo-row em.is").first.evaluate("(e) => getComputedStyle(e).borderStyle")
    assert double == "double"
    show(page, site, LISTED)
    expect(page.locator(".mo-row.lists em")).to_have_text("not registered")


def test_every_state_fits_and_complains_of_nothing(watch: Watch, site: str) -> None:
    show(watch.page, site)
    assert_every_state_fits(watch, STATES, "button, select, .mo-row, .mo-check, .mo-form input")


def test_it_works_from_disk(watch: Watch, built: Path) -> None:
    page = watch.page
    page.goto((built / PAGE).as_uri() + "#" + RELU)
    expect(page.locator(".mo-list button")).to_have_count(5)
    page.get_by_role("radio", name="children").check()
    assert address(page)["call"] == "named_children"


def test_the_gallery_and_the_chapter_lead_here(watch: Watch, site: str) -> None:
    page = watch.page
    page.goto(site + "explorers/index.html")
    links = page.locator("article a[href*='modules.html#']").all()
    assert len(links) >= 3
    for link in links:
        assert "model" in dict(parse_qsl(urlsplit(link.get_attribute("href") or "").fragment))
    page.get_by_role("link", name="tied weights, saved twice").click()
    expect(page.locator(".ut-facts")).to_contain_text("4 keys for 3 tensors")
    page.goto(site + "chapters/ch04_modules.html")
    page.locator("article a[href*='explorers/modules.html']").first.click()
    expect(page.locator(".mo-row")).to_have_count(14)


def test_a_module_that_contains_itself_is_what_we_say() -> None:
    """The page's words on cycles, which no explorer shows."""
    model = nn.Module()
    model.part = nn.Module()
    model.part.whole = model
    assert [name for name, _ in model.named_modules()] == ["", "part"]
    for method in (model.state_dict, model.train):
        with pytest.raises(RecursionError):
            method()
