"""Hostile files of tensors, checkpoints, models and functions."""

from __future__ import annotations

import io
import json
import os
import random
import resource
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import checkpoint
from test_hostile_files import STRANGE, both, mutated, places, repacked, text_of

R = "reference"
SHAPES = (
    "(1152921504606846976,)", "(-1,)", "(99999999999999999999,)", "(0, 4611686018427387904)",
    "(1.5,)", "()", "[6]", "(True,)", '("a",)', "(" * 500, "(6,)" + "," * 9,
)  # fmt: skip
DTYPES = ("'<f8'", "'>f8'", "'|O'", "'<M8[D]'", "'|S0'", "'<f16'", "[('a','<f8')]", "None", "3")


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """Limit memory: no file may make the process allocate what it merely declares."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as f:
        used = int(f.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (3 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def answered(load: Callable[[], object]) -> bool:
    """Return True if a loader accepted a file. Only errors of dovetail are expected."""
    try:
        load()
    except dt.InternalError:
        raise
    except dt.DovetailError as error:
        assert str(error)
        return False
    return True


def changed(value: Any, rng: random.Random) -> bytes:
    """Return JSON of a value with a strange, missing or misplaced item in it."""
    made = json.loads(json.dumps(value))
    for _ in range(rng.randrange(1, 3)):
        known = list(places(made))
        if not known:
            break
        (held, key), (other, place) = rng.choice(known), rng.choice(known)
        kind = rng.randrange(3)
        if kind == 0:
            held[key] = rng.choice(STRANGE)
        elif kind == 1:
            del held[key]
        else:
            held[key] = json.loads(json.dumps(other[place], default=str))
    return text_of(made)


TENSORS = {
    "a": dt.asarray(np.arange(6.0).reshape(2, 3), device=R), "b": dt.ones(3, "int64", device=R),
    "c": dt.zeros((), dtype="bool", device=R),
}  # fmt: skip


def look(file: Path) -> None:
    for x in dt.load(file, device=R).values():
        x.tolist()


@both
def test_safetensors_with_hostile_headers_raise_errors_of_dovetail(
    seed: int, count: int, tmp_path: Path
) -> None:
    file, rng = tmp_path / "x.safetensors", random.Random(seed)
    dt.save(file, TENSORS)
    good = file.read_bytes()
    size = int.from_bytes(good[:8], "little")
    taken = []
    for n in range(count):
        text = changed(json.loads(good[8 : 8 + size]), rng)
        whole = len(text).to_bytes(8, "little") + text + good[8 + size :]
        file.write_bytes(mutated(good, rng) if n % 3 == 0 else whole)
        taken.append(answered(lambda: look(file)))
    assert any(taken) and not all(taken)


@both
@pytest.mark.filterwarnings("ignore")  # NumPy's warning about headers of old versions
def test_npz_with_hostile_headers_raise_errors_of_dovetail(
    seed: int, count: int, tmp_path: Path
) -> None:
    file, rng = tmp_path / "x.npz", random.Random(seed)
    dt.save(file, TENSORS)
    good = file.read_bytes()
    taken = []
    for n in range(count):
        file.write_bytes(repacked(good, rng) if n % 2 else _reheaded(good, rng))
        taken.append(answered(lambda: look(file)))
    assert any(taken) and not all(taken)


def _reheaded(data: bytes, rng: random.Random) -> bytes:
    """Return an archive in which one array declares another dtype, order or shape."""
    held = zipfile.ZipFile(io.BytesIO(data))
    members = {name: held.read(name) for name in held.namelist()}
    victim = rng.choice([*members])
    order = rng.choice(("False", "True", "3"))
    text = f"{{'descr': {rng.choice(DTYPES)}, 'fortran_order': {order}, 'shape': "
    header = f"{text}{rng.choice(SHAPES)}, }}\n".encode()
    members[victim] = (
        b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + members[victim][-48:]
    )
    with zipfile.ZipFile(file := io.BytesIO(), "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


@pytest.mark.parametrize("ending", ["npz", "safetensors", "zarr"])
def test_missing_or_invalid_file_raises_an_error_of_dovetail_or_the_system(
    ending: str, tmp_path: Path
) -> None:
    pytest.importorskip("zarr", reason="zarr is not installed: pip install zarr")
    file = tmp_path / f"x.{ending}"
    with pytest.raises(OSError):
        dt.load(file)  # it does not exist
    file.symlink_to(file)
    with pytest.raises(OSError):
        dt.load(file)  # a symbolic link to itself
    file.unlink()
    if ending != "zarr":
        file.write_bytes(b"")
        with pytest.raises(dt.ArgumentError, match="damaged"):
            dt.load(file)
        file.unlink()
    file.mkdir()
    with pytest.raises((OSError, dt.ArgumentError)):
        dt.load(file)
    with pytest.raises(dt.ArgumentError, match="load: file must not contain a null character"):
        dt.load(f"\0.{ending}")


def _network() -> dict[str, Any]:
    net = dt.nn.Sequential(dt.nn.Linear(2, 3, device=R), dt.nn.ReLU())
    optimizer = dt.optim.Adam(net.parameters())
    for p in net.parameters():
        p.grad = dt.ones_like(p)
    optimizer.step()
    scheduler = dt.optim.lr_scheduler.StepLR(optimizer, 2)
    return {
        "model": net, "optimizer": optimizer, "scheduler": scheduler, "g": dt.random.default_rng(1)
    }  # fmt: skip


@both
def test_checkpoints_with_hostile_structures_raise_errors_of_dovetail(
    seed: int, count: int, tmp_path: Path
) -> None:
    """Their digests are valid, so their content is used."""
    file, rng = tmp_path / "x.safetensors", random.Random(seed)
    checkpoint.save(file, **_network(), step=3, seen=[1, (2, 3j), {"x": dt.ones(2, device=R)}])
    good = dt.load(file, device=R, copy=True)
    good.pop(checkpoint.DIGEST)
    structure = json.loads(checkpoint._raw(good[checkpoint.STRUCTURE]).tobytes())
    states = random.getstate(), np.random.get_state(), dt.random.get_state()
    taken = []
    try:
        for _ in range(count):
            bad = {**good, checkpoint.STRUCTURE: checkpoint._from_bytes(changed(structure, rng))}
            if rng.random() < 0.3:
                name = rng.choice([n for n in good if n != checkpoint.STRUCTURE])
                bad[name] = dt.ones(rng.choice(((), (0,), (1,) * 20)), device=R)
            bad[checkpoint.DIGEST] = checkpoint._from_bytes(checkpoint._digest(bad))
            dt.save(file, bad)
            taken.append(answered(lambda: _resume(file)))
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        dt.random.set_state(states[2])
    assert any(taken) and not all(taken)


def _resume(file: Path) -> None:
    """Load a checkpoint, and make a step with the result."""
    run = _network()
    checkpoint.load(file, **run, device=R)
    run["optimizer"].step()
    run["scheduler"].step()


def test_checkpoint_with_damaged_random_states_changes_nothing(tmp_path: Path) -> None:
    file, run = tmp_path / "x.safetensors", _network()
    checkpoint.save(file, model=run["model"])
    held = dt.load(file, device=R, copy=True)
    held.pop(checkpoint.DIGEST)
    text = checkpoint._raw(held[checkpoint.STRUCTURE]).tobytes()
    structure = json.loads(text)
    structure["content"]["random"] = {"dict": [["dovetail", {"list": [1, 2]}], ["python", 3]]}
    held[checkpoint.STRUCTURE] = checkpoint._from_bytes(json.dumps(structure).encode())
    held[checkpoint.DIGEST] = checkpoint._from_bytes(checkpoint._digest(held))
    dt.save(file, held)
    other, before = _network()["model"], dt.random.get_state()
    weight = other[0].weight.tolist()
    with pytest.raises(checkpoint.CheckpointError, match=r"generators are damaged.*random=False"):
        checkpoint.load(file, model=other)
    assert other[0].weight.tolist() == weight and dt.random.get_state() == before
    checkpoint.load(file, model=other, random=False)
    assert other[0].weight.tolist() == run["model"][0].weight.tolist()


@both
def test_damaged_onnx_models_raise_errors_of_dovetail(seed: int, count: int) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed: pip install onnx")
    x, rng, taken = dt.ones((2, 3), device=R), random.Random(seed), []
    w = dt.ones((3, 4), device=R)
    good = dt.onnx.export(lambda x: dt.softmax(x @ w, axis=-1).sum(axis=0), x).SerializeToString()
    for _ in range(count):
        bad = mutated(good, rng)
        taken.append(answered(lambda bad=bad: _run_model(bad, x)))  # type: ignore[misc]
    assert any(taken) and not all(taken)


def _run_model(data: bytes, x: dt.Tensor) -> None:
    made = dt.onnx.load(data, device=R, limit=1 << 24)(x)
    dt.evaluate(*(made if isinstance(made, (tuple, list)) else [made]))


@both
def test_damaged_functions_raise_errors_of_dovetail(seed: int, count: int, tmp_path: Path) -> None:
    file, rng, taken = tmp_path / "f", random.Random(seed), []
    x, y = dt.ones((2, 3), device=R), dt.zeros(3, device=R)
    f = dt.jit(lambda x, y: (dt.where(x > 0, x * 2.0, y).sum(axis=0), x.reshape(-1)[1:]))
    f(x, y)
    dt.save_function(f, file)
    good = file.read_bytes()
    for n in range(count):
        file.write_bytes(good if n == 0 else mutated(good, rng))
        taken.append(answered(lambda: dt.evaluate(*dt.load_function(file, device=R)(x, y))))
    assert any(taken) and not all(taken)


def test_sparse_file_whose_row_ends_overflow_raises_an_error_of_dovetail(tmp_path: Path) -> None:
    """Differences of these ends wrap around to positive counts."""
    ends = np.array([0, (1 << 63) - 1, -2, 3])
    data: dict[str, Any] = {"format": "csr", "shape": [3, 3], "data": [1.0, 2.0, 3.0]}
    np.savez(tmp_path / "x.npz", **data, indices=[0, 1, 2], indptr=ends)
    with pytest.raises(dt.ArgumentError, match="'indptr' does not ascend"):
        dt.sparse.load(tmp_path / "x.npz", device=R)


def test_external_data_outside_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    """An ONNX model may name only files next to it."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install onnx")
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(24))
    folder = tmp_path / "models"
    folder.mkdir()
    w = dt.ones(6, device=R)
    model = dt.onnx.export(lambda x: x + w, dt.ones(6, device=R))
    for name in ("../secret", str(secret), "link"):
        (weight,) = model.graph.initializer
        weight.ClearField("raw_data")
        weight.ClearField("float_data")
        weight.data_location = onnx.TensorProto.EXTERNAL
        del weight.external_data[:]
        weight.external_data.add(key="location", value=name)
        if name == "link":
            os.symlink(secret, folder / "link")
        (folder / "m.onnx").write_bytes(model.SerializeToString())
        with pytest.raises(dt.DovetailError):
            dt.onnx.load(folder / "m.onnx", device=R)
