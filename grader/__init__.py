"""Undertorch's grader: what a notebook, a probe or a check imports.

    from grader import grade, show_graph, show_storage    # in a notebook
    from grader import probe, watch_memory                # in a chapter's probes, and in a notebook
    from grader import assert_same_bits, gate, points     # in a chapter's checks

Names are fetched when they are first used: a box imports this package too, and must stay light.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from grader.inside import interrupts

# nbformat imports jsonschema, which tries this package, to check addresses of which no notebook has any:
# its grammar costs each process that reads a notebook 1.2 s. Jupyter's server, which may want it, has it.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

_NOTEBOOK = {
    "grade": "grader.student.live",
    "hint": "grader.student.stuck",
    "locate": "grader.student.locating",
    "predict": "grader.student.predict",
    "progress": "grader.student.chapter_progress",
    "show_storage": "grader.feedback.storage_picture",
    "show_graph": "grader.feedback.graph_picture",
    "solution": "grader.student.stuck",
    "written": "grader.student.written",
}
"""For whoever reads a notebook. A box does not hold these: there they do nothing."""

_PROBES = {
    "apart": "grader.inside.instruments.apart",
    "each": "grader.inside.probe",
    "facts": "grader.evidence.wire.tensors",
    "fresh_dynamo": "grader.inside.instruments.dynamo",
    "graph_facts": "grader.evidence.wire.graph",
    "Hung": "grader.inside.instruments.apart",
    "on_ranks": "grader.inside.instruments.ranks",
    "pause": "grader.inside.instruments.patience",
    "probe": "grader.inside.probe",
    "RanksHung": "grader.inside.instruments.ranks",
    "wait_for": "grader.inside.instruments.patience",
    "watch_collectives": "grader.inside.instruments.collectives",
    "watch_events": "grader.inside.instruments.events",
    "watch_flops": "grader.inside.instruments.flops",
    "watch_memory": "grader.inside.instruments.memory",
    "watch_ops": "grader.inside.instruments.ops",
    "watch_saved": "grader.inside.instruments.saved",
}

_CHECKS = {
    "about": "grader.verdict.compare",
    "assert_close": "grader.verdict.compare",
    "assert_equal": "grader.verdict.compare",
    "assert_holds": "grader.verdict.compare",
    "assert_raises": "grader.verdict.interview",
    "assert_same_bits": "grader.verdict.compare",
    "assert_same_layout": "grader.verdict.compare",
    "assert_tensor": "grader.verdict.compare",
    "awkward_tensor": "grader.verdict.inputs",
    "bits": "grader.verdict.compare",
    "claimed": "grader.verdict.checks",
    "compared": "grader.verdict.compare",
    "draw_int": "grader.verdict.inputs",
    "draw_layout": "grader.verdict.inputs",
    "draw_one": "grader.verdict.inputs",
    "draw_order": "grader.verdict.inputs",
    "Evidence": "grader.verdict.interview",
    "free_choice": "grader.verdict.compare",
    "gate": "grader.verdict.checks",
    "kept": "grader.verdict.kept",
    "layout_of": "grader.evidence.layout",
    "Mismatch": "grader.verdict.compare",
    "NOTHING": "grader.verdict.compare",
    "odd_tensors": "grader.verdict.inputs",
    "permuted_tensor": "grader.verdict.inputs",
    "points": "grader.verdict.checks",
    "python_random": "grader.verdict.inputs",
    "whole_numbers": "grader.verdict.inputs",
}

_HOMES = _NOTEBOOK | _PROBES | _CHECKS

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'grader' has no attribute {name!r}")
    home = _HOMES[name]
    try:
        with interrupts.held():  # half an import stays half for the process's life
            return getattr(import_module(home), name)
    except ModuleNotFoundError as error:
        if name in _NOTEBOOK and error.name is not None and home.startswith(error.name):
            return _shown_to_nobody
        raise


def show_to_nobody() -> None:
    """Let what shows something in a notebook do nothing in this process, as in a box."""
    globals().update(dict.fromkeys(_NOTEBOOK, _shown_to_nobody))


def _shown_to_nobody(*arguments: object, **keywords: object) -> bool:
    """Stand in a box, or a fork, for what shows something in a notebook: nobody looks there.

    True, because `if written("einsum"):` may hold names that an answer uses.
    """
    return True
