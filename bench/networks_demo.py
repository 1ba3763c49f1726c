"""Rows of `networks.py`: a step of training of the network of `dovetail demo train`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
from comparison_cases import Foreign, peer
from dovetail.commands.demo_train import BATCH, CHANNELS, HIDDEN, LEARNING_RATE_MAX, DigitModel
from turns import OURS, Row, Work

TOLERANCE = 1e-3  # between the losses after a few steps


def _ours(model: DigitModel, pictures: Any, labels: Any) -> Callable[[], dt.Tensor]:
    given = dt.asarray(pictures), dt.asarray(labels)
    model.dropout.p = 0.0  # its draws are not PyTorch's
    optimizer = dt.optim.Adam(model.parameters(), lr=LEARNING_RATE_MAX)

    @dt.jit
    def step(x: dt.Tensor, y: dt.Tensor) -> dt.Tensor:
        loss = dt.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return lambda: step(*given)


def _theirs(pictures: Any, labels: Any, state: Any, compiled: bool) -> Any:
    torch = peer("torch")
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, CHANNELS, 3, padding=1), nn.BatchNorm2d(CHANNELS), nn.ReLU(),
        nn.Conv2d(CHANNELS, 2 * CHANNELS, 3, padding=1), nn.BatchNorm2d(2 * CHANNELS), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2 * CHANNELS * 16, HIDDEN), nn.ReLU(),
        nn.Linear(HIDDEN, 10),
    )  # fmt: skip
    places = ("edges", "first", "", "shapes", "second", "", "", "", "hidden", "", "scores")
    weights = {
        f"{i}.{k.partition('.')[2]}": torch.from_numpy(np.array(v))
        for i, place in enumerate(places) if place
        for k, v in state.items() if k.startswith(place + ".")
    }  # fmt: skip
    model.load_state_dict(weights)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE_MAX)
    x, y = torch.from_numpy(pictures), torch.from_numpy(labels)

    def loss_of(x: Foreign, y: Foreign) -> Foreign:
        return nn.functional.cross_entropy(model(x), y)

    forward = torch.compile(loss_of) if compiled else loss_of

    def step() -> Foreign:
        loss = forward(x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def _made() -> dict[str, Work]:
    random = np.random.default_rng(0)
    pictures = random.random((BATCH, 1, 8, 8)).astype("f4")
    labels = random.integers(0, 10, BATCH)
    dt.random.manual_seed(0)
    model = DigitModel()
    step = _ours(model, pictures, labels)
    state = {k: np.array(v) for k, v in model.state_dict().items()}
    eager = _theirs(pictures, labels, state, False)
    works: dict[str, Work] = {OURS: lambda: dt.evaluate(step()), "torch": eager}
    for _ in range(3):
        ours, theirs = float(step()), float(eager())
    if abs(ours - theirs) > TOLERANCE * abs(theirs):
        raise ArithmeticError(f"the losses after three steps are {ours} and {theirs}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = _theirs(pictures, labels, state, True)
        compiled()
    return {**works, "torch.compile": compiled}


def rows() -> list[Row]:
    """One."""
    name = f"a step of training of the demo's convolution network, batch {BATCH}, captured"
    return [Row(name, _made, {"torch": 1.5, "torch.compile": 1.0})]
