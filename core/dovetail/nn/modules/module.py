"""The base class of layers and networks, with named parameters, buffers and modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import dovetail as dt
from dovetail.extend import arguments, hide_internal_frames, look_up_again

from ..call_errors import explain_error
from ..constructor_errors import Explained
from . import hooks, state
from .hooks import PACKAGE_PREFIX, Hook, ModuleHookHandle, call_with_hooks, register_hook
from .moving import convert_gradient, convert_tensor, parse_target
from .parameter import Buffer, Parameter, is_persistent, mark_parameter
from .state import EXTRA_STATE_KEY, IncompatibleKeys, StateLoader

if TYPE_CHECKING:
    from dovetail.extend import DeviceLike, DTypeLike

__all__ = ["Module"]

Tensor: TypeAlias = dt.Tensor
REGISTRIES = ("_parameters", "_buffers", "_modules")


class Module(Explained):
    """The base class of layers and networks: assign parameters and modules, define `forward`.

    `training` is the mode of layers such as dropout and batch norm, which differ in training;
    `train` and `eval` set it.
    Functions captured with `dt.jit` read the tensors of their modules again at each call.
    See also: `Sequential`, `Parameter`, `ModuleList`, `dt.nn.utils.functional_call`.

    >>> import dovetail as dt
    >>> class Scale(dt.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.weight = dt.nn.Parameter(dt.ones(2))
    ...     def forward(self, x):
    ...         return x * self.weight
    >>> [name for name, _ in Scale().named_parameters()]
    ['weight']
    """

    training: bool
    captured_for: ClassVar = ("training",)  # attributes that captures depend on: docs/jit.md
    _parameters: dict[str, Tensor | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_names: set[str]  # names of buffers that are not persistent
    _forward_pre_hooks: dict[int, tuple[Hook, bool]]  # hook, with_kwargs
    _forward_hooks: dict[int, tuple[Hook, bool, bool]]  # hook, with_kwargs, always_call
    _backward_pre_hooks: dict[int, Hook]
    _backward_hooks: dict[int, Hook]
    _state_dict_pre_hooks: dict[int, Hook]
    _state_dict_hooks: dict[int, Hook]
    _load_state_dict_pre_hooks: dict[int, tuple[Hook, bool]]  # hook, with_module
    _load_state_dict_post_hooks: dict[int, Hook]

    def __init__(self) -> None:
        for name in (*REGISTRIES, *hooks.HOOK_DICTS, *state.KINDS):
            object.__setattr__(self, name, {})
        object.__setattr__(self, "_non_persistent_names", set())
        object.__setattr__(self, "training", True)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Return the module's result for its inputs; subclasses must define it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward(self, ...)")

    # --- calls and their hooks
    def __call__(self, *inputs: Any, **named: Any) -> Any:
        if (
            self._forward_pre_hooks
            or self._forward_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
        ):
            return call_with_hooks(self, inputs, named)
        try:
            return self.forward(*inputs, **named)
        except Exception as error:
            forward = type(self).forward
            if not forward.__module__.startswith(PACKAGE_PREFIX):
                hide_internal_frames(error)
                raise
            reason = explain_error(
                error, type(self).__name__, forward, (self, *inputs), named, prefix=False
            )
            hide_internal_frames(error)
            if reason is None:
                raise
            cause = error
        try:
            raise reason from cause
        except dt.DovetailError as error:
            hide_internal_frames(error)
            raise

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> ModuleHookHandle:
        """Call `hook(module, args)` before forward; return a handle to remove it.

        - `hook`: a function that returns None, or new arguments for forward.
        - `prepend`: call it before the hooks that are registered.
        - `with_kwargs`: call `hook(module, args, kwargs)`, which returns None or both.

        Raises: ArgumentTypeError if the hook is not callable.
        """
        hooks = self._forward_pre_hooks
        return register_hook("register_forward_pre_hook", hooks, hook, (hook, with_kwargs), prepend)

    def register_forward_hook(
        self,
        hook: Hook,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> ModuleHookHandle:
        """Call `hook(module, args, result)` after forward; return a handle to remove it.

        - `hook`: a function that returns None, or a new result.
        - `prepend`: call it before the hooks that are registered.
        - `with_kwargs`: call `hook(module, args, kwargs, result)`.
        - `always_call`: call it also if forward raises; the result is None then.

        Raises: ArgumentTypeError if the hook is not callable.
        """
        entry = (hook, with_kwargs, always_call)
        return register_hook("register_forward_hook", self._forward_hooks, hook, entry, prepend)

    def register_full_backward_pre_hook(
        self, hook: Hook, prepend: bool = False
    ) -> ModuleHookHandle:
        """Call `hook(module, grad_output)` when gradients reach the module's results.

        - `hook`: a function of the module and a tuple of gradients; it returns None or new
          gradients.
        - `prepend`: call it before the hooks that are registered.

        Raises: ArgumentTypeError if the hook is not callable.
        """
        hooks = self._backward_pre_hooks
        return register_hook("register_full_backward_pre_hook", hooks, hook, hook, prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> ModuleHookHandle:
        """Call `hook(module, grad_input, grad_output)` when gradients leave the module.

        - `prepend`: call it before the hooks that are registered.

        The gradients are tuples, for the positional arguments and for the results; None stands for
        a value that is no tensor or has no gradient. The hook returns None or a new grad_input.
        Raises: ArgumentTypeError if the hook is not callable.
        """
        hooks = self._backward_hooks
        return register_hook("register_full_backward_hook", hooks, hook, hook, prepend)

    # --- attributes
    def __setattr__(self, name: str, value: object) -> None:
        if "_modules" not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__}: cannot assign {name} before super().__init__() is called"
            )
        registry = self._registry_of(name, value)
        for other in REGISTRIES:
            if other != registry:
                self.__dict__[other].pop(name, None)
        if not registry:
            if name in self.__dict__ and value is not self.__dict__[name]:
                look_up_again()  # captured functions depend on the mode and the settings
            object.__setattr__(self, name, value)
            return
        self.__dict__.pop(name, None)
        if registry == "_buffers" and isinstance(value, Buffer):
            self._non_persistent_names.discard(name)
            if not is_persistent(value):
                self._non_persistent_names.add(name)
        self.__dict__[registry][name] = value

    def _registry_of(self, name: str, value: object) -> str:
        """Return the name of the registry for a value, or "" for a plain attribute.

        Raises: ArgumentTypeError for a value that cannot replace the registered one of this name.
        """
        if isinstance(value, Parameter):
            return "_parameters"
        if isinstance(value, Module):
            return "_modules"
        if isinstance(value, Buffer):
            return "_buffers"
        for registry in REGISTRIES:  # a registered name may become None, a buffer another tensor
            if name in self.__dict__[registry]:
                if value is None or (registry == "_buffers" and isinstance(value, dt.Tensor)):
                    return registry
                raise dt.ArgumentTypeError(_wrong_kind_text(self, name, registry, value))
        return ""

    def __getattr__(self, name: str) -> Any:
        for registry in REGISTRIES:
            entries = self.__dict__.get(registry)
            if entries is not None and name in entries:
                return entries[name]
        hint = arguments.hints.find_hint("Module", name)
        raise arguments.hints.attribute_error(f"{type(self).__name__!r} object", name, hint)

    def __delattr__(self, name: str) -> None:
        for registry in REGISTRIES:
            if name in self.__dict__[registry]:
                del self.__dict__[registry][name]
                self._non_persistent_names.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        registered = [n for registry in REGISTRIES for n in self.__dict__.get(registry, ())]
        return sorted({*super().__dir__(), *[n for n in registered if n.isidentifier()]})

    def __setstate__(self, state: dict[str, Any]) -> None:  # called by pickle and deepcopy
        self.__dict__.update(state)
        for x in self._parameters.values():
            if x is not None:
                mark_parameter(x)

    # --- registration
    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """Register a parameter under a name, or None to reserve the name.

        - `name`: the attribute's name, without dots.
        - `param`: an `nn.Parameter`, or None.

        Raises: ArgumentError for a name that is in use or has dots, ArgumentTypeError for a value
        that is not a parameter, GradientError for a parameter that is not a leaf.
        """
        self._check_name("register_parameter", name, "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise dt.ArgumentTypeError(
                f"register_parameter: {name!r} must be an nn.Parameter or None, got "
                f"{type(param).__name__}; use nn.Parameter(x)"
            )
        if param is not None and (grad_fn := param.grad_fn) is not None:
            raise dt.GradientError(
                f"register_parameter: {name!r} must be a leaf, got the result of {grad_fn.name}; "
                "use nn.Parameter(x.detach()), or compute it in forward()"
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that is not learnt under a name.

        - `name`: the attribute's name, without dots.
        - `tensor`: a tensor, or None to reserve the name.
        - `persistent`: include it in `state_dict()`.

        Raises: ArgumentError for a name that is in use or has dots, ArgumentTypeError for a value
        that is neither a tensor nor None.
        """
        self._check_name("register_buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, dt.Tensor):
            raise dt.ArgumentTypeError(
                f"register_buffer: {name!r} must be a tensor or None, got "
                f"{type(tensor).__name__}; use dt.asarray(x)"
            )
        self._buffers[name] = tensor
        self._non_persistent_names.discard(name)
        if not persistent:
            self._non_persistent_names.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Register a module under a name, or None to reserve the name.

        - `name`: the attribute's name, without dots.
        - `module`: a module, or None.

        Raises: ArgumentError for a name that is in use or has dots, ArgumentTypeError for a value
        that is neither a module nor None.
        """
        self._check_name("add_module", name, "_modules")
        if module is not None and not isinstance(module, Module):
            raise dt.ArgumentTypeError(
                f"add_module: {name!r} must be an nn.Module or None, got {type(module).__name__}"
            )
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """Register a module under a name: an alias of `add_module`.

        - `name`, `module`: those of `add_module`.
        """
        self.add_module(name, module)

    def _check_name(self, op: str, name: object, registry: str) -> None:
        """Raise ArgumentError for a name in use or with dots, ArgumentTypeError unless a str."""
        if registry not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__}: cannot call {op} before super().__init__() is called"
            )
        if not isinstance(name, str):
            raise dt.ArgumentTypeError(f"{op}: the name must be a str, got {type(name).__name__}")
        if not name or "." in name:
            raise dt.ArgumentError(
                f"{op}: the name must not be empty or contain a dot, got {name!r}; dots separate "
                "the names of nested modules"
            )
        if hasattr(self, name) and name not in self.__dict__[registry]:
            raise dt.ArgumentError(f"{op}: {type(self).__name__} already has an attribute {name!r}")

    # --- iteration
    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield (name, module) of this module and all within it, each once.

        - `memo`: a set of modules to leave out; those that are yielded are added to it.
        - `prefix`: the name of this module, in front of all others.
        - `remove_duplicate`: False yields a module once for each of its names.
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                inner = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, inner, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yield this module and all modules within it, each once or with duplicates.

        - `remove_duplicate`: False yields a module once for each of its names.
        """
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield (name, module) of the direct submodules, each once."""
        visited = set()
        for name, module in self._modules.items():
            if module is not None and module not in visited:
                visited.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """Yield the direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def _named_tensors(
        self, registry: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield (name, tensor) of one registry, "_parameters" or "_buffers"."""
        visited: set[int] = set()
        modules: Iterable[tuple[str, Module]] = [(prefix, self)]
        if recurse:
            modules = self.named_modules(None, prefix, remove_duplicate)
        for path, module in modules:
            for name, x in module.__dict__[registry].items():
                if x is not None and not (remove_duplicate and id(x) in visited):
                    visited.add(id(x))
                    yield (f"{path}.{name}" if path else name), x

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield (name, parameter), each parameter once, with names such as "layers.0.weight".

        - `prefix`: the name of this module, in front of all others.
        - `recurse`: False leaves out those of submodules.
        - `remove_duplicate`: False yields a tensor once for each of its names.
        """
        return self._named_tensors("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the parameters, each once.

        - `recurse`: False leaves out those of submodules.
        """
        for _, x in self.named_parameters(recurse=recurse):
            yield x

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield (name, buffer), each buffer once, with names such as "layers.0.running_mean".

        - `prefix`: the name of this module, in front of all others.
        - `recurse`: False leaves out those of submodules.
        - `remove_duplicate`: False yields a tensor once for each of its names.
        """
        return self._named_tensors("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers, each once.

        - `recurse`: False leaves out those of submodules.
        """
        for _, x in self.named_buffers(recurse=recurse):
            yield x

    # --- access by name
    def get_submodule(self, target: str) -> Module:
        """Return the module with a name such as "layers.0"; "" is this module.

        - `target`: the name.

        Raises: AttributeError where there is none.
        """
        module: Any = self
        for depth, name in enumerate(target.split(".") if target else ()):
            inner = module._modules.get(name)
            if inner is None:
                where = ".".join(target.split(".")[:depth]) or type(self).__name__
                raise AttributeError(f"{where} has no module {name!r}, which {target!r} names")
            module = inner
        return module  # type: ignore[no-any-return]  # all subclasses are modules

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Set the module with a name, or replace it.

        - `target`: the name, such as "layers.0".
        - `module`: the new module.
        - `strict`: only replace a module, add none.

        A replaced module keeps its position in the order.
        Raises: AttributeError if the outer module is missing, or the name is not that of a module;
        ArgumentError for an empty name, ArgumentTypeError for a value that is not a module.
        """
        if not target:
            raise dt.ArgumentError(
                "set_submodule: the target must not be empty; pass the name of a submodule"
            )
        if not isinstance(module, Module):
            raise dt.ArgumentTypeError(f"set_submodule: expected a Module, got {module!r:.80}")
        where, _, name = target.rpartition(".")
        parent = self.get_submodule(where)
        if not hasattr(parent, name):
            if strict:
                raise AttributeError(f"{where or type(self).__name__} has no module {name!r}")
            parent.add_module(name, module)
        elif name in parent._modules:
            parent._modules[name] = module
        else:
            raise AttributeError(
                f"{target} is not a module, got {type(getattr(parent, name)).__name__}"
            )

    def get_parameter(self, target: str) -> Tensor:
        """Return the parameter with a name such as "layers.0.weight".

        - `target`: the name.

        Raises: AttributeError where there is none.
        """
        return self._get_tensor(target, "_parameters", "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer with a name.

        - `target`: the name, such as "layers.0.running_mean".

        Raises: AttributeError where there is none.
        """
        return self._get_tensor(target, "_buffers", "buffer")

    def _get_tensor(self, target: str, registry: str, kind: str) -> Tensor:
        """Return a tensor by its dotted name. Raises: AttributeError if there is none."""
        where, _, name = target.rpartition(".")
        tensor: Tensor | None = self.get_submodule(where).__dict__[registry].get(name)
        if tensor is None:
            raise AttributeError(f"{where or type(self).__name__} has no {kind} {name!r}")
        return tensor

    # --- additional state
    def get_extra_state(self) -> Any:
        """Return additional state; subclasses define it together with `set_extra_state`."""
        raise NotImplementedError(f"{type(self).__name__} has no get_extra_state()")

    def set_extra_state(self, state: Any) -> None:
        """Restore the result of `get_extra_state`; subclasses define it.

        - `state`: the object that `get_extra_state` returned.
        """
        raise NotImplementedError(f"{type(self).__name__} has no set_extra_state(state)")

    # --- saving and loading
    def state_dict(
        self, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Return parameters and persistent buffers by name, detached, over the same memory.

        - `destination`: a dict to fill and return; None makes one.
        - `prefix`: is put in front of all names.
        - `keep_vars`: do not detach the tensors.

        Save it with `dt.save("net.safetensors", net.state_dict())`.
        See also: `load_state_dict`, `dt.save`, `dt.checkpoint.save`.
        """
        state: dict[str, Any] = {} if destination is None else destination
        for path, module in self.named_modules(None, "", False):
            start = f"{prefix}{path}." if path else prefix
            for pre_hook in [*module._state_dict_pre_hooks.values()]:
                pre_hook(module, start, keep_vars)
            for name, x in module._own_state():
                state[start + name] = x if keep_vars else x.detach()
            if _has_extra_state(module):
                state[start + EXTRA_STATE_KEY] = module.get_extra_state()
        for path, module in reversed([*self.named_modules(None, "", False)]):  # inner modules first
            start = f"{prefix}{path}." if path else prefix
            for hook in [*module._state_dict_hooks.values()]:
                changed = hook(module, state, start, {})
                state = state if changed is None else changed
        return state

    def _own_state(self) -> list[tuple[str, Tensor]]:
        """Return the tensors of this module's own state, without submodules, by name."""
        own = [*self._parameters.items()]
        own += [(n, x) for n, x in self._buffers.items() if n not in self._non_persistent_names]
        return [(n, x) for n, x in own if x is not None]

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Load a state, or nothing of it on errors; return the missing and the unexpected names.

        - `state_dict`: tensors or arrays by name, on any device, as `state_dict()` and `dt.load`
          return them.
        - `strict`: require the same names on both sides; False ignores missing and unexpected ones.
        - `assign`: parameters take the memory, device and dtype of the given tensors, instead of
          copies of their elements.

        If anything does not fit, nothing is loaded and the error lists all of it.
        Raises: ArgumentError for missing and unexpected names, ShapeError if only shapes differ,
        ArgumentTypeError for a value that is not a dict.
        """
        if not isinstance(state_dict, Mapping):
            raise dt.ArgumentTypeError(
                "load_state_dict: expected a dict of tensors by name, got "
                f"{type(state_dict).__name__}; use dt.load(file)"
            )
        loading = StateLoader(self, dict(state_dict), strict, _has_extra_state)
        loading.match()
        loading.require_fitting()
        loading.write(assign)
        return loading.keys

    # --- hooks
    def register_state_dict_pre_hook(self, hook: Hook) -> ModuleHookHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` reads the module."""
        return register_hook("register_state_dict_pre_hook", self._state_dict_pre_hooks, hook, hook)

    def register_state_dict_post_hook(self, hook: Hook) -> ModuleHookHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` with the collected state."""
        return register_hook("register_state_dict_post_hook", self._state_dict_hooks, hook, hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> ModuleHookHandle:
        """Call a hook, which may change the dict, before a state is loaded.

        - `hook`: a function of (module, state_dict, prefix, local_metadata, strict, missing_keys,
          unexpected_keys, error_msgs); the dict is a copy of the user's.
        """
        hooks = self._load_state_dict_pre_hooks
        return register_hook("register_load_state_dict_pre_hook", hooks, hook, (hook, True))

    def register_load_state_dict_post_hook(self, hook: Hook) -> ModuleHookHandle:
        """Call `hook(module, incompatible_keys)` after a state is compared with the module.

        The hook may change the lists of names; names that it removes cause no error. Therefore it
        runs before errors are raised and before the values are written.
        """
        hooks = self._load_state_dict_post_hooks
        return register_hook("register_load_state_dict_post_hook", hooks, hook, hook)

    # --- device and dtype; each tensor stays the same object over other memory (`x.set_(y)`), so
    # optimisers and other holders of a parameter see the change
    def _replace_tensors(self, change: Callable[[Tensor], Tensor]) -> Self:
        """Compute `change(x)` for all tensors, then replace the memory of each by its result."""
        own = {id(x): x for x in [*self.parameters(), *self.buffers()]}
        with dt.no_grad():
            changes = [(x, change(x.detach()), convert_gradient(x, change)) for x in own.values()]
            dt.evaluate(*[y for _, y, _ in changes])
            for x, y, g in changes:
                if y.dtype is not x.dtype or y.device != x.device:
                    x.set_(y)
                    if g is not None:
                        x.grad = g
        return self

    def to(self, *args: Any, **named: Any) -> Self:
        """Move tensors to a device, and cast floats to a dtype: `to(device)`, `to(dtype)`, both.

        - `args`, `named`: those of `x.to`: a device, a dtype, both, or a tensor that has both;
          `non_blocking` has no effect.

        Integers keep their dtype. Returns the module.
        Raises: DTypeError for a dtype of integers or bools, DeviceError.
        See also: `to_empty`, `type`, `half`, `bfloat16`.
        """
        device, dtype = parse_target(args, named)
        if dtype is not None and dtype.kind not in "fc":
            raise dt.DTypeError(
                f"{type(self).__name__}.to: dtype must be a float or complex dtype, got "
                f"{dtype.name}"
            )
        return self._replace_tensors(lambda x: convert_tensor(x, device, dtype))

    def to_empty(self, *, device: DeviceLike, recurse: bool = True) -> Self:
        """Give all tensors new uninitialised memory on a device, without copying.

        - `device`: the device of the new memory.
        - `recurse`: include the modules within this one.

        Use it before weights are loaded or drawn. Gradients are dropped.
        Returns the module.
        Raises: DeviceError, MemoryError; then nothing has changed.
        """
        own = {id(x): x for x in [*self.parameters(recurse), *self.buffers(recurse)]}
        with dt.no_grad():
            replacements = [(x, dt.empty_like(x.detach(), device=device)) for x in own.values()]
            for x, y in replacements:
                x.set_(y)
        return self

    def type(self, dst_type: DTypeLike) -> Self:
        """Cast all tensors, including integers, to a dtype.

        - `dst_type`: the dtype.

        Returns the module.
        """
        return self._replace_tensors(lambda x: x.astype(dst_type))

    def float(self) -> Self:
        """Cast floats to float32.

        Returns the module.
        """
        return self.to(dt.float32)

    def double(self) -> Self:
        """Cast floats to float64.

        Returns the module.
        """
        return self.to(dt.float64)

    def half(self) -> Self:
        """Cast floats to float16.

        Returns the module.
        """
        return self.to(dt.float16)

    def bfloat16(self) -> Self:
        """Cast floats to bfloat16.

        Returns the module.
        """
        return self.to(dt.bfloat16)

    def cpu(self) -> Self:
        """Move the module to the device "cpu".

        Returns the module.
        """
        return self.to("cpu")

    def cuda(self, device: int | DeviceLike = None) -> Self:
        """Move the module to "cuda", or to the CUDA device with a number.

        - `device`: a number or a device; None is "cuda".

        Returns the module.
        """
        if device is None or isinstance(device, int):
            device = "cuda" if device is None else f"cuda:{device}"
        return self.to(device)

    # --- changes of the whole module
    def train(self, mode: bool = True) -> Self:
        """Set the module and all modules within it to training mode, or to evaluation.

        - `mode`: True for training, False for evaluation.

        Returns the module.
        Raises: ArgumentTypeError for a mode that is not a bool.
        See also: `eval`, `dt.no_grad`.
        """
        if not isinstance(mode, bool):
            raise dt.ArgumentTypeError(f"train: mode must be a bool, got {type(mode).__name__}")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Set evaluation mode: `train(False)`."""
        return self.train(False)

    def apply(self, fn: Callable[[Module], object]) -> Self:
        """Call a function with each module within this one, then with this one.

        - `fn`: a function of a module; its result is ignored.

        Returns the module.
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of all parameters.

        - `requires_grad`: True computes gradients for them; False freezes them.

        Returns the module.
        """
        for x in self.parameters():
            x.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros.

        - `set_to_none`: False writes zeros into existing gradients.
        """
        for x in self.parameters():
            if x.grad is not None:
                x.grad = None if set_to_none else dt.zeros_like(x)

    # --- repr
    def extra_repr(self) -> str:
        """Return the options of a layer, which `repr` shows between the brackets."""
        return ""

    def __repr__(self) -> str:
        options = self.extra_repr()
        inner = [f"({name}): {module!r}" for name, module in self._modules.items()]
        return format_repr(type(self).__name__, options.split("\n") if options else [], inner)


def _has_extra_state(module: Module) -> bool:
    """Return True if a subclass of Module defines `get_extra_state`."""
    return type(module).get_extra_state is not Module.get_extra_state


def _wrong_kind_text(module: object, name: str, registry: str, value: object) -> str:
    """Return the error text for a value that cannot replace an attribute of another kind."""
    subject = f"{type(module).__name__}.{name} is a "
    if registry == "_parameters":
        return subject + (
            f"parameter, and must be assigned an nn.Parameter, got {type(value).__name__}; use "
            f"nn.Parameter(x), or module.{name}.copy_(x) under dt.no_grad(); `del module.{name}` "
            "first makes it a plain attribute"
        )
    if registry == "_buffers":
        return (
            subject + f"buffer, and must be assigned a tensor or None, got {type(value).__name__}"
        )
    return subject + f"module, and must be assigned a module or None, got {type(value).__name__}"


def format_repr(name: str, options: list[str], inner: list[str]) -> str:
    """Return a repr: a module's options and its contents, one per line."""
    if len(options) <= 1 and not inner:
        return f"{name}({''.join(options)})"
    lines = [line.replace("\n", "\n  ") for line in [*options, *inner]]
    return f"{name}(\n  " + "\n  ".join(lines) + "\n)"
