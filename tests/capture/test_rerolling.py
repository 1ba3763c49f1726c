"""Acts are re-rolled into loops only if their shared memory is not reused too early.

Routines are not run here; the tests compare which act wrote each value that an act reads.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.capture import rerolling
from dovetail.capture.loop_acts import RerolledLoop
from dovetail.capture.program import Act, LibraryCallAct, Place, StridedMemory, assign_arena_offsets
from dovetail.capture.rerolling import HASH_FACTORS, RolledActs, reroll
from dovetail.device_class import opened
from dovetail.engine.traced_numbers import Environment
from dovetail.ops import table as ops

SIZE = 512  # bytes of each slot
GIVEN = 3  # slots that are not the program's own
Done = tuple[int, list[Place]]  # the kind of an act, its inputs, and last its output


def routine(kind: int, places: list[Place]) -> Act:
    *inputs, output = [StridedMemory(p, (1,), (1,), dt.float32) for p in places]
    return LibraryCallAct(ops.ADD, dt.float32, tuple(inputs), output, kind)


def execution_order(
    acts: Iterable[Act], place: Callable[[Place], Place] = lambda p: p
) -> Iterator[Done]:
    """Yield the acts in execution order, those of loops once per round."""
    for act in acts:
        if isinstance(act, RerolledLoop):
            for k in range(act.count):
                memory = [Place(p.slot, p.offset + k * step) for p, step in act.inputs]

                def inside(p: Place, memory: list[Place] = memory) -> Place:
                    outer = memory[p.slot]
                    return place(Place(outer.slot, outer.offset + p.offset))

                yield from execution_order(act.body.acts, inside)
        else:
            assert isinstance(act, LibraryCallAct)
            yield act.nbytes, [place(p) for p in act.places()]


def data_flow(acts: Iterable[Done]) -> list[int | None]:
    """Return the kinds of acts, the writers of their inputs, and the writers of the final slots.

    None stands for memory of the acts' own that no act has written.
    """
    writers: dict[Place, int | None] = {Place(k, n): -1 for k in range(GIVEN) for n in range(SIZE)}
    found: list[int | None] = []
    for k, (kind, (*inputs, output)) in enumerate(acts):
        found += [kind, output in inputs, *[writers.get(p) for p in inputs]]
        writers[output] = k
    return found + [writers[Place(k, n)] for k in range(GIVEN) for n in range(SIZE)]


def assembled(rolled: RolledActs) -> list[Act]:
    """Return acts with all slots of their own in an arena."""
    spans = rolled.spans()
    offsets, _ = assign_arena_offsets({slot: SIZE for slot in spans if slot >= GIVEN}, spans)

    def move(p: Place) -> Place:
        slot = rolled.owner(p.slot)
        return p if slot < GIVEN else Place(GIVEN, offsets[slot] + p.offset)

    return [*rolled.build(move, opened(dt.device("reference")), Environment())]


class RecordingActs:
    """Acts of statements in which names stand for places."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.acts, self.slots = rng, list[Act](), GIVEN
        self.names = {name: Place(k % GIVEN, 0) for k, name in enumerate("abcd")}
        self.earlier: list[Place] = []

    def new(self) -> Place:
        self.slots += 1
        self.earlier.append(Place(self.slots - 1, 0))
        return self.earlier[-1]

    def run(self, statement: tuple[object, ...], k: int) -> None:
        match statement:
            case ("swap", a, b):
                self.names[a], self.names[b] = self.names[b], self.names[a]
            case ("compute", kind, inputs, row, target):
                places = [self.names[name] for name in inputs]
                if row is not None:
                    name, first, step = row
                    places.append(Place(self.names[name].slot, (first + step * k) % 240))
                if target in self.names:
                    self.names[target] = self.new()
                    places.append(self.names[target])
                else:
                    name, first, step = target
                    places.append(Place(self.names[name].slot, first + step * k))
                self.acts.append(routine(kind, places))

    def look_back(self) -> None:
        places = [self.rng.choice(self.earlier[-12:]), Place(0, 4)]
        self.acts.append(routine(9, places))


def random_statement(rng: random.Random) -> tuple[object, ...]:
    if rng.random() < 0.15:
        return ("swap", *rng.sample("abcd", 2))
    row = (rng.choice("abcd"), 100, rng.choice([0, 0, 4, -4, 40])) if rng.random() < 0.3 else None
    target: object = rng.choice("abcd")
    if rng.random() < 0.25:  # in place
        target = (target, rng.choice([0, 100]), rng.choice([0, 0, 4]))
    return "compute", rng.randrange(2), rng.choices("abcd", k=rng.randrange(3)), row, target


def recorded(rng: random.Random) -> RecordingActs:
    """Return what a loop records, with other acts before and after it."""
    made = RecordingActs(rng)
    for _ in range(rng.randrange(4)):
        made.run(random_statement(rng), 0)
    for _ in range(rng.choice([1, 1, 2])):
        body = [random_statement(rng) for _ in range(rng.randrange(1, 6))]
        for k in range(rng.randrange(3, 16)):
            for statement in body:
                made.run(statement, k)
    for _ in range(rng.randrange(3)):
        made.run(random_statement(rng), 0)
    if made.earlier and rng.random() < 0.5:
        made.look_back()
    return made


def check(seeds: range, monkeypatch: pytest.MonkeyPatch) -> int:
    """Check that each value has the right writer, and return the number of loops."""
    loops = 0
    for seed in seeds:
        rng = random.Random(seed)
        made = recorded(rng)
        monkeypatch.setattr(rerolling, "BODY_ACTS_MIN", rng.choice([1, 1, 2, 4]))
        collide = np.array(rng.choices([0, 1, 1, 1], k=4), np.uint64)  # 0: hashes are deterministic
        monkeypatch.setattr(rerolling, "HASH_FACTORS", HASH_FACTORS * collide)
        rolled = reroll(made.acts, range(GIVEN, made.slots), ())
        pairs = zip(
            data_flow(execution_order(made.acts)),
            data_flow(execution_order(assembled(rolled))),
            strict=True,
        )
        assert all(now == before for before, now in pairs if before is not None), seed
        loops += len(rolled.loops)
    return loops


def test_rerolled_loop_reads_each_value_from_its_writer(
    monkeypatch: pytest.MonkeyPatch, thinned: Callable[..., Any]
) -> None:
    seeds = thinned(range(1000), 4)
    assert check(seeds, monkeypatch) > len(seeds) // 2


def test_value_that_only_the_next_round_reads_keeps_its_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given, source = Place(0, 0), Place(1, 0)
    value, acts, slots = source, list[Act](), GIVEN
    for k in range(9):
        if k:
            between, slots = Place(slots, 0), slots + 1
            acts.append(routine(1, [value, between]))
            source = between
        value, *others = (Place(slots + i, 0) for i in range(3))
        slots += 3
        if not k:  # their memory would block the loop
            others = [Place(0, 100), Place(0, 200)]
        acts.append(routine(2, [source, value]))
        acts += [routine(3, [Place(2, 0), other]) for other in others]
        acts.append(routine(4, [*others, given]))
    monkeypatch.setattr(rerolling, "BODY_ACTS_MIN", 1)
    rolled = reroll(acts, range(GIVEN, slots), ())
    [loop] = rolled.loops
    assert (loop.begin, loop.length, loop.end) == (4, 5, len(acts))
    assert data_flow(execution_order(assembled(rolled))) == data_flow(execution_order(acts))


@pytest.mark.exhaustive
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(1000, 201_000, 10_000))
def test_many_rerolled_loops_read_each_value_from_its_writer(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(range(seed, seed + 10_000), monkeypatch)
