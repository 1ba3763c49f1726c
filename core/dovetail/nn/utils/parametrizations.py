"""Common parametrizations of weights: norms that are learnt, bounded norms, orthogonal matrices."""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import dovetail as dt

from .. import functional as F
from ..call_errors import explain_all
from ..modules.convolution import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from .parametrize import LISTS, register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

Tensor: TypeAlias = dt.Tensor
ORTHOGONAL_MAPS = ("matrix_exp", "cayley", "householder")
FIRST_POWER_ITERATIONS = 15  # PyTorch's, at the registration


def require_tensor(op: str, module: Module, name: str) -> Tensor:
    """Return a tensor of a module. Raises: ArgumentError if there is none of the name."""
    weight = getattr(module, name, None)
    if not isinstance(weight, dt.Tensor):
        raise dt.ArgumentError(f"{op}: {type(module).__name__} has no parameter or buffer {name!r}")
    return weight


# --- weight_norm ----------------------------------------------------------------------------------


class WeightNorm(Module):
    """A tensor as a direction times a norm for each part along axis `dim`; None is one norm."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def norm(self, weight: Tensor) -> Tensor:
        """Return the norm of each part, with the axes of the weight."""
        if self.dim == -1:
            return dt.linalg.vector_norm(weight)
        axes = tuple(d for d in range(weight.ndim) if d != self.dim % weight.ndim)
        return dt.linalg.vector_norm(weight, axis=axes, keepdims=True) if axes else dt.abs(weight)

    def forward(self, g: Tensor, v: Tensor) -> Tensor:
        """Return the weight of norm `g` and direction `v`."""
        return v * (g / self.norm(v))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return the norm and the direction of a weight."""
        return self.norm(weight), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn a weight as its norms and its direction; return the module.

    - `module`: the module.
    - `name`: the name of the weight.
    - `dim`: the axis whose parts have a norm each; None is one norm of all.

    The norms are `parametrizations.weight.original0`, the direction is `original1`. States of the
    older `dt.nn.utils.weight_norm`, of `weight_g` and `weight_v`, can be loaded.
    Raises: ArgumentError for a name that the module lacks.
    Source: Salimans and Kingma, Weight normalization, 2016.
    See also: `spectral_norm`, `parametrize.remove_parametrizations`.

    >>> import dovetail as dt
    >>> layer = dt.nn.utils.parametrizations.weight_norm(dt.nn.Linear(3, 2))
    >>> [*layer.state_dict()]
    ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    require_tensor("weight_norm", module, name)
    register_parametrization(module, name, WeightNorm(dim), unsafe=True)
    module.register_load_state_dict_pre_hook(functools.partial(_rename_old_state, name))
    return module


def _rename_old_state(
    name: str, module: Module, state: dict[str, Any], prefix: str, *others: object
) -> None:
    """Rename the entries of the older `weight_norm` in a state, before it is loaded."""
    pairs = {f"{prefix}{name}_g": "original0", f"{prefix}{name}_v": "original1"}
    if pairs.keys() <= state.keys():
        for old, new in pairs.items():
            state[f"{prefix}{LISTS}.{name}.{new}"] = state.pop(old)


# --- spectral_norm --------------------------------------------------------------------------------


class SpectralNorm(Module):
    """A tensor divided by its largest singular value, by power iterations in training."""

    begins_with_v = False  # the order of an iteration in the older function
    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        if n_power_iterations < 1:
            raise dt.ArgumentError(
                f"spectral_norm: n_power_iterations must be positive, got {n_power_iterations}"
            )
        if not -weight.ndim <= dim < weight.ndim:
            raise dt.AxisError(f"spectral_norm: dim must be an axis of {weight.shape}, got {dim}")
        self.dim, self.eps, self.n_power_iterations = dim % weight.ndim, eps, n_power_iterations
        if weight.ndim > 1:
            matrix = self.reshape_to_matrix(weight.detach())
            u, v = (
                self.normalize(dt.random.randn(n, dtype=weight.dtype, device=weight.device))
                for n in matrix.shape
            )
            u, v = self.iterate(matrix, u, v, FIRST_POWER_ITERATIONS)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)

    def reshape_to_matrix(self, weight: Tensor) -> Tensor:
        """Return the weight as a matrix, with a row for each part along `dim`."""
        return dt.moveaxis(weight, self.dim, 0).reshape((weight.shape[self.dim], -1))

    def normalize(self, x: Tensor) -> Tensor:
        """Return a vector of norm 1."""
        return F.normalize(x, dim=0, eps=self.eps)

    def iterate(self, matrix: Tensor, u: Tensor, v: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """Return the singular vectors after n more power iterations."""
        for _ in range(n):
            if self.begins_with_v:
                v = self.normalize(dt.conj(matrix.mT) @ u)
            u = self.normalize(matrix @ v)
            if not self.begins_with_v:
                v = self.normalize(dt.conj(matrix.mT) @ u)
        return u, v

    def forward(self, weight: Tensor) -> Tensor:
        """Return the weight divided by its largest singular value."""
        if weight.ndim == 1:
            return self.normalize(weight)
        matrix = self.reshape_to_matrix(weight)
        u, v = self._u.copy(), self._v.copy()  # a later iteration must not change what is saved
        if self.training:
            with dt.no_grad():
                u, v = self.iterate(matrix.detach(), u, v, self.n_power_iterations)
                self._u.copy_(u)
                self._v.copy_(v)
        return weight / dt.vecdot(u, matrix @ v)

    def right_inverse(self, value: Tensor) -> Tensor:
        """Return the value itself, which is assumed to have the norm 1."""
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its largest singular value, which bounds a layer's slope.

    - `module`: the module, which is returned.
    - `name`: the name of the weight.
    - `n_power_iterations`: the number of power iterations at each read in training, at least 1.
    - `eps`: the lower bound of the norms of the iterations.
    - `dim`: the axis of outputs: None is 0, and 1 for transposed convolutions.

    Raises: ArgumentError for a name that the module lacks, AxisError.
    Source: Miyato et al., Spectral normalization for generative adversarial networks, 2018.
    See also: `weight_norm`, `orthogonal`.

    >>> import dovetail as dt
    >>> layer = dt.nn.utils.parametrizations.spectral_norm(dt.nn.Linear(3, 2)).eval()
    >>> round(dt.linalg.matrix_norm(layer.weight, ord=2).item(), 3)
    1.0
    """
    weight = require_tensor("spectral_norm", module, name)
    norm = create_spectral_norm(module, weight, n_power_iterations, eps, dim)
    return register_parametrization(module, name, norm)


def create_spectral_norm(
    module: Module, weight: Tensor, n_power_iterations: int, eps: float, dim: int | None
) -> SpectralNorm:
    """Return the norm of a module's weight; transposed convolutions have outputs along axis 1."""
    if dim is None:
        dim = int(isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)))
    return SpectralNorm(weight, n_power_iterations, dim, eps)


# --- orthogonal -----------------------------------------------------------------------------------


def _multiply_reflections(v: Tensor, one: Tensor) -> Tensor:
    """Return the first columns of the product of the reflections that negate a column of v each.

    Source: Joffrain et al., Accumulating Householder transformations, revisited, 2006.
    """
    products = v.mT @ v
    halves = products * (0.5 * dt.eye(v.shape[-1], dtype=v.dtype, device=v.device))
    factors = dt.linalg.solve_triangular(
        dt.triu(products, 1) + halves, v[..., : v.shape[-1], :].mT, upper=True
    )
    return one - v @ factors


class Orthogonal(Module):
    """A matrix with orthonormal columns, or rows if it has more columns, as a map of any matrix."""

    base: Tensor | None

    def __init__(
        self, shape: tuple[int, ...], orthogonal_map: str, use_trivialization: bool
    ) -> None:
        super().__init__()
        self.shape, self.orthogonal_map = shape, orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        """Return the orthogonal matrix of an unconstrained one."""
        is_wide = x.shape[-2] < x.shape[-1]
        x = x.mT if is_wide else x
        n, k = x.shape[-2:]
        if self.orthogonal_map == "householder":
            one = dt.eye(n, k, dtype=x.dtype, device=x.device)
            signs = dt.linalg.diagonal(x.detach())[..., None, :]
            q = _multiply_reflections(dt.tril(x, -1) + one, one) * signs
        else:
            lower = dt.tril(x)
            if n != k:
                zeros = dt.zeros((*x.shape[:-1], n - k), dtype=x.dtype, device=x.device)
                lower = dt.concat([lower, zeros], axis=-1)
            skew = lower - dt.conj(lower.mT)
            if self.orthogonal_map == "matrix_exp":
                q = dt.linalg.expm(skew)
            else:
                one = dt.eye(n, dtype=x.dtype, device=x.device)
                q = dt.linalg.solve(one - 0.5 * skew, one + 0.5 * skew)
            q = q[..., :k]
        if self.use_trivialization and self.base is not None:
            q = self.base @ q
        return q.mT if is_wide else q

    def right_inverse(self, q: Tensor) -> Tensor:
        """Return the unconstrained matrix of `q`, or of the nearest orthogonal one by QR."""
        is_wide = q.shape[-2] < q.shape[-1]
        tall = q.mT if is_wide else q
        n, k = tall.shape[-2:]
        if not self.use_trivialization:
            raise NotImplementedError("orthogonal: use_trivialization must be True to assign")
        if n != k:
            noise = dt.random.randn(*tall.shape[:-1], n - k, dtype=q.dtype, device=q.device)
            tall = dt.concat([tall, noise], axis=-1)
        basis, upper = dt.linalg.qr(tall)
        self.base = basis * dt.sign(dt.linalg.diagonal(upper))[..., None, :]
        return dt.broadcast_to(
            -dt.eye(*q.shape[-2:], dtype=q.dtype, device=q.device), q.shape
        ).copy()


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Make a weight orthogonal: its columns, or rows if there are fewer, are orthonormal.

    - `module`: the module, which is returned.
    - `name`: the name of the weight, a matrix or a batch of matrices.
    - `orthogonal_map`: "matrix_exp" or "cayley" of a skew matrix, or "householder" reflections;
      None is "matrix_exp" for square and complex matrices, else "householder".
    - `use_trivialization`: multiply by a fixed matrix, `base`, so that the weight begins near its
      former value, and values can be assigned. Without it the weight is a map of its former value.

    Raises: ArgumentError for a name that the module lacks or for another map; ShapeError.
    Source: Lezcano-Casado, Trivializations for gradient-based optimization on manifolds, 2019.
    See also: `dt.nn.init.orthogonal_`, `spectral_norm`.

    >>> import dovetail as dt
    >>> layer = dt.nn.utils.parametrizations.orthogonal(dt.nn.Linear(4, 3))
    >>> bool(dt.allclose(layer.weight @ layer.weight.T, dt.eye(3), atol=1e-5))
    True
    """
    op = "orthogonal"
    weight = require_tensor(op, module, name)
    if weight.ndim < 2:
        raise dt.ShapeError(f"{op}: {name} must be a matrix or a batch of them, got {weight.shape}")
    is_complex = weight.dtype.kind == "c"
    if orthogonal_map is None:
        is_square = weight.shape[-1] == weight.shape[-2]
        orthogonal_map = "matrix_exp" if is_square or is_complex else "householder"
    if orthogonal_map not in ORTHOGONAL_MAPS or (is_complex and orthogonal_map == "householder"):
        maps = ORTHOGONAL_MAPS[: 2 if is_complex else 3]
        raise dt.ArgumentError(
            f"{op}: orthogonal_map must be one of {', '.join(map(repr, maps))} for a "
            f"{weight.dtype.name} weight, got {orthogonal_map!r}"
        )
    if orthogonal_map == "householder" and not use_trivialization:
        raise dt.ArgumentError(
            f'{op}: use_trivialization must be True for "householder", got False; use '
            'orthogonal_map="cayley"'
        )
    created = Orthogonal(weight.shape, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, created, unsafe=True)


explain_all(globals(), __all__)
