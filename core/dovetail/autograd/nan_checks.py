"""Detection of the first NaN or infinity and of its op: `dt.debug_nans`."""

from __future__ import annotations

from ..argument_checks import flag
from ..settings import Switch
from .anomaly import AnomalyChecker

__all__ = ["debug_nans"]


class debug_nans(Switch):
    """A context in which the first NaN or infinity that an op computes raises an error.

    Each op runs at once, and its result is checked. If it has a NaN or an infinity and no operand
    has one, AnomalyError names the op, its operands and the user's line; in a backward pass it
    names the op whose gradient it is. `start()` and `stop()` do the same without a block. Work
    inside a captured function is not checked. The context holds for this thread, or asyncio task,
    alone, and can be a decorator.

    - `inf`: False checks for NaNs alone.

    Cost: every op runs at once and waits; use it to find a fault.
    Raises: ArgumentTypeError if it is not a bool.

    >>> import dovetail as dt
    >>> x = dt.asarray([4.0, 0.0])
    >>> with dt.debug_nans():
    ...     try:
    ...         1 / x
    ...     except dt.AnomalyError as error:
    ...         print(str(error)[:42])
    divide: produced the first infinity or NaN
    """

    def __init__(self, inf: bool = True) -> None:
        super().__init__(eager=True, anomaly=AnomalyChecker(flag("debug_nans", inf, "inf")))

    def start(self) -> None:
        """Start checking, until `stop`."""
        self.__enter__()

    def stop(self) -> None:
        """Stop the checks that `start` began."""
        self.__exit__()
