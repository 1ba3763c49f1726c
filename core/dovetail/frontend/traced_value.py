"""Traced values: the numbers with which an elementwise function of a user is traced.

A `TracedValue` is a tensor of a layout of its own. All elementwise functions of dovetail call the
primitive `apply`, and so reach it. Each call adds a node to a graph of ops of the table and loops;
`lower_trace` lowers that to kernel IR.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from itertools import count
from types import TracebackType
from typing import Any, NoReturn, TypeAlias

from ..argument_checks import BEYOND_FLOAT, integer, shown
from ..capture.pytree import flatten, rebuild
from ..device_class import Device, device
from ..dtypes import DType, bool_, complex64, complex128, float32, float64, int64
from ..errors import ArgumentTypeError, CaptureError, DTypeError, ValueOverflowError
from ..functions import datatypes
from ..layout import Layout, Shape
from ..ops import table as ops
from ..ops.table import Op
from ..tensor.other_layouts import LayoutTensor
from ..tensor.promotion import PYTHON_NUMBERS, plain_number
from ..tensor.tensor import Tensor

TRACED_LAYOUT = Layout("a_number")  # the layout of traced values, which have no memory
REFERENCE_DEVICE = "reference"  # the device that they report; it computes nothing

Operand: TypeAlias = "TracedValue | bool | int | float"
Bound: TypeAlias = "TracedValue | int"  # of a loop
_creation_counter = count()


class TracedValue(LayoutTensor):
    """A number of a function that is traced: a node of its graph.

    `op`: a row of the table, or "operand" (of the function), "constant" (`attrs`), "index" and
    "carry" (of a loop), "result" (`attrs`: a loop and which of its results). `order` grows with
    time, so it is a topological order.
    """

    __slots__ = ("_dtype", "args", "attrs", "op", "order")

    def __init__(
        self, op: Op | str, dtype: DType, args: tuple[Operand, ...] = (), attrs: Any = None
    ) -> None:
        self.op, self._dtype, self.args, self.attrs = op, dtype, args, attrs
        self.order = next(_creation_counter)

    @property
    def device(self) -> Device:
        return device(REFERENCE_DEVICE)

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def layout(self) -> Layout:
        return TRACED_LAYOUT

    @property
    def shape(self) -> Shape:
        return ()

    @property
    def parts(self) -> tuple[Tensor, ...]:
        return ()

    @property
    def nbytes(self) -> int:
        return self._dtype.itemsize

    @property
    def _expr(self) -> NoReturn:  # type: ignore[override]  # strided tensors have a field
        """Raise a CaptureError: a traced number has no memory."""
        _raise_capture_error(
            "a number has no memory, shape or other elements", _WHOLE_TENSOR_ADVICE
        )

    def run_rule(self, verb: str, name: str, *args: object) -> Tensor:
        """Trace an op of the table or a constant. Raises: CaptureError for other primitives."""
        if verb == "constant":
            like, value = args
            assert isinstance(like, TracedValue) and isinstance(value, (int, float))
            return traced_constant(value, like.dtype)
        if verb != "apply":
            _raise_capture_error(f"{name} is not an elementwise function", _WHOLE_TENSOR_ADVICE)
        op, operands, attrs = args
        assert isinstance(op, Op) and isinstance(operands, Sequence)
        return trace_op(op, operands, attrs)

    def __pow__(self, other: object) -> Tensor:
        is_square = type(other) is int and other == 2 and self.dtype is not bool_
        if is_square:  # a multiplication, as for tensors
            return trace_op(ops.SQUARE, (self,))
        return super().__pow__(other)

    def __bool__(self) -> NoReturn:
        _raise_capture_error(
            "a number has no truth value for `if`, `and`, `or`, `not` or a loop while it is traced",
            _BRANCH_ADVICE,
        )

    def __float__(self) -> NoReturn:
        _raise_capture_error("a number has no value while it is traced", _VALUE_ADVICE)

    __int__ = __index__ = __complex__ = __round__ = __float__

    def item(self, *args: object, **options: object) -> NoReturn:
        """Raise a CaptureError: a traced number has no value."""
        _raise_capture_error("a number has no value while it is traced", _VALUE_ADVICE)

    tolist = numpy = __array__ = __dlpack__ = item

    def __getitem__(self, key: object) -> NoReturn:
        _raise_capture_error("a number cannot be indexed", _WHOLE_TENSOR_ADVICE)

    def __setitem__(self, key: object, value: object) -> NoReturn:
        _raise_capture_error("a number cannot be written to", _WHOLE_TENSOR_ADVICE)

    def __iter__(self) -> NoReturn:
        _raise_capture_error("a number cannot be iterated over", _WHOLE_TENSOR_ADVICE)

    def __len__(self) -> NoReturn:
        _raise_capture_error("a number has no length", _WHOLE_TENSOR_ADVICE)

    def __repr__(self) -> str:
        return f"<a {self._dtype.name} of {function_name.get() or 'an elementwise function'}>"

    __str__ = __repr__
    __hash__ = object.__hash__


function_name: ContextVar[str] = ContextVar("dovetail elementwise function", default="")

_BRANCH_ADVICE = (
    "use dt.where(condition, a, b), dt.logical_and, dt.logical_or, dt.logical_not or dt.minimum; "
    "make a value that is known before a keyword-only parameter"
)
_VALUE_ADVICE = (
    "use dt's functions (dt.exp, not math.exp); make a value that is known before a keyword-only "
    "parameter"
)
_WHOLE_TENSOR_ADVICE = (
    "the function gets one number of each operand; do what needs the tensor outside of it, or in a "
    "dt.kernel"
)


def _raise_capture_error(problem: str, advice: str) -> NoReturn:
    """Raise a CaptureError that names the traced function, the problem and the advice."""
    raise CaptureError(f"{function_name.get() or 'elementwise'}: {problem}; {advice}")


def user_line(trace: TracebackType | None) -> str:
    """Return FILE:LINE and the text of a traceback's innermost line outside of dovetail, or ""."""
    location = ""
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__"))
        if module.partition(".")[0] != __name__.partition(".")[0]:
            location = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    file, _, number = location.rpartition(":")
    text = linecache.getline(file, int(number)).strip() if number.isdigit() else ""
    return f"{location}: {text}" if text else location


def traced_constant(value: complex, dtype: DType) -> TracedValue:
    """Return a traced number that is the same for all elements."""
    return TracedValue("constant", dtype, attrs=value)


def trace_op(op: Op, operands: Sequence[object], attrs: Any = None) -> TracedValue:
    """Return the traced result of an op of the table.

    Raises: as the row does; CaptureError for an operand that is a tensor.
    """
    args = tuple([_as_traced_operand(op, x) for x in operands])
    kinds = [x.dtype if isinstance(x, TracedValue) else type(x) for x in args]
    casts, result = op.dtypes(op.name, kinds, attrs)
    for x, d in zip(args, casts, strict=True):
        if type(x) is int:
            _require_fits(op, x, d)
    return TracedValue(op, result, args, attrs)


def _as_traced_operand(op: Op, x: object) -> Operand:
    """Return an operand as a traced or a Python number. Raises: CaptureError for a tensor."""
    if isinstance(x, (TracedValue, bool, int, float)):
        return plain_number(x)  # type: ignore[return-value]  # it returns one of them
    e = x._expr if isinstance(x, Tensor) else None
    if e is not None and e.op is ops.FULL_COMPLEX:  # operators make a tensor of a complex number
        re, im = e.args
        return traced_constant(
            complex(re, im), complex128 if e.spec.dtype is complex128 else complex64
        )
    other = f"a {type(x).__name__}"
    if isinstance(x, Tensor):
        other = f"a tensor, {x.dtype.name}{list(x.shape)}"
    _raise_capture_error(
        f"{op.name} cannot combine a number and {other}", "pass that as another operand"
    )


def _require_fits(op: Op, value: int, d: DType) -> None:
    """Raise a ValueOverflowError if an integer does not fit the dtype."""
    low, high = (d.min, d.max) if d.is_integer else (1 - BEYOND_FLOAT, BEYOND_FLOAT - 1)
    if d.kind != "b" and not low <= value <= high:
        raise ValueOverflowError(f"{op.name}: {shown(value)} does not fit {d.name}")


def fit_dtype(x: TracedValue, dtype: DType) -> TracedValue:
    """Return a number as another dtype: the real part of a complex one if `dtype` is real."""
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = trace_op(ops.REAL, (x,))
    return x if x.dtype is dtype else trace_op(ops.ASTYPE, (x,), dtype)


class TracedLoop:
    """A loop: `carry` becomes `update` in each iteration; `results` is its final value."""

    __slots__ = ("carry", "index", "init", "results", "start", "stop", "update")

    update: tuple[TracedValue, ...]

    def __init__(self, start: Bound, stop: Bound, init: tuple[TracedValue, ...]) -> None:
        self.start, self.stop, self.init = start, stop, init
        self.index = TracedValue("index", int64, attrs=(self, 0))
        self.carry = self._create_values("carry")
        self.results: tuple[TracedValue, ...] = ()

    def finish(self, update: tuple[TracedValue, ...]) -> None:
        """Set the carries after an iteration, and create the results."""
        self.update = update
        self.results = self._create_values("result")

    def _create_values(self, op: str) -> tuple[TracedValue, ...]:
        """Return new carries or results of this loop, one for each initial value."""
        return tuple([TracedValue(op, x.dtype, attrs=(self, i)) for i, x in enumerate(self.init)])


def fori_loop(lower: object, upper: object, body: Callable[..., Any], init: object) -> Any:
    """Trace `dt.fori_loop` of numbers as a loop in the kernel; call the body once or twice.

    A Python number in `init` takes the dtype of the body's result in its place.
    """
    name = "fori_loop"
    start, stop = _as_loop_bound(name, lower, "lower"), _as_loop_bound(name, upper, "upper")
    flat = flatten(init)
    begin, is_retyped = [as_traced(name, x) for x in flat.leaves], False
    while True:
        loop = TracedLoop(start, stop, tuple(begin))
        result = flatten(body(loop.index, rebuild(flat, loop.carry)))
        if result.tree != flat.tree:
            raise DTypeError(
                f"{name}: the body must return the containers of its carry, {flat.tree}, got "
                f"{result.tree}"
            )
        update = [as_traced(name, x) for x in result.leaves]
        if is_retyped or all(x.dtype is b.dtype for x, b in zip(update, begin, strict=True)):
            break
        begin = [
            b if isinstance(x, TracedValue) else traced_constant(x, u.dtype)
            for x, b, u in zip(flat.leaves, begin, update, strict=True)
        ]
        is_retyped = True
    for x, c in zip(update, loop.carry, strict=True):
        if x.dtype is not c.dtype:
            raise DTypeError(
                f"{name}: the body must return the dtype of its carry, {c.dtype.name}, got "
                f"{x.dtype.name}; cast it with astype(), or start with the returned dtype"
            )
    loop.finish(tuple(update))
    return rebuild(flat, loop.results)


def _as_loop_bound(name: str, value: object, bound_name: str) -> Bound:
    """Return an int, or a traced integer as int64.

    Raises: DTypeError for a traced number of another dtype, ArgumentTypeError for other objects.
    """
    if not isinstance(value, TracedValue):
        if isinstance(value, Tensor):
            raise ArgumentTypeError(
                f"{name}: {bound_name} must be an int or a number of the function, got a tensor"
            )
        return integer(name, value, bound_name)
    if not value.dtype.is_integer:
        raise DTypeError(
            f"{name}: {bound_name} must be an integer, got {value.dtype.name}; make a count that "
            "is known before a keyword-only parameter"
        )
    return fit_dtype(value, int64)


def as_traced(name: str, x: object) -> TracedValue:
    """Return a number as a traced value; a Python number gets the dtype that a tensor of it has.

    Raises: DTypeError for an object that is no number.
    """
    if isinstance(x, TracedValue):
        return x
    if isinstance(x, PYTHON_NUMBERS):
        return traced_constant(x, _default_dtype(x))
    raise DTypeError(f"{name}: the carry must hold numbers, in containers, got {shown(x)}")


def _default_dtype(x: complex) -> DType:
    """Return the dtype that `dt.asarray` gives a Python number."""
    if isinstance(x, (bool, int)):
        return bool_ if isinstance(x, bool) else int64
    is_double = datatypes.default_dtype is float64
    if isinstance(x, complex):
        return complex128 if is_double else complex64
    return float64 if is_double else float32


class TracedControlFlow:
    """The loops and branches of `dt` while a function of numbers is traced."""

    fori_loop = staticmethod(fori_loop)

    def refuse(self, name: str) -> NoReturn:
        """Raise a CaptureError for a form that kernels do not have."""
        way_out = "use dt.fori_loop with a fixed number of rounds, and choose with dt.where"
        _raise_capture_error(
            f"{name} is not supported, because its number of rounds depends on values", way_out
        )
