"""Writing in place: `x[key] = v`, `x += y`, `x.add_(y)`, `out=`, `x.scatter_(...)`.

Each of them says three things, once: the target (a tensor, whose memory its views share), the value
(made a node of exactly the target's spec by `value_node` and `to_spec`), and the mode: the value
replaces what is there, or is an op that updates it. Then there is one way, `write`.

A value is handed on in a `Holder`, which is emptied by who takes it: what nothing else refers to
gets no memory of its own, but is computed right into the target's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import callbacks, settings
from .. import layout as lay
from ..arguments import BEYOND_FLOAT, shown
from ..device_class import Device
from ..dtypes import DType, dtype
from ..engine import recording
from ..engine.evaluate import update as update_memory
from ..engine.evaluate import write as write_memory
from ..engine.traced_numbers import TracedFloat
from ..errors import (
    DeviceError,
    DovetailError,
    DTypeError,
    GradientError,
    LayoutError,
    ReadOnlyError,
    ShapeError,
    ValueOverflow,
)
from ..graph.expr import (
    Attrs,
    Expr,
    Spec,
    is_any_asked,
    may_be_bad,
    node,
    overwritten,
    spec,
    storage_of,
)
from ..graph.ownership import Holder, is_sole_owner, take
from ..layout import Move, Shape, StridedView
from ..memo import Memo
from ..ops import table as ops
from ..ops.table import COPY, FULL, VIEW
from ..settings import flags
from .fields import aliases_of, become, expr_of, is_strided
from .host import from_host
from .operands import PYTHON_NUMBERS, require_untaped
from .tensor import Tensor, lazy_storage, make, strided

# --- the one way ----------------------------------------------------------------------------------


def write(
    name: str, x: Tensor, value: Holder[Expr], updates: bool = False, others: int = 0
) -> None:
    """Makes `value` (of x's spec) the contents of `x`, as every view of the memory sees.

    Where it `updates`, it is an op that does so in the memory of its first operand, which is `x`.
    So many `others` as hold it will find it there.
    """
    e = expr_of(x)
    recorder = recording.current() if flags.captures else None
    if recorder is not None:
        if e.op is not None:
            recorder.evaluate_earlier(e)  # so that a replay writes there, too
        if recorder.mask is not None and e.op is None:
            value = [node(ops.WHERE, (expr_of(recorder.mask), value[0], e), e.spec)]
            updates, others = False, 0
    if e.op is not None:  # nobody else can see a pending value through another view
        if not ((is_any_asked() or flags.tainted) and may_be_bad(value[0])):
            _replace(name, x, value)
            return
        e = lazy_storage(x)  # what it is now must stay where the write is an error
    _require_writable(name, e)
    note = _noted(name, x, value[0])
    try:
        if updates:
            update_memory(value.pop(), e)
        else:
            write_memory(value, e, others)
    except BaseException as error:
        # Ours come before anything is written; Ctrl-C comes at any time, so values that were kept
        # for gradients count as overwritten.
        if not isinstance(error, DovetailError | MemoryError):
            overwritten(e, name)
        raise
    overwritten(e, name)
    if note is not None:
        note()


def _replace(name: str, x: Tensor, value: Holder[Expr]) -> None:
    """Has a tensor that is pending stand for another value.

    What is also someone else's (a leaf always is) must not become one with it: later writes would
    be seen by both.
    """
    e = x._expr
    if value[0].op is None or value[0].tape is not None or not is_sole_owner(value):
        value = [node(ops.COPY, (value[0],), value[0].spec)]
    if not settings.current().grad:
        value[0].tape = e.tape  # as of memory that is written: it is not recorded
    x._expr = make(value.pop())._expr
    overwritten(e, name)


def _require_writable(name: str, e: Expr) -> None:
    """Raises ReadOnlyError where a write must not happen or would have no meaning."""
    if storage_of(e).read_only:
        raise ReadOnlyError(
            f"{name}: the memory of this {e.spec!r} is read-only; write to x.copy()"
        )
    if 0 in e.strides and lay.repeats(StridedView(e.spec.shape, e.strides, 0)):
        raise ReadOnlyError(
            f"{name}: cannot write to a broadcast view (shape {e.spec.shape}, strides "
            f"{e.strides}): several elements share memory; write to x.copy()"
        )


def _noted(name: str, x: Tensor, value: Expr) -> Callable[[], None] | None:
    """What is to be called after `value` has been written into x's memory, for the gradients' sake.

    Raises: GradientError where the write would break a gradient.
    """
    if value.tape is None and expr_of(x).tape is None:
        group = aliases_of(x)
        if group is None or not group.taped:
            return None
    return callbacks.before_write(name, x, value)


# --- targets --------------------------------------------------------------------------------------


def write_value(name: str, x: Tensor, value: object) -> None:
    """Writes a tensor, a number or what NumPy understands, broadcast and cast."""
    want = expr_of(x if is_strided(x) else strided(name, x)).spec
    if is_strided(value):
        if _is_same_memory(expr_of(x), expr_of(value)):
            return  # the last act of `x[key] += ...`
        recorder = recording.current() if flags.captures else None
        if recorder is not None and expr_of(value).op is not None:
            recorder.evaluate_earlier(expr_of(value))  # it must outlive the trace
        if _is_pending(expr_of(value), want) and recording.mask() is None:
            _move(name, x, value)
            return
    write(name, x, [to_spec(name, value_node(name, value, want.dtype, want.device), want)])


def _move(name: str, x: Tensor, value: Tensor) -> None:
    """Writes what is pending right into x's memory, though its tensor holds it.

    That then stands for a copy of what is there: taken before that is written again, if anybody
    still has it.
    """
    before = expr_of(x)
    write(name, x, [expr_of(value)], False, 1)
    after, e = expr_of(x), expr_of(value)
    if e.op is not None and before is after and e.tape is None:
        become(value, expr_of(make(node(COPY, (after,), after.spec))))


def _is_pending(e: Expr, want: Spec) -> bool:
    return e.op is not None and e.spec is want


def _is_same_memory(a: Expr, b: Expr) -> bool:
    return (
        a.op is None and b.op is None and a.storage is b.storage
        and a.spec is b.spec and a.strides == b.strides and a.offset == b.offset
    )  # fmt: skip


def write_result(name: str, x: Tensor, made: Holder[Tensor]) -> Tensor:
    """Writes the result of op `name` on `x` into `x`, which is returned."""
    if not is_strided(x):
        strided(f"{name} in place", x)
    value = [_result(name, take(made))]
    want = expr_of(x).spec
    if value[0].spec is not want:
        value.append(to_spec(name, value.pop(), want, " in place"))
    write(name, x, value)
    return x


def require_written_in_place(name: str, x: Tensor) -> None:
    """Raises: LayoutError for a tensor of a layout that is not written in place."""
    if type(x) is not Tensor:
        raise LayoutError(
            f"{name} in place: a tensor of layout {x.layout.name} is not written in place; "
            f"use dt.{name}(), which returns a new one"
        )


def _result(name: str, made: Tensor) -> Expr:
    if not is_strided(made):
        raise LayoutError(
            f"{name} in place: the result has the layout {made.layout.name}, and the tensor it "
            "would be written into is strided; convert the operand with to_dense()"
        )
    return expr_of(made)


def write_out(name: str, out: Tensor, result: Tensor) -> Tensor:
    """Writes a result into `out=`, which must have exactly its shape, dtype and device."""
    return write_node_out(name, out, [strided(name, result)._expr])


def write_node_out(name: str, out: Tensor, result: Holder[Expr]) -> Tensor:
    """As `write_out`, for a result that is no tensor yet, so that nothing else holds it."""
    require_fits_out(name, out, result[0])
    write(name, out, result)
    return out


def require_fits_out(name: str, out: object, result: Expr) -> None:
    """Raises where a result cannot be written into `out`: nothing has been done then."""
    if not isinstance(out, Tensor):
        raise DTypeError(f"{name}: out= must be a tensor, not {type(out).__name__}")
    have, want = strided(name, out)._expr.spec, result.spec
    if have is not want:
        error: type[DovetailError] = ShapeError if have.shape != want.shape else DTypeError
        if have.device is not want.device:
            error = DeviceError
        raise error(f"{name}: out= is {have!r}, but the result is {want!r}; they must be the same")
    if result.tape is not None:
        raise GradientError(f"{name}: out= has no gradient; leave it out, or see dt.no_grad")


# --- values ---------------------------------------------------------------------------------------


def value_node(name: str, value: object, want: DType, device: Device) -> Expr:
    """The node of a value that is to be stored as dtype `want`.

    The value is a tensor, a number, or what NumPy understands.

    Raises: DTypeError, ShapeError, ValueOverflow.
    """
    if is_strided(value):
        return expr_of(value)
    if type(value) in _KINDS:
        return _number(name, value, want, device)  # type: ignore[arg-type]  # it is one of those
    if isinstance(value, Tensor):
        return strided(name, value)._expr
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) is TracedFloat:
        value = value.taken()
    if isinstance(value, PYTHON_NUMBERS):
        return _number(name, value, want, device)
    require_untaped(name, value)
    array = array_of(name, value)
    if want.kind in "iu" and not isinstance(value, np.ndarray):
        array = whole_numbers(array, value)
    if array.dtype.kind == "O" and _is_of_ints(array):
        raise ValueOverflow(f"{name}: an int of {shown(value)} fits neither int64 nor uint64")
    if array.dtype.kind not in "biufc":
        raise DTypeError(f"{name}: cannot store a {type(value).__name__}; see dt.asarray")
    if isinstance(value, np.ndarray):
        recording.record_array(value)
    elif _fits(array.dtype.kind, want.kind):
        array = array.astype(want.__numpy_dtype__ or np.float32)
    return from_host(array, dtype(array.dtype), device)._expr


def _is_of_ints(array: np.ndarray) -> bool:
    return all(isinstance(v, int) for v in array.flat)


def array_of(name: str, value: object) -> np.ndarray:
    """What NumPy makes of lists. Raises: ShapeError, DTypeError."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ShapeError(f"{name}: {shown(value)} is ragged; pad it to one length") from error
    except TypeError as error:
        raise DTypeError(f"{name}: {shown(value)} is no array; see dt.asarray") from error


def whole_numbers(values: np.ndarray, given: object) -> np.ndarray:
    """What NumPy made of lists; where that is floats, of ints of which some are over int64: these.

    As uint64, or as objects where they do not fit that either.
    """
    if values.dtype != np.float64 or not (values >= 2.0**63).any():
        return values
    whole = np.array(given, dtype=object)
    if not all(isinstance(v, (int, np.integer)) for v in whole.flat):
        return values
    fits = all(0 <= v < 1 << 64 for v in whole.flat)
    return whole.astype(np.uint64) if fits else np.frompyfunc(int, 1, 1)(whole)


def _number(name: str, value: bool | int | float | complex, want: DType, device: Device) -> Expr:
    """A 0-dimensional node. Raises: DTypeError, ValueOverflow."""
    if not _fits(_KINDS.get(type(value), "c"), want.kind):
        raise DTypeError(f"{name}: {shown(value)} does not fit {want.name}; cast with astype()")
    if type(value) is int and want.kind in "iu" and not want.min <= value <= want.max:
        raise ValueOverflow(
            f"{name}: {shown(value)} does not fit {want.name} ({want.min}..{want.max})"
        )
    if type(value) is int and not -BEYOND_FLOAT < value < BEYOND_FLOAT:
        raise ValueOverflow(f"{name}: {shown(value)} does not fit {want.name}")
    if isinstance(value, complex):
        return full_complex(value, spec((), want, device))
    found = _scalars.get(want, device)
    if found is None:
        found = spec((), want, device), ((want,), want)
        _scalars.put(want, device, None, found)
    return node(FULL, (value,), found[0], found[1])


def full_complex(x: complex, s: Spec) -> Expr:
    """The node of a complex number everywhere."""
    part = s.dtype.part
    return node(ops.FULL_COMPLEX, (x.real, x.imag), s, ((part, part), s.dtype))


_KINDS: dict[type, str] = {bool: "b", int: "i", float: "f", complex: "c"}
_scalars: Memo[tuple[Spec, Attrs]] = Memo()  # of numbers, by dtype and device
_expanded: Memo[Move] = Memo()  # by the spec of a value, and that wanted
_ORDER = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def _fits(kind: str, into: str) -> bool:
    return _ORDER[kind] <= _ORDER[into]


def to_spec(name: str, e: Expr, want: Spec, how: str = "") -> Expr:
    """`e` broadcast and cast to `want`, where that loses no kind of number.

    A float into an int is an error. `how` is what messages add to the name.
    """
    have = e.spec
    if have is want:
        return e
    if have.device is not want.device:
        raise DeviceError(
            f"{name}{how}: operands are on {have.device} and {want.device}; move one with "
            "x.to(device)"
        )
    if have.dtype is not want.dtype:
        order = "buifc"
        a, b = have.dtype.kind, want.dtype.kind
        if order.index(a) > order.index(b) and (a, b) != ("i", "u"):
            raise DTypeError(
                f"{name}{how}: {have.dtype.name} does not fit into {want.dtype.name}; "
                "cast it with astype()"
            )
        e = node(ops.ASTYPE, (e,), spec(have.shape, want.dtype, have.device), want.dtype)
    if have.shape != want.shape:
        move = _expanded.get(have, want)
        if move is None:
            move = _expand(f"{name}{how}", have.shape, want.shape)
            _expanded.put(have, want, None, move)
        e = node(VIEW, (e,), want, move)
    return e


def _expand(name: str, shape: Shape, want: Shape) -> Move:
    """The move from one shape to another. Raises: ShapeError."""
    if len(shape) > len(want) or lay.broadcast_shapes(name, shape, want) != want:
        raise ShapeError(f"{name}: a value of shape {shape} does not fit into shape {want}")
    return "expand", want
