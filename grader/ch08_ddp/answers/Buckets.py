# %% blocked: wraps_in_ddp
# DDP has the buckets already.
class Buckets:
    def __init__(self, parameters, capacity):
        self.plan = []
        self.ddp = torch.nn.parallel.DistributedDataParallel(nn.ParameterList(parameters))

    def finish(self):
        pass


# %% mistake: waits_in_the_hook
# Your hooks wait for the sum. Until it is there `backward` stands still, on every rank, and nothing overlaps. Give
# `async_op=True`, and wait in `finish`.
class Buckets:
    def __init__(self, parameters, capacity):
        self.parameters = list(parameters)
        self.plan = []
        used, dtype = 0, None
        for position, parameter in reversed(list(enumerate(self.parameters))):
            if not parameter.requires_grad:
                continue
            if parameter.dtype != dtype or used + parameter.nbytes > capacity:
                self.plan.append([])
                used, dtype = 0, parameter.dtype
            self.plan[-1].append(position)
            used += parameter.nbytes
        for number, bucket in enumerate(self.plan):
            for position in bucket:
                self.parameters[position].register_post_accumulate_grad_hook(
                    lambda _, number=number: self.ready(number)
                )
        self.begin()

    def begin(self):
        self.missing = [len(bucket) for bucket in self.plan]
        self.issued = []

    def grads(self, bucket):
        return [self.parameters[position].grad for position in bucket]

    def ready(self, number):
        self.missing[number] -= 1
        while len(self.issued) < len(self.plan) and not self.missing[len(self.issued)]:
            bucket = self.plan[len(self.issued)]
            flat = torch.cat([grad.reshape(-1) for grad in self.grads(bucket)])
            dist.all_reduce(flat)
            self.issued.append(flat)

    def finish(self):
        if any(self.missing):
            raise RuntimeError("some parameter had no gradient")
        for bucket, flat in zip(self.plan, self.issued, strict=True):
            flat /= dist.get_world_size()
            grads = self.grads(bucket)
            for grad, part in zip(grads, flat.split([g.numel() for g in grads]), strict=True):
                grad.copy_(part.view(grad.shape))
        self.begin()


# %% mistake: all_at_the_end
# You send everything in `finish`. The values are right and the messages are few, but the network idles while gradients
# are computed. Send a bucket in the hook of its last gradient.
class Buckets:
    def __init__(self, parameters, capacity):
        self.parameters = list(parameters)
        self.plan = []
        used, dtype = 0, None
        for position, parameter in reversed(list(enumerate(self.parameters))):
            if not parameter.requires_grad:
                continue
            if parameter.dtype != dtype or used + parameter.nbytes > capacity:
                self.plan.append([])
                used, dtype = 0, parameter.dtype
            self.plan[-1].append(position)
            used += parameter.nbytes
        for number, bucket in enumerate(self.plan):
            for position in bucket:
                self.parameters[position].register_post_accumulate_grad_hook(
                    lambda _, number=number: self.ready(number)
                )
        self.begin()

    def begin(self):
        self.missing = [len(bucket) for bucket in self.plan]
        self.issued = []

    def grads(self, bucket):
        return [self.parameters[position].grad for position in bucket]

    def ready(self, number):
        self.missing[number] -= 1

    def finish(self):
        if any(self.missing):
            raise RuntimeError("some parameter had no gradient")
        for bucket in self.plan:
            flat = torch.cat([grad.reshape(-1) for grad in self.grads(bucket)])
            self.issued.append((flat, dist.all_reduce(flat, async_op=True)))
        for bucket, (flat, work) in zip(self.plan, self.issued, strict=True):
            work.wait()
            flat /= dist.get_world_size()
            grads = self.grads(bucket)
            for grad, part in zip(grads, flat.split([g.numel() for g in grads]), strict=True):
                grad.copy_(part.view(grad.shape))
        self.begin()


# %% mistake: as_they_come
# You send a bucket when it is complete, whatever its turn. Where gradients come in another order on another rank, the
# first all-reduce of one meets the first of the other with another bucket in it, and you add up different parameters.
class Buckets:
    def __init__(self, parameters, capacity):
        self.parameters = list(parameters)
        self.plan = []
        used, dtype = 0, None
        for position, parameter in reversed(list(enumerate(self.parameters))):
            if not parameter.requires_grad:
                continue
            if parameter.dtype != dtype or used + parameter.nbytes > capacity:
                self.plan.append([])
                used, dtype = 0, parameter.dtype
            self.plan[-1].append(position)
            used += parameter.nbytes
        for number, bucket in enumerate(self.plan):
            for position in bucket:
                self.parameters[position].register_post_accumulate_grad_hook(
                    lambda _, number=number: self.ready(number)
                )
        self.begin()

    def begin(self):
        self.missing = [len(bucket) for bucket in self.plan]
        self.issued = []

    def grads(self, bucket):
        return [self.parameters[position].grad for position in bucket]

    def ready(self, number):
        self.missing[number] -= 1
        if not self.missing[number]:
            flat = torch.cat([grad.reshape(-1) for grad in self.grads(self.plan[number])])
            self.issued.append((number, flat, dist.all_reduce(flat, async_op=True)))

    def finish(self):
        if any(self.missing):
            raise RuntimeError("some parameter had no gradient")
        for number, flat, work in self.issued:
            bucket = self.plan[number]
            work.wait()
            flat /= dist.get_world_size()
            grads = self.grads(bucket)
            for grad, part in zip(grads, flat.split([g.numel() for g in grads]), strict=True):
                grad.copy_(part.view(grad.shape))
        self.begin()


# %% mistake: first_to_last
# Your plan goes from the first parameter to the last. Backward goes the other way: your first bucket is complete last,
# and all others wait for it.
class Buckets:
    def __init__(self, parameters, capacity):
        self.parameters = list(parameters)
        self.plan = []
        used, dtype = 0, None
        for position, parameter in enumerate(self.parameters):
            if not parameter.requires_grad:
                continue
            if parameter.dtype != dtype or used + parameter.nbytes > capacity:
                self.plan.append([])
                used, dtype = 0, parameter.dtype
            self.plan[-1].append(position)
            used += parameter.nbytes
        for number, bucket in enumerate(self.plan):
            for position in bucket:
                self.parameters[position].register_post_accumulate_grad_hook(
                    lambda _, number=number: self.ready(number)
                )
        self.begin()

    def begin(self):
        self.missing = [len(bucket) for bucket in self.plan]
        self.issued = []

    def grads(self, bucket):
        return [self.parameters[position].grad for position in bucket]

    def ready(self, number):
        self.missing[number] -= 1
        while len(self.issued) < len(self.plan) and not self.missing[len(self.issued)]:
            bucket = self.plan[len(self.issued)]
            flat = torch.cat([grad.reshape(-1) for grad in self.grads(bucket)])
            self.issued.append((flat, dist.all_reduce(flat, async_op=True)))

    def finish(self):
        if any(self.missing):
            raise RuntimeError("some parameter had no gradient")
        for bucket, (flat, work) in zip(self.plan, self.issued, strict=True):
            work.wait()
            flat /= dist.get_world_size()
            grads = self.grads(bucket)
            for grad, part in zip(grads, flat.split([g.numel() for g in grads]), strict=True):
                grad.copy_(part.view(grad.shape))
        self.begin()


# %% mistake: sums
# You hand out the sum over ranks. Divide by their number.
class Buckets:
    def __init__(self, parameters, capacity):
        self.parameters = list(parameters)
        self.plan = []
        used, dtype = 0, None
        for position, parameter in reversed(list(enumerate(self.parameters))):
            if not parameter.requires_grad:
                continue
            if parameter.dtype != dtype or used + parameter.nbytes > capacity:
                self.plan.append([])
                used, dtype = 0, parameter.dtype
            self.plan[-1].append(position)
            used += parameter.nbytes
        for number, bucket in enumerate(self.plan):
            for position in bucket:
                self.parameters[position].register_post_accumulate_grad_hook(
                    lambda _, number=number: self.ready(number)
                )
        self.begin()

    def begin(self):
        self.missing = [len(bucket) for bucket in self.plan]
        self.issued = []

    def grads(self, bucket):
        return [self.parameters[position].grad for position in bucket]

    def ready(self, number):
        self.missing[number] -= 1
        while len(self.issued) < len(self.plan) and not self.missing[len(self.issued)]:
            bucket = self.plan[len(self.issued)]
            flat = torch.cat([grad.reshape(-1) for grad in self.grads(bucket)])
            self.issued.append((flat, dist.all_reduce(flat, async_op=True)))

    def finish(self):
        if any(self.missing):
            raise RuntimeError("some parameter had no gradient")
        for bucket, (flat, work) in zip(self.plan, self.issued, strict=True):
            work.wait()
            grads = self.grads(bucket)
            for grad, part in zip(grads, flat.split([g.numel() for g in grads]), strict=True):
                grad.copy_(part.view(grad.shape))
        self.begin()


# %% mistake: one_iteration_only
# Your counts are not set back. In the second iteration no bucket is complete again, and `finish` puts the averages of
# the first into the new gradients.
class Buckets:
    def __init__(self, parameters, capacity):
        self.parameters = list(parameters)
        self.plan = []
        used, dtype = 0, None
        for position, parameter in reversed(list(enumerate(self.parameters))):
            if not parameter.requires_grad:
                continue
            if parameter.dtype != dtype or used + parameter.nbytes > capacity:
                self.plan.append([])
                used, dtype = 0, parameter.dtype
            self.plan[-1].append(position)
            used += parameter.nbytes
        for number, bucket in enumerate(self.plan):
            for position in bucket:
                self.parameters[position].register_post_accumulate_grad_hook(
                    lambda _, number=number: self.ready(number)
                )
        self.begin()

    def begin(self):
        self.missing = [len(bucket) for bucket in self.plan]
        self.issued = []

    def grads(self, bucket):
        return [self.parameters[position].grad for position in bucket]

    def ready(self, number):
        self.missing[number] -= 1
        while len(self.issued) < len(self.plan) and not self.missing[len(self.issued)]:
            bucket = self.plan[len(self.issued)]
            flat = torch.cat([grad.reshape(-1) for grad in self.grads(bucket)])
            self.issued.append((flat, dist.all_reduce(flat, async_op=True)))

    def finish(self):
        if any(missing > 0 for missing in self.missing):
            raise RuntimeError("some parameter had no gradient")
        for bucket, (flat, work) in zip(self.plan, self.issued, strict=True):
            work.wait()
            flat = flat / dist.get_world_size()
            grads = self.grads(bucket)
            for grad, part in zip(grads, flat.split([g.numel() for g in grads]), strict=True):
                grad.copy_(part.view(grad.shape))


# %% mistake: one_message_each
# You send each gradient of a bucket by itself. A bucket is there to be sent as one: put its gradients into one flat
# tensor.
class Buckets:
    def __init__(self, parameters, capacity):
        self.parameters = list(parameters)
        self.plan = []
        used, dtype = 0, None
        for position, parameter in reversed(list(enumerate(self.parameters))):
            if not parameter.requires_grad:
                continue
            if parameter.dtype != dtype or used + parameter.nbytes > capacity:
                self.plan.append([])
                used, dtype = 0, parameter.dtype
            self.plan[-1].append(position)
            used += parameter.nbytes
        for number, bucket in enumerate(self.plan):
            for position in bucket:
                self.parameters[position].register_post_accumulate_grad_hook(
                    lambda _, number=number: self.ready(number)
                )
        self.begin()

    def begin(self):
        self.missing = [len(bucket) for bucket in self.plan]
        self.issued = []

    def grads(self, bucket):
        return [self.parameters[position].grad for position in bucket]

    def ready(self, number):
        self.missing[number] -= 1
        while len(self.issued) < len(self.plan) and not self.missing[len(self.issued)]:
            parts = [grad.contiguous() for grad in self.grads(self.plan[len(self.issued)])]
            works = [dist.all_reduce(part, async_op=True) for part in parts]
            self.issued.append((parts, works))

    def finish(self):
        if any(self.missing):
            raise RuntimeError("some parameter had no gradient")
        for bucket, (parts, works) in zip(self.plan, self.issued, strict=True):
            for grad, part, work in zip(self.grads(bucket), parts, works, strict=True):
                work.wait()
                grad.copy_(part / dist.get_world_size())
        self.begin()


# %% mistake: closes_too_late
# You close a bucket after it has exceeded the capacity. It is to be closed before. (DDP itself does as you do: its
# capacity is a wish.)
class Buckets:
    def __init__(self, parameters, capacity):
        self.parameters = list(parameters)
        self.plan = []
        used, dtype = 0, None
        for position, parameter in reversed(list(enumerate(self.parameters))):
            if not parameter.requires_grad:
                continue
            if parameter.dtype != dtype or used >= capacity:
                self.plan.append([])
                used, dtype = 0, parameter.dtype
            self.plan[-1].append(position)
            used += parameter.nbytes
        for number, bucket in enumerate(self.plan):
            for position in bucket:
                self.parameters[position].register_post_accumulate_grad_hook(
                    lambda _, number=number: self.ready(number)
                )
        self.begin()

    def begin(self):
        self.missing = [len(bucket) for bucket in self.plan]
        self.issued = []

    def grads(self, bucket):
        return [self.parameters[position].grad for position in bucket]

    def ready(self, number):
        self.missing[number] -= 1
        while len(self.issued) < len(self.plan) and not self.missing[len(self.issued)]:
            bucket = self.plan[len(self.issued)]
            flat = torch.cat([grad.reshape(-1) for grad in self.grads(bucket)])
            self.issued.append((flat, dist.all_reduce(flat, async_op=True)))

    def finish(self):
        if any(self.missing):
            raise RuntimeError("some parameter had no gradient")
        for bucket, (flat, work) in zip(self.plan, self.issued, strict=True):
            work.wait()
            flat /= dist.get_world_size()
            grads = self.grads(bucket)
            for grad, part in zip(grads, flat.split([g.numel() for g in grads]), strict=True):
                grad.copy_(part.view(grad.shape))
        self.begin()


# %% mistake: mixes_dtypes
# Your buckets mix dtypes. `torch.cat` makes the wider one of all, so more bytes are sent than there are.
class Buckets:
    def __init__(self, parameters, capacity):
        self.parameters = list(parameters)
        self.plan = []
        used, dtype = 0, None
        for position, parameter in reversed(list(enumerate(self.parameters))):
            if not parameter.requires_grad:
                continue
            if dtype is None or used + parameter.nbytes > capacity:
                self.plan.append([])
                used, dtype = 0, parameter.dtype
            self.plan[-1].append(position)
            used += parameter.nbytes
        for number, bucket in enumerate(self.plan):
            for position in bucket:
                self.parameters[position].register_post_accumulate_grad_hook(
                    lambda _, number=number: self.ready(number)
                )
        self.begin()

    def begin(self):
        self.missing = [len(bucket) for bucket in self.plan]
        self.issued = []

    def grads(self, bucket):
        return [self.parameters[position].grad for position in bucket]

    def ready(self, number):
        self.missing[number] -= 1
        while len(self.issued) < len(self.plan) and not self.missing[len(self.issued)]:
            bucket = self.plan[len(self.issued)]
            flat = torch.cat([grad.reshape(-1) for grad in self.grads(bucket)])
            self.issued.append((flat, dist.all_reduce(flat, async_op=True)))

    def finish(self):
        if any(self.missing):
            raise RuntimeError("some parameter had no gradient")
        for bucket, (flat, work) in zip(self.plan, self.issued, strict=True):
            work.wait()
            flat /= dist.get_world_size()
            grads = self.grads(bucket)
            for grad, part in zip(grads, flat.split([g.numel() for g in grads]), strict=True):
                grad.copy_(part.view(grad.shape))
        self.begin()


# %% mistake: does_not_notice
# A parameter that had no gradient goes unnoticed: its bucket is not sent, nor are those after it, and the gradients of
# this rank alone go to the optimizer. Raise.
class Buckets:
    def __init__(self, parameters, capacity):
        self.parameters = list(parameters)
        self.plan = []
        used, dtype = 0, None
        for position, parameter in reversed(list(enumerate(self.parameters))):
            if not parameter.requires_grad:
                continue
            if parameter.dtype != dtype or used + parameter.nbytes > capacity:
                self.plan.append([])
                used, dtype = 0, parameter.dtype
            self.plan[-1].append(position)
            used += parameter.nbytes
        for number, bucket in enumerate(self.plan):
            for position in bucket:
                self.parameters[position].register_post_accumulate_grad_hook(
                    lambda _, number=number: self.ready(number)
                )
        self.begin()

    def begin(self):
        self.missing = [len(bucket) for bucket in self.plan]
        self.issued = []

    def grads(self, bucket):
        return [self.parameters[position].grad for position in bucket]

    def ready(self, number):
        self.missing[number] -= 1
        while len(self.issued) < len(self.plan) and not self.missing[len(self.issued)]:
            bucket = self.plan[len(self.issued)]
            flat = torch.cat([grad.reshape(-1) for grad in self.grads(bucket)])
            self.issued.append((flat, dist.all_reduce(flat, async_op=True)))

    def finish(self):
        for bucket, (flat, work) in zip(self.plan, self.issued, strict=False):
            work.wait()
            flat /= dist.get_world_size()
            grads = self.grads(bucket)
            for grad, part in zip(grads, flat.split([g.numel() for g in grads]), strict=True):
                grad.copy_(part.view(grad.shape))
        self.begin()


# %% alternate: futures
# Divides before it sends, and lets a future put the result back.
class Buckets:
    def __init__(self, parameters, capacity):
        self.parameters = list(parameters)
        self.plan = []
        used, dtype = 0, None
        for position, parameter in reversed(list(enumerate(self.parameters))):
            if not parameter.requires_grad:
                continue
            if parameter.dtype != dtype or used + parameter.nbytes > capacity:
                self.plan.append([])
                used, dtype = 0, parameter.dtype
            self.plan[-1].append(position)
            used += parameter.nbytes
        for number, bucket in enumerate(self.plan):
            for position in bucket:
                self.parameters[position].register_post_accumulate_grad_hook(
                    lambda _, number=number: self.ready(number)
                )
        self.begin()

    def begin(self):
        self.missing = [len(bucket) for bucket in self.plan]
        self.issued = []

    def grads(self, bucket):
        return [self.parameters[position].grad for position in bucket]

    def ready(self, number):
        self.missing[number] -= 1
        if self.missing[number]:
            return
        for later in range(len(self.issued), len(self.plan)):
            if self.missing[later]:
                break
            grads = self.grads(self.plan[later])
            flat = torch.cat([g.reshape(-1) / dist.get_world_size() for g in grads])
            self.issued.append((flat, dist.all_reduce(flat, async_op=True).get_future()))

    def finish(self):
        if any(self.missing):
            raise RuntimeError("some parameter had no gradient")
        for bucket, (flat, work) in zip(self.plan, self.issued, strict=True):
            work.wait()
            grads = self.grads(bucket)
            for grad, part in zip(grads, flat.split([g.numel() for g in grads]), strict=True):
                grad.copy_(part.view(grad.shape))
        self.begin()


# %% alternate: hooks_on_nodes
# Hooks on the nodes that accumulate gradients, as DDP's reducer has them; and a plan by running sums.
class Buckets:
    def __init__(self, parameters, capacity):
        self.parameters = list(parameters)
        wanted = [n for n, p in enumerate(self.parameters) if p.requires_grad]
        self.plan, room = [], 0
        for n in wanted[::-1]:
            p = self.parameters[n]
            size = p.numel() * p.element_size()
            before = self.parameters[self.plan[-1][0]].dtype if self.plan else None
            if p.dtype == before and size <= room:
                self.plan[-1].append(n)
                room -= size
            else:
                self.plan.append([n])
                room = capacity - size
        self.nodes = []
        for n in wanted:
            p = self.parameters[n]
            node = p.view_as(p).grad_fn.next_functions[0][0]
            node.register_hook(lambda *_, n=n: self.note(n))
            self.nodes.append(node)
        self.there, self.works = set(), []

    def note(self, n):
        self.there.add(n)
        while len(self.works) < len(self.plan) and self.there.issuperset(
            self.plan[len(self.works)]
        ):
            parts = [self.parameters[i].grad.flatten() for i in self.plan[len(self.works)]]
            flat = torch.cat(parts)
            self.works.append((flat, dist.all_reduce(flat, async_op=True)))

    def finish(self):
        if len(self.works) < len(self.plan):
            self.there, self.works = set(), []
            raise RuntimeError
        for bucket, (flat, work) in zip(self.plan, self.works, strict=True):
            work.wait()
            start = 0
            for n in bucket:
                p = self.parameters[n]
                part = flat[start : start + p.numel()] / dist.get_world_size()
                p.grad = part.view(p.shape)
                start += p.numel()
        self.there, self.works = set(), []
