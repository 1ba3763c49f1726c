"""Stubs of `dovetail.numpy` and `dovetail.torch`, whose names are made when they are imported.

`tools/faces.py` writes them with its own files. The parameters of NumPy's functions are those of
the installed NumPy; the types of parameters and results come from the tables here. The functions of
PyTorch have the signatures of the functions of `dt` that compute them.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as host

WIDTH = 100
NUMPY_VERSION = ".".join(host.__version__.split(".")[:2])
NUMPY_HEAD = f"""\
# Written by tools/faces.py for type checkers: the names of NumPy {NUMPY_VERSION}, for ndarrays.
# mypy: disable-error-code=override
# ruff: noqa
# fmt: off
# isort: off

import builtins as _python
from collections.abc import Sequence
from typing import Any, TypeAlias, overload

import numpy as _host
import numpy.typing as _typing
"""
PARAMETER_TYPES = {
    "_Axis": "axis axes axis1 axis2 axisa axisb axisc",
    "_Shape": "shape newshape new_shape size dims dimensions",
    "_typing.DTypeLike | None": "dtype",
    "_Array | tuple[_Array | None, ...] | None": "out",
    "_python.bool": "keepdims endpoint copy hermitian full_matrices compute_uv rowvar density "
    "sparse equal_nan assume_unique invert right increasing full retstep sorted return_index "
    "return_inverse return_counts returned overwrite_input subok",
    "_Array | Sequence[Any]": "a arr x y b m v ary a1 a2 x1 x2 array M A ar1 ar2 ar element values "
    "condition xp fp arrays arys tup seq indices weights mask",
}
RESULT_TYPES = {  # the others return an ndarray
    "_python.bool": "allclose array_equal array_equiv can_cast iscomplexobj isfortran isrealobj "
    "isscalar issubdtype iterable may_share_memory shares_memory isdtype",
    "str": "array2string array_repr array_str base_repr binary_repr format_float_positional "
    "format_float_scientific mintypecode typename",
    "int": "ndim size",
    "tuple[int, ...]": "shape broadcast_shapes",
    "list[ndarray]": "array_split dsplit hsplit split vsplit",
    "tuple[ndarray, ...]": "broadcast_arrays diag_indices diag_indices_from ix_ mask_indices "
    "meshgrid nonzero tril_indices tril_indices_from triu_indices triu_indices_from unstack "
    "unravel_index",
    "tuple[ndarray, ndarray]": "histogram eig eigh qr",
    "tuple[ndarray, ndarray, ndarray]": "histogram2d",
    "type": "common_type",
    "Generator": "default_rng",
    "None": "copyto fill_diagonal info place put put_along_axis putmask save savetxt savez "
    "savez_compressed seterrcall set_printoptions setbufsize seed show_config show_runtime shuffle",
    "_host.dtype": "min_scalar_type result_type promote_types",
    "Any": "apply_along_axis average bmat busday_count busday_offset count_nonzero "
    "datetime_as_string datetime_data einsum_path errstate from_dlpack fromregex frompyfunc "
    "genfromtxt get_include get_printoptions getbufsize geterr geterrcall gradient histogramdd "
    "is_busday linspace load loadtxt lstsq nested_iters object printoptions polyfit require seterr "
    "svd unique unique_all unique_counts unique_inverse where slogdet get_state set_state "
    "get_bit_generator set_bit_generator bytes",
}
_types = {n: t for t, names in PARAMETER_TYPES.items() for n in names.split()}
_results = {n: t for t, names in RESULT_TYPES.items() for n in names.split()}


def numpy_files(package: ModuleType) -> dict[str, str]:
    """Return the stubs of `dovetail.numpy` by file name."""
    ufuncs = {n: v for n, v in vars(package).items() if isinstance(v, package.ufunc)}
    lines = [
        NUMPY_HEAD,
        "from .array_class import flatiter as flatiter, ndarray as ndarray",
        "from .ufuncs import ufunc as _ufunc",
        "from . import fft as fft, lib as lib, linalg as linalg, polynomial as polynomial, "
        "random as random, testing as testing",
        "",
        *ALIASES,
        "class ufunc(_ufunc):",
        "    @overload",
        "    def __call__(self, x: ndarray, /, *args: Any, **options: Any) -> ndarray: ...",
        "    @overload",
        "    def __call__(self, *args: Any, **options: Any) -> Any: ...",
        "",
    ]
    for name in package.__all__:
        value, theirs = getattr(package, name), getattr(host, name)
        if isinstance(value, ModuleType) or value in (package.ndarray, package.flatiter):
            continue
        if name in ufuncs:
            lines.append(f"{name}: ufunc")
        elif name != "ufunc":
            lines += _numpy_value(name, value, theirs)
    lines += ["emath: Any", "def __getattr__(name: str) -> Any: ..."]
    methods = [
        NUMPY_HEAD,
        "from ..tensor.subclass import TensorSubclass",
        "from .array_class import ndarray",
        "",
        *ALIASES,
        *_array_methods(package.ndarray),
    ]
    files = {
        "__init__.pyi": "\n".join(lines) + "\n",
        "array_methods.pyi": "\n".join(methods) + "\n",
    }
    for part in ("linalg", "fft", "random"):
        inner, theirs = getattr(package, part), getattr(host, part)
        lines = [NUMPY_HEAD, "from .array_class import ndarray as ndarray", "", *ALIASES]
        for name in inner.__all__:
            lines += _numpy_value(name, getattr(inner, name), getattr(theirs, name), part)
        files[f"{part}.pyi"] = "\n".join(lines) + "\n"
    return files


BINARY = [
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor",
    "lshift", "rshift",
]  # fmt: skip
OPERATORS = [
    f"__{kind}{name}__"
    for name in [
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "matmul",
        "and",
        "or",
        "xor",
        "lshift",
        "rshift",
    ]
    for kind in ("", "r", "i")
] + [f"__{name}__" for name in ["eq", "ne", "lt", "le", "gt", "ge"]]
ALIASES = (
    "_Array: TypeAlias = ndarray | _typing.ArrayLike",
    "_Axis: TypeAlias = int | Sequence[int] | None",
    "_Shape: TypeAlias = int | Sequence[int] | None",
    "",
)


def _array_methods(array: type) -> Iterator[str]:
    """Yield the lines of a class with the signatures of NumPy's methods, and of operators."""
    yield "class ArrayMethods(TensorSubclass):"
    for name in dir(host.ndarray):
        ours = getattr(array, name, None)
        if name in OPERATORS:
            yield f"    def {name}(self, other: Any, /) -> ndarray: ..."
        elif (
            inspect.isfunction(ours)
            and not name.startswith("_")
            and ours.__qualname__ != f"ndarray.{name}"  # which type checkers see
        ):
            yield from _numpy_function(name, getattr(host.ndarray, name), "    ")


def _numpy_value(name: str, value: Any, theirs: Any, part: str = "") -> Iterator[str]:
    """Yield the lines of a name: a function, a class whose methods draw, or a value of NumPy."""
    home = f"_host.{part}." if part else "_host."
    if value is theirs or not callable(value):
        is_type = isinstance(theirs, type)
        kind = "tuple[type, ...]" if name == "ScalarType" else type(theirs).__name__
        known = kind in ("float", "str", "bool", "int", "NoneType", "tuple[type, ...]")
        kind = kind.replace("NoneType", "None") if known else "Any"
        yield f"{name} = {home}{name}" if is_type or callable(theirs) else f"{name}: {kind}"
    elif isinstance(value, type) and issubclass(value, theirs):
        drawing = [n for n, f in vars(value).items() if callable(f) and n[0] != "_"]
        yield f"class {name}({home}{name}):{'' if drawing else ' ...'}"
        for method in drawing:
            yield from _numpy_function(method, getattr(theirs, method), "    ")
    elif isinstance(theirs, type):
        yield f"{name}: Any"
    else:
        yield from _numpy_function(name, theirs)


def _numpy_function(name: str, theirs: Callable[..., Any], indent: str = "") -> Iterator[str]:
    """Yield the lines of a function of NumPy, of which a `size` decides if it draws one number."""
    try:
        parameters = [*inspect.signature(theirs).parameters.values()]
    except ValueError:
        parameters = []
    result = _results.get(name, "ndarray")
    draws_one = any(p.name == "size" and p.default is None for p in parameters)
    if not parameters or (draws_one and result == "ndarray"):
        result = "Any"
    parts = ["self"] if indent else []
    parts += _formatted([p for p in parameters if p.name != "self"])
    parts = parts if parameters else [*parts, "*args: Any", "**options: Any"]
    yield from wrap_call(f"{indent}def {name}(", parts, f") -> {result}: ...", indent)


def _formatted(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Yield the texts of parameters, with the marks between their kinds."""
    star = False
    for i, p in enumerate(parameters):
        if p.kind is p.VAR_POSITIONAL:
            star = True
        elif p.kind is p.KEYWORD_ONLY and not star:
            star = True
            yield "*"
        kind = _types.get(p.name, "Any")
        if p.name == "shape" and any(q.name == "size" for q in parameters):
            kind = "_Array"  # a parameter of a distribution
        if p.default is None and "None" not in kind and kind != "Any":
            kind += " | None"
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        kind = "Any" if stars else kind
        yield f"{stars}{p.name}: {kind}{'' if p.default is p.empty else ' = ...'}"
        after = parameters[i + 1].kind if i + 1 < len(parameters) else None
        if p.kind is p.POSITIONAL_ONLY and after is not p.POSITIONAL_ONLY:
            yield "/"


# --- PyTorch -------------------------------------------------------------------------------------


def torch_files(package: ModuleType, stub_class: type[Any]) -> dict[str, str]:
    """Return the stubs of `dovetail.torch` by file name.

    stub_class: `faces.Stub`.
    """
    sources = package.names.NAMESPACES
    parents = {name.rpartition(".")[0] for name in sources}
    methods = stub_class("Self")
    lines = ["class TensorMethods(Tensor):"]
    for method in package.functions.METHODS:
        lines += methods.function(method.__name__, method, "    ")
    methods.imports["Self"] = "from typing import Self"
    methods.imports["Tensor"] = "from dovetail.tensor.subclass import TensorSubclass as Tensor"
    text = methods.render("the methods of `torch.Tensor`.", lines)
    files = {"tensor_methods.pyi": f"# mypy: disable-error-code=override\n{text}"}
    first: dict[str, str] = {}  # the namespace of each source
    for name in ("", *sources):
        stub, source = stub_class("TorchTensor"), sources.get(name, "")
        space = sys.modules[f"{package.__name__}.{name}".rstrip(".")]
        inner = sorted(n.rpartition(".")[2] for n in sources if n.rpartition(".")[0] == name)
        lines = [f"from . import {n} as {n}" for n in inner]
        stub.imports["Tensor"] = TENSOR_IMPORT
        if source and source in first:
            lines.append(f"from {package.__name__}.{first[source]} import *")
        else:
            first[source] = name
            names = sorted({*dir(space)} - {*inner})
            values = {n: getattr(space, n) for n in names if hasattr(space, n)}
            if not name:  # whose `int`, `float` and `bool` are dtypes: no signature can be there
                functions = [
                    n for n, value in values.items()
                    if _is_plain_function(value) and n != "complex"  # a type in signatures
                ]  # fmt: skip
                own = stub_class("TorchTensor")
                own.imports["Tensor"] = TENSOR_IMPORT
                texts = [line for n in functions for line in own.function(n, values.pop(n))]
                text = own.render("the functions of `torch`.", texts)
                files["typed_functions.pyi"] = _rename_tensor(text)
                lines += [f"from .typed_functions import {n} as {n}" for n in functions]
            for public, value in values.items():
                lines += _torch_value(public, value, source, stub)
        lines.append("def __getattr__(name: str) -> Any: ...")
        stub.imports["Any"] = "from typing import Any"
        path = name.replace(".", "/")
        path = f"{path}/__init__.pyi".lstrip("/") if name in parents else f"{path}.pyi"
        text = stub.render(f"the names of `torch.{name}`.".replace(".`", "`"), lines)
        files[path] = _rename_tensor(text)
    return files


TENSOR_IMPORT = "from dovetail.tensor.tensor import Tensor"
TORCH_CLASSES = {  # by module of `dovetail.torch`
    "adoption": ("Tensor",),
    "creation": ("Size",),
    "switches": ("device",),
    "training": ("Buffer", "DataLoader", "Function", "Generator", "Parameter"),
}
_torch_classes = {n: home for home, names in TORCH_CLASSES.items() for n in names}


def _is_plain_function(value: Any) -> bool:
    """Return True for a function, or a wrapper of one."""
    return inspect.isfunction(value) and inspect.isfunction(inspect.unwrap(value))


def _torch_value(name: str, value: Any, source: str, stub: Any) -> Iterator[str]:
    """Yield the lines of a name of a namespace: PyTorch's, or that of the package `source`."""
    if isinstance(value, ModuleType) or value is Any or name in ("annotations", "TENSOR_TYPES"):
        return
    if _is_plain_function(value):
        yield from stub.function(name, value)
    elif isinstance(value, type) and value.__module__.startswith("dovetail"):
        own = value.__module__.startswith("dovetail.torch") and name in _torch_classes
        home = f"torch.{_torch_classes[name]}" if own else source
        if home or hasattr(sys.modules["dovetail"], name):
            yield f"from {f'dovetail.{home}'.rstrip('.')} import {name} as {name}"
        else:
            yield f"{name}: Any"
    elif type(value).__name__ == "DType":
        stub.imports["DType"] = "from dovetail.dtypes import DType"
        yield f"{name}: DType"
    else:
        kind = type(value).__name__ if type(value) in (float, str) else "Any"
        stub.imports["builtins"] = "import builtins"
        yield f"{name}: {kind if kind == 'Any' else f'builtins.{kind}'}"


def _rename_tensor(text: str) -> str:
    """Return a stub in which `Tensor` is PyTorch's class and `AnyTensor` that of `dt`."""
    lines = []
    for line in text.splitlines():
        if line.startswith("from dovetail.tensor.tensor import "):
            line = re.sub(r"\bTensor\b", "Tensor as AnyTensor", line)
        elif not line.lstrip().startswith(('"""', "from ", "#")):
            line = re.sub(r"(?<![.\w])Tensor\b", "AnyTensor", line)
        lines.append(re.sub(r"\bTorchTensor\b", "Tensor", line))
    lines.insert(1, "# ruff: noqa")
    head = lines.index("")
    own = "from dovetail.torch.adoption import Tensor"
    if f"{own} as Tensor" not in lines:
        lines.insert(head + 1, own)
    return "\n".join(lines) + "\n"


def wrap_call(head: str, parts: list[str], tail: str, indent: str = "") -> Iterator[str]:
    """Yield a call in one line, with its parts in a second line, or with a line for each part."""
    inside = ", ".join(parts)
    if len(head + inside + tail) <= WIDTH:
        yield head + inside + tail
    elif len(indent) + 4 + len(inside) <= WIDTH:
        yield from (head, f"{indent}    {inside}", f"{indent}{tail}")
    else:
        yield from (head, *(f"{indent}    {p}," for p in parts), f"{indent}{tail}")
