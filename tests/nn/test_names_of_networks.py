"""Network names of other libraries exist in dovetail, or the error says what to write."""

from __future__ import annotations

import re
from functools import reduce
from typing import Any

import dovetail as dt
import pytest
from dovetail.compat.hints import tables

PACKAGES = (
    "nn", "nn.functional", "nn.init", "nn.utils", "optim", "optim.lr_scheduler", "data",
    "distributions", "checkpoint", "onnx", "tensorboard",
)  # fmt: skip
INSTEAD = {package: tables()[package] for package in PACKAGES}
MODULE, OPTIMIZER, DISTRIBUTION = (tables()[n] for n in ("Module", "Optimizer", "Distribution"))
EVERY = [(package, name) for package, names in INSTEAD.items() for name in names]


def at(path: str) -> Any:
    return reduce(getattr, path.split("."), dt)


@pytest.mark.parametrize(("package", "name"), EVERY)
def test_missing_name_names_an_alternative(package: str, name: str) -> None:
    assert name not in getattr(at(package), "__all__", ())
    if not hasattr(at(package), name):  # one of dovetail's modules may have it
        with pytest.raises(AttributeError, match=f"'{name}'; (use|dovetail) "):
            getattr(at(package), name)


@pytest.mark.parametrize(("package", "name"), EVERY)
def test_alternative_exists(package: str, name: str) -> None:
    for path in re.findall(r"\bdt\.([a-zA-Z_.0-9]*\w)", INSTEAD[package][name]):
        assert at(path) is not None


def test_missing_module_method_names_an_alternative() -> None:
    net = dt.nn.Linear(3, 2)
    for name in MODULE:
        with pytest.raises(AttributeError, match=r"'Linear' object .* (use|dovetail) "):
            getattr(net, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
        _ = net.nonsense


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("nn.Relu", "dt.nn.ReLU"), ("nn.silu", "dt.nn.functional.silu"),
        ("nn.functional.Linear", "dt.nn.Linear"), ("optim.StepLR", "dt.optim.lr_scheduler.StepLR"),
        ("nn.functional.exp", "dt.exp"), ("data.Normal", "dt.distributions.Normal"),
    ],
)  # fmt: skip
def test_name_in_another_package_is_located(wrong: str, right: str) -> None:
    with pytest.raises(AttributeError, match=f"; use {re.escape(right)}$"):
        at(wrong)


def test_unknown_name_raises_attribute_error_without_hint() -> None:
    for package in INSTEAD:
        with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
            _ = at(package).nonsense
        assert not hasattr(at(package), "__nonsense__")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("nn", "torch.nn"), ("optim", "torch.optim"), ("distributions", "torch.distributions")],
)
def test_every_pytorch_class_exists_or_is_explained(ours: str, theirs: str) -> None:
    torch = pytest.importorskip("torch")
    others = reduce(getattr, theirs.split(".")[1:], torch)
    classes = [n for n, c in vars(others).items() if isinstance(c, type) and n[0].isupper()]
    assert len(classes) > 10
    for name in classes:
        try:
            getattr(at(ours), name)
        except AttributeError as error:
            assert re.search("; (use|dovetail) ", str(error)), name


PARAMETERS = [
    ("optim.Adam", "learning_rate", "use lr="), ("optim.Adam", "b1", "betas="),
    ("optim.Adam", "beta_1", "betas="), ("optim.Adam", "clipnorm", "clip_grad_norm_"),
    ("optim.Adam", "epsilon", "use eps="), ("optim.AdamW", "decay", "weight_decay="),
    ("optim.RMSprop", "rho", "alpha="), ("optim.RMSprop", "decay", "alpha="),
    ("optim.lr_scheduler.StepLR", "steps", "step_size="),
    ("nn.Linear", "use_bias", "use bias="), ("nn.Linear", "units", "out_features="),
    ("nn.Dropout", "rate", "use p="), ("nn.Softmax", "axis", "use dim="),
    ("nn.Conv2d", "strides", "use stride="), ("nn.Conv2d", "filters", "out_channels="),
    ("nn.LayerNorm", "epsilon", "use eps="), ("nn.BatchNorm2d", "decay", "momentum="),
    ("nn.LSTM", "return_sequences", "every step"), ("nn.LSTM", "units", "hidden_size="),
    ("nn.CrossEntropyLoss", "from_logits", "the inputs are always logits"),
    ("nn.BCELoss", "from_logits", "BCEWithLogitsLoss"), ("nn.Linear", "activation", "dt.nn.ReLU"),
    ("nn.Linear", "kernel_initializer", "dt.nn.init"), ("nn.ReLU", "nonsense", "takes inplace="),
    ("nn.Embedding", "nonsense", "padding_idx="), ("distributions.Normal", "mean", "loc="),
    ("distributions.Normal", "std", "scale="), ("distributions.Bernoulli", "p", "probs="),
    ("data.DataLoader", "batchsize", "batch_size="), ("data.DataLoader", "workers", "num_workers="),
]  # fmt: skip


@pytest.mark.parametrize(("path", "theirs", "says"), PARAMETERS)
def test_parameter_with_another_name_is_explained(path: str, theirs: str, says: str) -> None:
    name = path.rpartition(".")[2]
    with pytest.raises(dt.ArgumentTypeError, match=f"{name}: has no parameter {theirs}; ") as said:
        at(path)(**{theirs: 1})
    assert says in str(said.value) and said.value.__context__ is None


def test_constructors_name_missing_arguments() -> None:
    for make, says in [
        (lambda: dt.nn.Linear(3), "Linear: needs out_features; it takes in_features, out_"),
        (lambda: dt.optim.Adam(lr=0.1), "optim.Adam: needs params; pass net.parameters()"),
        (
            lambda: dt.nn.Linear(3, 2, 1, 2, 3, 4, 5),
            "Linear: takes at most 5 positional arguments, got 7",
        ),
        (lambda: dt.nn.Linear(3, 2, in_features=3), "Linear: in_features is given twice"),
    ]:
        with pytest.raises(dt.ArgumentTypeError, match=re.escape(says)):
            make()


def test_errors_of_user_classes_are_unchanged() -> None:
    class Net(dt.nn.Linear):
        def __init__(self, n: int) -> None:
            super().__init__(n, 2, use_bias=False)  # type: ignore[call-arg]

    with pytest.raises(TypeError, match=r"Net.__init__\(\) got an unexpected"):
        Net(m=3)  # type: ignore[call-arg]
    with pytest.raises(dt.ArgumentTypeError, match="Linear: has no parameter use_bias"):
        Net(3)
    with pytest.raises(dt.ArgumentTypeError, match="timeout must be a number, got 'a'"):
        dt.data.DataLoader([1], timeout="a")  # type: ignore[arg-type]


def test_missing_optimizer_and_distribution_methods_name_an_alternative() -> None:
    of: list[tuple[object, dict[str, str]]] = [
        (dt.optim.SGD(dt.nn.Linear(1, 1).parameters()), OPTIMIZER),
        (dt.distributions.Normal(0.0, 1.0), DISTRIBUTION),
        (dt.distributions.MultivariateNormal(dt.zeros(2), dt.eye(2)), DISTRIBUTION),
    ]
    for found, names in of:
        for name, way in names.items():
            with pytest.raises(AttributeError, match=f"'{name}'; use {re.escape(way)}"):
                getattr(found, name)
        with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
            found.nonsense  # noqa: B018


def test_alternatives_of_parameters_exist() -> None:
    for way in tables()["parameters"].values():
        for path in re.findall(r"\bdt\.([a-zA-Z_.0-9]*\w)", way):
            assert at(path) is not None


def test_calling_an_optimizer_module_names_its_class() -> None:
    for name in ("adam", "sgd", "adagrad", "lbfgs", "rprop"):
        found: Any = getattr(dt.optim, name)
        with pytest.raises(dt.ArgumentTypeError, match=f"(?i)use dt.optim.{name}") as said:
            found(0.1)
        assert hasattr(dt.optim, re.findall(r"dt\.optim\.(\w+)", str(said.value))[0])
    with pytest.raises(AttributeError, match="xavier_uniform_"):
        _ = dt.nn.init.glorot_uniform_
