"""What names from outside mean in a kernel of loops: functions of numbers, of rounds, dtypes."""

from __future__ import annotations

import ast
import builtins
import math
from functools import cache

import numpy as np

from ..dtypes import DType, dtype
from ..errors import DovetailError
from ..functions import datatypes, elementwise, number_parts, special, statistics
from ..ops.table import TABLE, Op

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide",
    ast.FloorDiv: "floor_divide", ast.Mod: "remainder", ast.Pow: "pow",
    ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor",
    ast.LShift: "bitwise_left_shift", ast.RShift: "bitwise_right_shift",
}  # fmt: skip
UNARY: dict[type[ast.unaryop], str] = {
    ast.USub: "negative", ast.UAdd: "positive", ast.Not: "logical_not",
    ast.Invert: "bitwise_invert",
}  # fmt: skip
COMPARED: dict[type[ast.cmpop], str] = {
    ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal",
    ast.Gt: "greater", ast.GtE: "greater_equal",
}  # fmt: skip
# What a generator expression is given to, and the row that combines it.
REDUCTIONS = {"sum": "sum", "prod": "prod", "max": "max", "min": "min", "any": "any", "all": "all"}
SPELLED = {  # NumPy's and math's names
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "power": "pow", "fabs": "abs", "absolute": "abs",
    "true_divide": "divide", "rint": "round", "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift",
}  # fmt: skip
ELSEWHERE = {"math", "numpy", "cmath"}  # modules whose functions are taken for ours by name
WORDS = {  # of syntax: what to write in its place
    "While": "'while': no bound on its rounds is known; write `for k in range(n):` and `break`",
    "Try": "'try': nothing raises in a kernel",
    "With": "'with' blocks",
    "Raise": "'raise': write a value that says so",
    "Assert": "'assert': pass debug=True to have indices checked",
    "FunctionDef": "functions inside: define it outside, and call it",
    "Lambda": "'lambda': define a function outside, and call it",
    "ClassDef": "classes",
    "Import": "imports: import outside",
    "ImportFrom": "imports: import outside",
    "Delete": "'del'",
    "Global": "'global': numbers of the outside are read, never written",
    "Nonlocal": "'nonlocal': numbers of the outside are read, never written",
    "Match": "'match': write if and elif",
    "List": "lists: memory belongs to tensors; pass one as dt.InOut",
    "Dict": "dicts",
    "Set": "sets",
    "ListComp": "lists: give the same to sum(), max(), min(), any() or all()",
    "DictComp": "dicts",
    "SetComp": "sets",
    "JoinedStr": "strings",
    "Await": "'await'",
    "Yield": "'yield'",
    "YieldFrom": "'yield'",
    "Starred": "'*' here",
    "Slice": "slices: name each element, in a loop",
    "NamedExpr": "':='; assign before",
    "AsyncFor": "'async'",
    "AsyncWith": "'async'",
    "TryStar": "'try': nothing raises in a kernel",
}


@cache
def _rows() -> dict[int, str]:
    """The rows of our own functions, by the id of each."""
    found: dict[int, str] = {}
    for module in (elementwise, number_parts, special):
        for name in module.__all__:
            row = TABLE.get(name)
            if row is not None and row.kind == "map":
                found[id(getattr(module, name))] = name
    return found | {id(builtins.abs): "abs", id(builtins.pow): "pow"}


def row(f: object) -> Op | None:
    """The elementwise op that a function stands for."""
    name = _rows().get(id(f))
    if name is None and _module(f) in ELSEWHERE:
        called = getattr(f, "__name__", "")
        name = SPELLED.get(called, called)
    found = TABLE.get(name) if name is not None else None
    return found if found is not None and found.kind == "map" else None


def _module(f: object) -> str:
    if isinstance(f, np.ufunc):
        return "numpy"
    return str(getattr(f, "__module__", "")).partition(".")[0]


@cache
def _reductions() -> dict[int, str]:
    found = {id(getattr(builtins, n)): n for n in ("sum", "max", "min", "any", "all")}
    found |= {id(getattr(statistics, n)): n for n in REDUCTIONS}
    found[id(math.prod)] = "prod"
    return found


def reduction(f: object) -> str | None:
    """The reduction that a function of a generator stands for."""
    return _reductions().get(id(f))


def is_astype(f: object) -> bool:
    """Whether it is `dt.astype`."""
    return f is datatypes.astype


def dtype_of(x: object) -> DType | None:
    """The dtype that an object of the outside names; None if it is something else."""
    if isinstance(x, DType):
        return x
    if isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
        try:
            return dtype(x)
        except DovetailError:
            return None
    return None
