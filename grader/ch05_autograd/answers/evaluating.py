# %% mistake: train_afterwards
# Afterwards you call `model.train()`, or give all modules the mode that the whole had. Parts have modes of
# their own, and some were in eval mode before: remember each one's.
@contextmanager
def evaluating(model):
    buffers = [
        (module, name, buffer, buffer.clone())
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False)
    ]
    with torch.no_grad():
        try:
            model.eval()
            yield model
        finally:
            model.train()
            for module, name, buffer, content in buffers:
                buffer.copy_(content)
                setattr(module, name, buffer)


# %% mistake: eval_alone
# You call `eval()` and leave grad mode on. `eval()` is about Dropout and BatchNorm; gradients are recorded
# as before.
@contextmanager
def evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer.clone())
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False)
    ]
    mode = torch.is_grad_enabled()
    with torch.set_grad_enabled(mode):
        try:
            model.eval()
            yield model
        finally:
            for module, training in modes:
                module.training = training
            for module, name, buffer, content in buffers:
                with torch.no_grad():
                    buffer.copy_(content)
                setattr(module, name, buffer)


# %% mistake: no_grad_alone
# You switch grad mode off and leave the modules in training mode. Dropout drops, and BatchNorm collects
# statistics.
@contextmanager
def evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer.clone())
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False)
    ]
    with torch.no_grad():
        try:
            yield model
        finally:
            for module, training in modes:
                module.training = training
            for module, name, buffer, content in buffers:
                buffer.copy_(content)
                setattr(module, name, buffer)


# %% mistake: inference_mode
# You use `inference_mode`. Its results cannot be saved for a backward pass later; `no_grad` makes ordinary
# tensors.
@contextmanager
def evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer.clone())
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False)
    ]
    with torch.inference_mode():
        try:
            model.eval()
            yield model
        finally:
            for module, training in modes:
                module.training = training
            for module, name, buffer, content in buffers:
                buffer.copy_(content)
                setattr(module, name, buffer)


# %% mistake: not_after_an_error
# When the body raises, nothing after your `yield` is reached. Put it into a `finally`.
@contextmanager
def evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer.clone())
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False)
    ]
    with torch.no_grad():
        model.eval()
        yield model
        for module, training in modes:
            module.training = training
        for module, name, buffer, content in buffers:
            buffer.copy_(content)
            setattr(module, name, buffer)


# %% mistake: forgets_the_buffers
# You put modes back and no buffers. A layer that counts its calls counts in eval mode too, and the body may
# switch a BatchNorm back to training.
@contextmanager
def evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    with torch.no_grad():
        try:
            model.eval()
            yield model
        finally:
            for module, training in modes:
                module.training = training


# %% mistake: buffers_without_a_copy
# You remember the buffers, not what is in them. They are changed in place, and what you remember changes with
# them: `clone()` them.
@contextmanager
def evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer.detach())
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False)
    ]
    with torch.no_grad():
        try:
            model.eval()
            yield model
        finally:
            for module, training in modes:
                module.training = training
            for module, name, buffer, content in buffers:
                buffer.copy_(content)
                setattr(module, name, buffer)


# %% mistake: other_tensors
# You put copies where the buffers were. The content is right, but whoever held a buffer now holds a tensor that
# the model has forgotten. Copy the content back in place.
@contextmanager
def evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer.clone())
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False)
    ]
    with torch.no_grad():
        try:
            model.eval()
            yield model
        finally:
            for module, training in modes:
                module.training = training
            for module, name, buffer, content in buffers:
                setattr(module, name, content)


# %% mistake: by_state_dict
# You save and load the `state_dict`. Buffers that are not persistent are not in it, and where the body put
# another tensor in a buffer's place, that tensor stays.
@contextmanager
def evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    state = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad():
        try:
            model.eval()
            yield model
        finally:
            for module, training in modes:
                module.training = training
            model.load_state_dict(state)


# %% mistake: replaced_buffers_stay
# You copy the content back into what the buffer is now. If the body put another tensor in its place, that one
# stays: put the tensor itself back as well.
@contextmanager
def evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer.clone())
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False)
    ]
    with torch.no_grad():
        try:
            model.eval()
            yield model
        finally:
            for module, training in modes:
                module.training = training
            for module, name, buffer, content in buffers:
                getattr(module, name).copy_(content)


# %% mistake: grad_mode_on_afterwards
# You switch grad mode on afterwards. It is to be what it was, and it may have been off.
@contextmanager
def evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer.clone())
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False)
    ]
    torch.set_grad_enabled(False)
    if True:
        try:
            model.eval()
            yield model
        finally:
            for module, training in modes:
                module.training = training
            for module, name, buffer, content in buffers:
                buffer.copy_(content)
                setattr(module, name, buffer)
            torch.set_grad_enabled(True)


# %% alternate: with_exit_stack
# Everything that has to be undone is put on a stack when it is done.
import contextlib  # noqa: E402


@contextmanager
def evaluating(model):
    with contextlib.ExitStack() as undo:
        undo.enter_context(torch.set_grad_enabled(False))
        for module in model.modules():
            undo.callback(module.__dict__.__setitem__, "training", module.training)
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    undo.callback(module._buffers.__setitem__, name, buffer)
                    undo.callback(buffer.copy_, buffer.detach().clone())
            module.training = False
        yield model


# %% alternate: by_hand
# Grad mode by hand, and all buffers of the model by their full names.
@contextmanager
def evaluating(model):
    grad_mode = torch.is_grad_enabled()
    flags = {module: module.training for module in model.modules()}
    held = dict(model.named_buffers(remove_duplicate=False))
    copies = {name: tensor.tolist() for name, tensor in held.items()}
    model.train(False)
    torch.set_grad_enabled(False)
    try:
        yield model
    finally:
        torch.set_grad_enabled(False)
        for name, tensor in held.items():
            tensor.copy_(torch.tensor(copies[name], dtype=tensor.dtype))
            path, _, last = name.rpartition(".")
            model.get_submodule(path)._buffers[last] = tensor
        for module, flag in flags.items():
            module.training = flag
        torch.set_grad_enabled(grad_mode)
