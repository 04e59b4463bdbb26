"""What student code cannot see or do from inside a child."""

import os
import tempfile
from pathlib import Path

import pytest

from grader.box import mounts
from grader.box.box import Box
from grader.box.tiers import BoxUnavailable
from tests.box.conftest import PROBES, STANDIN, ask, raised

SYSTEM_CALL = """
    import ctypes, os
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    answer = libc.syscall({arguments})
    result = [answer, os.strerror(ctypes.get_errno())]
"""


def test_a_secret_of_the_host_is_nowhere(tmp_path, monkeypatch):
    (tmp_path / "secret.txt").write_text("the answer")
    monkeypatch.setenv("UNDERTORCH_SECRET", "swordfish")
    with Box(PROBES, inside=STANDIN) as box, box.open() as child:
        assert (
            ask(child, f"import os; result = os.path.exists({str(tmp_path / 'secret.txt')!r})")
            is False
        )
        assert ask(child, "import os; result = 'swordfish' in repr(os.environ)") is False
        everything = """
            import os
            result = False
            for pid in filter(str.isdigit, os.listdir('/proc')):
                try: result |= b'swordfish' in open(f'/proc/{pid}/environ', 'rb').read()
                except PermissionError: pass
        """
        assert ask(child, everything) is False


def test_the_box_holds_what_it_must_and_no_more(child):
    listing = "import os; result = sorted(os.listdir({!r}))"
    assert ask(child, listing.format("/undertorch")) == ["chapter", "grader", "inside.py"]
    assert ask(child, listing.format("/undertorch/chapter")) == ["probes"]
    assert ask(child, listing.format("/undertorch/grader")) == ["__init__.py", "evidence", "inside"]
    assert ask(child, listing.format("/undertorch/grader/evidence")) == ["__init__.py", "wire"]
    assert set(ask(child, listing.format("/etc"))) <= {
        "alternatives", "group", "hosts", "ld.so.cache", "nsswitch.conf", "passwd"
    }  # fmt: skip
    assert ask(child, listing.format("/home") + " if os.path.exists('/home') else []") == []


def test_no_source_of_ours_is_found_under_any_other_name(child):
    # The repository, its checks and its tests, by the host's paths and by a walk of sys.path.
    repository = Path(__file__).resolve().parents[2]
    for folder in ("grader", "tests", "solutions", "chapters"):
        assert (
            ask(child, f"import os; result = os.path.exists({str(repository / folder)!r})") is False
        )
    walk = """
        import os, sys
        result = [p for p in sys.path if os.path.isdir(os.path.join(p, 'grader')) and not p.startswith('/undertorch')
                  and os.listdir(os.path.join(p, 'grader'))]
    """
    assert ask(child, walk) == []


def test_an_installed_copy_is_masked(monkeypatch):
    # Stands in for an install: a `grader` and an editable pointer in a folder that the box sees,
    # and what a wheel lays beside it. A virtual environment's lib64 is a link to its lib.
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as folder,
        tempfile.TemporaryDirectory(dir="/var/tmp") as parent,
    ):
        site = Path(folder)
        site.chmod(0o755)
        (site / "grader").mkdir()
        (site / "grader" / "mistakes.py").write_text("secret = 1")
        for name in ("chapters", "solutions"):
            (site / name).mkdir()
            (site / name / "formats.ipynb").write_text("the answer")
        (site / "undertorch.pth").write_text(str(Path(__file__).resolve().parents[2]))
        link = Path(parent) / "lib64"
        link.symlink_to(site)
        link.parent.chmod(0o755)
        found = list(mounts._interpreter_folders())
        monkeypatch.setattr(mounts, "_interpreter_folders", lambda: iter([*found, site, link]))
        monkeypatch.syspath_prepend(str(site))
        with Box(PROBES, inside=STANDIN) as box, box.open() as child:
            for seen in (folder, str(link)):
                assert ask(child, f"import os; result = sorted(os.listdir({seen!r}))") == [
                    "chapters",
                    "grader",
                    "solutions",
                    "undertorch.pth",
                ]
                for name in ("chapters", "grader", "solutions"):
                    assert ask(child, f"import os; result = os.listdir({f'{seen}/{name}'!r})") == []
                assert ask(child, f"result = open({seen + '/undertorch.pth'!r}).read()") == ""


def test_a_course_that_every_box_would_show_is_refused(tmp_path):
    mounts.refuse_shown(tmp_path)
    with pytest.raises(BoxUnavailable, match="put the course's folder somewhere else"):
        mounts.refuse_shown(Path("/usr/src/app"))


@pytest.mark.parametrize(
    "path",
    ["/", "/usr", "/undertorch", "/undertorch/grader", "/etc", "/dev", "/proc/sys/kernel", "/root"],
)
def test_nothing_outside_the_scratch_folders_is_writable(child, path):
    source = f"import os; os.close(os.open({path + '/new'!r}, os.O_CREAT | os.O_WRONLY))"
    assert raised(child, source).split(":")[0] in {
        "OSError",
        "PermissionError",
        "FileNotFoundError",
    }


@pytest.mark.parametrize(
    "path",
    ["/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger",
     "/proc/1/mem", "/proc/self/mem", "/proc/self/oom_score_adj", "/undertorch/chapter/probes/sample.py"],
)  # fmt: skip
def test_opening_for_write_is_refused(child, path):
    assert raised(child, f"import os; os.open({path!r}, os.O_WRONLY)") != "nothing"


@pytest.mark.parametrize("path", ["/proc/1/mem", "/proc/1/environ", "/proc/1/fd"])
def test_pid_1_cannot_be_read(child, path):
    assert (
        raised(
            child, f"import os; os.listdir({path!r}) if {path!r}.endswith('fd') else open({path!r})"
        )
        != "nothing"
    )


def test_the_network_is_the_child_alone(child):
    out = "import socket; socket.create_connection(('1.1.1.1', 53), 2)"
    assert "unreachable" in raised(child, out)
    assert raised(child, "import socket; socket.getaddrinfo('pytorch.org', 443)").startswith(
        "gaierror"
    )
    assert ask(child, "import socket; result = [n for _, n in socket.if_nameindex()]") == ["lo"]
    loopback = """
        import socket
        with socket.create_server(('127.0.0.1', 0)) as server:
            with socket.create_connection(server.getsockname(), 2):
                result = True
    """
    assert ask(child, loopback)


def test_the_hosts_loopback_is_another(child):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert "refused" in raised(
            child, f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
        )


@pytest.mark.parametrize("family", [17, 38, 40])  # packet, crypto, vsock
def test_other_socket_families_are_shut(child, family):
    assert "not supported" in raised(
        child, f"import socket; socket.socket({family}, socket.SOCK_STREAM)"
    )


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86_64")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("unshare", "272, 0x10000000"),
        ("setns", "308, 0, 0"),
        ("mount", "165, b'none', b'/tmp', b'tmpfs', 0, None"),
        ("umount2", "166, b'/tmp', 0"),
        ("pivot_root", "155, b'/tmp', b'/tmp'"),
        ("ptrace", "101, 0, 0, 0, 0"),
        ("process_vm_readv", "310, 1, None, 0, None, 0, 0"),
        ("bpf", "321, 0, None, 0"),
        ("perf_event_open", "298, None, 0, -1, -1, 0"),
        ("keyctl", "250, 0, 0, 0"),
        ("userfaultfd", "323, 1"),
        ("io_uring_setup", "425, 1, None"),
        ("open_tree", "428, -100, b'/', 1"),
        ("fsopen", "430, b'tmpfs', 0"),
        ("clone with a user namespace", "56, 0x10000011, 0, 0, 0, 0"),
    ],
)
def test_system_calls_are_refused(child, name, arguments):
    assert ask(child, SYSTEM_CALL.format(arguments=arguments)) == [-1, "Operation not permitted"]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86_64")
@pytest.mark.parametrize("arguments", ["435, None, 0", "319, b'x', 0", "29, 0, 4096, 0o1600"])
def test_system_calls_with_an_older_road_are_absent(child, arguments):
    assert ask(child, SYSTEM_CALL.format(arguments=arguments)) == [-1, "Function not implemented"]


def test_no_capability_is_left(child):
    status = ask(child, "result = open('/proc/self/status').read()")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert {fields[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {
        "0" * 16
    }
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
    assert set(fields["Uid"].split()) == {"1000"}


def test_the_only_descriptors_are_the_channel_and_nowhere(child):
    source = """
        import os
        result = sorted(os.readlink(f'/proc/self/fd/{n}').split(':')[0] for n in (0, 1, 2, sock.fileno()))
        for number in set(range(1024)) - {0, 1, 2, sock.fileno()}:
            try: os.fstat(number)
            except OSError: continue
            result.append(number)
    """
    assert ask(child, source) == ["/dev/null", "/dev/null", "/dev/null", "socket"]


def test_other_processes_cannot_be_signalled(child):
    assert raised(child, "import os; os.kill(3, 9)").startswith("ProcessLookupError")
    assert ask(child, "import os; os.kill(1, 9); os.kill(1, 2); result = 1") == 1


def test_terminals_are_not_shared(child):
    assert ask(child, "import os; result = os.listdir('/dev/pts')") == []
    assert raised(child, "open('/dev/tty')") != "nothing"


def test_a_subprocess_is_no_way_out(child):
    source = """
        import subprocess
        done = subprocess.run(['sh', '-c', 'id -u; ls /work /home /mnt /var; unshare -U true'], capture_output=True, text=True)
        result = [done.stdout, done.returncode]
    """
    output, code = ask(child, source)
    assert output.splitlines()[0] == "1000"
    assert code != 0
