"""Writes in place: `x[key] = v`, `x += y`, `x.add_(y)`, `out=`, `x.scatter_(...)`.

All of them call `write_tensor` with a target (a tensor, whose memory its views share), a value (a
node of exactly the target's spec, from `value_node` and `cast_to_spec`), and a mode: the value
replaces the contents, or is an op that updates them.

A value is passed in a `Box`, from which the callee pops it. A value without other references
gets no memory of its own: it is computed right into the target's memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import callbacks, settings
from .. import layout as lay
from ..argument_checks import BEYOND_FLOAT, shown
from ..device_class import Device
from ..dtypes import KIND_RANKS, DType, dtype
from ..engine import tracer_api
from ..engine.evaluate import may_write_at_once
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
    ValueOverflowError,
)
from ..graph.expr import (
    Attrs,
    Expr,
    Spec,
    has_index_checks,
    has_unresolved_check,
    mark_value_overwritten,
    node,
    spec,
    storage_of,
)
from ..graph.refcount import Box, is_sole_owner, pop
from ..identity_cache import IdentityCache
from ..layout import Move, Shape, StridedView
from ..ops import table as ops
from ..ops.table import COPY, FULL, VIEW, Op
from ..settings import flags
from .c_fields import aliases_of, become, expr_of, is_strided
from .host import from_host, number_at_hand, reachable_address
from .host_read import (
    HostMemory,
    array_over,
    copy_bytes,
    fill_numbers,
    store_number,
    store_scalar,
    update_number,
)
from .promotion import plain_number, require_untaped
from .slicing import NO_ELEMENT, element_position
from .tensor import Tensor, attach_lazy_storage, create_tensor, strided

# --- write ----------------------------------------------------------------------------------------


def write_tensor(
    name: str, x: Tensor, value: Box[Expr], is_update: bool = False, other_references: int = 0
) -> None:
    """Write `value` (emptied) into the memory of `x` for all its views, or replace a pending node.

    is_update: the value is an op that updates the memory of its first operand, which is `x`.
    other_references: this many other references to the value will read it from the target.
    """
    e = expr_of(x)
    recorder = tracer_api.current() if flags.captures else None
    if recorder is not None:
        if e.op is not None:
            recorder.evaluate_earlier(e)  # otherwise a replay would not write there
        if recorder.mask is not None and e.op is None:
            value = [node(ops.WHERE, (expr_of(recorder.mask), value[0], e), e.spec)]
            is_update, other_references = False, 0
    if e.op is not None:  # a pending value has no other views
        if not (
            (has_index_checks() or flags.has_unresolved_checks) and has_unresolved_check(value[0])
        ):
            _replace_pending(name, x, value)
            return
        e = attach_lazy_storage(x)  # the old value must survive if the write fails
    _require_writable(name, e)
    after_write = _before_write(name, x, value[0])
    try:
        if is_update:
            update_memory(value.pop(), e)
        else:
            write_memory(value, e, other_references)
    except BaseException as error:
        # dovetail's errors come before anything is written; Ctrl-C comes at any time, so values
        # that are saved for gradients count as overwritten.
        if not isinstance(error, DovetailError | MemoryError):
            mark_value_overwritten(e, name)
        raise
    mark_value_overwritten(e, name)
    if after_write is not None:
        after_write()


def _replace_pending(name: str, x: Tensor, value: Box[Expr]) -> None:
    """Give a pending tensor the node of `value`, emptying it; mark the old value as overwritten.

    A value with other owners (a leaf always has some) is copied: otherwise later writes to the
    tensor would change it for them, too.
    """
    e = x._expr
    if value[0].op is None or value[0].tape is not None or not is_sole_owner(value):
        value = [node(ops.COPY, (value[0],), value[0].spec)]
    if not settings.current().grad:
        value[0].tape = e.tape  # like a write to memory under no_grad: not recorded
    x._expr = create_tensor(value.pop())._expr
    mark_value_overwritten(e, name)


def _require_writable(name: str, e: Expr) -> None:
    """Raise ReadOnlyError for read-only memory, and for elements that share memory."""
    if storage_of(e).read_only:
        raise ReadOnlyError(f"{name}: the memory of this {e.spec!r} is read-only; use x.copy()")
    require_not_broadcast(name, e)


def require_not_broadcast(name: str, e: Expr) -> None:
    """Raise ReadOnlyError for a leaf that `is_broadcast`."""
    if is_broadcast(e):
        raise ReadOnlyError(
            f"{name}: cannot write to a broadcast view (shape {e.spec.shape}, strides "
            f"{e.strides}): several elements share memory; use x.copy()"
        )


def is_broadcast(e: Expr) -> bool:
    """Return True for a leaf that has the same elements at all positions of an axis."""
    return (
        e.op is None
        and e.strides is not e.spec.strides
        and 0 in e.strides
        and lay.has_repeated_elements(StridedView(e.spec.shape, e.strides, 0))
    )


def _before_write(name: str, x: Tensor, value: Expr) -> Callable[[], None] | None:
    """Check a write for autograd; return a function to call after it, or None if none is needed.

    Raises: GradientError if the write would break a gradient.
    """
    if value.tape is None and expr_of(x).tape is None:
        group = aliases_of(x)
        if group is None or not group.has_tape:
            return None
    return callbacks.before_write(name, x, value)


# --- targets --------------------------------------------------------------------------------------


def write_value(name: str, x: Tensor, value: object) -> None:
    """Write a tensor, number or array-like into `x`, broadcast and cast, unless it is that view.

    A pending `value` of x's spec becomes a pending copy of `x`. Raises: the errors of `copy_`.
    """
    want = expr_of(x if is_strided(x) else strided(name, x)).spec
    if is_strided(value):
        if _views_same_memory(expr_of(x), expr_of(value)):
            return  # the last step of `x[key] += ...`
        recorder = tracer_api.current() if flags.captures else None
        if recorder is not None and expr_of(value).op is not None:
            recorder.evaluate_earlier(expr_of(value))  # it must outlive the trace
        if _is_pending_as(expr_of(value), want) and (
            recorder is None or tracer_api.current_write_mask() is None
        ):
            _write_pending(name, x, value)
            return
    write_tensor(
        name, x, [cast_to_spec(name, value_node(name, value, want.dtype, want.device), want)]
    )


def write_element(x: Tensor, key: object, value: object) -> bool:
    """Write `x[key] = value` by the host if that is one number in idle memory; return True if so.

    The value is a number, also one of NumPy, or a tensor of one that is in memory. False is
    returned, and nothing is written, where anything else than tensors over the memory would see the
    write, and where the value must be checked or cast: then `write_value` writes.
    """
    if not is_strided(x):
        return False
    e = expr_of(x)
    if e.op is not None:
        return False
    position = element_position(e, key)
    if position == NO_ELEMENT:
        return False
    address = _idle_address(x)
    if address == 0:
        return False
    address += position * e.spec.itemsize
    if not is_strided(value):
        return store_scalar(e.spec.dtype.name, address, e.spec.itemsize, value)
    source = expr_of(value)
    if source.spec.dtype is not e.spec.dtype or source.spec.device is not e.spec.device:
        return False
    if source.op is FULL and len(source.spec.shape) == 0 and source.tape is None:
        return store_number(e.spec.dtype.name, address, number_at_hand(source))
    origin = _address_of_number(source)
    if origin == 0:
        return False
    copy_bytes(address, origin, e.spec.itemsize)
    return True


FILLED_MAX = 4096  # elements that the host fills faster than a kernel


def fill_elements(x: Tensor, part: Expr, value: object) -> bool:
    """Write a number by the host into all elements of `part`, a leaf in the memory of `x`.

    False is returned, and nothing is written, where `write_element` does so, for more than
    FILLED_MAX elements, and unless these are equally far apart.
    """
    if type(value) is not float and type(value) is not int:
        return False
    s = part.spec
    if s.size > FILLED_MAX:
        return False
    if part.strides is s.strides or part.strides == s.strides:
        step = 1
    elif len(s.shape) == 1 and part.strides[0] != 0:
        step = part.strides[0]
    else:
        return False
    if _idle_address(x) == 0:
        return False
    itemsize = s.itemsize
    address = reachable_address(part)
    return fill_numbers(s.dtype.name, address, value, s.size, step * itemsize, itemsize)


def editable_array(x: Tensor) -> np.ndarray | None:
    """Return an array over all elements for the host to write at once, as `fill_elements` does.

    None is returned where the host may not write now, for more than FILLED_MAX elements, and unless
    these are dense. The caller keeps no reference to the array.
    """
    e = expr_of(x)
    s = e.spec
    dtype = s.dtype.__numpy_dtype__
    if dtype is None or s.size > FILLED_MAX or e.op is not None:
        return None
    if e.strides is not s.strides and e.strides != s.strides:
        return None
    address = _idle_address(x)
    if address == 0:
        return None
    memory = HostMemory(address, s.size * s.itemsize, e.storage, True)
    return array_over(memory, s.shape, dtype, 0, None)


def update_element(op: Op, x: Tensor, other: object) -> bool:
    """Do `x op= other` by the host if `x` is one number in idle memory; return True if so.

    As in `write_element`: `other` is a number, or a tensor of one that is in memory, and False
    means that nothing was written.
    """
    e = expr_of(x)
    if len(e.spec.shape) > 0 or flags.depth == 0:  # an anomaly checker must see the result
        return False
    address = _idle_address(x)
    if address == 0:
        return False
    number = other
    if is_strided(other):
        source = expr_of(other)
        number = number_at_hand(source) if source.spec is e.spec and source.tape is None else None
    return update_number(op.name, e.spec.dtype.name, address, number)


def _idle_address(x: Tensor) -> int:
    """Return the host address of x's first element if the host may write at once, else 0.

    It may not if a gradient must notice the write, other work waits for it, or elements of `x`
    share memory.
    """
    e = expr_of(x)
    if e.op is not None or e.tape is not None or is_broadcast(e):
        return 0
    group = aliases_of(x)
    if group is not None and group.has_tape:
        return 0
    return reachable_address(e) if may_write_at_once(e.storage) else 0


def _address_of_number(source: Expr) -> int:
    """Return the host address of a 0-d leaf without a tape, or 0 for other nodes."""
    if source.tape is not None or len(source.spec.shape) > 0:
        return 0
    return reachable_address(source)


def _write_pending(name: str, x: Tensor, value: Tensor) -> None:
    """Write a pending value right into the memory of `x`; its tensor gets a pending copy of `x`.

    The copy is computed before the next write to the target if the tensor is alive then.
    """
    before = expr_of(x)
    write_tensor(name, x, [expr_of(value)], False, 1)
    after, e = expr_of(x), expr_of(value)
    if e.op is not None and before is after and e.tape is None:
        copy = node(COPY, (after,), after.spec)
        become(value, copy)
        if copy.depth > flags.depth:
            create_tensor(copy)  # evaluates it


def _is_pending_as(e: Expr, want: Spec) -> bool:
    """Return True if a node is pending and has exactly this Spec."""
    return e.op is not None and e.spec is want


def _views_same_memory(a: Expr, b: Expr) -> bool:
    """Return True if two leaves view the same elements of one storage, with one Spec."""
    return (
        a.op is None
        and b.op is None
        and a.storage is b.storage
        and a.spec is b.spec
        and a.strides == b.strides
        and a.offset == b.offset
    )


def write_result(name: str, x: Tensor, result: Box[Tensor]) -> Tensor:
    """Write the result of op `name` on `x`, popped and cast if needed, into `x`; return `x`."""
    if not is_strided(x):
        strided(f"{name} in place", x)
    value = [_node_of_result(name, pop(result))]
    want = expr_of(x).spec
    if value[0].spec is not want:
        value.append(cast_to_spec(name, value.pop(), want, " in place"))
    write_tensor(name, x, value)
    return x


def require_strided_target(name: str, x: Tensor) -> None:
    """Raise LayoutError for a tensor that is not strided."""
    if not is_strided(x):
        raise LayoutError(
            f"{name} in place: a tensor of layout {x.layout.name} cannot be written in place; "
            f"use dt.{name}(), which returns a new one"
        )


def _node_of_result(name: str, result: Tensor) -> Expr:
    """Return the node of a result. Raises: LayoutError if the result is not strided."""
    if not is_strided(result):
        raise LayoutError(
            f"{name} in place: the result has the layout {result.layout.name}, and the tensor it "
            "is written into is strided; convert the operand with x.to_dense()"
        )
    return expr_of(result)


def write_out(name: str, out: Tensor, result: Tensor) -> Tensor:
    """Write a result into `out`, and return it; their shape, dtype and device must be equal.

    Raises: LayoutError for a result that is not strided, and what `require_fits_out` raises.
    """
    return write_node_out(name, out, [strided(name, result)._expr])


def write_node_out(name: str, out: Tensor, result: Box[Expr]) -> Tensor:
    """Pop a result node from its box, write it into `out`, and return `out`.

    Only the box may hold the node. Raises: what `require_fits_out` raises.
    """
    require_fits_out(name, out, result[0])
    write_tensor(name, out, result)
    return out


def require_fits_out(name: str, out: object, result: Expr) -> None:
    """Raise an error unless `out` has the spec of a result, and that has no gradient.

    Raises: DTypeError, LayoutError, ShapeError or DeviceError for `out`, GradientError.
    """
    if not isinstance(out, Tensor):
        raise DTypeError(f"{name}: out= must be a tensor, got {type(out).__name__}")
    have, want = strided(name, out)._expr.spec, result.spec
    if have is not want:
        error: type[DovetailError] = ShapeError if have.shape != want.shape else DTypeError
        if have.device is not want.device:
            error = DeviceError
        raise error(f"{name}: out= is {have!r}, but the result is {want!r}; they must be the same")
    if result.tape is not None:
        raise GradientError(f"{name}: out= cannot have a gradient; leave it out or use dt.no_grad")


# --- values ---------------------------------------------------------------------------------------


def value_node(name: str, value: object, want: DType, device: Device) -> Expr:
    """Return the node of a value to store as `want`; tensors and arrays keep their own dtype.

    The value is a tensor, a number, or an array-like of NumPy.

    Raises: DTypeError, ShapeError, ValueOverflowError.
    """
    if is_strided(value):
        return expr_of(value)
    if type(value) in _KINDS:
        return _number(name, value, want, device)  # type: ignore[arg-type]  # it is one of those
    if isinstance(value, Tensor):
        return strided(name, value)._expr
    if isinstance(value, np.generic) and value.dtype.kind not in "mM":  # else it may be an int
        value = value.item()
    if type(value) is TracedFloat:
        value = value.to_argument()
    value = plain_number(value)
    if type(value) in _KINDS:
        return _number(name, value, want, device)  # type: ignore[arg-type]  # it is one of those
    require_untaped(name, value)
    array = array_of(name, value)
    if want.kind in "iu" and not isinstance(value, np.ndarray):
        array = restore_ints(array, value)
    if array.dtype.kind == "O" and _is_of_ints(array):
        raise ValueOverflowError(f"{name}: ints must fit into int64 or uint64, got {shown(value)}")
    if array.dtype.kind not in "biufc":
        raise DTypeError(f"{name}: cannot store a {type(value).__name__}; use dt.asarray")
    if isinstance(value, np.ndarray):
        tracer_api.record_array(value)
    elif _fits(array.dtype.kind, want.kind):
        array = array.astype(want.__numpy_dtype__ or np.float32)
    return from_host(array, dtype(array.dtype), device)._expr


def _is_of_ints(array: np.ndarray) -> bool:
    """Return True if all elements of an object array are ints."""
    return all([isinstance(v, int) for v in array.flat])


def array_of(name: str, value: object) -> np.ndarray:
    """Convert lists to an array by NumPy. Raises: ShapeError for ragged lists, DTypeError."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ShapeError(
            f"{name}: nested lists must have equal lengths, got {shown(value)}; "
            "pad them to one length"
        ) from error
    except TypeError as error:
        raise DTypeError(
            f"{name}: expected an array, got {shown(value)}; use dt.asarray"
        ) from error


def restore_ints(values: np.ndarray, original: object) -> np.ndarray:
    """Return large ints that NumPy made floats as uint64, or as objects if that is too small.

    Other values are unchanged.
    """
    if values.dtype != np.float64 or not (values >= 2.0**63).any():
        return values
    whole = np.array(original, dtype=object)
    if not all([isinstance(v, (int, np.integer)) for v in whole.flat]):
        return values
    fits = all([0 <= v < 1 << 64 for v in whole.flat])
    return whole.astype(np.uint64) if fits else np.frompyfunc(int, 1, 1)(whole)


def _number(name: str, value: bool | int | float | complex, want: DType, device: Device) -> Expr:
    """Build a 0-d node; a float beyond the range becomes inf.

    Raises: DTypeError for a number of a higher kind than the dtype, ValueOverflowError for an int
    out of its range.
    """
    if not _fits(_KINDS[type(value)], want.kind):
        raise DTypeError(
            f"{name}: {shown(value)} does not fit {want.name}; cast the tensor with x.astype(dtype)"
        )
    if type(value) is int and want.kind in "iu" and not want.min <= value <= want.max:
        raise ValueOverflowError(
            f"{name}: {shown(value)} does not fit {want.name} ({want.min}..{want.max})"
        )
    if type(value) is int and not -BEYOND_FLOAT < value < BEYOND_FLOAT:
        raise ValueOverflowError(f"{name}: {shown(value)} does not fit {want.name}")
    if isinstance(value, complex):
        return full_complex(value, spec((), want, device))
    spec_and_attrs = _scalars.get(want, device)
    if spec_and_attrs is None:
        spec_and_attrs = spec((), want, device), ((want,), want)
        _scalars.put(want, device, None, spec_and_attrs)
    return node(FULL, (value,), spec_and_attrs[0], spec_and_attrs[1])


def full_complex(x: complex, s: Spec) -> Expr:
    """Return a pending node of spec `s` filled with a complex number."""
    part = s.dtype.part
    return node(ops.FULL_COMPLEX, (x.real, x.imag), s, ((part, part), s.dtype))


_KINDS: dict[type, str] = {bool: "b", int: "i", float: "f", complex: "c"}
# spec and attrs of numbers, by dtype and device
_scalars: IdentityCache[tuple[Spec, Attrs]] = IdentityCache()
_expanded: IdentityCache[Move] = IdentityCache()  # by the specs of value and target


def _fits(kind: str, target_kind: str) -> bool:
    """Return True if a cast to the target's kind loses no kind of number: b <= u, i <= f <= c."""
    return KIND_RANKS[kind] <= KIND_RANKS[target_kind]


def cast_to_spec(name: str, e: Expr, want: Spec, name_suffix: str = "") -> Expr:
    """Return `e` broadcast and cast to `want`.

    `name_suffix`: an addition to the name in messages.
    Raises: DTypeError if the kind does not fit, for example a float into an int; ShapeError if the
    shape does not broadcast; DeviceError for another device.
    """
    have = e.spec
    if have is want:
        return e
    if have.device is not want.device:
        raise DeviceError(
            f"{name}{name_suffix}: operands are on {have.device} and {want.device}; move one with "
            "x.to(device)"
        )
    if have.dtype is not want.dtype:
        if not _fits(have.dtype.kind, want.dtype.kind):
            raise DTypeError(
                f"{name}{name_suffix}: {have.dtype.name} does not fit into {want.dtype.name}; "
                "cast it with x.astype(dtype)"
            )
        e = node(ops.ASTYPE, (e,), spec(have.shape, want.dtype, have.device), want.dtype)
    if have.shape != want.shape:
        move = _expanded.get(have, want)
        if move is None:
            move = _build_expand_move(f"{name}{name_suffix}", have.shape, want.shape)
            _expanded.put(have, want, None, move)
        e = node(VIEW, (e,), want, move)
    return e


def _build_expand_move(name: str, shape: Shape, want: Shape) -> Move:
    """Return the move that broadcasts a shape to `want`. Raises: ShapeError if none does."""
    if len(shape) > len(want) or lay.broadcast_shapes(name, shape, want) != want:
        raise ShapeError(f"{name}: the value must broadcast to shape {want}, got shape {shape}")
    return "expand", want
