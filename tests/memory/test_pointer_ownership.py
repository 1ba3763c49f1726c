"""Changes of a pointer's owner: its memory is freed exactly once."""

from __future__ import annotations

import gc
import os
import sys
import threading
from pathlib import Path
from typing import Any

import dovetail as dt
import pytest
from dovetail import memory
from dovetail.memory import DataPtr
from fake_device import FAKE, check, make

PACKAGE = str(Path(memory.__file__).parent)


def test_deleter_that_is_set_replaces_the_one_before() -> None:
    old: list[Any] = []
    new: list[Any] = []
    ptr = DataPtr("handle", 0, 8, FAKE, "context", old.append)
    assert ptr.deleter == old.append
    ptr.deleter = new.append
    assert ptr.deleter == new.append
    ptr.release()
    del ptr
    assert (old, new) == ([], ["context"])


def test_deleter_of_none_frees_nothing() -> None:
    got: list[Any] = []
    ptr = DataPtr("handle", 0, 8, FAKE, "context", got.append)
    ptr.deleter = None
    assert ptr.deleter is None
    assert ptr.compare_exchange_deleter(None, got.append)
    ptr.deleter = None
    del ptr
    assert got == []
    with pytest.raises(dt.ArgumentTypeError, match="deleter"):
        DataPtr("handle", 0, 8, FAKE).deleter = 3  # type: ignore[assignment]


def test_exchange_happens_only_for_the_expected_deleter() -> None:
    first: list[Any] = []
    second: list[Any] = []
    ptr = DataPtr("handle", 0, 8, FAKE, "context", first.append)
    assert not ptr.compare_exchange_deleter(second.append, print)
    assert not ptr.compare_exchange_deleter(None, print)
    assert ptr.compare_exchange_deleter(first.append, second.append)
    del ptr
    assert (first, second) == ([], ["context"])
    plain = DataPtr("handle", 0, 8, FAKE, "plain")
    assert not plain.compare_exchange_deleter(first.append, second.append)
    assert plain.compare_exchange_deleter(None, first.append)
    del plain
    assert first == ["plain"]


@pytest.mark.parametrize("traced", [False, True])
def test_deleter_of_an_allocator_can_be_wrapped(traced: bool) -> None:
    backend, allocator = make()
    dt.memory.trace(traced)
    try:
        ptr = allocator.allocate(100)
    finally:
        dt.memory.trace(False)
    seen: list[Any] = []
    free = ptr.deleter
    assert free is not None
    assert ptr.compare_exchange_deleter(
        ptr.deleter, lambda context: (seen.append(context), free(context))
    )
    assert allocator.stats().live_blocks == 1
    context = ptr.context
    del ptr
    assert seen == [context] and allocator.stats().live_blocks == 0
    check(backend, allocator, [])


def test_moved_context_is_freed_by_the_new_pointer() -> None:
    got: list[Any] = []
    ptr = DataPtr("handle", 64, 8, FAKE, "context", got.append)
    owner = ptr.move_context()
    assert (owner.handle, owner.offset, owner.nbytes, owner.context) == ("handle", 64, 8, "context")
    assert ptr.context is None and ptr.deleter is None and ptr.handle == "handle"
    del ptr
    assert got == []
    del owner
    assert got == ["context"]


def test_released_context_belongs_to_the_caller() -> None:
    got: list[Any] = []
    ptr = DataPtr("handle", 0, 8, FAKE, "context", got.append)
    assert ptr.release_context() == "context"
    assert ptr.context is None and ptr.deleter is None
    del ptr
    assert got == []


class Copy:
    """A copy that may be running."""

    def __init__(self, give_back: Any) -> None:
        self.give_back, self.waits = give_back, 0

    def wait(self) -> None:
        self.waits += 1


@pytest.mark.parametrize("change", ["release", "detach", "release_context", "move_context", "set"])
def test_changes_of_a_pointer_that_a_copy_uses_free_it_at_most_once(change: str) -> None:
    freed: list[Any] = []
    departed: list[Any] = []
    ptr: Any = DataPtr("handle", 0, 8, FAKE, "context", freed.append)
    copy = Copy(ptr.give_back)
    ptr.depart(copy, lambda: departed.append(copy))
    if change == "set":
        ptr.deleter = freed.append
    else:
        kept = getattr(ptr, change)()
        del kept
    assert ptr.handle == "handle"
    del ptr
    freed_by_copy = change == "release"  # its memory is freed with the copy, later
    assert (copy.waits, len(departed)) == ((0, 1) if freed_by_copy else (1, 0))
    assert freed == (["context"] if change in ("move_context", "set") else [])


def test_exchanges_of_many_threads_free_exactly_once() -> None:
    for _ in range(50):
        lists: list[list[Any]] = [[] for _ in range(9)]
        ptr = DataPtr("handle", 0, 8, FAKE, "context", lists[0].append)
        won: list[int] = []

        def exchange(k: int, ptr: DataPtr = ptr, lists: Any = lists, won: Any = won) -> None:
            if ptr.compare_exchange_deleter(lists[0].append, lists[k].append):
                won.append(k)

        threads = [threading.Thread(target=exchange, args=(k,)) for k in range(1, 9)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        exchange.__defaults__ = None
        del ptr, threads
        gc.collect()
        (k,) = won
        assert [len(x) for x in lists] == [int(i == k) for i in range(9)]


def test_interrupt_at_any_call_frees_exactly_once() -> None:
    """An interrupt before the end leaves the deleter from before, or the new one."""
    for change in ("exchange", "move", "set", "release"):
        for step in range(100):
            freed: list[Any] = []
            ptr = DataPtr("handle", 0, 8, FAKE, "context", freed.append)
            count = 0

            def interrupt(frame: Any, event: str, argument: Any, step: int = step) -> Any:
                nonlocal count
                if not frame.f_code.co_filename.startswith(PACKAGE):
                    return None
                if event == "line":  # the interpreter handles Ctrl-C at calls only
                    return interrupt
                count += 1
                if count == step + 1:
                    raise KeyboardInterrupt
                return interrupt

            def free(context: Any, freed: list[Any] = freed) -> None:
                freed.append(context)

            is_complete = False
            sys.settrace(interrupt)
            try:
                if change == "exchange":
                    ptr.compare_exchange_deleter(freed.append, free)
                elif change == "move":
                    ptr = ptr.move_context()
                elif change == "set":
                    ptr.deleter = free
                else:
                    ptr.release()
                is_complete = True
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(None)
            del ptr
            assert freed == ["context"], (change, step)
            if is_complete:
                break
        else:
            raise AssertionError(f"{change} has more than 100 calls")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_each_process_of_a_fork_frees_its_own_copy_once() -> None:
    freed: list[Any] = []
    ptr: DataPtr | None = DataPtr("handle", 0, 8, FAKE, "context", freed.append)
    assert ptr is not None and ptr.compare_exchange_deleter(ptr.deleter, freed.append)
    child = os.fork()
    if not child:
        owner = ptr.move_context()
        ptr = None
        before = list(freed)
        del owner
        os._exit(0 if before == [] and freed == ["context"] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert freed == []
    ptr = None
    assert freed == ["context"]


def test_exchanged_deleter_runs_once_when_a_resize_replaces_the_memory() -> None:
    freed: list[str] = []
    own = dt.zeros(2, device="reference")
    ptr = own.storage().ptr
    free = ptr.deleter
    assert free is not None
    ptr.deleter = lambda context: (freed.append("own"), free(context))
    del ptr
    own.resize_(1000)
    gc.collect()
    assert freed == ["own"]


def test_storage_has_the_address_and_the_device_type() -> None:
    x = dt.arange(6, dtype=dt.float32)
    s = x[2:].storage()
    assert s.data_ptr() == s.data() == x.data_ptr() == x[2:].data_ptr() - 8
    assert s.device_type() == s.ptr.device_type() == x.device.type
    assert isinstance(s.data_ptr(), int)


def test_pointer_text_shows_device_address_size_and_deleter() -> None:
    def free(_: object) -> None:
        pass

    name = free.__qualname__
    assert repr(DataPtr(0x7000, 64, 4096, FAKE, None, free)) == (
        f"DataPtr({FAKE}, 0x7040, 4096 bytes, deleter={name})"
    )
    assert repr(DataPtr(0x7000, 0, 5, FAKE)) == f"DataPtr({FAKE}, 0x7000, 5 bytes)"
    text = repr(DataPtr(free, 64, 5, FAKE))
    assert text == f"DataPtr({FAKE}, function at {id(free):#x}+64, 5 bytes)"


def test_block_is_taken_back_while_an_error_is_pending(device: str) -> None:
    x = dt.asarray([1.0] * 1000, device=device)

    def computed() -> Any:
        y = x + 1
        dt.evaluate(y)
        return y

    gc.collect()
    before = memory.stats(device)["live_bytes"]
    with pytest.raises(ZeroDivisionError):
        [computed(), 1 // 0]  # the tensor on the stack dies while the error is set
    assert memory.stats(device)["live_bytes"] == before
    assert computed().tolist() == [2.0] * 1000


def test_deleter_that_raises_in_a_dead_pointer_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: reported.append(report.exc_value))

    def free(context: object) -> None:
        raise OSError("no such memory")

    with pytest.raises(ZeroDivisionError):
        [DataPtr("handle", 0, 8, FAKE, None, free), 1 // 0]
    assert [str(e) for e in reported] == ["no such memory"]
