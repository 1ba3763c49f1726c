"""Training runs whose workers are killed at random instants: errors, and bits of the results."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import dovetail as dt
import pytest
import worker_programs
from dovetail.parallel import launcher

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the system has no poll()")
STEPS = 4
STOPPED_TIMEOUT = 20.0  # of the calls of a run in which a worker is stopped
HANG_SECONDS = 180.0


class Run:
    """A run of workers in a thread of this process."""

    def __init__(self, folder: Path, workers: int, timeout: float) -> None:
        self.results: list[bytes] = []
        self.error: BaseException | None = None
        self.thread = Thread(target=self._run, args=(folder, workers, timeout), daemon=True)
        self.thread.start()

    def _run(self, folder: Path, workers: int, timeout: float) -> None:
        try:
            self.results = dt.parallel.run(
                worker_programs.train_small_net,
                (str(folder), STEPS),
                workers=workers,
                timeout=timeout,
                threads=1,
                start_method="forkserver",
            )
        except BaseException as error:
            self.error = error


def signal_worker(started: list[Any], victim: int, number: int) -> None:
    """Send a signal to a worker unless it has ended."""
    process = started[0].processes[victim]
    if process.is_alive():
        os.kill(process.pid, number)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that gets the processes of each run, and shorten the waits for their end."""
    workers: list[Any] = []

    class Workers(launcher._Workers):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            workers.append(self)

    monkeypatch.setattr(launcher, "_Workers", Workers)
    monkeypatch.setattr(launcher, "GRACE_SECONDS", 2.0)
    monkeypatch.setattr(launcher, "TERMINATE_SECONDS", 0.2)
    return workers


def check_error(error: BaseException, victim: int, number: int) -> None:
    """Assert that the error of a run names the victim."""
    assert isinstance(error, dt.parallel.WorkerError), error
    assert error.rank == victim, error
    if number == signal.SIGKILL:
        assert "killed by signal SIGKILL" in str(error)
    else:
        assert f"rank {victim} did not" in str(error), error


@pytest.mark.parametrize(
    "count", [3, pytest.param(1000, marks=[pytest.mark.exhaustive, pytest.mark.timeout(7200)])]
)
def test_run_whose_workers_are_killed_ends_with_the_bits_of_an_undisturbed_one(
    count: int, tmp_path: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    multiprocessing.set_forkserver_preload(["dovetail.parallel.sockets", "warm_worker"])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    (tmp_path / "alone").mkdir()
    (tmp_path / "together").mkdir()
    expected = worker_programs.train_small_net(str(tmp_path / "alone"), STEPS)
    Run(tmp_path / "alone", 2, 120.0).thread.join()  # starts the server
    began = monotonic()
    together = Run(tmp_path / "together", 4, 120.0)
    together.thread.join()
    seconds = monotonic() - began
    assert together.results == [expected] * 4
    seed = int(os.environ.get("KILLS_SEED", 0)) or random.SystemRandom().randrange(1 << 32)
    rng, signals = random.Random(seed), 0
    outcomes = {"killed": 0, "stopped": 0, "finished": 0}
    while signals < count:
        folder = tmp_path / str(signals)
        folder.mkdir()
        workers, results = rng.choice([2, 3, 4]), []
        while not results and workers > 1 and signals < count:
            number = signal.SIGSTOP if rng.random() < 0.02 else signal.SIGKILL
            started.clear()
            run = Run(folder, workers, 120.0 if number == signal.SIGKILL else STOPPED_TIMEOUT)
            while not started and run.thread.is_alive():
                sleep(0.002)
            victim, delay = rng.randrange(workers), rng.uniform(0, seconds)
            sleep(delay)
            began, context = monotonic(), (seed, signals, workers, victim, delay, number)
            signal_worker(started, victim, number)
            run.thread.join(HANG_SECONDS)
            assert not run.thread.is_alive() and monotonic() - began < HANG_SECONDS, context
            if run.error is None:
                results = run.results
                assert results == [expected] * workers, context
                outcomes["finished"] += 1
            else:
                try:
                    check_error(run.error, victim, number)
                except AssertionError as error:
                    error.add_note(f"seed, signals, workers, victim, delay, number: {context}")
                    raise
                outcomes["killed" if number == signal.SIGKILL else "stopped"] += 1
            signals, workers = signals + 1, workers - 1
        if not results:  # the one that is left
            assert worker_programs.train_small_net(str(folder), STEPS) == expected, (seed, signals)
    sys.stdout.write(f"seed {seed}: {outcomes}, an undisturbed run takes {seconds:.1f} s\n")
