"""Recurrent layers and cells, `RNN`, `LSTM`, `GRU`, whose states have PyTorch's keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import dovetail as dt
from dovetail.extend import arguments

from .. import init
from ..functional import recurrent as steps
from ..functional.dropouts import dropout as apply_dropout
from ..functional.precision import require_tensors
from ..functional.sizes import LAYERS_MAX, check_counts, check_probability
from ..utils.rnn import PackedSequence
from .module import Module
from .parameter import Parameter

if TYPE_CHECKING:
    from dovetail.extend import DeviceLike, DTypeLike

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

Tensor: TypeAlias = dt.Tensor
MODES = {"tanh": "RNN_TANH", "relu": "RNN_RELU"}


def _uninitialized_parameter(shape: Sequence[int], device: DeviceLike, dtype: DTypeLike) -> Tensor:
    """Return a parameter with arbitrary contents."""
    return Parameter(dt.empty(tuple(shape), dtype=dtype, device=device))


def _draw_parameters(module: Module, hidden_size: int) -> None:
    """Fill all parameters uniformly within +-1 / sqrt(hidden_size)."""
    bound = 1 / math.sqrt(hidden_size)
    for x in module.parameters():
        init.uniform_(x, -bound, bound)


class RNNBase(Module):
    """The base class of `RNN`, `LSTM` and `GRU`; `mode` is the kind of step.

    - `mode`: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".
    - `input_size`: the size of the last axis of the input.
    - `hidden_size`: the size of the hidden state.
    - `num_layers`: the number of layers, each of which reads the output of the one before.
    - `bias`: False has no biases.
    - `batch_first`: True if input and output are (batch, steps, features). States are not changed.
    - `dropout`: the dropout probability of the output of all layers but the last, in training.
    - `bidirectional`: run each layer in both directions and concatenate the outputs.
    - `proj_size`: the size to which an LSTM projects its hidden state; 0 projects nothing.

    >>> import dovetail as dt
    >>> layer = dt.nn.RNNBase("GRU", 2, 3)
    >>> [name for name, _ in layer.named_parameters()]
    ['weight_ih_l0', 'weight_hh_l0', 'bias_ih_l0', 'bias_hh_l0']
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if mode not in steps.GATES:
            raise dt.ArgumentError(
                f"{name}: mode must be one of {', '.join(steps.GATES)}, got {mode!r}"
            )
        self.mode = mode
        self.input_size, self.hidden_size = check_counts(
            name, 1, input_size=input_size, hidden_size=hidden_size
        )
        self.num_layers = arguments.integer(name, num_layers, "num_layers", 1, LAYERS_MAX)
        self.bias, self.batch_first, self.bidirectional = bias, batch_first, bidirectional
        if isinstance(dropout, bool):
            raise dt.ArgumentError(
                f"{name}: dropout must be a probability between 0 and 1, got {dropout!r}"
            )
        check_probability(name, dropout, "dropout")
        (proj_size,) = check_counts(name, proj_size=proj_size)
        if proj_size and (mode != "LSTM" or not 0 < proj_size < hidden_size):
            raise dt.ArgumentError(
                f"{name}: proj_size is only allowed for LSTM and must be less than hidden_size "
                f"{hidden_size}, got {proj_size!r}"
            )
        self.dropout, self.proj_size = float(dropout), proj_size
        for layer in range(num_layers):
            for suffix in self._suffixes(layer):
                for key, shape in self._shapes(layer):
                    self.register_parameter(
                        key + suffix, _uninitialized_parameter(shape, device, dtype)
                    )
        self.reset_parameters()

    def _suffixes(self, layer: int) -> list[str]:
        """Return the suffix of a layer's parameter names for each direction."""
        return [f"_l{layer}", f"_l{layer}_reverse"][: 2 if self.bidirectional else 1]

    def _shapes(self, layer: int) -> list[tuple[str, tuple[int, ...]]]:
        """Return the names and shapes of the parameters of a layer in one direction."""
        gates, out = steps.GATES[self.mode] * self.hidden_size, self.proj_size or self.hidden_size
        inputs = out * (2 if self.bidirectional else 1) if layer else self.input_size
        shapes: list[tuple[str, tuple[int, ...]]] = [
            ("weight_ih", (gates, inputs)),
            ("weight_hh", (gates, out)),
        ]
        if self.bias:
            shapes += [("bias_ih", (gates,)), ("bias_hh", (gates,))]
        if self.proj_size:
            shapes.append(("weight_hr", (self.proj_size, self.hidden_size)))
        return shapes

    def reset_parameters(self) -> None:
        """Draw new parameters, uniform within +-1 / sqrt(hidden_size)."""
        _draw_parameters(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Do nothing; dovetail does not need contiguous parameters."""

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """Return the parameters of each layer in each direction."""
        return [
            [getattr(self, key + suffix) for key, _ in self._shapes(layer)]
            for layer in range(self.num_layers)
            for suffix in self._suffixes(layer)
        ]

    def _weights(self, suffix: str) -> steps.Weights:
        """Return the parameters with a suffix; absent biases and projections are None."""
        own = self._parameters
        return steps.Weights(
            getattr(self, "weight_ih" + suffix),
            getattr(self, "weight_hh" + suffix),
            own.get("bias_ih" + suffix),
            own.get("bias_hh" + suffix),
            own.get("weight_hr" + suffix),
        )

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        text = f"{self.input_size}, {self.hidden_size}"
        defaults = (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0.0),
            ("bidirectional", False),
        )
        for key, value in defaults:
            if getattr(self, key) != value:
                text += f", {key}={getattr(self, key)}"
        return text

    # --- computation

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Return the output of the last layer at each step, and the states after the last step.

        - `hx`: the states before the first step, by default zeros; for an LSTM (h, c).
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        self._require_fitting(input, (2, 3), "(steps, batch, features), or without batch")
        is_unbatched = input.ndim == 2
        states = self._check_states(hx, is_unbatched)
        x = dt.expand_dims(input, axis=1) if is_unbatched else input
        x = dt.moveaxis(x, 0, 1) if self.batch_first and not is_unbatched else x
        steps_, batch = x.shape[:2]
        if not steps_:
            raise dt.ShapeError(
                f"{type(self).__name__}: input must have at least one step, got shape {input.shape}"
            )
        states = self._initial_states(states, x, batch)
        out, last = self._run_layers(
            dt.reshape(x, (steps_ * batch, x.shape[2])), states, (batch,) * steps_
        )
        out = dt.reshape(out, (steps_, batch, out.shape[-1]))
        if is_unbatched:
            out, last = dt.squeeze(out, axis=1), [dt.squeeze(s, axis=1) for s in last]
        elif self.batch_first:
            out = dt.moveaxis(out, 0, 1)
        return out, tuple(last) if self.mode == "LSTM" else last[0]

    def _forward_packed(self, input: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        """Run the layers on packed sequences; states keep the order of the input."""
        data, sizes, order, inverse = input
        self._require_fitting(data, (2,), "(elements, features), packed")
        states = self._initial_states(self._check_states(hx, False), data, sizes[0])
        if order is not None:
            states = [dt.take(s, order, axis=1) for s in states]
        out, last = self._run_layers(data, states, sizes)
        if inverse is not None:
            last = [dt.take(s, inverse, axis=1) for s in last]
        packed = PackedSequence(out, sizes, order, inverse)
        return packed, tuple(last) if self.mode == "LSTM" else last[0]

    def _require_fitting(self, x: Any, ranks: tuple[int, ...], expected: str) -> None:
        """Raise an error if the input's type, shape or dtype does not fit."""
        name = type(self).__name__
        if not isinstance(x, dt.Tensor):
            raise dt.ArgumentTypeError(f"{name}: input must be a tensor, got {type(x).__name__}")
        if x.ndim not in ranks:
            raise dt.ShapeError(f"{name}: input must have shape {expected}, got shape {x.shape}")
        if x.shape[-1] != self.input_size:
            raise dt.ShapeError(
                f"{name}: input must have input_size={self.input_size} features, got "
                f"{x.shape[-1]} in shape {x.shape}"
            )
        dtype = self._parameters["weight_ih_l0"].dtype  # type: ignore[union-attr]  # not None
        if x.dtype is not dtype:
            raise dt.DTypeError(
                f"{name}: input and weights must have the same dtype, got {x.dtype} and {dtype}; "
                "use x.astype(dtype) or module.to(dtype)"
            )

    def _check_states(self, hx: Any, is_unbatched: bool) -> list[Tensor] | None:
        """Check the given states and return them with a batch axis, or None."""
        name, lstm = type(self).__name__, self.mode == "LSTM"
        if hx is None:
            return None
        pair = isinstance(hx, tuple | list)
        if pair != lstm or (pair and len(hx) != 2):
            what = "a pair (h, c)" if lstm else "one tensor"
            raise dt.ArgumentTypeError(f"{name}: hx must be {what}, got {type(hx).__name__}")
        states: list[Tensor] = list(hx) if pair else [hx]
        ranks = 2 if is_unbatched else 3
        for s in states:
            if not isinstance(s, dt.Tensor):
                raise arguments.refused(name, "hx", "a tensor or a pair of them", s)
            if s.ndim != ranks:
                raise dt.ShapeError(
                    f"{name}: a state must have {ranks} dimensions for this input, got shape "
                    f"{s.shape}"
                )
        return [dt.expand_dims(s, axis=1) for s in states] if is_unbatched else states

    def _initial_states(self, states: list[Tensor] | None, x: Tensor, batch: int) -> list[Tensor]:
        """Return the first states, zeros for None. Raises: ShapeError for other shapes."""
        n = self.num_layers * (2 if self.bidirectional else 1)
        shapes = [(n, batch, self.proj_size or self.hidden_size), (n, batch, self.hidden_size)]
        shapes = shapes[: 2 if self.mode == "LSTM" else 1]
        if states is None:
            return [dt.zeros(s, dtype=x.dtype, device=x.device) for s in shapes]
        for s, shape in zip(states, shapes, strict=True):
            if s.shape != shape:
                raise dt.ShapeError(
                    f"{type(self).__name__}: a state must have shape {shape}, got shape {s.shape}"
                )
        return states

    def _run_layers(
        self, x: Tensor, states: list[Tensor], sizes: tuple[int, ...]
    ) -> tuple[Tensor, list[Tensor]]:
        """Run all layers; return the output of the last one and the last states of all."""
        last: list[tuple[Tensor, ...]] = []
        for layer in range(self.num_layers):
            if layer and self.dropout and self.training:
                x = apply_dropout(x, self.dropout, True)
            outs = []
            for reverse, suffix in enumerate(self._suffixes(layer)):
                state = tuple(s[len(last)] for s in states)
                options = steps.LayerOptions(self.mode, sizes, bool(reverse))
                out, after = steps.run_layer(x, state, self._weights(suffix), options)
                outs.append(out)
                last.append(after)
            x = outs[0] if len(outs) == 1 else dt.concat(outs, axis=-1)
        return x, [dt.stack(every) for every in zip(*last, strict=True)]


class RNN(RNNBase):
    """Steps of h' = tanh(w_ih @ x + b_ih + w_hh @ h + b_hh), or with relu: `nonlinearity`.

    - `input_size`: the size of the last axis of the input.
    - `hidden_size`: the size of the hidden state.
    - `num_layers`: the number of layers, each of which reads the output of the one before.
    - `nonlinearity`: "tanh" or "relu".
    - `bias`: False has no b_ih and b_hh.
    - `batch_first`: True if input and output are (batch, steps, features). States are not changed.
    - `dropout`: the dropout probability of the output of all layers but the last, in training.
    - `bidirectional`: run each layer in both directions and concatenate the outputs.

    A call `rnn(input, hx)` starts with the states `hx`, or with zeros without it.
    Shapes: input (steps, batch, input_size) or without batch; h (layers * directions, batch,
    hidden_size); the result (steps, batch, directions * hidden_size), and h after the last step.
    The result for a `PackedSequence` is packed, too.
    Raises: ShapeError, DTypeError, ArgumentError.
    See also: `LSTM`, `GRU`, `RNNCell`, `dt.nn.utils.rnn.pack_padded_sequence`.

    >>> import dovetail as dt
    >>> out, h = dt.nn.RNN(3, 4)(dt.ones((5, 2, 3)))
    >>> out.shape, h.shape
    ((5, 2, 4), (1, 2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        self._check_nonlinearity(nonlinearity)
        super().__init__(
            MODES[nonlinearity],
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            device,
            dtype,
        )
        self.nonlinearity = nonlinearity

    @staticmethod
    def _check_nonlinearity(nonlinearity: object) -> None:
        """Raise ArgumentError unless the name is that of a supported function."""
        if nonlinearity not in MODES:
            raise dt.ArgumentError(
                f"RNN: nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}"
            )


class LSTM(RNNBase):
    """Steps of a long short-term memory; see `dt.nn.functional.lstm_cell`.

    - `input_size`: the size of the last axis of the input.
    - `hidden_size`: the size of the hidden state and the cell state.
    - `num_layers`: the number of layers, each of which reads the output of the one before.
    - `bias`: False has no biases.
    - `batch_first`: True if input and output are (batch, steps, features). States are not changed.
    - `dropout`: the dropout probability of the output of all layers but the last, in training.
    - `bidirectional`: run each layer in both directions and concatenate the outputs.
    - `proj_size`: the size to which the hidden state is projected, less than `hidden_size`; 0
      projects nothing.

    A call `lstm(input, (h, c))` starts with these states, or with zeros without them.
    Shapes: input (steps, batch, input_size) or without batch; h (layers * directions, batch,
    hidden_size, or proj_size), c (layers * directions, batch, hidden_size); the result (steps,
    batch, directions * hidden_size), and (h, c) after the last step. The result for a
    `PackedSequence` is packed, too.
    Raises: ShapeError, DTypeError, ArgumentError.
    See also: `GRU`, `RNN`, `LSTMCell`, `dt.nn.utils.rnn.pack_padded_sequence`.

    >>> import dovetail as dt
    >>> lstm = dt.nn.LSTM(3, 4, 2, bidirectional=True)
    >>> out, (h, c) = lstm(dt.ones((5, 2, 3)))
    >>> lstm, out.shape, h.shape
    (LSTM(3, 4, num_layers=2, bidirectional=True), (5, 2, 8), (4, 2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__(
            "LSTM",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )


class GRU(RNNBase):
    """Steps of gated recurrent units; see `dt.nn.functional.gru_cell`.

    - `input_size`: the size of the last axis of the input.
    - `hidden_size`: the size of the hidden state.
    - `num_layers`: the number of layers, each of which reads the output of the one before.
    - `bias`: False has no biases.
    - `batch_first`: True if input and output are (batch, steps, features). States are not changed.
    - `dropout`: the dropout probability of the output of all layers but the last, in training.
    - `bidirectional`: run each layer in both directions and concatenate the outputs.

    A call `gru(input, hx)` starts with the states `hx`, or with zeros without it.
    Shapes: as of `RNN`.
    Raises: ShapeError, DTypeError, ArgumentError.
    See also: `LSTM`, `RNN`, `GRUCell`, `dt.nn.utils.rnn.pack_padded_sequence`.

    >>> import dovetail as dt
    >>> gru = dt.nn.GRU(3, 4, batch_first=True)
    >>> out, h = gru(dt.ones((2, 5, 3)))
    >>> out.shape, h.shape
    ((2, 5, 4), (1, 2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__(
            "GRU",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            device,
            dtype,
        )


# --- cells ----------------------------------------------------------------------------------------


class RNNCellBase(Module):
    """The base class of cells: weight_ih, weight_hh, and biases unless `bias` is False.

    - `input_size`: the size of the last axis of the input.
    - `hidden_size`: the size of the hidden state.
    - `bias`: False has no biases.
    - `num_chunks`: the number of gates: weights have `num_chunks * hidden_size` rows.

    >>> import dovetail as dt
    >>> dt.nn.RNNCellBase(2, 3, True, 4).weight_ih.shape
    (12, 2)
    """

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.input_size, self.hidden_size = check_counts(
            name, 1, input_size=input_size, hidden_size=hidden_size
        )
        self.bias, n = bias, num_chunks * hidden_size
        self.weight_ih = _uninitialized_parameter((n, input_size), device, dtype)
        self.weight_hh = _uninitialized_parameter((n, hidden_size), device, dtype)
        for key in ("bias_ih", "bias_hh"):
            self.register_parameter(
                key, _uninitialized_parameter((n,), device, dtype) if bias else None
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new parameters, uniform within +-1 / sqrt(hidden_size)."""
        _draw_parameters(self, self.hidden_size)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")

    def _step(self, mode: str, x: Tensor, hx: tuple[Tensor, ...] | None) -> tuple[Tensor, ...]:
        """Return the states after a step, from zeros for None.

        Raises: ShapeError if the shapes of the input and the states do not fit, DTypeError for no
        tensor.
        """
        name = type(self).__name__
        require_tensors(name, x)
        if x.ndim not in (1, 2):
            raise dt.ShapeError(
                f"{name}: input must have shape (batch, features) or (features,), got shape "
                f"{x.shape}"
            )
        if hx is None:
            zeros = dt.zeros((*x.shape[:-1], self.hidden_size), dtype=x.dtype, device=x.device)
            hx = (zeros, zeros) if mode == "LSTM" else (zeros,)
        weights = steps.Weights(self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return steps.run_cell(name, mode, x, hx, weights)


class RNNCell(RNNCellBase):
    """One step of `RNN`, which returns the new hidden state.

    - `input_size`: the size of the last axis of the input.
    - `hidden_size`: the size of the hidden state.
    - `bias`: False has no biases.
    - `nonlinearity`: "tanh" or "relu".

    Shapes: input (batch, input_size) and h (batch, hidden_size), or both without batch.
    Raises: ShapeError, DTypeError, ArgumentError.

    >>> import dovetail as dt
    >>> dt.nn.RNNCell(3, 4)(dt.ones((2, 3))).shape
    (2, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        RNN._check_nonlinearity(nonlinearity)
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the hidden state after a step; None for `hx` starts with zeros."""
        return self._step(MODES[self.nonlinearity], input, None if hx is None else (hx,))[0]

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        option = "" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}"
        return super().extra_repr() + option


class LSTMCell(RNNCellBase):
    """One step of `LSTM`, which returns the new hidden state and cell state.

    - `input_size`: the size of the last axis of the input.
    - `hidden_size`: the size of the hidden state.
    - `bias`: False has no biases.

    Shapes: input (batch, input_size), h and c (batch, hidden_size), or all without batch.
    Raises: ShapeError, DTypeError, ArgumentError.

    >>> import dovetail as dt
    >>> h, c = dt.nn.LSTMCell(3, 4)(dt.ones((2, 3)))
    >>> h.shape, c.shape
    ((2, 4), (2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return both states after a step; None for `hx` starts with zeros."""
        h, c = self._step("LSTM", input, hx)
        return h, c


class GRUCell(RNNCellBase):
    """One step of `GRU`, which returns the new hidden state.

    - `input_size`: the size of the last axis of the input.
    - `hidden_size`: the size of the hidden state.
    - `bias`: False has no biases.

    Shapes: input (batch, input_size) and h (batch, hidden_size), or both without batch.
    Raises: ShapeError, DTypeError, ArgumentError.

    >>> import dovetail as dt
    >>> dt.nn.GRUCell(3, 4)(dt.ones((2, 3))).shape
    (2, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the hidden state after a step; None for `hx` starts with zeros."""
        return self._step("GRU", input, None if hx is None else (hx,))[0]
