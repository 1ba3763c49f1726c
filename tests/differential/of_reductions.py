"""Rows of reductions, statistics, running sums, order statistics and products."""

from __future__ import annotations

from differential.table import Row, group

SUM, SQUARES = "np.sum(np.abs(x))", "np.sum(np.abs(x) ** 2)"
LARGEST = "np.max(np.abs(x), initial=0)"
NOT_OVERFLOW = {"extremes": "sums that overflow depend on their order"}
PADDED = dict.fromkeys(
    ["nan", "inf"], "padding reads +0, of which NaN and infinities of the shorter operand make NaN"
)

ROWS = [
    *group(
        """
        dt.all(x)
        dt.all(x, axis=0)
        dt.any(x)
        dt.any(x, axis=-1, keepdims=True)
        dt.count_nonzero(x)
        dt.count_nonzero(x, axis=0)
        """,
        of="biuhfc", shapes="reduce",
    ),
    *group(
        """
        dt.argmax(x)
        dt.argmax(x, axis=0)
        dt.argmin(x)
        dt.argmin(x, axis=-1, keepdims=True)
        dt.max(x)
        dt.max(x, axis=0)
        dt.min(x)
        dt.min(x, axis=-1)
        dt.ptp(x)
        dt.ptp(x, axis=0)
        """,
        of="biuhf", shapes="reduce",
    ),
    *group(
        """
        dt.sum(x)
        dt.sum(x, axis=0)
        dt.sum(x, axis=-1, keepdims=True)
        dt.nansum(x)
        dt.nansum(x, axis=0)
        dt.trace(x)
        """,
        of="biuhfc", shapes="sums", scale=SUM, but=NOT_OVERFLOW,
    ),
    *group(
        """
        dt.prod(x)
        dt.prod(x, axis=0)
        dt.nanprod(x)
        dt.nanprod(x, axis=-1)
        """,
        of="biuhfc", shapes="sums", ulps=12,
        but={**NOT_OVERFLOW, "subnormal": "products that underflow depend on their order"},
    ),
    *group(
        """
        dt.mean(x)
        dt.mean(x, axis=0)
        dt.mean(x, axis=-1, keepdims=True)
        dt.nanmean(x)
        dt.nanmean(x, axis=0)
        dt.average(x)
        dt.average(x, axis=0)
        """,
        of="iuhfc", shapes="sums", scale=LARGEST, ulps=4, but=NOT_OVERFLOW,
    ),
    Row("dt.average(x, axis=0, weights=y)", of="hf", shapes={"x": (3, 5), "y": (3, 5)}, ulps=64,
        scale="100 * np.max(np.abs(x))", but=dict.fromkeys(["extremes", "subnormal", "ties", "zeros"], "weights add up to nothing: NumPy raises")),
    *group(
        """
        dt.std(x)
        dt.std(x, axis=0)
        dt.std(x, axis=-1, correction=1) | np.std(x, axis=-1, ddof=1)
        dt.nanstd(x)
        dt.nanstd(x, axis=-1)
        """,
        of="iuhfc", shapes="sums", ulps=8, but=NOT_OVERFLOW,
    ),
    *group(
        """
        dt.var(x)
        dt.var(x, axis=0)
        dt.var(x, axis=-1, correction=1, keepdims=True) | np.var(x, axis=-1, ddof=1, keepdims=True)
        dt.nanvar(x)
        dt.nanvar(x, axis=0, correction=1) | np.nanvar(x, axis=0, ddof=1)
        """,
        of="iuhfc", shapes="sums", ulps=12, but=NOT_OVERFLOW,
    ),
    *group(
        """
        dt.nanmax(x)
        dt.nanmax(x, axis=0)
        dt.nanmin(x)
        dt.nanmin(x, axis=-1, keepdims=True)
        dt.nanargmax(x)
        dt.nanargmin(x, axis=0)
        """,
        of="iuhf", shapes="reduce",
    ),
    *group(
        """
        dt.median(x)
        dt.median(x, axis=0)
        dt.nanmedian(x)
        dt.nanmedian(x, axis=-1)
        dt.quantile(x, 0.3)
        dt.quantile(x, [0.0, 0.25, 1.0], axis=0)
        dt.quantile(x, 0.5, axis=-1, method="nearest")
        dt.quantile(x, 0.4, method="lower")
        dt.percentile(x, 30)
        dt.percentile(x, [10, 75], axis=-1)
        dt.nanquantile(x, 0.3)
        dt.nanquantile(x, [0.3, 0.9], axis=0)
        dt.nanpercentile(x, 30)
        dt.nanpercentile(x, 30, axis=0)
        """,
        shapes="reduce", scale=LARGEST,
        but={**dict.fromkeys(["empty", "no rows"], "no elements have no median: an error here, NaN in NumPy"),
             "inf": "NumPy's interpolation makes NaN of infinities"},
    ),
    *group(
        """
        dt.logsumexp(x) | special.logsumexp(x)
        dt.logsumexp(x, axis=0) | special.logsumexp(x, axis=0)
        """,
        shapes="sums", scale=LARGEST, ulps=4,
        but=dict.fromkeys(["empty", "no rows"], "of no elements it is an error here, -inf in SciPy"),
    ),
    *group(
        """
        dt.softmax(x) | special.softmax(x, axis=-1)
        dt.softmax(x, axis=0) | special.softmax(x, axis=0)
        """,
        shapes="sums", ulps=8,
    ),
    *group(
        """
        dt.log_softmax(x) | special.log_softmax(x, axis=-1)
        dt.log_softmax(x, axis=0) | special.log_softmax(x, axis=0)
        """,
        shapes="sums", ulps=4, scale=LARGEST,
        but={"inf": "where one is infinite all are NaN, by the docstring"},
    ),
    *group(
        """
        dt.cumulative_sum(x, axis=0)
        dt.cumulative_sum(x, axis=-1, include_initial=True)
        dt.nancumsum(x, axis=0)
        dt.nancumsum(x)
        """,
        of="biuhfc", shapes="sums", ulps=6, scale=SUM, but=NOT_OVERFLOW,
    ),
    *group(
        """
        dt.cumulative_prod(x, axis=0)
        dt.cumulative_prod(x, axis=-1, include_initial=True)
        dt.nancumprod(x, axis=0)
        dt.nancumprod(x)
        """,
        of="biuhfc", shapes="sums", ulps=12,
        but={**NOT_OVERFLOW, "subnormal": "products that underflow depend on their order"},
    ),
    Row("dt.cumulative_logsumexp(x, axis=0)", "np.logaddexp.accumulate(x, axis=0)",
        shapes="reduce", ulps=12, scale=LARGEST),
    *group(
        """
        dt.cov(x)
        dt.cov(x, rowvar=False)
        dt.cov(x, correction=0) | np.cov(x, ddof=0)
        dt.corrcoef(x)
        dt.corrcoef(x, rowvar=False)
        """,
        shapes="matrix", scale=LARGEST + " ** 2", ulps=8,
        but={**NOT_OVERFLOW, "subnormal": "squares underflow"},
    ),
    *group(
        """
        dt.diff(x)
        dt.diff(x, axis=0)
        dt.diff(x, n=2)
        dt.ediff1d(x)
        """,
        of="iuhfc", shapes="reduce", scale=LARGEST, but=NOT_OVERFLOW,
    ),
    *group(
        """
        dt.gradient(x)
        dt.gradient(x, 2.0)
        dt.gradient(x, np.array([0.0, 1, 1.5, 3, 4, 6, 6.5])) | np.gradient(x, np.array([0.0, 1, 1.5, 3, 4, 6, 6.5]))
        dt.gradient(x, edge_order=2)
        dt.trapezoid(x)
        dt.trapezoid(x, dx=0.25)
        dt.unwrap(x)
        dt.unwrap(x, period=4)
        """,
        of="iuhf", shapes="vector", scale=LARGEST, ulps=8, but=NOT_OVERFLOW,
    ),
    Row("dt.trapezoid(x, y)", shapes="vectors", ulps=8, scale="np.max(np.abs(x), initial=0) * np.max(np.abs(y), initial=0)", but=NOT_OVERFLOW),
    # --- sorting and searching
    *group(
        """
        dt.sort(x)
        dt.sort(x, axis=0)
        dt.argsort(x) | np.argsort(x, axis=-1, stable=True)
        dt.argsort(x, axis=0) | np.argsort(x, axis=0, stable=True)
        dt.partition(x, 0) | np.sort(x)
        """,
        of="iuhf", shapes="reduce",
    ),
    *group(
        """
        dt.lexsort([x, x > 1]) | np.lexsort([x, x > 1])
        dt.searchsorted(dt.sort(x), x) | np.searchsorted(np.sort(x), x)
        dt.searchsorted(dt.sort(x), x, side="right") | np.searchsorted(np.sort(x), x, side="right")
        dt.isin(x, x, invert=True)
        dt.unique(x)
        dt.unique(x, return_index=True, return_inverse=True, return_counts=True)
        dt.unique_values(x) | np.unique(x, equal_nan=False)
        dt.unique_counts(x) | np.unique(x, return_counts=True, equal_nan=False)
        dt.unique_inverse(x) | np.unique(x, return_inverse=True, equal_nan=False)
        dt.unique_all(x) | np.unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
        dt.argpartition(x, 2)[2:3] * 0 | np.argpartition(x, 2)[2:3] * 0
        dt.trim_zeros(x)
        dt.polyval(x, 2.0)
        dt.polyint(x)
        """,
        of="iuhf", shapes="vector", scale=LARGEST, ulps=8,
    ),
    *group(
        """
        dt.histogram(x)
        dt.histogram(x, 4, range=(-2, 3))
        dt.histogram(x, 4, density=True)
        dt.histogram_bin_edges(x, 3)
        """,
        of="hf", shapes="vector", scale=LARGEST, ulps=8,
        but={
            "float64 extremes": "max - min overflows; NumPy raises",
            "one": "the element is the middle of its range, where NumPy rounds the edge otherwise",
        },
    ),
    *group(
        """
        dt.histogram(x)[0]
        dt.histogram(x, 4, range=(-2, 3))[0]
        """,
        of="iu", shapes="vector",
    ),
    *group(
        """
        dt.histogram(x, 4, density=True)
        dt.histogram_bin_edges(x, 3)
        """,
        of="iu", shapes="vector", gives="float64",
    ),
    Row("dt.poly(x)", of="iuhf", shapes="vector", ulps=16, scale="np.prod(1 + np.abs(x))",
        but={"empty": "NumPy gives a number, not a vector of one", **NOT_OVERFLOW}),
    Row("dt.histogram2d(x, y, 3)[0]", "np.histogram2d(x, y, 3)[0].astype(int)", shapes="vectors", of="iu"),
    Row("dt.histogram2d(x, y, 3)", "(lambda n, *edges: (n.astype(int), *edges))(*np.histogram2d(x, y, 3))",
        shapes="vectors", of="hf", ulps=4, scale=LARGEST + " + np.max(np.abs(y), initial=0)", but=NOT_OVERFLOW),
    Row("dt.topk(x, 1).values", "(-np.sort(-x))[..., :1]", of="hf", shapes="matrix"),
    Row("dt.topk(x, 2, axis=0, largest=False)", "(lambda i: (np.take_along_axis(x, i, 0), i))(np.argsort(x, axis=0, stable=True)[:2])",
        of="iuhf", shapes={"x": (3, 4)}),
    Row("dt.ediff1d(x, to_end=[1], to_begin=[2])", of="ihf", shapes="reduce", scale=LARGEST, but=NOT_OVERFLOW),
    *group(
        """
        dt.interp(x, [-1, 0, 1, 2, 3, 4, 5], y)
        dt.interp(x, [-1, 0, 1, 2, 3, 4, 5], y, left=-9, right=9)
        dt.interp(x, [-1, 0, 1, 2, 3, 4, 5], y, period=9)
        """,
        of="hf", shapes={"x": (7,), "y": (7,)}, ulps=32, scale="np.max(np.abs(y))",
        but={"inf": "infinite samples make NaN of neighbours in NumPy", **NOT_OVERFLOW},
    ),
    *group(
        """
        dt.digitize(x, [-1, 0, 2])
        dt.digitize(x, [2, 0, -1], right=True)
        dt.isin(x, [0, 1, 2])
        dt.union1d(x, [1, 7])
        dt.intersect1d(x, [1, 2, 0])
        dt.setdiff1d(x, [1, 2, 0])
        dt.setxor1d(x, [1, 2, 0])
        dt.vander(x)
        dt.vander(x, 3, increasing=True)
        dt.polyval([1, -2, 3], x)
        dt.polyder(x)
        """,
        of="iuhf", shapes="vector", scale=LARGEST, ulps=8,
        but={"uint64": "no dtype holds both uint64 and int64; NumPy makes float64 of them"},
    ),
    Row("dt.bincount(dt.abs(x) % 5)", "np.bincount((np.abs(x) % 5).astype('i8'))", of="iu", shapes="vector"),
    Row("dt.bincount(I([0, 2, 1, 2, 0, 0, 5]), weights=x)", "np.bincount([0, 2, 1, 2, 0, 0, 5], weights=x)",
        of="hf", shapes={"x": (7,)}, ulps=4, scale=SUM),
    # --- products
    *group(
        """
        dt.dot(x, y)
        dt.inner(x, y)
        dt.vdot(x, y)
        dt.vecdot(x, y)
        dt.matmul(x, y)
        dt.tensordot(x, y, axes=1)
        dt.einsum("i,i->", x, y)
        dt.einsum("i,j->ij", x, y)
        dt.outer(x, y)
        dt.kron(x, y)
        dt.polyadd(x, y)
        dt.polysub(x, y)
        """,
        of="iuhf", shapes="vectors", ulps=4, scale="np.sum(np.abs(x)) * np.max(np.abs(y), initial=0)", but=NOT_OVERFLOW,
    ),
    *group(
        """
        dt.matmul(x, dt.matrix_transpose(x)) | x @ np.matrix_transpose(x)
        dt.matvec(x, x[..., 0, :])
        dt.vecmat(x[..., :, 0], x)
        dt.einsum("...ij,...kj->...ik", x, x)
        dt.einsum("ij->j", x)
        dt.tensordot(x, x, axes=([0, 1], [0, 1]))
        dt.inner(x, x)
        """,
        of="iuhfc", shapes="matrix", ulps=4, scale=SQUARES, but=NOT_OVERFLOW,
    ),
    *group(
        """
        dt.convolve(x, y)
        dt.convolve(x, y, mode="same")
        dt.correlate(x, y)
        dt.correlate(x, y, mode="full")
        """,
        of="iuhf", shapes="vectors", ulps=4, scale="np.sum(np.abs(x)) * np.max(np.abs(y), initial=0)",
        but={**NOT_OVERFLOW, **PADDED},
    ),
    Row("dt.polymul(x, y)", "np.convolve(x, y)", of="iuhf", shapes="vectors", ulps=4,
        scale="np.sum(np.abs(x)) * np.max(np.abs(y), initial=0)",
        but={"empty": "no coefficients are an error", **NOT_OVERFLOW, **PADDED}),
    Row("dt.cross(x, y)", of="iuhfc", shapes={"x": (2, 3), "y": (2, 3)}, scale="np.max(np.abs(x)) * np.max(np.abs(y))", but=NOT_OVERFLOW),
    Row("dt.polyfit([0, 1, 2, 3, 4, 5, 6], x, 2)", of="f", shapes="vector", ulps=256, scale=LARGEST,
        but={"inf": "NaN or infinite, as LAPACK has it", "nan": "NaN, as LAPACK has it", **NOT_OVERFLOW}),
    Row("moduli(dt.roots(x))", "moduli(np.roots(x))", of="iuf", shapes="vector", ulps=256, scale="1.0"),
]  # fmt: skip
