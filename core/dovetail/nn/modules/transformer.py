"""Transformers: encoder and decoder layers of attention and a feed-forward network."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import dovetail as dt
from dovetail.extend import arguments

from .. import init
from ..functional.activations import gelu, relu
from ..functional.sizes import LAYERS_MAX, check_counts, check_probability
from .attention import MultiheadAttention
from .containers import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

if TYPE_CHECKING:
    from dovetail.extend import DeviceLike, DTypeLike

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Tensor: TypeAlias = dt.Tensor
Activation: TypeAlias = Callable[[Tensor], Tensor]
ACTIVATIONS: dict[str, Activation] = {"relu": relu, "gelu": gelu}


def _resolve_activation(name: str, activation: str | Activation) -> Activation:
    """Return an activation by name, or a function unchanged. Raises: ArgumentError for others."""
    function = ACTIVATIONS.get(activation) if isinstance(activation, str) else activation
    if not callable(function):
        raise dt.ArgumentError(
            f"{name}: activation must be 'relu', 'gelu' or a function of a tensor, got "
            f"{activation!r}"
        )
    return function


def _check_options(
    layer: Module, d_model: int, nhead: int, dim_feedforward: int, dropout: float
) -> None:
    """Raise ArgumentError, in the name of the layer, for options that do not fit."""
    name = type(layer).__name__
    check_counts(name, 1, d_model=d_model, nhead=nhead)
    if d_model % nhead:
        raise dt.ArgumentError(
            f"{name}: d_model must be divisible by nhead, got {d_model} and {nhead}"
        )
    check_counts(name, dim_feedforward=dim_feedforward)
    check_probability(name, dropout, "dropout")


class _Layer(Module):
    """The base of encoder and decoder layers: the feed-forward network, norms and dropouts."""

    def _make_products(
        self, d_model: int, dim_feedforward: int, dropout: float, bias: bool, options: Any
    ) -> None:
        """Set `linear1`, `dropout` and `linear2`, the layers of the feed-forward network."""
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **options)

    def _make_norms(self, n: int, size: int, eps: float, bias: bool, options: Any) -> None:
        """Create `norm1` to `norm<n>`."""
        for k in range(1, n + 1):
            setattr(self, f"norm{k}", LayerNorm(size, eps=eps, bias=bias, **options))

    def _make_dropouts(self, n: int, dropout: float) -> None:
        """Create `dropout1` to `dropout<n>`."""
        for k in range(1, n + 1):
            setattr(self, f"dropout{k}", Dropout(dropout))

    def _attend(
        self,
        attention: MultiheadAttention,
        k: int,
        x: Tensor,
        keys: Tensor,
        mask: Tensor | None,
        padding: Tensor | None,
        causal: bool,
    ) -> Tensor:
        """Return attention of `x` to `keys`, after dropout k."""
        out, _ = attention(
            x,
            keys,
            keys,
            attn_mask=mask,
            key_padding_mask=padding,
            is_causal=causal,
            need_weights=False,
        )
        result: Tensor = getattr(self, f"dropout{k}")(out)
        return result

    def _feed_forward(self, k: int, x: Tensor) -> Tensor:
        """Return the output of the feed-forward network, after dropout k."""
        out = self.linear2(self.dropout(self.activation(self.linear1(x))))
        result: Tensor = getattr(self, f"dropout{k}")(out)
        return result

    def _add_residual(self, k: int, x: Tensor, block: Callable[[Tensor], Tensor]) -> Tensor:
        """Return `x` plus a block of it, with norm k before the block or after the sum."""
        norm = getattr(self, f"norm{k}")
        result: Tensor = x + block(norm(x)) if self.norm_first else norm(x + block(x))
        return result


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward block, each with a residual connection.

    - `d_model`: the size of the features of a position.
    - `nhead`: the number of heads; it divides `d_model`.
    - `dim_feedforward`: the size between the two linear layers of the feed-forward block.
    - `dropout`: the dropout probability of attention weights, of the hidden values of the
      feed-forward block and of the output of each block.
    - `activation`: "relu", "gelu" or a function of a tensor, between the two linear layers.
    - `layer_norm_eps`: the `eps` of each `LayerNorm`.
    - `batch_first`: True if inputs and the result are (batch, positions, features), else
      (positions, batch, features).
    - `norm_first`: normalise before each block, not after it.
    - `bias`: False: linear and norm layers have no bias.

    A call `layer(src)` accepts `src_mask`, `src_key_padding_mask` and `is_causal`. Masks are bool,
    True where a key is *not* seen, or floats that are added to scores.
    Shapes: as of `MultiheadAttention`, d_model being embed_dim.
    Raises: ShapeError, DTypeError, ArgumentError.
    See also: `TransformerEncoder`, `TransformerDecoderLayer`, `MultiheadAttention`.
    Source: Vaswani et al., "Attention is all you need", 2017.

    >>> import dovetail as dt
    >>> layer = dt.nn.TransformerEncoderLayer(4, 2, 8).eval()
    >>> layer(dt.ones((3, 1, 4))).shape
    (3, 1, 4)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Activation = relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        _check_options(self, d_model, nhead, dim_feedforward, dropout)
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **options
        )
        self._make_products(d_model, dim_feedforward, dropout, bias, options)
        self.norm_first = norm_first
        self._make_norms(2, d_model, layer_norm_eps, bias, options)
        self._make_dropouts(2, dropout)
        self.activation = _resolve_activation(type(self).__name__, activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Return the layer's output for a sequence.

        - `src`: the sequences.
        - `src_mask`: for each position, of shape (positions, positions).
        - `src_key_padding_mask`: for all positions, of shape (batch, positions).
        - `is_causal`: position i sees positions up to i; `src_mask` may be left out then.

        Masks are bool, True where a key is *not* seen, or floats that are added to scores.
        """

        def attend_to_itself(x: Tensor) -> Tensor:
            """Return the self-attention of `x` under the source masks."""
            masks = src_mask, src_key_padding_mask
            return self._attend(self.self_attn, 1, x, x, *masks, is_causal)

        x = self._add_residual(1, src, attend_to_itself)
        return self._add_residual(2, x, lambda x: self._feed_forward(2, x))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to a memory, and a feed-forward block, each with a residual.

    - `d_model`: the size of the features of a position.
    - `nhead`: the number of heads; it divides `d_model`.
    - `dim_feedforward`: the size between the two linear layers of the feed-forward block.
    - `dropout`: the dropout probability of attention weights, of the hidden values of the
      feed-forward block and of the output of each block.
    - `activation`: "relu", "gelu" or a function of a tensor, between the two linear layers.
    - `layer_norm_eps`: the `eps` of each `LayerNorm`.
    - `batch_first`: True if inputs and the result are (batch, positions, features), else
      (positions, batch, features).
    - `norm_first`: normalise before each block, not after it.
    - `bias`: False: linear and norm layers have no bias.

    A call `layer(tgt, memory)` accepts `tgt_mask`, `memory_mask`, `tgt_key_padding_mask`,
    `memory_key_padding_mask`, `tgt_is_causal` and `memory_is_causal`. Masks are as in the encoder.
    Shapes: as of `MultiheadAttention`, d_model being embed_dim.
    Raises: ShapeError, DTypeError, ArgumentError.
    See also: `TransformerDecoder`, `TransformerEncoderLayer`, `MultiheadAttention`.

    >>> import dovetail as dt
    >>> layer = dt.nn.TransformerDecoderLayer(4, 2, 8).eval()
    >>> x, memory = (dt.ones((n, 1, 4)) for n in (3, 5))
    >>> layer(x, memory).shape
    (3, 1, 4)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Activation = relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        _check_options(self, d_model, nhead, dim_feedforward, dropout)
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        self.self_attn, self.multihead_attn = (
            MultiheadAttention(
                d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **options
            )
            for _ in range(2)
        )
        self._make_products(d_model, dim_feedforward, dropout, bias, options)
        self.norm_first = norm_first
        self._make_norms(3, d_model, layer_norm_eps, bias, options)
        self._make_dropouts(3, dropout)
        self.activation = _resolve_activation(type(self).__name__, activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the layer's output for a sequence and `memory`.

        - `tgt`, `memory`: the sequences, and the encoder's output to which they attend.
        - `tgt_mask`, `memory_mask`: for each position of `tgt`, masks of `tgt` and of `memory`.
        - `tgt_key_padding_mask`, `memory_key_padding_mask`: for all positions of `tgt`.
        - `tgt_is_causal`, `memory_is_causal`: position i sees positions up to i.

        Masks are bool, True where a key is *not* seen, or floats that are added to scores.
        """

        def attend_to_itself(x: Tensor) -> Tensor:
            """Return the self-attention of `x` under the target masks."""
            masks = tgt_mask, tgt_key_padding_mask
            return self._attend(self.self_attn, 1, x, x, *masks, tgt_is_causal)

        def attend_to_memory(x: Tensor) -> Tensor:
            """Return attention of `x` to the memory."""
            masks = memory_mask, memory_key_padding_mask
            return self._attend(self.multihead_attn, 2, x, memory, *masks, memory_is_causal)

        x = self._add_residual(1, tgt, attend_to_itself)
        x = self._add_residual(2, x, attend_to_memory)
        return self._add_residual(3, x, lambda x: self._feed_forward(3, x))


def _copy_layer(name: str, layer: Module, n: int, norm: Module | None) -> ModuleList:
    """Return `n` (0 or more) deep copies of a layer; also check `norm`.

    Raises: ArgumentTypeError for arguments of other types, ArgumentError for n outside of
    0..LAYERS_MAX.
    """
    arguments.instance(name, layer, "the layer", Module)
    if norm is not None:
        arguments.instance(name, norm, "norm", Module)
    n = arguments.integer(name, n, "num_layers", 0, LAYERS_MAX)
    return ModuleList([copy.deepcopy(layer) for _ in range(n)])


class TransformerEncoder(Module):
    """A stack of copies of `encoder_layer`, with an optional norm at the end.

    - `encoder_layer`: the layer to copy; copies begin with the same parameters.
    - `num_layers`: the number of copies.
    - `norm`: a module that is applied to the result, or None.
    - `enable_nested_tensor`, `mask_check`: PyTorch's arguments; they have no effect.

    A call `encoder(src)` accepts `mask`, `src_key_padding_mask` and `is_causal`, for each layer.

    >>> import dovetail as dt
    >>> layer = dt.nn.TransformerEncoderLayer(4, 2, 8)
    >>> encoder = dt.nn.TransformerEncoder(layer, 2).eval()
    >>> encoder(dt.ones((3, 1, 4))).shape
    (3, 1, 4)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copy_layer(type(self).__name__, encoder_layer, num_layers, norm)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Return the stack's output; None for `is_causal` uses `mask` as it is."""
        x = src
        for layer in self.layers:
            x = layer(x, mask, src_key_padding_mask, bool(is_causal))
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """A stack of copies of `decoder_layer`, with an optional norm at the end.

    - `decoder_layer`: the layer to copy; copies begin with the same parameters.
    - `num_layers`: the number of copies.
    - `norm`: a module that is applied to the result, or None.

    A call `decoder(tgt, memory)` accepts the masks of `TransformerDecoderLayer`, for each layer.

    >>> import dovetail as dt
    >>> layer = dt.nn.TransformerDecoderLayer(4, 2, 8)
    >>> x, memory = (dt.ones((n, 1, 4)) for n in (3, 5))
    >>> dt.nn.TransformerDecoder(layer, 2).eval()(x, memory).shape
    (3, 1, 4)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copy_layer(type(self).__name__, decoder_layer, num_layers, norm)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the stack's output for a sequence and `memory`."""
        x = tgt
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask,
                memory_mask,
                tgt_key_padding_mask,
                memory_key_padding_mask,
                bool(tgt_is_causal),
                memory_is_causal,
            )
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder, and a decoder that attends to the encoder's output.

    - `d_model`: the size of the features of a position.
    - `nhead`: the number of heads; it divides `d_model`.
    - `num_encoder_layers`, `num_decoder_layers`: the numbers of layers.
    - `dim_feedforward`: the size between the two linear layers of a feed-forward block.
    - `dropout`: the dropout probability of attention weights, of the hidden values of the
      feed-forward block and of the output of each block.
    - `activation`: "relu", "gelu" or a function of a tensor.
    - `custom_encoder`, `custom_decoder`: modules to use instead of an encoder and a decoder.
    - `layer_norm_eps`: the `eps` of each `LayerNorm`.
    - `batch_first`: True if inputs and the result are (batch, positions, features), else
      (positions, batch, features).
    - `norm_first`: normalise before each block, not after it.
    - `bias`: False: linear and norm layers have no bias.

    A call `transformer(src, tgt)` accepts `src_mask`, `tgt_mask`, `memory_mask`, a key padding mask
    for each of the three, and `src_is_causal`, `tgt_is_causal` and `memory_is_causal`. The method
    `generate_square_subsequent_mask` returns a causal mask.
    Shapes: src (s, n, d_model), tgt (t, n, d_model), the result (t, n, d_model); without n, or with
    `batch_first` n in front.
    Raises: ShapeError, DTypeError, ArgumentError.
    See also: `TransformerEncoder`, `TransformerDecoder`, `MultiheadAttention`.

    >>> import dovetail as dt
    >>> model = dt.nn.Transformer(4, 2, 1, 1, 8).eval()
    >>> src, tgt = (dt.ones((n, 1, 4)) for n in (5, 3))
    >>> model(src, tgt).shape
    (3, 1, 4)
    """

    encoder: Module
    decoder: Module

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Activation = relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        _check_options(self, d_model, nhead, dim_feedforward, dropout)
        check_counts(
            type(self).__name__,
            num_encoder_layers=num_encoder_layers,
            num_decoder_layers=num_decoder_layers,
        )
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        layer_args = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
        )

        def norm() -> LayerNorm:
            """Return a new layer norm of the model's size."""
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)

        for option, module in (
            ("custom_encoder", custom_encoder),
            ("custom_decoder", custom_decoder),
        ):
            if module is not None:
                arguments.instance(type(self).__name__, module, option, Module)
        if custom_encoder is None:
            layer: Module = TransformerEncoderLayer(*layer_args, **options)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm())
        else:
            self.encoder = custom_encoder
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*layer_args, **options)
            self.decoder = TransformerDecoder(layer, num_decoder_layers, norm())
        else:
            self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self) -> None:
        """Draw new weights for parameters of two or more axes; keep the others."""
        for x in self.parameters():
            if x.ndim > 1:
                init.xavier_uniform_(x)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoder's output for `tgt` and the encoder's output for `src`."""
        if src.ndim != tgt.ndim or src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise dt.ShapeError(
                f"Transformer: src and tgt must have shape (length, batch, {self.d_model}) or "
                f"(length, {self.d_model}), got {src.shape} and {tgt.shape}"
            )
        axis = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[axis] != tgt.shape[axis]:
            raise dt.ShapeError(
                f"Transformer: src and tgt must have the same batch size in axis {axis}, got "
                f"shapes {src.shape} and {tgt.shape}"
            )
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        out: Tensor = self.decoder(
            tgt,
            memory,
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            tgt_is_causal,
            memory_is_causal,
        )
        return out

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: DeviceLike = None, dtype: DTypeLike = None
    ) -> Tensor:
        """Return a causal mask to add to scores: -inf above the diagonal, zeros elsewhere.

        - `sz`: the number of positions: the mask is (sz, sz).
        """
        numbers = dt.arange(sz, device=device)
        zeros = dt.zeros((sz, sz), dtype=dtype, device=device)
        return dt.where(numbers[:, None] >= numbers, zeros, -math.inf)
