"""The course checks itself: known answers, mutants, the trial."""
