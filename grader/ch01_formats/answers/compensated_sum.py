# %% blocked: builtin_sum
# The built-in adds up for you, and in float64 nothing of this chapter would be needed.
def compensated_sum(x):
    return x.sum(dim=0, dtype=torch.float64).float()


# %% blocked: in_python_floats
# A Python float is a float64: it moves the wall from 2**24 to 2**53 and leaves the question.
def compensated_sum(x):
    return torch.tensor([float(sum(column)) for column in x.t().tolist()])


# %% blocked: promotes
# Adding to a float64 tensor makes the sum a float64 too.
def compensated_sum(x):
    total = torch.zeros(x.shape[1], dtype=torch.float64)
    for row in x:
        total = total + row
    return total.to(torch.float32)


# %% blocked: wide_complex
# The real part of a complex128 is a float64.
def compensated_sum(x):
    total = torch.zeros(x.shape[1], dtype=torch.complex128)
    for row in x:
        total = total + row
    return total.real.to(torch.float32)


# %% blocked: in_numpy
# NumPy adds in float64 if it is asked to.
def compensated_sum(x):
    import numpy

    rows = numpy.asarray(x.float())
    return torch.from_numpy(numpy.add.reduce(rows, axis=0, dtype="f8").astype("f4"))


# %% mistake: naive
# You add the terms and drop what each addition loses. Near `2**24` the steps of float32 are wider
# than 1, and adding ones does nothing. Compute each loss, keep the losses in a total of their own,
# and add that at the end: put back at once, a loss is lost again.
def compensated_sum(x):
    total = torch.zeros(x.shape[1])
    for row in x.float():
        total = total + row
    return total


# %% mistake: kahan
# This is Kahan's sum. It assumes that the total is larger than the next term. When a term larger
# than the total arrives, what is lost is a part of the total, and Kahan's formula does not see it.
def compensated_sum(x):
    total, carry = torch.zeros(x.shape[1]), torch.zeros(x.shape[1])
    for row in x.float():
        term = row - carry
        new = total + term
        carry = (new - total) - term
        total = new
    return total


# %% mistake: never_swaps
# Your losses are right only where the total is the larger of the two. Otherwise total and term
# change places: what is lost is then a part of the total, `total - (new - row)`.
def compensated_sum(x):
    total, lost = torch.zeros(x.shape[1]), torch.zeros(x.shape[1])
    for row in x.float():
        new = total + row
        lost += row - (new - total)
        total = new
    return total + lost


# %% mistake: compares_signed
# You compare total and term with their signs. What matters is which one is larger in magnitude:
# take `abs()` of both.
def compensated_sum(x):
    total, lost = torch.zeros(x.shape[1]), torch.zeros(x.shape[1])
    for row in x.float():
        new = total + row
        lost += torch.where(total >= row, row - (new - total), total - (new - row))
        total = new
    return total + lost


# %% mistake: wrong_sign
# Your losses have the wrong sign, so every error counts twice. What is lost is the term minus the
# part of it that arrived, and it is added.
def compensated_sum(x):
    total, lost = torch.zeros(x.shape[1]), torch.zeros(x.shape[1])
    for row in x.float():
        new = total + row
        larger = total.abs() >= row.abs()
        lost += torch.where(larger, (new - total) - row, (new - row) - total)
        total = new
    return total + lost


# %% mistake: input_dtype
# You compute in the dtype of the input. For bfloat16 both totals stop at 256, and the second cannot
# make up for the first. Convert the terms to float32 before you add.
def compensated_sum(x):
    total, lost = x.new_zeros(x.shape[1]), x.new_zeros(x.shape[1])
    for row in x:
        new = total + row
        lost += torch.where(total.abs() >= row.abs(), row - (new - total), total - (new - row))
        total = new
    return (total + lost).float()


# %% mistake: pairwise
# You add in pairs, which keeps the totals small and most sums good. Where terms cancel it does not
# help: what an addition has lost, no later one brings back.
def compensated_sum(x):
    x = x.float()
    while len(x) > 1:
        if len(x) % 2:
            x = torch.cat([x, torch.zeros_like(x[:1])])
        x = x[::2] + x[1::2]
    return x[0] if len(x) else torch.zeros(x.shape[1])


# %% alternate: knuth
# Knuth's six operations find the loss without asking which number is larger.
def compensated_sum(x):
    total, lost = torch.zeros(x.shape[1]), torch.zeros(x.shape[1])
    for row in x:
        row = row.to(torch.float32)
        new = total + row
        arrived = new - total
        lost = lost + ((total - (new - arrived)) + (row - arrived))
        total = new
    return total + lost


# %% alternate: tree_of_pairs
# Pairs of a total and a loss, added in a tree: few steps on large tensors.
def compensated_sum(x):
    high = x.float()
    low = torch.zeros_like(high)
    while len(high) > 1:
        if len(high) % 2:
            high = torch.cat([high, torch.zeros_like(high[:1])])
            low = torch.cat([low, torch.zeros_like(low[:1])])
        a, b = high[::2], high[1::2]
        high = a + b
        arrived = high - a
        low = low[::2] + low[1::2] + ((a - (high - arrived)) + (b - arrived))
    return (high + low)[0] if len(high) else torch.zeros(x.shape[1])


# %% alternate: double_float
# One number in two halves, tidied up after every addition.
def compensated_sum(x):
    def two_sum(a, b):
        s = a + b
        t = s - a
        return s, (a - (s - t)) + (b - t)

    high, low = torch.zeros(x.shape[1]), torch.zeros(x.shape[1])
    for row in x.float():
        high, error = two_sum(high, row)
        high, low = two_sum(high, low + error)
    return high + low


# %% alternate: asks_for_the_dtype
# Only bfloat16 is converted, and the loss is computed for the larger and the smaller of the two.
def compensated_sum(x):
    if x.dtype is not torch.float32:
        x = x.to(torch.float32)
    total, lost = x.new_zeros(x.shape[1]), x.new_zeros(x.shape[1])
    for index in range(x.shape[0]):
        term = x[index]
        swap = term.abs() > total.abs()
        large, small = torch.where(swap, term, total), torch.where(swap, total, term)
        total = large + small
        lost = lost + ((large - total) + small)
    return torch.add(total, lost)
