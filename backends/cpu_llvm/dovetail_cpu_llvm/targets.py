"""The instruction sets of generated code: the host's own, or a level of x86-64 (the psABI's)."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import llvmlite.binding as llvm
from dovetail.extend import word_setting

TARGET_VARIABLE = "DOVETAIL_CPU_TARGET"
NATIVE = "native"
_AVX2 = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_AVX512 = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
# LLVM's and the C compiler's name, the bytes of a vector, and the features that the CPU must have
_LEVELS = {
    "avx512": ("x86-64-v4", 64, (*_AVX2, *_AVX512)),
    "avx2": ("x86-64-v3", 32, _AVX2),
    "sse": ("x86-64", 16, ("sse2",)),
}
NAMES = (NATIVE, *_LEVELS)


class Target(NamedTuple):
    """An instruction set.

    `cpu`, `features`: LLVM's names. `march`: the C compiler's. `vector_bytes`: of a register.
    `has_halves`: it converts float16. `has_pairs`: it multiplies pairs of int16. `missing`:
    features of it that this CPU lacks.
    """

    name: str
    cpu: str
    features: str
    march: str
    vector_bytes: int
    has_halves: bool
    has_pairs: bool
    missing: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return a text: the name, LLVM's name of the CPU, and the bytes of a vector."""
        return f"{self.name} ({self.cpu}, vectors of {self.vector_bytes} bytes)"


@cache
def choose_target(name: str) -> Target:
    """Return the target of one of NAMES."""
    has = llvm.get_host_cpu_features()
    if name == NATIVE:
        cpu, features, march = llvm.get_host_cpu_name(), has.flatten(), NATIVE
        vector_bytes = 64 if has.get("avx512f") else 32 if has.get("avx2") else 16
        has_pairs = bool(has.get("avx512bw") or not has.get("avx512f"))
        has_halves = bool(has.get("f16c"))
        return Target(name, cpu, features, march, vector_bytes, has_halves, has_pairs)
    cpu, vector_bytes, needs = _LEVELS[name]
    missing = tuple(feature for feature in needs if not has.get(feature))
    return Target(name, cpu, "", cpu, vector_bytes, "f16c" in needs, True, missing)


def read_target() -> Target:
    """Return the target that DOVETAIL_CPU_TARGET names."""
    return choose_target(word_setting(TARGET_VARIABLE, NATIVE, NAMES))
