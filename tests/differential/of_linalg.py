"""Rows of `dt.linalg` and `dt.fft`."""

from __future__ import annotations

from differential.table import Row, group

LAPACK = {
    "nan": "LAPACK's answer is another one for each routine",
}  # fmt: skip
REGULAR = "(regular(x))"
POSITIVE = "(positive(x))"
OVERFLOW = {"extremes": "sums that overflow depend on their order"}
INFINITE = {**OVERFLOW, "inf": "which infinities cancel depends on the order"}

ROWS = [
    *group(
        """
        dt.linalg.det(x)
        dt.linalg.slogdet(regular(x))
        dt.linalg.inv(regular(x))
        dt.linalg.solve(regular(x), x)
        dt.linalg.matrix_power(x, 3)
        dt.linalg.matrix_power(regular(x), -2)
        dt.linalg.cholesky(positive(x))
        dt.linalg.expm(x) | scipy.linalg.expm(x)
        dt.linalg.pinv(x)
        dt.linalg.svdvals(x) | np.linalg.svd(x, compute_uv=False)
        dt.linalg.eigvalsh(x + np.swapaxes(x, -1, -2))
        dt.linalg.multi_dot([x, x, x])
        dt.linalg.solve_triangular(regular(x), x, upper=False) | np.linalg.solve(np.tril(regular(x)), x)
        dt.linalg.solve_triangular(x, x, upper=True, unit_diagonal=True) | np.linalg.solve(np.triu(x, 1) + np.eye(x.shape[-1]), x)
        """,
        of="f", shapes="square", ulps=256, scale="1.0 + np.max(np.abs(x), initial=0) ** 3", but=LAPACK,
    ),
    *group(
        """
        dt.linalg.cond(x)
        dt.linalg.cond(x, ord=1) | np.linalg.cond(x, 1)
        dt.linalg.cond(x, ord="fro") | np.linalg.cond(x, "fro")
        dt.linalg.matrix_rank(x)
        """,
        of="f", shapes="square", ulps=4096, but=LAPACK,
    ),
    *group(
        """
        dt.linalg.matrix_norm(x)
        dt.linalg.matrix_norm(x, ord=1)
        dt.linalg.matrix_norm(x, ord=float("inf"))
        dt.linalg.matrix_norm(x, ord=-1)
        dt.linalg.matrix_norm(x, ord=2)
        dt.linalg.matrix_norm(x, ord="nuc")
        """,
        of="fc", shapes="square", ulps=64,
    ),
    *group(
        """
        dt.linalg.vector_norm(x)
        dt.linalg.vector_norm(x, axis=0)
        dt.linalg.vector_norm(x, axis=-1, keepdims=True)
        dt.linalg.vector_norm(x, ord=1)
        dt.linalg.vector_norm(x, ord=3)
        dt.linalg.vector_norm(x, ord=0.5)
        dt.linalg.vector_norm(x, ord=0)
        dt.linalg.vector_norm(x, ord=float("inf"))
        dt.linalg.vector_norm(x, ord=-float("inf"))
        dt.linalg.vector_norm(x, ord=-1, axis=0)
        """,
        of="hfc", shapes="sums", ulps=12,
        but={f"{d} {k}": "squares and cubes overflow and underflow as in NumPy" for d in ("bfloat16", "float32", "float64", "complex64", "complex128") for k in ("extremes", "subnormal")},
    ),
    *group(
        """
        dt.linalg.block_diag(x, x) | scipy.linalg.block_diag(x, x)
        dt.linalg.matrix_transpose(x)
        dt.linalg.trace(x)
        dt.linalg.outer(x[0], x[-1])
        dt.linalg.kron(x, x) | np.kron(x, x)
        """,
        of="biuhfc", shapes="matrix", ulps=4, scale="np.sum(np.abs(x) ** 2)",
        but=OVERFLOW,
    ),
    *group(
        """
        dt.linalg.matmul(x, x.mT)
        dt.linalg.vecdot(x, x)
        dt.linalg.tensordot(x, x, axes=([1], [1])) | np.tensordot(x, x, axes=([1], [1]))
        """,
        of="iuhfc", shapes="matrix", ulps=4, scale="np.sum(np.abs(x) ** 2)",
        but=OVERFLOW,
    ),
    Row("dt.linalg.cross(x, y)", of="iuhfc", shapes={"x": (2, 3), "y": (2, 3)}, scale="np.max(np.abs(x)) * np.max(np.abs(y))",
        but=OVERFLOW),
    # --- factors that are not unique are multiplied
    *group(
        """
        (lambda q, r: q @ r)(*dt.linalg.qr(x)) | x
        (lambda u, s, v: (u * s[..., None, :]) @ v)(*dt.linalg.svd(x, full_matrices=False)) | x
        (lambda w, v: (v * w[..., None, :]) @ v.mT)(*dt.linalg.eigh(x + x.mT)) | x + np.swapaxes(x, -1, -2)
        (lambda w, v: (x @ v - v * w[..., None, :]).real)(*dt.linalg.eig(x)) | x * 0
        moduli(dt.linalg.eigvals(x)) | moduli(np.linalg.eigvals(x))
        (lambda p, l, u: p @ l @ u)(*dt.linalg.lu(x)) | x
        (lambda f: dt.linalg.lu_solve(f, regular(x)))(dt.linalg.lu(regular(x))) | x * 0 + np.eye(x.shape[-1])
        dt.linalg.lu_solve(dt.linalg.lu(regular(x)), x) | np.linalg.solve(regular(x), x)
        dt.linalg.cholesky_solve(x, dt.tril(x, -1) + dt.eye(x.shape[-1], dtype=x.dtype)) | np.linalg.solve((np.tril(x, -1) + np.eye(x.shape[-1])) @ np.swapaxes(np.tril(x, -1) + np.eye(x.shape[-1]), -1, -2), x)
        dt.linalg.lstsq(x, x[..., :1])[0] | np.linalg.pinv(x) @ x[..., :1]
        """,
        of="f", shapes="square", ulps=1024, scale="1.0 + np.max(np.abs(x), initial=0) ** 3", but=LAPACK,
    ),
    Row("dt.linalg.householder(x * 0, x[..., 0] * 0)", "np.eye(*x.shape)", of="f", shapes={"x": (3, 3)},
        but=dict.fromkeys(["nan", "inf"], "not finite")),
    *group(
        """
        dt.fft.fft(x)
        dt.fft.ifft(x)
        dt.fft.fft(x, n=5)
        dt.fft.fft(x, n=32, norm="ortho")
        """,
        of="biuhfc", shapes="vector", ulps=6, scale="np.sum(np.abs(x))", but=INFINITE,
    ),
    *group(
        """
        dt.fft.rfft(x)
        dt.fft.rfft(x, n=17)
        dt.fft.ihfft(x)
        """,
        of="biuhf", shapes="vector", ulps=6, scale="np.sum(np.abs(x))", but=INFINITE,
    ),
    *group(
        """
        dt.fft.fftshift(x)
        dt.fft.ifftshift(x)
        """,
        of="biuhfc", shapes="vector", ulps=6, scale="np.sum(np.abs(x))", but=INFINITE,
    ),
    *group(
        """
        dt.fft.fft2(x)
        dt.fft.ifft2(x)
        dt.fft.fftn(x)
        dt.fft.ifftn(x, axes=(0,))
        dt.fft.fftshift(x, axes=0)
        """,
        of="biuhfc", shapes="matrix", ulps=6, scale="np.sum(np.abs(x))", but=INFINITE,
    ),
    *group(
        """
        dt.fft.rfft2(x)
        dt.fft.rfftn(x)
        """,
        of="biuhf", shapes="matrix", ulps=6, scale="np.sum(np.abs(x))", but=INFINITE,
    ),
    *group(
        """
        dt.fft.hfft(x)
        dt.fft.irfft(x)
        dt.fft.irfft(x, n=5)
        """,
        of="biufc", shapes="vector", ulps=6, scale="np.sum(np.abs(x))", but=INFINITE | {
            "nan": "NumPy's values are not NaN in every second place",
            "empty": "NumPy returns memory that it has not written",
        },
    ),
    *group(
        """
        dt.fft.irfft2(x)
        dt.fft.irfftn(x)
        """,
        of="biufc", shapes="matrix", ulps=6, scale="np.sum(np.abs(x))", but=INFINITE,
    ),
]  # fmt: skip
