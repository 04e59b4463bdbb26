# %% mistake: the_plain_product
# `mm` takes n products of n terms for each row. The exercise is about fewer multiplications: split
# into blocks, and take seven products.
def strassen(a, b, leaf):
    return torch.mm(a, b)


# %% mistake: eight_products
# You split into blocks and take the eight products of the definition. That is FLOP for FLOP what
# `mm` takes. Strassen's seven sums of products make the difference.
def strassen(a, b, leaf):
    n = a.shape[0]
    if n <= leaf:
        return torch.mm(a, b)
    if n % 2:
        pad = torch.nn.functional.pad
        return strassen(pad(a, (0, 1, 0, 1)), pad(b, (0, 1, 0, 1)), leaf)[:n, :n]
    h = n // 2
    x, y = (
        (a[:h, :h], a[:h, h:], a[h:, :h], a[h:, h:]),
        (b[:h, :h], b[:h, h:], b[h:, :h], b[h:, h:]),
    )
    blocks = [
        strassen(x[2 * i], y[j], leaf) + strassen(x[2 * i + 1], y[2 + j], leaf)
        for i in range(2)
        for j in range(2)
    ]
    return torch.cat([torch.cat(blocks[:2], 1), torch.cat(blocks[2:], 1)])


# %% mistake: one_level_only
# You take seven products once, and `mm` for all of them. Each of the seven is a product like the
# first: call your own function, until there are no more rows than the leaf has.
def strassen(a, b, leaf):
    n = a.shape[0]
    if n <= leaf:
        return torch.mm(a, b)
    if n % 2:
        pad = torch.nn.functional.pad
        return strassen(pad(a, (0, 1, 0, 1)), pad(b, (0, 1, 0, 1)), leaf)[:n, :n]
    h = n // 2
    a11, a12, a21, a22 = a[:h, :h], a[:h, h:], a[h:, :h], a[h:, h:]
    b11, b12, b21, b22 = b[:h, :h], b[:h, h:], b[h:, :h], b[h:, h:]
    m1, m2 = torch.mm(a11 + a22, b11 + b22), torch.mm(a21 + a22, b11)
    m3, m4 = torch.mm(a11, b12 - b22), torch.mm(a22, b21 - b11)
    m5, m6 = torch.mm(a11 + a12, b22), torch.mm(a21 - a11, b11 + b12)
    m7 = torch.mm(a12 - a22, b21 + b22)
    top = torch.cat([m1 + m4 - m5 + m7, m3 + m5], 1)
    return torch.cat([top, torch.cat([m2 + m4, m1 - m2 + m3 + m6], 1)])


# %% mistake: splits_the_leaf
# You go on where there are exactly `leaf` rows. A product of at most `leaf` rows, that number
# included, is one `mm`: compare with `<=`.
def strassen(a, b, leaf):
    n = a.shape[0]
    if n < leaf or n == 1:
        return torch.mm(a, b)
    if n % 2:
        pad = torch.nn.functional.pad
        return strassen(pad(a, (0, 1, 0, 1)), pad(b, (0, 1, 0, 1)), leaf)[:n, :n]
    h = n // 2
    a11, a12, a21, a22 = a[:h, :h], a[:h, h:], a[h:, :h], a[h:, h:]
    b11, b12, b21, b22 = b[:h, :h], b[:h, h:], b[h:, :h], b[h:, h:]
    m1, m2 = strassen(a11 + a22, b11 + b22, leaf), strassen(a21 + a22, b11, leaf)
    m3, m4 = strassen(a11, b12 - b22, leaf), strassen(a22, b21 - b11, leaf)
    m5, m6 = strassen(a11 + a12, b22, leaf), strassen(a21 - a11, b11 + b12, leaf)
    m7 = strassen(a12 - a22, b21 + b22, leaf)
    top = torch.cat([m1 + m4 - m5 + m7, m3 + m5], 1)
    return torch.cat([top, torch.cat([m2 + m4, m1 - m2 + m3 + m6], 1)])


# %% mistake: pads_to_a_power_of_two
# You pad to a power of two at the start. The result is right, but 65 rows become 128. Pad an odd
# size by one row where it occurs.
def strassen(a, b, leaf):
    n = a.shape[0]
    if n <= leaf:
        return torch.mm(a, b)
    extra = (1 << (n - 1).bit_length()) - n
    if extra:
        pad = torch.nn.functional.pad
        x, y = pad(a, (0, extra, 0, extra)), pad(b, (0, extra, 0, extra))
        return strassen(x, y, leaf)[:n, :n]
    h = n // 2
    a11, a12, a21, a22 = a[:h, :h], a[:h, h:], a[h:, :h], a[h:, h:]
    b11, b12, b21, b22 = b[:h, :h], b[:h, h:], b[h:, :h], b[h:, h:]
    m1, m2 = strassen(a11 + a22, b11 + b22, leaf), strassen(a21 + a22, b11, leaf)
    m3, m4 = strassen(a11, b12 - b22, leaf), strassen(a22, b21 - b11, leaf)
    m5, m6 = strassen(a11 + a12, b22, leaf), strassen(a21 - a11, b11 + b12, leaf)
    m7 = strassen(a12 - a22, b21 + b22, leaf)
    top = torch.cat([m1 + m4 - m5 + m7, m3 + m5], 1)
    return torch.cat([top, torch.cat([m2 + m4, m1 - m2 + m3 + m6], 1)])


# %% mistake: mm_for_odd_sizes
# Where the size is odd you leave the rest to `mm`. Add a row and a column of zeros, and go on.
def strassen(a, b, leaf):
    n = a.shape[0]
    if n <= leaf or n % 2:
        return torch.mm(a, b)
    h = n // 2
    a11, a12, a21, a22 = a[:h, :h], a[:h, h:], a[h:, :h], a[h:, h:]
    b11, b12, b21, b22 = b[:h, :h], b[:h, h:], b[h:, :h], b[h:, h:]
    m1, m2 = strassen(a11 + a22, b11 + b22, leaf), strassen(a21 + a22, b11, leaf)
    m3, m4 = strassen(a11, b12 - b22, leaf), strassen(a22, b21 - b11, leaf)
    m5, m6 = strassen(a11 + a12, b22, leaf), strassen(a21 - a11, b11 + b12, leaf)
    m7 = strassen(a12 - a22, b21 + b22, leaf)
    top = torch.cat([m1 + m4 - m5 + m7, m3 + m5], 1)
    return torch.cat([top, torch.cat([m2 + m4, m1 - m2 + m3 + m6], 1)])


# %% mistake: drops_the_middle
# Where the size is odd you cut at half of it rounded down, and take four blocks of that size. The
# last row and the last column are lost. Add a row and a column of zeros first.
def strassen(a, b, leaf):
    n = a.shape[0]
    if n <= leaf:
        return torch.mm(a, b)
    h = n // 2
    a11, a12, a21, a22 = a[:h, :h], a[:h, h : 2 * h], a[h : 2 * h, :h], a[h : 2 * h, h : 2 * h]
    b11, b12, b21, b22 = b[:h, :h], b[:h, h : 2 * h], b[h : 2 * h, :h], b[h : 2 * h, h : 2 * h]
    m1, m2 = strassen(a11 + a22, b11 + b22, leaf), strassen(a21 + a22, b11, leaf)
    m3, m4 = strassen(a11, b12 - b22, leaf), strassen(a22, b21 - b11, leaf)
    m5, m6 = strassen(a11 + a12, b22, leaf), strassen(a21 - a11, b11 + b12, leaf)
    m7 = strassen(a12 - a22, b21 + b22, leaf)
    result = a.new_zeros(n, n)
    result[:h, :h], result[:h, h : 2 * h] = m1 + m4 - m5 + m7, m3 + m5
    result[h : 2 * h, :h], result[h : 2 * h, h : 2 * h] = m2 + m4, m1 - m2 + m3 + m6
    return result


# %% mistake: a_minus_the_wrong_way
# In $M_6$ the first block is subtracted from the third: $(A_{21} - A_{11})$. You have it the other
# way round, and $C_{22}$ is wrong.
def strassen(a, b, leaf):
    n = a.shape[0]
    if n <= leaf:
        return torch.mm(a, b)
    if n % 2:
        pad = torch.nn.functional.pad
        return strassen(pad(a, (0, 1, 0, 1)), pad(b, (0, 1, 0, 1)), leaf)[:n, :n]
    h = n // 2
    a11, a12, a21, a22 = a[:h, :h], a[:h, h:], a[h:, :h], a[h:, h:]
    b11, b12, b21, b22 = b[:h, :h], b[:h, h:], b[h:, :h], b[h:, h:]
    m1, m2 = strassen(a11 + a22, b11 + b22, leaf), strassen(a21 + a22, b11, leaf)
    m3, m4 = strassen(a11, b12 - b22, leaf), strassen(a22, b21 - b11, leaf)
    m5, m6 = strassen(a11 + a12, b22, leaf), strassen(a11 - a21, b11 + b12, leaf)
    m7 = strassen(a12 - a22, b21 + b22, leaf)
    top = torch.cat([m1 + m4 - m5 + m7, m3 + m5], 1)
    return torch.cat([top, torch.cat([m2 + m4, m1 - m2 + m3 + m6], 1)])


# %% mistake: multiplies_by_hand
# You multiply the leaves by broadcasting and `sum`. The FLOP counter has no formula for these, and
# shows next to nothing: that is no saving. The leaves are the work of `mm`.
def strassen(a, b, leaf):
    n = a.shape[0]
    if n <= leaf:
        return (a[:, :, None] * b).sum(1)
    if n % 2:
        pad = torch.nn.functional.pad
        return strassen(pad(a, (0, 1, 0, 1)), pad(b, (0, 1, 0, 1)), leaf)[:n, :n]
    h = n // 2
    a11, a12, a21, a22 = a[:h, :h], a[:h, h:], a[h:, :h], a[h:, h:]
    b11, b12, b21, b22 = b[:h, :h], b[:h, h:], b[h:, :h], b[h:, h:]
    m1, m2 = strassen(a11 + a22, b11 + b22, leaf), strassen(a21 + a22, b11, leaf)
    m3, m4 = strassen(a11, b12 - b22, leaf), strassen(a22, b21 - b11, leaf)
    m5, m6 = strassen(a11 + a12, b22, leaf), strassen(a21 - a11, b11 + b12, leaf)
    m7 = strassen(a12 - a22, b21 + b22, leaf)
    top = torch.cat([m1 + m4 - m5 + m7, m3 + m5], 1)
    return torch.cat([top, torch.cat([m2 + m4, m1 - m2 + m3 + m6], 1)])


# %% alternate: winograd
# Winograd's form: seven products as well, and 15 additions in place of 18.
def strassen(a, b, leaf):
    n = a.shape[0]
    if n <= leaf:
        return a @ b
    if n % 2:
        a, b = (torch.nn.functional.pad(x, (0, 1, 0, 1)) for x in (a, b))
    h = a.shape[0] // 2
    (a11, a12), (a21, a22) = (row.split(h, 1) for row in a.split(h))
    (b11, b12), (b21, b22) = (row.split(h, 1) for row in b.split(h))
    s1, t1 = a21 + a22, b12 - b11
    s2, t2 = s1 - a11, b22 - t1
    p1, p2 = strassen(a11, b11, leaf), strassen(a12, b21, leaf)
    p3, p4 = strassen(a12 - s2, b22, leaf), strassen(a22, t2 - b21, leaf)
    p5, p6 = strassen(s1, t1, leaf), strassen(s2, t2, leaf)
    p7 = strassen(a11 - a21, b22 - b12, leaf)
    u2 = p1 + p6
    u3 = u2 + p7
    blocks = [[p1 + p2, u2 + p5 + p3], [u3 - p4, u3 + p5]]
    return torch.cat([torch.cat(row, 1) for row in blocks])[:n, :n]


# %% alternate: seven_at_a_time
# The seven pairs are stacked to a batch, and so on: one bmm does all leaves of all levels.
def strassen(a, b, leaf):
    def deeper(x, y):
        n = x.shape[1]
        if n <= leaf:
            return torch.bmm(x, y)
        odd = n % 2
        if odd:
            x = torch.nn.functional.pad(x, (0, 1, 0, 1))
            y = torch.nn.functional.pad(y, (0, 1, 0, 1))
        (p, q), (r, s) = (half.chunk(2, 2) for half in x.chunk(2, 1))
        (e, f), (g, h) = (half.chunk(2, 2) for half in y.chunk(2, 1))
        left = torch.cat([p + s, r + s, p, s, p + q, r - p, q - s])
        right = torch.cat([e + h, e, f - h, g - e, h, e + f, g + h])
        m = deeper(left, right).chunk(7)
        top = torch.cat([m[0] + m[3] - m[4] + m[6], m[2] + m[4]], 2)
        bottom = torch.cat([m[1] + m[3], m[0] - m[1] + m[2] + m[5]], 2)
        return torch.cat([top, bottom], 1)[:, :n, :n]

    return deeper(a[None], b[None])[0]
