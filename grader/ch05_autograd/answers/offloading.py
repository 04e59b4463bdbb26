# %% blocked: the_built_in
# That moves tensors for you, and to the wrong place.
@contextmanager
def offloading(folder, at_least):
    with torch.autograd.graph.save_on_cpu():
        yield


# %% mistake: moves_parameters
# You write parameters and other leaves that require grad to disk, too. They are in memory whatever you do, and
# a copy of them frees nothing.
@contextmanager
def offloading(folder, at_least):
    class OnDisk:
        def __init__(self, tensor):
            self.path = os.path.join(folder, f"{uuid.uuid4().hex}.pt")
            torch.save(tensor.detach().clone(), self.path)
            weakref.finalize(self, os.remove, self.path)

    def pack(tensor):
        small = tensor.untyped_storage().nbytes() < at_least
        return tensor.detach() if small else OnDisk(tensor)

    def unpack(packed):
        return torch.load(packed.path) if isinstance(packed, OnDisk) else packed

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


# %% mistake: leaves_all_leaves
# You leave every leaf where it is. A constant is a leaf as well, and once its name is gone the graph alone keeps
# it: only leaves that require grad are in memory anyway.
@contextmanager
def offloading(folder, at_least):
    class OnDisk:
        def __init__(self, tensor):
            self.path = os.path.join(folder, f"{uuid.uuid4().hex}.pt")
            torch.save(tensor.detach().clone(), self.path)
            weakref.finalize(self, os.remove, self.path)

    def pack(tensor):
        stays = tensor.is_leaf
        small = tensor.untyped_storage().nbytes() < at_least
        if stays:
            return tensor
        return tensor.detach() if small else OnDisk(tensor)

    def unpack(packed):
        return torch.load(packed.path) if isinstance(packed, OnDisk) else packed

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


# %% mistake: size_of_the_elements
# You measure a tensor by its elements. Two rows of a large matrix keep the whole matrix alive: ask the storage.
@contextmanager
def offloading(folder, at_least):
    class OnDisk:
        def __init__(self, tensor):
            self.path = os.path.join(folder, f"{uuid.uuid4().hex}.pt")
            torch.save(tensor.detach().clone(), self.path)
            weakref.finalize(self, os.remove, self.path)

    def pack(tensor):
        stays = tensor.is_leaf and tensor.requires_grad
        small = tensor.numel() * tensor.element_size() < at_least
        if stays:
            return tensor
        return tensor.detach() if small else OnDisk(tensor)

    def unpack(packed):
        return torch.load(packed.path) if isinstance(packed, OnDisk) else packed

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


# %% mistake: more_than
# You move what is larger than `at_least`. A storage of exactly that size is to be moved as well.
@contextmanager
def offloading(folder, at_least):
    class OnDisk:
        def __init__(self, tensor):
            self.path = os.path.join(folder, f"{uuid.uuid4().hex}.pt")
            torch.save(tensor.detach().clone(), self.path)
            weakref.finalize(self, os.remove, self.path)

    def pack(tensor):
        stays = tensor.is_leaf and tensor.requires_grad
        small = tensor.untyped_storage().nbytes() <= at_least
        if stays:
            return tensor
        return tensor.detach() if small else OnDisk(tensor)

    def unpack(packed):
        return torch.load(packed.path) if isinstance(packed, OnDisk) else packed

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


# %% mistake: writes_the_storage
# You save views as they are, and `torch.save` writes the whole storage behind them. Clone first: a clone has a
# storage of just its elements.
@contextmanager
def offloading(folder, at_least):
    class OnDisk:
        def __init__(self, tensor):
            self.path = os.path.join(folder, f"{uuid.uuid4().hex}.pt")
            torch.save(tensor.detach(), self.path)
            weakref.finalize(self, os.remove, self.path)

    def pack(tensor):
        stays = tensor.is_leaf and tensor.requires_grad
        small = tensor.untyped_storage().nbytes() < at_least
        if stays:
            return tensor
        return tensor.detach() if small else OnDisk(tensor)

    def unpack(packed):
        return torch.load(packed.path) if isinstance(packed, OnDisk) else packed

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


# %% mistake: deleted_when_read
# You delete a file when it was read. With `retain_graph=True` it will be wanted again; and a graph that is
# dropped without a backward leaves its files behind.
@contextmanager
def offloading(folder, at_least):
    class OnDisk:
        def __init__(self, tensor):
            self.path = os.path.join(folder, f"{uuid.uuid4().hex}.pt")
            torch.save(tensor.detach().clone(), self.path)

    def pack(tensor):
        stays = tensor.is_leaf and tensor.requires_grad
        small = tensor.untyped_storage().nbytes() < at_least
        if stays:
            return tensor
        return tensor.detach() if small else OnDisk(tensor)

    def unpack(packed):
        if not isinstance(packed, OnDisk):
            return packed
        tensor = torch.load(packed.path)
        os.remove(packed.path)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


# %% mistake: deleted_at_the_end
# You delete the files when the `with` is left. Backward mostly comes later.
@contextmanager
def offloading(folder, at_least):
    paths = []

    class OnDisk:
        def __init__(self, tensor):
            self.path = os.path.join(folder, f"{uuid.uuid4().hex}.pt")
            torch.save(tensor.detach().clone(), self.path)
            paths.append(self.path)

    def pack(tensor):
        stays = tensor.is_leaf and tensor.requires_grad
        small = tensor.untyped_storage().nbytes() < at_least
        if stays:
            return tensor
        return tensor.detach() if small else OnDisk(tensor)

    def unpack(packed):
        return torch.load(packed.path) if isinstance(packed, OnDisk) else packed

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield
    for path in paths:
        os.remove(path)


# %% mistake: never_deleted
# Your files stay for ever. The node holds what `pack` returned and lets it go when it is done: tie the file to
# that object.
@contextmanager
def offloading(folder, at_least):
    class OnDisk:
        def __init__(self, tensor):
            self.path = os.path.join(folder, f"{uuid.uuid4().hex}.pt")
            torch.save(tensor.detach().clone(), self.path)

    def pack(tensor):
        stays = tensor.is_leaf and tensor.requires_grad
        small = tensor.untyped_storage().nbytes() < at_least
        if stays:
            return tensor
        return tensor.detach() if small else OnDisk(tensor)

    def unpack(packed):
        return torch.load(packed.path) if isinstance(packed, OnDisk) else packed

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


# %% mistake: counts_from_zero
# You number the files from zero in each `with`. The second one in the same folder writes over files that the
# first one's graph still needs.
@contextmanager
def offloading(folder, at_least):
    paths = []

    def delete(path):
        if os.path.exists(path):
            os.remove(path)

    class OnDisk:
        def __init__(self, tensor):
            self.path = os.path.join(folder, f"{len(paths)}.pt")
            paths.append(self.path)
            torch.save(tensor.detach().clone(), self.path)
            weakref.finalize(self, delete, self.path)

    def pack(tensor):
        stays = tensor.is_leaf and tensor.requires_grad
        small = tensor.untyped_storage().nbytes() < at_least
        if stays:
            return tensor
        return tensor.detach() if small else OnDisk(tensor)

    def unpack(packed):
        return torch.load(packed.path) if isinstance(packed, OnDisk) else packed

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


# %% mistake: loses_digits
# You save in a smaller dtype. That is another saving, at the price of digits; here none may be lost.
@contextmanager
def offloading(folder, at_least):
    class OnDisk:
        def __init__(self, tensor):
            self.path = os.path.join(folder, f"{uuid.uuid4().hex}.pt")
            self.dtype = tensor.dtype
            torch.save(
                tensor.detach()
                .clone()
                .to(torch.float32 if tensor.is_floating_point() else tensor.dtype),
                self.path,
            )
            weakref.finalize(self, os.remove, self.path)

    def pack(tensor):
        stays = tensor.is_leaf and tensor.requires_grad
        small = tensor.untyped_storage().nbytes() < at_least
        if stays:
            return tensor
        return tensor.detach() if small else OnDisk(tensor)

    def unpack(packed):
        return torch.load(packed.path).to(packed.dtype) if isinstance(packed, OnDisk) else packed

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


# %% mistake: returns_the_result_itself
# Your `pack` returns small tensors as they are. Where a node saves its own result, the two hold each other, and
# the graph never goes; nor do its files. Return `tensor.detach()`.
@contextmanager
def offloading(folder, at_least):
    class OnDisk:
        def __init__(self, tensor):
            self.path = os.path.join(folder, f"{uuid.uuid4().hex}.pt")
            torch.save(tensor.detach().clone(), self.path)
            weakref.finalize(self, os.remove, self.path)

    def pack(tensor):
        stays = tensor.is_leaf and tensor.requires_grad
        small = tensor.untyped_storage().nbytes() < at_least
        if stays:
            return tensor
        return tensor if small else OnDisk(tensor)

    def unpack(packed):
        return torch.load(packed.path) if isinstance(packed, OnDisk) else packed

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


# %% mistake: in_memory_too
# Your object keeps the tensor beside the file. Then it is on disk *and* in memory.
@contextmanager
def offloading(folder, at_least):
    class OnDisk:
        def __init__(self, tensor):
            self.path = os.path.join(folder, f"{uuid.uuid4().hex}.pt")
            self.tensor = tensor.detach()
            torch.save(tensor.detach().clone(), self.path)
            weakref.finalize(self, os.remove, self.path)

    def pack(tensor):
        stays = tensor.is_leaf and tensor.requires_grad
        small = tensor.untyped_storage().nbytes() < at_least
        if stays:
            return tensor
        return tensor.detach() if small else OnDisk(tensor)

    def unpack(packed):
        return torch.load(packed.path) if isinstance(packed, OnDisk) else packed

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


# %% mistake: hooks_stay_after_an_error
# If the body raises, the line after your `yield` does not run: the hooks stay, and every graph from
# there on goes to disk. Leave them in a `finally`, or yield inside of a `with`.
class Written:
    def __init__(self, path):
        self.path = path


@contextmanager
def offloading(folder, at_least):
    def pack(tensor):
        if tensor.is_leaf and tensor.requires_grad:
            return tensor
        if tensor.untyped_storage().nbytes() < at_least:
            return tensor.detach()
        written = Written(os.path.join(folder, uuid.uuid4().hex))
        torch.save(tensor.detach().clone(), written.path)
        weakref.finalize(written, os.remove, written.path)
        return written

    def unpack(kept):
        return torch.load(kept.path) if isinstance(kept, Written) else kept

    hooks = torch.autograd.graph.saved_tensors_hooks(pack, unpack)
    hooks.__enter__()
    yield
    hooks.__exit__(None, None, None)


# %% mistake: hooks_stay
# You enter the hooks and never leave them: every graph that is made after the `with` goes to disk as well.
# Yield inside of a `with saved_tensors_hooks(...)`, and it is left whatever happens.
class Kept:
    def __init__(self, path):
        self.path = path


@contextmanager
def offloading(folder, at_least):
    def pack(tensor):
        if tensor.is_leaf and tensor.requires_grad:
            return tensor
        if tensor.untyped_storage().nbytes() < at_least:
            return tensor.detach()
        kept = Kept(os.path.join(folder, uuid.uuid4().hex))
        torch.save(tensor.detach().clone(), kept.path)
        weakref.finalize(kept, os.remove, kept.path)
        return kept

    def unpack(kept):
        return torch.load(kept.path) if isinstance(kept, Kept) else kept

    torch.autograd.graph.saved_tensors_hooks(pack, unpack).__enter__()
    yield


# %% mistake: hooks_left_too_early
# You leave the hooks before you yield, so they are gone when the body runs. The `yield` belongs inside of
# their `with`.
@contextmanager
def offloading(folder, at_least):
    def pack(tensor):
        path = os.path.join(folder, uuid.uuid4().hex)
        torch.save(tensor.detach().clone(), path)
        return path

    with torch.autograd.graph.saved_tensors_hooks(pack, torch.load):
        pass
    yield


# %% mistake: records_nothing
# You keep memory free by recording nothing. Then there is no graph, and no backward. Graphs are recorded as
# usual here; what they save goes elsewhere.
@contextmanager
def offloading(folder, at_least):
    with torch.no_grad():
        yield


# %% alternate: tempfile_and_del
# Names by `tempfile`, raw bytes by hand, deletion in `__del__`.
import tempfile  # noqa: E402


class Packed:
    def __init__(self, tensor, folder):
        dense = tensor.detach().contiguous()
        self.shape, self.dtype = dense.shape, dense.dtype
        handle, self.name = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(bytes(dense.reshape(-1).view(torch.uint8).tolist()))

    def read(self):
        with open(self.name, "rb") as file:
            data = bytearray(file.read())
        return torch.frombuffer(data, dtype=self.dtype).reshape(self.shape)

    def __del__(self):
        os.unlink(self.name)


@contextmanager
def offloading(folder, at_least):
    def pack(tensor):
        if tensor.requires_grad and tensor.grad_fn is None:
            return ("here", tensor)
        if tensor.untyped_storage().size() >= at_least:
            return ("disk", Packed(tensor, folder))
        return ("here", tensor.data)

    hooks = torch.autograd.graph.saved_tensors_hooks(
        pack, lambda pair: pair[1] if pair[0] == "here" else pair[1].read()
    )
    with hooks:
        yield


# %% alternate: one_counter_for_all
# Numbers that go on from one `with` to the next, and `torch.save` of a contiguous copy.
numbers = itertools.count()


class File(str):
    pass


def delete(path):
    os.remove(path)


@contextmanager
def offloading(folder, at_least):
    def pack(tensor):
        parameter = tensor.requires_grad and tensor.is_leaf
        if parameter or len(tensor.untyped_storage()) < at_least:
            return tensor if parameter else tensor.detach()
        name = File(os.path.join(folder, f"saved-{next(numbers)}"))
        torch.save({"saved": torch.empty_like(tensor).copy_(tensor.detach())}, str(name))
        weakref.finalize(name, delete, str(name))
        return name

    def unpack(kept):
        return kept if isinstance(kept, torch.Tensor) else torch.load(str(kept))["saved"]

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield
