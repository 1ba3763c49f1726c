"""Drawings of the pending graph, or of the tape: `dt.draw_graph(y)`."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..argument_checks import flag, refused, sequence
from ..engine.provenance import line_of
from ..errors import ArgumentError
from ..graph.expr import Expr, Spec, storage_of
from ..tensor.tensor import Tensor, parts_of, required
from . import svg_boxes
from .svg_boxes import Arrow, Box

__all__ = ["draw_graph"]

NODES_MAX = 200  # the largest number of nodes in a drawing


class DrawNode(NamedTuple):
    """A node of a drawing: its name, spec, kind, further facts, and inputs."""

    name: str
    spec: str
    kind: str
    facts: str
    inputs: tuple[object, ...]  # its inputs


class DrawGraph:
    """The result of `dt.draw_graph`: a notebook draws it, `save` writes it, `print` gives text.

    `count`: the number of nodes; `drawn`: how many of them are shown, those nearest to the
    results.
    """

    def __init__(
        self, what: str, order: Sequence[DrawNode], at: Mapping[int, int], count: int
    ) -> None:
        self.subject, self.count, self.drawn = what, count, len(order)
        self._order, self._positions = order, at

    def _describe_size(self) -> str:
        """Return the number of nodes as text, and how many are drawn if not all."""
        text = f"{self.count} node{'s' * (self.count != 1)} {self.subject}"
        return text + (f"; the nearest {self.drawn} are drawn" if self.drawn < self.count else "")

    def _build_arrows(self) -> Iterator[Arrow]:
        """Yield an arrow from each drawn input to its node."""
        for end, node in enumerate(self._order):
            for a in node.inputs:
                if id(a) in self._positions:
                    yield Arrow(self._positions[id(a)], end)

    def svg(self) -> str:
        """Draw the nodes as boxes in SVG, inputs above their users."""
        boxes = []
        for node in self._order:
            left_out = any(id(a) not in self._positions for a in node.inputs)
            lines = (node.name, node.spec) + ("...",) * left_out
            boxes.append(Box(lines, node.kind, f"{node.name}: {node.spec}{node.facts}"))
        return svg_boxes.draw_boxes(boxes, [*self._build_arrows()], self._describe_size())

    def html(self) -> str:
        """Render the drawing as HTML, under the number of nodes."""
        return svg_boxes.frame(
            svg_boxes.head("graph", self._describe_size()) + svg_boxes.make_scrollable(self.svg())
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the drawing as .svg or .html, and return the path.

        Raises: ArgumentError for another kind of file; OSError.
        """
        return svg_boxes.save_drawing(path, self._describe_size(), self.svg(), self.html())

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return f"<Graph of {self._describe_size()}>"

    def __str__(self) -> str:
        lines = [self._describe_size()]
        for n, node in enumerate(self._order):
            inputs = [
                f"%{self._positions[id(a)]}" if id(a) in self._positions else "..."
                for a in node.inputs
            ]
            of = f" of {', '.join(inputs)}" if inputs else ""
            lines.append(f"  %{n} {node.name}: {node.spec}{of}")
        return "\n".join(lines)


def draw_graph(
    *tensors: Tensor, gradient: bool | None = None, names: Mapping[str, Tensor] | None = None
) -> DrawGraph:
    """Draw the graph behind tensors: the pending ops, or the path of gradients.

    Nothing is computed. Of more than 200 nodes those nearest to the tensors are drawn, and it says
    so.

    - `tensors`: the tensors at the end of the graph.
    - `gradient`: True for the tape, along which `backward` goes; False for pending ops; None for
      those if there are any, else for the tape.
    - `names`: the names of tensors in the drawing, as a dict from name to tensor.

    Shapes: any.
    Dtypes: all.
    Raises: DTypeError if an argument is not a tensor, ArgumentError for none, or where there is no
    gradient to be drawn; ArgumentTypeError for `names`.
    See also: `explain`, `show`.

    >>> import dovetail as dt
    >>> x = dt.ones((2, 3))
    >>> dt.evaluate(x)
    >>> print(dt.draw_graph((x * 2).sum(axis=1), names={"x": x}))
    3 nodes pending
      %0 x: float32[2, 3]
      %1 multiply: float32[2, 3] of %0
      %2 sum: float32[2] of %1
    """
    if not sequence("draw_graph", tensors, "tensors", "tensors"):
        raise ArgumentError(
            "draw_graph: expected at least one tensor, got none; use dt.draw_graph(y)"
        )
    strided_parts = [p for x in tensors for p in parts_of(required("draw_graph", x))]
    names_by_id = _collect_names(names)
    taped = [p._expr.tape for p in strided_parts if p._expr.tape is not None]
    if gradient is None:
        on_tape = bool(taped) and not any(
            _find_pending_source(p._expr).op is not None for p in strided_parts
        )
    else:
        on_tape = flag("draw_graph", gradient, "gradient")
    if not on_tape:
        return _build_graph(
            "pending", [_find_pending_source(p._expr) for p in strided_parts], names_by_id
        )
    if not taped:
        raise ArgumentError(
            "draw_graph: the tensor has no recorded graph, because no operand requires a gradient; "
            "use x.requires_grad_()"
        )
    return _build_graph("on the tape", taped, names_by_id)


def _collect_names(names: object) -> dict[int, str]:
    """Map the ids of expressions, storages and tape nodes to names.

    Raises: ArgumentTypeError unless `names` is a mapping or None, DTypeError for a value that is no
    tensor.
    """
    if names is None:
        return {}
    if not isinstance(names, Mapping):
        raise refused("draw_graph", "names", 'a dict such as {"x": x}', names)
    by_id: dict[int, str] = {}
    for name, x in names.items():
        for p in parts_of(required("draw_graph", x)):
            e = p._expr
            by_id |= {id(e): str(name), id(_find_pending_source(e)): str(name)}
            if e.op is None:
                by_id[id(storage_of(e))] = str(name)
            if e.tape is not None:
                by_id[id(e.tape)] = str(name)
    return by_id


def _find_pending_source(e: Expr) -> Expr:
    """Return the pending node behind a leaf whose storage waits for it; else the node itself."""
    if e.op is None:
        pending = storage_of(e).pending
        return e if pending is None else pending
    return e


def _build_graph(what: str, roots: Sequence[object], names: Mapping[int, str]) -> DrawGraph:
    """Build the drawing of at most NODES_MAX nodes nearest to the roots, inputs first."""
    nodes: dict[int, object] = {}  # all of them, the nearest first
    queue = deque(roots)
    while queue:
        n = queue.popleft()
        if id(n) not in nodes:
            nodes[id(n)] = n
            queue.extend(_inputs_of(n))
    nearest_nodes = dict(list(nodes.items())[:NODES_MAX])
    positions: dict[int, int] = {}
    order: list[DrawNode] = []
    stack = [(n, False) for n in reversed(roots)]
    while stack:
        n, visited = stack.pop()
        if id(n) in positions or id(n) not in nearest_nodes:
            continue
        if visited:
            positions[id(n)] = len(order)
            order.append(_build_node(n, n in roots, names))
        else:
            stack += [(n, True), *((a, False) for a in reversed(_inputs_of(n)))]
    return DrawGraph(what, order, positions, len(nodes))


def _inputs_of(n: Any) -> list[Any]:
    """Return the tensor inputs of a pending expression or of a tape node; none for a value."""
    if type(n) is Expr:
        return (
            [_find_pending_source(a) for a in n.args if type(a) is Expr] if n.op is not None else []
        )
    return [a for a in n.next_functions if a is not None]


def _build_node(n: Any, is_root: bool, names_by_id: Mapping[int, str]) -> DrawNode:
    """Build the drawing's node of an expression or tape node, named by its or its storage's id."""
    user_name = names_by_id.get(id(n))
    if type(n) is not Expr:
        kind = "gradient" if not n.edges else "result" if is_root else "work"
        name = n.name if n.edges else user_name or "leaf"
        recorded_at = getattr(n, "recorded_line", None)
        more = f", recorded at {recorded_at}" if recorded_at else ""
        return _build_titled_node(name, user_name, n.spec, kind, more, tuple(_inputs_of(n)))
    if n.op is None:
        user_name = user_name or names_by_id.get(id(storage_of(n)))
        return _build_titled_node(user_name or "in memory", user_name, n.spec, "memory", "", ())
    numbers = [repr(a) for a in n.args if type(a) is not Expr]
    more = f", with {', '.join(numbers)}" if numbers else ""
    more += "" if n.attrs is None else f", {svg_boxes.shorten(str(n.attrs), 120)}"
    line = line_of(n)
    more += f", recorded by {line}" if line else ""
    kind = "result" if is_root else "work"
    return _build_titled_node(n.op.name, user_name, n.spec, kind, more, tuple(_inputs_of(n)))


def _build_titled_node(
    name: str, user_name: str | None, x: Spec, kind: str, more: str, inputs: tuple[object, ...]
) -> DrawNode:
    """Build a node whose title contains the user's name, if there is one."""
    title = name if user_name in (None, name) else f"{user_name} = {name}"
    return DrawNode(title, f"{x.dtype.name}{[*x.shape]}", kind, f" on {x.device}{more}", inputs)
