# %% blocked: multinomial
# `torch.multinomial` is what `WeightedRandomSampler` calls, and it does all of it. Throw the darts.
def weighted_indices(weights, uniforms, replacement):
    return torch.multinomial(weights.double(), len(uniforms), replacement).tolist()


# %% blocked: choices
# `random.choices` draws by weight for you, from a stream that was not asked for.
def weighted_indices(weights, uniforms, replacement):
    return random.choices(range(len(weights)), weights.tolist(), k=len(uniforms))


# %% mistake: ignores_weights
# You multiply each uniform number by `n`, and so every index is equally likely. Multiply by the sum of
# the weights, and look which weight's piece of the line is hit.
def weighted_indices(weights, uniforms, replacement):
    w = weights.double()
    positive = int((w > 0).sum())
    if not bool((w.isfinite() & (w >= 0)).all()):
        raise ValueError
    if positive < (min(1, len(uniforms)) if replacement else len(uniforms)):
        raise ValueError
    left, drawn = list(range(len(w))), []
    for u in uniforms.tolist():
        index = left[int(u * len(left))]
        drawn.append(index)
        if not replacement:
            left.remove(index)
    return drawn


# %% mistake: assumes_probabilities
# You compare `u` with sums of the weights as if they added up to 1. Weights are not probabilities:
# multiply `u` by their sum.
def weighted_indices(weights, uniforms, replacement):
    left = weights.double().clone()
    if not bool((left.isfinite() & (left >= 0)).all()):
        raise ValueError
    positive = int((left > 0).sum())
    if positive < (min(1, len(uniforms)) if replacement else len(uniforms)):
        raise ValueError
    drawn = []
    for u in uniforms:
        index = min(int(torch.searchsorted(left.cumsum(0), u, right=True)), len(left) - 1)
        drawn.append(index)
        if not replacement:
            left[index] = 0
    return drawn


# %% mistake: divides_first
# You divide the weights by their sum before you add them up. Each quotient is rounded, their sums may
# end below 1, and a large `u` then hits nothing. Multiply `u` by the sum instead.
def weighted_indices(weights, uniforms, replacement):
    left = weights.double().clone()
    if not bool((left.isfinite() & (left >= 0)).all()):
        raise ValueError
    positive = int((left > 0).sum())
    if positive < (min(1, len(uniforms)) if replacement else len(uniforms)):
        raise ValueError
    drawn = []
    for u in uniforms:
        ends = (left / left.sum()).cumsum(0)
        index = int(torch.searchsorted(ends, u, right=True))
        drawn.append(index)
        if not replacement:
            left[index] = 0
    return drawn


# %% mistake: boundary_to_the_left
# A dart exactly on a boundary picks the piece that ends there. It belongs to the piece that begins
# there; so `u = 0` can draw an index of weight 0. In `searchsorted`, say `right=True`.
def weighted_indices(weights, uniforms, replacement):
    left = weights.double().clone()
    if not bool((left.isfinite() & (left >= 0)).all()):
        raise ValueError
    positive = int((left > 0).sum())
    if positive < (min(1, len(uniforms)) if replacement else len(uniforms)):
        raise ValueError
    drawn = []
    for u in uniforms:
        ends = left.cumsum(0)
        index = int(torch.searchsorted(ends, u * ends[-1]))
        drawn.append(index)
        if not replacement:
            left[index] = 0
    return drawn


# %% mistake: float32_sums
# You add up in float32. From `2 ** 24` on its steps are wider than 1, and small weights after a large
# one are lost or doubled. Convert to float64 before `cumsum`.
def weighted_indices(weights, uniforms, replacement):
    left = weights.float().clone()
    if not bool((left.isfinite() & (left >= 0)).all()):
        raise ValueError
    positive = int((left > 0).sum())
    if positive < (min(1, len(uniforms)) if replacement else len(uniforms)):
        raise ValueError
    drawn = []
    for u in uniforms:
        ends = left.cumsum(0).double()
        index = int(torch.searchsorted(ends, u * ends[-1], right=True))
        drawn.append(index)
        if not replacement:
            left[index] = 0
    return drawn


# %% mistake: always_replaces
# You draw with replacement whatever `replacement` says. Without it, an index that was drawn must be
# gone for the next number.
def weighted_indices(weights, uniforms, replacement):
    left = weights.double()
    if not bool((left.isfinite() & (left >= 0)).all()):
        raise ValueError
    positive = int((left > 0).sum())
    if positive < (min(1, len(uniforms)) if replacement else len(uniforms)):
        raise ValueError
    if not len(uniforms):
        return []
    ends = left.cumsum(0)
    return torch.searchsorted(ends, uniforms * ends[-1], right=True).tolist()


# %% mistake: never_replaces
# You take each drawn index away, with replacement too. There an index may come again, and 40 draws of
# three samples are no error.
def weighted_indices(weights, uniforms, replacement):
    left = weights.double().clone()
    if not bool((left.isfinite() & (left >= 0)).all()):
        raise ValueError
    positive = int((left > 0).sum())
    if positive < (min(1, len(uniforms)) if replacement else len(uniforms)):
        raise ValueError
    drawn = []
    for u in uniforms:
        ends = left.cumsum(0)
        index = min(int(torch.searchsorted(ends, u * ends[-1], right=True)), len(left) - 1)
        drawn.append(index)
        left[index] = 0
    return drawn


# %% mistake: old_total
# You take the drawn piece off the line and go on throwing at the old length. Then darts land behind
# the end. The sum of the weights that are left is the length now.
def weighted_indices(weights, uniforms, replacement):
    left = weights.double().clone()
    if not bool((left.isfinite() & (left >= 0)).all()):
        raise ValueError
    positive = int((left > 0).sum())
    if positive < (min(1, len(uniforms)) if replacement else len(uniforms)):
        raise ValueError
    total, drawn = left.sum(), []
    for u in uniforms:
        index = int(torch.searchsorted(left.cumsum(0), u * total, right=True))
        drawn.append(min(index, len(left) - 1))
        if not replacement:
            left[drawn[-1]] = 0
    return drawn


# %% mistake: indices_move
# You delete the drawn weight from the list and return positions in what is left. After a deletion
# every later position stands for another sample: keep the original indices beside the weights.
def weighted_indices(weights, uniforms, replacement):
    left = weights.double().tolist()
    if any(not 0 <= w < float("inf") for w in left):
        raise ValueError
    positive = sum(w > 0 for w in left)
    if positive < (min(1, len(uniforms)) if replacement else len(uniforms)):
        raise ValueError
    drawn = []
    for u in uniforms.tolist():
        dart, index = u * sum(left), 0
        while dart >= sum(left[: index + 1]):
            index += 1
        drawn.append(index)
        if not replacement:
            del left[index]
    return drawn


# %% mistake: changes_the_weights
# You set the weights that were drawn to zero in the caller's tensor: `double` copies nothing when the
# weights are float64 already. The next epoch would miss these samples. Clone first.
def weighted_indices(weights, uniforms, replacement):
    left = weights.double()
    if not bool((left.isfinite() & (left >= 0)).all()):
        raise ValueError
    positive = int((left > 0).sum())
    if positive < (min(1, len(uniforms)) if replacement else len(uniforms)):
        raise ValueError
    drawn = []
    for u in uniforms:
        ends = left.cumsum(0)
        drawn.append(int(torch.searchsorted(ends, u * ends[-1], right=True)))
        if not replacement:
            left[drawn[-1]] = 0
    return drawn


# %% mistake: refuses_nothing
# You draw from any weights. A negative one makes the ends of the pieces go backwards, a NaN swallows
# all, and when the line is empty there is nothing to hit: raise `ValueError`.
def weighted_indices(weights, uniforms, replacement):
    left, drawn = weights.double().clone(), []
    for u in uniforms:
        ends = left.cumsum(0)
        drawn.append(int(torch.searchsorted(ends, u * ends[-1], right=True)))
        if not replacement:
            left[drawn[-1]] = 0
    return drawn


# %% mistake: counts_zero_weights
# You compare the number of draws with the number of weights. A weight of 0 can never be drawn: count
# the positive ones.
def weighted_indices(weights, uniforms, replacement):
    left = weights.double().clone()
    if not bool((left.isfinite() & (left >= 0)).all()):
        raise ValueError
    if len(uniforms) and not bool((left > 0).any()):
        raise ValueError
    if not replacement and len(uniforms) > len(left):
        raise ValueError
    drawn = []
    for u in uniforms:
        ends = left.cumsum(0)
        drawn.append(int(torch.searchsorted(ends, u * ends[-1], right=True)))
        if not replacement:
            left[drawn[-1]] = 0
    return drawn


# %% mistake: needs_one_for_none
# You ask for a positive weight even if nothing is to be drawn. No `uniforms` need none.
def weighted_indices(weights, uniforms, replacement):
    if bool((weights < 0).any()) or not bool(weights.isfinite().all()):
        raise ValueError("negative, infinite or NaN")
    left, drawn = weights.double().clone(), []
    if int((left > 0).sum()) < (1 if replacement else len(uniforms)):
        raise ValueError("too few positive weights")
    for u in uniforms.tolist():
        ends = left.cumsum(0)
        drawn.append(int((ends <= u * ends[-1]).sum()))
        if not replacement:
            left[drawn[-1]] = 0
    return drawn


# %% alternate: an_error_of_its_own
# NumPy, positions of what is left, and an exception that is a `ValueError`.
class TooFew(ValueError):
    pass


def weighted_indices(weights, uniforms, replacement):
    line, places, drawn = weights.to(torch.float64).numpy().copy(), list(range(len(weights))), []
    if not np.isfinite(line).all() or (line < 0).any():
        raise ValueError("negative, infinite or NaN")
    if np.count_nonzero(line) < (min(len(uniforms), 1) if replacement else len(uniforms)):
        raise TooFew
    for u in uniforms.numpy():
        ends = np.cumsum(line[places])
        at = int(np.sum(ends <= u * ends[-1]))
        drawn.append(places[at])
        if not replacement:
            del places[at]
    return drawn


# %% alternate: walks_the_line
# Python floats, one piece after the other, with the indices beside the weights.
def weighted_indices(weights, uniforms, replacement):
    pieces = [(index, float(w)) for index, w in enumerate(weights.tolist())]
    for _, w in pieces:
        if w != w or w < 0 or w == float("inf"):
            raise ValueError("not a weight")
    pieces = [piece for piece in pieces if piece[1] > 0]
    need = len(uniforms) if not replacement else bool(len(uniforms))
    if need > len(pieces):
        raise ValueError("too few positive weights")
    drawn = []
    for u in uniforms.tolist():
        dart, end = u * sum(w for _, w in pieces), 0.0
        for piece in pieces:
            end += piece[1]
            if dart < end:
                break
        drawn.append(piece[0])
        if not replacement:
            pieces = [other for other in pieces if other is not piece]
    return drawn


# %% alternate: all_at_once
# With replacement, one table of comparisons: how many ends are not after the dart.
def weighted_indices(weights, uniforms, replacement):
    w = weights.to(torch.float64)
    if bool((w < 0).any() | w.isinf().any() | w.isnan().any()):
        raise ValueError("not a weight")
    if len(uniforms) == 0:
        return []
    if replacement:
        if not bool((w > 0).any()):
            raise ValueError("nothing to draw")
        ends = w.cumsum(0)
        return (ends <= (uniforms * ends[-1])[:, None]).sum(1).tolist()
    if int((w > 0).sum()) < len(uniforms):
        raise ValueError("too few positive weights")
    first = weighted_indices(w, uniforms[:1], True)
    keep = torch.arange(len(w)) != first[0]
    return first + weighted_indices(torch.where(keep, w, 0.0), uniforms[1:], False)
