"""Samplers at the ends of the unit interval: draws from the extreme words of the generator."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import dovetail as dt
import numpy as np
import pytest
import scipy.stats as st
from dovetail.engine import evaluate as run
from dovetail.onnx.operators import random as onnx_random
from dovetail.ops import table as ops
from extreme_words import WORDS, ExtremeGenerator, numbers_of

pytestmark = pytest.mark.values

N = 400
DTYPES = ("float16", "bfloat16", "float32", "float64")
INF = math.inf

# name: arguments and the interval of the results, "[" and "]" for ends that may occur
FLOATS: dict[str, list[tuple[tuple[Any, ...], str, float, float, str]]] = {
    "uniform": [
        ((0.0, 1.0), "[", 0.0, 1.0, ")"),
        ((1.0, 2.0), "[", 1.0, 2.0, ")"),
        ((-1.0, 0.0), "[", -1.0, 0.0, ")"),
        ((-3.0, 5.0), "[", -3.0, 5.0, ")"),
        ((1.0, 1.5), "[", 1.0, 1.5, ")"),
        ((3.0, 3.0), "[", 3.0, 3.0, "]"),
        ((-60000.0, 60000.0), "[", -60000.0, 60000.0, ")"),
    ],
    "normal": [((0.0, 1.0), "(", -8.6, 8.6, ")"), ((2.0, 0.5), "(", -3.0, 7.0, ")")],
    "exponential": [((1.0,), "[", 0.0, 40.0, ")"), ((0.25,), "[", 0.0, 10.0, ")")],
    "laplace": [((0.0, 1.0), "(", -40.0, 40.0, ")"), ((5.0, 0.5), "(", -15.0, 25.0, ")")],
    "truncated_normal": [
        ((-2.0, 2.0), "[", -2.0, 2.0, "]"),
        ((-INF, INF), "(", -9.0, 9.0, ")"),
        ((-INF, 0.5), "(", -9.0, 0.5, "]"),
        ((1.0, INF), "[", 1.0, 9.0, ")"),
        ((5.0, 6.0), "[", 5.0, 6.0, "]"),
        ((-9.0, -8.0), "[", -9.0, -8.0, "]"),
        ((30.0, INF), "[", 30.0, 32.0, ")"),
        ((-INF, -100.0), "(", -101.0, -100.0, "]"),
    ],
    "gamma": [
        ((1e-3,), "[", 0.0, 100.0, ")"),
        ((0.5,), "[", 0.0, 100.0, ")"),
        ((1.0,), "(", 0.0, 100.0, ")"),
        ((1e-40,), "[", 0.0, 100.0, ")"),
        ((40.0,), "(", 0.0, 200.0, ")"),
    ],
    "beta": [
        (a, "[", 0.0, 1.0, "]")
        for a in ((0.01, 0.01), (1e-4, 1e-4), (1e-40, 1e-40), (0.01, 3.0), (1.0, 1.0), (2.0, 5.0))
    ],
    "dirichlet": [
        ((a,), "[", 0.0, 1.0, "]")
        for a in ([0.01] * 3, [1e-4, 1e-5], [1e-40] * 3, [1.0, 2.0], [1e-3, 5.0], [1.0])
    ],
}
NAMES = {"uniform": ("low", "high"), "normal": ("mean", "std")}
INTEGERS: dict[str, list[tuple[tuple[Any, ...], float, float]]] = {
    "bernoulli": [((0.0,), 0, 0), ((1.0,), 1, 1), ((0.5,), 0, 1)],
    "binomial": [
        ((5, 0.0), 0, 0), ((5, 1.0), 5, 5), ((5, 0.3), 0, 5), ((1000, 0.5), 0, 1000),
        ((0, 0.5), 0, 0), ((1000, 1.0), 1000, 1000), ((10**6, 1e-6), 0, 10**6),
    ],
    "poisson": [((0.0,), 0, 0), ((0.5,), 0, 60), ((9.5,), 0, 60), ((500.0,), 0, 2000)],
    "integers": [((3, 4), 3, 3), ((-2, 5), -2, 4), ((-(2**63), 2**63), -(2**63), 2**63 - 1)],
    "randint": [((3, 4), 3, 3), ((-2, 5), -2, 4)],
    "multinomial": [((7, [0.0, 1.0]), 0, 7), ((7, [0.2, 0.3, 0.5]), 0, 7)],
    "choice": [((3,), 0, 2)],
    "permutation": [((9,), 0, 8)],
}  # fmt: skip
OTHERS = {"rand", "randn", "shuffle"}  # `uniform`, `normal` and `permutation` by other names


def draw(name: str, args: tuple[Any, ...], **options: Any) -> dt.Tensor:
    call = getattr(dt.random, name)
    if name in NAMES:
        return call(N, **dict(zip(NAMES[name], args, strict=True)), **options)
    return call(*args, **options) if name == "permutation" else call(*args, shape=N, **options)


def test_sampler_ends_has_a_row_for_every_function_of_random() -> None:
    makers = {"Generator", "default_rng", "get_state", "manual_seed", "set_state"}
    composed = {"categorical", "rand_like", "randn_like"}  # of the others
    assert {*dir(dt.random)} - makers - composed == {*FLOATS, *INTEGERS, *OTHERS}
    assert {n for n in dir(dt.random) if inspect.isclass(getattr(dt.random, n))} == {"Generator"}


@pytest.mark.parametrize("d", DTYPES)
def test_generator_of_extreme_words_reaches_both_ends(d: str) -> None:
    u = draw("uniform", (0.0, 1.0), dtype=d, device="reference", generator=ExtremeGenerator())
    digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[d]
    assert u.min().item() == 0.0 and u.max().item() == 1.0 - 2.0**-digits
    assert len(WORDS) == 6


def test_numbers_of_words_equal_those_of_the_generator() -> None:
    words = np.array([[0, 0, 0, 0], [2**32 - 1] * 4], np.uint32)
    assert numbers_of(ops.RANDOM_UNIFORM64, words, (), ()).tolist() == [0.0, 1.0 - 2.0**-53]
    z = numbers_of(ops.RANDOM_NORMAL32, words, (), ())
    assert z[0] == np.float32(math.sqrt(64 * math.log(2))) and z[1] == 0.0


CASES = [(n, i) for n, rows in FLOATS.items() for i in range(len(rows))]


@pytest.mark.parametrize("d", DTYPES)
@pytest.mark.parametrize(("name", "case"), CASES, ids=[f"{n}-{i}" for n, i in CASES])
def test_sampler_of_floats_stays_inside_its_interval(
    device: dt.Device, name: str, case: int, d: str
) -> None:
    args, left, low, high, right = FLOATS[name][case]
    x = draw(name, args, dtype=d, generator=ExtremeGenerator(case)).astype(dt.float64).numpy()
    assert np.isfinite(x).all()
    assert (x >= low).all() if left == "[" else (x > low).all()
    assert (x <= high).all() if right == "]" else (x < high).all()
    if name == "dirichlet":
        np.testing.assert_allclose(x.sum(-1), 1.0, atol=3 * float(dt.finfo(getattr(dt, d)).eps))


COUNTS = [(n, i) for n, rows in INTEGERS.items() for i in range(len(rows))]


@pytest.mark.parametrize(("name", "case"), COUNTS, ids=[f"{n}-{i}" for n, i in COUNTS])
def test_sampler_of_integers_stays_inside_its_interval(
    device: dt.Device, name: str, case: int
) -> None:
    args, low, high = INTEGERS[name][case]
    x = draw(name, args, generator=ExtremeGenerator(case))
    assert x.min().item() >= low and x.max().item() <= high
    if name == "multinomial":
        assert bool((x.sum(axis=-1) == args[0]).all())


def test_choice_draws_no_impossible_value(device: dt.Device) -> None:
    for p in ([0.0, 0.5, 0.5, 0.0], [0.0, 1e-310, 1.0 - 1e-310, 0.0]):
        for seed in range(9):
            x = dt.random.choice(4, 2, replace=False, p=p, generator=ExtremeGenerator(seed))
            assert sorted(x.tolist()) == [1, 2]
        x = dt.random.choice(4, N, p=p, generator=ExtremeGenerator(1))
        assert set(x.tolist()) <= {1, 2}


@pytest.mark.parametrize("d", DTYPES)
def test_uniform_with_a_range_that_overflows_is_finite(device: dt.Device, d: str) -> None:
    most = float(dt.finfo(getattr(dt, d)).max)
    for g in (ExtremeGenerator(), dt.random.default_rng(1)):
        x = g.uniform(N, low=-most, high=most, dtype=d).astype(dt.float64).numpy() / most
        assert x.min() >= -1 and x.max() < 1 and x.min() < -0.9 and x.max() > 0.9
        assert abs(np.median(x)) < 0.6


def test_uniform_with_bounds_beyond_its_dtype_raises() -> None:
    g = dt.random.default_rng(1)
    for d, low, high in (
        ("float32", 0.0, INF), ("float64", -INF, 0.0), ("float16", 0.0, 65520.0),
        ("float32", math.nan, 1.0), ("float32", 0.0, 1e300),
    ):  # fmt: skip
        with pytest.raises(dt.ArgumentError, match=r"uniform: (low|high) must be finite in float"):
            g.uniform(3, low=low, high=high, dtype=d, device="reference")
    assert g.uniform((), low=0, high=65519, dtype="float16", device="reference").item() < 65504
    with pytest.raises(dt.ArgumentError, match="poisson: lam must be finite"):
        dt.random.poisson(INF)


@pytest.mark.parametrize("d", ["float32", "float64", "float16"])
def test_in_place_uniform_never_returns_high(device: dt.Device, d: str) -> None:
    x = dt.zeros(3000, dtype=d).uniform_(1.0, 2.0, generator=ExtremeGenerator())
    assert x.min().item() >= 1.0 and x.max().item() < 2.0
    y = dt.nn.init.uniform_(dt.zeros(3000, dtype=d), 2.0, 2.5, generator=ExtremeGenerator())
    assert y.min().item() >= 2.0 and y.max().item() < 2.5


# --- distributions --------------------------------------------------------------------------------


@pytest.mark.parametrize("d", ["float32", "float64"])
@pytest.mark.parametrize("a", [0.01, 1e-3, 1e-5])
def test_beta_of_tiny_parameters_is_0_or_1_with_the_right_probability(
    device: dt.Device, a: float, d: str
) -> None:
    x = dt.random.beta(a, 3 * a, 4000, dtype=d, generator=dt.random.default_rng(3)).numpy()
    assert np.isfinite(x).all() and x.min() >= 0 and x.max() <= 1
    assert abs(x.mean() - 0.25) < 0.03
    assert (np.minimum(x, 1 - x) < 0.1).mean() > 0.95


@pytest.mark.parametrize("a", [0.01, 1e-3])
def test_dirichlet_of_tiny_parameters_sums_to_1(device: dt.Device, a: float) -> None:
    g = dt.random.default_rng(3)
    x = dt.random.dirichlet([a, 2 * a, a], 3000, generator=g).numpy()
    assert np.isfinite(x).all() and x.min() >= 0
    np.testing.assert_allclose(x.sum(-1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(x.mean(0), [0.25, 0.5, 0.25], atol=0.03)


@pytest.mark.parametrize("d", ["float32", "float64"])
@pytest.mark.parametrize(("low", "high"), [(3.5, 9.0), (8.0, INF), (-INF, -30.0), (5.0, 5.1)])
def test_truncated_normal_in_a_tail_follows_its_distribution(
    device: dt.Device, low: float, high: float, d: str
) -> None:
    law = st.truncnorm(low, high)
    for given in ((low, high), (dt.asarray([low], dtype=d), dt.asarray([high], dtype=d))):
        g = dt.random.default_rng(3)
        x = dt.random.truncated_normal(*given, 3000, dtype=d, generator=g).numpy()
        assert st.kstest(x.astype("f8"), law.cdf).pvalue > 1e-3
        assert len(np.unique(x)) > 1000 or d == "float32"


# --- network functions that use the default generator ---------------------------------------------


@pytest.fixture
def extreme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dovetail.functions.random.generator._default", ExtremeGenerator(2))


@pytest.mark.parametrize("d", DTYPES)
@pytest.mark.parametrize("hard", [False, True])
def test_gumbel_softmax_of_extreme_words_is_finite(
    device: dt.Device, extreme: None, d: str, hard: bool
) -> None:
    logits = dt.zeros((300, 4), dtype=d).requires_grad_()
    x = dt.nn.functional.gumbel_softmax(logits, hard=hard)
    (g,) = dt.autograd.grad((x * dt.arange(4, dtype=d)).sum(), [logits])
    eps = float(dt.finfo(x.dtype).eps)
    assert bool(dt.isfinite(x).all()) and bool(dt.isfinite(g).all())
    np.testing.assert_allclose(x.detach().astype(dt.float64).numpy().sum(-1), 1.0, atol=4 * eps)


F = "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout"


@pytest.mark.parametrize("d", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", F.split())
@pytest.mark.parametrize("p", [0.0, 1e-9, 0.5, 1.0 - 2.0**-24, 1.0])
def test_dropout_of_extreme_words_keeps_or_drops(
    device: dt.Device, extreme: None, name: str, d: str, p: float
) -> None:
    x = dt.ones((5, 6, 2, 3, 2)[: 3 + (name[-2] in "23") + (name[-2] == "3")], dtype=d)
    y = getattr(dt.nn.functional, name)(x, p, training=True)
    values = set(np.unique(y.astype(dt.float64).numpy()).tolist())
    assert len(values) <= 2 and not any(math.isnan(v) for v in values)
    if "alpha" not in name:
        assert all(v == 0.0 or v >= 1.0 for v in values)
        assert (p < 1.0) or values == {0.0}


INITIALISERS: dict[str, Callable[[dt.Tensor, Any], dt.Tensor]] = {
    "uniform_": lambda w, g: dt.nn.init.uniform_(w, -1.0, 1.0, generator=g),
    "normal_": lambda w, g: dt.nn.init.normal_(w, generator=g),
    "trunc_normal_": lambda w, g: dt.nn.init.trunc_normal_(w, generator=g),
    "xavier_uniform_": lambda w, g: dt.nn.init.xavier_uniform_(w, generator=g),
    "xavier_normal_": lambda w, g: dt.nn.init.xavier_normal_(w, generator=g),
    "kaiming_uniform_": lambda w, g: dt.nn.init.kaiming_uniform_(w, generator=g),
    "kaiming_normal_": lambda w, g: dt.nn.init.kaiming_normal_(w, generator=g),
    "sparse_": lambda w, g: dt.nn.init.sparse_(w, 0.3, generator=g),
    "orthogonal_": lambda w, g: dt.nn.init.orthogonal_(w, generator=g),
}
WITHOUT_DRAWS = {"calculate_gain", "constant_", "dirac_", "eye_", "ones_", "zeros_"}


def test_table_has_a_row_for_every_initializer() -> None:
    assert {*dt.nn.init.__all__} == {*INITIALISERS} | WITHOUT_DRAWS


@pytest.mark.parametrize("d", DTYPES)
@pytest.mark.parametrize("name", INITIALISERS)
def test_initializer_of_extreme_words_is_finite(device: dt.Device, name: str, d: str) -> None:
    if name == "orthogonal_" and d == "bfloat16":
        d = "float32"  # as its docstring says, by way of float32
    w = INITIALISERS[name](dt.zeros((12, 10), dtype=d), ExtremeGenerator(4))
    assert bool(dt.isfinite(w).all()) and bool((dt.abs(w) < 9).all())


@pytest.mark.parametrize("d", ["float16", "float32"])
def test_onnx_operators_of_extreme_words_stay_inside_their_interval(
    device: dt.Device, extreme: None, d: str
) -> None:
    given = {"low": 1.0, "high": 2.0, "sample_size": 200}
    call = SimpleNamespace(
        get=lambda name, other=None: given.get(name, other),
        op="Multinomial",
        reserve=lambda nbytes: None,
    )
    x = onnx_random._draw_uniform(call, (300,), getattr(dt, d), device)
    assert x.dtype.name == d and x.min().item() >= 1.0 and x.max().item() < 2.0
    logits = dt.asarray([[-math.inf, 0.0, 0.0]], dtype=d)
    assert set(np.unique(onnx_random._multinomial(call, logits).numpy())) <= {1, 2}


def test_weighted_sampler_of_extreme_words_draws_no_impossible_value() -> None:
    for weights in ([0.0, 1.0, 1.0, 0.0], [0.0, 1e-310, 1.0, 0.0]):
        for seed in range(9):
            g = ExtremeGenerator(seed)
            x = dt.data.WeightedRandomSampler(weights, 2, replacement=False, generator=g)
            assert sorted(x) == [1, 2]
            y = dt.data.WeightedRandomSampler(weights, 20, generator=g)
            assert {*y} <= {1, 2}


# --- compilations ---------------------------------------------------------------------------------


def test_multinomial_of_another_number_of_categories_compiles_nothing(
    device: dt.Device, thinned: Callable[..., Any]
) -> None:
    def compiled(kinds: int, shape: int | tuple[int, ...], batch: tuple[int, ...] = ()) -> int:
        p = dt.asarray(np.random.default_rng(kinds).uniform(0.1, 1.0, (*batch, kinds)))
        before = run.counters.compiles + run.counters.disk_hits
        x = dt.random.multinomial(50, p, shape)
        assert bool((x.numpy().sum(-1) == 50).all())
        return run.counters.compiles + run.counters.disk_hits - before

    compiled(3, 1)  # one draw, and several
    compiled(3, 5)
    calls = (
        (4, 5, ()), (2, 3, ()), (8, 2, ()), (17, 1, ()), (9, (2, 2), ()), (33, 4, ()),
        (5, 3, (2,)), (6, (2, 1), (3, 2)),
    )  # fmt: skip
    found = {(k, s, b): compiled(k, s, b) for k, s, b in thinned(calls, 3)}
    assert not any(found.values()), found
