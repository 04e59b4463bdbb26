# %% mistake: no_reflected_operators
# You wrote the operators for an `Expr` on the left. In `2 * i` the number stands on the left:
# Python asks it first, and then your `__rmul__`, which is not there. Write `__radd__`, `__rsub__`
# and the others.
class Expr:
    """A formula so far: what is done to it is recorded in `node`."""

    def __init__(self, node: tuple) -> None:
        self.node = node

    @staticmethod
    def node_of(value: object) -> tuple:
        """Return the node of an Expr, or make one of a number."""
        return value.node if isinstance(value, Expr) else ("number", value)

    @staticmethod
    def binary(op: str, left: object, right: object) -> "Expr":
        """Record an operation on two sides, either of which may be a number."""
        return Expr((op, Expr.node_of(left), Expr.node_of(right)))

    def __add__(self, other: object) -> "Expr":
        return Expr.binary("+", self, other)

    def _no_radd(self, other: object) -> "Expr":
        return Expr.binary("+", other, self)

    def __sub__(self, other: object) -> "Expr":
        return Expr.binary("-", self, other)

    def _no_rsub(self, other: object) -> "Expr":
        return Expr.binary("-", other, self)

    def __mul__(self, other: object) -> "Expr":
        return Expr.binary("*", self, other)

    def _no_rmul(self, other: object) -> "Expr":
        return Expr.binary("*", other, self)

    def __floordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", self, other)

    def _no_rfloordiv(self, other: object) -> "Expr":
        return Expr.binary("//", other, self)

    def __mod__(self, other: object) -> "Expr":
        return Expr.binary("%", self, other)

    def _no_rmod(self, other: object) -> "Expr":
        return Expr.binary("%", other, self)

    def __lt__(self, other: object) -> "Expr":
        return Expr.binary("<", self, other)

    def __le__(self, other: object) -> "Expr":
        return Expr.binary("<=", self, other)

    def __gt__(self, other: object) -> "Expr":
        return Expr.binary(">", self, other)

    def __ge__(self, other: object) -> "Expr":
        return Expr.binary(">=", self, other)

    def __and__(self, other: object) -> "Expr":
        return Expr.binary("&", self, other)

    def __neg__(self) -> "Expr":
        return Expr.binary("-", 0, self)

    def __bool__(self) -> bool:
        # A tracer sees one call. It cannot follow both sides of an `if`.
        raise TypeError("not known yet: write where(...) for `if`, and & for `and`")


class Buffer:
    """A tensor in a formula: known by name, read by index."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, index: object) -> Expr:
        indices = index if isinstance(index, tuple) else (index,)
        return Expr(("read", self.name, tuple(Expr.node_of(i) for i in indices)))


def where(condition: Expr, yes: object, no: object) -> Expr:
    """Return `yes` where the condition holds, else `no`."""
    return Expr(("where", *map(Expr.node_of, (condition, yes, no))))


def total(extents: tuple[int, ...], formula: object) -> Expr:
    """Return the sum of `formula` over indices of these extents."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    # strict: zip itself raises ValueError where names and extents are not as many
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        body = ("sum", name, extent, body)
    return Expr(body)


def compute(shape: tuple[int, ...], formula: object) -> dict:
    """Return the program whose element at each index is what `formula` says."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    return {"axes": tuple(zip(names, shape, strict=True)), "body": body}


# %% mistake: reflected_in_the_wrong_order
# In your reflected operators the sides are exchanged. `2 - x` calls `x.__rsub__(2)`: the argument
# is the *left* side. For `+` and `*` nobody notices.
class Expr:
    """A formula so far: what is done to it is recorded in `node`."""

    def __init__(self, node: tuple) -> None:
        self.node = node

    @staticmethod
    def node_of(value: object) -> tuple:
        """Return the node of an Expr, or make one of a number."""
        return value.node if isinstance(value, Expr) else ("number", value)

    @staticmethod
    def binary(op: str, left: object, right: object) -> "Expr":
        """Record an operation on two sides, either of which may be a number."""
        return Expr((op, Expr.node_of(left), Expr.node_of(right)))

    def __add__(self, other: object) -> "Expr":
        return Expr.binary("+", self, other)

    def __radd__(self, other: object) -> "Expr":
        return Expr.binary("+", other, self)

    def __sub__(self, other: object) -> "Expr":
        return Expr.binary("-", self, other)

    def __rsub__(self, other: object) -> "Expr":
        return Expr.binary("-", self, other)

    def __mul__(self, other: object) -> "Expr":
        return Expr.binary("*", self, other)

    def __rmul__(self, other: object) -> "Expr":
        return Expr.binary("*", other, self)

    def __floordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", self, other)

    def __rfloordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", self, other)

    def __mod__(self, other: object) -> "Expr":
        return Expr.binary("%", self, other)

    def __rmod__(self, other: object) -> "Expr":
        return Expr.binary("%", self, other)

    def __lt__(self, other: object) -> "Expr":
        return Expr.binary("<", self, other)

    def __le__(self, other: object) -> "Expr":
        return Expr.binary("<=", self, other)

    def __gt__(self, other: object) -> "Expr":
        return Expr.binary(">", self, other)

    def __ge__(self, other: object) -> "Expr":
        return Expr.binary(">=", self, other)

    def __and__(self, other: object) -> "Expr":
        return Expr.binary("&", self, other)

    def __neg__(self) -> "Expr":
        return Expr.binary("-", 0, self)

    def __bool__(self) -> bool:
        # A tracer sees one call. It cannot follow both sides of an `if`.
        raise TypeError("not known yet: write where(...) for `if`, and & for `and`")


class Buffer:
    """A tensor in a formula: known by name, read by index."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, index: object) -> Expr:
        indices = index if isinstance(index, tuple) else (index,)
        return Expr(("read", self.name, tuple(Expr.node_of(i) for i in indices)))


def where(condition: Expr, yes: object, no: object) -> Expr:
    """Return `yes` where the condition holds, else `no`."""
    return Expr(("where", *map(Expr.node_of, (condition, yes, no))))


def total(extents: tuple[int, ...], formula: object) -> Expr:
    """Return the sum of `formula` over indices of these extents."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    # strict: zip itself raises ValueError where names and extents are not as many
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        body = ("sum", name, extent, body)
    return Expr(body)


def compute(shape: tuple[int, ...], formula: object) -> dict:
    """Return the program whose element at each index is what `formula` says."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    return {"axes": tuple(zip(names, shape, strict=True)), "body": body}


# %% mistake: true_by_default
# Without `__bool__` every object is true. A formula with an `if` is then recorded with one side of
# it, and a chained comparison loses its first half; nothing tells you. Raise `TypeError`.
class Expr:
    """A formula so far: what is done to it is recorded in `node`."""

    def __init__(self, node: tuple) -> None:
        self.node = node

    @staticmethod
    def node_of(value: object) -> tuple:
        """Return the node of an Expr, or make one of a number."""
        return value.node if isinstance(value, Expr) else ("number", value)

    @staticmethod
    def binary(op: str, left: object, right: object) -> "Expr":
        """Record an operation on two sides, either of which may be a number."""
        return Expr((op, Expr.node_of(left), Expr.node_of(right)))

    def __add__(self, other: object) -> "Expr":
        return Expr.binary("+", self, other)

    def __radd__(self, other: object) -> "Expr":
        return Expr.binary("+", other, self)

    def __sub__(self, other: object) -> "Expr":
        return Expr.binary("-", self, other)

    def __rsub__(self, other: object) -> "Expr":
        return Expr.binary("-", other, self)

    def __mul__(self, other: object) -> "Expr":
        return Expr.binary("*", self, other)

    def __rmul__(self, other: object) -> "Expr":
        return Expr.binary("*", other, self)

    def __floordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", self, other)

    def __rfloordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", other, self)

    def __mod__(self, other: object) -> "Expr":
        return Expr.binary("%", self, other)

    def __rmod__(self, other: object) -> "Expr":
        return Expr.binary("%", other, self)

    def __lt__(self, other: object) -> "Expr":
        return Expr.binary("<", self, other)

    def __le__(self, other: object) -> "Expr":
        return Expr.binary("<=", self, other)

    def __gt__(self, other: object) -> "Expr":
        return Expr.binary(">", self, other)

    def __ge__(self, other: object) -> "Expr":
        return Expr.binary(">=", self, other)

    def __and__(self, other: object) -> "Expr":
        return Expr.binary("&", self, other)

    def __neg__(self) -> "Expr":
        return Expr.binary("-", 0, self)


class Buffer:
    """A tensor in a formula: known by name, read by index."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, index: object) -> Expr:
        indices = index if isinstance(index, tuple) else (index,)
        return Expr(("read", self.name, tuple(Expr.node_of(i) for i in indices)))


def where(condition: Expr, yes: object, no: object) -> Expr:
    """Return `yes` where the condition holds, else `no`."""
    return Expr(("where", *map(Expr.node_of, (condition, yes, no))))


def total(extents: tuple[int, ...], formula: object) -> Expr:
    """Return the sum of `formula` over indices of these extents."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    # strict: zip itself raises ValueError where names and extents are not as many
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        body = ("sum", name, extent, body)
    return Expr(body)


def compute(shape: tuple[int, ...], formula: object) -> dict:
    """Return the program whose element at each index is what `formula` says."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    return {"axes": tuple(zip(names, shape, strict=True)), "body": body}


# %% mistake: raises_value_error
# Asking an `Expr` whether it is true raises in your language, but not the `TypeError` that was
# asked for.
class Expr:
    """A formula so far: what is done to it is recorded in `node`."""

    def __init__(self, node: tuple) -> None:
        self.node = node

    @staticmethod
    def node_of(value: object) -> tuple:
        """Return the node of an Expr, or make one of a number."""
        return value.node if isinstance(value, Expr) else ("number", value)

    @staticmethod
    def binary(op: str, left: object, right: object) -> "Expr":
        """Record an operation on two sides, either of which may be a number."""
        return Expr((op, Expr.node_of(left), Expr.node_of(right)))

    def __add__(self, other: object) -> "Expr":
        return Expr.binary("+", self, other)

    def __radd__(self, other: object) -> "Expr":
        return Expr.binary("+", other, self)

    def __sub__(self, other: object) -> "Expr":
        return Expr.binary("-", self, other)

    def __rsub__(self, other: object) -> "Expr":
        return Expr.binary("-", other, self)

    def __mul__(self, other: object) -> "Expr":
        return Expr.binary("*", self, other)

    def __rmul__(self, other: object) -> "Expr":
        return Expr.binary("*", other, self)

    def __floordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", self, other)

    def __rfloordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", other, self)

    def __mod__(self, other: object) -> "Expr":
        return Expr.binary("%", self, other)

    def __rmod__(self, other: object) -> "Expr":
        return Expr.binary("%", other, self)

    def __lt__(self, other: object) -> "Expr":
        return Expr.binary("<", self, other)

    def __le__(self, other: object) -> "Expr":
        return Expr.binary("<=", self, other)

    def __gt__(self, other: object) -> "Expr":
        return Expr.binary(">", self, other)

    def __ge__(self, other: object) -> "Expr":
        return Expr.binary(">=", self, other)

    def __and__(self, other: object) -> "Expr":
        return Expr.binary("&", self, other)

    def __neg__(self) -> "Expr":
        return Expr.binary("-", 0, self)

    def __bool__(self) -> bool:
        # A tracer sees one call. It cannot follow both sides of an `if`.
        raise ValueError("not known yet: write where(...) for `if`, and & for `and`")


class Buffer:
    """A tensor in a formula: known by name, read by index."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, index: object) -> Expr:
        indices = index if isinstance(index, tuple) else (index,)
        return Expr(("read", self.name, tuple(Expr.node_of(i) for i in indices)))


def where(condition: Expr, yes: object, no: object) -> Expr:
    """Return `yes` where the condition holds, else `no`."""
    return Expr(("where", *map(Expr.node_of, (condition, yes, no))))


def total(extents: tuple[int, ...], formula: object) -> Expr:
    """Return the sum of `formula` over indices of these extents."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    # strict: zip itself raises ValueError where names and extents are not as many
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        body = ("sum", name, extent, body)
    return Expr(body)


def compute(shape: tuple[int, ...], formula: object) -> dict:
    """Return the program whose element at each index is what `formula` says."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    return {"axes": tuple(zip(names, shape, strict=True)), "body": body}


# %% mistake: bare_index
# For `A[i]` Python hands over the index itself, for `A[i, j]` a tuple. You recorded the first as it
# came. A read has one node per dimension, in a tuple always.
class Expr:
    """A formula so far: what is done to it is recorded in `node`."""

    def __init__(self, node: tuple) -> None:
        self.node = node

    @staticmethod
    def node_of(value: object) -> tuple:
        """Return the node of an Expr, or make one of a number."""
        return value.node if isinstance(value, Expr) else ("number", value)

    @staticmethod
    def binary(op: str, left: object, right: object) -> "Expr":
        """Record an operation on two sides, either of which may be a number."""
        return Expr((op, Expr.node_of(left), Expr.node_of(right)))

    def __add__(self, other: object) -> "Expr":
        return Expr.binary("+", self, other)

    def __radd__(self, other: object) -> "Expr":
        return Expr.binary("+", other, self)

    def __sub__(self, other: object) -> "Expr":
        return Expr.binary("-", self, other)

    def __rsub__(self, other: object) -> "Expr":
        return Expr.binary("-", other, self)

    def __mul__(self, other: object) -> "Expr":
        return Expr.binary("*", self, other)

    def __rmul__(self, other: object) -> "Expr":
        return Expr.binary("*", other, self)

    def __floordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", self, other)

    def __rfloordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", other, self)

    def __mod__(self, other: object) -> "Expr":
        return Expr.binary("%", self, other)

    def __rmod__(self, other: object) -> "Expr":
        return Expr.binary("%", other, self)

    def __lt__(self, other: object) -> "Expr":
        return Expr.binary("<", self, other)

    def __le__(self, other: object) -> "Expr":
        return Expr.binary("<=", self, other)

    def __gt__(self, other: object) -> "Expr":
        return Expr.binary(">", self, other)

    def __ge__(self, other: object) -> "Expr":
        return Expr.binary(">=", self, other)

    def __and__(self, other: object) -> "Expr":
        return Expr.binary("&", self, other)

    def __neg__(self) -> "Expr":
        return Expr.binary("-", 0, self)

    def __bool__(self) -> bool:
        # A tracer sees one call. It cannot follow both sides of an `if`.
        raise TypeError("not known yet: write where(...) for `if`, and & for `and`")


class Buffer:
    """A tensor in a formula: known by name, read by index."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, index: object) -> Expr:
        indices = index if isinstance(index, tuple) else (index,)
        nodes = tuple(Expr.node_of(i) for i in indices)
        return Expr(("read", self.name, nodes if len(nodes) > 1 else nodes[0]))


def where(condition: Expr, yes: object, no: object) -> Expr:
    """Return `yes` where the condition holds, else `no`."""
    return Expr(("where", *map(Expr.node_of, (condition, yes, no))))


def total(extents: tuple[int, ...], formula: object) -> Expr:
    """Return the sum of `formula` over indices of these extents."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    # strict: zip itself raises ValueError where names and extents are not as many
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        body = ("sum", name, extent, body)
    return Expr(body)


def compute(shape: tuple[int, ...], formula: object) -> dict:
    """Return the program whose element at each index is what `formula` says."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    return {"axes": tuple(zip(names, shape, strict=True)), "body": body}


# %% mistake: numbers_as_they_are
# You left plain numbers in the tree. A number is a node like any other: `("number", 2)`. Otherwise
# whoever reads the tree meets things that are no nodes.
class Expr:
    """A formula so far: what is done to it is recorded in `node`."""

    def __init__(self, node: tuple) -> None:
        self.node = node

    @staticmethod
    def node_of(value: object) -> tuple:
        """Return the node of an Expr, or make one of a number."""
        return value.node if isinstance(value, Expr) else value

    @staticmethod
    def binary(op: str, left: object, right: object) -> "Expr":
        """Record an operation on two sides, either of which may be a number."""
        return Expr((op, Expr.node_of(left), Expr.node_of(right)))

    def __add__(self, other: object) -> "Expr":
        return Expr.binary("+", self, other)

    def __radd__(self, other: object) -> "Expr":
        return Expr.binary("+", other, self)

    def __sub__(self, other: object) -> "Expr":
        return Expr.binary("-", self, other)

    def __rsub__(self, other: object) -> "Expr":
        return Expr.binary("-", other, self)

    def __mul__(self, other: object) -> "Expr":
        return Expr.binary("*", self, other)

    def __rmul__(self, other: object) -> "Expr":
        return Expr.binary("*", other, self)

    def __floordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", self, other)

    def __rfloordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", other, self)

    def __mod__(self, other: object) -> "Expr":
        return Expr.binary("%", self, other)

    def __rmod__(self, other: object) -> "Expr":
        return Expr.binary("%", other, self)

    def __lt__(self, other: object) -> "Expr":
        return Expr.binary("<", self, other)

    def __le__(self, other: object) -> "Expr":
        return Expr.binary("<=", self, other)

    def __gt__(self, other: object) -> "Expr":
        return Expr.binary(">", self, other)

    def __ge__(self, other: object) -> "Expr":
        return Expr.binary(">=", self, other)

    def __and__(self, other: object) -> "Expr":
        return Expr.binary("&", self, other)

    def __neg__(self) -> "Expr":
        return Expr.binary("-", 0, self)

    def __bool__(self) -> bool:
        # A tracer sees one call. It cannot follow both sides of an `if`.
        raise TypeError("not known yet: write where(...) for `if`, and & for `and`")


class Buffer:
    """A tensor in a formula: known by name, read by index."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, index: object) -> Expr:
        indices = index if isinstance(index, tuple) else (index,)
        return Expr(("read", self.name, tuple(Expr.node_of(i) for i in indices)))


def where(condition: Expr, yes: object, no: object) -> Expr:
    """Return `yes` where the condition holds, else `no`."""
    return Expr(("where", *map(Expr.node_of, (condition, yes, no))))


def total(extents: tuple[int, ...], formula: object) -> Expr:
    """Return the sum of `formula` over indices of these extents."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    # strict: zip itself raises ValueError where names and extents are not as many
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        body = ("sum", name, extent, body)
    return Expr(body)


def compute(shape: tuple[int, ...], formula: object) -> dict:
    """Return the program whose element at each index is what `formula` says."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    return {"axes": tuple(zip(names, shape, strict=True)), "body": body}


# %% mistake: numbers_become_floats
# You convert every number to a float. A number that was whole has to stay whole: it may be an index,
# and `A[2.0]` is no element of `A`. Record what you were given.
class Expr:
    """A formula so far: what is done to it is recorded in `node`."""

    def __init__(self, node: tuple) -> None:
        self.node = node

    @staticmethod
    def node_of(value: object) -> tuple:
        """Return the node of an Expr, or make one of a number."""
        return value.node if isinstance(value, Expr) else ("number", float(value))

    @staticmethod
    def binary(op: str, left: object, right: object) -> "Expr":
        """Record an operation on two sides, either of which may be a number."""
        return Expr((op, Expr.node_of(left), Expr.node_of(right)))

    def __add__(self, other: object) -> "Expr":
        return Expr.binary("+", self, other)

    def __radd__(self, other: object) -> "Expr":
        return Expr.binary("+", other, self)

    def __sub__(self, other: object) -> "Expr":
        return Expr.binary("-", self, other)

    def __rsub__(self, other: object) -> "Expr":
        return Expr.binary("-", other, self)

    def __mul__(self, other: object) -> "Expr":
        return Expr.binary("*", self, other)

    def __rmul__(self, other: object) -> "Expr":
        return Expr.binary("*", other, self)

    def __floordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", self, other)

    def __rfloordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", other, self)

    def __mod__(self, other: object) -> "Expr":
        return Expr.binary("%", self, other)

    def __rmod__(self, other: object) -> "Expr":
        return Expr.binary("%", other, self)

    def __lt__(self, other: object) -> "Expr":
        return Expr.binary("<", self, other)

    def __le__(self, other: object) -> "Expr":
        return Expr.binary("<=", self, other)

    def __gt__(self, other: object) -> "Expr":
        return Expr.binary(">", self, other)

    def __ge__(self, other: object) -> "Expr":
        return Expr.binary(">=", self, other)

    def __and__(self, other: object) -> "Expr":
        return Expr.binary("&", self, other)

    def __neg__(self) -> "Expr":
        return Expr.binary("-", 0, self)

    def __bool__(self) -> bool:
        # A tracer sees one call. It cannot follow both sides of an `if`.
        raise TypeError("not known yet: write where(...) for `if`, and & for `and`")


class Buffer:
    """A tensor in a formula: known by name, read by index."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, index: object) -> Expr:
        indices = index if isinstance(index, tuple) else (index,)
        return Expr(("read", self.name, tuple(Expr.node_of(i) for i in indices)))


def where(condition: Expr, yes: object, no: object) -> Expr:
    """Return `yes` where the condition holds, else `no`."""
    return Expr(("where", *map(Expr.node_of, (condition, yes, no))))


def total(extents: tuple[int, ...], formula: object) -> Expr:
    """Return the sum of `formula` over indices of these extents."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    # strict: zip itself raises ValueError where names and extents are not as many
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        body = ("sum", name, extent, body)
    return Expr(body)


def compute(shape: tuple[int, ...], formula: object) -> dict:
    """Return the program whose element at each index is what `formula` says."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    return {"axes": tuple(zip(names, shape, strict=True)), "body": body}


# %% mistake: sums_inside_out
# You nested the sums the wrong way round. The first index of `total` is the outermost sum; wrap the
# body beginning with the last.
class Expr:
    """A formula so far: what is done to it is recorded in `node`."""

    def __init__(self, node: tuple) -> None:
        self.node = node

    @staticmethod
    def node_of(value: object) -> tuple:
        """Return the node of an Expr, or make one of a number."""
        return value.node if isinstance(value, Expr) else ("number", value)

    @staticmethod
    def binary(op: str, left: object, right: object) -> "Expr":
        """Record an operation on two sides, either of which may be a number."""
        return Expr((op, Expr.node_of(left), Expr.node_of(right)))

    def __add__(self, other: object) -> "Expr":
        return Expr.binary("+", self, other)

    def __radd__(self, other: object) -> "Expr":
        return Expr.binary("+", other, self)

    def __sub__(self, other: object) -> "Expr":
        return Expr.binary("-", self, other)

    def __rsub__(self, other: object) -> "Expr":
        return Expr.binary("-", other, self)

    def __mul__(self, other: object) -> "Expr":
        return Expr.binary("*", self, other)

    def __rmul__(self, other: object) -> "Expr":
        return Expr.binary("*", other, self)

    def __floordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", self, other)

    def __rfloordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", other, self)

    def __mod__(self, other: object) -> "Expr":
        return Expr.binary("%", self, other)

    def __rmod__(self, other: object) -> "Expr":
        return Expr.binary("%", other, self)

    def __lt__(self, other: object) -> "Expr":
        return Expr.binary("<", self, other)

    def __le__(self, other: object) -> "Expr":
        return Expr.binary("<=", self, other)

    def __gt__(self, other: object) -> "Expr":
        return Expr.binary(">", self, other)

    def __ge__(self, other: object) -> "Expr":
        return Expr.binary(">=", self, other)

    def __and__(self, other: object) -> "Expr":
        return Expr.binary("&", self, other)

    def __neg__(self) -> "Expr":
        return Expr.binary("-", 0, self)

    def __bool__(self) -> bool:
        # A tracer sees one call. It cannot follow both sides of an `if`.
        raise TypeError("not known yet: write where(...) for `if`, and & for `and`")


class Buffer:
    """A tensor in a formula: known by name, read by index."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, index: object) -> Expr:
        indices = index if isinstance(index, tuple) else (index,)
        return Expr(("read", self.name, tuple(Expr.node_of(i) for i in indices)))


def where(condition: Expr, yes: object, no: object) -> Expr:
    """Return `yes` where the condition holds, else `no`."""
    return Expr(("where", *map(Expr.node_of, (condition, yes, no))))


def total(extents: tuple[int, ...], formula: object) -> Expr:
    """Return the sum of `formula` over indices of these extents."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    # strict: zip itself raises ValueError where names and extents are not as many
    for name, extent in zip(names, extents, strict=True):
        body = ("sum", name, extent, body)
    return Expr(body)


def compute(shape: tuple[int, ...], formula: object) -> dict:
    """Return the program whose element at each index is what `formula` says."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    return {"axes": tuple(zip(names, shape, strict=True)), "body": body}


# %% mistake: invents_names
# You numbered the axes instead of asking the formula. The names are those of its parameters:
# `inspect.signature(formula).parameters`.
class Expr:
    """A formula so far: what is done to it is recorded in `node`."""

    def __init__(self, node: tuple) -> None:
        self.node = node

    @staticmethod
    def node_of(value: object) -> tuple:
        """Return the node of an Expr, or make one of a number."""
        return value.node if isinstance(value, Expr) else ("number", value)

    @staticmethod
    def binary(op: str, left: object, right: object) -> "Expr":
        """Record an operation on two sides, either of which may be a number."""
        return Expr((op, Expr.node_of(left), Expr.node_of(right)))

    def __add__(self, other: object) -> "Expr":
        return Expr.binary("+", self, other)

    def __radd__(self, other: object) -> "Expr":
        return Expr.binary("+", other, self)

    def __sub__(self, other: object) -> "Expr":
        return Expr.binary("-", self, other)

    def __rsub__(self, other: object) -> "Expr":
        return Expr.binary("-", other, self)

    def __mul__(self, other: object) -> "Expr":
        return Expr.binary("*", self, other)

    def __rmul__(self, other: object) -> "Expr":
        return Expr.binary("*", other, self)

    def __floordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", self, other)

    def __rfloordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", other, self)

    def __mod__(self, other: object) -> "Expr":
        return Expr.binary("%", self, other)

    def __rmod__(self, other: object) -> "Expr":
        return Expr.binary("%", other, self)

    def __lt__(self, other: object) -> "Expr":
        return Expr.binary("<", self, other)

    def __le__(self, other: object) -> "Expr":
        return Expr.binary("<=", self, other)

    def __gt__(self, other: object) -> "Expr":
        return Expr.binary(">", self, other)

    def __ge__(self, other: object) -> "Expr":
        return Expr.binary(">=", self, other)

    def __and__(self, other: object) -> "Expr":
        return Expr.binary("&", self, other)

    def __neg__(self) -> "Expr":
        return Expr.binary("-", 0, self)

    def __bool__(self) -> bool:
        # A tracer sees one call. It cannot follow both sides of an `if`.
        raise TypeError("not known yet: write where(...) for `if`, and & for `and`")


class Buffer:
    """A tensor in a formula: known by name, read by index."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, index: object) -> Expr:
        indices = index if isinstance(index, tuple) else (index,)
        return Expr(("read", self.name, tuple(Expr.node_of(i) for i in indices)))


def where(condition: Expr, yes: object, no: object) -> Expr:
    """Return `yes` where the condition holds, else `no`."""
    return Expr(("where", *map(Expr.node_of, (condition, yes, no))))


def total(extents: tuple[int, ...], formula: object) -> Expr:
    """Return the sum of `formula` over indices of these extents."""
    taken = list(inspect.signature(formula).parameters)
    names = [f"axis{n}" for n in range(len(taken))]
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    # strict: zip itself raises ValueError where names and extents are not as many
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        body = ("sum", name, extent, body)
    return Expr(body)


def compute(shape: tuple[int, ...], formula: object) -> dict:
    """Return the program whose element at each index is what `formula` says."""
    taken = list(inspect.signature(formula).parameters)
    names = [f"axis{n}" for n in range(len(taken))]
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    return {"axes": tuple(zip(names, shape, strict=True)), "body": body}


# %% mistake: evaluates_minus
# Your minus sign is lost: `-x` was recorded as `x - 0`, with the sides exchanged.
class Expr:
    """A formula so far: what is done to it is recorded in `node`."""

    def __init__(self, node: tuple) -> None:
        self.node = node

    @staticmethod
    def node_of(value: object) -> tuple:
        """Return the node of an Expr, or make one of a number."""
        return value.node if isinstance(value, Expr) else ("number", value)

    @staticmethod
    def binary(op: str, left: object, right: object) -> "Expr":
        """Record an operation on two sides, either of which may be a number."""
        return Expr((op, Expr.node_of(left), Expr.node_of(right)))

    def __add__(self, other: object) -> "Expr":
        return Expr.binary("+", self, other)

    def __radd__(self, other: object) -> "Expr":
        return Expr.binary("+", other, self)

    def __sub__(self, other: object) -> "Expr":
        return Expr.binary("-", self, other)

    def __rsub__(self, other: object) -> "Expr":
        return Expr.binary("-", other, self)

    def __mul__(self, other: object) -> "Expr":
        return Expr.binary("*", self, other)

    def __rmul__(self, other: object) -> "Expr":
        return Expr.binary("*", other, self)

    def __floordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", self, other)

    def __rfloordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", other, self)

    def __mod__(self, other: object) -> "Expr":
        return Expr.binary("%", self, other)

    def __rmod__(self, other: object) -> "Expr":
        return Expr.binary("%", other, self)

    def __lt__(self, other: object) -> "Expr":
        return Expr.binary("<", self, other)

    def __le__(self, other: object) -> "Expr":
        return Expr.binary("<=", self, other)

    def __gt__(self, other: object) -> "Expr":
        return Expr.binary(">", self, other)

    def __ge__(self, other: object) -> "Expr":
        return Expr.binary(">=", self, other)

    def __and__(self, other: object) -> "Expr":
        return Expr.binary("&", self, other)

    def __neg__(self) -> "Expr":
        return Expr.binary("-", self, 0)

    def __bool__(self) -> bool:
        # A tracer sees one call. It cannot follow both sides of an `if`.
        raise TypeError("not known yet: write where(...) for `if`, and & for `and`")


class Buffer:
    """A tensor in a formula: known by name, read by index."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, index: object) -> Expr:
        indices = index if isinstance(index, tuple) else (index,)
        return Expr(("read", self.name, tuple(Expr.node_of(i) for i in indices)))


def where(condition: Expr, yes: object, no: object) -> Expr:
    """Return `yes` where the condition holds, else `no`."""
    return Expr(("where", *map(Expr.node_of, (condition, yes, no))))


def total(extents: tuple[int, ...], formula: object) -> Expr:
    """Return the sum of `formula` over indices of these extents."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    # strict: zip itself raises ValueError where names and extents are not as many
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        body = ("sum", name, extent, body)
    return Expr(body)


def compute(shape: tuple[int, ...], formula: object) -> dict:
    """Return the program whose element at each index is what `formula` says."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    return {"axes": tuple(zip(names, shape, strict=True)), "body": body}


# %% mistake: where_sides_exchanged
# Your `where` records its sides in the wrong order: first the value for a condition that holds,
# then the other.
class Expr:
    """A formula so far: what is done to it is recorded in `node`."""

    def __init__(self, node: tuple) -> None:
        self.node = node

    @staticmethod
    def node_of(value: object) -> tuple:
        """Return the node of an Expr, or make one of a number."""
        return value.node if isinstance(value, Expr) else ("number", value)

    @staticmethod
    def binary(op: str, left: object, right: object) -> "Expr":
        """Record an operation on two sides, either of which may be a number."""
        return Expr((op, Expr.node_of(left), Expr.node_of(right)))

    def __add__(self, other: object) -> "Expr":
        return Expr.binary("+", self, other)

    def __radd__(self, other: object) -> "Expr":
        return Expr.binary("+", other, self)

    def __sub__(self, other: object) -> "Expr":
        return Expr.binary("-", self, other)

    def __rsub__(self, other: object) -> "Expr":
        return Expr.binary("-", other, self)

    def __mul__(self, other: object) -> "Expr":
        return Expr.binary("*", self, other)

    def __rmul__(self, other: object) -> "Expr":
        return Expr.binary("*", other, self)

    def __floordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", self, other)

    def __rfloordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", other, self)

    def __mod__(self, other: object) -> "Expr":
        return Expr.binary("%", self, other)

    def __rmod__(self, other: object) -> "Expr":
        return Expr.binary("%", other, self)

    def __lt__(self, other: object) -> "Expr":
        return Expr.binary("<", self, other)

    def __le__(self, other: object) -> "Expr":
        return Expr.binary("<=", self, other)

    def __gt__(self, other: object) -> "Expr":
        return Expr.binary(">", self, other)

    def __ge__(self, other: object) -> "Expr":
        return Expr.binary(">=", self, other)

    def __and__(self, other: object) -> "Expr":
        return Expr.binary("&", self, other)

    def __neg__(self) -> "Expr":
        return Expr.binary("-", 0, self)

    def __bool__(self) -> bool:
        # A tracer sees one call. It cannot follow both sides of an `if`.
        raise TypeError("not known yet: write where(...) for `if`, and & for `and`")


class Buffer:
    """A tensor in a formula: known by name, read by index."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, index: object) -> Expr:
        indices = index if isinstance(index, tuple) else (index,)
        return Expr(("read", self.name, tuple(Expr.node_of(i) for i in indices)))


def where(condition: Expr, yes: object, no: object) -> Expr:
    """Return `yes` where the condition holds, else `no`."""
    return Expr(("where", *map(Expr.node_of, (condition, no, yes))))


def total(extents: tuple[int, ...], formula: object) -> Expr:
    """Return the sum of `formula` over indices of these extents."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    # strict: zip itself raises ValueError where names and extents are not as many
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        body = ("sum", name, extent, body)
    return Expr(body)


def compute(shape: tuple[int, ...], formula: object) -> dict:
    """Return the program whose element at each index is what `formula` says."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    return {"axes": tuple(zip(names, shape, strict=True)), "body": body}


# %% mistake: does_not_count
# You did not compare the number of parameters with the number of extents. `zip` stops at the
# shorter one, and an axis gets lost. Raise `ValueError`.
class Expr:
    """A formula so far: what is done to it is recorded in `node`."""

    def __init__(self, node: tuple) -> None:
        self.node = node

    @staticmethod
    def node_of(value: object) -> tuple:
        """Return the node of an Expr, or make one of a number."""
        return value.node if isinstance(value, Expr) else ("number", value)

    @staticmethod
    def binary(op: str, left: object, right: object) -> "Expr":
        """Record an operation on two sides, either of which may be a number."""
        return Expr((op, Expr.node_of(left), Expr.node_of(right)))

    def __add__(self, other: object) -> "Expr":
        return Expr.binary("+", self, other)

    def __radd__(self, other: object) -> "Expr":
        return Expr.binary("+", other, self)

    def __sub__(self, other: object) -> "Expr":
        return Expr.binary("-", self, other)

    def __rsub__(self, other: object) -> "Expr":
        return Expr.binary("-", other, self)

    def __mul__(self, other: object) -> "Expr":
        return Expr.binary("*", self, other)

    def __rmul__(self, other: object) -> "Expr":
        return Expr.binary("*", other, self)

    def __floordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", self, other)

    def __rfloordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", other, self)

    def __mod__(self, other: object) -> "Expr":
        return Expr.binary("%", self, other)

    def __rmod__(self, other: object) -> "Expr":
        return Expr.binary("%", other, self)

    def __lt__(self, other: object) -> "Expr":
        return Expr.binary("<", self, other)

    def __le__(self, other: object) -> "Expr":
        return Expr.binary("<=", self, other)

    def __gt__(self, other: object) -> "Expr":
        return Expr.binary(">", self, other)

    def __ge__(self, other: object) -> "Expr":
        return Expr.binary(">=", self, other)

    def __and__(self, other: object) -> "Expr":
        return Expr.binary("&", self, other)

    def __neg__(self) -> "Expr":
        return Expr.binary("-", 0, self)

    def __bool__(self) -> bool:
        # A tracer sees one call. It cannot follow both sides of an `if`.
        raise TypeError("not known yet: write where(...) for `if`, and & for `and`")


class Buffer:
    """A tensor in a formula: known by name, read by index."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, index: object) -> Expr:
        indices = index if isinstance(index, tuple) else (index,)
        return Expr(("read", self.name, tuple(Expr.node_of(i) for i in indices)))


def where(condition: Expr, yes: object, no: object) -> Expr:
    """Return `yes` where the condition holds, else `no`."""
    return Expr(("where", *map(Expr.node_of, (condition, yes, no))))


def total(extents: tuple[int, ...], formula: object) -> Expr:
    """Return the sum of `formula` over indices of these extents."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    for name, extent in reversed(list(zip(names, extents))):
        body = ("sum", name, extent, body)
    return Expr(body)


def compute(shape: tuple[int, ...], formula: object) -> dict:
    """Return the program whose element at each index is what `formula` says."""
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    return {"axes": tuple(zip(names, shape)), "body": body}


# %% alternate: operators_in_a_loop
# The methods are made by a loop, one for each symbol.
def lift(value):
    return value.node if hasattr(value, "node") else ("number", value)


class Expr:
    def __init__(self, node):
        self.node = node

    def __neg__(self):
        return 0 - self

    def __bool__(self):
        raise TypeError("no truth yet")


def _install(symbol, name):
    def forward(self, other):
        return Expr((symbol, self.node, lift(other)))

    def backward(self, other):
        return Expr((symbol, lift(other), self.node))

    setattr(Expr, f"__{name}__", forward)
    if symbol in "+-*//%":
        setattr(Expr, f"__r{name}__", backward)


_SYMBOLS = {"+": "add", "-": "sub", "*": "mul", "//": "floordiv", "%": "mod", "&": "and"}
_SYMBOLS |= {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
for _symbol, _name in _SYMBOLS.items():
    _install(_symbol, _name)


class Buffer:
    def __init__(self, name):
        self.name = name

    def __getitem__(self, index):
        if not isinstance(index, tuple):
            index = (index,)
        return Expr(("read", self.name, tuple(map(lift, index))))


def where(condition, yes, no):
    return Expr(("where", lift(condition), lift(yes), lift(no)))


def parameters(extents, formula):
    names = formula.__code__.co_varnames[: formula.__code__.co_argcount]
    if len(names) != len(extents):
        raise ValueError("one parameter for each extent")
    return names


def total(extents, formula):
    names = parameters(extents, formula)
    node = lift(formula(*[Expr(("index", name)) for name in names]))
    for number in range(len(names) - 1, -1, -1):
        node = ("sum", names[number], extents[number], node)
    return Expr(node)


def compute(shape, formula):
    names = parameters(shape, formula)
    node = lift(formula(*[Expr(("index", name)) for name in names]))
    return {"axes": tuple(zip(names, shape)), "body": node}


# %% alternate: a_tuple_that_calculates
# One method does all operators' work; sums are made by calling oneself.
class Expr:
    def __init__(self, node):
        self.node = node

    def _op(self, symbol, other, swap=False):
        other = other if isinstance(other, Expr) else Expr(("number", other))
        left, right = (other, self) if swap else (self, other)
        return Expr((symbol, left.node, right.node))

    def __add__(self, other):
        return self._op("+", other)

    def __sub__(self, other):
        return self._op("-", other)

    def __mul__(self, other):
        return self._op("*", other)

    def __floordiv__(self, other):
        return self._op("//", other)

    def __mod__(self, other):
        return self._op("%", other)

    def __radd__(self, other):
        return self._op("+", other, True)

    def __rsub__(self, other):
        return self._op("-", other, True)

    def __rmul__(self, other):
        return self._op("*", other, True)

    def __rfloordiv__(self, other):
        return self._op("//", other, True)

    def __rmod__(self, other):
        return self._op("%", other, True)

    def __lt__(self, other):
        return self._op("<", other)

    def __le__(self, other):
        return self._op("<=", other)

    def __gt__(self, other):
        return self._op(">", other)

    def __ge__(self, other):
        return self._op(">=", other)

    def __and__(self, other):
        return self._op("&", other)

    def __neg__(self):
        return self * -1

    def __bool__(self):
        raise TypeError("an Expr is neither true nor false")


def as_node(value):
    return value.node if isinstance(value, Expr) else ("number", value)


class Buffer:
    def __init__(self, name):
        self.read = lambda *index: Expr(("read", name, tuple(as_node(i) for i in index)))

    def __getitem__(self, index):
        return self.read(*index) if isinstance(index, tuple) else self.read(index)


def where(condition, yes, no):
    return Expr(("where", condition.node, as_node(yes), as_node(no)))


def trace(extents, formula):
    names = tuple(inspect.signature(formula).parameters)
    if len(names) - len(extents):
        raise ValueError("indices")
    return names, as_node(formula(*map(Expr, (("index", name) for name in names))))


def total(extents, formula):
    names, body = trace(extents, formula)

    def wrap(left):
        if not left:
            return body
        (name, extent), *rest = left
        return ("sum", name, extent, wrap(rest))

    return Expr(wrap(list(zip(names, extents))))


def compute(shape, formula):
    names, body = trace(shape, formula)
    return dict(axes=tuple(zip(names, shape)), body=body)
