"""Recurrent layers: a step is one product and one fused kernel, there and back.

The products of all steps with the input are one product before them, and gradients of weights are
one product after them. The order of the steps is a list of the rows that each has: sequences of
several lengths are packed, a step after the other, so that a step has as many rows as there are
sequences that are long enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import dovetail as dt
from dovetail.extend import is_mapping, widen_halves

from .recurrent_steps import gru_back, gru_step, lstm_back, lstm_step
from .small_products import products

__all__ = ["gru_cell", "lstm_cell", "rnn_relu_cell", "rnn_tanh_cell"]

Tensor: TypeAlias = dt.Tensor
State: TypeAlias = tuple[Tensor, ...]  # what steps hand on: h, and of LSTM c
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class Weights(NamedTuple):
    """Those of a layer in one direction; biases and the projection may be None."""

    ih: Tensor
    hh: Tensor
    bias_ih: Tensor | None = None
    bias_hh: Tensor | None = None
    hr: Tensor | None = None


class How(NamedTuple):
    """The kind of a layer, the rows of each step, and whether the last is done first."""

    mode: str
    sizes: tuple[int, ...]
    reverse: bool = False


# --- cells: one step, in tensor operations --------------------------------------------------------


def lstm_cell(
    input: Tensor, hx: tuple[Tensor, Tensor], w_ih: Tensor, w_hh: Tensor,
    b_ih: Tensor | None = None, b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The hidden state and the cell state after a step of an LSTM.

    `hx`: both before it. The rows of weights are those of the input gate, the forget gate, the cell
    and the output gate, as PyTorch has them. `dt.scan` does steps of it. `w_ih`, `b_ih`: weight and
    bias of the input; `w_hh`, `b_hh`: of the hidden state.
    Shapes: input (..., i), states (..., n), w_ih (4 n, i), w_hh (4 n, n), biases (4 n,).
    Dtypes: floats, one of all.
    Raises: ShapeError, DTypeError.
    Source: Hochreiter, Schmidhuber, "Long short-term memory", 1997; Gers et al., 2000.

    >>> import dovetail as dt
    >>> x, h, w = (dt.ones(s, device="reference") for s in ((1, 2), (1, 1), (4, 2)))
    >>> h, c = dt.nn.functional.lstm_cell(x, (h, h), w, w[:, :1])
    >>> round(h.item(), 4), round(c.item(), 4)
    (0.9109, 1.9004)
    """
    weights = Weights(w_ih, w_hh, b_ih, b_hh)
    h, c = cell("lstm_cell", "LSTM", input, hx, weights)
    return h, c


def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor,
    b_ih: Tensor | None = None, b_hh: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The hidden state after a step of a GRU.

    The rows of weights are those of the reset gate, the update gate and the new state. `hx`: the
    hidden state before it. `w_ih`, `b_ih`: weight and bias of the input; `w_hh`, `b_hh`: of the
    hidden state.
    Shapes: input (..., i), hx (..., n), w_ih (3 n, i), w_hh (3 n, n), biases (3 n,).
    Dtypes: floats, one of all.
    Raises: ShapeError, DTypeError.
    Source: Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014; the reset
    gate is applied after the product, as PyTorch and cuDNN do.

    >>> import dovetail as dt
    >>> x, h, w = (dt.ones(s, device="reference") for s in ((1, 2), (1, 1), (3, 2)))
    >>> round(dt.nn.functional.gru_cell(x, h, w, w[:, :1]).item(), 4)
    0.9997
    """
    return cell("gru_cell", "GRU", input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh))[0]


def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor,
    b_ih: Tensor | None = None, b_hh: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The hidden state after a step: the tanh of both products and biases.

    `hx`: the hidden state before it. `w_ih`, `b_ih`: weight and bias of the input; `w_hh`, `b_hh`:
    of the hidden state.
    Shapes: input (..., i), hx (..., n), w_ih (n, i), w_hh (n, n), biases (n,).
    Dtypes: floats, one of all.
    Raises: ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> x, h, w = (dt.ones(s, device="reference") for s in ((1, 2), (1, 1), (1, 2)))
    >>> round(dt.nn.functional.rnn_tanh_cell(x, h, w, w[:, :1]).item(), 4)
    0.9951
    """
    return cell("rnn_tanh_cell", "RNN_TANH", input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh))[0]


def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor,
    b_ih: Tensor | None = None, b_hh: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The hidden state after a step: both products and biases, and 0 where that is below 0.

    `hx`: the hidden state before it. `w_ih`, `b_ih`: weight and bias of the input; `w_hh`, `b_hh`:
    of the hidden state.
    Shapes: input (..., i), hx (..., n), w_ih (n, i), w_hh (n, n), biases (n,).
    Dtypes: floats, one of all.
    Raises: ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> x, h, w = (dt.ones(s, device="reference") for s in ((1, 2), (1, 1), (1, 2)))
    >>> dt.nn.functional.rnn_relu_cell(x, h, w, w[:, :1]).item()
    3.0
    """
    return cell("rnn_relu_cell", "RNN_RELU", input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh))[0]


def cell(name: str, mode: str, x: Tensor, state: State, w: Weights) -> State:
    """The state after a step of a kind, for what is called `name`."""
    require_fitting(name, mode, x, state, w)
    return _step(mode, x, state, w)


@widen_halves
def _step(mode: str, x: Tensor, state: State, w: Weights) -> State:
    return _plain_step(mode, _projected(x, w, mode), state, w)


def require_fitting(name: str, mode: str, x: Tensor, state: State, w: Weights) -> None:
    """Raises where an input and states do not fit the weights."""
    gates = GATES[mode]
    if (
        w.ih.ndim != 2
        or w.hh.ndim != 2
        or not w.ih.shape[0] == w.hh.shape[0] == gates * (w.hh.shape[0] // gates)
    ):
        raise dt.ShapeError(
            f"{name}: weights of shapes {w.ih.shape} and {w.hh.shape}: give ({gates} * n, inputs) "
            f"and ({gates} * n, n)"
        )
    n = w.hh.shape[0] // gates
    if not x.ndim or x.shape[-1] != w.ih.shape[1]:
        raise dt.ShapeError(
            f"{name}: input of shape {x.shape}, where weights of shape {w.ih.shape} want "
            f"(..., {w.ih.shape[1]})"
        )
    wanted = w.hh.shape[1], *([n] if mode == "LSTM" else [])
    for what, s, size in zip("hc", state, wanted, strict=False):
        if s.shape != (*x.shape[:-1], size):
            raise dt.ShapeError(
                f"{name}: {what} of shape {s.shape}, where input of shape {x.shape} and weights of "
                f"shape {w.hh.shape} want {(*x.shape[:-1], size)}"
            )
    for what, s in zip(("w_hh", "h", "c"), (w.hh, *state), strict=False):
        if s.dtype is not x.dtype:
            raise dt.DTypeError(
                f"{name}: input is {x.dtype}, and {what} is {s.dtype}; use astype, or module.to"
            )


def _projected(x: Tensor, w: Weights, mode: str) -> Tensor:
    """The input's part of the gates; with both biases, but for GRU, where one comes later."""
    made = x @ w.ih.mT
    if w.bias_ih is not None:
        made = made + w.bias_ih
    return made if w.bias_hh is None or mode == "GRU" else made + w.bias_hh


def _plain_step(mode: str, x: Tensor, state: State, w: Weights) -> State:
    """The state after a step, given the input's part of the gates."""
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
def layer(x: Tensor, state: State, weights: Weights, how: How) -> tuple[Tensor, State]:
    """What each step gives, and the state after the last, of a layer in one direction.

    `x`: (rows, features), the rows of one step after those of the other.
    """
    if is_mapping():  # kernels with loops are no functions of one example
        return _plain(x, state, weights, how)
    initial = (*state, None) if len(state) == 1 else state
    out, *last = _Layer.apply(x, *initial, *weights, how)
    return out, tuple(last)


def _order(how: How) -> list[slice]:
    """The rows of each step, in the order in which they are done."""
    found, start = [], 0
    for n in how.sizes:
        found.append(slice(start, start + n))
        start += n
    return found[::-1] if how.reverse else found


class _Carried:
    """A state that is handed on, with as many rows as a step has.

    Sequences that begin have theirs from the `ends`; those that end leave theirs.
    """

    def __init__(self, ends: Tensor, n: int) -> None:
        self.ends, self.now = ends, ends[:n]
        self._left: list[Tensor] = []

    def at(self, n: int) -> Tensor:
        """With n rows."""
        have = self.now.shape[0]
        if n < have:
            self._left.append(self.now[n:])
            self.now = self.now[:n]
        elif n > have:
            self.now = dt.concat([self.now, self.ends[have:n]])
        return self.now

    def last(self) -> Tensor:
        """Of all sequences, after their last step."""
        return dt.concat([self.now, *self._left[::-1]]) if self._left else self.now


def _plain(x: Tensor, state: State, weights: Weights, how: How) -> tuple[Tensor, State]:
    """The same in tensor operations alone, which is differentiated as often as one likes."""
    order, projected = _order(how), _projected(x, weights, how.mode)
    n = order[0].stop - order[0].start
    carried, made = [_Carried(s, n) for s in state], []
    for rows in order:
        now = tuple(s.at(rows.stop - rows.start) for s in carried)
        now = _plain_step(how.mode, projected[rows], now, weights)
        made.append(now[0])
        for s, value in zip(carried, now, strict=True):
            s.now = value
    return dt.concat(made[::-1] if how.reverse else made), tuple(s.last() for s in carried)


class _Layer(dt.autograd.Function):
    """A layer in one direction: the input's rows, h and c, five weights, and how."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> tuple[Tensor, ...]:
        x, h, c, *weights, how = given
        state = (h,) if c is None else (h, c)
        with products(x):
            run = _Run(x, state, Weights(*weights), how)
            made = run.there()
        ctx.how = how
        ctx.save_for_backward(x, h, c, *weights, made[0], *run.kept())
        return made

    @staticmethod
    def backward(ctx: Any, *g: Tensor) -> tuple[Tensor | None, ...]:
        x, h, c, *more = ctx.saved_tensors
        weights, kept = Weights(*more[:5]), more[5:]
        if dt.is_grad_enabled() or is_mapping():
            return (*_deeper(ctx, g), None)
        state = (h,) if c is None else (h, c)
        with products(x):
            run = _Run(x, state, weights, ctx.how, *kept)
            return (*run.back(g, ctx.needs_input_grad), None)


def _deeper(ctx: Any, g: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
    """The gradients where they are to have gradients themselves."""
    given = ctx.saved_tensors[:8]
    there = [k for k, t in enumerate(given) if t is not None]

    def again(*tensors: Tensor) -> tuple[Tensor, ...]:
        every: list[Any] = [None] * len(given)
        for k, t in zip(there, tensors, strict=True):
            every[k] = t
        state = every[1:2] if every[2] is None else every[1:3]
        out, last = _plain(every[0], tuple(state), Weights(*every[3:]), ctx.how)
        return (out, *last)

    found = dt.func.vjp(again, *[given[k] for k in there])[1](*g)
    parts: list[Tensor | None] = [None] * len(given)
    for k, part in zip(there, found, strict=True):
        parts[k] = part
    return tuple(parts)


class _Run:
    """A layer's way there, and back, with what is kept for it: results, gates and cells."""

    def __init__(
        self, x: Tensor, state: State, weights: Weights, how: How,
        out: Tensor | None = None, gates: Tensor | None = None, cells: Tensor | None = None,
    ) -> None:  # fmt: skip
        self.x, self.state, self.weights, self.how = x, state, weights, how
        self.order, self.n = _order(how), weights.hh.shape[0] // GATES[how.mode]
        n = 4 * self.n if how.mode in ("LSTM", "GRU") else 0
        self.out = self._new(weights.hh.shape[1]) if out is None else out
        self.gates = self._new(n) if gates is None else gates
        self.cells = self._new(self.n if how.mode == "LSTM" else 0) if cells is None else cells

    def _new(self, columns: int, rows: int | None = None) -> Tensor:
        shape = self.x.shape[0] if rows is None else rows, columns
        return dt.empty(shape, dtype=self.x.dtype, device=self.x.device)

    def kept(self) -> tuple[Tensor, Tensor]:
        """What the way back needs besides what was given, and the result."""
        return self.gates, self.cells

    def _carried(self, ends: Sequence[Tensor], at: slice) -> list[_Carried]:
        return [_Carried(s, at.stop - at.start) for s in ends]

    # --- there

    def there(self) -> tuple[Tensor, ...]:
        """The results, and the state in the end."""
        w = self.weights
        across = dt.copy(w.ih.mT), dt.copy(w.hh.mT)
        x = _projected(self.x, w._replace(ih=across[0].mT), self.how.mode)
        carried = self._carried(self.state, self.order[0])
        step = _THERE[self.how.mode]
        for rows in self.order:
            state = tuple(s.at(rows.stop - rows.start) for s in carried)
            now = step(self, rows, x[rows], state[0] @ across[1], state)
            for s, value in zip(carried, now, strict=True):
                s.now = value
        return (self.out, *[dt.copy(s.last()) for s in carried])

    def lstm(self, rows: slice, x: Tensor, y: Tensor, state: State) -> State:
        """The state after these rows of an LSTM, and what is kept of them."""
        h, c = self.out[rows], self.cells[rows]
        if self.weights.hr is None:
            lstm_step(self.gates[rows], c, h, x, y, state[1])
            return h, c
        whole = self._new(self.n, rows.stop - rows.start)
        lstm_step(self.gates[rows], c, whole, x, y, state[1])
        h[...] = whole @ dt.copy(self.weights.hr.mT)
        return h, c

    def gru(self, rows: slice, x: Tensor, y: Tensor, state: State) -> State:
        """The same for a GRU."""
        h = self.out[rows]
        gru_step(self.gates[rows], h, x, y, self._bias(), state[0])
        return (h,)

    def _bias(self) -> Tensor:
        if self.weights.bias_hh is not None:
            return self.weights.bias_hh
        shape = self.weights.hh.shape[0]
        return dt.zeros(shape, dtype=self.x.dtype, device=self.x.device)

    def rnn(
        self, activation: Callable[[Tensor], Tensor], rows: slice, x: Tensor, y: Tensor,
        state: State,
    ) -> State:  # fmt: skip
        """The same for a simple one."""
        h = self.out[rows]
        h[...] = activation(x + y)
        return (h,)

    # --- back

    def back(self, g: Sequence[Tensor], needs: Sequence[bool]) -> list[Tensor | None]:
        """The gradients of x, h, c and the five weights, of those of the results."""
        w, before = self.weights, self._before()
        rows_of = w.hh.shape[0]
        self.made = self._new(rows_of)  # gradients of the gates, by the input's product,
        self.other = self._new(rows_of) if self.how.mode == "GRU" else self.made  # and the state's
        self.whole = None if w.hr is None else self._new(w.hh.shape[1])
        ends = [*g[1:]]
        if self.how.mode == "GRU":  # a part of the gradient goes past the product
            ends.append(dt.zeros_like(ends[0]))
        carried = self._carried(ends, self.order[-1])
        step = _BACK[self.how.mode]
        for rows, state in zip(self.order[::-1], before[::-1], strict=True):
            slopes = tuple(s.at(rows.stop - rows.start) for s in carried)
            now = step(self, rows, state, g[0][rows], slopes)
            for s, value in zip(carried, now, strict=True):
                s.now = value
        return self._gathered(before, [s.last() for s in carried], needs)

    def _before(self) -> list[State]:
        """The state before each step, in order."""
        carried, found = self._carried(self.state, self.order[0]), []
        for rows in self.order:
            found.append(tuple(s.at(rows.stop - rows.start) for s in carried))
            for s, every in zip(carried, (self.out, self.cells), strict=False):
                s.now = every[rows]
        return found

    def lstm_back(self, rows: slice, before: State, g: Tensor, slopes: State) -> State:
        """The gradients of the state before these rows of an LSTM; those of gates are kept."""
        (h, c), w = slopes, self.weights
        if self.whole is not None:
            assert w.hr is not None
            self.whole[rows] = g + h
            g, h = self.whole[rows] @ w.hr, dt.zeros_like(c)
        to = self._new(self.n, rows.stop - rows.start)
        lstm_back(self.made[rows], to, self.gates[rows], self.cells[rows], before[1], g, h, c)
        return self.made[rows] @ w.hh, to

    def gru_back(self, rows: slice, before: State, g: Tensor, slopes: State) -> State:
        """The same for a GRU: through the product, and past it."""
        to = self._new(self.n, rows.stop - rows.start)
        gates, made, other = self.gates[rows], self.made[rows], self.other[rows]
        gru_back(made, other, to, gates, before[0], g, *slopes)
        return other @ self.weights.hh, to

    def rnn_back(
        self, slope: Callable[[Tensor], Tensor], rows: slice, before: State, g: Tensor,
        slopes: State,
    ) -> State:  # fmt: skip
        """The same for a simple one, whose slope its result tells."""
        self.made[rows] = (g + slopes[0]) * slope(self.out[rows])
        return (self.made[rows] @ self.weights.hh,)

    def _gathered(
        self, before: Sequence[State], last: list[Tensor], needs: Sequence[bool]
    ) -> list[Tensor | None]:
        w, made, other = self.weights, self.made, self.other
        if self.how.mode == "GRU":
            last = [last[0] + last[1]]
        found: list[Tensor | None] = [None] * 8
        if needs[0]:
            found[0] = made @ w.ih
        found[1 : 1 + len(last)] = last
        if needs[3]:
            found[3] = made.mT @ self.x
        if needs[4]:
            found[4] = other.mT @ self._states_before(before)
        if needs[5]:
            found[5] = dt.sum(made, axis=0)
        if needs[6]:
            found[6] = dt.sum(other, axis=0)
        if needs[7] and self.whole is not None:
            found[7] = self.whole.mT @ (self.gates[:, 3 * self.n :] * dt.tanh(self.cells))
        return found

    def _states_before(self, before: Sequence[State]) -> Tensor:
        """The state before each row."""
        n = self.how.sizes[0]
        if n == self.how.sizes[-1]:
            h = self.state[0]
            parts = [self.out[n:], h] if self.how.reverse else [h, self.out[: self.x.shape[0] - n]]
            return dt.concat(parts)
        return dt.concat([s[0] for s in (before[::-1] if self.how.reverse else before)])


_THERE: dict[str, Callable[..., State]] = {
    "LSTM": _Run.lstm, "GRU": _Run.gru,
    "RNN_TANH": lambda run, *given: run.rnn(dt.tanh, *given),
    "RNN_RELU": lambda run, *given: run.rnn(dt.relu, *given),
}  # fmt: skip
_BACK: dict[str, Callable[..., State]] = {
    "LSTM": _Run.lstm_back, "GRU": _Run.gru_back,
    "RNN_TANH": lambda run, *given: run.rnn_back(lambda h: 1 - h * h, *given),
    "RNN_RELU": lambda run, *given: run.rnn_back(lambda h: dt.astype(h > 0, h.dtype), *given),
}  # fmt: skip
