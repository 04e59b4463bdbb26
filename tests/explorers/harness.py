"""What the tests of every explorer need: numbers across, keys, and the address.

A golden test sends vectors that torch made into the page and compares there: `Vectors` carries
arrays as bytes, so a NaN, a −0 and a 32-bit pattern arrive as they are.
"""

from __future__ import annotations

import base64
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl

import pytest
import torch
from playwright.sync_api import Page

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
    return dict(parse_qsl(fragment(page)))


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until the focus is on `selector`, as somebody without a mouse would."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("(s) => document.activeElement.matches(s)", selector):
            return
    pytest.fail(f"Tab never reaches {selector}")
