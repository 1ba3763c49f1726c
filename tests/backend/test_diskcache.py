"""The disk cache: atomic, checked, bounded, shared by processes, harmless when broken; the user's
alone, and nothing that somebody else put there is read."""

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


def afresh() -> None:
    """As in a new process."""
    diskcache.cache_folder.cache_clear()
    diskcache._key.cache_clear()
    environment._issued_warnings.clear()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("DOVETAIL_CACHE_DIR", str(tmp_path))
    afresh()
    yield tmp_path / "kernels"
    afresh()


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
    diskcache.prune_cache()
    assert sum(p.stat().st_size for p in files(folder)) <= diskcache.size_limit()
    assert files(folder)


def test_a_limit_of_zero_turns_it_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE_MIB", "0")
    diskcache.cache_folder.cache_clear()
    diskcache.write("cpu", "kernel", b"code")
    assert diskcache.read("cpu", "kernel") is None


def test_an_unwritable_folder_is_no_error_and_named_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.with_name("file").write_text("in the way")
    monkeypatch.setenv("DOVETAIL_CACHE_DIR", str(folder.with_name("file")))
    with pytest.warns(DovetailWarning, match="DOVETAIL_CACHE_DIR=.*is not a folder") as said:
        diskcache.write("cpu", "kernel", b"code")
        assert diskcache.read("cpu", "kernel") is None
    diskcache.cache_folder.cache_clear()
    diskcache.write("cpu", "kernel", b"code")
    assert len(said) == 1


@pytest.mark.parametrize("home", ["/nowhere/to/be/made", "not absolute"])
def test_without_a_home_nothing_is_kept_and_nothing_said(
    home: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "mkdir", refused)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: home)
    monkeypatch.delenv("DOVETAIL_CACHE_DIR")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        diskcache.write("cpu", "kernel", b"code")
    assert diskcache.cache_folder() is None


def refused(*arguments: object, **options: object) -> None:
    raise PermissionError("not here")


def test_an_empty_variable_counts_as_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE_DIR", "")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(folder.parent / "home"))
    monkeypatch.chdir(folder.parent)
    diskcache.write("cpu", "kernel", b"code")
    assert diskcache.cache_folder() == folder.parent / "home" / "kernels"
    assert not folder.exists()


# --- whose it is


@posix
def test_all_that_is_made_is_for_the_user_alone(folder: Path) -> None:
    before = os.umask(0)
    try:
        diskcache.write("cpu", "kernel", b"code")
    finally:
        os.umask(before)
    made = [folder, *folder.rglob("*")]
    assert len(made) == 4, "the folder, its key, a folder, a file"
    for path in made:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def planted(binary: bytes) -> Path:
    """A file as anybody can make it who knows how files were checked before there was a key."""
    path = diskcache._path("cpu", "kernel")
    assert path is not None
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(hashlib.sha256(path.name.encode() + b"\0" + binary).digest() + binary)
    return path


def unused(mend: str) -> None:
    """The folder is left alone, which is said once, with the mend."""
    afresh()
    with pytest.warns(DovetailWarning, match=mend) as said:
        assert diskcache.read("cpu", "kernel") is None
        diskcache.write("cpu", "kernel", b"code")
        diskcache.remove_binary("cpu", "kernel")
        diskcache.prune_cache()
    assert len(said) == 1 and diskcache.cache_folder() is None
    assert "DOVETAIL_CACHE_DIR" in str(said[0].message)


@posix
@pytest.mark.parametrize("mode", [0o777, 0o702, 0o1777])
def test_a_folder_that_others_can_write_is_not_used(mode: int, folder: Path) -> None:
    path = planted(b"evil")
    folder.chmod(mode)
    unused(f"others can write to {folder}: chmod go-w {folder}")
    assert path.exists(), "not even to remove something"


@posix
def test_what_was_planted_before_the_folder_was_closed_is_not_read(folder: Path) -> None:
    path = planted(b"evil")
    folder.chmod(0o700)
    assert diskcache.read("cpu", "kernel") is None
    assert not path.exists()


@posix
def test_a_parent_that_others_can_write_is_refused_unless_it_is_sticky(folder: Path) -> None:
    diskcache.write("cpu", "kernel", b"code")
    folder.parent.chmod(0o777)
    unused(f"others can write to {folder.parent}: chmod go-w {folder.parent}")
    folder.parent.chmod(0o1777)
    afresh()
    assert diskcache.read("cpu", "kernel") == b"code"


@posix
def test_a_folder_that_others_could_only_read_is_closed_to_them(folder: Path) -> None:
    diskcache.write("cpu", "kernel", b"code")
    folder.chmod(0o755)
    afresh()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert diskcache.read("cpu", "kernel") == b"code"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@posix
def test_a_group_of_the_user_alone_may_write(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each user has such a group, all that is made is open to it."""
    diskcache.write("cpu", "kernel", b"code")
    folder.chmod(0o770)
    monkeypatch.setattr(diskcache, "_is_private_group", lambda group: group == folder.stat().st_gid)
    afresh()
    assert diskcache.read("cpu", "kernel") == b"code"
    monkeypatch.setattr(diskcache, "_is_private_group", lambda group: False)
    folder.chmod(0o770)
    unused("others can write")


@needs_root
@pytest.mark.parametrize("what", ["folder", "parent", "link"])
def test_what_is_another_users_is_refused(
    what: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diskcache.write("cpu", "kernel", b"code")
    link = folder.parent / "link"
    link.symlink_to(folder.parent)
    other = {"folder": folder, "parent": folder.parent, "link": link}[what]
    os.chown(other, 12345, 12345, follow_symlinks=False)
    monkeypatch.setenv("DOVETAIL_CACHE_DIR", str(link))
    unused(f"{other} is another user's .number 12345.")


@posix
def test_links_are_followed_to_what_they_lead_to(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = folder.parent
    for path in ("open", "closed"):
        (base / path).mkdir()
    (base / "open").chmod(0o777)
    (base / "a").symlink_to("closed/../b")
    (base / "b").symlink_to(base / "closed")
    monkeypatch.setenv("DOVETAIL_CACHE_DIR", str(base / "a"))
    assert diskcache.cache_folder() == base / "closed" / "kernels"
    (base / "b").unlink()
    (base / "open" / "c").symlink_to(base / "closed")
    (base / "b").symlink_to("open/c")  # which others could turn elsewhere
    unused(f"others can write to {base / 'open'}")
    (base / "a").unlink()
    (base / "a").symlink_to("a")
    afresh()
    with pytest.warns(DovetailWarning, match="too many links"):
        assert diskcache.cache_folder() is None


@posix
@pytest.mark.parametrize("what", ["link", "second name", "open to others", "pipe", "folder"])
def test_a_file_that_is_not_the_users_alone_is_not_read(what: str, folder: Path) -> None:
    diskcache.write("cpu", "kernel", b"code")
    [path] = files(folder)
    if what == "open to others":
        path.chmod(0o622)
    elif what == "second name":
        os.link(path, folder / "other")
    else:
        path.rename(folder / "other")
        made = {"link": lambda: path.symlink_to(folder / "other"), "folder": path.mkdir}
        made.get(what, lambda: os.mkfifo(path))()
    assert diskcache.read("cpu", "kernel") is None
    if what != "folder":
        diskcache.write("cpu", "kernel", b"new")
        assert diskcache.read("cpu", "kernel") == b"new"


@needs_root
def test_a_file_of_another_user_is_not_read(folder: Path) -> None:
    diskcache.write("cpu", "kernel", b"code")
    [path] = files(folder)
    os.chown(path, 12345, 12345)
    assert diskcache.read("cpu", "kernel") is None


@posix
@pytest.mark.parametrize("at", ["kernels", "kernels/xx"])
def test_a_link_in_the_way_of_a_temporary_file_is_not_followed(
    at: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aim = folder.parent / "aim"
    aim.write_text("untouched")
    monkeypatch.setattr(os, "urandom", lambda count: b"\7" * count)
    (folder.parent / at).mkdir(parents=True, mode=0o700)
    (folder.parent / at / f".{'07' * 16}").symlink_to(aim)
    with pytest.raises(FileExistsError):
        diskcache._temporary(folder.parent / at, b"code")
    assert aim.read_text() == "untouched"


# --- the key


def test_what_another_cache_wrote_is_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diskcache.write("cpu", "kernel", b"theirs")
    [path] = files(folder)
    shutil.copytree(folder, folder.parent / "copy")
    monkeypatch.setenv("DOVETAIL_CACHE_DIR", str(folder.parent / "mine"))
    afresh()
    diskcache.write("cpu", "kernel", b"mine")
    mine = folder.parent / "mine" / "kernels" / path.relative_to(folder)
    assert mine.exists()
    shutil.copyfile(path, mine)
    assert diskcache.read("cpu", "kernel") is None


@pytest.mark.parametrize("damage", [b"", b"short", bytes(100)])
def test_a_damaged_key_is_made_anew(folder: Path, damage: bytes) -> None:
    diskcache.write("cpu", "kernel", b"code")
    (folder / "key").write_bytes(damage)
    afresh()
    assert diskcache.read("cpu", "kernel") is None
    diskcache.write("cpu", "kernel", b"new")
    afresh()
    assert diskcache.read("cpu", "kernel") == b"new"
    assert len((folder / "key").read_bytes()) == diskcache.DIGEST_BYTES


WHOSE_KEY = """
import sys
from dovetail.backend import diskcache
print("ready", flush=True)
sys.stdin.readline()
diskcache.write("cpu", sys.argv[1], sys.argv[1].encode())
"""


def test_processes_that_begin_together_share_a_key(folder: Path) -> None:
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


# --- nothing that was planted runs

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
def test_code_that_was_planted_does_not_run(mode: int, folder: Path) -> None:
    """A product's code where a sum's belongs, with the digest that was enough before."""

    def computed(op: str) -> str:
        command = [sys.executable, "-c", SUM, op]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert computed("add") == "[10.0, 16.0]"
    first = {*files(folder)}
    assert computed("mul") == "[21.0, 55.0]"
    [product] = {*files(folder)} - first
    code = product.read_bytes()[diskcache.DIGEST_BYTES :]
    sums = [path for path in first if path.stat().st_size < 1.5 * len(code)]
    assert len(sums) == 1, "the other file is the launcher"
    for path in sums:
        path.write_bytes(hashlib.sha256(path.name.encode() + b"\0" + code).digest() + code)
    folder.chmod(mode)
    assert computed("add") == "[10.0, 16.0]"


@needs_cpu
@pytest.mark.parametrize("wrong", [b"", b"no object file", b"\x7fELF" + bytes(60)])
def test_a_launcher_of_wrong_content_is_made_anew(folder: Path, wrong: bytes) -> None:
    launch = importlib.import_module("dovetail_cpu_llvm.launch")
    plugin = importlib.import_module("dovetail_cpu_llvm.plugin")
    compiler = importlib.import_module("dovetail_cpu_llvm.compile").Compiler()
    launch.Launcher(compiler, "a cpu")
    right = {path: path.read_bytes()[diskcache.DIGEST_BYTES :] for path in files(folder)}
    assert len(right) >= 1
    for path in right:
        path.write_bytes(diskcache._authentication_code(path, wrong) + wrong)
    launch.Launcher(compiler, "a cpu")
    assert {path: path.read_bytes()[diskcache.DIGEST_BYTES :] for path in right} == right
    assert plugin.dovetail_probe({})


# --- killed at any moment

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


def kills(folder: Path, seed: int, count: int) -> Iterator[None]:
    """A process that writes without end is killed `count` times, each time after a while."""
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
            while n % 4 == 2 and not files(folder) and time.monotonic() < deadline:
                time.sleep(0.001)
            time.sleep(rng.random() ** 3 * 0.03)  # often while the folder and its key are made
            os.kill(child, signal.SIGKILL)
            assert nursery.stdout.readline() == "gone\n"  # until then it may end what it is at
            yield


def left(folder: Path) -> list[Path]:
    return [*folder.glob(".*"), *folder.glob("*/.*")]


def kill_writers(folder: Path, seed: int, count: int) -> None:
    found = some = 0
    for n, _ in enumerate(kills(folder, seed, count)):
        afresh()
        for i in range(50):
            binary = diskcache.read("cpu", f"kernel {i}")
            assert binary is None or binary == bytes([i]) * 20_000
            found += binary is not None
        diskcache.write("cpu", "after", b"a kill")
        assert diskcache.read("cpu", "after") == b"a kill"
        for path in left(folder):
            some += 1
            os.utime(path, (1, 1))
        diskcache.prune_cache()
        assert left(folder) == []
        if n % 3 == 0:
            shutil.rmtree(folder)
    assert found, "no writer has got anywhere"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_writers_killed_at_random_leave_whole_files_or_none(folder: Path) -> None:
    kill_writers(folder, 1, 25)


@pytest.mark.exhaustive
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("seed", range(2, 8))
def test_many_writers_killed_at_random(folder: Path, seed: int) -> None:
    kill_writers(folder, seed, 50)


def test_a_temporary_file_in_use_is_left_alone(folder: Path) -> None:
    diskcache.write("cpu", "kernel", b"code")
    young = files(folder)[0].with_name(".young")
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
