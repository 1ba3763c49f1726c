"""Wrong calls of memory functions, and allocators with wrong results, raise dovetail's errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import dovetail as dt
import pytest
from dovetail.memory import Allocator, CachingAllocator, DataPtr

REFERENCE = dt.device("reference")


@pytest.fixture(autouse=True)
def usable_afterwards() -> Iterator[None]:
    """Check that the device allocates and computes after the test."""
    yield
    dt.memory.set_allocator("reference", CachingAllocator)
    x = [dt.ones(n, device="reference") for n in (1, 25, 1000, 25)]
    assert [float(v.sum()) for v in x] == [1, 25, 1000, 25]


def allocator() -> Allocator:
    return dt.memory.get_allocator("reference")


@pytest.mark.parametrize("give_back", ["raw_deallocate", "raw_deleter"])
@pytest.mark.parametrize("what", ["pointer", "None", "number", "twice", "other", "freed"])
def test_deallocate_of_an_invalid_context_raises(what: str, give_back: str) -> None:
    own = allocator()
    other = CachingAllocator(dt.plugins.open_device("reference").backend, REFERENCE)
    ptr, apart, ended = own.raw_allocate(100), other.raw_allocate(100), own.allocate(100)
    context = ended.context
    ended.release()
    wrong = {
        "pointer": ptr, "None": None, "number": 7, "twice": ptr.context, "other": apart.context,
        "freed": context,
    }[what]  # fmt: skip
    deallocate: Any = own.raw_deallocate if give_back == "raw_deallocate" else own.raw_deleter()
    if what == "twice":
        deallocate(ptr.context)
    with pytest.raises(dt.ArgumentError, match=r"raw_deallocate.*ptr\.context"):
        deallocate(wrong)
    if what != "twice":
        own.raw_deallocate(ptr.context)
    other.raw_deallocate(apart.context)


@pytest.mark.parametrize("nbytes", [-1, "8", None, 1.5, [8]])
@pytest.mark.parametrize("name", ["allocate", "raw_allocate"])
def test_invalid_sizes_raise(name: str, nbytes: Any) -> None:
    with pytest.raises((dt.ArgumentError, dt.ArgumentTypeError), match="nbytes"):
        getattr(allocator(), name)(nbytes)


@pytest.mark.parametrize("name", ["nonsense", "", "cpu:0", "Reference"])
def test_set_allocator_of_an_unknown_device_type_raises(name: str) -> None:
    with pytest.raises(dt.DeviceError, match=r"device_type must be an installed type .*reference"):
        dt.memory.set_allocator(name, CachingAllocator)


@pytest.mark.parametrize("made", [None, 5, CachingAllocator, "an allocator"])
def test_factory_that_returns_no_allocator_raises_and_changes_nothing(made: Any) -> None:
    before = allocator()
    with pytest.raises(dt.ArgumentError, match="must return an Allocator"):
        dt.memory.set_allocator("reference", lambda backend, device: made)
    assert allocator() is before


def raising(error: BaseException) -> Callable[[int], Any]:
    def answer(nbytes: int) -> Any:
        raise error

    return answer


class AnsweringAllocator(Allocator):
    """An allocator that returns the result of a function of the size."""

    def __init__(self, answer: Callable[[int], Any]) -> None:
        self.answer = answer

    def allocate(self, nbytes: int, stream: Any = None) -> Any:
        return self.answer(nbytes)


HOSTILE: dict[str, tuple[Callable[[int], Any], type[Exception]]] = {
    "None": (lambda nbytes: None, dt.ArgumentError),
    "number": (lambda nbytes: 4096, dt.ArgumentError),
    "short": (lambda nbytes: DataPtr(0, 0, nbytes - 1, REFERENCE), dt.ArgumentError),
    "elsewhere": (lambda nbytes: DataPtr(0, 0, nbytes, dt.device("cpu:7")), dt.ArgumentError),
    "ValueError": (raising(ValueError("no")), dt.PluginError),
    "KeyError": (raising(KeyError(1)), dt.PluginError),
    "MemoryError": (raising(MemoryError()), MemoryError),
    "OutOfMemoryError": (raising(dt.OutOfMemoryError("full")), dt.OutOfMemoryError),
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("way", ["device", "storage"])
def test_hostile_allocator_raises_errors_of_dovetail(kind: str, way: str) -> None:
    answer, error = HOSTILE[kind]
    hostile = AnsweringAllocator(answer)
    with pytest.raises(error):
        if way == "storage":
            dt.Storage(64, "reference", allocator=hostile)
        else:
            dt.memory.set_allocator("reference", hostile)
            dt.evaluate(dt.ones(10, device="reference") + 1)


def test_allocator_without_a_limit_raises_in_set_limit() -> None:
    with pytest.raises(dt.ArgumentError, match="AnsweringAllocator does not support a limit"):
        AnsweringAllocator(lambda nbytes: None).set_limit(5)


@pytest.mark.parametrize(
    "arguments",
    [
        (0, -1, 5, REFERENCE), (0, 0, -5, REFERENCE), (0, "0", 5, REFERENCE),
        (0, 0, None, REFERENCE), (0, 0, 5, "reference"), (0, 0, 5, REFERENCE, None, 7),
    ],
)  # fmt: skip
def test_pointer_with_wrong_arguments_raises(arguments: tuple[Any, ...]) -> None:
    with pytest.raises((dt.ArgumentError, dt.ArgumentTypeError), match="DataPtr"):
        DataPtr(*arguments)
