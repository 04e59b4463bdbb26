"""Graders that travel: a chapter's grader, packed for a service that runs it once for each submission."""
