"""Float expressions that compilers rewrite and devices flush: wrong results of each driver.

    python bench/float_expressions.py [DEVICE ...]

Each of 18 expressions of float32 runs on 16,384 triples of operands: half of them are random bits,
2,000 special values, the others ordinary numbers. "Plain" is the kernel as it is written, for a
device that claims exact arithmetic; the second number is the kernel that dovetail runs, legalised
for the device's capabilities. A result is wrong if its bits differ from those of the interpreter,
and they are not both a NaN. `cpu_ftz` is the CPU that flushes subnormals, as in the tests.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
from dovetail.backend.interface import Backend
from dovetail.backend.limits import bind_within_limits
from dovetail.backend.reference import interpret
from dovetail.extend import (
    Capabilities,
    Kernel,
    KernelBuilder,
    Value,
    bool_,
    cast,
    choose,
    eq,
    float32,
    legalize,
    load,
    ne,
    uint32,
)
from dovetail.ir.language import floor, sqrt

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from flushing_cpu import FlushingCpu, FlushingCpuWithoutFma  # type: ignore[import-not-found]
from partial_devices import installed  # type: ignore[import-not-found]

ROWS, SPECIAL_ROWS = 16_384, 2_000
EXACT: Mapping[str, Any] = {
    "exact_division": True, "fma": True, "denormals": True, "nan": True,
    "algebra": "exact", "contraction": False,
}  # fmt: skip
EXPRESSIONS: Mapping[str, Callable[[Value, Value, Value], Value]] = {
    "a != a": lambda a, b, c: ne(a, a),
    "a + 0.0": lambda a, b, c: a + 0.0,
    "a * 0.0": lambda a, b, c: a * 0.0,
    "a - a": lambda a, b, c: a - a,
    "a*b + a*c": lambda a, b, c: a * b + a * c,
    "(a + 1.5) + 2.7": lambda a, b, c: (a + 1.5) + 2.7,
    "(a * 1.5) * 2.7": lambda a, b, c: (a * 1.5) * 2.7,
    "1 / (1/a)": lambda a, b, c: 1.0 / (1.0 / a),
    "(a + b) - a": lambda a, b, c: (a + b) - a,
    "error of TwoSum": lambda a, b, c: (a - ((a + b) - ((a + b) - a))) + (b - ((a + b) - a)),
    "a == a": lambda a, b, c: eq(a, a),
    "!(a < b)": lambda a, b, c: ~(a < b),
    "a / 3": lambda a, b, c: a / 3.0,
    "a - floor(a)": lambda a, b, c: a - floor(a),
    "1 / sqrt(a)": lambda a, b, c: 1.0 / sqrt(a),
    "sqrt(a*a)": lambda a, b, c: sqrt(a * a),
    "a*(1-c) + b*c": lambda a, b, c: a * (1.0 - c) + b * c,
    "a < b ? a : b": lambda a, b, c: choose(a < b, a, b),
}


def operands() -> list[np.ndarray]:
    """Return three columns of float32: random bits, special values, ordinary numbers."""
    rng = np.random.default_rng(0)
    tiny = np.float32(2.0**-126)
    special = np.array(
        [0, 1, 1.5, 2, 3, 0.1, 1e38, 3e38, np.inf, np.nan, tiny, tiny / 2, 1e-40, 1e-45], "f4"
    )
    special = np.concatenate([special, -special])

    def column() -> np.ndarray:
        bits = rng.integers(0, 1 << 32, ROWS // 2, dtype=np.uint32).view("f4")
        rest = rng.standard_normal(ROWS - ROWS // 2 - SPECIAL_ROWS).astype("f4")
        return np.concatenate([bits, rng.choice(special, SPECIAL_ROWS), rest])

    return [column() for _ in range(3)]


def build(name: str) -> Kernel:
    """Return the kernel that stores an expression of each row."""
    b = KernelBuilder("expression")
    inputs = [b.buffer(f"in{k}", float32, "r") for k in range(3)]
    i = b.axis(b.int("n"))
    value = EXPRESSIONS[name](*[load(x, i) for x in inputs])
    out = b.buffer("out", uint32 if value.dtype is bool_ else float32, "w")
    b.store(out, i, cast(value, uint32) if value.dtype is bool_ else value)
    return b.build()


class View:
    """A backend that has other capabilities."""

    def __init__(self, backend: Backend, capabilities: Capabilities) -> None:
        self._backend = backend
        self.info = replace(backend.info, capabilities=capabilities)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


def count_wrong(backend: Backend, name: str, columns: list[np.ndarray], can: Capabilities) -> int:
    """Return the number of rows in which a device differs from the interpreter.

    - `can`: the capabilities for which the kernel is legalised.
    """
    kernel = build(name)
    expected = np.zeros(ROWS, np.uint32)
    typed = expected.view(kernel.buffers[-1].dtype.name)
    interpret(kernel, [*columns, typed], [ROWS], [], [ROWS])
    arrays = [*columns, np.zeros(ROWS, np.uint32)]
    handles = [backend.allocate(a.nbytes) for a in arrays]
    for handle, a in zip(handles, arrays, strict=True):
        backend.copy_in(handle, 0, a.view(np.uint8).data, None)
    view: Any = View(backend, can)
    launch = bind_within_limits(view, backend.compile(legalize(kernel, can)), [ROWS], [ROWS])
    launch(tuple(x for handle in handles for x in (handle, 0)), (), None)
    backend.copy_out(arrays[-1].view(np.uint8).data, handles[-1], 0, None)
    for handle, a in zip(handles, arrays, strict=True):
        backend.free(handle, a.nbytes)
    actual = arrays[-1]
    both_nan = np.isnan(actual.view("f4")) & np.isnan(expected.view("f4"))
    return int(np.count_nonzero((actual != expected) & ~both_nan))


def main(names: list[str]) -> None:
    """Print a row for each expression, with two numbers for each device."""
    columns = operands()
    with installed(FlushingCpu, FlushingCpuWithoutFma):
        types = [str(d) for d in dt.__array_namespace_info__().devices() if d.type != "reference"]
        backends = {t: dt.plugins.open_device(t).backend for t in names or types}
        for t, backend in backends.items():
            can, details = backend.info.capabilities, dict(backend.info.details)
            about = ", ".join(filter(None, map(details.get, ("driver", "platform", "version"))))
            print(f"{t}: {backend.info.name}; {about}; algebra {can.algebra}, fma {can.fma}, "
                  f"denormals {can.denormals}, exact division {can.exact_division}")  # fmt: skip
        print("\n| expression |", *[f"{t} plain | {t} |" for t in backends])
        print("|---|" + "---:|---:|" * len(backends))
        for name in EXPRESSIONS:
            counts = []
            for backend in backends.values():
                can = backend.info.capabilities
                plain = replace(can, **EXACT)
                counts += [count_wrong(backend, name, columns, c) for c in (plain, can)]
            print(f"| `{name}` |", *[f"{n:,} |" for n in counts], flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
