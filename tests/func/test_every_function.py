"""Every public function under `dt.vmap` equals a loop over the examples, bit for bit."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import optree
import pytest
from dovetail.functions.elementwise.op_functions import FUNCTIONS

LINES = [
    line for line in (Path(__file__).parent / "lines.txt").read_text().splitlines()
    if line and not line.startswith(("#", "NOT "))
]  # fmt: skip
N = 3


def cases() -> list[tuple[str, str]]:
    """Return the expressions and their error messages."""
    found = []
    for line in LINES:
        *expressions, last = line.split("; ") if 'exec_("' not in line else pieces(line)
        last, mark, words = re.fullmatch(r"(.*?)(?: ([!?]) (.*))?", last).groups()
        words = f"{mark} {words}" if mark else ""
        found += [(e, "") for e in expressions]
        found.append((last, words))
    return found


def pieces(line: str) -> list[str]:
    """Split a line that contains strings."""
    return re.split(r'; (?=[a-z]+[._(]|x\.|exec_)(?=(?:[^"]*"[^"]*")*[^"]*$)', line)


def inputs(device: dt.Device) -> tuple[dict[str, dt.Tensor], dict[str, dt.Tensor]]:
    """Return the operands that differ between examples, and the shared ones."""
    rng = np.random.default_rng(7)

    def floats(*shape: int) -> np.ndarray:
        return rng.uniform(-2, 2, shape).astype(np.float32)

    square = floats(N, 4, 4)
    many = {
        "x": floats(N, 6), "y": floats(N, 6), "u": rng.uniform(0.1, 0.9, (N, 6)).astype("f4"),
        "m": floats(N, 3, 4), "a": square + 3 * np.eye(4, dtype="f4"), "t": floats(N, 2, 3, 4),
        "s": square @ square.transpose(0, 2, 1) + 2 * np.eye(4, dtype="f4"),
        "i": rng.permuted(np.tile(np.arange(6), (N, 1)), axis=1), "k": np.asarray([4, 0, 2]),
        "b": rng.random((N, 6)) < 0.5, "z": (floats(N, 6) + 1j * floats(N, 6)).astype("c8"),
    }  # fmt: skip
    shared = {
        "w": floats(4), "c": floats(4, 4) + 3 * np.eye(4, dtype="f4"), "j": rng.permutation(6),
        "v": np.sort(floats(6)),
    }  # fmt: skip
    return ({k: dt.asarray(v) for k, v in many.items()},
            {k: dt.asarray(v) for k, v in shared.items()})  # fmt: skip


def value(expression: str, names: dict[str, Any]) -> Any:
    """Evaluate an expression."""

    def exec_(text: str, r: str) -> Any:
        inner = {"dt": dt, **names}
        exec(text, inner)
        return inner[r]

    return eval(expression, {"dt": dt, "exec_": exec_, **names})


def assert_equal(found: Any, want: Any) -> None:
    a, b = optree.tree_leaves(found), optree.tree_leaves(want)
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        assert x.numpy().tobytes() == y.numpy().tobytes() or np.array_equal(
            x.numpy(), y.numpy(), equal_nan=True
        ), np.max(np.abs(x.numpy() - y.numpy()))


def looped(expression: str, many: dict[str, Any], shared: dict[str, Any]) -> Any:
    each = [value(expression, {**{k: v[n] for k, v in many.items()}, **shared}) for n in range(N)]
    leaves = [optree.tree_leaves(e) for e in each]
    return [dt.stack([dt.asarray(p[n]) for p in leaves]) for n in range(len(leaves[0]))]


@pytest.mark.parametrize(("expression", "words"), cases())
def test_vmap_of_an_expression_equals_a_loop(
    expression: str, words: str, device: dt.Device
) -> None:
    many, shared = inputs(device)
    used = {k: v for k, v in many.items() if re.search(rf"\b{k}\b", expression)}
    used = used or {"x": many["x"]}

    def one(given: dict[str, dt.Tensor]) -> Any:
        return value(expression, {**given, **shared})

    with dt.vendor_products(False):
        if words.startswith("!"):
            with pytest.raises(dt.DovetailError, match=words[2:]):
                dt.vmap(one)(used)
            return
        dt.random.manual_seed(3)
        found = dt.vmap(one)(used)
        dt.random.manual_seed(3)
        want = looped(expression, used, shared)
    # several draws: each draws for all examples at once, so a loop draws in another order
    if words:
        assert [(t.shape, t.dtype) for t in optree.tree_leaves(found)] == [
            (t.shape, t.dtype) for t in want
        ]
        assert len({row.numpy().tobytes() for row in optree.tree_leaves(found)[0]}) == N
        return
    assert_equal(found, want)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_vmap_of_an_elementwise_function_equals_a_loop(name: str, device: dt.Device) -> None:
    function, arity = getattr(dt, name), FUNCTIONS[name].arity
    many, shared = inputs(device)
    every = {**many, **shared}
    for kinds in {k[:arity] for k in ("xy", "uu", "ii", "bb", "xw", "vy", "ji")}:
        given = [every[k] for k in kinds]
        axes = tuple(0 if k in many else None for k in kinds)
        if "w" in kinds:
            given[-1] = dt.reshape(shared["w"], (4, 1))
        try:
            want = [
                function(*[t if d is None else t[n] for t, d in zip(given, axes, strict=True)])
                for n in range(N)
            ]
        except dt.DTypeError:
            continue
        if {*axes} != {None}:
            assert_equal(dt.vmap(function, in_axes=axes)(*given), dt.stack(want))


def named() -> set[str]:
    """Return public functions."""
    found = {n for n in dt.__all__ if callable(getattr(dt, n))}
    found = {n for n in found if not inspect.isclass(getattr(dt, n))} - {*FUNCTIONS}
    found = {n for n in found if not isinstance(getattr(dt, n), dt.DType)}  # they refuse calls
    for part in ("linalg", "fft", "random", "func"):
        found |= {f"{part}.{n}" for n in dir(getattr(dt, part))}
    return found


def test_every_public_function_has_a_line_or_a_reason() -> None:
    text = (Path(__file__).parent / "lines.txt").read_text()
    seen = {*re.findall(r"\bdt\.([a-z]\w*(?:\.[a-z]\w*)?)", text)}
    excused: set[str] = set()
    for line in re.findall(r"^NOT (.*):", text, re.M):
        excused |= {*line.split()}
    twins = {"func.vmap": "vmap"}
    assert {n for n in named() if twins.get(n, n) not in seen} - excused == set()
    assert excused - named() == set()
