"""docs/writing-a-backend.md is complete and correct."""

from __future__ import annotations

import dataclasses
import inspect
import pydoc
import re
import shutil
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import extend
from dovetail.backend.interface import Backend, BackendInfo, DeviceInfo
from dovetail.device_class import Device
from dovetail.engine.evaluate import counters
from dovetail.ir.cstyle import CStyle
from dovetail.ir.target import Capabilities
from dovetail.memory import CachingAllocator
from dovetail.plugins.device_handle import OpenedDevice
from dovetail.plugins.hooks import HOOKS, hookimpl
from extend_names import NAMES as EXTEND
from extend_names import attribute_docstring

PAGE = (Path(__file__).parent.parent / "docs" / "writing-a-backend.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
CODE = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL))
NAMES = {word for code in CODE for word in re.findall(r"\w+", code)}

needs_compiler = pytest.mark.skipif(
    shutil.which("cc") is None, reason="the page's example needs a C compiler that is called cc"
)


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """Return the definitions of the page's code, run in order."""
    found: dict[str, Any] = {"__name__": "page"}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"writing-a-backend.md, block {number}", "exec"), found)
    return found


def public(of: type) -> set[str]:
    return {name for name in vars(of) if not name.startswith("_")} - {"info"}


def test_page_names_every_name_of_the_interface() -> None:
    assert EXTEND <= NAMES
    assert [n for n in EXTEND if not hasattr(extend, n)] == []


def test_help_is_short_and_names_each_audience() -> None:
    """`help(dovetail.extend)` lists each name in one part."""
    shown = pydoc.plain(pydoc.render_doc(extend))
    assert shown.count("\n") < 200
    parts = str(extend.__doc__).partition("\nFirst-party")[0].split("\n\n")[1:]
    heads = [part.split("\n")[0].split("(")[0].strip() for part in parts]
    assert heads[:4] == ["A BACKEND", "A KERNEL", "A LAYOUT", "A DTYPE"]
    listed = [n for part in parts for n in re.findall(r"\w+", part) if n in EXTEND]
    assert set(listed) == EXTEND
    assert {n for n in listed if listed.count(n) > 1} == set()


@pytest.mark.parametrize("name", sorted(EXTEND))
def test_name_of_extend_has_a_docstring(name: str) -> None:
    """An alias of types and a constant have theirs after the assignment."""
    value = getattr(extend, name)
    own = inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value)
    is_instance = not own and type(value).__module__.startswith(("dovetail", "pluggy"))
    has_own = (own or is_instance) and value is not Any
    text = (inspect.getdoc(value) if has_own else attribute_docstring(name)) or ""
    assert text.split("\n\n")[0].endswith((".", ":"))


def test_page_documents_every_hook_method_and_field() -> None:
    assert set(HOOKS) - NAMES == set()
    assert public(Backend) - NAMES == set()
    for of in (Capabilities, DeviceInfo):
        assert {f.name for f in dataclasses.fields(of)} - NAMES == set(), of


def test_page_names_only_existing_objects() -> None:
    """Methods, fields, or names of `extend` in the tables."""
    table = PAGE.partition("## All of `dovetail.extend`")[2]
    assert set(re.findall(r"`(\w+)`", table)) == EXTEND
    methods = PAGE.partition("## The methods of a backend")[2].partition("What can be relied on")[0]
    rows = re.findall(r"^\| (`.*?) \|", methods, re.M)
    called = {n for row in rows for n in re.findall(r"`(\w+)", row)} - {"method"}
    assert called == public(Backend)
    dialect = PAGE.partition("## A dialect of C")[2].partition("Names are those")[0]
    spelt = {n for row in re.findall(r"^\| (`.*?) \|", dialect, re.M)
             for n in re.findall(r"`(\w+)", row)}  # fmt: skip
    assert len(spelt) > 15 and {n for n in spelt if not hasattr(CStyle, n)} == set()


def test_code_of_the_page_runs(page: dict[str, Any]) -> None:
    assert len(BLOCKS) >= 5
    assert not page["modest"].float64 and page["modest"].concurrency == 8
    hooks = {n for n in page if n.startswith("dovetail_")}
    assert hooks == {*HOOKS} - {"dovetail_library_calls", "dovetail_diagnostics"}
    assert all(getattr(page[n], f"{hookimpl.project_name}_impl", None) for n in hooks)
    assert isinstance(page["dovetail_backend_info"](), BackendInfo)


def test_second_walk_through_runs_alone() -> None:
    """A reader types the renderer that is not C into a file of its own."""
    part = PAGE.partition("\n## A language that is not C\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", part, re.DOTALL)
    alone: dict[str, Any] = {"__name__": "renderer"}
    exec(code, alone)
    assert alone["results"].any() and alone["both"].name == "sum_and_max"


@needs_compiler
def test_vendor_routine_is_called(page: dict[str, Any]) -> None:
    """Its product equals NumPy's to the last bit; a generated kernel's need not."""
    [info] = page["dovetail_probe"]({})
    backend, dev = page["WithVendor"](info), Device("cc", 0)
    allocator = CachingAllocator(backend, dev)
    dev.opened = OpenedDevice(backend, allocator, dev, backend.library_calls())
    x, y = (np.random.default_rng(k).standard_normal((70, 70)).astype("f4") for k in (1, 2))
    calls = counters.calls
    found = dt.matmul(dt.asarray(x, device=dev).mT, dt.asarray(y, device=dev)).numpy()
    assert np.array_equal(found, x.T @ y) and counters.calls == calls + 1
