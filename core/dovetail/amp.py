"""Automatic mixed precision: `dt.autocast`, and a scaler of losses for float16, as `torch.amp`.

The scale, and whether a step is skipped, are on the device: no method reads a value but those that
return one. So a training step with a scaler is captured by `dt.jit` as a whole.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

import dovetail as dt
from dovetail.extend import DeviceLike, arguments, publish_all, uncaptured

from .nn.call_errors import explain_all, explain_methods
from .nn.missing_names import make_module_getattr

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

autocast = dt.autocast
P = ParamSpec("P")
R = TypeVar("R")
State: TypeAlias = dict[str, Any]


class _Stage(Enum):
    """The stages of an optimizer between two calls of `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """A scaler of losses, so that small gradients of float16 do not become 0.

    `scale` multiplies the loss. `step` divides the gradients by the scale, and skips the step
    if one of them is infinite or NaN. `update` then lowers the scale; it raises the scale after
    `growth_interval` steps that were not skipped. bfloat16 needs no scaler.

    The host never reads whether a step is skipped: on the device, parameters, states and counts of
    steps stay as they are. A learning-rate schedule counts skipped steps, too. Bias corrections are
    computed in float32 on the device.

    - `device`: the device of the scale. None: that of the first value that is scaled.
    - `init_scale`: the first scale.
    - `growth_factor`: the factor of the scale after `growth_interval` steps that were not skipped.
    - `backoff_factor`: the factor of the scale after a skipped step.
    - `growth_interval`: the number of steps between two growths.
    - `enabled`: False makes all methods do nothing but call the optimizer.

    Raises: ArgumentError for factors out of range.
    See also: `dt.autocast`.
    Source: Micikevicius et al., "Mixed precision training", 2018.

    >>> import dovetail as dt
    >>> w = dt.ones(2).requires_grad_()
    >>> optimizer, scaler = dt.optim.SGD([w], lr=0.5), dt.amp.GradScaler()
    >>> scaler.scale((w * 1e30).sum()).backward()
    >>> (w.grad * 1e30).sum().item()  # out of float32's range
    inf
    >>> w.grad *= 1e30
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w.tolist(), scaler.get_scale()
    ([1.0, 1.0], 32768.0)
    """

    def __init__(
        self,
        device: DeviceLike = None,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = None if device is None else dt.device(device)
        self._enabled = arguments.flag("GradScaler", enabled, "enabled")
        self._init_scale = arguments.real("GradScaler", init_scale, "init_scale")
        self.set_growth_factor(growth_factor)
        self.set_backoff_factor(backoff_factor)
        self.set_growth_interval(growth_interval)
        self._init_tracker = 0
        self._scale: dt.Tensor | None = None
        self._tracker: dt.Tensor | None = None  # steps since the scale changed
        self._stages: dict[int, tuple[_Stage, dt.Tensor | None]] = {}  # by id of the optimizer

    # --- a step
    def scale(self, outputs: Any) -> Any:
        """Return a loss times the scale; of a list, tuple or other iterable, each.

        - `outputs`: tensors, also nested. A float16 loss gives a float32 one.

        Raises: ArgumentTypeError.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, dt.Tensor):
            return outputs * self._scale_on(outputs.device)
        if isinstance(outputs, Mapping) or not isinstance(outputs, Iterable):
            raise arguments.refused("GradScaler.scale", "outputs", "a tensor or tensors", outputs)
        values = [self.scale(x) for x in outputs]
        return type(outputs)(values) if isinstance(outputs, (list, tuple)) else values

    def unscale_(self, optimizer: dt.optim.Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, before they are clipped.

        `step` calls it unless the program does. Each `grad` is replaced by a new tensor.

        - `optimizer`: the optimizer.

        Raises: ArgumentError if it was called before, since the last `update`; DTypeError for
        float16 gradients.
        """
        if not self._enabled:
            return
        stage, _ = self._stage_of(optimizer)
        if stage is not _Stage.READY:
            verb = "unscale_" if stage is _Stage.UNSCALED else "step"
            raise dt.ArgumentError(
                f"GradScaler.unscale_: {verb} was called for this optimizer since the last update; "
                "call update() first"
            )
        is_skipped: dt.Tensor | None = None
        for group in optimizer.param_groups:
            for p in group["params"]:
                g = p.grad
                if g is None:
                    continue
                if g.dtype is dt.float16:
                    raise dt.DTypeError(
                        "GradScaler.unscale_: gradients must not be float16, whose range the scale "
                        "would leave; keep the parameters in float32 and use dt.autocast"
                    )
                inverse = dt.reciprocal(self._scale_on(p.device))
                with dt.no_grad():
                    values = g.values() if g.layout is not dt.strided else g
                    is_inf = ~dt.isfinite(values.detach()).all()
                    p.grad = g * inverse.astype(g.dtype)
                is_skipped = (
                    is_inf if is_skipped is None else is_skipped | is_inf.to(is_skipped.device)
                )
        if is_skipped is None:
            raise dt.ArgumentError(
                "GradScaler.unscale_: no parameter of the optimizer has a gradient; call "
                "scaler.scale(loss).backward() first"
            )
        self._stages[id(optimizer)] = _Stage.UNSCALED, is_skipped

    def step(self, optimizer: dt.optim.Optimizer, *args: Any, **options: Any) -> Any:
        """Do the optimizer's step, which changes nothing if a gradient is infinite or NaN.

        - `optimizer`: the optimizer.
        - `args`, `options`: of its `step`; no closure.

        Raises: ArgumentError for a second step before `update`, a closure, and optimizers that keep
        more numbers than counts on the host, such as `optim.NAdam`.
        """
        if not self._enabled:
            return optimizer.step(*args, **options)
        if args or options.get("closure") is not None:
            raise dt.ArgumentError(
                "GradScaler.step: a closure must not be given, because its gradients are scaled; "
                "use an optimizer without one, such as optim.Adam"
            )
        if self._stage_of(optimizer)[0] is _Stage.STEPPED:
            raise dt.ArgumentError(
                "GradScaler.step: step was called for this optimizer since the last update; call "
                "update() first"
            )
        if self._stage_of(optimizer)[0] is _Stage.READY:
            self.unscale_(optimizer)
        _, is_skipped = self._stage_of(optimizer)
        try:
            optimizer.found_inf = is_skipped
            result = optimizer.step()
        finally:
            del optimizer.found_inf
        self._stages[id(optimizer)] = _Stage.STEPPED, is_skipped
        return result

    def update(self, new_scale: float | dt.Tensor | None = None) -> None:
        """Lower the scale if a step was skipped; raise it after enough steps that were not.

        - `new_scale`: the next scale instead, a number or a tensor of one element.

        Raises: ArgumentError without a step since the last `update`.
        """
        if not self._enabled:
            return
        if self._scale is None or self._tracker is None:
            raise dt.ArgumentError("GradScaler.update: nothing was scaled; call scale(loss) first")
        scale, tracker = self._scale, self._tracker
        if new_scale is not None:
            if not isinstance(new_scale, dt.Tensor):
                new_scale = arguments.real("GradScaler.update", new_scale, "new_scale")
            scale[...] = dt.asarray(new_scale, dtype=dt.float32, device=scale.device).reshape(())
        else:
            skipped = self._any_skipped(scale.device)
            count = dt.where(skipped, 0, tracker + 1)
            grows = count == self._growth_interval
            greater = scale * self._growth_factor
            greater = dt.where(grows & dt.isfinite(greater), greater, scale)
            new = dt.where(skipped, scale * self._backoff_factor, greater)
            scale[...] = new
            tracker[...] = dt.where(grows, 0, count)
        self._stages.clear()

    def _any_skipped(self, device: dt.Device) -> dt.Tensor:
        """Return True, on a device, if a gradient of any optimizer was not finite."""
        every = [
            is_skipped.to(device)
            for _, is_skipped in self._stages.values()
            if is_skipped is not None
        ]
        if not every:
            raise dt.ArgumentError(
                "GradScaler.update: no step was made since the last update; call "
                "step(optimizer) first"
            )
        return functools.reduce(dt.logical_or, every)

    def _stage_of(self, optimizer: dt.optim.Optimizer) -> tuple[_Stage, dt.Tensor | None]:
        """Return an optimizer's stage, and whether one of its gradients was not finite."""
        return self._stages.get(id(optimizer), (_Stage.READY, None))

    def _scale_on(self, device: dt.Device) -> dt.Tensor:
        """Return the scale on a device; create it there at the first use."""
        if self._scale is None:
            home = self._device or device
            with uncaptured():
                self._scale = dt.full((), self._init_scale, dtype=dt.float32, device=home)
                self._tracker = dt.full((), self._init_tracker, dtype=dt.int32, device=home)
                dt.evaluate(self._scale, self._tracker)
        return self._scale.to(device)

    # --- numbers
    def is_enabled(self) -> bool:
        """Return False if the scaler was made with `enabled=False`."""
        return self._enabled

    def get_scale(self) -> float:
        """Return the scale, which the host reads; 1.0 if the scaler is not enabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale)

    def get_growth_factor(self) -> float:
        """Return the factor of the scale after `growth_interval` steps that were not skipped."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the growth factor; a captured function keeps its own.

        - `new_factor`: more than 1.

        Raises: ArgumentError.
        """
        factor = arguments.real("GradScaler", new_factor, "growth_factor")
        if not factor > 1.0:
            raise dt.ArgumentError(f"GradScaler: growth_factor must be more than 1, got {factor}")
        self._growth_factor = factor

    def get_backoff_factor(self) -> float:
        """Return the factor of the scale after a skipped step."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the backoff factor; a captured function keeps its own.

        - `new_factor`: less than 1.

        Raises: ArgumentError.
        """
        factor = arguments.real("GradScaler", new_factor, "backoff_factor")
        if not factor < 1.0:
            raise dt.ArgumentError(f"GradScaler: backoff_factor must be less than 1, got {factor}")
        self._backoff_factor = factor

    def get_growth_interval(self) -> int:
        """Return the number of steps between two growths."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the growth interval; a captured function keeps its own.

        - `new_interval`: a number of steps.

        Raises: ArgumentError.
        """
        self._growth_interval = arguments.integer("GradScaler", new_interval, "growth_interval", 1)

    # --- states
    def state_dict(self) -> State:
        """Return the scale, the factors and the count of steps, as PyTorch; {} if not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._init_tracker if self._tracker is None else int(self._tracker),
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load the state of a scaler, of dovetail or PyTorch.

        - `state_dict`: the result of `state_dict()`.

        Raises: ArgumentError for a state without its entries.
        """
        if not self._enabled:
            return
        names = ("scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker")
        missing = [n for n in names if n not in state_dict]
        if missing:
            raise dt.ArgumentError(
                f"GradScaler.load_state_dict: the state must have {', '.join(missing)}; the scaler "
                "that it belongs to was not enabled"
            )
        self.set_growth_factor(state_dict["growth_factor"])
        self.set_backoff_factor(state_dict["backoff_factor"])
        self.set_growth_interval(state_dict["growth_interval"])
        self._init_scale = arguments.real("GradScaler", state_dict["scale"], "scale")
        tracker = state_dict["_growth_tracker"]
        self._init_tracker = arguments.integer("GradScaler", tracker, "_growth_tracker")
        if self._scale is not None and self._tracker is not None:  # captured functions read these
            self._scale[...] = self._init_scale
            self._tracker[...] = self._init_tracker


# --- user-defined ops -----------------------------------------------------------------------------


def custom_fwd(
    fwd: Callable[P, R] | None = None,
    *,
    device_type: str | None = None,
    cast_inputs: dt.DType | None = None,
) -> Any:
    """Decorate the `forward` of a `dt.autograd.Function`, whose `backward` has `custom_bwd`.

    - `fwd`: the method.
    - `device_type`: as of `autocast`.
    - `cast_inputs`: the dtype to which floats of other dtypes than float64 are cast; `forward` then
      runs without autocast. None: it runs under the autocast of its caller.

    Raises: DeviceError for a malformed `device_type`, when the op is used.
    See also: `autocast`, `custom_bwd`.

    >>> import dovetail as dt
    >>> class Square(dt.autograd.Function):
    ...     @staticmethod
    ...     @dt.amp.custom_fwd(cast_inputs=dt.float32)
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     @dt.amp.custom_bwd
    ...     def backward(ctx, g):
    ...         return 2 * ctx.saved_tensors[0] * g
    >>> with dt.autocast():
    ...     Square.apply(dt.ones(2, dt.bfloat16)).dtype
    dovetail.float32
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **options: Any) -> Any:
        """Run `forward`, and note the autocast under which its `backward` will run."""
        context, on = args[0], dt.is_autocast_enabled(device_type)
        context.autocast_dtype = dt.get_autocast_dtype(device_type)
        context.autocasts = on and cast_inputs is None
        context.input_dtypes = [a.dtype if isinstance(a, dt.Tensor) else None for a in args[1:]]
        if not on or cast_inputs is None:
            return fwd(*args, **options)
        with autocast(device_type, enabled=False):
            return fwd(*[_cast(a, cast_inputs) for a in args], **options)

    return forward


def custom_bwd(bwd: Callable[P, R] | None = None, *, device_type: str | None = None) -> Any:
    """Decorate the `backward` of a `dt.autograd.Function`: it runs under forward's autocast.

    Its gradients are cast to the dtypes of the inputs of `forward`.

    - `bwd`: the method.
    - `device_type`: as of `autocast`.

    Raises: DeviceError for a malformed `device_type`, when the op is used.
    See also: `custom_fwd`.

    >>> import dovetail as dt
    >>> class Double(dt.autograd.Function):
    ...     @staticmethod
    ...     @dt.amp.custom_fwd
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     @dt.amp.custom_bwd
    ...     def backward(ctx, g):
    ...         return g * 2
    >>> x = dt.ones(2, dtype=dt.bfloat16).requires_grad_()
    >>> Double.apply(x).sum().backward()
    >>> x.grad.dtype
    dovetail.bfloat16
    """
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **options: Any) -> Any:
        """Run `backward` under the autocast of `forward`."""
        context: Any = args[0]
        with autocast(device_type, context.autocast_dtype, context.autocasts):
            gradients: Any = bwd(*args, **options)
        if not isinstance(gradients, tuple):
            return gradients.astype(context.input_dtypes[0], copy=False)
        return tuple(
            [
                g.astype(d, copy=False) if isinstance(g, dt.Tensor) else g
                for g, d in zip(gradients, context.input_dtypes, strict=False)
            ]
        )

    return backward


def _cast(a: Any, dtype: dt.DType) -> Any:
    """Return an argument, cast if it is a tensor of floats other than float64."""
    if isinstance(a, dt.Tensor) and a.dtype.kind == "f" and a.dtype is not dt.float64:
        return a.astype(dtype, copy=False)
    return a


explain_methods(GradScaler)
explain_all(globals(), __all__)
publish_all(globals())


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = make_module_getattr("amp")
