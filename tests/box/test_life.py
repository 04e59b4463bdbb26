"""A child's life and each way it can end, under its own name."""

from pathlib import Path

import psutil
import pytest

from grader.evidence.outcome import Ended, Outcome
from grader.evidence.wire.channel import FRAME_LIMIT, ChannelError
from grader.inside.process.budget import MIB, Budget
from tests.box.conftest import ask, raised


def ending(box, source, **limits):
    """Return how a child ends that runs `source`, and check that it stays ended."""
    budget = Budget(**{"wall_seconds": 10.0, "cpu_seconds": 10.0, **limits})
    with box.open(budget) as child:
        with pytest.raises(Ended) as first:
            ask(child, source)
        with pytest.raises(Ended) as again:
            ask(child, "result = 1")
    assert (again.value.outcome, again.value.detail) == (first.value.outcome, first.value.detail)
    assert not survivors(box)
    return first.value


def survivors(box):
    """Return the processes of children: those three pid namespaces deep (host, box, child)."""
    found = []
    for process in psutil.Process(box._started.process.pid).children(recursive=True):
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):  # a keeper that was leaving
            continue
        if len(next(line for line in status.splitlines() if line.startswith("NSpid")).split()) > 3:
            found.append(process)
    return found


def test_answers_and_keeps_its_names_apart(child):
    assert ask(child, "import sys; sys.left_behind = 5; result = 1 + 1") == 2
    assert ask(child, "import sys; result = sys.left_behind") == 5


def test_children_share_nothing(box):
    with box.open() as one, box.open() as two:
        ask(one, "import builtins; builtins.mine = 1; open('/tmp/mine', 'w').write('x')")
        ask(one, "open('/dev/shm/mine', 'w').write('x')")
        assert ask(two, "import builtins; result = hasattr(builtins, 'mine')") is False
        assert ask(two, "import os; result = os.listdir('/tmp') + os.listdir('/dev/shm')") == [
            "home"
        ]
        pids = ask(two, "import os; result = [p for p in os.listdir('/proc') if p.isdigit()]")
        assert sorted(pids) == ["1", "2"]
        listens = "import socket; s = socket.socket(socket.AF_UNIX); "
        ask(one, f"import sys; {listens} s.bind('\\0mine'); s.listen(); sys.mine = s")
        assert "refused" in raised(two, f"{listens} s.connect('\\0mine')")
        queue = "import ctypes; result = ctypes.CDLL(None).mq_open(b'/mine', {}, 0o600, None)"
        assert ask(one, queue.format("0o102")) >= 0
        assert ask(two, queue.format("0o2")) == -1
        assert ask(one, "import random; result = random.random()") != ask(
            two, "import random; result = random.random()"
        )


def test_the_death_of_one_leaves_the_other(box):
    with box.open() as one, box.open() as two:
        with pytest.raises(Ended):
            ask(one, "import os; os._exit(1)")
        assert ask(two, "result = 3") == 3


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import os; os._exit(3)", "exit code 3"),
        ("raise SystemExit(4)", "exit code 4"),
        ("raise SystemExit('sorry')", "exit code 1"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("import os; os.abort()", "SIGABRT"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "SIGTERM"),
    ],
)
def test_crashes(box, source, words):
    ended = ending(box, source)
    assert ended.outcome is Outcome.CRASHED
    assert words in ended.detail


def test_an_endless_loop_uses_up_its_processor_time(box):
    ended = ending(box, "while True: pass", cpu_seconds=0.3)
    assert (ended.outcome, "processor time" in ended.detail) == (Outcome.TIMED_OUT, True)


def test_a_loop_in_a_grandchild_counts(box):
    source = """
        import os
        if os.fork() == 0:
            while True: pass
        os.wait()
    """
    assert ending(box, source, cpu_seconds=0.3).outcome is Outcome.TIMED_OUT


def test_sleeping_code_runs_out_of_wall_time(box):
    ended = ending(box, "import time; time.sleep(1000)", wall_seconds=0.2)
    assert (ended.outcome, ended.detail) == (
        Outcome.TIMED_OUT,
        "Your code gave no answer within 0.2 s.",
    )


def test_patience_is_for_all_answers_together(box):
    budget = Budget(wall_seconds=10.0, waiting_seconds=2.0)
    with box.open(budget) as child:
        ask(child, "import time; time.sleep(0.5); result = 1")
        with pytest.raises(Ended, match=r"more than 2 s in all"):
            ask(child, "import time; time.sleep(1.6); result = 1")


def test_ignored_signals_do_not_help(box):
    source = """
        import signal
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        while True: pass
    """
    assert ending(box, source, cpu_seconds=0.3).outcome is Outcome.TIMED_OUT


def test_memory_of_one_process(box):
    source = "hoard = []\nwhile True: hoard.append(b'x' * 2**20)"
    ended = ending(box, source, memory_bytes=128 * MIB)
    assert (ended.outcome, "128 MiB" in ended.detail) == (Outcome.OUT_OF_MEMORY, True)


def test_memory_of_many_processes(box):
    source = """
        import os, signal
        for _ in range(8):
            if os.fork() == 0:
                hoard = b'x' * (32 * 2**20)
                signal.pause()
        signal.pause()
    """
    assert ending(box, source, memory_bytes=128 * MIB).outcome is Outcome.OUT_OF_MEMORY


def test_memory_that_forks_share_counts_once(box):
    source = """
        import os, signal, time
        hoard = b'x' * (64 * 2**20)
        pids = []
        for _ in range(5):
            pids.append(os.fork())
            if pids[-1] == 0:
                signal.pause()
        time.sleep(0.2)  # the watchdog looks every 0.05 s
        result = len(hoard)
    """
    with box.open(Budget(memory_bytes=192 * MIB)) as child:
        assert ask(child, source) == 64 * MIB


def test_files_in_memory_count(box):
    source = """
        import signal
        for n in range(3):
            open(f'/dev/shm/{n}', 'wb').write(b'x' * (60 * 2**20))
        signal.pause()
    """
    assert ending(box, source, memory_bytes=128 * MIB).outcome is Outcome.OUT_OF_MEMORY


def test_shared_memory_that_no_process_shows_counts(box):
    source = """
        import mmap, signal
        segments = []
        for _ in range(5):
            segments.append(mmap.mmap(-1, 40 * 2**20))
            segments[-1].write(b'x' * (40 * 2**20))
            segments[-1].madvise(mmap.MADV_DONTNEED)
        signal.pause()
    """
    assert ending(box, source, memory_bytes=128 * MIB).outcome is Outcome.OUT_OF_MEMORY


@pytest.mark.parametrize(
    "filled",
    [
        "fill(pair := socket.socketpair()); kept.append(pair)",
        "fill(pair := connected()); kept.append(pair)",
        "fill(pair := socket.socketpair()); travels(pair)",
    ],
    ids=["unix", "tcp", "in flight"],
)
def test_what_sockets_hold_counts(box, filled):
    source = f"""
        import os, signal, socket
        def fill(pair):
            for end in pair:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**30)
                end.setblocking(False)
                try:
                    while True:
                        end.send(b'x' * 2**16)
                except BlockingIOError:
                    pass
        def connected():
            with socket.create_server(('127.0.0.1', 0)) as server:
                return socket.create_connection(server.getsockname()), server.accept()[0]
        def travels(pair):  # and nobody has it open then
            for end in pair:
                socket.send_fds(over, [b'x'], [end.fileno()])
                end.close()
        kept, (over, to) = [], socket.socketpair()
        for _ in range(3):
            if os.fork() == 0:
                for _ in range(400):
                    {filled}
                signal.pause()
        signal.pause()
    """
    ended = ending(box, source)
    assert ended.outcome is Outcome.OUT_OF_MEMORY
    assert "sockets" in ended.detail


def test_sockets_that_are_read_are_free(box):
    source = """
        import socket, time
        pairs = [socket.socketpair() for _ in range(100)]
        for one, other in pairs:
            one.sendall(b'x' * 2**16)
            assert len(other.recv(2**16)) == 2**16
        time.sleep(0.2)  # the watchdog looks every 0.05 s
        result = len(pairs)
    """
    with box.open() as child:
        assert ask(child, source) == 100


def test_reserved_memory_that_is_not_used_is_free(box):
    source = """
        import mmap, time
        sparse = mmap.mmap(-1, 2**30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        time.sleep(0.2)  # the watchdog looks every 0.05 s
        result = len(sparse)
    """
    with box.open(Budget(memory_bytes=128 * MIB)) as child:
        assert ask(child, source) == 2**30


def test_files_are_bounded(child):
    flood = "open('/tmp/a', 'wb').write(b'x' * (65 * 2**20))"
    assert "File too large" in raised(child, flood)
    many = "for n in range(9): open(f'/tmp/{n}', 'wb').write(b'x' * (60 * 2**20))"
    assert "No space left" in raised(child, many)


def test_a_fork_bomb_is_stopped(box):
    source = """
        import os
        while True:
            try: os.fork()
            except OSError: pass
    """
    assert ending(box, source, cpu_seconds=0.5, processes=16).outcome is Outcome.TIMED_OUT


def test_forks_beyond_the_budget_are_refused(box):
    source = """
        import os, signal
        count = 0
        try:
            while True:
                if os.fork() == 0:
                    signal.pause()
                count += 1
        except BlockingIOError:
            result = count
    """
    with box.open(Budget(processes=16)) as child:
        assert 10 <= ask(child, source) <= 16


def test_a_daemon_goes_with_its_child(box):
    source = """
        import os, signal
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                signal.pause()
            os._exit(0)
        os.wait()
        result = os.getpid()
    """
    with box.open() as child:
        assert ask(child, source) == 2
        assert len(survivors(box)) == 3  # pid 1, the student's process, the daemon
    assert not survivors(box)


def test_orphans_are_buried(child):
    source = """
        import os
        if os.fork() == 0:
            if os.fork() == 0:
                os._exit(0)
            os._exit(0)
        os.wait()
        while len([p for p in os.listdir('/proc') if p.isdigit()]) > 2: pass
        result = True
    """
    assert ask(child, source)


def test_a_reply_too_large_to_announce(box):
    source = f"sock.sendall(({FRAME_LIMIT} + 1).to_bytes(8, 'big')); import signal; signal.pause()"
    ended = ending(box, source)
    assert (ended.outcome, "cannot be read" in ended.detail) == (Outcome.KILLED, True)


def test_a_malformed_reply(box):
    ended = ending(box, "sock.sendall(b'this is no frame at all'); import signal; signal.pause()")
    assert ended.outcome is Outcome.KILLED


def test_a_reply_cut_short(box):
    assert (
        ending(box, "sock.sendall(bytes(7) + b'9abc'); import os; os._exit(0)").outcome
        is Outcome.CRASHED
    )


def test_a_reply_that_drips(box):
    source = """
        import time
        sock.sendall((1000).to_bytes(8, 'big'))
        while True:
            sock.sendall(b'x')
            time.sleep(0.05)
    """
    assert ending(box, source, wall_seconds=0.3).outcome is Outcome.TIMED_OUT


def test_a_reply_to_nothing(box):
    with box.open() as child:
        assert child.ask(b"sock.sendall((bytes(7) + b'\\x02{}') * 2)") == b"{}"
        with pytest.raises(Ended) as ended:
            ask(child, "result = 2")
    assert "before it was asked" in ended.value.detail


def test_an_interrupted_question_ends_the_child(box, monkeypatch):
    def interrupt(*_):
        monkeypatch.undo()  # closing reads too
        raise KeyboardInterrupt

    with box.open() as child:
        monkeypatch.setattr("grader.box.child.receive_frame", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ask(child, "result = 1")
        with pytest.raises(Ended):
            ask(child, "result = 2")


def test_a_closed_channel(box):
    ended = ending(box, "sock.close(); import signal; signal.pause()")
    assert (ended.outcome, "closed the channel" in ended.detail) == (Outcome.KILLED, True)


def test_a_fork_of_the_student_cannot_answer_in_its_place(child):
    source = """
        import os
        pid = os.fork()
        if pid: os.waitpid(pid, 0)
        result = bool(pid)
    """
    assert ask(child, source) is True
    assert ask(child, "result = 7") == 7


def test_a_request_that_is_too_large_is_our_mistake(child):
    with pytest.raises(ChannelError):
        child.ask(bytes(FRAME_LIMIT + 1))
    assert ask(child, "result = 1") == 1


def test_a_flood_of_output_goes_nowhere(child):
    source = """
        import os
        line = b'x' * 2**20
        for _ in range(200):
            os.write(1, line)
            os.write(2, line)
        result = True
    """
    assert ask(child, source)


def test_closing_twice_and_asking_after(box):
    child = box.open()
    child.close()
    child.close()
    with pytest.raises(Ended):
        child.ask(b"")


def test_the_warm_process_stays_as_it_was(box):
    (inner_init,) = psutil.Process(box._started.process.pid).children()
    warm = min(inner_init.children(), key=psutil.Process.create_time)

    def twenty():
        for _ in range(20):
            with box.open() as child:
                ask(child, "result = 1")
        return warm.memory_info().rss, warm.num_fds()

    first, second = twenty(), twenty()
    # a page or two come and go; a leak of 20 kB per child would pass this
    assert second[0] - first[0] < 400 * 1024
    assert second[1] == first[1]
    assert warm.num_threads() == 1


def test_the_host_keeps_no_descriptors(box):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with box.open() as child:
            ask(child, "result = 1")
        with pytest.raises(Ended), box.open() as child:
            ask(child, "import os; os._exit(1)")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
