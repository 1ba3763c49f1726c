"""Memory of devices, and the functions of `dt.memory`.

A pointer (`pointer`) owns memory, tensors view storages (`storage`), and `allocator` is the
interface of allocators. Devices use the one of `caching_allocator`: `fast_path` reuses cached
`blocks`, `slow_path` holds the device's allocations, `recovery` rebuilds both after an exception.
`tracing` records allocations and reports them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..argument_checks import flag, function, integer, refused, shown
from ..backend.interface import Backend
from ..backend.threads import find_backend_with
from ..device_class import Device, device, known_types, opened, opened_devices
from ..errors import ArgumentError, DeviceError
from ..lazy_import import late
from ..public_names import publish_all
from .allocator import Allocator, BlockInfo, SegmentInfo, Stats
from .caching_allocator import CachingAllocator
from .mapped import MappedFile
from .pointer import DataPtr, Deleter, Handle
from .storage import Storage

if TYPE_CHECKING:
    from .tracing.html_report import html_report
else:
    __getattr__ = late(__name__, {"html_report": "tracing.html_report"})

__all__ = [
    "Allocator",
    "BlockInfo",
    "CachingAllocator",
    "DataPtr",
    "MappedFile",
    "SegmentInfo",
    "Stats",
    "Storage",
    "empty_cache",
    "get_allocator",
    "get_numa_policy",
    "html_report",
    "reset_peak",
    "set_allocator",
    "set_limit",
    "set_numa_policy",
    "snapshot",
    "stats",
    "trace",
    "wrap_pointer",
]

NUMA_POLICIES = ("default", "local", "interleave")
Factory = Callable[[Backend, Device], Allocator]
_chosen: dict[str, tuple[int, Allocator | Factory]] = {}


def set_allocator(device_type: str, allocator: Allocator | Factory, priority: int = 0) -> None:
    """Set the allocator of a device type, unless one of a higher priority is set.

    Pointers of the previous allocator stay valid.

    - `device_type`: the name of a device type, such as "cpu".
    - `allocator`: an `Allocator`, or a function of (backend, device) that returns one.
    - `priority`: the call is ignored after a call of higher priority.

    Raises: ArgumentTypeError; DeviceError for a type that no installed backend has; ArgumentError
    if the function does not return an allocator.

    >>> import dovetail as dt
    >>> dt.memory.set_allocator("reference", dt.memory.CachingAllocator)
    """
    if not isinstance(device_type, str):
        raise refused("set_allocator", "device_type", 'a name such as "cpu"', device_type)
    installed = sorted({*known_types(), *(dev.type for dev in opened_devices())})
    if device_type not in installed:
        raise DeviceError(
            f"set_allocator: device_type must be an installed type ({', '.join(installed)}), got "
            f"{shown(device_type)}"
        )
    if not isinstance(allocator, Allocator):
        function("set_allocator", allocator, "allocator")
    priority = integer("set_allocator", priority, "priority")
    if device_type in _chosen and _chosen[device_type][0] > priority:
        return
    devices = [dev for dev in opened_devices() if dev.type == device_type]
    created = [
        _build_allocator(allocator, opened(d).backend, d) for d in devices
    ]  # first: any may raise
    _chosen[device_type] = (priority, allocator)
    for dev, own in zip(devices, created, strict=True):
        opened(dev).allocator = own


def make_allocator(dev: Device, backend: Backend) -> Allocator:
    """Return the allocator of a new device: the instance set for its type, or a built one.

    A factory that was set for the type, by default CachingAllocator, builds it.
    Raises: ArgumentError if that factory returns another object.
    """
    return _build_allocator(_chosen.get(dev.type, (0, CachingAllocator))[1], backend, dev)


def _build_allocator(chosen: Allocator | Factory, backend: Backend, dev: Device) -> Allocator:
    """Return `chosen` or the allocator that it builds. Raises: ArgumentError for another result."""
    allocator: object = chosen if isinstance(chosen, Allocator) else chosen(backend, dev)
    if not isinstance(allocator, Allocator):
        text = shown(allocator)
        raise ArgumentError(
            f"set_allocator: the function for {dev} must return an Allocator, got {text}"
        )
    return allocator


def get_allocator(spec: Device | str | None = None) -> Allocator:
    """Return the allocator of a device; open the device if it is not open.

    Raises: DeviceError for an unknown device, UnavailableError or PluginError for one that does not
    open.

    >>> import dovetail as dt
    >>> type(dt.memory.get_allocator("reference")).__name__
    'CachingAllocator'
    """
    return _find_allocator("get_allocator", spec)


def _find_allocator(op: str, spec: Device | str | None) -> Allocator:
    """Return a device's allocator, opening the device if needed; `op` names it in errors."""
    allocator: Allocator = opened(device(spec, op)).allocator
    return allocator


def stats(spec: Device | str | None = None) -> Stats:
    """Return the statistics of a device's allocator, as a dict whose entries are attributes, too.

    `live_bytes`, `cached_bytes`, `reserved_bytes` and their peaks; counts of allocations and frees,
    of those on the device, of cache hits, retries and refusals.
    Units: bytes, of blocks rounded up to 512.
    Raises: DeviceError for an unknown device, UnavailableError or PluginError for one that does not
    open.

    >>> import dovetail as dt
    >>> before = dt.memory.stats("reference").live_bytes
    >>> x = dt.zeros(100, device="reference")
    >>> dt.evaluate(x)
    >>> dt.memory.stats("reference").live_bytes - before
    512
    """
    return _find_allocator("stats", spec).stats()


def snapshot(spec: Device | str | None = None) -> list[SegmentInfo]:
    """Return every segment that a device has allocated, with its blocks.

    A block's `where` is the source line that allocated it, while `trace(True)`.
    Units: bytes.
    Raises: DeviceError for an unknown device, UnavailableError or PluginError for one that does not
    open.

    >>> import dovetail as dt
    >>> x = dt.zeros(100, device="reference")
    >>> dt.evaluate(x)
    >>> any(b.state == "live" for s in dt.memory.snapshot("reference") for b in s.blocks)
    True
    """
    return _find_allocator("snapshot", spec).snapshot()


def reset_peak(spec: Device | str | None = None) -> None:
    """Reset the peak statistics of a device to the current ones.

    Raises: DeviceError for an unknown device, UnavailableError or PluginError for one that does not
    open.

    >>> import dovetail as dt
    >>> dt.memory.reset_peak("reference")
    >>> s = dt.memory.stats("reference")
    >>> s.peak_live_bytes == s.live_bytes
    True
    """
    _find_allocator("reset_peak", spec).reset_peak()


def empty_cache(spec: Device | str | None = None) -> None:
    """Wait for a device's work, then return its segments without live blocks to it.

    Raises: DeviceError for an unknown device, UnavailableError or PluginError for one that does not
    open.

    >>> import dovetail as dt
    >>> dt.memory.empty_cache("reference")
    """
    _find_allocator("empty_cache", spec).empty_cache()


def set_limit(spec: Device | str | None, nbytes: int | None) -> None:
    """Limit the memory that the allocator reserves on a device.

    - `nbytes`: the limit; None is no limit. An allocation beyond it raises OutOfMemoryError.

    Units: bytes.
    Raises: ArgumentError for a negative number; DeviceError, UnavailableError, PluginError.

    >>> import dovetail as dt
    >>> dt.memory.set_limit("reference", 1 << 40)
    >>> dt.memory.set_limit("reference", None)
    """
    limit = nbytes if nbytes is None else integer("set_limit", nbytes, "nbytes", 0)
    _find_allocator("set_limit", spec).set_limit(limit)


def set_numa_policy(policy: int | str, spec: Device | str | None = None) -> None:
    """Choose the NUMA node of memory that a host device takes from the system from now on.

    Values do not depend on it. Cached memory stays where it is; `empty_cache` returns it. The
    initial policy is that of the environment variable DOVETAIL_CPU_NUMA.

    - `policy`: the number of a node; "local" is the node of the thread that first writes a page;
      "interleave" takes pages of all nodes in turn; "default" leaves the choice to the system.
    - `spec`: the device; None is the default device, or "cpu" if that has no NUMA policies.

    Raises: ArgumentError for another policy or a node that does not exist; ArgumentTypeError;
    DeviceError for a device or a system without NUMA policies, unless it is "default".

    >>> import dovetail as dt
    >>> dt.memory.set_numa_policy("default")
    """
    if isinstance(policy, str):
        if policy not in NUMA_POLICIES:
            raise ArgumentError(
                f"set_numa_policy: policy must be a node or one of {', '.join(NUMA_POLICIES)}, "
                f"got {policy!r}"
            )
    else:
        policy = integer("set_numa_policy", policy, "policy", 0)
    backend = find_backend_with("set_numa_policy", "set_numa_policy", spec)
    if backend is not None:
        backend.set_numa_policy(policy)
    elif policy != "default":
        raise DeviceError(
            f"set_numa_policy: {device(spec)} has no NUMA policies; name a device that has, "
            'such as "cpu", or pass "default"'
        )


def get_numa_policy(spec: Device | str | None = None) -> int | str:
    """Return the NUMA policy that `set_numa_policy` set, or "default".

    - `spec`: the device; None is the default device, or "cpu" if that has no NUMA policies.

    Raises: DeviceError for a malformed name.

    >>> import dovetail as dt
    >>> dt.memory.get_numa_policy("reference")
    'default'
    """
    backend = find_backend_with("get_numa_policy", "get_numa_policy", spec)
    return "default" if backend is None else backend.get_numa_policy()


def trace(on: bool) -> None:
    """Start or stop recording allocations and their source lines, on all devices.

    `snapshot`, `html_report` and the text of OutOfMemoryError show the lines.

    - `on`: True starts, False stops.

    Units: it costs about 3 us for each allocation.
    Raises: ArgumentTypeError if `on` is no bool.

    >>> import dovetail as dt
    >>> dt.memory.trace(True)
    >>> x = dt.empty(100)
    >>> dt.memory.trace(False)
    """
    CachingAllocator.trace(flag("trace", on, "on"))


def __dir__() -> list[str]:
    return __all__


def wrap_pointer(
    owner: object,
    handle: Handle,
    nbytes: int,
    device: Device,
    offset: int = 0,
    deleter: Deleter | None = None,
) -> DataPtr:
    """Return a pointer to memory that `owner` keeps alive until `deleter(owner)` has returned.

    - `owner`: an array, a DLPack capsule, a mapped file.
    - `handle`: the backend's handle of the memory.
    - `nbytes`: the size of the memory.
    - `device`: the device that has the memory.
    - `offset`: the start of the memory in the handle's.
    - `deleter`: a function of `owner`, called once, when the pointer ends; None frees nothing.

    Units: bytes.
    Raises: nothing.

    >>> import dovetail as dt
    >>> a = bytearray(64)
    >>> ptr = dt.memory.wrap_pointer(a, 0, len(a), dt.device("reference"))
    >>> ptr.nbytes, ptr.context is a
    (64, True)
    """
    return DataPtr(handle, offset, nbytes, device, owner, deleter)


publish_all(globals())
