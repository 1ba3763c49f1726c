"""Which op made the first number that is none: `dt.debug_nans`."""

from __future__ import annotations

from ..arguments import flag
from ..settings import Switch
from .anomaly import Looker

__all__ = ["debug_nans"]


class debug_nans(Switch):
    """A context in which the first NaN, or infinity, that an op makes is an error with its line.

    Each op runs at once, and its result is looked at: where that has a NaN or an infinity, and no
    operand has one, AnomalyError says which op it was, of what, and at which line of the user's; on
    the way back it names the op whose gradient it is. `inf`: False for NaNs alone. `start()` and
    `stop()` do the same without a block. What a captured function does is not looked at. It is of
    this thread, or asyncio task, alone, and can be a decorator; it is slow: for finding a fault.
    Raises: ArgumentTypeError for what is no bool.

    >>> import dovetail as dt
    >>> x = dt.asarray([4.0, 0.0], device="reference")
    >>> with dt.debug_nans():
    ...     try:
    ...         1 / x
    ...     except dt.AnomalyError as error:
    ...         print(str(error)[:38])
    divide: made the first infinity or NaN
    """

    def __init__(self, inf: bool = True) -> None:
        super().__init__(eager=True, anomaly=Looker(flag("debug_nans", inf, "inf")))

    def start(self) -> None:
        """From here on, until `stop`."""
        self.__enter__()

    def stop(self) -> None:
        """Ends what `start` began."""
        self.__exit__()
