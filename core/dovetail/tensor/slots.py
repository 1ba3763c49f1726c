"""The slots by which Python finds Tensor's operators.

Compiled (`slots.pyx`), the most used of them lead straight to what records an op, not by a look at
the class; and before Python 3.12, which finds `__buffer__` by itself, there is one for buffers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .tensor import Tensor


def fill(tensor: type[Tensor]) -> None:
    """Fills them, when the class has all of its methods."""
