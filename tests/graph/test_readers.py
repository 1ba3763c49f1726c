"""The pending expressions that read a memory, looked up before a write."""

from __future__ import annotations

import dovetail as dt
import pytest
from dovetail.graph import expr


def tensors(count: int) -> list[dt.Tensor]:
    found = [dt.asarray([1.0, 2.0], device="reference") for _ in range(count)]
    dt.evaluate(*found)
    return found


@pytest.mark.parametrize(
    "others", [0, 1, expr.UNREGISTERED_NODES_MAX, 5 * expr.UNREGISTERED_NODES_MAX]
)
def test_pending_reader_sees_the_memory_before_a_write(others: int) -> None:
    for _ in range(4):  # from the second time on, the graph is cached
        x, y = tensors(2)
        pending = [y + k for k in range(others)]
        reader = x * 10
        pending += [y - k for k in range(others)]
        x[:] = y + 40
        assert reader.tolist() == [10.0, 20.0] and x.tolist() == [41.0, 42.0]
        wanted = [1.0 + k for k in range(others)] + [1.0 - k for k in range(others)]
        assert [p.tolist()[0] for p in pending] == wanted


def test_loop_of_writes_leaves_no_reader_records() -> None:
    x, y = tensors(2)
    held = [x + 1, y + 1]
    before = len(expr.pending_nodes())  # including references of other test modules
    for _ in range(20 * expr.UNREGISTERED_NODES_MAX):
        x[:1] = y[1:] * 2 + 1
    assert len(expr.pending_nodes()) <= before + 1
    assert held[0].tolist() == [2.0, 3.0], "read before the first write"
    assert x.tolist() == [5.0, 2.0]


def test_storage_without_pending_readers_is_written_without_evaluation() -> None:
    x, y, z = tensors(3)
    waits = y * 3
    before = expr.pending_nodes()
    x[:] = z * 2
    assert any(e is waits._expr for e in before)
    assert waits._expr.op is not None, "still pending"
    assert x.tolist() == [2.0, 4.0] and waits.tolist() == [3.0, 6.0]
