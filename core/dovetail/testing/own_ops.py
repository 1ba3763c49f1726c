"""The checks of `dovetail test-op`: the rules for an op of a user's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ..autograd.check import gradcheck, gradgradcheck
from ..autograd.engine import detach, grad, requires_grad_
from ..capture.jit import jit
from ..device_class import Device, device
from ..dtypes import ALL, DType, complex128, float32, float64
from ..errors import ArgumentError, CaptureError, DovetailError, DTypeError, GradientError
from ..frontend.elementwise_op import Elementwise
from ..functions.creation.from_values import asarray
from ..functions.elementwise.op_functions import multiply
from ..functions.products.matrix_products import vendor_products
from ..plugins.registry import devices
from ..settings import eager
from ..tensor.tensor import Tensor
from .cases import LAYOUTS, Arrangement
from .kit import REFERENCE, differences, host
from .values import Array

OpCall: TypeAlias = (
    "tuple[tuple[Any, ...], Mapping[str, Any]]"  # operands, and what is given by name
)
GRADCHECK_ELEMENTS_MAX = 400  # elements of an example of which gradients are checked by differences
FLOAT32_ERROR_MAX = (
    1e-2  # how far a result in float32 may be from that in float64, relative to the largest
)
ARRANGEMENTS = {  # arrangements of an operand's memory that keep its values
    name: LAYOUTS[name][0] for name in ("contiguous", "transposed", "flipped", "spaced")
}
OPERAND_KINDS = {
    "f": "f",
    "i": "biu",
    "u": "biu",
    "b": "b",
    "c": "c",
}  # what stands for an operand of one


@dataclass
class CheckOutcome:
    """The outcome of a check: "passed", "failed", or "none" if the op has nothing to check."""

    name: str
    state: str
    comparisons: int
    seconds: float
    message: str = ""


@dataclass
class OpSubject:
    """An op, and calls of it on the host: arrays and numbers."""

    op: Callable[..., Any]
    name: str
    calls: Sequence[OpCall]
    devices: Sequence[Device]
    comparisons: int = 0
    is_elementwise: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_elementwise = isinstance(self.op, Elementwise)

    # --- calling

    def put(
        self, call: OpCall, on: Device, d: DType | None = None, place: Arrangement | None = None
    ) -> tuple[list[Any], Mapping[str, Any]]:
        """Copy operands to tensors on `on`: floats as `d`, each in memory arranged by `place`."""
        args, options = call
        return [_put_operand(a, on, d, place) for a in args], options

    def results(self, args: Sequence[Any], options: Mapping[str, Any]) -> list[Tensor]:
        """Return the results of a call. Raises: AssertionError if one is no tensor."""
        returned = self.op(*args, **options)
        every = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        for x in every:
            assert isinstance(x, Tensor), f"{self.name} gives a {type(x).__name__}, no tensor"
        return every

    def reference_results(self, call: OpCall, d: DType | None = None) -> list[Tensor]:
        """Return the results of a plain call on the reference."""
        return self.results(*self.put(call, device(REFERENCE), d))

    def require_same_bits(
        self, actual: Sequence[Tensor], wanted: Sequence[Tensor], what: str
    ) -> None:
        """Fail unless all bits are equal; any NaN is as good as another."""
        assert len(actual) == len(wanted), f"{what}: {len(actual)} results, not {len(wanted)}"
        for k, (x, y) in enumerate(zip(actual, wanted, strict=True)):
            which = f"{what}, result {k}" if len(actual) > 1 else what
            self.comparisons += 1
            assert x.dtype is y.dtype, f"{which}: {x.dtype.name}, not {y.dtype.name}"
            assert x.shape == y.shape, f"{which}: shape {x.shape}, not {y.shape}"
            a, b = host(x), host(y)
            wrong = differences(a, b, x.dtype)
            if wrong.size:
                at = wrong[:3]
                shown = f"{a.reshape(-1)[at]} instead of {b.reshape(-1)[at]}"
                raise AssertionError(
                    f"{which}: {wrong.size} of {a.size} differ; at {at.tolist()}: {shown}"
                )

    def dtypes(self) -> Iterator[DType]:
        """Yield the dtypes in which examples may be given, by the kind of their arrays."""
        kinds = {a.dtype.kind for args, _ in self.calls for a in args if isinstance(a, np.ndarray)}
        wanted = {k for kind in kinds for k in OPERAND_KINDS.get(kind, "")}
        return (d for d in ALL if d.kind in wanted | ({"i", "f"} if "f" in wanted else set()))

    def accepts_dtype(self, call: OpCall, d: DType) -> bool:
        """Return True if the op takes a dtype; it refuses others with a DTypeError."""
        try:
            self.reference_results(call, d)
        except DTypeError:
            return False
        return True


def _put_operand(a: Any, on: Device, d: DType | None, place: Arrangement | None) -> Any:
    """Copy an array to a tensor on `on`, arranged by `place`; return other objects unchanged."""
    if not isinstance(a, np.ndarray):
        return a
    own = asarray(a, device=REFERENCE).dtype
    wanted = own if d is None or (d.kind != own.kind and own.kind != "f") else d
    x = asarray(a, dtype=wanted, device=on)
    if place is None:
        return x
    return place(host(x), wanted, on)


# --- examples ------------------------------------------------------------------------------------


def calls_of(op: Any, name: str) -> list[OpCall]:
    """Return the op's examples, as arrays; generate some for an elementwise function.

    Raises: ArgumentError where there are none.
    """
    examples = getattr(op, "examples", None)
    examples = examples() if callable(examples) else examples
    if examples is None and isinstance(op, Elementwise):
        return _generate_operands(op)
    if not examples:
        raise ArgumentError(
            f"{name} has no examples; give it some, as in examples=[(x, y, 3)], lists of "
            "operands, or a function that makes them"
        )
    return [_parse_example(example) for example in examples]


def _parse_example(example: Any) -> OpCall:
    """Return an example as positional operands on the host, and options from a dict at its end."""
    args = list(example) if isinstance(example, (tuple, list)) else [example]
    options = args.pop() if args and isinstance(args[-1], dict) else {}
    return tuple([_copy_to_host(a) for a in args]), options


def _copy_to_host(a: Any) -> Any:
    """Copy a tensor, array or list to a NumPy array; return other objects unchanged."""
    if isinstance(a, Tensor):
        return np.array(a.numpy())
    return np.array(a) if isinstance(a, (np.ndarray, list)) else a


def _generate_operands(op: Elementwise) -> list[OpCall]:
    """Return operands between 1/4 and 7/4, for functions with a domain, and of both signs."""
    rng = np.random.default_rng(0)
    n = len(op.operands)
    near = tuple(rng.uniform(0.25, 1.75, (3, 4)) for _ in range(n))
    return [(near, {}), (tuple(rng.normal(0, 2, (5, 7)) for _ in range(n)), {})]


# --- checks --------------------------------------------------------------------------------------


def check_values(s: OpSubject) -> None:
    """Check that calls repeat their results, also eagerly, and leave operands as they are."""
    for k, call in enumerate(s.calls):
        args, options = s.put(call, device(REFERENCE))
        before = [host(a).copy() if isinstance(a, Tensor) else a for a in args]
        first = s.results(args, options)
        s.require_same_bits(s.results(args, options), first, f"example {k}, called again")
        with eager():
            now = s.results(args, options)
        s.require_same_bits(now, first, f"example {k}, each op at once")
        for i, (a, b) in enumerate(zip(args, before, strict=True)):
            if isinstance(a, Tensor):
                wrote = differences(host(a), b, a.dtype).size
                assert not wrote, f"example {k}: {s.name} writes to its operand {i}"


def check_dtypes(s: OpSubject) -> None:
    """Check that some dtype is taken, each repeats its bits, and float32 is near float64."""
    for k, call in enumerate(s.calls):
        took = [d for d in s.dtypes() if s.accepts_dtype(call, d)]
        assert took, f"example {k}: {s.name} takes no dtype at all"
        for d in took:
            results, again = s.reference_results(call, d), s.reference_results(call, d)
            s.require_same_bits(results, again, f"example {k} in {d.name}, called again")
        if float32 in took and float64 in took:
            for x, y in zip(
                s.reference_results(call, float32), s.reference_results(call, float64), strict=True
            ):
                _require_close(x, y, f"example {k} in float32")
                assert x.dtype is not float32 or y.dtype is float64, (
                    f"example {k}: float32 operands give float32, but float64 ones {y.dtype.name}"
                )


def _require_close(x: Tensor, y: Tensor, what: str) -> None:
    """Fail unless `x` is within FLOAT32_ERROR_MAX of `y`, relative to the largest value."""
    a, b = (np.asarray(t.astype(float64) if t.dtype.kind == "f" else t) for t in (x, y))
    assert a.shape == b.shape, f"{what}: shape {a.shape}, not {b.shape} as in float64"
    if x.dtype.kind != "f" or not b.size:
        return
    fine = np.isfinite(a) & np.isfinite(b)
    scale = max(float(np.abs(b[fine]).max(initial=0.0)), 1.0)
    off = np.abs(a - b)[fine].max(initial=0.0)
    assert off <= FLOAT32_ERROR_MAX * scale, (
        f"{what}: is off by {off:.3g} from the result in float64"
    )


def check_layouts(s: OpSubject) -> None:
    """Check that results do not depend on the layout of operands in memory."""
    for k, call in enumerate(s.calls):
        wanted = s.reference_results(call)
        for on in s.devices:
            for name, place in ARRANGEMENTS.items():
                actual = s.results(*s.put(call, on, place=place))
                s.require_same_bits(actual, wanted, f"example {k}, {name}, on {on}")
        _check_repeated_rows(s, call, k)


def _check_repeated_rows(s: OpSubject, call: OpCall, k: int) -> None:
    """Check operands that repeat one row, by a stride of 0."""
    if not all(a.ndim for a in call[0] if isinstance(a, np.ndarray)):
        return
    args, options = s.put(call, device(REFERENCE), place=LAYOUTS["repeated"][0])
    dense = [
        asarray(np.array(_to_numpy(a)), dtype=a.dtype, device=REFERENCE)
        if isinstance(a, Tensor)
        else a
        for a in args
    ]
    s.require_same_bits(
        s.results(args, options), s.results(dense, options), f"example {k}, one row again and again"
    )


def _to_numpy(x: Tensor) -> Array:
    """Return a tensor's values as a NumPy array."""
    array: Array = np.asarray(x.numpy())
    return array


def check_shapes(s: OpSubject) -> None:
    """Check that operands broadcast, or are refused.

    Elementwise ops also get 0 rows, 1 row, and one element without axes.
    """
    for k, call in enumerate(s.calls):
        arrays = [i for i, a in enumerate(call[0]) if isinstance(a, np.ndarray) and a.ndim]
        shapes = {call[0][i].shape for i in arrays}
        alike = len(shapes) == 1 and all(x.shape in shapes for x in s.reference_results(call))
        if not (s.is_elementwise or alike) or not arrays:
            continue
        for i in arrays if len(arrays) > 1 else ():
            _check_broadcast(s, call, i, call[0][i][:1], k)
            if s.is_elementwise:
                _check_broadcast(s, call, i, _first_element(call[0][i]), k)
        if s.is_elementwise:
            some = tuple(_first_element(a) if isinstance(a, np.ndarray) else a for a in call[0])
            want = [x[(0,) * x.ndim] for x in s.reference_results(call)]
            s.require_same_bits(
                s.reference_results((some, call[1])), want, f"example {k}, its first element"
            )
            for cut in ((slice(0, 0),), (slice(0, 1),)):
                some = tuple(a[cut] if isinstance(a, np.ndarray) and a.ndim else a for a in call[0])
                actual = s.reference_results((some, call[1]))
                want = [x[cut] for x in s.reference_results(call)]
                s.require_same_bits(actual, want, f"example {k}, its first {cut[0].stop} rows")


def _first_element(a: Array) -> Array:
    """Return the first element of an array as a 0-d array."""
    first: Array = a.reshape(-1)[:1].reshape(())
    return first


def _check_broadcast(s: OpSubject, call: OpCall, i: int, small: Array, example: int) -> None:
    """Compare `small` as operand `i` with itself broadcast; only ops not elementwise may refuse.

    `example`: the number of the example, for messages.
    """
    wide = np.ascontiguousarray(np.broadcast_to(small, call[0][i].shape))
    wanted = s.reference_results(((*call[0][:i], wide, *call[0][i + 1 :]), call[1]))
    try:
        actual = s.reference_results(((*call[0][:i], small, *call[0][i + 1 :]), call[1]))
    except DovetailError:
        assert not s.is_elementwise, f"example {example}: operand {i} does not broadcast"
        return
    s.require_same_bits(actual, wanted, f"example {example}, operand {i} of shape {small.shape}")


def check_devices(s: OpSubject) -> None:
    """Check that every device gives the reference's bits, in every dtype that both take."""
    for k, call in enumerate(s.calls):
        for d in s.dtypes():
            if not s.accepts_dtype(call, d):
                continue
            wanted = s.reference_results(call, d)
            for on in s.devices:
                if _has_dtype(on, d):
                    actual = s.results(*s.put(call, on, d))
                    s.require_same_bits(actual, wanted, f"example {k} in {d.name} on {on}")


def _has_dtype(on: Device, d: DType) -> bool:
    """Return True if a device can hold a tensor of a dtype."""
    try:
        asarray([0], dtype=d, device=on)
    except DovetailError:
        return False
    return True


def check_neighbours(s: OpSubject) -> None:
    """Check that bits are the same beside pending work, and `out=` of elementwise ops."""
    for k, call in enumerate(s.calls):
        for on in s.devices:
            args, options = s.put(call, on)
            wanted = [_consume(x) for x in s.results(args, options)]
            pending = [
                multiply(a, 1) if isinstance(a, Tensor) and a.dtype.kind != "b" else a for a in args
            ]
            actual = [_consume(x) for x in s.results(pending, options)]
            s.require_same_bits(actual, wanted, f"example {k} on {on}, of pending operands")
        if s.is_elementwise and len(wanted) == 1:
            args, options = s.put(call, device(REFERENCE))
            (plain,) = s.results(args, options)
            out = multiply(plain, 0) if plain.dtype.kind != "b" else plain.copy()
            s.op(*args, **options, out=out)
            s.require_same_bits([out], [plain], f"example {k}, out=")


def _consume(x: Tensor) -> Tensor:
    """Multiply by 1, or return a bool tensor unchanged, so that another op reads the result."""
    return multiply(x, 1) if x.dtype.kind != "b" else x


def check_captured(s: OpSubject) -> None:
    """Check that `dt.jit` of it gives the same bits, also for other values."""
    for k, call in enumerate(s.calls):
        for on in s.devices:
            captured = jit(
                lambda args, options=call[1]: tuple(s.results(args, options)), fullgraph=True
            )
            for turn in range(3):
                args, options = s.put(call, on)
                args = [_shift(a, turn) if isinstance(a, Tensor) else a for a in args]
                wanted = s.results(args, options)
                what = f"example {k} on {on}, captured, call {turn}"
                try:
                    actual = list(captured(args))
                except CaptureError as error:
                    raise AssertionError(f"{what}: {error}") from error
                s.require_same_bits(actual, wanted, what)


def _shift(x: Tensor, by: int) -> Tensor:
    """Return the values rolled by `by` positions, in flat order."""
    values = _to_numpy(x).reshape(-1)
    return asarray(np.roll(values, by).reshape(x.shape), dtype=x.dtype, device=x.device)


# --- gradients -----------------------------------------------------------------------------------


class NoGradient(Exception):
    """The op has no gradient, and says so."""


def _gradient_examples(s: OpSubject) -> Iterator[tuple[int, list[Any], Mapping[str, Any]]]:
    """Yield examples in float64 that require gradients. Raises: NoGradient if there is none."""
    there = False
    for k, call in enumerate(s.calls):
        size = sum(a.size for a in call[0] if isinstance(a, np.ndarray))
        args, options = s.put(call, device(REFERENCE), float64)
        args = [
            requires_grad_(a) if isinstance(a, Tensor) and a.dtype in (float64, complex128) else a
            for a in args
        ]
        leaves = s.results(args, options)
        if size <= GRADCHECK_ELEMENTS_MAX and any(x.requires_grad for x in leaves):
            there = True
            yield k, args, options
    if not there:
        floats = any(x.dtype.kind in "fc" for x in s.reference_results(s.calls[0]))
        raise NoGradient("no gradient flows" if floats else "its results are no floats")


def _check_gradients_with(s: OpSubject, check: Callable[..., object]) -> None:
    """Run a gradient check on each example in float64; count the comparisons.

    Raises: NoGradient if the op has no gradient, AssertionError for another error.
    """
    for k, args, options in _gradient_examples(s):
        try:
            check(lambda *a, options=options: tuple(s.results(a, options)), args)
        except GradientError as error:
            if "has no gradient" in str(error):
                raise NoGradient(str(error)) from error
            raise AssertionError(f"example {k}: {error}") from error
        except DovetailError as error:
            raise AssertionError(f"example {k}: {error}") from error
        s.comparisons += 1


def check_gradient(s: OpSubject) -> None:
    """Check that gradients agree with differences. Raises: NoGradient if none flows."""
    _check_gradients_with(s, gradcheck)


def check_gradients_of_gradients(s: OpSubject) -> None:
    """Check that second derivatives agree with differences. Raises: NoGradient if none flows."""
    _check_gradients_with(s, gradgradcheck)


def check_gradient_bits(s: OpSubject) -> None:
    """Check that gradients have the reference's bits on all devices.

    Raises: NoGradient if none flows.
    """
    there = False
    for k, call in enumerate(s.calls):
        for d in s.dtypes():
            if d.kind != "f" or not s.accepts_dtype(call, d):
                continue
            wanted = _compute_gradients(s, call, device(REFERENCE), d)
            there = there or bool(wanted)
            for on in s.devices:
                if _has_dtype(on, d):
                    actual = _compute_gradients(s, call, on, d)
                    s.require_same_bits(
                        actual, wanted, f"example {k}: gradients in {d.name} on {on}"
                    )
    if not there:
        raise NoGradient("no gradient flows")


def _compute_gradients(s: OpSubject, call: OpCall, on: Device, d: DType) -> list[Tensor]:
    """Return gradients of the results' sums by float operands; [] if none, or complex results."""
    args, options = s.put(call, on, d)
    args = [
        requires_grad_(detach(a)) if isinstance(a, Tensor) and a.dtype.kind in "fc" else a
        for a in args
    ]
    outs = [x for x in s.results(args, options) if x.requires_grad]
    wanted = [a for a in args if isinstance(a, Tensor) and a.requires_grad]
    if not outs or any(x.dtype.kind == "c" for x in outs):
        return []
    try:
        grads = grad(
            [x.astype(float64).sum() if _has_dtype(on, float64) else x.sum() for x in outs],
            wanted,
            allow_unused=True,
        )
    except GradientError as error:
        if "has no gradient" in str(error):
            return []
        raise AssertionError(str(error)) from error
    except DovetailError as error:
        raise AssertionError(str(error)) from error
    return [g for g in grads if g is not None]


CHECKS: dict[str, Callable[[OpSubject], None]] = {
    "values": check_values,
    "dtypes": check_dtypes,
    "layouts": check_layouts,
    "shapes": check_shapes,
    "devices": check_devices,
    "neighbours": check_neighbours,
    "captured": check_captured,
    "gradient": check_gradient,
    "gradients of gradients": check_gradients_of_gradients,
    "gradient bits": check_gradient_bits,
}


# --- running -------------------------------------------------------------------------------------


def load_op_subject(op: Any, name: str, device_names: Sequence[str] = ()) -> OpSubject:
    """Return an op under test, on these devices, or on all that there are.

    Raises: ArgumentError for what cannot be called, or has no examples; DeviceError.
    """
    if not callable(op):
        raise ArgumentError(f"{name} is a {type(op).__name__}, and nothing to be called")
    every = (
        [device(n) for n in device_names]
        if device_names
        else [d for d in devices() if str(d) != REFERENCE]
    )
    return OpSubject(op, name, calls_of(op, name), [device(REFERENCE), *every])


def run_checks(s: OpSubject, name_part: str = "") -> Iterator[CheckOutcome]:
    """Run each check whose name contains `name_part`, and yield its outcome."""
    for name, check in CHECKS.items():
        if name_part not in name:
            continue
        before, begun = s.comparisons, time.perf_counter()
        state, message = "passed", ""
        try:
            with vendor_products(False):  # no vendor's routine, which has an order of its own
                check(s)
        except NoGradient as why:
            state, message = "none", str(why)
        except AssertionError as error:
            state, message = "failed", str(error)
        except Exception as error:
            state, message = "failed", f"{type(error).__name__}: {error}"
        yield CheckOutcome(
            name, state, s.comparisons - before, time.perf_counter() - begun, message
        )
