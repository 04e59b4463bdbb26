# %% mistake: one_generator_for_all
# Your generator is made once, with the dataset. What a sample gets depends on what was fetched before it,
# and every worker begins with the same copy. Make one for each sample.
def augment(dataset, transform, seed: int, epoch: int) -> Dataset:

    kept = torch.Generator().manual_seed(seed * 1_000_003 + epoch)

    class Augmented(Dataset):
        def __len__(self):
            return len(dataset)

        def __getitem__(self, index):
            return transform(dataset[index], kept)

    return Augmented()


# %% mistake: the_global_generator
# You hand over the global generator. In a worker it is seeded by worker and by epoch, so a sample's
# numbers depend on who fetches it.
def augment(dataset, transform, seed: int, epoch: int) -> Dataset:

    class Augmented(Dataset):
        def __len__(self):
            return len(dataset)

        def __getitem__(self, index):
            generator = torch.default_generator
            return transform(dataset[index], generator)

    return Augmented()


# %% mistake: seeds_the_global_generator
# You seed the global generator for each sample and hand it over. The samples come out right. But whoever
# draws from it next, dropout say, draws the same numbers at every step.
def augment(dataset, transform, seed: int, epoch: int) -> Dataset:

    class Augmented(Dataset):
        def __len__(self):
            return len(dataset)

        def __getitem__(self, index):
            digest = hashlib.sha256(f"{seed} {epoch} {index}".encode()).digest()
            generator = torch.default_generator.manual_seed(int.from_bytes(digest[:7]))
            return transform(dataset[index], generator)

    return Augmented()


# %% mistake: the_sum
# You seed with `seed + epoch + index`. Sample 3 of epoch 1 gets what sample 2 of epoch 2 gets: the same
# crops walk through the dataset, one sample further each epoch.
def augment(dataset, transform, seed: int, epoch: int) -> Dataset:

    class Augmented(Dataset):
        def __len__(self):
            return len(dataset)

        def __getitem__(self, index):
            generator = torch.Generator().manual_seed(seed + epoch + index)
            return transform(dataset[index], generator)

    return Augmented()


# %% mistake: rooms_too_small
# You give the index a thousand places, and the epoch a thousand. Sample 1000 of epoch 0 is then sample 0 of
# epoch 1. No arithmetic has room for all three; a hash needs none.
def augment(dataset, transform, seed: int, epoch: int) -> Dataset:

    class Augmented(Dataset):
        def __len__(self):
            return len(dataset)

        def __getitem__(self, index):
            generator = torch.Generator().manual_seed(
                ((seed * 1000 + epoch) * 1000 + index) % 2**63
            )
            return transform(dataset[index], generator)

    return Augmented()


# %% mistake: rooms_above_the_32nd_bit
# You give each of the three its own bits of the seed. The CPU's generator looks at the lower 32 only, and
# there stands the index: all seeds and epochs are alike. Mix them by a hash.
def augment(dataset, transform, seed: int, epoch: int) -> Dataset:

    class Augmented(Dataset):
        def __len__(self):
            return len(dataset)

        def __getitem__(self, index):
            generator = torch.Generator().manual_seed(
                (seed % 2**15 << 48) + (epoch % 2**16 << 32) + index
            )
            return transform(dataset[index], generator)

    return Augmented()


# %% mistake: no_spaces
# You hash the digits without anything between them. Epoch 1, index 11 and epoch 11, index 1 are the same
# text.
def augment(dataset, transform, seed: int, epoch: int) -> Dataset:

    class Augmented(Dataset):
        def __len__(self):
            return len(dataset)

        def __getitem__(self, index):
            digest = hashlib.sha256(f"{seed}{epoch}{index}".encode()).digest()
            generator = torch.Generator().manual_seed(int.from_bytes(digest[:8]))
            return transform(dataset[index], generator)

    return Augmented()


# %% mistake: hash_of_a_text
# You seed with Python's `hash` of a text. Each run of Python salts it anew, and so does each worker that is
# not forked: tomorrow the same seed gives other numbers. A hash of `hashlib` stays what it is.
def augment(dataset, transform, seed, epoch):
    class Augmented(Dataset):
        def __len__(self):
            return len(dataset)

        def __getitem__(self, index):
            own = torch.Generator().manual_seed(hash(f"{seed} {epoch} {index}"))
            return transform(dataset[index], own)

    return Augmented()


# %% mistake: without_the_epoch
# Your numbers do not depend on the epoch. Every sample is augmented in one way, for the whole training.
def augment(dataset, transform, seed: int, epoch: int) -> Dataset:

    class Augmented(Dataset):
        def __len__(self):
            return len(dataset)

        def __getitem__(self, index):
            digest = hashlib.sha256(f"{seed} {index}".encode()).digest()
            generator = torch.Generator().manual_seed(int.from_bytes(digest[:8]))
            return transform(dataset[index], generator)

    return Augmented()


# %% mistake: all_at_once
# You go through the whole dataset when yours is made. The numbers are right, and the memory is full before
# the first batch. Fetch and transform in `__getitem__`.
def augment(dataset, transform, seed: int, epoch: int) -> Dataset:

    class Augmented(Dataset):
        def __len__(self):
            return len(dataset)

        def __getitem__(self, index):
            digest = hashlib.sha256(f"{seed} {epoch} {index}".encode()).digest()
            generator = torch.Generator().manual_seed(int.from_bytes(digest[:8]))
            return transform(dataset[index], generator)

    lazy = Augmented()
    return [lazy[index] for index in range(len(dataset))]


# %% alternate: a_seed_sequence
# Python's own hash of a tuple of integers, and a class outside of the function.
class PerSample(Dataset):
    def __init__(self, *parts):
        self.dataset, self.transform, self.seed, self.epoch = parts

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        own = torch.Generator()
        own.manual_seed(hash((self.seed, self.epoch, index, 12345)) % 2**64)
        return self.transform(self.dataset[index], own)


def augment(dataset, transform, seed, epoch):
    return PerSample(dataset, transform, seed, epoch)


# %% alternate: python_seeds_torch
# Python's `random.Random` mixes a text by SHA-512, in every process alike; a class made in the function.
def augment(dataset, transform, seed, epoch):
    class Augmented:
        def __len__(_):
            return len(dataset)

        def __getitem__(_, index):
            mixer = random.Random(repr((seed, epoch, int(index))))
            return transform(dataset[index], torch.Generator().manual_seed(mixer.getrandbits(63)))

    return Augmented()


# %% alternate: a_chain_of_generators
# Each number seeds a generator that scrambles the next.
def augment(dataset, transform, seed, epoch):
    def scramble(number, salt):
        state = (number + salt) % 2**64
        for _ in range(3):
            state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
            state = (state ^ (state >> 27)) * 0x94D049BB133111EB % 2**64
            state ^= state >> 31
        return state

    class PerSample(Dataset):
        def __len__(self):
            return len(dataset)

        def __getitem__(self, index):
            mixed = scramble(index, scramble(epoch, scramble(seed, 0x9E3779B97F4A7C15)))
            generator = torch.Generator()
            generator.manual_seed(mixed)
            return transform(dataset[index], generator)

    return PerSample()
