"""Compile CUDA C to a shared object of the host, with the system's C compiler.

Kernels are short, so process start-up dominates. Therefore there are no headers, no optimization by
default (see `NORMAL`), and the linker is called directly (5 ms; through gcc 35 ms).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
PRELUDE = (HERE / "prelude.h").read_text()
# IEEE arithmetic, wrapping integers, no strict aliasing: the semantics of NVRTC.
EXACT = ("-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-fno-math-errno")
PLAIN = ("-std=gnu17", "-fgnu89-inline", "-fPIC", "-w", "-fno-asynchronous-unwind-tables")
KEPT = 30_000  # objects, of 8 KiB
NORMAL = "-Og"  # 15 % less than -O1, and -O0 is no quicker
COOPERATION = re.compile(r"__syncthreads|__syncwarp|__shfl_|__ballot_sync|__any_sync|__all_sync")
_KERNEL = re.compile(
    r'extern\s+"C"\s+__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?void\s+'
    r"(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\(([^)]*)\)"
)


class CompilationError(Exception):
    """An error that carries the compiler's log."""


@cache
def compiler() -> str:
    """Return the system's C compiler. Raises: CompilationError if there is none."""
    found = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc")
    if found is None:
        raise CompilationError("the double of the CUDA driver needs a C compiler: install gcc")
    return found


@cache
def processor() -> tuple[str, ...]:
    """Return options for this processor: rounding and fused multiply-add as instructions."""
    try:
        flags = set(re.findall(r"\w+", Path("/proc/cpuinfo").read_text()))
    except OSError:
        return ()
    return tuple(o for f, o in (("sse4_1", "-msse4.1"), ("fma", "-mfma")) if f in flags)


@cache
def folder() -> Path:
    """Return the private folder that keeps compiled objects between runs."""
    default = Path(tempfile.gettempdir(), f"dovetail-cuda-double-{os.getuid()}")
    path = Path(os.environ.get("DOVETAIL_CUDA_DOUBLE_CACHE", default))
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o022 or path.is_symlink():
        return Path(tempfile.mkdtemp())
    # not for the runtime, which other machines may load
    objects = sorted(path.glob("[!r]*.so"), key=_written)
    for old in objects[: len(objects) // 2] if len(objects) > KEPT else ():
        old.unlink(missing_ok=True)
    return path


def _written(path: Path) -> float:
    """Return the time when a file was written, or 0 if another process has deleted it."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def cooperates(source: str) -> bool:
    """Return True if the threads of a block wait for each other."""
    return COOPERATION.search(source) is not None


def host_text(source: str) -> str:
    """Return CUDA C as C, with a table of its kernels at the end."""
    kernels = [(name, _types(parameters)) for name, parameters in _KERNEL.findall(source)]
    text = re.sub(r'extern\s+"C"', "", source)
    tables = [line for i, k in enumerate(kernels) for line in _table(i, *k)]
    rows = "".join(
        f'{{"{name}", emu_call_{i}, {len(types)}, emu_sizes_{i}, emu_aims_{i}}}, '
        for i, (name, types) in enumerate(kernels)
    )
    return "\n".join(
        [
            PRELUDE,
            '#line 1 "kernel.cu"',
            text,
            '#line 1 "table.c"',
            *tables,
            f"static struct emu_entry emu_entries[] = {{{rows}{{0}}}};",
            "struct emu_unit emu_unit = {emu_entries, &threadIdx, &blockIdx, &blockDim, &gridDim,",
            "  __start_emu_shared, __stop_emu_shared, &emu_barrier, &emu_warp};",
            "",
        ]
    )


def _types(parameters: str) -> list[str]:
    """Return the types of a kernel's parameters."""
    found = []
    for parameter in filter(None, (p.strip() for p in parameters.split(","))):
        plain = re.sub(r"\b__restrict__\b|\b__grid_constant__\b", " ", parameter)
        found.append(re.sub(r"\w+\s*$", "", plain).strip() or plain)
    return found if found != ["void"] else []


def _table(i: int, name: str, types: Sequence[str]) -> list[str]:
    arguments = ", ".join(f"*({t} *)a[{j}]" for j, t in enumerate(types))
    sizes = ", ".join(f"sizeof({t})" for t in types) or "0"
    aims = ", ".join(f"__alignof__(*({t})0)" if "*" in t else "0" for t in types) or "0"
    return [
        f"static void emu_call_{i}(void **a) {{ {name}({arguments}); }}",
        f"static const unsigned emu_sizes_{i}[] = {{{sizes}}}, emu_aims_{i}[] = {{{aims}}};",
    ]


def numerics(options: Sequence[str]) -> list[str]:
    """Return the host's options that match NVRTC's floating-point options."""
    given = " ".join(options)
    if "use_fast_math" in given:
        return ["-O2", "-ffast-math", "-ffp-contract=fast"]
    if re.search(r"-fmad[= ]false", given):
        return [NORMAL, "-ffp-contract=off"]
    return ["-O2", "-ffp-contract=fast"]  # NVRTC's default


def build(source: str, options: Sequence[str] = ()) -> bytes:
    """Compile and return the shared object. Raises: CompilationError."""
    includes = [o for o in options if o.startswith("-I")]
    flags = [*PLAIN, *EXACT, *numerics(options), *processor(), *includes]
    text = host_text(source)
    key = hashlib.sha256("\0".join([compiler(), *flags, text]).encode()).hexdigest()
    kept = folder() / f"{key}.so"
    try:
        return kept.read_bytes()
    except FileNotFoundError:
        pass
    with tempfile.TemporaryDirectory(dir=folder()) as work:
        found = Path(work, "kernel.so")
        _run([compiler(), "-c", "-pipe", "-x", "c", "-", *flags, "-o", f"{work}/kernel.o"], text)
        link = ["-shared", "-s", "-z", "noseparate-code", f"{work}/kernel.o", "-o", str(found)]
        _run([shutil.which("ld") or "ld", *link])
        binary = found.read_bytes()
        os.replace(found, kept)
    return binary


def build_runtime() -> Path:
    """Compile the runtime, which links only with the C library."""
    source = (HERE / "runtime.c").read_text()
    key = hashlib.sha256(f"{compiler()}{source}".encode()).hexdigest()
    kept = folder() / f"runtime-{key}.so"
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=folder()) as work:
            made = Path(work, "runtime.so")
            _run([compiler(), "-O2", "-fPIC", "-shared", "-x", "c", "-", "-o", str(made)], source)
            os.replace(made, kept)
    return kept


def _run(command: Sequence[str], text: str = "") -> None:
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        raise CompilationError(done.stderr or f"{command[0]} failed: {done.returncode}")
