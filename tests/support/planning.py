"""Planning under other limits, which plans from before must not hide."""

from __future__ import annotations

import pytest
from dovetail.engine import plan_cache, shape_classes
from dovetail.lru_cache import LRUCache


def forget_shape_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put shape classes out of use until the test ends, for one that changes a planner's limits."""
    monkeypatch.setattr(shape_classes, "_skeletons", LRUCache(100))
    monkeypatch.setattr(plan_cache, "_class_graphs", LRUCache(100))
    for lately in (
        plan_cache.value_graphs,
        plan_cache.update_graphs,
        plan_cache.referenced_graphs,
        plan_cache.joint_graphs,
    ):
        lately.age()
