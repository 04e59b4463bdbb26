"""Evidence as checks see it, and the interview that brings it from beside the student's code."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import torch

from grader.course.rules import Rule, RuleKind
from grader.evidence.outcome import Ended, Outcome
from grader.evidence.reply import checked_reply
from grader.evidence.transcript import ENDED, TRANSCRIPT_LIMIT, request_key
from grader.evidence.wire.channel import Transport
from grader.evidence.wire.codec import decode, decode_with_storages, encode
from grader.evidence.wire.tensors import Malformed, facts, storage_from
from grader.inside.probe import Probe
from grader.submission.program import Lines, Program, judged_lines
from grader.verdict.compare import Comparison, Mismatch, fails, note

REPLIES_LIMIT = 256 * 2**20
"""Most bytes of all replies of one interview, which are kept until it is judged."""


MESSAGE_CHARACTERS = 2000
"""Most of an exception's message that is read; `inside` sends no more."""

NAME_CHARACTERS = 200
"""Most of a class's or a function's name and of a line of source."""

WHERE_LIMIT = 8
"""Most source lines of an exception, and most classes that it descends from."""


@dataclass(frozen=True)
class Raised:
    """An exception of the student's code.

    `where` are its own lines: (function, number, text); `notes` says on which inputs, where known.
    """

    type: str
    kinds: tuple[str, ...]
    message: str
    where: tuple[tuple[str, int, str], ...]
    notes: str = ""

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Raised:
        """Return the exception that `inside` reported, shortened to what anyone reads."""
        return cls(
            _clean(data["type"]),
            tuple(_clean(name) for name in data["mro"][:WHERE_LIMIT]),
            _clean(data["message"], MESSAGE_CHARACTERS),
            tuple(
                (_clean(name), int(line), _clean(text))
                for name, line, text in data["where"][-WHERE_LIMIT:]
            ),
            _clean(data.get("notes", ""), MESSAGE_CHARACTERS),
        )

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type

    def is_a(self, name: str) -> bool:
        """Say whether the exception is, or descends from, the class of that name."""
        return name in self.kinds

    @property
    def own(self) -> bool:
        """Whether a `raise` or an `assert` of the student's own raised it."""
        return bool(self.where) and _OWN.search(self.where[-1][2]) is not None

    @property
    def cause(self) -> tuple[str, str]:
        """What tells one cause from another: the class, and what Python or PyTorch said.

        The words of one's own `raise` are free, and empty here. Of others' the first line counts:
        behind it a worker's traceback may follow. Addresses and paths of files differ from run to run.
        Of ranks that wait for each other it is the calls at which they do: which rank it was, and how
        often it had called before, hangs on who was faster. So does whether a rank that was left
        hears of it first, or the instrument.
        """
        if self.type == "RanksHung":
            return self.type, ", ".join(sorted(set(_STOOD.findall(self.message))))
        if self.type == "RankDied" or ("/gloo/" in self.message and "by peer" in self.message):
            return "RankDied", ""
        return self.type, "" if self.own else without_chance(self.message.partition("\n")[0])


_OWN = re.compile(r"\b(raise|assert)\b")

_STOOD = re.compile(r"(?:had|waited)\b[^,.#]*[^,.# ]")
"""Where ranks stood, in the words of `on_ranks`, without the number of the call."""

_BY_CHANCE = re.compile(
    r"(?<![\w.])/[^\s'\"]+|0x[0-9a-f]{8,}|\b127\.0\.0\.1\S*|\b\d+ms\b|<eval_with_key>\.\d+"
)
"""What differs from run to run in a message: files, addresses of memory, ports, times, the number of
a graph's code."""

_SAID = 300
"""Most characters of what was said that tell one failure from another."""


def without_chance(said: str) -> str:
    """Return what was said, without what differs from run to run, as much as tells failures apart."""
    return _BY_CHANCE.sub("#", said)[:_SAID]


def _clean(text: object, limit: int = NAME_CHARACTERS) -> str:
    """Return text without what a terminal obeys, turns around, or no file can hold."""
    shown = (
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for c in str(text)[:limit]
    )
    return "".join(shown)


class StudentRaised(AssertionError):
    """A check wanted a value and the student's code had raised."""

    def __init__(self, raised: Raised) -> None:
        super().__init__(str(raised))
        self.raised = raised


class Evidence:
    """What one probe brought back for one set of inputs."""

    def __init__(self, probe: Probe, inputs: bytes, reply: Mapping[str, Any]) -> None:
        self.probe = probe
        self._inputs = inputs
        self._reply = reply

    @property
    def raised(self) -> Raised | None:
        """The exception that the student's code raised, or None."""
        raised = self._raised
        note(Comparison("raised", raised and raised.cause))
        return raised

    @property
    def _raised(self) -> Raised | None:
        data = self._reply["raised"]
        return None if data is None else Raised.from_data(data)

    @property
    def value(self) -> Any:
        """What the probe returned. Fails the check if there is no such value, or at a price."""
        raised = self.raised
        if raised is not None:
            raise StudentRaised(raised)
        return self._value

    @cached_property
    def _value(self) -> Any:
        if self._reply["refused"] is not None:
            what = _clean(self._reply["refused"])
            raise Mismatch(f"Your code gave {what}, where plain data is needed.")
        self._check_inputs()
        try:
            return decode(self._reply["value"], known=lambda: self._after[1])
        except Malformed:
            raise Mismatch("What your code's process sent cannot be read.") from None

    @property
    def inputs_after(self) -> dict[str, Any]:
        """The inputs as they were when the student's code had returned."""
        after: dict[str, Any] = self._after[0]
        return after

    @property
    def warnings(self) -> tuple[tuple[str, str], ...]:
        """Pairs of category and message."""
        return tuple((str(kind), str(text)) for kind, text in self._reply["warnings"])

    @property
    def stdout(self) -> str:
        """What was printed, its first 20,000 characters."""
        return str(self._reply["stdout"])

    @cached_property
    def _after(self) -> tuple[dict[str, Any], list[torch.UntypedStorage]]:
        inputs, storages = decode_with_storages(self._inputs)
        for index, data in self._reply["changed"].items():
            storage = storages[index] if index < len(storages) else None
            if storage is None or len(data) != storage.nbytes():
                raise Mismatch("Your code resized the storage of an input.")
            storage.copy_(storage_from(data))
        return inputs, storages

    def _check_inputs(self) -> None:
        if not self._reply["changed"]:
            return
        for name, value in self.inputs_after.items():
            if name in self.probe.in_place:
                continue
            if any(
                facts(tensor).storage in self._reply["changed"] for tensor in _tensors_in(value)
            ):
                raise Mismatch(
                    f"Your code changed its input `{name}` in place. "
                    "Work on a copy, or build a new tensor."
                )


def _tensors_in(value: object) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors_in(item)


def assert_raises(
    evidence: Evidence, kinds: str | tuple[str, ...], what: str, *rows: tuple[str, str]
) -> None:
    """Fail unless the student's code raised one of `kinds`, or what descends from it.

    `what` is the sentence where it did not, `rows` say on what.
    """
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    raised = evidence._raised
    right = raised is not None and any(map(raised.is_a, kinds))
    note(Comparison("raised", raised and raised.cause, passed=right))
    if not right:
        got = str(raised or "nothing was raised")
        fails(Mismatch(what, (*rows, ("expected", " or ".join(kinds)), ("got", got))))


@cache
def _operators() -> frozenset[str]:
    """Return the operators of this torch, without overloads: `aten::mm`."""
    return frozenset(name.partition(".")[0] for name in torch._C._dispatch_get_all_op_names())


@dataclass(frozen=True)
class Asked:
    """A question that was answered: the request, the reply, and the seconds until then.

    `key` tells it from others.
    """

    request: Mapping[str, Any]
    reply: Mapping[str, Any]
    seconds: float
    key: str


def load_request(
    program: Program, judged: Sequence[Lines], off_limits: Sequence[Rule]
) -> dict[str, Any]:
    """Return the request to run a program's parts, under rules for the statements `judged`."""
    return {
        "do": "load",
        "parts": [list(part) for part in program.parts],
        "judged": [list(lines) for lines in judged],
        "off_limits": [(rule.kind.value, rule.name) for rule in off_limits],
    }


class Interview:
    """Asks one process about one program, remembers every answer, and counts what was broken.

    `tripped` are the rules that were broken, `stray` an operator that is of no allowed family.
    `replies` is the transcript: each reply by its request, and under `ENDED` how it ended early.
    """

    def __init__(self, transport: Transport, off_limits: tuple[Rule, ...], seed: int) -> None:
        self._transport = transport
        self._off_limits = off_limits
        # The run's seed stays on this side: whoever has it can draw every hidden input.
        self._seed = int.from_bytes(hashlib.sha256(f"inside/{seed}".encode()).digest()[:6], "big")
        self._cache: dict[tuple[str, str], Evidence] = {}
        self._received = 0
        self.ended: Ended | None = None
        self.tripped: list[Rule] = []
        self.stray = ""
        self.tampered: list[str] = []
        self.printed = False
        self.stopped: dict[str, Raised] = {}
        self.replies: dict[str, bytes] = {}
        self.asked: list[Asked] = []

    def load(self, program: Program, judged: Sequence[Lines] | None = None) -> None:
        """Run the program's parts. What stops a part is remembered, not raised.

        judged: where the statements stand that rules apply to. Left out, the program is read for it
            here: for text that nobody made to be slow to read.
        """
        lines = judged_lines(program) if judged is None else judged
        _, reply = self._exchange(load_request(program, lines, self._off_limits))
        self.stopped = {
            str(label): Raised.from_data(data) for label, data in reply["stopped"].items()
        }

    def ask(self, probe: Probe, inputs: Mapping[str, Any]) -> Evidence:
        """Return the evidence of `probe` on `inputs`, asked once. Raises `Ended`."""
        data = encode(dict(inputs))
        key = probe.name, hashlib.sha256(data).hexdigest()
        if key not in self._cache:
            request = {
                "do": "probe",
                "probe": probe.name,
                "inputs": data,
                "off_limits": [(rule.kind.value, rule.name) for rule in self._off_limits],
                "seed": self._seed,
            }
            start = time.monotonic()
            name, reply = self._exchange(request)
            self.asked.append(Asked(request, reply, time.monotonic() - start, name))
            # what is told to a person are our own words, not the sender's
            tripped = [rule for n, rule in enumerate(self._off_limits) if n in reply["tripped"]]
            self.tripped += [rule for rule in tripped if rule not in self.tripped]
            if not self.stray and reply["stray"] in _operators():
                self.stray = reply["stray"]
            tampered = map(_clean, reply["tampered"][:20])
            self.tampered = list(dict.fromkeys([*self.tampered, *tampered]))[:20]
            self.printed = self.printed or bool(reply["stdout"].strip())
            self._cache[key] = Evidence(probe, data, reply)
        return self._cache[key]

    def broken(self) -> list[tuple[Rule, str]]:
        """Return the rules that were broken, each with the words for how."""
        return [
            (rule, f"`{self.stray}`, while it ran")
            if self.stray and rule.kind is RuleKind.ALLOWED
            else (rule, "while it ran")
            for rule in self.tripped
        ]

    def answered(self, probe: Probe, inputs: Mapping[str, Any]) -> Evidence:
        """Return what `ask` brought back before. Raises `LookupError` if that was never asked."""
        return self._cache[probe.name, hashlib.sha256(encode(dict(inputs))).hexdigest()]

    def run_plain(self, source: str) -> Raised | None:
        """Run a test cell of plain asserts; return what it raised."""
        _, reply = self._exchange({"do": "plain", "source": source})
        return None if reply["raised"] is None else Raised.from_data(reply["raised"])

    def close(self) -> None:
        """End the process."""
        self._transport.close()

    def _exchange(self, request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the key of a request and the reply to it. Raises `Ended`."""
        if self.ended is not None:
            raise self.ended
        message = encode(request)
        key = request_key(message)
        try:
            reply = self._transport.ask(message)
            self._keep(key, reply)
            return key, checked_reply(decode(reply), request["do"])
        except Ended as ended:
            self.ended = ended
        except Malformed:
            self.ended = Ended(
                Outcome.KILLED, "Your code disturbed the channel that carries its results."
            )
        self.replies[ENDED] = encode([key, self.ended.outcome.value, self.ended.detail])
        raise self.ended

    def _keep(self, key: str, reply: bytes) -> None:
        self._received += len(reply)
        if self._received > REPLIES_LIMIT:
            raise Ended(Outcome.KILLED, "Your code's results are too large, all together.")
        if self._received <= TRANSCRIPT_LIMIT:
            self.replies[key] = reply
