"""Probe of `resolve`: which overload it chooses for each call."""

from grader import each, probe


@probe
def resolved(student, schemas, arguments, keywords):
    """Return for each call the name chosen in a list, or the words of the TypeError alone."""

    def resolve(*call):
        try:
            return [student.resolve(*call)]
        except TypeError as error:
            return f"TypeError: {error}"

    calls = zip(schemas, arguments, keywords, strict=True)
    return each(resolve, [(list(lines), list(args), dict(kw)) for lines, args, kw in calls])
