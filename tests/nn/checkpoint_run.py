"""A training run that keeps checkpoints: `python checkpoint_run.py FOLDER STEPS [PAUSE]`.

Prints each finished step, and at the end a digest of all that it has learned and drawn.
"""

from __future__ import annotations

import hashlib
import random
import sys
import time
from pathlib import Path

import dovetail as dt
import numpy as np


def main(folder: Path, steps: int, pause: float) -> str:
    dt.set_default_device("reference")
    dt.random.manual_seed(1)
    random.seed(2)
    np.random.seed(3)
    draw = dt.random.default_rng(4)
    w = [dt.random.normal((4, 3)).requires_grad_(), dt.zeros(3).requires_grad_()]
    optimizer = dt.optim.Adam(w, lr=0.1, amsgrad=True)
    schedule = dt.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    model = Weights(w)
    first = 0
    if dt.checkpoint.latest(folder) is not None:
        first = dt.checkpoint.load(
            folder, model=model, optimizer=optimizer, scheduler=schedule, draw=draw
        )["step"]
    for step in range(first + 1, steps + 1):
        x = draw.normal((5, 4)) + random.random() + np.random.rand() + dt.random.normal(())
        optimizer.zero_grad()
        ((x @ w[0] + w[1]) ** 2).mean().backward()
        optimizer.step()
        schedule.step()
        dt.checkpoint.save(
            folder / "run-{step:04}", model=model, optimizer=optimizer, scheduler=schedule,
            step=step, draw=draw, keep=3,
        )  # fmt: skip
        print(step, flush=True)
        time.sleep(pause)
    found = hashlib.sha256(b"".join(x.detach().numpy().tobytes() for x in w))
    found.update(repr((random.random(), float(np.random.rand()), dt.random.get_state())).encode())
    return found.hexdigest()


class Weights:
    """An object with the state methods of modules."""

    def __init__(self, w: list[dt.Tensor]) -> None:
        self.w = w

    def state_dict(self) -> dict[str, dt.Tensor]:
        return {str(i): x.detach() for i, x in enumerate(self.w)}

    def load_state_dict(self, state: dict[str, dt.Tensor]) -> None:
        for i, x in enumerate(self.w):
            if state[str(i)].shape != x.shape:
                raise dt.ShapeError(f"weight {i} has another shape")
        for i, x in enumerate(self.w):
            x.detach().copy_(state[str(i)])


if __name__ == "__main__":
    print(main(Path(sys.argv[1]), int(sys.argv[2]), float((*sys.argv, "0")[3])))
