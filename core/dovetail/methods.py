"""Functions as methods of Tensor: one table, and the same as types for checkers."""

from __future__ import annotations

from typing import Any

from . import creation, datatypes, elementwise, manipulation, printing, statistics
from .ops import TABLE, Op
from .tensor import Tensor, in_place

MODULES: dict[Any, tuple[str, ...]] = {
    elementwise: (
        *elementwise.FUNCTIONS, "clip", "relu", "softmax", "log_softmax", "isclose", "allclose",
    ),
    statistics: (
        "sum", "prod", "mean", "max", "min", "any", "all", "count_nonzero", "argmax", "argmin", "var", "std",
        "logsumexp",
    ),
    manipulation: (
        "reshape", "permute_dims", "swapaxes", "transpose", "moveaxis", "expand_dims", "squeeze", "flip", "broadcast_to",
        "expand", "unstack", "split", "flatten", "ravel", "as_strided", "copy", "contiguous", "detach", "roll", "repeat",
        "tile",
    ),
    creation: ("tril", "triu"),
    datatypes: ("astype", "to"),
}  # fmt: skip
OTHER_NAMES = {  # PyTorch's and NumPy's spellings: name -> function
    "view": manipulation.view_as, "permute": manipulation.permute_dims, "unsqueeze": manipulation.expand_dims,
    "clone": manipulation.copy, "movedim": manipulation.moveaxis, "flatten": manipulation.flatten,
    "mul": elementwise.multiply, "sub": elementwise.subtract, "div": elementwise.divide, "neg": elementwise.negative,
    "eq": elementwise.equal, "ne": elementwise.not_equal, "lt": elementwise.less, "le": elementwise.less_equal,
    "gt": elementwise.greater, "ge": elementwise.greater_equal, "clamp": elementwise.clip,
    "__repr__": printing.represent, "__str__": printing.text, "__format__": printing.formatted,
}  # fmt: skip
IN_PLACE_NAMES = {"mul": "multiply", "sub": "subtract", "div": "divide", "neg": "negative"}


def _in_place(op: Op) -> Any:
    def method(self: Tensor, *others: Any) -> Tensor:
        return in_place(op, self, *others)

    method.__name__ = method.__qualname__ = f"{op.name}_"
    method.__doc__ = f"`{op.name}` written into this tensor, which is returned."
    return method


def _install() -> None:
    for module, names in MODULES.items():
        for name in names:
            setattr(Tensor, name, getattr(module, name))
    for name, function in OTHER_NAMES.items():
        setattr(Tensor, name, function)
    for name in elementwise.FUNCTIONS:
        setattr(Tensor, f"{name}_", _in_place(TABLE[name]))
    for name, full in IN_PLACE_NAMES.items():
        setattr(Tensor, f"{name}_", _in_place(TABLE[full]))


_install()
