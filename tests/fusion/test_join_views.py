"""Concatenations that are viewed, and concatenated again, read the right elements."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.fusion.join_views import view_join

STEPS = 6
SIZE_MAX = 500


def join(library: Any, parts: list[Any], axis: int) -> Any:
    return library.concatenate(parts, axis=axis) if library is np else dt.concat(parts, axis=axis)


def run_program(library: Any, x: Any, seed: int) -> Any:
    """Return the result of a random program of concatenations, slices and sums."""
    rng, y, earlier = np.random.default_rng(seed), x, x
    for _ in range(STEPS):
        axis, k = int(rng.integers(2)), int(rng.integers(1, 3))
        n = y.shape[axis]
        match int(rng.integers(7)):
            case 0:
                before, y = y, join(library, [y, y[:k] if axis == 0 else y[:, :k]], axis)
                earlier = before
            case 1:
                y = join(library, [y[n - k :], y[: n - k]], 0) if axis == 0 else y
            case 2:
                low, high = sorted(rng.integers(0, n + 1, 2).tolist())
                if high - low > 3:
                    y = y[low:high] if axis == 0 else y[:, low:high]
            case 3:
                y = y[::-1] if axis == 0 else y[:, 1:]
                y = join(library, [y, y], 1)[:, : x.shape[1]]
            case 4:
                if y.shape == earlier.shape:
                    y = y + earlier
            case 5:
                y = join(library, [y[:k], y[k:] * 2 + y[:-k], y[:0]], 0)
            case 6:
                y = y.T if y.shape[0] > 3 and y.shape[1] > 3 else y
        y = y if min(y.shape) > 3 and y.size < SIZE_MAX else x
    return y


@pytest.mark.parametrize(("device", "count"), [("reference", 150), ("cpu", 10)])
def test_random_joins_and_slices_equal_numpy(device: str, count: int) -> None:
    x = np.arange(42, dtype=np.int32).reshape(6, 7)
    for seed in range(count):
        wanted = run_program(np, x, seed)
        ours = run_program(dt, dt.asarray(x, device=device), seed)
        np.testing.assert_array_equal(ours.numpy(), wanted, err_msg=str(seed))


def test_joins_of_one_axis_add_one_pad_to_the_path() -> None:
    first = view_join((5,), 0, ((("pad", 0, 3, 12), 7), (("pad", 0, 10, 30), 8)))
    assert first.find_interval(2, 5) == (15, 18)
    assert first.find_path((3,), 2, 6) == ((("pad", 0, 15, 30), 6),)


def test_part_is_cut_to_what_a_slice_shows() -> None:
    view = view_join((9,), 0, ((("slice", (2,), (4,), (1,)), 7),))
    assert view.find_interval(0, 3) == (0, 1)
    assert view.find_path((3,), 0, 6) == (
        (("slice", (2,), (1,), (1,)), 6),
        (("pad", 0, 0, 4), 6),
    )
    assert view.find_path((6,), 1, 6) == ((("slice", (1,), (4,), (1,)), 6),)


def test_part_outside_of_a_slice_is_not_computed() -> None:
    x, y = dt.ones(4, device="reference"), dt.full(4, 2.0, device="reference") * 3
    dt.evaluate(x, y)
    (step,) = dt.explain(dt.concat([x, y])[1:3] + 1).launches
    assert step.nbytes == 2 * 2 * x.itemsize
