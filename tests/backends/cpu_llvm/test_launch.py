"""Launches, threads, memory and the plugin's hooks of the CPU backend."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.backend.interface import BackendInfo, Entry
from dovetail.dtypes import DType, bool_, float32, float64, int8, int64, uint64
from dovetail.engine.evaluate import plan_pending
from dovetail.errors import ArgumentError, CompileError, InternalError
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.language import Store, Value, fold_loop, load, reduce_loop, where
from dovetail_cpu_llvm import launch, plugin
from dovetail_cpu_llvm.compile import Compiler
from dovetail_cpu_llvm.launch import DISTANT_SHARE_FACTOR, SHARE_OPERATIONS_MIN, SHARE_POINTS_MIN
from dovetail_cpu_llvm.native import native
from dovetail_cpu_llvm.pool import encode_weight

Array = Any
compiled = pytest.mark.skipif(not native, reason="the backend's module is not compiled")


class PoolState:
    """The 8-byte words of a pool's state by name, and those of workers by (name, worker)."""

    def __init__(self, backend: Any) -> None:
        state = backend._launcher.pool.state
        self._array = (ctypes.c_int64 * (native.size // 8)).from_address(state)

    def _index(self, key: str | tuple[str, int]) -> int:
        name, worker = (key, 0) if isinstance(key, str) else key
        return int(native.words[name] + worker * native.alignment // 8)

    def __getitem__(self, key: str | tuple[str, int]) -> int:
        return self._array[self._index(key)]

    def __setitem__(self, key: str | tuple[str, int], value: int) -> None:
        self._array[self._index(key)] = value


@pytest.fixture(scope="module")
def backend() -> Any:
    found = plugin.dovetail_probe(None)
    assert isinstance(found, list), found
    return plugin.dovetail_open(found[0], None)


@pytest.fixture
def fresh_backend() -> Any:
    """Yield a new backend with four threads."""
    made = plugin.dovetail_open(plugin.dovetail_probe(None)[0], None)  # type: ignore[index]
    made.set_num_threads(4)
    return made


@pytest.fixture
def set_threads(backend: Any) -> Iterator[Any]:
    before = backend.get_num_threads()
    yield backend.set_num_threads
    backend.set_num_threads(before)


def handles(*arrays: Array) -> tuple[int, ...]:
    return tuple(x for a in arrays for x in (a.ctypes.data, 0))


def add_scalar(d: DType) -> Kernel:
    b = KernelBuilder("add_scalar")
    x, out, c = b.buffer("x", d, "r"), b.buffer("out", d, "w"), b.scalar("c", d)
    i = b.axis(b.int("n"))
    b.store(out, i, where(c, load(x, i), ~load(x, i)) if d is bool_ else load(x, i) + c)
    return b.build()


def row_sums() -> Kernel:
    b = KernelBuilder("rows")
    x, out, m, n = (
        b.buffer("x", float32, "r"),
        b.buffer("out", float32, "w"),
        b.int("m"),
        b.int("n"),
    )
    i = b.axis(m)
    b.store(out, i, reduce_loop("add", 0, n, lambda k: load(x, i * n + k))[0])
    return b.build()


def run_large(backend: Any, program: Any, x: Array) -> Array:
    out = np.zeros(x.shape[0], "f4")
    backend.launch(program, handles(x, out), x.shape, (), (x.shape[0],))
    return out


@pytest.mark.parametrize("d", [bool_, int8, int64, uint64, float32, float64], ids=lambda d: d.name)
def test_scalars_are_converted_to_their_dtype(backend: Any, d: DType) -> None:
    program = backend.compile(add_scalar(d))
    values: dict[str, list[Any]] = {
        "b": [True, False],
        "i": [3, -2, True, np.int16(5)],
        "u": [3, 2**63 + 1, np.uint8(200)],
        "f": [0.1, -3, True, float("inf"), np.float32(0.1), 1e-310],
    }
    x = np.array([0, 1, 1, 0, 1]).astype(d.name)
    bound = backend.bind(program, (5,), (5,))
    for c in values[d.kind]:
        out = np.zeros(5, d.name)
        assert bound(handles(x, out), (c,), None) is None
        scalar = np.asarray(c).astype(d.name)
        want = np.where(scalar, x, ~x) if d is bool_ else x + scalar
        assert np.array_equal(out, want)
        bound(handles(x, out), [c], None)
        assert np.array_equal(out, want)


def test_byte_offsets_are_added_to_addresses(backend: Any) -> None:
    x, out = np.arange(10, dtype="f4"), np.zeros(10, "f4")
    launch = backend.bind(backend.compile(add_scalar(float32)), (3,), (3,))
    launch((x.ctypes.data, 8, out.ctypes.data, 20), (1.0,), None)
    assert out.tolist() == [0, 0, 0, 0, 0, 3, 4, 5, 0, 0]


def call_c_function(launch: Any, places: list[int], scalars: list[Any]) -> None:
    """Launch through the C function, as the compiled core does."""
    block, address, *_ = launch.__self__
    assert type(address) is Entry
    kinds = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p)
    entry = ctypes.PYFUNCTYPE(ctypes.c_int, *kinds)(address)
    given = (ctypes.py_object * max(1, len(scalars)))(*scalars)
    if entry(block, (ctypes.c_int64 * len(places))(*places), given) != 0:
        # PYFUNCTYPE raises an exception that the function has set
        raise AssertionError("it set no error")


@compiled
@pytest.mark.parametrize("d", [bool_, int8, uint64, float32, float64], ids=lambda d: d.name)
def test_c_function_of_a_launch_equals_the_python_call(backend: Any, d: DType) -> None:
    x = np.array([0, 1, 1, 0, 1]).astype(d.name)
    bound = backend.bind(backend.compile(add_scalar(d)), (3,), (3,))
    for c in (True, 1, 0):
        want, out = np.zeros((2, 5), d.name)
        bound((x.ctypes.data, d.itemsize, want.ctypes.data, 0), (c,), None)
        call_c_function(bound, [x.ctypes.data + d.itemsize, out.ctypes.data], [c])
        assert out.tobytes() == want.tobytes()
    with pytest.raises(TypeError):
        call_c_function(
            bound,
            [x.ctypes.data, out.ctypes.data],
            [object() if d is not bool_ else NoTruthValue()],
        )
    assert out.tobytes() == want.tobytes()


class NoTruthValue:
    """An object whose truth value raises."""

    def __bool__(self) -> bool:
        raise TypeError


@compiled
def test_c_function_of_a_multithreaded_launch_equals_the_python_call(
    backend: Any, set_threads: Any
) -> None:
    set_threads(3)
    x, out = np.ones((3000, 1000), "f4"), np.zeros(3000, "f4")
    bound = backend.bind(backend.compile(row_sums()), (3000, 1000), (3000,))
    call_c_function(bound, [x.ctypes.data, out.ctypes.data], [])
    assert (out == 1000).all()


def test_launch_with_wrong_arguments_raises_and_writes_nothing(backend: Any) -> None:
    program = backend.compile(add_scalar(float32))
    x, out = np.ones(4, "f4"), np.zeros(4, "f4")
    launch = backend.bind(program, (4,), (4,))
    for wrong in (
        ((), (1.0,), None),
        (handles(x), (1.0,), None),
        (list(handles(x, out)), (1.0,), None),
        (("a", 0, "b", 0), (1.0,), None),
        (handles(x, out), ("one",), None),
        (handles(x, out), (), None),
        (handles(x, out), 3, None),
        (handles(x, out), (1.0,)),
    ):
        with pytest.raises((TypeError, SystemError, IndexError)):
            launch(*wrong)
    assert not out.any()
    with pytest.raises(InternalError, match="0 ints"):
        backend.bind(program, (), (4,))


def test_launch_keeps_reference_counts(backend: Any) -> None:
    launch = backend.bind(backend.compile(add_scalar(float32)), (4,), (4,))
    x, out, scalars = np.ones(4, "f4"), np.zeros(4, "f4"), [1.5]
    given = handles(x, out)
    before = sys.getrefcount(None), sys.getrefcount(given), sys.getrefcount(scalars)
    for _ in range(2000):
        launch(given, scalars, None)
    after = sys.getrefcount(None), sys.getrefcount(given), sys.getrefcount(scalars)
    assert all(abs(a - b) < 100 for a, b in zip(before, after, strict=True)), (before, after)


def test_code_outlives_its_program_while_bound(backend: Any) -> None:
    x, out = np.ones(4, "f4"), np.zeros(4, "f4")
    program = backend.compile(add_scalar(float32))
    launch = backend.bind(program, (4,), (4,))
    del program
    gc.collect()
    for _ in range(5):
        backend.compile(add_scalar(float64))
    launch(handles(x, out), (1.0,), None)
    assert out.tolist() == [2, 2, 2, 2]


def test_binary_loads_without_compiling(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = row_sums()
    program = backend.compile(kernel)
    assert program.source.startswith("define void @kernel")
    monkeypatch.setattr(backend._compiler, "object_code", None)
    x = np.random.default_rng(1).standard_normal((50, 70)).astype("f4")
    again = backend.load(kernel, program.binary)
    assert np.array_equal(run_large(backend, again, x), run_large(backend, program, x))
    with pytest.raises(Exception):  # noqa: B017 - whatever the linker says
        backend.load(kernel, b"rubbish")


def test_rejected_kernel_is_shown_in_the_error(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: object, ir: str, machine: object) -> bytes:
        raise RuntimeError("no such instruction")

    monkeypatch.setattr(Compiler, "object_code", refuse)
    with pytest.raises(CompileError, match=r"(?s)no such instruction.*kernel add_scalar.*define"):
        backend.compile(add_scalar(float32))


# --- threads


def test_results_do_not_depend_on_threads(backend: Any, set_threads: Any) -> None:
    x = np.random.default_rng(2).standard_normal((3000, 1000)).astype("f4")
    program = backend.compile(row_sums())
    results = []
    for n in (1, 2, 5):
        set_threads(n)
        assert backend.get_num_threads() == n
        results += [run_large(backend, program, x) for _ in range(5)]
    assert np.allclose(results[0], x.sum(1), atol=1e-3)
    assert all(np.array_equal(r, results[0]) for r in results)
    with pytest.raises(ArgumentError, match="num must be from 1 to"):
        set_threads(0)


def test_several_python_threads_may_launch_at_once(backend: Any, set_threads: Any) -> None:
    set_threads(3)
    program = backend.compile(row_sums())
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).standard_normal((1500, 1000)).astype("f4")
        want = run_large(backend, program, x)
        for _ in range(20):
            if not np.array_equal(run_large(backend, program, x), want):
                wrong.append(seed)
        if not np.allclose(want, x.sum(1), atol=1e-3):
            wrong.append(-seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


def long_fold() -> Kernel:
    b = KernelBuilder("long")
    out, n = b.buffer("out", float64, "rw"), b.int("n")

    def step(k: Value, c: Value) -> Any:
        return [c * 1.0000001 + 1.0]

    zero = fold_loop(0, n, [load(out, n - n)], step).results[0]
    b.effect(Store(out, n - n, zero))
    return b.build()


@pytest.mark.timing
def test_long_launch_releases_the_gil(backend: Any) -> None:
    launch = backend.bind(backend.compile(long_fold()), (100_000_000,), ())
    out = np.zeros(1)
    ticks = 0
    worker = threading.Thread(target=launch, args=(handles(out), (), None))
    worker.start()
    while worker.is_alive():
        ticks += 1
        time.sleep(0.001)
    assert out[0] > 0
    assert ticks > 20


@compiled
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_child_can_launch() -> None:
    # In a process of its own: pytest's threads and a fork do not mix.
    script = """
import os, sys, numpy as np
sys.path[:0] = sys.argv[1].split(os.pathsep)
import test_launch as t
backend = t.plugin.dovetail_open(t.plugin.dovetail_probe(None)[0], None)
backend.set_num_threads(3)
x = np.ones((3000, 1000), "f4")
program = backend.compile(t.row_sums())
assert t.run_large(backend, program, x)[0] == 1000
child = os.fork()
for _ in range(20):
    assert t.run_large(backend, program, x).sum() == 3_000_000
if child == 0:
    assert backend._launcher.pool._started == 2
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    done = subprocess.run([sys.executable, "-c", script, path], timeout=60, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


@compiled
def test_idle_workers_sleep(backend: Any, set_threads: Any) -> None:
    set_threads(4)
    run_large(backend, backend.compile(row_sums()), np.ones((3000, 1000), "f4"))
    wait_for_sleepers(backend, 3)


def wait_for_sleepers(backend: Any, count: int) -> None:
    """Return once `count` workers have slept for 20 ms: a woken worker counts until it rises."""
    end, seen = time.monotonic() + 20, 0
    while seen < 20:
        asleep = PoolState(backend)["sleepers"]
        assert time.monotonic() < end, f"{asleep} of {count} threads sleep"
        seen = seen + 1 if asleep >= count else 0
        time.sleep(0.001)


def set_distance(fields: Any, *, far: bool) -> None:
    """Set the measured distance between threads and prevent a new measurement."""
    fields["is_far"], fields["probed"] = far, 1 << 62


@compiled
def test_small_launches_wake_workers_only_after_many_in_sequence(fresh_backend: Any) -> None:
    program, x = fresh_backend.compile(row_sums()), np.ones((300, 1000), "f4")  # 600,000 operations
    run_large(
        fresh_backend, program, np.ones((3000, 1000), "f4")
    )  # threads are there, and go to sleep
    fields, most = PoolState(fresh_backend), native.owed_operations_max
    set_distance(fields, far=False)
    woken = []
    for _ in range(3):
        wait_for_sleepers(fresh_backend, 3)
        # set the last wait to long ago, with no thread waiting
        fields["last"] = fields["owed"] = fields["until"] = 0
        asleep = fields["sleepers"]
        run_large(fresh_backend, program, x)
        assert fields["sleepers"] == asleep == 3, "a single small launch woke somebody"
        assert 0 < fields["owed"] < most
        fields["last"], fields["owed"] = time.monotonic_ns() + 10**12, most  # no new measurement
        fields["until"] = 0
        run_large(fresh_backend, program, x)
        assert 0 < fields["owed"] < most, "what was owed long ago still counts"
        wait_for_sleepers(fresh_backend, 3)
        for _ in range(1000):
            # soon, even on a busy machine
            fields["last"], fields["until"] = time.monotonic_ns(), 0
            assert run_large(fresh_backend, program, x).sum() == 300_000
            if fields["sleepers"] < 3:
                break
        woken.append(fields["sleepers"] < 3)
    assert any(woken), "many launches in a row never woke anybody"


@compiled
def test_distance_between_threads_is_measured_periodically(fresh_backend: Any) -> None:
    program, x = fresh_backend.compile(row_sums()), np.ones((3000, 1000), "f4")
    fields = PoolState(fresh_backend)
    for before in (0, 1):
        for _ in range(1000):  # the machine may be busy: no worker answers in time
            fields["distance"], fields["is_far"] = 0, before
            fields["probed"], fields["until"] = 1, 0
            assert run_large(fresh_backend, program, x).sum() == 3_000_000
            if fields["distance"]:
                break
        assert 10 < fields["distance"] < 1_000_000
        bound = native.near_ns if before else native.far_ns
        assert fields["is_far"] == (fields["distance"] > bound)
        assert time.monotonic_ns() - fields["probed"] < 60e9
    measured, fields["distance"] = fields["probed"], 0
    fields["probed"] += 1 << 40
    assert run_large(fresh_backend, program, x).sum() == 3_000_000
    assert not fields["distance"] and fields["probed"] == measured + (1 << 40), "before it was time"


@compiled
def test_distant_threads_share_only_large_launches(fresh_backend: Any) -> None:
    program, fields = fresh_backend.compile(row_sums()), PoolState(fresh_backend)
    few, many = 1000, DISTANT_SHARE_FACTOR * 300
    rows = {n: np.ones((n, 1000), "f4") for n in (few, many)}
    assert (
        few * 1000 > SHARE_OPERATIONS_MIN
        and few * 1000 * 4 < DISTANT_SHARE_FACTOR * SHARE_OPERATIONS_MIN <= many * 1000
    )
    for far, shared in ((False, {few, many}), (True, {many})):
        seen = set()
        for n, x in rows.items():
            set_distance(fields, far=far)
            fields["until"] = 0  # the machine may be busy
            before = fields["generation"]
            assert run_large(fresh_backend, program, x).sum() == n * 1000
            seen |= {n} if fields["generation"] > before else set()
        assert seen == shared
    set_distance(fields, far=True)
    fields["until"], fields["probed"] = 0, 1  # the next launch measures again
    before = fields["generation"]
    run_large(fresh_backend, program, rows[few])
    assert fields["generation"] > before, "who is far once is far for good"


LARGE, SMALL = 1 << 20, 1 << 17


@pytest.mark.parametrize(("make", "worth"), [
    (lambda x, at: x[:SMALL] + 1, False),
    (lambda x, at: dt.log2(x[:SMALL]), True),  # many operations for each byte,
    (lambda x, at: dt.log2(x[: SMALL // 8]), False),  # but not so few
    (lambda x, at: x + 1, True),  # 8 MB
    (lambda x, at: dt.sum(dt.reshape(x, (-1, 1024)), axis=1), True),
    (lambda x, at: dt.sum(dt.reshape(x[:SMALL], (-1, 1024)), axis=1), False),
    (lambda x, at: dt.take(x, at), True),  # a part of a line for each
    (lambda x, at: x[::2][:SMALL], False),
])  # fmt: skip
def test_weight_distinguishes_dense_work_from_memory_traffic(
    make: Any, worth: bool, fresh_backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def told(operations: float, anywhere: bool) -> int:
        seen.append(anywhere)
        return encode_weight(operations, anywhere)

    monkeypatch.setattr(launch, "encode_weight", told)
    x = dt.asarray(np.ones(LARGE, "f4"), device="cpu")
    result = make(x, dt.asarray(np.zeros(SMALL, "i8"), device="cpu")) * 2
    for _, plan in plan_pending([result._expr]):
        for step in plan.steps:
            fresh_backend._launcher.bind(fresh_backend.compile(step.kernel), step.ints, step.grid)
    assert seen[:1] == [worth] if worth else not any(seen)


@compiled
def test_launch_with_many_points_is_shared_even_if_each_is_cheap(fresh_backend: Any) -> None:
    """Other launches of as many points left their results in the caches of both cores."""
    large, x = fresh_backend.compile(row_sums()), np.ones((3000, 1000), "f4")
    little = fresh_backend.compile(add_scalar(float32))
    fields = PoolState(fresh_backend)
    for n, wanted in ((SHARE_POINTS_MIN // 4, False), (SHARE_POINTS_MIN * 3 // 2, True)):
        given, out = np.ones(n, "f4"), np.zeros(n, "f4")
        assert n * 8 < SHARE_OPERATIONS_MIN
        seen = False
        for _ in range(200):  # the machine may be busy, and helpers asleep
            run_large(fresh_backend, large, x)
            fields["until"] = 0
            set_distance(fields, far=False)
            before = fields["generation"]
            fresh_backend.launch(little, handles(given, out), (n,), (1.0,), (n,))
            assert (out == 2).all()
            seen = seen or fields["generation"] > before
            if seen:
                break
        assert seen == wanted


@compiled
def test_thread_that_waited_long_for_a_worker_runs_alone_for_a_while(fresh_backend: Any) -> None:
    program, x = fresh_backend.compile(row_sums()), np.ones((3000, 1000), "f4")
    run_large(fresh_backend, program, x)
    fields = PoolState(fresh_backend)
    fields["until"] = 0  # the machine may be busy
    fields["inside"] += 1  # a helper that has lost its core within a tile
    waiting = threading.Thread(target=run_large, args=(fresh_backend, program, x))
    begun = time.monotonic_ns()
    waiting.start()
    time.sleep(0.05)
    fields["inside"] -= 1
    waiting.join()
    waited = time.monotonic_ns() - begun
    left = fields["until"] - time.monotonic_ns()
    assert 0.3e9 < left < 16 * waited
    set_distance(fields, far=False)
    shared = fields["generation"]
    assert run_large(fresh_backend, program, x).sum() == 3_000_000
    assert fields["generation"] == shared, "work was shared again at once"
    fields["until"] = time.monotonic_ns()
    assert run_large(fresh_backend, program, x).sum() == 3_000_000
    assert fields["generation"] == shared + 1, "work is never shared again"


@pytest.mark.skipif(
    not native or not native.has_affinity, reason="no thread is kept off a core here"
)
def test_workers_may_use_every_core_after_an_affinity_limit(fresh_backend: Any) -> None:
    program, x = fresh_backend.compile(row_sums()), np.ones((3000, 1000), "f4")
    everywhere = os.sched_getaffinity(0)
    for _ in range(3):
        wait_for_sleepers(fresh_backend, 3)
        assert run_large(fresh_backend, program, x).sum() == 3_000_000
    fields = PoolState(fresh_backend)
    for worker in range(3):
        number = fields["thread", worker]
        end = time.monotonic() + 20
        while time.monotonic() < end:  # until it has woken
            if not fields["moved", worker] and os.sched_getaffinity(number) == everywhere:
                break
            time.sleep(0.001)
        assert os.sched_getaffinity(number) == everywhere


def test_code_stays_loaded_while_threads_run_in_it() -> None:
    script = """
import sys
sys.path[:0] = sys.argv[1].split(__import__("os").pathsep)
import gc, time
import numpy as np
import test_launch as t
from dovetail_cpu_llvm import plugin

def backend():
    return plugin.dovetail_open(plugin.dovetail_probe(None)[0], None)

for _ in range(6):
    dropped = backend()
    dropped.set_num_threads(4)
    t.run_large(dropped, dropped.compile(t.row_sums()), np.ones((3000, 1000), "f4"))
    del dropped  # while they still wait for the next launch
    gc.collect()
    another = backend()  # whose code would lie where the first one's did
    time.sleep(0.05)
"""
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    done = subprocess.run([sys.executable, "-c", script, path], timeout=60, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


# --- memory


@pytest.mark.parametrize("nbytes", [1, 4096, 2 << 20, (6 << 20) + 100])
def test_allocate_aligns_memory_and_copies_round_trip(backend: Any, nbytes: int) -> None:
    handle = backend.allocate(nbytes)
    assert backend.host_address(handle, 0) % 64 == 0
    data = os.urandom(nbytes)
    backend.copy_in(handle, 0, memoryview(data))
    got = bytearray(nbytes)
    backend.copy_out(memoryview(got), handle, 0)
    assert got == data
    if nbytes > 10:
        backend.copy_in(handle, 5, memoryview(b"xyz"))
        part = bytearray(4)
        backend.copy_out(memoryview(part), handle, 4)
        assert part == data[4:5] + b"xyz"
    backend.free(handle, nbytes)


def test_allocation_beyond_memory_raises_memory_error(backend: Any) -> None:
    with pytest.raises(MemoryError):
        backend.allocate(1 << 60)


# --- hooks


def test_plugin_hooks_describe_the_cpu() -> None:
    info = plugin.dovetail_backend_info()
    assert isinstance(info, BackendInfo)
    assert info.type == "cpu"
    (device,) = plugin.dovetail_probe(None)  # type: ignore[misc]
    assert (device.type, device.index) == ("cpu", 0)
    assert "llvm" in device.fingerprint
    assert device.total_memory > 1 << 20


def test_importing_the_hooks_loads_no_llvm() -> None:
    script = "import sys, dovetail_cpu_llvm.plugin; sys.exit('llvmlite' in sys.modules)"
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0
