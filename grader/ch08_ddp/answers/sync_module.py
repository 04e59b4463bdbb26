# %% blocked: ddp_does_it
# DDP sends rank 0's tensors when it is made. Here you do what it does.
def sync_module(module, source=0):
    torch.nn.parallel.DistributedDataParallel(module)


# %% mistake: parameters_only
# You send the parameters. Buffers are part of the model too: running statistics that differ among ranks give
# different results from the same weights.
def sync_module(module, source=0):
    mine = [(n, tuple(t.shape), str(t.dtype)) for n, t in module.named_parameters()]
    mine += [(n, tuple(t.shape), str(t.dtype)) for n, t in module.named_buffers()]
    everybodys = [None] * dist.get_world_size()
    dist.all_gather_object(everybodys, mine)
    if any(theirs != everybodys[0] for theirs in everybodys):
        raise ValueError("the ranks' modules differ")
    with torch.no_grad():
        for tensor in module.parameters():
            sent = tensor.clone(memory_format=torch.contiguous_format)
            dist.broadcast(sent, source)
            tensor.copy_(sent)


# %% mistake: by_state_dict
# You send what `state_dict` lists. It leaves out buffers that are not saved, and lists a tensor of two names twice.
def sync_module(module, source=0):
    mine = [(n, tuple(t.shape), str(t.dtype)) for n, t in module.state_dict().items()]
    everybodys = [None] * dist.get_world_size()
    dist.all_gather_object(everybodys, mine)
    if any(theirs != everybodys[0] for theirs in everybodys):
        raise ValueError("the ranks' modules differ")
    with torch.no_grad():
        for tensor in module.state_dict().values():
            sent = tensor.clone(memory_format=torch.contiguous_format)
            dist.broadcast(sent, source)
            tensor.copy_(sent)


# %% mistake: sends_in_place
# You hand each tensor to `broadcast` as it is. That moves memory from its first byte on and knows no strides: a
# tensor that is stored by columns, or with gaps, receives the right numbers in the wrong places.
def sync_module(module, source=0):
    tensors = [*module.named_parameters(), *module.named_buffers()]
    mine = [(n, tuple(t.shape), str(t.dtype)) for n, t in tensors]
    everybodys = [None] * dist.get_world_size()
    dist.all_gather_object(everybodys, mine)
    if any(theirs != everybodys[0] for theirs in everybodys):
        raise ValueError("the ranks' modules differ")
    for _, tensor in tensors:
        dist.broadcast(tensor.detach(), source)


# %% mistake: clones_with_strides
# You copy a tensor before you send it, and `clone` keeps its strides where it can. So it is sent by columns from one
# rank and read by rows on the other. Ask for a contiguous copy.
def sync_module(module, source=0):
    tensors = [*module.named_parameters(), *module.named_buffers()]
    mine = [(n, tuple(t.shape), str(t.dtype)) for n, t in tensors]
    everybodys = [None] * dist.get_world_size()
    dist.all_gather_object(everybodys, mine)
    if any(theirs != everybodys[0] for theirs in everybodys):
        raise ValueError("the ranks' modules differ")
    with torch.no_grad():
        for _, tensor in tensors:
            sent = tensor.clone()
            dist.broadcast(sent, source)
            tensor.copy_(sent)


# %% mistake: takes_new_tensors
# You give each tensor new memory through `.data`. An optimizer sees it, but the strides are no longer the rank's own.
# Copy into what is there.
def sync_module(module, source=0):
    tensors = [*module.named_parameters(), *module.named_buffers()]
    mine = [(n, tuple(t.shape), str(t.dtype)) for n, t in tensors]
    everybodys = [None] * dist.get_world_size()
    dist.all_gather_object(everybodys, mine)
    if any(theirs != everybodys[0] for theirs in everybodys):
        raise ValueError("the ranks' modules differ")
    for _, tensor in tensors:
        sent = tensor.detach().clone(memory_format=torch.contiguous_format)
        dist.broadcast(sent, source)
        tensor.data = sent


# %% mistake: from_rank_0
# You send rank 0's tensors whatever `source` says.
def sync_module(module, source=0):
    tensors = [*module.named_parameters(), *module.named_buffers()]
    mine = [(n, tuple(t.shape), str(t.dtype)) for n, t in tensors]
    everybodys = [None] * dist.get_world_size()
    dist.all_gather_object(everybodys, mine)
    if any(theirs != everybodys[0] for theirs in everybodys):
        raise ValueError("the ranks' modules differ")
    with torch.no_grad():
        for _, tensor in tensors:
            sent = tensor.clone(memory_format=torch.contiguous_format)
            dist.broadcast(sent, 0)
            tensor.copy_(sent)


# %% mistake: each_judges_by_itself
# Each rank compares itself with its left neighbour only. A rank whose neighbour is like itself goes on, and waits
# for those that raised. All must decide from the same facts.
def sync_module(module, source=0):
    tensors = [*module.named_parameters(), *module.named_buffers()]
    mine = [(n, tuple(t.shape), str(t.dtype)) for n, t in tensors]
    everybodys = [None] * dist.get_world_size()
    dist.all_gather_object(everybodys, mine)
    if everybodys[dist.get_rank() - 1] != mine:
        raise ValueError("the ranks' modules differ")
    with torch.no_grad():
        for _, tensor in tensors:
            sent = tensor.clone(memory_format=torch.contiguous_format)
            dist.broadcast(sent, source)
            tensor.copy_(sent)


# %% alternate: bytes_in_sorted_order
# Descriptions are compared as text, and what is sent are bytes.
def sync_module(module, source=0):
    tensors = dict([*module.named_buffers(), *module.named_parameters()])
    mine = sorted(f"{n} {list(t.shape)} {t.dtype}" for n, t in tensors.items())
    everybodys = [None] * dist.get_world_size()
    dist.all_gather_object(everybodys, "\n".join(mine))
    if len(set(everybodys)) > 1:
        raise ValueError(everybodys)
    for name in sorted(tensors):
        sent = tensors[name].detach().contiguous()
        if sent is tensors[name] or sent.data_ptr() == tensors[name].data_ptr():
            sent = sent.clone()
        dist.broadcast(sent.view(-1).view(torch.uint8) if sent.numel() else sent, source)
        tensors[name].detach().copy_(sent)


# %% alternate: one_sum_for_each_dtype
# All of a dtype in one flat tensor; who is not the source brings zeros, and the sum is the source's.
def sync_module(module, source=0):
    tensors = [*module.named_parameters(), *module.named_buffers()]
    mine = tuple((n, t.shape, t.dtype) for n, t in tensors)
    everybodys = [None] * dist.get_world_size()
    dist.all_gather_object(everybodys, mine)
    if len(set(everybodys)) > 1:
        raise ValueError("modules differ")
    by_dtype = {}
    for _, t in tensors:
        by_dtype.setdefault(t.dtype, []).append(t.detach())
    for dtype, parts in by_dtype.items():
        flat = torch.cat([part.reshape(-1) for part in parts])
        if dtype is torch.bool:
            flat = flat.to(torch.uint8)
        if dist.get_rank() != source:
            flat.zero_()
        dist.all_reduce(flat)
        for part, values in zip(parts, flat.split([part.numel() for part in parts]), strict=True):
            part.copy_(values.view(part.shape))
