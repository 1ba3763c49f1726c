"""Analysis of values that only some lanes need: a divergent branch skips them if no lane does.

`where` computes both sides. Of a sine one side is the reduction of huge arguments, more than half
of all operations; a vector without such an argument skips it.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from dovetail.extend import Block, Loop, Statement, Value, definitions, uses, walk

BRANCH_OPS_MIN = 24  # operations that outweigh a branch that is sometimes mispredicted
SLOW_OPS = ("div", "sqrt", "quo", "rem")
SLOW_OP_WEIGHT = 4  # of other operations
OTHER_SIDE_OPS_MIN = 8  # of the other side, if this one takes more than two thirds of the block


class DivergentBranch(NamedTuple):
    """Statements that compute `outs`, needed only in lanes where `condition` equals `holds`."""

    condition: Value
    holds: bool
    body: Block
    outs: tuple[Value, ...]


def divergent_branches(
    block: Block, live_out: Sequence[Value] = ()
) -> dict[int, list[DivergentBranch]]:
    """Return the branches of a block, by the id of the statement before which each runs.

    live_out: values of the block that are used after it.
    """
    return _BranchFinder(block, live_out).branches() if len(block) >= BRANCH_OPS_MIN else {}


class _BranchFinder:
    """Definitions and uses of a block's values, by positions of statements."""

    def __init__(self, block: Block, live_out: Sequence[Value]) -> None:
        self.block = block
        self.definition = {id(v): at for at, s in enumerate(block) for v in definitions(s)}
        self.uses: dict[int, list[int]] = {}
        for at, s in enumerate(block):
            for v in uses(s):
                if id(v) in self.definition:
                    self.uses.setdefault(id(v), []).append(at)
        self.live_out = {id(v) for v in live_out}
        self.weight = sum(map(_weigh_statement, block))

    def branches(self) -> dict[int, list[DivergentBranch]]:
        """Return the branches that pay, largest first without overlaps, by a statement's id."""
        choices: dict[tuple[int, int], list[Value]] = {}
        for s in self.block:
            if isinstance(s, Value) and s.op == "where":
                for side in (1, 2):
                    if id(s.args[side]) in self.definition:
                        choices.setdefault((id(s.args[0]), side), []).append(s)
        cones = [self._find_worthwhile_cone(group, side) for (_, side), group in choices.items()]
        covered: set[int] = set()
        branches: dict[int, list[DivergentBranch]] = {}
        for cone in sorted(filter(None, cones), key=lambda c: -c.weight):
            first, positions = cone.choices[0], cone.weights.keys()
            if self.definition[id(first)] in covered or covered & positions:
                continue
            covered |= positions
            body = tuple(self.block[p] for p in sorted(positions))
            outs = {id(v): v for v in cone.outs if self.definition[id(v)] in positions}
            branch = DivergentBranch(first.args[0], cone.side == 1, body, tuple(outs.values()))
            branches.setdefault(id(first), []).append(branch)
        return branches

    def _find_worthwhile_cone(self, choices: Sequence[Value], side: int) -> _Cone | None:
        """Return the statements that only one side of choices needs, or None if no branch pays.

        The choices have one condition; the longest prefix that one branch can serve is kept.
        A branch does not pay if the other side is a special case, a constant or little in
        comparison: then nearly all lanes take it.
        """
        if all(c.args[3 - side].op == "const" for c in choices):
            return None
        begin = self.definition[id(choices[0])]
        for n in range(len(choices), 0, -1):
            cone = self._grow_cone(choices[:n], side)
            if cone.weight < BRANCH_OPS_MIN:
                return None
            operands = (v for p in cone.weights for v in uses(self.block[p]))
            inputs = (self.definition.get(id(v), -1) for v in operands)
            if all(p < begin or p in cone.weights for p in inputs):
                if cone.weight * 3 <= self.weight * 2:
                    return cone
                other = self._grow_cone(choices[:n], 3 - side)
                return None if other.weight < OTHER_SIDE_OPS_MIN else cone
        return None

    def _grow_cone(self, choices: Sequence[Value], side: int) -> _Cone:
        """Return the statements that only this side of the choices needs, from the last one on."""
        cone = _Cone(choices, side, {})
        choosers = {self.definition[id(c)] for c in choices}
        pending = [-self.definition[id(v)] for v in cone.outs if id(v) in self.definition]
        heapq.heapify(pending)
        visited: set[int] = set()
        while pending:
            at = -heapq.heappop(pending)
            if at in visited:
                continue
            visited.add(at)
            s = self.block[at]
            if _is_movable(s) and all(self._is_inside(v, cone, choosers) for v in definitions(s)):
                cone.weights[at] = _weigh_statement(s)
                for v in uses(s):
                    if id(v) in self.definition:
                        heapq.heappush(pending, -self.definition[id(v)])
        return cone

    def _is_inside(self, v: Value, cone: _Cone, choosers: set[int]) -> bool:
        """Return True if only the cone needs `v`, whose users were visited before."""
        if id(v) in self.live_out:
            return False
        for at in self.uses.get(id(v), ()):
            if at in cone.weights:
                continue
            chooser = self.block[at]
            if at not in choosers or not isinstance(chooser, Value):
                return False
            if any(a is v for j, a in enumerate(chooser.args) if j != cone.side):
                return False
        return True


class _Cone(NamedTuple):
    """Statements that only one side of some choices needs."""

    choices: Sequence[Value]
    side: int
    weights: dict[int, int]  # by position in the block

    @property
    def outs(self) -> list[Value]:
        """Return the values that the choices take from this side."""
        return [c.args[self.side] for c in self.choices]

    @property
    def weight(self) -> int:
        """Return the cost of all statements in plain ops."""
        return sum(self.weights.values())


def _is_movable(s: Statement) -> bool:
    """Return True if a statement may be skipped, or computed later than where it stands."""
    if isinstance(s, Loop) and s.kind != "fold":
        return False
    values = walk(s.body) if isinstance(s, Loop) else (s,)
    return all(isinstance(v, Value) and (v.op != "load" or v.buffer.access != "rw") for v in values)


def _weigh_statement(s: Statement) -> int:
    """Return a statement's cost in plain ops; a loop counts as BRANCH_OPS_MIN."""
    if isinstance(s, Loop):
        return BRANCH_OPS_MIN
    return SLOW_OP_WEIGHT if isinstance(s, Value) and s.op in SLOW_OPS else 1
