"""The public function `evaluate`: every statement whose value is needed at once calls it."""

from __future__ import annotations

from ..tensor import host
from ..tensor.tensor import Tensor
from .plain_calls import accelerate_evaluate

__all__ = ["evaluate"]


def evaluate(*tensors: Tensor) -> None:
    """Compute these tensors now, together, so that they share kernels; return nothing.

    - `tensors`: the tensors to compute; those that are computed already cost nothing.

    Shapes: any.
    Dtypes: all.
    Raises: OutOfMemoryError; OutOfRangeError on devices that wait for their work; DTypeError if an
    argument is not a tensor.
    See also: `synchronize`, `eager`, `explain`.

    >>> import dovetail as dt
    >>> x = dt.zeros(3) + 1
    >>> dt.evaluate(x, x * 2)
    """
    host.evaluate(*tensors)


evaluate = accelerate_evaluate(evaluate)
