"""The node cases of onnx's backend test suite, run by `dt.onnx`; what is left out, and why.

`python tests/support/onnx_cases.py` prints the table of docs/onnx.md.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from functools import cache
from typing import Any

import dovetail as dt
import numpy as np
import onnx
from dovetail.onnx.library import UNSUPPORTED_ELEMENT_NAMES, array_of
from dovetail.onnx.limits import MemoryBudget
from dovetail.onnx.tensors import values_of

# Cases whose results are wider apart than the suite allows: what is compared instead.
WIDER = {
    r"^test_dft": (1e-3, 1e-5),  # sums of 100 numbers, next to 0
    r"^test_attention.*_bf16": (2.0**-6, 1e-6),  # two last places of a bfloat16
    r"^test_attention.*_fp16": (2.0**-9, 1e-6),  # of a float16: the suite rounds after each op
}
# Cases that are left out, and why; those of dtypes that no tensor has say so themselves.
LEFT_OUT = {
    r"^test_bernoulli": "random values, which differ between libraries",
    r"^test_training_dropout(?!_zero)": "random values, which differ between libraries",
    r"^test_image_decoder": "images in files: decode them with a library for that",
    r"^test_tfidfvectorizer": "not written",
    r"^test_ai_onnx_ml_tree_ensemble": "not written",
    r"^test_roialign_mode_max": "the suite takes a corner's largest share, the text a sample",
}


@cache
def cases() -> list[Any]:
    """The cases: made anew, from the library that is installed."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the suite's own arithmetic
        return list(load_model_tests(kind="node"))


@cache
def operators() -> dict[str, str]:
    """The operator that each case is of; an expanded one is of the operator it stands for."""
    found: dict[str, str] = {}
    for case in cases():
        ops = [n.op_type for n in case.model.graph.node if n.op_type not in ("Constant",)]
        found[case.name] = ops[0] if ops else "Constant"
    for name in found:
        base = name.partition("_expanded")[0]
        found[name] = found.get(base, found[name])
    return found


def host(x: Any) -> Any:
    """A result as arrays."""
    if isinstance(x, list):
        return [host(v) for v in x]
    return array_of(x) if isinstance(x, dt.Tensor) else x


def given(x: Any) -> Any:
    """What a case has, as arrays."""
    if isinstance(x, list):
        return [given(v) for v in x]
    return values_of(x, None, MemoryBudget(None)) if isinstance(x, onnx.TensorProto) else x


def require_same(got: Any, want: Any, rtol: float, atol: float) -> None:
    """Raises: AssertionError where values, shapes or dtypes differ."""
    if isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            require_same(g, w, rtol, atol)
        return
    want = np.asarray(want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if got.dtype.name == "bfloat16":
        got, want = got.astype(np.float32), want.astype(np.float32)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


def run(case: Any, device: str) -> None:
    """Runs a case. Raises: AssertionError where results are not what it says."""
    model = dt.onnx.load(case.model, device)
    rtol, atol = next(
        (w for p, w in WIDER.items() if re.search(p, case.name)), (case.rtol, case.atol)
    )
    for inputs, outputs in case.data_sets:
        names = [v.name for v in model.inputs]
        got = model.run(dict(zip(names, map(given, inputs), strict=False)))
        for g, want in zip(got.values(), map(given, outputs), strict=True):
            require_same(host(g), want, rtol, atol)


def left_out(case: Any) -> str:
    """Why a case is left out; "" for one that runs."""
    why = next((r for p, r in LEFT_OUT.items() if re.search(p, case.name)), "")
    if why:
        return why
    try:
        dt.onnx.load(case.model, "reference")
    except dt.DTypeError as error:
        return next(
            (f"dtype {n}" for n in UNSUPPORTED_ELEMENT_NAMES.values() if f"has {n}," in str(error)),
            "",
        )
    return ""


def table() -> str:
    """How many cases of each operator run, and why the others do not."""
    total: Counter[str] = Counter()
    ran: Counter[str] = Counter()
    why: dict[str, Counter[str]] = {}
    for case in cases():
        op, reason = operators()[case.name], left_out(case)
        total[op] += 1
        ran[op] += not reason
        if reason:
            why.setdefault(op, Counter())[reason] += 1
    lines = ["| operator | cases | run | left out |", "|---|---|---|---|"]
    for op in sorted(total):
        said = "; ".join(f"{n} x {r}" for r, n in sorted(why.get(op, {}).items()))
        lines.append(f"| {op} | {total[op]} | {ran[op]} | {said} |")
    lines.append(f"| all | {total.total()} | {ran.total()} | {total.total() - ran.total()} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
