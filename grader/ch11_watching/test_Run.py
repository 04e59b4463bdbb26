"""Checks of `Run`: what its backends were told, and what they have written in the end."""

import math

import torch

from grader import (
    about,
    assert_equal,
    assert_holds,
    claimed,
    compared,
    draw_int,
    draw_one,
    gate,
    points,
    python_random,
)
from grader.ch11_watching.probes.backends import ENDINGS
from grader.ch11_watching.runs import (
    ALL,
    ENDS,
    FINISH,
    OPENED,
    SAVE,
    compare,
    lived,
    logs,
    of_backend,
    outcome,
    program,
    rows_of,
    same_rows,
    with_failing,
)


@gate
def test_two_steps(runs_lived):
    """Two steps, each handed out at once."""
    acts = logs([1, 2])
    compare(runs_lived, ["add"], 1, [acts], acts)


def test_values(runs_lived, rng):
    """Numbers and tensors of one element arrive as floats, every digit of them."""
    random = python_random(rng)
    kinds = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
    drawn = [torch.tensor(random.random(), dtype=kind) for kind in kinds]
    groups = [
        {"loss": 0.1, "lr": random.random(), "tokens": 2**40 + 1},
        {f"t{at}": one for at, one in enumerate(drawn)},
        {"whole": torch.tensor(2**40 + 1), "a": torch.tensor([0.1]), "b": torch.tensor([[2.5]])},
        {"nan": math.nan, "large": torch.tensor(math.inf), "n": torch.tensor(math.nan)},
    ]
    for values in groups:
        acts = [("log", 1, values)]
        compare(runs_lived, ALL, 1, [acts], acts)
    acts = [("log", step, values) for step, values in enumerate(groups)]
    compare(runs_lived, ALL, len(acts), [acts], acts)


def test_as_they_were(runs_lived):
    """What happens to tensors and dicts after the call does not matter."""
    for kind in (torch.float32, torch.float64):
        one = ("log", 1, {"loss": torch.tensor(0.5, dtype=kind), "lr": 0.25})
        two = ("log", 2, {"loss": torch.tensor([1.5], dtype=kind)})
        compare(runs_lived, ["add", "log"], 2, [[one, ("change",), two]], [one, two])


@claimed
def test_reads(run_reads):
    """`log` reads nothing and keeps no graph; to hand out is one read."""
    for word, every, steps in [("add", 3, 7), ("log", 4, 8)]:
        along = run_reads.ask(word, every, steps).value["along"]
        names = [f"run.log({step}, …)" for step in range(1, steps + 1)]
        lines = [
            f"run = Run([lambda start: {OPENED[word]}], every={every})",
            f"for step in range(1, {steps + 1}):",
            "    loss = weight * step",
            '    run.log(step, {"loss": loss, "norm": loss.detach() / 2, "lr": 0.1})',
            "    del loss",
            "run.state_dict()",
            "run.finish()",
        ]
        before = 0
        for at, (reads, alive) in enumerate(along):
            name = [*names, "run.state_dict()", "run.finish()"][at]
            with about(("program", "\n".join(lines)), ("in", name)):
                most = int(at >= steps or (at + 1) % every == 0)
                new, before = reads[before:], len(reads)
                compared(sorted(set(new)))
                found = ("got", f"{len(new)}: {', '.join(new[:6])}")
                assert_holds(len(new) <= most, "It reads.", ("allowed", str(most)), found)
                assert_equal(alive, 0, "How many losses' graphs are alive after it.")


def test_handing_out(run_along):
    """As soon as `every` steps wait, they are written; before that no backend is called."""
    for word in ALL:
        for every, steps in [(3, [3, 4, 6, 9, 10, 15, 16]), (None, range(1, 12))]:
            acts, size, calls = [*logs(steps), FINISH], every or 10, 0
            along = run_along.ask(word, every, acts).value["along"]
            for number, (written, told) in enumerate(along[1:], start=1):
                with about(("program", program([word], every, [acts[:number]]))):
                    whole = number // size * size if number <= len(steps) else len(steps)
                    assert_equal(written, whole, "How many steps are written.")
                    waits = number <= len(steps) and number % size
                    if waits:
                        assert_equal(told, calls, "How many calls the backend has had.")
                calls = told


def test_end(run_along):
    """`finish` tells the end once; the second time it does nothing."""
    for word in ALL:
        acts = [*logs([1, 2]), FINISH, FINISH]
        got = run_along.ask(word, 2, acts).value
        with about(("program", program([word], 2, [acts]))):
            what = f"How often the backend's `{ENDS[word]}` was called."
            assert_equal(got["told"].count(ENDS[word]), 1, what)
            *_, (_, once), (_, twice) = got["along"]
            assert_equal(twice, once, "How many calls it has had after the second `finish`.")


@points(2)
def test_errors(runs_lived, rng):
    """What a backend raises ends nothing: the others are told everything, and one warning says it."""
    acts = [("config", {"lr": 0.1}), *logs([1, 2, 3]), FINISH]
    cases = {
        "add": ("open", "add", "flush", "close"),
        "log": ("open", "config.update", "log", "finish"),
        "log_metrics": ("open", "log_params", "log_metrics", "end_run"),
    }
    for word, verbs in cases.items():
        for verb in verbs:
            kind = draw_one(rng, ["disk", "network", "token"])
            fails = (verb, 2 if verb == word else 1, kind)
            got, words, rows = with_failing(runs_lived, word, fails, acts)
            with about(*rows):
                came = [name for _, name in got["came"]]
                assert_equal(came, [], "What came out of `Run`.")
                said = str(ENDINGS[kind]().args[-1])
                count = sum(said in one for one in got["warned"])
                compared(bool(got["warned"]))
                assert_equal(count, 1, f"How many warnings say {said!r}.")
            for place, backend in enumerate(got["backends"]):
                with of_backend(place, words[place], rows):
                    if place == 1:
                        assert_equal(backend["after"], [], "What it was told after it had raised.")
                        continue
                    same_rows(backend["rows"], rows_of(acts))
                    count = backend["told"].count(ENDS[words[place]])
                    assert_equal(count, 1, "How often it was told the end.")


def test_interrupt(runs_lived):
    """A `KeyboardInterrupt` comes out, wherever it hits."""
    acts = [("config", {"lr": 0.1}), *logs([1, 2, 3]), FINISH]
    for word, verb, at in [("add", "add", 3), ("log", "config.update", 1), ("log", "open", 0)]:
        got, _, rows = with_failing(runs_lived, word, (verb, 1, "interrupt"), acts)
        with about(*rows):
            calls = ["Run(…)", "run.config(…)", "run.log(1, …)", "run.log(2, …)", "run.log(3, …)"]
            came = [f"{name} out of {[*calls, 'run.finish()'][n]}" for n, name in got["came"]]
            assert_equal(came, [f"KeyboardInterrupt out of {calls[at]}"], "What came out of `Run`.")


def test_words(runs_lived, rng):
    """Each backend is told in its own words: configuration, steps, the end."""
    config = {"lr": draw_int(rng, 1, 99) / 100, "model": "small", "layers": draw_int(rng, 2, 9)}
    acts = [("config", config), *logs([1, 2, 3, 5]), FINISH]
    for words in (["add"], ["log"], ["log_metrics"], ["log_metrics", "add", "log", "log"]):
        backends, rows = lived(runs_lived, words, 3, [acts])
        for place, (word, backend) in enumerate(zip(words, backends, strict=True)):
            with of_backend(place, word, rows):
                assert_equal(backend["starts"], [None], "What its opener was given, at each call.")
                wanted = {} if word == "add" else config
                assert_equal(backend["config"], wanted, "The configuration that it was told.")
                same_rows(backend["rows"], rows_of(acts))
                what = f"How often its `{ENDS[word]}` was called."
                assert_equal(backend["told"].count(ENDS[word]), 1, what)


def test_ranks(run_on_ranks):
    """Rank 0 writes alone, and no rank says anything to another."""
    steps = [1, 2, 3, 4, 5]
    acts = [("config", {"ranks": 2}), *logs(steps), SAVE, FINISH]
    with about(("on each of two ranks, with gloo", program(["add"], 2, [acts]))):
        for rank, found in enumerate(run_on_ranks.ask(2, "add", 2, acts).value):
            with about(of=f"Rank {rank}: "):
                opened = len(found["starts"])
                assert_equal(opened, int(rank == 0), "how often it opened the backend.")
                written = [step for step, _ in found["rows"]]
                assert_equal(written, [] if rank else steps, "the steps that it wrote.")
                assert_equal(found["said"], [], "what it said to the other rank.")


def test_steps(runs_lived):
    """A step that is not larger than all before is dropped, in a run that goes on, too."""
    for steps, places in [([0, 5, 3, 6], [0, 1, 3]), ([1, 1, 2], [0, 2]), ([4, 8, 2, 8], [0, 1])]:
        acts = [("log", step, {"loss": at + 0.25}) for at, step in enumerate(steps)]
        compare(runs_lived, ["add", "log"], 1, [acts], [acts[at] for at in places])
    first, again = logs([1, 2, 3]), logs([2, 3, 4], life=1)
    compare(runs_lived, ["add", "log"], 1, [[*first, SAVE], again], [*first, again[2]])


@points(6)
def test_goes_on(runs_lived, rng):
    """Killed after a checkpoint and gone on from it: every step is written once, on every backend."""
    cases = [
        (2, [[*logs([1]), SAVE], [*logs([2], 1), FINISH]]),
        (1, [[*logs([1]), SAVE, *logs([2])], [*logs([2], 1), FINISH]]),
        (5, [[*logs(range(1, 8)), SAVE, *logs([8, 9])], [*logs(range(8, 13), 1), FINISH]]),
        (3, [[*logs(range(1, 5)), SAVE, *logs(range(5, 9))], [*logs([5, 6, 7], 1), FINISH]]),
        (2, [[*logs([1]), SAVE, *logs([2])], [SAVE, *logs([2, 3], 1)], [*logs([2], 2), FINISH]]),
        (2, [[*logs([10, 20, 30]), SAVE, *logs([40, 50])], [*logs([40, 60], 1), FINISH]]),
    ]
    random = python_random(rng)
    for _ in range(6):
        every, at, lives = random.randrange(1, 7), 1, []
        for life in range(random.randrange(2, 4)):
            saved = at + random.randrange(1, 9)
            more = range(saved, saved + random.randrange(8))
            lives.append([*logs(range(at, saved), life), SAVE, *logs(more, life)])
            at = saved
        lives[-1].append(FINISH)
        cases.append((every, lives))
    for every, lives in cases:
        compare(runs_lived, ALL, every, lives, outcome(lives))


def test_from_nothing(runs_lived):
    """A checkpoint from before the first step counts, too: what was written behind it is void."""
    lives = [[SAVE, *logs([0, 1, 2])], [*logs([0, 1], 1), FINISH]]
    compare(runs_lived, ALL, 1, lives, outcome(lives))
