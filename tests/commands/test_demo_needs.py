"""Each demonstration needs only the packages of the extra that it recommends."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
from dovetail import commands
from places import ROOT

HERE = Path(commands.__file__).parent
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
CALLED = {"sklearn": "scikit-learn"}  # packages whose name differs from that of their module


def requirements() -> list[tuple[str, tuple[str, ...], str]]:
    """Return file, required modules and extra of each demonstration that looks for packages."""
    found = []
    for path in sorted(HERE.glob("demo*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(call, ast.Call)
                and getattr(call.func, "id", "") == "report_missing_modules"
            ):
                modules, *extra = map(ast.literal_eval, call.args[1:])
                found.append((path.stem, modules, extra[0] if extra else "demo"))
    return found


def packages_of(extra: str) -> set[str]:
    """Return the packages that an extra installs, and their dependencies."""
    names = set()
    for line in EXTRAS[extra]:
        name, of = package_name(line), re.findall(r"\w+", "".join(re.findall(r"\[(.*?)\]", line)))
        names.add(name)
        for needed in importlib.metadata.requires(name) or ():
            wanted = re.search(r"extra == ['\"](\w+)['\"]", needed)
            if wanted is None or wanted[1] in of:
                names.add(package_name(needed))
    return names


def package_name(requirement: str) -> str:
    """Return the package of a requirement."""
    return re.split(r"[\[<>=~!; (]", requirement)[0]


def test_some_demonstrations_need_packages() -> None:
    assert len(requirements()) >= 5


@pytest.mark.parametrize(("demo", "modules", "extra"), requirements())
def test_extra_installs_the_required_packages(
    demo: str, modules: tuple[str, ...], extra: str
) -> None:
    for name in EXTRAS[extra]:
        pytest.importorskip(package_name(name).replace("scikit-learn", "sklearn"))
    assert {CALLED.get(m, m) for m in modules} <= packages_of(extra), demo
