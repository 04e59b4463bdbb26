# %% blocked: the_call
# This is the method that you are asked to build.
def call_hooked(module, *args, **kwargs):
    return nn.Module.__call__(module, *args, **kwargs)


# %% mistake: output_of_forward
# You hand every hook the output of `forward`. Each must see what the one before made of it.
def call_hooked(module, *args, **kwargs):
    output, called = None, set()

    def after(key, hook):
        called.add(key)
        with_kwargs = key in module._forward_hooks_with_kwargs
        found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        return output if found is None else found

    try:
        for key, hook in list(module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                found = hook(module, args, kwargs)
                if found is not None:
                    if not isinstance(found, tuple) or len(found) != 2:
                        raise RuntimeError(f"a pair of args and kwargs was expected, not {found!r}")
                    args, kwargs = found
            else:
                found = hook(module, args)
                if found is not None:
                    args = found if isinstance(found, tuple) else (found,)
        output = module.forward(*args, **kwargs)
        for key, hook in list(module._forward_hooks.items()):
            output_now = after(key, hook)
        return output_now if module._forward_hooks else output
    except Exception:
        for key, hook in list(module._forward_hooks.items()):
            if key in module._forward_hooks_always_called and key not in called:
                with suppress(Exception):
                    output = after(key, hook)
        raise


# %% mistake: zero_is_nothing
# You ask whether a hook's result is true. Zero is false, and is a result; so is an empty tuple.
# Compare with `None`.
def call_hooked(module, *args, **kwargs):
    output, called = None, set()

    def after(key, hook):
        called.add(key)
        with_kwargs = key in module._forward_hooks_with_kwargs
        found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        return found or output

    try:
        for key, hook in list(module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                found = hook(module, args, kwargs)
                if found is not None:
                    if not isinstance(found, tuple) or len(found) != 2:
                        raise RuntimeError(f"a pair of args and kwargs was expected, not {found!r}")
                    args, kwargs = found
            else:
                found = hook(module, args)
                if found is not None:
                    args = found if isinstance(found, tuple) else (found,)
        output = module.forward(*args, **kwargs)
        for key, hook in list(module._forward_hooks.items()):
            output = after(key, hook)
        return output
    except Exception:
        for key, hook in list(module._forward_hooks.items()):
            if key in module._forward_hooks_always_called and key not in called:
                with suppress(Exception):
                    output = after(key, hook)
        raise


# %% mistake: must_be_a_tuple
# You take what a pre hook returns for the arguments as it is. What is no tuple stands for a single
# argument.
def call_hooked(module, *args, **kwargs):
    output, called = None, set()

    def after(key, hook):
        called.add(key)
        with_kwargs = key in module._forward_hooks_with_kwargs
        found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        return output if found is None else found

    try:
        for key, hook in list(module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                found = hook(module, args, kwargs)
                if found is not None:
                    if not isinstance(found, tuple) or len(found) != 2:
                        raise RuntimeError(f"a pair of args and kwargs was expected, not {found!r}")
                    args, kwargs = found
            else:
                found = hook(module, args)
                if found is not None:
                    args = tuple(found)
        output = module.forward(*args, **kwargs)
        for key, hook in list(module._forward_hooks.items()):
            output = after(key, hook)
        return output
    except Exception:
        for key, hook in list(module._forward_hooks.items()):
            if key in module._forward_hooks_always_called and key not in called:
                with suppress(Exception):
                    output = after(key, hook)
        raise


# %% mistake: arguments_of_the_caller
# You call `forward` with the arguments that came in. The pre hooks may have replaced them.
def call_hooked(module, *args, **kwargs):
    output, called, given = None, set(), (args, kwargs)

    def after(key, hook):
        called.add(key)
        with_kwargs = key in module._forward_hooks_with_kwargs
        found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        return output if found is None else found

    try:
        for key, hook in list(module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                found = hook(module, args, kwargs)
                if found is not None:
                    if not isinstance(found, tuple) or len(found) != 2:
                        raise RuntimeError(f"a pair of args and kwargs was expected, not {found!r}")
                    args, kwargs = found
            else:
                found = hook(module, args)
                if found is not None:
                    args = found if isinstance(found, tuple) else (found,)
        output = module.forward(*given[0], **given[1])
        for key, hook in list(module._forward_hooks.items()):
            output = after(key, hook)
        return output
    except Exception:
        for key, hook in list(module._forward_hooks.items()):
            if key in module._forward_hooks_always_called and key not in called:
                with suppress(Exception):
                    output = after(key, hook)
        raise


# %% mistake: no_keywords
# You never pass keyword arguments to hooks. Those whose key is in the `_with_kwargs` dictionaries
# asked for them.
def call_hooked(module, *args, **kwargs):
    output, called = None, set()

    def after(key, hook):
        called.add(key)
        with_kwargs = False
        found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        return output if found is None else found

    try:
        for key, hook in list(module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                found = hook(module, args, kwargs)
                if found is not None:
                    if not isinstance(found, tuple) or len(found) != 2:
                        raise RuntimeError(f"a pair of args and kwargs was expected, not {found!r}")
                    args, kwargs = found
            else:
                found = hook(module, args)
                if found is not None:
                    args = found if isinstance(found, tuple) else (found,)
        output = module.forward(*args, **kwargs)
        for key, hook in list(module._forward_hooks.items()):
            output = after(key, hook)
        return output
    except Exception:
        for key, hook in list(module._forward_hooks.items()):
            if key in module._forward_hooks_always_called and key not in called:
                with suppress(Exception):
                    output = after(key, hook)
        raise


# %% mistake: anything_for_a_pair
# You take what a pre hook with keyword arguments returns without looking. It must be a pair; else
# raise a `RuntimeError` that says so.
def call_hooked(module, *args, **kwargs):
    output, called = None, set()

    def after(key, hook):
        called.add(key)
        with_kwargs = key in module._forward_hooks_with_kwargs
        found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        return output if found is None else found

    try:
        for key, hook in list(module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                found = hook(module, args, kwargs)
                if found is not None:
                    args, kwargs = found if isinstance(found, tuple) else ((found,), kwargs)
            else:
                found = hook(module, args)
                if found is not None:
                    args = found if isinstance(found, tuple) else (found,)
        output = module.forward(*args, **kwargs)
        for key, hook in list(module._forward_hooks.items()):
            output = after(key, hook)
        return output
    except Exception:
        for key, hook in list(module._forward_hooks.items()):
            if key in module._forward_hooks_always_called and key not in called:
                with suppress(Exception):
                    output = after(key, hook)
        raise


# %% mistake: never_after_errors
# You call no hooks after an error. Some asked to be called always, to tidy up.
def call_hooked(module, *args, **kwargs):
    output, called = None, set()

    def after(key, hook):
        called.add(key)
        with_kwargs = key in module._forward_hooks_with_kwargs
        found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        return output if found is None else found

    try:
        for key, hook in list(module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                found = hook(module, args, kwargs)
                if found is not None:
                    if not isinstance(found, tuple) or len(found) != 2:
                        raise RuntimeError(f"a pair of args and kwargs was expected, not {found!r}")
                    args, kwargs = found
            else:
                found = hook(module, args)
                if found is not None:
                    args = found if isinstance(found, tuple) else (found,)
        output = module.forward(*args, **kwargs)
        for key, hook in list(module._forward_hooks.items()):
            output = after(key, hook)
        return output
    except Exception:
        for key, hook in list(module._forward_hooks.items()):
            if False:
                with suppress(Exception):
                    output = after(key, hook)
        raise


# %% mistake: all_after_errors
# After an error you call every hook that is left. Only those in `_forward_hooks_always_called`
# asked for it.
def call_hooked(module, *args, **kwargs):
    output, called = None, set()

    def after(key, hook):
        called.add(key)
        with_kwargs = key in module._forward_hooks_with_kwargs
        found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        return output if found is None else found

    try:
        for key, hook in list(module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                found = hook(module, args, kwargs)
                if found is not None:
                    if not isinstance(found, tuple) or len(found) != 2:
                        raise RuntimeError(f"a pair of args and kwargs was expected, not {found!r}")
                    args, kwargs = found
            else:
                found = hook(module, args)
                if found is not None:
                    args = found if isinstance(found, tuple) else (found,)
        output = module.forward(*args, **kwargs)
        for key, hook in list(module._forward_hooks.items()):
            output = after(key, hook)
        return output
    except Exception:
        for key, hook in list(module._forward_hooks.items()):
            if key not in called:
                with suppress(Exception):
                    output = after(key, hook)
        raise


# %% mistake: twice_after_errors
# After an error you call hooks again that were called before it. Note the keys of those that were.
def call_hooked(module, *args, **kwargs):
    output, called = None, set()

    def after(key, hook):
        called.add(key)
        with_kwargs = key in module._forward_hooks_with_kwargs
        found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        return output if found is None else found

    try:
        for key, hook in list(module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                found = hook(module, args, kwargs)
                if found is not None:
                    if not isinstance(found, tuple) or len(found) != 2:
                        raise RuntimeError(f"a pair of args and kwargs was expected, not {found!r}")
                    args, kwargs = found
            else:
                found = hook(module, args)
                if found is not None:
                    args = found if isinstance(found, tuple) else (found,)
        output = module.forward(*args, **kwargs)
        for key, hook in list(module._forward_hooks.items()):
            output = after(key, hook)
        return output
    except Exception:
        for key, hook in list(module._forward_hooks.items()):
            if key in module._forward_hooks_always_called:
                with suppress(Exception):
                    output = after(key, hook)
        raise


# %% mistake: second_error_wins
# When a hook raises after an error, its error hides the first. Drop it: the first is the one to
# know of.
def call_hooked(module, *args, **kwargs):
    output, called = None, set()

    def after(key, hook):
        called.add(key)
        with_kwargs = key in module._forward_hooks_with_kwargs
        found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        return output if found is None else found

    try:
        for key, hook in list(module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                found = hook(module, args, kwargs)
                if found is not None:
                    if not isinstance(found, tuple) or len(found) != 2:
                        raise RuntimeError(f"a pair of args and kwargs was expected, not {found!r}")
                    args, kwargs = found
            else:
                found = hook(module, args)
                if found is not None:
                    args = found if isinstance(found, tuple) else (found,)
        output = module.forward(*args, **kwargs)
        for key, hook in list(module._forward_hooks.items()):
            output = after(key, hook)
        return output
    except Exception:
        for key, hook in list(module._forward_hooks.items()):
            if key in module._forward_hooks_always_called and key not in called:
                output = after(key, hook)
        raise


# %% mistake: swallows_the_error
# You call the hooks and return as if nothing had happened. The error must go on to the caller.
def call_hooked(module, *args, **kwargs):
    output, called = None, set()

    def after(key, hook):
        called.add(key)
        with_kwargs = key in module._forward_hooks_with_kwargs
        found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        return output if found is None else found

    try:
        for key, hook in list(module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                found = hook(module, args, kwargs)
                if found is not None:
                    if not isinstance(found, tuple) or len(found) != 2:
                        raise RuntimeError(f"a pair of args and kwargs was expected, not {found!r}")
                    args, kwargs = found
            else:
                found = hook(module, args)
                if found is not None:
                    args = found if isinstance(found, tuple) else (found,)
        output = module.forward(*args, **kwargs)
        for key, hook in list(module._forward_hooks.items()):
            output = after(key, hook)
        return output
    except Exception:
        for key, hook in list(module._forward_hooks.items()):
            if key in module._forward_hooks_always_called and key not in called:
                with suppress(Exception):
                    output = after(key, hook)
        return output


# %% mistake: live_dictionary
# You loop over the dictionary itself. A hook that takes itself off changes it, and Python stops
# the loop with an error. Loop over a list of its items.
def call_hooked(module, *args, **kwargs):
    output, called = None, set()

    def after(key, hook):
        called.add(key)
        with_kwargs = key in module._forward_hooks_with_kwargs
        found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        return output if found is None else found

    try:
        for key, hook in list(module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                found = hook(module, args, kwargs)
                if found is not None:
                    if not isinstance(found, tuple) or len(found) != 2:
                        raise RuntimeError(f"a pair of args and kwargs was expected, not {found!r}")
                    args, kwargs = found
            else:
                found = hook(module, args)
                if found is not None:
                    args = found if isinstance(found, tuple) else (found,)
        output = module.forward(*args, **kwargs)
        for key, hook in module._forward_hooks.items():
            output = after(key, hook)
        return output
    except Exception:
        for key, hook in list(module._forward_hooks.items()):
            if key in module._forward_hooks_always_called and key not in called:
                with suppress(Exception):
                    output = after(key, hook)
        raise


# %% mistake: live_pre_hooks
# You loop over the dictionary of pre hooks itself. One that takes itself off changes it, and Python stops
# the loop with an error. Loop over a list of its items.
def call_hooked(module, *args, **kwargs):
    output, called = None, set()

    def after(key, hook):
        called.add(key)
        with_kwargs = key in module._forward_hooks_with_kwargs
        found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        return output if found is None else found

    try:
        for key, hook in module._forward_pre_hooks.items():
            if key in module._forward_pre_hooks_with_kwargs:
                found = hook(module, args, kwargs)
                if found is not None:
                    if not isinstance(found, tuple) or len(found) != 2:
                        raise RuntimeError(f"a pair of args and kwargs was expected, not {found!r}")
                    args, kwargs = found
            else:
                found = hook(module, args)
                if found is not None:
                    args = found if isinstance(found, tuple) else (found,)
        output = module.forward(*args, **kwargs)
        for key, hook in list(module._forward_hooks.items()):
            output = after(key, hook)
        return output
    except Exception:
        for key, hook in list(module._forward_hooks.items()):
            if key in module._forward_hooks_always_called and key not in called:
                with suppress(Exception):
                    output = after(key, hook)
        raise


# %% mistake: live_after_errors
# After an error you loop over the dictionary itself. A hook that takes itself off there changes it, and
# Python's error hides the first. Loop over a list of its items.
def call_hooked(module, *args, **kwargs):
    output, called = None, set()

    def after(key, hook):
        called.add(key)
        with_kwargs = key in module._forward_hooks_with_kwargs
        found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        return output if found is None else found

    try:
        for key, hook in list(module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                found = hook(module, args, kwargs)
                if found is not None:
                    if not isinstance(found, tuple) or len(found) != 2:
                        raise RuntimeError(f"a pair of args and kwargs was expected, not {found!r}")
                    args, kwargs = found
            else:
                found = hook(module, args)
                if found is not None:
                    args = found if isinstance(found, tuple) else (found,)
        output = module.forward(*args, **kwargs)
        for key, hook in list(module._forward_hooks.items()):
            output = after(key, hook)
        return output
    except Exception:
        for key, hook in module._forward_hooks.items():
            if key in module._forward_hooks_always_called and key not in called:
                with suppress(Exception):
                    output = after(key, hook)
        raise


# %% mistake: list_is_arguments
# You take a list for several arguments. Only a tuple is; a list that a pre hook returns is one argument,
# like a tensor.
def call_hooked(module, *args, **kwargs):
    output, called = None, set()

    def after(key, hook):
        called.add(key)
        with_kwargs = key in module._forward_hooks_with_kwargs
        found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        return output if found is None else found

    try:
        for key, hook in list(module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                found = hook(module, args, kwargs)
                if found is not None:
                    if not isinstance(found, tuple) or len(found) != 2:
                        raise RuntimeError(f"a pair of args and kwargs was expected, not {found!r}")
                    args, kwargs = found
            else:
                found = hook(module, args)
                if found is not None:
                    args = tuple(found) if isinstance(found, list | tuple) else (found,)
        output = module.forward(*args, **kwargs)
        for key, hook in list(module._forward_hooks.items()):
            output = after(key, hook)
        return output
    except Exception:
        for key, hook in list(module._forward_hooks.items()):
            if key in module._forward_hooks_always_called and key not in called:
                with suppress(Exception):
                    output = after(key, hook)
        raise


# %% mistake: catches_everything
# You catch `BaseException`. Who presses Ctrl-C wants to stop, not to run more hooks: an `Exception` is what
# calls them.
def call_hooked(module, *args, **kwargs):
    output, called = None, set()

    def after(key, hook):
        called.add(key)
        with_kwargs = key in module._forward_hooks_with_kwargs
        found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        return output if found is None else found

    try:
        for key, hook in list(module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                found = hook(module, args, kwargs)
                if found is not None:
                    if not isinstance(found, tuple) or len(found) != 2:
                        raise RuntimeError(f"a pair of args and kwargs was expected, not {found!r}")
                    args, kwargs = found
            else:
                found = hook(module, args)
                if found is not None:
                    args = found if isinstance(found, tuple) else (found,)
        output = module.forward(*args, **kwargs)
        for key, hook in list(module._forward_hooks.items()):
            output = after(key, hook)
        return output
    except BaseException:
        for key, hook in list(module._forward_hooks.items()):
            if key in module._forward_hooks_always_called and key not in called:
                with suppress(Exception):
                    output = after(key, hook)
        raise


# %% mistake: adds_keywords
# You add what a pre hook returns to the keyword arguments that were there. The pair holds all of them: what
# the hook left out is gone.
def call_hooked(module, *args, **kwargs):
    output, called = None, set()

    def after(key, hook):
        called.add(key)
        with_kwargs = key in module._forward_hooks_with_kwargs
        found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        return output if found is None else found

    try:
        for key, hook in list(module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                found = hook(module, args, kwargs)
                if found is not None:
                    if not isinstance(found, tuple) or len(found) != 2:
                        raise RuntimeError(f"a pair of args and kwargs was expected, not {found!r}")
                    args, kwargs = found[0], {**kwargs, **found[1]}
            else:
                found = hook(module, args)
                if found is not None:
                    args = found if isinstance(found, tuple) else (found,)
        output = module.forward(*args, **kwargs)
        for key, hook in list(module._forward_hooks.items()):
            output = after(key, hook)
        return output
    except Exception:
        for key, hook in list(module._forward_hooks.items()):
            if key in module._forward_hooks_always_called and key not in called:
                with suppress(Exception):
                    output = after(key, hook)
        raise


# %% alternate: by_queue
# A queue of hooks that is emptied one by one, before an error and after it.
def call_hooked(module, *args, **kwargs):
    state = {"args": args, "kwargs": kwargs, "output": None}
    queue = [
        (k, h, k in module._forward_hooks_with_kwargs) for k, h in module._forward_hooks.items()
    ]

    def run_next():
        key, hook, extra = queue.pop(0)
        inputs = [state["args"], state["kwargs"]] if extra else [state["args"]]
        new = hook(module, *inputs, state["output"])
        if new is not None:
            state["output"] = new

    try:
        for key, hook in tuple(module._forward_pre_hooks.items()):
            extra = key in module._forward_pre_hooks_with_kwargs
            new = hook(module, state["args"], *([state["kwargs"]] if extra else []))
            if new is None:
                continue
            if extra:
                if type(new) is not tuple or len(new) != 2:
                    raise RuntimeError("no pair")
                state["args"], state["kwargs"] = new
            else:
                state["args"] = new if isinstance(new, tuple) else (new,)
        state["output"] = module.forward(*state["args"], **state["kwargs"])
        while queue:
            run_next()
        return state["output"]
    except Exception:
        queue[:] = [item for item in queue if item[0] in module._forward_hooks_always_called]
        while queue:
            try:
                run_next()
            except Exception:
                pass
        raise
