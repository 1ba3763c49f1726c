"""Writers of products, sorts, searches, running sums and convolutions.

Each writer adds operators to the graph, and returns the name of their result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import dovetail as dt
from dovetail.extend import GraphNode

from .writer import GraphWriter, UnsupportedOpError, register_node_writer

W: TypeAlias = GraphWriter
N: TypeAlias = GraphNode
MATMUL_DTYPES = (
    dt.float16,
    dt.bfloat16,
    dt.float32,
    dt.float64,
    dt.int32,
    dt.int64,
    dt.uint32,
    dt.uint64,
)


@register_node_writer("matmul")
def _write_matmul(w: W, n: N) -> str:
    """Write MatMul; short integers compute in 32 bits. Raises: UnsupportedOpError for complex."""
    d = n.casts[0]
    if d.kind == "c":
        raise UnsupportedOpError("ONNX has no operators on complex numbers")
    if d in MATMUL_DTYPES:
        return w.add("MatMul", w.args(n))
    wide = dt.int32 if d.kind == "i" else dt.uint32
    product = w.add("MatMul", [w.cast(a, d, wide) for a in w.args(n)])
    return w.cast(product, wide, d)


def _widen(d: dt.DType) -> dt.DType:
    """Return a dtype of 32 or 64 bits for a real one; it has all values except those of uint64."""
    if d in (dt.float32, dt.float64, dt.int32, dt.int64):
        return d
    return dt.float32 if d.kind == "f" else dt.int64


def _require_sortable(d: dt.DType) -> None:
    """Raise UnsupportedOpError for uint64, which not all runtimes sort with TopK."""
    if d is dt.uint64:
        raise UnsupportedOpError("ONNX runtimes do not all sort uint64 with TopK")


def _write_top_k(w: W, n: N, which: int) -> str:
    """Write TopK of rows; return the name of values (0) or indices (1); uint64 is unsupported."""
    a = n.args[0]
    assert isinstance(a, GraphNode)
    d = n.casts[0]
    _require_sortable(d)
    wide = d if d is dt.float16 else _widen(d)
    x = w.cast(w.arg(n, 0), d, wide)
    outputs = w.add_node("TopK", [x, w.sizes([a.shape[-1]])], 2, largest=int(n.attrs.descending))
    return w.cast(outputs[0], wide, n.dtype) if which == 0 else outputs[1]


@register_node_writer("sort")
def _write_sort(w: W, n: N) -> str:
    """Write the values of TopK. Raises: UnsupportedOpError for uint64."""
    return _write_top_k(w, n, 0)


@register_node_writer("argsort")
def _write_argsort(w: W, n: N) -> str:
    """Write the indices of TopK. Raises: UnsupportedOpError for uint64."""
    return _write_top_k(w, n, 1)


@register_node_writer("searchsorted")
def _write_searchsorted(w: W, n: N) -> str:
    """Write the count of elements before each value. Raises: UnsupportedOpError with a sorter."""
    if len(n.args) != 2:
        raise UnsupportedOpError("ONNX has no search with a sorter")
    rows, v = w.args(n)
    column = w.add("Unsqueeze", [v, w.ints([-1])])
    op = "Less" if n.attrs == "left" else "LessOrEqual"
    before = w.cast(w.add(op, [rows, column]), dt.bool, dt.int64)
    return w.reduce("ReduceSum", before, [len(n.shape)], False)


@register_node_writer("cumulative_sum")
def _write_cumulative_sum(w: W, n: N) -> str:
    """Write CumSum, computed in 32 or 64 bits, after a zero if wanted."""
    axis, initial, _ = n.attrs
    x, d = w.arg(n, 0), n.casts[0]
    wide = _widen(d)
    sums = w.add("CumSum", [w.cast(x, d, wide), w.number(axis, dt.int64)])
    if initial:
        sums = _write_prepend(w, n, sums, axis, w.number(0, wide))
    return w.cast(sums, wide, n.dtype)


def _write_prepend(w: W, n: N, running: str, axis: int, first: str) -> str:
    """Write the initial value before a running value."""
    shape = [1 if d == axis else m for d, m in enumerate(n.shape)]
    return w.add("Concat", [w.add("Expand", [first, w.sizes(shape)]), running], axis=axis)


def _write_scan(
    w: W, n: N, inputs: list[str], axis: int, first: float, d: dt.DType, op: str
) -> str:
    """Write a running value by Scan, with the body of `_BODIES` for `op`."""
    a = n.args[0]
    assert isinstance(a, GraphNode)
    helper, shape = w.onnx.helper, [m for k, m in enumerate(a.shape) if k != axis]

    def info(name: str) -> object:
        """Return a tensor declaration of the loop body."""
        return helper.make_tensor_value_info(name, w.element(d), [None] * len(shape))

    state_and_inputs = ["state", *[f"x{k}" for k in range(len(inputs))]]
    nodes = _BODIES[op](helper, w.element(d))
    body = helper.make_graph(
        [*nodes, helper.make_node("Identity", ["next"], ["out"])],
        w.name("body"),
        [info(g) for g in state_and_inputs],
        [info("next"), info("out")],
    )
    start = w.add("Expand", [w.number(first, d), w.sizes(shape)]) if shape else w.number(first, d)
    outputs = w.add_node(
        "Scan",
        [start, *inputs],
        2,
        body=body,
        num_scan_inputs=len(inputs),
        scan_input_axes=[axis] * len(inputs),
        scan_output_axes=[axis],
    )
    return outputs[1]


_BODIES: dict[str, Callable[[Any, int], list[Any]]] = {
    "product": lambda h, _: [h.make_node("Mul", ["state", "x0"], ["next"])],
    "line": lambda h, _: [
        h.make_node("Mul", ["state", "x0"], ["grown"]),
        h.make_node("Add", ["grown", "x1"], ["next"]),
    ],
    "logaddexp": lambda h, element: [
        h.make_node("Constant", [], ["zero"], value=h.make_tensor("zero", element, [], [0])),
        h.make_node("Equal", ["state", "x0"], ["equal"]),  # also two infinities
        h.make_node("Sub", ["state", "x0"], ["difference"]),
        h.make_node("Where", ["equal", "zero", "difference"], ["gap"]),
        h.make_node("Abs", ["gap"], ["distance"]),
        h.make_node("Neg", ["distance"], ["below"]),
        h.make_node("Softplus", ["below"], ["more"]),
        h.make_node("Max", ["state", "x0"], ["top"]),
        h.make_node("Add", ["top", "more"], ["next"]),
    ],
}


@register_node_writer("cumulative_prod")
def _write_cumulative_prod(w: W, n: N) -> str:
    """Write a running product by Scan, after a one if wanted."""
    axis, initial, _ = n.attrs
    d = n.casts[0]
    products = _write_scan(w, n, [w.arg(n, 0)], axis, 1, d, "product")
    if initial:
        products = _write_prepend(w, n, products, axis, w.number(1, d))
    return w.cast(products, d, n.dtype)


@register_node_writer("recurrence")
def _write_recurrence(w: W, n: N) -> str:
    """Write a linear recurrence by Scan. Raises: UnsupportedOpError for its gradient."""
    axis, lag = n.attrs
    if lag:
        raise UnsupportedOpError("ONNX has no operators for the gradient of a recurrence")
    return _write_scan(w, n, w.args(n), axis, 0, n.casts[0], "line")


@register_node_writer("cumulative_logsumexp")
def _write_cumulative_logsumexp(w: W, n: N) -> str:
    """Write the running logsumexp by Scan. Raises: UnsupportedOpError with an initial value."""
    axis, initial, _ = n.attrs
    if initial:
        raise UnsupportedOpError("ONNX has no running logsumexp with an initial value")
    d = n.casts[0]
    sums = _write_scan(w, n, [w.arg(n, 0)], axis, -math.inf, d, "logaddexp")
    return w.cast(sums, d, n.dtype)


@register_node_writer("select")
def _write_select(w: W, n: N) -> str:
    """Write an element of each sorted row, by TopK. Raises: UnsupportedOpError for uint64."""
    a, _, rank = n.args
    assert isinstance(a, GraphNode)
    d = n.casts[0]
    _require_sortable(d)
    wide = _widen(d)
    x = w.cast(w.arg(n, 0), d, wide)
    ordered = w.add_node("TopK", [x, w.sizes([a.shape[-1]])], 2, largest=0)[0]
    i = w.arg(n, 2, dt.int64) if isinstance(rank, GraphNode) else w.ints([int(rank)])
    picked = w.add("Gather", [ordered, w.add("Reshape", [i, w.ints([-1])])], axis=-1)
    return w.reshape(w.cast(picked, wide, n.dtype), n.shape)


@register_node_writer("random_uniform32", "random_uniform64")
def _refuse_random(w: W, n: N) -> str:
    """Raise UnsupportedOpError."""
    raise UnsupportedOpError("ONNX has no reproducible random numbers")


# --- convolutions: (x, w), (x, w, bias); attrs: stride, zeros before, dilation, groups ------------


def _tap_spans(n: N, rank: int) -> tuple[list[int], list[int]]:
    """Return spans and counts of taps along each axis. Raises: UnsupportedOpError for integers."""
    w = n.args[1]
    assert isinstance(w, GraphNode)
    if n.dtype.kind != "f" or len(w.shape) != rank or len(n.shape) != rank:
        raise UnsupportedOpError(
            "ONNX has no convolutions of integers, or with different filters for each example"
        )
    taps = list(w.shape[2:])
    return [d * (k - 1) + 1 for d, k in zip(n.attrs.dilation, taps, strict=True)], taps


def _conv_attributes(n: N, taps: list[int], ends: list[int]) -> dict[str, Any]:
    """Return the attributes of Conv and ConvTranspose, with `ends` as the padding after."""
    g = n.attrs
    return {
        "strides": list(g.stride),
        "dilations": list(g.dilation),
        "group": int(g.groups),
        "kernel_shape": taps,
        "pads": [*g.low, *ends],
    }


@register_node_writer("convolution")
def _write_convolution(w: W, n: N) -> str:
    """Write Conv, with the padding at the end that the result's shape needs."""
    x = n.args[0]
    assert isinstance(x, GraphNode)
    spans, taps = _tap_spans(n, len(x.shape))
    ends = [
        max(0, (m - 1) * s + span - size - low)
        for m, s, span, size, low in zip(
            n.shape[2:], n.attrs.stride, spans, x.shape[2:], n.attrs.low, strict=True
        )
    ]
    return w.add("Conv", w.args(n), **_conv_attributes(n, taps, ends))


@register_node_writer("convolution_input")
def _write_convolution_input(w: W, n: N) -> str:
    """Write the gradient by the input of a convolution: a transposed convolution of (y, w)."""
    y = n.args[0]
    assert isinstance(y, GraphNode)
    spans, taps = _tap_spans(n, len(y.shape))
    excess = [
        (m - 1) * s + span - low - size
        for m, s, span, low, size in zip(
            y.shape[2:], n.attrs.stride, spans, n.attrs.low, n.shape[2:], strict=True
        )
    ]
    output_padding = [max(0, -v) for v in excess]
    geometry = _conv_attributes(n, taps, [max(0, v) for v in excess])
    return w.add("ConvTranspose", w.args(n), output_padding=output_padding, **geometry)
