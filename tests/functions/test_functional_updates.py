"""`x.at[key]`: updates that return a new tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest

COMBINE: dict[str, Callable[..., np.ndarray] | None] = {
    "set": None, "add": np.add, "subtract": np.subtract, "multiply": np.multiply,
    "divide": np.divide, "max": np.maximum, "min": np.minimum, "power": np.power,
}  # fmt: skip
KEYS = {
    "integer": 1, "negative": -1, "slice": slice(0, 2), "step": (slice(None), slice(None, None, 2)),
    "ellipsis": (..., 0), "list": [0, 1], "array": (slice(None), np.array([2, 0])),
    "pair": (np.array([0, 1]), np.array([2, 2])), "none": (None, 1), "empty": slice(0, 0),
    "integer_array": (0, [1, 2]), "none_array": (None, [1, 0]), "last": ([1, 0], -1),
    "array_slice": ([1, 0], slice(1, 3)), "reversed": (slice(None, None, -1), [0, 2]),
    "rows": np.array([True, False]), "mask": np.array([[True, False, True], [False, False, True]]),
}  # fmt: skip
X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("method", COMBINE)
@pytest.mark.parametrize("value", [2.0, "tensor"])
def test_update_gives_what_numpy_writes(method: str, key: Any, value: Any) -> None:
    """Each key selects a position once."""
    combine, expected, x = COMBINE[method], X.copy(), dt.asarray(X)
    if value == "tensor":
        value = np.arange(1, expected[key].size + 1, dtype=np.float32).reshape(expected[key].shape)
    expected[key] = value if combine is None else combine(expected[key], value)
    ours = dt.asarray(value) if isinstance(value, np.ndarray) else value
    np.testing.assert_allclose(getattr(x.at[key], method)(ours).numpy(), expected, rtol=1e-6)
    assert x.numpy().tolist() == X.tolist()
    assert x.at[key].get().numpy().tolist() == X[key].tolist()


def test_repeated_positions_combine_all_values() -> None:
    x, key = dt.asarray([1.0, 2.0]), [0, 0, 1]
    assert x.at[key].set([5.0, 6.0, 7.0]).tolist() == [6.0, 7.0]
    assert x.at[key].add([5.0, 6.0, 7.0]).tolist() == [12.0, 9.0]
    assert x.at[key].subtract(1.0).tolist() == [-1.0, 1.0]
    assert x.at[key].multiply([2.0, 3.0, 0.5]).tolist() == [6.0, 1.0]
    assert x.at[key].divide([2.0, 2.0, 4.0]).tolist() == [0.25, 0.5]
    assert x.at[key].max([0.0, 3.0, 1.0]).tolist() == [3.0, 2.0]
    assert x.at[key].min([0.0, 3.0, 1.0]).tolist() == [0.0, 1.0]
    assert x.at[key].apply(dt.negative).tolist() == [-1.0, -2.0]


@pytest.mark.parametrize("method", ["set", "add", "multiply", "max"])
def test_update_has_gradients_to_both(method: str) -> None:
    x, v = dt.asarray([1.0, 2.0, 3.0]), dt.asarray([4.0, 0.5])
    f = lambda x, v: (getattr(x.at[[2, 0]], method)(v) ** 2).sum()  # noqa: E731
    expected = {
        "set": ([0.0, 4.0, 0.0], [8.0, 1.0]), "add": ([3.0, 4.0, 14.0], [14.0, 3.0]),
        "multiply": ([0.5, 4.0, 96.0], [72.0, 1.0]), "max": ([2.0, 4.0, 0.0], [8.0, 0.0]),
    }[method]  # fmt: skip
    assert tuple(g.tolist() for g in dt.func.grad(f, (0, 1))(x, v)) == expected


def test_update_under_vmap_and_jit_equals_the_plain_one() -> None:
    x, v = dt.asarray(X), dt.asarray([[10.0, 20.0], [30.0, 40.0]])
    keys = dt.asarray([[0, 0], [2, 1]])
    f = lambda row, key, v: row.at[key].add(v)  # noqa: E731
    expected = [f(*rows).tolist() for rows in zip(x, keys, v, strict=True)]
    assert expected == [[31.0, 2.0, 3.0], [4.0, 45.0, 36.0]]
    assert dt.vmap(f)(x, keys, v).tolist() == expected
    assert dt.jit(dt.vmap(f))(x, keys, v).tolist() == expected
    assert dt.jit(lambda x: x.at[x > 2].multiply(0.0))(x).tolist() == [[1, 2, 0], [0, 0, 0]]


def test_integers_and_scalars_are_updated() -> None:
    assert dt.asarray([1, 2]).at[0].add(5).tolist() == [6, 2]
    assert dt.asarray(3.0).at[()].multiply(2.0).item() == 6.0
    assert dt.asarray([True, False]).at[1].set(True).tolist() == [True, True]
    with pytest.raises(dt.OutOfRangeError):
        dt.zeros(2).at[5].set(1.0)
    with pytest.raises(dt.DTypeError):
        dt.asarray([1]).at[0].set(0.5)
