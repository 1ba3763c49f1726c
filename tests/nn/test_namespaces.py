"""`dt.nn` and its like: packages of their own under names of `dt`, found by entry points."""

from __future__ import annotations

import subprocess
import sys

import dovetail as dt
import dovetail_nn
import pytest
from dovetail.plugins.namespaces import namespaces

NAMES = ("nn", "optim", "data", "distributions", "onnx", "checkpoint", "tensorboard")


@pytest.mark.parametrize("name", NAMES)
def test_each_is_one_module_under_both_names(name: str) -> None:
    assert getattr(dt, name) is sys.modules[namespaces.homes()[name]]


@pytest.mark.parametrize(
    "line",
    [
        "from dovetail import nn",
        "import dovetail.nn as nn",
        "import dovetail; nn = dovetail.nn",
        "import dovetail.nn.functional as F; import dovetail.nn as nn; assert F is nn.functional",
        "import dovetail_nn as nn",
    ],
)
def test_however_it_is_imported_there_is_one(line: str) -> None:
    code = (
        f"{line}; import dovetail_nn, dovetail_nn.functional, dovetail.nn.functional, sys; "
        "assert nn is dovetail_nn and dovetail.nn.functional is dovetail_nn.functional; "
        "assert nn.__spec__.name == 'dovetail_nn' == nn.__name__; "
        "assert dovetail.nn.modules.module.Module is dovetail_nn.Module"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_dovetail_loads_none_of_them() -> None:
    code = "import dovetail, sys; assert not [m for m in sys.modules if 'dovetail_nn' in m]"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_not_there_is_an_error_as_ever() -> None:
    assert dovetail_nn.Module is dt.nn.Module
    with pytest.raises(ModuleNotFoundError):
        __import__("dovetail.nothing")
    with pytest.raises(ModuleNotFoundError):
        __import__("dovetail.nn.nothing")
    with pytest.raises(AttributeError):
        _ = dt.nothing_of_the_kind
