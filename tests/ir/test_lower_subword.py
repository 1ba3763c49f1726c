"""Elements of one and two bytes in 32-bit words."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import limited
import numpy as np
import pytest
from dovetail.backend.reference import interpret
from dovetail.dtypes import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    int8,
    int16,
    int32,
    uint8,
    uint16,
    uint32,
)
from dovetail.errors import ArgumentError
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.language import Atomic, Store, cast, const, load, walk
from dovetail.ir.legalize import legalize
from dovetail.ir.target import Capabilities
from dovetail.ir.verify import verify

PACKED = Capabilities(storage_bits=32, offset_alignment=4)
NARROW = (bool_, int8, uint8, int16, uint16)


def host(d: DType) -> np.dtype[Any]:
    assert d.__numpy_dtype__ is not None
    return d.__numpy_dtype__


def legal(kernel: Kernel) -> Kernel:
    made = legalize(kernel, PACKED)
    verify(made)
    assert all(b.dtype.itemsize >= 4 for b in made.buffers) and made.before is not None
    return made


def stepped(d: DType) -> Kernel:
    """Build out[s * i + 1] = x[i] (or its opposite) if i % 5 is not 3, plus its previous value."""
    b = KernelBuilder("stepped")
    x, out = b.buffer("x", d, "r"), b.buffer("out", d, "rw")
    n, s = b.int("n"), b.int("s")
    i = b.axis(n)
    v = load(x, i, i < n - 1)
    held = load(out, i * s + 1)
    b.store(out, i * s + 1, held ^ v if d is bool_ else held + v * 3, i < n - 2)
    return b.build()


@pytest.mark.parametrize("step", (1, 2, 3, -1, -2))
@pytest.mark.parametrize("d", NARROW, ids=lambda d: d.name)
def test_store_keeps_neighbors_in_its_word(d: DType, step: int) -> None:
    kernel = stepped(d)
    made = legal(kernel)
    assert made.ints == ("n", "s", "at0", "at1")
    assert {s.op for s in walk(made.body) if isinstance(s, Atomic)} == {"and", "or"}
    assert not [s for s in walk(made.body) if isinstance(s, Store)]
    rng = np.random.default_rng(3)
    for at in range(4 // d.itemsize):
        x = rng.integers(0, 256, 400, np.uint8).view(host(d) if d is not bool_ else "u1")
        x = (x & 1).view(bool) if d is bool_ else x
        y = x[::-1].copy()
        n, first = 30, at + 100
        whole = [x.copy(), y.copy()]
        words = [x.copy().view("u4"), y.copy().view("u4")]
        interpret(kernel, whole, [n, step], [], [n], [first, first])
        count = 4 // d.itemsize
        origins = [first // count] * 2
        interpret(made, words, [n, step, first % count, first % count], [], [n], origins)
        assert words[1].tobytes() == whole[1].tobytes() != y.tobytes()
        assert words[0].tobytes() == x.tobytes()


@pytest.mark.parametrize("d", (float16, bfloat16), ids=lambda d: d.name)
def test_halves_are_converted_in_integers_in_packed_memory(d: DType) -> None:
    b = KernelBuilder("halves")
    x, out = b.buffer("x", d, "r"), b.buffer("out", float32, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, cast(load(x, i), float32))
    made = legalize(b.build(), Capabilities(
        storage_bits=32, offset_alignment=4, native_halves=frozenset((d,))))  # fmt: skip
    verify(made)
    assert [y.dtype for y in made.buffers] == [uint32, float32]


@pytest.mark.parametrize("d", (int8, uint16), ids=lambda d: d.name)
@pytest.mark.parametrize("op", ["add", "min", "max", "and", "or"])
def test_packed_atomics(op: str, d: DType) -> None:
    """Bitwise ones become atomics of the word; others serialize the points."""
    b = KernelBuilder("k")
    x, out = b.buffer("x", d, "r"), b.buffer("out", d, "rw")
    i = b.axis(b.int("n"))
    b.effect(Atomic(op, out, const(3, dt.int64), load(x, i), i < 90))
    kernel = b.build()
    made = legal(kernel)
    assert (made.grid == ()) == (op not in ("and", "or"))
    x_ = np.random.default_rng(1).integers(0, 256, 400, np.uint8).view(host(d))
    found, expected = np.full(8, 77, host(d)), np.full(8, 77, host(d))
    interpret(made, [x_.view("u4"), found.view("u4")], [100, 0, 0], [], [100] if made.grid else [])
    interpret(kernel, [x_, expected], [100], [], [100])
    assert found.tolist() == expected.tolist()


def test_memory_of_partial_words_is_copied() -> None:
    device = limited.Packed.device()
    whole, part = np.arange(8, dtype=np.int8), np.arange(7, dtype=np.int8)
    shared, copied = dt.asarray(whole, device=device, copy=False), dt.asarray(part, device=device)
    whole[0] = part[0] = 9
    assert shared.tolist()[0] == 9 and copied.tolist() == [*range(7)]
    assert (copied + 1).tolist() == [*range(1, 8)]
    with pytest.raises(ValueError, match="copy"):
        dt.asarray(part, device=device, copy=False)


def test_storage_bits_and_alignment_must_agree() -> None:
    for wrong in ({"storage_bits": 32}, {"storage_bits": 16}):
        with pytest.raises(ArgumentError, match="storage_bits must be 8, or 32"):
            Capabilities(**wrong)  # type: ignore[arg-type]  # by name


def test_kernels_without_small_elements_are_unchanged() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", int32, "r"), b.buffer("out", float32, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, cast(load(x, i), float32))
    assert legalize(b.build(), PACKED).before is None
