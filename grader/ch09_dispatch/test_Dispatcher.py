"""Checks of `Dispatcher`: scenarios of kernels and calls, and who was called with which keys."""

import pytest

from grader import Mismatch, compared, gate, points, python_random
from grader.ch09_dispatch.dispatcher_model import ORDER, Model
from grader.ch09_dispatch.probes.walks import play
from grader.ch09_dispatch.walk_scenarios import as_code, call, chain, random_walk, scenario

CPU = ("AutocastCPU", "AutogradCPU", "ADInplaceOrView", "CPU")
META = ("AutogradMeta", "ADInplaceOrView", "Meta")
ALL = chain(*ORDER)


@pytest.fixture
def random(rng):
    return python_random(rng)


def compare(walks, scenarios):
    """Compare what happens in each scenario; say where the first difference is."""
    for played, got in zip(scenarios, walks.ask(scenarios).value, strict=True):
        compared(got)
        expected = play(Model, played)
        if got != expected:
            same = 0
            while same < min(len(got), len(expected)) and got[same] == expected[same]:
                same += 1
            rows = [("on", as_code(played, expected, got))]
            rows += [("so far", "\n".join(expected[:same]))] if same else []
            rows += [("expected next", line_of(expected, same)), ("got", line_of(got, same))]
            raise Mismatch("The call went another way.", tuple(rows))


def line_of(notes, at):
    return notes[at] if at < len(notes) else "nothing more"


@gate
def test_calls_a_kernel(walks):
    """Calls the kernel of the one key that the tensor has, and returns what it returns."""
    only = scenario({"AutocastCPU": "computes", "CPU": "computes"}, call("inference"))
    compare(walks, [only])


@points(5)
def test_walk(walks, random):
    """From the most urgent key on, as far as kernels hand the call on; and with which keys."""
    cases = [scenario(chain(*CPU)), scenario(chain(*META), call("meta"))]
    for _ in range(5):
        order = random.sample(ORDER, len(ORDER))
        mine = sorted(CPU, key=order.index)
        cases.append(scenario(chain(*mine), order=order))
    early = {**chain(*CPU), "AutogradCPU": "computes"}
    skips = {**chain(*CPU), "AutogradCPU": ["redispatches", ["CPU"]]}
    backwards = {**chain(*CPU), "ADInplaceOrView": ["redispatches", ["AutogradCPU", "CPU"]]}
    backwards["AutogradCPU"] = "computes"
    cases += [scenario(early), scenario(skips), scenario(backwards)]
    cases.append(scenario(chain(*CPU), call("cpu", 3, None, y=2)))
    others = [("g", key, "computes") for key in CPU]
    cases.append(scenario([*others, *(("f", key, action) for key, action in chain(*CPU).items())]))
    asks = [("g", key, action) for key, action in chain(*CPU).items()]
    asks += [("f", key, action) for key, action in {**chain(*CPU), "CPU": ["calls", "g"]}.items()]
    cases.append(scenario(asks))
    compare(walks, cases)


def test_arguments(walks):
    """All tensors count: named ones, and those in lists and tuples."""
    kernels = dict.fromkeys(ORDER, "computes")
    cases = [
        scenario(kernels, call(1, "meta")),
        scenario(kernels, call(x="meta")),
        scenario(kernels, call(["meta"], 2)),
        scenario(kernels, call(("meta",))),
        scenario(kernels, call(xs=["meta"])),
        scenario(kernels, call([None, 1.5, "meta"], None)),
        scenario(kernels, call("inference", "conj")),
        scenario(kernels, call("conj", "inference")),
        scenario(kernels, call(["inference", "conj"])),
        scenario(kernels, call("inference", y="sparse")),
    ]
    compare(walks, cases)


@points(2)
def test_fallbacks(walks):
    """Fallbacks serve operators without an entry of their own; a fallthrough is passed over."""
    below = [("f", "AutogradCPU", "hands on"), ("f", "ADInplaceOrView", "hands on")]
    below.append(("f", "CPU", "computes"))
    f, of_all = (("f", "AutocastCPU", "hands on"), (None, "AutocastCPU", "hands on"))
    falls, all_fall = (("f", "AutocastCPU", "fallthrough"), (None, "AutocastCPU", "fallthrough"))
    cases = [
        scenario([of_all, *below], call("cpu", y=1)),
        scenario([f, (None, "AutocastCPU", "computes"), *below]),
        scenario([all_fall, *below]),
        scenario([falls, *below]),
        scenario([falls, of_all, *below]),
        scenario([f, all_fall, *below]),
        scenario([("g", "AutocastCPU", "fallthrough"), of_all, *below]),
        scenario([below[0], ("f", "ADInplaceOrView", "fallthrough"), below[2], all_fall]),
        scenario([(None, key, action) for key, action in chain(*CPU).items()], call("cpu", op="g")),
    ]
    compare(walks, cases)


@points(2)
def test_including_and_excluding(walks):
    """A thread's keys come and go with the `with`, whatever is inside and however it ends."""
    more = ["Functionalize", "AutocastCPU"]
    once = [
        [["excluding", ["AutogradCPU"], [call("cpu")]]],
        [["including", more, [call("inference")]]],
        [["including", ["Meta", "CPU"], [call(1)]]],
        [["including", ["AutogradCPU"], [["excluding", ["AutogradCPU"], [call("cpu")]]]]],
        [["excluding", ["AutogradCPU"], [["including", ["AutogradCPU"], [call("cpu")]]]]],
    ]
    nested = [
        [["excluding", ["CPU"], [["excluding", ["AutogradCPU"], [call("cpu")]], call("cpu")]]],
        [["excluding", ["AutogradCPU"], [["excluding", ["AutogradCPU"], []], call("cpu")]]],
        [["including", more, [["including", more[:1], []], call("cpu")]]],
        [["excluding", ["AutogradCPU"], [["excluding", ["Meta"], [["fails"]]], call("cpu")]]],
        [["excluding", ["AutogradCPU"], [["fails"]]]],
        [["including", more, [call("cpu"), ["fails"]]]],
        [["including", more, []], ["excluding", ["ADInplaceOrView"], []]],
        [["makes", "including", more], ["makes", "excluding", ["AutogradCPU"]]],
    ]
    cases = [scenario(ALL, *steps, call("cpu")) for steps in (*once, *nested)]
    inside = {**ALL, "AutocastCPU": ["excluding", ["AutocastCPU"], ["calls", "f"]]}
    cases.append(scenario(inside, call("cpu"), call("cpu")))
    fails = {**ALL, "ADInplaceOrView": ["excluding", ["CPU"], "fails"]}
    cases.append(scenario(fails, call("cpu"), call("meta")))
    compare(walks, cases)


@points(2)
def test_redispatch(walks):
    """`redispatch` takes the keys that it gets: no tensor, no thread and no fallthrough is asked."""
    leaves_out = {**ALL, "AutogradCPU": ["excluding", ["CPU"], "hands on"]}
    puts_in = {**ALL, "AutogradCPU": ["including", ["Functionalize"], "hands on"]}
    falls = {**ALL, "Functionalize": "fallthrough", "CPU": "computes"}
    to = ["redispatch", "f", ["Functionalize", "CPU"], ["cpu"]]
    hidden = ["redispatch", "f", ["ADInplaceOrView", "Functionalize"], ["cpu"]]
    cases = [scenario(leaves_out), scenario(puts_in), scenario(ALL, to)]
    cases += [scenario(ALL, ["redispatch", "f", ["Meta"], []])]
    cases += [scenario(ALL, ["excluding", ["Functionalize"], [to]])]
    cases += [scenario(falls, to), scenario(falls, hidden)]
    cases += [scenario([("f", "CPU", "computes"), (None, "Functionalize", "fallthrough")], to)]
    compare(walks, cases)


def test_nobody(walks):
    """NotImplementedError where no key is left, or nothing stands at the most urgent one."""
    without = {key: action for key, action in ALL.items() if key != "AutogradCPU"}
    cases = [
        scenario(ALL, call(1, [])),
        scenario(ALL, ["excluding", ORDER, [call("cpu")]]),
        scenario(dict.fromkeys(CPU, "fallthrough")),
        scenario(without),
        scenario([("g", key, action) for key, action in ALL.items()]),
        scenario(ALL, ["redispatch", "f", [], ["cpu"]]),
        scenario(without, ["redispatch", "f", ["AutogradCPU", "CPU"], ["cpu"]]),
    ]
    compare(walks, cases)


def test_threads(walks):
    """What one thread includes or excludes, another does not notice."""
    other = ["thread", [call("cpu")]]
    cases = [
        scenario(ALL, ["excluding", ["AutogradCPU"], [other, call("cpu")]]),
        scenario(ALL, ["including", ["Functionalize"], [other, call("cpu")]]),
        scenario(
            ALL, ["thread", [["excluding", ["CPU"], [call("cpu")]], call("cpu")]], call("cpu")
        ),
    ]
    compare(walks, cases)


def test_all_together(walks, random):
    """Any order, any kernels, fallbacks, and keys of the thread."""
    compare(walks, [random_walk(random) for _ in range(30)])
