"""Results and gradients for PyTorch's own samples (`OpInfo`, in its wheel) of the shared ops.

Both libraries compute each sample and its gradients, with the same weights. A sample with an
argument that dovetail lacks is skipped and counted; `pytest -s` shows the counts.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
pytest.importorskip("expecttest", reason="torch's OpInfo needs it: pip install expecttest")

pytestmark = pytest.mark.exhaustive

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db


class Unsupported(Exception):
    """Raised by a sample that uses an argument or a dtype that dovetail does not have."""


def known_arguments(given: dict[str, Any], *known: str) -> dict[str, Any]:
    """Return the arguments, or raise if one of them is unknown."""
    if set(given) - set(known):
        raise Unsupported(", ".join(sorted(set(given) - set(known))))
    return given


def same_operands(name: str) -> Callable[..., Any]:
    """Return dovetail's function that takes the same operands."""
    return lambda *a, **k: getattr(dt, name)(*a, **known_arguments(k))


def _dims(x: Any, dim: Any) -> Any:
    return None if dim is None or (isinstance(dim, list | tuple) and not dim) else dim


def reduction(name: str) -> Callable[..., Any]:
    """Return a reduction whose PyTorch dim and keepdim are axis and keepdims."""

    def f(x: Any, dim: Any = None, keepdim: bool = False, **k: Any) -> Any:
        if x.ndim == 0:
            dim = None
        return getattr(dt, name)(x, axis=_dims(x, dim), keepdims=keepdim, **known_arguments(k))

    return f


def moments(name: str) -> Callable[..., Any]:
    def f(x: Any, *a: Any, dim: Any = None, keepdim: bool = False, **k: Any) -> Any:
        k = known_arguments(k, "correction", "unbiased")
        if len(a) > 1 or (a and isinstance(a[0], bool)) or k.get("unbiased") is not None:
            raise Unsupported("unbiased")
        correction = k.get("correction", 1)
        return getattr(dt, name)(
            x, axis=_dims(x, a[0] if a else dim), keepdims=keepdim,
            correction=1 if correction is None else correction,
        )  # fmt: skip

    return f


def extreme(name: str) -> Callable[..., Any]:
    """Return max or min of two tensors or of all elements.

    Along a dim PyTorch picks any of several equal elements.
    """

    def f(x: Any, *a: Any, **k: Any) -> Any:
        known_arguments(k)
        if a and isinstance(a[0], dt.Tensor):
            return getattr(dt, name + "imum")(x, a[0])
        if a:
            raise Unsupported("dim")
        return getattr(dt, name)(x)

    return f


def along(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that PyTorch calls with `dim`, which may be 0 for a scalar."""

    def f(x: Any, dim: int, **k: Any) -> Any:
        known_arguments(k)
        if x.ndim == 0:
            raise Unsupported("no dimensions")
        return function(x, dim)

    return f


def scaled(name: str) -> Callable[..., Any]:
    return lambda x, y, alpha=1: getattr(dt, name)(x, y * alpha if alpha != 1 else y)


def divided(x: Any, y: Any, rounding_mode: Any = None) -> Any:
    if rounding_mode == "trunc":
        raise Unsupported("rounding_mode")
    return dt.divide(x, y) if rounding_mode is None else dt.floor_divide(x, y)


def clipped(x: Any, low: Any = None, high: Any = None, **k: Any) -> Any:
    k = known_arguments(k, "min", "max")
    return dt.clip(x, k.get("min", low), k.get("max", high))


def sizes(shape: Any) -> Any:
    return shape[0] if len(shape) == 1 and isinstance(shape[0], list | tuple) else shape


def shaped(x: Any, *shape: Any) -> Any:
    return dt.reshape(x, tuple(sizes(shape)))


def axes_of(x: Any, axes: Any) -> Any:
    return x.permute_dims(tuple(sizes(axes)))


def rows_of(x: Any, dim: int, index: Any) -> Any:
    if x.ndim == 0 or index.ndim != 1:
        raise Unsupported("no dimensions")
    return dt.take(x, index, axis=dim)


def picked(x: Any, dim: int, index: Any, **k: Any) -> Any:
    """Return PyTorch's gather: the index may be shorter along the other dimensions."""
    known_arguments(k)
    if x.ndim == 0 or index.ndim != x.ndim:
        raise Unsupported("no dimensions")
    d = dim % x.ndim
    part = x[tuple(slice(None) if i == d else slice(0, n) for i, n in enumerate(index.shape))]
    return dt.take_along_axis(part, index, axis=d)


def added(x: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    if x.ndim == 0 or index.ndim != 1 or isinstance(alpha, complex):
        raise Unsupported("no dimensions")
    return dt.index_add(x, dim, index, source * alpha if alpha != 1 else source)


def scattered(x: Any, dim: int, index: Any, src: Any, **k: Any) -> Any:
    known_arguments(k)
    if x.ndim == 0 or not isinstance(src, dt.Tensor):
        raise Unsupported("a number as src")
    src = src[tuple(slice(0, n) for n in index.shape)]
    return dt.scatter(x, dim, index, src)


def scatter_added(x: Any, dim: int, index: Any, src: Any) -> Any:
    if x.ndim == 0:
        raise Unsupported("no dimensions")
    out = dt.copy(x)
    return out.scatter_add_(dim, index, src[tuple(slice(0, n) for n in index.shape)])


def filled(x: Any, mask: Any, value: Any) -> Any:
    return dt.where(mask, value, x)


def chosen(a: Any, b: Any, c: Any) -> Any:
    """Return where() of a sample whose first operand is selected where the condition is True."""
    return dt.where(b, a, c)


def split_at(x: Any, at: Any, dim: int = 0) -> Any:
    return dt.split(x, at, axis=dim)


def transposed(x: Any, a: int = 0, b: int = 1) -> Any:
    return x if x.ndim < 2 else dt.swapaxes(x, a, b)


def squeezed(x: Any, *dim: Any) -> Any:
    if not dim:
        return dt.squeeze(x, axis=tuple(d for d, n in enumerate(x.shape) if n == 1))
    wanted = sizes(dim)
    if x.ndim == 0:
        return dt.copy(x)
    picked_ = tuple(sorted({d % x.ndim for d in wanted if x.shape[d] == 1}))
    return dt.squeeze(x, axis=picked_)


def subscripted(x: Any, key: Any) -> Any:
    return x[key]


def differences(x: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    return dt.diff(x, n=n, axis=dim, prepend=prepend, append=append)


def rolled(x: Any, shifts: Any, dims: Any = None, **k: Any) -> Any:
    return dt.roll(x, shifts, axis=_dims(x, dims if not k else k.get("dims")))


def logs(x: Any, dim: Any, keepdim: bool = False) -> Any:
    return dt.logsumexp(x, axis=None if x.ndim == 0 else _dims(x, dim), keepdims=keepdim)


def in_order(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    if x.ndim == 0:
        raise Unsupported("no dimensions")
    return dt.sort(x, axis=dim, descending=descending)


def largest(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    if x.ndim == 0:
        raise Unsupported("no dimensions")
    return dt.topk(x, k, axis=dim, largest=largest)[0]


def joined(function: Callable[..., Any]) -> Callable[..., Any]:
    def f(parts: Any, dim: int = 0, **k: Any) -> Any:
        known_arguments(k)
        if len({p.ndim for p in parts}) > 1:
            raise Unsupported("an empty vector among the parts")
        return function(list(parts), axis=dim)

    return f


def windows(x: Any, size: Any, stride: Any, storage_offset: Any = 0) -> Any:
    return (x * 1.0).as_strided(tuple(size), tuple(stride), storage_offset or 0)


def contracted(x: Any, y: Any, dims: Any = 2) -> Any:
    """Return a tensordot that also broadcasts contracted axes of size 1, as in PyTorch."""
    axes = dims if isinstance(dims, int) else (tuple(dims[0]), tuple(dims[1]))
    if not isinstance(axes, int) and any(
        x.shape[i] != y.shape[j] for i, j in zip(*axes, strict=True)
    ):
        raise Unsupported("broadcast axes")
    return dt.tensordot(x, y, axes=axes)


ELEMENTWISE = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "atan2", "ceil", "copysign", "cos",
    "cosh", "erf", "erfc", "exp", "exp2", "expm1", "floor", "hypot", "log", "log10", "log1p",
    "log2", "logaddexp", "maximum", "minimum", "positive", "pow", "reciprocal", "remainder",
    "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
    "matmul", "outer",
)  # fmt: skip

OURS: dict[str, Callable[..., Any]] = {
    **{name: same_operands(name) for name in ELEMENTWISE},
    **{name: reduction(name) for name in ("sum", "mean", "prod")},
    "amax": reduction("max"), "amin": reduction("min"), "max": extreme("max"),
    "min": extreme("min"),
    "var": moments("var"), "std": moments("std"), "logsumexp": logs,
    "neg": same_operands("negative"), "mul": same_operands("multiply"),
    "true_divide": same_operands("divide"),
    "mm": same_operands("matmul"), "bmm": same_operands("matmul"), "mv": same_operands("matmul"),
    "dot": same_operands("matmul"),
    "__rmatmul__": lambda x, y: y @ x,
    "__radd__": lambda x, y: y + x, "__rmul__": lambda x, y: y * x, "__rsub__": lambda x, y: y - x,
    "__rdiv__": lambda x, y: y / x, "__rpow__": lambda x, y: y**x,
    "__getitem__": subscripted, "add": scaled("add"), "sub": scaled("subtract"), "div": divided,
    "clamp": clipped, "clamp_min": lambda x, m: dt.clip(x, min=m),
    "clamp_max": lambda x, m: dt.clip(x, max=m), "round": lambda x, **k: dt.round(x, **k),
    "nn.functional.relu": lambda x, **k: dt.relu(x, **known_arguments(k)),
    "softmax": along(lambda x, d: dt.softmax(x, axis=d)),
    "log_softmax": along(lambda x, d: dt.log_softmax(x, axis=d)),
    "cumsum": along(lambda x, d: dt.cumulative_sum(x, axis=d)),
    "logcumsumexp": along(lambda x, d: dt.cumulative_logsumexp(x, axis=d)),
    "cumprod": along(lambda x, d: dt.cumulative_prod(x, axis=d)),
    "cat": joined(dt.concat), "stack": joined(dt.stack), "clone": lambda x, **k: dt.copy(x),
    "reshape": shaped, "view": shaped, "permute": axes_of, "transpose": transposed,
    "t": transposed, "mT": lambda x: x.mT, "T": lambda x: x.T,
    "expand": lambda x, *s: dt.broadcast_to(
        x, tuple(n if n >= 0 else x.shape[i - len(sizes(s))] for i, n in enumerate(sizes(s)))),
    "broadcast_to": lambda x, s: dt.broadcast_to(x, tuple(s)),
    "flip": lambda x, dims: dt.flip(x, axis=tuple(dims)), "roll": rolled, "diff": differences,
    "movedim": lambda x, a, b: dt.moveaxis(x, a, b), "unsqueeze": lambda x, d: dt.expand_dims(
        x, axis=d), "squeeze": squeezed, "unbind": lambda x, dim=0: dt.unstack(x, axis=dim),
    "select": lambda x, d, i: x[(*[slice(None)] * (d % x.ndim), i)],
    "narrow": lambda x, d, s, n: x[(*[slice(None)] * (d % x.ndim), slice(int(s) % max(
        x.shape[d], 1) if int(s) < 0 else int(s), (int(s) % max(x.shape[d], 1)
        if int(s) < 0 else int(s)) + n))],
    "tile": lambda x, s: dt.tile(x, tuple(s)), "tril": lambda x, k=0: dt.tril(x, k=k),
    "triu": lambda x, k=0: dt.triu(x, k=k), "where": chosen, "masked_fill": filled,
    "masked_select": lambda x, m: dt.broadcast_arrays(x, m)[0][dt.broadcast_arrays(x, m)[1]],
    "index_select": rows_of, "gather": picked, "index_add": added, "scatter": scattered,
    "scatter_add": scatter_added, "take_along_dim": lambda x, i, dim=None: dt.take_along_axis(
        x if dim is not None else dt.ravel(x), i if dim is not None else dt.ravel(i),
        axis=0 if dim is None else dim),
    "as_strided": windows,
    "tensordot": contracted,
    "einsum": lambda parts, text: dt.einsum(text, *parts),
    "sort": in_order, "msort": lambda x: in_order(x, 0), "topk": largest,
}  # fmt: skip
INFOS = {i.name: i for i in op_db if i.name in OURS and not i.variant_test_name}
COUNTS: dict[str, tuple[int, int]] = {}


def converted(value: Any, leaves: list[Any]) -> Any:
    """Return a torch argument as dovetail's;

    `leaves` collects the pairs that require a gradient.
    """
    if isinstance(value, torch.Tensor):
        if value.is_complex():
            raise Unsupported("complex")
        t = dt.asarray(value.detach().contiguous().numpy(), copy=True)
        if value.requires_grad:
            leaves.append((value, t.requires_grad_()))
        return t
    if isinstance(value, list | tuple):
        made = [converted(v, leaves) for v in value]
        return made if isinstance(value, list) else tuple(made)
    if isinstance(value, torch.dtype | complex):
        raise Unsupported(str(value))
    return value


def listed(made: Any) -> list[Any]:
    return list(made) if isinstance(made, list | tuple) else [made]


def compare(info: Any, sample: Any) -> None:
    """Compare the results, then the gradients, of one sample."""
    leaves: list[Any] = []
    args = [converted(a, leaves) for a in (sample.input, *sample.args)]
    named = {k: converted(v, leaves) for k, v in sample.kwargs.items()}
    ours = listed(OURS[info.name](*args, **named))
    theirs = listed(info(sample.input, *sample.args, **sample.kwargs))
    if len(ours) == 1 and len(theirs) == 2 and not theirs[1].is_floating_point():
        theirs = theirs[:1]  # positions come with them
    pairs = [(o, t) for o, t in zip(ours, theirs, strict=True) if t.is_floating_point()]
    for o, t in pairs:
        np.testing.assert_allclose(o.numpy(), t.detach().numpy(), 1e-9, 1e-12)
    pairs = [(o, t) for o, t in pairs if t.requires_grad]
    if not leaves or not pairs:
        return
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=tuple(t.shape)) for _, t in pairs]
    want = torch.autograd.grad(
        [t for _, t in pairs], [x for x, _ in leaves], [torch.tensor(w) for w in weights],
        allow_unused=True,
    )  # fmt: skip
    have = dt.grad(
        [o for o, _ in pairs], [x for _, x in leaves],
        [dt.asarray(np.asarray(w)) for w in weights], allow_unused=True,
    )  # fmt: skip
    for h, w, (x, _) in zip(have, want, leaves, strict=True):
        zero = np.zeros(tuple(x.shape))
        np.testing.assert_allclose(
            zero if h is None else h.numpy(), zero if w is None else w.numpy(force=True),
            1e-7, 1e-10,
        )  # fmt: skip


@pytest.mark.parametrize("name", sorted(INFOS))
def test_opinfo_samples_equal_pytorch(name: str) -> None:
    info, done, left = INFOS[name], 0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in info.sample_inputs("cpu", torch.float64, requires_grad=True):
            try:
                compare(info, sample)
            except Unsupported:
                left += 1
            else:
                done += 1
    COUNTS[name] = (done, left)
    print(f"{name}: {done} samples agree, {left} left out")
    assert done


def test_most_shared_ops_have_opinfo_samples() -> None:
    assert len(INFOS) > 0.9 * len(OURS), sorted(set(OURS) - set(INFOS))
