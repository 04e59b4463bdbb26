"""What the box sees of the host, all of it read-only: an interpreter, the system's libraries, `inside` and what it needs."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import grader
from grader.box.tiers import BoxUnavailable

HOUSE = Path("/undertorch")
"""Where our own files appear in the box: a neutral folder, outside every bound path."""

PROBES = HOUSE / "chapter" / "probes"
INSIDE = HOUSE / "inside.py"

ENVIRONMENT = Path("/venv")
"""Where a virtual environment appears whose own place a child's /tmp or /dev hides."""

OURS = ("__init__.py", "inside", "evidence/__init__.py", "evidence/wire")
"""All of this package that a box shows: what runs beside the student's code, and the plain data that
it sends and gets. A test holds it against what these parts import."""

_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin")

_ETC = {
    "/etc/passwd": "root:x:0:0::/:/bin/false\nstudent:x:1000:1000::/tmp/home:/bin/sh\n",
    "/etc/group": "root:x:0:\nstudent:x:1000:\n",
    "/etc/hosts": "127.0.0.1 localhost undertorch\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
"""Stand-ins: torch asks who it runs as (getpass), gloo resolves the host's name."""


@dataclass
class View:
    """Arguments for bwrap in their order, and the descriptors that they name."""

    arguments: list[str] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    bound: list[tuple[Path, Path]] = field(default_factory=list)
    """What is shown of the host, without links, and where."""
    _folders: set[Path] = field(default_factory=lambda: {Path("/")})

    def bind(self, source: Path, target: Path | None = None) -> None:
        """Show `source` read-only at `target`, its own path if None."""
        target = target or source
        self.folder(target.parent)
        self.arguments += ["--ro-bind", str(source), str(target)]
        self.bound.append((source.resolve(), target))

    def places_of(self, path: Path) -> Iterator[Path]:
        """Yield where a path of the host is seen: a folder may be shown under two names."""
        real = path.resolve()
        for source, target in self.bound:
            if real.is_relative_to(source):
                yield target / real.relative_to(source)

    def text(self, target: Path, content: str) -> None:
        """Show a read-only file with this content."""
        self.folder(target.parent)
        descriptor = os.memfd_create(target.name)
        os.write(descriptor, content.encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
        self.descriptors.append(descriptor)
        self.arguments += ["--perms", "0444", "--ro-bind-data", str(descriptor), str(target)]

    def folder(self, path: Path) -> None:
        """Make `path` and its parents; in a box of root's they must be open to another user."""
        for parent in (*reversed(path.parents), path):
            if parent not in self._folders:
                self._folders.add(parent)
                self.arguments += ["--perms", "0755", "--dir", str(parent)]

    def empty(self, path: Path) -> None:
        """Hide the folder `path`, which something bound earlier shows, under an empty one."""
        self.arguments += ["--perms", "0755", "--tmpfs", str(path), "--remount-ro", str(path)]

    def symlink(self, target: str, path: Path) -> None:
        """Make a symbolic link."""
        self.folder(path.parent)
        self.arguments += ["--symlink", target, str(path)]


def view(probes: Path, inside: Path | None) -> View:
    """Return what the box of a chapter sees. `inside` replaces grader.inside.serve where given."""
    shown = View()
    _show_system(shown)
    for folder in _interpreter_folders():
        shown.bind(folder, shown_at(folder))
    _hide_our_package(shown)
    _show_our_parts(shown)
    shown.bind(probes.resolve(), PROBES)
    if inside is not None:
        shown.bind(inside.resolve(), INSIDE)
    return shown


def _show_system(shown: View) -> None:
    for name in _SYSTEM:
        path = Path(name)
        if path.is_symlink():  # on merged-/usr systems /lib is a link into /usr
            shown.symlink(str(path.readlink()), path)
        elif path.is_dir():
            shown.bind(path)
        shown._folders.add(path)
    for name in ("/etc/ld.so.cache", "/etc/alternatives", "/sys/devices/system/cpu"):
        if Path(name).exists():
            shown.bind(Path(name))
    for name, content in _ETC.items():
        shown.text(Path(name), content)


def _interpreter_folders() -> Iterator[Path]:
    """Folders of this interpreter and its environment, outermost first, /usr aside.

    Only `bin` and `lib`: an environment made inside a project shares its root with the project.
    """
    prefixes = {sys.base_prefix, sys.base_exec_prefix, sys.prefix, sys.exec_prefix}
    real = {str(Path(prefix).resolve()) for prefix in prefixes}
    executable = Path(sys.executable).resolve().parent.parent
    for prefix in sorted(prefixes | real | {str(executable)}):
        if prefix == "/usr" or prefix.startswith("/usr/"):
            continue
        for name in ("bin", "lib", "lib64", "pyvenv.cfg"):
            path = Path(prefix, name)
            if path.exists():
                _refuse_hidden(path)
                yield path


def shown_at(path: Path) -> Path:
    """Return where the box shows a path of the interpreter: almost always at that very path.

    An environment below /tmp moves. It finds itself from where its `python` is called, and the
    interpreter it was made from by the path in its pyvenv.cfg.
    """
    for prefix in (Path(sys.prefix), Path(sys.prefix).resolve()):
        if sys.prefix != sys.base_prefix and _is_hidden(prefix) and path.is_relative_to(prefix):
            return ENVIRONMENT / path.relative_to(prefix)
    return path


def _is_hidden(path: Path) -> bool:
    return any(folder in path.parents for folder in (Path("/tmp"), Path("/dev"), Path("/proc")))


def _refuse_hidden(path: Path) -> None:
    if _is_hidden(shown_at(path)):
        raise BoxUnavailable(
            f"the interpreter lies in {path}, which a child's own /tmp or /dev hides: "
            "make the virtual environment from another one"
        )


_SECRET = ("grader", "chapters", "solutions")
"""What a wheel of ours lays side by side: checks and mistakes, given cells, reference solutions."""

_PACKAGES = ("python3*/*-packages", "lib*/python3*/*-packages", "local/lib*/python3*/*-packages")
"""Where the interpreters of a folder that is shown keep what is installed for them."""


def _hide_our_package(shown: View) -> None:
    """Mask every copy of this package that the bound paths would show, and what comes with it.

    Pointers of an editable install are emptied too: what they point at is not in the box.
    """
    ours = Path(grader.__file__).resolve().parent
    own = {Path(entry).resolve() for entry in sys.path if entry}
    others = {  # another interpreter's, which nobody runs here, is read as well
        folder.resolve()
        for source, _ in shown.bound
        for pattern in _PACKAGES
        for folder in source.glob(pattern)
        if (folder / "grader" / "inside").is_dir()
    }
    copies, pointers = {ours}, set()
    for folder in own | others | {ours.parent}:
        if (folder / "grader").is_dir():
            copies |= {folder / name for name in _SECRET}
        for pattern in ("*.pth", "__editable__*.py"):
            pointers |= {
                path for path in folder.glob(pattern) if str(ours.parent) in path.read_text()
            }
    for copy in sorted(copies):
        if copy.is_dir():
            for place in shown.places_of(copy):
                shown.empty(place)
    for pointer in sorted(pointers):
        for place in shown.places_of(pointer):
            shown.text(place, "")


def refuse_shown(folder: Path) -> None:
    """Raise BoxUnavailable if every box shows this folder of a course, as part of the system."""
    real = folder.resolve()
    for name in _SYSTEM:
        if real.is_relative_to(Path(name).resolve()):
            raise BoxUnavailable(
                f"the course lies in {real}, and student code may read all of {name}: "
                "put the course's folder somewhere else"
            )


def copy_parts(house: Path, probes: Path, inside: Path | None) -> None:
    """Lay copies of what a box shows of us into the folder `house`, for all to read."""
    package = Path(grader.__file__).resolve().parent
    pairs = [(package / name, HOUSE / "grader" / name) for name in OURS]
    pairs += [(probes.resolve(), PROBES), *([(inside.resolve(), INSIDE)] if inside else [])]
    for source, shown in pairs:
        target = house / shown.relative_to(HOUSE)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, target)
    for path in (house, *house.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _show_our_parts(shown: View) -> None:
    package = Path(grader.__file__).resolve().parent
    for name in OURS:
        shown.bind(package / name, HOUSE / "grader" / name)
