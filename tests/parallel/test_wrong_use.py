"""Wrong calls, lost and late ranks: an error on every rank, which names the rank, and no hang."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from threading import Timer
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
    for _, text in errors:  # that of this rank, or of another one that was quicker
        assert common_text in text and odd_text in text and "collective call 2" in text
        assert re.search(r"but rank \d called", text)


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
    assert 0.2 <= seconds < 10
    assert errors_of([error])[0][0] == 0  # rank 1 waited for it


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_call_that_an_error_ends_on_one_rank_fails_the_group(
    kind: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without that, the next broadcast would return the first one's tensor."""

    def work(g: Group) -> Any:
        if g.rank == 1:
            with monkeypatch.context() as patch, pytest.raises(error):
                patch.setattr(g._communicator, "receive", raise_at_second_message(g, error))
                g.broadcast(dt.full((BIG,), 1.0))
        else:
            g.broadcast(dt.full((BIG,), 1.0))
        return g.broadcast(dt.full((BIG,), 2.0))

    for rank, text in errors_of(run_groups(kind, 2, work)):
        assert rank == 1 and text.startswith(f"rank 1 raised {error.__name__}")


def raise_at_second_message(g: Group, error: type[BaseException]) -> Callable[..., Any]:
    receive, count = g._communicator.receive, 0

    def raise_or_receive(*args: Any) -> Any:
        nonlocal count
        count += 1
        if count == 2:
            raise error
        return receive(*args)

    return raise_or_receive


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["ä" * 2000, "\n" * 2000, "\udc80weights", ""])
def test_error_of_any_text_reaches_the_others(kind: str, text: str) -> None:
    def work(g: Group) -> None:
        if g.rank == 1:
            g.abort(f"rank 1 raised KeyError: {text}")
        g.barrier()

    for rank, heard in errors_of(run_groups(kind, 3, work)):
        assert rank == 1 and heard.startswith("rank 1 raised KeyError: " + text[:1].strip("\udc80"))


@pytest.mark.parametrize("kind", KINDS)
def test_close_ends_the_calls_of_other_threads(kind: str) -> None:
    def work(g: Group) -> Any:
        if g.rank == 0:
            return "done"
        if g.rank == 1:
            Timer(0.5, g.close).start()
        return g.barrier()

    started = monotonic()
    first, *others = run_groups(kind, 3, work)
    assert first == "done" and monotonic() - started < 20
    for rank, text in errors_of(others):
        assert rank == 1 and "rank 1 has closed the group" in text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork()")
def test_child_of_fork_is_no_rank() -> None:
    def work(g: Group) -> str:
        if g.rank == 0:
            pid = os.fork()
            if pid == 0:
                try:
                    g.barrier()
                except dt.parallel.WorkerError as error:
                    g.abort("the child has failed")
                    g.close()
                    os._exit(3 if "is a fork of rank 0, and no rank" in str(error) else 4)
                os._exit(5)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
        g.barrier()
        return "done"

    assert run_groups("sockets", 2, work) == ["done", "done"]


def test_masked_arrays_and_other_classes_are_refused() -> None:
    g = dt.parallel.current()
    with pytest.raises(dt.ArgumentTypeError, match="all_gather: tensor must not be a masked array"):
        g.all_gather(np.ma.masked_array([1.0, 2.0], [0, 1]))
    with pytest.raises(dt.ArgumentTypeError, match="tensor must be a Tensor or a NumPy array, got"):
        g.all_reduce([1.0])


@pytest.mark.parametrize("timeout", [0, -1.0, float("inf"), float("nan"), 1e10])
def test_limits_of_no_meaning_are_refused(timeout: float) -> None:
    for call in (
        lambda: dt.parallel.run(str, workers=2, timeout=timeout),
        lambda: dt.parallel.run(str, workers=2, timeout=timeout, transport="threads"),
        lambda: dt.parallel.init(timeout=timeout),
    ):
        with pytest.raises(dt.ArgumentError, match="timeout must be above 0 seconds, and at most"):
            call()


def test_closed_group_refuses_calls_and_closes_twice() -> None:
    def work(g: Group) -> None:
        g.close()
        g.close()
        g.barrier()

    for rank, (named, text) in enumerate(errors_of(run_groups("sockets", 2, work))):
        assert named == rank and f"rank {rank} has closed the group" in text


# --- programs of processes


def stop_a_rank() -> None:
    x = dt.parallel.shard(dt.ones((6, 4)))
    x.sum().item()
    if dt.parallel.current().rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    x.sum().item()


def sum_loss(w: Any, x: Any) -> tuple[Any, int]:
    if dt.parallel.current().rank == 1:
        raise KeyError("weights of rank 1")
    return (w * x).sum(), len(x)


def raise_in_a_loss() -> None:
    dt.parallel.value_and_grad(sum_loss, groups=2)(dt.ones(()), dt.ones(8))


def raise_in_a_backward_pass() -> None:
    x = dt.parallel.shard(dt.ones((6, 4)))
    w = dt.ones((4, 2)).requires_grad_()
    y = x @ w
    if dt.parallel.current().rank == 1:
        y.local().register_hook(raise_key_error)
    dt.sum(y).backward()


def raise_key_error(g: Any) -> None:
    raise KeyError("weights of rank 1")


def shard_other_shapes() -> None:
    rank = dt.parallel.current().rank
    dt.parallel.shard(dt.ones((6 + rank, 4))).full()


def leave_out_a_step() -> None:
    if dt.parallel.current().rank == 0:
        dt.parallel.value_and_grad(lambda w, x: ((w * x).sum(), len(x)), groups=2)(
            dt.ones(()), dt.ones(8)
        )


PROGRAMS: dict[str, tuple[Callable[[], None], type[Exception], str]] = {
    "stopped rank": (stop_a_rank, dt.parallel.WorkerError, "rank 1 did not answer rank 0 within 4"),
    "error in a loss": (raise_in_a_loss, KeyError, "weights of rank 1"),
    "error in a backward pass": (raise_in_a_backward_pass, KeyError, "weights of rank 1"),
    "other shapes": (shard_other_shapes, dt.parallel.WorkerError, r"rank \d called"),
    "missing step": (
        leave_out_a_step,
        dt.parallel.WorkerError,
        "rank 1 has left the group after no",
    ),
}


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="the system has no SIGSTOP")
@pytest.mark.parametrize("name", PROGRAMS)
def test_wrong_programs_of_processes_end_with_the_rank(name: str) -> None:
    program, error, text = PROGRAMS[name]
    started = monotonic()
    with pytest.raises(error, match=text):
        dt.parallel.run(program, workers=2, timeout=4, threads=1)
    assert monotonic() - started < 60
