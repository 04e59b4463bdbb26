"""What the tests of every explorer need: numbers across, keys, and the address.

A golden test sends vectors that torch made into the page and compares there: `Vectors` carries
arrays as bytes, so a NaN, a −0 and a 32-bit pattern arrive as they are.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl

import pytest
import torch
from playwright.sync_api import Page

from tests import module_at
from tests.browser import DESK, PHONE, ROOT, Scheme, Watch, serve, watched

__all__ = ["DESK", "EXPLORERS", "PHONE", "ROOT", "Scheme", "Watch", "serve", "watched"]
EXPLORERS = ROOT / "site" / "explorers"


# torch dtype → the JavaScript array that reads the same bytes
ARRAYS = {
    torch.float64: "Float64Array",  # for patterns, too: exact up to 2^53, and a Number over there
    torch.uint8: "Uint8Array",
}

RUN = """async ({module, columns, body}) => {
  const names = await import(module);
  const read = ({type, bytes}) => new globalThis[type](
    Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0)).buffer);
  const given = Object.fromEntries(Object.entries(columns).map(([n, c]) => [n, c.type ? read(c) : c]));
  return new Function("m", "given", body)(names, given);
}"""


@dataclass(frozen=True)
class Outcome:
    """How many cases the page compared, how many differed, and the first of those in words."""

    cases: int
    wrong: int
    first: Sequence[str]


def compare(page: Page, module: str, body: str, **columns: torch.Tensor | Sequence[Any]) -> Outcome:
    """Run `body` in the page for a whole batch of golden vectors.

    `body` is JavaScript that returns a function of an index: null where the case is right, else
    a sentence. It sees the module as `m`, the columns as `given`; tensors arrive as typed arrays,
    other sequences as they are.
    """
    cases = {len(column) for column in columns.values()}
    assert len(cases) == 1, "columns of one length, please"
    wrapped = f"""const check = (() => {{ {body} }})();
      const first = []; let wrong = 0;
      for (let i = 0; i < {cases.copy().pop()}; i += 1) {{
        const said = check(i);
        if (said !== null) {{ wrong += 1; if (first.length < 8) first.push(said); }}
      }}
      return {{ wrong, first }};"""
    sent = {"module": module, "columns": _pack(columns), "body": wrapped}
    reply: dict[str, Any] = page.evaluate(RUN, sent)
    return Outcome(cases.pop(), reply["wrong"], reply["first"])


def _pack(columns: Mapping[str, torch.Tensor | Sequence[Any]]) -> dict[str, Any]:
    packed: dict[str, Any] = {}
    for name, column in columns.items():
        if isinstance(column, torch.Tensor):
            raw = bytes(column.contiguous().view(torch.uint8).numpy())
            packed[name] = {
                "type": ARRAYS[column.dtype],
                "bytes": base64.b64encode(raw).decode("ascii"),
            }
        else:
            packed[name] = list(column)
    return packed


def assert_right(outcome: Outcome, at_least: int) -> None:
    """No case differs, and there were as many as the test means to look at."""
    assert outcome.wrong == 0, f"{outcome.wrong} of {outcome.cases}:\n" + "\n".join(outcome.first)
    assert outcome.cases >= at_least


def fragment(page: Page) -> str:
    """What the address holds now. Not `page.url`, which hears of changes a little later."""
    return str(page.evaluate("location.hash.slice(1)"))


def address(page: Page) -> dict[str, str]:
    return dict(parse_qsl(fragment(page), keep_blank_values=True))


TURN = """(hash) => new Promise((done) => {
  if (location.hash === "#" + hash) return done();
  addEventListener("hashchange", () => done(), { once: true });
  location.hash = hash;
})"""


def turn(page: Page, state: str) -> None:
    """Another state in the page that is open, as a link to it would; it is shown on return."""
    page.evaluate(TURN, state)


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until the focus is on `selector`, as somebody without a mouse would."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("(s) => document.activeElement.matches(s)", selector):
            return
    pytest.fail(f"Tab never reaches {selector}")


def press_on(page: Page, selector: str, key: str, **state: str) -> None:
    """Go to `selector` by Tab and press a key there: the address then holds `state`."""
    tab_to(page, selector)
    page.keyboard.press(key)
    found = address(page)
    assert {name: found.get(name) for name in state} == state


# What may scroll in a box of its own is no fault, nor is what only a screen reader meets.
FAULTS = f"""async ([states, targets]) => {{
  const turn = {TURN};
  const explorer = document.querySelector(".ut-explorer");
  const scrolls = (e) => e !== explorer && (/auto|scroll/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  const named = (e) => (e.textContent || e.value || e.outerHTML).slice(0, 80);
  const faults = [];
  for (const state of states) {{
    await turn(state);
    if (location.hash.slice(1) !== state) faults.push(`${{state}}: rewritten as ${{location.hash}}`);
    const beyond = document.documentElement.scrollWidth - innerWidth;
    if (beyond > 0) faults.push(`${{state}}: the page is ${{beyond}} px too wide`);
    for (const e of explorer.querySelectorAll("*")) {{
      const {{ left, right }} = e.getBoundingClientRect();
      if ((right > innerWidth + 0.5 || left < -0.5) && e.clientWidth !== 1 && e.checkVisibility({{ opacityProperty: true }}) && !scrolls(e))
        faults.push(`${{state}}: sticks out: ${{named(e)}}`);
    }}
    for (const e of explorer.querySelectorAll(targets))
      if (e.checkVisibility() && (e.offsetWidth < 24 || e.offsetHeight < 24)) faults.push(`${{state}}: a finger needs 24 px: ${{named(e)}}`);
  }}
  return faults.slice(0, 20);
}}"""


def assert_every_state_fits(watch: Watch, states: Sequence[str], targets: str = "button") -> None:
    """On a phone in light and at a desk in dark, each state fits, and fingers hit `targets`.

    All states in one go in the page that is open, which must show one of this explorer's already.
    """
    for width, scheme in ((PHONE, "light"), (DESK, "dark")):
        watch.turn_to(width, scheme)
        watch.page.evaluate("new Promise((done) => setTimeout(done, 100))")  # it draws anew
        assert not watch.page.evaluate(FAULTS, [[state for state in states if state], targets])
        assert not watch.complaints


def inline() -> ModuleType:
    """The hook that puts modules into pages."""
    return module_at(EXPLORERS / "inline.py")


def python_in(
    folder: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder and a process of its own, which finds this course. It must end well."""
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": paths, **environment}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done
