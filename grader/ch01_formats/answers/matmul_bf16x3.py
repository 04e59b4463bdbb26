# %% blocked: builtin_matmul
# PyTorch's own product of `float32` matrices is what the six products should match.
def matmul_bf16x3(a, b, multiply):
    return a @ b


# %% mistake: one_product
# You round the operands to bfloat16 and multiply once. Sixteen of their 24 bits are gone before the
# multiplication begins. Split each operand into pieces.
def matmul_bf16x3(a, b, multiply):
    return multiply(a.bfloat16(), b.bfloat16())


# %% mistake: two_pieces
# Your operands have two pieces, 16 bits of 24; or there is a third and you never multiply it.
# $A_1 B_3$ and $A_3 B_1$ are as large as $A_2 B_2$.
def matmul_bf16x3(a, b, multiply):
    a1, b1 = a.bfloat16(), b.bfloat16()
    a2, b2 = (a - a1.float()).bfloat16(), (b - b1.float()).bfloat16()
    return multiply(a2, b2) + (multiply(a1, b2) + multiply(a2, b1)) + multiply(a1, b1)


# %% mistake: pieces_in_pairs
# You multiply first with first, second with second, third with third. The product of two sums has
# all the mixed products too: $A_1 B_2$ is larger than $A_2 B_2$.
def matmul_bf16x3(a, b, multiply):
    def pieces(x):
        x1 = x.bfloat16()
        x2 = (x - x1.float()).bfloat16()
        x3 = (x - x1.float() - x2.float()).bfloat16()
        return x1, x2, x3

    a1, a2, a3 = pieces(a)
    b1, b2, b3 = pieces(b)
    return multiply(a3, b3) + multiply(a2, b2) + multiply(a1, b1)


# %% mistake: forgets_the_middle
# You leave out $A_2 B_2$. It is as large as $A_1 B_3$ and $A_3 B_1$: two steps down, one on each
# side.
def matmul_bf16x3(a, b, multiply):
    def pieces(x):
        x1 = x.bfloat16()
        x2 = (x - x1.float()).bfloat16()
        x3 = (x - x1.float() - x2.float()).bfloat16()
        return x1, x2, x3

    a1, a2, a3 = pieces(a)
    b1, b2, b3 = pieces(b)
    small = multiply(a1, b3) + multiply(a3, b1)
    return small + (multiply(a1, b2) + multiply(a2, b1)) + multiply(a1, b1)


# %% mistake: one_side_only
# You leave out the products of the first pieces of `b` with the smaller ones of `a`. Both operands
# have pieces: for each $A_i B_j$ there is $A_j B_i$.
def matmul_bf16x3(a, b, multiply):
    def pieces(x):
        x1 = x.bfloat16()
        x2 = (x - x1.float()).bfloat16()
        x3 = (x - x1.float() - x2.float()).bfloat16()
        return x1, x2, x3

    a1, a2, a3 = pieces(a)
    b1, b2, b3 = pieces(b)
    small = multiply(a1, b3) + multiply(a2, b3) + multiply(a2, b2)
    return small + multiply(a1, b2) + multiply(a1, b1)


# %% mistake: subtracts_in_bfloat16
# You compute what is left over in bfloat16. The operand has been rounded by then, nothing is left
# over, and the other pieces are zero. Subtract in `float32`.
def matmul_bf16x3(a, b, multiply):
    def pieces(x):
        x1 = x.bfloat16()
        x2 = x.bfloat16() - x1
        x3 = x.bfloat16() - x1 - x2
        return x1, x2, x3

    a1, a2, a3 = pieces(a)
    b1, b2, b3 = pieces(b)
    small = multiply(a1, b3) + multiply(a3, b1) + multiply(a2, b2)
    return small + (multiply(a1, b2) + multiply(a2, b1)) + multiply(a1, b1)


# %% mistake: third_repeats_the_second
# Your third piece is not what is left over after two: you subtract only one of them. Subtract both
# from `x`.
def matmul_bf16x3(a, b, multiply):
    def pieces(x):
        x1 = x.bfloat16()
        x2 = (x - x1.float()).bfloat16()
        x3 = (x - x1.float()).bfloat16()
        return x1, x2, x3

    a1, a2, a3 = pieces(a)
    b1, b2, b3 = pieces(b)
    small = multiply(a1, b3) + multiply(a3, b1) + multiply(a2, b2)
    return small + (multiply(a1, b2) + multiply(a2, b1)) + multiply(a1, b1)


# %% mistake: adds_in_bfloat16
# You add the products in bfloat16, and each sum is rounded to eight bits. The unit's results are
# `float32`; add them as they are.
def matmul_bf16x3(a, b, multiply):
    def pieces(x):
        x1 = x.bfloat16()
        x2 = (x - x1.float()).bfloat16()
        x3 = (x - x1.float() - x2.float()).bfloat16()
        return x1, x2, x3

    a1, a2, a3 = pieces(a)
    b1, b2, b3 = pieces(b)
    small = multiply(a1, b3) + multiply(a3, b1) + multiply(a2, b2)
    medium = multiply(a1, b2) + multiply(a2, b1)
    total = small.bfloat16() + medium.bfloat16() + multiply(a1, b1).bfloat16()
    return total.float()


# %% mistake: all_nine
# You compute all nine products. The three smallest change nothing that `float32` can hold, and cost
# half as much again as the six.
def matmul_bf16x3(a, b, multiply):
    def pieces(x):
        x1 = x.bfloat16()
        x2 = (x - x1.float()).bfloat16()
        x3 = (x - x1.float() - x2.float()).bfloat16()
        return x1, x2, x3

    a1, a2, a3 = pieces(a)
    b1, b2, b3 = pieces(b)
    tiny = multiply(a3, b3) + (multiply(a2, b3) + multiply(a3, b2))
    small = tiny + multiply(a1, b3) + multiply(a3, b1) + multiply(a2, b2)
    return small + (multiply(a1, b2) + multiply(a2, b1)) + multiply(a1, b1)


# %% mistake: three_products
# You stop after three products, $A_1 B_1$, $A_1 B_2$ and $A_2 B_1$. They carry some 16 bits. The
# three with $i + j = 4$ are the next in size, and without them the last eight bits are wrong.
def matmul_bf16x3(a, b, multiply):
    a1, b1 = a.bfloat16(), b.bfloat16()
    a2, b2 = (a - a1.float()).bfloat16(), (b - b1.float()).bfloat16()
    return multiply(a1, b2) + multiply(a2, b1) + multiply(a1, b1)


# %% mistake: third_piece_lost
# The third pieces do not count. Either $A_1 B_3$ and $A_3 B_1$ are not among your six products, or
# your third piece is zero: you rounded what was left over before you took the second piece off it.
def matmul_bf16x3(a, b, multiply):
    def pieces(x):
        found = []
        for _ in range(3):
            piece = x.bfloat16()
            found.append(piece)
            x = (x - piece.float()).bfloat16().float()
        return found

    a1, a2, a3 = pieces(a)
    b1, b2, b3 = pieces(b)
    small = multiply(a1, b3) + multiply(a3, b1) + multiply(a2, b2)
    return small + (multiply(a1, b2) + multiply(a2, b1)) + multiply(a1, b1)


# %% mistake: throws_the_product_away
# You call the unit, and then do the multiplying yourself. All products are the unit's work; your own
# part is to split the operands and to add what comes back.
def matmul_bf16x3(a, b, multiply):
    multiply(a.bfloat16(), b.bfloat16())
    return (a.double()[:, :, None] * b.double()[None]).sum(1).float()


# %% alternate: calls_by_name
# The unit's operands by their names, as the notebook's own unit has them.
def matmul_bf16x3(a, b, multiply):
    def pieces(x):
        x1 = x.bfloat16()
        x2 = (x - x1.float()).bfloat16()
        x3 = (x - x1.float() - x2.float()).bfloat16()
        return x1, x2, x3

    a1, a2, a3 = pieces(a)
    b1, b2, b3 = pieces(b)
    small = multiply(a=a1, b=b3) + multiply(a=a3, b=b1) + multiply(a=a2, b=b2)
    return small + (multiply(a=a1, b=b2) + multiply(a=a2, b=b1)) + multiply(a=a1, b=b1)


# %% alternate: cut_off_bits
# The pieces are cut off with a mask instead of rounded, and the largest product comes first.
def matmul_bf16x3(a, b, multiply):
    def upper(x):
        return (x.contiguous().view(torch.int32) & -65536).view(torch.float32)

    def pieces(x):
        x1 = upper(x)
        x2 = upper(x - x1)
        return [piece.to(torch.bfloat16) for piece in (x1, x2, x - x1 - x2)]

    left, right = pieces(a), pieces(b)
    total = torch.zeros(a.shape[0], b.shape[1])
    for i in range(3):
        for j in range(3 - i):
            total += multiply(left[i], right[j])
    return total


# %% alternate: one_long_product
# A single call: the pieces side by side along k, six times as long.
def matmul_bf16x3(a, b, multiply):
    def pieces(x):
        x1 = x.to(torch.bfloat16)
        x2 = (x - x1).to(torch.bfloat16)
        return x1, x2, (x - x1 - x2).to(torch.bfloat16)

    (a1, a2, a3), (b1, b2, b3) = pieces(a), pieces(b)
    return multiply(torch.cat([a3, a1, a2, a2, a1, a1], 1), torch.cat([b1, b3, b2, b1, b2, b1]))


# %% alternate: three_calls
# Three calls: what is multiplied with the same piece is added up by the unit itself.
def matmul_bf16x3(a, b, multiply):
    def pieces(x):
        found, rest = [], x
        while len(found) < 3:
            found.append(rest.to(torch.bfloat16))
            rest = rest - found[-1].to(torch.float32)
        return found

    left, right = pieces(a), pieces(b)
    total = 0
    for i in (2, 1, 0):
        partners = list(reversed(range(3 - i)))
        wide = multiply(left[i], torch.cat([right[j] for j in partners], dim=1))
        for product in wide.chunk(len(partners), dim=1):
            total = total + product
    return total
