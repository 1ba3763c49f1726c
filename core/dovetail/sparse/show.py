"""Representations of sparse tensors: text, HTML, and an SVG picture of the pattern."""

from __future__ import annotations

import math
from contextlib import suppress
from html import escape
from typing import Any

import numpy as np

import dovetail as dt
from dovetail.extend import arguments

from .blocks import BSR
from .compressed_rules import as_coo
from .tensor import COO, Entries, required_sparse
from .view_rules import fully_sparse

SHOWN_ENTRIES_MAX = 8
PICTURE_CELLS_MAX = 100  # along the longer side


def summary_line(x: Entries) -> str:
    """Return shape, number of entries, density, dtype and device as one line."""
    dims, order = _dims_and_order(x)
    return (
        f"shape={x.shape}{dims}, nnz={x.nnz} ({_format_density(x)}){order}, dtype={x.dtype.name}, "
        f'device="{x.device}"'
    )


def _dims_and_order(x: Entries) -> tuple[str, str]:
    """Return text about sparse dimensions or block size, and about missing order, or "" each."""
    if isinstance(x, BSR):
        return f", blocksize={x.blocksize}", ""
    if not isinstance(x, COO):
        return "", ""
    dims = f", sparse_dim={x.sparse_dim()}" if x.dense_dim() else ""
    return dims, "" if x.is_coalesced() else ", not coalesced"


def _format_density(x: Entries) -> str:
    """Return the density as text, in percent."""
    return f"{x.density * 100:.3g} %"


def represent(x: Entries) -> str:
    """Return `repr(x)`: the first and last entries, then the line of `summary_line`."""
    lines = [f"  {at} -> {value}" for at, value in _format_entries(as_coo(x))]
    if x.nnz > SHOWN_ENTRIES_MAX:
        lines.insert(SHOWN_ENTRIES_MAX // 2, "  ...")
    return "\n".join([f"{x.layout.name}_tensor(", *lines, f"  {summary_line(x)})"])


def _format_entries(x: COO) -> list[tuple[str, str]]:
    """Return the position and value of the first and last entries, as text."""
    half, n = SHOWN_ENTRIES_MAX // 2, x.nnz
    slices = [slice(0, n)] if n <= SHOWN_ENTRIES_MAX else [slice(0, half), slice(n - half, n)]
    entries: list[tuple[str, str]] = []
    for part in slices:
        values = x.values()[part].detach()
        values = values.astype(dt.float32) if x.dtype is dt.bfloat16 else values
        at = [row[part].tolist() for row in x.pattern.coords]
        shown = [_format_value(v) for v in values.numpy()]
        positions = zip(*at, strict=True) if at else [()] * len(shown)
        entries += [(str(tuple(p)), v) for p, v in zip(positions, shown, strict=True)]
    return entries


def _format_value(v: Any) -> str:
    """Return an entry's value as short text: a number, or a dense block."""
    if np.ndim(v) == 0:
        return f"{v:.6g}" if np.asarray(v).dtype.kind == "f" else str(v)
    return np.array2string(np.asarray(v), precision=4, threshold=6, edgeitems=2, separator=", ")


def html(x: Entries) -> str:
    """Return HTML for notebooks: the facts, and a picture if there are two dimensions or more."""
    line = dt.Tensor._repr_html_(x)
    summary = f"nse {x.nnz}, density {_format_density(x)}{''.join(_dims_and_order(x))}"
    picture = ""
    if x.ndim > 1 and x.size:
        with suppress(dt.CaptureError, dt.TransformError):  # a captured tensor has no positions yet
            picture = spy(x)
    small = "font-size:12px;margin:0 0 4px"
    return f'<div>{line}<div style="{small}"><code>{escape(summary)}</code></div>{picture}</div>'


def spy(x: Entries, cells: int = PICTURE_CELLS_MAX) -> str:
    """Draw the pattern of the last two dimensions as SVG text: darker cells have more entries.

    - `cells`: the largest number of cells along the longer side; each covers a part of the matrix.

    Matrices of the dimensions before the last two are drawn on top of each other.
    Shapes: of at least 2 dimensions.
    Dtypes: all.
    Raises: ShapeError below 2 dimensions, LayoutError if x is not sparse, ArgumentError.

    >>> import dovetail as dt
    >>> x = dt.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> dt.sparse.spy(x)[:4]
    '<svg'
    """
    if required_sparse("spy", x).ndim < 2:
        raise dt.ShapeError(f"spy: expected at least 2 dimensions, got shape {x.shape}")
    counts = _count_cells(
        fully_sparse(as_coo(x)), arguments.integer("spy", cells, "cells", 1, 10_000)
    )
    height, width = counts.shape
    scale = 400 / max(height, width)
    top = max(int(counts.max()) if counts.size else 0, 1)
    marks = [
        f'<rect x="{c}" y="{r}" width="1" height="1" '
        f'fill-opacity="{0.25 + 0.75 * math.sqrt(counts[r, c] / top):.2f}"/>'
        for r, c in zip(*np.nonzero(counts), strict=True)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * scale:.0f}" '
        f'height="{height * scale:.0f}" viewBox="0 0 {width} {height}">'
        f"<title>{escape(summary_line(x))}</title>"
        f'<rect width="{width}" height="{height}" fill="none" stroke="#888" '
        f'stroke-width="{1 / scale:.3f}"/>'
        f'<g fill="#2563eb">{"".join(marks)}</g></svg>'
    )


def _count_cells(x: COO, cells: int) -> np.ndarray[Any, Any]:
    """Return the number of entries in each cell of the picture, counted on the device."""
    n, m = x.shape[-2:]
    step = max(-(-max(n, m) // cells), 1)
    height, width = max(-(-n // step), 1), max(-(-m // step), 1)
    if not x.nnz:
        return np.zeros((height, width), np.int64)
    *_, row, column = x.pattern.coords
    at = (row // step) * width + column // step
    ones = dt.ones_like(at)
    grid = dt.sparse_coo_tensor(
        dt.reshape(at, (1, x.nnz)), ones, (height * width,), check_invariants=False
    )
    return grid.to_dense().numpy().reshape(height, width)
