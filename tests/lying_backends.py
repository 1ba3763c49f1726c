"""Backends that lie: the reference, with one thing wrong each. The conformance kit must catch
every one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from dovetail.backend import Backend, BackendInfo, DeviceInfo, Handles, Program
from dovetail.dtypes import float32, float64, int32
from dovetail.kernel import Kernel
from dovetail.legalize import rewrite
from dovetail.loops import Loop, Value, bitcast, cast, const, walk, where
from dovetail.plugins import hookimpl
from dovetail.reference import ReferenceBackend, ReferenceProgram

Numbers = Sequence[float | int | bool]


class Plugin:
    """A plugin whose one device is a backend of this class."""

    def __init__(self, backend: type[Honest]) -> None:
        self.backend = backend
        self.type = backend.__name__.lower()

    @hookimpl
    def dovetail_backend_info(self) -> BackendInfo:
        return BackendInfo(self.type, "1")

    @hookimpl
    def dovetail_probe(self, config: Mapping[str, str]) -> Sequence[DeviceInfo]:
        return [replace(ReferenceBackend.info, type=self.type, fingerprint=self.type)]

    @hookimpl
    def dovetail_open(self, info: DeviceInfo, config: Mapping[str, str]) -> Backend:
        return self.backend(info)

    @hookimpl
    def dovetail_conformance(self) -> Mapping[str, str]:
        return self.backend.gaps


class Honest(ReferenceBackend):
    """The reference under another name: the kit must find nothing."""

    plugin: ClassVar[Plugin]
    shown_by: ClassVar[str] = ""  # part of the kit (as for pytest -k) that is enough to find it
    gaps: ClassVar[Mapping[str, str]] = {}

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info

    def __init_subclass__(cls) -> None:
        cls.plugin = Plugin(cls)

    def launch(
        self, program: Any, buffers: Handles, ints: Sequence[int], scalars: Numbers,
        grid: Sequence[int], stream: Any = None,
    ) -> None:  # fmt: skip
        super().launch(program, *self.said(buffers, ints, scalars, grid), stream)

    def said(
        self, buffers: Handles, ints: Sequence[int], scalars: Numbers, grid: Sequence[int]
    ) -> tuple[Handles, Sequence[int], Numbers, Sequence[int]]:
        """What the launch is told in place of these."""
        return buffers, ints, scalars, grid


Honest.plugin = Plugin(Honest)


# --- about memory


class WrongOffset(Honest):
    """Ignores the byte offset of every buffer but the first."""

    shown_by = "test_layouts"

    def said(self, buffers: Any, ints: Any, scalars: Any, grid: Any) -> Any:
        return (
            tuple(0 if k % 2 and k > 1 else x for k, x in enumerate(buffers)),
            ints,
            scalars,
            grid,
        )


class LeakingFree(Honest):
    """Never gives memory back."""

    shown_by = "test_allocator"

    leaked: ClassVar[list[Any]] = []

    def free(self, handle: Any, nbytes: int) -> None:
        self.leaked.append(handle)


class Unaligned(Honest):
    """Memory at multiples of 16 bytes."""

    shown_by = "test_allocator"

    def allocate(self, nbytes: int) -> Any:
        return super().allocate(nbytes + 64)[16 : 16 + nbytes]


class ShortCopy(Honest):
    """Copies whole groups of eight bytes only."""

    shown_by = "test_allocator"

    def copy_out(self, target: memoryview, handle: Any, offset: int, stream: Any = None) -> None:
        super().copy_out(target[: target.nbytes // 8 * 8], handle, offset, stream)


# --- about launches


class IgnoredStride(Honest):
    """Takes the last integer argument for 1, where there are more than three."""

    shown_by = "test_layouts"

    def said(self, buffers: Any, ints: Any, scalars: Any, grid: Any) -> Any:
        return buffers, [*ints[:-1], 1] if len(ints) > 3 else ints, scalars, grid


class DropsTheLast(Honest):
    """Leaves out the last point of a row longer than 32, as a wrong vector remainder would."""

    shown_by = "test_scalar_ops and add-float32"

    def said(self, buffers: Any, ints: Any, scalars: Any, grid: Any) -> Any:
        short = [*grid[:-1], grid[-1] - 1] if grid and grid[-1] > 32 else grid
        return buffers, ints, scalars, short


class CoarseScalars(Honest):
    """Rounds float arguments to half precision."""

    shown_by = "test_scalar_ops and scalars"

    def said(self, buffers: Any, ints: Any, scalars: Any, grid: Any) -> Any:
        with np.errstate(over="ignore"):
            coarse = [float(np.float16(x)) if isinstance(x, float) else x for x in scalars]
        return buffers, ints, coarse, grid


# --- about arithmetic


class ChangedProgram(ReferenceProgram):
    """Shows one kernel and runs another."""

    def __init__(self, kernel: Kernel, runs: Kernel) -> None:
        super().__init__(kernel)
        self.runs = ReferenceProgram(runs)


class Changed(Honest):
    """Compiles something else than what it was given."""

    def compile(self, kernel: Kernel) -> Program:
        return ChangedProgram(kernel, self.changed(kernel))

    def launch(
        self, program: Any, buffers: Handles, ints: Sequence[int], scalars: Numbers,
        grid: Sequence[int], stream: Any = None,
    ) -> None:  # fmt: skip
        super().launch(program.runs, buffers, ints, scalars, grid, stream)

    def changed(self, kernel: Kernel) -> Kernel:
        return rewrite(kernel, self.rule)

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        """What takes the place of `v`; None: itself."""
        return None


class FlushesDenormals(Changed):
    """float32 products that are denormal become zero."""

    shown_by = "test_scalar_ops and mul-float32"

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op != "mul" or v.dtype is not float32:
            return None
        exact, least = Value("mul", float32, args), const(2.0**-126, float32)
        return where((exact < least) & (-least < exact), exact * 0.0, exact)


class WrongRounding(Changed):
    """Casts float64 to float32 towards zero."""

    shown_by = "test_scalar_ops and test_cast"

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op != "cast" or v.dtype is not float32 or args[0].dtype is not float64:
            return None
        (x,), near = args, Value("cast", float32, args)
        back, bits = cast(near, float64), bitcast(near, int32)
        beyond = ((back < x) & (x < 0.0)) | ((x < back) & (x > 0.0))
        return bitcast(where(beyond, bits - 1, bits), float32)


class UnfusedFma(Changed):
    """Rounds twice."""

    shown_by = "test_scalar_ops and fma"

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        return args[0] * args[1] + args[2] if v.op == "fma" else None


class WrongOrder(Changed):
    """Adds floats up one after the other."""

    shown_by = "test_reductions"

    def changed(self, kernel: Kernel) -> Kernel:
        copy = super().changed(kernel)
        for s in walk(copy.body):
            if isinstance(s, Loop) and s.combine == "add" and s.update[0].dtype.kind == "f":
                _make_sequential(s)
        return copy


def _make_sequential(loop: Loop) -> None:
    (x,) = loop.update
    carry = Value("carry", x.dtype, (), (loop, 0))
    total = carry + x
    loop.kind, loop.combine, loop.init = "fold", None, (const(0.0, x.dtype),)
    loop.carry, loop.update, loop.body = (carry,), (total,), (*loop.body, total)


# --- about gaps


class DeclaresItsGap(UnfusedFma):
    """Cannot do fused multiply-add, and says so."""

    gaps: ClassVar[Mapping[str, str]] = {
        "scalar_ops.arithmetic.fma-*": "rounds twice",
        "scalar_ops.fma_rounds_once.*": "rounds twice",
    }


class BoastsOfAGap(Honest):
    """Declares a gap that is none."""

    gaps: ClassVar[Mapping[str, str]] = {"streams.*": "no streams"}


class MisspellsItsGap(UnfusedFma):
    """Declares a gap in a case that does not exist."""

    gaps: ClassVar[Mapping[str, str]] = {"scalar_ops.fused_multiply_add": "rounds twice"}


LIES = (
    WrongOffset, LeakingFree, Unaligned, ShortCopy, IgnoredStride, DropsTheLast, CoarseScalars,
    FlushesDenormals, WrongRounding, UnfusedFma, WrongOrder,
)  # fmt: skip
