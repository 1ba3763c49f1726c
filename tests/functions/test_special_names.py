"""`dt.special` has the functions of `torch.special` that dovetail has, with equal values."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest

A = np.array([[0.25, 0.5, 0.75], [0.1, 0.9, 0.3]], np.float32)
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "log_softmax": (A, 1), "logsumexp": (A, 1), "polygamma": (2, A), "softmax": (A, 0),
    "xlogy": (A, A), "zeta": (A + 2, A),
}  # fmt: skip


@pytest.mark.parametrize("name", dt.special.__all__)
def test_special_function_equals_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    arguments = ARGUMENTS.get(name, (A,))

    def call(module: Any, make: Any) -> Any:
        parts = [make(x) if isinstance(x, np.ndarray) else x for x in arguments]
        return getattr(module, name)(*parts)

    with dt.device("reference"):
        found = np.asarray(call(dt.special, dt.asarray))
    expected = call(torch.special, torch.asarray).numpy()
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


def test_every_name_of_torch_special_exists_or_is_explained() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    names = {*dir(torch.special)} - {"Tensor", "torch", "common_args", "multi_dim_common"}
    for name in sorted(n for n in names if not n.startswith("_")):
        if name not in dt.special.__all__:
            with pytest.raises(AttributeError, match=rf"{name}'; (use |dovetail has no special\.)"):
                getattr(dt.special, name)
