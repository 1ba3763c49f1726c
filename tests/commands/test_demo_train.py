"""`dovetail demo train`: its optimiser against torch's, what it learns, and that devices agree."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest
from dovetail.commands import demo, demo_train
from rich.console import Console

HAVE_CPU = importlib.util.find_spec("dovetail_cpu_llvm") is not None
DEVICE = "cpu" if HAVE_CPU else "reference"

pytest.importorskip("sklearn")


def test_adam_is_torchs() -> None:
    torch = pytest.importorskip("torch")
    start = np.random.default_rng(0).normal(size=7).astype("f4")
    w = dt.asarray(start, device=DEVICE).requires_grad_()
    t = torch.tensor(start, requires_grad=True)
    ours, theirs = demo_train.Adam([w]), torch.optim.Adam([t], lr=demo_train.RATE)
    for _ in range(20):
        ((w - 1.0) ** 4).sum().backward()
        ours.step()
        theirs.zero_grad()
        ((t - 1.0) ** 4).sum().backward()
        theirs.step()
    assert w.grad is None and w.is_leaf
    np.testing.assert_allclose(w.numpy(), t.detach().numpy(), rtol=1e-4)


def test_the_split_is_fixed_and_covers_all() -> None:
    x, y, test_x, test_y = demo_train.split()
    assert (len(x), len(test_x)) == (1348, 449) and len(y) == 1348 and len(test_y) == 449
    pixels, _ = demo.load_digits()
    np.testing.assert_array_equal(test_x[0], pixels[3])


@pytest.mark.skipif(not HAVE_CPU, reason="dovetail-cpu-llvm is not installed")
def test_it_learns() -> None:
    ticks: list[int] = []
    out = demo_train.learn("cpu", demo_train.EPOCHS, lambda: ticks.append(1))
    assert out.accuracies[-1] >= demo_train.TARGET and len(ticks) == demo_train.EPOCHS
    assert out.losses[-1] < out.losses[0] / 10
    assert out.steps == demo_train.EPOCHS * (1348 // demo_train.BATCH)
    assert demo_train.complaints([out]) == []


@pytest.mark.skipif(not HAVE_CPU, reason="dovetail-cpu-llvm is not installed")
def test_the_command_trains_on_all_devices_to_the_same_bits(tmp_path: Path) -> None:
    text, picture = io.StringIO(), tmp_path / "train.png"
    console = Console(file=text, width=120)
    devices = [d for d in demo.available() if ":" not in d]
    assert devices[0] == "cpu" and devices[-1] == "reference"
    assert demo_train.train(devices, picture, 2, console) == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert "reference" in text.getvalue() and "different" not in text.getvalue()


def test_other_weights_and_bad_results_are_told() -> None:
    good = demo_train.Outcome("a", [1.0], [0.99] * demo_train.EPOCHS, ["x"] * demo_train.EPOCHS)
    bad = demo_train.Outcome("b", [1.0], [0.5] * demo_train.EPOCHS, ["y"] * demo_train.EPOCHS)
    lines = demo_train.complaints([good, bad])
    assert lines == ["b and a arrived at different weights", "b reached 50.0%, not 96%"]


def test_demo_knows_the_part(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def main(arguments: list[str]) -> int:
        seen.append(arguments)
        return 0

    monkeypatch.setattr(demo_train, "main", main)
    assert demo.main(["train", "--epochs", "3"]) == 0
    assert seen == [["--epochs", "3"]]
