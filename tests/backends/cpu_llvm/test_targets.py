"""DOVETAIL_CPU_TARGET chooses the instructions of generated code, and changes no bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dovetail as dt
import llvmlite.binding as llvm
import pytest
from dovetail.plugins.plugin_state import PluginState
from dovetail.plugins.registry import DeviceRegistry
from dovetail_cpu_llvm import plugin, targets
from dovetail_cpu_llvm.compile import Compiler

PROGRAM = Path(__file__).parent / "target_digests.py"
REGISTERS = {"avx512": "zmm", "avx2": "ymm", "sse": "xmm"}
FMA = """
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
define void @kernel(ptr %p) #0 {
  %x = load <16 x float>, ptr %p, align 4
  %y = call <16 x float> @llvm.fma.v16f32(<16 x float> %x, <16 x float> %x, <16 x float> %x)
  store <16 x float> %y, ptr %p, align 4
  ret void
}
attributes #0 = { "prefer-vector-width"="512" }
"""


def run_python(arguments: list[str], target: str, folder: Path) -> str:
    """Return what a process with the variable prints."""
    environ = {**os.environ, "DOVETAIL_CPU_TARGET": target, "DOVETAIL_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, *arguments], env=environ, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def skip_missing(name: str) -> None:
    """Skip the test if this CPU lacks the target."""
    if targets.choose_target(name).missing:
        pytest.skip(f"this CPU has no {name}")


@pytest.fixture(scope="module")
def program(thinned: Callable[..., Any]) -> list[str]:
    """Return the arguments of the program; in a sampled run it does a third of its work."""
    return [str(PROGRAM), "1" if len(thinned(range(3), 3)) == 3 else "3"]


@pytest.fixture(scope="module")
def native_digests(
    program: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Mapping[str, str]]:
    """Return digests of results on the host's own instruction set."""
    found = run_python(program, "native", tmp_path_factory.mktemp("native"))
    digests: Mapping[str, Mapping[str, str]] = json.loads(found)
    return digests


@pytest.mark.parametrize("name", REGISTERS)
def test_bits_of_target_equal_those_of_native_for_one_to_three_threads(
    name: str,
    program: list[str],
    native_digests: Mapping[str, Mapping[str, str]],
    tmp_path: Path,
) -> None:
    skip_missing(name)
    found = json.loads(run_python(program, name, tmp_path))
    assert len(found) == len(native_digests) >= (10 if program[1] == "1" else 4)
    for work, digests in native_digests.items():
        assert {*found[work].values(), *digests.values()} == {digests["1"]}, work


@pytest.mark.parametrize("name", REGISTERS)
def test_code_of_target_has_its_registers_and_fused_multiply_adds(name: str) -> None:
    skip_missing(name)
    compiler = Compiler(targets.choose_target(name))
    code = compiler.machine.emit_assembly(compiler.optimize(FMA))
    assert REGISTERS[name] in code
    assert not any(wider in code for wider in ("zmm", "ymm")[: 2 - (16, 32, 64).index(
        targets.choose_target(name).vector_bytes
    )])  # fmt: skip
    assert ("vfmadd" in code, "fmaf" in code) == (name != "sse", name == "sse")


def test_kernels_of_two_targets_have_two_cache_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    def fingerprint(name: str) -> str:
        monkeypatch.setenv("DOVETAIL_CPU_TARGET", name)
        [info] = plugin.dovetail_probe({})  # type: ignore[misc]
        assert info.details["target"] == name
        return info.fingerprint

    names = [n for n in targets.NAMES if not targets.choose_target(n).missing]
    assert len({fingerprint(n) for n in names}) == len(names) >= 2


def test_target_that_the_cpu_lacks_raises_an_error_with_the_missing_features(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = llvm.get_host_cpu_features()
    without = type(host)({**host, "avx512bw": False, "avx512vl": False})
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: without)
    monkeypatch.setenv("DOVETAIL_CPU_TARGET", "avx512")
    targets.choose_target.cache_clear()
    try:
        registry = DeviceRegistry()
        with pytest.raises(dt.UnavailableError, match=r"DOVETAIL_CPU_TARGET=avx512 .*avx512bw"):
            registry.open(dt.device("cpu:7"))
        assert registry.records()["cpu"].state is PluginState.UNAVAILABLE
    finally:
        targets.choose_target.cache_clear()


def test_doctor_says_the_target(tmp_path: Path) -> None:
    found = run_python(["-m", "dovetail.commands.cli", "doctor"], "sse", tmp_path)
    assert "cpu: target: sse (x86-64, vectors of 16 bytes)" in found
