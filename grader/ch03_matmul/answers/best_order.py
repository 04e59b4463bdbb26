# %% blocked: hands_out_multi_dot
# `torch.linalg.multi_dot` finds the best order for you, and does not even tell it.
def best_order(sizes):
    torch.linalg.multi_dot([torch.zeros(m, n) for m, n in zip(sizes, sizes[1:])])
    return 0, 0


# %% mistake: from_left_to_right
# You multiply from left to right, as Python does with `a @ b @ c`. Try every place where the last
# product could split the chain.
def best_order(sizes):
    flops, order = 0, 0
    for i in range(1, len(sizes) - 1):
        flops += 2 * sizes[0] * sizes[i] * sizes[i + 1]
        order = (order, i)
    return flops, order


# %% mistake: one_end_or_the_other
# You compared two orders, all from the left and all from the right. Between them there are very
# many more, as soon as there are four matrices.
def best_order(sizes):
    n = len(sizes) - 1
    left, right = 0, n - 1
    left_flops = right_flops = 0
    for i in range(1, n):
        left_flops += 2 * sizes[0] * sizes[i] * sizes[i + 1]
        left = (left, i)
    for i in range(n - 2, -1, -1):
        right_flops += 2 * sizes[i] * sizes[i + 1] * sizes[n]
        right = (i, right)
    return (left_flops, left) if left_flops <= right_flops else (right_flops, right)


# %% mistake: splits_off_one
# You split off the first or the last matrix only. The last product may join two long parts.
def best_order(sizes):
    n = len(sizes) - 1
    best = {(i, i): (0, i) for i in range(n)}
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            ways = []
            for k in {i, j - 1}:
                (x, p), (y, q) = best[i, k], best[k + 1, j]
                ways.append((x + y + 2 * sizes[i] * sizes[k + 1] * sizes[j + 1], (p, q)))
            best[i, j] = min(ways, key=lambda way: way[0])
    return best[0, n - 1]


# %% mistake: cheapest_product_first
# You do the cheapest product first, again and again. That is a good rule and no proof: a cheap
# product now can make all later ones dear.
def best_order(sizes):
    sizes, orders, flops = list(sizes), list(range(len(sizes) - 1)), 0
    while len(orders) > 1:
        costs = [2 * sizes[i] * sizes[i + 1] * sizes[i + 2] for i in range(len(orders) - 1)]
        i = costs.index(min(costs))
        flops += costs[i]
        orders[i : i + 2] = [(orders[i], orders[i + 1])]
        del sizes[i + 1]
    return flops, orders[0]


# %% mistake: largest_size_first
# You remove the largest inner size first. It is the best rule of thumb there is, and still wrong on
# some chains: what the product costs depends on its other two sizes as well.
def best_order(sizes):
    sizes, orders, flops = list(sizes), list(range(len(sizes) - 1)), 0
    while len(orders) > 1:
        i = max(range(len(orders) - 1), key=lambda i: sizes[i + 1])
        flops += 2 * sizes[i] * sizes[i + 1] * sizes[i + 2]
        orders[i : i + 2] = [(orders[i], orders[i + 1])]
        del sizes[i + 1]
    return flops, orders[0]


# %% mistake: multiplications_alone
# You count multiplications. Each comes with an addition, and a FLOP is either: a product of an
# (m, k) and a (k, n) matrix takes 2 m k n.
def best_order(sizes):
    n = len(sizes) - 1
    best = {(i, i): (0, i) for i in range(n)}
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            ways = []
            for k in range(i, j):
                (x, p), (y, q) = best[i, k], best[k + 1, j]
                ways.append((x + y + sizes[i] * sizes[k + 1] * sizes[j + 1], (p, q)))
            best[i, j] = min(ways, key=lambda way: way[0])
    return best[0, n - 1]


# %% mistake: parts_are_free
# You choose the split by its own product alone, and forget what the two parts cost. Add their best
# costs before you compare.
def best_order(sizes):
    def best(i, j):
        if i == j:
            return 0, i
        k = min(range(i, j), key=lambda k: sizes[i] * sizes[k + 1] * sizes[j + 1])
        (x, p), (y, q) = best(i, k), best(k + 1, j)
        return x + y + 2 * sizes[i] * sizes[k + 1] * sizes[j + 1], (p, q)

    return best(0, len(sizes) - 2)


# %% mistake: in_floats
# You count in floats. A Python `float` holds every whole number up to 2**53 and not all beyond:
# three sizes near a million make more. Whole numbers are exact: leave them whole from the start.
def best_order(sizes):
    best = {(i, i): (0.0, i) for i in range(len(sizes) - 1)}
    for length in range(1, len(sizes) - 1):
        for i in range(len(sizes) - 1 - length):
            j = i + length
            cost, k = min(
                (
                    best[i, k][0]
                    + best[k + 1, j][0]
                    + 2.0 * sizes[i] * sizes[k + 1] * sizes[j + 1],
                    k,
                )
                for k in range(i, j)
            )
            best[i, j] = cost, (best[i, k][1], best[k + 1, j][1])
    cost, order = best[0, len(sizes) - 2]
    return int(cost), order


# %% mistake: in_a_tensor_of_floats
# You keep the costs in a tensor of float32. It holds whole numbers up to 2**24; a larger number of
# FLOPs is rounded. Use Python's whole numbers, or int64.
def best_order(sizes):
    n = len(sizes) - 1
    cost = torch.zeros(n, n)
    order = {(i, i): i for i in range(n)}
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            ways = torch.stack(
                [
                    cost[i, k] + cost[k + 1, j] + 2.0 * sizes[i] * sizes[k + 1] * sizes[j + 1]
                    for k in range(i, j)
                ]
            )
            k = i + int(ways.argmin())
            cost[i, j] = ways.min()
            order[i, j] = (order[i, k], order[k + 1, j])
    return int(cost[0, n - 1]), order[0, n - 1]


# %% alternate: asks_itself
# Top down, with a cache: each stretch is asked about once.
def best_order(sizes):
    from functools import cache

    @cache
    def best(first, end):
        if end - first == 1:
            return 0, first
        ways = []
        for split in range(first + 1, end):
            (x, p), (y, q) = best(first, split), best(split, end)
            ways.append((x + y + 2 * sizes[first] * sizes[split] * sizes[end], split, (p, q)))
        flops, _, order = min(ways)
        return flops, order

    return best(0, len(sizes) - 1)


# %% alternate: table_of_splits
# The textbook's two tables, costs and splits; the order is read from the second at the end. Of
# equals it takes the last.
def best_order(sizes):
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for i in reversed(range(n)):
        for j in range(i + 1, n):
            cost[i][j] = None
            for k in range(i, j):
                total = cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                if cost[i][j] is None or total <= cost[i][j]:
                    cost[i][j], split[i][j] = total, k

    def brackets(i, j):
        if i == j:
            return i
        return brackets(i, split[i][j]), brackets(split[i][j] + 1, j)

    return 2 * cost[0][-1], brackets(0, n - 1)
