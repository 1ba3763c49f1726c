"""Progress bars of long operations."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest
from dovetail.functions.io import progress


class Terminal(io.StringIO):
    """A text stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def loaded(file: Path) -> dict[str, dt.Tensor]:
    return dt.load(file, device="reference", copy=True)


def test_loading_a_large_file_shows_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model.npz"
    np.savez(file, a=np.ones(1000), b=np.zeros(3000))
    monkeypatch.setattr(progress, "BAR_BYTES_MIN", 10_000)
    monkeypatch.setenv("TERM", "xterm")
    terminal, pipe = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert loaded(file)["a"].sum().item() == 1000
    assert "loading model.npz" in terminal.getvalue()
    monkeypatch.setattr(sys, "stderr", pipe)
    loaded(file)
    assert pipe.getvalue() == "", "something was said where nobody looks"


def test_small_file_shows_no_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "model.npz"
    np.savez(file, a=np.ones(10))
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    loaded(file)
    assert terminal.getvalue() == ""


def test_missing_standard_error_shows_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with progress.bar("work", progress.BAR_BYTES_MIN) as done:
        assert done(100) == 100, "a function that does nothing"
