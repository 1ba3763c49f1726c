"""Pointers, and the caching allocator under random traces, refusals, threads and forks."""

from __future__ import annotations

import gc
import os
import random
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dovetail import memory
from dovetail.backend.interface import Backend
from dovetail.device_class import Device
from dovetail.errors import OutOfMemoryError
from dovetail.memory import (
    Allocator,
    CachingAllocator,
    DataPtr,
    get_allocator,
    set_allocator,
    wrap_pointer,
)
from dovetail.memory.blocks import LARGE_BINS_MAX
from dovetail.memory.caching_allocator import SLACK_BYTES
from dovetail.memory.fast_path import BUSY
from dovetail.memory.storage import storage_at
from dovetail.memory.units import KIB, MIB
from fake_device import FAKE, check, make

PACKAGE = str(Path(memory.__file__).parent)

# --- pointers


def test_deleter_gets_the_context_exactly_once() -> None:
    for nbytes in (0, 100):
        got: list[Any] = []
        ptr = DataPtr("handle", 0, nbytes, FAKE, "context", got.append)
        ptr.release()
        ptr.release()
        del ptr
        assert got == ["context"]
    DataPtr("handle", 0, 0, FAKE, "dropped", got.append)
    assert got == ["context", "dropped"]


@pytest.mark.parametrize("made", ["by the allocator", "by hand"])
def test_reference_cycle_of_an_allocator_and_its_pointers_is_freed(
    monkeypatch: pytest.MonkeyPatch, made: str
) -> None:
    """In any order of finalization: the object that frees the memory may be older than the rest."""
    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: reported.append(u.exc_value))
    got: list[Any] = []

    class Ring:
        pass

    _, allocator = make()
    if made == "by the allocator":
        allocator.allocate(100).release()
        gc.collect()
        ptr = allocator.allocate(100)
    else:
        ptr = DataPtr("handle", 0, 100, FAKE, "context", got.append)
    ring: Any = Ring()
    ring.itself, ring.ptr, ring.allocator = ring, ptr, allocator
    ended = weakref.ref(ring)
    del ring, ptr, allocator
    gc.collect()
    assert ended() is None and not reported
    assert got == ([] if made == "by the allocator" else ["context"])


def test_deleter_in_a_cycle_is_called_before_the_collector_clears_it() -> None:
    got: list[object] = []
    for k in range(50):
        _make_ring(k, got)
        gc.collect()
    assert got == [(k, True) for k in range(50)]


def _make_ring(k: int, got: list[object]) -> None:
    """Make a pointer in a reference cycle with its deleter, a closure that is the older of both."""
    ring: dict[str, object] = {}

    def deleter(_: object) -> None:
        got.append((k, "pointer" in ring))

    ring["deleter"] = deleter
    ring["pointer"] = DataPtr("handle", 0, 100, FAKE, None, deleter)


def test_deleter_is_called_once_for_each_pointer_in_recycled_memory() -> None:
    got: list[int] = []
    for k in range(300):  # more than a free list keeps
        DataPtr("handle", 0, 1, FAKE, k, got.append)
        ring: list[object] = [DataPtr("handle", 0, 1, FAKE, -k, got.append)]
        ring.append(ring)
        del ring
        gc.collect(0)
    gc.collect()
    assert sorted(got) == sorted([*range(300), *range(0, -300, -1)])


def test_error_in_the_deleter_is_reported_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: reported.append(u.exc_type))
    DataPtr("h", 0, 1, FAKE, None, lambda _: 1 / 0).release()
    ptr = DataPtr("h", 0, 1, FAKE, None, lambda _: 1 / 0)
    del ptr
    assert reported == [ZeroDivisionError, ZeroDivisionError]


def test_foreign_owner_lives_as_long_as_its_pointer() -> None:
    class Owner:
        pass

    owner = Owner()
    alive = weakref.ref(owner)
    ptr = wrap_pointer(owner, 4096, 16, FAKE, 8)
    del owner
    assert alive() is not None and (ptr.handle, ptr.offset, ptr.nbytes) == (4096, 8, 16)
    ptr.release()
    assert alive() is None


def test_storage_supports_weak_references() -> None:
    storage = storage_at(wrap_pointer(None, 0, 8, FAKE), 8, FAKE, read_only=True)
    assert weakref.ref(storage)() is storage
    assert storage.read_only
    with pytest.raises(AttributeError):
        storage.colour = "red"  # type: ignore[attr-defined]


def test_raw_memory_is_freed_by_context() -> None:
    backend, allocator = make()
    ptr = allocator.raw_allocate(100)
    context = ptr.context
    del ptr
    assert allocator.stats().live_blocks == 1
    allocator.raw_deallocate(context)
    check(backend, allocator, [])


# --- the cache


def test_freed_memory_is_reused_without_a_call_of_the_device() -> None:
    backend, allocator = make()
    for nbytes in (0, 1, 512, 513, MIB, 3 * MIB, 100 * MIB):
        ptr = allocator.allocate(nbytes)
        where = ptr.handle, ptr.offset
        del ptr
        calls = backend.calls
        again = allocator.allocate(nbytes)
        assert (again.handle, again.offset) == where and backend.calls == calls
        del again


def test_segments_have_the_documented_sizes() -> None:
    for nbytes, segment in (
        (1, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 1, 20 * MIB),
        (10 * MIB, 20 * MIB),
        (10 * MIB + 1, 12 * MIB),
        (31 * MIB, 32 * MIB),
    ):
        backend, allocator = make()
        ptr = allocator.allocate(nbytes)
        assert list(backend.live.values()) == [segment]
        del ptr


def test_free_neighbors_merge() -> None:
    backend, allocator = make()
    pieces = [allocator.allocate(512 * KIB) for _ in range(4)]
    assert backend.calls == 1
    random.Random(0).shuffle(pieces)
    pieces.clear()
    whole = [allocator.allocate(MIB) for _ in range(2)]
    assert backend.calls == 1
    check(backend, allocator, whole)


def test_large_block_is_reused_unsplit_and_merged_for_another_size() -> None:
    backend, allocator = make()
    first, rest = allocator.allocate(6 * MIB), allocator.allocate(4 * MIB)
    place = first.handle, first.offset
    cut = len(allocator.snapshot()[0].blocks)
    for _ in range(3):
        del first
        first = allocator.allocate(6 * MIB)
        assert (first.handle, first.offset) == place
        assert len(allocator.snapshot()[0].blocks) == cut
    del first, rest  # neighbours, each in the bin of its size
    whole = allocator.allocate(10 * MIB)  # which both make up
    assert (whole.handle, whole.offset) == place
    assert backend.calls == 1
    held = [
        allocator.allocate(11 * MIB + k * KIB) for k in range(2 * LARGE_BINS_MAX)
    ]  # more than there are bins for
    del held, whole
    allocator.empty_cache()
    assert allocator.stats().reserved_bytes == 0
    check(backend, allocator, [])


def test_best_fit_is_selected() -> None:
    _, allocator = make()
    sizes = [3 * MIB, 2 * MIB, 4 * MIB, 2 * MIB, 3 * MIB, 3 * MIB // 2]
    blocks = [allocator.allocate(n) for n in sizes]
    fence, hole = blocks[1::2], blocks[2].offset  # holes: 3, 4, 3 and 4.5 MiB
    del blocks
    assert allocator.allocate(7 * MIB // 2).offset == hole
    assert len(fence) == 3


def test_large_cached_block_serves_a_smaller_request() -> None:
    backend, allocator = make()
    allocator.allocate(100 * MIB).release()
    parts = [allocator.allocate(60 * MIB), allocator.allocate(40 * MIB)]
    assert backend.calls == 1
    check(backend, allocator, parts)


def test_cache_stays_in_proportion_to_live_memory() -> None:
    backend, allocator = make()
    for mib in range(20, 400, 20):
        allocator.allocate(mib * MIB).release()
        stats = allocator.stats()
        assert stats.reserved_bytes <= stats.peak_live_bytes * 3 // 2 + SLACK_BYTES
    assert backend.used < 700 * MIB


def test_reset_peak_sets_peaks_to_live_bytes() -> None:
    _, allocator = make()
    allocator.allocate(10 * MIB).release()
    assert allocator.stats()["peak_live_bytes"] == 10 * MIB
    allocator.reset_peak()
    assert allocator.stats().peak_live_bytes == 0
    assert set(allocator.stats()) >= {"live_bytes", "cache_hits", "retries", "out_of_memory"}
    with pytest.raises(KeyError):
        allocator.stats()["colour"]


# --- streams


def test_block_is_reused_only_on_its_stream() -> None:
    backend, allocator = make()
    first = allocator.allocate(1000, "a")
    handle = first.handle
    del first
    other, again = allocator.allocate(1000, "b"), allocator.allocate(1000, "a")
    assert other.handle != handle and again.handle == handle
    check(backend, allocator, [other, again])


def test_record_stream_keeps_a_block_until_the_other_stream_has_passed() -> None:
    backend, allocator = make()
    ptr = allocator.allocate(1000)
    where = ptr.offset
    allocator.record_stream(ptr, "other")
    allocator.record_stream(ptr, "other")
    del ptr
    second = allocator.allocate(1000)
    assert second.offset != where and allocator.stats().waiting_bytes == 1024
    backend.passed["other"] = 1
    assert allocator.stats().waiting_bytes == 0
    assert allocator.allocate(1000).offset == where


def test_record_stream_of_the_own_stream_changes_nothing() -> None:
    backend, allocator = make()
    ptr = allocator.allocate(1000, "a")
    where = ptr.offset
    allocator.record_stream(ptr, "a")
    del ptr
    assert allocator.allocate(1000, "a").offset == where and not backend.queued


def test_record_stream_of_foreign_memory_changes_nothing() -> None:
    _, allocator = make()
    before = allocator.stats()
    allocator.record_stream(wrap_pointer(object(), 0, 8, FAKE), "other")
    assert allocator.stats() == before, "it is none of the allocator's blocks"


# --- refusals of the device


def test_cached_memory_is_released_before_an_error() -> None:
    backend, allocator = make(capacity=100 * MIB)
    allocator.allocate(60 * MIB).release()
    held = allocator.allocate(80 * MIB)
    stats = allocator.stats()
    assert stats.retries == 1 and stats.out_of_memory == 0 and backend.synchronized
    check(backend, allocator, [held])


def test_blocks_in_use_by_streams_are_waited_for_before_an_error() -> None:
    backend, allocator = make(capacity=100 * MIB)
    ptr = allocator.allocate(80 * MIB)
    allocator.record_stream(ptr, "other")
    del ptr
    check(backend, allocator, [allocator.allocate(90 * MIB)])


def test_small_device_gets_segments_of_the_exact_size() -> None:
    backend, allocator = make(capacity=3 * MIB)
    check(backend, allocator, [allocator.allocate(3 * MIB)])


def test_cycles_that_hold_memory_are_collected_before_an_error() -> None:
    _, allocator = make(capacity=100 * MIB)
    cycle: list[Any] = [allocator.allocate(80 * MIB)]
    cycle.append(cycle)
    del cycle
    assert allocator.allocate(90 * MIB).nbytes == 90 * MIB


def test_out_of_memory_error_ends_with_the_reason_of_the_device() -> None:
    _, allocator = make(capacity=100 * MIB)
    with pytest.raises(OutOfMemoryError, match=r"memory was freed: 104857600 bytes are free\.\n"):
        allocator.allocate(160 * MIB)
    allocator.set_limit(50 * MIB)
    with pytest.raises(OutOfMemoryError, match=r"\(limit: 50.0 MiB\), .* memory was freed\.\n"):
        allocator.allocate(60 * MIB)


def test_no_segment_is_larger_than_the_largest_buffer() -> None:
    backend, allocator = make(max_buffer=4 * MIB)
    held = [allocator.allocate(n) for n in (100, MIB, 2 * MIB, 2 * MIB, 3 * MIB + 1, 4 * MIB)]
    assert max(backend.live.values()) == 4 * MIB
    assert len(backend.live) == 4  # the two of 2 MiB share one
    calls = backend.calls
    with pytest.raises(
        OutOfMemoryError, match=r"could not allocate 4.0 MiB: .* 4194304 bytes there, .* 4194816"
    ):
        allocator.allocate(4 * MIB + 1)
    assert backend.calls == calls and not allocator.stats().retries
    check(backend, allocator, held)


def test_out_of_memory_error_names_the_largest_holders() -> None:
    backend, allocator = make(capacity=100 * MIB)
    held = [allocator.allocate(50 * MIB)]
    with pytest.raises(
        OutOfMemoryError, match=r"(?s)could not allocate 60.0 MiB.*live 50.0 MiB.*trace\(True"
    ):
        allocator.allocate(60 * MIB)
    memory.trace(True)
    try:
        held.append(allocator.allocate(40 * MIB))
        with pytest.raises(
            OutOfMemoryError, match=r"(?s)the lines that hold most:.*40.0 MiB.*test_memory"
        ):
            allocator.allocate(60 * MIB)
        line = next(b.where for s in allocator.snapshot() for b in s.blocks if b.where)
        assert "test_memory.py:" in line
    finally:
        memory.trace(False)
    assert allocator.stats().out_of_memory == 2
    check(backend, allocator, held)


def test_set_limit_is_enforced() -> None:
    backend, allocator = make()
    allocator.set_limit(50 * MIB)
    held = allocator.allocate(30 * MIB)
    with pytest.raises(MemoryError, match=r"limit: 50\.0 MiB"):
        allocator.allocate(30 * MIB)
    check(backend, allocator, [held])
    allocator.set_limit(None)
    assert allocator.allocate(30 * MIB).nbytes == 30 * MIB


@pytest.mark.parametrize("refused", range(1, 12))
def test_allocator_survives_a_single_refusal_at_any_call(refused: int) -> None:
    backend, allocator = make()
    backend.refuse = {refused}
    live = []
    for nbytes in (100, 3 * MIB, 40 * MIB, 900 * KIB, 900 * KIB, 900 * KIB, 15 * MIB, 9 * MIB) * 2:
        live.append(allocator.allocate(nbytes))
        check(backend, allocator, live)
    assert allocator.stats().out_of_memory == 0


# --- random traces


def _size(rng: random.Random) -> int:
    top = rng.choice((0, 600, 5000, MIB, 9 * MIB, 30 * MIB))
    return rng.randint(0, top)


@pytest.mark.parametrize("seed", range(12))
def test_random_traces_keep_all_invariants(seed: int) -> None:
    rng = random.Random(seed)
    capacity = rng.choice((1 << 60, 300 * MIB, 60 * MIB))
    backend, allocator = make(capacity)
    live: list[DataPtr] = []
    refused = 0
    for step in range(600):
        action = rng.random()
        if action < 0.55:
            try:
                live.append(allocator.allocate(_size(rng), rng.choice((None, None, "a", "b"))))
            except OutOfMemoryError:
                refused += 1
        elif action < 0.95 and live:
            live.pop(rng.randrange(len(live)))
        elif action < 0.97 and live:
            allocator.record_stream(rng.choice(live), rng.choice("abc"))
        elif action < 0.98:
            backend.synchronize()
        elif action < 0.985:
            backend.refuse = {backend.calls + rng.randint(1, 3)}
        elif action < 0.99:
            allocator.empty_cache()
        else:
            live.clear()
        if step % 20 == 0:
            check(backend, allocator, live)
    assert allocator.stats().out_of_memory == refused
    live.clear()
    allocator.empty_cache()
    check(backend, allocator, [])
    assert backend.used == 0 and not backend.live


def test_threads_get_disjoint_blocks() -> None:
    backend, allocator = make()
    kept: list[DataPtr] = []
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        live: list[DataPtr] = []
        try:
            for _ in range(2000):
                if rng.random() < 0.55 or not live:
                    live.append(allocator.allocate(_size(rng), rng.choice((None, "a"))))
                else:
                    live.pop(rng.randrange(len(live)))
        except BaseException as error:
            errors.append(error)
        kept.extend(live)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(before)
    assert not errors
    check(backend, allocator, kept)
    kept.clear()
    allocator.empty_cache()
    assert backend.used == 0


# --- crossing lifetimes


def test_finalizers_and_signals_may_allocate_inside_the_allocator() -> None:
    """A trace function allocates and frees between any two lines of the allocator, as a
    finalizer may.
    """
    backend, allocator = make()
    rng, entered = random.Random(0), 0
    live: list[DataPtr] = []
    inner: list[DataPtr] = []

    def interrupt(frame: Any, event: str, argument: Any) -> Any:
        nonlocal entered
        if event == "line" and rng.random() < 0.2:
            entered += allocator.fast_path.state == BUSY
            inner.append(allocator.allocate(rng.randint(0, 3 * MIB)))
            rng.choice((allocator.stats, allocator.snapshot, allocator.empty_cache))()
            if len(inner) > 5:
                del inner[rng.randrange(len(inner))]
        return interrupt if frame.f_code.co_filename.startswith(PACKAGE) else None

    sys.settrace(interrupt)
    try:
        for _ in range(1000):
            if rng.random() < 0.55 or not live:
                live.append(allocator.allocate(rng.randint(0, 3 * MIB)))
            else:
                live.pop(rng.randrange(len(live)))
            if rng.random() < 0.05:
                rng.choice((allocator.stats, allocator.snapshot, allocator.empty_cache))()
    finally:
        sys.settrace(None)
    assert entered > 100
    live.clear()
    inner.clear()
    allocator.empty_cache()
    check(backend, allocator, [])
    assert backend.used == 0


def test_pointers_outlive_their_allocator_which_then_frees_everything() -> None:
    backend, allocator = make()
    alive = weakref.ref(allocator)
    ptr = allocator.allocate(1000)
    del allocator
    gc.collect()
    assert backend.used and alive() is not None
    del ptr
    gc.collect()
    assert backend.used == 0 and alive() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_can_allocate_while_a_thread_held_the_lock() -> None:
    backend, allocator = make()
    plain, inside, go_on = backend.allocate, threading.Event(), threading.Event()

    def slow(nbytes: int) -> Any:
        inside.set()
        go_on.wait(0.3)
        return plain(nbytes)

    backend.allocate = slow  # type: ignore[method-assign]
    thread = threading.Thread(target=lambda: allocator.allocate(1000))
    thread.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        worker = threading.Thread(target=lambda: allocator.allocate(2000), daemon=True)
        worker.start()
        worker.join(10)
        os._exit(int(worker.is_alive()))
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert allocator.allocate(3000).nbytes == 3000


# --- which allocator


class PlainAllocator(Allocator):
    def allocate(self, nbytes: int, stream: Any = None) -> DataPtr:
        return DataPtr("plain", 0, nbytes, FAKE)


class _Opened:
    def __init__(self, backend: Backend, allocator: Allocator) -> None:
        self.backend, self.allocator = backend, allocator


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    monkeypatch.setattr(memory, "_chosen", {})
    dev = Device("fake", 0)
    dev.opened = _Opened(*make())
    monkeypatch.setattr(memory, "opened_devices", lambda: [dev])
    yield dev


def test_set_allocator_replaces_the_allocator_and_old_pointers_stay_valid(opened: Device) -> None:
    old = get_allocator(opened).allocate(100)
    set_allocator("fake", PlainAllocator(), priority=1)
    assert get_allocator(opened).allocate(1).handle == "plain"
    set_allocator("fake", CachingAllocator, priority=0)
    assert isinstance(get_allocator(opened), PlainAllocator), (
        "a lower priority must not replace a higher"
    )
    backend = opened.opened.backend
    assert old.handle in backend.live
    del old
    gc.collect()
    assert backend.used == 0


def test_allocator_without_statistics_reports_zeros(opened: Device) -> None:
    set_allocator("fake", PlainAllocator())
    assert memory.stats(opened).live_bytes == 0 and memory.snapshot(opened) == []
    memory.empty_cache(opened)
    memory.reset_peak(opened)


def test_loop_whose_sizes_share_a_segment_stops_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two blocks that do not fit into one segment do not take each other's memory for ever."""
    backend, allocator = make()
    asked: list[int] = []
    miss = CachingAllocator._allocate_slow
    monkeypatch.setattr(
        CachingAllocator,
        "_allocate_slow",
        lambda self, pool, n: asked.append(n) or miss(self, pool, n),
    )
    kept = allocator.allocate(512)
    for _ in range(4):
        asked.clear()
        for size in (MIB, MIB - 20 * KIB, 40 * KIB, 200 * KIB, 2 * KIB):
            allocator.allocate(size).release()
    assert not asked
    check(backend, allocator, [kept])


def test_ever_changing_sizes_stay_within_the_cache_bound() -> None:
    backend, allocator = make()
    rng = random.Random(3)
    kept = allocator.allocate(512)
    for _ in range(5000):
        allocator.allocate(rng.randrange(1, 12 * MIB)).release()
        assert backend.used <= allocator.stats().peak_live_bytes * 3 // 2 + SLACK_BYTES + 20 * MIB
    check(backend, allocator, [kept])
