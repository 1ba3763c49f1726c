"""The notebook page of a tensor: a line of facts, its values, an image, and its memory.

One piece of HTML without a script, in the colours of the page around it. It reads no more values
than `repr` does, and elides the same ones. A tensor without values of its own (while a function is
captured, or one of many examples) has the line alone.
"""

from __future__ import annotations

from base64 import b64encode
from html import escape
from itertools import product
from math import prod
from struct import pack
from zlib import compress, crc32

import numpy as np

from ..engine import tracer_api
from ..errors import TransformError
from ..tensor.c_fields import is_strided
from ..tensor.host import evaluate_leaf, printable_values
from ..tensor.print_options import current_options
from ..tensor.printing import texts
from ..tensor.tensor import Tensor, parts_of
from .show import show
from .svg_boxes import EDGES, collapsible, frame

__all__: list[str] = []

IMAGE_AXIS_MIN = (
    8  # a matrix of so many rows and columns is drawn; the table suffices for a smaller one
)
IMAGE_PIXELS_MAX = (
    512  # of an image, along either axis; beyond, every second, third, ... one is drawn
)
IMAGE_WIDTH_MIN = 256  # pixels: the width of smaller images on the page
STORAGE_CELLS_MAX = (
    64  # a storage of at most so many cells is drawn even if the tensor is dense in it
)
VECTOR_ELEMENTS_MAX = 20  # a vector of more elements is folded into lines of half of that
MATRICES_MAX = 36  # matrices shown of a tensor of more than two dimensions

# The style of this piece alone; if a page removes styles, plain tables remain.
STYLE = (
    "<style>"
    ".dt-t table{border-collapse:collapse;margin:0;font:inherit;border:0}"
    ".dt-t tr,.dt-t tr:hover{background:transparent!important}"
    f".dt-t td{{border:{EDGES};padding:2px 7px;text-align:right;white-space:pre}}"
    ".dt-t td.o{border:0;text-align:center}.dt-t td.n{border:0;opacity:.6}"
    "</style>"
)
ELLIPSIS_CELL = '<td class="o">&hellip;</td>'


def html(x: Tensor) -> str:
    """Render a tensor as HTML for `_repr_html_`; evaluate it if its values can be read."""
    why = unreadable_reason(x)
    if why:
        return frame(_render_facts(x, why))
    if not is_strided(x):
        return frame(_render_facts(x, ""))
    evaluate_leaf(x)
    side = '<div style="display:flex;flex-wrap:wrap;gap:12px;align-items:flex-start">'
    return frame(
        f"{_render_facts(x, '')}{side}{_render_image(x)}{_render_values(x)}</div>"
        f"{_render_gradient(x)}{_render_memory(x)}"
    )


def unreadable_reason(x: Tensor) -> str:
    """Return the reason why a tensor's values cannot be read here, or ""."""
    if tracer_api.is_captured():
        return "its values are not known while dt.jit captures a function"
    try:
        tracer_api.refuse_read("a notebook shows a tensor", *parts_of(x))
    except TransformError:
        return "one of many examples: it has no values of its own"
    return ""


def _render_facts(x: Tensor, why: str) -> str:
    """Return an HTML line of facts: dtype, shape, device, layout, odd strides, gradient, `why`."""
    facts = [str(x.shape), f"on {x.device}", x.layout.name]
    if is_strided(x) and not why and not x.is_contiguous():
        facts.append(f"strides {x.stride()}")
    if x.requires_grad:
        op = x._expr.tape.name if is_strided(x) and x._expr.tape.edges else ""
        facts.append(f"gradient flows through {op}" if op else "requires_grad")
    text = " &middot; ".join(map(escape, facts + [why] * bool(why)))
    return f'<div style="margin:0 0 4px"><b>{escape(x.dtype.name)}</b> {text}</div>'


# --- values ---------------------------------------------------------------------------------------


def _render_values(x: Tensor) -> str:
    """Render values as HTML: a single one as text, else at most MATRICES_MAX tables."""
    if not x.size or not x.ndim:
        return f"<div>{escape(str(texts(x))) if x.size else 'no elements'}</div>"
    tables = _render_vector(x) if x.ndim == 1 else "".join(_render_matrices(x))
    return (
        f'{STYLE}<div class="dt-t" style="max-height:360px;max-width:100%;overflow:auto;'
        f'display:flex;flex-wrap:wrap;gap:8px 14px;align-items:flex-start">{tables}</div>'
    )


def _find_elided_axes(x: Tensor) -> list[bool]:
    """Return for each axis True if its middle is left out."""
    chosen = current_options()
    return [x.size > chosen["threshold"] and n > 2 * chosen["edgeitems"] for n in x.shape]


def _render_matrices(x: Tensor) -> list[str]:
    """Render at most MATRICES_MAX tables of the last two axes, and the number of further ones."""
    cells, (*leading, down, across) = texts(x), _find_elided_axes(x)
    shown_indices = (
        _list_shown_indices(n, gap) for n, gap in zip(x.shape[:-2], leading, strict=True)
    )
    pairs = zip(product(*shown_indices), cells.reshape(-1, *cells.shape[-2:]), strict=True)
    tables = [
        f"<div>{_render_caption(at)}{_render_table(m, down, across)}</div>" for at, m in pairs
    ][:MATRICES_MAX]
    more = prod(x.shape[:-2]) - len(tables)
    return tables + [f"<div>&hellip; and {more} more</div>"] * bool(more)


def _list_shown_indices(n: int, gap: bool) -> list[int]:
    """Return the indices of an axis that are shown: both ends for a `gap`, else all."""
    edge = current_options()["edgeitems"]
    return [*range(edge), *range(n - edge, n)] if gap else [*range(n)]


def _render_caption(at: tuple[int, ...]) -> str:
    """Render the leading indices of a matrix as its heading; "" for none."""
    return f'<div style="opacity:.7">[{", ".join(map(str, at))}]</div>' if at else ""


def _render_table(matrix: np.ndarray, row_gap: bool, column_gap: bool) -> str:
    """Render texts as an HTML table; a gap adds dots between the first and the last ones."""
    rows, edge = [], current_options()["edgeitems"]
    for r, row in enumerate(matrix):
        if row_gap and r == edge:
            rows.append(f"<tr>{ELLIPSIS_CELL * (len(row) + column_gap)}</tr>")
        cells = [f"<td>{_escape_cell(text)}</td>" for text in row]
        if column_gap:
            cells.insert(edge, ELLIPSIS_CELL)
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def _render_vector(x: Tensor) -> str:
    """Render a vector as a row; a long one in lines that begin with their index."""
    cells, line_length = texts(x), VECTOR_ELEMENTS_MAX // 2
    gap = _find_elided_axes(x)[0]
    if gap or len(cells) <= VECTOR_ELEMENTS_MAX:
        return _render_table(cells[None], False, gap)
    rows = []
    for start in range(0, len(cells), line_length):
        row = "".join(
            f"<td>{_escape_cell(text)}</td>" for text in cells[start : start + line_length]
        )
        rows.append(f'<tr><td class="n">{start}</td>{row}</tr>')
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def _escape_cell(text: object) -> str:
    """Return a value's text, escaped, without leading spaces."""
    return escape(str(text).lstrip())  # trailing spaces align the decimal points


# --- images ---------------------------------------------------------------------------------------


def _render_image(x: Tensor) -> str:
    """Render a matrix in grey, (h, w, 3) or (3, h, w) in colours; "" for others and small ones."""
    x = x[0] if x.ndim == 3 and x.shape[0] == 1 else x  # grey as PyTorch has it: (1, h, w)
    coloured, channels_first = x.ndim == 3 and _can_hold_colours(x), False
    if coloured and x.shape[2] != 3:
        channels_first, x = x.shape[0] == 3, x.permute_dims((1, 2, 0))
        coloured = channels_first
    if not (coloured or x.ndim == 2) or min(x.shape[:2]) < IMAGE_AXIS_MIN or x.dtype.kind == "c":
        return ""
    step = -(-max(x.shape[:2]) // IMAGE_PIXELS_MAX)
    values = printable_values(x if step == 1 else x[::step, ::step])
    if channels_first and not _are_color_values(values):
        return ""
    pixels, caption = _to_pixels(values, coloured)
    caption += ", channels first" if channels_first else ""
    caption += f"; one row and column of {step}" if step > 1 else ""
    return f'<div>{_render_image_tag(pixels)}<div style="opacity:.7">{escape(caption)}</div></div>'


def _render_image_tag(pixels: np.ndarray) -> str:
    """Return an HTML image tag with the pixels as an embedded PNG."""
    height, width = pixels.shape[:2]
    size = (
        f"width:{IMAGE_WIDTH_MIN}px;image-rendering:pixelated"
        if width < IMAGE_WIDTH_MIN
        else f"width:{width}px"
    )
    return (
        f'<img alt="{height} x {width} pixels" style="{size};max-width:100%;border:{EDGES};'
        f'display:block" src="data:image/png;base64,{b64encode(png(pixels)).decode()}">'
    )


def _can_hold_colours(x: Tensor) -> bool:
    """Return True if the dtype can hold colours: uint8 or floats."""
    return x.dtype.name == "uint8" or x.dtype.kind == "f"


def _are_color_values(values: np.ndarray) -> bool:
    """Return True if values can be colours: bytes, or from 0 to 1.

    Three feature maps seldom are.
    """
    return values.dtype == np.uint8 or bool(np.all((values >= 0) & (values <= 1)))


def _to_pixels(values: np.ndarray, coloured: bool) -> tuple[np.ndarray, str]:
    """Return uint8 pixels and their legend; values that are not finite become red."""
    if values.dtype == np.uint8:
        return values, "colours" if coloured else "0 is black, 255 white"
    if values.dtype == np.bool_:
        return values.astype(np.uint8) * 255, "False is black, True white"
    wide = values.astype(np.float64)
    finite = np.isfinite(wide)
    low, high = (0.0, 1.0) if coloured else _find_range(wide[finite])
    legend = "colours from 0 to 1" if coloured else f"black is {low:.4g}, white {high:.4g}"
    pixels = _scale_to_bytes(wide, low, high)
    if finite.all():
        return pixels, legend if low < high else f"each is {low:.4g}"
    if not finite.any():
        legend = "none is a finite number"
    else:
        legend = (legend if low < high else f"black is {low:.4g}") + "; red is no finite number"
    return _mark_nonfinite(pixels, finite), legend


def _scale_to_bytes(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Scale values linearly to uint8, from 0 for `low` to 255 for `high`, clipped.

    Halves are computed, because their range never overflows.
    """
    with np.errstate(all="ignore"):
        parts = (values / 2 - low / 2) / ((high / 2 - low / 2) or 1.0)
    return np.round(np.clip(np.nan_to_num(parts), 0, 1) * 255).astype(np.uint8)


def _mark_nonfinite(pixels: np.ndarray, finite: np.ndarray) -> np.ndarray:
    """Return pixels in colours, red where not finite; colour pixels change in place."""
    if pixels.ndim == 2:
        pixels, finite = np.repeat(pixels[:, :, None], 3, 2), finite[:, :, None]
    pixels[~finite.all(2)] = (220, 40, 40)
    return pixels


def _find_range(finite: np.ndarray) -> tuple[float, float]:
    """Return the least and the largest value, or zeros for no values."""
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def png(pixels: np.ndarray) -> bytes:
    """Encode uint8 pixels as a PNG file: (h, w) are grey, (h, w, 3) colours (RFC 2083)."""
    height, width = pixels.shape[:2]
    kind, step = (2, 3) if pixels.ndim == 3 else (0, 1)
    rows = np.ascontiguousarray(pixels).reshape(height, -1)
    filtered = np.ones((height, rows.shape[1] + 1), np.uint8)  # "Sub": less what is left of it
    filtered[:, 1:] = rows
    filtered[:, 1 + step :] -= rows[:, :-step]
    head = _encode_png_chunk(b"IHDR", pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0))
    body = _encode_png_chunk(b"IDAT", compress(filtered.tobytes(), 6))
    return b"\x89PNG\r\n\x1a\n" + head + body + _encode_png_chunk(b"IEND", b"")


def _encode_png_chunk(name: bytes, data: bytes) -> bytes:
    """Encode one chunk of a PNG file, with length and checksum."""
    return pack(">I", len(data)) + name + data + pack(">I", crc32(name + data))


# --- gradient -------------------------------------------------------------------------------------


def _render_gradient(x: Tensor) -> str:
    """Render the accumulated gradient of a tensor, folded; "" if there is none."""
    grad = x.grad if x.requires_grad else None
    return "" if grad is None else collapsible("gradient", html(grad))


# --- memory ---------------------------------------------------------------------------------------


def _render_memory(x: Tensor) -> str:
    """Render the picture of `dt.show`, folded, for few cells and for views; "" for others."""
    if not x.size or not x.ndim:
        return ""
    cells = x.storage().nbytes // x.itemsize
    if cells > STORAGE_CELLS_MAX and x.is_contiguous() and x.size == cells:
        return ""
    return (
        '<details style="margin-top:4px"><summary style="cursor:pointer">memory: strides '
        f"{x.stride()}, offset {x.storage_offset()}, {cells} cell{'s' * (cells != 1)}</summary>"
        f"{show(x).html()}</details>"
    )
