"""Functions along the sharded axis, at indices and of losses, against strided tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.nn import functional as F

run_threads = partial(dt.parallel.run, transport="threads", timeout=60)
Tensor = Any
X = dt.asarray((4 * np.random.default_rng(0).standard_normal((7, 5, 6))).astype("float32"))
ROWS = dt.asarray([2, 0, -1, 1, 2, 4])
EACH = dt.asarray(np.random.default_rng(1).integers(0, 5, (7, 5, 6)))
CLASSES = dt.asarray([0, 1, 2, 3, 4, 0, 1])


def bits(x: Tensor) -> tuple[Any, ...]:
    x = (x.full() if isinstance(x, dt.parallel.ShardedTensor) else x).detach()
    return x.shape, x.dtype.name, x.numpy().tobytes()


# functions whose bits do not depend on the borders
FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "rows": lambda x: x[ROWS],
    "columns": lambda x: x[:, ROWS],
    "array": lambda x: x[..., np.array([5, 0, 0])],
    "no rows": lambda x: x[:, dt.asarray([], dtype="int64")],
    "matrix of rows": lambda x: x[dt.asarray([[0, 1], [3, -1]])],
    "pairs": lambda x: x[[0, 1], [2, 3]],
    "separated pairs": lambda x: x[ROWS, :, ROWS],
    "rows of a slice": lambda x: x[1:6, 1:, ROWS[:2]],
    "integer and array": lambda x: x[3, :, ROWS],
    "array and integer": lambda x: x[:, ROWS, -1],
    "all arrays": lambda x: x[[0, 1], [2, 3], [0, 5]],
    "new axis": lambda x: x[None, :, ROWS],
    "by a sharded array": lambda x: dt.arange(70.0).reshape(10, 7)[dt.abs(x).astype("int64") % 10],
    "by two sharded arrays": lambda x: X[dt.abs(x).astype("int64") % 7, :, (x > 0).astype("int64")],
    "both": lambda x: x[dt.abs(x[:, 0, 0]).astype("int64") % 7],
    "mask": lambda x: x[x > 0],
    "mask of rows": lambda x: x[x[:, 0, 0] > 0],
    "replicated mask": lambda x: x[X[:, :, 0] > 0],
    "mask of columns": lambda x: x[:, x[0, :, 0] > 0],
    "by a mask": lambda x: X[x > 1],
    "empty mask": lambda x: x[x > 1000],
    "nonzero": lambda x: dt.nonzero(x > 0)[1],
    "take": lambda x: dt.take(x, ROWS, axis=0),
    "take axis 1": lambda x: dt.take(x, ROWS, axis=1, mode="wrap"),
    "take_along_axis": lambda x: dt.take_along_axis(x, EACH, axis=0),
    "take_along_axis, broadcast": lambda x: dt.take_along_axis(x, EACH[:, :1], axis=1),
    "gather": lambda x: dt.gather(x, 1, EACH),
    "gather at sharded": lambda x: dt.gather(X, 1, dt.abs(x).astype("int64") % 5),
    "index_select": lambda x: dt.index_select(x, 1, [0, 3]),
    "index_add": lambda x: dt.index_add(x, 1, [0, 0, 2], X[:, :3]),
    "index_add of sharded": lambda x: dt.index_add(x, 0, [0, 0, 2, 1, 1, 6, 3], x),
    "index_copy": lambda x: dt.index_copy(x, 2, [0, 2], dt.ones((7, 5, 2))),
    "index_fill": lambda x: dt.index_fill(x, 0, [0, 2], 7),
    "index_reduce": lambda x: dt.index_reduce(x, 0, [0, 0, 2], X[:3], "amax"),
    "scatter": lambda x: dt.scatter(x, 1, EACH, 2.0),
    "scatter_add": lambda x: dt.scatter_add(x, 1, EACH, x),
    "scatter_reduce": lambda x: dt.scatter_reduce(x, 0, EACH, X, "prod", include_self=False),
    "sort": lambda x: dt.sort(x, axis=0),
    "sort columns": lambda x: dt.sort(x, axis=1, descending=True),
    "sort all": lambda x: dt.sort(x, axis=None),
    "argsort": lambda x: dt.argsort(x, axis=2),
    "topk": lambda x: dt.topk(x, 3, axis=0).values,
    "topk indices": lambda x: dt.topk(x, 2, axis=1, largest=False).indices,
    "kthvalue": lambda x: dt.kthvalue(x, 2, 0).values,
    "kthvalue indices": lambda x: dt.kthvalue(x, 2, 1, keepdim=True).indices,
    "mode": lambda x: dt.mode(dt.round(x / 4), 0).values,
    "mode indices": lambda x: dt.mode(dt.round(x / 4), 2, keepdim=True).indices,
    "partition": lambda x: dt.partition(x, 2, axis=0),
    "argpartition": lambda x: dt.argpartition(x, 2, axis=1),
    "cross": lambda x: dt.cross(x[:3], X[:3], axis=0),
    "cross of rows": lambda x: dt.cross(x[:, :, :3], X[:, :, 3:]),
    "max_pool1d": lambda x: F.max_pool1d(x, 2),
    "max_pool2d indices": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True)[1],
    "avg_pool2d": lambda x: F.avg_pool2d(x[None], 2, ceil_mode=True),
    "det": lambda x: dt.linalg.det(x[..., :5]),
    "slogdet": lambda x: dt.linalg.slogdet(x[..., :5]).logabsdet,
    "inv": lambda x: dt.linalg.inv(x[..., :5]),
    "inv of a matrix": lambda x: dt.linalg.inv(x[0, :, :5]),
    "solve": lambda x: dt.linalg.solve(x[..., :5], x),
    "solve replicated vector": lambda x: dt.linalg.solve(x[..., :5], X[0, :, 0]),
    "solve for columns": lambda x: dt.linalg.solve(X[..., :5], x),
    "cholesky": lambda x: dt.linalg.cholesky(x @ x.mT + dt.eye(5)),
    "qr": lambda x: dt.linalg.qr(x).R,
    "svdvals": lambda x: dt.linalg.svdvals(x),
    "eigvalsh": lambda x: dt.linalg.eigvalsh(x[..., :5]),
    "matrix_power": lambda x: dt.linalg.matrix_power(x[..., :5], 3),
    "matrix_norm": lambda x: dt.linalg.matrix_norm(x, ord=2),
    "pinv": lambda x: dt.linalg.pinv(x),
    "conv1d": lambda x: F.conv1d(x, X[:4, :, :3], X[0, 0, :4], padding=1),
    "conv1d, pointwise": lambda x: F.conv1d(x, X[:3, :, :1]),
    "conv1d of an example": lambda x: F.conv1d(x[0], X[:3, :, :3]),
    "conv2d": lambda x: F.conv2d(x[:, None], X[:4, None, :3, :3], stride=2),
    "conv2d in groups": lambda x: F.conv2d(
        x[:4].reshape(2, 2, 5, 6), X[:2, None, :2, :2], groups=2
    ),
    "conv_transpose1d": lambda x: F.conv_transpose1d(x, X[:5, :3, :2], X[0, 0, :3], stride=2),
    "adaptive_max_pool1d": lambda x: F.adaptive_max_pool1d(x, 4),
    "adaptive_max_pool2d indices": lambda x: F.adaptive_max_pool2d(x, 3, return_indices=True)[1],
    "unfold": lambda x: dt.unfold(x, (2, 3), padding=1, stride=2),
    "unfold, one axis": lambda x: dt.unfold(x, 2, dilation=2),
    "unfold of images": lambda x: F.unfold(x[:, None], 2),
    "fold": lambda x: F.fold(dt.tile(x[:, :4], (1, 1, 2)), (4, 5), 2),
    "windows": lambda x: dt.sliding_window_view(x, (2, 3), (0, 2)),
    "windows of all axes": lambda x: dt.sliding_window_view(x, (2, 3, 1)),
    "windows in steps": lambda x: x.unfold(1, 3, 2),
    "kron": lambda x: dt.kron(x, X[:2, :1, :3]),
    "kron by sharded": lambda x: dt.kron(X[0, :2, :3], x),
    "kron of both": lambda x: dt.kron(x[:2, :, :2], x[:3, 0]),
    "searchsorted": lambda x: dt.searchsorted(dt.sort(X[0, 0]), x, side="right"),
    "searchsorted of integers": lambda x: dt.searchsorted(dt.sort(ROWS), x),
    "bucketize": lambda x: dt.bucketize(x, [-1.0, 0.0, 2.0]),
    "digitize": lambda x: dt.digitize(x, [-1, 0, 2]),
    "fft": lambda x: dt.real(dt.fft.fft(x, axis=0)),
    "ifftn": lambda x: dt.imag(dt.fft.ifftn(x, axes=(1, 2))),
    "rfft": lambda x: dt.real(dt.fft.rfft(x, 8)),
    "irfft": lambda x: dt.fft.irfft(x, axis=1),
    "argmax": lambda x: dt.argmax(x),
    "argmin": lambda x: dt.argmin(x, axis=1, keepdims=True),
    "median": lambda x: dt.median(x, axis=0),
    "cumulative_sum": lambda x: dt.cumulative_sum(x, axis=0),
    "cumulative_sum, initial": lambda x: dt.cumulative_sum(x, axis=1, include_initial=True),
    "cumulative_prod": lambda x: dt.cumulative_prod(x, axis=2),
    "cumulative_logsumexp": lambda x: dt.cumulative_logsumexp(x, axis=0),
    "cummax": lambda x: dt.cummax(x, 0).indices,
    "pad": lambda x: dt.pad(x, 1),
    "pad by edges": lambda x: dt.pad(x, ((2, 1), (0, 3), (1, 1)), "edge"),
    "pad by mirrors": lambda x: dt.pad(x, ((2, 1), (0, 3), (1, 1)), "reflect"),
    "diff": lambda x: dt.diff(x, axis=0),
    "differences": lambda x: x[1:, 1:, 1:] - x[:-1, :-1, :-1],
    "flip": lambda x: dt.flip(x),
    "slice backwards": lambda x: x[5:0:-2, ::-1, 4::-3],
    "roll": lambda x: dt.roll(x, (2, -1, 1), axis=(0, 1, 2)),
    "roll all": lambda x: dt.roll(x, 11),
    "concat": lambda x: dt.concat([x, X[:2], x * 2], axis=0),
    "concat columns": lambda x: dt.concat([X[:, :1], x], axis=1),
    "tile": lambda x: dt.tile(x, (2, 1, 3)),
    "repeat": lambda x: dt.repeat(x, 2, axis=0),
    "reshape": lambda x: dt.reshape(x, (10, 21)),
    "reshape with ones": lambda x: dt.reshape(x, (1, 42, 1, 5)),
    "ravel of a transpose": lambda x: x.mT.reshape(-1),
    "expand": lambda x: dt.broadcast_to(x[:1, :1, :1], (4, 5, 6)),
    "broadcast": lambda x: x + x[:1] * x[:, :1] - x[..., :1],
    "broadcast alone": lambda x: x[:1, :1, :1] + dt.ones((3, 1, 1)),
    "transposed operands": lambda x: x[:5, :, :5] + x[:5, :, :5].mT,
    "outer": lambda x: x[0, 0][:, None] * x[:, 0, 0],
    "diagonal": lambda x: dt.diagonal(x, 1, 0, 2),
    "one_hot": lambda x: F.one_hot(dt.abs(x).astype("int64"), 20),
    "embedding": lambda x: F.embedding(dt.abs(x).astype("int64"), dt.arange(60.0).reshape(20, 3)),
    "embedding of a sharded table": lambda x: F.embedding(EACH[0], x[:, :, 0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_along_each_axis_have_the_bits_of_strided_tensors(name: str) -> None:
    function, expected = FUNCTIONS[name], bits(FUNCTIONS[name](X))
    for workers in (2, 3, 5):
        for axis in (0, 1, 2):
            work = partial(lambda a: bits(function(dt.parallel.shard(X, a))), axis)
            assert run_threads(work, workers=workers) == [expected] * workers, (workers, axis)


VECTORS: dict[str, Callable[[Tensor], Tensor]] = {
    "index": lambda x: x[ROWS],
    "mask": lambda x: x[x > 0],
    "sort": dt.sort,
    "topk": lambda x: dt.topk(x, 4).values,
    "cumulative_sum": dt.cumulative_sum,
    "flip": dt.flip,
    "take_along_axis": lambda x: dt.take_along_axis(x, dt.argsort(x)),
    "scatter": lambda x: dt.scatter(x, 0, [3, 1], x[:2]),
    "pad": lambda x: dt.pad(x, (2, 9)),
}


@pytest.mark.parametrize("name", VECTORS)
def test_functions_of_vectors_have_the_bits_of_strided_tensors(name: str) -> None:
    x = X[0, :, 0]
    expected = bits(VECTORS[name](x))
    for workers in (2, 3, 7):  # some shards are empty
        work = partial(lambda f: bits(f(dt.parallel.shard(x))), VECTORS[name])
        assert run_threads(work, workers=workers) == [expected] * workers


# functions whose sums depend on the borders, by rounding
LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "logsumexp": lambda x: dt.logsumexp(x, axis=0),
    "logsumexp of all": dt.logsumexp,
    "softmax": lambda x: dt.softmax(x, axis=0),
    "softmax of columns": lambda x: dt.softmax(x, axis=1),
    "log_softmax": lambda x: dt.log_softmax(x, axis=1),
    "norm": lambda x: dt.linalg.vector_norm(x, axis=(0, 2), ord=3),
    "vecdot": lambda x: dt.vecdot(x, X),
    "einsum": lambda x: dt.einsum("abc,abd->cd", x, x),
    "tensordot": lambda x: dt.tensordot(x, x, axes=([0], [0])),
    "trace": lambda x: dt.linalg.trace(x),
    "rows by columns": lambda x: x @ x.mT,
    "cross_entropy": lambda x: F.cross_entropy(x[:, :, 0], CLASSES),
    "cross_entropy, each": lambda x: F.cross_entropy(x[:, :, 0], CLASSES, reduction="none"),
    "cross_entropy, weighted": lambda x: F.cross_entropy(
        x[:, :, 0], CLASSES, dt.arange(1.0, 6.0), ignore_index=2, label_smoothing=0.1
    ),
    "cross_entropy of images": lambda x: F.cross_entropy(x, EACH[:, 0]),
    "cross_entropy of probabilities": lambda x: F.cross_entropy(x, dt.softmax(X, axis=1)),
    "cross_entropy of sharded classes": lambda x: F.cross_entropy(
        X[:, :, 0], dt.argmax(x[:, :, 0], axis=1)
    ),
    "nll_loss": lambda x: F.nll_loss(F.log_softmax(x[:, :, 0], 1), CLASSES),
    "binary_cross_entropy": lambda x: F.binary_cross_entropy(dt.sigmoid(x), dt.sigmoid(X * 2)),
    "with logits": lambda x: F.binary_cross_entropy_with_logits(x, dt.sigmoid(X)),
    "mse_loss": lambda x: F.mse_loss(x, X * 2),
    "l1_loss": lambda x: F.l1_loss(x, x * 2),
    "huber_loss": lambda x: F.huber_loss(x, X / 2),
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, X / 2),
    "kl_div": lambda x: F.kl_div(x, dt.exp(X), reduction="batchmean"),
    "multi_margin_loss": lambda x: F.multi_margin_loss(x[:, :, 0], CLASSES),
    "triplet_margin_loss": lambda x: F.triplet_margin_loss(x, x * 2, X * 3),
    "cosine_similarity": lambda x: F.cosine_similarity(x, X * x),
    "layer_norm": lambda x: F.layer_norm(x, (6,)),
    "batch_norm": lambda x: F.batch_norm(x, None, None, X[0, :, 0], X[1, :, 0], training=True),
    "group_norm": lambda x: F.group_norm(x[:, :4], 2),
    "adaptive_avg_pool1d": lambda x: F.adaptive_avg_pool1d(x, 3),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, X),
}
ALL = {**LOSSES, **FUNCTIONS}
DIFFERENTIABLE = {n: f for n, f in ALL.items() if f(X.detach().requires_grad_()).requires_grad}


@pytest.mark.parametrize("name", LOSSES)
def test_sums_along_each_axis_equal_those_of_strided_tensors(name: str) -> None:
    function, expected = LOSSES[name], LOSSES[name](X).numpy()
    for workers in (2, 3, 5):
        for axis in (0, 1, 2):

            def work(axis: int = axis) -> Any:
                y = function(dt.parallel.shard(X, axis))
                return y.to_dense().numpy() if y.layout is not dt.strided else y.numpy()

            for y in run_threads(work, workers=workers):
                np.testing.assert_allclose(y, expected, rtol=1e-5, atol=2e-4)


def gradient(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    y = function(x)
    dt.sum(dt.sin(y / 64)).backward()
    return dt.zeros(x.shape) if x.grad is None else x.grad


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_along_each_axis_equal_those_of_strided_tensors(name: str) -> None:
    function = DIFFERENTIABLE[name]
    expected = gradient(function, X.detach().requires_grad_()).numpy()
    for axis in (0, 1, 2):

        def work(axis: int = axis) -> Any:
            g = gradient(function, dt.parallel.shard(X, axis).requires_grad_())
            return g.to_dense().numpy() if g.layout is not dt.strided else g.numpy()

        for g in run_threads(work, workers=3):
            np.testing.assert_allclose(g, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["max", "min"])
def test_equal_extremes_of_several_ranks_share_the_gradient_evenly(name: str) -> None:
    x = dt.asarray(np.random.default_rng(0).integers(0, 3, (7, 4, 2)), dtype=dt.float32)
    function = partial(getattr(dt, name), axis=(0, 1))
    expected = gradient(function, x.detach().requires_grad_())
    for axis in (0, 1, 2):

        def work(axis: int = axis) -> Any:
            return gradient(function, dt.parallel.shard(x.detach(), axis).requires_grad_()).tolist()

        assert run_threads(work, workers=3) == [expected.tolist()] * 3


FACTORS = {
    "overflow": [1e30, 1e30, 1.0],
    "NaN": [dt.nan, 2.0, 3.0],
    "infinity and zero": [0.0, dt.inf, 2.0],
    "two zeros": [0.0, 0.0, 3.0],
    "overflow in a part": [1e-30, 1e30, 1e30, 1e-30, 2.0],
    "underflow in a part": [1e30, 1e-30, 1e-30, 1e30, 2.0],
    "numbers": [1.5, -2.0, 0.5, 3.0],
}


@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64"])
def test_product_and_its_gradient_are_those_of_strided_tensors(name: str, dtype: str) -> None:
    x = dt.asarray([FACTORS[name], FACTORS[name][::-1]], dtype="float32").astype(dtype)

    def gradients(x: Tensor) -> Any:
        products = dt.prod(x, axis=1)
        y = x.requires_grad_()
        dt.real(dt.prod(y)).backward()
        return bits(products), bits(dt.prod(y, axis=1)), bits(y.grad)

    expected = gradients(x.detach())
    for workers in (1, 2, 3):
        for axis in (0, 1):
            work = partial(lambda a: gradients(dt.parallel.shard(x.detach(), a)), axis)
            assert run_threads(work, workers=workers) == [expected] * workers


def test_second_derivative_of_a_product_is_that_of_strided_tensors() -> None:
    def second(x: Tensor) -> Any:
        y = x.requires_grad_()
        leaf = y.parts[0] if hasattr(y, "parts") else y
        (g,) = dt.autograd.grad(dt.sum(dt.prod(y, axis=0) ** 2), [leaf], create_graph=True)
        g = g if x.layout is dt.strided else x.with_local(g)
        dt.sum(g * g).backward()
        return y.grad.to_dense() if y.layout is not dt.strided else y.grad

    x = X[:4, :3, 0] / 4
    expected = second(x.detach()).numpy()
    for axis in (0, 1):
        work = partial(lambda a: second(dt.parallel.shard(x.detach(), a)).numpy(), axis)
        for result in run_threads(work, workers=3):
            np.testing.assert_allclose(result, expected, rtol=1e-4)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_integers_is_float32_along_each_axis(name: str) -> None:
    x, function = dt.asarray([[1, 0, 200], [0, 2, 1]], dtype=dt.uint8), getattr(dt, name)
    expected = function(x, axis=1)
    for axis in (0, 1):

        def work(axis: int = axis) -> Tensor:
            return function(dt.parallel.shard(x, axis), axis=1).full()

        for y in run_threads(work, workers=2):
            assert y.dtype is dt.float32
            np.testing.assert_allclose(y.numpy(), expected.numpy(), rtol=1e-6)


def test_argwhere_gives_rows_of_positions_of_all_ranks() -> None:
    x = dt.asarray([[1, 0], [0, 2], [3, 3]])
    for axis in (0, 1):
        work = partial(lambda a: dt.argwhere(dt.parallel.shard(x, a)).tolist(), axis)
        assert run_threads(work, workers=2) == [dt.argwhere(x).tolist()] * 2


def test_take_along_axis_refuses_shapes_that_fit_a_shard_alone() -> None:
    x, indices = dt.ones((8, 3)), dt.zeros((4, 2), dtype=dt.int64)

    def work(i: Tensor) -> None:
        with pytest.raises(dt.ShapeError, match=r"shapes \(8, "):
            dt.take_along_axis(dt.parallel.shard(x), i, axis=1)

    run_threads(lambda: work(indices), workers=2)
    run_threads(lambda: work(indices[0]), workers=2)


def test_integer_of_the_sharded_axis_beside_an_array_of_an_axis_of_size_1() -> None:
    x = dt.arange(5.0).reshape(5, 1)
    got = run_threads(lambda: dt.parallel.shard(x)[1, [0, 0, 0]].tolist(), workers=2)
    assert got == [[1.0, 1.0, 1.0]] * 2


def test_operands_of_two_groups_are_refused() -> None:
    outer = run_threads(lambda: dt.parallel.shard(dt.arange(6)), workers=1)[0]

    def work() -> None:
        other, one = dt.parallel.shard(dt.asarray([0, 1, 2])), dt.parallel.shard(dt.ones(1))
        for function in (
            lambda: outer[other],
            lambda: dt.take_along_axis(outer, other, axis=0),
            lambda: one + outer,
            lambda: outer + one,
            lambda: dt.concat([outer, one]),
            lambda: outer @ dt.parallel.shard(dt.ones((6, 1))),
        ):
            with pytest.raises(dt.LayoutError, match="different groups"):
                function()

    run_threads(work, workers=1)


@pytest.mark.parametrize("borders", [(0, 2, 3), (0, 3, 3), (0, 0, 3)])
def test_product_along_a_contraction_of_which_a_rank_may_have_nothing(borders: Any) -> None:
    values = dt.arange(6.0)
    x, y = values.reshape(2, 3), values.reshape(3, 2)

    def work() -> list[Any]:
        left, right = x.detach().requires_grad_(), y.detach().requires_grad_()
        dt.sum(dt.parallel.shard(left, 1, borders) @ right).backward()
        is_true = dt.parallel.shard(x > 1, 1, borders) @ (y > 1)
        return [left.grad.tolist(), right.grad.tolist(), is_true.tolist()]

    ones = dt.ones((2, 2))
    expected = [(ones @ y.T).tolist(), (x.T @ ones).tolist(), ((x > 1) @ (y > 1)).tolist()]
    assert run_threads(work, workers=2) == [expected] * 2


def test_attention_with_dropout_is_refused() -> None:
    """Each rank would draw another mask, and the gradients would be of different functions."""
    x = dt.parallel.shard(X, 1)
    with pytest.raises(dt.LayoutError, match=r"dropout_p must be 0 .* layout sharded"):
        F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)


def test_attention_with_a_mask_is_that_of_strided_tensors() -> None:
    mask = dt.tril(dt.ones((X.shape[-2], X.shape[-2]))) > 0
    expected = F.scaled_dot_product_attention(X, X, X, attn_mask=mask).numpy()
    for axis in (0, 1, 2):

        def work(axis: int = axis) -> Any:
            x = dt.parallel.shard(X, axis)
            return F.scaled_dot_product_attention(x, x, x, attn_mask=mask).full().numpy()

        for y in run_threads(work, workers=3):
            np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(30,), (10, 3)])
def test_gradient_of_a_replicated_table_has_the_bits_of_strided_tensors(
    shape: tuple[int, ...], dtype: str
) -> None:
    at = dt.asarray(np.random.default_rng(2).integers(0, 4, shape))
    tables = [X[:, :, 0].astype(dtype), X[:, 0, 0].astype(dtype)]  # a vector has no other axis

    def gradients_of(i: Tensor) -> Any:
        result = []
        for table in tables:
            w = table.detach().requires_grad_()
            dt.sum(dt.exp(w[i] / 8).astype("float32")).backward()
            result.append(bits(w.grad.astype("float32")))
        return result

    expected = gradients_of(at)
    for workers in (1, 2, 3, 4):
        for axis in range(len(shape)):
            work = partial(lambda a: gradients_of(dt.parallel.shard(at, a)), axis)
            assert run_threads(work, workers=workers) == [expected] * workers


CONVOLUTIONS: dict[str, Callable[..., Tensor]] = {
    "conv2d": lambda x, w, b: F.max_pool2d(F.conv2d(x[:, None], w, b), 2),
    "pointwise": lambda x, w, b: F.conv2d(x[:, None], w[..., :1, :1], b),
    "groups": lambda x, w, b: F.conv2d(dt.stack([x, x * x], axis=1), w, b, groups=2, padding=1),
    "transposed": lambda x, w, b: F.conv_transpose2d(x[:, None], w.swapaxes(0, 1), b, stride=2),
    "transposed groups": lambda x, w, b: F.conv_transpose2d(
        dt.stack([x, x, -x, x], axis=1), w, b[:2], groups=2
    ),
}


@pytest.mark.parametrize("images", [1, 2, 7])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_gradients_of_convolution_weights_have_the_bits_of_strided_tensors(
    name: str, dtype: str, images: int
) -> None:
    random = np.random.default_rng(1)
    examples, weights, bias = (
        dt.asarray(random.standard_normal(shape)).astype(dtype)
        for shape in ((images, 8, 9), (4, 1, 3, 3), (4,))
    )

    def gradients_of(x: Tensor) -> list[Any]:
        w, b = weights.detach().requires_grad_(), bias.detach().requires_grad_()
        dt.sum(dt.sin(CONVOLUTIONS[name](x, w, b))).backward()
        return [bits(w.grad), bits(b.grad)]

    expected = gradients_of(examples)
    for workers in (1, 2, 4):
        for axis in (0, 1, 2):
            work = partial(lambda a: gradients_of(dt.parallel.shard(examples, a)), axis)
            assert run_threads(work, workers=workers) == [expected] * workers


def test_second_derivative_of_a_convolution_is_that_of_strided_tensors() -> None:
    def second(x: Tensor) -> Any:
        w = X[:4, None, :3, :3].detach().requires_grad_()
        loss = dt.sum(dt.sin(F.conv2d(x[:, None], w)))
        (g,) = dt.autograd.grad(loss, [w], create_graph=True)
        dt.sum(g * g).backward()
        return w.grad.numpy()

    expected = second(X)
    for axis in (0, 1):
        work = partial(lambda a: second(dt.parallel.shard(X, a)), axis)
        for g in run_threads(work, workers=3):
            np.testing.assert_allclose(g, expected, rtol=1e-4)


@pytest.mark.parametrize("function", [dt.linalg.pinv, dt.linalg.matrix_rank])
def test_tolerance_of_each_matrix_of_a_sharded_batch_raises(
    function: Callable[..., Tensor],
) -> None:
    def work() -> str:
        x = dt.parallel.shard(dt.ones((2, 3, 3)), 0)
        with pytest.raises(dt.LayoutError, match="one number for each matrix") as error:
            function(x, rtol=dt.asarray([0.1, 0.9]))
        return type(error.value).__name__

    assert run_threads(work, workers=2) == ["LayoutError"] * 2


SECOND: dict[str, tuple[Callable[..., Tensor], tuple[int, ...], tuple[int, ...], int]] = {
    "convolution, batch": (F.conv1d, (4, 2, 6), (3, 2, 3), 0),
    "convolution, channels": (F.conv1d, (4, 2, 6), (3, 2, 3), 1),
    "convolution, positions": (F.conv1d, (4, 2, 6), (3, 2, 3), 2),
    "solve": (lambda x, b: dt.linalg.solve(x + 3 * dt.eye(3), b), (4, 3, 3), (3, 2), 0),
    "attention": (
        lambda q, k: F.scaled_dot_product_attention(q, k, k), (3, 5, 4), (1, 6, 4), 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SECOND)
def test_mixed_second_derivatives_are_those_of_strided_tensors(name: str) -> None:
    function, sharded, repeated, axis = SECOND[name]
    rng = np.random.default_rng(0)
    numbers, weights = (dt.asarray(rng.standard_normal(n)) for n in (sharded, repeated))

    def second(place: Callable[[Tensor], Tensor]) -> list[Any]:
        leaves = [t.detach().requires_grad_() for t in (numbers, weights)]
        loss = dt.sum(dt.sin(function(place(leaves[0]), leaves[1])))
        first = dt.autograd.grad(loss, leaves, create_graph=True)
        (dt.sum(first[0] ** 2) + dt.sum(first[1] ** 3)).backward()
        return [t.grad.numpy() for t in leaves]

    expected = second(lambda t: t)
    work = partial(second, lambda t: dt.parallel.shard(t, axis))
    for workers in (2, 3):
        for found in run_threads(work, workers=workers):
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9)


def test_gradient_of_replicated_values_of_a_scatter_is_that_of_strided_tensors() -> None:
    def gradient_of(x: Tensor) -> Any:
        values = X[:, :2].detach().requires_grad_()
        dt.sum(dt.square(dt.index_add(x, 1, [1, 1], values))).backward()
        return values.grad.numpy()

    expected = gradient_of(X)
    for axis in (0, 1, 2):
        work = partial(lambda a: gradient_of(dt.parallel.shard(X, a)), axis)
        for g in run_threads(work, workers=3):
            np.testing.assert_allclose(g, expected, rtol=1e-5)


SENT: dict[str, tuple[Callable[[Tensor], Any], list[str]]] = {
    "sort another axis": (lambda x: dt.sort(x, axis=1), []),
    "sort": (lambda x: dt.sort(x, axis=0), ["sort: all_to_all"] * 2),
    "index another axis": (lambda x: x[:, [0, 2]], []),
    "index": (lambda x: x[[0, 2]], ["index: all_to_all"] * 2),
    "sharded index": (lambda x: X[(x[:, 0, 0] > 0).astype("int64")], []),
    "mask": (lambda x: x[X > 0], ["index: all_gather"]),
    "flip another axis": (lambda x: dt.flip(x, axis=1), []),
    "flip": (lambda x: dt.flip(x, axis=0), ["flip: all_to_all"] * 2),
    "slice backwards": (lambda x: x[::-1], ["flip: all_to_all"] * 2),
    "pad another axis": (lambda x: dt.pad(x, ((0, 0), (1, 1), (0, 0)), "reflect"), []),
    "pad by mirrors": (
        lambda x: dt.pad(x, ((1, 1), (0, 0), (0, 0)), "reflect"),
        ["index: all_to_all"] * 2,
    ),
    "prod": (lambda x: dt.prod(x, axis=0), ["prod: all_to_all", "prod: all_gather"]),
    "kron": (lambda x: dt.kron(x, X[:1]), []),
    "searchsorted": (lambda x: dt.searchsorted(X[0, 0], x), []),
    "unfold": (lambda x: dt.unfold(x[:, None], 2), []),
    "convolution": (lambda x: F.conv1d(x, X[:, :, :3]), []),
    "pooling": (lambda x: F.max_pool1d(x, 2), []),
    "softmax": (lambda x: dt.softmax(x, axis=0), ["max: all_gather", "sum: all_gather"]),
    "concat": (lambda x: dt.concat([x, X]), ["concat: all_to_all"]),
    "other borders": (lambda x: x[1:] - x[:-1], ["subtract: all_to_all"]),
    "other axis": (lambda x: x + dt.parallel.shard(X, 1), ["add: all_to_all"]),
    "cross_entropy": (
        lambda x: F.cross_entropy(x[:, :, 0], CLASSES, reduction="none").sum(),
        ["sum: all_gather"],
    ),
}


@pytest.mark.parametrize("name", SENT)
def test_explain_names_what_functions_send(name: str) -> None:
    def work() -> list[str]:
        messages = dt.explain(SENT[name][0], dt.parallel.shard(X)).messages
        return [f"{m.name}: {m.step}" for m in messages]

    assert run_threads(work, workers=3) == [SENT[name][1]] * 3
