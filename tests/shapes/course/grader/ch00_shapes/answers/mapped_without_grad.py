# %% mistake: leaks_between_yields
# Your `with` is still open while the generator is paused, so the caller's code runs with grad mode
# off. Close it before the `yield`.
def mapped_without_grad(f, items):
    with torch.no_grad():
        for item in items:
            yield f(item)


# %% mistake: one_ahead
# You take the next item before you give the last result. Take one only when it is asked for.
def mapped_without_grad(f, items):
    iterator = iter(items)
    item = next(iterator)
    while True:
        with torch.no_grad():
            result = f(item)
        item = next(iterator)
        yield result


# %% alternate: by_map
# `map` is lazy too, and a decorated function closes its own `with`.
def mapped_without_grad(f, items):
    yield from map(torch.no_grad()(f), items)
