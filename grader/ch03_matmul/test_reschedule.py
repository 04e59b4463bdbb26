"""Checks of `reschedule`: the loops that come out are run, and every visit is noted."""

from itertools import product

from grader import (
    Mismatch,
    about,
    assert_equal,
    assert_holds,
    compared,
    gate,
    points,
    python_random,
)
from grader.ch03_matmul.schedules import (
    any_nests,
    any_steps,
    called,
    nest_of,
    scheduled,
    too_early,
)

TILES = ("reorder", "io", "jo", "ii", "ji")


def compare(rescheduled, *cases, in_order=True):
    """Run what each nest and its lists of steps give; compare visits and loops. Return what was found."""
    found = []
    for nest, *rounds in cases:
        found.append(rescheduled.ask(nest, rounds).value)
    compared(
        [{key: one.get(key) for key in ("problem", "loops", "visits", "lanes")} for one in found]
    )
    for (nest, *rounds), one in zip(cases, found, strict=True):
        judge(nest, rounds, one, in_order)
    return found


def judge(nest, rounds, found, in_order):
    """Fail unless the nest visits what it should, in that order, by loops of those names and extents."""
    rows = [("call", called(nest, *rounds))]
    if found["problem"]:
        raise Mismatch(found["problem"], tuple(rows))
    steps = [step for one_round in rounds for step in one_round]
    loops, expected = scheduled(nest, steps)
    ours, theirs = flat(expected), flat(found["visits"])
    if sorted(ours) != sorted(theirs):
        rows += wrong_visits(ours, theirs)
        raise Mismatch("The new nest does not visit what the given one visits.", tuple(rows))
    lanes = steps[-1][1] if steps and steps[-1][0] == "vectorize" else None
    with about(*rows):
        assert_equal(found["lanes"], lanes, '"lanes" is not the loop that was vectorized.')
    if in_order and ours != theirs:
        rows += first_difference(ours, theirs)
        raise Mismatch("The visits do not come in the order that the steps ask for.", tuple(rows))
    got = [tuple(loop) for loop in found["loops"]]
    if not in_order:
        loops, got = sorted(loops), sorted(got)
    if loops != got:
        rows += [("expected loops", str(loops)), ("got", str(got))]
        raise Mismatch("The loops are not those that the steps ask for.", tuple(rows))


def flat(visits):
    """Return the index tuples of all steps, one after the other."""
    return [tuple(point) for together in visits for point in together]


def wrong_visits(ours, theirs):
    """Return rows that say which index tuples are missing, too many, or there twice."""
    once = set(theirs)
    kinds = {
        "missing": [point for point in ours if point not in once],
        "not in the given nest": sorted(once - set(ours)),
        "more than once": sorted(point for point in once if theirs.count(point) > 1),
    }
    return [(name, some(points)) for name, points in kinds.items() if points]


def some(points):
    """Return up to eight index tuples as text, and how many there are."""
    more = f", … ({len(points)} in all)" if len(points) > 8 else ""
    return ", ".join(map(str, points[:8])) + more


def first_difference(ours, theirs):
    """Return rows with both orders up to a little behind the place where they part."""
    pairs = enumerate(zip(ours, theirs, strict=False))
    at = next((place for place, (one, two) in pairs if one != two), min(len(ours), len(theirs)))
    start, end = max(at - 4, 0), at + 4
    where = f"visits {start} to {min(end, len(ours)) - 1}" if start else "the first visits"
    return [
        (f"expected, {where}", ", ".join(map(str, ours[start:end]))),
        ("got", ", ".join(map(str, theirs[start:end]))),
    ]


@gate
def test_nest(rescheduled):
    """Without a step there is a nest that visits the same; its five keys are there."""
    compare(rescheduled, (nest_of(i=3), []), (nest_of(i=2, j=3), []))


def test_reorder(rescheduled):
    """`reorder`: the loops named change places, the others stay where they are."""
    two, three, four = nest_of(i=2, j=3), nest_of(i=2, j=3, k=2), nest_of(i=2, j=2, k=3, h=2)
    compare(
        rescheduled,
        (two, [("reorder", "j", "i")]),
        (three, [("reorder", "k", "i", "j")]),
        (three, [("reorder", "k", "i")]),
        (three, [("reorder", "k", "j")]),
        (four, [("reorder", "h", "j")]),
        (four, [("reorder", "k", "h", "i")]),
    )


def test_split(rescheduled):
    """`split` by a factor that divides the extent: two loops, of the extents asked for."""
    compare(
        rescheduled,
        (nest_of(i=6), [("split", "i", 3, "io", "ii")]),
        (nest_of(i=8), [("split", "i", 2, "io", "ii"), ("reorder", "ii", "io")]),
        (nest_of(i=2, j=6), [("split", "j", 2, "a", "b"), ("reorder", "b", "i", "a")]),
    )


@points(0.5)
def test_guard(rescheduled):
    """`split` by a factor that does not divide the extent: nothing beyond the end, nothing left out."""
    compare(
        rescheduled,
        (nest_of(i=5), [("split", "i", 2, "io", "ii")]),
        (nest_of(i=10), [("split", "i", 4, "io", "ii")]),
        (nest_of(i=3, j=7), [("split", "j", 5, "jo", "ji")]),
        (nest_of(i=5, j=3), [("split", "i", 3, "io", "ii"), ("split", "j", 2, "jo", "ji")]),
        in_order=False,
    )


@points(0.5)
def test_split_again(rescheduled):
    """`split` of a loop that came out of a `split`: no visit comes twice."""
    twice = ("split", "i", 4, "io", "ii")
    compare(
        rescheduled,
        (nest_of(i=8), [twice, ("split", "ii", 3, "a", "b")]),
        (nest_of(i=10), [twice, ("split", "ii", 3, "a", "b")]),
        (nest_of(i=10), [twice, ("split", "io", 2, "a", "b")]),
        (nest_of(i=20), [("split", "i", 6, "io", "ii"), ("split", "ii", 4, "a", "b")]),
        in_order=False,
    )


@points(0.5)
def test_no_needless_guard(rescheduled):
    """No guard where every factor divides the extent of its loop."""
    plain = [("split", "i", 3, "io", "ii")]
    both = [("split", "i", 4, "io", "ii"), ("split", "ii", 2, "a", "b"), ("fuse", "io", "a", "c")]
    cases = [(nest_of(i=6), plain), (nest_of(i=12), both)]
    results = compare(rescheduled, *cases, in_order=False)
    for (nest, steps), found in zip(cases, results, strict=True):
        assert_holds(
            found["guards"] == 0,
            "A guard stands where every factor divides its loop's extent.",
            ("call", called(nest, steps)),
            ("expected", "no guard"),
            ("got", f"{found['guards']} in `guards`"),
        )


def test_fuse(rescheduled):
    """`fuse`: one loop with the visits of two, in the order that these had."""
    two, three = nest_of(i=2, j=3), nest_of(i=2, j=3, k=2)
    compare(
        rescheduled,
        (two, [("fuse", "i", "j", "ij")]),
        (three, [("fuse", "j", "k", "jk"), ("reorder", "jk", "i")]),
        (three, [("fuse", "i", "j", "ij"), ("fuse", "ij", "k", "all")]),
        (three, [("reorder", "k", "i"), ("fuse", "k", "j", "kj"), ("reorder", "i", "kj")]),
    )


@points(6)
def test_schedules(rescheduled, rng):
    """Several steps, any extents: each index tuple once, in exactly the order asked for."""
    tiles = [("split", "i", 2, "io", "ii"), ("split", "j", 3, "jo", "ji"), TILES]
    one_loop = [("fuse", "i", "j", "ij"), ("split", "ij", 4, "o", "l"), ("reorder", "l", "o")]
    again = [("split", "i", 4, "io", "ii"), ("split", "ii", 3, "a", "b"), ("reorder", "b", "io")]
    cases = [
        (nest_of(i=4, j=6), tiles),
        (nest_of(i=10), again),
        (nest_of(i=5, j=7), tiles),
        (nest_of(i=3, j=5), one_loop),
    ]
    random = python_random(rng)
    drawn = [
        (nest, any_steps(random, nest, random.randint(2, 5))) for nest in any_nests(random, 24)
    ]
    drawn.sort(key=lambda case: (len(case[1]), len(scheduled(*case)[1])))
    compare(rescheduled, *cases, *drawn)


@points(0.5)
def test_given_nests(rescheduled):
    """Nests whose loops are no axes any more: with guards, with other nodes, or your own once more."""
    i, j = ("index", "i"), ("index", "j")
    triangle = nest_of(i=4, j=4) | {"guards": (("<=", j, i),)}
    backwards = nest_of(i=5) | {"index": {"i": ("-", ("number", 4), i)}}
    halves, tiles = [("split", "i", 2, "io", "ii")], [("split", "j", 3, "jo", "ji"), TILES]
    compare(
        rescheduled,
        (backwards, [*halves, ("reorder", "ii", "io")]),
        (triangle, [("reorder", "j", "i")]),
        (triangle, [("fuse", "i", "j", "ij"), ("split", "ij", 5, "o", "l"), ("reorder", "l", "o")]),
        (nest_of(i=5, j=4), halves, tiles),
        (triangle, halves, tiles),
    )


@points(0.5)
def test_lanes(rescheduled):
    """`vectorize`: what the innermost loop visits is visited at once, up to the end and no further."""
    lanes = [("split", "i", 4, "io", "ii"), ("vectorize", "ii")]
    cases = [
        (nest_of(i=8), lanes),
        (nest_of(i=10), lanes),
        (nest_of(i=2, j=3), [("reorder", "j", "i"), ("vectorize", "i")]),
    ]
    results = compare(rescheduled, *cases, in_order=False)
    for (nest, steps), found in zip(cases, results, strict=True):
        _, expected = scheduled(nest, steps)
        groups = [flat([together]) for together in found["visits"]]
        with about(("call", called(nest, steps))):
            assert_equal(groups, expected, "What is visited at once is not as expected.")


@points(0.5)
def test_edges(rescheduled):
    """Extents of 0 and 1, and a factor of 1 or larger than the extent."""
    halves, ones = [("split", "i", 2, "io", "ii")], [("split", "i", 1, "io", "ii")]
    compare(
        rescheduled,
        (nest_of(i=1), halves),
        (nest_of(i=3), [("split", "i", 8, "io", "ii"), ("reorder", "ii", "io")]),
        (nest_of(i=3), ones),
        (nest_of(i=0), halves),
        (nest_of(i=2, j=0), [("fuse", "i", "j", "ij"), ("split", "ij", 3, "o", "l")]),
        (nest_of(i=0, j=3), [("fuse", "i", "j", "ij")]),
    )


def legality(schedules_taken, cases):
    """Fail unless each schedule is refused exactly where a visit would come too early."""
    answers = schedules_taken.ask([list(case) for case in cases]).value
    compared(answers)
    for (nest, steps), answer in zip(cases, answers, strict=True):
        early = too_early(nest, steps)
        call = ("call", called(nest, steps))
        if early and answer != "ValueError":
            point, needed = early
            why = f"{point} needs {needed}, which does not come before it"
            rows = (call, ("visit", why), ("expected", "ValueError"), ("got", "no error"))
            raise Mismatch("A schedule was taken that visits something too early.", rows)
        if not early and answer != "taken":
            rows = (call, ("expected", "no error"), ("got", answer))
            raise Mismatch(
                "A schedule was refused in which every visit comes after what it needs.", rows
            )


@points(2)
def test_needs(schedules_taken, rng):
    """`ValueError` where a visit would not come after one that it needs, and nowhere else."""
    swap, thirds = [("reorder", "j", "i")], [("split", "i", 3, "io", "ii")]
    back = [*thirds, ("reorder", "ii", "io"), ("reorder", "io", "ii")]
    tiles = [("split", "i", 2, "io", "ii"), ("split", "j", 2, "jo", "ji"), TILES]
    fixed = [
        (nest_of(i=3, j=3, needs=((1, -1),)), swap),
        (nest_of(i=3, j=3, needs=((1, 0),)), swap),
        (nest_of(i=3, j=3, needs=((1, 1), (0, 1))), swap),
        (nest_of(i=5, needs=((1,),)), thirds),
        (nest_of(i=5, needs=((1,),)), [*thirds, ("reorder", "ii", "io")]),
        (nest_of(i=5, needs=((3,),)), [*thirds, ("reorder", "ii", "io")]),
        (nest_of(i=5, needs=((1,),)), back),
        (nest_of(i=2, j=3, needs=((2, -1),)), swap),
        (nest_of(i=3, j=3, needs=((1, 0), (1, -1))), swap),
        (nest_of(i=4, j=4, needs=((1, 0), (0, 1))), tiles),
        (nest_of(i=4, j=4, needs=((1, -1),)), tiles),
        (nest_of(i=3, j=4, needs=((0, 1),)), [("fuse", "i", "j", "ij")]),
    ]
    legality(schedules_taken, fixed + drawn_with_needs(python_random(rng), 10))


def drawn_with_needs(random, each):
    """Return as many schedules that keep what their nests need as such that do not."""
    kept, broken = [], []
    while min(len(kept), len(broken)) < each:
        (nest,) = any_nests(random, 1)
        axes = len(nest["index"])
        distances = [one for one in product((-1, 0, 1, 2), repeat=axes) if one > (0,) * axes]
        nest["needs"] = tuple(random.sample(distances, random.randint(1, 2)))
        steps = any_steps(random, nest, 4)
        (broken if too_early(nest, steps) else kept).append((nest, steps))
    drawn = kept[:each] + broken[:each]
    return sorted(drawn, key=lambda case: (len(case[1]), len(scheduled(*case)[1])))


@points(0.5)
def test_needs_in_lanes(schedules_taken):
    """Lanes of one step come at once: as many as a distance reaches, and no more."""
    lanes = {n: [("split", "i", n, "io", "ii"), ("vectorize", "ii")] for n in (2, 3, 4, 5)}
    rows = [("vectorize", "j")]
    legality(
        schedules_taken,
        [
            (nest_of(i=4, needs=((1,),)), lanes[2]),
            (nest_of(i=8, needs=((4,),)), lanes[4]),
            (nest_of(i=10, needs=((4,),)), lanes[5]),
            (nest_of(i=10, needs=((4,),)), lanes[3]),
            (nest_of(i=3, j=3, needs=((1, -1),)), rows),
            (nest_of(i=3, j=3, needs=((0, 1),)), rows),
            (nest_of(i=3, j=3, needs=((0, 1),)), [("reorder", "j", "i"), ("vectorize", "i")]),
        ],
    )


@points(0.5)
def test_needs_stay(needs_kept):
    """What a nest needs goes with it: a second call refuses what a first one would."""
    nest, thirds = nest_of(i=5, needs=((1,),)), [("split", "i", 3, "io", "ii")]
    for second, expected in (("io", "ii"), "taken"), (("ii", "io"), "ValueError"):
        steps = [("reorder", *second)]
        got = needs_kept.ask(nest, thirds, steps).value
        with about(("call", called(nest, thirds, steps))):
            assert_equal(got, expected, "What a nest needs does not count in a second call.")


@points(0.5)
def test_needs_of_visits(schedules_taken):
    """What a guard leaves out is no visit: nothing waits for it."""
    small, large = (
        nest_of(i=n, j=n, needs=((1, -1),)) | {"guards": (("<=", ("index", "j"), ("index", "i")),)}
        for n in (2, 3)
    )
    swap = [("reorder", "j", "i")]
    legality(schedules_taken, [(small, swap), (large, swap)])


@points(0.5)
def test_neighbours(schedules_taken):
    """`ValueError` where the loops of a `fuse` do not stand directly within each other, in that order."""
    nest, swap = nest_of(i=2, j=3, k=2), ("reorder", "j", "i")
    cases = {
        "taken": [[("fuse", "j", "k", "jk")], [swap, ("fuse", "j", "i", "ji")]],
        "ValueError": [
            [("fuse", "j", "i", "ji")],
            [("fuse", "i", "k", "ik")],
            [swap, ("fuse", "i", "j", "ij")],
        ],
    }
    listed = [(steps, expected) for expected, each in cases.items() for steps in each]
    answers = schedules_taken.ask([[nest, steps] for steps, _ in listed]).value
    compared(answers)
    for (steps, expected), answer in zip(listed, answers, strict=True):
        what = "Loops were fused that do not stand directly within each other."
        if expected == "taken":
            what = "Loops were not fused, though one stands directly within the other."
        if answer != expected:
            words = {"taken": "no error"}
            rows = ("expected", words.get(expected, expected)), ("got", words.get(answer, answer))
            raise Mismatch(what, (("call", called(nest, steps)), *rows))


@points(0.5)
def test_given_nest_stays(rescheduled):
    """The given nest is afterwards as it was."""
    nest, steps = nest_of(i=5, j=2), [("split", "i", 2, "io", "ii"), ("fuse", "ii", "j", "c")]
    (found,) = compare(rescheduled, (nest, steps), in_order=False)
    what = "The given nest was changed."
    assert_holds(found["as given"], what, ("call", called(nest, steps)))
