"""The same memory in NumPy, PyTorch and here: DLPack, buffers. Run: python examples/interop.py"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import dovetail as dt
import numpy as np
import torch
from beside import Asked, asked, beside, picture


def around(x: np.ndarray) -> dt.Tensor:
    """NumPy to dovetail to PyTorch and back, without a copy: each sees what the others write."""
    ours = dt.from_dlpack(x)
    theirs = torch.from_dlpack(ours)
    theirs[0] += 1
    back = dt.from_dlpack(theirs)
    back[1] += 1
    return back


def chances(x: np.ndarray, layer: Callable[[torch.Tensor], torch.Tensor]) -> dt.Tensor:
    """NumPy's data, standardised here, through PyTorch's layer, and a softmax here again."""
    ours = dt.from_dlpack(x)
    ours = (ours - dt.mean(ours, axis=0)) / dt.std(ours, axis=0)
    return dt.softmax(dt.from_dlpack(layer(torch.from_dlpack(ours))), axis=1)


def by_torch(x: np.ndarray, layer: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """The same without us."""
    theirs = torch.from_dlpack(x)
    theirs = (theirs - theirs.mean(0)) / theirs.std(0, unbiased=False)
    return torch.softmax(layer(theirs), dim=1)


def main(arguments: Sequence[str] | None = None) -> Asked:
    """A pipeline through three libraries, beside PyTorch's own."""
    options = asked(__doc__, arguments)
    data = np.random.default_rng(0).normal(2, 3, (options.size(20_000, 500), 64))
    x, layer = data.astype(np.float32), torch.nn.Linear(64, 16).requires_grad_(False)
    beside(
        "NumPy's data through three libraries",
        lambda: chances(x, layer),
        "PyTorch",
        lambda: by_torch(x, layer),
        options,
    )

    a = np.zeros(1000, np.float32)
    assert around(a).tolist() == a.tolist() == [1, 1] + [0] * 998  # it has seen all writes
    x = dt.arange(6, dtype=dt.float32, device="reference").reshape((2, 3))
    assert np.asarray(x).tolist() == x.tolist() == torch.from_dlpack(x).tolist()
    assert memoryview(np.asarray(x)).shape == (2, 3)
    assert dt.asarray(bytearray(b"\x01\x02"), dtype=dt.uint8).tolist() == [1, 2]
    assert isinstance(np.sin(x), dt.Tensor)  # NumPy's functions keep to the device
    wave = dt.sin(dt.linspace(0, 6, 100))
    picture(options, lambda axes: axes.plot(np.linspace(0, 6, 100), wave))
    return options


if __name__ == "__main__":
    main()
