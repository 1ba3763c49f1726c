"""Wrong calls of networks raise an error of dovetail or return a right result.

The calls are made in `bad_networks.py`. Their findings are below them, by kind.
"""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, call-arg, call-overload, attr-defined, operator"
from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import bad_arguments as bad
import bad_networks
import dovetail as dt
import numpy as np
import pytest

pytest.importorskip("dovetail_cpu_llvm", reason="the calls are made on the CPU")
F, nn, optim = dt.nn.functional, dt.nn, dt.optim


def test_wrong_calls_of_networks_raise_errors_of_dovetail(thinned: Callable[..., Any]) -> None:
    assert bad_networks.trouble(0, len(thinned(range(1200), 4))) == []


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(1, 6))
def test_12500_wrong_calls_of_networks_raise_errors_of_dovetail(seed: int) -> None:
    program = bad_networks.__file__
    assert bad.in_another_process(seed, 2500, 1700, program=program) == []


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_right_calls_raise_no_error(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for line in bad_networks.CALLS.read_text().splitlines():
        bad_networks.use(eval(f"dt.{line}", dict(bad_networks.SPACE)))


def test_every_public_name_of_networks_has_a_right_call() -> None:
    called = {call.text.split("(")[0] for call in bad_networks.right()}
    transforms = {
        n.replace("transforms.", "") for n in bad_networks.public() if ".transforms." in n
    }
    assert transforms - called <= {"distributions.identity_transform"}
    assert {n for n in bad_networks.public() - called if ".transforms." not in n} == {
        "distributions.identity_transform",
        "nn.from_torch",  # tests/nn/test_from_torch.py: its argument needs PyTorch
    }


def test_same_seed_gives_the_same_wrong_calls() -> None:
    def lines(seed: int) -> list[str]:
        return [line for line, _ in bad_networks.calls(seed, 50)]

    assert lines(5) == lines(5) != lines(6)


# --- kinds ---------------------------------------------------------------------------------------

X = dt.ones((2, 3))
KINDS: list[tuple[Callable[[], Any], str]] = [
    (lambda: F.softmax(X, dim="a"), "softmax: dim must be an int, got 'a'"),
    (lambda: F.celu(X, alpha=[1]), r"celu: alpha must be a number, got \[1\]"),
    (lambda: F.batch_norm(X, 1, 2), "batch_norm: running_mean must be a Tensor or None, got 1"),
    (lambda: F.layer_norm(X, 3, bias="a"), "layer_norm: bias must be a Tensor or None, got 'a'"),
    (lambda: nn.GLU(dim="a")(X), "glu: dim must be an int, got 'a'"),
    (lambda: nn.Softmax2d()(3), "Softmax2d: input must be a Tensor, got 3"),
    (lambda: nn.GRU(3, 4)(dt.ones((2, 5, 3)), 1.5), "GRU: hx must be a tensor or a pair of them"),
    (lambda: nn.ModuleList().extend(3), "ModuleList.extend: modules must be an iterable of"),
    (lambda: nn.ModuleDict({"a": 3}), "add_module: .a. must be an nn.Module"),
    (lambda: nn.ModuleDict().update("ab"), "ModuleDict.update: modules must be a dict or pairs"),
    (lambda: nn.Linear(3, 2).get_parameter(3), "Linear.get_parameter: target must be a str, got 3"),
    (lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2), 1, 3), "norm must be a"),
    (lambda: nn.init.uniform_(dt.ones(3), b="a"), "uniform_: b must be a number, got 'a'"),
    (lambda: nn.init.eye_(3), "eye_: tensor must be a Tensor, got 3"),
    (lambda: nn.utils.clip_grad_norm_(1, 2.0), "clip_grad_norm_: parameters must be .*, got 1"),
    (lambda: nn.utils.parameters_to_vector("ab"), "parameters_to_vector: parameters must be"),
    (lambda: optim.SGD([X.copy().requires_grad_()]).step(3), "optim.SGD.step: closure must be"),
    (lambda: optim.ASGD([X.copy()], lambd=(1, 2)), r"optim.ASGD: lambd must be .*got \(1, 2\)"),
    (lambda: optim.Adam([X.copy()], maximize=[1, 2]), "optim.Adam: maximize must be True or False"),
    (lambda: optim.Rprop([X.copy()], step_sizes=0.0), "optim.Rprop: step_sizes must be two"),
    (lambda: _schedule("StepLR", 2, gamma="a"), "StepLR: gamma must be a number, got 'a'"),
    (lambda: _schedule("LambdaLR", "a"), "LambdaLR: lr_lambda must be a function or"),
    (lambda: dt.distributions.Chi2(dt.float32), "Chi2: df must be a Tensor or a number"),
    (lambda: dt.distributions.Normal(0.0, 1.0).log_prob("a"), "Normal.log_prob: value must be"),
    (lambda: dt.distributions.Normal(0.0, 1.0).sample(...), "Normal.sample: a shape must be an"),
    (lambda: dt.distributions.constraints.positive.check("a"), "GreaterThan.check: value must be"),
    (lambda: dt.distributions.ComposeTransform([3]), "ComposeTransform: parts must be a list or"),
    (lambda: dt.data.default_collate(3), "default_collate: batch must be a list or tuple"),
    (lambda: dt.data.random_split(3, [1]), "random_split: dataset must be a Sized, got 3"),
    (lambda: dt.data.StackDataset(3), "data.StackDataset: a data set must be a Sized, got 3"),
    (lambda: dt.checkpoint.save(3), "save: path must be"),
    (lambda: dt.checkpoint.latest(".", 3), "latest: pattern must be a str, got 3"),
    (lambda: dt.autograd.set_gradient("add"), "set_gradient: op must be an Op, got 'add'"),
]  # fmt: skip


def _schedule(name: str, *args: Any, **options: Any) -> Any:
    optimizer = optim.SGD([dt.ones(3).requires_grad_()], lr=0.1)
    return getattr(optim.lr_scheduler, name)(optimizer, *args, **options)


def test_argument_of_a_wrong_kind_is_named_with_its_value() -> None:
    for call, message in KINDS:
        with pytest.raises(dt.ArgumentError, match=message):
            call()


RANGES: list[tuple[Callable[[], Any], str]] = [
    (lambda: F.leaky_relu(X, 10**400), "leaky_relu: .* an int of 1329 bits does not fit"),
    (lambda: F.softplus(X, beta=0), "softplus: beta must not be 0"),
    (lambda: nn.TransformerEncoder(nn.ReLU(), 2**70), "Encoder: num_layers must be"),
    (lambda: nn.init.sparse_(dt.ones((2, 2)), 1e308), "sparse_: sparsity must be a probability"),
    (lambda: F.interpolate(dt.ones((1, 1, 2)), scale_factor=1e308), "the output is too large"),
    (lambda: optim.AdamW([dt.ones(2)], weight_decay=10**400), "AdamW: weight_decay must .*bits"),
    (lambda: dt.distributions.HalfNormal(10**400), "HalfNormal: .*scale is out of range"),
    (lambda: dt.data.default_collate([]), "default_collate: batch must have at least one item"),
    (lambda: dt.data.default_collate([2**70]), "default_collate: an int must fit int64"),
    (lambda: dt.data.Subset([1, 2], [0])[3], "data.Subset: index 3 is out of range for 1"),
    (lambda: nn.Unflatten(10**5000, (2, 2))(X), "Unflatten: axis an int of .* bits"),
    (lambda: F.lp_pool1d(X, 0.0, 2), "lp_pool1d: norm_type must not be 0"),
    (lambda: nn.LPPool2d(0, 2)(dt.ones((1, 2, 2))), "lp_pool2d: norm_type must not be 0"),
    (lambda: F.nll_loss(X, dt.asarray([0, 1]), ignore_index=[1]), "nll_loss: ignore_index must"),
    (
        lambda: F.cross_entropy(X, dt.asarray([0, 1]), ignore_index=1.5),
        "cross_entropy: ignore_index must be an int, got 1.5",
    ),
    (lambda: dt.onnx.load("\0"), "onnx.load: model must not contain a null character"),
]  # fmt: skip


def test_argument_out_of_range_is_named() -> None:
    for call, message in RANGES:
        with pytest.raises(dt.DovetailError, match=message):
            call()


def _gradients() -> list[dt.Tensor]:
    x = dt.ones(3).requires_grad_()
    x.grad = dt.asarray([float("inf"), 1.0, 1.0])
    return [x]


ONE_NAME: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: nn.utils.clip_grads_with_norm_(_gradients(), -1.0, dt.asarray(1.0)),
        "clip_grads_with_norm_: max_norm must not be negative, got -1.0",
    ),
    (lambda: nn.utils.clip_grad_norm_(_gradients(), -1.0), "clip_grad_norm_: max_norm must not be"),
    (
        lambda: nn.utils.clip_grad_norm_(_gradients(), 1.0, "a"),
        "clip_grad_norm_: norm_type must be",
    ),
    (
        lambda: nn.utils.clip_grad_norm_(_gradients(), 1.0, error_if_nonfinite=True),
        "clip_grad_norm_: the norm of order 2",
    ),
    (lambda: nn.init.zeros_(3), "zeros_: tensor must be a Tensor, got 3"),
    (lambda: nn.init.xavier_uniform_(X, gain=X), "xavier_uniform_: gain must be a number"),
    (lambda: nn.init.xavier_normal_(X, gain="a"), "xavier_normal_: gain must be a number"),
    (lambda: nn.init.kaiming_normal_(X, "a"), "kaiming_normal_: a must be a number, got 'a'"),
    (
        lambda: nn.init.kaiming_uniform_(X, nonlinearity="a"),
        "kaiming_uniform_: nonlinearity must be one of",
    ),
    (lambda: F.upsample(1.5), "upsample: expected a tensor, got float"),
    (lambda: F.softmin(1), "softmin: expected a tensor, got int"),
    (lambda: F.triplet_margin_loss(X, X, X, p="a"), "triplet_margin_loss: p must be a number"),
    (lambda: nn.utils.rnn.unpack_sequence(3), "unpack_sequence: packed_sequences must be a Packed"),
    (lambda: dt.distributions.HalfCauchy("a"), "HalfCauchy: scale must be a Tensor or a number"),
    (lambda: dt.distributions.HalfNormal(1.0).sample_n("a"), "HalfNormal.sample_n: a shape must"),
]


def test_error_names_the_called_function_only() -> None:
    for call, message in ONE_NAME:
        with pytest.raises(dt.DovetailError) as caught:
            call()
        assert str(caught.value).startswith(message), str(caught.value)


def test_error_of_a_parameter_of_an_inner_function_names_both() -> None:
    transform = dt.distributions.CumulativeDistributionTransform(dt.distributions.Normal(0.0, 1.0))
    with pytest.raises(dt.ArgumentError, match=r"^CumulativeDistributionTransform: Normal\.cdf: "):
        transform("a")


INDICES = dt.asarray([[1, 2, 3]])
INTEGERS: dict[str, tuple[Callable[[Any], Any], int, str]] = {
    "embedding": (lambda n: F.embedding(INDICES, dt.ones((4, 2)), n), 1, "padding_idx"),
    "embedding_bag": (lambda n: F.embedding_bag(INDICES, dt.ones((4, 2)), padding_idx=n), 1, "pa"),
    "one_hot": (lambda n: F.one_hot(INDICES, n), 4, "num_classes"),
    "multi_margin_loss": (lambda n: F.multi_margin_loss(X, dt.asarray([0, 1]), n), 2, "p"),
    "group_norm": (lambda n: F.group_norm(dt.ones((2, 4)), n), 2, "num_groups"),
    "layer_norm": (lambda n: F.layer_norm(X, n), 3, "normalized_shape"),
    "multi_head_attention_forward": (lambda n: _attend(2, n), 2, "num_heads"),
    "multi_head": (lambda n: _attend(n, 1), 2, "embed_dim_to_check"),
    "dirac_": (lambda n: nn.init.dirac_(dt.ones((4, 2, 3)), n), 2, "groups"),
    "pad_packed_sequence": (lambda n: _pad(n), 5, "total_length"),
    "GRU": (lambda n: nn.GRU(2, n), 3, "hidden_size"),
    "GRUCell": (lambda n: nn.GRUCell(n, 2), 3, "input_size"),
    "Unflatten": (lambda n: nn.Unflatten(n, (3, 1))(X), 1, "dim"),
    "ZeroPad2d": (lambda n: nn.ZeroPad2d(n)(dt.ones((1, 1, 2, 2))), 1, "padding"),
    "ModuleList.insert": (lambda n: nn.ModuleList([nn.ReLU()]).insert(n, nn.Tanh()), 0, "index"),
    "StepLR": (lambda n: _schedule("StepLR", n), 2, "step_size"),
    "CosineAnnealingWarmRestarts": (
        lambda n: _schedule("CosineAnnealingWarmRestarts", 2, n), 2, "T_mult",
    ),
    "OneCycleLR": (lambda n: _schedule("OneCycleLR", 0.1, n), 2, "total_steps"),
    "Multinomial": (lambda n: dt.distributions.Multinomial(n, dt.ones(2)), 3, "total_count"),
}  # fmt: skip


def _attend(size: int, heads: int) -> Any:
    x, w = dt.ones((3, 1, 2)), dt.ones((6, 2))
    return F.multi_head_attention_forward(
        x, x, x, size, heads, w, None, None, None, False, 0.0, w[:2], None
    )


def _pad(length: int) -> Any:
    packed = nn.utils.rnn.pack_sequence([dt.ones(2)])
    return nn.utils.rnn.pad_packed_sequence(packed, total_length=length)


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_parameter_accepts_integers_of_numpy_and_refuses_floats_and_bools(
    name: str,
) -> None:
    call, n, parameter = INTEGERS[name]
    call(n)
    call(np.int64(n))
    for wrong in (float(n), True):
        with pytest.raises(
            dt.ArgumentTypeError, match=rf"{name}.*: {parameter}.* must be an int.*, got {wrong}"
        ):
            call(wrong)


def test_insert_beyond_the_end_of_a_module_list_appends() -> None:
    modules = nn.ModuleList([nn.ReLU()])
    modules.insert(2**70, nn.Tanh())
    modules.insert(-(2**70), nn.GELU())
    assert [type(m).__name__ for m in modules] == ["GELU", "ReLU", "Tanh"]


def test_calculate_gain_of_a_huge_slope_is_zero() -> None:
    assert nn.init.calculate_gain("leaky_relu", 1e308) == 0.0


# --- unchanged behavior
# ----------------------------------------------------------------------------


def test_error_of_user_code_is_unchanged() -> None:
    class Failing(nn.Module):
        def forward(self, x: dt.Tensor) -> Any:
            return x.nothing_of_that_name

    def failing(*args: Any) -> Any:
        raise TypeError("the user's")

    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        nn.Sequential(Failing())("no tensor")
    with pytest.raises(TypeError, match=r"^the user's$") as error:
        F.triplet_margin_with_distance_loss(X, X, X, distance_function=failing, swap=[])
    assert not isinstance(error.value, dt.DovetailError)


def test_internal_error_is_not_reported_as_a_wrong_argument(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dovetail.nn.functional.softmax_functions.axis_of", len)
    with pytest.raises(TypeError, match="len"):
        F.softmax(X, 1)


def test_functions_of_networks_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(F.softmax)) is F.softmax
    assert pickle.loads(pickle.dumps(nn.init.eye_)) is nn.init.eye_


def test_numpy_scalars_and_subclasses_are_accepted() -> None:
    assert F.softmax(X, np.int64(1)).shape == (2, 3)
    assert F.leaky_relu(X, np.float32(0.5)).shape == (2, 3)
    assert _schedule("StepLR", 2, gamma=np.float32(0.5)).gamma == 0.5
