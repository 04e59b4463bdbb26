"""Checks of `ResumableLoader`: what a resumed loader gives is compared with a run that never stopped."""

from grader import about, assert_equal, assert_holds, claimed, compared, gate, points


def numbers(epochs):
    return [number for epoch in epochs for batch in epoch for _, number in batch]


def samples(epoch):
    return [sample for batch in epoch for sample, _ in batch]


def resume(resumed, *stop, length=11, workers=(2, 0), seed=7):
    """Return what came back, and how many of the epoch's batches had been delivered."""
    got = resumed.ask(length, 2, stop, *workers, seed).value
    return got, stop[1]


def story(stop, workers, seed=7):
    """Return what was done with a loader, and with the one that goes on."""
    epochs, batches = stop
    return (
        "program",
        f"one = ResumableLoader(dataset of 11, transform, 2, seed=7, num_workers={workers[0]})\n"
        f"# {epochs} whole epochs and {batches} batches of the next, then one.state_dict()\n"
        f"two = ResumableLoader(dataset of 11, transform, 2, seed={seed}, num_workers={workers[1]})\n"
        "two.load_state_dict(state)",
    )


@gate
def test_epoch(resumable_epochs):
    """An epoch has every sample once, in batches of the size asked for; the last may be short."""
    got = resumable_epochs.ask(7, 3, 1, None, 1).value[0]
    assert_equal(
        [len(batch) for batch in got],
        [3, 3, 1],
        "The sizes of the batches of 7 samples, three at a time.",
    )
    assert_equal(sorted(samples(got)), list(range(7)), "The samples, sorted.")


def test_any_workers(resumable_epochs):
    """The same batches with workers and without."""
    alone = resumable_epochs.ask(11, 2, 3, 0, 2).value
    got = resumable_epochs.ask(11, 2, 3, 3, 2).value
    for epoch, (mine, theirs) in enumerate(zip(got, alone, strict=True)):
        orders = samples(mine) == samples(theirs)
        assert_holds(orders, f"Epoch {epoch} has another order with three workers than with none.")
        drawn = numbers([mine]) == numbers([theirs])
        what = f"Epoch {epoch} has other random numbers with three workers than with none."
        assert_holds(drawn, what)


def test_epochs_and_seeds(resumable_epochs):
    """Epochs and seeds differ from each other, in their order and in their random numbers."""
    found = {
        (seed, epoch): batches
        for seed in (0, 1, 2)
        for epoch, batches in enumerate(resumable_epochs.ask(20, 4, seed, 0, 3).value)
    }
    for case, epoch in found.items():
        seed, number = case
        what = f"The samples of epoch {number} with seed {seed}, sorted."
        assert_equal(sorted(samples(epoch)), list(range(20)), what)
    orders = {tuple(samples(epoch)) for epoch in found.values()} | {tuple(range(20))}
    assert_equal(
        len(orders),
        10,
        "How many different orders there are among nine epochs and the unshuffled one.",
    )
    together = {frozenset(samples([batch])) for epoch in found.values() for batch in epoch}
    # of 45 batches of 4 from 20 samples, two are the same in one run of five
    assert_holds(len(together) > 30, "The same samples share a batch in each epoch.")
    drawn = numbers(found.values())
    what = "How many different random numbers the samples of nine epochs got."
    assert_equal(len(set(drawn)), len(drawn), what)


@points(4)
def test_goes_on(resumed):
    """A loader with other workers and another seed goes on with the very same batches."""
    for stop, workers, seed in (((0, 3), (2, 0), 7), ((1, 2), (0, 2), 9), ((0, 0), (0, 0), 8)):
        got, count = resume(resumed, *stop, workers=workers, seed=seed)
        first, second, third = got["expected"][:3]
        with about(story(stop, workers, seed)):
            same = [a == b for a, b in zip(got["got"], [first[count:], second, third], strict=True)]
            what = "How many batches of the epoch come after the resume."
            assert_equal(len(got["got"][0]), len(first) - count, what)
            what = "Whether the rest of the epoch, and each of two more, is what would have come."
            assert_equal(same, [True] * 3, what)


def test_ends(resumed, resumable_breaks):
    """Saved after an epoch's last batch, or left by `break`: the next `for` begins in its place."""
    got, _ = resume(resumed, 1, 6, workers=(0, 0))
    with about(story((1, 6), (0, 0))):
        sizes = [len(epoch) for epoch in got["got"]]
        what = (
            "How many batches three times `for` give, where the state is of an epoch's last batch."
        )
        assert_equal(sizes, [0, 6, 6], what)
        what = "The two epochs after that are others than those of a run that never stopped."
        assert_holds(got["got"][1:] == got["expected"][1:3], what)
    got = resumable_breaks.ask(2).value
    batches = got["got"][0]
    case = (
        "Two times `for` that `break` ends after two batches, and a whole one, with two workers. "
    )
    different = len(set(map(str, batches)))
    compared((len(batches), different))
    assert_equal(len(batches), 6, case + "How many batches came in all.")
    assert_equal(different, 6, case + "How many of the batches are different.")
    assert_holds(got["got"] == got["expected"], case + "They are not those of an unbroken epoch.")


@claimed
def test_not_again(resumed):
    """What was delivered before the stop is not fetched again."""
    for stop, workers in (((0, 3), (2, 0)), ((1, 2), (0, 2))):
        got, count = resume(resumed, *stop, workers=workers, seed=7 if workers[0] else 9)
        rest = sorted(samples(got["expected"][0][count:]))
        with about(story(stop, workers, 7 if workers[0] else 9)):
            # which samples these are is the student's own
            what = "How many samples were fetched for the rest of the epoch."
            assert_equal(len(got["fetched"]), len(rest), what)
            what = "A sample that was delivered before the stop was fetched again after it."
            assert_holds(set(got["fetched"]) <= set(rest), what)


def test_state(resumed):
    """The state is plain, small, and stays what it was while the loader goes on."""
    got, _ = resume(resumed, 0, 40, length=500, workers=(0, 0))
    assert_holds(
        got["characters"] < 1000,
        "The state has 1000 characters or more, for 500 samples.",
        ("got", f"{got['characters']} characters"),
    )
    assert_equal(
        len(got["got"][0]), 210, "How many batches come after a resume at batch 40 of 250."
    )


def test_global_state(resumable_states):
    """Neither depends on the global random state nor moves it."""
    for workers in (0, 1):
        got = resumable_states.ask(workers).value
        assert_holds(got["same"], "The batches depend on the global state of random numbers.")
        assert_holds(all(got["left"]), "The global state of random numbers was moved.")
