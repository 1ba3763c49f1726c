"""Invalid use of captured functions: the right result, or a named error with a remedy."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from captured import bits, device, vector
from dovetail.extend import Layout, LayoutTensor
from installed import INSTALLED

__all__ = ["device"]

READS = {
    "float": lambda x: x * float(x.sum()),
    "if": lambda x: x if x.sum() > 0 else -x,
    "item": lambda x: x * x.sum().item(),
    "numpy": lambda x: x * x.numpy(),
    "tolist": lambda x: dt.asarray(x.tolist()),
    "print": lambda x: str(x) and x,
    "asarray": lambda x: x * np.asarray(x),
    "mask": lambda x: x[x > 0],
    "unique": lambda x: dt.unique_values(x),
    "nonzero": lambda x: dt.nonzero(x),
    "range": lambda x: [x * i for i in range(x.sum().astype(dt.int64))],
    "dlpack": lambda x: np.from_dlpack(x),
    "pointer": lambda x: x.data_ptr(),
    "storage": lambda x: x.storage(),
}


@pytest.mark.parametrize("what", READS)
def test_host_read_raises_and_names_the_line(device: dt.Device, what: str) -> None:
    captured = dt.jit(READS[what], fullgraph=True)
    for _ in range(2):
        with pytest.raises(dt.CaptureError, match=r"test_jit_bad_input.py:\d+.*dt\.where.*static"):
            captured(vector())
    assert captured.captures == 0
    assert vector().sum().item()  # later code may read values


def test_host_read_of_a_closure_tensor_raises(device: dt.Device) -> None:
    w = vector()
    with pytest.raises(dt.CaptureError, match=r"dt\.where"):
        dt.jit(lambda x: x * w[0].item(), fullgraph=True)(vector())


def test_failed_capture_leaves_the_state_of_a_plain_failure(device: dt.Device) -> None:
    def f(x: dt.Tensor, bad: bool) -> dt.Tensor:
        x += 1
        if bad:
            raise KeyError("mine")
        return x

    captured = dt.jit(f)
    x = vector()
    with pytest.raises(KeyError, match="mine"):
        captured(x, True)
    assert bits(x) == bits(vector() + 1)
    assert bits(captured(x, False)) == bits(vector() + 2)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.ones(3), r"NumPy array of shape \(3,\)"),
        (bytearray(2), "a bytearray"),
        ({1, 2}, "a set"),
    ],
)
def test_argument_of_an_unknown_type_raises(value: Any, said: str) -> None:
    with pytest.raises(dt.CaptureError, match=rf"{said}.*dt\.asarray"):
        dt.jit(lambda x, y: x)(dt.ones(3, device="reference"), value)


def test_sparse_tensor_in_a_loop_carry_raises() -> None:
    x = dt.asarray([[0.0, 1.0]], device="reference").to_sparse()
    with pytest.raises(dt.LayoutError, match=r"fori_loop.*sparse_coo.*to_dense"):
        dt.fori_loop(0, 2, lambda i, x: x * 2, x)


class TapedLayout(LayoutTensor):
    """A vector of another layout that does not declare its parts for captured functions."""

    layout = Layout("taped")
    shape, dtype, device = (2,), dt.float32, dt.device("reference")  # type: ignore[assignment]


def test_layout_without_declared_parts_raises() -> None:
    x = object.__new__(TapedLayout)
    with pytest.raises(dt.LayoutError, match=r"must be strided, got layout taped.*to_dense"):
        dt.jit(lambda x: x)(x)
    with pytest.raises(dt.LayoutError, match=r"must be strided, got layout taped"):
        dt.jit(lambda y: x)(dt.ones(2, device="reference"))


def test_each_device_has_its_own_capture() -> None:
    f = dt.jit(lambda x: x * 2 + 1)
    for name in ("reference", "cpu", "reference", "cpu"):
        x = dt.ones(3, device=name)
        assert f(x).device is x.device
        assert f(x).tolist() == [3.0] * 3
    assert f.captures == 2


def test_closure_on_another_device_raises_the_plain_error() -> None:
    w = dt.ones(3, device="cpu")
    with pytest.raises(dt.DeviceError, match="reference"):
        dt.jit(lambda x: x * w)(dt.ones(3, device="reference"))
    with pytest.raises(dt.CaptureError, match=r"must use one device.*x\.to\(device\)"):
        dt.jit(lambda x: (x * 2, w * 2))(dt.ones(3, device="reference"))
    with pytest.raises(dt.CaptureError, match=r"dt\.where"):
        dt.jit(lambda x: x.to("cpu"), fullgraph=True)(dt.ones(3, device="reference"))


def test_closure_that_moves_to_another_device_is_captured_again() -> None:
    w = dt.ones(3, device="reference")
    f = dt.jit(lambda: w * 2)
    assert f().device == dt.device("reference")
    w = dt.ones(3, device="cpu")
    assert f().device == dt.device("cpu")
    assert f.captures == 2


def test_bad_index_raises_the_plain_error(device: dt.Device) -> None:
    f = dt.jit(lambda x, i: dt.take(x, i, axis=0) * 2)
    x = vector()
    good, bad = dt.asarray([0, 7]), dt.asarray([0, 8])
    assert bits(f(x, good)) == bits(x[:8:7] * 2)
    for _ in range(2):
        with pytest.raises(dt.OutOfRangeError, match="8 is out of range for axis 0 of size 8"):
            f(x, bad).tolist()
        assert bits(f(x, good)) == bits(x[:8:7] * 2)
    assert f.captures == 1


def test_read_only_argument_raises_the_plain_error(device: dt.Device) -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        return x.add_(1)

    captured = dt.jit(f)
    captured(vector())
    readonly = np.ones(8, np.float32)
    readonly.flags.writeable = False
    x = dt.from_dlpack(readonly) if device == dt.device("cpu") else None
    wide = dt.broadcast_to(dt.ones(1), (8,))
    with pytest.raises(dt.ReadOnlyError):
        captured(wide)
    if x is not None and x.storage().read_only:
        with pytest.raises(dt.ReadOnlyError):
            captured(x)


def test_write_to_a_leaf_raises_the_plain_error() -> None:
    f = dt.jit(lambda x: x.add_(1))
    f(dt.ones(2, device="reference"))
    w = dt.ones(2, device="reference").requires_grad_()
    for _ in range(2):
        with pytest.raises(dt.GradientError, match="leaf that requires a gradient"):
            f(w)


def test_replay_that_overwrites_a_saved_value_raises_in_backward() -> None:
    f = dt.jit(lambda x: x.add_(1))
    f(dt.ones(2, device="reference"))
    x = dt.ones(2, device="reference")
    dt.evaluate(x)
    w = dt.ones(2, device="reference").requires_grad_()
    y = dt.exp(w * x) * x
    f(x)
    with pytest.raises(dt.GradientError, match="overwrote it in place"):
        y.sum().backward()


def test_streams_inside_a_captured_function_raise() -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        with dt.stream(dt.Stream("reference")):
            y = x * 2
            dt.evaluate(y)
        return y

    with pytest.raises(dt.CaptureError, match=r"dt\.stream"):
        dt.jit(f)(dt.ones(2, device="reference"))


def test_captured_function_runs_on_the_current_stream(device: dt.Device) -> None:
    f = dt.jit(lambda x: dt.exp(x) * 2)
    x = vector()
    want = bits(f(x))
    stream = dt.Stream(device)
    with dt.stream(stream):
        assert bits(f(x)) == want
    assert f.captures == 1


def test_two_threads_may_call_one_captured_function(device: dt.Device) -> None:
    def f(x: dt.Tensor, n: int) -> dt.Tensor:
        for _ in range(5):
            x = dt.sin(x) + n
            dt.evaluate(x)
        return x

    captured, wrong = dt.jit(f), []
    want = {(seed, n): bits(f(vector(seed=seed), n)) for seed in range(3) for n in (1, 2)}

    def work() -> None:
        for _ in range(20):
            for (seed, n), bits_ in want.items():
                if bits(captured(vector(seed=seed), n)) != bits_:
                    wrong.append((seed, n))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
    assert captured.captures == 2


def test_work_of_another_thread_is_not_captured() -> None:
    seen: list[float] = []

    def read() -> None:
        seen.append((dt.ones(2, device="cpu") * 3).sum().item())

    def f(x: dt.Tensor) -> dt.Tensor:
        y = x * 2
        other = threading.Thread(
            target=lambda: seen.append((dt.ones(2, device="cpu") * 3).sum().item())
        )
        other.start()
        other.join()
        return y

    captured = dt.jit(f)
    for _ in range(2):
        assert captured(dt.ones(2, device="reference")).tolist() == [2.0, 2.0]
    assert seen == [6.0]


def test_released_arena_is_allocated_again(device: dt.Device) -> None:
    def f(x: dt.Tensor) -> Any:
        y = dt.sort(x) + dt.asarray([1.0] * 8)
        return dt.cumulative_sum(y), y

    captured = dt.jit(f)
    want = bits(f(vector()))
    for _ in range(3):
        assert bits(captured(vector())) == want
        gc.collect()
        dt.memory.empty_cache(device)
    assert captured.captures == 1


def test_captured_function_holds_no_argument(device: dt.Device) -> None:
    captured = dt.jit(lambda x: x * 2)
    x = dt.ones(1 << 20)
    dt.evaluate(x)
    before = dt.memory.stats(device).live_bytes
    y = captured(x)
    del x, y
    gc.collect()
    assert dt.memory.stats(device).live_bytes <= before - (4 << 20)


def test_profile_shows_the_launches_of_a_replay(device: dt.Device) -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        dt.evaluate(y := x * 2)
        return dt.fori_loop(0, 3, lambda i, y: y + i, y)

    captured, x = dt.jit(f), vector()
    want = bits(f(x))
    with dt.profile() as first:
        assert bits(captured(x)) == want
    with dt.profile() as second:
        assert bits(captured(x)) == want
    counts = {line.name: line.count for line in second.lines()}
    assert counts["replay dt.jit of f"] == 1
    assert sum(n for name, n in counts.items() if name.startswith("launch")) == 4
    assert any(line.name.startswith("launch") for line in first.lines())


def test_explain_shows_launches_bytes_and_the_arena(device: dt.Device) -> None:
    def f(x: dt.Tensor, n: int) -> dt.Tensor:
        for _ in range(n):
            dt.evaluate(x := x + 1)
        return dt.fori_loop(0, 3, lambda i, y: y * 2, x)

    captured = dt.jit(f)
    assert "has not been captured" in str(dt.explain(captured))
    captured(vector(1000), 3)
    captured(vector(1000), 4)
    found = dt.explain(captured)
    assert [len(c.launches) for c in found.captures] == [4, 5]
    first = found.captures[0]
    assert first.nbytes == 4 * 8000 and first.results == 4000
    assert 4000 <= first.arena <= 3 * 4096
    assert "float32[1000]" in str(found) and "repeat: " in first.launches[-1].name
    assert "kernel" in first.launches[0].text


FORK = """
import os, sys
import dovetail as dt
name = sys.argv[1]
f = dt.jit(lambda x: dt.exp(x) * 2)
x = dt.ones(8, device=name)
want = f(x).tolist()
assert f(x).tolist() == want
child = os.fork()
if child == 0:
    try:
        print("same" if f(x).tolist() == want else "wrong", flush=True)
    except dt.DovetailError as error:
        print(type(error).__name__, error, flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
print("parent", f(x).tolist() == want, status)
"""


@pytest.mark.parametrize("name", ["reference", *(d for d in ("cpu", "opencl") if d in INSTALLED)])
def test_captured_function_works_after_a_fork(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK, name], capture_output=True, text=True, timeout=60,
        env=os.environ, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, last = done.stdout.strip().splitlines()
    assert last == "parent True 0"
    assert first == "same" if name != "opencl" else "spawn" in first
