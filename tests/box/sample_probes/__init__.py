"""A chapter's probes in small, for the box with the real grader.inside.serve."""
