"""Graphs of the ops of functions, for code that exports a function in another form.

The function runs once, op by op, on tensors that stand for any value: nothing that depends on them
is computed. Views, writes in place and loops of known length are nodes like others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, wraps
from inspect import signature
from typing import Any, NoReturn, ParamSpec, TypeAlias, TypeVar

from ..argument_checks import function as callable_
from ..backend.interface import Scalar
from ..capture.pytree import FlatTree, flatten, rebuild
from ..dtypes import DType
from ..engine import evaluate as engine
from ..engine import tracer_api
from ..engine.evaluation import Evaluation
from ..errors import CaptureError, DovetailError, LayoutError
from ..functions.creation.from_values import asarray
from ..graph.expr import (
    Args,
    Expr,
    Spec,
    convert_to_leaf,
    leaf,
    node,
    pending_nodes,
    spec,
    storage_of,
)
from ..layout import Shape, StridedView, contiguous, move_shape
from ..layout import apply_move as moved_layout
from ..memory.storage import Storage
from ..memory.tracing.stacktrace import caller_line
from ..ops.flops import count_flops
from ..ops.host_routines import HostCall
from ..ops.table import COPY, Op
from ..settings import eager, set_recording
from ..tensor.c_fields import is_strided
from ..tensor.primitives import apply
from ..tensor.tensor import Tensor, create_lazy_storage, create_tensor
from ..weak_identity_map import WeakIdentityMap

FOLD_ELEMENTS_MAX = 1 << 16  # elements; larger constants are not computed during the trace

Number: TypeAlias = bool | int | float
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, eq=False, repr=False)
class GraphNode:
    """An op on values of a graph.

    - `op`: the name of its row in the table, or "input", "constant", "as_strided", "written" (a
      value put into another one, at strides), or the name of a library's routine.
    - `kind`: the kind of the op.
    - `args`: the nodes that it reads, and Python numbers.
    - `shape`: the shape of the value.
    - `dtype`: the dtype of the value.
    - `attrs`: the static attributes of this use.
    - `casts`: the dtype to which each argument is cast before.
    - `varies`: True if the value depends on an input, or on random numbers.
    - `draws`: True if the node itself draws random numbers.
    - `line`: the user's source line.
    - `tensor`: the value of a constant.
    """

    op: str
    kind: str
    args: tuple[GraphNode | Number, ...]
    shape: Shape
    dtype: DType
    attrs: Any = None
    casts: tuple[DType, ...] = ()
    varies: bool = False
    draws: bool = False
    line: str = ""
    tensor: Tensor | None = None

    def __repr__(self) -> str:
        return f"<{self.op}: {self.dtype.name}{list(self.shape)}>"

    @property
    def flops(self) -> int:
        """Return the number of floating-point operations: 2 for a multiply-add, 0 for a composite.

        The parts of a composite are nodes of their own.
        """
        if self.kind == "composite":
            return 0
        shapes = [a.shape for a in self.args if isinstance(a, GraphNode)]
        return count_flops(self.op, shapes, self.shape, self.dtype)


@dataclass(frozen=True, eq=False)
class Graph:
    """The nodes of a function in order, with those of its inputs and results.

    - `nodes`: all nodes, in order.
    - `inputs`: the nodes of the inputs.
    - `results`: the nodes of the results.
    - `result`: puts stand-ins for the results into the containers that the function gave.
    - `writes`: the lines at which tensors from outside of the function were written; such writes
      are not in the graph.
    """

    nodes: tuple[GraphNode, ...]
    inputs: tuple[GraphNode, ...]
    results: tuple[GraphNode, ...]
    result: Callable[[Sequence[object]], Any]
    writes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Composite:
    """The attributes of a node of kind "composite": a named function and its arguments.

    `arguments`: by name, with nodes in place of tensors; `parts`: the node of the function's
    result, op by op.
    """

    arguments: dict[str, Any]
    parts: GraphNode


def _raise_escaped(op: str, kinds: object, attrs: object) -> NoReturn:
    """Raise the error of a traced tensor that is read after the function has returned."""
    raise CaptureError(
        "graph_of: a tensor of a traced function has no value and cannot be read after the "
        "function has returned"
    )


# The op of a placeholder; its value is looked up, not evaluated.
TRACED = Op("traced", "kernel", _raise_escaped, arity=0, placeholder=True)


class GraphTracer(tracer_api.Tracer):
    """The tracer that records a function's graph."""

    @property
    def is_capture(self) -> bool:
        """False: the traced function is not compiled."""
        return False

    def __init__(
        self, name: str, folds: bool, on_node: Callable[[GraphNode], object] | None = None
    ) -> None:
        self.name, self.folds, self.on_node = name, folds, on_node
        self.outer = tracer_api.current()
        self.nodes: list[GraphNode] = []
        self.input_nodes: list[GraphNode] = []
        self.writes: list[str] = []
        self._node_by_expr: dict[Expr, GraphNode] = {}
        self._pending_before = WeakIdentityMap((e, True) for e in pending_nodes())
        self._allocated: WeakIdentityMap[Storage, bool] = WeakIdentityMap()
        self._memory: dict[int, tuple[Storage, Expr]] = {}  # written since; what stands for it
        self._random_args: dict[int, Args] = {}

    # --- nodes

    def _add(self, n: GraphNode) -> GraphNode:
        """Append a node to the graph and return it."""
        self.nodes.append(n)
        if self.on_node is not None:
            self.on_node(n)
        return n

    def input(self, x: Tensor) -> Tensor:
        """Add an input node like `x`; return a tensor without a value that stands for it."""
        s = x._expr.spec
        n = self._add(GraphNode("input", "input", (), s.shape, s.dtype, varies=True))
        self.input_nodes.append(n)
        return create_tensor(self._create_pending_leaf(s, n))

    def _create_pending_leaf(self, s: Spec, n: GraphNode) -> Expr:
        """Create a leaf without a value for a graph node; map its source to that node."""
        source = node(TRACED, (), s)
        self._node_by_expr[source] = n
        return leaf(create_lazy_storage(source), s, s.strides, 0)

    def value(self, e: Expr) -> GraphNode:
        """Return the graph node that has an expression's value; add it if it is missing."""
        n = self._node_by_expr.get(e)
        if n is None:
            n = self._node_by_expr[e] = (
                self._trace_leaf(e) if e.op is None else self._trace_pending(e)
            )
        return n

    def _trace_pending(self, e: Expr) -> GraphNode:
        """Add a new node for a pending expression, operands first, or a constant if it is older.

        Return that node. A node is added even if there is one already: `value` looks first.
        """
        if e in self._pending_before:
            self.evaluate_earlier(e)
            return self._add_constant(e)
        op = e.op
        assert op is not None
        if op is TRACED:
            _raise_escaped(op.name, None, None)
        args = tuple([self.value(a) if type(a) is Expr else a for a in e.args])
        draws = id(e.args) in self._random_args
        varies = draws or any(type(a) is GraphNode and a.varies for a in args)
        s = e.spec
        return self._add(
            GraphNode(
                op.name,
                op.kind,
                args,
                s.shape,
                s.dtype,
                e.attrs,
                _casts(op, e),
                varies,
                draws,
                caller_line(),
            )
        )

    def _trace_leaf(self, e: Expr) -> GraphNode:
        """Add the graph nodes of a leaf: a constant, or the views of its source."""
        source = self._source_of(e)
        if source is not None and source.op is not None and source in self._pending_before:
            self.evaluate_earlier(source)
            source = None
        if source is None:
            return self._add_constant(e)
        whole = self.value(source)
        if e.spec is source.spec and e.strides == source.spec.strides and not e.offset:
            return whole
        if not _is_moved(e, source):
            s = e.spec
            return self._add_view(whole, "as_strided", (s.shape, e.strides, e.offset), s.shape)
        for m in e.moves:
            whole = self._add_view(whole, "view", m, move_shape(whole.shape, m))
        return whole

    def _add_view(self, source: GraphNode, op: str, attrs: Any, shape: Shape) -> GraphNode:
        """Add a view of a graph node and return it."""
        return self._add(
            GraphNode(
                op,
                "view",
                (source,),
                shape,
                source.dtype,
                attrs,
                (source.dtype,),
                source.varies,
                line=caller_line(),
            )
        )

    def _source_of(self, e: Expr) -> Expr | None:
        """Return the expression that stands for a leaf's memory, or None if it holds values."""
        storage = storage_of(e)
        if storage.pending is not None:
            return storage.pending
        entry = self._memory.get(id(storage))
        return None if entry is None else entry[1]

    def _add_constant(self, e: Expr) -> GraphNode:
        """Add a constant node that holds evaluated `e` itself, not a copy, and return it."""
        s = e.spec
        return self._add(
            GraphNode(
                "constant",
                "constant",
                (),
                s.shape,
                s.dtype,
                line=caller_line(),
                tensor=create_tensor(e),
            )
        )

    # --- facts about nodes

    def knows_leaf(self, e: Expr) -> bool:
        """Return True if a node belongs to this trace."""
        return e in self._node_by_expr or super().knows_leaf(e)

    def evaluate_earlier(self, e: Expr) -> None:
        """Evaluate a node if it was pending before the function; others stay."""
        if e in self._pending_before:
            self._outside(partial(engine.evaluate, [e], False))

    def _outside(self, action: Callable[[], Any]) -> Any:
        """Run an action under the outer tracer."""
        return tracer_api.run_traced(self.outer, action)

    # --- composites

    def call_composite(
        self, function: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]
    ) -> Any:
        """Call a marked function; record it as one node if it gives one tensor."""
        result = function(*args, **options)
        if not is_strided(result):
            return result
        bound = signature(function).bind(*args, **options)
        bound.apply_defaults()
        arguments = {
            k: self.value(v._expr) if isinstance(v, Tensor) else v
            for k, v in bound.arguments.items()
        }
        body, s = self.value(result._expr), result._expr.spec
        used = tuple([a for a in arguments.values() if isinstance(a, GraphNode)])
        n = self._add(
            GraphNode(
                function.__name__,
                "composite",
                used,
                s.shape,
                s.dtype,
                Composite(arguments, body),
                tuple([a.dtype for a in used]),
                body.varies,
                line=caller_line(),
            )
        )
        return create_tensor(self._create_pending_leaf(s, n))

    # --- evaluations

    def run(self, evaluation: Evaluation, reports_checks: bool) -> bool:
        """Record an evaluation's roots, and fold small constants."""
        graph = evaluation.graph
        roots = [r for r in graph.roots if r.op is not None]
        nodes = [self.value(r) for r in roots]
        if graph.target is not None:
            self._write(nodes[0], graph.target)
            return True
        for r, n in zip(roots, nodes, strict=True):
            if r.op is None or r.op is TRACED:
                continue
            if self._can_fold(r, n):
                self._fold(r)
            else:
                self._settle(r, n)
        return True

    def _settle(self, r: Expr, n: GraphNode) -> None:
        """Turn a pending node into a leaf that stands for graph node `n`, as if computed."""
        source = node(TRACED, (), r.spec)
        self._node_by_expr[source] = n
        self._node_by_expr.pop(r, None)
        convert_to_leaf(r, create_lazy_storage(source))

    def _can_fold(self, r: Expr, n: GraphNode) -> bool:
        """Return True if a node is a small constant with its operands in memory."""
        if not self.folds or n.varies or r.spec.size > FOLD_ELEMENTS_MAX:
            return False
        return all(self._is_in_memory(a) for a in r.args if type(a) is Expr)

    def _fold(self, r: Expr) -> None:
        """Compute a constant under the outer tracer; own its memory, and forget its graph node."""
        self._outside(partial(engine.evaluate, [r], False))
        if r.op is None:
            self._allocated[storage_of(r)] = True
            self._node_by_expr.pop(r, None)

    def _is_in_memory(self, e: Expr) -> bool:
        """Return True if an expression reads only memory with values, no traced tensor."""
        if e.op is None:
            return self._source_of(e) is None
        return e.op is not TRACED and all(self._is_in_memory(a) for a in e.args if type(a) is Expr)

    # --- writes

    def _write(self, value: GraphNode, target: Expr) -> None:
        """Record a write into the target's memory as a new value for its source."""
        storage = storage_of(target)
        source = self._source_of(target)
        if source is None:
            source = self._snapshot_memory(storage, target)
        whole, s = self.value(source), source.spec
        if target.spec is not s or target.strides != s.strides:
            attrs = (target.spec.shape, target.strides, target.offset)
            value = self._add(
                GraphNode(
                    "written",
                    "made",
                    (whole, value),
                    s.shape,
                    s.dtype,
                    attrs,
                    (s.dtype, s.dtype),
                    whole.varies or value.varies,
                    line=caller_line(),
                )
            )
        self._replace_value(source, value)

    def _replace_value(self, source: Expr, n: GraphNode) -> None:
        """Replace the value that stands for memory; views of it are looked up again."""
        views = [e for e in self._node_by_expr if e.op is None and self._source_of(e) is source]
        for e in views:
            del self._node_by_expr[e]
        self._node_by_expr[source] = n

    def _snapshot_memory(self, storage: Storage, target: Expr) -> Expr:
        """Snapshot a memory as a constant; list the write if the memory is from outside."""
        if storage not in self._allocated:
            self.writes.append(caller_line())
        s = target.spec
        flat = leaf(storage, spec((storage.nbytes // s.itemsize,), s.dtype, s.device), (1,), 0)
        source = node(TRACED, (), flat.spec)
        copied = self._outside(lambda: apply(COPY, (create_tensor(flat),)))
        self._outside(partial(engine.evaluate, [copied._expr], False))
        self._node_by_expr[source] = self._add_constant(copied._expr)
        self._memory[id(storage)] = storage, source
        return source

    def record_allocation(self, storage: Storage) -> None:
        """Register memory that the function allocates."""
        self._allocated[storage] = True
        super().record_allocation(storage)

    # --- other events

    def draw(self, reserve: Callable[[], tuple[int, int]]) -> tuple[int, int]:
        """Return zeros in place of a seed; no random numbers are drawn."""
        return 0, 0

    def mark_drawn(self, args: Args) -> None:
        """Remember the arguments of a random op."""
        self._random_args[id(args)] = args

    def run_effect(self, action: Callable[[], object]) -> None:
        """Skip an effect: the action is not called."""

    def refuse_read(self, what: str, tensors: Sequence[Tensor]) -> None:
        """Raise CaptureError if a tensor has no memory of its own value, or if none is given."""
        unknown = [t for t in tensors if self._has_no_memory(t._expr)]
        if unknown or not tensors:
            self._refuse(what)

    def _has_no_memory(self, e: Expr) -> bool:
        """Return True if a node depends on inputs, or its memory has been written."""
        return self.value(e).varies or self._source_of(e) is not None

    def _refuse(self, what: str) -> NoReturn:
        """Refuse to read values. Raises: CaptureError, which names `what` and the line, always."""
        raise CaptureError(
            f"{self.name}: {what} at {caller_line()}, while the function is traced: only shapes "
            "and dtypes are known then, not values. Choose with dt.where or dt.cond, or do it "
            "outside of the function"
        )

    def launch(self, step: Any, leaves: object, numbers: object, line: str | None) -> None:
        """Raise CaptureError: a kernel runs on tensors in memory, so it cannot be traced."""
        self._refuse(f"the kernel {step.step.kernel.name} runs on tensors in memory")

    def call(
        self,
        name: str,
        source: str,
        work: tracer_api.Work,
        leaves: Sequence[Expr],
        written: Sequence[int],
        numbers: Sequence[Scalar],
    ) -> None:
        """Record a library call as one node for each tensor that it writes."""
        args = tuple([self.value(e) for i, e in enumerate(leaves) if i not in written])
        for i in written:
            s = leaves[i].spec
            self._write(
                self._add(
                    GraphNode(
                        name,
                        "call",
                        (*args, *numbers),
                        s.shape,
                        s.dtype,
                        i,
                        varies=True,
                        line=caller_line(),
                    )
                ),
                leaves[i],
            )

    def call_host(self, call: HostCall, operands: Sequence[Expr], into: object) -> None:
        """Raise CaptureError for a host routine if an operand has no value yet."""
        if any(self._has_no_memory(e) for e in operands):
            self._refuse(f"dt.linalg.{call.name} calls LAPACK on the host")

    def is_batched(self, *exprs: Expr) -> bool:
        """Return True if a value depends on inputs (`dt.cond` runs both then); add its nodes."""
        return any(self.value(e).varies for e in exprs)


def _is_moved(e: Expr, source: Expr) -> bool:
    """Return True if the leaf's moves, applied to the source, lead to its strides."""
    at: StridedView | None = contiguous(source.spec.shape)
    with suppress(ValueError, IndexError):  # moves of what has other axes
        for m in e.moves:
            at = None if at is None else moved_layout(at, m)
        return at == StridedView(e.spec.shape, e.strides, e.offset)
    return False


def _casts(op: Op, e: Expr) -> tuple[DType, ...]:
    """Return the dtypes that an op's arguments are cast to; () if its row states none."""
    dtypes = [a.spec.dtype if type(a) is Expr else type(a) for a in e.args]
    attrs = e.attrs[1] if op.kind == "reduce" else e.attrs
    try:
        return op.dtypes(op.name, dtypes, attrs)[0]
    except (DovetailError, TypeError, ValueError, LookupError, AttributeError):
        return ()


def composite(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function as one piece: a graph that is taken of it (`graph_of`) has one node for it.

    Its arguments may be positional or by name, and it gives one tensor. Elsewhere nothing changes.

    - `function`: a function of tensors and other arguments that gives one tensor.

    >>> import dovetail as dt
    >>> from dovetail.extend import composite, graph_of
    >>> @composite
    ... def doubled(x, times=2):
    ...     return x * times
    >>> [n.op for n in graph_of(doubled, [dt.ones(1)]).nodes]
    ['input', 'multiply', 'doubled']
    """

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        """Run the function; under a GraphTracer record it as one node."""
        tracer = tracer_api.current()
        if isinstance(tracer, GraphTracer):
            result: R = tracer.call_composite(function, args, options)
            return result
        return function(*args, **options)

    return call


def graph_of(
    function: Callable[..., Any],
    args: Sequence[object],
    *,
    name: str = "graph_of",
    folds: bool = True,
    on_node: Callable[[GraphNode], object] | None = None,
) -> Graph:
    """Return the ops that a function does to tensors like these, as a graph.

    - `function`: a function of tensors, and of containers of them.
    - `args`: the arguments: tensors, and containers of them, are its inputs; other values are
      static.
    - `name`: the function named in errors.
    - `folds`: True computes small values that no input enters, as constants.
    - `on_node`: a function that is called with each node when it is added.

    Gradients: none are recorded.
    Raises: CaptureError where the function asks for values that its inputs have a part in.

    >>> import dovetail as dt
    >>> from dovetail.extend import graph_of
    >>> g = graph_of(lambda x: dt.tanh(x) * 2, [dt.ones(3)])
    >>> [(n.op, n.args) for n in g.nodes]
    [('input', ()), ('tanh', (<input: float32[3]>,)), ('multiply', (<tanh: float32[3]>, 2))]
    """
    callable_(name, function)
    flat = flatten(tuple(args))
    tracing = GraphTracer(name, folds, on_node)

    def trace() -> tuple[FlatTree, list[GraphNode]]:
        """Run the function on traced inputs, unrecorded; return its result and their nodes."""
        with eager():
            set_recording(False)
            leaves = [_trace_input(tracing, x) for x in flat.leaves]
            result = flatten(function(*rebuild(flat, leaves)))
            return result, [_trace_result(tracing, x) for x in result.leaves]

    result, result_nodes = tracer_api.run_traced(tracing, trace, isolated=True)
    return Graph(
        tuple(tracing.nodes),
        tuple(tracing.input_nodes),
        tuple(result_nodes),
        partial(_rebuild_result, result),
        tuple(dict.fromkeys(tracing.writes)),
    )


def _rebuild_result(flat: FlatTree, leaves: Sequence[object]) -> Any:
    """Return the leaves in the containers of `flat`."""
    return rebuild(flat, leaves)


def _trace_input(tracer: GraphTracer, x: object) -> object:
    """Return a strided tensor traced, a non-tensor unchanged.

    Raises: LayoutError for other layouts.
    """
    if not isinstance(x, Tensor):
        return x
    if not is_strided(x):
        raise LayoutError(
            f"{tracer.name}: inputs must be strided, got layout {x.layout.name}; use x.to_dense()"
        )
    return tracer.input(x)


def _trace_result(tracer: GraphTracer, x: object) -> GraphNode:
    """Return a result's node; numbers become constants. Raises: LayoutError unless strided."""
    tensor = x if isinstance(x, Tensor) else asarray(x)
    if not is_strided(tensor):
        raise LayoutError(
            f"{tracer.name}: results must be strided, got layout {tensor.layout.name}; return "
            "x.to_dense()"
        )
    return tracer.value(tensor._expr)
