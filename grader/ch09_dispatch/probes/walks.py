"""The probe of `Dispatcher`: plays a scenario of kernels and calls, and notes who was called.

A scenario is data, with the keys
    order: all keys, the most urgent first
    kernels: lists [op, key, action]; op None for a fallback
    steps: what is done, see `run`; ["makes", guard, keys] makes a context manager that nobody enters
An action is what a kernel does after it was noted:
    "computes", "hands on" (redispatches with the keys after its own), "fails",
    "fallthrough" (which is registered in place of a kernel),
    ["redispatches", keys], ["calls", op], ["including" or "excluding", keys, action]
"""

import threading

import torch

from grader import probe

MOST_STOPS = 40
"""A scenario has ten at most: what goes on calls itself."""


class Broken(Exception):
    """Raised by a kernel, or within a `with`, because the scenario says so."""


class Endless(Exception):
    """Too many kernels were called."""


def samples() -> dict[str, torch.Tensor]:
    """Return tensors with different keys, by name."""
    with torch.inference_mode():
        of_inference = torch.ones(2)
    return {
        "cpu": torch.ones(2),
        "meta": torch.ones(2, device="meta"),
        "sparse": torch.ones(2).to_sparse(),
        "conj": torch.ones(2, dtype=torch.complex64).conj(),
        "inference": of_inference,
    }


class Player:
    """Plays one scenario with a dispatcher, and keeps its notes."""

    def __init__(self, dispatcher, scenario):
        self.dispatcher, self.order = dispatcher, scenario["order"]
        self.samples = samples()
        self.notes = []
        self.made = []
        self.stops = 0
        for op, key, action in scenario["kernels"]:
            if op is None:
                dispatcher.register_fallback(key, self.fallback(key, action))
            else:
                dispatcher.register(op, key, self.kernel(op, key, action))

    def kernel(self, op, key, action):
        """Return what is registered for `op` at `key`."""
        if action == "fallthrough":
            return action
        return lambda keys, *args, **kwargs: self.stop(op, key, keys, action, args, kwargs)

    def fallback(self, key, action):
        """Return what is registered at `key` for all operators."""
        if action == "fallthrough":
            return action
        return lambda keys, op, *args, **kwargs: self.stop(op, key, keys, action, args, kwargs)

    def stop(self, op, key, keys, action, args, kwargs):
        """Note a kernel's call, and do what the kernel does; return its key and what it got."""
        self.stops += 1
        if self.stops > MOST_STOPS:
            raise Endless
        known = sorted(keys, key=self.order.index)
        given = ", ".join(
            [*map(self.name, args), *(f"{k}={self.name(v)}" for k, v in kwargs.items())]
        )
        self.notes.append(f"{op}({given}) at {key}, keys: {' '.join(known)}")
        return f"{key}: {self.act(op, key, set(keys), action, args, kwargs)}"

    def act(self, op, key, keys, action, args, kwargs):
        match action:
            case "computes":
                return op
            case "hands on":
                below = keys & set(self.dispatcher.after(key))
                return self.dispatcher.redispatch(op, below, *args, **kwargs)
            case ["redispatches", others]:
                return self.dispatcher.redispatch(op, set(others), *args, **kwargs)
            case ["calls", other]:
                return self.dispatcher.call(other, *args, **kwargs)
            case ["including" | "excluding" as guard, others, inner]:
                with getattr(self.dispatcher, guard)(list(others)):
                    return self.act(op, key, keys, inner, args, kwargs)
        raise Broken

    def name(self, value):
        """Return an argument as the scenario names it."""
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(self.name, value))}]"
        for name, sample in self.samples.items():
            if value is sample:
                return name
        return repr(value) if isinstance(value, int | None) else f"a {type(value).__name__}"

    def argument(self, given):
        """Return the argument that a scenario names."""
        if isinstance(given, list):
            return [self.argument(one) for one in given]
        if isinstance(given, tuple):
            return tuple(self.argument(one) for one in given)
        return self.samples.get(given, given) if isinstance(given, str) else given

    def run(self, steps):
        """Do steps: call, redispatch, including, excluding, makes, thread, fails."""
        for step in steps:
            match step:
                case ["call", op, args, kwargs]:
                    named = {key: self.argument(one) for key, one in kwargs.items()}
                    self.outcome(self.dispatcher.call, op, *map(self.argument, args), **named)
                case ["redispatch", op, keys, args]:
                    redispatch = self.dispatcher.redispatch
                    self.outcome(redispatch, op, set(keys), *map(self.argument, args))
                case ["including" | "excluding" as guard, keys, inner]:
                    try:
                        with getattr(self.dispatcher, guard)(list(keys)):
                            self.run(inner)
                    except Broken:
                        self.notes.append("left by an exception")
                case ["makes", guard, keys]:
                    self.made.append(getattr(self.dispatcher, guard)(list(keys)))
                case ["thread", inner]:
                    self.in_thread(inner)
                case ["fails"]:
                    raise Broken

    def outcome(self, function, op, *args, **kwargs):
        """Note what a call returned or raised, where that is a way for a dispatcher to say no."""
        try:
            value = function(op, *args, **kwargs)
        except (Broken, Endless, RuntimeError, LookupError, ValueError) as error:
            self.notes.append(f"raised {called(error)}")
        else:
            self.notes.append(
                f"returned {value if isinstance(value, str) else type(value).__name__}"
            )

    def in_thread(self, steps):
        """Run steps in a thread of their own; raise here what they raised there."""
        raised = []

        def body():
            try:
                self.run(steps)
            except Exception as error:
                raised.append(error)

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        if raised:
            raise raised[0]


def called(error: Exception) -> str:
    """Return the name of an error; of the kinds that a dispatcher is asked for, the kind's."""
    if isinstance(error, Broken):
        return "what the kernel raised"
    if isinstance(error, Endless | RecursionError):
        return "an error, because kernels called each other without end"
    for kind in (NotImplementedError, RuntimeError):
        if isinstance(error, kind):
            return kind.__name__
    return type(error).__name__


def play(make, scenario):
    """Return the notes of a scenario played by the dispatcher that `make(order)` returns."""
    player = Player(make(list(scenario["order"])), scenario)
    player.run(scenario["steps"])
    return player.notes


@probe
def walks(student, scenarios):
    """Return the notes of each scenario."""
    return [play(student.Dispatcher, scenario) for scenario in scenarios]
