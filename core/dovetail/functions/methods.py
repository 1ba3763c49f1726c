"""Functions as methods of Tensor: one table; `tensor/signatures.pyi` has it for type checkers."""

from __future__ import annotations

import sys
from types import MethodType
from typing import Any

from ..arguments import choice, named
from ..device import device as device_named
from ..errors import ArgumentError, NotYetAttribute
from ..ops import table as ops
from ..ops.table import TABLE, Op
from ..tensor import layout_registry as layout_plugins
from ..tensor import printing
from ..tensor.operands import beside
from ..tensor.tensor import Tensor
from ..tensor.verbs import in_place
from ..tensor.writes import write_result
from . import (
    creation,
    datatypes,
    elementwise,
    interop,
    keeping,
    manipulation,
    numpy_protocol,
    sets,
    sorting,
    statistics,
    transfer,
)

MODULES: dict[Any, tuple[str, ...]] = {
    elementwise: (
        *elementwise.FUNCTIONS, "clip", "relu", "softmax", "log_softmax", "isclose", "allclose",
    ),
    statistics: (
        "sum", "prod", "mean", "max", "min", "any", "all", "count_nonzero", "argmax", "argmin",
        "var", "std", "logsumexp",
    ),
    manipulation: (
        "reshape", "permute_dims", "swapaxes", "transpose", "moveaxis", "expand_dims", "squeeze",
        "flip", "diagonal", "broadcast_to", "expand", "unstack", "split", "flatten", "ravel",
        "as_strided", "copy", "contiguous", "roll", "repeat", "tile",
    ),
    creation: ("tril", "triu"),
    sorting: ("sort", "argsort", "topk"),
    sets: ("unique_all", "unique_counts", "unique_inverse", "unique_values", "isin"),
    datatypes: ("astype", "to"),
    transfer: ("pin_memory", "is_pinned"),
}  # fmt: skip
OTHER_NAMES = {  # PyTorch's and NumPy's spellings, and Python's
    "view": manipulation.view_as,
    "permute": manipulation.permute_dims,
    "unsqueeze": manipulation.expand_dims,
    "clone": manipulation.copy,
    "movedim": manipulation.moveaxis,
    "mul": elementwise.multiply,
    "sub": elementwise.subtract,
    "div": elementwise.divide,
    "neg": elementwise.negative,
    "eq": elementwise.equal,
    "ne": elementwise.not_equal,
    "lt": elementwise.less,
    "le": elementwise.less_equal,
    "gt": elementwise.greater,
    "ge": elementwise.greater_equal,
    "clamp": elementwise.clip,
    "__repr__": printing.represent,
    "__str__": printing.text,
    "__format__": printing.formatted,
    "__dlpack__": interop.dlpack,
    "__dlpack_device__": interop.dlpack_device,
    "__array_ufunc__": numpy_protocol.array_ufunc,
    "__array_function__": numpy_protocol.array_function,
}
IN_PLACE = {name: TABLE[name] for name in elementwise.FUNCTIONS} | {
    "mul": ops.MULTIPLY,
    "sub": ops.SUBTRACT,
    "div": ops.DIVIDE,
    "neg": ops.NEGATIVE,
}

LATER = {
    "complex numbers": ("conj", "real", "imag", "angle"),
    "Fourier transforms": ("fft",),
    "native intrinsics": ("fast_math",),
}  # fmt: skip
WHAT = {name: part for part, names in LATER.items() for name in names}


def refuse(where: str, name: str) -> None:
    """Raises: NotYetAttribute for a name that a later version brings."""
    if name in WHAT:
        raise NotYetAttribute(f"{where}.{name}: {WHAT[name]} come with a later version")


def missing(x: Tensor, name: str) -> Any:
    """What Tensor says to a name that it does not have."""
    refuse("Tensor", name)
    return MethodType(added("methods", name, "'Tensor' object has no attribute"), x)


def added(where: str, name: str, otherwise: str) -> Any:
    """What an installed layout adds under a name. Raises: AttributeError where none does."""
    if name.startswith("_"):
        raise AttributeError(f"{otherwise} {name!r}")
    try:
        return layout_plugins.registry.find(where, name)
    except AttributeError as error:
        raise AttributeError(f"{otherwise} {name!r}") from error.__cause__


def to_dense(x: Tensor) -> Tensor:
    """The tensor itself: it is strided. Of another layout: the same elements, strided."""
    return x


def _in_place(op: Op) -> Any:
    def method(self: Tensor, *others: Any) -> Tensor:
        if len(others) != op.arity - 1:
            raise ArgumentError(
                f"{op.name}_: takes {op.arity - 1} operands besides the tensor, not {len(others)}"
            )
        return in_place(op, self, *others)

    method.__name__ = method.__qualname__ = f"{op.name}_"
    method.__doc__ = f"This tensor, after `{op.name}` has been written into it."
    return method


@named
def clip_(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """This tensor, after `clip` has been written into it."""
    return write_result("clip", x, elementwise.clip(x, min, max))


@named
def relu_(x: Tensor) -> Tensor:
    """This tensor, after `relu` has been written into it."""
    return write_result("relu", x, elementwise.relu(x))


@named
def fill_(x: Tensor, value: Any) -> Tensor:
    """This tensor, filled with one number."""
    return write_result("fill", x, creation.full(x.shape, value, dtype=x.dtype, device=x.device))


@named
def zero_(x: Tensor) -> Tensor:
    """This tensor, filled with 0."""
    return fill_(x, 0)


@named
def copy_(x: Tensor, other: Tensor, /) -> Tensor:
    """This tensor, after the elements of another one, broadcast and cast, have been copied into
    it.
    """
    other = other if isinstance(other, Tensor) else beside("copy_", other, (x,))
    source = datatypes.move(other, x.device)
    return write_result("copy", x, datatypes.cast(source, x.dtype))


def to_device(x: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor on a device: itself if it is there, else a copy."""
    return datatypes.move(x, device_named(device, "to_device"))


VERSIONS = (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def array_namespace(x: Tensor, /, *, api_version: str | None = None) -> Any:
    """This library, for code written for the Array API. Raises: ArgumentError for unknown
    versions.
    """
    choice("__array_namespace__", api_version, "api_version", VERSIONS)
    return sys.modules[__name__.partition(".")[0]]


HERE = {
    "clip_": clip_,
    "clamp_": clip_,
    "relu_": relu_,
    "fill_": fill_,
    "zero_": zero_,
    "copy_": copy_,
    "to_device": to_device,
    "to_dense": to_dense,
    "__array_namespace__": array_namespace,
    "__copy__": keeping.copied,
    "__deepcopy__": keeping.deep_copied,
    "__reduce_ex__": keeping.reduced,
    "__getattr__": missing,
}


def _install() -> None:
    for module, names in MODULES.items():
        for name in names:
            setattr(Tensor, name, getattr(module, name))
    for name, function in (*OTHER_NAMES.items(), *HERE.items()):
        setattr(Tensor, name, function)
    for name, op in IN_PLACE.items():
        setattr(Tensor, f"{name}_", _in_place(op))


_install()
