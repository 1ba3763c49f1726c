"""The kernels of a recurrent layer's steps, forward and backward, which `recurrent` launches."""

# mypy: disable-error-code="attr-defined, index"
# because mypy does not know the language of kernels

from __future__ import annotations

import dovetail as dt

__all__ = ["gru_back", "gru_step", "lstm_back", "lstm_step"]


@dt.kernel
def lstm_step(gates: dt.Out, c: dt.Out, h: dt.Out, x: dt.In, y: dt.In, before: dt.In) -> None:
    """Compute a step of an LSTM from the input's part `x` and the state's part `y` of its gates."""
    rows, n = c.shape
    for b, j in dt.grid(rows, n):
        i = dt.sigmoid(x[b, j] + y[b, j])
        f = dt.sigmoid(x[b, n + j] + y[b, n + j])
        g = dt.tanh(x[b, 2 * n + j] + y[b, 2 * n + j])
        o = dt.sigmoid(x[b, 3 * n + j] + y[b, 3 * n + j])
        new = f * before[b, j] + i * g
        c[b, j] = new
        h[b, j] = o * dt.tanh(new)
        gates[b, j] = i
        gates[b, n + j] = f
        gates[b, 2 * n + j] = g
        gates[b, 3 * n + j] = o


@dt.kernel
def lstm_back(
    made: dt.Out,
    to: dt.Out,
    gates: dt.In,
    c: dt.In,
    before: dt.In,
    g: dt.In,
    slope: dt.In,
    slope_c: dt.In,
) -> None:
    """Compute the gradients of a step's gates (`made`) and of the cells before it (`to`)."""
    rows, n = c.shape
    for b, j in dt.grid(rows, n):
        i = gates[b, j]
        f = gates[b, n + j]
        k = gates[b, 2 * n + j]
        o = gates[b, 3 * n + j]
        t = dt.tanh(c[b, j])
        of_h = g[b, j] + slope[b, j]
        of_c = slope_c[b, j] + of_h * o * (1 - t * t)
        made[b, j] = of_c * k * i * (1 - i)
        made[b, n + j] = of_c * before[b, j] * f * (1 - f)
        made[b, 2 * n + j] = of_c * i * (1 - k * k)
        made[b, 3 * n + j] = of_h * t * o * (1 - o)
        to[b, j] = of_c * f


@dt.kernel
def gru_step(gates: dt.Out, h: dt.Out, x: dt.In, y: dt.In, bias: dt.In, before: dt.In) -> None:
    """Compute a step of a GRU; save both gates, the new state and the reset gate's operand."""
    rows, n = h.shape
    for b, j in dt.grid(rows, n):
        r = dt.sigmoid(x[b, j] + (y[b, j] + bias[j]))
        z = dt.sigmoid(x[b, n + j] + (y[b, n + j] + bias[n + j]))
        past = y[b, 2 * n + j] + bias[2 * n + j]
        new = dt.tanh(x[b, 2 * n + j] + r * past)
        h[b, j] = (1 - z) * new + z * before[b, j]
        gates[b, j] = r
        gates[b, n + j] = z
        gates[b, 2 * n + j] = new
        gates[b, 3 * n + j] = past


@dt.kernel
def gru_back(
    made: dt.Out,
    other: dt.Out,
    to: dt.Out,
    gates: dt.In,
    before: dt.In,
    g: dt.In,
    slope: dt.In,
    beside: dt.In,
) -> None:
    """Compute gradients of gates by input (`made`) and state (`other`), and past both (`to`)."""
    rows, n = before.shape
    for b, j in dt.grid(rows, n):
        r = gates[b, j]
        z = gates[b, n + j]
        new = gates[b, 2 * n + j]
        of_h = g[b, j] + slope[b, j] + beside[b, j]
        of_new = of_h * (1 - z) * (1 - new * new)
        of_r = of_new * gates[b, 3 * n + j] * r * (1 - r)
        of_z = of_h * (before[b, j] - new) * z * (1 - z)
        made[b, j] = of_r
        made[b, n + j] = of_z
        made[b, 2 * n + j] = of_new
        other[b, j] = of_r
        other[b, n + j] = of_z
        other[b, 2 * n + j] = of_new * r
        to[b, j] = of_h * z
