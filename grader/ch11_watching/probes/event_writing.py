"""Probes of `EventWriter`, and the files that it leaves."""

import os
import tempfile

from grader import probe

SECOND = 10**9


class Clock:
    """A clock that a program sets; each look takes a quarter of a second."""

    def __init__(self, seconds):
        self.now = seconds * SECOND

    def __call__(self):
        self.now += SECOND // 4
        return self.now


def files_in(folder):
    """Return the content of each file in a folder, by name, sorted."""
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            found[name] = file.read()
    return found


@probe
def events_written(student, seconds, start, adds):
    """Return the folder's files and the writer's path, after `adds` of (step, values)."""
    with tempfile.TemporaryDirectory() as parent:
        folder = os.path.join(parent, "runs", "one")
        writer = student.EventWriter(folder, Clock(seconds), start)
        for step, values in adds:
            try:
                writer.add(step, dict(values))
            except Exception as error:
                error.add_note(f"writer.add({step}, {dict(values)})")
                raise
        writer.close()
        writer.close()
        return {"files": files_in(folder), "path": os.path.relpath(str(writer.path), folder)}


@probe
def events_flushed(student, seconds, adds):
    """Return the file's bytes after each `add` and `flush`, while it is open."""
    with tempfile.TemporaryDirectory() as folder:
        writer = student.EventWriter(folder, Clock(seconds))
        found = []
        for step, values in adds:
            writer.add(step, dict(values))
            writer.flush()
            found.append(b"".join(files_in(folder).values()))
        writer.close()
        return found


@probe
def events_of_runs(student, there, runs):
    """Return the folder's files after runs that each start at a time, beside files that were there.

    there: (name, content); runs: seconds, or seconds with True for a writer that is not closed
    before the next begins
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, content in there:
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        paths, still_open = [], []
        for step, (seconds, stays_open) in enumerate(runs):
            writer = student.EventWriter(folder, Clock(seconds), start=step)
            writer.add(step, {"run": float(step)})
            writer.flush()
            paths.append(os.path.relpath(str(writer.path), folder))
            if stays_open:
                still_open.append(writer)
            else:
                writer.close()
        for writer in still_open:
            writer.close()
        return {"files": files_in(folder), "paths": paths}
