"""What an elementwise function of one's own is called with: one number of each operand.

An `Element` stands for it while the function is traced. It is a tensor of a layout of its own, so
that all of dovetail's elementwise functions, which are made of the verb `apply`, reach it; what
they do is noted as a graph: rows of the op table, and loops. `value_of` says the same in the loop
language.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from itertools import count
from types import TracebackType
from typing import Any, NoReturn, TypeAlias

from ..arguments import BEYOND_FLOAT, integer, shown
from ..capture.pytree import flattened, rebuilt
from ..device import Device, device
from ..dtypes import DType, bool_, complex64, complex128, float32, float64, int64
from ..errors import ArgumentTypeError, CaptureError, DTypeError, ValueOverflow
from ..functions import datatypes
from ..layout import Layout, Shape
from ..ops import table as ops
from ..ops.table import Op
from ..tensor.operands import PYTHON_NUMBERS
from ..tensor.other_layouts import LayoutTensor
from ..tensor.tensor import Tensor

NUMBERS = Layout("a_number")  # of Elements: they are in no memory
REFERENCE = "reference"  # the device that they are said to be on: none is asked for anything

Operand: TypeAlias = "Element | bool | int | float"
_order = count()


class Element(LayoutTensor):
    """A number while a function of numbers is traced: an op on others.

    `op`: a row of the table, or "operand" (of the function), "constant" (`attrs`), "index" and
    "carry" (of a loop), "result" (`attrs`: a loop and which of its results).
    """

    __slots__ = ("_dtype", "args", "attrs", "op", "order")

    def __init__(
        self, op: Op | str, dtype: DType, args: tuple[Operand, ...] = (), attrs: Any = None
    ) -> None:
        self.op, self._dtype, self.args, self.attrs = op, dtype, args, attrs
        self.order = next(_order)

    @property
    def device(self) -> Device:
        """The device of no kernel: any will do."""
        return device(REFERENCE)

    @property
    def dtype(self) -> DType:
        """What it is a number of."""
        return self._dtype

    @property
    def layout(self) -> Layout:
        """The layout of what is in no memory."""
        return NUMBERS

    @property
    def shape(self) -> Shape:
        """That of one number."""
        return ()

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """None: it is in no memory."""
        return ()

    @property
    def nbytes(self) -> int:
        """The bytes of one such number."""
        return self._dtype.itemsize

    @property
    def _expr(self) -> NoReturn:  # type: ignore[override]  # strided ones have a field
        _only_numbers("memory, a shape or other elements are asked for", _WHOLE)

    def run_rule(self, verb: str, name: str, *args: object) -> Tensor:
        """What an elementwise op makes of numbers. Raises: CaptureError for other verbs."""
        if verb == "constant":
            like, value = args
            assert isinstance(like, Element) and isinstance(value, (int, float))
            return constant(value, like.dtype)
        if verb != "apply":
            _only_numbers(f"{name} is asked for", _WHOLE)
        op, given, attrs = args
        assert isinstance(op, Op) and isinstance(given, Sequence)
        return applied(op, given, attrs)

    def __pow__(self, other: object) -> Tensor:
        if type(other) is int and other == 2:  # as of tensors: a multiplication
            return applied(ops.SQUARE, (self,), None)
        return super().__pow__(other)

    def __bool__(self) -> NoReturn:
        _only_numbers("`if`, `and`, `or`, `not` or a loop asks whether a number is true", _BRANCH)

    def __float__(self) -> NoReturn:
        _only_numbers("a number is asked for its value", _VALUE)

    __int__ = __index__ = __complex__ = __round__ = __float__

    def item(self, *args: object, **options: object) -> NoReturn:
        """No value: it is not known yet. Raises: CaptureError."""
        _only_numbers("a number is asked for its value", _VALUE)

    tolist = numpy = __array__ = __dlpack__ = item

    def __getitem__(self, key: object) -> NoReturn:
        _only_numbers("an element is asked for by its index", _WHOLE)

    def __setitem__(self, key: object, value: object) -> NoReturn:
        _only_numbers("a number is written to", _WHOLE)

    def __iter__(self) -> NoReturn:
        _only_numbers("a number is gone through", _WHOLE)

    def __len__(self) -> NoReturn:
        _only_numbers("a number is asked for its length", _WHOLE)

    def __repr__(self) -> str:
        return f"<a {self._dtype.name} of {names.get() or 'an elementwise function'}>"

    __str__ = __repr__
    __hash__ = object.__hash__


# --- errors --------------------------------------------------------------------------------------

names: ContextVar[str] = ContextVar("dovetail elementwise function", default="")

_BRANCH = (
    "both sides are computed and one is chosen: dt.where(condition, a, b); dt.logical_and, "
    "dt.logical_or, dt.logical_not and dt.minimum are for numbers, too; what is known before "
    "is a keyword-only parameter"
)
_VALUE = (
    "its values come later, in a kernel: use dt's functions (dt.exp, not math.exp); what is known "
    "before is a keyword-only parameter"
)
_WHOLE = (
    "it is called with one number of each operand and gives numbers: what needs more of a tensor "
    "is done outside of it, or in a dt.kernel"
)


def _only_numbers(what: str, way: str) -> NoReturn:
    raise CaptureError(f"{names.get() or 'elementwise'}: {what}, and {way}")


def source_line(place: str) -> str:
    """A place of the user's, FILE:LINE, with what stands there."""
    file, _, number = place.rpartition(":")
    text = linecache.getline(file, int(number)).strip() if number.isdigit() else ""
    return f"{place}: {text}" if text else place


def line_in(trace: TracebackType | None) -> str:
    """The innermost line of a traceback that is the user's; empty if there is none."""
    found = ""
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__"))
        if module.partition(".")[0] != __name__.partition(".")[0]:
            found = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return source_line(found) if found else ""


# --- what is noted -------------------------------------------------------------------------------


def constant(value: complex, dtype: DType) -> Element:
    """A number that is the same for all elements."""
    return Element("constant", dtype, attrs=value)


def applied(op: Op, given: Sequence[object], attrs: Any) -> Element:
    """A row of the table, of numbers. Raises: as the row does; CaptureError for tensors."""
    args = tuple([_argument(op, a) for a in given])
    kinds = [a.dtype if isinstance(a, Element) else type(a) for a in args]
    casts, result = op.dtypes(op.name, kinds, attrs)
    for a, d in zip(args, casts, strict=True):
        if type(a) is int:
            _require_fits(op, a, d)
    return Element(op, result, args, attrs)


def _argument(op: Op, x: object) -> Operand:
    if isinstance(x, Element):
        return x
    if isinstance(x, (bool, int, float)):
        return x
    e = x._expr if isinstance(x, Tensor) else None
    if e is not None and e.op is ops.FULL_COMPLEX:  # what a complex number has become
        re, im = e.args
        return constant(complex(re, im), complex128 if e.spec.dtype is complex128 else complex64)
    _only_numbers(f"{op.name} of a number and {_tensor(x)}", "give that as another operand")


def _tensor(x: object) -> str:
    if isinstance(x, Tensor):
        return f"a tensor, {x.dtype.name}{list(x.shape)}"
    return f"a {type(x).__name__}"


def _require_fits(op: Op, value: int, d: DType) -> None:
    low, high = (d.min, d.max) if d.is_integer else (1 - BEYOND_FLOAT, BEYOND_FLOAT - 1)
    if d.kind != "b" and not low <= value <= high:
        raise ValueOverflow(f"{op.name}: {shown(value)} does not fit {d.name}")


def fitted(x: Element, want: DType) -> Element:
    """A number as another dtype; of a complex one the real part where what is wanted is real."""
    if x.dtype is want:
        return x
    if x.dtype.kind == "c" and want.kind != "c":
        x = applied(ops.REAL, (x,), None)
    return x if x.dtype is want else applied(ops.ASTYPE, (x,), want)


# --- loops ---------------------------------------------------------------------------------------


class Rounds:
    """A loop in a kernel: `carry` becomes `update` in each round; `results` is what it ends as."""

    __slots__ = ("carry", "index", "init", "results", "start", "stop", "update")

    update: tuple[Element, ...]

    def __init__(self, start: Bound, stop: Bound, init: tuple[Element, ...]) -> None:
        self.start, self.stop, self.init = start, stop, init
        self.index = Element("index", int64, attrs=(self, 0))
        self.carry = tuple([Element("carry", x.dtype, attrs=(self, i)) for i, x in enumerate(init)])
        self.results: tuple[Element, ...] = ()

    def finish(self, update: tuple[Element, ...]) -> None:
        """Says what a round gives."""
        self.update = update
        self.results = tuple([
            Element("result", x.dtype, attrs=(self, i)) for i, x in enumerate(self.init)
        ])  # fmt: skip


Bound: TypeAlias = "int | Element"


def fori_loop(lower: object, upper: object, body: Callable[..., Any], init: object) -> Any:
    """`dt.fori_loop` of numbers: a loop in the kernel.

    A Python number that it begins with takes the dtype of what the body gives in its place.
    """
    name = "fori_loop"
    bounds = [_bound(name, n, what) for n, what in ((lower, "lower"), (upper, "upper"))]
    flat = flattened(init)
    begun, known = [carried(name, x) for x in flat.leaves], False
    while True:
        loop = Rounds(bounds[0], bounds[1], tuple(begun))
        made = flattened(body(loop.index, rebuilt(flat, loop.carry)))
        if made.tree != flat.tree:
            raise DTypeError(
                f"{name}: the body got {flat.tree} to carry and gave {made.tree}; they must be "
                "the same containers"
            )
        update = [carried(name, x) for x in made.leaves]
        if known or all(x.dtype is b.dtype for x, b in zip(update, begun, strict=True)):
            break
        begun = [
            b if isinstance(x, Element) else constant(x, u.dtype)
            for x, b, u in zip(flat.leaves, begun, update, strict=True)
        ]
        known = True
    for x, c in zip(update, loop.carry, strict=True):
        if x.dtype is not c.dtype:
            raise DTypeError(
                f"{name}: the body got a {c.dtype.name} to carry and gave a {x.dtype.name}; they "
                "must be the same, so cast with astype(), or begin with what it gives"
            )
    loop.finish(tuple(update))
    return rebuilt(flat, loop.results)


def _bound(name: str, value: object, what: str) -> Bound:
    if not isinstance(value, Element):
        if isinstance(value, Tensor):
            raise ArgumentTypeError(
                f"{name}: {what} is an int or a number of the function, not a tensor"
            )
        return integer(name, value, what)
    if not value.dtype.is_integer:
        raise DTypeError(
            f"{name}: {what} is an integer, not {value.dtype.name}; a count that is known before "
            "is a keyword-only parameter"
        )
    return fitted(value, int64)


def carried(name: str, x: object) -> Element:
    """What a function gives or a loop carries. Raises: DTypeError for what is no number."""
    if isinstance(x, Element):
        return x
    if isinstance(x, PYTHON_NUMBERS):  # of the dtype that a tensor of it has
        return constant(x, _default_of(x))
    raise DTypeError(f"{name}: carries numbers, in containers, not {shown(x)}")


def _default_of(x: complex) -> DType:
    if isinstance(x, (bool, int)):
        return bool_ if isinstance(x, bool) else int64
    wide = datatypes.default_dtype is float64
    if isinstance(x, complex):
        return complex128 if wide else complex64
    return float64 if wide else float32


class Forms:
    """What loops and branches are while a function of numbers is traced."""

    fori_loop = staticmethod(fori_loop)

    def refuse(self, name: str) -> NoReturn:
        """Raises: CaptureError for a form that kernels do not have."""
        way = "loop a fixed number of rounds with dt.fori_loop, and choose with dt.where"
        _only_numbers(f"{name} is asked for, and whether a round follows depends on values", way)
