"""Dynamic axes: find the numbers of a model that depend on sizes, from traces of several sizes.

The function is traced with several sizes, and each trace is written as a model. The models must be
equal except for numbers. A number that differs must be linear in a product of sizes, or in its
inverse; nodes compute it when the model runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

import dovetail as dt

from ..library import Proto

PRIMES = (5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)
SMALL_SIZES = (5, 3, 7, 4, 6, 2, 8)  # for functions that reject the primes
PROBE_COUNT = 4  # two determine the coefficients of a number, the others check them
SIZE_NAMES_MAX = 6
Dims = dict[tuple[int, int], str]  # names of sizes, by (position of an input, axis)


def dimensions(
    dynamic_axes: Mapping[str, Any] | None, names: Sequence[str], shapes: Sequence[Sequence[int]]
) -> Dims:
    """Return the names of dynamic sizes by (input, axis).

    Raises: ArgumentError for an unknown input and too many names, AxisError for an axis out of
    range.
    """
    dims: Dims = {}
    for name, axes in (dynamic_axes or {}).items():
        if name not in names:
            raise dt.ArgumentError(
                f"onnx.export: dynamic_axes has {name!r}, which is not an input; the inputs are "
                f"{', '.join(names)}"
            )
        i = list(names).index(name)
        pairs = axes.items() if isinstance(axes, Mapping) else [(a, f"{name}_{a}") for a in axes]
        for axis, size_name in pairs:
            rank = len(shapes[i])
            if not -rank <= axis < rank:
                raise dt.AxisError(
                    f"onnx.export: dynamic_axes has axis {axis} of {name!r}, which is out of "
                    f"range for {rank} dimensions"
                )
            dims[i, axis % rank] = str(size_name)
    if len(set(dims.values())) > SIZE_NAMES_MAX:
        raise dt.ArgumentError(
            f"onnx.export: dynamic_axes must have at most {SIZE_NAMES_MAX} names of sizes"
        )
    return dims


def probes(dims: Dims) -> tuple[list[dict[str, int]], list[dict[str, int]]]:
    """Return two lists of sizes by name to trace with: distinct primes, and small numbers."""
    names = sorted(set(dims.values()))
    large = [
        {n: PRIMES[(k * len(names) + i) % len(PRIMES)] for i, n in enumerate(names)}
        for k in range(PROBE_COUNT)
    ]
    small = [
        {n: SMALL_SIZES[(k + i) % len(SMALL_SIZES)] for i, n in enumerate(names)}
        for k in range(PROBE_COUNT)
    ]
    return large, small


class NotLinearError(Exception):
    """The error of a number that is not linear in a product of sizes or its inverse."""


def unify(models: Sequence[Any], sizes: Sequence[dict[str, int]], dims: Dims) -> None:
    """Add nodes to the first model for constants that differ between the models.

    Also name the output sizes that differ. `models`: those of one function at several `sizes`.
    Raises: UnsupportedError if the models' nodes differ, or a constant cannot be computed from
    sizes.
    """
    first = models[0].writer
    for m in models[1:]:
        _require_equal_nodes(first, m.writer)
    expressions = _SizeExpressions(first, models[0].inputs, sizes, dims)
    for name, t in list(first.initialisers.items()):
        every = [m.writer.initialisers[name] for m in models]
        if any(e.raw_data != t.raw_data or e.dims != t.dims for e in every):
            _replace_constant(first, expressions, name, every)
    first.nodes[:0] = expressions.nodes
    for name, i, d, values in _varying_output_sizes(models):
        models[0].out_dims[i, d] = expressions.size_name(values) or f"{name}_{d}"


def _require_equal_nodes(a: Any, b: Any) -> None:
    """Raise UnsupportedError if two models differ in nodes or in names of initialisers."""
    same = len(a.nodes) == len(b.nodes) and {*a.initialisers} == {*b.initialisers}
    for x, y in zip(a.nodes, b.nodes, strict=False):
        if not same or x.SerializeToString() != y.SerializeToString():
            raise dt.UnsupportedError(
                "onnx.export: the function must do the same for all sizes of dynamic_axes, but "
                f"its operators differ ({x.op_type} and {y.op_type}, or their attributes); leave "
                "these axes fixed, or avoid Python code that depends on sizes"
            )


def _replace_constant(
    w: Any, expressions: _SizeExpressions, name: str, initializers: Sequence[Proto]
) -> None:
    """Replace an initialiser of `w` by nodes, added to `expressions`.

    `initializers`: the constant in the model of each probe. `unify` puts the nodes into the model.
    Raises: UnsupportedError for matrices, shapes that differ, and numbers that no formula of sizes
    gives.
    """
    arrays = [w.onnx.numpy_helper.to_array(t) for t in initializers]
    if len({a.shape for a in arrays}) > 1 or arrays[0].ndim > 1:
        raise dt.UnsupportedError(
            f"onnx.export: a constant of shape {arrays[0].shape}{_source_text(w, name)} depends "
            "on the sizes of dynamic_axes; only slices of the exported module's parameters and "
            "buffers (self.table[:, :n]) and results of dt functions (dt.arange(n), "
            "table[dt.arange(n)]) may"
        )
    try:
        expressions.compute(name, arrays)
    except NotLinearError:
        raise dt.UnsupportedError(
            f"onnx.export: the numbers {[a.tolist() for a in arrays]} depend on the sizes of "
            "dynamic_axes and must be multiples of products of them; leave these axes fixed"
        ) from None
    del w.initialisers[name]


def _source_text(w: Any, name: str) -> str:
    """Return " at ..." with the source line of an initialiser, or ""."""
    line = w.lines.get(name)
    return f" at {line}" if line else ""


def _varying_output_sizes(models: Sequence[Any]) -> Any:
    """Yield (name, output's position, axis, size in each model) of axes whose sizes differ."""
    for i, (n, name) in enumerate(zip(models[0].graph.results, models[0].outputs, strict=True)):
        for d, m in enumerate(n.shape):
            values = [x.graph.results[i].shape[d] for x in models]
            if any(v != m for v in values):
                yield name, i, d, values


class _SizeExpressions:
    """A builder of nodes that compute numbers from the sizes of inputs."""

    def __init__(
        self, w: Any, inputs: Sequence[str], sizes: Sequence[dict[str, int]], dims: Dims
    ) -> None:
        self.w, self.inputs, self.sizes, self.dims = w, inputs, sizes, dims
        self.names = sorted(set(dims.values()))
        self.nodes: list[Proto] = []
        self._products: dict[tuple[str, ...], str] = {}

    def _add(self, op: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        """Add a node to those of the sizes, and return its output, `output` if given."""
        name = output or self.w.name(op.lower())
        self.nodes.append(self.w.onnx.helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def _add_product(self, names: tuple[str, ...]) -> str:
        """Add nodes for a product of sizes once; return its name, a vector of one element."""
        if names not in self._products:
            if len(names) == 1:
                i, axis = next(k for k, v in self.dims.items() if v == names[0])
                shape = self._add("Shape", [self.inputs[i]])
                name = self._add("Gather", [shape, self.w.ints([axis])], axis=0)
            else:
                name = self._add(
                    "Mul", [self._add_product(names[:-1]), self._add_product(names[-1:])]
                )
            self._products[names] = name
        return self._products[names]

    def fit(self, values: Sequence[Any]) -> tuple[tuple[str, ...], Fraction, Fraction, int]:
        """Fit c * product(sizes) ** power + k to values; return (names of sizes, c, k, power).

        `values`: one of each probe. Raises: NotLinearError if no such expression gives all values.
        """
        exact = [Fraction(v).limit_denominator(1 << 40) for v in values]
        for power in (1, -1):
            for count in range(1, len(self.names) + 1):
                for names in itertools.combinations(self.names, count):
                    at = [
                        Fraction(reduce(int.__mul__, [s[n] for n in names], 1)) ** power
                        for s in self.sizes
                    ]
                    c = (exact[1] - exact[0]) / (at[1] - at[0])
                    k = exact[0] - c * at[0]
                    if all(_is_close(c * a + k, v) for a, v in zip(at, exact, strict=True)):
                        return names, c, k, power
        raise NotLinearError

    def size_name(self, values: Sequence[int]) -> str:
        """Return the name of the size that is equal to a number, or ""."""
        try:
            names, c, k, power = self.fit(values)
        except NotLinearError:
            return ""
        plain = len(names) == 1 and power == 1 and c == 1 and k == 0
        return names[0] if plain else ""

    def compute(self, name: str, arrays: Sequence[np.ndarray]) -> None:
        """Add nodes that compute an initialiser.

        Raises: NotLinearError if no formula of sizes gives it.
        """
        d = arrays[0].dtype
        elements = [
            self._add_element([a.reshape(-1)[i] for a in arrays], d) for i in range(arrays[0].size)
        ]
        if arrays[0].ndim:
            self._add("Concat", elements, name, axis=0)
        else:
            self._add("Reshape", [elements[0], self.w.ints([])], name)

    def _add_element(self, values: Sequence[Any], d: np.dtype) -> str:
        """Add a constant, or nodes, for one element; return its name.

        `values`: the element in the model of each probe.
        Raises: NotLinearError if no formula of the sizes gives the values.
        """
        if all(v == values[0] for v in values):
            return self._add_vector(values[0], d)
        names, c, k, power = self.fit([v.item() for v in values])
        name = self._add_product(names)
        if d.kind in "iu":
            if power < 0 or k.denominator > 1:
                raise NotLinearError
            if c.numerator != 1:
                name = self._add("Mul", [name, self.w.ints([c.numerator])])
            if c.denominator != 1:
                name = self._add("Div", [name, self.w.ints([c.denominator])])
            name = name if k == 0 else self._add("Add", [name, self.w.ints([int(k)])])
            return name if d == np.int64 else self._add_cast(name, d)
        name = self._add_cast(name, d)
        name = self._add("Reciprocal", [name]) if power < 0 else name
        name = name if c == 1 else self._add("Mul", [name, self._add_vector(float(c), d)])
        return name if k == 0 else self._add("Add", [name, self._add_vector(float(k), d)])

    def _add_cast(self, name: str, d: np.dtype) -> str:
        """Add a Cast to a NumPy dtype, and return its output."""
        to = self.w.onnx.helper.np_dtype_to_tensor_dtype(d)
        return self._add("Cast", [name], to=to)

    def _add_vector(self, value: Any, d: np.dtype) -> str:
        """Add a vector of one element as an initialiser, and return its name."""
        name: str = self.w.array(np.asarray([value], d), dt.asarray(np.zeros(0, d)).dtype)
        return name


def _is_close(a: Fraction, b: Fraction) -> bool:
    """Return True if numbers are equal; for fractions, to a relative 2**-20."""
    return a == b or (b.denominator > 1 and abs(a - b) <= abs(b) / (1 << 20))
