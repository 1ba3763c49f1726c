"""Devices with deviating float arithmetic: each once undeclared, and once declared.

They are the reference under other names, as in `broken_backends`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from broken_backends import Changed, Plugin
from dovetail.backend.interface import DeviceInfo, Program
from dovetail.backend.reference import ReferenceBackend
from dovetail.dtypes import bool_, float32, float64, uint32
from dovetail.errors import CompileError
from dovetail.ir.analysis import values
from dovetail.ir.builder import Kernel, combine
from dovetail.ir.language import Loop, Value, bitcast, const, where
from dovetail.ir.rewrite import Cloner
from dovetail.ir.verify import verify
from dovetail.plugins.hooks import hookimpl

OF_REFERENCE = ReferenceBackend.info.capabilities
NO_DOUBLES = {"float64": False, "dtypes": OF_REFERENCE.dtypes - {float64}}


class FloatPlugin(Plugin):
    """A plugin whose one device has the capabilities in its backend's class attribute `says`."""

    @hookimpl
    def dovetail_probe(self, config: Mapping[str, str]) -> Sequence[DeviceInfo]:
        (info,) = super().dovetail_probe(config)
        can = replace(OF_REFERENCE, **self.backend.says)
        return [replace(info, capabilities=can, companion=self.backend.companion)]


class Floats(Changed):
    """A backend with deviating float arithmetic."""

    says: ClassVar[Mapping[str, Any]] = {}
    companion: ClassVar[str | None] = None

    def __init_subclass__(cls) -> None:
        cls.plugin = FloatPlugin(cls)

    def compile(self, kernel: Kernel) -> Program:
        verify(kernel)
        return super().compile(kernel)


class Contracting(Floats):
    """A backend that contracts every product with an adjacent sum."""

    shown_by = "test_scalar_ops and contracted"

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op not in ("add", "sub") or v.dtype.kind != "f":
            return None
        for one, other in ((0, 1), (1, 0)):
            x, y = args[one], args[other]
            while x.op == "bitcast" and x.args[0].op == "bitcast":
                x = x.args[0].args[0]
            negative = x.op == "neg"
            x = x.args[0] if negative else x
            if x.op != "mul":
                continue
            a, b = x.args
            minus = v.op == "sub"
            a = -a if negative ^ (minus and one == 1) else a
            return Value("fma", v.dtype, (a, b, -y if minus and one == 0 else y))
        return None


class SaysThatItContracts(Contracting):
    """A contracting backend that declares it: the core keeps products and sums apart."""

    says: ClassVar[Mapping[str, Any]] = {"contraction": True}
    companion = "reference"


class ContractsApart(SaysThatItContracts):
    """A contracting backend whose memory is not the companion's."""

    dlpack_type = None

    def host_address(self, handle: Any, offset: int) -> None:
        return None

    def adopt(self, address: int, nbytes: int) -> None:
        return None


def is_zero(v: Value) -> bool:
    """Return True for a float constant 0 or -0."""
    return v.op == "const" and v.dtype.kind == "f" and v.number == 0


class StartsFromTheFirst(Cloner):
    """A cloner that gives float sums the identity -0.0, which a compiler can fold away."""

    def copy_loop_head(self, old: Loop) -> Loop:
        new = super().copy_loop_head(old)
        start = new.init or combine(str(old.combine), tuple(u.dtype for u in old.update)).identity
        if old.combine == "add" and any(map(is_zero, start)):
            new.init = tuple(const(-0.0, v.dtype) if is_zero(v) else v for v in start)
        return new


class FoldsZeros(Floats):
    """A backend that folds float operations with a constant 0, as gallivm does."""

    shown_by = "test_scalar_ops and _zero"

    def changed(self, kernel: Kernel) -> Kernel:
        kernel = super().changed(kernel)
        return kernel.with_body(StartsFromTheFirst().block(kernel.body))

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        zeros = [is_zero(a) for a in args]
        if v.op == "add" and any(zeros):
            return args[zeros[0]]
        if v.op == "sub" and zeros[1]:
            return args[0]
        return const(0.0, v.dtype) if v.op == "mul" and any(zeros) else None


class SaysThatItFoldsZeros(FoldsZeros):
    """A backend that folds zeros and declares it: the core hides them."""

    says: ClassVar[Mapping[str, Any]] = {"algebra": "zeros"}


class Flushing(Floats):
    """A backend that flushes denormal float32 operands and results to zero in all arithmetic."""

    shown_by = "test_scalar_ops and add-float32"

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op in ("load", "where", "bitcast") or not any(x.dtype is float32 for x in (v, *args)):
            return None
        found = self.again(v, tuple(map(_flushed, args)))
        return _flushed(found)

    def again(self, v: Value, args: tuple[Value, ...]) -> Value:
        return Value(v.op, v.dtype, args, v.attr)


def _flushed(x: Value) -> Value:
    """Return `x`, or the zero of its sign if it is denormal; written with bits, which are not
    flushed.
    """
    if x.dtype is not float32:
        return x
    bits = bitcast(x, uint32)
    return bitcast(where((bits & 0x7FFFFFFF) < 0x800000, bits & 0x80000000, bits), float32)


class SaysThatItFlushes(Flushing):
    """A flushing backend that declares it: its companion runs kernels that need denormals."""

    says: ClassVar[Mapping[str, Any]] = {"denormals": False}
    companion = "reference"


class WithoutNan(Floats):
    """A backend that treats NaN as a number, as -ffinite-math-only does."""

    shown_by = "test_scalar_ops and ne-float32"

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op in ("eq", "ne") and v.args[0].dtype.kind == "f" and v.args[0] is v.args[1]:
            return const(v.op == "eq", bool_)
        if v.op == "ne" and v.args[0].dtype.kind == "f":
            return (args[0] < args[1]) | (args[1] < args[0])
        return None


class SaysThatItHasNoNan(WithoutNan):
    """A backend that declares that it has no NaN: it moves floats and computes with integers."""

    says: ClassVar[Mapping[str, Any]] = {"nan": False}
    companion = "reference"


class NoFma(Floats):
    """A backend that declares that it has no fma: one of float64 runs on its companion."""

    says: ClassVar[Mapping[str, Any]] = {"fma": False}
    companion = "reference"

    def compile(self, kernel: Kernel) -> Program:
        if any(v.op == "fma" for v in values(kernel.body)):
            raise CompileError(f"there is no fma\n{kernel}")
        return super().compile(kernel)


class NoFmaNorDoubles(NoFma):
    """A backend that has no float64 either."""

    says: ClassVar[Mapping[str, Any]] = {"fma": False, **NO_DOUBLES}
    companion = None


class Poor(NoFma):
    """A backend without fma, float64 and 64-bit integers that contracts and divides inexactly."""

    says: ClassVar[Mapping[str, Any]] = {
        "fma": False, "int64": False, "index_bits": 32, "contraction": True,
        "exact_division": False, **NO_DOUBLES,
    }  # fmt: skip

    rule = Contracting.rule


BROKEN = (Contracting, FoldsZeros, Flushing, WithoutNan)
HONEST = (
    SaysThatItContracts, ContractsApart, SaysThatItFoldsZeros, SaysThatItFlushes,
    SaysThatItHasNoNan, NoFma, NoFmaNorDoubles, Poor,
)  # fmt: skip
