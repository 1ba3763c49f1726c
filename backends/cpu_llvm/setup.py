"""Compiles the thread pool and the launcher, where there is a C compiler."""

from __future__ import annotations

import os
import sysconfig

from setuptools import Extension, setup

# One file for all Pythons from 3.11 on, except those without a GIL, which have no stable ABI.
STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED")
NATIVE = Extension(
    "dovetail_cpu_llvm._native",
    ["dovetail_cpu_llvm/native.c"],
    depends=["dovetail_cpu_llvm/pool.c", "dovetail_cpu_llvm/launch.c"],
    define_macros=[("Py_LIMITED_API", "0x030B0000")] if STABLE else [],
    py_limited_api=STABLE,
    extra_compile_args=["/std:c11", "/experimental:c11atomics"] if os.name == "nt" else ["-O2"],
    # An install without a compiler succeeds; a wheel for the index without them is a mistake.
    optional=os.environ.get("CIBUILDWHEEL") != "1",
)

if __name__ == "__main__":
    pure = os.environ.get("DOVETAIL_PURE", "0") not in ("", "0")
    setup(
        ext_modules=[] if pure else [NATIVE],
        options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
    )
