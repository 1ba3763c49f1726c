"""Host routines in captured functions: each public function of `dt.linalg`, in each form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dovetail as dt
import numpy as np
import pytest
from captured import bits, device
from dovetail import linalg
from dovetail.capture import program
from dovetail.engine import tracer_api
from dovetail.engine.events import counters

__all__ = ["device"]

Arrays = Sequence[np.ndarray]


def general(seed: int, *shape: int) -> np.ndarray:
    """Return a well-conditioned matrix without symmetry."""
    a = np.random.default_rng(seed).standard_normal(shape)
    return a + 3 * np.eye(*shape[-2:])


def positive(seed: int, n: int = 3) -> np.ndarray:
    a = general(seed, n, n)
    return a @ a.T


class Case(NamedTuple):
    """A function and its calls: `given` draws arrays by a seed; it raises for `bad`."""

    function: Callable[..., Any]
    given: Callable[[int], Arrays]
    bad: Arrays | None = None
    differentiable: bool = True


def squares(seed: int) -> Arrays:
    return (general(seed, 3, 3),)


def symmetric(seed: int) -> Arrays:
    return (positive(seed),)


def tall(seed: int) -> Arrays:
    return (general(seed, 4, 3),)


def pairs(seed: int) -> Arrays:
    return general(seed, 3, 3), general(seed + 50, 3, 2)


def vectors(seed: int) -> Arrays:
    return general(seed, 3, 3)[0], general(seed + 50, 3, 3)[0]


NAN = np.full((3, 3), np.nan)
SINGULAR = np.ones((3, 3))
RIGHT = np.ones((3, 2))


def without_vendor(a: dt.Tensor) -> dt.Tensor:
    with linalg.vendor_products(False):
        return a @ a


CASES: dict[str, list[Case]] = {
    "block_diag": [Case(linalg.block_diag, pairs)],
    "cholesky": [
        Case(linalg.cholesky, symmetric, (-np.eye(3),)),
        Case(lambda a: linalg.cholesky(a, upper=True), symmetric, (-np.eye(3),)),
    ],
    "cholesky_solve": [
        Case(
            lambda a, b: linalg.cholesky_solve(b, linalg.cholesky(a)),
            lambda seed: (positive(seed), general(seed, 3, 2)),
            (-np.eye(3), RIGHT),
        )
    ],
    "cond": [
        Case(linalg.cond, squares, (NAN,)),
        Case(lambda a: linalg.cond(a, ord=1), squares),
    ],
    "cross": [Case(linalg.cross, vectors)],
    "norm": [Case(linalg.norm, squares), Case(lambda a: linalg.norm(a, "nuc"), squares)],
    "det": [Case(linalg.det, squares)],
    "diagonal": [Case(linalg.diagonal, squares)],
    "eig": [Case(linalg.eig, squares, (NAN,))],
    "eigh": [Case(linalg.eigh, symmetric, (NAN,))],
    "eigvals": [Case(linalg.eigvals, squares, (NAN,))],
    "eigvalsh": [Case(linalg.eigvalsh, symmetric, (NAN,))],
    "expm": [
        Case(linalg.expm, squares, (NAN,)),
        Case(lambda a: linalg.expm(a * 5), squares, (NAN,)),
    ],
    "householder": [Case(linalg.householder, lambda seed: (general(seed, 4, 3), np.ones(3) / 2))],
    "inv": [Case(linalg.inv, squares, (SINGULAR,))],
    "kron": [Case(linalg.kron, pairs)],
    "lstsq": [
        Case(linalg.lstsq, lambda seed: (general(seed, 4, 3), general(seed, 4, 2)), (NAN, RIGHT))
    ],
    "lu": [Case(linalg.lu, squares), Case(linalg.lu, tall)],
    "lu_solve": [
        Case(lambda a, b: linalg.lu_solve(linalg.lu(a), b), pairs, (np.zeros((3, 3)), RIGHT))
    ],
    "matmul": [Case(linalg.matmul, pairs)],
    "matrix_norm": [
        Case(lambda a: linalg.matrix_norm(a, ord="nuc"), squares, (NAN,)),
        Case(linalg.matrix_norm, squares),
    ],
    "matrix_power": [Case(lambda a: linalg.matrix_power(a, -2), squares, (SINGULAR,))],
    "matrix_rank": [
        Case(linalg.matrix_rank, squares, (NAN,), False),
        Case(lambda a: linalg.matrix_rank(a, hermitian=True), symmetric, (NAN,), False),
    ],
    "matrix_transpose": [Case(linalg.matrix_transpose, tall)],
    "multi_dot": [Case(lambda a, b: linalg.multi_dot([a, a, b]), pairs)],
    "outer": [Case(linalg.outer, vectors)],
    "pinv": [
        Case(linalg.pinv, tall, (NAN,)),
        Case(lambda a: linalg.pinv(a, rtol=dt.asarray(1e-3)), tall, (NAN,)),
    ],
    "qr": [Case(linalg.qr, tall), Case(lambda a: linalg.qr(a, mode="complete"), squares)],
    "vendor_products": [Case(without_vendor, squares)],
    "slogdet": [Case(linalg.slogdet, squares)],
    "solve": [Case(linalg.solve, pairs, (SINGULAR, RIGHT))],
    "solve_triangular": [
        Case(
            lambda a, b: linalg.solve_triangular(a, b, upper=True),
            pairs, (np.zeros((3, 3)), RIGHT),
        )
    ],
    "svd": [
        Case(lambda a: linalg.svd(a, full_matrices=False), tall, (NAN,)),
        Case(linalg.svd, tall, (NAN,), False),
    ],
    "svdvals": [Case(linalg.svdvals, tall, (NAN,))],
    "tensordot": [Case(lambda a, b: linalg.tensordot(a, b, axes=1), pairs)],
    "trace": [Case(linalg.trace, squares)],
    "vecdot": [Case(linalg.vecdot, vectors)],
    "vector_norm": [Case(linalg.vector_norm, squares)],
}  # fmt: skip

every_case = pytest.mark.parametrize(
    "case", [pytest.param(c, id=f"{n}-{k}") for n in CASES for k, c in enumerate(CASES[n])]
)


def tensors(arrays: Arrays, dtype: Any = dt.float32) -> list[dt.Tensor]:
    return [dt.asarray(a.astype(np.float64)).astype(dtype) for a in arrays]


def listed(made: Any) -> list[dt.Tensor]:
    return [made] if isinstance(made, dt.Tensor) else [*made]


def total(case: Case, *given: dt.Tensor) -> dt.Tensor:
    """Return a sum in which each element of each result has a weight of its own."""
    found = dt.zeros(())
    for t in listed(case.function(*given)):
        if t.dtype.kind in "fc":
            size = dt.abs(t) ** 2 if t.dtype.kind == "c" else t * dt.abs(t)
            found = found + (size * (dt.arange(1.0, t.size + 1).reshape(t.shape) * 0.1)).sum()
    return found


def gradients(case: Case) -> Callable[..., Any]:
    def of(*given: dt.Tensor) -> Any:
        return dt.func.grad(lambda *x: total(case, *x), argnums=tuple(range(len(given))))(*given)

    return of


def test_each_public_function_of_linalg_has_a_case() -> None:
    assert set(CASES) == set(linalg.__all__)


@every_case
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_jit_has_the_bits_of_a_plain_call(device: dt.Device, case: Case, dtype: str) -> None:
    captured = dt.jit(lambda *x: listed(case.function(*x)))
    for seed in (0, 1, 2):
        given = tensors(case.given(seed), dtype)
        assert bits(captured(*given)) == bits(listed(case.function(*given)))
    assert captured.captures == 1


@every_case
def test_jit_has_the_bits_of_plain_gradients(device: dt.Device, case: Case) -> None:
    if not case.differentiable:
        return
    captured = dt.jit(gradients(case))
    for seed in (0, 1):
        given = tensors(case.given(seed))
        assert bits(captured(*given)) == bits(gradients(case)(*given))
    assert captured.captures == 1


@every_case
def test_backward_through_jit_has_the_bits_of_plain(device: dt.Device, case: Case) -> None:
    if not case.differentiable:
        return
    captured = dt.jit(lambda *x: total(case, *x))
    for seed in (0, 1):
        found = []
        for function in (captured, lambda *x: total(case, *x)):
            given = [t.requires_grad_() for t in tensors(case.given(seed))]
            function(*given).backward()
            found.append([None if t.grad is None else bits(t.grad) for t in given])
        assert found[0] == found[1]


def forms(case: Case) -> list[Callable[..., list[dt.Tensor]]]:
    """Return the function and its gradients, as functions that return lists."""
    found: list[Callable[..., list[dt.Tensor]]] = [lambda *x: listed(case.function(*x))]
    return [*found, lambda *x: listed(gradients(case)(*x))] if case.differentiable else found


def two_rounds(case: Case, seed: int) -> tuple[list[list[dt.Tensor]], list[dt.Tensor]]:
    """Return the arguments of two calls, and the same arguments stacked."""
    rounds = [tensors(case.given(seed)), tensors(case.given(seed + 1))]
    return rounds, [dt.stack(list(column)) for column in zip(*rounds, strict=True)]


@every_case
@pytest.mark.parametrize("jitted", [False, True])
def test_loops_have_the_bits_of_plain_calls(device: dt.Device, case: Case, jitted: bool) -> None:
    for function in forms(case):

        def scanned(*xs: dt.Tensor) -> Any:
            return dt.scan(lambda c, x: (c + 1, function(*x)), dt.zeros(()), xs)[1]  # noqa: B023

        def repeated(*xs: dt.Tensor) -> Any:
            def step(i: dt.Tensor, c: Any) -> Any:
                return function(*[dt.take(x, i.reshape((1,)), axis=0)[0] for x in xs])  # noqa: B023

            like = [dt.zeros_like(t) for t in function(*[x[0] for x in xs])]  # noqa: B023
            return dt.fori_loop(0, 2, step, like)

        scan, fori = (dt.jit(f) if jitted else f for f in (scanned, repeated))
        for seed in (0, 2):
            rounds, stacked = two_rounds(case, seed)
            wanted = [bits(function(*given)) for given in rounds]
            made = scan(*stacked)
            assert [bits([t[k] for t in made]) for k in range(2)] == wanted
            assert bits(fori(*stacked)) == wanted[-1]


@every_case
def test_jit_of_vmap_has_the_bits_of_vmap(device: dt.Device, case: Case) -> None:
    for function in forms(case):
        captured = dt.jit(dt.vmap(function))
        for seed in (0, 2):
            stacked = two_rounds(case, seed)[1]
            assert bits(captured(*stacked)) == bits(dt.vmap(function)(*stacked))


def failure(function: Callable[..., Any], *given: Any) -> dt.LinAlgError:
    with pytest.raises(dt.LinAlgError) as caught:
        for t in listed(function(*given)):
            t.numpy()
    return caught.value


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n][0].bad is not None])
def test_failure_at_replay_raises_the_plain_error_with_the_line(
    device: dt.Device, name: str
) -> None:
    case = CASES[name][0]
    good = tensors(case.given(0)[:1] if len(case.bad) == 1 else case.given(0))
    bad = tensors(case.bad)
    if [t.shape for t in good] != [t.shape for t in bad]:
        good = tensors([general(5, 3, 3), *case.bad[1:]])
    plain = failure(case.function, *bad)
    captured = dt.jit(lambda *x: listed(case.function(*x)))
    wanted = bits(captured(*good))
    error = failure(captured, *bad)
    assert type(error) is type(plain)
    message, _, line = str(error).partition(" (requested at ")
    assert str(plain).endswith(message)  # outside of jit, surrounding functions prepend their names
    assert __file__ in line
    assert bits(captured(*good)) == wanted == bits(listed(case.function(*good)))
    assert captured.captures == 1
    looped = dt.jit(
        lambda *xs: dt.scan(lambda c, x: (c, tuple(listed(case.function(*x)))), dt.ones(()), xs)[1]
    )
    both = [dt.stack([a, a]) for a in good]
    looped(*both)
    error = failure(looped, *[dt.stack([a, b]) for a, b in zip(good, bad, strict=True)])
    assert str(error).partition(" (requested at ")[0] == message
    assert bits([t[1] for t in looped(*both)]) == wanted


def test_branch_runs_its_host_routine_only_if_taken(device: dt.Device) -> None:
    f = dt.jit(lambda p, a: dt.cond(p, linalg.inv, lambda a: a * 2, a))
    a, singular = dt.asarray([[2.0, 0.0], [1.0, 4.0]]), dt.ones((2, 2))
    assert bits(f(dt.asarray(True), a)) == bits(linalg.inv(a))
    assert bits(f(dt.asarray(False), singular)) == bits(singular * 2)
    assert "is singular" in str(failure(f, dt.asarray(True), singular))


def test_while_loop_may_use_a_host_routine_in_its_condition(device: dt.Device) -> None:
    def f(a: dt.Tensor) -> dt.Tensor:
        return dt.while_loop(lambda a: linalg.det(a) > 1e-3, lambda a: linalg.inv(a) / 8, a)

    captured = dt.jit(f)
    for seed in (0, 1):
        a = tensors((positive(seed),))[0]
        wanted = a
        while linalg.det(wanted) > 1e-3:
            wanted = linalg.inv(wanted) / 8
        assert bits(captured(a)) == bits(f(a)) == bits(wanted)


@pytest.mark.parametrize("n", [3, 8])
@pytest.mark.parametrize("name", ["inv", "cholesky", "solve", "det", "expm", "solve_triangular"])
def test_batched_small_matrices_are_captured_with_gradients(
    device: dt.Device, name: str, n: int
) -> None:
    case = CASES[name][0]
    captured = dt.jit(lambda *x: case.function(*x))
    slopes = dt.jit(gradients(case))
    for seed in (0, 1):
        given = tensors([np.stack([positive(seed * 300 + k, n) / n for k in range(256)])]
                        + [np.stack([general(k, n, 2) for k in range(256)])] * (
                            len(case.given(0)) - 1))  # fmt: skip
        assert bits(captured(*given)) == bits(case.function(*given))
        assert bits(slopes(*given)) == bits(gradients(case)(*given))
    if case.bad is not None:
        worst = dt.concat([given[0][:255], dt.zeros((1, n, n)) / (name != "expm")])
        assert "at [255] of the batch" in str(failure(captured, worst, *given[1:]))


@pytest.mark.parametrize("count", [1, 256])
def test_gradient_of_a_singular_determinant_is_captured(device: dt.Device, count: int) -> None:
    slope = dt.func.grad(lambda a: linalg.det(a).sum())
    captured = dt.jit(slope)
    good = np.stack([general(k, 3, 3) for k in range(count)])
    singular = good.copy()
    singular[-1] = np.diag([0.0, 2.0, 3.0])
    for a in (good, singular, good):
        (given,) = tensors((a,))
        assert bits(captured(given)) == bits(slope(given))
    assert captured(tensors((singular,))[0])[-1, 0, 0].item() == pytest.approx(6.0)


def test_host_step_is_counted_profiled_and_explained(device: dt.Device) -> None:
    f = dt.jit(lambda a: linalg.inv(a) + 1)
    a = dt.asarray([[2.0, 0.0], [1.0, 4.0]])
    before = counters.calls
    f(a), f(a)
    assert counters.calls == before + 2
    with dt.profile() as profile:
        f(a).numpy()
    assert any("linalg.inv on the host" in e["name"] for e in profile.events)
    assert "linalg.inv" in str(dt.explain(f))


def test_saved_function_contains_its_host_routines(device: dt.Device, tmp_path: Any) -> None:
    def f(a: dt.Tensor, b: dt.Tensor) -> Any:
        w, v = linalg.eigh(a)
        return dt.scan(lambda c, x: (linalg.solve(a, c), x * w), b, w)[0], v, linalg.qr(a).R

    captured, given = dt.jit(f), tensors((positive(0), general(1, 3, 2)))
    captured(*given)
    dt.save_function(captured, tmp_path / "f")
    loaded = dt.load_function(tmp_path / "f")
    other = tensors((positive(3), general(4, 3, 2)))
    assert bits(listed(loaded(*other))) == bits(listed(f(*other)))
    assert "has NaN" in str(failure(loaded, dt.full((3, 3), dt.nan), other[1]))


def test_device_without_shared_memory_uses_copies(
    device: dt.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "_host_array", lambda *place: None)
    captured = dt.jit(lambda a, b: (linalg.solve(a.mT, b), *linalg.eigh(a)))
    for seed in (0, 1):
        a, b = tensors((positive(seed), general(seed, 3, 2)))
        assert bits(captured(a, b)) == bits((linalg.solve(a.mT, b), *linalg.eigh(a)))
    assert "is singular" in str(failure(captured, dt.ones((3, 3)), b))


def test_failure_of_the_first_call_leaves_thread_state_intact(device: dt.Device) -> None:
    captured = dt.jit(lambda a: dt.scan(lambda c, x: (linalg.inv(c), x), a, dt.arange(2.0))[0])
    assert "is singular" in str(failure(captured, dt.ones((2, 2))))
    a = dt.asarray([[2.0, 0.0], [1.0, 4.0]])
    assert bits(captured(a)) == bits(linalg.inv(linalg.inv(a)))
    assert tracer_api.current() is None


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 3, 3)])
def test_empty_batches_and_matrices_are_captured(
    device: dt.Device, shape: tuple[int, ...]
) -> None:  # fmt: skip
    captured = dt.jit(lambda a: (linalg.inv(a), linalg.det(a), *linalg.eigh(a), *linalg.lu(a)))
    for _ in range(2):
        a = dt.zeros(shape)
        wanted = (linalg.inv(a), linalg.det(a), *linalg.eigh(a), *linalg.lu(a))
        assert bits(captured(a)) == bits(wanted)


def test_shared_matrix_of_all_examples_is_solved_once(device: dt.Device) -> None:
    (a,) = tensors((positive(0),))
    captured = dt.jit(dt.vmap(lambda x: linalg.inv(a) @ x + x))
    for seed in (0, 1):
        (x,) = tensors((general(seed, 4, 3),))
        assert bits(captured(x)) == bits(dt.vmap(lambda x: linalg.inv(a) @ x + x)(x))
    before = counters.calls
    captured(x)
    assert counters.calls <= before + 2  # one for the matrix, one for the product
