"""A table of the modules of a network: results, parameters, operations and bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import dovetail as dt
from dovetail import extend
from dovetail.extend import arguments, format_bytes

from .modules.module import Module

if TYPE_CHECKING:
    from dovetail.extend import GraphNode

__all__ = ["summary"]

Shape: TypeAlias = tuple[int, ...]
Tensor: TypeAlias = dt.Tensor
COLUMNS = ("module", "result", "parameters", "trainable", "FLOPs", "memory", "activations")


@dataclass
class SummaryRow:
    """A module: its calls, and the numbers of it and of all modules within it.

    - `name`: the name in the network, such as "layers.0"; "" is the network.
    - `kind`: the name of its class.
    - `depth`: the number of modules around it.
    - `calls`: the number of its calls.
    - `shapes`: the shapes of the tensors that its first call returned.
    - `parameters`: the number of elements of its parameters, each parameter once.
    - `trainable`: the number of those that require a gradient.
    - `flops`: floating-point operations of all calls.
    - `memory_bytes`: the bytes of its parameters and buffers.
    - `activation_bytes`: the bytes of the results of calls that call no other module.
    - `is_shared`: True for the further names of a module; the first one has its calls.
    """

    name: str
    kind: str
    depth: int
    calls: int
    shapes: list[Shape]
    parameters: int
    trainable: int
    flops: int
    memory_bytes: int
    activation_bytes: int
    is_shared: bool


class ModuleSummary:
    """A table of modules, as text; `rows` has a `SummaryRow` for each, the network first."""

    def __init__(self, rows: list[SummaryRow], depth: int, input_bytes: int) -> None:
        self.rows, self.depth, self.input_bytes = rows, depth, input_bytes

    @property
    def parameters(self) -> int:
        """Return the number of elements of all parameters, each parameter once."""
        return self.rows[0].parameters

    @property
    def trainable(self) -> int:
        """Return the number of elements of the parameters that require a gradient."""
        return self.rows[0].trainable

    @property
    def flops(self) -> int:
        """Return the number of floating-point operations; a multiply-add counts as 2."""
        return self.rows[0].flops

    def __repr__(self) -> str:
        cells = [COLUMNS, *[_format_row(row) for row in self.rows if row.depth <= self.depth]]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = []
        for name, shape, *numbers in cells:
            right = [f"{text:>{w}}" for text, w in zip(numbers, widths[2:], strict=True)]
            lines.append("  ".join([f"{name:<{widths[0]}}", f"{shape:<{widths[1]}}", *right]))
        network = self.rows[0]
        frozen = network.parameters - network.trainable
        return "\n".join(
            [
                *[line.rstrip() for line in lines],
                "",
                f"{network.parameters:,} parameters, {frozen:,} of them frozen; with buffers "
                f"{format_bytes(network.memory_bytes)}",
                f"{network.flops:,} FLOPs in forward; a multiply-add counts as 2",
                f"{format_bytes(self.input_bytes)} of inputs, "
                f"{format_bytes(network.activation_bytes)} of activations",
            ]
        )


def _format_row(row: SummaryRow) -> tuple[str, ...]:
    """Format a row as cells of text."""
    last = row.name.rpartition(".")[2]
    name = "  " * row.depth + (f"{last}: {row.kind}" if last else row.kind)
    if row.is_shared:
        return f"{name} (shared)", "", "", "", "", "", ""
    name += f" x {row.calls}" if row.calls > 1 else ""
    shapes = ", ".join(map(str, row.shapes))
    if not row.calls and not row.activation_bytes:  # nor is a module within it
        shapes = "not called"
    is_mixed = 0 < row.trainable < row.parameters
    trainable = "partly" if is_mixed else "yes" if row.trainable else "no"
    return (
        name,
        shapes,
        f"{row.parameters:,}",
        trainable if row.parameters else "",
        f"{row.flops:,}",
        format_bytes(row.memory_bytes),
        format_bytes(row.activation_bytes),
    )


@dataclass
class _Calls:
    """The calls of one module, without the modules within it."""

    count: int = 0
    shapes: list[Shape] = field(default_factory=list)
    flops: int = 0
    activation_bytes: int = 0


class _Recorder:
    """A recorder of calls, operations and results of the modules that run."""

    def __init__(self, network: Module) -> None:
        self.calls = {module: _Calls() for module in network.modules()}
        self._network = network
        self._stack: list[list[Any]] = [[network, False]]  # modules, and if they call others

    def count_node(self, node: GraphNode) -> None:
        """Count the operations of a graph node for the module that runs."""
        self.calls[self._stack[-1][0]].flops += node.flops

    def enter(self, module: Module, args: object) -> None:
        """Record that a call of a module begins; a hook before forward."""
        self._stack[-1][1] = True
        self._stack.append([module, False])

    def leave(self, module: Module, args: object, result: object) -> None:
        """Record the result of a call; a hook after forward."""
        calls, tensors = self.calls[module], _tensors_of(result)
        calls.count += 1
        if calls.count == 1:
            calls.shapes = [x.shape for x in tensors]
        if not self._stack.pop()[1]:
            calls.activation_bytes += sum(x.nbytes for x in tensors)

    def run(self, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Trace a call of the network, with hooks around each module that are removed after it."""
        handles = []
        try:
            for module in self.calls:
                handles.append(module.register_forward_pre_hook(self.enter))
                handles.append(module.register_forward_hook(self.leave))
            extend.graph_of(
                lambda args, named: _tensors_of(self._network(*args, **named)),
                (args, named),
                name="summary",
                folds=False,
                on_node=self.count_node,
            )
        finally:
            for handle in handles:
                handle.remove()

    def build_rows(self) -> list[SummaryRow]:
        """Return a row for each name of a module, in the order of `print(network)`."""
        visited: set[Module] = set()
        rows = []
        for name, module in self._network.named_modules(remove_duplicate=False):
            own = [self.calls[m] for m in module.modules()]
            parameters = [*module.parameters()]
            rows.append(
                SummaryRow(
                    name,
                    type(module).__name__,
                    name.count(".") + bool(name),
                    self.calls[module].count,
                    self.calls[module].shapes,
                    _sum_sizes(parameters),
                    _sum_sizes(p for p in parameters if p.requires_grad),
                    sum(c.flops for c in own),
                    sum(x.nbytes for x in (*parameters, *module.buffers())),
                    sum(c.activation_bytes for c in own),
                    module in visited,
                )
            )
            visited.add(module)
        return rows


def _sum_sizes(tensors: Iterable[Tensor]) -> int:
    """Return the number of elements of all tensors."""
    return sum(x.size for x in tensors)


def _tensors_of(result: object) -> list[Tensor]:
    """Return the tensors in a result's containers."""
    return [x for x in dt.tree.leaves(result) if isinstance(x, dt.Tensor)]


def summary(module: Module, *args: Any, depth: int = 3, **kwargs: Any) -> ModuleSummary:
    """Return a table of a network's modules: results, parameters, FLOPs and bytes.

    Forward is recorded for the arguments, and not computed. The module does not change: no
    statistics are updated, no random numbers are drawn, and its mode stays.

    - `module`: the network.
    - `args`: the arguments of its call. A tuple of ints stands for a tensor of that shape, with
      the dtype and device of the first floating parameter.
    - `depth`: rows with so many modules around them are shown; `rows` has all of them.
    - `kwargs`: the keyword arguments of its call.

    Each row includes the modules within it. FLOPs are counted from the recorded ops, so those of
    functions count, too: 2 for a multiply-add of a product or a convolution, 1 for each result of
    an elementwise op, and for each element that a reduction reads. Moves, comparisons, integers,
    sorts, gathers and random numbers count as 0. Activations are the results of modules that call
    no other one.
    Units: bytes.
    Raises: ArgumentTypeError if it is not a module; CaptureError where forward reads values.
    See also: `dt.explain`, `dt.profile`.

    >>> import dovetail as dt
    >>> net = dt.nn.Sequential(dt.nn.Linear(4, 8), dt.nn.ReLU())
    >>> dt.nn.summary(net, (5, 4))
    module       result  parameters  trainable  FLOPs     memory  activations
    Sequential   (5, 8)          40        yes    400  160 bytes    320 bytes
      0: Linear  (5, 8)          40        yes    360  160 bytes    160 bytes
      1: ReLU    (5, 8)           0                40    0 bytes    160 bytes
    <BLANKLINE>
    40 parameters, 0 of them frozen; with buffers 160 bytes
    400 FLOPs in forward; a multiply-add counts as 2
    80 bytes of inputs, 320 bytes of activations
    """
    if not isinstance(module, Module):
        raise dt.ArgumentTypeError(
            f"summary: module must be an nn.Module, got {type(module).__name__}; for a function "
            "use dt.explain"
        )
    depth = arguments.integer("summary", depth, "depth")
    inputs = tuple([_as_input(module, x) for x in args])
    recorder = _Recorder(module)
    recorder.run(inputs, kwargs)
    input_bytes = sum(x.nbytes for x in _tensors_of((inputs, kwargs)))
    return ModuleSummary(recorder.build_rows(), depth, input_bytes)


def _as_input(module: Module, x: object) -> object:
    """Return a pending tensor of the shape `x`, if that is a tuple of ints, else `x`."""
    if type(x) is not tuple or not all(type(n) is int for n in x):
        return x
    like = next((p for p in module.parameters() if p.dtype.kind == "f"), None)
    if like is None:
        return dt.zeros(x)
    return dt.zeros(x, dtype=like.dtype, device=like.device)
