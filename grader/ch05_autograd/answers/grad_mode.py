# %% blocked: torchs_own
# `torch.set_grad_enabled` is what you are asked to build.
class grad_mode(torch.set_grad_enabled):
    pass


# %% mistake: switches_on_again
# After the `with` you set grad mode to the opposite of `enabled`. It has to be what it was before,
# and that may be either: remember it when you enter.
class grad_mode:
    def __init__(self, enabled):
        self.enabled = enabled
        self.mine = threading.local()

    def __enter__(self):
        vars(self.mine).setdefault("before", []).append(torch.is_grad_enabled())
        torch._C._set_grad_enabled(self.enabled)

    def __exit__(self, *error):
        torch._C._set_grad_enabled(not self.enabled)

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def steps(*args, **kwargs):
                return (yield from self.stepwise(function(*args, **kwargs)))

            return steps

        @functools.wraps(function)
        def call(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return call

    def stepwise(self, generator):
        resume, value = generator.send, None
        while True:
            try:
                with self:
                    item = resume(value)
            except StopIteration as stop:
                return stop.value
            try:
                resume, value = generator.send, (yield item)
            except GeneratorExit:
                with self:
                    generator.close()
                raise
            except BaseException as error:
                resume, value = generator.throw, error


# %% mistake: takes_effect_at_once
# Making the object already sets the mode. It must wait for the `with`, or for the call of what it
# decorates: an object may be made long before it is used.
class grad_mode:
    def __init__(self, enabled):
        self.enabled = enabled
        self.mine = threading.local()
        self.at_first = torch.is_grad_enabled()
        torch._C._set_grad_enabled(enabled)

    def __enter__(self):
        vars(self.mine).setdefault("before", []).append(torch.is_grad_enabled())
        torch._C._set_grad_enabled(self.enabled)

    def __exit__(self, *error):
        torch._C._set_grad_enabled(self.at_first)

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def steps(*args, **kwargs):
                return (yield from self.stepwise(function(*args, **kwargs)))

            return steps

        @functools.wraps(function)
        def call(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return call

    def stepwise(self, generator):
        resume, value = generator.send, None
        while True:
            try:
                with self:
                    item = resume(value)
            except StopIteration as stop:
                return stop.value
            try:
                resume, value = generator.send, (yield item)
            except GeneratorExit:
                with self:
                    generator.close()
                raise
            except BaseException as error:
                resume, value = generator.throw, error


# %% mistake: swallows_errors
# Your `__exit__` returns something true, and Python takes that for "the error is dealt with". The
# body's error must go on: return nothing.
class grad_mode:
    def __init__(self, enabled):
        self.enabled = enabled
        self.mine = threading.local()

    def __enter__(self):
        vars(self.mine).setdefault("before", []).append(torch.is_grad_enabled())
        torch._C._set_grad_enabled(self.enabled)

    def __exit__(self, *error):
        torch._C._set_grad_enabled(self.mine.before.pop())
        return True

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def steps(*args, **kwargs):
                return (yield from self.stepwise(function(*args, **kwargs)))

            return steps

        @functools.wraps(function)
        def call(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return call

    def stepwise(self, generator):
        resume, value = generator.send, None
        while True:
            try:
                with self:
                    item = resume(value)
            except StopIteration as stop:
                return stop.value
            try:
                resume, value = generator.send, (yield item)
            except GeneratorExit:
                with self:
                    generator.close()
                raise
            except BaseException as error:
                resume, value = generator.throw, error


# %% mistake: one_place_for_before
# You keep the mode before in one attribute. When an object is entered again while it is open, the
# second entering overwrites what the first has to put back. Keep a list.
class grad_mode:
    def __init__(self, enabled):
        self.enabled = enabled
        self.mine = threading.local()
        self.mine.before = None

    def __enter__(self):
        self.mine.before = torch.is_grad_enabled()
        torch._C._set_grad_enabled(self.enabled)

    def __exit__(self, *error):
        torch._C._set_grad_enabled(self.mine.before)

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def steps(*args, **kwargs):
                return (yield from self.stepwise(function(*args, **kwargs)))

            return steps

        @functools.wraps(function)
        def call(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return call

    def stepwise(self, generator):
        resume, value = generator.send, None
        while True:
            try:
                with self:
                    item = resume(value)
            except StopIteration as stop:
                return stop.value
            try:
                resume, value = generator.send, (yield item)
            except GeneratorExit:
                with self:
                    generator.close()
                raise
            except BaseException as error:
                resume, value = generator.throw, error


# %% mistake: one_attribute
# You keep the mode before in an attribute of the object. Entered again while it is open, by the same thread
# or by another, the object overwrites what the first entering has to put back. Keep a list, one per thread.
class grad_mode:
    def __init__(self, enabled):
        self.enabled = enabled

    def __enter__(self):
        self.before = torch.is_grad_enabled()
        torch._C._set_grad_enabled(self.enabled)

    def __exit__(self, *error):
        torch._C._set_grad_enabled(self.before)

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def steps(*args, **kwargs):
                return (yield from self.stepwise(function(*args, **kwargs)))

            return steps

        @functools.wraps(function)
        def call(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return call

    def stepwise(self, generator):
        resume, value = generator.send, None
        while True:
            try:
                with self:
                    item = resume(value)
            except StopIteration as stop:
                return stop.value
            try:
                resume, value = generator.send, (yield item)
            except GeneratorExit:
                with self:
                    generator.close()
                raise
            except BaseException as error:
                resume, value = generator.throw, error


# %% mistake: one_list_for_all_threads
# Your list is shared by all threads that use the object. One thread takes what the other put there,
# and each ends in the other's mode. Grad mode is per thread, so what was before must be too.
class grad_mode:
    def __init__(self, enabled):
        self.enabled = enabled
        self.before = []

    def __enter__(self):
        self.before.append(torch.is_grad_enabled())
        torch._C._set_grad_enabled(self.enabled)

    def __exit__(self, *error):
        torch._C._set_grad_enabled(self.before.pop())

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def steps(*args, **kwargs):
                return (yield from self.stepwise(function(*args, **kwargs)))

            return steps

        @functools.wraps(function)
        def call(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return call

    def stepwise(self, generator):
        resume, value = generator.send, None
        while True:
            try:
                with self:
                    item = resume(value)
            except StopIteration as stop:
                return stop.value
            try:
                resume, value = generator.send, (yield item)
            except GeneratorExit:
                with self:
                    generator.close()
                raise
            except BaseException as error:
                resume, value = generator.throw, error


# %% mistake: without_finally
# When the decorated function raises, your wrapper never puts the mode back. Use `with self:` or
# `try` and `finally` in the wrapper.
class grad_mode:
    def __init__(self, enabled):
        self.enabled = enabled
        self.mine = threading.local()

    def __enter__(self):
        vars(self.mine).setdefault("before", []).append(torch.is_grad_enabled())
        torch._C._set_grad_enabled(self.enabled)

    def __exit__(self, *error):
        torch._C._set_grad_enabled(self.mine.before.pop())

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def steps(*args, **kwargs):
                return (yield from self.stepwise(function(*args, **kwargs)))

            return steps

        @functools.wraps(function)
        def call(*args, **kwargs):
            self.__enter__()
            result = function(*args, **kwargs)
            self.__exit__()
            return result

        return call

    def stepwise(self, generator):
        resume, value = generator.send, None
        while True:
            try:
                with self:
                    item = resume(value)
            except StopIteration as stop:
                return stop.value
            try:
                resume, value = generator.send, (yield item)
            except GeneratorExit:
                with self:
                    generator.close()
                raise
            except BaseException as error:
                resume, value = generator.throw, error


# %% mistake: generators_like_functions
# You decorate a generator function like any other. Its call only makes the generator; the body runs
# later, when your `with` is long closed.
class grad_mode:
    def __init__(self, enabled):
        self.enabled = enabled
        self.mine = threading.local()

    def __enter__(self):
        vars(self.mine).setdefault("before", []).append(torch.is_grad_enabled())
        torch._C._set_grad_enabled(self.enabled)

    def __exit__(self, *error):
        torch._C._set_grad_enabled(self.mine.before.pop())

    def __call__(self, function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return call


# %% mistake: open_between_steps
# Your `with` stays open while the generator is paused, so the caller runs in your mode. Close it
# before each `yield`.
class grad_mode:
    def __init__(self, enabled):
        self.enabled = enabled
        self.mine = threading.local()

    def __enter__(self):
        vars(self.mine).setdefault("before", []).append(torch.is_grad_enabled())
        torch._C._set_grad_enabled(self.enabled)

    def __exit__(self, *error):
        torch._C._set_grad_enabled(self.mine.before.pop())

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def steps(*args, **kwargs):
                with self:
                    return (yield from function(*args, **kwargs))

            return steps

        @functools.wraps(function)
        def call(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return call


# %% mistake: only_next
# You drive the generator with `next` alone. What the caller sends or throws in ends at your own
# `yield` and never reaches the body.
class grad_mode:
    def __init__(self, enabled):
        self.enabled = enabled
        self.mine = threading.local()

    def __enter__(self):
        vars(self.mine).setdefault("before", []).append(torch.is_grad_enabled())
        torch._C._set_grad_enabled(self.enabled)

    def __exit__(self, *error):
        torch._C._set_grad_enabled(self.mine.before.pop())

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def steps(*args, **kwargs):
                return (yield from self.stepwise(function(*args, **kwargs)))

            return steps

        @functools.wraps(function)
        def call(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return call

    def stepwise(self, generator):
        while True:
            try:
                with self:
                    item = next(generator)
            except StopIteration as stop:
                return stop.value
            yield item


# %% mistake: closed_in_the_callers_mode
# When the generator is closed, the `finally` of its body runs in the caller's mode. Catch
# `GeneratorExit` and close the inner generator inside a `with self`.
class grad_mode:
    def __init__(self, enabled):
        self.enabled = enabled
        self.mine = threading.local()

    def __enter__(self):
        vars(self.mine).setdefault("before", []).append(torch.is_grad_enabled())
        torch._C._set_grad_enabled(self.enabled)

    def __exit__(self, *error):
        torch._C._set_grad_enabled(self.mine.before.pop())

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def steps(*args, **kwargs):
                return (yield from self.stepwise(function(*args, **kwargs)))

            return steps

        @functools.wraps(function)
        def call(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return call

    def stepwise(self, generator):
        resume, value = generator.send, None
        while True:
            try:
                with self:
                    item = resume(value)
            except StopIteration as stop:
                return stop.value
            try:
                resume, value = generator.send, (yield item)
            except GeneratorExit:
                generator.close()
                raise
            except BaseException as error:
                resume, value = generator.throw, error


# %% mistake: left_to_the_garbage_collector
# You catch `Exception`, and the `GeneratorExit` of a `close()` is none. Your wrapper ends, and the inner generator
# is closed when Python throws it away, in the caller's mode. Close it yourself, inside a `with self`.
class grad_mode:
    def __init__(self, enabled):
        self.enabled = enabled
        self.mine = threading.local()

    def __enter__(self):
        vars(self.mine).setdefault("before", []).append(torch.is_grad_enabled())
        torch._C._set_grad_enabled(self.enabled)

    def __exit__(self, *error):
        torch._C._set_grad_enabled(self.mine.before.pop())

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def steps(*args, **kwargs):
                return (yield from self.stepwise(function(*args, **kwargs)))

            return steps

        @functools.wraps(function)
        def call(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return call

    def stepwise(self, generator):
        resume, value = generator.send, None
        while True:
            try:
                with self:
                    item = resume(value)
            except StopIteration as stop:
                return stop.value
            try:
                resume, value = generator.send, (yield item)
            except Exception as error:
                resume, value = generator.throw, error


# %% mistake: loses_the_name
# Your wrapper has its own name and no docstring. `functools.wraps(function)` copies both.
class grad_mode:
    def __init__(self, enabled):
        self.enabled = enabled
        self.mine = threading.local()

    def __enter__(self):
        vars(self.mine).setdefault("before", []).append(torch.is_grad_enabled())
        torch._C._set_grad_enabled(self.enabled)

    def __exit__(self, *error):
        torch._C._set_grad_enabled(self.mine.before.pop())

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):

            def steps(*args, **kwargs):
                return (yield from self.stepwise(function(*args, **kwargs)))

            return steps

        def call(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return call

    def stepwise(self, generator):
        resume, value = generator.send, None
        while True:
            try:
                with self:
                    item = resume(value)
            except StopIteration as stop:
                return stop.value
            try:
                resume, value = generator.send, (yield item)
            except GeneratorExit:
                with self:
                    generator.close()
                raise
            except BaseException as error:
                resume, value = generator.throw, error


# %% mistake: forgets_the_return_value
# What a generator returns travels in `StopIteration.value`. You end the generator and drop it.
class grad_mode:
    def __init__(self, enabled):
        self.enabled = enabled
        self.mine = threading.local()

    def __enter__(self):
        vars(self.mine).setdefault("before", []).append(torch.is_grad_enabled())
        torch._C._set_grad_enabled(self.enabled)

    def __exit__(self, *error):
        torch._C._set_grad_enabled(self.mine.before.pop())

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def steps(*args, **kwargs):
                return (yield from self.stepwise(function(*args, **kwargs)))

            return steps

        @functools.wraps(function)
        def call(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return call

    def stepwise(self, generator):
        resume, value = generator.send, None
        while True:
            try:
                with self:
                    item = resume(value)
            except StopIteration:
                return
            try:
                resume, value = generator.send, (yield item)
            except GeneratorExit:
                with self:
                    generator.close()
                raise
            except BaseException as error:
                resume, value = generator.throw, error


# %% alternate: a_manager_per_entry
# A stack of small generators does the remembering; every entry has a frame of its own.
class grad_mode:
    def __init__(self, enabled):
        self.enabled, self.per_thread = enabled, {}

    @contextmanager
    def switched(self):
        before = torch.is_grad_enabled()
        torch._C._set_grad_enabled(self.enabled)
        try:
            yield
        finally:
            torch._C._set_grad_enabled(before)

    def __enter__(self):
        manager = self.switched()
        manager.__enter__()
        self.per_thread.setdefault(threading.get_ident(), []).append(manager)
        return self

    def __exit__(self, *error):
        return self.per_thread[threading.get_ident()].pop().__exit__(*error)

    def __call__(self, function):
        if not inspect.isgeneratorfunction(function):

            def call(*args, **kwargs):
                with self.switched():
                    return function(*args, **kwargs)

            return functools.update_wrapper(call, function)

        def steps(*args, **kwargs):
            generator = function(*args, **kwargs)
            method, argument = "send", None
            while True:
                with self.switched():
                    try:
                        item = getattr(generator, method)(argument)
                    except StopIteration as stop:
                        return stop.value
                try:
                    argument = yield item
                    method = "send"
                except BaseException as error:
                    # GeneratorExit too: the body may look at it, and it comes out again
                    method, argument = "throw", error

        return functools.update_wrapper(steps, function)


# %% alternate: a_generator_class
# An object with send, throw and close of its own, made by the collections package.
import collections.abc  # noqa: E402


class Steps(collections.abc.Generator):
    def __init__(self, mode, generator):
        self.mode, self.generator = mode, generator

    def send(self, value):
        with self.mode:
            return self.generator.send(value)

    def throw(self, *error):
        with self.mode:
            return self.generator.throw(*error)

    def close(self):
        with self.mode:
            self.generator.close()


class Before(threading.local):
    def __init__(self):
        self.modes = ()


class grad_mode:
    def __init__(self, enabled):
        self.enabled, self.before = enabled, Before()

    def __enter__(self):
        self.before.modes = (torch.is_grad_enabled(), self.before.modes)
        torch._C._set_grad_enabled(self.enabled)

    def __exit__(self, kind, value, trace):
        last, self.before.modes = self.before.modes
        torch._C._set_grad_enabled(last)

    def __call__(self, function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            if inspect.isgeneratorfunction(function):
                return Steps(self, function(*args, **kwargs))
            with self:
                return function(*args, **kwargs)

        return call
