"""Recurrent layers and cells against PyTorch, packed sequences, and errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.engine.events import counters
from dovetail.nn.functional import recurrent
from dovetail.nn.utils import rnn as packing
from installed import INSTALLED

KINDS = ["RNN", "LSTM", "GRU"]
RNG = np.random.default_rng


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def drawn(*shape: int, seed: int = 0) -> Any:
    return RNG(seed).normal(size=shape)


def assert_near(found: Any, wanted: Any, atol: float = 1e-12) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted.detach().numpy(), atol=atol, rtol=1e-9)


def copied(ours: Any, theirs: Any) -> None:
    """Copy the weights of one layer to the other."""
    state = theirs.state_dict()
    assert [*ours.state_dict()] == [*state]
    ours.load_state_dict({k: dt.asarray(v.numpy()) for k, v in state.items()})


def pair(torch: Any, kind: str, *sizes: int, **options: Any) -> tuple[Any, Any]:
    theirs = getattr(torch.nn, kind)(*sizes, dtype=torch.float64, **options)
    ours = getattr(dt.nn, kind)(*sizes, dtype=dt.float64, **options)
    assert repr(ours) == repr(theirs)
    copied(ours, theirs)
    return ours, theirs


def flat(made: Any) -> list[Any]:
    out, state = made
    return [out, *(state if isinstance(state, tuple) else (state,))]


def compare(torch: Any, ours: Any, theirs: Any, x: Any, states: list[Any]) -> None:
    """Compare values, and the gradients of all parameters, the input and the states."""
    mine, its = dt.asarray(x).requires_grad_(), torch.tensor(x, requires_grad=True)
    h = [dt.asarray(s).requires_grad_() for s in states]
    k = [torch.tensor(s, requires_grad=True) for s in states]
    found = flat(ours(mine, *([tuple(h) if len(h) == 2 else h[0]] if h else [])))
    wanted = flat(theirs(its, *([tuple(k) if len(k) == 2 else k[0]] if k else [])))
    weights = [drawn(*w.shape, seed=i) for i, w in enumerate(wanted)]
    for a, b in zip(found, wanted, strict=True):
        assert_near(a.detach(), b)
    got = dt.grad(found, [mine, *h, *ours.parameters()], [dt.asarray(w) for w in weights])
    want = torch.autograd.grad(
        wanted, [its, *k, *theirs.parameters()], [torch.tensor(w) for w in weights]
    )
    for a, b in zip(got, want, strict=True):
        assert_near(a, b)


OPTIONS = [
    {},
    {"bias": False},
    {"num_layers": 2, "bidirectional": True},
    {"batch_first": True, "bidirectional": True, "bias": False},
    {"num_layers": 3, "batch_first": True},
]


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_values_and_gradients_equal_pytorch(
    torch: Any, kind: str, options: dict[str, Any], given: bool
) -> None:
    for more in [{}, {"nonlinearity": "relu"} if kind == "RNN" else {"proj_size": 2}]:
        if kind == "GRU" and more:
            continue
        options = {**options, **more}
        ours, theirs = pair(torch, kind, 4, 3, **options)
        n = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
        sizes = [options.get("proj_size", 3), *([3] if kind == "LSTM" else [])]
        states = [drawn(n, 2, size, seed=7) for size in sizes] if given else []
        shape = (2, 5, 4) if options.get("batch_first") else (5, 2, 4)
        compare(torch, ours, theirs, drawn(*shape), states)


@pytest.mark.parametrize("kind", KINDS)
def test_unbatched_input_equals_pytorch(torch: Any, kind: str) -> None:
    ours, theirs = pair(torch, kind, 4, 3, bidirectional=True, batch_first=True)
    compare(torch, ours, theirs, drawn(5, 4), [])
    compare(torch, ours, theirs, drawn(5, 4), [drawn(2, 3)] * (2 if kind == "LSTM" else 1))


@pytest.mark.parametrize("kind", ["RNNCell", "LSTMCell", "GRUCell"])
@pytest.mark.parametrize("bias", [True, False])
def test_cells_equal_pytorch(torch: Any, kind: str, bias: bool) -> None:
    options = [{}, {"nonlinearity": "relu"}] if kind == "RNNCell" else [{}]
    for more, batch in itertools.product(options, [(2,), ()]):
        ours, theirs = pair(torch, kind, 4, 3, bias=bias, **more)
        x, h = drawn(*batch, 4), drawn(*batch, 3)
        for given in (False, True):
            if kind == "LSTMCell":
                state = (h, h + 1)
                found = ours(dt.asarray(x), *([tuple(map(dt.asarray, state))] if given else []))
                wanted = theirs(
                    torch.tensor(x), *([tuple(map(torch.tensor, state))] if given else [])
                )
            else:
                found = [ours(dt.asarray(x), *([dt.asarray(h)] if given else []))]
                wanted = [theirs(torch.tensor(x), *([torch.tensor(h)] if given else []))]
            for a, b in zip(found, wanted, strict=True):
                assert_near(a.detach(), b)
            total, their_total = sum(a.sum() for a in found), sum(b.sum() for b in wanted)
            got = dt.grad(total, [*ours.parameters()], allow_unused=True)
            want = torch.autograd.grad(their_total, [*theirs.parameters()], allow_unused=True)
            for a, b in zip(got, want, strict=True):
                assert_near(a, torch.zeros(a.shape) if b is None else b)


@pytest.mark.parametrize(
    ("kind", "options"), [*((kind, {}) for kind in KINDS), ("LSTM", {"proj_size": 1})]
)
@pytest.mark.parametrize("is_sorted", [True, False])
def test_packed_sequences_equal_pytorch(
    torch: Any, kind: str, options: dict[str, Any], is_sorted: bool
) -> None:
    lengths = [4, 4, 2, 1] if is_sorted else [2, 4, 1, 4]
    x = drawn(4, 4, 3)
    ours, theirs = pair(torch, kind, 3, 2, num_layers=2, bidirectional=True, **options)
    mine, its = dt.asarray(x).requires_grad_(), torch.tensor(x, requires_grad=True)
    packed = packing.pack_padded_sequence(mine, lengths, enforce_sorted=is_sorted)
    there = torch.nn.utils.rnn.pack_padded_sequence(its, lengths, enforce_sorted=is_sorted)
    assert packed.batch_sizes == tuple(there.batch_sizes.tolist())
    found, wanted = flat(ours(packed)), flat(theirs(there))
    found[0], n = packing.pad_packed_sequence(found[0], total_length=5, padding_value=-1.0)
    wanted[0], m = torch.nn.utils.rnn.pad_packed_sequence(
        wanted[0], total_length=5, padding_value=-1.0
    )
    assert n.tolist() == m.tolist() == lengths
    for a, b in zip(found, wanted, strict=True):
        assert_near(a.detach(), b)
    got = dt.grad(sum((a * a).sum() for a in found), [mine, *ours.parameters()])
    want = torch.autograd.grad(sum((b * b).sum() for b in wanted), [its, *theirs.parameters()])
    for a, b in zip(got, want, strict=True):
        assert_near(a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_of_other_lengths_need_no_new_plans(kind: str) -> None:
    net = getattr(dt.nn, kind)(3, 5, num_layers=2)

    def train(lengths: list[int]) -> None:
        x = dt.ones((max(lengths), len(lengths), 3)).requires_grad_()
        packed = packing.pack_padded_sequence(x, lengths, enforce_sorted=False)
        padded = packing.pad_packed_sequence(net(packed)[0])[0]
        (padded * padded).sum().backward()
        dt.evaluate(*[p.grad for p in net.parameters()])
        net.zero_grad()

    rng = RNG(0)
    batches = [[15, *rng.integers(3, 15, 9).tolist()] for _ in range(16)]
    for lengths in batches[:12]:
        train(lengths)
    plans = counters.plans
    for lengths in batches[12:]:
        train(lengths)
    assert counters.plans == plans


@pytest.mark.parametrize("batch_first", [True, False])
def test_packing_and_padding_put_rows_and_gradients_in_their_places(batch_first: bool) -> None:
    steps_first = dt.asarray([[0.0, 1, 5], [0, 2, 6], [0, 3, 0]])
    x = (steps_first.T if batch_first else steps_first).copy().requires_grad_()
    lengths = [1, 3, 2]
    packed = packing.pack_padded_sequence(x, lengths, batch_first, enforce_sorted=False)
    assert packed.data.tolist() == [1, 5, 0, 2, 6, 3]
    padded, n = packing.pad_packed_sequence(packed, batch_first, -1.0, total_length=4)
    assert n.tolist() == lengths
    rows = padded.T if batch_first else padded
    assert rows.tolist() == [[0, 1, 5], [-1, 2, 6], [-1, 3, -1], [-1, -1, -1]]
    (padded * 2.0).sum().backward()
    slope = x.grad.T if batch_first else x.grad  # type: ignore[union-attr]  # backward set it
    assert slope.tolist() == [[2, 2, 2], [0, 2, 2], [0, 2, 0]]


def count_launches(lengths: list[int]) -> int:
    """Return the number of launches that pack and pad sequences of these lengths."""

    @dt.jit
    def repack(x: dt.Tensor) -> dt.Tensor:
        return packing.pad_packed_sequence(packing.pack_padded_sequence(x, lengths))[0]

    repack(dt.ones((max(lengths), len(lengths), 2)))
    (_, program), *_ = repack.programs
    return program.launches


def test_packing_launches_no_kernel_per_step() -> None:
    assert count_launches([9, 8, 7, 5, 3, 2, 1]) <= count_launches([3, 1])


@pytest.mark.parametrize("batch_first", [True, False])
def test_padding_and_packing_equal_pytorch(torch: Any, batch_first: bool) -> None:
    arrays = [drawn(n, 2, seed=n) for n in (2, 4, 1)]
    ours, theirs = [dt.asarray(a) for a in arrays], [torch.tensor(a) for a in arrays]
    rnn = torch.nn.utils.rnn
    for side in ("left", "right"):
        assert_near(
            packing.pad_sequence(ours, batch_first, 0.5, side),
            rnn.pad_sequence(theirs, batch_first, 0.5, side),
        )
    found = packing.pack_sequence(ours, enforce_sorted=False)
    wanted = rnn.pack_sequence(theirs, enforce_sorted=False)
    assert_near(found.data, wanted.data)
    assert found.sorted_indices is not None
    for a, b in zip(packing.unpack_sequence(found), ours, strict=True):
        assert (a == b).all().item()
    padded, lengths = packing.pad_packed_sequence(found, batch_first)
    assert_near(padded, rnn.pad_packed_sequence(wanted, batch_first)[0])
    for a, b in zip(packing.unpad_sequence(padded, lengths, batch_first), ours, strict=True):
        assert (a == b).all().item()


# --- properties
# -------------------------------------------------------------------------------------


def network(kind: str, **options: Any) -> Any:
    dt.random.manual_seed(1)
    return getattr(dt.nn, kind)(3, 2, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_captured_layer_is_the_same(device: dt.Device, kind: str) -> None:
    model, x = network(kind, num_layers=2), dt.asarray(drawn(4, 2, 3).astype("f"))

    def slopes(x: dt.Tensor) -> Any:
        return dt.grad(flat(model(x))[0].sum(), [*model.parameters()])

    f, wanted = dt.jit(slopes), slopes(x)
    for _ in range(2):
        for a, b in zip(f(x), wanted, strict=True):
            assert (a == b).all().item()


@pytest.mark.parametrize("kind", KINDS)
def test_mapped_layer_is_the_same(kind: str) -> None:
    model, x = network(kind), dt.asarray(drawn(3, 4, 2, 3).astype("f"))
    found = dt.vmap(lambda x: flat(model(x))[0])(x)
    for a, b in zip(found, x, strict=True):
        assert np.allclose(np.asarray(a.detach()), np.asarray(flat(model(b))[0].detach()))


@pytest.mark.parametrize("mode", [*recurrent.GATES])
def test_second_derivatives_equal_tensor_operations(mode: str) -> None:
    """Compare with the same steps in tensor operations."""
    n = recurrent.GATES[mode] * 2
    shapes = [(3, 3), (2, 2), *([(2, 2)] if mode == "LSTM" else []), (n, 3), (n, 2), (n,), (n,)]

    def twice(layer: Any) -> Any:
        x, *rest = [dt.asarray(drawn(*s, seed=i)).requires_grad_() for i, s in enumerate(shapes)]
        weights, options = recurrent.Weights(*rest[-4:]), recurrent.LayerOptions(mode, (2, 1))
        out, last = layer(x, tuple(rest[:-4]), weights, options)
        total = sum((t * t).sum() for t in (out, *last))
        first = dt.grad(total, [x, *rest], create_graph=True)
        return dt.grad(sum((t * t).sum() for t in first), [x, *rest])

    for a, b in zip(twice(recurrent.run_layer), twice(recurrent._run_with_tensor_ops), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_bits_are_the_same_on_every_device(kind: str) -> None:
    names = sorted({"cpu", "opencl"} & INSTALLED)
    model, x = network(kind, device="reference"), drawn(4, 2, 3).astype("f")
    state = {k: v.numpy() for k, v in model.state_dict().items()}

    def made(device: str) -> list[bytes]:
        other = network(kind, device=device)
        other.load_state_dict({k: dt.asarray(v, device=device) for k, v in state.items()})
        out = flat(other(dt.asarray(x, device=device)))[0]
        found = [out.detach(), *dt.grad(out.sum(), [*other.parameters()])]
        return [np.asarray(t).tobytes() for t in found]

    with dt.vendor_products(False):
        wanted = made("reference")
        for name in names:
            assert made(name) == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_half_layers_are_close_to_float32(kind: str) -> None:
    exact, x = network(kind), drawn(4, 2, 3).astype("f")
    wanted = np.asarray(flat(exact(dt.asarray(x)))[0].detach())
    for dtype, eps in ((dt.float16, 4e-3), (dt.bfloat16, 4e-2)):
        model = network(kind, dtype=dtype)
        model.load_state_dict({k: v.astype(dtype) for k, v in exact.state_dict().items()})
        out = flat(model(dt.asarray(x).astype(dtype)))[0]
        assert out.dtype is dtype
        assert np.abs(np.asarray(out.detach().astype(dt.float32)) - wanted).max() < eps
        assert all(g.dtype is dtype for g in dt.grad(out.sum(), [*model.parameters()]))


def test_scan_of_a_cell_equals_the_layer() -> None:
    model = network("LSTM")
    cell = network("LSTMCell")
    cell.load_state_dict({k.removesuffix("_l0"): v for k, v in model.state_dict().items()})
    x = dt.asarray(drawn(4, 2, 3).astype("f"))
    zeros = dt.zeros((2, 2))

    def step(c: Any, x: dt.Tensor) -> Any:
        c = cell(x, c)
        return c, c[0]

    (_, c), out = dt.scan(step, (zeros, zeros), x)
    wanted, (_, last) = model(x)
    assert np.allclose(np.asarray(out.detach()), np.asarray(wanted.detach()), atol=1e-6)
    assert np.allclose(np.asarray(c.detach()), np.asarray(last[0].detach()), atol=1e-6)


def test_dropout_between_layers_applies_only_in_training() -> None:
    model, x = network("GRU", num_layers=2, dropout=0.5), dt.asarray(drawn(4, 2, 3).astype("f"))
    assert (flat(model(x))[0] != flat(model(x))[0]).any().item()
    model.eval()
    assert (flat(model(x))[0] == flat(model(x))[0]).all().item()


# --- bad input ------------------------------------------------------------------------------------

X = dt.zeros((5, 2, 3), device="reference")
H = dt.zeros((1, 2, 2), device="reference")


def lstm(**options: Any) -> Any:
    return dt.nn.LSTM(3, 2, device="reference", **options)


def gru(**options: Any) -> Any:
    return dt.nn.GRU(3, 2, device="reference", **options)


BAD: list[tuple[Callable[[], Any], Any, str]] = [
    (lambda: lstm()(X[..., :2]), dt.ShapeError, "input_size=3 features, got 2"),
    (lambda: lstm()(X[None]), dt.ShapeError, r"LSTM: .* \(steps, batch, features\)"),
    (lambda: lstm()(X[:0]), dt.ShapeError, "at least one step"),
    (lambda: lstm()(X.astype(dt.float64)), dt.DTypeError, "use x.astype.* or module.to"),
    (lambda: lstm()([1.0]), dt.ArgumentTypeError, "LSTM: input must be a tensor, got list"),
    (lambda: lstm()(X, H), dt.ArgumentTypeError, r"hx must be a pair \(h, c\), got Tensor"),
    (lambda: gru()(X, (H, H)), dt.ArgumentTypeError, "GRU: hx must be one tensor, got tuple"),
    (lambda: lstm()(X, (H, H[:, :1])), dt.ShapeError, r"must have shape \(1, 2, 2\)"),
    (lambda: gru()(X[:, 0], H), dt.ShapeError, "must have 2 dimensions for this input"),
    (lambda: lstm(dropout=2), dt.ArgumentError, "between 0 and 1, got 2"),
    (lambda: lstm(proj_size=2), dt.ArgumentError, "less than hidden_size 2, got 2"),
    (lambda: lstm(num_layers=0), dt.ArgumentError, "num_layers must be between 1 and 65536, got 0"),
    (lambda: dt.nn.LSTM(3.0, 2), dt.ArgumentTypeError, "input_size must be an int"),  # type: ignore[arg-type]
    (lambda: dt.nn.RNN(3, 2, nonlinearity="x"), dt.ArgumentError, "'tanh' or 'relu', got 'x'"),
    (lambda: dt.nn.RNNBase("x", 3, 2), dt.ArgumentError, "mode must be one of LSTM, GRU"),
    (
        lambda: dt.nn.LSTMCell(3, 2, device="reference")(X),
        dt.ShapeError, r"LSTMCell: input must have shape \(batch, features\)",
    ),
    (
        lambda: dt.nn.GRUCell(3, 2, device="reference")(X[0], H[0, :1]),
        dt.ShapeError, r"GRUCell: h must have shape \(2, 2\) .*, got shape \(1, 2\)",
    ),
    (
        lambda: dt.nn.functional.gru_cell(X[0, :, :2], H[0], X[0, 0, :], X[0]),
        dt.ShapeError, r"gru_cell: weights must have shapes \(3 \* n, inputs\) .*, got \(3,\)",
    ),
    (lambda: packing.pack_padded_sequence(X, [1, 5]), dt.ArgumentError, "descending"),
    (lambda: packing.pack_padded_sequence(X, [6, 5]), dt.ArgumentError, "from 1 to 5"),
    (lambda: packing.pack_padded_sequence(X, [5]), dt.ShapeError, "2 sequences, got 1"),
    (lambda: packing.pad_sequence([]), dt.ArgumentError, "at least one sequence"),
    (lambda: packing.pad_sequence([X, X[0]]), dt.ShapeError, "equal except along the first axis"),
    (lambda: packing.pad_sequence([X], padding_side="up"), dt.ArgumentError, "'left' or 'right'"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), BAD)
def test_wrong_arguments_are_named(call: Callable[[], Any], error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("device")
def test_item_of_batch_equals_item_alone(kind: str) -> None:
    """The outputs, the last state and the gradient of the input, bit by bit."""
    layer = getattr(dt.nn, kind)(7, 20, batch_first=True)
    x = dt.asarray(drawn(5, 6, 7), dtype=dt.float32).requires_grad_()
    y, state = layer(x)
    g = dt.asarray(drawn(5, 6, 20), dtype=dt.float32)
    y.backward(g)
    for item in (0, 4):
        alone = dt.asarray(x.detach().numpy()[item : item + 1]).requires_grad_()
        one, one_state = layer(alone)
        one.backward(g[item : item + 1])
        assert one.detach().numpy().tobytes() == y[item].detach().numpy().tobytes()
        assert alone.grad.numpy().tobytes() == x.grad[item].numpy().tobytes()
        h, one_h = (s[0] if kind == "LSTM" else s for s in (state, one_state))
        assert one_h.detach().numpy().tobytes() == h[:, item].detach().numpy().tobytes()


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_layer_without_gradients_keeps_the_gates_of_one_step(kind: str) -> None:
    steps, batch, n = 12, 8, 16
    layer = getattr(dt.nn, kind)(n, n, device="reference")
    x = dt.ones((steps, batch, n), device="reference")

    def measure_peak() -> int:
        dt.memory.reset_peak("reference")
        dt.evaluate(layer(x)[0])
        return dt.memory.stats("reference").peak_live_bytes

    recorded = measure_peak()
    with dt.no_grad():
        assert recorded - measure_peak() >= (steps - 1) * batch * 4 * n * 4
