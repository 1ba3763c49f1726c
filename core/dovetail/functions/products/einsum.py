"""`einsum`: sums of products over named axes, by `matmul`, `sum` and views, for any layout."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Literal, NamedTuple, TypeAlias

from ...argument_checks import integer, integers, refused, shown
from ...declarations import public
from ...dtypes import dtype as dtype_of
from ...errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from ...tensor.primitives import view
from ...tensor.promotion import PYTHON_NUMBERS, Operand, as_tensors
from ...tensor.tensor import Tensor
from ...tensor.writes import write_out
from ..creation.constructors import full
from ..datatypes import DTypeLike, cast, result_type
from ..elementwise.op_functions import multiply
from ..half_precision import widen_halves
from ..reductions.statistics import sum as sum_
from ..shape.manipulation import diagonal
from .matrix_products import matmul

__all__ = ["einsum"]

Path: TypeAlias = Sequence[Collection[int]]
Optimize: TypeAlias = (
    bool | str | tuple[str, int | None] | Sequence[Sequence[int] | Literal["einsum_path"]]
)

ELLIPSIS = "..."
SUBLIST_LABELS = ascii_uppercase + ascii_lowercase  # in alphabetical order
PATH_CACHE_MAX = 1024
PATH_ERROR_MESSAGE = "optimize must be a bool, an algorithm of opt_einsum or a path, got {}"
_ELLIPSIS_LABELS = "\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x10\x11\x12"  # labels of `...`


class Term(NamedTuple):
    """A tensor and a label for each of its axes."""

    labels: str
    tensor: Tensor


@public(widen=False)
def einsum(
    subscripts: str,
    /,
    *operands: Operand,
    optimize: Optimize = True,
    dtype: DTypeLike = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the sum of products that `subscripts` describe, as in NumPy: "ij,jk->ik" is a matmul.

    Labels that are not in the result are summed over; a label twice in one operand is its diagonal;
    "..." stands for the axes without a label. Without "->" the result has the labels that occur
    once, in alphabetical order. Of a sparse and a strided operand without a label to sum over, the
    result is sparse.

    Common forms:

        "bij,bjk->bik"        products of a batch of matrices
        "bhqd,bhkd->bhqk"     the scores of attention
        "ij->ji", "ij->j"     a transpose, the sums of columns
        "ii->i", "ii->"       a diagonal, a trace
        "i,j->ij", "i,i->"    an outer and an inner product
        "...i,ij->...j"       a linear layer without a bias

    - `subscripts`: the labels of each operand, then "->" and those of the result.
    - `operands`: a tensor, array, list or number for each group of labels.
    - `optimize`: which operands are contracted first. True takes opt_einsum's cheapest path for
      these sizes, False goes from left to right. The name of an algorithm of opt_einsum ("greedy",
      "optimal", "dp", ...), that name with a memory limit, and the path that `np.einsum_path`
      returns are accepted too.
    - `dtype`: the operands are cast to it first.

    Shapes: one label for each axis, none for a number. An axis of size 1 broadcasts against a
    larger axis with the same label.
    Dtypes: numbers, promoted, as for `matmul`; sums keep the dtype. A contraction of half precision
    that is not a single op is computed in float32 and rounded once.
    Order: each contraction of two operands is a `matmul`, and has its order. The path of three and
    more operands depends on their sizes.
    Raises: ArgumentError for subscripts that make no sense, ShapeError, DTypeError, DeviceError.
    See also: `matmul`, `tensordot`, `linalg.multi_dot`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1, 2], [3, 4]])
    >>> dt.einsum("ii", x).item(), dt.einsum("ij,kj->ik", x, x).tolist()
    (5, [[5, 11], [11, 25]])
    """
    terms, result = _parse_subscripts(subscripts, operands)
    if dtype is not None:
        chosen = dtype_of(dtype, "einsum")
        terms = [t._replace(tensor=cast(t.tensor, chosen)) for t in terms]
    sizes = _broadcast_sizes(subscripts, terms)
    terms = [_drop_broadcast_axes(_take_diagonals(t), sizes) for t in terms]
    path = _contraction_path(terms, result, sizes, optimize)
    evaluate = _evaluate if _is_one_op(terms, result) else _evaluate_in_float32
    value = evaluate(terms, result, path)
    return value if out is None else write_out("einsum", out, value)


def parse_sublists(*operands: Any) -> tuple[str, tuple[Any, ...]]:
    """Return the subscripts and operands of NumPy's other spelling: `x, [0, 1], y, [1, 2], [0, 2]`.

    Raises: ArgumentTypeError.
    """
    count = len(operands) // 2
    lists = [*operands[1 : 2 * count : 2], *operands[2 * count :]]
    texts = ["".join(map(_sublist_label, _require_sublist(given))) for given in lists]
    arrow = ("->", texts[count]) if len(texts) > count else ()
    return "".join((",".join(texts[:count]), *arrow)), operands[: 2 * count : 2]


def _require_sublist(labels: object) -> Sequence[object]:
    """Return an operand's list of labels unchanged. Raises: ArgumentTypeError for no list."""
    if not isinstance(labels, (list, tuple)):
        raise refused(
            "einsum", "the labels of an operand", "a list if no subscripts are given", labels
        )
    return labels


def _sublist_label(label: object) -> str:
    """Return the letter of an int label, A for 0, or "..." for an Ellipsis."""
    if label is ...:
        return ELLIPSIS
    return SUBLIST_LABELS[integer("einsum", label, "a label", 0, len(SUBLIST_LABELS) - 1)]


# --- order of contraction ------------------------------------------------------------------------


def _contraction_path(
    terms: Sequence[Term], result: str, sizes: Mapping[str, int], optimize: Optimize
) -> Path:
    """Return the positions of the terms that each step contracts; its result becomes the last."""
    algorithm = optimize if isinstance(optimize, (str, bool)) else None
    limit = None
    if isinstance(optimize, tuple) and len(optimize) == 2 and isinstance(optimize[0], str):
        algorithm, limit = optimize[0], integer("einsum", optimize[1], "the memory limit", 0)
    if algorithm is None or algorithm == "einsum_path":
        return _check_path(optimize, len(terms))
    if algorithm is False or (algorithm is True and len(terms) < 3):
        return ()
    name = "auto" if algorithm is True else algorithm
    return _search_path(tuple(t.labels for t in terms), result, (*sizes.items(),), name, limit)


def _check_path(path: object, count: int) -> Path:
    """Return the steps of a user's path.

    Raises: ArgumentTypeError for other objects than lists of ints, ArgumentError unless each step
    names distinct operands.
    """
    if not isinstance(path, (list, tuple)):
        raise ArgumentTypeError(f"einsum: {PATH_ERROR_MESSAGE.format(shown(path))}")
    steps = [integers("einsum", s, "optimize") for s in path[path[:1] == ["einsum_path"] :]]
    for step in steps:
        if len({*step}) < len(step) or not all(0 <= i < count for i in step) or not step:
            raise ArgumentError(
                f"einsum: each step of optimize={shown(path)} must name different operands "
                f"out of {count}, got {shown(step)}"
            )
        count += 1 - len(step)
    return steps


@lru_cache(PATH_CACHE_MAX)
def _search_path(
    labels: Sequence[str],
    result: str,
    sizes: Sequence[tuple[str, int]],
    name: str,
    limit: int | None,
) -> Path:
    """Return the path that opt_einsum's algorithm finds. Raises: ArgumentError if it is unknown."""
    from opt_einsum.paths import get_path_fn  # late: keeps `import dovetail` light

    try:
        search = get_path_fn(name)
    except KeyError:
        raise ArgumentError(f"einsum: {PATH_ERROR_MESSAGE.format(shown(name))}") from None
    return tuple(search([frozenset(t) for t in labels], frozenset(result), dict(sizes), limit))


# --- subscripts and operands ---------------------------------------------------------------------


def _as_tensors(operands: Sequence[Operand]) -> list[Tensor]:
    """Return operands as tensors of the promoted dtype. Raises: DTypeError for numbers alone."""
    arrays = [x for x in operands if not isinstance(x, PYTHON_NUMBERS)]
    if not arrays:
        raise DTypeError("einsum: at least one operand must be a tensor; use dt.asarray")
    tensors = as_tensors("einsum", *arrays)
    want = result_type(*tensors, *(x for x in operands if isinstance(x, PYTHON_NUMBERS)))
    arrays_left = iter(tensors)
    return [
        full((), x, dtype=want, device=tensors[0].device)
        if isinstance(x, PYTHON_NUMBERS)
        else cast(next(arrays_left), want)
        for x in operands
    ]


def _parse_subscripts(subscripts: str, operands: Sequence[Operand]) -> tuple[list[Term], str]:
    """Return a term for each operand, and the labels of the result."""
    if not isinstance(subscripts, str):
        raise refused("einsum", "subscripts", 'a string such as "ij,jk->ik"', subscripts)
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    labels_listed = left.split(",")
    if len(labels_listed) != len(operands):
        raise ArgumentError(
            f"einsum: {subscripts!r} names {len(labels_listed)} operands, got {len(operands)}"
        )
    tensors = _as_tensors(operands)
    terms = [_label_axes(subscripts, s, x) for s, x in zip(labels_listed, tensors, strict=True)]
    everything = "".join(t.labels for t in terms)
    hidden = "".join(h for h in reversed(_ELLIPSIS_LABELS) if h in everything)
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


def _label_axes(subscripts: str, labels: str, x: Tensor) -> Term:
    """Return an operand with one label per axis.

    Raises: ArgumentError for labels other than letters and one ellipsis, ShapeError unless they
    name each axis.
    """
    named = labels.replace(ELLIPSIS, "")
    if not (named.isalpha() or not named) or labels.count(ELLIPSIS) > 1:
        raise ArgumentError(
            "einsum: labels must be letters and at most one '...', "
            f"got {labels!r} in {subscripts!r}"
        )
    free = x.ndim - len(named)
    if free < 0 or (free and ELLIPSIS not in labels) or free > len(_ELLIPSIS_LABELS):
        raise ShapeError(f"einsum: labels must name each axis of shape {x.shape}, got {labels!r}")
    return Term(labels.replace(ELLIPSIS, _ELLIPSIS_LABELS[:free][::-1]), x)


def _broadcast_sizes(subscripts: str, terms: Sequence[Term]) -> dict[str, int]:
    """Return the size of each label. Raises: ShapeError where sizes other than 1 differ."""
    sizes: dict[str, int] = {}
    for labels, x in terms:
        for label, n in zip(labels, x.shape, strict=True):
            size = sizes.get(label, 1)
            if (n != size and 1 not in (n, size)) or x.shape[labels.index(label)] != n:
                other = size if size != n else x.shape[labels.index(label)]
                what = "'...'" if label in _ELLIPSIS_LABELS else repr(label)
                raise ShapeError(
                    f"einsum: sizes of {what} must be equal, "
                    f"got {other} and {n} in {subscripts!r} for shapes "
                    + " and ".join(str(t.tensor.shape) for t in terms)
                )
            sizes[label] = n if size == 1 else size
    return sizes


# --- one term ------------------------------------------------------------------------------------


def _drop_broadcast_axes(t: Term, sizes: Mapping[str, int]) -> Term:
    """Return the term without the axes of size 1 that broadcast: another term has their label."""
    labels = "".join(c for c, n in zip(t.labels, t.tensor.shape, strict=True) if n == sizes[c])
    return t if labels == t.labels else Term(labels, _expand_to(t, labels))


def _take_diagonals(t: Term) -> Term:
    """Return a term in which repeated labels are replaced by diagonals; each occurs once."""
    labels, x = t
    for label in sorted({c for c in labels if labels.count(c) > 1}):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            x = diagonal(x, 0, i, j)
            labels = labels[:i] + labels[i + 1 : j] + labels[j + 1 :] + label
    return Term(labels, x)


def _sum_over(t: Term, labels_kept: str) -> Term:
    """Sum a term over labels that are not kept, in the tensor's own dtype."""
    axes = tuple(i for i, c in enumerate(t.labels) if c not in labels_kept)
    if not axes:
        return t
    labels = "".join(c for c in t.labels if c in labels_kept)
    return Term(labels, sum_(t.tensor, axis=axes, dtype=t.tensor.dtype))


def _permute_to(t: Term, labels: str) -> Term:
    """Return the term as a view with its axes in the order of `labels`."""
    if t.labels == labels:
        return t
    return Term(labels, view(t.tensor, ("permute", tuple(t.labels.index(c) for c in labels))))


# --- several terms -------------------------------------------------------------------------------


def _is_one_op(terms: Sequence[Term], result: str) -> bool:
    """Return True if one sum, or one product of two terms as they are, gives the result."""
    if len(terms) != 2:
        return len(terms) == 1
    a, b = ({*t.labels} for t in terms)
    return (a ^ b) <= {*result}


def _evaluate(terms: Sequence[Term], result: str, path: Path) -> Tensor:
    """Return the sum of products, contracted along the path."""
    for step in path:
        chosen = [terms[i] for i in sorted(step)]
        terms = [t for i, t in enumerate(terms) if i not in step]
        terms.append(_contract(chosen, result + "".join(t.labels for t in terms)))
    return _permute_to(_contract(terms, result), result).tensor


_evaluate_in_float32 = widen_halves(_evaluate)


def _contract(terms: Sequence[Term], labels_kept: str) -> Term:
    """Return the product of the terms, left to right, summed over labels not in `labels_kept`."""
    first, *later = terms
    while later:
        second, *later = later
        first = _multiply_terms(first, second, labels_kept + "".join(t.labels for t in later))
    return _sum_over(first, labels_kept)


def _multiply_terms(a: Term, b: Term, labels_kept: str) -> Term:
    """Multiply two terms, and sum over the labels that no other term or result needs."""
    a, b = _sum_over(a, labels_kept + b.labels), _sum_over(b, labels_kept + a.labels)
    both = [c for c in a.labels if c in b.labels]
    batch = "".join(c for c in both if c in labels_kept)
    inner = "".join(c for c in both if c not in labels_kept)
    rows = "".join(c for c in a.labels if c not in both)
    columns = "".join(c for c in b.labels if c not in both)
    labels = batch + rows + columns
    if not inner:
        x = _expand_to(_permute_to(a, batch + rows), labels)
        return Term(labels, multiply(x, _expand_to(_permute_to(b, batch + columns), labels)))
    x = _merge_groups(_permute_to(a, batch + rows + inner), (batch, rows, inner))
    y = _merge_groups(_permute_to(b, batch + inner + columns), (batch, inner, columns))
    sizes = dict(zip(a.labels, a.tensor.shape, strict=True))
    sizes |= dict(zip(b.labels, b.tensor.shape, strict=True))
    return Term(labels, view(matmul(x, y), ("reshape", tuple(sizes[c] for c in labels))))


def _expand_to(t: Term, labels: str) -> Tensor:
    """Insert axes of size 1 for the labels that the term lacks."""
    sizes = dict(zip(t.labels, t.tensor.shape, strict=True))
    return view(t.tensor, ("reshape", tuple(sizes.get(c, 1) for c in labels)))


def _merge_groups(t: Term, groups: Sequence[str]) -> Tensor:
    """Merge each group of labels into one axis; an empty first group gives no axis."""
    sizes = dict(zip(t.labels, t.tensor.shape, strict=True))
    shape = tuple(math.prod(sizes[c] for c in g) for g in groups)
    return view(t.tensor, ("reshape", shape if groups[0] else shape[1:]))
