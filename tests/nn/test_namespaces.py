"""`dt.nn` and similar packages within dovetail are loaded at the first access."""

from __future__ import annotations

import subprocess
import sys

import dovetail as dt
import pytest

NAMES = (
    "nn", "optim", "data", "metrics", "distributions", "onnx", "checkpoint", "tensorboard",
    "sparse",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_attribute_is_the_module_of_its_name(name: str) -> None:
    module = getattr(dt, name)
    assert module is sys.modules[f"dovetail.{name}"] and module.__name__ == f"dovetail.{name}"


@pytest.mark.parametrize(
    "line",
    [
        "from dovetail import nn",
        "import dovetail.nn as nn",
        "import dovetail; nn = dovetail.nn",
        "import dovetail.nn.functional as F; import dovetail.nn as nn; assert F is nn.functional",
        "import dovetail.optim; from dovetail import nn",
    ],
)
def test_every_import_form_gives_the_same_module(line: str) -> None:
    code = (
        f"{line}; import dovetail.nn.functional, sys; "
        "assert nn is sys.modules['dovetail.nn'] is dovetail.nn; "
        "assert nn.__spec__.name == 'dovetail.nn' == nn.__name__; "
        "assert dovetail.nn.modules.module.Module is nn.Module"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_of_dovetail_loads_no_package() -> None:
    names = {f"dovetail.{name}" for name in NAMES}
    code = f"import dovetail, sys; assert not {names} & {{*sys.modules}}"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", NAMES)
def test_first_access_loads_the_package(name: str) -> None:
    code = f"import dovetail, sys; dovetail.{name}; assert 'dovetail.{name}' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_module_raises() -> None:
    with pytest.raises(ModuleNotFoundError):
        __import__("dovetail.nothing")
    with pytest.raises(ModuleNotFoundError):
        __import__("dovetail.nn.nothing")
    with pytest.raises(AttributeError):
        _ = dt.nothing_of_the_kind
