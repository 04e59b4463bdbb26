"""Probe of `read_schema`: what it says of each line, as plain data."""

from grader import each, probe

FIELDS = ("name", "type", "before", "after", "written", "keyword_only", "required", "default")


def part_as_data(part):
    """Return an `Argument` as a dict, its sets as sorted lists."""
    fields = {name: getattr(part, name) for name in FIELDS}
    return fields | {side: sorted(fields[side]) for side in ("before", "after")}


def as_data(schema):
    """Return a `Schema` as a dict, its sets as sorted lists."""
    return {
        "name": schema.name,
        "overload": schema.overload,
        "arguments": [part_as_data(one) for one in schema.arguments],
        "results": [part_as_data(one) for one in schema.results],
        "writes": sorted(schema.writes),
        "shares": sorted(schema.shares),
    }


@probe
def schemas_read(student, texts):
    """Return what `read_schema` says of each text, None where it returns no Schema."""
    read = each(student.read_schema, [(text,) for text in texts])
    return [as_data(one) if hasattr(one, "arguments") else None for one in read]
