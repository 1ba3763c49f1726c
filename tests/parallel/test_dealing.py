"""`parallel.DealtSampler`: each worker reads the examples of its own groups, in one order."""

from __future__ import annotations

from functools import partial

import dovetail as dt
import pytest
from dovetail.parallel import DealtSampler, Share

run_threads = partial(dt.parallel.run, transport="threads", timeout=60)
SIZE, BATCH, GROUPS = 21, 8, 4


def read_groups(epochs: int = 2, processes: int = 0, **options: int) -> list[dict[int, list[int]]]:
    """Return the examples of each group of this worker, by batch."""
    sampler = DealtSampler(range(SIZE), BATCH, groups=GROUPS, **options)
    loader = dt.data.DataLoader(range(SIZE), batch_sampler=sampler, num_workers=processes)
    workers = dt.parallel.current()
    own = range(workers.rank, GROUPS, workers.size)
    return [
        {g: share.of_group(g).tolist() for g in own if g < share.size}
        for _ in range(epochs)
        for share in loader
    ]


def merge(shares: list[list[dict[int, list[int]]]]) -> list[dict[int, list[int]]]:
    """Return the groups of each batch of all workers."""
    return [
        {g: rows for groups in batch for g, rows in groups.items()}
        for batch in zip(*shares, strict=True)
    ]


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_groups_have_the_same_examples_for_any_number_of_workers(workers: int) -> None:
    alone = read_groups()
    batches = merge(run_threads(read_groups, workers=workers))
    assert [dict(sorted(batch.items())) for batch in batches] == alone


def test_epoch_has_each_example_once_in_a_new_order() -> None:
    batches = read_groups()
    epochs = [
        [k for batch in part for rows in batch.values() for k in rows]
        for part in (batches[:3], batches[3:])
    ]
    assert [sorted(epoch) for epoch in epochs] == [[*range(SIZE)]] * 2
    assert epochs[0] != epochs[1]


def test_example_k_belongs_to_group_k_modulo_groups() -> None:
    first, *_, last = read_groups(1, shuffle=False)
    assert first == {0: [0, 4], 1: [1, 5], 2: [2, 6], 3: [3, 7]}
    assert last == {0: [16, 20], 1: [17], 2: [18], 3: [19]}


def test_worker_without_examples_gets_an_empty_share() -> None:
    def read_last() -> Share:
        sampler = DealtSampler(range(5), 4, groups=4, shuffle=False)
        return [*dt.data.DataLoader(range(5), batch_sampler=sampler)][-1]

    shares = run_threads(read_last, workers=3)
    assert [share.size for share in shares] == [1, 1, 1]
    assert shares[0].examples.tolist() == [4]
    assert shares[1].examples is None and shares[2].examples is None


@pytest.mark.parametrize("processes", [0, 1])
def test_state_continues_in_the_middle_of_an_epoch(processes: int) -> None:
    def read(sampler: DealtSampler, epochs: int) -> list[list[int]]:
        return [share.examples.tolist() for _ in range(epochs) for share in load(sampler)]

    whole = read(DealtSampler(range(SIZE), BATCH, groups=GROUPS), 2)
    first, later = (DealtSampler(range(SIZE), BATCH, groups=GROUPS) for _ in range(2))
    batches = iter(load(first, num_workers=processes))
    parts = [next(batches).examples.tolist() for _ in range(2)]
    later.load_state_dict(first.state_dict())
    assert parts + read(later, 2) == whole


def load(sampler: DealtSampler, **options: int) -> dt.data.DataLoader:
    return dt.data.DataLoader(range(SIZE), batch_sampler=sampler, **options)


def test_loop_does_not_draw_from_the_default_generator() -> None:
    state = dt.random.get_state()
    read_groups()
    assert dt.random.get_state() == state


def test_drop_last_skips_the_short_batch() -> None:
    assert len(read_groups(1, drop_last=True)) == 2


def test_share_of_other_groups_is_refused() -> None:
    sampler = DealtSampler(range(4), 4, groups=2)
    (share,) = dt.data.DataLoader(range(4), batch_sampler=sampler)
    step = dt.parallel.value_and_grad(lambda w, x: ((w * x).sum(), 1), groups=4)
    with pytest.raises(dt.ArgumentError, match=r"= \(4, 1, 0\), got \(2, 1, 0\)"):
        step(dt.asarray(1.0), share)


def test_loader_that_changes_the_order_is_refused() -> None:
    sampler = DealtSampler(range(4), 4, groups=2)
    with pytest.raises(dt.ArgumentError, match="in_order must be True"):
        dt.data.DataLoader(range(4), batch_sampler=sampler, in_order=False)
