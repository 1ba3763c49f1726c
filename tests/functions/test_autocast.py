"""`dt.autocast`: the dtypes of results, contexts, captured functions, gradients and training."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import dovetail as dt
import dovetail.nn.functional as F
import numpy as np
import pytest
from dovetail import callbacks, nn
from dovetail.functions.autocast import CAST_NAMES, HALF_NAMES, IN_FLOAT32
from dovetail.settings import flags


def name_of(case: object) -> str:
    return case if isinstance(case, str) else ""


X, V = "x", "v"  # a matrix (4, 4) and a vector (4,)
SEQUENCE, IMAGES, LABELS = "sequence", "images", "labels"
# A call by the name of a function of `dt`, `dt.linalg` or `dt.nn.functional`; its operands.
HALF_CASES: list[tuple[str, tuple[Any, ...]]] = [
    ("matmul", (X, X)), ("bmm", (SEQUENCE, SEQUENCE)), ("mm", (X, X)), ("mv", (X, V)),
    ("addmm", (X, X, X)), ("addmv", (V, X, V)), ("baddbmm", (SEQUENCE, SEQUENCE, SEQUENCE)),
    ("einsum", ("ij,jk->ik", X, X)), ("vecdot", (X, X)), ("multi_dot", ([X, X, X],)),
    ("linear", (X, X)), ("conv1d", (SEQUENCE, SEQUENCE)), ("conv2d", (IMAGES, IMAGES)),
    ("conv_transpose1d", (SEQUENCE, SEQUENCE)), ("prelu", (X, V)),
    ("scaled_dot_product_attention", (SEQUENCE, SEQUENCE, SEQUENCE)),
]  # fmt: skip
FLOAT32_CASES: list[tuple[str, tuple[Any, ...]]] = [
    *[(name, (X,)) for name in (
        "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log1p", "log2",
        "reciprocal", "rsqrt", "sinh", "tan", "sum", "prod", "vector_norm", "matrix_norm", "norm",
        "softplus", "normalize",
    )],
    ("pow", (X, 2)), ("pow", (X, 1.5)), ("pow", (X, X)), ("cumsum", (X, 0)), ("cumprod", (X, 0)),
    ("softmax", (X, 0)), ("log_softmax", (X, 0)), ("softmin", (X, 0)), ("logsumexp", (X, 0)),
    ("cdist", (X, X)), ("layer_norm", (X, (4,))), ("rms_norm", (X, (4,))),
    ("group_norm", (SEQUENCE, 2)), ("cosine_similarity", (X, X)), ("mse_loss", (X, X)),
    ("l1_loss", (X, X)), ("smooth_l1_loss", (X, X)), ("huber_loss", (X, X)), ("kl_div", (X, X)),
    ("poisson_nll_loss", (X, X)), ("soft_margin_loss", (X, X)),
    ("binary_cross_entropy_with_logits", (X, X)), ("cross_entropy", (X, LABELS)),
    ("nll_loss", (X, LABELS)), ("multi_margin_loss", (X, LABELS)),
    ("margin_ranking_loss", (V, V, V)), ("hinge_embedding_loss", (X, X)),
    ("triplet_margin_loss", (X, X, X)), ("cosine_embedding_loss", (X, X, V)),
    ("pairwise_distance", (X, X)),
]  # fmt: skip
AS_THEY_ARE: list[tuple[str, tuple[Any, ...]]] = [
    ("add", (X, X)), ("sqrt", (X,)), ("tanh", (X,)), ("mean", (X,)), ("std", (X,)), ("relu", (X,)),
    ("gelu", (X,)), ("silu", (X,)), ("sigmoid", (X,)), ("dot", (V, V)), ("tensordot", (X, X)),
    ("bilinear", (X, X, SEQUENCE)), ("concat", ([X, X],)), ("stack", ([X, X],)), ("max", (X,)),
    ("where", (True, X, X)), ("max_pool1d", (X, 2)), ("instance_norm", (SEQUENCE,)),
]  # fmt: skip


def values_of(dtype: dt.DType) -> dict[str, dt.Tensor]:
    x = dt.linspace(0.1, 0.9, 16).reshape((4, 4))
    cases = {X: x, V: x[0], SEQUENCE: dt.stack([x] * 4), IMAGES: dt.stack([x] * 4)[None]}
    return {**{n: t.astype(dtype) for n, t in cases.items()}, LABELS: dt.asarray([0, 1, 2, 3])}


def call(name: str, operands: tuple[Any, ...], values: dict[str, dt.Tensor]) -> dt.Tensor:
    def find(a: Any) -> Any:
        if isinstance(a, list):
            return [find(v) for v in a]
        if a is True:
            return dt.ones((4, 4), dtype=dt.bool)
        return values.get(a, a) if isinstance(a, str) else a

    for package in (dt, dt.linalg, F):
        if hasattr(package, name):
            result = getattr(package, name)(*map(find, operands))
            return result[0] if isinstance(result, tuple) else result
    raise LookupError(name)


@pytest.mark.parametrize("half", [dt.bfloat16, dt.float16], ids=lambda d: d.name)
@pytest.mark.parametrize(("name", "operands"), HALF_CASES, ids=name_of)
def test_products_of_float32_are_of_halves(
    name: str, operands: tuple[Any, ...], half: dt.DType, device: dt.Device
) -> None:
    values = values_of(dt.float32)
    with dt.autocast(dtype=half):
        y = call(name, operands, values)
    assert y.dtype is half
    z = call(name, operands, values_of(half))
    assert y.numpy(force=True).tobytes() == z.numpy(force=True).tobytes()
    assert call(name, operands, values).dtype is dt.float32


@pytest.mark.parametrize(("name", "operands"), FLOAT32_CASES, ids=name_of)
def test_sensitive_functions_of_halves_are_of_float32(
    name: str, operands: tuple[Any, ...], device: dt.Device
) -> None:
    halves = values_of(dt.bfloat16)
    wide = {n: t if n == LABELS else t.astype(dt.float32) for n, t in halves.items()}
    with dt.autocast():
        y = call(name, operands, halves)
    assert y.dtype is dt.float32
    assert y.numpy().tobytes() == call(name, operands, wide).numpy().tobytes()


@pytest.mark.parametrize(("name", "operands"), AS_THEY_ARE, ids=name_of)
def test_other_functions_keep_the_dtype(name: str, operands: tuple[Any, ...]) -> None:
    for dtype in (dt.float32, dt.bfloat16):
        with dt.autocast():
            assert call(name, operands, values_of(dtype)).dtype is dtype


def test_every_listed_name_is_a_function() -> None:
    layers = {"recurrent_layer"}  # of dt.nn alone
    for name in sorted(CAST_NAMES - layers):
        assert any(hasattr(p, name) for p in (dt, dt.linalg, F)), name
    assert not HALF_NAMES & {*IN_FLOAT32.split()}


IN_BOTH_OF_TORCH = (
    "matmul", "bmm", "mm", "addmm", "baddbmm", "linear", "conv1d", "conv2d", "mse_loss", "mean",
    "scaled_dot_product_attention", "tanh", "sigmoid",
)  # fmt: skip
BOTH_CASES = [
    case for case in (*HALF_CASES, *FLOAT32_CASES, *AS_THEY_ARE) if case[0] in IN_BOTH_OF_TORCH
]


@pytest.mark.parametrize(("name", "operands"), BOTH_CASES, ids=name_of)
def test_results_have_the_dtypes_of_torch_on_the_cpu(name: str, operands: tuple[Any, ...]) -> None:
    torch = pytest.importorskip("torch")

    def theirs(dtype: dt.DType) -> str:
        values = {
            n: torch.from_numpy(t.astype(dt.float32).numpy().copy()).to(getattr(torch, dtype.name))
            for n, t in values_of(dtype).items()
            if n != LABELS
        }
        package = torch if hasattr(torch, name) else torch.nn.functional
        with torch.autocast("cpu"):
            y = getattr(package, name)(*[values.get(a, a) for a in operands])
        return str(y.dtype).removeprefix("torch.")

    for dtype in (dt.float32, dt.bfloat16):
        with dt.autocast():
            ours = call(name, operands, values_of(dtype)).dtype.name
        assert ours == theirs(dtype)


def test_methods_operators_and_numpy_obey(device: dt.Device) -> None:
    x = dt.ones((2, 2))
    h = x.astype(dt.bfloat16)
    with dt.autocast():
        halves = [x @ x, x.matmul(x), x.mm(x), x @ np.ones((2, 2), np.float32), np.matmul(x, x)]
        wide = [h.exp(), h.sum(), h.softmax(0), h**2, h**0.5, 2**h, 1 / h, 1.0 / h, np.exp(h)]
        same = [h + 1, 1 + h, 2 * h, h / 2, 2 - h]
    assert {y.dtype for y in halves} == {dt.bfloat16}
    assert {y.dtype for y in wide} == {dt.float32}
    assert {y.dtype for y in same} == {dt.bfloat16}


def test_ineligible_calls_are_left_alone(device: dt.Device) -> None:
    x, n = dt.ones((2, 2)), dt.asarray([[1, 2], [3, 4]])
    h, out = x.astype(dt.bfloat16), dt.zeros((2, 2))
    with dt.autocast():
        assert dt.matmul(x, x, dtype=dt.float32).dtype is dt.float32
        assert dt.matmul(x, x, out=out) is out
        assert (n @ n).dtype is n.dtype
        assert h.exp_().dtype is dt.bfloat16
        assert dt.linalg.inv(x + dt.eye(2)).dtype is dt.float32
        y = dt.full((2, 2), 1 / 3)
        z = dt.copy(y)
        z @= y
    assert z.tolist() == (y @ y).tolist()  # in float32
    if device.type != "opencl":
        w = dt.ones((2, 2), dtype=dt.float64)
        with dt.autocast():
            assert (w @ w).dtype is dt.float64
            assert w.exp().dtype is dt.float64


def test_insides_of_functions_run_without_autocast(device: dt.Device) -> None:
    a = dt.random.default_rng(0).normal((4, 4)) + 4 * dt.eye(4)
    expected = dt.linalg.pinv(a).numpy()
    with dt.autocast():
        assert dt.linalg.pinv(a).numpy().tobytes() == expected.tobytes()


def test_layers_obey(device: dt.Device) -> None:
    x = dt.ones((2, 4, 4))
    layers: list[tuple[nn.Module, dt.DType]] = [
        (nn.Linear(4, 3), dt.bfloat16), (nn.Conv1d(4, 2, 1), dt.bfloat16),
        (nn.ConvTranspose1d(4, 2, 1), dt.bfloat16), (nn.LSTM(4, 3), dt.bfloat16),
        (nn.GRU(4, 3), dt.bfloat16), (nn.LayerNorm(4), dt.float32), (nn.PReLU(), dt.bfloat16),
        (nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), dt.float32),
    ]  # fmt: skip
    for layer, dtype in layers:
        with dt.autocast():
            y = layer(x)
        assert (y[0] if isinstance(y, tuple) else y).dtype is dtype, layer
        assert all(p.dtype is dt.float32 for p in layer.parameters())


def test_batch_norm_takes_halves_and_keeps_float32_statistics(device: dt.Device) -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    with dt.autocast():
        y = net(dt.random.default_rng(0).normal((8, 4)))
    assert y.dtype is dt.bfloat16
    assert net[1].running_mean.dtype is dt.float32
    assert abs(y.float().mean().item()) < 0.01


def test_binary_cross_entropy_raises_and_names_the_logits() -> None:
    p = dt.full(3, 0.5)
    with dt.autocast(), pytest.raises(dt.ArgumentError, match="binary_cross_entropy_with_logits"):
        F.binary_cross_entropy(p, p)
    with dt.autocast(), dt.autocast(enabled=False):
        assert F.binary_cross_entropy(p, p).dtype is dt.float32


# --- contexts -------------------------------------------------------------------------------------


def test_inner_block_replaces_the_outer_one() -> None:
    x = dt.ones((2, 2))
    with dt.autocast(dtype=dt.float16):
        with dt.autocast(enabled=False):
            assert (x @ x).dtype is dt.float32
            assert not dt.is_autocast_enabled()
        with dt.autocast():
            assert (x @ x).dtype is dt.bfloat16
        assert (x @ x).dtype is dt.float16
        assert dt.get_autocast_dtype() is dt.float16
    assert (x @ x).dtype is dt.float32


def test_block_of_a_device_type_holds_for_its_tensors_alone() -> None:
    x, other = dt.ones((2, 2), device="reference"), dt.ones((2, 2), device="cpu")
    with dt.autocast("reference"):
        assert (x @ x).dtype is dt.bfloat16
        assert (other @ other).dtype is dt.float32
        assert dt.is_autocast_enabled("reference")
        assert not dt.is_autocast_enabled("cpu")
        with dt.autocast("cpu", dt.float16):
            assert (x @ x).dtype is dt.bfloat16
            assert (other @ other).dtype is dt.float16
        with dt.autocast(enabled=False):
            assert (x @ x).dtype is dt.float32
    with dt.autocast(), dt.autocast("reference", enabled=False):
        assert (x @ x).dtype is dt.float32
        assert (other @ other).dtype is dt.bfloat16


def test_decorated_function_runs_under_autocast() -> None:
    @dt.autocast(dtype=dt.float16)
    def product(x: dt.Tensor) -> dt.Tensor:
        return x @ x

    assert product(dt.ones((2, 2))).dtype is dt.float16


def test_other_thread_runs_without_autocast() -> None:
    x, dtypes = dt.ones((2, 2)), []
    with dt.autocast():
        thread = threading.Thread(target=lambda: dtypes.append((x @ x).dtype))
        thread.start()
        thread.join()
        dtypes.append((x @ x).dtype)
    assert dtypes == [dt.float32, dt.bfloat16]


def test_flag_falls_with_the_last_block() -> None:
    gc.collect()
    with dt.autocast():
        assert flags.has_autocast
    gc.collect()
    assert not flags.has_autocast
    assert callbacks.run_autocast is None


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"dtype": dt.float32}, dt.DTypeError, "dtype must be dt.bfloat16 or dt.float16"),
        ({"device_type": 3}, dt.DeviceError, "autocast: expected a device name"),
        ({"enabled": "no"}, dt.ArgumentTypeError, "enabled must be"),
    ],
)
def test_wrong_argument_raises(arguments: dict[str, Any], error: type, match: str) -> None:
    with pytest.raises(error, match=match):
        dt.autocast(**arguments)


# --- captured functions, gradients, transforms ----------------------------------------------------


def test_capture_from_outside_is_not_replayed_inside(device: dt.Device) -> None:
    f = dt.jit(lambda x: x @ x)
    x = dt.ones((2, 2))
    dtypes = []
    for _ in range(3):
        dtypes.append(f(x).dtype)
        with dt.autocast():
            dtypes.append(f(x).dtype)
        with dt.autocast(dtype=dt.float16):
            dtypes.append(f(x).dtype)
    assert dtypes == [dt.float32, dt.bfloat16, dt.float16] * 3
    assert f.captures == 3


def test_autocast_within_a_captured_function(device: dt.Device) -> None:
    @dt.jit
    def f(x: dt.Tensor) -> tuple[dt.Tensor, dt.Tensor]:
        with dt.autocast():
            y = x @ x
        return y, y.float() @ x

    for _ in range(3):
        y, z = f(dt.ones((2, 2)))
        assert (y.dtype, z.dtype) == (dt.bfloat16, dt.float32)
        assert z.tolist() == [[4.0, 4.0], [4.0, 4.0]]


@pytest.mark.parametrize("inside", [False, True])
def test_gradients_are_float32_and_of_halves(inside: bool, device: dt.Device) -> None:
    x, w = dt.random.default_rng(1).normal((4, 3)), dt.random.default_rng(2).normal((3, 2))
    v = w.copy().requires_grad_()
    with dt.autocast():
        loss = dt.tanh(x @ v).sum()
        if inside:
            loss.backward()
    if not inside:
        loss.backward()
    u = w.copy().requires_grad_()
    dt.tanh(x.astype(dt.bfloat16) @ u.astype(dt.bfloat16)).float().sum().backward()
    assert v.grad is not None and u.grad is not None
    assert v.grad.dtype is dt.float32
    assert v.grad.tolist() == u.grad.tolist()


def test_grad_and_vmap_run_the_function_under_autocast(device: dt.Device) -> None:
    x = dt.random.default_rng(3).normal((5, 2, 2))
    with dt.autocast():
        products = dt.vmap(lambda a: a @ a)(x)
        slopes = dt.func.grad(lambda a: (a @ a).sum())(x[0])
    assert products.dtype is dt.bfloat16
    h = x.astype(dt.bfloat16)
    assert products.float().tolist() == (h @ h).float().tolist()
    assert slopes.dtype is dt.float32


@pytest.mark.parametrize("inside", [False, True])
def test_checkpoint_runs_again_under_the_same_autocast(inside: bool, device: dt.Device) -> None:
    w = dt.random.default_rng(4).normal((3, 3))
    dtypes: list[dt.DType] = []

    def part(x: dt.Tensor) -> dt.Tensor:
        y = x @ x
        dtypes.append(y.dtype)
        return dt.exp(y)

    def slope(run: Callable[[dt.Tensor], dt.Tensor]) -> list[Any]:
        x = w.copy().requires_grad_()
        with dt.autocast():
            loss = run(x).sum()
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        assert x.grad is not None
        return x.grad.tolist()

    assert slope(lambda x: dt.autograd.checkpoint(part, x)) == slope(part)
    assert dtypes == [dt.bfloat16] * 3


def test_gradient_of_a_captured_loop_runs_under_its_autocast(device: dt.Device) -> None:
    def loss(x: dt.Tensor) -> dt.Tensor:
        with dt.autocast():
            return dt.fori_loop(0, 3, lambda i, c: (c @ c).float() / 2, x).sum()

    x = dt.random.default_rng(5).normal((3, 3))
    plain = x.copy().requires_grad_()
    with dt.autocast():
        c = plain
        for _ in range(3):
            c = (c @ c).float() / 2
        total = c.sum()
    total.backward()
    leaf = x.copy().requires_grad_()
    loss(leaf).backward()
    assert leaf.grad is not None and plain.grad is not None
    np.testing.assert_allclose(leaf.grad.numpy(), plain.grad.numpy(), rtol=1e-2)


# --- training -------------------------------------------------------------------------------------


def final_loss(half: dt.DType | None, scaled: bool) -> float:
    dt.random.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.Linear(64, 1))
    optimizer = dt.optim.Adam(net.parameters(), lr=1e-3)
    scaler = dt.amp.GradScaler(enabled=scaled)
    x = dt.random.default_rng(1).normal((64, 8))
    y = dt.sin(x.sum(axis=1, keepdims=True))

    @dt.jit
    def step(x: dt.Tensor, y: dt.Tensor) -> dt.Tensor:
        optimizer.zero_grad()
        with dt.autocast(dtype=half or dt.bfloat16, enabled=half is not None):
            loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    for _ in range(400):
        loss = step(x, y)
    return loss.item()


def test_training_in_halves_reaches_the_loss_of_float32() -> None:
    wide = final_loss(None, scaled=False)
    assert abs(final_loss(dt.bfloat16, scaled=False) / wide - 1) < 0.03
    assert abs(final_loss(dt.float16, scaled=True) / wide - 1) < 0.03
