"""Short floats are computed with as float32, and rounded once at the end."""

from __future__ import annotations

from typing import TypeAlias

import dovetail as dt

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor


def is_short(x: Tensor) -> bool:
    """Whether it is float16 or bfloat16."""
    return x.dtype.itemsize == 2 and x.dtype.kind == "f"


def wide(x: Tensor) -> Tensor:
    """The same, as float32 where it is float16 or bfloat16."""
    return x.astype(dt.float32) if is_short(x) else x


def wide_or_none(x: Tensor | None) -> Tensor | None:
    """The same of a tensor that may not be there."""
    return None if x is None else wide(x)


def narrow(y: Tensor, x: Tensor) -> Tensor:
    """`y` in the dtype of `x`."""
    return y if y.dtype is x.dtype else y.astype(x.dtype)


def tensors(op: str, *given: object) -> None:
    """Raises: DTypeError for what is no tensor."""
    for x in given:
        if not isinstance(x, dt.Tensor):
            raise dt.DTypeError(f"{op}: needs a tensor, not a {type(x).__name__}; see dt.asarray")


def floats(op: str, *given: Tensor) -> None:
    """Raises: DTypeError for what is no tensor of floats."""
    tensors(op, *given)
    for x in given:
        if x.dtype.kind != "f":
            raise dt.DTypeError(
                f"{op}: takes floats, not {x.dtype.name}{list(x.shape)}; see x.astype(dt.float32)"
            )


def one_dtype(op: str, x: Tensor, **given: Tensor | None) -> None:
    """Raises: DTypeError where weights have another dtype than the input."""
    for name, w in given.items():
        if w is not None and w.dtype is not x.dtype:
            raise other_dtype(op, x, name, w)


def one_dtype_or_wide(op: str, x: Tensor, **given: Tensor | None) -> None:
    """The same, but weights of float32 are fine beside float16 and bfloat16."""
    for name, w in given.items():
        if w is None or w.dtype is x.dtype or (w.dtype is dt.float32 and is_short(x)):
            continue
        raise other_dtype(op, x, name, w)


def other_dtype(op: str, x: Tensor, name: str, w: Tensor, what: str = "input") -> dt.DTypeError:
    """The error of an input and a weight whose dtypes differ."""
    model = f", or model.to(dt.{x.dtype.name})" if x.dtype.kind in "fc" else ""
    return dt.DTypeError(
        f"{op}: {what} is {x.dtype.name}, {name} {w.dtype.name}: use x.astype(dt.{w.dtype.name})"
        f"{model}"
    )
