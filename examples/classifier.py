"""Handwritten digits, a network of two layers, Adam. Run: python examples/classifier.py"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dovetail as dt
import numpy as np
import torch
from beside import Asked, asked, beside, picture
from sklearn.datasets import load_digits

HIDDEN, BATCH, RATE = 64, 64, 1e-3


def layers(nn: Any) -> Any:
    """The network, of dovetail's or PyTorch's modules."""
    return nn.Sequential(nn.Linear(64, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 10))


class Training:
    """A network, what trains it, and the digits, in either library."""

    def __init__(self, xp: Any, weights: dict[str, np.ndarray], epochs: int) -> None:
        digits = load_digits()
        pixels, labels = (digits.data / 16).astype(np.float32), digits.target.astype(np.int64)
        self.xp, self.model, self.epochs = xp, layers(xp.nn), epochs
        self.model.load_state_dict({name: xp.asarray(a) for name, a in weights.items()})
        self.optimizer = xp.optim.Adam(self.model.parameters(), lr=RATE)
        held_out = np.arange(len(pixels)) % 5 == 4
        self.x, self.y = xp.asarray(pixels[~held_out]), xp.asarray(labels[~held_out])
        self.test = xp.asarray(pixels[held_out]), labels[held_out]

    def step(self, x: Any, y: Any) -> Any:
        loss = self.xp.nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self, step: Callable[..., Any]) -> Any:
        """Trains on; the loss at the end."""
        for _ in range(self.epochs):
            for k in range(0, len(self.x) - BATCH + 1, BATCH):
                loss = step(self.x[k : k + BATCH], self.y[k : k + BATCH])
        return loss

    def accuracy(self) -> float:
        """The share of the digits held out that are read right."""
        with self.xp.no_grad():
            scores = self.model(self.test[0]).detach().numpy()
        return float(np.mean(np.argmax(scores, axis=1) == self.test[1]))


def main(arguments: Sequence[str] | None = None) -> Asked:
    """The same first weights here and in PyTorch; the step of ours is captured."""
    options = asked(__doc__, arguments)
    torch.manual_seed(0)
    weights = {k: v.numpy().copy() for k, v in layers(torch.nn).state_dict().items()}
    ours, theirs = (Training(xp, weights, options.size(20, 2)) for xp in (dt, torch))
    step = dt.jit(ours.step)
    beside(
        "classifier",
        lambda: ours.run(step),
        "PyTorch",
        lambda: theirs.run(theirs.step),
        options,
        rtol=1e-2,
        atol=1e-4,
    )
    print(f"held out and read right: {ours.accuracy():.1%}, {theirs.accuracy():.1%}")
    picture(options, lambda a: a.imshow(ours.model[0].weight.detach(), cmap="RdBu"))
    return options


if __name__ == "__main__":
    main()
