"""What a card says of off limits: a phrase, the names folded; families that a chapter declares once."""

import pytest

from grader.building.forbidden import (
    WrongRules,
    card_lines,
    check_rules,
    phrase_of,
    read_families,
    rules_of,
)

FAMILIES = read_families(
    {
        "products": {
            "says": "whatever multiplies matrices for you",
            "rules": ["aten:mm", "aten:bmm", "torch.einsum"],
        }
    }
)


def card(*rules, **keys):
    return {"off limits": list(rules), **keys}


def test_few_rules_stand_in_the_line():
    assert card_lines(card("torch.finfo", "import:numpy"), {}) == [
        "*Off limits:* `torch.finfo`, the module `numpy`"
    ]


def test_nothing_is_off_limits():
    assert card_lines(card(), {}) == []


def test_a_family_says_its_phrase_and_folds_its_names():
    line, blank, folded = card_lines(card("products", "import:numpy"), FAMILIES)
    assert line == "*Off limits:* whatever multiplies matrices for you, the module `numpy`"
    assert not blank
    assert folded.startswith("<details><summary>By name</summary>")
    assert "`aten::mm`, the operator `aten::bmm`, `torch.einsum`, the module `numpy`" in folded


def test_a_card_has_words_of_its_own():
    lines = card_lines(card("products", forbids="products"), FAMILIES)
    assert lines[0] == "*Off limits:* products"
    assert phrase_of(card("products", forbids="products"), FAMILIES) == "products"
    assert phrase_of(card("products"), FAMILIES) == FAMILIES["products"].words
    assert phrase_of(card("torch.finfo"), FAMILIES) == ""


def test_many_rules_need_a_phrase():
    with pytest.raises(WrongRules, match="`forbids`"):
        card_lines(card("aten:mm", "aten:bmm", "aten:mv"), {})


def test_rules_are_a_familys_and_its_own_each_once():
    found = rules_of(card("products", "aten:mm", "import:numpy"), FAMILIES)
    assert found == ["aten:mm", "aten:bmm", "torch.einsum", "import:numpy"]


@pytest.mark.parametrize(
    ("allowed", "rule", "words"),
    [
        ([], "allowed:", "no operator of PyTorch's"),
        (["sum", "views"], "allowed:sum, views", "these alone: sum, views"),
    ],
)
def test_what_is_allowed(allowed, rule, words):
    one = card("import:numpy", allowed=allowed)
    assert rules_of(one, {}) == ["import:numpy", rule]
    forbidden, said = card_lines(one, {})
    assert forbidden == "*Off limits:* the module `numpy`  "
    assert words in said


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (card("product"), "declares no family `product`"),
        (card(allowed=["sums"]), "`allowed` is a list of these"),
        (card(allowed="sum"), "`allowed` is a list of these"),
    ],
)
def test_a_card_that_is_wrong(one, words):
    with pytest.raises(WrongRules, match=words):
        rules_of(one, FAMILIES)


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (["aten:mm"], "maps names of families"),
        ({"products": ["aten:mm"]}, "needs a name of small letters"),
        ({"products": {"says": "products"}}, "needs a name of small letters"),
        ({"aten:mm": {"says": "products", "rules": []}}, "needs a name of small letters"),
        ({"products": {"says": "products", "rules": ["aten:mmm"]}}, "names no operator"),
    ],
)
def test_a_family_that_is_wrong(declared, words):
    with pytest.raises(WrongRules, match=words):
        read_families(declared)


def test_a_rule_that_is_wrong():
    with pytest.raises(WrongRules, match="is no rule"):
        check_rules(["atem:mm"])
