"""The compile explorer in use: every state it can show, by keyboard, by address, on a phone, from disk."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.explorers.harness import (
    Watch,
    address,
    assert_every_state_fits,
    press_on,
    python_in,
    tab_to,
    turn,
)
from tests.explorers.test_compile import CAPTURES

PAGE = "explorers/compile.html"
STAGES = ("python", "bytecode", "dynamo", "joint", "partition")


def state(program: str, stage: str, graph: int = 1, cut: str = "1.0") -> str:
    pairs = [("program", program), ("stage", stage)]
    pairs += [("graph", str(graph))] if graph > 1 else []
    return urlencode([*pairs, ("cut", cut)] if cut != "1.0" else pairs)


def show(page: Page, site: str, program: str, stage: str, graph: int = 1, cut: str = "1.0") -> None:
    """Open a state; where the page is open already, only the address changes."""
    page.goto(f"{site}{PAGE}#{state(program, stage, graph, cut)}", wait_until="load")
    expect(page.locator(f"input[name=cp-stage][value={stage}]")).to_be_checked()
    expect(page.locator(f"input[name=cp-program][value={program}]")).to_be_checked()


SHOWN = """() => [...document.querySelectorAll(".cp-scroll .node")].map((node) => ({
  name: node.dataset.name,
  saved: Boolean(node.querySelector(".double")) && node.textContent.includes("▾ saved"),
  twice: node.textContent.includes("↻") && node.classList.contains("twice"),
  late: node.classList.contains("late"),
}))"""


def test_every_graph_is_drawn_as_captured(watch: Watch, site: str) -> None:
    page = watch.page
    for program in CAPTURES:
        for number, frame in enumerate(program["frames"], 1):
            for stage in ("dynamo", "joint"):
                show(page, site, program["id"], stage, number)
                rows: list[Any] = frame[stage]
                shown = page.evaluate(SHOWN)
                assert [node["name"] for node in shown] == [row[0] for row in rows]
                edges = page.locator(".cp-scroll .edge").count()
                assert edges == sum(len(row[3]) for row in rows)
            for setting, which in [("default", 0), ("1.0", 11), ("0.5", 6), ("0.0", 1)]:
                show(page, site, program["id"], "partition", number, setting)
                cut = frame["cuts"][frame["which"][which]]
                shown = page.evaluate(SHOWN)
                assert [i for i, node in enumerate(shown) if node["saved"]] == sorted(cut["saved"])
                marks = "".join("r" if node["twice"] else "." for node in shown)
                assert marks == "".join("r" if mark == "r" else "." for mark in cut["where"])


def test_guards_breaks_and_calls_are_told(watch: Watch, site: str) -> None:
    page = watch.page
    for program in CAPTURES:
        show(page, site, program["id"], "python")
        told = page.locator("compile-explorer").inner_text()
        for frame in program["frames"]:
            for guard in frame["guards"]:
                assert guard in told
        for found in program["breaks"]:
            assert f"Line {found['line']} breaks the graph." in told
            assert found["title"] in told
        for call in program["calls"]:
            assert call["call"] in told
    expect(page.locator(".cp-calls li").nth(2)).to_contain_text("guards hold, nothing compiled")
    expect(page.locator(".cp-calls li").nth(1)).to_contain_text("expected 4, actual 5")
    show(page, site, "branch", "bytecode")
    assert page.locator(".cp-bytes").first.locator("li > div > div").count() == 18
    expect(page.locator(".cp-bytes").nth(1).locator(".loud")).to_have_count(3)


def test_the_budget_moves_the_cut(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "loop", "partition")
    said = page.locator(".cp-what")
    expect(said).to_contain_text("1,280 bytes")
    tab_to(page, "#cp-budget")
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
    assert address(page) == {"program": "loop", "stage": "partition", "cut": "0.4"}
    expect(said).to_contain_text("768 bytes")
    expect(page.locator(".cp-table .here")).to_contain_text("budget 0.6 to 0.4")
    expect(page.get_by_role("status")).to_contain_text("768 bytes")
    page.get_by_role("button", name="default_partition", exact=True).click()
    assert address(page)["cut"] == "default"
    expect(page.locator(".cp-table .here")).to_contain_text("1,792 bytes")
    show(page, site, "dropout", "partition", cut="0.0")
    expect(said).to_contain_text("these gradients are not eager's")
    expect(page.locator(".cp-table .here")).to_contain_text("✗ wrong gradients")


def test_the_keyboard_alone_goes_through_the_stages(watch: Watch, site: str) -> None:
    page = watch.page
    show(page, site, "pointwise", "python")
    tab_to(page, "input[name=cp-stage]")
    for stage in STAGES[1:]:
        page.keyboard.press("ArrowRight")
        assert address(page)["stage"] == stage
    press_on(page, "#cp-budget", "Home", cut="0.0")
    page.reload()
    tab_to(page, "input[name=cp-program]")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    assert address(page)["program"] == "branch"
    press_on(page, "input[name=cp-graph]", "ArrowRight", graph="2")


LIT = """() => [...document.querySelectorAll(".lit")].map((e) => e.dataset.name ?? (e.closest(".cp-code") ? "line " : "bytecode ") + e.dataset.lines)"""


def test_a_line_its_instructions_and_its_nodes_light_up_together(watch: Watch, site: str) -> None:
    """By mouse, by focus, and held by a click or a key: then the address says it, too."""
    page = watch.page
    show(page, site, "branch", "dynamo")
    link = page.locator(".cp-link")
    expect(link).to_contain_text("Point at a line")
    node, line = page.locator(".cp-scroll .node"), page.locator(".cp-code li")
    for pointed in (line.nth(2), node.filter(has_text="gt")):
        pointed.hover()
        assert page.evaluate(LIT) == ["line 3", "sum_1", "gt"]
        expect(link).to_have_text("Line 3: 2 nodes of this graph, sum_1, gt.")
    page.get_by_role("heading", level=1).hover()
    assert page.evaluate(LIT) == []
    tab_to(page, ".cp-code li")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(LIT) == ["line 2", "y"]
    page.keyboard.press("Enter")
    assert address(page)["line"] == "2"
    expect(line.nth(1)).to_have_attribute("aria-selected", "true")
    expect(line.nth(1)).to_be_focused()
    expect(page.get_by_role("status")).to_contain_text("Line 2: 1 node of this graph, y.")
    tab_to(page, ".cp-scroll .node")
    page.keyboard.press("End")
    assert page.evaluate(LIT) == ["line 3", "sum_1", "gt"]
    page.keyboard.press(" ")
    assert address(page)["line"] == "3"
    expect(node.filter(has_text="gt")).to_be_focused()
    page.get_by_text("2 Bytecode").click()
    assert page.evaluate(LIT) == ["line 3", "bytecode 3", "bytecode 2 3"]
    page.locator(".cp-bytes").nth(1).get_by_text("__compiled_fn_1").hover()
    assert page.evaluate(LIT) == ["line 2", "line 3", "bytecode 2", "bytecode 3", "bytecode 2 3"]
    page.locator(".cp-bytes").first.get_by_text("COMPARE_OP >").click()
    assert "line" not in address(page)
    page.get_by_text("4 Joint graph").click()
    line.nth(1).hover()
    assert page.evaluate(LIT) == ["line 2", "mul", "mul_1"]


OWN = """import torch


@torch.compile(mode="reduce-overhead")
def f(x, w):
    h = torch.relu(x @ w)
    print("at home")
    return (h * 2).sum()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)

    def forward(self, x):
        return self.layer(x).exp()


for n in (4, 5, 6):
    f(torch.randn(n, 8, requires_grad=True), torch.randn(8, 3)).backward()
net = Net()
net.compile(dynamic=True)
with torch.no_grad():
    net(torch.ones(3, 8))
big = torch.compile(lambda x: sum(x * k for k in range(90)))
big(torch.ones(2, requires_grad=True))
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The capture of a program of somebody's own, as the command writes it."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "f.py").write_text(OWN, encoding="utf-8")
    done = python_in(folder, "-m", "grader.commands.main", "capture", "f.py", COLUMNS="200")
    assert done.stdout.count("at home") == 3
    assert "compiled frames written to f.capture.json" in done.stdout
    return folder / "f.capture.json"


def test_the_page_opens_what_the_command_wrote(watch: Watch, site: str, own: Path) -> None:
    """There and back: each call, break, frame and node of somebody's own file is shown."""
    page = watch.page
    program = json.loads(own.read_text(encoding="utf-8"))["program"]
    calls = [(call["call"], call["frames"], call["ran"]) for call in program["calls"]]
    assert calls[:4] == [
        ("f(x 4×8, w 8×3)", [0, 1], True), ("f(x 5×8, w 8×3)", [2, 3], True),
        ("f(x 6×8, w 8×3)", [], True), ("Net(x 3×8)", [4], True),
    ]  # fmt: skip
    assert [(one["line"], one["title"]) for one in program["breaks"]] == [
        (7, "Failed to trace builtin operator")
    ]
    page.goto(f"{site}{PAGE}", wait_until="load")
    page.set_input_files("#cp-file", own)
    expect(page.get_by_role("radio", name="f.py")).to_be_checked()
    lines = page.locator(".cp-code li code").all_text_contents()
    assert lines == OWN.rstrip().split("\n")
    told = page.locator("compile-explorer").inner_text()
    for call in program["calls"]:
        assert call["call"] in told
    for number, frame in enumerate(program["frames"], 1):
        for stage in ("dynamo", "joint"):
            turn(page, f"program=own&stage={stage}" + (f"&graph={number}" if number > 1 else ""))
            shown = page.locator("[data-name]").evaluate_all("(all) => all.map((e) => [e.dataset.name, Number(e.dataset.lines ?? 0)])")  # fmt: skip
            assert shown == [[row[0], row[6]] for row in frame[stage]]
    assert len(program["frames"][5]["joint"]) > 160
    expect(page.locator(".cp-rows li")).to_have_count(len(program["frames"][5]["joint"]))
    turn(page, "program=own&stage=joint&graph=5")
    expect(page.locator(".cp-what")).to_contain_text("nothing here asked for gradients")
    turn(page, "program=own&stage=partition&graph=6")
    expect(page.locator("#cp-budget")).to_be_hidden()
    expect(page.locator(".cp-table tbody tr")).to_have_count(2)
    page.set_input_files(
        "#cp-file", {"name": "g.json", "mimeType": "application/json", "buffer": own.read_bytes().replace(b'"f.py"', b'"g.py"')}
    )  # fmt: skip
    expect(page.get_by_role("radio", name="g.py")).to_be_checked()
    page.locator(".ut-tools").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("radio", name="f.py")).to_be_checked()
    expect(page.locator(".cp-table tbody tr")).to_have_count(2)
    turn(page, "program=own&stage=python")
    assert_every_state_fits(watch, [f"program=own&stage={stage}&line=6" for stage in STAGES])


def wrong(**changes: object) -> str:
    return json.dumps({"undertorch": "capture", "version": 1, "program": {}} | changes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import torch", "This is no capture: it is not JSON."),
        ("[]", "This is no capture. undertorch capture f.py writes one."),
        ("null", "This is no capture. undertorch capture f.py writes one."),
        (wrong(version=2), "of version 2, and the page reads version 1"),
        (wrong(), "This capture is damaged, at its title."),
        (wrong(program={"title": "", "source": "", "frames": []}), "damaged, at its frames."),
    ],
)  # fmt: skip
def test_a_bad_file_gives_a_sentence(watch: Watch, site: str, text: str, said: str) -> None:
    page = watch.page
    show(page, site, "loop", "joint")
    page.set_input_files(
        "#cp-file", {"name": "x.json", "mimeType": "application/json", "buffer": text.encode()}
    )
    expect(page.get_by_role("alert")).to_contain_text(said)
    assert address(page) == {"program": "loop", "stage": "joint"}
    expect(page.locator("input[name=cp-program]")).to_have_count(len(CAPTURES))


DAMAGED = """async ([texts, stages]) => {
  const explorer = document.querySelector("compile-explorer");
  const found = { refused: 0, shown: 0, broken: [] };
  for (const [i, text] of texts.entries()) {
    try {
      await explorer.open(new File([text], "x.json"));
      if (!explorer.fault.hidden) { found.refused += 1; continue; }
      for (const graph of explorer.program.frames.keys()) for (const stage of stages) for (const cut of ["default", "0.5"])
        explorer.change({ stage, graph: graph + 1, cut, line: 1 });
      found.shown += 1;
    } catch (error) { found.broken.push(`${i}: ${error}`); }
  }
  return found;
}"""


def test_a_damaged_file_breaks_nothing(watch: Watch, site: str, own: Path) -> None:
    """Whatever single value of it is another: either a sentence, or all of it can be shown."""
    rng = random.Random(5)
    whole = json.loads(own.read_text(encoding="utf-8"))
    program = whole["program"]
    program["frames"] = [frame for frame in program["frames"] if len(frame["joint"]) < 20][:2]
    program["calls"] = [call for call in program["calls"] if max(call["frames"], default=9) < 2]
    texts = []
    for _ in range(250):
        damaged = json.loads(json.dumps(whole))
        at, path = damaged["program"], []
        while True:
            keys = list(at) if isinstance(at, dict) else range(len(at))
            key = rng.choice(keys)
            path.append(key)
            if not isinstance(at[key], dict | list) or not at[key] or rng.random() < 0.1:
                break
            at = at[key]
        at[key] = rng.choice([None, -1, 0, 7, 1e9, 0.5, "", "x|y", "<b>", [], {}, [[]], True])
        texts.append(json.dumps(damaged))
    watch.page.goto(f"{site}{PAGE}", wait_until="load")
    found = watch.page.evaluate(DAMAGED, [texts, STAGES])
    assert not found["broken"], found
    assert found["refused"] > 80 and found["shown"] > 40, found


@pytest.mark.parametrize("at", ["", "program=nonsense", "program=loop&stage=x&graph=99&cut=7", "stage=joint"])  # fmt: skip
def test_an_address_may_hold_anything(watch: Watch, site: str, at: str) -> None:
    watch.page.goto(f"{site}{PAGE}#{at}", wait_until="load")
    expect(watch.page.locator(".cp-what")).to_contain_text(re.compile("graph|operations"))


def test_every_state_fits(watch: Watch, site: str) -> None:
    states = [state(one["id"], stage, len(one["frames"])) for one in CAPTURES for stage in STAGES]
    watch.page.goto(f"{site}{PAGE}#{states[0]}", wait_until="load")
    assert_every_state_fits(watch, states)


def test_it_works_from_disk(watch: Watch, built: Path) -> None:
    watch.page.goto((built / PAGE).as_uri() + "#program=mlp&stage=joint", wait_until="load")
    expect(watch.page.locator(".cp-scroll svg")).to_be_visible()
