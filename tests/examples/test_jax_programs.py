"""Programs written for JAX run on dovetail after a change of their import lines."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

PORTED = Path(__file__).parents[2] / "examples" / "ported"
IMPORT = re.compile(r"^(import|from) jax\b(.*)$", re.MULTILINE)
SIZES: dict[str, dict[str, int]] = {
    "hmc": {"chains": 3, "steps": 20, "leaps": 4, "rows": 20},
    "kalman": {"series": 2, "steps": 20, "rounds": 4},
    "lattice_boltzmann": {"nx": 24, "ny": 12, "steps": 12, "every": 4},
    "neural_ode": {"rounds": 4, "batch": 3, "length": 6, "hidden": 4},
}
REFERENCES: dict[str, dict[str, Any]] = {  # of JAX 0.10.2 at these sizes
    "hmc": {
        "truth": [-1.6366563, -0.551168, 0.486428, -1.3662944],
        "mean": [-1.1558615, -0.8230594, 0.3827628, -1.0454503],
        "accepted": 0.9666667,
        "step_size": [0.4, 0.4, 0.4],
    },
    "kalman": {
        "losses": [2.3736928, 1.5378695, 0.878612, 0.4983585],
        "log_q": -0.03892875,
        "log_r": -1.5706177,
        "errors": [0.1938055, 0.1220605, 0.0741676],
    },
    "lattice_boltzmann": {
        "top": [0.0812838, 0.1005972, 0.1170475],
        "mass": 288.67972,
    },
    "neural_ode": {
        "losses": [0.1903016, 0.1014633, 0.1695744, 0.1718442],
        "worst": 0.6684721,
        "velocity": [-0.6610891, -0.1436592],
    },
}


def port(match: re.Match[str]) -> str:
    """Return the import line of a program for dovetail."""
    keyword, rest = match.groups()
    is_bare = keyword == "import" and not rest
    return f"{keyword} dovetail.jax{' as jax' if is_bare else rest}"


def load(name: str, is_ported: bool, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return a program as a module, with JAX's imports or dovetail's."""
    source = (PORTED / f"jax_{name}.py").read_text()
    if is_ported:
        source = IMPORT.sub(port, source)
    module = ModuleType(f"program_{name}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(source, f"jax_{name}.py", "exec"), vars(module))
    return module


@pytest.mark.parametrize("name", SIZES)
def test_ported_program_agrees_with_jax(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax", reason="jax is not installed: pip install jax")
    theirs, ours = (load(name, p, monkeypatch).main(**SIZES[name]) for p in (False, True))
    assert [*ours] == [*theirs]
    for key, value in theirs.items():
        expected, result = np.asarray(value), ours[key].numpy()
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5, err_msg=key)


@pytest.mark.parametrize("name", SIZES)
def test_ported_program_gives_the_reference_values(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = load(name, True, monkeypatch).main(**SIZES[name])
    for key, expected in REFERENCES[name].items():
        np.testing.assert_allclose(results[key].numpy(), expected, rtol=1e-4, err_msg=key)
