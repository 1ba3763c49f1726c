"""Every kernel of the conformance kit, compiled by NVRTC to a cubin for every schedule.

NVRTC needs no GPU. The default run takes a sample of the kit's cases and one architecture; `-m
exhaustive` takes all cases and four architectures.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")
pytest.importorskip("dovetail_cuda", reason="dovetail-cuda is not installed")

from dovetail.extend import CompileError, Kernel, legalize, parse_kernel
from dovetail_cuda import schedule
from dovetail_cuda.compile import FAST_OPTIONS, compile_cubin
from places import GOLDEN
from recorder import CUDA

HERE = Path(__file__).parent
KERNELS = sorted(GOLDEN.glob("*.txt"))
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")
BIG = 1 << 20
BATCH = 10  # kernels that are compiled together
ELF = b"\x7fELF"  # a cubin is an ELF file


def texts(kernel: Kernel) -> Iterator[str]:
    """Return the kernel's text in its first schedule, then in others that some sizes select."""
    first = schedule.first(kernel)
    big = [BIG] * len(kernel.grid)
    others = {schedule.best(kernel, [n] * len(kernel.ints), big) for n in (1, BIG)}
    for name in (first, *sorted(others - {first})):
        yield schedule.schedule(kernel, name).source()


def recorded(folder: Path, sample: int) -> list[Kernel]:
    """Return the kernels of about one in `sample` of the kit's cases."""
    path = os.pathsep.join([str(HERE), *filter(None, sys.path)])
    environ = {**os.environ, "PYTHONPATH": path, "DOVETAIL_RECORD_KERNELS": str(folder)}
    kit = ["-p", "recorder", "-p", "dovetail.testing.plugin", "--pyargs", "dovetail.testing"]
    options = ["-q", "-n0", "-p", "no:cacheprovider", "-c", os.devnull]
    command = [*options, *kit, "--dovetail-device=reference", f"--dovetail-sample={sample}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *command],
        env=environ, cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    return [parse_kernel(p.read_text()) for p in sorted(folder.iterdir())]


def join_texts(sources: Sequence[str]) -> str:
    """Join several texts, each in its own namespace. NVRTC compiles the result in half the time."""
    named = (s.replace(" kernel_", f" kernel_{i}_") for i, s in enumerate(sources))
    return "".join(f"namespace part{i} {{\n{text}\n}}\n" for i, text in enumerate(named))


def compiled(job: tuple[Sequence[str], str]) -> bool:
    """Return True if a batch of texts became a cubin with all of their kernels, for an
    architecture.
    """
    cubin = compile_cubin(join_texts(job[0]), job[1])
    return cubin.startswith(ELF) and all(
        f"kernel_{i}_".encode() in cubin for i in range(len(job[0]))
    )


def compile_all(sources: Sequence[str], architectures: Sequence[str]) -> None:
    """Assert that every text compiles.

    Uses processes, because NVRTC compiles one program at a time.
    """
    batches = [sources[i : i + BATCH] for i in range(0, len(sources), BATCH)]
    jobs = [(batch, arch) for arch in architectures for batch in batches]
    assert jobs
    if len(jobs) < 4 * BATCH:
        assert all(map(compiled, jobs))
        return
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        assert all(pool.map(compiled, jobs, chunksize=BATCH))


def test_golden_kernels_compile_for_every_architecture() -> None:
    kernels = [legalize(parse_kernel(p.read_text()), CUDA) for p in KERNELS]
    compile_all([source for k in kernels for source in texts(k)], ARCHITECTURES)


def test_sampled_kernels_of_the_kit_compile(tmp_path: Path) -> None:
    kernels = recorded(tmp_path, 400)
    assert len(kernels) > 200
    compile_all([source for k in kernels[::20] for source in texts(k)], ["sm_90"])


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_all_kernels_of_the_kit_compile_for_every_architecture(tmp_path: Path) -> None:
    """The first schedule on all architectures, the other schedules on two."""
    kernels = recorded(tmp_path, 1)
    assert len(kernels) > 4000
    first, others = set[str](), set[str]()
    for k in kernels:
        source, *more = texts(k)
        first.add(source)
        others.update(more)
    compile_all(sorted(first), ARCHITECTURES)
    compile_all(sorted(others - first), ["sm_75", "sm_90"])


def test_compile_error_shows_kernel_and_log() -> None:
    with pytest.raises(CompileError, match=r"(?s)rejected a kernel for sm_90.*nonsense.*a kernel"):
        compile_cubin("nonsense;", "sm_90", "a kernel")


def test_unknown_architecture_is_named_in_the_error() -> None:
    with pytest.raises(CompileError, match="gpu-architecture"):
        compile_cubin("", "sm_1")


def test_fast_math_options_give_shorter_code() -> None:
    text = "kernel f(x: r f32, out: w f32; n; ) grid(n) {\n  v0: f32 = load x[i0]\n"
    text += "  v1: f32 = div v0, f32(3.0)\n  store out[i0] = v1\n}"
    kernel = parse_kernel(text)
    source = next(texts(kernel))
    exact = compile_cubin(source, "sm_80", kernel)
    fast = compile_cubin(source, "sm_80", kernel, arithmetic=FAST_OPTIONS)
    assert fast.startswith(ELF) and len(fast) < len(exact)
