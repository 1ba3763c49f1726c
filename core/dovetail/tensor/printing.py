"""The text of tensors: `tensor([[1., 2.]], dtype=float32, device="cpu")`.

Of a large tensor only the corners are copied to the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from ..declarations import public
from .host import evaluate_leaf, printable_values
from .primitives import slice_along
from .print_options import current_options
from .tensor import Tensor


def _copy_corners(x: Tensor, edge: int, axis: int = 0) -> np.ndarray:
    """Copy the first and last items of each long axis to the host, with one extra for the dots."""
    if axis == x.ndim:
        return printable_values(x)
    n = x.shape[axis]
    if n <= 2 * edge + 1:
        return _copy_corners(x, edge, axis + 1)
    low, high = (
        _copy_corners(slice_along(x, axis, s, k), edge, axis + 1)
        for s, k in ((0, edge + 1), (n - edge, edge))
    )
    return np.concatenate([low, high], axis)


def _format_values(x: Tensor, prefix: str) -> str:
    """Evaluate the tensor; return its values as text, without dtype and device."""
    chosen = current_options()
    large = x.size > chosen["threshold"]
    evaluate_leaf(x)  # once, not for each corner
    values = _copy_corners(x, chosen["edgeitems"]) if large else printable_values(x)
    return _format_array(
        values,
        chosen,
        max_line_width=chosen["linewidth"],
        separator=", ",
        prefix=prefix,
        threshold=0 if large else max(values.size, 1),
        edgeitems=chosen["edgeitems"],
    )


def _format_array(values: np.ndarray, print_options: Mapping[str, Any], **how: Any) -> str:
    """Format host values by NumPy with the chosen options; None keeps NumPy's own option."""
    how["precision"] = print_options["precision"]
    how["suppress_small"] = (
        True if print_options["sci_mode"] is False else print_options["suppress"]
    )
    how |= {
        k: print_options[k]
        for k in ("sign", "floatmode", "formatter")
        if print_options[k] is not None
    }
    if print_options["sci_mode"]:
        how["formatter"] = {
            "float_kind": partial(_format_with_exponent, print_options),
            **how.get("formatter", {}),
        }
    named = {k: print_options[k] for k in ("nanstr", "infstr") if print_options[k] is not None}
    if not named:
        return np.array2string(values, **how)
    with np.printoptions(
        **named, formatter=np.get_printoptions()["formatter"]
    ):  # else the formatter is lost
        return np.array2string(values, **how)


def _format_with_exponent(chosen: Mapping[str, Any], value: Any) -> str:
    """Format a finite number in scientific notation; format others by `str`."""
    if np.isfinite(value):
        return f"{value:{chosen['sign'] or '-'}.{chosen['precision']}e}"
    return str(value)


def texts(x: Tensor) -> np.ndarray:
    """Evaluate the tensor; return its shown elements as an array of strings, without the elided."""
    chosen = current_options()
    evaluate_leaf(x)
    if x.size <= chosen["threshold"]:
        values = printable_values(x)
    else:
        values = _drop_middles(_copy_corners(x, chosen["edgeitems"]), x, chosen["edgeitems"])
    mark = "\x1f"  # in no number's text
    line = _format_array(
        values.reshape(-1),
        chosen,
        max_line_width=1 << 60,
        separator=mark,
        threshold=values.size + 1,
    )
    return np.asarray(line[1:-1].split(mark)).reshape(values.shape)


def _drop_middles(corners: np.ndarray, x: Tensor, edge: int) -> np.ndarray:
    """Delete the item that stands for the dots from each elided axis."""
    for axis, n in enumerate(x.shape):
        if n > 2 * edge:
            corners = np.delete(corners, slice(edge, corners.shape[axis] - edge), axis)
    return corners


@public(method=("__repr__",), wrap=False)
def represent(x: Tensor) -> str:
    """Return `repr(x)`: values, shape if the values do not show it, dtype, device, gradient.

    A leaf that requires a gradient has `requires_grad=True`, another tensor with a gradient the
    name of its `grad_fn`.
    """
    facts = [f"dtype={x.dtype.name}", f'device="{x.device}"']
    if x.grad_fn is not None:
        facts.append(f"grad_fn=<{x.grad_fn.name}>")
    elif x.requires_grad:
        facts.append("requires_grad=True")
    if x.size == 0:
        return f"tensor([], shape={x.shape}, {', '.join(facts)})"
    chosen = current_options()
    if x.size > chosen["threshold"]:
        facts.insert(0, f"shape={x.shape}")
    text = f"tensor({_format_values(x, 'tensor(')}"
    joint = (
        ", "
        if len(text.rsplit("\n", 1)[-1]) + len(", ".join(facts)) + 3 <= chosen["linewidth"]
        else ",\n       "
    )
    return f"{text}{joint}{', '.join(facts)})"


@public(method=("__str__",), wrap=False)
def text(x: Tensor) -> str:
    """Return `str(x)`: the values alone."""
    return _format_values(x, "") if x.size else "[]"


@public(method=("__format__",), wrap=False)
def format_value(x: Tensor, spec: str) -> str:
    """Return `format(x, spec)`: a number for one element; `spec` is ignored for others."""
    return format(printable_values(x).item(), spec) if spec and x.size == 1 else text(x)


@public(method=("_repr_html_",), wrap=False)
def format_html(x: Tensor) -> str:
    """Return the HTML view of a tensor for notebooks; docs/storage.md describes it."""
    html: str = import_module("..insight.notebook", __package__).html(x)
    return html
