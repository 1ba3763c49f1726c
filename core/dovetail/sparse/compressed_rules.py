"""Rules of the layouts CSR, CSC and BSR, derived from those of COO.

A CSR matrix becomes COO without any computation, so COO's rules apply and give the same bits. For a
CSC matrix the rules run on its transpose with axes exchanged, so nothing is sorted again. The first
sparse operand decides the layout of the result. A result that is no matrix is COO, one that cannot
be cut into blocks is CSR, and reductions are strided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dovetail as dt
from dovetail.extend import Op

from .block_products import times_strided
from .blocks import BSR, as_hybrid, coo_to_bsr, from_hybrid, is_divisible, transpose_blocks
from .compressed import CSC, CSR, coo_to_csc, coo_to_csr, csc, csr, transposed_coo
from .construct import to_dense
from .pattern import Pattern
from .sparse_ops import row_sums
from .sparse_products import times_vector
from .tensor import COO, Entries, coo

Tensor = dt.Tensor
Shape = tuple[int, ...]
Rule = Callable[..., Any]


def as_coo(x: Any) -> Any:
    """Return an operand, or a list of operands, with sparse tensors converted to COO."""
    if isinstance(x, (list, tuple)) and any(isinstance(a, Entries) for a in x):
        return [as_coo(a) for a in x]
    return x.as_coo() if isinstance(x, Entries) else x


def _to_layout_of(first: Entries, result: Any) -> Any:
    """Return a sparse matrix in the layout of the first operand; other results unchanged."""
    if not isinstance(result, COO) or result.ndim != 2 or isinstance(first, COO):
        return result
    if isinstance(first, CSC):
        return coo_to_csc(result)
    if isinstance(first, BSR) and is_divisible(result.shape, first.blocksize):
        return coo_to_bsr(result, first.blocksize)
    return coo_to_csr(result)


def _first_sparse(args: Sequence[Any]) -> Entries:
    """Return the first sparse tensor among arguments and lists of them; StopIteration if none."""
    operands = (t for a in args for t in (a if isinstance(a, (list, tuple)) else (a,)))
    return next(t for t in operands if isinstance(t, Entries))


def through_coo(rule: Rule) -> Rule:
    """Return a rule that converts operands to COO, runs COO's rule, and converts the result."""

    def run(*args: Any) -> Any:
        """Run the rule on COO operands; convert the result to the first operand's layout."""
        return _to_layout_of(_first_sparse(args), rule(*map(as_coo, args)))

    return run


def accept_all_layouts(rule: Rule) -> Rule:
    """Return a rule that runs COO's rule; other layouts are converted to COO, the result back."""
    run_mixed = through_coo(rule)

    def run(*args: Any) -> Any:
        """Run the rule, with conversions if an operand is no COO tensor."""
        return (run_mixed if _has_other_layout(args) else rule)(*args)

    return run


def _has_other_layout(args: Sequence[Any]) -> bool:
    """Return True if an argument, or an item of a list, is sparse but not COO."""
    for a in args:
        if isinstance(a, Entries) and not isinstance(a, COO):
            return True
        if isinstance(a, (list, tuple)) and _has_other_layout(a):
            return True
    return False


# --- elementwise ---------------------------------------------------------------------------------


def elementwise(rule: Rule) -> Rule:
    """Return a rule that runs on the transposes of CSC matrices, or on the blocks of BSR ones.

    BSR matrices must have equal shapes and blocks; other operands go through COO.
    """
    plain = through_coo(rule)

    def run(op: Op, args: Sequence[Any], attrs: Any) -> Any:
        """Apply the op to transposes, to blocks, or to COO operands."""
        tensors = [a for a in args if isinstance(a, dt.Tensor)]
        first = _first_sparse(args)
        if isinstance(first, CSC) and all(isinstance(a, CSC) or not a.ndim for a in tensors):
            result = rule(op, [transposed_coo(a) if isinstance(a, CSC) else a for a in args], attrs)
            return csc(result.pattern, result.values())
        if isinstance(first, BSR) and _have_equal_blocks(first, tensors):
            result = rule(op, [as_hybrid(a) if isinstance(a, BSR) else a for a in args], attrs)
            return from_hybrid(result)
        return plain(op, args, attrs)

    return run


def _have_equal_blocks(first: BSR, tensors: Sequence[Tensor]) -> bool:
    """Return True if all tensors are numbers, or BSR with the shape and blocks of the first."""
    return all(
        a.blocksize == first.blocksize and a.shape == first.shape
        if isinstance(a, BSR)
        else not a.ndim
        for a in tensors
    )


# --- reductions ----------------------------------------------------------------------------------

SUMS = ("sum", "mean", "count_nonzero")


def reduction(rule: Rule) -> Rule:
    """Return a rule for reductions: strided results, but over no axes the operand's layout."""

    def run(op: Op, x: Any, axes: Shape, keepdims: bool, attrs: Any) -> Any:
        """Reduce along the compressed axis by row sums, or else through COO."""
        quick = _sum_compressed_axis(op, x, axes, attrs)
        if quick is None:
            result = rule(op, as_coo(x), axes, keepdims, attrs)
            return _as_strided(result) if axes else _to_layout_of(x, result)
        return dt.expand_dims(quick, axis=axes[0]) if keepdims else quick

    return run


def _as_strided(result: Tensor) -> Tensor:
    """Return a COO tensor as strided, and others unchanged."""
    return to_dense(result) if isinstance(result, COO) else result


def variance(rule: Rule) -> Rule:
    """Return a rule for the variance whose result is strided."""

    def run(x: Any, axes: Shape, *options: Any) -> Any:
        """Return the variance, computed through COO, as a strided tensor."""
        return _as_strided(rule(as_coo(x), axes, *options))

    return run


def _sum_compressed_axis(op: Op, x: Any, axes: Shape, attrs: Any) -> Tensor | None:
    """Return strided sums along the compressed axis, or None for another reduction or axis.

    No host read: the number of rows is known.
    """
    along_axis = (0,) if isinstance(x, CSC) else (1,)
    if op.name not in SUMS or axes != along_axis or isinstance(x, BSR):
        return None
    n = x.shape[along_axis[0]]
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
    """Return the sum of each row; zeros for a pattern without entries."""
    if not p.count:
        return dt.zeros(p.shape[0], dtype=values.dtype, device=values.device)
    return row_sums(values, p.bounds)


# --- shapes --------------------------------------------------------------------------------------


def view(rule: Rule) -> Rule:
    """Return a rule that transposes CSR to CSC and back for free, and keeps slices in CSC."""
    plain = through_coo(rule)

    def run(x: Any, move: tuple[Any, ...]) -> Any:
        """Apply a layout move: at no cost for transposes, in CSC for slices, else through COO."""
        if move[0] == "permute" and move[1] == (1, 0):
            if isinstance(x, CSR):
                return csc(x.pattern, x.values())
            return csr(x.pattern, x.values()) if isinstance(x, CSC) else transpose_blocks(x)
        if move == ("permute", (0, 1)) or (move[0] in ("expand", "reshape") and move[1] == x.shape):
            return x
        if isinstance(x, CSC) and move[0] == "slice":
            result = rule(
                transposed_coo(x), ("slice", *(part[::-1] for part in move[1:]))
            ).coalesce()
            return csc(result.pattern, result.values())
        return plain(x, move)

    return run


def along_axis(rule: Rule) -> Rule:
    """Return a rule of one tensor or several and an axis; CSC matrices use the other axis."""
    plain = through_coo(rule)

    def run(x: Any, axis: int, *options: Any) -> Any:
        """Run the rule on the transposes of CSC matrices, with the other axis, else through COO."""
        tensors = x if isinstance(x, (list, tuple)) else [x]
        if not all(isinstance(a, CSC) for a in tensors):
            return plain(x, axis, *options)
        transposes = [transposed_coo(a) for a in tensors]
        result = rule(transposes if tensors is x else transposes[0], 1 - axis, *options).coalesce()
        return csc(result.pattern, result.values())

    return run


def triangle(rule: Rule) -> Rule:
    """Return a rule for `tril` and `triu`; CSC matrices use the other side of their transpose."""
    plain = through_coo(rule)

    def run(x: Any, k: int, upper: bool) -> Any:
        """Run the rule on a CSC matrix's transpose, with the other triangle, else through COO."""
        if not isinstance(x, CSC):
            return plain(x, k, upper)
        result = rule(transposed_coo(x), -k, not upper)
        return csc(result.pattern, result.values())

    return run


# --- products ------------------------------------------------------------------------------------


def matmul(rule: Rule) -> Rule:
    """Return a rule for products, with fast paths for one sparse matrix times a strided operand.

    Two BSR matrices give blocks as high as the first one's and as wide as the second's.
    """
    plain = through_coo(rule)

    def run(x1: Any, x2: Any) -> Any:
        """Return the product by a fast path if one applies, else through COO."""
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
        product = rule(as_coo(x1), as_coo(x2))
        return coo_to_bsr(product, (x1.blocksize[0], x2.blocksize[1]))

    return run


# --- others --------------------------------------------------------------------------------------


def to_device(rule: Rule) -> Rule:
    """Return a rule that copies the entries to another device."""

    def run(x: Any, device: dt.Device) -> Any:
        """Return the matrix with its entries copied to the device."""
        if isinstance(x, BSR):
            return from_hybrid(rule(as_hybrid(x), device))
        moved = rule(coo(x.pattern, x.values()), device)
        return (csr if isinstance(x, CSR) else csc)(moved.pattern, moved.values())

    return run


def dense(x: Any) -> Tensor:
    """Convert a sparse matrix of any layout to strided. Raises: LayoutError for a strided one."""
    if isinstance(x, CSC):
        return to_dense(transposed_coo(x)).mT
    return to_dense(as_coo(x))


def rules(coo: dict[str, Rule]) -> dict[str, Rule]:
    """Return the rules of CSR, CSC and BSR for the rules of COO."""
    special: dict[str, Callable[[Rule], Rule]] = {
        "apply": elementwise,
        "reduce": reduction,
        "view": view,
        "concat": along_axis,
        "softmax": along_axis,
        "log_softmax": along_axis,
        "sort": along_axis,
        "triangle": triangle,
        "variance": variance,
        "to_device": to_device,
        "matmul": matmul,
    }
    derived = {verb: special.get(verb, through_coo)(rule) for verb, rule in coo.items()}
    return {**derived, "to_dense": dense}
