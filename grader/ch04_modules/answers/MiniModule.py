# %% blocked: torchs_own
# This is the class that you are asked to build.
class MiniModule(nn.Module):
    pass


# %% blocked: through_a_container
# `nn.Sequential` is an `nn.Module` as well: what you inherit, you have not built.
class MiniModule(nn.Sequential):
    pass


# %% mistake: ordinary_attributes
# You keep parameters in the ordinary `__dict__` and look for them there. The order and the names
# then depend on more than what is registered: a parameter that is emptied with `None` is
# forgotten, and a buffer is like any other tensor. File each kind in a registry of its own.
class MiniModule:
    def __init__(self):
        self.training = True

    def register_buffer(self, name, tensor):
        setattr(self, name, tensor)

    def _own(self, kind):
        return [(name, value) for name, value in vars(self).items() if isinstance(value, kind)]

    def named_children(self):
        return iter(dict((id(c), (n, c)) for n, c in reversed(self._own(MiniModule))).values())

    def named_modules(self, prefix="", found=None):
        found = set() if found is None else found
        if self not in found:
            found.add(self)
            yield prefix, self
            for name, child in self._own(MiniModule):
                yield from child.named_modules(f"{prefix}.{name}" if prefix else name, found)

    def modules(self):
        return [module for _, module in self.named_modules()]

    def named_parameters(self):
        found = set()
        for path, module in self.named_modules():
            for name, value in module._own(nn.Parameter):
                if value not in found:
                    found.add(value)
                    yield (f"{path}.{name}" if path else name), value

    def named_buffers(self):
        return iter([])

    def parameters(self):
        return [parameter for _, parameter in self.named_parameters()]

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def apply(self, fn):
        for _, child in self._own(MiniModule):
            child.apply(fn)
        fn(self)
        return self

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


# %% mistake: asks_itself
# Your `__getattr__` reads `self._parameters`. Where that does not exist yet, Python calls
# `__getattr__` for it, and so for ever: before `__init__`, and in every deep copy. Read
# `self.__dict__`, which always exists.
class MiniModule:
    REGISTRIES = ("_parameters", "_buffers", "_modules")

    def __init__(self):
        self.__dict__.update({name: {} for name in self.REGISTRIES}, training=True)

    def __setattr__(self, name, value):
        own = self.__dict__
        if isinstance(value, nn.Parameter):
            home = "_parameters"
        elif isinstance(value, MiniModule) and name not in own.get("_parameters", {}):
            home = "_modules"
        else:
            home = next((r for r in self.REGISTRIES if name in own.get(r, {})), None)
            if home is None:
                object.__setattr__(self, name, value)
                return
            if value is not None and not (home == "_buffers" and isinstance(value, torch.Tensor)):
                raise TypeError(
                    f"{name!r} is registered: a {type(value).__name__} cannot replace it"
                )
        if home not in own:
            raise AttributeError(f"call super().__init__() before you assign {name!r}")
        for place in (own, *(own[r] for r in self.REGISTRIES if r != home)):
            place.pop(name, None)
        own[home][name] = value

    def __getattr__(self, name):
        for registry in self.REGISTRIES:
            found = getattr(self, registry)
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name):
        for registry in self.REGISTRIES:
            if name in self.__dict__.get(registry, {}):
                del self.__dict__[registry][name]
                return
        object.__delattr__(self, name)

    def register_buffer(self, name, tensor):
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"{name!r} is something else already")
        self._buffers[name] = tensor

    def named_children(self):
        found = set()
        for name, child in self._modules.items():
            if child is not None and child not in found:
                found.add(child)
                yield name, child

    def named_modules(self, prefix="", found=None):
        found = set() if found is None else found
        if self not in found:
            found.add(self)
            yield prefix, self
            for name, child in self.named_children():
                yield from child.named_modules(f"{prefix}.{name}" if prefix else name, found)

    def modules(self):
        return (module for _, module in self.named_modules())

    def _named_tensors(self, registry):
        found = set()
        for path, module in self.named_modules():
            for name, tensor in module.__dict__[registry].items():
                if tensor is not None and tensor not in found:
                    found.add(tensor)
                    yield (f"{path}.{name}" if path else name), tensor

    def named_parameters(self):
        return self._named_tensors("_parameters")

    def named_buffers(self):
        return self._named_tensors("_buffers")

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def apply(self, fn):
        for _, child in self.named_children():
            child.apply(fn)
        fn(self)
        return self

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


# %% mistake: stays_in_two_places
# You file a value in one registry and leave what had the name where it was. The old value is still
# found, or hides the new one. Take the name out of every other dictionary.
class MiniModule:
    REGISTRIES = ("_parameters", "_buffers", "_modules")

    def __init__(self):
        self.__dict__.update({name: {} for name in self.REGISTRIES}, training=True)

    def __setattr__(self, name, value):
        own = self.__dict__
        if isinstance(value, nn.Parameter):
            home = "_parameters"
        elif isinstance(value, MiniModule) and name not in own.get("_parameters", {}):
            home = "_modules"
        else:
            home = next((r for r in self.REGISTRIES if name in own.get(r, {})), None)
            if home is None:
                object.__setattr__(self, name, value)
                return
            if value is not None and not (home == "_buffers" and isinstance(value, torch.Tensor)):
                raise TypeError(
                    f"{name!r} is registered: a {type(value).__name__} cannot replace it"
                )
        if home not in own:
            raise AttributeError(f"call super().__init__() before you assign {name!r}")
        own[home][name] = value

    def __getattr__(self, name):
        for registry in self.REGISTRIES:
            found = self.__dict__.get(registry, {})
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name):
        for registry in self.REGISTRIES:
            if name in self.__dict__.get(registry, {}):
                del self.__dict__[registry][name]
                return
        object.__delattr__(self, name)

    def register_buffer(self, name, tensor):
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"{name!r} is something else already")
        self._buffers[name] = tensor

    def named_children(self):
        found = set()
        for name, child in self._modules.items():
            if child is not None and child not in found:
                found.add(child)
                yield name, child

    def named_modules(self, prefix="", found=None):
        found = set() if found is None else found
        if self not in found:
            found.add(self)
            yield prefix, self
            for name, child in self.named_children():
                yield from child.named_modules(f"{prefix}.{name}" if prefix else name, found)

    def modules(self):
        return (module for _, module in self.named_modules())

    def _named_tensors(self, registry):
        found = set()
        for path, module in self.named_modules():
            for name, tensor in module.__dict__[registry].items():
                if tensor is not None and tensor not in found:
                    found.add(tensor)
                    yield (f"{path}.{name}" if path else name), tensor

    def named_parameters(self):
        return self._named_tensors("_parameters")

    def named_buffers(self):
        return self._named_tensors("_buffers")

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def apply(self, fn):
        for _, child in self.named_children():
            child.apply(fn)
        fn(self)
        return self

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


# %% mistake: none_is_ordinary
# You look at the new value alone. `None` for a parameter's name then becomes an ordinary
# attribute, and the parameter is still registered behind it. Look at what the name is registered
# as, too.
class MiniModule:
    REGISTRIES = ("_parameters", "_buffers", "_modules")

    def __init__(self):
        self.__dict__.update({name: {} for name in self.REGISTRIES}, training=True)

    def __setattr__(self, name, value):
        own = self.__dict__
        if isinstance(value, nn.Parameter):
            home = "_parameters"
        elif isinstance(value, MiniModule) and name not in own.get("_parameters", {}):
            home = "_modules"
        else:
            home = None
            if home is None:
                object.__setattr__(self, name, value)
                return
            if value is not None and not (home == "_buffers" and isinstance(value, torch.Tensor)):
                raise TypeError(
                    f"{name!r} is registered: a {type(value).__name__} cannot replace it"
                )
        if home not in own:
            raise AttributeError(f"call super().__init__() before you assign {name!r}")
        for place in (own, *(own[r] for r in self.REGISTRIES if r != home)):
            place.pop(name, None)
        own[home][name] = value

    def __getattr__(self, name):
        for registry in self.REGISTRIES:
            found = self.__dict__.get(registry, {})
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name):
        for registry in self.REGISTRIES:
            if name in self.__dict__.get(registry, {}):
                del self.__dict__[registry][name]
                return
        object.__delattr__(self, name)

    def register_buffer(self, name, tensor):
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"{name!r} is something else already")
        self._buffers[name] = tensor

    def named_children(self):
        found = set()
        for name, child in self._modules.items():
            if child is not None and child not in found:
                found.add(child)
                yield name, child

    def named_modules(self, prefix="", found=None):
        found = set() if found is None else found
        if self not in found:
            found.add(self)
            yield prefix, self
            for name, child in self.named_children():
                yield from child.named_modules(f"{prefix}.{name}" if prefix else name, found)

    def modules(self):
        return (module for _, module in self.named_modules())

    def _named_tensors(self, registry):
        found = set()
        for path, module in self.named_modules():
            for name, tensor in module.__dict__[registry].items():
                if tensor is not None and tensor not in found:
                    found.add(tensor)
                    yield (f"{path}.{name}" if path else name), tensor

    def named_parameters(self):
        return self._named_tensors("_parameters")

    def named_buffers(self):
        return self._named_tensors("_buffers")

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def apply(self, fn):
        for _, child in self.named_children():
            child.apply(fn)
        fn(self)
        return self

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


# %% mistake: anything_replaces
# You let any value take the place of a parameter or child. An optimiser or a checkpoint would find
# a number there. For such names only a value of the same kind or `None` will do; raise a
# `TypeError`.
class MiniModule:
    REGISTRIES = ("_parameters", "_buffers", "_modules")

    def __init__(self):
        self.__dict__.update({name: {} for name in self.REGISTRIES}, training=True)

    def __setattr__(self, name, value):
        own = self.__dict__
        if isinstance(value, nn.Parameter):
            home = "_parameters"
        elif isinstance(value, MiniModule) and name not in own.get("_parameters", {}):
            home = "_modules"
        else:
            home = next((r for r in self.REGISTRIES if name in own.get(r, {})), None)
            if home is None:
                object.__setattr__(self, name, value)
                return
            if False:
                raise TypeError(
                    f"{name!r} is registered: a {type(value).__name__} cannot replace it"
                )
        if home not in own:
            raise AttributeError(f"call super().__init__() before you assign {name!r}")
        for place in (own, *(own[r] for r in self.REGISTRIES if r != home)):
            place.pop(name, None)
        own[home][name] = value

    def __getattr__(self, name):
        for registry in self.REGISTRIES:
            found = self.__dict__.get(registry, {})
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name):
        for registry in self.REGISTRIES:
            if name in self.__dict__.get(registry, {}):
                del self.__dict__[registry][name]
                return
        object.__delattr__(self, name)

    def register_buffer(self, name, tensor):
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"{name!r} is something else already")
        self._buffers[name] = tensor

    def named_children(self):
        found = set()
        for name, child in self._modules.items():
            if child is not None and child not in found:
                found.add(child)
                yield name, child

    def named_modules(self, prefix="", found=None):
        found = set() if found is None else found
        if self not in found:
            found.add(self)
            yield prefix, self
            for name, child in self.named_children():
                yield from child.named_modules(f"{prefix}.{name}" if prefix else name, found)

    def modules(self):
        return (module for _, module in self.named_modules())

    def _named_tensors(self, registry):
        found = set()
        for path, module in self.named_modules():
            for name, tensor in module.__dict__[registry].items():
                if tensor is not None and tensor not in found:
                    found.add(tensor)
                    yield (f"{path}.{name}" if path else name), tensor

    def named_parameters(self):
        return self._named_tensors("_parameters")

    def named_buffers(self):
        return self._named_tensors("_buffers")

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def apply(self, fn):
        for _, child in self.named_children():
            child.apply(fn)
        fn(self)
        return self

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


# %% mistake: every_tensor
# You register every tensor as a parameter. A plain tensor is an ordinary attribute, also one that
# wants a gradient; only `nn.Parameter` says that a value is to be learned.
class MiniModule:
    REGISTRIES = ("_parameters", "_buffers", "_modules")

    def __init__(self):
        self.__dict__.update({name: {} for name in self.REGISTRIES}, training=True)

    def __setattr__(self, name, value):
        own = self.__dict__
        if isinstance(value, torch.Tensor) and name not in own.get("_buffers", {}):
            home = "_parameters"
        elif isinstance(value, MiniModule) and name not in own.get("_parameters", {}):
            home = "_modules"
        else:
            home = next((r for r in self.REGISTRIES if name in own.get(r, {})), None)
            if home is None:
                object.__setattr__(self, name, value)
                return
            if value is not None and not (home == "_buffers" and isinstance(value, torch.Tensor)):
                raise TypeError(
                    f"{name!r} is registered: a {type(value).__name__} cannot replace it"
                )
        if home not in own:
            raise AttributeError(f"call super().__init__() before you assign {name!r}")
        for place in (own, *(own[r] for r in self.REGISTRIES if r != home)):
            place.pop(name, None)
        own[home][name] = value

    def __getattr__(self, name):
        for registry in self.REGISTRIES:
            found = self.__dict__.get(registry, {})
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name):
        for registry in self.REGISTRIES:
            if name in self.__dict__.get(registry, {}):
                del self.__dict__[registry][name]
                return
        object.__delattr__(self, name)

    def register_buffer(self, name, tensor):
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"{name!r} is something else already")
        self._buffers[name] = tensor

    def named_children(self):
        found = set()
        for name, child in self._modules.items():
            if child is not None and child not in found:
                found.add(child)
                yield name, child

    def named_modules(self, prefix="", found=None):
        found = set() if found is None else found
        if self not in found:
            found.add(self)
            yield prefix, self
            for name, child in self.named_children():
                yield from child.named_modules(f"{prefix}.{name}" if prefix else name, found)

    def modules(self):
        return (module for _, module in self.named_modules())

    def _named_tensors(self, registry):
        found = set()
        for path, module in self.named_modules():
            for name, tensor in module.__dict__[registry].items():
                if tensor is not None and tensor not in found:
                    found.add(tensor)
                    yield (f"{path}.{name}" if path else name), tensor

    def named_parameters(self):
        return self._named_tensors("_parameters")

    def named_buffers(self):
        return self._named_tensors("_buffers")

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def apply(self, fn):
        for _, child in self.named_children():
            child.apply(fn)
        fn(self)
        return self

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


# %% mistake: looks_into_lists
# You look into lists and register what they hold. PyTorch does not: a list can be changed behind
# the module's back. `nn.ModuleList` exists for that.
class MiniModule:
    REGISTRIES = ("_parameters", "_buffers", "_modules")

    def __init__(self):
        self.__dict__.update({name: {} for name in self.REGISTRIES}, training=True)

    def __setattr__(self, name, value):
        own = self.__dict__
        if isinstance(value, nn.Parameter):
            home = "_parameters"
        elif isinstance(value, MiniModule) and name not in own.get("_parameters", {}):
            home = "_modules"
        else:
            home = next((r for r in self.REGISTRIES if name in own.get(r, {})), None)
            if home is None:
                object.__setattr__(self, name, value)
                return
            if value is not None and not (home == "_buffers" and isinstance(value, torch.Tensor)):
                raise TypeError(
                    f"{name!r} is registered: a {type(value).__name__} cannot replace it"
                )
        if home not in own:
            raise AttributeError(f"call super().__init__() before you assign {name!r}")
        for place in (own, *(own[r] for r in self.REGISTRIES if r != home)):
            place.pop(name, None)
        own[home][name] = value

    def __getattr__(self, name):
        for registry in self.REGISTRIES:
            found = self.__dict__.get(registry, {})
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name):
        for registry in self.REGISTRIES:
            if name in self.__dict__.get(registry, {}):
                del self.__dict__[registry][name]
                return
        object.__delattr__(self, name)

    def register_buffer(self, name, tensor):
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"{name!r} is something else already")
        self._buffers[name] = tensor

    def named_children(self):
        found = set()
        listed = [
            (f"{key}.{n}", item)
            for key, items in self.__dict__.items()
            if isinstance(items, list)
            for n, item in enumerate(items)
            if isinstance(item, MiniModule)
        ]
        for name, child in [*self._modules.items(), *listed]:
            if child is not None and child not in found:
                found.add(child)
                yield name, child

    def named_modules(self, prefix="", found=None):
        found = set() if found is None else found
        if self not in found:
            found.add(self)
            yield prefix, self
            for name, child in self.named_children():
                yield from child.named_modules(f"{prefix}.{name}" if prefix else name, found)

    def modules(self):
        return (module for _, module in self.named_modules())

    def _named_tensors(self, registry):
        found = set()
        for path, module in self.named_modules():
            for name, tensor in module.__dict__[registry].items():
                if tensor is not None and tensor not in found:
                    found.add(tensor)
                    yield (f"{path}.{name}" if path else name), tensor

    def named_parameters(self):
        return self._named_tensors("_parameters")

    def named_buffers(self):
        return self._named_tensors("_buffers")

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def apply(self, fn):
        for _, child in self.named_children():
            child.apply(fn)
        fn(self)
        return self

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


# %% mistake: makes_them_late
# You make the registries when the first parameter arrives. A forgotten `super().__init__()` then
# goes unnoticed here, and `training` is missing later. Refuse: raise an `AttributeError` that says
# what was forgotten.
class MiniModule:
    REGISTRIES = ("_parameters", "_buffers", "_modules")

    def __init__(self):
        for name in self.REGISTRIES:
            self.__dict__.setdefault(name, {})
        self.__dict__["training"] = True

    def __setattr__(self, name, value):
        own = self.__dict__
        if isinstance(value, nn.Parameter):
            home = "_parameters"
        elif isinstance(value, MiniModule) and name not in own.get("_parameters", {}):
            home = "_modules"
        else:
            home = next((r for r in self.REGISTRIES if name in own.get(r, {})), None)
            if home is None:
                object.__setattr__(self, name, value)
                return
            if value is not None and not (home == "_buffers" and isinstance(value, torch.Tensor)):
                raise TypeError(
                    f"{name!r} is registered: a {type(value).__name__} cannot replace it"
                )
        if home not in own:
            own.update({r: {} for r in self.REGISTRIES if r not in own}, training=True)
        for place in (own, *(own[r] for r in self.REGISTRIES if r != home)):
            place.pop(name, None)
        own[home][name] = value

    def __getattr__(self, name):
        for registry in self.REGISTRIES:
            found = self.__dict__.get(registry, {})
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name):
        for registry in self.REGISTRIES:
            if name in self.__dict__.get(registry, {}):
                del self.__dict__[registry][name]
                return
        object.__delattr__(self, name)

    def register_buffer(self, name, tensor):
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"{name!r} is something else already")
        self._buffers[name] = tensor

    def named_children(self):
        found = set()
        for name, child in self._modules.items():
            if child is not None and child not in found:
                found.add(child)
                yield name, child

    def named_modules(self, prefix="", found=None):
        found = set() if found is None else found
        if self not in found:
            found.add(self)
            yield prefix, self
            for name, child in self.named_children():
                yield from child.named_modules(f"{prefix}.{name}" if prefix else name, found)

    def modules(self):
        return (module for _, module in self.named_modules())

    def _named_tensors(self, registry):
        found = set()
        for path, module in self.named_modules():
            for name, tensor in module.__dict__[registry].items():
                if tensor is not None and tensor not in found:
                    found.add(tensor)
                    yield (f"{path}.{name}" if path else name), tensor

    def named_parameters(self):
        return self._named_tensors("_parameters")

    def named_buffers(self):
        return self._named_tensors("_buffers")

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def apply(self, fn):
        for _, child in self.named_children():
            child.apply(fn)
        fn(self)
        return self

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


# %% mistake: only_the_first
# `train` changes the module alone. What must know of it are the dropouts and norms deep below. Go
# through all modules.
class MiniModule:
    REGISTRIES = ("_parameters", "_buffers", "_modules")

    def __init__(self):
        self.__dict__.update({name: {} for name in self.REGISTRIES}, training=True)

    def __setattr__(self, name, value):
        own = self.__dict__
        if isinstance(value, nn.Parameter):
            home = "_parameters"
        elif isinstance(value, MiniModule) and name not in own.get("_parameters", {}):
            home = "_modules"
        else:
            home = next((r for r in self.REGISTRIES if name in own.get(r, {})), None)
            if home is None:
                object.__setattr__(self, name, value)
                return
            if value is not None and not (home == "_buffers" and isinstance(value, torch.Tensor)):
                raise TypeError(
                    f"{name!r} is registered: a {type(value).__name__} cannot replace it"
                )
        if home not in own:
            raise AttributeError(f"call super().__init__() before you assign {name!r}")
        for place in (own, *(own[r] for r in self.REGISTRIES if r != home)):
            place.pop(name, None)
        own[home][name] = value

    def __getattr__(self, name):
        for registry in self.REGISTRIES:
            found = self.__dict__.get(registry, {})
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name):
        for registry in self.REGISTRIES:
            if name in self.__dict__.get(registry, {}):
                del self.__dict__[registry][name]
                return
        object.__delattr__(self, name)

    def register_buffer(self, name, tensor):
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"{name!r} is something else already")
        self._buffers[name] = tensor

    def named_children(self):
        found = set()
        for name, child in self._modules.items():
            if child is not None and child not in found:
                found.add(child)
                yield name, child

    def named_modules(self, prefix="", found=None):
        found = set() if found is None else found
        if self not in found:
            found.add(self)
            yield prefix, self
            for name, child in self.named_children():
                yield from child.named_modules(f"{prefix}.{name}" if prefix else name, found)

    def modules(self):
        return (module for _, module in self.named_modules())

    def _named_tensors(self, registry):
        found = set()
        for path, module in self.named_modules():
            for name, tensor in module.__dict__[registry].items():
                if tensor is not None and tensor not in found:
                    found.add(tensor)
                    yield (f"{path}.{name}" if path else name), tensor

    def named_parameters(self):
        return self._named_tensors("_parameters")

    def named_buffers(self):
        return self._named_tensors("_buffers")

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def train(self, mode=True):
        self.training = mode
        return self

    def eval(self):
        return self.train(False)

    def apply(self, fn):
        for _, child in self.named_children():
            child.apply(fn)
        fn(self)
        return self

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


# %% mistake: buffer_behind_an_attribute
# You register a buffer under a name that is an ordinary attribute. Python finds the attribute first and never
# asks `__getattr__`: the buffer is there, and nobody sees it. Refuse the name, or take the attribute away.
class MiniModule:
    REGISTRIES = ("_parameters", "_buffers", "_modules")

    def __init__(self):
        self.__dict__.update({name: {} for name in self.REGISTRIES}, training=True)

    def __setattr__(self, name, value):
        own = self.__dict__
        if isinstance(value, nn.Parameter):
            home = "_parameters"
        elif isinstance(value, MiniModule) and name not in own.get("_parameters", {}):
            home = "_modules"
        else:
            home = next((r for r in self.REGISTRIES if name in own.get(r, {})), None)
            if home is None:
                object.__setattr__(self, name, value)
                return
            if value is not None and not (home == "_buffers" and isinstance(value, torch.Tensor)):
                raise TypeError(
                    f"{name!r} is registered: a {type(value).__name__} cannot replace it"
                )
        if home not in own:
            raise AttributeError(f"call super().__init__() before you assign {name!r}")
        for place in (own, *(own[r] for r in self.REGISTRIES if r != home)):
            place.pop(name, None)
        own[home][name] = value

    def __getattr__(self, name):
        for registry in self.REGISTRIES:
            found = self.__dict__.get(registry, {})
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name):
        for registry in self.REGISTRIES:
            if name in self.__dict__.get(registry, {}):
                del self.__dict__[registry][name]
                return
        object.__delattr__(self, name)

    def register_buffer(self, name, tensor):
        self._buffers[name] = tensor

    def named_children(self):
        found = set()
        for name, child in self._modules.items():
            if child is not None and child not in found:
                found.add(child)
                yield name, child

    def named_modules(self, prefix="", found=None):
        found = set() if found is None else found
        if self not in found:
            found.add(self)
            yield prefix, self
            for name, child in self.named_children():
                yield from child.named_modules(f"{prefix}.{name}" if prefix else name, found)

    def modules(self):
        return (module for _, module in self.named_modules())

    def _named_tensors(self, registry):
        found = set()
        for path, module in self.named_modules():
            for name, tensor in module.__dict__[registry].items():
                if tensor is not None and tensor not in found:
                    found.add(tensor)
                    yield (f"{path}.{name}" if path else name), tensor

    def named_parameters(self):
        return self._named_tensors("_parameters")

    def named_buffers(self):
        return self._named_tensors("_buffers")

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def apply(self, fn):
        for _, child in self.named_children():
            child.apply(fn)
        fn(self)
        return self

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


# %% mistake: parents_first
# You apply the function to the module before its children. PyTorch goes from the leaves up, so
# that a parent's function sees its children done.
class MiniModule:
    REGISTRIES = ("_parameters", "_buffers", "_modules")

    def __init__(self):
        self.__dict__.update({name: {} for name in self.REGISTRIES}, training=True)

    def __setattr__(self, name, value):
        own = self.__dict__
        if isinstance(value, nn.Parameter):
            home = "_parameters"
        elif isinstance(value, MiniModule) and name not in own.get("_parameters", {}):
            home = "_modules"
        else:
            home = next((r for r in self.REGISTRIES if name in own.get(r, {})), None)
            if home is None:
                object.__setattr__(self, name, value)
                return
            if value is not None and not (home == "_buffers" and isinstance(value, torch.Tensor)):
                raise TypeError(
                    f"{name!r} is registered: a {type(value).__name__} cannot replace it"
                )
        if home not in own:
            raise AttributeError(f"call super().__init__() before you assign {name!r}")
        for place in (own, *(own[r] for r in self.REGISTRIES if r != home)):
            place.pop(name, None)
        own[home][name] = value

    def __getattr__(self, name):
        for registry in self.REGISTRIES:
            found = self.__dict__.get(registry, {})
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name):
        for registry in self.REGISTRIES:
            if name in self.__dict__.get(registry, {}):
                del self.__dict__[registry][name]
                return
        object.__delattr__(self, name)

    def register_buffer(self, name, tensor):
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"{name!r} is something else already")
        self._buffers[name] = tensor

    def named_children(self):
        found = set()
        for name, child in self._modules.items():
            if child is not None and child not in found:
                found.add(child)
                yield name, child

    def named_modules(self, prefix="", found=None):
        found = set() if found is None else found
        if self not in found:
            found.add(self)
            yield prefix, self
            for name, child in self.named_children():
                yield from child.named_modules(f"{prefix}.{name}" if prefix else name, found)

    def modules(self):
        return (module for _, module in self.named_modules())

    def _named_tensors(self, registry):
        found = set()
        for path, module in self.named_modules():
            for name, tensor in module.__dict__[registry].items():
                if tensor is not None and tensor not in found:
                    found.add(tensor)
                    yield (f"{path}.{name}" if path else name), tensor

    def named_parameters(self):
        return self._named_tensors("_parameters")

    def named_buffers(self):
        return self._named_tensors("_buffers")

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def apply(self, fn):
        fn(self)
        for _, child in self.named_children():
            child.apply(fn)
        return self

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


# %% mistake: zeros
# You fill the gradients with zeros. `None` was asked for: it frees the memory, and an optimiser
# passes over such a parameter where it would step on a zero gradient, momentum and all.
class MiniModule:
    REGISTRIES = ("_parameters", "_buffers", "_modules")

    def __init__(self):
        self.__dict__.update({name: {} for name in self.REGISTRIES}, training=True)

    def __setattr__(self, name, value):
        own = self.__dict__
        if isinstance(value, nn.Parameter):
            home = "_parameters"
        elif isinstance(value, MiniModule) and name not in own.get("_parameters", {}):
            home = "_modules"
        else:
            home = next((r for r in self.REGISTRIES if name in own.get(r, {})), None)
            if home is None:
                object.__setattr__(self, name, value)
                return
            if value is not None and not (home == "_buffers" and isinstance(value, torch.Tensor)):
                raise TypeError(
                    f"{name!r} is registered: a {type(value).__name__} cannot replace it"
                )
        if home not in own:
            raise AttributeError(f"call super().__init__() before you assign {name!r}")
        for place in (own, *(own[r] for r in self.REGISTRIES if r != home)):
            place.pop(name, None)
        own[home][name] = value

    def __getattr__(self, name):
        for registry in self.REGISTRIES:
            found = self.__dict__.get(registry, {})
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name):
        for registry in self.REGISTRIES:
            if name in self.__dict__.get(registry, {}):
                del self.__dict__[registry][name]
                return
        object.__delattr__(self, name)

    def register_buffer(self, name, tensor):
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"{name!r} is something else already")
        self._buffers[name] = tensor

    def named_children(self):
        found = set()
        for name, child in self._modules.items():
            if child is not None and child not in found:
                found.add(child)
                yield name, child

    def named_modules(self, prefix="", found=None):
        found = set() if found is None else found
        if self not in found:
            found.add(self)
            yield prefix, self
            for name, child in self.named_children():
                yield from child.named_modules(f"{prefix}.{name}" if prefix else name, found)

    def modules(self):
        return (module for _, module in self.named_modules())

    def _named_tensors(self, registry):
        found = set()
        for path, module in self.named_modules():
            for name, tensor in module.__dict__[registry].items():
                if tensor is not None and tensor not in found:
                    found.add(tensor)
                    yield (f"{path}.{name}" if path else name), tensor

    def named_parameters(self):
        return self._named_tensors("_parameters")

    def named_buffers(self):
        return self._named_tensors("_buffers")

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def apply(self, fn):
        for _, child in self.named_children():
            child.apply(fn)
        fn(self)
        return self

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None if parameter.grad is None else torch.zeros_like(parameter.grad)

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


# %% mistake: deletes_ordinary_only
# `del` finds ordinary attributes only: what is registered is not in the object's `__dict__`. Look
# through the registries first.
class MiniModule:
    REGISTRIES = ("_parameters", "_buffers", "_modules")

    def __init__(self):
        self.__dict__.update({name: {} for name in self.REGISTRIES}, training=True)

    def __setattr__(self, name, value):
        own = self.__dict__
        if isinstance(value, nn.Parameter):
            home = "_parameters"
        elif isinstance(value, MiniModule) and name not in own.get("_parameters", {}):
            home = "_modules"
        else:
            home = next((r for r in self.REGISTRIES if name in own.get(r, {})), None)
            if home is None:
                object.__setattr__(self, name, value)
                return
            if value is not None and not (home == "_buffers" and isinstance(value, torch.Tensor)):
                raise TypeError(
                    f"{name!r} is registered: a {type(value).__name__} cannot replace it"
                )
        if home not in own:
            raise AttributeError(f"call super().__init__() before you assign {name!r}")
        for place in (own, *(own[r] for r in self.REGISTRIES if r != home)):
            place.pop(name, None)
        own[home][name] = value

    def __getattr__(self, name):
        for registry in self.REGISTRIES:
            found = self.__dict__.get(registry, {})
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def register_buffer(self, name, tensor):
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"{name!r} is something else already")
        self._buffers[name] = tensor

    def named_children(self):
        found = set()
        for name, child in self._modules.items():
            if child is not None and child not in found:
                found.add(child)
                yield name, child

    def named_modules(self, prefix="", found=None):
        found = set() if found is None else found
        if self not in found:
            found.add(self)
            yield prefix, self
            for name, child in self.named_children():
                yield from child.named_modules(f"{prefix}.{name}" if prefix else name, found)

    def modules(self):
        return (module for _, module in self.named_modules())

    def _named_tensors(self, registry):
        found = set()
        for path, module in self.named_modules():
            for name, tensor in module.__dict__[registry].items():
                if tensor is not None and tensor not in found:
                    found.add(tensor)
                    yield (f"{path}.{name}" if path else name), tensor

    def named_parameters(self):
        return self._named_tensors("_parameters")

    def named_buffers(self):
        return self._named_tensors("_buffers")

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def apply(self, fn):
        for _, child in self.named_children():
            child.apply(fn)
        fn(self)
        return self

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


# %% mistake: each_name
# You give a shared parameter under each of its names. An optimiser would step on it twice.
# Remember what was given.
class MiniModule:
    REGISTRIES = ("_parameters", "_buffers", "_modules")

    def __init__(self):
        self.__dict__.update({name: {} for name in self.REGISTRIES}, training=True)

    def __setattr__(self, name, value):
        own = self.__dict__
        if isinstance(value, nn.Parameter):
            home = "_parameters"
        elif isinstance(value, MiniModule) and name not in own.get("_parameters", {}):
            home = "_modules"
        else:
            home = next((r for r in self.REGISTRIES if name in own.get(r, {})), None)
            if home is None:
                object.__setattr__(self, name, value)
                return
            if value is not None and not (home == "_buffers" and isinstance(value, torch.Tensor)):
                raise TypeError(
                    f"{name!r} is registered: a {type(value).__name__} cannot replace it"
                )
        if home not in own:
            raise AttributeError(f"call super().__init__() before you assign {name!r}")
        for place in (own, *(own[r] for r in self.REGISTRIES if r != home)):
            place.pop(name, None)
        own[home][name] = value

    def __getattr__(self, name):
        for registry in self.REGISTRIES:
            found = self.__dict__.get(registry, {})
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name):
        for registry in self.REGISTRIES:
            if name in self.__dict__.get(registry, {}):
                del self.__dict__[registry][name]
                return
        object.__delattr__(self, name)

    def register_buffer(self, name, tensor):
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"{name!r} is something else already")
        self._buffers[name] = tensor

    def named_children(self):
        found = set()
        for name, child in self._modules.items():
            if child is not None and child not in found:
                found.add(child)
                yield name, child

    def named_modules(self, prefix="", found=None):
        found = set() if found is None else found
        if self not in found:
            found.add(self)
            yield prefix, self
            for name, child in self.named_children():
                yield from child.named_modules(f"{prefix}.{name}" if prefix else name, found)

    def modules(self):
        return (module for _, module in self.named_modules())

    def _named_tensors(self, registry):
        found = set()
        for path, module in self.named_modules():
            for name, tensor in module.__dict__[registry].items():
                if tensor is not None:
                    found.add(tensor)
                    yield (f"{path}.{name}" if path else name), tensor

    def named_parameters(self):
        return self._named_tensors("_parameters")

    def named_buffers(self):
        return self._named_tensors("_buffers")

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def apply(self, fn):
        for _, child in self.named_children():
            child.apply(fn)
        fn(self)
        return self

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


# %% alternate: one_registry
# One dictionary for all names, which remembers of what kind each is.
class MiniModule:
    def __init__(self):
        object.__setattr__(self, "_entries", {})
        self.training = True

    def __setattr__(self, name, value):
        entries = vars(self).get("_entries")
        kind = {True: "parameter"}.get(isinstance(value, nn.Parameter))
        if isinstance(value, MiniModule) and (entries or {}).get(name, "?")[0] != "parameter":
            kind = "child"
        if kind is not None:
            if entries is None:
                raise AttributeError("not initialised")
            vars(self).pop(name, None)
            if name in entries and entries[name][0] != kind:
                del entries[name]
            entries[name] = (kind, value)
        elif entries is not None and name in entries:
            kind = entries[name][0]
            if value is not None and (kind != "buffer" or not torch.is_tensor(value)):
                raise TypeError(name)
            entries[name] = (kind, value)
        else:
            super().__setattr__(name, value)

    def register_buffer(self, name, tensor):
        vars(self).pop(name, None)
        self._entries[name] = ("buffer", tensor)

    def __getattr__(self, name):
        try:
            return vars(self)["_entries"][name][1]
        except KeyError:
            raise AttributeError(f"no attribute {name}") from None

    def __delattr__(self, name):
        if vars(self).get("_entries", {}).pop(name, None) is None:
            super().__delattr__(name)

    def _of(self, kind):
        pairs = [(n, v) for n, (k, v) in self._entries.items() if k == kind and v is not None]
        return list({id(v): (n, v) for n, v in reversed(pairs)}.values())[::-1]

    def named_children(self):
        return iter(sorted(self._of("child"), key=lambda pair: list(self._entries).index(pair[0])))

    def _walk(self, prefix, found):
        if id(self) not in found:
            found[id(self)] = (prefix, self)
            for name, child in self.named_children():
                child._walk(prefix + name + ".", found)
        return found

    def modules(self):
        return [module for _, module in self._walk("", {}).values()]

    def _named(self, kind):
        first = {}
        for path, module in self._walk("", {}).values():
            pairs = sorted(module._of(kind), key=lambda pair: list(module._entries).index(pair[0]))
            for name, tensor in pairs:
                first.setdefault(id(tensor), (path + name, tensor))
        return list(first.values())

    def named_parameters(self):
        return self._named("parameter")

    def named_buffers(self):
        return self._named("buffer")

    def parameters(self):
        return [tensor for _, tensor in self._named("parameter")]

    def train(self, mode=True):
        self.training = mode
        for _, child in self._of("child"):
            child.train(mode)
        return self

    def eval(self):
        return self.train(False)

    def apply(self, fn):
        for _, child in self.named_children():
            child.apply(fn)
        fn(self)
        return self

    def zero_grad(self):
        for tensor in self.parameters():
            tensor.grad = None

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)
