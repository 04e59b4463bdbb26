"""Pictures of storage: true to torch, the same everywhere, readable as text, small in a verdict."""

import xml.etree.ElementTree as ET

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from grader import show_storage
from grader.evidence.layout import effective, layout_of, memory_format, reach, readers
from grader.evidence.wire.codec import decode, encode
from grader.feedback.storage_cells import NOTEBOOK, VERDICT, Gap, storages_of
from tests.strategies import layouts, tensors


def html(tensor, **named):
    given = () if tensor is None else (tensor,)
    return show_storage(*given, **named)._repr_mimebundle_()["text/html"]


def tree(markup):
    return ET.fromstring(markup)


def words(markup):
    return " ".join(" ".join(tree(markup).itertext()).split())


def window(size, stride, offset, cells):
    return torch.arange(cells).as_strided(size, stride, offset)


# ── True to torch ──


@given(layouts())
def test_every_cell_and_its_readers_are_torchs(drawn):
    size, stride, offset, needed = drawn
    tensor = window(size, stride, offset, max(needed, 1))
    layout = layout_of(tensor)
    found = readers(layout)
    assert sorted((place, cell) for cell, places in found.items() for place in places) == list(
        enumerate(tensor.flatten().tolist())
    )
    assert reach(layout) == max(found, default=-1) + 1


@settings(max_examples=400)
@given(st.data(), st.sampled_from([None, torch.channels_last, torch.channels_last_3d]))
def test_contiguity_is_torchs(data, form):
    dims = 4 if form is torch.channels_last else 5
    size, stride, offset, needed = data.draw(layouts(max_dims=5 if form is None else 0))
    if form is None:
        tensor = window(size, stride, offset, max(needed, 1))
    else:
        size = data.draw(st.lists(st.integers(1, 3), min_size=dims, max_size=dims))
        tensor = torch.empty(size).to(memory_format=form)
    kind = memory_format(layout_of(tensor))
    assert (kind == "contiguous") == tensor.is_contiguous()
    if kind.startswith("channels"):
        assert tensor.is_contiguous(memory_format=getattr(torch, kind))
    elif form is not None and not kind:
        assert not tensor.is_contiguous(memory_format=form)


@given(st.data())
def test_effective_layouts_are_equal_where_the_same_cells_are_read_in_order(data):
    size, stride, offset, needed = data.draw(layouts(max_dims=3, max_side=3))
    other = data.draw(st.lists(st.integers(0, 3), min_size=len(size), max_size=len(size)))
    first = window(size, stride, offset, max(needed, 1))
    second = window(size, other, offset, 100)
    same = first.tolist() == second.tolist()
    assert (effective(layout_of(first)) == effective(layout_of(second))) == same


@given(tensors())
def test_any_tensor_is_drawn(tensor):
    before = tensor.untyped_storage().nbytes()
    markup = html(tensor)
    assert tree(markup).get("class") == "ut-pic"
    assert "\n" not in markup
    assert "id=" not in markup
    assert tensor.untyped_storage().nbytes() == before
    assert str(tuple(tensor.shape)) in str(show_storage(tensor))


def test_the_values_drawn_are_the_tensors():
    x = torch.arange(6).reshape(2, 3) * 11
    shown = show_storage(x.T).shown[0]
    assert shown.stored == {cell: str(11 * cell) for cell in range(6)}
    z = torch.tensor([1 + 2j, 3 - 1j])
    conj, neg = show_storage(z.conj()).shown[0], show_storage(z.conj().imag).shown[0]
    assert (conj.stored[0], conj.read[0]) == ("1+2j", "1-2j")
    assert (neg.stored[1], neg.read[1]) == ("2.", "-2.")
    assert "conj bit" in words(html(z.conj()))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0."),
        (-2.004, "-2.004"),
        (-2.0004, "-2"),
        (1e5, "1e5"),
        (-123456.0, "-1.2e5"),
        (1.5e-7, "1.5e-7"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
    ],
)
def test_numbers_fit_a_cell(value, text):
    assert show_storage(torch.tensor(value, dtype=torch.float64)).shown[0].stored == {0: text}
    assert len(text) <= 6


# ── What a reader sees ──


def test_the_picture_has_words_in_its_place():
    markup = html(torch.arange(6.0).reshape(2, 3).T)
    drawing = tree(markup).find(".//svg")
    assert drawing.get("role") == "img"
    assert drawing.find("title").text == "Storage of 6 cells of 4 bytes, and who reads them"
    assert drawing.find("desc").text == "It reads cells 0, 3, 1, 4, 2, 5."
    assert "size (3, 2), stride (1, 3), offset 0; not contiguous" in words(markup)
    assert "[i, j] is cell 1·i + 3·j" in words(markup)


def test_the_text_is_a_picture_too():
    text = str(show_storage(torch.arange(7, dtype=torch.int16)[2:6].reshape(2, 2).T))
    assert text == "\n".join(
        [
            "int16, size (2, 2), stride (1, 2), offset 2; not contiguous.",
            "[i, j] is cell 2 + 1·i + 2·j.",
            "It reads 4 of the storage's 7 cells.",
            "",
            "cell     0  1  2  3  4  5  6",
            "holds    0  1  2  3  4  5  6",
            "element  -  -  0  2  1  3  -",
        ]
    )


def test_what_is_peculiar_is_said_and_marked_without_colour():
    expanded = html(torch.arange(3).expand(4, 3))
    assert "Dimension 0 has stride 0: its 4 indices read the same cells." in words(expanded)
    assert "Overlap" not in words(expanded)
    overlap = html(torch.arange(8).unfold(0, 4, 2))
    assert "Overlap: 4 cells of 8 are read by several indices." in words(overlap)
    assert "double frame: read by several indices" in words(overlap)
    frames = tree(overlap).find(".//svg/path[@class='d']").get("d")
    assert frames.count("M") == 4
    assert list(tree(overlap).findall(".//svg/path"))[-1].get("class") == "d", (
        "over the other boxes"
    )
    gaps = html(torch.arange(6)[1::2])
    assert "dashed: not read" in words(gaps)
    assert tree(gaps).find(".//svg/path[@class='u']").get("d").count("M") == 3
    assert "▾1" in words(gaps)


def test_tensors_of_one_storage_lie_on_one_strip():
    x = torch.arange(6).reshape(2, 3)
    together = show_storage(x=x, t=x.T)
    assert html(None, x=x, t=x.T).count("<svg") == 1
    assert str(together).endswith("x      0  1  2  3  4  5\nt      0  2  4  1  3  5")
    assert html(None, x=x, y=x.clone()).count("<svg") == 2
    assert html(None, x=x, b=x.view(torch.uint8)).count("<svg") == 2, "cells of another width"
    assert "tensor 2: int64" in str(show_storage(x, x.T))


@pytest.mark.parametrize("size", [(3, 0), (0,), (2, 0, 3)])
def test_an_empty_tensor_reads_nothing(size):
    assert "reads nothing of 0 cells" in words(html(torch.zeros(size)))
    assert "The storage is empty." in str(show_storage(torch.zeros(size)))
    window_on_nothing = torch.arange(4.0)[4:]
    assert "offset 4" in words(html(window_on_nothing))
    assert "reads nothing of 4 cells" in words(html(window_on_nothing))


def test_a_large_tensor_is_elided():
    x = torch.zeros(300, 400).T[3:]
    markup = html(x)
    assert len(markup) < 20_000
    assert "+" in words(markup)
    (storage,) = storages_of([layout_of(x)], NOTEBOOK)
    drawn = [cell for cell in storage.cells if not isinstance(cell, Gap)]
    gaps = sum(cell.count for cell in storage.cells if isinstance(cell, Gap))
    assert len(drawn) + gaps == 300 * 400
    assert len(drawn) <= NOTEBOOK.cells
    assert drawn == sorted(set(drawn))


@given(tensors(flags=False), st.sampled_from([NOTEBOOK, VERDICT]))
def test_no_cell_is_lost(tensor, limits):
    layout = layout_of(tensor)
    (storage,) = storages_of([layout], limits)
    assert sum(c.count if isinstance(c, Gap) else 1 for c in storage.cells) == layout.cells


# ── Where there is no memory ──


def without_memory():
    with FakeTensorMode():
        fake = torch.zeros(2, 3)
    freed = torch.zeros(2, 3)
    freed.untyped_storage().resize_(0)
    wrapped = []
    torch.func.vmap(lambda x: wrapped.append(str(show_storage(x))) or x)(torch.zeros(2, 3))
    lazy = torch.nn.LazyLinear(3).weight
    nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)], layout=torch.jagged)
    return [
        (torch.zeros(2, 3, device="meta").T, "meta tensor. It has size (3, 2), stride (1, 3)"),
        (fake, "fake tensor. It has size (2, 3), stride (3, 1) and offset 0, but no memory."),
        (freed, "resized to 0 bytes"),
        (torch.eye(3).to_sparse(), "layout torch.sparse_coo"),
        (lazy, "not initialized"),
        (nested, "nested"),
        (torch._efficientzerotensor(3), "never written"),
        (wrapped[0], "torch.func transform"),
    ]


@pytest.mark.parametrize("case", range(8))
def test_a_tensor_without_memory_gets_a_sentence(case):
    tensor, said = without_memory()[case]
    assert said in (tensor if isinstance(tensor, str) else words(html(tensor)))
    assert isinstance(tensor, str) or "<svg" not in html(tensor)


def test_a_tensor_with_memory_stands_beside_one_without():
    both = show_storage(x=torch.zeros(2), m=torch.zeros(2, device="meta"))
    assert "m: This is a meta tensor." in str(both)
    assert "x: float32" in str(both)


def test_what_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match="list"):
        show_storage([1, 2])


# ── The same everywhere ──


@given(tensors())
def test_the_same_bytes_give_the_same_picture(tensor):
    twin = decode(encode(tensor))
    assert html(tensor) == html(tensor) == html(twin)


def test_drawing_leaves_no_trace():
    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = torch.arange(6.0).requires_grad_()
    y = x.reshape(2, 3).T
    with Watch():
        drawn = str(show_storage(y))
    assert not seen
    with FakeTensorMode(allow_non_fake_inputs=True), torch.inference_mode():
        assert str(show_storage(y)) == drawn
    assert y._version == 0
