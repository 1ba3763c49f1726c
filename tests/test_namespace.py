"""The public names: all are declared, typed, documented; examples are true."""

from __future__ import annotations

import ast
import importlib.metadata
import inspect
import types
from pathlib import Path

import dovetail as dt
import pytest
from dovetail.tensor.layout_registry import registry

# Array API 2025.12, the main namespace.
STANDARD = """
e inf nan newaxis pi arange asarray empty empty_like eye from_dlpack full full_like linspace
meshgrid ones ones_like tril triu zeros zeros_like astype can_cast finfo iinfo isdtype result_type
abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert
bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1
floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log log1p
log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply
negative nextafter not_equal positive pow real reciprocal remainder round sign signbit sin sinh
square sqrt subtract tan tanh trunc __array_namespace_info__ take take_along_axis matmul
matrix_transpose tensordot vecdot broadcast_arrays broadcast_to concat expand_dims flip moveaxis
permute_dims repeat reshape roll squeeze stack tile unstack argmax argmin count_nonzero nonzero
searchsorted where isin unique_all unique_counts unique_inverse unique_values argsort sort
cumulative_prod cumulative_sum max mean min prod std sum var all any diff broadcast_shapes bool
int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128
"""
SIGNATURES = Path(dt.__file__).parent / "tensor" / "signatures.pyi"
ATTACHED = SIGNATURES.with_name("attached.pyi")


def declared() -> set[str]:
    """The methods that type checkers know."""
    bases = ("Methods", "Operators", "HostReads")
    trees = (ast.parse(path.read_text()) for path in (SIGNATURES, ATTACHED))
    classes = [n for t in trees for n in t.body if isinstance(n, ast.ClassDef) and n.name in bases]
    body = [n for c in classes for n in c.body]
    names = {
        n.target.id for n in body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    }
    return names | {n.name for n in body if isinstance(n, ast.FunctionDef)}


def test_type_checkers_know_the_methods_that_there_are() -> None:
    own = {name for name in vars(dt.Tensor) if not name.startswith("_")}
    there = {name for name in dir(dt.Tensor) if hasattr(dt.Tensor, name)}
    there |= {name for layout in registry.infos() for name in layout.methods}
    assert declared() <= there
    in_class = ast.parse((SIGNATURES.parent / "tensor.py").read_text())
    written = {
        n.name
        for c in in_class.body
        if isinstance(c, ast.ClassDef)
        for n in c.body
        if isinstance(n, ast.FunctionDef)
    }
    assert own - written <= declared(), "methods that type checkers do not know"


def test_the_version_is_the_distributions() -> None:
    assert dt.__version__ == importlib.metadata.version("dovetail")


def test_all_names_are_exported() -> None:
    public = {
        name
        for name, value in vars(dt).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert public - {"annotations", "NoReturn"} == set(dt.__all__) - {
        name
        for name in dt.__all__
        if name.startswith("_") or isinstance(getattr(dt, name), types.ModuleType)
    }


@pytest.mark.parametrize("name", sorted(n for n in dt.__all__ if inspect.isroutine(getattr(dt, n))))
def test_functions_say_what_they_return(name: str) -> None:
    assert (getattr(dt, name).__doc__ or "").strip(), f"dt.{name} has no docstring"


def test_standard_names_are_there_or_come_later() -> None:
    missing = []
    for name in STANDARD.split():
        try:
            getattr(dt, name)
        except dt.NotYetError:
            assert not hasattr(dt, name)
        except AttributeError:
            missing.append(name)
    assert missing == []


def test_the_namespace_promises_no_dtype_that_a_device_lacks(device: dt.Device) -> None:
    info = dt.__array_namespace_info__()
    found = info.default_dtypes()
    assert found == {
        "real floating": dt.float32, "integral": dt.int64, "indexing": dt.int64,
    }  # fmt: skip
    for kind, dtype in found.items():
        assert dt.zeros(1, dtype=dtype).dtype is dtype
        assert kind == "indexing" or dtype.name in info.dtypes(kind=kind)
    assert info.dtypes(kind="complex floating") == {}
