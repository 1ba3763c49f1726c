"""docs/loop-language.md is what the code says, name by name, and its code runs."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from dovetail.errors import ArgumentError, InternalError
from dovetail.extend import verify
from dovetail.ir import verify as internal
from dovetail.ir.builder import ALL_COMBINES, Combine, Kernel
from dovetail.ir.language import OPERANDS, OPS, Atomic, Buffer, Loop, Store, Value

PAGE = (Path(__file__).parents[2] / "docs" / "loop-language.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def table(head: str) -> list[list[str]]:
    """The rows of the table whose first column is headed so."""
    _, found, rest = PAGE.partition(f"| {head} |")
    assert found, head
    lines = rest.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def first(head: str) -> list[str]:
    return [row[0].strip("`") for row in table(head)]


def test_every_operation_is_there_as_it_is() -> None:
    rows = {name.strip("`"): (int(n), kinds, out) for name, n, kinds, out, _ in table("op")}
    assert rows == OPS
    assert first("operand") == [*OPERANDS]
    assert first("combine") == [*ALL_COMBINES]


@pytest.mark.parametrize("of", [Kernel, Buffer, Value, Store, Atomic, Loop, Combine])
def test_every_field_is_there(of: Any) -> None:
    fields = getattr(of, "_fields", None) or getattr(of, "__slots__", None) or of.__annotations__
    assert set(first(f"`{of.__name__}`")) == {*fields}


def test_every_property_of_a_value_is_there() -> None:
    own = {
        name
        for name, x in vars(Value).items()
        if isinstance(x, property)
        or (inspect.isgetsetdescriptor(x) and name not in Value.__slots__)  # compiled
    }
    assert set(first("property")) == own


def test_the_code_runs_and_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    found: dict[str, Any] = {}
    for block in BLOCKS:
        exec(block, found)
    assert capsys.readouterr().out.strip() in PAGE
    assert len(BLOCKS) >= 3


def test_a_bad_kernel_of_ones_own_is_no_bug_of_dovetail() -> None:
    found: dict[str, Any] = {}
    exec(BLOCKS[0], found)
    kernel = found["kernel"]
    bad = dataclasses.replace(kernel, buffers=kernel.buffers[1:])
    with pytest.raises(ArgumentError) as e:
        verify(bad)
    text = str(e.value)
    assert "a buffer is declared by the kernel" in text and "loop-language.md" in text
    assert "bug in dovetail" not in text and "kernel rows(" in text
    with pytest.raises(InternalError, match="bug in dovetail"):
        internal.verify(bad)
