"""Level 1: a plugin is found, says what it is, opens a device, and closes it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from ..backend.interface import INTERFACE, Backend, BackendInfo, DeviceInfo, Program
from ..dtypes import ALL, int32
from ..errors import DovetailError
from ..loops.builder import Kernel, KernelBuilder
from ..loops.language import load
from ..loops.legalize import legalize
from ..plugins.registry import open_device, registry
from .kit import Kit
from .values import raw


def increment() -> Kernel:
    b = KernelBuilder("increment")
    x, out = b.buffer("x", int32, "r"), b.buffer("out", int32, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, load(x, i) + 1)
    return b.build()


def record(kit: Kit) -> Any:
    return registry.probe(kit.device.type)


def test_backend_info_is_plain_data(kit: Kit) -> None:
    info = registry.call(record(kit), "dovetail_backend_info")
    assert isinstance(info, BackendInfo) and info.version
    assert info.type == kit.device.type and tuple(info.minimum_interface) <= INTERFACE
    kit.comparisons += 1


def test_device_info_says_what_there_is(kit: Kit) -> None:
    info = kit.backend.info
    assert isinstance(info, DeviceInfo)
    assert (info.type, info.index) == (kit.device.type, kit.device.index)
    assert info.name and info.fingerprint and info.total_memory >= 0
    can = info.capabilities
    assert can.dtypes <= set(ALL) and can.native_halves <= can.dtypes and can.concurrency >= 1
    assert int32 in can.dtypes
    kit.comparisons += 1


def test_opening_twice_gives_one_device(kit: Kit) -> None:
    assert open_device(kit.device) is kit.opened
    kit.comparisons += 1


def test_an_index_that_is_not_there_is_an_error(kit: Kit) -> None:
    with pytest.raises(DovetailError, match="9999"):
        open_device(f"{kit.device.type}:9999")
    kit.comparisons += 1


PROBE = """
from dovetail.plugins.registry import registry
print([d.fingerprint for d in registry.probe({0!r}).devices if d.index == {1}][0])
"""


def test_fingerprint_is_the_same_in_another_process(kit: Kit) -> None:
    code = f"import sys\nsys.path[:] = {sys.path!r}\n" + PROBE.format(
        kit.device.type, kit.device.index
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == kit.backend.info.fingerprint
    kit.comparisons += 1


def launch(backend: Backend, program: Program) -> list[int]:
    """What a program makes of 0..99, by way of raw memory and `launch`."""
    x, nbytes = np.arange(100, dtype=np.int32), 400
    source, target = backend.allocate(nbytes), backend.allocate(nbytes)
    backend.copy_in(source, 0, raw(x))
    backend.launch(program, (source, 0, target, 0), (100,), (), (100,))
    found = np.zeros(100, np.int32)
    backend.copy_out(raw(found), target, 0)
    backend.free(source, nbytes)
    backend.free(target, nbytes)
    values: list[int] = found.tolist()
    return values


def test_a_second_backend_can_be_opened_and_closed(kit: Kit) -> None:
    config = registry.config(kit.device.type)
    other = registry.call(record(kit), "dovetail_open", info=kit.backend.info, config=config)
    assert isinstance(other, Backend)
    assert launch(other, other.compile(increment())) == list(range(1, 101))
    other.synchronize()
    other.close()
    kit.check(increment(), [np.arange(9, dtype=np.int32), np.zeros(9, np.int32)], [9], [], [9])


def test_programs_show_their_kernel_and_source(kit: Kit) -> None:
    kernel = legalize(increment(), kit.backend.info.capabilities)
    program = kit.backend.compile(kernel)
    assert isinstance(program, Program) and isinstance(program.source, str)
    assert program.kernel is kernel and isinstance(program.binary, bytes | None)
    assert launch(kit.backend, program) == list(range(1, 101))
    kit.comparisons += 1


def test_a_binary_can_be_loaded_again(kit: Kit) -> None:
    program = kit.backend.compile(increment())
    if program.binary is not None:
        program = kit.backend.load(increment(), program.binary)
    assert launch(kit.backend, program) == list(range(1, 101))
    kit.comparisons += 1


def test_programs_of_one_name_are_told_apart(kit: Kit) -> None:
    """Three kernels that differ in a constant alone, compiled first, loaded in another order."""

    def adding(n: int) -> Kernel:
        b = KernelBuilder("increment")
        x, out = b.buffer("x", int32, "r"), b.buffer("out", int32, "w")
        i = b.axis(b.int("n"))
        b.store(out, i, load(x, i) + n)
        return b.build()

    programs = {n: kit.backend.compile(adding(n)) for n in (1, 2, 3)}
    loaded = {
        n: programs[n] if binary is None else kit.backend.load(adding(n), binary)
        for n, binary in ((n, programs[n].binary) for n in (3, 1, 2))
    }
    for n in (1, 2, 3):
        expected = list(range(n, 100 + n))
        assert launch(kit.backend, programs[n]) == expected, kit.failure(
            "the wrong program ran", ""
        )
        assert launch(kit.backend, loaded[n]) == expected, kit.failure("the wrong binary ran", "")
        kit.comparisons += 2


@pytest.mark.parametrize("binary", [b"", b"no program at all"], ids=["empty", "text"])
def test_a_bad_binary_is_refused_or_ignored(kit: Kit, binary: bytes) -> None:
    kit.comparisons += 1
    try:
        program = kit.backend.load(increment(), binary)
    except Exception:
        return  # any exception: the core then compiles
    assert launch(kit.backend, program) == list(range(1, 101))
