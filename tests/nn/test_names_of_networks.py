"""Names that others have for networks: they are here, or the error says what to write."""

from __future__ import annotations

import re
from functools import reduce
from typing import Any

import dovetail as dt
import pytest
from dovetail_nn.familiar import INSTEAD, MODULE

EVERY = [(package, name) for package, names in INSTEAD.items() for name in names]


def at(path: str) -> Any:
    return reduce(getattr, path.split("."), dt)


@pytest.mark.parametrize(("package", "name"), EVERY)
def test_a_name_that_is_not_there_says_what_to_write(package: str, name: str) -> None:
    assert name not in getattr(at(package), "__all__", ())
    if not hasattr(at(package), name):  # a module of ours may have it
        with pytest.raises(AttributeError, match=f"'{name}'; here it is "):
            getattr(at(package), name)


@pytest.mark.parametrize(("package", "name"), EVERY)
def test_what_it_says_is_there(package: str, name: str) -> None:
    for path in re.findall(r"\bdt\.([a-zA-Z_.0-9]*\w)", INSTEAD[package][name]):
        assert at(path) is not None


def test_a_module_says_what_others_have_as_methods() -> None:
    net = dt.nn.Linear(3, 2)
    for name in MODULE:
        with pytest.raises(AttributeError, match=r"'Linear' object .* here it is "):
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
def test_of_a_name_that_is_elsewhere_the_place_is_said(wrong: str, right: str) -> None:
    with pytest.raises(AttributeError, match=f"; here it is {re.escape(right)}$"):
        at(wrong)


def test_what_nobody_has_is_not_explained() -> None:
    for package in INSTEAD:
        with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
            _ = at(package).nonsense
        assert not hasattr(at(package), "__nonsense__")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("nn", "torch.nn"), ("optim", "torch.optim"), ("distributions", "torch.distributions")],
)
def test_every_class_of_pytorch_is_here_or_explained(ours: str, theirs: str) -> None:
    torch = pytest.importorskip("torch")
    others = reduce(getattr, theirs.split(".")[1:], torch)
    classes = [n for n, c in vars(others).items() if isinstance(c, type) and n[0].isupper()]
    assert len(classes) > 10
    for name in classes:
        try:
            getattr(at(ours), name)
        except AttributeError as error:
            assert "; here it is " in str(error), name
