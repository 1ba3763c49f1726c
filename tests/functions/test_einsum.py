"""`einsum`: broadcasting, both call forms of NumPy, and contraction paths."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import dovetail as dt
import numpy as np
import pytest


def integers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype("f8")


BROADCAST = [
    ("...ij,...jk->...ik", (1, 2, 3), (4, 3, 2)),
    ("...ij,...jk->...ik", (1, 1, 2, 3), (4, 1, 3, 2)),
    ("...ij,...jk->...ik", (2, 3), (4, 3, 2)), ("ij,ij->i", (1, 3), (4, 3)),
    ("ij,ij->j", (4, 1), (1, 3)), ("ij,ij", (1, 3), (4, 3)), ("ii,i->i", (1, 1), (3,)),
    ("ij,ij->ij", (1, 3), (0, 3)), ("ij,jk,ik->i", (1, 3), (1, 4), (2, 1)),
    ("b...,c...,bc->...", (2, 1, 3), (1, 4, 1), (1, 5)),
]  # fmt: skip


@pytest.mark.parametrize("case", BROADCAST)
def test_einsum_broadcasts_axes_of_size_one_like_numpy(case: Any, device: dt.Device) -> None:
    text, *shapes = case
    arrays = [integers(*s, seed=i) for i, s in enumerate(shapes)]
    found = dt.einsum(text, *map(dt.asarray, arrays))
    np.testing.assert_array_equal(found.numpy(), np.einsum(text, *arrays))


def test_einsum_of_mismatched_sizes_raises_shape_error() -> None:
    x = dt.ones((1, 3), device="reference")
    for call in (
        lambda: dt.einsum("ii", x),
        lambda: dt.einsum("ij,ij", x.expand(2, 3), x.expand(4, 3)),
    ):
        with pytest.raises(dt.ShapeError, match="einsum: sizes of 'i' must be equal"):
            call()


def test_einsum_gradient_of_broadcast_operands_sums_over_the_batch() -> None:
    x = dt.ones((1, 2, 3), device="reference", requires_grad=True)
    y = dt.ones((4, 3, 2), device="reference", requires_grad=True)
    dt.einsum("...ij,...jk->...ik", x, y).sum().backward()
    assert x.grad is not None and y.grad is not None
    assert x.grad.tolist() == [[[8.0] * 3] * 2] and y.grad.shape == y.shape


def test_einsum_sums_in_the_common_dtype_of_all_operands(device: dt.Device) -> None:
    small = np.full((10, 10), 100, np.int8)
    found = dt.einsum("ij,k->k", dt.asarray(small), dt.asarray(np.ones(2)))
    np.testing.assert_array_equal(found.numpy(), np.einsum("ij,k->k", small, np.ones(2)))


OPTIMIZE = [
    True, False, "greedy", "optimal", "dp", ("greedy", 10), [(0, 2), (0, 1)], [],
    ["einsum_path", (0, 1), (0, 1)], ["einsum_path", (0, 1, 2)], ["einsum_path", (1,), (0, 1)],
]  # fmt: skip


@pytest.mark.parametrize("optimize", OPTIMIZE, ids=str)
def test_einsum_equals_numpy_along_every_path(optimize: Any, device: dt.Device) -> None:
    for text, *shapes in (
        ("ij,jk,kl->il", (3, 4), (4, 5), (5, 2)),
        ("...ij,...jk,...k->i...", (1, 3, 4), (6, 4, 1), (2, 1, 7)),
    ):
        arrays = [integers(*s, seed=i) for i, s in enumerate(shapes)]
        want = np.einsum(text, *arrays)
        tensors = [*map(dt.asarray, arrays)]
        for found in (dt.einsum(text, *tensors, optimize=optimize),
                      np.einsum(text, *tensors, optimize=optimize)):  # fmt: skip
            np.testing.assert_array_equal(found.numpy(), want)


@pytest.mark.parametrize(
    "optimize", ["nonsense", 3, [(0, 5)], [(0, 0)], ["a"], [()], ("greedy", -1)], ids=str
)
def test_einsum_with_an_invalid_path_raises(optimize: Any) -> None:
    x = dt.ones((2, 2), device="reference")
    with pytest.raises((dt.ArgumentError, dt.ArgumentTypeError), match="einsum: "):
        dt.einsum("ij,jk,kl->il", x, x, x, optimize=optimize)


def test_einsum_of_three_operands_stores_no_product_of_all_labels() -> None:
    a, b, c = (dt.full((64, 64), v, device="cpu") for v in (1.0, 2.0, 3.0))
    dt.evaluate(a, b, c)
    dt.memory.reset_peak("cpu")
    before = dt.memory.stats("cpu")["live_bytes"]
    found = dt.einsum("ai,bj,ab->ij", a, b, c)
    assert found[0, 0].item() == 64 * 64 * 6
    assert dt.memory.stats("cpu")["peak_live_bytes"] - before < 1 << 20  # from left to right: 67 MB


PATHS = """
from dovetail.functions.products.einsum import _search_path
import numpy as np
r = np.random.default_rng(0)
for _ in range(40):
    terms = tuple("".join(r.permutation([*"abcdefgh"])[:r.integers(1, 5)]) for _ in range(r.integers(3, 9)))
    sizes = tuple((c, int(r.integers(1, 4))) for c in "abcdefgh")
    print(_search_path(terms, "", sizes, "auto", None))
"""  # noqa: E501


def test_einsum_takes_the_same_path_in_every_process() -> None:
    seeds = [{**os.environ, "PYTHONHASHSEED": seed} for seed in "01"]
    found = {subprocess.check_output([sys.executable, "-c", PATHS], env=env) for env in seeds}
    assert len(found) == 1


SUBLISTS: list[Any] = [
    (["x", [0, 1], "x", [1, 2], [0, 2]]), (["x", [0, 1], "x", [1, 2]]), (["x", [1, 0]]),
    (["x", [..., 0], "x", [0, ...], [...]]), (["x", [0, 0], []]), (["x", [30, 3]]),
    (["x", [0, 1], "x", [1, 2], "x", [2, 3]]),
]  # fmt: skip


@pytest.mark.parametrize("case", SUBLISTS, ids=str)
def test_numpy_einsum_and_einsum_path_accept_lists_of_labels(case: Any, device: dt.Device) -> None:
    a = integers(3, 3)
    arrays = [a if v == "x" else v for v in case]
    tensors = [dt.asarray(a) if v == "x" else v for v in case]
    np.testing.assert_array_equal(np.einsum(*tensors).numpy(), np.einsum(*arrays))
    assert np.einsum_path(*tensors)[0] == np.einsum_path(*arrays)[0]


@pytest.mark.parametrize("labels", [[[0, 99]], ["ij"], [[0, 1], [0, 5]], [["i", "j"]]], ids=str)
def test_numpy_einsum_with_wrong_lists_of_labels_raises(labels: Any) -> None:
    x: Any = dt.ones((2, 2), device="reference")
    with pytest.raises((dt.ArgumentError, dt.ArgumentTypeError), match="einsum: "):
        np.einsum(x, *labels)
