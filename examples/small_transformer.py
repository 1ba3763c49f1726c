"""A small transformer learns to turn lines around. Run: python examples/small_transformer.py"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dovetail as dt
import numpy as np
import torch
from beside import Asked, asked, beside, picture

LETTERS, LENGTH, WIDTH, HEADS, LAYERS, BATCH = 16, 16, 64, 4, 2, 32


def network(xp: Any) -> Any:
    """Letters and places embedded, two layers of attention, a score for each letter."""
    nn = xp.nn

    class Reverser(nn.Module):  # type: ignore[misc]  # of either library
        def __init__(self) -> None:
            super().__init__()
            self.letters = nn.Embedding(LETTERS, WIDTH)
            self.places = nn.Embedding(LENGTH, WIDTH)
            layer = nn.TransformerEncoderLayer(
                WIDTH, HEADS, 2 * WIDTH, dropout=0.0, batch_first=True
            )
            self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
            self.scores = nn.Linear(WIDTH, LETTERS)

        def forward(self, text: Any) -> Any:
            x = self.letters(text) + self.places(xp.arange(LENGTH))
            return self.scores(self.layers(x))

    return Reverser()


class Training:
    """The network in either library, and what trains it."""

    def __init__(self, xp: Any, weights: dict[str, np.ndarray], steps: int) -> None:
        self.xp, self.model, self.losses = xp, network(xp), list[float]()
        self.model.load_state_dict({name: xp.asarray(a) for name, a in weights.items()})
        self.optimizer = xp.optim.Adam(self.model.parameters(), lr=1e-3)
        texts = np.random.default_rng(0).integers(0, LETTERS, (steps, BATCH, LENGTH))
        self.texts = [xp.asarray(t) for t in texts]

    def step(self, text: Any) -> Any:
        found = self.model(text)
        target = self.xp.flip(text, (1,)).reshape((-1,))
        loss = self.xp.nn.functional.cross_entropy(found.reshape((-1, LETTERS)), target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self, step: Callable[..., Any]) -> Any:
        """Trains on; the losses of the first twenty steps."""
        losses = [step(text) for text in self.texts]
        self.losses += [loss.item() for loss in losses]
        return self.xp.stack(losses[:20])


def main(arguments: Sequence[str] | None = None) -> Asked:
    """The same first weights here and in PyTorch; the step of ours is captured."""
    options = asked(__doc__, arguments)
    torch.manual_seed(0)
    weights = {k: v.numpy().copy() for k, v in network(torch).state_dict().items()}
    steps = options.size(200, 5)
    ours, theirs = (Training(xp, weights, steps) for xp in (dt, torch))
    step = dt.jit(ours.step)
    name = f"transformer, {steps} steps"
    beside(
        name,
        lambda: ours.run(step),
        "PyTorch",
        lambda: theirs.run(theirs.step),
        options,
        rtol=1e-2,
        atol=1e-3,
    )
    print(f"loss {ours.losses[0]:.3f} to {ours.losses[-1]:.3f}")
    picture(options, lambda a: a.plot(ours.losses))
    return options


if __name__ == "__main__":
    main()
