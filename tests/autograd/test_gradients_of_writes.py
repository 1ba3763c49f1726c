"""Gradients of in-place writes have the same bits in each mode, and zeros keep their signs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import dovetail as dt
import pytest

DEVICES = [str(d) for d in dt.devices() if str(d) in ("cpu", "reference")]
VALUES = [[1.0, -1.0, 1.0, -1.0], [0.0, -0.0, 2.0, 3.0]]
OTHERS = [[0.5, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]
WEIGHTS = [[-1.0, -1.0, -0.0, -0.0], [-0.0, 0.0, -0.0, -0.0]]
MASK = [[True, False, True, False], [False, True, False, False]]
COLUMNS = [False, True, False, False]

KEYS: dict[str, Callable[[], Any]] = {
    "all": lambda: ...,
    "row": lambda: 0,
    "element": lambda: (0, 1),
    "slice of columns": lambda: (slice(None), slice(1, 3)),
    "reversed rows": lambda: slice(None, None, -1),
    "mask": lambda: dt.asarray(MASK),
    "mask of rows": lambda: dt.asarray([True, False]),
    "mask of columns": lambda: (slice(None), dt.asarray(COLUMNS)),
    "mask of columns in a slice": lambda: (slice(0, 1), dt.asarray(COLUMNS)),
    "ellipsis and mask": lambda: (..., dt.asarray(MASK)),
    "rows": lambda: dt.asarray([1, 0]),
    "points": lambda: (dt.asarray([1, 0]), dt.asarray([3, 1])),
    "columns": lambda: (slice(None), dt.asarray([3, 1])),
    "new axis": lambda: None,
}


def assignment(key: Callable[[], Any], value: Callable[[], Any]) -> Callable[[Any], Any]:
    return lambda x: x.__setitem__(key(), value())


WRITES: dict[str, Callable[[Any], Any]] = {
    **{f"number at {k}": assignment(key, lambda: 0.5) for k, key in KEYS.items()},
    **{f"tensor at {k}": assignment(key, lambda: dt.asarray(0.5)) for k, key in KEYS.items()},
    "masked_fill_": lambda x: x.masked_fill_(dt.asarray(MASK), 0.5),
    "fill_": lambda x: x.fill_(0.5),
    "copy_": lambda x: x.copy_(dt.asarray(OTHERS)),
    "copy_ of a row": lambda x: x[0].copy_(dt.asarray(OTHERS)[0]),
    "copy_ of columns": lambda x: x.mT.copy_(dt.asarray(OTHERS).mT),
    "mul_": lambda x: x.mul_(-1),
    "mul_ of a row": lambda x: x[0].mul_(-1),
    "putmask": lambda x: dt.putmask(x, dt.asarray(MASK), 0.5),
    "copyto": lambda x: dt.copyto(x, dt.asarray(OTHERS), where=dt.asarray(MASK)),
    "index_add_": lambda x: x.index_add_(0, dt.asarray([1, 0]), dt.asarray(OTHERS)),
}


@pytest.fixture(autouse=True, params=DEVICES)
def default_device(request: pytest.FixtureRequest) -> Iterator[None]:
    before = dt.default_device()
    dt.set_default_device(request.param)
    yield
    dt.set_default_device(before)


def gradient(write: Callable[[Any], Any], before: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the function of the gradient through a write; `before` gets the written tensor."""

    def loss(x: Any) -> Any:
        written = x * 1
        view = before(written)
        write(written)
        del view
        return (written * dt.asarray(WEIGHTS)).sum()

    return dt.func.grad(loss)


@pytest.mark.parametrize("name", WRITES)
def test_gradient_of_a_write_has_the_bits_of_eager_mode(name: str) -> None:
    write, x = WRITES[name], dt.asarray(VALUES)
    with dt.eager():
        want = repr(gradient(write, lambda t: None)(x).tolist())
    assert repr(gradient(write, lambda t: None)(x).tolist()) == want, "a pending tensor"
    assert repr(gradient(write, dt.evaluate)(x).tolist()) == want, "an evaluated tensor"
    assert repr(gradient(write, lambda t: t[0])(x).tolist()) == want, "a tensor with a view"
    assert repr(dt.jit(gradient(write, lambda t: None))(x).tolist()) == want, "a captured function"


def test_gradient_of_a_masked_write_keeps_the_signs_of_zeros() -> None:
    got = gradient(WRITES["number at mask"], lambda t: None)(dt.asarray(VALUES)).tolist()
    assert repr(got) == "[[0.0, -1.0, 0.0, -0.0], [-0.0, 0.0, -0.0, -0.0]]"
