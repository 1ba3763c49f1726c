"""The core without a backend, and the commands that hints name: real, installable packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from dovetail import install_source
from dovetail.plugins.entry import PluginEntry
from dovetail.plugins.registry import DeviceRegistry
from places import ROOT

SITE = Path(np.__file__).parent.parent


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of packages with all installed ones except dovetail's own distributions."""
    folder = tmp_path_factory.mktemp("site")
    for path in SITE.iterdir():
        if not path.name.startswith(("dovetail", "__editable__", "_dovetail", "__pycache__")):
            (folder / path.name).symlink_to(path)
    info = folder / "dovetail_tensor-0.1.0.dist-info"  # as an index would leave it
    info.mkdir()
    extra = 'Provides-Extra: cpu\nRequires-Dist: dovetail-cpu-llvm; extra == "cpu"\n'
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: dovetail-tensor\nVersion: 0.1.0\n{extra}"
    )
    return folder


def said(alone: Path, program: str, *options: str, **environ: str) -> tuple[str, str]:
    """Return the output and the errors of a program with only the core."""
    paths = [str(ROOT / "core"), str(alone)]
    code = f"import sys; sys.path[:0] = {paths}\nimport dovetail as dt\n{program}"
    kept = ("DOVETAIL_PURE",)
    ours = {k for k in os.environ if k.startswith(("DOVETAIL", "PYTHON")) and k not in kept}
    clear = {k: v for k, v in os.environ.items() if k not in ours}
    done = subprocess.run(
        [sys.executable, "-S", *options, "-c", code], capture_output=True, text=True, check=False,
        env={**clear, "DOVETAIL_CACHE_MIB": "0", **environ}, cwd=alone,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_core_alone_works_and_names_the_package_that_makes_it_fast(alone: Path) -> None:
    program = "x = dt.ones(3)\ny = dt.zeros(2)\nprint(x.tolist(), x.device, dt.default_device())"
    out, errors = said(alone, program)
    assert out == "[1.0, 1.0, 1.0] reference reference\n"
    assert errors.count("SlowDeviceWarning") == errors.count("pip install") == 1
    assert f"to install a fast one: pip install -e {ROOT}/backends/cpu_llvm" in errors


def test_warning_names_the_line_of_the_user(alone: Path) -> None:
    program = (
        "import warnings\nwith warnings.catch_warnings(record=True) as w:\n"
        "    warnings.simplefilter('always')\n    dt.ones(3)\n    dt.ones(3)\n"
        "print(w[0].filename, w[0].lineno, len(w), w[0].category.__mro__[2].__name__)"
    )
    assert said(alone, program)[0] == "<string> 6 1 UserWarning\n"


@pytest.mark.parametrize("chosen", ["variable", "call", "context", "argument"])
def test_choosing_the_reference_gives_no_warning(alone: Path, chosen: str) -> None:
    before = {
        "call": "dt.set_default_device('reference')",
        "context": "dt.device('reference').__enter__()",
    }
    environ = {"DOVETAIL_DEFAULT_DEVICE": "reference"} if chosen == "variable" else {}
    argument = ", device='reference'" if chosen == "argument" else ""
    made = f"for _ in 0, 1, 2: x = dt.ones(3{argument})\nprint(x.sum().item())"
    program = f"{before.get(chosen, '')}\n{made}"
    assert said(alone, program, "-W", "error", **environ) == ("3.0\n", "")


def test_explicitly_requested_missing_device_raises(alone: Path) -> None:
    program = "try: dt.ones(3)\nexcept dt.DeviceError as e: print(e)"
    out, errors = said(alone, program, DOVETAIL_DEFAULT_DEVICE="cpu")
    assert 'no backend for "cpu"' in out and "to install it: pip install" in out
    assert errors == ""


def test_other_backend_is_named_and_not_chosen(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    registry_module = sys.modules["dovetail.plugins.registry"]
    other = DeviceRegistry(find=lambda: [PluginEntry("odd_card", "nowhere")], environ={})
    monkeypatch.setattr(registry_module, "registry", other)
    monkeypatch.setattr("dovetail.environment._issued_warnings", set())
    assert registry_module.default_type() == "reference"
    assert 'dovetail.set_default_device("odd_card")' in str(recwarn.pop().message)
    with_cpu = DeviceRegistry(find=lambda: [PluginEntry("cpu", "nowhere")], environ={})
    monkeypatch.setattr(registry_module, "registry", with_cpu)
    assert registry_module.default_type() == "cpu"


@pytest.mark.parametrize("first", ["old", "new"])
def test_plugin_of_two_distribution_names_is_one(alone: Path, tmp_path: Path, first: str) -> None:
    """dovetail was installed under another name before."""
    order = ("dovetail", "dovetail-tensor") if first == "old" else ("dovetail-tensor", "dovetail")
    for name in order:
        info = tmp_path / name / f"{name.replace('-', '_')}-0.1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
        entry = "[dovetail.layouts.v1]\nsparse_coo = dovetail.sparse.plugin\n"
        (info / "entry_points.txt").write_text(entry)
    program = (
        f"sys.path[:0] = {[str(tmp_path / name) for name in order]}\n"
        "from dovetail import plugins\n"
        "print(*(e.distribution for e in plugins.installed('dovetail.layouts.v')))\n"
        "x = dt.asarray([[0.0, 2.0]], device='reference')\n"
        "print(x.to_sparse().values().tolist())"
    )
    out, _ = said(alone, program)
    assert out == "dovetail-tensor\n[2.0]\n"


# --- the names in hints


def test_hints_from_an_index_name_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install_source, "find_checkout", lambda: None)
    assert install_source.install_command("dovetail-cpu-llvm") == "pip install dovetail-cpu-llvm"
    upgrade = install_source.install_command("dovetail-tensor", option="--upgrade")
    assert upgrade == "pip install --upgrade dovetail-tensor"
    assert install_source.install_command("numpy>=2", "mpmath") == 'pip install "numpy>=2" mpmath'


def test_hints_from_a_checkout_name_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert install_source.find_checkout() == ROOT
    for name, folder in install_source.distribution_folders(ROOT).items():
        assert f'name = "{name}"' in (folder / "pyproject.toml").read_text()
    assert len(install_source.distribution_folders(ROOT)) == 7
    monkeypatch.chdir(ROOT)
    assert install_source.install_command("dovetail-opencl") == "pip install -e ./backends/opencl"
    assert install_source.install_command("dovetail-tensor") == "pip install -e ."
    # with an extra pip takes the distribution that is installed, and adds the requirements
    extra = install_source.install_command("dovetail-tensor[onnx]")
    assert extra == 'pip install "dovetail-tensor[onnx]"'
    monkeypatch.chdir(ROOT / "docs")
    assert install_source.install_command("dovetail-cuda") == f"pip install -e {ROOT}/backends/cuda"


def test_pip_records_the_folder_of_an_installation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As a plain `pip install ./checkout` leaves it: the sources are elsewhere."""
    monkeypatch.setattr(install_source, "_CHECKOUT_ROOT", tmp_path)
    noted = {"url": ROOT.as_uri(), "dir_info": {}}

    class Noted:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return json.dumps(noted) if noted else None

    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Noted())
    assert install_source.find_checkout() == ROOT
    noted["url"] = (tmp_path / "dovetail-0.1.0-py3-none-any.whl").as_uri()
    assert install_source.find_checkout() is None
    noted["url"] = "https://example.org/dovetail.whl"
    assert install_source.find_checkout() is None
    noted.clear()
    assert install_source.find_checkout() is None


def test_folder_with_a_space_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = tmp_path / "my work"
    (root / "core/dovetail").mkdir(parents=True)
    (root / "backends/odd").mkdir(parents=True)
    (root / "backends/odd/pyproject.toml").write_text('[project]\nname = "dovetail-odd"\n')
    (root / "pyproject.toml").write_text("this is no toml")
    monkeypatch.setattr(install_source, "find_checkout", lambda: root)
    monkeypatch.chdir(tmp_path)
    assert (
        install_source.install_command("dovetail-odd") == "pip install -e './my work/backends/odd'"
    )
