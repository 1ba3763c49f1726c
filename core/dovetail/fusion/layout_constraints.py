"""Layouts other than row-major: which of them the views of a value permit."""

from __future__ import annotations

from ..layout import StridedView
from .decisions import Graph
from .domain import Path, apply_path


def reshaping_views(graph: Graph) -> dict[int, list[Path]]:
    """Return, by node, the paths of its views (and of their views) that reshape it."""
    reshaping: dict[int, list[Path]] = {}
    views: dict[int, tuple[int, Path]] = {}  # view -> the node that it views, and the path
    for i in range(len(graph.nodes)):
        view = graph.view_of(i)
        if view is None:
            continue
        views[i] = view
        at, path = view
        while any(m[0] == "reshape" for m, _ in path):
            reshaping.setdefault(at, []).append(path)
            if at not in views:
                break
            at, before = views[at]
            path = before + path
    return reshaping


def permits_views(base: StridedView, views: list[Path]) -> bool:
    """Return True if memory of this layout can be viewed through all of these paths."""
    return all(isinstance(apply_path(base, path), StridedView) for path in views)
