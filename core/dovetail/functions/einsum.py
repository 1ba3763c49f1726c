"""`einsum`: sums of products over named axes, made of `matmul`, `sum` and views; of any layout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ..arguments import named, refused
from ..errors import ArgumentError, DTypeError, ShapeError
from ..tensor.operands import PYTHON_NUMBERS, Operand, brought
from ..tensor.tensor import Tensor
from ..tensor.verbs import view
from ..tensor.writes import write_out
from .creation import full
from .datatypes import result_type
from .elementwise import multiply
from .linalg import matmul
from .manipulation import diagonal
from .statistics import sum as sum_

__all__ = ["einsum"]

ELLIPSIS = "..."
_HIDDEN = "\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x10\x11\x12"  # labels of `...`


class Term(NamedTuple):
    """A tensor and a label for each of its axes."""

    labels: str
    tensor: Tensor


@named(widen=False)
def einsum(subscripts: str, /, *operands: Operand, out: Tensor | None = None) -> Tensor:
    """The sum of products that `subscripts` describe, as in NumPy: "ij,jk->ik" is a matrix product.

    Labels that are not in the result are summed over; a label twice in one operand is its diagonal;
    "..." stands for the axes without a label. Without "->" the result has the labels that occur
    once, in alphabetical order. Of a sparse and a strided operand without a label to sum over, the
    result is sparse.
    Shapes: one label for each axis, none for a number; an axis of the result has the size of its
    label.
    Dtypes: numbers, promoted, as for `matmul`; sums keep the dtype.
    Order: operands are taken from left to right, two at a time, by `matmul`: a vendor routine's
    order, unless within `dt.reproducible()`.
    Raises: ArgumentError for subscripts that make no sense, ShapeError, DTypeError, DeviceError.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1, 2], [3, 4]], device="reference")
    >>> dt.einsum("ii", x).item(), dt.einsum("ij,kj->ik", x, x).tolist()
    (5, [[5, 11], [11, 25]])
    """
    terms, result = _parsed(subscripts, operands)
    _require_one_size(subscripts, terms)
    terms = [_without_repetition(t) for t in terms]
    while len(terms) > 1:
        first, second, *rest = terms
        wanted = result + "".join(t.labels for t in rest)
        terms = [_product(first, second, wanted), *rest]
    found = _ordered(_summed(terms[0], result), result).tensor
    return found if out is None else write_out("einsum", out, found)


# --- what is asked for ---------------------------------------------------------------------------


def _brought(operands: Sequence[Operand]) -> list[Tensor]:
    """Operands as tensors on one device; numbers take the others' dtype."""
    arrays = [x for x in operands if not isinstance(x, PYTHON_NUMBERS)]
    if not arrays:
        raise DTypeError("einsum: at least one operand has to be a tensor; see dt.asarray")
    tensors = brought("einsum", *arrays)
    rest = iter(tensors)
    return [
        full((), x, dtype=result_type(*tensors, x), device=tensors[0].device)
        if isinstance(x, PYTHON_NUMBERS)
        else next(rest)
        for x in operands
    ]


def _parsed(subscripts: str, operands: Sequence[Operand]) -> tuple[list[Term], str]:
    """A term for each operand, and the labels of the result."""
    if not isinstance(subscripts, str):
        raise refused("einsum", "subscripts", 'a word like "ij,jk->ik"', subscripts)
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    given = left.split(",")
    if len(given) != len(operands):
        raise ArgumentError(f"einsum: {subscripts!r} is for {len(given)} operands; {len(operands)}")
    tensors = _brought(operands)
    terms = [_term(subscripts, s, x) for s, x in zip(given, tensors, strict=True)]
    everything = "".join(t.labels for t in terms)
    hidden = "".join(h for h in reversed(_HIDDEN) if h in everything)
    if not arrow:
        once = sorted(c for c in set(everything) - set(hidden) if everything.count(c) == 1)
        return terms, hidden + "".join(once)
    result = right.replace(ELLIPSIS, hidden)
    if len(set(result)) < len(result) or not set(result) <= set(everything):
        raise ArgumentError(
            f"einsum: the result {right!r} of {subscripts!r} must name labels of the operands, "
            "each once"
        )
    return terms, result


def _term(subscripts: str, labels: str, x: Tensor) -> Term:
    named = labels.replace(ELLIPSIS, "")
    if not (named.isalpha() or not named) or labels.count(ELLIPSIS) > 1:
        raise ArgumentError(f"einsum: {labels!r} in {subscripts!r} is not letters and one '...'")
    free = x.ndim - len(named)
    if free < 0 or (free and ELLIPSIS not in labels) or free > len(_HIDDEN):
        raise ShapeError(f"einsum: {labels!r} does not name the axes of shape {x.shape}")
    return Term(labels.replace(ELLIPSIS, _HIDDEN[:free][::-1]), x)


def _require_one_size(subscripts: str, terms: Sequence[Term]) -> None:
    sizes: dict[str, int] = {}
    for labels, x in terms:
        for label, n in zip(labels, x.shape, strict=True):
            if sizes.setdefault(label, n) != n:
                what = "'...'" if label in _HIDDEN else repr(label)
                raise ShapeError(
                    f"einsum: {what} has sizes {sizes[label]} and {n} in {subscripts!r} of shapes "
                    + " and ".join(str(t.tensor.shape) for t in terms)
                )


# --- one term ------------------------------------------------------------------------------------


def _without_repetition(t: Term) -> Term:
    labels, x = t
    for label in sorted({c for c in labels if labels.count(c) > 1}):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            x = diagonal(x, 0, i, j)
            labels = labels[:i] + labels[i + 1 : j] + labels[j + 1 :] + label
    return Term(labels, x)


def _summed(t: Term, kept: str) -> Term:
    """Summed over labels that are not in `kept`, in the tensor's own dtype."""
    axes = tuple(i for i, c in enumerate(t.labels) if c not in kept)
    if not axes:
        return t
    labels = "".join(c for c in t.labels if c in kept)
    return Term(labels, sum_(t.tensor, axis=axes, dtype=t.tensor.dtype))


def _ordered(t: Term, labels: str) -> Term:
    if t.labels == labels:
        return t
    return Term(labels, view(t.tensor, ("permute", tuple(t.labels.index(c) for c in labels))))


# --- two terms -----------------------------------------------------------------------------------


def _product(a: Term, b: Term, wanted: str) -> Term:
    """The product, summed over the labels that nothing wants any more."""
    a, b = _summed(a, wanted + b.labels), _summed(b, wanted + a.labels)
    both = [c for c in a.labels if c in b.labels]
    batch = "".join(c for c in both if c in wanted)
    inner = "".join(c for c in both if c not in wanted)
    rows = "".join(c for c in a.labels if c not in both)
    columns = "".join(c for c in b.labels if c not in both)
    labels = batch + rows + columns
    if not inner:
        x = _grown(_ordered(a, batch + rows), labels)
        return Term(labels, multiply(x, _grown(_ordered(b, batch + columns), labels)))
    x = _folded(_ordered(a, batch + rows + inner), (batch, rows, inner))
    y = _folded(_ordered(b, batch + inner + columns), (batch, inner, columns))
    sizes = dict(zip(a.labels, a.tensor.shape, strict=True))
    sizes |= dict(zip(b.labels, b.tensor.shape, strict=True))
    return Term(labels, view(matmul(x, y), ("reshape", tuple(sizes[c] for c in labels))))


def _grown(t: Term, labels: str) -> Tensor:
    """With axes of size 1 for the labels that the term lacks."""
    sizes = dict(zip(t.labels, t.tensor.shape, strict=True))
    return view(t.tensor, ("reshape", tuple(sizes.get(c, 1) for c in labels)))


def _folded(t: Term, groups: Sequence[str]) -> Tensor:
    """Each group of labels as one axis; no axis for the first group if it is empty."""
    sizes = dict(zip(t.labels, t.tensor.shape, strict=True))
    shape = tuple(math.prod(sizes[c] for c in g) for g in groups)
    return view(t.tensor, ("reshape", shape if groups[0] else shape[1:]))
