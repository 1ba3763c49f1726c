"""Random chains of ops on random sparse tensors equal those on dense ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sparse_samples import scattered, triples

Step = Callable[[Any], Any]


@st.composite
def tensors(draw: Any) -> tuple[Any, Any]:
    """Return a sparse tensor of 1 to 4 dimensions, some of them dense, and NumPy's array of it."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    dense = draw(st.integers(0, len(shape) - 1))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    at, values = triples(rng, shape, draw(st.sampled_from([0.0, 0.2, 0.6, 1.5])), dense)
    x = dt.sparse_coo_tensor(at, values, shape, device="reference")
    return x, scattered(at, values, shape)


def steps(data: Any, x: Any) -> Step:
    """Return an operation that dovetail and NumPy can apply to a tensor of x's shape."""
    axis = data.draw(st.integers(0, x.ndim - 1))
    order = tuple(data.draw(st.permutations(range(x.ndim))))
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, x.shape[axis])] * 2)))
    step = data.draw(st.sampled_from([1, 2, -1, -2]))
    cut = (*[slice(None)] * axis, slice(start, stop) if step == 1 else slice(None, None, step))
    n = x.shape[axis]
    picked = data.draw(st.lists(st.integers(-n, n - 1), max_size=6)) if n else []
    take = (*[slice(None)] * axis, np.array(picked, np.int64))
    choices: list[Step] = [
        lambda a: a.transpose(order) if isinstance(a, np.ndarray) else dt.permute_dims(a, order),
        lambda a: a[cut], lambda a: a[take], lambda a: a.reshape(-1), lambda a: a * 2 - a * 3,
        lambda a: a.sum(axis=axis), lambda a: a.sum(axis=axis, keepdims=True) * a,
        lambda a: a[None], lambda a: abs(a) > 1, lambda a: a * a + a,
        lambda a: a * np.float64(0.5) if isinstance(a, np.ndarray) else a * 0.5,
    ]  # fmt: skip
    if x.shape[axis]:
        choices += [lambda a: a.max(axis=axis), lambda a: a.min(axis=axis)]
    return data.draw(st.sampled_from(choices))  # type: ignore[no-any-return]


@settings(max_examples=60, deadline=None)
@given(tensors(), st.data())
def test_random_chains_equal_numpy(made: tuple[Any, Any], data: Any) -> None:
    x, want = made
    for _ in range(3):
        if x.ndim == 0 or x.layout is dt.strided or x.dtype is dt.bool:
            break
        f = steps(data, x)
        x, want = f(x), f(want)
        np.testing.assert_array_equal(x.to_dense().numpy(), want, strict=True)
