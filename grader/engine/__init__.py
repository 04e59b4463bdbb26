"""Boxes in which code that is not ours runs: a warm process per chapter, an isolated fork per exercise."""
