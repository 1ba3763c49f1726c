"""The program on docs/dovetail-in-300-lines.md runs, and its parts do what the page says."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from places import ROOT

PAGE = (ROOT / "docs" / "dovetail-in-300-lines.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
PROGRAM = "\n\n\n".join(BLOCKS)
DEVICES = ["interpreter", "compiler"]


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return the page's program as a module; the assertions on the page have passed then."""
    path = tmp_path_factory.mktemp("page") / "dovetail_mini.py"
    path.write_text(PROGRAM)
    spec = importlib.util.spec_from_file_location("dovetail_mini", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["dovetail_mini"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["dovetail_mini"]


def code_lines(text: str) -> int:
    """Count lines that are not blank, comments or docstrings."""
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    first = [n.body[0] for n in nodes if ast.get_docstring(n) is not None]
    docstrings = {line for n in first for line in range(n.lineno, (n.end_lineno or 0) + 1)}
    lines = enumerate(text.splitlines(), 1)
    return sum(
        n not in docstrings and bool(line.strip()) and not line.lstrip().startswith("#")
        for n, line in lines
    )


def test_page_is_about_as_long_as_its_title_says() -> None:
    assert "about 300 lines of functions, and 80 of imports" in PAGE
    shown = ("def check_", "def softmax", '@register("counting")')
    system = [block for block in BLOCKS if not any(text in block for text in shown)]
    assert 350 < code_lines("\n".join(system)) < 400


def test_page_names_packages_that_exist() -> None:
    named = set(re.findall(r"package `(\w+)`", PAGE))
    packages = {path.parent.name for path in (ROOT / "core" / "dovetail").glob("*/__init__.py")}
    assert len(named) > 6 and named <= packages


def test_page_has_a_docstring_for_every_public_function() -> None:
    """Methods of an interface are described in its class."""
    tree = ast.parse(PROGRAM)
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    assert len(functions) > 35
    assert [n.name for n in functions if ast.get_docstring(n) is None] == []


@pytest.mark.parametrize("device", DEVICES)
def test_arithmetic_matches_numpy(mini: Any, device: str) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(4, 1, 5)).astype("f4"), rng.normal(size=(3, 5)).astype("f4")
    x, y = mini.tensor(a, device=device), mini.tensor(b, device=device)
    found = ((x * y - x) / (y * y + 1)).numpy()
    assert np.array_equal(found, (a * b - a) / (b * b + np.float32(1)))
    np.testing.assert_allclose((x * 5).exp().numpy(), np.exp(a * 5), rtol=1e-4)
    assert np.array_equal(mini.apply("where", x < y, x, y).numpy(), np.minimum(a, b))


@pytest.mark.parametrize("axes", [(), (0,), (1,), (-1,), (0, 2), (0, 1, 2)])
def test_devices_give_equal_bits_for_reductions(mini: Any, axes: tuple[int, ...]) -> None:
    values = np.random.default_rng(2).normal(size=(3, 6, 37))
    for fold in ("sum", "max"):
        results = []
        for device in DEVICES:
            x = mini.tensor(values, device=device)
            results.append(getattr((x * 3).exp(), fold)(*axes).numpy())
        assert results[0].tobytes() == results[1].tobytes()
        exact = getattr(np.exp(values * 3), fold)(axis=axes or None, keepdims=bool(axes))
        np.testing.assert_allclose(results[0], exact, rtol=1e-4)


def test_sum_follows_the_order_of_lanes(mini: Any) -> None:
    values = np.random.default_rng(3).normal(size=11).astype("f4")
    lanes = [np.float32(0)] * 4
    for k, value in enumerate(values):
        lanes[k % 4] = lanes[k % 4] + value
    expected = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
    assert [mini.tensor(values, device=d).sum().numpy() for d in DEVICES] == [expected] * 2


@pytest.mark.parametrize("device", DEVICES)
def test_write_through_a_view_is_seen_by_all_views(mini: Any, device: str) -> None:
    array = np.arange(24, dtype="f4").reshape(4, 6)
    x = mini.tensor(array, device=device)
    view, pending = x[1:, ::-2], x * 1
    view[:, 1:] = view[:, :-1] * 10
    before = array.copy()
    array[1:, ::-2][:, 1:] = array[1:, ::-2][:, :-1].copy() * 10
    assert np.array_equal(x.numpy(), array) and np.array_equal(pending.numpy(), before)


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_match_differences(mini: Any, device: str) -> None:
    rng = np.random.default_rng(4)
    point, other = (
        rng.normal(size=(2, 3)),
        mini.tensor(rng.normal(size=(4, 1, 3)), "float64", device),
    )

    def f(x: Any) -> Any:
        return (mini.apply("where", x < other, x * other, x / (other * other + 1)).exp() - x).sum()

    x = mini.tensor(point, "float64", device)
    x.requires_grad = True
    gradient = mini.grad(f(x), x).numpy()
    for place in np.ndindex(point.shape):
        step = np.zeros_like(point)
        step[place] = 1e-6
        low, high = (f(mini.tensor(point + s * step, "float64", device)).numpy() for s in (-1, 1))
        assert gradient[place] == pytest.approx((high - low) / 2e-6, rel=1e-6, abs=1e-6)


def test_captured_function_is_traced_again_for_other_keys_only(mini: Any) -> None:
    calls = []

    def scaled(x: Any, factor: float) -> Any:
        calls.append(factor)
        return (x * factor).sum()

    captured = mini.jit(scaled)
    for size in (2, 2, 3):
        assert captured(mini.tensor(np.ones(size)), 2.0).numpy() == 2 * size
    assert captured(mini.tensor(np.ones(2)), 3.0).numpy() == 6
    assert calls == [2.0, 2.0, 3.0] and len(captured.traces) == 3


def test_errors_name_what_is_wrong(mini: Any) -> None:
    x, y = (mini.tensor([1.0], device=device) for device in DEVICES)
    with pytest.raises(ValueError, match="must be on one device, got compiler and interpreter"):
        x + y
    with pytest.raises(ValueError, match='no backend for "gpu"; registered: interpreter, compiler'):
        mini.tensor([1.0], device="gpu")
    with pytest.raises(TypeError, match="not known while the function is traced"):
        mini.jit(lambda x: x * float(x.numpy()[0]))(x)
    x.requires_grad = True
    with pytest.raises(TypeError, match="the op max has no gradient"):
        x.max().backward()
