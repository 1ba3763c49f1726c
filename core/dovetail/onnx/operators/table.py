"""THE table of ONNX operators: a function for each, by family.

`@row("Name")` adds a function of a `Call` and of the operator's inputs. Inputs come as tensors on
the model's device, None where they are left out; those named in `host` come as they are known: an
array where the values are (constants, shapes), else a tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

import dovetail as dt

from ..library import array_of

Run: TypeAlias = Callable[..., Any]  # of a Call and inputs
F = TypeVar("F", bound=Run)
FOLDED = 4096  # elements: a result of so many, of constants alone, is computed once


@dataclass(frozen=True)
class Function:
    """What does an operator: of an opset since which it is so."""

    op: str
    domain: str
    since: int
    run: Run
    host: tuple[int, ...] | None  # positions of inputs that come as they are known; None: all
    folds: bool  # whether constants give a constant


ROWS: dict[tuple[str, str], list[Function]] = {}


def row(
    *names: str, since: int = 1, domain: str = "", host: tuple[int, ...] | None = (),
    folds: bool = True,
) -> Callable[[F], F]:  # fmt: skip
    """Adds a function to the table, under the names of operators."""

    def add(run: F) -> F:
        for name in names:
            found = ROWS.setdefault((domain, name), [])
            found.append(Function(name, domain, since, run, host, folds))
            found.sort(key=lambda f: f.since)
        return run

    return add


def row_of(domain: str, op: str, version: int) -> Function | None:
    """What does an operator as an opset has it; None where nothing does."""
    found = [f for f in ROWS.get((domain, op), ()) if f.since <= version]
    return found[-1] if found else None


class Call:
    """One use of an operator: its attributes, and how values are had of what it is given."""

    __slots__ = ("attributes", "device", "graphs", "op", "outputs", "version")

    def __init__(
        self, op: str, version: int, attributes: dict[str, Any], device: dt.Device, outputs: int,
        graphs: Callable[..., list[Any]],
    ) -> None:  # fmt: skip
        self.op, self.version, self.attributes = op, version, attributes
        self.device, self.outputs, self.graphs = device, outputs, graphs

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute."""
        found = self.attributes.get(name)
        return default if found is None else found

    def tensor(self, x: Any, d: dt.DType | None = None) -> dt.Tensor:
        """A value as a tensor on the model's device."""
        if isinstance(x, dt.Tensor):
            return x if d is None or x.dtype is d else x.astype(d)
        return dt.asarray(np.asarray(x), dtype=d, device=self.device, copy=True)

    def array(self, x: Any) -> np.ndarray:
        """A value on the host: a tensor is waited for."""
        if isinstance(x, dt.Tensor):
            return array_of(x)
        return np.asarray(x)

    def ints(self, x: Any) -> list[int]:
        """The numbers of a vector: sizes, axes, places."""
        return [int(n) for n in self.array(x).reshape(-1)]

    def number(self, x: Any) -> int:
        """A number that is one."""
        found = self.ints(x)
        if len(found) != 1:
            raise dt.ShapeError(f"{self.op}: {len(found)} numbers where there is to be one")
        return found[0]

    def axes(self, given: Any, ndim: int) -> tuple[int, ...] | None:
        """Axes by an attribute "axes", or as an input from the opset on that has them so."""
        found = self.get("axes") if given is None else self.ints(given)
        return None if found is None else tuple(self.axis(a, ndim) for a in found)

    def axis(self, a: int, ndim: int) -> int:
        """An axis counted from the first one. Raises: AxisError."""
        if not -ndim <= a < ndim:
            raise dt.AxisError(f"{self.op}: axis {a} is out of range for {ndim} dimensions")
        return a % ndim if ndim else 0

    def cut(self, a: int, ndim: int) -> int:
        """A place between axes, counted from before the first one. Raises: AxisError."""
        if not -ndim <= a <= ndim:
            raise dt.AxisError(f"{self.op}: axis {a} is out of range for {ndim} dimensions")
        return a + ndim if a < 0 else a
