"""Evidence as checks see it: values, inputs afterwards, aliasing, exceptions; and hostile replies."""

import json
import textwrap
from contextlib import suppress

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.box.here import Here
from grader.course.rules import parse_rule
from grader.evidence.outcome import Ended, Outcome
from grader.evidence.wire.codec import encode
from grader.evidence.wire.tensors import facts
from grader.inside.probe import probe
from grader.inside.serve import Inside, fresh_main
from grader.submission.program import Program
from grader.verdict import interview as interview_module
from grader.verdict.compare import Mismatch
from grader.verdict.interview import Interview, StudentRaised


@probe
def called(student, x):
    return student.f(x)


@probe
def called_with(student, x, others):
    return student.f(x, others)


@probe(in_place=("x",))
def changed(student, x):
    return student.f(x)


PROBES = {p.name: p for p in (called, called_with, changed)}


class Kernel:
    """Beside the student's code as a fork would be, in this process: fast, and it can be debugged."""

    def __init__(self, off_limits=()):
        import sys

        main = sys.modules["__main__"]
        self._inside = Inside(PROBES, fresh_main())
        sys.modules["__main__"] = main

    def ask(self, request):
        return self._inside.answer(request)

    def close(self):
        pass


def interview(source, off_limits=()):
    made = Interview(Kernel(), off_limits, seed=1)
    made.load(Program("f", (("f", textwrap.dedent(source)),)))
    return made


def evidence(source, x=None, kind=called, **others):
    x = torch.arange(6.0).reshape(2, 3) if x is None else x
    return interview(source).ask(kind, {"x": x, **others})


# ── Values and inputs ────────────────────────────────────────────────────────


def test_a_value():
    found = evidence("def f(x): return {'sum': x.sum(), 'shape': x.shape}")
    assert found.value == {"sum": torch.tensor(15.0), "shape": torch.Size([2, 3])}
    assert found.raised is None


def test_an_input_changed_in_place_fails_who_looks_at_the_value():
    found = evidence("def f(x): return x.add_(1)")
    with pytest.raises(Mismatch, match="changed its input `x` in place"):
        found.value  # noqa: B018
    assert torch.equal(found.inputs_after["x"], torch.arange(6.0).reshape(2, 3) + 1)


def test_an_input_that_is_to_be_changed():
    found = evidence("def f(x): return x.add_(1)", kind=changed)
    assert torch.equal(found.value, torch.arange(6.0).reshape(2, 3) + 1)
    assert facts(found.value).aliases == facts(found.inputs_after["x"]).storage


@pytest.mark.parametrize(
    "nest", [lambda t: [t], lambda t: {"w": (1, [t])}, lambda t: (None, {0: t})]
)
def test_a_change_deep_in_an_input_counts(nest):
    source = """
        import torch
        def f(x, others):
            def walk(value):
                if isinstance(value, torch.Tensor): value.zero_()
                elif isinstance(value, dict): [walk(item) for item in value.values()]
                elif isinstance(value, (list, tuple)): [walk(item) for item in value]
            walk(others)
    """
    found = evidence(source, kind=called_with, others=nest(torch.ones(2)))
    with pytest.raises(Mismatch, match="input `others` in place"):
        found.value  # noqa: B018


def test_a_change_beside_the_view_that_was_given_counts():
    whole = torch.arange(10.0)
    found = evidence("def f(x): torch = x.as_strided((10,), (1,), 0); torch[9] = 5", x=whole[2:4])
    with pytest.raises(Mismatch, match="in place"):
        found.value  # noqa: B018


def test_a_change_that_is_undone_is_none():
    assert evidence("def f(x): x.neg_(); x.neg_(); return 1").value == 1


def test_a_resized_input():
    found = evidence("def f(x): x.untyped_storage().resize_(100); return 1")
    with pytest.raises(Mismatch, match="resized"):
        found.value  # noqa: B018


def test_aliasing():
    source = "def f(x): return [x.t(), x.t().contiguous(), x[:, 1:].detach(), x]"
    found = evidence(source, x=torch.randn(8, 8)[1:3, ::2])
    storage = facts(found.inputs_after["x"]).storage
    view, copy, part, whole = found.value
    assert [facts(t).aliases for t in (view, copy, part, whole)] == [
        storage,
        None,
        storage,
        storage,
    ]
    assert (view.stride(), view.storage_offset()) == ((2, 8), 8)
    assert part.untyped_storage().data_ptr() == found.inputs_after["x"].untyped_storage().data_ptr()


def test_claiming_a_view_shows_the_bytes_that_are_there():
    """A false claim would be read from the grader's own copy of the input."""
    x = torch.arange(4.0)
    first = evidence("def f(x): return x.flip(0)", x=x).value
    assert facts(first).aliases is None
    assert first.tolist() == [3.0, 2.0, 1.0, 0.0]


def test_the_graders_inputs_are_its_own():
    x = torch.arange(3.0)
    evidence("def f(x): x.zero_()", x=x)
    assert x.tolist() == [0.0, 1.0, 2.0]


# ── What else comes back ─────────────────────────────────────────────────────


def test_an_exception():
    found = evidence("""
        def f(x):
            raise KeyError("missing")
    """)
    assert (found.raised.type, found.raised.message) == ("KeyError", "'missing'")
    assert found.raised.is_a("LookupError")
    assert found.raised.where[-1] == ("f", 3, 'raise KeyError("missing")')
    with pytest.raises(StudentRaised, match="missing"):
        found.value  # noqa: B018


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("def f(x): raise SystemExit", "SystemExit"),
        ("def f(x): raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("def f(x): return f(x)", "RecursionError"),
        ("def g(x): return 1", "MissingName"),
        ("f = 5", "NotCallable"),
        ("def f(: pass", "MissingName"),
    ],
)
def test_ways_to_raise(source, kind):
    assert evidence(source).raised.type == kind


def test_an_exception_that_cannot_be_printed():
    found = evidence("""
        class Mute(Exception):
            def __str__(self): raise ValueError
        def f(x): raise Mute
    """)
    assert (found.raised.type, found.raised.message) == ("Mute", "<Mute that cannot be printed>")


def test_what_a_loader_s_worker_raised():
    found = evidence("""
        from torch.utils.data import DataLoader
        def collate(samples):
            raise LookupError("no such sample")
        def f(x):
            return list(DataLoader([1, 2], num_workers=1, collate_fn=collate))
    """)
    assert found.raised.type == "LookupError"
    assert found.raised.message == "no such sample (in worker process 0)"
    assert found.raised.where[-1][0] == "collate"
    assert ".py" not in str(found.raised)


def test_warnings_and_printed_text():
    found = evidence("""
        import warnings
        def f(x):
            warnings.warn("careful", UserWarning)
            print("a" * 15_000)
            print("b" * 15_000)
    """)
    assert found.warnings == (("UserWarning", "careful"),)
    assert (len(found.stdout), found.stdout[15_001:15_003]) == (20_000, "bb")
    assert found.value is None


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ("lambda: 0", "a builtins.function"),
        ("x.to_sparse()", "layout torch.sparse_coo"),
        ("torch.zeros(2**24)", "more than"),
        ("Sly()", "__main__.Sly"),
        ("torch.zeros(1).expand(2**27)", "elements"),
    ],
)
def test_what_does_not_cross_fails_the_check(result, words):
    found = evidence(f"import torch\nclass Sly: pass\ndef f(x): return {result}")
    with pytest.raises(Mismatch, match=words):
        found.value  # noqa: B018


def test_a_result_and_changes_that_are_too_large_together():
    x = torch.zeros(5 * 2**20)
    found = evidence("def f(x): x.add_(1); return x + 1, x + 2", x=x, kind=changed)
    with pytest.raises(Mismatch, match="more than"):
        found.value  # noqa: B018


def test_settings_are_put_back():
    found = interview("""
        import torch
        def f(x):
            before = torch.is_grad_enabled(), torch.get_default_dtype()
            torch.set_grad_enabled(False); torch.set_default_dtype(torch.float64)
            return before
    """)
    for n in range(2):
        assert found.ask(called, {"x": n}).value == (True, torch.float32)


def test_hooks_of_saved_tensors_are_put_back():
    found = interview("""
        import torch
        def f(x):
            seen = []
            for _ in range(2):
                hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t), lambda t: t)
                hooks.__enter__()
            y = torch.ones(1, requires_grad=True).exp()
            return len(seen)
    """)
    theirs = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    with theirs:
        outer = torch._C._autograd._top_saved_tensors_default_hooks(False)
        assert found.ask(called, {"x": 1}).value == 1
        assert torch._C._autograd._top_saved_tensors_default_hooks(False) == outer
    assert torch._C._autograd._top_saved_tensors_default_hooks(False) is None


def test_questions_are_asked_once():
    source = "calls = []\ndef f(x):\n    calls.append(x)\n    return len(calls)"
    asked = interview(source)
    answers = [asked.ask(called, {"x": x}).value for x in (1, 1, 2, 1)]
    assert answers == [1, 1, 2, 1]


def test_off_limits_are_noted_in_forks_too():
    asked = interview(
        """
        import os, torch
        def f(x):
            child = os.fork()
            if child == 0:
                torch.sort(x)
                os._exit(0)
            os.waitpid(child, 0)
        """,
        off_limits=(parse_rule("torch.Tensor.cos"), parse_rule("torch.sort")),
    )
    asked.ask(called, {"x": torch.arange(3.0)})
    assert asked.tripped == [parse_rule("torch.sort")]


# ── Replies from someone hostile ─────────────────────────────────────────────

REPORT = {"type": "E", "mro": ["E"], "message": "", "where": [("f", 1, "x")]}
HONEST = {
    "value": encode(1),
    "refused": None,
    "raised": None,
    "changed": {},
    "warnings": [],
    "stdout": "",
    "tripped": [],
    "stray": "",
    "tampered": [],
}
LOADED = {"stopped": {}, "stdout": ""}


class Hostile:
    """Answers with what it was told to."""

    def __init__(self, *replies):
        self._replies = [r if isinstance(r, bytes) else encode(r) for r in replies]

    def ask(self, request):
        return self._replies.pop(0)

    def close(self):
        pass


def hostile(*replies):
    return Interview(Hostile(*replies), (), seed=1)


def killed_or(asked, action):
    """Ask, and act on the evidence, unless the interview was ended for a broken channel."""
    with suppress(Ended):
        action(asked.ask(called, {"x": torch.ones(2)}))
    assert asked.ended is None or asked.ended.outcome is Outcome.KILLED


def look(found):
    """Look at everything that evidence has; a check may fail in these ways and in no other."""
    for name in ("value", "raised", "inputs_after", "warnings", "stdout"):
        try:
            getattr(found, name)
        except (Mismatch, StudentRaised):
            continue


ODD = [None, True, -1, 2.5, "text", b"bytes", [], [1], (), {}, {1: 2}, {"type": "E"}, {-1: b""}]


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_an_odd_field_is_malformed_or_harmless(name, odd):
    asked = hostile({**HONEST, name: odd})
    killed_or(asked, look)


@pytest.mark.parametrize(
    "reply",
    [
        None,
        [],
        {},
        {**HONEST, "more": 1},
        {key: HONEST[key] for key in list(HONEST)[1:]},
        b"",
        b"UT01",
        encode(HONEST)[:-1],
        encode(HONEST) + b"x",
        json.dumps({"value": 1}).encode(),
        {**HONEST, "raised": {**REPORT, "where": [("f", "one", "x")]}},
        {**HONEST, "raised": {**REPORT, "where": [("f", 1)]}},
        {**HONEST, "raised": {**REPORT, "mro": "E"}},
        {**HONEST, "raised": {**REPORT, "message": None}},
        {**HONEST, "warnings": [("a", "b", "c")]},
        {**HONEST, "changed": {0: "text"}},
        {**HONEST, "tripped": [torch.ones(2)]},
    ],
)
def test_a_reply_of_the_wrong_shape_ends_the_interview(reply):
    asked = hostile(reply)
    with pytest.raises(Ended, match="disturbed the channel") as ended:
        asked.ask(called, {"x": torch.ones(2)})
    assert ended.value.outcome is Outcome.KILLED
    with pytest.raises(Ended):
        asked.ask(called, {"x": torch.zeros(2)})


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"stopped": [], "stdout": ""},
        {"stopped": {"f": {}}, "stdout": ""},
        {"stopped": {1: REPORT}, "stdout": ""},
    ],
)
def test_a_wrong_answer_to_loading(reply):
    with pytest.raises(Ended, match="disturbed"):
        hostile(reply).load(Program("f", ()))


@pytest.mark.parametrize("reply", [{}, {"raised": {}, "stdout": ""}, {"raised": None}])
def test_a_wrong_answer_to_a_plain_cell(reply):
    with pytest.raises(Ended, match="disturbed"):
        hostile(reply).run_plain("assert f")


@pytest.mark.parametrize("value", [b"", b"UT01", encode(HONEST)[:-1], None, b"\0" * 100])
def test_a_value_that_cannot_be_read_fails_the_check(value):
    found = hostile({**HONEST, "value": value}).ask(called, {"x": 1})
    with pytest.raises(Mismatch, match="cannot be read"):
        found.value  # noqa: B018


@pytest.mark.parametrize(("number", "data"), [(0, b""), (0, bytes(9)), (7, bytes(8)), (2**70, b"")])
def test_changes_that_do_not_fit(number, data):
    found = hostile({**HONEST, "changed": {number: data}}).ask(called, {"x": torch.ones(2)})
    with pytest.raises(Mismatch, match="resized"):
        found.value  # noqa: B018


def test_a_claimed_view_reads_the_graders_bytes():
    """Saying `known` gains nothing: what is read is the input's own after-state."""
    from grader.evidence.wire.codec import decode_with_storages

    x = torch.arange(4.0)
    _, storages = decode_with_storages(encode({"x": x}))
    lie = torch.empty(0).set_(storages[0], 0, [2, 2], [1, 2])
    found = hostile({**HONEST, "value": encode(lie, known=storages)}).ask(called, {"x": x})
    assert found.value.tolist() == [[0.0, 2.0], [1.0, 3.0]]


def test_all_replies_together_are_bounded(monkeypatch):
    monkeypatch.setattr(interview_module, "REPLIES_LIMIT", 1000)
    asked = hostile(*[{**HONEST, "value": bytes(400)}] * 3)
    asked.ask(called, {"x": 0})
    with pytest.raises(Ended, match="too large") as ended:
        asked.ask(called, {"x": 1})
    assert ended.value.outcome is Outcome.KILLED


DATA = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.binary(max_size=9)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=3) | st.integers(0, 2), inner, max_size=3),
        st.tuples(st.text(max_size=2), st.integers(), st.text(max_size=2)),
    ),
    max_leaves=6,
)


@settings(max_examples=150, derandomize=True, database=None)
@given(st.dictionaries(st.sampled_from(list(HONEST)), DATA, max_size=3))
def test_no_reply_crashes_the_grader(fields):
    asked = hostile({**HONEST, **fields})
    killed_or(asked, look)


def test_the_live_transport_answers_like_the_others():
    asked = Interview(Here(PROBES, {"f": lambda x: x * 2}), (), seed=1)
    assert asked.ask(called, {"x": 21}).value == 42
