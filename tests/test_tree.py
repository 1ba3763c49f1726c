"""`dt.tree` has the meaning of `jax.tree`."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import dovetail as dt
import pytest

Pair = namedtuple("Pair", "first second")
TREES: list[tuple[Any, list[Any]]] = [
    (7, [7]),
    (None, []),
    ((), []),
    ([1, (2, None), {"b": 3, "a": 4}], [1, 2, 4, 3]),
    (OrderedDict([("b", 1), ("a", 2)]), [1, 2]),
    (Pair(1, [2]), [1, 2]),
]


@pytest.mark.parametrize(("tree", "leaves"), TREES, ids=str)
def test_tree_is_rebuilt_from_its_leaves(tree: Any, leaves: list[Any]) -> None:
    found, structure = dt.tree.flatten(tree)
    assert found == leaves == dt.tree.leaves(tree)
    assert structure == dt.tree.structure(tree)
    assert dt.tree.unflatten(structure, found) == tree
    assert dt.tree.map(lambda x: x, tree) == tree


def test_map_calls_with_the_leaves_of_all_trees() -> None:
    with dt.device("reference"):
        weights = {"w": dt.ones(2), "b": [dt.zeros(1)]}
        steps = dt.tree.map(lambda w: w + 1, weights)
        found = dt.tree.map(lambda w, s: w - 0.5 * s, weights, steps)
    assert found["w"].tolist() == [0.0, 0.0] and found["b"][0].tolist() == [-0.5]


def test_map_passes_branches_below_a_leaf_of_the_first_tree() -> None:
    assert dt.tree.map(lambda x, y: (x, y), [1, 2], [(3, 4), 5]) == [(1, (3, 4)), (2, 5)]


def test_is_leaf_makes_a_leaf_of_a_container() -> None:
    def is_pair(node: Any) -> bool:
        return isinstance(node, tuple)

    assert dt.tree.leaves([(1, 2), 3], is_leaf=is_pair) == [(1, 2), 3]
    assert dt.tree.map(len, [(1, 2)], is_leaf=is_pair) == [2]


def test_different_structures_raise() -> None:
    with pytest.raises(dt.ArgumentError, match=r"tree\.map: the trees must have one structure"):
        dt.tree.map(lambda x, y: x, (1, 2), [1, 2])
    with pytest.raises(dt.ArgumentError, match=r"tree\.unflatten: "):
        dt.tree.unflatten(dt.tree.structure((1, 2)), [1, 2, 3])
    with pytest.raises(dt.ArgumentTypeError, match=r"tree\.unflatten: treedef must be"):
        dt.tree.unflatten(3, [1])


def test_error_of_the_users_function_is_kept() -> None:
    with pytest.raises(TypeError, match="not callable"):
        dt.tree.map(lambda x: x(), [1])


def test_tree_equals_jax() -> None:
    jax = pytest.importorskip("jax", reason="jax is not installed: pip install jax")
    for tree, _ in TREES:
        assert dt.tree.leaves(tree) == jax.tree.leaves(tree)
        mapped = dt.tree.map(lambda x: x + 1, tree)
        assert mapped == jax.tree.map(lambda x: x + 1, tree)
