"""Wrong calls, lost and late ranks: an error on every rank, which names the rank, and no hang."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import Any, TypeAlias

import dovetail as dt
import numpy as np
import pytest
from worker_groups import KINDS, errors_of, kill, run_groups

Group: TypeAlias = dt.parallel.ProcessGroup
BIG = 600_000


def with_odd_rank(common: Callable[[Group], Any], odd: Callable[[Group], Any]) -> Any:
    return lambda g: odd(g) if g.rank == 1 else common(g)


MISMATCHES: dict[str, tuple[Callable[[Group], Any], Callable[[Group], Any], str, str]] = {
    "shapes": (
        lambda g: g.all_reduce(dt.ones(3)),
        lambda g: g.all_reduce(dt.ones((3, 1))),
        "all_reduce(float32[3], op='sum')",
        "all_reduce(float32[3, 1], op='sum')",
    ),
    "large shapes": (
        lambda g: g.all_reduce(dt.ones(BIG)),
        lambda g: g.all_reduce(dt.ones(BIG - 1)),
        "all_reduce(float32[600000], op='sum')",
        "all_reduce(float32[599999], op='sum')",
    ),
    "dtypes": (
        lambda g: g.all_gather(dt.ones(3)),
        lambda g: g.all_gather(dt.ones(3, dtype="bfloat16")),
        "all_gather(float32[3])",
        "all_gather(bfloat16[3])",
    ),
    "ops": (
        lambda g: g.all_reduce(dt.ones(3)),
        lambda g: g.all_reduce(dt.ones(3), "max"),
        "op='sum'",
        "op='max'",
    ),
    "roots": (
        lambda g: g.broadcast(dt.ones(BIG), 0),
        lambda g: g.broadcast(dt.ones(BIG), 1),
        "broadcast(float32[600000], src=0)",
        "broadcast(float32[600000], src=1)",
    ),
    "collectives": (
        lambda g: g.barrier(),
        lambda g: g.reduce_scatter([dt.ones(BIG)] * 3),
        "barrier()",
        "reduce_scatter(3 of float32[600000], op='sum')",
    ),
    "long texts": (
        lambda g: g.broadcast(dt.ones((0,) + (1,) * 61 + (2**45 + 2,))),
        lambda g: g.broadcast(dt.ones((0,) + (1,) * 61 + (2**45 + 3,))),
        "...",
        "...",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MISMATCHES)
def test_different_calls_raise_on_every_rank_and_name_both(kind: str, name: str) -> None:
    common, odd, common_text, odd_text = MISMATCHES[name]

    def work(g: Group) -> None:
        g.barrier()
        with_odd_rank(common, odd)(g)

    errors = errors_of(run_groups(kind, 3, work))
    assert [rank for rank, _ in errors] == [1, 0, 1]
    for rank, (_, text) in enumerate(errors):
        assert common_text in text and odd_text in text and "collective call 2" in text
        assert f"but rank {rank} called" in text


@pytest.mark.parametrize("kind", KINDS)
def test_counts_of_calls_must_agree(kind: str) -> None:
    def work(g: Group) -> None:
        if g.rank == 0:
            g._communicator._number += 1
        g.barrier()

    for _, text in errors_of(run_groups(kind, 2, work)):
        assert "collective call 1" in text or "collective call 2" in text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [3, BIG])
def test_rank_that_left_is_named_with_its_last_call(kind: str, n: int) -> None:
    def work(g: Group) -> Any:
        g.all_gather(dt.ones(2))
        if g.rank == 2:
            return g.close()
        return g.all_reduce(dt.ones(n))

    first, second, none = run_groups(kind, 3, work)
    assert none is None
    for rank, text in errors_of([first, second]):
        assert rank == 2 and "rank 2 has left the group after all_gather(float32[2])" in text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [3, BIG])
def test_rank_that_was_killed_is_named_at_once(kind: str, n: int) -> None:
    def work(g: Group) -> float:
        started = monotonic()
        for k in range(100):
            if g.rank == 1 and k == 3:
                kill(g._communicator.transport)
            try:
                g.all_reduce(dt.ones(n))
            except dt.parallel.WorkerError as error:
                assert g.rank == 1 or (error.rank == 1 and "rank 1 is lost" in str(error)), error
                with pytest.raises(dt.parallel.WorkerError, match="rank"):
                    g.barrier()
                return monotonic() - started
        raise AssertionError("nothing was raised")

    for seconds in run_groups(kind, 3, work):
        assert seconds < 20


@pytest.mark.parametrize("kind", KINDS)
def test_late_rank_is_named_on_every_rank_within_the_limit(kind: str) -> None:
    def work(g: Group) -> None:
        g.barrier()
        if g.rank == 1:
            sleep(1.5)
        g.all_reduce(dt.ones(2))

    for rank, text in errors_of(run_groups(kind, 3, work, timeout=0.5)):
        assert rank == 1 and "rank 1 did not answer rank" in text and "within 0.5 seconds" in text
        assert "all_reduce(float32[2], op='sum')" in text and "longer timeout" in text


def test_all_late_ranks_are_named() -> None:
    results = run_groups("threads", 4, lambda g: g.barrier() if g.rank == 3 else None, timeout=0.3)
    ((_, text),) = errors_of(results[3:])
    assert "ranks 0, 1, 2 did not answer rank 3" in text


@pytest.mark.parametrize("kind", KINDS)
def test_error_of_one_rank_reaches_the_others(kind: str) -> None:
    def work(g: Group) -> None:
        if g.rank == 0:
            g.abort("rank 0 raised KeyError: 'weights'")
        g.barrier()

    for rank, text in errors_of(run_groups(kind, 3, work)):
        assert rank == 0 and text.startswith("rank 0 raised KeyError: 'weights'")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("sent", "like", "texts"),
    [
        (dt.ones((2, 3)), dt.ones((3, 2)), ("float32[2, 3]", "float32[3, 2]")),
        (dt.ones(4), dt.ones(BIG), ("float32[4]", "float32[600000]")),
        (dt.ones(BIG), dt.ones(4), ("float32[600000]", "float32[4]")),
        (dt.ones(BIG), dt.ones(BIG + 1), ("float32[600000]", "float32[600001]")),
        (dt.ones(4), np.ones(4), ("float32[4]", "float64[4]")),
    ],
    ids=["shapes", "small", "large", "lengths", "dtypes"],
)
def test_message_of_another_shape_or_dtype_is_refused(
    kind: str, sent: Any, like: Any, texts: tuple[str, str]
) -> None:
    def work(g: Group) -> None:
        if g.rank == 0:
            g.send(sent, 1, 5).wait()
        else:
            g.receive(like, 0, 5).wait()
        g.barrier()

    for _, text in errors_of(run_groups(kind, 2, work)):
        assert f"rank 0 sent {texts[0]}, but rank 1 receives {texts[1]}" in text


@pytest.mark.parametrize("kind", KINDS)
def test_receive_has_a_limit_of_its_own(kind: str) -> None:
    def work(g: Group) -> float:
        if g.rank == 1:
            g.receive(dt.ones(1), 0, 1).wait()
            return 0.0
        started = monotonic()
        request = g.receive(dt.ones(1), 1, 1)
        with pytest.raises(dt.parallel.WorkerError, match=r"receive\(.*tag=1\): rank 1 did not"):
            request.wait(0.2)
        return monotonic() - started

    seconds, error = run_groups(kind, 2, work, timeout=30)
    assert 0.2 <= seconds < 10 and errors_of([error])[0][0] == 1


def test_closed_group_refuses_calls_and_closes_twice() -> None:
    def work(g: Group) -> None:
        g.close()
        g.close()
        g.barrier()

    for rank, (named, text) in enumerate(errors_of(run_groups("sockets", 2, work))):
        assert named == rank and "this rank has closed the group" in text
