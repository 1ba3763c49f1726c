"""What a model is, as plain values: graphs of nodes whose names, order and attributes are checked.

Nothing of a file is trusted: what is made here can be run without looking at the file again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import dovetail as dt

from .library import Proto, dtype_of, library
from .limits import DEPTH, NODES, Limit
from .operators import FOLDED, ROWS, Function, row_of
from .tensors import values_of

OLDEST = 7  # the opset from which on operators broadcast as they do now
ALIASES = {"ai.onnx": ""}


@dataclass(frozen=True)
class Value:
    """An input or output: its name, the dtype of its tensors, and its shape.

    Sizes are ints, names of sizes, or None where any will do. The dtype and the shape are None
    where the model does not say. `kind` is "tensor", "sequence" or "optional".
    """

    name: str
    dtype: dt.DType | None
    shape: tuple[int | str | None, ...] | None
    kind: str = "tensor"


@dataclass(frozen=True)
class Reference:
    """An attribute of a function's node that is what the function was called with."""

    name: str


@dataclass
class Node:
    """A use of an operator."""

    op: str
    domain: str
    version: int
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    function: Function | None = None  # what does it
    body: Graph | None = None  # or the graph that does, of a function
    proto: bytes = b""  # of a node whose body depends on what it is given
    drops: tuple[str, ...] = ()  # values that nobody asks for after it

    def __str__(self) -> str:
        named = f" {self.name!r}" if self.name else ""
        return f"the node{named} ({self.domain + '.' if self.domain else ''}{self.op})"

    def asks(self) -> set[str]:
        """The names that it reads, also within its graphs."""
        found = {n for n in self.inputs if n}
        for graph in graphs_of(self.attributes):
            found |= graph.asks()
        return found


@dataclass
class Graph:
    """Nodes in order, what they are given and what they give."""

    name: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    constants: dict[str, Any]
    nodes: list[Node]
    defaults: dict[str, Any] = field(default_factory=dict)  # of a function's attributes

    def asks(self) -> set[str]:
        """The names of outer graphs that it reads."""
        mine = {v.name for v in self.inputs} | {*self.constants}
        mine |= {n for node in self.nodes for n in node.outputs}
        found = {n for node in self.nodes for n in node.asks()}
        return (found | {v.name for v in self.outputs}) - mine


def graphs_of(attributes: Mapping[str, Any]) -> Iterator[Graph]:
    """The graphs among the attributes of a node."""
    for a in attributes.values():
        for one in a if isinstance(a, list) else [a]:
            if isinstance(one, Graph):
                yield one


class Reading:
    """One model, being read."""

    def __init__(self, model: Proto, folder: Path | None, limit: Limit) -> None:
        self.onnx, self.folder, self.limit = library(), folder, limit
        self.unknown: Counter[str] = Counter()
        self.count = 0
        self.open: list[tuple[str, str]] = []  # functions that are being read
        self.functions = {
            (_domain(f.domain), f.name, getattr(f, "overload", "")): f for f in model.functions
        }
        self.bodies: dict[tuple[Any, ...], tuple[Graph, int]] = {}
        self.opsets = self._opsets(model.opset_import, "the model")

    # --- the whole

    def read(self, model: Proto) -> Graph:
        """The model's graph. Raises: NotYetError, with all operators that are not known."""
        graph = self.graph(model.graph, self.opsets, frozenset(), 0)
        self.require_known()
        return graph

    def require_known(self) -> None:
        """Raises: NotYetError, where operators are not known."""
        if self.unknown:
            listed = ", ".join(f"{op} ({n} x)" for op, n in sorted(self.unknown.items()))
            raise dt.NotYetError(
                f"onnx.load: the model has operators that are not known here: {listed}; "
                "docs/onnx.md lists those that are"
            )

    def _opsets(self, imported: Any, what: str) -> dict[str, int]:
        found = {_domain(o.domain): int(o.version) for o in imported}
        newest = self.onnx.defs.onnx_opset_version()
        version = found.setdefault("", 1 if what == "the model" and not found else newest)
        if not 1 <= version <= newest:
            raise dt.NotYetError(
                f"onnx.load: {what} has opset {version}; known are {OLDEST} to {newest}, and of "
                "older ones what has not changed since; onnx.version_converter.convert_version "
                "makes another one of it"
            )
        return found

    def _counted(self, nodes: int, what: str) -> None:
        self.count += nodes
        if self.count > NODES:
            raise dt.ArgumentError(
                f"onnx.load: with {what} written out the model has more than {NODES} nodes; is it "
                "made to fill memory?"
            )

    # --- graphs

    def graph(self, g: Proto, opsets: dict[str, int], outer: frozenset[str], depth: int) -> Graph:
        """A GraphProto. `outer`: the names that it may read of graphs around it."""
        if depth > DEPTH:
            raise dt.ArgumentError(
                f"onnx.load: graphs are {depth} deep in each other; is it a bomb?"
            )
        if len(g.sparse_initializer):
            raise dt.NotYetError(f"onnx.load: the graph {g.name!r} has sparse initialisers")
        constants = {}
        for t in g.initializer:
            if not t.name or t.name in constants:
                raise dt.ArgumentError(
                    f"onnx.load: the graph {g.name!r} has two initialisers {t.name!r}, or one "
                    "without a name"
                )
            constants[t.name] = values_of(t, self.folder, self.limit)
        inputs = tuple(value(v) for v in g.input if v.name not in constants or depth)
        known = {*outer, *constants}
        _added(known, [v.name for v in inputs], f"the graph {g.name!r}")
        nodes = self._nodes(g.node, opsets, known, depth, f"the graph {g.name!r}")
        outputs = tuple(value(v) for v in g.output)
        return _finished(Graph(g.name, inputs, outputs, constants, nodes), known)

    def _nodes(
        self, protos: Any, opsets: dict[str, int], known: set[str], depth: int, where: str
    ) -> list[Node]:
        self._counted(len(protos), where)
        nodes = []
        for p in protos:
            node = self._node(p, opsets, known, depth)
            missing = sorted({n for n in node.inputs if n} - known)
            if missing:
                raise dt.ArgumentError(
                    f"onnx.load: {node} in {where} reads {', '.join(map(repr, missing[:8]))}, "
                    "which nothing before it gives: nodes go in a circle, or are out of order"
                )
            _added(known, [n for n in node.outputs if n], str(node))
            nodes.append(node)
        return nodes

    def function(self, f: Proto, depth: int, partial: bool = False) -> Graph:
        """A FunctionProto as a graph."""
        called = (_domain(f.domain), f.name)
        if called in self.open or depth > DEPTH:
            raise dt.ArgumentError(
                f"onnx.load: the function {f.name!r} calls itself, by "
                f"{' -> '.join(n for _, n in self.open)}, which no model may do"
            )
        self.open.append(called)
        opsets = {**self.opsets, **self._opsets(f.opset_import, f"the function {f.name!r}")}
        known = _added(set(), list(f.input), f"the function {f.name!r}")
        nodes = self._nodes(f.node, opsets, known, depth, f"the function {f.name!r}")
        self.open.pop()
        inputs = tuple(Value(n, None, None) for n in f.input)
        outputs = tuple(Value(n, None, None) for n in f.output)
        defaults = {a.name: self.attribute(a, opsets, known, depth) for a in f.attribute_proto}
        return _finished(Graph(f.name, inputs, outputs, {}, nodes, defaults), known, partial)

    # --- nodes

    def _node(self, p: Proto, opsets: dict[str, int], known: set[str], depth: int) -> Node:
        domain = _domain(p.domain)
        version = opsets.get(domain, 1)
        attributes = {}
        for a in p.attribute:
            attributes[a.name] = self.attribute(a, opsets, known, depth)
        node = Node(p.op_type, domain, version, p.name, tuple(p.input), tuple(p.output), attributes)
        mine = self.functions.get((domain, p.op_type, getattr(p, "overload", "")))
        if mine is not None:
            node.body = self._body((domain, p.op_type), mine, depth)
            self._require_counts(node, 0, len(mine.input), len(mine.output))
            return node
        self._find(node, p, depth)
        return node

    def _find(self, node: Node, p: Proto, depth: int) -> None:
        """Has a node know what does it; or notes that nothing does."""
        try:
            schema = self.onnx.defs.get_schema(node.op, node.version, node.domain)
        except self.onnx.defs.SchemaError:
            schema = None
        node.function = row_of(node.domain, node.op, node.version)
        old = schema is not None and not node.domain and node.version < OLDEST
        if old and not self._is_unchanged(node, schema):
            self.unknown[f"{node.op} of opset {node.version}"] += 1
            return
        if schema is None or (node.function is None and not _has_body(schema)):
            if node.function is None:
                self.unknown[f"{node.domain + '.' if node.domain else ''}{node.op}"] += 1
            return
        self._require_schema(node, schema)
        if node.function is None:
            if schema.has_function:
                node.body = self._body(
                    (node.domain, node.op, node.version), self._library_body(schema, node), depth
                )
                defaults = {
                    name: self.attribute(a.default_value, self.opsets, set(), depth)
                    for name, a in schema.attributes.items() if a.default_value.type
                }  # fmt: skip
                node.attributes = {**defaults, **node.attributes}
            else:
                node.proto = p.SerializeToString()

    def _is_unchanged(self, node: Node, schema: Any) -> bool:
        """Whether an operator of an old opset is what it was when broadcasting became as it is."""
        now = self.onnx.defs.get_schema(node.op, OLDEST, "")
        return bool(now.since_version == schema.since_version)

    def _library_body(self, schema: Any, node: Node) -> Proto:
        """The function that the library knows an operator as."""
        found = schema.get_function_with_opset_version(node.version)
        if not isinstance(found, bytes):
            return found or schema.function_body
        made = self.onnx.FunctionProto()
        made.ParseFromString(found)
        return made

    def _body(self, key: tuple[Any, ...], f: Proto, depth: int) -> Graph:
        before = self.count
        known = self.bodies.get(key)
        if known is None:
            made = self.function(f, depth + 1)
            self.bodies[key] = made, self.count - before
            return made
        self._counted(known[1], f"the function {f.name!r}")
        return known[0]

    def _require_schema(self, node: Node, schema: Any) -> None:
        """Raises: ArgumentError where a node is not as its operator's schema says."""
        given = len(node.inputs)
        while given and not node.inputs[given - 1]:
            given -= 1
        self._require_counts(node, schema.min_input, schema.max_input, schema.max_output)
        if given < schema.min_input:
            raise dt.ArgumentError(
                f"onnx.load: {node} is given {given} inputs; it takes {schema.min_input} or more"
            )
        for name, a in schema.attributes.items():
            if a.required and name not in node.attributes:
                raise dt.ArgumentError(
                    f"onnx.load: {node} has no attribute {name!r}, which it needs"
                )
            found = node.attributes.get(name)
            wanted = str(a.type).rpartition(".")[2]
            if found is not None and not isinstance(found, Reference) and not _is(found, wanted):
                raise dt.ArgumentError(
                    f"onnx.load: {node} has the attribute {name} = {str(found)[:60]!r}; it is "
                    f"{wanted}"
                )

    def _require_counts(self, node: Node, least: int, most: int, results: int) -> None:
        if not least <= len(node.inputs) <= most or len(node.outputs) > results:
            raise dt.ArgumentError(
                f"onnx.load: {node} has {len(node.inputs)} inputs and {len(node.outputs)} outputs; "
                f"it takes {least} to {most}, and gives up to {results}"
            )

    def attribute(self, a: Proto, opsets: dict[str, int], known: set[str], depth: int) -> Any:
        """An AttributeProto as a Python value."""
        if a.ref_attr_name:
            return Reference(a.ref_attr_name)
        kind = self.onnx.AttributeProto.AttributeType.Name(a.type) if a.type in range(15) else ""
        reader = _ATTRIBUTES.get(kind)
        if reader is None:
            raise dt.NotYetError(f"onnx.load: the attribute {a.name!r} is {kind or a.type}")
        return reader(self, a, opsets, known, depth)

    def constant(self, t: Proto) -> Any:
        """The values of a tensor among attributes."""
        return values_of(t, self.folder, self.limit)


def _domain(name: str) -> str:
    return ALIASES.get(name, name)


def _has_body(schema: Any) -> bool:
    return bool(schema.has_function or schema.has_context_dependent_function)


def _added(known: set[str], names: list[str], where: str) -> set[str]:
    """Adds names to those that are known. Raises: ArgumentError where one is there already."""
    for n in names:
        if n in known:
            raise dt.ArgumentError(
                f"onnx.load: {where} gives {n!r}, which is there already: each name is given once"
            )
        known.add(n)
    return known


def _finished(graph: Graph, known: set[str], partial: bool = False) -> Graph:
    """A graph whose nodes know what nobody asks for after them.

    `partial`: of a function that the library wrote for one use, which gives what is asked for.
    """
    missing = [v.name for v in graph.outputs if v.name not in known]
    if missing and not partial:
        raise dt.ArgumentError(
            f"onnx.load: the graph {graph.name!r} is to give {', '.join(map(repr, missing[:8]))}, "
            "which none of its nodes does"
        )
    kept = {v.name for v in graph.outputs}
    made = {n for node in graph.nodes for n in node.outputs if n}
    made |= {v.name for v in graph.inputs}
    for node in reversed(graph.nodes):
        asked = node.asks() | {n for n in node.outputs if n}
        node.drops = tuple(sorted((asked & made) - kept))
        kept |= asked
    return graph


def _is(value: Any, wanted: str) -> bool:
    one = {"INT": int, "FLOAT": float, "STRING": str, "TENSOR": np.ndarray, "GRAPH": Graph}
    if wanted in one:
        return isinstance(value, one[wanted])
    if wanted.removesuffix("S") in one:
        return isinstance(value, list) and all(isinstance(v, one[wanted[:-1]]) for v in value)
    return True


# --- attributes -----------------------------------------------------------------------------------


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _graph(to: Reading, g: Proto, opsets: Any, known: set[str], depth: int) -> Graph:
    return to.graph(g, opsets, frozenset(known), depth + 1)


_ATTRIBUTES: dict[str, Callable[..., Any]] = {
    "FLOAT": lambda to, a, *_: float(a.f),
    "INT": lambda to, a, *_: int(a.i),
    "STRING": lambda to, a, *_: _text(a.s),
    "TENSOR": lambda to, a, *_: to.constant(a.t),
    "GRAPH": lambda to, a, *rest: _graph(to, a.g, *rest),
    "FLOATS": lambda to, a, *_: [float(v) for v in a.floats],
    "INTS": lambda to, a, *_: [int(v) for v in a.ints],
    "STRINGS": lambda to, a, *_: [_text(v) for v in a.strings],
    "TENSORS": lambda to, a, *_: [to.constant(t) for t in a.tensors],
    "GRAPHS": lambda to, a, *rest: [_graph(to, g, *rest) for g in a.graphs],
    "TYPE_PROTO": lambda to, a, *_: a.tp.SerializeToString(),
}


# --- inputs and outputs ---------------------------------------------------------------------------


def value(v: Proto) -> Value:
    """A ValueInfoProto. Raises: DTypeError for what no tensor is."""
    kind, t = "tensor", v.type
    while t.WhichOneof("value") in ("sequence_type", "optional_type"):
        found = t.WhichOneof("value")
        kind = kind if kind != "tensor" else found.removesuffix("_type")
        t = getattr(t, found).elem_type
    if t.WhichOneof("value") not in (None, "tensor_type"):
        raise dt.DTypeError(
            f"onnx.load: {v.name!r} is a {t.WhichOneof('value')}; there are tensors, sequences of "
            "them, and optional ones"
        )
    if not t.HasField("tensor_type") or not t.tensor_type.elem_type:
        return Value(v.name, None, None, kind)
    d = dtype_of(t.tensor_type.elem_type, repr(v.name))
    if not t.tensor_type.HasField("shape"):
        return Value(v.name, d, None, kind)
    sizes = [_size(s) for s in t.tensor_type.shape.dim]
    return Value(v.name, d, tuple(sizes), kind)


def _size(s: Proto) -> int | str | None:
    which = s.WhichOneof("value")
    return None if which is None else int(s.dim_value) if which == "dim_value" else str(s.dim_param)


__all__ = ["FOLDED", "ROWS", "Graph", "Node", "Reading", "Reference", "Value", "graphs_of", "value"]
