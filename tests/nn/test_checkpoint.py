"""Checkpoints: round trips, a killed run that resumes to the same bits, and named damage."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import checkpoint_run
import dovetail as dt
import numpy as np
import pytest

pytest.importorskip("safetensors")
checkpoint = dt.checkpoint
CheckpointError = checkpoint.CheckpointError
RUN = Path(checkpoint_run.__file__)


def trained(steps: int = 2) -> tuple[Any, Any, Any]:
    w = [dt.ones((2, 3)).requires_grad_(), dt.zeros(3).requires_grad_()]
    optimizer = dt.optim.Adam(w, lr=0.1)
    schedule = dt.optim.lr_scheduler.MultiStepLR(optimizer, [1, 3])
    for _ in range(steps):
        optimizer.zero_grad()
        (w[0] * w[0] + w[1]).sum().backward()
        optimizer.step()
        schedule.step()
    return checkpoint_run.Weights(w), optimizer, schedule


def digest(model: Any, optimizer: Any) -> list[Any]:
    state = optimizer.state_dict()
    return [
        [x.tolist() for x in model.w],
        [x.tolist() for s in state["state"].values() for x in s.values()],
        [dict(g) for g in state["param_groups"]],
    ]


def test_checkpoint_restores_every_state(device: dt.Device, tmp_path: Path) -> None:
    model, optimizer, schedule = trained()
    random.seed(5)
    np.random.seed(6)
    dt.random.manual_seed(7)
    draw = dt.random.default_rng(8)
    draw.uniform(3)
    file = checkpoint.save(
        tmp_path / "run", model=model, optimizer=optimizer, scheduler=schedule, step=2, draw=draw
    )
    drawn = random.random(), np.random.rand(), dt.random.rand(3).tolist(), draw.uniform(2).tolist()
    other, again, schedule2 = trained(0)
    own = dt.random.default_rng(0)
    found = checkpoint.load(file, model=other, optimizer=again, scheduler=schedule2, draw=own)
    assert found == {"step": 2}
    assert digest(other, again) == digest(model, optimizer)
    assert schedule2.state_dict() == schedule.state_dict()
    assert drawn == (
        random.random(), np.random.rand(), dt.random.rand(3).tolist(), own.uniform(2).tolist()
    )  # fmt: skip


def test_values_of_all_kinds_round_trip(device: dt.Device, tmp_path: Path) -> None:
    kept: dict[str, Any] = {
        "none": None, "flag": True, "int": 1 << 80, "float": 0.1, "infinite": float("-inf"),
        "text": "ä\n", "list": [1, (2.5, "a"), {}], "dict": {1: {"a": [None]}, "b": 2},
        "complex": 1 + 2j, "number": np.float64(0.5),
    }  # fmt: skip
    tensors = {
        d.name: dt.ones((2, 0, 3) if d is dt.int8 else (2, 3), dtype=d)
        for d in (dt.bool, dt.int8, dt.uint16, dt.float16, dt.bfloat16, dt.float64, dt.complex64)
    }
    array = np.arange(6.0).reshape(2, 3).T
    file = checkpoint.save(
        tmp_path / "x", more=kept, tensors=tensors, array=array, scalar=dt.asarray(2.0),
        across=dt.arange(6).reshape(2, 3).T,
    )  # fmt: skip
    found = checkpoint.load(file)
    assert found["more"] == kept and isinstance(found["more"]["list"][1], tuple)
    for name, x in tensors.items():
        y = found["tensors"][name]
        assert y.dtype is x.dtype and y.shape == x.shape and y.device is device
        assert bool((y == x).all())
    np.testing.assert_array_equal(found["array"], array)
    assert found["scalar"].shape == () and float(found["scalar"]) == 2
    assert found["across"].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_checkpoint_is_a_readable_safetensors_file(tmp_path: Path) -> None:
    model, optimizer, _ = trained()
    file = checkpoint.save(tmp_path / "x", model=model, optimizer=optimizer)
    found = dt.load(file, device="reference")
    assert found["model.0"].shape == (2, 3)
    assert {"optimizer.state.0.exp_avg", "checkpoint.structure"} <= set(found)


def run(folder: Path, steps: int, pause: float = 0) -> subprocess.Popen[str]:
    command = [sys.executable, str(RUN), str(folder), str(steps), str(pause)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)


def test_killed_run_resumes_to_the_same_bits(tmp_path: Path) -> None:
    wanted, _ = run(tmp_path / "whole", 9).communicate(timeout=120)
    killed = run(tmp_path / "killed", 9, 0.2)
    assert killed.stdout is not None
    while killed.stdout.readline().strip() != "4":
        pass
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    resumed, _ = run(tmp_path / "killed", 9).communicate(timeout=120)
    assert resumed.split()[-1] == wanted.split()[-1]
    assert 1 <= len(resumed.split()) - 1 <= 5  # it did not start from the beginning
    names = sorted(p.name for p in (tmp_path / "killed").iterdir())
    assert names == [f"run-000{k}.safetensors" for k in (7, 8, 9)]  # and nothing half written


def test_keep_retains_the_latest_checkpoints(tmp_path: Path) -> None:
    for step in range(5):
        checkpoint.save(tmp_path / "a-{step:03}", step=step, keep=2)
    checkpoint.save(tmp_path / "best", step=1)
    assert sorted(p.stem for p in tmp_path.iterdir()) == ["a-003", "a-004", "best"]
    assert checkpoint.load(tmp_path / "a-004.safetensors")["step"] == 4
    assert checkpoint.load(tmp_path)["step"] == 1


def changed(file: Path, at: int) -> None:
    raw = bytearray(file.read_bytes())
    raw[at] ^= 1
    file.write_bytes(raw)


@pytest.mark.parametrize(
    "damage",
    [
        lambda f: f.write_bytes(f.read_bytes()[:-10]),
        lambda f: f.write_bytes(f.read_bytes()[:5]),
        lambda f: f.write_bytes(b""),
        lambda f: f.write_bytes(os.urandom(500)),
        lambda f: changed(f, -1),
        lambda f: changed(f, -200),
        lambda f: changed(f, 30),
        lambda f: f.write_bytes(f.read_bytes() + b"more"),
    ],
)
def test_damaged_files_are_named_and_the_last_good_one_is_loaded(
    damage: Any, tmp_path: Path
) -> None:
    model, optimizer, _ = trained()
    good = checkpoint.save(tmp_path / "1", model=model, optimizer=optimizer, step=1)
    bad = checkpoint.save(tmp_path / "2", model=model, optimizer=optimizer, step=2)
    damage(bad)
    before = digest(model, optimizer)
    with pytest.raises(CheckpointError, match=r"2\.safetensors"):
        checkpoint.load(bad, model=model, optimizer=optimizer)
    assert digest(model, optimizer) == before
    with pytest.warns(dt.DovetailWarning, match=r"2\.safetensors"):
        assert checkpoint.latest(tmp_path) == good
    with pytest.warns(dt.DovetailWarning):
        assert checkpoint.load(tmp_path)["step"] == 1


def test_every_changed_byte_is_detected(tmp_path: Path) -> None:
    file = checkpoint.save(tmp_path / "x", w=dt.arange(3, device="reference"), step=1, random=False)
    raw = file.read_bytes()
    missed = []
    for at in range(0, len(raw), 7):
        changed(file, at)
        try:
            checkpoint.load(file)
        except CheckpointError:
            pass
        else:
            missed.append((at, raw[at : at + 1]))
        file.write_bytes(raw)
    assert [(at, byte) for at, byte in missed if byte != b" "] == []  # padding of the header


def test_failed_save_keeps_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = checkpoint.save(tmp_path / "run", step=1)
    before = file.read_bytes()

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        checkpoint.save(tmp_path / "run", step=2)
    assert file.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.safetensors"]


def test_partial_file_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    left = tmp_path / f".run.{process.pid}.part.safetensors"
    own = tmp_path / f".run.{os.getppid()}.part.safetensors"
    for file in (left, own):
        file.write_bytes(b"half")
    assert checkpoint.latest(tmp_path) is None
    checkpoint.save(tmp_path / "run", step=1)
    assert not left.exists() and own.exists()


def test_failed_load_changes_nothing(device: dt.Device, tmp_path: Path) -> None:
    model, optimizer, schedule = trained()
    file = checkpoint.save(tmp_path / "x", model=model, optimizer=optimizer, scheduler=schedule)
    other, _, _ = trained(0)
    small = dt.optim.Adam([dt.ones(4).requires_grad_()])
    before = [x.tolist() for x in other.w]
    with pytest.raises(dt.ArgumentError, match="groups of"):
        checkpoint.load(file, model=other, optimizer=small)
    assert [x.tolist() for x in other.w] == before
    with pytest.raises(CheckpointError, match="has no ema; it has model, optimizer, scheduler"):
        checkpoint.load(file, model=other, ema=model)
    with pytest.raises(dt.ArgumentTypeError, match="must have load_state_dict"):
        checkpoint.load(file, model=3)


def test_unsupported_values_raise(tmp_path: Path) -> None:
    class Own:
        pass

    for wrong, error in (
        (Own(), dt.ArgumentTypeError), ({1, 2}, dt.ArgumentTypeError),
        ({(1, 2): 3}, dt.ArgumentTypeError), (lambda: 0, dt.ArgumentTypeError),
        (dt.ones((2, 2), device="reference").to_sparse(), dt.LayoutError),
    ):  # fmt: skip
        with pytest.raises(error, match=r"checkpoint\.save: .*thing"):
            checkpoint.save(tmp_path / "x", thing=wrong)
    with pytest.raises(dt.ArgumentError, match="pass step="):
        checkpoint.save(tmp_path / "{step}")


@pytest.mark.parametrize("keep", [0, -1, "3", 1.5])
def test_wrong_keep_raises_before_a_file_is_written(keep: Any, tmp_path: Path) -> None:
    with pytest.raises(dt.ArgumentError, match=r"keep must be .*, got"):
        checkpoint.save(tmp_path / "y", keep=keep)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    "name",
    ["b{step:q}", "{x}{step}", "{step", "{step}}", "{steps}", "{step.x}", "{step[0]}", "{}{step}"],
)
def test_wrong_braces_in_a_path_raise(name: str, tmp_path: Path) -> None:
    with pytest.raises(dt.ArgumentError, match=r"checkpoint\.save: the braces of a path must be"):
        checkpoint.save(tmp_path / name, step=1)
    assert [*tmp_path.iterdir()] == []


def test_path_of_a_checkpoint_may_have_other_braces(tmp_path: Path) -> None:
    assert checkpoint.save(tmp_path / "{x}", random=False).stem == "{x}"
    assert checkpoint.save(tmp_path / "{{x}}{step:02}", step=3, random=False).stem == "{x}03"
    with pytest.raises(dt.ArgumentTypeError, match=r"step must be an int, got '?a"):
        checkpoint.save(tmp_path / "{step:d}", step="a")  # type: ignore[arg-type]  # that is the test


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda folder: checkpoint.save(""), "name of a file, got ''"),
        (lambda folder: checkpoint.save("/"), "name of a file, got '/'"),
        (lambda folder: checkpoint.save(folder / "a\0b"), "null character"),
        (lambda folder: checkpoint.load(folder / "a\0b"), "null character"),
        (lambda folder: checkpoint.latest(folder, ""), "pattern must be .*, got ''"),
        (lambda folder: checkpoint.latest(folder, "/x"), "pattern must be .*, got '/x'"),
    ],
)
def test_paths_of_no_files_raise(call: Callable[[Path], object], said: str, tmp_path: Path) -> None:
    with pytest.raises(dt.ArgumentError, match=said):
        call(tmp_path)


def test_other_files_raise(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="No such file"):
        checkpoint.load(tmp_path / "x.safetensors")
    with pytest.raises(FileNotFoundError, match="no undamaged checkpoint"):
        checkpoint.load(tmp_path)
    dt.save(tmp_path / "w.safetensors", {"w": dt.ones(2, device="reference")})
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        checkpoint.load(tmp_path / "w.safetensors")


@pytest.mark.parametrize(
    ("structure", "said"),
    [
        ({"version": 9, "content": {}}, "version 1, got 9"),
        ({"version": 1, "content": {"x": {"tensor": "y"}}}, "is damaged"),
        ({"version": 1, "content": {"x": {"a": 1, "b": 2}}}, "is damaged"),
        ({"version": 1, "content": {"x": {"generator": ["a"]}}}, "is damaged"),
        ([], "is damaged"),
        ({"version": 1, "content": {"x": {"eval": "exit()"}}}, "is damaged"),
    ],
)
def test_foreign_structures_raise(structure: Any, said: str, tmp_path: Path) -> None:
    module = sys.modules["dovetail.checkpoint"]
    tensors = {module.STRUCTURE: module._from_bytes(json.dumps(structure).encode())}
    tensors[module.DIGEST] = module._from_bytes(module._digest(tensors))
    file = tmp_path / "x.safetensors"
    dt.save(file, tensors)
    with pytest.raises(CheckpointError, match=said):
        checkpoint.load(file)
