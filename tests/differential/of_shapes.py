"""Rows of the functions that create, move, select and write elements."""

from __future__ import annotations

from differential.table import Row, group

ROWS = [
    *group(
        """
        dt.atleast_1d(x)
        dt.atleast_2d(x)
        dt.atleast_3d(x)
        dt.broadcast_to(x, (2, *x.shape))
        dt.broadcast_arrays(x, x[..., None])
        dt.copy(x)
        dt.contiguous(x) | np.ascontiguousarray(x).reshape(x.shape)
        dt.expand_dims(x, 0)
        dt.expand_dims(x, -1)
        dt.flatten(x) | x.ravel()
        dt.flip(x)
        dt.flip(x, axis=0)
        dt.fliplr(x)
        dt.flipud(x)
        dt.moveaxis(x, 0, -1)
        dt.permute_dims(x, tuple(range(x.ndim))[::-1]) | np.transpose(x)
        dt.ravel(x)
        dt.repeat(x, 2)
        dt.repeat(x, 3, axis=0)
        dt.reshape(x, (-1, 1))
        dt.resize(x, (2, 3))
        dt.roll(x, 1)
        dt.roll(x, -2, axis=0)
        dt.rot90(x)
        dt.rot90(x, 2, axes=(1, 0))
        dt.squeeze(x[None], axis=0)
        dt.swapaxes(x, 0, -1)
        dt.tile(x, 2)
        dt.tile(x, (2, 1, 1))
        dt.transpose(x) | np.transpose(x)
        dt.matrix_transpose(x)
        dt.diag(x)
        dt.diagflat(x)
        dt.diagonal(x)
        dt.diagonal(x, 1)
        dt.linalg.diagonal(x)
        dt.unstack(x) | list(x)
        dt.unstack(x, axis=-1) | list(np.moveaxis(x, -1, 0))
        dt.split(x, 1) | np.split(x, x.shape[0])
        dt.array_split(x, 2)
        dt.array_split(x, 3, axis=-1)
        dt.hsplit(x, [1])
        dt.vsplit(x, [1])
        dt.dsplit(x, [1])
        dt.stack([x, x])
        dt.stack([x, x], axis=-1)
        dt.concat([x, x], axis=0)
        dt.concat([x, x], axis=-1)
        dt.concat([x, x], axis=None)
        dt.cat([x, x], 0) | np.concatenate([x, x], 0)
        dt.hstack([x, x])
        dt.vstack([x, x])
        dt.dstack([x, x])
        dt.column_stack([x, x])
        dt.block([x, x])
        dt.append(x, x)
        dt.append(x, x, axis=0)
        dt.delete(x, 0)
        dt.delete(x, [0], axis=-1)
        dt.pad(x, 1)
        dt.pad(x, 2, constant_values=1)
        dt.pad(x, 1, mode="edge")
        dt.pad(x, 1, mode="reflect")
        dt.pad(x, 2, mode="wrap")
        dt.pad(x, 2, mode="symmetric")
        dt.zeros_like(x)
        dt.ones_like(x)
        dt.full_like(x, 1)
        dt.empty_like(x).shape | x.shape
        dt.take(x, [0, -1, 0], axis=0)
        dt.nonzero(x)
        dt.argwhere(x)
        dt.flatnonzero(x)
        dt.compress([True, False], x)
        dt.compress([False, True], x, axis=0)
        dt.where(x != 0, 1, 0)
        dt.choose(I([0, 1, 0]), [x, x]) | np.choose([0, 1, 0], [x, x])
        dt.astype(x, dt.bool) | x.astype("?")
        dt.asarray(x) | x
        """,
        of="biuhfc",
    ),
    *group(
        """
        dt.insert(x, 0, 1)
        dt.extract(x > 0, x)
        dt.select([x > 1, x > 0], [x, x * 2], 3)
        dt.piecewise(x, [x > 1, x < 0], [1, lambda v: v * 2, 5])
        W(dt.copyto, x, 1)
        W(dt.copyto, x, x * 2, where=x > 0)
        W(dt.put, x, [0, -1], [1, 0])
        W(dt.putmask, x, x > 0, [1, 0])
        W(dt.place, x, x > 0, [1, 0])
        W(dt.fill_diagonal, x, 1)
        W(dt.put_along_axis, x, np.zeros((1,) * x.ndim, int), 1, -1)
        dt.take_along_axis(x, dt.argsort(x, axis=-1), axis=-1) | np.take_along_axis(x, np.argsort(x, axis=-1, stable=True), axis=-1)
        """,
        of="iuhf",
    ),
    *group(
        """
        dt.tril(x)
        dt.triu(x, k=1)
        """,
        of="biuhfc", shapes="square",
    ),
    *group(
        """
        dt.meshgrid(x, x)
        dt.meshgrid(x, x, indexing="ij")
        dt.take(x, [0, -1])
        """,
        of="biuhfc", shapes="vector",
    ),
    *group(
        """
        dt.index_add(x, 0, [0, 2, 0], x[:3]) | torch.index_add(x, 0, I([0, 2, 0]), x[:3])
        dt.scatter(x, 0, I([[0, 2, 1, 0]]), x[1:2]) | torch.scatter(x, 0, I([[0, 2, 1, 0]]), x[1:2])
        dt.as_strided(x, (2, 3), (4, 1), 1) | torch.as_strided(x, (2, 3), (4, 1), 1).numpy()
        dt.sliding_window_view(x, (2, 2)) | np.lib.stride_tricks.sliding_window_view(x, (2, 2))
        dt.sliding_window_view(x, 2, 0) | np.lib.stride_tricks.sliding_window_view(x, 2, 0)
        """,
        of="bihfc", shapes={"x": (3, 4)}, layouts=False,
    ),
    *group(
        """
        dt.index_reduce(x, 0, [0, 2, 0], x[:3], "amax") | torch.index_reduce(x, 0, I([0, 2, 0]), x[:3], "amax")
        dt.scatter_reduce(x, 0, I([[0, 2, 1, 0]]), x[1:2], "amin") | torch.scatter_reduce(x, 0, I([[0, 2, 1, 0]]), x[1:2], "amin")
        dt.cummax(x, 0) | torch.cummax(x, 0)
        dt.cummin(x, 1) | torch.cummin(x, 1)
        dt.bucketize(x, dt.arange(-2.0, 3.0)) | torch.bucketize(x, torch.arange(-2.0, 3.0, dtype=torch.float64))
        """,
        of="ihf", shapes={"x": (3, 4)},
    ),
    *group(
        """
        dt.unfold(x, 2) | F.unfold(x, 2)
        dt.unfold(x, (2, 1), padding=1, stride=2) | F.unfold(x, (2, 1), padding=1, stride=2)
        dt.fold(dt.unfold(x, 2), (3, 4), 2) | F.fold(F.unfold(x, 2), (3, 4), 2)
        """,
        of="hf", shapes={"x": (2, 2, 3, 4)}, scale="8 * torch.max(torch.abs(x))",
    ),
    Row("dt.astype(x, dt.float64)", "x.astype('f8')", of="biuhf", gives="float64"),
    Row("dt.astype(x, dt.int8)", "x.astype('i1')", of="biu"),
    Row("dt.astype(x, dt.int8)", "np.clip(np.nan_to_num(x), -128, 127).astype('i1')", of="hf"),
    # --- functions of sizes and numbers only
    *group(
        """
        dt.arange(7) | np.arange(7)
        dt.arange(-1.5, 2, 0.25, dtype=dt.float64) | np.arange(-1.5, 2, 0.25)
        dt.linspace(-3, 5, 9, dtype=dt.float64) | np.linspace(-3, 5, 9)
        dt.linspace(0, 1, 5, endpoint=False, dtype=dt.float64) | np.linspace(0, 1, 5, endpoint=False)
        dt.logspace(-2, 3, 7, dtype=dt.float64) | np.logspace(-2, 3, 7)
        dt.geomspace(1, 1000, 7, dtype=dt.float64) | np.geomspace(1, 1000, 7)
        dt.hann(8, dtype=dt.float64) | np.hanning(8)
        dt.hamming(8, dtype=dt.float64) | np.hamming(8)
        dt.blackman(8, dtype=dt.float64) | np.blackman(8)
        dt.bartlett(8, dtype=dt.float64) | np.bartlett(8)
        dt.kaiser(8, 3.0, dtype=dt.float64) | np.kaiser(8, 3.0)
        dt.hann_window(8, dtype=dt.float64) | np.hanning(9)[:-1]
        dt.hamming_window(8, dtype=dt.float64) | np.hamming(9)[:-1]
        dt.blackman_window(8, dtype=dt.float64) | np.blackman(9)[:-1]
        dt.bartlett_window(8, False, dtype=dt.float64) | np.bartlett(8)
        dt.kaiser_window(8, True, 3.0, dtype=dt.float64) | np.kaiser(9, 3.0)[:-1]
        dt.fft.fftfreq(7, d=0.5, dtype=dt.float64) | np.fft.fftfreq(7, 0.5)
        dt.fft.rfftfreq(8, dtype=dt.float64) | np.fft.rfftfreq(8)
        """,
        of="f", shapes={"x": (7,)}, gives="", ulps=8, scale="1.0", but={"float32": "x has no part in it"},
    ),
    *group(
        """
        dt.empty((2, 3)).shape | (2, 3)
        dt.zeros((2, 3), dtype=dt.float64) | np.zeros((2, 3))
        dt.ones((2, 0), dtype=dt.float64) | np.ones((2, 0))
        dt.full((2,), 0.1, dtype=dt.float64) | np.full((2,), 0.1)
        dt.eye(3, 4, k=1, dtype=dt.float64) | np.eye(3, 4, k=1)
        dt.tri(3, 4, k=-1, dtype=dt.float64) | np.tri(3, 4, k=-1)
        dt.indices((2, 3)) | np.indices((2, 3))
        dt.fromfunction(lambda i, j: i + j, (2, 3), dtype=dt.float64) | np.fromfunction(lambda i, j: i + j, (2, 3))
        dt.diag_indices(3) | np.diag_indices(3)
        dt.tril_indices(3, 1, 4) | np.tril_indices(3, 1, 4)
        dt.triu_indices(3, -1, 4) | np.triu_indices(3, -1, 4)
        dt.diag_indices_from(x) | np.diag_indices_from(x)
        dt.tril_indices_from(x) | np.tril_indices_from(x)
        dt.triu_indices_from(x, 1) | np.triu_indices_from(x, 1)
        dt.mask_indices(3, dt.triu, 1) | np.mask_indices(3, np.triu, 1)
        dt.ix_([0, 2], [1]) | np.ix_([0, 2], [1])
        dt.unravel_index(I([0, 5, 7]), (2, 4)) | np.unravel_index([0, 5, 7], (2, 4))
        dt.ravel_multi_index((I([0, 1]), I([3, 2])), (2, 4)) | np.ravel_multi_index(([0, 1], [3, 2]), (2, 4))
        dt.array_equal(x, x) | np.array_equal(x, x)
        dt.array_equiv(x, x[None]) | np.array_equiv(x, x[None])
        dt.broadcast_shapes((2, 1), (3,)) | np.broadcast_shapes((2, 1), (3,))
        dt.numel(x) | x.size
        dt.is_complex(x) | x.dtype.kind == "c"
        dt.is_floating_point(x) | x.dtype.kind == "f"
        """,
        of="f", shapes={"x": (3, 3)}, but={"float32": "x has no part in it"},
    ),
]  # fmt: skip
