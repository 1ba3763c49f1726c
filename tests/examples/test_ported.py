"""A GPT written for PyTorch runs on dovetail after the changes that README shows."""

from __future__ import annotations

import difflib
import importlib
import re
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PORTED = ROOT / "examples" / "ported"
SIZES = {"block_size": 32, "vocab_size": 50, "n_layer": 2, "n_head": 2, "n_embd": 32}
TOKENS = np.random.default_rng(0).integers(0, SIZES["vocab_size"], (4, 33))


def code(name: str) -> list[str]:
    """Return the lines of a ported file, without its docstring."""
    return (PORTED / name).read_text().partition('"""\n\n')[2].splitlines()


def test_readme_shows_every_changed_line() -> None:
    lines = difflib.unified_diff(code("gpt_torch.py"), code("gpt_dovetail.py"), n=0, lineterm="")
    changed = [line for line in lines if line[0] in "+-" and not line.startswith(("+++", "---"))]
    (shown,) = re.findall(r"```diff\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert [line[:1] + line[1:].strip() for line in changed] == shown.splitlines()


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Return the model in PyTorch, and the ported one with the same weights."""
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(PORTED))
    theirs, ours = map(importlib.import_module, ("gpt_torch", "gpt_dovetail"))
    torch.manual_seed(0)
    original, ported = theirs.GPT(theirs.GPTConfig(**SIZES)), ours.GPT(ours.GPTConfig(**SIZES))
    state = {name: dt.asarray(value.numpy()) for name, value in original.state_dict().items()}
    ported.load_state_dict(state)
    return original, ported


def batches(torch: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return (tokens, targets) for PyTorch and for dovetail."""
    parts = TOKENS[:, :-1].copy(), TOKENS[:, 1:].copy()
    return tuple(map(torch.from_numpy, parts)), tuple(map(dt.asarray, parts))


def test_ported_model_trains_to_the_same_values(models: tuple[Any, Any]) -> None:
    torch = importlib.import_module("torch")
    optimizers = [m.configure_optimizers(0.1, 1e-3, (0.9, 0.95)) for m in models]
    losses = []
    for _ in range(4):
        results = [m(*batch) for m, batch in zip(models, batches(torch), strict=True)]
        logits = [logits.detach().numpy() for logits, _ in results]
        np.testing.assert_allclose(logits[1], logits[0], rtol=1e-4, atol=1e-5)
        for optimizer, (_, loss) in zip(optimizers, results, strict=True):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append([loss.item() for _, loss in results])
    theirs, ours = zip(*losses, strict=True)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert theirs[-1] < theirs[0] - 0.05


def test_ported_model_has_the_same_gradients(models: tuple[Any, Any]) -> None:
    torch = importlib.import_module("torch")
    for model, batch in zip(models, batches(torch), strict=True):
        model(*batch)[1].backward()
    original, ported = (dict(m.named_parameters()) for m in models)
    assert list(original) == list(ported)
    for name, parameter in original.items():
        found = ported[name].grad.numpy()
        np.testing.assert_allclose(found, parameter.grad.numpy(), rtol=1e-3, atol=1e-6)


def test_ported_model_writes_the_same_likeliest_tokens(models: tuple[Any, Any]) -> None:
    torch = importlib.import_module("torch")
    (theirs, _), (ours, _) = batches(torch)
    original, ported = models
    written = original.generate(theirs[:2, :4], 8, top_k=1).tolist()
    assert ported.generate(ours[:2, :4], 8, top_k=1).tolist() == written
    assert [len(row) for row in written] == [12, 12]
