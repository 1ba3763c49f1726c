"""`dt.parallel.run`, `init` and the command: results, errors, killed workers, no orphans."""

from __future__ import annotations

import atexit
import contextlib
import json
import multiprocessing
import os
import random
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread, current_thread
from time import monotonic, sleep
from typing import Any

import dovetail as dt
import pytest
import worker_programs
from dovetail.extend import TransportInfo

if "forkserver" in multiprocessing.get_all_start_methods():  # its children start in 20 ms
    multiprocessing.set_forkserver_preload(["dovetail.parallel.sockets", "dovetail.extend"])
COMMAND = [sys.executable, "-m", "dovetail.parallel"]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the system has no poll()")


def is_running(pid: int) -> bool:
    """Return True if a process exists that is no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_for(condition: Any, seconds: float = 60.0) -> None:
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "the time is up"
        sleep(0.02)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_have_ranks_and_results_are_returned_in_their_order(method: str) -> None:
    results = dt.parallel.run(
        worker_programs.describe, [2.0], {"offset": 1.0}, workers=3, threads=1, start_method=method
    )
    assert [r[:3] for r in results] == [(k, 3, 9.0) for k in range(3)]
    for k, (*_, variables, threads, pid) in enumerate(results):
        assert variables == {"RANK": str(k), "LOCAL_RANK": str(k), "WORLD_SIZE": "3"}
        assert threads == 1 and pid != os.getpid() and not is_running(pid)


def test_workers_meet_over_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dovetail.parallel.launcher.SOCKET_PATH_BYTES_MAX", 0)
    results = dt.parallel.run(worker_programs.describe, [1.0], workers=3)
    assert [r[:3] for r in results] == [(k, 3, 3.0) for k in range(3)]


@pytest.mark.parametrize(
    ("kind", "error", "text", "told"),
    [
        ("raise", KeyError, "weights", "1 rank 1 raised KeyError: 'weights'"),
        ("unpicklable", dt.parallel.WorkerError, "UnpicklableError", "1 rank 1 raised Unpick"),
        ("exit", dt.parallel.WorkerError, r"ended by sys.exit\(3\)", "1 rank 1 raised SystemExit"),
        ("kill", dt.parallel.WorkerError, "killed by signal SIGKILL", "1 all_reduce(float32[3]"),
    ],
)
def test_failure_of_a_worker_is_raised_here_and_told_to_the_others(
    kind: str, error: type[Exception], text: str, told: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=text) as caught:
        dt.parallel.run(worker_programs.fail, (kind, str(tmp_path)), workers=3)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0", "2"]
    for path in tmp_path.iterdir():
        assert path.read_text().startswith(told)
    if error is KeyError:
        assert "rank 1 of 3" in caught.value.__notes__[0]
        assert "worker_programs.py" in str(caught.value.__cause__)
    else:
        assert isinstance(caught.value, dt.parallel.WorkerError) and caught.value.rank == 1


@pytest.mark.skipif(not Path("/proc").exists(), reason="the states of processes are in /proc")
@pytest.mark.parametrize("count", [5, pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_worker_killed_at_a_random_instant_is_named_by_all_others(
    count: int, tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    rng = random.Random(seed)
    for k in range(count):
        folder = tmp_path / str(k)
        folder.mkdir()
        size, victim = 3, rng.randrange(3)
        n, delay = rng.choice([1, 500, 200_000]), rng.uniform(0, 0.3)
        raised: list[BaseException] = []

        def work(n: int = n, folder: Path = folder, raised: list[BaseException] = raised) -> None:
            try:
                args = (n, str(folder))
                dt.parallel.run(
                    worker_programs.reduce_until_killed,
                    args,
                    workers=3,
                    timeout=60,
                    start_method="forkserver",
                )
            except BaseException as caught:
                raised.append(caught)

        thread = Thread(target=work)
        thread.start()
        pids = [folder / f"pid{r}" for r in range(size)]
        wait_for(lambda pids=pids: all(p.exists() and p.read_text() for p in pids))
        sleep(delay)
        killed = monotonic()
        os.kill(int(pids[victim].read_text()), signal.SIGKILL)
        thread.join(120)
        assert not thread.is_alive() and monotonic() - killed < 30, (seed, k)
        (error,) = raised
        assert isinstance(error, dt.parallel.WorkerError) and error.rank == victim, (seed, k, error)
        assert "killed by signal SIGKILL" in str(error)
        for r in {*range(size)} - {victim}:
            text = (folder / f"error{r}").read_text()
            assert text.startswith(f"{victim} ") and f"rank {victim} is lost" in text, (seed, k)
        assert not any(is_running(int(p.read_text())) for p in pids)


@pytest.mark.parametrize("others", ["wait", "return"])
def test_killed_worker_is_named_while_a_process_that_it_forked_lives(others: str) -> None:
    """That process has the pipe of the result, and would keep it open."""
    started = monotonic()
    with pytest.raises(dt.parallel.WorkerError, match="killed by signal SIGKILL") as caught:
        dt.parallel.run(
            worker_programs.fork_and_be_killed, [others], workers=2, start_method="forkserver"
        )
    assert caught.value.rank == 1 and monotonic() - started < 60


def test_signal_without_a_name_is_named_by_its_number() -> None:
    with pytest.raises(dt.parallel.WorkerError, match="was killed by signal 37"):
        dt.parallel.run(worker_programs.end_by_signal, [37], workers=2, start_method="forkserver")


def test_objects_that_pickle_cannot_send_are_refused() -> None:
    with pytest.raises(dt.ArgumentTypeError, match="at its top level"):
        dt.parallel.run(lambda: 1, workers=2)
    with pytest.raises(dt.ArgumentTypeError, match="the result of function must be an object that"):
        dt.parallel.run(worker_programs.return_lock, workers=2, start_method="forkserver")
    with pytest.raises(dt.ArgumentTypeError, match="args must be a list or tuple"):
        dt.parallel.run(worker_programs.describe, 3, workers=2)  # type: ignore[arg-type]  # wrong


@pytest.mark.skipif(not Path("/proc").exists(), reason="the states of processes are in /proc")
def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    code = (
        "import dovetail as dt, worker_programs\n"
        "if __name__ == '__main__':\n"
        f"    dt.parallel.run(worker_programs.wait_for_ever, [{str(tmp_path)!r}], workers=2)\n"
    )
    script = tmp_path / "program.py"
    script.write_text(code)
    paths = os.pathsep.join(sys.path)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environ = {**os.environ, "PYTHONPATH": paths, "TMPDIR": str(temporary)}
    program = subprocess.Popen([sys.executable, script], env=environ)
    files = [tmp_path / "pid0", tmp_path / "pid1"]
    wait_for(lambda: all(f.exists() and f.read_text() for f in files))
    pids = [int(f.read_text()) for f in files]
    assert all(map(is_running, pids))
    program.kill()
    program.wait()
    wait_for(lambda: not any(map(is_running, pids)), 20)
    assert not [*temporary.iterdir()]


SCRIPT = """
import sys
import dovetail as dt
group = dt.parallel.init()
total = group.all_reduce(dt.ones(2)).tolist()
sys.stdout.write(f"{group.rank} {sys.argv[1:]} {total} {__name__}\\n")
if "fail" in sys.argv and group.rank == 1:
    raise ValueError("no weights")
group.barrier()
sys.exit()
"""


def run_command(*words: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, timeout=120, env=environ
    )


def test_command_runs_a_script_in_each_worker(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    done = run_command("--workers", "2", "--timeout", "60", str(script), "--steps", "3")
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    assert lines == [f"{r} ['--steps', '3'] [2.0, 2.0] __main__" for r in range(2)]
    done = run_command("-w", "2", str(script), "fail")
    assert done.returncode == 1 and "ValueError: no weights" in done.stderr
    assert "parallel.run: rank 1 of 2 raised this" in done.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--workers", "0", "train.py"], "--workers must be above 0, got 0"),
        (["--workers", "2", "missing.py"], "there is no file 'missing.py'"),
        (["missing.py"], "required: --workers"),
    ],
)
def test_command_refuses_wrong_options(words: list[str], text: str) -> None:
    done = run_command(*words)
    assert done.returncode == 2 and text in done.stderr


def set_variables(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("variables", "error", "text"),
    [
        ({"WORLD_SIZE": "2"}, dt.ArgumentError, "missing: RANK, MASTER_ADDR, MASTER_PORT"),
        ({"WORLD_SIZE": "2", "RANK": "x", "MASTER_ADDR": "::1", "MASTER_PORT": "1"},
         dt.ArgumentError, "RANK must be a whole number, got 'x'"),
        ({"WORLD_SIZE": "2", "RANK": "2", "MASTER_ADDR": "::1", "MASTER_PORT": "1"},
         dt.ArgumentError, "RANK must be below WORLD_SIZE=2, got 2"),
        ({"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "::1", "MASTER_PORT": "65536"},
         dt.ArgumentError, "MASTER_PORT must be at most 65,535, got 65536"),
        ({"WORLD_SIZE": "3", "RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "0"},
         dt.parallel.WorkerError, "ranks 1, 2 did not connect to rank 0 within 0.3 seconds"),
        ({"WORLD_SIZE": "3", "RANK": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"},
         dt.parallel.WorkerError, "rank 0 did not listen at localhost:1 within 0.3 seconds"),
        ({"WORLD_SIZE": "3", "RANK": "1", "MASTER_ADDR": "unix:/nowhere", "MASTER_PORT": "0"},
         dt.parallel.WorkerError, "rank 1 cannot listen at /nowhere/1: No such file"),
    ],
)  # fmt: skip
def test_init_names_missing_variables_and_ranks(
    variables: dict[str, str], error: type[Exception], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_variables(monkeypatch, **variables)
    started = monotonic()
    with pytest.raises(error, match=text) as caught:
        dt.parallel.init(timeout=0.3)
    if isinstance(caught.value, dt.parallel.WorkerError):
        assert caught.value.rank == int(re.search(r"ranks? (\d)", str(caught.value))[1])
    assert monotonic() - started < 20
    assert dt.parallel.current().size == 1


def test_init_takes_the_rank_from_the_error_of_a_transport(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(environ: Any, timeout: float) -> Any:
        error: Any = TimeoutError("rank 2 is asleep")
        error.rank = 2
        raise error

    info = TransportInfo("sockets", refuse)
    monkeypatch.setattr("dovetail.parallel.membership.find_transport", lambda *_: info)
    set_variables(monkeypatch, WORLD_SIZE="3", RANK="0")
    with pytest.raises(dt.parallel.WorkerError, match=r"parallel\.init: rank 2 is") as caught:
        dt.parallel.init()
    assert caught.value.rank == 2


def test_init_without_variables_is_a_group_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    set_variables(monkeypatch)
    assert dt.parallel.init() is dt.parallel.current()
    with pytest.raises(dt.PluginError, match='no transport "pigeons" is installed'):
        dt.parallel.init("pigeons")


def _message(data: bytes) -> bytes:
    """Return a message of the rendezvous."""
    return len(data).to_bytes(4, "little") + data


HELLO = {"protocol": "dovetail.parallel 1", "size": 2}
STRANGERS: dict[str, list[bytes]] = {
    "another protocol": [b"GET / HTTP/1.1\r\n\r\n" * 9],
    "silent": [b""] * 200,
    "slow": [b"\x40"],
    "deep": [_message(b"[" * 4000)],
    "no rank": [_message(json.dumps({**HELLO, "rank": [1]}).encode())],
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_strangers_do_not_disturb_the_rendezvous(stranger: str) -> None:
    """Programs that look for open ports connect first, stay, and say nothing or something else."""
    from dovetail.parallel.rendezvous import meet

    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    met: dict[int, Any] = {}
    threads = [
        Thread(target=lambda r=r: met.update({r: meet(r, 2, "127.0.0.1", port, 30.0)}))
        for r in range(2)
    ]
    threads[0].start()
    wait_for(lambda: not _is_refused(port))
    started = monotonic()
    with contextlib.ExitStack() as stack:
        for data in STRANGERS[stranger]:
            connection = socket.create_connection(("127.0.0.1", port))
            stack.enter_context(connection).sendall(data)
        threads[1].start()
        for thread in threads:
            thread.join(60)
    assert monotonic() - started < 20
    met[0][1].sendall(b"hello")
    assert met[1][0].recv(5) == b"hello"
    for sockets in met.values():
        for each in sockets.values():
            each.close()


@pytest.mark.parametrize("data", [b"HTTP/1.1 400 Bad Request", b"", None])
def test_program_that_listens_as_rank_0_is_no_worker(data: bytes | None) -> None:
    from dovetail.parallel.rendezvous import meet

    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            peer, _ = server.accept()
            with peer, contextlib.suppress(OSError):  # the worker has gone
                peer.sendall(data or b"")
                while data is None and monotonic() < end:  # a byte now and then, without end
                    peer.sendall(b"\x01")
                    sleep(0.1)

        end = monotonic() + 5
        thread = Thread(target=answer)
        thread.start()
        with pytest.raises((ConnectionError, TimeoutError), match="rank 0") as caught:
            meet(1, 2, "127.0.0.1", server.getsockname()[1], 1.0)
        assert monotonic() < end
        thread.join()
    if data:
        assert "is no worker of dovetail" in str(caught.value)


def _is_refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.parametrize("messages", [0, 1])
@pytest.mark.parametrize("victim", range(3))
@pytest.mark.parametrize("family", ["unix", "tcp"])
def test_error_names_the_rank_that_stops_while_all_connect(
    family: str, victim: int, messages: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The victim stops before it sends its first message to another rank, or its second one."""
    from dovetail.parallel import rendezvous
    from dovetail.parallel.worker_failures import choose_cause

    write, sent, goes_on = rendezvous.write_message, list[Any](), Event()
    errors: list[tuple[int, dt.parallel.WorkerError, Any]] = []
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = ("127.0.0.1", probe.getsockname()[1])
    where = (f"unix:{tmp_path}", 0) if family == "unix" else address

    def write_until_stopped(peer: Any, message: Any) -> None:
        if current_thread().name == str(victim):
            if len(sent) == messages:
                goes_on.wait(30)
            sent.append(message)
        write(peer, message)

    def join(rank: int) -> None:
        try:
            for each in rendezvous.meet(rank, 3, *where, 1.0).values():
                each.close()
        except (rendezvous.LateError, rendezvous.LostError) as error:
            if not goes_on.is_set():
                errors.append((rank, dt.parallel.WorkerError(str(error), error.rank), None))

    monkeypatch.setattr(rendezvous, "write_message", write_until_stopped)
    threads = [Thread(target=join, args=(r,), name=str(r)) for r in range(3)]
    for thread in threads:
        thread.start()
    for thread in [t for t in threads if t.name != str(victim)]:
        thread.join(30)
    goes_on.set()
    threads[victim].join(30)
    _, error, _ = choose_cause(errors)
    assert error.rank == victim, errors
    assert f"rank {victim} did not" in str(error)


def test_two_workers_with_one_rank_are_refused(tmp_path: Path) -> None:
    from dovetail.parallel.rendezvous import meet

    errors: list[BaseException] = []

    def join(rank: int) -> None:
        try:
            meet(rank, 3, f"unix:{tmp_path}", 0, 1.0)
        except OSError as error:
            errors.append(error)

    threads = [Thread(target=join, args=(r,)) for r in (0, 1, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(errors) == 3
    assert any("is there another worker with this rank" in str(e) for e in errors)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"workers": 0}, dt.ArgumentError, "workers must be at least 1, got 0"),
        ({"workers": 2, "transport": "udp"}, dt.ArgumentError, "transport must be"),
        ({"workers": 2, "start_method": "fork"}, dt.ArgumentError, "start_method must be"),
        ({"workers": 2, "threads": 0}, dt.ArgumentError, "threads must be at least 1"),
        ({"workers": 2, "kwargs": [1]}, dt.ArgumentTypeError, "kwargs must be a dict of arguments"),
    ],
)
def test_run_refuses_wrong_options(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        dt.parallel.run(worker_programs.describe, [1.0], **options)


def test_threads_are_workers_with_groups_of_their_own() -> None:
    def work(x: float) -> tuple[int, float]:
        group = dt.parallel.init()
        assert group is dt.parallel.current()
        return group.rank, group.all_reduce(dt.asarray(x * group.rank)).item()

    assert dt.parallel.run(work, [2.0], workers=3, transport="threads") == [
        (0, 6.0),
        (1, 6.0),
        (2, 6.0),
    ]
    assert dt.parallel.current().size == 1

    def fail() -> None:
        if dt.parallel.current().rank == 1:
            raise KeyError("weights")
        dt.parallel.current().barrier()

    with pytest.raises(KeyError, match="weights") as caught:
        dt.parallel.run(fail, workers=3, transport="threads")
    assert caught.value.__notes__ == ["parallel.run: raised by rank 1 of 3"]


def leave_late(folder: str) -> None:
    rank = dt.parallel.current().rank
    atexit.register(lambda: (sleep(0.5), Path(folder, str(rank)).write_text("left")))


def test_exit_handlers_of_workers_run_to_their_end(tmp_path: Path) -> None:
    dt.parallel.run(leave_late, (str(tmp_path),), workers=2, timeout=60)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0", "1"]
