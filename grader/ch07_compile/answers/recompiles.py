# %% blocked: compiles
# You let Dynamo compile and count. Predict it from the rules.
def recompiles(calls, dynamic):
    torch._dynamo.reset()
    graphs, answers = [], []

    def f(x, flag, scale):
        return x * scale if flag else x.cos() * scale

    compiled = torch.compile(f, backend=lambda g, i: graphs.append(1) or g, dynamic=dynamic)
    for call in calls:
        before = len(graphs)
        x = torch.zeros(call["shape"], dtype=getattr(torch, call["dtype"]))
        with torch.set_grad_enabled(call["grad_mode"]):
            compiled(x.requires_grad_(call["requires_grad"]), call["flag"], call["scale"])
        answers.append(len(graphs) > before)
    return answers


# %% mistake: compares_with_the_last
# You compare a call with the one before it. Old graphs are kept: a call that is like any earlier one
# finds that one's graph.
def recompiles(calls, dynamic):
    last, answers = None, []
    for call in calls:
        answers.append(call != last)
        last = call
    return answers


# %% mistake: never_dynamic
# You treat every size and scale as a condition. That is `dynamic=False`. By default Dynamo makes
# dynamic what it has seen change.
def recompiles(calls, dynamic):
    seen, answers = [], []
    for call in calls:
        answers.append(call not in seen and len(seen) < 8)
        if answers[-1]:
            seen.append(call)
    return answers


# %% mistake: zero_and_one_are_numbers
# You let a dynamic size take 0 and 1. They are special: a size of 1 is broadcast, a size of 0 leaves
# nothing to compute, and each has graphs of its own.
def recompiles(calls, dynamic):
    seen, graphs, answers = [], [], []
    for call in calls:
        fixed = [call["dtype"], call["requires_grad"], call["grad_mode"], call["flag"]]
        learned = [*call["shape"], call["scale"]]
        seen.append((fixed, learned))
        found = any(
            conditions == fixed
            and all(
                value == want if want is not None else place == 2 or value not in ()
                for place, (value, want) in enumerate(zip(learned, wanted))
            )
            for conditions, wanted in graphs
        )
        answers.append(not found and len(graphs) < 8)
        if answers[-1]:
            others = [other for facts, other in seen]
            changed = [
                any(other[place] != learned[place] for other in others)
                and dynamic is None
                and (place == 2 or learned[place] not in ())
                for place in range(3)
            ]
            graphs.append((fixed, [None if c else v for c, v in zip(changed, learned)]))
    return answers


# %% mistake: one_alone
# You made 1 special, and forgot 0. A tensor without elements has graphs of its own as well.
def recompiles(calls, dynamic):
    seen, graphs, answers = [], [], []
    for call in calls:
        fixed = [call["dtype"], call["requires_grad"], call["grad_mode"], call["flag"]]
        learned = [*call["shape"], call["scale"]]
        seen.append((fixed, learned))
        found = any(
            conditions == fixed
            and all(
                value == want if want is not None else place == 2 or value not in (1,)
                for place, (value, want) in enumerate(zip(learned, wanted))
            )
            for conditions, wanted in graphs
        )
        answers.append(not found and len(graphs) < 8)
        if answers[-1]:
            others = [other for facts, other in seen]
            changed = [
                any(other[place] != learned[place] for other in others)
                and dynamic is None
                and (place == 2 or learned[place] not in (1,))
                for place in range(3)
            ]
            graphs.append((fixed, [None if c else v for c, v in zip(changed, learned)]))
    return answers


# %% mistake: no_limit
# You count graphs without end. After eight, Dynamo gives up on the function: what fits no graph runs
# as ordinary Python, and nothing compiles.
def recompiles(calls, dynamic):
    seen, graphs, answers = [], [], []
    for call in calls:
        fixed = [call["dtype"], call["requires_grad"], call["grad_mode"], call["flag"]]
        learned = [*call["shape"], call["scale"]]
        seen.append((fixed, learned))
        found = any(
            conditions == fixed
            and all(
                value == want if want is not None else place == 2 or value not in (0, 1)
                for place, (value, want) in enumerate(zip(learned, wanted))
            )
            for conditions, wanted in graphs
        )
        answers.append(not found)
        if answers[-1]:
            others = [other for facts, other in seen]
            changed = [
                any(other[place] != learned[place] for other in others)
                and dynamic is None
                and (place == 2 or learned[place] not in (0, 1))
                for place in range(3)
            ]
            graphs.append((fixed, [None if c else v for c, v in zip(changed, learned)]))
    return answers


# %% mistake: dynamic_at_once
# You made every size dynamic from the first graph on. That is `dynamic=True`. By default the first
# graph is for the sizes it saw, and a size becomes dynamic when it was seen to change.
def recompiles(calls, dynamic):
    seen, graphs, answers = [], [], []
    for call in calls:
        fixed = [call["dtype"], call["requires_grad"], call["grad_mode"], call["flag"]]
        learned = [*call["shape"], call["scale"]]
        seen.append((fixed, learned))
        found = any(
            conditions == fixed
            and all(
                value == want if want is not None else place == 2 or value not in (0, 1)
                for place, (value, want) in enumerate(zip(learned, wanted))
            )
            for conditions, wanted in graphs
        )
        answers.append(not found and len(graphs) < 8)
        if answers[-1]:
            changed = [
                True and dynamic is None and (place == 2 or learned[place] not in (0, 1))
                for place in range(3)
            ]
            graphs.append((fixed, [None if c else v for c, v in zip(changed, learned)]))
    return answers


# %% mistake: learns_for_each_dtype
# You learned apart for each kind of call. Dynamo remembers sizes by argument: a size that was another
# in a call of another dtype, or another flag, counts as changed too.
def recompiles(calls, dynamic):
    seen, graphs, answers = [], [], []
    for call in calls:
        fixed = [call["dtype"], call["requires_grad"], call["grad_mode"], call["flag"]]
        learned = [*call["shape"], call["scale"]]
        seen.append((fixed, learned))
        found = any(
            conditions == fixed
            and all(
                value == want if want is not None else place == 2 or value not in (0, 1)
                for place, (value, want) in enumerate(zip(learned, wanted))
            )
            for conditions, wanted in graphs
        )
        answers.append(not found and len(graphs) < 8)
        if answers[-1]:
            others = [other for facts, other in seen if facts == fixed]
            changed = [
                any(other[place] != learned[place] for other in others)
                and dynamic is None
                and (place == 2 or learned[place] not in (0, 1))
                for place in range(3)
            ]
            graphs.append((fixed, [None if c else v for c, v in zip(changed, learned)]))
    return answers


# %% mistake: forgets_grad_mode
# You left grad mode out. Under `no_grad` another program runs than outside: nothing is recorded for
# backward. It is guarded, once for the whole call.
def recompiles(calls, dynamic):
    seen, graphs, answers = [], [], []
    for call in calls:
        fixed = [call["dtype"], call["requires_grad"], True, call["flag"]]
        learned = [*call["shape"], call["scale"]]
        seen.append((fixed, learned))
        found = any(
            conditions == fixed
            and all(
                value == want if want is not None else place == 2 or value not in (0, 1)
                for place, (value, want) in enumerate(zip(learned, wanted))
            )
            for conditions, wanted in graphs
        )
        answers.append(not found and len(graphs) < 8)
        if answers[-1]:
            others = [other for facts, other in seen]
            changed = [
                any(other[place] != learned[place] for other in others)
                and dynamic is None
                and (place == 2 or learned[place] not in (0, 1))
                for place in range(3)
            ]
            graphs.append((fixed, [None if c else v for c, v in zip(changed, learned)]))
    return answers


# %% mistake: all_sizes_together
# You made both sizes dynamic when one of them changed. Each size is learned for itself: rows that
# vary say nothing of columns.
def recompiles(calls, dynamic):
    seen, graphs, answers = [], [], []
    for call in calls:
        fixed = [call["dtype"], call["requires_grad"], call["grad_mode"], call["flag"]]
        shape, scale = list(call["shape"]), call["scale"]
        seen.append((shape, scale))
        found = any(
            conditions == fixed
            and all(a == b or (b is None and a > 1) for a, b in zip(shape, sizes))
            and want in (None, scale)
            for conditions, sizes, want in graphs
        )
        answers.append(not found and len(graphs) < 8)
        if answers[-1]:
            learns = dynamic is None
            sizes = learns and any(other != shape for other, _ in seen)
            scales = learns and any(other != scale for _, other in seen)
            kept = [None if sizes and size > 1 else size for size in shape]
            graphs.append((fixed, kept, None if scales else scale))
    return answers


# %% alternate: as_text
# Each graph is a pattern of texts, in which a star stands for what is dynamic.
def recompiles(calls, dynamic):
    def words(call, star=()):
        fixed = [str(call[key]) for key in ("dtype", "requires_grad", "grad_mode", "flag")]
        for place, size in enumerate(call["shape"]):
            fixed.append("*" if place in star and size > 1 else str(size))
        return [*fixed, "*" if 2 in star else repr(call["scale"])]

    patterns, answers = [], []
    for number, call in enumerate(calls):
        ways = [
            words(call, star) for star in [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
        ]
        known = any(way in patterns for way in ways)
        answers.append(not known and len(patterns) < 8)
        if answers[-1]:
            facts = [(*c["shape"], c["scale"]) for c in calls[: number + 1]]
            star = [p for p in range(3) if len({fact[p] for fact in facts}) > 1]
            patterns.append(words(call, star if dynamic is None else ()))
    return answers


# %% alternate: graphs_as_functions
# Each graph is a function that says whether it takes a call.
def recompiles(calls, dynamic):
    graphs, result, history = [], [], {"rows": set(), "columns": set(), "scale": set()}

    def facts(call):
        rows, columns = call["shape"]
        return {**call, "rows": rows, "columns": columns, "shape": None}

    def graph_for(call):
        checks = []
        for key, value in facts(call).items():
            varies = dynamic is not False and len(history.get(key, ())) > 1
            if varies and key == "scale":
                continue
            if varies and value >= 2:
                checks.append(lambda other, key=key: other[key] >= 2)
            else:
                checks.append(lambda other, key=key, value=value: other[key] == value)
        return lambda other: all(check(other) for check in checks)

    for call in map(facts, calls):
        for key, values in history.items():
            values.add(call[key])
        if any(graph(call) for graph in graphs) or len(graphs) >= 8:
            result.append(False)
            continue
        rows_columns = dict(call, shape=[call["rows"], call["columns"]])
        graphs.append(graph_for(rows_columns))
        result.append(True)
    return result
