"""The functions of `jax.numpy.linalg`."""

from __future__ import annotations

from ..lookup import make_module_dir, make_module_getattr, table

__all__: list[str] = []

_NAMES = {
    name: f"linalg.{ours}"
    for name, ours in table("""
        cholesky cond cross det diagonal eig eigh eigvals eigvalsh inv lstsq matmul matrix_norm
        matrix_power matrix_rank matrix_transpose multi_dot norm outer pinv qr slogdet
        solve svd svdvals tensordot trace vecdot vector_norm
    """).items()
}
__getattr__ = make_module_getattr(globals(), _NAMES)
__dir__ = make_module_dir(globals(), _NAMES)
