"""The writer of an ONNX graph: nodes, initialisers, and names."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

import dovetail as dt
from dovetail.extend import GraphNode

from ..library import ELEMENTS, Proto, array_of, import_onnx, numpy_dtype

NodeWriter: TypeAlias = Callable[["GraphWriter", GraphNode], str]  # to the name of the result
"""A function that writes a node and returns the name of its result."""
NODE_WRITERS: dict[str, NodeWriter] = {}
Sizes: TypeAlias = Sequence[int]


def register_node_writer(*ops: str) -> Callable[[NodeWriter], NodeWriter]:
    """Return a decorator that adds a function to the table under the names of ops."""

    def add(run: NodeWriter) -> NodeWriter:
        """Store the writer for each op, and return it."""
        for op in ops:
            NODE_WRITERS[op] = run
        return run

    return add


class UnsupportedOpError(Exception):
    """The error of a row for a use of its op that ONNX has no operators for, with the reason."""


class GraphWriter:
    """A writer of one graph.

    `opset`: the version of the operators. `names`: those of parameters, by location in memory.
    `shares`: True to write equal numbers as one initialiser.
    """

    def __init__(self, opset: int, names: dict[Any, str], shares: bool = True) -> None:
        self.onnx, self.opset, self.parameter_names = import_onnx("onnx.export"), opset, names
        self.nodes: list[Proto] = []
        self.initialisers: dict[str, Proto] = {}
        self.value_names: dict[int, str] = {}  # by the id of a GraphNode
        self.unsupported: dict[tuple[str, str], list[str]] = {}  # (op, why) -> lines
        self.lines: dict[str, str] = {}  # source lines of initialisers
        self.used_names: set[str] = set()
        self._numbers: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self.shares_constants = shares

    # --- names and nodes

    def name(self, preferred: str) -> str:
        """Return a name that is not used yet, and mark it as used."""
        name, k = preferred, 1
        while name in self.used_names:
            k += 1
            name = f"{preferred}_{k}"
        self.used_names.add(name)
        return name

    def add(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Add a node with one output, and return the output's name."""
        return self.add_node(op, inputs, 1, **attributes)[0]

    def add_node(
        self, op: str, inputs: Sequence[str], outputs: int, **attributes: Any
    ) -> list[str]:
        """Add a node, and return the names of its outputs."""
        names = [self.name(op.lower()) for _ in range(outputs)]
        self.nodes.append(
            self.onnx.helper.make_node(op, list(inputs), names, self.name(op), **attributes)
        )
        return names

    def require_opset(self, opset: int, what: str) -> None:
        """Raise UnsupportedOpError if the opset is older than `opset`."""
        if self.opset < opset:
            raise UnsupportedOpError(f"{what} needs opset {opset}, got {self.opset}")

    # --- values

    def value(self, n: GraphNode) -> str:
        """Return the name of the value of a node, which must have been written."""
        return self.value_names[id(n)]

    def arg(self, n: GraphNode, i: int, d: dt.DType | None = None) -> str:
        """Return the name of an argument, cast to `d`, by default to the op's compute dtype."""
        a = n.args[i]
        dtype = d or (n.casts[i] if i < len(n.casts) else n.dtype)
        if isinstance(a, GraphNode):
            return self.cast(self.value(a), a.dtype, dtype)
        return self.number(a, dtype)

    def args(self, n: GraphNode) -> list[str]:
        """Return the names of all arguments, cast to the dtypes in which the op computes."""
        return [self.arg(n, i) for i in range(len(n.args))]

    def cast(self, name: str, source: dt.DType, target: dt.DType) -> str:
        """Add a Cast if the dtypes differ, and return the name of the value."""
        if source is target:
            return name
        return self.add("Cast", [name], to=self.element(target))

    def element(self, d: dt.DType) -> int:
        """Return ONNX's element type of a dtype. Raises: UnsupportedOpError if there is none."""
        if d not in ELEMENTS:
            raise UnsupportedOpError(f"ONNX has no element type for {d.name}")
        return ELEMENTS[d]

    def number(self, value: Any, d: dt.DType) -> str:
        """Add a number as a 0-d initialiser, and return its name."""
        return self.array(np.asarray(value).astype(numpy_dtype(d)), d)

    def ints(self, values: Sequence[int]) -> str:
        """Add a vector of int64 as an initialiser, and return its name."""
        return self.array(np.asarray(values, np.int64).reshape(-1), dt.int64)

    def array(self, a: np.ndarray, d: dt.DType, preferred_name: str = "") -> str:
        """Add an initialiser and return its name; equal small ones are shared."""
        shared = self.shares_constants and a.size <= 64 and not preferred_name
        key = (d.name, a.shape, a.tobytes() if shared else b"")
        if shared and key in self._numbers:
            return self._numbers[key]
        name = self.name(preferred_name or "constant")
        self.initialisers[name] = self.onnx.helper.make_tensor(
            name, self.element(d), a.shape, np.ascontiguousarray(a).tobytes(), raw=True
        )
        if shared:
            self._numbers[key] = name
        return name

    def tensor(self, x: dt.Tensor, preferred_name: str = "") -> str:
        """Add the values of a tensor as an initialiser, and return its name."""
        return self.array(array_of(x), x.dtype, preferred_name)

    # --- building blocks of rows

    def reshape(self, name: str, shape: Sizes) -> str:
        """Add a Reshape, and return its output; zeros in the shape are sizes."""
        return self.add("Reshape", [name, self.sizes(shape)], allowzero=int(0 in shape))

    def sizes(self, shape: Sizes) -> str:
        """Add an int64 initialiser; `unify` replaces it if it varies with dynamic axes."""
        return self.ints(shape)

    def flatten(self, name: str) -> str:
        """Add a Reshape to a vector, and return its output."""
        return self.add("Reshape", [name, self.ints([-1])])

    def where(self, condition: str, x: str, y: str) -> str:
        """Add a Where, and return its output: x where the condition is true, else y."""
        return self.add("Where", [condition, x, y])

    def reduce(self, op: str, name: str, axes: Sizes, keep: bool) -> str:
        """Add a reduction in the form that the opset has, and return its output."""
        result: str
        if op == "ReduceSum" or self.opset >= 18:
            result = self.add(op, [name, self.ints(axes)], keepdims=int(keep))
        else:
            result = self.add(op, [name], axes=list(axes), keepdims=int(keep))
        return result


def size(shape: Sizes) -> int:
    """Return the number of elements of a shape."""
    return math.prod(shape)
