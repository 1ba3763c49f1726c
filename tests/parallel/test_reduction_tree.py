"""The order of additions of `parallel.reduction_tree`: one tree for any number of workers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from dovetail.parallel.reduction_tree import Step, find_worker, plan_reduction


def add_levels(groups: int, filled: int) -> str:
    """Return the sum of groups as text, added level by level: g adds g + G/2, then g + G/4."""
    parts = {g: str(g) for g in range(filled)}
    half = groups // 2
    while half:
        for g in range(half):
            if g + half in parts:
                parts[g] = f"({parts[g]}+{parts.pop(g + half)})"
        half //= 2
    return parts[0]


def run(plans: list[list[Step]]) -> list[dict[int, str]]:
    """Run the plans of all workers on texts; return the subtrees that each has at the end."""
    results: list[dict[int, str]] = [{} for _ in plans]
    messages: dict[tuple[int, int], str] = {}

    def work(rank: int) -> Iterator[None]:
        own = results[rank]
        for kind, r, other in plans[rank]:
            if kind == "compute":
                own[r] = str(r)
            elif kind == "add":
                own[r] = f"({own[r]}+{own.pop(other)})"
            elif kind == "send":
                messages[rank, r] = own.pop(r)
            else:
                while (other, r) not in messages:
                    yield
                own[r] = messages.pop((other, r))
            yield

    running = [work(rank) for rank in range(len(plans))]
    for _ in range(10_000):
        for worker in running:
            next(worker, None)
    assert not messages
    return results


@pytest.mark.parametrize("groups", [1, 2, 4, 8, 16])
def test_all_workers_add_in_the_order_of_levels(groups: int) -> None:
    for workers in range(1, groups + 1):
        for filled in {1, 2, groups // 2 + 1, groups - 1, groups} - {0}:
            if filled > groups:
                continue
            plans = [plan_reduction(groups, workers, k, filled) for k in range(workers)]
            results = run(plans)
            assert results[0] == {0: add_levels(groups, filled)}
            assert not any(results[1:])


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7, 8])
def test_worker_computes_its_groups_before_it_waits(workers: int) -> None:
    for rank in range(workers):
        kinds = [step.kind for step in plan_reduction(8, workers, rank, 8)]
        computed = [i for i, kind in enumerate(kinds) if kind == "compute"]
        received = [i for i, kind in enumerate(kinds) if kind == "receive"]
        assert max(computed) < min(received, default=len(kinds))
        assert len(computed) == sum(find_worker(g, workers) == rank for g in range(8))


@pytest.mark.parametrize("workers", [2, 4, 8])
def test_worker_of_a_power_of_two_sends_one_subtree(workers: int) -> None:
    for rank in range(workers):
        sent = [s for s in plan_reduction(16, workers, rank, 16) if s.kind == "send"]
        assert len(sent) == (1 if rank else 0)


def test_subtree_is_sent_before_later_groups_are_computed() -> None:
    kinds = [step.kind for step in plan_reduction(8, 3, 1, 8)]
    assert kinds.index("send") < max(i for i, kind in enumerate(kinds) if kind == "compute")
