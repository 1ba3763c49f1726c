"""The text of tensors as PyTorch prints it: `tensor([[1., 2.]], grad_fn=<MulBackward0>)`."""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt

PRECISION, EDGE_ITEMS, THRESHOLD, LINE_WIDTH = 4, 3, 1000, 80
SHOWN_DTYPES = ("float32", "int64", "bool")  # whose values say their dtype


class _Format:
    """The format of all numbers of a tensor: integers, fixed point or scientific."""

    def __init__(self, values: list[Any], kind: str) -> None:
        self.kind, self.is_integral, self.is_scientific = kind, True, False
        measured = values
        if kind == "f":
            measured = [v for v in values if math.isfinite(v) and v != 0]
            low, high = (f(map(abs, measured), default=1.0) for f in (min, max))
            self.is_integral = all(v == math.ceil(v) for v in measured)
            too_small = not self.is_integral and low < 1e-4
            self.is_scientific = high / low > 1000.0 or high > 1e8 or too_small
        self.width = max((len(self.number(v)) for v in measured), default=1)

    def number(self, v: Any) -> str:
        """Return the text of one number, without padding."""
        if self.kind != "f":
            return str(v)
        if self.is_scientific:
            return f"{v:.{PRECISION}e}"
        if self.is_integral:
            return f"{v:.0f}." if math.isfinite(v) else str(v)
        return f"{v:.{PRECISION}f}"

    def __call__(self, v: Any) -> str:
        return self.number(v).rjust(self.width)


class _ComplexFormat:
    """The format of complex numbers: one of the real parts and one of the imaginary parts."""

    def __init__(self, values: list[complex]) -> None:
        self.real = _Format([v.real for v in values], "f")
        self.imag = _Format([v.imag for v in values], "f")
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, v: complex) -> str:
        sign = "" if v.imag < 0 else "+"
        return f"{self.real(v.real)}{sign}{self.imag.number(v.imag)}j"


def _flatten(values: Any) -> list[Any]:
    """Return the numbers of nested lists, without the dots."""
    if isinstance(values, list):
        return [v for part in values if part is not ... for v in _flatten(part)]
    return [values]


def _read_corners(x: dt.Tensor, summarize: bool) -> Any:
    """Return nested lists of the values; `...` stands for the middle of a long axis."""
    if x.ndim == 0 or not summarize:
        return x.tolist()
    n = x.shape[0]
    if n <= 2 * EDGE_ITEMS:
        return [_read_corners(x[i], summarize) for i in range(n)]
    first = [_read_corners(x[i], summarize) for i in range(EDGE_ITEMS)]
    last = [_read_corners(x[i], summarize) for i in range(n - EDGE_ITEMS, n)]
    return [*first, ..., *last]


def _join(values: Any, axes: int, indent: int, show: Any) -> str:
    """Return the text of nested lists, in lines of at most 80 characters."""
    if axes == 0:
        return str(show(values))
    if axes == 1:
        texts = [" ..." if v is ... else show(v) for v in values]
        width = show.width + 2
        per_line = max(1, (LINE_WIDTH - indent) // width)
        lines = [texts[i : i + per_line] for i in range(0, len(texts), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(", ".join(line) for line in lines) + "]"
    rows = ["..." if v is ... else _join(v, axes - 1, indent + 1, show) for v in values]
    return "[" + ("," + "\n" * (axes - 1) + " " * (indent + 1)).join(rows) + "]"


def show_tensor(x: dt.Tensor) -> str:
    """Return the text of a tensor, as `repr` of PyTorch does."""
    start = "Parameter containing:\n" if isinstance(x, dt.nn.Parameter) else ""
    suffixes = []
    if x.device != dt.default_device():
        suffixes.append(f"device='{x.device}'")
    kind, name = x.dtype.kind, x.dtype.name
    is_shown = name in SHOWN_DTYPES if x.size else name == "float32"
    if x.size == 0:
        body = "[]"
        if x.ndim != 1:
            suffixes.append(f"size={tuple(x.shape)}")
    else:
        values = _read_corners(x.detach(), x.size > THRESHOLD)
        numbers = _flatten(values)
        show = _ComplexFormat(numbers) if kind == "c" else _Format(numbers, kind)
        body = _join(values, x.ndim, len("tensor("), show)
    if not is_shown and name != "complex64":
        suffixes.append(f"dtype=torch.{name}")
    if x.requires_grad:
        node = x.grad_fn
        suffixes.append("requires_grad=True" if node is None else f"grad_fn=<{_node_name(node)}>")
    text = f"tensor({body}"
    for suffix in suffixes:
        last = len(text) - text.rfind("\n") - 1
        separator = ",\n       " if last + len(suffix) + 2 > LINE_WIDTH else ", "
        text += separator + suffix
    return start + text + ")"


def _node_name(node: Any) -> str:
    """Return the name of a tape node in PyTorch's form: "multiply" is "MultiplyBackward0"."""
    return "".join(part.capitalize() for part in str(node.name).split("_")) + "Backward0"
