"""The matmul explorer in use: by keyboard, by address, on a phone, from disk, without a network."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from tests.explorers.harness import (
    Watch,
    address,
    assert_every_state_fits,
    fragment,
    press_on,
    tab_to,
)

PAGE = "explorers/matmul.html"
BROADCAST = "a=2x1x3x4&b=1x5x4x2&dtype=float32"
EINSUM = "eq=bqhd%2Cbkhd-%3Ebhqk&a=2x128x8x64&b=2x128x8x64&dtype=bfloat16"
# One state per kind of drawing and of refusal, with the longest texts among them.
STATES = [
    BROADCAST,
    "a=2x8x128x64&b=2x8x64x128&dtype=bfloat16&at=0.3.40.7",
    "a=5&b=5&dtype=float64",
    "a=16x32&b=8x32x24&dtype=float32&grad=a",
    "a=2x3x4&b=1x4x5&dtype=float32&grad=ab",
    "a=4&b=8x4x3&dtype=float32",
    "a=3x4&b=4&dtype=float32",
    "a=2x3x4&b=3x4x5&dtype=float32",
    "a=2x1x2x1x3x4&b=5x1x3x4x2&dtype=float32",
    "a=2x0&b=0x3&dtype=float32",
    "a=0x3&b=3x2&dtype=float32",
    "a=&b=3&dtype=float32",
    "a=99999x99999&b=99999x99999&dtype=float64",
    "fn=linear&a=8x128x512&b=2048x512&dtype=float16",
    "fn=linear&a=5x3&b=3x4&dtype=float32",
    EINSUM,
    "eq=ii-%3Ei&a=4x4&dtype=float32",
    "eq=ii&a=4x4&dtype=float32",
    "eq=ca%2Cab&a=3x4&b=4x2&dtype=float32",
    "eq=ij%2Ckl-%3Eik&a=3x4&b=5x2&dtype=float32",
    "eq=bi%2Coij%2Cbj-%3Ebo&a=8x5&b=3x5x4&c=8x4&dtype=float32",
    "eq=...ij%2C...jk-%3E...ik&a=2x6x3x4&b=4x5&dtype=float32",
    "eq=ij%2Cjk-%3Eiq&a=2x3&b=3x4&dtype=float32",
    "eq=ij%2Cjk-%3Eik&a=2x3&b=4x4&dtype=float32",
    "eq=ij%2Cj1&a=2x3&b=4x4&dtype=float32",
]


def show(page: Page, site: str, state: str = BROADCAST) -> None:
    page.goto(f"{site}{PAGE}#{state}", wait_until="load")
    expect(page.locator(".mm-verdict")).not_to_be_empty()


def row(page: Page, name: str) -> Locator:
    """The line of one function among those that take the shapes or do not."""
    return page.locator(".mm-list tr").filter(
        has=page.get_by_role("rowheader", name=name, exact=True)
    )


def test_the_result_and_why_not_the_others(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    expect(page.locator(".mm-verdict strong")).to_have_text("(2, 5, 3, 2)")
    for name in ("dot", "mv", "mm", "bmm", "linear"):
        expect(row(page, name).locator(".mark")).to_contain_text("no")
    expect(row(page, "bmm")).to_contain_text("takes two 3-D tensors; A is 4-D")
    expect(row(page, "bmm")).to_contain_text("batch1 must be a 3D tensor")
    expect(row(page, "matmul").locator(".mark")).to_contain_text("yes")
    link = row(page, "einsum").get_by_role("link")
    expect(link).to_have_text("bcik,bckj->bcij")
    link.click()
    expect(page.get_by_role("radio", name="einsum")).to_be_checked()
    expect(page.locator(".mm-verdict strong")).to_have_text("(2, 5, 3, 2)")
    expect(page.locator(".mm-steps h2")).to_have_text("One bmm")


def test_what_runs_and_what_it_copies(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    steps = page.locator(".mm-steps li")
    expect(steps).to_have_count(8)
    expect(steps.filter(has_text="copies")).to_have_count(2)
    expect(page.locator(".mm-steps")).to_contain_text("copies 480 B")
    expect(page.locator(".ut-facts")).to_contain_text("800 B")
    expect(page.locator(".ut-facts")).to_contain_text("480 = 2 · 10 · 3 · 4 · 2")
    page.locator("label", has_text="float64").click()
    expect(page.locator(".mm-steps")).to_contain_text("copies 960 B")
    assert address(page)["dtype"] == "float64"
    show(page, site, "a=8x16x32&b=32x24")
    expect(page.locator(".mm-steps h2")).to_have_text("One mm")
    expect(page.locator(".mm-steps")).to_contain_text("folded into rows")
    expect(page.locator(".mm-steps")).to_contain_text("Nothing is copied")


def test_a_gradient_is_paid_with_copies(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "a=16x32&b=8x32x24&dtype=float32")
    expect(page.locator(".mm-steps h2")).to_have_text("One bmm")
    page.get_by_role("checkbox", name="requires_grad").first.check()
    assert address(page)["grad"] == "a"
    expect(page.locator(".mm-steps h2")).to_have_text("One mm")
    expect(page.locator(".mm-steps")).to_contain_text("Copied on the way: B and the result.")
    expect(page.locator(".ut-facts")).to_contain_text("B once, the result once")


def test_dims_are_named_without_colour(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    table = page.locator(".mm-table")
    expect(table.locator("tfoot")).to_have_text("batchbatchfreecontractedfree")
    expect(table.locator("tbody tr").first).to_contain_text("1 → 5stretched")
    expect(table.locator("tbody tr").last).to_contain_text("Σ")
    lines = (
        table.locator("tbody tr")
        .last.locator("td > span")
        .evaluate_all("(all) => all.map((cell) => getComputedStyle(cell).borderTopStyle)")
    )
    assert lines == ["double", "double", "solid", "dotted", "solid"]
    show(page, site, "a=4&b=8x4x3")
    expect(table.locator("tbody tr").first).to_contain_text("1added")
    expect(table.locator("tbody tr").last).to_contain_text("1removed again")


def test_the_keyboard_alone_steps_a_size(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "a=2x3&b=3x4&dtype=float32")
    press_on(page, "[role=spinbutton]", "ArrowUp", a="3x3")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("PageUp")
    assert address(page)["a"] == "3x6"
    expect(page.locator("[role=spinbutton]:focus")).to_have_attribute("aria-valuenow", "6")
    expect(page.locator(".mm-reason")).to_contain_text(
        "a row of A has 6 numbers, a column of B has 3"
    )
    expect(page.get_by_role("status")).to_contain_text("refused")
    # One stop for a whole shape.
    page.keyboard.press("Tab")
    expect(page.locator("[role=spinbutton]:focus")).to_have_count(0)
    tab_to(page, "[role=spinbutton]")
    page.keyboard.press("PageUp")
    expect(page.locator(".mm-verdict strong")).to_have_text("(3, 4)")
    expect(page.get_by_role("status")).to_contain_text("(3, 6) and (6, 4) gives (3, 4).")


def test_the_keyboard_alone_walks_through_the_result(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site)
    tab_to(page, ".mm-drawing")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("PageDown")
    assert address(page)["at"] == "0.1.1.1"
    expect(page.locator(".mm-formula")).to_have_text(
        "result[0, 1, 1, 1] = Σk A[0, 0, 1, k] · B[0, 1, k, 1]"
    )
    expect(page.locator(".mm-batch")).to_contain_text("batch (0, 1) of (2, 5)")
    expect(page.get_by_role("status")).to_contain_text("result[0, 1, 1, 1] is a sum of 4.")
    page.keyboard.press("ArrowRight")
    assert address(page)["at"] == "0.1.1.1", "the edge is the end"
    expect(page.locator(".mm-drawing:focus")).to_have_count(1)
    page.get_by_role("button", name="Previous in the batch").click()
    assert address(page)["at"] == "0.0.1.1"


@pytest.mark.parametrize(
    ("state", "run"),
    [
        ("a=2x1x3x4&b=1x5x4x2&at=1.3.2.1", torch.matmul),
        ("a=4&b=8x4x3&at=5.2", torch.matmul),
        ("a=8x5x6&b=6&at=7.4", torch.matmul),
        ("a=2x3x4x5&b=5x6&at=1.2.3.4", torch.matmul),
        ("a=7&b=7", torch.matmul),
        ("fn=linear&a=2x3x4&b=5x4&at=1.2.4", torch.nn.functional.linear),
        ("eq=bqhd,bkhd->bhqk&a=2x3x4x5&b=2x6x4x5&at=1.3.2.5", "bqhd,bkhd->bhqk"),
        ("eq=ij,jk->ki&a=3x4&b=1x5&at=4.2", "ij,jk->ki"),
        ("eq=iij,jk->ik&a=3x3x4&b=4x5&at=2.3", "iij,jk->ik"),
        ("eq=ij,ij->&a=3x4&b=3x4", "ij,ij->"),
        ("eq=i,j->ij&a=3&b=4&at=2.3", "i,j->ij"),
    ],
)
def test_the_formula_of_an_element_is_right(
    watch: Watch, site: str, state: str, run: Callable[..., torch.Tensor] | str
) -> None:
    """Read off the page, and computed term by term: the very element that torch gives."""
    show(watch.page, site, state)
    formula = watch.page.locator(".mm-formula").inner_text().replace("\n", "")
    result, terms = formula.split(" = ")
    generator = torch.Generator().manual_seed(1)
    a, b = (
        torch.randint(-9, 10, [int(n) for n in sizes.split("x")], generator=generator).double()
        for sizes in re.findall(r"\b[ab]=([\dx]+)", state)
    )
    whole = torch.einsum(run, a, b) if isinstance(run, str) else run(a, b)
    operands = {"A": a, "B": b, "result": whole}

    def read(text: str) -> tuple[torch.Tensor, list[str]]:
        name, _, inside = text.strip().rstrip("]").partition("[")
        return operands[name], [part.strip() for part in inside.split(",") if part]

    factors = [read(text) for text in re.findall(r"[AB](?:\[.*?\])?", terms)]
    sizes = {
        letter: tensor.shape[dim]
        for tensor, index in factors
        for dim, letter in enumerate(index)
        if letter.isalpha()
    }
    total = 0.0
    for values in itertools.product(*map(range, sizes.values())):
        given = dict(zip(sizes, values, strict=True))
        total += math.prod(
            float(tensor[tuple(given.get(i, i) if i.isalpha() else int(i) for i in index)])
            for tensor, index in factors
        )
    element, index = read(result)
    assert total == float(element[tuple(int(i) for i in index)])


def test_a_hovered_element_shows_its_row_and_column(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "a=3x4&b=4x5&dtype=float32")
    cells = page.locator('[data-name="C"] .cell')
    cells.nth(7).hover()
    expect(page.locator(".mm-formula")).to_have_text("result[1, 2] = Σk A[1, k] · B[k, 2]")
    assert page.locator(".cell.s").count() == 8, "a row of A, a column of B"
    assert "at" not in address(page), "looking changes nothing"
    cells.nth(7).click()
    assert address(page)["at"] == "1.2"
    page.mouse.move(0, 0)
    expect(page.locator(".mm-formula")).to_contain_text("result[1, 2]")


def test_typing_a_shape(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "a=2x3&b=3x4&dtype=float32")
    field = page.get_by_role("textbox", name="A", exact=True)
    field.fill("7, 5, 3")
    assert address(page)["a"] == "7x5x3"
    expect(page.locator(".mm-verdict strong")).to_have_text("(7, 5, 4)")
    field.fill("7, 5, q")
    expect(field).to_have_attribute("aria-invalid", "true")
    assert address(page)["a"] == "7x5x3", "half a shape changes nothing"
    field.blur()
    expect(field).to_have_value("7, 5, 3")
    field.fill("")
    expect(page.locator(".mm-reason")).to_contain_text("A is 0-D")


def test_typing_an_equation(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "eq=ij%2Cjk-%3Eik&a=2x3&b=3x4&dtype=float32")
    field = page.get_by_role("textbox", name="equation")
    field.fill("ij,jk,kl->il")
    expect(page.get_by_role("textbox", name="C", exact=True)).to_be_visible()
    page.get_by_role("textbox", name="C", exact=True).fill("4, 5")
    expect(page.locator(".mm-verdict strong")).to_have_text("(2, 5)")
    expect(page.locator(".mm-steps h2")).to_have_text("bmm, then bmm")
    field.fill("ij,jk")
    expect(page.locator(".mm-align")).to_contain_text(
        "No arrow: the result has the letters that stand once"
    )
    expect(page.locator(".mm-align code")).to_have_text("->ik")
    field.fill("ij,jk->iq")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".mm-reason")).to_contain_text(
        "einsum(): output subscript q does not appear in the equation for any input operand"
    )
    assert address(page)["eq"] == "ij,jk->iq"


@pytest.mark.parametrize("mode", ["A @ B", "linear(A, B)", "einsum"])
def test_every_example_means_something(watch: Watch, site: str, mode: str) -> None:
    page = watch.page
    show(page, site)
    page.locator(".ut-tabs label", has_text=mode).click()
    tries = page.locator(".ut-tries button").all()
    assert len(tries) >= 3
    for button in tries:
        button.click()
        refused = button.inner_text() in {"no fit", "weight the wrong way"}
        expect(page.locator(".mm-reason")).to_be_visible(visible=refused)


def test_the_address_holds_the_state(watch: Watch, site: str) -> None:
    """Opened, changed there and back: the same address. Opened again: the same page."""
    page = watch.page
    for state in STATES:
        page.goto("about:blank")
        show(page, site, state)
        before = page.locator("matmul-explorer").inner_text()
        assert fragment(page) == state, "looking changes nothing"
        dtype = re.search(r"dtype=(\w+)", state)
        assert dtype is not None, state
        if page.locator(".mm-costs").is_visible():
            other = "float64" if dtype[1] != "float64" else "float16"
            for name in (other, dtype[1]):
                page.locator("label", has=page.get_by_role("radio", name=name, exact=True)).click()
            assert fragment(page) == state
    page.reload()
    assert page.locator("matmul-explorer").inner_text() == before


@pytest.mark.parametrize(
    "state", ["a=2x3", "a=2x3&b=q", "eq=ij,jk&a=2x3", "a=1x1x1x1x1x1x1&b=2", "nothing=1", "b=2"]
)
def test_an_address_that_makes_no_sense_is_harmless(watch: Watch, site: str, state: str) -> None:
    show(watch.page, site, state)
    expect(watch.page.locator(".mm-verdict strong")).to_have_text("(2, 5, 3, 2)")


def test_the_einsum_of_a_state_is_torchs(watch: Watch, site: str) -> None:
    show(watch.page, site, EINSUM)
    a, b = torch.ones(2, 128, 8, 64), torch.ones(2, 128, 8, 64)
    result = tuple(torch.einsum("bqhd,bkhd->bhqk", a, b).shape)
    expect(watch.page.locator(".mm-verdict strong")).to_have_text(str(result))
    expect(watch.page.locator(".mm-steps")).to_contain_text("(16, 128, 64) = bh, q, d")


def test_every_state_fits_and_complains_of_nothing(watch: Watch, site: str) -> None:
    show(watch.page, site)
    assert_every_state_fits(watch, STATES)


def test_it_works_from_disk(watch: Watch, built: Path) -> None:
    page = watch.page
    page.goto((built / PAGE).as_uri() + "#" + BROADCAST)
    expect(page.locator(".mm-verdict strong")).to_have_text("(2, 5, 3, 2)")
    page.get_by_role("button", name="Next in the batch").click()
    assert address(page)["at"] == "0.1.0.0"


def test_the_gallery_leads_here(watch: Watch, site: str) -> None:
    page = watch.page
    page.goto(site + "explorers/index.html")
    links = page.locator("article a[href*='matmul.html#']")
    assert links.count() >= 4
    page.get_by_role("link", name="a broadcast that copies").click()
    expect(page.locator(".ut-facts")).to_contain_text("800 B")
