"""The text of tensors: `tensor([[1., 2.]], dtype=float32, device="cpu")`.

Of a large tensor only the corners are copied to the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from .host import evaluated, item, shown
from .primitives import slice_along
from .print_options import options
from .tensor import Tensor


def _corners(x: Tensor, edge: int, axis: int = 0) -> np.ndarray:
    """Return the first and last items of each long axis, and one in between for the dots."""
    if axis == x.ndim:
        return shown(x)
    n = x.shape[axis]
    if n <= 2 * edge + 1:
        return _corners(x, edge, axis + 1)
    low, high = (
        _corners(slice_along(x, axis, s, k), edge, axis + 1)
        for s, k in ((0, edge + 1), (n - edge, edge))
    )
    return np.concatenate([low, high], axis)


def _text(x: Tensor, prefix: str) -> str:
    chosen = options()
    large = x.size > chosen["threshold"]
    evaluated(x)  # once, not for each corner
    values = _corners(x, chosen["edgeitems"]) if large else shown(x)
    return _as_text(
        values,
        chosen,
        max_line_width=chosen["linewidth"],
        separator=", ",
        prefix=prefix,
        threshold=0 if large else max(values.size, 1),
        edgeitems=chosen["edgeitems"],
    )


def _as_text(values: np.ndarray, chosen: Mapping[str, Any], **how: Any) -> str:
    """Return NumPy's text of values, with the chosen options; None is NumPy's own option."""
    how["precision"] = chosen["precision"]
    how["suppress_small"] = True if chosen["sci_mode"] is False else chosen["suppress"]
    how |= {k: chosen[k] for k in ("sign", "floatmode", "formatter") if chosen[k] is not None}
    if chosen["sci_mode"]:
        how["formatter"] = {
            "float_kind": partial(_with_exponent, chosen),
            **how.get("formatter", {}),
        }
    named = {k: chosen[k] for k in ("nanstr", "infstr") if chosen[k] is not None}
    if not named:
        return np.array2string(values, **how)
    with np.printoptions(
        **named, formatter=np.get_printoptions()["formatter"]
    ):  # else the formatter is lost
        return np.array2string(values, **how)


def _with_exponent(chosen: Mapping[str, Any], value: Any) -> str:
    if np.isfinite(value):
        return f"{value:{chosen['sign'] or '-'}.{chosen['precision']}e}"
    return str(value)


def texts(x: Tensor) -> np.ndarray:
    """Return the formatted elements of `repr(x)`, without elided regions."""
    chosen = options()
    evaluated(x)
    if x.size <= chosen["threshold"]:
        values = shown(x)
    else:
        values = _without_middles(_corners(x, chosen["edgeitems"]), x, chosen["edgeitems"])
    mark = "\x1f"  # in no number's text
    line = _as_text(
        values.reshape(-1),
        chosen,
        max_line_width=1 << 60,
        separator=mark,
        threshold=values.size + 1,
    )
    return np.asarray(line[1:-1].split(mark)).reshape(values.shape)


def _without_middles(corners: np.ndarray, x: Tensor, edge: int) -> np.ndarray:
    """Return the corners without the items in place of the dots."""
    for axis, n in enumerate(x.shape):
        if n > 2 * edge:
            corners = np.delete(corners, slice(edge, corners.shape[axis] - edge), axis)
    return corners


def represent(x: Tensor) -> str:
    """Return `repr(x)`: values, shape if the values do not show it, dtype and device."""
    facts = [f"dtype={x.dtype.name}", f'device="{x.device}"']
    if x.size == 0:
        return f"tensor([], shape={x.shape}, {', '.join(facts)})"
    chosen = options()
    if x.size > chosen["threshold"]:
        facts.insert(0, f"shape={x.shape}")
    text = f"tensor({_text(x, 'tensor(')}"
    joint = (
        ", "
        if len(text.rsplit("\n", 1)[-1]) + len(", ".join(facts)) + 3 <= chosen["linewidth"]
        else ",\n       "
    )
    return f"{text}{joint}{', '.join(facts)})"


def text(x: Tensor) -> str:
    """Return `str(x)`: the values alone."""
    return _text(x, "") if x.size else "[]"


def formatted(x: Tensor, spec: str) -> str:
    """Return `format(x, spec)`; one element is formatted as a number."""
    return format(item(x), spec) if spec and x.size == 1 else text(x)


def in_notebook(x: Tensor) -> str:
    """Return the HTML view of a tensor for notebooks; docs/storage.md describes it."""
    html: str = import_module("..insight.notebook", __package__).html(x)
    return html
