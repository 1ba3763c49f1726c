"""Collective operations of a group, over each transport, against NumPy."""

from __future__ import annotations

import hashlib
from functools import reduce
from time import sleep
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.parallel import collectives
from worker_groups import KINDS, run_all

SIZES = [1, 2, 3, 4]
SHAPES: list[tuple[int, ...]] = [(), (0,), (3,), (2, 96), (5, 1, 7), (70_001,)]
OPS = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}


@pytest.fixture(autouse=True)
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut messages into many segments, so that windows fill."""
    monkeypatch.setattr(collectives, "SEGMENT_BYTES", 4096)


def values(shape: tuple[int, ...], size: int, dtype: str = "float32") -> list[Any]:
    rng = np.random.default_rng(len(shape) + 10 * size)
    return [(4 * rng.standard_normal(shape)).astype(dtype) for _ in range(size)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_reduce_adds_in_the_order_of_ranks(
    kind: str, size: int, shape: tuple[int, ...]
) -> None:
    xs = values(shape, size)
    for op, ufunc in OPS.items():
        results = run_all(kind, size, lambda g, op=op: g.all_reduce(dt.asarray(xs[g.rank]), op))
        expected = reduce(ufunc, xs)
        for r in results:
            assert r.shape == shape and r.dtype is dt.float32
            assert r.numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64", "int8", "uint64"])
@pytest.mark.parametrize("n", [5, 9000])
def test_all_reduce_of_each_dtype_equals_the_sum_on_one_device(
    kind: str, dtype: str, n: int
) -> None:
    xs = [dt.asarray(x).astype(dtype) for x in values((n,), 3, "int32")]
    results = run_all(kind, 3, lambda g: g.all_reduce(xs[g.rank]))
    expected = (xs[0] + xs[1]) + xs[2]
    for r in results:
        assert r.dtype is expected.dtype and dt.array_equal(r, expected)
    if dtype in ("float16", "bfloat16", "float64", "complex64"):
        mean = run_all(kind, 3, lambda g: g.all_reduce(xs[g.rank], "mean"))[1]
        assert dt.array_equal(mean, expected / 3)


def test_result_is_on_the_operands_device_and_the_operand_is_unchanged(device: str) -> None:
    x = dt.arange(2000.0, device=device)
    before = x.tolist()
    for r in run_all("sockets", 2, lambda g: g.all_reduce(x)):
        assert r.device == x.device and r.tolist() == (2 * x).tolist()
    assert x.tolist() == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [4, 3000])
def test_views_that_are_not_contiguous_are_sent_by_their_elements(kind: str, n: int) -> None:
    base = dt.arange(6.0 * n).reshape(2 * n, 3)
    for x in (base.T, base[::2], base[:, 1], base[::-1], dt.broadcast_to(base[0], (n, 3))):
        for r in run_all(kind, 2, lambda g, x=x: g.all_reduce(x)):
            assert r.shape == x.shape and dt.array_equal(r, x + x)
        array = x.numpy()
        for r in run_all(kind, 2, lambda g, a=array: g.broadcast(a)):
            assert type(r) is np.ndarray and np.array_equal(r, array)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("n", [3, 2500])
def test_movement_collectives_return_each_ranks_tensor(kind: str, size: int, n: int) -> None:
    xs = [dt.arange(float(n)) + 10 * r for r in range(size)]
    last = size - 1
    for r in run_all(kind, size, lambda g: g.broadcast(xs[g.rank], src=last)):
        assert dt.array_equal(r, xs[last])
    for r in run_all(kind, size, lambda g: g.all_gather(xs[g.rank])):
        assert len(r) == size and all(map(dt.array_equal, r, xs))
    *others, gathered = run_all(kind, size, lambda g: g.gather(xs[g.rank], dst=last))
    assert others == [None] * last and all(map(dt.array_equal, gathered, xs))
    scattered = run_all(kind, size, lambda g: g.scatter(xs if g.rank == last else None, src=last))
    assert all(map(dt.array_equal, scattered, xs))
    lists = [[x * (q + 1) for x in xs] for q in range(size)]
    for r, s in enumerate(run_all(kind, size, lambda g: g.reduce_scatter(lists[g.rank]))):
        assert dt.array_equal(s, xs[r] * (size * (size + 1) // 2))
    assert run_all(kind, size, lambda g: g.barrier()) == [None] * size


@pytest.mark.parametrize("size", [2, 3])
def test_repeated_reductions_have_the_same_bits(size: int) -> None:
    xs = values((50_000,), size)

    def work(g: dt.parallel.ProcessGroup) -> set[str]:
        x = dt.asarray(xs[g.rank])
        return {hashlib.sha256(g.all_reduce(x).numpy()).hexdigest() for _ in range(5)}

    assert len(set.union(*run_all("sockets", size, work))) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_messages_of_a_tag_arrive_in_order_and_tags_are_independent(kind: str) -> None:
    def work(g: dt.parallel.ProcessGroup) -> list[Any]:
        other = 1 - g.rank
        sends = [g.send(dt.full((n,), float(n + k)), other, tag) for k, n, tag in MESSAGES]
        like = {n: dt.empty(n) for _, n, _ in MESSAGES}
        wanted = sorted(MESSAGES, key=lambda m: -m[2])
        receives = [(k, n, g.receive(like[n], other, tag)) for k, n, tag in wanted]
        assert all((r.wait() == n + k).all() for k, n, r in receives)
        assert all(r.wait(5) is None and r.is_done() for r in sends)
        assert receives[0][2].wait() is receives[0][2].wait()
        return [r.is_done() for *_, r in receives]

    assert run_all(kind, 2, work) == [[True] * len(MESSAGES)] * 2


MESSAGES = [(0, 3, 7), (1, 3, 7), (2, 200_000, 7), (3, 5, 0), (4, 300_000, 0), (5, 1, 2**20 - 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_request_is_not_done_before_the_message_was_sent(kind: str) -> None:
    def work(g: dt.parallel.ProcessGroup) -> bool:
        if g.rank == 1:
            g.barrier()
            g.send(np.arange(9), 0).wait()
            return False
        request = g.receive(np.empty(9, int), 1)
        was_done = request.is_done()
        g.barrier()
        assert np.array_equal(request.wait(), np.arange(9))
        return was_done

    assert run_all(kind, 2, work) == [False, False]


def test_a_large_message_moves_while_both_ranks_compute() -> None:
    """The thread of the transport moves it: the ranks make no call meanwhile."""

    def work(g: dt.parallel.ProcessGroup) -> bool:
        x, other = np.full(4_000_000, float(g.rank)), 1 - g.rank
        send, receive = g.send(x, other), g.receive(x, other)
        requests: list[Any] = [*send._requests, *receive._requests]
        for _ in range(1000):
            if all(r.is_complete for r in requests):  # which makes no progress itself
                break
            sleep(0.01)
        return bool((receive.wait() == other).all())

    assert run_all("sockets", 2, work) == [True, True]


def test_group_of_one_copies() -> None:
    g = dt.parallel.current()
    x = dt.arange(3.0)
    results = [g.all_reduce(x), g.broadcast(x), g.reduce_scatter([x]), g.scatter([x])]
    (a,), (b,) = g.all_gather(x), g.gather(x) or ()
    for r in (*results, a, b):
        assert dt.array_equal(r, x) and r.data_ptr() != x.data_ptr()
    assert g.barrier() is None and repr(g) == "<ProcessGroup: rank 0 of 1>"


GROUP_OF_ONE_ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda g, x: g.all_reduce(x, "avg"), dt.ArgumentError, "op must be"),
    (lambda g, x: g.all_reduce(x > 0), dt.DTypeError, "'sum' is not defined for bool; cast it"),
    (lambda g, x: g.all_reduce(x.astype("int32"), "mean"), dt.DTypeError, "or cast it to float32"),
    (lambda g, x: g.all_reduce(x.astype("complex64"), "max"), dt.DTypeError, "real and imaginary"),
    (lambda g, x: g.all_reduce([1.0]), dt.ArgumentTypeError, "tensor must be"),
    (lambda g, x: g.all_reduce(np.array(["a"])), dt.DTypeError, "must have numbers"),
    (lambda g, x: g.all_reduce(x.clone().requires_grad_()), dt.GradientError, "detach()"),
    (lambda g, x: g.all_reduce(x.to_sparse()), dt.LayoutError, "must be strided"),
    (lambda g, x: g.broadcast(x, 1), dt.ArgumentError, "src must be a rank from 0 to 0, got 1"),
    (lambda g, x: g.gather(x, -1), dt.ArgumentError, "dst must be a rank"),
    (lambda g, x: g.scatter(), dt.ArgumentError, "must have 1 tensors on the rank src=0, got None"),
    (lambda g, x: g.scatter([x, x]), dt.ArgumentError, "one for each rank, got 2: float32"),
    (lambda g, x: g.reduce_scatter(x), dt.ArgumentTypeError, "a list of tensors"),
    (lambda g, x: g.send(x, 0), dt.ArgumentError, "dst must be another rank, got 0, this one"),
    (lambda g, x: g.receive(x, 0), dt.ArgumentError, "src must be another rank"),
]


@pytest.mark.parametrize(("call", "error", "text"), GROUP_OF_ONE_ERRORS)
def test_wrong_argument_is_refused_before_a_message(
    call: Any, error: type[Exception], text: str
) -> None:
    g = dt.parallel.current()
    with pytest.raises(error, match=text):
        call(g, dt.ones(3))
    assert g.all_reduce(dt.ones(1)).item() == 1.0


def test_tag_and_limit_are_checked() -> None:
    def work(g: dt.parallel.ProcessGroup) -> None:
        for tag in (-1, 2**20):
            with pytest.raises(dt.ArgumentError, match="tag must be from 0 to"):
                g.send(dt.ones(1), 1 - g.rank, tag)
        with pytest.raises(dt.ArgumentError, match="timeout must be above 0"):
            dt.parallel.ProcessGroup(g._communicator.transport, 0)

    run_all("threads", 2, work)
