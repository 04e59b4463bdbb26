# %% blocked: as_strided
# `as_strided` makes any view that there is. Compute size, stride and offset yourself, over a list.
class StridedTensor:
    def __init__(self, storage, size, stride, offset=0):
        self.tensor = torch.tensor(storage).as_strided(size, stride, offset)
        self.storage, self.offset = storage, offset
        self.size, self.stride = size, stride

    def tolist(self):
        return self.tensor.tolist()


# %% mistake: slices_copied
# Slicing gave you a new list, as it does with Python's own lists. A slice of a tensor is a view: the
# same list under another size, stride and offset. Otherwise a write through it is seen by nobody.
class StridedTensor:
    def __init__(self, storage, size, stride, offset=0):
        self.storage, self.offset = storage, offset
        self.size, self.stride = tuple(size), tuple(stride)

    def cells(self):
        cells = [self.offset]
        for n, step in zip(self.size, self.stride):
            cells = [cell + i * step for cell in cells for i in range(n)]
        return cells

    def item(self):
        return self.storage[self.offset]

    def tolist(self):
        if not self.size:
            return self.item()
        return [self[i].tolist() for i in range(self.size[0])]

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        left = len(self.size) - sum(part is not None and part is not ... for part in index)
        if left < 0:
            raise IndexError("too many indices")
        if ... not in index:
            index = (*index, ...)
        size, stride, offset, dim = [], [], self.offset, 0
        for part in index:
            if part is ...:
                size += self.size[dim : dim + left]
                stride += self.stride[dim : dim + left]
                dim += left
            elif part is None:
                size.append(1)
                stride.append(0)
            elif isinstance(part, slice):
                first, last, step = part.indices(self.size[dim])
                if step < 1:
                    raise ValueError("steps must be positive")
                size.append(len(range(first, last, step)))
                stride.append(self.stride[dim] * step)
                offset += first * self.stride[dim]
                dim += 1
            else:
                n = self.size[dim]
                if not -n <= part < n:
                    raise IndexError("index out of range")
                offset += part % n * self.stride[dim]
                dim += 1
        view = StridedTensor(self.storage, size, stride, offset)
        if not any(isinstance(part, slice) for part in index):
            return view
        numbers = [self.storage[cell] for cell in view.cells()]
        strides = [prod(size[dim + 1 :]) for dim in range(len(size))]
        return StridedTensor(numbers, size, strides)

    def __setitem__(self, index, value):
        target = self[index]
        cells = target.cells()
        if isinstance(value, StridedTensor):
            value = value.expand(*target.size)
            numbers = [value.storage[cell] for cell in value.cells()]
        else:
            numbers = [value] * len(cells)
        for cell, number in zip(cells, numbers):
            self.storage[cell] = number

    def transpose(self, a, b):
        size, stride = list(self.size), list(self.stride)
        size[a], size[b] = size[b], size[a]
        stride[a], stride[b] = stride[b], stride[a]
        return StridedTensor(self.storage, size, stride, self.offset)

    def expand(self, *size):
        new = len(size) - len(self.size)
        if new < 0:
            raise ValueError("fewer dimensions than there are")
        stride = [0] * new
        for want, have, step in zip(size[new:], self.size, self.stride):
            if have not in (want, 1):
                raise ValueError("only sizes of 1 can be expanded")
            stride.append(step if have == want else 0)
        return StridedTensor(self.storage, size, stride, self.offset)

    def view(self, *size):
        if prod(size) != prod(self.size):
            raise ValueError("another number of elements")
        if 0 in size:
            return StridedTensor(self.storage, size, [0] * len(size), self.offset)
        runs = []
        for n, step in zip(self.size, self.stride):
            if runs and runs[-1][1] == n * step:
                runs[-1] = (runs[-1][0] * n, step)
            elif n > 1:
                runs.append((n, step))
        stride, room, step = [], 1, 1
        for n in reversed(size):
            if room == 1 and n > 1:
                room, step = runs.pop()
            if room % n:
                raise ValueError("not a view")
            stride.insert(0, step)
            room, step = room // n, step * n
        return StridedTensor(self.storage, size, stride, self.offset)

    def reshape(self, *size):
        try:
            return self.view(*size)
        except ValueError:
            numbers = [self.storage[cell] for cell in self.cells()]
            return StridedTensor(numbers, [len(numbers)], [1]).view(*size)


# %% mistake: offset_forgotten
# You begin to count at cell 0 of the list. A view begins at its own offset, and a view of a view adds
# to that.
class StridedTensor:
    def __init__(self, storage, size, stride, offset=0):
        self.storage, self.offset = storage, offset
        self.size, self.stride = tuple(size), tuple(stride)

    def cells(self):
        cells = [self.offset]
        for n, step in zip(self.size, self.stride):
            cells = [cell + i * step for cell in cells for i in range(n)]
        return cells

    def item(self):
        return self.storage[self.offset]

    def tolist(self):
        if not self.size:
            return self.item()
        return [self[i].tolist() for i in range(self.size[0])]

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        left = len(self.size) - sum(part is not None and part is not ... for part in index)
        if left < 0:
            raise IndexError("too many indices")
        if ... not in index:
            index = (*index, ...)
        size, stride, offset, dim = [], [], 0, 0
        for part in index:
            if part is ...:
                size += self.size[dim : dim + left]
                stride += self.stride[dim : dim + left]
                dim += left
            elif part is None:
                size.append(1)
                stride.append(0)
            elif isinstance(part, slice):
                first, last, step = part.indices(self.size[dim])
                if step < 1:
                    raise ValueError("steps must be positive")
                size.append(len(range(first, last, step)))
                stride.append(self.stride[dim] * step)
                offset += first * self.stride[dim]
                dim += 1
            else:
                n = self.size[dim]
                if not -n <= part < n:
                    raise IndexError("index out of range")
                offset += part % n * self.stride[dim]
                dim += 1
        return StridedTensor(self.storage, size, stride, offset)

    def __setitem__(self, index, value):
        target = self[index]
        cells = target.cells()
        if isinstance(value, StridedTensor):
            value = value.expand(*target.size)
            numbers = [value.storage[cell] for cell in value.cells()]
        else:
            numbers = [value] * len(cells)
        for cell, number in zip(cells, numbers):
            self.storage[cell] = number

    def transpose(self, a, b):
        size, stride = list(self.size), list(self.stride)
        size[a], size[b] = size[b], size[a]
        stride[a], stride[b] = stride[b], stride[a]
        return StridedTensor(self.storage, size, stride, self.offset)

    def expand(self, *size):
        new = len(size) - len(self.size)
        if new < 0:
            raise ValueError("fewer dimensions than there are")
        stride = [0] * new
        for want, have, step in zip(size[new:], self.size, self.stride):
            if have not in (want, 1):
                raise ValueError("only sizes of 1 can be expanded")
            stride.append(step if have == want else 0)
        return StridedTensor(self.storage, size, stride, self.offset)

    def view(self, *size):
        if prod(size) != prod(self.size):
            raise ValueError("another number of elements")
        if 0 in size:
            return StridedTensor(self.storage, size, [0] * len(size), self.offset)
        runs = []
        for n, step in zip(self.size, self.stride):
            if runs and runs[-1][1] == n * step:
                runs[-1] = (runs[-1][0] * n, step)
            elif n > 1:
                runs.append((n, step))
        stride, room, step = [], 1, 1
        for n in reversed(size):
            if room == 1 and n > 1:
                room, step = runs.pop()
            if room % n:
                raise ValueError("not a view")
            stride.insert(0, step)
            room, step = room // n, step * n
        return StridedTensor(self.storage, size, stride, self.offset)

    def reshape(self, *size):
        try:
            return self.view(*size)
        except ValueError:
            numbers = [self.storage[cell] for cell in self.cells()]
            return StridedTensor(numbers, [len(numbers)], [1]).view(*size)


# %% mistake: step_forgotten
# You took the step of a slice into account for the size and not for the stride. With `::2` the next
# element is two of the old steps away.
class StridedTensor:
    def __init__(self, storage, size, stride, offset=0):
        self.storage, self.offset = storage, offset
        self.size, self.stride = tuple(size), tuple(stride)

    def cells(self):
        cells = [self.offset]
        for n, step in zip(self.size, self.stride):
            cells = [cell + i * step for cell in cells for i in range(n)]
        return cells

    def item(self):
        return self.storage[self.offset]

    def tolist(self):
        if not self.size:
            return self.item()
        return [self[i].tolist() for i in range(self.size[0])]

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        left = len(self.size) - sum(part is not None and part is not ... for part in index)
        if left < 0:
            raise IndexError("too many indices")
        if ... not in index:
            index = (*index, ...)
        size, stride, offset, dim = [], [], self.offset, 0
        for part in index:
            if part is ...:
                size += self.size[dim : dim + left]
                stride += self.stride[dim : dim + left]
                dim += left
            elif part is None:
                size.append(1)
                stride.append(0)
            elif isinstance(part, slice):
                first, last, step = part.indices(self.size[dim])
                if step < 1:
                    raise ValueError("steps must be positive")
                size.append(len(range(first, last, step)))
                stride.append(self.stride[dim])
                offset += first * self.stride[dim]
                dim += 1
            else:
                n = self.size[dim]
                if not -n <= part < n:
                    raise IndexError("index out of range")
                offset += part % n * self.stride[dim]
                dim += 1
        return StridedTensor(self.storage, size, stride, offset)

    def __setitem__(self, index, value):
        target = self[index]
        cells = target.cells()
        if isinstance(value, StridedTensor):
            value = value.expand(*target.size)
            numbers = [value.storage[cell] for cell in value.cells()]
        else:
            numbers = [value] * len(cells)
        for cell, number in zip(cells, numbers):
            self.storage[cell] = number

    def transpose(self, a, b):
        size, stride = list(self.size), list(self.stride)
        size[a], size[b] = size[b], size[a]
        stride[a], stride[b] = stride[b], stride[a]
        return StridedTensor(self.storage, size, stride, self.offset)

    def expand(self, *size):
        new = len(size) - len(self.size)
        if new < 0:
            raise ValueError("fewer dimensions than there are")
        stride = [0] * new
        for want, have, step in zip(size[new:], self.size, self.stride):
            if have not in (want, 1):
                raise ValueError("only sizes of 1 can be expanded")
            stride.append(step if have == want else 0)
        return StridedTensor(self.storage, size, stride, self.offset)

    def view(self, *size):
        if prod(size) != prod(self.size):
            raise ValueError("another number of elements")
        if 0 in size:
            return StridedTensor(self.storage, size, [0] * len(size), self.offset)
        runs = []
        for n, step in zip(self.size, self.stride):
            if runs and runs[-1][1] == n * step:
                runs[-1] = (runs[-1][0] * n, step)
            elif n > 1:
                runs.append((n, step))
        stride, room, step = [], 1, 1
        for n in reversed(size):
            if room == 1 and n > 1:
                room, step = runs.pop()
            if room % n:
                raise ValueError("not a view")
            stride.insert(0, step)
            room, step = room // n, step * n
        return StridedTensor(self.storage, size, stride, self.offset)

    def reshape(self, *size):
        try:
            return self.view(*size)
        except ValueError:
            numbers = [self.storage[cell] for cell in self.cells()]
            return StridedTensor(numbers, [len(numbers)], [1]).view(*size)


# %% mistake: python_negatives
# You multiplied a negative number with the stride as it is. That leads to a cell before the first, and
# Python's list takes it without complaint, from its own end. Add the size first, and refuse what is
# out of range.
class StridedTensor:
    def __init__(self, storage, size, stride, offset=0):
        self.storage, self.offset = storage, offset
        self.size, self.stride = tuple(size), tuple(stride)

    def cells(self):
        cells = [self.offset]
        for n, step in zip(self.size, self.stride):
            cells = [cell + i * step for cell in cells for i in range(n)]
        return cells

    def item(self):
        return self.storage[self.offset]

    def tolist(self):
        if not self.size:
            return self.item()
        return [self[i].tolist() for i in range(self.size[0])]

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        left = len(self.size) - sum(part is not None and part is not ... for part in index)
        if left < 0:
            raise IndexError("too many indices")
        if ... not in index:
            index = (*index, ...)
        size, stride, offset, dim = [], [], self.offset, 0
        for part in index:
            if part is ...:
                size += self.size[dim : dim + left]
                stride += self.stride[dim : dim + left]
                dim += left
            elif part is None:
                size.append(1)
                stride.append(0)
            elif isinstance(part, slice):
                first, last, step = part.indices(self.size[dim])
                if step < 1:
                    raise ValueError("steps must be positive")
                size.append(len(range(first, last, step)))
                stride.append(self.stride[dim] * step)
                offset += first * self.stride[dim]
                dim += 1
            else:
                offset += part * self.stride[dim]
                if offset >= len(self.storage):
                    raise IndexError("index out of range")
                dim += 1
        return StridedTensor(self.storage, size, stride, offset)

    def __setitem__(self, index, value):
        target = self[index]
        cells = target.cells()
        if isinstance(value, StridedTensor):
            value = value.expand(*target.size)
            numbers = [value.storage[cell] for cell in value.cells()]
        else:
            numbers = [value] * len(cells)
        for cell, number in zip(cells, numbers):
            self.storage[cell] = number

    def transpose(self, a, b):
        size, stride = list(self.size), list(self.stride)
        size[a], size[b] = size[b], size[a]
        stride[a], stride[b] = stride[b], stride[a]
        return StridedTensor(self.storage, size, stride, self.offset)

    def expand(self, *size):
        new = len(size) - len(self.size)
        if new < 0:
            raise ValueError("fewer dimensions than there are")
        stride = [0] * new
        for want, have, step in zip(size[new:], self.size, self.stride):
            if have not in (want, 1):
                raise ValueError("only sizes of 1 can be expanded")
            stride.append(step if have == want else 0)
        return StridedTensor(self.storage, size, stride, self.offset)

    def view(self, *size):
        if prod(size) != prod(self.size):
            raise ValueError("another number of elements")
        if 0 in size:
            return StridedTensor(self.storage, size, [0] * len(size), self.offset)
        runs = []
        for n, step in zip(self.size, self.stride):
            if runs and runs[-1][1] == n * step:
                runs[-1] = (runs[-1][0] * n, step)
            elif n > 1:
                runs.append((n, step))
        stride, room, step = [], 1, 1
        for n in reversed(size):
            if room == 1 and n > 1:
                room, step = runs.pop()
            if room % n:
                raise ValueError("not a view")
            stride.insert(0, step)
            room, step = room // n, step * n
        return StridedTensor(self.storage, size, stride, self.offset)

    def reshape(self, *size):
        try:
            return self.view(*size)
        except ValueError:
            numbers = [self.storage[cell] for cell in self.cells()]
            return StridedTensor(numbers, [len(numbers)], [1]).view(*size)


# %% mistake: view_wants_contiguous
# You let `view` work on row-major tensors only. It needs less: each run of dimensions that can be merged
# may be cut anew. A permuted tensor can be viewed in many ways, and so can a slice.
class StridedTensor:
    def __init__(self, storage, size, stride, offset=0):
        self.storage, self.offset = storage, offset
        self.size, self.stride = tuple(size), tuple(stride)

    def cells(self):
        cells = [self.offset]
        for n, step in zip(self.size, self.stride):
            cells = [cell + i * step for cell in cells for i in range(n)]
        return cells

    def item(self):
        return self.storage[self.offset]

    def tolist(self):
        if not self.size:
            return self.item()
        return [self[i].tolist() for i in range(self.size[0])]

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        left = len(self.size) - sum(part is not None and part is not ... for part in index)
        if left < 0:
            raise IndexError("too many indices")
        if ... not in index:
            index = (*index, ...)
        size, stride, offset, dim = [], [], self.offset, 0
        for part in index:
            if part is ...:
                size += self.size[dim : dim + left]
                stride += self.stride[dim : dim + left]
                dim += left
            elif part is None:
                size.append(1)
                stride.append(0)
            elif isinstance(part, slice):
                first, last, step = part.indices(self.size[dim])
                if step < 1:
                    raise ValueError("steps must be positive")
                size.append(len(range(first, last, step)))
                stride.append(self.stride[dim] * step)
                offset += first * self.stride[dim]
                dim += 1
            else:
                n = self.size[dim]
                if not -n <= part < n:
                    raise IndexError("index out of range")
                offset += part % n * self.stride[dim]
                dim += 1
        return StridedTensor(self.storage, size, stride, offset)

    def __setitem__(self, index, value):
        target = self[index]
        cells = target.cells()
        if isinstance(value, StridedTensor):
            value = value.expand(*target.size)
            numbers = [value.storage[cell] for cell in value.cells()]
        else:
            numbers = [value] * len(cells)
        for cell, number in zip(cells, numbers):
            self.storage[cell] = number

    def transpose(self, a, b):
        size, stride = list(self.size), list(self.stride)
        size[a], size[b] = size[b], size[a]
        stride[a], stride[b] = stride[b], stride[a]
        return StridedTensor(self.storage, size, stride, self.offset)

    def expand(self, *size):
        new = len(size) - len(self.size)
        if new < 0:
            raise ValueError("fewer dimensions than there are")
        stride = [0] * new
        for want, have, step in zip(size[new:], self.size, self.stride):
            if have not in (want, 1):
                raise ValueError("only sizes of 1 can be expanded")
            stride.append(step if have == want else 0)
        return StridedTensor(self.storage, size, stride, self.offset)

    def view(self, *size):
        if prod(size) != prod(self.size):
            raise ValueError("another number of elements")
        if 0 in size:
            return StridedTensor(self.storage, size, [0] * len(size), self.offset)
        inner = 1
        for n, step in zip(reversed(self.size), reversed(self.stride)):
            if n > 1 and step != inner:
                raise ValueError("not contiguous")
            inner *= n
        runs = []
        for n, step in zip(self.size, self.stride):
            if runs and runs[-1][1] == n * step:
                runs[-1] = (runs[-1][0] * n, step)
            elif n > 1:
                runs.append((n, step))
        stride, room, step = [], 1, 1
        for n in reversed(size):
            if room == 1 and n > 1:
                room, step = runs.pop()
            if room % n:
                raise ValueError("not a view")
            stride.insert(0, step)
            room, step = room // n, step * n
        return StridedTensor(self.storage, size, stride, self.offset)

    def reshape(self, *size):
        try:
            return self.view(*size)
        except ValueError:
            numbers = [self.storage[cell] for cell in self.cells()]
            return StridedTensor(numbers, [len(numbers)], [1]).view(*size)


# %% mistake: view_reads_on
# Your `view` takes row-major strides for the new size. That is right only where the old strides were
# row-major. A permuted tensor so shows its elements in the order of the list, not in its own.
class StridedTensor:
    def __init__(self, storage, size, stride, offset=0):
        self.storage, self.offset = storage, offset
        self.size, self.stride = tuple(size), tuple(stride)

    def cells(self):
        cells = [self.offset]
        for n, step in zip(self.size, self.stride):
            cells = [cell + i * step for cell in cells for i in range(n)]
        return cells

    def item(self):
        return self.storage[self.offset]

    def tolist(self):
        if not self.size:
            return self.item()
        return [self[i].tolist() for i in range(self.size[0])]

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        left = len(self.size) - sum(part is not None and part is not ... for part in index)
        if left < 0:
            raise IndexError("too many indices")
        if ... not in index:
            index = (*index, ...)
        size, stride, offset, dim = [], [], self.offset, 0
        for part in index:
            if part is ...:
                size += self.size[dim : dim + left]
                stride += self.stride[dim : dim + left]
                dim += left
            elif part is None:
                size.append(1)
                stride.append(0)
            elif isinstance(part, slice):
                first, last, step = part.indices(self.size[dim])
                if step < 1:
                    raise ValueError("steps must be positive")
                size.append(len(range(first, last, step)))
                stride.append(self.stride[dim] * step)
                offset += first * self.stride[dim]
                dim += 1
            else:
                n = self.size[dim]
                if not -n <= part < n:
                    raise IndexError("index out of range")
                offset += part % n * self.stride[dim]
                dim += 1
        return StridedTensor(self.storage, size, stride, offset)

    def __setitem__(self, index, value):
        target = self[index]
        cells = target.cells()
        if isinstance(value, StridedTensor):
            value = value.expand(*target.size)
            numbers = [value.storage[cell] for cell in value.cells()]
        else:
            numbers = [value] * len(cells)
        for cell, number in zip(cells, numbers):
            self.storage[cell] = number

    def transpose(self, a, b):
        size, stride = list(self.size), list(self.stride)
        size[a], size[b] = size[b], size[a]
        stride[a], stride[b] = stride[b], stride[a]
        return StridedTensor(self.storage, size, stride, self.offset)

    def expand(self, *size):
        new = len(size) - len(self.size)
        if new < 0:
            raise ValueError("fewer dimensions than there are")
        stride = [0] * new
        for want, have, step in zip(size[new:], self.size, self.stride):
            if have not in (want, 1):
                raise ValueError("only sizes of 1 can be expanded")
            stride.append(step if have == want else 0)
        return StridedTensor(self.storage, size, stride, self.offset)

    def view(self, *size):
        if prod(size) != prod(self.size):
            raise ValueError("another number of elements")
        if 0 in size:
            return StridedTensor(self.storage, size, [0] * len(size), self.offset)
        runs = []
        for n, step in zip(self.size, self.stride):
            if runs and runs[-1][1] == n * step:
                runs[-1] = (runs[-1][0] * n, step)
            elif n > 1:
                runs.append((n, step))
        stride, room, step = [], 1, 1
        for n in reversed(size):
            if room == 1 and n > 1:
                room, step = runs.pop()
            stride.insert(0, prod(size[len(size) - len(stride) :]))
            room = 2
        return StridedTensor(self.storage, size, stride, self.offset)

    def reshape(self, *size):
        try:
            return self.view(*size)
        except ValueError:
            numbers = [self.storage[cell] for cell in self.cells()]
            return StridedTensor(numbers, [len(numbers)], [1]).view(*size)


# %% mistake: reshape_always_copies
# Your `reshape` always copies. It is a view wherever strides can do it, and then a write through its
# result reaches the tensor that it came from.
class StridedTensor:
    def __init__(self, storage, size, stride, offset=0):
        self.storage, self.offset = storage, offset
        self.size, self.stride = tuple(size), tuple(stride)

    def cells(self):
        cells = [self.offset]
        for n, step in zip(self.size, self.stride):
            cells = [cell + i * step for cell in cells for i in range(n)]
        return cells

    def item(self):
        return self.storage[self.offset]

    def tolist(self):
        if not self.size:
            return self.item()
        return [self[i].tolist() for i in range(self.size[0])]

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        left = len(self.size) - sum(part is not None and part is not ... for part in index)
        if left < 0:
            raise IndexError("too many indices")
        if ... not in index:
            index = (*index, ...)
        size, stride, offset, dim = [], [], self.offset, 0
        for part in index:
            if part is ...:
                size += self.size[dim : dim + left]
                stride += self.stride[dim : dim + left]
                dim += left
            elif part is None:
                size.append(1)
                stride.append(0)
            elif isinstance(part, slice):
                first, last, step = part.indices(self.size[dim])
                if step < 1:
                    raise ValueError("steps must be positive")
                size.append(len(range(first, last, step)))
                stride.append(self.stride[dim] * step)
                offset += first * self.stride[dim]
                dim += 1
            else:
                n = self.size[dim]
                if not -n <= part < n:
                    raise IndexError("index out of range")
                offset += part % n * self.stride[dim]
                dim += 1
        return StridedTensor(self.storage, size, stride, offset)

    def __setitem__(self, index, value):
        target = self[index]
        cells = target.cells()
        if isinstance(value, StridedTensor):
            value = value.expand(*target.size)
            numbers = [value.storage[cell] for cell in value.cells()]
        else:
            numbers = [value] * len(cells)
        for cell, number in zip(cells, numbers):
            self.storage[cell] = number

    def transpose(self, a, b):
        size, stride = list(self.size), list(self.stride)
        size[a], size[b] = size[b], size[a]
        stride[a], stride[b] = stride[b], stride[a]
        return StridedTensor(self.storage, size, stride, self.offset)

    def expand(self, *size):
        new = len(size) - len(self.size)
        if new < 0:
            raise ValueError("fewer dimensions than there are")
        stride = [0] * new
        for want, have, step in zip(size[new:], self.size, self.stride):
            if have not in (want, 1):
                raise ValueError("only sizes of 1 can be expanded")
            stride.append(step if have == want else 0)
        return StridedTensor(self.storage, size, stride, self.offset)

    def view(self, *size):
        if prod(size) != prod(self.size):
            raise ValueError("another number of elements")
        if 0 in size:
            return StridedTensor(self.storage, size, [0] * len(size), self.offset)
        runs = []
        for n, step in zip(self.size, self.stride):
            if runs and runs[-1][1] == n * step:
                runs[-1] = (runs[-1][0] * n, step)
            elif n > 1:
                runs.append((n, step))
        stride, room, step = [], 1, 1
        for n in reversed(size):
            if room == 1 and n > 1:
                room, step = runs.pop()
            if room % n:
                raise ValueError("not a view")
            stride.insert(0, step)
            room, step = room // n, step * n
        return StridedTensor(self.storage, size, stride, self.offset)

    def reshape(self, *size):
        numbers = [self.storage[cell] for cell in self.cells()]
        return StridedTensor(numbers, [len(numbers)], [1]).view(*size)


# %% mistake: expand_keeps_stride
# You gave an expanded dimension a larger size and left its stride. Then the second row is read from
# behind the first. Its stride must be 0: each step stays where it is.
class StridedTensor:
    def __init__(self, storage, size, stride, offset=0):
        self.storage, self.offset = storage, offset
        self.size, self.stride = tuple(size), tuple(stride)

    def cells(self):
        cells = [self.offset]
        for n, step in zip(self.size, self.stride):
            cells = [cell + i * step for cell in cells for i in range(n)]
        return cells

    def item(self):
        return self.storage[self.offset]

    def tolist(self):
        if not self.size:
            return self.item()
        return [self[i].tolist() for i in range(self.size[0])]

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        left = len(self.size) - sum(part is not None and part is not ... for part in index)
        if left < 0:
            raise IndexError("too many indices")
        if ... not in index:
            index = (*index, ...)
        size, stride, offset, dim = [], [], self.offset, 0
        for part in index:
            if part is ...:
                size += self.size[dim : dim + left]
                stride += self.stride[dim : dim + left]
                dim += left
            elif part is None:
                size.append(1)
                stride.append(0)
            elif isinstance(part, slice):
                first, last, step = part.indices(self.size[dim])
                if step < 1:
                    raise ValueError("steps must be positive")
                size.append(len(range(first, last, step)))
                stride.append(self.stride[dim] * step)
                offset += first * self.stride[dim]
                dim += 1
            else:
                n = self.size[dim]
                if not -n <= part < n:
                    raise IndexError("index out of range")
                offset += part % n * self.stride[dim]
                dim += 1
        return StridedTensor(self.storage, size, stride, offset)

    def __setitem__(self, index, value):
        target = self[index]
        cells = target.cells()
        if isinstance(value, StridedTensor):
            value = value.expand(*target.size)
            numbers = [value.storage[cell] for cell in value.cells()]
        else:
            numbers = [value] * len(cells)
        for cell, number in zip(cells, numbers):
            self.storage[cell] = number

    def transpose(self, a, b):
        size, stride = list(self.size), list(self.stride)
        size[a], size[b] = size[b], size[a]
        stride[a], stride[b] = stride[b], stride[a]
        return StridedTensor(self.storage, size, stride, self.offset)

    def expand(self, *size):
        new = len(size) - len(self.size)
        if new < 0:
            raise ValueError("fewer dimensions than there are")
        stride = [0] * new
        for want, have, step in zip(size[new:], self.size, self.stride):
            if have not in (want, 1):
                raise ValueError("only sizes of 1 can be expanded")
            stride.append(step)
        return StridedTensor(self.storage, size, stride, self.offset)

    def view(self, *size):
        if prod(size) != prod(self.size):
            raise ValueError("another number of elements")
        if 0 in size:
            return StridedTensor(self.storage, size, [0] * len(size), self.offset)
        runs = []
        for n, step in zip(self.size, self.stride):
            if runs and runs[-1][1] == n * step:
                runs[-1] = (runs[-1][0] * n, step)
            elif n > 1:
                runs.append((n, step))
        stride, room, step = [], 1, 1
        for n in reversed(size):
            if room == 1 and n > 1:
                room, step = runs.pop()
            if room % n:
                raise ValueError("not a view")
            stride.insert(0, step)
            room, step = room // n, step * n
        return StridedTensor(self.storage, size, stride, self.offset)

    def reshape(self, *size):
        try:
            return self.view(*size)
        except ValueError:
            numbers = [self.storage[cell] for cell in self.cells()]
            return StridedTensor(numbers, [len(numbers)], [1]).view(*size)


# %% mistake: written_while_read
# You write the first cell before the last one is read. Where source and target overlap, what you write
# is read again. Collect all numbers first.
class StridedTensor:
    def __init__(self, storage, size, stride, offset=0):
        self.storage, self.offset = storage, offset
        self.size, self.stride = tuple(size), tuple(stride)

    def cells(self):
        cells = [self.offset]
        for n, step in zip(self.size, self.stride):
            cells = [cell + i * step for cell in cells for i in range(n)]
        return cells

    def item(self):
        return self.storage[self.offset]

    def tolist(self):
        if not self.size:
            return self.item()
        return [self[i].tolist() for i in range(self.size[0])]

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        left = len(self.size) - sum(part is not None and part is not ... for part in index)
        if left < 0:
            raise IndexError("too many indices")
        if ... not in index:
            index = (*index, ...)
        size, stride, offset, dim = [], [], self.offset, 0
        for part in index:
            if part is ...:
                size += self.size[dim : dim + left]
                stride += self.stride[dim : dim + left]
                dim += left
            elif part is None:
                size.append(1)
                stride.append(0)
            elif isinstance(part, slice):
                first, last, step = part.indices(self.size[dim])
                if step < 1:
                    raise ValueError("steps must be positive")
                size.append(len(range(first, last, step)))
                stride.append(self.stride[dim] * step)
                offset += first * self.stride[dim]
                dim += 1
            else:
                n = self.size[dim]
                if not -n <= part < n:
                    raise IndexError("index out of range")
                offset += part % n * self.stride[dim]
                dim += 1
        return StridedTensor(self.storage, size, stride, offset)

    def __setitem__(self, index, value):
        target = self[index]
        cells = target.cells()
        if isinstance(value, StridedTensor):
            value = value.expand(*target.size)
            numbers = (value.storage[cell] for cell in value.cells())
        else:
            numbers = [value] * len(cells)
        for cell, number in zip(cells, numbers):
            self.storage[cell] = number

    def transpose(self, a, b):
        size, stride = list(self.size), list(self.stride)
        size[a], size[b] = size[b], size[a]
        stride[a], stride[b] = stride[b], stride[a]
        return StridedTensor(self.storage, size, stride, self.offset)

    def expand(self, *size):
        new = len(size) - len(self.size)
        if new < 0:
            raise ValueError("fewer dimensions than there are")
        stride = [0] * new
        for want, have, step in zip(size[new:], self.size, self.stride):
            if have not in (want, 1):
                raise ValueError("only sizes of 1 can be expanded")
            stride.append(step if have == want else 0)
        return StridedTensor(self.storage, size, stride, self.offset)

    def view(self, *size):
        if prod(size) != prod(self.size):
            raise ValueError("another number of elements")
        if 0 in size:
            return StridedTensor(self.storage, size, [0] * len(size), self.offset)
        runs = []
        for n, step in zip(self.size, self.stride):
            if runs and runs[-1][1] == n * step:
                runs[-1] = (runs[-1][0] * n, step)
            elif n > 1:
                runs.append((n, step))
        stride, room, step = [], 1, 1
        for n in reversed(size):
            if room == 1 and n > 1:
                room, step = runs.pop()
            if room % n:
                raise ValueError("not a view")
            stride.insert(0, step)
            room, step = room // n, step * n
        return StridedTensor(self.storage, size, stride, self.offset)

    def reshape(self, *size):
        try:
            return self.view(*size)
        except ValueError:
            numbers = [self.storage[cell] for cell in self.cells()]
            return StridedTensor(numbers, [len(numbers)], [1]).view(*size)


# %% alternate: one_dimension_at_a_time
# Every part of an index is a step from one view to the next. A view under another size is found by
# trial: read off strides from the list of cells, and see whether they give all cells.
class StridedTensor:
    def __init__(self, storage, size, stride, offset=0):
        self.storage = storage
        self.size = tuple(size)
        self.stride = tuple(stride)
        self.offset = offset

    def _with(self, dim, sizes, strides, offset=0):
        return StridedTensor(
            self.storage,
            self.size[:dim] + sizes + self.size[dim + 1 :],
            self.stride[:dim] + strides + self.stride[dim + 1 :],
            self.offset + offset,
        )

    def _select(self, dim, i):
        n = self.size[dim]
        if i < 0:
            i += n
        if i < 0 or i >= n:
            raise IndexError(f"{i} of {n}")
        return self._with(dim, (), (), i * self.stride[dim])

    def _slice(self, dim, part):
        first, last, step = part.indices(self.size[dim])
        if step <= 0:
            raise ValueError(step)
        count = max(0, -(-(last - first) // step))
        return self._with(dim, (count,), (self.stride[dim] * step,), first * self.stride[dim])

    def __getitem__(self, index):
        parts = list(index) if isinstance(index, tuple) else [index]
        dots = [k for k, part in enumerate(parts) if part is Ellipsis]
        used = len(parts) - len(dots) - parts.count(None)
        if used > len(self.size):
            raise IndexError(parts)
        at = dots[0] if dots else len(parts)
        parts[at : at + len(dots)] = [slice(None)] * (len(self.size) - used)
        view, dim = self, 0
        for part in parts:
            if part is None:
                size, stride = view.size, view.stride
                view = StridedTensor(
                    view.storage,
                    size[:dim] + (1,) + size[dim:],
                    stride[:dim] + (9,) + stride[dim:],
                    view.offset,
                )
                dim += 1
            elif isinstance(part, int):
                view = view._select(dim, part)
            else:
                view = view._slice(dim, part)
                dim += 1
        return view

    def _walk(self):
        if not self.size:
            yield self.offset
            return
        for i in range(self.size[0]):
            yield from self._select(0, i)._walk()

    def item(self):
        return self.storage[self.offset]

    def tolist(self):
        if self.size == ():
            return self.item()
        return [row.tolist() for row in self]

    def __setitem__(self, index, value):
        target = self[index]
        if isinstance(value, StridedTensor):
            source = value.expand(*target.size)
            values = list(map(value.storage.__getitem__, source._walk()))
        else:
            values = [value for _ in target._walk()]
        for cell, number in zip(target._walk(), values):
            self.storage[cell] = number

    def transpose(self, a, b):
        def swap(t):
            t = list(t)
            t[a], t[b] = t[b], t[a]
            return t

        return StridedTensor(self.storage, swap(self.size), swap(self.stride), self.offset)

    def expand(self, *size):
        view = self
        while len(view.size) < len(size):
            view = view[None]
        if len(view.size) > len(size):
            raise ValueError(size)
        for dim, (have, want) in enumerate(zip(view.size, size)):
            if have == 1 != want:
                view = view._with(dim, (want,), (0,))
            elif have != want:
                raise ValueError(size)
        return view

    def view(self, *size):
        cells, count = list(self._walk()), 1
        for n in size:
            count *= n
        if count != len(cells):
            raise ValueError(size)
        stride, inner = [], 1
        for n in reversed(size):
            stride.insert(0, cells[inner] - cells[0] if n > 1 and inner < len(cells) else 0)
            inner *= n
        found = StridedTensor(self.storage, size, stride, self.offset)
        if list(found._walk()) != cells:
            raise ValueError(size)
        return found

    def reshape(self, *size):
        try:
            return self.view(*size)
        except ValueError:
            copy = [self.storage[cell] for cell in self._walk()]
        return StridedTensor(copy, (len(copy),), (1,)).view(*size)


# %% alternate: positions_as_a_tensor
# Where each element is in the list, as a torch tensor of positions. A view under another size has the
# strides that these positions show, if they show any.
class StridedTensor:
    def __init__(self, storage, size, stride, offset=0):
        self.storage = storage
        self.size = tuple(size)
        self.stride = tuple(stride)
        self.offset = offset

    @property
    def ndim(self):
        return len(self.size)

    def positions(self):
        p = torch.tensor(self.offset)
        for n, s in zip(self.size, self.stride):
            p = p[..., None] + torch.arange(n) * s
        return p

    def item(self):
        return self.storage[self.offset]

    def tolist(self):
        def look(p):
            return [look(q) for q in p] if isinstance(p, list) else self.storage[p]

        return look(self.positions().tolist())

    def __getitem__(self, index):
        if type(index) is not tuple:
            index = (index,)
        index = list(index)
        real = [p for p in index if p is not None and p is not Ellipsis]
        if len(real) > self.ndim:
            raise IndexError("too many")
        if not any(p is Ellipsis for p in index):
            index.append(Ellipsis)
        k = [p is Ellipsis for p in index].index(True)
        index[k : k + 1] = [slice(None)] * (self.ndim - len(real))
        size, stride, off = [], [], self.offset
        dims = iter(zip(self.size, self.stride))
        for p in index:
            if p is None:
                size.append(1)
                stride.append(1)
                continue
            n, s = next(dims)
            if isinstance(p, slice):
                st = 1 if p.step is None else p.step
                if st < 1:
                    raise ValueError(st)
                a = (
                    0
                    if p.start is None
                    else max(0, min(n, p.start + n if p.start < 0 else p.start))
                )
                b = n if p.stop is None else max(0, min(n, p.stop + n if p.stop < 0 else p.stop))
                size.append(max(0, (b - a + st - 1) // st))
                stride.append(s * st)
                off += a * s
            else:
                if p >= n or p < -n:
                    raise IndexError(p)
                off += (p + n if p < 0 else p) * s
        return type(self)(self.storage, size, stride, off)

    def __setitem__(self, index, value):
        t = self[index]
        where = t.positions().reshape(-1).tolist()
        if isinstance(value, StridedTensor):
            e = value.expand(*t.size)
            vals = [e.storage[i] for i in e.positions().reshape(-1).tolist()]
        else:
            vals = [value] * len(where)
        for i, v in zip(where, vals):
            self.storage[i] = v

    def transpose(self, a, b):
        p = list(range(self.ndim))
        p[a], p[b] = p[b], p[a]
        return type(self)(
            self.storage, [self.size[i] for i in p], [self.stride[i] for i in p], self.offset
        )

    def expand(self, *size):
        d = len(size) - self.ndim
        if d < 0:
            raise ValueError
        st = [0] * d
        for w, n, s in zip(size[d:], self.size, self.stride):
            if n == w:
                st.append(s)
            elif n == 1:
                st.append(0)
            else:
                raise ValueError
        return type(self)(self.storage, size, st, self.offset)

    def view(self, *size):
        p = self.positions()
        if torch.Size(size).numel() != p.numel():
            raise ValueError
        q = p.reshape(size)
        st = []
        for d in range(len(size)):
            if size[d] > 1 and p.numel():
                st.append(int((q.select(d, 1) - q.select(d, 0)).reshape(-1)[0]))
            else:
                st.append(0)
        off = int(q.reshape(-1)[0]) if p.numel() else self.offset
        r = type(self)(self.storage, size, st, off)
        if not torch.equal(r.positions(), q):
            raise ValueError
        return r

    def reshape(self, *size):
        try:
            return self.view(*size)
        except ValueError:
            v = [self.storage[i] for i in self.positions().reshape(-1).tolist()]
            return type(self)(v, (len(v),), (1,)).view(*size)
