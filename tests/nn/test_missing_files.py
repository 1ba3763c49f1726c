"""Missing files raise the operating system's error, which names the file."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dovetail as dt
import pytest

LOAD: dict[str, Callable[[str], Any]] = {
    "npz": dt.load,
    "safetensors": dt.load,
    "zarr": dt.load,
    "run": dt.checkpoint.load,
    "run.safetensors": dt.checkpoint.load,
    "onnx": dt.onnx.load,
    "function": dt.load_function,
}


@pytest.mark.parametrize("ending", LOAD)
def test_loading_a_missing_file_raises_file_not_found(ending: str, tmp_path: Path) -> None:
    file = str(tmp_path / f"gone.{ending}")
    with pytest.raises(FileNotFoundError) as caught:
        LOAD[ending](file)
    error = caught.value
    assert error.errno == errno.ENOENT and error.filename == file
    assert str(error) == f"[Errno {errno.ENOENT}] No such file or directory: {file!r}"


def test_folder_without_a_checkpoint_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        dt.checkpoint.load(tmp_path)
    assert caught.value.errno == errno.ENOENT and caught.value.filename == str(tmp_path)
    assert "no undamaged checkpoint" in str(caught.value)


@pytest.mark.parametrize("load", [dt.onnx.load, dt.load_function])
def test_loading_a_folder_raises_is_a_directory(load: Callable[[Any], Any], tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError) as caught:
        load(tmp_path)
    assert str(tmp_path) in str(caught.value)


def _function(file: str) -> object:
    add = dt.jit(lambda a: a + 1)
    add(dt.ones(2, device="reference"))
    return dt.save_function(add, file)


SAVE: dict[str, Callable[[str], Any]] = {
    "x.npz": lambda file: dt.save(file, {"x": dt.ones(2, device="reference")}),
    "x.safetensors": lambda file: dt.save(file, {"x": dt.ones(2, device="reference")}),
    "x.onnx": lambda file: dt.onnx.export(
        lambda x: x + 1, dt.ones(2, device="reference"), path=file
    ),
    "x.function": _function,
}


@pytest.mark.parametrize("name", SAVE)
def test_saving_into_a_missing_folder_raises(name: str, tmp_path: Path) -> None:
    file = str(tmp_path / "gone" / name)
    with pytest.raises(FileNotFoundError) as caught:
        SAVE[name](file)
    assert caught.value.errno == errno.ENOENT and caught.value.filename == file
