"""Devices whose float arithmetic is another one: what `legalize` does for them, or they do not run.

A kernel that needs what a device lacks runs on its companion (`plugins.companion`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..dtypes import float32, float64, int32, int64
from .analysis import values
from .builder import Kernel, combine
from .language import Block, Loop, Value, bitcast, cast, walk
from .rewrite import Cloner, unused_names
from .target import Capabilities

# What may use a product without that a compiler can make one operation of both.
_APART = ("mul", "div", "sqrt", "trunc", "floor", "rint", "lt", "le", "eq", "ne", "bitcast")
HELD = {float32: int32, float64: int64}  # what has the bits of a product
_MOVED = ("load", "where", "bitcast", "complex", "real", "imag")  # no arithmetic


# --- products that must not be fused with sums ----------------------------------------------------


def products_apart(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """A kernel whose products come to sums through integers, for devices that fuse the two.

    Their bits are combined with an integer of the launch, which is 0: no compiler knows that.
    """
    if not capabilities.contraction:
        return kernel
    (name,) = unused_names(kernel, ["zero"])
    cloner = _Apart(Value("param", kernel.index, (), name), set(_added(kernel.body)))
    for d in {HELD[v.dtype]: None for v in values(kernel.body) if cloner.parts(v)}:
        cloner.emit(cloner.zeros[d])
    body = (*cloner.out, *cloner.block(kernel.body))
    return kernel.with_body(body, ints=(*kernel.ints, name))


def _added(block: Block) -> Iterator[int]:
    """Ids of values of which a sum may be made, or something that may be part of one."""
    for s in walk(block):
        if isinstance(s, Value):
            if s.op not in _APART:
                yield from map(id, s.args)
        elif isinstance(s, Loop):
            yield from map(id, (*s.init, *s.update))


class _Apart(Cloner):
    def __init__(self, zero: Value, added: set[int]) -> None:
        super().__init__()
        self.zeros = {d: cast(zero, d) for d in HELD.values()}
        self.added = added

    def parts(self, v: Value) -> bool:
        """Whether a product is to be kept apart."""
        return v.op == "mul" and v.dtype in HELD and id(v) in self.added

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if not self.parts(v):
            return None
        d = HELD[v.dtype]
        return bitcast(bitcast(self.again(v, args), d) ^ self.zeros[d], v.dtype)


# --- what a device does not run -------------------------------------------------------------------


def keeps_all(capabilities: Capabilities) -> bool:
    """Whether a device runs every kernel, as far as floats are concerned."""
    can = capabilities
    return can.fma and can.denormals and can.nan and not can.contraction


def lacking(kernel: Kernel, capabilities: Capabilities) -> str:
    """What a (legalised) kernel needs that a device does not keep; "" if there is nothing."""
    can = capabilities
    computed = [*_computed(kernel)]
    if not can.fma and any(v.op == "fma" for v in computed):
        return "an fma of float64"
    if can.contraction and any(
        isinstance(s, Loop) and s.combine == "complex_mul" for s in walk(kernel.body)
    ):
        return "products of complex numbers that are not fused with sums"
    if not can.nan and any(map(_may_meet_nan, computed)):
        return "float arithmetic with infinities and NaN"
    if not can.denormals and any(map(_may_flush, computed)):
        return "float32 arithmetic with denormals"
    return ""


def _computed(kernel: Kernel) -> Iterator[Value]:
    """The operations of a kernel, those of its reductions' combines included."""
    for s in walk(kernel.body):
        if isinstance(s, Value):
            yield s
        elif isinstance(s, Loop) and s.combine is not None:
            yield from (
                v for v in combine(s.combine, tuple(u.dtype for u in s.update)).body
                if isinstance(v, Value)
            )  # fmt: skip


def _may_meet_nan(v: Value) -> bool:
    """Whether an operation of floats depends on infinities and NaN being what they are."""
    if v.op in _MOVED:
        return False
    if v.op == "cast" and (v.args[0].dtype.kind != "f" or v.dtype.kind in "iu"):
        return False  # an integer has none, and becomes none; of NaN it is anything
    return any(x.dtype.kind == "f" for x in (v, *v.args))


def _may_flush(v: Value) -> bool:
    """Whether an operation may be given a denormal float32, or give one."""
    if v.op in _MOVED or not any(x.dtype is float32 for x in (v, *v.args)):
        return False
    if v.op == "cast":
        return (v.args[0].dtype.kind == "f" and v.dtype.kind not in "iu") or v.dtype.kind == "b"
    return not (v.op in ("eq", "ne") and v.args[0] is v.args[1])  # a test for NaN
