"""Autocast: products compute in a half dtype, and functions that need range in float32.

A function listed here gets its operands cast at its entrance; inside of every function of dovetail
autocast is off, so that it is composed as always. The casts are ordinary ops: products read them
while they pack their operands, and gradients flow through them.

The lists are those of PyTorch's CUDA backend (2.13). Functions that are in neither run in the dtype
of their operands, and several operands are promoted as always.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import settings
from ..argument_checks import flag
from ..callbacks import NOT_ACTIVE
from ..device_class import device as device_named
from ..dtypes import DType, bfloat16, float32, float64
from ..dtypes import dtype as dtype_of
from ..errors import ArgumentError, DTypeError
from ..settings import NO_AUTOCAST, current, restore, set_autocast
from ..tensor.c_fields import is_strided
from ..tensor.tensor import Tensor
from .datatypes import DTypeLike, cast

__all__ = ["autocast", "get_autocast_dtype", "is_autocast_enabled"]

IN_HALF = """
    matmul addmm addmv baddbmm einsum matvec multi_dot vecdot vecmat
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
    flex_attention gru_cell linear lstm_cell multi_head_attention_forward prelu recurrent_layer
    rnn_relu_cell rnn_tanh_cell scaled_dot_product_attention
"""
IN_FLOAT32 = """
    acos asin cosh erfinv exp expm1 log log10 log1p log2 pow reciprocal rsqrt sinh tan
    cdist cumprod cumsum cumulative_prod cumulative_sum logsumexp matrix_norm norm prod sum
    vector_norm
    cosine_similarity group_norm gumbel_softmax interpolate layer_norm log_softmax normalize
    pairwise_distance rms_norm softmax softmin softplus upsample
    binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy
    gaussian_nll_loss hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss
    multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss nll_loss
    poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss
"""
REFUSED = {
    "binary_cross_entropy": "binary_cross_entropy: must not run under autocast, because a half "
    "rounds probabilities near 1 to 1; use dt.nn.functional.binary_cross_entropy_with_logits, or "
    "dt.autocast(enabled=False) around float32 inputs"
}
HALF_NAMES = frozenset(IN_HALF.split())
CAST_NAMES = frozenset((*HALF_NAMES, *IN_FLOAT32.split(), *REFUSED))


class autocast(settings.Switch):
    """A context, or decorator, in which products compute in a half dtype.

    Products, convolutions, attention and recurrent layers cast their float32 and half operands to
    `dtype`. Functions that need range or precision, such as `exp`, `sum`, `softmax`, norms and
    losses, cast halves to float32. All others take their operands as they are. float64, complex
    numbers and integers are never cast; nor are calls with `dtype=` or `out=`, methods that write
    (`x.exp_()`), and tensors of other layouts. The lists are PyTorch's for CUDA, on all devices.
    `dt.nn.functional.binary_cross_entropy` raises. Parameters stay float32, and so do their
    gradients. An inner block replaces an outer one. A backward pass runs without autocast, in the
    dtypes of the forward pass. It holds for this thread, or asyncio task, alone.

    - `device_type`: autocast holds for tensors on devices of this type, such as "cuda"; None: all.
    - `dtype`: `dt.bfloat16` or `dt.float16`. float16 needs `dt.amp.GradScaler` in training.
    - `enabled`: False turns autocast off inside.
    - `cache_enabled`: accepted as PyTorch's; casts are never cached.

    Raises: DTypeError for another dtype, DeviceError, ArgumentTypeError.
    See also: `amp.GradScaler`, `is_autocast_enabled`.

    >>> import dovetail as dt
    >>> x = dt.ones((2, 2))
    >>> with dt.autocast():
    ...     y = x @ x
    ...     z = dt.exp(y)
    >>> y.dtype, z.dtype, (x @ x).dtype
    (dovetail.bfloat16, dovetail.float32, dovetail.float32)
    """

    def __init__(
        self,
        device_type: str | None = None,
        dtype: DTypeLike = bfloat16,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        half = _half_dtype(bfloat16 if dtype is None else dtype)
        on = flag("autocast", enabled, "enabled")
        if cache_enabled is not None:
            flag("autocast", cache_enabled, "cache_enabled")
        super().__init__(autocast={_device_type("autocast", device_type): half if on else None})


def _half_dtype(dtype: DTypeLike) -> DType:
    """Return the dtype of products. Raises: DTypeError unless it is float16 or bfloat16."""
    half = dtype_of(dtype, "autocast")
    if half.name not in ("float16", "bfloat16"):
        raise DTypeError(
            f"autocast: dtype must be dt.bfloat16 or dt.float16, got {half.name}; to turn autocast "
            "off pass enabled=False"
        )
    return half


def _device_type(op: str, device_type: object) -> str | None:
    """Return the name of a device type, None for None. Raises: DeviceError for other names."""
    return None if device_type is None else device_named(device_type, op).type  # type: ignore[arg-type]  # checked there


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Return True if autocast is on in this thread, for a device type or by default for any.

    - `device_type`: for tensors on devices of this type; None: of any type.

    Raises: DeviceError for a malformed name.
    See also: `autocast`, `get_autocast_dtype`.

    >>> import dovetail as dt
    >>> with dt.autocast("cpu"):
    ...     dt.is_autocast_enabled(), dt.is_autocast_enabled("cuda")
    (True, False)
    """
    dtypes = current().autocast
    if device_type is None:
        return any(dtypes.values())
    return _dtype_on(dtypes, _device_type("is_autocast_enabled", device_type)) is not None


def get_autocast_dtype(device_type: str | None = None) -> DType:
    """Return the dtype in which products compute under the autocast that is on here.

    It is the default, bfloat16, where autocast is off.

    - `device_type`: for tensors on devices of this type; None: of those not named by a block.

    Raises: DeviceError for a malformed name.
    See also: `autocast`, `is_autocast_enabled`.

    >>> import dovetail as dt
    >>> with dt.autocast(dtype=dt.float16):
    ...     dt.get_autocast_dtype("cpu")
    dovetail.float16
    """
    name = _device_type("get_autocast_dtype", device_type)
    return _dtype_on(current().autocast, name) or bfloat16


def _dtype_on(dtypes: Mapping[str | None, Any], device_type: str | None) -> DType | None:
    """Return the dtype of products on devices of a type, None where autocast is off."""
    dtype: DType | None = dtypes.get(device_type, dtypes.get(None))
    return dtype


# --- calls ----------------------------------------------------------------------------------------


def cast_operand(name: str, x: Any) -> Any:
    """Return an operand of a function, cast if autocast is on in this context, else as it is."""
    dtypes = current().autocast
    return _Casts(name, dtypes).cast(x) if dtypes and name in CAST_NAMES else x


def run(
    function: Callable[..., Any], name: str, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Return the result of a function with its operands cast, and with autocast off inside.

    It returns NOT_ACTIVE if autocast is off in this context, or if the function calls a function of
    the user, for which it stays on.
    """
    before = current()
    if not before.autocast or any(map(_is_function, (*args, *options.values()))):
        return NOT_ACTIVE
    if name in CAST_NAMES and options.get("out") is None and options.get("dtype") is None:
        casts = _Casts(name, before.autocast)
        args = tuple([casts.cast(a) for a in args])
        options = {n: casts.cast(a) for n, a in options.items()}
    try:
        set_autocast(NO_AUTOCAST)
        return function(*args, **options)
    finally:
        restore(before)


def _is_function(a: object) -> bool:
    """Return True for an argument that the called function may call."""
    return callable(a) and not isinstance(a, type)


class _Casts:
    """The casts of one call of a listed function: one for each tensor."""

    def __init__(self, name: str, dtypes: Mapping[str | None, Any]) -> None:
        self.name, self.dtypes, self.casts = name, dtypes, list[tuple[Tensor, Tensor]]()

    def cast(self, a: Any) -> Any:
        """Return an argument with eligible tensors cast, also in lists and tuples.

        Raises: ArgumentError for a function that must not run under autocast.
        """
        if isinstance(a, (list, tuple)):
            items = [self.cast(v) for v in a]
            return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
        if not is_strided(a):
            return a
        half = _dtype_on(self.dtypes, a.device.type)
        if half is None or a.dtype.kind != "f" or a.dtype is float64:
            return a
        if self.name in REFUSED:
            raise ArgumentError(REFUSED[self.name])
        for before, after in self.casts:  # one cast for each, so that its gradient is rounded once
            if before is a:
                return after
        after = cast(a, half if self.name in HALF_NAMES else float32)
        self.casts.append((a, after))
        return after
