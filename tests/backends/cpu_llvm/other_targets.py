"""Compile for another CPU that this one can run, and compare half-precision results bit by bit.

A program: `python other_targets.py CPU [FEATURES]`. It runs every elementwise op on all 65,536
bfloat16s and float16s next to the reference; the exit status is 1 if bits differ.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
from dovetail.functions.elementwise.op_functions import FUNCTIONS
from dovetail_cpu_llvm.compile import Compiler
from dovetail_cpu_llvm.targets import Target

# Selects between shifted bits and a sign put onto a magnitude: LLVM 22.1 miscompiled one of these.
MIXED: dict[str, Callable[[Any], Any]] = {
    "where(x < 0, 0, x)": lambda x: dt.where(x < 0, 0, x),
    "where(x < 0, -x, 2 x)": lambda x: dt.where(x < 0, -x, x * 2),
    "where(|x| > 1, sinh, x)": lambda x: dt.where(dt.abs(x) > 1, dt.sinh(x), x),
    "copysign(2 x, -x)": lambda x: dt.copysign(x * 2, -x),
    "copysign(|2 x|, x) + sinh(x)": lambda x: dt.copysign(dt.abs(2 * x), x) + dt.sinh(x),
}


def compile_for(cpu: str, features: str) -> None:
    """Make the device compile for another CPU from now on."""
    before = Compiler.__init__

    def begin(self: Compiler, target: Target) -> None:
        before(self, target._replace(cpu=cpu, features=features))

    Compiler.__init__ = begin  # type: ignore[method-assign]


def has_reference_bits(name: str, f: Callable[..., Any], args: tuple[Any, ...]) -> bool | None:
    """Return True if an op has the reference's bits, or None if it does not accept such
    operands.
    """
    found = []
    for device in ("cpu", "reference"):
        try:
            found.append(f(*[a.to(device) for a in args]).to("reference"))
        except (dt.DovetailError, TypeError):
            return None
    ours, want = (y.astype(dt.float32).numpy() if y.dtype.kind == "f" else y.numpy() for y in found)
    if ours.dtype == np.float32:  # all NaNs are equal
        ours, want = (np.where(np.isnan(a), np.nan, a).view(np.uint32) for a in (ours, want))
    wrong = np.nonzero((ours != want).ravel())[0]
    if wrong.size:
        print(f"{name} of {args[0].dtype}: {wrong.size} differ, the first of {wrong[0]:#06x}")
    return not wrong.size


def main(cpu: str, features: str = "") -> int:
    """Compare all ops; return 0 if they agree."""
    compile_for(cpu, features)
    every = np.arange(1 << 16, dtype=np.uint16)
    x = dt.asarray(every, device="reference")
    y = dt.asarray(np.random.default_rng(0).permutation(every), device="reference")
    ops = {n: f for n in FUNCTIONS if (f := getattr(dt, n, None)) is not None}
    verdicts = []
    for dtype in (dt.bfloat16, dt.float16):
        a, b = x.view(dtype), y.view(dtype)
        verdicts += [has_reference_bits(n, f, (a,)) for n, f in (ops | MIXED).items()]
        verdicts += [has_reference_bits(n, f, (a, b)) for n, f in ops.items()]
    ran = [v for v in verdicts if v is not None]
    print(f"{cpu} {features}: {len(ran)} compared, {ran.count(False)} differ")
    return 0 if all(ran) and len(ran) > 150 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
