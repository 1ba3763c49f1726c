"""Conversion of PyTorch's modules into layers of `dt.nn`, with copies of their weights.

PyTorch is not imported: the argument's own package is used, and `torch.fx` traces modules that are
not among its layers.
"""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import dovetail as dt
from dovetail.extend import DType

from . import functional, modules
from .modules.module import Module
from .modules.parameter import Buffer, Parameter
from .utils import parametrizations

__all__ = ["from_torch"]

Tensor: TypeAlias = dt.Tensor
Options: TypeAlias = dict[str, Any]
TorchModule: TypeAlias = Any

REWRITE = "write it as a dt.nn.Module, and load module.state_dict()"
# Python's own functions, which mean the same for tensors of both libraries.
PYTHON_MODULES = ("_operator", "builtins", "math")


# --- names with another meaning in dovetail -------------------------------------------------------


def _make_extreme(name: str) -> Callable[..., Any]:
    """Return PyTorch's `max` or `min`: of all elements, along an axis with indices, or of two."""
    reduce, find, combine = (getattr(dt, n) for n in (name, f"arg{name}", f"{name}imum"))

    def call(x: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
        """Return the extreme, a pair with its indices, or the elementwise extreme."""
        if dim is None:
            return reduce(x)
        if isinstance(dim, dt.Tensor):
            return combine(x, dim)
        options = {"axis": dim, "keepdims": keepdim}
        return reduce(x, **options), find(x, **options)

    return call


def _make_spread(name: str) -> Callable[..., Tensor]:
    """Return PyTorch's `std` or `var`, which divides by n - 1 by default."""

    def call(
        x: Tensor,
        dim: Any = None,
        unbiased: bool = True,
        *,
        correction: int = 1,
        keepdim: bool = False,
    ) -> Tensor:
        """Return the spread along axes."""
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        n = correction if unbiased else 0
        return getattr(dt, name)(x, axis=dim, correction=n, keepdims=keepdim)  # type: ignore[no-any-return]  # a tensor

    return call


def _sort(x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Return the sorted values and their indices."""
    order = dt.argsort(x, axis=dim, descending=descending)
    return dt.take_along_axis(x, order, axis=dim), order


def _size(x: Tensor, dim: int | None = None) -> Any:
    """Return the shape, or the size of an axis."""
    return x.shape if dim is None else x.shape[dim]


def _repeat(x: Tensor, *sizes: Any) -> Tensor:
    """Return the whole tensor, repeated along each axis."""
    return dt.tile(x, sizes[0] if isinstance(sizes[0], tuple) else sizes)


def _median(x: Tensor, *args: Any, **options: Any) -> Any:
    """Raise ArgumentError: PyTorch's median is the lower of two middle elements."""
    raise dt.ArgumentError(
        "from_torch: torch.median is the lower middle element, and dt.median the mean of both; use "
        "torch.quantile in the module"
    )


_TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "max": _make_extreme("max"),
    "min": _make_extreme("min"),
    "std": _make_spread("std"),
    "var": _make_spread("var"),
    "sort": _sort,
    "median": _median,
    "nonzero": dt.argwhere,
}
_METHOD_TRANSLATIONS: dict[str, Callable[..., Any]] = {
    **_TRANSLATIONS,
    "size": _size,
    "repeat": _repeat,
    "float": lambda x: x.astype(dt.float32),
}


def _find_function(target: Any) -> Callable[..., Any] | None:
    """Return the function for one of PyTorch's or Python's, or None if there is none."""
    name, module = target.__name__, target.__module__ or ""
    if module in PYTHON_MODULES:
        return target  # type: ignore[no-any-return]  # of fx
    if name in _TRANSLATIONS:
        return _TRANSLATIONS[name]
    homes = (functional, dt) if module == "torch.nn.functional" else (dt, functional)
    return next((f for home in homes if callable(f := _get_public(home, name))), None)


def _get_public(home: Any, name: str) -> Any:
    """Return a public name of a package, or None."""
    try:
        return getattr(home, name)
    except AttributeError:
        return None


# --- traced modules -------------------------------------------------------------------------------


class _Reference(NamedTuple):
    """The result of an earlier step, by its name."""

    name: str


class _Step(NamedTuple):
    """A step of a traced forward: its name, kind, function or target, and arguments."""

    name: str
    kind: str
    target: Any
    args: Any
    named: Any


class TracedModule(Module):
    """A module whose forward repeats the calls that `torch.fx` has traced."""

    def __init__(self, name: str, steps: list[_Step]) -> None:
        super().__init__()
        self._name, self._steps = name, steps

    def extra_repr(self) -> str:
        """Return the name of PyTorch's class."""
        return self._name

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Return the result of the traced calls."""
        values, positional = {}, list(inputs)
        for step in self._steps:
            if step.kind == "placeholder":
                values[step.name] = self._read_input(step, positional, named)
            elif step.kind == "output":
                return _substitute(step.args[0], values)
            else:
                values[step.name] = self._run(step, values)
        return None

    def _read_input(self, step: _Step, positional: list[Any], named: dict[str, Any]) -> Any:
        """Return an argument by position or name, or its default. Raises: ArgumentError."""
        if positional:
            return positional.pop(0)
        if step.target in named:
            return named[step.target]
        if step.args:
            return step.args[0]
        raise dt.ArgumentError(f"{self._name}: missing argument {step.target!r}")

    def _run(self, step: _Step, values: dict[str, Any]) -> Any:
        """Run a step and return its result."""
        args, named = _substitute((step.args, step.named), values)
        if step.kind == "get_attr":
            return operator.attrgetter(step.target)(self)
        if step.kind == "call_module":
            return self.get_submodule(step.target)(*args, **named)
        if isinstance(step.target, str):
            return getattr(args[0], step.target)(*args[1:], **named)
        return step.target(*args, **named)


def _substitute(x: Any, values: Mapping[str, Any]) -> Any:
    """Return arguments with the results of earlier steps in place of references."""
    if isinstance(x, _Reference):
        return values[x.name]
    return _map_containers(x, lambda item: _substitute(item, values))


def _map_containers(x: Any, change: Callable[[Any], Any]) -> Any:
    """Return a container with each item changed; another value unchanged."""
    if isinstance(x, (tuple, list)):
        items = [change(item) for item in x]
        return items if isinstance(x, list) else tuple(items)
    if isinstance(x, dict):
        return {key: change(value) for key, value in x.items()}
    if isinstance(x, slice):
        return slice(*[change(bound) for bound in (x.start, x.stop, x.step)])
    return x


# --- conversion -----------------------------------------------------------------------------------


def _copy_layer_options(of: _Converter, module: TorchModule) -> Options:
    """Return the options of a layer of a transformer."""
    activation = module.activation
    if isinstance(activation, of.torch.nn.Module):
        activation = of.convert(activation, "activation")
    return {
        "d_model": module.self_attn.embed_dim,
        "nhead": module.self_attn.num_heads,
        "dim_feedforward": module.linear1.out_features,
        "dropout": module.dropout.p,
        "activation": activation if isinstance(activation, Module) else _find_function(activation),
        "layer_norm_eps": module.norm1.eps,
        "batch_first": module.self_attn.batch_first,
        "norm_first": module.norm_first,
        "bias": module.linear1.bias is not None,
    }


def _copy_stack_options(name: str) -> Callable[[_Converter, TorchModule], Options]:
    """Return a function for the options of a stack of layers, with this name of the first one."""
    return lambda of, module: {
        name: modules.Identity(),
        "num_layers": module.num_layers,
        "norm": None if module.norm is None else modules.Identity(),
    }


# Options of constructors that are no attributes; modules stand for those that replace them.
_OPTIONS: dict[str, Callable[[_Converter, TorchModule], Options]] = {
    "MultiheadAttention": lambda of, module: {
        "bias": module.in_proj_bias is not None,
        "add_bias_kv": module.bias_k is not None,
    },
    "TransformerEncoderLayer": _copy_layer_options,
    "TransformerDecoderLayer": _copy_layer_options,
    "TransformerEncoder": _copy_stack_options("encoder_layer"),
    "TransformerDecoder": _copy_stack_options("decoder_layer"),
    "Transformer": lambda of, module: {
        "custom_encoder": modules.Identity(),
        "custom_decoder": modules.Identity(),
    },
}
_RENAMED = {"NonDynamicallyQuantizableLinear": "Linear"}
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class _Converter:
    """The conversion of one tree of modules; shared modules and weights stay shared."""

    def __init__(self, device: Any) -> None:
        self.torch = sys.modules["torch"]
        self._device = device
        self._modules: dict[int, Module] = {}
        self._tensors: dict[int, Tensor] = {}

    def convert(self, module: TorchModule, path: str) -> Module:
        """Return the converted module. `path`: its name, for errors."""
        if id(module) not in self._modules:
            if any(getattr(module, hooks) for hooks in _HOOKS):
                raise dt.ArgumentError(
                    f"from_torch: {path} has hooks, which cannot be converted; remove them, and "
                    "register hooks on the result"
                )
            if hasattr(module, "parametrizations"):
                self._modules[id(module)] = self._convert_parametrized(module, path)
            else:
                converted = self._modules[id(module)] = self._create(module, type(module), path)
                self._copy_contents(module, converted, path)
        return self._modules[id(module)]

    def _convert_parametrized(self, module: TorchModule, path: str) -> Module:
        """Return a layer with the parametrizations and the state of a module.

        Raises: ArgumentError for a parametrization that is neither weight_norm nor spectral_norm.
        """
        kind = type(module).__mro__[1]  # PyTorch derives a class for each parametrized module
        layer = self._create(module, kind, path)
        for name, listed in module.parametrizations.items():
            for p in listed:
                what = type(p).__name__
                if what == "_WeightNorm":
                    parametrizations.weight_norm(layer, name, None if p.dim == -1 else p.dim)
                elif what == "_SpectralNorm":
                    iterations = getattr(p, "n_power_iterations", 1)  # vectors have none
                    parametrizations.spectral_norm(layer, name, iterations, p.eps, p.dim)
                else:
                    raise dt.ArgumentError(
                        f"from_torch: {path} has the parametrization {what}, which cannot be "
                        "converted; call torch.nn.utils.parametrize.remove_parametrizations first"
                    )
        layer.load_state_dict({n: self._copy_tensor(x) for n, x in module.state_dict().items()})
        required = {n: x.requires_grad for n, x in module.named_parameters()}
        for n, parameter in layer.named_parameters():
            parameter.requires_grad_(required[n])
        return layer.train(module.training)

    def _create(self, module: TorchModule, kind: type, path: str) -> Module:
        """Return a layer with the module's options, or a traced module, without its contents.

        `kind`: the class of the module, without its parametrizations.
        """
        name = _RENAMED.get(kind.__name__, kind.__name__)
        layer: type[Module] | None = vars(modules).get(name)
        if layer is None or not kind.__module__.startswith("torch.nn.modules."):
            return TracedModule(kind.__name__, self._trace(module, path))
        parameters = [*inspect.signature(layer).parameters.values()]
        options = {
            p.name: o for p in parameters if (o := self._read_option(module, p)) is not _MISSING
        }
        if name in _OPTIONS:
            options |= _OPTIONS[name](self, module)
        return layer(**options)

    def _read_option(self, module: TorchModule, parameter: inspect.Parameter) -> Any:
        """Return the module's value for a constructor's parameter, or _MISSING."""
        name = parameter.name
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD or name in ("device", "dtype"):
            return _MISSING
        if name == "bias" and name in module._parameters:
            return module.bias is not None
        if name in module._buffers:
            tensor = module._buffers[name]
            return None if tensor is None else self._copy_tensor(tensor)
        return self._convert_value(vars(module)[name], name) if name in vars(module) else _MISSING

    def _copy_contents(self, module: TorchModule, to: Module, path: str) -> None:
        """Give a converted module the parameters, buffers, modules and mode of its source."""
        for name, x in module._parameters.items():
            to.register_parameter(name, None) if name not in to._parameters else None
            to._parameters[name] = None if x is None else self._copy_tensor(x, Parameter)
        for name, x in module._buffers.items():
            is_persistent = name not in module._non_persistent_buffers_set
            if name in to._buffers or not hasattr(to, name):
                to._buffers.pop(name, None)
                to.register_buffer(
                    name, None if x is None else self._copy_tensor(x), persistent=is_persistent
                )
        for name, inner in module._modules.items():
            to._modules[name] = None if inner is None else self.convert(inner, f"{path}.{name}")
        to.training = module.training

    def _copy_tensor(self, x: Any, kind: Any = Buffer) -> Tensor:
        """Return a copy of a tensor: the same one for the same tensor."""
        if id(x) not in self._tensors:
            y = dt.asarray(x.detach(), device=self._device)
            if kind is Parameter:
                y = Parameter(y, requires_grad=x.requires_grad)
            self._tensors[id(x)] = y
        return self._tensors[id(x)]

    def _convert_value(self, x: Any, path: str) -> Any:
        """Return an option or an argument for dovetail. Raises: ArgumentError for other objects."""
        torch = self.torch
        if isinstance(x, torch.dtype):
            return _find_dtype(x)
        if isinstance(x, torch.device):
            return str(x)
        if isinstance(x, torch.Tensor):
            return self._copy_tensor(x)
        if isinstance(x, torch.nn.Module):
            return self.convert(x, path)
        if isinstance(x, tuple):
            x = tuple(x)  # a torch.Size, too
        return _map_containers(x, lambda item: self._convert_value(item, path))

    # --- traced modules

    def _trace(self, module: TorchModule, path: str) -> list[_Step]:
        """Return the steps of a module's forward. Raises: ArgumentError if it cannot be traced."""
        tracer = import_module("torch.fx").Tracer()
        tracer.is_leaf_module = lambda m, qualified_name: True  # other modules are not entered
        title = f"{path} ({type(module).__name__})"
        try:
            graph = tracer.trace(module)
        except Exception as error:
            raise dt.ArgumentError(
                f"from_torch: torch.fx cannot trace the forward of {title}: {error}; {REWRITE}"
            ) from error
        return [self._convert_node(node, title) for node in graph.nodes]

    def _convert_node(self, node: Any, title: str) -> _Step:
        """Return the step of a node. Raises: ArgumentError if dovetail has no such function."""
        target = node.target
        if node.op == "placeholder" and target.startswith("*"):
            raise dt.ArgumentError(
                f"from_torch: forward of {title} has the parameter {target}, whose number of "
                f"arguments is not known; {REWRITE}"
            )
        if node.op == "call_function":
            target = _find_function(node.target)
        elif node.op == "call_method" and not hasattr(dt.Tensor, target):
            target = _METHOD_TRANSLATIONS.get(target) or _get_public(dt, target)
        elif node.op == "call_method":
            target = _METHOD_TRANSLATIONS.get(target, target)
        if target is None:
            raise dt.ArgumentError(
                f"from_torch: forward of {title} calls {node.format_node()}, and dovetail has no "
                f"equal of {node.target}; {REWRITE}"
            )
        args, named = (self._convert_argument(x) for x in (node.args, node.kwargs))
        return _Step(node.name, node.op, target, args, named)

    def _convert_argument(self, x: Any) -> Any:
        """Return an argument of a node, with references to other nodes."""
        if hasattr(x, "format_node"):
            return _Reference(x.name)
        if isinstance(x, (tuple, list, dict, slice)):
            return _map_containers(dict(x) if isinstance(x, dict) else x, self._convert_argument)
        return self._convert_value(x, "forward")


_MISSING = object()


def _find_dtype(x: object) -> DType:
    """Return the dtype of the name of PyTorch's. Raises: DTypeError."""
    name = str(x).removeprefix("torch.")
    dtype = _get_public(dt, name)
    if not isinstance(dtype, DType):
        raise dt.DTypeError(f"from_torch: dovetail has no dtype {name}")
    return dtype


def from_torch(module: TorchModule, *, device: Any = None) -> Module:
    """Return a network of dovetail with the layers and copied weights of a PyTorch module.

    - `module`: a `torch.nn.Module`.
    - `device`: the device of the weights; None is the default device.

    A layer of `torch.nn` becomes the layer of that name. Another module is traced by
    `torch.fx.symbolic_trace`'s tracer, and repeats the traced calls with functions of the same
    meaning. So control flow by values, and `self.training` read in forward, are as they were in the
    trace. Names of parameters, shared weights, `requires_grad`, modes, `weight_norm` and
    `spectral_norm` stay. Hooks are refused.
    Raises: ArgumentTypeError if it is not a module of PyTorch; ArgumentError, which names the call
    or module that cannot be converted.
    See also: `Module.load_state_dict`, `dt.onnx.load`.

    >>> import dovetail as dt
    >>> import torch  # doctest: +SKIP
    >>> net = dt.nn.from_torch(torch.nn.Linear(4, 2))  # doctest: +SKIP
    >>> net(dt.ones((3, 4))).shape  # doctest: +SKIP
    (3, 2)
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(module, torch.nn.Module):
        raise dt.ArgumentTypeError(
            f"from_torch: module must be a torch.nn.Module, got {type(module).__name__}"
        )
    state = dt.random.get_state()
    try:  # constructors draw weights, which are replaced
        return _Converter(device).convert(module, "module")
    finally:
        dt.random.set_state(state)
