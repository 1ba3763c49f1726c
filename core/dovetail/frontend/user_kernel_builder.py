"""A kernel builder that declares the parameters of a user's kernel when they are first used."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ..dtypes import DType, int64
from ..ir.builder import Kernel, KernelBuilder
from ..ir.language import Atomic, Buffer, Effect, Loop, Store, Value, const, load, walk
from .grid_bounds import required_numbers

STRIDE_ANY = 2  # the class of a stride that is neither 0 nor 1


class TensorType(NamedTuple):
    """The properties of a tensor that a kernel is specialised for."""

    dtype: DType
    strides: tuple[int, ...]  # each is 0, 1 or STRIDE_ANY


class ErrorCell(NamedTuple):
    """A buffer for an index that is out of range: of which tensor and axis, and the message."""

    buffer: Buffer
    tensor: int
    axis: int
    message: str


class RuntimeInt(NamedTuple):
    """A run-time integer: "n" or "s" of a tensor's axis, "start" or "extent" of the grid's."""

    kind: str
    tensor: int
    axis: int


class ElementAccess(NamedTuple):
    """The linear index of an element, and the condition under which it is read or written."""

    linear: Value
    when: Value | None


class TensorParameter:
    """A parameter that is a tensor. `position`: its place among the arguments."""

    def __init__(self, position: int, name: str, type_: TensorType, buffer: Buffer) -> None:
        self.position, self.name, self.type, self.buffer = position, name, type_, buffer
        self.access, self.rank = buffer.access, len(type_.strides)


class UserKernelBuilder:
    """The parameters of one kernel, each declared at its first use. `checks`: check all indices."""

    def __init__(self, name: str, checks: bool) -> None:
        self.checks_indices = checks
        self.tensors: list[TensorParameter] = []
        self.ints: dict[str, RuntimeInt] = {}
        self.scalars: dict[str, int] = {}  # by the name in the kernel: the argument's position
        self.cells: dict[tuple[ast.AST, int], ErrorCell] = {}  # by the node and the axis
        self.stores: dict[int, list[ast.expr]] = {}  # by the tensor's position: where it is written
        self.grid: list[tuple[Value, Value]] = []  # start and stop of each axis
        self.grid_names: set[str] = set()  # the numbers that they depend on
        self._builder = KernelBuilder(name)
        self._ints: dict[RuntimeInt, Value] = {}
        self._scalars: dict[tuple[int, DType], Value] = {}
        self._names: set[str] = set()

    def _unique_name(self, name: str) -> str:
        """Reserve and return an unused name that kernel IR allows: ASCII, not like "i0"."""
        if name[:1] == "i" and name[1:].isdigit():
            name = f"{name}_"
        while name in self._names or not name.isascii():
            name = f"{name}_" if name.isascii() else "p"
        self._names.add(name)
        return name

    def tensor(self, position: int, name: str, access: str, type_: TensorType) -> TensorParameter:
        """Declare and return a parameter that is a tensor."""
        buffer = self._builder.buffer(self._unique_name(name), type_.dtype, access)
        tensor = TensorParameter(position, name, type_, buffer)
        self.tensors.append(tensor)
        return tensor

    def scalar(self, position: int, name: str, dtype: DType) -> Value:
        """Return a number argument as a scalar of the dtype, declared at its first use."""
        key = position, dtype
        if key not in self._scalars:
            other_dtypes = any(p == position for p, _ in self._scalars)
            unique = self._unique_name(f"{name}_{dtype.code}" if other_dtypes else name)
            self._scalars[key] = self._builder.scalar(unique, dtype)
            self.scalars[unique] = position
        return self._scalars[key]

    def runtime_int(self, kind: str, name: str, tensor: int, axis: int) -> Value:
        """Return an integer that the launch passes, declared at its first use."""
        key = RuntimeInt(kind, tensor, axis)
        if key not in self._ints:
            unique = self._unique_name(name)
            self._ints[key] = self._builder.int(unique)
            self.ints[unique] = key
        return self._ints[key]

    def extent(self, tensor: TensorParameter, axis: int) -> Value:
        """Return the extent of a tensor's axis, declared as an integer at its first use."""
        return self.runtime_int("n", f"{tensor.name}_n{axis}", tensor.position, axis)

    def add_axis(self, start: Value, stop: Value) -> Value:
        """Add an axis to the grid; return its index.

        Raises: NonUniformBoundError for a bound that only the kernel can compute.
        """
        self.grid_names |= required_numbers(start) | required_numbers(stop)
        axis = len(self.grid)
        self.grid.append((start, stop))
        index = self._builder.axis(self.runtime_int("extent", f"extent{axis}", -1, axis))
        if start.op == "const":
            return index + start
        return index + self.runtime_int("start", f"start{axis}", -1, axis)

    def linear_index(self, tensor: TensorParameter, indices: Sequence[Value]) -> Value:
        """Return the linear index of an element."""
        linear = const(0, int64)
        for axis, (index, stride) in enumerate(zip(indices, tensor.type.strides, strict=True)):
            if stride == STRIDE_ANY:
                name = f"{tensor.name}_s{axis}"
                linear = linear + index * self.runtime_int("s", name, tensor.position, axis)
            elif stride == 1:
                linear = linear + index
        return linear

    def error_cell(self, tensor: TensorParameter, axis: int, node: ast.AST, message: str) -> Buffer:
        """Return the buffer for a wrong index at a node and axis, declared at its first use."""
        key = node, axis
        if key not in self.cells:
            buffer = self._builder.buffer(self._unique_name(f"cell{len(self.cells)}"), int64, "w")
            self.cells[key] = ErrorCell(buffer, tensor.position, axis, message)
        return self.cells[key].buffer

    def build(self, effects: Sequence[Effect | Value]) -> Kernel:
        """Return the kernel with these statements, without parameters that it does not use."""
        for effect in effects:
            if isinstance(effect, Value):
                self._builder.first(effect)
            else:
                self._builder.effect(effect)
        kernel = self._builder.build()
        params, buffers = _used_parameters(kernel)
        return replace(
            kernel,
            buffers=tuple(b for b in kernel.buffers if id(b) in buffers),
            ints=tuple(n for n in kernel.ints if n in params),
            scalars=tuple((n, d) for n, d in kernel.scalars if n in params),
        )


def read_element(tensor: TensorParameter, access: ElementAccess) -> Value:
    """Return the load of an element at this point of the kernel, where the access allows it."""
    return load(tensor.buffer, access.linear, access.when)


def _used_parameters(kernel: Kernel) -> tuple[set[str], set[int]]:
    """Return the names of the numbers, and the ids of the buffers, that a kernel uses."""
    params: set[str] = set()
    buffers: set[int] = set()

    def add_parameters(*operands: Value | None) -> None:
        """Add the names of operands that are parameters to `params`."""
        params.update(v.name for v in operands if v is not None and v.op == "param")

    add_parameters(*kernel.grid)
    for statement in walk(kernel.body):
        if isinstance(statement, Value):
            add_parameters(*statement.args)
            if statement.op == "load":
                buffers.add(id(statement.buffer))
        elif isinstance(statement, Loop):
            add_parameters(statement.start, statement.stop, *statement.init, *statement.update)
        elif isinstance(statement, Store | Atomic):
            add_parameters(statement.index, statement.value, statement.when)
            buffers.add(id(statement.buffer))
    return params, buffers
