"""Error messages without another test: the right class, the name of the op, and a remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest


def t(*shape: int) -> dt.Tensor:
    return dt.zeros(shape, device="reference")


def index(*values: int) -> dt.Tensor:
    return dt.asarray(values, device="reference")


CASES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: dt.Tensor(), TypeError, "use dt.asarray"),
    (lambda: t(2, 3).item(), ValueError, "item: expected a tensor with one element"),
    (lambda: bool(t(2)), ValueError, "ambiguous; use dt.any"),
    (lambda: [0][t(1)], TypeError, "index: expected one integer"),
    (lambda: len(t()), TypeError, "len: expected at least 1 dimension"),
    (lambda: dt.asarray([1], dtype="int8", device="reference") + 300, OverflowError, "int8"),
    (lambda: dt.broadcast_to(t(1), (3,)).add_(1), ValueError, "broadcast view"),
    (lambda: t(2).astype(dt.int32).add_(1.5), TypeError, "does not fit into int32"),
    (lambda: dt.device("no such name"), ValueError, "expected a device name"),
    (lambda: dt.zeros(2, device="reference:7"), ValueError, "no device"),
    (lambda: dt.cumulative_sum(3), TypeError, "expected a tensor"),  # type: ignore[arg-type]
    (lambda: dt.diff(t()), ValueError, "at least 1 dimension"),
    (lambda: dt.nonzero(t()), ValueError, "at least 1 dimension"),
    (lambda: dt.take(t(2, 2), index(0)), ValueError, "take: axis= must be given"),
    (lambda: t(3)[t(2)], TypeError, "integers or bool"),
    (lambda: dt.take(t(3), t(3).astype(dt.bool), axis=0), TypeError, "use x\\[mask\\]"),
    (lambda: dt.take_along_axis(t(2, 2), index(0), axis=0), ValueError, "must have 2 dimensions"),
    (lambda: t(3).__setitem__(0, "word"), TypeError, "cannot store a str"),
    (lambda: dt.matmul(t(2, 2), 3), TypeError, "expected tensors"),  # type: ignore[arg-type]
    (lambda: dt.unique(t(2, 5000), axis=0), NotImplementedError, "at most 4096 elements, got 5000"),
    (lambda: (t(2) * 1j).astype("float32"), TypeError, "use dt.real"),
    (lambda: float(t(1) * 1j), TypeError, "expected a real number"),
    (lambda: dt.random.permutation(t()), ValueError, "at least 1 dimension"),
    (lambda: dt.from_dlpack(object()), Exception, "dlpack"),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_error_names_the_problem_and_a_remedy(number: int) -> None:
    work, kind, words = CASES[number]
    with pytest.raises(kind, match=words):
        work()


@pytest.mark.parametrize(
    "work",
    [
        lambda x, y: x + y,
        lambda x, y: dt.matmul(x, y),
        lambda x, y: dt.searchsorted(x[0], y[0]),
        lambda x, y: x[y[0].astype(dt.int64)],
        lambda x, y: x.__setitem__(y > 0, 1.0),
        lambda x, y: x.add_(y),
    ],
)
def test_operands_on_two_devices_raise_and_name_both(
    work: Callable[[Any, Any], Any],
) -> None:
    pytest.importorskip("dovetail_cpu_llvm", reason="needs a second device")
    x, y = dt.zeros((2, 2), device="reference"), dt.zeros((2, 2), device="cpu")
    with pytest.raises(ValueError, match=r"cpu.*reference|reference.*cpu"):
        work(x, y)


def test_failed_write_changes_nothing(device: str) -> None:
    x = dt.asarray(np.arange(6.0).reshape(2, 3), device=device)
    before = x.tolist()
    for work in (
        lambda: x.__setitem__((slice(None), 0), dt.zeros(5, device=device)),
        lambda: x.add_(dt.zeros((3, 3), device=device)),
        lambda: dt.add(x, 1, out=dt.zeros((2, 3), dtype="float32", device=device)),
        lambda: x.__setitem__(dt.asarray([0, 9], device=device), 1.0),
    ):
        with pytest.raises((ValueError, TypeError, IndexError)):
            work()
            dt.evaluate(x)
    assert x.tolist() == before
