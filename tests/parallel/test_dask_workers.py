"""`dt.parallel.run` on the workers of a Dask cluster: results, errors, killed workers."""

# What is not typed is Dask's.
# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import sys
from collections.abc import Iterator
from time import monotonic
from typing import Any

import dovetail as dt
import pytest
import worker_programs

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the system has no poll()")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Return a client of three worker processes."""
    cluster = distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with cluster, distributed.Client(cluster) as found:
        yield found


def run(client: Any, function: Any, *args: Any, workers: int = 3) -> list[Any]:
    return dt.parallel.run(function, args, workers=workers, timeout=60, client=client)


def test_ranks_are_tasks_on_different_dask_workers(client: Any) -> None:
    def work(n: int) -> tuple[Any, ...]:
        group = dt.parallel.init()
        assert group is dt.parallel.current()
        total = group.all_reduce(dt.full((n,), group.rank + 1.0))
        return group.rank, group.size, total[-1].item(), distributed.get_worker().address

    for workers, n in ((3, 300_000), (2, 3), (1, 3)):  # the workers are free again after a run
        *results, addresses = zip(*run(client, work, n, workers=workers), strict=True)
        total = workers * (workers + 1) / 2
        ranks = tuple(range(workers))
        assert results == [ranks, (workers,) * workers, (total,) * workers]
        assert len({*addresses}) == workers


def test_training_has_the_bits_of_one_process(client: Any, tmp_path: Any) -> None:
    (tmp_path / "alone").mkdir()
    (tmp_path / "together").mkdir()
    alone = worker_programs.train_small_net(str(tmp_path / "alone"), 3)
    together = run(client, worker_programs.train_small_net, str(tmp_path / "together"), 3)
    assert together == [alone] * 3


def test_failure_of_a_rank_is_raised_here_and_told_to_the_others(
    client: Any, tmp_path: Any
) -> None:
    with pytest.raises(KeyError, match="weights") as caught:
        run(client, worker_programs.fail, "raise", str(tmp_path))
    assert caught.value.__notes__ == ["parallel.run: rank 1 of 3 raised this"]
    assert "worker_programs.py" in str(caught.value.__cause__)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0", "2"]
    for path in tmp_path.iterdir():
        assert path.read_text().startswith("1 rank 1 raised KeyError: 'weights'")


@pytest.mark.exhaustive  # waits for Dask's heartbeats, which are late on a busy machine
@pytest.mark.parametrize("others", ["wait", "return"])
def test_killed_dask_worker_is_named(client: Any, others: str) -> None:
    client.wait_for_workers(3)
    started = monotonic()
    with pytest.raises(
        dt.parallel.WorkerError, match=r"rank 1 of 3: its Dask worker .* is gone"
    ) as e:
        run(client, worker_programs.be_killed, others)
    assert e.value.rank == 1 and monotonic() - started < 60
    client.wait_for_workers(3)  # Dask starts it again
    assert run(client, worker_programs.be_killed, "nobody") == [None] * 3


def test_wrong_clients_are_refused(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client.wait_for_workers(3)
    with pytest.raises(dt.ArgumentError, match="number of Dask workers, 3, got 4; for several on"):
        run(client, str, workers=4)
    with pytest.raises(dt.ArgumentTypeError, match=r"client must be a distributed.Client, got 'x'"):
        run("x", str)
    with pytest.raises(dt.ArgumentError, match=r"connects tasks of dt.parallel.run\(..., client="):
        dt.parallel.init("dask")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(dt.PluginError, match="pip install distributed"):
        run(client, str)
