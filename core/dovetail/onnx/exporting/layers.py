"""Writers of layers' functions as one operator, if an operator does exactly that.

These functions are marked by `extend.composite`. Arguments are those of PyTorch's functions of
these names. Other uses are written op by op. Each writer adds operators to the graph, and returns
the name of their result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from dovetail.extend import GraphNode

from .writer import GraphWriter

W: TypeAlias = GraphWriter
N: TypeAlias = GraphNode
LayerWriter = tuple[Callable[[W, dict[str, Any]], bool], Callable[[W, dict[str, Any]], str]]
LAYER_WRITERS: dict[str, LayerWriter] = {}


def find_layer_writer(w: W, n: N) -> LayerWriter | None:
    """Return (fits, write) of a composite that one operator computes, or None for op by op."""
    layer = LAYER_WRITERS.get(n.op) if n.kind == "composite" else None
    return layer if layer is not None and layer[0](w, n.attrs.arguments) else None


def per_axis(value: Any, dims: int) -> list[int]:
    """Return a list with a number for each of `dims` axes, from one number or a sequence."""
    return [int(v) for v in value] if isinstance(value, (tuple, list)) else [int(value)] * dims


def _is_batch(a: dict[str, Any], dims: int) -> bool:
    """Return True if the input is a node with a batch, channels and `dims` axes."""
    return isinstance(a["input"], GraphNode) and len(a["input"].shape) == dims + 2


def _input_names(w: W, a: dict[str, Any], *names: str) -> list[str]:
    """Return the value names of a layer's arguments, and "" for those that are None."""
    return [w.value(a[k]) if a.get(k) is not None else "" for k in names]


def _strip_missing(names: list[str]) -> list[str]:
    """Return the names without empty ones at the end."""
    while names and not names[-1]:
        names = names[:-1]
    return names


# --- convolutions ---------------------------------------------------------------------------------


def _conv_writer(dims: int) -> LayerWriter:
    """Return (fits, write) for a convolution over `dims` axes as Conv."""

    def fits(w: W, a: dict[str, Any]) -> bool:
        """Return True unless there is no batch, or the padding is "same"."""
        return _is_batch(a, dims) and a.get("padding", 0) != "same"

    def run(w: W, a: dict[str, Any]) -> str:
        """Write Conv."""
        pads = [0] * dims if a.get("padding") == "valid" else per_axis(a.get("padding", 0), dims)
        return w.add(
            "Conv",
            _strip_missing(_input_names(w, a, "input", "weight", "bias")),
            strides=per_axis(a.get("stride", 1), dims),
            pads=pads * 2,
            dilations=per_axis(a.get("dilation", 1), dims),
            group=int(a.get("groups", 1)),
            kernel_shape=list(a["weight"].shape[2:]),
        )

    return fits, run


def _conv_transpose_writer(dims: int) -> LayerWriter:
    """Return (fits, write) for a transposed convolution over `dims` axes as ConvTranspose."""

    def run(w: W, a: dict[str, Any]) -> str:
        """Write ConvTranspose."""
        return w.add(
            "ConvTranspose",
            _strip_missing(_input_names(w, a, "input", "weight", "bias")),
            strides=per_axis(a.get("stride", 1), dims),
            pads=per_axis(a.get("padding", 0), dims) * 2,
            dilations=per_axis(a.get("dilation", 1), dims),
            group=int(a.get("groups", 1)),
            output_padding=per_axis(a.get("output_padding", 0), dims),
            kernel_shape=list(a["weight"].shape[2:]),
        )

    return (lambda w, a: _is_batch(a, dims)), run


# --- pooling --------------------------------------------------------------------------------------


def _pool_attributes(a: dict[str, Any], dims: int) -> dict[str, list[int]]:
    """Return kernel, strides and padding of a pooling layer as attributes."""
    kernel = per_axis(a["kernel_size"], dims)
    stride = a.get("stride")
    return {
        "kernel_shape": kernel,
        "pads": per_axis(a.get("padding", 0), dims) * 2,
        "strides": kernel if stride is None or stride == () else per_axis(stride, dims),
    }


def _max_pool_writer(dims: int) -> LayerWriter:
    """Return (fits, write) for a max pooling over `dims` axes as MaxPool."""

    def fits(w: W, a: dict[str, Any]) -> bool:
        """Return True for batches of floats, without indices and `ceil_mode`."""
        plain = not a.get("return_indices") and not a.get("ceil_mode")
        return plain and _is_batch(a, dims) and a["input"].dtype.kind == "f"

    def run(w: W, a: dict[str, Any]) -> str:
        """Write MaxPool."""
        return w.add(
            "MaxPool",
            _input_names(w, a, "input"),
            dilations=per_axis(a.get("dilation", 1), dims),
            **_pool_attributes(a, dims),
        )

    return fits, run


def _average_pool_writer(dims: int) -> LayerWriter:
    """Return (fits, write) for an average pooling over `dims` axes as AveragePool."""

    def fits(w: W, a: dict[str, Any]) -> bool:
        """Return True for batches, without `divisor_override` and `ceil_mode`."""
        plain = a.get("divisor_override") is None and not a.get("ceil_mode")
        return plain and _is_batch(a, dims)

    def run(w: W, a: dict[str, Any]) -> str:
        """Write AveragePool."""
        return w.add(
            "AveragePool",
            _input_names(w, a, "input"),
            **_pool_attributes(a, dims),
            count_include_pad=int(a.get("count_include_pad", True)),
        )

    return fits, run


for _dims in (1, 2, 3):
    LAYER_WRITERS[f"conv{_dims}d"] = _conv_writer(_dims)
    LAYER_WRITERS[f"conv_transpose{_dims}d"] = _conv_transpose_writer(_dims)
    LAYER_WRITERS[f"max_pool{_dims}d"] = _max_pool_writer(_dims)
    LAYER_WRITERS[f"avg_pool{_dims}d"] = _average_pool_writer(_dims)


# --- normalisation --------------------------------------------------------------------------------


def _layer_norm_fits(w: W, a: dict[str, Any]) -> bool:
    """Return True if the layer has a weight, which LayerNormalization requires."""
    return a.get("weight") is not None and isinstance(a["input"], GraphNode)


def _write_layer_norm(w: W, a: dict[str, Any]) -> str:
    """Write a LayerNormalization node over the last axes; every exported opset has it."""
    axes = a["normalized_shape"]
    count = len(axes) if isinstance(axes, (tuple, list)) else 1
    return w.add(
        "LayerNormalization",
        _strip_missing(_input_names(w, a, "input", "weight", "bias")),
        axis=-count,
        epsilon=float(a.get("eps", 1e-5)),
    )


LAYER_WRITERS["layer_norm"] = _layer_norm_fits, _write_layer_norm
