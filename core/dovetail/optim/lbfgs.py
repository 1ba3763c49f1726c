"""L-BFGS, a quasi-Newton method: it approximates second derivatives from the last gradients."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import dovetail as dt

from .line_search import LineSearch, LineSearchPoint
from .optimizer import Closure, Group, Optimizer, Parameters, State, check_minimums, number

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """L-BFGS: each call of `step(closure)` runs several iterations, which evaluate the loss again.

    - `lr`: the factor of a step without a line search, or of the first trial with one.
    - `max_iter`: the greatest number of iterations in a call.
    - `max_eval`: the greatest number of evaluations in a call. Default: 5/4 of `max_iter`.
    - `tolerance_grad`, `tolerance_change`: bounds of gradient and change below which a call ends.
    - `history_size`: the number of stored gradient differences.
    - `line_search_fn`: "strong_wolfe", or None for steps of `lr`.

    All parameters are in one group. It reads losses on the host, so `dt.jit` cannot capture it; the
    closure may be captured.
    Raises: ArgumentError, CaptureError.
    See also: `Adam`, `SGD`.
    Source: Nocedal and Wright, Numerical Optimization (2006), algorithm 7.4.

    >>> import dovetail as dt
    >>> w = dt.asarray([3.0, -2.0]).requires_grad_()
    >>> opt = dt.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     opt.zero_grad()
    ...     loss = ((w - 1) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> float(opt.step(closure)), [round(v, 3) for v in w.tolist()]
    (13.0, [1.0, 1.0])
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | dt.Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        options = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, options)

    def _check(self, group: Group) -> None:
        """Raise ArgumentError or DeviceError for bad options, groups or parameters."""
        check_minimums(
            self._name,
            group,
            lr=0.0,
            max_iter=1,
            max_eval=1,
            tolerance_grad=0.0,
            tolerance_change=0.0,
            history_size=1,
        )
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise dt.ArgumentError(
                f"{self._name}: line_search_fn must be 'strong_wolfe' or None, got "
                f"{group['line_search_fn']!r}"
            )
        if group.get("master_weights"):
            raise dt.ArgumentError(
                f"{self._name}: master_weights must be False, because a line search measures the "
                "loss of the rounded parameters; keep the parameters in float32"
            )
        if self.param_groups and group["params"] is not self._params:
            raise dt.ArgumentError(
                f"{self._name}: only one group of parameters is allowed; put all parameters in "
                "one group"
            )
        if len({(p.device, p.dtype) for p in group["params"]}) > 1:
            raise dt.DeviceError(
                f"{self._name}: all parameters must have the same device and dtype"
            )

    @property
    def _params(self) -> list[dt.Tensor]:
        """Return the parameters of the only group."""
        params: list[dt.Tensor] = self.param_groups[0]["params"]
        return params

    def _step(self, closure: Closure | None = None) -> Any:
        """Minimise the loss; return its first value. Raises: ArgumentError without a closure."""
        if closure is None:
            raise dt.ArgumentError(
                f"{self._name}.step: closure= must be given; it computes the loss again and calls "
                "backward()"
            )
        with dt.no_grad():
            return _Minimization(self.param_groups[0], self.state[self._params[0]], closure).run()

    def _export_state(self, p: dt.Tensor, state: State) -> State:
        """Return a shallow copy of the state."""
        return dict(state)

    def _import_value(self, number: object, name: str, p: dt.Tensor, x: Any) -> Any:
        """Return a copy of a state's value, also of a list; tensors in the compute dtype."""
        if isinstance(x, list):
            return [self._import_value(number, name, p, y) for y in x]
        if not isinstance(x, dt.Tensor):
            return copy.deepcopy(x)
        if x.ndim == 0:
            return float(x)
        if x.size != sum(q.size for q in self._params):
            raise dt.ArgumentError(
                f"{self._name}.load_state_dict: {name} must have "
                f"{sum(q.size for q in self._params)} elements, like the parameters, got {x.size}"
            )
        return dt.copy(x.detach().to(p.device).astype(p.dtype.compute))


class _Minimization:
    """The iterations of one call of `step`."""

    def __init__(self, group: Group, state: State, closure: Closure) -> None:
        self.group, self.state, self.params = group, state, group["params"]
        self.closure, self.evaluations = closure, 0
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

    def _compute_loss(self) -> Any:
        """Call the closure with gradients recorded, count the evaluation, and return the loss."""
        self.evaluations += 1
        self.state["func_evals"] += 1
        with dt.enable_grad():
            return self.closure()

    def _gradient(self) -> dt.Tensor:
        """Return all gradients as one evaluated vector, with zeros for parameters without one."""
        grads = [
            dt.zeros((p.size,), dtype=p.dtype, device=p.device)
            if p.grad is None
            else (p.grad if p.grad.layout is dt.strided else p.grad.to_dense()).reshape(-1)
            for p in self.params
        ]
        flat = (dt.concat(grads) if len(grads) > 1 else grads[0]).astype(grads[0].dtype.compute)
        dt.evaluate(flat)
        return flat

    def _set_parameters(self, begin: Sequence[dt.Tensor], t: float, d: dt.Tensor) -> None:
        """Set the parameters to `begin + t * d`."""
        offset = 0
        for p, x in zip(self.params, begin, strict=True):
            p.detach().copy_(x + d[offset : offset + p.size].reshape(p.shape) * t)
            offset += p.size

    def run(self) -> Any:
        """Minimize the loss and return its value before the first iteration."""
        group, state = self.group, self.state
        first = self._compute_loss()
        loss, flat = float(first), self._gradient()
        if _read_max_magnitude(flat) <= group["tolerance_grad"]:
            return first
        for n in range(1, group["max_iter"] + 1):
            d = self._next_direction(flat)
            before, state["prev_loss"], state["prev_flat_grad"] = loss, loss, flat
            t = number(group["lr"])
            if state["n_iter"] == 1:
                t *= min(1.0, 1.0 / float(dt.sum(dt.abs(flat))))
            slope = _read_dot(flat, d)
            state["d"], state["t"] = d, t
            if slope > -group["tolerance_change"]:
                break
            p = self._step_along(
                LineSearchPoint(0.0, loss, flat, slope), t, d, n == group["max_iter"]
            )
            loss, flat, state["t"] = p.loss, p.gradient, p.t
            if n == group["max_iter"] or self.evaluations >= group["max_eval"]:
                break
            if _read_max_magnitude(flat) <= group["tolerance_grad"]:
                break
            if _read_max_magnitude(d) * abs(p.t) <= group["tolerance_change"]:
                break
            if abs(loss - before) < group["tolerance_change"]:
                break
        return first

    def _step_along(
        self, start: LineSearchPoint, t: float, d: dt.Tensor, is_last: bool
    ) -> LineSearchPoint:
        """Move the parameters along `d`, by a line search if one is set; return the new point.

        `is_last`: do not evaluate the loss there, unless a line search does.
        """
        begin = [dt.copy(p.detach()) for p in self.params]
        dt.evaluate(*begin)

        def evaluate(t: float) -> LineSearchPoint:
            """Set the parameters at step `t` and return the loss and slope there."""
            self._set_parameters(begin, t, d)
            loss, flat = float(self._compute_loss()), self._gradient()
            return LineSearchPoint(t, loss, flat, _read_dot(flat, d))

        if self.group["line_search_fn"] is not None:
            search = LineSearch(evaluate, start, self.group["max_eval"] - self.evaluations)
            point = search.run(t, _read_max_magnitude(d), self.group["tolerance_change"])
            self._set_parameters(begin, point.t, d)
            return point
        if is_last:
            self._set_parameters(begin, t, d)
            return start._replace(t=t)
        return evaluate(t)

    def _next_direction(self, flat: dt.Tensor) -> dt.Tensor:
        """Count an iteration, update the history; return the quasi-Newton direction of descent."""
        state = self.state
        state["n_iter"] += 1
        if state["n_iter"] == 1:
            state["old_dirs"], state["old_stps"], state["ro"] = [], [], []
            state["H_diag"] = 1.0
            return _evaluate(-flat)
        self._update_history(flat)
        pairs = [*zip(state["old_dirs"], state["old_stps"], state["ro"], strict=True)]
        q, alphas = -flat, []
        for y, s, ro in pairs[::-1]:
            alphas.append(_read_dot(s, q) * ro)
            q = q - y * alphas[-1]
        d = q * state["H_diag"]
        for (y, s, ro), a in zip(pairs, alphas[::-1], strict=True):
            d = d + s * (a - _read_dot(y, d) * ro)
        return _evaluate(d)

    def _update_history(self, flat: dt.Tensor) -> None:
        """Append the last step's changes to the history, unless the curvature is too small."""
        state = self.state
        y, s = _evaluate(flat - state["prev_flat_grad"]), _evaluate(state["d"] * state["t"])
        ys = _read_dot(y, s)
        if ys <= 1e-10:
            return
        for name, x in (("old_dirs", y), ("old_stps", s), ("ro", 1.0 / ys)):
            if len(state[name]) == self.group["history_size"]:
                state[name].pop(0)
            state[name].append(x)
        state["H_diag"] = ys / _read_dot(y, y)


def _evaluate(x: dt.Tensor) -> dt.Tensor:
    """Evaluate a tensor and return it."""
    dt.evaluate(x)
    return x


def _read_dot(a: dt.Tensor, b: dt.Tensor) -> float:
    """Return the inner product, read by the host."""
    return float(dt.sum(a * b))


def _read_max_magnitude(x: dt.Tensor) -> float:
    """Return the largest absolute value, read by the host."""
    return float(dt.max(dt.abs(x)))
