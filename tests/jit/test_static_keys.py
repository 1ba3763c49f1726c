"""Rule 4 of captures: static arguments are compared by type and bits."""

from __future__ import annotations

import dataclasses
from typing import Any

import dovetail as dt
import numpy as np
import pytest


@dataclasses.dataclass(frozen=True)
class Options:
    value: Any
    label: str = dataclasses.field(default="", compare=False)


PAIRS = [
    (0.0, -0.0), ((True,), (1,)), (1, True), (1.0, 1), (0.0, 0), (1, 1.0), ("1", 1), (2, 2 + 0j),
    (0j, complex(0.0, -0.0)), (frozenset([1]), frozenset([True])), (((0.0,),), ((-0.0,),)),
    (np.complex64(0), np.complex64(complex(0.0, -0.0))), (np.int32(1), np.int64(1)),
    (np.timedelta64(1, "s"), np.timedelta64(1, "h")),
    (np.datetime64(1, "D"), np.datetime64(1, "s")),
    (Options(0.0), Options(-0.0)), (Options((True,)), Options((1,))),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_static_arguments_that_compare_equal_have_different_keys(
    device: dt.Device, first: Any, second: Any
) -> None:
    texts = [repr(first), repr(second)]
    f = dt.jit(lambda x, k: x + texts.index(repr(k)), static_argnames="k")
    x = dt.zeros(())
    assert [f(x, k).item() for k in (first, second, first, second)] == [0.0, 1.0, 0.0, 1.0]
    assert f.captures == 2


def test_nan_has_one_key(device: dt.Device) -> None:
    f = dt.jit(lambda x, k: x + 1, static_argnames="k")
    for _ in range(3):
        f(dt.zeros(()), float("nan"))
    assert f.captures == 1


def test_fields_excluded_from_comparison_are_not_part_of_the_key(device: dt.Device) -> None:
    f = dt.jit(lambda x, k: x + k.value, static_argnames="k")
    for label in ("a", "b"):
        assert f(dt.zeros(()), Options(2.0, label)).item() == 2.0
    assert f.captures == 1
