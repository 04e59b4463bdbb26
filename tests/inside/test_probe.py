"""Probes: where they are kept, and what they note of an exception."""

import pytest
import torch

from grader.evidence.wire.raised import report
from grader.inside.probe import each, load_probes
from grader.verdict.probe_versions import probe_texts, probe_versions


def test_results_come_in_order():
    assert each(divmod, [(7, 2), (9, 3)]) == [(3, 1), (3, 0)]


@pytest.mark.parametrize(
    ("case", "noted"),
    [
        (((2, 3), 0), "fails((2, 3), 0)"),
        ((torch.zeros(2, 3).t(), "t"), "fails(<float32, size (3, 2), stride (1, 3)>, 't')"),
        (([torch.zeros(1)], b"abc"), "fails([<float32, size (1,), stride (1,)>], <3 bytes>)"),
    ],
)
def test_what_raises_says_on_what(case, noted):
    def fails(*args):
        raise KeyError("why")

    with pytest.raises(KeyError) as caught:
        each(fails, [case])
    assert report(caught.value)["notes"] == noted


def test_notes_that_are_none_cost_nothing():
    error = ValueError()
    error.__dict__["__notes__"] = 7
    assert report(error)["notes"] == ""


NETS = "def build():\n    return 1\n"
SHAPES = """from grader import probe

from .nets import build

@probe
def sized(student):
    return build()
"""
HOOKS = """from grader import probe

@probe
def hooked(student):
    return 3
"""


def package(root, **modules):
    """Write a chapter whose probes are these modules of a package."""
    path = root / "ch09_more" / "probes"
    path.mkdir(parents=True, exist_ok=True)
    for name, text in {"__init__": "", **modules}.items():
        (path / f"{name}.py").write_text(text)
    return path


def test_probes_of_a_package_are_those_of_its_modules(tmp_path):
    path = package(tmp_path, nets=NETS, shapes=SHAPES, hooks=HOOKS)
    probes = load_probes(path)
    assert sorted(probes) == ["hooked", "sized"]
    assert probes["sized"].run(None) == 1


def test_another_course_has_its_own_modules(tmp_path):
    load_probes(package(tmp_path / "a", nets=NETS, shapes=SHAPES))
    other = package(tmp_path / "b", nets=NETS.replace("1", "2"), shapes=SHAPES)
    assert load_probes(other)["sized"].run(None) == 2


def test_a_name_stands_for_one_probe(tmp_path):
    path = package(tmp_path, nets=NETS, shapes=SHAPES, hooks=HOOKS.replace("hooked", "sized"))
    with pytest.raises(TypeError, match=r"shapes\.py has a second probe called sized"):
        load_probes(path)


def test_a_digest_sees_what_a_probe_takes_from_another_module(tmp_path):
    path = package(tmp_path, nets=NETS, shapes=SHAPES, hooks=HOOKS)
    before = probe_versions(path, ["hooked", "sized"])
    package(tmp_path, nets=NETS.replace("1", "2"), shapes=SHAPES, hooks=HOOKS)
    after = probe_versions(path, ["hooked", "sized"])
    assert after["sized"] != before["sized"]
    assert after["hooked"] == before["hooked"]


def test_a_digest_does_not_see_where_a_statement_stands_nor_what_others_import(tmp_path):
    path = package(tmp_path, nets=NETS, shapes=SHAPES, hooks=HOOKS)
    before = probe_texts(path, ["hooked", "sized"])
    others = {name: f"import os\n\n\n{text}" for name, text in (("hooks", HOOKS), ("nets", NETS))}
    package(tmp_path, shapes=SHAPES, more="import torch as SIZE\n\nNET = 3\n", **others)
    assert probe_texts(path, ["hooked", "sized"]) == before


@pytest.mark.parametrize("line", ["from . import nets", "from .nets import NET"])
def test_a_digest_follows_every_way_to_import_from_a_neighbour(tmp_path, line):
    used = "nets.NET" if line.endswith("nets") else "NET"
    probe = (
        f"from grader import probe\n{line}\n\n\n@probe\ndef sized(student):\n    return {used}\n"
    )
    inner = "@probe\ndef inner(student):\n    from .nets import NET\n    return NET\n"
    versions = []
    for value in (1, 2):
        path = package(tmp_path, nets=f"NET = {value}\n", shapes=f"{probe}\n\n{inner}")
        versions.append(probe_versions(path, ["sized", "inner"]))
    assert versions[0]["sized"] != versions[1]["sized"]
    assert versions[0]["inner"] != versions[1]["inner"]
