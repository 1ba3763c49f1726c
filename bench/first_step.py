"""Time the first training step of a small transformer: `python bench/first_step.py`.

Two layers of 64 channels and 4 heads read 8 sequences of 32 tokens, and Adam updates the weights,
as one captured function. The first processes find an empty kernel cache, the others a filled one.
Times begin after the imports and the making of the model; each is the least of some processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

PROCESSES = 3
VOCABULARY, CHANNELS, HEADS, LAYERS, BATCH, TOKENS = 100, 64, 4, 2, 8, 32


def step_seconds() -> list[float]:
    """Return the seconds of the first two training steps of this process."""
    import dovetail as dt
    from dovetail import nn
    from dovetail.nn import functional as F

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, CHANNELS)
            layer = nn.TransformerEncoderLayer(
                CHANNELS, HEADS, 4 * CHANNELS, dropout=0.0, batch_first=True
            )
            self.encoder = nn.TransformerEncoder(layer, LAYERS)
            self.head = nn.Linear(CHANNELS, VOCABULARY)

        def forward(self, tokens: dt.Tensor) -> dt.Tensor:
            return self.head(self.encoder(self.embedding(tokens)))

    dt.random.manual_seed(0)
    model = Model()
    optimizer = dt.optim.Adam(model.parameters(), lr=1e-3)
    tokens = dt.random.integers(0, VOCABULARY, (BATCH, TOKENS + 1))
    dt.evaluate(tokens, *model.parameters())

    @dt.jit
    def train(tokens: dt.Tensor) -> dt.Tensor:
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    seconds = []
    for _ in range(2):
        begun = time.perf_counter()
        dt.evaluate(train(tokens))
        seconds.append(time.perf_counter() - begun)
    return seconds


def in_process(cache: str) -> list[float]:
    """Return the same of a process with this folder for compiled kernels."""
    environment = {**os.environ, "DOVETAIL_CACHE_DIR": cache, "DOVETAIL_DEFAULT_DEVICE": "cpu"}
    command = [sys.executable, __file__, "child"]
    run = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    return [float(t) for t in run.stdout.split()]


if __name__ == "__main__":
    if sys.argv[1:] == ["child"]:
        print(*step_seconds())
    else:
        empty, filled = [], []
        for _ in range(PROCESSES):
            with tempfile.TemporaryDirectory() as cache:
                empty.append(in_process(cache))
                filled.append(in_process(cache))
        for name, times in (("empty", empty), ("filled", filled)):
            first, second = (min(t[k] for t in times) for k in range(2))
            print(f"kernel cache {name}: first step {first:.2f} s, second {1e3 * second:.1f} ms")
