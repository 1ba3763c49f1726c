"""`dovetail demo parallel`: the same weights by one and by several processes."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import pytest
from dovetail.commands import demo_parallel as demo

pytest.importorskip("sklearn")


def test_two_processes_have_the_weights_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(["--workers", "2", "--steps", "2"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "│" in line]
    digests = {name: [r[-2] for r in rows if r[1] == name] for name in demo.TASKS}
    assert all(len(each) == 2 and each[0] == each[1] for each in digests.values())


def test_other_weights_are_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(train: Any, arguments: Any, workers: int) -> list[demo.Outcome]:
        return [demo.Outcome(f"digest of {workers}", [1.0], 0.0)] * workers

    monkeypatch.setattr(dt.parallel, "run", run)
    assert demo.main(["--workers", "3"]) == 1
    assert "Workers have computed different weights" in capsys.readouterr().out


def test_more_workers_than_groups_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        demo.main(["--workers", "33"])
    assert "--workers must be at most 32, got 33" in capsys.readouterr().err


def test_networks_learn() -> None:
    losses = demo.train(demo.TASKS["digits"], 30, groups=4, batch=64).losses
    assert losses[-1] < 0.5 * losses[0]
