"""`dovetail demo parallel`: the same weights by one and by several processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dovetail as dt
import pytest
from dovetail.commands import demo_parallel as demo
from dovetail.parallel.step_timeline import Span

pytest.importorskip("sklearn")
figures = pytest.importorskip("matplotlib.figure")

MS = 1_000_000
STEP = [
    Span("compute", 0, 0, 2 * MS),
    Span("add", 0, 2 * MS, 2 * MS + MS // 2),
    Span("send", 1, 3 * MS, 4 * MS, (100_000, 200_000)),
    Span("update", 0, 4 * MS, 6 * MS),
]


def test_two_processes_have_the_weights_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "parallel.svg"
    assert demo.main(["--workers", "2", "--steps", "2", "--out", str(picture)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"Picture: {picture}" in lines
    assert (
        sum(line.startswith(tuple(f"{name}: a step of" for name in demo.TASKS)) for line in lines)
        == 2
    )
    assert "<svg" in picture.read_text()
    rows = [line.split() for line in lines if "│" in line]
    digests = {name: [r[-2] for r in rows if r[1] == name] for name in demo.TASKS}
    assert all(len(each) == 2 and each[0] == each[1] for each in digests.values())


def test_other_weights_are_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(train: Any, arguments: Any, workers: int) -> list[demo.Outcome]:
        return [demo.Outcome(f"digest of {workers}", [1.0], 0.0, [STEP])] * workers

    monkeypatch.setattr(dt.parallel, "run", run)
    assert demo.main(["--workers", "3", "--out", str(tmp_path / "a.png")]) == 1
    assert "Workers have computed different weights" in capsys.readouterr().out


def test_recorded_steps_change_no_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = demo.train_by_name("digits", 3)
    monkeypatch.setattr(demo, "RECORDED_STEPS_MAX", 0)
    plain = demo.train_by_name("digits", 3)
    assert (recorded.digest, recorded.losses) == (plain.digest, plain.losses)
    assert [len(out.timelines) for out in (recorded, plain)] == [3, 0]


def test_picture_has_each_loss_and_each_span() -> None:
    losses = [1 / (k + 1) for k in range(200)]
    outcomes = {w: [demo.Outcome("digest", losses, 0.0, [STEP])] * w for w in (1, 2)}
    above, below = figures.Figure().subplots(2)
    demo._draw_losses(above, outcomes)
    assert [[*line.get_ydata()] for line in above.get_lines()] == [losses, losses]
    assert [*above.get_lines()[0].get_xdata()] == [*range(1, 201)]
    demo._draw_step(below, demo.find_median_step(outcomes[2]))
    bars = [
        (name, b)
        for name, b in zip(
            [name for name in demo.PARTS for _ in range(2)], below.collections, strict=True
        )
    ]
    ends = [
        [(path.vertices[:, 0].min(), path.vertices[:, 0].max()) for path in b.get_paths()]
        for _, b in bars
    ]
    assert ends == [[(0.0, 2.0)]] * 2 + [[(2.0, 2.5)]] * 2 + [[(3.0, 4.0)]] * 2 + [[(4.0, 6.0)]] * 2


def test_step_is_described_by_its_time_and_messages() -> None:
    assert demo.describe_step([STEP, STEP]) == "a step of 6.0 ms, 4 messages, 0.60 MB"
    parts = "compute groups 33%, add gradients 8%, send and wait 17%, update weights 33%"
    assert demo.describe_parts([STEP, STEP]) == parts


def test_step_of_median_time_is_chosen() -> None:
    steps = [[Span("compute", 0, 0, end)] for end in (9, 1, 5)]
    assert demo.find_median_step([demo.Outcome("", [], 0.0, steps)]) == [steps[2]]


def test_more_workers_than_groups_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        demo.main(["--workers", "33"])
    assert "--workers must be at most 32, got 33" in capsys.readouterr().err


def test_networks_learn() -> None:
    losses = demo.train(demo.TASKS["digits"], 30, groups=4, batch=64).losses
    assert losses[-1] < 0.5 * losses[0]
