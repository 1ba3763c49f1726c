"""`dovetail demo kernels`: its pictures against NumPy, and its report of devices that differ."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from dovetail.commands import demo, demo_kernels
from rich.console import Console

TINY = demo_kernels.PictureSize(side=16, rounds=12, steps=5, numbers=500, rows=8)


def test_pictures_equal_numpy() -> None:
    out = demo_kernels.draw_pictures("reference", TINY)
    c = (-2.1 + 2.8 * np.arange(16) / 16) + 1j * (-1.4 + 2.8 * np.arange(16) / 16)[:, None]
    z, want = np.zeros_like(c), np.full(c.shape, 12)
    for k in range(12):
        z = np.where(want == 12, z * z + c, z)
        want = np.where((want == 12) & (abs(z) > 2), k, want)
    assert (out.pictures["Mandelbrot"] == want).mean() > 0.97  # float32 near the edge
    heat = out.pictures["heat"]
    assert np.all(heat[0] == 100) and 0 < heat[1, 8] < 100 and heat[-2, 1] == 0
    assert out.pictures["histogram"].sum() <= 500 and out.pictures["histogram"].max() > 5
    np.testing.assert_allclose(out.pictures["attention"].sum(1), 1, rtol=1e-5)


def test_demo_runs_and_all_devices_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    for size in ("LARGE", "SMALL"):
        monkeypatch.setattr(demo_kernels, size, TINY)
    said, picture = io.StringIO(), tmp_path / "kernels.png"
    console = Console(file=said, width=120)
    assert demo_kernels.run(demo.available(), picture, console) == 0
    assert picture.stat().st_size > 10_000
    assert all(f" {name}" in said.getvalue() for name in demo_kernels.PICTURES)


def test_device_that_differs_is_reported() -> None:
    good, bad = (demo_kernels.draw_pictures("reference", TINY) for _ in range(2))
    bad.device = "bad"
    bad.pictures["heat"] = bad.pictures["heat"] + 1
    assert demo_kernels.disagreements([good, good]) == []
    assert demo_kernels.disagreements([good, bad]) == ["bad and reference differ: heat"]
