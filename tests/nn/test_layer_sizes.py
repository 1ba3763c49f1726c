"""Invalid sizes of layers raise errors that name the layer and the argument."""

from __future__ import annotations

import inspect
from typing import Any

import dovetail as dt
import pytest
from dovetail import nn

GIVEN: dict[str, Any] = {
    "in_features": 3, "out_features": 4, "in1_features": 3, "in2_features": 2, "in_channels": 4,
    "out_channels": 4, "kernel_size": 3, "num_embeddings": 5, "embedding_dim": 4,
    "num_features": 4, "num_channels": 4, "num_groups": 2, "normalized_shape": 4, "input_size": 3,
    "hidden_size": 4, "embed_dim": 4, "num_heads": 2, "d_model": 4, "nhead": 2, "norm_type": 2.0,
    "mode": "GRU", "bias": True, "num_chunks": 3, "output_size": 4, "upscale_factor": 2,
    "downscale_factor": 2, "padding": 1, "groups": 2,
}  # fmt: skip
# Arguments that determine the size of parameters; the layer knows them at construction.
SIZES = {
    *GIVEN, "groups", "num_layers", "proj_size", "kdim", "vdim", "dim_feedforward",
    "num_encoder_layers", "num_decoder_layers", "num_parameters", "padding_idx", "stride",
    "padding", "dilation", "output_size", "upscale_factor", "downscale_factor",
} - {"norm_type", "mode", "bias", "num_chunks"}  # fmt: skip
NEITHER = {"padding_idx"}  # -1 is the last row
POSITIVE = {
    "in1_features", "in_channels", "out_channels", "kernel_size", "groups", "num_groups",
    "input_size", "hidden_size", "num_layers", "embed_dim", "num_heads", "d_model", "nhead",
    "stride", "dilation", "upscale_factor", "downscale_factor",
}  # fmt: skip
TEXTS = {(f"Conv{n}d", "padding") for n in (1, 2, 3)}
LAYERS = {
    name: found
    for name in sorted(nn.__all__)
    if isinstance(found := getattr(nn, name), type) and issubclass(found, nn.Module)
}
TAKEN = {
    name: [p for p in inspect.signature(layer.__init__).parameters if p in SIZES]
    for name, layer in LAYERS.items()
    # Encoders are parts of other layers; pads may be negative; the others have no parameters, and
    # their functions report errors.
    if name not in ("TransformerEncoder", "TransformerDecoder")
    and not name.startswith(("Adaptive", "FractionalMax"))
    and "Pad" not in name
}
CASES = [(name, size) for name, sizes in TAKEN.items() for size in sizes]


def made(name: str, **given: Any) -> Any:
    parameters = inspect.signature(LAYERS[name].__init__).parameters
    needed = {k: GIVEN[k] for k, p in parameters.items() if k in GIVEN and p.default is p.empty} | (
        {"d_model": 4, "nhead": 2, "dim_feedforward": 4} if name == "Transformer" else {}
    )
    return LAYERS[name](**{**needed, **given})


def test_table_covers_all_layers_with_weights() -> None:
    """Otherwise a new layer would not be tested."""
    found = {name for name, sizes in TAKEN.items() if sizes}
    for name in ("Linear", "Conv3d", "LSTM", "GRUCell", "EmbeddingBag", "RMSNorm", "Transformer"):
        assert name in found
    for name in sorted(found):
        assert isinstance(made(name), nn.Module)


@pytest.mark.parametrize(("name", "size"), CASES)
def test_invalid_size_raises(name: str, size: str) -> None:
    wrong: list[Any] = [2.5, "3"] if (name, size) not in TEXTS else [2.5]
    wrong += [-3] if size not in NEITHER else [-100, 100]
    stacked = ("num_layers", "num_encoder_layers", "num_decoder_layers")
    wrong += [0] if size in POSITIVE and not (name == "Transformer" and size in stacked) else []
    for value in wrong:
        with pytest.raises(dt.ArgumentError) as caught:
            made(name, **{size: value}, **({"device": "reference"} if _has_device(name) else {}))
        said = str(caught.value)
        assert said.startswith(f"{name}: ") and size in said, (value, said)


def _has_device(name: str) -> bool:
    return "device" in inspect.signature(LAYERS[name].__init__).parameters


@pytest.mark.parametrize("name", ["Dropout", "Dropout2d", "AlphaDropout"])
def test_invalid_probability_raises(name: str) -> None:
    for value in (-0.5, 1.5, "half", None):
        with pytest.raises(dt.ArgumentError, match=rf"^{name}: p must be a"):
            LAYERS[name](value)


@pytest.mark.parametrize("name", ["MultiheadAttention", "LSTM", "TransformerEncoderLayer"])
def test_invalid_dropout_argument_raises(name: str) -> None:
    for value in (-0.5, 1.5, "half", None):
        with pytest.raises(dt.ArgumentError, match=rf"^{name}: dropout must be a"):
            made(name, dropout=value)


def test_layers_without_features_are_allowed() -> None:
    """As in PyTorch."""
    assert nn.Linear(0, 4, device="reference").weight.shape == (4, 0)
    assert nn.BatchNorm1d(0, device="reference").running_mean.shape == (0,)
