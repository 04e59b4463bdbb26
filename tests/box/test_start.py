"""How a box starts: as root, as an ordinary user, bare, or not at all; and how it goes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import torch

import grader
from grader.box import launch
from grader.box.box import Box
from grader.box.tiers import BoxUnavailable, Tier
from grader.evidence.outcome import Ended, Outcome
from grader.inside.process.budget import MIB, Budget
from grader.instructor import doctor
from tests.box.conftest import PROBES, STANDIN, ask, raised

REPOSITORY = Path(__file__).resolve().parents[2]
NOBODY = 65534


def lives(process):
    """Does it run? bwrap leaves its first process for the system's init to bury."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_the_tier_is_carried(box):
    assert box.tier is Tier.NAMESPACES


def test_without_bwrap_there_is_no_box(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BoxUnavailable, match="apt-get install bubblewrap"):
        Box(PROBES, inside=STANDIN)
    findings = {finding.name: finding for finding in doctor.diagnose()}
    assert not findings["bubblewrap"].ok
    assert not findings["tier"].ok


def test_a_bwrap_that_fails_is_reported_and_never_replaced(tmp_path, monkeypatch):
    fake = tmp_path / "bwrap"
    fake.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(BoxUnavailable, match="No permissions to create a new namespace"):
        Box(PROBES, inside=STANDIN)


@pytest.mark.parametrize(
    ("restricted", "container", "words"),
    [(1, False, "#632"), (None, True, "#505"), (None, False, "unprivileged user namespaces")],
)
def test_the_doctor_knows_the_usual_troubles(monkeypatch, restricted, container, words):
    monkeypatch.setattr(doctor, "_number", lambda path: restricted)
    monkeypatch.setattr(doctor, "in_container", lambda: container)
    assert words in doctor._mend_for_bwrap()


def test_another_torch_weakens_no_box(monkeypatch):
    monkeypatch.setattr(doctor, "other_torch", lambda: "verified on another version")
    findings = {finding.name: finding for finding in doctor.diagnose()}
    assert not findings["torch"].ok
    assert findings["tier"].ok


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (None, "none; checks run on the CPU"),
        (torch.device("cuda"), "cuda, 2 in all; checks run on the CPU"),
    ],
)
def test_the_doctor_names_the_accelerator_and_where_checks_run(monkeypatch, seen, said):
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda **_: seen)
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    (found,) = [finding for finding in doctor.diagnose() if finding.name == "accelerator"]
    assert (found.ok, found.found) == (True, said)


def test_the_doctor_finds_this_machine_well():
    assert [finding for finding in doctor.diagnose() if not finding.ok] == []


def test_tiers_that_are_not_built_are_refused(tmp_path):
    with pytest.raises(BoxUnavailable, match="not built"):
        launch.start(Tier.LANDLOCK, PROBES, (), None, 0)


def test_a_failed_import_is_told():
    with pytest.raises(BoxUnavailable, match="no_such_module"):
        Box(PROBES, ("no_such_module",), inside=STANDIN)


def test_a_thread_in_the_warm_process_is_refused(tmp_path):
    inside = tmp_path / "inside.py"
    inside.write_text(
        "import threading\n"
        "def prepare(probes, preload): threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "def serve(sock): pass\n"
    )
    with pytest.raises(BoxUnavailable, match="2 threads run"):
        Box(PROBES, inside=inside)


def test_a_closed_box_has_no_processes_and_its_children_are_gone():
    box = Box(PROBES, inside=STANDIN)
    child = box.open()
    ask(child, "import os\nif os.fork() == 0:\n    os.setsid()\n    while True: pass")
    family = [psutil.Process(box._started.process.pid)]
    family += family[0].children(recursive=True)
    assert len(family) >= 7  # bwrap twice, warm, keeper, pid 1, student, daemon
    box.close()
    assert not any(lives(process) for process in family)
    with pytest.raises(Ended) as ended:
        ask(child, "result = 1")
    assert ended.value.outcome is Outcome.KILLED
    child.close()
    with pytest.raises(BoxUnavailable, match="gone"):
        box.open()


def test_nothing_outlives_a_killed_host():
    host = subprocess.Popen(
        [sys.executable, "-c", _HOST],
        stdout=subprocess.PIPE,
        cwd=REPOSITORY,
    )
    assert host.stdout is not None
    assert host.stdout.readline() == b"running\n"
    family = psutil.Process(host.pid).children(recursive=True)
    assert len(family) >= 7
    host.kill()
    host.wait()
    _, alive = psutil.wait_procs(family, timeout=300)
    assert not alive


_HOST = """
from pathlib import Path
from grader.box.box import Box
from tests.box.conftest import PROBES, STANDIN, ask
box = Box(PROBES, inside=STANDIN)
child = box.open()
ask(child, "import os\\nif os.fork() == 0:\\n    os.setsid()\\n    while True: pass")
print("running", flush=True)
child.ask(b"import signal; signal.pause()")
"""


def test_trusted_code_runs_bare_and_says_so():
    with Box(PROBES, inside=STANDIN, tier=Tier.NONE) as box:
        assert box.tier is Tier.NONE
        assert "NO SANDBOX" in box.tier.title
        with box.open() as child:
            assert ask(child, "import os; result = os.getuid()") == os.getuid()
            assert (
                ask(child, "import os; result = 'HOME' in os.environ and len(os.environ) < 20")
                is True
            )
        with box.open(Budget(cpu_seconds=0.3)) as child, pytest.raises(Ended) as ended:
            ask(child, "while True: pass")
        assert ended.value.outcome is Outcome.TIMED_OUT
        with box.open(Budget(memory_bytes=128 * MIB)) as child, pytest.raises(Ended) as ended:
            ask(child, "hoard = []\nwhile True: hoard.append(b'x' * 2**20)")
        assert ended.value.outcome is Outcome.OUT_OF_MEMORY


def test_a_daemon_of_bare_code_is_ended_too():
    with Box(PROBES, inside=STANDIN, tier=Tier.NONE) as box:
        with box.open() as child:
            source = """
                import os, signal
                if os.fork() == 0:
                    os.setsid()
                    if os.fork() == 0:
                        open('pid', 'w').write(str(os.getpid()))
                        signal.pause()
                    os._exit(0)
                os.wait()
                while not os.path.exists('pid') or not open('pid').read(): pass
                result = int(open('pid').read())
            """
            daemon = psutil.Process(ask(child, source))
            assert daemon.is_running()
        assert not lives(daemon)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_in_tier_2_another_user_runs_it_who_has_no_powers(tmp_path):
    (tmp_path / "results").mkdir(mode=0o755)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with Box(PROBES, inside=STANDIN, tier=Tier.CONTAINER) as box, box.open() as child:
        user = ask(child, "import os; result = os.getuid()")
        assert user not in (0, NOBODY)
        assert "Permission denied" in raised(child, f"open({str(tmp_path / 'results/a')!r}, 'w')")
        assert "Permission denied" in raised(child, f"import os; os.listdir({str(closed)!r})")
        assert "PermissionError" in raised(child, "import os; os.setuid(0)")
        limit = "import resource; result = resource.getrlimit(resource.RLIMIT_NPROC)[1]"
        assert ask(child, limit) == 512
        assert "not permitted" in raised(child, UNSHARE)
        assert ask(child, "import grader; result = grader.__path__[0]") != grader.__path__[0]
        assert ask(child, "open('mine', 'w').write('1'); result = open('mine').read()") == "1"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_in_tier_2_nothing_outlives_the_box():
    with Box(PROBES, inside=STANDIN, tier=Tier.CONTAINER) as box:
        with box.open(Budget(wall_seconds=5)) as child, pytest.raises(Ended) as ended:
            ask(child, DAEMON_WITHOUT_KEEPER)
        assert ended.value.outcome is Outcome.KILLED
        mine = [p for p in psutil.process_iter(["uids"]) if p.uids().real == box._started.user]
        assert any(DAEMON in p.cmdline() for p in mine)
    assert not any(lives(process) for process in mine)


DAEMON = "undertorch-daemon"
DAEMON_WITHOUT_KEEPER = f"""
import os, signal, time
keeper = os.getppid()
keeper = int(open(f'/proc/{{keeper}}/stat').read().rpartition(')')[2].split()[1])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp('sh', ['sh', '-c', 'sleep 300; :', {DAEMON!r}])
    os._exit(0)
os.wait()
time.sleep(0.2)
os.kill(keeper, signal.SIGKILL)
signal.pause()
"""

UNSHARE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x10000000):
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as an ordinary user already")
def test_as_an_ordinary_user():
    """Run the other files of this folder as nobody, in a mount namespace where nobody can reach us.

    There, /root (which others may not enter) holds nothing but what the interpreter needs.
    """
    if shutil.which("setpriv") is None or shutil.which("unshare") is None:
        pytest.skip("needs util-linux")
    step_down = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups"
    tests = [f"tests/box/{name}.py" for name in ("test_life", "test_walls", "test_torch")]
    run = f"exec {step_down} {sys.executable} -m pytest -q -p no:cacheprovider {' '.join(tests)}"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-ec", f"{_open_the_way()}\ncd {REPOSITORY}\n{run}"],
        capture_output=True,
        text=True,
        check=False,
        env={
            "PATH": os.environ["PATH"],
            "HOME": "/tmp",
            "PYTHONPATH": str(REPOSITORY),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


def _open_the_way() -> str:
    """Return shell commands that leave, of a place closed to others, what this run needs of it."""
    needed = [Path(sys.base_prefix).resolve(), REPOSITORY.resolve()]
    tops = {path: Path(*path.parts[:2]) for path in needed}
    closed = [path for path in needed if tops[path].stat().st_mode & 0o005 != 0o005]
    keep = [
        f"mkdir /mnt/{number}; mount --bind {path} /mnt/{number}"
        for number, path in enumerate(closed)
    ]
    hide = [f"mount -t tmpfs -o mode=755 none {top}" for top in {tops[p] for p in closed}]
    show = [
        f"mkdir -p {path}; mount --bind /mnt/{number} {path}" for number, path in enumerate(closed)
    ]
    return "\n".join(["mount -t tmpfs none /mnt", *keep, *hide, *show])
