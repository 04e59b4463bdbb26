# %% blocked: the_built_in
# `torch.einsum` is what you are to build.
def einsum(equation, *operands):
    return torch.einsum(equation, *operands)


# %% mistake: only_letters_once
# You left out the diagonal. A letter that stands twice in one term walks along both dimensions at
# once: `x.diagonal(0, i, j)` gives that, as a view.
def einsum(equation, *operands):
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    laid, sizes, widest, right = [], {}, 0, len(terms) == len(operands)
    for term, x in zip(terms, operands):
        letters = term.replace("...", "", 1)
        hidden = x.dim() - len(letters)
        right = right and all(letter in string.ascii_letters for letter in letters)
        if not right or hidden < 0 or (hidden and letters == term):
            raise ValueError(term)
        widest = max(widest, hidden)
        dots = "".join(chr(9000 - i) for i in range(hidden, 0, -1))  # their own characters
        names, here = term.replace("...", dots, 1), {}
        for name, size in zip(names, x.shape):
            if here.setdefault(name, size) != size:
                raise ValueError(name)
        for name, size in here.items():
            while names.count(name) > 1:
                j = names.rindex(name)
                x, names = x.select(j, 0), names[:j] + names[j + 1 :]
            if sizes.setdefault(name, size) == 1:
                sizes[name] = size
            elif size not in (1, sizes[name]):
                raise ValueError(name)
        laid.append((x, names))
    dots = "".join(chr(9000 - i) for i in range(widest, 0, -1))
    letters = inputs.replace(",", "").replace(".", "")
    kept = dots + "".join(sorted(name for name in letters if letters.count(name) == 1))
    if arrow:
        kept, named = output.replace("...", dots, 1), output.replace("...", "", 1)
        right = len(set(named)) == len(named) and all(name in letters for name in named)
    if not right:
        raise ValueError(equation)
    # Every operand gets every dimension, in one order: those of the output first.
    order = kept + "".join(name for name in sizes if name not in kept)
    aligned = []
    for x, names in laid:
        x = x.permute([names.index(name) for name in order if name in names])
        aligned.append(x[tuple(slice(None) if name in names else None for name in order)])
    total = aligned[0]
    for number, y in enumerate(aligned[1:], 2):
        later = [all(z.shape[d] == 1 for z in aligned[number:]) for d in range(len(order))]
        done = [d >= len(kept) and free for d, free in enumerate(later)]
        alone = [d for d, end in enumerate(done) if end and 1 in (total.shape[d], y.shape[d])]
        if alone:
            total = total.sum(alone, keepdim=True)
            y = y.sum(alone, keepdim=True)
        batch, rows, columns, inner = [], [], [], []
        for d in range(len(order)):
            one_x, one_y = total.shape[d] == 1, y.shape[d] == 1
            (columns if one_x else rows if one_y else inner if done[d] else batch).append(d)
        s, r, k = ([total.shape[d] for d in group] for group in (batch, rows, inner))
        c = [y.shape[d] for d in columns]
        left = total.permute(batch + rows + inner + columns)
        left = left.reshape(math.prod(s), math.prod(r), math.prod(k))
        right = y.permute(batch + inner + columns + rows).reshape(
            math.prod(s), left.shape[2], math.prod(c)
        )
        total = torch.bmm(left, right).view(s + r + c + [1] * len(inner))
        now = batch + rows + columns + inner
        total = total.permute([now.index(d) for d in range(len(order))])
    gone = list(range(len(kept), len(order)))
    return total.sum(gone) if gone else total


# %% mistake: everything_by_everything
# You give all operands all dimensions, multiply, and sum at the end. The values are right. But the
# tensor in between has an element for every combination of all letters: for two matrices of 1,000
# rows that is 4 GB, where the operands have 4 MB each. Bring each pair to one `bmm`.
def einsum(equation, *operands):
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    laid, sizes, widest, right = [], {}, 0, len(terms) == len(operands)
    for term, x in zip(terms, operands):
        letters = term.replace("...", "", 1)
        hidden = x.dim() - len(letters)
        right = right and all(letter in string.ascii_letters for letter in letters)
        if not right or hidden < 0 or (hidden and letters == term):
            raise ValueError(term)
        widest = max(widest, hidden)
        dots = "".join(chr(9000 - i) for i in range(hidden, 0, -1))  # their own characters
        names, here = term.replace("...", dots, 1), {}
        for name, size in zip(names, x.shape):
            if here.setdefault(name, size) != size:
                raise ValueError(name)
        for name, size in here.items():
            while names.count(name) > 1:
                i, j = names.index(name), names.rindex(name)
                x = x.diagonal(0, i, j)
                names = names[:i] + names[i + 1 : j] + names[j + 1 :] + name
            if sizes.setdefault(name, size) == 1:
                sizes[name] = size
            elif size not in (1, sizes[name]):
                raise ValueError(name)
        laid.append((x, names))
    dots = "".join(chr(9000 - i) for i in range(widest, 0, -1))
    letters = inputs.replace(",", "").replace(".", "")
    kept = dots + "".join(sorted(name for name in letters if letters.count(name) == 1))
    if arrow:
        kept, named = output.replace("...", dots, 1), output.replace("...", "", 1)
        right = len(set(named)) == len(named) and all(name in letters for name in named)
    if not right:
        raise ValueError(equation)
    # Every operand gets every dimension, in one order: those of the output first.
    order = kept + "".join(name for name in sizes if name not in kept)
    aligned = []
    for x, names in laid:
        x = x.permute([names.index(name) for name in order if name in names])
        aligned.append(x[tuple(slice(None) if name in names else None for name in order)])
    total = aligned[0]
    for y in aligned[1:]:
        total = total * y
    gone = list(range(len(kept), len(order)))
    return total.sum(gone) if gone else total


# %% mistake: order_of_appearance
# Without `->` you keep the letters in the order in which they appear. The rule is alphabetical
# order: `ba` alone transposes.
def einsum(equation, *operands):
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    laid, sizes, widest, right = [], {}, 0, len(terms) == len(operands)
    for term, x in zip(terms, operands):
        letters = term.replace("...", "", 1)
        hidden = x.dim() - len(letters)
        right = right and all(letter in string.ascii_letters for letter in letters)
        if not right or hidden < 0 or (hidden and letters == term):
            raise ValueError(term)
        widest = max(widest, hidden)
        dots = "".join(chr(9000 - i) for i in range(hidden, 0, -1))  # their own characters
        names, here = term.replace("...", dots, 1), {}
        for name, size in zip(names, x.shape):
            if here.setdefault(name, size) != size:
                raise ValueError(name)
        for name, size in here.items():
            while names.count(name) > 1:
                i, j = names.index(name), names.rindex(name)
                x = x.diagonal(0, i, j)
                names = names[:i] + names[i + 1 : j] + names[j + 1 :] + name
            if sizes.setdefault(name, size) == 1:
                sizes[name] = size
            elif size not in (1, sizes[name]):
                raise ValueError(name)
        laid.append((x, names))
    dots = "".join(chr(9000 - i) for i in range(widest, 0, -1))
    letters = inputs.replace(",", "").replace(".", "")
    kept = dots + "".join(name for name in letters if letters.count(name) == 1)
    if arrow:
        kept, named = output.replace("...", dots, 1), output.replace("...", "", 1)
        right = len(set(named)) == len(named) and all(name in letters for name in named)
    if not right:
        raise ValueError(equation)
    # Every operand gets every dimension, in one order: those of the output first.
    order = kept + "".join(name for name in sizes if name not in kept)
    aligned = []
    for x, names in laid:
        x = x.permute([names.index(name) for name in order if name in names])
        aligned.append(x[tuple(slice(None) if name in names else None for name in order)])
    total = aligned[0]
    for number, y in enumerate(aligned[1:], 2):
        later = [all(z.shape[d] == 1 for z in aligned[number:]) for d in range(len(order))]
        done = [d >= len(kept) and free for d, free in enumerate(later)]
        alone = [d for d, end in enumerate(done) if end and 1 in (total.shape[d], y.shape[d])]
        if alone:
            total = total.sum(alone, keepdim=True)
            y = y.sum(alone, keepdim=True)
        batch, rows, columns, inner = [], [], [], []
        for d in range(len(order)):
            one_x, one_y = total.shape[d] == 1, y.shape[d] == 1
            (columns if one_x else rows if one_y else inner if done[d] else batch).append(d)
        s, r, k = ([total.shape[d] for d in group] for group in (batch, rows, inner))
        c = [y.shape[d] for d in columns]
        left = total.permute(batch + rows + inner + columns)
        left = left.reshape(math.prod(s), math.prod(r), math.prod(k))
        right = y.permute(batch + inner + columns + rows).reshape(
            math.prod(s), left.shape[2], math.prod(c)
        )
        total = torch.bmm(left, right).view(s + r + c + [1] * len(inner))
        now = batch + rows + columns + inner
        total = total.permute([now.index(d) for d in range(len(order))])
    gone = list(range(len(kept), len(order)))
    return total.sum(gone) if gone else total


# %% mistake: forgets_who_comes_later
# You sum over a letter as soon as two operands have it, without looking whether a later operand
# has it as well. It is needed until the last one has been multiplied.
def einsum(equation, *operands):
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    laid, sizes, widest, right = [], {}, 0, len(terms) == len(operands)
    for term, x in zip(terms, operands):
        letters = term.replace("...", "", 1)
        hidden = x.dim() - len(letters)
        right = right and all(letter in string.ascii_letters for letter in letters)
        if not right or hidden < 0 or (hidden and letters == term):
            raise ValueError(term)
        widest = max(widest, hidden)
        dots = "".join(chr(9000 - i) for i in range(hidden, 0, -1))  # their own characters
        names, here = term.replace("...", dots, 1), {}
        for name, size in zip(names, x.shape):
            if here.setdefault(name, size) != size:
                raise ValueError(name)
        for name, size in here.items():
            while names.count(name) > 1:
                i, j = names.index(name), names.rindex(name)
                x = x.diagonal(0, i, j)
                names = names[:i] + names[i + 1 : j] + names[j + 1 :] + name
            if sizes.setdefault(name, size) == 1:
                sizes[name] = size
            elif size not in (1, sizes[name]):
                raise ValueError(name)
        laid.append((x, names))
    dots = "".join(chr(9000 - i) for i in range(widest, 0, -1))
    letters = inputs.replace(",", "").replace(".", "")
    kept = dots + "".join(sorted(name for name in letters if letters.count(name) == 1))
    if arrow:
        kept, named = output.replace("...", dots, 1), output.replace("...", "", 1)
        right = len(set(named)) == len(named) and all(name in letters for name in named)
    if not right:
        raise ValueError(equation)
    # Every operand gets every dimension, in one order: those of the output first.
    order = kept + "".join(name for name in sizes if name not in kept)
    aligned = []
    for x, names in laid:
        x = x.permute([names.index(name) for name in order if name in names])
        aligned.append(x[tuple(slice(None) if name in names else None for name in order)])
    total = aligned[0]
    for number, y in enumerate(aligned[1:], 2):
        done = [d >= len(kept) for d in range(len(order))]
        alone = [d for d, end in enumerate(done) if end and 1 in (total.shape[d], y.shape[d])]
        if alone:
            total = total.sum(alone, keepdim=True)
            y = y.sum(alone, keepdim=True)
        batch, rows, columns, inner = [], [], [], []
        for d in range(len(order)):
            one_x, one_y = total.shape[d] == 1, y.shape[d] == 1
            (columns if one_x else rows if one_y else inner if done[d] else batch).append(d)
        s, r, k = ([total.shape[d] for d in group] for group in (batch, rows, inner))
        c = [y.shape[d] for d in columns]
        left = total.permute(batch + rows + inner + columns)
        left = left.reshape(math.prod(s), math.prod(r), math.prod(k))
        right = y.permute(batch + inner + columns + rows).reshape(
            math.prod(s), left.shape[2], math.prod(c)
        )
        total = torch.bmm(left, right).view(s + r + c + [1] * len(inner))
        now = batch + rows + columns + inner
        total = total.permute([now.index(d) for d in range(len(order))])
    gone = list(range(len(kept), len(order)))
    return total.sum(gone) if gone else total


# %% mistake: ones_do_not_fit
# You refuse a size of 1 where another operand has more. In PyTorch's `einsum` a 1 broadcasts.
def einsum(equation, *operands):
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    laid, sizes, widest, right = [], {}, 0, len(terms) == len(operands)
    for term, x in zip(terms, operands):
        letters = term.replace("...", "", 1)
        hidden = x.dim() - len(letters)
        right = right and all(letter in string.ascii_letters for letter in letters)
        if not right or hidden < 0 or (hidden and letters == term):
            raise ValueError(term)
        widest = max(widest, hidden)
        dots = "".join(chr(9000 - i) for i in range(hidden, 0, -1))  # their own characters
        names, here = term.replace("...", dots, 1), {}
        for name, size in zip(names, x.shape):
            if here.setdefault(name, size) != size:
                raise ValueError(name)
        for name, size in here.items():
            while names.count(name) > 1:
                i, j = names.index(name), names.rindex(name)
                x = x.diagonal(0, i, j)
                names = names[:i] + names[i + 1 : j] + names[j + 1 :] + name
            if sizes.setdefault(name, size) != size:
                raise ValueError(name)
        laid.append((x, names))
    dots = "".join(chr(9000 - i) for i in range(widest, 0, -1))
    letters = inputs.replace(",", "").replace(".", "")
    kept = dots + "".join(sorted(name for name in letters if letters.count(name) == 1))
    if arrow:
        kept, named = output.replace("...", dots, 1), output.replace("...", "", 1)
        right = len(set(named)) == len(named) and all(name in letters for name in named)
    if not right:
        raise ValueError(equation)
    # Every operand gets every dimension, in one order: those of the output first.
    order = kept + "".join(name for name in sizes if name not in kept)
    aligned = []
    for x, names in laid:
        x = x.permute([names.index(name) for name in order if name in names])
        aligned.append(x[tuple(slice(None) if name in names else None for name in order)])
    total = aligned[0]
    for number, y in enumerate(aligned[1:], 2):
        later = [all(z.shape[d] == 1 for z in aligned[number:]) for d in range(len(order))]
        done = [d >= len(kept) and free for d, free in enumerate(later)]
        alone = [d for d, end in enumerate(done) if end and 1 in (total.shape[d], y.shape[d])]
        if alone:
            total = total.sum(alone, keepdim=True)
            y = y.sum(alone, keepdim=True)
        batch, rows, columns, inner = [], [], [], []
        for d in range(len(order)):
            one_x, one_y = total.shape[d] == 1, y.shape[d] == 1
            (columns if one_x else rows if one_y else inner if done[d] else batch).append(d)
        s, r, k = ([total.shape[d] for d in group] for group in (batch, rows, inner))
        c = [y.shape[d] for d in columns]
        left = total.permute(batch + rows + inner + columns)
        left = left.reshape(math.prod(s), math.prod(r), math.prod(k))
        right = y.permute(batch + inner + columns + rows).reshape(
            math.prod(s), left.shape[2], math.prod(c)
        )
        total = torch.bmm(left, right).view(s + r + c + [1] * len(inner))
        now = batch + rows + columns + inner
        total = total.permute([now.index(d) for d in range(len(order))])
    gone = list(range(len(kept), len(order)))
    return total.sum(gone) if gone else total


# %% mistake: dots_on_the_left
# You align the dimensions behind `...` on the left. They broadcast as always: aligned on the right,
# so that the last ones of all operands belong together.
def einsum(equation, *operands):
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    laid, sizes, widest, right = [], {}, 0, len(terms) == len(operands)
    for term, x in zip(terms, operands):
        letters = term.replace("...", "", 1)
        hidden = x.dim() - len(letters)
        right = right and all(letter in string.ascii_letters for letter in letters)
        if not right or hidden < 0 or (hidden and letters == term):
            raise ValueError(term)
        widest = max(widest, hidden)
        dots = "".join(chr(9000 + i) for i in range(hidden))  # their own characters
        names, here = term.replace("...", dots, 1), {}
        for name, size in zip(names, x.shape):
            if here.setdefault(name, size) != size:
                raise ValueError(name)
        for name, size in here.items():
            while names.count(name) > 1:
                i, j = names.index(name), names.rindex(name)
                x = x.diagonal(0, i, j)
                names = names[:i] + names[i + 1 : j] + names[j + 1 :] + name
            if sizes.setdefault(name, size) == 1:
                sizes[name] = size
            elif size not in (1, sizes[name]):
                raise ValueError(name)
        laid.append((x, names))
    dots = "".join(chr(9000 + i) for i in range(widest))
    letters = inputs.replace(",", "").replace(".", "")
    kept = dots + "".join(sorted(name for name in letters if letters.count(name) == 1))
    if arrow:
        kept, named = output.replace("...", dots, 1), output.replace("...", "", 1)
        right = len(set(named)) == len(named) and all(name in letters for name in named)
    if not right:
        raise ValueError(equation)
    # Every operand gets every dimension, in one order: those of the output first.
    order = kept + "".join(name for name in sizes if name not in kept)
    aligned = []
    for x, names in laid:
        x = x.permute([names.index(name) for name in order if name in names])
        aligned.append(x[tuple(slice(None) if name in names else None for name in order)])
    total = aligned[0]
    for number, y in enumerate(aligned[1:], 2):
        later = [all(z.shape[d] == 1 for z in aligned[number:]) for d in range(len(order))]
        done = [d >= len(kept) and free for d, free in enumerate(later)]
        alone = [d for d, end in enumerate(done) if end and 1 in (total.shape[d], y.shape[d])]
        if alone:
            total = total.sum(alone, keepdim=True)
            y = y.sum(alone, keepdim=True)
        batch, rows, columns, inner = [], [], [], []
        for d in range(len(order)):
            one_x, one_y = total.shape[d] == 1, y.shape[d] == 1
            (columns if one_x else rows if one_y else inner if done[d] else batch).append(d)
        s, r, k = ([total.shape[d] for d in group] for group in (batch, rows, inner))
        c = [y.shape[d] for d in columns]
        left = total.permute(batch + rows + inner + columns)
        left = left.reshape(math.prod(s), math.prod(r), math.prod(k))
        right = y.permute(batch + inner + columns + rows).reshape(
            math.prod(s), left.shape[2], math.prod(c)
        )
        total = torch.bmm(left, right).view(s + r + c + [1] * len(inner))
        now = batch + rows + columns + inner
        total = total.permute([now.index(d) for d in range(len(order))])
    gone = list(range(len(kept), len(order)))
    return total.sum(gone) if gone else total


# %% mistake: dots_are_kept
# You keep the dimensions behind `...` although the equation has a `->` and no `...` behind it. Like
# a letter that the output does not name, they are summed over.
def einsum(equation, *operands):
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    laid, sizes, widest, right = [], {}, 0, len(terms) == len(operands)
    for term, x in zip(terms, operands):
        letters = term.replace("...", "", 1)
        hidden = x.dim() - len(letters)
        right = right and all(letter in string.ascii_letters for letter in letters)
        if not right or hidden < 0 or (hidden and letters == term):
            raise ValueError(term)
        widest = max(widest, hidden)
        dots = "".join(chr(9000 - i) for i in range(hidden, 0, -1))  # their own characters
        names, here = term.replace("...", dots, 1), {}
        for name, size in zip(names, x.shape):
            if here.setdefault(name, size) != size:
                raise ValueError(name)
        for name, size in here.items():
            while names.count(name) > 1:
                i, j = names.index(name), names.rindex(name)
                x = x.diagonal(0, i, j)
                names = names[:i] + names[i + 1 : j] + names[j + 1 :] + name
            if sizes.setdefault(name, size) == 1:
                sizes[name] = size
            elif size not in (1, sizes[name]):
                raise ValueError(name)
        laid.append((x, names))
    dots = "".join(chr(9000 - i) for i in range(widest, 0, -1))
    letters = inputs.replace(",", "").replace(".", "")
    kept = dots + "".join(sorted(name for name in letters if letters.count(name) == 1))
    if arrow:
        output = output if "..." in output else "..." + output
        kept, named = output.replace("...", dots, 1), output.replace("...", "", 1)
        right = len(set(named)) == len(named) and all(name in letters for name in named)
    if not right:
        raise ValueError(equation)
    # Every operand gets every dimension, in one order: those of the output first.
    order = kept + "".join(name for name in sizes if name not in kept)
    aligned = []
    for x, names in laid:
        x = x.permute([names.index(name) for name in order if name in names])
        aligned.append(x[tuple(slice(None) if name in names else None for name in order)])
    total = aligned[0]
    for number, y in enumerate(aligned[1:], 2):
        later = [all(z.shape[d] == 1 for z in aligned[number:]) for d in range(len(order))]
        done = [d >= len(kept) and free for d, free in enumerate(later)]
        alone = [d for d, end in enumerate(done) if end and 1 in (total.shape[d], y.shape[d])]
        if alone:
            total = total.sum(alone, keepdim=True)
            y = y.sum(alone, keepdim=True)
        batch, rows, columns, inner = [], [], [], []
        for d in range(len(order)):
            one_x, one_y = total.shape[d] == 1, y.shape[d] == 1
            (columns if one_x else rows if one_y else inner if done[d] else batch).append(d)
        s, r, k = ([total.shape[d] for d in group] for group in (batch, rows, inner))
        c = [y.shape[d] for d in columns]
        left = total.permute(batch + rows + inner + columns)
        left = left.reshape(math.prod(s), math.prod(r), math.prod(k))
        right = y.permute(batch + inner + columns + rows).reshape(
            math.prod(s), left.shape[2], math.prod(c)
        )
        total = torch.bmm(left, right).view(s + r + c + [1] * len(inner))
        now = batch + rows + columns + inner
        total = total.permute([now.index(d) for d in range(len(order))])
    gone = list(range(len(kept), len(order)))
    return total.sum(gone) if gone else total


# %% mistake: anything_is_a_letter
# You accept any character for a letter. The letters of `einsum` are `a` to `z` and `A` to `Z`. A
# digit, a `-` or a lone `.` is most likely a slip of the pen, and must be told to its author.
def einsum(equation, *operands):
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    laid, sizes, widest, right = [], {}, 0, len(terms) == len(operands)
    for term, x in zip(terms, operands):
        letters = term.replace("...", "", 1)
        hidden = x.dim() - len(letters)
        if not right or hidden < 0 or (hidden and letters == term):
            raise ValueError(term)
        widest = max(widest, hidden)
        dots = "".join(chr(9000 - i) for i in range(hidden, 0, -1))  # their own characters
        names, here = term.replace("...", dots, 1), {}
        for name, size in zip(names, x.shape):
            if here.setdefault(name, size) != size:
                raise ValueError(name)
        for name, size in here.items():
            while names.count(name) > 1:
                i, j = names.index(name), names.rindex(name)
                x = x.diagonal(0, i, j)
                names = names[:i] + names[i + 1 : j] + names[j + 1 :] + name
            if sizes.setdefault(name, size) == 1:
                sizes[name] = size
            elif size not in (1, sizes[name]):
                raise ValueError(name)
        laid.append((x, names))
    dots = "".join(chr(9000 - i) for i in range(widest, 0, -1))
    letters = inputs.replace(",", "").replace(".", "")
    kept = dots + "".join(sorted(name for name in letters if letters.count(name) == 1))
    if arrow:
        kept, named = output.replace("...", dots, 1), output.replace("...", "", 1)
        right = len(set(named)) == len(named) and all(name in letters for name in named)
    if not right:
        raise ValueError(equation)
    # Every operand gets every dimension, in one order: those of the output first.
    order = kept + "".join(name for name in sizes if name not in kept)
    aligned = []
    for x, names in laid:
        x = x.permute([names.index(name) for name in order if name in names])
        aligned.append(x[tuple(slice(None) if name in names else None for name in order)])
    total = aligned[0]
    for number, y in enumerate(aligned[1:], 2):
        later = [all(z.shape[d] == 1 for z in aligned[number:]) for d in range(len(order))]
        done = [d >= len(kept) and free for d, free in enumerate(later)]
        alone = [d for d, end in enumerate(done) if end and 1 in (total.shape[d], y.shape[d])]
        if alone:
            total = total.sum(alone, keepdim=True)
            y = y.sum(alone, keepdim=True)
        batch, rows, columns, inner = [], [], [], []
        for d in range(len(order)):
            one_x, one_y = total.shape[d] == 1, y.shape[d] == 1
            (columns if one_x else rows if one_y else inner if done[d] else batch).append(d)
        s, r, k = ([total.shape[d] for d in group] for group in (batch, rows, inner))
        c = [y.shape[d] for d in columns]
        left = total.permute(batch + rows + inner + columns)
        left = left.reshape(math.prod(s), math.prod(r), math.prod(k))
        right = y.permute(batch + inner + columns + rows).reshape(
            math.prod(s), left.shape[2], math.prod(c)
        )
        total = torch.bmm(left, right).view(s + r + c + [1] * len(inner))
        now = batch + rows + columns + inner
        total = total.permute([now.index(d) for d in range(len(order))])
    gone = list(range(len(kept), len(order)))
    return total.sum(gone) if gone else total


# %% mistake: minus_one_of_nothing
# `reshape` with a `-1` works out that size by division. Where a tensor is empty there is nothing to
# divide by, and it raises. Compute every size.
def einsum(equation, *operands):
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    laid, sizes, widest, right = [], {}, 0, len(terms) == len(operands)
    for term, x in zip(terms, operands):
        letters = term.replace("...", "", 1)
        hidden = x.dim() - len(letters)
        right = right and all(letter in string.ascii_letters for letter in letters)
        if not right or hidden < 0 or (hidden and letters == term):
            raise ValueError(term)
        widest = max(widest, hidden)
        dots = "".join(chr(9000 - i) for i in range(hidden, 0, -1))  # their own characters
        names, here = term.replace("...", dots, 1), {}
        for name, size in zip(names, x.shape):
            if here.setdefault(name, size) != size:
                raise ValueError(name)
        for name, size in here.items():
            while names.count(name) > 1:
                i, j = names.index(name), names.rindex(name)
                x = x.diagonal(0, i, j)
                names = names[:i] + names[i + 1 : j] + names[j + 1 :] + name
            if sizes.setdefault(name, size) == 1:
                sizes[name] = size
            elif size not in (1, sizes[name]):
                raise ValueError(name)
        laid.append((x, names))
    dots = "".join(chr(9000 - i) for i in range(widest, 0, -1))
    letters = inputs.replace(",", "").replace(".", "")
    kept = dots + "".join(sorted(name for name in letters if letters.count(name) == 1))
    if arrow:
        kept, named = output.replace("...", dots, 1), output.replace("...", "", 1)
        right = len(set(named)) == len(named) and all(name in letters for name in named)
    if not right:
        raise ValueError(equation)
    # Every operand gets every dimension, in one order: those of the output first.
    order = kept + "".join(name for name in sizes if name not in kept)
    aligned = []
    for x, names in laid:
        x = x.permute([names.index(name) for name in order if name in names])
        aligned.append(x[tuple(slice(None) if name in names else None for name in order)])
    total = aligned[0]
    for number, y in enumerate(aligned[1:], 2):
        later = [all(z.shape[d] == 1 for z in aligned[number:]) for d in range(len(order))]
        done = [d >= len(kept) and free for d, free in enumerate(later)]
        alone = [d for d, end in enumerate(done) if end and 1 in (total.shape[d], y.shape[d])]
        if alone:
            total = total.sum(alone, keepdim=True)
            y = y.sum(alone, keepdim=True)
        batch, rows, columns, inner = [], [], [], []
        for d in range(len(order)):
            one_x, one_y = total.shape[d] == 1, y.shape[d] == 1
            (columns if one_x else rows if one_y else inner if done[d] else batch).append(d)
        s, r, k = ([total.shape[d] for d in group] for group in (batch, rows, inner))
        c = [y.shape[d] for d in columns]
        left = total.permute(batch + rows + inner + columns)
        left = left.reshape(math.prod(s), -1, math.prod(k))
        right = y.permute(batch + inner + columns + rows).reshape(math.prod(s), left.shape[2], -1)
        total = torch.bmm(left, right).view(s + r + c + [1] * len(inner))
        now = batch + rows + columns + inner
        total = total.permute([now.index(d) for d in range(len(order))])
    gone = list(range(len(kept), len(order)))
    return total.sum(gone) if gone else total


# %% alternate: one_order_for_all
# As PyTorch does it: every operand gets every dimension, sizes of 1 where it has none.
def einsum(equation, *operands):
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    laid, sizes, widest, right = [], {}, 0, len(terms) == len(operands)
    for term, x in zip(terms, operands):
        letters = term.replace("...", "", 1)
        hidden = x.dim() - len(letters)
        right = right and all(letter in string.ascii_letters for letter in letters)
        if not right or hidden < 0 or (hidden and letters == term):
            raise ValueError(term)
        widest = max(widest, hidden)
        dots = "".join(chr(9000 - i) for i in range(hidden, 0, -1))  # their own characters
        names, here = term.replace("...", dots, 1), {}
        for name, size in zip(names, x.shape):
            if here.setdefault(name, size) != size:
                raise ValueError(name)
        for name, size in here.items():
            while names.count(name) > 1:
                i, j = names.index(name), names.rindex(name)
                x = x.diagonal(0, i, j)
                names = names[:i] + names[i + 1 : j] + names[j + 1 :] + name
            if sizes.setdefault(name, size) == 1:
                sizes[name] = size
            elif size not in (1, sizes[name]):
                raise ValueError(name)
        laid.append((x, names))
    dots = "".join(chr(9000 - i) for i in range(widest, 0, -1))
    letters = inputs.replace(",", "").replace(".", "")
    kept = dots + "".join(sorted(name for name in letters if letters.count(name) == 1))
    if arrow:
        kept, named = output.replace("...", dots, 1), output.replace("...", "", 1)
        right = len(set(named)) == len(named) and all(name in letters for name in named)
    if not right:
        raise ValueError(equation)
    # Every operand gets every dimension, in one order: those of the output first.
    order = kept + "".join(name for name in sizes if name not in kept)
    aligned = []
    for x, names in laid:
        x = x.permute([names.index(name) for name in order if name in names])
        aligned.append(x[tuple(slice(None) if name in names else None for name in order)])
    total = aligned[0]
    for number, y in enumerate(aligned[1:], 2):
        later = [all(z.shape[d] == 1 for z in aligned[number:]) for d in range(len(order))]
        done = [d >= len(kept) and free for d, free in enumerate(later)]
        alone = [d for d, end in enumerate(done) if end and 1 in (total.shape[d], y.shape[d])]
        if alone:
            total = total.sum(alone, keepdim=True)
            y = y.sum(alone, keepdim=True)
        batch, rows, columns, inner = [], [], [], []
        for d in range(len(order)):
            one_x, one_y = total.shape[d] == 1, y.shape[d] == 1
            (columns if one_x else rows if one_y else inner if done[d] else batch).append(d)
        s, r, k = ([total.shape[d] for d in group] for group in (batch, rows, inner))
        c = [y.shape[d] for d in columns]
        left = total.permute(batch + rows + inner + columns)
        left = left.reshape(math.prod(s), math.prod(r), math.prod(k))
        right = y.permute(batch + inner + columns + rows).reshape(
            math.prod(s), left.shape[2], math.prod(c)
        )
        total = torch.bmm(left, right).view(s + r + c + [1] * len(inner))
        now = batch + rows + columns + inner
        total = total.permute([now.index(d) for d in range(len(order))])
    gone = list(range(len(kept), len(order)))
    return total.sum(gone) if gone else total


# %% alternate: by_strides
# A repeated letter adds its strides, a size of 1 has none: as_strided makes every view at once.
def einsum(equation, *operands):
    inputs, *rest = equation.replace(" ", "").split("->")
    terms, sizes, strides, widest = inputs.split(","), {}, [], 0
    if len(rest) > 1 or len(terms) != len(operands):
        raise ValueError(equation)

    def named(term, hidden):
        head, _, tail = term.partition("...")
        if not all(letter.isascii() and letter.isalpha() for letter in head + tail):
            raise ValueError(term)
        return [*head, *(range(-hidden, 0) if "..." in term else ()), *tail]

    def viewed(x, steps, names):
        step = [steps.get(name, 0) for name in names]
        return x.as_strided([sizes[name] for name in names], step, x.storage_offset())

    def shrunk(x, steps, wanted):
        x = viewed(x, steps, list(steps))
        gone = [d for d, name in enumerate(steps) if name not in wanted]
        x = x.sum(gone) if gone else x
        return x, dict(zip((name for name in steps if name in wanted), x.stride()))

    def elements(names):
        return math.prod(sizes[name] for name in names)

    for term, x in zip(terms, operands):
        hidden = x.dim() - len(term.replace("...", "", 1))
        if hidden < 0 or (hidden and "..." not in term):
            raise ValueError(term)
        widest, steps, seen = max(widest, hidden), {}, {}
        for name, size, step in zip(named(term, hidden), x.shape, x.stride()):
            if seen.setdefault(name, size) != size:
                raise ValueError(name)
            steps[name] = steps.get(name, 0) + step
        for name, size in seen.items():
            if size == 1:
                del steps[name]
            if sizes.get(name, 1) != size and 1 not in (size, sizes.get(name, 1)):
                raise ValueError(name)
            sizes[name] = sizes.get(name, 1) if size == 1 else size
        strides.append(steps)
    if rest:
        out = named(rest[0], widest)
    else:
        once = [letter for letter in inputs if inputs.count(letter) == 1]
        out = [*range(-widest, 0), *sorted(set(once) - {",", "."})]
    if len(set(out)) != len(out) or not set(out) <= sizes.keys():
        raise ValueError(equation)

    (x, *others), (steps, *more) = operands, strides
    for number, (y, theirs) in enumerate(zip(others, more), 1):
        later = set(out).union(*more[number:])
        x, steps = shrunk(x, steps, later | theirs.keys())
        y, theirs = shrunk(y, theirs, later | steps.keys())
        both = steps.keys() & theirs.keys()
        batch, inner = sorted(both & later, key=str), sorted(both - later, key=str)
        rows, columns = [n for n in steps if n not in both], [n for n in theirs if n not in both]
        left = viewed(x, steps, batch + rows + inner)
        right = viewed(y, theirs, batch + inner + columns)
        left = left.reshape(elements(batch), elements(rows), elements(inner))
        right = right.reshape(elements(batch), elements(inner), elements(columns))
        names = batch + rows + columns
        x = torch.matmul(left, right).view([sizes[name] for name in names])
        steps = dict(zip(names, x.stride()))
    x, steps = shrunk(x, steps, set(out))
    return viewed(x, steps, out)
