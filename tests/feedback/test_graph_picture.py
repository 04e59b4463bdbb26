"""Pictures of graphs: each node and edge once, nothing over anything, marks true, the same from a box."""

import json
import random
import re
import warnings
import xml.etree.ElementTree as ET
from itertools import combinations, pairwise

import pytest
import torch
from torch._functorch.aot_autograd import aot_function
from torch._functorch.partitioners import (
    default_partition,
    min_cut_rematerialization_partition,
)

from grader import Mismatch, assert_equal, graph_facts, show_graph
from grader.evidence.outcome import Outcome
from grader.evidence.wire.codec import decode, encode
from grader.evidence.wire.graph import Node, nodes_of
from grader.feedback.graph_picture import NOTEBOOK, VERDICT, graphs_html, picture_of
from grader.feedback.graph_placement import GAP, LANE, place
from grader.feedback.render import to_html
from grader.verdict.verdict import CheckResult, State, Verdict, message_for


def html(*graphs, **named):
    return show_graph(*graphs, **named)._repr_mimebundle_()["text/html"]


def tree(markup):
    return ET.fromstring(markup)


def words(markup):
    return " ".join(" ".join(tree(markup).itertext()).split())


def paths(markup, look):
    return "".join(path.get("d") for path in tree(markup).iterfind(f".//path[@class='{look}']"))


def halves(f, *inputs, partition=default_partition):
    """Return the joint graph of `f`, its forward and its backward."""
    seen = []

    def cut(joint, *args, **kwargs):
        seen.append(joint)
        return partition(joint, *args, **kwargs)

    def keep(gm, example_inputs):
        seen.append(gm)
        return gm

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = aot_function(f, keep, keep, partition_fn=cut)(*inputs)
        result.sum().backward()
    return seen


def attention(x, w, v):
    return torch.nn.functional.dropout(torch.softmax((x @ w).relu() @ v, -1), 0.5).exp().sum()


@pytest.fixture(scope="module")
def captured():
    return halves(
        attention, *(torch.randn(n, m).requires_grad_() for n, m in [(4, 8), (8, 3), (3, 5)])
    )


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.scale = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        x.exp()
        y = self.layer(x) * self.scale
        return torch.cat([y, y, x.relu()], dim=-1)[..., 1:4], y + 1


def drawn_graph(seed, size):
    """Return a random graph as facts: any node may read up to three before it."""
    rng = random.Random(seed)
    nodes = []
    for i in range(size):
        read = rng.sample(nodes, min(len(nodes), rng.choice([0, 1, 1, 2, 3])))
        op = "call_function" if read else "placeholder"
        names = [node["name"] for node in read]
        nodes.append({"name": f"n{i}", "op": op, "target": "aten.add.Tensor", "inputs": names})
    nodes.append(
        {
            "name": "output",
            "op": "output",
            "target": "output",
            "inputs": [n["name"] for n in nodes[-2:]],
        }
    )
    return nodes


# ── As plain data ──


def test_facts_say_what_the_graph_says():
    facts = graph_facts(torch.fx.symbolic_trace(Small()))
    named = {node["name"]: node for node in facts}
    assert [node["name"] for node in facts] == [
        "x",
        "exp",
        "layer",
        "scale",
        "mul",
        "relu",
        "cat",
        "getitem",
        "add",
        "output",
    ]
    assert named["cat"]["inputs"] == ("mul", "mul", "relu")
    assert named["cat"]["arguments"] == "[%mul, %mul, %relu], dim=-1"
    assert (named["mul"]["target"], named["mul"]["op"]) == ("operator.mul", "call_function")
    assert (named["getitem"]["arguments"], named["output"]["inputs"]) == (
        "%cat, [..., 1:4]",
        ("getitem", "add"),
    )
    assert (named["layer"]["op"], named["scale"]["op"]) == ("call_module", "get_attr")


def test_facts_have_sizes_where_somebody_knew_them(captured):
    named = {node["name"]: node for node in graph_facts(captured[0])}
    assert (named["mm"]["dtype"], named["mm"]["size"], named["mm"]["bytes"]) == (
        "float32",
        (4, 3),
        48,
    )
    assert named["native_dropout"]["size"] is None
    assert named["mm"]["target"] == "aten.mm.default"
    graphs = []
    torch._dynamo.reset()
    torch.compile(lambda x: x * 2, backend=lambda gm, _: graphs.append(gm) or gm, dynamic=True)(
        torch.ones(3, 4)
    )
    (node,) = [node for node in graph_facts(graphs[0]) if node["target"].endswith("mul")]
    assert node["bytes"] is None and all(isinstance(n, str) for n in node["size"])


def test_facts_cross_the_boundary(captured):
    facts = graph_facts(captured[0])
    assert (
        nodes_of(decode(encode(facts)))
        == nodes_of(json.loads(json.dumps(facts)))
        == nodes_of(facts)
    )
    assert html(decode(encode(facts))) == html(captured[0])


@pytest.mark.parametrize(
    "wrong", [3, "text", [3], [{"inputs": "x"}], [{"inputs": 3}], [{"size": 3}]]
)
def test_what_is_no_graph_is_refused(wrong):
    with pytest.raises(ValueError, match=r"graph|node"):
        nodes_of(wrong)
    with pytest.raises(TypeError, match="no FX graph"):
        show_graph(torch.nn.ReLU())


# ── Where things stand ──


@pytest.mark.parametrize("seed", range(30))
def test_nothing_lies_over_anything(seed):
    rng = random.Random(seed)
    graph = drawn_graph(seed, rng.choice([1, 2, 5, 12, 40]))
    edges = {node["name"]: node["inputs"] for node in graph}
    widths = {name: rng.randint(30, 200) for name in edges}
    placed = place(edges, widths, ["output"])
    level = {name: i for i, row in enumerate(placed.rows) for name in row}
    assert sorted(level) == sorted(edges), "each node once"
    assert set(placed.routes) == {(a, b) for b in edges for a in edges[b]}, "each edge once"
    taken = [[(placed.middle[n], widths[n]) for n in row] for row in placed.rows]
    for (source, to), route in placed.routes.items():
        assert level[source] < level[to] and len(route) == level[to] - level[source] + 1
        assert (route[0], route[-1]) == (placed.middle[source], placed.middle[to])
        for passed, x in enumerate(route[1:-1], level[source] + 1):
            taken[passed].append((x, LANE))
    for row in taken:
        for (left, wide), (right, other) in pairwise(sorted(row)):
            assert right - left >= (wide + other) / 2 + GAP - 0.1
        assert all(x - w / 2 >= -0.1 and x + w / 2 <= placed.width + 0.1 for x, w in row)


def test_a_layout_is_the_same_each_time():
    graph = drawn_graph(7, 40)
    assert html(graph) == html(graph)


def test_a_tree_has_no_crossings_and_stands_over_its_middle():
    placed = place(
        {"a": [], "b": [], "c": ["a"], "d": ["b"], "e": ["d", "c"]}, dict.fromkeys("abcde", 50)
    )
    assert placed.middle["e"] == (placed.middle["c"] + placed.middle["d"]) / 2
    assert (placed.middle["a"] < placed.middle["b"]) == (placed.middle["c"] < placed.middle["d"])


@pytest.mark.parametrize("seed", range(6))
def test_the_drawing_has_every_box_and_arrow_once(seed):
    graph = drawn_graph(seed, 25)
    markup = html(graph)
    boxes = "".join(paths(markup, look) for look in ("r0", "r1", "r2", "u", "k"))
    edges = sum(len(set(node["inputs"])) for node in graph)
    assert boxes.count("M") == len(graph)
    assert paths(markup, "w").count("M") == paths(markup, "t").count("M") == edges
    texts = [text.text for text in tree(markup).iterfind(".//text[@class='b']")]
    assert sorted(texts) == sorted(node["name"] for node in graph)
    corners = [
        tuple(map(float, found))
        for found in re.findall(r"M(\S+) (\S+?)h(\d+)v(\d+)", paths(markup, "r0"))
    ]
    for (x, y, w, h), (a, b, c, d) in combinations(corners, 2):
        assert x + w <= a or a + c <= x or y + h <= b or b + d <= y


# ── What is marked ──


def test_the_halves_of_a_partition_show_what_lies_between(captured):
    _, forward, backward = captured
    picture = show_graph(forward=forward, backward=backward)
    (ends,) = [node for node in graph_facts(forward) if node["op"] == "output"]
    taken = {
        node["name"]: node["bytes"] for node in graph_facts(backward) if node["op"] == "placeholder"
    }
    tangents = [name for name in taken if name.startswith("tangents")]
    kept = set(taken) - set(tangents)
    assert picture.graphs[0].saved == picture.graphs[1].saved == kept == set(ends["inputs"][1:])
    total = sum(taken[name] for name in kept)
    assert f"{len(kept)} tensors, {total} bytes." in str(picture)
    markup = html(forward=forward, backward=backward)
    assert paths(markup, "d").count("M") == 2 * len(kept), "a second frame on either side"
    assert f"saves {len(kept)}" in words(markup)
    assert words(markup).count("▾ saved") == 2 * len(kept)
    assert show_graph(backward).graphs[0].saved == kept, "known from the backward alone"


def test_a_joint_graph_shows_its_two_halves(captured):
    (one,) = show_graph(captured[0]).graphs
    assert {"tangents_1", "threshold_backward", "mul"} <= one.late
    assert not {"primals_1", "mm", "relu", "t", "detach_5"} & one.late
    assert {"relu", "getitem_1", "primals_1"} <= one.saved
    assert "native_dropout" not in one.saved
    assert "cut corners: needs a tangent" in words(html(captured[0]))


def test_before_and_after_are_no_halves():
    gm = torch.fx.symbolic_trace(lambda x, y: (x, x * y))
    both = show_graph(before=gm, after=gm)
    assert not both.graphs[0].saved and not both.graphs[1].saved


def test_min_cut_keeps_less():
    x = torch.randn(8, 8).requires_grad_()
    most, least = (
        show_graph(*halves(lambda x: x.sin().cos().exp().tanh(), x, partition=cut)[1:]).graphs[0]
        for cut in (default_partition, min_cut_rematerialization_partition)
    )
    assert len(least.saved) < len(most.saved)


def test_what_nobody_reads_is_dashed():
    markup = html(torch.fx.symbolic_trace(Small()))
    assert paths(markup, "u").count("M") == 1
    assert "dashed: nobody reads it" in words(markup)
    assert "add (·, 1)" in words(markup)


def test_the_text_is_a_picture_too():
    gm = torch.fx.symbolic_trace(lambda x: x.relu() * 2)
    assert str(show_graph(gm)).splitlines() == [
        "1 input, 2 operators.",
        "  %x      input",
        "  %relu   .relu(%x)",
        "  %mul    operator.mul(%relu, 2)",
        "  output  (%mul)",
    ]


# ── Whatever comes ──


@pytest.mark.parametrize("size", [500, 2_000])
def test_a_large_graph_is_cut_short(size):
    graph = drawn_graph(1, size)
    markup = html(graph)
    assert len(markup) < 200_000
    left_out = int(re.search(r"… and (\d+) more nodes", words(markup))[1])
    shown = len(list(tree(markup).iterfind(".//text[@class='b']")))
    assert shown + left_out == len(graph) and shown <= NOTEBOOK
    assert len(str(show_graph(graph))) < 20_000


def test_a_dense_graph_is_drawn_in_part():
    names = [f"n{i}" for i in range(200)]
    graph = [
        {"name": n, "op": "call_function", "target": "cat", "inputs": names[:i]}
        for i, n in enumerate(names)
    ]
    assert len(html(graph)) < 200_000


def test_names_are_not_trusted():
    hostile = [
        {"name": "</text><script>x</script>", "op": "placeholder", "target": "&", "inputs": []},
        {
            "name": "a",
            "op": "call_function",
            "target": "<b>\ud800",
            "inputs": ["a", "b", "</text><script>x</script>"],
        },
        {
            "name": "a",
            "op": "no such op",
            "target": "x" * 10_000,
            "inputs": ["a"],
            "size": [2**80] * 99,
        },
        {"name": "b", "op": "output", "target": "", "inputs": ["a", "a"], "arguments": "\x00"},
        {"name": "c", "op": "call_function", "bytes": -1, "dtype": "<i>"},
    ]
    for markup in (html(hostile), graphs_html([("<i>", nodes_of(hostile))])):
        assert "<script" not in markup and "<b>" not in markup and "<i>" not in markup
        assert len(markup) < 20_000
        tree(markup.replace("\x00", ""))
    assert html([]) and str(show_graph([])) == "0 inputs, 0 operators."


# ── In a verdict ──


def test_a_verdict_carries_graphs(captured):
    facts = decode(encode(graph_facts(captured[0])))
    with pytest.raises(Mismatch) as caught:
        assert_equal(3, 2, "One operator too many.", graphs=[("yours", facts)])
    check = CheckResult("check", "Counts", 1.0, 0.0, State.FAILED, message_for(caught.value))
    live = Verdict("x", "X", 0.0, 1.0, Outcome.FAILED, checks=(check,))
    kept = Verdict.from_data(json.loads(json.dumps(live.to_data())))
    assert live == kept
    assert to_html(live) == to_html(kept)
    assert "threshold_backward" in to_html(live)
    old = live.to_data()
    del old["checks"][0]["message"]["graphs"]
    assert Verdict.from_data(old).checks[0].message.graphs == ()


def test_a_verdict_shows_fewer_nodes():
    markup = graphs_html([("yours", nodes_of(drawn_graph(3, 500)))])
    assert markup.count('class="b"') <= VERDICT
    assert len(markup) < 40_000


def test_a_picture_has_words_in_its_place():
    one = Node("x", "placeholder", "x"), Node("y", "call_function", "relu", ("x",))
    markup = graphs_html([("", one)])
    assert tree(markup).find(".//desc").text == "y reads x."
    assert tree(markup).find(".//title").text == "Graph: 1 input, 1 operator."
    assert picture_of([("", one)]) == show_graph([node.to_data() for node in one])
