"""An optimizer whose state is divided between all workers (ZeRO, stage 1)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

import dovetail as dt
from dovetail.extend import arguments, is_capturing

from ..optim.optimizer import Closure, Optimizer
from .membership import current
from .packing import empty_vectors, pack, unpack

if TYPE_CHECKING:
    from .group import ProcessGroup

__all__ = ["ShardedOptimizer"]

OP = "parallel.ShardedOptimizer"
TAG = (1 << 19) - 1  # below those of gradients


class ShardedOptimizer(Optimizer):
    """An optimizer of which each worker has the state of a part of the parameters.

    - `optimizer`: an optimizer of all parameters, such as `optim.Adam`, before its first step.
    - `group`: the workers; None is `current()`.

    Each parameter belongs to one worker. `step` updates the parameters of this worker, and the
    workers exchange the results, so all have the bits that `optimizer` alone would compute. The
    state, for Adam twice the size of the parameters, takes the memory of one worker's part. All
    workers call `step` with the same gradients, as `value_and_grad` computes them.

    `state_dict()` is a collective call, too: it returns the state of all parameters on all workers.
    So `dt.checkpoint.save(..., group=group)` writes one file, which any number of workers loads,
    and also the plain optimizer.

    Raises: ArgumentTypeError for another object; ArgumentError for an optimizer that has stepped,
    one that updates all parameters together (LBFGS), and parameters on several devices. `step` and
    `state_dict` raise WorkerError. `step` raises ArgumentError if workers have gradients of
    different parameters, and CaptureError in a function captured by `dt.jit`.
    See also: `value_and_grad`, `dt.checkpoint.save`.

    >>> import dovetail as dt
    >>> w = dt.ones(2).requires_grad_()
    >>> opt = dt.parallel.ShardedOptimizer(dt.optim.Adam([w], lr=0.5))
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [0.5, 0.5]
    """

    def __init__(self, optimizer: Optimizer, group: ProcessGroup | None = None) -> None:
        self.optimizer = arguments.instance(OP, optimizer, "optimizer", Optimizer)
        kind = type(optimizer)
        if kind.step is not Optimizer.step or kind._step is not Optimizer._step:
            raise dt.ArgumentError(
                f"{OP}: optimizer must update each parameter by itself, got {kind.__name__}; use "
                "one such as optim.Adam or optim.SGD"
            )
        if optimizer.state:
            raise dt.ArgumentError(
                f"{OP}: optimizer must not have stepped; load a state by load_state_dict afterwards"
            )
        self.workers = current() if group is None else group
        self.owners: dict[dt.Tensor, int] = {}
        self._pre_hooks, self._post_hooks = {}, {}
        self.defaults = optimizer.defaults
        self._share_groups()
        self._assign_owners()

    def _share_groups(self) -> None:
        """Refer to the groups and the state of the optimizer."""
        self.param_groups, self.state = self.optimizer.param_groups, self.optimizer.state

    def _assign_owners(self) -> None:
        """Assign each new parameter, the largest first, to the worker that has least.

        Raises: ArgumentError for parameters on several devices.
        """
        params = self._params()
        devices = sorted({str(p.device) for p in params})
        if len(devices) > 1:
            raise dt.ArgumentError(
                f"{OP}: all parameters must be on one device, got {', '.join(devices)}"
            )
        loads = [0] * self.workers.size
        for p, owner in self.owners.items():
            loads[owner] += p.size
        for p in sorted(params, key=lambda p: -p.size):
            if p not in self.owners:
                self.owners[p] = owner = loads.index(min(loads))
                loads[owner] += p.size

    def _params(self) -> list[dt.Tensor]:
        """Return the parameters of all groups, in their order."""
        return [p for group in self.param_groups for p in group["params"]]

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Add a group of parameters with its own options; see `Optimizer.add_param_group`.

        - `param_group`: a dict with "params" and options by name.
        """
        self.optimizer.add_param_group(param_group)
        try:
            self._assign_owners()
        except dt.ArgumentError:
            self.optimizer.param_groups.pop()
            raise

    def _step(self, closure: Closure | None = None) -> Any:
        """Run the closure, update this worker's parameters, and exchange those with a gradient.

        All workers call it. Raises: CaptureError, ArgumentError.
        """
        if is_capturing():
            raise dt.CaptureError(
                f"{OP}: step must not be called in a captured function, because workers exchange "
                "parameters on the host; call it after the function"
            )
        loss = None
        if closure is not None:
            with dt.enable_grad():
                loss = closure()
        params = self._params()
        stepped = [p for p in params if p.grad is not None]
        self._check_agreement([p.grad is not None for p in params])
        others = [(p, p.grad) for p in stepped if self.owners[p] != self.workers.rank]
        self.optimizer.found_inf = self.found_inf
        for p, _ in others:
            p.grad = None
        try:
            self.optimizer.step()
        finally:
            for p, g in others:
                p.grad = g
        with dt.no_grad():
            self._exchange(stepped)
        return loss

    def _check_agreement(self, has_gradient: list[bool]) -> None:
        """Raise ArgumentError if workers have gradients of different parameters."""
        own = np.array([sum(has_gradient), crc32(bytes(has_gradient))], np.int64)
        for r, other in enumerate(self.workers.all_gather(own)):
            if (other != own).any():
                raise dt.ArgumentError(
                    f"{OP}: all workers must have gradients of the same parameters, got {own[0]} "
                    f"gradients on worker {self.workers.rank} and {other[0]} others on worker {r}; "
                    "set the grad of unused parameters to zeros"
                )

    def _exchange(self, params: list[dt.Tensor]) -> None:
        """Write the values that the owners have into the parameters of all workers."""
        workers = self.workers
        by_owner = {
            r: part
            for r in range(workers.size)
            if (part := [p for p in params if self.owners[p] == r])
        }
        peers = [r for r in range(workers.size) if r != workers.rank]
        own = by_owner.get(workers.rank, [])
        sends = [workers.send(x, r, TAG) for x in pack([p.detach() for p in own]) for r in peers]
        requests = {
            r: [workers.receive(x, r, TAG) for x in empty_vectors(by_owner[r])]
            for r in peers
            if r in by_owner
        }
        for r, arriving in requests.items():
            values = unpack([request.wait() for request in arriving], by_owner[r])
            for p, x in zip(by_owner[r], values, strict=True):
                p.copy_(x)
        for request in sends:
            request.wait()

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all parameters, and the groups; see `Optimizer.state_dict`.

        All workers call this together. Tensors of other workers' parameters are copies.
        Raises: WorkerError.
        """
        own = self.optimizer.state_dict()
        state: dict[int, Any] = {}
        for r in range(self.workers.size):
            state |= self._broadcast_state(own["state"], r)
        return {"state": {i: state[i] for i in sorted(state)}, "param_groups": own["param_groups"]}

    def _broadcast_state(self, own: dict[int, Any], src: int) -> dict[int, Any]:
        """Return the states by number of parameter that the worker `src` has, `own` there."""
        device = self._params()[0].device
        is_source = self.workers.rank == src
        values = [x for state in own.values() for x in state.values()]
        rows = [(number, name) for number, state in own.items() for name in state]
        text = json.dumps([[*row, _to_json(x)] for row, x in zip(rows, values, strict=True)])
        content = np.frombuffer(text.encode(), np.uint8)
        (size,) = self.workers.broadcast(np.array([len(content)]), src)
        if not is_source:
            content = np.empty(size, np.uint8)
        result: dict[int, Any] = {}
        likes: list[dt.Tensor] = []
        keys: list[tuple[int, str]] = []
        for number, name, value in json.loads(self.workers.broadcast(content, src).tobytes()):
            result.setdefault(number, {})[name] = value
            if isinstance(value, dict):
                likes.append(dt.empty(tuple(value["shape"]), dtype=value["dtype"], device=device))
                keys.append((number, name))
        own_tensors = [x.detach() for x in values if isinstance(x, dt.Tensor)]
        vectors = pack(own_tensors) if is_source else empty_vectors(likes)
        arrived = unpack([self.workers.broadcast(x, src) for x in vectors], likes)
        for (number, name), x in zip(keys, arrived, strict=True):
            result[number][name] = own[number][name] if is_source else x
        return result

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a copy of a state of all parameters, and keep the part of this worker.

        - `state_dict`: the result of `state_dict()` with any number of workers, or of the plain
          optimizer.

        Raises: ArgumentError if it does not fit; then nothing has been loaded.
        """
        self.optimizer.load_state_dict(state_dict)
        self._share_groups()
        for p, owner in self.owners.items():
            if owner != self.workers.rank:
                self.state.pop(p, None)


def _to_json(x: Any) -> Any:
    """Return a value of a state for JSON, the dtype and the shape of a tensor."""
    return {"dtype": x.dtype.name, "shape": [*x.shape]} if isinstance(x, dt.Tensor) else x
