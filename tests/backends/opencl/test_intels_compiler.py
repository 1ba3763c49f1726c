"""Intel's compiler for CPUs, which writes to memory that it has freed unless it is told not to
copy instructions across barriers (ARCHITECTURE.md, OpenCL).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyopencl", reason="pyopencl is not installed: pip install pyopencl")
pytest.importorskip("dovetail_opencl", reason="dovetail-opencl is not installed")

from dovetail_opencl import loader

TESTS = Path(__file__).parents[2]
# Four reductions by groups: Intel's compiler then has values in more than 48 basic blocks.
COMPILES = """
from cstyle_cases import COMBINES, reduction
from dovetail.extend import legalize
from dovetail_opencl import plugin
from dovetail_opencl.schedule import LANED

built = 0
for info in plugin.dovetail_probe({}):
    if "Intel" in info.details["platform"]:
        backend = plugin.dovetail_open(info, {})
        kernel = legalize(reduction("add", COMBINES["add"]), info.capabilities)
        assert backend._compiler.first(kernel) == LANED
        backend.compile(kernel)
        built += 1
print("built", built)
"""


def child(script: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """A process of its own, in which nobody has opened a device yet."""
    path = os.pathsep.join([str(TESTS), *(p for p in sys.path if p)])
    full = {**os.environ, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "1", **environ}
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=full, capture_output=True, text=True, timeout=250)


@pytest.mark.skipif(loader.intel_runtime() is None, reason="intel-opencl-rt is not installed")
def test_it_uses_no_memory_that_it_has_freed() -> None:
    """glibc fills what is freed, so whoever reads it there finds no address."""
    done = child(COMPILES, MALLOC_PERTURB_="165")
    assert done.returncode == 0 and done.stdout.startswith("built "), done.stderr[-2000:]
    assert done.stdout != "built 0\n"


class Platform:
    """A platform's name is all that is asked."""

    def __init__(self, name: str) -> None:
        self.name = name


def told(monkeypatch: pytest.MonkeyPatch, before: str | None, name: str, library: Path) -> str:
    """What the compiler finds in the environment, which is afterwards as it was before."""
    monkeypatch.setattr(loader, "drivers", lambda: [str(library)])
    loader._knows.cache_clear()
    if before is None:
        monkeypatch.delenv(loader.OPTIONS, raising=False)
    else:
        monkeypatch.setenv(loader.OPTIONS, before)
    try:
        with loader.sound_compiler(Platform(name)):
            found = os.environ.get(loader.OPTIONS, "nothing")
    finally:
        loader._knows.cache_clear()
    assert os.environ.get(loader.OPTIONS) == before
    return found


def test_only_a_compiler_that_knows_the_option_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    knows, other = tmp_path / "libintelocl.so.1", tmp_path / "libintelocl.so"
    knows.write_bytes(b"\0" + loader.UNCOPIED.encode() + b"\0")
    other.write_bytes(b"\0-sycl-barrier\0")
    (empty := tmp_path / "libintelocl.so.3").touch()
    intel, zero = "Intel(R) OpenCL", f"{loader.UNCOPIED}=0"
    assert told(monkeypatch, None, intel, knows) == zero
    assert told(monkeypatch, "-rng-seed=1", intel, knows) == f"-rng-seed=1 {zero}"
    assert told(monkeypatch, f"{loader.UNCOPIED}=3", intel, knows) == f"{loader.UNCOPIED}=3"
    assert told(monkeypatch, None, "Portable Computing Language", knows) == "nothing"
    for library in (other, empty, tmp_path / "libintelocl.so.2", tmp_path / "libpocl.so"):
        assert told(monkeypatch, None, intel, library) == "nothing"


@pytest.mark.skipif(loader.intel_runtime() is None, reason="intel-opencl-rt is not installed")
def test_options_of_the_users_are_heard_too() -> None:
    """It ends the process for one that it does not know."""
    done = child(COMPILES, MALLOC_PERTURB_="165", **{loader.OPTIONS: "-rng-seed=1"})
    assert done.returncode == 0 and done.stdout.startswith("built "), done.stderr[-2000:]
    done = child(COMPILES, **{loader.OPTIONS: "-no-such-option"})
    assert done.returncode != 0 and "no-such-option" in done.stderr
