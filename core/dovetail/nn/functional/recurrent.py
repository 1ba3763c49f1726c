"""Recurrent layers. A step is one product and one fused kernel, forward and backward.

The products of all steps with the input are one product before the steps, and the gradients of
weights are one product after them. Sequences of different lengths are packed step by step, so each
step has as many rows as there are sequences that are long enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import dovetail as dt
from dovetail.extend import is_mapping, widen_halves

from .precision import obey_autocast
from .recurrent_steps import gru_back, gru_step, lstm_back, lstm_step

__all__ = ["gru_cell", "lstm_cell", "rnn_relu_cell", "rnn_tanh_cell"]

Tensor: TypeAlias = dt.Tensor
State: TypeAlias = tuple[Tensor, ...]  # h, or (h, c) of an LSTM
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class Weights(NamedTuple):
    """The weights of a layer in one direction; biases and the projection may be None."""

    ih: Tensor
    hh: Tensor
    bias_ih: Tensor | None = None
    bias_hh: Tensor | None = None
    hr: Tensor | None = None


class LayerOptions(NamedTuple):
    """The options of a layer: its kind, the number of rows of each step, and its direction."""

    mode: str
    sizes: tuple[int, ...]
    reverse: bool = False


# --- cells: one step, in tensor operations --------------------------------------------------------


def lstm_cell(
    input: Tensor,
    hx: tuple[Tensor, Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the hidden state and the cell state after a step of an LSTM.

    - `hx`: the hidden state and the cell state before the step.
    - `w_ih`, `b_ih`: weight and bias of the input.
    - `w_hh`, `b_hh`: of the hidden state.

    The rows of weights are those of the input gate, the forget gate, the cell and the output gate,
    as PyTorch has them. `dt.scan` does steps of it.
    Shapes: input (..., i), states (..., n), w_ih (4 n, i), w_hh (4 n, n), biases (4 n,).
    Dtypes: floats, one of all.
    Raises: ShapeError, DTypeError.
    See also: `gru_cell`, `dt.nn.LSTM`, `dt.scan`.
    Source: Hochreiter, Schmidhuber, "Long short-term memory", 1997; Gers et al., 2000.

    >>> import dovetail as dt
    >>> x, h, w = (dt.ones(s) for s in ((1, 2), (1, 1), (4, 2)))
    >>> h, c = dt.nn.functional.lstm_cell(x, (h, h), w, w[:, :1])
    >>> round(h.item(), 4), round(c.item(), 4)
    (0.9109, 1.9004)
    """
    weights = Weights(w_ih, w_hh, b_ih, b_hh)
    h, c = run_cell("lstm_cell", "LSTM", input, hx, weights)
    return h, c


def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """Return the hidden state after a step of a GRU.

    - `hx`: the hidden state before it.
    - `w_ih`, `b_ih`: weight and bias of the input.
    - `w_hh`, `b_hh`: of the hidden state.

    The rows of weights are those of the reset gate, the update gate and the new state.
    Shapes: input (..., i), hx (..., n), w_ih (3 n, i), w_hh (3 n, n), biases (3 n,).
    Dtypes: floats, one of all.
    Raises: ShapeError, DTypeError.
    See also: `lstm_cell`, `dt.nn.GRU`.
    Source: Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014; the reset
    gate is applied after the product, as PyTorch and cuDNN do.

    >>> import dovetail as dt
    >>> x, h, w = (dt.ones(s) for s in ((1, 2), (1, 1), (3, 2)))
    >>> round(dt.nn.functional.gru_cell(x, h, w, w[:, :1]).item(), 4)
    0.9997
    """
    return run_cell("gru_cell", "GRU", input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh))[0]


def rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """Return the hidden state after a step: tanh of the sum of both products and biases.

    - `hx`: the hidden state before it.
    - `w_ih`, `b_ih`: weight and bias of the input.
    - `w_hh`, `b_hh`: of the hidden state.

    Shapes: input (..., i), hx (..., n), w_ih (n, i), w_hh (n, n), biases (n,).
    Dtypes: floats, one of all.
    Raises: ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> x, h, w = (dt.ones(s) for s in ((1, 2), (1, 1), (1, 2)))
    >>> round(dt.nn.functional.rnn_tanh_cell(x, h, w, w[:, :1]).item(), 4)
    0.9951
    """
    return run_cell("rnn_tanh_cell", "RNN_TANH", input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh))[0]


def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """Return the hidden state after a step: relu of the sum of both products and biases.

    - `hx`: the hidden state before it.
    - `w_ih`, `b_ih`: weight and bias of the input.
    - `w_hh`, `b_hh`: of the hidden state.

    Shapes: input (..., i), hx (..., n), w_ih (n, i), w_hh (n, n), biases (n,).
    Dtypes: floats, one of all.
    Raises: ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> x, h, w = (dt.ones(s) for s in ((1, 2), (1, 1), (1, 2)))
    >>> dt.nn.functional.rnn_relu_cell(x, h, w, w[:, :1]).item()
    3.0
    """
    return run_cell("rnn_relu_cell", "RNN_RELU", input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh))[0]


@obey_autocast("recurrent_layer")
def run_cell(name: str, mode: str, x: Tensor, state: State, w: Weights) -> State:
    """Check the arguments of the function `name` and return the state after a step."""
    require_fitting(name, mode, x, state, w)
    return _step(mode, x, state, w)


@widen_halves
def _step(mode: str, x: Tensor, state: State, w: Weights) -> State:
    """Return the state after a step; halves are computed in float32 and rounded once."""
    return _step_with_tensor_ops(mode, _project_input(x, w, mode), state, w)


def require_fitting(name: str, mode: str, x: Tensor, state: State, w: Weights) -> None:
    """Raise an error if an input and states do not fit the weights."""
    gates = GATES[mode]
    if (
        w.ih.ndim != 2
        or w.hh.ndim != 2
        or not w.ih.shape[0] == w.hh.shape[0] == gates * (w.hh.shape[0] // gates)
    ):
        raise dt.ShapeError(
            f"{name}: weights must have shapes ({gates} * n, inputs) and ({gates} * n, n), got "
            f"{w.ih.shape} and {w.hh.shape}"
        )
    for what, bias in (("b_ih", w.bias_ih), ("b_hh", w.bias_hh)):
        if bias is not None and bias.shape != w.hh.shape[:1]:
            raise dt.ShapeError(
                f"{name}: {what} must have shape {w.hh.shape[:1]} for weights of shape "
                f"{w.hh.shape}, got shape {bias.shape}"
            )
    n = w.hh.shape[0] // gates
    if not x.ndim or x.shape[-1] != w.ih.shape[1]:
        raise dt.ShapeError(
            f"{name}: input must have shape (..., {w.ih.shape[1]}) for weights of shape "
            f"{w.ih.shape}, got shape {x.shape}"
        )
    expected = w.hh.shape[1], *([n] if mode == "LSTM" else [])
    for what, s, size in zip("hc", state, expected, strict=False):
        if s.shape != (*x.shape[:-1], size):
            raise dt.ShapeError(
                f"{name}: {what} must have shape {(*x.shape[:-1], size)} for an input of shape "
                f"{x.shape} and weights of shape {w.hh.shape}, got shape {s.shape}"
            )
    for what, s in zip(("w_hh", "h", "c"), (w.hh, *state), strict=False):
        if s.dtype is not x.dtype:
            raise dt.DTypeError(
                f"{name}: input and {what} must have the same dtype, got {x.dtype} and {s.dtype}; "
                "use x.astype(dtype) or module.to(dtype)"
            )


def _project_input(x: Tensor, w: Weights, mode: str) -> Tensor:
    """Return the input's part of the gates, with both biases; a GRU adds the second one later."""
    gates = x @ w.ih.mT
    if w.bias_ih is not None:
        gates = gates + w.bias_ih
    return gates if w.bias_hh is None or mode == "GRU" else gates + w.bias_hh


def _step_with_tensor_ops(mode: str, x: Tensor, state: State, w: Weights) -> State:
    """Return the state after a step, computed with tensor operations.

    `x`: the input's part of the gates.
    """
    h, y = state[0], state[0] @ w.hh.mT
    n = w.hh.shape[0] // GATES[mode]
    if mode == "LSTM":
        i, f, g, o = (x[..., k * n : k * n + n] + y[..., k * n : k * n + n] for k in range(4))
        c = dt.sigmoid(f) * state[1] + dt.sigmoid(i) * dt.tanh(g)
        h = dt.sigmoid(o) * dt.tanh(c)
        return h if w.hr is None else h @ w.hr.mT, c
    if mode == "GRU":
        y = y if w.bias_hh is None else y + w.bias_hh
        r, z = (dt.sigmoid(x[..., k * n : k * n + n] + y[..., k * n : k * n + n]) for k in (0, 1))
        new = dt.tanh(x[..., 2 * n :] + r * y[..., 2 * n :])
        return ((1 - z) * new + z * h,)
    return (dt.tanh(x + y) if mode == "RNN_TANH" else dt.relu(x + y),)


# --- layers ---------------------------------------------------------------------------------------


@widen_halves
@obey_autocast("recurrent_layer")
def run_layer(
    x: Tensor, state: State, weights: Weights, options: LayerOptions
) -> tuple[Tensor, State]:
    """Return the output of each step of a layer in one direction, and the last state.

    `x`: (rows, features), the rows of one step after those of the step before.
    """
    if is_mapping():  # kernels with loops cannot be batched by vmap
        return _run_with_tensor_ops(x, state, weights, options)
    initial = (*state, None) if len(state) == 1 else state
    out, *last = _Layer.apply(x, *initial, *weights, options, dt.is_grad_enabled())
    return out, tuple(last)


def _step_slices(options: LayerOptions) -> list[slice]:
    """Return the rows of each step, in the order of execution."""
    slices, start = [], 0
    for n in options.sizes:
        slices.append(slice(start, start + n))
        start += n
    return slices[::-1] if options.reverse else slices


class _Carry:
    """A state that is carried from step to step, with as many rows as each step has.

    `ends`: the states of all sequences. A sequence that begins at a later step reads its row there.
    The rows of sequences that end are set aside until `last`.
    """

    def __init__(self, ends: Tensor, n: int) -> None:
        self.initial, self.current = ends, ends[:n]
        self._finished: list[Tensor] = []

    def resize(self, n: int) -> Tensor:
        """Set `current` to the n rows of the next step and return it; set ended rows aside."""
        have = self.current.shape[0]
        if n < have:
            self._finished.append(self.current[n:])
            self.current = self.current[:n]
        elif n > have:
            self.current = dt.concat([self.current, self.initial[have:n]])
        return self.current

    def last(self) -> Tensor:
        """Return the states of all sequences after their last steps."""
        return dt.concat([self.current, *self._finished[::-1]]) if self._finished else self.current


def _run_with_tensor_ops(
    x: Tensor, state: State, weights: Weights, options: LayerOptions
) -> tuple[Tensor, State]:
    """Compute `run_layer` with tensor operations, differentiable any number of times."""
    order, projected = _step_slices(options), _project_input(x, weights, options.mode)
    n = order[0].stop - order[0].start
    carries, outputs = [_Carry(s, n) for s in state], []
    for rows in order:
        step_state = tuple(s.resize(rows.stop - rows.start) for s in carries)
        step_state = _step_with_tensor_ops(options.mode, projected[rows], step_state, weights)
        outputs.append(step_state[0])
        for s, value in zip(carries, step_state, strict=True):
            s.current = value
    out = dt.concat(outputs[::-1] if options.reverse else outputs)
    return out, tuple(s.last() for s in carries)


class _Layer(dt.autograd.Function):
    """A layer in one direction, of the input's rows, h, c, five weights, options and a flag.

    The flag says if gradients are recorded.
    """

    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[Tensor, ...]:
        """Run the layer's kernels; save inputs, outputs, gates and cells."""
        x, h, c, *weights, options, records = args
        state = (h,) if c is None else (h, c)
        run = _LayerRun(x, state, Weights(*weights), options)
        results = run.forward(keeps_gates=records and any(ctx.needs_input_grad))
        ctx.options = options
        ctx.save_for_backward(x, h, c, *weights, results[0], run.gates, run.cells)
        return results

    @staticmethod
    def backward(ctx: Any, *g: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients by kernels, or by tensor operations if they are recorded."""
        x, h, c, *saved = ctx.saved_tensors
        weights, outputs = Weights(*saved[:5]), saved[5:]
        if dt.is_grad_enabled() or is_mapping():
            return (*_differentiable_backward(ctx, g), None, None)
        state = (h,) if c is None else (h, c)
        run = _LayerRun(x, state, weights, ctx.options, *outputs)
        return (*run.backward(g, ctx.needs_input_grad), None, None)


def _differentiable_backward(ctx: Any, g: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
    """Return gradients that can be differentiated, from the layer as tensor operations."""
    inputs = ctx.saved_tensors[:8]
    present = [k for k, t in enumerate(inputs) if t is not None]

    def run_plain(*tensors: Tensor) -> tuple[Tensor, ...]:
        """Run the layer on the tensors present; return its output and last state."""
        every: list[Any] = [None] * len(inputs)
        for k, t in zip(present, tensors, strict=True):
            every[k] = t
        state = every[1:2] if every[2] is None else every[1:3]
        out, last = _run_with_tensor_ops(every[0], tuple(state), Weights(*every[3:]), ctx.options)
        return (out, *last)

    present_gradients = dt.func.vjp(run_plain, *[inputs[k] for k in present])[1](*g)
    gradients: list[Tensor | None] = [None] * len(inputs)
    for k, gradient in zip(present, present_gradients, strict=True):
        gradients[k] = gradient
    return tuple(gradients)


class _LayerRun:
    """The forward and backward pass of a layer, with the saved outputs, gates and cells."""

    def __init__(
        self,
        x: Tensor,
        state: State,
        weights: Weights,
        options: LayerOptions,
        out: Tensor | None = None,
        gates: Tensor | None = None,
        cells: Tensor | None = None,
    ) -> None:
        self.x, self.state, self.weights, self.options = x, state, weights, options
        self.order, self.n = _step_slices(options), weights.hh.shape[0] // GATES[options.mode]
        self.out = self._empty(weights.hh.shape[1]) if out is None else out
        self.gates = self._empty(0) if gates is None else gates
        self.cells = (
            self._empty(self.n if options.mode == "LSTM" else 0) if cells is None else cells
        )

    def _empty(self, columns: int, rows: int | None = None) -> Tensor:
        """Return an uninitialised matrix of `columns`, with `rows`, or as many as the input has."""
        shape = self.x.shape[0] if rows is None else rows, columns
        return dt.empty(shape, dtype=self.x.dtype, device=self.x.device)

    def _carries(self, ends: Sequence[Tensor], rows: slice) -> list[_Carry]:
        """Return a carry for each of `ends`, which begins with as many first rows as `rows` has."""
        return [_Carry(s, rows.stop - rows.start) for s in ends]

    # --- forward

    def forward(self, keeps_gates: bool) -> tuple[Tensor, ...]:
        """Run all steps; return each step's output, and the last state.

        keeps_gates: store the gates of all steps in `self`, for gradients. Otherwise the steps
        share one piece of memory, which stays in the cache.
        """
        w = self.weights
        gates = 4 * self.n if self.options.mode in ("LSTM", "GRU") else 0
        self.gates = self._empty(gates, None if keeps_gates else max(self.options.sizes))
        self.keeps_gates = keeps_gates
        ih, hh = dt.copy(w.ih.mT), dt.copy(w.hh.mT)
        if self.options.mode == "LSTM":  # whose kernel adds both biases
            x, self.biases = self.x @ ih, [self._bias(b) for b in (w.bias_ih, w.bias_hh)]
        else:
            x = _project_input(self.x, w._replace(ih=ih.mT), self.options.mode)
        carries = self._carries(self.state, self.order[0])
        step = _FORWARD[self.options.mode]
        for rows in self.order:
            state = tuple(s.resize(rows.stop - rows.start) for s in carries)
            step_state = step(self, rows, x[rows], state[0] @ hh, state)
            for s, value in zip(carries, step_state, strict=True):
                s.current = value
        return (self.out, *[self._last_rows(x) for x in (self.out, self.cells)[: len(carries)]])

    def _last_rows(self, every: Tensor) -> Tensor:
        """Return each sequence's row of its last step, in new memory."""
        sizes = self.options.sizes
        n = sizes[0]
        if self.options.reverse:
            return dt.copy(every[:n])
        if n == sizes[-1]:
            return dt.copy(every[self.x.shape[0] - n :])
        ends = [0] * n
        for start, count in zip(accumulate(sizes, initial=0), sizes, strict=False):
            ends[:count] = range(start, start + count)
        return dt.take(every, dt.asarray(ends, device=every.device), axis=0)

    def _gates_of(self, rows: slice) -> Tensor:
        """Return the memory for the gates of a step."""
        return self.gates[rows if self.keeps_gates else slice(rows.stop - rows.start)]

    def lstm(self, rows: slice, x: Tensor, y: Tensor, state: State) -> State:
        """Compute a step of an LSTM into its rows of output, gates and cells; return the state."""
        h, c = self.out[rows], self.cells[rows]
        if self.weights.hr is None:
            lstm_step(self._gates_of(rows), c, h, x, *self.biases, y, state[1])
            return h, c
        unprojected = self._empty(self.n, rows.stop - rows.start)
        lstm_step(self._gates_of(rows), c, unprojected, x, *self.biases, y, state[1])
        h[...] = unprojected @ dt.copy(self.weights.hr.mT)
        return h, c

    def gru(self, rows: slice, x: Tensor, y: Tensor, state: State) -> State:
        """Compute a step of a GRU into its rows of output and gates; return the state."""
        h = self.out[rows]
        gru_step(self._gates_of(rows), h, x, y, self._bias(self.weights.bias_hh), state[0])
        return (h,)

    def _bias(self, bias: Tensor | None) -> Tensor:
        """Return the bias, or the neutral element of addition, -0.0, in its shape."""
        if bias is not None:
            return bias
        rows = self.weights.hh.shape[0]
        return dt.full(rows, -0.0, dtype=self.x.dtype, device=self.x.device)

    def rnn(
        self,
        activation: Callable[[Tensor], Tensor],
        rows: slice,
        x: Tensor,
        y: Tensor,
        state: State,
    ) -> State:
        """Compute a step of an Elman network into its rows of output; return the state."""
        h = self.out[rows]
        h[...] = activation(x + y)
        return (h,)

    # --- backward

    def backward(self, g: Sequence[Tensor], needs: Sequence[bool]) -> list[Tensor | None]:
        """Return the gradients of x, h, c and the weights; store those of the gates in `self`."""
        w, previous = self.weights, self._previous_states()
        is_gru, columns = self.options.mode == "GRU", w.hh.shape[0]
        # gradients of the gates by the input's product and by the state's; they differ for a GRU
        self.input_gates = self._empty(columns)
        self.state_gates = self._empty(columns) if is_gru else self.input_gates
        self.projected = None if w.hr is None else self._empty(w.hh.shape[1])
        slopes = [dt.copy(end) for end in g[1:]]  # a step replaces as many first rows as it has
        if is_gru:  # a part of the gradient bypasses the product
            slopes.append(dt.zeros_like(slopes[0]))
        step = _BACKWARD[self.options.mode]
        for rows, state in zip(self.order[::-1], previous[::-1], strict=True):
            n = rows.stop - rows.start
            of_step = tuple(s if s.shape[0] == n else s[:n] for s in slopes)
            of_step[0][...] = step(self, rows, state, g[0][rows], of_step)
        return self._gradients(slopes, needs)

    def _previous_states(self) -> list[State]:
        """Return the state before each step, in order of execution."""
        carries, states = self._carries(self.state, self.order[0]), []
        for rows in self.order:
            states.append(tuple(s.resize(rows.stop - rows.start) for s in carries))
            for s, every in zip(carries, (self.out, self.cells), strict=False):
                s.current = every[rows]
        return states

    def lstm_step_back(self, rows: slice, previous: State, g: Tensor, slopes: State) -> Tensor:
        """Return the gradient of the hidden state before an LSTM step.

        Store those of its gates; that of the cells before it replaces the second of `slopes`.
        """
        (h, c), w = slopes, self.weights
        if self.projected is not None:
            assert w.hr is not None
            self.projected[rows] = g + h
            g, h = self.projected[rows] @ w.hr, dt.zeros_like(c)
        slopes_of_gates = self.input_gates[rows]
        lstm_back(slopes_of_gates, c, self.gates[rows], self.cells[rows], previous[1], g, h)
        return slopes_of_gates @ w.hh

    def gru_step_back(self, rows: slice, previous: State, g: Tensor, slopes: State) -> Tensor:
        """Return the gradient of the state before a GRU step; store those of its gates.

        The part that bypasses the product replaces the second of `slopes`.
        """
        h, bypass = slopes
        state_gates = self.state_gates[rows]
        gru_back(self.input_gates[rows], state_gates, bypass, self.gates[rows], previous[0], g, h)
        return state_gates @ self.weights.hh

    def rnn_step_back(
        self,
        slope: Callable[[Tensor], Tensor],
        rows: slice,
        previous: State,
        g: Tensor,
        slopes: State,
    ) -> Tensor:
        """Return the gradient of the state before an Elman step; store those of its gates.

        `slope`: the activation's slope as a function of its result.
        """
        self.input_gates[rows] = (g + slopes[0]) * slope(self.out[rows])
        return self.input_gates[rows] @ self.weights.hh

    def _gradients(self, last: list[Tensor], needs: Sequence[bool]) -> list[Tensor | None]:
        """Return the gradients of x, h, c and the weights, from those of all gates."""
        w, input_gates, state_gates = self.weights, self.input_gates, self.state_gates
        if self.options.mode == "GRU":
            last = [last[0] + last[1]]
        gradients: list[Tensor | None] = [None] * 8
        if needs[0]:
            gradients[0] = input_gates @ w.ih
        gradients[1 : 1 + len(last)] = last
        if needs[3]:
            gradients[3] = input_gates.mT @ self.x
        if needs[4]:
            gradients[4] = state_gates.mT @ self._previous_rows()
        if needs[5]:
            gradients[5] = dt.sum(input_gates, axis=0)
        if needs[6]:
            gradients[6] = dt.sum(state_gates, axis=0)
        if needs[7] and self.projected is not None:
            gradients[7] = self.projected.mT @ (self.gates[:, 3 * self.n :] * dt.tanh(self.cells))
        return gradients

    def _previous_rows(self) -> Tensor:
        """Return the hidden state before each row of the input."""
        sizes, reverse, h = self.options.sizes, self.options.reverse, self.state[0]
        n = sizes[0]
        if n == sizes[-1]:
            return dt.concat([self.out[n:], h] if reverse else [h, self.out[: self.x.shape[0] - n]])
        # one gather from h and the outputs; row k of the step before exists if k < its count
        starts, counts = [n, *accumulate(sizes, initial=n)], [0, *sizes]
        if reverse:
            starts, counts = starts[2:], [*sizes[1:], 0]
        steps = zip(starts, counts, sizes, strict=False)
        rows = [s + k if k < count else k for s, count, m in steps for k in range(m)]
        return dt.take(dt.concat([h, self.out]), dt.asarray(rows, device=h.device), axis=0)


_FORWARD: dict[str, Callable[..., State]] = {
    "LSTM": _LayerRun.lstm,
    "GRU": _LayerRun.gru,
    "RNN_TANH": lambda run, *args: run.rnn(dt.tanh, *args),
    "RNN_RELU": lambda run, *args: run.rnn(dt.relu, *args),
}
_BACKWARD: dict[str, Callable[..., Tensor]] = {
    "LSTM": _LayerRun.lstm_step_back,
    "GRU": _LayerRun.gru_step_back,
    "RNN_TANH": lambda run, *args: run.rnn_step_back(lambda h: 1 - h * h, *args),
    "RNN_RELU": lambda run, *args: run.rnn_step_back(lambda h: dt.astype(h > 0, h.dtype), *args),
}
