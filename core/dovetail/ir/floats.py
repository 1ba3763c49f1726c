"""Passes and checks for devices whose float arithmetic deviates from IEEE 754.

A kernel that needs what a device lacks runs on its companion (`plugins.companion`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..dtypes import float32, float64, int32, int64
from .analysis import values
from .builder import Kernel, combine
from .language import Block, Loop, Value, bitcast, cast, walk
from .rewrite import Cloner, fresh_names
from .target import Capabilities

# Operations that a compiler cannot fuse with a product among their operands.
_NEVER_FUSED = ("mul", "div", "sqrt", "trunc", "floor", "rint", "lt", "le", "eq", "ne", "bitcast")
_BITS_DTYPE = {float32: int32, float64: int64}  # the integers that hold the bits of a product
_MOVE_OPS = ("load", "where", "bitcast", "complex", "real", "imag")  # no arithmetic


# --- products that must not be fused with sums ----------------------------------------------------


def prevent_contraction(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """Return a kernel that hides products from sums, on devices that would fuse the two.

    The bits of a product are combined with an integer of the launch, which is 0: no compiler knows
    that.
    """
    if not capabilities.contraction:
        return kernel
    (name,) = fresh_names(kernel, ["zero"])
    if kernel.fast_math:  # the launch passes the integer all the same
        return kernel.with_body(kernel.body, ints=(*kernel.ints, name))
    cloner = _ProductCloner(Value("param", kernel.index, (), name), set(_summand_ids(kernel.body)))
    for d in {_BITS_DTYPE[v.dtype]: None for v in values(kernel.body) if cloner.is_hidden(v)}:
        cloner.emit(cloner.zeros[d])
    body = (*cloner.statements, *cloner.block(kernel.body))
    return kernel.with_body(body, ints=(*kernel.ints, name))


def _summand_ids(block: Block) -> Iterator[int]:
    """Yield ids of the operands of operations that a compiler may fuse with a product."""
    for s in walk(block):
        if isinstance(s, Value):
            if s.op not in _NEVER_FUSED:
                yield from map(id, s.args)
        elif isinstance(s, Loop):
            yield from map(id, (*s.init, *s.update))


class _ProductCloner(Cloner):
    """A cloner that hides products from the compiler's contraction."""

    def __init__(self, zero: Value, summand_ids: set[int]) -> None:
        super().__init__()
        self.zeros = {d: cast(zero, d) for d in _BITS_DTYPE.values()}
        self.summand_ids = summand_ids

    def is_hidden(self, v: Value) -> bool:
        """Return True if a product must not be fused with its sum."""
        return v.op == "mul" and v.dtype in _BITS_DTYPE and id(v) in self.summand_ids

    def rewrite_value(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        """Return a hidden product, xor-ed with the zero of the launch; None for other values."""
        if not self.is_hidden(v):
            return None
        d = _BITS_DTYPE[v.dtype]
        return bitcast(bitcast(self.copy_with_args(v, args), d) ^ self.zeros[d], v.dtype)


# --- features that a device lacks -----------------------------------------------------------------


def supports_all_floats(capabilities: Capabilities) -> bool:
    """Return True if a device runs every kernel, as far as floats are concerned."""
    can = capabilities
    return can.fma and can.denormals and can.nan and not can.contraction


def find_missing_feature(kernel: Kernel, capabilities: Capabilities) -> str:
    """Return the first feature that a legalised kernel needs and a device lacks.

    The result is "" if the device runs the kernel as it should.
    """
    can = capabilities
    operations = [*_operations(kernel)]
    if not can.fma and any(v.op == "fma" for v in operations):
        return "an fma of float64"
    if can.contraction and any(
        isinstance(s, Loop) and s.combine == "complex_mul" for s in walk(kernel.body)
    ):
        return "products of complex numbers without contraction"
    if not can.nan and any(map(_may_meet_nan, operations)):
        return "float arithmetic with infinities and NaN"
    if not can.denormals and any(map(_may_flush_denormals, operations)):
        return "float32 arithmetic with denormals"
    return ""


def _operations(kernel: Kernel) -> Iterator[Value]:
    """Yield the operations of a kernel, those of its reductions' combines included."""
    for s in walk(kernel.body):
        if isinstance(s, Value):
            yield s
        elif isinstance(s, Loop) and s.combine is not None:
            rule = combine(s.combine, tuple(u.dtype for u in s.update))
            yield from (v for v in rule.body if isinstance(v, Value))


def _may_meet_nan(v: Value) -> bool:
    """Return True if an operation of floats depends on infinities and NaN."""
    if v.op in _MOVE_OPS:
        return False
    if v.op == "cast" and (v.args[0].dtype.kind != "f" or v.dtype.kind in "iu"):
        return False  # integers have no NaN; the cast of NaN to an integer is undefined
    return any(x.dtype.kind == "f" for x in (v, *v.args))


def _may_flush_denormals(v: Value) -> bool:
    """Return True if an operation may take or give a denormal float32."""
    if v.op in _MOVE_OPS or not any(x.dtype is float32 for x in (v, *v.args)):
        return False
    if v.op == "cast":
        return (v.args[0].dtype.kind == "f" and v.dtype.kind not in "iu") or v.dtype.kind == "b"
    return not (v.op in ("eq", "ne") and v.args[0] is v.args[1])  # a test for NaN
