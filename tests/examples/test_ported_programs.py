"""Programs written for PyTorch train on dovetail to the same numbers; only their imports change."""

from __future__ import annotations

import importlib
import re
from collections import deque
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from installed import INSTALLED

ROOT = Path(__file__).parents[2]
OPTIONS: dict[str, dict[str, Any]] = {
    "nanogpt": {"steps": 3, "batch_size": 8, "samples": 4},
    "resnet": {"steps": 3, "batch_size": 16},
    "vae": {"steps": 4},
    "dqn": {"steps": 12, "episodes": 1},
    "diffusion": {"steps": 3, "batch_size": 8, "timesteps": 10, "samples": 2},
    "graph": {"steps": 3},
    "lstm": {"steps": 4},
}


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module that `python -m examples.ported` runs."""
    if "cpu" not in INSTALLED:
        pytest.skip("the backend for cpu is not installed: pip install dovetail-cpu-llvm")
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("examples.ported.__main__")


def assert_close(found: Any, expected: Any, key: str) -> None:
    """Check a result; accuracies may differ by a few examples near a tie."""
    if isinstance(expected, float) or (isinstance(expected, list) and expected):
        atol = 0.02 if "accurac" in key else 1e-3
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=atol, err_msg=key)
    else:
        assert found == expected, key


@pytest.mark.parametrize("name", OPTIONS)
def test_program_has_the_same_losses_and_results_in_both_libraries(name: str, runner: Any) -> None:
    pytest.importorskip("torch")
    expected, found = runner.run_both(name, **OPTIONS[name])
    assert found.keys() == expected.keys()
    np.testing.assert_allclose(found.pop("losses"), expected.pop("losses"), rtol=2e-4)
    for key, value in expected.items():
        assert_close(found[key], value, key)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_mixed_precision_has_the_losses_of_pytorch(dtype: str, runner: Any) -> None:
    pytest.importorskip("torch")
    expected, found = runner.run_both("nanogpt", dtype=dtype, **OPTIONS["nanogpt"])
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=1e-3)


@pytest.mark.parametrize("name", OPTIONS)
def test_loss_falls_on_dovetail(name: str, runner: Any) -> None:
    steps = {"dqn": 60, "resnet": 6, "diffusion": 6}.get(name, 4)
    losses = runner.load(name, "dovetail.torch").main(**{**OPTIONS[name], "steps": steps})["losses"]
    assert np.isfinite(losses).all()
    assert min(losses[-2:]) < losses[0] * 0.99


def test_port_changes_import_lines_alone(runner: Any) -> None:
    source = "import torch\nimport torch.nn as nn\nfrom torch.utils.data import Dataset\n"
    assert runner.port(source + "import torchvision  # torch\n") == (
        "import dovetail.torch as torch\nimport dovetail.torch.nn as nn\n"
        "from dovetail.torch.utils.data import Dataset\nimport torchvision  # torch\n"
    )
    assert set(OPTIONS) == set(runner.NAMES)
    for name in runner.NAMES:
        before = (ROOT / "examples" / "ported" / f"{name}.py").read_text()
        pairs = zip(before.splitlines(), runner.port(before).splitlines(), strict=True)
        changed = [old for old, new in pairs if old != new]
        assert len(changed) >= 3
        assert all(re.match(r"(import|from) torch\b", line) for line in changed)


def test_replay_returns_recorded_numbers_of_the_same_shape(runner: Any) -> None:
    draws = {"uniform": deque([np.arange(3.0), np.zeros(2)])}
    replay = runner.Replay(draws)
    assert dt.random.uniform(3, generator=replay).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="PyTorch drew shape"):
        dt.random.uniform(3, generator=replay)


def test_command_prints_both_results(runner: Any, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    runner.main(["graph", "--steps", "1"])
    text = capsys.readouterr().out
    row = re.search(r"^ +edges +(\d+) +(\d+)$", text, re.MULTILINE)
    assert row is not None
    assert row[1] == row[2]
    assert re.search(r"^ +0 +1\.\d+ +1\.\d+$", text, re.MULTILINE)
