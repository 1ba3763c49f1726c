"""`dt.fast_math`: kernels that may contract and divide approximately, and nothing else."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.ir.builder import KernelBuilder
from dovetail.ir.language import load
from dovetail.ir.legalize import legalize
from dovetail.ir.parser import parse_kernel
from dovetail.ir.target import Capabilities
from installed import INSTALLED

needs_cpu = pytest.mark.skipif("cpu" not in INSTALLED, reason="no cpu here")
X, Y, Z = (np.random.default_rng(i).normal(size=1000).astype(np.float32) for i in range(3))
FUSED = (X.astype(np.float64) * Y + Z).astype(np.float32)  # but for a rare second rounding
ROUNDED_TWICE = X * Y + Z


def operands(device: str = "cpu") -> list[dt.Tensor]:
    return [dt.asarray(a, device=device) for a in (X, Y, Z)]


def multiply_add(x: dt.Tensor, y: dt.Tensor, z: dt.Tensor) -> dt.Tensor:
    return x * y + z


def is_fused(found: dt.Tensor) -> bool:
    """Return True for the bits of a fused multiply-add, False for those of two operations."""
    values = found.numpy()
    if values.tobytes() == ROUNDED_TWICE.tobytes():
        return False
    assert values.tobytes() == FUSED.tobytes()
    return True


def test_arrays_tell_fused_from_rounded_twice() -> None:
    assert (FUSED != ROUNDED_TWICE).sum() > 100


@pytest.mark.parametrize("name", ["cpu", "opencl"])
def test_fast_math_fuses_a_product_and_a_sum_within_its_block_only(name: str) -> None:
    if name not in INSTALLED:
        pytest.skip(f"no {name} here")
    given = operands(name)
    for _ in range(3):  # planned, found by its key, matched from its roots
        assert not is_fused(multiply_add(*given))
        with dt.fast_math():
            assert is_fused(multiply_add(*given))
            with dt.fast_math(False):
                assert not is_fused(multiply_add(*given))
        assert not is_fused(multiply_add(*given))


def test_reference_ignores_fast_math() -> None:
    with dt.fast_math():
        assert not is_fused(multiply_add(*operands("reference")))


@needs_cpu
def test_context_of_the_computation_counts_rather_than_that_of_the_recording() -> None:
    given = operands()
    with dt.fast_math():
        recorded = multiply_add(*given)
    assert not is_fused(recorded)
    recorded = multiply_add(*given)
    with dt.fast_math():
        dt.evaluate(recorded)
    assert is_fused(recorded)


def write(x: dt.Tensor, y: dt.Tensor, z: dt.Tensor) -> dt.Tensor:
    out = dt.zeros_like(x)
    out[:] = x * y + z
    return out


def update(x: dt.Tensor, y: dt.Tensor, z: dt.Tensor) -> dt.Tensor:
    out = z.copy()
    out += x * y
    return out


def several(x: dt.Tensor, y: dt.Tensor, z: dt.Tensor) -> dt.Tensor:
    pair = [x * y + z, x - y]
    dt.evaluate(*pair)
    return pair[0]


def differentiate(x: dt.Tensor, y: dt.Tensor, z: dt.Tensor) -> dt.Tensor:
    w = dt.ones_like(x).requires_grad_()
    return dt.grad((w * x * y).sum(), w) + z


@dt.kernel
def multiply_add_kernel(x: dt.In, y: dt.In, z: dt.In, out: dt.Out):  # type: ignore[no-untyped-def]
    for i in dt.grid(len(out)):
        out[i] = x[i] * y[i] + z[i]


def user_kernel(x: dt.Tensor, y: dt.Tensor, z: dt.Tensor) -> dt.Tensor:
    out = dt.empty_like(x)
    multiply_add_kernel(x, y, z, out)
    return out


def eager(x: dt.Tensor, y: dt.Tensor, z: dt.Tensor) -> dt.Tensor:
    fused = dt.elementwise(lambda x, y, z: x * y + z)
    with dt.eager():
        return fused(x, y, z)


@needs_cpu
@pytest.mark.parametrize("way", [write, update, several, differentiate, user_kernel, eager])
def test_every_way_to_compute_keeps_its_bits_outside_of_the_block(
    way: Callable[..., dt.Tensor],
) -> None:
    given = operands()
    for _ in range(3):
        assert not is_fused(way(*given))
        with dt.fast_math():
            assert is_fused(way(*given))


@needs_cpu
def test_captured_function_is_captured_anew_for_fast_math(tmp_path: Path) -> None:
    given, captured = operands(), dt.jit(multiply_add)
    for _ in range(3):
        assert not is_fused(captured(*given))
        with dt.fast_math():
            assert is_fused(captured(*given))
    with dt.fast_math():
        assert "fast math" in str(dt.explain(captured, *given))


@needs_cpu
def test_saved_function_keeps_the_setting_of_its_capture(tmp_path: Path) -> None:
    given = operands()
    for is_fast in (False, True):
        file, captured = tmp_path / f"{is_fast}.dt", dt.jit(multiply_add)
        with dt.fast_math(is_fast):
            captured(*given)
            dt.save_function(captured, file)
        assert is_fused(dt.load_function(file)(*given)) is is_fast


@needs_cpu
def test_other_threads_compute_as_always() -> None:
    given, found = operands(), list[bool]()
    with dt.fast_math():
        assert is_fused(multiply_add(*given))
        thread = threading.Thread(target=lambda: found.append(is_fused(multiply_add(*given))))
        thread.start()
        thread.join()
    assert found == [False]


@needs_cpu
def test_special_values_signs_of_zeros_and_orders_of_sums_stay() -> None:
    special = np.float32([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-45, 1e-39, 3e38, 1.0])
    x, y = (dt.asarray(a.ravel(), device="cpu") for a in np.meshgrid(special, special))
    functions: list[Callable[[], dt.Tensor]] = [
        lambda: x + y, lambda: x - y, lambda: x * y, lambda: dt.maximum(x, y),
        lambda: dt.exp(x), lambda: dt.isnan(x), lambda: dt.sign(x) * y,
        lambda: dt.sum(dt.asarray(X, device="cpu")), lambda: dt.cumulative_sum(y),
    ]  # fmt: skip
    for f in functions:
        exact = f().numpy()
        with dt.fast_math():
            np.testing.assert_array_equal(f().numpy(), exact)
            assert (np.signbit(f().numpy()) == np.signbit(exact)).all() or exact.dtype == bool
    quotient = (x / y).numpy()
    with dt.fast_math():
        np.testing.assert_allclose((x / y).numpy(), quotient, rtol=1e-6)


@needs_cpu
def test_elementary_functions_stay_within_four_units_in_the_last_place() -> None:
    x = dt.asarray(np.linspace(0.01, 20, 20_000, dtype=np.float32), device="cpu")
    names = "exp log sin cos tanh erf expm1 log1p sinh cosh atan sqrt reciprocal"
    for name in names.split():
        exact = getattr(dt, name)(x).numpy()
        with dt.fast_math():
            found = getattr(dt, name)(x).numpy()
        assert np.abs(found.view(np.int32) - exact.view(np.int32)).max() <= 4, name


def test_explain_says_fast_math_and_shows_it_in_the_kernel(device: dt.Device) -> None:
    def report(is_fast: bool) -> Any:
        with dt.fast_math(is_fast):
            return dt.explain(multiply_add(*operands(str(device))))

    exact, fast = report(False), report(True)
    assert "fast math" in str(fast) and "fast math" not in str(exact)
    assert ") fast {" in fast.launches[0].text and ") fast {" not in exact.launches[0].text


# --- kernels and backends -------------------------------------------------------------------------


def build_kernel() -> Any:
    """Return the kernel x * x / 3 + x."""
    b = KernelBuilder("f")
    x, out = b.buffer("x", dt.float32, "r"), b.buffer("out", dt.float32, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, load(x, i) * load(x, i) / 3.0 + load(x, i))
    return b.build()


def make_fast(kernel: Any) -> Any:
    return parse_kernel(str(kernel).replace(" {", " fast {", 1))


def test_kernel_text_with_fast_is_parsed_and_survives_the_passes() -> None:
    kernel = build_kernel()
    fast = make_fast(kernel)
    assert fast.fast_math and not kernel.fast_math
    assert str(fast) == str(kernel).replace(" {", " fast {", 1)
    narrow = Capabilities(index_bits=32, contraction=True, exact_division=False)
    legal = legalize(fast, narrow)
    assert legal.fast_math and "fast {" in str(legal)
    assert len(str(legal)) < len(str(legalize(kernel, narrow)))  # neither hidden nor by float64
    assert len(legal.ints) == len(legalize(kernel, narrow).ints)


def test_nvrtc_gets_contraction_and_approximate_division(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_ = pytest.importorskip("dovetail_cuda.compile")
    found = []
    monkeypatch.setattr(compile_, "compile_cubin", lambda *a, **k: found.append(k) or b"")
    monkeypatch.setattr(compile_, "CudaFunction", lambda *a: None)
    compiler = compile_.Compiler("sm_80", "")
    for kernel in (build_kernel(), make_fast(build_kernel())):
        compiler.build(kernel, "")
    exact, fast = (x["arithmetic"] for x in found)
    assert exact == ("--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false")
    assert fast == ("--fmad=true", "--prec-div=false", "--prec-sqrt=false", "--ftz=false")


@needs_cpu
def test_llvm_gets_neither_reassociation_nor_absence_of_special_values() -> None:
    compiler = importlib.import_module("dovetail_cpu_llvm.compile").Compiler()
    source = compiler.compile(make_fast(build_kernel())).source
    assert "fmul contract arcp afn" in source and "fadd contract arcp afn" in source
    for flag in ("reassoc", "nnan", "ninf", "nsz", " fast "):
        assert flag not in source
    assert "contract" not in compiler.compile(build_kernel()).source


def test_other_arguments_are_refused() -> None:
    with pytest.raises(dt.ArgumentTypeError, match="fast_math: enabled must be True or False"):
        dt.fast_math("yes")  # type: ignore[arg-type]
