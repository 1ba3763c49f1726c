"""Python functions and operators that have a meaning in a user's kernel."""

from __future__ import annotations

import ast
import builtins
import math
import types
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from ..dtypes import DType, dtype
from ..errors import DovetailError
from ..functions.elementwise import decompose, op_functions, special_functions
from ..functions.reductions import statistics
from ..ops.table import TABLE, Op

BINARY_OPS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "pow",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "bitwise_left_shift",
    ast.RShift: "bitwise_right_shift",
}
UNARY_OPS: dict[type[ast.unaryop], str] = {
    ast.USub: "negative",
    ast.UAdd: "positive",
    ast.Not: "logical_not",
    ast.Invert: "bitwise_invert",
}
COMPARISON_OPS: dict[type[ast.cmpop], str] = {
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}
REDUCTIONS = ("sum", "prod", "max", "min", "any", "all")
FOREIGN_NAMES = {  # names of NumPy and math: ours
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "power": "pow", "fabs": "abs", "absolute": "abs",
    "true_divide": "divide", "rint": "round", "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift",
}  # fmt: skip
FOREIGN_MODULES = {"math", "numpy", "cmath"}  # their functions stand for ours of the same name
SYNTAX_HINTS = {  # syntax that kernels lack: what to write in its place
    "While": "'while', whose number of rounds is unknown; write `for k in range(n):` and `break`",
    "Try": "'try', because nothing raises in a kernel",
    "With": "'with' blocks",
    "Raise": "'raise'; write a value that marks the error",
    "Assert": "'assert'; pass debug=True to check indices",
    "FunctionDef": "inner functions; define it outside and call it",
    "Lambda": "'lambda'; define a function outside and call it",
    "ClassDef": "classes",
    "Import": "imports; import outside",
    "ImportFrom": "imports; import outside",
    "Delete": "'del'",
    "Global": "'global'; outer numbers can be read but not written",
    "Nonlocal": "'nonlocal'; outer numbers can be read but not written",
    "Match": "'match'; write if and elif",
    "List": "lists; pass a tensor as dt.InOut",
    "Dict": "dicts",
    "Set": "sets",
    "ListComp": "lists; write a generator in sum(), max(), min(), any() or all()",
    "DictComp": "dicts",
    "SetComp": "sets",
    "JoinedStr": "strings",
    "Await": "'await'",
    "Yield": "'yield'",
    "YieldFrom": "'yield'",
    "Starred": "'*' here",
    "Slice": "slices; write a loop over the elements",
    "NamedExpr": "':='; assign in a statement before",
    "AsyncFor": "'async'",
    "AsyncWith": "'async'",
    "TryStar": "'try', because nothing raises in a kernel",
}


@cache
def _elementwise_names() -> dict[int, str]:
    """Return op names by function id: dovetail's elementwise ones, builtin abs, pow; cached."""
    names = {
        id(getattr(module, name)): name
        for module in (op_functions, decompose, special_functions)
        for name in module.__all__
        if name in TABLE and TABLE[name].kind == "map"
    }
    return names | {id(builtins.abs): "abs", id(builtins.pow): "pow"}


def elementwise_op(f: object) -> Op | None:
    """Return the elementwise op that a function of dt, NumPy or another library names, or None."""
    name = _elementwise_names().get(id(f))
    module = "numpy" if isinstance(f, np.ufunc) else str(getattr(f, "__module__", ""))
    if name is None and module.partition(".")[0] in FOREIGN_MODULES:
        foreign = getattr(f, "__name__", "")
        name = FOREIGN_NAMES.get(foreign, foreign)
    op = TABLE.get(name) if name is not None else None
    return op if op is not None and op.kind == "map" else None


@cache
def _list_reduction_names() -> dict[int, str]:
    """Return the op names of Python's and dovetail's reductions, by the function's id; cached."""
    names = {id(getattr(builtins, n)): n for n in ("sum", "max", "min", "any", "all")}
    return names | {id(getattr(statistics, n)): n for n in REDUCTIONS} | {id(math.prod): "prod"}


def reduction_name(f: object) -> str | None:
    """Return the name of the reduction that a function stands for, or None."""
    return _list_reduction_names().get(id(f))


def as_dtype_object(x: object) -> DType | None:
    """Return the dtype that an object names; None if it names none."""
    if isinstance(x, DType):
        return x
    if isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
        with suppress(DovetailError):
            return dtype(x)
    return None


def as_user_function(f: Any) -> types.FunctionType | None:
    """Return the Python function that `f` is or wraps if it is the user's, else None."""
    function = getattr(f, "__wrapped__", f)
    is_user = isinstance(function, types.FunctionType)
    return function if is_user and function.__module__.partition(".")[0] != "dovetail" else None
