# %% mistake: counts_after_the_yield
# You count a batch when the next one is asked for. A state that is saved in the loop's body does not
# know of the batch in hand, and after a resume that batch comes a second time.
class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform = dataset, transform
        self.batch_size, self.num_workers = batch_size, num_workers
        self.load_state_dict({"seed": seed, "epoch": 0, "batch": 0})

    def state_dict(self):
        return {"seed": self.seed, "epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.seed, self.epoch, self.batch = state["seed"], state["epoch"], state["batch"]

    def __iter__(self):
        digest = hashlib.sha256(f"order {self.seed} {self.epoch}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        batches = [
            order[first : first + self.batch_size]
            for first in range(self.batch * self.batch_size, len(order), self.batch_size)
        ]
        loader = DataLoader(
            augment(self.dataset, self.transform, self.seed, self.epoch),
            batch_sampler=batches,
            num_workers=self.num_workers,
            multiprocessing_context="fork" if self.num_workers else None,
            generator=generator,
        )
        for batch in loader:
            yield batch
            self.batch += 1
        self.epoch, self.batch = self.epoch + 1, 0


# %% mistake: counts_what_was_drawn
# You count in the sampler, and workers draw ahead of the trainer. After a resume, the batches that were
# under way when you saved are lost. Count what was delivered.
class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform = dataset, transform
        self.batch_size, self.num_workers = batch_size, num_workers
        self.load_state_dict({"seed": seed, "epoch": 0, "batch": 0})

    def state_dict(self):
        return {"seed": self.seed, "epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.seed, self.epoch, self.batch = state["seed"], state["epoch"], state["batch"]

    def __iter__(self):
        digest = hashlib.sha256(f"order {self.seed} {self.epoch}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        batches = [
            order[first : first + self.batch_size]
            for first in range(self.batch * self.batch_size, len(order), self.batch_size)
        ]
        begun, whole = self.batch, batches

        def counted():
            for number, indices in enumerate(whole):
                self.batch = begun + number + 1
                yield indices

        loader = DataLoader(
            augment(self.dataset, self.transform, self.seed, self.epoch),
            batch_sampler=counted(),
            num_workers=self.num_workers,
            multiprocessing_context="fork" if self.num_workers else None,
            generator=generator,
        )
        for batch in loader:
            yield batch
        self.epoch, self.batch = self.epoch + 1, 0


# %% mistake: fetches_and_throws_away
# You go back to the place by running through the batches before it. They come out right, and every sample
# of them was read, decoded and augmented for nothing. Leave them out of the sampler.
class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform = dataset, transform
        self.batch_size, self.num_workers = batch_size, num_workers
        self.load_state_dict({"seed": seed, "epoch": 0, "batch": 0})

    def state_dict(self):
        return {"seed": self.seed, "epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.seed, self.epoch, self.batch = state["seed"], state["epoch"], state["batch"]

    def __iter__(self):
        digest = hashlib.sha256(f"order {self.seed} {self.epoch}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        batches = [
            order[first : first + self.batch_size]
            for first in range(0, len(order), self.batch_size)
        ]
        loader = DataLoader(
            augment(self.dataset, self.transform, self.seed, self.epoch),
            batch_sampler=batches,
            num_workers=self.num_workers,
            multiprocessing_context="fork" if self.num_workers else None,
            generator=generator,
        )
        for batch in itertools.islice(loader, self.batch, None):
            self.batch += 1
            yield batch
        self.epoch, self.batch = self.epoch + 1, 0


# %% mistake: saves_the_order
# Your state holds the samples that are left. It works, and a checkpoint of a large dataset carries
# hundreds of megabytes of indices. They follow from the seed and the epoch.
class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform = dataset, transform
        self.batch_size, self.num_workers = batch_size, num_workers
        self.load_state_dict({"seed": seed, "epoch": 0, "batch": 0})

    def state_dict(self):
        state = {"seed": self.seed, "epoch": self.epoch, "batch": self.batch}
        return {**state, "order": list(range(len(self.dataset)))}

    def load_state_dict(self, state):
        self.seed, self.epoch, self.batch = state["seed"], state["epoch"], state["batch"]

    def __iter__(self):
        digest = hashlib.sha256(f"order {self.seed} {self.epoch}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        batches = [
            order[first : first + self.batch_size]
            for first in range(self.batch * self.batch_size, len(order), self.batch_size)
        ]
        loader = DataLoader(
            augment(self.dataset, self.transform, self.seed, self.epoch),
            batch_sampler=batches,
            num_workers=self.num_workers,
            multiprocessing_context="fork" if self.num_workers else None,
            generator=generator,
        )
        for batch in loader:
            self.batch += 1
            yield batch
        self.epoch, self.batch = self.epoch + 1, 0


# %% mistake: hands_out_its_own_dict
# `state_dict` returns the dict in which you keep count. A state that was saved in memory moves on with the
# loader. Return a copy.
class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform = dataset, transform
        self.batch_size, self.num_workers = batch_size, num_workers
        self.state = {"seed": seed, "epoch": 0, "batch": 0}

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = state

    def __iter__(self):
        digest = hashlib.sha256(
            f"order {self.state['seed']} {self.state['epoch']}".encode()
        ).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        batches = [
            order[first : first + self.batch_size]
            for first in range(self.state["batch"] * self.batch_size, len(order), self.batch_size)
        ]
        loader = DataLoader(
            augment(self.dataset, self.transform, self.state["seed"], self.state["epoch"]),
            batch_sampler=batches,
            num_workers=self.num_workers,
            multiprocessing_context="fork" if self.num_workers else None,
            generator=generator,
        )
        for batch in loader:
            self.state["batch"] += 1
            yield batch
        self.state.update(epoch=self.state["epoch"] + 1, batch=0)


# %% mistake: seed_plus_epoch
# You seed the order with `seed + epoch`. Seed 1 in epoch 0 then has the order of seed 0 in epoch 1: two
# runs that should be independent share all but one of their orders.
class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform = dataset, transform
        self.batch_size, self.num_workers = batch_size, num_workers
        self.load_state_dict({"seed": seed, "epoch": 0, "batch": 0})

    def state_dict(self):
        return {"seed": self.seed, "epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.seed, self.epoch, self.batch = state["seed"], state["epoch"], state["batch"]

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        batches = [
            order[first : first + self.batch_size]
            for first in range(self.batch * self.batch_size, len(order), self.batch_size)
        ]
        loader = DataLoader(
            augment(self.dataset, self.transform, self.seed, self.epoch),
            batch_sampler=batches,
            num_workers=self.num_workers,
            multiprocessing_context="fork" if self.num_workers else None,
            generator=generator,
        )
        for batch in loader:
            self.batch += 1
            yield batch
        self.epoch, self.batch = self.epoch + 1, 0


# %% mistake: one_order_for_all_epochs
# Your order does not depend on the epoch. The samples are shuffled once, and batches that happened to be
# together stay together for ever.
class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform = dataset, transform
        self.batch_size, self.num_workers = batch_size, num_workers
        self.load_state_dict({"seed": seed, "epoch": 0, "batch": 0})

    def state_dict(self):
        return {"seed": self.seed, "epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.seed, self.epoch, self.batch = state["seed"], state["epoch"], state["batch"]

    def __iter__(self):
        digest = hashlib.sha256(f"order {self.seed}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        batches = [
            order[first : first + self.batch_size]
            for first in range(self.batch * self.batch_size, len(order), self.batch_size)
        ]
        loader = DataLoader(
            augment(self.dataset, self.transform, self.seed, self.epoch),
            batch_sampler=batches,
            num_workers=self.num_workers,
            multiprocessing_context="fork" if self.num_workers else None,
            generator=generator,
        )
        for batch in loader:
            self.batch += 1
            yield batch
        self.epoch, self.batch = self.epoch + 1, 0


# %% mistake: one_augmentation_for_all_epochs
# Your epochs differ in their order, and each sample gets the same random numbers in all of them. It is
# augmented once, and then seen again and again.
class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform = dataset, transform
        self.batch_size, self.num_workers = batch_size, num_workers
        self.load_state_dict({"seed": seed, "epoch": 0, "batch": 0})

    def state_dict(self):
        return {"seed": self.seed, "epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.seed, self.epoch, self.batch = state["seed"], state["epoch"], state["batch"]

    def __iter__(self):
        digest = hashlib.sha256(f"order {self.seed} {self.epoch}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        batches = [
            order[first : first + self.batch_size]
            for first in range(self.batch * self.batch_size, len(order), self.batch_size)
        ]
        loader = DataLoader(
            augment(self.dataset, self.transform, self.seed, 0),
            batch_sampler=batches,
            num_workers=self.num_workers,
            multiprocessing_context="fork" if self.num_workers else None,
            generator=generator,
        )
        for batch in loader:
            self.batch += 1
            yield batch
        self.epoch, self.batch = self.epoch + 1, 0


# %% mistake: shuffles_only_the_batches
# You shuffle batches, not samples. The same samples are together in every epoch, and their gradients are
# never averaged with others.
class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform = dataset, transform
        self.batch_size, self.num_workers = batch_size, num_workers
        self.load_state_dict({"seed": seed, "epoch": 0, "batch": 0})

    def state_dict(self):
        return {"seed": self.seed, "epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.seed, self.epoch, self.batch = state["seed"], state["epoch"], state["batch"]

    def __iter__(self):
        digest = hashlib.sha256(f"order {self.seed} {self.epoch}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
        order = list(range(len(self.dataset)))
        batches = [
            order[first : first + self.batch_size]
            for first in range(0, len(order), self.batch_size)
        ]
        turns = torch.randperm(len(batches), generator=generator).tolist()
        batches = [batches[turn] for turn in turns][self.batch :]
        loader = DataLoader(
            augment(self.dataset, self.transform, self.seed, self.epoch),
            batch_sampler=batches,
            num_workers=self.num_workers,
            multiprocessing_context="fork" if self.num_workers else None,
            generator=generator,
        )
        for batch in loader:
            self.batch += 1
            yield batch
        self.epoch, self.batch = self.epoch + 1, 0


# %% mistake: moves_the_global_state
# Each `iter` of a `DataLoader` draws a base seed from the global random stream, even without shuffling.
# After a resume, dropout draws other numbers. Give the loader a generator of its own.
class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform = dataset, transform
        self.batch_size, self.num_workers = batch_size, num_workers
        self.load_state_dict({"seed": seed, "epoch": 0, "batch": 0})

    def state_dict(self):
        return {"seed": self.seed, "epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.seed, self.epoch, self.batch = state["seed"], state["epoch"], state["batch"]

    def __iter__(self):
        digest = hashlib.sha256(f"order {self.seed} {self.epoch}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        batches = [
            order[first : first + self.batch_size]
            for first in range(self.batch * self.batch_size, len(order), self.batch_size)
        ]
        loader = DataLoader(
            augment(self.dataset, self.transform, self.seed, self.epoch),
            batch_sampler=batches,
            num_workers=self.num_workers,
            multiprocessing_context="fork" if self.num_workers else None,
        )
        for batch in loader:
            self.batch += 1
            yield batch
        self.epoch, self.batch = self.epoch + 1, 0


# %% mistake: shuffles_globally
# You draw the order from the global random stream. Whoever resumes has another stream by then, and gets
# another order. Make a generator from the seed and the epoch.
class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform = dataset, transform
        self.batch_size, self.num_workers = batch_size, num_workers
        self.load_state_dict({"seed": seed, "epoch": 0, "batch": 0})

    def state_dict(self):
        return {"seed": self.seed, "epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.seed, self.epoch, self.batch = state["seed"], state["epoch"], state["batch"]

    def __iter__(self):
        digest = hashlib.sha256(f"order {self.seed} {self.epoch}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
        order = torch.randperm(len(self.dataset)).tolist()
        batches = [
            order[first : first + self.batch_size]
            for first in range(self.batch * self.batch_size, len(order), self.batch_size)
        ]
        loader = DataLoader(
            augment(self.dataset, self.transform, self.seed, self.epoch),
            batch_sampler=batches,
            num_workers=self.num_workers,
            multiprocessing_context="fork" if self.num_workers else None,
            generator=generator,
        )
        for batch in loader:
            self.batch += 1
            yield batch
        self.epoch, self.batch = self.epoch + 1, 0


# %% mistake: forgets_the_seed
# Your state has no seed. A loader that was made with another one takes up the position, in another
# order. Samples of this epoch come twice, or not at all.
class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform = dataset, transform
        self.batch_size, self.num_workers = batch_size, num_workers
        self.seed, self.epoch, self.batch = seed, 0, 0

    def state_dict(self):
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.epoch, self.batch = state["epoch"], state["batch"]

    def __iter__(self):
        digest = hashlib.sha256(f"order {self.seed} {self.epoch}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        batches = [
            order[first : first + self.batch_size]
            for first in range(self.batch * self.batch_size, len(order), self.batch_size)
        ]
        loader = DataLoader(
            augment(self.dataset, self.transform, self.seed, self.epoch),
            batch_sampler=batches,
            num_workers=self.num_workers,
            multiprocessing_context="fork" if self.num_workers else None,
            generator=generator,
        )
        for batch in loader:
            self.batch += 1
            yield batch
        self.epoch, self.batch = self.epoch + 1, 0


# %% mistake: keeps_a_generator
# You shuffle with a generator that goes on from epoch to epoch. A new loader's generator is at its
# beginning, so the epoch that you resume has the order of epoch 0. Make it anew for each epoch.
class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform = dataset, transform
        self.batch_size, self.num_workers = batch_size, num_workers
        self.generator = torch.Generator().manual_seed(1000 + seed)
        self.load_state_dict({"seed": seed, "epoch": 0, "batch": 0})

    def state_dict(self):
        return {"seed": self.seed, "epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.seed, self.epoch, self.batch = state["seed"], state["epoch"], state["batch"]

    def __iter__(self):
        generator = self.generator
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        batches = [
            order[first : first + self.batch_size]
            for first in range(self.batch * self.batch_size, len(order), self.batch_size)
        ]
        loader = DataLoader(
            augment(self.dataset, self.transform, self.seed, self.epoch),
            batch_sampler=batches,
            num_workers=self.num_workers,
            multiprocessing_context="fork" if self.num_workers else None,
            generator=generator,
        )
        for batch in loader:
            self.batch += 1
            yield batch
        self.epoch, self.batch = self.epoch + 1, 0


# %% mistake: begins_again_after_a_break
# Your `for` begins at the first batch whenever it is not the first after `load_state_dict`. A `for` that
# was left by `break` has only moved the position: go on from there.
class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform = dataset, transform
        self.batch_size, self.num_workers = batch_size, num_workers
        self.load_state_dict({"seed": seed, "epoch": 0, "batch": 0})

    def state_dict(self):
        return {"seed": self.seed, "epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):
        self.fresh = True
        self.seed, self.epoch, self.batch = state["seed"], state["epoch"], state["batch"]

    def __iter__(self):
        if not self.fresh:
            self.batch = 0
        self.fresh = False
        digest = hashlib.sha256(f"order {self.seed} {self.epoch}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        batches = [
            order[first : first + self.batch_size]
            for first in range(self.batch * self.batch_size, len(order), self.batch_size)
        ]
        loader = DataLoader(
            augment(self.dataset, self.transform, self.seed, self.epoch),
            batch_sampler=batches,
            num_workers=self.num_workers,
            multiprocessing_context="fork" if self.num_workers else None,
            generator=generator,
        )
        for batch in loader:
            self.batch += 1
            yield batch
        self.epoch, self.batch = self.epoch + 1, 0


# %% mistake: the_next_epoch_too_early
# You move on to the next epoch as you deliver the last batch of this one, or leave out an epoch of which
# nothing is left. But its `for` is still on: the loader
# stands at the end of the epoch until the next batch is asked for. A run that counts its epochs by `for` would be
# one ahead after a resume.
class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform = dataset, transform
        self.batch_size, self.num_workers = batch_size, num_workers
        self.seed, self.epoch, self.done = seed, 0, 0

    def __iter__(self):
        digest = hashlib.sha256(f"order {self.seed} {self.epoch}".encode()).digest()
        own = torch.Generator().manual_seed(int.from_bytes(digest[:8]))
        order = torch.randperm(len(self.dataset), generator=own).tolist()
        cuts = range(0, len(order), self.batch_size)
        left = [order[at : at + self.batch_size] for at in cuts][self.done :]
        loader = DataLoader(
            augment(self.dataset, self.transform, self.seed, self.epoch),
            batch_sampler=left,
            num_workers=self.num_workers,
            multiprocessing_context="fork" if self.num_workers else None,
            generator=torch.Generator(),
        )
        for number, batch in enumerate(loader, 1):
            self.done += 1
            if number == len(left):
                self.epoch, self.done = self.epoch + 1, 0
            yield batch

    def state_dict(self):
        return {"seed": self.seed, "epoch": self.epoch, "done": self.done}

    def load_state_dict(self, state):
        self.seed, self.epoch, self.done = state["seed"], state["epoch"], state["done"]


# %% mistake: keeps_the_order_of_an_epoch
# You keep an epoch's order until the epoch ends. A loader that has been used keeps it over `load_state_dict`
# as well, and goes on in an order that belongs to another position. Compute it from the position.
class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform = dataset, transform
        self.batch_size, self.num_workers = batch_size, num_workers
        self.order = None
        self.load_state_dict({"seed": seed, "epoch": 0, "batch": 0})

    def state_dict(self):
        return {"seed": self.seed, "epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):

        self.seed, self.epoch, self.batch = state["seed"], state["epoch"], state["batch"]

    def __iter__(self):
        digest = hashlib.sha256(f"order {self.seed} {self.epoch}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
        if self.order is None:
            self.order = torch.randperm(len(self.dataset), generator=generator).tolist()
        order = self.order
        batches = [
            order[first : first + self.batch_size]
            for first in range(self.batch * self.batch_size, len(order), self.batch_size)
        ]
        loader = DataLoader(
            augment(self.dataset, self.transform, self.seed, self.epoch),
            batch_sampler=batches,
            num_workers=self.num_workers,
            multiprocessing_context="fork" if self.num_workers else None,
            generator=generator,
        )
        for batch in loader:
            self.batch += 1
            yield batch
        self.epoch, self.batch, self.order = self.epoch + 1, 0, None


# %% mistake: augments_with_its_own_seed
# A state brings its seed, and you use it for the order alone. The samples come in the right order, and with
# the random numbers of another run.
class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform, self.own_seed = dataset, transform, seed
        self.batch_size, self.num_workers = batch_size, num_workers
        self.load_state_dict({"seed": seed, "epoch": 0, "batch": 0})

    def state_dict(self):
        return {"seed": self.seed, "epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):

        self.seed, self.epoch, self.batch = state["seed"], state["epoch"], state["batch"]

    def __iter__(self):
        digest = hashlib.sha256(f"order {self.seed} {self.epoch}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        batches = [
            order[first : first + self.batch_size]
            for first in range(self.batch * self.batch_size, len(order), self.batch_size)
        ]
        loader = DataLoader(
            augment(self.dataset, self.transform, self.own_seed, self.epoch),
            batch_sampler=batches,
            num_workers=self.num_workers,
            multiprocessing_context="fork" if self.num_workers else None,
            generator=generator,
        )
        for batch in loader:
            self.batch += 1
            yield batch
        self.epoch, self.batch = self.epoch + 1, 0


# %% mistake: moves_on_in_finally
# You move on to the next epoch in a `finally`, which a `break` runs, too. What was left of the epoch is
# never seen.
class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform = dataset, transform
        self.batch_size, self.num_workers = batch_size, num_workers
        self.load_state_dict({"seed": seed, "epoch": 0, "batch": 0})

    def state_dict(self):
        return {"seed": self.seed, "epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state):

        self.seed, self.epoch, self.batch = state["seed"], state["epoch"], state["batch"]

    def __iter__(self):
        digest = hashlib.sha256(f"order {self.seed} {self.epoch}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        batches = [
            order[first : first + self.batch_size]
            for first in range(self.batch * self.batch_size, len(order), self.batch_size)
        ]
        loader = DataLoader(
            augment(self.dataset, self.transform, self.seed, self.epoch),
            batch_sampler=batches,
            num_workers=self.num_workers,
            multiprocessing_context="fork" if self.num_workers else None,
            generator=generator,
        )
        try:
            for batch in loader:
                self.batch += 1
                yield batch
        finally:
            self.epoch, self.batch = self.epoch + 1, 0


# %% alternate: a_sampler_that_yields_batches
# A batch sampler that starts in the middle, a dataset that is asked for pairs of index and epoch, and a
# position in samples.
class Pairs(Dataset):
    def __init__(self, dataset, transform, seed):
        self.dataset, self.transform, self.seed = dataset, transform, seed

    def __getitem__(self, pair):
        index, epoch = pair
        generator = torch.Generator()
        generator.manual_seed(hash((self.seed, epoch, index)) & 0xFFFF_FFFF_FFFF)
        return self.transform(self.dataset[index], generator)


class Rest:
    def __init__(self, order, epoch, begin, size):
        self.order, self.epoch, self.begin, self.size = order, epoch, begin, size

    def __iter__(self):
        batch = []
        for index in self.order[self.begin :]:
            batch.append((index, self.epoch))
            if len(batch) == self.size:
                yield batch
                batch = []
        if batch:
            yield batch


class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform, self.size, self.workers = (
            dataset,
            transform,
            batch_size,
            num_workers,
        )
        self.place = [seed, 0, 0]

    def state_dict(self):
        return {"place": list(self.place)}

    def load_state_dict(self, state):
        self.place = list(state["place"])

    def __iter__(self):
        seed, epoch, begin = self.place
        generator = torch.Generator()
        generator.manual_seed(hash((seed, epoch, -7)) & 0xFFFF_FFFF)
        keys = torch.rand(len(self.dataset), generator=generator)
        rest = Rest(keys.argsort().tolist(), epoch, begin, self.size)
        extra = {"multiprocessing_context": "fork", "prefetch_factor": 4} if self.workers else {}
        pairs = Pairs(self.dataset, self.transform, seed)
        for batch in DataLoader(
            pairs,
            batch_sampler=rest,
            num_workers=self.workers,
            generator=torch.Generator(),
            **extra,
        ):
            self.place[2] += len(batch)
            yield batch
        self.place = [seed, epoch + 1, 0]


# %% alternate: an_iterator_class
# An iterator that counts in its `__next__`; the global state is put back by hand.
class Pass:
    def __init__(self, owner):
        self.owner = owner
        state = torch.get_rng_state()
        self.batches = iter(owner.loader())
        torch.set_rng_state(state)

    def __iter__(self):
        return self

    def __next__(self):
        state = self.owner.state
        try:
            batch = next(self.batches)
        except StopIteration:
            self.owner.state = {**state, "epoch": state["epoch"] + 1, "batch": 0}
            raise
        self.owner.state = {**state, "batch": state["batch"] + 1}
        return batch


class ResumableLoader:
    def __init__(self, dataset, transform, batch_size, seed, num_workers=0):
        self.dataset, self.transform = dataset, transform
        self.batch_size, self.num_workers = batch_size, num_workers
        self.state = {"seed": seed, "epoch": 0, "batch": 0}

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = state

    def loader(self):
        seed, epoch, done = self.state.values()
        mixed = int(hashlib.md5(repr((seed, epoch)).encode()).hexdigest()[:12], 16)
        order = torch.randperm(len(self.dataset), generator=torch.Generator().manual_seed(mixed))
        batches = list(order.split(self.batch_size))[done:]
        return DataLoader(
            augment(self.dataset, self.transform, seed, epoch),
            batch_sampler=[batch.tolist() for batch in batches],
            num_workers=self.num_workers,
        )

    def __iter__(self):
        return Pass(self)
