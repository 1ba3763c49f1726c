"""Values, gradients and errors do not depend on when work runs.

They are the same if work stays pending, is read between any two lines, is evaluated there, or if
each op runs immediately. That includes values that are saved for backward and then overwritten.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from installed import INSTALLED

DEVICES = ["reference", *(["cpu"] if "cpu" in INSTALLED else [])]
MODES = ("pending", "looked", "evaluated", "eager")
Names = dict[str, Any]
Line = Callable[[Names], Any]


def shown(value: Any) -> Any:
    """Return a printable form of a line's result."""
    if isinstance(value, dt.Tensor):
        dense = value.to_dense() if value.layout is not dt.strided else value
        kind = None if value.grad_fn is None else value.grad_fn.name
        # read later, so that printing is no part of a pending program
        return lambda: (np.asarray(dense).tobytes(), value.requires_grad, value.is_leaf, kind)
    if isinstance(value, tuple | list):
        parts = [shown(v) for v in value]
        return lambda: [p() if callable(p) else p for p in parts]
    return value


def outcome(mode: str, setup: Callable[[], Names], lines: list[Line]) -> list[Any]:
    """Return the result or error of each line, and at the end every tensor and its gradient."""
    found: list[Any] = []
    with dt.eager() if mode == "eager" else nullcontext():
        names = setup()
        for line in lines:
            try:
                found.append(line(names))
            except (dt.DovetailError, KeyError) as e:
                found.append((type(e).__name__, str(e)))
            live = [t for t in names.values() if isinstance(t, dt.Tensor)]
            for t in live:
                if mode == "looked":
                    repr(t), repr(t.grad)
            if mode == "evaluated":
                dt.evaluate(*live)
    for name, t in names.items():
        found.append((name, shown(t), shown(t.grad)))
    return [f() if callable(f) else shown_now(f) for f in found]


def shown_now(f: Any) -> Any:
    return tuple(p() if callable(p) else p for p in f) if isinstance(f, tuple) else f


def assert_same_in_every_mode(setup: Callable[[], Names], lines: list[Line]) -> list[Any]:
    first = outcome(MODES[0], setup, lines)
    for mode in MODES[1:]:
        other = outcome(mode, setup, lines)
        assert other == first, mode
    return first


# --- one case each -------------------------------------------------------------------------------


def leaves(device: str) -> Callable[[], Names]:
    def setup() -> Names:
        a = np.array([[0.5, 1.0, 2.0], [1.5, 0.25, 3.0]])
        names = {"x": dt.asarray(a, device=device), "w": dt.asarray(a[::-1].copy(), device=device)}
        for t in names.values():
            t.requires_grad_()
        names["data"] = dt.asarray(a * 2, device=device) * 1
        return names

    return setup


def line_from_source(source: str) -> Line:
    code = compile(source, "<line>", "exec")

    def line(names: Names) -> None:
        exec(code, {"dt": dt}, names)

    return line


SAVED = "backward: {} saved {}, .*, and {} overwrote it in place afterwards"
OVERWRITTEN = {
    "operand": (["y = x + 1", "z = y * y", "y.add_(1)"], "multiply", "operand 1", "add"),
    "exp": (["y = x.exp()", "z = y + 0", "y.add_(1)"], "exp", "its result", "add"),
    "exp twice": (["y = x.exp()", "z = y * y", "y.add_(1)"], "multiply", "operand 1", "add"),
    "sqrt": (["y = dt.sqrt(x)", "z = y + 0", "y.mul_(2)"], "sqrt", "its result", "multiply"),
    "tanh": (["y = dt.tanh(x)", "z = y + 0", "y *= 2"], "tanh", "its result", "multiply"),
    "the first writer": (["y = dt.tanh(x)", "z = y + 0", "y *= 2", "y += 1"],
                         "tanh", "its result", "multiply"),
    "data": (["z = x * data", "data.add_(1)"], "multiply", "operand 1", "add"),
    "a view": (["y = x.exp()", "v = y[:, 1:]", "z = y + 0", "v.add_(1)"],
               "exp", "its result", "add"),
    "through a view": (["y = x + 1", "v = y[0]", "z = v * v", "y.add_(1)"],
                       "multiply", "operand 1", "add"),
    "detached": (["y = x.exp()", "d = y.detach()", "z = y + 0", "d.add_(1)"],
                 "exp", "its result", "add"),
    "the same value": (["y = x.exp()", "z = y + 0", "y.mul_(1)"], "exp", "its result", "multiply"),
    "setitem": (["y = x.exp()", "z = y + 0", "y[0, 1] = 5"], "exp", "its result", "setitem"),
    "out": (["d = data * 1", "z = x * d", "dt.add(data, data, out=d)"],
            "multiply", "operand 1", "add"),
    "not recorded": (["y = x.exp()", "z = y + 0", "with dt.no_grad(): y.add_(1)"],
                     "exp", "its result", "add"),
    "its own operand": (["z = x + 1", "z.mul_(w)"], "multiply", "operand 0", "multiply"),
    "before it is read": (["z = x.exp()", "with dt.no_grad(): z.add_(1)"],
                          "exp", "its result", "add"),
    "scattered": (["y = x.exp()", "z = y + 0", "y[dt.asarray([1], device=y.device)] = 7"],
                  "exp", "its result", "setitem"),
}  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", OVERWRITTEN)
def test_overwritten_saved_value_raises_in_every_mode(case: str, device: str) -> None:
    lines, op, what, writer = OVERWRITTEN[case]
    program = [
        line_from_source(line) for line in (*lines, "z.sum().backward()", "u = (x * w).sum()")
    ]
    found = assert_same_in_every_mode(leaves(device), program)
    error, message = found[len(lines)]
    assert error == "GradientError"
    with pytest.raises(RuntimeError, match=SAVED.format(op, what, writer)):
        raise RuntimeError(message)
    assert found[-1][2] is None  # there is no gradient yet


FINE = {
    "softmax": ["y = dt.softmax(x, axis=1)", "z = y + 0", "y -= 1"],  # saves its operand
    "needs nothing": ["y = x + w", "z = y.sum() + 1", "y.mul_(3)"],
    "written before": ["y = x + 1", "y.mul_(3)", "z = y * y"],
    "written before, not recorded": ["y = x + 1", "with dt.no_grad(): y.mul_(3)", "z = y * y"],
    "what was saved is another": ["y = x + 1", "v = y.copy()", "z = y * y", "v.add_(1)"],
    "what it came of": ["y = data + 1", "z = x * y", "data.mul_(7)"],
    "its result again": ["z = x * 1", "z = z.exp_() if hasattr(z, 'exp_') else z"],
    "gradient of gradient": ["g = dt.grad((x.exp() * w).sum(), x, create_graph=True)", "z = g * g"],
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", FINE)
def test_valid_program_has_the_same_gradients_in_every_mode(case: str, device: str) -> None:
    lines = [line_from_source(line) for line in (*FINE[case], "z.sum().backward()")]
    found = assert_same_in_every_mode(leaves(device), lines)
    assert found[: len(lines)] == [None] * len(lines) and found[len(lines)][2] is not None


@pytest.mark.parametrize("device", DEVICES)
def test_backward_after_an_optimizer_step_raises_in_every_mode(device: str) -> None:
    lines = [line_from_source(line) for line in (
        "z = (x * w).exp().sum()", "z.backward(retain_graph=True)",
        "with dt.no_grad(): x -= 0.1 * x.grad", "z.backward()",
        "x.grad = None", "(x * w).exp().sum().backward()",
    )]  # fmt: skip
    found = assert_same_in_every_mode(leaves(device), lines)
    assert [f if f is None else f[0] for f in found[:6]] == [None] * 3 + ["GradientError"] + [
        None
    ] * 2
    assert "multiply saved operand 0" in found[3][1] and "subtract overwrote" in found[3][1]


def test_sparse_program_is_the_same_in_every_mode() -> None:
    def setup() -> Names:
        values = dt.asarray([1.0, 2.0, 3.0], device="reference").requires_grad_()
        return {"x": values}

    at = "[[0, 1, 2], [1, 0, 2]]"
    lines = [
        f"y = dt.sparse_coo_tensor({at}, x.exp(), (3, 3))", "z = (y * y).to_dense().sum()",
        "y.values().add_(1)", "z.backward()", "v = dt.exp(x)",
        f"y = dt.sparse_coo_tensor({at}, v, (3, 3)) @ dt.ones((3, 2), device='reference')",
        "v.mul_(2)", "y.sum().backward()",
        f"y = (dt.sparse_coo_tensor({at}, x, (3, 3)) * 2).to_dense()", "y.add_(1)",
        "y.sum().backward()",
    ]  # fmt: skip
    found = assert_same_in_every_mode(setup, [line_from_source(line) for line in lines])
    kinds = [None if f is None else f[0] for f in found[: len(lines)]]
    assert kinds == [*[None] * 3, "GradientError", *[None] * 3, "GradientError", *[None] * 3]


# --- random programs -----------------------------------------------------------------------------

UNARY = ["{}.exp()", "dt.sqrt(abs({}) + 1)", "dt.tanh({})", "{} * 0.5", "dt.softmax({}, axis=1)",
         "{} * {}", "dt.maximum({}, 0.5)", "{} + 1", "dt.sigmoid({})", "{}.copy()", "{}.detach()",
         "{}.mean(axis=0, keepdims=True) + {}", "{}.cumulative_sum(axis=1)",
         "{}[dt.asarray([1, 0], device={}.device)]"]  # fmt: skip
BINARY = ["{} + {}", "{} * {}", "{} / (abs({}) + 2)", "dt.where({} > {}, {}, {})"]
VIEWS = ["{}[:, 1:]", "{}[::-1]", "{}.T", "{}.reshape(3, 2)", "{}[0]"]
WRITES = ["{}.add_(1)", "{}.mul_({})", "{} -= 0.25", "{}[0] = 1.5", "{}[:, 1] = {}[:, 0]",
          "{}.T.mul_(2)", "with dt.no_grad(): {}.mul_(0.5)", "with dt.no_grad(): {} += {}",
          "{}[:, :2].add_({}[:, 1:])", "{}[dt.asarray([1], device={}.device)] = 0.5"]  # fmt: skip
BACK = ["{}.sum().backward()", "{}.sum().backward(retain_graph=True)", "{}.exp().sum().backward()",
        "{} = dt.grad(({} * {}).sum(), x, create_graph=True)", "x.grad = None",
        "x.zero_()"]  # fmt: skip


def random_lines(r: random.Random) -> list[str]:
    names, views, lines = ["x", "w", "data"], list[str](), list[str]()
    for i in range(r.randint(5, 11)):
        kind = r.choice(["unary", "unary", "binary", "view", "write", "write", "back"])
        a, b = (r.choice(names) for _ in range(2))
        new = f"t{i}"
        if kind == "view":
            lines.append(f"{new} = {r.choice(VIEWS).format(a)}")
            views.append(new)
        elif kind == "write":
            text = r.choice(WRITES)
            if views and r.random() < 0.3 and "{}[" not in text and text.count("{}") == 1:
                a = r.choice(views)
            lines.append(text.format(*(a if k == 0 else b for k in range(text.count("{}")))))
        elif kind == "back":
            text = r.choice(BACK)
            lines.append(text.replace("{}", new, 1).replace("{}", a) if "= dt.grad" in text
                         else text.replace("{}", a))  # fmt: skip
            names += [new] if "= dt.grad" in text else []
        else:
            text = r.choice(UNARY if kind == "unary" else BINARY)
            pair = (a, a) if kind == "unary" else (a, b)
            lines.append(f"{new} = " + text.format(*(pair * 2)[: text.count("{}")]))
            names.append(new)
    lines += [
        f"{names[-1]}.sum().backward()",
        f"({names[-1]} * {r.choice(names)}).sum().backward()",
    ]
    return lines


def after_errors(run: Line) -> Line:
    """Return a line that may name results which an earlier line failed to create."""

    def line(names: Names) -> None:
        try:
            run(names)
        except NameError:
            raise KeyError("a name") from None

    return line


def check_random(seed: int, device: str) -> None:
    lines = random_lines(random.Random(seed))
    program = [after_errors(line_from_source(text)) for text in lines]
    try:
        assert_same_in_every_mode(leaves(device), program)
    except AssertionError as e:
        raise AssertionError("\n".join([f"seed {seed}", *lines, str(e)])) from None


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_are_the_same_in_every_mode(seed: int) -> None:
    check_random(seed, "reference")


@pytest.mark.exhaustive
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(0, 2000, 100))
def test_many_random_programs_are_the_same_in_every_mode(seed: int, device: str) -> None:
    for k in range(100):
        check_random(10_000 + seed + k, device)
