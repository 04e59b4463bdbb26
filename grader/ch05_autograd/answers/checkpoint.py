# %% blocked: the_built_in
# That is the finished one. Its non-reentrant half is made of the hooks that you have.
def checkpoint(function, *args, **kwargs):
    return torch.utils.checkpoint.checkpoint(function, *args, use_reentrant=False, **kwargs)


# %% mistake: plain_call
# You call the function and leave it at that. The gradients are right, and all that its nodes save is kept.
def checkpoint(function, *args, **kwargs):
    return function(*args, **kwargs)


# %% mistake: a_custom_function
# Your Function sees only tensors that are arguments themselves. If none of them requires grad, because they
# are inside of a tuple, or because only parameters do, nothing is recorded at all.
class Reentrant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, function, state, kwargs, *args):
        ctx.function, ctx.state, ctx.kwargs, ctx.args = function, state, kwargs, args
        return function(*args, **kwargs)

    @staticmethod
    def backward(ctx, *grads):
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        with torch.enable_grad():
            result = ctx.function(*args, **ctx.kwargs)
        torch.set_rng_state(now)
        torch.autograd.backward(result, grads)
        return None, None, None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(function, *args, **kwargs):
    return Reentrant.apply(function, torch.get_rng_state(), kwargs, *args)


# %% mistake: keeps_the_tensors
# Your `pack` puts the tensors into a list. The nodes do not keep them, but you do: the memory is the same.
# Keep nothing but numbers.
def checkpoint(function, *args, **kwargs):
    kept = []

    def pack(tensor):
        kept.append(tensor.detach())
        return len(kept) - 1

    if torch.is_grad_enabled():
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda number: kept[number]):
            return function(*args, **kwargs)
    return function(*args, **kwargs)


# %% mistake: forgets_the_generator
# The second run draws other random numbers than the first, so the gradients belong to another dropout mask.
# Remember the state of the generator, and set it.
def checkpoint(function, *args, **kwargs):
    hooks = torch.autograd.graph.saved_tensors_hooks
    recomputed = {}
    numbers = itertools.count()

    def pack(tensor):
        return next(numbers)

    def unpack(number):
        if number not in recomputed:
            recompute()
        return recomputed.pop(number)

    def recompute():
        again = itertools.count()

        def catch(tensor):
            recomputed[next(again)] = tensor.detach()

        with torch.enable_grad(), hooks(catch, lambda nothing: nothing):
            function(*args, **kwargs)

    with hooks(pack, unpack):
        return function(*args, **kwargs)


# %% mistake: generator_stays_back
# After the second run the generator stands where it stood after the first. Whoever draws next draws numbers
# that were drawn before. Put back the state that you found.
def checkpoint(function, *args, **kwargs):
    hooks = torch.autograd.graph.saved_tensors_hooks
    state = torch.get_rng_state()
    recomputed = {}
    numbers = itertools.count()

    def pack(tensor):
        return next(numbers)

    def unpack(number):
        if number not in recomputed:
            recompute()
        return recomputed.pop(number)

    def recompute():
        again = itertools.count()

        def catch(tensor):
            recomputed[next(again)] = tensor.detach()

        now = torch.get_rng_state()
        torch.set_rng_state(state)
        try:
            with torch.enable_grad(), hooks(catch, lambda nothing: nothing):
                function(*args, **kwargs)
        finally:
            del now

    with hooks(pack, unpack):
        return function(*args, **kwargs)


# %% mistake: seeds_the_generator
# You seed the generator before each run. Both runs agree, but the first is not what a plain call would have
# drawn, and everybody after you draws the same numbers again.
def checkpoint(function, *args, **kwargs):
    hooks = torch.autograd.graph.saved_tensors_hooks
    torch.default_generator.manual_seed(0)
    state = torch.get_rng_state()
    recomputed = {}
    numbers = itertools.count()

    def pack(tensor):
        return next(numbers)

    def unpack(number):
        if number not in recomputed:
            recompute()
        return recomputed.pop(number)

    def recompute():
        again = itertools.count()

        def catch(tensor):
            recomputed[next(again)] = tensor.detach()

        now = torch.get_rng_state()
        torch.set_rng_state(state)
        try:
            with torch.enable_grad(), hooks(catch, lambda nothing: nothing):
                function(*args, **kwargs)
        finally:
            torch.set_rng_state(now)

    with hooks(pack, unpack):
        return function(*args, **kwargs)


# %% mistake: without_grad_mode
# Backward runs with grad mode off. Your second run records nothing, so nothing is packed, and the number is
# not found. Switch it on.
def checkpoint(function, *args, **kwargs):
    hooks = torch.autograd.graph.saved_tensors_hooks
    state = torch.get_rng_state()
    recomputed = {}
    numbers = itertools.count()

    def pack(tensor):
        return next(numbers)

    def unpack(number):
        if number not in recomputed:
            recompute()
        return recomputed.pop(number)

    def recompute():
        again = itertools.count()

        def catch(tensor):
            recomputed[next(again)] = tensor.detach()

        now = torch.get_rng_state()
        torch.set_rng_state(state)
        try:
            with hooks(catch, lambda nothing: nothing):
                function(*args, **kwargs)
        finally:
            torch.set_rng_state(now)

    with hooks(pack, unpack):
        return function(*args, **kwargs)


# %% mistake: a_run_for_each_tensor
# You run the function again for every tensor that is asked for. One run catches them all.
def checkpoint(function, *args, **kwargs):
    hooks = torch.autograd.graph.saved_tensors_hooks
    state = torch.get_rng_state()
    recomputed = {}
    numbers = itertools.count()

    def pack(tensor):
        return next(numbers)

    def unpack(number):
        recomputed.clear()
        recompute()
        return recomputed.pop(number)

    def recompute():
        again = itertools.count()

        def catch(tensor):
            recomputed[next(again)] = tensor.detach()

        now = torch.get_rng_state()
        torch.set_rng_state(state)
        try:
            with torch.enable_grad(), hooks(catch, lambda nothing: nothing):
                function(*args, **kwargs)
        finally:
            torch.set_rng_state(now)

    with hooks(pack, unpack):
        return function(*args, **kwargs)


# %% mistake: used_up
# You run the function a second time only once. A second backward pass, after `retain_graph=True`, or a
# backward through another part of the graph, finds the tensors gone.
def checkpoint(function, *args, **kwargs):
    hooks = torch.autograd.graph.saved_tensors_hooks
    state = torch.get_rng_state()
    recomputed, done = {}, []
    numbers = itertools.count()

    def pack(tensor):
        return next(numbers)

    def unpack(number):
        if not done:
            done.append(True)
            recompute()
        return recomputed.pop(number)

    def recompute():
        again = itertools.count()

        def catch(tensor):
            recomputed[next(again)] = tensor.detach()

        now = torch.get_rng_state()
        torch.set_rng_state(state)
        try:
            with torch.enable_grad(), hooks(catch, lambda nothing: nothing):
                function(*args, **kwargs)
        finally:
            torch.set_rng_state(now)

    with hooks(pack, unpack):
        return function(*args, **kwargs)


# %% mistake: keeps_the_second_run
# You keep the tensors of the second run. Then a second backward pass does not run the function again, and
# what you wanted to save is kept from the first backward on.
def checkpoint(function, *args, **kwargs):
    hooks = torch.autograd.graph.saved_tensors_hooks
    state = torch.get_rng_state()
    recomputed = {}
    numbers = itertools.count()

    def pack(tensor):
        return next(numbers)

    def unpack(number):
        if number not in recomputed:
            recompute()
        return recomputed[number]

    def recompute():
        again = itertools.count()

        def catch(tensor):
            recomputed[next(again)] = tensor.detach()

        now = torch.get_rng_state()
        torch.set_rng_state(state)
        try:
            with torch.enable_grad(), hooks(catch, lambda nothing: nothing):
                function(*args, **kwargs)
        finally:
            torch.set_rng_state(now)

    with hooks(pack, unpack):
        return function(*args, **kwargs)


# %% mistake: holds_its_own_result
# What you keep for the second run holds the function's result. The result holds its graph, the graph
# holds what you keep: dropped without a backward, all of it stays for ever.
def checkpoint(function, *args, **kwargs):
    hooks = torch.autograd.graph.saved_tensors_hooks
    state = torch.get_rng_state()
    recomputed = {}
    numbers = itertools.count()
    result = None

    def pack(tensor):
        return next(numbers)

    def unpack(number):
        if number not in recomputed:
            recompute(result)
        return recomputed.pop(number)

    def recompute(first):
        again = itertools.count()

        def catch(tensor):
            recomputed[next(again)] = tensor.detach()

        now = torch.get_rng_state()
        torch.set_rng_state(state)
        try:
            with torch.enable_grad(), hooks(catch, lambda nothing: nothing):
                second = function(*args, **kwargs)
                assert type(second) is type(first)
        finally:
            torch.set_rng_state(now)

    with hooks(pack, unpack):
        result = function(*args, **kwargs)
    return result


# %% mistake: loses_keywords
# Your second run leaves out the keyword arguments.
def checkpoint(function, *args, **kwargs):
    hooks = torch.autograd.graph.saved_tensors_hooks
    state = torch.get_rng_state()
    recomputed = {}
    numbers = itertools.count()

    def pack(tensor):
        return next(numbers)

    def unpack(number):
        if number not in recomputed:
            recompute()
        return recomputed.pop(number)

    def recompute():
        again = itertools.count()

        def catch(tensor):
            recomputed[next(again)] = tensor.detach()

        now = torch.get_rng_state()
        torch.set_rng_state(state)
        try:
            with torch.enable_grad(), hooks(catch, lambda nothing: nothing):
                function(*args)
        finally:
            torch.set_rng_state(now)

    with hooks(pack, unpack):
        return function(*args, **kwargs)


# %% alternate: one_list_per_run
# Tensors of the second run in a list; each place is emptied when it is read.
class Recomputed:
    def __init__(self, call):
        self.call, self.count, self.tensors = call, 0, []
        self.state = torch.random.get_rng_state()

    def pack(self, tensor):
        self.count += 1
        return self.count - 1

    def unpack(self, place):
        if place >= len(self.tensors) or self.tensors[place] is None:
            self.run_again()
        tensor, self.tensors[place] = self.tensors[place], None
        return tensor

    def run_again(self):
        caught = []
        with torch.random.fork_rng(devices=[]):
            torch.random.set_rng_state(self.state)
            with torch.set_grad_enabled(True):
                with torch.autograd.graph.saved_tensors_hooks(caught.append, id):
                    self.call()
        self.tensors = [tensor.data for tensor in caught]


def checkpoint(function, *args, **kwargs):
    memory = Recomputed(lambda: function(*args, **kwargs))
    with torch.autograd.graph.saved_tensors_hooks(memory.pack, memory.unpack):
        return memory.call()


# %% alternate: placeholders
# The nodes keep empty objects; a second run gives each of them its tensor, and they forget it when it is
# read.
class Placeholder:
    tensor = None


def checkpoint(function, *args, **kwargs):
    if not torch.is_grad_enabled():
        return function(*args, **kwargs)
    generator_state = torch.get_rng_state().clone()
    places = []

    def pack(tensor):
        places.append(Placeholder())
        return places[-1]

    def unpack(place):
        if place.tensor is None:
            rest = iter(places)

            def fill(tensor):
                next(rest).tensor = tensor.detach()
                return None

            outside = torch.get_rng_state()
            torch.set_rng_state(generator_state)
            with torch.enable_grad():
                with torch.autograd.graph.saved_tensors_hooks(fill, lambda none: none):
                    function(*args, **kwargs)
            torch.set_rng_state(outside)
        tensor, place.tensor = place.tensor, None
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        result = function(*args, **kwargs)
    return result
