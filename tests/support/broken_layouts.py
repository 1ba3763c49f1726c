"""A small honest layout, and variants with one error each. The layout kit must catch every one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import dovetail as dt
from dovetail.extend import Layout, LayoutInfo, LayoutTensor, Op, apply, hookimpl

UNARY = (
    "abs asin asinh atan atanh cbrt ceil copy erf expm1 floor isinf isnan log1p negative positive"
    " relu round sign signbit sin sinh sqrt square tan tanh trunc"
    " angle conj deg2rad erfinv frexp_exponent frexp_mantissa i1 imag rad2deg real"
)
BINARY = (
    "add subtract multiply maximum minimum not_equal less greater logical_and logical_or"
    " logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift atan2"
    " hypot copysign nextafter gcd heaviside lcm ldexp xlogy"
)
OF_ZEROS = (  # these map zero to another number
    "acos acosh cos cosh digamma erfc exp exp2 gamma i0 isfinite lgamma log log10 log2 logical_not"
    " logit ndtr ndtri reciprocal rsqrt sigmoid sinc"
)
OTHERS = (
    "beta bitwise_invert divide equal greater_equal less_equal logaddexp pow floor_divide remainder"
    " python_floor_divide where clip zeta"
)
WITH_NUMBERS = (
    "add subtract maximum minimum not_equal less greater logical_and logical_or logical_xor atan2"
    " hypot copysign nextafter divide equal floor_divide greater_equal less_equal logaddexp pow"
    " python_floor_divide remainder beta heaviside ldexp xlogy zeta"
)


class Plugin:
    """A plugin that offers one layout."""

    def __init__(self, tensor: type[Diagonal]) -> None:
        self.tensor = tensor
        self.name = tensor.__name__.lower()

    @hookimpl
    def dovetail_layout_info(self) -> LayoutInfo:
        return LayoutInfo(self.tensor.layout, from_dense=self.tensor.from_dense)

    @hookimpl
    def dovetail_conformance(self) -> Mapping[str, str]:
        return {**GAPS, **self.tensor.gaps}


GAPS = {
    **{f"apply.of_layouts.{op}-*": "dense" for op in f"{OF_ZEROS} {OTHERS}".split()},
    **{f"apply.special_values.{op}-*": "dense" for op in OF_ZEROS.split()},
    **{f"apply.with_numbers.{op}-*": "only products" for op in WITH_NUMBERS.split()},
    "apply.with_strided.*": "dense",
    "moves.views.[!pt]*": "no longer a diagonal",
    "gradients.gradients.times strided-*": "dense",
    "gradients.gradients.slice-*": "no longer a diagonal",
}  # fmt: skip


class Diagonal(LayoutTensor):
    """A square diagonal matrix that stores its diagonal."""

    __slots__ = ("values",)

    plugin: ClassVar[Plugin]
    shown_by: ClassVar[str] = ""  # part of the kit (as for pytest -k) that detects it
    sign: ClassVar[str] = "differ"  # part of the kit's message
    gaps: ClassVar[Mapping[str, str]] = {}
    layout = Layout("diagonal")
    values: dt.Tensor

    def __init_subclass__(cls) -> None:
        cls.layout = Layout(cls.__name__.lower())
        cls.plugin = Plugin(cls)
        cls.rules = cls.verbs()

    device = property(lambda self: self.values.device)  # type: ignore[assignment]  # as a property
    dtype = property(lambda self: self.values.dtype)  # type: ignore[assignment]  # as a property
    shape = property(lambda self: self.values.shape * 2)  # type: ignore[assignment]  # as a property
    parts = property(lambda self: (self.values,))  # type: ignore[assignment]  # as a property
    requires_grad = property(lambda self: self.values.requires_grad)  # type: ignore[assignment]  # as a property

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.of, (self.values,)

    @classmethod
    def of(cls, values: dt.Tensor) -> Any:
        made = object.__new__(cls)
        made.values = values
        return made

    @classmethod
    def from_dense(cls, x: dt.Tensor) -> Any:
        """Return the diagonal of a matrix with zeros elsewhere."""
        if x.ndim != 2 or x.shape[0] != x.shape[1]:
            raise dt.LayoutError(f"from_dense: {cls.layout.name} holds square matrices")
        outside = dt.where(dt.eye(x.shape[0], device=x.device) > 0, dt.zeros_like(x), x) != 0
        if dt.any(outside).item():
            raise dt.LayoutError(f"from_dense: {cls.layout.name} holds diagonals, and zeros")
        return cls.of(dt.diagonal(x) if x.requires_grad else dt.diagonal(x).copy())

    @classmethod
    def verbs(cls) -> Mapping[str, Any]:
        return {
            "apply": cls.applied, "reduce": cls.reduced, "view": cls.viewed,
            "matmul": cls.multiplied, "to_device": cls.moved, "to_dense": cls.dense,
        }  # fmt: skip

    # --- rules of the verbs

    @classmethod
    def applied(cls, op: Op, args: Sequence[Any], attrs: Any) -> Any:
        ours = [a for a in args if isinstance(a, Diagonal)]
        if op.name in ("multiply", "astype") and len(ours) == 1:
            if any(isinstance(a, dt.Tensor) and a is not ours[0] for a in args):
                raise cls.refused(op.name)
        elif op.name not in f"{UNARY} {BINARY}".split() or len(ours) < len(args):
            raise cls.refused(op.name)
        shapes = {a.shape for a in ours}
        if len(shapes) > 1:
            raise dt.ShapeError(f"{op.name}: shapes {shapes} do not broadcast")
        return cls.of(apply(op, [a.values if isinstance(a, Diagonal) else a for a in args], attrs))

    @classmethod
    def refused(cls, name: str) -> dt.LayoutError:
        return dt.LayoutError(
            f"{name}: has no meaning for the layout {cls.layout.name}; convert it with x.to_dense()"
        )

    @classmethod
    def reduced(cls, op: Op, x: Any, axes: Any, keepdims: bool, attrs: Any) -> Any:
        axis = None if len(axes) == x.ndim else axes if len(axes) > 1 else axes[0]
        return getattr(dt, op.name)(cls.dense(x), axis=axis, keepdims=keepdims)

    @classmethod
    def viewed(cls, x: Any, move: Any) -> Any:
        if move[0] == "permute":
            return x
        raise cls.refused(move[0])

    @classmethod
    def multiplied(cls, x: Any, y: Any) -> Any:
        if x.ndim < 2 or y.ndim < 2:
            return cls.dense(x) @ cls.dense(y)
        if x.shape[1] != y.shape[0]:
            raise dt.ShapeError(f"matmul: shapes {x.shape} and {y.shape} do not fit")
        if isinstance(x, Diagonal):
            if isinstance(y, Diagonal):
                return cls.of(x.values * y.values)
            return x.values.reshape(-1, 1) * y
        return x * y.values

    @classmethod
    def moved(cls, x: Any, device: Any) -> Any:
        return cls.of(x.values.to(device=device))

    @classmethod
    def dense(cls, x: Any) -> Any:
        if not isinstance(x, Diagonal):
            return x
        n = x.shape[0]
        there = dt.eye(n, device=x.device) > 0
        return dt.where(there, x.values.reshape(n, 1), dt.zeros((), dtype=x.dtype, device=x.device))


Diagonal.plugin = Plugin(Diagonal)
Diagonal.rules = Diagonal.verbs()


# --- broken variants


class WrongDtype(Diagonal):
    """Return numbers from comparisons."""

    shown_by = "layout_apply and greater"
    sign = "not dovetail.bool"

    @classmethod
    def applied(cls, op: Op, args: Sequence[Any], attrs: Any) -> Any:
        found = super().applied(op, args, attrs)
        return cls.of(found.values.astype(dt.float32)) if found.dtype is dt.bool else found


class DropsAValue(Diagonal):
    """Lose the last element in the conversion to dense."""

    shown_by = "layout_construction and round_trip"

    @classmethod
    def dense(cls, x: Any) -> Any:
        if isinstance(x, Diagonal) and x.shape[0]:
            keep = dt.arange(x.shape[0], device=x.device) < x.shape[0] - 1
            x = cls.of(dt.where(keep, x.values, dt.zeros_like(x.values)))
        return super().dense(x)


class IgnoresAnAxis(Diagonal):
    """Reduce over the first axis, whichever was requested."""

    shown_by = "layout_reduce and sum-float32"
    sign = "shape"

    @classmethod
    def reduced(cls, op: Op, x: Any, axes: Any, keepdims: bool, attrs: Any) -> Any:
        return super().reduced(op, x, axes[:1], keepdims, attrs)


class WorksElsewhere(Diagonal):
    """Run products on another device."""

    shown_by = "layout_apply and multiply-float32"
    sign = "done on"

    @classmethod
    def applied(cls, op: Op, args: Sequence[Any], attrs: Any) -> Any:
        if op.name != "multiply":
            return super().applied(op, args, attrs)
        away = "cpu" if args[0].device.type == "reference" else "reference"
        moved = [cls.moved(a, away) if isinstance(a, Diagonal) else a for a in args]
        found = super().applied(op, moved, attrs)
        dt.evaluate(found.values)
        return cls.moved(found, args[0].device)


class ReturnsDense(Diagonal):
    """Return a strided sum although its ops keep the layout."""

    shown_by = "layout_apply and add-float32"
    sign = "of layout strided"

    @classmethod
    def applied(cls, op: Op, args: Sequence[Any], attrs: Any) -> Any:
        found = super().applied(op, args, attrs)
        return cls.dense(found) if op.name == "add" else found


class SharesMemory(Diagonal):
    """Share memory with the source matrix."""

    shown_by = "layout_rules and writes"
    sign = "operands written"

    @classmethod
    def from_dense(cls, x: dt.Tensor) -> Any:
        super().from_dense(x)
        return cls.of(dt.diagonal(x))


class WrongGradient(Diagonal):
    """Drop the gradient of a product of two."""

    shown_by = "layout_gradients and two"

    @classmethod
    def applied(cls, op: Op, args: Sequence[Any], attrs: Any) -> Any:
        if op.name == "multiply" and all(isinstance(a, Diagonal) for a in args):
            args = [args[0], cls.of(args[1].values.detach())]
        return super().applied(op, args, attrs)


class BoastsOfAGap(Diagonal):
    """Declare that it has no negative, and have one."""

    shown_by = "layout_apply and of_layouts and negative"
    sign = "XPASS(strict)"
    gaps: ClassVar[Mapping[str, str]] = {"apply.of_layouts.negative-*": "no negative"}


class NamesNothing(Diagonal):
    """Raise an error without a name or a remedy."""

    shown_by = "layout_apply and of_layouts and cos-float32"
    sign = "does not begin with cos"

    @classmethod
    def refused(cls, name: str) -> dt.LayoutError:
        return dt.LayoutError("not possible")


class Leaks(Diagonal):
    """Keep every result alive."""

    shown_by = "layout_rules and memory"
    sign = "live blocks"
    kept: ClassVar[list[Any]] = []

    @classmethod
    def dense(cls, x: Any) -> Any:
        found = super().dense(x)
        cls.kept.append(found)
        return found


class WritesInPlace(Diagonal):
    """Return its own memory from `x.to_dense()`."""

    shown_by = "layout_rules and writes"
    sign = "what it gave was written"
    __slots__ = ("known",)

    @classmethod
    def dense(cls, x: Any) -> Any:
        if not isinstance(x, Diagonal):
            return x
        if not hasattr(x, "known"):
            x.known = super().dense(x)
        return x.known


BROKEN = (
    WrongDtype, DropsAValue, IgnoresAnAxis, WorksElsewhere, ReturnsDense, SharesMemory,
    WrongGradient, BoastsOfAGap, NamesNothing, Leaks, WritesInPlace,
)  # fmt: skip
