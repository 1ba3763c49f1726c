"""What a kernel computes at a point of its domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..dtypes import DType
from ..layout import Shape
from ..ops.table import Op


@dataclass(eq=False, slots=True)
class Access:
    """One way in which a kernel touches a buffer: element strides over the domain's axes.

    Slot -1 is no memory: a linear index.
    """

    slot: int
    dtype: DType
    strides: Shape
    offset: int
    computed: bool = False  # whether it also depends on indices that are data


@dataclass(eq=False, slots=True)
class Term:
    """A value computed on the fly at a point of the domain.

    `what`: load, scalar, map, generate, gather, reduce.
    """

    what: str
    dtype: DType  # what comes out
    op: Op | None = None
    args: tuple[Term, ...] = ()
    casts: tuple[DType, ...] = ()
    access: Access | None = None
    scalar: int = -1
    extra: Any = None
