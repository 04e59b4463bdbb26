# %% blocked: builtin_ddp
# The built-in is what you are asked to build.
def MiniDDP(module, bucket_bytes):
    return nn.parallel.DistributedDataParallel(module, bucket_cap_mb=bucket_bytes / 2**20)


# %% mistake: sums
# Your gradients are sums. All-reduce adds; divide by the number of ranks.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += flat.split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape)
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.averages = self.talks
            if self.talks:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before


# %% mistake: waits_in_the_hook
# Your hook waits for its all-reduce, so backward stands still while a bucket is on the way. The
# values are right and nothing overlaps. Begin it with `async_op=True` in the hook, and wait at the
# end of backward.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        work = dist.all_reduce(flat, async_op=True)
        work.wait()
        self.sent.append((flat, work))

    @torch.no_grad()
    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape)
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.averages = self.talks
            if self.talks:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before


# %% mistake: one_way_at_a_time
# Before a bucket leaves, you wait for the one before it. Backward stands still in that hook. Keep
# all the works, and wait for them at the end.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        if self.sent:
            self.sent[-1][1].wait()
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape)
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.averages = self.talks
            if self.talks:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before


# %% mistake: all_at_the_end
# All your buckets leave when backward is over. Then the network rests while you compute, and you
# rest while it sends. Send a bucket when its last gradient has come.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1

    def send(self):
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape)
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.averages = self.talks
            if self.talks:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before


# %% mistake: a_message_per_parameter
# You send each parameter by itself. Each message costs its own latency, and small ones cost little
# else: that is what buckets are for.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or True:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape)
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.averages = self.talks
            if self.talks:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before


# %% mistake: one_bucket
# You have one bucket for each run of equal dtypes, whatever `bucket_bytes` says. It is full only
# when backward is over, and then nothing is left to overlap with.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or False:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape)
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.averages = self.talks
            if self.talks:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before


# %% mistake: first_parameter_first
# Your buckets are in the order of `parameters()`. Backward comes from the other end: your first
# bucket is full last, and all others wait for it.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None
        for parameter in module.parameters():
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape)
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.averages = self.talks
            if self.talks:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before


# %% mistake: leaves_when_full
# Your buckets leave in the order in which they are full. If another rank has another order, the
# first message of one meets the first of the other, and different parameters are added up. Let each
# bucket wait for those before it.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            return
        if not self.begun:
            self.begun = True
            self.sent = [None] * len(self.buckets)
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        if self.missing[number] == 0:
            self.send(number)

    def send(self, number):
        bucket = self.buckets[number]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent[number] = (flat, dist.all_reduce(flat, async_op=True))

    @torch.no_grad()
    def finish(self):
        for number, one in enumerate(self.sent):
            if one is None:
                self.send(number)
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape)
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.averages = self.talks
            if self.talks:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before


# %% mistake: hears_every_backward
# Your hooks act in every backward, also in one whose forward went past you. Note in `forward` that
# a backward will be averaged, and forget it when that is done.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = True
        self.begun = False
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape)
        self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.averages = self.talks
            if self.talks:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before


# %% mistake: unused_are_forgotten
# You average only what fills its bucket. A bucket with a parameter that the loss does not use stays
# where it is, and so do all buckets behind it. At the end of backward send what is left, with zeros
# for what is missing.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        pass
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape)
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.averages = self.talks
            if self.talks:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before


# %% mistake: zeros_for_all
# A parameter that no rank used gets a gradient of zeros from you. An optimizer with momentum or
# weight decay moves it then. Agree on what was used, and leave `None` where nothing was.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if True:
                parameter.grad = piece.view(parameter.shape)
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.averages = self.talks
            if self.talks:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before


# %% mistake: own_use_only
# You give the mean only to parameters that this rank itself used. The others had gradients for
# them, and now the copies drift apart.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape)
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.averages = self.talks
            if self.talks:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before


# %% mistake: starts_apart
# You never copy the parameters of rank 0. Means of gradients keep equal copies equal; they do not
# make different ones alike.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        pass
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape)
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.averages = self.talks
            if self.talks:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before


# %% mistake: parameters_only
# At the start you copy parameters and no buffers. A running mean that differs shows as soon as one
# rank evaluates.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        self.take_from_rank_0(module.parameters())
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape)
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.averages = self.talks
            if self.talks:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before


# %% mistake: buffers_at_the_start_only
# You copy the buffers once. Every rank sees other data, so the running statistics differ after one
# step. Take those of rank 0 before each forward that will be averaged.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape)
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.averages = self.talks
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before


# %% mistake: buffers_in_every_forward
# You copy buffers in every forward. Under `no_sync` and under `no_grad` nobody should talk: a rank
# that evaluates alone waits for ever.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape)
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        self.take_from_rank_0(self.module.buffers())
        if torch.is_grad_enabled():
            self.averages = self.talks
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before


# %% mistake: backward_decides
# You ask in the hook whether `no_sync` is on. What counts is where the forward ran: note it there,
# for the backward to come.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.talks:
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape)
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.averages = self.talks
            if self.talks:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before


# %% mistake: no_grad_forward_counts
# Your forward under `no_grad` changes what the next backward does. Nothing is recorded there, so no
# backward belongs to it.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape)
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        self.averages = self.talks and torch.is_grad_enabled()
        if True:
            if self.averages:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before


# %% mistake: no_sync_sticks
# When the body of `no_sync` raises, your model stays silent for ever. Put the old value back in a
# `finally`.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape)
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.averages = self.talks
            if self.talks:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        yield
        self.talks = before


# %% mistake: adds_up_averages
# You average what came in this backward and add it to what is in `.grad`. Gradients collected under
# `no_sync` stay different on each rank. Send `.grad` as a whole.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            self.own = getattr(self, "own", {})
            self.own[parameter] = parameter.grad.clone()
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        own = getattr(self, "own", {})
        parts = [part - own[p] if p in own else part for p, part in zip(bucket, parts)]
        flat = torch.cat([part.reshape(-1) for part in parts])
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                parameter.grad = piece.view(parameter.shape) + getattr(self, "own", {}).pop(
                    parameter, 0
                )
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.averages = self.talks
            if self.talks:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before


# %% alternate: flat_buffers_and_graph_walk
# Buckets have tensors of their own; what the loss does not use is found by a walk over the graph.
class MiniDDP(nn.Module):
    def __init__(self, module, bucket_bytes):
        super().__init__()
        self.module = module
        self.quiet = 0
        self.plan = None
        for tensor in list(module.parameters()) + list(module.buffers()):
            copy = tensor.detach().clone(memory_format=torch.contiguous_format)
            dist.broadcast(copy, 0)
            tensor.data.copy_(copy)
        self.home, buckets = ({}, [])
        for p in list(module.parameters())[::-1]:
            if p.requires_grad:
                last = buckets[-1] if buckets else None
                if (
                    last is None
                    or last[0].dtype != p.dtype
                    or sum((q.nbytes for q in last)) + p.nbytes > bucket_bytes
                ):
                    buckets.append([])
                buckets[-1].append(p)
        self.buckets = buckets
        self.flat = [torch.zeros(sum((p.numel() for p in b)), dtype=b[0].dtype) for b in buckets]
        for index, bucket in enumerate(buckets):
            views = self.flat[index].split([p.numel() for p in bucket])
            for p, view in zip(bucket, views):
                self.home[p] = (index, view)
                p.register_post_accumulate_grad_hook(self.ready)

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.plan = None
            if not self.quiet:
                for buffer in self.module.buffers():
                    copy = buffer.contiguous()
                    dist.broadcast(copy, 0)
                    buffer.copy_(copy)
                self.plan = {"waiting": set(self.home), "works": [], "started": False}
        return self.module(*args, **kwargs)

    def ready(self, p):
        plan = self.plan
        if plan is None:
            return
        if not plan["started"]:
            plan["started"] = True
            torch.autograd.Variable._execution_engine.queue_callback(self.end)
        plan["waiting"].discard(p)
        self.go()

    def go(self):
        plan = self.plan
        while len(plan["works"]) < len(self.buckets):
            index = len(plan["works"])
            if any((p in plan["waiting"] for p in self.buckets[index])):
                return
            for p in self.buckets[index]:
                view = self.home[p][1]
                view.zero_() if p.grad is None else view.copy_(p.grad.detach().flatten())
            self.flat[index] /= dist.get_world_size()
            plan["works"].append(dist.all_reduce(self.flat[index], async_op=True))

    def end(self):
        plan = self.plan
        plan["waiting"].clear()
        self.go()
        flags = torch.tensor([int(p.grad is not None) for p in self.home])
        dist.all_reduce(flags)
        for work in plan["works"]:
            work.wait()
        for flag, p in zip(flags, self.home):
            if flag:
                p.grad = self.home[p][1].clone().reshape_as(p)
        self.plan = None

    @contextmanager
    def no_sync(self):
        self.quiet += 1
        try:
            yield
        finally:
            self.quiet -= 1


# %% alternate: waits_in_the_last_hook
# Means are computed when the last bucket has come, in the callback, from a dict by bucket;
# gradients are written in place.
class MiniDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int):
        super().__init__()
        self.module = module
        self.talks = True
        self.averages = False
        self.begun = False
        self.take_from_rank_0([*module.parameters(), *module.buffers()])
        self.buckets = []
        room = dtype = None
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            size = parameter.numel() * parameter.element_size()
            if parameter.dtype is not dtype or size > room:
                self.buckets.append([])
                room, dtype = (bucket_bytes, parameter.dtype)
            self.buckets[-1].append(parameter)
            room -= size
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, number))

    @torch.no_grad()
    def take_from_rank_0(self, tensors):
        for tensor in tensors:
            dense = tensor.contiguous()
            dist.broadcast(dense, src=0)
            tensor.copy_(dense)

    def arrived(self, number, parameter):
        if not self.averages:
            return
        if not self.begun:
            self.begun = True
            self.sent = []
            self.missing = [len(bucket) for bucket in self.buckets]
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.missing[number] -= 1
        while len(self.sent) < len(self.buckets) and self.missing[len(self.sent)] == 0:
            self.send()

    def send(self):
        bucket = self.buckets[len(self.sent)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.empty(sum((p.numel() for p in parts)), dtype=parts[0].dtype)
        torch.cat([part.flatten() for part in parts], out=flat)
        self.sent.append((flat, dist.all_reduce(flat, async_op=True)))

    @torch.no_grad()
    def finish(self):
        while len(self.sent) < len(self.buckets):
            self.send()
        order = [parameter for bucket in self.buckets for parameter in bucket]
        used = torch.tensor([p.grad is not None for p in order], dtype=torch.float32)
        dist.all_reduce(used)
        pieces = []
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            pieces += (flat / dist.get_world_size()).split([p.numel() for p in bucket])
        for parameter, piece, somewhere in zip(order, pieces, used.tolist(), strict=True):
            if somewhere:
                if parameter.grad is None:
                    parameter.grad = torch.empty_like(parameter)
                parameter.grad.copy_(piece.view(parameter.shape))
        self.averages = self.begun = False

    def forward(self, *args, **kwargs):
        if torch.is_grad_enabled():
            self.averages = self.talks
            if self.talks:
                self.take_from_rank_0(self.module.buffers())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.talks = (self.talks, False)
        try:
            yield
        finally:
            self.talks = before
