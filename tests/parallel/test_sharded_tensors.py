"""Sharded tensors of 1 to 4 workers against the same functions of strided tensors."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.parallel.agreement import unpack
from dovetail.parallel.communicator import AGREEMENT_TAG

run_threads = partial(dt.parallel.run, transport="threads", timeout=60)
WORKERS = [1, 2, 3, 4]
Tensor = Any


def numbers(*shape: int, seed: int = 0, dtype: str = "float32") -> Tensor:
    values = np.random.default_rng(seed).standard_normal(shape)
    return dt.asarray((4 * values).astype("float32")).astype(dtype)


def bits(x: Tensor) -> tuple[Any, ...]:
    x = x.full() if isinstance(x, dt.parallel.ShardedTensor) else x
    flat = x.detach().reshape(-1)
    return (
        x.shape,
        x.dtype.name,
        (flat.astype("float32") if x.dtype is dt.bfloat16 else flat).numpy().tobytes(),
    )


def check_equal(
    function: Callable[..., Tensor], *operands: Tensor, axes: Any, workers: int
) -> None:
    """Check that a function of sharded operands has the bits of that of strided ones.

    `axes`: for each operand the axis along which it is cut, or None.
    """
    expected = bits(function(*operands))

    def work() -> Any:
        cut = [
            x if axis is None else dt.parallel.shard(x, axis)
            for x, axis in zip(operands, axes, strict=True)
        ]
        return bits(function(*cut))

    assert run_threads(work, workers=workers) == [expected] * workers


# --- functions without messages -------------------------------------------------------------------


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_elementwise_functions_cut_replicated_operands(workers: int, axis: int) -> None:
    x, row = numbers(7, 5, 6), numbers(6, seed=1)
    column, full = numbers(5, 1, seed=2), numbers(7, 5, 6, seed=3)
    check_equal(
        lambda x, r, c, f: dt.where(x > 0, x * r - c / 3, dt.exp(-x)) + f,
        *(x, row, column, full),
        axes=(axis, None, None, axis),
        workers=workers,
    )
    check_equal(lambda x, f: 2 - f * x, x, full, axes=(axis, None), workers=workers)
    check_equal(lambda x, f: f[0] * x, x, full, axes=(axis, None), workers=workers)


MOVES: dict[str, Callable[[Tensor], Tensor]] = {
    "permute": lambda x: dt.permute_dims(x, (2, 0, 1)),
    "flip": lambda x: dt.flip(x, axis=1),
    "slice": lambda x: x[2:7:2, 1:, :4],
    "empty slice": lambda x: x[3:3],
    "integer": lambda x: x[5, 1],
    "new axis": lambda x: x[:, None],
    "expand": lambda x: dt.broadcast_to(x, (3, 8, 5, 6)),
    "merge": lambda x: x.reshape(8, 30),
    "merge all": lambda x: x.reshape(-1),
    "split": lambda x: x.reshape(4, 2, 5, 6),
    "squeeze": lambda x: x[:1].squeeze(0),
    "concat": lambda x: dt.concat([x, x + 1], axis=2),
    "stack": lambda x: dt.stack([x, x * 2], axis=1),
    "softmax": lambda x: dt.softmax(x, axis=2),
    "log_softmax": lambda x: dt.log_softmax(x, axis=1),
    "sort": lambda x: dt.sort(x, axis=1, descending=True),
    "tril": lambda x: dt.tril(x, k=1),
    "triu": dt.triu,
    "zeros_like": dt.zeros_like,
    "astype": lambda x: x.astype("int32"),
}


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("name", MOVES)
def test_moves_along_the_first_axis_equal_those_of_strided_tensors(name: str, workers: int) -> None:
    check_equal(MOVES[name], numbers(8, 5, 6), axes=(0,), workers=workers)


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_triangle_follows_the_diagonal_over_the_shards(
    axis: int, upper: bool, workers: int
) -> None:
    function = dt.triu if upper else dt.tril
    for k in (-2, 0, 3):
        check_equal(partial(function, k=k), numbers(3, 7, 6), axes=(axis,), workers=workers)


@pytest.mark.parametrize("workers", [2, 3])
def test_slices_along_each_axis_keep_their_elements(workers: int) -> None:
    x = numbers(11, 10)
    for axis in (0, 1):
        for start in (0, 1, 4, 9):
            for step in (1, 2, 3, 7):
                key = (slice(start, None, step), slice(start, 8, step))
                check_equal(operator.itemgetter(key), x, axes=(axis,), workers=workers)


# --- reductions -----------------------------------------------------------------------------------

EXACT = ["sum", "mean", "prod", "max", "min", "any", "all", "count_nonzero"]
REDUCTIONS = [*EXACT, "var", "std", "argmax", "argmin"]
AXES = [None, 0, 1, (0, 1), (0, 2), (1, 2)]


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_equal_those_of_strided_tensors(name: str, workers: int) -> None:
    values = np.random.default_rng(3).integers(-3, 4, (5, 3, 4)).astype("float32")
    x, function = dt.asarray(values), getattr(dt, name)  # sums of small integers have no error
    for axis in AXES[:3] if name.startswith("arg") else AXES:
        for keepdims in (False, True):
            for cut in (0, 1):
                if name.startswith("arg") and (axis, cut) == (None, 1):
                    continue
                function_of = partial(function, axis=axis, keepdims=keepdims)
                if name in ("var", "std"):
                    expected = function_of(x).numpy()

                    def close(x: Tensor, f: Any = function_of, e: Any = expected) -> Tensor:
                        result = f(x)
                        y = result.full() if result.layout is not dt.strided else result
                        return dt.asarray(bool(np.allclose(y.numpy(), e, rtol=1e-5)))

                    check_equal(close, x, axes=(cut,), workers=workers)
                else:
                    check_equal(function_of, x, axes=(cut,), workers=workers)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "complex64", "bool"])
def test_sums_at_borders_of_chunks_have_the_bits_of_one_worker(dtype: str) -> None:
    x = numbers(40_000, 3, dtype=dtype)
    for workers in (2, 3, 4):
        check_equal(partial(dt.sum, axis=0), x, axes=(0,), workers=workers)
        check_equal(partial(dt.mean, axis=0), x, axes=(0,), workers=workers)
        check_equal(dt.sum, x, axes=(0,), workers=workers)
        check_equal(
            partial(dt.sum, dtype="float64" if dtype != "complex64" else None),
            x,
            axes=(0,),
            workers=workers,
        )


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "var", "std"])
def test_reductions_at_borders_of_chunks_have_the_bits_of_one_worker(name: str) -> None:
    x, function = 1 + numbers(50_001) / 4096, getattr(dt, name)
    wide = numbers(3, 8192, 4)
    for workers in (2, 3, 4):
        check_equal(function, x, axes=(0,), workers=workers)
    check_equal(function, wide, axes=(1,), workers=2)
    check_equal(partial(function, axis=(0, 1)), wide, axes=(1,), workers=2)


def test_sum_at_other_borders_adds_one_partial_sum_of_each_rank() -> None:
    x = numbers(1000)
    parts = [x[a:b].sum() for a, b in ((0, 333), (333, 666), (666, 1000))]
    expected = dt.sum(dt.stack(parts)).item()
    assert run_threads(lambda: dt.parallel.shard(x).sum().item(), workers=3) == [expected] * 3


def test_extremes_of_tensors_shorter_than_the_group_ignore_empty_shards() -> None:
    x = dt.asarray([[-1.0, -7.0], [-5.0, -7.0]])
    for name in ("max", "min", "argmax", "argmin", "sum"):
        check_equal(partial(getattr(dt, name), axis=0), x, axes=(0,), workers=4)
    nan = dt.asarray([1.0, 2.0, dt.nan, 5.0, dt.nan])
    check_equal(dt.argmax, nan, axes=(0,), workers=3)


# --- products -------------------------------------------------------------------------------------

PRODUCTS: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int | None, int | None]]] = {
    "rows": ((7, 5), (5, 4), (0, None)),
    "columns": ((7, 5), (5, 6), (None, 1)),
    "rows of a batch": ((3, 7, 5), (3, 5, 4), (1, None)),
    "matrices": ((6, 7, 5), (6, 5, 4), (0, 0)),
    "matrices by one": ((6, 7, 5), (5, 4), (0, None)),
    "one by matrices": ((7, 5), (6, 5, 4), (None, 0)),
    "matrices by replicated": ((6, 7, 5), (6, 5, 4), (0, None)),
    "vector by columns": ((5,), (5, 6), (None, 1)),
    "rows by vector": ((7, 5), (5,), (0, None)),
}
CONTRACTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int | None, int | None]]] = {
    "both": ((7, 9), (9, 4), (1, 0)),
    "first": ((7, 9), (9, 4), (1, None)),
    "second": ((7, 9), (9, 4), (None, 0)),
    "vectors": ((9,), (9,), (0, 0)),
    "batch": ((2, 7, 9), (2, 9, 4), (2, 1)),
}


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_have_the_bits_of_strided_tensors(name: str, workers: int) -> None:
    left, right, axes = PRODUCTS[name]
    check_equal(dt.matmul, numbers(*left), numbers(*right, seed=1), axes=axes, workers=workers)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("name", CONTRACTIONS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "int16"])
def test_sharded_contraction_has_the_bits_of_strided_tensors(
    name: str, workers: int, dtype: str
) -> None:
    left, right, axes = CONTRACTIONS[name]
    whole = [numbers(*left, dtype=dtype), numbers(*right, seed=1, dtype=dtype)]
    check_equal(dt.matmul, *whole, axes=axes, workers=workers)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(3, 5, 7), (4, 130, 3), (1, 9000, 2), (40, 4, 6)])
def test_gradient_of_a_replicated_factor_has_the_bits_of_strided_tensors(
    shape: tuple[int, ...], axis: int
) -> None:
    examples, weights = numbers(*shape), numbers(shape[-1], 5, seed=1)

    def gradient_of(x: dt.Tensor) -> Any:
        w = weights.detach().requires_grad_()
        dt.sum(dt.sin(x @ w)).backward()
        return w.grad.tolist()

    expected = gradient_of(examples)
    for workers in (2, 3, 4):
        work = partial(lambda x, a: gradient_of(dt.parallel.shard(x, a)), examples, axis)
        assert run_threads(work, workers=workers) == [expected] * workers


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int8"])
@pytest.mark.parametrize(
    "shapes", [((5, 2048), (2048, 3)), ((1, 2100), (2100, 1)), ((2, 3, 2048), (2048, 9))]
)
def test_contractions_at_borders_of_blocks_have_the_bits_of_one_worker(
    shapes: Any, dtype: str
) -> None:
    left, right = numbers(*shapes[0], dtype=dtype), numbers(*shapes[1], seed=1, dtype=dtype)
    for workers in (2, 3, 4):
        axes = (left.ndim - 1, 0)
        check_equal(dt.matmul, left, right, axes=axes, workers=workers)


def test_long_contractions_at_borders_of_groups_have_the_bits_of_one_worker() -> None:
    left, right = numbers(2, 200_000), numbers(200_000, 2, seed=1)
    borders = (0, 65_536, 131_072, 200_000)

    def work() -> Any:
        a = dt.parallel.shard(left, 1, borders)
        return bits(a @ dt.parallel.shard(right, 0, borders))

    assert run_threads(work, workers=3) == [bits(left @ right)] * 3


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gradients_of_replicated_matrices_have_the_bits_of_one_worker(dtype: str) -> None:
    examples, weights = numbers(1536, 6, dtype=dtype), numbers(6, 5, seed=1, dtype=dtype)

    def gradients(x: Tensor, axis: int | None) -> Any:
        w = weights.detach().requires_grad_()
        dt.sum(dt.tanh(x @ w) if axis == 0 else dt.tanh(w.T @ x)).backward()
        return bits(w.grad)

    for axis, x in ((0, examples), (1, examples.T)):
        for workers in (2, 3):

            def work(axis: int = axis, x: Tensor = x) -> Any:
                return gradients(dt.parallel.shard(x, axis), axis)

            assert run_threads(work, workers=workers) == [gradients(x, axis)] * workers


STACKS: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "rows of matrices": ((24, 64, 6), (6, 5), (0, 8, 24)),
    "rows of stacks": ((4, 8, 128, 6), (6, 5), (0, 1, 4)),
    "rows by vector": ((24, 64, 6), (6,), (0, 8, 24)),
    "one by matrices": ((9000, 3, 2), (4, 3), (0, 4096, 9000)),
    "vector by matrices": ((9000, 3, 2), (3,), (0, 4096, 9000)),
    "stacks by matrices": ((9000, 2, 3, 2), (2, 1, 3), (0, 4096, 9000)),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", STACKS)
def test_gradients_of_matrices_beside_stacks_have_the_bits_of_one_worker(
    name: str, dtype: str
) -> None:
    shape, weight, borders = STACKS[name]
    stacks, weights = numbers(*shape, dtype=dtype), numbers(*weight, seed=1, dtype=dtype)

    def gradients(x: Tensor) -> Any:
        w = weights.detach().requires_grad_()
        dt.sum(dt.tanh(x @ w if name.startswith("rows") else w @ x)).backward()
        return bits(w.grad)

    results = run_threads(lambda: gradients(dt.parallel.shard(stacks, 0, borders)), workers=2)
    assert results == [gradients(stacks)] * 2


def test_gradient_of_a_stack_beside_sharded_columns_has_the_bits_of_one_worker() -> None:
    stacks, columns = numbers(3, 4, 6), numbers(6, 1536, seed=1)

    def gradients(columns: Tensor) -> Any:
        x = stacks.detach().requires_grad_()
        dt.sum(dt.tanh(x @ columns)).backward()
        return bits(x.grad)

    for workers in (2, 3):
        results = run_threads(lambda: gradients(dt.parallel.shard(columns, 1)), workers=workers)
        assert results == [gradients(columns)] * workers


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(3,), (1, 3), (), (1, 1)])
def test_gradients_of_broadcast_tensors_have_the_bits_of_one_worker(
    shape: tuple[int, ...], dtype: str
) -> None:
    examples, bias = numbers(40_000, 3, dtype=dtype), numbers(*shape, seed=1, dtype=dtype)

    def gradient(x: Tensor) -> Any:
        b = bias.detach().requires_grad_()
        dt.sum(dt.tanh(x * b)).backward()
        return bits(b.grad)

    expected = gradient(examples)
    for workers in WORKERS:
        results = run_threads(lambda: gradient(dt.parallel.shard(examples)), workers=workers)
        assert results == [expected] * workers


# --- resharding -----------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "complex64"])
def test_reshard_moves_each_element_once(workers: int, dtype: str) -> None:
    x = numbers(9, 2, 300, dtype=dtype)
    for old in range(3):
        for new in range(3):

            def work(old: int = old, new: int = new) -> Any:
                moved = dt.parallel.shard(x, old).reshard(new)
                assert moved.axis == new
                assert dt.array_equal(moved.local(), dt.parallel.shard(x, new).local())
                return bits(moved)

            assert run_threads(work, workers=workers) == [bits(x)] * workers


def test_reshard_to_other_borders_sends_what_is_needed() -> None:
    x = numbers(10, 3)

    def work() -> Any:
        moved = dt.parallel.shard(x).reshard(0, (0, 1, 9, 10))
        return moved.local().shape, bits(moved)

    results = run_threads(work, workers=3)
    assert [shape for shape, _ in results] == [(1, 3), (8, 3), (1, 3)]
    assert [b for _, b in results] == [bits(x)] * 3


def test_from_local_joins_parts_of_any_sizes() -> None:
    def work() -> Any:
        rank = dt.parallel.current().rank
        x = dt.parallel.from_local(dt.full((rank, 2), float(rank)))
        return x.shape, x.borders, x.full().tolist()

    rows = [[1.0, 1.0], [2.0, 2.0], [2.0, 2.0]]
    assert run_threads(work, workers=3) == [((3, 2), (0, 0, 1, 3), rows)] * 3


# --- gradients ------------------------------------------------------------------------------------


def normalized(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    h = dt.tanh(x @ w + b)
    return dt.sum(dt.square((h - h.mean(axis=0)) / (1 + h.var(axis=0))))


def contracted(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return dt.sum(dt.exp(0.1 * (x.mT @ (x @ w)) + b))


def resharded(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    y = x * x
    y = y.reshard(1) if isinstance(y, dt.parallel.ShardedTensor) else y
    return dt.sum(dt.max(y, axis=0) * dt.softmax(y, axis=0)) + dt.sum(w * w) + dt.sum(b)


def selected(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    y = x[1:6:2]
    return dt.sum(dt.concat([y, y * y], axis=1).T @ y) + dt.sum(x[4] @ w) * dt.sum(b)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("loss", [normalized, contracted, resharded, selected])
def test_gradients_equal_those_of_strided_tensors(loss: Any, workers: int) -> None:
    operands = [numbers(8, 5) / 8, numbers(5, 3, seed=1) / 8, numbers(3, seed=2)]
    leaves = [x.detach().requires_grad_() for x in operands]
    loss(*leaves).backward()
    zero = [dt.zeros_like(x) for x in operands]
    expected = [
        (z if x.grad is None else x.grad).numpy() for x, z in zip(leaves, zero, strict=True)
    ]

    def work() -> Any:
        x = dt.parallel.shard(operands[0]).requires_grad_()
        own = [x, *[y.detach().requires_grad_() for y in operands[1:]]]
        loss(*own).backward()
        assert x.grad.axis == 0 and x.grad.shape == x.shape
        return [y.grad.to_dense().numpy() if y is x else y.grad.numpy() for y in own]

    for gradients in run_threads(work, workers=workers):
        for g, e in zip(gradients, expected, strict=True):
            np.testing.assert_allclose(g, e, rtol=2e-4, atol=1e-5)


def test_gradient_of_a_gradient_flows_through_messages() -> None:
    def second(x: Tensor) -> Any:
        y = x.requires_grad_()
        (g,) = dt.autograd.grad(
            dt.sum(dt.sum(y**3, axis=0) ** 2),
            [y.parts[0] if hasattr(y, "parts") else y],
            create_graph=True,
        )
        g = g if x.layout is dt.strided else x.with_local(g)
        dt.sum(g * g).backward()
        return x.grad.to_dense() if x.layout is not dt.strided else x.grad

    a = numbers(6, 2) / 8
    expected = second(a.detach()).numpy()
    for result in run_threads(lambda: second(dt.parallel.shard(a)).numpy(), workers=3):
        np.testing.assert_allclose(result, expected, rtol=1e-4)


def train_network() -> tuple[float, list[bytes]]:
    """Return the loss and the weights after some steps with 8192 examples."""
    x, y = dt.parallel.shard(numbers(8192, 6)), dt.parallel.shard(numbers(8192, 2, seed=1))
    shapes = ((6, 8), (8,), (8, 2), (2,))
    ps = [(numbers(*s, seed=k) / 8).requires_grad_() for k, s in enumerate(shapes, 2)]
    optimizer = dt.optim.Adam(ps, lr=0.01)
    for _ in range(2):
        optimizer.zero_grad()
        loss = dt.nn.functional.mse_loss(dt.tanh(x @ ps[0] + ps[1]) @ ps[2] + ps[3], y)
        loss.backward()
        optimizer.step()
    return loss.item(), [p.detach().numpy().tobytes() for p in ps]


def test_training_at_aligned_borders_has_the_bits_of_one_worker() -> None:
    (one,) = run_threads(train_network, workers=1)
    assert run_threads(train_network, workers=2) == [one] * 2


# --- explain --------------------------------------------------------------------------------------


def train(x: Tensor, w: Tensor) -> Tensor:
    """Send large and small tensors in each way, also in the backward pass."""
    y = dt.tanh(x @ w).reshard(1)
    loss = dt.sum(dt.exp(y - y.mean(axis=1, keepdims=True)) ** 2) + dt.sum(x.T @ x) + x[3, 2]
    loss.backward()
    return loss


def count_sent_bytes(function: Callable[[], object]) -> tuple[dict[int, int], int]:
    """Return the bytes that this rank sends while `function` runs, by rank, and its calls."""
    group: Any = dt.parallel.current()
    transport, sent = group._communicator.transport, dict.fromkeys(range(group.size), 0)
    records, send = [], transport.send

    def count(buffer: memoryview, to: int, tag: int) -> Any:
        if tag == AGREEMENT_TAG:
            records.append(unpack(buffer))
            sent[to] += len(records[-1].content)
        else:
            sent[to] += len(buffer)
        return send(buffer, to, tag)

    transport.send = count
    function()
    del sent[group.rank]
    return sent, len(records) // max(group.size - 1, 1)


@pytest.mark.parametrize("workers", WORKERS)
def test_explain_tells_the_bytes_that_are_sent(workers: int) -> None:
    def work() -> None:
        x = dt.parallel.shard(numbers(64, 30)).requires_grad_()
        w = numbers(30, 17, seed=1).requires_grad_()
        report = dt.explain(train, x, w)
        assert x.grad is None and w.grad is None
        told = dict.fromkeys(set(range(workers)) - {dt.parallel.current().rank}, 0)
        for m in report.messages:
            for p, n in m.sent:
                told[p] += n
        sent, calls = count_sent_bytes(lambda: train(x, w))
        assert told == sent and report.bytes_sent == sum(sent.values())
        assert workers == 1 or len(report.messages) == calls
        step = "gradient of matmul: all_gather sends" if workers > 1 else "matmul"
        assert report.launches and step in report.text()

    run_threads(work, workers=workers)


def test_contraction_of_integers_sends_one_product_of_each_rank() -> None:
    def work() -> list[str]:
        a = dt.parallel.shard(dt.ones((64, 2048), dtype="int32"), 1)
        report = dt.explain(lambda a: a @ dt.ones((2048, 64), dtype="int32"), a)
        return [m.step for m in report.messages]

    assert run_threads(work, workers=2) == [["all_reduce"]] * 2


def test_explain_of_a_function_sends_nothing_and_names_ranks() -> None:
    def work() -> str:
        x = dt.parallel.shard(dt.ones((6, 2)))
        text = str(dt.explain(lambda x: x.sum(axis=0), x)) if dt.parallel.current().rank else ""
        with pytest.raises(dt.ArgumentError, match="cannot call barrier"):
            dt.explain(lambda x: dt.parallel.current().barrier(), x)
        assert dt.explain(x * 2).launches
        return text

    assert "sum: all_gather sends 8 bytes to each of ranks 0, 2" in run_threads(work, workers=3)[1]


# --- errors, text ---------------------------------------------------------------------------------

REFUSED: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "pickle": (pickle.dumps, r"x.full\(\)"),
    "write": (lambda x: operator.setitem(x, 0, 1.0), "sharded"),
    "write in place": (lambda x: x.add_(1), "sharded"),
    "bool key": (lambda x: x[True, [0]], r"x.full\(\)"),
    "backward": (lambda x: x.backward(), r"x.full\(\)"),
    "numpy": (lambda x: x.numpy(), "sharded"),
    "inverse": (lambda x: dt.linalg.inv(x[:4]), r"to_dense\(\)"),
    "twice": (dt.parallel.shard, r"reshard\(axis\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_functions_say_what_to_write(name: str) -> None:
    call, text = REFUSED[name]

    def work() -> None:
        with pytest.raises(dt.LayoutError, match=text):
            call(dt.parallel.shard(dt.ones((6, 4))))

    run_threads(work, workers=2)


@pytest.mark.parametrize("borders", [(0, 6), (0, 7, 6), (1, 2, 6), (0, 2, 5)])
def test_wrong_borders_are_refused(borders: tuple[int, ...]) -> None:
    def work() -> None:
        with pytest.raises(dt.ArgumentError, match="3 ascending positions from 0 to 6"):
            dt.parallel.shard(dt.ones((6, 4)), 0, borders)

    run_threads(work, workers=2)


def test_ranks_with_other_programs_raise_within_the_time_limit() -> None:
    def other_axis() -> None:
        x = dt.parallel.shard(dt.ones((6, 4)))
        x.sum(axis=0) if dt.parallel.current().rank else x.full()

    with pytest.raises(dt.parallel.WorkerError, match="all ranks must make the same calls"):
        run_threads(other_axis, workers=2)

    def missing() -> None:
        if dt.parallel.current().rank:
            dt.parallel.shard(dt.ones((6, 4))).full()

    with pytest.raises(dt.parallel.WorkerError, match="rank 0"):
        dt.parallel.run(missing, workers=2, transport="threads", timeout=1)


def test_captured_functions_refuse_messages() -> None:
    def work() -> None:
        x = dt.parallel.shard(dt.ones((6, 4)))
        with pytest.raises(dt.CaptureError, match="cannot send messages"):
            dt.jit(lambda: x.sum())()

    run_threads(work, workers=2)


def test_text_shows_the_shard_and_its_place() -> None:
    first, second = run_threads(lambda: repr(dt.parallel.shard(dt.asarray([1, 2, 3]))), workers=2)
    assert "tensor([1]" in first and "rank 0 of 2: positions 0 to 1 along axis 0" in first
    assert "tensor([2, 3]" in second and "shape=(3,)" in second


def test_copies_have_memory_of_their_own() -> None:
    def work() -> None:
        x = dt.parallel.shard(dt.ones((4, 2)))
        for y in (copy.copy(x), copy.deepcopy(x), dt.copy(x)):
            y.local()[...] = 0
            assert y.sharding.matches(x.sharding) and y.sum().item() == 0
        assert x.sum().item() == 8

    run_threads(work, workers=2)


def test_a_shard_is_a_copy_of_its_part() -> None:
    def work() -> Any:
        x = dt.ones((4, 2))
        y = dt.parallel.shard(x)
        x[...] = 5
        return y.sum().item()

    assert run_threads(work, workers=2) == [8.0, 8.0]


def test_a_position_of_the_sharded_axis_is_replicated() -> None:
    def work() -> Any:
        x = dt.parallel.shard(numbers(6, 4))
        rows = [x[4], *list(x)]
        kept = [x[4:5], x[4:5].T, x[:1, None], dt.parallel.shard(dt.ones((6, 0)))[None]]
        return {y.layout.name for y in rows}, {y.layout.name for y in kept}

    assert run_threads(work, workers=3) == [({"strided"}, {"sharded"})] * 3


def test_reads_gather_the_elements() -> None:
    x = dt.asarray([[1, 2], [3, 4], [5, 6]])

    def work() -> Any:
        y = dt.parallel.shard(x)
        return y.tolist(), y.sum().item(), y[2, 1].item(), float(y[0].max())

    assert run_threads(work, workers=2) == [(x.tolist(), 21, 6, 2.0)] * 2


def multiply_in_a_process() -> Any:
    x = dt.parallel.shard(numbers(100, 30))
    w = numbers(30, 20, seed=1).requires_grad_()
    loss = dt.sum(dt.tanh(x @ w).reshard(1) ** 2)
    loss.backward()
    return x.full().numpy(), loss.item(), w.grad.numpy()


def test_processes_have_the_results_of_threads() -> None:
    ours = dt.parallel.run(multiply_in_a_process, workers=2, timeout=120)
    theirs = run_threads(multiply_in_a_process, workers=2)
    for own, other in zip(ours, theirs, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(own, other, strict=True))
