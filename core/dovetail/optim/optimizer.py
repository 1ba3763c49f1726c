"""What an optimiser is: groups of parameters, their options, and what is kept of each."""

from __future__ import annotations

import copy
import difflib
import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import dovetail as dt
from dovetail.extend import arguments, is_capturing, read_each_call, uncaptured

from ..nn.constructor_errors import Explained
from ..nn.missing_names import absent
from .together import Bucket, updated, updated_rows

__all__ = ["Optimizer"]

Group: TypeAlias = dict[str, Any]
State: TypeAlias = dict[str, Any]
Parameters: TypeAlias = (
    "Iterable[dt.Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, dt.Tensor]]"
)
Closure: TypeAlias = Callable[[], Any]
Hook: TypeAlias = Callable[..., Any]


class Kept(NamedTuple):
    """What stands for a parameter in the same place of a state: its number."""

    number: int


class HookHandle:
    """Takes a hook away again: `handle.remove()`, or at the end of a `with` block."""

    def __init__(self, hooks: dict[int, Hook], hook: Hook) -> None:
        self._hooks, self._key = hooks, next(_keys)
        hooks[self._key] = hook

    def remove(self) -> None:
        """Takes it away."""
        self._hooks.pop(self._key, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


_keys = itertools.count()


class Optimizer(Explained):
    """Base of optimisers: `param_groups`, `state`, and steps of all parameters together.

    `params`: tensors, pairs of names and tensors, or dicts with "params" and options of their own.
    `defaults`: the options of groups that do not give their own.
    A step is one call of prepared launches; within a function captured by `dt.jit` it is part of
    that, and options and counts of steps are read anew at each call.
    Raises: ArgumentTypeError, ArgumentError.

    >>> import dovetail as dt
    >>> w = dt.ones(2, device="reference").requires_grad_()
    >>> opt = dt.optim.SGD([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.tolist(), opt.param_groups[0]["lr"]
    ([0.0, 0.0], 0.5)
    """

    counts = True  # whether what is kept of a parameter has "step"
    numbers_kept: tuple[str, ...] = ()  # Python numbers that are kept of each parameter, besides
    rule: Callable[..., Sequence[dt.Tensor]]  # (options, numbers, p, g, *kept) -> what they become
    param_groups: list[Group]
    state: dict[Any, State]
    stepped = False  # whether there was a step

    def __init__(self, params: Parameters, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        self._pre_hooks: dict[int, Hook] = {}
        self._post_hooks: dict[int, Hook] = {}
        self._ready()
        if isinstance(params, dt.Tensor):
            raise dt.ArgumentTypeError(
                f"{self._name}: params is a tensor; give an iterable of tensors or of dicts: [x]"
            )
        try:
            found: list[Any] = [*params]
        except TypeError:
            raise dt.ArgumentTypeError(
                f"{self._name}: params is a {type(params).__name__}; give an iterable of tensors, "
                "as model.parameters() is, or of dicts"
            ) from None
        if not found:
            raise dt.ArgumentError(
                f"{self._name}: no parameters; model.parameters() gave none, or was used up"
            )
        groups = found if isinstance(found[0], dict) else [{"params": found}]
        for group in groups:
            self.add_param_group(group)

    def _ready(self) -> None:
        """Prepares what is not copied or kept in files."""
        step = functools.partial(updated, getattr(self, "rule", _no_rule))
        self._run = dt.jit(step, static_argnames="plan")

    if not TYPE_CHECKING:
        __getattr__ = absent("Optimizer")

    @property
    def _name(self) -> str:
        return f"optim.{type(self).__name__}"

    def __getstate__(self) -> dict[str, Any]:
        return {n: v for n, v in self.__dict__.items() if n != "_run"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._ready()

    def __repr__(self) -> str:
        lines = []
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join([f"{type(self).__name__} (", *lines, ")"])

    # --- groups
    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Adds parameters with options of their own: a dict with "params".

        Raises: ArgumentTypeError, ArgumentError for no parameters, ones that are there already,
        options that are out of range or misspelt.
        """
        if not isinstance(param_group, Mapping) or "params" not in param_group:
            raise dt.ArgumentTypeError(
                f"{self._name}.add_param_group: a group is a dict with 'params': {param_group!r}"
            )
        group = dict(param_group)
        given = group["params"]
        if isinstance(given, set):
            raise dt.ArgumentTypeError(
                f"{self._name}: params is a set, which has no order; give a list"
            )
        group["params"] = self._parameters(group, [given] if _is_tensor(given) else [*given])
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise dt.ArgumentError(f"{self._name}: a group needs {name}=")
            group.setdefault(name, default)
        self._check_names(group)
        self._check_all(group)
        there = {id(p) for g in self.param_groups for p in g["params"]}
        if not there.isdisjoint(map(id, group["params"])):
            raise dt.ArgumentError(f"{self._name}: some parameters are in more than one group")
        self.param_groups.append(group)

    def _parameters(self, group: Group, given: list[Any]) -> list[dt.Tensor]:
        """Those of a group, checked; names go to "param_names"."""
        if given and all(isinstance(x, tuple) for x in given):
            group["param_names"] = [name for name, _ in given]
            given = [x for _, x in given]
        if not given:
            raise dt.ArgumentError(f"{self._name}: a group has no parameters")
        for i, p in enumerate(given):
            if not _is_tensor(p):
                raise dt.ArgumentTypeError(
                    f"{self._name}: parameter {i} is a {type(p).__name__}, not a tensor"
                )
            if not p.is_leaf:
                raise dt.ArgumentError(
                    f"{self._name}: parameter {i}, {_said(p)}, is the result of a computation; "
                    "give what it was made of, or x.detach().requires_grad_()"
                )
            if not dt.isdtype(p.dtype, "real floating"):
                raise dt.DTypeError(
                    f"{self._name}: parameter {i} is {_said(p)}; parameters are real floats"
                )
        if len({id(p) for p in given}) < len(given):
            raise dt.ArgumentError(f"{self._name}: a parameter is there twice; each has one step")
        return given

    def _check_names(self, group: Group) -> None:
        for name in group:
            if name not in self.defaults and name not in ("params", "param_names", "initial_lr"):
                near = difflib.get_close_matches(name, self.defaults, 1, 0.8)
                if near:
                    raise dt.ArgumentError(
                        f"{self._name}: a group has {name!r}; did you mean {near[0]!r}?"
                    )

    def _check_all(self, group: Group) -> None:
        """Raise ArgumentError or ArgumentTypeError for an option that no step can use."""
        for option in _FLAGS & group.keys():
            if group[option] is not None:
                arguments.flag(self._name, group[option], option)
        self._check(group)

    def _check(self, group: Group) -> None:
        """Raises: ArgumentError for options that are out of range."""

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Lets go of the gradients of all parameters, or makes them zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad = None if set_to_none else dt.zeros_like(p.grad)

    # --- hooks
    def register_step_pre_hook(self, hook: Hook) -> HookHandle:
        """Calls `hook(optimizer, args, kwargs)` before each step; what takes it away."""
        return HookHandle(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Hook) -> HookHandle:
        """Calls `hook(optimizer, args, kwargs)` after each step; what takes it away."""
        return HookHandle(self._post_hooks, hook)

    # --- steps
    def step(self, closure: Closure | None = None) -> Any:
        """One step against the gradients; what `closure`, which computes them anew, gives."""
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
        loss = None
        if closure is not None:
            with dt.enable_grad():
                loss = closure()
        with dt.no_grad():
            self._update()
        return loss

    def _update(self) -> None:
        """Updates what has a gradient."""
        buckets: dict[Hashable, Bucket] = {}
        for i, group in enumerate(self.param_groups):
            options = self._options(group)
            names = self._names(group)
            for p in group["params"]:
                g = p.grad
                if g is None:
                    continue
                kept = self.state.get(p)
                if not kept:
                    with uncaptured():
                        kept = self.state[p] = self._begun(group, p)
                by_rows = type(g) is not dt.Tensor
                if by_rows:
                    self._check_rows(group, g)
                key = (i, kept["step"], by_rows)
                bucket = buckets.get(key)
                if bucket is None:
                    bucket = buckets[key] = Bucket(group, options, by_rows)
                bucket.params.append(p)
                bucket.grads.append(g)
                bucket.kept.append([kept[n] for n in names])
        if buckets:
            self._run_buckets([*buckets.values()])

    def _run_buckets(self, buckets: list[Bucket]) -> None:
        if not is_capturing():
            dense = [b for b in buckets if not b.by_rows]
            if dense:
                plan = tuple([b.planned() for b in dense])
                numbers = [self._next(b)[1] for b in dense]
                self._run(plan, [b.tensors() for b in dense], numbers)
            for b in buckets:
                if b.by_rows:  # as many rows as there are this time: nothing to keep prepared
                    updated_rows(self.rule, b, self._next(b)[1])
                self._advance(b)
            return
        dt.evaluate(*[v for b in buckets for v in b.values()])
        counts = [len(self._next(b)[1]) for b in buckets]
        read = functools.partial(self._read, [b.without_tensors() for b in buckets])
        given = [*read_each_call(read, sum(counts))]
        for b, n in zip(buckets, counts, strict=True):
            mine = tuple(given[:n])
            del given[:n]
            if b.by_rows:
                updated_rows(self.rule, b, mine)
            else:
                updated(self.rule, [b.planned()], [b.tensors()], [mine])

    def _next(self, b: Bucket) -> tuple[float, tuple[float, ...]]:
        """The count of steps of a bucket with the one that is due, and the numbers for that."""
        kept = self.state[b.params[0]]
        step = kept["step"] + 1.0
        return step, self._numbers(b.group, step, kept)

    def _advance(self, b: Bucket) -> None:
        """Notes the step of each parameter."""
        changed = self._counted(b.group, self.state[b.params[0]])
        for p in b.params:
            self.state[p].update(changed)

    def _read(self, buckets: list[Bucket]) -> list[float]:
        """The numbers of the step that is due, in a captured function: it is noted, too."""
        found: list[float] = []
        for b in buckets:
            steps = [self.state[p]["step"] for p in b.params]
            if steps.count(steps[0]) != len(steps) or self._options(b.group) != b.options:
                raise dt.CaptureError(
                    f"{self._name}: a captured step is not for the groups as they are: options "
                    "such as nesterov, or which parameters have had how many steps, have changed; "
                    "capture the function again with dt.jit(...)"
                )
            found += self._next(b)[1]
            self._advance(b)
        return found

    # --- what each optimiser says
    def _options(self, group: Group) -> Hashable:
        """What the rule depends on, and no number."""
        return ()

    def _names(self, group: Group) -> tuple[str, ...]:
        """The tensors that are kept of each parameter."""
        return ()

    def _begun(self, group: Group, p: dt.Tensor) -> State:
        """What is kept of a parameter before its first step."""
        return {"step": 0.0, **{n: begun(p, 0.0) for n in self._names(group)}}

    def _numbers(self, group: Group, step: float, kept: State) -> tuple[float, ...]:
        """What the rule computes with in a step, the first of which is 1."""
        raise NotImplementedError(f"{type(self).__name__} has no _numbers; or override step")

    def _counted(self, group: Group, kept: State) -> State:
        """The numbers that are kept, after one more step."""
        return {"step": kept["step"] + 1.0}

    def _check_rows(self, group: Group, g: Any) -> None:
        """Raises: LayoutError for a gradient that is sparse, where it may not be, or that way."""
        raise dt.LayoutError(
            f"{self._name}: a gradient has the layout {g.layout.name}; use optim.SGD, Adagrad or "
            "SparseAdam, which go to its rows alone, or make it dense: p.grad.to_dense()"
        )

    def _check_layout(self, g: Any) -> None:
        """Raises: LayoutError for one that has no rows of a parameter."""
        if g.layout is not dt.sparse_coo or g.indices().shape[0] != 1:
            raise dt.LayoutError(
                f"{self._name}: a gradient of layout {g.layout.name} with {g.ndim} axes; sparse "
                "gradients are COO over rows, as embedding(sparse=True) gives them; else "
                "p.grad.to_dense()"
            )

    # --- its state
    def state_dict(self) -> dict[str, Any]:
        """Its state and groups: parameters by number, tensors over the same memory.

        In PyTorch's structure, so that either's state can be loaded by the other.
        """
        number = {id(p): i for i, p in enumerate(p for g in self.param_groups for p in g["params"])}
        groups = [
            {n: v for n, v in g.items() if n != "params"}
            | {"params": [number[id(p)] for p in g["params"]]}
            for g in self.param_groups
        ]
        state = {
            number[id(p)]: self._shown(p, kept)
            for p, kept in self.state.items()
            if isinstance(p, dt.Tensor) and id(p) in number and kept
        }
        return {"state": {i: state[i] for i in sorted(state) if state[i]}, "param_groups": groups}

    def _shown(self, p: dt.Tensor, kept: State) -> State:
        """What is kept of a parameter, numbers as tensors."""
        found = {}
        for name, x in kept.items():
            if name == "step" or name in self.numbers_kept:
                if name == "step" and not self.counts:
                    continue
                x = dt.asarray(x, dtype=dt.float32, device=p.device)
            found[name] = x
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes over a copy of a state, on the devices of the parameters and in their dtypes.

        What is kept of float16 and bfloat16 parameters is float32.

        Raises: ArgumentError where it does not fit; then nothing has been loaded.
        """
        try:
            given, states = [*state_dict["param_groups"]], dict(state_dict["state"])
            numbers = [[*g["params"]] for g in given]
            set(itertools.chain(*numbers))  # raises TypeError for what cannot be a key
            if not all(isinstance(x, Mapping) for x in (*given, *states.values())):
                raise TypeError
        except (KeyError, TypeError, ValueError):
            raise dt.ArgumentError(
                f"{self._name}.load_state_dict: no state of an optimiser; it has 'state' and "
                "'param_groups', each with 'params'"
            ) from None
        mine = [g["params"] for g in self.param_groups]
        if [*map(len, numbers)] != [*map(len, mine)]:
            raise dt.ArgumentError(
                f"{self._name}.load_state_dict: groups of {[*map(len, numbers)]} parameters where "
                f"the optimiser has {[*map(len, mine)]}"
            )
        of = dict(zip(itertools.chain(*numbers), itertools.chain(*mine), strict=True))
        groups = [
            {**copy.deepcopy({n: v for n, v in new.items() if n != "params"}), "params": ours}
            for new, ours in zip(given, mine, strict=True)
        ]
        for group, old in zip(groups, self.param_groups, strict=True):
            for name in {*self.defaults, "params"} - {*group}:
                group[name] = old[name]
            self._check_all(group)
        made = self._loaded(states, of, groups)
        self.param_groups = groups
        self.state = made

    def _loaded(
        self, states: dict[Any, Any], of: dict[Any, dt.Tensor], groups: list[Group]
    ) -> dict[Any, State]:
        made: dict[Any, State] = defaultdict(dict)
        names = {id(p): self._names(g) for g in groups for p in g["params"]}
        for number, kept in states.items():
            p = of.get(number)
            if p is None:
                made[number] = copy.deepcopy(kept)
                continue
            lacking = sorted({*names[id(p)]} - {*kept})
            if lacking and kept:
                raise dt.ArgumentError(
                    f"{self._name}.load_state_dict: the state of parameter {number} has no "
                    f"{', '.join(lacking)}: it is another optimiser's"
                )
            found = {n: self._taken(number, n, p, x) for n, x in kept.items()}
            if found:
                found.setdefault("step", 1.0)
                made[p] = found
        return made

    def _taken(self, number: object, name: str, p: dt.Tensor, x: Any) -> Any:
        """One of the values that are kept of a parameter."""
        op = f"{self._name}.load_state_dict"
        if name == "step" or name in self.numbers_kept:
            x = x.item() if isinstance(x, dt.Tensor) and x.size == 1 else x
            return arguments.real(op, x, f"{name} of parameter {number}")
        if not isinstance(x, dt.Tensor):
            if name in self._names(self.param_groups[0]):
                raise arguments.refused(op, f"{name} of parameter {number}", "a tensor", x)
            return copy.deepcopy(x)
        if x.shape != p.shape:
            raise dt.ArgumentError(
                f"{op}: {name} of parameter {number} has the shape "
                f"{x.shape}, the parameter {p.shape}"
            )
        with dt.no_grad():
            return dt.copy(x.detach().to(p.device).astype(p.dtype.compute))


required: Any = object()
_FLAGS = {
    "amsgrad", "capturable", "centered", "decoupled_weight_decay", "differentiable", "foreach",
    "fused", "maximize", "nesterov",
}  # fmt: skip


def _no_rule(*args: object) -> Sequence[dt.Tensor]:
    raise NotImplementedError("an optimiser has a rule, or its own step()")


def _is_tensor(x: object) -> bool:
    return isinstance(x, dt.Tensor)


def _said(p: dt.Tensor) -> str:
    return f"{p.dtype.name}{[*p.shape]}"


def checked(name: str, group: Mapping[str, Any], **least: float) -> None:
    """Raises: ArgumentError for options below these, ArgumentTypeError for what is no number."""
    for option, low in least.items():
        value = group[option]
        if isinstance(value, dt.Tensor) and value.size == 1:
            value = value.item()
        if isinstance(value, bool):
            raise arguments.refused(name, option, "a number", value)
        if not arguments.real(name, value, option) >= low:
            raise dt.ArgumentError(f"{name}: {option} is {value}; it is {low} or more")


def checked_betas(name: str, group: Mapping[str, Any]) -> None:
    """Raise ArgumentError if betas are not two numbers in [0, 1)."""
    for i, beta in enumerate(two_numbers(name, group, "betas")):
        if not 0.0 <= beta < 1.0:
            raise dt.ArgumentError(f"{name}: betas[{i}] is {beta}; it is in [0, 1)")


def begun(p: dt.Tensor, value: float) -> dt.Tensor:
    """Return what is kept of a parameter: its square may be no half, so it is computed wider."""
    return dt.full_like(p.detach(), value, dtype=p.dtype.compute)


def two_numbers(name: str, group: Mapping[str, Any], option: str) -> tuple[float, float]:
    """Return an option that is a pair of numbers. Raises: ArgumentTypeError, ArgumentError."""
    pair = group[option]
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise dt.ArgumentError(f"{name}: {option} is {arguments.shown(pair)}; it is two numbers")
    first, second = [v.item() if _is_tensor(v) and v.size == 1 else v for v in pair]
    return arguments.real(name, first, option), arguments.real(name, second, option)


def number(x: Any) -> float:
    """An option that may be a tensor of one element, as a Python number."""
    return float(x)
