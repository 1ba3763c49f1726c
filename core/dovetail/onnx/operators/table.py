"""The table of ONNX operators and their functions.

`@register_operator("Name")` adds a function of an `OperatorCall` and of the inputs of the operator.
Inputs are tensors on the model's device, or None if they are left out. An input whose position is
in `host` is a NumPy array if its values are on the host (constants, shapes), else a tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

import dovetail as dt

from ..library import array_of

OperatorFunction: TypeAlias = Callable[..., Any]  # of a Call and inputs
F = TypeVar("F", bound=OperatorFunction)
FOLDED_ELEMENTS_MAX = 4096  # larger results of constant inputs are not folded


@dataclass(frozen=True)
class OperatorImplementation:
    """A function of an operator, valid from an opset on."""

    op: str
    domain: str
    since: int
    run: OperatorFunction
    host: tuple[int, ...] | None  # positions of inputs that may be host arrays; None: all
    folds: bool  # True if a call with constant inputs is folded to a constant


OPERATORS: dict[tuple[str, str], list[OperatorImplementation]] = {}


def register_operator(
    *names: str,
    since: int = 1,
    domain: str = "",
    host: tuple[int, ...] | None = (),
    folds: bool = True,
) -> Callable[[F], F]:
    """Return a decorator that adds a function to the table under the names of operators."""

    def add(run: F) -> F:
        """Store the function under each name, in order of opsets, and return it."""
        for name in names:
            functions = OPERATORS.setdefault((domain, name), [])
            functions.append(OperatorImplementation(name, domain, since, run, host, folds))
            functions.sort(key=lambda f: f.since)
        return run

    return add


def find_operator(domain: str, op: str, version: int) -> OperatorImplementation | None:
    """Return the function of an operator in an opset, or None if there is none."""
    functions = [f for f in OPERATORS.get((domain, op), ()) if f.since <= version]
    return functions[-1] if functions else None


class OperatorCall:
    """A use of an operator: its attributes, and conversions of its inputs."""

    __slots__ = ("attributes", "device", "graphs", "op", "outputs", "reserve", "version")

    def __init__(
        self,
        op: str,
        version: int,
        attributes: dict[str, Any],
        device: dt.Device,
        outputs: int,
        graphs: Callable[..., list[Any]],
        reserve: Callable[[int], None],
    ) -> None:
        """Store the parts of a call.

        `graphs` runs a graph of the node. `reserve` takes bytes of the model's budget until the
        call returns, for memory that the operator needs in addition to its results, or before them.
        """
        self.op, self.version, self.attributes = op, version, attributes
        self.device, self.outputs = device, outputs
        self.graphs, self.reserve = graphs, reserve

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute, or the default if it is missing."""
        value = self.attributes.get(name)
        return default if value is None else value

    def tensor(self, x: Any, d: dt.DType | None = None) -> dt.Tensor:
        """Return a tensor, cast to `d` if given; arrays are copied to the model's device."""
        if isinstance(x, dt.Tensor):
            return x if d is None or x.dtype is d else x.astype(d)
        return dt.asarray(np.asarray(x), dtype=d, device=self.device, copy=True)

    def array(self, x: Any) -> np.ndarray:
        """Return a value as a host array; waits for a tensor."""
        if isinstance(x, dt.Tensor):
            return array_of(x)
        return np.asarray(x)

    def ints(self, x: Any) -> list[int]:
        """Return the numbers of a vector of sizes, axes or positions; wait for a tensor."""
        return [int(n) for n in self.array(x).reshape(-1)]

    def number(self, x: Any) -> int:
        """Return the integer in a value of one element; wait for a tensor.

        Raises: ShapeError for more or none.
        """
        numbers = self.ints(x)
        if len(numbers) != 1:
            raise dt.ShapeError(f"{self.op}: expected one number, got {len(numbers)}")
        return numbers[0]

    def axes(self, axes_input: Any, ndim: int) -> tuple[int, ...] | None:
        """Return axes of an input or of the attribute "axes"; None if there are neither."""
        axes = self.get("axes") if axes_input is None else self.ints(axes_input)
        return None if axes is None else tuple(self.axis(a, ndim) for a in axes)

    def axis(self, a: int, ndim: int) -> int:
        """Return an axis counted from the first one. Raises: AxisError."""
        if not -ndim <= a < ndim:
            raise dt.AxisError(f"{self.op}: axis {a} is out of range for {ndim} dimensions")
        return a % ndim if ndim else 0

    def split_position(self, a: int, ndim: int) -> int:
        """Return a position between axes, counted from before the first one. Raises: AxisError."""
        if not -ndim <= a <= ndim:
            raise dt.AxisError(f"{self.op}: axis {a} is out of range for {ndim} dimensions")
        return a + ndim if a < 0 else a
