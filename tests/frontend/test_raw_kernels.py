"""`dt.raw_kernel`: text in a device's own language."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import dovetail as dt
import numpy as np
import pytest

C = """void scale(float *out, const float *x, int64_t n, float a) {
  for (int64_t i = 0; i < n; i++)
    out[i] = a * x[i];
}"""
OPENCL = """__kernel void scale(__global float *out, __global const float *x, long n, float a) {
  long i = get_global_id(0);
  if (i < n) out[i] = a * x[i];
}"""
CUDA = """extern "C" __global__ void scale(float *out, const float *x, long long n, float a) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) out[i] = a * x[i];
}"""
TEXTS = {"cpu": C, "opencl": OPENCL, "cuda": CUDA}
SIGNATURE = "scale(out: w float32, x: r float32, n: int64, a: float32)"


@pytest.fixture(params=TEXTS)
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the type of a device that supports raw kernels; it is the default one meanwhile."""
    kind: str = request.param
    if kind not in {device.type for device in dt.devices()}:
        pytest.skip(f"there is no device {kind} here")
    if kind == "cpu" and not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("there is no C compiler")
    before = dt.default_device()
    dt.set_default_device(kind)
    yield kind
    dt.set_default_device(before)


def make_kernel(kind: str, text: str = "", signature: str = SIGNATURE, **more: Any) -> Any:
    return dt.raw_kernel(text or TEXTS[kind], kind, signature, **more)


def test_raw_kernel_is_compiled_and_launched(kind: str) -> None:
    k = make_kernel(kind)
    assert repr(k) == f"<dt.raw_kernel scale of {kind}>"
    for n in (1, 1000):
        x, out = dt.arange(n, dtype=dt.float32) + 1, dt.zeros(n)  # pending
        later = out + 1
        k(out, x, n, 2.5)
        assert out.tolist() == (2.5 * (np.arange(n) + 1)).tolist()
        assert later.tolist() == [1.0] * n
    k(out[:0], x[:0], 0, 2.5)
    k(out, x, x.size, 1.5)
    assert out.tolist() == (1.5 * (np.arange(n) + 1)).tolist()


def test_raw_kernel_is_captured(kind: str) -> None:
    k = make_kernel(kind)

    @dt.jit
    def f(x: dt.Tensor, a: float) -> dt.Tensor:
        out = dt.zeros_like(x)
        k(out, x * 2, x.shape[0], a)
        return out + 1

    for a in (1.0, 2.0, 3.0):
        assert f(dt.ones(5), a).tolist() == [2 * a + 1] * 5
    assert f.captures == 1
    shown = dt.explain(f, source=True).text()
    assert "raw kernel" in shown and "scale" in shown
    with dt.profile() as p:
        f(dt.ones(5), 1.0)
        k(dt.zeros(3), dt.ones(3), 3, 1.0)
    assert sum(line.count for line in p.lines() if line.name == "launch scale") == 2


def test_wrong_arguments_are_named(kind: str) -> None:
    k, x, out = make_kernel(kind), dt.ones(4), dt.zeros(4)
    for args, error, said in [
        ((out, x, 4), dt.ArgumentTypeError, "expected .out, x, n, a. by position"),
        ((out, x, 4.0, 1.0), dt.ArgumentTypeError, "n must be int, got float"),
        ((out, x, 4, "1"), dt.ArgumentTypeError, "a must be float or int, got str"),
        ((out, [1.0], 4, 1.0), dt.ArgumentTypeError, "x must be a tensor"),
        (
            (out, dt.ones(4, dtype=dt.int32), 4, 1.0),
            dt.DTypeError,
            "x must be float32, as in the signature",
        ),
        ((out, dt.ones(8)[::2], 4, 1.0), dt.LayoutError, "pass x.contiguous"),
        ((dt.broadcast_to(out[:1], (4,)), x, 4, 1.0), dt.ReadOnlyError, "broadcast"),
    ]:
        with pytest.raises(error, match=said):
            k(*args)
    k(out, x, np.int64(4), np.float32(3))
    assert out.tolist() == [3.0] * 4
    make_kernel(kind, strided=True)(out, dt.ones(8)[::2], 4, 1.0)
    with pytest.raises(dt.GradientError, match="x requires a gradient"):
        k(out, dt.ones(4).requires_grad_(), 4, 1.0)


def test_overlapping_operand_is_copied(kind: str) -> None:
    x = dt.arange(64, dtype=dt.float32)
    make_kernel(kind)(x[32:], x[:32], 32, 2.0)
    assert x.tolist() == [*range(32), *range(0, 64, 2)]
    make_kernel(kind)(x, x, 64, 0.5)
    assert x.tolist()[:4] == [0, 0.5, 1, 1.5]


def test_compile_error_shows_the_line_of_the_text(kind: str) -> None:
    x, out = dt.ones(4), dt.zeros(4)
    with pytest.raises(dt.CompileError) as caught:
        make_kernel(kind, TEXTS[kind].replace("a * x[i]", "b * x[i]"))(out, x, 4, 1.0)
    said = str(caught.value)
    assert said.startswith("raw_kernel scale: ") and "rejected" in said
    assert "\n  line 3: " in said and "b * x[i];" in said.split("\n  line 3: ")[1]
    with pytest.raises(dt.CompileError, match=r"scale|INVALID_KERNEL_NAME"):
        make_kernel(kind, TEXTS[kind].replace("scale", "other"))(out, x, 4, 1.0)


def test_arguments_on_another_device_raise(kind: str) -> None:
    k = make_kernel(kind)
    with pytest.raises(dt.DeviceError, match=f"the arguments must be on {kind}, got ref"):
        k(dt.zeros(3, device="reference"), dt.ones(3, device="reference"), 3, 1.0)


def test_device_without_a_language_raises() -> None:
    k = dt.raw_kernel(C, "reference", SIGNATURE)
    with pytest.raises(
        dt.CompileError,
        match=r"reference compiles no raw kernel source; write the kernel as dt.kernel",
    ):
        k(dt.zeros(3, device="reference"), dt.ones(3, device="reference"), 3, 1.0)


def test_invalid_signatures_are_named() -> None:
    for signature, said in [
        ("scale", "must be like"),
        ("scale(x)", "`x: r float32`.* got 'x'"),
        ("scale(x: r float31)", "`x: r float32`"),
        ("scale(x: q float32)", "`x: r float32`"),
        ("scale(x: r float32)", "must write a tensor"),
        ("scale(x: w float32, x: r float32)", "names of parameters must differ"),
        ("scale(x: w float32, z: complex64)", "a number cannot be complex64"),
        ("scale(x: w float32, z: float16)", "a number cannot be float16"),
    ]:
        with pytest.raises(dt.ArgumentError, match=said):
            dt.raw_kernel(C, "cpu", signature)
    for args in [(3, "cpu", SIGNATURE), (C, 3, SIGNATURE), (C, "cpu", 3)]:
        with pytest.raises(dt.ArgumentTypeError):
            dt.raw_kernel(*args)  # type: ignore[arg-type]
    with pytest.raises(dt.ArgumentTypeError, match="options"):
        dt.raw_kernel(C, "cpu", SIGNATURE, options="-O1")  # type: ignore[arg-type]


# --- C --------------------------------------------------------------------------------------------

EVERY = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
]


@pytest.fixture
def cpu() -> Any:
    if "cpu" not in {str(d) for d in dt.devices()}:
        pytest.skip("dovetail-cpu-llvm is not installed")
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("there is no C compiler")
    before = dt.default_device()
    yield dt.set_default_device("cpu")
    dt.set_default_device(before)


@pytest.mark.parametrize("dtype", EVERY)
def test_scalars_of_every_dtype(cpu: dt.Device, dtype: str) -> None:
    c = {"float32": "float", "float64": "double", "bool": "bool"}.get(dtype, f"{dtype}_t")
    text = f"void one({c} a, {c} *out, {c} b) {{ out[0] = a; out[1] = b; }}"
    k = dt.raw_kernel(text, "cpu", f"one(a: {dtype}, out: w {dtype}, b: {dtype})")
    out = dt.zeros(2, dtype=dtype)
    a, b = (True, False) if dtype == "bool" else (1, 100)
    k(a, out, b)
    assert out.tolist() == [a, b]


def test_text_that_contradicts_its_signature_raises(cpu: dt.Device) -> None:
    k = dt.raw_kernel(C, "cpu", SIGNATURE.replace("int64", "int32"))
    with pytest.raises(dt.CompileError, match="conflicting types") as caught:
        k(dt.zeros(3), dt.ones(3), 3, 1.0)
    want = "Expected: void scale(float *out, const float *x, int32_t n, float a)"
    assert want in str(caught.value)


def test_raw_kernel_is_cached_on_disk(cpu: dt.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess

    from dovetail.backend.host_compiler import find_compiler

    text = C.replace("scale", "kept")
    signature = SIGNATURE.replace("scale", "kept")
    dt.raw_kernel(text, "cpu", signature)(dt.zeros(3), dt.ones(3), 3, 1.0)

    def refused(*args: Any, **options: Any) -> Any:
        raise AssertionError("it was compiled again")

    monkeypatch.setattr(subprocess, "run", refused)
    out = dt.zeros(3)
    dt.raw_kernel(text, "cpu", signature)(out, dt.ones(3), 3, 4.0)
    assert out.tolist() == [4.0] * 3
    with pytest.raises(AssertionError):
        dt.raw_kernel(text, "cpu", signature, options=("-O1",))(out, dt.ones(3), 3, 4.0)
    assert find_compiler("C")[0]


def test_text_that_calls_an_undefined_function_raises(cpu: dt.Device) -> None:
    text = "double missing(double);\nvoid call(float *out) { out[0] = missing(1.0); }"
    for _ in range(2):  # the library is not cached
        kernel = dt.raw_kernel(text, "cpu", "call(out: w float32)")
        with pytest.raises(dt.CompileError, match=r"cannot be loaded: .*missing"):
            kernel(dt.zeros(1))


def test_missing_compiler_is_named(cpu: dt.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    from dovetail.backend.host_compiler import find_compiler

    find_compiler.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(dt.CompileError, match=r"no C compiler \(cc, gcc, clang\) is on the PATH"):
        dt.raw_kernel(C, "cpu", SIGNATURE)(dt.zeros(3), dt.ones(3), 3, 1.0)


def test_options_and_kernel_without_a_grid(cpu: dt.Device) -> None:
    text = "void put(float *out) { out[0] = WHAT; }"
    out = dt.zeros(1)
    dt.raw_kernel(text, "cpu", "put(out: w float32)", options=("-DWHAT=7",))(out)
    assert out.tolist() == [7.0]
    with pytest.raises(dt.ArgumentError, match="grid= and group= are not supported on cpu"):
        dt.raw_kernel(text, "cpu", "put(out: w float32)", options=("-DWHAT=7",))(out, grid=3)


# --- grids ----------------------------------------------------------------------------------------

PLACES = {
    "opencl": "__kernel void at(__global int *out, long w) { size_t x = get_global_id(0), y = "
    "get_global_id(1); if (x < w && y < 3) out[y * w + x] = 10 * y + x; }",
    "cuda": 'extern "C" __global__ void at(int *out, long long w) { long long x = blockIdx.x * '
    "(long long)blockDim.x + threadIdx.x, y = blockIdx.y * (long long)blockDim.y + threadIdx.y; "
    "if (x < w && y < 3) out[y * w + x] = 10 * y + x; }",
}


def test_grids_and_groups_cover_every_point(kind: str) -> None:
    if kind not in PLACES:
        pytest.skip(f"raw kernels of {kind} have no grid, so there is nothing to test")
    k = make_kernel(kind, PLACES[kind], "at(out: w int32, w: int64)")
    for group in (None, (2, 1), (4, 4)):
        out = dt.zeros((3, 5), dtype=dt.int32)
        k(out, 5, grid=(5, 3), group=group)
        assert out.tolist() == [[10 * y + x for x in range(5)] for y in range(3)]
    for grid, group in [((1, 2, 3, 4), None), ((-1,), None), ((2,), (1, 1)), ((), None)]:
        with pytest.raises(dt.ArgumentError, match="one to three natural numbers"):
            k(out, 5, grid=grid, group=group)
    for grid, group in [((5, 3), (2, 0)), (15, 0), (15, -1), (15, ())]:
        with pytest.raises(dt.ArgumentError, match=r"^at: .* those of group= positive, got"):
            k(out, 5, grid=grid, group=group)
    with pytest.raises(dt.ArgumentTypeError):
        k(out, 5, grid=2.5)


def test_opencl_view_at_an_unaligned_offset_raises(kind: str) -> None:
    if kind != "opencl":
        pytest.skip(f"raw kernels of {kind} read at any offset, so there is no error")
    with pytest.raises(dt.ArgumentError, match=r"must be a multiple of .* pass a copy"):
        make_kernel(kind)(dt.zeros(9)[1:], dt.ones(8), 8, 1.0)
