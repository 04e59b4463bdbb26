# %% mistake: leaves_hooks
# Your hooks stay on the model. Keep the handle that `register_forward_hook` returns, and call its
# `remove()` in `__exit__`.
class ActivationRecorder:
    def __init__(self, model):
        self.model = model

    def __enter__(self):
        seen = {}
        for name, module in self.model.named_modules():
            if not list(module.children()):
                module.register_forward_hook(
                    lambda module, args, output, name=name: seen.__setitem__(name, output.detach())
                )
        return seen

    def __exit__(self, *error):
        pass


# %% mistake: keeps_the_graph
# You keep the outputs as they are, and with them the whole graph that computed them. `detach()`
# gives the same values without it.
class ActivationRecorder:
    def __init__(self, model):
        self.model = model

    def __enter__(self):
        seen = {}
        self.handles = [
            module.register_forward_hook(
                lambda module, args, output, name=name: seen.__setitem__(name, output)
            )
            for name, module in self.model.named_modules()
            if not list(module.children())
        ]
        return seen

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()


# %% mistake: keeps_the_model
# A list outside the class still refers to every recorder, and each refers to its model: none of
# them is ever freed.
recorders = []


class ActivationRecorder:
    def __init__(self, model):
        self.model = model
        recorders.append(self)

    def __enter__(self):
        seen = {}
        self.handles = [
            module.register_forward_hook(
                lambda module, args, output, name=name: seen.__setitem__(name, output.detach())
            )
            for name, module in self.model.named_modules()
            if not list(module.children())
        ]
        return seen

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()


# %% alternate: by_generator
# A generator and the standard library's decorator.
@contextmanager
def ActivationRecorder(model):
    seen, handles = {}, []

    def hook_for(name):
        return lambda module, args, output: seen.update({name: output.detach().clone()})

    for name, module in model.named_modules():
        if not list(module.children()):
            handles.append(module.register_forward_hook(hook_for(name)))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
