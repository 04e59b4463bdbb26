# %% blocked: compiles
# `torch.compile` is the machine that you are to build.
class MiniDynamo:
    def __init__(self, function, backend, limit=8):
        self.compiled = torch.compile(function, backend=backend)

    def __call__(self, *args):
        return self.compiled(*args)


# %% blocked: symbolic
# `torch.fx.symbolic_trace` traces without tensors: it cannot know shapes, and stops at every `if`.
# Record real calls.
class MiniDynamo:
    def __init__(self, function, backend, limit=8):
        self.function, self.backend, self.run = function, backend, None

    def __call__(self, *args):
        if self.run is None:
            self.run = self.backend(torch.fx.symbolic_trace(self.function), list(args))
        return self.run(*args)


# %% mistake: runs_twice
# You ran the graph in the first call as well. The function has run already, with all its effects:
# what it changed in place is changed twice now, and random numbers were drawn twice.
class MiniDynamo:
    """Calls `function`, or a graph that was captured from it under the same conditions."""

    def __init__(self, function: Callable, backend: Callable, limit: int = 8) -> None:
        self.function = function
        self.backend = backend
        self.limit = limit
        self.known = {}  # from a kind to what runs it

    def __call__(self, *args: Any) -> Any:
        kind = self.kind(args)
        if kind in self.known:
            run = self.known[kind]
            if run is self.function:
                return run(*args)
            return run(*(value for value in args if isinstance(value, torch.Tensor)))
        if len(self.known) >= self.limit:
            return self.function(*args)

        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        recorder = Recorder(tensors)
        with recorder:
            result = self.function(*args)
        if recorder.broken:
            self.known[kind] = self.function
        else:
            self.known[kind] = self.backend(recorder.finished(result), tensors)
            return self.known[kind](*tensors)
        return result

    def kind(self, args):
        """Return the guards as a key: equal for calls that may share a graph."""
        first = {}  # from a tensor's id to the first argument that is it
        key = [torch.is_grad_enabled()]
        for number, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                same = first.setdefault(id(value), number)
                key.append((value.dtype, value.shape, value.requires_grad, same))
            else:
                key.append((type(value), value))
        return tuple(key)


class Recorder(TorchFunctionMode):
    """Writes the calls made while it is entered into a graph."""

    def __init__(self, tensors):
        super().__init__()
        self.graph = torch.fx.Graph()
        self.nodes = {}  # from a tensor's id to its node
        self.held = {}
        self.alive = []
        self.broken = False
        for number, tensor in enumerate(tensors):
            node = self.graph.placeholder(f"input_{number}")
            self.nodes.setdefault(id(tensor), node)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.__name__ == "__get__":
            return result
        self.alive.append(result)
        self.broken = self.broken or func.__name__ in READS
        node = self.graph.call_function(func, self.to_nodes(args), self.to_nodes(kwargs))
        if isinstance(result, torch.Tensor):
            self.nodes[id(result)] = node
        elif isinstance(result, tuple | list):
            for place, item in enumerate(result):
                if isinstance(item, torch.Tensor):
                    part = self.graph.call_function(operator.getitem, (node, place))
                    self.nodes[id(item)] = part
        return result

    def to_nodes(self, values):
        return torch.fx.node.map_aggregate(values, self.to_node)

    def to_node(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self.nodes:  # from outside: a weight, a global
            name = f"held_{len(self.held)}"
            self.held[name] = value
            self.nodes[id(value)] = self.graph.get_attr(name)
        return self.nodes[id(value)]

    def finished(self, result):
        """Return the graph as a module that returns what the function did."""
        self.graph.output(self.to_nodes(result))
        return torch.fx.GraphModule(self.held, self.graph)


# %% mistake: value_without_type
# Your key holds values without their types. `1 == 1.0 == True`, so these calls share a graph, and a
# float becomes a whole number. Put `type(value)` beside the value.
class MiniDynamo:
    """Calls `function`, or a graph that was captured from it under the same conditions."""

    def __init__(self, function: Callable, backend: Callable, limit: int = 8) -> None:
        self.function = function
        self.backend = backend
        self.limit = limit
        self.known = {}  # from a kind to what runs it

    def __call__(self, *args: Any) -> Any:
        kind = self.kind(args)
        if kind in self.known:
            run = self.known[kind]
            if run is self.function:
                return run(*args)
            return run(*(value for value in args if isinstance(value, torch.Tensor)))
        if len(self.known) >= self.limit:
            return self.function(*args)

        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        recorder = Recorder(tensors)
        with recorder:
            result = self.function(*args)
        if recorder.broken:
            self.known[kind] = self.function
        else:
            self.known[kind] = self.backend(recorder.finished(result), tensors)
        return result

    def kind(self, args):
        """Return the guards as a key: equal for calls that may share a graph."""
        first = {}  # from a tensor's id to the first argument that is it
        key = [torch.is_grad_enabled()]
        for number, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                same = first.setdefault(id(value), number)
                key.append((value.dtype, value.shape, value.requires_grad, same))
            else:
                key.append(value)
        return tuple(key)


class Recorder(TorchFunctionMode):
    """Writes the calls made while it is entered into a graph."""

    def __init__(self, tensors):
        super().__init__()
        self.graph = torch.fx.Graph()
        self.nodes = {}  # from a tensor's id to its node
        self.held = {}
        self.alive = []
        self.broken = False
        for number, tensor in enumerate(tensors):
            node = self.graph.placeholder(f"input_{number}")
            self.nodes.setdefault(id(tensor), node)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.__name__ == "__get__":
            return result
        self.alive.append(result)
        self.broken = self.broken or func.__name__ in READS
        node = self.graph.call_function(func, self.to_nodes(args), self.to_nodes(kwargs))
        if isinstance(result, torch.Tensor):
            self.nodes[id(result)] = node
        elif isinstance(result, tuple | list):
            for place, item in enumerate(result):
                if isinstance(item, torch.Tensor):
                    part = self.graph.call_function(operator.getitem, (node, place))
                    self.nodes[id(item)] = part
        return result

    def to_nodes(self, values):
        return torch.fx.node.map_aggregate(values, self.to_node)

    def to_node(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self.nodes:  # from outside: a weight, a global
            name = f"held_{len(self.held)}"
            self.held[name] = value
            self.nodes[id(value)] = self.graph.get_attr(name)
        return self.nodes[id(value)]

    def finished(self, result):
        """Return the graph as a module that returns what the function did."""
        self.graph.output(self.to_nodes(result))
        return torch.fx.GraphModule(self.held, self.graph)


# %% mistake: forgets_who_is_who
# Your guards do not say which arguments are the same tensor. A graph that was captured from `f(x,
# x)` reads its first input alone, and is wrong for `f(x, y)`.
class MiniDynamo:
    """Calls `function`, or a graph that was captured from it under the same conditions."""

    def __init__(self, function: Callable, backend: Callable, limit: int = 8) -> None:
        self.function = function
        self.backend = backend
        self.limit = limit
        self.known = {}  # from a kind to what runs it

    def __call__(self, *args: Any) -> Any:
        kind = self.kind(args)
        if kind in self.known:
            run = self.known[kind]
            if run is self.function:
                return run(*args)
            return run(*(value for value in args if isinstance(value, torch.Tensor)))
        if len(self.known) >= self.limit:
            return self.function(*args)

        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        recorder = Recorder(tensors)
        with recorder:
            result = self.function(*args)
        if recorder.broken:
            self.known[kind] = self.function
        else:
            self.known[kind] = self.backend(recorder.finished(result), tensors)
        return result

    def kind(self, args):
        """Return the guards as a key: equal for calls that may share a graph."""
        key = [torch.is_grad_enabled()]
        for value in args:
            if isinstance(value, torch.Tensor):
                key.append((value.dtype, value.shape, value.requires_grad))
            else:
                key.append((type(value), value))
        return tuple(key)


class Recorder(TorchFunctionMode):
    """Writes the calls made while it is entered into a graph."""

    def __init__(self, tensors):
        super().__init__()
        self.graph = torch.fx.Graph()
        self.nodes = {}  # from a tensor's id to its node
        self.held = {}
        self.alive = []
        self.broken = False
        for number, tensor in enumerate(tensors):
            node = self.graph.placeholder(f"input_{number}")
            self.nodes.setdefault(id(tensor), node)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.__name__ == "__get__":
            return result
        self.alive.append(result)
        self.broken = self.broken or func.__name__ in READS
        node = self.graph.call_function(func, self.to_nodes(args), self.to_nodes(kwargs))
        if isinstance(result, torch.Tensor):
            self.nodes[id(result)] = node
        elif isinstance(result, tuple | list):
            for place, item in enumerate(result):
                if isinstance(item, torch.Tensor):
                    part = self.graph.call_function(operator.getitem, (node, place))
                    self.nodes[id(item)] = part
        return result

    def to_nodes(self, values):
        return torch.fx.node.map_aggregate(values, self.to_node)

    def to_node(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self.nodes:  # from outside: a weight, a global
            name = f"held_{len(self.held)}"
            self.held[name] = value
            self.nodes[id(value)] = self.graph.get_attr(name)
        return self.nodes[id(value)]

    def finished(self, result):
        """Return the graph as a module that returns what the function did."""
        self.graph.output(self.to_nodes(result))
        return torch.fx.GraphModule(self.held, self.graph)


# %% mistake: guards_identity
# You guard which tensor an argument is. Every new tensor then compiles again. What is guarded is
# what the graph depends on: dtype, shape, `requires_grad`, and which arguments are the same.
class MiniDynamo:
    """Calls `function`, or a graph that was captured from it under the same conditions."""

    def __init__(self, function: Callable, backend: Callable, limit: int = 8) -> None:
        self.function = function
        self.backend = backend
        self.limit = limit
        self.known = {}  # from a kind to what runs it

    def __call__(self, *args: Any) -> Any:
        kind = self.kind(args)
        if kind in self.known:
            run = self.known[kind]
            if run is self.function:
                return run(*args)
            return run(*(value for value in args if isinstance(value, torch.Tensor)))
        if len(self.known) >= self.limit:
            return self.function(*args)

        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        recorder = Recorder(tensors)
        with recorder:
            result = self.function(*args)
        if recorder.broken:
            self.known[kind] = self.function
        else:
            self.known[kind] = self.backend(recorder.finished(result), tensors)
        return result

    def kind(self, args):
        """Return the guards as a key: equal for calls that may share a graph."""
        key = [torch.is_grad_enabled()]
        for value in args:
            if isinstance(value, torch.Tensor):
                same = id(value)
                key.append((value.dtype, value.shape, value.requires_grad, same))
            else:
                key.append((type(value), value))
        return tuple(key)


class Recorder(TorchFunctionMode):
    """Writes the calls made while it is entered into a graph."""

    def __init__(self, tensors):
        super().__init__()
        self.graph = torch.fx.Graph()
        self.nodes = {}  # from a tensor's id to its node
        self.held = {}
        self.alive = []
        self.broken = False
        for number, tensor in enumerate(tensors):
            node = self.graph.placeholder(f"input_{number}")
            self.nodes.setdefault(id(tensor), node)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.__name__ == "__get__":
            return result
        self.alive.append(result)
        self.broken = self.broken or func.__name__ in READS
        node = self.graph.call_function(func, self.to_nodes(args), self.to_nodes(kwargs))
        if isinstance(result, torch.Tensor):
            self.nodes[id(result)] = node
        elif isinstance(result, tuple | list):
            for place, item in enumerate(result):
                if isinstance(item, torch.Tensor):
                    part = self.graph.call_function(operator.getitem, (node, place))
                    self.nodes[id(item)] = part
        return result

    def to_nodes(self, values):
        return torch.fx.node.map_aggregate(values, self.to_node)

    def to_node(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self.nodes:  # from outside: a weight, a global
            name = f"held_{len(self.held)}"
            self.held[name] = value
            self.nodes[id(value)] = self.graph.get_attr(name)
        return self.nodes[id(value)]

    def finished(self, result):
        """Return the graph as a module that returns what the function did."""
        self.graph.output(self.to_nodes(result))
        return torch.fx.GraphModule(self.held, self.graph)


# %% mistake: copies_what_it_holds
# Your graph holds copies of the tensors from outside. Later writes to a weight are not seen, and no
# gradient reaches it: hold the tensor itself.
class MiniDynamo:
    """Calls `function`, or a graph that was captured from it under the same conditions."""

    def __init__(self, function: Callable, backend: Callable, limit: int = 8) -> None:
        self.function = function
        self.backend = backend
        self.limit = limit
        self.known = {}  # from a kind to what runs it

    def __call__(self, *args: Any) -> Any:
        kind = self.kind(args)
        if kind in self.known:
            run = self.known[kind]
            if run is self.function:
                return run(*args)
            return run(*(value for value in args if isinstance(value, torch.Tensor)))
        if len(self.known) >= self.limit:
            return self.function(*args)

        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        recorder = Recorder(tensors)
        with recorder:
            result = self.function(*args)
        if recorder.broken:
            self.known[kind] = self.function
        else:
            self.known[kind] = self.backend(recorder.finished(result), tensors)
        return result

    def kind(self, args):
        """Return the guards as a key: equal for calls that may share a graph."""
        first = {}  # from a tensor's id to the first argument that is it
        key = [torch.is_grad_enabled()]
        for number, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                same = first.setdefault(id(value), number)
                key.append((value.dtype, value.shape, value.requires_grad, same))
            else:
                key.append((type(value), value))
        return tuple(key)


class Recorder(TorchFunctionMode):
    """Writes the calls made while it is entered into a graph."""

    def __init__(self, tensors):
        super().__init__()
        self.graph = torch.fx.Graph()
        self.nodes = {}  # from a tensor's id to its node
        self.held = {}
        self.alive = []
        self.broken = False
        for number, tensor in enumerate(tensors):
            node = self.graph.placeholder(f"input_{number}")
            self.nodes.setdefault(id(tensor), node)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.__name__ == "__get__":
            return result
        self.alive.append(result)
        self.broken = self.broken or func.__name__ in READS
        node = self.graph.call_function(func, self.to_nodes(args), self.to_nodes(kwargs))
        if isinstance(result, torch.Tensor):
            self.nodes[id(result)] = node
        elif isinstance(result, tuple | list):
            for place, item in enumerate(result):
                if isinstance(item, torch.Tensor):
                    part = self.graph.call_function(operator.getitem, (node, place))
                    self.nodes[id(item)] = part
        return result

    def to_nodes(self, values):
        return torch.fx.node.map_aggregate(values, self.to_node)

    def to_node(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self.nodes:  # from outside: a weight, a global
            name = f"held_{len(self.held)}"
            self.held[name] = value.detach().clone()
            self.alive.append(value)
            self.nodes[id(value)] = self.graph.get_attr(name)
        return self.nodes[id(value)]

    def finished(self, result):
        """Return the graph as a module that returns what the function did."""
        self.graph.output(self.to_nodes(result))
        return torch.fx.GraphModule(self.held, self.graph)


# %% mistake: lets_tensors_go
# You know tensors by their `id`, and let them go. Python gives the id of a tensor that is gone to a
# new one, and your graph takes the new one for the old. Keep what you have seen while you record.
class MiniDynamo:
    """Calls `function`, or a graph that was captured from it under the same conditions."""

    def __init__(self, function: Callable, backend: Callable, limit: int = 8) -> None:
        self.function = function
        self.backend = backend
        self.limit = limit
        self.known = {}  # from a kind to what runs it

    def __call__(self, *args: Any) -> Any:
        kind = self.kind(args)
        if kind in self.known:
            run = self.known[kind]
            if run is self.function:
                return run(*args)
            return run(*(value for value in args if isinstance(value, torch.Tensor)))
        if len(self.known) >= self.limit:
            return self.function(*args)

        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        recorder = Recorder(tensors)
        with recorder:
            result = self.function(*args)
        if recorder.broken:
            self.known[kind] = self.function
        else:
            self.known[kind] = self.backend(recorder.finished(result), tensors)
        return result

    def kind(self, args):
        """Return the guards as a key: equal for calls that may share a graph."""
        first = {}  # from a tensor's id to the first argument that is it
        key = [torch.is_grad_enabled()]
        for number, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                same = first.setdefault(id(value), number)
                key.append((value.dtype, value.shape, value.requires_grad, same))
            else:
                key.append((type(value), value))
        return tuple(key)


class Recorder(TorchFunctionMode):
    """Writes the calls made while it is entered into a graph."""

    def __init__(self, tensors):
        super().__init__()
        self.graph = torch.fx.Graph()
        self.nodes = {}  # from a tensor's id to its node
        self.held = {}
        self.broken = False
        for number, tensor in enumerate(tensors):
            node = self.graph.placeholder(f"input_{number}")
            self.nodes.setdefault(id(tensor), node)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.__name__ == "__get__":
            return result
        self.broken = self.broken or func.__name__ in READS
        node = self.graph.call_function(func, self.to_nodes(args), self.to_nodes(kwargs))
        if isinstance(result, torch.Tensor):
            self.nodes[id(result)] = node
        elif isinstance(result, tuple | list):
            for place, item in enumerate(result):
                if isinstance(item, torch.Tensor):
                    part = self.graph.call_function(operator.getitem, (node, place))
                    self.nodes[id(item)] = part
        return result

    def to_nodes(self, values):
        return torch.fx.node.map_aggregate(values, self.to_node)

    def to_node(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self.nodes:  # from outside: a weight, a global
            name = f"held_{len(self.held)}"
            self.held[name] = value
            self.nodes[id(value)] = self.graph.get_attr(name)
        return self.nodes[id(value)]

    def finished(self, result):
        """Return the graph as a module that returns what the function did."""
        self.graph.output(self.to_nodes(result))
        return torch.fx.GraphModule(self.held, self.graph)


# %% mistake: tensors_alone
# You record calls that return tensors, and no others. A write such as `x[0] = 1` returns `None`,
# and grad mode is set by a call without any tensor: both are missing in your graph.
class MiniDynamo:
    """Calls `function`, or a graph that was captured from it under the same conditions."""

    def __init__(self, function: Callable, backend: Callable, limit: int = 8) -> None:
        self.function = function
        self.backend = backend
        self.limit = limit
        self.known = {}  # from a kind to what runs it

    def __call__(self, *args: Any) -> Any:
        kind = self.kind(args)
        if kind in self.known:
            run = self.known[kind]
            if run is self.function:
                return run(*args)
            return run(*(value for value in args if isinstance(value, torch.Tensor)))
        if len(self.known) >= self.limit:
            return self.function(*args)

        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        recorder = Recorder(tensors)
        with recorder:
            result = self.function(*args)
        if recorder.broken:
            self.known[kind] = self.function
        else:
            self.known[kind] = self.backend(recorder.finished(result), tensors)
        return result

    def kind(self, args):
        """Return the guards as a key: equal for calls that may share a graph."""
        first = {}  # from a tensor's id to the first argument that is it
        key = [torch.is_grad_enabled()]
        for number, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                same = first.setdefault(id(value), number)
                key.append((value.dtype, value.shape, value.requires_grad, same))
            else:
                key.append((type(value), value))
        return tuple(key)


class Recorder(TorchFunctionMode):
    """Writes the calls made while it is entered into a graph."""

    def __init__(self, tensors):
        super().__init__()
        self.graph = torch.fx.Graph()
        self.nodes = {}  # from a tensor's id to its node
        self.held = {}
        self.alive = []
        self.broken = False
        for number, tensor in enumerate(tensors):
            node = self.graph.placeholder(f"input_{number}")
            self.nodes.setdefault(id(tensor), node)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.__name__ == "__get__":
            return result
        self.alive.append(result)
        self.broken = self.broken or func.__name__ in READS
        if not isinstance(result, torch.Tensor | tuple | list):
            return result
        node = self.graph.call_function(func, self.to_nodes(args), self.to_nodes(kwargs))
        if isinstance(result, torch.Tensor):
            self.nodes[id(result)] = node
        elif isinstance(result, tuple | list):
            for place, item in enumerate(result):
                if isinstance(item, torch.Tensor):
                    part = self.graph.call_function(operator.getitem, (node, place))
                    self.nodes[id(item)] = part
        return result

    def to_nodes(self, values):
        return torch.fx.node.map_aggregate(values, self.to_node)

    def to_node(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self.nodes:  # from outside: a weight, a global
            name = f"held_{len(self.held)}"
            self.held[name] = value
            self.nodes[id(value)] = self.graph.get_attr(name)
        return self.nodes[id(value)]

    def finished(self, result):
        """Return the graph as a module that returns what the function did."""
        self.graph.output(self.to_nodes(result))
        return torch.fx.GraphModule(self.held, self.graph)


# %% mistake: parts_are_held
# You did not record where the parts of a tuple come from. `x.max(dim=1)` returns two tensors that
# are no nodes of yours, so your graph holds those of the first call as constants. Record an
# `operator.getitem` for each.
class MiniDynamo:
    """Calls `function`, or a graph that was captured from it under the same conditions."""

    def __init__(self, function: Callable, backend: Callable, limit: int = 8) -> None:
        self.function = function
        self.backend = backend
        self.limit = limit
        self.known = {}  # from a kind to what runs it

    def __call__(self, *args: Any) -> Any:
        kind = self.kind(args)
        if kind in self.known:
            run = self.known[kind]
            if run is self.function:
                return run(*args)
            return run(*(value for value in args if isinstance(value, torch.Tensor)))
        if len(self.known) >= self.limit:
            return self.function(*args)

        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        recorder = Recorder(tensors)
        with recorder:
            result = self.function(*args)
        if recorder.broken:
            self.known[kind] = self.function
        else:
            self.known[kind] = self.backend(recorder.finished(result), tensors)
        return result

    def kind(self, args):
        """Return the guards as a key: equal for calls that may share a graph."""
        first = {}  # from a tensor's id to the first argument that is it
        key = [torch.is_grad_enabled()]
        for number, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                same = first.setdefault(id(value), number)
                key.append((value.dtype, value.shape, value.requires_grad, same))
            else:
                key.append((type(value), value))
        return tuple(key)


class Recorder(TorchFunctionMode):
    """Writes the calls made while it is entered into a graph."""

    def __init__(self, tensors):
        super().__init__()
        self.graph = torch.fx.Graph()
        self.nodes = {}  # from a tensor's id to its node
        self.held = {}
        self.alive = []
        self.broken = False
        for number, tensor in enumerate(tensors):
            node = self.graph.placeholder(f"input_{number}")
            self.nodes.setdefault(id(tensor), node)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.__name__ == "__get__":
            return result
        self.alive.append(result)
        self.broken = self.broken or func.__name__ in READS
        node = self.graph.call_function(func, self.to_nodes(args), self.to_nodes(kwargs))
        if isinstance(result, torch.Tensor):
            self.nodes[id(result)] = node
        elif False:
            for place, item in enumerate(result):
                if isinstance(item, torch.Tensor):
                    part = self.graph.call_function(operator.getitem, (node, place))
                    self.nodes[id(item)] = part
        return result

    def to_nodes(self, values):
        return torch.fx.node.map_aggregate(values, self.to_node)

    def to_node(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self.nodes:  # from outside: a weight, a global
            name = f"held_{len(self.held)}"
            self.held[name] = value
            self.nodes[id(value)] = self.graph.get_attr(name)
        return self.nodes[id(value)]

    def finished(self, result):
        """Return the graph as a module that returns what the function did."""
        self.graph.output(self.to_nodes(result))
        return torch.fx.GraphModule(self.held, self.graph)


# %% mistake: bakes_the_branch
# You went on after the function had read a value. Your graph has the branch that the first call
# took, and takes it for every input. Look at `READS`.
class MiniDynamo:
    """Calls `function`, or a graph that was captured from it under the same conditions."""

    def __init__(self, function: Callable, backend: Callable, limit: int = 8) -> None:
        self.function = function
        self.backend = backend
        self.limit = limit
        self.known = {}  # from a kind to what runs it

    def __call__(self, *args: Any) -> Any:
        kind = self.kind(args)
        if kind in self.known:
            run = self.known[kind]
            if run is self.function:
                return run(*args)
            return run(*(value for value in args if isinstance(value, torch.Tensor)))
        if len(self.known) >= self.limit:
            return self.function(*args)

        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        recorder = Recorder(tensors)
        with recorder:
            result = self.function(*args)
        if recorder.broken:
            self.known[kind] = self.function
        else:
            self.known[kind] = self.backend(recorder.finished(result), tensors)
        return result

    def kind(self, args):
        """Return the guards as a key: equal for calls that may share a graph."""
        first = {}  # from a tensor's id to the first argument that is it
        key = [torch.is_grad_enabled()]
        for number, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                same = first.setdefault(id(value), number)
                key.append((value.dtype, value.shape, value.requires_grad, same))
            else:
                key.append((type(value), value))
        return tuple(key)


class Recorder(TorchFunctionMode):
    """Writes the calls made while it is entered into a graph."""

    def __init__(self, tensors):
        super().__init__()
        self.graph = torch.fx.Graph()
        self.nodes = {}  # from a tensor's id to its node
        self.held = {}
        self.alive = []
        self.broken = False
        for number, tensor in enumerate(tensors):
            node = self.graph.placeholder(f"input_{number}")
            self.nodes.setdefault(id(tensor), node)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.__name__ == "__get__":
            return result
        self.alive.append(result)
        pass
        node = self.graph.call_function(func, self.to_nodes(args), self.to_nodes(kwargs))
        if isinstance(result, torch.Tensor):
            self.nodes[id(result)] = node
        elif isinstance(result, tuple | list):
            for place, item in enumerate(result):
                if isinstance(item, torch.Tensor):
                    part = self.graph.call_function(operator.getitem, (node, place))
                    self.nodes[id(item)] = part
        return result

    def to_nodes(self, values):
        return torch.fx.node.map_aggregate(values, self.to_node)

    def to_node(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self.nodes:  # from outside: a weight, a global
            name = f"held_{len(self.held)}"
            self.held[name] = value
            self.nodes[id(value)] = self.graph.get_attr(name)
        return self.nodes[id(value)]

    def finished(self, result):
        """Return the graph as a module that returns what the function did."""
        self.graph.output(self.to_nodes(result))
        return torch.fx.GraphModule(self.held, self.graph)


# %% mistake: forgets_breaks
# You do not remember that a kind broke, and trace it anew in each call. It counts among the kinds
# that are remembered, and its calls run the function plainly.
class MiniDynamo:
    """Calls `function`, or a graph that was captured from it under the same conditions."""

    def __init__(self, function: Callable, backend: Callable, limit: int = 8) -> None:
        self.function = function
        self.backend = backend
        self.limit = limit
        self.known = {}  # from a kind to what runs it

    def __call__(self, *args: Any) -> Any:
        kind = self.kind(args)
        if kind in self.known:
            run = self.known[kind]
            if run is self.function:
                return run(*args)
            return run(*(value for value in args if isinstance(value, torch.Tensor)))
        if len(self.known) >= self.limit:
            return self.function(*args)

        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        recorder = Recorder(tensors)
        with recorder:
            result = self.function(*args)
        if recorder.broken:
            pass
        else:
            self.known[kind] = self.backend(recorder.finished(result), tensors)
        return result

    def kind(self, args):
        """Return the guards as a key: equal for calls that may share a graph."""
        first = {}  # from a tensor's id to the first argument that is it
        key = [torch.is_grad_enabled()]
        for number, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                same = first.setdefault(id(value), number)
                key.append((value.dtype, value.shape, value.requires_grad, same))
            else:
                key.append((type(value), value))
        return tuple(key)


class Recorder(TorchFunctionMode):
    """Writes the calls made while it is entered into a graph."""

    def __init__(self, tensors):
        super().__init__()
        self.graph = torch.fx.Graph()
        self.nodes = {}  # from a tensor's id to its node
        self.held = {}
        self.alive = []
        self.broken = False
        for number, tensor in enumerate(tensors):
            node = self.graph.placeholder(f"input_{number}")
            self.nodes.setdefault(id(tensor), node)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.__name__ == "__get__":
            return result
        self.alive.append(result)
        self.broken = self.broken or func.__name__ in READS
        node = self.graph.call_function(func, self.to_nodes(args), self.to_nodes(kwargs))
        if isinstance(result, torch.Tensor):
            self.nodes[id(result)] = node
        elif isinstance(result, tuple | list):
            for place, item in enumerate(result):
                if isinstance(item, torch.Tensor):
                    part = self.graph.call_function(operator.getitem, (node, place))
                    self.nodes[id(item)] = part
        return result

    def to_nodes(self, values):
        return torch.fx.node.map_aggregate(values, self.to_node)

    def to_node(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self.nodes:  # from outside: a weight, a global
            name = f"held_{len(self.held)}"
            self.held[name] = value
            self.nodes[id(value)] = self.graph.get_attr(name)
        return self.nodes[id(value)]

    def finished(self, result):
        """Return the graph as a module that returns what the function did."""
        self.graph.output(self.to_nodes(result))
        return torch.fx.GraphModule(self.held, self.graph)


# %% mistake: forgets_grad_mode
# Grad mode is not in your key. A graph that was captured under `no_grad` is not the one for calls
# that record.
class MiniDynamo:
    """Calls `function`, or a graph that was captured from it under the same conditions."""

    def __init__(self, function: Callable, backend: Callable, limit: int = 8) -> None:
        self.function = function
        self.backend = backend
        self.limit = limit
        self.known = {}  # from a kind to what runs it

    def __call__(self, *args: Any) -> Any:
        kind = self.kind(args)
        if kind in self.known:
            run = self.known[kind]
            if run is self.function:
                return run(*args)
            return run(*(value for value in args if isinstance(value, torch.Tensor)))
        if len(self.known) >= self.limit:
            return self.function(*args)

        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        recorder = Recorder(tensors)
        with recorder:
            result = self.function(*args)
        if recorder.broken:
            self.known[kind] = self.function
        else:
            self.known[kind] = self.backend(recorder.finished(result), tensors)
        return result

    def kind(self, args):
        """Return the guards as a key: equal for calls that may share a graph."""
        first = {}  # from a tensor's id to the first argument that is it
        key = []
        for number, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                same = first.setdefault(id(value), number)
                key.append((value.dtype, value.shape, value.requires_grad, same))
            else:
                key.append((type(value), value))
        return tuple(key)


class Recorder(TorchFunctionMode):
    """Writes the calls made while it is entered into a graph."""

    def __init__(self, tensors):
        super().__init__()
        self.graph = torch.fx.Graph()
        self.nodes = {}  # from a tensor's id to its node
        self.held = {}
        self.alive = []
        self.broken = False
        for number, tensor in enumerate(tensors):
            node = self.graph.placeholder(f"input_{number}")
            self.nodes.setdefault(id(tensor), node)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.__name__ == "__get__":
            return result
        self.alive.append(result)
        self.broken = self.broken or func.__name__ in READS
        node = self.graph.call_function(func, self.to_nodes(args), self.to_nodes(kwargs))
        if isinstance(result, torch.Tensor):
            self.nodes[id(result)] = node
        elif isinstance(result, tuple | list):
            for place, item in enumerate(result):
                if isinstance(item, torch.Tensor):
                    part = self.graph.call_function(operator.getitem, (node, place))
                    self.nodes[id(item)] = part
        return result

    def to_nodes(self, values):
        return torch.fx.node.map_aggregate(values, self.to_node)

    def to_node(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self.nodes:  # from outside: a weight, a global
            name = f"held_{len(self.held)}"
            self.held[name] = value
            self.nodes[id(value)] = self.graph.get_attr(name)
        return self.nodes[id(value)]

    def finished(self, result):
        """Return the graph as a module that returns what the function did."""
        self.graph.output(self.to_nodes(result))
        return torch.fx.GraphModule(self.held, self.graph)


# %% mistake: forgets_requires_grad
# You do not guard `requires_grad`. A function may look at it, as it may look at the shape.
class MiniDynamo:
    """Calls `function`, or a graph that was captured from it under the same conditions."""

    def __init__(self, function: Callable, backend: Callable, limit: int = 8) -> None:
        self.function = function
        self.backend = backend
        self.limit = limit
        self.known = {}  # from a kind to what runs it

    def __call__(self, *args: Any) -> Any:
        kind = self.kind(args)
        if kind in self.known:
            run = self.known[kind]
            if run is self.function:
                return run(*args)
            return run(*(value for value in args if isinstance(value, torch.Tensor)))
        if len(self.known) >= self.limit:
            return self.function(*args)

        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        recorder = Recorder(tensors)
        with recorder:
            result = self.function(*args)
        if recorder.broken:
            self.known[kind] = self.function
        else:
            self.known[kind] = self.backend(recorder.finished(result), tensors)
        return result

    def kind(self, args):
        """Return the guards as a key: equal for calls that may share a graph."""
        first = {}  # from a tensor's id to the first argument that is it
        key = [torch.is_grad_enabled()]
        for number, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                same = first.setdefault(id(value), number)
                key.append((value.dtype, value.shape, same))
            else:
                key.append((type(value), value))
        return tuple(key)


class Recorder(TorchFunctionMode):
    """Writes the calls made while it is entered into a graph."""

    def __init__(self, tensors):
        super().__init__()
        self.graph = torch.fx.Graph()
        self.nodes = {}  # from a tensor's id to its node
        self.held = {}
        self.alive = []
        self.broken = False
        for number, tensor in enumerate(tensors):
            node = self.graph.placeholder(f"input_{number}")
            self.nodes.setdefault(id(tensor), node)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.__name__ == "__get__":
            return result
        self.alive.append(result)
        self.broken = self.broken or func.__name__ in READS
        node = self.graph.call_function(func, self.to_nodes(args), self.to_nodes(kwargs))
        if isinstance(result, torch.Tensor):
            self.nodes[id(result)] = node
        elif isinstance(result, tuple | list):
            for place, item in enumerate(result):
                if isinstance(item, torch.Tensor):
                    part = self.graph.call_function(operator.getitem, (node, place))
                    self.nodes[id(item)] = part
        return result

    def to_nodes(self, values):
        return torch.fx.node.map_aggregate(values, self.to_node)

    def to_node(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self.nodes:  # from outside: a weight, a global
            name = f"held_{len(self.held)}"
            self.held[name] = value
            self.nodes[id(value)] = self.graph.get_attr(name)
        return self.nodes[id(value)]

    def finished(self, result):
        """Return the graph as a module that returns what the function did."""
        self.graph.output(self.to_nodes(result))
        return torch.fx.GraphModule(self.held, self.graph)


# %% mistake: no_limit
# You remember kinds without end. After `limit` of them a call of another kind runs the function,
# and nothing is traced.
class MiniDynamo:
    """Calls `function`, or a graph that was captured from it under the same conditions."""

    def __init__(self, function: Callable, backend: Callable, limit: int = 8) -> None:
        self.function = function
        self.backend = backend
        self.limit = limit
        self.known = {}  # from a kind to what runs it

    def __call__(self, *args: Any) -> Any:
        kind = self.kind(args)
        if kind in self.known:
            run = self.known[kind]
            if run is self.function:
                return run(*args)
            return run(*(value for value in args if isinstance(value, torch.Tensor)))

        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        recorder = Recorder(tensors)
        with recorder:
            result = self.function(*args)
        if recorder.broken:
            self.known[kind] = self.function
        else:
            self.known[kind] = self.backend(recorder.finished(result), tensors)
        return result

    def kind(self, args):
        """Return the guards as a key: equal for calls that may share a graph."""
        first = {}  # from a tensor's id to the first argument that is it
        key = [torch.is_grad_enabled()]
        for number, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                same = first.setdefault(id(value), number)
                key.append((value.dtype, value.shape, value.requires_grad, same))
            else:
                key.append((type(value), value))
        return tuple(key)


class Recorder(TorchFunctionMode):
    """Writes the calls made while it is entered into a graph."""

    def __init__(self, tensors):
        super().__init__()
        self.graph = torch.fx.Graph()
        self.nodes = {}  # from a tensor's id to its node
        self.held = {}
        self.alive = []
        self.broken = False
        for number, tensor in enumerate(tensors):
            node = self.graph.placeholder(f"input_{number}")
            self.nodes.setdefault(id(tensor), node)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.__name__ == "__get__":
            return result
        self.alive.append(result)
        self.broken = self.broken or func.__name__ in READS
        node = self.graph.call_function(func, self.to_nodes(args), self.to_nodes(kwargs))
        if isinstance(result, torch.Tensor):
            self.nodes[id(result)] = node
        elif isinstance(result, tuple | list):
            for place, item in enumerate(result):
                if isinstance(item, torch.Tensor):
                    part = self.graph.call_function(operator.getitem, (node, place))
                    self.nodes[id(item)] = part
        return result

    def to_nodes(self, values):
        return torch.fx.node.map_aggregate(values, self.to_node)

    def to_node(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self.nodes:  # from outside: a weight, a global
            name = f"held_{len(self.held)}"
            self.held[name] = value
            self.nodes[id(value)] = self.graph.get_attr(name)
        return self.nodes[id(value)]

    def finished(self, result):
        """Return the graph as a module that returns what the function did."""
        self.graph.output(self.to_nodes(result))
        return torch.fx.GraphModule(self.held, self.graph)


# %% mistake: gives_up_for_all
# You stop using graphs for every kind once one of them broke. Other kinds may take another way
# through the function, without a break.
class MiniDynamo:
    """Calls `function`, or a graph that was captured from it under the same conditions."""

    def __init__(self, function: Callable, backend: Callable, limit: int = 8) -> None:
        self.function = function
        self.backend = backend
        self.limit = limit
        self.known = {}  # from a kind to what runs it

    def __call__(self, *args: Any) -> Any:
        kind = self.kind(args)
        if kind in self.known:
            run = self.known[kind]
            if run is self.function:
                return run(*args)
            return run(*(value for value in args if isinstance(value, torch.Tensor)))
        if len(self.known) >= self.limit:
            return self.function(*args)

        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        recorder = Recorder(tensors)
        with recorder:
            result = self.function(*args)
        if recorder.broken:
            self.known[kind] = self.function
            self.limit = 0
        else:
            self.known[kind] = self.backend(recorder.finished(result), tensors)
        return result

    def kind(self, args):
        """Return the guards as a key: equal for calls that may share a graph."""
        first = {}  # from a tensor's id to the first argument that is it
        key = [torch.is_grad_enabled()]
        for number, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                same = first.setdefault(id(value), number)
                key.append((value.dtype, value.shape, value.requires_grad, same))
            else:
                key.append((type(value), value))
        return tuple(key)


class Recorder(TorchFunctionMode):
    """Writes the calls made while it is entered into a graph."""

    def __init__(self, tensors):
        super().__init__()
        self.graph = torch.fx.Graph()
        self.nodes = {}  # from a tensor's id to its node
        self.held = {}
        self.alive = []
        self.broken = False
        for number, tensor in enumerate(tensors):
            node = self.graph.placeholder(f"input_{number}")
            self.nodes.setdefault(id(tensor), node)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.__name__ == "__get__":
            return result
        self.alive.append(result)
        self.broken = self.broken or func.__name__ in READS
        node = self.graph.call_function(func, self.to_nodes(args), self.to_nodes(kwargs))
        if isinstance(result, torch.Tensor):
            self.nodes[id(result)] = node
        elif isinstance(result, tuple | list):
            for place, item in enumerate(result):
                if isinstance(item, torch.Tensor):
                    part = self.graph.call_function(operator.getitem, (node, place))
                    self.nodes[id(item)] = part
        return result

    def to_nodes(self, values):
        return torch.fx.node.map_aggregate(values, self.to_node)

    def to_node(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self.nodes:  # from outside: a weight, a global
            name = f"held_{len(self.held)}"
            self.held[name] = value
            self.nodes[id(value)] = self.graph.get_attr(name)
        return self.nodes[id(value)]

    def finished(self, result):
        """Return the graph as a module that returns what the function did."""
        self.graph.output(self.to_nodes(result))
        return torch.fx.GraphModule(self.held, self.graph)


# %% alternate: writes_afterwards
# Notes the calls in a list, and builds the graph from it at the end. Entries are tried one by one.
class Notes(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func.__name__ != "__get__":
            self.calls.append((func, args, kwargs or {}, result))
        return result


class MiniDynamo:
    def __init__(self, function, backend, limit=8):
        self.function, self.backend, self.limit = function, backend, limit
        self.entries = []

    def __call__(self, *args):
        facts = self.facts(args)
        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        for known, run in self.entries:
            if known == facts:
                return self.function(*args) if run is None else run(*tensors)
        if len(self.entries) == self.limit:
            return self.function(*args)
        with Notes() as notes:
            result = self.function(*args)
        broken = any(func.__name__ in READS for func, *_ in notes.calls)
        run = None if broken else self.backend(self.build(tensors, notes.calls, result), tensors)
        self.entries.append((facts, run))
        return result

    def facts(self, args):
        facts = [str(torch.is_grad_enabled())]
        for value in args:
            if isinstance(value, torch.Tensor):
                twins = [other is value for other in args]
                facts.append(f"{value.dtype} {value.shape} {value.requires_grad} {twins}")
            else:
                facts.append(f"{type(value)} {value!r}")
        return facts

    def build(self, tensors, calls, result):
        graph, nodes, held = torch.fx.Graph(), {}, {}
        for number, tensor in enumerate(tensors):
            node = graph.placeholder(f"t{number}")
            nodes[id(tensor)] = nodes.get(id(tensor), node)

        def node_of(value):
            if isinstance(value, torch.Tensor):
                if id(value) not in nodes:
                    held[f"h{len(held)}"] = value
                    nodes[id(value)] = graph.get_attr(f"h{len(held) - 1}")
                return nodes[id(value)]
            return value

        for func, args, kwargs, came in calls:
            mapped = [torch.fx.node.map_aggregate(part, node_of) for part in (args, kwargs)]
            node = graph.call_function(func, *mapped)
            if isinstance(came, torch.Tensor):
                nodes[id(came)] = node
            elif isinstance(came, list | tuple):
                for place, part in enumerate(came):
                    nodes[id(part)] = graph.call_function(operator.getitem, (node, place))
        graph.output(torch.fx.node.map_aggregate(result, node_of))
        return torch.fx.GraphModule(held, graph)


# %% alternate: a_method_where_it_can
# Records methods as `call_method` nodes, and lets an interpreter run the graph in a module of its
# own.
class MiniDynamo(TorchFunctionMode):
    def __init__(self, function, backend, limit=8):
        super().__init__()
        self.function, self.backend, self.limit = function, backend, limit
        self.table = {}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = func.__name__
        if name == "__get__":
            return out
        if name in READS:
            self.ok = False
        inputs = torch.fx.node.map_aggregate((tuple(args), dict(kwargs or {})), self.look_up)
        is_method = getattr(torch.Tensor, name, None) is func and isinstance(args[0], torch.Tensor)
        if is_method:
            node = self.graph.call_method(name, *inputs)
        else:
            node = self.graph.call_function(func, *inputs)
        self.note(out, node)
        return out

    def note(self, out, node):
        if isinstance(out, torch.Tensor):
            self.where[id(out)] = node
            self.alive.append(out)
        if isinstance(out, tuple | list):
            for number, part in enumerate(out):
                if isinstance(part, torch.Tensor):
                    self.note(part, self.graph.call_function(operator.getitem, (node, number)))

    def look_up(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self.where:
            name = f"outside{len(self.outside)}"
            self.outside[name] = value
            self.where[id(value)] = self.graph.get_attr(name)
        return self.where[id(value)]

    def __call__(self, *args):
        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        numbers = [next(i for i, t in enumerate(tensors) if t is tensor) for tensor in tensors]
        key = (torch.is_grad_enabled(), tuple(numbers)) + tuple(
            (a.dtype, tuple(a.shape), a.requires_grad)
            if isinstance(a, torch.Tensor)
            else (a, str(type(a)))
            for a in args
        )
        if key not in self.table:
            if len(self.table) >= self.limit:
                return self.function(*args)
            self.ok, self.graph, self.where = True, torch.fx.Graph(), {}
            self.outside, self.alive = {}, []
            for number, tensor in enumerate(tensors):
                node = self.graph.placeholder(f"arg{number}")
                if id(tensor) not in self.where:
                    self.where[id(tensor)] = node
            with self:
                result = self.function(*args)
            self.table[key] = None
            if self.ok:
                self.graph.output(torch.fx.node.map_aggregate(result, self.look_up))
                module = torch.fx.GraphModule(self.outside, self.graph)
                self.table[key] = self.backend(module, tensors)
            return result
        run = self.table[key]
        return self.function(*args) if run is None else run(*tensors)
