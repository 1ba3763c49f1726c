"""The kernel IR: the only input of a backend.

A `Kernel` describes the computation at every point of a grid. Its parameters are buffers (a dtype
and an access), run-time integers (sizes, strides) and run-time scalars. Its body is a `Block`: a
list of statements in the order in which they run, where a statement is

- a `Value`: compute this operation now (single assignment: a Value stands in exactly one block,
  before its uses);
- a `Store` or an `Atomic`: write to a buffer at a linear element index;
- a `Loop`, of one of three kinds:
  - `map`: iterations are independent; it only has effects;
  - `reduce`: combines `update`, computed in every iteration, with a named associative `Combine` in
    the *canonical order* (below); results are read through "result" Values;
  - `fold`: sequential; `carry` holds the state, starting at `init`, becoming `update` after each
    iteration; it may have effects too.

Points of the grid are independent and may run in any order and at once. Nothing else is in the
language: dtypes are bool, integers, float32 and float64 after legalisation (float16 and bfloat16
appear only in buffers, `load`, `store` and `cast`, on devices that convert them natively). Complex
values are pairs of floats, which `kernel.pairs` takes apart before any backend sees them: a product
is (a + bi)(c + di) = (ac - bd) + (ad + bc)i, each operation rounded once.

Canonical order of a reduction of n values x[0..n-1] (start..stop, step 1), with LANES = 32 and
CHUNK = 4096:
    reduce(x, n) = n <= CHUNK ? chunk(x) : reduce([chunk(x[c*CHUNK : (c+1)*CHUNK]) for c in ...])
    chunk(x): lane[j] = identity for j in 0..31;
              for k ascending: lane[k % 32] = combine(lane[k % 32], x[k]);
              for h in 16, 8, 4, 2, 1: lane[j] = combine(lane[j], lane[j + h]) for j < h;
              the result is lane[0].
All 32 lanes take part, also when n < 32. So the bits depend on n alone.

Values are built as free-standing expressions (`x * y + 1`, `where(c, a, b)`, `load(buf, i)`);
`KernelBuilder.build` places each in the outermost block in which it can stand (so it may be
computed though the loop around it runs no iteration), and shares equal ones. A load from an "rw"
buffer stands where it is first used, and is not shared with an equal one: a store may lie between.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..dtypes import DType, bool_, complex64, complex128, float32, int64
from ..errors import InternalError
from ..lru_cache import LRUCache

LANES = 32
"""The number of partial results of a chunk in the canonical order of a reduction."""
CHUNK = 4096
"""The number of values of a chunk in the canonical order of a reduction."""

OPS: dict[str, tuple[int, str, str]] = {
    "add": (2, "iufc", "same"),  # integers wrap
    "sub": (2, "iufc", "same"),
    "mul": (2, "iufc", "same"),
    "div": (2, "f", "same"),
    "fma": (3, "fc", "same"),  # a * b + c with one rounding; of complex ones two for each part
    "neg": (1, "ifc", "same"),
    "sqrt": (1, "f", "same"),  # correctly rounded
    "trunc": (1, "f", "same"),
    "floor": (1, "f", "same"),
    "rint": (1, "f", "same"),  # to nearest, ties to even
    "quo": (2, "iu", "same"),  # towards zero; undefined for divisor 0 and for MIN / -1: guard it
    "rem": (2, "iu", "same"),  # a - quo(a, b) * b; undefined where quo is
    "shl": (2, "iu", "same"),  # undefined outside 0 <= amount < bits: guard it
    "shr": (2, "iu", "same"),  # arithmetic for signed, logical for unsigned
    "and": (2, "biu", "same"),
    "or": (2, "biu", "same"),
    "xor": (2, "biu", "same"),
    "not": (1, "biu", "same"),
    "lt": (2, "iuf", "b"),
    "le": (2, "iuf", "b"),
    "eq": (2, "biufc", "b"),
    "ne": (2, "biufc", "b"),
    "where": (3, "biufc", "same"),  # where(bool, a, b)
    # int -> int wraps; -> float rounds to nearest even (int -> half by way of float32);
    # float -> int truncates and is undefined out of range (guard it); bool <-> number: 0/1, x != 0
    # a complex one is cast to complex ones alone
    "cast": (1, "biufc", "attr"),
    "bitcast": (1, "iuf", "attr"),
}
"""The operations.

Each has the number of its arguments, their kinds of dtype, and the dtype of the result: "same" or a
kind.
"""
# Operations that build complex values and take them apart.
PAIR_OPS: dict[str, tuple[int, str, str]] = {
    "complex": (2, "f", "complex"),  # of its real and its imaginary part
    "real": (1, "c", "part"),
    "imag": (1, "c", "part"),
}
ALL_OPS = OPS | PAIR_OPS
# Parts of the names of combines that passes derive from another one.
COMBINE_NAME_SEPARATOR = "_of_"  # before the original dtypes: "argmax_of_f32_i64"
EXACT_SUFFIX = "_exact"  # the operations keep subnormals
FLAGGED_SUFFIX = "_flagged"  # bits are combined beside the values
HIDDEN_COMBINE_SUFFIX = "_hidden"  # the floats are hidden from the compiler
OPERANDS = ("const", "param", "index", "loopvar", "carry", "result", "arg")
"""The ops of values that no statement computes: operands that stand for themselves."""


# These classes are written out: as dataclasses they would take 4 % of the time of an import.


class Buffer:
    """A buffer parameter, or an array of each point; indices are in elements from its start.

    - `name`: the name of the parameter or array.
    - `dtype`: the dtype of the elements.
    - `access`: "r", "w" or "rw".
    - `length`: the elements of an array; 0 for a parameter.
    - `shared`: True for an array that the work items of a group share; others are private.
    """

    __slots__ = ("access", "dtype", "length", "name", "shared")

    def __init__(
        self, name: str, dtype: DType, access: str, length: int = 0, shared: bool = False
    ) -> None:
        self.name, self.dtype, self.access, self.length = name, dtype, access, length
        self.shared = shared

    def __repr__(self) -> str:
        if self.length:
            kind = "shared" if self.shared else "private"
            return f"<{kind} array {self.name}: {self.dtype.code}[{self.length}]>"
        return f"<buffer {self.name}: {self.access} {self.dtype.code}>"


class Value:
    """One operation of a kernel.

    - `op`: the name of the operation; `OPS` lists them.
    - `dtype`: the dtype of the result.
    - `args`: the operands, as Values.
    - `attr`: depends on the `op`; the properties name its meanings.
    """

    __slots__ = ("args", "attr", "dtype", "op")

    def __init__(
        self, op: str, dtype: DType, args: tuple[Value, ...] = (), attr: object = None
    ) -> None:
        self.op, self.dtype, self.args, self.attr = op, dtype, args, attr

    def __repr__(self) -> str:
        inner = ", ".join(a.op for a in self.args)
        return f"<{self.op} {self.dtype.code} {'' if self.attr is None else self.attr} ({inner})>"

    @property
    def number(self) -> float:
        """The Python number of a const (a bool, an int or a float)."""
        assert isinstance(self.attr, (int, float)), self
        return self.attr

    @property
    def name(self) -> str:
        """The name of a param."""
        assert isinstance(self.attr, str), self
        return self.attr

    @property
    def axis(self) -> int:
        """The axis of the grid that an index is along."""
        assert isinstance(self.attr, int), self
        return self.attr

    @property
    def buffer(self) -> Buffer:
        """The buffer that a load reads."""
        assert isinstance(self.attr, Buffer), self
        return self.attr

    @property
    def index(self) -> Value:
        """The index of the element that a load reads."""
        return self.args[0]

    @property
    def when(self) -> Value | None:
        """The condition under which a load reads, if it has one."""
        return self.args[1] if len(self.args) == 2 else None

    @property
    def place(self) -> tuple[Loop, int]:
        """The loop of a loopvar, a carry or a result, and its position among the loop's."""
        assert isinstance(self.attr, tuple), self
        return self.attr

    def __add__(self, other: Operand) -> Value:
        return binary("add", self, other)

    def __radd__(self, other: Operand) -> Value:
        return binary("add", as_kernel_value(other, self.dtype), self)

    def __sub__(self, other: Operand) -> Value:
        return binary("sub", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return binary("sub", as_kernel_value(other, self.dtype), self)

    def __mul__(self, other: Operand) -> Value:
        return binary("mul", self, other)

    def __rmul__(self, other: Operand) -> Value:
        return binary("mul", as_kernel_value(other, self.dtype), self)

    def __truediv__(self, other: Operand) -> Value:
        return binary("div", self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return binary("div", as_kernel_value(other, self.dtype), self)

    def __neg__(self) -> Value:
        return Value("neg", self.dtype, (self,))

    def __lshift__(self, other: Operand) -> Value:
        return binary("shl", self, other)

    def __rshift__(self, other: Operand) -> Value:
        return binary("shr", self, other)

    def __and__(self, other: Operand) -> Value:
        return binary("and", self, other)

    def __or__(self, other: Operand) -> Value:
        return binary("or", self, other)

    def __xor__(self, other: Operand) -> Value:
        return binary("xor", self, other)

    def __invert__(self) -> Value:
        return Value("not", self.dtype, (self,))

    def __lt__(self, other: Operand) -> Value:
        return binary("lt", self, other)

    def __le__(self, other: Operand) -> Value:
        return binary("le", self, other)

    def __gt__(self, other: Operand) -> Value:
        return binary("lt", as_kernel_value(other, self.dtype), self)

    def __ge__(self, other: Operand) -> Value:
        return binary("le", as_kernel_value(other, self.dtype), self)


Operand = Value | int | float | bool


CONSTANTS_MAX = 10_000  # constants in the cache
# Equal ones are one object, and placed once.
_constants: LRUCache[tuple[DType, object], Value] = LRUCache(CONSTANTS_MAX)


def const(value: float | int | bool, dtype: DType) -> Value:
    """Return a cached constant. An integer must be in range; a float32 is rounded to float32.

    - `value`: a Python number.
    """
    key = (dtype, exact_key(value))
    cached = _constants.find(key)
    if cached is None:
        cached = _constants[key] = _build_constant(value, dtype)
    return cached


def exact_key(value: object) -> tuple[type, object]:
    """Return a key that is equal for equal numbers of one type.

    The keys of 0.0 and -0.0 differ, and so do those of 1 and 1.0.
    """
    ordinary = value and value == value  # NaN is not
    return type(value), value if ordinary else repr(value)


def _build_constant(value: float | int | bool, dtype: DType) -> Value:
    """Return a new constant; raise InternalError for an integer outside of its dtype's range."""
    if dtype.kind == "c":
        return complex_value(const(value, dtype.part), const(0.0, dtype.part))
    if dtype.kind == "f":
        value = float(value)
        if dtype is float32 and math.isfinite(value):
            value = struct.unpack("f", struct.pack("f", value))[0]
    elif dtype.kind == "b":
        value = bool(value)
    else:
        value = int(value)
        if not dtype.min <= value <= dtype.max:
            raise InternalError(f"constant {value} does not fit {dtype.name}")
    return Value("const", dtype, (), value)


def as_kernel_value(x: Operand, dtype: DType) -> Value:
    """Return `x` itself, or a Python number as a constant of `dtype`."""
    return x if isinstance(x, Value) else const(x, dtype)


def binary(op: str, a: Operand, b: Operand) -> Value:
    """Return a two-argument op; a Python number takes the other's dtype, but dtypes must agree.

    Trivial integer cases fold.
    """
    if not isinstance(a, Value):
        assert isinstance(b, Value)
        a = const(a, b.dtype)
    if not isinstance(b, Value):
        b = const(b, a.dtype)
    dtype = a.dtype
    if dtype is not b.dtype:
        pair = f"{dtype.name} and {b.dtype.name}"
        raise InternalError(f"{op} of {pair}: the kernel IR never promotes")
    if (b.op == "const" or a.op == "const") and dtype.kind in "iu":
        folded = _fold_integer(op, a, b)
        if folded is not None:
            return folded
    return Value(op, bool_ if OPS[op][2] == "b" else dtype, (a, b))


def _fold_integer(op: str, a: Value, b: Value) -> Value | None:
    """Return an op's value if an operand is neutral or zero, or None if the op does not fold."""
    x = a.number if a.op == "const" else None
    y = b.number if b.op == "const" else None
    if op in ("add", "or", "xor") and x == 0:
        return b
    if op in ("add", "sub", "or", "xor", "shl", "shr") and y == 0:
        return a
    if op == "mul" and x == 1:
        return b
    if op in ("mul", "quo") and y == 1:
        return a
    if op == "mul" and 0 in (x, y):
        return const(0, a.dtype)
    return None


def fma(a: Value, b: Operand, c: Operand) -> Value:
    """Return a * b + c with one rounding.

    - `a`, `b`, `c`: Values of one float dtype.
    """
    return Value("fma", a.dtype, (a, as_kernel_value(b, a.dtype), as_kernel_value(c, a.dtype)))


def unary(op: str, a: Value) -> Value:
    """Return a one-argument op of the same dtype: neg, sqrt, trunc, floor, rint, not."""
    return Value(op, a.dtype, (a,))


def sqrt(a: Value) -> Value:
    """Return the correctly rounded square root."""
    return unary("sqrt", a)


def trunc(a: Value) -> Value:
    """Return `a` rounded towards zero."""
    return unary("trunc", a)


def floor(a: Value) -> Value:
    """Return `a` rounded down."""
    return unary("floor", a)


def rint(a: Value) -> Value:
    """Return `a` rounded to the nearest integer, ties to even."""
    return unary("rint", a)


def quo(a: Value, b: Operand) -> Value:
    """Return the integer quotient, towards zero. The divisor must be neither 0 nor (for MIN) -1."""
    return binary("quo", a, b)


def rem(a: Value, b: Operand) -> Value:
    """Return the integer remainder with the sign of `a`, under `quo`'s conditions."""
    return binary("rem", a, b)


def eq(a: Value, b: Operand) -> Value:
    """Return a == b.

    - `a`, `b`: Values of one dtype.
    """
    return binary("eq", a, b)


def ne(a: Value, b: Operand) -> Value:
    """Return a != b, which is true for NaN.

    - `a`, `b`: Values of one dtype.
    """
    return binary("ne", a, b)


def where(c: Value, a: Operand, b: Operand) -> Value:
    """Return `a` where `c` is true, else `b`. Both are computed.

    - `c`: a Value of bool.
    - `a`, `b`: Values of one dtype.
    """
    if not isinstance(a, Value):
        if not isinstance(b, Value):
            raise InternalError("where() of two Python numbers has no dtype")
        a = const(a, b.dtype)
    return Value("where", a.dtype, (c, a, as_kernel_value(b, a.dtype)))


def cast(a: Value, dtype: DType) -> Value:
    """Return `a` as `dtype`. A float outside of an integer's range gives any integer: guard it.

    - `a`: a Value.
    """
    return a if a.dtype is dtype else Value("cast", dtype, (a,))


def bitcast(a: Value, dtype: DType) -> Value:
    """Return the bits of `a` read as `dtype`, of the same size.

    - `a`: a Value.
    """
    return a if a.dtype is dtype else Value("bitcast", dtype, (a,))


def complex_value(re: Value, im: Value) -> Value:
    """Return the complex number re + im i."""
    return Value("complex", complex64 if re.dtype is float32 else complex128, (re, im))


def real(z: Value) -> Value:
    """Return the real part of a complex value."""
    return z.args[0] if z.op == "complex" else Value("real", z.dtype.part, (z,))


def imag(z: Value) -> Value:
    """Return the imaginary part of a complex value."""
    return z.args[1] if z.op == "complex" else Value("imag", z.dtype.part, (z,))


def complex_product_parts(a: Value, b: Value, c: Value, d: Value) -> tuple[Value, Value]:
    """Return the parts of (a + bi)(c + di)."""
    return a * c - b * d, a * d + b * c


def load(buffer: Buffer, index: Value, when: Value | None = None) -> Value:
    """Return the element at `index`; zero where `when` is given and false: no memory is touched.

    - `buffer`: the buffer.
    - `index`: the element, as a Value.
    - `when`: the condition; None always reads.
    """
    return Value("load", buffer.dtype, (index,) if when is None else (index, when), buffer)


class Store:
    """A write of `value` at `index`, where `when` is absent or true.

    - `buffer`: the buffer.
    - `index`: the element, as a `Value`.
    - `value`: the value to write.
    - `when`: the condition; None writes always.
    """

    __slots__ = ("buffer", "index", "value", "when")

    def __init__(
        self, buffer: Buffer, index: Value, value: Value, when: Value | None = None
    ) -> None:
        self.buffer, self.index, self.value, self.when = buffer, index, value, when

    def __repr__(self) -> str:
        return f"<store {self.buffer!r} {self.index!r} {self.value!r}>"


class Atomic:
    """An integer read-modify-write of `buffer[index]`: `op` is add, min, max, and, or.

    - `op`: "add", "min", "max", "and" or "or".
    - `buffer`: the buffer.
    - `index`: the element, as a `Value`.
    - `value`: the other operand.
    - `when`: the condition; None does it always.
    """

    __slots__ = ("buffer", "index", "op", "value", "when")

    def __init__(
        self, op: str, buffer: Buffer, index: Value, value: Value, when: Value | None = None
    ) -> None:
        self.op, self.buffer, self.index, self.value, self.when = op, buffer, index, value, when

    def __repr__(self) -> str:
        return f"<atomic {self.op} {self.buffer!r} {self.index!r} {self.value!r}>"


class Loop:
    """A loop of one of the three kinds; `KernelBuilder.build` fills in its `body`.

    - `kind`: "fold", "map" or "reduce".
    - `start`, `stop`: the range of the loop variable, as Values.
    - `combine`: of a reduction: the name of its `Combine`.
    - `init`: the values that a fold carries first; of a reduction (), or the values that replace
      its identity, then those of the combine's `shared`.
    """

    __slots__ = (
        "body",
        "carry",
        "combine",
        "effects",
        "init",
        "kind",
        "results",
        "start",
        "stop",
        "update",
        "var",
    )

    effects: tuple[Effect, ...]
    body: Block

    def __init__(
        self,
        kind: str,
        start: Value,
        stop: Value,
        combine: str | None = None,
        init: tuple[Value, ...] = (),
    ) -> None:
        self.kind, self.start, self.stop = kind, start, stop
        self.combine, self.init = combine, init
        self.var = Value("loopvar", start.dtype, (), (self, 0))
        self.carry: tuple[Value, ...] = ()
        self.update: tuple[Value, ...] = ()
        self.results: tuple[Value, ...] = ()
        self.effects = ()
        self.body = ()

    def set_body(self, body: Block) -> None:
        """Set the statements, and the effects among them.

        - `body`: the statements.
        """
        self.body, self.effects = body, tuple(s for s in body if not isinstance(s, Value))

    def __repr__(self) -> str:
        return f"<{self.kind} loop {self.start!r}..{self.stop!r}>"


Effect = Store | Atomic | Loop
Statement = Value | Store | Atomic | Loop
"""A statement of a block: a computed value, or an effect."""
Block = tuple[Statement, ...]
"""The statements of a body, in order."""


def map_loop(
    start: Operand, stop: Operand, body: Callable[[Value], Iterable[Effect | Value]]
) -> Loop:
    """Return a loop of independent iterations, for `KernelBuilder.effect`.

    `body(k)` gives the effects of an iteration. Values among them are computed before later
    effects, as by `KernelBuilder.first`.
    """
    loop = Loop("map", as_kernel_value(start, int64), as_kernel_value(stop, int64))
    loop.effects = tuple(body(loop.var))  # type: ignore[arg-type]  # no values when it is built
    return loop


def reduce_loop(
    combine: str, start: Operand, stop: Operand, body: Callable[[Value], Value | Sequence[Value]]
) -> tuple[Value, ...]:
    """Return the results of combining `body(k)` over k in start..stop-1, in canonical order.

    - `combine`: the name of the `Combine`, such as "add".
    - `start`, `stop`: the range of the loop variable, as Values.
    - `body`: a function from the loop variable to the values to combine.
    """
    loop = Loop("reduce", as_kernel_value(start, int64), as_kernel_value(stop, int64), combine)
    update = body(loop.var)
    loop.update = (update,) if isinstance(update, Value) else tuple(update)
    loop.results = _create_results(loop, [u.dtype for u in loop.update])
    return loop.results


def fold_loop(
    start: Operand,
    stop: Operand,
    init: Sequence[Value],
    body: Callable[..., Sequence[Value] | tuple[Sequence[Value], Iterable[Effect]]],
) -> Loop:
    """Return a sequential loop: `body(k, *carry)` gives the new carries, or (new carries, effects).

    Its `.results` are the carries after the last iteration. A loop with effects must be passed to
    `KernelBuilder.effect`.

    - `start`, `stop`: the range of the loop variable, as Values.
    - `init`: the values that are carried first.
    - `body`: a function of the loop variable and the carries.
    """
    loop = Loop(
        "fold", as_kernel_value(start, int64), as_kernel_value(stop, int64), init=tuple(init)
    )
    loop.carry = tuple(Value("carry", v.dtype, (), (loop, i)) for i, v in enumerate(loop.init))
    step = body(loop.var, *loop.carry)
    if isinstance(step, tuple) and len(step) == 2 and not all(isinstance(g, Value) for g in step):
        updates, effects = step
        loop.update, loop.effects = tuple(updates), tuple(effects)  # type: ignore[arg-type]  # seen
    else:
        loop.update = tuple(step)  # type: ignore[arg-type]  # values alone, as was seen
    loop.results = _create_results(loop, [v.dtype for v in loop.init])
    return loop


def _create_results(loop: Loop, dtypes: Iterable[DType]) -> tuple[Value, ...]:
    """Return result values of a loop, one for each dtype."""
    return tuple(Value("result", d, (), (loop, i)) for i, d in enumerate(dtypes))


def walk(block: Block) -> Iterator[Statement]:
    """Yield every statement of a block and of the loops in it, in order."""
    for s in block:
        yield s
        if isinstance(s, Loop):
            yield from walk(s.body)
