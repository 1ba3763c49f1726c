"""What only some lanes need: computed where one of them does, and else passed by.

`where` computes both sides. Of a sine one is the reduction of huge arguments, more than half of all
its operations; a vector without such an argument need not wait for it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from dovetail.extend import Block, Loop, Statement, Value, walk

LEAST = 24  # operations that are worth a branch, which is guessed wrongly now and then
SLOW = ("div", "sqrt", "quo", "rem")  # of which each takes as long as several others
SEVERAL = 4
OTHER = 8  # operations of the other side, where one takes more than two thirds of a block


@dataclass(frozen=True)
class Aside:
    """`body` computes `outs`, which matter only in lanes where `condition` is `holds`."""

    condition: Value
    holds: bool
    body: Block
    outs: tuple[Value, ...]


def asides(block: Block, kept: Sequence[Value] = ()) -> dict[int, list[Aside]]:
    """What a block computes aside, by id of the statement before which that comes.

    `kept`: what is asked of the block after it.
    """
    if len(block) < LEAST:
        return {}
    return _Search(block, kept).found()


class _Search:
    def __init__(self, block: Block, kept: Sequence[Value]) -> None:
        self.block = block
        self.made = {id(v): at for at, s in enumerate(block) for v in _made(s)}
        self.users: dict[int, list[int]] = {}
        for at, s in enumerate(block):
            for v in _used(s):
                if id(v) in self.made:
                    self.users.setdefault(id(v), []).append(at)
        self.kept = {id(v) for v in kept}
        self.whole = sum(map(_weight, block))

    def found(self) -> dict[int, list[Aside]]:
        choices: dict[tuple[int, int], list[Value]] = {}
        for s in self.block:
            if isinstance(s, Value) and s.op == "where":
                for side in (1, 2):
                    if id(s.args[side]) in self.made:
                        choices.setdefault((id(s.args[0]), side), []).append(s)
        cones = [found for (_, side), all_ in choices.items() if (found := self.cone(all_, side))]
        taken: set[int] = set()
        chosen: dict[int, list[Aside]] = {}
        for cone in sorted(cones, key=lambda c: -c.weight):
            at = id(cone.first)
            if self.made[at] in taken or taken & cone.places.keys():
                continue
            taken |= cone.places.keys()
            body = tuple(self.block[p] for p in sorted(cone.places))
            outs = {id(v): v for v in cone.outs if self.made[id(v)] in cone.places}
            aside = Aside(cone.first.args[0], cone.side == 1, body, tuple(outs.values()))
            chosen.setdefault(at, []).append(aside)
        return chosen

    def cone(self, choices: Sequence[Value], side: int) -> _Cone | None:
        """What nothing needs but these choices at one side, if it is much and seldom asked for.

        It is asked for by nearly all where the other side is a special case: a constant, or little.
        """
        if all(w.args[3 - side].op == "const" for w in choices):
            return None
        for n in range(len(choices), 0, -1):
            cone = self.grown(_Cone(tuple(choices[:n]), side))
            if cone.weight < LEAST:
                return None
            begin = self.made[id(cone.first)]
            inputs = (self.made.get(id(v), -1) for p in cone.places for v in _used(self.block[p]))
            if all(p < begin or p in cone.places for p in inputs):
                main = cone.weight * 3 > self.whole * 2
                small = main and self.grown(_Cone(cone.choices, 3 - side)).weight < OTHER
                return None if small else cone
        return None

    def grown(self, cone: _Cone) -> _Cone:
        own = {self.made[id(w)] for w in cone.choices}
        waiting = [-self.made[id(v)] for v in cone.outs if id(v) in self.made]
        heapq.heapify(waiting)
        seen: set[int] = set()
        while waiting:
            at = -heapq.heappop(waiting)
            if at in seen:
                continue
            seen.add(at)
            s = self.block[at]
            if not _is_pure(s) or not all(self.is_within(v, cone, own) for v in _made(s)):
                continue
            cone.places[at] = _weight(s)
            for v in _used(s):
                if id(v) in self.made:
                    heapq.heappush(waiting, -self.made[id(v)])
        return cone

    def is_within(self, v: Value, cone: _Cone, own: set[int]) -> bool:
        """Whether nothing else needs `v`: users come later in the block, and so were asked."""
        if id(v) in self.kept:
            return False
        for at in self.users.get(id(v), ()):
            if at in cone.places:
                continue
            chooser = self.block[at]
            if at not in own or not isinstance(chooser, Value):
                return False
            if any(a is v for j, a in enumerate(chooser.args) if j != cone.side):
                return False
        return True


@dataclass
class _Cone:
    choices: tuple[Value, ...]
    side: int
    places: dict[int, int] = field(default_factory=dict)  # in the block, with how much each takes

    @property
    def first(self) -> Value:
        return self.choices[0]

    @property
    def outs(self) -> list[Value]:
        return [w.args[self.side] for w in self.choices]

    @property
    def weight(self) -> int:
        return sum(self.places.values())


def _made(s: Statement) -> Iterable[Value]:
    return (s,) if isinstance(s, Value) else s.results if isinstance(s, Loop) else ()


def _used(s: Statement) -> Iterator[Value]:
    """What a statement and those in it need."""
    for each in walk((s,)):
        if isinstance(each, Value):
            yield from each.args
        elif isinstance(each, Loop):
            yield from (each.start, each.stop, *each.init, *each.update)
        else:
            whens = () if each.when is None else (each.when,)
            yield from (each.index, each.value, *whens)


def _is_pure(s: Statement) -> bool:
    """Whether it may be passed by, and be computed later than where it stands."""
    if isinstance(s, Loop) and s.kind != "fold":
        return False
    values = walk(s.body) if isinstance(s, Loop) else (s,)
    return all(isinstance(v, Value) and _stays(v) for v in values)


def _stays(v: Value) -> bool:
    return v.op != "load" or v.buffer.access != "rw"


def _weight(s: Statement) -> int:
    if isinstance(s, Loop):
        return LEAST
    return SEVERAL if isinstance(s, Value) and s.op in SLOW else 1
