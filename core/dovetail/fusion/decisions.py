"""What has been decided of a graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .domain import Domain
from .terms import Access, Term


@dataclass(eq=False, slots=True)
class Group:
    """The stored nodes of one kernel, each with its term and the access that stores it."""

    index: int
    domain: Domain
    device: Any
    outputs: list[tuple[int, Term, Access]] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    memo: dict[Any, Term] = field(default_factory=dict)
    size: int = 0  # values computed, as NODE_LIMIT counts them
    crooked: bool = False  # whether its rows are walked by division, no single stride doing it
    refusals: int = 0  # how many nodes would have made it too large


@dataclass(eq=False, slots=True)
class Draft:
    """A node on its way into a group: what computing it there has taken so far."""

    group: Group
    node: int
    size: int = 0
    seen: set[int] = field(default_factory=set)  # the nodes that have a term
    cut: bool = False  # whether its rows are cut into chunks
