"""Recurrent layers, in one direction or in both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import dovetail as dt

from .table import OperatorCall, register_operator

Tensor = dt.Tensor
States: TypeAlias = tuple[Tensor, ...]
Step: TypeAlias = Callable[[Tensor, States], States]
UNROLLED_STEPS_MAX = 16  # longer sequences are one loop


def _find_activation(
    name: str, alpha: float | None, beta: float | None
) -> Callable[[Tensor], Tensor]:
    """Return an activation by name, with parameters or defaults.

    Raises: UnsupportedError if unknown.
    """
    a = (
        {
            "leakyrelu": 0.01,
            "hardsigmoid": 0.2,
            "elu": 1.0,
            "scaledtanh": 1.0,
            "affine": 1.0,
            "thresholdedrelu": 1.0,
        }.get(name.lower(), 0.0)
        if alpha is None
        else alpha
    )
    b = {"hardsigmoid": 0.5, "scaledtanh": 1.0}.get(name.lower(), 0.0) if beta is None else beta
    functions: dict[str, Callable[[Tensor], Tensor]] = {
        "relu": dt.relu,
        "tanh": dt.tanh,
        "sigmoid": dt.sigmoid,
        "affine": lambda x: x * a + b,
        "leakyrelu": lambda x: dt.where(x < 0, x * a, x),
        "thresholdedrelu": lambda x: dt.where(x >= a, x, 0.0),
        "scaledtanh": lambda x: dt.tanh(x * b) * a,
        "hardsigmoid": lambda x: dt.clip(x * a + b, 0.0, 1.0),
        "elu": lambda x: dt.where(x < 0, dt.expm1(x) * a, x),
        "softsign": lambda x: x / (dt.abs(x) + 1.0),
        "softplus": lambda x: dt.logaddexp(x, 0.0),
    }
    if name.lower() not in functions:
        raise dt.UnsupportedError(f"the activation {name!r} is not supported")
    return functions[name.lower()]


def _find_activations(call: OperatorCall, names: Sequence[str], directions: int) -> list[list[Any]]:
    """Return the activations of each direction; inputs are clipped if the node says so."""
    requested = call.get("activations", list(names) * directions)
    alphas, betas = list(call.get("activation_alpha", [])), list(call.get("activation_beta", []))
    if len(requested) != len(names) * directions:
        raise dt.ArgumentError(
            f"{call.op}: {directions} directions need {len(names) * directions} activations, got "
            f"{len(requested)}"
        )
    functions = [
        _find_activation(
            n, alphas[i] if i < len(alphas) else None, betas[i] if i < len(betas) else None
        )
        for i, n in enumerate(requested)
    ]
    clip = call.get("clip")
    if clip is not None:
        functions = [_clip_input(f, clip) for f in functions]
    return [functions[i : i + len(names)] for i in range(0, len(functions), len(names))]


def _clip_input(f: Callable[[Tensor], Tensor], clip: float) -> Callable[[Tensor], Tensor]:
    """Return `f` with its argument limited to +-clip."""
    return lambda x: f(dt.clip(x, -clip, clip))


def _run_direction(
    step: Step, xs: Tensor, first: States, lengths: Tensor | None, backwards: bool
) -> tuple[Tensor, States]:
    """Run a layer in one direction; return outputs (time, batch, hidden), and the last states."""
    count = xs.shape[0]
    times = dt.arange(count, device=xs.device)
    if backwards:
        xs = dt.flip(xs, axis=0) if lengths is None else _reverse_sequences(xs, lengths)

    def one(states: States, x: Any) -> tuple[States, Tensor]:
        """Return the next states and the output of one time step; ended sequences keep theirs."""
        new_states = step(x[0], states)
        if lengths is None:
            return new_states, new_states[0]
        alive = dt.expand_dims(x[1] < lengths, axis=1)
        masked = tuple(dt.where(alive, a, b) for a, b in zip(new_states, states, strict=True))
        return masked, dt.where(alive, new_states[0], 0.0)

    if count <= UNROLLED_STEPS_MAX:
        rows, states = [], first
        for t in range(count):
            states, y = one(states, (xs[t], times[t]))
            rows.append(y)
        ys = (
            dt.stack(rows, axis=0)
            if rows
            else dt.zeros((0, *first[0].shape), dtype=xs.dtype, device=xs.device)
        )
    else:
        states, ys = dt.scan(one, first, (xs, times))
    if backwards:
        ys = dt.flip(ys, axis=0) if lengths is None else _reverse_sequences(ys, lengths)
    return ys, states


def _reverse_sequences(xs: Tensor, lengths: Tensor) -> Tensor:
    """Reverse each sequence within its length."""
    k = dt.expand_dims(dt.arange(xs.shape[0], device=xs.device), axis=1)
    at = dt.where(k < lengths, lengths - 1 - k, k)
    return dt.take_along_axis(xs, dt.broadcast_to(dt.expand_dims(at, axis=2), xs.shape), axis=0)


def _run_layer(
    call: OperatorCall,
    x: Tensor,
    w: Tensor,
    lengths: Tensor | None,
    initial: Sequence[Tensor | None],
    make: Callable[[int], Step],
) -> tuple[Tensor, ...]:
    """Run a layer in all its directions; return (outputs, *last states), as the layout says.

    `initial`: the first states, or None for zeros. `make`: returns the step of a direction.
    """
    batched = call.get("layout", 0) == 1
    xs = x.permute_dims((1, 0, 2)) if batched else x
    starts = [s.permute_dims((1, 0, 2)) if s is not None and batched else s for s in initial]
    hidden = call.get("hidden_size")
    how = call.get("direction", "forward")
    zero = dt.zeros((xs.shape[1], hidden), dtype=x.dtype, device=x.device)
    along = None if lengths is None else lengths.astype(dt.int64)
    outs, lasts = [], []
    for d in range(w.shape[0]):
        first = tuple(zero if s is None else s[d] for s in starts)
        ys, last = _run_direction(make(d), xs, first, along, how == "reverse" or d == 1)
        outs.append(ys)
        lasts.append(last)
    y = dt.stack(outs, axis=1)  # time, direction, batch, hidden
    states = [dt.stack([last[i] for last in lasts], axis=0) for i in range(len(initial))]
    if batched:
        return (y.permute_dims((2, 0, 1, 3)), *(s.permute_dims((1, 0, 2)) for s in states))
    return (y, *states)


def _split_gates(x: Tensor, count: int, hidden: int) -> list[Tensor]:
    """Split the last axis into `count` parts of `hidden` elements."""
    return [x[..., k * hidden : (k + 1) * hidden] for k in range(count)]


@register_operator("RNN", folds=False)
def _rnn(
    call: OperatorCall,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    h: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """Run a simple recurrent layer; return all outputs and the last state."""
    hidden = call.get("hidden_size", r.shape[-1])
    call.attributes.setdefault("hidden_size", hidden)
    fs = _find_activations(call, ("Tanh",), w.shape[0])

    def make(d: int) -> Step:
        """Return the step of direction `d`."""
        wt, rt = w[d].permute_dims((1, 0)), r[d].permute_dims((1, 0))
        bias = None if b is None else b[d, :hidden] + b[d, hidden:]

        def step(x: Tensor, states: States) -> States:
            """Return the next state."""
            z = x @ wt + states[0] @ rt
            return (fs[d][0](z if bias is None else z + bias),)

        return step

    return _run_layer(call, x, w, lengths, (h,), make)


@register_operator("GRU", folds=False)
def _gru(
    call: OperatorCall,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    h: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """Run a gated recurrent unit; return all outputs and the last state."""
    n = call.get("hidden_size", r.shape[-1])
    call.attributes.setdefault("hidden_size", n)
    fs = _find_activations(call, ("Sigmoid", "Tanh"), w.shape[0])
    late = call.get("linear_before_reset", 0)

    def make(d: int) -> Step:
        """Return the step of direction `d`."""
        wt, rt = w[d].permute_dims((1, 0)), r[d].permute_dims((1, 0))
        zero = dt.zeros(6 * n, dtype=x.dtype, device=x.device)
        wb, rb = (zero if b is None else b[d])[: 3 * n], (zero if b is None else b[d])[3 * n :]
        f, g = fs[d]

        def step(x: Tensor, states: States) -> States:
            """Return the next state."""
            h = states[0]
            xz, xr, xh = _split_gates(x @ wt + wb, 3, n)
            hz, hr = _split_gates(h @ rt[:, : 2 * n] + rb[: 2 * n], 2, n)
            z, reset = f(xz + hz), f(xr + hr)
            if late:
                new = g(xh + reset * (h @ rt[:, 2 * n :] + rb[2 * n :]))
            else:
                new = g(xh + (reset * h) @ rt[:, 2 * n :] + rb[2 * n :])
            return ((1.0 - z) * new + z * h,)

        return step

    return _run_layer(call, x, w, lengths, (h,), make)


@register_operator("LSTM", folds=False)
def _lstm(
    call: OperatorCall,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    h: Tensor | None = None,
    c: Tensor | None = None,
    p: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """Run a long short-term memory layer; return all outputs, last state and last cell."""
    n = call.get("hidden_size", r.shape[-1])
    call.attributes.setdefault("hidden_size", n)
    fs = _find_activations(call, ("Sigmoid", "Tanh", "Tanh"), w.shape[0])

    def make(d: int) -> Step:
        """Return the step of direction `d`."""
        wt, rt = w[d].permute_dims((1, 0)), r[d].permute_dims((1, 0))
        bias = None if b is None else b[d, : 4 * n] + b[d, 4 * n :]
        peep = None if p is None else _split_gates(p[d], 3, n)
        f, g, last = fs[d]

        def step(x: Tensor, states: States) -> States:
            """Return the next state and cell."""
            h, c = states
            gates = x @ wt + h @ rt
            i, o, forget, new = _split_gates(gates if bias is None else gates + bias, 4, n)
            if peep is not None:
                i, forget = i + peep[0] * c, forget + peep[2] * c
            input_gate = f(1.0 * i) if call.get("input_forget", 0) else None
            keep = f(forget) if input_gate is None else 1.0 - input_gate
            c = keep * c + f(i) * g(new)
            o = f(o if peep is None else o + peep[1] * c)
            return o * last(c), c

        return step

    return _run_layer(call, x, w, lengths, (h, c), make)
