"""PyTorch's initialisers of weights, which write into a tensor and return it.

They draw from `dt.random`'s generator, or from `generator=`: a seed gives equal bits on every
device (docs/numerics.md describes how each distribution is drawn).

In all of them, `tensor` is written and returned, `gain` is a factor of the standard deviation (see
`calculate_gain`), and `generator` is the random generator.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import dovetail as dt
from dovetail.extend import arguments, publish_all

from .call_errors import explain_all
from .functional.sizes import check_probability
from .missing_names import make_module_getattr

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

Tensor: TypeAlias = dt.Tensor
Generator: TypeAlias = dt.random.Generator
_LINEAR = frozenset(
    (
        "linear",
        "sigmoid",
        *(f"conv{kind}{d}d" for kind in ("", "_transpose") for d in (1, 2, 3)),
    )
)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor that keeps the standard deviation of values through a nonlinearity.

    - `nonlinearity`: "linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu", or the name of a
      convolution ("conv2d"), which is linear.
    - `param`: the slope of "leaky_relu", by default 0.01.

    Raises: ArgumentError for another name, ArgumentTypeError for a slope that is not a number.

    >>> import dovetail as dt
    >>> dt.nn.init.calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity in _LINEAR:
        return 1.0
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, int | float)):
            raise dt.ArgumentTypeError(
                f"calculate_gain: param, the slope of leaky_relu, must be a number, got {param!r}"
            )
        slope = arguments.real("calculate_gain", 0.01 if param is None else param, "param")
        return math.sqrt(2.0 / (1.0 + (slope**2 if abs(slope) < 1e150 else math.inf)))
    gains = {"tanh": 5.0 / 3.0, "relu": math.sqrt(2.0), "selu": 0.75}
    if nonlinearity not in gains:
        raise dt.ArgumentError(
            "calculate_gain: nonlinearity must be one of "
            f"{', '.join(sorted({'leaky_relu', *gains} | _LINEAR))}, got {nonlinearity!r}"
        )
    return gains[nonlinearity]


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill a tensor from the uniform distribution over a <= x < b.

    - `a`, `b`: the bounds.

    Shapes: any.
    Dtypes: floats.
    Raises: DTypeError for others.

    >>> import dovetail as dt
    >>> w = dt.nn.init.uniform_(dt.empty(3), 1.0, 2.0)
    >>> bool((w >= 1).all() & (w < 2).all())
    True
    """
    low, high = arguments.real("uniform_", a, "a"), arguments.real("uniform_", b, "b")
    with dt.no_grad():
        return tensor.uniform_(low, high, generator=generator)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill a tensor from the normal distribution.

    - `mean`, `std`: the mean and the standard deviation.

    Shapes: any.
    Dtypes: floats and complex.
    Raises: DTypeError for integers and bool; ArgumentError for a negative std.
    See also: `trunc_normal_`, `uniform_`, `kaiming_normal_`.

    >>> import dovetail as dt
    >>> dt.nn.init.normal_(dt.empty((2, 3))).shape
    (2, 3)
    """
    if std < 0:
        raise dt.ArgumentError(f"init.normal_: std must not be negative, got {std}")
    with dt.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill a tensor from the normal distribution between the bounds a and b.

    - `mean`, `std`: those of the normal distribution before it is cut off.
    - `a`, `b`: the least and the greatest value.

    Values are drawn by the inverse distribution function, without rejection.
    Shapes: any.
    Dtypes: floats.
    Raises: DTypeError for others.

    >>> import dovetail as dt
    >>> w = dt.nn.init.trunc_normal_(dt.empty(9), std=5.0, a=-1.0, b=1.0)
    >>> bool((w >= -1).all() & (w <= 1).all())
    True
    """
    with dt.no_grad():
        values = dt.random.truncated_normal(
            a,
            b,
            tensor.shape,
            mean=mean,
            std=std,
            dtype=tensor.dtype,
            device=tensor.device,
            generator=generator,
        )
        return tensor.copy_(values)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill a tensor with a number.

    - `val`: the number.

    Shapes: any.
    Dtypes: all; the number has to fit.
    Raises: as `Tensor.fill_`: DTypeError for a value that is not a number, ValueOverflowError.

    >>> import dovetail as dt
    >>> dt.nn.init.constant_(dt.empty(2), 0.5).tolist()
    [0.5, 0.5]
    """
    with dt.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill a tensor with ones.

    Shapes: any.
    Dtypes: all.
    Raises: as `Tensor.fill_`.

    >>> import dovetail as dt
    >>> dt.nn.init.ones_(dt.empty(2)).tolist()
    [1.0, 1.0]
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill a tensor with zeros.

    Shapes: any.
    Dtypes: all.
    Raises: as `Tensor.fill_`.

    >>> import dovetail as dt
    >>> dt.nn.init.zeros_(dt.empty(2)).tolist()
    [0.0, 0.0]
    """
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with ones on its diagonal and zeros elsewhere.

    Shapes: a matrix.
    Dtypes: all.
    Raises: ShapeError for another number of dimensions.

    >>> import dovetail as dt
    >>> dt.nn.init.eye_(dt.empty((2, 3))).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    if tensor.ndim != 2:
        raise dt.ShapeError(f"eye_: expected a tensor with 2 dimensions, got shape {tensor.shape}")
    with dt.no_grad():
        return tensor.copy_(dt.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that it copies as many channels as it can.

    - `groups`: the number of groups of the convolution; each copies its own channels.

    Shapes: 3 to 5 dimensions, (out, in, ...).
    Dtypes: all.
    Raises: ShapeError for another number of dimensions, or `out` that `groups` does not divide.

    >>> import dovetail as dt
    >>> dt.nn.init.dirac_(dt.empty((2, 2, 3)))[0].tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    if tensor.ndim not in (3, 4, 5):
        raise dt.ShapeError(
            f"dirac_: expected a tensor with 3, 4 or 5 dimensions, got shape {tensor.shape}"
        )
    out, inner, *window = tensor.shape
    if arguments.integer("dirac_", groups, "groups") < 1 or out % groups:
        raise dt.ShapeError(
            f"dirac_: the number of output channels must be divisible by groups, got {out} and "
            f"{groups}"
        )
    on = tensor.device
    channel = dt.arange(out, device=on) % (out // groups)
    ones = channel.reshape((out, 1)) == dt.arange(inner, device=on)
    ones = ones.reshape((out, inner, *(1,) * len(window)))
    for axis, n in enumerate(window):
        is_middle = dt.arange(n, device=on) == n // 2
        ones = ones & is_middle.reshape((n, *(1,) * (len(window) - axis - 1)))
    with dt.no_grad():
        return tensor.copy_(ones)


def _fans(name: str, tensor: Tensor) -> tuple[int, int]:
    """Return (fan_in, fan_out), the inputs and outputs of a weight.

    Raises: ShapeError for fewer than 2 dimensions.
    """
    if tensor.ndim < 2:
        raise dt.ShapeError(
            f"{name}: expected a tensor with at least 2 dimensions, (out, in, ...), got shape "
            f"{tensor.shape}"
        )
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill a weight from the uniform distribution over +-gain * sqrt(6 / (in + out)).

    Shapes: (out, in, ...).
    Dtypes: floats.
    Raises: ShapeError for fewer dimensions; DTypeError for others.
    See also: `kaiming_normal_`, `calculate_gain`.
    Source: Glorot, Bengio, "Understanding the difficulty of training deep feedforward neural
    networks", AISTATS 2010.

    >>> import dovetail as dt
    >>> w = dt.nn.init.xavier_uniform_(dt.empty((3, 3)))
    >>> bool((dt.abs(w) <= 1).all())
    True
    """
    factor = arguments.real("xavier_uniform_", gain, "gain")
    bound = factor * math.sqrt(6.0 / (sum(_fans("xavier_uniform_", tensor)) or 1))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill a weight from the normal distribution of std gain * sqrt(2 / (in + out)).

    Shapes: (out, in, ...).
    Dtypes: floats and complex.
    Raises: ShapeError for fewer dimensions; DTypeError for integers and bool.
    See also: `kaiming_normal_`, `calculate_gain`.
    Source: Glorot, Bengio, AISTATS 2010.

    >>> import dovetail as dt
    >>> dt.nn.init.xavier_normal_(dt.empty((3, 3))).shape
    (3, 3)
    """
    factor = arguments.real("xavier_normal_", gain, "gain")
    std = factor * math.sqrt(2.0 / (sum(_fans("xavier_normal_", tensor)) or 1))
    return normal_(tensor, 0.0, std, generator)


def _kaiming_std(name: str, tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    """Return gain / sqrt(fan), the standard deviation.

    Raises: ArgumentError for an unknown mode or nonlinearity, ShapeError for fewer than 2
    dimensions.
    """
    if mode not in ("fan_in", "fan_out"):
        raise dt.ArgumentError(f"{name}: mode must be 'fan_in' or 'fan_out', got {mode!r}")
    fan = _fans(name, tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, arguments.real(name, a, "a")) / math.sqrt(fan or 1)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill a weight uniformly so that values keep their variance through the nonlinearity.

    - `a`: the slope of "leaky_relu".
    - `mode`: "fan_in" keeps the variance on the way forward, "fan_out" that of gradients on the way
      back.
    - `nonlinearity`: the function after the layer, as of `calculate_gain`.

    Shapes: (out, in, ...).
    Dtypes: floats.
    Raises: ShapeError for fewer dimensions; ArgumentError for another mode or nonlinearity;
    DTypeError for other than floats.
    See also: `xavier_uniform_`, `calculate_gain`.
    Source: He, Zhang, Ren, Sun, "Delving deep into rectifiers", ICCV 2015.

    >>> import dovetail as dt
    >>> w = dt.nn.init.kaiming_uniform_(dt.empty((3, 6)))
    >>> bool((dt.abs(w) <= 1).all())
    True
    """
    bound = math.sqrt(3.0) * _kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill a weight from a normal distribution so that values keep their variance.

    - `a`: the slope of "leaky_relu".
    - `mode`: "fan_in" keeps the variance on the way forward, "fan_out" that of gradients on the way
      back.
    - `nonlinearity`: the function after the layer, as of `calculate_gain`.

    Shapes: (out, in, ...).
    Dtypes: floats and complex.
    Raises: ShapeError for fewer dimensions; ArgumentError for another mode or nonlinearity;
    DTypeError for integers and bool.
    See also: `xavier_uniform_`, `calculate_gain`.
    Source: He, Zhang, Ren, Sun, ICCV 2015.

    >>> import dovetail as dt
    >>> dt.nn.init.kaiming_normal_(dt.empty((3, 6))).shape
    (3, 6)
    """
    std = _kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity)
    return normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill a weight with orthonormal rows, or columns if these are fewer, times `gain`.

    Shapes: (out, ...): a matrix of `out` rows.
    Dtypes: float32, float64; the others by way of float32.
    Raises: ShapeError for fewer than two dimensions.
    See also: `xavier_uniform_`, `kaiming_uniform_`.
    Source: Saxe, McClelland, Ganguli, "Exact solutions to the nonlinear dynamics of learning in
    deep linear neural networks", ICLR 2014; Mezzadri, "How to generate random matrices from the
    classical compact groups", 2007, for the signs.

    >>> import dovetail as dt
    >>> w = dt.nn.init.orthogonal_(dt.empty((2, 3)))
    >>> bool(dt.allclose(w @ w.T, dt.eye(2), atol=1e-6))
    True
    """
    if tensor.ndim < 2:
        raise dt.ShapeError(
            f"orthogonal_: expected a tensor with at least 2 dimensions, got shape {tensor.shape}"
        )
    if tensor.size == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.size // rows
    dtype = tensor.dtype if tensor.dtype.itemsize > 2 else dt.float32
    with dt.no_grad():
        normal = dt.random.normal(
            (max(rows, columns), min(rows, columns)),
            dtype=dtype,
            device=tensor.device,
            generator=generator,
        )
        q, r = dt.linalg.qr(normal)
        q = q * dt.sign(dt.diagonal(r))
        q = (q.T if rows < columns else q) * gain
        return tensor.copy_(q.reshape(tensor.shape))


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Fill a matrix from the normal distribution, with a fraction of zeros in each column.

    - `sparsity`: the fraction of zeros; their number is rounded up.
    - `std`: the standard deviation of the other elements.

    Shapes: a matrix.
    Dtypes: floats and complex.
    Raises: ShapeError for another number of dimensions; DTypeError for integers and bool.
    Source: Martens, "Deep learning via Hessian-free optimization", ICML 2010.

    >>> import dovetail as dt
    >>> w = dt.nn.init.sparse_(dt.empty((10, 3)), 0.3)
    >>> dt.count_nonzero(w, axis=0).tolist()
    [7, 7, 7]
    """
    if tensor.ndim != 2:
        raise dt.ShapeError(
            f"sparse_: expected a tensor with 2 dimensions, got shape {tensor.shape}"
        )
    zeros = math.ceil(check_probability("sparse_", sparsity, "sparsity") * tensor.shape[0])
    with dt.no_grad():
        on = tensor.device
        normal = dt.random.normal(
            tensor.shape, std=std, dtype=tensor.dtype, device=on, generator=generator
        )
        keys = dt.random.uniform(tensor.shape, device=on, generator=generator)
        rank = dt.argsort(dt.argsort(keys, axis=0), axis=0)
        return tensor.copy_(dt.where(rank < zeros, 0.0, normal))


explain_all(globals(), __all__)
publish_all(globals())


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = make_module_getattr("nn.init")
