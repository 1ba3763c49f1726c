"""`dt.save` and `dt.load`: round trips, mapped files, and hostile files."""

from __future__ import annotations

import errno
import json
import os
import pickle
import random
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
import safetensors.numpy
import zarr
from dovetail.functions.io import files
from installed import INSTALLED

FORMS = [".safetensors", ".npz", ".zarr"]
each = pytest.mark.parametrize("form", FORMS)


@pytest.fixture
def file(form: str, tmp_path: Path) -> Path:
    return tmp_path / f"tensors{form}"


def samples(form: str) -> dict[str, dt.Tensor]:
    x = dt.reshape(dt.arange(24) - 7, (2, 3, 4))
    lacking = {".safetensors": (dt.complex128,)}.get(form, (dt.bfloat16,))
    real = [d for d in dt.dtypes.ALL if d.kind != "c" and d not in lacking]
    found = {f"of {d.name}": x.astype(d) for d in real}
    return found | {
        "turned": x.T if x.ndim == 2 else dt.permute_dims(x, (2, 0, 1)), "part": x[:, 1:, ::2],
        "number": dt.asarray(2.5), "empty": dt.zeros((0, 3)), "pending": x * 2 + 1,
        "special": dt.asarray([float("nan"), float("-inf"), -0.0]), "one/deep": dt.ones(1),
    }  # fmt: skip


def bits(x: dt.Tensor) -> bytes:
    same = x.astype(dt.float32) if x.dtype is dt.bfloat16 else x
    return np.ascontiguousarray(same.numpy()).tobytes()


@each
def test_saved_tensors_are_loaded_unchanged(device: dt.Device, form: str, file: Path) -> None:
    given = samples(form)
    dt.save(file, given)
    for found in (dt.load(file), dt.load(str(file), copy=True, device=device)):
        assert found.keys() == given.keys()
        for name, x in given.items():
            y = found[name]
            assert (y.device, y.dtype, y.shape) == (device, x.dtype, x.shape)
            assert bits(y) == bits(x), name
        found["part"] += 1
        assert found["part"].tolist() == (given["part"] + 1).tolist()
    assert bits(dt.load(file)["part"]) == bits(given["part"]), "a write went into the file"


@pytest.mark.skipif(not {"cpu", "opencl"} <= INSTALLED, reason="needs cpu and opencl")
@pytest.mark.parametrize("form", [".safetensors"])
def test_tensors_saved_on_another_device_are_loaded(form: str, file: Path) -> None:
    x = dt.arange(5, device="opencl")
    dt.save(file, {"x": x})
    assert dt.load(file, device="opencl")["x"].tolist() == [0, 1, 2, 3, 4]
    assert dt.load(file, device="cpu")["x"].device == "cpu"


@each
def test_other_libraries_read_and_write_the_same_files(
    device: dt.Device, form: str, file: Path
) -> None:
    a = {"x": np.arange(6.0).reshape(2, 3), "y": np.array([True, False])}
    theirs: dict[str, Any] = {}
    dt.save(file, {name: dt.asarray(v) for name, v in a.items()})
    if form == ".safetensors":
        theirs = safetensors.numpy.load_file(file)
        safetensors.numpy.save_file(a, file, metadata={"of": "others"})
    elif form == ".npz":
        theirs = dict(np.load(file))
        np.savez_compressed(file, **a)  # type: ignore[arg-type]  # NumPy's stub sees a flag there
    else:
        theirs = {name: v[...] for name, v in zarr.open_group(file).arrays()}
        zarr.save_group(file, zarr_format=2, **a)
    assert all(np.array_equal(theirs[name], v) for name, v in a.items())
    assert all(np.array_equal(dt.load(file)[name].numpy(), v) for name, v in a.items())


@pytest.mark.parametrize("form", [".npz", ".zarr"])
def test_foreign_byte_order_is_read(device: dt.Device, form: str, file: Path) -> None:
    a = np.arange(5, dtype=">i4")
    if form == ".npz":
        np.savez(file, x=a)
    else:
        zarr.open_group(file, mode="w").create_array("x", data=a)
    assert dt.load(file)["x"].tolist() == [0, 1, 2, 3, 4]


# --- selection, casts and shards


@each
def test_only_selects_by_name_and_pattern(form: str, file: Path) -> None:
    dt.save(file, {"a.w": dt.ones(2), "a.b": dt.zeros(1), "[c]": dt.ones(3)})
    for only, expected in (
        ("a.w", {"a.w"}),
        ("a.*", {"a.w", "a.b"}),
        (["[c]", "*.b"], {"[c]", "a.b"}),
    ):
        assert dt.load(file, only=only).keys() == expected
    with pytest.raises(dt.ArgumentError, match=r"only='x\.\*' matches none of the 3 tensors"):
        dt.load(file, only=["a.w", "x.*"])
    with pytest.raises(dt.ArgumentTypeError, match="load: only must be a name, a pattern"):
        dt.load(file, only=3)  # type: ignore[arg-type]  # that is the test


def test_safetensors_dtype_that_dovetail_lacks_blocks_no_other_tensor(tmp_path: Path) -> None:
    header = {
        "a.x": {"dtype": "F8_E8M0", "shape": [8], "data_offsets": [0, 8]},
        "a.y": {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]},
    }
    file = tmp_path / "x.safetensors"
    file.write_bytes(safetensors_bytes(header))
    for wanted in (None, "a.x", ["a.x", "a.*"]):
        with pytest.raises(dt.DTypeError, match=r"'a\.x' .* F8_E8M0.*only="):
            dt.load(file, only=wanted)
    for wanted in ("a.y", "a.*"):
        assert {name: y.tolist() for name, y in dt.load(file, only=wanted).items()} == {
            "a.y": [0.0, 0.0]
        }


@pytest.mark.parametrize("code", ["F8_E4M3", "F8_E5M2"])
def test_cast_reads_float8_exactly_without_a_plugin(tmp_path: Path, code: str) -> None:
    header = {
        "x": {"dtype": code, "shape": [2, 128], "data_offsets": [0, 256]},
        "y": {"dtype": "F32", "shape": [1], "data_offsets": [256, 260]},
    }
    file = tmp_path / "x.safetensors"
    file.write_bytes(safetensors_bytes(header, bytes(range(256)) + b"\0" * 4))
    x = dt.load(file, cast=dt.float32, device="reference")["x"].numpy()
    known = {"F8_E4M3": (2.0**-9, 448.0), "F8_E5M2": (2.0**-16, 57344.0)}[code]
    assert x[0, 1] == known[0] and np.nanmax(x[np.isfinite(x)]) == known[1] and x[0, 0] == 0
    assert np.signbit(x[1, 0]) and np.isnan(x[:, 127]).all()
    assert np.isinf(x).any() == (code == "F8_E5M2")
    if (ml_dtypes := pytest.importorskip("ml_dtypes")) is not None:
        theirs = {"F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2}[code]
        wanted = np.arange(256, dtype="u1").view(theirs).astype("f4").reshape(2, 128)
        assert np.array_equal(x, wanted, equal_nan=True)
    assert dt.load(file, cast=dt.float16, device="reference")["y"].dtype is dt.float16
    with pytest.raises(dt.SharingError, match="needs a copy"):
        dt.load(file, cast=dt.float32, copy=False)


@each
def test_files_at_urls_are_written_and_read(form: str, file: Path) -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    url = f"memory://{file.name}-folder/{file.name}"
    dt.save(url, {"old": dt.ones(1)})
    dt.save(url, {"w": dt.arange(3), "b": dt.ones(1)})
    assert dt.load(url).keys() == {"w", "b"}
    assert dt.load(url, only="w")["w"].tolist() == [0, 1, 2]
    with pytest.raises(dt.SharingError, match="URL"):
        dt.load(url, copy=False)
    with pytest.raises(FileNotFoundError):
        dt.load(f"memory://nowhere/{file.name}")


def test_shards_at_urls_are_read(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    for i in (1, 2):
        dt.save(f"memory://shards/m-{i}.safetensors", {f"w{i}": dt.ones(i)}, metadata={"i": str(i)})
    index = "memory://shards/m.safetensors.index.json"
    with fsspec.open(index, "w") as opened:
        json.dump({"weight_map": {f"w{i}": f"m-{i}.safetensors" for i in (1, 2, 3)}}, opened)
    assert {n: x.shape for n, x in dt.load(index, only=["w1", "w2"]).items()} == {
        "w1": (1,), "w2": (2,)
    }  # fmt: skip
    with pytest.raises(FileNotFoundError):
        dt.load(index)
    assert dt.load_metadata("memory://shards/m-2.safetensors") == {"i": "2"}


def test_metadata_of_safetensors_are_written_and_read(tmp_path: Path) -> None:
    file = tmp_path / "x.safetensors"
    dt.save(file, {"w": dt.ones(2)}, metadata={"format": "pt", "epoch": "3"})
    assert dt.load_metadata(file) == {"format": "pt", "epoch": "3"}
    assert dt.load(file)["w"].tolist() == [1, 1]
    with safetensors.safe_open(file, "np") as opened:
        assert opened.metadata() == {"format": "pt", "epoch": "3"}
    dt.save(file, {"w": dt.ones(2)})
    assert dt.load_metadata(file) == {}
    with pytest.raises(dt.ArgumentTypeError, match="metadata must be a dict from strings"):
        dt.save(file, {}, metadata={"epoch": 3})  # type: ignore[dict-item]
    with pytest.raises(dt.ArgumentError, match="metadata needs"):
        dt.save(tmp_path / "x.npz", {}, metadata={})
    with pytest.raises(dt.ArgumentError, match=r"expected a \*\.safetensors"):
        dt.load_metadata(tmp_path / "x.npz")


def test_npz_dtype_that_dovetail_lacks_blocks_no_other_tensor(tmp_path: Path) -> None:
    file = tmp_path / "x.npz"
    np.savez(file, x=np.array(["text"]), z=np.ones(1, np.longdouble), y=np.arange(3))
    with pytest.raises(dt.ArgumentError, match="its 'x' is of dtype <U4; pass only="):
        dt.load(file)
    for wanted in ("y", "*"):
        assert dt.load(file, only=wanted)["y"].tolist() == [0, 1, 2]
        assert len(dt.load(file, only=wanted)) == 1


@each
def test_cast_changes_floating_tensors_only(form: str, file: Path) -> None:
    dt.save(
        file, {"w": dt.asarray([1.5, 1e-9]), "h": dt.ones(1, dtype=dt.float16), "i": dt.arange(2)}
    )
    found = dt.load(file, cast=dt.float64)
    assert {n: x.dtype for n, x in found.items()} == {
        "w": dt.float64,
        "h": dt.float64,
        "i": dt.int64,
    }
    assert found["w"].tolist() == np.float32([1.5, 1e-9]).tolist()
    with pytest.raises(dt.DTypeError, match="load: cast must be a floating dtype, got int32"):
        dt.load(file, cast=dt.int32)
    if form == ".safetensors":
        with pytest.raises(dt.SharingError, match="'h' as float64 needs a copy"):
            dt.load(file, cast="float64", copy=False, device="cpu")


def test_index_joins_its_files(tmp_path: Path) -> None:
    files_of = {
        "1.safetensors": {"a.w": dt.ones(2)},
        "2.safetensors": {"b.w": dt.arange(3), "c": dt.zeros(1)},
    }
    weight_map = {name: file for file, held in files_of.items() for name in held}
    for file, held in files_of.items():
        dt.save(tmp_path / file, held)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 36}, "weight_map": weight_map}))
    found = dt.load(index)
    assert {n: x.tolist() for n, x in found.items()} == {"a.w": [1, 1], "b.w": [0, 1, 2], "c": [0]}
    os.unlink(tmp_path / "1.safetensors")
    assert dt.load(index, only="b.*")["b.w"].tolist() == [0, 1, 2]  # reads no other file
    with pytest.raises(FileNotFoundError, match=r"1\.safetensors"):
        dt.load(index)
    index.write_text(json.dumps({"weight_map": {"d": "2.safetensors"}}))
    with pytest.raises(dt.ArgumentError, match="lacks 'd', which the index names"):
        dt.load(index)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"weight_map": 3}', '{"weight_map": {"x": 3}}',
     '{"weight_map": {"x": "../x.safetensors"}}', '{"weight_map": {"x": "/x.safetensors"}}',
     '{"weight_map": {"x": "x.npz"}}', "[" * 100_000],
    ids=range(9),
)  # fmt: skip
def test_damaged_index_raises_named_error(text: str, tmp_path: Path) -> None:
    index = tmp_path / "x.safetensors.index.json"
    index.write_text(text)
    with pytest.raises(dt.ArgumentError, match=r"load: .* is damaged or not a file of tensors"):
        dt.load(index)


@each
def test_nested_dicts_are_saved_under_names_with_dots(form: str, file: Path) -> None:
    dt.save(file, {"a": {"w": dt.ones(2), "deep": {"b": dt.zeros(1)}}, "c": dt.arange(2)})
    assert {n: x.tolist() for n, x in dt.load(file).items()} == {
        "a.w": [1, 1],
        "a.deep.b": [0],
        "c": [0, 1],
    }
    with pytest.raises(dt.ArgumentError, match=r"two tensors have the name 'a\.w'"):
        dt.save(file, {"a": {"w": dt.ones(2)}, "a.w": dt.ones(2)})
    with pytest.raises(dt.ArgumentError, match="names of tensors must be strings, got 3"):
        dt.save(file, {"a": {3: dt.ones(2)}})


# --- memory


def test_safetensors_file_is_mapped(device: dt.Device, tmp_path: Path) -> None:
    file = tmp_path / "x.safetensors"
    dt.save(file, {"x": dt.arange(1 << 16), "y": dt.ones(3, dtype=dt.float64)})
    before = dt.memory.stats().live_bytes
    found = dt.load(file, copy=False)
    assert dt.memory.stats().live_bytes == before
    x = found["x"]
    x[0] = 100
    assert x[:2].tolist() == [100, 1] and dt.load(file)["x"][0].item() == 0
    dt.save(file, {"x": x[:5]})  # while it is mapped
    assert x[-1].item() == (1 << 16) - 1 and dt.load(file)["x"].tolist() == [100, 1, 2, 3, 4]
    del found
    os.unlink(file)
    assert x.sum().item() == sum(range(1 << 16)) + 100


def test_load_without_copy_raises_if_a_copy_is_required(tmp_path: Path) -> None:
    flags, npz = tmp_path / "x.safetensors", tmp_path / "x.npz"
    dt.save(flags, {"x": dt.ones(3, dtype=dt.bool, device="cpu")})
    dt.save(npz, {"x": dt.ones(3, device="cpu")})
    for file in (flags, npz):
        with pytest.raises(dt.SharingError, match="copy=False"):
            dt.load(file, device="cpu", copy=False)


# --- bad files


@each
def test_failed_save_keeps_the_previous_file(form: str, file: Path) -> None:
    dt.save(file, {"x": dt.ones(2, device="reference")})
    lacking = dt.bfloat16 if form != ".safetensors" else None
    for wrong in ({"y": 3}, {3: dt.ones(1)}, [dt.ones(1)], {"y": dt.ones(1, dtype=lacking)}):
        if lacking is None and isinstance(wrong, dict) and "y" in wrong and wrong["y"] != 3:
            continue
        with pytest.raises(dt.DovetailError, match="save"):
            dt.save(file, wrong)  # type: ignore[arg-type]  # that is the test
    assert dt.load(file, device="reference")["x"].tolist() == [1, 1]
    assert [p.name for p in file.parent.iterdir()] == [file.name]


def test_invalid_names_and_paths_raise(tmp_path: Path) -> None:
    x = {"x": dt.ones(1, device="reference")}
    with pytest.raises(
        dt.ArgumentError, match=r"must end in \.safetensors or \.npz or \.zarr, got 'x\.pt'"
    ):
        dt.save(tmp_path / "x.pt", x)
    with pytest.raises(dt.ArgumentTypeError, match="load: file"):
        dt.load(3)  # type: ignore[arg-type]  # that is the test
    for form in FORMS:
        with pytest.raises(OSError, match="x"):
            dt.load(tmp_path / f"x{form}")
        with pytest.raises(OSError, match="nowhere"):
            dt.save(Path("/proc/nowhere") / f"x{form}", x)
    with pytest.raises(dt.ArgumentError, match="'file'"):
        dt.save(tmp_path / "x.npz", {"file": x["x"]})
    with pytest.raises(dt.ArgumentError, match="'__metadata__'"):
        dt.save(tmp_path / "x.safetensors", {"__metadata__": x["x"]})


def test_missing_library_is_named(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "dovetail-tensor\[files\]"'):
        dt.save(tmp_path / "x.safetensors", {"x": dt.ones(1, device="reference")})


def safetensors_bytes(header: dict[str, Any], data: bytes = b"\0" * 16) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize(
    "held",
    [
        b"", b"\0" * 7, struct.pack("<Q", 1 << 62), struct.pack("<Q", 2) + b"[]",
        safetensors_bytes({"x": {"dtype": "F32", "shape": [4], "data_offsets": [0, 1 << 40]}}),
        safetensors_bytes({"x": {"dtype": "F32", "shape": [5], "data_offsets": [0, 16]}}),
        safetensors_bytes({"x": {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]}}),
        safetensors_bytes({"x": {"dtype": "F32", "shape": [1 << 62, 4], "data_offsets": [0, 16]}}),
        safetensors_bytes({"x": {"dtype": "|O", "shape": [2], "data_offsets": [0, 16]}}),
        safetensors_bytes({"x": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}},
        b"\0" * 8),
        safetensors_bytes({"x": {"dtype": "F8_E4M3", "shape": [16], "data_offsets": [0, 16]}}),
    ],
)  # fmt: skip
def test_hostile_safetensors_raise_named_errors(held: bytes, tmp_path: Path) -> None:
    file = tmp_path / "x.safetensors"
    file.write_bytes(held)
    with pytest.raises((dt.ArgumentError, dt.DTypeError), match=r"load: .*x\.safetensors"):
        dt.load(file, device="reference")


@pytest.mark.parametrize("form", [".safetensors", ".npz"])
def test_damaged_files_are_read_or_raise_named_errors(
    form: str, file: Path, thinned: Callable[..., Any]
) -> None:
    dt.save(file, samples(form))
    data, rng = file.read_bytes(), random.Random(7)
    for _ in thinned(range(150), 3):
        low, high = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        bad = rng.choice([data[:low], data[:low] + data[high:], data[:high] + data[low:]])
        at = rng.randrange(len(data))
        bad = rng.choice([bad, data[:at] + rng.randbytes(3) + data[at + 3 :]])
        file.write_bytes(bad)
        try:
            found = dt.load(file, device="reference")
        except dt.DovetailError as error:
            assert str(error).startswith("load: ") and "\n" not in str(error)
        else:
            dt.evaluate(*[x + x for x in found.values()])


@pytest.mark.parametrize("form", [".safetensors", ".npz", ".zarr"])
@pytest.mark.parametrize(
    ("error", "expected", "text"),
    [
        (MemoryError("no 9 GiB"), dt.OutOfMemoryError, "load: .* declares more than .* no 9 GiB"),
        (OSError(errno.EIO, "disk"), OSError, "disk"),
        (OSError(errno.EINVAL, "seek"), dt.ArgumentError, "load: .* is damaged or .*seek"),
    ],
)
def test_only_errors_of_a_files_content_say_that_it_is_damaged(
    form: str, error: Exception, expected: Any, text: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    dt.save(tmp_path / f"x{form}", {"x": dt.ones(3, device="reference")})

    def fail(*args: Any, **named: Any) -> Any:
        raise error

    place = {".npz": (np, "load"), ".safetensors": (np, "memmap"), ".zarr": (files, "_read_zarr")}
    monkeypatch.setattr(*place[form], fail)
    with pytest.raises(expected, match=text):
        dt.load(tmp_path / f"x{form}", device="reference")


class EvilPickle:
    def __reduce__(self) -> Any:
        return pytest.fail, ("a pickle in a file was run",)


def test_no_pickle_is_loaded(tmp_path: Path) -> None:
    evil = np.array([EvilPickle()], object)
    np.savez(npz := tmp_path / "x.npz", x=evil)
    group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=2)
    group.create_array("x", shape=(1,), dtype="f8", compressors=None)
    meta = tmp_path / "x.zarr" / "x" / ".zarray"
    held = json.loads(meta.read_text()) | {"filters": [{"id": "pickle", "protocol": 5}]}
    held["dtype"] = "|O"
    meta.write_text(json.dumps(held))
    (tmp_path / "x.zarr" / "x" / "0").write_bytes(pickle.dumps(evil))
    for file in (npz, tmp_path / "x.zarr"):
        with pytest.raises(dt.ArgumentError, match="not a file of tensors"):
            dt.load(file, device="reference")
    held["dtype"] = "<f8"
    meta.write_text(json.dumps(held))
    with pytest.raises(dt.ArgumentError, match="not a file of tensors"):
        dt.load(tmp_path / "x.zarr", device="reference")


def test_only_codecs_of_numbers_are_used() -> None:
    nested = {"codecs": [{"name": "sharding_indexed", "configuration": {"codecs": [
        {"name": "bytes"}, {"name": "numcodecs.pickle"}]}}]}  # fmt: skip
    assert files._codec_names(nested) == {"sharding_indexed", "bytes", "pickle"}
    assert "pickle" not in files._CODECS


def test_text_and_record_arrays_raise(tmp_path: Path) -> None:
    for name, a in {"text": np.array(["a"]), "record": np.zeros(2, "i4,f4")}.items():
        np.savez(tmp_path / f"{name}.npz", x=a)
        with pytest.raises(dt.ArgumentError, match="its 'x' is of dtype"):
            dt.load(tmp_path / f"{name}.npz", device="reference")
