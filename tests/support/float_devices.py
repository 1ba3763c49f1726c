"""Devices whose float arithmetic is another one: each once without saying so, and once honest.

They are the reference under other names, as `lying_backends`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from dovetail.backend.interface import DeviceInfo, Program
from dovetail.backend.reference import ReferenceBackend
from dovetail.dtypes import bool_, float32, float64, uint32
from dovetail.errors import CompileError
from dovetail.ir.analysis import values
from dovetail.ir.builder import Kernel
from dovetail.ir.language import Value, bitcast, const, where
from dovetail.ir.verify import verify
from dovetail.plugins.hooks import hookimpl
from lying_backends import Changed, Plugin

OF_REFERENCE = ReferenceBackend.info.capabilities
NO_DOUBLES = {"float64": False, "dtypes": OF_REFERENCE.dtypes - {float64}}


class FloatPlugin(Plugin):
    """A plugin whose one device says what its backend's class has in `says`."""

    @hookimpl
    def dovetail_probe(self, config: Mapping[str, str]) -> Sequence[DeviceInfo]:
        (info,) = super().dovetail_probe(config)
        can = replace(OF_REFERENCE, **self.backend.says)
        return [replace(info, capabilities=can, companion=self.backend.companion)]


class Floats(Changed):
    """Does something else with floats."""

    says: ClassVar[Mapping[str, Any]] = {}
    companion: ClassVar[str | None] = None

    def __init_subclass__(cls) -> None:
        cls.plugin = FloatPlugin(cls)

    def compile(self, kernel: Kernel) -> Program:
        verify(kernel)
        return super().compile(kernel)


class Contracting(Floats):
    """Makes one operation of every product and sum that stand together."""

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
    """The core keeps products and sums apart."""

    says: ClassVar[Mapping[str, Any]] = {"contraction": True}
    companion = "reference"


class ContractsApart(SaysThatItContracts):
    """Its memory is none of the companion's."""

    dlpack_type = None

    def host_address(self, handle: Any, offset: int) -> None:
        return None

    def adopt(self, address: int, nbytes: int) -> None:
        return None


class Flushing(Floats):
    """Takes denormal float32 for zero, and gives zero for them, in all arithmetic."""

    shown_by = "test_scalar_ops and add-float32"

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op in ("load", "where", "bitcast") or not any(x.dtype is float32 for x in (v, *args)):
            return None
        found = self.again(v, tuple(map(_flushed, args)))
        return _flushed(found)

    def again(self, v: Value, args: tuple[Value, ...]) -> Value:
        return Value(v.op, v.dtype, args, v.attr)


def _flushed(x: Value) -> Value:
    """`x`, or the zero of its sign where it is denormal; said in bits, which nobody flushes."""
    if x.dtype is not float32:
        return x
    bits = bitcast(x, uint32)
    return bitcast(where((bits & 0x7FFFFFFF) < 0x800000, bits & 0x80000000, bits), float32)


class SaysThatItFlushes(Flushing):
    """Does what needs no denormals, and its companion the rest."""

    says: ClassVar[Mapping[str, Any]] = {"denormals": False}
    companion = "reference"


class WithoutNan(Floats):
    """Takes every number for one, as -ffinite-math-only has it."""

    shown_by = "test_scalar_ops and ne-float32"

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op in ("eq", "ne") and v.args[0].dtype.kind == "f" and v.args[0] is v.args[1]:
            return const(v.op == "eq", bool_)
        if v.op == "ne" and v.args[0].dtype.kind == "f":
            return (args[0] < args[1]) | (args[1] < args[0])
        return None


class SaysThatItHasNoNan(WithoutNan):
    """Moves floats and computes with integers; its companion does the rest."""

    says: ClassVar[Mapping[str, Any]] = {"nan": False}
    companion = "reference"


class NoFma(Floats):
    """Has no fma, and says so: one of float64 is its companion's."""

    says: ClassVar[Mapping[str, Any]] = {"fma": False}
    companion = "reference"

    def compile(self, kernel: Kernel) -> Program:
        if any(v.op == "fma" for v in values(kernel.body)):
            raise CompileError(f"there is no fma\n{kernel}")
        return super().compile(kernel)


class NoFmaNorDoubles(NoFma):
    """Has no float64 either."""

    says: ClassVar[Mapping[str, Any]] = {"fma": False, **NO_DOUBLES}
    companion = None


class Poor(NoFma):
    """Has no fma, no float64 and no 64-bit integers, contracts, and divides inexactly."""

    says: ClassVar[Mapping[str, Any]] = {
        "fma": False, "int64": False, "index_bits": 32, "contraction": True,
        "exact_division": False, **NO_DOUBLES,
    }  # fmt: skip

    rule = Contracting.rule


LIES = (Contracting, Flushing, WithoutNan)
HONEST = (
    SaysThatItContracts, ContractsApart, SaysThatItFlushes, SaysThatItHasNoNan, NoFma,
    NoFmaNorDoubles, Poor,
)  # fmt: skip
