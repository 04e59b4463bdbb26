"""Starts the warm process in its box: as an ordinary user, as root, as another user, or bare."""

from __future__ import annotations

import json
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import grader
from grader.box import mounts
from grader.box.tiers import BoxUnavailable, Tier

NO_BWRAP = (
    "bubblewrap is not installed, so student code cannot be boxed. "
    "Install it (`apt-get install bubblewrap`), then run `undertorch doctor`."
)

_NOBODY = "65534"

# As root there is no user namespace around the box: in one, /proc/sys stays writable. These four
# capabilities let the shell below uncover /proc and change user; the warm process has none.
_ROOT_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_SYS_ADMIN")

# bwrap covers parts of /proc when it runs as root. A child may mount a /proc of its own only where
# it can see a whole one. Nobody, who runs from here on, may write to none of what is uncovered.
_STEP_DOWN = (
    "for cover in /proc/sys /proc/sysrq-trigger /proc/irq /proc/bus; do "
    "umount $cover 2>/dev/null; done; "
    f"exec setpriv --reuid={_NOBODY} --regid={_NOBODY} --clear-groups --no-new-privs "
    '--inh-caps=-all --bounding-set=-all -- "$@"'
)


@dataclass(frozen=True)
class Started:
    """A warm process: the one to wait for, and the file its complaints go to."""

    process: subprocess.Popen[bytes]
    complaints: IO[bytes]
    scratch: tempfile.TemporaryDirectory[str] | None = None
    """In tiers 2 and 4 the folder that stands in for the box's /tmp."""
    first: int | None = None
    """A pidfd of the first process of the box's pid namespace."""
    user: int | None = None
    """In tier 2 the user who runs nothing else here: all of theirs goes with the box."""

    def wait_until_empty(self, seconds: float) -> None:
        """Wait until no process of the box is left; end those that stay longer than `seconds`."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        # bwrap leaves as soon as its command does. The kernel lets the first process of a pid
        # namespace end only after all others.
        if self.first is not None and not _ended_within(self.first, seconds):
            signal.pidfd_send_signal(self.first, signal.SIGKILL)
            _ended_within(self.first, seconds)
        if self.user is not None:
            _end_all_of(self.user)

    def clean_up(self) -> None:
        """Remove what the process needed; to be called after its end."""
        self.complaints.close()
        if self.first is not None:
            os.close(self.first)
        if self.scratch is not None:
            self.scratch.cleanup()

    def complaint(self) -> str:
        """Return the end of what was written to stderr; nothing once cleaned up."""
        if self.complaints.closed:
            return ""
        self.complaints.seek(0)
        return self.complaints.read().decode(errors="replace")[-4000:].strip()


def _ended_within(pidfd: int, seconds: float) -> bool:
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(seconds * 1000))


def start(
    tier: Tier, probes: Path, preload: Sequence[str], inside: Path | None, control: int
) -> Started:
    """Start a warm process whose end of the control socket is `control`."""
    if tier is Tier.NAMESPACES:
        return _boxed(probes, preload, inside, control)
    if tier is Tier.CONTAINER:
        return _as_another(probes, preload, inside, control)
    if tier is Tier.NONE:
        return _bare(probes, preload, inside, control)
    raise BoxUnavailable(f"{tier.title}: choose tier 1, or tier 4 for code you trust")


def _end_all_of(user: int) -> None:
    """End every process of a user, until there is none: a daemon may start others meanwhile."""
    while found := [path for path in Path("/proc").iterdir() if _runs_as(path, user)]:
        for path in found:
            with suppress(ProcessLookupError):
                os.kill(int(path.name), signal.SIGKILL)


def _runs_as(process: Path, user: int) -> bool:
    """Say whether a folder of /proc is a process of that user that has not ended."""
    try:
        status = (process / "status").read_text() if process.name.isdigit() else ""
    except OSError:
        return False
    lines = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return lines.get("Uid", "").split()[:1] == [str(user)] and not lines["State"].startswith("Z")


def bwrap_path() -> str:
    """Return where bwrap is, or raise BoxUnavailable."""
    found = shutil.which("bwrap")
    if found is None:
        raise BoxUnavailable(NO_BWRAP)
    return found


def confinement() -> list[str]:
    """Return bwrap's arguments up to what the box sees, for the user we are."""
    common = ["--die-with-parent", "--new-session", "--clearenv", "--hostname", "undertorch"]
    if os.geteuid() != 0:
        return ["--unshare-all", *common]
    namespaces = [
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
    ]
    powers = ["--cap-drop", "ALL"]
    for name in _ROOT_CAPABILITIES:
        powers += ["--cap-add", name]
    return [*namespaces, *common, *powers]


def step_down() -> list[str]:
    """Return what goes before the command in the box: nothing, or for root the way to nobody."""
    return [] if os.geteuid() != 0 else ["/bin/sh", "-c", _STEP_DOWN, "step-down"]


def _boxed(probes: Path, preload: Sequence[str], inside: Path | None, control: int) -> Started:
    shown = mounts.view(probes, inside)
    arguments = [bwrap_path(), *confinement(), *shown.arguments]
    # The warm process has this /tmp; each child mounts its own over it and over /dev/shm.
    arguments += ["--dev", "/dev", "--proc", "/proc", "--perms", "1777", "--tmpfs", "/tmp"]
    # An ordinary user's box belongs to the user its children are: make what they share read-only.
    arguments += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]
    for name, value in _environment(str(mounts.HOUSE)).items():
        arguments += ["--setenv", name, value]
    news, theirs = os.pipe()
    arguments += ["--info-fd", str(theirs)]
    inner = str(mounts.INSIDE) if inside else None
    interpreter = mounts.shown_at(Path(sys.executable))
    command = _warm_command(interpreter, str(mounts.PROBES), preload, inner, control)
    try:
        started = _popen(
            [*arguments, "--", *step_down(), *command], {}, (control, theirs, *shown.descriptors)
        )
    finally:
        for descriptor in (theirs, *shown.descriptors):
            os.close(descriptor)
    with os.fdopen(news) as pipe:
        return replace(started, first=_first_process(pipe.read()))


def _first_process(info: str) -> int | None:
    """Return a pidfd of the process that bwrap's --info-fd names; None where bwrap failed before."""
    try:
        return os.pidfd_open(json.loads(info)["child-pid"])
    except (ValueError, ProcessLookupError):
        return None


# No powers and the calls of a box's children only, from before the imports on.
_WARM_WITHOUT_POWERS = (
    "import runpy; from grader.inside.process import confine; confine.give_up_powers(); "
    "runpy.run_module('grader.inside.process.warm', run_name='__main__', alter_sys=True)"
)

_OTHERS = range(60_578, 61_184)
"""User ids that systemd's table of them leaves unused; they fit the 65,536 ids of a container."""


_TASKS = 512
"""Most processes and threads of that user. The watchdog's limits are lower; these hold without it."""


def _as_another(probes: Path, preload: Sequence[str], inside: Path | None, control: int) -> Started:
    """Start it as a user of its own, beside copies of the files that a box would show.

    Which other files this user may read is for their modes to say.
    """
    if os.geteuid() != 0 or None in (shutil.which("setpriv"), shutil.which("prlimit")):
        raise BoxUnavailable(
            f"{Tier.CONTAINER.title}: only root, with util-linux, can step down to it"
        )
    user = secrets.choice(_OTHERS)
    scratch = tempfile.TemporaryDirectory(prefix="undertorch-")
    root = Path(scratch.name)
    house, home = root / "house", root / "home"
    mounts.copy_parts(house, probes, inside)
    home.mkdir()
    os.chown(home, user, user)
    home.chmod(0o700)
    root.chmod(0o711)
    command = _warm_command(
        Path(sys.executable),
        str(house / mounts.PROBES.relative_to(mounts.HOUSE)),
        preload,
        str(house / mounts.INSIDE.relative_to(mounts.HOUSE)) if inside else None,
        control,
    )
    module = command.index("-m")
    command[module : module + 2] = ["-c", _WARM_WITHOUT_POWERS]
    step = [
        "prlimit", f"--nproc={_TASKS}", "--",
        "setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs",
        "--inh-caps=-all", "--bounding-set=-all", "--",
    ]  # fmt: skip
    environment = _environment(str(house)) | {"HOME": str(home), "TMPDIR": str(home)}
    started = _popen([*step, *command, "--bare"], environment, (control,), str(home))
    return replace(started, scratch=scratch, user=user)


def _bare(probes: Path, preload: Sequence[str], inside: Path | None, control: int) -> Started:
    scratch = tempfile.TemporaryDirectory(prefix="undertorch-")
    interpreter = Path(sys.executable)
    command = _warm_command(
        interpreter,
        str(probes.resolve()),
        preload,
        str(inside.resolve()) if inside else None,
        control,
    )
    environment = _environment(str(Path(grader.__file__).resolve().parent.parent))
    environment |= {"HOME": scratch.name, "TMPDIR": scratch.name}
    return replace(
        _popen([*command, "--bare"], environment, (control,), scratch.name), scratch=scratch
    )


def _warm_command(
    interpreter: Path, probes: str, preload: Sequence[str], inside: str | None, control: int
) -> list[str]:
    # -s: no packages from a home folder; -P: nothing is imported from the current folder.
    command = [str(interpreter), "-s", "-P", "-m", "grader.inside.process.warm", *preload]
    return [
        *command,
        f"--control={control}",
        f"--probes={probes}",
        f"--inside={inside or 'grader.inside.serve'}",
    ]


def _environment(pythonpath: str) -> dict[str, str]:
    """The whole environment of the box; nothing of the host's comes along."""
    return {
        "PATH": f"{mounts.shown_at(Path(sys.executable)).parent}:/usr/bin:/bin",
        "PYTHONPATH": pythonpath,
        "PYTHONDONTWRITEBYTECODE": "1",
        # The order of a set of strings is the same whenever a submission is graded.
        "PYTHONHASHSEED": "0",
        "HOME": "/tmp/home",
        "TMPDIR": "/tmp",
        "USER": "student",
        "LOGNAME": "student",
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",
        # One thread: results do not depend on the machine's width, --jobs fills the cores, and
        # a fork after a parallel operation (two gloo ranks after a matmul) cannot hang.
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def _popen(
    command: list[str], environment: dict[str, str], descriptors: tuple[int, ...], cwd: str = "/"
) -> Started:
    complaints = tempfile.TemporaryFile()  # noqa: SIM115 (closed by clean_up)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=complaints,
        env=environment,
        cwd=cwd,
        pass_fds=descriptors,
        start_new_session=True,  # Ctrl-C in the instructor's terminal is ours to handle
    )
    return Started(process, complaints)
