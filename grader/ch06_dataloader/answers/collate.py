# %% blocked: default_collate
# This is the function that you are to write. Ask each sample what it is, and recurse.
def collate(samples):
    return torch.utils.data.default_collate(samples)


# %% blocked: a_loader
# A DataLoader calls torch's own collate for you.
def collate(samples):
    return next(iter(DataLoader(samples, batch_size=len(samples))))


# %% mistake: concatenates
# You concatenate: rows of different samples end up in one dimension, and nobody can tell them apart.
# A batch has a dimension more than a sample, and `torch.stack` makes it.
def collate(samples):
    first = samples[0]
    if isinstance(first, torch.Tensor):
        return torch.cat([torch.atleast_1d(sample) for sample in samples])
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, int):
        return torch.tensor(samples)
    if isinstance(first, float):
        return torch.tensor(samples, dtype=torch.float64)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError
        columns = [collate(list(column)) for column in zip(*samples)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError


# %% mistake: float32
# You leave the dtype of Python floats to `torch.tensor`, which makes `float32` of them. A Python float is
# a `float64`, and the batch is to hold the same number.
def collate(samples):
    first = samples[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(samples)
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, int):
        return torch.tensor(samples)
    if isinstance(first, float):
        return torch.tensor(samples)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError
        columns = [collate(list(column)) for column in zip(*samples)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError


# %% mistake: bool_is_an_int
# Your booleans came out as whole numbers. `isinstance(True, int)` is true: ask for `bool` first, or let
# `torch.tensor` find the dtype.
def collate(samples):
    first = samples[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(samples)
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, int):
        return torch.tensor(samples, dtype=torch.int64)
    if isinstance(first, float):
        return torch.tensor(samples, dtype=torch.float64)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError
        columns = [collate(list(column)) for column in zip(*samples)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError


# %% mistake: all_numbers_float
# You make `float64` of whole numbers. An `int` larger than `2 ** 53` loses digits, and a loss function
# that wants class numbers refuses the batch.
def collate(samples):
    first = samples[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(samples)
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, int):
        return (
            torch.tensor(samples, dtype=torch.float64)
            if type(first) is int
            else torch.tensor(samples)
        )
    if isinstance(first, float):
        return torch.tensor(samples, dtype=torch.float64)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError
        columns = [collate(list(column)) for column in zip(*samples)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError


# %% mistake: no_numpy
# You have no answer for NumPy. A dataset that reads images or tables gives arrays and scalars of it:
# `torch.as_tensor` turns both into tensors.
def collate(samples):
    first = samples[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(samples)
    if isinstance(first, int):
        return torch.tensor(samples)
    if isinstance(first, float):
        return torch.tensor(samples, dtype=torch.float64)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError
        columns = [collate(list(column)) for column in zip(*samples)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError


# %% mistake: arrays_without_scalars
# You handle NumPy's arrays and not its scalars. `np.float32(1)` is no array and no `float`; it is a
# `np.generic`.
def collate(samples):
    first = samples[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(samples)
    if isinstance(first, np.ndarray) and not isinstance(first, (str, bytes)):
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, int):
        return torch.tensor(samples)
    if isinstance(first, float):
        return torch.tensor(samples, dtype=torch.float64)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError
        columns = [collate(list(column)) for column in zip(*samples)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError


# %% mistake: numpy_numbers_are_python_s
# You turn NumPy scalars into Python numbers, and so their dtype is lost: a `np.float32` is not a `float64`.
def collate(samples):
    first = samples[0]
    if isinstance(first, np.generic):
        return collate([sample.item() for sample in samples])
    if isinstance(first, torch.Tensor):
        return torch.stack(samples)
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, int):
        return torch.tensor(samples)
    if isinstance(first, float):
        return torch.tensor(samples, dtype=torch.float64)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError
        columns = [collate(list(column)) for column in zip(*samples)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError


# %% mistake: takes_strings_apart
# A string is a sequence of strings, and you take it apart letter by letter. Ask for `str` and `bytes`
# before you ask for sequences.
def collate(samples):
    first = samples[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(samples)
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, int):
        return torch.tensor(samples)
    if isinstance(first, float):
        return torch.tensor(samples, dtype=torch.float64)
    if isinstance(first, Mapping):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list, str, bytes)):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError
        columns = [collate(list(column)) for column in zip(*samples)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError


# %% mistake: loses_the_name
# A namedtuple came out as a list. It is a tuple with `_fields`: make one of the same class, from the
# columns.
def collate(samples):
    first = samples[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(samples)
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, int):
        return torch.tensor(samples)
    if isinstance(first, float):
        return torch.tensor(samples, dtype=torch.float64)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError
        columns = [collate(list(column)) for column in zip(*samples)]
        return columns
    raise TypeError


# %% mistake: namedtuple_from_a_list
# You call a namedtuple's class with one list. It takes its fields one by one: put a star before the
# columns.
def collate(samples):
    first = samples[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(samples)
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, int):
        return torch.tensor(samples)
    if isinstance(first, float):
        return torch.tensor(samples, dtype=torch.float64)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError
        columns = [collate(list(column)) for column in zip(*samples)]
        return type(first)(columns) if hasattr(first, "_fields") else columns
    raise TypeError


# %% mistake: stops_at_the_shortest
# `zip` stops at the shortest sample, and you lose what the others have more. Nothing raises. Compare the
# lengths first.
def collate(samples):
    first = samples[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(samples)
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, int):
        return torch.tensor(samples)
    if isinstance(first, float):
        return torch.tensor(samples, dtype=torch.float64)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        columns = [collate(list(column)) for column in zip(*samples)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError


# %% mistake: rows_of_numbers
# You make one tensor of lists of numbers. What was asked for is a list with one batch for each place:
# entries at different places may mean different things.
def collate(samples):
    first = samples[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(samples)
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, int):
        return torch.tensor(samples)
    if isinstance(first, float):
        return torch.tensor(samples, dtype=torch.float64)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)) and first and all(type(v) in (int, float) for v in first):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError
        return torch.tensor(samples)
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError
        columns = [collate(list(column)) for column in zip(*samples)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError


# %% mistake: one_level
# You turn containers inside out and leave what is in them as lists. Hand each column to `collate` again.
def collate(samples):
    first = samples[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(samples)
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, int):
        return torch.tensor(samples)
    if isinstance(first, float):
        return torch.tensor(samples, dtype=torch.float64)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: [sample[key] for sample in samples] for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError
        columns = [list(column) for column in zip(*samples)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError


# %% mistake: dict_by_position
# You put mappings together by the order of their values. Two dicts with the same keys may have them in
# different order: look each key up.
def collate(samples):
    first = samples[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(samples)
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, int):
        return torch.tensor(samples)
    if isinstance(first, float):
        return torch.tensor(samples, dtype=torch.float64)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        if any(set(sample) != set(first) for sample in samples):
            raise KeyError
        columns = zip(*(sample.values() for sample in samples))
        return {key: collate(list(column)) for key, column in zip(first, columns)}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError
        columns = [collate(list(column)) for column in zip(*samples)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError


# %% mistake: only_dict
# You ask for `dict`, and other mappings are refused. `collections.abc.Mapping` is what they have in
# common.
def collate(samples):
    first = samples[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(samples)
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, int):
        return torch.tensor(samples)
    if isinstance(first, float):
        return torch.tensor(samples, dtype=torch.float64)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, dict):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError
        columns = [collate(list(column)) for column in zip(*samples)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError


# %% mistake: a_view_of_one
# A batch of one is a view of its sample in your program. Whoever changes the batch in place, to normalise
# it, changes the dataset. Copy, also here.
def collate(samples):
    first = samples[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(samples) if len(samples) > 1 else first[None]
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, int):
        return torch.tensor(samples)
    if isinstance(first, float):
        return torch.tensor(samples, dtype=torch.float64)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError
        columns = [collate(list(column)) for column in zip(*samples)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError


# %% mistake: lists_what_it_cannot_stack
# Where tensors have different shapes you return them in a list. Then the type of a batch depends on its
# samples, and the model fails far from here. Let the error out.
def collate(samples):
    first = samples[0]
    if isinstance(first, torch.Tensor):
        try:
            return torch.stack(samples)
        except RuntimeError:
            return list(samples)
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, int):
        return torch.tensor(samples)
    if isinstance(first, float):
        return torch.tensor(samples, dtype=torch.float64)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError
        columns = [collate(list(column)) for column in zip(*samples)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError


# %% mistake: broadcasts
# You copy each sample into its row of the batch, and assignment broadcasts: a sample of shape (1, 5) fills
# a row of (4, 5). Compare the shapes, or let `torch.stack` do it.
def collate(samples):
    first = samples[0]
    if isinstance(first, torch.Tensor):
        batch = first.new_empty((len(samples), *first.shape))
        for row, sample in enumerate(samples):
            batch[row] = sample
        return batch
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, int):
        return torch.tensor(samples)
    if isinstance(first, float):
        return torch.tensor(samples, dtype=torch.float64)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError
        columns = [collate(list(column)) for column in zip(*samples)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError


# %% mistake: takes_anything
# You return samples of unknown kinds in a list. A `None` from a dataset that could not read a file would
# go on to the model: raise `TypeError`.
def collate(samples):
    first = samples[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(samples)
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return torch.stack([torch.as_tensor(sample) for sample in samples])
    if isinstance(first, int):
        return torch.tensor(samples)
    if isinstance(first, float):
        return torch.tensor(samples, dtype=torch.float64)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise RuntimeError
        columns = [collate(list(column)) for column in zip(*samples)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    return list(samples)


# %% alternate: by_table
# A table from kind to function, asked from the narrow kinds to the wide ones.
def collate(samples):
    def sequence(group):
        if len({len(one) for one in group}) > 1:
            raise RuntimeError("lengths differ")
        columns = tuple(collate([one[at] for one in group]) for at in range(len(group[0])))
        kind = type(group[0])
        return kind._make(columns) if hasattr(kind, "_make") else columns

    def array(group):
        if len({np.shape(one) for one in group}) > 1:
            raise RuntimeError("shapes differ")
        return torch.from_numpy(np.stack(group))

    table = [
        ((str, bytes), tuple),
        (torch.Tensor, lambda group: torch.stack(tuple(group), dim=0)),
        ((np.ndarray, np.generic), array),
        (bool, lambda group: torch.tensor(group, dtype=torch.bool)),
        (int, lambda group: torch.tensor(group, dtype=torch.int64)),
        (float, lambda group: torch.tensor(group, dtype=torch.double)),
        (Mapping, lambda group: {k: collate([one[k] for one in group]) for k in group[0]}),
        ((list, tuple), sequence),
    ]
    for kinds, function in table:
        if isinstance(samples[0], kinds):
            return function(samples)
    raise TypeError(type(samples[0]))


# %% alternate: fills_a_batch
# Allocates the batch and copies each sample into its row.
def collate(samples):
    first = samples[0]
    match first:
        case str() | bytes():
            return samples[:]
        case bool() | int() | float():
            dtype = {bool: torch.bool, int: torch.int64}.get(type(first), torch.float64)
            batch = torch.empty(len(samples), dtype=dtype)
            for row, value in enumerate(samples):
                batch[row] = value
            return batch
        case np.ndarray() | np.generic():
            return collate([torch.as_tensor(sample) for sample in samples])
        case torch.Tensor():
            batch = first.new_empty((len(samples), *first.shape))
            for row, value in enumerate(samples):
                if value.shape != first.shape:
                    raise RuntimeError("shapes differ")
                batch[row] = value
            return batch
        case Mapping():
            return {key: collate([one[key] for one in samples]) for key in first}
        case list() | tuple():
            try:
                columns = [collate(list(column)) for column in zip(*samples, strict=True)]
            except ValueError as error:
                raise RuntimeError("lengths differ") from error
            return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError(f"{type(first)}")
