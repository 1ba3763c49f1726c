"""The text of tensors as PyTorch prints it: `tensor([[1., 2.]], grad_fn=<MulBackward0>)`."""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt

LINE_WIDTH = 80  # PyTorch's default
DEFAULT_LINE_WIDTH = 88  # the default of `dt.set_printoptions`; another value is the user's
SHOWN_DTYPES = ("float32", "int64", "bool")  # whose values say their dtype


class _Format:
    """The format of all numbers of a tensor: integers, fixed point or scientific."""

    def __init__(self, values: list[Any], kind: str, options: dict[str, Any]) -> None:
        self.kind, self.is_integral, self.is_scientific = kind, True, False
        self.precision = options["precision"]
        measured = values
        if kind == "f":
            measured = [v for v in values if math.isfinite(v) and v != 0]
            low, high = (f(map(abs, measured), default=1.0) for f in (min, max))
            self.is_integral = all(v == math.ceil(v) for v in measured)
            self.is_scientific = options["sci_mode"]
            if self.is_scientific is None or not measured:
                self.is_scientific = high / low > 1000.0 or high > 1e8 or low < 1e-4
        self.width = max((len(self.number(v)) for v in measured), default=1)

    def number(self, v: Any) -> str:
        """Return the text of one number, without padding."""
        if self.kind != "f":
            return str(v)
        if self.is_scientific:
            return f"{v:.{self.precision}e}"
        if self.is_integral:
            return f"{v:.0f}." if math.isfinite(v) else str(v)
        return f"{v:.{self.precision}f}"

    def __call__(self, v: Any) -> str:
        return self.number(v).rjust(self.width)


class _ComplexFormat:
    """The format of complex numbers: one of the real parts and one of the imaginary parts."""

    def __init__(self, values: list[complex], options: dict[str, Any]) -> None:
        self.real = _Format([v.real for v in values], "f", options)
        self.imag = _Format([v.imag for v in values], "f", options)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, v: complex) -> str:
        sign = "" if v.imag < 0 else "+"
        return f"{self.real(v.real)}{sign}{self.imag.number(v.imag)}j"


def _flatten(values: Any) -> list[Any]:
    """Return the numbers of nested lists, without the dots."""
    if isinstance(values, list):
        return [v for part in values if part is not ... for v in _flatten(part)]
    return [values]


def _read_corners(x: dt.Tensor, edge: int) -> Any:
    """Return nested lists of the corners; `...` stands for the middle of a long axis."""
    is_long = [n > 2 * edge for n in x.shape]
    for axis, n in enumerate(x.shape):
        if is_long[axis]:
            ends = [dt.narrow(x, axis, start, edge) for start in (0, n - edge)]
            x = dt.concat(ends, axis=axis)
    return _insert_dots(x.tolist(), is_long, edge)


def _insert_dots(values: Any, is_long: list[bool], edge: int) -> Any:
    """Return nested lists with `...` between the first and the last items of long axes."""
    if not is_long:
        return values
    rows = [_insert_dots(v, is_long[1:], edge) for v in values]
    return [*rows[:edge], ..., *rows[edge:]] if is_long[0] else rows


def _join(values: Any, axes: int, indent: int, show: Any, line_width: int) -> str:
    """Return the text of nested lists, in lines of at most `line_width` characters."""
    if axes == 0:
        return str(show(values))
    if axes == 1:
        texts = [" ..." if v is ... else show(v) for v in values]
        per_line = max(1, (line_width - indent) // (show.width + 2))
        lines = [texts[i : i + per_line] for i in range(0, len(texts), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(", ".join(line) for line in lines) + "]"
    rows = ["..." if v is ... else _join(v, axes - 1, indent + 1, show, line_width) for v in values]
    return "[" + ("," + "\n" * (axes - 1) + " " * (indent + 1)).join(rows) + "]"


def show_tensor(x: dt.Tensor) -> str:
    """Return the text of a tensor, as `repr` of PyTorch does, by the options of `dt`."""
    options: dict[str, Any] = dt.get_printoptions()
    line_width = options["linewidth"]
    line_width = LINE_WIDTH if line_width == DEFAULT_LINE_WIDTH else line_width
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
        y, is_large = x.detach(), x.size > options["threshold"]
        values = _read_corners(y, options["edgeitems"]) if is_large else y.tolist()
        numbers = _flatten(values)
        is_complex = kind == "c"
        show = _ComplexFormat(numbers, options) if is_complex else _Format(numbers, kind, options)
        body = _join(values, x.ndim, len("tensor("), show, line_width)
    if not is_shown and name != "complex64":
        suffixes.append(f"dtype=torch.{name}")
    if x.requires_grad:
        node = x.grad_fn
        suffixes.append("requires_grad=True" if node is None else f"grad_fn=<{_node_name(node)}>")
    text = f"tensor({body}"
    extra = 2  # which PyTorch adds to the length of the line before the first suffix
    for suffix in suffixes:
        last = len(text) - text.rfind("\n") - 1 + extra
        separator, extra = (
            (",\n" + " " * 7, 0) if last + len(suffix) + 2 > line_width else (", ", extra)
        )
        text += separator + suffix
    return start + text + ")"


def _node_name(node: Any) -> str:
    """Return the name of a tape node in PyTorch's form: "multiply" is "MultiplyBackward0"."""
    return "".join(part.capitalize() for part in str(node.name).split("_")) + "Backward0"
