"""`dt.nn.summary`, and the operations of ops, against numbers computed by hand."""

from __future__ import annotations

import dovetail as dt
import dovetail.nn.functional as F
import pytest
from dovetail import nn
from dovetail.extend import composite, graph_of
from dovetail.nn.model_summary import ModuleSummary


def flops_by_name(table: ModuleSummary) -> dict[str, int]:
    return {row.name: row.flops for row in table.rows}


def test_linear_counts_multiply_adds_twice_and_the_bias_once() -> None:
    table = nn.summary(nn.Linear(3, 4), (2, 3))
    assert table.flops == 2 * (2 * 3 * 4) + 2 * 4
    assert (table.parameters, table.trainable) == (16, 16)
    row = table.rows[0]
    assert row.shapes == [(2, 4)] and row.calls == 1
    assert (row.memory_bytes, row.activation_bytes, table.input_bytes) == (64, 32, 24)


@pytest.mark.parametrize(
    ("layer", "x", "wanted"),
    [
        (nn.Conv2d(4, 6, 3, groups=2), (2, 4, 5, 5), 2 * (2 * 6 * 9) * (2 * 9) + 2 * 6 * 9),
        (nn.Conv1d(2, 3, 3, padding=1, bias=False), (1, 2, 8), 2 * (3 * 8) * (2 * 3)),
        # each of the 2 * 4 * 4 inputs meets 3 * 2 * 2 weights
        (nn.ConvTranspose2d(2, 3, 2, bias=False), (1, 2, 4, 4), 2 * (2 * 4 * 4) * (3 * 2 * 2)),
    ],
)
def test_convolution_counts_each_tap_of_each_result(
    layer: nn.Module, x: tuple[int, ...], wanted: int
) -> None:
    assert nn.summary(layer, x).flops == wanted


def test_gradient_of_a_convolution_counts_as_the_convolution() -> None:
    def slopes(x: dt.Tensor, w: dt.Tensor) -> dt.Tensor:
        return dt.func.grad(lambda w: F.conv2d(x, w).sum())(w)

    graph = graph_of(slopes, [dt.ones((2, 3, 5, 5)), dt.ones((4, 3, 3, 3))])
    (weight,) = [n for n in graph.nodes if n.op == "convolution_weight"]
    assert weight.flops == 2 * (2 * 4 * 9) * (3 * 9)


def test_attention_counts_projections_products_and_softmax() -> None:
    heads, n, e = 2, 5, 8
    layer = nn.MultiheadAttention(e, heads, batch_first=True)
    x = dt.zeros((1, n, e))
    projections = 4 * (2 * n * e * e + n * e)
    products = 2 * (2 * n * n * e)
    softmax = 5 * heads * n * n  # max, subtract, exp, sum, divide
    mean_and_scale = heads * n * n + n * e
    table = nn.summary(layer, x, x, x)
    assert table.flops == projections + products + softmax + mean_and_scale
    assert table.rows[0].shapes == [(1, n, e), (1, n, n)]


def test_lstm_counts_each_step() -> None:
    steps, batch, i, h = 3, 2, 4, 5
    table = nn.summary(nn.LSTM(i, h), (steps, batch, i))
    products = 2 * steps * batch * 4 * h * (i + h)
    biases_and_sums = 3 * steps * batch * 4 * h
    gates = steps * batch * h * (3 + 2 + 3 + 1)  # sigmoid, tanh, multiply, add
    assert table.flops == products + biases_and_sums + gates
    assert table.rows[0].shapes == [(steps, batch, h), (1, batch, h), (1, batch, h)]


class Net(nn.Module):
    """A network with a shared layer, a frozen one, a list, an unused layer and functions."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 4, bias=False)
        self.b = self.a
        self.rest = nn.ModuleList([nn.Linear(4, 2, bias=False), nn.ReLU()])
        self.rest[0].weight.requires_grad_(False)

    def forward(self, x: dt.Tensor) -> dt.Tensor:
        y = self.rest[0](self.b(self.a(x)))
        return dt.tanh(y) @ dt.ones((2, 3))


def test_shared_frozen_and_uncalled_modules_are_counted_once() -> None:
    net = Net()
    table = nn.summary(net, (10, 4))
    rows = {row.name: row for row in table.rows}
    assert [*rows] == ["", "a", "b", "rest", "rest.0", "rest.1"]
    assert rows["a"].calls == 2 and rows["b"].is_shared and not rows["rest.1"].calls
    assert flops_by_name(table)["a"] == 2 * (2 * 10 * 4 * 4)
    assert table.flops == 2 * 320 + 160 + 20 + 2 * 10 * 2 * 3
    assert (table.parameters, table.trainable) == (24, 16)
    lines = repr(table).splitlines()
    assert "partly" in lines[1] and "a: Linear x 2" in lines[2] and "not called" in lines[6]
    assert "24 parameters, 8 of them frozen" in repr(table)
    assert table.rows[0].activation_bytes == (2 * 40 + 20) * 4


def test_depth_hides_rows_and_changes_no_number() -> None:
    net = nn.Sequential(nn.Sequential(nn.Linear(2, 2)), nn.ReLU())
    shallow, deep = (nn.summary(net, (1, 2), depth=d) for d in (1, 2))
    assert len(repr(deep).splitlines()) == len(repr(shallow).splitlines()) + 1
    assert shallow.rows == deep.rows


def test_module_is_not_changed_and_nothing_is_computed() -> None:
    net = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5))
    net[1].eval()
    state = {name: x.tolist() for name, x in net.state_dict().items()}
    before = dt.random.get_state()
    table = nn.summary(net, (1 << 40, 3))  # 12 TiB, if it were computed
    assert {name: x.tolist() for name, x in net.state_dict().items()} == state
    assert dt.random.get_state() == before
    assert [m.training for m in net.modules()] == [True, True, False]
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())
    assert table.rows[0].memory_bytes == 4 * 4 * 3 + 8


def test_hooks_are_removed_if_forward_reads_values() -> None:
    class Reads(nn.Module):
        def forward(self, x: dt.Tensor) -> dt.Tensor:
            return x if float(x.sum()) > 0 else -x

    net = Reads()
    with pytest.raises(dt.CaptureError, match=r"^summary: "):
        nn.summary(net, (3,))
    assert not net._forward_hooks and not net._forward_pre_hooks


def test_keyword_arguments_and_dtype_of_shapes_reach_the_module() -> None:
    class Add(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(dt.ones(3, dtype=dt.float64))

        def forward(self, x: dt.Tensor, *, y: dt.Tensor, scale: int) -> dict[str, dt.Tensor]:
            return {"out": (x + y) * self.w * scale}

    table = nn.summary(Add(), (2, 3), y=dt.ones((2, 3), dtype=dt.float64), scale=2)
    assert table.flops == 18 and table.rows[0].shapes == [(2, 3)]
    assert table.input_bytes == table.rows[0].activation_bytes * 2 == 96


def test_integers_moves_and_composites_count_nothing() -> None:
    @composite
    def relu(x: dt.Tensor) -> dt.Tensor:
        return dt.relu(x)

    def f(x: dt.Tensor, n: dt.Tensor) -> dt.Tensor:
        return relu(dt.where(n + n > 0, x.T.copy(), 0.0))[n[:, 0]]

    graph = graph_of(f, [dt.ones((3, 3)), dt.zeros((3, 3), dtype=dt.int64)])
    assert {n.op: n.flops for n in graph.nodes if n.flops} == {"relu": 9}
    assert [n.kind for n in graph.nodes if n.op == "relu"] == ["map", "composite"]
    assert sum(n.flops for n in graph.nodes) == 9


def test_running_sums_and_reductions_count_what_they_read() -> None:
    graph = graph_of(lambda x: dt.cumulative_sum(x, axis=1).sum(axis=0), [dt.ones((3, 4))])
    assert [n.flops for n in graph.nodes if n.flops] == [12, 12]


def test_summary_of_a_function_is_refused() -> None:
    with pytest.raises(dt.ArgumentTypeError, match=r"summary: module must be an nn\.Module"):
        nn.summary(dt.tanh, (3,))  # type: ignore[arg-type]
