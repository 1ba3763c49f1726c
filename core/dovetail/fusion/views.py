"""Whether a value may lie in memory otherwise than row-major, by how others view it."""

from __future__ import annotations

from ..layout import StridedView
from .decisions import Graph
from .domain import Path, through


def reshaping_views(graph: Graph) -> dict[int, list[Path]]:
    """For each node how its views are seen, and theirs: those paths that reshape it."""
    found: dict[int, list[Path]] = {}
    views: dict[int, tuple[int, Path]] = {}  # view -> what it is a view of, and how
    for i in range(len(graph.nodes)):
        view = graph.view_of(i)
        if view is None:
            continue
        views[i] = view
        at, path = view
        while any(m[0] == "reshape" for m, _ in path):
            found.setdefault(at, []).append(path)
            if at not in views:
                break
            at, before = views[at]
            path = before + path
    return found


def permits(base: StridedView, views: list[Path]) -> bool:
    """Whether memory that is laid out so is seen through all of these."""
    return all(isinstance(through(base, path), StridedView) for path in views)
