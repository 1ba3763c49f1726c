"""Interpolation, padding, patches and grid sampling against PyTorch."""

from __future__ import annotations

import itertools
from typing import Any

import dovetail as dt
import dovetail.nn.functional as F
import numpy as np
import pytest

SIZES = {1: (7,), 2: (5, 8), 3: (3, 4, 5)}


def numbers(shape: tuple[int, ...], seed: int = 1) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape)


def compared(
    op: str, arrays: Any, *args: Any, device: str = "reference", atol: float = 1e-6, **options: Any
) -> None:
    """Compare the result and the gradients with PyTorch's."""
    torch = pytest.importorskip("torch")
    arrays = arrays if isinstance(arrays, list) else [arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    ours = [dt.asarray(a, device=device).requires_grad_() for a in arrays]
    expected = getattr(torch.nn.functional, op)(*theirs, *args, **options)
    found = getattr(F, op)(*ours, *args, **options)
    assert found.shape == tuple(expected.shape)
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), atol=atol)
    g = numbers(tuple(expected.shape), 9).astype(arrays[0].dtype)
    expected.backward(torch.tensor(g))
    found.backward(dt.asarray(g, device=device))
    for a, b in zip(ours, theirs, strict=True):
        grad = np.zeros(a.shape) if a.grad is None else a.grad.numpy()
        np.testing.assert_allclose(grad, b.grad.numpy(), atol=atol)


FACTORS = (
    {"size": 9},
    {"size": 3},
    {"scale_factor": 2.0},
    {"scale_factor": 1.7},
    {"scale_factor": 0.6},
)


@pytest.mark.parametrize("axes", (1, 2, 3))
@pytest.mark.filterwarnings("ignore")  # PyTorch's warning about its own defaults
def test_interpolation_equals_pytorch(axes: int) -> None:
    linear = {1: "linear", 2: "bilinear", 3: "trilinear"}[axes]
    x = numbers((2, 3, *SIZES[axes]))
    for options in FACTORS:
        for mode in ("nearest", "nearest-exact", "area"):
            compared("interpolate", x, mode=mode, **options)
        for mode, corners in itertools.product(
            (linear, *(["bicubic"] if axes == 2 else [])), (False, True)
        ):
            compared("interpolate", x, mode=mode, align_corners=corners, **options)
    compared("interpolate", x, scale_factor=1.7, mode=linear, recompute_scale_factor=True)


@pytest.mark.parametrize("mode", ("bilinear", "bicubic", "lanczos"))
@pytest.mark.parametrize("shape", ((2, 3, 5, 8), (1, 2, 12, 31), (1, 1, 1, 1)))
def test_antialiased_interpolation_equals_pytorch(mode: str, shape: tuple[int, ...]) -> None:
    x = numbers(shape)
    sizes = ({"size": (1, 1)}, {"size": (3, 17)}, {"scale_factor": (1.3, 1.7)}, {"size": shape[2:]})
    for options in (*FACTORS[:4], *sizes, *([FACTORS[4]] if min(shape[2:]) > 1 else [])):
        for corners, recomputed in itertools.product((None, False, True), (None, True)):
            if (mode == "lanczos" and corners) or (recomputed and "size" in options):
                continue
            compared(
                "interpolate", x, mode=mode, align_corners=corners, antialias=True,
                recompute_scale_factor=recomputed, **options,
            )  # fmt: skip


def test_antialiasing_of_float32_and_halves() -> None:
    for mode in ("bilinear", "bicubic"):
        x = numbers((1, 2, 64, 48)).astype("f")
        compared("interpolate", x, (20, 9), mode=mode, antialias=True, atol=2e-6)
        half = dt.asarray(x, dtype=dt.float16, device="reference")
        found = F.interpolate(half, (20, 9), mode=mode, antialias=True)
        want = F.interpolate(half.astype(dt.float32), (20, 9), mode=mode, antialias=True)
        assert found.dtype is dt.float16
        assert found.tolist() == want.astype(dt.float16).tolist()


def test_infinity_affects_only_its_antialiasing_window(device: dt.Device) -> None:
    """Also if other windows are wider."""
    x = dt.ones((1, 1, 12, 5), device=device)
    x[..., 6, :] = float("inf")
    found = F.interpolate(x, (4, 5), mode="bilinear", antialias=True)[0, 0, :, 0]
    assert dt.isfinite(found).tolist() == [True, False, False, True]
    lines = dt.zeros((1, 1, 1, 64), device=device)
    lines[..., ::2] = 1.0  # which an eighth of all elements would round up or down
    smaller = F.interpolate(lines, (1, 8), mode="bilinear", antialias=True)
    assert dt.max(dt.abs(smaller - 0.5)).item() < 0.05


@pytest.mark.parametrize("mode", ("constant", "reflect", "replicate", "circular"))
def test_padding_equals_pytorch(mode: str) -> None:
    cases = [
        ((2, 3, 7), (2, 3)),
        ((2, 3, 5, 6), (1, 2, 3, 4)),
        ((2, 3, 5, 6), (0, 0, 1, 0)),
        ((2, 3, 4, 5, 6), (1, 2, 0, 1, 2, 3)),
    ]
    for shape, widths in cases:
        compared("pad", numbers(shape), widths, mode)
    if mode != "circular":
        compared("pad", numbers((2, 3, 5, 6)), (-1, 2, 1, -2), mode)
    if mode == "constant":
        compared("pad", numbers((5, 6)), (1, 2, 3, 4), mode, 2.5)


def test_unfold_and_fold_equal_pytorch() -> None:
    for kernel, dilation, padding, stride in itertools.product(((2, 3), 2), (1, 2), (0, 1), (1, 2)):
        compared("unfold", numbers((2, 3, 6, 7)), kernel, dilation, padding, stride)
        columns = dt.nn.functional.unfold(dt.ones((2, 3, 6, 7)), kernel, dilation, padding, stride)
        compared("fold", numbers(columns.shape), (6, 7), kernel, dilation, padding, stride)


def test_pixel_and_channel_shuffles_equal_pytorch() -> None:
    compared("pixel_shuffle", numbers((2, 18, 3, 4)), 3)
    compared("pixel_unshuffle", numbers((2, 2, 6, 9)), 3)
    compared("channel_shuffle", numbers((2, 6, 3, 4)), 3)


@pytest.mark.parametrize("axes", (2, 3))
def test_grid_sampling_equals_pytorch(axes: int) -> None:
    x, at = numbers((2, 3, *SIZES[axes])), numbers((2, *(4,) * axes, axes), 2) * 1.2
    for mode, around, corners in itertools.product(
        ("bilinear", "nearest"), ("zeros", "border", "reflection"), (False, True)
    ):
        compared("grid_sample", [x, at], mode, around, corners)
    if axes == 2:
        for around, corners, shape in itertools.product(
            ("zeros", "border", "reflection"), (False, True), ((5, 8), (1, 1), (1, 4))
        ):
            compared("grid_sample", [numbers((2, 3, *shape)), at], "bicubic", around, corners)
    theta = numbers((2, axes, axes + 1), 3)
    for corners in (False, True):
        compared("affine_grid", theta, (2, 3, *SIZES[axes]), corners)


def test_bits_are_the_same_everywhere_and_when_captured() -> None:
    x = numbers((2, 3, 5, 7)).astype("f")
    for mode in ("nearest", "bilinear", "bicubic", "area"):

        def f(v: dt.Tensor, mode: str = mode) -> dt.Tensor:
            return F.interpolate(v, (8, 6), mode=mode)

        assert_same_bits(f, x)


def assert_same_bits(f: Any, x: np.ndarray[Any, Any]) -> None:
    """Compare all devices, captured or not, with the gradient of the sum of squares."""

    def both(v: dt.Tensor) -> tuple[dt.Tensor, dt.Tensor]:
        v = v.detach().requires_grad_()
        y = f(v)
        return y.detach(), dt.grad((y * y).sum(), v)

    expected = [y.numpy().tobytes() for y in both(dt.asarray(x, device="reference"))]
    captured = dt.jit(both)
    for d in {d.type for d in dt.devices()} - {"reference"}:
        for g in (both, captured, captured):
            found = [y.numpy().tobytes() for y in g(dt.asarray(x, device=d))]
            assert found == expected, d


@pytest.mark.parametrize("mode", ("bilinear", "bicubic", "lanczos"))
@pytest.mark.parametrize("size", ((8, 3), (2, 2)))
def test_antialiasing_has_the_same_bits_everywhere(mode: str, size: tuple[int, int]) -> None:
    x = numbers((2, 3, 5, 9)).astype("f")
    assert_same_bits(lambda v: F.interpolate(v, size, mode=mode, antialias=True), x)


@pytest.mark.parametrize("around", ("zeros", "border", "reflection"))
def test_cubic_sampling_has_the_same_bits_everywhere(around: str) -> None:
    x, at = numbers((2, 3, 5, 9)).astype("f"), numbers((2, 4, 3, 2), 2).astype("f")
    assert_same_bits(
        lambda v: F.grid_sample(v, dt.asarray(at, device=v.device), "bicubic", around, False), x
    )


def test_resampling_of_other_dtypes() -> None:
    x = dt.arange(4, device="cpu").reshape((1, 1, 4))
    assert F.interpolate(x, scale_factor=2).tolist() == [[[0, 0, 1, 1, 2, 2, 3, 3]]]
    assert F.pad(x > 1, (1, 0)).tolist() == [[[False, False, False, True, True]]]
    half = x.astype(dt.float16)
    assert F.interpolate(half, 3, mode="linear").dtype is dt.float16


def test_wrong_arguments_are_named() -> None:
    x = dt.ones((1, 2, 4, 4))
    for message, error, call in (
        (
            "interpolate: antialias=True is only allowed with mode 'bilinear' or 'bicubic'",
            dt.ArgumentError,
            lambda: F.interpolate(x, 2, antialias=True),
        ),
        (
            "needs an input with 2 axes",
            dt.ShapeError,
            lambda: F.interpolate(x[0], 2, mode="bicubic", antialias=True),
        ),
        (
            "align_corners=False",
            dt.ArgumentError,
            lambda: F.interpolate(x, 2, mode="lanczos", antialias=True, align_corners=True),
        ),
        ("exactly one of size and scale_factor", dt.ArgumentError, lambda: F.interpolate(x)),
        ("needs an input with 1 axes", dt.ShapeError, lambda: F.interpolate(x, 2, mode="linear")),
        ("interpolate: mode", dt.ArgumentError, lambda: F.interpolate(x, 2, mode="lanczos")),
        ("interpolate: mode", dt.ArgumentError, lambda: F.interpolate(x, 2, mode="cubic")),
        (
            "align_corners is only allowed with",
            dt.ArgumentError,
            lambda: F.interpolate(x, 2, align_corners=True),
        ),
        ("positive numbers, got -1", dt.ArgumentError, lambda: F.interpolate(x, scale_factor=-1.0)),
        ("a float dtype", dt.DTypeError, lambda: F.interpolate(x > 0, 2, mode="bilinear")),
        ("at most 3 elements", dt.ShapeError, lambda: F.pad(x, (4, 0), "reflect")),
        ("must leave at least 0", dt.ShapeError, lambda: F.pad(x, (-3, -3))),
        ("two numbers for each padded axis", dt.ArgumentError, lambda: F.pad(x, (1, 2, 3))),
        ("pad: mode", dt.ArgumentError, lambda: F.pad(x, (1, 1), "mirror")),
        ("pixel_shuffle: the input", dt.ShapeError, lambda: F.pixel_shuffle(x, 3)),
        ("pixel_unshuffle: the input", dt.ShapeError, lambda: F.pixel_unshuffle(x, 3)),
        (
            "grid_sample: expected an input",
            dt.ShapeError,
            lambda: F.grid_sample(x, dt.ones((1, 2, 2, 3))),
        ),
        (
            "grid_sample: mode='bicubic' needs an input",
            dt.ShapeError,
            lambda: F.grid_sample(x[:, None], dt.ones((1, 2, 2, 2, 3)), "bicubic"),
        ),
        (
            "affine_grid: theta",
            dt.ShapeError,
            lambda: F.affine_grid(dt.ones((2, 2, 3)), (1, 1, 2, 2)),
        ),
        ("unfold: the input", dt.ShapeError, lambda: F.unfold(x[0, 0], 2)),
        ("fold: the input", dt.ShapeError, lambda: F.fold(x, 2, 2)),
    ):
        with pytest.raises(error, match=message):
            call()
