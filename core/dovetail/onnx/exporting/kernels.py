"""What products, sorts, searches and running sums are written as."""

from __future__ import annotations

from typing import Any, TypeAlias

import dovetail as dt
from dovetail.extend import GraphNode

from .writer import Unknown, Writer, row

W: TypeAlias = Writer
N: TypeAlias = GraphNode
PRODUCTS = (dt.float16, dt.bfloat16, dt.float32, dt.float64, dt.int32, dt.int64, dt.uint32,
            dt.uint64)  # fmt: skip


@row("matmul")
def _matmul(w: W, n: N) -> str:
    d = n.casts[0]
    if d.kind == "c":
        raise Unknown("ONNX has no operators on complex numbers")
    if d in PRODUCTS:
        return w.add("MatMul", w.args(n))
    wide = dt.int32 if d.kind == "i" else dt.uint32
    found = w.add("MatMul", [w.cast(a, d, wide) for a in w.args(n)])
    return w.cast(found, wide, d)


def _sorted(w: W, n: N, which: int) -> str:
    a = n.args[0]
    assert isinstance(a, GraphNode)
    x, d = w.arg(n, 0), n.casts[0]
    wide = d if d in (dt.float32, dt.float64, dt.float16, dt.int32, dt.int64) else (
        dt.float32 if d.kind == "f" else dt.int64
    )  # fmt: skip
    if d is dt.uint64:
        raise Unknown("uint64 is not sorted by TopK everywhere")
    x = w.cast(x, d, wide)
    found = w.several("TopK", [x, w.sizes([a.shape[-1]])], 2, largest=int(n.attrs.descending))
    return w.cast(found[0], wide, n.dtype) if which == 0 else found[1]


@row("sort")
def _sort(w: W, n: N) -> str:
    return _sorted(w, n, 0)


@row("argsort")
def _argsort(w: W, n: N) -> str:
    return _sorted(w, n, 1)


@row("searchsorted")
def _searchsorted(w: W, n: N) -> str:
    if len(n.args) != 2:
        raise Unknown("a search with a sorter")
    rows, v = w.args(n)
    column = w.add("Unsqueeze", [v, w.ints([-1])])
    op = "Less" if n.attrs == "left" else "LessOrEqual"
    before = w.cast(w.add(op, [rows, column]), dt.bool, dt.int64)
    return w.reduced("ReduceSum", before, [len(n.shape)], False)


@row("cumulative_sum")
def _cumulative_sum(w: W, n: N) -> str:
    axis, initial, _ = n.attrs
    x, d = w.arg(n, 0), n.casts[0]
    wide = d if d in (dt.float32, dt.float64, dt.int32, dt.int64) else (
        dt.float32 if d.kind == "f" else dt.int64
    )  # fmt: skip
    found = w.add("CumSum", [w.cast(x, d, wide), w.number(axis, dt.int64)])
    if initial:
        found = _begun(w, n, found, axis, w.number(0, wide))
    return w.cast(found, wide, n.dtype)


def _begun(w: W, n: N, found: str, axis: int, first: str) -> str:
    """A running value after what it begins with."""
    shape = [1 if d == axis else m for d, m in enumerate(n.shape)]
    return w.add("Concat", [w.add("Expand", [first, w.sizes(shape)]), found], axis=axis)


def _scanned(w: W, n: N, inputs: list[str], axis: int, first: float, d: dt.DType, op: str) -> str:
    """A running value by Scan: its body is one operator, or a product and a sum."""
    a = n.args[0]
    assert isinstance(a, GraphNode)
    helper, shape = w.onnx.helper, [m for k, m in enumerate(a.shape) if k != axis]

    def said(name: str) -> object:
        return helper.make_tensor_value_info(name, w.element(d), [None] * len(shape))

    given = ["state", *[f"x{k}" for k in range(len(inputs))]]
    nodes = _BODIES[op](helper)
    body = helper.make_graph(
        [*nodes, helper.make_node("Identity", ["next"], ["out"])], w.name("body"),
        [said(g) for g in given], [said("next"), said("out")],
    )  # fmt: skip
    start = w.add("Expand", [w.number(first, d), w.sizes(shape)]) if shape else w.number(first, d)
    found = w.several(
        "Scan", [start, *inputs], 2, body=body, num_scan_inputs=len(inputs),
        scan_input_axes=[axis] * len(inputs), scan_output_axes=[axis],
    )  # fmt: skip
    return found[1]


_BODIES = {
    "product": lambda h: [h.make_node("Mul", ["state", "x0"], ["next"])],
    "line": lambda h: [
        h.make_node("Mul", ["state", "x0"], ["grown"]),
        h.make_node("Add", ["grown", "x1"], ["next"]),
    ],
}  # fmt: skip


@row("cumulative_prod")
def _cumulative_prod(w: W, n: N) -> str:
    axis, initial, _ = n.attrs
    d = n.casts[0]
    found = _scanned(w, n, [w.arg(n, 0)], axis, 1, d, "product")
    if initial:
        found = _begun(w, n, found, axis, w.number(1, d))
    return w.cast(found, d, n.dtype)


@row("recurrence")
def _recurrence(w: W, n: N) -> str:
    axis, lag = n.attrs
    if lag:
        raise Unknown("a recurrence of a gradient")
    return _scanned(w, n, w.args(n), axis, 0, n.casts[0], "line")


@row("cumulative_logsumexp")
def _cumulative_logsumexp(w: W, n: N) -> str:
    """Less the largest of each row, which is put back."""
    axis, initial, _ = n.attrs
    if initial:
        raise Unknown("a running logsumexp with what it begins with")
    d = n.casts[0]
    x = w.arg(n, 0)
    top = w.reduced("ReduceMax", x, [axis], True)
    total = w.add("CumSum", [w.add("Exp", [w.add("Sub", [x, top])]), w.number(axis, dt.int64)])
    return w.cast(w.add("Add", [w.add("Log", [total]), top]), d, n.dtype)


@row("select")
def _select(w: W, n: N) -> str:
    """The element at a rank of each row: of the row, sorted."""
    a, _, rank = n.args
    assert isinstance(a, GraphNode)
    d = n.casts[0]
    wide = d if d in (dt.float32, dt.float64, dt.int32, dt.int64) else dt.float32
    x = w.cast(w.arg(n, 0), d, wide)
    found = w.several("TopK", [x, w.sizes([a.shape[-1]])], 2, largest=0)[0]
    i = w.arg(n, 2, dt.int64) if isinstance(rank, GraphNode) else w.ints([int(rank)])
    picked = w.add("Gather", [found, w.add("Reshape", [i, w.ints([-1])])], axis=-1)
    return w.reshape(w.cast(picked, wide, n.dtype), n.shape)


@row("random_uniform32", "random_uniform64")
def _random_uniform(w: W, n: N) -> str:
    raise Unknown("random numbers, of which ONNX has no stream that is the same everywhere")


# --- convolutions: (x, w), (x, w, bias); attrs: stride, zeros before, dilation, groups ------------


def _windows(n: N, rank: int) -> tuple[list[int], list[int]]:
    """How far the taps of each axis reach, and the taps. Raises: Unknown."""
    w = n.args[1]
    assert isinstance(w, GraphNode)
    if n.dtype.kind != "f" or len(w.shape) != rank or len(n.shape) != rank:
        raise Unknown("convolutions of integers, and those with filters for each example")
    taps = list(w.shape[2:])
    return [d * (k - 1) + 1 for d, k in zip(n.attrs.dilation, taps, strict=True)], taps


def _geometry(n: N, taps: list[int], ends: list[int]) -> dict[str, Any]:
    g = n.attrs
    return {
        "strides": list(g.stride), "dilations": list(g.dilation), "group": int(g.groups),
        "kernel_shape": taps, "pads": [*g.low, *ends],
    }  # fmt: skip


@row("convolution")
def _convolution(w: W, n: N) -> str:
    x = n.args[0]
    assert isinstance(x, GraphNode)
    spans, taps = _windows(n, len(x.shape))
    ends = [
        max(0, (m - 1) * s + span - size - low)
        for m, s, span, size, low in zip(
            n.shape[2:], n.attrs.stride, spans, x.shape[2:], n.attrs.low, strict=True
        )
    ]
    return w.add("Conv", w.args(n), **_geometry(n, taps, ends))


@row("convolution_input")
def _convolution_input(w: W, n: N) -> str:
    """What gives x of (y, w): a transposed convolution."""
    y = n.args[0]
    assert isinstance(y, GraphNode)
    spans, taps = _windows(n, len(y.shape))
    over = [
        (m - 1) * s + span - low - size
        for m, s, span, low, size in zip(
            y.shape[2:], n.attrs.stride, spans, n.attrs.low, n.shape[2:], strict=True
        )
    ]
    more = [max(0, -v) for v in over]
    made = _geometry(n, taps, [max(0, v) for v in over])
    return w.add("ConvTranspose", w.args(n), output_padding=more, **made)
