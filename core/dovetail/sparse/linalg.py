"""Solvers for sparse linear systems, `dt.sparse.linalg`: `cg`, `gmres`, `spsolve_triangular`.

Names and arguments are those of scipy.sparse.linalg. The iterations are one `dt.while_loop`, so
`dt.jit` captures a whole solve. Sums are in the canonical order, so a solution has the same bits on
every device. Gradients are those of the solution, not of the iterations: the residual b - A x is 0
at the solution, so a change dr of it changes x by the solution dx of A dx = dr.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import dovetail as dt
from dovetail.extend import arguments, is_capturing, publish_all, required

from .compressed import CSR, to_sparse_csr
from .pattern import Pattern, cache_on_pattern
from .sparse_ops import substitute

__all__ = ["Solution", "cg", "gmres", "spsolve_triangular"]

Tensor = dt.Tensor
Operator: TypeAlias = Tensor | Callable[[Tensor], Tensor]
Callback: TypeAlias = Callable[[Tensor], object]


class Solution(NamedTuple):
    """The result of an iterative solver.

    - `x`: the solution, or the last iterate.
    - `info`: an int64 tensor of no dimensions: 0 if the solver converged, else the number of
      iterations after which it stopped.

    >>> import dovetail as dt
    >>> a, b = dt.eye(2).to_sparse(), dt.ones(2)
    >>> found = dt.sparse.linalg.cg(a, b)
    >>> found.x.tolist(), found.info.item()
    ([1.0, 1.0], 0)
    """

    x: Tensor
    info: Tensor


# --- the system ----------------------------------------------------------------------------------


class _System:
    """A linear system with checked operators, right side, start and tolerances."""

    def __init__(
        self,
        name: str,
        a: Operator,
        b: Tensor,
        x0: Tensor | None,
        rtol: float,
        atol: float,
        maxiter: int | None,
        m: Operator | None,
    ) -> None:
        self.name, self.a, self.m = name, a, m
        if required(name, b).layout is not dt.strided or b.ndim != 1:
            raise dt.ShapeError(
                f"{name}: b must be a strided vector, got {b.dtype.name}{list(b.shape)} of layout "
                f"{b.layout.name}; solve for one column at a time"
            )
        self.n = n = b.shape[0]
        for what, operator in (("A", a), ("M", m)):
            if operator is not None:
                self._require_operator(what, operator, b)
        dtype = b.dtype if callable(a) else dt.result_type(a, b)
        if dtype.kind not in "fc":
            raise dt.DTypeError(
                f"{name}: expected floats, got {dtype.name}; use b.astype(dt.float64)"
            )
        self.b = b.astype(dtype, copy=False)
        self.x0 = self._check_start(x0)
        self.rtol = arguments.real(name, rtol, "rtol")
        self.atol = arguments.real(name, atol, "atol")
        if not (self.rtol >= 0 and self.atol >= 0):
            raise dt.ArgumentError(
                f"{name}: rtol and atol must not be negative, got {rtol} and {atol}"
            )
        self.limit = 10 * n if maxiter is None else arguments.integer(name, maxiter, "maxiter", 0)

    def _require_operator(self, what: str, operator: Any, b: Tensor) -> None:
        """Raise an error if A or M is neither a function nor a square matrix that fits b."""
        if not isinstance(operator, Tensor):
            if not callable(operator):
                raise dt.ArgumentTypeError(
                    f"{self.name}: {what} must be a matrix or a function of a vector, got "
                    f"{type(operator).__name__}"
                )
            return
        if operator.ndim != 2 or operator.shape[0] != operator.shape[1]:
            raise dt.ShapeError(
                f"{self.name}: {what} must be a square matrix, got shape {operator.shape}"
            )
        if operator.shape[0] != self.n:
            raise dt.ShapeError(
                f"{self.name}: {what} must have as many rows as b, got shapes {operator.shape} and "
                f"{b.shape}"
            )
        if operator.device is not b.device:
            raise dt.DeviceError(
                f"{self.name}: {what} is on {operator.device}, b on {b.device}; move one with "
                "x.to(device)"
            )

    def _check_start(self, x0: Tensor | None) -> Tensor:
        """Return zeros for None, else x0 detached. Raises: ShapeError, DeviceError if unlike b."""
        if x0 is None:
            return dt.zeros_like(self.b)
        if required(self.name, x0).shape != self.b.shape:
            raise dt.ShapeError(
                f"{self.name}: x0 must have the shape of b, {self.b.shape}, got {x0.shape}"
            )
        if x0.device is not self.b.device:
            raise dt.DeviceError(
                f"{self.name}: x0 is on {x0.device} and b on {self.b.device}; move one with "
                "x.to(device)"
            )
        return x0.detach().astype(self.b.dtype, copy=False)

    def times(self, x: Tensor) -> Tensor:
        """Return A x. Raises: ShapeError if a function returns another shape."""
        return self._apply("A", self.a, x)

    def precondition(self, r: Tensor) -> Tensor:
        """Return M r, or r if there is no M. Raises: ShapeError if M returns another shape."""
        return r if self.m is None else self._apply("M", self.m, r)

    def _apply(self, what: str, operator: Operator, x: Tensor) -> Tensor:
        """Return an operator times a vector, in its dtype. Raises: ShapeError for another shape."""
        product = operator @ x if isinstance(operator, Tensor) else operator(x)
        if not isinstance(product, Tensor) or product.shape != x.shape:
            shape = getattr(product, "shape", type(product).__name__)
            raise dt.ShapeError(
                f"{self.name}: {what} must return the shape of its vector, {x.shape}, got {shape}"
            )
        return product.astype(x.dtype, copy=False)

    def squared_tolerance(self) -> Tensor:
        """Return the square of the residual's norm at which the iteration stops."""
        bound = dt.maximum(self.rtol * dt.sqrt(_square(self.b)), self.atol)
        return bound * bound


def _dot(x: Tensor, y: Tensor) -> Tensor:
    """Return the inner product, linear in the second operand, summed in the canonical order."""
    return dt.sum((dt.conj(x) if x.dtype.kind == "c" else x) * y)


def _square(x: Tensor) -> Tensor:
    """Return the square of the norm, which is real."""
    product = _dot(x, x)
    return dt.real(product) if x.dtype.kind == "c" else product


def _iterate(system: _System, callback: Callback | None, steps: _IterativeMethod) -> Solution:
    """Run steps until the residual is small enough or the limit is reached; return the solution."""
    with dt.no_grad():
        tolerance = system.squared_tolerance()
        first = steps.begin()
        dt.evaluate(tolerance, *first)

        def is_unfinished(state: Any) -> Tensor:
            """Return True while the residual is too large and steps are left."""
            return dt.logical_and(state[-2] > tolerance, state[-1] < system.limit)

        if callback is None:
            state: Any = dt.while_loop(is_unfinished, steps.step, first)
        else:
            state = _iterate_with_callback(system.name, is_unfinished, steps.step, first, callback)
        count = dt.where(state[-1] > 0, state[-1], 1)
        return Solution(state[0], dt.where(state[-2] <= tolerance, 0, count))


def _iterate_with_callback(
    name: str, is_unfinished: Any, step: Any, state: Any, callback: Callback
) -> Any:
    """Run the steps from the host, call `callback` with each iterate; return the last state.

    Raises: CaptureError in a captured function, ArgumentTypeError for no function.
    """
    arguments.function(name, callback, "callback")
    if is_capturing():
        raise dt.CaptureError(
            f"{name}: callback cannot run in a captured function, which has no separate steps; "
            f"leave callback out or call {name} outside of dt.jit"
        )
    while bool(is_unfinished(state).item()):
        state = step(state)
        dt.evaluate(*state)
        callback(state[0])
    return state


class _IterativeMethod:
    """An iterative method: its first state and its step. A state ends with |r|^2 and a count."""

    def begin(self) -> tuple[Tensor, ...]:
        """Return the state before the first step."""
        raise NotImplementedError

    def step(self, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return the next state."""
        raise NotImplementedError


# --- gradients -----------------------------------------------------------------------------------


class _Correction(dt.autograd.Function):
    """The identity on a solution, with the gradient by a solve for the residual."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, solve: Callable[[Tensor], Tensor], residual: Tensor) -> Tensor:
        """Return a copy of the solution; keep the solve for the backward pass."""
        ctx.solve = solve
        return x.detach() + 0

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Return the gradient of the residual: the solve for the incoming gradient."""
        (g,) = gradients
        return None, None, ctx.solve(g)


def _needs_grad(*operands: Any) -> bool:
    """Return True if gradients are recorded and a tensor among the operands requires one."""
    return dt.is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in operands)


def adjoint(a: Tensor) -> Tensor:
    """Return the conjugate transpose."""
    return dt.conj(a.T) if a.dtype.kind == "c" else a.T


def _attach_gradient(
    system: _System,
    solution: Solution,
    solve: Callable[..., Solution],
    a: Operator | None,
    m: Operator | None,
) -> Solution:
    """Return the solution with gradients to A and b, by a solve with `a`, if they are needed.

    Raises: GradientError if they are, and A or M is a function.
    """
    if not _needs_grad(system.a, system.b):
        return solution
    if a is None or (m is not None and not isinstance(m, Tensor)):
        raise dt.GradientError(
            f"{system.name}: A and M must be matrices, because the gradient solves with the "
            "transpose"
        )

    def solve_backward(g: Tensor) -> Tensor:
        """Return the solution for an incoming gradient as the right side."""
        return solve(a, g, rtol=system.rtol, atol=system.atol, maxiter=system.limit, M=m).x

    residual = system.b - system.times(solution.x)
    return Solution(_Correction.apply(solution.x, solve_backward, residual), solution.info)


# --- conjugate gradients -------------------------------------------------------------------------


class _ConjugateGradients(_IterativeMethod):
    """Conjugate gradients. State: x, r, p, r M r, |r|^2, count."""

    def __init__(self, system: _System) -> None:
        self.system = system

    def begin(self) -> tuple[Tensor, ...]:
        """Return the state of the start x0."""
        s = self.system
        r = s.b.detach() - s.times(s.x0)
        z = s.precondition(r)
        count = dt.zeros((), dtype=dt.int64, device=r.device)
        return s.x0 + 0, r, z + 0, _dot(r, z), _square(r), count

    def step(self, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return the state after one step along the search direction."""
        x, r, p, before, _, count = state
        q = self.system.times(p)
        alpha = before / _dot(p, q)
        x, r = x + alpha * p, r - alpha * q
        z = self.system.precondition(r)
        after = _dot(r, z)
        size = _square(r) if self.system.m is not None or r.dtype.kind == "c" else after
        return x, r, z + (after / before) * p, after, size + 0, count + 1


@arguments.public
def cg(
    A: Operator,
    b: Tensor,
    x0: Tensor | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Operator | None = None,
    callback: Callback | None = None,
) -> Solution:
    """Solve `A @ x = b` for a Hermitian positive definite A by conjugate gradients.

    - `A`: a matrix of any layout, or a function that multiplies a vector by it.
    - `b`: a vector.
    - `x0`: the start; None is 0.
    - `rtol`, `atol`: the iteration stops when |b - A x| <= max(rtol |b|, atol).
    - `maxiter`: the greatest number of steps. Default: 10 n.
    - `M`: an approximate inverse of A, Hermitian too: a matrix, or a function that multiplies a
      vector. None is the identity.
    - `callback`: a function that gets x after each step; captured functions cannot have one.

    Shapes: A and M (n, n), b and x0 (n,); x (n,).
    Dtypes: floats and complex, promoted.
    Gradient: by A and b, from a solve with the same matrix.
    Cost: the host reads one bool in each step.
    Raises: ShapeError, DTypeError, DeviceError, ArgumentError, GradientError. If it does not
    converge, `info` is not 0.
    See also: `gmres`, `spsolve_triangular`, `dt.linalg.solve`.
    Source: Hestenes and Stiefel (1952), https://doi.org/10.6028/jres.049.044.

    >>> import dovetail as dt
    >>> a = dt.asarray([[4.0, 1.0], [1.0, 3.0]]).to_sparse_csr()
    >>> x, info = dt.sparse.linalg.cg(a, dt.asarray([1.0, 2.0]))
    >>> dt.round(x * 11).tolist(), info.item()
    ([1.0, 7.0], 0)
    """
    system = _System("cg", A, b, x0, rtol, atol, maxiter, M)
    solution = _iterate(system, callback, _ConjugateGradients(system))
    return _attach_gradient(system, solution, cg, A, M)


# --- generalised minimal residuals ---------------------------------------------------------------


class _MinimalResiduals(_IterativeMethod):
    """Generalised minimal residuals. State: x, r, the next direction, |r|^2, count.

    The images q = A p of the directions p since the last restart are kept orthonormal, so no small
    system has to be solved. The next direction is the residual. If the residual hardly shrank, it
    is the last image, so the iteration goes on after a standstill.
    Source: Jiranek and Rozloznik (2010), adaptive version of simpler GMRES,
    https://doi.org/10.1007/s11075-009-9311-8.
    """

    RESIDUAL_RATIO_MAX = 0.9

    def __init__(self, system: _System, restart: int) -> None:
        self.system, self.restart = system, restart
        blank = (restart, system.n)
        self.images = dt.zeros(blank, dtype=system.b.dtype, device=system.b.device)
        self.directions = dt.zeros_like(self.images)
        self.slots = dt.arange(restart, device=system.b.device)

    def begin(self) -> tuple[Tensor, ...]:
        """Return the state of the start x0; evaluate the stored vectors."""
        s = self.system
        r = s.b.detach() - s.times(s.x0)
        s.precondition(r)
        dt.evaluate(self.images, self.directions, self.slots)
        count = dt.zeros((), dtype=dt.int64, device=r.device)
        return s.x0 + 0, r, r + 0, _square(r), count

    def step(self, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return the next state; write the step's image and direction to their slot."""
        x, r, d, before, count = state
        slot = count % self.restart
        d = dt.where(slot == 0, r, d)
        p = self.system.precondition(d / dt.sqrt(_square(d)))
        q = self.system.times(p)
        first = _square(q)
        for _ in range(2):  # the second pass removes the components that rounding left
            projections = self._projections(q, slot)
            q = q - dt.sum(projections * self.images, axis=0)
            p = p - dt.sum(projections * self.directions, axis=0)
        size = _square(q)
        eps = dt.finfo(q.dtype).eps
        scale = dt.where(size > eps * eps * first, 1 / dt.sqrt(size), 0.0).astype(q.dtype)
        q, p = q * scale, p * scale
        self.images[slot], self.directions[slot] = q, p
        along = _dot(q, r)
        x, r = x + along * p, r - along * q
        after = _square(r)
        shrank = after <= self.RESIDUAL_RATIO_MAX**2 * before
        return x, r, dt.where(dt.logical_or(shrank, size == 0), r, q), after, count + 1

    def _projections(self, q: Tensor, slot: Tensor) -> Tensor:
        """Return the component of `q` along each image since the restart, as a column."""
        images = dt.conj(self.images) if q.dtype.kind == "c" else self.images
        products = dt.sum(images * q, axis=1)
        zero = dt.zeros((), dtype=products.dtype, device=products.device)
        return dt.expand_dims(dt.where(self.slots < slot, products, zero), axis=1)


@arguments.public
def gmres(
    A: Operator,
    b: Tensor,
    x0: Tensor | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Operator | None = None,
    callback: Callback | None = None,
) -> Solution:
    """Solve `A @ x = b` for any invertible A by generalised minimal residuals.

    - `A`: a matrix of any layout, or a function that multiplies a vector by it.
    - `b`: a vector.
    - `x0`: the start; None is 0.
    - `rtol`, `atol`: the iteration stops when |b - A x| <= max(rtol |b|, atol).
    - `restart`: the number of steps between restarts. Default: 20. Each step stores two vectors.
    - `maxiter`: the greatest number of steps. Default: 10 n. SciPy counts restarts.
    - `M`: an approximate inverse of A: a matrix, or a function that multiplies a vector. It is
      applied from the right, so the residual is that of the equations. None is the identity.
    - `callback`: a function that gets x after each step; captured functions cannot have one.

    Shapes: A and M (n, n), b and x0 (n,); x (n,).
    Dtypes: floats and complex, promoted.
    Gradient: by A and b, from a solve with the adjoint; A and M have to be matrices for it.
    Cost: the host reads one bool in each step.
    Raises: ShapeError, DTypeError, DeviceError, ArgumentError, GradientError. If it does not
    converge, `info` is not 0.
    See also: `cg`, `spsolve_triangular`, `dt.linalg.solve`.
    Source: Saad and Schultz (1986), https://doi.org/10.1137/0907058, in the form of Jiranek and
    Rozloznik (2010), https://doi.org/10.1007/s11075-009-9311-8.

    >>> import dovetail as dt
    >>> a = dt.asarray([[1.0, 2.0], [0.0, 3.0]]).to_sparse_csr()
    >>> x, info = dt.sparse.linalg.gmres(a, dt.asarray([5.0, 6.0]))
    >>> dt.round(x).tolist(), info.item()
    ([1.0, 2.0], 0)
    """
    system = _System("gmres", A, b, x0, rtol, atol, maxiter, M)
    most = max(system.n, 1)
    restart = min(
        20 if restart is None else arguments.integer("gmres", restart, "restart", 1), most
    )
    with dt.no_grad():
        solution = _iterate(system, callback, _MinimalResiduals(system, restart))
    if not _needs_grad(A, b):
        return solution
    back = adjoint(A) if isinstance(A, Tensor) else None

    def solve(a: Operator, g: Tensor, **options: Any) -> Solution:
        """Solve by the same method and restart, for the gradient."""
        return gmres(a, g, restart=restart, **options)

    return _attach_gradient(
        system, solution, solve, back, adjoint(M) if isinstance(M, Tensor) else M
    )


# --- triangles -----------------------------------------------------------------------------------


@arguments.public
def spsolve_triangular(
    A: Tensor, b: Tensor, lower: bool = True, *, unit_diagonal: bool = False
) -> Tensor:
    """Solve `A @ x = b` for a sparse triangular A by substitution.

    - `A`: the triangle, a sparse matrix.
    - `b`: the right side, or several as columns.
    - `lower`: True if A is a lower triangle, False for an upper one.
    - `unit_diagonal`: True counts the diagonal as ones, and ignores the stored values on it.

    Shapes: A (n, n), b (n,) or (n, k); x as b.
    Dtypes: floats and complex, promoted.
    Gradient: by A and b, from a solve with the adjoint.
    Cost: rows are solved in sequence, columns of b in parallel. The check that A is a triangle
    without zeros on its diagonal takes a host read; captured functions skip the check.
    Raises: LinAlgError for a 0 on the diagonal, ArgumentError if A is no triangle, ShapeError,
    DTypeError, DeviceError, LayoutError for an A that is not sparse.
    See also: `cg`, `gmres`, `dt.linalg.solve_triangular`.

    >>> import dovetail as dt
    >>> a = dt.asarray([[2.0, 0.0], [1.0, 4.0]]).to_sparse_csr()
    >>> b = dt.asarray([2.0, 9.0])
    >>> dt.sparse.linalg.spsolve_triangular(a, b).tolist()
    [1.0, 2.0]
    """
    name = "spsolve_triangular"
    lower = arguments.flag(name, lower, "lower")
    unit = arguments.flag(name, unit_diagonal, "unit_diagonal")
    a, b = _check_triangular_system(name, A, b)
    if not is_capturing():
        _require_triangle(name, a, lower, unit)
    right = b if b.ndim == 2 else dt.expand_dims(b, axis=1)
    solution = _substitute(a.detach(), right.detach(), lower, unit)
    if _needs_grad(a, b):
        solution = _attach_triangular_gradient(a, right, solution, lower, unit)
    return solution if b.ndim == 2 else solution.reshape(b.shape)


def _check_triangular_system(name: str, a: Tensor, b: Tensor) -> tuple[CSR, Tensor]:
    """Return A as CSR, and b, in one float or complex dtype.

    Raises: LayoutError, ShapeError, DeviceError, DTypeError for operands that do not fit.
    """
    if required(name, a).layout is dt.strided:
        raise dt.LayoutError(
            f"{name}: A must be a sparse matrix, got strided {a.dtype.name}{list(a.shape)}; use "
            "dt.linalg.solve_triangular or x.to_sparse_csr()"
        )
    if required(name, b).layout is not dt.strided:
        raise dt.LayoutError(f"{name}: b must be strided, got {b.layout.name}; use b.to_dense()")
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise dt.ShapeError(f"{name}: A must be a square matrix, got shape {a.shape}")
    if b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise dt.ShapeError(
            f"{name}: b must have 1 or 2 dimensions and as many rows as A, got shapes {b.shape} "
            f"and {a.shape}"
        )
    if a.device is not b.device:
        raise dt.DeviceError(
            f"{name}: A is on {a.device}, b on {b.device}; move one with x.to(device)"
        )
    dtype = dt.result_type(a, b)
    if dtype.kind not in "fc":
        raise dt.DTypeError(f"{name}: expected floats, got {dtype.name}; use astype()")
    matrix = to_sparse_csr(a).astype(dtype, copy=False)
    return matrix, b.astype(dtype, copy=False)  # type: ignore[return-value]  # astype keeps the layout


@cache_on_pattern
def _triangle_info(p: Pattern, lower: bool) -> tuple[bool, Tensor]:
    """Return (True if no entry is beyond the diagonal, the indices of entries on it); cached."""
    name = ("triangle", lower)
    if name not in p.derived:
        rows, columns = p.coords
        beyond = dt.any(columns > rows if lower else columns < rows)
        (diagonal,) = dt.nonzero(dt.equal(rows, columns))
        p.derived[name] = not bool(beyond.item()), diagonal
    info: tuple[bool, Tensor] = p.derived[name]
    return info


def _require_triangle(name: str, a: CSR, lower: bool, unit: bool) -> None:
    """Raise ArgumentError for no triangle, LinAlgError for a zero diagonal; read the host."""
    fits, diagonal = _triangle_info(a.pattern, lower)
    if not fits and _has_nonzero_beyond(a, lower):
        side, mend = ("above", "tril") if lower else ("below", "triu")
        raise dt.ArgumentError(
            f"{name}: A must not have entries {side} its diagonal; use dt.{mend}(A) or "
            f"lower={not lower}"
        )
    if unit:
        return
    n = a.shape[0]
    if diagonal.shape[0] < n or bool(dt.any(dt.equal(a.values()[diagonal], 0)).item()):
        raise dt.LinAlgError(f"{name}: A is singular: its diagonal has a zero")


def _has_nonzero_beyond(a: CSR, lower: bool) -> bool:
    """Return True if an entry on the other side of the diagonal is not 0; one host read."""
    rows, columns = a.pattern.coords
    beyond = columns > rows if lower else columns < rows
    return bool(dt.any(dt.logical_and(beyond, dt.not_equal(a.values(), 0))).item())


def _substitute(a: CSR, b: Tensor, lower: bool, unit: bool) -> Tensor:
    """Return the solution by substitution, unchecked; of a matrix without entries b, or b / 0."""
    if not a.pattern.count:
        return b + 0 if unit else b / dt.zeros_like(b)
    return substitute(b, a.values(), a.pattern.bounds, a.pattern.coords[1], lower, unit)


def _attach_triangular_gradient(a: CSR, b: Tensor, x: Tensor, lower: bool, unit: bool) -> Tensor:
    """Return the solution `x` with gradients to A and b."""

    def solve(g: Tensor) -> Tensor:
        """Return the solution of the adjoint system for a gradient."""
        return spsolve_triangular(adjoint(a), g, not lower, unit_diagonal=unit)

    if unit:
        strict = dt.tril(a, -1) if lower else dt.triu(a, 1)
        residual = b - x.detach() - strict @ x
    else:
        residual = b - a @ x
    solution: Tensor = _Correction.apply(x, solve, residual)
    return solution


publish_all(globals())


def __dir__() -> list[str]:
    return __all__
