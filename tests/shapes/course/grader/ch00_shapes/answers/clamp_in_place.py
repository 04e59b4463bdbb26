# %% blocked: builtin
# The method is the answer.
def clamp_in_place(x, low):
    return x.clamp_(min=low)


# %% mistake: another_tensor
# You return a new tensor and leave `x` as it was. Write into `x`: `x[...] = …`.
def clamp_in_place(x, low):
    return torch.where(x < low, low, x)


# %% mistake: returns_a_copy
# `x` is changed as it must be, but what you return is a copy of it.
def clamp_in_place(x, low):
    x[x < low] = low
    return x.clone()


# %% alternate: by_copy
# All elements are written, the unchanged ones too.
def clamp_in_place(x, low):
    return x.copy_(torch.where(x < low, low, x))


# %% alternate: one_at_a_time
# Element by element.
def clamp_in_place(x, low):
    for row in x:
        for place, value in enumerate(row.tolist()):
            if value < low:
                row[place] = low
    return x
