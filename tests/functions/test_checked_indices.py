"""Index checks for plugins: `extend.in_range` and `extend.read_at`."""

from __future__ import annotations

import dovetail as dt
import pytest
from dovetail.extend import in_range, read_at


def test_indices_in_range_are_returned_unchanged(device: dt.Device) -> None:
    for dtype in (dt.int64, dt.int32, dt.uint8):
        at = dt.asarray([[2, 0], [1, 1]], dtype=dtype)
        found = in_range("ask", at, 3)
        assert found.tolist() == at.tolist() and found.dtype is dt.int64
    assert in_range("ask", dt.zeros(0, dtype=dt.int64), 0).tolist() == []
    at = dt.asarray([2, -100, 9])
    assert in_range("ask", at, 3, at == 2).tolist() == [2, 0, 0]


@pytest.mark.parametrize("wrong", [3, -1, -4, 1 << 40])
def test_index_out_of_range_names_the_caller(wrong: int, device: dt.Device) -> None:
    with pytest.raises(dt.OutOfRangeError, match=r"ask: .*size 3.*test_checked_indices"):
        in_range("ask", dt.asarray([0, wrong]), 3).tolist()


def test_read_at_reads_and_has_a_gradient(device: dt.Device) -> None:
    x = dt.asarray([[1.0, 2.0], [3.0, 4.0]]).requires_grad_()
    y = read_at("ask", x, dt.asarray([1, 1, 0]), 0)
    y.sum().backward()
    assert y.tolist() == [[3, 4], [3, 4], [1, 2]] and x.grad.tolist() == [[1, 1], [2, 2]]
    with pytest.raises(dt.OutOfRangeError, match=r"ask: 2 .*axis 0 of size 2"):
        read_at("ask", x, dt.asarray([2]), 0).tolist()
