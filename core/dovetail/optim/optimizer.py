"""The base class of optimisers: groups of parameters, their options and their state."""

from __future__ import annotations

import copy
import difflib
import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import dovetail as dt
from dovetail.extend import arguments, is_capturing, read_each_call, uncaptured

from ..nn.constructor_errors import Explained
from ..nn.missing_names import make_class_getattr
from .fused_step import Bucket, StepOptions, needs_master, run_row_step, run_step

__all__ = ["Optimizer"]

Group: TypeAlias = dict[str, Any]
State: TypeAlias = dict[str, Any]
Parameters: TypeAlias = (
    "Iterable[dt.Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, dt.Tensor]]"
)
Closure: TypeAlias = Callable[[], Any]
Hook: TypeAlias = Callable[..., Any]


class OptimizerHookHandle:
    """A handle that removes a hook: by `handle.remove()`, or at the end of a `with` block."""

    def __init__(self, hooks: dict[int, Hook], hook: Hook) -> None:
        self._hooks, self._key = hooks, next(_keys)
        hooks[self._key] = hook

    def remove(self) -> None:
        """Remove the hook."""
        self._hooks.pop(self._key, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


_keys = itertools.count()


class Optimizer(Explained):
    """The base class of optimisers: `param_groups`, `state`, and fused steps of all parameters.

    - `params`: tensors, pairs of names and tensors, or dicts with "params" and their own options.
    - `defaults`: options for groups that do not set them.
    - `master_weights`: True sets the option "master_weights" of all groups: float16 and bfloat16
      parameters have a float32 copy, `state[p]["master_param"]`, which steps update.

    A step replays prepared launches. In a function captured by `dt.jit` it becomes part of that
    function, which reads options and counts of steps again at each call.
    Raises: ArgumentTypeError, ArgumentError.

    >>> import dovetail as dt
    >>> w = dt.ones(2).requires_grad_()
    >>> opt = dt.optim.SGD([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.tolist(), opt.param_groups[0]["lr"]
    ([0.0, 0.0], 0.5)
    """

    counts = True  # the state_dict of a parameter has "step"
    numbers_kept: tuple[str, ...] = ()  # Python numbers besides "step" in a parameter's state
    rule: Callable[..., Sequence[dt.Tensor]]  # (options, numbers, p, g, *state) -> new p, *state
    param_groups: list[Group]
    state: dict[Any, State]
    stepped = False  # step() was called
    found_inf: dt.Tensor | None = None  # a bool; the step changes nothing where it is True

    def __init__(
        self, params: Parameters, defaults: dict[str, Any], master_weights: bool = False
    ) -> None:
        # without it, groups have exactly PyTorch's options
        own = {} if master_weights is False else {"master_weights": master_weights}
        self.defaults = {**defaults, **own}
        self.state = defaultdict(dict)
        self.param_groups = []
        self._pre_hooks: dict[int, Hook] = {}
        self._post_hooks: dict[int, Hook] = {}
        self._create_step()
        if isinstance(params, dt.Tensor):
            raise dt.ArgumentTypeError(
                f"{self._name}: params must be an iterable of tensors or of dicts, got a tensor; "
                "use [x]"
            )
        try:
            items: list[Any] = [*params]
        except TypeError:
            raise dt.ArgumentTypeError(
                f"{self._name}: params must be an iterable of tensors or of dicts, got "
                f"{type(params).__name__}; use model.parameters()"
            ) from None
        if not items:
            raise dt.ArgumentError(
                f"{self._name}: params must have at least one parameter; model.parameters() is "
                "empty or was used up"
            )
        groups = items if isinstance(items[0], dict) else [{"params": items}]
        for group in groups:
            self.add_param_group(group)

    def _create_step(self) -> None:
        """Create the captured step, which is not copied or pickled with the optimiser."""
        step = functools.partial(run_step, getattr(self, "rule", _raise_no_rule))
        self._run = dt.jit(step, static_argnames="plan", fullgraph=True)

    if not TYPE_CHECKING:
        __getattr__ = make_class_getattr("Optimizer")

    @property
    def _name(self) -> str:
        """Return the name in errors: "optim.SGD"."""
        return f"optim.{type(self).__name__}"

    def __getstate__(self) -> dict[str, Any]:
        return {n: v for n, v in self.__dict__.items() if n != "_run"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._create_step()

    def __repr__(self) -> str:
        lines = []
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join([f"{type(self).__name__} (", *lines, ")"])

    # --- groups
    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Add a group of parameters with its own options.

        - `param_group`: a dict with "params" and options by name; others are the defaults.

        Raises: ArgumentTypeError, ArgumentError for no parameters, parameters of another group, and
        options that are out of range or misspelt.
        """
        if not isinstance(param_group, Mapping) or "params" not in param_group:
            raise dt.ArgumentTypeError(
                f"{self._name}.add_param_group: a group must be a dict with 'params', got "
                f"{param_group!r}"
            )
        group = dict(param_group)
        params = group["params"]
        if isinstance(params, set):
            raise dt.ArgumentTypeError(
                f"{self._name}: params must be ordered, got a set; use a list"
            )
        group["params"] = self._parameters(group, [params] if _is_tensor(params) else [*params])
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise dt.ArgumentError(f"{self._name}: a group must have {name}=")
            group.setdefault(name, default)
        self._check_names(group)
        self._check_all(group)
        present = {id(p) for g in self.param_groups for p in g["params"]}
        if not present.isdisjoint(map(id, group["params"])):
            raise dt.ArgumentError(f"{self._name}: a parameter must not be in more than one group")
        self.param_groups.append(group)

    def _parameters(self, group: Group, params: list[Any]) -> list[dt.Tensor]:
        """Check and return the parameters of a group; store their names as its "param_names".

        Raises: ArgumentTypeError, ArgumentError, DTypeError.
        """
        if params and all(isinstance(x, tuple) for x in params):
            group["param_names"] = [name for name, _ in params]
            params = [x for _, x in params]
        if not params:
            raise dt.ArgumentError(f"{self._name}: a group must have at least one parameter")
        for i, p in enumerate(params):
            if not _is_tensor(p):
                raise dt.ArgumentTypeError(
                    f"{self._name}: parameter {i} must be a tensor, got {type(p).__name__}"
                )
            if not p.is_leaf:
                raise dt.ArgumentError(
                    f"{self._name}: parameter {i} must be a leaf, got {_describe(p)}, the result "
                    "of a computation; pass its source, or x.detach().requires_grad_()"
                )
            if not dt.isdtype(p.dtype, "real floating"):
                raise dt.DTypeError(
                    f"{self._name}: parameter {i} must have a real float dtype, got {_describe(p)}"
                )
        if len({id(p) for p in params}) < len(params):
            raise dt.ArgumentError(f"{self._name}: a parameter must not occur twice in a group")
        return params

    def _check_names(self, group: Group) -> None:
        """Raise ArgumentError for an unknown option that resembles a known one."""
        for name in group:
            if name not in self.defaults and name not in _GROUP_NAMES:
                near = difflib.get_close_matches(name, {*self.defaults, "master_weights"}, 1, 0.8)
                if near:
                    raise dt.ArgumentError(
                        f"{self._name}: a group has the unknown option {name!r}; did you mean "
                        f"{near[0]!r}?"
                    )

    def _check_all(self, group: Group) -> None:
        """Raise ArgumentError or ArgumentTypeError for an option that no step can use."""
        for option in _FLAGS & group.keys():
            if group[option] is not None:
                arguments.flag(self._name, group[option], option)
        self._check(group)

    def _check(self, group: Group) -> None:
        """Raise ArgumentError for options that are out of range."""

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros.

        - `set_to_none`: False writes zeros into existing gradients.
        """
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad = None if set_to_none else dt.zeros_like(p.grad)

    # --- hooks
    def register_step_pre_hook(self, hook: Hook) -> OptimizerHookHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; return a handle to remove it."""
        return OptimizerHookHandle(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Hook) -> OptimizerHookHandle:
        """Call `hook(optimizer, args, kwargs)` after each step; return a handle to remove it."""
        return OptimizerHookHandle(self._post_hooks, hook)

    # --- steps
    def step(self, closure: Closure | None = None) -> Any:
        """Do a step against the gradients.

        - `closure`: a function without arguments that computes the loss and its gradients again.
          Its result is returned.
        """
        args, named = (() if closure is None else (closure,)), dict[str, Any]()
        for hook in [*self._pre_hooks.values()]:
            changed = hook(self, args, named)
            if changed is not None:
                args, named = changed
        self.stepped = True
        loss = self._step(*args, **named)
        for hook in [*self._post_hooks.values()]:
            hook(self, args, named)
        return loss

    def _step(self, closure: Closure | None = None) -> Any:
        """Run the closure, recorded, and the update without recording; return the loss or None."""
        loss = None
        if closure is not None:
            with dt.enable_grad():
                loss = closure()
        with dt.no_grad():
            self._update()
        return loss

    def _update(self) -> None:
        """Update the parameters that have a gradient, and create missing states."""
        buckets: dict[Hashable, Bucket] = {}
        for i, group in enumerate(self.param_groups):
            options = self._step_options(group)
            masters = options.master_weights
            for p, names in self._with_state_names(group):
                g = p.grad
                if g is None:
                    continue
                state = self.state.get(p)
                if not state:
                    with uncaptured():
                        state = self.state[p] = self._initial_state(group, p)
                by_rows = g.layout is not dt.strided
                if by_rows:
                    self._check_rows(group, g)
                step = state["step"]
                count = id(step) if _is_tensor(step) else step
                key = (i, by_rows, count, *[state[n] for n in self.numbers_kept])
                bucket = buckets.get(key)
                if bucket is None:
                    bucket = buckets[key] = Bucket(group, options, by_rows)
                bucket.params.append(p)
                bucket.grads.append(g)
                tensors = [state[n] for n in names]
                if masters and needs_master(p):
                    if "master_param" not in state:  # zeros: the step reads the parameter
                        with uncaptured():
                            state["master_param"] = filled_like(p, 0.0)
                    tensors.append(state["master_param"])
                bucket.states.append(tensors)
        if buckets:
            self._run_buckets([*buckets.values()])

    def _run_buckets(self, buckets: list[Bucket]) -> None:
        """Run the step of each bucket and count it; in a capture, at each call of the function."""
        skip = self.found_inf
        if skip is not None:
            for b in buckets:
                self._count_on_device(b)
        if not is_capturing():
            dense = [b for b in buckets if not b.by_rows]
            if dense:
                plan = tuple([b.options for b in dense])
                numbers = [self._next_numbers(b) for b in dense]
                self._run(plan, [b.tensors() for b in dense], numbers, skip)
            for b in buckets:
                if b.by_rows:  # the number of rows differs between steps, so no launch is reused
                    run_row_step(self.rule, b, self._next_numbers(b), skip)
                self._advance(b)
            return
        dt.evaluate(*[v for b in buckets for v in b.gradient_values()])
        for b in [b for b in buckets if _is_tensor(self.state[b.params[0]]["step"])]:
            buckets.remove(b)
            device_numbers = self._numbers_on_device(b)
            if b.by_rows:
                run_row_step(self.rule, b, device_numbers, skip)
            else:
                run_step(self.rule, [b.options], [b.tensors()], [device_numbers], skip)
            self._advance(b)
        counts = [len(self._next_numbers(b)) for b in buckets]
        read_numbers = functools.partial(self._read_numbers, [b.without_tensors() for b in buckets])
        all_numbers = [*read_each_call(read_numbers, sum(counts))]
        for b, n in zip(buckets, counts, strict=True):
            bucket_numbers = tuple(all_numbers[:n])
            del all_numbers[:n]
            if b.by_rows:
                run_row_step(self.rule, b, bucket_numbers)
            else:
                run_step(self.rule, [b.options], [b.tensors()], [bucket_numbers])

    def _next_numbers(self, b: Bucket) -> tuple[float, ...]:
        """Return the numbers for the next step of a bucket, tensors if its count is one."""
        state = self.state[b.params[0]]
        if _is_tensor(state["step"]):
            return self._numbers_on_device(b)
        return self._rule_numbers(b.group, state["step"] + 1.0, state)

    def _advance(self, b: Bucket) -> None:
        """Count a step of each parameter in a bucket."""
        step = self.state[b.params[0]]["step"]
        if _is_tensor(step):  # the parameters share it
            step += 1.0 if self.found_inf is None else 1.0 - self.found_inf.to(step.device)
            return
        changed = self._advanced_numbers(b.group, self.state[b.params[0]])
        for p in b.params:
            self.state[p].update(changed)

    def _count_on_device(self, b: Bucket) -> None:
        """Make a tensor of a bucket's count of steps: the host does not know which are skipped.

        Raises: ArgumentError for an optimizer that keeps other numbers on the host.
        """
        step = self.state[b.params[0]]["step"]
        if _is_tensor(step):
            return
        if self.numbers_kept:
            raise dt.ArgumentError(
                f"{self._name}: a GradScaler cannot skip its steps, because it keeps "
                f"{', '.join(self.numbers_kept)} on the host; use optim.Adam or optim.SGD"
            )
        with uncaptured():
            count = dt.full((), step, dtype=dt.float32, device=b.params[0].device)
            dt.evaluate(count)
        for p in b.params:
            self.state[p]["step"] = count

    def _numbers_on_device(self, b: Bucket) -> tuple[Any, ...]:
        """Return the numbers of a step whose count is on the device, from that count.

        A captured step reads the options of the group at each call, so all of them are tensors; a
        plain step has the same bits.
        """
        device = b.params[0].device
        names = [n for n, x in b.group.items() if _is_number(x)]
        pairs = [n for n, x in b.group.items() if n != "params" and _is_pair(x)]

        def read() -> list[float]:
            """Return the options. Raises: CaptureError for changed ones that are no numbers."""
            self._require_same_options(b)
            values = [b.group[n] for n in names]
            return [*map(float, values), *[float(x) for n in pairs for x in b.group[n]]]

        values = [
            dt.full((), x, dtype=dt.float32, device=device)
            for x in read_each_call(read, len(names) + 2 * len(pairs))
        ]
        group = {**b.group, **dict(zip(names, values, strict=False))}
        paired = values[len(names) :]
        group |= {n: (paired[2 * i], paired[2 * i + 1]) for i, n in enumerate(pairs)}
        state = self.state[b.params[0]]
        token = _keeps_tensors.set(True)
        try:
            numbers: tuple[Any, ...] = self._rule_numbers(group, state["step"] + 1.0, state)
        finally:
            _keeps_tensors.reset(token)
        dt.evaluate(*[x for x in numbers if _is_tensor(x)])  # else each element computes them
        return numbers

    def _require_same_options(self, b: Bucket) -> None:
        """Raise CaptureError if options of a captured step that are no numbers have changed."""
        if self._step_options(b.group) != b.options:
            raise dt.CaptureError(
                f"{self._name}: the groups must not change after the step was captured, but "
                "options such as nesterov have; capture the function again with dt.jit(...)"
            )

    def _read_numbers(self, buckets: list[Bucket]) -> list[float]:
        """Count and return the next step's numbers. Raises: CaptureError for changed options.

        CaptureError is also raised if the steps of some parameters have changed since the capture.
        """
        numbers: list[float] = []
        for b in buckets:
            names = "step", *self.numbers_kept
            counts = [[self.state[p][n] for n in names] for p in b.params]
            if counts.count(counts[0]) != len(counts) or self._step_options(b.group) != b.options:
                raise dt.CaptureError(
                    f"{self._name}: the groups must not change after the step was captured, but "
                    "options such as nesterov or the steps of some parameters have; capture the "
                    "function again with dt.jit(...)"
                )
            numbers += self._next_numbers(b)
            self._advance(b)
        return numbers

    def _step_options(self, group: Group) -> StepOptions:
        """Return the options that select the branches of a step of a group."""
        return StepOptions(self._options(group), bool(group.get("master_weights")))

    # --- methods that optimisers override
    def _options(self, group: Group) -> Hashable:
        """Return the options that select the rule's branches; they contain no numbers."""
        return ()

    def _state_names(self, group: Group) -> tuple[str, ...]:
        """Return the names of the state tensors of a parameter, in the order of the rule."""
        return ()

    def _with_state_names(self, group: Group) -> Iterable[tuple[dt.Tensor, tuple[str, ...]]]:
        """Return pairs of a parameter and the names of its state tensors."""
        return zip(group["params"], itertools.repeat(self._state_names(group)), strict=False)

    def _state_shape(self, name: str, p: dt.Tensor) -> tuple[int, ...]:
        """Return the shape of a state tensor of a parameter."""
        return p.shape

    def _initial_state(self, group: Group, p: dt.Tensor) -> State:
        """Return the state of a parameter before its first step."""
        return {"step": 0.0, **{n: filled_like(p, 0.0) for n in self._state_names(group)}}

    def _rule_numbers(self, group: Group, step: float, state: State) -> tuple[float, ...]:
        """Return the rule's numbers for a step, the first of which is 1; subclasses define it."""
        raise NotImplementedError(
            f"{type(self).__name__} has no _rule_numbers; define it, or override step()"
        )

    def _advanced_numbers(self, group: Group, state: State) -> State:
        """Return the Python numbers of a state after one more step."""
        return {"step": state["step"] + 1.0}

    def _check_rows(self, group: Group, g: Any) -> None:
        """Raise LayoutError for a sparse gradient, unless the optimiser supports its layout."""
        raise dt.LayoutError(
            f"{self._name}: gradients must be dense, got layout {g.layout.name}; use "
            "p.grad.to_dense(), or optim.SGD, Adagrad or SparseAdam, which update single rows"
        )

    def _check_layout(self, g: Any) -> None:
        """Raise LayoutError if a sparse gradient does not consist of rows in the COO layout."""
        if g.layout is not dt.sparse_coo or g.indices().shape[0] != 1:
            raise dt.LayoutError(
                f"{self._name}: sparse gradients must be COO over rows, as embedding(sparse=True) "
                f"makes them, got layout {g.layout.name} with {g.ndim} dimensions; use "
                "p.grad.to_dense()"
            )

    # --- saving and loading
    def state_dict(self) -> dict[str, Any]:
        """Return the state and the groups, with parameters by number; tensors share memory.

        The structure is PyTorch's, so each library can load the other's state.
        """
        number = {id(p): i for i, p in enumerate(p for g in self.param_groups for p in g["params"])}
        groups = [
            {n: v for n, v in g.items() if n != "params"}
            | {"params": [number[id(p)] for p in g["params"]]}
            for g in self.param_groups
        ]
        state = {
            number[id(p)]: self._export_state(p, values)
            for p, values in self.state.items()
            if isinstance(p, dt.Tensor) and id(p) in number and values
        }
        return {"state": {i: state[i] for i in sorted(state) if state[i]}, "param_groups": groups}

    def _export_state(self, p: dt.Tensor, state: State) -> State:
        """Return the state of a parameter with numbers as tensors."""
        exported = {}
        for name, x in state.items():
            if name == "step" or name in self.numbers_kept:
                if name == "step" and not self.counts:
                    continue
                x = dt.asarray(x, dtype=dt.float32, device=p.device)
            exported[name] = x
        return exported

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a copy of a state, on the devices of the parameters and in their dtypes.

        - `state_dict`: the result of `state_dict()`, of dovetail or PyTorch.

        The state of float16 and bfloat16 parameters is float32.

        Raises: ArgumentError if it does not fit; then nothing has been loaded.
        """
        try:
            new_groups, states = [*state_dict["param_groups"]], dict(state_dict["state"])
            numbers = [[*g["params"]] for g in new_groups]
            set(itertools.chain(*numbers))  # raises TypeError for an unhashable number
            if not all(isinstance(x, Mapping) for x in (*new_groups, *states.values())):
                raise TypeError
        except (KeyError, TypeError, ValueError):
            raise dt.ArgumentError(
                f"{self._name}.load_state_dict: expected the state of an optimizer, a dict with "
                "'state' and 'param_groups', each with 'params'"
            ) from None
        params = [g["params"] for g in self.param_groups]
        if [*map(len, numbers)] != [*map(len, params)]:
            raise dt.ArgumentError(
                f"{self._name}.load_state_dict: expected groups of {[*map(len, params)]} "
                f"parameters, got {[*map(len, numbers)]}"
            )
        by_number = dict(zip(itertools.chain(*numbers), itertools.chain(*params), strict=True))
        groups = [
            {**copy.deepcopy({n: v for n, v in new.items() if n != "params"}), "params": own}
            for new, own in zip(new_groups, params, strict=True)
        ]
        for group, old in zip(groups, self.param_groups, strict=True):
            for name in {*self.defaults, "params"} - {*group}:
                group[name] = old[name]
            self._check_all(group)
        loaded = self._import_states(states, by_number, groups)
        self.param_groups = groups
        self.state = loaded

    def _import_states(
        self, states: dict[Any, Any], by_number: dict[Any, dt.Tensor], groups: list[Group]
    ) -> dict[Any, State]:
        """Return copies of states by parameter.

        `states`: by number. A state of an unknown number is kept under that number.
        Raises: ArgumentError for a state that lacks names or has another shape, ArgumentTypeError
        for values of other types.
        """
        loaded: dict[Any, State] = defaultdict(dict)
        names = {id(p): own for g in groups for p, own in self._with_state_names(g)}
        for number, state in states.items():
            p = by_number.get(number)
            if p is None:
                loaded[number] = copy.deepcopy(state)
                continue
            missing = sorted({*names[id(p)]} - {*state})
            if missing and state:
                raise dt.ArgumentError(
                    f"{self._name}.load_state_dict: the state of parameter {number} has no "
                    f"{', '.join(missing)}; it belongs to another optimizer"
                )
            values = {n: self._import_value(number, n, p, x) for n, x in state.items()}
            if values:
                values.setdefault("step", 1.0)
                loaded[p] = values
        return loaded

    def _import_value(self, number: object, name: str, p: dt.Tensor, x: Any) -> Any:
        """Return a copy of a value of a parameter's state, on its device.

        Raises: ArgumentError for a tensor of another shape, ArgumentTypeError for a value of
        another type.
        """
        op = f"{self._name}.load_state_dict"
        if name == "step" or name in self.numbers_kept:
            x = x.item() if isinstance(x, dt.Tensor) and x.size == 1 else x
            return arguments.real(op, x, f"{name} of parameter {number}")
        if not isinstance(x, dt.Tensor):
            if name in self._state_names(self.param_groups[0]):
                raise arguments.refused(op, f"{name} of parameter {number}", "a tensor", x)
            return copy.deepcopy(x)
        shape = self._state_shape(name, p)
        if x.shape != shape:
            raise dt.ArgumentError(
                f"{op}: {name} of parameter {number} must have shape {shape}, because the "
                f"parameter has shape {p.shape}, got shape {x.shape}"
            )
        with dt.no_grad():
            return dt.copy(x.detach().to(p.device).astype(p.dtype.compute))


required: Any = object()
_keeps_tensors: ContextVar[bool] = ContextVar("options of a step stay tensors", default=False)
_GROUP_NAMES = ("params", "param_names", "initial_lr", "master_weights")
_FLAGS = {
    "amsgrad",
    "capturable",
    "centered",
    "decoupled_weight_decay",
    "differentiable",
    "foreach",
    "fused",
    "master_weights",
    "maximize",
    "nesterov",
}


def _raise_no_rule(*args: object) -> Sequence[dt.Tensor]:
    """Raise NotImplementedError: a subclass must define a rule."""
    raise NotImplementedError("an optimizer must define rule, or override step()")


def _is_tensor(x: object) -> bool:
    """Return True for a tensor."""
    return isinstance(x, dt.Tensor)


def _describe(p: dt.Tensor) -> str:
    """Return a parameter's dtype and shape, for errors."""
    return f"{p.dtype.name}{[*p.shape]}"


def check_minimums(name: str, group: Mapping[str, Any], **minimums: float) -> None:
    """Raise ArgumentError for NaN or less than a minimum, ArgumentTypeError for a non-number."""
    for option, low in minimums.items():
        value = group[option]
        if isinstance(value, dt.Tensor) and value.size == 1:
            value = value.item()
        if isinstance(value, bool):
            raise arguments.refused(name, option, "a number", value)
        if not arguments.real(name, value, option) >= low:
            raise dt.ArgumentError(f"{name}: {option} must be at least {low:g}, got {value}")


def check_betas(name: str, group: Mapping[str, Any]) -> None:
    """Raise ArgumentError if betas are not two numbers in [0, 1)."""
    for i, beta in enumerate(check_pair(name, group, "betas")):
        if not 0.0 <= beta < 1.0:
            raise dt.ArgumentError(
                f"{name}: betas[{i}] must be at least 0 and less than 1, got {beta}"
            )


def filled_like(p: dt.Tensor, value: float) -> dt.Tensor:
    """Return a state tensor of a parameter; float32 for halves, where a square may overflow."""
    return dt.full_like(p.detach(), value, dtype=p.dtype.compute)


def check_pair(name: str, group: Mapping[str, Any], option: str) -> tuple[float, float]:
    """Return an option that is a pair of numbers.

    Raises: ArgumentError for no pair, ArgumentTypeError for other items than numbers.
    """
    pair = group[option]
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise dt.ArgumentError(f"{name}: {option} must be two numbers, got {arguments.shown(pair)}")
    first, second = [v.item() if _is_tensor(v) and v.size == 1 else v for v in pair]
    return arguments.real(name, first, option), arguments.real(name, second, option)


def number(x: Any) -> float:
    """Return an option, which may be a tensor of one element, as a Python number.

    In a captured function, which cannot read it, a tensor stays one; so does it for a step whose
    count is on the device.
    """
    if _is_tensor(x) and (is_capturing() or _keeps_tensors.get()):
        return x  # type: ignore[no-any-return]  # arithmetic is the same
    return float(x)


def choose(condition: Any, x: Any, y: Any) -> Any:
    """Return x if a condition of the step holds, else y; the step may be a tensor."""
    if _is_tensor(condition):
        return dt.where(condition, x, y)
    return x if condition else y


def one_minus_power(beta: Any, step: Any) -> Any:
    """Return 1 - beta**step; of a step that is a tensor without cancellation, in float32."""
    if not _is_tensor(step):
        return 1.0 - beta**step
    if _is_tensor(beta):
        return -dt.expm1(step * dt.log(beta))
    return -dt.expm1(step * (math.log(beta) if beta else -math.inf))


def _is_number(x: object) -> bool:
    """Return True for an option that is an int or a float."""
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def _is_pair(x: object) -> bool:
    """Return True for an option that is two numbers."""
    return isinstance(x, (tuple, list)) and len(x) == 2 and all(map(_is_number, x))
