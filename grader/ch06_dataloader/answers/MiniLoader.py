# %% blocked: the_built_in
# That is the loader that you are to rebuild.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.loader = torch.utils.data.DataLoader(
            dataset,
            batch_sampler=batch_sampler,
            collate_fn=collate_fn,
            num_workers=num_workers,
            prefetch_factor=prefetch_factor,
        )

    def __iter__(self):
        return iter(self.loader)


# %% mistake: completion_order
# You hand out whichever batch is finished first. With one slow sample the epoch's order changes, and
# from run to run. Keep a batch that comes too early until its number is due.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early = {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self.send()

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while not self.early:
            self.receive()
        batch, error = self.early.pop(next(iter(self.early)))
        self.returned += 1
        self.send()
        if error is None:
            return batch
        kind, text = error
        try:
            error = kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error

    def receive(self):
        dead = [worker for worker in self.workers if not worker.is_alive()]
        try:
            number, *outcome = self.results.get(timeout=0.1)
            self.early[number] = outcome
        except queue.Empty:
            if dead:
                self.close()
                raise RuntimeError(f"a worker died (exit code {dead[0].exitcode})") from None
        except (OSError, EOFError):
            self.close()
            raise RuntimeError("a worker died") from None

    def close(self):
        self.returned = self.sent
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for worker in self.workers:
            worker.join()

    def __del__(self):
        self.close()


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, None, (type(error), traceback.format_exc())))
    results.cancel_join_thread()


# %% mistake: reads_the_whole_sampler
# You turn the sampler into a list and send it all at once. A sampler may be endless; and without a
# bound on the lead, a slow consumer finds all the data in memory.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(list(loader.batch_sampler))
        self.sent = self.returned = 0
        self.early = {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        for indices in self.sampler:
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.returned not in self.early:
            self.receive()
        batch, error = self.early.pop(self.returned)
        self.returned += 1
        self.send()
        if error is None:
            return batch
        kind, text = error
        try:
            error = kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error

    def receive(self):
        dead = [worker for worker in self.workers if not worker.is_alive()]
        try:
            number, *outcome = self.results.get(timeout=0.1)
            self.early[number] = outcome
        except queue.Empty:
            if dead:
                self.close()
                raise RuntimeError(f"a worker died (exit code {dead[0].exitcode})") from None
        except (OSError, EOFError):
            self.close()
            raise RuntimeError("a worker died") from None

    def close(self):
        self.returned = self.sent
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for worker in self.workers:
            worker.join()

    def __del__(self):
        self.close()


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, None, (type(error), traceback.format_exc())))
    results.cancel_join_thread()


# %% mistake: one_at_a_time
# You send a batch when it is asked for, and wait for it. The workers take turns at working; it is no
# faster than one process. Send ahead.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early = {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        self.send()
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.returned not in self.early:
            self.receive()
        batch, error = self.early.pop(self.returned)
        self.returned += 1
        if error is None:
            return batch
        kind, text = error
        try:
            error = kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error

    def receive(self):
        dead = [worker for worker in self.workers if not worker.is_alive()]
        try:
            number, *outcome = self.results.get(timeout=0.1)
            self.early[number] = outcome
        except queue.Empty:
            if dead:
                self.close()
                raise RuntimeError(f"a worker died (exit code {dead[0].exitcode})") from None
        except (OSError, EOFError):
            self.close()
            raise RuntimeError("a worker died") from None

    def close(self):
        self.returned = self.sent
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for worker in self.workers:
            worker.join()

    def __del__(self):
        self.close()


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, None, (type(error), traceback.format_exc())))
    results.cancel_join_thread()


# %% mistake: starts_with_the_first_next
# Nothing happens until the first `next`: your workers start then, or get their first tasks then. The time
# between `iter` and the first step, in which a model may still be built, is lost.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early = {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        self.lead = loader.num_workers * loader.prefetch_factor

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        while self.lead:
            self.lead -= 1
            self.send()
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.returned not in self.early:
            self.receive()
        batch, error = self.early.pop(self.returned)
        self.returned += 1
        self.send()
        if error is None:
            return batch
        kind, text = error
        try:
            error = kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error

    def receive(self):
        dead = [worker for worker in self.workers if not worker.is_alive()]
        try:
            number, *outcome = self.results.get(timeout=0.1)
            self.early[number] = outcome
        except queue.Empty:
            if dead:
                self.close()
                raise RuntimeError(f"a worker died (exit code {dead[0].exitcode})") from None
        except (OSError, EOFError):
            self.close()
            raise RuntimeError("a worker died") from None

    def close(self):
        self.returned = self.sent
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for worker in self.workers:
            worker.join()

    def __del__(self):
        self.close()


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, None, (type(error), traceback.format_exc())))
    results.cancel_join_thread()


# %% mistake: first_free_worker
# Your workers share one task queue, and whoever is free takes the next. That balances well, but which
# worker makes a batch is now chance. A queue for each makes it `k % num_workers`.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early = {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue()] * loader.num_workers
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self.send()

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.returned not in self.early:
            self.receive()
        batch, error = self.early.pop(self.returned)
        self.returned += 1
        self.send()
        if error is None:
            return batch
        kind, text = error
        try:
            error = kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error

    def receive(self):
        dead = [worker for worker in self.workers if not worker.is_alive()]
        try:
            number, *outcome = self.results.get(timeout=0.1)
            self.early[number] = outcome
        except queue.Empty:
            if dead:
                self.close()
                raise RuntimeError(f"a worker died (exit code {dead[0].exitcode})") from None
        except (OSError, EOFError):
            self.close()
            raise RuntimeError("a worker died") from None

    def close(self):
        self.returned = self.sent
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for worker in self.workers:
            worker.join()

    def __del__(self):
        self.close()


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, None, (type(error), traceback.format_exc())))
    results.cancel_join_thread()


# %% mistake: collates_in_main
# Your workers fetch, and the main process collates. Stacking is a large part of the work, and now it
# stands in the way of every training step.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early = {}
        self.collate_fn = loader.collate_fn
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self.send()

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.returned not in self.early:
            self.receive()
        batch, error = self.early.pop(self.returned)
        self.returned += 1
        self.send()
        if error is None:
            return self.collate_fn(batch)
        kind, text = error
        try:
            error = kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error

    def receive(self):
        dead = [worker for worker in self.workers if not worker.is_alive()]
        try:
            number, *outcome = self.results.get(timeout=0.1)
            self.early[number] = outcome
        except queue.Empty:
            if dead:
                self.close()
                raise RuntimeError(f"a worker died (exit code {dead[0].exitcode})") from None
        except (OSError, EOFError):
            self.close()
            raise RuntimeError("a worker died") from None

    def close(self):
        self.returned = self.sent
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for worker in self.workers:
            worker.join()

    def __del__(self):
        self.close()


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, [dataset[i] for i in indices], None))
        except Exception as error:
            results.put((number, None, (type(error), traceback.format_exc())))
    results.cancel_join_thread()


# %% mistake: error_ends_the_worker
# An exception in your worker ends it. All that the main process can say is that a worker died; what was
# wrong stood on the worker's stderr. Catch it there, and send a description.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early = {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self.send()

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.returned not in self.early:
            self.receive()
        batch, error = self.early.pop(self.returned)
        self.returned += 1
        self.send()
        if error is None:
            return batch
        kind, text = error
        try:
            error = kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error

    def receive(self):
        dead = [worker for worker in self.workers if not worker.is_alive()]
        try:
            number, *outcome = self.results.get(timeout=0.1)
            self.early[number] = outcome
        except queue.Empty:
            if dead:
                self.close()
                raise RuntimeError(f"a worker died (exit code {dead[0].exitcode})") from None
        except (OSError, EOFError):
            self.close()
            raise RuntimeError("a worker died") from None

    def close(self):
        self.returned = self.sent
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for worker in self.workers:
            worker.join()

    def __del__(self):
        self.close()


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        results.put((number, collate_fn([dataset[i] for i in indices]), None))
    results.cancel_join_thread()


# %% mistake: sends_the_exception
# What you send has no traceback: neither an exception nor its text takes it along, so nobody learns which
# line failed. And an exception whose `__init__` wants two arguments cannot be unpacked at the other end.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early = {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self.send()

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.returned not in self.early:
            self.receive()
        batch, error = self.early.pop(self.returned)
        self.returned += 1
        self.send()
        if error is None:
            return batch
        raise error

    def receive(self):
        dead = [worker for worker in self.workers if not worker.is_alive()]
        try:
            number, *outcome = self.results.get(timeout=0.1)
            self.early[number] = outcome
        except queue.Empty:
            if dead:
                self.close()
                raise RuntimeError(f"a worker died (exit code {dead[0].exitcode})") from None
        except (OSError, EOFError):
            self.close()
            raise RuntimeError("a worker died") from None

    def close(self):
        self.returned = self.sent
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for worker in self.workers:
            worker.join()

    def __del__(self):
        self.close()


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, None, error))
    results.cancel_join_thread()


# %% mistake: raises_out_of_turn
# You raise an error as soon as it arrives. The batches before it, which are fine, are lost or come
# after it, and where the epoch stops depends on timing. Keep the error until its number is due.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early = {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self.send()

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        while self.early.get(self.returned, "nothing") is None:
            self.returned += 1
            self.send()
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.returned not in self.early:
            self.receive()
        batch, error = self.early.pop(self.returned)
        self.returned += 1
        self.send()
        if error is None:
            return batch
        kind, text = error
        try:
            error = kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error

    def receive(self):
        dead = [worker for worker in self.workers if not worker.is_alive()]
        try:
            number, *outcome = self.results.get(timeout=0.1)
            if outcome[1] is None:
                self.early[number] = outcome
            else:
                self.early[number] = None
                kind, text = outcome[1]
                try:
                    raise kind(text)
                except TypeError:
                    raise RuntimeError(text) from None
        except queue.Empty:
            if dead:
                self.close()
                raise RuntimeError(f"a worker died (exit code {dead[0].exitcode})") from None
        except (OSError, EOFError):
            self.close()
            raise RuntimeError("a worker died") from None

    def close(self):
        self.returned = self.sent
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for worker in self.workers:
            worker.join()

    def __del__(self):
        self.close()


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, None, (type(error), traceback.format_exc())))
    results.cancel_join_thread()


# %% mistake: waits_for_the_dead
# You wait for a result without end. When the system kills a worker, for want of memory say, its batch
# never comes, and the training hangs without a word. Wait a moment, look who is alive, wait again.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early = {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self.send()

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.returned not in self.early:
            self.receive()
        batch, error = self.early.pop(self.returned)
        self.returned += 1
        self.send()
        if error is None:
            return batch
        kind, text = error
        try:
            error = kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error

    def receive(self):
        number, *outcome = self.results.get()
        self.early[number] = outcome

    def close(self):
        self.returned = self.sent
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for worker in self.workers:
            worker.join()

    def __del__(self):
        self.close()


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, None, (type(error), traceback.format_exc())))
    results.cancel_join_thread()


# %% mistake: terminates
# You kill the workers. A worker that dies while it writes into the result queue keeps the queue's lock,
# and what it had not yet written to a file is lost. Tell it to stop, and wait for it.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early = {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self.send()

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.returned not in self.early:
            self.receive()
        batch, error = self.early.pop(self.returned)
        self.returned += 1
        self.send()
        if error is None:
            return batch
        kind, text = error
        try:
            error = kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error

    def receive(self):
        dead = [worker for worker in self.workers if not worker.is_alive()]
        try:
            number, *outcome = self.results.get(timeout=0.1)
            self.early[number] = outcome
        except queue.Empty:
            if dead:
                self.close()
                raise RuntimeError(f"a worker died (exit code {dead[0].exitcode})") from None
        except (OSError, EOFError):
            self.close()
            raise RuntimeError("a worker died") from None

    def close(self):
        self.returned = self.sent
        for tasks in self.tasks:
            pass
        for worker in self.workers:
            worker.terminate()
            worker.join()

    def __del__(self):
        self.close()


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, None, (type(error), traceback.format_exc())))
    results.cancel_join_thread()


# %% mistake: leaves_results_behind
# At its exit a process waits until its queue's buffer has gone through the pipe. Nobody reads what is
# left after `close`, so with large batches your worker never ends, and `join` waits for it.
# `results.cancel_join_thread()`, in the worker, lets it go.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early = {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self.send()

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.returned not in self.early:
            self.receive()
        batch, error = self.early.pop(self.returned)
        self.returned += 1
        self.send()
        if error is None:
            return batch
        kind, text = error
        try:
            error = kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error

    def receive(self):
        dead = [worker for worker in self.workers if not worker.is_alive()]
        try:
            number, *outcome = self.results.get(timeout=0.1)
            self.early[number] = outcome
        except queue.Empty:
            if dead:
                self.close()
                raise RuntimeError(f"a worker died (exit code {dead[0].exitcode})") from None
        except (OSError, EOFError):
            self.close()
            raise RuntimeError("a worker died") from None

    def close(self):
        self.returned = self.sent
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for worker in self.workers:
            worker.join()

    def __del__(self):
        self.close()


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, None, (type(error), traceback.format_exc())))


# %% mistake: finishes_all_tasks
# Your workers see the end only when they come to it in their queue, behind all the tasks of the lead.
# They fetch batches that nobody will ever see, and `close` waits for it. Let them look at a flag
# before each batch.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early = {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self.send()

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.returned not in self.early:
            self.receive()
        batch, error = self.early.pop(self.returned)
        self.returned += 1
        self.send()
        if error is None:
            return batch
        kind, text = error
        try:
            error = kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error

    def receive(self):
        dead = [worker for worker in self.workers if not worker.is_alive()]
        try:
            number, *outcome = self.results.get(timeout=0.1)
            self.early[number] = outcome
        except queue.Empty:
            if dead:
                self.close()
                raise RuntimeError(f"a worker died (exit code {dead[0].exitcode})") from None
        except (OSError, EOFError):
            self.close()
            raise RuntimeError("a worker died") from None

    def close(self):
        self.returned = self.sent
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for worker in self.workers:
            worker.join()

    def __del__(self):
        self.close()


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None:
        number, indices = task
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, None, (type(error), traceback.format_exc())))
    results.cancel_join_thread()


# %% mistake: workers_leave_early
# A worker leaves as soon as its last batch is in the queue. But a tensor's memory is fetched from the
# worker that made it, at the moment of `get`. If the worker has gone, `get` fails. Let workers stay until
# the main process has everything.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early = {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self.send()

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1
            return
        for tasks in self.tasks:
            tasks.put(None)

    def __iter__(self):
        return self

    def __next__(self):
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.returned not in self.early:
            self.receive()
        batch, error = self.early.pop(self.returned)
        self.returned += 1
        self.send()
        if error is None:
            return batch
        kind, text = error
        try:
            error = kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error

    def receive(self):
        dead = [worker for worker in self.workers if worker.exitcode]
        try:
            number, *outcome = self.results.get(timeout=0.1)
            self.early[number] = outcome
        except queue.Empty:
            if dead:
                self.close()
                raise RuntimeError(f"a worker died (exit code {dead[0].exitcode})") from None
        except (OSError, EOFError):
            self.close()
            raise RuntimeError("a worker died") from None

    def close(self):
        self.returned = self.sent
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for worker in self.workers:
            worker.join()

    def __del__(self):
        self.close()


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, None, (type(error), traceback.format_exc())))
    if stop.is_set():
        results.cancel_join_thread()


# %% mistake: only_close_ends_it
# Only `close` ends your workers. Who breaks out of a `for` loop has no iterator to close, and its workers
# stay. Let `__del__` close, too.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early = {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self.send()

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.returned not in self.early:
            self.receive()
        batch, error = self.early.pop(self.returned)
        self.returned += 1
        self.send()
        if error is None:
            return batch
        kind, text = error
        try:
            error = kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error

    def receive(self):
        dead = [worker for worker in self.workers if not worker.is_alive()]
        try:
            number, *outcome = self.results.get(timeout=0.1)
            self.early[number] = outcome
        except queue.Empty:
            if dead:
                self.close()
                raise RuntimeError(f"a worker died (exit code {dead[0].exitcode})") from None
        except (OSError, EOFError):
            self.close()
            raise RuntimeError("a worker died") from None

    def close(self):
        self.returned = self.sent
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for worker in self.workers:
            worker.join()


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, None, (type(error), traceback.format_exc())))
    results.cancel_join_thread()


# %% mistake: a_generator_that_never_began
# Your iterator is a generator, whose `finally` ends the workers. A generator that was closed or dropped before
# its first `next` has not come to its `try`, and its `finally` never runs. Write a class with a `close`.
def serve(dataset, collate_fn, tasks, results, stop):
    results.cancel_join_thread()
    for number, indices in iter(tasks.get, None):
        if stop.is_set():
            continue
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, type(error), traceback.format_exc()))


class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.batch_sampler, self.num_workers = batch_sampler, num_workers
        self.work, self.lead = (dataset, collate_fn), num_workers * prefetch_factor

    def __iter__(self):
        context = torch.multiprocessing.get_context("fork")
        results, stop = context.Queue(), context.Event()
        tasks = [context.SimpleQueue() for _ in range(self.num_workers)]
        workers = [
            context.Process(target=serve, args=(*self.work, mine, results, stop), daemon=True)
            for mine in tasks
        ]
        for worker in workers:
            worker.start()
        numbered, sent = enumerate(self.batch_sampler), 0

        def send():
            nonlocal sent
            for number, indices in itertools.islice(numbered, 1):
                tasks[number % self.num_workers].put((number, indices))
                sent += 1

        for _ in range(self.lead):
            send()

        def batches():
            early, due = {}, 0
            try:
                while due < sent:
                    while due not in early:
                        try:
                            number, *answer = results.get(timeout=0.2)
                            early[number] = answer
                        except queue.Empty:
                            if not all(worker.is_alive() for worker in workers):
                                raise RuntimeError("a worker died") from None
                    batch, text = early.pop(due)
                    due += 1
                    send()
                    yield batch, text
            finally:
                stop.set()
                for mine in tasks:
                    mine.put(None)
                for worker in workers:
                    worker.join()

        return Raising(batches())


class Raising:
    """Raises what comes as an error; a generator that raises would be at its end."""

    def __init__(self, answers):
        self.answers, self.close = answers, answers.close

    def __iter__(self):
        return self

    def __next__(self):
        batch, text = next(self.answers)
        if text is None:
            return batch
        try:
            error = batch(text)
        except Exception:
            error = RuntimeError(text)
        raise error


# %% mistake: a_generator_that_raised
# Your iterator is a generator. One that has raised is at its end, so the batches after an error never come; and
# one that is closed before its first `next` has not come to its `try`, and leaves the workers. Write a class.
def serve(dataset, collate_fn, tasks, results, stop):
    results.cancel_join_thread()
    for number, indices in iter(tasks.get, None):
        if stop.is_set():
            continue
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, type(error), traceback.format_exc()))


class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.batch_sampler, self.num_workers = batch_sampler, num_workers
        self.work, self.lead = (dataset, collate_fn), num_workers * prefetch_factor

    def __iter__(self):
        context = torch.multiprocessing.get_context("fork")
        results, stop = context.Queue(), context.Event()
        tasks = [context.SimpleQueue() for _ in range(self.num_workers)]
        workers = [
            context.Process(target=serve, args=(*self.work, mine, results, stop), daemon=True)
            for mine in tasks
        ]
        for worker in workers:
            worker.start()
        numbered, sent = enumerate(self.batch_sampler), 0

        def send():
            nonlocal sent
            for number, indices in itertools.islice(numbered, 1):
                tasks[number % self.num_workers].put((number, indices))
                sent += 1

        for _ in range(self.lead):
            send()

        def batches():
            early, due = {}, 0
            try:
                while due < sent:
                    while due not in early:
                        try:
                            number, *answer = results.get(timeout=0.2)
                            early[number] = answer
                        except queue.Empty:
                            if not all(worker.is_alive() for worker in workers):
                                raise RuntimeError("a worker died") from None
                    batch, text = early.pop(due)
                    due += 1
                    send()
                    if text is None:
                        yield batch
                        continue
                    try:
                        error = batch(text)
                    except Exception:
                        error = RuntimeError(text)
                    raise error
            finally:
                stop.set()
                for mine in tasks:
                    mine.put(None)
                for worker in workers:
                    worker.join()

        return batches()


# %% mistake: threads
# You use threads. They share one interpreter with the training loop, so decoding and augmenting in Python
# take their turns with it; and a sample that brings its process down brings down the training.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.parts = dataset, batch_sampler, collate_fn, num_workers * prefetch_factor

    def __iter__(self):
        return Threads(*self.parts)


class Threads:
    def __init__(self, dataset, batch_sampler, collate_fn, lead):
        self.dataset, self.collate_fn = dataset, collate_fn
        self.sampler, self.running = iter(batch_sampler), []
        for _ in range(lead):
            self.send()

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            found = []
            import threading

            thread = threading.Thread(target=self.fetch, args=(indices, found))
            thread.start()
            self.running.append((thread, found))

    def fetch(self, indices, found):
        try:
            found.extend([self.collate_fn([self.dataset[i] for i in indices]), None])
        except Exception as error:
            found.extend([None, (type(error), traceback.format_exc())])

    def __iter__(self):
        return self

    def __next__(self):
        if not self.running:
            raise StopIteration
        thread, found = self.running.pop(0)
        thread.join()
        self.send()
        batch, error = found
        if error is None:
            return batch
        kind, text = error
        try:
            error = kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error

    def close(self):
        self.running, self.sampler = [], iter(())


# %% mistake: none_is_not_there
# You take None for "not there yet". But `collate_fn` may return None, and then `next` waits for ever. Ask
# whether the number is in the dict.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early, self.errors = {}, {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self.send()

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.early.get(self.returned) is None and self.returned not in self.errors:
            self.receive()
        batch = self.early.pop(self.returned)
        error = self.errors.pop(self.returned, None)
        self.returned += 1
        self.send()
        if error is None:
            return batch

        raise rebuilt(*error)

    def receive(self):

        dead = [worker for worker in self.workers if not worker.is_alive()]
        try:
            number, batch, error = self.results.get(timeout=0.1)
            self.early[number] = batch
            if error is not None:
                self.errors[number] = error
        except queue.Empty:
            if dead:
                self.give_up()
        except (OSError, EOFError):
            self.give_up()

    def give_up(self):
        self.close()
        codes = [worker.exitcode for worker in self.workers]
        raise RuntimeError(f"a worker died; the exit codes are {codes}") from None

    def close(self):
        self.returned = self.sent
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for worker in self.workers:
            worker.join()

    def __del__(self):
        self.close()


def rebuilt(kind, text):
    try:
        return kind(text)
    except Exception:
        return RuntimeError(text)


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, None, (type(error), traceback.format_exc())))
    results.cancel_join_thread()


# %% mistake: no_refill_after_an_error
# A `next` that raises sends nothing out. With each error the lead is one less, and when nothing is under way
# any more, your loader says that the epoch is over.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early = {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self.send()

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.returned not in self.early:
            self.receive()
        batch, error = self.early.pop(self.returned)
        self.returned += 1
        if error is None:
            self.send()
            return batch

        raise rebuilt(*error)

    def receive(self):

        dead = [worker for worker in self.workers if not worker.is_alive()]
        try:
            number, *outcome = self.results.get(timeout=0.1)
            self.early[number] = outcome
        except queue.Empty:
            if dead:
                self.give_up()
        except (OSError, EOFError):
            self.give_up()

    def give_up(self):
        self.close()
        codes = [worker.exitcode for worker in self.workers]
        raise RuntimeError(f"a worker died; the exit codes are {codes}") from None

    def close(self):
        self.returned = self.sent
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for worker in self.workers:
            worker.join()

    def __del__(self):
        self.close()


def rebuilt(kind, text):
    try:
        return kind(text)
    except Exception:
        return RuntimeError(text)


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, None, (type(error), traceback.format_exc())))
    results.cancel_join_thread()


# %% mistake: always_a_runtime_error
# You raise a `RuntimeError` whatever went wrong. Who wants to catch a `KeyError` of the dataset cannot. Send
# the type along.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early = {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self.send()

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.returned not in self.early:
            self.receive()
        batch, error = self.early.pop(self.returned)
        self.returned += 1
        self.send()
        if error is None:
            return batch

        raise RuntimeError(error[1])

    def receive(self):

        dead = [worker for worker in self.workers if not worker.is_alive()]
        try:
            number, *outcome = self.results.get(timeout=0.1)
            self.early[number] = outcome
        except queue.Empty:
            if dead:
                self.give_up()
        except (OSError, EOFError):
            self.give_up()

    def give_up(self):
        self.close()
        codes = [worker.exitcode for worker in self.workers]
        raise RuntimeError(f"a worker died; the exit codes are {codes}") from None

    def close(self):
        self.returned = self.sent
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for worker in self.workers:
            worker.join()

    def __del__(self):
        self.close()


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, None, (type(error), traceback.format_exc())))
    results.cancel_join_thread()


# %% mistake: lets_a_lost_tensor_raise
# A tensor in the queue is fetched from the worker that made it. If that was killed, `get` itself raises an
# `OSError`. It comes out as it is, and the other workers are still at work. Catch it, too.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early = {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self.send()

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.returned not in self.early:
            self.receive()
        batch, error = self.early.pop(self.returned)
        self.returned += 1
        self.send()
        if error is None:
            return batch

        raise rebuilt(*error)

    def receive(self):

        dead = [worker for worker in self.workers if not worker.is_alive()]
        try:
            number, *outcome = self.results.get(timeout=0.1)
            self.early[number] = outcome
        except queue.Empty:
            if dead:
                self.give_up()

    def give_up(self):
        self.close()
        codes = [worker.exitcode for worker in self.workers]
        raise RuntimeError(f"a worker died; the exit codes are {codes}") from None

    def close(self):
        self.returned = self.sent
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for worker in self.workers:
            worker.join()

    def __del__(self):
        self.close()


def rebuilt(kind, text):
    try:
        return kind(text)
    except Exception:
        return RuntimeError(text)


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, None, (type(error), traceback.format_exc())))
    results.cancel_join_thread()


# %% alternate: a_pipe_for_each_worker
# Each worker answers through a pipe of its own. Batch k comes from worker k % n, and a pipe keeps its
# order: nothing can come too early. A full pipe holds its worker up, so at the end pipes are drained.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.parts = dataset, collate_fn
        self.batch_sampler = batch_sampler
        self.num_workers, self.lead = num_workers, num_workers * prefetch_factor

    def __iter__(self):
        return Passing(self)


class Passing:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.workers, self.pipes = [], []
        for _ in range(loader.num_workers):
            ours, theirs = context.Pipe()
            worker = context.Process(target=serve, args=(theirs, *loader.parts))
            worker.start()
            theirs.close()
            self.workers.append(worker)
            self.pipes.append(ours)
        self.sampler = iter(loader.batch_sampler)
        self.under_way = []
        self.next_worker = 0
        for _ in range(loader.lead):
            self.ask()

    def ask(self):
        try:
            indices = next(self.sampler)
        except StopIteration:
            return
        self.pipes[self.next_worker].send(list(indices))
        self.under_way.append(self.next_worker)
        self.next_worker = (self.next_worker + 1) % len(self.pipes)

    def __iter__(self):
        return self

    def __next__(self):
        if not self.under_way:
            self.close()
            raise StopIteration
        number = self.under_way.pop(0)
        try:
            fine, value = self.pipes[number].recv()
        except (EOFError, ConnectionError):
            self.close()
            raise RuntimeError(f"worker {number} died") from None
        self.ask()
        if fine:
            return value
        kind, text = value
        try:
            made = kind(text)
        except TypeError:
            made = RuntimeError(text)
        raise made

    def close(self):
        self.under_way, self.sampler = [], iter(())
        for pipe in self.pipes:
            try:
                pipe.send(None)
            except ConnectionError:
                pass
        for pipe, worker in zip(self.pipes, self.workers):
            while pipe not in wait_for_any([pipe, worker.sentinel]) or drained(pipe):
                if not worker.is_alive():
                    break
            worker.join()
            pipe.close()
        self.pipes, self.workers = [], []

    __del__ = close


def wait_for_any(objects):
    from multiprocessing.connection import wait

    return wait(objects)


def drained(pipe):
    """Read one message that nobody wants; say that there may be more."""
    try:
        pipe.recv_bytes()
    except (EOFError, ConnectionError):
        return False
    return True


def serve(pipe, dataset, collate_fn):
    waiting = []
    while True:
        while not waiting or pipe.poll():
            waiting.append(pipe.recv())
        if None in waiting:
            return
        indices = waiting.pop(0)
        try:
            answer = True, collate_fn([dataset[index] for index in indices])
        except Exception as error:
            answer = False, (type(error), traceback.format_exc())
        pipe.send(answer)


# %% alternate: a_thread_that_receives
# A thread takes results from the queue as they come and files them; `next` waits on a condition.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.dataset, self.batch_sampler, self.collate_fn = dataset, batch_sampler, collate_fn
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor

    def __iter__(self):
        return Batches(self)


class Batches:
    def __init__(self, loader):
        context = torch.multiprocessing.get_context("fork")
        self.sampler = iter(loader.batch_sampler)
        self.sent = self.returned = 0
        self.early = {}
        self.stop, self.results = context.Event(), context.Queue()
        self.tasks = [context.SimpleQueue() for _ in range(loader.num_workers)]
        self.workers = [
            context.Process(
                target=work,
                args=(loader.dataset, loader.collate_fn, tasks, self.results, self.stop),
                daemon=True,
            )
            for tasks in self.tasks
        ]
        for worker in self.workers:
            worker.start()
        import threading

        self.arrived = threading.Condition()
        self.finished = threading.Event()
        args = self.results, self.early, self.workers, self.arrived, self.finished
        self.thread = threading.Thread(target=file_results, args=args, daemon=True)
        self.thread.start()
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self.send()

    def send(self):
        for indices in itertools.islice(self.sampler, 1):
            self.tasks[self.sent % len(self.tasks)].put((self.sent, indices))
            self.sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        if self.returned == self.sent:
            self.close()
            raise StopIteration
        while self.returned not in self.early:
            self.receive()
        batch, error = self.early.pop(self.returned)
        self.returned += 1
        self.send()
        if error is None:
            return batch
        kind, text = error
        try:
            error = kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error

    def receive(self):
        with self.arrived:
            self.arrived.wait_for(lambda: self.returned in self.early or "dead" in self.early)
        if self.returned not in self.early:
            self.close()
            raise RuntimeError("a worker died")

    def close(self):
        self.returned = self.sent
        self.finished.set()
        self.thread.join()
        self.stop.set()
        for tasks in self.tasks:
            tasks.put(None)
        for worker in self.workers:
            worker.join()

    def __del__(self):
        self.close()


def file_results(results, early, workers, arrived, finished):
    while not finished.is_set():
        dead = any(worker.exitcode is not None for worker in workers)
        try:
            number, *outcome = results.get(timeout=0.02)
        except (OSError, EOFError):  # a tensor that was lost with its worker
            number, outcome = "dead", None
        except queue.Empty:
            if not dead:
                continue
            number, outcome = "dead", None
        with arrived:
            early[number] = outcome
            arrived.notify()


def work(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, collate_fn([dataset[i] for i in indices]), None))
        except Exception as error:
            results.put((number, None, (type(error), traceback.format_exc())))
    results.cancel_join_thread()


# %% alternate: waits_for_sentinels
# The main process sleeps until there is a result or a worker has ended, and a finalizer ends the workers.
class MiniLoader:
    def __init__(self, dataset, batch_sampler, collate_fn, num_workers, prefetch_factor=2):
        self.args = dataset, collate_fn
        self.batch_sampler, self.num_workers = batch_sampler, num_workers
        self.lead = num_workers * prefetch_factor

    def __iter__(self):
        return Pass(self)


def end(stop, tasks, workers):
    stop.set()
    for queue_ in tasks:
        queue_.put(None)
    for worker in workers:
        worker.join()


class Pass:
    def __init__(self, loader):
        import weakref

        context = torch.multiprocessing.get_context("fork")
        self.batches = enumerate(loader.batch_sampler)
        self.results, stop = context.Queue(), context.Event()
        self.tasks = [context.Queue() for _ in range(loader.num_workers)]
        self.workers = []
        for tasks in self.tasks:
            args = (*loader.args, tasks, self.results, stop)
            self.workers.append(context.Process(target=serve, args=args, daemon=True))
        for worker in self.workers:
            worker.start()
        self.under_way, self.waiting = [], {}
        self.close = weakref.finalize(self, end, stop, self.tasks, self.workers)
        for _ in range(loader.lead):
            self.hand_out()

    def hand_out(self):
        number, indices = next(self.batches, (None, None))
        if number is not None:
            self.tasks[number % len(self.tasks)].put((number, indices))
            self.under_way.append(number)

    def __iter__(self):
        return self

    def __next__(self):
        from multiprocessing.connection import wait

        if not self.under_way or not self.close.alive:
            self.close()
            raise StopIteration
        due = self.under_way[0]
        while due not in self.waiting:
            ready = wait([self.results._reader, *(w.sentinel for w in self.workers)])
            try:
                if self.results._reader not in ready:
                    raise EOFError
                number, *answer = self.results.get()
            except (OSError, EOFError):
                self.close()
                raise RuntimeError("a worker died") from None
            self.waiting[number] = answer
        kind, value = self.waiting.pop(due)
        self.under_way.pop(0)
        self.hand_out()
        if kind is None:
            return value
        try:
            error = kind(value)
        except Exception:
            error = RuntimeError(value)
        try:
            raise error
        finally:
            del error


def serve(dataset, collate_fn, tasks, results, stop):
    torch.set_num_threads(1)
    results.cancel_join_thread()
    while (task := tasks.get()) is not None and not stop.is_set():
        number, indices = task
        try:
            results.put((number, None, collate_fn([dataset[i] for i in indices])))
        except Exception as error:
            results.put((number, type(error), traceback.format_exc()))
