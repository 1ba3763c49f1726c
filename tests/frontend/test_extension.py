"""`dt.extension`: C, C++ and CUDA sources, compiled at run time."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.backend.host_compiler import find_compiler
from dovetail.extend import open_device

if not any(map(shutil.which, ("c++", "g++", "clang++"))):
    pytest.skip("there is no C++ compiler", allow_module_level=True)

MUTED = """
#include <math.h>
#include <stdint.h>
void soft(float *out, const float *x, int64_t n, double a) {
  for (int64_t i = 0; i < n; i++) out[i] = x[i] / (float)(1 + a * x[i] * x[i]);
}
double total(const double *x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i];
  return sum;
}
int types(_Bool a, int8_t b, float c, const char *d) { return a + b + (int)c + d[0]; }
"""
PLAIN_MODULE = """
#include <Python.h>
static PyObject *add(PyObject *self, PyObject *args) {
  long a, b;
  if (!PyArg_ParseTuple(args, "ll", &a, &b)) return NULL;
  return PyLong_FromLong(a + b);
}
static PyMethodDef methods[] = {{"add", add, METH_VARARGS, "Add."}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "plain_module", 0, -1, methods};
PyMODINIT_FUNC PyInit_plain_module(void) { return PyModule_Create(&module); }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    file = tmp_path_factory.mktemp("sources") / "muted.c"
    file.write_text(MUTED)
    return dt.extension.load("muted", file)


def pybind11_folders() -> list[str]:
    """Return the folders of pybind11's headers beside its package, or skip."""
    if find_spec("pybind11") is not None:
        return []
    torch = find_spec("torch")
    if torch is None or torch.origin is None:
        pytest.skip("neither pybind11 nor torch, which has its headers, is installed")
    return [str(Path(torch.origin).parent / "include")]


def test_functions_get_addresses_and_numbers(device: dt.Device, library: Any) -> None:
    x = dt.asarray([1.0, 2.0, 3.0]) * 1  # pending
    out = dt.zeros(3)
    if not open_device(device).backend.host:
        with pytest.raises(dt.DeviceError, match=r"soft: argument 0 must be on a device in host"):
            library.soft(out, x, 3, 1.0)
        return
    later = out + 1
    assert library.soft(out, x, 3, 1.0) is None
    assert out.tolist() == [0.5, float(np.float32(0.4)), float(np.float32(0.3))]
    assert later.tolist() == [1.0] * 3
    library.soft(out[1:], x[1:], 2, 0.0)
    assert out.tolist() == [0.5, 2.0, 3.0]


def test_result_has_the_type_that_is_set(library: Any) -> None:
    library.total.restype = ctypes.c_double
    assert library.total(np.asarray([1.0, 2.5]), 2) == 3.5
    assert library.total(dt.asarray([1.0, 2.5], dtype=dt.float64, device="reference"), 2) == 3.5
    library.types.restype = ctypes.c_int
    assert library.types(True, np.int8(-3), np.float32(4.5), b"A") == 1 - 3 + 4 + 65
    assert library.types(ctypes.c_bool(False), 1, ctypes.c_float(2.0), b"A") == 68
    assert repr(library) == "<dt.extension library muted>"


def test_wrong_arguments_are_named(library: Any) -> None:
    x = dt.ones((3, 3), device="reference")
    out = np.zeros(9, np.float32)
    for argument, error, said in [
        (x.T, dt.LayoutError, r"soft: argument 1 must be contiguous, got strides \(1, 3\)"),
        (np.ones((3, 3)).T, dt.LayoutError, "argument 1 must be contiguous"),
        (dt.ones(3).requires_grad_(), dt.GradientError, "argument 1 requires a gradient"),
        ([1.0], dt.ArgumentTypeError, "an argument must be a tensor, .*, list"),
        (1 << 63, dt.ArgumentError, "argument 1 must fit int64"),
    ]:
        with pytest.raises(error, match=said):
            library.soft(out, argument, 9, 1.0)
    with pytest.raises(AttributeError, match="library muted has no function 'hard'"):
        library.hard  # noqa: B018


def test_captured_function_refuses_a_compiled_one(library: Any) -> None:
    @dt.jit(fullgraph=True)
    def f(x: dt.Tensor) -> dt.Tensor:
        out = dt.zeros_like(x)
        library.soft(out, x, 3, 1.0)
        return out

    with pytest.raises(dt.CaptureError, match="data_ptr"):
        f(dt.ones(3, device="reference"))


def test_custom_op_of_a_compiled_function_has_a_gradient(library: Any) -> None:
    @dt.custom_op(
        "test.soft",
        result=lambda x: (x.shape, x.dtype),
        writes=True,
        gradient=lambda g, x: g * (1 - x * x) / dt.square(1 + x * x),
    )
    def soft(out: dt.Tensor, x: dt.Tensor) -> None:
        library.soft(out, x, x.size, 1.0)

    x = dt.asarray([0.5, -2.0, 3.0], device="reference").requires_grad_()
    soft(x).sum().backward()
    eps = 1e-2
    v = x.detach()
    slope = (soft(v + eps) - soft(v - eps)) / (2 * eps)
    assert np.allclose(x.grad.numpy(), slope.numpy(), atol=1e-3)
    assert np.allclose(soft(v).numpy(), (v / (1 + v * v)).numpy())


def test_module_of_pythons_c_interface_is_imported(tmp_path: Path) -> None:
    file = tmp_path / "source.c"
    file.write_text(PLAIN_MODULE)
    module = dt.extension.load("plain_module", [file])
    assert module.__name__ == "plain_module" and module.add(2, 3) == 5
    file.write_text(PLAIN_MODULE.replace("a + b", "a * b"))
    assert dt.extension.load("plain_module", [file]).add(2, 3) == 6
    assert module.add(2, 3) == 5


def test_class_of_pybind11_holds_state() -> None:
    source = """
    #include <cstdint>
    #include <pybind11/pybind11.h>
    struct Mean {
      double sum = 0; std::int64_t count = 0;
      void add(std::uintptr_t x, std::int64_t n) {
        for (std::int64_t i = 0; i < n; i++) sum += reinterpret_cast<const float *>(x)[i];
        count += n;
      }
    };
    PYBIND11_MODULE(mean_module, m) {
      pybind11::class_<Mean>(m, "Mean").def(pybind11::init<>()).def("add", &Mean::add)
        .def_property_readonly("value", [](const Mean &m) { return m.sum / m.count; });
    }
    """
    folders = pybind11_folders()
    module = dt.extension.load_inline("mean_module", source, extra_include_paths=folders)
    mean = module.Mean()
    for k in range(3):
        x = dt.arange(4, dtype=dt.float32, device="reference") + k
        mean.add(x.data_ptr(), x.size)
    assert mean.value == 2.5


def test_functions_become_a_module_of_pybind11(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "double twice(double x) { return 2 * x; }"
    module = dt.extension.load_inline(
        "twice_module", text, functions={"twice": "Double."}, extra_include_paths=pybind11_folders()
    )
    assert module.twice(1.5) == 3.0 and "Double." in module.twice.__doc__
    if find_spec("pybind11") is None:
        with pytest.raises(ModuleNotFoundError, match="functions= needs pybind11"):
            dt.extension.load_inline("twice_module", text, functions="twice")


def test_unchanged_sources_are_not_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header, file = tmp_path / "value.h", tmp_path / "put.cpp"
    header.write_text("#define VALUE 1\n")
    file.write_text('#include "value.h"\nextern "C" void put(double *x) { *x = VALUE; }\n')
    x = np.zeros(1)

    def put(**options: Any) -> float:
        dt.extension.load("put", file, **options).put(x)
        return float(x[0])

    assert put() == 1
    with monkeypatch.context() as without_compiler:
        without_compiler.setattr(subprocess, "run", None)
        assert put() == 1
        dt.extension._libraries.clear()  # as in another process
        assert put() == 1
    header.write_text("#define VALUE 2\n")
    assert put() == 2
    assert put(extra_cflags=["-UVALUE", "-DOTHER"], verbose=True) == 2


def test_several_languages_are_linked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.c").write_text("int one(void) { return 1; }")
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "one.h").write_text('extern "C" int one(void);')
    (tmp_path / "two.cc").write_text('#include <one.h>\nextern "C" int two() { return 2 * one(); }')
    library = dt.extension.load(
        "pair",
        [tmp_path / "one.c", str(tmp_path / "two.cc")],
        extra_include_paths=[tmp_path / "headers"],
        extra_ldflags=["-lm"],
        build_directory=tmp_path / "build",
        verbose=True,
    )
    library.two.restype = ctypes.c_int
    assert library.two() == 2
    assert [p.name for p in (tmp_path / "build").iterdir()] == ["pair.so"]
    shown = capsys.readouterr().err
    assert "-std=gnu11" in shown and "-std=c++17" in shown and "-lm" in shown


def test_errors_of_the_compiler_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "bad.cpp"
    file.write_text('extern "C" void bad(double *x) {\n  *x = unknown;\n}\n')
    with pytest.raises(dt.CompileError) as error:
        dt.extension.load("bad", file)
    assert f"{file}:2:8: error" in str(error.value) and "*x = unknown;" in str(error.value)
    file.write_bytes(b'extern "C" void bad() { unknown = "\xe9"; }\n')
    with pytest.raises(dt.CompileError, match="unknown"):  # the compiler quotes the line
        dt.extension.load("bad", file)
    text = 'extern "C" double gone(); extern "C" void f(double *x) { *x = gone(); }'
    with pytest.raises(dt.CompileError, match=r"undefined_name cannot be loaded: .*gone"):
        dt.extension.load_inline("undefined_name", text)


def test_wrong_calls_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.c"
    with pytest.raises(dt.ArgumentError, match="does not exist"):
        dt.extension.load("a", file)
    file.write_text("")
    for arguments, said in [
        (("a b", file), "name must be an identifier, got 'a b'"),
        (("a", tmp_path / "a.f90"), r"a source must end in .c, .* got"),
        (("a", []), "sources must name a file"),
    ]:
        with pytest.raises(dt.ArgumentError, match=said):
            dt.extension.load(*arguments)
    with pytest.raises(dt.ArgumentTypeError, match="extra_cflags"):
        dt.extension.load("a", file, extra_cflags="-O1")
    with pytest.raises(dt.ArgumentTypeError, match="cpp_sources"):
        dt.extension.load_inline("a", [3])  # type: ignore[list-item]
    find_compiler.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    for name, text in (("a.cu", "CUDA compiler .nvcc."), ("a.cpp", "C.. compiler .c.., g")):
        (tmp_path / name).write_text("")
        with pytest.raises(dt.CompileError, match=f"no {text}"):
            dt.extension.load("a", tmp_path / name)
    find_compiler.cache_clear()


def test_cuda_source_is_compiled_by_nvcc() -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not installed")
    cuda = """
    __global__ void kernel(float *x) { x[threadIdx.x] = threadIdx.x; }
    extern "C" int launch_fill(float *x) { kernel<<<1, 3>>>(x); return (int)cudaGetLastError(); }
    """
    try:
        library = dt.extension.load_inline("fill_cuda", "", cuda)
    except dt.CompileError as error:
        pytest.skip(f"nvcc compiles nothing here: {str(error)[:200]}")
    assert library.launch_fill
