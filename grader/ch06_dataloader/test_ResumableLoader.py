"""Checks of `ResumableLoader`: what a resumed loader gives is compared with a run that never stopped."""

from grader import assert_equal, assert_holds, claimed, gate


def numbers(epochs):
    return [number for epoch in epochs for batch in epoch for _, number in batch]


def samples(epoch):
    return [sample for batch in epoch for sample, _ in batch]


def resume(resumed, *stop, length=11, workers=(2, 0), seed=7):
    """Return what came back, and how many of the epoch's batches had been delivered."""
    got = resumed.ask(length, 2, stop, *workers, seed).value
    return got, stop[1]


@gate
def test_epoch(resumable_epochs):
    """An epoch has every sample once, in batches of the size asked for; the last may be short."""
    got = resumable_epochs.ask(7, 3, 1, None, 1).value[0]
    assert_equal([len(batch) for batch in got], [3, 3, 1], "Sizes of the batches.")
    assert_equal(sorted(samples(got)), list(range(7)), "The samples, sorted.")


def test_any_workers(resumable_epochs):
    """The same batches with workers and without."""
    alone = resumable_epochs.ask(11, 2, 3, 0, 2).value
    got = resumable_epochs.ask(11, 2, 3, 3, 2).value
    same = [a == b for a, b in zip(got, alone, strict=True)]
    assert_equal(same, [True, True], "Which epochs are the same with three workers.")


def test_epochs_and_seeds(resumable_epochs):
    """Epochs and seeds differ from each other, in their order and in their random numbers."""
    found = {
        (seed, epoch): batches
        for seed in (0, 1, 2)
        for epoch, batches in enumerate(resumable_epochs.ask(20, 4, seed, 0, 3).value)
    }
    for case, epoch in found.items():
        assert_equal(sorted(samples(epoch)), list(range(20)), f"Samples of (seed, epoch) {case}.")
    orders = {tuple(samples(epoch)) for epoch in found.values()} | {tuple(range(20))}
    assert_equal(len(orders), 10, "How many orders differ, of nine and the unshuffled one.")
    together = {frozenset(samples([batch])) for epoch in found.values() for batch in epoch}
    # of 45 batches of 4 from 20 samples, two are the same in one run of five
    assert_holds(len(together) > 30, "The same samples share a batch in each epoch.")
    drawn = numbers(found.values())
    assert_equal(len(set(drawn)), len(drawn), "How many random numbers differ.")


def test_goes_on(resumed):
    """A loader with other workers and another seed goes on with the very same batches."""
    for stop, workers, seed in (((0, 3), (2, 0), 7), ((1, 2), (0, 2), 9), ((0, 0), (0, 0), 8)):
        got, count = resume(resumed, *stop, workers=workers, seed=seed)
        first, second, third = got["expected"][:3]
        case = f"{stop[1]} batches of epoch {stop[0]}, with {workers[0]} workers, then {workers[1]}"
        same = [a == b for a, b in zip(got["got"], [first[count:], second, third], strict=True)]
        assert_equal(len(got["got"][0]), len(first) - count, f"Batches left after {case}.")
        assert_equal(same, [True] * 3, f"Is the rest the same, and two more epochs? After {case}.")


def test_ends(resumed, resumable_breaks):
    """Saved after an epoch's last batch, or left by `break`: the next `for` begins in its place."""
    got, _ = resume(resumed, 1, 6, workers=(0, 0))
    sizes = [len(epoch) for epoch in got["got"]]
    assert_equal(sizes, [0, 6, 6], "Batches, when all six were delivered and the loop is still on.")
    assert_holds(got["got"][1:] == got["expected"][1:3], "The epochs after that are others.")
    got = resumable_breaks.ask(2).value
    batches = got["got"][0]
    found = len(batches), len(set(map(str, batches)))
    assert_equal(
        found, (6, 6), "In spite of two breaks, with two workers: batches, and how many differ."
    )
    assert_holds(got["got"] == got["expected"], "They are not what an unbroken epoch gives.")


@claimed
def test_not_again(resumed):
    """What was delivered before the stop is not fetched again."""
    for stop, workers in (((0, 3), (2, 0)), ((1, 2), (0, 2))):
        got, count = resume(resumed, *stop, workers=workers, seed=7 if workers[0] else 9)
        rest = sorted(samples(got["expected"][0][count:]))
        assert_equal(got["fetched"], rest, "Samples fetched for the rest of the epoch.")


def test_state(resumed):
    """The state is plain, small, and stays what it was while the loader goes on."""
    got, _ = resume(resumed, 0, 40, length=500, workers=(0, 0))
    assert_holds(
        got["characters"] < 1000,
        "The state has 1000 characters or more, for 500 samples.",
        ("got", f"{got['characters']} characters"),
    )
    assert_equal(len(got["got"][0]), 210, "Batches left after 40 of 250.")


def test_global_state(resumable_states):
    """Neither depends on the global random state nor moves it."""
    for workers in (0, 1):
        got = resumable_states.ask(workers).value
        assert_holds(got["same"], "The batches depend on the global state of random numbers.")
        assert_equal(got["left"], [True, True], "The global state of random numbers was moved.")
