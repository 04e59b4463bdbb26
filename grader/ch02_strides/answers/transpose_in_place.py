# %% mistake: a_view
# `t()` exchanges the strides and moves nothing. The result reads like the transpose, and it is not
# contiguous: its rows are still columns in memory.
def transpose_in_place(x):
    return x.t()


# %% mistake: new_memory
# `contiguous()` on a transpose makes a second matrix and fills that. The result is to lie in the
# cells of `x` itself.
def transpose_in_place(x):
    return x.t().contiguous()


# %% mistake: copied_back
# The transpose ends up in the right cells, by way of a second matrix. That is the memory which you
# were to do without.
def transpose_in_place(x):
    rows, columns = x.shape
    x.view(columns, rows).copy_(x.t().contiguous())
    return x.view(columns, rows)


# %% mistake: python_list
# You took all numbers out into a Python list. Each of them is an object there, so that the list and
# its numbers take four times what the matrix takes.
def transpose_in_place(x):
    rows, columns = x.shape
    numbers = x.view(-1).tolist()
    result = x.view(columns, rows)
    for i in range(rows):
        for j in range(columns):
            result[j, i] = numbers[i * columns + j]
    return result


# %% mistake: one_flag_per_cell
# Your cycles are right. But a list of flags has eight bytes for each cell, which is as much as the
# matrix itself has. A bit would do; so would no flag at all.
def transpose_in_place(x):
    rows, columns = x.shape
    cells, last = x.view(-1), rows * columns - 1
    done = [False] * (last + 1)
    for start in range(1, last):
        if done[start]:
            continue
        carried, cell = cells[start].clone(), start * rows % last
        while cell != start:
            found = cells[cell].clone()
            cells[cell] = carried
            done[cell] = True
            carried, cell = found, cell * rows % last
        cells[start] = carried
    return x.view(columns, rows)


# %% mistake: copy_onto_itself
# `copy_` sees that its source and its target lie in the same memory and refuses. It would have read
# cells that it had overwritten before.
def transpose_in_place(x):
    rows, columns = x.shape
    x.view(columns, rows).copy_(x.t())
    return x.view(columns, rows)


# %% mistake: one_cycle
# You moved the cycle of cell 1 and stopped. In most matrices there are more: what was not on your way
# stands where it stood.
def transpose_in_place(x):
    rows, columns = x.shape
    cells, last = x.view(-1), rows * columns - 1
    if last > 1:
        carried, cell = cells[1].clone(), rows % last
        while cell != 1:
            found = cells[cell].clone()
            cells[cell] = carried
            carried, cell = found, cell * rows % last
        cells[1] = carried
    return x.view(columns, rows)


# %% mistake: wrong_way_round
# You went through the cycles in the wrong direction. A cell $k$ of $m$ rows goes to $k m$, not to
# $k n$: multiplied by the columns it goes back to where it came from.
def transpose_in_place(x):
    rows, columns = x.shape
    cells, last = x.view(-1), rows * columns - 1
    for start in range(1, last):
        cell = start * columns % last
        while cell > start:
            cell = cell * columns % last
        if cell < start:
            continue
        carried, cell = cells[start].clone(), start * columns % last
        while cell != start:
            found = cells[cell].clone()
            cells[cell] = carried
            carried, cell = found, cell * columns % last
        cells[start] = carried
    return x.view(columns, rows)


# %% mistake: a_view_in_the_hand
# You kept `cells[k]` as it is. An indexed element is a view: once you write into the cell, what you
# hold in your hand changes too. Take a `clone()`.
def transpose_in_place(x):
    rows, columns = x.shape
    cells, last = x.view(-1), rows * columns - 1
    for start in range(1, last):
        cell = start * rows % last
        while cell > start:
            cell = cell * rows % last
        if cell < start:
            continue
        carried, cell = cells[start], start * rows % last
        while cell != start:
            found = cells[cell]
            cells[cell] = carried
            carried, cell = found, cell * rows % last
        cells[start] = carried
    return x.view(columns, rows)


# %% mistake: floats_in_the_hand
# You carried each element as a Python `float`. That has 53 bits: large whole numbers are rounded, and
# complex ones do not fit at all. `clone()` carries what is there.
def transpose_in_place(x):
    rows, columns = x.shape
    cells, last = x.view(-1), rows * columns - 1
    for start in range(1, last):
        cell = start * rows % last
        while cell > start:
            cell = cell * rows % last
        if cell < start:
            continue
        carried, cell = float(cells[start]), start * rows % last
        while cell != start:
            found = float(cells[cell])
            cells[cell] = carried
            carried, cell = found, cell * rows % last
        cells[start] = carried
    return x.view(columns, rows)


# %% mistake: squares_only
# Exchanging `x[i, j]` and `x[j, i]` transposes a square matrix. In any other there is no such pair:
# cells move along cycles that are longer than two.
def transpose_in_place(x):
    rows, columns = x.shape
    for i in range(min(rows, columns)):
        for j in range(i):
            kept = x[i, j].clone()
            x[i, j] = x[j, i]
            x[j, i] = kept
    return x.view(columns, rows)


# %% alternate: one_bit_per_cell
# The cells that are done, as the bits of one whole number.
def transpose_in_place(x):
    m, n = x.shape
    flat, size = x.flatten(), m * n
    done = bytearray(size // 8 + 1)
    for start in range(size):
        if done[start >> 3] >> (start & 7) & 1:
            continue
        k, hand = start, flat[start].clone()
        while True:
            k = k % n * m + k // n
            done[k >> 3] |= 1 << (k & 7)
            other = flat[k].clone()
            flat[k] = hand
            hand = other
            if k == start:
                break
    return flat.view(n, m)


# %% alternate: swaps
# From the first cell on, each takes its own number. If that was moved away before, it is found where
# it was exchanged to.
def transpose_in_place(x):
    m, n = x.shape
    flat = x.view(m * n)
    for k in range(m * n):
        source = k
        while True:
            source = source % m * n + source // m
            if source >= k:
                break
        if source != k:
            flat[[k, source]] = flat[[source, k]]
    return x.view(n, m)


# %% alternate: row_by_row
# Take out the column that becomes the next row, and shift what lies before its elements to the right:
# the rest of the matrix stays row-major, one column less wide.
def transpose_in_place(x):
    rows, columns = x.shape
    flat = x.view(-1)
    for wide in range(columns, 0, -1):
        rest = flat[(columns - wide) * rows :]
        first = rest[: rows * wide : wide].clone()
        end = rows * wide
        for row in range(rows - 1, -1, -1):
            for low in range(row * wide + wide - 1, row * wide, -64):
                low_end = max(low - 63, row * wide + 1)
                block = rest[low_end : low + 1].clone()
                end -= len(block)
                rest[end : end + len(block)] = block
        rest[:rows] = first
    return x.view(columns, rows)
