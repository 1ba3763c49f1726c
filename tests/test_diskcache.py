"""The disk cache: atomic, checked, bounded, shared by processes, harmless when broken."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from dovetail import diskcache


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("DOVETAIL_CACHE_DIR", str(tmp_path))
    diskcache.directory.cache_clear()
    yield tmp_path / "kernels"
    diskcache.directory.cache_clear()


def files(folder: Path) -> list[Path]:
    return [p for p in folder.glob("*/*") if p.is_file()]


def test_what_is_written_is_read(folder: Path) -> None:
    diskcache.write("cpu", "kernel a", b"code")
    assert diskcache.read("cpu", "kernel a") == b"code"
    assert diskcache.read("cpu", "kernel b") is None
    assert diskcache.read("gpu", "kernel a") is None


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 40])
def test_a_damaged_file_reads_as_absent_and_goes(folder: Path, damage: bytes) -> None:
    diskcache.write("cpu", "kernel", b"code")
    [path] = files(folder)
    path.write_bytes(damage)
    assert diskcache.read("cpu", "kernel") is None
    assert not path.exists()


def test_a_truncated_file_reads_as_absent(folder: Path) -> None:
    diskcache.write("cpu", "kernel", b"code" * 100)
    [path] = files(folder)
    path.write_bytes(path.read_bytes()[:-1])
    assert diskcache.read("cpu", "kernel") is None


def test_the_total_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE_MIB", "0.01")
    for i in range(30):
        diskcache.write("cpu", f"kernel {i}", bytes(1000))
    diskcache.prune()
    assert sum(p.stat().st_size for p in files(folder)) <= diskcache.limit()
    assert files(folder)


def test_a_limit_of_zero_turns_it_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE_MIB", "0")
    diskcache.directory.cache_clear()
    diskcache.write("cpu", "kernel", b"code")
    assert diskcache.read("cpu", "kernel") is None


def test_an_unwritable_folder_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    monkeypatch.setenv("DOVETAIL_CACHE_DIR", str(blocker))
    diskcache.directory.cache_clear()
    diskcache.write("cpu", "kernel", b"code")
    assert diskcache.read("cpu", "kernel") is None
    diskcache.directory.cache_clear()


WRITER = """
import sys
from dovetail import diskcache
while True:
    for i in range(50):
        diskcache.write("cpu", f"kernel {i}", bytes([i]) * 20_000)
"""


def test_two_writers_and_a_kill_leave_only_whole_files(folder: Path) -> None:
    env = {**os.environ, "DOVETAIL_CACHE_DIR": str(folder.parent)}
    writers = [subprocess.Popen([sys.executable, "-c", WRITER], env=env) for _ in range(2)]
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and len(files(folder)) < 20:
        time.sleep(0.05)
    for w in writers:
        w.send_signal(signal.SIGKILL)
        w.wait()
    found = [diskcache.read("cpu", f"kernel {i}") for i in range(50)]
    whole = [f for f in found if f is not None]
    assert len(whole) >= 10
    for i, f in enumerate(found):
        assert f is None or f == bytes([i]) * 20_000
