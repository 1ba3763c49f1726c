"""NumPy's sorts as routines of the device cpu, also on CPUs where the passes are faster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dovetail as dt
from dovetail.device_class import opened as open_device
from dovetail.engine.programs import program_caches
from dovetail_cpu_llvm.sorting import VECTOR_BYTES_MIN, sort_routines


@contextmanager
def numpy_sorts(threads: int = 1) -> Iterator[None]:
    """Give the device cpu NumPy's sorts; plans made before or inside are not used elsewhere."""
    opened = open_device(dt.device("cpu"))
    before = opened.library_calls
    opened.library_calls = {**before, **sort_routines(threads, VECTOR_BYTES_MIN, "any")}
    _clear_plans()
    try:
        yield
    finally:
        opened.library_calls = before
        _clear_plans()


def _clear_plans() -> None:
    """Forget the plans of all graphs: caches have two generations."""
    for cache in program_caches * 2:
        cache.age()
