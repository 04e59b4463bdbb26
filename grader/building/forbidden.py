"""What a card says of off limits: rules, families that a chapter declares once, and the words for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from grader.building.resolve import unresolved
from grader.course.rules import describe_rule, parse_rule
from grader.inside.families import FAMILIES

SHOWN = 2
"""Most rules that a card names where it stands; more are said in a phrase, their names folded."""


@dataclass(frozen=True)
class Family:
    """Rules that two or more exercises of a chapter share, and the phrase for what they forbid."""

    words: str
    rules: tuple[str, ...]


class WrongRules(ValueError):
    """Something is wrong with a declaration of what is off limits; the message says what."""


def read_families(declared: object) -> dict[str, Family]:
    """Return the families of a chapter's card, by name. Raises `WrongRules`."""
    if not isinstance(declared, dict):
        raise WrongRules("`off limits` of a chapter maps names of families to `says` and `rules`")
    families = {}
    for name, family in declared.items():
        known = isinstance(family, dict) and set(family) == {"says", "rules"}
        if not known or not isinstance(family["rules"], list) or not _is_family(name):
            raise WrongRules(
                f"the family `{name}` needs a name of small letters, `says` and `rules`"
            )
        rules = tuple(map(str, family["rules"]))
        check_rules(rules)
        families[name] = Family(str(family["says"]), rules)
    return families


def _is_family(text: object) -> bool:
    return isinstance(text, str) and text.replace(" ", "").isalpha() and text.islower()


def check_rules(rules: Iterable[str]) -> None:
    """Look up what rules name. Raises `WrongRules`."""
    for text in rules:
        try:
            wrong = unresolved(parse_rule(text))
        except ValueError as error:
            wrong = f"{error}."
        if wrong:
            raise WrongRules(f"off limits: {wrong}")


def rules_of(card: Mapping[str, Any], families: Mapping[str, Family]) -> list[str]:
    """Return all rules of a card as text: its families', its own, and what it allows.

    Raises `WrongRules`.
    """
    rules: list[str] = []
    for text in map(str, card["off limits"]):
        if _is_family(text):
            if text not in families:
                raise WrongRules(f"off limits: the chapter's card declares no family `{text}`")
            rules += families[text].rules
        else:
            rules.append(text)
    if "allowed" in card:
        rules.append(f"allowed:{', '.join(_allowed(card['allowed']))}")
    return list(dict.fromkeys(rules))


def _allowed(declared: object) -> list[str]:
    if not isinstance(declared, list) or not set(declared) <= FAMILIES:
        raise WrongRules(f"`allowed` is a list of these: {', '.join(sorted(FAMILIES))}")
    return declared


def card_lines(card: Mapping[str, Any], families: Mapping[str, Family]) -> list[str]:
    """Return the lines of a card's Markdown that say what is off limits. Raises `WrongRules`."""
    own = [str(text) for text in card["off limits"] if not _is_family(str(text))]
    words = [families[text].words for text in card["off limits"] if _is_family(str(text))]
    folded = rules_of({**card, "allowed": []}, families)[:-1]
    if "forbids" in card:
        words = [str(card["forbids"])]
    elif len(own) > SHOWN:
        raise WrongRules(f"more than {SHOWN} rules of its own need a phrase for them: `forbids`")
    else:
        words += map(_named, own)
    lines = [f"*Off limits:* {', '.join(words)}"] if words else []
    if "allowed" in card:
        lines.append(_allowed_words(_allowed(card["allowed"])))
    lines = [f"{line}  " for line in lines[:-1]] + lines[-1:]
    if len(folded) > SHOWN or (folded and "forbids" in card):
        names = ", ".join(map(_named, folded))
        lines += ["", f"<details><summary>By name</summary>\n\n{names}\n\n</details>"]
    return lines


def _named(rule: str) -> str:
    return describe_rule(parse_rule(rule))


def _allowed_words(families: list[str]) -> str:
    if not families:
        return "*Allowed:* no operator of PyTorch's at all; Python has what you need"
    return f"*Allowed:* of PyTorch's operators, these alone: {', '.join(families)}"


def phrase_of(card: Mapping[str, Any], families: Mapping[str, Family]) -> str:
    """Return in a phrase what a card forbids, "" if it needs none."""
    if "forbids" in card:
        return str(card["forbids"])
    return ", ".join(families[text].words for text in card["off limits"] if _is_family(str(text)))
