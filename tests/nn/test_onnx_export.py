"""`dt.onnx.export`: functions and modules as models, run by onnxruntime and loaded again."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import nn

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
ort.set_default_logger_severity(3)

R = "reference"
rng = np.random.default_rng(0)


def t(*shape: int, dtype: str = "float32") -> dt.Tensor:
    return dt.asarray((rng.standard_normal(shape) * 2).astype(dtype), device=R)


X, Y, W, S = t(3, 4), t(3, 4), t(4, 5), t(4, 4)
I = dt.asarray([2, 0, -1], device=R)  # noqa: E741
EDGES = dt.asarray([-1.0, 0.0, 1.0], dtype=dt.float32, device=R)


def ints(x: dt.Tensor) -> dt.Tensor:
    return (x * 5).astype(dt.int64)


def written(x: dt.Tensor) -> dt.Tensor:
    y = x.copy()
    z = y.T
    y[1:, 0] = 7
    y[0] += 1
    y[:, ::2] *= x[:, :2]
    return z + 0


def put(x: dt.Tensor) -> dt.Tensor:
    y = dt.zeros_like(x)
    y[I] = x
    y[1, I] += 2
    return y


def layer_norm(x: dt.Tensor) -> dt.Tensor:
    return (x - x.mean(-1, keepdims=True)) * dt.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def attention(x: dt.Tensor) -> dt.Tensor:
    b, n, d = x.shape
    q = (x @ S).reshape(b, n, 2, d // 2).permute_dims((0, 2, 1, 3))
    scores = q @ q.permute_dims((0, 1, 3, 2)) * 0.5
    seen = dt.tril(dt.full((n, n), True, dtype=dt.bool, device=R))
    made = dt.softmax(dt.where(seen, scores, -1e9), -1) @ q
    return made.permute_dims((0, 2, 1, 3)).reshape(b, n, d)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "radd": lambda x: 1 - x,
    "matmul": lambda x: x @ W,
    "matmul of ints": lambda x: ints(x) @ ints(S),
    "vector": lambda x: x @ S[0],
    "relu": dt.relu,
    "softmax": lambda x: dt.softmax(x, 0),
    "log_softmax": lambda x: dt.log_softmax(x),
    "layer norm": layer_norm,
    "gather": lambda x: x[I],
    "gather columns": lambda x: x[:, I],
    "take": lambda x: dt.take(x, I, axis=1),
    "take_along_axis": lambda x: dt.take_along_axis(x, dt.argsort(x), axis=-1),
    "points": lambda x: x[I, I],
    "where": lambda x: dt.where(x > 0, x, -x),
    "slice": lambda x: x[::-1, 1:4:2],
    "empty slice": lambda x: x[2:1],
    "newaxis": lambda x: x[:, None, 1],
    "concat": lambda x, y: dt.concat([x, y], axis=1),
    "stack": lambda x, y: dt.stack([x, y], axis=1),
    "split": lambda x: dt.split(x, 2, axis=1),
    "int32": lambda x: x.astype(dt.int32) + 1,
    "int8": lambda x: x.astype(dt.int8),
    "bool": lambda x: x.astype(dt.bool),
    "float16": lambda x: x.astype(dt.float16) * 2,
    "float64": lambda x: dt.exp(x.astype(dt.float64)),
    "sum": lambda x: x.sum(),
    "sum of ints": lambda x: ints(x).astype(dt.int32).sum(0),
    "prod": lambda x: dt.prod(x, axis=0),
    "max": lambda x: x.max(1),
    "min": lambda x: x.min(1, keepdims=True),
    "mean": lambda x: x.mean((0, 1)),
    "argmax": lambda x: dt.argmax(x),
    "argmin": lambda x: dt.argmin(x, axis=1),
    "any": lambda x: (x > 1).any(0),
    "all": lambda x: (x > -9).all(),
    "count_nonzero": lambda x: dt.count_nonzero(x > 0, axis=1),
    "logsumexp": lambda x: dt.logsumexp(x, axis=1),
    "std": lambda x: x.std(0),
    "tanh": dt.tanh,
    "sigmoid": dt.sigmoid,
    "gelu": lambda x: x * 0.5 * (1 + dt.erf(x / 2**0.5)),
    "log1p": lambda x: dt.log1p(dt.abs(x) * 1e-3),
    "expm1": dt.expm1,
    "exp2": dt.exp2,
    "trigonometry": lambda x: dt.sin(x) + dt.cos(x) * dt.atan(x) - dt.asinh(x),
    "atan2": dt.atan2,
    "hypot": dt.hypot,
    "logaddexp": dt.logaddexp,
    "floor_divide": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "division of ints": lambda x: ints(x) // 3,
    "remainder of ints": lambda x: ints(x) % -3,
    "pow": lambda x: x**2,
    "sqrt": lambda x: dt.sqrt(dt.abs(x)),
    "clip": lambda x: dt.clip(x, -1, 1),
    "round": lambda x: dt.round(x) + dt.trunc(x) + dt.ceil(x) - dt.floor(x),
    "sign": dt.sign,
    "copysign": dt.copysign,
    "bits": lambda x: (ints(x) & 7) | (ints(x) << 2),
    "shift": lambda x: ints(x) >> 1,
    "comparisons": lambda x: dt.isfinite(x) & ~dt.isnan(x) & (x != 0),
    "logical": lambda x: (x > 0) ^ (x < 1),
    "transpose": lambda x: x.T.reshape(2, 6),
    "broadcast": lambda x: dt.broadcast_to(x, (2, 3, 4)) * 1,
    "sort": dt.sort,
    "argsort": lambda x: dt.argsort(x, descending=True),
    "topk": lambda x: dt.topk(x, 2),
    "median": lambda x: dt.median(x, 1),
    "searchsorted": lambda x: dt.searchsorted(EDGES, x),
    "cumulative_sum": lambda x: dt.cumulative_sum(x, axis=1, include_initial=True),
    "cumulative_prod": lambda x: dt.cumulative_prod(x, axis=1),
    "written in place": written,
    "put": put,
    "index_add": lambda x: dt.index_add(x, 0, I, x),
    "tril": lambda x: dt.tril(x),
    "eye": lambda x: x + dt.eye(3, 4, device=R),
    "arange": lambda x: x + dt.arange(4, device=R),
    "pad": lambda x: dt.pad(x, ((1, 2), (0, 1))),
    "roll": lambda x: dt.roll(x, 1, axis=0),
    "tile": lambda x: dt.tile(x, (2, 1)),
    "repeat": lambda x: dt.repeat(x, 2, axis=0),
    "einsum": lambda x, y: dt.einsum("ij,kj->ik", x, y),
    "outer": lambda x: dt.outer(x[0], x[1]),
    "diff": dt.diff,
    "windows": lambda x: dt.as_strided(x.contiguous(), (3, 2, 3), (4, 1, 1)).sum(-1),
    "cond": lambda x: dt.cond(x.sum() > 0, lambda x: x * 2, lambda x: -x, x),
    "scan": lambda x: dt.scan(lambda c, v: (c + v, c * v), dt.zeros(4, device=R), x),
    "fori_loop": lambda x: dt.fori_loop(0, 3, lambda i, c: c * 2 + i, x),
    "vmap": dt.vmap(lambda r: r / r.max()),
    "containers": lambda x, y: {"a": x, "b": [y, x + y]},
    "a constant": lambda x: (x, dt.ones(2, device=R)),
    "captured": dt.jit(lambda x: dt.tanh(x) * 2),
    "attention": lambda x: attention(dt.stack([x, x * 2])),
}


def flat(made: Any) -> list[np.ndarray]:
    if isinstance(made, dt.Tensor):
        return [made.numpy()]
    inner = made.values() if isinstance(made, dict) else made
    return [a for v in inner for a in flat(v)]


def require_equal(model: Any, args: list[dt.Tensor], want: list[np.ndarray]) -> None:
    """Run a model by onnxruntime and by dt.onnx, and compare both with the expected results."""
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [v.name for v in session.get_inputs()]
    got = session.run(None, dict(zip(names, [a.numpy() for a in args], strict=True)))
    back = flat(dt.onnx.load(model, R)(*args))
    for found in (got, back):
        for g, w in zip(found, want, strict=True):
            assert (g.shape, g.dtype) == (w.shape, w.dtype)
            np.testing.assert_allclose(g, w, rtol=3e-5, atol=1e-5)


@pytest.mark.parametrize("what", FUNCTIONS)
def test_exported_function_gives_the_same_results(what: str) -> None:
    f = FUNCTIONS[what]
    args = [X, Y] if what in PAIRS else [X]
    require_equal(dt.onnx.export(f, args), args, flat(f(*args)))


SPECIAL = np.array([0.0, -0.0, 1, -1, 0.5, -2.5, np.inf, -np.inf, np.nan, -1000], dtype="f4")


@pytest.mark.parametrize("name", ["atan2", "hypot", "logaddexp", "ldexp", "xlogy", "heaviside"])
def test_exported_function_of_special_values_gives_the_same_results(name: str) -> None:
    args = [
        dt.asarray(np.repeat(SPECIAL, 10), device=R),
        dt.asarray(np.tile(SPECIAL, 10), device=R),
    ]
    f = getattr(dt, name) if hasattr(dt, name) else getattr(dt.special, name)
    require_equal(dt.onnx.export(lambda x, y: f(x, y), args), args, flat(f(*args)))


@pytest.mark.parametrize("dtype", ["uint32", "int32", "int64"])
def test_exported_quantile_of_large_integers_is_exact(dtype: str) -> None:
    def median(x: dt.Tensor) -> dt.Tensor:
        return dt.quantile(x, 0.5, method="lower")

    values = np.arange((1 << 24) + 1, (1 << 24) + 5_002).astype(dtype)
    x = dt.asarray(values, device=R)
    model = dt.onnx.export(median, x)
    assert "TopK" in [n.op_type for n in model.graph.node]
    assert dt.onnx.load(model, R)(x).item() == (1 << 24) + 2_501
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert session.run(None, {"x": values})[0] == (1 << 24) + 2_501


@pytest.mark.parametrize("count", [9, 70_000])
def test_exported_quantile_of_uint64_raises(count: int) -> None:
    x = dt.arange(count, dtype=dt.uint64, device=R)
    with pytest.raises(dt.UnsupportedError, match="uint64"):
        dt.onnx.export(lambda x: dt.quantile(x, 0.5, method="lower"), x)


WITH_SHORT_INTEGERS: dict[str, Callable[[dt.Tensor], dt.Tensor]] = {
    "max": lambda x: dt.max(x, axis=1),
    "min": lambda x: dt.min(x),
    "sum": lambda x: dt.sum(x, dtype=x.dtype),
    "pow": lambda x: x[1] ** 3,
    "left shift": lambda x: x << 2,
    "right shift": lambda x: x >> 2,
}


@pytest.mark.parametrize("what", WITH_SHORT_INTEGERS)
@pytest.mark.parametrize("dtype", [dt.int8, dt.uint8, dt.int16, dt.uint16])
def test_exported_function_of_short_integers_gives_the_same_results(
    what: str, dtype: dt.DType
) -> None:
    f, ends = WITH_SHORT_INTEGERS[what], dt.iinfo(dtype)
    x = dt.asarray([[ends.max, ends.min, 3], [5, 0, 7]], dtype=dtype, device=R)
    require_equal(dt.onnx.export(f, x), [x], flat(f(x)))


def test_exported_power_of_uint32_is_exact_and_of_uint64_raises() -> None:
    x = dt.asarray([3, 1_625], dtype=dt.uint32, device=R)
    require_equal(dt.onnx.export(lambda x: x**3, x), [x], flat(x**3))
    with pytest.raises(dt.UnsupportedError, match="powers of uint64"):
        dt.onnx.export(lambda x: x**3, x.astype(dt.uint64))


def test_exported_running_logsumexp_keeps_small_terms_and_infinities() -> None:
    x = dt.asarray([[-1000.0, 0.0, 1.0], [-np.inf, -np.inf, 2.0], [np.inf, 0.0, -np.inf]], device=R)
    require_equal(dt.onnx.export(lambda x: dt.cumulative_logsumexp(x, axis=1), x), [x],
                  flat(dt.cumulative_logsumexp(x, axis=1)))  # fmt: skip


PAIRS = {
    "add", "concat", "stack", "atan2", "hypot", "logaddexp", "floor_divide", "remainder",
    "copysign", "einsum", "containers",
}  # fmt: skip


def test_ignored_index_becomes_zero() -> None:
    from dovetail.extend import in_range

    def f(i: dt.Tensor) -> dt.Tensor:
        return X[in_range("f", i, 3, ignored=-100)]

    places = dt.asarray([2, -100, 0, 1], device=R)
    require_equal(dt.onnx.export(f, places), [places], flat(f(places)))


@pytest.mark.parametrize("opset", [17, 18, 20, 21])
def test_supported_opsets_give_the_same_results(opset: int) -> None:
    def f(x: dt.Tensor) -> Any:
        return layer_norm(x).max(0), dt.where(x > 0, x, 0).any(1)

    model = dt.onnx.export(f, X, opset=opset)
    assert model.opset_import[0].version == opset
    require_equal(model, [X], flat(f(X)))


# --- modules --------------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(t(5, 4))
        self.scale = nn.Buffer(t(5))

    def forward(self, features: dt.Tensor) -> dt.Tensor:
        return dt.relu(features @ self.weight.T) * self.scale


def test_parameters_are_named_initializers(tmp_path: Path) -> None:
    net = Net()
    path = tmp_path / "net.onnx"
    model = dt.onnx.export(net, X, path, dynamic_axes={"features": {0: "batch"}})
    held = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
    assert np.array_equal(held["weight"], net.weight.detach().numpy())
    assert np.array_equal(held["scale"], net.scale.numpy())
    assert [v.name for v in model.graph.input] == ["features"]
    assert list(tmp_path.iterdir()) == [path] and path.read_bytes() == model.SerializeToString()
    with dt.no_grad():
        require_equal(model, [t(7, 4)][:1] and [X], flat(net(X)))
        assert dt.onnx.load(path, R)(t(7, 4)).shape == (7, 5)


class VisionTransformer(nn.Module):
    """A small vision transformer: patches, a class token, position embeddings, layers, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, 4, device=R)
        self.token = nn.Parameter(t(1, 1, 8))
        self.places = nn.Parameter(t(1, 5, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0, device=R)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(8, 3, device=R)

    def forward(self, images: dt.Tensor) -> dt.Tensor:
        x = self.patches(images).flatten(2).mT
        token = self.token.expand(images.size(0), -1, -1)
        return self.head(self.layers(dt.cat([token, x], dim=1) + self.places)[:, 0])


def test_vision_transformer_with_a_dynamic_batch() -> None:
    net = VisionTransformer().eval()
    model = dt.onnx.export(net, t(2, 3, 8, 8), dynamic_axes={"images": {0: "batch"}})
    onnx.checker.check_model(model, full_check=True)
    held = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
    assert np.array_equal(held["token"], net.token.detach().numpy())
    assert [d.dim_param or d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim
            ] == ["batch", 3]  # fmt: skip
    session = ort.InferenceSession(model.SerializeToString())
    with dt.no_grad():
        for n in (1, 2, 7):
            x = t(n, 3, 8, 8)
            (found,) = session.run(None, {"images": x.numpy()})
            np.testing.assert_allclose(found, net(x).numpy(), rtol=1e-5, atol=1e-6)


W4, W14 = t(4), t(1, 4)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: W14.expand(x.shape[0], -1) + x,
        lambda x: dt.broadcast_to(W4, (x.shape[0], 4)) * x,
        lambda x: dt.cat([W14.expand_as(x), x]),
        lambda x: W14.T.expand(4, x.shape[0]) @ x,
        lambda x: dt.expand_dims(W4, 0).expand(2, x.shape[0], 4) + x,
        lambda x: dt.asarray(2.0, device=R).expand(x.shape[0], 4) * x,
        lambda x: dt.tile(W14, (x.shape[0], 1)) - x,
    ],
)
def test_constants_expand_to_a_dynamic_size(f: Callable[[dt.Tensor], dt.Tensor]) -> None:
    model = dt.onnx.export(f, t(2, 4), input_names=["x"], dynamic_axes={"x": [0]})
    for n in (1, 3, 9):
        x = t(n, 4)
        require_equal(model, [x], flat(f(x)))


def test_input_and_output_names_are_applied() -> None:
    model = dt.onnx.export(
        lambda a, b: (a + b, a - b), [X, Y], input_names=["p", "q"], output_names=["s", "d"]
    )
    assert [v.name for v in model.graph.input] == ["p", "q"]
    assert [v.name for v in model.graph.output] == ["s", "d"]
    for names in ({"input_names": ["p"]}, {"input_names": ["p", "p"]}, {"output_names": ["a"]}):
        with pytest.raises(dt.ArgumentError, match="names must be"):
            dt.onnx.export(lambda a, b: (a + b, a - b), [X, Y], **names)


def test_composite_function_is_one_operator() -> None:
    from dovetail.extend import composite

    @composite
    def layer_norm(
        input: dt.Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None,
        eps: float = 1e-5,
    ) -> dt.Tensor:  # fmt: skip
        centred = input - input.mean(-1, keepdims=True)
        made = centred * dt.rsqrt((centred * centred).mean(-1, keepdims=True) + eps)
        return made if weight is None else made * weight

    w = t(4)
    model = dt.onnx.export(lambda x: layer_norm(x, (4,), w), X)
    assert [n.op_type for n in model.graph.node] == ["LayerNormalization"]
    require_equal(model, [X], flat(layer_norm(X, (4,), w)))
    parts = dt.onnx.export(lambda x: layer_norm(x, (4,)), X)
    assert "LayerNormalization" not in [n.op_type for n in parts.graph.node]
    require_equal(parts, [X], flat(layer_norm(X, (4,))))


# --- dynamic axes
# -----------------------------------------------------------------------------------

ANY_SIZE: dict[str, tuple[Callable[..., Any], Any, list[tuple[int, ...]]]] = {
    "a network": (lambda x: dt.relu(x @ W) + 1, {0: "n"}, [(3, 4), (9, 4)]),
    "moments": (lambda x: x.mean(0) + x.std(0), [0], [(3, 4), (9, 4)]),
    "flattened": (lambda x: x.reshape(x.shape[0], -1)[:, ::2], [0], [(3, 4, 2), (9, 4, 2)]),
    "attention": (attention, {0: "b", 1: "n"}, [(2, 5, 4), (3, 7, 4)]),
    "slices": (lambda x: x[1:-1] * x.shape[0], [0], [(5, 4), (9, 4)]),
    "positions": (
        lambda x: x + dt.arange(x.shape[0], device=R).reshape(-1, 1), [0], [(5, 4), (9, 4)],
    ),
    "a size of 1": (lambda x: x * 2, [0], [(1, 4), (9, 4)]),
}  # fmt: skip


@pytest.mark.parametrize("what", ANY_SIZE)
def test_dynamic_axes_give_the_same_results(what: str) -> None:
    f, axes, shapes = ANY_SIZE[what]
    model = dt.onnx.export(f, t(*shapes[0]), input_names=["x"], dynamic_axes={"x": axes})
    for shape in shapes:
        x = t(*shape)
        require_equal(model, [x], flat(f(x)))


class PositionTable(nn.Module):
    """A lookup in a position table, with bounds that depend on the length."""

    def __init__(self, way: Callable[..., dt.Tensor], length: int) -> None:
        super().__init__()
        self.way = way
        self.table = nn.Parameter(t(1, length, 4))
        self.register_buffer("seen", dt.tril(dt.ones((length, length), device=R)) == 0)
        self.passing = nn.Buffer(t(4, length), persistent=False)

    def forward(self, x: dt.Tensor) -> dt.Tensor:
        return self.way(self, x, x.shape[1])


def masked(net: Any, x: dt.Tensor, n: int) -> dt.Tensor:
    return dt.softmax((x @ x.mT).masked_fill(net.seen[:n, :n], -1e9), -1) @ x


TABLES: dict[str, Callable[..., dt.Tensor]] = {
    "a slice": lambda net, x, n: x + net.table[:, :n],
    "rows without the first axis": lambda net, x, n: x + net.table[0, :n],
    "the last ones": lambda net, x, n: x * net.table[:, -n:] + net.table[:, :n, :1],
    "every second one": lambda net, x, n: x + net.table[:, : 2 * n : 2],
    "a transpose": lambda net, x, n: x + net.passing[:, :n].mT,
    "an axis more": lambda net, x, n: x.expand_dims(2) + net.table[0, 1 : n + 1].expand_dims(1),
    "a mask": masked,
    "embedded": lambda net, x, n: x + net.table[:, dt.arange(n, device=R)],
}


@pytest.mark.parametrize("length", [130, 8])
@pytest.mark.parametrize("way", TABLES)
def test_table_slices_depend_on_a_dynamic_length(way: str, length: int) -> None:
    net = PositionTable(TABLES[way], length * (2 if way == "every second one" else 1) + 1)
    axes = {"x": {0: "batch", 1: "length"}}
    with dt.no_grad():
        model = dt.onnx.export(net, t(2, 3, 4), input_names=["x"], dynamic_axes=axes)
        held = {i.name: i.dims for i in model.graph.initializer}
        assert {"table", "seen", "passing"} & {*held}
        for shape in ((2, 3, 4), (1, 8, 4), (5, 2, 4), (3, length, 4)):
            x = t(*shape)
            require_equal(model, [x], flat(net(x)))


def test_dynamic_slice_of_a_constant_raises_with_a_remedy() -> None:
    table = t(1, 130, 4)

    def f(x: dt.Tensor) -> dt.Tensor:
        return x + table[:, : x.shape[1]]

    with pytest.raises(
        dt.UnsupportedError, match=r"parameters and buffers.*self\.table\[:, :n\]"
    ) as error:
        dt.onnx.export(f, t(2, 3, 4), dynamic_axes={"x": [1]})
    assert f"{__file__}:{f.__code__.co_firstlineno + 1}" in str(error.value)
    short = PositionTable(lambda net, x, n: x + net.table[:, :n], 2)
    with pytest.raises(dt.ShapeError, match=r"onnx\.export: .* does not take x_1 = 5: add: shapes"):
        dt.onnx.export(short, t(2, 2, 4), dynamic_axes={"x": [1]})


def test_untraceable_size_dependence_raises() -> None:
    def halves(x: dt.Tensor) -> dt.Tensor:
        return x[: x.shape[0] // 2]

    def differs(x: dt.Tensor) -> dt.Tensor:
        return x * 2 if x.shape[0] > 6 else x + 1

    for f in (halves, differs):
        with pytest.raises(dt.UnsupportedError, match="dynamic_axes"):
            dt.onnx.export(f, X, dynamic_axes={"x": [0]})
    with pytest.raises(dt.ArgumentError, match="'z'"):
        dt.onnx.export(halves, X, dynamic_axes={"z": [0]})
    with pytest.raises(dt.AxisError, match="axis 7"):
        dt.onnx.export(halves, X, dynamic_axes={"x": [7]})


# --- unsupported models
# -----------------------------------------------------------------------------


def test_unsupported_ops_are_listed_with_their_lines() -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        y = dt.lgamma(x)
        z = dt.erfinv(x / 10)
        return y + z + dt.random.rand(3, 4, device=R)

    with pytest.raises(dt.UnsupportedError) as error:
        dt.onnx.export(f, X)
    said = str(error.value)
    assert all(word in said for word in ("lgamma", "erfinv", "random"))
    first = f.__code__.co_firstlineno
    assert [f"{__file__}:{first + k}" in said for k in (1, 2, 3)] == [True] * 3


def test_reading_values_during_export_raises() -> None:
    with pytest.raises(dt.CaptureError, match=re.escape("onnx.export")):
        dt.onnx.export(lambda x: x * float(x.sum()), X)
    with pytest.raises(dt.CaptureError, match=r"linalg\.inv"):
        dt.onnx.export(lambda x: dt.linalg.inv(x), S)


def test_write_to_an_outer_tensor_raises() -> None:
    total = dt.zeros(4, device=R)
    dt.evaluate(total)

    def f(x: dt.Tensor) -> dt.Tensor:
        total.add_(x[0])
        return x

    with pytest.raises(dt.UnsupportedError, match="from outside"):
        dt.onnx.export(f, X)
    assert total.tolist() == [0] * 4


@pytest.mark.parametrize("opset", [16, 999])
def test_unsupported_opsets_raise(opset: int) -> None:
    with pytest.raises(dt.ArgumentError, match=f"got {opset}"):
        dt.onnx.export(dt.tanh, X, opset=opset)
