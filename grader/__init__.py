"""Undertorch's grader: what a notebook, a probe or a check imports.

    from grader import grade, show_graph, show_storage    # in a notebook
    from grader import graph_facts, probe                 # in a chapter's probes.py
    from grader import assert_same_bits, gate, points     # in a chapter's checks

Names are fetched when they are first used: a box imports this package too, and must stay light.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "grade": "grader.core.live",
    "predict": "grader.core.predict",
    "show_storage": "grader.core.picture",
    "show_graph": "grader.core.graph_picture",
    "graph_facts": "grader.core.graph",
    "each": "grader.core.probe",
    "probe": "grader.core.probe",
    "facts": "grader.core.tensors",
    "claimed": "grader.core.checks",
    "gate": "grader.core.checks",
    "points": "grader.core.checks",
    "Mismatch": "grader.core.compare",
    "NOTHING": "grader.core.compare",
    "assert_close": "grader.core.compare",
    "assert_equal": "grader.core.compare",
    "assert_holds": "grader.core.compare",
    "about": "grader.core.compare",
    "assert_raises": "grader.core.evidence",
    "assert_same_bits": "grader.core.compare",
    "assert_same_layout": "grader.core.compare",
    "assert_tensor": "grader.core.compare",
    "bits": "grader.core.compare",
    "compared": "grader.core.compare",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'grader' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
