# %% mistake: the_usual_lines
# You wrote the lines that everybody writes: `eval()`, `no_grad`, `train()`. `train()` switches every layer to
# training, also those that were in eval mode before; and no buffer is put back.
@contextmanager
def evaluating(model):
    model.eval()
    try:
        with torch.no_grad():
            yield model
    finally:
        model.train()


# %% mistake: train_afterwards
# Afterwards you call `model.train()`, or give all modules the mode that the whole had. Parts have modes of
# their own, and some were in eval mode before: remember each one's.
@contextmanager
def evaluating(model):
    buffers = [
        (module, name, buffer, buffer if buffer is None else buffer.clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
    ]
    with torch.no_grad():
        try:
            model.eval()
            yield model
        finally:
            model.train()
            for module, name, buffer, content in buffers:
                if buffer is not None:
                    buffer.copy_(content)
                setattr(module, name, buffer)


# %% mistake: eval_alone
# You call `eval()` and leave grad mode on. `eval()` is about Dropout and BatchNorm; gradients are recorded
# as before.
@contextmanager
def evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer if buffer is None else buffer.clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
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
                    if buffer is not None:
                        buffer.copy_(content)
                setattr(module, name, buffer)


# %% mistake: no_grad_alone
# You switch grad mode off and leave the modules in training mode. Dropout drops, and BatchNorm collects
# statistics.
@contextmanager
def evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer if buffer is None else buffer.clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
    ]
    with torch.no_grad():
        try:
            yield model
        finally:
            for module, training in modes:
                module.training = training
            for module, name, buffer, content in buffers:
                if buffer is not None:
                    buffer.copy_(content)
                setattr(module, name, buffer)


# %% mistake: inference_mode
# You use `inference_mode`. Its results cannot be saved for a backward pass later; `no_grad` makes ordinary
# tensors.
@contextmanager
def evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer if buffer is None else buffer.clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
    ]
    with torch.inference_mode():
        try:
            model.eval()
            yield model
        finally:
            for module, training in modes:
                module.training = training
            for module, name, buffer, content in buffers:
                if buffer is not None:
                    buffer.copy_(content)
                setattr(module, name, buffer)


# %% mistake: not_after_an_error
# When the body raises, nothing after your `yield` is reached. Put it into a `finally`.
@contextmanager
def evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer if buffer is None else buffer.clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
    ]
    with torch.no_grad():
        model.eval()
        yield model
        for module, training in modes:
            module.training = training
        for module, name, buffer, content in buffers:
            if buffer is not None:
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
        (module, name, buffer, buffer)
        for module in model.modules()
        for name, buffer in module._buffers.items()
    ]
    with torch.no_grad():
        try:
            model.eval()
            yield model
        finally:
            for module, training in modes:
                module.training = training
            for module, name, buffer, content in buffers:
                if buffer is not None:
                    buffer.copy_(content)
                setattr(module, name, buffer)


# %% mistake: other_tensors
# You put copies where the buffers were. The content is right, but whoever held a buffer now holds a tensor that
# the model has forgotten. Copy the content back in place.
@contextmanager
def evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer if buffer is None else buffer.clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
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


# %% mistake: content_alone
# You put back the content of the tensors that were buffers before. Where the body put another tensor in a
# buffer's place, that one stays in the module, and the tensor that you mended belongs to nobody.
@contextmanager
def evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    nothing = [
        (m, name) for m in model.modules() for name in m._buffers if m._buffers[name] is None
    ]
    model.eval()
    try:
        with torch.no_grad():
            yield model
    finally:
        for module, training in modes:
            module.training = training
        for buffer, content in buffers:
            with torch.no_grad():
                buffer.copy_(content)
        for module, name in nothing:
            setattr(module, name, None)


# %% mistake: nothing_stays_filled
# A buffer that was `None` keeps the tensor that the body put there. `named_buffers` leaves out those that are
# `None`; `module._buffers` is the dict that has them all.
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
                buffer.copy_(content)
                setattr(module, name, buffer)


# %% mistake: does_not_give_the_model
# `with evaluating(model) as same_model` gives what stands behind your `yield`, and there is nothing: `yield
# model`.
@contextmanager
def evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer if buffer is None else buffer.clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
    ]
    with torch.no_grad():
        try:
            model.eval()
            yield
        finally:
            for module, training in modes:
                module.training = training
            for module, name, buffer, content in buffers:
                if buffer is not None:
                    buffer.copy_(content)
                setattr(module, name, buffer)


# %% mistake: replaced_buffers_stay
# You copy the content back into what the buffer is now. If the body put another tensor in its place, that one
# stays: put the tensor itself back as well.
@contextmanager
def evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer if buffer is None else buffer.clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
    ]
    with torch.no_grad():
        try:
            model.eval()
            yield model
        finally:
            for module, training in modes:
                module.training = training
            for module, name, buffer, content in buffers:
                if buffer is not None:
                    getattr(module, name).copy_(content)
                else:
                    setattr(module, name, None)


# %% mistake: grad_mode_on_afterwards
# You switch grad mode on afterwards. It is to be what it was, and it may have been off.
@contextmanager
def evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer if buffer is None else buffer.clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
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
                if buffer is not None:
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
                undo.callback(module._buffers.__setitem__, name, buffer)
                if buffer is not None:
                    undo.callback(buffer.copy_, buffer.detach().clone())
            module.training = False
        yield model


# %% alternate: by_hand
# Grad mode by hand, and each module's own dict of buffers put back as a whole.
@contextmanager
def evaluating(model):
    grad_mode = torch.is_grad_enabled()
    flags = {module: module.training for module in model.modules()}
    held = {module: dict(module._buffers) for module in flags}
    copies = {buffer: buffer.tolist() for buffer in model.buffers()}
    model.train(False)
    torch.set_grad_enabled(False)
    try:
        yield model
    finally:
        torch.set_grad_enabled(False)
        for buffer, content in copies.items():
            buffer.copy_(torch.tensor(content, dtype=buffer.dtype))
        for module, buffers in held.items():
            module._buffers.clear()
            module._buffers.update(buffers)
        for module, flag in flags.items():
            module.training = flag
        torch.set_grad_enabled(grad_mode)
