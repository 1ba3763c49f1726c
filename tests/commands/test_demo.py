"""`dovetail demo`: its numerics against NumPy, and its report of devices that differ."""

from __future__ import annotations

import dataclasses
import importlib.util
import io
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest
from dovetail.commands import demo
from rich.console import Console

TINY = demo.DemoSize(iterations=3, seeds=2, steps=4)
SMALL = demo.DemoSize(iterations=6, seeds=2, steps=12)
RNG = np.random.default_rng(3)


def tensor(values: object, dtype: str = "f4") -> dt.Tensor:
    return dt.asarray(np.asarray(values, dtype), device="reference")


def no_op() -> None:
    pass


def test_standardised_pixels_have_mean_0_and_variance_1() -> None:
    x = demo.standardise(tensor(RNG.uniform(0, 1, (50, 6)))).numpy()
    np.testing.assert_allclose(x.mean(0), 0, atol=1e-6)
    assert abs((x * x).mean() - 1) < 1e-5


def test_gram_schmidt_is_orthonormal_and_keeps_the_span() -> None:
    a = RNG.standard_normal((5, 9)).astype("f4")
    q = demo.orthonormal(tensor(a)).numpy()
    np.testing.assert_allclose(q @ q.T, np.eye(5), atol=1e-5)
    np.testing.assert_allclose((a @ q.T) @ q, a, atol=1e-5)


def test_components_are_the_leading_eigenvectors() -> None:
    x = (RNG.standard_normal((80, 6)) * [9, 5, 3, 1, 0.5, 0.2]).astype("f4")
    start = tensor(RNG.standard_normal((2, 6)))
    ticks: list[None] = []
    found = demo.components(tensor(x), start, 40, lambda: ticks.append(None)).numpy()
    vectors = np.linalg.eigh(x.T @ x)[1][:, ::-1][:, :2].T
    np.testing.assert_allclose(np.abs((found * vectors).sum(1)), 1, atol=1e-4)
    assert len(ticks) == 40


def test_distances_equal_numpy() -> None:
    p, c = RNG.standard_normal((7, 3)).astype("f4"), RNG.standard_normal((4, 3)).astype("f4")
    found = demo.distances(tensor(p), tensor(c))
    assert len(dt.explain(found).launches) == 1
    np.testing.assert_allclose(found.numpy(), ((p[:, None] - c) ** 2).sum(2), rtol=1e-5)


def test_empty_cluster_keeps_its_centroid() -> None:
    values = tensor([[1, 2], [3, 4]])
    member = demo.members(tensor([0, 0], "i8"))
    otherwise = tensor(np.full((demo.CLUSTERS, 2), 7))
    found = demo.means(values, member, otherwise).numpy()
    assert found[0].tolist() == [2, 3] and np.all(found[1:] == 7)


def test_kmeans_finds_ten_separate_clusters() -> None:
    truth = np.arange(10).repeat(8)
    points = tensor(np.eye(10)[truth] * 20 + RNG.standard_normal((80, 10)))
    _, assignment, spread = demo.kmeans(points, points[::8], 20)
    assert demo.purity(assignment, tensor(truth, "i8")) == 1.0
    assert 400 < spread < 1200


def test_purity_counts_the_most_frequent_kind() -> None:
    assignment, labels = tensor([0, 0, 0, 1], "i8"), tensor([5, 5, 3, 3], "i8")
    assert demo.purity(assignment, labels) == 0.75


def test_every_device_gets_the_job_of_the_interpreter() -> None:
    assert demo.plan_jobs(["a", "reference"], 1797) == [
        ("a", 1797),
        ("a", demo.REFERENCE_DIGITS_MAX),
        ("reference", demo.REFERENCE_DIGITS_MAX),
    ]
    assert demo.plan_jobs(["a", "b"], 9) == [("a", 9), ("b", 9)]


def test_interpreter_takes_part_only_if_asked_for_or_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "available", lambda: ["cpu", "opencl", "reference"])
    assert demo.select_devices(None, full=False) == ["cpu", "opencl"]
    assert demo.select_devices(None, full=True) == ["cpu", "opencl", "reference"]
    assert demo.select_devices(["reference"], full=False) == ["reference"]
    monkeypatch.setattr(demo, "available", lambda: ["reference"])
    assert demo.select_devices(None, full=False) == ["reference"]


def test_expected_time_is_the_sum_over_devices() -> None:
    console = Console(file=io.StringIO(), width=200)
    seconds = demo.DemoSeconds(cpu=3, other=15, reference=25)
    seconds.announce(["cpu", "opencl", "opencl:1", "reference"], console)
    demo.DemoSeconds(cpu=150, other=15, reference=30).announce(["cpu", "reference"], console)
    first, second = shown(console).splitlines()
    assert first.startswith("Devices: cpu, opencl, opencl:1, reference; about 58 s, less on")
    assert "Devices: cpu, reference; about 3 minutes, " in second


@pytest.mark.parametrize(
    ("devices", "text"),
    [(["vulkan", "opencl"], "95 s"), (["cpu", "vulkan"], "18 s"), (["reference"], "25 s")],
)
def test_first_device_is_announced_with_the_work_it_does(devices: list[str], text: str) -> None:
    console = Console(file=io.StringIO(), width=200)
    seconds = demo.DemoSeconds(cpu=3, other=15, reference=25, first=80)
    seconds.announce(devices, console)
    assert f"{devices[-1]}; about {text}, " in shown(console)


PARTS = [*(module for module, _ in demo.DEMO_PARTS.values()), "dovetail.commands.demo"]


@pytest.mark.parametrize("name", PARTS)
def test_each_demo_announces_its_time_before_it_works(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Announced(Exception):
        pass

    def announce(*_: object) -> None:
        raise Announced

    monkeypatch.setattr(demo.DemoSeconds, "announce", announce)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: True)
    with pytest.raises(Announced):
        importlib.import_module(name).main([])


def outcome(device: str, count: int = 10, shift: float = 0.0) -> demo.DigitsOutcome:
    return demo.DigitsOutcome(device, count, components=np.ones(3, "f4") + np.float32(shift))


def test_difference_in_the_last_bit_is_a_disagreement() -> None:
    ulp = float(np.spacing(np.float32(1)))
    assert demo.disagreements([outcome("a"), outcome("b")]) == []
    assert demo.disagreements([outcome("a"), outcome("b", shift=ulp)]) == [
        "b and a differ on 10 digits"
    ]
    assert demo.disagreements([outcome("a"), outcome("b", count=9, shift=ulp)]) == []


# --- with scikit-learn


@pytest.fixture
def console() -> Console:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    return Console(file=io.StringIO(), width=120)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_demo_on_the_interpreter_writes_a_picture(
    console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "REFERENCE_DIGITS_MAX", 120)
    picture = tmp_path / "digits.png"
    assert demo.run_demo(["reference"], picture, TINY, console) == 0
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    for part in ("standardise", "components", "k-means", "purity", "first 120 digits", "digest"):
        assert part in shown(console), part


def test_demo_fails_if_devices_differ(
    console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = demo.sort_digits

    def lying(device: str, *args: object) -> demo.DigitsOutcome:
        out = right("reference", *args)  # type: ignore[arg-type]
        wrong = out.centroids + np.float32(device == "liar")
        return dataclasses.replace(out, device=device, centroids=wrong)

    monkeypatch.setattr(demo, "sort_digits", lying)
    monkeypatch.setattr(demo, "REFERENCE_DIGITS_MAX", 60)
    assert demo.run_demo(["liar", "reference"], tmp_path / "x.png", TINY, console) == 1
    assert "reference and liar differ on 60 digits" in shown(console)


def test_purity_of_the_digits_is_as_expected(console: Console) -> None:
    pixels, labels = demo.load_digits()
    assert pixels.shape == (1797, 64) and pixels.dtype == np.float32 and pixels.max() == 1
    out = demo.sort_digits("reference", pixels[:300], labels[:300], SMALL, no_op)
    assert 0.7 < out.purity < 0.95 and 0.8 < out.explained_variance < 0.95
    assert [s.name for s in out.stages] == ["standardise", "components", "k-means", "purity"]
    assert all(s.seconds > 0 and s.launches > 0 for s in out.stages)


@pytest.mark.parametrize("part", ["text", "train"])
def test_parts_are_commands_of_their_own(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        demo.main([part, "--help"])
    assert f"dovetail demo {part}" in capsys.readouterr().out


def test_missing_packages_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert demo.main([]) == 2
    assert (
        'sklearn and matplotlib must be installed: pip install "dovetail-tensor[demo]"'
        in capsys.readouterr().err
    )
