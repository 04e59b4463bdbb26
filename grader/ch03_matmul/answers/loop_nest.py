# %% mistake: no_parentheses
# You wrote operations side by side. `("-", a, ("-", b, c))` becomes `a - b - c`, which is something
# else: put parentheses around every operation.
def loop_nest(program: dict, order: tuple[str, ...]) -> str:
    """Return Python source that computes `program` into `out`, its loops in this order."""

    def place(name: str, indices: Iterable[str]) -> str:
        return f"{name}[{', '.join(indices) or '()'}]"

    def text(node: tuple) -> str:
        match node:
            case ("number", value):
                return repr(value)
            case ("index", name):
                return name
            case ("read", name, indices):
                return place(name, map(text, indices))
            case ("where", condition, yes, no):
                # Python evaluates one side only, which is what makes padding possible
                return f"({text(yes)} if {text(condition)} else {text(no)})"
            case ("&", left, right):
                return f"({text(left)} and {text(right)})"
            case (op, left, right):
                return f"{text(left)} {op} {text(right)}"

    def nest(names: tuple[str, ...], statement: str) -> list[str]:
        lines = [f"{'    ' * d}for {n} in range({extents[n]}):" for d, n in enumerate(names)]
        return [*lines, "    " * len(names) + statement]

    extents = dict(program["axes"])
    axes = tuple(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        extents[name] = extent
    if sorted(order) != sorted(extents):
        raise ValueError(f"the loops are {sorted(extents)}, the order names {sorted(order)}")

    out = place("out", axes)
    if len(extents) == len(axes):
        return "\n".join(nest(order, f"{out} = {text(body)}"))
    # A sum may be visited many times, with other work in between: it starts at zero beforehand.
    return "\n".join([*nest(axes, f"{out} = 0"), *nest(order, f"{out} += {text(body)}")])


# %% mistake: starts_the_sum_inside
# You set the sum to zero inside the loops over the axes of the result. That is right while its own
# loop stands innermost. As soon as it stands further out, every visit begins at zero again.
def loop_nest(program: dict, order: tuple[str, ...]) -> str:
    """Return Python source that computes `program` into `out`, its loops in this order."""

    def place(name: str, indices: Iterable[str]) -> str:
        return f"{name}[{', '.join(indices) or '()'}]"

    def text(node: tuple) -> str:
        match node:
            case ("number", value):
                return repr(value)
            case ("index", name):
                return name
            case ("read", name, indices):
                return place(name, map(text, indices))
            case ("where", condition, yes, no):
                # Python evaluates one side only, which is what makes padding possible
                return f"({text(yes)} if {text(condition)} else {text(no)})"
            case ("&", left, right):
                return f"({text(left)} and {text(right)})"
            case (op, left, right):
                return f"({text(left)} {op} {text(right)})"

    def nest(names: tuple[str, ...], statement: str) -> list[str]:
        lines = [f"{'    ' * d}for {n} in range({extents[n]}):" for d, n in enumerate(names)]
        return [*lines, "    " * len(names) + statement]

    extents = dict(program["axes"])
    axes = tuple(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        extents[name] = extent
    if sorted(order) != sorted(extents):
        raise ValueError(f"the loops are {sorted(extents)}, the order names {sorted(order)}")

    out = place("out", axes)
    if len(extents) == len(axes):
        return "\n".join(nest(order, f"{out} = {text(body)}"))
    # A sum may be visited many times, with other work in between: it starts at zero beforehand.
    lines = nest(order, f"{out} += {text(body)}")
    depth = max((order.index(name) + 1 for name in axes), default=0)
    return "\n".join([*lines[:depth], "    " * depth + f"{out} = 0", *lines[depth:]])


# %% mistake: never_starts_the_sum
# You add to `out` without setting it to zero. It holds whatever was there before.
def loop_nest(program: dict, order: tuple[str, ...]) -> str:
    """Return Python source that computes `program` into `out`, its loops in this order."""

    def place(name: str, indices: Iterable[str]) -> str:
        return f"{name}[{', '.join(indices) or '()'}]"

    def text(node: tuple) -> str:
        match node:
            case ("number", value):
                return repr(value)
            case ("index", name):
                return name
            case ("read", name, indices):
                return place(name, map(text, indices))
            case ("where", condition, yes, no):
                # Python evaluates one side only, which is what makes padding possible
                return f"({text(yes)} if {text(condition)} else {text(no)})"
            case ("&", left, right):
                return f"({text(left)} and {text(right)})"
            case (op, left, right):
                return f"({text(left)} {op} {text(right)})"

    def nest(names: tuple[str, ...], statement: str) -> list[str]:
        lines = [f"{'    ' * d}for {n} in range({extents[n]}):" for d, n in enumerate(names)]
        return [*lines, "    " * len(names) + statement]

    extents = dict(program["axes"])
    axes = tuple(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        extents[name] = extent
    if sorted(order) != sorted(extents):
        raise ValueError(f"the loops are {sorted(extents)}, the order names {sorted(order)}")

    out = place("out", axes)
    if len(extents) == len(axes):
        return "\n".join(nest(order, f"{out} = {text(body)}"))
    # A sum may be visited many times, with other work in between: it starts at zero beforehand.
    return "\n".join(nest(order, f"{out} += {text(body)}"))


# %% mistake: ignores_the_order
# Your loops always stand in the order in which the program names them. The result is right; the
# schedule is not the one that was asked for.
def loop_nest(program: dict, order: tuple[str, ...]) -> str:
    """Return Python source that computes `program` into `out`, its loops in this order."""

    def place(name: str, indices: Iterable[str]) -> str:
        return f"{name}[{', '.join(indices) or '()'}]"

    def text(node: tuple) -> str:
        match node:
            case ("number", value):
                return repr(value)
            case ("index", name):
                return name
            case ("read", name, indices):
                return place(name, map(text, indices))
            case ("where", condition, yes, no):
                # Python evaluates one side only, which is what makes padding possible
                return f"({text(yes)} if {text(condition)} else {text(no)})"
            case ("&", left, right):
                return f"({text(left)} and {text(right)})"
            case (op, left, right):
                return f"({text(left)} {op} {text(right)})"

    def nest(names: tuple[str, ...], statement: str) -> list[str]:
        lines = [f"{'    ' * d}for {n} in range({extents[n]}):" for d, n in enumerate(names)]
        return [*lines, "    " * len(names) + statement]

    extents = dict(program["axes"])
    axes = tuple(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        extents[name] = extent
    if sorted(order) != sorted(extents):
        raise ValueError(f"the loops are {sorted(extents)}, the order names {sorted(order)}")

    out = place("out", axes)
    if len(extents) == len(axes):
        return "\n".join(nest(axes, f"{out} = {text(body)}"))
    # A sum may be visited many times, with other work in between: it starts at zero beforehand.
    return "\n".join([*nest(axes, f"{out} = 0"), *nest(tuple(extents), f"{out} += {text(body)}")])


# %% mistake: innermost_first
# You took the order from the inside out. Its first name is the outermost loop.
def loop_nest(program: dict, order: tuple[str, ...]) -> str:
    """Return Python source that computes `program` into `out`, its loops in this order."""

    def place(name: str, indices: Iterable[str]) -> str:
        return f"{name}[{', '.join(indices) or '()'}]"

    def text(node: tuple) -> str:
        match node:
            case ("number", value):
                return repr(value)
            case ("index", name):
                return name
            case ("read", name, indices):
                return place(name, map(text, indices))
            case ("where", condition, yes, no):
                # Python evaluates one side only, which is what makes padding possible
                return f"({text(yes)} if {text(condition)} else {text(no)})"
            case ("&", left, right):
                return f"({text(left)} and {text(right)})"
            case (op, left, right):
                return f"({text(left)} {op} {text(right)})"

    def nest(names: tuple[str, ...], statement: str) -> list[str]:
        lines = [f"{'    ' * d}for {n} in range({extents[n]}):" for d, n in enumerate(names)]
        return [*lines, "    " * len(names) + statement]

    extents = dict(program["axes"])
    axes = tuple(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        extents[name] = extent
    if sorted(order) != sorted(extents):
        raise ValueError(f"the loops are {sorted(extents)}, the order names {sorted(order)}")

    out = place("out", axes)
    if len(extents) == len(axes):
        return "\n".join(nest(order[::-1], f"{out} = {text(body)}"))
    # A sum may be visited many times, with other work in between: it starts at zero beforehand.
    return "\n".join([*nest(axes, f"{out} = 0"), *nest(order[::-1], f"{out} += {text(body)}")])


# %% mistake: sums_stay_inside
# You moved the loops over the axes and left those over the sums inside. A schedule may put a sum
# outside; that is what it takes to read side by side.
def loop_nest(program: dict, order: tuple[str, ...]) -> str:
    """Return Python source that computes `program` into `out`, its loops in this order."""

    def place(name: str, indices: Iterable[str]) -> str:
        return f"{name}[{', '.join(indices) or '()'}]"

    def text(node: tuple) -> str:
        match node:
            case ("number", value):
                return repr(value)
            case ("index", name):
                return name
            case ("read", name, indices):
                return place(name, map(text, indices))
            case ("where", condition, yes, no):
                # Python evaluates one side only, which is what makes padding possible
                return f"({text(yes)} if {text(condition)} else {text(no)})"
            case ("&", left, right):
                return f"({text(left)} and {text(right)})"
            case (op, left, right):
                return f"({text(left)} {op} {text(right)})"

    def nest(names: tuple[str, ...], statement: str) -> list[str]:
        lines = [f"{'    ' * d}for {n} in range({extents[n]}):" for d, n in enumerate(names)]
        return [*lines, "    " * len(names) + statement]

    extents = dict(program["axes"])
    axes = tuple(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        extents[name] = extent
    if sorted(order) != sorted(extents):
        raise ValueError(f"the loops are {sorted(extents)}, the order names {sorted(order)}")

    out = place("out", axes)
    if len(extents) == len(axes):
        return "\n".join(nest(order, f"{out} = {text(body)}"))
    # A sum may be visited many times, with other work in between: it starts at zero beforehand.
    return "\n".join(
        [
            *nest(axes, f"{out} = 0"),
            *nest(
                tuple(n for n in order if n in axes) + tuple(n for n in order if n not in axes),
                f"{out} += {text(body)}",
            ),
        ]
    )


# %% mistake: both_sides
# Your `where` evaluates both sides and chooses afterwards, or multiplies each by its condition. The
# side that is not needed may read outside of the buffer: that is why the formula asks first. Write
# `yes if condition else no`.
def loop_nest(program: dict, order: tuple[str, ...]) -> str:
    """Return Python source that computes `program` into `out`, its loops in this order."""

    def place(name: str, indices: Iterable[str]) -> str:
        return f"{name}[{', '.join(indices) or '()'}]"

    def text(node: tuple) -> str:
        match node:
            case ("number", value):
                return repr(value)
            case ("index", name):
                return name
            case ("read", name, indices):
                return place(name, map(text, indices))
            case ("where", condition, yes, no):
                # Python evaluates one side only, which is what makes padding possible
                return f"[{text(no)}, {text(yes)}][bool({text(condition)})]"
            case ("&", left, right):
                return f"({text(left)} and {text(right)})"
            case (op, left, right):
                return f"({text(left)} {op} {text(right)})"

    def nest(names: tuple[str, ...], statement: str) -> list[str]:
        lines = [f"{'    ' * d}for {n} in range({extents[n]}):" for d, n in enumerate(names)]
        return [*lines, "    " * len(names) + statement]

    extents = dict(program["axes"])
    axes = tuple(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        extents[name] = extent
    if sorted(order) != sorted(extents):
        raise ValueError(f"the loops are {sorted(extents)}, the order names {sorted(order)}")

    out = place("out", axes)
    if len(extents) == len(axes):
        return "\n".join(nest(order, f"{out} = {text(body)}"))
    # A sum may be visited many times, with other work in between: it starts at zero beforehand.
    return "\n".join([*nest(axes, f"{out} = 0"), *nest(order, f"{out} += {text(body)}")])


# %% mistake: and_of_both
# You joined conditions with `&`, which evaluates both. `and` stops at the first one that is false,
# and the second may rely on it.
def loop_nest(program: dict, order: tuple[str, ...]) -> str:
    """Return Python source that computes `program` into `out`, its loops in this order."""

    def place(name: str, indices: Iterable[str]) -> str:
        return f"{name}[{', '.join(indices) or '()'}]"

    def text(node: tuple) -> str:
        match node:
            case ("number", value):
                return repr(value)
            case ("index", name):
                return name
            case ("read", name, indices):
                return place(name, map(text, indices))
            case ("where", condition, yes, no):
                # Python evaluates one side only, which is what makes padding possible
                return f"({text(yes)} if {text(condition)} else {text(no)})"
            case ("&", left, right):
                return f"({text(left)} & {text(right)})"
            case (op, left, right):
                return f"({text(left)} {op} {text(right)})"

    def nest(names: tuple[str, ...], statement: str) -> list[str]:
        lines = [f"{'    ' * d}for {n} in range({extents[n]}):" for d, n in enumerate(names)]
        return [*lines, "    " * len(names) + statement]

    extents = dict(program["axes"])
    axes = tuple(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        extents[name] = extent
    if sorted(order) != sorted(extents):
        raise ValueError(f"the loops are {sorted(extents)}, the order names {sorted(order)}")

    out = place("out", axes)
    if len(extents) == len(axes):
        return "\n".join(nest(order, f"{out} = {text(body)}"))
    # A sum may be visited many times, with other work in between: it starts at zero beforehand.
    return "\n".join([*nest(axes, f"{out} = 0"), *nest(order, f"{out} += {text(body)}")])


# %% mistake: forgets_numbers_of_no_dimension
# A result without dimensions has an index too, the empty tuple: `out[()]`. Empty brackets are no
# Python.
def loop_nest(program: dict, order: tuple[str, ...]) -> str:
    """Return Python source that computes `program` into `out`, its loops in this order."""

    def place(name: str, indices: Iterable[str]) -> str:
        return f"{name}[{', '.join(indices)}]"

    def text(node: tuple) -> str:
        match node:
            case ("number", value):
                return repr(value)
            case ("index", name):
                return name
            case ("read", name, indices):
                return place(name, map(text, indices))
            case ("where", condition, yes, no):
                # Python evaluates one side only, which is what makes padding possible
                return f"({text(yes)} if {text(condition)} else {text(no)})"
            case ("&", left, right):
                return f"({text(left)} and {text(right)})"
            case (op, left, right):
                return f"({text(left)} {op} {text(right)})"

    def nest(names: tuple[str, ...], statement: str) -> list[str]:
        lines = [f"{'    ' * d}for {n} in range({extents[n]}):" for d, n in enumerate(names)]
        return [*lines, "    " * len(names) + statement]

    extents = dict(program["axes"])
    axes = tuple(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        extents[name] = extent
    if sorted(order) != sorted(extents):
        raise ValueError(f"the loops are {sorted(extents)}, the order names {sorted(order)}")

    out = place("out", axes)
    if len(extents) == len(axes):
        return "\n".join(nest(order, f"{out} = {text(body)}"))
    # A sum may be visited many times, with other work in between: it starts at zero beforehand.
    return "\n".join([*nest(axes, f"{out} = 0"), *nest(order, f"{out} += {text(body)}")])


# %% mistake: takes_any_order
# You did not look whether the order holds every loop once. A loop that is missing, or there twice,
# is an error: raise `ValueError`.
def loop_nest(program: dict, order: tuple[str, ...]) -> str:
    """Return Python source that computes `program` into `out`, its loops in this order."""

    def place(name: str, indices: Iterable[str]) -> str:
        return f"{name}[{', '.join(indices) or '()'}]"

    def text(node: tuple) -> str:
        match node:
            case ("number", value):
                return repr(value)
            case ("index", name):
                return name
            case ("read", name, indices):
                return place(name, map(text, indices))
            case ("where", condition, yes, no):
                # Python evaluates one side only, which is what makes padding possible
                return f"({text(yes)} if {text(condition)} else {text(no)})"
            case ("&", left, right):
                return f"({text(left)} and {text(right)})"
            case (op, left, right):
                return f"({text(left)} {op} {text(right)})"

    def nest(names: tuple[str, ...], statement: str) -> list[str]:
        lines = [f"{'    ' * d}for {n} in range({extents[n]}):" for d, n in enumerate(names)]
        return [*lines, "    " * len(names) + statement]

    extents = dict(program["axes"])
    axes = tuple(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        extents[name] = extent

    out = place("out", axes)
    if len(extents) == len(axes):
        return "\n".join(nest(order, f"{out} = {text(body)}"))
    # A sum may be visited many times, with other work in between: it starts at zero beforehand.
    return "\n".join([*nest(axes, f"{out} = 0"), *nest(order, f"{out} += {text(body)}")])


# %% mistake: sets_of_names
# You compared the names as sets. A loop that occurs twice goes unnoticed: sort both, or count.
def loop_nest(program: dict, order: tuple[str, ...]) -> str:
    """Return Python source that computes `program` into `out`, its loops in this order."""

    def place(name: str, indices: Iterable[str]) -> str:
        return f"{name}[{', '.join(indices) or '()'}]"

    def text(node: tuple) -> str:
        match node:
            case ("number", value):
                return repr(value)
            case ("index", name):
                return name
            case ("read", name, indices):
                return place(name, map(text, indices))
            case ("where", condition, yes, no):
                # Python evaluates one side only, which is what makes padding possible
                return f"({text(yes)} if {text(condition)} else {text(no)})"
            case ("&", left, right):
                return f"({text(left)} and {text(right)})"
            case (op, left, right):
                return f"({text(left)} {op} {text(right)})"

    def nest(names: tuple[str, ...], statement: str) -> list[str]:
        lines = [f"{'    ' * d}for {n} in range({extents[n]}):" for d, n in enumerate(names)]
        return [*lines, "    " * len(names) + statement]

    extents = dict(program["axes"])
    axes = tuple(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        extents[name] = extent
    if set(order) != set(extents):
        raise ValueError(f"the loops are {sorted(extents)}, the order names {sorted(order)}")

    out = place("out", axes)
    if len(extents) == len(axes):
        return "\n".join(nest(order, f"{out} = {text(body)}"))
    # A sum may be visited many times, with other work in between: it starts at zero beforehand.
    return "\n".join([*nest(axes, f"{out} = 0"), *nest(order, f"{out} += {text(body)}")])


# %% alternate: accumulates_where_it_can
# One nest with a local sum where the sums stand innermost, two nests otherwise.
def loop_nest(program, order):
    axes = [name for name, _ in program["axes"]]
    sizes, body = dict(program["axes"]), program["body"]
    while body[0] == "sum":
        sizes[body[1]] = body[2]
        body = body[3]
    if len(order) != len(sizes) or set(order) != set(sizes):
        raise ValueError("order")

    def expression(node):
        kind = node[0]
        if kind == "number":
            return f"({node[1]})"
        if kind == "index":
            return node[1]
        if kind == "read":
            inner = ",".join(expression(index) for index in node[2])
            return f"{node[1]}[{inner}]" if inner else f"{node[1]}[()]"
        if kind == "where":
            test, yes, no = map(expression, node[1:])
            return f"(({yes}) if ({test}) else ({no}))"
        left, right = map(expression, node[1:])
        return f"(({left}) {'and' if kind == '&' else kind} ({right}))"

    target = "out[" + (",".join(axes) or "()") + "]"
    text, sums = expression(body), set(sizes) - set(axes)
    lines, indent = [], ""

    def open_loop(name):
        nonlocal indent
        lines.append(f"{indent}for {name} in range({sizes[name]}):")
        indent += "\t"

    if set(order[: len(axes)]) == set(axes):
        for name in order[: len(axes)]:
            open_loop(name)
        if not sums:
            lines.append(f"{indent}{target} = {text}")
            return "\n".join(lines)
        lines.append(f"{indent}acc = 0")
        outside = indent
        for name in order[len(axes) :]:
            open_loop(name)
        lines.append(f"{indent}acc += {text}")
        lines.append(f"{outside}{target} = acc")
        return "\n".join(lines)
    for name in axes:
        open_loop(name)
    lines.append(f"{indent}{target} = 0")
    indent = ""
    for name in order:
        open_loop(name)
    lines.append(f"{indent}{target} = {target} + {text}")
    return "\n".join(lines)


# %% alternate: written_from_the_inside
# The statement first, then one loop after the other around it.
def loop_nest(program, order):
    def show(node):
        if node[0] in ("number", "index"):
            return str(node[1])
        if node[0] == "read":
            return node[1] + "[(" + "".join(show(i) + ", " for i in node[2]) + ")]"
        if node[0] == "where":
            return "(lambda: {1}, lambda: {2})[0 if {0} else 1]()".format(*map(show, node[1:]))
        op = {"&": "and"}.get(node[0], node[0])
        return f"({show(node[1])} {op} {show(node[2])})"

    extent, sums, body = dict(program["axes"]), [], program["body"]
    out = "out[(" + "".join(name + ", " for name in extent) + ")]"
    axes = list(extent)
    while body[0] == "sum":
        sums.append(body[1])
        extent[body[1]] = body[2]
        body = body[3]
    if sorted([*axes, *sums]) != sorted(order):
        raise ValueError(order)

    def around(names, block):
        for name in reversed(names):
            block = [f"for {name} in range({extent[name]}):"] + [" " + line for line in block]
        return block

    zero = around(axes, [f"{out} = 0"])
    work = around(order, [f"{out} += {show(body)}"])
    return "\n".join(zero + work) + "\n"
