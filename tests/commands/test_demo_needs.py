"""What a demonstration says that it lacks comes with what it says to install."""

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
CALLED = {"sklearn": "scikit-learn"}  # packages that have another name than their modules


def asked() -> list[tuple[str, tuple[str, ...], str]]:
    """Of each demonstration that looks for packages: its file, their modules and the extra."""
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


def brought(extra: str) -> set[str]:
    """The packages that an extra installs, and those that these need."""
    names = set()
    for line in EXTRAS[extra]:
        name, of = named(line), re.findall(r"\w+", "".join(re.findall(r"\[(.*?)\]", line)))
        names.add(name)
        for needed in importlib.metadata.requires(name) or ():
            wanted = re.search(r"extra == ['\"](\w+)['\"]", needed)
            if wanted is None or wanted[1] in of:
                names.add(named(needed))
    return names


def named(requirement: str) -> str:
    """The package of a requirement."""
    return re.split(r"[\[<>=~!; (]", requirement)[0]


def test_there_are_demonstrations_that_need_something() -> None:
    assert len(asked()) >= 5


@pytest.mark.parametrize(("demo", "modules", "extra"), asked())
def test_the_extra_brings_what_is_needed(demo: str, modules: tuple[str, ...], extra: str) -> None:
    for name in EXTRAS[extra]:
        pytest.importorskip(named(name).replace("scikit-learn", "sklearn"))
    assert {CALLED.get(m, m) for m in modules} <= brought(extra), demo
