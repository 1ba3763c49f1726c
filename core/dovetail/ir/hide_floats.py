"""A pass of `legalize` for compilers that rewrite float expressions (`hidden_floats`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..dtypes import DType, bool_, int32
from .builder import Combine, Kernel, combine
from .hidden_floats import BITS_DTYPE, HidingCloner, has_floats
from .language import HIDDEN_COMBINE_SUFFIX, OPERANDS, Block, Loop, Value, walk
from .rewrite import fresh_names
from .target import Capabilities

ZERO_NAMES = ("zero", "zero_again")  # of the integers that a launch brings
# Operations that a compiler cannot fuse with a product among their operands.
_NEVER_FUSED = ("mul", "div", "sqrt", "trunc", "floor", "rint", "lt", "le", "eq", "ne", "bitcast")
_UNKNOWN = (*OPERANDS, "load")  # no compiler knows the value of these
_BITWISE = ("and", "or", "shl", "shr")  # of integers: the parts of a narrow float
_CASTS = ("cast", "bitcast")
_MOVES = (*_BITWISE, *_CASTS, *_UNKNOWN)  # operations whose bits are known by their operands


def hide_floats(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """Return a kernel that hides floats from a compiler that would rewrite expressions of them.

    With `algebra` "free" it hides all floats, with "zeros" the constants 0 and -0, and with
    `contraction` each product that may meet a sum.
    """
    count = len(capabilities.hiding_zeros)
    if not count:
        return kernel
    names = fresh_names(kernel, ZERO_NAMES[:count])
    ints = (*kernel.ints, *names)
    if kernel.fast_math:  # the launch passes the integers all the same
        return kernel.with_body(kernel.body, ints=ints)
    zeros = [Value("param", kernel.index, (), name) for name in names]
    is_free = capabilities.algebra == "free"
    cloner = _FreeCloner(zeros) if is_free else _PartialCloner(kernel, capabilities, zeros)
    body = cloner.block(kernel.body)
    return kernel.with_body((*cloner.prologue, *body), ints=ints)


def _summand_ids(block: Block) -> Iterator[int]:
    """Yield ids of the operands of operations that a compiler may fuse with a product."""
    for s in walk(block):
        if isinstance(s, Value):
            if s.op not in _NEVER_FUSED:
                yield from map(id, s.args)
        elif isinstance(s, Loop):
            yield from map(id, (*s.init, *s.update))


class _KnownBits:
    """The bits of bools and integers that a compiler cannot know to be 0."""

    def __init__(self) -> None:
        self._unknown: dict[Value, int] = {}

    def may_be_zero(self, x: Value) -> bool:
        """Return True for a bool or integer that a compiler may know to be 0, such as `x != x`."""
        if x.dtype is bool_:
            return x.op not in _UNKNOWN
        return x.dtype.kind in "iu" and (x.op not in _MOVES or x.op in _CASTS or not self.find(x))

    def find(self, x: Value) -> int:
        """Return a mask of bits: 1 is a bit that may be 1, 0 one that a compiler may know to be 0.

        A compiler may know the results of arithmetic and comparisons, such as `x - x`, to be 0.
        """
        if x not in self._unknown:
            self._unknown[x] = self._compute(x) & _mask(x.dtype)
        return self._unknown[x]

    def _compute(self, x: Value) -> int:
        """Return the mask of `find` with more bits above those of the dtype."""
        if x.op == "const":
            return int(x.number) if x.dtype.kind in "biu" else 0
        if x.op in _UNKNOWN:
            return -1
        if x.op not in _MOVES:
            return 0
        first = self.find(x.args[0])
        if x.op in _CASTS:
            return self._extend(first, x.args[0].dtype)
        if x.op == "and":
            return first & self.find(x.args[1])
        if x.op == "or":
            return first | self.find(x.args[1])
        amount = x.args[1]
        is_left = x.op == "shl"
        if amount.op == "const":
            count = int(amount.number)
            return first << count if is_left else self._extend(first, x.dtype) >> count
        # Any amount: the lowest bit and all above it, or the highest and all below it.
        return -(first & -first) if is_left else (1 << first.bit_length()) - 1

    @staticmethod
    def _extend(mask: int, d: DType) -> int:
        """Return a mask with the bit of the sign of a dtype in all bits above."""
        is_signed = d.kind == "i" and mask >> d.bits - 1
        return mask - (1 << d.bits) if is_signed else mask


def _mask(d: DType) -> int:
    """Return a mask of the bits of a dtype."""
    return 1 if d is bool_ else (1 << d.bits) - 1


def _hide_reduction(cloner: HidingCloner, new: Loop, rule: Combine, zeros: tuple[int, int]) -> None:
    """Give a reduction the combine of hidden floats, which shares these zeros of the launch."""
    new.combine = rule.name + HIDDEN_COMBINE_SUFFIX
    new.init = (*cloner.operands(rule.identity), *[cloner.zero(int32, which) for which in zeros])


class _FreeCloner(HidingCloner):
    """A cloner that hides all floats of a kernel."""

    def copy_loop_head(self, old: Loop) -> Loop:
        """Return the copy of a loop without its body; all that it starts from is hidden."""
        new = super().copy_loop_head(old)
        if old.combine is not None:
            rule = combine(old.combine, tuple(u.dtype for u in old.update))
            if has_floats(rule):
                _hide_reduction(self, new, rule, (0, 1))
        else:  # a compiler may peel the first iteration
            new.init = tuple(self.hide(x, 1) if x.dtype in BITS_DTYPE else x for x in new.init)
            for x in new.init:
                self.emit(x)
        return new


class _PartialCloner(HidingCloner):
    """A cloner that hides the zeros of a kernel, or its products that may meet sums."""

    def __init__(self, kernel: Kernel, capabilities: Capabilities, zeros: Sequence[Value]) -> None:
        super().__init__(zeros)
        self.hides_zeros = capabilities.algebra == "zeros"
        self.bits = _KnownBits()
        self.contracts = capabilities.contraction
        self.summand_ids = set(_summand_ids(kernel.body) if self.contracts else ())

    def hide_constant(self, v: Value) -> Value:
        """Return a float constant, hidden if it is a zero that the compiler folds."""
        return super().hide_constant(v) if self.hides_zeros and v.number == 0 else v

    def rewrite_value(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        """Return a product that may meet a sum, or a number that may be a known 0, hidden."""
        if v.dtype not in BITS_DTYPE:
            return None
        is_zero = self.hides_zeros and v.op == "cast" and self.bits.may_be_zero(v.args[0])
        if is_zero or (v.op == "mul" and id(v) in self.summand_ids):
            return self.hide(self.copy_with_args(v, args))
        return None

    def copy_loop_head(self, old: Loop) -> Loop:
        """Return the copy of a loop without its body; zeros, and reductions' products, are hidden.

        A sum may use the last product of a reduction.
        """
        new = super().copy_loop_head(old)
        if old.combine is not None:
            rule = combine(old.combine, tuple(u.dtype for u in old.update))
            if self.contracts and rule.name in ("mul", "complex_mul") and has_floats(rule):
                _hide_reduction(self, new, rule, (0, 0))
            elif (identity := self.operands(rule.identity)) != rule.identity:
                new.init = identity
        return new
