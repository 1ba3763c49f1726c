"""Pooling against PyTorch over its arguments; ties, NaN, errors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import dovetail as dt
import dovetail.nn.functional as F
import numpy as np
import pytest

SIZES = {1: (11,), 2: (7, 10), 3: (4, 5, 6)}


def numbers(shape: tuple[int, ...], seed: int = 1) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape)


def compared(
    op: str, x: np.ndarray[Any, Any], *args: Any, device: str = "reference", **options: Any
) -> None:
    """Compare the result, the indices if any, and the gradient with PyTorch's."""
    torch = pytest.importorskip("torch")
    theirs = torch.tensor(x, requires_grad=True)
    ours = dt.asarray(x, device=device).requires_grad_()
    expected, found = (
        getattr(torch.nn.functional, op)(theirs, *args, **options),
        getattr(F, op)(ours, *args, **options),
    )
    if isinstance(expected, tuple):
        assert (found[1].numpy() == expected[1].numpy()).all()
        assert found[1].dtype is dt.int64
        expected, found = expected[0], found[0]
    assert found.shape == tuple(expected.shape)
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), atol=1e-10)
    g = numbers(tuple(expected.shape), 9)
    expected.backward(torch.tensor(g))
    found.backward(dt.asarray(g, device=device))
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), atol=1e-10)


@pytest.mark.parametrize("axes", (1, 2, 3))
def test_max_pooling_equals_pytorch(axes: int) -> None:
    space = [*itertools.product((2, 3), (None, 1, 2, 3), (0, 1), (1, 2), (False, True))]
    for kernel, stride, padding, dilation, ceil_mode in space[axes - 1 :: 3]:
        if dilation == 2 and kernel == 3 and axes == 3:
            continue  # windows must not exceed the padded input
        compared(
            f"max_pool{axes}d",
            numbers((2, 3, *SIZES[axes])),
            kernel,
            stride,
            padding,
            dilation,
            ceil_mode,
            return_indices=stride != 3,
        )


@pytest.mark.parametrize("axes", (1, 2, 3))
def test_average_pooling_equals_pytorch(axes: int) -> None:
    for kernel, stride, padding, ceil_mode, included in itertools.product(
        (2, 3), (None, 1, 2), (0, 1), (False, True), (False, True)
    ):
        compared(
            f"avg_pool{axes}d",
            numbers((2, 3, *SIZES[axes])),
            kernel,
            stride,
            padding,
            ceil_mode,
            included,
        )
    if axes > 1:
        compared(f"avg_pool{axes}d", numbers((3, *SIZES[axes])), 2, 1, 1, divisor_override=3)


@pytest.mark.parametrize("axes", (1, 2, 3))
def test_adaptive_pooling_equals_pytorch(axes: int) -> None:
    for m in (1, 2, 3, 5, 12):
        x = numbers((2, 3, *SIZES[axes]))
        compared(f"adaptive_avg_pool{axes}d", x, m)
        compared(f"adaptive_max_pool{axes}d", x, m, return_indices=True)
    if axes > 1:
        some = (None, *(2,) * (axes - 1))
        compared(f"adaptive_avg_pool{axes}d", numbers((3, *SIZES[axes])), some)
        compared(f"adaptive_max_pool{axes}d", numbers((3, *SIZES[axes])), some)


@pytest.mark.parametrize("axes", (1, 2, 3))
def test_lp_pooling_equals_pytorch(axes: int) -> None:
    for p, kernel, stride, ceil_mode in itertools.product(
        (1.0, 2.0, 3.0), (2, 3), (None, 1), (False, True)
    ):
        x = np.abs(numbers((2, 3, *SIZES[axes]))) + 0.1
        compared(f"lp_pool{axes}d", x, p, kernel, stride, ceil_mode)


@pytest.mark.parametrize("device", ("reference", "cpu"))
def test_pooling_shapes_and_kernels_equal_pytorch(device: str) -> None:
    for options in (
        {"kernel_size": (2, 3)},
        {"kernel_size": 3, "stride": (1, 2), "padding": (1, 0)},
    ):
        compared("max_pool2d", numbers((3, 6, 9)), device=device, **options)
        compared("avg_pool2d", numbers((3, 6, 9)), device=device, **options)
    compared("avg_pool2d", numbers((1, 2, 8, 8)), 8, device=device)
    compared("avg_pool2d", numbers((1, 2, 9, 12)), 3, device=device)


def test_max_unpooling_equals_pytorch() -> None:
    torch = pytest.importorskip("torch")
    for axes, x in itertools.product((1, 2, 3), (numbers((2, 3, 7, 7, 7)),)):
        x = x[(..., *(0,) * (3 - axes))] if axes < 3 else x
        best, at = getattr(torch.nn.functional, f"max_pool{axes}d")(
            torch.tensor(x), 2, return_indices=True
        )
        for size in (None, x.shape[2:]) if axes == 1 else (x.shape[2:],):
            expected = getattr(torch.nn.functional, f"max_unpool{axes}d")(
                best, at, 2, output_size=size
            )
            found = getattr(F, f"max_unpool{axes}d")(
                dt.asarray(best.numpy()), dt.asarray(at.numpy()), 2, output_size=size
            )
            assert (found.numpy() == expected.numpy()).all()


def test_first_of_equal_maxima_gets_the_gradient() -> None:
    x = dt.ones((1, 4, 4), device="cpu").requires_grad_()
    F.max_pool2d(x, 2).sum().backward()
    assert x.grad.tolist() == [[[1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]]]


@pytest.mark.parametrize("dilation", (1, 2, 3))
def test_index_of_a_maximum_equal_to_the_padding_is_in_the_window(dilation: int) -> None:
    """All padding is as large as the maximum of a window of zeros."""
    for values, dtype in (
        ([7, 0, 0, 0, 0, 0, 9], dt.uint8), ([0, *[-math.inf] * 5, 1], dt.float32)
    ):  # fmt: skip
        x = dt.asarray([values], dtype=dtype, device="reference")
        for kernel, stride, ceil_mode in itertools.product((2, 3), (1, 2), (False, True)):
            padding = (dilation * (kernel - 1) + 1) // 2
            best, index = F.max_pool1d(x, kernel, stride, padding, dilation, ceil_mode, True)
            for k in range(best.shape[1]):
                at = range(k * stride - padding, len(values), dilation)[:kernel]
                inside = [i for i in at if i >= 0]
                assert index[0, k].item() == max(inside, key=lambda i: values[i])
                assert best[0, k].item() == values[index[0, k].item()]


def test_max_pooling_propagates_nan() -> None:
    x = dt.asarray([[1.0, math.nan, 3.0, 2.0, -math.inf, -math.inf]], device="cpu")
    found = F.max_pool1d(x, 2)
    assert dt.isnan(found).tolist() == [[True, False, False]]
    assert found[0, 1:].tolist() == [3.0, -math.inf]


def test_pooling_of_integers_and_halves() -> None:
    x = dt.arange(16, device="cpu").reshape((1, 4, 4)) - 20
    assert F.max_pool2d(x, 3, 2, 1).tolist() == [[[-15, -13], [-7, -5]]]
    half = dt.full((1, 1, 64, 64), 1.0, dtype=dt.float16, device="cpu") + 2.0**-10
    assert F.avg_pool2d(half, 64).item() == 1 + 2.0**-10
    assert F.avg_pool2d(half, 64).dtype is dt.float16
    assert F.adaptive_avg_pool2d(half, 5).dtype is dt.float16


def test_bits_are_the_same_everywhere_and_when_captured() -> None:
    x = numbers((2, 3, 7, 9)).astype("f")
    for f in (
        lambda v: F.avg_pool2d(v, 3, 2, 1),
        lambda v: F.adaptive_avg_pool2d(v, (3, 4)),
        lambda v: F.max_pool2d(v, 3, 2),
    ):
        expected = f(dt.asarray(x, device="reference")).numpy().tobytes()
        captured = dt.jit(f)
        for g in (f, captured, captured):
            assert g(dt.asarray(x, device="cpu")).numpy().tobytes() == expected


def test_wrong_arguments_are_named() -> None:
    x = dt.ones((1, 4, 4))
    for message, error, call in (
        ("max_pool2d: the input must have shape", dt.ShapeError, lambda: F.max_pool2d(x[0], 2)),
        ("must not exceed the padded input", dt.ShapeError, lambda: F.max_pool2d(x, 5)),
        ("at most half", dt.ArgumentError, lambda: F.avg_pool2d(x, 2, padding=2)),
        ("kernel_size must be at least 1, got 0", dt.ArgumentError, lambda: F.avg_pool2d(x, 0)),
        (
            "kernel_size must have one size or 2",
            dt.ArgumentError,
            lambda: F.avg_pool2d(x, (1, 2, 3)),
        ),
        ("must not be 0", dt.ArgumentError, lambda: F.avg_pool2d(x, 2, divisor_override=0)),
        ("a float dtype", dt.DTypeError, lambda: F.avg_pool2d(x.astype(dt.int32), 2)),
        ("a real dtype", dt.DTypeError, lambda: F.max_pool2d(x > 0, 2)),
        ("output_size", dt.ArgumentError, lambda: F.adaptive_avg_pool2d(x, (1, 2, 3))),
        ("must not be empty", dt.ShapeError, lambda: F.adaptive_avg_pool2d(x[:, :0], 1)),
        (
            "indices must have the input's shape",
            dt.ShapeError,
            lambda: F.max_unpool2d(x, x[:, 1:].astype(dt.int64), 2),
        ),
        ("expected a tensor", dt.DTypeError, lambda: F.max_pool2d(1, 2)),
        ("ceil_mode", dt.ArgumentError, lambda: F.max_pool2d(x, 2, ceil_mode="yes")),
    ):
        with pytest.raises(error, match=message):
            call()


def test_second_derivatives_captured_and_mapped(thinned: Callable[..., Any]) -> None:
    x = dt.asarray(numbers((2, 1, 5, 6)), device="cpu").requires_grad_()
    pooled = (
        lambda v: F.avg_pool2d(v, (3, 2), (1, 2), 1) ** 2,
        lambda v: F.max_pool2d(v, 3, 2, 1) ** 2,
        lambda v: F.max_pool2d(v, 2, dilation=2) ** 2,
    )
    for f in thinned(pooled, 2):
        dt.autograd.gradcheck(f, (x,))
        dt.autograd.gradgradcheck(f, (x,))
        expected = dt.grad(f(x).sum(), x)
        captured = dt.jit(lambda v, f=f: dt.grad(f(v).sum(), v))
        for _ in range(2):
            assert dt.all(captured(x) == expected).item()
        each = dt.func.vmap(dt.func.grad(lambda v, f=f: f(v).sum()))(x.detach())
        assert dt.all(each == expected).item()


def test_infinity_in_a_window_does_not_affect_others() -> None:
    """Gradients of windows are selected, not multiplied by 0."""
    x = dt.asarray([[[math.inf, 1.0, 2.0, 3.0]]], device="cpu").requires_grad_()
    F.max_pool1d(x, 2, 1).sum().backward()
    assert x.grad.tolist() == [[[1.0, 0.0, 1.0, 1.0]]]


def test_kernel_of_many_windows_ignores_padding_outside_of_them(device: dt.Device) -> None:
    a = numbers((2, 3, 4, 5, 6))
    for kernel, stride, padding in ((2, 2, 0), (3, 1, 1)):
        x = dt.asarray(a).requires_grad_()
        values, indices = F.max_pool3d(x, kernel, stride, padding, return_indices=True)
        positions = indices.numpy().reshape(2, 3, -1)
        found = np.take_along_axis(a.reshape(2, 3, -1), positions, -1)
        assert found.tolist() == values.detach().numpy().reshape(2, 3, -1).tolist()
        values.backward(dt.ones_like(values))
        assert dt.sum(x.grad).item() == values.size
