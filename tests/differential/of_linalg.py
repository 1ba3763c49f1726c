"""Rows of `dt.linalg` and `dt.fft`."""

from __future__ import annotations

from differential.table import Row, group

NORM = "np.linalg.norm(x.reshape(-1))"
LAPACK = {
    "nan": "LAPACK's answer is another one for each routine", "no batch": "",
}  # fmt: skip
REGULAR = "(x + 5 * np.eye(x.shape[-1]))"
POSITIVE = "(x @ np.swapaxes(x, -1, -2) + np.eye(x.shape[-1]))"

ROWS = [
    *group(
        """
        dt.linalg.det(x)
        dt.linalg.slogdet(x + 5 * np.eye(x.shape[-1]))
        dt.linalg.inv(x + 5 * np.eye(x.shape[-1]))
        dt.linalg.solve(x + 5 * np.eye(x.shape[-1]), x)
        dt.linalg.matrix_power(x, 3)
        dt.linalg.matrix_power(x + 5 * np.eye(x.shape[-1]), -2)
        dt.linalg.cholesky(x @ np.swapaxes(x, -1, -2) + np.eye(x.shape[-1]))
        dt.linalg.expm(x) | scipy.linalg.expm(x)
        dt.linalg.pinv(x)
        dt.linalg.svdvals(x) | np.linalg.svd(x, compute_uv=False)
        dt.linalg.eigvalsh(x + np.swapaxes(x, -1, -2))
        dt.linalg.multi_dot([x, x, x])
        dt.linalg.solve_triangular(x + 9 * np.eye(x.shape[-1]), x, upper=False) | np.linalg.solve(np.tril(x) + 9 * np.eye(x.shape[-1]), x)
        dt.linalg.solve_triangular(x, x, upper=True, unit_diagonal=True) | np.linalg.solve(np.triu(x, 1) + np.eye(x.shape[-1]), x)
        """,
        of="f", shapes="square", ulps=256, scale="1.0 + np.max(np.abs(x), initial=0) ** 3",
    ),
    *group(
        """
        dt.linalg.cond(x)
        dt.linalg.cond(x, ord=1) | np.linalg.cond(x, 1)
        dt.linalg.cond(x, ord="fro") | np.linalg.cond(x, "fro")
        dt.linalg.matrix_rank(x)
        """,
        of="f", shapes="square", ulps=4096,
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
        of="hfc", shapes="square", ulps=64,
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
    ),
    *group(
        """
        dt.linalg.block_diag(x, x) | scipy.linalg.block_diag(x, x)
        dt.linalg.matrix_transpose(x)
        dt.linalg.trace(x)
        dt.linalg.matmul(x, np.swapaxes(x, 0, 1))
        dt.linalg.outer(x[0], x[-1])
        dt.linalg.kron(x, x) | np.kron(x, x)
        dt.linalg.vecdot(x, x)
        dt.linalg.tensordot(x, x, axes=([1], [1])) | np.tensordot(x, x, axes=([1], [1]))
        """,
        of="biuhfc", shapes="matrix", ulps=4, scale="np.sum(np.abs(x) ** 2)",
    ),
    Row("dt.linalg.cross(x, y)", of="iuhfc", shapes={"x": (2, 3), "y": (2, 3)}, scale="np.max(np.abs(x)) * np.max(np.abs(y))"),
    # --- factors that are not unique are multiplied
    *group(
        """
        (lambda q, r: q @ r)(*dt.linalg.qr(x)) | x
        (lambda u, s, v: (u * s[..., None, :]) @ v)(*dt.linalg.svd(x, full_matrices=False)) | x
        (lambda w, v: (v * w[..., None, :]) @ v.mT)(*dt.linalg.eigh(x + x.mT)) | x + np.swapaxes(x, -1, -2)
        (lambda w, v: (x @ v - v * w[..., None, :]).real)(*dt.linalg.eig(x)) | x * 0
        moduli(dt.linalg.eigvals(x)) | moduli(np.linalg.eigvals(x))
        dt.linalg.lu(x) | scipy.linalg.lu_factor(x)
        (lambda f: dt.linalg.lu_solve(f, x + 5 * dt.eye(x.shape[-1], dtype=x.dtype)))(dt.linalg.lu(x + 5 * dt.eye(x.shape[-1], dtype=x.dtype))) | x * 0 + np.eye(x.shape[-1])
        dt.linalg.lu_solve(dt.linalg.lu(x + 5 * dt.eye(x.shape[-1], dtype=x.dtype)), x) | np.linalg.solve(x + 5 * np.eye(x.shape[-1]), x)
        dt.linalg.cholesky_solve(dt.tril(x, -1) + dt.eye(x.shape[-1], dtype=x.dtype), x) | np.linalg.solve((np.tril(x, -1) + np.eye(x.shape[-1])) @ np.swapaxes(np.tril(x, -1) + np.eye(x.shape[-1]), -1, -2), x)
        dt.linalg.lstsq(x, x[..., 0])[0] | (np.linalg.pinv(x) @ x[..., :1])[..., 0]
        dt.linalg.householder(x * 0, x[..., 0] * 0) | x * 0 + np.eye(x.shape[-1])
        """,
        of="f", shapes="square", ulps=1024, scale="1.0 + np.max(np.abs(x), initial=0) ** 3", but=LAPACK,
    ),
    *group(
        """
        dt.fft.fft(x)
        dt.fft.ifft(x)
        dt.fft.fft(x, n=5)
        dt.fft.fft(x, n=32, norm="ortho")
        dt.fft.hfft(x)
        """,
        of="biuhfc", shapes="vector", ulps=6, scale="np.sum(np.abs(x))",
    ),
    *group(
        """
        dt.fft.rfft(x)
        dt.fft.rfft(x, n=17)
        dt.fft.ihfft(x)
        """,
        of="biuhf", shapes="vector", ulps=6, scale="np.sum(np.abs(x))",
    ),
    *group(
        """
        dt.fft.irfft(x)
        dt.fft.irfft(x, n=5)
        dt.fft.fftshift(x)
        dt.fft.ifftshift(x)
        """,
        of="biuhfc", shapes="vector", ulps=6, scale="np.sum(np.abs(x))",
    ),
    *group(
        """
        dt.fft.fft2(x)
        dt.fft.ifft2(x)
        dt.fft.fftn(x)
        dt.fft.ifftn(x, axes=(0,))
        dt.fft.irfft2(x)
        dt.fft.irfftn(x)
        dt.fft.fftshift(x, axes=0)
        """,
        of="biuhfc", shapes="matrix", ulps=6, scale="np.sum(np.abs(x))",
    ),
    *group(
        """
        dt.fft.rfft2(x)
        dt.fft.rfftn(x)
        """,
        of="biuhf", shapes="matrix", ulps=6, scale="np.sum(np.abs(x))",
    ),
]  # fmt: skip
