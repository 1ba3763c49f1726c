"""Wrong shapes, dtypes and numbers in functions and layers raise errors that name them."""

from __future__ import annotations

from collections.abc import Callable

import dovetail as dt
import pytest

nn, F = dt.nn, dt.nn.functional
ON = "reference"


def x(*shape: int) -> dt.Tensor:
    return dt.ones(shape, device=ON)


def ints(*values: int) -> dt.Tensor:
    return dt.asarray(list(values), dtype=dt.int64, device=ON)


WRONG: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: nn.Linear(3, 2, device=ON)(x(4, 5)), dt.ShapeError, r"linear: .*\(4, 5\).*\(2, 3\)"),
    (
        lambda: F.linear(x(4, 3), x(2, 3), x(3)),
        dt.ShapeError,
        r"linear: bias must have shape .*, got shape \(3,\)",
    ),
    (lambda: F.linear(x(), x(2, 3)), dt.ShapeError, "linear"),
    (lambda: F.bilinear(x(4, 3), x(4, 2), x(5, 2, 3)), dt.ShapeError, r"bilinear.*\(5, 2, 3\)"),
    (
        lambda: F.bilinear(x(4, 3), x(4, 2), x(5, 3, 2), x(1)),
        dt.ShapeError,
        r"bilinear: bias must have shape \(5,\) .*, got shape \(1,\)",
    ),
    (
        lambda: F.gru_cell(x(4, 3), x(4, 2), x(6, 3), x(6, 2), x(6), x(4, 6)),
        dt.ShapeError,
        r"gru_cell: b_hh must have shape \(6,\) .*, got shape \(4, 6\)",
    ),
    (
        lambda: F.lstm_cell(x(4, 3), (x(4, 2), x(4, 2)), x(8, 3), x(8, 2), x(1), x(8)),
        dt.ShapeError,
        r"lstm_cell: b_ih must have shape \(8,\) .*, got shape \(1,\)",
    ),
    (
        lambda: F.multi_head_attention_forward(
            x(3, 1, 4),
            x(3, 1, 4),
            x(3, 1, 4),
            4,
            2,
            x(12, 4),
            x(1),
            None,
            None,
            False,
            0.0,
            x(4, 4),
            None,
        ),
        dt.ShapeError,
        r"in_proj_bias must have shape \(12,\), got shape \(1,\)",
    ),
    (
        lambda: F.multi_head_attention_forward(
            x(3, 1, 4),
            x(3, 1, 4),
            x(3, 1, 4),
            4,
            2,
            x(12, 4),
            x(12),
            None,
            None,
            False,
            0.0,
            x(4, 4),
            x(2, 4),
        ),
        dt.ShapeError,
        r"out_proj_bias must have shape \(4,\), got shape \(2, 4\)",
    ),
    (lambda: F.prelu(x(4, 3), x(2)), dt.ShapeError, r"prelu.*3 channels, got shape \(2,\)"),
    (lambda: F.glu(x(4, 3)), dt.ShapeError, "glu: axis -1 must have an even size"),
    (lambda: F.gelu(x(3), "exact"), dt.ArgumentError, "gelu: approximate"),
    (lambda: F.hardtanh(x(3), 2.0, 1.0), dt.ArgumentError, "hardtanh: min_val"),
    (lambda: nn.Hardtanh(2.0, 1.0), dt.ArgumentError, "Hardtanh"),
    (lambda: F.rrelu(x(3), 0.5, 0.1), dt.ArgumentError, "rrelu: lower"),
    (lambda: F.celu(x(3), 0.0), dt.ArgumentError, "celu: alpha"),
    (lambda: F.softshrink(x(3), -1.0), dt.ArgumentError, "softshrink: lambd"),
    (lambda: F.softmax(x(3, 4), 2), dt.AxisError, r"softmax: axis 2 .*\(3, 4\)"),
    (
        lambda: F.log_softmax(ints(1, 2), 0),
        dt.DTypeError,
        "log_softmax: expected a float dtype, got int64",
    ),
    (lambda: F.sigmoid([1.0]), dt.DTypeError, "sigmoid: expected a tensor"),  # type: ignore[arg-type]  # that is the test
    (lambda: F.tanh(ints(1)), dt.DTypeError, "tanh: expected a float dtype"),
    (lambda: nn.Softmax2d()(x(3, 4)), dt.ShapeError, "Softmax2d"),
    (lambda: F.normalize(x(3), dim=1), dt.AxisError, "normalize: axis 1"),
    (lambda: F.layer_norm(x(4, 3), (4,)), dt.ShapeError, r"layer_norm: .*\(4,\).*\(4, 3\)"),
    (
        lambda: F.layer_norm(x(4, 3), 3, x(4)),
        dt.ShapeError,
        "layer_norm: weight must have the shape",
    ),
    (lambda: F.layer_norm(ints(1, 2), 2), dt.DTypeError, "layer_norm: expected a float dtype"),
    (lambda: F.rms_norm(x(4, 3), ()), dt.ShapeError, "rms_norm"),
    (
        lambda: nn.BatchNorm1d(3, device=ON)(x(4, 5)),
        dt.ShapeError,
        r"batch_norm: running_mean must have shape \(5,\)",
    ),
    (lambda: nn.BatchNorm1d(3, device=ON)(x(1, 3)), dt.ArgumentError, "one value in each channel"),
    (lambda: nn.BatchNorm1d(3, device=ON)(x(4, 3, 2, 2)), dt.ShapeError, "BatchNorm1d: .*2 or 3"),
    (lambda: nn.BatchNorm2d(3, device=ON)(x(4, 3)), dt.ShapeError, "BatchNorm2d: .*4 dimensions"),
    (
        lambda: F.batch_norm(x(4, 3), None, None),
        dt.ArgumentError,
        "running_mean and running_var must be given",
    ),
    (lambda: F.batch_norm(x(4), None, None), dt.ShapeError, r"batch_norm: .*\(4,\)"),
    (lambda: F.instance_norm(x(4, 3, 1)), dt.ArgumentError, "instance_norm: .*one value"),
    (
        lambda: nn.InstanceNorm1d(3, affine=True, device=ON)(x(2, 4, 5)),
        dt.ShapeError,
        "must have 3 channels, got 4",
    ),
    (
        lambda: F.group_norm(x(4, 3), 2),
        dt.ShapeError,
        "group_norm: .* divisible by num_groups, got 3",
    ),
    (
        lambda: nn.GroupNorm(2, 3),
        dt.ArgumentError,
        "GroupNorm: num_channels must be divisible by num_groups, got 3",
    ),
    (lambda: F.local_response_norm(x(4, 3), 2), dt.ShapeError, "local_response_norm"),
    (lambda: F.local_response_norm(x(4, 3, 2), 0), dt.ArgumentError, "size must be positive"),
    (lambda: F.dropout(x(3), 1.5), dt.ArgumentError, "dropout: p must be a probability.*1.5"),
    (lambda: F.dropout(ints(1)), dt.DTypeError, "dropout: expected a float dtype"),
    (lambda: nn.Dropout2d(-0.1), dt.ArgumentError, "Dropout2d: p"),
    (lambda: F.dropout1d(x(3)), dt.ShapeError, "dropout1d"),
    (lambda: F.feature_alpha_dropout(x(3)), dt.ShapeError, "feature_alpha_dropout"),
    (
        lambda: F.embedding(x(3), x(4, 2)),
        dt.DTypeError,
        "embedding: input must hold integers, got float32",
    ),
    (lambda: F.embedding(ints(1), x(4)), dt.ShapeError, r"embedding: weight must have .*\(4,\)"),
    (
        lambda: F.embedding(ints(1), x(4, 2), 4),
        dt.ArgumentError,
        "padding_idx 4 is out of range for 4 rows",
    ),
    (lambda: F.embedding(ints(4), x(4, 2)).tolist(), dt.OutOfRangeError, "embedding: 4 .*size 4"),
    (lambda: nn.Embedding(4, 2, 7), dt.ArgumentError, "Embedding: padding_idx 7"),
    (lambda: nn.Embedding(4, 2, _weight=x(4, 3)), dt.ShapeError, r"Embedding: .*\(4, 3\)"),
    (lambda: nn.Embedding.from_pretrained(x(4)), dt.ShapeError, "from_pretrained"),
    (lambda: F.embedding_bag(ints(1), x(4, 2)), dt.ArgumentError, "needs offsets"),
    (lambda: F.embedding_bag(ints(1), x(4, 2), ints(0), mode="min"), dt.ArgumentError, "mode"),
    (lambda: F.embedding_bag(ints(1), x(4, 2), x(1)), dt.DTypeError, "offsets .*float32"),
    (
        lambda: F.embedding_bag(ints(1), x(4, 2), ints(), include_last_offset=True),
        dt.ShapeError,
        "at least one element",
    ),
    (
        lambda: F.embedding_bag(ints(1), x(4, 2), ints(0), per_sample_weights=x(1)),
        dt.ArgumentError,
        "per_sample_weights",
    ),
    (
        lambda: F.embedding_bag(ints(1), x(4, 2), ints(0), mode="sum", per_sample_weights=x(2)),
        dt.ShapeError,
        "per_sample_weights",
    ),
    (lambda: F.one_hot(x(2)), dt.DTypeError, "one_hot: classes must have an integer dtype"),
    (lambda: F.one_hot(ints(0), 0), dt.ArgumentError, "num_classes must be positive"),
    (lambda: F.one_hot(ints(3), 3).tolist(), dt.OutOfRangeError, "one_hot: 3"),
    (
        lambda: F.cross_entropy(x(4, 3), ints(0, 1)),
        dt.ShapeError,
        r"cross_entropy: .*\(4,\).*\(2,\)",
    ),
    (lambda: F.cross_entropy(x(4, 3), x(4, 2)), dt.ShapeError, r"cross_entropy: .*\(4, 2\)"),
    (lambda: F.cross_entropy(x(1, 3), ints(3)).item(), dt.OutOfRangeError, "cross_entropy.*got 3 "),
    (lambda: F.cross_entropy(x(1, 3), ints(-1)).item(), dt.OutOfRangeError, "cross_entropy"),
    (lambda: F.cross_entropy(x(1, 3), ints(1), x(2)), dt.ShapeError, "weight must have shape"),
    (lambda: F.cross_entropy(x(1, 3), x(1, 3), x(2)), dt.ShapeError, "weight must have shape"),
    (lambda: F.cross_entropy(x(1, 3), ints(1), label_smoothing=2), dt.ArgumentError, "smoothing"),
    (lambda: F.cross_entropy(x(1, 3), ints(1), reduction="avg"), dt.ArgumentError, "'avg'"),
    (lambda: F.cross_entropy(x(), ints(1)), dt.ShapeError, "at least one class"),
    (
        lambda: F.nll_loss(x(1, 3), x(1)),
        dt.DTypeError,
        "nll_loss: the target must have an integer dtype",
    ),
    (
        lambda: F.mse_loss(x(4, 3), x(2)),
        dt.ShapeError,
        r"mse_loss: .*must have shapes that broadcast",
    ),
    (lambda: F.mse_loss(ints(1), ints(1)), dt.DTypeError, "mse_loss: expected a float dtype"),
    (lambda: F.mse_loss(x(3), x(3), weight=x(2)), dt.ShapeError, "mse_loss: .*weight"),
    (lambda: F.smooth_l1_loss(x(3), x(3), beta=-1.0), dt.ArgumentError, "beta"),
    (lambda: F.huber_loss(x(3), x(3), delta=0.0), dt.ArgumentError, "delta"),
    (lambda: F.binary_cross_entropy(x(3), x(2)), dt.ShapeError, "binary_cross_entropy: .*target"),
    (lambda: F.binary_cross_entropy_with_logits(x(3), x(2)), dt.ShapeError, "with_logits"),
    (
        lambda: F.gaussian_nll_loss(x(3), x(3), x(2)),
        dt.ShapeError,
        "gaussian_nll_loss: var must have",
    ),
    (lambda: F.gaussian_nll_loss(x(3), x(3), -1.0), dt.ArgumentError, "var must not be negative"),
    (lambda: F.margin_ranking_loss(x(3), x(3), x(1, 3)), dt.ShapeError, "margin_ranking_loss"),
    (
        lambda: F.triplet_margin_loss(x(3), x(3), x(3), 0.0),
        dt.ArgumentError,
        "margin must be positive",
    ),
    (lambda: F.cosine_embedding_loss(x(2, 3), x(2, 3), x(2, 1)), dt.ShapeError, "cosine_embedding"),
    (lambda: F.multi_margin_loss(x(2, 3), ints(0, 1), p=3), dt.ArgumentError, "p must be 1 or 2"),
    (lambda: F.multi_margin_loss(x(2, 3), ints(0, 3)).item(), dt.OutOfRangeError, "multi_margin"),
    (lambda: F.multilabel_margin_loss(x(2, 3), ints(0)), dt.ShapeError, "multilabel_margin_loss"),
    (lambda: F.multilabel_soft_margin_loss(x(2), x(3)), dt.ShapeError, "multilabel_soft_margin"),
    (lambda: nn.MultiMarginLoss(p=3), dt.ArgumentError, "MultiMarginLoss: p"),
    (lambda: nn.MSELoss(reduction="avg"), dt.ArgumentError, "MSELoss: reduction"),
    (lambda: nn.Bilinear(0, 1, 1), dt.ArgumentError, "Bilinear: in1_features"),
]


@pytest.mark.parametrize("at", range(len(WRONG)))
def test_wrong_input_is_named(at: int) -> None:
    call, kind, said = WRONG[at]
    with pytest.raises(kind, match=said):
        call()


def test_bad_embedding_index_names_the_line_of_the_user() -> None:
    with pytest.raises(dt.OutOfRangeError, match=r"embedding: 9 .*test_network_input_errors\.py"):
        nn.Embedding(4, 2, device=ON)(ints(9)).tolist()


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_broadcast_target_warns(name: str) -> None:
    with pytest.warns(UserWarning, match=rf"{name}: .*\(4, 1\).*\(4,\)"):
        getattr(F, name)(x(4, 1), x(4))


def test_inplace_option_returns_the_input() -> None:
    y = dt.asarray([-1.0, 2.0], device=ON)
    assert F.relu(y, inplace=True) is y and y.tolist() == [0.0, 2.0]
    assert nn.ReLU(inplace=True)(y) is y
    z = dt.asarray([-1.0, 2.0], device=ON).requires_grad_()
    out = F.relu(z * 1.0, inplace=True)
    out.sum().backward()  # saved values stay unchanged
    assert z.grad is not None and z.grad.tolist() == [0.0, 1.0]


FLOATS_ALONE = [
    "celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish", "leaky_relu", "logsigmoid",
    "mish", "rrelu", "selu", "silu", "softplus", "softshrink", "softsign", "tanhshrink",
]  # fmt: skip


@pytest.mark.parametrize("name", FLOATS_ALONE)
def test_nonlinearity_of_integers_raises(name: str) -> None:
    """Its result would be truncated: gelu(2) would be 1."""
    with pytest.raises(dt.DTypeError, match=f"{name}: expected a float dtype, got int64"):
        getattr(F, name)(ints(2))


@pytest.mark.parametrize("name", [*FLOATS_ALONE, "relu", "relu6", "hardtanh"])
def test_nonlinearity_of_a_list_raises(name: str) -> None:
    with pytest.raises(dt.DTypeError, match="expected a tensor, got list"):
        getattr(F, name)([2.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda: F.linear([1.0], x(2, 1)), lambda: F.bilinear([1.0], x(1), x(1, 1, 1)),
        lambda: F.one_hot([1]), lambda: nn.GRUCell(1, 2)([1.0]),
        lambda: nn.MultiheadAttention(2, 1)([1.0], x(1, 2), x(1, 2)),
    ],
)  # fmt: skip
def test_layer_of_a_list_raises(call: Callable[[], object]) -> None:
    with pytest.raises(dt.DTypeError, match="expected a tensor, got list"):
        call()


def test_clipping_functions_accept_integers() -> None:
    assert [F.relu(ints(-1, 9)).tolist(), F.relu6(ints(-1, 9)).tolist()] == [[0, 9], [0, 6]]
    assert F.threshold(ints(1, 3), 2, 0).dtype is dt.int64


def test_negative_deviation_raises() -> None:
    with pytest.raises(dt.ArgumentError, match=r"normal_: std must not be negative, got -1"):
        nn.init.normal_(x(3), std=-1.0)


DOUBLE = {
    "Linear": (lambda: nn.Linear(3, 2, device=ON), (4, 3)),
    "Bilinear": (lambda: lambda y: F.bilinear(y, x(4, 2), x(5, 3, 2)), (4, 3)),
    "PReLU": (lambda: nn.PReLU(device=ON), (4, 3)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(3, device=ON), (4, 3)),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(3, affine=True, device=ON), (2, 3, 4)),
    "LayerNorm": (lambda: nn.LayerNorm(3, device=ON), (4, 3)),
    "GroupNorm": (lambda: nn.GroupNorm(1, 3, device=ON), (4, 3)),
    "Conv1d": (lambda: nn.Conv1d(3, 2, 1, device=ON), (2, 3, 4)),
    "MultiheadAttention": (
        lambda: lambda y: nn.MultiheadAttention(4, 2, device=ON)(y, y, y), (3, 2, 4)
    ),
    "TransformerEncoderLayer": (
        lambda: nn.TransformerEncoderLayer(4, 2, 8, device=ON), (3, 2, 4)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DOUBLE)
def test_input_with_another_dtype_than_the_weights_raises(name: str) -> None:
    make, shape = DOUBLE[name]
    layer = make()
    layer(x(*shape))  # allowed in memory of its own
    with pytest.raises(dt.DTypeError, match=r"float64.*float32|float32.*float64"):
        layer(x(*shape).astype(dt.float64))


def test_integer_input_of_a_linear_layer_raises() -> None:
    with pytest.raises(dt.DTypeError, match=r"linear: .*got int64 and float32; use x.astype"):
        nn.Linear(2, 3, device=ON)(ints(1, 2))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_norm_layers_of_halves_accept_float32_weights(dtype: str) -> None:
    y = x(4, 3).astype(dtype)
    for layer in (nn.LayerNorm(3, device=ON), nn.BatchNorm1d(3, device=ON)):
        assert layer(y).dtype.name == dtype
    assert F.rms_norm(y, (3,), x(3)).dtype.name == dtype


INDICES = {
    "embedding": lambda at: F.embedding(at, dt.ones((3, 2), device=at.device)),
    "embedding_bag": lambda at: F.embedding_bag(at[None], dt.ones((3, 2), device=at.device)),
    "one_hot": lambda at: F.one_hot(at, 3),
    "cross_entropy": lambda at: F.cross_entropy(dt.zeros((2, 3), device=at.device), at),
    "nll_loss": lambda at: F.nll_loss(dt.zeros((2, 3), device=at.device), at),
}


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("index", [-1, 3])
@pytest.mark.parametrize("name", INDICES)
def test_indices_out_of_range_are_named(name: str, index: int, captured: bool) -> None:
    f = dt.jit(INDICES[name]) if captured else INDICES[name]
    dt.evaluate(f(ints(0, 2)))
    says = f"{name}: {index} is out of range"
    if name in ("cross_entropy", "nll_loss"):
        says = f"{name}: a class index must be from 0 to 2 for 3 classes, got {index}"
    with pytest.raises(dt.OutOfRangeError, match=says):
        dt.evaluate(f(ints(0, index)))


def bags(offsets: dt.Tensor, mode: str = "sum", **options: bool) -> dt.Tensor:
    """Return bags of a table with rows 1, 10 and 100, each once."""
    table = dt.asarray([[1.0], [10.0], [100.0]], device=ON)
    return F.embedding_bag(ints(0, 1, 2), table, offsets, mode=mode, **options)


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize(
    ("offsets", "bad"),
    [((1, 2), 1), ((-1, 1), -1), ((0, 2, 1), 1), ((0, 2, 0), 2), ((0, -1), -1), ((0, 4), 4)],
)
def test_offsets_of_no_bags_are_named(
    offsets: tuple[int, ...], bad: int, mode: str, captured: bool
) -> None:
    f = dt.jit(bags, static_argnames="mode") if captured else bags
    dt.evaluate(f(ints(*[0] * len(offsets)), mode=mode))
    rule = rf"^embedding_bag: offsets must begin with 0, .* at most 3, .*, got {bad} \(requested at"
    for _ in range(2):
        with pytest.raises(dt.OutOfRangeError, match=rule):
            dt.evaluate(f(ints(*offsets), mode=mode))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_offsets_of_no_rows_must_be_zero(mode: str) -> None:
    table = x(3, 2)
    assert F.embedding_bag(ints(), table, ints(0, 0), mode=mode).tolist() == [[0.0, 0.0]] * 2
    with pytest.raises(dt.OutOfRangeError, match=r"at most 0, .*got 1"):
        F.embedding_bag(ints(), table, ints(0, 1), mode=mode).tolist()


@pytest.mark.parametrize(("mode", "want"), [("sum", 11.0), ("mean", 5.5), ("max", 10.0)])
def test_rows_after_the_end_of_the_last_bag_are_left_out(mode: str, want: float) -> None:
    assert bags(ints(0, 2), mode, include_last_offset=True).tolist() == [[want]]
    assert bags(ints(0), mode, include_last_offset=True).tolist() == []
    assert bags(ints(), mode).shape == (0, 1)


def test_bad_index_of_a_bag_names_only_its_function() -> None:
    with pytest.raises(dt.OutOfRangeError, match=r"^embedding_bag: 9 is out of range"):
        F.embedding_bag(ints(0, 9), x(3, 2), ints(0, 1), mode="sum").tolist()


@pytest.mark.parametrize("ignored", [-100, -1, 0, 7])
def test_ignored_index_may_be_any_number(ignored: int) -> None:
    scores = dt.asarray([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]], device=ON)
    alone = F.cross_entropy(scores[:1], ints(2))
    both = F.cross_entropy(scores, ints(2, ignored), ignore_index=ignored)
    assert both.item() == alone.item()
    with pytest.raises(dt.OutOfRangeError, match=r"cross_entropy: a class index .* got -3"):
        F.cross_entropy(scores, ints(-3, ignored), ignore_index=ignored).item()


def test_bad_index_leaves_renormalized_rows_unchanged() -> None:
    table = x(3, 2)
    with pytest.raises(dt.OutOfRangeError):
        F.embedding(ints(0, -1), table, max_norm=0.5).tolist()
    assert table.tolist() == [[1.0, 1.0]] * 3
