"""`dt.draw_graph(y)`: what y is made of, while it is pending; or where its gradient flows to."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..arguments import flag, refused, sequence
from ..engine.lines import line_of
from ..errors import ArgumentError
from ..graph.expr import Expr, Spec, storage_of
from ..tensor.tensor import Tensor, parts_of, required
from . import drawing
from .drawing import Arrow, Box

__all__ = ["draw_graph"]

NEAREST = 200  # nodes that are drawn


class Node(NamedTuple):
    """A node as it is drawn: its name, what it is, what kind of node, and what else there is."""

    name: str
    spec: str
    kind: str
    more: str
    given: tuple[object, ...]  # those before it


class Graph:
    """What `dt.draw_graph` gives: a notebook draws it, `save` keeps it, `print` says it in text.

    `count`: how many nodes there are; `drawn`: how many of them are shown, those nearest to the
    results.
    """

    def __init__(self, what: str, order: Sequence[Node], at: Mapping[int, int], count: int) -> None:
        self.what, self.count, self.drawn = what, count, len(order)
        self._order, self._at = order, at

    def _head(self) -> str:
        said = f"{self.count} node{'s' * (self.count != 1)} {self.what}"
        return said + (f"; the nearest {self.drawn} are drawn" if self.drawn < self.count else "")

    def _arrows(self) -> Iterator[Arrow]:
        for end, node in enumerate(self._order):
            for a in node.given:
                if id(a) in self._at:
                    yield Arrow(self._at[id(a)], end)

    def svg(self) -> str:
        """The nodes as boxes, those before above those after."""
        boxes = []
        for node in self._order:
            left_out = any(id(a) not in self._at for a in node.given)
            lines = (node.name, node.spec) + ("...",) * left_out
            boxes.append(Box(lines, node.kind, f"{node.name}: {node.spec}{node.more}"))
        return drawing.draw(boxes, [*self._arrows()], self._head())

    def html(self) -> str:
        """The drawing, and how many nodes there are."""
        return drawing.framed(drawing.head("graph", self._head()) + drawing.scrolled(self.svg()))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes a file, .svg or .html, and returns its path.

        Raises: ArgumentError for another kind of file; OSError.
        """
        return drawing.written(path, self._head(), self.svg(), self.html())

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return f"<Graph of {self._head()}>"

    def __str__(self) -> str:
        lines = [self._head()]
        for n, node in enumerate(self._order):
            given = [f"%{self._at[id(a)]}" if id(a) in self._at else "..." for a in node.given]
            of = f" of {', '.join(given)}" if given else ""
            lines.append(f"  %{n} {node.name}: {node.spec}{of}")
        return "\n".join(lines)


def draw_graph(
    *tensors: Tensor, gradient: bool | None = None, names: Mapping[str, Tensor] | None = None
) -> Graph:
    """A drawing of the graph behind tensors: the ops that are pending, or the way of gradients.

    Nothing is computed. `gradient`: True for the tape, along which `backward` goes; False for what
    is pending; None for that if there is any, else for the tape. `names`: what tensors are called
    in it. Of more than 200 nodes those nearest to the tensors are drawn, and it says so.
    Shapes: any.
    Dtypes: all.
    Raises: DTypeError for what is no tensor, ArgumentError for none, or where there is no gradient
    to be drawn; ArgumentTypeError for `names`.

    >>> import dovetail as dt
    >>> x = dt.ones((2, 3), device="reference")
    >>> dt.evaluate(x)
    >>> print(dt.draw_graph((x * 2).sum(axis=1), names={"x": x}))
    3 nodes pending
      %0 x: float32[2, 3]
      %1 multiply: float32[2, 3] of %0
      %2 sum: float32[2] of %1
    """
    if not sequence("draw_graph", tensors, "tensors", "tensors"):
        raise ArgumentError("draw_graph: needs at least one tensor: dt.draw_graph(y)")
    parts = [p for x in tensors for p in parts_of(required("draw_graph", x))]
    known = _names(names)
    taped = [p._expr.tape for p in parts if p._expr.tape is not None]
    if gradient is None:
        on_tape = bool(taped) and not any(_source(p._expr).op is not None for p in parts)
    else:
        on_tape = flag("draw_graph", gradient, "gradient")
    if not on_tape:
        return _graph("pending", [_source(p._expr) for p in parts], known)
    if not taped:
        raise ArgumentError(
            "draw_graph: no gradient flows to this: nothing that it is made of requires one; "
            "see x.requires_grad_()"
        )
    return _graph("on the tape", taped, known)


def _names(names: object) -> dict[int, str]:
    """What nodes and places on the tape are called, by who they are."""
    if names is None:
        return {}
    if not isinstance(names, Mapping):
        raise refused("draw_graph", "names", 'a dict such as {"x": x}', names)
    found: dict[int, str] = {}
    for name, x in names.items():
        for p in parts_of(required("draw_graph", x)):
            e = p._expr
            found |= {id(e): str(name), id(_source(e)): str(name)}
            if e.op is None:
                found[id(storage_of(e))] = str(name)
            if e.tape is not None:
                found[id(e.tape)] = str(name)
    return found


def _source(e: Expr) -> Expr:
    """The pending node behind a leaf whose storage waits for it; else the node itself."""
    if e.op is None:
        pending = storage_of(e).pending
        return e if pending is None else pending
    return e


def _graph(what: str, roots: Sequence[object], names: Mapping[int, str]) -> Graph:
    """The nearest nodes to the roots, each after what it is made of, and how many there are."""
    nodes: dict[int, object] = {}  # all of them, the nearest first
    queue = deque(roots)
    while queue:
        n = queue.popleft()
        if id(n) not in nodes:
            nodes[id(n)] = n
            queue.extend(_given(n))
    near = dict(list(nodes.items())[:NEAREST])
    at: dict[int, int] = {}
    order: list[Node] = []
    stack = [(n, False) for n in reversed(roots)]
    while stack:
        n, seen = stack.pop()
        if id(n) in at or id(n) not in near:
            continue
        if seen:
            at[id(n)] = len(order)
            order.append(_node(n, n in roots, names))
        else:
            stack += [(n, True), *((a, False) for a in reversed(_given(n)))]
    return Graph(what, order, at, len(nodes))


def _given(n: Any) -> list[Any]:
    if type(n) is Expr:
        return [_source(a) for a in n.args if type(a) is Expr] if n.op is not None else []
    return [a for a in n.next_functions if a is not None]


def _node(n: Any, is_root: bool, names: Mapping[int, str]) -> Node:
    called = names.get(id(n))
    if type(n) is not Expr:
        kind = "gradient" if not n.edges else "result" if is_root else "work"
        name = n.name if n.edges else called or "leaf"
        asked = getattr(n, "asked_at", None)
        more = f", recorded at {asked}" if asked else ""
        return _named(name, called, n.spec, kind, more, tuple(_given(n)))
    if n.op is None:
        called = called or names.get(id(storage_of(n)))
        return _named(called or "in memory", called, n.spec, "memory", "", ())
    numbers = [repr(a) for a in n.args if type(a) is not Expr]
    more = f", with {', '.join(numbers)}" if numbers else ""
    more += "" if n.attrs is None else f", {drawing.short(str(n.attrs), 120)}"
    noted = line_of(n)
    more += f", recorded by {noted}" if noted else ""
    kind = "result" if is_root else "work"
    return _named(n.op.name, called, n.spec, kind, more, tuple(_given(n)))


def _named(
    name: str, called: str | None, x: Spec, kind: str, more: str, given: tuple[object, ...]
) -> Node:
    title = name if called in (None, name) else f"{called} = {name}"
    return Node(title, f"{x.dtype.name}{[*x.shape]}", kind, f" on {x.device}{more}", given)
