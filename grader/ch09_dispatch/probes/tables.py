"""The probe of `table_entry`."""

from grader import each, probe


@probe
def table_entries(student, registrations, keys):
    """Return, for each `registered`, what stands at each of the keys asked with it."""
    return [
        each(student.table_entry, [(dict(registered), key) for key in asked])
        for registered, asked in zip(registrations, keys, strict=True)
    ]
