"""Methods whose module is loaded at the first access."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import dovetail as dt
import numpy as np
import pytest
from dovetail import declarations
from dovetail.functions import methods

A = np.random.default_rng(1).normal(size=(3, 4))


@pytest.mark.parametrize("name", sorted(n for n in methods.LAZY_MODULES if n[-1] != "_"))
def test_lazy_methods_are_the_functions(name: str) -> None:
    x = dt.ones(3, device="reference")
    method = getattr(x, name)
    function = declarations.METHODS[name]  # of `dt`, or a method only
    assert method.__self__ is x and method.__func__ is function
    assert getattr(dt, name, function) is function or name in (
        "select",
        "where",
        "compress",
        "unfold",
    )
    assert (
        inspect.signature(method).parameters.keys() <= inspect.signature(function).parameters.keys()
    )


def test_lazy_methods_equal_numpy(device: dt.Device) -> None:
    x = dt.asarray(A)
    for found, want in (
        (x.median(axis=1), np.median(A, axis=1)), (x.quantile(0.3), np.quantile(A, 0.3)),
        (x.dot(A.T), A.dot(A.T)), (x.trace(), A.trace()), (x[0].diag(), np.diag(A[0])),
        (x.nansum(), np.nansum(A)), (x.conjugate(), A), (x.cumsum(), A.cumsum()),
        (x.cumsum(1), A.cumsum(1)), (x.cumprod(0), A.cumprod(0)), (x.cumprod(), A.cumprod()),
        (x.ptp(axis=0), np.ptp(A, axis=0)), (x.cov(), np.cov(A)),
        ((x > 0).cumsum(axis=-1), (A > 0).cumsum(axis=-1)),
    ):  # fmt: skip
        assert found.device is device
        np.testing.assert_allclose(found.numpy(), want, rtol=1e-12)


def test_modules_of_lazy_methods_are_not_loaded_before() -> None:
    code = (
        "import sys, dovetail as dt; x = dt.ones(3, device='reference')\n"
        "assert 'dovetail.functions.products.vector_products' not in sys.modules; x.dot(x)\n"
        "assert 'dovetail.functions.products.vector_products' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_lazy_in_place_method_loads_its_module() -> None:
    code = (
        "import sys, dovetail as dt; x = dt.asarray([1.0, dt.nan], device='reference')\n"
        "assert 'dovetail.functions.elementwise.decompose' not in sys.modules\n"
        "assert x.nan_to_num_() is x and x.tolist() == [1.0, 0.0]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_table_of_lazy_methods_has_all_methods_of_modules_that_are_not_loaded() -> None:
    for home in methods.LAZY_METHODS:
        importlib.import_module(f".{home}", "dovetail.functions")
    declared = {*declarations.METHODS, *declarations.IN_PLACE_METHODS}
    homes = {n: methods.declaring_module(n) for n in declared}
    lazy = {n for n, home in homes.items() if home not in methods.LOADED_MODULES}
    assert {
        n: homes[n].removeprefix("dovetail.functions.").replace("dovetail.", ".", 1) for n in lazy
    } == methods.LAZY_MODULES
    assert not lazy & {*vars(dt.Tensor)} and declared - lazy <= {*vars(dt.Tensor)}


def test_unknown_method_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'mediam'"):
        _ = dt.ones(3).mediam
