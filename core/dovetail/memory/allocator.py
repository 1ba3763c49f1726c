"""The interface of allocators, and their statistics and snapshots."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from ..argument_checks import LARGEST, integer, refused, shown
from ..backend.streams import current_handle
from ..device_class import Device, opened
from ..errors import ArgumentError, DovetailError, PluginError
from .pointer import Context, DataPtr, Deleter, Handle, StreamHandle
from .tracing.trace import Timeline
from .units import format_bytes


class Stats(dict[str, int]):
    """Statistics of one device's allocator by name, also as attributes; see `stats`.

    - `figures`: values by name; those that are left out are 0.

    Units: bytes, of blocks rounded up to 512.

    >>> import dovetail as dt
    >>> sorted(dt.memory.stats("reference"))[:3]
    ['allocations', 'cache_hits', 'cached_bytes']
    """

    FIGURES = (
        "live_bytes",
        "live_blocks",
        "peak_live_bytes",
        "cached_bytes",  # reserved and not live
        "waiting_bytes",  # of those: freed, but another stream may still use them
        "reserved_bytes",
        "peak_reserved",
        "allocations",
        "frees",
        "device_allocations",
        "device_frees",
        "cache_hits",
        "retries",
        "out_of_memory",
    )

    def __init__(self, **figures: int) -> None:
        super().__init__({**dict.fromkeys(self.FIGURES, 0), **figures})

    def __getattr__(self, name: str) -> int:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class BlockInfo(NamedTuple):
    """One block in a snapshot: offset and size in bytes, state, and the line that allocated it.

    - `offset`: the start of the block in its segment, in bytes.
    - `nbytes`: the size of the block.
    - `state`: "live", "cached" or "waiting".
    - `where`: the line that allocated the block; None without a trace.

    >>> import dovetail as dt
    >>> dt.memory.BlockInfo(0, 512, "live", None).nbytes
    512
    """

    offset: int
    nbytes: int
    state: str
    where: str | None


class SegmentInfo(NamedTuple):
    """One allocation of the device, and the blocks that it is split into, in order.

    - `nbytes`: the size of the segment.
    - `stream`: the backend's handle of the stream that uses it; None is the default stream.
    - `blocks`: the blocks, a tuple of `BlockInfo`.

    Units: bytes.

    >>> import dovetail as dt
    >>> x = dt.ones(3)
    >>> dt.evaluate(x)
    >>> sum(b.nbytes for b in dt.memory.snapshot("reference")[0].blocks) % 512
    0
    """

    nbytes: int
    stream: StreamHandle
    blocks: tuple[BlockInfo, ...]


class Allocator(ABC):
    """An allocator of the memory of one device, of which a subclass must define `allocate`.

    >>> import dovetail as dt
    >>> isinstance(dt.memory.get_allocator("reference"), dt.memory.Allocator)
    True
    """

    timeline: Timeline | None = None  # its events since `trace(True)`, if it records them

    @abstractmethod
    def allocate(self, nbytes: int, stream: StreamHandle = None) -> DataPtr:
        """Return memory of `nbytes` >= 0 bytes for use on `stream`.

        - `nbytes`: the number of bytes, 0 or more.
        - `stream`: a backend's handle of a stream; None is the default stream.

        Raises: OutOfMemoryError.
        """

    def raw_deleter(self) -> Deleter | None:
        """Return the function that frees a context, or None if the end of the context frees it."""
        return None

    def raw_allocate(self, nbytes: int, stream: StreamHandle = None) -> DataPtr:
        """Allocate memory that the caller frees, by `raw_deallocate(ptr.context)`.

        - `nbytes`: the number of bytes, 0 or more.
        - `stream`: a backend's handle of a stream; None is the default stream.
        """
        ptr = self.allocate(integer("raw_allocate", nbytes, "nbytes", 0, LARGEST), stream)
        ptr.detach()
        return ptr

    def raw_deallocate(self, context: Context) -> None:
        """Free memory of `raw_allocate`, given by its context.

        - `context`: the `context` of the pointer that `raw_allocate` returned.

        Raises: ArgumentError for a pointer in place of its context, and, if the allocator can tell,
        for a context that is not its own or was freed before.
        """
        if isinstance(context, DataPtr):
            raise ArgumentError(
                f"raw_deallocate: context must be that of a pointer, got {context!r}; "
                "write raw_deallocate(ptr.context)"
            )
        deleter = self.raw_deleter()
        if deleter is not None:
            deleter(context)

    def record_stream(self, ptr: DataPtr, stream: StreamHandle) -> None:  # noqa: B027 - nothing to do without reuse
        """Record that `ptr` is also used on `stream`; by default do nothing.

        Its memory is not reused before the work queued on that stream is done.

        - `ptr`: a pointer of this allocator.
        - `stream`: a backend's handle of a stream.
        """

    def stats(self) -> Stats:
        """Return the statistics; zeros if the allocator keeps none."""
        return Stats()

    def snapshot(self) -> list[SegmentInfo]:
        """Return the segments and their blocks; empty if the allocator keeps none."""
        return []

    def reset_peak(self) -> None:  # noqa: B027
        """Reset the peaks to the current statistics; by default do nothing."""

    def empty_cache(self) -> None:  # noqa: B027
        """Return memory that is not in use to the device; by default do nothing."""

    def set_limit(self, nbytes: int | None) -> None:
        """Limit the bytes reserved on the device, unless None; by default raise ArgumentError.

        - `nbytes`: the limit; None is no limit.
        """
        raise ArgumentError(f"set_limit: {type(self).__name__} does not support a limit")

    def extent(self, handle: Handle, offset: int) -> tuple[int, int] | None:
        """Return the start and end of one owner's memory around an offset, or None if unknown.

        Both count from the start of the handle's memory. None if the allocator does not know.

        - `handle`: a backend's handle of memory.
        - `offset`: a place in it, in bytes.
        """
        return None

    def is_freed(self, address: int) -> bool:
        """Return True if a host address lies in memory that is not in use; by default False.

        - `address`: an address of the host.
        """
        return False

    def __repr__(self) -> str:
        device = getattr(self, "device", None)
        on = "" if device is None else f" of {device}"
        n = self.stats()
        blocks = f"{n['live_blocks']} block{'s' * (n['live_blocks'] != 1)}"
        live, reserved = format_bytes(n["live_bytes"]), format_bytes(n["reserved_bytes"])
        return f"<{type(self).__name__}{on}: {live} live in {blocks}, {reserved} reserved>"


def allocate_from(op: str, nbytes: int, device: Device, allocator: Allocator | None) -> DataPtr:
    """Allocate from a user's allocator and check the result, or from the device's if None.

    Raises: ArgumentTypeError, ArgumentError for an allocator that returns something else;
    OutOfMemoryError.
    """
    if allocator is None:
        own: Allocator = opened(device).allocator
        return own.allocate(nbytes, current_handle(device))
    by: object = allocator
    if not isinstance(by, Allocator):
        raise refused(op, "allocator", "an Allocator", by)
    return allocate_validated(op, by, device, nbytes, current_handle(device))


def allocate_validated(
    op: str, allocator: Allocator, device: Device, nbytes: int, stream: StreamHandle
) -> DataPtr:
    """Allocate from a user's allocator; raise unless the pointer is memory of this device.

    Raises: ArgumentError for anything else; PluginError for an error that is not dovetail's.
    """
    name = type(allocator).__name__
    try:
        ptr: object = allocator.allocate(nbytes, stream)
    except (DovetailError, MemoryError):
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise PluginError(f"{op}: {name}.allocate({nbytes}) raised {what}") from error
    if not isinstance(ptr, DataPtr):
        raise ArgumentError(f"{op}: {allocator!r} must return a DataPtr, got {shown(ptr)}")
    if ptr.device is not device or ptr.nbytes < nbytes:
        raise ArgumentError(
            f"{op}: {allocator!r} must return at least {nbytes} bytes on {device}, got "
            f"{ptr.nbytes} on {ptr.device}"
        )
    return ptr
