"""Equations with sparse matrices, `dt.sparse.linalg`: `cg`, `gmres`, `spsolve_triangular`.

Names and arguments are those of scipy.sparse.linalg. The iterations are one `dt.while_loop`, so a
solve is captured by `dt.jit` as a whole; sums are in the canonical order, so that a solution has
the same bits on every device. Gradients are those of the solution, not of the iterations: the
residual b - A x is 0 at the solution, so a change dr of it changes x by what solves A dx = dr.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import dovetail as dt
from dovetail.extend import arguments, is_capturing, required

from .compressed import CSR, to_sparse_csr
from .pattern import Pattern, derives
from .rows import substituted

__all__ = ["Solution", "cg", "gmres", "spsolve_triangular"]

Tensor = dt.Tensor
Operator: TypeAlias = Tensor | Callable[[Tensor], Tensor]
Callback: TypeAlias = Callable[[Tensor], object]


class Solution(NamedTuple):
    """What an iteration ends with.

    `x`: the solution, or what there was of it. `info`: an int64 tensor of no dimensions: 0 where it
    converged, else the number of iterations after which it had not.

    >>> import dovetail as dt
    >>> a, b = dt.eye(2, device="reference").to_sparse(), dt.ones(2, device="reference")
    >>> found = dt.sparse.linalg.cg(a, b)
    >>> found.x.tolist(), found.info.item()
    ([1.0, 1.0], 0)
    """

    x: Tensor
    info: Tensor


# --- what is given -------------------------------------------------------------------------------


class _System:
    """A system of equations that has been checked: what multiplies, what is asked for."""

    def __init__(
        self, name: str, a: Operator, b: Tensor, x0: Tensor | None, rtol: float, atol: float,
        maxiter: int | None, m: Operator | None,
    ) -> None:  # fmt: skip
        self.name, self.a, self.m = name, a, m
        if required(name, b).layout is not dt.strided or b.ndim != 1:
            raise dt.ShapeError(
                f"{name}: b is a strided vector, not {b.dtype.name}{list(b.shape)} of layout "
                f"{b.layout.name}; solve for one column at a time"
            )
        self.n = n = b.shape[0]
        for what, given in (("A", a), ("M", m)):
            if given is not None:
                self._require_operator(what, given, b)
        dtype = b.dtype if callable(a) else dt.result_type(a, b)
        if dtype.kind not in "fc":
            raise dt.DTypeError(f"{name}: needs floats, not {dtype.name}; see b.astype(dt.float64)")
        self.b = b.astype(dtype, copy=False)
        self.x0 = self._start(x0)
        self.rtol = arguments.real(name, rtol, "rtol")
        self.atol = arguments.real(name, atol, "atol")
        if not (self.rtol >= 0 and self.atol >= 0):
            raise dt.ArgumentError(f"{name}: rtol and atol are not negative: {rtol}, {atol}")
        self.limit = 10 * n if maxiter is None else arguments.integer(name, maxiter, "maxiter", 0)

    def _require_operator(self, what: str, given: Any, b: Tensor) -> None:
        if not isinstance(given, Tensor):
            if not callable(given):
                raise dt.ArgumentTypeError(
                    f"{self.name}: {what} is a matrix, or a function of a vector, not "
                    f"{type(given).__name__}"
                )
            return
        if given.ndim != 2 or given.shape[0] != given.shape[1]:
            raise dt.ShapeError(f"{self.name}: {what} is a square matrix, not {given.shape}")
        if given.shape[0] != self.n:
            raise dt.ShapeError(
                f"{self.name}: {what} of shape {given.shape} does not fit b of shape {b.shape}"
            )
        if given.device is not b.device:
            raise dt.DeviceError(
                f"{self.name}: {what} is on {given.device}, b on {b.device}; move one with "
                "x.to(device)"
            )

    def _start(self, x0: Tensor | None) -> Tensor:
        if x0 is None:
            return dt.zeros_like(self.b)
        if required(self.name, x0).shape != self.b.shape:
            raise dt.ShapeError(f"{self.name}: x0 of shape {x0.shape} for b of {self.b.shape}")
        if x0.device is not self.b.device:
            raise dt.DeviceError(f"{self.name}: x0 is on {x0.device}, b on {self.b.device}")
        return x0.detach().astype(self.b.dtype, copy=False)

    def times(self, x: Tensor) -> Tensor:
        """A x."""
        return self._applied("A", self.a, x)

    def preconditioned(self, r: Tensor) -> Tensor:
        """M r; r itself where there is no M."""
        return r if self.m is None else self._applied("M", self.m, r)

    def _applied(self, what: str, by: Operator, x: Tensor) -> Tensor:
        found = by @ x if isinstance(by, Tensor) else by(x)
        if not isinstance(found, Tensor) or found.shape != x.shape:
            shape = getattr(found, "shape", type(found).__name__)
            raise dt.ShapeError(f"{self.name}: {what} gave {shape} for a vector of shape {x.shape}")
        return found.astype(x.dtype, copy=False)

    def enough(self) -> Tensor:
        """The square of the residual's norm at which to stop."""
        bound = dt.maximum(self.rtol * dt.sqrt(_square(self.b)), self.atol)
        return bound * bound


def _dot(x: Tensor, y: Tensor) -> Tensor:
    """The inner product, linear in the second; in the canonical order."""
    return dt.sum((dt.conj(x) if x.dtype.kind == "c" else x) * y)


def _square(x: Tensor) -> Tensor:
    """The square of a norm, which is real."""
    found = _dot(x, x)
    return dt.real(found) if x.dtype.kind == "c" else found


def _solved(system: _System, callback: Callback | None, steps: _Steps) -> Solution:
    """Steps until the residual is small enough, or there were enough of them."""
    with dt.no_grad():
        enough = system.enough()
        first = steps.begin()
        dt.evaluate(enough, *first)

        def goes_on(state: Any) -> Tensor:
            return dt.logical_and(state[-2] > enough, state[-1] < system.limit)

        if callback is None:
            state: Any = dt.while_loop(goes_on, steps.step, first)
        else:
            state = _watched(system.name, goes_on, steps.step, first, callback)
        count = dt.where(state[-1] > 0, state[-1], 1)
        return Solution(state[0], dt.where(state[-2] <= enough, 0, count))


def _watched(name: str, goes_on: Any, step: Any, state: Any, callback: Callback) -> Any:
    """The same with a look at each solution."""
    arguments.function(name, callback, "callback")
    if is_capturing():
        raise dt.CaptureError(
            f"{name}: a callback sees each step, which a captured function does not run; leave it "
            "out, or call it outside of dt.jit"
        )
    while bool(goes_on(state).item()):
        state = step(state)
        dt.evaluate(*state)
        callback(state[0])
    return state


class _Steps:
    """One way of solving: its first state and a step; a state ends with |r|^2 and a count."""

    def begin(self) -> tuple[Tensor, ...]:
        """The state before the first step."""
        raise NotImplementedError

    def step(self, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The next state."""
        raise NotImplementedError


# --- gradients -----------------------------------------------------------------------------------


class _Correction(dt.autograd.Function):
    """A solution, as what a residual of 0 leaves it: its gradient is solved for."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, solve: Callable[[Tensor], Tensor], residual: Tensor) -> Tensor:
        ctx.solve = solve
        return x.detach() + 0

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (g,) = gradients
        return None, None, ctx.solve(g)


def _flows(*among: Any) -> bool:
    return dt.is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in among)


def adjoint(a: Tensor) -> Tensor:
    """The transpose, of complex numbers conjugated."""
    return dt.conj(a.T) if a.dtype.kind == "c" else a.T


def _differentiable(
    system: _System, found: Solution, solve: Callable[..., Solution], a: Operator | None,
    m: Operator | None,
) -> Solution:  # fmt: skip
    """The solution, through which gradients flow to A and b."""
    if not _flows(system.a, system.b):
        return found
    if a is None or (m is not None and not isinstance(m, Tensor)):
        raise dt.GradientError(
            f"{system.name}: its gradient solves with the transpose, so A and M have to be matrices"
        )

    def solved(g: Tensor) -> Tensor:
        return solve(a, g, rtol=system.rtol, atol=system.atol, maxiter=system.limit, M=m).x

    residual = system.b - system.times(found.x)
    return Solution(_Correction.apply(found.x, solved, residual), found.info)


# --- conjugate gradients -------------------------------------------------------------------------


class _Conjugate(_Steps):
    """Conjugate gradients. State: x, r, p, r M r, |r|^2, count."""

    def __init__(self, system: _System) -> None:
        self.system = system

    def begin(self) -> tuple[Tensor, ...]:
        s = self.system
        r = s.b.detach() - s.times(s.x0)
        z = s.preconditioned(r)
        count = dt.zeros((), dtype=dt.int64, device=r.device)
        return s.x0 + 0, r, z + 0, _dot(r, z), _square(r), count

    def step(self, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        x, r, p, before, _, count = state
        q = self.system.times(p)
        alpha = before / _dot(p, q)
        x, r = x + alpha * p, r - alpha * q
        z = self.system.preconditioned(r)
        after = _dot(r, z)
        size = _square(r) if self.system.m is not None or r.dtype.kind == "c" else after
        return x, r, z + (after / before) * p, after, size + 0, count + 1


@arguments.named
def cg(
    A: Operator, b: Tensor, x0: Tensor | None = None, *, rtol: float = 1e-5, atol: float = 0.0,
    maxiter: int | None = None, M: Operator | None = None, callback: Callback | None = None,
) -> Solution:  # fmt: skip
    """The solution of `A @ x = b` for a Hermitian positive definite A, by conjugate gradients.

    `A`, `M`: matrices of any layout, or functions that multiply a vector; `M` is about the inverse
    of A, Hermitian too. `b`: a vector. `x0`: where to begin. `rtol`, `atol`: it ends where
    |b - A x| <= max(rtol |b|, atol), or after `maxiter` steps, 10 n unless given; the host reads
    one bool in each. `callback` gets x after each step, outside of captured functions.
    Shapes: A and M (n, n), b and x0 (n,); x (n,).
    Dtypes: floats and complex, promoted.
    Gradient: by A and b, from a solve with the same matrix.
    Raises: ShapeError, DTypeError, DeviceError, ArgumentError, GradientError; where it does not
    converge `info` says so.
    Source: Hestenes and Stiefel (1952), https://doi.org/10.6028/jres.049.044.

    >>> import dovetail as dt
    >>> a = dt.asarray([[4.0, 1.0], [1.0, 3.0]], device="reference").to_sparse_csr()
    >>> x, info = dt.sparse.linalg.cg(a, dt.asarray([1.0, 2.0], device="reference"))
    >>> dt.round(x * 11).tolist(), info.item()
    ([1.0, 7.0], 0)
    """
    system = _System("cg", A, b, x0, rtol, atol, maxiter, M)
    found = _solved(system, callback, _Conjugate(system))
    return _differentiable(system, found, cg, A, M)


# --- generalised minimal residuals ---------------------------------------------------------------


class _Residuals(_Steps):
    """Minimal residuals. State: x, r, the next direction, |r|^2, count.

    Images q of the directions p are kept orthonormal, those since the last restart, so that no
    small system has to be solved. The next direction is the residual, or, where that hardly shrank,
    the last image, with which it goes on after a standstill.
    Source: Jiranek and Rozloznik (2010), adaptive version of simpler GMRES,
    https://doi.org/10.1007/s11075-009-9311-8.
    """

    SHRANK = 0.9

    def __init__(self, system: _System, restart: int) -> None:
        self.system, self.restart = system, restart
        blank = (restart, system.n)
        self.images = dt.zeros(blank, dtype=system.b.dtype, device=system.b.device)
        self.sources = dt.zeros_like(self.images)
        self.places = dt.arange(restart, device=system.b.device)

    def begin(self) -> tuple[Tensor, ...]:
        s = self.system
        r = s.b.detach() - s.times(s.x0)
        s.preconditioned(r)
        dt.evaluate(self.images, self.sources, self.places)
        count = dt.zeros((), dtype=dt.int64, device=r.device)
        return s.x0 + 0, r, r + 0, _square(r), count

    def step(self, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        x, r, d, before, count = state
        turn = count % self.restart
        d = dt.where(turn == 0, r, d)
        p = self.system.preconditioned(d / dt.sqrt(_square(d)))
        q = self.system.times(p)
        first = _square(q)
        for _ in range(2):  # once more takes off what rounding left
            parts = self._parts(q, turn)
            q = q - dt.sum(parts * self.images, axis=0)
            p = p - dt.sum(parts * self.sources, axis=0)
        size = _square(q)
        eps = dt.finfo(q.dtype).eps
        scale = dt.where(size > eps * eps * first, 1 / dt.sqrt(size), 0.0).astype(q.dtype)
        q, p = q * scale, p * scale
        self.images[turn], self.sources[turn] = q, p
        along = _dot(q, r)
        x, r = x + along * p, r - along * q
        after = _square(r)
        shrank = after <= self.SHRANK**2 * before
        return x, r, dt.where(dt.logical_or(shrank, size == 0), r, q), after, count + 1

    def _parts(self, q: Tensor, turn: Tensor) -> Tensor:
        """What of `q` lies along each image since the restart, as a column."""
        images = dt.conj(self.images) if q.dtype.kind == "c" else self.images
        found = dt.sum(images * q, axis=1)
        zero = dt.zeros((), dtype=found.dtype, device=found.device)
        return dt.expand_dims(dt.where(self.places < turn, found, zero), axis=1)


@arguments.named
def gmres(
    A: Operator, b: Tensor, x0: Tensor | None = None, *, rtol: float = 1e-5, atol: float = 0.0,
    restart: int | None = None, maxiter: int | None = None, M: Operator | None = None,
    callback: Callback | None = None,
) -> Solution:  # fmt: skip
    """The solution of `A @ x = b` for any invertible A, by generalised minimal residuals.

    `A`, `M`: matrices of any layout, or functions that multiply a vector; `M` is about the inverse
    of A, and applied from the right, so that the residual is that of the equations. `b`: a vector.
    `x0`: where to begin. `rtol`, `atol`: it ends where |b - A x| <= max(rtol |b|, atol), or after
    `maxiter` steps, 10 n unless given (SciPy counts restarts); the host reads one bool in each.
    `restart`: after how many steps it begins anew, 20 unless given; two vectors are kept for each.
    `callback` gets x after each step, outside of captured functions.
    Shapes: A and M (n, n), b and x0 (n,); x (n,).
    Dtypes: floats and complex, promoted.
    Gradient: by A and b, from a solve with the adjoint; A and M have to be matrices for it.
    Raises: ShapeError, DTypeError, DeviceError, ArgumentError, GradientError; where it does not
    converge `info` says so.
    Source: Saad and Schultz (1986), https://doi.org/10.1137/0907058, in the form of Jiranek and
    Rozloznik (2010), https://doi.org/10.1007/s11075-009-9311-8.

    >>> import dovetail as dt
    >>> a = dt.asarray([[1.0, 2.0], [0.0, 3.0]], device="reference").to_sparse_csr()
    >>> x, info = dt.sparse.linalg.gmres(a, dt.asarray([5.0, 6.0], device="reference"))
    >>> dt.round(x).tolist(), info.item()
    ([1.0, 2.0], 0)
    """
    system = _System("gmres", A, b, x0, rtol, atol, maxiter, M)
    most = max(system.n, 1)
    restart = min(
        20 if restart is None else arguments.integer("gmres", restart, "restart", 1), most
    )
    with dt.no_grad():
        found = _solved(system, callback, _Residuals(system, restart))
    if not _flows(A, b):
        return found
    back = adjoint(A) if isinstance(A, Tensor) else None

    def solve(a: Operator, g: Tensor, **options: Any) -> Solution:
        return gmres(a, g, restart=restart, **options)

    return _differentiable(system, found, solve, back, adjoint(M) if isinstance(M, Tensor) else M)


# --- triangles -----------------------------------------------------------------------------------


@arguments.named
def spsolve_triangular(
    A: Tensor, b: Tensor, lower: bool = True, *, unit_diagonal: bool = False
) -> Tensor:
    """The solution of `A @ x = b` for a sparse triangular A, by substitution.

    `A`: the triangle; `b`: the right side, or several as columns. `lower`: whether A is a lower
    triangle, else an upper one. `unit_diagonal`: the diagonal is
    taken to be ones, whatever is stored there. Rows are solved one after the other, columns of b
    side by side. That A is a triangle without zeros on its diagonal takes a host read; in a
    captured function it is not looked at.
    Shapes: A (n, n), b (n,) or (n, k); x as b.
    Dtypes: floats and complex, promoted.
    Gradient: by A and b, from a solve with the adjoint.
    Raises: LinAlgError for a 0 on the diagonal, ArgumentError for what is no triangle, ShapeError,
    DTypeError, DeviceError, LayoutError for an A that is not sparse.

    >>> import dovetail as dt
    >>> a = dt.asarray([[2.0, 0.0], [1.0, 4.0]], device="reference").to_sparse_csr()
    >>> b = dt.asarray([2.0, 9.0], device="reference")
    >>> dt.sparse.linalg.spsolve_triangular(a, b).tolist()
    [1.0, 2.0]
    """
    name = "spsolve_triangular"
    lower = arguments.flag(name, lower, "lower")
    unit = arguments.flag(name, unit_diagonal, "unit_diagonal")
    a, b = _triangle_given(name, A, b)
    if not is_capturing():
        _require_triangle(name, a, lower, unit)
    right = b if b.ndim == 2 else dt.expand_dims(b, axis=1)
    found = _substituted(a.detach(), right.detach(), lower, unit)
    if _flows(a, b):
        found = _with_gradient(a, right, found, lower, unit)
    return found if b.ndim == 2 else found.reshape(b.shape)


def _triangle_given(name: str, a: Tensor, b: Tensor) -> tuple[CSR, Tensor]:
    if required(name, a).layout is dt.strided:
        raise dt.LayoutError(
            f"{name}: A is a sparse matrix, not {a.dtype.name}{list(a.shape)}; see "
            "dt.linalg.solve_triangular, or x.to_sparse_csr()"
        )
    if required(name, b).layout is not dt.strided:
        raise dt.LayoutError(f"{name}: b is strided, not {b.layout.name}; see b.to_dense()")
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise dt.ShapeError(f"{name}: A is a square matrix, not of shape {a.shape}")
    if b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise dt.ShapeError(f"{name}: b of shape {b.shape} does not fit A of shape {a.shape}")
    if a.device is not b.device:
        raise dt.DeviceError(
            f"{name}: A is on {a.device}, b on {b.device}; move one with x.to(device)"
        )
    dtype = dt.result_type(a, b)
    if dtype.kind not in "fc":
        raise dt.DTypeError(f"{name}: needs floats, not {dtype.name}; see astype()")
    found = to_sparse_csr(a).astype(dtype, copy=False)
    return found, b.astype(dtype, copy=False)  # type: ignore[return-value]  # astype keeps the layout


@derives
def _shape_of(p: Pattern, lower: bool) -> tuple[bool, Tensor]:
    """Whether all entries are on one side of the diagonal, or on it; which are on it."""
    name = ("triangle", lower)
    if name not in p.kept:
        rows, columns = p.coords
        beyond = dt.any(columns > rows if lower else columns < rows)
        (diagonal,) = dt.nonzero(dt.equal(rows, columns))
        p.kept[name] = not bool(beyond.item()), diagonal
    found: tuple[bool, Tensor] = p.kept[name]
    return found


def _require_triangle(name: str, a: CSR, lower: bool, unit: bool) -> None:
    fits, diagonal = _shape_of(a.pattern, lower)
    if not fits and _has_more(a, lower):
        side, mend = ("above", "tril") if lower else ("below", "triu")
        raise dt.ArgumentError(
            f"{name}: A has entries {side} its diagonal; see dt.{mend}(A), or lower={not lower}"
        )
    if unit:
        return
    n = a.shape[0]
    if diagonal.shape[0] < n or bool(dt.any(dt.equal(a.values()[diagonal], 0)).item()):
        raise dt.LinAlgError(f"{name}: A is singular: there is a 0 on its diagonal")


def _has_more(a: CSR, lower: bool) -> bool:
    """Whether any entry beyond the diagonal is not 0."""
    rows, columns = a.pattern.coords
    beyond = columns > rows if lower else columns < rows
    return bool(dt.any(dt.logical_and(beyond, dt.not_equal(a.values(), 0))).item())


def _substituted(a: CSR, b: Tensor, lower: bool, unit: bool) -> Tensor:
    if not a.pattern.count:
        return b + 0 if unit else b / dt.zeros_like(b)
    return substituted(b, a.values(), a.pattern.bounds, a.pattern.coords[1], lower, unit)


def _with_gradient(a: CSR, b: Tensor, found: Tensor, lower: bool, unit: bool) -> Tensor:
    def solve(g: Tensor) -> Tensor:
        return spsolve_triangular(adjoint(a), g, not lower, unit_diagonal=unit)

    if unit:
        strict = dt.tril(a, -1) if lower else dt.triu(a, 1)
        residual = b - found.detach() - strict @ found
    else:
        residual = b - a @ found
    solution: Tensor = _Correction.apply(found, solve, residual)
    return solution
