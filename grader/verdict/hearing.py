"""A second hearing, before a second witness, of an answer that has earned points.

Rules of what is off limits, and checks of what was observed, rest on a witness that code can leave:
dispatch modes, in one thread. PyTorch's execution trace sees all that runs, at ten times the price of
an operator. So another process loads the program once more, under the trace from the first line on,
and is asked some of the same questions again: which, nobody can foresee. The first hearing decides
about points. What the second one brings to light is for a person to look at.

To begin such a process costs more than to ask it. The programs of one submission have one author, and
are heard in one process, one after another, as long as nothing comes to light. Where something does,
that program is heard in a process of its own, and what comes out there is what counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch

from grader.course.rules import Rule, RuleKind, describe_rule
from grader.evidence.outcome import Ended, Outcome
from grader.evidence.record import Call, Seen, parted
from grader.evidence.reply import checked_reply
from grader.evidence.transcript import request_key
from grader.evidence.wire.channel import Transport
from grader.evidence.wire.codec import decode, encode
from grader.evidence.wire.tensors import Malformed
from grader.verdict.interview import Asked

SECONDS = 0.005
"""Of each probe the quickest question is put again, and any others that took this long together."""

LEAST = 0.0005
"""What a question counts for at least, however quick it was: under the trace it takes longer."""


@dataclass
class Heard:
    """What a second hearing brought to light, and its replies as a transcript keeps them."""

    broken: dict[Rule, None] = field(default_factory=dict)
    trouble: dict[str, None] = field(default_factory=dict)
    replies: dict[str, bytes] = field(default_factory=dict)

    @property
    def review(self) -> str:
        """Why a person should look, if one should."""
        found = []
        if self.broken:
            words = ", ".join(map(describe_rule, self.broken))
            found.append(f"Off limits, and run where the usual watch did not see it: {words}.")
        return " ".join([*found, *(f"{words[0].upper()}{words[1:]}." for words in self.trouble)])


@dataclass(frozen=True)
class Opening:
    """Opens processes for an answer; second hearings of the same submission share those of a room."""

    open: Callable[[], Transport]
    room: Room

    def __call__(self) -> Transport:
        """Return a fresh process."""
        return self.open()


def hear_again(
    load: Mapping[str, Any],
    asked: Sequence[Asked],
    open_transport: Callable[[], Transport],
    rules: Sequence[Rule],
    seed: int,
) -> Heard:
    """Load a program under the second witness, and put some questions again.

    load: the request that loaded it the first time
    open_transport: an `Opening` if the program may be heard where others of its author were
    """
    if isinstance(open_transport, Opening):
        heard = open_transport.room.hear(load, asked, rules, seed)
        if not heard.review:
            return heard
    with Room(open_transport) as alone:
        return alone.hear(load, asked, rules, seed)


class Room:
    """A process under the second witness, in which one program after another is heard.

    It begins with the first program, and ends where anything comes to light; then another begins.
    """

    def __init__(self, open_transport: Callable[[], Transport]) -> None:
        self._open = open_transport
        self._transport: Transport | None = None
        self._pristine: set[str] = set()
        """Fingerprints of what the grader leans on, before the first program and since."""

    def hear(
        self, load: Mapping[str, Any], asked: Sequence[Asked], rules: Sequence[Rule], seed: int
    ) -> Heard:
        """Load a program, and put some of the questions that it was asked."""
        heard = Heard()
        done = False
        try:
            self._hear(heard, load, asked, rules, seed)
            done = not heard.review
        except Ended as ended:
            if ended.outcome is not Outcome.NEEDS_REVIEW:  # a transcript without a second hearing
                heard.trouble["asked again, the code gave no answer"] = None
        except Malformed:
            heard.trouble["asked again, the code gave an answer that cannot be read"] = None
        finally:
            if not done:
                self.close()
        return heard

    def _hear(
        self,
        heard: Heard,
        first: Mapping[str, Any],
        asked: Sequence[Asked],
        rules: Sequence[Rule],
        seed: int,
    ) -> None:
        load = encode({**first, "watch": True})
        if self._transport is None:
            self._transport, self._pristine = self._open(), set()
            answer = self._transport.ask(load, watch=True)
        else:  # the second witness has begun
            answer = self._transport.ask(encode(dict(first)), watch=True)
        reply, seen = parted(answer)
        if seen is None:  # nothing watches here
            return
        kept = decode(answer).get("chosen")  # by a transcript
        chosen = [one for one in asked if one.key in kept] if kept else _chosen(asked, seed)
        keys = [one.key for one in chosen]
        heard.replies[request_key(load)] = encode({**decode(answer), "chosen": keys})
        # beside the answer stands other text, which may use anything: the trace does not say whose line ran
        self._take(heard, checked_reply(decode(reply), "load"), replace(seen, calls={}), rules)
        for one in chosen:
            request = encode({**one.request, "watch": True})
            answer = heard.replies[request_key(request)] = self._transport.ask(request, watch=True)
            reply, seen = parted(answer)
            data = checked_reply(decode(reply), "probe")
            self._take(heard, data, seen or Seen(), rules)
            if _gist(data) != _gist(one.reply):
                heard.trouble["asked again, the code gave another answer"] = None
            if data["tampered"]:
                heard.trouble["asked again, the code replaced what the grader leans on"] = None
            elif len(self._pristine) != 1:
                heard.trouble[
                    "what the grader leans on was replaced, and nothing beside it told so"
                ] = None

    def _take(
        self, heard: Heard, reply: Mapping[str, Any], seen: Seen, rules: Sequence[Rule]
    ) -> None:
        """Note what a reply and the second witness tell."""
        numbers = {*reply.get("tripped", ()), *seen.tripped}
        told = [rule for n, rule in enumerate(rules) if n in numbers]
        heard.broken |= dict.fromkeys([*told, *broken_in(seen, rules)])
        heard.trouble |= dict.fromkeys(seen.trouble)
        self._pristine |= set(seen.pristine)

    def close(self) -> None:
        """End the process, if there is one."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _gist(reply: Mapping[str, Any]) -> tuple[bytes | None, str | None]:
    """Return what two replies to one question have in common: the value, or what was raised."""
    raised = reply["raised"]
    return reply["value"], raised and raised["type"]


def _chosen(asked: Sequence[Asked], seed: int) -> list[Asked]:
    """Return the questions to put again, in their order."""

    def draw(one: Asked) -> str:
        return hashlib.sha256(f"hearing/{seed}/{one.key}".encode()).hexdigest()

    chosen: dict[str, Asked] = {}
    for one in sorted(asked, key=lambda one: one.seconds):
        chosen.setdefault(one.request["probe"], one)
    left, found = SECONDS, list(chosen.values())
    for one in sorted(asked, key=draw):
        seconds = max(one.seconds, LEAST)
        if seconds <= left and one not in found:
            left -= seconds
            found.append(one)
    return [one for one in asked if one in found]


_REINTERPRET = frozenset({"view", "view_as_real"})
"""They give the same bytes another dtype, and round nothing."""


def broken_in(seen: Seen, rules: Iterable[Rule]) -> list[Rule]:
    """Return the rules that what the second witness saw has broken."""
    return [rule for rule in rules if any(_breaks(call, rule) for call in seen.calls)]


def _breaks(call: Call, rule: Rule) -> bool:
    name, direct, _, _, _ = call
    match rule.kind:
        case RuleKind.ATEN:
            return name == rule.name
        case RuleKind.CAST:
            return _casts(call, rule.last)
        case RuleKind.FUNCTION:
            return direct and name == _operator_of(rule)
        case RuleKind.IMPORT | RuleKind.DIRECT | RuleKind.ALLOWED:
            return False  # the trace says neither who called nor what an operator is made of


def _operator_of(rule: Rule) -> str | None:
    """Return the operator that a function or a method of torch's own is, None for other functions."""
    return rule.last if rule.name in (f"torch.{rule.last}", f"torch.Tensor.{rule.last}") else None


def _casts(call: Call, dtype: str) -> bool:
    """Say whether a call turned numbers of another dtype into this one, as the tripwire does."""
    name, _, read, given, number = call
    if dtype not in given or name in _REINTERPRET:
        return False
    base = name.removeprefix("new_")
    if number and base.startswith(("fill", "full")):
        return True
    if name.endswith("_like") or name.startswith("new_"):
        return False
    return any(other != dtype and _is_floating(other) for other in read)


def _is_floating(name: str) -> bool:
    dtype = getattr(torch, name, None)
    return isinstance(dtype, torch.dtype) and dtype.is_floating_point
