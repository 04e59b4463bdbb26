"""The autograd explorer in use: stepped, edited, by keyboard, by address, on a phone, from disk."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.explorers import golden_autograd as golden
from tests.explorers.harness import (
    Watch,
    address,
    assert_every_state_fits,
    fragment,
    press_on,
    tab_to,
    turn,
)

PAGE = "explorers/autograd.html"
X = "x = torch.tensor([1., 2.], requires_grad=True)"
W = "w = torch.tensor([1., 2.], requires_grad=True)"
GRAPH = [X, "y = x * 2", "z = y.exp()", "loss = z.sum()", "loss.backward()"]
SILENT = [X, "y = (x * 2).exp()", "y.data.mul_(10)", "y.sum().backward()"]
WHO = [X, "y = x * 2", "s = y.sin()", "e = y.exp()", "s.mul_(3)", "s.sum().backward(retain_graph=True)", "e.mul_(3)", "e.sum().backward()"]  # fmt: skip
LAYER = ["x = torch.tensor([[1., 2.], [3., -4.]])", "w = torch.tensor([0.5, -1.], requires_grad=True)", "b = torch.zeros(1, requires_grad=True)", "h = (x @ w + b).relu()", "loss = ((h - 1) ** 2).mean()", "loss.backward()"]  # fmt: skip
LOOP = ["w = torch.tensor([0.5], requires_grad=True)", "h = torch.ones(1)", "for i in range(3):", "    h = (w * h).sin()", "h.backward()"]  # fmt: skip
# One state per kind of drawing and of refusal, with the widest graphs and the longest words.
STATES = [
    (GRAPH, 4),
    (SILENT, 4),
    (WHO, 8),
    ([W, "total = 0", *["loss = (w * w).sum()", "total += loss"] * 5], 12),
    ([X, "y = x * 2", "v = y[0:1]", "v.mul_(10)", "y.sum().backward()"], 4),
    ([X, "with torch.inference_mode():", "    f = torch.ones(2)", "", "y = f * x"], 5),
    ([X, "with torch.no_grad():", "    v = x.view(2)", "v.mul_(2)"], 4),
    ([X, *[f"{name} = x * x" for name in "abcd"], "y = (a + b) * (c + d)"], 6),
    ([X, "long_name_of_a_tensor = x.exp()", "y = long_name_of_a_tensor * long_name_of_a_tensor"], 3),
    ([X, "y = x.softmax()", "y.sum()"], 2),
    (LAYER, 6),
    (LOOP, 5),
    (["x = torch.ones(3, 2, requires_grad=True)", "w = torch.tensor([[1., -0.25, 100.], [0.5, 3., 1.]], requires_grad=True)", "y = w @ x", "z = (y[0] @ y / 2).mean()"], 4),
    ([X, "y = x *"], 2),
    (["# nothing"], 1),
    (["t = torch.ones(4)", "b = t", "c = t[0]", "d = t.data", "n = 2.5", "m = d.sum().item()"], 6),
]  # fmt: skip


def state(lines: list[str], line: int | None = None) -> str:
    pairs = [("code", "\n".join(lines))]
    return urlencode([*pairs, ("line", line)] if line and line < len(lines) else pairs)


def show(page: Page, site: str, lines: list[str] = GRAPH, line: int | None = None) -> None:
    """Open a state; where the page is open already, only the address changes."""
    page.goto(f"{site}{PAGE}#{state(lines, line)}", wait_until="load")
    expect(page.locator("textarea")).to_have_value("\n".join(lines))
    expect(page.locator(".ag-head b")).to_have_text(f"Line {line or len(lines)}")


def cell(page: Page, name: str, column: str) -> Locator:
    row = page.locator(".ag-table tbody tr").filter(
        has=page.locator("th").filter(has_text=re.compile(f"^{name}$"))
    )
    return row.locator(f'[data-name="{column}"]')


def test_each_line_says_what_it_did(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, GRAPH, 1)
    said = page.locator(".ag-said > p").nth(1)
    expect(said).to_contain_text("x is a leaf. It requires grad")
    expect(page.locator(".ag-graph")).to_contain_text("No name holds a graph.")
    step = page.get_by_role("button", name="Step one line")
    step.click()
    expect(said).to_have_text("Recorded: MulBackward0. Saved for backward: the number 2.")
    step.click()
    expect(said).to_have_text("Recorded: ExpBackward0. Saved for backward: z, version 0.")
    expect(page.locator(".ag-graph")).to_contain_text(
        "3 nodes, kept alive by the names below. 16 B"
    )
    expect(cell(page, "z", "grad_fn")).to_have_text("ExpBackward0")
    step.click()
    step.click()
    expect(said).to_contain_text(
        "Gradients were added to x.grad. What the nodes had saved is freed."
    )
    expect(cell(page, "x", ".grad")).to_contain_text("[14.78, 109.2]")
    expect(cell(page, "x", ".grad")).to_contain_text("changed")
    expect(page.locator(".ag-graph")).to_contain_text("0 B saved for backward")
    expect(step).to_have_attribute("aria-disabled", "true")
    assert address(page) == {"code": "\n".join(GRAPH)}
    page.get_by_role("button", name="Back one line").click()
    assert address(page)["line"] == "4"


def test_a_moved_version_raises_and_a_data_edit_does_not(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, WHO)
    expect(page.locator(".ag-said")).to_contain_text("ExpBackward0 saved e, version 0.")
    expect(page.locator(".ag-torch")).to_contain_text("is at version 1; expected version 0 instead")
    expect(page.locator(".ag-graph svg")).to_contain_text("saved e v0 ✗ now 1")
    show(page, site, SILENT)
    expect(page.locator(".ag-torch")).to_be_hidden()
    expect(page.locator(".ag-said")).to_contain_text("No error, and x.grad is wrong.")
    expect(cell(page, "x", ".grad")).to_have_text("▸changed [147.8, 1092.] ✗ not [14.78, 109.2]")
    page.get_by_role("button", name="Back one line").click()
    expect(page.locator(".ag-said")).to_contain_text("y (version still 0)")
    expect(page.locator(".ag-graph svg")).to_contain_text("saved y v0 ≠ changed")


def test_a_layer_and_its_loss(watch: Watch, site: str) -> None:
    """What somebody types first: a matrix product, a bias, relu, a mean of squares."""
    page = watch.page
    show(page, site, LAYER)
    run, _, _ = golden.replayed(LAYER, lambda run, error: (run, error, None))
    assert run.names["w"].grad.tolist() == [13.5, -18.0]
    expect(cell(page, "w", ".grad")).to_contain_text("[13.5, -18.]")
    expect(cell(page, "b", ".grad")).to_contain_text("[4.5]")
    expect(cell(page, "x", "value")).to_have_text("[[1., 2.], [3., -4.]]")
    nodes = page.locator(".ag-graph li").all_inner_texts()
    names = {re.match(r"\w+", node)[0] for node in nodes}
    kinds = ("AccumulateGrad", "AddBackward0", "MeanBackward0", "MvBackward0", "PowBackward0")
    assert names == {*kinds, "ReluBackward0", "SubBackward0"}
    show(page, site, [*LAYER[:3], "h = w @ b"])
    expect(page.locator(".ag-said")).to_contain_text("they must be equal")


def test_a_loop_is_stepped_turn_by_turn(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, LOOP, 2)
    head = page.locator(".ag-head b")
    step = page.get_by_role("button", name="Step one line")
    for wanted, at in (("Line 3, turn 1 of 3", "1"), ("Line 4, turn 1 of 3", "1"), ("Line 3, turn 2 of 3", "2"), ("Line 4, turn 2 of 3", "2")):  # fmt: skip
        step.click()
        expect(head).to_have_text(wanted)
        assert address(page)["turn"] == at
    expect(cell(page, "i", "value")).to_have_text("1")
    expect(page.locator(".ag-graph")).to_contain_text("5 nodes")
    page.reload()
    expect(head).to_have_text("Line 4, turn 2 of 3")
    step.click()
    step.click()
    expect(head).to_have_text("Line 4, turn 3 of 3")
    assert "turn" not in address(page), "the last turn is what a line shows by itself"
    page.get_by_role("button", name="Back one line").click()
    expect(page.locator(".ag-said")).to_contain_text(
        "Turn 3 of 3. The indented lines run once more"
    )


def test_the_gutter_tells_modes_by_shape(watch: Watch, site: str) -> None:
    page = watch.page
    lines = [X, "with torch.no_grad():", "    y = x * 2", "with torch.inference_mode():", "    z = x * 2", "z.mul_(2)", "w = z"]  # fmt: skip
    show(page, site, lines)
    marks = page.locator(".ag-gutter li span").all_inner_texts()
    assert marks == ["●", "○", "○", "◇", "◇", "✗", ""]
    expect(page.locator(".ag-said")).to_contain_text("Not reached")
    page.locator(".ag-gutter li").nth(2).click()
    expect(page.locator(".ag-said")).to_contain_text("Not recorded: grad mode is off.")
    expect(page.locator(".ag-head")).to_have_text("Line 3grad mode off")


def test_the_keyboard_alone_steps_and_writes(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, [X, "y = x * 2", "z = y.exp()"], 1)
    tab_to(page, "textarea")
    page.keyboard.press("Control+Home")
    page.keyboard.press("ArrowDown")
    assert address(page)["line"] == "2"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.keyboard.type("with torch.no_grad():")
    page.keyboard.press("Enter")
    page.keyboard.type("y.mul_(3)")
    assert address(page)["code"].endswith("z = y.exp()\nwith torch.no_grad():\n    y.mul_(3)")
    expect(page.get_by_role("status")).to_have_text(
        "Line 5: y.mul_(3). Changed in place: y (version 0 → 1). Not recorded: grad mode is off."
    )
    expect(cell(page, "y", "_version")).to_contain_text("1")
    page.keyboard.press("Tab")
    expect(page.locator("textarea:focus")).to_have_count(0)
    press_on(page, "[aria-label='Back one line']", "Enter", line="4")
    expect(page.locator("[aria-label='Back one line']")).to_be_focused()


def test_lines_are_moved_removed_and_inserted(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, [X, "d = x.detach()", "y = x * 2"], 2)
    page.get_by_role("button", name="Move this line down").click()
    assert address(page)["code"] == "\n".join([X, "y = x * 2", "d = x.detach()"])
    expect(page.locator(".ag-head b")).to_have_text("Line 3")
    page.get_by_role("button", name="Move this line up").click()
    page.get_by_role("button", name="Remove this line").click()
    assert address(page)["code"] == "\n".join([X, "y = x * 2"])
    chips = page.locator(".ag-chips")
    expect(chips).to_be_hidden()
    page.get_by_role("button", name="Insert a line").click()
    chips.get_by_role("button", name="z = y.exp()").click()
    chips.get_by_role("button", name="with torch.no_grad():").click()
    assert address(page)["code"].split("\n")[2:] == ["z = y.exp()", "with torch.no_grad():", "    a = z * 2"]  # fmt: skip
    chips.get_by_role("button", name="a.mul_(3)", exact=True).click()
    assert address(page)["code"].endswith("    a = z * 2\n    a.mul_(3)")


def test_every_suggestion_runs(watch: Watch, site: str) -> None:
    page = watch.page
    lines = [X, "y = x * 2"]
    show(page, site, lines)
    page.get_by_role("button", name="Insert a line").click()
    for place in range(page.locator(".ag-chips button:visible").count()):
        show(page, site, lines)
        page.locator(".ag-chips button").nth(place).click()
        expect(page.locator(".ag-gutter .error")).to_have_count(0)


def test_what_the_presets_show_is_torchs(watch: Watch, site: str) -> None:
    """Every program to try, run by torch: values, versions, grad_fn and errors as on the page."""
    page = watch.page
    show(page, site)
    names = page.locator(".ut-tries").first.get_by_role("button").all()
    assert len(names) >= 12
    for button in names:
        button.click()
        code = page.locator("textarea").input_value().split("\n")
        page.get_by_role("textbox", name="Program").press("Control+End")
        run, error, shot = golden.replayed(
            golden.unrolled(code), lambda run, error: (run, error, golden.told(run))
        )
        assert run is not None
        if error:
            expect(page.locator(".ag-torch")).to_have_text(error)
        else:
            expect(page.locator(".ag-torch")).to_be_hidden()
        for tensor in shot["tensors"]:
            if "values" not in tensor:
                continue
            fn = tensor["fn"]["is"]
            expected = "None" if fn is None else shot["nodes"][fn]["name"]
            expect(cell(page, tensor["name"], "grad_fn")).to_contain_text(expected)
            expect(cell(page, tensor["name"], "requires_grad")).to_contain_text(
                str(tensor["requires"])
            )
            version = "none" if tensor["version"] is None else str(tensor["version"])
            expect(cell(page, tensor["name"], "_version")).to_contain_text(version)


def test_the_address_holds_the_state(watch: Watch, site: str) -> None:
    """Opened, changed there and back, and opened again: the same address and the same page."""
    page = watch.page
    for lines, line in STATES:
        show(page, site, lines, line)
        parts = page.locator(".ag-two, .ag-tensors")
        before = parts.all_inner_texts()
        assert fragment(page) == state(lines, line), "looking changes nothing"
        page.locator(".ut-tries button").nth(1).click()
        assert fragment(page) != state(lines, line)
        turn(page, state(lines, line))
        expect(page.locator(".ag-head b")).to_have_text(f"Line {line}")
        expect(page.locator("textarea")).to_have_value("\n".join(lines))
        assert parts.all_inner_texts() == before, lines


@pytest.mark.parametrize("bad", ["code=", "line=3", "nothing=1", "code=%0A%0A", "code=%20"])
def test_an_address_that_makes_no_sense_is_harmless(watch: Watch, site: str, bad: str) -> None:
    page = watch.page
    page.goto(f"{site}{PAGE}#{bad}")
    expect(page.locator(".ag-head b")).to_have_text("Line 4")
    expect(page.locator("textarea")).to_have_value("\n".join(GRAPH))


def test_any_code_and_line_of_an_address_is_shown(watch: Watch, site: str) -> None:
    page = watch.page
    page.goto(f"{site}{PAGE}#code={quote('a = 1;b = a * 2 # so')}&line=99")
    expect(page.locator("textarea")).to_have_value("a = 1\nb = a * 2 # so")
    expect(page.locator(".ag-said")).to_contain_text("b is a Python number. It holds no graph.")
    page.locator("textarea").fill("")
    expect(page.locator(".ag-said")).to_contain_text("Write a first line")
    page.locator("textarea").fill("<b>&constructor.__proto__")
    expect(page.locator(".ag-said")).to_contain_text("✗ Not here. This page does not know <.")


def test_every_state_fits_and_complains_of_nothing(watch: Watch, site: str) -> None:
    show(watch.page, site)
    watch.page.get_by_role("button", name="Insert a line").click()
    assert_every_state_fits(watch, [state(lines, line) for lines, line in STATES])


def test_words_stay_in_their_boxes_and_boxes_apart(watch: Watch, site: str) -> None:
    for lines, line in STATES:
        show(watch.page, site, lines, line)
        wrong = watch.page.locator(".ag-graph").evaluate(
            """(graph) => {
              const boxes = [...graph.querySelectorAll("g")].map((g) => [g, g.querySelector("rect").getBoundingClientRect()]);
              const out = boxes.filter(([g, box]) => [...g.querySelectorAll("text")].some((t) => t.getBoundingClientRect().right > box.right));
              const over = boxes.filter(([g, a], i) => boxes.some(([, b], j) => i < j && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom));
              return [...out, ...over].map(([g]) => g.textContent);
            }"""
        )
        assert not wrong, lines


def test_the_graph_is_there_in_words(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, GRAPH, 3)
    nodes = page.locator(".ag-graph li").all_inner_texts()
    assert nodes == [
        "MulBackward0, grad_fn of y, saved 2. Next: AccumulateGrad, None.",
        "AccumulateGrad, puts into x.grad.",
        "ExpBackward0, grad_fn of z, saved z v0. Next: MulBackward0.",
    ]


def test_it_works_from_disk(watch: Watch, built: Path) -> None:
    page = watch.page
    page.goto(f"{(built / PAGE).as_uri()}#{state(SILENT)}")
    expect(page.locator(".ag-said")).to_contain_text("x.grad is wrong")
    page.get_by_role("button", name="Back one line").click()
    assert address(page)["line"] == "3"


def test_the_gallery_leads_here(watch: Watch, site: str) -> None:
    page = watch.page
    page.goto(site + "explorers/index.html")
    links = page.locator("article a[href*='autograd.html#']")
    assert links.count() >= 4
    page.get_by_role("link", name="a gradient that .data spoils").click()
    expect(page.locator(".ag-said")).to_contain_text("x.grad is wrong")
