"""The order in which the results of groups are added: a binary tree that depends on no worker.

Level by level, group g adds group g + G/2, then g + G/4, and so on until group 0 has the sum. The
subtree of the groups that equal r modulo m is called by r; the worker of group r computes it.
"""

from __future__ import annotations

from typing import NamedTuple

__all__: list[str] = []


class Step(NamedTuple):
    """A step of a worker: compute a group, add subtree `other` to `subtree`, send or receive one.

    `kind`: "compute", "add", "send" or "receive". `other`: the added subtree, or the other worker.
    """

    kind: str
    subtree: int
    other: int = 0


def find_worker(group: int, workers: int) -> int:
    """Return the worker that computes a group."""
    return group % workers


def list_groups(groups: int, workers: int, rank: int) -> range:
    """Return the groups that a worker computes, in ascending order."""
    return range(rank, groups, workers)


def plan_reduction(groups: int, workers: int, rank: int, filled: int) -> list[Step]:
    """Return the steps of one worker; at the end the worker of group 0 has the sum of all groups.

    - `filled`: the number of groups that have examples. An empty subtree is not added.

    A worker computes all its groups first. It sends each subtree that is complete at once. Only
    then it receives what other workers have computed.
    """
    steps: list[Step] = []
    complete: set[tuple[int, int]] = set()

    def compute(r: int, m: int) -> bool:
        """Plan what the worker's own groups give of a subtree; return True for all of it."""
        if r >= filled:
            return False
        if m == groups:
            if find_worker(r, workers) != rank:
                return False
            steps.append(Step("compute", r))
        else:
            right = r + m
            has_left, has_right = compute(r, 2 * m), compute(right, 2 * m)
            owner = find_worker(r, workers)
            if has_right and owner != rank:
                steps.append(Step("send", right, owner))
            if not has_left or (right < filled and not has_right):
                return False
            if has_right:
                steps.append(Step("add", r, right))
        complete.add((r, m))
        return True

    def complete_remaining(r: int, m: int) -> None:
        """Plan the exchange with other workers below a subtree."""
        right = r + m
        if (r, m) in complete or r >= filled or m == groups:
            return
        complete_remaining(r, 2 * m)
        complete_remaining(right, 2 * m)
        if right >= filled:
            return
        owner, source = find_worker(r, workers), find_worker(right, workers)
        if source == rank != owner and (right, 2 * m) not in complete:
            steps.append(Step("send", right, owner))
        if owner == rank:
            if source != rank:
                steps.append(Step("receive", right, source))
            steps.append(Step("add", r, right))

    compute(0, 1)
    complete_remaining(0, 1)
    return steps
