# %% mistake: floats
# You hand floats in as they are. The first value is a constant of the graph, and the second costs a
# compilation. As tensors without dimensions their values are no conditions.
class Steady:
    """A debiased average whose steps share one graph."""

    def __init__(self, backend: Callable) -> None:
        self.steps = 0

        def update(mean, x, decay, gain, correction):
            mean = decay * mean + gain * x.mean(0)
            return mean, mean / correction

        self.update = torch.compile(update, backend=backend)

    def __call__(
        self, mean: torch.Tensor, x: torch.Tensor, decay: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the new mean and the debiased mean, both (d,).

        mean: (d,), x: (n, d), of one floating-point dtype
        """
        self.steps += 1
        torch._dynamo.mark_dynamic(x, 0)
        numbers = (decay, 1 - decay, 1 - decay**self.steps)
        return self.update(mean, x, *numbers)


# %% mistake: counts_inside
# What you compile sees the counter. A whole number that is read from an object is guarded by its
# value, so that every step compiles, until the limit is reached.
class Steady:
    def __init__(self, backend):
        self.steps = 0
        self.update = torch.compile(self.plain, backend=backend)

    def plain(self, mean, x, decay):
        self.steps += 1
        mean = decay * mean + (1 - decay) * x.mean(0)
        return mean, mean / (1 - decay**self.steps)

    def __call__(self, mean, x, decay):
        torch._dynamo.mark_dynamic(x, 0)
        return self.update(mean, x, torch.tensor(decay, dtype=torch.float64))


# %% mistake: everything_dynamic
# With `dynamic=True` columns are symbols as well. The compiler then knows less than you do. Mark
# what varies.
class Steady:
    """A debiased average whose steps share one graph."""

    def __init__(self, backend: Callable) -> None:
        self.steps = 0

        def update(mean, x, decay, gain, correction):
            mean = decay * mean + gain * x.mean(0)
            return mean, mean / correction

        self.update = torch.compile(update, backend=backend, dynamic=True)

    def __call__(
        self, mean: torch.Tensor, x: torch.Tensor, decay: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the new mean and the debiased mean, both (d,).

        mean: (d,), x: (n, d), of one floating-point dtype
        """
        self.steps += 1
        numbers = (decay, 1 - decay, 1 - decay**self.steps)
        return self.update(mean, x, *(torch.tensor(n, dtype=torch.float64) for n in numbers))


# %% mistake: waits_for_the_second
# You let Dynamo find out that rows vary. It does, at the second size, and compiles a second time.
# Say it before the first call.
class Steady:
    """A debiased average whose steps share one graph."""

    def __init__(self, backend: Callable) -> None:
        self.steps = 0

        def update(mean, x, decay, gain, correction):
            mean = decay * mean + gain * x.mean(0)
            return mean, mean / correction

        self.update = torch.compile(update, backend=backend)

    def __call__(
        self, mean: torch.Tensor, x: torch.Tensor, decay: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the new mean and the debiased mean, both (d,).

        mean: (d,), x: (n, d), of one floating-point dtype
        """
        self.steps += 1
        numbers = (decay, 1 - decay, 1 - decay**self.steps)
        return self.update(mean, x, *(torch.tensor(n, dtype=torch.float64) for n in numbers))


# %% mistake: differences_in_float32
# You take the differences in float32. There `1 - 0.9999` has lost most of its digits. Compute them
# in Python, or in float64, and hand in the results.
class Steady:
    def __init__(self, backend):
        self.steps = 0

        def update(mean, x, decay, step):
            mean = decay * mean + (1 - decay) * x.mean(0)
            return mean, mean / (1 - decay**step)

        self.update = torch.compile(update, backend=backend)

    def __call__(self, mean, x, decay):
        self.steps += 1
        torch._dynamo.mark_dynamic(x, 0)
        return self.update(
            mean, x, torch.tensor(decay, dtype=torch.float32), torch.tensor(float(self.steps))
        )


# %% mistake: compiles_a_part
# You divide outside. The second result is then made by an operation of its own, which the compiler
# never sees.
class Steady:
    """A debiased average whose steps share one graph."""

    def __init__(self, backend: Callable) -> None:
        self.steps = 0

        def update(mean, x, decay, gain, correction):
            mean = decay * mean + gain * x.mean(0)
            return mean

        self.update = torch.compile(update, backend=backend)

    def __call__(
        self, mean: torch.Tensor, x: torch.Tensor, decay: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the new mean and the debiased mean, both (d,).

        mean: (d,), x: (n, d), of one floating-point dtype
        """
        self.steps += 1
        torch._dynamo.mark_dynamic(x, 0)
        numbers = (decay, 1 - decay, 1 - decay**self.steps)
        mean = self.update(mean, x, *(torch.tensor(n, dtype=torch.float64) for n in numbers))
        return mean, mean / (1 - decay**self.steps)


# %% mistake: counts_for_all
# Your objects share one counter. Each counts its own steps: keep the number in the object.
class Steady:
    """A debiased average whose steps share one graph."""

    steps = 0

    def __init__(self, backend: Callable) -> None:

        def update(mean, x, decay, gain, correction):
            mean = decay * mean + gain * x.mean(0)
            return mean, mean / correction

        self.update = torch.compile(update, backend=backend)

    def __call__(
        self, mean: torch.Tensor, x: torch.Tensor, decay: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the new mean and the debiased mean, both (d,).

        mean: (d,), x: (n, d), of one floating-point dtype
        """
        Steady.steps += 1
        torch._dynamo.mark_dynamic(x, 0)
        numbers = (decay, 1 - decay, 1 - decay**self.steps)
        return self.update(mean, x, *(torch.tensor(n, dtype=torch.float64) for n in numbers))


# %% mistake: counts_from_zero
# Your first step is number 0, and there the correction is a division by zero. Count before you
# compute.
class Steady:
    """A debiased average whose steps share one graph."""

    def __init__(self, backend: Callable) -> None:
        self.steps = 0

        def update(mean, x, decay, gain, correction):
            mean = decay * mean + gain * x.mean(0)
            return mean, mean / correction

        self.update = torch.compile(update, backend=backend)

    def __call__(
        self, mean: torch.Tensor, x: torch.Tensor, decay: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the new mean and the debiased mean, both (d,).

        mean: (d,), x: (n, d), of one floating-point dtype
        """
        torch._dynamo.mark_dynamic(x, 0)
        numbers = (decay, 1 - decay, 1 - decay**self.steps)
        self.steps += 1
        return self.update(mean, x, *(torch.tensor(n, dtype=torch.float64) for n in numbers))


# %% alternate: state_in_tensors
# The counter is a tensor in the graph, changed in place; decay enters as float64 and the
# differences are taken there.
class Steady:
    def __init__(self, backend):
        self.step = torch.zeros((), dtype=torch.float64)
        self.compiled = torch.compile(Steady.update, backend=backend, fullgraph=True)

    @staticmethod
    def update(mean, x, decay, step):
        step.add_(1)
        moved = torch.lerp(mean.double(), x.double().mean(0), 1 - decay)
        return moved.to(x.dtype), (moved / (1 - torch.pow(decay, step))).to(x.dtype)

    def __call__(self, mean, x, decay):
        torch._dynamo.mark_dynamic(x, 0)
        return self.compiled(mean, x, torch.tensor(decay, dtype=torch.float64), self.step)


# %% alternate: rows_that_are_unbacked
# One row gets no graph of its own either: the size is unknown while compiling. The numbers travel
# in one tensor.
class Steady:
    def __init__(self, backend):
        self.count = 0
        self.compiled = torch.compile(self.work, backend=backend)

    @staticmethod
    def work(mean, x, numbers):
        kept, new, rest = numbers.unbind()
        moved = kept * mean + new * x.mean(dim=0)
        return moved, moved / rest

    def __call__(self, mean, x, decay):
        self.count = self.count + 1
        torch._dynamo.decorators.mark_unbacked(x, 0)
        left = [decay, 1 - decay, 1 - decay**self.count]
        return self.compiled(mean, x, torch.tensor(left, dtype=torch.float64))
