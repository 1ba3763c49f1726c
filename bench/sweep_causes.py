"""Why rows of the sweep are behind the faster peer: a word for each, which the page explains.

Rules are asked in order; the first that holds for a row, a size, a dtype and an arrangement says
the cause. A row that no rule explains has none on the page, and `sweep.py` prints its name.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

EXPLAINED: dict[str, str] = {}


@dataclass(frozen=True)
class Rule:
    """Rows by name (all unless given), sizes, dtypes and arrangements of which a cause holds."""

    cause: str
    rows: Container[str] | None = None
    least: int = 0
    most: int = 1 << 62
    dtypes: Container[str] | None = None
    arrangements: Container[str] | None = None

    def holds(self, row: str, size: int, dtype: str, arrangement: str) -> bool:
        """Whether it explains this line of the table."""
        return (
            (self.rows is None or row in self.rows)
            and self.least <= size <= self.most
            and (self.dtypes is None or dtype in self.dtypes)
            and (self.arrangements is None or arrangement in self.arrangements)
        )


RULES: list[Rule] = []


def cause_of(row: str, size: int, dtype: str, arrangement: str) -> str:
    """The word for a line's cause; empty where none is known."""
    found = (r.cause for r in RULES if r.holds(row, size, dtype, arrangement))
    return next(found, "")
