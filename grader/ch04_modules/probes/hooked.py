"""The probe of `call_hooked`: calls with hooks, and what each of them saw."""

from torch import nn

from grader import probe

from .module_graphs import TorchModule


class _Uncallable(nn.Module):
    """A module that cannot be called: the call is what an exercise asks to build."""

    def _call_impl(self, *args, **kwargs):
        raise RuntimeError("Calling the module itself is off limits here.")

    __call__ = _wrapped_call_impl = _call_impl


class _Quit(BaseException):
    """Like KeyboardInterrupt: no `Exception`."""


def hooked_run(call, base, hooks, fails):
    """Call a module with `hooks`; return what happened, in order, what came, and which error.

    A hook is [when, what it does, with kwargs, prepended, always called].
    """
    events = []

    class Model(base):
        def forward(self, x, *more, scale=1):
            events.append(["forward", x, list(more), scale])
            if fails:
                raise LookupError("forward")
            return (len(x) if isinstance(x, list) else x) * scale + sum(more)

    model, handles = Model(), {}

    def hook_for(number, when, does, with_kwargs):
        def hook(module, args, *rest):
            rest = [dict(item) if isinstance(item, dict) else item for item in rest]
            events.append([number, module is model, list(args), rest])
            if does == "raise":
                raise ArithmeticError(str(number))
            if does == "quit":
                raise _Quit
            if does == "leave":
                handles[number].remove()
            if does == "list":
                return [number] * 3
            if does == "drop":
                return args, {}
            if does == "zero":
                return 0
            if does == "change" and when == "after":
                return rest[-1] + number if rest[-1] is not None else number
            if does == "change" and with_kwargs:
                return (args[0] + number, *args[1:]), {"scale": 3}
            return (args[0] * 2, number) if does == "change" else None

        return hook

    for number, (when, does, with_kwargs, prepend, always) in enumerate(hooks):
        hook = hook_for(number, when, does, with_kwargs)
        options = {"with_kwargs": with_kwargs, "prepend": prepend}
        if when == "before":
            handles[number] = model.register_forward_pre_hook(hook, **options)
        else:
            handles[number] = model.register_forward_hook(hook, always_call=always, **options)
    result, error = None, None
    try:
        result = call(model, 1, 2, scale=5)
    except (ArithmeticError, LookupError, RuntimeError, _Quit) as raised:
        error = type(raised).__name__
    left = len(model._forward_hooks), len(model._forward_pre_hooks)
    return {"events": events, "result": result, "error": error, "left": left}


@probe
def hooked_calls(student, cases):
    """Return what `hooked_run` finds for each case, a pair of hooks and whether forward fails."""
    own = TorchModule._call_impl
    TorchModule._call_impl = _Uncallable._call_impl  # by whatever road one comes to it
    try:
        return [hooked_run(student.call_hooked, _Uncallable, *case) for case in cases]
    finally:
        TorchModule._call_impl = own
