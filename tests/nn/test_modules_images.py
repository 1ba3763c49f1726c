"""Layers of convolution, pooling and resampling against PyTorch: names, states, reprs and
results.
"""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import nn

IMAGES, SIGNALS, VOLUMES = (2, 4, 9, 10), (2, 4, 9), (2, 4, 5, 6, 5)
LAYERS = (
    ("Conv1d(4, 6, 3, padding=1)", SIGNALS), ("Conv2d(4, 6, (3, 2), 2, 1, groups=2)", IMAGES),
    ("Conv2d(4, 6, 3, padding='same', bias=False)", IMAGES), ("Conv3d(4, 2, 2)", VOLUMES),
    ("Conv2d(4, 6, 3, padding=2, padding_mode='circular')", IMAGES),
    ("Conv2d(4, 6, 3, padding='same', dilation=2, padding_mode='reflect')", IMAGES),
    ("Conv1d(4, 6, 3, padding=(2,), padding_mode='replicate')", SIGNALS),
    ("ConvTranspose1d(4, 6, 3, 2)", SIGNALS), ("ConvTranspose3d(4, 2, 2, 2)", VOLUMES),
    ("ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2, dilation=2)", IMAGES),
    ("MaxPool1d(2)", SIGNALS), ("MaxPool2d(3, 2, 1, ceil_mode=True)", IMAGES),
    ("MaxPool3d((2, 1, 2))", VOLUMES), ("AvgPool1d(2)", SIGNALS),
    ("AvgPool2d(3, 2, 1, count_include_pad=False)", IMAGES),
    ("AvgPool2d(3, divisor_override=4)", IMAGES), ("AvgPool3d(2)", VOLUMES),
    ("AdaptiveAvgPool1d(4)", SIGNALS), ("AdaptiveAvgPool2d((None, 3))", IMAGES),
    ("AdaptiveAvgPool3d(2)", VOLUMES), ("AdaptiveMaxPool1d(4)", SIGNALS),
    ("AdaptiveMaxPool2d(3)", IMAGES), ("AdaptiveMaxPool3d(2)", VOLUMES),
    ("LPPool1d(1, 2)", SIGNALS), ("LPPool2d(2, 3, 2)", IMAGES), ("LPPool3d(2, 2)", VOLUMES),
    ("Upsample(scale_factor=2)", IMAGES), ("Upsample((7, 12), mode='bilinear')", IMAGES),
    ("UpsamplingNearest2d(scale_factor=3)", IMAGES), ("UpsamplingBilinear2d((5, 4))", IMAGES),
    *((f"{kind}Pad{n}d({more})", shape) for kind, more in (
        ("Zero", "1"), ("Constant", "2, 0.5"), ("Reflection", "2"), ("Replication", "1"),
        ("Circular", "2")) for n, shape in ((1, SIGNALS), (2, IMAGES), (3, VOLUMES))),
    ("ReflectionPad2d((1, 2, 3, 0))", IMAGES), ("Unfold((2, 3), padding=1)", IMAGES),
    ("Fold((4, 5), 2)", (2, 12, 12)), ("PixelShuffle(2)", IMAGES), ("ChannelShuffle(2)", IMAGES),
    ("PixelUnshuffle(2)", (2, 3, 4, 6)),
)  # fmt: skip


@pytest.mark.parametrize(("made", "shape"), LAYERS, ids=[made for made, _ in LAYERS])
def test_image_layers_equal_pytorch(made: str, shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    here = made[:-1] + ", device='reference')" if made.startswith("Conv") else made
    ours = eval(f"nn.{here}", {"nn": nn})
    theirs = eval(f"nn.{made}", {"nn": torch.nn})
    assert repr(ours) == repr(theirs)
    state = theirs.state_dict()
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict({k: dt.asarray(v.numpy(), device="reference") for k, v in state.items()})
    x = np.abs(np.random.default_rng(1).normal(size=shape).astype("f")) + 0.1
    expected = theirs(torch.tensor(x)).detach().numpy()
    found = ours(dt.asarray(x, device="reference"))
    np.testing.assert_allclose(found.detach().numpy(), expected, atol=2e-5)


def test_max_unpool_layer_restores_maxima() -> None:
    x = dt.asarray(np.random.default_rng(1).normal(size=(1, 2, 6, 6)), device="reference")
    best, at = nn.MaxPool2d(2, return_indices=True)(x)
    back = nn.MaxUnpool2d(2)(best, at)
    assert back.shape == x.shape
    assert dt.all((back == x) | (back == 0)).item()
    assert dt.sum(back).item() == pytest.approx(dt.sum(best).item())
    assert nn.AdaptiveMaxPool2d(1, return_indices=True)(x)[1].shape == (1, 2, 1, 1)


def test_output_size_of_transposed_convolutions() -> None:
    layer = nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, device="reference")
    x = dt.ones((1, 3, 5, 5), device="reference")
    assert layer(x).shape == (1, 4, 9, 9)
    assert layer(x, output_size=(10, 9)).shape == (1, 4, 10, 9)
    with pytest.raises(
        dt.ShapeError, match=r"ConvTranspose2d: output_size must be between 9 and 10"
    ):
        layer(x, output_size=(11, 9))


def test_parameters_are_uniform_from_dovetail_generator() -> None:
    dt.random.manual_seed(3)
    layer = nn.Conv2d(16, 32, 3, device="reference")
    dt.random.manual_seed(3)
    again = nn.Conv2d(16, 32, 3, device="cpu")
    bound = 1 / math.sqrt(16 * 9)
    for name in ("weight", "bias"):
        x = getattr(layer, name).detach().numpy()
        assert (x == getattr(again, name).detach().numpy()).all()
        assert np.abs(x).max() <= bound
        assert np.abs(x).max() > 0.8 * bound
    assert layer.weight.requires_grad
    assert layer.bias.requires_grad
    half = nn.Conv2d(2, 2, 1, dtype=dt.float16, device="reference")
    assert half.weight.dtype is half.bias.dtype is dt.float16


def test_small_convolutional_network_learns() -> None:
    """Convolution, pooling and their gradients, captured."""
    dt.random.manual_seed(1)
    first, second = nn.Conv2d(1, 4, 3, padding=1, device="cpu"), nn.Conv2d(4, 2, 4, device="cpu")
    pool = nn.MaxPool2d(2)
    x = dt.random.normal((8, 1, 8, 8), device="cpu")
    wanted = dt.stack([x[:, 0, 0, 0], x[:, 0, 4, 4]], axis=1)
    parameters = [*first.parameters(), *second.parameters()]

    @dt.jit
    def step() -> Any:
        y = second(pool(dt.relu(first(x))))[:, :, 0, 0]
        loss = dt.mean((y - wanted) ** 2)
        gradients = dt.grad(loss, parameters)
        with dt.no_grad():
            for p, g in zip(parameters, gradients, strict=True):
                p -= 0.1 * g
        return loss

    losses = [step().item() for _ in range(60)]
    assert losses[-1] < 0.3 * losses[0]


BAD = (
    ("Conv2d: kernel_size must be at least 1, got 0", "Conv2d(1, 1, 0)"),
    ("Conv2d: in_channels must be divisible by groups, got 3", "Conv2d(3, 4, 1, groups=2)"),
    ("Conv2d: padding", "Conv2d(1, 1, 1, padding='all')"),
    ("needs stride=1", "Conv2d(1, 1, 1, 2, padding='same')"),
    ("Conv2d: padding_mode", "Conv2d(1, 1, 1, padding_mode='mirror')"),
    ("ConvTranspose2d: padding_mode", "ConvTranspose2d(1, 1, 1, padding_mode='reflect')"),
    ("MaxPool2d: kernel_size", "MaxPool2d(0)"),
    ("MaxPool2d: kernel_size", "MaxPool2d((1, 2, 3))"),
    ("MaxPool1d: ceil_mode", "MaxPool1d(2, ceil_mode='yes')"),
    ("ZeroPad2d: padding", "ZeroPad2d((1, 2, 3))"),
)


@pytest.mark.parametrize(("message", "made"), BAD)
def test_invalid_layers_raise(message: str, made: str) -> None:
    with pytest.raises(dt.ArgumentError, match=message):
        eval(f"nn.{made}", {"nn": nn})


def test_mismatched_inputs_raise() -> None:
    with pytest.raises(dt.ShapeError, match=r"conv2d: .* has 2 channels, .* takes 3"):
        nn.Conv2d(3, 4, 3, device="reference")(dt.ones((1, 2, 8, 8), device="reference"))
    with pytest.raises(dt.ShapeError, match="ZeroPad2d: the input must have"):
        nn.ZeroPad2d(1)(dt.ones((8, 8), device="reference"))
