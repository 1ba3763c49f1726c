"""Graphs and nodes of a model as plain values, with checked names, order and attributes.

No content of a file is trusted. The interpreter runs these graphs without reading the file again.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dovetail as dt

from .library import Proto, dtype_of, import_onnx
from .limits import DEPTH_MAX, NODES_MAX, MemoryBudget, Reservation
from .operators import FOLDED_ELEMENTS_MAX, OPERATORS, OperatorImplementation, find_operator
from .tensors import values_of

OPSET_MIN = 7  # since this opset, operators broadcast as they do now
# Operators that lost attributes by opset 7, such as `consumed_inputs` and `is_test`, which do not
# change what inference computes.
_UNCHANGED = """Abs AveragePool BatchNormalization Ceil Dropout Elu Exp Floor GRU Gemm HardSigmoid
InstanceNormalization LSTM LeakyRelu Log Max Mean Min Neg RNN Reciprocal Relu Selu Sigmoid Sqrt Sum
Tanh"""
SAME_IN_INFERENCE = frozenset(_UNCHANGED.split())
ALIASES = {"ai.onnx": ""}


@dataclass(frozen=True)
class ValueInfo:
    """An input or output: its name, the dtype of its tensors, and its shape.

    Sizes are ints, names of sizes, or None for any size. The dtype and the shape are None if the
    model does not state them. `kind` is "tensor", "sequence" or "optional".
    """

    name: str
    dtype: dt.DType | None
    shape: tuple[int | str | None, ...] | None
    kind: str = "tensor"


@dataclass(frozen=True)
class AttributeReference:
    """A reference from a node in a function to an attribute of the function's call."""

    name: str


@dataclass
class OperatorNode:
    """A use of an operator."""

    op: str
    domain: str
    version: int
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    function: OperatorImplementation | None = None  # the operator's implementation
    body: OnnxGraph | None = None  # or the graph of a function
    proto: bytes = b""  # serialized node, if its body depends on dtypes and shapes of inputs
    drops: tuple[str, ...] = ()  # values that no later node reads

    def __str__(self) -> str:
        named = f" {self.name!r}" if self.name else ""
        return f"the node{named} ({self.domain + '.' if self.domain else ''}{self.op})"

    def reads(self) -> set[str]:
        """Return the names that the node reads, also within its graphs."""
        names = {n for n in self.inputs if n}
        for graph in graphs_of(self.attributes):
            names |= graph.reads()
        return names


@dataclass
class OnnxGraph:
    """A graph: inputs, outputs, constants, and nodes in order of execution."""

    name: str
    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    constants: dict[str, Any]
    nodes: list[OperatorNode]
    defaults: dict[str, Any] = field(default_factory=dict)  # of a function's attributes

    def reads(self) -> set[str]:
        """Return the names of outer graphs that the graph reads."""
        own = {v.name for v in self.inputs} | {*self.constants}
        own |= {n for node in self.nodes for n in node.outputs}
        read = {n for node in self.nodes for n in node.reads()}
        return (read | {v.name for v in self.outputs}) - own


def graphs_of(attributes: Mapping[str, Any]) -> Iterator[OnnxGraph]:
    """Yield the graphs among the attributes of a node."""
    for a in attributes.values():
        for one in a if isinstance(a, list) else [a]:
            if isinstance(one, OnnxGraph):
                yield one


class GeneratedGraph(NamedTuple):
    """The graph of a generated function, its number of nodes, and the bytes of its constants."""

    graph: OnnxGraph
    node_count: int
    constants: Reservation


class ModelReader:
    """A reader of one model: protobuf messages to checked graphs."""

    def __init__(self, model: Proto, folder: Path | None, limit: MemoryBudget) -> None:
        self.onnx, self.folder = import_onnx(), folder
        self.limit: MemoryBudget | Reservation = limit
        self.unknown: Counter[str] = Counter()
        self.count = 0
        self.open: list[tuple[str, str]] = []  # stack of functions that are read now
        self.functions = {
            (_canonical_domain(f.domain), f.name, getattr(f, "overload", "")): f
            for f in model.functions
        }
        self.bodies: dict[tuple[Any, ...], tuple[OnnxGraph, int]] = {}
        self.opsets = self._read_opsets(model.opset_import, "the model")

    # --- the model

    def read(self, model: Proto) -> OnnxGraph:
        """Return the model's graph.

        Raises: UnsupportedError, with all operators that are unknown.
        """
        graph = self.graph(model.graph, self.opsets, frozenset(), 0)
        self.require_known()
        return graph

    def read_generated(self, f: Proto) -> GeneratedGraph:
        """Read a function that was generated for one node while the model runs.

        The reader does not change, so that threads can read at once, and a function that fails has
        no effect on others. Raises: DovetailError.
        """
        assert isinstance(self.limit, MemoryBudget)
        reader, constants = copy.copy(self), Reservation(self.limit)
        reader.unknown, reader.count, reader.open = Counter(), 0, []
        reader.bodies, reader.limit = {**self.bodies}, constants
        try:
            graph = reader.function(f, 1, True)
            reader.require_known()
        except BaseException:
            constants.release()
            raise
        return GeneratedGraph(graph, reader.count, constants)

    def require_known(self) -> None:
        """Raise UnsupportedError if there were unknown operators."""
        if self.unknown:
            listed = ", ".join(f"{op} ({n} x)" for op, n in sorted(self.unknown.items()))
            raise dt.UnsupportedError(
                f"onnx.load: the model has operators that dovetail does not support: {listed}; "
                "docs/onnx.md lists the supported ones"
            )

    def _read_opsets(self, imported: Any, what: str) -> dict[str, int]:
        """Return the opset of each domain.

        Raises: UnsupportedError if the opset is not supported.
        """
        versions = {_canonical_domain(o.domain): int(o.version) for o in imported}
        newest = self.onnx.defs.onnx_opset_version()
        version = versions.setdefault("", 1 if what == "the model" and not versions else newest)
        if not 1 <= version <= newest:
            raise dt.UnsupportedError(
                f"onnx.load: {what} has opset {version}, and dovetail reads {OPSET_MIN} to "
                f"{newest} (of older ones, operators that have not changed since); convert it "
                "with onnx.version_converter.convert_version"
            )
        return versions

    def _count_nodes(self, nodes: int, what: str) -> None:
        """Add to the number of nodes. Raises: ArgumentError above NODES_MAX."""
        self.count += nodes
        if self.count > NODES_MAX:
            raise dt.ArgumentError(
                f"onnx.load: the model must have at most {NODES_MAX} nodes with {what} expanded; "
                "it may be made to fill memory"
            )

    # --- graphs

    def graph(
        self, g: Proto, opsets: dict[str, int], outer: frozenset[str], depth: int
    ) -> OnnxGraph:
        """Read a GraphProto, which may read the names `outer`.

        Raises: ArgumentError if it is invalid or nested too deeply, UnsupportedError for sparse
        initializers; the errors of `values_of`.
        """
        if depth > DEPTH_MAX:
            raise dt.ArgumentError(
                f"onnx.load: graphs must be nested at most {DEPTH_MAX} deep, got {depth}; the "
                "model may be made to exhaust the stack"
            )
        if len(g.sparse_initializer):
            raise dt.UnsupportedError(
                f"onnx.load: the graph {g.name!r} has sparse initializers, which dovetail does "
                "not support"
            )
        constants = {}
        for t in g.initializer:
            if not t.name or t.name in constants:
                raise dt.ArgumentError(
                    f"onnx.load: the initializers of the graph {g.name!r} must have different, "
                    f"non-empty names, got {t.name!r}"
                )
            constants[t.name] = values_of(t, self.folder, self.limit)
        inputs = tuple(read_value_info(v) for v in g.input if v.name not in constants or depth)
        defined = {*outer, *constants}
        _define(defined, [v.name for v in inputs], f"the graph {g.name!r}")
        nodes = self._read_nodes(g.node, opsets, defined, depth, f"the graph {g.name!r}")
        outputs = tuple(read_value_info(v) for v in g.output)
        return _set_drops(OnnxGraph(g.name, inputs, outputs, constants, nodes), defined)

    def _read_nodes(
        self, protos: Any, opsets: dict[str, int], defined: set[str], depth: int, where: str
    ) -> list[OperatorNode]:
        """Read nodes in order; add their outputs to `defined`.

        Raises: ArgumentError for an input that is not defined, an output that is, and too many
        nodes; the errors of `_read_node`.
        """
        self._count_nodes(len(protos), where)
        nodes = []
        for p in protos:
            node = self._read_node(p, opsets, defined, depth)
            missing = sorted({n for n in node.inputs if n} - defined)
            if missing:
                raise dt.ArgumentError(
                    f"onnx.load: {node} in {where} reads {', '.join(map(repr, missing[:8]))}, "
                    "which no earlier node defines; nodes must be in topological order"
                )
            _define(defined, [n for n in node.outputs if n], str(node))
            nodes.append(node)
        return nodes

    def function(self, f: Proto, depth: int, partial: bool = False) -> OnnxGraph:
        """Read a FunctionProto; with `partial`, outputs may be undefined.

        Raises: ArgumentError if it calls itself or is nested too deeply; the errors of
        `_read_nodes`.
        """
        name = (_canonical_domain(f.domain), f.name)
        if name in self.open or depth > DEPTH_MAX:
            raise dt.ArgumentError(
                f"onnx.load: the function {f.name!r} must not call itself, got "
                f"{' -> '.join(n for _, n in self.open)}"
            )
        self.open.append(name)
        opsets = {**self.opsets, **self._read_opsets(f.opset_import, f"the function {f.name!r}")}
        defined = _define(set(), list(f.input), f"the function {f.name!r}")
        nodes = self._read_nodes(f.node, opsets, defined, depth, f"the function {f.name!r}")
        self.open.pop()
        inputs = tuple(ValueInfo(n, None, None) for n in f.input)
        outputs = tuple(ValueInfo(n, None, None) for n in f.output)
        defaults = {a.name: self.attribute(a, opsets, defined, depth) for a in f.attribute_proto}
        return _set_drops(OnnxGraph(f.name, inputs, outputs, {}, nodes, defaults), defined, partial)

    # --- nodes

    def _read_node(
        self, p: Proto, opsets: dict[str, int], defined: set[str], depth: int
    ) -> OperatorNode:
        """Read a NodeProto, and find its implementation or the model's function."""
        domain = _canonical_domain(p.domain)
        version = opsets.get(domain, 1)
        attributes = {}
        for a in p.attribute:
            attributes[a.name] = self.attribute(a, opsets, defined, depth)
        node = OperatorNode(
            p.op_type, domain, version, p.name, tuple(p.input), tuple(p.output), attributes
        )
        function = self.functions.get((domain, p.op_type, getattr(p, "overload", "")))
        if function is not None:
            node.body = self._cached_function((domain, p.op_type), function, depth)
            self._require_counts(node, 0, len(function.input), len(function.output))
            return node
        self._resolve(node, p, depth)
        return node

    def _resolve(self, node: OperatorNode, p: Proto, depth: int) -> None:
        """Set the implementation or body of a node, or count its operator as unknown."""
        try:
            schema = self.onnx.defs.get_schema(node.op, node.version, node.domain)
        except self.onnx.defs.SchemaError:
            schema = None
        node.function = find_operator(node.domain, node.op, node.version)
        old = schema is not None and not node.domain and node.version < OPSET_MIN
        if old and not self._reads_old_form(node, schema):
            self.unknown[f"{node.op} of opset {node.version}"] += 1
            return
        if schema is None or (node.function is None and not _has_body(schema)):
            if node.function is None:
                self.unknown[f"{node.domain + '.' if node.domain else ''}{node.op}"] += 1
            return
        self._require_schema(node, schema)
        if node.function is None:
            if schema.has_function:
                node.body = self._cached_function(
                    (node.domain, node.op, node.version), self._schema_function(schema, node), depth
                )
                defaults = {
                    name: self.attribute(a.default_value, self.opsets, set(), depth)
                    for name, a in schema.attributes.items()
                    if a.default_value.type
                }
                node.attributes = {**defaults, **node.attributes}
            else:
                node.proto = p.SerializeToString()

    def _reads_old_form(self, node: OperatorNode, schema: Any) -> bool:
        """Return True if an operator of an opset below OPSET_MIN means the same, or has a form."""
        now = self.onnx.defs.get_schema(node.op, OPSET_MIN, "")
        if now.since_version == schema.since_version or node.op in SAME_IN_INFERENCE:
            return True
        return node.function is not find_operator("", node.op, OPSET_MIN)

    def _schema_function(self, schema: Any, node: OperatorNode) -> Proto:
        """Return the FunctionProto by which the onnx package defines an operator."""
        definition = schema.get_function_with_opset_version(node.version)
        if not isinstance(definition, bytes):
            return definition or schema.function_body
        proto = self.onnx.FunctionProto()
        proto.ParseFromString(definition)
        return proto

    def _cached_function(self, key: tuple[Any, ...], f: Proto, depth: int) -> OnnxGraph:
        """Return the graph of a function, cached; its nodes are counted at each use."""
        before = self.count
        cached = self.bodies.get(key)
        if cached is None:
            graph = self.function(f, depth + 1)
            self.bodies[key] = graph, self.count - before
            return graph
        self._count_nodes(cached[1], f"the function {f.name!r}")
        return cached[0]

    def _require_schema(self, node: OperatorNode, schema: Any) -> None:
        """Raise ArgumentError unless a node's operands and attributes fit its schema."""
        inputs = len(node.inputs)
        while inputs and not node.inputs[inputs - 1]:
            inputs -= 1
        self._require_counts(node, schema.min_input, schema.max_input, schema.max_output)
        if inputs < schema.min_input:
            raise dt.ArgumentError(
                f"onnx.load: {node} needs at least {schema.min_input} inputs, got {inputs}"
            )
        for name, a in schema.attributes.items():
            if a.required and name not in node.attributes:
                raise dt.ArgumentError(f"onnx.load: {node} must have the attribute {name!r}")
            value = node.attributes.get(name)
            type_name = str(a.type).rpartition(".")[2]
            if (
                value is not None
                and not isinstance(value, AttributeReference)
                and not _has_type(value, type_name)
            ):
                raise dt.ArgumentError(
                    f"onnx.load: the attribute {name} of {node} must be {type_name}, got "
                    f"{str(value)[:60]!r}"
                )

    def _require_counts(self, node: OperatorNode, least: int, most: int, results: int) -> None:
        """Raise ArgumentError if a node has too many or too few inputs or outputs."""
        if not least <= len(node.inputs) <= most or len(node.outputs) > results:
            raise dt.ArgumentError(
                f"onnx.load: {node} takes {least} to {most} inputs and has at most {results} "
                f"outputs, got {len(node.inputs)} and {len(node.outputs)}"
            )

    def attribute(self, a: Proto, opsets: dict[str, int], defined: set[str], depth: int) -> Any:
        """Read an AttributeProto as a Python value. Raises: UnsupportedError for other types."""
        if a.ref_attr_name:
            return AttributeReference(a.ref_attr_name)
        kind = self.onnx.AttributeProto.AttributeType.Name(a.type) if a.type in range(15) else ""
        reader = _ATTRIBUTES.get(kind)
        if reader is None:
            raise dt.UnsupportedError(
                f"onnx.load: the attribute {a.name!r} has the unsupported type {kind or a.type}"
            )
        return reader(self, a, opsets, defined, depth)

    def constant(self, t: Proto) -> Any:
        """Read a tensor attribute as an array, and reserve its bytes."""
        return values_of(t, self.folder, self.limit)


def _canonical_domain(name: str) -> str:
    """Return the name of a domain, with "" for the default one."""
    return ALIASES.get(name, name)


def _has_body(schema: Any) -> bool:
    """Return True if the onnx package defines an operator by other operators."""
    return bool(schema.has_function or schema.has_context_dependent_function)


def _define(defined: set[str], names: list[str], where: str) -> set[str]:
    """Add names to the set `defined`, and return it. Raises: ArgumentError for a duplicate."""
    for n in names:
        if n in defined:
            raise dt.ArgumentError(
                f"onnx.load: {where} defines {n!r} twice; each name must be defined once"
            )
        defined.add(n)
    return defined


def _set_drops(graph: OnnxGraph, defined: set[str], partial: bool = False) -> OnnxGraph:
    """Set each node's `drops`, and return the graph. Raises: ArgumentError for undefined outputs.

    `drops`: the values that no later node reads.
    `partial`: the function was generated for one node, and may lack outputs that the node ignores.
    """
    missing = [v.name for v in graph.outputs if v.name not in defined]
    if missing and not partial:
        raise dt.ArgumentError(
            f"onnx.load: no node of the graph {graph.name!r} defines its outputs "
            f"{', '.join(map(repr, missing[:8]))}"
        )
    live = {v.name for v in graph.outputs}
    droppable = {n for node in graph.nodes for n in node.outputs if n}
    droppable |= {v.name for v in graph.inputs}
    for node in reversed(graph.nodes):
        touched = node.reads() | {n for n in node.outputs if n}
        node.drops = tuple(sorted((touched & droppable) - live))
        live |= touched
    return graph


def _has_type(value: Any, type_name: str) -> bool:
    """Return True if an attribute's value has the type, or if the type is not checked."""
    python_types = {
        "INT": int,
        "FLOAT": float,
        "STRING": str,
        "TENSOR": np.ndarray,
        "GRAPH": OnnxGraph,
    }
    if type_name in python_types:
        return isinstance(value, python_types[type_name])
    if type_name.removesuffix("S") in python_types:
        return isinstance(value, list) and all(
            isinstance(v, python_types[type_name[:-1]]) for v in value
        )
    return True


# --- attributes -----------------------------------------------------------------------------------


def _decode_text(raw: bytes) -> str:
    """Decode a string of the file; invalid bytes become surrogates."""
    return raw.decode("utf-8", "surrogateescape")


def _read_graph(
    reader: ModelReader, g: Proto, opsets: Any, defined: set[str], depth: int
) -> OnnxGraph:
    """Read a graph attribute, which may read the names that are defined so far."""
    return reader.graph(g, opsets, frozenset(defined), depth + 1)


_ATTRIBUTES: dict[str, Callable[..., Any]] = {
    "FLOAT": lambda to, a, *_: float(a.f),
    "INT": lambda to, a, *_: int(a.i),
    "STRING": lambda to, a, *_: _decode_text(a.s),
    "TENSOR": lambda to, a, *_: to.constant(a.t),
    "GRAPH": lambda to, a, *context: _read_graph(to, a.g, *context),
    "FLOATS": lambda to, a, *_: [float(v) for v in a.floats],
    "INTS": lambda to, a, *_: [int(v) for v in a.ints],
    "STRINGS": lambda to, a, *_: [_decode_text(v) for v in a.strings],
    "TENSORS": lambda to, a, *_: [to.constant(t) for t in a.tensors],
    "GRAPHS": lambda to, a, *context: [_read_graph(to, g, *context) for g in a.graphs],
    "TYPE_PROTO": lambda to, a, *_: a.tp.SerializeToString(),
}


# --- inputs and outputs ---------------------------------------------------------------------------


def read_value_info(v: Proto) -> ValueInfo:
    """Read a ValueInfoProto. Raises: DTypeError for other kinds of values."""
    kind, t = "tensor", v.type
    while t.WhichOneof("value") in ("sequence_type", "optional_type"):
        wrapper = t.WhichOneof("value")
        kind = kind if kind != "tensor" else wrapper.removesuffix("_type")
        t = getattr(t, wrapper).elem_type
    if t.WhichOneof("value") not in (None, "tensor_type"):
        raise dt.DTypeError(
            f"onnx.load: {v.name!r} must be a tensor, a sequence of tensors or an optional one, "
            f"got {t.WhichOneof('value')}"
        )
    if not t.HasField("tensor_type") or not t.tensor_type.elem_type:
        return ValueInfo(v.name, None, None, kind)
    d = dtype_of(t.tensor_type.elem_type, repr(v.name))
    if not t.tensor_type.HasField("shape"):
        return ValueInfo(v.name, d, None, kind)
    sizes = [_read_dimension(s) for s in t.tensor_type.shape.dim]
    return ValueInfo(v.name, d, tuple(sizes), kind)


def _read_dimension(s: Proto) -> int | str | None:
    """Return a size, the name of a size, or None if the size is unknown."""
    which = s.WhichOneof("value")
    return None if which is None else int(s.dim_value) if which == "dim_value" else str(s.dim_param)


__all__ = [
    "FOLDED_ELEMENTS_MAX",
    "OPERATORS",
    "AttributeReference",
    "ModelReader",
    "OnnxGraph",
    "OperatorNode",
    "ValueInfo",
    "graphs_of",
    "read_value_info",
]
