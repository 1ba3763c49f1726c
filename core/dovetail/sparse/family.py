"""What the layouts CSR, CSC and BSR say of each verb: what COO says of the same entries.

Nothing is computed to see a CSR matrix as COO, so the rules are COO's, and so are the bits. A CSC
matrix is seen as the transpose, with axes exchanged, so that nothing is sorted again. Of several
sparse operands the first decides which layout the result has. What is no matrix comes as COO, what
cannot be cut into blocks as CSR, and reductions are strided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dovetail as dt
from dovetail.extend import Op

from .block_products import times_strided
from .blocks import BSR, bsr_of, fits, hybrid, of_hybrid, swapped
from .compressed import CSC, CSR, csc, csc_of, csr, csr_of, turned
from .construct import to_dense
from .pattern import Pattern
from .products import times_vector
from .rows import row_sums
from .tensor import COO, Entries, coo

Tensor = dt.Tensor
Shape = tuple[int, ...]
Rule = Callable[..., Any]


def as_coo(x: Any) -> Any:
    """An operand, or a list of them, of which the sparse ones are COO."""
    if isinstance(x, (list, tuple)) and any(isinstance(a, Entries) for a in x):
        return [as_coo(a) for a in x]
    return x.as_coo() if isinstance(x, Entries) else x


def _like(first: Entries, found: Any) -> Any:
    """A result in the layout of the first operand, if it is a sparse matrix."""
    if not isinstance(found, COO) or found.ndim != 2 or isinstance(first, COO):
        return found
    if isinstance(first, CSC):
        return csc_of(found)
    if isinstance(first, BSR) and fits(found.shape, first.blocksize):
        return bsr_of(found, first.blocksize)
    return csr_of(found)


def _first(args: Sequence[Any]) -> Entries:
    flat = (t for a in args for t in (a if isinstance(a, (list, tuple)) else (a,)))
    return next(t for t in flat if isinstance(t, Entries))


def through_coo(rule: Rule) -> Rule:
    """COO's rule for operands of which some have another layout."""

    def run(*args: Any) -> Any:
        return _like(_first(args), rule(*map(as_coo, args)))

    return run


def mixed(rule: Rule) -> Rule:
    """A rule of COO that gets tensors of the other layouts, too."""
    run_mixed = through_coo(rule)

    def run(*args: Any) -> Any:
        return (run_mixed if _is_mixed(args) else rule)(*args)

    return run


def _is_mixed(args: Sequence[Any]) -> bool:
    for a in args:
        if isinstance(a, Entries) and not isinstance(a, COO):
            return True
        if isinstance(a, (list, tuple)) and _is_mixed(a):
            return True
    return False


# --- elementwise ---------------------------------------------------------------------------------


def elementwise(rule: Rule) -> Rule:
    """Of matrices by columns on their transposes, of matrices of equal blocks on the blocks."""
    plain = through_coo(rule)

    def run(op: Op, args: Sequence[Any], attrs: Any) -> Any:
        tensors = [a for a in args if isinstance(a, dt.Tensor)]
        first = _first(args)
        if isinstance(first, CSC) and all(isinstance(a, CSC) or not a.ndim for a in tensors):
            found = rule(op, [turned(a) if isinstance(a, CSC) else a for a in args], attrs)
            return csc(found.pattern, found.values())
        if isinstance(first, BSR) and _are_alike(first, tensors):
            found = rule(op, [hybrid(a) if isinstance(a, BSR) else a for a in args], attrs)
            return of_hybrid(found)
        return plain(op, args, attrs)

    return run


def _are_alike(first: BSR, tensors: Sequence[Tensor]) -> bool:
    return all(
        a.blocksize == first.blocksize and a.shape == first.shape if isinstance(a, BSR)
        else not a.ndim
        for a in tensors
    )  # fmt: skip


# --- reductions ----------------------------------------------------------------------------------

SUMS = ("sum", "mean", "count_nonzero")


def reduction(rule: Rule) -> Rule:
    """Reductions, of which none gives a sparse tensor: every row has an element."""

    def run(op: Op, x: Any, axes: Shape, keepdims: bool, attrs: Any) -> Any:
        quick = _by_rows(op, x, axes, attrs)
        if quick is None:
            found = rule(op, as_coo(x), axes, keepdims, attrs)
            return _strided(found) if axes else _like(x, found)
        return dt.expand_dims(quick, axis=axes[0]) if keepdims else quick

    return run


def _strided(found: Tensor) -> Tensor:
    return to_dense(found) if isinstance(found, COO) else found


def variance(rule: Rule) -> Rule:
    """The same of the variance."""

    def run(x: Any, axes: Shape, *rest: Any) -> Any:
        return _strided(rule(as_coo(x), axes, *rest))

    return run


def _by_rows(op: Op, x: Any, axes: Shape, attrs: Any) -> Tensor | None:
    """Sums along what is compressed: no host read, as how many rows there are is known."""
    along = (0,) if isinstance(x, CSC) else (1,)
    if op.name not in SUMS or axes != along or isinstance(x, BSR):
        return None
    n = x.shape[along[0]]
    if op.name == "mean" and not n:
        return None
    _, dtype = op.dtypes(op.name, [x.dtype], attrs)
    values, p = x.values(), x.pattern
    if op.name == "count_nonzero":
        values = dt.not_equal(values, 0)
    if op.name != "mean":
        return _row_sums(p, values.astype(dtype, copy=False))
    total = _row_sums(p, values.astype(dtype.compute, copy=False))
    return (total / float(n)).astype(dtype, copy=False)


def _row_sums(p: Pattern, values: Tensor) -> Tensor:
    if not p.count:
        return dt.zeros(p.shape[0], dtype=values.dtype, device=values.device)
    return row_sums(values, p.bounds)


# --- shapes --------------------------------------------------------------------------------------


def view(rule: Rule) -> Rule:
    """The transpose of rows is columns, and the other way round; slices stay what they are."""
    plain = through_coo(rule)

    def run(x: Any, move: tuple[Any, ...]) -> Any:
        if move[0] == "permute" and move[1] == (1, 0):
            if isinstance(x, CSR):
                return csc(x.pattern, x.values())
            return csr(x.pattern, x.values()) if isinstance(x, CSC) else swapped(x)
        if move == ("permute", (0, 1)) or (move[0] in ("expand", "reshape") and move[1] == x.shape):
            return x
        if isinstance(x, CSC) and move[0] == "slice":
            found = rule(turned(x), ("slice", *(part[::-1] for part in move[1:]))).coalesce()
            return csc(found.pattern, found.values())
        return plain(x, move)

    return run


def along(rule: Rule) -> Rule:
    """A rule of a tensor, or of several, and an axis: of matrices by columns the other one."""
    plain = through_coo(rule)

    def run(x: Any, axis: int, *rest: Any) -> Any:
        among = x if isinstance(x, (list, tuple)) else [x]
        if not all(isinstance(a, CSC) for a in among):
            return plain(x, axis, *rest)
        others = [turned(a) for a in among]
        found = rule(others if among is x else others[0], 1 - axis, *rest).coalesce()
        return csc(found.pattern, found.values())

    return run


def triangle(rule: Rule) -> Rule:
    """What is left of the last two axes: of matrices by columns the other side."""
    plain = through_coo(rule)

    def run(x: Any, k: int, upper: bool) -> Any:
        if not isinstance(x, CSC):
            return plain(x, k, upper)
        found = rule(turned(x), -k, not upper)
        return csc(found.pattern, found.values())

    return run


# --- products ------------------------------------------------------------------------------------


def matmul(rule: Rule) -> Rule:
    """Of two matrices of blocks: blocks as high as the first one's, as wide as the second's."""
    plain = through_coo(rule)

    def run(x1: Any, x2: Any) -> Any:
        if isinstance(x1, (CSR, CSC)):
            quick = times_vector(x1.pattern, isinstance(x1, CSC), x1.values(), x2)
            if quick is not None:
                return quick
        if isinstance(x1, BSR):
            quick = times_strided(x1.pattern, x1.values(), x2)
            if quick is not None:
                return quick
        if not (isinstance(x1, BSR) and isinstance(x2, BSR)):
            return plain(x1, x2)
        found = rule(as_coo(x1), as_coo(x2))
        return bsr_of(found, (x1.blocksize[0], x2.blocksize[1]))

    return run


# --- others --------------------------------------------------------------------------------------


def to_device(rule: Rule) -> Rule:
    """The same entries on another device."""

    def run(x: Any, device: dt.Device) -> Any:
        if isinstance(x, BSR):
            return of_hybrid(rule(hybrid(x), device))
        found = rule(coo(x.pattern, x.values()), device)
        return (csr if isinstance(x, CSR) else csc)(found.pattern, found.values())

    return run


def dense(x: Any) -> Tensor:
    """The same elements, strided."""
    if isinstance(x, CSC):
        return to_dense(turned(x)).mT
    return to_dense(as_coo(x))


def rules(coo: dict[str, Rule]) -> dict[str, Rule]:
    """The rules of these layouts, made of those of COO."""
    special: dict[str, Callable[[Rule], Rule]] = {
        "apply": elementwise, "reduce": reduction, "view": view, "concat": along,
        "softmax": along, "log_softmax": along, "sort": along, "triangle": triangle,
        "variance": variance, "to_device": to_device, "matmul": matmul,
    }  # fmt: skip
    found = {verb: special.get(verb, through_coo)(rule) for verb, rule in coo.items()}
    return {**found, "to_dense": dense}
