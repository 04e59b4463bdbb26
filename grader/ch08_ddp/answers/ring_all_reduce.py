# %% blocked: built_in
# That is the finished one.
def ring_all_reduce(x):
    total = x.contiguous().clone()
    dist.all_reduce(total)
    return total


# %% mistake: blocking_sends
# All ranks call `send` before anyone calls `recv`. `send` returns when the other side has asked for the data, so all of
# them wait. Start both with `isend` and `irecv`, then wait.
def ring_all_reduce(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    flat = x.clone(memory_format=torch.contiguous_format).view(-1)
    pieces = flat.tensor_split(n)
    for step in range(n - 1):
        piece = pieces[(rank - step - 1) % n]
        arriving = torch.empty_like(piece)
        dist.send(pieces[(rank - step) % n], (rank + 1) % n)
        dist.recv(arriving, (rank - 1) % n)
        piece += arriving
    for step in range(n - 1):
        dist.send(pieces[(rank + 1 - step) % n], (rank + 1) % n)
        dist.recv(pieces[(rank - step) % n], (rank - 1) % n)
    return flat.view(x.shape)


# %% mistake: whole_tensor_around
# You pass whole tensors round the ring. The sum is right, but each rank sends n - 1 tensors instead of less than two,
# and adds in an order of its own: floats differ in their last bits.
def ring_all_reduce(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    total = x.clone(memory_format=torch.contiguous_format)
    passing = total.clone()
    for _ in range(n - 1):
        arriving = torch.empty_like(passing)
        requests = [dist.isend(passing, (rank + 1) % n), dist.irecv(arriving, (rank - 1) % n)]
        for request in requests:
            request.wait()
        total += arriving
        passing = arriving
    return total


# %% mistake: over_rank_0
# You send everything to rank 0, which adds up and sends the sum to all. Its connection carries the tensor of every rank,
# twice, and the others wait meanwhile.
def ring_all_reduce(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    total = x.clone(memory_format=torch.contiguous_format)
    if rank == 0:
        for other in range(1, n):
            arriving = torch.empty_like(total)
            dist.recv(arriving, other)
            total += arriving
        for other in range(1, n):
            dist.send(total, other)
    else:
        dist.send(total, 0)
        dist.recv(total, 0)
    return total


# %% mistake: each_to_each
# You send each piece to the rank that adds it up, and it sends the sum to all. The bytes are the same as in a ring, but
# every rank talks to every other: n (n - 1) connections, where a ring has n.
def ring_all_reduce(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    flat = x.clone(memory_format=torch.contiguous_format).view(-1)
    pieces = flat.tensor_split(n)
    others = [other for other in range(n) if other != rank]
    arriving = {other: torch.empty_like(pieces[rank]) for other in others}
    requests = [dist.isend(pieces[other], other) for other in others]
    requests += [dist.irecv(arriving[other], other) for other in others]
    for request in requests:
        request.wait()
    for part in arriving.values():
        pieces[rank].add_(part)
    requests = [dist.isend(pieces[rank], other) for other in others]
    requests += [dist.irecv(pieces[other], other) for other in others]
    for request in requests:
        request.wait()
    return flat.view(x.shape)


# %% mistake: drops_the_rest
# You cut n pieces of equal length and lose what is left over when n does not divide the number of elements.
def ring_all_reduce(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    flat = x.clone(memory_format=torch.contiguous_format).view(-1)
    size = flat.numel() // n
    pieces = [flat[i * size : (i + 1) * size] for i in range(n)]

    def exchange(sent, received):
        requests = [
            dist.isend(pieces[sent % n], (rank + 1) % n),
            dist.irecv(received, (rank - 1) % n),
        ]
        for request in requests:
            request.wait()

    for step in range(n - 1):
        piece = pieces[(rank - step - 1) % n]
        arriving = torch.empty_like(piece)
        exchange(rank - step, arriving)
        piece += arriving
    for step in range(n - 1):
        exchange(rank + 1 - step, pieces[(rank - step) % n])
    return flat.view(x.shape)


# %% mistake: half_way
# You stop after the first half. Each rank has one finished piece then, and parts of sums in the others. They still have
# to go round.
def ring_all_reduce(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    flat = x.clone(memory_format=torch.contiguous_format).view(-1)
    pieces = flat.tensor_split(n)
    for step in range(n - 1):
        piece = pieces[(rank - step - 1) % n]
        arriving = torch.empty_like(piece)
        requests = [
            dist.isend(pieces[(rank - step) % n], (rank + 1) % n),
            dist.irecv(arriving, (rank - 1) % n),
        ]
        for request in requests:
            request.wait()
        piece += arriving
    return flat.view(x.shape)


# %% mistake: adds_again
# In the second half you add what arrives as well. Those pieces are finished: they replace what is there.
def ring_all_reduce(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    flat = x.clone(memory_format=torch.contiguous_format).view(-1)
    pieces = flat.tensor_split(n)
    for step in range(2 * (n - 1)):
        piece = pieces[(rank - step - 1) % n]
        arriving = torch.empty_like(piece)
        requests = [
            dist.isend(pieces[(rank - step) % n], (rank + 1) % n),
            dist.irecv(arriving, (rank - 1) % n),
        ]
        for request in requests:
            request.wait()
        piece += arriving
    return flat.view(x.shape)


# %% mistake: adds_to_x
# `reshape` gives a view where it can, so your sums are written into `x`. Copy first.
def ring_all_reduce(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    flat = x.reshape(-1)
    pieces = flat.tensor_split(n)

    def exchange(sent, received):
        requests = [
            dist.isend(pieces[sent % n].contiguous(), (rank + 1) % n),
            dist.irecv(received, (rank - 1) % n),
        ]
        for request in requests:
            request.wait()

    for step in range(n - 1):
        piece = pieces[(rank - step - 1) % n]
        arriving = torch.empty_like(piece)
        exchange(rank - step, arriving)
        piece += arriving
    for step in range(n - 1):
        exchange(rank + 1 - step, pieces[(rank - step) % n])
    return flat.view(x.shape)


# %% alternate: padded
# Fills up with zeros to a multiple of n, and lets torch pair the messages.
def ring_all_reduce(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    size = -(-x.numel() // n)
    table = x.new_zeros(n * size)
    table[: x.numel()] = x.reshape(-1)
    table = table.view(n, size)
    for step in range(2 * n - 2):
        arriving = x.new_empty(size)
        requests = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, table[(rank - step) % n], (rank + 1) % n),
                dist.P2POp(dist.irecv, arriving, (rank - 1) % n),
            ]
        )
        for request in requests:
            request.wait()
        if step < n - 1:
            arriving += table[(rank - step - 1) % n]
        table[(rank - step - 1) % n] = arriving
    return table.view(-1)[: x.numel()].view(x.shape)


# %% alternate: the_even_send_first
# Blocking calls, in an order in which nobody waits for ever: rank 0 sends first, the others receive first.
def ring_all_reduce(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    flat = torch.cat([x.reshape(-1), x.new_empty(0)])
    bounds = [i * flat.numel() // n for i in range(n + 1)]
    pieces = [flat[a:b] for a, b in zip(bounds, bounds[1:], strict=False)]
    for step in range(2 * n - 2):
        sent, place = pieces[(rank - step) % n].clone(), (rank - step - 1) % n
        arriving = torch.empty_like(pieces[place])
        if rank == 0:
            dist.send(sent, 1)
            dist.recv(arriving, n - 1)
        else:
            dist.recv(arriving, rank - 1)
            dist.send(sent, (rank + 1) % n)
        pieces[place].copy_(pieces[place] + arriving if step < n - 1 else arriving)
    return flat.view(x.shape)
