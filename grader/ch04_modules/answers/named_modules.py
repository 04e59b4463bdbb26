# %% blocked: the_method
# The method does the whole walk. Build it from `_modules`.
def named_modules(module, memo=None, prefix="", remove_duplicate=True):
    return module.named_modules(memo, prefix, remove_duplicate)


# %% mistake: breadth_first
# You go level by level. The walk goes down first: everything below a child comes before its next
# sibling.
def named_modules(module, memo=None, prefix="", remove_duplicate=True):
    memo = set() if memo is None else memo
    waiting = [(prefix, module)]
    while waiting:
        name, found = waiting.pop(0)
        if found in memo:
            continue
        if remove_duplicate:
            memo.add(found)
        yield name, found
        for key, child in found._modules.items():
            if child is not None:
                waiting.append((f"{name}.{key}" if name else key, child))


# %% mistake: direct_children
# You stop at the direct children. Each of them has a `_modules` of its own.
def named_modules(module, memo=None, prefix="", remove_duplicate=True):
    memo = set() if memo is None else memo
    pairs = [(prefix, module)]
    for key, child in module._modules.items():
        if child is not None:
            pairs.append((f"{prefix}.{key}" if prefix else key, child))
    for name, found in pairs:
        if found not in memo:
            if remove_duplicate:
                memo.add(found)
            yield name, found


# %% mistake: no_names_above
# Your names start anew at every level. Hand the path so far down as the prefix.
def named_modules(module, memo=None, prefix="", remove_duplicate=True):
    if memo is None:
        memo = set()
    if module in memo:
        return
    if remove_duplicate:
        memo.add(module)
    yield prefix, module
    for name, child in module._modules.items():
        if child is not None:
            yield from named_modules(child, memo, name, remove_duplicate)


# %% mistake: leading_dot
# Your names begin with a dot: where the prefix is empty there is nothing to join.
def named_modules(module, memo=None, prefix="", remove_duplicate=True):
    if memo is None:
        memo = set()
    if module in memo:
        return
    if remove_duplicate:
        memo.add(module)
    yield prefix, module
    for name, child in module._modules.items():
        if child is not None:
            yield from named_modules(child, memo, prefix + "." + name, remove_duplicate)


# %% mistake: every_path_always
# You give a shared module under each of its names, always. With `remove_duplicate`, which is the
# default, each object comes once: remember in `memo` what you have found.
def named_modules(module, memo=None, prefix="", remove_duplicate=True):
    if memo is not None and module in memo:
        return
    if memo is not None and remove_duplicate:
        memo.add(module)
    yield prefix, module
    for name, child in module._modules.items():
        if child is not None:
            yield from named_modules(
                child, memo, f"{prefix}.{name}" if prefix else name, remove_duplicate
            )


# %% mistake: once_always
# You never give a module twice. With `remove_duplicate=False` every path counts, and `memo` is
# read but not written.
def named_modules(module, memo=None, prefix="", remove_duplicate=True):
    if memo is None:
        memo = set()
    if module in memo:
        return
    memo.add(module)
    yield prefix, module
    for name, child in module._modules.items():
        if child is not None:
            yield from named_modules(
                child, memo, f"{prefix}.{name}" if prefix else name, remove_duplicate
            )


# %% mistake: forgets_an_empty_memo
# `memo or set()` takes a new set where the caller passed an empty one, and on the way down too. Ask
# whether `memo is None`.
def named_modules(module, memo=None, prefix="", remove_duplicate=True):
    memo = memo or set()
    if module in memo:
        return
    if remove_duplicate:
        memo.add(module)
    yield prefix, module
    for name, child in module._modules.items():
        if child is not None:
            yield from named_modules(
                child, memo, f"{prefix}.{name}" if prefix else name, remove_duplicate
            )


# %% mistake: remembers_ids
# You put the modules' `id`s into `memo`. It is a set of modules: a caller who put some in would find
# that you pass none of them over, and afterwards sees numbers.
def named_modules(module, memo=None, prefix="", remove_duplicate=True):
    if memo is None:
        memo = set()
    if id(module) in memo:
        return
    if remove_duplicate:
        memo.add(id(module))
    yield prefix, module
    for name, child in module._modules.items():
        if child is not None:
            yield from named_modules(
                child, memo, f"{prefix}.{name}" if prefix else name, remove_duplicate
            )


# %% mistake: passes_over_what_is_false
# You ask whether an entry is true. An empty `nn.Sequential` or `nn.ModuleList` has the length 0, so
# Python calls it false; it is a module all the same. Ask `is not None`.
def named_modules(module, memo=None, prefix="", remove_duplicate=True):
    if memo is None:
        memo = set()
    if module in memo:
        return
    if remove_duplicate:
        memo.add(module)
    yield prefix, module
    for name, child in module._modules.items():
        if child:
            yield from named_modules(
                child, memo, f"{prefix}.{name}" if prefix else name, remove_duplicate
            )


# %% mistake: one_memo_for_all_calls
# A default value is made once, when the function is defined. Your set outlives the call, and a
# second walk over the same model finds nothing. Write `memo=None` and make the set inside.
def named_modules(module, memo=set(), prefix="", remove_duplicate=True):
    if module in memo:
        return
    if remove_duplicate:
        memo.add(module)
    yield prefix, module
    for name, child in module._modules.items():
        if child is not None:
            yield from named_modules(
                child, memo, f"{prefix}.{name}" if prefix else name, remove_duplicate
            )


# %% mistake: memo_of_ancestors
# You pass a copy of the memo down. What a child found there is forgotten when the walk comes back
# up, and its siblings find it again. Pass the same set.
def named_modules(module, memo=None, prefix="", remove_duplicate=True):
    if memo is None:
        memo = set()
    if module in memo:
        return
    if remove_duplicate:
        memo.add(module)
    yield prefix, module
    for name, child in module._modules.items():
        if child is not None:
            path = f"{prefix}.{name}" if prefix else name
            yield from named_modules(child, set(memo), path, remove_duplicate)


# %% mistake: passes_over_the_children
# A child that is `None` has no `_modules`. A registry may hold `None`: pass over it.
def named_modules(module, memo=None, prefix="", remove_duplicate=True):
    if memo is None:
        memo = set()
    if module in memo:
        return
    if remove_duplicate:
        memo.add(module)
    yield prefix, module
    for name, child in module._modules.items():
        yield from named_modules(
            child, memo, f"{prefix}.{name}" if prefix else name, remove_duplicate
        )


# %% mistake: collects_first
# You collect pairs before you give them: all, or all that are below a child. A generator gives each
# when it is found, and a model that contains itself has a walk without end.
def named_modules(module, memo=None, prefix="", remove_duplicate=True):
    memo = set() if memo is None else memo
    found = []

    def visit(name, module):
        if module in memo or len(found) > 900:
            return
        if remove_duplicate:
            memo.add(module)
        found.append((name, module))
        for key, child in module._modules.items():
            if child is not None:
                visit(f"{name}.{key}" if name else key, child)

    visit(prefix, module)
    return iter(found)


# %% alternate: own_stack
# A stack instead of recursion; children go onto it in reverse, so that the first comes off first.
def named_modules(module, memo=None, prefix="", remove_duplicate=True):
    memo = memo if memo is not None else set()
    stack = [(prefix, module)]
    while stack:
        name, found = stack.pop()
        if found in memo:
            continue
        if remove_duplicate:
            memo.add(found)
        yield name, found
        children = [(k, c) for k, c in vars(found)["_modules"].items() if c is not None]
        stack.extend((".".join(filter(None, [name, k])), c) for k, c in reversed(children))


# %% alternate: an_iterator_class
# A class with `__next__` keeps its place in a stack of iterators.
class named_modules:
    def __init__(self, module, memo=None, prefix="", remove_duplicate=True):
        self.memo = set() if memo is None else memo
        self.once = remove_duplicate
        self.open = [iter([(prefix, module)])]

    def __iter__(self):
        return self

    def __next__(self):
        while self.open:
            for name, module in self.open[-1]:
                if module is None or module in self.memo:
                    continue
                if self.once:
                    self.memo.add(module)
                dot = name + "." if name else ""
                self.open.append((dot + key, child) for key, child in module._modules.items())
                # the generator above must not see the next `dot`
                self.open[-1] = iter(list(self.open[-1]))
                return name, module
            self.open.pop()
        raise StopIteration
