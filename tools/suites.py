"""Run the test suites of other libraries: `python tools/suites.py FOLDER [NAME ...]`.

docs/conformance.md has the results. FOLDER holds a checkout of each suite, or the wheel of a suite
that is part of a package; the tool fetches missing ones. `DOVETAIL_DEFAULT_DEVICE` selects the
device. The caller installs the other requirements of the suites: array-api-strict,
pytest-run-parallel, lazy-loader, ndindex, hypothesis, pytest-timeout; for Cubed its extra `test`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Suite(NamedTuple):
    """A suite: its source, the edits that add dovetail, and its command."""

    repository: str  # or requirements, if the suite is in wheels
    commit: str  # "" for wheels
    edits: tuple[tuple[str, str, str], ...]  # (file, old text, new text)
    command: str
    source: str = "."  # the folder for PYTHONPATH
    scipy: str = "1"  # SCIPY_ARRAY_API


EINOPS_BACKEND = """

class DovetailBackend(NumpyBackend):
    framework_name = "dovetail"

    def __init__(self):
        import dovetail
        import numpy

        self.np, self.host = dovetail, numpy

    def is_appropriate_type(self, tensor):
        return isinstance(tensor, self.np.Tensor)

    def from_numpy(self, x):
        made = self.np.asarray(x)
        return made.requires_grad_() if made.dtype.is_float else made

    def to_numpy(self, x):
        return self.host.asarray(x.detach())

    def concat(self, tensors, axis: int):
        return self.np.concat(tensors, axis=axis)


class JaxBackend(NumpyBackend):"""
# Dask tests chunks of other libraries with CuPy only.
CUPY_IMPORT = 'cupy = pytest.importorskip("cupy")'
CUPY_SUBSTITUTE = """import dovetail as dt

dt.set_default_dtype(dt.float64)


class Random:  # NumPy's generator, but it returns tensors
    def __init__(self, seed=None):
        self.rng = np.random.default_rng(seed)

    def __getattr__(self, name):
        return lambda *args, **options: dt.asarray(getattr(self.rng, name)(*args, **options))


Random.default_rng = Random


class cupy:
    __version__, ndarray, double, random = "14.0", dt.Tensor, dt.float64, Random
    array, asfortranarray, asnumpy = dt.asarray, dt.asarray, np.asarray
    asanyarray, diff, compress = dt.asarray, np.diff, np.compress
    tri = staticmethod(lambda *a, **k: np.tri(*a, **k, like=dt.zeros(1)))


for name in dt.__all__:
    if not hasattr(cupy, name):
        setattr(cupy, name, staticmethod(f) if callable(f := getattr(dt, name)) else f)
"""
DASK_TEST_FILES = [
    "core",
    "creation",
    "gufunc",
    "linalg",
    "overlap",
    "reductions",
    "routines",
    "slicing",
]
SUITES = {
    "array-api-tests": Suite(
        "data-apis/array-api-tests", "55fcc60", (),
        "array_api_tests --disable-deadline --max-examples 20",
    ),
    "array-api-extra": Suite(
        "data-apis/array-api-extra", "693b257",
        (("src/array_api_extra/_lib/_backends.py", '    NUMPY = "numpy"\n',
          '    NUMPY = "numpy"\n    DOVETAIL = "dovetail"\n'),),
        "tests --ignore tests/vendoring -k dovetail", "src",
    ),
    "array-api-compat": Suite(
        "data-apis/array-api-compat", "076218e",
        (("tests/_helpers.py", '"ndonnx", "sparse"\n', '"ndonnx", "sparse", "dovetail"\n'),),
        "tests -k dovetail", "src",
    ),
    "einops": Suite(
        "arogozhnikov/einops", "ccb89f2",
        (("einops/_backends.py", "\n\nclass JaxBackend(NumpyBackend):", EINOPS_BACKEND),
         ("einops/tests/__init__.py", "                _backends.NumpyBackend,\n",
          "                _backends.NumpyBackend,\n                _backends.DovetailBackend,\n"),
         ("einops/tests/test_array_api.py", "import numpy as xp", "import dovetail as xp"),
         ("einops/tests/test_array_api.py", 'if xp.__version__ < "2.0.0":', "if False:")),
        "einops/tests",
    ),
    "opt_einsum": Suite(
        "dgasmith/opt_einsum", "2ebc7b8",
        (("opt_einsum/testing.py", "array_function = np.random.rand\n",
          "import dovetail as dt\n\n"
          "        array_function = lambda *shape: dt.asarray(np.random.rand(*shape))\n"),),
        "opt_einsum/tests -k 'not torch and not jax and not object_arrays'",  # other backends
    ),
    "xarray": Suite(
        "xarray==2026.9.0 pandas==3.1.1 python-dateutil six", "",
        (("xarray/tests/test_array_api.py", 'xp = pytest.importorskip("array_api_strict")',
          "import dovetail as xp\n\nxp.set_default_dtype(xp.float64)"),
         ("xarray/tests/test_array_api.py",
          "from array_api_strict._array_object import Array  # isort:skip # type: ignore[no-redef]",
          "from dovetail import Tensor as Array")),
        "xarray/tests/test_array_api.py",
    ),
    "dask": Suite(
        "dask==2026.8.0", "",
        (("dask/array/utils.py", "str(adt) != str(bdt)", "adt != bdt"),
         ("dask/array/utils.py", "is_cupy_type(x):\n        return x.get()",
          "type(x).__name__ == 'Tensor':\n        return np.asarray(x)"),
         ("dask/array/tests/test_cupy_core.py", "n = c.get()", "n = np.asarray(c)"),
         *((f"dask/array/tests/test_cupy_{part}.py", CUPY_IMPORT, CUPY_SUBSTITUTE)
           for part in DASK_TEST_FILES)),
        " ".join(f"dask/array/tests/test_cupy_{part}.py" for part in DASK_TEST_FILES),
    ),
    "cubed": Suite(
        "cubed==0.27.0", "", (),
        "cubed/tests --ignore cubed/tests/test_mem_utilization.py --ignore "
        "cubed/tests/test_mem_utilization_rechunk.py -m 'not slow and not cloud'",
    ),
    "scikit-learn": Suite(
        "scikit-learn==1.9.1 joblib threadpoolctl", "",
        (("sklearn/utils/_array_api.py", '        "torch",\n        "dpnp",\n',
          '        "torch",\n        "dovetail",\n        "dpnp",\n'),),
        "--pyargs sklearn -k dovetail",
    ),
    "scipy": Suite(
        "scipy==1.17.1", "",
        (("scipy/conftest.py", "if SCIPY_ARRAY_API:\n    # fill",
          "if SCIPY_ARRAY_API:\n    import dovetail\n\n    dovetail.set_default_dtype("
          "dovetail.float64)  # as for PyTorch\n    xp_available_backends.append(\n"
          "        pytest.param(dovetail, id='dovetail', marks=pytest.mark.array_api_backends)\n"
          "    )\n    # fill"),
         ("scipy/conftest.py", "return xp.__array_namespace_info__().devices() + [None]",
          "return [*xp.__array_namespace_info__().devices(), None]"),
         ("scipy/conftest.py", "xp_known_backends = {", "xp_known_backends = {'dovetail', ")),
        "scipy/cluster scipy/constants scipy/differentiate scipy/fft scipy/integrate "
        "scipy/interpolate scipy/linalg scipy/ndimage scipy/optimize scipy/signal scipy/spatial "
        "scipy/special scipy/stats -k dovetail --timeout 120",
        scipy='["dovetail"]',
    ),
}  # fmt: skip


def check_out(suite: Suite, folder: Path) -> Path:
    """Check out the pinned commit, or install the wheels; apply the edits; return the folder."""
    if suite.commit:
        place = folder / suite.repository.replace("/", "+")
        if not place.exists():
            address = f"https://github.com/{suite.repository}"
            clone = ["git", "clone", "-q", "--recurse-submodules", address, place]
            subprocess.run(clone, check=True)
        subprocess.run(["git", "-C", place, "checkout", "-q", "-f", suite.commit], check=True)
    else:
        wheels = suite.repository.split()
        place = folder / wheels[0]
        shutil.rmtree(place, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", place]
        subprocess.run([*pip, *wheels], check=True)
    for name, old, new in suite.edits:
        path = place / name
        text = path.read_text()
        assert old in text, f"{path} has no {old!r}"
        path.write_text(text.replace(old, new))
    return place


def run_suite(name: str, folder: Path) -> int:
    """Run a suite, and return the exit status of pytest."""
    suite = SUITES[name]
    place = check_out(suite, folder)
    path = os.pathsep.join([str(place / suite.source), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {
        "PYTHONPATH": path,
        "ARRAY_API_TESTS_MODULE": "dovetail",
        "CUBED_BACKEND_ARRAY_API_MODULE": "dovetail.numpy",
        "EINOPS_TEST_BACKENDS": "dovetail",
        "SCIPY_ARRAY_API": suite.scipy,
    }  # fmt: skip
    options = "-q -n 0 -p no:cacheprovider --tb=line -rfE"
    if not suite.commit:
        options += f" -c {os.devnull} --rootdir . -W ignore"
    command = [sys.executable, "-m", "pytest", *options.split(), *shlex.split(suite.command)]
    print(f"--- {name} at {suite.commit or suite.repository}", flush=True)
    return subprocess.run(command, cwd=place, env=environment, check=False).returncode


if __name__ == "__main__":
    chosen = sys.argv[2:] or list(SUITES)
    sys.exit(max(run_suite(name, Path(sys.argv[1]).resolve()) for name in chosen))
