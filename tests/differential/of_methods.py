"""Rows of methods, properties and operators of tensors that are not functions of `dt`."""

from __future__ import annotations

from differential.table import Row, group

ROWS = [
    Row("x.T", "x.T", of="biuhfc", shapes="matrix"),
    Row("dt.t(x)", "x.T", of="biuhfc", shapes="matrix"),
    Row("x.view(-1)", "x.reshape(-1)", of="biuhfc", layouts=False),
    Row("x.numpy()", "x", of="biuhfc", but={"bfloat16": "of ml_dtypes, if installed"}),
    Row("x.to(dt.float64)", "x.astype('f8')", of="biuhf", gives="float64"),
    Row("x.type_as(dt.ones(1, dtype=dt.float64))", "x.astype('f8')", of="biuhf", gives="float64"),
    *group(
        """
        x.conjugate() | np.conjugate(x)
        x.real | np.real(x)
        x.copy_(x * 2) | x * 2
        """,
        of="iuhfc",
    ),
    *group(
        """
        dt.masked_fill(x, x > 0, 1) | np.where(x > 0, np.ones_like(x), x)
        x.masked_fill_(x > 0, 1) | np.where(x > 0, np.ones_like(x), x)
        """,
        of="iuhf",
    ),
    *group(
        """
        x.mT | np.matrix_transpose(x)
        x.clone() | x
        x.detach() | x
        x.expand(2, *x.shape) | np.broadcast_to(x, (2, *x.shape))
        x.expand_as(x[None]) | x[None]
        x.movedim(0, -1) | np.moveaxis(x, 0, -1)
        x.permute(tuple(range(x.ndim))[::-1]) | np.transpose(x)
        x.reshape_as(x[None]) | x[None]
        x.unsqueeze(0) | x[None]
        dt.chunk(x, 2) | np.array_split(x, [(x.shape[0] + 1) // 2]) if x.shape[0] > 1 else [x]
        x.fill_(1) | np.ones_like(x)
        x.zero_() | np.zeros_like(x)
        x.shape | x.shape
        x.ndim | x.ndim
        x.dim() | x.ndim
        x.size | x.size
        x.numel() | x.size
        x.tolist() | x.tolist()
        """,
        of="biuhfc",
    ),
    *group(
        """
        x.cumsum(0) | np.cumsum(x, 0)
        x.cumsum() | np.cumsum(x)
        x.cumprod(-1) | np.cumprod(x, -1)
        """,
        of="biuhfc", shapes="matrix", ulps=8, scale="np.sum(np.abs(x))", but={"extremes": "sums that overflow"},
    ),
    *group(
        """
        x.clamp(1, 3) | np.clip(x, 1, 3)
        x.clamp(min=1) | np.clip(x, 1, None)
        x.clamp_(1, 3) | np.clip(x, 1, 3)
        x.clip_(1, 3) | np.clip(x, 1, 3)
        """,
    ),
    *group(
        """
        x.div(y) | x / y
        x.mul(y) | x * y
        x.sub(y) | x - y
        x.neg() | -x
        x.eq(y) | x == y
        x.ne(y) | x != y
        x + y | x + y
        x - y | x - y
        x * y | x * y
        x / y | x / y
        -x | -x
        +x | +x
        abs(x) | abs(x)
        x == y | x == y
        x != y | x != y
        2 + x | 2 + x
        2 - x | 2 - x
        2 * x | 2 * x
        2 / x | 2 / x
        """,
        of="iuhfc", shapes="pair", ulps=8,
    ),
    *group(
        """
        x.ge(y) | x >= y
        x.gt(y) | x > y
        x.le(y) | x <= y
        x.lt(y) | x < y
        x % y | x % y
        x < y | x < y
        x <= y | x <= y
        x > y | x > y
        x >= y | x >= y
        7 % x | 7 % x
        """,
        shapes="pair",
    ),
    *group(
        """
        x // y | x // y
        divmod(x, y) | np.divmod(x, y)
        7 // x | 7 // x
        """,
        shapes="pair", but={"special": "inf // 2 is inf here, NaN in NumPy"},
    ),
    *group(
        """
        x & y | x & y
        x ^ y | x ^ y
        ~x | ~x
        """,
        of="biu", shapes="pair",
    ),
    Row("x | y", "x | y", of="biu", shapes="pair"),
    *group(
        """
        x[0] | x[0]
        x[-1] | x[-1]
        x[::-1] | x[::-1]
        x[1:, ::2] | x[1:, ::2]
        x[..., 0] | x[..., 0]
        x[None] | x[None]
        x[[0, -1, 0]] | x[[0, -1, 0]]
        x[x > 0] | x[x > 0]
        x[:, [1, 0]] | x[:, [1, 0]]
        """,
        of="biuhf", shapes="matrix",
    ),
    Row("x @ x.T", "x @ x.T", of="iuhfc", shapes="matrix", ulps=4, scale="np.sum(np.abs(x) ** 2)", but={"extremes": "sums that overflow"}),
    Row("x.index_add_(0, I([0, 2, 0]), x[:3] * 1)", "torch.index_add(x, 0, I([0, 2, 0]), x[:3])", of="ihfc", shapes={"x": (3, 4)}, ulps=4),
    Row("x.scatter_(0, I([[0, 2, 1, 0]]), x[1:2] * 1)", "torch.scatter(x, 0, I([[0, 2, 1, 0]]), x[1:2])", of="ihfc", shapes={"x": (3, 4)}),
    Row("x.scatter_add_(0, I([[0, 2, 1, 0]]), x[1:2] * 1)", "torch.scatter_add(x, 0, I([[0, 2, 1, 0]]), x[1:2])", of="ihfc", shapes={"x": (3, 4)}, ulps=4),
]  # fmt: skip
