# %% blocked: run_it
# You made the tensor and let the operation run. Say it before anything runs, from the numbers alone.
def is_view(size, stride, op, *args):
    x = torch.empty_strided(size, stride)
    y = getattr(torch, op)([x]) if op in ("stack", "cat") else getattr(x, op)(*args)
    y = y[0] if op in ("chunk", "split") else y
    return y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


# %% mistake: view_means_contiguous
# You let `reshape` and `flatten` be views of contiguous tensors only. Many other layouts have the
# view as well: ask `view_stride`, not `is_contiguous`.
def is_view(size, stride, op, *args):
    if op in ("repeat", "flip", "roll", "clone", "stack", "cat"):
        return False
    if op in ("contiguous", "ravel"):
        return is_contiguous(size, stride)
    if op == "reshape":
        return is_contiguous(size, stride)
    if op == "flatten":
        first, last = (args + (0, -1)[len(args) :]) if args else (0, -1)
        first, last = first % len(size), last % len(size)
        merged = math.prod(size[first : last + 1])
        return merged > 0 and is_contiguous(size, stride)
    return True


# %% mistake: reshape_never_copies
# You took `reshape` for a change of metadata alone. Where no strides reach the elements in
# row-major order it copies, and says nothing.
def is_view(size, stride, op, *args):
    if op in ("repeat", "flip", "roll", "clone", "stack", "cat"):
        return False
    if op in ("contiguous", "ravel"):
        return is_contiguous(size, stride)
    if op == "reshape":
        return True
    if op == "flatten":
        first, last = (args + (0, -1)[len(args) :]) if args else (0, -1)
        first, last = first % len(size), last % len(size)
        merged = math.prod(size[first : last + 1])
        new_size = (*size[:first], merged, *size[last + 1 :])
        return view_stride(size, stride, new_size) is not None
    return True


# %% mistake: flatten_copies
# You let `flatten` copy always, as NumPy's does. In PyTorch it is a `reshape`: a view where there
# is a view.
def is_view(size, stride, op, *args):
    if op in ("repeat", "flip", "roll", "clone", "stack", "cat"):
        return False
    if op in ("contiguous", "ravel"):
        return is_contiguous(size, stride)
    if op == "reshape":
        return view_stride(size, stride, args) is not None
    if op == "flatten":
        return False
    if op == "flat":
        first, last = (args + (0, -1)[len(args) :]) if args else (0, -1)
        first, last = first % len(size), last % len(size)
        merged = math.prod(size[first : last + 1])
        new_size = (*size[:first], merged, *size[last + 1 :])
        return view_stride(size, stride, new_size) is not None
    return True


# %% mistake: ravel_is_flatten
# You took `ravel` for `flatten`. It is `contiguous().view(-1)`: it copies whatever is not
# contiguous, even where a view would do.
def is_view(size, stride, op, *args):
    if op in ("repeat", "flip", "roll", "clone", "stack", "cat"):
        return False
    if op == "ravel":
        op = "flatten"
    if op == "contiguous":
        return is_contiguous(size, stride)
    if op == "reshape":
        return view_stride(size, stride, args) is not None
    if op == "flatten":
        first, last = (args + (0, -1)[len(args) :]) if args else (0, -1)
        first, last = first % len(size), last % len(size)
        merged = math.prod(size[first : last + 1])
        new_size = (*size[:first], merged, *size[last + 1 :])
        return view_stride(size, stride, new_size) is not None
    return True


# %% mistake: ravel_always_a_view
# You let `ravel` be a view always. It is `contiguous().view(-1)`, and `contiguous` copies what is
# not contiguous.
def is_view(size, stride, op, *args):
    if op in ("repeat", "flip", "roll", "clone", "stack", "cat"):
        return False
    if op == "contiguous":
        return is_contiguous(size, stride)
    if op == "reshape":
        return view_stride(size, stride, args) is not None
    if op == "flatten":
        first, last = (args + (0, -1)[len(args) :]) if args else (0, -1)
        first, last = first % len(size), last % len(size)
        merged = math.prod(size[first : last + 1])
        new_size = (*size[:first], merged, *size[last + 1 :])
        return view_stride(size, stride, new_size) is not None
    return True


# %% mistake: flip_is_a_view
# You took `flip` for a view, as NumPy's `a[::-1]` is. It would need a negative stride, and PyTorch
# has none: `flip` copies.
def is_view(size, stride, op, *args):
    if op in ("repeat", "roll", "clone", "stack", "cat"):
        return False
    if op in ("contiguous", "ravel"):
        return is_contiguous(size, stride)
    if op == "reshape":
        return view_stride(size, stride, args) is not None
    if op == "flatten":
        first, last = (args + (0, -1)[len(args) :]) if args else (0, -1)
        first, last = first % len(size), last % len(size)
        merged = math.prod(size[first : last + 1])
        new_size = (*size[:first], merged, *size[last + 1 :])
        return view_stride(size, stride, new_size) is not None
    return True


# %% mistake: expand_copies
# You let `expand` and `broadcast_to` copy. They repeat by stride 0, over the same bytes. It is
# `repeat` that copies.
def is_view(size, stride, op, *args):
    if op in ("expand", "broadcast_to", "repeat", "flip", "roll", "clone", "stack", "cat"):
        return False
    if op in ("contiguous", "ravel"):
        return is_contiguous(size, stride)
    if op == "reshape":
        return view_stride(size, stride, args) is not None
    if op == "flatten":
        first, last = (args + (0, -1)[len(args) :]) if args else (0, -1)
        first, last = first % len(size), last % len(size)
        merged = math.prod(size[first : last + 1])
        new_size = (*size[:first], merged, *size[last + 1 :])
        return view_stride(size, stride, new_size) is not None
    return True


# %% mistake: nothing_to_repeat
# You let `repeat` with ones only, or joining a single tensor, return a view. There is nothing to
# do, and they copy all the same.
def is_view(size, stride, op, *args):
    if op in ("flip", "roll", "clone"):
        return False
    if op == "repeat":
        return set(args) == {1}
    if op == "cat":
        return True
    if op == "stack":
        return False
    if op in ("contiguous", "ravel"):
        return is_contiguous(size, stride)
    if op == "reshape":
        return view_stride(size, stride, args) is not None
    if op == "flatten":
        first, last = (args + (0, -1)[len(args) :]) if args else (0, -1)
        first, last = first % len(size), last % len(size)
        merged = math.prod(size[first : last + 1])
        new_size = (*size[:first], merged, *size[last + 1 :])
        return view_stride(size, stride, new_size) is not None
    return True


# %% mistake: contiguous_copies
# You let `contiguous` copy always. A tensor that is contiguous already is returned as it is.
def is_view(size, stride, op, *args):
    if op in ("repeat", "flip", "roll", "clone", "stack", "cat"):
        return False
    if op in ("contiguous", "ravel"):
        return op == "ravel" and is_contiguous(size, stride)
    if op == "reshape":
        return view_stride(size, stride, args) is not None
    if op == "flatten":
        first, last = (args + (0, -1)[len(args) :]) if args else (0, -1)
        first, last = first % len(size), last % len(size)
        merged = math.prod(size[first : last + 1])
        new_size = (*size[:first], merged, *size[last + 1 :])
        return view_stride(size, stride, new_size) is not None
    return True


# %% mistake: flattens_everything
# You flattened all dimensions whatever the arguments said. `flatten(1)` keeps dimension 0 and needs
# no seam between it and the rest.
def is_view(size, stride, op, *args):
    if op in ("repeat", "flip", "roll", "clone", "stack", "cat"):
        return False
    if op in ("contiguous", "ravel"):
        return is_contiguous(size, stride)
    if op == "reshape":
        return view_stride(size, stride, args) is not None
    if op == "flatten":
        first, last = 0, len(size) - 1
        merged = math.prod(size[first : last + 1])
        new_size = (*size[:first], merged, *size[last + 1 :])
        return view_stride(size, stride, new_size) is not None
    return True


# %% mistake: negative_slice
# You sliced with negative dimensions. `size[first : last + 1]` with -1 for `last` is empty, so
# nothing was merged: count from the front before you slice.
def is_view(size, stride, op, *args):
    if op in ("repeat", "flip", "roll", "clone", "stack", "cat"):
        return False
    if op in ("contiguous", "ravel"):
        return is_contiguous(size, stride)
    if op == "reshape":
        return view_stride(size, stride, args) is not None
    if op == "flatten":
        first, last = (args + (0, -1)[len(args) :]) if args else (0, -1)
        if last == -1:
            return view_stride(size, stride, size) is not None
        first, last = first % len(size), last % len(size)
        merged = math.prod(size[first : last + 1])
        new_size = (*size[:first], merged, *size[last + 1 :])
        return view_stride(size, stride, new_size) is not None
    return True


# %% alternate: one_table
# Keeps a table of what each operation asks of the layout, and finds seams dimension by dimension.
def is_view(size, stride, op, *args):
    def seamless(first, last):
        pairs = [(n, s) for n, s in zip(size[first:last], stride[first:last]) if n != 1]
        return all(s == m * t for (_, s), (m, t) in zip(pairs, pairs[1:]))

    def flatten(first=0, last=-1):
        return seamless(first % len(size), last % len(size) + 1)

    def contiguous():
        steps = [s for n, s in zip(size, stride) if n > 1]
        return seamless(0, len(size)) and (not steps or steps[-1] == 1)

    asks = {
        "reshape": lambda *new: view_stride(size, stride, new) is not None,
        "flatten": flatten,
        "ravel": contiguous,
        "contiguous": contiguous,
    }
    if op in asks:
        return asks[op](*args)
    return op not in {"repeat", "flip", "roll", "clone", "stack", "cat"}


# %% alternate: by_addresses
# Lists the places of the elements in row-major order; a flat dimension needs equal steps between them.
def is_view(size, stride, op, *args):
    def places(size, stride):
        found = [0]
        for n, s in zip(size, stride):
            found = [place + i * s for place in found for i in range(n)]
        return found

    match op:
        case "repeat" | "flip" | "roll" | "clone" | "stack" | "cat":
            return False
        case "contiguous" | "ravel":
            return places(size, stride) == list(range(math.prod(size)))
        case "reshape":
            return view_stride(size, stride, args) is not None
        case "flatten":
            first = args[0] % len(size) if args else 0
            last = args[1] % len(size) if len(args) > 1 else len(size) - 1
            flat = places(size[first : last + 1], stride[first : last + 1])
            return len({after - before for before, after in zip(flat, flat[1:])}) < 2
        case _:
            return True
