"""The disk cache: atomic writes, checksums, a size limit, shared use, and file ownership.

The cache reads only files that the user alone could have written.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from dovetail import DovetailWarning, environment
from dovetail.backend import diskcache

AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
needs_root = pytest.mark.skipif(not AS_ROOT, reason="only root can give files to other users")
posix = pytest.mark.skipif(os.name != "posix", reason="files have no owner and mode here")


def reset_cache() -> None:
    """Reset the module's state to that of a new process."""
    diskcache.cache_folder.cache_clear()
    diskcache._find_or_create_key.cache_clear()
    environment._issued_warnings.clear()


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("DOVETAIL_CACHE_DIR", str(tmp_path))
    reset_cache()
    yield tmp_path / "kernels"
    reset_cache()


def files(cache_folder: Path) -> list[Path]:
    return [p for p in cache_folder.glob("*/*") if p.is_file()]


def test_read_returns_what_write_stored(cache_folder: Path) -> None:
    diskcache.write("cpu", "kernel a", b"code")
    assert diskcache.read("cpu", "kernel a") == b"code"
    assert diskcache.read("cpu", "kernel b") is None
    assert diskcache.read("gpu", "kernel a") is None


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 40])
def test_damaged_file_is_a_miss_and_is_removed(cache_folder: Path, damage: bytes) -> None:
    diskcache.write("cpu", "kernel", b"code")
    [path] = files(cache_folder)
    path.write_bytes(damage)
    assert diskcache.read("cpu", "kernel") is None
    assert not path.exists()


def test_truncated_file_is_a_miss(cache_folder: Path) -> None:
    diskcache.write("cpu", "kernel", b"code" * 100)
    [path] = files(cache_folder)
    path.write_bytes(path.read_bytes()[:-1])
    assert diskcache.read("cpu", "kernel") is None


def test_prune_keeps_the_total_size_below_the_limit(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE_MIB", "0.01")
    for i in range(30):
        diskcache.write("cpu", f"kernel {i}", bytes(1000))
    diskcache.prune_cache()
    assert sum(p.stat().st_size for p in files(cache_folder)) <= diskcache.size_limit()
    assert files(cache_folder)


def test_limit_of_zero_disables_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache_folder: Path
) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE_MIB", "0")
    diskcache.cache_folder.cache_clear()
    diskcache.write("cpu", "kernel", b"code")
    assert diskcache.read("cpu", "kernel") is None


def test_unwritable_folder_warns_once_and_disables_the_cache(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache_folder.with_name("file").write_text("in the way")
    monkeypatch.setenv("DOVETAIL_CACHE_DIR", str(cache_folder.with_name("file")))
    with pytest.warns(DovetailWarning, match="DOVETAIL_CACHE_DIR must be a usable folder") as said:
        diskcache.write("cpu", "kernel", b"code")
        assert diskcache.read("cpu", "kernel") is None
    diskcache.cache_folder.cache_clear()
    diskcache.write("cpu", "kernel", b"code")
    assert len(said) == 1


@pytest.mark.parametrize("home", ["/nowhere/to/be/made", "not absolute"])
def test_no_home_folder_disables_the_cache_without_a_warning(
    home: str, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "mkdir", refuse)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: home)
    monkeypatch.delenv("DOVETAIL_CACHE_DIR")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        diskcache.write("cpu", "kernel", b"code")
    assert diskcache.cache_folder() is None


def refuse(*arguments: object, **options: object) -> None:
    raise PermissionError("not here")


def test_empty_variable_selects_the_default_folder(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE_DIR", "")
    monkeypatch.setattr(
        "platformdirs.user_cache_dir", lambda name: str(cache_folder.parent / "home")
    )
    monkeypatch.chdir(cache_folder.parent)
    diskcache.write("cpu", "kernel", b"code")
    assert diskcache.cache_folder() == cache_folder.parent / "home" / "kernels"
    assert not cache_folder.exists()


# --- ownership


@posix
def test_files_and_folders_are_private_to_the_user(cache_folder: Path) -> None:
    before = os.umask(0)
    try:
        diskcache.write("cpu", "kernel", b"code")
    finally:
        os.umask(before)
    made = [cache_folder, *cache_folder.rglob("*")]
    assert len(made) == 4, "the folder, its key, a folder, a file"
    for path in made:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def plant_file(binary: bytes) -> Path:
    """Write a file in the format that had a checksum without a key, as another user could."""
    path = diskcache._path("cpu", "kernel")
    assert path is not None
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(hashlib.sha256(path.name.encode() + b"\0" + binary).digest() + binary)
    return path


def assert_unused(mend: str) -> None:
    """Assert that the cache ignores the folder and warns once with the remedy."""
    reset_cache()
    with pytest.warns(DovetailWarning, match=mend) as said:
        assert diskcache.read("cpu", "kernel") is None
        diskcache.write("cpu", "kernel", b"code")
        diskcache.remove_binary("cpu", "kernel")
        diskcache.prune_cache()
    assert len(said) == 1 and diskcache.cache_folder() is None
    assert "DOVETAIL_CACHE_DIR" in str(said[0].message)


@posix
@pytest.mark.parametrize("mode", [0o777, 0o702, 0o1777])
def test_folder_that_others_can_write_is_not_used(mode: int, cache_folder: Path) -> None:
    path = plant_file(b"evil")
    cache_folder.chmod(mode)
    assert_unused(f"other users can write to {cache_folder} .fix: chmod go-w {cache_folder}.")
    assert path.exists(), "not even to remove something"


@posix
def test_file_planted_before_the_folder_was_closed_is_not_read(cache_folder: Path) -> None:
    path = plant_file(b"evil")
    cache_folder.chmod(0o700)
    assert diskcache.read("cpu", "kernel") is None
    assert not path.exists()


@posix
def test_parent_that_others_can_write_is_refused_unless_sticky(cache_folder: Path) -> None:
    diskcache.write("cpu", "kernel", b"code")
    cache_folder.parent.chmod(0o777)
    assert_unused(
        f"other users can write to {cache_folder.parent} .fix: chmod go-w {cache_folder.parent}."
    )
    cache_folder.parent.chmod(0o1777)
    reset_cache()
    assert diskcache.read("cpu", "kernel") == b"code"


@posix
def test_folder_that_others_can_read_is_made_private(cache_folder: Path) -> None:
    diskcache.write("cpu", "kernel", b"code")
    cache_folder.chmod(0o755)
    reset_cache()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert diskcache.read("cpu", "kernel") == b"code"
    assert stat.S_IMODE(cache_folder.stat().st_mode) == 0o700


@posix
def test_private_group_of_the_user_may_write(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If each user has a group of their own, new files are writable for that group."""
    diskcache.write("cpu", "kernel", b"code")
    cache_folder.chmod(0o770)
    monkeypatch.setattr(
        diskcache, "_is_private_group", lambda group: group == cache_folder.stat().st_gid
    )
    reset_cache()
    assert diskcache.read("cpu", "kernel") == b"code"
    monkeypatch.setattr(diskcache, "_is_private_group", lambda group: False)
    cache_folder.chmod(0o770)
    assert_unused("other users can write")


@needs_root
@pytest.mark.parametrize("what", ["folder", "parent", "link"])
def test_folder_file_or_link_of_another_user_is_refused(
    what: str, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diskcache.write("cpu", "kernel", b"code")
    link = cache_folder.parent / "link"
    link.symlink_to(cache_folder.parent)
    other = {"folder": cache_folder, "parent": cache_folder.parent, "link": link}[what]
    os.chown(other, 12345, 12345, follow_symlinks=False)
    monkeypatch.setenv("DOVETAIL_CACHE_DIR", str(link))
    assert_unused(f"{other} belongs to another user .uid 12345.")


@posix
def test_symbolic_links_are_checked_at_every_step(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = cache_folder.parent
    for path in ("open", "closed"):
        (base / path).mkdir()
    (base / "open").chmod(0o777)
    (base / "a").symlink_to("closed/../b")
    (base / "b").symlink_to(base / "closed")
    monkeypatch.setenv("DOVETAIL_CACHE_DIR", str(base / "a"))
    assert diskcache.cache_folder() == base / "closed" / "kernels"
    (base / "b").unlink()
    (base / "open" / "c").symlink_to(base / "closed")
    (base / "b").symlink_to("open/c")  # a name that others could redirect
    assert_unused(f"other users can write to {base / 'open'}")
    (base / "a").unlink()
    (base / "a").symlink_to("a")
    reset_cache()
    with pytest.warns(DovetailWarning, match="too many symbolic links"):
        assert diskcache.cache_folder() is None


@posix
@pytest.mark.parametrize("what", ["link", "second name", "open to others", "pipe", "folder"])
def test_file_that_others_can_write_or_link_is_not_read(what: str, cache_folder: Path) -> None:
    diskcache.write("cpu", "kernel", b"code")
    [path] = files(cache_folder)
    if what == "open to others":
        path.chmod(0o622)
    elif what == "second name":
        os.link(path, cache_folder / "other")
    else:
        path.rename(cache_folder / "other")
        made = {"link": lambda: path.symlink_to(cache_folder / "other"), "folder": path.mkdir}
        made.get(what, lambda: os.mkfifo(path))()
    assert diskcache.read("cpu", "kernel") is None
    if what != "folder":
        diskcache.write("cpu", "kernel", b"new")
        assert diskcache.read("cpu", "kernel") == b"new"


@needs_root
def test_file_of_another_user_is_not_read(cache_folder: Path) -> None:
    diskcache.write("cpu", "kernel", b"code")
    [path] = files(cache_folder)
    os.chown(path, 12345, 12345)
    assert diskcache.read("cpu", "kernel") is None


@posix
@pytest.mark.parametrize("at", ["kernels", "kernels/xx"])
def test_symbolic_link_at_a_temporary_file_is_not_followed(
    at: str, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aim = cache_folder.parent / "aim"
    aim.write_text("untouched")
    monkeypatch.setattr(os, "urandom", lambda count: b"\7" * count)
    (cache_folder.parent / at).mkdir(parents=True, mode=0o700)
    (cache_folder.parent / at / f".{'07' * 16}").symlink_to(aim)
    with pytest.raises(FileExistsError):
        diskcache._write_temporary(cache_folder.parent / at, b"code")
    assert aim.read_text() == "untouched"


# --- the key


def test_file_of_another_cache_is_not_read(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diskcache.write("cpu", "kernel", b"theirs")
    [path] = files(cache_folder)
    shutil.copytree(cache_folder, cache_folder.parent / "copy")
    monkeypatch.setenv("DOVETAIL_CACHE_DIR", str(cache_folder.parent / "mine"))
    reset_cache()
    diskcache.write("cpu", "kernel", b"mine")
    mine = cache_folder.parent / "mine" / "kernels" / path.relative_to(cache_folder)
    assert mine.exists()
    shutil.copyfile(path, mine)
    assert diskcache.read("cpu", "kernel") is None


@pytest.mark.parametrize("damage", [b"", b"short", bytes(100)])
def test_damaged_key_is_replaced(cache_folder: Path, damage: bytes) -> None:
    diskcache.write("cpu", "kernel", b"code")
    (cache_folder / "key").write_bytes(damage)
    reset_cache()
    assert diskcache.read("cpu", "kernel") is None
    diskcache.write("cpu", "kernel", b"new")
    reset_cache()
    assert diskcache.read("cpu", "kernel") == b"new"
    assert len((cache_folder / "key").read_bytes()) == diskcache.DIGEST_BYTES


WHOSE_KEY = """
import sys
from dovetail.backend import diskcache
print("ready", flush=True)
sys.stdin.readline()
diskcache.write("cpu", sys.argv[1], sys.argv[1].encode())
"""


def test_processes_that_start_together_share_a_key(cache_folder: Path) -> None:
    begun = [
        subprocess.Popen(
            [sys.executable, "-c", WHOSE_KEY, f"kernel {i}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for i in range(4)
    ]  # fmt: skip
    for p in begun:
        assert p.stdout is not None and p.stdout.readline() == "ready\n"
    for p in begun:
        assert p.stdin is not None
        p.stdin.write("\n")
        p.stdin.flush()
    for p in begun:
        p.communicate()
    assert [diskcache.read("cpu", f"kernel {i}") for i in range(4)] == [
        f"kernel {i}".encode() for i in range(4)
    ]


# --- planted files

SUM = """
import sys, warnings
import dovetail as dt
x, y = dt.asarray([3.0, 5.0], device="cpu"), dt.asarray([7.0, 11.0], device="cpu")
print((x + y if sys.argv[1] == "add" else x * y).tolist(), flush=True)
"""
needs_cpu = pytest.mark.skipif(
    importlib.util.find_spec("llvmlite") is None, reason="no dovetail-cpu-llvm"
)


@posix
@needs_cpu
@pytest.mark.parametrize("mode", [0o777, 0o700])
def test_planted_code_is_not_run(mode: int, cache_folder: Path) -> None:
    """Plant the code of a product at the path of a sum, with a valid plain digest."""

    def computed(op: str) -> str:
        command = [sys.executable, "-c", SUM, op]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert computed("add") == "[10.0, 16.0]"
    first = {*files(cache_folder)}
    assert computed("mul") == "[21.0, 55.0]"
    [product] = {*files(cache_folder)} - first
    code = product.read_bytes()[diskcache.DIGEST_BYTES :]
    sums = [path for path in first if path.stat().st_size < 1.5 * len(code)]
    assert len(sums) == 1, "the other file is the launcher"
    for path in sums:
        path.write_bytes(hashlib.sha256(path.name.encode() + b"\0" + code).digest() + code)
    cache_folder.chmod(mode)
    assert computed("add") == "[10.0, 16.0]"


@needs_cpu
@pytest.mark.parametrize("wrong", [b"", b"no object file", b"\x7fELF" + bytes(60)])
def test_launcher_with_wrong_content_is_rebuilt(cache_folder: Path, wrong: bytes) -> None:
    launch = importlib.import_module("dovetail_cpu_llvm.launch")
    plugin = importlib.import_module("dovetail_cpu_llvm.plugin")
    compiler = importlib.import_module("dovetail_cpu_llvm.compile").Compiler()
    module = importlib.import_module("dovetail_cpu_llvm.gemm").module("s")
    launch.Launcher(compiler, "a cpu")._get_routine_code(module)  # the code is written then
    right = {path: path.read_bytes()[diskcache.DIGEST_BYTES :] for path in files(cache_folder)}
    assert len(right) >= 1
    for path in right:
        path.write_bytes(diskcache._authentication_code(path, wrong) + wrong)
    launch.Launcher(compiler, "a cpu")._get_routine_code(module)
    assert {path: path.read_bytes()[diskcache.DIGEST_BYTES :] for path in right} == right
    assert plugin.dovetail_probe({})


# --- killed writers

NURSERY = """
import os, sys
from dovetail.backend import diskcache
for line in sys.stdin:
    child = os.fork()
    while not child:
        for i in range(50):
            diskcache.write("cpu", f"kernel {i}", bytes([i]) * 20_000)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("gone", flush=True)
"""


def run_and_kill_writers(cache_folder: Path, seed: int, count: int) -> Iterator[None]:
    """Kill a process that writes without end `count` times, each time after a random delay."""
    rng = random.Random(seed)
    with subprocess.Popen(
        [sys.executable, "-c", NURSERY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as nursery:
        assert nursery.stdin is not None and nursery.stdout is not None
        for n in range(count):
            nursery.stdin.write("\n")
            nursery.stdin.flush()
            child = int(nursery.stdout.readline())
            deadline = time.monotonic() + 20
            while n % 4 == 2 and not files(cache_folder) and time.monotonic() < deadline:
                time.sleep(0.001)
            # more often while the folder and its key are created
            time.sleep(rng.random() ** 3 * 0.03)
            os.kill(child, signal.SIGKILL)
            # until then the process may finish its current write
            assert nursery.stdout.readline() == "gone\n"
            yield


def temporary_files(cache_folder: Path) -> list[Path]:
    return [*cache_folder.glob(".*"), *cache_folder.glob("*/.*")]


def kill_writers(cache_folder: Path, seed: int, count: int) -> None:
    found = some = 0
    for n, _ in enumerate(run_and_kill_writers(cache_folder, seed, count)):
        reset_cache()
        for i in range(50):
            binary = diskcache.read("cpu", f"kernel {i}")
            assert binary is None or binary == bytes([i]) * 20_000
            found += binary is not None
        diskcache.write("cpu", "after", b"a kill")
        assert diskcache.read("cpu", "after") == b"a kill"
        for path in temporary_files(cache_folder):
            some += 1
            os.utime(path, (1, 1))
        diskcache.prune_cache()
        assert temporary_files(cache_folder) == []
        if n % 3 == 0:
            shutil.rmtree(cache_folder)
    assert found, "no writer has got anywhere"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_killed_writers_leave_whole_files_or_none(cache_folder: Path) -> None:
    kill_writers(cache_folder, 1, 25)


@pytest.mark.exhaustive
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("seed", range(2, 8))
def test_many_killed_writers_leave_whole_files_or_none(cache_folder: Path, seed: int) -> None:
    kill_writers(cache_folder, seed, 50)


def test_prune_keeps_a_recent_temporary_file(cache_folder: Path) -> None:
    diskcache.write("cpu", "kernel", b"code")
    young = files(cache_folder)[0].with_name(".young")
    young.write_bytes(b"being written")
    diskcache.prune_cache()
    assert young.exists()


WRITER = """
import sys
from dovetail.backend import diskcache
while True:
    for i in range(50):
        diskcache.write("cpu", f"kernel {i}", bytes([i]) * 20_000)
"""


def test_two_writers_and_a_kill_leave_whole_files(cache_folder: Path) -> None:
    env = {**os.environ, "DOVETAIL_CACHE_DIR": str(cache_folder.parent)}
    writers = [subprocess.Popen([sys.executable, "-c", WRITER], env=env) for _ in range(2)]
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and len(files(cache_folder)) < 20:
        time.sleep(0.05)
    for w in writers:
        w.send_signal(signal.SIGKILL)
        w.wait()
    found = [diskcache.read("cpu", f"kernel {i}") for i in range(50)]
    whole = [f for f in found if f is not None]
    assert len(whole) >= 10
    for i, f in enumerate(found):
        assert f is None or f == bytes([i]) * 20_000
