"""The kernels of a recurrent layer's steps, forward and backward, which `recurrent` launches."""

# mypy: disable-error-code="attr-defined, index"
# because mypy does not know the language of kernels

from __future__ import annotations

import dovetail as dt

__all__ = ["gru_back", "gru_step", "lstm_back", "lstm_step"]


@dt.kernel
def lstm_step(
    gates: dt.Out,
    c: dt.Out,
    h: dt.Out,
    x: dt.In,
    bias_ih: dt.In,
    bias_hh: dt.In,
    y: dt.In,
    before: dt.In,
) -> None:
    """Write `gates`, `c`, `h` of an LSTM step; `x`, `y`: the products of input and state."""
    rows, n = c.shape
    for b, j in dt.grid(rows, n):
        i = dt.sigmoid(x[b, j] + bias_ih[j] + bias_hh[j] + y[b, j])
        f = dt.sigmoid(x[b, n + j] + bias_ih[n + j] + bias_hh[n + j] + y[b, n + j])
        g = dt.tanh(x[b, 2 * n + j] + bias_ih[2 * n + j] + bias_hh[2 * n + j] + y[b, 2 * n + j])
        o = dt.sigmoid(x[b, 3 * n + j] + bias_ih[3 * n + j] + bias_hh[3 * n + j] + y[b, 3 * n + j])
        new = f * before[b, j] + i * g
        c[b, j] = new
        h[b, j] = o * dt.tanh(new)
        gates[b, j] = i
        gates[b, n + j] = f
        gates[b, 2 * n + j] = g
        gates[b, 3 * n + j] = o


@dt.kernel
def lstm_back(
    gate_grads: dt.Out,
    cell_grad: dt.InOut,
    gates: dt.In,
    c: dt.In,
    before: dt.In,
    g: dt.In,
    slope: dt.In,
) -> None:
    """Compute the gradients of gates; replace that of the cells by that of earlier cells."""
    rows, n = c.shape
    for b, j in dt.grid(rows, n):
        i = gates[b, j]
        f = gates[b, n + j]
        k = gates[b, 2 * n + j]
        o = gates[b, 3 * n + j]
        t = dt.tanh(c[b, j])
        of_h = g[b, j] + slope[b, j]
        of_c = cell_grad[b, j] + of_h * o * (1 - t * t)
        gate_grads[b, j] = of_c * k * i * (1 - i)
        gate_grads[b, n + j] = of_c * before[b, j] * f * (1 - f)
        gate_grads[b, 2 * n + j] = of_c * i * (1 - k * k)
        gate_grads[b, 3 * n + j] = of_h * t * o * (1 - o)
        cell_grad[b, j] = of_c * f


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
    input_gate_grads: dt.Out,
    state_gate_grads: dt.Out,
    direct_grad: dt.InOut,
    gates: dt.In,
    before: dt.In,
    g: dt.In,
    slope: dt.In,
) -> None:
    """Compute `input_gate_grads` and `state_gate_grads`; replace the state's `direct_grad`."""
    rows, n = before.shape
    for b, j in dt.grid(rows, n):
        r = gates[b, j]
        z = gates[b, n + j]
        new = gates[b, 2 * n + j]
        of_h = g[b, j] + slope[b, j] + direct_grad[b, j]
        of_new = of_h * (1 - z) * (1 - new * new)
        of_r = of_new * gates[b, 3 * n + j] * r * (1 - r)
        of_z = of_h * (before[b, j] - new) * z * (1 - z)
        input_gate_grads[b, j] = of_r
        input_gate_grads[b, n + j] = of_z
        input_gate_grads[b, 2 * n + j] = of_new
        state_gate_grads[b, j] = of_r
        state_gate_grads[b, n + j] = of_z
        state_gate_grads[b, 2 * n + j] = of_new * r
        direct_grad[b, j] = of_h * z
