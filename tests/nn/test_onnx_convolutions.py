"""Convolutions and pooling of dt.nn's functions, as ONNX models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest

pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
F: Any = dt.nn.functional  # type: ignore[attr-defined]  # a namespace, found when it is asked for
if not hasattr(F, "conv2d"):
    pytest.skip("dt.nn.functional has no convolutions", allow_module_level=True)

rng = np.random.default_rng(0)


def t(*shape: int) -> dt.Tensor:
    return dt.asarray(rng.standard_normal(shape).astype(np.float32), device="reference")


X, LINE, W, B = t(2, 4, 9, 8), t(2, 4, 9), t(6, 2, 3, 3), t(6)
BACK = t(4, 3, 3, 3)
CASES: dict[str, tuple[dt.Tensor, Callable[[dt.Tensor], Any], str]] = {
    "plain": (X, lambda x: F.conv2d(x, W, groups=2), "Conv"),
    "bias, padding": (X, lambda x: F.conv2d(x, W, B, padding=1, groups=2), "Conv"),
    "stride": (X, lambda x: F.conv2d(x, W, B, 2, (1, 0), 1, 2), "Conv"),
    "dilation": (X, lambda x: F.conv2d(x, W, dilation=2, padding="same", groups=2), "Conv"),
    "one axis": (LINE, lambda x: F.conv1d(x, W[:, :, 0], groups=2), "Conv"),
    "transposed": (X, lambda x: F.conv_transpose2d(x, BACK), "ConvTranspose"),
    "transposed, stride": (
        X, lambda x: F.conv_transpose2d(x, BACK, None, 2, 1, 1), "ConvTranspose",
    ),
    "max": (X, lambda x: F.max_pool2d(x, 2), ""),
    "average": (X, lambda x: F.avg_pool2d(x, 2), ""),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_convolution_exports_as_one_operator_with_the_same_results(what: str) -> None:
    x, f, op = CASES[what]
    model = dt.onnx.export(f, x, input_names=["x"], dynamic_axes={"x": [0]})
    assert op in ["", *[n.op_type for n in model.graph.node]]
    for given in (x, dt.concat([x, x])):
        want = f(given).numpy()
        got = ort.InferenceSession(model.SerializeToString()).run(None, {"x": given.numpy()})[0]
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
        back = dt.onnx.load(model, "reference")(given).numpy()
        np.testing.assert_allclose(back, want, rtol=1e-4, atol=1e-4)
