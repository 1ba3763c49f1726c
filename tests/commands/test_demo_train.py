"""`dovetail demo train`: its training, the agreement of devices, and resumed runs."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path

import numpy as np
import pytest
from dovetail.commands import demo, demo_train
from rich.console import Console

HAVE_CPU = importlib.util.find_spec("dovetail_cpu_llvm") is not None
needs_cpu = pytest.mark.skipif(not HAVE_CPU, reason="dovetail-cpu-llvm is not installed")

pytest.importorskip("sklearn")
pytest.importorskip("safetensors")


def test_split_is_fixed_and_covers_all_images() -> None:
    x, y, test_x, test_y = demo_train.split()
    assert x.shape == (1438, 1, 8, 8) and test_x.shape == (359, 1, 8, 8)
    assert len(y) == 1438 and len(test_y) == 359
    pixels, _ = demo.load_digits()
    np.testing.assert_array_equal(test_x[0].ravel(), pixels[4])


@needs_cpu
def test_training_reaches_its_accuracy() -> None:
    ticks: list[int] = []
    out = demo_train.learn("cpu", demo_train.EPOCHS, demo_train.EPOCHS, lambda: ticks.append(1))
    assert out.accuracies[-1] >= demo_train.ACCURACY_MIN and len(ticks) == demo_train.EPOCHS
    assert out.losses[-1] < out.losses[0] / 10
    assert demo_train.complaints([out]) == []


@needs_cpu
def test_resumed_run_has_the_bits_of_an_uninterrupted_run() -> None:
    whole = demo_train.learn("cpu", 3, 3, lambda: None)
    assert demo_train.run_resumed("cpu", 3, lambda: None) == whole.digests[-1]
    assert len({*whole.digests}) == 3


@needs_cpu
def test_command_trains_to_the_same_bits_on_all_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = demo_train.split()
    few = (few[0][:128], few[1][:128], few[2][:40], few[3][:40])
    monkeypatch.setattr(demo_train, "split", lambda: few)
    text, picture = io.StringIO(), tmp_path / "train.png"
    console = Console(file=text, width=120)
    devices = [d for d in demo.available() if ":" not in d]
    assert devices[0] == "cpu" and devices[-1] == "reference"
    assert demo_train.train(devices, picture, 2, True, console) == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert "reference" in text.getvalue() and "different" not in text.getvalue()
    assert "resumed: the same bits" in text.getvalue()


def test_further_devices_train_for_the_compared_epochs_only() -> None:
    count = demo_train._count_epochs
    assert count("cpu", True, 15, False) == count("opencl", False, 15, True) == 15
    assert count("opencl", False, 15, False) == demo_train.COMPARED_EPOCHS
    assert count("reference", True, 15, True) == demo_train.REFERENCE_EPOCHS_MAX
    assert count("opencl", False, 1, False) == 1


def test_different_weights_and_bad_results_are_reported() -> None:
    many = demo_train.EPOCHS
    good = demo_train.TrainingOutcome("a", [1.0], [0.99] * many, ["x"] * many, resumed="x")
    bad = demo_train.TrainingOutcome("b", [1.0], [0.5] * many, ["y"] * many, resumed="z")
    lines = demo_train.complaints([good, bad])
    assert lines == [
        "b and a computed different weights", "b reached 50.0%; expected 98.5%",
        "b computed different weights after resuming from its checkpoint",
    ]  # fmt: skip


def test_demo_dispatches_to_the_part(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def main(arguments: list[str]) -> int:
        seen.append(arguments)
        return 0

    monkeypatch.setattr(demo_train, "main", main)
    assert demo.main(["train", "--epochs", "3"]) == 0
    assert seen == [["--epochs", "3"]]
