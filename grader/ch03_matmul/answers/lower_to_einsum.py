# %% mistake: first_letters
# You took the first letter of each name. `row` and `rot` then become one index. Number the names,
# and take the letter of that number.
def lower_to_einsum(
    program: dict, shapes: dict[str, tuple[int, ...]]
) -> tuple[str, list[str]] | None:
    """Return an einsum equation and the names of its operands, or None if there is none."""

    def factors(node: tuple) -> list[tuple] | None:
        """Return the reads that are multiplied, or None if there is anything else."""
        if node[0] == "read":
            return [node]
        if node[0] != "*":
            return None
        left, right = factors(node[1]), factors(node[2])
        return None if left is None or right is None else left + right

    extents = dict(program["axes"])
    axes = list(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        if name in extents:
            return None  # an inner index hides an outer one of the same name
        extents[name] = extent
    reads = factors(body)
    if reads is None:
        return None

    letter = {name: name[0] for number, name in enumerate(extents)}
    subscripts, used = [], set()
    for _, buffer, indices in reads:
        for index, size in zip(indices, shapes[buffer], strict=True):
            # einsum runs over whole dimensions: an axis that is shorter is another program
            if index[0] != "index" or extents[index[1]] != size:
                return None
        names = [index[1] for index in indices]
        used.update(names)
        subscripts.append("".join(letter[name] for name in names))
    if used != set(extents):
        return None  # einsum cannot know how often to repeat what does not depend on an index
    result = "".join(letter[name] for name in axes)
    return f"{','.join(subscripts)}->{result}", [read[1] for read in reads]


# %% mistake: names_as_they_are
# You wrote the names into the equation. `einsum` reads every letter as an index of its own: `row`
# would be three.
def lower_to_einsum(
    program: dict, shapes: dict[str, tuple[int, ...]]
) -> tuple[str, list[str]] | None:
    """Return an einsum equation and the names of its operands, or None if there is none."""

    def factors(node: tuple) -> list[tuple] | None:
        """Return the reads that are multiplied, or None if there is anything else."""
        if node[0] == "read":
            return [node]
        if node[0] != "*":
            return None
        left, right = factors(node[1]), factors(node[2])
        return None if left is None or right is None else left + right

    extents = dict(program["axes"])
    axes = list(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        if name in extents:
            return None  # an inner index hides an outer one of the same name
        extents[name] = extent
    reads = factors(body)
    if reads is None:
        return None

    letter = {name: name for number, name in enumerate(extents)}
    subscripts, used = [], set()
    for _, buffer, indices in reads:
        for index, size in zip(indices, shapes[buffer], strict=True):
            # einsum runs over whole dimensions: an axis that is shorter is another program
            if index[0] != "index" or extents[index[1]] != size:
                return None
        names = [index[1] for index in indices]
        used.update(names)
        subscripts.append("".join(letter[name] for name in names))
    if used != set(extents):
        return None  # einsum cannot know how often to repeat what does not depend on an index
    result = "".join(letter[name] for name in axes)
    return f"{','.join(subscripts)}->{result}", [read[1] for read in reads]


# %% mistake: ignores_extents
# You did not compare the extents with the shapes. `einsum` runs over whole dimensions; a program
# that reads a part of one is something else.
def lower_to_einsum(
    program: dict, shapes: dict[str, tuple[int, ...]]
) -> tuple[str, list[str]] | None:
    """Return an einsum equation and the names of its operands, or None if there is none."""

    def factors(node: tuple) -> list[tuple] | None:
        """Return the reads that are multiplied, or None if there is anything else."""
        if node[0] == "read":
            return [node]
        if node[0] != "*":
            return None
        left, right = factors(node[1]), factors(node[2])
        return None if left is None or right is None else left + right

    extents = dict(program["axes"])
    axes = list(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        if name in extents:
            return None  # an inner index hides an outer one of the same name
        extents[name] = extent
    reads = factors(body)
    if reads is None:
        return None

    letter = {name: chr(ord("a") + number) for number, name in enumerate(extents)}
    subscripts, used = [], set()
    for _, buffer, indices in reads:
        for index, size in zip(indices, shapes[buffer], strict=True):
            # einsum runs over whole dimensions: an axis that is shorter is another program
            if index[0] != "index":
                return None
        names = [index[1] for index in indices]
        used.update(names)
        subscripts.append("".join(letter[name] for name in names))
    if used != set(extents):
        return None  # einsum cannot know how often to repeat what does not depend on an index
    result = "".join(letter[name] for name in axes)
    return f"{','.join(subscripts)}->{result}", [read[1] for read in reads]


# %% mistake: reads_beyond_the_end
# You refuse an axis that is shorter than the dimension, and take one that is longer. That program
# reads outside of the buffer, and `einsum` would not notice: it stops at the end, or repeats a
# dimension of size 1. The two have to be equal.
def lower_to_einsum(
    program: dict, shapes: dict[str, tuple[int, ...]]
) -> tuple[str, list[str]] | None:
    """Return an einsum equation and the names of its operands, or None if there is none."""

    def factors(node: tuple) -> list[tuple] | None:
        """Return the reads that are multiplied, or None if there is anything else."""
        if node[0] == "read":
            return [node]
        if node[0] != "*":
            return None
        left, right = factors(node[1]), factors(node[2])
        return None if left is None or right is None else left + right

    extents = dict(program["axes"])
    axes = list(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        if name in extents:
            return None  # an inner index hides an outer one of the same name
        extents[name] = extent
    reads = factors(body)
    if reads is None:
        return None

    letter = {name: chr(ord("a") + number) for number, name in enumerate(extents)}
    subscripts, used = [], set()
    for _, buffer, indices in reads:
        for index, size in zip(indices, shapes[buffer], strict=True):
            if index[0] != "index" or extents[index[1]] < size:
                return None
        names = [index[1] for index in indices]
        used.update(names)
        subscripts.append("".join(letter[name] for name in names))
    if used != set(extents):
        return None  # einsum cannot know how often to repeat what does not depend on an index
    result = "".join(letter[name] for name in axes)
    return f"{','.join(subscripts)}->{result}", [read[1] for read in reads]


# %% mistake: one_letter_for_two
# An inner sum may have the name of an axis of the result. It is another index, and hides the first.
# In your table the two share an entry, and so a letter: you return the terms where their sum is asked.
def lower_to_einsum(
    program: dict, shapes: dict[str, tuple[int, ...]]
) -> tuple[str, list[str]] | None:
    """Return an einsum equation and the names of its operands, or None if there is none."""

    def factors(node: tuple) -> list[tuple] | None:
        """Return the reads that are multiplied, or None if there is anything else."""
        if node[0] == "read":
            return [node]
        if node[0] != "*":
            return None
        left, right = factors(node[1]), factors(node[2])
        return None if left is None or right is None else left + right

    extents = dict(program["axes"])
    axes = list(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        extents[name] = extent
    reads = factors(body)
    if reads is None:
        return None

    letter = {name: chr(ord("a") + number) for number, name in enumerate(extents)}
    subscripts, used = [], set()
    for _, buffer, indices in reads:
        for index, size in zip(indices, shapes[buffer], strict=True):
            if index[0] != "index" or extents[index[1]] != size:
                return None
        names = [index[1] for index in indices]
        used.update(names)
        subscripts.append("".join(letter[name] for name in names))
    if used != set(extents):
        return None  # einsum cannot know how often to repeat what does not depend on an index
    result = "".join(letter[name] for name in axes)
    return f"{','.join(subscripts)}->{result}", [read[1] for read in reads]


# %% mistake: drops_unused_sums
# A sum over an index that no read has repeats the same number, and so multiplies by the extent.
# `einsum` cannot say that, and your equation leaves it out.
def lower_to_einsum(
    program: dict, shapes: dict[str, tuple[int, ...]]
) -> tuple[str, list[str]] | None:
    """Return an einsum equation and the names of its operands, or None if there is none."""

    def factors(node: tuple) -> list[tuple] | None:
        """Return the reads that are multiplied, or None if there is anything else."""
        if node[0] == "read":
            return [node]
        if node[0] != "*":
            return None
        left, right = factors(node[1]), factors(node[2])
        return None if left is None or right is None else left + right

    extents = dict(program["axes"])
    axes = list(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        if name in extents:
            return None  # an inner index hides an outer one of the same name
        extents[name] = extent
    reads = factors(body)
    if reads is None:
        return None

    letter = {name: chr(ord("a") + number) for number, name in enumerate(extents)}
    subscripts, used = [], set()
    for _, buffer, indices in reads:
        for index, size in zip(indices, shapes[buffer], strict=True):
            # einsum runs over whole dimensions: an axis that is shorter is another program
            if index[0] != "index" or extents[index[1]] != size:
                return None
        names = [index[1] for index in indices]
        used.update(names)
        subscripts.append("".join(letter[name] for name in names))
    if not used >= set(axes):
        return None  # einsum cannot know how often to repeat what does not depend on an index
    result = "".join(letter[name] for name in axes)
    return f"{','.join(subscripts)}->{result}", [read[1] for read in reads]


# %% mistake: unused_axes
# An axis of the result that no read has would repeat the result along it. `einsum` refuses such an
# equation: return `None`.
def lower_to_einsum(
    program: dict, shapes: dict[str, tuple[int, ...]]
) -> tuple[str, list[str]] | None:
    """Return an einsum equation and the names of its operands, or None if there is none."""

    def factors(node: tuple) -> list[tuple] | None:
        """Return the reads that are multiplied, or None if there is anything else."""
        if node[0] == "read":
            return [node]
        if node[0] != "*":
            return None
        left, right = factors(node[1]), factors(node[2])
        return None if left is None or right is None else left + right

    extents = dict(program["axes"])
    axes = list(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        if name in extents:
            return None  # an inner index hides an outer one of the same name
        extents[name] = extent
    reads = factors(body)
    if reads is None:
        return None

    letter = {name: chr(ord("a") + number) for number, name in enumerate(extents)}
    subscripts, used = [], set()
    for _, buffer, indices in reads:
        for index, size in zip(indices, shapes[buffer], strict=True):
            # einsum runs over whole dimensions: an axis that is shorter is another program
            if index[0] != "index" or extents[index[1]] != size:
                return None
        names = [index[1] for index in indices]
        used.update(names)
        subscripts.append("".join(letter[name] for name in names))
    if not used >= set(extents) - set(axes):
        return None  # einsum cannot know how often to repeat what does not depend on an index
    result = "".join(letter[name] for name in axes)
    return f"{','.join(subscripts)}->{result}", [read[1] for read in reads]


# %% mistake: any_operation
# You took every operation for a product. Additions and differences are none.
def lower_to_einsum(
    program: dict, shapes: dict[str, tuple[int, ...]]
) -> tuple[str, list[str]] | None:
    """Return an einsum equation and the names of its operands, or None if there is none."""

    def factors(node: tuple) -> list[tuple] | None:
        """Return the reads that are multiplied, or None if there is anything else."""
        if node[0] == "read":
            return [node]
        if len(node) != 3:
            return None
        left, right = factors(node[1]), factors(node[2])
        return None if left is None or right is None else left + right

    extents = dict(program["axes"])
    axes = list(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        if name in extents:
            return None  # an inner index hides an outer one of the same name
        extents[name] = extent
    reads = factors(body)
    if reads is None:
        return None

    letter = {name: chr(ord("a") + number) for number, name in enumerate(extents)}
    subscripts, used = [], set()
    for _, buffer, indices in reads:
        for index, size in zip(indices, shapes[buffer], strict=True):
            # einsum runs over whole dimensions: an axis that is shorter is another program
            if index[0] != "index" or extents[index[1]] != size:
                return None
        names = [index[1] for index in indices]
        used.update(names)
        subscripts.append("".join(letter[name] for name in names))
    if used != set(extents):
        return None  # einsum cannot know how often to repeat what does not depend on an index
    result = "".join(letter[name] for name in axes)
    return f"{','.join(subscripts)}->{result}", [read[1] for read in reads]


# %% mistake: leaves_out_numbers
# You collected the reads and left out the numbers beside them. A factor of two is a part of the
# formula: return `None`.
def lower_to_einsum(
    program: dict, shapes: dict[str, tuple[int, ...]]
) -> tuple[str, list[str]] | None:
    """Return an einsum equation and the names of its operands, or None if there is none."""

    def factors(node: tuple) -> list[tuple] | None:
        """Return the reads that are multiplied, or None if there is anything else."""
        if node[0] == "read":
            return [node]
        if node[0] in ("number", "index"):
            return []
        if node[0] != "*":
            return None
        left, right = factors(node[1]), factors(node[2])
        return None if left is None or right is None else left + right

    extents = dict(program["axes"])
    axes = list(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        if name in extents:
            return None  # an inner index hides an outer one of the same name
        extents[name] = extent
    reads = factors(body)
    if reads is None:
        return None

    letter = {name: chr(ord("a") + number) for number, name in enumerate(extents)}
    subscripts, used = [], set()
    for _, buffer, indices in reads:
        for index, size in zip(indices, shapes[buffer], strict=True):
            # einsum runs over whole dimensions: an axis that is shorter is another program
            if index[0] != "index" or extents[index[1]] != size:
                return None
        names = [index[1] for index in indices]
        used.update(names)
        subscripts.append("".join(letter[name] for name in names))
    if used != set(extents):
        return None  # einsum cannot know how often to repeat what does not depend on an index
    result = "".join(letter[name] for name in axes)
    return f"{','.join(subscripts)}->{result}", [read[1] for read in reads]


# %% mistake: reads_anything
# You took whatever stands in the brackets for a plain index. `A[i + 1]` and `A[0]` read elsewhere.
def lower_to_einsum(
    program: dict, shapes: dict[str, tuple[int, ...]]
) -> tuple[str, list[str]] | None:
    """Return an einsum equation and the names of its operands, or None if there is none."""

    def factors(node: tuple) -> list[tuple] | None:
        """Return the reads that are multiplied, or None if there is anything else."""
        if node[0] == "read":
            return [node]
        if node[0] != "*":
            return None
        left, right = factors(node[1]), factors(node[2])
        return None if left is None or right is None else left + right

    extents = dict(program["axes"])
    axes = list(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        if name in extents:
            return None  # an inner index hides an outer one of the same name
        extents[name] = extent
    reads = factors(body)
    if reads is None:
        return None

    letter = {name: chr(ord("a") + number) for number, name in enumerate(extents)}
    subscripts, used = [], set()
    for _, buffer, indices in reads:

        def plain(index):
            while index[0] != "index":
                index = index[1] if isinstance(index[1], tuple) else ("index", axes[0])
            return index

        indices = tuple(plain(index) for index in indices)
        for index, size in zip(indices, shapes[buffer], strict=True):
            # einsum runs over whole dimensions: an axis that is shorter is another program
            if index[0] != "index":
                return None
        names = [index[1] for index in indices]
        used.update(names)
        subscripts.append("".join(letter[name] for name in names))
    if used != set(extents):
        return None  # einsum cannot know how often to repeat what does not depend on an index
    result = "".join(letter[name] for name in axes)
    return f"{','.join(subscripts)}->{result}", [read[1] for read in reads]


# %% mistake: two_factors
# You look at two reads only. A product of products is a tree: walk down both sides.
def lower_to_einsum(
    program: dict, shapes: dict[str, tuple[int, ...]]
) -> tuple[str, list[str]] | None:
    """Return an einsum equation and the names of its operands, or None if there is none."""

    def factors(node: tuple) -> list[tuple] | None:
        """Return the reads that are multiplied, or None if there is anything else."""
        if node[0] == "read":
            return [node]
        if node[0] != "*":
            return None
        left, right = (
            side and [side] for side in (n if n[0] == "read" else None for n in node[1:])
        )
        return None if left is None or right is None else left + right

    extents = dict(program["axes"])
    axes = list(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        if name in extents:
            return None  # an inner index hides an outer one of the same name
        extents[name] = extent
    reads = factors(body)
    if reads is None:
        return None

    letter = {name: chr(ord("a") + number) for number, name in enumerate(extents)}
    subscripts, used = [], set()
    for _, buffer, indices in reads:
        for index, size in zip(indices, shapes[buffer], strict=True):
            # einsum runs over whole dimensions: an axis that is shorter is another program
            if index[0] != "index" or extents[index[1]] != size:
                return None
        names = [index[1] for index in indices]
        used.update(names)
        subscripts.append("".join(letter[name] for name in names))
    if used != set(extents):
        return None  # einsum cannot know how often to repeat what does not depend on an index
    result = "".join(letter[name] for name in axes)
    return f"{','.join(subscripts)}->{result}", [read[1] for read in reads]


# %% mistake: left_side_only
# You walk down the left side of the product only. The right side may be a product as well.
def lower_to_einsum(
    program: dict, shapes: dict[str, tuple[int, ...]]
) -> tuple[str, list[str]] | None:
    """Return an einsum equation and the names of its operands, or None if there is none."""

    def factors(node: tuple) -> list[tuple] | None:
        """Return the reads that are multiplied, or None if there is anything else."""
        if node[0] == "read":
            return [node]
        if node[0] != "*":
            return None
        left, right = factors(node[1]), [node[2]] if node[2][0] == "read" else None
        return None if left is None or right is None else left + right

    extents = dict(program["axes"])
    axes = list(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        if name in extents:
            return None  # an inner index hides an outer one of the same name
        extents[name] = extent
    reads = factors(body)
    if reads is None:
        return None

    letter = {name: chr(ord("a") + number) for number, name in enumerate(extents)}
    subscripts, used = [], set()
    for _, buffer, indices in reads:
        for index, size in zip(indices, shapes[buffer], strict=True):
            # einsum runs over whole dimensions: an axis that is shorter is another program
            if index[0] != "index" or extents[index[1]] != size:
                return None
        names = [index[1] for index in indices]
        used.update(names)
        subscripts.append("".join(letter[name] for name in names))
    if used != set(extents):
        return None  # einsum cannot know how often to repeat what does not depend on an index
    result = "".join(letter[name] for name in axes)
    return f"{','.join(subscripts)}->{result}", [read[1] for read in reads]


# %% mistake: leaves_the_result_to_einsum
# You left out the arrow. `einsum` then keeps every index that occurs once and sums over the others,
# whatever the program says.
def lower_to_einsum(
    program: dict, shapes: dict[str, tuple[int, ...]]
) -> tuple[str, list[str]] | None:
    """Return an einsum equation and the names of its operands, or None if there is none."""

    def factors(node: tuple) -> list[tuple] | None:
        """Return the reads that are multiplied, or None if there is anything else."""
        if node[0] == "read":
            return [node]
        if node[0] != "*":
            return None
        left, right = factors(node[1]), factors(node[2])
        return None if left is None or right is None else left + right

    extents = dict(program["axes"])
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        if name in extents:
            return None  # an inner index hides an outer one of the same name
        extents[name] = extent
    reads = factors(body)
    if reads is None:
        return None

    letter = {name: chr(ord("a") + number) for number, name in enumerate(extents)}
    subscripts, used = [], set()
    for _, buffer, indices in reads:
        for index, size in zip(indices, shapes[buffer], strict=True):
            # einsum runs over whole dimensions: an axis that is shorter is another program
            if index[0] != "index" or extents[index[1]] != size:
                return None
        names = [index[1] for index in indices]
        used.update(names)
        subscripts.append("".join(letter[name] for name in names))
    if used != set(extents):
        return None  # einsum cannot know how often to repeat what does not depend on an index
    return ",".join(subscripts), [read[1] for read in reads]


# %% mistake: one_sum_only
# You unwrap one sum. There may be several, each within the other.
def lower_to_einsum(
    program: dict, shapes: dict[str, tuple[int, ...]]
) -> tuple[str, list[str]] | None:
    """Return an einsum equation and the names of its operands, or None if there is none."""

    def factors(node: tuple) -> list[tuple] | None:
        """Return the reads that are multiplied, or None if there is anything else."""
        if node[0] == "read":
            return [node]
        if node[0] != "*":
            return None
        left, right = factors(node[1]), factors(node[2])
        return None if left is None or right is None else left + right

    extents = dict(program["axes"])
    axes = list(extents)
    body = program["body"]
    if body[0] == "sum":
        _, name, extent, body = body
        if name in extents:
            return None  # an inner index hides an outer one of the same name
        extents[name] = extent
    reads = factors(body)
    if reads is None:
        return None

    letter = {name: chr(ord("a") + number) for number, name in enumerate(extents)}
    subscripts, used = [], set()
    for _, buffer, indices in reads:
        for index, size in zip(indices, shapes[buffer], strict=True):
            # einsum runs over whole dimensions: an axis that is shorter is another program
            if index[0] != "index" or extents[index[1]] != size:
                return None
        names = [index[1] for index in indices]
        used.update(names)
        subscripts.append("".join(letter[name] for name in names))
    if used != set(extents):
        return None  # einsum cannot know how often to repeat what does not depend on an index
    result = "".join(letter[name] for name in axes)
    return f"{','.join(subscripts)}->{result}", [read[1] for read in reads]


# %% alternate: letters_on_demand
# Letters are given out as names are met; sizes are compared at the end.
def lower_to_einsum(program, shapes):
    sizes = {}
    node, wanted = program["body"], list(program["axes"])
    while node[0] == "sum":
        wanted.append((node[1], node[2]))
        node = node[3]
    if len(dict(wanted)) < len(wanted):
        return None
    letters, terms, names, stack = {}, [], [], [node]
    while stack:
        node = stack.pop()
        if node[0] == "*":
            stack += [node[1], node[2]]
        elif node[0] == "read" and all(index[0] == "index" for index in node[2]):
            term = ""
            for (_, name), size in zip(node[2], shapes[node[1]]):
                if sizes.setdefault(name, size) != size:
                    return None
                term += letters.setdefault(name, chr(65 + len(letters)))
            terms.append(term)
            names.append(node[1])
        else:
            return None
    if sizes != dict(wanted):
        return None
    return ",".join(terms) + "->" + "".join(letters[name] for name, _ in program["axes"]), names


# %% alternate: by_exception
# Anything that does not fit raises, and the exception becomes None.
def lower_to_einsum(program, shapes):
    class NoContraction(Exception):
        pass

    def demand(condition):
        if not condition:
            raise NoContraction

    def walk(node, scope):
        if node[0] == "sum":
            demand(node[1] not in scope)
            scope[node[1]] = node[2]
            return walk(node[3], scope)
        return product(node, scope)

    def product(node, scope):
        if node[0] == "*":
            return product(node[1], scope) + product(node[2], scope)
        demand(node[0] == "read")
        for place, index in enumerate(node[2]):
            demand(index[0] == "index" and scope[index[1]] == shapes[node[1]][place])
        return [(node[1], [index[1] for index in node[2]])]

    try:
        scope = dict(program["axes"])
        reads = walk(program["body"], scope)
        demand({name for _, indices in reads for name in indices} == set(scope))
    except NoContraction:
        return None
    order = list(scope)

    def word(indices):
        return "".join("abcdefghijklmnopqrstuvwxyz"[order.index(i)] for i in indices)

    left = ", ".join(word(indices) for _, indices in reads)
    return f"{left} -> {word(name for name, _ in program['axes'])}", [name for name, _ in reads]
