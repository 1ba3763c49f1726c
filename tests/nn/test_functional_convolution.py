"""Convolutions against PyTorch over their arguments; errors; the same bits."""

from __future__ import annotations

import itertools
from typing import Any

import dovetail as dt
import dovetail.nn.functional as F
import numpy as np
import pytest

SIZES = {1: (9,), 2: (6, 40), 3: (4, 5, 6)}
TAPS = {1: (3,), 2: (3, 2), 3: (2, 3, 2)}


def numbers(shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape)


def compared(op: str, torch: Any, arrays: list[Any], device: str, *options: Any) -> None:
    """Compare the result and the gradients of all operands with PyTorch's."""
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    ours = [dt.asarray(a, device=device).requires_grad_() for a in arrays]
    expected = getattr(torch.nn.functional, op)(*theirs, *options)
    found = getattr(F, op)(*ours, *options)
    assert found.shape == tuple(expected.shape)
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), atol=1e-10)
    g = numbers(tuple(expected.shape), 9)
    expected.backward(torch.tensor(g))
    found.backward(dt.asarray(g, device=device))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), atol=1e-9)


GROUPS = ((4, 6, 1), (4, 8, 2), (4, 4, 4), (2, 10, 1))
SPACE = [*itertools.product((1, 2, 3), (0, 1), (1, 2), GROUPS)]


@pytest.mark.parametrize("axes", (1, 2, 3))
def test_convolutions_equal_pytorch(axes: int) -> None:
    torch = pytest.importorskip("torch")
    for stride, padding, dilation, (c, o, groups) in SPACE[axes - 1 :: 3]:
        arrays = [numbers((2, c, *SIZES[axes]), 1), numbers((o, c // groups, *TAPS[axes]), 2)]
        arrays.append(numbers((o,), 3))
        compared(f"conv{axes}d", torch, arrays, "reference", stride, padding, dilation, groups)


@pytest.mark.parametrize("axes", (1, 2, 3))
def test_transposed_convolutions_equal_pytorch(axes: int) -> None:
    torch = pytest.importorskip("torch")
    for stride, padding, dilation, (c, o, groups) in SPACE[axes - 1 :: 3]:
        more = min(1, max(stride, dilation) - 1)
        arrays = [numbers((2, c, *SIZES[axes]), 1), numbers((c, o // groups, *TAPS[axes]), 2)]
        arrays.append(numbers((o,), 3))
        options = (stride, padding, more, groups, dilation)
        compared(f"conv_transpose{axes}d", torch, arrays, "reference", *options)


CASES = (  # x, w, options
    ((2, 3, 20, 33), (5, 3, 3, 3), (1, "same")), ((2, 3, 7, 8), (5, 3, 2, 4), (1, "same")),
    ((3, 7, 8), (5, 3, 2, 3), (1, "same", 2)), ((3, 7, 8), (5, 3, 2, 3), (1, "valid")),
    ((2, 3, 7, 8), (5, 3, 2, 3), ((2, 1), (1, 0), (1, 2))), ((2, 3, 5, 70), (5, 3, 1, 1), ()),
    ((2, 3, 6, 6), (4, 3, 1, 1), (2,)), ((1, 6, 4, 64), (6, 1, 3, 3), (1, 1, 1, 6)),
    ((0, 3, 7, 8), (5, 3, 2, 3), ()),
)  # fmt: skip


@pytest.mark.filterwarnings("ignore:Using padding='same'")  # PyTorch's warning that it may copy
@pytest.mark.parametrize(("x", "w", "options"), CASES)
@pytest.mark.parametrize("device", ("reference", "cpu"))
def test_paddings_and_shapes_equal_pytorch(device: str, x: Any, w: Any, options: Any) -> None:
    torch = pytest.importorskip("torch")
    compared("conv2d", torch, [numbers(x, 1), numbers(w, 2), numbers(w[:1], 3)], device, 
             *options)  # fmt: skip


@pytest.mark.parametrize("d", ("float32", "float16", "bfloat16"))
def test_reduced_precision_is_summed_in_float32(d: str) -> None:
    dtype = getattr(dt, d)
    x, w = (
        dt.asarray(numbers(s, 1), device="cpu").astype(dtype) for s in ((2, 8, 9, 9), (9, 8, 3, 3))
    )
    found = F.conv2d(x, w, padding=1)
    assert found.dtype is dtype
    exact = F.conv2d(x.astype(dt.float64), w.astype(dt.float64), padding=1)
    away = dt.max(dt.abs(found.astype(dt.float64) - exact)).item()
    assert away <= {"float32": 1e-5, "float16": 2e-2, "bfloat16": 2e-1}[d]
    wide = F.conv2d(x.astype(dt.float32), w.astype(dt.float32), padding=1)
    assert dt.all(wide.astype(dtype) == found).item()


def test_bits_are_the_same_everywhere() -> None:
    """In any schedule, with vendor products or without."""
    for x, w, options in (
        ((4, 5, 9, 33), (9, 5, 3, 3), (1, 1)),
        ((4, 5, 6, 6), (9, 5, 3, 3), (2, 1)),
    ):
        found = []
        for device in ("reference", "cpu"):
            a, b = (dt.asarray(numbers(s, 1).astype("f"), device=device) for s in (x, w))
            a.requires_grad_()
            b.requires_grad_()
            y = F.conv2d(a, b, None, *options)
            dt.sum(y * y).backward()
            found.append([t.detach().numpy().tobytes() for t in (y, a.grad, b.grad)])
        assert found[0] == found[1]


@pytest.mark.parametrize(
    ("x", "w", "options"),
    [
        ((5, 6, 9, 33), (40, 6, 3, 3), (1, 1)),
        ((5, 6, 14, 14), (3, 6, 3, 3), (2, 1)),
        ((5, 40, 7, 7), (40, 1, 3, 3), (1, 1, 1, 40)),
        ((4, 70, 5, 5), (33, 70, 1, 1), ()),
        ((4, 5, 90), (32, 5, 4), (3,)),
    ],
    ids=str,
)
@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_item_of_batch_equals_item_alone(device: str, x: Any, w: Any, options: Any) -> None:
    """A convolution and the gradient of its input, bit by bit."""
    convolve = F.conv1d if len(x) == 3 else F.conv2d
    a, b = (dt.asarray(numbers(s, i).astype("f"), device=device) for i, s in enumerate((x, w)))
    a.requires_grad_()
    y = convolve(a, b, None, *options)
    g = dt.asarray(numbers(y.shape, 3).astype("f"), device=device)
    y.backward(g)
    for item in (0, x[0] - 1):
        alone = dt.asarray(a.detach().numpy()[item : item + 1], device=device).requires_grad_()
        result = convolve(alone, b, None, *options)
        result.backward(g[item : item + 1])
        assert result.detach().numpy().tobytes() == y[item].detach().numpy().tobytes()
        assert alone.grad.numpy().tobytes() == a.grad[item].numpy().tobytes()


def test_second_derivatives_pass_gradgradcheck() -> None:
    x, w = (
        dt.asarray(numbers(s, 1), device="cpu").requires_grad_()
        for s in ((1, 2, 4, 5), (3, 2, 2, 2))
    )
    assert dt.autograd.gradgradcheck(lambda a, b: F.conv2d(a, b, stride=2, padding=1), (x, w))
    y, w = (
        dt.asarray(numbers(s, 1), device="cpu").requires_grad_()
        for s in ((1, 3, 2, 3), (3, 2, 2, 2))
    )
    assert dt.autograd.gradgradcheck(lambda a, b: F.conv_transpose2d(a, b, stride=2), (y, w))


def test_captured_and_mapped_convolutions_are_the_same() -> None:
    x, w = (dt.asarray(numbers(s, 1), device="cpu") for s in ((3, 2, 6, 7), (4, 2, 3, 3)))
    expected = F.conv2d(x, w, padding=1)
    captured = dt.jit(lambda a, b: F.conv2d(a, b, padding=1))
    for _ in range(2):
        assert dt.all(captured(x, w) == expected).item()
    one = dt.func.vmap(lambda a: F.conv2d(a, w, padding=1))(x)
    assert dt.all(one == expected).item()
    each = dt.func.vmap(lambda a, b: F.conv2d(a, b, padding=1))(x, dt.stack([w, w * 2, w]))
    assert dt.all(each[1] == expected[1] * 2).item()


def test_wrong_shapes_are_named() -> None:
    x, w = dt.ones((2, 3, 5, 5)), dt.ones((4, 3, 3, 3))
    for message, error, call in (
        ("conv2d: the input must have shape", dt.ShapeError, lambda: F.conv2d(x[0, 0], w)),
        (
            "3 channels, and a weight of shape .* takes 6",
            dt.ShapeError,
            lambda: F.conv2d(x, dt.ones((4, 6, 3, 3))),
        ),
        ("takes 6", dt.ShapeError, lambda: F.conv2d(x, w, groups=2)),
        (
            "filters must be divisible by groups, got 4",
            dt.ArgumentError,
            lambda: F.conv2d(x, dt.ones((4, 1, 3, 3)), groups=3),
        ),
        ("must not exceed", dt.ShapeError, lambda: F.conv2d(x, dt.ones((4, 3, 7, 7)))),
        ("stride must be at least 1, got 0", dt.ArgumentError, lambda: F.conv2d(x, w, stride=0)),
        ("padding must have", dt.ArgumentError, lambda: F.conv2d(x, w, padding=(1, 1, 1))),
        (
            "padding='same' needs stride=1",
            dt.ArgumentError,
            lambda: F.conv2d(x, w, None, 2, "same"),
        ),
        (
            "padding must be sizes, 'same' or 'valid'",
            dt.ArgumentError,
            lambda: F.conv2d(x, w, None, 1, "full"),
        ),
        ("bias must have shape", dt.ShapeError, lambda: F.conv2d(x, w, dt.ones(3))),
        ("float32 and float64", dt.DTypeError, lambda: F.conv2d(x, w.astype(dt.float64))),
        ("expected a tensor", dt.DTypeError, lambda: F.conv2d(x, 3)),
        ("weight must have shape", dt.ShapeError, lambda: F.conv1d(x[0], w)),
        ("a real dtype", dt.DTypeError, lambda: F.conv2d(x > 0, w > 0)),
        ("cpu and reference", dt.DeviceError, lambda: F.conv2d(x.to("cpu"), w.to("reference"))),
        ("takes 4", dt.ShapeError, lambda: F.conv_transpose2d(x, w)),
        (
            "must be less than the stride",
            dt.ArgumentError,
            lambda: F.conv_transpose2d(x, dt.ones((3, 2, 3, 3)), output_padding=1),
        ),
        (
            "would have sizes",
            dt.ShapeError,
            lambda: F.conv_transpose2d(x, dt.ones((3, 2, 1, 1)), padding=3),
        ),
    ):
        with pytest.raises(error, match=message):
            call()
