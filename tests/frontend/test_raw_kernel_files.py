"""`dt.raw_kernel` of source files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dovetail as dt
import pytest
from test_raw_kernels import SIGNATURE, TEXTS, kind

__all__ = ["kind"]

ENDINGS = {"cpu": ".c", "opencl": ".cl", "cuda": ".cu"}


def write(folder: Path, kind: str, text: str) -> Path:
    """Write a source file whose name has a space and a letter that is not ASCII."""
    file = folder / f"my scäle{ENDINGS[kind]}"
    file.write_text(text, "utf-8")
    return file


def call(kernel: Any) -> list[float]:
    """Return the values that the kernel computes for 1, 2 and 3 times 10."""
    out = dt.zeros(3)
    kernel(out, dt.asarray([1.0, 2.0, 3.0]), 3, 10.0)
    values: list[float] = out.tolist()
    return values


def test_source_file_is_read_when_the_kernel_is_made(kind: str, tmp_path: Path) -> None:
    file = write(tmp_path, kind, TEXTS[kind])
    kernel = dt.raw_kernel(file, kind, SIGNATURE)
    file.write_text(TEXTS[kind].replace("a * x[i]", "a + x[i]"), "utf-8")
    assert call(kernel) == [10.0, 20.0, 30.0]
    assert call(dt.raw_kernel(file, kind, SIGNATURE)) == [11.0, 12.0, 13.0]


def test_include_is_relative_to_the_file_and_an_edit_of_it_counts(
    kind: str, tmp_path: Path
) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "outer.h").write_text('#include "inner.h"\n')
    inner = tmp_path / "parts" / "inner.h"
    text = '#include "parts/outer.h"\n' + TEXTS[kind].replace("a * x[i]", "FACTOR * a * x[i]")
    for factor in (2, 3):
        inner.write_text(f"#define FACTOR {factor}\n")
        kernel = dt.raw_kernel(write(tmp_path, kind, text), kind, SIGNATURE)
        assert call(kernel) == [10.0 * factor, 20.0 * factor, 30.0 * factor]


def test_compile_error_shows_the_file_and_the_line(kind: str, tmp_path: Path) -> None:
    file = write(tmp_path, kind, "\n\n" + TEXTS[kind].replace("a * x[i]", "a * y[i]"))
    line = next(k for k, t in enumerate(file.read_text("utf-8").split("\n"), 1) if "y[i]" in t)
    with pytest.raises(dt.CompileError) as error:
        call(dt.raw_kernel(file, kind, SIGNATURE))
    assert f"\n  {file}:{line}: " in str(error.value) and "y[i]" in str(error.value)


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(dt.ArgumentError, match=r"raw_kernel: source .*gone.c.* cannot be read"):
        dt.raw_kernel(tmp_path / "gone.c", "cpu", SIGNATURE)
    (tmp_path / "bytes.c").write_bytes(b"\xff")
    with pytest.raises(dt.ArgumentError, match=r"bytes.c.* cannot be read"):
        dt.raw_kernel(tmp_path / "bytes.c", "cpu", SIGNATURE)
    with pytest.raises(dt.ArgumentTypeError, match=r"a string or a pathlib.Path"):
        dt.raw_kernel(3, "cpu", SIGNATURE)  # type: ignore[arg-type]
