"""PyTorch's names with PyTorch's meanings: `import dovetail.torch as torch`.

A program for PyTorch runs when its imports change: `import dovetail.torch as torch`,
`import dovetail.torch.nn as nn`, `import dovetail.torch.nn.functional as F`,
`from dovetail.torch.utils.data import DataLoader`. Tensors are of class `torch.Tensor`, a subclass
of `dt.Tensor`: every function of `dt` accepts them. Random numbers are dovetail's own.
"""

from __future__ import annotations

import sys
from functools import partial, reduce
from types import ModuleType
from typing import Any

import dovetail as dt

from . import functions, methods, names, namespaces, storing, switches
from .adoption import Tensor as Tensor
from .adoption import wrap
from .creation import TENSOR_TYPES, Size, tensor

__all__ = ["Size", "compile", "is_tensor", "load", "manual_seed", "save", "tensor"]

methods.attach_methods()

_SAME_NAMES = frozenset(names.SAME_NAMES.split())
_FUNCTIONAL_NAMES = frozenset(names.FUNCTIONAL_NAMES.split())
# Functions of PyTorch's meaning, by their names in `torch`.
_FUNCTIONS = {
    f.__name__: f
    for f in (*functions.METHODS, *functions.FUNCTIONS)
    if f.__name__ not in functions.ONLY_METHODS
} | {"range": functions.arange_with_end}


def compile(model: Any = None, **options: Any) -> Any:
    """Return a function or module, captured by `dt.jit`.

    - `model`: a function or a module; None returns a decorator.
    - `options`: `mode`, `dynamic`, `backend`, `fullgraph` and others have no effect.
    """
    if model is None:
        return partial(compile, **options)
    if isinstance(model, dt.nn.Module):
        model.forward = dt.jit(model.forward)  # type: ignore[method-assign]  # of this instance
        return model
    return dt.jit(model)


def is_tensor(obj: object) -> bool:
    """Return True for a tensor of dovetail, also of class `dt.Tensor`.

    - `obj`: any object.
    """
    return isinstance(obj, dt.Tensor)


def manual_seed(seed: int) -> Any:
    """Restart the default generator at a seed, and return it.

    The numbers are other numbers than PyTorch's of this seed, and the same on all devices.

    - `seed`: an int.
    """
    return dt.random.manual_seed(int(seed))


def set_float32_matmul_precision(precision: str) -> None:
    """Do nothing: products of float32 are always computed in float32.

    - `precision`: any.
    """


def get_float32_matmul_precision() -> str:
    """Return "highest"."""
    return "highest"


save, load, device, version = storing.save, storing.load, switches.device, switches.version
for _function in (tensor, save, load):
    _function.__module__ = __name__
layout = type(dt.strided)
contiguous_format, channels_last, preserve_format = (
    f"torch.{name}" for name in ("contiguous_format", "channels_last", "preserve_format")
)
channels_last_3d, memory_format = "torch.channels_last_3d", str
__version__ = dt.__version__


def _fill_namespaces() -> None:
    """Create the namespaces, and enter what is not in a package of `dt`."""
    spaces = namespaces.build(names.NAMESPACES)
    for kind in names.DEVICE_KINDS:
        vars(spaces[kind]).update(switches.device_functions(kind))
    vars(spaces["backends"]).update(switches.backends())
    for name, value in switches.backends().items():
        sys.modules[f"{__name__}.backends.{name}"] = value
    vars(spaces["autograd"])["Variable"] = _variable
    vars(spaces["func"])["functional_call"] = _late("nn.utils", "functional_call")
    vars(spaces["linalg"])["matrix_exp"] = _late("linalg", "expm")
    vars(spaces["linalg"])["vander"] = _late("", "vander")


def _late(package: str, name: str) -> Any:
    """Return a function that calls one of a package of `dt`, which is loaded then."""

    def call(*args: Any, **options: Any) -> Any:
        function = getattr(reduce(getattr, package.split("."), dt) if package else dt, name)
        return wrap(function)(*args, **options)

    call.__name__ = call.__qualname__ = name
    return call


def _variable(data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
    """Return the tensor, which requires a gradient if asked: PyTorch's old `Variable`."""
    return data.requires_grad_() if requires_grad else data


def __getattr__(name: str) -> Any:
    """Return a name of PyTorch, built when it is first used. Raises: AttributeError with a hint."""
    if name in _FUNCTIONS:
        value: Any = namespaces.wrap_as(_FUNCTIONS[name], name, __name__)
    elif name in _SAME_NAMES:
        value = namespaces.convert(getattr(dt, name), name, __name__)
    elif name in _FUNCTIONAL_NAMES:
        value = namespaces.wrap_as(getattr(dt.nn.functional, name), name, __name__)
    elif name in names.OTHER_SOURCES:
        source = reduce(getattr, names.OTHER_SOURCES[name].split("."), dt)
        value = namespaces.convert(source, name, __name__)
    elif name in TENSOR_TYPES:
        value = TENSOR_TYPES[name]
    elif name in namespaces.OWN_NAMES[""]:
        value = namespaces.own_value(name)
    elif name == "vmap":
        value = sys.modules[f"{__name__}.func"].vmap
    elif name == "GradScaler":
        value = dt.amp.GradScaler
    elif name.endswith("_") and not name.startswith("_") and hasattr(dt.zeros(1), name):
        value = _method_function(name)
    else:
        raise namespaces.missing_name_error(__name__, name)
    globals()[name] = value
    return value


def _method_function(name: str) -> Any:
    """Return a function that calls a method in place, such as `torch.relu_`."""

    def call(input: Any, *args: Any, **options: Any) -> Any:
        return getattr(input, name)(*args, **options)

    call.__name__ = call.__qualname__ = name
    return call


def __dir__() -> list[str]:
    return sorted(
        {*_FUNCTIONS, *_SAME_NAMES, *_FUNCTIONAL_NAMES, *names.OTHER_SOURCES}
        | {*TENSOR_TYPES, *namespaces.OWN_NAMES[""], "vmap", "GradScaler"}
        | {n for n, value in globals().items() if _is_public(n, value)}
    )


def _is_public(name: str, value: Any) -> bool:
    """Return True for a name of PyTorch, False for the modules and helpers of this package."""
    is_own = type(value) is ModuleType or name in ("Any", "ModuleType", "annotations")
    return not (is_own or name.startswith("_") or value in (partial, reduce, wrap))


_fill_namespaces()
