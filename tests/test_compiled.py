"""The hot path, compiled and as Python: the same results, and it says which of them runs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import dovetail as dt
import pytest

ROOT = Path(__file__).parent.parent
CORE = ROOT / "core" / "dovetail"
TYPED = sorted(
    ".".join(p.relative_to(CORE.parent).with_suffix("").parts) for p in CORE.rglob("*.pxd")
)
PROGRAM = """
import dovetail as dt
x = dt.arange(12, dtype=dt.float32).reshape(3, 4)
total = 0.0
for i in range(4):
    x[1:, ::2] = x[:-1, ::2] * 0.5 + float(i)
    y = dt.exp(x - 1.0).sum(axis=0)
    total += float(y[1])
print(dt.__config__["hot_path"], total.hex(), x.tolist())
"""


def ran(pure: bool, program: str = PROGRAM) -> list[str]:
    """What a program prints, in one of the two modes."""
    environ = {k: v for k, v in os.environ.items() if k != "DOVETAIL_PURE"}
    if pure:
        environ["DOVETAIL_PURE"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout.split(maxsplit=1)


def is_built() -> bool:
    return importlib.util.find_spec(TYPED[0]) is not None and any(
        (CORE / "/".join(TYPED[0].split(".")[1:])).parent.glob("*.so")
    )


def test_without_compiled_modules_the_sources_run() -> None:
    mode, _ = ran(pure=True)
    assert mode == "python"
    code = "import dovetail; print(*dovetail.__config__['compiled_modules'], 'none')"
    assert ran(True, code) == ["none"]


def test_both_modes_give_the_same_bits() -> None:
    (_, pure), (_, usual) = ran(pure=True), ran(pure=False)
    assert pure == usual


@pytest.mark.skipif(not is_built(), reason="dovetail was installed without a C compiler")
def test_all_that_has_types_is_compiled() -> None:
    code = "import dovetail; print(*dovetail.__config__['compiled_modules'])"
    found = {*" ".join(ran(False, code)).split()}
    assert found == {*TYPED}


def test_the_configuration_says_which_is_in_use() -> None:
    assert dt.__config__["hot_path"] in ("compiled", "python")
    assert (dt.__config__["hot_path"] == "compiled") == bool(dt.__config__["compiled_modules"])


@pytest.mark.parametrize("name", TYPED)
def test_every_compiled_module_has_its_source(name: str) -> None:
    """Where there is no compiler, and where DOVETAIL_PURE=1."""
    assert (CORE.parent / f"{name.replace('.', '/')}.py").is_file()


def test_nonsense_in_the_variable_is_named_once() -> None:
    environ = {**os.environ, "DOVETAIL_PURE": "perhaps"}
    code = "import dovetail; print(dovetail.__config__['hot_path'])"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stderr.count("DOVETAIL_PURE='perhaps' is not 0 or 1; 0 is used") == 1
