"""Cached parts of gradient graphs have the same bits as those that the rules build."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import tape
from dovetail.lru_cache import LRUCache
from dovetail.ops import table as ops
from gradient_cases import CASES

pytestmark = pytest.mark.usefixtures("device")


class AlwaysMissing(LRUCache[Any, Any]):
    """A cache that misses every lookup."""

    def __setitem__(self, key: Any, value: Any) -> None:
        pass


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tape, "_parts", LRUCache(4096))
    yield


def gradients(f: Callable[..., Any], arrays: Any) -> list[bytes]:
    xs = [dt.asarray(np.ascontiguousarray(a)) for a in arrays]
    dt.evaluate(*xs)
    out = f(*[x.requires_grad_() for x in xs])
    found = dt.grad((out * 1.5).sum(), xs, allow_unused=True)
    return [g.numpy().tobytes() for g in found if g is not None]


def gradients_by_rules(
    f: Callable[..., Any], arrays: Any, monkeypatch: pytest.MonkeyPatch
) -> list[bytes]:
    with monkeypatch.context() as m:
        m.setattr(tape, "_parts", AlwaysMissing(2))
        return gradients(f, arrays)


def cached_parts() -> int:
    return sum(found is not False for found in tape._parts.entries().values())


def test_cached_gradient_of_every_op_has_the_bits_of_its_rule(
    monkeypatch: pytest.MonkeyPatch, thinned: Callable[..., Any]
) -> None:
    wrong, again, cases = [], 0, thinned([*CASES.items()], 4)
    for name, (_, f, arrays, _) in cases:
        gradients(f, arrays)
        again += cached_parts() > 0
        others = [a if a.dtype.kind not in "fc" else a * 0.98 for a in arrays]
        if gradients(f, others) != gradients_by_rules(f, others, monkeypatch):
            wrong.append(name)
        tape._parts.age()
        tape._parts.age()
    assert not wrong
    assert again > 0.8 * len(cases), "most rules record nodes of what they name alone"


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (lambda x, y: x * y, lambda x, y: x * x),  # one node in two places
        (lambda x, y: x * x, lambda x, y: x * y),
        (lambda x, y: dt.where(x > 0, x, y), lambda x, y: dt.where(x > 0, y, x)),
        (lambda x, y: x**2.0 * y, lambda x, y: x**3.0 * y),
        (lambda x, y: dt.maximum(x, 0.0) * y, lambda x, y: dt.maximum(x, -0.0) * y),
        (lambda x, y: x / 2 + y, lambda x, y: x / 2.0 + y),
        (lambda x, y: x @ y, lambda x, y: x @ y.T),  # the same shapes, other strides
        (lambda x, y: x @ y, lambda x, y: (x + 1) @ (y * 2)),  # pending, where there was memory
        (lambda x, y: (x + 1) @ (y * 2), lambda x, y: x @ y),
        (lambda x, y: x @ (y * 2).T, lambda x, y: x @ (y * 2)[::-1]),  # views of what is pending
        (lambda x, y: (x * y).sum(axis=0) * y, lambda x, y: (x * y).sum(axis=1) * y),
        (lambda x, y: (x.T @ y).T * x, lambda x, y: (x @ y).T * x),
    ],
)
def test_gradient_cache_distinguishes_operands(
    first: Any, then: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal((5, 5)).astype("f4") for _ in "xy"]
    gradients(first, arrays)
    assert cached_parts() > 0
    for _ in range(2):
        assert gradients(then, arrays) == gradients_by_rules(then, arrays, monkeypatch)
        assert gradients(first, arrays) == gradients_by_rules(first, arrays, monkeypatch)


def test_gradient_cache_distinguishes_views_of_one_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = dt.asarray(np.arange(40.0, dtype="f4"))
    dt.evaluate(whole)

    def product(a: dt.Tensor, b: dt.Tensor) -> list[bytes]:
        a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
        return [g.numpy().tobytes() for g in dt.grad((a @ b).sum() * 2, (a, b))]

    def square(start: int) -> dt.Tensor:
        return whole[start : start + 16].reshape((4, 4))

    for pair in ((0, 16), (16, 0), (3, 3), (8, 9)):
        found = product(square(pair[0]), square(pair[1]))
        with monkeypatch.context() as m:
            m.setattr(tape, "_parts", AlwaysMissing(2))
            assert found == product(square(pair[0]), square(pair[1])), pair


def test_gradient_rule_runs_once_per_kind_of_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []

    def rule(g: Any, r: Any) -> Any:
        asked.append(g.shape)
        return g * (1 - r * r)

    monkeypatch.setattr(tape, "_rules", {**tape._rules})
    tape.set_gradient(ops.TABLE["tanh"], rule)
    for n in (3, 3, 4, 3, 4):
        x = np.linspace(-1, 1, n)
        (found,) = gradients(dt.tanh, [x])
        np.testing.assert_allclose(np.frombuffer(found), 1.5 * (1 - np.tanh(x) ** 2))
    assert asked == [(3,), (4,)]


def test_gradient_rules_run_with_create_graph() -> None:
    x = dt.asarray([1.0, 2.0]).requires_grad_()
    for _ in range(3):
        (g,) = dt.grad((x**3).sum(), (x,), create_graph=True)
        assert dt.grad(g.sum(), x).tolist() == [6.0, 12.0]
    for _ in range(2):
        assert dt.grad((x**3).sum(), x).tolist() == [3.0, 12.0]
