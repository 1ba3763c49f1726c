"""Programs as plain data: required acts, and the layout of memory in the arena."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from dovetail.capture.program import ROUND, Act, Place, arrange, live_ranges, needed


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
    assert arrange(sizes, spans) == ({0: 0, 1: 0, 2: 2 * ROUND}, 3 * ROUND)


def test_slots_of_one_act_do_not_overlap() -> None:
    found, whole = arrange({0: ROUND, 1: ROUND + 1, 2: 0}, {0: (0, 1), 1: (1, 2), 2: (2, 4)})
    assert found == {0: 2 * ROUND, 1: 0, 2: 2 * ROUND} and whole == 3 * ROUND


def test_gap_that_is_too_small_stays_unused() -> None:
    spans = {0: (0, 1), 1: (0, 9), 2: (2, 9), 3: (2, 9), 4: (2, 9)}
    sizes = {0: 3 * ROUND, 1: 2 * ROUND, 2: 2 * ROUND, 3: 2 * ROUND, 4: ROUND}
    found, whole = arrange(sizes, spans)
    assert found == {0: 0, 1: 3 * ROUND, 2: 0, 3: 5 * ROUND, 4: 2 * ROUND} and whole == 7 * ROUND


def test_slot_with_two_lifetimes_shares_its_memory_in_between() -> None:
    sizes, spans = {0: 1, 1: 1, 2: 1}, {0: (0, 1, 4, 5), 1: (2, 3), 2: (3, 4)}
    assert arrange(sizes, spans) == ({0: 0, 1: 0, 2: ROUND}, 2 * ROUND)


def test_empty_arena_has_no_size() -> None:
    assert arrange({}, {}) == ({}, 0)


def test_live_range_spans_the_first_to_the_last_access() -> None:
    assert live_ranges([RecordedAct(3, 1), RecordedAct(1), RecordedAct(3), RecordedAct(2)]) == {
        3: (0, 2),
        1: (0, 1),
        2: (3, 3),
    }


@pytest.mark.parametrize("wanted", [(), (1,)])
def test_acts_other_than_launches_are_always_required(wanted: tuple[int, ...]) -> None:
    acts = [RecordedAct(0), RecordedAct(1)]
    assert needed(acts, {0, 1}, wanted) == acts
