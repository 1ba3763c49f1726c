"""Memory: which allocator a device has, and what it says of itself: the functions of `dt.memory`.

`pointer` owns memory, `storage` is what tensors view, `allocator` says what an allocator is, and
`caching` is the one that devices have, on top of `growing`, `mending`, `segments` and `blocks`.
`tracing` notes source lines in a `timeline`, which a `record` keeps and `drawing` shows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable

from ..arguments import flag, function, integer, refused
from ..arguments import path as file_name
from ..backend.interface import Backend
from ..device import Device, device, opened, opened_devices
from .allocator import Allocator, BlockInfo, SegmentInfo, Stats
from .caching import CachingAllocator
from .drawing import draw
from .pointer import DataPtr, foreign
from .storage import Storage
from .timeline import recorded

__all__ = [
    "Allocator", "BlockInfo", "CachingAllocator", "DataPtr", "SegmentInfo", "Stats", "Storage",
    "empty_cache", "foreign", "get_allocator", "page", "reset_peak",
    "set_allocator", "set_limit", "snapshot", "stats", "trace",
]  # fmt: skip

Factory = Callable[[Backend, Device], Allocator]
_chosen: dict[str, tuple[int, Allocator | Factory]] = {}


def set_allocator(device_type: str, allocator: Allocator | Factory, priority: int = 0) -> None:
    """Makes `allocator`, or what it returns for (backend, device), the allocator of a device type.

    Ignored where one of higher priority was set. Pointers of the one before stay good.
    """
    if not isinstance(device_type, str):
        raise refused("set_allocator", "device_type", 'a name such as "cpu"', device_type)
    if not isinstance(allocator, Allocator):
        function("set_allocator", allocator, "allocator")
    priority = integer("set_allocator", priority, "priority")
    if device_type in _chosen and _chosen[device_type][0] > priority:
        return
    _chosen[device_type] = (priority, allocator)
    for dev in opened_devices():
        if dev.type == device_type:
            opened(dev).allocator = make_allocator(dev, opened(dev).backend)


def make_allocator(dev: Device, backend: Backend) -> Allocator:
    """The allocator for a device that is being opened."""
    chosen = _chosen.get(dev.type, (0, CachingAllocator))[1]
    return chosen if isinstance(chosen, Allocator) else chosen(backend, dev)


def get_allocator(spec: Device | str | None = None) -> Allocator:
    """The allocator of a device, which is opened if need be."""
    return _allocator("get_allocator", spec)


def _allocator(op: str, spec: Device | str | None) -> Allocator:
    allocator: Allocator = opened(device(spec, op)).allocator
    return allocator


def stats(spec: Device | str | None = None) -> Stats:
    """The figures of a device's allocator."""
    return _allocator("stats", spec).stats()


def snapshot(spec: Device | str | None = None) -> list[SegmentInfo]:
    """Every segment got from a device, with its blocks."""
    return _allocator("snapshot", spec).snapshot()


def page(path: str | os.PathLike[str], spec: Device | str | None = None) -> None:
    """Writes a page for a browser: which lines hold a device's memory, and, if `trace(True)` was
    called before the work, how that came about.

    The page is one file. A path that ends in .json gets what `dovetail memory FILE.json` draws."""
    name = file_name("page", path)
    of = device(spec, "page")
    allocator = get_allocator(of)
    found = recorded(str(of), allocator.stats(), allocator.snapshot(), allocator.timeline)
    text = json.dumps(found) if os.fspath(name).endswith(".json") else draw(found)
    with open(name, "w", encoding="utf-8", errors="backslashreplace") as f:  # names of files
        f.write(text)


def reset_peak(spec: Device | str | None = None) -> None:
    """Starts the peak figures of a device anew."""
    _allocator("reset_peak", spec).reset_peak()


def empty_cache(spec: Device | str | None = None) -> None:
    """Returns to the device what is cached and unused."""
    _allocator("empty_cache", spec).empty_cache()


def set_limit(spec: Device | str | None, nbytes: int | None) -> None:
    """Bounds what may be reserved on a device, in bytes; None: no bound."""
    limit = nbytes if nbytes is None else integer("set_limit", nbytes, "nbytes", 0)
    _allocator("set_limit", spec).set_limit(limit)


def trace(on: bool) -> None:
    """Notes (or no longer) the source line of each allocation, for `snapshot`, `page` and
    OutOfMemoryError. It costs about 3 us."""
    CachingAllocator.trace(flag("trace", on, "on"))


def __dir__() -> list[str]:
    return __all__
