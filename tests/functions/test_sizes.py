"""Sizes beyond any memory: ShapeError if 64 bits cannot count the bytes, otherwise
OutOfMemoryError.

The errors are the same on every device, pending or not.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import dovetail as dt
import numpy as np  # noqa: F401 - for what is evaluated
import pytest
from dovetail.layout import ELEMENTS_MAX
from dovetail.plugins.registry import open_device
from fake_device import make

HERE = {"cpu": "dovetail_cpu_llvm", "opencl": "dovetail_opencl", "reference": "dovetail"}

TOO_LARGE = """
dt.eye(2**31)
dt.eye(2**31)[5, 5].item()
dt.empty(2**61 + 4096, dtype=dt.float64)
dt.empty(2**60 + 4096, dtype=dt.float64)
dt.empty(2**63, dtype=dt.bool)
dt.zeros((1 << 62, 4))
dt.zeros((1 << 62, 4)).tolist()
dt.zeros((0, 1 << 62, 4))
dt.zeros((2**40, 0, 2**40))
dt.full(2**63, 1)
dt.full(10**5000, 1)
dt.ones((2**32, 2**32))
dt.linspace(0, 1, 2**64)
dt.linspace(0, 1, 10**400)
dt.arange(2**60)
dt.arange(-(2**63), 2**63 - 1)
dt.arange(0.0, 1.0, 1e-300)
dt.arange(10**30, dtype=dt.float32)
dt.repeat(dt.ones(2), 2**60)
dt.repeat(dt.ones(2), 2**63)
dt.repeat(dt.ones(2), 10**5000)
dt.tile(dt.ones(2), (2**62,))
dt.tile(dt.ones(2), (2**63,))
dt.broadcast_to(dt.ones(1), (2**40, 2**40))
dt.broadcast_to(dt.ones(1), (2**40, 2**40)).sum()
dt.ones(4).expand(2**40, 2**40, 4)
dt.ones(4).as_strided((2**62,), (0,))
dt.ones(0).reshape(0, 2**62, 4)
dt.random.uniform((2**40, 2**40))
dt.random.normal((2**63,))
dt.random.permutation(2**62)
dt.stack([wide(2**60)] * 4)
dt.concat([wide(2**60)] * 4)
wide(2**62, dt.bool).astype(dt.float32)
wide(2**62, dt.bool) * 1.5
dt.sum(dt.broadcast_to(dt.ones((1,), dtype=dt.bool), (2**62, 1)), axis=1)
dt.cumulative_sum(wide(2**61, dt.bool))
dt.matmul(wide(2**40).reshape(-1, 1), wide(2**40).reshape(1, -1))
dt.tensordot(wide(2**40), wide(2**40), axes=0)
dt.einsum("i,j->ij", wide(2**40), wide(2**40))
dt.meshgrid(wide(2**40), wide(2**40))
dt.broadcast_to(dt.ones(()), (2**40, 1)) + dt.broadcast_to(dt.ones(()), (1, 2**40))
dt.ones((4, 2**20), dtype=dt.bool)[dt.broadcast_to(dt.zeros((), dtype=dt.int64), (2**50,))]
dt.sparse_coo_tensor([[1], [2]], [1.0], (2**40, 2**40)).to_dense()
dt.sparse_coo_tensor([[1], [2]], [1.0], (2**64, 2**40))
""".strip().splitlines()

NOBODY_HAS = """
dt.empty(2**63 - 1, dtype=dt.bool)
dt.empty(2**60)
dt.zeros(2**58).numpy()
dt.linspace(0, 1, 2**60).tolist()
dt.evaluate(wide(2**60) + 1)
dt.evaluate(dt.concat([wide(2**60)]))
dt.asarray(np.broadcast_to(np.float32(1), (2**60,)))
""".strip().splitlines()


@pytest.fixture(params=["reference", "cpu", "opencl"])
def default_device(request: pytest.FixtureRequest) -> Iterator[dt.Device]:
    pytest.importorskip(HERE[request.param])
    before = dt.default_device()
    yield dt.set_default_device(request.param)
    dt.set_default_device(before)


def wide(n: int, dtype: dt.DType = dt.float32) -> dt.Tensor:
    return dt.broadcast_to(dt.ones((), dtype=dtype), (n,))


@pytest.mark.parametrize("text", TOO_LARGE)
def test_size_beyond_64_bits_raises_shape_error(default_device: dt.Device, text: str) -> None:
    live = dt.memory.stats(default_device).live_bytes
    with pytest.raises(dt.ShapeError, match=r"^\w+: .*2\*\*63|more elements than an int64"):
        eval(text, globals())
    assert dt.memory.stats(default_device).live_bytes <= live + 8 * 512 + (4 << 20)


@pytest.mark.parametrize("text", NOBODY_HAS)
def test_size_beyond_memory_raises_out_of_memory(default_device: dt.Device, text: str) -> None:
    with pytest.raises(dt.OutOfMemoryError):
        eval(text, globals())


def test_large_views_of_little_memory_are_exact(default_device: dt.Device) -> None:
    x = dt.broadcast_to(dt.arange(3, device=default_device).reshape((3, 1)), (3, 2**58))
    assert x.size == 3 * 2**58 and x[2, 2**58 - 1].item() == 2
    assert x[:, ::-1][1, 2**57].item() == 1
    assert x[1:, 2**58 - 3 :].tolist() == [[1] * 3, [2] * 3]
    assert (x[2, 2**57 : 2**57 + 5] + 1).tolist() == [3] * 5


def test_refused_draw_does_not_advance_the_generator() -> None:
    dt.random.manual_seed(3)
    first = dt.random.uniform((5,), device="reference").tolist()
    dt.random.manual_seed(3)
    with pytest.raises(dt.ShapeError):
        dt.random.uniform((2**40, 2**40), device="reference")
    assert dt.random.uniform((5,), device="reference").tolist() == first


def test_arange_has_the_length_of_range() -> None:
    for start, stop, step in ((-5, 5, 3), (5, -5, -3), (0, 6, 3), (6, 0, -3), (5, 0, 2), (0, 0, 1)):
        found = dt.arange(start, stop, step, device="reference").tolist()
        assert found == list(range(start, stop, step))
    for stop in (float("inf"), float("nan")):
        with pytest.raises(dt.ArgumentError, match="finite"):
            dt.arange(0.0, stop, device="reference")


@pytest.mark.parametrize(
    "nbytes", [ELEMENTS_MAX - 1, ELEMENTS_MAX, (1 << 64) - 1, 1 << 64, (1 << 64) + 4096]
)
def test_allocators_and_backends_do_not_overflow(default_device: dt.Device, nbytes: int) -> None:
    allocator, backend = (
        dt.memory.get_allocator(default_device),
        open_device(default_device).backend,
    )
    with pytest.raises(dt.OutOfMemoryError):
        allocator.allocate(nbytes)
    with pytest.raises(MemoryError):
        backend.allocate(nbytes)
    assert allocator.allocate(100).nbytes == 100


def test_backend_never_gets_a_request_beyond_64_bits() -> None:
    backend, allocator = make(1 << 80)
    asked: list[int] = []
    plain = backend.allocate
    backend.allocate = lambda n: asked.append(n) or plain(n)  # type: ignore[method-assign, func-returns-value]
    for nbytes in (ELEMENTS_MAX - 1, ELEMENTS_MAX, 1 << 70):
        with pytest.raises(dt.OutOfMemoryError):
            allocator.allocate(nbytes)
    assert all(n < ELEMENTS_MAX for n in asked)


def test_cpu_memory_is_freed_and_huge_pages_are_aligned() -> None:
    memory = pytest.importorskip("dovetail_cpu_llvm.memory").raw_memory()
    for nbytes in (1, 4097, 2 << 20, (6 << 20) + 5):
        address = memory.allocate(nbytes)
        assert address % (2 << 20 if nbytes >= 2 << 20 else 4096) == 0
        memory.free(address, nbytes)


def test_process_survives_an_enormous_eye() -> None:
    """This call once crashed the process."""
    pytest.importorskip("dovetail_cpu_llvm")
    text = """
import dovetail as dt
try:
    dt.eye(2**31)[5, 5].item()
except dt.ShapeError:
    print("well")
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.stdout == "well\n", done.stderr
