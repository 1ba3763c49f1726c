"""Update steps of optimisers."""

from __future__ import annotations

import dovetail as dt

from .table import OperatorCall, register_operator

Tensor = dt.Tensor
DOMAIN = "ai.onnx.preview.training"


@register_operator("Adagrad", domain=DOMAIN, folds=False)
def _adagrad(call: OperatorCall, rate: Tensor, t: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    """Return parameters and sums of squared gradients after one step of Adagrad."""
    n = len(inputs) // 3
    r = rate / (1.0 + t.astype(rate.dtype) * call.get("decay_factor", 0.0))
    xs, hs = [], []
    for x, g, h in zip(inputs[:n], inputs[n : 2 * n], inputs[2 * n :], strict=True):
        g = g + x * call.get("norm_coefficient", 0.0)
        h = h + g * g
        xs.append(x - r * g / (dt.sqrt(h) + call.get("epsilon", 1e-6)))
        hs.append(h)
    return (*xs, *hs)


@register_operator("Adam", domain=DOMAIN, folds=False)
def _adam(call: OperatorCall, rate: Tensor, t: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    """Return parameters and both moments after one step of Adam."""
    n, d = len(inputs) // 4, rate.dtype
    a, b = call.get("alpha", 0.9), call.get("beta", 0.999)
    steps = t.astype(d)
    r = dt.where(t > 0, rate * dt.sqrt(1.0 - dt.pow(b, steps)) / (1.0 - dt.pow(a, steps)), rate)
    xs, vs, hs = [], [], []
    for x, g, v, h in zip(
        inputs[:n], inputs[n : 2 * n], inputs[2 * n : 3 * n], inputs[3 * n :], strict=True
    ):
        g = g + x * call.get("norm_coefficient", 0.0)
        v, h = v * a + g * (1 - a), h * b + g * g * (1 - b)
        new = x - r * v / (dt.sqrt(h) + call.get("epsilon", 1e-6))
        xs.append(new * (1.0 - call.get("norm_coefficient_post", 0.0)))
        vs.append(v)
        hs.append(h)
    return (*xs, *vs, *hs)


@register_operator("Momentum", domain=DOMAIN, host=(1,), folds=False)
def _momentum(call: OperatorCall, rate: Tensor, t: object, *inputs: Tensor) -> tuple[Tensor, ...]:
    """Return parameters and velocities after one step with momentum, also Nesterov's."""
    n, a = len(inputs) // 3, call.get("alpha")
    b = call.get("beta") if call.number(t) > 0 else 1.0
    xs, vs = [], []
    for x, g, v in zip(inputs[:n], inputs[n : 2 * n], inputs[2 * n :], strict=True):
        g = g + x * call.get("norm_coefficient", 0.0)
        v = v * a + g * b
        xs.append(x - rate * (g + v * a if call.get("mode") == "nesterov" else v))
        vs.append(v)
    return (*xs, *vs)
