"""Programs as plain data: required acts, and the layout of memory in the arena."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from dovetail.capture.program import (
    ARENA_ALIGNMENT_BYTES,
    Act,
    Place,
    assign_arena_offsets,
    drop_unread_launches,
    live_ranges,
)


class RecordedAct(Act):
    """An act that reads and writes slots, and is no launch."""

    def __init__(self, *slots: int) -> None:
        self.slots = slots

    def places(self) -> Iterator[Place]:
        return (Place(slot, 0) for slot in self.slots)

    def replace_places(self, move: Callable[[Place], Place]) -> Act:
        return RecordedAct(*(move(p).slot for p in self.places()))

    def run(self, opened: object, at: object, env: object, stream: object) -> None:
        raise AssertionError("it only says what it would do")


def test_slots_with_disjoint_lifetimes_share_memory() -> None:
    sizes, spans = {0: 1000, 1: 1000, 2: 10}, {0: (0, 1), 1: (2, 3), 2: (1, 2)}
    assert assign_arena_offsets(sizes, spans) == (
        {0: 0, 1: 0, 2: 2 * ARENA_ALIGNMENT_BYTES},
        3 * ARENA_ALIGNMENT_BYTES,
    )


def test_slots_of_one_act_do_not_overlap() -> None:
    found, whole = assign_arena_offsets(
        {0: ARENA_ALIGNMENT_BYTES, 1: ARENA_ALIGNMENT_BYTES + 1, 2: 0},
        {0: (0, 1), 1: (1, 2), 2: (2, 4)},
    )
    assert (
        found == {0: 2 * ARENA_ALIGNMENT_BYTES, 1: 0, 2: 2 * ARENA_ALIGNMENT_BYTES}
        and whole == 3 * ARENA_ALIGNMENT_BYTES
    )


def test_gap_that_is_too_small_stays_unused() -> None:
    spans = {0: (0, 1), 1: (0, 9), 2: (2, 9), 3: (2, 9), 4: (2, 9)}
    sizes = {
        0: 3 * ARENA_ALIGNMENT_BYTES,
        1: 2 * ARENA_ALIGNMENT_BYTES,
        2: 2 * ARENA_ALIGNMENT_BYTES,
        3: 2 * ARENA_ALIGNMENT_BYTES,
        4: ARENA_ALIGNMENT_BYTES,
    }
    found, whole = assign_arena_offsets(sizes, spans)
    assert (
        found
        == {
            0: 0,
            1: 3 * ARENA_ALIGNMENT_BYTES,
            2: 0,
            3: 5 * ARENA_ALIGNMENT_BYTES,
            4: 2 * ARENA_ALIGNMENT_BYTES,
        }
        and whole == 7 * ARENA_ALIGNMENT_BYTES
    )


def test_slot_with_two_lifetimes_shares_its_memory_in_between() -> None:
    sizes, spans = {0: 1, 1: 1, 2: 1}, {0: (0, 1, 4, 5), 1: (2, 3), 2: (3, 4)}
    assert assign_arena_offsets(sizes, spans) == (
        {0: 0, 1: 0, 2: ARENA_ALIGNMENT_BYTES},
        2 * ARENA_ALIGNMENT_BYTES,
    )


def test_empty_arena_has_no_size() -> None:
    assert assign_arena_offsets({}, {}) == ({}, 0)


def test_live_range_spans_the_first_to_the_last_access() -> None:
    assert live_ranges([RecordedAct(3, 1), RecordedAct(1), RecordedAct(3), RecordedAct(2)]) == {
        3: (0, 2),
        1: (0, 1),
        2: (3, 3),
    }


@pytest.mark.parametrize("wanted", [(), (1,)])
def test_acts_other_than_launches_are_always_required(wanted: tuple[int, ...]) -> None:
    acts = [RecordedAct(0), RecordedAct(1)]
    assert drop_unread_launches(acts, {0, 1}, wanted) == acts


def test_each_slot_is_at_the_lowest_offset_that_is_free_while_it_lives() -> None:
    rng = random.Random(1)
    for _ in range(100):
        sizes = {slot: rng.choice([0, 8, 512, 1024, 5000]) for slot in range(rng.randrange(30))}
        spans = {slot: tuple(sorted(rng.randrange(40) for _ in range(4))) for slot in sizes}
        offsets, whole = assign_arena_offsets(sizes, spans)
        placed: list[tuple[int, int, set[int]]] = []
        for slot in sorted(sizes, key=lambda s: (-sizes[s], s)):
            first, last, again, end = spans[slot]
            acts = {*range(first, last + 1), *range(again, end + 1)}
            size = -(-max(sizes[slot], 1) // ARENA_ALIGNMENT_BYTES) * ARENA_ALIGNMENT_BYTES
            busy = [(low, high) for low, high, others in placed if others & acts]
            free = (
                at
                for at in range(0, whole, ARENA_ALIGNMENT_BYTES)
                if all(high <= at or low >= at + size for low, high in busy)
            )
            assert offsets[slot] == next(free)
            placed.append((offsets[slot], offsets[slot] + size, acts))
        assert whole == max((high for _, high, _ in placed), default=0)
