"""Probe of `read_events`: what it says of files, as plain data."""

import os
import tempfile

from grader import probe


@probe
def events_read(student, folders):
    """Return what `read_events` says of each folder, None where it returns no Reading.

    folders: (name, content) of each file, in the order in which the paths are handed over; the first
    was changed last
    """
    found = []
    for number, files in enumerate(folders):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for age, (name, content) in enumerate(files):
                paths.append(os.path.join(folder, name))
                with open(paths[-1], "wb") as file:
                    file.write(content)
                os.utime(paths[-1], (1_800_000_000 - age, 1_800_000_000 - age))
            try:
                reading = student.read_events(paths)
            except Exception as error:
                sizes = ", ".join(f"{name} ({len(content)} bytes)" for name, content in files)
                error.add_note(f"folder {number}: {sizes}")
                raise
            found.append(as_data(reading) if hasattr(reading, "curves") else None)
    return found


def as_data(reading):
    """Return a `Reading` as plain data."""
    return {
        "curves": {
            tag: [(int(step), float(value)) for step, value in curve]
            for tag, curve in reading.curves.items()
        },
        "damage": [(one.file, int(one.at), str(one.what)) for one in reading.damage],
    }
