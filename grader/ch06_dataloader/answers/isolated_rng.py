# %% blocked: fork_rng
# `fork_rng` is the fence for torch's stream, and leaves the two others open. Move states yourself.
class isolated_rng:
    def __init__(self, seed):
        self.seed = seed

    def __enter__(self):
        self.fork = torch.random.fork_rng(devices=[])
        self.fork.__enter__()
        torch.manual_seed(self.seed)

    def __exit__(self, *error):
        self.fork.__exit__(*error)


# %% mistake: never_goes_back
# You seed on entering and leave it at that. Whoever draws afterwards draws from your streams: put the
# three states back when the block ends.
class isolated_rng:
    def __init__(self, seed):
        self.inside = None
        self.seed = seed

    def __enter__(self):
        random.seed(self.seed)
        np.random.seed(self.seed)
        torch.manual_seed(self.seed)
        if self.inside:
            random.setstate(self.inside[0])
            np.random.set_state(self.inside[1])
            torch.set_rng_state(self.inside[2])

    def __exit__(self, *error):
        self.inside = random.getstate(), np.random.get_state(), torch.get_rng_state()


# %% mistake: torch_alone
# You take care of torch's stream only. `random` and NumPy have streams of their own, and
# augmentations often draw from them: save, seed and put back all three.
class isolated_rng:
    def __init__(self, seed):
        self.inside = torch.Generator().manual_seed(seed).get_state()

    def __enter__(self):
        self.outside = torch.get_rng_state()
        torch.set_rng_state(self.inside)

    def __exit__(self, *error):
        self.inside = torch.get_rng_state()
        torch.set_rng_state(self.outside)


# %% mistake: seeds_again
# Afterwards you seed torch with `initial_seed()`. That is where the stream began, and not where it
# was: what was drawn before the block is drawn again. Keep the state.
class isolated_rng:
    def __init__(self, seed):
        self.inside = (
            random.Random(seed).getstate(),
            np.random.RandomState(seed).get_state(),
            torch.Generator().manual_seed(seed).get_state(),
        )

    def __enter__(self):
        self.outside = random.getstate(), np.random.get_state(), torch.initial_seed()
        random.setstate(self.inside[0])
        np.random.set_state(self.inside[1])
        torch.set_rng_state(self.inside[2])

    def __exit__(self, *error):
        self.inside = random.getstate(), np.random.get_state(), torch.get_rng_state()
        random.setstate(self.outside[0])
        np.random.set_state(self.outside[1])
        torch.manual_seed(self.outside[2])


# %% mistake: draws_a_seed
# You draw a number before the block and seed with it afterwards. Then the streams outside depend on
# whether there was a block. A state can be read without drawing.
class isolated_rng:
    def __init__(self, seed):
        self.inside = (
            random.Random(seed).getstate(),
            np.random.RandomState(seed).get_state(),
            torch.Generator().manual_seed(seed).get_state(),
        )

    def __enter__(self):
        self.after = int(torch.randint(2**31, ()))
        random.setstate(self.inside[0])
        np.random.set_state(self.inside[1])
        torch.set_rng_state(self.inside[2])

    def __exit__(self, *error):
        self.inside = random.getstate(), np.random.get_state(), torch.get_rng_state()
        random.seed(self.after)
        np.random.seed(self.after)
        torch.manual_seed(self.after)


# %% mistake: not_after_an_error
# When the block raises, nothing is put back. In a generator with `@contextmanager` that means `finally`
# around the `yield`; in a class, `__exit__` is called either way, and must not look at the error first.
class isolated_rng:
    def __init__(self, seed):
        self.inside = (
            random.Random(seed).getstate(),
            np.random.RandomState(seed).get_state(),
            torch.Generator().manual_seed(seed).get_state(),
        )

    def __enter__(self):
        self.outside = random.getstate(), np.random.get_state(), torch.get_rng_state()
        random.setstate(self.inside[0])
        np.random.set_state(self.inside[1])
        torch.set_rng_state(self.inside[2])

    def __exit__(self, kind, error, trace):
        self.inside = random.getstate(), np.random.get_state(), torch.get_rng_state()
        if kind is None:
            random.setstate(self.outside[0])
            np.random.set_state(self.outside[1])
            torch.set_rng_state(self.outside[2])


# %% mistake: swallows_the_error
# `__exit__` returns something true, and so the body's error ends there. Return nothing.
class isolated_rng:
    def __init__(self, seed):
        self.inside = (
            random.Random(seed).getstate(),
            np.random.RandomState(seed).get_state(),
            torch.Generator().manual_seed(seed).get_state(),
        )

    def __enter__(self):
        self.outside = random.getstate(), np.random.get_state(), torch.get_rng_state()
        random.setstate(self.inside[0])
        np.random.set_state(self.inside[1])
        torch.set_rng_state(self.inside[2])

    def __exit__(self, *error):
        self.inside = random.getstate(), np.random.get_state(), torch.get_rng_state()
        random.setstate(self.outside[0])
        np.random.set_state(self.outside[1])
        torch.set_rng_state(self.outside[2])
        return self


# %% mistake: starts_over
# Entered a second time, your object seeds again and draws the same numbers. Keep on leaving where the
# inner streams stopped.
class isolated_rng:
    def __init__(self, seed):
        self.seed = seed

    def __enter__(self):
        self.outside = random.getstate(), np.random.get_state(), torch.get_rng_state()
        random.seed(self.seed)
        np.random.seed(self.seed)
        torch.manual_seed(self.seed)

    def __exit__(self, *error):
        random.setstate(self.outside[0])
        np.random.set_state(self.outside[1])
        torch.set_rng_state(self.outside[2])


# %% mistake: outside_when_made
# You note the outer streams when the object is made. They may have moved by the time it is entered:
# note them in `__enter__`.
class isolated_rng:
    def __init__(self, seed):
        self.inside = (
            random.Random(seed).getstate(),
            np.random.RandomState(seed).get_state(),
            torch.Generator().manual_seed(seed).get_state(),
        )
        self.outside = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def __enter__(self):
        random.setstate(self.inside[0])
        np.random.set_state(self.inside[1])
        torch.set_rng_state(self.inside[2])

    def __exit__(self, *error):
        self.inside = random.getstate(), np.random.get_state(), torch.get_rng_state()
        random.setstate(self.outside[0])
        np.random.set_state(self.outside[1])
        torch.set_rng_state(self.outside[2])


# %% mistake: seeds_when_made
# Making an object seeds the global streams. They belong to whoever is outside until the block begins:
# seed after the outer states are safe, or ask generators of your own for a state.
class isolated_rng:
    def __init__(self, seed):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        self.inside = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def __enter__(self):
        self.outside = random.getstate(), np.random.get_state(), torch.get_rng_state()
        random.setstate(self.inside[0])
        np.random.set_state(self.inside[1])
        torch.set_rng_state(self.inside[2])

    def __exit__(self, *error):
        self.inside = random.getstate(), np.random.get_state(), torch.get_rng_state()
        random.setstate(self.outside[0])
        np.random.set_state(self.outside[1])
        torch.set_rng_state(self.outside[2])


# %% mistake: one_place_for_all
# All your objects keep the outer states in one place. The inner one of two nested blocks overwrites
# what the outer one has noted: give each object its own.
class isolated_rng:
    outside = []

    def __init__(self, seed):
        self.inside = (
            random.Random(seed).getstate(),
            np.random.RandomState(seed).get_state(),
            torch.Generator().manual_seed(seed).get_state(),
        )

    def __enter__(self):
        self.outside[:] = random.getstate(), np.random.get_state(), torch.get_rng_state()
        random.setstate(self.inside[0])
        np.random.set_state(self.inside[1])
        torch.set_rng_state(self.inside[2])

    def __exit__(self, *error):
        self.inside = random.getstate(), np.random.get_state(), torch.get_rng_state()
        random.setstate(self.outside[0])
        np.random.set_state(self.outside[1])
        torch.set_rng_state(self.outside[2])


# %% mistake: forgets_after_an_error
# When the block raises, you do not note where the inner streams were. Entered again, they draw the same
# numbers once more. Note them on every way out.
class isolated_rng:
    def __init__(self, seed):
        self.seed, self.inner = seed, None

    def states(self):
        return random.getstate(), np.random.get_state(), torch.get_rng_state()

    def put(self, states):
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])

    def __enter__(self):
        self.outer = self.states()
        if self.inner is None:
            random.seed(self.seed)
            np.random.seed(self.seed)
            torch.manual_seed(self.seed)
        else:
            self.put(self.inner)

    def __exit__(self, kind, *_):
        if kind is None:
            self.inner = self.states()
        self.put(self.outer)


# %% mistake: only_once
# What `@contextmanager` makes can be entered once; the second `with` raises. An object that comes back to its
# streams needs a class, with `__enter__` and `__exit__`.
def isolated_rng(seed):
    from contextlib import contextmanager

    @contextmanager
    def fence():
        outer = random.getstate(), np.random.get_state(), torch.get_rng_state()
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(outer[0])
            np.random.set_state(outer[1])
            torch.set_rng_state(outer[2])

    return fence()


# %% alternate: seeds_the_first_time
# Seeds the global streams, once the outer states are safe; a stack of what was outside.
class isolated_rng:
    def __init__(self, seed):
        self.seed, self.inside, self.outside = seed, None, []

    def __enter__(self):
        self.outside.append(
            [random.getstate(), np.random.get_state(), torch.random.get_rng_state()]
        )
        if self.inside is None:
            for start in (random.seed, np.random.seed, torch.manual_seed):
                start(self.seed)
        else:
            self.go_to(self.inside)
        return self

    def __exit__(self, kind, error, trace):
        self.inside = [random.getstate(), np.random.get_state(), torch.random.get_rng_state()]
        self.go_to(self.outside.pop())
        return False

    def go_to(self, states):
        for put, state in zip(
            (random.setstate, np.random.set_state, torch.random.set_rng_state), states
        ):
            put(state)


# %% alternate: a_generator_that_never_ends
# One generator makes all swaps: it sleeps between two of them.
def isolated_rng(seed):
    def swaps():
        inside = None
        while True:
            outside = random.getstate(), np.random.get_state(), torch.default_generator.get_state()
            if inside is None:
                random.seed(seed)
                np.random.seed(seed)
                torch.default_generator.manual_seed(seed)
            else:
                random.setstate(inside[0])
                np.random.set_state(inside[1])
                torch.default_generator.set_state(inside[2])
            yield
            inside = random.getstate(), np.random.get_state(), torch.default_generator.get_state()
            random.setstate(outside[0])
            np.random.set_state(outside[1])
            torch.default_generator.set_state(outside[2])
            yield

    class Fence:
        def __init__(self):
            self.steps = swaps()

        def __enter__(self):
            next(self.steps)

        def __exit__(self, *error):
            next(self.steps)

    return Fence()
