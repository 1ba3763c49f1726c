"""docs/kernel-ir.md documents every name of the code, and its code runs."""

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

PAGE = (Path(__file__).parents[2] / "docs" / "kernel-ir.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def table(head: str) -> list[list[str]]:
    """Return the rows of the table with this header in its first column."""
    _, found, rest = PAGE.partition(f"| {head} |")
    assert found, head
    lines = rest.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def first(head: str) -> list[str]:
    return [row[0].strip("`") for row in table(head)]


def test_page_documents_every_operation() -> None:
    rows = {name.strip("`"): (int(n), kinds, out) for name, n, kinds, out, _ in table("op")}
    assert rows == OPS
    assert first("operand") == [*OPERANDS]
    assert first("combine") == [*ALL_COMBINES]


@pytest.mark.parametrize("of", [Kernel, Buffer, Value, Store, Atomic, Loop, Combine])
def test_page_documents_every_field(of: Any) -> None:
    fields = getattr(of, "_fields", None) or getattr(of, "__slots__", None) or of.__annotations__
    assert set(first(f"`{of.__name__}`")) == {*fields}


def test_page_documents_every_property_of_a_value() -> None:
    own = {
        name
        for name, x in vars(Value).items()
        if isinstance(x, property)
        # descriptors of compiled modules
        or (inspect.isgetsetdescriptor(x) and name not in Value.__slots__)
    }
    assert set(first("property")) == own


def test_code_of_the_page_prints_its_output(capsys: pytest.CaptureFixture[str]) -> None:
    found: dict[str, Any] = {}
    for block in BLOCKS:
        exec(block, found)
    assert capsys.readouterr().out.strip() in PAGE
    assert len(BLOCKS) >= 3


def test_invalid_user_kernel_raises_argument_error() -> None:
    found: dict[str, Any] = {}
    exec(BLOCKS[0], found)
    kernel = found["kernel"]
    bad = dataclasses.replace(kernel, buffers=kernel.buffers[1:])
    with pytest.raises(ArgumentError) as e:
        verify(bad)
    text = str(e.value)
    assert "a buffer must be declared by the kernel" in text and "kernel-ir.md" in text
    assert "bug in dovetail" not in text and "kernel rows(" in text
    with pytest.raises(InternalError, match="bug in dovetail"):
        internal.verify(bad)
