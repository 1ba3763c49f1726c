"""`dt.save_function` and `dt.load_function`: a loaded function does the same and runs no other
code.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from captured import bits, device, vector
from dovetail.capture.serialize import DIGEST_BYTES, MAGIC

__all__ = ["device"]


def saved_and_loaded(f: Any, path: Path, *args: Any, **options: Any) -> Any:
    """Return a captured function from a file, after a capture for these arguments."""
    captured = dt.jit(f)
    captured(*args, **options)
    dt.save_function(captured, path / "f")
    return dt.load_function(path / "f")


WEIGHT = np.random.default_rng(7).normal(size=8).astype(np.float32)


def test_saved_function_computes_the_same(device: dt.Device, tmp_path: Path) -> None:
    w = dt.asarray(WEIGHT)

    def f(x: dt.Tensor, n: int, rate: float, more: Any) -> Any:
        for _ in range(n):
            x = dt.tanh(x * w) * (rate / 2) + more["shift"]
            dt.evaluate(x)
        table = dt.asarray([1.0, 2.0])
        return {"x": x, "sums": [x.sum(), (table * 2, x[::2])]}, n, None, rate + 1

    args = (vector(), 3, 0.5, {"shift": vector(seed=1)})
    g = saved_and_loaded(f, tmp_path, *args)
    for seed in range(3):
        args = (vector(seed=seed), 3, 0.1 * seed + 0.3, {"shift": vector(seed=seed + 5)})
        assert bits(g(*args)) == bits(f(*args))


def test_writes_and_state_are_replayed(device: dt.Device, tmp_path: Path) -> None:
    state = vector(seed=3)

    def f(x: dt.Tensor) -> Any:
        state.add_(x)
        x[1:] = state[:-1]
        return x[2:], x

    g = saved_and_loaded(f, tmp_path, vector())
    x, y = vector(seed=1), vector(seed=1)
    for _ in range(3):
        got, want = g(x), f(y)
        assert bits(got) == bits(want) and bits(x) == bits(y)
        assert got[1] is x and got[0].storage() is x.storage()


def test_loops_branches_and_random_numbers_are_saved(device: dt.Device, tmp_path: Path) -> None:
    w = dt.asarray(WEIGHT)

    def f(x: dt.Tensor, n: dt.Tensor) -> Any:
        x = dt.fori_loop(0, 5, lambda i, x: x * w + i, x)
        y = dt.fori_loop(0, n, lambda i, x: x + dt.random.uniform(8), x)
        z = dt.while_loop(lambda c: c[1] < 7, lambda c: (c[0] * 0.5, c[1] + 1), (y, 2))[0]
        total, rows = dt.scan(lambda c, v: (c + v, c * v), dt.zeros(8), dt.stack([x, y, z]))
        return dt.cond(total.sum() > 0, lambda: total, lambda: rows[1]), rows, dt.random.normal(3)

    g = saved_and_loaded(f, tmp_path, vector(), dt.asarray(3))
    for n in (0, 1, 4):
        dt.random.manual_seed(n)
        want = bits(f(vector(seed=n), dt.asarray(n)))
        dt.random.manual_seed(n)
        assert bits(g(vector(seed=n), dt.asarray(n))) == want


def test_products_and_gathers_are_saved(device: dt.Device, tmp_path: Path) -> None:
    def f(a: dt.Tensor, i: dt.Tensor) -> Any:
        return a @ a.T, dt.take(dt.reshape(a, (16,)), i) * 2

    a, i = dt.reshape(vector(16), (4, 4)), dt.asarray([3, 0, 1])
    g = saved_and_loaded(f, tmp_path, a, i)
    assert bits(g(a, i)) == bits(f(a, i))
    with pytest.raises(dt.OutOfRangeError):
        g(a, i + 13)[1].tolist()


def test_captures_of_each_kind_of_arguments_are_saved(tmp_path: Path) -> None:
    f = dt.jit(lambda x, n: x * n)
    for n in (2, 3):
        for size in (4, 5):
            f(dt.ones(size, device="reference"), n)
    dt.save_function(f, tmp_path / "f")
    g = dt.load_function(tmp_path / "f")
    assert g(dt.ones(5, device="reference"), 3).tolist() == [3.0] * 5
    for bad in (
        (dt.ones(6, device="reference"), 3),
        (dt.ones(5, device="reference"), 4),
        (dt.ones(5, device="cpu"), 3),
        (dt.ones(5, device="reference").requires_grad_(), 3),
        (1,),
    ):
        with pytest.raises(
            dt.CaptureError, match=r"from a file: the arguments must be.*float32\[5\].*save it"
        ):
            g(*bad)


def test_saved_function_runs_on_another_device(tmp_path: Path) -> None:
    f = dt.jit(lambda x: dt.exp(x).sum() * dt.asarray(WEIGHT, device=x.device))
    x = dt.asarray(WEIGHT, device="reference")
    f(x)
    dt.save_function(f, tmp_path / "f")
    g = dt.load_function(str(tmp_path / "f"), device="cpu")
    assert bits(g(x.to("cpu"))) == bits(f(x))


# --- unsupported functions

DRAWN = dt.random.default_rng(3)


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (lambda x: dt.sort(x), "positions from data"),
        (
            lambda x: x.reshape((4, 2))[:, dt.asarray([1, 0], device=x.device)],
            "positions from data",
        ),
        (lambda x: {1: x}, "strings as keys"),
        (lambda x: (x, object()), "got object"),
        (
            lambda x: dt.random.default_rng(3).uniform(8, device=x.device),
            "default random generator",
        ),
    ],
)
def test_function_that_cannot_be_saved_raises(
    f: Callable[[Any], Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(dt.CaptureError, match=said):
        saved_and_loaded(f, tmp_path, dt.ones(8, device="reference"))
    assert not (tmp_path / "f").exists()


def test_saving_a_function_without_a_capture_raises(tmp_path: Path) -> None:
    with pytest.raises(dt.CaptureError, match="call it first"):
        dt.save_function(dt.jit(lambda x: x), tmp_path / "f")
    with pytest.raises(dt.CaptureError, match=r"expected a function of dt\.jit, got function"):
        dt.save_function(lambda x: x, tmp_path / "f")
    w = dt.ones(3, device="reference").requires_grad_()
    f = dt.jit(lambda x: (w * x).sum().backward())
    f(dt.ones(3, device="reference"))
    with pytest.raises(dt.CaptureError, match="gradients"):
        dt.save_function(f, tmp_path / "f")


# --- foreign files


@pytest.fixture
def written_file(tmp_path: Path) -> bytes:
    w = dt.asarray(WEIGHT, device="reference")
    saved_and_loaded(
        lambda x, i: dt.fori_loop(0, 3, lambda k, c: c * w + k, dt.take(x, i)) + 1,
        tmp_path, dt.asarray(WEIGHT, device="reference"), dt.asarray([1] * 8, device="reference"),
    )  # fmt: skip
    return (tmp_path / "f").read_bytes()


def load(data: bytes, path: Path) -> Any:
    (path / "g").write_bytes(data)
    return dt.load_function(path / "g")


def test_truncated_or_changed_file_raises(written_file: bytes, tmp_path: Path) -> None:
    for n in (
        0,
        10,
        len(MAGIC),
        len(MAGIC) + DIGEST_BYTES,
        len(MAGIC) + DIGEST_BYTES + 9,
        len(written_file) - 1,
    ):
        with pytest.raises(dt.CaptureError, match=r"truncated|not written by"):
            load(written_file[:n], tmp_path)
    at = random.Random(3)
    for _ in range(50):
        k = at.randrange(len(MAGIC), len(written_file))
        with pytest.raises(dt.CaptureError, match="changed"):
            load(written_file[:k] + bytes([written_file[k] ^ 1]) + written_file[k + 1 :], tmp_path)
    for foreign in (b"", b"PK\x03\x04", b"\x80\x05", json.dumps({"name": "f"}).encode()):
        with pytest.raises(dt.CaptureError, match="not written by"):
            load(foreign, tmp_path)
    with pytest.raises(FileNotFoundError):
        dt.load_function(tmp_path / "nothing")


def edited(data: bytes, change: Callable[[Any], object]) -> bytes:
    """Return the file with other contents and their valid digest."""
    begin = len(MAGIC) + DIGEST_BYTES
    size = int.from_bytes(data[begin : begin + 8], "little")
    content = json.loads(data[begin + 8 : begin + 8 + size])
    change(content)
    text = json.dumps(content).encode()
    rest = len(text).to_bytes(8, "little") + text + data[begin + 8 + size :]
    return MAGIC + hashlib.sha256(rest).digest() + rest


def acts(content: Any, kind: str) -> list[Any]:
    return [a for a in content["captures"][0]["program"][5] if a[0] == kind]


def longer_grid(c: Any) -> None:
    launch = acts(c, "launch")[0]
    step = launch[1]
    step[1] = [n * 1000 for n in step[1]]
    step[2] = [n * 1000 for n in step[2]]


def far_place(c: Any) -> None:
    acts(c, "launch")[0][2][0][1] += 1 << 20


def no_mask(c: Any) -> None:
    c["kernels"] = [t.replace(" if v", " if not_v") for t in c["kernels"]]


def unmasked(c: Any) -> None:
    c["kernels"] = [
        "\n".join(line.split(" if ")[0] for line in t.split("\n")) for t in c["kernels"]
    ]


CHANGES: dict[str, Callable[[Any], object]] = {
    "a longer grid": longer_grid,
    "another place": far_place,
    "a kernel that is none": no_mask,
    "a gather without its mask": unmasked,
    "no kernels": lambda c: c.update(kernels=[]),
    "a larger result": lambda c: c["captures"][0]["results"][0][2].__setitem__(0, [1 << 20]),
    "a smaller arena": lambda c: c["captures"][0]["program"].__setitem__(4, 8),
    "fewer results": lambda c: c["captures"][0]["program"].__setitem__(3, []),
    "a smaller argument": lambda c: c["captures"][0]["arguments"][1][1].__setitem__(0, [2]),
    "a loop over nothing": lambda c: acts(c, "repeat")[0].__setitem__(4, [["x"]]),
    "a device that is none": lambda c: c["captures"][0].update(device="no device"),
    "a result without memory": lambda c: c["captures"][0].update(
        returned=["tensor", [[8], "float32"], [1]]
    ),
    "a static result": lambda c: c["captures"][0].update(returned=["static", 1]),
    "an unknown act": lambda c: acts(c, "launch")[0].__setitem__(0, "system"),
    "no captures": lambda c: c.pop("captures"),
    "an index of a variable": lambda c: acts(c, "repeat")[0].__setitem__(3, 99),
    "a formula": lambda c: c["captures"][0].update(formulas=[[0, "system", []]]),
}


def copy_with_memory_of_its_own(c: Any) -> None:
    """Give a copy two slots: a third is out of bounds, and the second belongs to another."""
    acts(c, "repeat")[0][4][0][3][2] = [0]  # the weight's memory is large enough


CHANGES["a copy with memory of its own"] = copy_with_memory_of_its_own


@pytest.mark.parametrize("what", CHANGES)
def test_edited_file_raises(what: str, written_file: bytes, tmp_path: Path) -> None:
    load(edited(written_file, lambda c: None), tmp_path)
    with pytest.raises(dt.CaptureError, match=r"has invalid content|kernel that is none") as raised:
        load(edited(written_file, CHANGES[what]), tmp_path)
    assert "save_function" not in str(raised.value)


def test_product_with_a_result_of_another_dtype_raises(tmp_path: Path) -> None:
    x = dt.ones((4, 4), dtype=dt.float64, device="cpu")
    saved_and_loaded(lambda x: x @ x, tmp_path, x)
    written_file = (tmp_path / "f").read_bytes()
    load(written_file, tmp_path)

    def halve(c: Any) -> None:
        acts(c, "call")[0][4][3] = "float32"

    with pytest.raises(dt.CaptureError, match="does not fit its operands"):
        load(edited(written_file, halve), tmp_path)


@pytest.mark.parametrize("number", [float("nan"), 3.0, 1 << 63, None, "3"])
def test_scalar_that_its_dtype_cannot_hold_raises(number: object, tmp_path: Path) -> None:
    saved_and_loaded(lambda x: x * 3, tmp_path, dt.arange(4, device="reference"))
    written_file = (tmp_path / "f").read_bytes()

    def replace(c: Any) -> None:
        acts(c, "launch")[0][3][0][0] = number

    with pytest.raises(dt.CaptureError, match="has invalid content"):
        load(edited(written_file, replace), tmp_path)


def test_deeply_nested_file_raises(written_file: bytes, tmp_path: Path) -> None:
    text = b"[" * 100_000
    rest = len(text).to_bytes(8, "little") + text
    with pytest.raises(dt.CaptureError, match="has invalid content"):
        load(MAGIC + hashlib.sha256(rest).digest() + rest, tmp_path)

    def nest(c: Any) -> None:
        arguments = c["captures"][0]["arguments"]
        for _ in range(300):
            arguments = ["list", arguments]
        c["captures"][0]["arguments"] = arguments

    with pytest.raises(dt.CaptureError, match=r"of a captured kind|has invalid content"):
        load(edited(written_file, nest), tmp_path)(dt.ones(8, device="reference"))


def test_file_of_another_format_raises(written_file: bytes, tmp_path: Path) -> None:
    with pytest.raises(dt.CaptureError, match=r"another version of dt\.save_function"):
        load(written_file.replace(MAGIC, b"dovetail: a captured function, 2\n", 1), tmp_path)


def test_random_edits_raise_or_stay_in_their_memory(written_file: bytes, tmp_path: Path) -> None:
    x = dt.asarray(WEIGHT, device="reference")
    i = dt.asarray([1] * 8, device="reference")

    def change(c: Any, at: random.Random) -> None:
        while isinstance(c, list | dict) and c:
            key = at.choice(list(c)) if isinstance(c, dict) else at.randrange(len(c))
            if not isinstance(c[key], list | dict) or at.random() < 0.05:
                c[key] = at.choice([0, 1, -1, 7, 1 << 40, None, "x", [], 2.5])
                return
            c = c[key]

    for seed in range(150):
        at = random.Random(seed)
        try:
            load(edited(written_file, lambda c, at=at: change(c, at)), tmp_path)(x, i)  # type: ignore[misc]
        except dt.DovetailError:
            pass
        except OSError:
            raise AssertionError(seed) from None
    assert x.tolist() == WEIGHT.tolist()
