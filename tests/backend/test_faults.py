"""Driver failures, damaged cache files and forks leave all values and blocks intact."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import memory
from dovetail.backend import diskcache
from dovetail.backend.reference import ReferenceBackend
from dovetail.device_class import Device
from dovetail.engine import evaluation as run
from dovetail.engine import plan_cache
from dovetail.errors import CompileError, OutOfMemoryError
from dovetail.ir.builder import Kernel
from dovetail.lru_cache import LRUCache
from dovetail.memory import CachingAllocator, caching_allocator
from dovetail.plugins.device_handle import OpenedDevice
from dovetail.plugins.registry import open_device
from fake_device import check

Env = dict[str, Any]


@pytest.fixture(autouse=True)
def frozen_heap() -> Iterator[None]:
    """Freeze existing objects.

    A refused allocation collects garbage; objects of earlier tests would take a second.
    """
    gc.freeze()
    yield
    gc.unfreeze()


class FaultyBackend(ReferenceBackend):
    """The reference backend, with counted calls that fail on demand."""

    def __init__(self) -> None:
        kind = f"faulty{id(self)}"  # kernels that one instance compiled are unknown to the next
        self.info = replace(ReferenceBackend.info, type=kind, fingerprint=kind)
        self.calls = {"allocate": 0, "launch": 0, "compile": 0}
        self.fails: tuple[str, range] = ("", range(0))
        self.used, self.live = 0, dict[int, int]()

    def _call(self, name: str, error: Exception) -> None:
        self.calls[name] += 1
        if self.fails[0] == name and self.calls[name] in self.fails[1]:
            raise error

    def allocate(self, nbytes: int) -> Any:
        self._call("allocate", MemoryError("the driver has no more"))
        found = super().allocate(nbytes)
        self.used += nbytes
        self.live[id(found)] = nbytes
        return found

    def free(self, handle: Any, nbytes: int) -> None:
        assert self.live.pop(id(handle)) == nbytes, "freed twice, or with another size"
        self.used -= nbytes

    def compile(self, kernel: Kernel) -> Any:
        self._call("compile", CompileError(f"{kernel}\n\nthe compiler's log: no such register"))
        return super().compile(kernel)

    def launch(self, *arguments: Any) -> None:
        self._call("launch", RuntimeError("the driver has lost the device"))
        super().launch(*arguments)


class UncachedAllocator(CachingAllocator):
    """The caching allocator with an empty cache before each request: every request reaches the
    driver.
    """

    def allocate(self, nbytes: int, stream: Any = None) -> memory.DataPtr:
        self.empty_cache()
        return super().allocate(nbytes, stream)


@pytest.fixture
def make_faulty(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[], tuple[Device, FaultyBackend]]]:
    """Return a function that makes devices whose calls can fail."""
    monkeypatch.setattr(caching_allocator, "segment_bytes", lambda size: size)

    def make() -> tuple[Device, FaultyBackend]:
        backend = FaultyBackend()
        dev = Device(backend.info.type, 0)
        dev.opened = OpenedDevice(backend, UncachedAllocator(backend, dev), dev, {})
        return dev, backend

    yield make


# --- a program in steps: each adds values and reads them

START = np.random.default_rng(0).standard_normal((10, 100)).astype("f4")
INDICES = np.array([3, 1, -1, 3])


def _begin(env: Env, on: Device) -> None:
    x, at = dt.asarray(START, device=on), dt.asarray(INDICES, device=on)
    env["x"], env["at"] = x, at


def _chain(env: Env, on: Device) -> None:
    y = dt.tanh(env["x"] * 2 + 1)
    s = y.sum(axis=1)
    dt.evaluate(y, s)
    env["y"], env["s"] = y, s


def _in_place(env: Env, on: Device) -> None:
    env["x"] += env["y"]
    dt.evaluate(env["x"])


def _transposed_in_place(env: Env, on: Device) -> None:
    square = env["x"][:, :10]
    square += square.mT  # overlaps: needs a copy
    dt.evaluate(env["x"])


def _gather(env: Env, on: Device) -> None:
    rows = env["x"][env["at"]]
    dt.evaluate(rows)
    env["rows"] = rows


def _scatter(env: Env, on: Device) -> None:
    env["x"][env["at"][:3]] = env["rows"][:3] * 2
    dt.evaluate(env["x"])


def _mask(env: Env, on: Device) -> None:
    found = env["x"][env["x"] > 0.5]
    dt.evaluate(found)
    env["found"] = found


def _product(env: Env, on: Device) -> None:
    p = dt.matmul(env["x"], env["y"].mT)
    dt.evaluate(p)
    env["p"] = p


def _scan(env: Env, on: Device) -> None:
    c = dt.cumulative_sum(env["x"], axis=1)
    dt.evaluate(c)
    env["c"] = c


def _sorted(env: Env, on: Device) -> None:
    v = dt.sort(env["x"], axis=1)
    dt.evaluate(v)
    env["v"] = v


def _gradient(env: Env, on: Device) -> None:
    x = env["x"].detach().requires_grad_()
    g = dt.grad((dt.tanh(x) * x).sum(), x)
    found = g if isinstance(g, dt.Tensor) else g[0]
    dt.evaluate(found)
    env["g"] = found


def _sparse(env: Env, on: Device) -> None:
    s = dt.where(dt.abs(env["x"]) > 1, env["x"], 0).to_sparse()
    dense, squared = s @ env["y"].mT, (s * s).to_dense()
    dt.evaluate(dense, squared)
    env["dense"], env["squared"] = dense, squared


def _backward(env: Env, on: Device) -> None:
    w = env["x"].detach().clone().requires_grad_()
    (dt.sort(dt.tanh(w @ env["y"].mT), axis=1) * 2).sum().backward()
    dt.evaluate(w.grad)
    env["grad"] = w.grad


STEPS = (
    _begin, _chain, _in_place, _transposed_in_place, _gather, _scatter, _mask, _product, _scan,
    _sorted, _gradient, _sparse, _backward,
)  # fmt: skip
PURE = [s for s in STEPS if s not in (_in_place, _transposed_in_place, _scatter)]


def values(env: Env) -> dict[str, bytes]:
    return {name: np.asarray(x).tobytes() for name, x in env.items()}


def values_per_step(steps: Any, on: Device) -> list[dict[str, bytes]]:
    """Return the values before each step and at the end."""
    env: Env = {}
    found = [values(env)]
    for step in steps:
        step(env, on)
        found.append(values(env))
    return found


def checked_run(
    steps: Any, expected: list[dict[str, bytes]], on: Device, backend: FaultyBackend, fails: Any,
    error: type[Exception],
) -> int:  # fmt: skip
    """Run all steps while the backend fails on demand, and return the number of failed steps.

    A failed step must have changed nothing, and must succeed once the backend does.
    """
    env: Env = {}
    failed = 0
    for k, step in enumerate(steps):
        backend.fails = fails
        try:
            step(env, on)
        except error:
            failed += 1
            backend.fails = fails = ("", range(0))
            assert values(env) == expected[k], f"{step.__name__} failed, and left something changed"
            step(env, on)
        backend.fails = ("", range(0))
        assert values(env) == expected[k + 1], f"{step.__name__} gave something else"
    held = on.opened.allocator.stats().live_bytes
    env.clear()
    gc.collect()
    allocator = on.opened.allocator
    allocator.empty_cache()
    check_allocator(backend, allocator)
    assert held > 0 and allocator.stats().live_blocks == 0, "memory is still held"
    return failed


def check_allocator(backend: FaultyBackend, allocator: Any) -> None:
    """Check that statistics and segments equal those of the driver, except for `faults`."""
    sizes = {256 * 8, 8 * 8}
    cells = [n for n in backend.live.values() if n in sizes]
    kept = {h: n for h, n in backend.live.items() if n not in sizes}
    whole, backend.live, used = backend.live, kept, backend.used
    backend.used -= sum(cells)
    try:
        check(backend, allocator, [])  # type: ignore[arg-type]
    finally:
        backend.live, backend.used = whole, used


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.exhaustive), 5])
def test_memory_refused_from_any_call_on_raises_and_recovers(make_faulty: Any, step: int) -> None:
    """Refuse memory from each call of the driver on.

    The error can be caught, nothing is changed or lost, and the same step succeeds once there is
    memory.
    """
    dev, backend = make_faulty()
    expected = values_per_step(STEPS, dev)
    total, failed = backend.calls["allocate"], 0
    assert total > 15
    calls = range(1, total + 1, step)
    for call in calls:
        dev, backend = make_faulty()
        refusing = ("allocate", range(call, 1 << 30))
        failed += checked_run(STEPS, expected, dev, backend, refusing, OutOfMemoryError)
    assert failed >= len(calls) - 3


@pytest.mark.parametrize("step", [pytest.param(3, marks=pytest.mark.exhaustive), 10])
def test_memory_refused_once_is_recovered_by_the_allocator(make_faulty: Any, step: int) -> None:
    """The allocator frees its cached blocks and asks again."""
    dev, backend = make_faulty()
    expected = values_per_step(PURE, dev)
    for call in range(1, backend.calls["allocate"] + 1, step):
        dev, backend = make_faulty()
        once = ("allocate", range(call, call + 1))
        failed = checked_run(PURE, expected, dev, backend, once, OutOfMemoryError)
        # the driver itself allocates the fault cells, so their refusal is visible
        assert failed <= 1 and dev.opened.allocator.stats().out_of_memory == 0


@pytest.mark.parametrize(("what", "error"), [("launch", RuntimeError), ("compile", CompileError)])
def test_step_succeeds_again_after_any_driver_call_failed(
    make_faulty: Any, what: str, error: type[Exception]
) -> None:
    """Steps without writes in place can be repeated after a failed launch or build."""
    dev, backend = make_faulty()
    expected = values_per_step(PURE, dev)
    total, failed = backend.calls[what], 0
    for call in range(1, total + 1, 1 if total < 30 else 3):
        dev, backend = make_faulty()
        once = (what, range(call, call + 1))
        failed += checked_run(PURE, expected, dev, backend, once, error)
    assert failed > 5


def test_build_error_shows_the_kernel_and_the_log(make_faulty: Any) -> None:
    dev, backend = make_faulty()
    x = dt.ones(5, device=dev)
    y = dt.tanh(x) + 1
    backend.fails = ("compile", range(1, 1 << 30))
    for _ in range(2):
        with pytest.raises(CompileError, match=r"(?s)kernel \w+\(.*no such register"):
            y.numpy()
    backend.fails = ("", range(0))
    assert y.numpy().tolist() == (dt.tanh(dt.ones(5, device="reference")) + 1).tolist()


# --- damaged files of the disk cache


def _flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    **{f"{n} bytes": lambda c, n=n: c[:n] for n in (0, 1, 31, 32, 33)},  # type: ignore[misc]
    "half": lambda c: c[: len(c) // 2],
    "all but one": lambda c: c[:-1],
    "one more": lambda c: c + b"\0",
    "twice": lambda c: c + c,
    "no digest": lambda c: c[32:],
    "first bit": lambda c: _flipped(c, 0),
    "last bit of the digest": lambda c: _flipped(c, 31),
    "first bit of the code": lambda c: _flipped(c, 32),
    "a bit in the middle": lambda c: _flipped(c, len(c) // 2),
    "last bit": lambda c: _flipped(c, len(c) - 1),
    "zeros": lambda c: bytes(len(c)),
}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("DOVETAIL_CACHE_DIR", str(tmp_path))
    diskcache.cache_folder.cache_clear()
    yield tmp_path / "kernels"
    diskcache.cache_folder.cache_clear()


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reset the module's state to that of another process."""
    monkeypatch.setattr(run, "_plans", LRUCache(run.PLAN_CACHE_MAX))
    monkeypatch.setattr(open_device("cpu"), "programs", LRUCache(1024, revives=True))
    monkeypatch.setattr(plan_cache, "_cached_graphs", LRUCache(plan_cache.GRAPH_KEYS_MAX))
    plan_cache.value_graphs.age()


def compute() -> bytes:
    x = dt.asarray(START, device="cpu")
    y = dt.tanh(x * 2 + 1)
    return bytes(dt.concat([y.sum(axis=1), dt.cumulative_sum(y, axis=1)[0]]).numpy().tobytes())


def entries(folder: Path) -> dict[Path, bytes]:
    return {p: p.read_bytes() for p in sorted(folder.glob("*/*"))}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_cache_files_are_rebuilt(
    cache: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    pytest.importorskip("dovetail_cpu_llvm", reason="needs a backend that keeps binaries")
    forget(monkeypatch)
    expected = compute()
    whole = entries(cache)
    assert len(whole) >= 2
    for path, content in whole.items():
        path.write_bytes(DAMAGE[damage](content))
    forget(monkeypatch)
    before = run.counters.disk_hits
    assert compute() == expected and run.counters.disk_hits == before
    assert entries(cache).keys() == whole.keys(), "they are written again"
    forget(monkeypatch)
    compiles = run.counters.compiles
    assert compute() == expected and run.counters.compiles == compiles
    assert run.counters.disk_hits >= before + 2


def test_cache_file_at_the_path_of_another_is_a_miss(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file is valid, but belongs to another kernel."""
    pytest.importorskip("dovetail_cpu_llvm", reason="needs a backend that keeps binaries")
    forget(monkeypatch)
    expected = compute()
    whole = entries(cache)
    for path, content in zip(whole, [*list(whole.values())[1:], *whole.values()], strict=False):
        path.write_bytes(content)
    forget(monkeypatch)
    assert compute() == expected
    assert entries(cache).keys() == whole.keys()


def test_folder_at_the_path_of_a_cache_file_is_no_error(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("dovetail_cpu_llvm", reason="needs a backend that keeps binaries")
    forget(monkeypatch)
    expected = compute()
    for path in entries(cache):
        path.unlink()
        path.mkdir()
    forget(monkeypatch)
    assert compute() == expected


# --- forks

FORK = """
import os, sys, threading
import numpy as np
import dovetail as dt

dev = sys.argv[1]
x = dt.asarray(np.arange(3_000_000, dtype=np.float32).reshape(3000, 1000) % 7, device=dev)

def work():
    y = dt.tanh(x * 2 + 1)
    return y.sum(axis=0).numpy().tobytes() + dt.cumulative_sum(y[:9], axis=1).numpy().tobytes()

expected = work()
pending = x + 1
stop = threading.Event()

def meanwhile():
    while not stop.is_set():
        work()

thread = threading.Thread(target=meanwhile)
thread.start()
for _ in range(3):  # wherever the other thread may be just then
    child = os.fork()
    if child == 0:
        ok = work() == expected and pending[0, 0].item() == 1
        os._exit(0 if ok else 3)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
thread.join()
assert work() == expected
print("well")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("name", ["reference", "cpu"])
def test_child_of_a_fork_computes_while_a_thread_evaluates(name: str) -> None:
    """The child finds every lock free and every graph whole."""
    if name == "cpu":
        pytest.importorskip("dovetail_cpu_llvm", reason="pip install dovetail-cpu-llvm")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, name],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "well" in done.stdout, done.stderr


def test_fault_cells_are_allocated_once_if_the_host_cannot_map_them(make_faulty: Any) -> None:
    dev, backend = make_faulty()
    backend.host_address = lambda handle, offset: None
    assert [dev.opened.faults.host_cells() for _ in range(3)] == [None] * 3
    assert backend.calls["allocate"] == 1 and backend.live == {}
