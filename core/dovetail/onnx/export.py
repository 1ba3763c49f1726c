"""`dt.onnx.export`: write a function or a module as an ONNX model."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import dovetail as dt
from dovetail.extend import Graph, GraphNode, arguments, graph_of

from .exporting import dynamic, parameter_slices
from .exporting import elementwise as _elementwise  # noqa: F401 - the import registers its rows
from .exporting import kernels as _kernels  # noqa: F401
from .exporting import views as _moves  # noqa: F401
from .exporting.layers import find_layer_writer
from .exporting.parameter_slices import location_of
from .exporting.writer import NODE_WRITERS, GraphWriter, UnsupportedOpError
from .library import Proto, import_onnx

__all__ = ["export"]

OPSET_MIN = 17
OPSET_DEFAULT = 18
IR_VERSION = 10


def export(
    function: Callable[..., Any],
    args: Sequence[object] | dt.Tensor,
    path: str | os.PathLike[str] | None = None,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset: int = OPSET_DEFAULT,
    dynamic_axes: Mapping[str, Mapping[int, str] | Sequence[int]] | None = None,
) -> Proto:
    """Export a function or a module as an ONNX model, for inputs like `args`.

    - `function`: a function or a module of tensors, or of containers of them; its numbers and bools
      become constants. Parameters and buffers of a module are initialisers under their names.
    - `args`: a tensor, or a sequence of arguments: examples of the inputs.
    - `path`: a file to write the model to; None writes none.
    - `input_names`, `output_names`: names of the model's inputs and outputs. Default: the
      function's parameter names and "output".
    - `opset`: the version of the operators, 17 or later.
    - `dynamic_axes`: for the name of an input, the axes that may have any size: a dict of names of
      these sizes, or a list of axes.

    Shapes: any; the model takes those of `args`, except for `dynamic_axes`.
    Dtypes: those that ONNX has; UnsupportedError for others.
    Returns: an `onnx.ModelProto` that passed onnx's checker.
    Raises: UnsupportedError with all ops that ONNX has no operators for, and their lines;
    CaptureError if the function reads values; ArgumentError; UnavailableError without the package
    onnx.
    See also: `load`.
    Source: https://onnx.ai/onnx/repo-docs/IR.html
    See: docs/onnx.md.

    >>> import dovetail as dt
    >>> model = dt.onnx.export(lambda x: dt.tanh(x) * 2, dt.ones(3))
    >>> [node.op_type for node in model.graph.node]
    ['Tanh', 'Mul']
    """
    onnx = import_onnx("onnx.export")
    newest = onnx.defs.onnx_opset_version()
    version = arguments.integer("onnx.export", opset, "opset")
    if not OPSET_MIN <= version <= newest:
        raise dt.ArgumentError(
            f"onnx.export: opset must be between {OPSET_MIN} and {newest}, got {version}"
        )
    inputs = [args] if isinstance(args, dt.Tensor) else list(args)
    graph = _trace_graph(function, inputs, not dynamic_axes)
    names = _input_names(function, graph, input_names)
    dims = dynamic.dimensions(dynamic_axes, names, [n.shape for n in graph.inputs])
    if not dims:
        builder = _ModelBuilder(version, function, graph, True)
        builder.write(names, output_names)
    else:
        builder = _build_dynamic(version, function, inputs, names, output_names, dims)
    proto = builder.proto()
    if path is not None:
        _write_file(proto, Path(path))
    return proto


def _trace_graph(function: Callable[..., Any], args: Sequence[object], folds: bool) -> Graph:
    """Trace a function for arguments like `args`. Raises: UnsupportedError for in-place writes."""
    graph = graph_of(_unwrap_jit(function), args, name="onnx.export", folds=folds)
    if graph.writes:
        raise dt.UnsupportedError(
            "onnx.export: the function must not write into tensors from outside, which ONNX "
            f"cannot express, but does at {', '.join(graph.writes)}; use module.eval(), or return "
            "what changes"
        )
    return graph


def _build_dynamic(
    opset: int,
    function: Callable[..., Any],
    args: Sequence[object],
    names: Sequence[str],
    outputs: Sequence[str] | None,
    dims: dynamic.Dims,
) -> _ModelBuilder:
    """Trace a function at several sizes; return the written builder of one model for all sizes."""
    sizes, graphs = _trace_sizes(function, args, dims)
    varying = parameter_slices.varying_constants(graphs)
    models = [_ModelBuilder(opset, function, g, False, varying) for g in graphs]
    for builder in models:
        builder.write(names, outputs)
    dynamic.unify(models, sizes, dims)
    models[0].dims = dict(dims)
    return models[0]


def _trace_sizes(
    function: Callable[..., Any], args: Sequence[object], dims: dynamic.Dims
) -> tuple[list[dict[str, int]], list[Graph]]:
    """Return a list of sizes that the function accepts, and its graph for each.

    Raises: the DovetailError of the last try; UnsupportedError and CaptureError at once.
    """
    failed: dt.DovetailError | None = None
    for probe in dynamic.probes(dims):
        graphs: list[Graph] = []
        try:
            for sizes in probe:
                graphs.append(_trace_graph(function, _resize_args(args, dims, sizes), False))
            return probe, graphs
        except (dt.UnsupportedError, dt.CaptureError):
            raise
        except dt.DovetailError as error:  # for example, a table that is too short for a large size
            failed = error
    assert failed is not None
    sizes_text = ", ".join(f"{name} = {n}" for name, n in sizes.items())
    failed.args = (
        f"onnx.export: with dynamic_axes the function is tried with other sizes than those of "
        f"args, and does not take {sizes_text}: {failed}",
    )
    raise failed


def _resize_args(
    args: Sequence[object], dims: dynamic.Dims, sizes: Mapping[str, int]
) -> list[object]:
    """Return the arguments; zeros replace the tensors, with `sizes` at dynamic axes.

    Raises: UnsupportedError for an argument that is a container of tensors.
    """
    i, resized = 0, []
    for x in args:
        if isinstance(x, dt.Tensor):
            shape = [sizes[dims[i, d]] if (i, d) in dims else n for d, n in enumerate(x.shape)]
            x = dt.zeros(shape, dtype=x.dtype, device=x.device)
            i += 1
        elif _contains_tensor(x):
            raise dt.UnsupportedError(
                "onnx.export: dynamic_axes does not allow arguments that are containers of "
                "tensors; pass each tensor as an argument"
            )
        resized.append(x)
    return resized


def _contains_tensor(x: object) -> bool:
    """Return True if a mapping, list or tuple contains a tensor, at any depth."""
    inner = x.values() if isinstance(x, Mapping) else x if isinstance(x, (list, tuple)) else ()
    return any(isinstance(v, dt.Tensor) or _contains_tensor(v) for v in inner)


def _unwrap_jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function inside a function of `dt.jit`, or any other function unchanged."""
    inner = getattr(function, "_function", None)  # a function of dt.jit is traced anew
    return inner if inner is not None and hasattr(function, "captures") else function


def _parameter_names(function: object) -> dict[Any, str]:
    """Return the names of a module's parameters and buffers by location; {} for other functions."""
    names: dict[Any, str] = {}
    for named in ("named_parameters", "named_buffers"):
        if hasattr(function, named):
            for name, x in getattr(function, named)():
                names.setdefault(location_of(x), name)
    return names


def _input_names(
    function: Callable[..., Any], graph: Graph, requested: Sequence[str] | None
) -> list[str]:
    """Return the requested names of inputs, else those of the signature, else "input_0", ...

    Raises: ArgumentError if the requested names are not as many different names as inputs.
    """
    count = len(graph.inputs)
    if requested is not None:
        names = list(requested)
        if len(names) != count or len(set(names)) != count:
            raise dt.ArgumentError(
                f"onnx.export: input_names must be {count} different names, one for each input, "
                f"got {names}"
            )
        return names
    call = getattr(function, "forward", function)
    try:
        signature_names = [
            p.name
            for p in inspect.signature(call).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        signature_names = []
    if len(signature_names) == count:
        return signature_names
    return ["input"] if count == 1 else [f"input_{k}" for k in range(count)]


class _ModelBuilder:
    """A builder of the ONNX model of a graph."""

    def __init__(
        self,
        opset: int,
        function: Callable[..., Any],
        graph: Graph,
        shares: bool,
        varying: Collection[int] = (),
    ) -> None:
        self.writer, self.graph = GraphWriter(opset, _parameter_names(function), shares), graph
        self.opset, self.varying_constants = opset, varying
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self.dims: dynamic.Dims = {}  # of inputs, by position and axis; then of outputs
        self.out_dims: dynamic.Dims = {}

    def write(self, inputs: Sequence[str], outputs: Sequence[str] | None) -> None:
        """Write the nodes of the results into the writer, with these names.

        Raises: UnsupportedError with all ops that ONNX lacks, ArgumentError for names that do not
        fit.
        """
        w = self.writer
        self.inputs = list(inputs)
        self.outputs = _output_names(self.graph, outputs, inputs)
        w.used_names |= {*self.inputs, *self.outputs}
        for n, name in zip(self.graph.inputs, self.inputs, strict=True):
            w.value_names[id(n)] = name
        for n in _reachable_nodes(w, self.graph):
            if id(n) not in w.value_names:
                w.value_names[id(n)] = self._write_node(n)
        _require_complete(w)
        for n, name in zip(self.graph.results, self.outputs, strict=True):
            w.nodes.append(w.onnx.helper.make_node("Identity", [w.value_names[id(n)]], [name]))
        w.nodes[:] = _remove_identities(w.nodes, {*self.inputs, *w.initialisers}, self.outputs)

    def _write_node(self, n: GraphNode) -> str:
        """Write one node and return its name; record an unsupported op and return "missing"."""
        w = self.writer
        if n.op == "constant":
            return self._write_constant(n)
        if n.kind == "composite":
            layer = find_layer_writer(w, n)
            return (
                w.value_names[id(n.attrs.parts)]
                if layer is None
                else layer[1](w, n.attrs.arguments)
            )
        run = NODE_WRITERS.get(n.op)
        try:
            if n.draws:
                raise UnsupportedOpError("ONNX has no reproducible random numbers")
            if run is None:
                raise UnsupportedOpError("ONNX has no operators for it")
            return run(w, n)
        except UnsupportedOpError as why:
            w.unsupported.setdefault((n.op, str(why)), []).append(n.line)
            return "missing"

    def _write_constant(self, n: GraphNode) -> str:
        """Add a constant and return its name; views of parameters refer to the parameter.

        These are transposed and expanded views. Other constants become initialisers.
        """
        w, x = self.writer, n.tensor
        assert x is not None
        name = self._add_slice(x) if id(n) in self.varying_constants else None
        if name is not None:
            return name
        dense_shape = [1 if s == 0 else m for m, s in zip(x.shape, x.stride(), strict=True)]
        if 0 in x.shape or dense_shape == list(x.shape):
            name = self._add_dense(x)
            w.lines.setdefault(name, n.line)
            return name
        dense = dt.as_strided(x, dense_shape, x.stride(), x.storage_offset())
        return w.add("Expand", [self._add_dense(dense), w.sizes(x.shape)])

    def _add_slice(self, x: dt.Tensor) -> str | None:
        """Write a slice of a parameter and return its name, or None if `x` is not such a slice."""
        for whole, name in self.writer.parameter_names.items():
            part = parameter_slices.slice_of(location_of(x), whole)
            if part is not None:
                y = dt.as_strided(x, whole[2], whole[3], whole[1])
                return part.write(self.writer, self._add_parameter(name, y))
        return None

    def _add_dense(self, x: dt.Tensor) -> str:
        """Add a tensor without overlapping elements as an initialiser; return its name."""
        w = self.writer
        if not w.parameter_names:
            return w.tensor(x)
        here = location_of(x)
        name = w.parameter_names.get(here)
        if name is not None:
            return self._add_parameter(name, x)
        for (start, offset, shape, strides), name in w.parameter_names.items():
            if (start, offset) == here[:2] and sorted(zip(shape, strides, strict=True)) == sorted(
                zip(here[2], here[3], strict=True)
            ):
                whole = dt.as_strided(x, shape, strides, offset)
                remaining = list(zip(shape, strides, strict=True))
                order = []
                for pair in zip(here[2], here[3], strict=True):
                    k = remaining.index(pair)
                    remaining[k] = (-1, -1)
                    order.append(k)
                return w.add("Transpose", [self._add_parameter(name, whole)], perm=order)
        return w.tensor(x)

    def _add_parameter(self, name: str, x: dt.Tensor) -> str:
        """Add a parameter as an initialiser of its name, unless it is there; return the name."""
        w = self.writer
        return name if name in w.initialisers else w.tensor(x, name)

    def proto(self) -> Proto:
        """Build the ModelProto and check it. Raises: an error of onnx's checker for a bad model."""
        w, helper = self.writer, self.writer.onnx.helper
        value_infos = [
            [
                helper.make_tensor_value_info(
                    name,
                    w.element(n.dtype),
                    [dims.get((i, d), m) for d, m in enumerate(n.shape)],
                )
                for i, (n, name) in enumerate(zip(nodes, names, strict=True))
            ]
            for nodes, names, dims in (
                (self.graph.inputs, self.inputs, self.dims),
                (self.graph.results, self.outputs, self.out_dims),
            )
        ]
        graph = helper.make_graph(w.nodes, "main", *value_infos, [*w.initialisers.values()])
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", self.opset)],
            producer_name="dovetail",
            ir_version=IR_VERSION,
        )
        w.onnx.checker.check_model(model, full_check=True)
        return model


def _reachable_nodes(w: GraphWriter, graph: Graph) -> list[GraphNode]:
    """Return the nodes that results depend on, in order; parts of layers only if needed."""
    reachable = {id(n) for n in graph.results}
    for n in reversed(graph.nodes):
        if id(n) in reachable:
            operands = n.args
            if n.kind == "composite" and find_layer_writer(w, n) is None:
                operands = (n.attrs.parts,)
            reachable |= {id(a) for a in operands if isinstance(a, GraphNode)}
    return [n for n in graph.nodes if id(n) in reachable]


def _output_names(
    graph: Graph, requested: Sequence[str] | None, inputs: Sequence[str]
) -> list[str]:
    """Return the requested names of outputs, or default ones.

    Raises: ArgumentError unless there is one for each result, and all names differ.
    """
    count = len(graph.results)
    if requested is None:
        requested = ["output"] if count == 1 else [f"output_{k}" for k in range(count)]
    names = list(requested)
    if len(names) != count or len({*names, *inputs}) != count + len(inputs):
        raise dt.ArgumentError(
            f"onnx.export: output_names must be {count} different names, one for each result, and "
            f"differ from the inputs' names, got {names}"
        )
    return names


def _require_complete(w: GraphWriter) -> None:
    """Raise UnsupportedError with all ops that could not be written, if there are any."""
    if not w.unsupported:
        return
    problems = [
        f"{op} ({why}), at {', '.join(dict.fromkeys(lines))}"
        for (op, why), lines in sorted(w.unsupported.items())
    ]
    raise dt.UnsupportedError(
        "onnx.export: the function has operations that ONNX cannot express: " + "; ".join(problems)
    )


def _remove_identities(
    nodes: Sequence[Proto], fixed: set[str], outputs: Sequence[str]
) -> list[Proto]:
    """Return the nodes without Identity nodes, after redirecting their readers in place.

    `fixed`: names of inputs and initialisers. `outputs`: names that must stay.
    """
    same: dict[str, str] = {}
    for n in nodes:
        if n.op_type == "Identity" and n.output[0] not in outputs:
            same[n.output[0]] = same.get(n.input[0], n.input[0])
    remaining = [n for n in nodes if not (n.op_type == "Identity" and n.output[0] in same)]
    for n in remaining:
        for i, name in enumerate(n.input):
            n.input[i] = same.get(name, name)
    return _rename_to_outputs(remaining, fixed, {*outputs})


def _rename_to_outputs(nodes: list[Proto], fixed: set[str], outputs: set[str]) -> list[Proto]:
    """Return nodes without Identity nodes of outputs; rename what those copied, in place."""
    producers = {name: n for n in nodes for name in n.output}
    renamed: dict[str, str] = {}
    dropped = set()
    for n in nodes:
        source = n.input[0] if n.op_type == "Identity" else ""
        if (
            source
            and n.output[0] in outputs
            and source in producers
            and source not in {*outputs, *fixed, *renamed}
        ):
            renamed[source] = n.output[0]
            dropped.add(id(n))
    remaining = [n for n in nodes if id(n) not in dropped]
    for n in remaining:
        for names in (n.input, n.output):
            for i, name in enumerate(names):
                names[i] = renamed.get(name, name)
    return remaining


def _write_file(proto: Proto, path: Path) -> None:
    """Write the file atomically: an error leaves no partial file. Raises: OSError."""
    raw = proto.SerializeToString()
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        temporary.write_bytes(raw)
        temporary.replace(path)
    except OSError as error:  # name the path of the caller, not the temporary file
        raise type(error)(error.errno, error.strerror, str(path)) from None
    finally:
        temporary.unlink(missing_ok=True)
