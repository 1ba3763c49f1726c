"""A model's graph, run: node by node, each a function of the table or a graph of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import dovetail as dt
from dovetail.extend import uncaptured

from .library import ELEMENTS, array_of
from .limits import Limit, nbytes_of
from .operators import FOLDED, Call
from .structure import Graph, Node, Reading, Reference

HOST = "reference"  # where constants are computed: every machine has it, and bits are the same
KEPT = 4096  # of constants that were computed
# What Python raises where values are not what a function takes; dovetail's own errors pass.
OTHERS = (
    TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError,
    AssertionError,
)  # fmt: skip


class Run:
    """What running a model needs beside its graph."""

    def __init__(self, device: dt.Device, limit: Limit, reading: Reading) -> None:
        self.device, self.limit, self.reading = device, limit, reading
        self.tensors: dict[int, tuple[np.ndarray, dt.Tensor]] = {}  # of constants, by their ids
        self.folded: dict[Any, Any] = {}
        self.bodies: dict[Any, Graph] = {}

    # --- graphs

    def graph(
        self, graph: Graph, given: Sequence[Any], outer: Mapping[str, Any],
        attributes: Mapping[str, Any],
    ) -> list[Any]:  # fmt: skip
        """What a graph gives. `outer`: values around it; `attributes`: of its function."""
        if len(given) > len(graph.inputs):
            raise dt.ArgumentError(
                f"onnx: the graph {graph.name!r} takes {len(graph.inputs)} inputs, not {len(given)}"
            )
        values: dict[str, Any] = {**outer, **graph.constants}
        names = [v.name for v in graph.inputs]
        values.update(zip(names, [*given, *[None] * (len(names) - len(given))], strict=True))
        sizes: dict[str, int] = {}
        try:
            for node in graph.nodes:
                self._node(node, values, sizes, attributes)
            return [values.get(v.name) for v in graph.outputs]
        finally:
            self.limit.give(sum(sizes.values()))

    def _node(
        self, node: Node, values: dict[str, Any], sizes: dict[str, int],
        attributes: Mapping[str, Any],
    ) -> None:  # fmt: skip
        given = [values[n] if n else None for n in node.inputs]
        while given and given[-1] is None:
            given.pop()
        own = {k: _bound(a, attributes) for k, a in node.attributes.items()}
        made = self._done(node, given, values, own)
        for name, value in zip(node.outputs, made, strict=False):
            if name:
                nbytes = nbytes_of(value)
                self.limit.take(nbytes, f"{name!r}, of {node},")
                sizes[name], values[name] = nbytes, value
        for name in node.drops:
            self.limit.give(sizes.pop(name, 0))
            values.pop(name, None)

    def _done(
        self, node: Node, given: list[Any], values: Mapping[str, Any], own: dict[str, Any]
    ) -> Sequence[Any]:
        try:
            if node.function is None:
                body = node.body or self._body(node, given, own)
                return self.graph(body, given, {}, {**body.defaults, **own})
            return self._called(node, given, values, own)
        except dt.InternalError:
            raise
        except dt.DovetailError as error:
            said = str(error)
            if not said.startswith("onnx: "):
                error.args = (f"onnx: {node}: {said}", *error.args[1:])
            raise
        except OTHERS as error:
            raise dt.ArgumentError(
                f"onnx: {node} cannot be done with what it is given: "
                f"{type(error).__name__}: {error}"
            ) from error

    # --- nodes

    def _called(
        self, node: Node, given: list[Any], values: Mapping[str, Any], own: dict[str, Any]
    ) -> Sequence[Any]:
        function = node.function
        assert function is not None
        if function.folds and self._is_small(given):
            found = self._constant(node, given, own)
            if found is not None:
                return found
        call = Call(node.op, node.version, own, self.device, len(node.outputs),
                    partial(self._inner, values))  # fmt: skip
        return _results(function.run(call, *self._inputs(given, function.host, self.device)))

    def _inner(self, values: Mapping[str, Any], graph: Graph, given: Sequence[Any]) -> list[Any]:
        return self.graph(graph, given, values, {})

    def _inputs(
        self, given: list[Any], host: tuple[int, ...] | None, device: dt.Device
    ) -> list[Any]:
        if host is None:
            return given
        return [x if i in host else self.tensor(x, device) for i, x in enumerate(given)]

    def tensor(self, x: Any, device: dt.Device) -> Any:
        """A value as an operator takes it: arrays as tensors, each one made once."""
        if not isinstance(x, np.ndarray):
            return x
        if device is not self.device:
            return dt.asarray(x, device=device, copy=True)
        known = self.tensors.get(id(x))
        if known is None or known[0] is not x:
            with uncaptured():
                known = x, dt.asarray(x, device=device, copy=True)
                dt.evaluate(known[1])
            if len(self.tensors) < KEPT:
                self.tensors[id(x)] = known
        return known[1]

    # --- constants

    def _is_small(self, given: list[Any]) -> bool:
        return all(x is None or (isinstance(x, np.ndarray) and x.size <= FOLDED) for x in given)

    def _constant(self, node: Node, given: list[Any], own: dict[str, Any]) -> list[Any] | None:
        """What constants give, which is computed once; None where that is no small constant."""
        key = (
            id(node),
            tuple([None if x is None else (x.dtype.str, x.shape, x.tobytes()) for x in given]),
            _static(own),
        )
        if key in self.folded:
            found: list[Any] | None = self.folded[key]
            return found
        function, device = node.function, dt.device(HOST)
        assert function is not None
        call = Call(node.op, node.version, own, device, len(node.outputs), _no_graphs)
        with uncaptured(), dt.no_grad():
            made = _results(function.run(call, *self._inputs(given, function.host, device)))
            found = None
            if all(_is_small_result(v) for v in made):
                found = [array_of(v) if isinstance(v, dt.Tensor) else v for v in made]
        if len(self.folded) < KEPT:
            self.folded[key] = found
        return found

    # --- functions whose graph depends on what they are given

    def _body(self, node: Node, given: list[Any], own: dict[str, Any]) -> Graph:
        kinds = [None if x is None else (_element(x), tuple(x.shape)) for x in given]
        key = (id(node), tuple(kinds), _static(own))
        found = self.bodies.get(key)
        if found is None:
            found = self._made_body(node, given, own)
            if len(self.bodies) < KEPT:
                self.bodies[key] = found
        return found

    def _bound_proto(self, node: Node, own: dict[str, Any]) -> bytes:
        """The node with the attributes that a function around it was called with."""
        onnx = self.reading.onnx
        proto = onnx.NodeProto()
        proto.ParseFromString(node.proto)
        for a in list(proto.attribute):
            if a.ref_attr_name:
                proto.attribute.remove(a)
                if own.get(a.name) is not None:
                    proto.attribute.append(onnx.helper.make_attribute(a.name, own[a.name]))
        made: bytes = proto.SerializeToString()
        return made

    def _made_body(self, node: Node, given: list[Any], own: dict[str, Any]) -> Graph:
        onnx = self.reading.onnx
        schema = onnx.defs.get_schema(node.op, node.version, node.domain)
        types = [
            b"" if x is None else
            onnx.helper.make_tensor_type_proto(_element(x), list(x.shape)).SerializeToString()
            for x in given
        ]  # fmt: skip
        types += [b""] * (len(node.inputs) - len(types))
        made = schema.get_context_dependent_function_with_opset_version(
            node.version, self._bound_proto(node, own), types
        )
        f = onnx.FunctionProto()
        f.ParseFromString(made)
        graph = self.reading.function(f, 1, True)
        self.reading.require_known()
        return graph


def _bound(a: Any, attributes: Mapping[str, Any]) -> Any:
    return attributes.get(a.name) if isinstance(a, Reference) else a


def _static(own: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Attributes that a function may have been called with; others are a node's own."""
    plain = [(k, tuple(v) if isinstance(v, list) else v) for k, v in own.items()]
    return tuple([(k, v) for k, v in plain if isinstance(v, (int, float, str, tuple))])


def _results(made: Any) -> Sequence[Any]:
    return made if isinstance(made, tuple) else (made,)


def _is_small_result(v: Any) -> bool:
    if isinstance(v, dt.Tensor):
        return v.size <= FOLDED
    return v is None or isinstance(v, np.ndarray)


def _element(x: Any) -> int:
    return ELEMENTS[
        x.dtype
        if isinstance(x, dt.Tensor)
        else dt.asarray(x[:0] if x.ndim else x, device=HOST).dtype
    ]


def _no_graphs(*given: object) -> list[Any]:
    raise dt.ArgumentError("onnx: constants have no graphs")
