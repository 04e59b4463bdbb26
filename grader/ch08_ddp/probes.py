"""Chapter 8's probes: all of the chapter that runs beside a student's code."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

from grader import probe
from grader.instruments.collectives import watch_collectives
from grader.instruments.patience import wait_for
from grader.instruments.ranks import on_ranks

SECONDS = 5.0
"""Longest life of ranks here: what a program that waits for ever costs, once per probe. A right one
is done in 0.3 s, and in 1 s at load 17."""

PATIENCE = 2.5
"""Seconds that one rank waits for a signal of another's backward, which takes 10 ms."""


def members_of(group):
    """Return a group's ranks. None stays None, though every call takes it for the world."""
    return None if group is None else dist.get_process_group_ranks(group)


@probe
def placed(student, world_size, shapes):
    """Return, by rank, the coordinates in each mesh, and each group's members, rank and sum."""

    def body(rank):
        found = []
        for shape in shapes:
            coordinate, groups = student.coordinates(shape)
            sums = []
            for group in groups:
                one = torch.zeros(world_size, dtype=torch.int64)
                one[rank] = 1
                dist.all_reduce(one, group=group)
                sums.append(one.nonzero().flatten().tolist())
            found.append(
                {
                    "coordinate": coordinate,
                    "members": [members_of(group) for group in groups],
                    "rank in group": [dist.get_rank(group) for group in groups],
                    "reached": sums,
                }
            )
        return found

    return on_ranks(world_size, body, seconds=SECONDS)


class Replica(nn.Module):
    """A model whose tensors are of many kinds; their values depend on the rank, their layouts too.

    `odd` names what is different on this rank: "name", "shape", "dtype" or nothing.
    """

    def __init__(self, base, rank, odd=""):
        super().__init__()

        def numbers(*shape, dtype=torch.float32):
            count = torch.Size(shape).numel()
            return (base + 100 * rank + torch.arange(count)).reshape(shape).to(dtype)

        self.register_buffer("steps", numbers(dtype=torch.int64))
        by_columns = numbers(4, 3).t()  # the same shape on all ranks, another layout on rank 1
        weight = by_columns if rank == 1 else by_columns.contiguous()
        self.weight = nn.Parameter(numbers(4, 3) if odd == "shape" else weight)
        self.frozen = nn.Parameter(numbers(5, dtype=torch.float64), requires_grad=False)
        self.scale = nn.Parameter(numbers(dtype=torch.bfloat16))
        self.empty = nn.Parameter(numbers(0, 3))
        self.inner = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        with torch.no_grad():
            for tensor in (*self.inner.parameters(), *self.inner.buffers()):
                tensor.copy_(numbers(*tensor.shape))
        self.table = nn.Embedding(64, 128, _weight=numbers(64, 128))
        self.head = nn.Linear(128, 64, bias=False)
        self.head.weight = self.table.weight
        self.register_buffer("mask", (numbers(6) % (2 + rank)) > 0, persistent=False)
        spread = numbers(4, 1).repeat(1, 3)[:, 1] if rank != 2 else numbers(4)
        self.register_buffer("column", spread.half() if odd == "dtype" else spread)
        if odd == "name":
            self.register_buffer("extra", numbers(2))


def tensors_of(module):
    """Return a module's parameters and buffers by name, each once."""
    return dict([*module.named_parameters(), *module.named_buffers()])


@probe
def synced(student, base, world_size, source):
    """Return, by rank, a replica's tensors after `sync_module`, and what became of the objects."""

    def body(rank):
        module = Replica(base, rank)
        before = tensors_of(module)
        kept = {name: (t.stride(), t.requires_grad) for name, t in before.items()}
        with watch_collectives() as seen:
            result = student.sync_module(module, source) if source else student.sync_module(module)
        after = tensors_of(module)
        return {
            "returned": result is not None,
            "values": {name: t.detach().clone() for name, t in after.items()},
            "same objects": [name for name in before if after.get(name) is not before[name]],
            "other layouts": [
                name for name, t in after.items() if kept.get(name) != (t.stride(), t.requires_grad)
            ],
            "tied": module.head.weight is module.table.weight,
            "recorded": [name for name, t in after.items() if not t.is_leaf],
            "bytes": sum(size for name, size in seen.events if name != "recv"),
        }

    return on_ranks(world_size, body, seconds=SECONDS)


@probe
def sync_refused(student, base, odd, odd_rank):
    """Return, by rank, what came of replicas of which one is odd: raised, and what has changed."""

    def body(rank):
        module = Replica(base, rank, odd if rank == odd_rank else "")
        before = {name: t.detach().clone() for name, t in tensors_of(module).items()}
        try:
            student.sync_module(module, 1)
            raised = "nothing"
        except Exception as error:
            raised = type(error).__name__
        after = tensors_of(module)
        return {"raised": raised, "changed": [n for n in before if not same(before[n], after[n])]}

    return on_ranks(3, body, seconds=SECONDS)


def same(left, right):
    """Say whether two tensors have the same shape, dtype and values."""
    return left.dtype == right.dtype and left.shape == right.shape and bool((left == right).all())


@probe
def averaged(student, values, cases):
    """Return, by rank and case, all gradients after `average_gradients`, and what else happened.

    A case is a triple: gradients, a list for each rank, with a tensor or None for each parameter;
    samples of each rank; positions of frozen parameters.
    """

    def run(rank, grads, samples, frozen):
        parameters = [nn.Parameter(value.clone()) for value in values]
        for number, (parameter, grad) in enumerate(zip(parameters, grads[rank], strict=True)):
            parameter.grad = grad
            parameter.requires_grad_(number not in frozen)
        with watch_collectives() as seen:
            result = student.average_gradients(iter(parameters), samples[rank])
        return {
            "returned": result is not None,
            "grads": [p.grad.detach().clone() if p.grad is not None else None for p in parameters],
            "recorded": any(p.grad is not None and p.grad.requires_grad for p in parameters),
            "values": all(same(p.detach(), v) for p, v in zip(parameters, values, strict=True)),
            "bytes": sum(size for _, size in seen.events),
        }

    # Ranks of their own for each case: a rank that leaves one out would else meet the others in the
    # wrong all-reduce of the next, and the transport's words for that help nobody.
    found = [
        on_ranks(len(case[1]), lambda rank, case=case: run(rank, *case), seconds=SECONDS)
        for case in cases
    ]
    return [list(of_rank) for of_rank in zip(*found, strict=True)]


class Addressed(TorchDispatchMode):
    """Notes to which rank each message was sent, and its bytes."""

    def __init__(self):
        super().__init__()
        self.sent = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.name() == "c10d::send":
            self.sent.append((args[2], sum(tensor.nbytes for tensor in args[0])))
        return func(*args, **(kwargs or {}))


@probe
def ringed(student, cases):
    """Return, by rank and case, the sum, the messages sent and what became of `x`.

    `cases` has a list for each case: one tensor for each rank.
    """

    def body(rank):
        found = []
        for tensors in cases:
            x = tensors[rank]
            before = x.clone()
            with watch_collectives() as seen, Addressed() as messages:
                result = student.ring_all_reduce(x)
            found.append(
                {
                    "sum": result,
                    "untouched": same(x, before),
                    "others": sorted({name for name in seen.names if name not in ("send", "recv")}),
                    "sent": messages.sent,
                }
            )
        return found

    return on_ranks(len(cases[0]), body, seconds=SECONDS)


def chained(parameters, uses, x):
    """Return one number computed from `x` (3, 3) by using parameters one after the other."""
    h = x
    for at in uses:
        p = parameters[at].double()
        h = torch.tanh(h @ p if p.dim() == 2 else h * p if p.dim() == 0 else h + p)
    return (h * h).sum()


def in_turn(x, turn):
    """Return the input of an iteration."""
    return x * (1 + turn)


@probe
def planned(student, values, capacities, frozen):
    """Return the plan for each capacity."""
    parameters = [
        nn.Parameter(value.clone(), requires_grad=number not in frozen)
        for number, value in enumerate(values)
    ]
    return [student.Buckets(iter(parameters), capacity).plan for capacity in capacities]


@probe
def bucketed(student, values, uses, xs, capacity, turns, frozen):
    """Return, by rank and iteration, the averaged gradients and the order of events.

    `uses` has, for each rank, the positions of the parameters in the order in which it uses them.
    """

    def body(rank):
        parameters = [nn.Parameter(value) for value in values]
        for position in frozen:
            parameters[position].requires_grad_(False)
        found, logs = [], []
        for number, parameter in enumerate(parameters):
            if number not in frozen:
                parameter.register_post_accumulate_grad_hook(
                    lambda _, number=number: logs[-1].note(f"gradient {number}")
                )
        buckets = student.Buckets(iter(parameters), capacity)
        for turn in range(turns):
            for parameter in parameters:
                parameter.grad = None
            with watch_collectives() as seen:
                logs.append(seen)
                chained(parameters, uses[rank], in_turn(xs[rank], turn)).backward()
                seen.note("finish")
                buckets.finish()
            found.append(
                {
                    "grads": [None if p.grad is None else p.grad.clone() for p in parameters],
                    "events": list(seen.events),
                }
            )
        return found

    return on_ranks(len(xs), body, seconds=SECONDS)


@probe
def overlapped(student, values, xs, capacity):
    """Return whether rank 0's backward was through before rank 1 began its own; and gradients.

    Rank 1 waits for rank 0's word, but no longer than `PATIENCE`.
    """
    ear, mouth = os.pipe()
    uses = list(range(len(values)))

    def body(rank):
        parameters = [nn.Parameter(value) for value in values]
        buckets = student.Buckets(parameters, capacity)
        total = chained(parameters, uses, xs[rank])
        heard = rank == 0 or wait_for(ear, PATIENCE)
        total.backward()
        if rank == 0:
            os.write(mouth, b"!")
        buckets.finish()
        return {"heard": heard, "grads": [p.grad.clone() for p in parameters]}

    try:
        return on_ranks(2, body, seconds=PATIENCE + SECONDS)
    finally:
        os.close(ear)
        os.close(mouth)


@probe
def bucket_missing(student, values, x, capacity):
    """Return, by rank, what `finish` raised after a backward that left out a parameter."""

    def body(rank):
        parameters = [nn.Parameter(value) for value in values]
        buckets = student.Buckets(parameters, capacity)
        uses = list(range(len(values)))
        chained(parameters, uses, x).backward()
        buckets.finish()
        for parameter in parameters:
            parameter.grad = None
        chained(parameters, [at for at in uses if at != 1], x).backward()
        try:
            buckets.finish()
        except Exception as error:
            return type(error).__name__
        return "nothing"

    return on_ranks(2, body, seconds=SECONDS)


def small_model(weights):
    """Return a float64 model of three weights (4, 3), (4,) and (1, 4), and one that is frozen."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), weights, strict=False):
            parameter.copy_(value)
        model[2].bias.fill_(0.5)
    model[2].bias.requires_grad_(False)
    return model


def loss_of_output(output):
    """Return the mean loss over samples. `output` (samples, 1)."""
    return (output.exp() + output.square()).mean()


@probe
def accumulated(student, weights, micro_batches, turns):
    """Return, by rank and turn, gradients, the loss returned, and the order of events.

    `micro_batches` has a list of tensors for each rank.
    """

    def body(rank):
        model = small_model(weights)
        ddp = DistributedDataParallel(model)
        found = []
        for _ in range(turns):
            ddp.zero_grad()
            with watch_collectives() as seen:

                def drawn(seen=seen):
                    for number, x in enumerate(micro_batches[rank]):
                        seen.note(f"take {number}")
                        yield x

                def loss_of(output, seen=seen):
                    seen.note(f"loss of {len(output)}")
                    return loss_of_output(output)

                loss = student.accumulate(ddp, drawn(), loss_of)
            found.append(
                {
                    "loss": loss,
                    "grads": [None if p.grad is None else p.grad.clone() for p in ddp.parameters()],
                    "events": list(seen.events),
                }
            )
        return found

    return on_ranks(len(micro_batches), body, seconds=SECONDS)


def used_in(parameters, uses, kind):
    """Return a loss that depends on the parameters numbered in `uses`."""
    h = torch.ones(2, dtype=torch.float64)
    for at in uses:
        h = h * parameters[at].double().sum()
    if kind == "deep":
        for _ in range(3000):
            h = h + 1
    if kind == "wide":
        for _ in range(60):
            h = (h + h) / 2
    if kind == "detached":
        h = h + sum(p.detach().double().sum() for p in parameters)
    return h.sum()


@probe
def filled(student, values, cases):
    """Return, by rank and case, what `fill_unused` said, all `.grad`s after it, and what was sent.

    A case has, for each rank, what its loss uses, and of which kind it is; then the parameters that
    have a gradient from before, and those that are frozen. The first parameter is listed twice.
    """

    def run(rank, uses, kinds, stale, frozen):
        parameters = [nn.Parameter(value) for value in values]
        for at in frozen:
            parameters[at].requires_grad_(False)
        for at in stale:
            parameters[at].grad = torch.full_like(values[at], 7.0)
        loss = used_in(parameters, uses[rank], kinds[rank])
        with watch_collectives() as seen:
            used = student.fill_unused(loss, [*parameters, parameters[0]])
        return {
            "used": used,
            "grads": [None if p.grad is None else p.grad.clone() for p in parameters],
            "flags": [p.grad is not None and p.grad.requires_grad for p in parameters],
            "events": list(seen.events),
        }

    def body(rank):
        return [run(rank, *case) for case in cases]

    return on_ranks(2, body, seconds=SECONDS)


def signals(descriptor, count):
    """Return how many bytes another rank wrote to the pipe; stop at `count`, or at a silence."""
    came = 0
    while came < count and wait_for(descriptor, PATIENCE):
        came += len(os.read(descriptor, count - came))
    return came


class Weighted(nn.Module):
    """Parameters `w` of given shapes; the gradient of each is the tensor that it is multiplied by."""

    def __init__(self, values, frozen=()):
        super().__init__()
        self.w = nn.ParameterList(nn.Parameter(v.clone()) for v in values)
        for number in frozen:
            self.w[number].requires_grad_(False)
        self.tied = self.w[0]

    def forward(self, factors, *, order=None):
        """Add up the products of parameters and factors, in an order; a factor of None: unused."""
        order = range(len(factors)) if order is None else order
        used = [number for number in order if factors[number] is not None]
        return sum((self.w[n] * factors[n]).double().sum() for n in used)


def gradients_of(module):
    """Return copies of all `.grad`s, None where there is none."""
    return [None if p.grad is None else p.grad.clone() for p in module.parameters()]


@probe
def ddp_steps(student, values, frozen, bucket_bytes, factors, modes):
    """Run backwards on ranks; return per rank each step's gradients and what was said in it.

    factors: per rank, per step, one tensor or None per parameter
    modes: per step a set of words: "clear" first, no_sync around "forward" or "backward", ...
    """

    def body(rank):
        model = Weighted(values, frozen)
        ddp = student.MiniDDP(model, bucket_bytes)
        found = []
        for mine, mode in zip(factors[rank], modes, strict=True):
            if "clear" in mode:
                model.zero_grad()
            with watch_collectives() as seen:
                order = list(range(len(values)))
                if "other order" in mode and rank == 1:
                    order.reverse()
                if "forward" in mode:
                    with ddp.no_sync():
                        with ddp.no_sync():
                            pass
                        loss = ddp(mine, order=order)
                elif "bypass" in mode:
                    loss = ddp.module(mine, order=order)
                else:
                    loss = ddp(mine, order=order)
                if "raise" in mode:
                    try:
                        with ddp.no_sync():
                            raise LookupError
                    except LookupError:
                        pass
                if "look" in mode:
                    with torch.no_grad():
                        ddp(mine, order=order)
                if "backward" in mode:
                    with ddp.no_sync():
                        loss.backward()
                else:
                    loss.backward()
            found.append({"gradients": gradients_of(model), "said": seen.events})
        return found

    return on_ranks(len(factors), body, seconds=SECONDS)


@probe
def ddp_overlap(student, values, bucket_bytes):
    """Return rank 0's order of gradients and messages, where rank 1 waits until rank 0 has all."""
    read, write = os.pipe()

    def body(rank):
        model = Weighted(values)
        ddp = student.MiniDDP(model, bucket_bytes)
        came = None

        def computed(number):
            seen.note(f"gradient {number}")
            if rank == 0:
                os.write(write, b"!")

        for number, parameter in enumerate(model.w):
            parameter.register_hook(lambda _, number=number: computed(number))
        factors = [torch.full_like(v, rank + 1.0) for v in values]
        with watch_collectives() as seen:
            loss = ddp(factors)
            if rank == 1:
                came = signals(read, len(values))
            loss.backward()
        return {"came": came, "said": seen.events, "gradients": gradients_of(model)}

    try:
        return on_ranks(2, body, seconds=SECONDS)
    finally:
        os.close(read)
        os.close(write)


@probe
def ddp_large(student, elements):
    """Return the least and the greatest gradient of one large parameter on each rank."""

    def body(rank):
        model = Weighted([torch.zeros(elements)])
        student.MiniDDP(model, 1 << 20)([torch.tensor(rank + 1.0)]).backward()
        return [float(bound) for bound in model.w[0].grad.aminmax()]

    return on_ranks(2, body, seconds=SECONDS)


class Normed(nn.Module):
    """Two layers that share a weight, with a BatchNorm between them."""

    def __init__(self, values):
        super().__init__()
        weight, bias, mean = (v.clone() for v in values)
        self.first = nn.Linear(*weight.shape, dtype=weight.dtype)
        self.norm = nn.BatchNorm1d(len(bias), dtype=weight.dtype)
        self.last = nn.Linear(*weight.shape, dtype=weight.dtype)
        self.last.weight = self.first.weight
        with torch.no_grad():
            self.first.weight.copy_(weight)
            self.first.bias.copy_(bias)
            self.last.bias.copy_(-bias)
        self.norm.running_mean.copy_(mean)

    def forward(self, x):
        return self.last(self.norm(self.first(x)).relu())


def state_of(module):
    """Return copies of all parameters and buffers by name."""
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


@probe
def ddp_start(student, values):
    """Return each rank's state once the module is wrapped, and whether its tensors are the same."""

    def body(rank):
        model = Normed(values[rank])
        model.odd = nn.Parameter(values[rank][0][:, 1::2])
        before = [*model.parameters(), *model.buffers()]
        ddp = student.MiniDDP(model, 1 << 20)
        after = [*model.parameters(), *model.buffers()]
        return {
            "state": state_of(model),
            "same tensors": [a is b for a, b in zip(before, after, strict=True)],
            "child": ddp.module is model,
            "output": ddp.eval()(values[0][0]).detach(),
            "expected": model.eval()(values[0][0]).detach(),
        }

    return on_ranks(len(values), body, seconds=SECONDS)


@probe
def ddp_trained(student, values, batches, bucket_bytes):
    """Return each rank's states after each step of SGD with momentum. batches: per rank, per step."""

    def body(rank):
        model = Normed(values)
        ddp = student.MiniDDP(model, bucket_bytes)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
        states = []
        for x in batches[rank]:
            optimizer.zero_grad()
            ddp(x).square().mean().backward()
            optimizer.step()
            states.append(state_of(model))
        return states

    return on_ranks(len(batches), body, seconds=SECONDS)


@probe
def ddp_buffers(student, values):
    """Return what was said, and each rank's running mean, around forwards of four kinds."""

    def body(rank):
        model = Normed(values[0])
        ddp = student.MiniDDP(model, 1 << 20)
        found = {}

        def forward(name):
            model.norm.running_mean.fill_(rank)
            with watch_collectives() as seen:
                result = ddp(values[0][0])
            found[name] = {
                "said": seen.count("broadcast", "all_reduce", "all_gather"),
                "mean": model.norm.running_mean.clone(),
            }
            return result

        ddp.eval()
        forward("averaged").sum().backward()
        with torch.no_grad():
            forward("no grad")
        with ddp.no_sync():
            forward("no_sync").sum().backward()
        forward("averaged again").sum().backward()
        return found

    return on_ranks(2, body, seconds=SECONDS)


ZERO_MAKERS = {
    "adam": lambda tensors: torch.optim.Adam(tensors, lr=0.1),
    "momentum": lambda tensors: torch.optim.SGD(tensors, lr=0.1, momentum=0.9),
    "decay": lambda tensors: torch.optim.AdamW(tensors, lr=0.1, weight_decay=0.3),
}


@probe
def zero_steps(student, values, gradients, kind, ranks):
    """Return per rank the parameters after each step, what is kept, and what was said."""

    def body(rank):
        params = [nn.Parameter(value) for value in values]  # a clone has no gaps
        storages = [param.data_ptr() for param in params]
        made, kept = [], [0]

        def make(tensors):
            made.append(ZERO_MAKERS[kind](tensors))
            made[-1].register_step_post_hook(count)
            return made[-1]

        def count(*_):  # right after a step: what is thrown away later was there, too
            states = [state for one in made for state in one.state.values()]
            names = {"exp_avg", "momentum_buffer"}
            kept.append(
                sum(state[name].numel() for state in states for name in names & state.keys())
            )

        optimizer = student.ZeroOptimizer(iter(params), make)
        after, said = [], []
        for grads in gradients:
            for param, grad in zip(params, grads, strict=True):
                param.grad = None if grad is None else grad.clone()
            with watch_collectives() as seen:
                optimizer.step()
            after.append([param.detach().clone() for param in params])
            said.append(sum(size for _, size in seen.events))
        optimizer.zero_grad()
        return {
            "params": after,
            "kept": max(kept),
            "said": said,
            "in place": [param.data_ptr() for param in params] == storages,
            "cleared": [param.grad is None for param in params],
        }

    return on_ranks(ranks, body, seconds=SECONDS)


@probe
def compressed_steps(student, values, factors, ranks_meet):
    """Return per rank and step the gradients, the buckets, and what was said.

    factors: per rank and step, the gradient of each parameter. `ranks_meet`: rank 1 begins its
    last backward when rank 0 has all its gradients, or has fallen silent.
    """
    read, write = os.pipe()
    last = len(factors[0]) - 1

    def body(rank):
        model = Weighted(values)
        ddp = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=256 / 2**20)
        numbers = {parameter: number for number, parameter in enumerate(model.w)}
        buckets, step = [], 0

        def hook(state, bucket):
            buckets[-1].append([numbers[parameter] for parameter in bucket.parameters()])
            return student.compress(state, bucket)

        def computed(gradient):
            if step == last:
                os.write(write, b"!")

        ddp.register_comm_hook({}, hook)
        if rank == 0 and ranks_meet:
            for parameter in model.w:
                parameter.register_hook(computed)
        found, came = [], None
        for step, mine in enumerate(factors[rank]):  # `computed` reads it
            model.zero_grad()
            buckets.append([])
            loss = ddp(mine)
            if rank == 1 and ranks_meet and step == last:
                came = signals(read, len(values))
            with watch_collectives() as seen:
                loss.backward()
            found.append({"gradients": gradients_of(model), "said": sum(s for _, s in seen.events)})
        return {"steps": found, "buckets": buckets, "came": came}

    try:
        return on_ranks(len(factors), body, seconds=SECONDS)
    finally:
        os.close(read)
        os.close(write)


@probe
def synced_norm(student, shards, factors, weight, bias, momentum):
    """Train a SyncBatchNorm on ranks, then evaluate it; return results, gradients and traffic.

    shards, factors: per rank and step, inputs and what the outputs are multiplied by in the loss
    """

    def body(rank):
        norm = student.SyncBatchNorm(len(weight), momentum=momentum).to(weight.dtype)
        fresh = {name: tensor.detach().clone() for name, tensor in norm.state_dict().items()}
        kinds = [name for name, _ in norm.named_parameters()]
        with torch.no_grad():
            norm.weight.copy_(weight)
            norm.bias.copy_(bias)
        steps = []
        for x, factor in zip(shards[rank], factors[rank], strict=True):
            norm.zero_grad()
            x.requires_grad_()
            with watch_collectives() as forward:
                y = norm(x)
            with watch_collectives() as backward:
                (y * factor).sum().backward()
            steps.append(
                {
                    "y": y.detach(),
                    "x.grad": x.grad,
                    "weight.grad": norm.weight.grad.clone(),
                    "bias.grad": norm.bias.grad.clone(),
                    "mean": norm.running_mean.clone(),
                    "var": norm.running_var.clone(),
                    "said": [sum(s for _, s in seen.events) for seen in (forward, backward)],
                }
            )
        usual = student.SyncBatchNorm(1)
        usual(torch.tensor([[8.0], [12.0]]))
        norm.eval()
        x = shards[rank][0].detach().requires_grad_()
        with watch_collectives() as seen:
            y = norm(x)
            (y * factors[rank][0]).sum().backward()
        evaluated = {"y": y.detach(), "x.grad": x.grad, "said": len(seen.events)}
        evaluated |= {"mean": norm.running_mean.clone(), "var": norm.running_var.clone()}
        return {
            "steps": steps,
            "evaluated": evaluated,
            "fresh": fresh,
            "parameters": kinds,
            "usual": round(float(usual.running_mean), 6),
        }

    return on_ranks(len(shards), body, seconds=SECONDS)


@probe
def scheduled(student, kind, sizes):
    """Return the plans for each pair of a number of stages and a number of micro-batches."""
    return [student.schedule(kind, stages, micro_batches) for stages, micro_batches in sizes]


class Tanh(nn.Module):
    """One layer whose loss is the mean square of its output, less a target; a frozen scale."""

    def __init__(self, weight, bias):
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight.clone()), nn.Parameter(bias.clone())
        self.scale = nn.Parameter(torch.full_like(bias, 2.0), requires_grad=False)

    def forward(self, x):
        return (x @ self.weight + self.bias).tanh() * self.scale


def uneven_loss(model, x):
    """Return the scalar loss of a batch (rows, columns)."""
    return (model(x) - 0.5).square().mean()


UNEVEN_MAKERS = {
    "sgd": lambda params: torch.optim.SGD(params, lr=0.3),
    "adam": lambda params: torch.optim.Adam(params, lr=0.1),
    "momentum": lambda params: torch.optim.SGD(params, lr=0.2, momentum=0.9, weight_decay=0.1),
}


@probe
def trained_unevenly(student, weight, bias, batches, kind):
    """Return per rank the rounds, the parameters afterwards, and what happened in which order."""

    def body(rank):
        model = Tanh(weight, bias)
        model.weight.grad = torch.full_like(weight, 5.0)
        notes = []
        optimizer = UNEVEN_MAKERS[kind](model.parameters())
        optimizer.register_step_post_hook(lambda *_: notes.append("step"))

        def source():
            for number, batch in enumerate(batches[rank]):
                notes.append(f"batch {number}")
                yield batch

        def loss(model, batch):
            notes.append("loss")
            return uneven_loss(model, batch)

        rounds = student.uneven_inputs(model, optimizer, source(), loss)
        return {
            "rounds": rounds,
            "parameters": [p.detach().clone() for p in model.parameters()],
            "notes": notes,
        }

    return on_ranks(len(batches), body, seconds=SECONDS)


@probe
def ledgers(student, cases):
    """Return the ledger of each (sizes, ranks, stage)."""
    return [student.zero_ledger(list(sizes), ranks, stage) for sizes, ranks, stage in cases]


@probe
def scaled_steps(student, shards, scale, max_norm):
    """Make one step of SGD, learning rate 1, from zeros; shards: per rank, scaled gradients."""

    def body(rank):
        params = []
        for grad in shards[rank]:
            dtype, shape = (torch.float32, (2,)) if grad is None else (grad.dtype, grad.shape)
            params.append(nn.Parameter(torch.zeros(shape, dtype=dtype)))
            params[-1].grad = grad
        steps = []
        # a rank without parameters has an optimizer of something that has no gradient
        optimizer = torch.optim.SGD(params or [nn.Parameter(torch.zeros(1))], lr=1.0)
        optimizer.register_step_post_hook(lambda *_: steps.append(1))
        with watch_collectives() as seen:
            norm = student.scaled_step(params, optimizer, scale, max_norm)
        return {
            "norm": norm,
            "params": [param.detach() for param in params],
            "steps": len(steps),
            "cleared": [param.grad is None for param in params],
            "said": [size for _, size in seen.events],
        }

    return on_ranks(len(shards), body, seconds=SECONDS)
