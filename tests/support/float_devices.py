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
from dovetail.ir.language import OPERANDS, Block, Loop, Value, bitcast, const, walk, where
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


class ContractsApart(SaysThatItContracts):
    """A contracting backend without reductions, whose memory is not the companion's."""

    companion = "reference"
    dlpack_type = None

    def accepts(self, kernel: Kernel) -> bool:
        return not any(isinstance(s, Loop) and s.kind == "reduce" for s in walk(kernel.body))

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
        if old.combine == "add":
            start = new.init or combine("add", tuple(u.dtype for u in old.update)).identity
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


class _Simplifier(StartsFromTheFirst):
    """A cloner that rewrites floats as -ffast-math permits, and integers by their exact rules.

    Equal operations are one value, so `is` compares them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[Any, Value] = {}

    def block(self, block: Block) -> Block:
        known, self.known = self.known, dict(self.known)
        new = super().block(block)
        self.known = known
        return new

    def shared(self, v: Value) -> Value:
        """Return the value that is known to be equal, or this one from here on."""
        if v.op in OPERANDS or (v.op == "load" and v.buffer.access != "r"):
            return v
        args = tuple(map(self.shared, v.args))
        attr = id(v.attr) if v.op == "load" else v.attr
        same = self.known.setdefault((v.op, v.dtype, attr, *map(id, args)), v)
        if same is v and args != v.args:
            same = self.known[(v.op, v.dtype, attr, *map(id, args))] = self.copy_with_args(v, args)
        return same

    def rewrite_value(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        new = self.copy_with_args(v, args)
        for _ in range(4):  # each rule may make another one apply
            simpler = _simplify(new)
            if simpler is None:
                break
            new = simpler
        return self.shared(new)


def _simplify(v: Value) -> Value | None:
    """Return what a compiler that may rewrite floats makes of a value, or None."""
    if v.op in ("bitcast", "xor") and v.dtype.kind in "fi":
        return _cancel_xors(v)
    if v.dtype.kind == "f" and v.op in _FLOAT_RULES:
        return _FLOAT_RULES[v.op](*v.args)
    if v.op in ("eq", "ne", "le", "lt") and v.args[0].dtype.kind == "f":
        a, b = v.args
        if a is b:
            return const(v.op in ("eq", "le"), bool_)
        return (a < b) | (b < a) if v.op == "ne" else None
    return None


def _cancel_xors(v: Value) -> Value | None:
    """Return a chain of xors and bitcasts without what cancels; a change of sign is a negation."""
    leaves: list[Value] = []
    number = 0
    stack = [v]
    while stack:
        x = stack.pop()
        if x.op in ("bitcast", "xor") and x.args[0].dtype.kind in "fi":
            stack += x.args
        elif x.op == "const" and x.dtype.kind == "i":
            number ^= int(x.number)
        elif x.op == "neg" and x.dtype.kind == "f":
            number ^= -1 << (x.dtype.bits - 1)
            stack.append(x.args[0])
        else:
            leaves = [y for y in leaves if y is not x] if x in leaves else [*leaves, x]
    if len(leaves) != 1 or v.dtype.kind != "f":
        return None
    (x,) = leaves
    if x.dtype is not v.dtype:
        return None
    return x if number == 0 else -x if number == -1 << (x.dtype.bits - 1) else None


def _product(x: Value) -> tuple[Value, Value] | None:
    """Return the factors of a product, or of a negated one."""
    if x.op == "neg" and x.args[0].op == "mul":
        a, b = x.args[0].args
        return -a, b
    return (x.args[0], x.args[1]) if x.op == "mul" else None


def _rewrite_sum(a: Value, b: Value) -> Value | None:
    for x, y in ((a, b), (b, a)):
        if is_zero(y):
            return x
        if y.op == "neg" and y.args[0] is x:
            return const(0.0, x.dtype)
        if x.op == "sub" and x.args[1] is y:  # (p - y) + y
            return x.args[0]
        if x.op == "add" and x.args[1].op == "const" and y.op == "const":
            return x.args[0] + (x.args[1].number + y.number)
    p, q = _product(a), _product(b)
    if p and q and p[0] is q[0]:
        return p[0] * (p[1] + q[1])
    if p or q:
        first, second = p or q or (a, b)
        return Value("fma", a.dtype, (first, second, b if p else a))
    return None


def _rewrite_difference(a: Value, b: Value) -> Value | None:
    if a is b:
        return const(0.0, a.dtype)
    if is_zero(b):
        return a
    if a.op == "add" and b in a.args:
        return a.args[a.args[0] is b]
    if b.op == "sub" and b.args[0] is a:  # a - (a - q)
        return b.args[1]
    p = _product(b)
    return Value("fma", a.dtype, (-p[0], p[1], a)) if p else None


def _rewrite_product(a: Value, b: Value) -> Value | None:
    if is_zero(a) or is_zero(b):
        return const(0.0, a.dtype)
    if a.op == "mul" and a.args[1].op == "const" and b.op == "const":
        return a.args[0] * (a.args[1].number * b.number)
    return None


def _rewrite_quotient(a: Value, b: Value) -> Value | None:
    if a is b:
        return const(1.0, a.dtype)
    if b.op == "div" and a.op == b.args[0].op == "const" and a.number == b.args[0].number == 1.0:
        return b.args[1]
    return a * (1.0 / b.number) if b.op == "const" and b.number else None


_FLOAT_RULES = {
    "add": _rewrite_sum, "sub": _rewrite_difference, "mul": _rewrite_product,
    "div": _rewrite_quotient,
}  # fmt: skip


class Rewrites(Floats):
    """A backend that rewrites float expressions as -ffast-math permits."""

    shown_by = "test_scalar_ops and reassociated"

    def changed(self, kernel: Kernel) -> Kernel:
        return kernel.with_body(_Simplifier().block(kernel.body))


class SaysThatItRewrites(Rewrites):
    """A backend that rewrites and declares it: the core hides all floats."""

    says: ClassVar[Mapping[str, Any]] = {"algebra": "free"}


class HidesZerosAlone(Rewrites):
    """A backend that rewrites all expressions, and declares those with a constant 0."""

    shown_by = "test_scalar_ops and reassociated"
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
    """A flushing backend that declares it: the core repairs what it flushes."""

    says: ClassVar[Mapping[str, Any]] = {"denormals": False}


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


class RoundsDoublesTwice(Floats):
    """A backend whose fma of float64 is a product and a sum."""

    shown_by = "test_scalar_ops and fma_rounds_once"

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op != "fma" or v.dtype is not float64:
            return None
        a, b, c = args
        return a * b + c


class SaysThatItRoundsDoublesTwice(RoundsDoublesTwice):
    """A backend that declares that it has no fma of float64: integers compute it."""

    says: ClassVar[Mapping[str, Any]] = {"fma64": False}


class NoFma(Floats):
    """A backend that declares that it has no fma, and compiles none."""

    says: ClassVar[Mapping[str, Any]] = {"fma": False}

    def compile(self, kernel: Kernel) -> Program:
        if any(v.op == "fma" for v in values(kernel.body)):
            raise CompileError(f"there is no fma\n{kernel}")
        return super().compile(kernel)


class NoFmaNorDoubles(NoFma):
    """A backend that has no float64 either."""

    says: ClassVar[Mapping[str, Any]] = {"fma": False, **NO_DOUBLES}


class Poor(NoFma):
    """A backend without fma, float64 and 64-bit integers that contracts and divides inexactly."""

    says: ClassVar[Mapping[str, Any]] = {
        "fma": False, "int64": False, "index_bits": 32, "contraction": True,
        "exact_division": False, **NO_DOUBLES,
    }  # fmt: skip

    rule = Contracting.rule


BROKEN = (
    Contracting, FoldsZeros, Rewrites, HidesZerosAlone, RoundsDoublesTwice, Flushing, WithoutNan,
)  # fmt: skip
HONEST = (
    SaysThatItContracts, ContractsApart, SaysThatItFoldsZeros, SaysThatItRewrites,
    SaysThatItRoundsDoublesTwice, SaysThatItFlushes, SaysThatItHasNoNan, NoFma, NoFmaNorDoubles,
    Poor,
)  # fmt: skip
