"""An interpreter of model graphs: each node is a function of the table or a graph of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import dovetail as dt
from dovetail.extend import uncaptured

from .library import ELEMENTS, array_of
from .limits import NODES_MAX, MemoryBudget, nbytes_of
from .operators import FOLDED_ELEMENTS_MAX, OperatorCall
from .structure import (
    AttributeReference,
    GeneratedGraph,
    ModelReader,
    OnnxGraph,
    OperatorNode,
)

HOST = "reference"  # device of constant folding: every machine has it, and bits are the same
CACHE_ENTRIES_MAX = 4096  # of folded constants, tensors and bodies
# Errors that Python raises for invalid values; dovetail's own errors pass through.
VALUE_ERRORS = (
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    AssertionError,
)


class Interpreter:
    """An interpreter of graphs on a device, with caches of folded constants and bodies."""

    def __init__(self, device: dt.Device, limit: MemoryBudget, reader: ModelReader) -> None:
        self.device, self.limit, self.reader = device, limit, reader
        self.tensors: dict[int, tuple[np.ndarray, dt.Tensor]] = {}  # of constants, by their ids
        # Values have their nodes, so that no other node gets the id that is in a key.
        self.folded: dict[Any, tuple[OperatorNode, list[Any] | None]] = {}
        self.bodies: dict[Any, tuple[OperatorNode, OnnxGraph]] = {}
        self.body_nodes = 0  # of all bodies in the cache

    # --- graphs

    def run_graph(
        self,
        graph: OnnxGraph,
        inputs: Sequence[Any],
        outer: Mapping[str, Any],
        attributes: Mapping[str, Any],
    ) -> list[Any]:
        """Run a graph and return its outputs; memory is reserved and released as values live.

        `outer`: values of the graphs around it. `attributes`: those of the function it is in.
        """
        if len(inputs) > len(graph.inputs):
            raise dt.ArgumentError(
                f"onnx: the graph {graph.name!r} takes at most {len(graph.inputs)} inputs, got "
                f"{len(inputs)}"
            )
        values: dict[str, Any] = {**outer, **graph.constants}
        names = [v.name for v in graph.inputs]
        values.update(zip(names, [*inputs, *[None] * (len(names) - len(inputs))], strict=True))
        sizes: dict[str, int] = {}
        try:
            for node in graph.nodes:
                self._run_node(node, values, sizes, attributes)
            return [values.get(v.name) for v in graph.outputs]
        finally:
            self.limit.release(sum(sizes.values()))

    def _run_node(
        self,
        node: OperatorNode,
        values: dict[str, Any],
        sizes: dict[str, int],
        attributes: Mapping[str, Any],
    ) -> None:
        """Run a node, store its outputs in `values`, and remove values without later readers."""
        inputs = [values[n] if n else None for n in node.inputs]
        while inputs and inputs[-1] is None:
            inputs.pop()
        own = {k: _resolve_attribute(a, attributes) for k, a in node.attributes.items()}
        results = self._run_checked(node, inputs, values, own)
        for name, value in zip(node.outputs, results, strict=False):
            if name:
                nbytes = nbytes_of(value)
                self.limit.reserve(nbytes, f"{name!r}, of {node},")
                sizes[name], values[name] = nbytes, value
        for name in node.drops:
            self.limit.release(sizes.pop(name, 0))
            values.pop(name, None)

    def _run_checked(
        self,
        node: OperatorNode,
        inputs: list[Any],
        values: Mapping[str, Any],
        attributes: dict[str, Any],
    ) -> Sequence[Any]:
        """Return a node's results; name the node in errors.

        Raises: DovetailError; also for errors of values, as ArgumentError, and MemoryError, as
        OutOfMemoryError.
        """
        try:
            if node.function is None:
                body = node.body or self._cached_body(node, inputs, attributes)
                return self.run_graph(body, inputs, {}, {**body.defaults, **attributes})
            return self._call_function(node, inputs, values, attributes)
        except dt.InternalError:
            raise
        except dt.DovetailError as error:
            text = str(error)
            if not text.startswith("onnx: "):
                error.args = (f"onnx: {node}: {text}", *error.args[1:])
            raise
        except MemoryError as error:
            raise dt.OutOfMemoryError(f"onnx: {node} is out of memory: {error}") from error
        except VALUE_ERRORS as error:
            raise dt.ArgumentError(
                f"onnx: {node} failed for its inputs: {type(error).__name__}: {error}"
            ) from error

    # --- nodes

    def _call_function(
        self,
        node: OperatorNode,
        inputs: list[Any],
        values: Mapping[str, Any],
        attributes: dict[str, Any],
    ) -> Sequence[Any]:
        """Call the function of an operator, or return folded results of small constants."""
        function = node.function
        assert function is not None
        if function.folds and self._is_small(inputs):
            folded = self._fold(node, inputs, attributes)
            if folded is not None:
                return folded
        return self._run_operator(
            node, inputs, attributes, self.device, partial(self._run_subgraph, values)
        )

    def _run_operator(
        self,
        node: OperatorNode,
        inputs: list[Any],
        attributes: dict[str, Any],
        device: dt.Device,
        graphs: Callable[..., list[Any]],
    ) -> Sequence[Any]:
        """Return an operator's results; release what it reserved for its temporary values."""
        function = node.function
        assert function is not None
        reserved: list[int] = []

        def reserve(nbytes: int) -> None:
            """Reserve bytes until the operator returns. Raises: OutOfMemoryError if too many."""
            self.limit.reserve(nbytes, str(node))
            reserved.append(nbytes)

        call = OperatorCall(
            node.op, node.version, attributes, device, len(node.outputs), graphs, reserve
        )
        try:
            return _to_tuple(
                function.run(call, *self._convert_inputs(inputs, function.host, device))
            )
        finally:
            self.limit.release(sum(reserved))

    def _run_subgraph(
        self, values: Mapping[str, Any], graph: OnnxGraph, inputs: Sequence[Any]
    ) -> list[Any]:
        """Run a graph of a node, which may read the values of the outer graph."""
        return self.run_graph(graph, inputs, values, {})

    def _convert_inputs(
        self, inputs: list[Any], host: tuple[int, ...] | None, device: dt.Device
    ) -> list[Any]:
        """Return inputs as tensors, except arrays at positions that `host` allows."""
        if host is None:
            return inputs
        return [x if i in host else self.tensor(x, device) for i, x in enumerate(inputs)]

    def tensor(self, x: Any, device: dt.Device) -> Any:
        """Copy an array to a tensor, cached for the own device; return others unchanged."""
        if not isinstance(x, np.ndarray):
            return x
        if device is not self.device:
            return dt.asarray(x, device=device, copy=True)
        cached = self.tensors.get(id(x))
        if cached is None or cached[0] is not x:
            with uncaptured():
                cached = x, dt.asarray(x, device=device, copy=True)
                dt.evaluate(cached[1])
            if len(self.tensors) < CACHE_ENTRIES_MAX:
                self.tensors[id(x)] = cached
        return cached[1]

    # --- constants

    def _is_small(self, inputs: list[Any]) -> bool:
        """Return True if all inputs are missing, or host arrays that are small."""
        return all(
            x is None or (isinstance(x, np.ndarray) and x.size <= FOLDED_ELEMENTS_MAX)
            for x in inputs
        )

    def _fold(
        self, node: OperatorNode, inputs: list[Any], attributes: dict[str, Any]
    ) -> list[Any] | None:
        """Return a node's results, cached by its constant inputs; None if a tensor is not small."""
        key = (
            id(node),
            tuple([None if x is None else (x.dtype.str, x.shape, x.tobytes()) for x in inputs]),
            _attribute_key(attributes),
        )
        cached = self.folded.get(key)
        if cached is not None:
            return cached[1]
        folded: list[Any] | None = None
        with uncaptured(), dt.no_grad():
            results = self._run_operator(
                node, inputs, attributes, dt.device(HOST), _raise_no_graphs
            )
            if all(_is_small_result(v) for v in results):
                folded = [array_of(v) if isinstance(v, dt.Tensor) else v for v in results]
        if len(self.folded) < CACHE_ENTRIES_MAX:
            self.folded[key] = node, folded
        return folded

    # --- functions whose graph depends on the dtypes and shapes of inputs

    def _cached_body(
        self, node: OperatorNode, inputs: list[Any], attributes: dict[str, Any]
    ) -> OnnxGraph:
        """Return the operator's graph for these dtypes and shapes, cached."""
        kinds = [None if x is None else (_element_type(x), tuple(x.shape)) for x in inputs]
        key = (id(node), tuple(kinds), _attribute_key(attributes))
        cached = self.bodies.get(key)
        if cached is not None:
            return cached[1]
        body = self._build_body(node, inputs, attributes)
        count = self.body_nodes + body.node_count
        is_new = key not in self.bodies  # another thread may have built it, too
        if is_new and len(self.bodies) < CACHE_ENTRIES_MAX and count <= NODES_MAX:
            self.body_nodes, self.bodies[key] = count, (node, body.graph)
        else:
            body.constants.release()
        return body.graph

    def _resolve_proto(self, node: OperatorNode, attributes: dict[str, Any]) -> bytes:
        """Return the serialized node, with references replaced by the values of attributes."""
        onnx = self.reader.onnx
        proto = onnx.NodeProto()
        proto.ParseFromString(node.proto)
        for a in list(proto.attribute):
            if a.ref_attr_name:
                proto.attribute.remove(a)
                if attributes.get(a.name) is not None:
                    proto.attribute.append(onnx.helper.make_attribute(a.name, attributes[a.name]))
        raw: bytes = proto.SerializeToString()
        return raw

    def _build_body(
        self, node: OperatorNode, inputs: list[Any], attributes: dict[str, Any]
    ) -> GeneratedGraph:
        """Build an operator's graph for inputs of these dtypes and shapes, by onnx's schema."""
        onnx = self.reader.onnx
        schema = onnx.defs.get_schema(node.op, node.version, node.domain)
        types = [
            b""
            if x is None
            else onnx.helper.make_tensor_type_proto(
                _element_type(x), list(x.shape)
            ).SerializeToString()
            for x in inputs
        ]
        types += [b""] * (len(node.inputs) - len(types))
        raw = schema.get_context_dependent_function_with_opset_version(
            node.version, self._resolve_proto(node, attributes), types
        )
        f = onnx.FunctionProto()
        f.ParseFromString(raw)
        return self.reader.read_generated(f)


def _resolve_attribute(a: Any, attributes: Mapping[str, Any]) -> Any:
    """Return an attribute, or the value of the one to which it refers."""
    return attributes.get(a.name) if isinstance(a, AttributeReference) else a


def _attribute_key(attributes: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return the hashable attributes, as part of a cache key.

    A call of a function can change only these; other attributes belong to the node.
    """
    plain = [(k, tuple(v) if isinstance(v, list) else v) for k, v in attributes.items()]
    return tuple([(k, v) for k, v in plain if isinstance(v, (int, float, str, tuple))])


def _to_tuple(value: Any) -> Sequence[Any]:
    """Return a tuple unchanged, and any other value in a tuple of one element."""
    return value if isinstance(value, tuple) else (value,)


def _is_small_result(v: Any) -> bool:
    """Return True for arrays, None, and tensors of up to FOLDED_ELEMENTS_MAX elements."""
    if isinstance(v, dt.Tensor):
        return v.size <= FOLDED_ELEMENTS_MAX
    return v is None or isinstance(v, np.ndarray)


def _element_type(x: Any) -> int:
    """Return ONNX's element type of a tensor or an array."""
    return ELEMENTS[
        x.dtype
        if isinstance(x, dt.Tensor)
        else dt.asarray(x[:0] if x.ndim else x, device=HOST).dtype
    ]


def _raise_no_graphs(*arguments: object) -> list[Any]:
    """Raise ArgumentError: a folded node has a subgraph."""
    raise dt.ArgumentError("onnx: constants must not have subgraphs")
