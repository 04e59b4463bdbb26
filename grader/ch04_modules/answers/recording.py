# %% mistake: only_if_all_goes_well
# Your hooks are taken off when the `with` statement ends well. After an error in it they stay. Use
# `try` and `finally`.
@contextmanager
def recording(model, paths):
    modules = {path: model.get_submodule(path) for path in paths}
    seen = {path: [] for path in modules}

    def copied(output):
        if isinstance(output, torch.Tensor):
            return output.detach().clone()
        if isinstance(output, dict):
            return {key: copied(item) for key, item in output.items()}
        if isinstance(output, list | tuple):
            return type(output)(map(copied, output))
        return output

    def hook_for(path):
        def hook(module, args, output):
            seen[path].append(copied(output))

        return hook

    handles = []
    for path, module in modules.items():
        handles.append(module.register_forward_hook(hook_for(path)))
    yield seen
    for handle in handles:
        handle.remove()


# %% mistake: wrong_path_leaves_hooks
# You look up the modules one by one while you register. When a later path does not exist, the
# hooks of the earlier ones stay. Begin the `try` before the first registration, or look all up
# first.
@contextmanager
def recording(model, paths):
    modules = list(paths)
    seen = {path: [] for path in modules}

    def copied(output):
        if isinstance(output, torch.Tensor):
            return output.detach().clone()
        if isinstance(output, dict):
            return {key: copied(item) for key, item in output.items()}
        if isinstance(output, list | tuple):
            return type(output)(map(copied, output))
        return output

    def hook_for(path):
        def hook(module, args, output):
            seen[path].append(copied(output))

        return hook

    handles = []
    for path in modules:
        handles.append(model.get_submodule(path).register_forward_hook(hook_for(path)))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


# %% mistake: takes_off_all
# You empty the modules' `_forward_hooks`. That takes off hooks of others as well. Keep your
# handles and remove those.
@contextmanager
def recording(model, paths):
    modules = {path: model.get_submodule(path) for path in paths}
    seen = {path: [] for path in modules}

    def copied(output):
        if isinstance(output, torch.Tensor):
            return output.detach().clone()
        if isinstance(output, dict):
            return {key: copied(item) for key, item in output.items()}
        if isinstance(output, list | tuple):
            return type(output)(map(copied, output))
        return output

    def hook_for(path):
        def hook(module, args, output):
            seen[path].append(copied(output))

        return hook

    handles = []
    try:
        for path, module in modules.items():
            handles.append(module.register_forward_hook(hook_for(path)))
        yield seen
    finally:
        for module in modules.values():
            module._forward_hooks.clear()


# %% mistake: never_takes_off
# Your hooks stay on the model, and every later call is recorded.
@contextmanager
def recording(model, paths):
    modules = {path: model.get_submodule(path) for path in paths}
    seen = {path: [] for path in modules}

    def copied(output):
        if isinstance(output, torch.Tensor):
            return output.detach().clone()
        if isinstance(output, dict):
            return {key: copied(item) for key, item in output.items()}
        if isinstance(output, list | tuple):
            return type(output)(map(copied, output))
        return output

    def hook_for(path):
        def hook(module, args, output):
            seen[path].append(copied(output))

        return hook

    handles = []
    try:
        for path, module in modules.items():
            handles.append(module.register_forward_hook(hook_for(path)))
        yield seen
    finally:
        pass


# %% mistake: detaches_only
# You keep `output.detach()`, which shares memory with the output. An operation in place, such as
# the next layer's ReLU, changes what you kept. Clone it.
@contextmanager
def recording(model, paths):
    modules = {path: model.get_submodule(path) for path in paths}
    seen = {path: [] for path in modules}

    def copied(output):
        if isinstance(output, torch.Tensor):
            return output.detach()
        if isinstance(output, dict):
            return {key: copied(item) for key, item in output.items()}
        if isinstance(output, list | tuple):
            return type(output)(map(copied, output))
        return output

    def hook_for(path):
        def hook(module, args, output):
            seen[path].append(copied(output))

        return hook

    handles = []
    try:
        for path, module in modules.items():
            handles.append(module.register_forward_hook(hook_for(path)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


# %% mistake: keeps_the_graph
# You clone the output, and the clone is a part of the graph: as long as it is kept, so is
# everything that computed it. Detach it as well.
@contextmanager
def recording(model, paths):
    modules = {path: model.get_submodule(path) for path in paths}
    seen = {path: [] for path in modules}

    def copied(output):
        if isinstance(output, torch.Tensor):
            return output.clone()
        if isinstance(output, dict):
            return {key: copied(item) for key, item in output.items()}
        if isinstance(output, list | tuple):
            return type(output)(map(copied, output))
        return output

    def hook_for(path):
        def hook(module, args, output):
            seen[path].append(copied(output))

        return hook

    handles = []
    try:
        for path, module in modules.items():
            handles.append(module.register_forward_hook(hook_for(path)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


# %% mistake: last_path
# Your hooks are made in a loop and look the path up when they run. By then it is the last one.
# Bind it when the hook is made.
@contextmanager
def recording(model, paths):
    modules = {path: model.get_submodule(path) for path in paths}
    seen = {path: [] for path in modules}

    def copied(output):
        if isinstance(output, torch.Tensor):
            return output.detach().clone()
        if isinstance(output, dict):
            return {key: copied(item) for key, item in output.items()}
        if isinstance(output, list | tuple):
            return type(output)(map(copied, output))
        return output

    handles = []
    try:
        for path, module in modules.items():
            handles.append(
                module.register_forward_hook(
                    lambda module, args, output: seen[path].append(copied(output))
                )
            )
        yield seen
    finally:
        for handle in handles:
            handle.remove()


# %% mistake: only_the_last_call
# You keep one output for each path. A module may be called several times, in one forward even:
# keep a list.
@contextmanager
def recording(model, paths):
    modules = {path: model.get_submodule(path) for path in paths}
    seen = {path: [] for path in modules}

    def copied(output):
        if isinstance(output, torch.Tensor):
            return output.detach().clone()
        if isinstance(output, dict):
            return {key: copied(item) for key, item in output.items()}
        if isinstance(output, list | tuple):
            return type(output)(map(copied, output))
        return output

    def hook_for(path):
        def hook(module, args, output):
            seen[path][:] = [copied(output)]

        return hook

    handles = []
    try:
        for path, module in modules.items():
            handles.append(module.register_forward_hook(hook_for(path)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


# %% mistake: replaces_the_output
# Your hook returns what it recorded, and PyTorch takes that for the module's new output. It is
# detached, so no gradient passes. Return nothing.
@contextmanager
def recording(model, paths):
    modules = {path: model.get_submodule(path) for path in paths}
    seen = {path: [] for path in modules}

    def copied(output):
        if isinstance(output, torch.Tensor):
            return output.detach().clone()
        if isinstance(output, dict):
            return {key: copied(item) for key, item in output.items()}
        if isinstance(output, list | tuple):
            return type(output)(map(copied, output))
        return output

    def hook_for(path):
        def hook(module, args, output):
            seen[path].append(copied(output))
            return output.detach() if isinstance(output, torch.Tensor) else None

        return hook

    handles = []
    try:
        for path, module in modules.items():
            handles.append(module.register_forward_hook(hook_for(path)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


# %% mistake: hands_on_a_copy
# Your hook returns a copy, and PyTorch takes that for the module's new output. What is changed in place
# later is then another tensor. Return nothing.
@contextmanager
def recording(model, paths):
    modules = {path: model.get_submodule(path) for path in paths}
    seen = {path: [] for path in modules}

    def copied(output):
        if isinstance(output, torch.Tensor):
            return output.detach().clone()
        if isinstance(output, dict):
            return {key: copied(item) for key, item in output.items()}
        if isinstance(output, list | tuple):
            return type(output)(map(copied, output))
        return output

    def hook_for(path):
        def hook(module, args, output):
            seen[path].append(copied(output))
            return output.clone() if isinstance(output, torch.Tensor) else None

        return hook

    handles = []
    try:
        for path, module in modules.items():
            handles.append(module.register_forward_hook(hook_for(path)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


# %% mistake: without_gradients
# You switch gradients off while you watch. The model should compute as if nobody did: detach what you keep,
# and let the rest be.
@contextmanager
def recording(model, paths):
    modules = {path: model.get_submodule(path) for path in paths}
    seen = {path: [] for path in modules}

    def copied(output):
        if isinstance(output, torch.Tensor):
            return output.detach().clone()
        if isinstance(output, dict):
            return {key: copied(item) for key, item in output.items()}
        if isinstance(output, list | tuple):
            return type(output)(map(copied, output))
        return output

    def hook_for(path):
        def hook(module, args, output):
            seen[path].append(copied(output))

        return hook

    handles = []
    try:
        for path, module in modules.items():
            handles.append(module.register_forward_hook(hook_for(path)))
        with torch.no_grad():
            yield seen
    finally:
        for handle in handles:
            handle.remove()


# %% mistake: in_evaluation
# You put the model into evaluation mode. Norms and dropout then compute something else; the model should
# compute as if nobody watched.
@contextmanager
def recording(model, paths):
    modules = {path: model.get_submodule(path) for path in paths}
    seen = {path: [] for path in modules}

    def copied(output):
        if isinstance(output, torch.Tensor):
            return output.detach().clone()
        if isinstance(output, dict):
            return {key: copied(item) for key, item in output.items()}
        if isinstance(output, list | tuple):
            return type(output)(map(copied, output))
        return output

    def hook_for(path):
        def hook(module, args, output):
            seen[path].append(copied(output))

        return hook

    handles = []
    try:
        for path, module in modules.items():
            handles.append(module.register_forward_hook(hook_for(path)))
        model.eval()
        yield seen
    finally:
        for handle in handles:
            handle.remove()


# %% mistake: one_dtype
# You convert what you keep. A record has the values as they were, in their dtype.
@contextmanager
def recording(model, paths):
    modules = {path: model.get_submodule(path) for path in paths}
    seen = {path: [] for path in modules}

    def copied(output):
        if isinstance(output, torch.Tensor):
            return output.detach().clone().float()
        if isinstance(output, dict):
            return {key: copied(item) for key, item in output.items()}
        if isinstance(output, list | tuple):
            return type(output)(map(copied, output))
        return output

    def hook_for(path):
        def hook(module, args, output):
            seen[path].append(copied(output))

        return hook

    handles = []
    try:
        for path, module in modules.items():
            handles.append(module.register_forward_hook(hook_for(path)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


# %% mistake: copies_everything
# You copy what is no tensor as well. It was to be kept as it is: it may be large, and some things cannot be
# copied.
@contextmanager
def recording(model, paths):
    modules = {path: model.get_submodule(path) for path in paths}
    seen = {path: [] for path in modules}

    def copied(output):
        if isinstance(output, torch.Tensor):
            return output.detach().clone()
        if isinstance(output, dict):
            return {key: copied(item) for key, item in output.items()}
        if isinstance(output, list | tuple):
            return type(output)(map(copied, output))
        import copy

        return copy.deepcopy(output)

    def hook_for(path):
        def hook(module, args, output):
            seen[path].append(copied(output))

        return hook

    handles = []
    try:
        for path, module in modules.items():
            handles.append(module.register_forward_hook(hook_for(path)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


# %% mistake: even_after_errors
# With `always_call=True` your hook runs after an error in `forward` too, and records a `None` that no layer
# gave.
@contextmanager
def recording(model, paths):
    modules = {path: model.get_submodule(path) for path in paths}
    seen = {path: [] for path in modules}

    def copied(output):
        if isinstance(output, torch.Tensor):
            return output.detach().clone()
        if isinstance(output, dict):
            return {key: copied(item) for key, item in output.items()}
        if isinstance(output, list | tuple):
            return type(output)(map(copied, output))
        return output

    def hook_for(path):
        def hook(module, args, output):
            seen[path].append(copied(output))

        return hook

    handles = []
    try:
        for path, module in modules.items():
            handles.append(module.register_forward_hook(hook_for(path), always_call=True))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


# %% mistake: tensors_only
# You expect a tensor. Recurrent and attention layers give tuples, others dicts; go into them.
@contextmanager
def recording(model, paths):
    modules = {path: model.get_submodule(path) for path in paths}
    seen = {path: [] for path in modules}

    def copied(output):
        if isinstance(output, torch.Tensor):
            return output.detach().clone()
        return output

    def hook_for(path):
        def hook(module, args, output):
            seen[path].append(copied(output))

        return hook

    handles = []
    try:
        for path, module in modules.items():
            handles.append(module.register_forward_hook(hook_for(path)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


# %% mistake: one_path_per_module
# You keep the paths in a dictionary by module. Two paths to one module become one. Keep a list for
# each path.
@contextmanager
def recording(model, paths):
    modules = {path: model.get_submodule(path) for path in paths}
    seen = {path: [] for path in modules}

    def copied(output):
        if isinstance(output, torch.Tensor):
            return output.detach().clone()
        if isinstance(output, dict):
            return {key: copied(item) for key, item in output.items()}
        if isinstance(output, list | tuple):
            return type(output)(map(copied, output))
        return output

    def hook_for(path):
        def hook(module, args, output):
            seen[path].append(copied(output))

        return hook

    modules = {path: module for module, path in {m: p for p, m in modules.items()}.items()}
    handles = []
    try:
        for path, module in modules.items():
            handles.append(module.register_forward_hook(hook_for(path)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


# %% alternate: a_class
# A class with `__enter__` and `__exit__`.
class recording:
    def __init__(self, model, paths):
        self.model, self.paths = model, list(paths)

    def __enter__(self):
        found = [(path, self.model.get_submodule(path)) for path in self.paths]
        seen = {path: [] for path in self.paths}
        self.handles = [
            module.register_forward_hook(
                lambda _, args, output, record=seen[path]: record.append(self.copy(output))
            )
            for path, module in found
        ]
        del self.model
        return seen

    def copy(self, value):
        if torch.is_tensor(value):
            return value.data.clone()
        if type(value) in (tuple, list):
            return type(value)([self.copy(item) for item in value])
        if type(value) is dict:
            return dict(zip(value, map(self.copy, value.values())))
        return value

    def __exit__(self, kind, error, traceback):
        while self.handles:
            self.handles.pop().remove()
        return False


# %% alternate: an_exit_stack
# The standard library's stack of things to undo; copies by `tree_map`.
@contextmanager
def recording(model, paths):
    from contextlib import ExitStack
    from functools import partial

    from torch.utils._pytree import tree_map_only

    def keep(record, module, args, kwargs, output):
        record.append(tree_map_only(torch.Tensor, lambda t: t.clone().detach(), output))

    seen = dict((path, []) for path in paths)
    with ExitStack() as stack:
        for path in seen:
            module = model.get_submodule(path)
            handle = module.register_forward_hook(partial(keep, seen[path]), with_kwargs=True)
            stack.callback(handle.remove)
        yield seen
