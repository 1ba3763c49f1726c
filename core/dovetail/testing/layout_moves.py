"""Layouts, level 4: functions that move elements: views, index arrays, joins, sorting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ..dtypes import DType, bool_, float32, int64
from ..functions.creation.constructors import tril, triu
from ..functions.indexing.index_reads import getitem
from ..functions.indexing.masks import nonzero
from ..functions.products import matrix_products
from ..functions.products.vector_products import kron
from ..functions.shape import copies
from ..functions.shape import manipulation as m
from ..functions.sorting.stable_sort import sort
from ..layout import Shape
from ..tensor import tensor as T
from ..tensor.host import from_host
from .layout import BASIC_SAMPLES, SAMPLES, VARIED_SAMPLES, LayoutKit, Sample
from .test_scalar_ops import param_id

Function = Callable[[T.Tensor], T.Tensor]
VIEWS: dict[str, tuple[str, Function, int]] = {
    "permute": ("permute_dims", lambda x: m.permute_dims(x, tuple(range(x.ndim))[::-1]), 0),
    "permute inner": ("permute_dims", lambda x: m.permute_dims(x, (0, 2, 1)), 3),
    "transpose": ("matrix_transpose", matrix_products.matrix_transpose, 2),
    "expand": ("broadcast_to", lambda x: m.broadcast_to(x, (3, *x.shape)), 0),
    "expand an axis": ("broadcast_to", lambda x: m.broadcast_to(x[:1], x.shape), 1),
    "slice": ("index", lambda x: x[1:3], 1),
    "slice every axis": ("index", lambda x: x[tuple(slice(1, None) for _ in x.shape)], 1),
    "slice with a step": ("index", lambda x: x[..., ::2], 1),
    "flip": ("flip", m.flip, 1),
    "slice of nothing": ("index", lambda x: x[2:2], 1),
    "an integer": ("index", lambda x: x[0], 1),
    "all integers": ("index", lambda x: x[(0,) * x.ndim], 1),
    "a new axis": ("index", lambda x: x[None, ..., None], 0),
    "flatten": ("reshape", lambda x: m.reshape(x, (-1,)), 0),
    "reshape": ("reshape", lambda x: m.reshape(x, (2, -1)), 1),
    "expand_dims": ("expand_dims", lambda x: m.expand_dims(x, axis=0), 0),
    "squeeze": ("squeeze", lambda x: m.squeeze(m.expand_dims(x, axis=0), axis=0), 0),
    "roll": ("roll", lambda x: copies.roll(x, 1, axis=0), 1),
}
# A layout knows the move, and not always which function asked for it.
MOVES = "index|getitem|slice|view|reshape|expand|permute|expand_dims|squeeze|roll|flip|concat"


def fits(name: str, s: Sample) -> bool:
    """Return True if the rank and the extents of a sample allow a view."""
    _, _, least = VIEWS[name]
    if name == "permute inner":
        return len(s.shape) == 3
    whole = "integer" in name or name == "expand an axis"
    if whole and 0 in s.shape:
        return False
    return len(s.shape) >= least and (
        name != "reshape" or int(np.prod(s.shape)) % 2 == 0 < s.shape[0]
    )


@pytest.mark.parametrize("d", (float32, int64, bool_), ids=param_id)
@pytest.mark.parametrize("name", VIEWS)
def test_views(kit: LayoutKit, name: str, d: DType) -> None:
    """Check a view, such as a slice or a permutation, on all samples that it fits."""
    op, f, _ = VIEWS[name]
    for s in kit.samples(SAMPLES if d is float32 else VARIED_SAMPLES, d):
        if fits(name, s):
            kit.check_rule("view", f"{op}|{MOVES}", f, [(s.array(d), d, True)], f"{name} of {s}")
    kit.comparisons += 1  # it may hold no sample of such a shape


def array(values: Any, on: Any) -> T.Tensor:
    """Copy numbers to an int64 tensor on `on`."""
    return from_host(np.asarray(values, np.int64), int64, on)


INDICES: dict[str, tuple[Function, int]] = {
    "rows": (lambda x: x[array([2, 0, 2, -1], x.device)], 1),
    "columns": (lambda x: x[:, array([2, 0, 2, -1], x.device)], 2),
    "pairs": (lambda x: x[array([2, 0], x.device), array([1, 1], x.device)], 2),
    "a matrix of rows": (lambda x: x[array([[2, 0], [1, 1]], x.device)], 1),
    "no rows": (lambda x: x[array([], x.device)], 1),
    "rows of a slice": (lambda x: x[1:, array([0, 1], x.device)], 2),
    "a mask of rows": (
        lambda x: x[from_host(np.arange(x.shape[0]) % 2 == 0, bool_, x.device)],
        1,
    ),
}


@pytest.mark.parametrize("name", INDICES)
def test_index_arrays(kit: LayoutKit, name: str) -> None:
    """Check reads with integer index arrays and masks."""
    f, least = INDICES[name]
    for s in kit.samples(VARIED_SAMPLES):
        if len(s.shape) >= least and 0 not in s.shape:
            kit.check_rule(
                "index",
                "index|getitem|take",
                f,
                [(s.array(float32), float32, True)],
                f"{name} of {s}",
            )
    kit.comparisons += 1


def test_take(kit: LayoutKit) -> None:
    """Check that x[[3, 0, 3]] reads rows, one of them twice."""
    at = np.array([3, 0, 3])
    for s in kit.samples(BASIC_SAMPLES):
        kit.check_rule(
            "index",
            "index|getitem|take",
            lambda x: getitem(x, array(at, x.device)),
            [(s.array(float32), float32, True)],
            f"rows 3, 0, 3 of {s}",
        )


@pytest.mark.parametrize("axis", (0, 1, -1))
@pytest.mark.parametrize("d", (float32, int64), ids=param_id)
def test_concat(kit: LayoutKit, d: DType, axis: int) -> None:
    """Check concat of three tensors in the layout along an axis."""
    for s in kit.samples(VARIED_SAMPLES, d):
        if -len(s.shape) <= axis < len(s.shape):
            arrays = [(s.array(d, k), d, True) for k in range(3)]
            kit.check_rule(
                "concat",
                "concat",
                lambda *xs: copies.concat(xs, axis=axis),
                arrays,
                f"three of {s} along {axis}",
            )


def test_stack(kit: LayoutKit) -> None:
    """Check stack of two tensors in the layout along a new first axis."""
    for s in kit.samples():
        arrays = [(s.array(float32, k), float32, True) for k in range(2)]
        verb = "concat" if kit.has_rule("view") else "view"
        kit.check_rule(
            verb,
            "stack|concat|expand_dims",
            lambda *xs: copies.stack(xs, axis=0),
            arrays,
            f"two of {s}",
        )


@pytest.mark.parametrize("offset", (0, 1, -2, 9))
def test_diagonals(kit: LayoutKit, offset: int) -> None:
    """Check a diagonal, also one outside of the matrix."""
    shapes: tuple[Shape, ...] = ((6, 6), (4, 7), (3, 5, 5), (3, 4, 5))
    for s in (s for s in kit.samples(SAMPLES) if s.shape in shapes):
        kit.check_rule(
            "diagonal",
            "diagonal",
            lambda x: m.diagonal(x, offset=offset),
            [(s.array(float32), float32, True)],
            f"diagonal {offset} of {s}",
        )


@pytest.mark.parametrize("k", (0, 1, -2))
@pytest.mark.parametrize("f", (tril, triu), ids=lambda f: f.__name__)
def test_triangles(kit: LayoutKit, f: Callable[..., T.Tensor], k: int) -> None:
    """Check tril and triu at a diagonal."""
    for s in (s for s in kit.samples(VARIED_SAMPLES) if len(s.shape) > 1):
        kit.check_rule(
            "triangle",
            f.__name__,
            lambda x: f(x, k),
            [(s.array(float32), float32, True)],
            f"{f.__name__} {k} of {s}",
        )


def test_nonzero(kit: LayoutKit) -> None:
    """Check the indices of nonzero elements, in order."""
    for s in (s for s in kit.samples(VARIED_SAMPLES) if s.shape):
        kit.check_rule(
            "nonzero",
            "nonzero",
            lambda x: copies.stack(nonzero(x)),
            [(s.array(float32), float32, True)],
            f"where {s} is not zero",
        )


@pytest.mark.parametrize("descending", (False, True), ids=("ascending", "descending"))
@pytest.mark.parametrize("axis", (0, -1))
@pytest.mark.parametrize("d", (float32, int64), ids=param_id)
def test_sort(kit: LayoutKit, d: DType, axis: int, descending: bool) -> None:
    """Check sorted values along an axis."""
    for s in (s for s in kit.samples(VARIED_SAMPLES, d) if s.shape):
        kit.check_rule(
            "sort",
            "sort",
            lambda x: sort(x, axis=axis, descending=descending),
            [(s.array(d), d, True)],
            f"{s} along {axis} in order",
        )


@pytest.mark.parametrize("first", (True, False), ids=("layout first", "strided first"))
@pytest.mark.parametrize("ours", (True, False), ids=("both", "one"))
def test_kron(kit: LayoutKit, ours: bool, first: bool) -> None:
    """Check `kron` of two tensors in the layout, or of one and a strided one."""
    for s in (s for s in kit.samples() if len(s.shape) == 2):
        other = Sample("full", s.shape) if not ours else s
        pair = [(s.array(float32), float32, True), (other.array(float32, 1), float32, ours)]
        kit.check_rule("kron", "kron", kron, pair if first else pair[::-1], f"kron of {s}")
