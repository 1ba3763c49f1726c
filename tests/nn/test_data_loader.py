"""The loader: equal batches in equal order with and without workers, and a clean end."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import dovetail as dt
import loader_cases as cases
import numpy as np
import pytest
from dovetail.data import DataLoader, WorkerError

pytestmark = pytest.mark.timeout(120)  # a limit, because a deadlock would hang the run
SHARED = Path("/dev/shm")


def segments(of: int) -> list[str]:
    """Return the shared memory segments that the workers of this process left."""
    return [p.name for p in SHARED.glob(f"dovetail_{of}_*")] if SHARED.exists() else []


@pytest.fixture(autouse=True)
def nothing_is_left() -> Any:
    yield
    gc.collect()
    assert not [p for p in multiprocessing.active_children() if "dovetail-loader" in p.name]
    assert segments(os.getpid()) == []


@pytest.fixture(autouse=True)
def reference() -> Any:
    before = dt.default_device()
    dt.set_default_device("reference")
    yield
    dt.set_default_device(before)


def seen(loader: Any) -> list[Any]:
    return [(x[:, 0, 0].tolist(), y.tolist()) for x, y in loader]


# --- in this process
# --------------------------------------------------------------------------------


def test_batches_are_in_order() -> None:
    found = seen(DataLoader(cases.Pictures(5), batch_size=2))
    assert found == [([0, 1], [0, 1]), ([2, 3], [2, 3]), ([4], [4])]
    loader = DataLoader(cases.Pictures(5), batch_size=2, drop_last=True)
    assert len(loader) == 2 == len(seen(loader))


def test_samplers_determine_the_order() -> None:
    pictures = cases.Pictures(5)
    assert seen(DataLoader(pictures, 2, sampler=[4, 1, 3])) == [([4, 1], [4, 1]), ([3], [3])]
    assert seen(DataLoader(pictures, batch_sampler=[[2], [0, 1]]))[0] == ([2], [2])
    assert [i for _, i in DataLoader(pictures, batch_size=None, sampler=[3, 2])] == [3, 2]


def test_rows_of_tensors_are_read_in_one_operation(device: dt.Device) -> None:
    rows = dt.data.TensorDataset(dt.arange(10) * 2, dt.ones((10, 3)))
    some = dt.data.Subset(rows, [9, 8, 7])
    (x, y), _ = DataLoader(some, batch_size=2)
    assert x.tolist() == [18, 16] and y.shape == (2, 3) and x.device is device


def test_getitems_fetches_a_batch_at_once() -> None:
    class Several(cases.Pictures):
        def __getitems__(self, indices: list[int]) -> list[int]:
            return [i * 10 for i in indices]

    assert [x.tolist() for x in DataLoader(Several(3), 2)] == [[0, 10], [20]]


def test_iterable_data_set_is_batched() -> None:
    loader = DataLoader(cases.Upwards(5), batch_size=2)
    assert [x.tolist() for x in loader] == [[0, 1], [2, 3], [4]]
    assert [x.tolist() for x in DataLoader(cases.Upwards(5), 2, drop_last=True)] == [[0, 1], [2, 3]]
    assert [*DataLoader(cases.Upwards(2), batch_size=None)] == [0, 1]


def test_batches_are_moved_to_a_device() -> None:
    loader = DataLoader(cases.Pictures(5), batch_size=2, device="reference")
    assert [x.device.type for x, _ in loader] == ["reference"] * 3
    assert seen(loader) == seen(DataLoader(cases.Pictures(5), batch_size=2))


# --- in workers
# -------------------------------------------------------------------------------------


def test_order_does_not_depend_on_the_number_of_workers() -> None:
    found = []
    for workers in (0, 2):
        draw = dt.random.default_rng(7)
        loader = DataLoader(cases.Slow(20), 3, True, num_workers=workers, generator=draw)
        found.append([seen(loader), seen(loader)])
    assert found[0] == found[1]
    first, second = found[0]
    assert first != second  # another epoch, another order
    assert sorted(i for _, batch in first for i in batch) == [*range(20)]
    assert all(a == b for epoch in found[0] for a, b in epoch)


def test_workers_share_an_iterable_data_set() -> None:
    loader = DataLoader(cases.Upwards(11), batch_size=2, num_workers=2)
    found = [x.tolist() for x in loader]
    assert found == [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9]]


def test_persistent_workers_serve_several_epochs() -> None:
    loader = DataLoader(
        cases.Pictures(20), 2, num_workers=2, persistent_workers=True, prefetch_factor=3
    )
    epochs = [seen(loader) for _ in range(3)]
    processes = loader._workers.processes  # type: ignore[union-attr]
    assert epochs[0] == epochs[1] == epochs[2] == seen(DataLoader(cases.Pictures(20), 2))
    assert all(p.is_alive() for p in processes)
    del loader
    gc.collect()
    assert not any(p.is_alive() for p in processes)


def test_unordered_batches_contain_every_item() -> None:
    loader = DataLoader(cases.Slow(12), 1, num_workers=2, in_order=False)
    assert sorted(y[0] for _, y in seen(loader)) == [*range(12)]


def test_workers_have_different_random_numbers() -> None:
    def drawn() -> list[Any]:
        draw = dt.random.default_rng(3)
        loader = DataLoader(cases.Drawing(4), 2, num_workers=2, generator=draw)
        return [[x.tolist() for x in batch] for batch in loader]

    first = drawn()
    assert first == drawn()  # from a seed
    assert first[0] != first[1]  # of two workers


def test_worker_init_fn_runs_in_each_worker() -> None:
    loader = DataLoader(cases.Told(4), 1, num_workers=2, worker_init_fn=cases.begin)
    assert [*loader] == [["0"], ["1"], ["0"], ["1"]]


def test_user_collate_batches_stay_valid() -> None:
    """Arrays that collate_fn does not make tensors must not lie in memory that the next batch
    reuses.
    """
    loader = DataLoader(cases.Pictures(12), 2, num_workers=1, collate_fn=cases.texts)
    found = [*loader]
    assert [x.tolist() for batch in found for x in [batch["tensor"]]] == [
        [i, i + 1] for i in range(0, 12, 2)
    ]
    assert [float(a[0, 0]) for batch in found for a in batch["arrays"]] == [*range(12)]


def test_earlier_batches_stay_valid() -> None:
    found = [*DataLoader(cases.Pictures(20), 2, num_workers=2, prefetch_factor=1)]
    assert [int(x[0, 47, 47]) for x, _ in found] == [*range(0, 20, 2)]
    found[0][0].fill_(-1)
    assert float(found[1][0][0, 0, 0]) == 2


# --- failures
# ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 1])
def test_exception_of_a_data_set_is_raised(workers: int) -> None:
    loader = DataLoader(cases.Raising(20), 2, num_workers=workers)
    with pytest.raises(LookupError, match="number five") as caught:
        seen(loader)
    if workers:
        assert "loader_cases.py" in str(caught.value.__cause__)
        assert "batch 2" in caught.value.__notes__[0]
    assert len(seen(DataLoader(cases.Pictures(4), 2, num_workers=workers))) == 2


def test_exception_that_cannot_be_sent_is_described() -> None:
    with pytest.raises(WorkerError, match="Unsendable: cannot be sent"):
        seen(DataLoader(cases.RaisingUnsendable(4), 2, num_workers=1))


def test_failed_worker_init_raises() -> None:
    with pytest.raises(OSError, match="no such file"):
        seen(DataLoader(cases.Pictures(4), 2, num_workers=2, worker_init_fn=cases.failing))


@pytest.mark.parametrize(
    ("kind", "said"), [(cases.Killed, "signal SIGKILL"), (cases.Exiting, "exit code 7")]
)
def test_dead_worker_raises(kind: Any, said: str) -> None:
    with pytest.raises(WorkerError, match=said):
        seen(DataLoader(kind(20), 2, num_workers=2))


def test_worker_killed_from_outside_raises() -> None:
    loader = DataLoader(cases.Hanging(20), 5, num_workers=2, persistent_workers=True)
    batches = iter(loader)
    next(batches)
    os.kill(loader._workers.processes[1].pid, signal.SIGKILL)  # type: ignore[union-attr]
    with pytest.raises(WorkerError, match=r"worker 1 .* SIGKILL"):
        list(batches)


def test_slow_worker_raises_after_the_timeout() -> None:
    loader = DataLoader(cases.Hanging(20), 2, num_workers=1, timeout=1)
    with pytest.raises(WorkerError, match="no batch arrived within timeout=1 seconds"):
        seen(loader)


def test_dropped_iterator_stops_its_workers() -> None:
    batches = iter(DataLoader(cases.Hanging(20), 5, num_workers=2))
    next(batches)
    processes = batches.workers.processes  # type: ignore[attr-defined]
    del batches
    gc.collect()
    assert not any(p.is_alive() for p in processes)


SCRIPT = """
from multiprocessing import active_children
import dovetail as dt
import loader_cases as cases

if __name__ == "__main__":
    cases.hear_signals()
    dt.set_default_device("reference")
    loader = dt.data.DataLoader(cases.Hanging(20), 5, num_workers=2)
    for batch in loader:
        print("ready", *[p.pid for p in active_children()], flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_and_death_of_the_loader_stop_workers(how: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    paths = [str(Path(__file__).parent), *sys.path]
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        word, *workers = process.stdout.readline().split()
        assert word == "ready" and len(workers) == 2
        os.kill(process.pid, how) if how == signal.SIGKILL else os.killpg(process.pid, how)
        _, said = process.communicate(timeout=60)  # until no process has its output open
        assert how == signal.SIGKILL or "KeyboardInterrupt" in said
        assert segments(process.pid) == []
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"batch_size": None, "drop_last": True}, "pass batch_size"),
        ({"shuffle": True, "sampler": [1]}, "one of shuffle and sampler"),
        ({"batch_sampler": [[1]], "batch_size": 4}, "batch_sampler replaces batch_size"),
        ({"num_workers": -1}, "num_workers must not be negative, got -1"),
        ({"timeout": -1}, "timeout must not be negative, got -1"),
        ({"prefetch_factor": 2}, "pass num_workers"),
        ({"num_workers": 1, "prefetch_factor": 0}, "prefetch_factor must be at least 1, got 0"),
        ({"persistent_workers": True}, "pass num_workers"),
        ({"multiprocessing_context": "spawn"}, "pass num_workers"),
        ({"num_workers": 1, "multiprocessing_context": "fork"}, "threads"),
        ({"num_workers": 1, "multiprocessing_context": "none"}, "none"),
    ],
)
def test_incompatible_options_raise(options: dict[str, Any], said: str) -> None:
    with pytest.raises(dt.ArgumentError, match=said):
        DataLoader(cases.Pictures(4), **options)


@pytest.mark.parametrize("option", ["batch_size", "num_workers", "prefetch_factor"])
def test_number_of_another_type_raises(option: str) -> None:
    options: dict[str, Any] = {"num_workers": 1, option: 1.5}
    with pytest.raises(dt.ArgumentTypeError, match=f"{option} must be an int, got 1.5"):
        DataLoader(cases.Pictures(4), **options)


def test_shuffle_of_an_iterable_data_set_raises() -> None:
    with pytest.raises(dt.ArgumentError, match="defines the order itself"):
        DataLoader(cases.Upwards(4), shuffle=True)


def test_unpicklable_data_set_raises() -> None:
    class Local(cases.Pictures):
        pass

    with pytest.raises(dt.ArgumentError, match="cannot be sent to a worker process"):
        seen(DataLoader(Local(4), num_workers=1))


def test_shuffle_order_follows_the_seed(device: dt.Device) -> None:
    rows = dt.data.TensorDataset(dt.arange(12))
    found = []
    for _ in range(2):
        dt.random.manual_seed(5)
        loader = DataLoader(rows, 5, shuffle=True)
        found.append([x.tolist() for (x,) in loader])
    assert found[0] == found[1]
    np.testing.assert_array_equal(sorted(i for batch in found[0] for i in batch), np.arange(12))


def test_pin_memory_without_a_pinning_device_warns() -> None:
    loader = DataLoader(dt.data.TensorDataset(dt.arange(4)), 2, pin_memory=True, device="reference")
    with pytest.warns(dt.DovetailWarning, match="no device here has pinned") as said:
        found = [x.tolist() for _ in range(2) for (x,) in loader]
    assert found == [[0, 1], [2, 3]] * 2 and len(said) == 1
    assert said[0].filename == __file__
    with pytest.raises(dt.DeviceError, match="nowhere"):
        next(iter(DataLoader([1, 2], pin_memory=True, pin_memory_device="nowhere")))
