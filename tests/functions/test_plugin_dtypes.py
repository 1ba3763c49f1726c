"""Dtypes from plugins: those of dovetail-dtypes, and broken plugins."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dovetail as dt
import numpy as np
import pytest
from dovetail import dtypes
from dovetail.commands import devices as devices_command
from dovetail.ir.formats import uninstall
from dovetail.ir.parser import parse_kernel
from dovetail.plugins import dtype_registry
from dovetail.plugins.dtype_registry import DTypeRegistry
from dovetail.plugins.entry import PluginEntry
from dovetail.plugins.plugin_state import PluginState
from dovetail.tensor.other_layouts import LayoutTensor
from dovetail_dtypes.blocks import from_parts
from dovetail_dtypes.linear import QuantizedLinear, quantize_
from installed import INSTALLED

GROUP = "dovetail.dtypes.v1"
FORMATS = ("float8_e4m3", "float8_e5m2", "int4_32", "int8_32")
PACKAGES = {name: f"dovetail_dtypes.{name}" for name in FORMATS}
OTHERS = [d for d in ("cpu", "opencl") if d in INSTALLED]


def entry(name: str, where: str, distribution: str = "") -> PluginEntry:
    return PluginEntry(
        name, where, GROUP, distribution or where.partition(".")[0].replace("_", "-"), "1.0"
    )


@pytest.fixture(scope="module", autouse=True)
def installed() -> Iterator[DTypeRegistry]:
    """Install the two packages, and one that cannot be imported, in this process."""
    registry = dtype_registry.registry
    found = [entry(name, where) for name, where in PACKAGES.items()]
    found.append(entry("broken8", "dovetail_of_nobody"))
    before = registry._find, registry._records
    registry._find, registry._records = (lambda: found), None
    yield registry
    for name in [*registry._dtypes]:
        uninstall(registry._dtypes.pop(name))
    registry._blocks.clear()
    registry._find, registry._records = before


@pytest.fixture
def f8() -> dt.DType:
    found: dt.DType = dt.float8_e4m3  # type: ignore[attr-defined]  # a plugin's
    return found


def test_notebook_shows_blocks_without_values() -> None:
    x = dt.ones(32, device="reference").astype("int4_32")
    assert x.layout.name in x._repr_html_() and "(32,)" in x._repr_html_()


# --- names ----------------------------------------------------------------------------------------


def test_dtype_is_found_by_its_name(f8: dt.DType) -> None:
    assert repr(f8) == "dovetail.float8_e4m3" and f8 == "float8_e4m3" and f8 is dtypes.dtype(f8)
    assert dtypes.dtype("float8_e4m3") is f8 and pickle.loads(pickle.dumps(f8)) is f8
    x = dt.ones(3, device="reference")
    for y in (x.astype("float8_e4m3"), x.to("float8_e4m3"), x.to(f8), dt.astype(x, f8)):
        assert y.dtype is f8 and y.nbytes == 3
        assert (
            "<b>float8_e4m3</b>" in (shown := y._repr_html_()) and shown.count("<td>1.</td>") == 3
        )
    assert dt.isdtype(f8, "real floating") and not dt.isdtype(f8, "integral")
    assert dt.isdtype("float8_e4m3", f8) and dt.can_cast(f8, dt.float16)
    assert dt.finfo(f8) == (8, 0.125, 448.0, -448.0, 2.0**-6, f8)


@pytest.mark.parametrize(
    ("other", "met"),
    [("bool", "float8_e4m3"), ("uint64", "float8_e4m3"), ("float16", "float16"),
     ("bfloat16", "bfloat16"), ("float32", "float32"), ("complex64", "complex64")],
)  # fmt: skip
def test_promotion_follows_from_representable_values(f8: dt.DType, other: str, met: str) -> None:
    assert dt.result_type(f8, other).name == dt.result_type(other, f8).name == met


def test_numpy_gives_an_array_of_ml_dtypes(f8: dt.DType) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([1.5, -448.0, 0.0], ml_dtypes.float8_e4m3fn)
    found = dt.asarray(values.astype(np.float32)).astype(f8).numpy()
    assert found.dtype == values.dtype and found.tobytes() == values.tobytes()


def test_array_of_ml_dtypes_is_recognized_by_its_name(f8: dt.DType) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    codes = np.arange(256, dtype=np.uint8)
    theirs = codes.view(ml_dtypes.float8_e4m3fn)
    x = dt.asarray(theirs, device="reference")
    assert x.dtype is f8 and np.array_equal(x.view(dt.uint8).numpy(), codes)
    wide = theirs.astype(np.float32)
    assert np.array_equal(x.astype("f4").numpy(), wide, equal_nan=True)
    with pytest.raises(dt.DTypeError, match="no dovetail dtype corresponds"):
        dt.asarray(codes.view(ml_dtypes.float8_e4m3), device="reference")  # other bits, one name


@pytest.mark.parametrize("name", ["reference", *OTHERS])
def test_rounding_equals_ml_dtypes(f8: dt.DType, name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    if dt.device(name) not in dt.devices():
        pytest.skip(f"there is no {name} here")
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 1 << 32, 100_000, dtype=np.uint32).view(np.float32)
    near = (rng.normal(size=100_000) * 2.0 ** rng.integers(-12, 10, 100_000)).astype(np.float32)
    given = np.concatenate([bits, near, np.array([464, np.nextafter(np.float32(464), 500)], "f4")])
    with np.errstate(all="ignore"):
        wanted = given.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    found = dt.asarray(given, device=name).astype(f8).astype(dt.float32).numpy()
    assert np.array_equal(found, wanted, equal_nan=True)


# --- storage --------------------------------------------------------------------------------------


def test_plugin_dtype_is_saved_and_loaded(f8: dt.DType, tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    x = dt.asarray([1.5, -448.0, 0.0], device="reference").astype(f8)
    dt.save(tmp_path / "x.safetensors", {"x": x})
    y = dt.load(tmp_path / "x.safetensors", device="reference")["x"]
    assert y.dtype is f8 and y.tolist() == [1.5, -448.0, 0.0]
    with pytest.raises(dt.DTypeError, match=r"npz cannot store 'x' of dtype float8_e4m3"):
        dt.save(tmp_path / "x.npz", {"x": x})


def test_captured_function_with_a_plugin_dtype_is_saved(f8: dt.DType, tmp_path: Path) -> None:
    """Its file names the dtype in specs and kernels."""
    x = dt.asarray([1.0, 2.0], device="reference").astype(f8)
    f = dt.jit(lambda v: dt.exp(v) + 1)
    want = f(x).tolist()
    dt.save_function(f, tmp_path / "f.dovetail")
    assert dt.load_function(tmp_path / "f.dovetail")(x).tolist() == want


def test_kernel_text_contains_the_code_of_the_dtype(f8: dt.DType) -> None:
    text = "kernel k(x: r e4m3, y: w f32; n; ) grid(n) {\n  v0: e4m3 = load x[i0]\n"
    text += "  v1: f32 = cast v0\n  store y[i0] = v1\n}\n"
    assert parse_kernel(text).buffers[0].dtype is f8


# --- broken plugins -------------------------------------------------------------------------------


def test_broken_plugin_affects_no_other(f8: dt.DType) -> None:
    assert not hasattr(dt, "broken8")
    for call in (lambda: dt.zeros(2, dtype="broken8"), lambda: dt.ones(1).to("broken8")):
        with pytest.raises(dt.PluginError, match="No module named 'dovetail_of_nobody'") as raised:
            call()
        assert "dovetail-of-nobody" in str(raised.value) and "To fix it" in str(raised.value)
    dtypes.load_plugins()  # skips it
    with pytest.raises(dt.DTypeError, match="no dovetail dtype corresponds"):
        dt.zeros(2, dtype="float9")


def test_import_does_not_load_plugins(tmp_path: Path) -> None:
    """A plugin that ends the process is not even imported."""
    (tmp_path / "deadly.py").write_text("import os\nos._exit(3)\n")
    info = tmp_path / "deadly-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: deadly\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\ndeadly8 = deadly\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    program = "import dovetail as dt; (dt.ones(3, device='reference') + 1).tolist()"
    for code, status in ((program, 0), (f"{program}; dt.deadly8", 3)):
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path},
                              check=False)  # fmt: skip
        assert done.returncode == status


def test_two_distributions_of_one_dtype_conflict() -> None:
    found = [entry("float8_e4m3", "dovetail_dtypes.float8_e4m3", d) for d in ("one", "two")]
    with pytest.raises(dt.PluginError, match="one and two both provide it"):
        DTypeRegistry(find=lambda: found).find_by_name("float8_e4m3")


def test_devices_command_lists_plugin_dtypes(
    f8: dt.DType, capsys: pytest.CaptureFixture[str]
) -> None:
    devices_command.main([])
    text = capsys.readouterr().out
    assert "dtype float8_e4m3 of dovetail-dtypes 1.0: open" in text
    assert "dtype broken8 of dovetail-of-nobody 1.0: import failed" in text
    assert dtype_registry.registry.records()["int4_32"].state is PluginState.OPEN


# --- blocks ---------------------------------------------------------------------------------------


BITS = {"int4_32": 5, "int8_32": 9}  # of a number, with its part of the scale


def normal(*shape: int, seed: int = 1) -> dt.Tensor:
    return dt.asarray(np.random.default_rng(seed).normal(size=shape).astype("f4"))


@pytest.mark.parametrize("name", BITS)
def test_product_with_blocks_is_one_kernel(device: dt.Device, name: str) -> None:
    w, x = normal(64, 96).astype(name), normal(5, 96, seed=2)
    assert isinstance(w, LayoutTensor) and w.nbytes * 8 == 64 * 96 * BITS[name]
    dt.evaluate(w, x)
    assert len(dt.explain(x @ w.T).launches) == 1


@pytest.mark.parametrize("shape", [(3, 31), (40, 600)], ids=str)
@pytest.mark.parametrize("name", BITS)
def test_product_with_blocks_has_the_bits_of_the_dense_product(
    device: dt.Device, name: str, shape: tuple[int, int]
) -> None:
    """Rows are multiplied in one kernel up to a count, and beyond it after decoding."""
    w = normal(*shape).astype(name)
    x = normal(20, shape[1], seed=2)
    wanted = (x @ dt.asarray(w.to_dense().numpy()).T).numpy()
    for rows in (1, 2, 12, 13, 20):
        assert np.array_equal((x[:rows] @ w.T).numpy(), wanted[:rows]), rows
        assert np.array_equal((w @ x[:rows].T).numpy(), wanted[:rows].T), rows
    assert np.array_equal((w @ x[0]).numpy(), wanted[0])


@pytest.mark.parametrize("name", BITS)
def test_gradients_of_a_product_reach_operand_and_scales(name: str) -> None:
    q = normal(4, 70).astype(name)
    levels = q.to_dense().numpy() / np.repeat(q.scales.numpy()[0, :, :4].T, 32, axis=1)[:, :70]
    scales = q.scales.detach().requires_grad_()
    x = normal(3, 70, seed=2).requires_grad_()
    y = x @ from_parts(name, q.codes, scales, (4, 70)).T
    assert len(dt.explain(y).launches) == 1
    dt.sum(y**2).backward()
    outer = (2 * y.detach()).numpy().T @ x.detach().numpy() * levels
    wanted = np.stack([outer[:, k : k + 32].sum(axis=1) for k in range(0, 70, 32)])
    assert scales.grad is not None and x.grad is not None
    assert np.allclose(scales.grad.numpy()[0, :, :4], wanted, rtol=1e-4, atol=1e-2)
    assert not scales.grad.numpy()[0, :, 4:].any()
    assert np.allclose(x.grad.numpy(), 2 * y.detach().numpy() @ q.to_dense().numpy(), rtol=1e-4)


def test_blocks_of_four_bits_have_the_documented_codes() -> None:
    """A byte has elements i and i + 16; the scale takes the largest number to level 7."""
    x = dt.asarray([[14.0, -2.0] + [0.0] * 14 + [4.0] + [0.0] * 15])
    q = x.astype("int4_32")
    assert q.scales[0, 0, 0].item() == 2.0 and q.scales[0, 0, 1].item() == 0.0
    assert q.codes[0, 0, :3, 0].tolist() == [(8 + 2) << 4 | (8 + 7), 8 << 4 | (8 - 1), 8 << 4 | 8]
    assert q.to_dense().tolist() == x.tolist()


def test_quantize_replaces_linear_layers_of_a_network(tmp_path: Path) -> None:
    dt.random.manual_seed(3)
    inner = dt.nn.Linear(64, 64)
    net = dt.nn.Sequential(inner, dt.nn.ReLU(), inner, dt.nn.ModuleList([dt.nn.Linear(64, 7)])[0])
    x = dt.random.normal((5, 64))
    exact = net(x).numpy()
    assert quantize_(net, "int8_32", lambda layer, name: layer is inner) is net
    assert net[0] is net[2] and isinstance(net[0], QuantizedLinear) and type(net[3]) is dt.nn.Linear
    quantize_(net, "int8_32")
    assert isinstance(net[3], QuantizedLinear) and net[3].bias is not None
    y = net(x).numpy()
    assert 0 < np.abs(y - exact).max() < 0.02 * np.abs(exact).max()
    dt.save(tmp_path / "net.safetensors", net.state_dict())
    other = quantize_(dt.nn.Sequential(*(dt.nn.Linear(64, n) for n in (64, 7))))
    second = quantize_(dt.nn.Linear(64, 7), "int8_32")
    state = dt.load(tmp_path / "net.safetensors")
    second.load_state_dict({k: state[f"3.{k}"] for k in ("codes", "scales", "bias")})
    assert np.array_equal(second(x).numpy(), net[3](x).numpy())
    assert len(list(other.parameters())) == 2, "the biases alone are trained"
    with pytest.raises(dt.ArgumentError, match=r"format must be one of .*int4_32.*, got 'int3'"):
        quantize_(net, "int3")


def test_block_layout_is_no_element_dtype() -> None:
    for call in (
        lambda: dt.zeros(3, dtype="int4_32"),
        lambda: dt.result_type("int4_32", dt.float32),
        lambda: dt.ones(32, device="reference").to("int4_32"),
    ):
        with pytest.raises(dt.DTypeError, match=r"int4_32 is a layout .* x.astype\('int4_32'\)"):
            call()
    with pytest.raises(AttributeError, match="int4_32 is a layout of quantised blocks"):
        dt.int4_32  # type: ignore[attr-defined]  # noqa: B018
    codes = dt.zeros((1, 2, 16, 32), dtype=dt.uint8)
    with pytest.raises(dt.ShapeError, match=r"shape \(3, 70\) needs scales of \(1, 3, 32\)"):
        from_parts("int4_32", codes, dt.zeros((1, 2, 32)), (3, 70))
