"""A chapter's reference solutions, run, for tests that fuzz them against an oracle."""

from functools import cache

from grader.course.course import Course, read_reference
from grader.submission.program import slice_program
from tests import ROOT


@cache
def program(chapter, exercise):
    """Return the names that the reference notebook of `chapter` defines for `exercise`."""
    found = Course(ROOT).chapter(chapter)
    names = [known.id for known in found.exercises]
    namespace = {}
    for label, source in slice_program(exercise, names, read_reference(found)).parts:
        exec(compile(source, label, "exec", dont_inherit=True), namespace)
    return namespace


def reference(chapter, exercise):
    """Return what the reference notebook of `chapter` defines as `exercise`."""
    return program(chapter, exercise)[exercise]
