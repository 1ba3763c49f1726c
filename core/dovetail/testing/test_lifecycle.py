"""Level 1: a plugin is found, says what it is, opens a device, and closes it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from ..backend import limits
from ..backend.float_probe import FLOAT_FIELDS, find_excessive_claims, measure_floats
from ..backend.interface import INTERFACE, Backend, BackendInfo, DeviceInfo, Program
from ..backend.reference import interpret
from ..dtypes import ALL, float32, int32, int64
from ..errors import DovetailError
from ..ir.builder import Kernel, KernelBuilder
from ..ir.guard_subnormals import REPAIRS_BUFFER
from ..ir.language import Atomic, Value, const, fma, load
from ..ir.legalize import legalize
from ..plugins.fallback_device import companion_of, unwrap_backend
from ..plugins.registry import open_device, registry
from ..plugins.validate_hooks import find_signature_mismatches
from .certificate import FLOATS_PROPERTY, REPAIRS_PROPERTY
from .kit import Kit
from .values import bytes_view, sample

RecordProperty: TypeAlias = Callable[[str, object], None]  # of pytest's fixture


def increment() -> Kernel:
    """Build the kernel out = x + 1 of int32."""
    b = KernelBuilder("increment")
    x, out = b.buffer("x", int32, "r"), b.buffer("out", int32, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, load(x, i) + 1)
    return b.build()


def halve() -> Kernel:
    """Build the kernel out = x * 0.5 of float32."""
    b = KernelBuilder("halved")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, load(x, i) * 0.5)
    return b.build()


def record(kit: Kit) -> Any:
    """Probe the plugin of the device under test, and return its record."""
    return registry.probe(kit.device.type)


def test_backend_info_is_plain_data(kit: Kit) -> None:
    """Check type and interface version of the plugin's BackendInfo."""
    info = registry.call(record(kit), "dovetail_backend_info")
    assert isinstance(info, BackendInfo) and info.version
    assert info.type == kit.device.type and tuple(info.minimum_interface) <= INTERFACE
    kit.comparisons += 1


def test_device_info_says_what_there_is(kit: Kit) -> None:
    """Check index, name, fingerprint and capabilities of the DeviceInfo."""
    info = kit.backend.info
    assert isinstance(info, DeviceInfo)
    assert (info.type, info.index) == (kit.device.type, kit.device.index)
    assert info.name and info.fingerprint and info.total_memory >= 0
    can = info.capabilities
    assert can.dtypes <= set(ALL) and can.native_halves <= can.dtypes and can.concurrency >= 1
    assert int32 in can.dtypes
    kit.comparisons += 1


def test_floats_are_as_the_device_declares(kit: Kit, record_property: RecordProperty) -> None:
    """Check that the probe of floats finds all that the device's capabilities declare."""
    declared = kit.backend.info.capabilities
    measured = measure_floats(unwrap_backend(kit.backend))
    floats = {name: getattr(measured, name) for name in FLOAT_FIELDS}
    record_property(FLOATS_PROPERTY, floats)
    excessive = find_excessive_claims(declared, measured)
    claims = ", ".join(f"{name}={getattr(declared, name)!r}" for name in excessive)
    assert not excessive, kit.failure(f"Capabilities({claims}); the probe finds {floats}", "")
    kit.comparisons += 1


REPAIRED_OPERATIONS: dict[str, Callable[[Value, Value, Value], Value]] = {
    "add": lambda x, y, z: x + y,
    "mul": lambda x, y, z: x * y,
    "div": lambda x, y, z: x / y,
    "fma": fma,
}


def repairing_kernel(op: str) -> Kernel:
    """Build out = op(x, y, z) of float32; guards for subnormals count the points they repair."""
    b = KernelBuilder(f"repaired_{op}")
    inputs = [b.buffer(name, float32, "r") for name in "xyz"]
    out, repairs = b.buffer("out", float32, "w"), b.buffer(REPAIRS_BUFFER, int32, "rw")
    i = b.axis(b.int("n"))
    b.effect(Atomic("add", repairs, const(0, int64), const(0, int32)))  # the kernel uses it anyway
    b.store(out, i, REPAIRED_OPERATIONS[op](*[load(x, i) for x in inputs]))
    return b.build()


def test_guards_repair_what_the_device_flushes(kit: Kit, record_property: RecordProperty) -> None:
    """Check that points are repaired on a device that declares that it flushes, and on no other."""
    can, n = kit.backend.info.capabilities, 3000
    kernels = {op: repairing_kernel(op) for op in REPAIRED_OPERATIONS}
    kit.compile([*kernels.values()])
    # operands of all magnitudes; products below and around the least normal number; special values
    scale = np.exp2(np.repeat([0, -63, -126], n // 3)).astype("f4")
    columns = [sample(float32, n, seed) * scale for seed in (1, 2, 3)]
    repaired = {}
    for op, kernel in kernels.items():
        arrays = [*columns, np.zeros(n, "f4"), np.zeros(1, "i4")]
        *_, out, count = kit.run(kernel, arrays, [n], [], [n])
        expected = [a.copy() for a in arrays]
        interpret(kernel, expected, [n], [], [n])
        kit.check_same_bits(out, expected[3], float32, op, kernel.__str__)
        repaired[op] = int(count[0])
    record_property(REPAIRS_PROPERTY, {"points": n} | repaired)
    guarded = not can.denormals and can.nan  # operations that are computed by integers need none
    assert any(repaired.values()) == guarded, kit.failure(f"repaired points: {repaired}", "")


def test_opening_twice_gives_one_device(kit: Kit) -> None:
    """Check that `open_device` returns the device that is open."""
    assert open_device(kit.device) is kit.opened
    kit.comparisons += 1


def test_an_index_that_is_not_there_is_an_error(kit: Kit) -> None:
    """Check that device 9999 raises an error that names the index."""
    with pytest.raises(DovetailError, match="9999"):
        open_device(f"{kit.device.type}:9999")
    kit.comparisons += 1


PROBE = """
from dovetail.plugins.registry import registry
print([d.fingerprint for d in registry.probe({0!r}).devices if d.index == {1}][0])
"""


def test_fingerprint_is_the_same_in_another_process(kit: Kit) -> None:
    """Check that a new process gets the same fingerprint."""
    printed = run_in_subprocess(PROBE.format(kit.device.type, kit.device.index))
    assert printed == kit.backend.info.fingerprint
    kit.comparisons += 1


def run_in_subprocess(code: str, **environ: str) -> str:
    """Run `code` in a new Python with this `sys.path`; return its last line, fail if it fails."""
    code = f"import sys\nsys.path[:] = {sys.path!r}\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


COMPUTE = """
import json
from dovetail.backend import diskcache
from dovetail.dtypes import int32
from dovetail.engine.events import counters
from dovetail.tensor.host import evaluate, from_host
from dovetail.testing.kit import host
from dovetail.device_class import device
import numpy as np
x = from_host(np.arange(40, dtype=np.int32), int32, device({0!r}))
def count_files():
    kept = diskcache.cache_folder()
    return 0 if kept is None else sum(path.is_file() for path in kept.glob("*/*"))
opened = count_files()  # what is measured when a device is opened
y = (x * 3 + 5) * x
evaluate(y)
files = count_files() - opened
print(json.dumps([host(y).tolist(), counters.disk_hits, counters.load_failures, files]))
"""


def test_another_process_loads_what_one_has_compiled(kit: Kit, tmp_path: Path) -> None:
    """Check that a second process loads the binary from the disk cache, with equal results."""
    environ = {"DOVETAIL_CACHE_MIB": "64", "DOVETAIL_CACHE_DIR": str(tmp_path)}
    code, x = COMPUTE.format(str(kit.device)), np.arange(40)
    expected = ((x * 3 + 5) * x).tolist()
    first, _, _, files = json.loads(run_in_subprocess(code, **environ))
    again, hits, failures, _ = json.loads(run_in_subprocess(code, **environ))
    assert first == expected, kit.failure(f"{first}, not {expected}", "")
    assert again == expected, kit.failure(f"{again}, not {expected}, from the disk cache", "")
    assert not failures, kit.failure(
        "load refuses in one process what compile made in another: nothing is ever cached", ""
    )
    assert hits or not files, kit.failure("the disk cache holds a binary that is not loaded", "")
    kit.comparisons += 2


SETTINGS = """
import json
from dovetail.backend.interface import Unavailable
from dovetail.dtypes import float32, int32
from dovetail.ir.builder import KernelBuilder
from dovetail.ir.language import load, reduce_loop
from dovetail.ir.legalize import legalize
from dovetail.plugins.registry import registry

class Noted(dict):
    asked = set()
    def __getitem__(self, key):
        self.asked.add(key)
        return super().__getitem__(key)
    def get(self, key, default=None):
        self.asked.add(key)
        return super().get(key, default)
    def __contains__(self, key):
        self.asked.add(key)
        return super().__contains__(key)

b = KernelBuilder("settings")
x, out = b.buffer("x", int32, "r"), b.buffer("out", int32, "w")
i, n = b.axis(b.int("n")), b.int("m")
b.store(out, i, reduce_loop("add", 0, n, lambda k: load(x, i * n + k) * 3)[0] * 5 + load(x, i))
plain = KernelBuilder("plain")
p, q = plain.buffer("p", float32, "r"), plain.buffer("q", float32, "w")
j = plain.axis(plain.int("n"))
plain.store(q, j, load(p, j) * 3.0 + 5.0)
kernels = b.build(), plain.build()
record = registry.probe({0!r})

def made(config):
    infos = registry.call(record, "dovetail_probe", config=config)
    if isinstance(infos, Unavailable):
        return None
    info = next(d for d in infos if d.index == {1})
    backend = registry.call(record, "dovetail_open", info=info, config=config)
    legal = [legalize(k, info.capabilities) for k in kernels]
    mine = [k for k in legal if backend.accepts(k)]
    program = backend.compile(mine[0]) if mine else None
    backend.close()
    if program is None:  # a companion does both
        return info.fingerprint, None, ""
    return info.fingerprint, program.binary, program.source

base = Noted(registry.config({0!r}))
fingerprint, binary, source = made(base)
steady = made(base)[1] == binary
wrong = []
for key in sorted(Noted.asked) if binary is not None else ():
    for value in {2!r}:
        try:
            found = made(Noted(base | {{key: value}}))
        except Exception:
            continue  # no value for this one
        if found is not None and found[0] == fingerprint and (
            found[2] != source or (steady and found[1] != binary)
        ):
            wrong.append(key + "=" + value)
print(json.dumps([sorted(Noted.asked), wrong]))
"""
VALUES = ("0", "1", "2", "3", "off", "on")  # of settings: those that mean something to many


def test_fingerprint_names_the_settings_that_binaries_depend_on(kit: Kit) -> None:
    """Check that the fingerprint changes with each setting that changes binaries."""
    code = SETTINGS.format(kit.device.type, kit.device.index, VALUES)
    asked, wrong = json.loads(run_in_subprocess(code))
    assert not wrong, kit.failure(
        f"of the settings {', '.join(asked)} another binary is made by {', '.join(wrong)}, and "
        "the fingerprint is the same: the disk cache would give one for the other",
        "",
    )
    kit.comparisons += 1


def test_methods_take_what_the_core_gives(kit: Kit) -> None:
    """Check that the backend's methods take the arguments of the interface."""
    wrong = [*find_signature_mismatches(unwrap_backend(kit.backend))]
    assert not wrong, kit.failure("; ".join(wrong), "")
    kit.comparisons += 1


def legalize_for_device(kit: Kit, kernel: Kernel) -> Kernel:
    """Return a kernel as the device gets it."""
    return legalize(kernel, kit.backend.info.capabilities)


def test_a_kernel_is_accepted_or_not(kit: Kit) -> None:
    """Check that `accepts` is constant: True if `compile` works, else a companion exists."""
    can, mine = kit.backend.info.capabilities, unwrap_backend(kit.backend)
    for program in (increment, halve):
        kernel = legalize(program(), can)
        actual = [mine.accepts(kernel) for _ in range(3)]
        assert actual in ([True] * 3, [False] * 3), kit.failure(
            f"accepts({kernel.name}) is {', '.join(map(str, actual))}", str(kernel)
        )
        if actual[0]:
            assert mine.compile(kernel).kernel is kernel
        else:
            assert companion_of(kit.backend) is not None, kit.failure(
                f"{kernel.name} is not accepted, and there is no DeviceInfo.companion", str(kernel)
            )
    kit.check(halve(), [np.arange(9, dtype=np.float32), np.zeros(9, np.float32)], [9], [], [9])


def launch(backend: Backend, program: Program) -> list[int]:
    """Return the result of a program on 0..99, by raw memory and `launch`."""
    x, nbytes = np.arange(100, dtype=np.int32), 400
    source, target = backend.allocate(nbytes), backend.allocate(nbytes)
    backend.copy_in(source, 0, bytes_view(x))
    limits.launch_within_limits(backend, program, (source, 0, target, 0), (100,), (100,))
    numbers = np.zeros(100, np.int32)
    backend.copy_out(bytes_view(numbers), target, 0)
    backend.free(source, nbytes)
    backend.free(target, nbytes)
    values: list[int] = numbers.tolist()
    return values


def test_a_second_backend_can_be_opened_and_closed(kit: Kit) -> None:
    """Check that closing a second backend leaves the first one usable."""
    config = registry.config(kit.device.type)
    other = registry.call(record(kit), "dovetail_open", info=kit.backend.info, config=config)
    assert isinstance(other, Backend)
    kernel = legalize_for_device(kit, increment())
    if other.accepts(kernel):
        assert launch(other, other.compile(kernel)) == list(range(1, 101))
    other.synchronize()
    other.close()
    kit.check(increment(), [np.arange(9, dtype=np.int32), np.zeros(9, np.int32)], [9], [], [9])


def test_programs_show_their_kernel_and_source(kit: Kit) -> None:
    """Check kernel, source and binary of a compiled program, and run it."""
    kernel = legalize_for_device(kit, increment())
    program = kit.backend.compile(kernel)
    assert isinstance(program, Program) and isinstance(program.source, str)
    assert program.kernel is kernel and isinstance(program.binary, bytes | None)
    assert launch(kit.backend, program) == list(range(1, 101))
    kit.comparisons += 1


def test_a_binary_can_be_loaded_again(kit: Kit) -> None:
    """Check that a program loaded from its binary, if it has one, gives the same numbers."""
    kernel = legalize_for_device(kit, increment())
    program = kit.backend.compile(kernel)
    if program.binary is not None:
        program = kit.backend.load(kernel, program.binary)
    assert launch(kit.backend, program) == list(range(1, 101))
    kit.comparisons += 1


def test_programs_of_one_name_are_told_apart(kit: Kit) -> None:
    """Check three kernels of one name, compiled first and loaded in another order."""

    def adding(n: int) -> Kernel:
        """Build and legalise the kernel out = x + n, always named "increment"."""
        b = KernelBuilder("increment")
        x, out = b.buffer("x", int32, "r"), b.buffer("out", int32, "w")
        i = b.axis(b.int("n"))
        b.store(out, i, load(x, i) + n)
        return legalize_for_device(kit, b.build())

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
    """Check that `load` of an invalid binary raises, or compiles the kernel anew."""
    kit.comparisons += 1
    try:
        program = kit.backend.load(legalize_for_device(kit, increment()), binary)
    except Exception:
        return  # any exception: the core then compiles
    assert launch(kit.backend, program) == list(range(1, 101))
