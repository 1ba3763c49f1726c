"""The same memory in NumPy, PyTorch and here: DLPack, buffers. Run: python examples/interop.py"""

from __future__ import annotations

from collections.abc import Sequence

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


def by_numpy(x: np.ndarray) -> np.ndarray:
    """What the array then holds."""
    same = np.from_dlpack(x)
    same[0] += 1
    same[1] += 1
    return same


def main(arguments: Sequence[str] | None = None) -> Asked:
    """The way around beside NumPy's alone."""
    options = asked(__doc__, arguments)
    n = options.size(1_000_000, 10_000)
    a, b = np.zeros(n, np.float32), np.zeros(n, np.float32)
    beside("DLPack around", lambda: around(a), "NumPy", lambda: by_numpy(b), options)
    assert a[0] == b[0] == a[1]  # the array that we began with has seen all writes

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
