"""An ONNX graph while it is written: its nodes, its initialisers, and their names."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

import dovetail as dt
from dovetail.extend import GraphNode

from ..library import ELEMENTS, Proto, array_of, library, numpy_dtype

Row: TypeAlias = Callable[["Writer", GraphNode], str]  # writes a node; the name of what it gives
ROWS: dict[str, Row] = {}
Sizes: TypeAlias = Sequence[int]


def row(*ops: str) -> Callable[[Row], Row]:
    """Adds a function to the table, under the names of ops."""

    def add(run: Row) -> Row:
        for op in ops:
            ROWS[op] = run
        return run

    return add


class Unknown(Exception):
    """What a row raises for a use of its op that ONNX has no operators for; why."""


class Writer:
    """One graph.

    `opset`: which operators there are. `names`: those of parameters, by their places. `shares`:
    whether equal numbers are one initialiser.
    """

    def __init__(self, opset: int, names: dict[Any, str], shares: bool = True) -> None:
        self.onnx, self.opset, self.names = library("onnx.export"), opset, names
        self.nodes: list[Proto] = []
        self.initialisers: dict[str, Proto] = {}
        self.known: dict[int, str] = {}  # by the id of a node of the graph
        self.missing: dict[tuple[str, str], list[str]] = {}  # (op, why) -> lines
        self.lines: dict[str, str] = {}  # where initialisers come from
        self.taken: set[str] = set()
        self._numbers: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self.shares = shares

    # --- names and nodes

    def name(self, wanted: str) -> str:
        """A name that nothing has yet."""
        found, k = wanted, 1
        while found in self.taken:
            k += 1
            found = f"{wanted}_{k}"
        self.taken.add(found)
        return found

    def add(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        """A node; the name of what it gives."""
        return self.several(op, inputs, 1, **attributes)[0]

    def several(self, op: str, inputs: Sequence[str], outputs: int, **attributes: Any) -> list[str]:
        """A node; the names of what it gives."""
        made = [self.name(op.lower()) for _ in range(outputs)]
        self.nodes.append(
            self.onnx.helper.make_node(op, list(inputs), made, self.name(op), **attributes)
        )
        return made

    def need(self, opset: int, what: str) -> None:
        """Raises: Unknown where the opset has no such operator."""
        if self.opset < opset:
            raise Unknown(f"{what} needs opset {opset}, not {self.opset}")

    # --- values

    def value(self, n: GraphNode) -> str:
        """The name of a node's value; it is written before."""
        return self.known[id(n)]

    def arg(self, n: GraphNode, i: int, d: dt.DType | None = None) -> str:
        """An argument in the dtype that the op takes it in, or in another one."""
        a = n.args[i]
        wanted = d or (n.casts[i] if i < len(n.casts) else n.dtype)
        if isinstance(a, GraphNode):
            return self.cast(self.value(a), a.dtype, wanted)
        return self.number(a, wanted)

    def args(self, n: GraphNode) -> list[str]:
        """All arguments, each as the op takes it."""
        return [self.arg(n, i) for i in range(len(n.args))]

    def cast(self, name: str, have: dt.DType, want: dt.DType) -> str:
        """A value in another dtype."""
        if have is want:
            return name
        return self.add("Cast", [name], to=self.element(want))

    def element(self, d: dt.DType) -> int:
        """The element type of a dtype. Raises: Unknown."""
        if d not in ELEMENTS:
            raise Unknown(f"{d.name} has no element type")
        return ELEMENTS[d]

    def number(self, value: Any, d: dt.DType) -> str:
        """A number, as a tensor of no dimensions."""
        return self.array(np.asarray(value).astype(numpy_dtype(d)), d)

    def ints(self, values: Sequence[int]) -> str:
        """A vector of int64."""
        return self.array(np.asarray(values, np.int64).reshape(-1), dt.int64)

    def array(self, a: np.ndarray, d: dt.DType, named: str = "") -> str:
        """An initialiser; equal small ones are one."""
        shared = self.shares and a.size <= 64 and not named
        key = (d.name, a.shape, a.tobytes() if shared else b"")
        if shared and key in self._numbers:
            return self._numbers[key]
        found = self.name(named or "constant")
        self.initialisers[found] = self.onnx.helper.make_tensor(
            found, self.element(d), a.shape, np.ascontiguousarray(a).tobytes(), raw=True
        )
        if shared:
            self._numbers[key] = found
        return found

    def tensor(self, x: dt.Tensor, named: str = "") -> str:
        """The values of a tensor as an initialiser."""
        return self.array(array_of(x), x.dtype, named)

    # --- what many rows are made of

    def reshape(self, name: str, shape: Sizes) -> str:
        """A value in another shape."""
        return self.add("Reshape", [name, self.sizes(shape)], allowzero=int(0 in shape))

    def sizes(self, shape: Sizes) -> str:
        """A shape, or other numbers that follow from shapes."""
        return self.ints(shape)

    def flat(self, name: str) -> str:
        """A value as a vector."""
        return self.add("Reshape", [name, self.ints([-1])])

    def where(self, condition: str, x: str, y: str) -> str:
        """One or the other, by element."""
        return self.add("Where", [condition, x, y])

    def reduced(self, op: str, name: str, axes: Sizes, keep: bool) -> str:
        """A reduction."""
        made: str
        if op == "ReduceSum" or self.opset >= 18:
            made = self.add(op, [name, self.ints(axes)], keepdims=int(keep))
        else:
            made = self.add(op, [name], axes=list(axes), keepdims=int(keep))
        return made


def size(shape: Sizes) -> int:
    """How many elements there are."""
    return math.prod(shape)
