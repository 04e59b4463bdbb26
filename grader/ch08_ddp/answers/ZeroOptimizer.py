# %% blocked: builtin_zero
# The built-in is what you are asked to build.
def ZeroOptimizer(params, make):
    optimizer = type(make([torch.zeros(1)]))
    return torch.distributed.optim.ZeroRedundancyOptimizer(params, optimizer, lr=0.1)


# %% mistake: plain_optimizer
# Every rank has an optimizer of all parameters. The parameters come out right, and nothing is
# sharded: each rank keeps all of the state.
class ZeroOptimizer:
    def __init__(self, params, make):
        self.params = list(params)
        self.optimizer = make(self.params)

    def step(self):
        self.optimizer.step()

    def zero_grad(self):
        self.optimizer.zero_grad()


# %% mistake: throws_state_away
# Every rank steps all parameters and then throws away the state of what it does not own. While it
# steps, it has all of it: that is the memory you wanted to save. Give the optimizer your own
# parameters only.
class ZeroOptimizer:
    def __init__(self, params, make):
        self.params = list(params)
        elements = [0] * dist.get_world_size()
        self.owner = {}
        for param in sorted(self.params, key=torch.Tensor.numel, reverse=True):
            poorest = elements.index(min(elements))
            self.owner[param] = poorest
            elements[poorest] += param.numel()
        self.optimizer = make(self.params)

    @torch.no_grad()
    def step(self):
        if self.optimizer is not None:
            self.optimizer.step()
            for param in self.params:
                if self.owner[param] != dist.get_rank():
                    self.optimizer.state.pop(param, None)
        sent = []
        for param in self.params:
            dense = param.contiguous()
            work = dist.broadcast(dense, src=self.owner[param], async_op=True)
            sent.append((param, dense, work))
        for param, dense, work in sent:
            work.wait()
            param.copy_(dense)

    def zero_grad(self):
        for param in self.params:
            param.grad = None


# %% mistake: all_on_rank_0
# Rank 0 owns everything. The others keep nothing, and the one rank that must have room for all
# decides how large the model may be.
class ZeroOptimizer:
    def __init__(self, params, make):
        self.params = list(params)
        self.owner = {}
        for param in sorted(self.params, key=torch.Tensor.numel, reverse=True):
            self.owner[param] = 0
        own = [param for param in self.params if self.owner[param] == dist.get_rank()]
        self.optimizer = make(own) if own else None

    @torch.no_grad()
    def step(self):
        if self.optimizer is not None:
            self.optimizer.step()
        sent = []
        for param in self.params:
            dense = param.contiguous()
            work = dist.broadcast(dense, src=self.owner[param], async_op=True)
            sent.append((param, dense, work))
        for param, dense, work in sent:
            work.wait()
            param.copy_(dense)

    def zero_grad(self):
        for param in self.params:
            param.grad = None


# %% mistake: in_turn
# You deal the parameters out in turn. Large and small ones often alternate, so one rank gets all
# the large ones. Count elements, not parameters.
class ZeroOptimizer:
    def __init__(self, params, make):
        self.params = list(params)
        self.owner = {}
        for number, param in enumerate(self.params):
            self.owner[param] = number % dist.get_world_size()
        own = [param for param in self.params if self.owner[param] == dist.get_rank()]
        self.optimizer = make(own) if own else None

    @torch.no_grad()
    def step(self):
        if self.optimizer is not None:
            self.optimizer.step()
        sent = []
        for param in self.params:
            dense = param.contiguous()
            work = dist.broadcast(dense, src=self.owner[param], async_op=True)
            sent.append((param, dense, work))
        for param, dense, work in sent:
            work.wait()
            param.copy_(dense)

    def zero_grad(self):
        for param in self.params:
            param.grad = None


# %% mistake: runs_of_equal_length
# Each rank gets a run of parameters, as many as the others. Their sizes differ: count elements.
class ZeroOptimizer:
    def __init__(self, params, make):
        self.params = list(params)
        self.owner = {}
        for number, param in enumerate(self.params):
            self.owner[param] = number * dist.get_world_size() // len(self.params)
        own = [param for param in self.params if self.owner[param] == dist.get_rank()]
        self.optimizer = make(own) if own else None

    @torch.no_grad()
    def step(self):
        if self.optimizer is not None:
            self.optimizer.step()
        sent = []
        for param in self.params:
            dense = param.contiguous()
            work = dist.broadcast(dense, src=self.owner[param], async_op=True)
            sent.append((param, dense, work))
        for param, dense, work in sent:
            work.wait()
            param.copy_(dense)

    def zero_grad(self):
        for param in self.params:
            param.grad = None


# %% mistake: no_broadcast
# Each rank steps its own parameters and tells nobody. The ranks drift apart: after the step, the
# owner has to send.
class ZeroOptimizer:
    def __init__(self, params, make):
        self.params = list(params)
        elements = [0] * dist.get_world_size()
        self.owner = {}
        for param in sorted(self.params, key=torch.Tensor.numel, reverse=True):
            poorest = elements.index(min(elements))
            self.owner[param] = poorest
            elements[poorest] += param.numel()
        own = [param for param in self.params if self.owner[param] == dist.get_rank()]
        self.optimizer = make(own) if own else None

    @torch.no_grad()
    def step(self):
        if self.optimizer is not None:
            self.optimizer.step()
        sent = []
        for param, dense, work in sent:
            work.wait()
            param.copy_(dense)

    def zero_grad(self):
        for param in self.params:
            param.grad = None


# %% mistake: broadcast_from_0
# You send everything from rank 0. It has the new values of its own parameters only, and overwrites
# what the other owners computed.
class ZeroOptimizer:
    def __init__(self, params, make):
        self.params = list(params)
        elements = [0] * dist.get_world_size()
        self.owner = {}
        for param in sorted(self.params, key=torch.Tensor.numel, reverse=True):
            poorest = elements.index(min(elements))
            self.owner[param] = poorest
            elements[poorest] += param.numel()
        own = [param for param in self.params if self.owner[param] == dist.get_rank()]
        self.optimizer = make(own) if own else None

    @torch.no_grad()
    def step(self):
        if self.optimizer is not None:
            self.optimizer.step()
        sent = []
        for param in self.params:
            dense = param.contiguous()
            work = dist.broadcast(dense, src=0, async_op=True)
            sent.append((param, dense, work))
        for param, dense, work in sent:
            work.wait()
            param.copy_(dense)

    def zero_grad(self):
        for param in self.params:
            param.grad = None


# %% mistake: mean_of_parameters
# You average the parameters. Only the owner has made a step: the mean mixes its new value with the
# others' old ones.
class ZeroOptimizer:
    def __init__(self, params, make):
        self.params = list(params)
        elements = [0] * dist.get_world_size()
        self.owner = {}
        for param in sorted(self.params, key=torch.Tensor.numel, reverse=True):
            poorest = elements.index(min(elements))
            self.owner[param] = poorest
            elements[poorest] += param.numel()
        own = [param for param in self.params if self.owner[param] == dist.get_rank()]
        self.optimizer = make(own) if own else None

    @torch.no_grad()
    def step(self):
        if self.optimizer is not None:
            self.optimizer.step()
        sent = []
        for param in self.params:
            dense = param.contiguous()
            work = dist.all_reduce(dense, async_op=True)
            sent.append((param, dense, work))
        for param, dense, work in sent:
            work.wait()
            param.copy_(dense / dist.get_world_size())

    def zero_grad(self):
        for param in self.params:
            param.grad = None


# %% mistake: averages_gradients_again
# You all-reduce the gradients once more before the step, as sums. They were averaged already: the
# step is too large, or at best it costs twice the traffic.
class ZeroOptimizer:
    def __init__(self, params, make):
        self.params = list(params)
        elements = [0] * dist.get_world_size()
        self.owner = {}
        for param in sorted(self.params, key=torch.Tensor.numel, reverse=True):
            poorest = elements.index(min(elements))
            self.owner[param] = poorest
            elements[poorest] += param.numel()
        own = [param for param in self.params if self.owner[param] == dist.get_rank()]
        self.optimizer = make(own) if own else None

    @torch.no_grad()
    def step(self):
        for param in self.params:
            if param.grad is not None:
                grad = param.grad.contiguous()
                dist.all_reduce(grad)
                param.grad.copy_(grad)
        if self.optimizer is not None:
            self.optimizer.step()
        sent = []
        for param in self.params:
            dense = param.contiguous()
            work = dist.broadcast(dense, src=self.owner[param], async_op=True)
            sent.append((param, dense, work))
        for param, dense, work in sent:
            work.wait()
            param.copy_(dense)

    def zero_grad(self):
        for param in self.params:
            param.grad = None


# %% mistake: means_again
# You average the gradients again. The mean of equal numbers is the same number, so nothing changes
# but the traffic, which is twice what it must be.
class ZeroOptimizer:
    def __init__(self, params, make):
        self.params = list(params)
        elements = [0] * dist.get_world_size()
        self.owner = {}
        for param in sorted(self.params, key=torch.Tensor.numel, reverse=True):
            poorest = elements.index(min(elements))
            self.owner[param] = poorest
            elements[poorest] += param.numel()
        own = [param for param in self.params if self.owner[param] == dist.get_rank()]
        self.optimizer = make(own) if own else None

    @torch.no_grad()
    def step(self):
        for param in self.params:
            if param.grad is not None:
                grad = param.grad.contiguous()
                dist.all_reduce(grad)
                param.grad.copy_(grad / dist.get_world_size())
        if self.optimizer is not None:
            self.optimizer.step()
        sent = []
        for param in self.params:
            dense = param.contiguous()
            work = dist.broadcast(dense, src=self.owner[param], async_op=True)
            sent.append((param, dense, work))
        for param, dense, work in sent:
            work.wait()
            param.copy_(dense)

    def zero_grad(self):
        for param in self.params:
            param.grad = None


# %% mistake: clears_own_only
# Your `zero_grad` clears the gradients of your own parameters. Those of the others stay, and the
# next backward adds to them: the mean that all ranks receive is wrong from the second step on.
class ZeroOptimizer:
    def __init__(self, params, make):
        self.params = list(params)
        elements = [0] * dist.get_world_size()
        self.owner = {}
        for param in sorted(self.params, key=torch.Tensor.numel, reverse=True):
            poorest = elements.index(min(elements))
            self.owner[param] = poorest
            elements[poorest] += param.numel()
        own = [param for param in self.params if self.owner[param] == dist.get_rank()]
        self.optimizer = make(own) if own else None

    @torch.no_grad()
    def step(self):
        if self.optimizer is not None:
            self.optimizer.step()
        sent = []
        for param in self.params:
            dense = param.contiguous()
            work = dist.broadcast(dense, src=self.owner[param], async_op=True)
            sent.append((param, dense, work))
        for param, dense, work in sent:
            work.wait()
            param.copy_(dense)

    def zero_grad(self):
        for param in [p for p in self.params if self.owner[p] == dist.get_rank()]:
            param.grad = None


# %% mistake: optimizer_of_nothing
# Where there are more ranks than parameters, one rank owns nothing, and a torch optimizer refuses
# an empty list. That rank has nothing to step. It still has to receive.
class ZeroOptimizer:
    def __init__(self, params, make):
        self.params = list(params)
        elements = [0] * dist.get_world_size()
        self.owner = {}
        for param in sorted(self.params, key=torch.Tensor.numel, reverse=True):
            poorest = elements.index(min(elements))
            self.owner[param] = poorest
            elements[poorest] += param.numel()
        own = [param for param in self.params if self.owner[param] == dist.get_rank()]
        self.optimizer = make(own)

    @torch.no_grad()
    def step(self):
        if self.optimizer is not None:
            self.optimizer.step()
        sent = []
        for param in self.params:
            dense = param.contiguous()
            work = dist.broadcast(dense, src=self.owner[param], async_op=True)
            sent.append((param, dense, work))
        for param, dense, work in sent:
            work.wait()
            param.copy_(dense)

    def zero_grad(self):
        for param in self.params:
            param.grad = None


# %% mistake: generator_read_twice
# You go through `params` twice. `model.parameters()` is a generator: the second time it is empty.
# Make a list first.
class ZeroOptimizer:
    def __init__(self, params, make):
        self.params = params
        elements = [0] * dist.get_world_size()
        self.owner = {}
        for param in sorted(self.params, key=torch.Tensor.numel, reverse=True):
            poorest = elements.index(min(elements))
            self.owner[param] = poorest
            elements[poorest] += param.numel()
        own = [param for param in params if self.owner[param] == dist.get_rank()]
        self.optimizer = make(own) if own else None

    @torch.no_grad()
    def step(self):
        if self.optimizer is not None:
            self.optimizer.step()
        sent = []
        for param in self.params:
            dense = param.contiguous()
            work = dist.broadcast(dense, src=self.owner[param], async_op=True)
            sent.append((param, dense, work))
        for param, dense, work in sent:
            work.wait()
            param.copy_(dense)

    def zero_grad(self):
        for param in self.params:
            param.grad = None


# %% mistake: expects_contiguous
# You send the parameter itself. Where its elements have gaps between them, gloo sends and receives
# the wrong bytes, and does not say so. Send a contiguous copy, and copy back what came.
class ZeroOptimizer:
    def __init__(self, params, make):
        self.params = list(params)
        elements = [0] * dist.get_world_size()
        self.owner = {}
        for param in sorted(self.params, key=torch.Tensor.numel, reverse=True):
            poorest = elements.index(min(elements))
            self.owner[param] = poorest
            elements[poorest] += param.numel()
        own = [param for param in self.params if self.owner[param] == dist.get_rank()]
        self.optimizer = make(own) if own else None

    @torch.no_grad()
    def step(self):
        if self.optimizer is not None:
            self.optimizer.step()
        sent = []
        for param in self.params:
            dense = param.data
            work = dist.broadcast(dense, src=self.owner[param], async_op=True)
            sent.append((param, dense, work))
        for param, dense, work in sent:
            work.wait()
            param.copy_(dense)

    def zero_grad(self):
        for param in self.params:
            param.grad = None


# %% mistake: copy_is_dropped
# You send `contiguous()` of a parameter, and where that is a copy, what arrives stays in the copy.
# Write it into the parameter.
class ZeroOptimizer:
    def __init__(self, params, make):
        self.params = list(params)
        elements = [0] * dist.get_world_size()
        self.owner = {}
        for param in sorted(self.params, key=torch.Tensor.numel, reverse=True):
            poorest = elements.index(min(elements))
            self.owner[param] = poorest
            elements[poorest] += param.numel()
        own = [param for param in self.params if self.owner[param] == dist.get_rank()]
        self.optimizer = make(own) if own else None

    @torch.no_grad()
    def step(self):
        if self.optimizer is not None:
            self.optimizer.step()
        sent = []
        for param in self.params:
            dense = param.contiguous()
            work = dist.broadcast(dense, src=self.owner[param], async_op=True)
            sent.append((param, dense, work))
        for param, dense, work in sent:
            work.wait()

    def zero_grad(self):
        for param in self.params:
            param.grad = None


# %% mistake: steps_without_gradient
# You put zeros where a gradient is missing. Weight decay and momentum move a parameter then. Leave
# `None` as it is.
class ZeroOptimizer:
    def __init__(self, params, make):
        self.params = list(params)
        elements = [0] * dist.get_world_size()
        self.owner = {}
        for param in sorted(self.params, key=torch.Tensor.numel, reverse=True):
            poorest = elements.index(min(elements))
            self.owner[param] = poorest
            elements[poorest] += param.numel()
        own = [param for param in self.params if self.owner[param] == dist.get_rank()]
        self.optimizer = make(own) if own else None

    @torch.no_grad()
    def step(self):
        for param in self.params:
            if param.grad is None:
                param.grad = torch.zeros_like(param)
        if self.optimizer is not None:
            self.optimizer.step()
        sent = []
        for param in self.params:
            dense = param.contiguous()
            work = dist.broadcast(dense, src=self.owner[param], async_op=True)
            sent.append((param, dense, work))
        for param, dense, work in sent:
            work.wait()
            param.copy_(dense)

    def zero_grad(self):
        for param in self.params:
            param.grad = None


# %% alternate: a_slice_of_each
# Every rank owns a slice of every parameter, and the slices are gathered.
class ZeroOptimizer:
    def __init__(self, params, make):
        self.params = list(params)
        self.ranks, self.rank = (dist.get_world_size(), dist.get_rank())
        self.slices = [nn.Parameter(self.own(p.detach())) for p in self.params]
        real = [s for s in self.slices if s.numel()]
        self.inner = make(real) if real else None

    def bounds(self, count):
        return [count * r // self.ranks for r in range(self.ranks + 1)]

    def own(self, tensor):
        low, high = self.bounds(tensor.numel())[self.rank : self.rank + 2]
        return tensor.flatten()[low:high].clone()

    def step(self):
        for p, s in zip(self.params, self.slices):
            s.grad = None if p.grad is None else self.own(p.grad)
        if self.inner:
            self.inner.step()
        for p, s in zip(self.params, self.slices):
            edges = self.bounds(p.numel())
            longest = max((b - a for a, b in zip(edges, edges[1:])))
            padded = torch.zeros(longest, dtype=p.dtype)
            padded[: s.numel()] = s.detach()
            parts = [torch.empty_like(padded) for _ in range(self.ranks)]
            dist.all_gather(parts, padded)
            whole = torch.cat([x[: b - a] for x, a, b in zip(parts, edges, edges[1:])])
            with torch.no_grad():
                p.copy_(whole.view(p.shape))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


# %% alternate: cuts_by_cumulative_size
# Runs of parameters, cut where the elements so far pass the next fair part; one flat broadcast per
# owner and dtype.
class ZeroOptimizer:
    def __init__(self, params, make):
        self.params = [*params]
        total = sum((p.numel() for p in self.params)) or 1
        self.groups = {}
        done = 0
        for p in self.params:
            owner = min(done * dist.get_world_size() // total, dist.get_world_size() - 1)
            self.groups.setdefault((owner, p.dtype), []).append(p)
            done += p.numel()
        mine = [p for (owner, _), g in self.groups.items() if owner == dist.get_rank() for p in g]
        self.step_mine = make(mine).step if mine else lambda: None

    def step(self):
        self.step_mine()
        with torch.no_grad():
            for (owner, _), group in self.groups.items():
                flat = torch.cat([p.reshape(-1) for p in group])
                dist.broadcast(flat, owner)
                for p, piece in zip(group, flat.split([p.numel() for p in group])):
                    p.copy_(piece.reshape(p.shape))

    def zero_grad(self):
        for p in self.params:
            p.grad = None
