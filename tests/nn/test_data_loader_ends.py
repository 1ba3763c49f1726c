"""The end of loops over a loader: all items, or an error with its reason, and no process left."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import dovetail as dt
import loader_cases as cases
import numpy as np
import pytest
from dovetail.data import DataLoader, WorkerError, workers

pytestmark = pytest.mark.timeout(120)
PATHS = os.pathsep.join([str(Path(__file__).parent), *sys.path])


@pytest.fixture(autouse=True)
def reference() -> Any:
    before = dt.default_device()
    dt.set_default_device("reference")
    yield
    dt.set_default_device(before)


def started(arguments: list[str], text: str = "") -> subprocess.Popen[str]:
    """Start a Python in a session of its own, so that all of its processes can be found."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    found = subprocess.Popen(
        [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env={**environment, "PYTHONPATH": PATHS},
        start_new_session=True,
    )  # fmt: skip
    assert found.stdin is not None
    found.stdin.write(text)
    found.stdin.close()
    found.stdin = None
    return found


# --- StopIteration of user code
# ----------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    ("data", "options"),
    [
        (cases.Stopping(20), {}),
        (cases.Stopping(20), {"batch_size": None}),
        (cases.Pictures(4), {"collate_fn": cases.raise_stop_iteration}),
        (cases.Upwards(4), {"collate_fn": cases.raise_stop_iteration}),
    ],
)
def test_stop_iteration_of_an_item_raises_worker_error(
    workers: int, data: Any, options: dict[str, Any]
) -> None:
    loader = DataLoader(data, **options, num_workers=workers)
    with pytest.raises(WorkerError, match=rf"{type(data).__name__} raised StopIteration while"):
        list(loader)


@pytest.mark.parametrize("workers", [0, 1])
def test_stop_iteration_of_iter_raises(workers: int) -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(DataLoader(cases.StoppingAtOnce(), num_workers=workers))


# --- data sets that new processes cannot import
# -----------------------------------------------------

SESSION = """
import dovetail as dt

class Rows(dt.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return float(index)

dt.set_default_device("reference")
assert [b.tolist() for b in dt.data.DataLoader(Rows(), 2)] == [[0, 1], [2, 3]]
print([b.tolist() for b in dt.data.DataLoader(Rows(), 2, num_workers=2)])
"""


def test_class_of_an_interactive_session_is_named() -> None:
    _, said = started(["-c", SESSION]).communicate(timeout=60)
    last = said.splitlines()[-1]
    assert "ArgumentError: data.DataLoader: Rows is defined in this session" in last
    assert "in a module" in last and "num_workers=0" in last
    assert said.count("Traceback") == 1  # no output of workers: none was started


def test_program_from_standard_input_is_named() -> None:
    _, said = started(["-"], SESSION).communicate(timeout=60)
    assert "ArgumentError: data.DataLoader: this program was read from <stdin>" in said


def test_data_set_of_a_module_needs_no_main_file() -> None:
    text = SESSION[SESSION.index("dt.set") :].replace("Rows()", "cases.Upwards(4)")
    process = started(["-c", f"import dovetail as dt, loader_cases as cases\n{text}"])
    out, said = process.communicate(timeout=60)
    assert out == "[[0, 2], [1, 3]]\n", said


def test_script_without_main_guard_is_reported(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SESSION)
    _, said = started([str(script)]).communicate(timeout=60)
    last = said.splitlines()[-1]
    assert "WorkerError" in last and "sent Rows of `__main__`" in last
    assert 'below `if __name__ == "__main__":`' in last


def test_class_below_the_main_guard_is_named(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    first, *rest = SESSION.strip().splitlines()
    body = "\n".join(f"    {line}" for line in rest)
    script.write_text(f'{first}\nif __name__ == "__main__":\n{body}\n')
    _, said = started([str(script)]).communicate(timeout=60)
    last = said.splitlines()[-1]
    assert "sent Rows of `__main__`" in last and "above that line" in last


def test_collate_function_without_a_name_raises() -> None:
    text = SESSION[SESSION.index("dt.set") :].replace("Rows()", "cases.Upwards(4)")
    text = text.replace("num_workers=2", "num_workers=2, collate_fn=lambda x: x")
    process = started(["-c", f"import dovetail as dt, loader_cases as cases\n{text}"])
    _, said = process.communicate(timeout=60)
    assert "ArgumentError: data.DataLoader" in said.splitlines()[-1]


# --- no process is left ---------------------------------------------------------------------------

LOOP = """
import gc, os, signal, sys, time
import dovetail as dt
import loader_cases as cases
import numpy as np

def looped(how, **options):
    loader = dt.data.DataLoader(cases.{data}(20), 2, num_workers=2, **options)
    for batch in loader:
        print("pids", *[p.pid for p in multiprocessing.active_children()], flush=True)
        if how == "raise":
            raise LookupError("of the loop")
        if how == "break":
            break
        time.sleep(60)

if __name__ == "__main__":
    import multiprocessing
    cases.hear_signals()
    dt.set_default_device("reference")
    {work}
"""
LIVES_ON = """try:
        looped({how!r}{options})
    except (LookupError, KeyboardInterrupt):
        pass
    gc.collect()
    print("left", len(multiprocessing.active_children()), flush=True)
    time.sleep(60)"""


def members(session: int) -> list[int]:
    """Return the processes of a session, without those that have ended."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, of = entry.joinpath("stat").read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if int(of) == session and state != "Z":
            found.append(int(entry.name))
    return found


def none_left(session: int, among: list[int] | None = None) -> bool:
    """Return True if the processes of a session, or some of them, end within seconds."""
    for pid in members(session):
        if among is None or pid in among:
            try:
                process = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            ended, _, _ = select.select([process], [], [], 20)
            os.close(process)
            if not ended:
                return False
    return True


@pytest.fixture
def script(tmp_path: Path) -> Any:
    """Start scripts; kill the rest of their sessions at the end of the test."""
    sessions = []

    def start(work: str, data: str = "Pictures") -> subprocess.Popen[str]:
        path = tmp_path / "script.py"
        path.write_text(LOOP.format(work=work, data=data))
        sessions.append(started([str(path)]))
        return sessions[-1]

    yield start
    for process in sessions:
        for pid in members(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.communicate()


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    word, *pids = process.stdout.readline().split()
    assert word == "pids" and len(pids) == 2
    return [int(x) for x in pids]


linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")


@linux
@pytest.mark.parametrize(
    ("how", "options", "data"),
    [
        ("raise", "", "Pictures"), ("raise", "", "Hanging"),
        ("raise", ", persistent_workers=True", "Pictures"), ("break", "", "Pictures"),
        ("break", ", persistent_workers=True", "Hanging"), ("interrupt", "", "Hanging"),
        ("interrupt", ", persistent_workers=True", "Pictures"),
    ],
)  # fmt: skip
def test_no_worker_is_left_while_the_program_continues(
    script: Any, how: str, options: str, data: str
) -> None:
    process = script(LIVES_ON.format(how=how, options=options), data)
    pids = workers_of(process)
    if how == "interrupt":
        os.killpg(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "left 0\n"
    assert none_left(process.pid, pids)


@linux
@pytest.mark.parametrize("how", ["raise", "break", signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_no_process_is_left_after_the_program_ended(script: Any, how: Any) -> None:
    process = script(f"looped({how!r})" if isinstance(how, str) else "looped('')")
    workers_of(process)
    if not isinstance(how, str):
        os.kill(process.pid, how)
    process.communicate(timeout=60)
    assert none_left(process.pid)


@linux
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_if_their_output_has_no_reader(script: Any, how: signal.Signals) -> None:
    process = script("looped('')", "Talking")
    assert process.stdout is not None and process.stderr is not None
    while not process.stdout.readline().startswith("pids"):
        pass
    process.stdout.close()
    process.stderr.close()
    os.kill(process.pid, how)
    process.wait(timeout=60)
    assert none_left(process.pid)


def test_growing_batches_use_few_segments_of_shared_memory() -> None:
    outbox, inbox = workers.Outbox(), workers.Inbox()
    try:
        for k in range(1, 65):
            batch = np.full(20_000 * k, k, "u1")
            assert inbox.decode(outbox.put(0, batch), copy=True).tolist() == batch.tolist()
        assert len(inbox.memory) <= 8
    finally:
        inbox.close()


def test_segment_that_cannot_be_created_leaves_the_slot_usable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outbox, inbox = workers.Outbox(), workers.Inbox()

    def refuse(*args: Any, **options: Any) -> None:
        raise OSError("no space left")

    try:
        outbox.put(0, np.zeros(20_000, "u1"))
        with monkeypatch.context() as context:
            context.setattr(workers, "SharedMemory", refuse)
            with pytest.raises(OSError, match="no space"):
                outbox.put(0, np.zeros(90_000, "u1"))
        assert inbox.decode(outbox.put(0, np.ones(90_000, "u1")), copy=True).sum() == 90_000
    finally:
        inbox.close()
