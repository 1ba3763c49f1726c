"""Buckets: vectors of limited size, which are sent while later ones are computed."""

from __future__ import annotations

from functools import partial
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.parallel import ProcessGroup, packing

run_threads = partial(dt.parallel.run, transport="threads", timeout=60)


def tensors() -> list[dt.Tensor]:
    rng = np.random.default_rng(0)
    shapes = [(2, 3), (5,), (), (4,), (0,), (7,)]
    leaves = [dt.asarray(rng.standard_normal(s, np.float32)) for s in shapes]
    return [*leaves[:3], dt.arange(3), *leaves[3:], dt.ones(2, dtype=dt.bfloat16)]


@pytest.mark.parametrize(("limit", "count"), [(1, 8), (24, 6), (1 << 20, 3)])
def test_unpacked_tensors_are_the_packed_ones(
    monkeypatch: pytest.MonkeyPatch, limit: int, count: int
) -> None:
    monkeypatch.setattr(packing, "BUCKET_BYTES", limit)
    leaves = tensors()
    vectors = packing.pack(leaves)
    assert len(vectors) == count
    empty = packing.empty_vectors(leaves)
    assert [(x.shape, x.dtype) for x in empty] == [(x.shape, x.dtype) for x in vectors]
    for x, y in zip(packing.unpack(vectors, leaves), leaves, strict=True):
        assert (x.tolist(), x.shape, x.dtype) == (y.tolist(), y.shape, y.dtype)


def loss(params: Any, x: dt.Tensor) -> tuple[dt.Tensor, int]:
    first, second = params
    return ((dt.tanh(x @ first) @ second) ** 2).sum(), len(x)


def compute(jit: bool, n: int = 11) -> list[Any]:
    rng = np.random.default_rng(1)
    params = [dt.asarray(rng.standard_normal(s, np.float32)) for s in ((3, 5), (5, 2))]
    step = dt.parallel.value_and_grad(loss, groups=8, jit=jit, generator=dt.random.default_rng(0))
    value, gradients = step(params, rng.standard_normal((n, 3), np.float32))
    return [value.item(), *[g.tolist() for g in gradients]]


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("workers", [1, 2, 3, 8])
@pytest.mark.parametrize("n", [11, 2])
def test_buckets_do_not_change_bits(
    monkeypatch: pytest.MonkeyPatch, jit: bool, workers: int, n: int
) -> None:
    whole = compute(jit, n)
    monkeypatch.setattr(packing, "BUCKET_BYTES", 48)  # one tensor in each bucket
    assert run_threads(compute, [jit, n], workers=workers) == [whole] * workers


def is_pending(x: dt.Tensor) -> bool:
    return len(dt.explain(x).launches) > 0


def test_first_bucket_is_sent_before_the_last_one_is_evaluated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packing, "BUCKET_BYTES", 1)
    pending_at_send: list[int] = []
    vectors: list[dt.Tensor] = []
    send, pack = ProcessGroup.send, packing.pack

    def record(leaves: Any) -> list[dt.Tensor]:
        """Pack, and store the vectors of worker 1."""
        result = pack(leaves)
        if dt.parallel.current().rank == 1:
            vectors[:] = result
        return result

    def count_pending(group: ProcessGroup, x: Any, *options: Any) -> Any:
        """Send, and count the vectors of worker 1 that are not evaluated then."""
        request = send(group, x, *options)
        if group.rank == 1:
            pending_at_send.append(sum(map(is_pending, vectors)))
        return request

    monkeypatch.setattr("dovetail.parallel.gradients.pack", record)
    monkeypatch.setattr(ProcessGroup, "send", count_pending)
    run_threads(compute, [False], workers=2)
    # a header; the gradients of the last and of the first layer, the loss and the weight
    assert pending_at_send == [3, 3, 2, 1, 0]
