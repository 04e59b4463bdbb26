# %% blocked: builtin_matmul
# PyTorch's own product of whole numbers does what the unit and its repair should do.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    return (a.int() - a_zero) @ (b.int() - b_zero)


# %% blocked: builtin_int_mm
# The built-in is the unit; here it comes as an argument.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    rows, columns = a.sum(1, keepdim=True), b.sum(0, keepdim=True)
    product = torch._int_mm(a, b) - b_zero * rows - a_zero * columns + a.shape[1] * a_zero * b_zero
    return product.to(torch.int32)


# %% mistake: ignores_zero_points
# You multiply the codes and leave the zero points out. Multiply out (a - z_a)(b - z_b): three more
# terms belong to each sum.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    return multiply(a, b)


# %% mistake: subtracts_in_int8
# You subtract the zero points in `int8`, to please the unit. Differences run from -255 to 255 and
# wrap around. Multiply the codes as they are, and repair the result.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    return multiply(a - a_zero, b - b_zero)


# %% mistake: clamps_the_differences
# You clamp the differences to `int8`, to please the unit. Everything more than 128 away from the
# zero point is lost. Multiply the codes as they are, and repair the result.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    a = (a.int() - a_zero).clamp(-128, 127).to(torch.int8)
    b = (b.int() - b_zero).clamp(-128, 127).to(torch.int8)
    return multiply(a, b)


# %% mistake: forgets_the_last_term
# You take off both cross terms and forget the product of the zero points. It appears once per
# summand: add `k * z_a * z_b`.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    rows, columns = a.sum(1, keepdim=True), b.sum(0, keepdim=True)
    product = multiply(a, b) - b_zero * rows - a_zero * columns
    return product.to(torch.int32)


# %% mistake: last_term_once
# You add the product of the zero points once. It stands under the sum over k, so it appears k
# times.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    rows, columns = a.sum(1, keepdim=True), b.sum(0, keepdim=True)
    product = multiply(a, b) - b_zero * rows - a_zero * columns + a_zero * b_zero
    return product.to(torch.int32)


# %% mistake: last_term_subtracted
# The product of the zero points has the wrong sign: minus times minus is plus.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    rows, columns = a.sum(1, keepdim=True), b.sum(0, keepdim=True)
    product = multiply(a, b) - b_zero * rows - a_zero * columns - a.shape[1] * a_zero * b_zero
    return product.to(torch.int32)


# %% mistake: own_zero_point
# You multiply the row sums of `a` with the zero point of `a`, and those of `b` with that of `b`.
# Multiply out the brackets: it is crosswise.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    rows, columns = a.sum(1, keepdim=True), b.sum(0, keepdim=True)
    product = multiply(a, b) - a_zero * rows - b_zero * columns + a.shape[1] * a_zero * b_zero
    return product.to(torch.int32)


# %% mistake: sums_in_int8
# You sum rows and columns in `int8`, where they wrap around at 128. Sums need a wider dtype than
# their terms.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    rows, columns = (
        a.sum(1, keepdim=True, dtype=torch.int8),
        b.sum(0, keepdim=True, dtype=torch.int8),
    )
    product = (
        multiply(a, b) - b_zero * rows.int() - a_zero * columns.int() + a.shape[1] * a_zero * b_zero
    )
    return product.to(torch.int32)


# %% mistake: repairs_in_float32
# You repair the sums in `float32`. Beyond 2**24 it skips whole numbers, and your results are off by
# a few. Whole numbers stay exact in int32.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    rows, columns = a.float().sum(1, keepdim=True), b.float().sum(0, keepdim=True)
    product = (
        multiply(a, b).float() - b_zero * rows - a_zero * columns + a.shape[1] * a_zero * b_zero
    )
    return product.to(torch.int32)


# %% mistake: one_call_per_term
# Your results are right, at twice the price or more: the sums that repair the product do not need
# the matrix unit, which was to be called once.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    ones_a, ones_b = torch.ones_like(a), torch.ones_like(b)
    product = multiply(a, b) - b_zero * multiply(a, ones_b) - a_zero * multiply(ones_a, b)
    return product + a.shape[1] * a_zero * b_zero


# %% mistake: without_the_unit
# You multiply element by element, outside of the matrix unit. Hand it the codes, and repair what it
# returns.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    return ((a.int() - a_zero)[:, :, None] * (b.int() - b_zero)[None]).sum(1).int()


# %% mistake: throws_the_product_away
# You call the unit and then multiply once more, element by element, outside of it. Repair what it
# returns: the zero points need sums of rows and columns, and no further product.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    multiply(a, b)
    return ((a.int() - a_zero)[:, :, None] * (b.int() - b_zero)[None]).sum(1).int()


# %% mistake: repairs_in_int8
# Your sums of rows and columns are `int8`, and so is their product with a zero point: both wrap
# around. Sums need a wider dtype than their terms; left alone, `sum` takes `int64`.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    rows = a.sum(1, keepdim=True, dtype=torch.int8)
    columns = b.sum(0, keepdim=True, dtype=torch.int8)
    product = multiply(a, b) - b_zero * rows - a_zero * columns + a.shape[1] * a_zero * b_zero
    return product.to(torch.int32)


# %% mistake: adds_the_cross_terms
# Your cross terms have the wrong sign. In (a - z_a)(b - z_b) both are taken off; only the product
# of the two zero points is added.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    rows, columns = a.sum(1, keepdim=True), b.sum(0, keepdim=True)
    product = multiply(a, b) + b_zero * rows + a_zero * columns + a.shape[1] * a_zero * b_zero
    return product.to(torch.int32)


# %% mistake: counts_the_rows
# You add the product of the zero points once for each row of `a`. It stands under the sum over k:
# count the columns of `a`, `a.shape[1]`.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    rows, columns = a.sum(1, keepdim=True), b.sum(0, keepdim=True)
    product = multiply(a, b) - b_zero * rows - a_zero * columns + a.shape[0] * a_zero * b_zero
    return product.to(torch.int32)


# %% alternate: calls_by_name
# The unit's operands by their names, as the notebook's own unit has them.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    result = multiply(a=a, b=b).long() - a_zero * b.long().sum(0)
    return (result - b_zero * (a.long() - a_zero).sum(1)[:, None]).to(torch.int32)


# %% alternate: bracket_by_bracket
# One bracket at a time: the columns of b - z_b sum up to the columns of b, less k z_b.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    result = multiply(a, b)
    result -= b_zero * a.sum(dim=1, dtype=torch.int32).unsqueeze(1)
    return result - a_zero * (b.to(torch.int32) - b_zero).sum(dim=0).int()


# %% alternate: ones_at_the_border
# A row of ones below a and a column of ones beside b: the one product holds the sums too.
def int8_matmul(a, a_zero, b, b_zero, multiply):
    (m, k), n = a.shape, b.shape[1]
    bordered = multiply(
        torch.cat([a, torch.ones(1, k, dtype=torch.int8)]),
        torch.cat([b, torch.ones(k, 1, dtype=torch.int8)], dim=1),
    )
    product, rows, columns, size = (
        bordered[:m, :n],
        bordered[:m, n:],
        bordered[m:, :n],
        bordered[m, n],
    )
    return product - b_zero * rows - a_zero * columns + size * a_zero * b_zero
