"""`dt.onnx.export`: what a function or a module does, as an ONNX model."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import dovetail as dt
from dovetail.extend import Graph, GraphNode, arguments, graph_of

from .exporting import dynamic, parts
from .exporting import elementwise as _elementwise  # noqa: F401 - they add their rows
from .exporting import kernels as _kernels  # noqa: F401
from .exporting import moves as _moves  # noqa: F401
from .exporting.layers import layer_of
from .exporting.parts import place_of
from .exporting.writer import ROWS, Unknown, Writer
from .library import Proto, library

__all__ = ["export"]

OLDEST = 17
DEFAULT = 18
IR_VERSION = 10


def export(
    function: Callable[..., Any], args: Sequence[object] | dt.Tensor,
    path: str | os.PathLike[str] | None = None, *, input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None, opset: int = DEFAULT,
    dynamic_axes: Mapping[str, Mapping[int, str] | Sequence[int]] | None = None,
) -> Proto:  # fmt: skip
    """The ONNX model that does what a function or a module does to inputs like `args`.

    `function`: takes and gives tensors, or containers of them; its numbers and bools are constants
    of the model. Parameters and buffers of a module are initialisers under their names. `args`: a
    tensor, or a sequence of arguments. `path`: where the model is written, too. `input_names`,
    `output_names`: of the model; those of the function's parameters and "output" unless given.
    `opset`: the version of the operators, 17 or later. `dynamic_axes`: by the name of an input, its
    axes that may have any size, with names of these sizes, or just the axes.
    Shapes: any; the model takes those of `args`, but for `dynamic_axes`.
    Dtypes: those that ONNX has; NotYetError for others.
    Returns: an `onnx.ModelProto`, which onnx's checker has seen.
    Raises: NotYetError with all ops that ONNX has no operators for, and their lines; CaptureError
    where the function asks for values; ArgumentError; UnavailableError without the package onnx.
    Source: https://onnx.ai/onnx/repo-docs/IR.html
    See: docs/onnx.md.

    >>> import dovetail as dt
    >>> model = dt.onnx.export(lambda x: dt.tanh(x) * 2, dt.ones(3, device="reference"))
    >>> [node.op_type for node in model.graph.node]
    ['Tanh', 'Mul']
    """
    onnx = library("onnx.export")
    newest = onnx.defs.onnx_opset_version()
    version = arguments.integer("onnx.export", opset, "opset")
    if not OLDEST <= version <= newest:
        raise dt.ArgumentError(f"onnx.export: opset is {version}; there are {OLDEST} to {newest}")
    given = [args] if isinstance(args, dt.Tensor) else list(args)
    graph = _graph(function, given, not dynamic_axes)
    names = _input_names(function, graph, input_names)
    dims = dynamic.dimensions(dynamic_axes, names, [n.shape for n in graph.inputs])
    if not dims:
        made = _Model(version, function, graph, True)
        made.write(names, output_names)
    else:
        made = _of_any_size(version, function, given, names, output_names, dims)
    proto = made.proto()
    if path is not None:
        _saved(proto, Path(path))
    return proto


def _graph(function: Callable[..., Any], args: Sequence[object], folds: bool) -> Graph:
    graph = graph_of(_called(function), args, name="onnx.export", folds=folds)
    if graph.writes:
        raise dt.NotYetError(
            "onnx.export: the function writes into tensors from outside, which a model cannot: at "
            f"{', '.join(graph.writes)}; use module.eval(), or return what changes"
        )
    return graph


def _of_any_size(
    opset: int, function: Callable[..., Any], args: Sequence[object], names: Sequence[str],
    outputs: Sequence[str] | None, dims: dynamic.Dims,
) -> _Model:  # fmt: skip
    """The model of a function of tensors whose axes have any sizes."""
    tried, graphs = _traced(function, args, dims)
    varying = parts.varying(graphs)
    models = [_Model(opset, function, g, False, varying) for g in graphs]
    for made in models:
        made.write(names, outputs)
    dynamic.unified(models, tried, dims)
    models[0].dims = dict(dims)
    return models[0]


def _traced(
    function: Callable[..., Any], args: Sequence[object], dims: dynamic.Dims
) -> tuple[list[dict[str, int]], list[Graph]]:
    """Sizes that a function takes, and its graph for each: large ones, else small ones."""
    failed: dt.DovetailError | None = None
    for tried in dynamic.probes(dims):
        graphs: list[Graph] = []
        try:
            for sizes in tried:
                graphs.append(_graph(function, _resized(args, dims, sizes), False))
            return tried, graphs
        except (dt.NotYetError, dt.CaptureError):
            raise
        except dt.DovetailError as error:  # a table that is shorter, perhaps
            failed = error
    assert failed is not None
    said = ", ".join(f"{name} = {n}" for name, n in sizes.items())
    failed.args = (
        f"onnx.export: with dynamic_axes the function is tried with other sizes than those of "
        f"args, and does not take {said}: {failed}",
    )
    raise failed


def _resized(args: Sequence[object], dims: dynamic.Dims, sizes: Mapping[str, int]) -> list[object]:
    """Arguments like these, in which axes have other sizes."""
    i, resized = 0, []
    for x in args:
        if isinstance(x, dt.Tensor):
            shape = [sizes[dims[i, d]] if (i, d) in dims else n for d, n in enumerate(x.shape)]
            x = dt.zeros(shape, dtype=x.dtype, device=x.device)
            i += 1
        elif _tensors_in(x):
            raise dt.NotYetError(
                "onnx.export: dynamic_axes with arguments that are containers of tensors; give "
                "each tensor as an argument"
            )
        resized.append(x)
    return resized


def _tensors_in(x: object) -> bool:
    inner = x.values() if isinstance(x, Mapping) else x if isinstance(x, (list, tuple)) else ()
    return any(isinstance(v, dt.Tensor) or _tensors_in(v) for v in inner)


def _called(function: Callable[..., Any]) -> Callable[..., Any]:
    inner = getattr(function, "_function", None)  # what dt.jit has captured is looked at itself
    return inner if inner is not None and hasattr(function, "captures") else function


def _names_of(function: object) -> dict[Any, str]:
    """The names of a module's parameters and buffers, by where they are in memory."""
    names: dict[Any, str] = {}
    for named in ("named_parameters", "named_buffers"):
        if hasattr(function, named):
            for name, x in getattr(function, named)():
                names.setdefault(place_of(x), name)
    return names


def _input_names(
    function: Callable[..., Any], graph: Graph, given: Sequence[str] | None
) -> list[str]:
    count = len(graph.inputs)
    if given is not None:
        names = list(given)
        if len(names) != count or len(set(names)) != count:
            raise dt.ArgumentError(
                f"onnx.export: input_names are {names}, for {count} inputs; each has one of its own"
            )
        return names
    call = getattr(function, "forward", function)
    try:
        said = [p.name for p in inspect.signature(call).parameters.values()
                if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]  # fmt: skip
    except (TypeError, ValueError):
        said = []
    if len(said) == count:
        return said
    return ["input"] if count == 1 else [f"input_{k}" for k in range(count)]


class _Model:
    """A graph as it becomes a model."""

    def __init__(
        self, opset: int, function: Callable[..., Any], graph: Graph, shares: bool,
        varying: Collection[int] = (),
    ) -> None:  # fmt: skip
        self.writer, self.graph = Writer(opset, _names_of(function), shares), graph
        self.opset, self.varying = opset, varying
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self.dims: dynamic.Dims = {}  # of inputs, by position and axis; then of outputs
        self.out_dims: dynamic.Dims = {}

    def write(self, inputs: Sequence[str], outputs: Sequence[str] | None) -> None:
        """Writes all nodes that results need. Raises: NotYetError."""
        w = self.writer
        self.inputs = list(inputs)
        self.outputs = _output_names(self.graph, outputs, inputs)
        w.taken |= {*self.inputs, *self.outputs}
        for n, name in zip(self.graph.inputs, self.inputs, strict=True):
            w.known[id(n)] = name
        for n in _needed(w, self.graph):
            if id(n) not in w.known:
                w.known[id(n)] = self._written(n)
        _require_all(w)
        for n, name in zip(self.graph.results, self.outputs, strict=True):
            w.nodes.append(w.onnx.helper.make_node("Identity", [w.known[id(n)]], [name]))
        w.nodes[:] = _without_copies(w.nodes, {*self.inputs, *w.initialisers}, self.outputs)

    def _written(self, n: GraphNode) -> str:
        w = self.writer
        if n.op == "constant":
            return self._constant(n)
        if n.kind == "composite":
            layer = layer_of(w, n)
            return w.known[id(n.attrs.parts)] if layer is None else layer[1](w, n.attrs.arguments)
        run = ROWS.get(n.op)
        try:
            if n.draws:
                raise Unknown("random numbers, of which no stream is the same everywhere")
            if run is None:
                raise Unknown("ONNX has no operators for it")
            return run(w, n)
        except Unknown as why:
            w.missing.setdefault((n.op, str(why)), []).append(n.line)
            return "missing"

    def _constant(self, n: GraphNode) -> str:
        """A parameter under its name, also where it is turned or expanded; else a constant."""
        w, x = self.writer, n.tensor
        assert x is not None
        found = self._part(x) if id(n) in self.varying else None
        if found is not None:
            return found
        once = [1 if s == 0 else m for m, s in zip(x.shape, x.stride(), strict=True)]
        if 0 in x.shape or once == list(x.shape):
            found = self._stored(x)
            w.lines.setdefault(found, n.line)
            return found
        small = dt.as_strided(x, once, x.stride(), x.storage_offset())
        return w.add("Expand", [self._stored(small), w.sizes(x.shape)])

    def _part(self, x: dt.Tensor) -> str | None:
        """A slice of a parameter under its name, where it is one."""
        for whole, name in self.writer.names.items():
            part = parts.part_of(place_of(x), whole)
            if part is not None:
                y = dt.as_strided(x, whole[2], whole[3], whole[1])
                return part.written(self.writer, self._parameter(name, y))
        return None

    def _stored(self, x: dt.Tensor) -> str:
        """A tensor of which each element is somewhere else."""
        w = self.writer
        if not w.names:
            return w.tensor(x)
        here = place_of(x)
        name = w.names.get(here)
        if name is not None:
            return self._parameter(name, x)
        for (start, offset, shape, strides), name in w.names.items():
            if (start, offset) == here[:2] and sorted(zip(shape, strides, strict=True)) == sorted(
                zip(here[2], here[3], strict=True)
            ):
                whole = dt.as_strided(x, shape, strides, offset)
                rest = list(zip(shape, strides, strict=True))
                order = []
                for pair in zip(here[2], here[3], strict=True):
                    k = rest.index(pair)
                    rest[k] = (-1, -1)
                    order.append(k)
                return w.add("Transpose", [self._parameter(name, whole)], perm=order)
        return w.tensor(x)

    def _parameter(self, name: str, x: dt.Tensor) -> str:
        w = self.writer
        return name if name in w.initialisers else w.tensor(x, name)

    def proto(self) -> Proto:
        """The model, which onnx's checker has seen."""
        w, helper = self.writer, self.writer.onnx.helper
        said = [
            [helper.make_tensor_value_info(name, w.element(n.dtype), 
             [dims.get((i, d), m) for d, m in enumerate(n.shape)])
             for i, (n, name) in enumerate(zip(nodes, names, strict=True))]
            for nodes, names, dims in ((self.graph.inputs, self.inputs, self.dims),
                                       (self.graph.results, self.outputs, self.out_dims))
        ]  # fmt: skip
        graph = helper.make_graph(w.nodes, "main", *said, [*w.initialisers.values()])
        made = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self.opset)], producer_name="dovetail",
            ir_version=IR_VERSION,
        )  # fmt: skip
        w.onnx.checker.check_model(made, full_check=True)
        return made


def _needed(w: Writer, graph: Graph) -> list[GraphNode]:
    """The nodes that results depend on, in order."""
    wanted = {id(n) for n in graph.results}
    for n in reversed(graph.nodes):
        if id(n) in wanted:
            read = n.args
            if n.kind == "composite" and layer_of(w, n) is None:
                read = (n.attrs.parts,)
            wanted |= {id(a) for a in read if isinstance(a, GraphNode)}
    return [n for n in graph.nodes if id(n) in wanted]


def _output_names(graph: Graph, given: Sequence[str] | None, inputs: Sequence[str]) -> list[str]:
    count = len(graph.results)
    if given is None:
        given = ["output"] if count == 1 else [f"output_{k}" for k in range(count)]
    names = list(given)
    if len(names) != count or len({*names, *inputs}) != count + len(inputs):
        raise dt.ArgumentError(
            f"onnx.export: output_names are {names}, for {count} results; each has a name of its "
            "own, and inputs have others"
        )
    return names


def _require_all(w: Writer) -> None:
    """Raises: NotYetError, with all ops that could not be written."""
    if not w.missing:
        return
    said = [
        f"{op} ({why}), at {', '.join(dict.fromkeys(lines))}"
        for (op, why), lines in sorted(w.missing.items())
    ]
    raise dt.NotYetError(
        "onnx.export: the function does what ONNX has no operators for: " + "; ".join(said)
    )


def _without_copies(nodes: Sequence[Proto], given: set[str], kept: Sequence[str]) -> list[Proto]:
    """The nodes, with Identity left out where the name before it will do."""
    same: dict[str, str] = {}
    for n in nodes:
        if n.op_type == "Identity" and n.output[0] not in kept:
            same[n.output[0]] = same.get(n.input[0], n.input[0])
    found = [n for n in nodes if not (n.op_type == "Identity" and n.output[0] in same)]
    for n in found:
        for i, name in enumerate(n.input):
            n.input[i] = same.get(name, name)
    return _named_at_once(found, given, {*kept})


def _named_at_once(found: list[Proto], given: set[str], kept: set[str]) -> list[Proto]:
    """What an Identity at the end names, named so by the node that gives it."""
    makers = {name: n for n in found for name in n.output}
    turned: dict[str, str] = {}
    dropped = set()
    for n in found:
        source = n.input[0] if n.op_type == "Identity" else ""
        if (
            source
            and n.output[0] in kept
            and source in makers
            and source not in {*kept, *given, *turned}
        ):
            turned[source] = n.output[0]
            dropped.add(id(n))
    rest = [n for n in found if id(n) not in dropped]
    for n in rest:
        for names in (n.input, n.output):
            for i, name in enumerate(names):
                names[i] = turned.get(name, name)
    return rest


def _saved(proto: Proto, path: Path) -> None:
    """Writes a file, whole or not at all."""
    raw = proto.SerializeToString()
    apart = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        apart.write_bytes(raw)
        apart.replace(path)
    except OSError as error:  # of the name that was given
        raise type(error)(error.errno, error.strerror, str(path)) from None
    finally:
        apart.unlink(missing_ok=True)
