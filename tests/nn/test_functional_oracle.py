"""`dt.nn.functional` against PyTorch: values and gradients, over the arguments."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from function_cases import EVERY, Array, Case, normal

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

F, THEIRS = dt.nn.functional, torch.nn.functional
MINE = [
    name for name in F.__all__
    if inspect.unwrap(getattr(F, name)).__module__.rpartition(".")[2] in (
        "activations", "classes", "distances", "dropouts", "embeddings", "losses",
        "normalization", "softmax_functions", "weight_products",
    )
]  # fmt: skip


@pytest.fixture(autouse=True)
def cpu_if_installed() -> Iterator[None]:
    """Run on the cpu if it is installed;

    `test_functional_bits.py` compares it with the reference.
    """
    before = dt.default_device()
    found = [str(d) for d in dt.devices()]
    dt.set_default_device("cpu" if "cpu" in found else "reference")
    yield
    dt.set_default_device(before)


def ours(x: Array, learns: bool = True) -> dt.Tensor:
    found = dt.asarray(x, copy=True)
    return found.requires_grad_() if learns and found.dtype.kind == "f" else found


def theirs(x: Array, learns: bool = True) -> Any:
    found = torch.from_numpy(np.array(x))
    return found.requires_grad_() if learns and found.is_floating_point() else found


def dense(g: Any, like: Any) -> Array:
    if g is None:
        return np.zeros(tuple(like.shape))
    if isinstance(g, dt.Tensor):
        return (g if g.layout is dt.strided else g.to_dense()).numpy()
    return (g.to_dense() if g.is_sparse else g).numpy()


def made(of: Any, case: Case, make: Any) -> tuple[list[Any], Any]:
    """Return the operands and the result of the function."""
    operands = [make(a) for a in case.arrays]
    options = {k: make(v, False) if isinstance(v, Array) else v for k, v in case.options.items()}
    if case.name in ("embedding", "embedding_bag"):
        return operands, getattr(of, case.name)(options.pop("input"), operands[0], **options)
    if case.name in ("layer_norm", "rms_norm", "group_norm"):
        names = dict(zip(("weight", "bias"), operands[1:], strict=False))
        return operands, getattr(of, case.name)(operands[0], **options, **names)
    return operands, getattr(of, case.name)(*operands, **options)


def compare(case: Case, rtol: float = 1e-6) -> None:
    """Raise AssertionError if values, dtypes, shapes or gradients differ."""
    a, mine = made(F, case, ours)
    b, want = made(THEIRS, case, theirs)
    assert mine.shape == tuple(want.shape)
    assert mine.dtype.name == str(want.dtype).removeprefix("torch.")
    got = mine.detach().numpy()
    np.testing.assert_allclose(got, want.detach().numpy(), rtol=rtol, atol=rtol)
    assert mine.requires_grad == want.requires_grad
    if not want.requires_grad:
        return
    g = np.random.default_rng(3).standard_normal(tuple(want.shape))
    mine.backward(dt.asarray(g))
    want.backward(torch.from_numpy(np.array(g)))
    for x, y in zip(a, b, strict=True):
        if y.requires_grad:
            np.testing.assert_allclose(dense(x.grad, x), dense(y.grad, y), rtol=rtol, atol=rtol)


@pytest.mark.filterwarnings("ignore:reduction")  # PyTorch's, of kl_div
@pytest.mark.parametrize("case", EVERY, ids=str)
def test_values_and_gradients_equal_pytorch(case: Case) -> None:
    compare(case)


def test_different_value_or_gradient_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("relu", (np.array([1.0, -1.0]),), {})
    monkeypatch.setattr(F, "relu", lambda x: dt.relu(x) + 1e-3)
    with pytest.raises(AssertionError):
        compare(case)
    monkeypatch.setattr(F, "relu", lambda x: dt.relu(x) + (x - x.detach()))
    with pytest.raises(AssertionError):
        compare(case)


@pytest.mark.parametrize("shape", [(4, 6, 3, 2), (4, 6, 3), (4, 6)])
@pytest.mark.parametrize("kind", ["batch_norm", "instance_norm"])
@pytest.mark.parametrize("by_input", [True, False])
def test_running_statistics_equal_pytorch(
    shape: tuple[int, ...], kind: str, by_input: bool
) -> None:
    if kind == "instance_norm" and len(shape) == 2:
        return
    x, weight, bias = normal(*shape), normal(6), normal(6)
    running = [normal(6), np.abs(normal(6)) + 0.5]
    mine, want = [ours(r, False) for r in running], [theirs(r, False) for r in running]
    a, b = [ours(v) for v in (x, weight, bias)], [theirs(v) for v in (x, weight, bias)]
    for _ in range(2):
        y = getattr(F, kind)(a[0], *mine, *a[1:], by_input, 0.3)
        z = getattr(THEIRS, kind)(b[0], *want, *b[1:], by_input, 0.3)
        np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-6, atol=1e-6)
    for p, q in zip(mine, want, strict=True):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-6)
    g = normal(*shape)
    y.backward(dt.asarray(g))
    z.backward(torch.from_numpy(g.copy()))
    for p, q in zip(a, b, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("options", [{"max_norm": 1.0}, {"max_norm": 1.5, "norm_type": 1.0}])
def test_embedding_rows_beyond_max_norm_are_scaled_in_place(options: dict[str, float]) -> None:
    table, at = normal(7, 3), np.array([[1, 2, 2], [6, 0, 1]])
    a, b = ours(table, False), theirs(table, False)
    y = F.embedding(dt.asarray(at), a, **options)
    z = THEIRS.embedding(torch.from_numpy(at), b, **options)
    np.testing.assert_allclose(y.numpy(), z.numpy(), rtol=1e-6)
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def test_embedding_bag_with_per_sample_weights() -> None:
    table, at, offsets = normal(7, 3), np.array([1, 2, 2, 6, 0, 1]), np.array([0, 3, 3, 4])
    factors = normal(6)
    a, b = [ours(v) for v in (table, factors)], [theirs(v) for v in (table, factors)]
    y = F.embedding_bag(
        dt.asarray(at), a[0], dt.asarray(offsets), mode="sum", per_sample_weights=a[1]
    )
    z = THEIRS.embedding_bag(
        torch.from_numpy(at), b[0], torch.from_numpy(offsets), mode="sum", per_sample_weights=b[1]
    )
    y.sum().backward()
    z.sum().backward()
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-6)
    for p, q in zip(a, b, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-6)


def test_embedding_bag_maximum_propagates_nan_and_infinity() -> None:
    """PyTorch loses NaN unless it comes first; dovetail's maximum propagates NaN."""
    nan, inf = np.nan, np.inf
    table = dt.asarray([[1, nan], [nan, 2], [-inf, -inf], [-inf, 7]])
    at, offsets = dt.asarray([0, 1, 1, 2, 3, 2, 3]), dt.asarray([0, 2, 3, 4, 6, 7])
    options: dict[str, Any] = {"mode": "max", "padding_idx": 3}
    every = [[nan, nan], [nan, 2], [-inf, -inf], [-inf, 7], [-inf, 7], [0, 0]]
    without_last = [[nan, nan], [nan, 2], [-inf, -inf], [-inf, -inf], [0, 0], [0, 0]]
    y = F.embedding_bag(at, table, offsets, mode="max")
    z = F.embedding_bag(at, table, offsets, **options)
    np.testing.assert_array_equal(y.numpy(), every)
    np.testing.assert_array_equal(z.numpy(), without_last)


def test_one_hot_equals_pytorch() -> None:
    at = np.array([[1, 2], [6, 0]])
    for options in ({}, {"num_classes": 9}):
        y = F.one_hot(dt.asarray(at), **options)
        z = THEIRS.one_hot(torch.from_numpy(at), **options)
        assert y.tolist() == z.tolist() and y.dtype is dt.int64


# float16 and bfloat16: as exact as PyTorch, which rounds once too
SHORT = [
    c for c in EVERY
    if c.name in (
        "gelu", "silu", "mish", "softplus", "elu", "hardswish", "logsigmoid", "softmax",
        "layer_norm", "group_norm", "rms_norm", "mse_loss",
    )
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", SHORT, ids=str)
def test_half_results_round_once(case: Case, dtype: str) -> None:
    a = [dt.asarray(x, dtype=getattr(dt, dtype)) for x in case.arrays]
    exact = [dt.asarray(x.astype(dt.float64).numpy()) for x in a]
    options = {
        k: dt.asarray(v, dtype=getattr(dt, dtype)) if isinstance(v, Array) else v
        for k, v in case.options.items()
    }
    wide = {k: v.astype(dt.float64) if isinstance(v, dt.Tensor) else v for k, v in options.items()}
    shape = wide.pop("normalized_shape", None)
    shape = wide.pop("num_groups", shape)
    options.pop("normalized_shape", None)
    options.pop("num_groups", None)
    if case.name == "rms_norm":
        options.setdefault("eps", 1e-3)
        wide.setdefault("eps", 1e-3)
    lead = () if shape is None else (shape,)
    y = getattr(F, case.name)(a[0], *lead, *a[1:], **options)
    z = getattr(F, case.name)(exact[0], *lead, *exact[1:], **wide)
    assert y.dtype is getattr(dt, dtype)
    unit = 2.0 ** (-10 if dtype == "float16" else -7)
    np.testing.assert_allclose(
        y.astype(dt.float64).numpy(), z.numpy(), rtol=unit, atol=1e-6 + unit / 100
    )


def parameters(f: Any) -> dict[str, Any]:
    try:
        found = inspect.signature(f).parameters
    except (TypeError, ValueError):
        return {}
    names = {n: p.default for n, p in found.items()}
    return {} if "args" in names else names


@pytest.mark.parametrize("name", MINE)
def test_parameters_equal_pytorch(name: str) -> None:
    want = parameters(getattr(THEIRS, name))
    if want:
        assert parameters(getattr(F, name)) == want


def test_every_function_has_a_case() -> None:
    drawn = {n for n in MINE if "dropout" in n} | {"gumbel_softmax", "one_hot"}
    known = {c.name for c in EVERY} | drawn | {"batch_norm", "instance_norm"}
    assert {*MINE} == known
