"""Finds out what this machine can do for a box, and says what to mend."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import torch

from grader.box import nothing
from grader.box.box import Box
from grader.box.launch import confinement
from grader.box.tiers import BoxUnavailable, Tier
from grader.inside.process import seccomp
from grader.verdict.torch_internals import other_torch

_APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_DEBIAN_SWITCH = Path("/proc/sys/kernel/unprivileged_userns_clone")
_LIMIT = Path("/proc/sys/user/max_user_namespaces")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: what was found and, where it is not well, what mends it."""

    name: str
    ok: bool
    found: str
    mend: str = ""


def diagnose() -> list[Finding]:
    """Look at torch and its accelerator, then at all a box needs, starting one; the last finding names the tier."""
    system, bwrap = _system(), _bwrap()
    findings = [system, bwrap, _user_namespaces(), _step_down_tool(), _seccomp()]
    if system.ok and bwrap.ok:
        findings.append(_bwrap_starts())
        findings.append(_box())
    works = all(finding.ok for finding in findings)
    tier = Tier.NAMESPACES.title if works else "none that confines"
    mend = (
        ""
        if works
        else (
            "mend the above; --no-sandbox-i-trust-these-submissions runs without a box, for code as good as your own"
        )
    )
    return [_torch(), _accelerator(), *findings, Finding("tier", works, tier, mend)]


def _torch() -> Finding:
    found = torch.__version__
    return Finding("torch", other_torch() is None, found, other_torch() or "")


def _accelerator() -> Finding:
    """Name what torch sees: for programs of one's own, since a box has no devices."""
    seen = torch.accelerator.current_accelerator(check_available=True)
    found = "none" if seen is None else f"{seen.type}, {torch.accelerator.device_count()} in all"
    return Finding("accelerator", True, f"{found}; checks run on the CPU")


def _system() -> Finding:
    found = f"{platform.system()} {platform.release()} on {platform.machine()}"
    mend = "grade on Linux: a virtual machine, a container host, or WSL 2 will do"
    return Finding("system", platform.system() == "Linux", found, mend)


def _bwrap() -> Finding:
    path = shutil.which("bwrap")
    if path is None:
        return Finding("bubblewrap", False, "not installed", "apt-get install bubblewrap")
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return Finding("bubblewrap", done.returncode == 0, done.stdout.strip() or done.stderr.strip())


def _user_namespaces() -> Finding:
    name = "user namespaces"
    if _number(_LIMIT) == 0:
        return Finding(name, False, f"{_LIMIT} is 0", "sysctl user.max_user_namespaces=15000")
    if os.geteuid() != 0 and _number(_DEBIAN_SWITCH) == 0:
        return Finding(
            name, False, f"{_DEBIAN_SWITCH} is 0", "sysctl kernel.unprivileged_userns_clone=1"
        )
    if _number(_APPARMOR) == 1:
        # Not yet a failure: bwrap may have its profile, and the trial start below decides.
        return Finding(name, True, "restricted by AppArmor to programs with a profile")
    return Finding(name, True, "allowed")


def _step_down_tool() -> Finding:
    if os.geteuid() != 0:
        return Finding("user", True, "an ordinary user")
    path = shutil.which("setpriv")
    return Finding(
        "user", path is not None, f"root, with setpriv: {path}", "apt-get install util-linux"
    )


def _seccomp() -> Finding:
    mend = "add this machine's system call numbers to grader/inside/process/seccomp.py"
    return Finding("seccomp table", seccomp.supported(), platform.machine(), mend)


def _bwrap_starts() -> Finding:
    arguments = [
        "bwrap",
        *confinement(),
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--",
        "/bin/true",
    ]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return Finding("bubblewrap starts", True, "yes")
    return Finding("bubblewrap starts", False, done.stderr.strip(), _mend_for_bwrap())


_FOR_APPARMOR = """\
Ubuntu 24.04 and later let only programs with an AppArmor profile make user namespaces (containers/bubblewrap#632). \
Put this into /etc/apparmor.d/bwrap and run `systemctl reload apparmor`:
    abi <abi/4.0>,
    include <tunables/global>
    profile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }
The profile bwrap-userns-restrict that Ubuntu offers is not enough: it takes all powers from what runs in bwrap, and \
each submission is boxed once more there. Or switch the rule off: sysctl kernel.apparmor_restrict_unprivileged_userns=0"""

_FOR_CONTAINERS = """\
A container's default seccomp profile refuses bwrap (containers/bubblewrap#505). Start the container with \
--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined \
and grade as an ordinary user in it (root needs --cap-add SYS_ADMIN too), or grade on the host"""


def _mend_for_bwrap() -> str:
    if _number(_APPARMOR) == 1:
        return _FOR_APPARMOR
    if in_container():
        return _FOR_CONTAINERS
    return "see the message; an ordinary user needs unprivileged user namespaces"


def _box() -> Finding:
    """Start a real box without torch: it confines one child before it says that it is ready."""
    here = Path(nothing.__file__)
    try:
        with Box(here, inside=here):
            return Finding("box", True, "started, and a child in it was confined")
    except BoxUnavailable as trouble:
        return Finding("box", False, str(trouble), _mend_for_bwrap())


def in_container() -> bool:
    """Do we run in Docker, Podman or their like?"""
    return any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv"))


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
