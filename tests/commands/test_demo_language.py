"""`dovetail demo language`: its corpus, its training, and the agreement of devices."""

from __future__ import annotations

import importlib.util
import io
import math
from pathlib import Path

import numpy as np
import pytest
from dovetail.commands import demo, demo_language
from rich.console import Console

HAVE_CPU = importlib.util.find_spec("dovetail_cpu_llvm") is not None
needs_cpu = pytest.mark.skipif(not HAVE_CPU, reason="dovetail-cpu-llvm is not installed")

pytest.importorskip("matplotlib")


def test_training_text_excludes_the_held_out_text() -> None:
    text = demo_language.corpus()
    assert len(text.training_text) > 8 * len(text.held_out) > 400_000
    assert 80 < len(text.letters) < 100 and {*text.letters} >= {*"aZ09\n "}
    whole = text.text(text.training_text[:2000].tolist())
    assert "\n\n" in whole and whole.isascii()


def test_batch_targets_are_the_following_letters() -> None:
    text = np.arange(1000, dtype="i4")
    letters, following = demo_language.draw_batch(text, np.random.default_rng(0))
    assert letters.shape == (demo_language.BATCH, demo_language.CONTEXT)
    np.testing.assert_array_equal(following, letters + 1)


@pytest.fixture
def small_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, n in {"CONTEXT": 16, "WIDTH": 16, "HEADS": 2, "LAYERS": 1, "BATCH": 8}.items():
        monkeypatch.setattr(demo_language, name, n)
    monkeypatch.setattr(demo_language, "SAMPLE_LETTERS", 12)


@needs_cpu
@pytest.mark.usefixtures("small_model")
def test_training_lowers_the_loss_and_writes_text() -> None:
    losses: list[float] = []
    out = demo_language.learn("cpu", 120, losses.append)
    assert losses == out.losses and len(losses) == 120
    assert abs(losses[0] - math.log(96)) < 0.5  # an untrained model
    assert out.held_out[-1][0] == 120 and out.held_out[-1][1] < 0.8 * losses[0]
    assert len(out.sample) == 12 and {*out.sample} <= {*demo_language.corpus().letters}
    assert demo_language.complaints([out]) == []


@needs_cpu
@pytest.mark.usefixtures("small_model")
def test_command_gives_the_same_bits_on_all_devices(tmp_path: Path) -> None:
    text, picture = io.StringIO(), tmp_path / "language.png"
    devices = [d for d in demo.available() if ":" not in d]
    assert demo_language.write(devices, picture, 2, Console(file=text, width=120)) == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert "Generated text" in text.getvalue() and "bits per letter" in text.getvalue()


def test_different_weights_and_bad_results_are_reported() -> None:
    good = demo_language.LetterModelOutcome("a", [4.0] * 60, [(60, 2.0)])
    bad = demo_language.LetterModelOutcome("b", [4.0] * 59 + [3.9], [(60, 3.9)])
    assert demo_language.complaints([good, bad]) == [
        "b and a computed different weights", "b did not learn: 3.90 nats per held-out letter",
    ]  # fmt: skip


def test_demo_dispatches_to_the_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_language, "main", lambda arguments: 7 + len(arguments))
    assert demo.main(["language", "--steps", "3"]) == 9
