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
